# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Can SGD sample the posterior?
#
# ```{div} page-head
# Level: second course · Reading: about 25 minutes, without the exercises · Running: about 5 seconds
# ```
#
# ```{index} ! constant SGD, ! preconditioning
# ```

# %%
import torch

from booklib.page.claims import at_most_errors, check, near
from sgmc.posteriors import LinearRegression, LogisticRegression

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt

from booklib.page.claims import at_least, at_most
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.prices import least_prices, show_prices
from booklib.page.tables import show_table
from booklib.rivals.constant_sgd import average_covariance
from sgmc import sample
from sgmc.kernels import SGLD
from sgmc.minibatches import Passes
from sgmc.splittings import langevin_chain

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
warnings.filterwarnings("ignore", message=".*do not agree")  # one pass only

# %% [markdown]
# Stochastic gradient descent with a constant rate never comes to rest: its iterates form a cloud around the mode.
# The posterior is a cloud around the same point. Is there a rate at which the two are the same?
#
# If the model fits, one number cannot do it unless the posterior is itself a ball ({numref}`fig-csgd-bowl`).
# A matrix can. Let $A$ be the curvature of the energy, and $V$ the covariance of the gradient noise. On a Gaussian the rate $P = 2(V + A)^{-1}$ makes the cloud the posterior.
#
# *A guess before you look: with the best single number as the rate, will the cloud be too wide along the posterior's ellipse, or across it?*
#
# The whole algorithm is one line:


# %%
def sgd(posterior, rate, num_steps, seed=0, runs=600):
    """Where 600 runs of θ ← θ − P∇Ũ(θ) from the mode are after so many steps."""
    generator = torch.Generator().manual_seed(seed)
    theta = posterior.mean.repeat(runs, 1)
    for step in range(num_steps):
        theta = theta - posterior.stochastic_gradient(theta, generator, step) @ rate
    return theta


# %% [markdown]
# Here it is on a linear regression with two correlated inputs, $N = 1{,}000$ and $n = 10$, whose posterior is Gaussian with the covariance $A^{-1}$.
# $V$ comes from the gradients of the examples at the mode, {eq}`eq-v`.

# %%
N, n = 1_000, 10
options = {"generator": torch.Generator().manual_seed(0), "dtype": torch.float64}
x = torch.randn(N, 2, **options) @ torch.tensor([[1, 0.3], [0, 0.4]]).double()
y = x @ torch.tensor([1.0, -2]).double() + torch.randn(N, **options)
posterior = LinearRegression(x, y, batch_size=n)
A, identity = posterior.precision, torch.eye(2).double()


def noise_variance(posterior):
    """V at the mode, of minibatches without replacement."""
    x, y = posterior.data
    N, n = len(x), posterior.batch_size
    gradients = x * (x @ posterior.mean - y)[:, None]
    return N**2 / n * (1 - n / N) * torch.cov(gradients.T)


V = noise_variance(posterior)
best = 2 * 2 / float(V.trace())  # of one rate for all directions
rates = [best / 4 * identity, best * identity, 4 * best * identity]
rates.append(2 * torch.linalg.inv(V + A))
clouds = [sgd(posterior, rate, 1_500) for rate in rates]

a, directions = torch.linalg.eigh(A)  # the ellipse is longest along the first
along = (clouds[-1] - posterior.mean) @ directions[:, 0]
ratios = along**2 * a[0]
check("matrix", ratios.mean(), near(1), error=float(ratios.std()) / 600**0.5)

# %% mystnb={"figure": {"caption": "SGD on a linear regression: 600 runs after 1,500 steps (dots), and the posterior (grey, two standard deviations). One rate for all directions, a quarter of the best one, the best one $\\eta^*$, and four times that; on the right the matrix $2(V + A)^{-1}$.", "name": "fig-csgd-bowl"}, "image": {"alt": "Four panels with the same long grey ellipse. In three of them a round cloud of blue dots: inside the ellipse, wider than it across and shorter along it, and far outside of it. In the fourth the cloud fills the ellipse."}} tags=["hide-input"]
angle = torch.linspace(0, 2 * torch.pi, 200).double()
circle = torch.stack([angle.cos(), angle.sin()])
ellipse = 2 * torch.linalg.cholesky(posterior.covariance) @ circle
figure, panels = plt.subplots(1, 4, figsize=(7, 2.5), sharex=True, sharey=True)
titles = (r"$\frac{1}{4}\eta^*$", r"$\eta^*$", r"$4\eta^*$", "$2(V + A)^{-1}$")
for axes, cloud, title in zip(panels, clouds, titles, strict=True):
    axes.fill(*(posterior.mean[:, None] + ellipse), color=TRUTH, alpha=0.35, lw=0)
    axes.plot(*cloud.T, ".", ms=2, color=COLOURS["SGD"])
    axes.set(title=title, xlabel=r"$\theta_1$", aspect="equal")
