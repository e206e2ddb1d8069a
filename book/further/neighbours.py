# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # What is the spread of each neighbour made of?
#
# ```{div} page-head
# Level: second course · Reading: about 31 minutes, without the exercises · Running: about 15 seconds
# ```
#
# ```{index} ! Monte Carlo dropout, ! randomised MAP, ! SWAG, ! Laplace approximation, snapshot ensembles
# ```

# %%
import torch

from booklib.page.claims import check, near
from sgmc.posteriors import LinearRegression

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
from torch import nn

from booklib.page.claims import at_least, at_most, at_most_errors
from booklib.page.figures import COLOURS, TRUTH, plot_contours, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.rivals import dropout, ensemble, laplace, snapshots, swag
from sgmc import sample
from sgmc.kernels import SGLD
from sgmc.posteriors import Gaussian, NetworkPosterior

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# Most people who want to know how sure a network is run no chain.
# They drop units, train an ensemble, keep snapshots of one descent, or put a Gaussian at an optimum: through the iterates of descent (SWAG) or with the curvature there (Laplace).
# What is the spread of each of these neighbours of sampling made of, and does it shrink with the data, as the posterior's does?
#
# **Only Laplace's is made of the data. On a linear regression it is the posterior's, which a hundred times the data make {c}`posterior` times as wide. Dropout's is made of its rate, and stays ({c}`dropout`). SWAG's is made of the learning rate and the minibatch, and stays ({c}`swag`). A snapshot's is what its cycle had no time to cool; it shrinks too slowly ({c}`snapshots`). An ensemble's is made of the number of modes: here there is one, so it is zero ({numref}`fig-neighbours-shrink`).**
#
# The regression has two inputs of correlation 0.8, noise and prior of variance 1, and minibatches of ten.


# %%
def regression_of_size(N):
    """N examples of y = x₁ − ½x₂ + noise."""
    options = {"generator": torch.Generator().manual_seed(2), "dtype": torch.float64}
    mixing = torch.tensor([[1, 0.8], [0, 0.6]]).double()
    x = torch.randn(N, 2, **options) @ mixing
    y = x @ torch.tensor([1, -0.5]).double() + torch.randn(N, **options)
    return LinearRegression(x, y, batch_size=10)


def descend(A, V, rates, covariance):
    """The covariance of θ after steps of stochastic gradient descent at these rates."""
    for rate in rates:
        move = torch.eye(2).double() - rate * A
        covariance = move @ covariance @ move + rate**2 * V
    return covariance