panels[0].set(ylabel=r"$\theta_2$")
plt.show()

# %% [markdown]
# If the model fits, one small rate makes a ball, whatever the posterior looks like. With the matrix the cloud fills the ellipse: the variance along it is {c}`matrix` times the posterior's.
#
# On the price board (curvature 1, $N/n = 100$) SGD with that rate is the second row here, and the last of the whole board on {doc}`page 1 </book/further/price>`:

# %% tags=["hide-input"]
show_prices(7)

# %% [markdown]
# ## The covariance of the cloud
#
# Near the mode $\hat\theta$ take $U(\theta) = \tfrac12\delta^\top A\delta$ with $\delta = \theta - \hat\theta$, and $\nabla\tilde U = A\delta + \xi$ with gradient noise $\xi$ of covariance $V$.
# A step with the rate $P$, a symmetric matrix, is
#
# $$
# \delta' = (I - PA)\,\delta - P\xi.
# $$ (eq-csgd)
#
# Given $\delta$ the noise has mean zero, so the two terms are uncorrelated and their covariances add up.
# In the stationary distribution $\delta'$ has the covariance $\Sigma$ of $\delta$:
#
# $$
# \Sigma = (I - PA)\,\Sigma\,(I - AP) + PVP.
# $$ (eq-csgd-exact)
#
# When is $\Sigma = A^{-1}$? Inserted and multiplied out, {eq}`eq-csgd-exact` becomes $A^{-1} = A^{-1} - 2P + PAP + PVP$. So $2P = P(A + V)P$, and with $P^{-1}$ from both sides $2P^{-1} = V + A$.
#
# ```{prf:theorem} Constant SGD
# :label: thm-csgd-law
#
# Let $U$ be quadratic with the Hessian $A \succ 0$, let $P$ be symmetric and positive definite, and let every step draw its minibatch afresh.
#
# 1. If the iterates have a stationary distribution with finite second moments, their mean is $\hat\theta$ and their covariance solves {eq}`eq-csgd-exact`, with $V$ the noise's covariance averaged over that distribution.
# 2. This covariance is the posterior's, $A^{-1}$, only if $P = 2(V + A)^{-1}$. If $V \succ 0$ is the same everywhere, this $P$ is stable and makes it so.
# ```
#
# ```{admonition} Proof
# :class: dropdown
#
# The first part and "only if" are above. With $a > 0$ the eigenvalues of $V^{-1}A$, those of $PA = 2(V + A)^{-1}A$ are $2a/(1 + a) < 2$.
# So the powers of $I - PA$ tend to zero, $\delta$ is a convergent sum of past noises, and {eq}`eq-csgd-exact` has one solution ({prf:ref}`thm-lyapunov`), which is $A^{-1}$.
# ```
#
# Where the noise depends on the place, the $V$ of "only if" is an average over a stationary distribution that depends on $P$ itself, so the condition gives $P$ only implicitly.
#
# The term $A$ in $V + A$ corrects for the length of a step. Where steps are short it can be left out, and what remains, $2V^{-1}$, is the rate of {cite:t}`mandt2017`. {cite:t}`liu2021finite` have the stationary covariance at a finite rate.
# In a regression the noise does grow with the distance from the mode, but over the width of a posterior only by a share of order $d/N$.
#
# ## One rate makes a ball
#
# If the model fits, the noise has the shape of the curvature, $V = cA$ with $c = N/n - 1$ ({eq}`eq-price-noise`).
# With one rate, $P = \eta I$, and for small steps, {eq}`eq-csgd-exact` becomes $A\Sigma + \Sigma A = \eta cA$, and its solution is a ball:
#
# $$
# \Sigma = \tfrac12\eta c\,I.
# $$ (eq-csgd-ball)
#
# In a steep direction the gradient pulls back harder, and its noise is larger by just as much.
# The best one can do is to choose the size of the ball. In $d$ dimensions the divergence $KL(N(\hat\theta, \Sigma)\,\|\,N(\hat\theta, A^{-1}))$ is least, for small steps, at
#
# $$
# \eta^* = \frac{2d}{\operatorname{tr}V}.
# $$ (eq-csgd-rate)
#
# ```{admonition} Proof
# :class: dropdown
#
# For small steps $A\Sigma + \Sigma A = \eta V$, so $\Sigma = \eta\Sigma_1$ with a $\Sigma_1$ that does not depend on $\eta$, and the trace is $2\operatorname{tr}A\Sigma = \eta\operatorname{tr}V$.
# Twice the divergence is $\operatorname{tr}A\Sigma - \log\det A\Sigma - d = \tfrac12\eta\operatorname{tr}V - d\log\eta + \text{const}$, which is convex, with its minimum at $\eta^*$.
# ```
#
# $V$ falls as $1/n$, so twice the minibatch allows twice the rate: the *linear scaling rule* of training has the same form.
# A rate for each coordinate, $2/V_{kk}$, is halfway: with $V = cA$ it gives every coordinate the width that it has when the others are known.
# The table has the exact standard deviations over the posterior's, along the ellipse and across.


# %% tags=["hide-input"]
def law(rate, noise=V):
    """The exact chain of SGD, with this noise everywhere."""
    mass = torch.linalg.inv(rate)
    return langevin_chain(A, 1.0, noise, temperature=0.0, mass=mass)


def widths(covariance):
    """Standard deviations over the posterior's, along its ellipse and across."""
    return ((directions.T @ covariance @ directions).diagonal() * a).sqrt()


laws = {
    "one rate, 2d / tr V": rates[1],
    "a rate for each coordinate, 2 / diag V": torch.diag(2 / V.diagonal()),
    "a matrix, 2 V⁻¹": 2 * torch.linalg.inv(V),
    "a matrix, 2 (V + A)⁻¹": rates[3],
}
rows, far = [], []
for name, rate in laws.items():
    chain = law(rate)
    along, across = widths(chain.stationary_covariance()).tolist()
    steps = chain.autocorrelation_time(directions[:, 0])
    rows.append([name, f"{along:.3f}", f"{across:.3f}", f"{steps:.0f}"])
    theta = sgd(posterior, rate, 3 * round(steps), seed=1)
    z = ((theta - posterior.mean) @ directions).square() * a
    exact = torch.tensor([along, across]) ** 2
    far.append(((z.mean(0) - exact) / z.std(0) * 600**0.5).abs().max())
    if name.startswith("one"):
        ball = along, across
show_table(["rate", "along", "across", "steps for an independent θ, along"], rows)
check("along", ball[0], near(0.49, 0.02), kind="exact", digits=2)
check("across", ball[1], near(1.34, 0.03), kind="exact", digits=3)
check(
    "real-minibatches",
    max(far),
    at_most_errors(),
    because="600 runs with real minibatches; exceeded once in 200,000 times",
    says="Largest distance of eight measured variances from the table's",
)

# %% [markdown]
# The best ball answers the guess: it is {c}`across` times as wide as the posterior across the ellipse, and {c}`along` times along it.
# Both matrices are right here, since $V$ is about 99 times $A$.
# SGLD with a noise estimate injects in each direction what the minibatches lack ({ref}`ex-csgd-sgld`). With the matrix as its rate they lack nothing, and SGLD is SGD.
#
# ## What it saves
#
# On the price board, in one direction of curvature 1 with $N/n = 100$ and so $V = 99$, the rate is $P = 2/100$, and $\theta$ is an autoregression with the factor 0.98.

# %% tags=["hide-input"]
least = least_prices("sgd")
check("board-theta", least[0].passes, near(0.99, 1e-6), kind="exact", digits=2)
check("board-square", least[1].passes, near(0.495, 1e-4), kind="exact", digits=3)