def covariances(posterior, p=0.2, rate=0.1, epochs=20):
    """What each neighbour scatters the weights by."""
    (x, y), A, n = posterior.data, posterior.precision, posterior.batch_size
    N, G = len(x), x.T @ x
    M = torch.linalg.solve(A - p * (G - torch.diag(G.diagonal())), x.T @ y)
    V = N**2 / n * (1 - n / N) * torch.cov((x * (x @ posterior.mean - y)[:, None]).T)
    cloud = descend(A, V, [rate / N] * 1_000, 0 * A)  # of the mean loss: rate / N of U
    time = torch.arange(epochs * N // n) / (epochs * N // n)
    falling = rate / N * (1 + torch.cos(torch.pi * time.double())) / 2
    return {
        "dropout": p * (1 - p) * torch.diag(M**2),
        "ensemble": 0 * A,
        "snapshots": descend(A, V, falling, cloud),
        "SWAG": (cloud + torch.diag(cloud.diagonal())) / 2,
        "Laplace": torch.linalg.inv(A),  # the posterior's
    }


numbers = [100, 300, 1_000, 3_000, 10_000]
found = [covariances(regression_of_size(N)) for N in numbers]
ones = torch.ones(2).double()  # the input at which we predict
spread = {k: [float(ones @ each[k] @ ones) ** 0.5 for each in found] for k in found[0]}
shrunk = {name: s[-1] / s[0] for name, s in spread.items() if s[0]}
check("posterior", shrunk["Laplace"], near(0.1, 0.02), kind="exact", digits=1)
check("dropout", shrunk["dropout"], near(0.8, 0.05), kind="exact", digits=2)
check("swag", shrunk["SWAG"], near(1, 0.1), kind="exact", digits=2)
check("snapshots", shrunk["snapshots"], near(0.2, 0.04), kind="exact", digits=2)

# %% mystnb={"figure": {"caption": "Standard deviation of the prediction at $x = (1, 1)$ against the number of examples, from the covariances of the cell. Grey: the posterior's, which is Laplace's. Dropout with $p = 0.2$; SWAG at the learning rate 0.1 of the mean loss; snapshots from the same rate, with cycles of 20 epochs. Dotted: slopes of $-\\frac{1}{3}$ and $-\\frac{1}{2}$. The ensemble's is zero for every $N$.", "name": "fig-neighbours-shrink"}, "image": {"alt": "A double logarithmic plot. Dropout's line near 0.3 and SWAG's near 0.1 are level. The grey line falls from 0.12 to 0.01, snapshots' from 0.045 to 0.008, less steeply, along a dotted line."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.4))
axes.loglog(
    numbers, spread["Laplace"], color=TRUTH, lw=4, alpha=0.6, label="posterior, Laplace"
)
styles = {"dropout": ("SGHMC", "o-"), "SWAG": ("SGD", "s-"), "snapshots": ("HMC", "^-")}
for name, (colour, style) in styles.items():
    axes.loglog(numbers, spread[name], style, ms=4, color=COLOURS[colour], label=name)
for name, power in (("snapshots", 1 / 3), ("Laplace", 1 / 2)):
    line = [spread[name][-1] * (numbers[-1] / N) ** power for N in numbers]
    axes.loglog(numbers, line, ":", color="black", lw=0.8)
axes.set(
    xlabel="number of examples $N$", ylabel=r"standard deviation of $x^\top\theta$"
)
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %% [markdown]
# *Before you read on: why is dropout's line level? What would a rate of dropout have to do to make it fall?*
#
# ## Dropout: a rate that one chose
#
# Dropout trains with a random part of the inputs of a layer set to zero, each with the probability $p$ {cite:p}`srivastava2014`.
# {cite:t}`gal2016` keep on dropping when they predict, and read the spread between such predictions as uncertainty.
# With a mask $z$ of zeros and ones the weights are $\theta = z\circ M$, and $M$ minimises $E_zU(z\circ M)$.
# (That is variational inference if the entropy of $\theta$ does not depend on $M$; {cite:t}`hron2018` say what is wrong with it without a blur.)
#
# In a regression with noise $\sigma^2$ and prior $N(0, \tau^2I)$ every weight has an entry of its own in the mask. The prediction $\sum_jx_{ij}z_jM_j$ is then a sum of independent terms, with the mean $(1 - p)\,x_i^\top M$ and the variance $p(1 - p)\sum_jx_{ij}^2M_j^2$. An expected square is a squared mean and a variance, so
#
# $$
# \begin{aligned}
# E_zU(z\circ M) = \frac1{2\sigma^2}\sum_i\Bigl[&\bigl(y_i - (1 - p)\,x_i^\top M\bigr)^2\\
# &+ p(1 - p)\sum_jx_{ij}^2M_j^2\Bigr] + \frac{1 - p}{2\tau^2}\lvert M\rvert^2.
# \end{aligned}
# $$
#
# With $G = X^\top X$ its gradient is $\frac{1 - p}{\sigma^2}$ times $(1 - p)GM - X^\top y + p\operatorname{diag}(G)M + \frac{\sigma^2}{\tau^2}M$. It vanishes at
#
# $$
# M = \Bigl((1 - p)\,G + p\operatorname{diag}G + \frac{\sigma^2}{\tau^2}I\Bigr)^{-1}X^\top y,
# $$ (eq-neighbours-dropout)
#
# a ridge regression whose penalty grows with the data, as $G$ does.
#
# ```{prf:theorem} Dropout's spread does not shrink
# :label: thm-neighbours-dropout
#
# Let $G/N \to S \succ 0$ and $X^\top y/N \to S\theta^*$.
# Then $M \to M_\infty = \bigl((1 - p)S + p\operatorname{diag}S\bigr)^{-1}S\theta^*$, and the variance of a prediction tends to $p(1 - p)\sum_jx_j^2M_{\infty,j}^2$, while the posterior's is $O(1/N)$.
# The mean $(1 - p)M$ does not tend to $\theta^*$ unless $\theta^* = 0$.
# ```
#
# ```{admonition} Proof
# :class: dropdown
#
# Divide {eq}`eq-neighbours-dropout` by $N$ inside and outside of the inverse.
# If $(1 - p)M_\infty = \theta^*$, then $\bigl((1 - p)S + p\operatorname{diag}S\bigr)\theta^* = (1 - p)S\theta^*$, so $\operatorname{diag}(S)\,\theta^* = 0$, and the entries of $\operatorname{diag}S$ are positive.
# ```
#
# This answers the question: neither examples nor training make the spread smaller, only a rate that falls like $1/N$ ({ref}`ex-neighbours-rate`).
# With 10,000 examples the mean prediction, too, is {c}`dropout-off` posterior standard deviations from the posterior's.
# {cite:t}`osband2016` calls what dropout measures risk and not uncertainty.
#
# ## SWAG and snapshots: the learning rate
#
# SWAG {cite:p}`maddox2019` lets descent at a *constant* rate rattle around a minimum, and draws from a Gaussian with the mean of its iterates and half their variances, half their covariance.
# The cloud is that of constant SGD, {prf:ref}`thm-csgd-law`, and nothing in it knows $A^{-1}$.
# How wide is it, if the rate $r$ is that of the *mean* loss, as in most programs, so that $\eta = r/N$ for $U$?
#
# ```{prf:theorem} SWAG's spread does not shrink
# :label: thm-neighbours-swag
#
# Let $U$ be quadratic with the Hessian $A$, $A/N \to S \succ 0$, gradient noise of the covariance $V = (N/n - 1)A$, and $\eta = r/N$ with $r$ below $2$ over the largest eigenvalue of $S$.
# As $N \to \infty$ the covariance of the iterates tends to $\Sigma = \frac rn(2I - rS)^{-1}$, about $\frac r{2n}I$, and with as many iterates as one likes SWAG's to $\tfrac12\operatorname{diag}\Sigma + \tfrac12\Sigma$.
# ```
#
# ```{admonition} Proof
# :class: dropdown
#
# With the rate $P = \eta I$ the equation {eq}`eq-csgd-exact` is $A\Sigma + \Sigma A - \eta A\Sigma A = \eta V$. Try a $\Sigma$ that commutes with $A$: $A\Sigma(2I - \eta A) = \eta(N/n - 1)A$, so $\Sigma = \eta(N/n - 1)(2I - \eta A)^{-1}$. The solution is unique ({prf:ref}`thm-lyapunov`).
# Insert $\eta = r/N$ and let $N$ grow.
# ```
#
# So the width is chosen with the rate and the minibatch, and it is a ball. A rate that falls like $1/N$ would make the ball shrink as the posterior does, but no rate gives it the posterior's shape: in our regression the long axis of the ellipse needs {c}`swag-rates` times the rate of the short one.
#
# Snapshots {cite:p}`huang2017` let the rate fall to zero like half a cosine, keep the network, and raise the rate again.
# Each small rate damps what the larger ones left:
#
# $$
# \Sigma_{t+1} = (I - \eta_tA)\,\Sigma_t\,(I - \eta_tA) + \eta_t^2V,
# $$ (eq-neighbours-snapshots)
#
# which is the function `descend`. A snapshot is as wide as the cloud of the last rate that had time to act.
# With $s$ of the $K$ steps of a cycle left the rate is about $r(\pi s/2K)^2$, and those $s$ steps damp by $e^{-O(s^3/K^2)}$. So the last $s \approx K^{2/3}$ steps decide, at a rate of order $(s/K)^2 = K^{-2/3}$, and so does the variance. With the same number of epochs in every cycle $K$ grows like $N$, and the width falls like $N^{-1/3}$: more slowly than the posterior's $N^{-1/2}$. With longer cycles it falls although the data are the same.
#
# ## Ensembles: the number of modes
#
# A deep ensemble trains the same network from several random starts, and averages the probabilities {cite:p}`lakshminarayanan2017`.
# Where $U$ is a positive quadratic there is one minimum, so all members are equal. The spread of an ensemble is that *between* modes; {cite:t}`fort2019` find that it is so in large networks, too.
# But optimisation alone can give a Gaussian posterior its width, if each member is pulled towards a point of its own:
#
# ```{prf:theorem} Randomised modes
# :label: thm-neighbours-anchors
#
# Let the posterior be $N(\hat\theta, A^{-1})$, from a prior $N(0, \Lambda^{-1})$, and let $\theta_c$ minimise $U$ with the prior's centre moved to an anchor $a_c \sim N(0, S)$.
# Then $\theta_c \sim N(\hat\theta, A^{-1}\Lambda S\Lambda A^{-1})$.
# With anchors from the prior, $S = \Lambda^{-1}$, this is $A^{-1}\Lambda A^{-1} \preceq A^{-1}$, too little; it is $A^{-1}$ if and only if $S = \Lambda^{-1}A\Lambda^{-1}$.
# ```
#
# ```{admonition} Proof
# :class: dropdown
#
# Moving the prior adds $-a_c^\top\Lambda\theta$ to $U$, so $\nabla U = A(\theta - \hat\theta) - \Lambda a_c$ is zero at $\theta_c = \hat\theta + A^{-1}\Lambda a_c$.
# $A^{-1} - A^{-1}\Lambda A^{-1} = A^{-1}(A - \Lambda)A^{-1}$, and $A - \Lambda$ is the precision of the likelihood, $\succeq 0$. For the last part multiply by $\Lambda^{-1}A$ from the left and by its transpose from the right.
# ```
#
# These are the *anchored ensembles* of {cite:t}`pearce2020`. With anchors from the prior the spread is right where the data say nothing, and vanishes where they say much. The right $S$ asks for $A$, the answer itself, but there is a way around it ({ref}`ex-neighbours-perturbed`).
#
# ## Laplace: the curvature
#
# At a mode the slope is zero, and $U$ is $\tfrac12(\theta - \hat\theta)^\top H(\theta - \hat\theta)$ up to a constant and a remainder of third order. Without the remainder $e^{-U}$ is the density of $N(\hat\theta, H^{-1})$, up to a constant {cite:p}`mackay1992`.
# On a regression there is no remainder, so Laplace's draws are the posterior's.
# On a network $H$ has $d^2$ entries and may not be positive, which is why one takes the *last layer* alone {cite:p}`daxberger2021`. Its covariance is then conditional on the other weights, $(A_{kk})^{-1} \preceq (A^{-1})_{kk}$: too narrow. {cite:t}`kristiadi2020` show that even so it corrects the certainty of rectified networks far from the data.
#
# ## All of them on one regression
#
# The table has the standard deviations over the posterior's for $N = 400$, along the ellipse and across.

# %% tags=["hide-input"]
posterior = regression_of_size(400)
A, mean, inverse = posterior.precision, posterior.mean, posterior.covariance
whole = LinearRegression(*posterior.data)  # all the data in each step
curvatures, axes_of_posterior = torch.linalg.eigh(A)  # the long axis comes first
exact = covariances(posterior)
exact["anchors from the prior"] = inverse @ inverse
exact["anchors of covariance A"] = inverse
second = torch.tensor([0.0, 1.0]).double()
exact["Laplace, second weight alone"] = torch.diag(second / A.diagonal())


def widths(covariance):
    """Standard deviations over the posterior's, along its ellipse and across."""
    along = axes_of_posterior.T @ covariance @ axes_of_posterior
    return (along.diagonal() * curvatures).sqrt()


MADE_OF = {
    "dropout": "its rate, and the weights",
    "ensemble": "the number of modes",
    "anchors from the prior": "the prior, and the data",
    "anchors of covariance A": "the posterior",
    "snapshots": "rate, minibatch, length of a cycle",
    "SWAG": "rate, minibatch",
    "Laplace": "the curvature",
    "Laplace, second weight alone": "a part of the curvature",
}
rows = [
    [name, made, *(f"{float(w):.2f}" for w in widths(exact[name]))]
    for name, made in MADE_OF.items()
]
show_table(["method", "its spread is made of", "along", "across"], rows)

generator = torch.Generator().manual_seed(0)
normal = torch.randn(300, 2, generator=generator).double()
wider = normal @ torch.linalg.cholesky(A).T  # of covariance A, for Λ is 1
starts = torch.randn(300, 2, generator=generator).double()
many, copies = torch.zeros(64, 2).double(), mean.repeat(400, 1)
training = dict(num_steps=1_000, learning_rate=0.1)
cycle = dict(cycle_length=800, learning_rate=0.1 / 400, momentum_decay=1.0)
path = dict(num_samples=40, thinning=100, warm_up=500, seed=4)
iterates = sample(SGLD(0.1 / 400, temperature=0.0), posterior, copies, **path)
alone = dict(coordinates=torch.tensor([1]))
runs = {
    "dropout": dropout(whole, many, 50, rate=0.2, num_steps=2_000),
    "anchors from the prior": ensemble(whole, starts, anchors=normal, **training),
    "anchors of covariance A": ensemble(whole, starts, anchors=wider, **training),
    "snapshots": snapshots(posterior, copies, 2, **cycle),
    "SWAG": swag(iterates, 20, rank=40),
    "Laplace": laplace(posterior, copies[:100], 50),
    "Laplace, second weight alone": laplace(posterior, copies[:100], 50, **alone),
}


def away(name, run):
    """How far a run's variances are from the exact ones, in standard errors."""
    centre = 0.8 * run.statistics["weights"][0, 0] if name == "dropout" else mean

    def squares(theta):
        return ((theta - centre) @ axes_of_posterior).square() * curvatures

    square, error = run.mean_and_standard_error(squares)
    return float(((square - widths(exact[name]) ** 2).abs() / error).max())


far = max(away(name, run) for name, run in runs.items())
check("programs", far, at_most_errors(), because="14 normal numbers")
last = regression_of_size(10_000)
x, y = last.data
G = x.T @ x
M = torch.linalg.solve(last.precision - 0.2 * (G - torch.diag(G.diagonal())), x.T @ y)
off = float((ones @ (0.8 * M - last.mean)).abs()) / spread["Laplace"][-1]
check("dropout-off", off, at_least(5), kind="exact", digits=2)
cloud = widths(exact["SWAG"]) ** 2
check("swag-rates", cloud[1] / cloud[0], near(9, 1.5), kind="exact", digits=2)

# %% [markdown]
# The programs, on 64 to 400 chains, and for snapshots and SWAG with real minibatches, do what the formulas say: of their 14 variances the furthest from the table's is {c}`programs` standard errors away.
# To test a method of your own, *run it on all the data and on a quarter of them*: a spread that does not halve is not the posterior's.
#
# ## Two modes
#
# The smallest network with more than one mode has one hidden unit, $f(x) = v\tanh(wx)$: it predicts the same with $-\theta$, so its posterior has two modes of equal weight ({numref}`fig-neighbours-modes`).

# %% mystnb={"figure": {"caption": "The posterior of two weights given twelve examples (contours) and what each method draws. Dropout's draws are four points: both weights, one, the other, none. Members and snapshots sit at modes. SWAG and Laplace put a Gaussian at a mode; Laplace's is drawn at the modes of two members.", "name": "fig-neighbours-modes"}, "image": {"alt": "Six panels with the contours of two banana-shaped modes. Exact draws fill both, dropout gives four points of which three lie outside, ensemble and snapshots are dots at the modes, SWAG is a narrow upright cloud at one mode, Laplace a broad ellipse at two."}} tags=["hide-input"]
generator = torch.Generator().manual_seed(0)
x = torch.linspace(-2, 2, 12)[:, None]
y = (torch.tanh(x) + 0.5 * torch.randn(12, 1, generator=generator))[:, 0]
weights = [nn.Linear(1, 1, bias=False) for _ in range(2)]
unit = nn.Sequential(weights[0], nn.Tanh(), weights[1])
one_unit = NetworkPosterior(unit, x, y, likelihood=Gaussian(0.25))
batches = NetworkPosterior(unit, x, y, likelihood=Gaussian(0.25), batch_size=4)
start = one_unit.initial_position(12, generator)
members = ensemble(one_unit, start, num_steps=500, learning_rate=0.1)
modes = members.samples[0]
descent = SGLD(0.02, temperature=0.0)
iterates = sample(descent, batches, modes[:1], 300, thinning=2, warm_up=50)
cycles = dict(cycle_length=50, learning_rate=0.05, momentum_decay=1.0)
drawn = {
    "dropout": dropout(one_unit, start[:1], 300, rate=0.2, num_steps=600),
    "ensemble": members,
    "snapshots": snapshots(batches, start[:1], 12, **cycles),
    "SWAG": swag(iterates, 300),
    "Laplace": laplace(one_unit, modes[:2], 150),
}
plane = torch.cartesian_prod(*[torch.linspace(-5, 5, 401)] * 2)
mass = (-one_unit.energy(plane).double()).softmax(0)
places = {"exact": plane[mass.multinomial(300, True, generator=generator)]}
places |= {name: run.samples.flatten(0, 1) for name, run in drawn.items()}
figure, panels = plt.subplots(2, 3, figsize=(7, 5), sharex=True, sharey=True)
for axes, (name, points) in zip(panels.flat, places.items(), strict=True):
    plot_contours(axes, one_unit, -3, 3)
    few = name in ("dropout", "ensemble", "snapshots")
    colour = TRUTH if name == "exact" else COLOURS["HMC"]
    mark, size = ("o", 5) if few else (".", 2)
    axes.plot(*points.T, mark, ms=size, alpha=0.7, color=colour)
    axes.set(title=name, xlim=(-3, 3), ylim=(-3, 3))
for axes in panels[1]:
    axes.set_xlabel("$w$")
for axes in panels[:, 0]:
    axes.set_ylabel("$v$")
plt.show()

# %% tags=["hide-input"]
points = drawn["dropout"].samples[:, 0].unique(dim=0)
lost = points[(points == 0).any(1)]
least = (one_unit.energy(lost) - one_unit.energy(plane).min()).min()
check("lost", least, at_least(4.5), because="the last contour lies at 4.5")
to_mode = torch.stack([(modes - s * modes[:1]).norm(dim=-1) for s in (1, -1)])
check("members", to_mode.amin(0).max(), at_most(0.1))
side = plane[:, 1] > 0
half = mass[side] / mass[side].sum()
middle = half @ plane[side].double()
std = (half @ (plane[side].double() - middle).square()).sqrt()
mode = modes[:1] * modes[0, 1].sign()
curved = laplace(one_unit, mode, 20_000).samples[:, 0].double().std(0) / std
check("laplace-w", curved[0], near(0.98, 0.035))
check("laplace-v", curved[1], near(0.78, 0.035))
check("swag-w", drawn["SWAG"].samples[:, 0, 0].std() / std[0], at_most(0.25))

# %% [markdown]
# Three of dropout's four points have a zero, so they predict nothing: their energy is at least {c}`lost` above the least.
# Every member of the ensemble is within {c}`members` of one of two modes: it sees both, without a width. So do the snapshots here, whose high rate crosses, but no rule makes their shares of the modes those of the posterior.
# Laplace has {c}`laplace-w` of the exact width in $w$, {c}`laplace-v` of it in $v$, and nothing of the bend. SWAG has {c}`swag-w` of the width in $w$, because its shape is that of the gradient's noise.
#
# **To remember:** ask of every spread where it comes from: the data, a rate that one chose, the learning rate, or the number of modes. Only the first is the posterior's.
#
# ## Change it
#
# * In the cell of the functions set `"dropout": p * (1 - p) * torch.diag(M**2)` to `"dropout": 100 / N * p * (1 - p) * torch.diag(M**2)`, as if the rate fell like $1/N$: dropout's line falls like the posterior's, and its check shows ✗.
# * In the same cell set `epochs=20` to `epochs=5`: the snapshots are wider for every $N$, and their line keeps its slope.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-neighbours-rate
#
# ★ *Choose a parameter.* Which rate $p$ would give dropout the posterior's width in a regression with one input, large $N$ and $\theta^* \ne 0$?
# ```
#
# ```{solution} ex-neighbours-rate
# :class: dropdown
#
# With one input $\operatorname{diag}G = G$, so $M = X^\top y/(G + \sigma^2/\tau^2) = \hat\theta$ for every $p$. Let $s$ be the variance of the input: $p(1 - p)\,\hat\theta^2$ is to be about $\sigma^2/(Ns)$, so $p \approx \sigma^2/(Ns\,\theta^{*2})$.
# It depends on the signal, so one rate cannot do it for all weights. For a weight within two of its standard deviations from zero no rate does, because $p(1 - p) \le \tfrac14$.
# ```
#
# ````{exercise}
# :label: ex-neighbours-write
#
# ★★ **Write it yourself.** With two weights dropout has four masks. Write the expected energy as a sum over them, and show that its slope is zero at the $M$ of {eq}`eq-neighbours-dropout`.
#
# ```python
# def expected_energy(M, p, energy):
#     """E_z U(z ∘ M), with energy of positions (4, 2)."""
#     ...
# ```
# ````
#
# ````{solution} ex-neighbours-write
# :class: dropdown
#
# ```python
# def expected_energy(M, p, energy):
#     masks = torch.cartesian_prod(*[torch.tensor([0.0, 1.0]).double()] * 2)
#     kept = masks.sum(1)
#     return ((1 - p) ** kept * p ** (2 - kept) * energy(masks * M)).sum()
# ```
#
# The slope is `torch.func.grad(expected_energy)(M, 0.2, posterior.energy)`.
# ````


# %% tags=["hide-input"]
def expected_energy(M, p, energy):
    masks = torch.cartesian_prod(*[torch.tensor([0.0, 1.0]).double()] * 2)
    kept = masks.sum(1)
    return ((1 - p) ** kept * p ** (2 - kept) * energy(masks * M)).sum()


slope = torch.func.grad(expected_energy)
ratio = slope(M, 0.2, last.energy).norm() / slope(0 * M, 0.2, last.energy).norm()
check(
    "slope",
    ratio,
    at_most(1e-10),
    kind="exact",
    says="The slope of the solution at M, over that at zero",
)

# %% [markdown]
# ```{exercise}
# :label: ex-neighbours-perturbed
#
# ★★★ *Derive.* In the setting of {prf:ref}`thm-neighbours-anchors` with Gaussian noise, draw the anchor from the prior, $a_c \sim N(0, \Lambda^{-1})$, and give every member targets of its own, $y_i + N(0, \sigma^2)$.
# Show that the members are then exact draws from the posterior.
# ```
#
# ```{solution} ex-neighbours-perturbed
# :class: dropdown
#
# Let $e_c \sim N(0, \sigma^2I)$ be what is added to the targets. The minimum is $\theta_c = \hat\theta + A^{-1}(\Lambda a_c + X^\top e_c/\sigma^2)$.
# The two terms in the bracket are independent with the covariances $\Lambda$ and $G/\sigma^2$, which add to $A$; so $\theta_c \sim N(\hat\theta, A^{-1}AA^{-1})$.
# Nobody has to know $A$. It needs all the data in each member, with targets that stay the same throughout its training.
# ```

# %% tags=["hide-input"]
fresh = torch.randn(250, 400, generator=generator).double() @ posterior.data[0]
pulls = torch.randn(250, 2, generator=generator).double()
moved = (pulls + fresh) @ inverse @ axes_of_posterior
square = (moved**2 * curvatures).mean(1)
check(
    "perturbed",
    square.mean(),
    near(1),
    error=float(square.std()) / 250**0.5,
    says="Variance of 250 minima with perturbed targets, over the posterior's",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`lefolgoc2021` and {cite:t}`osband2016` ask what dropout's spread is of.
# How the same methods do on networks is in {doc}`/book/studies/neighbours_on_networks`.