# %% [markdown]
# An independent $\theta$ costs {c}`board-theta` passes and a $\theta^2$ {c}`board-square`, with a variance that is exactly right, for a $V$ that is the same everywhere, on a Gaussian. SGLD pays a hundred for one per cent, and full gradients one or two.
# The law of {doc}`/book/further/price` is about chains that inject the noise $2\eta$. Here none is injected: the minibatches' noise is *all* the noise there is, as with $\hat B = C$ in SGHMC.
# The price is what one must know. With the mode and $A$ one could draw from $N(\hat\theta, A^{-1})$ at once. So this page says what SGD does, and does not propose a sampler.
# Averages of SGD over windows of about a pass need no matrix, if the model fits ({ref}`ex-csgd-average`).
#
# ## Where the matrix fails
#
# * *A model that does not fit.* Let the targets scatter twice as widely as the model says. With $V = cA$, as if it fitted, the variance is {c}`misfit` times the right one. So measure $V$ from the gradients.
# * *Shuffled passes.* The errors of a pass cancel ({eq}`eq-pass-errors`), and the cloud shrinks: over the steps of a pass the variance is {c}`shuffled` of the right one.
# * *A posterior that is not Gaussian.* On the skew posterior of {doc}`the next page </book/further/noise_that_is_not_gaussian>` SGD with the number $2/(V + U'')$ of the mode has {c}`throws-variance` of the variance. But the left tail, $\theta < -0.4$, where the gradient noise is small, has only {c}`throws-left` of the samples that it should have. A network has no single mode, either. SWAG fits a Gaussian to the path of SGD instead ({doc}`/book/further/neighbours`).

# %% tags=["hide-input"]
misfit = LinearRegression(x, 2 * y - x @ posterior.mean, batch_size=n)
chain = law(0.02 * torch.linalg.inv(A), noise_variance(misfit))
wide = widths(chain.stationary_covariance()).square().mean()
check("misfit", wide, near(4, 0.4), kind="exact", digits=2)
shuffled = LinearRegression(x, y, batch_size=n, minibatches=Passes())
kernel = SGLD(1.0, temperature=0.0, mass=(V + A) / 2)  # SGD with this rate
start = posterior.mean.expand(400, -1).contiguous()
run = sample(kernel, shuffled, start, num_samples=N // n, warm_up=2 * N // n)
delta = run.samples - posterior.mean
ratio = ((delta @ A) * delta).sum(-1).mean() / 2
check("shuffled", ratio, near(0.43, 0.06))
inputs = torch.cat([torch.linspace(0.2, 1.2, 11), torch.tensor([4.0])]).double()
labels = torch.tensor([1.0] * 11 + [0.0]).double()
throws = LogisticRegression(inputs[:, None], labels, batch_size=2)
line = torch.linspace(-5, 6, 2_201).double()[:, None]
density = torch.softmax(-throws.energy(line), 0)
mode = line[density.argmax()]
hits = torch.sigmoid(inputs * mode)
noise = 12**2 / 2 * 10 / 11 * (inputs * (hits - labels)).var(correction=0)
rate = 2 / (noise + (inputs**2 * hits * (1 - hits)).sum() + 1)
theta, generator = mode.repeat(20_000, 1), torch.Generator().manual_seed(5)
for step in range(150):
    theta = theta - rate * throws.stochastic_gradient(theta, generator, step)
centre = density @ line
ratio = (theta - centre).square().mean() / (density @ (line - centre).square())
check("throws-variance", ratio, near(0.93, 0.06))
tail = (theta < -0.4).double().mean() / density[line[:, 0] < -0.4].sum()
check("throws-left", tail, near(0.19, 0.07))

# %% [markdown]
# **To remember:** near the mode of a model that fits, SGD with one rate samples a ball. With the matrix $2(V + A)^{-1}$ it samples the posterior, if that is Gaussian.
#
# ## Change it
#
# * In the visible cell of the regression set `2 * torch.linalg.inv(V + A)` to `2 * torch.diag(1 / V.diagonal())`, a rate for each coordinate: the fourth cloud becomes a smaller ellipse with its axes along those of the figure, and the number shows ✗.
# * In the same cell set `N, n = 1_000, 10` to `N, n = 1_000, 50`: the noise falls to a fifth, all rates grow fivefold, and the picture stays as it is.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-csgd-windows
#
# ★ **Write it yourself.** Average the iterates over windows of $K$ steps.
#
# ```python
# def window_averages(path, K):
#     """Averages (windows, …) over every K steps of a path (steps, …), without rest."""
#     ...
# ```
#
# Of what use they are is the question of {ref}`ex-csgd-average`.
# ````
#
# ````{solution} ex-csgd-windows
# :class: dropdown
#
# ```python
# def window_averages(path, K):
#     whole = len(path) // K
#     return path[: whole * K].unflatten(0, (whole, K)).mean(1)
# ```
# ````


# %% tags=["hide-input"]
def window_averages(path, K):
    whole = len(path) // K
    return path[: whole * K].unflatten(0, (whole, K)).mean(1)


path = torch.tensor([[1.0, 0], [2, 0], [6, 3], [2, 1], [5, 1], [5, 1], [9, 9]])
by_hand = torch.tensor([[3.0, 1], [4, 1]])
gap = (window_averages(path, 3) - by_hand).abs().max()
says = "Two windows of the solution, by hand, are wrong by"
check("written", gap, at_most(1e-6), kind="exact", says=says)

# %% [markdown]
# ```{exercise}
# :label: ex-csgd-sgld
#
# ★★ SGLD with the mass $M$ and the estimate $\hat B$ makes the step $\theta \leftarrow \theta - \eta M^{-1}\nabla\tilde U + N(0, 2\eta(M^{-1} - M^{-1}\hat BM^{-1}))$.
# Which $\hat B$ makes it exact on a Gaussian, at every stable step size? When is nothing left to inject?
# ```
#
# ```{solution} ex-csgd-sgld
# :class: dropdown
#
# $\hat B = \tfrac12\eta(V + A)$.
# With the minibatch's $\eta^2M^{-1}VM^{-1}$ the total noise of a step is then $2\eta M^{-1} - \eta^2M^{-1}AM^{-1}$, and with $F = I - \eta M^{-1}A$ this is $A^{-1} - FA^{-1}F^\top$, as the stationary covariance $A^{-1}$ needs it.
# The error of the step acts like the noise of a minibatch with covariance $A$, and is taken out like one.
# Nothing is injected where $M = \hat B$, so that $P = \eta M^{-1} = 2(V + A)^{-1}$. Any larger $M$ will do as well, one number included: SGLD needs the matrix in its noise, not in its rate.
# ```
#
# ```{exercise}
# :label: ex-csgd-average
#
# ★★★ Average the iterates over windows of $K$ steps, at one rate $\eta$, and take the averages as samples ({cite:t}`mandt2017`).
# Add up {eq}`eq-csgd` over a window and show that $K\operatorname{Cov}\bar\theta \to A^{-1}VA^{-1}$ for long windows, whatever the rate.
# Which $K$ gives the posterior if $V = cA$, and how many passes is that? What do you get if the model does not fit?
# ```
#
# ```{solution} ex-csgd-average
# :class: dropdown
#
# The sum of $\delta_{t+1} - \delta_t = -P(A\delta_t + \xi_t)$ gives $\bar\delta = -A^{-1}\bar\xi - (PA)^{-1}(\delta_{K+1} - \delta_1)/K$.
# The $\xi_t$ are uncorrelated, so that the first term has the covariance $A^{-1}VA^{-1}/K$; the second is smaller by a factor of order $1/\sqrt K$.
# With $V = cA$ that is $A^{-1}$ at $K = c = N/n - 1$: one pass for each sample, less a minibatch. The rate should be large, so that the window is long against the memory: with $\eta = 1/(2a_{\max})$ the standard deviations in the regression are at least {c}`average` of the right ones.
# If the model does not fit, $A^{-1}VA^{-1}$ is the *sandwich*: how much $\hat\theta$ varies from one data set to another, and not the posterior.
# ```

# %% tags=["hide-input"]
chain = law(0.5 / a[-1] * identity)
least = widths(average_covariance(chain, (N - n) // n)).min()
check("average", least, at_least(0.9), kind="exact", digits=2)

# %% [markdown]
# ## Further reading
#
# {cite:t}`mandt2017` have constant SGD, its rates, momentum and averages; {cite:t}`polyak1992` average iterates in order to optimise; {cite:t}`ahn2012` make SGLD's preconditioner from the noise; {cite:t}`li2016psgld` and {cite:t}`ma2015` say what a rate that moves, such as RMSprop's, has to add.
