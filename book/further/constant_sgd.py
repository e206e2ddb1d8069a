# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Constant SGD: an optimiser that samples
#
# ```{div} page-head
# Level: second course · Reading: about 61 minutes, without the exercises · Running: about 16 seconds
# ```
#
# Gradient descent with minibatches, at a constant rate and with gradients that disagree at the mode, never comes to rest; this chapter sets its rate so that the cloud of its iterates is as close to the posterior as it can be, and says when that is close.
#
# **You will learn** to
#
# * compute the {term}`law` of the iterates exactly where the energy is quadratic, and its limit for small rates,
# * choose the best single rate, the best rate for each coordinate, and the matrix that makes the law exact,
# * get draws from averages of iterates instead,
# * see constant SGD as SGLD at temperature zero, and say what the injected noise adds,
# * name the cases in which SGD's noise is no substitute for the posterior's width.
#
# **You will need** {doc}`/book/tutorial/langevin`, and the shape of the gradient noise from {doc}`/book/tutorial/minibatch_noise`.

# %%
import matplotlib.pyplot as plt
import torch

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.rivals.constant_sgd import average_covariance, constant_sgd
from sgmc import sample
from sgmc.kernels import NUTS, SGLD
from sgmc.minibatches import Passes
from sgmc.noise import estimate_noise_variance
from sgmc.posteriors import LinearRegression, LogisticRegression
from sgmc.splittings import langevin_chain, sghmc_chain
from sgmc.tuning import adapt

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## The cloud in the bowl
#
# Stochastic gradient descent at a constant rate $\eta$ is
#
# $$
# \theta \leftarrow \theta - \eta\nabla\tilde U(\theta).
# $$ (eq-csgd)
#
# It falls towards a minimum of the energy, and then it does not stop: at the minimum the gradient is zero, but the gradient of a minibatch is not.
# The iterates wander about the minimum in a cloud, and the larger the rate, the larger the cloud.
# The posterior is a cloud around the same point.
# Is there a rate at which the two agree?
# This is the question of {cite:t}`mandt2017`.
#
# Take a linear regression with two inputs that are correlated and differ in scale, $N = 1{,}000$ examples and minibatches of $n = 10$, drawn afresh in every step.
# Its posterior is Gaussian, and we know it.
# Two matrices decide all that follows.
# $A$ is the Hessian of the {term}`energy`; for this posterior it is the inverse of the covariance.
# $V$ is the covariance of the {term}`gradient noise`, of the difference between a minibatch's gradient and the full one.

# %%
DOUBLE = torch.float64
generator = torch.Generator().manual_seed(0)
N, n = 1_000, 10
mixing = torch.tensor([[1.0, 0.3], [0.0, 0.4]], dtype=DOUBLE)
inputs = torch.randn(N, 2, generator=generator, dtype=DOUBLE) @ mixing
noise = torch.randn(N, generator=generator, dtype=DOUBLE)
targets = inputs @ torch.tensor([1.0, -2.0], dtype=DOUBLE) + noise
posterior = LinearRegression(inputs, targets, batch_size=n)
A, exact = posterior.precision, posterior.covariance


# %% tags=["hide-input"]
def noise_variance(posterior, covariance):
    """V(θ) of the minibatches, averaged over θ ~ N(mean, covariance)."""
    x, y = posterior.data
    N, n = posterior.num_examples, posterior.batch_size
    at_mean = torch.cov((x * (x @ posterior.mean - y)[:, None]).T)
    slopes = x[:, :, None] * x[:, None, :]
    slopes = slopes - slopes.mean(0)
    growth = (slopes @ covariance @ slopes).sum(0) / (N - 1)
    return N**2 / n * (1 - n / N) * (at_mean + growth)


# %% [markdown]
# The function in the folded cell is {eq}`eq-regression-noise`: with real minibatches the noise depends a little on where one is, and what enters the law of the iterates is its average.
# The rate called `best` is the one that the theory below will recommend.
# The whole algorithm is one line in a loop; here 600 runs go side by side, each with minibatches of its own.

# %%
V = noise_variance(posterior, exact)
best = 2 * len(V) / float(V.trace())

theta = posterior.mean.repeat(600, 1)
source = torch.Generator().manual_seed(0)
for step in range(801):
    theta = theta - best * posterior.stochastic_gradient(theta, source, step)

# %% [markdown]
# The package has no kernel for it, because it has one already: SGLD at {term}`temperature` zero injects no noise.

# %%
descent = SGLD(best, temperature=0.0)
start = posterior.mean.repeat(600, 1)
run = sample(descent, posterior, start, num_samples=1, warm_up=800)

# %% tags=["hide-input"]
claim(
    "Largest difference between the loop and the package's SGLD at temperature zero",
    (run.samples[0] - theta).abs().max(),
    at_most=1e-9,
    because="the same minibatches and the same steps, up to rounding",
    kind="exact",
)

# %% [markdown]
# {numref}`fig-csgd-bowl` shows this rate between two others.

# %% mystnb={"figure": {"caption": "SGD on a linear regression: where 600 runs from the mode are after many steps (dots), and the posterior (grey: two standard deviations). Left: a quarter of the best rate. Middle: the best rate, $\\eta^*$. Right: four times that. The cloud grows with the rate, but it is round, and the posterior is not.", "name": "fig-csgd-bowl"}, "image": {"alt": "Three panels with the same grey ellipse, the posterior, and a round cloud of blue dots: inside the ellipse, as wide as its mean width, and far outside of it."}} tags=["hide-input"]
angle = torch.linspace(0, 2 * torch.pi, 200, dtype=DOUBLE)
circle = torch.stack([angle.cos(), angle.sin()])


def ellipse(covariance):
    """Two standard deviations of N(mean, covariance)."""
    return posterior.mean[:, None] + 2 * torch.linalg.cholesky(covariance) @ circle


figure, panels = plt.subplots(1, 3, figsize=(5.4, 2.7), sharex=True, sharey=True)
titles = (r"$\frac{1}{4}\eta^*$", r"$\eta^*$", r"$4\eta^*$")
for axes, multiple, title in zip(panels, (0.25, 1, 4), titles, strict=True):
    kernel = SGLD(multiple * best, temperature=0.0)
    long = round(800 / min(multiple, 1))
    run = sample(kernel, posterior, start, num_samples=1, warm_up=long)
    axes.fill(*ellipse(exact), color=TRUTH, alpha=0.35, lw=0)
    axes.plot(*run.samples[0].T, ".", ms=2, color=COLOURS["SGD"])
    axes.set(title=title, xlabel=r"$\theta_1$", aspect="equal")
panels[0].set(ylabel=r"$\theta_2$")
plt.show()

# %% [markdown]
# The clouds are round, whatever their size, and the posterior is not: with one rate the best that one can do is to choose the size of a disc.
#
# ## The law of the iterates
#
# Let the rate be a symmetric positive matrix $P$, so that one rate for all coordinates is $P = \eta I$:
#
# ```{prf:algorithm} Constant SGD
# :label: alg-csgd
#
# From a mode $\hat\theta$ of the posterior, or after a warm-up, repeat $\theta \leftarrow \theta - P\nabla\tilde U(\theta)$, and take the iterates for draws.
# ```
#
# ```{prf:theorem} Stationary covariance of constant SGD
# :label: thm-csgd-law
#
# Let $U(\theta) = \tfrac12(\theta - \hat\theta)^\top A(\theta - \hat\theta)$ with $A \succ 0$, and $\nabla\tilde U = \nabla U + \xi$ with $E[\xi \mid \theta] = 0$ and independent minibatches in every step.
# If the chain has a stationary distribution with finite second moments, and $V$ is the covariance of $\xi$ averaged over it, then the iterates have the mean $\hat\theta$ and a covariance $\Sigma$ with
#
# $$
# \begin{aligned}
# PA\Sigma + \Sigma AP &- PA\Sigma AP \\
# &= PVP.
# \end{aligned}
# $$ (eq-csgd-exact)
#
# If the law of $\xi$ is the same everywhere, with a covariance $V$, such a law exists where all eigenvalues of $PA$ are less than 2, and for $V \succ 0$ only there; and if $\xi$ is normal, so is the law.
# ```
#
# ```{prf:proof}
# With $\delta = \theta - \hat\theta$ a step is $\delta' = (I - PA)\delta - P\xi$.
# Given $\delta$ the noise has mean zero, so the two terms are uncorrelated, and stationarity means $\Sigma = (I - PA)\Sigma(I - AP) + PVP$; multiply out.
# The means obey $E[\delta'] = (I - PA)E[\delta]$.
# The eigenvalues of $PA$ are those of $P^{1/2}AP^{1/2}$ and so positive; powers of $I - PA$ shrink to zero in a direction if and only if its eigenvalue is less than 2.
# Then $\delta$ is a convergent sum of past noises, which is normal if they are.
# ```
#
# The term with two $P$ on the left is smaller than the others by a factor of the size of $PA$, the share of the way to the mode that one step takes.
# Where steps are short we leave it out:
#
# $$
# PA\Sigma + \Sigma AP = PVP.
# $$ (eq-csgd-ou)
#
# This is the law of the diffusion $d\theta = -PA(\theta - \hat\theta)\,dt + N(0, PVP\,dt)$, an *Ornstein–Uhlenbeck process*; SGD is what one gets by following it in steps of length 1.
# {cite:t}`mandt2017` start from it, and name the assumptions:
#
# * the noise of a minibatch is normal, because it is a sum over many examples,
# * its covariance is the same wherever the chain goes,
# * the rate is small enough for a diffusion,
# * the chain stays where the energy is a quadratic.
#
# Of these {eq}`eq-csgd-exact` needs only the last, and minibatches that are independent.
#
# What is $\Sigma$ for one rate, $P = \eta I$?
# Where the model fits, the noise has the shape of the curvature: $V \approx cA$ with $c \approx N/n$, by {eq}`eq-noise-curvature`.
# Then {eq}`eq-csgd-ou` is solved by $\Sigma = \tfrac12\eta c\,I$: a ball, whatever the posterior looks like.
# In a steep direction the gradient pulls back harder, and its noise is larger by just as much.
#
# ## The best single rate
#
# A ball cannot be an ellipse, but it can have the right size.
# We measure the distance of the two laws by the Kullback–Leibler divergence, $KL(q\,\|\,p) = E_q\log(q/p)$, which is zero only if they are equal.
# For two normal laws with one mean it is
#
# $$
# \begin{aligned}
# KL\bigl(&N(\hat\theta, \Sigma)\,\|\,N(\hat\theta, A^{-1})\bigr) \\
# &= \tfrac12\bigl(\operatorname{tr}A\Sigma - \log\det A\Sigma - d\bigr).
# \end{aligned}
# $$ (eq-csgd-divergence)
#
# ```{prf:theorem} The best rate
# :label: thm-csgd-rate
#
# Let $P = \eta I$, and let the solution of {eq}`eq-csgd-ou` be positive definite.
# Then among all $\eta > 0$ the divergence is least at
#
# $$
# \eta^* = \frac{2d}{\operatorname{tr}V}.
# $$ (eq-csgd-rate)
# ```
#
# ```{prf:proof}
# The equation is now $A\Sigma + \Sigma A = \eta V$, whose solution is $\eta\Sigma_1$ with a $\Sigma_1$ that does not depend on $\eta$.
# So $\log\det A\Sigma = d\log\eta + \text{const}$.
# Take the trace of the equation: $2\operatorname{tr}A\Sigma = \eta\operatorname{tr}V$.
# Twice the divergence is $\tfrac12\eta\operatorname{tr}V - d\log\eta + \text{const}$, a convex function of $\eta$ whose derivative vanishes at $\eta^*$.
# ```
#
# No curvature is needed, only the size of the noise.
# {cite:t}`mandt2017` write it for the mean loss $U/N$, with the rate $\epsilon = N\eta$, batches of $S = n$ and the noise covariance $BB^\top/S = V/N^2$; in these symbols it is $\epsilon^* = \frac{2S}N\cdot\frac d{\operatorname{tr}BB^\top}$.
#
# ## A rate for each direction
#
# ```{prf:theorem} Preconditioned constant SGD
# :label: thm-csgd-matrix
#
# 1. For $V \succ 0$ the law {eq}`eq-csgd-ou` of small rates is the posterior's, $\Sigma = A^{-1}$, if and only if $P = 2V^{-1}$.
# 2. If $V = cA$, then $\Sigma = \tfrac12cP$ for every $P$, and among diagonal $P$ the divergence is least at $P_{kk} = 2/V_{kk}$.
# 3. For $V \succ 0$ the exact law {eq}`eq-csgd-exact` has $\Sigma = A^{-1}$ if and only if $P = 2(V + A)^{-1}$; and at this rate the chain is stable for every constant $V$.
# ```
#
# ```{prf:proof}
# Put $\Sigma = A^{-1}$ into {eq}`eq-csgd-ou`: $2P = PVP$, and multiply by $P^{-1}$ from both sides.
# For the second part $\tfrac12cP$ solves the equation, and no other matrix does, for the eigenvalues of $PA$ are positive.
# Up to a constant, twice the divergence is $\tfrac12c\operatorname{tr}AP - \log\det P$, for a diagonal $P$ this is $\sum_k\bigl(\tfrac12V_{kk}P_{kk} - \log P_{kk}\bigr)$, and it is least where every term is.
# For the third put $\Sigma = A^{-1}$ into {eq}`eq-csgd-exact`: $2P - PAP = PVP$, that is $2P^{-1} = V + A$.
# Then $PA = 2(V + A)^{-1}A$ has the eigenvalues $2a/(1 + a)$, where $a > 0$ are those of $V^{-1}A$: they are less than 2.
# ```
#
# The first two rates are those of {cite:t}`mandt2017`.
# The second part has a condition that is easy to forget, $V = cA$.
# If the noise is large where the curvature is small, the rate $2/V_{kk}$ is a recipe and not an optimum, and it can be worse than a single number.
# The third part needs one more matrix, $A$, and removes the error of a finite step.
#
# In code a rate is the inverse of a mass: SGLD with mass $M$ at temperature zero is $\theta \leftarrow \theta - \eta M^{-1}\nabla\tilde U(\theta)$, and `constant_sgd` returns it with $\eta = 1$ and $M = P^{-1}$: half of the noise's covariance, of its diagonal, or of the mean of its diagonal.

# %%
kernels = {
    "scalar": constant_sgd(V, "scalar"),
    "diagonal": constant_sgd(V, "diagonal"),
    "full": constant_sgd(V, "full"),
    "full, V + A": constant_sgd(V + A, "full"),
}

# %% [markdown]
# ## What SGLD adds
#
# SGLD with a mass injects noise of covariance $2\eta(M^{-1} - M^{-1}\hat BM^{-1})$, so that with $\hat B = \tfrac12\eta V$ its total noise is $2\eta M^{-1}$ in a step:
#
# $$
# \begin{aligned}
# &\underbrace{\eta^2M^{-1}VM^{-1}}_{\text{the minibatch's}} \\
# &+ \underbrace{2\eta\,(M^{-1} - M^{-1}\hat BM^{-1})}_{\text{injected}} = 2\eta M^{-1}.
# \end{aligned}
# $$ (eq-csgd-sgld)
#
# With $M = \tfrac12\eta V$ nothing is left to inject: the full variant of constant SGD *is* SGLD with that mass.
# With any larger mass the minibatch's noise falls short, and the injected noise makes up for what is missing in each direction.
# So SGLD does not need a mass that fits the noise: a single number $M \ge \tfrac12\eta\lambda_{\max}(V)$ will do, with $\lambda_{\max}$ the largest eigenvalue (the code takes 0.5001 for ½, to leave room for rounding).
# It still needs $V$, for $\hat B$; and with one rate for all directions it is as slow in the longest of them as any chain with one rate.

# %%
largest = float(torch.linalg.eigvalsh(V)[-1])
kernels["SGLD"] = SGLD(1.0, noise_estimate=V / 2, mass=0.5001 * largest)

# %% [markdown]
# ## Averages of iterates
#
# There is a way to the right shape without any matrix.
# Average the iterates over a window of $K$ steps, and take the averages for draws.
#
# ```{prf:theorem} The law of an average
# :label: thm-csgd-average
#
# Let the conditions of {prf:ref}`thm-csgd-law` hold, and the chain be stable.
# In a window of $K$ steps of the stationary chain the average $\bar\theta$ has with $F = I - PA$ the covariance
#
# $$
# \begin{aligned}
# \operatorname{Cov}\bar\theta &= \frac1K\Sigma + \frac1{K^2}\sum_{k=1}^{K-1}(K - k)\,S_k, \\
# S_k &= F^k\Sigma + \Sigma(F^k)^\top,
# \end{aligned}
# $$ (eq-csgd-average)
#
# and $K\operatorname{Cov}\bar\theta \to A^{-1}VA^{-1}$ as $K \to \infty$, for every $P$.
# ```
#
# ```{prf:proof}
# Iterates that are $k$ steps apart have the covariance $F^k\Sigma$, because later noises have mean zero given what came before; count the pairs.
# For the limit sum $\delta_{t+1} - \delta_t = -P(A\delta_t + \xi_t)$ over the window and solve for the average:
#
# $$
# \begin{aligned}
# \bar\delta = &-A^{-1}\bar\xi \\
# &- (PA)^{-1}\frac{\delta_{K+1} - \delta_1}K.
# \end{aligned}
# $$ (eq-csgd-telescope)
#
# The $\xi_t$ are uncorrelated, so $K\operatorname{Cov}(A^{-1}\bar\xi) = A^{-1}VA^{-1}$, and the second term has a covariance of the order of $1/K^2$: $K$ times it, and $K$ times its covariance with the first, go to zero.
# ```
#
# The rate has dropped out, which is why {cite:t}`polyak1992` average iterates in order to optimise.
# With $V = cA$ a window of $K = c$ steps has $\operatorname{Cov}\bar\theta \approx A^{-1}$, and $c \approx N/n$ steps are one pass over the data.
# One average per pass is the *averaged* sampler of {cite:t}`mandt2017`.
# The window must be long against the chain's memory, $K\eta a_{\min} \gg 1$, while $\eta a_{\max} < 2$ for stability: so $N/n$ has to be large against the condition number of $A$, and the rate should be large, far above $\eta^*$.
# We take $\eta = 1/(2a_{\max})$, and $K = (N - n)/n$, for the factor of drawing without replacement.

# %%
a, directions = torch.linalg.eigh(A)
window = (N - n) // n
averaged = SGLD(0.5 / float(a[-1]), temperature=0.0)


# %% tags=["hide-input"]
def law(kernel, posterior=posterior):
    """The exact chain, with V(θ) averaged over its own law, by iteration."""
    covariance = posterior.covariance
    for _ in range(30):
        V = noise_variance(posterior, covariance)
        chain = langevin_chain(
            posterior.precision,
            kernel.step_size,
            V,
            kernel.noise_estimate,
            kernel.temperature,
            kernel.mass,
        )
        before, covariance = covariance, chain.stationary_covariance()
        if (covariance - before).abs().max() < 1e-13 * covariance.abs().max():
            break
    return chain


def divergence(covariance, precision=A):
    """KL(N(0, covariance) ‖ N(0, A⁻¹))."""
    product = precision @ covariance
    return 0.5 * float(product.trace() - torch.logdet(product) - len(product))


def widths(covariance, posterior=posterior):
    """Standard deviations over the posterior's, in its longest, shortest direction."""
    a, directions = torch.linalg.eigh(posterior.precision)
    return ((directions.T @ covariance @ directions).diagonal() * a).sqrt()


# %% [markdown]
# ## All of them, exactly and measured
#
# How near does each of them come?
# The folded cells solve {eq}`eq-csgd-exact` for each rate, with the noise averaged over the chain's own law, and then let 500 chains with real minibatches check the answer.

# %% tags=["hide-input"]
laws = {name: law(kernel) for name, kernel in kernels.items()}
memory = {
    name: chain.autocorrelation_time(directions[:, 0]) for name, chain in laws.items()
}
covariances = {name: chain.stationary_covariance() for name, chain in laws.items()}
covariances["averages"] = average_covariance(law(averaged), window)
titles = {
    "scalar": "one rate, 2d / tr V",
    "diagonal": "a rate for each coordinate, 2 / diag V",
    "full": "a matrix, 2 V⁻¹",
    "full, V + A": "a matrix, 2 (V + A)⁻¹",
    "averages": "averages over one pass",
    "SGLD": "SGLD, one mass for all",
}
rows = []
for name, title in titles.items():
    longest, shortest = widths(covariances[name]).tolist()
    steps = memory.get(name, window)  # an average takes a window
    cells = [f"{longest:.3f}", f"{shortest:.3f}"]
    rows.append([title, *cells, f"{abs(divergence(covariances[name])):.5f}"])
    rows[-1].append(f"{steps:.0f}")
show_table(["draws from", "longest", "shortest", "divergence", "steps a draw"], rows)

# %% [markdown]
# *Longest* and *shortest* are standard deviations in the posterior's longest and shortest direction, in units of the posterior's own: 1 is right.
# The *divergence* is {eq}`eq-csgd-divergence`, and *steps a draw* is the {term}`autocorrelation time` in the longest direction, or the window of the averages.
# The single rate makes a ball that is too narrow one way and too wide the other, the diagonal is halfway, the averages are up to seven per cent too narrow, and the rest agree with the posterior to one per cent or better.
# With a fixed minibatch size nothing is much cheaper than one pass over the data, 100 steps, for one independent draw, as in {doc}`/book/tutorial/langevin`.

# %% tags=["hide-input"]
claim(
    "Divergence of full P = 2V⁻¹ and of SGLD, the larger one",
    max(divergence(covariances[name]) for name in ("full", "SGLD")),
    at_most=0.0002,
    because="exact laws",
    kind="exact",
)
claim(
    "Largest relative error of the covariance with P = 2(V + A)⁻¹",
    (covariances["full, V + A"] / exact - 1).abs().max(),
    at_most=1e-9,
    because="part 3 of the theorem; rounding",
    kind="exact",
)
claim(
    "Largest distance of a width of averages from 1",
    (widths(covariances["averages"]) - 1).abs().max(),
    near=0.0705,
    within=0.001,
    because="exact law",
    kind="exact",
)
claim(
    "Fewest steps a draw in the table, over those of a pass",
    min(*memory.values(), window) / (N / n),
    at_least=0.95,
    because="exact laws: 97 of 100",
    kind="exact",
)


def squares(x):
    """Squared coordinates in the posterior's directions, over the posterior's
    variances."""
    return ((x - posterior.mean) @ directions).square() * a


start = posterior.mean.repeat(500, 1)
far = {}  # of each measured width from the exact one, in standard errors
for name, kernel in kernels.items():
    tau = round(memory[name])
    run = sample(
        kernel,
        posterior,
        start,
        num_samples=6,
        warm_up=3 * tau,
        thinning=tau // 2,
        seed=1,
    )
    value, error = run.mean_and_standard_error(squares)
    far[name] = (value - widths(covariances[name]).square()) / error
run = sample(averaged, posterior, start, num_samples=6 * window, warm_up=200, seed=2)
chains = squares(run.samples.unflatten(0, (6, window)).mean(1)).mean(0)
error = chains.std(0) / 500**0.5
far["averages"] = (chains.mean(0) - widths(covariances["averages"]).square()) / error
claim(
    "Measured variances less the exact ones, the largest of twelve, in standard errors",
    max(z.abs().max() for z in far.values()),
    at_most=5.5,
    errors=True,
    because="500 chains with real minibatches; twelve normal numbers exceed it "
    "once in two million times",
)

# %% [markdown]
# Is {eq}`eq-csgd-rate` the best rate for the exact law too, and not only in the limit of small ones?
# Nearly, because the steps are short here.
# And the clouds of {numref}`fig-csgd-bowl` are round by the exact law too, with axes that differ by less than a fifth, where those of the posterior differ by a factor above 2.5.
# At the large rate that suits averages the iterates themselves are far too wide: it is the averages that are draws, and not the iterates.
#
# The counterexample to the diagonal rate is small enough to be written down: $A = \begin{pmatrix}1 & 0.6\\0.6 & 2\end{pmatrix}$ and $V = c\begin{pmatrix}4 & -5\\-5 & 8\end{pmatrix}$ with a large $c$.
# One rate for both coordinates has a divergence of 0.506, a rate for each of them 0.760.


# %% tags=["hide-input"]
def lengths(covariance):
    """The longest axis of an ellipse over its shortest."""
    eigenvalues = torch.linalg.eigvalsh(covariance)
    return float((eigenvalues[-1] / eigenvalues[0]).sqrt())


clouds = [SGLD(m * best, temperature=0.0) for m in (0.25, 1, 4)]
claim(
    "Longest axis of a cloud in the first figure over its shortest, the largest of "
    "three",
    max(lengths(law(kernel).stationary_covariance()) for kernel in clouds),
    at_most=1.2,
    because="exact laws: V is nearly a multiple of A",
    kind="exact",
)
claim(
    "Longest axis of the posterior over its shortest",
    lengths(exact),
    at_least=2.5,
    because="exact",
    kind="exact",
)
multiples = torch.logspace(-0.5, 0.5, 201, dtype=DOUBLE).tolist()
curve = [
    divergence(law(SGLD(m * best, temperature=0.0)).stationary_covariance())
    for m in multiples[75:126]
]
claim(
    "Rate with the least exact divergence over the recommended one",
    multiples[75 + curve.index(min(curve))],
    near=0.977,
    within=0.012,
    because="exact laws on a grid in steps of about 1 per cent",
    kind="exact",
)
claim(
    "Width of the iterates that are averaged, in the shortest direction",
    widths(law(averaged).stationary_covariance())[1],
    near=5.66,
    within=0.01,
    because="exact law",
    kind="exact",
)
crossed = (
    torch.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=DOUBLE),
    1e4 * torch.tensor([[4.0, -5.0], [-5.0, 8.0]], dtype=DOUBLE),
)
for kind, value in (("scalar", 0.506), ("diagonal", 0.760)):
    kernel = constant_sgd(crossed[1], kind)
    covariance = langevin_chain(
        crossed[0], 1.0, crossed[1], temperature=0.0, mass=kernel.mass
    ).stationary_covariance()
    claim(
        f"Divergence of the {kind} rate for a noise across the curvature",
        divergence(covariance, crossed[0]),
        near=value,
        within=0.001,
        because="exact law, c = 10,000",
        kind="exact",
    )

# %% [markdown]
# ## A posterior that is not Gaussian
#
# For a logistic regression neither the quadratic nor the noise is exact.
# We find the mode by Newton's method, estimate $V$ there from minibatches, and compare the draws' standard deviations with those of NUTS, which uses the full gradient and needs none of these approximations ({numref}`fig-csgd-logistic`).

# %%
generator.manual_seed(1)
mixing = torch.block_diag(torch.tensor([[1.0, 0.8], [0.0, 0.6]]), torch.eye(2) / 2)
inputs = torch.randn(N, 4, generator=generator, dtype=DOUBLE) @ mixing.double()
inputs[:, 3] = 1.0
logits = inputs @ torch.tensor([1.0, -1.0, 1.5, -1.0], dtype=DOUBLE)
labels = torch.rand(N, generator=generator, dtype=DOUBLE) < torch.sigmoid(logits)
logistic = LogisticRegression(inputs, labels.double())
minibatches = LogisticRegression(inputs, labels.double(), batch_size=20)

mode = torch.zeros(1, 4, dtype=DOUBLE)
for _ in range(10):  # Newton's method
    p = torch.sigmoid(inputs @ mode[0])
    hessian = (inputs.T * (p * (1 - p))) @ inputs + torch.eye(4, dtype=DOUBLE)
    mode = mode - torch.linalg.solve(hessian, logistic.gradient(mode), left=False)
copies = mode.repeat(200, 1)
V_hat = estimate_noise_variance(minibatches, copies, generator, "full", num_batches=20)

variants = {
    "scalar": constant_sgd(V_hat, "scalar"),
    "diagonal": constant_sgd(V_hat, "diagonal"),
    "full": constant_sgd(V_hat, "full"),
    "full, V + A": constant_sgd(V_hat + hessian, "full"),
}
start = mode.repeat(500, 1)
settings = dict(num_samples=24, warm_up=300, thinning=25, seed=3)
draws = {k: sample(v, minibatches, start, **settings) for k, v in variants.items()}
nuts, position = adapt(NUTS(0.1), logistic, start[:100], 100)
reference = sample(nuts, logistic, position, num_samples=200, seed=4)

# %% mystnb={"figure": {"caption": "Logistic regression: standard deviations of the four coefficients over those of NUTS (grey: 1), for constant SGD with a scalar, a diagonal and a full rate, and a full one with the curvature. The first two coefficients are those of correlated inputs.", "name": "fig-csgd-logistic"}, "image": {"alt": "Standard deviations relative to NUTS. The scalar rate gives between a half and 1.1, the diagonal one 0.6 for the two correlated coefficients and 1 for the others, both full ones about 1 for all four."}} tags=["hide-input"]
figure, axes = plt.subplots()
axes.axhline(1, color=TRUTH)
markers = {"scalar": "o", "diagonal": "s", "full": "^", "full, V + A": "D"}
spread = reference.samples.flatten(0, 1).std(0)
ratios = {
    name: run.samples.flatten(0, 1).std(0) / spread for name, run in draws.items()
}
for place, (name, ratio) in enumerate(ratios.items()):
    hollow = "none" if name in ("scalar", "diagonal") else COLOURS["SGD"]
    across = torch.arange(4) + 0.12 * (place - 1.5)
    axes.plot(
        across, ratio, markers[name], color=COLOURS["SGD"], mfc=hollow, label=name
    )
axes.set(
    xticks=range(4),
    xticklabels=[rf"$\theta_{k}$" for k in range(1, 5)],
    ylabel="standard deviation over NUTS's",
    ylim=(0, 1.4),
)
axes.legend(ncols=2)
plt.show()

# %% [markdown]
# In {numref}`fig-csgd-logistic` look at the first two coefficients, whose inputs are correlated.
# The full rates (filled) give widths that are right to a few per cent, from minibatches of 20.
# The diagonal rate (squares) gives each coefficient the width that it has when the others are known, $1/\sqrt{A_{kk}}$ by the second part of {prf:ref}`thm-csgd-matrix`; for the two correlated ones that is about 0.6 of what it should be.

# %% tags=["hide-input"]
claim(
    "Smallest of the four ratios, scalar rate",
    ratios["scalar"].min(),
    near=0.505,
    within=0.08,
    because="a ball; 0.49 to 0.52 with several seeds of data and draws",
)
claim(
    "Largest of the four ratios, scalar rate",
    ratios["scalar"].max(),
    near=1.105,
    within=0.15,
    because="a ball; 1.07 to 1.13 with several seeds of data and draws",
)
claim(
    "Ratios of the two correlated coefficients, diagonal rate, the larger one",
    ratios["diagonal"][:2].max(),
    near=0.6,
    within=0.09,
    because=(
        "Σ = ½cP knows no correlation: it has the conditional width, √(1 − 0.8²) of "
        "the whole; seeds differ by 0.01"
    ),
)
claim(
    "Largest distance of a ratio from 1, both full rates",
    max((ratios[name] - 1).abs().max() for name in ("full", "full, V + A")),
    at_most=0.05,
    because=(
        "12,000 draws each know a standard deviation to about 1 per cent, and the "
        "posterior is nearly Gaussian"
    ),
)
means = (
    draws["full, V + A"].samples.flatten(0, 1).mean(0)
    - reference.samples.flatten(0, 1).mean(0)
) / spread
claim(
    "Largest distance of a mean from NUTS's, in standard deviations",
    means.abs().max(),
    at_most=0.06,
    because="12,000 draws each; 0.01 to 0.03 with several seeds",
)

# %% [markdown]
# ## Where it fails
#
# ### Large minibatches
#
# With $V = cA$ the full rate $2V^{-1}$ has the exact law $\Sigma = \frac c{c - 1}A^{-1}$, and $c \approx (N - n)/n$.
# Its widths are too large by half a per cent in the table above, where $c = 99$, and grow without bound as $c$ falls to 1, at half of the data.
# The reason: the rate $2V^{-1}$ grows as the noise becomes small, and in the end it is too large for the curvature.
# {numref}`fig-csgd-batch` has the exact widths.


# %% mystnb={"figure": {"caption": "Width in the shortest direction against the share of the data in a minibatch: exact laws (lines) and 500 chains (points, two standard errors); the truth is 1 (grey). The rates that theory for small steps recommends make the chain explode before a minibatch holds half of the data.", "name": "fig-csgd-batch"}, "image": {"alt": "Width against n over N. The scalar rate's line starts at 1.3 and rises steeply before 0.4, that of the full rate starts at 1 and rises steeply before one half, and that of the full rate with the curvature stays at 1."}} tags=["hide-input"]
figure, axes = plt.subplots()
sizes = [5, 10, 20, 50, 100, 150, 200, 250, 300, 330]
sizes += [350, 380, 400, 420, 440, 460, 600, 800]
styles = {"scalar": ":", "full": "--", "full, V + A": "-"}
lines, points = {name: {} for name in styles}, {}
for size in sizes:
    sized = LinearRegression(*posterior.data, batch_size=size)
    V_sized = noise_variance(sized, exact)
    for name, rates in {
        "scalar": constant_sgd(V_sized, "scalar"),
        "full": constant_sgd(V_sized, "full"),
        "full, V + A": constant_sgd(V_sized + A, "full"),
    }.items():
        try:
            lines[name][size] = float(
                widths(law(rates, sized).stationary_covariance())[1]
            )
        except ValueError:  # no stationary distribution
            continue
        if size in (100, 300) and name != "scalar":
            copies = posterior.mean.repeat(500, 1)
            schedule = dict(num_samples=6, warm_up=40, thinning=5, seed=size)
            run = sample(rates, sized, copies, **schedule)
            value, error = (x[1] for x in run.mean_and_standard_error(squares))
            points[name, size] = value.sqrt(), error / (2 * value.sqrt())
for name, style in styles.items():
    share = [size / N for size in lines[name]]
    axes.plot(
        share, list(lines[name].values()), style, color=COLOURS["SGD"], label=name
    )
for (_, size), (value, error) in points.items():
    axes.errorbar(
        size / N, float(value), 2 * float(error), fmt="o", ms=4, color=COLOURS["SGD"]
    )
axes.axhline(1, color=TRUTH, zorder=0)
axes.set(
    xlabel="share of the data in a minibatch, $n/N$",
    ylabel="width, shortest direction",
    ylim=(0, 4),
)
axes.legend()
plt.show()

# %% [markdown]
# Both rates for short steps run away before a minibatch holds half of the data; with the curvature in the rate, the third part of {prf:ref}`thm-csgd-matrix`, the widths are right at every size.

# %% tags=["hide-input"]
for (name, size), (value, error) in points.items():
    claim(
        f"Width with minibatches of {size}, {name}",
        value,
        near=round(lines[name][size], 4),
        standard_error=error,
        because="exact law; 500 chains",
    )
claim(
    "Largest batch in the figure with a stationary distribution, full rate",
    max(lines["full"]),
    at_most=499,
    because="V must exceed A: c > 1",
    kind="exact",
)
claim(
    "Largest batch in the figure with a stationary distribution, full rate with the "
    "curvature",
    max(lines["full, V + A"]),
    at_least=800,
    because="stable for every V, by the theorem",
    kind="exact",
)

# %% [markdown]
# ### A model that does not fit
#
# Suppose that the model takes the noise in the targets to have variance 1, and it has 4.
# What comes out, in units of the posterior's standard deviations?

# %% tags=["hide-input"]
misfit = LinearRegression(
    posterior.data[0],
    targets + (targets - posterior.data[0] @ posterior.mean),
    batch_size=n,
)
wide = widths(average_covariance(law(averaged, misfit), window), misfit)
full_rate = constant_sgd(noise_variance(misfit, exact) + A, "full")
right = widths(law(full_rate, misfit).stationary_covariance(), misfit)
show_table(
    ["noise of the targets twice as wide", "longest", "shortest"],
    [
        ["averages over one pass", *(f"{width:.2f}" for width in wide.tolist())],
        ["a matrix, 2 (V + A)⁻¹", *(f"{width:.2f}" for width in right.tolist())],
    ],
)

# %% [markdown]
# The full rate is right all the same: it uses the $V$ that is there, whatever its reason.
# Averages are not: their covariance is $A^{-1}VA^{-1}/K$, with nearly four times the posterior's variances and so twice its widths.
# This matrix is known as the *sandwich*.
# It says how much $\hat\theta$ would vary from one data set to another: a good question, but not the one that the posterior answers.

# %% tags=["hide-input"]
claim(
    "Width of averages where the noise has twice the standard deviation, longest "
    "direction",
    wide[0],
    near=1.86,
    within=0.01,
    because="exact law",
    kind="exact",
)
claim(
    "Width of averages there, shortest direction",
    wide[1],
    near=1.96,
    within=0.01,
    because="exact law; 2 in the limit of long windows",
    kind="exact",
)
claim(
    "Distance of the widths of full P = 2(V + A)⁻¹ there from 1",
    (right - 1).abs().max(),
    at_most=1e-6,
    because="exact law",
    kind="exact",
)

# %% [markdown]
# ### Directions without noise
#
# An input that is zero in all examples has a coefficient about which the data say nothing; its posterior is the prior.
# Minibatches say nothing about it either, and SGD started at the mode leaves it where it is: $\Sigma$ is singular, the divergence infinite, and $V$ has no inverse.
# The injected noise of SGLD spreads it as it should.

# %% tags=["hide-input"]
blind = LinearRegression(
    torch.cat([posterior.data[0], torch.zeros(N, 1, dtype=DOUBLE)], 1),
    targets,
    batch_size=n,
)
V_blind = noise_variance(blind, blind.covariance)
try:
    constant_sgd(V_blind, "full")
    refused = False
except ValueError:
    refused = True
claim(
    "The full rate is refused where a direction has no noise",
    refused,
    because="V has no inverse",
    kind="exact",
)
run = sample(
    constant_sgd(V_blind, "scalar"),
    blind,
    blind.mean.repeat(100, 1),
    num_samples=1,
    warm_up=199,
    seed=5,
)
claim(
    "SGD leaves the third coefficient where it is",
    bool((run.samples[..., 2] == blind.mean[2]).all()),
    because="its gradient is zero in every minibatch",
    kind="exact",
)
mass = 0.5001 * float(torch.linalg.eigvalsh(V_blind)[-1])
spread_out = law(
    SGLD(1.0, noise_estimate=V_blind / 2, mass=mass), blind
).stationary_covariance()
claim(
    "Width of SGLD in the third coefficient",
    spread_out[2, 2].sqrt(),
    near=1,
    within=0.001,
    because="exact law; the prior's standard deviation is 1",
    kind="exact",
)

# %% [markdown]
# ### Passes over shuffled data
#
# The theory asks for independent minibatches, but many programs shuffle the data and go through them.
# Within a pass every example comes once, so that the errors $\xi_t$ nearly cancel, and so does $\bar\xi$ in {eq}`eq-csgd-telescope`.
# The averages are then far too narrow, not much over a third of the right width, and so are the iterates, with less than two thirds of it.

# %% tags=["hide-input"]
shuffled = LinearRegression(*posterior.data, batch_size=n, minibatches=Passes())
start = posterior.mean.repeat(500, 1)
run = sample(
    averaged, shuffled, start, num_samples=10 * (N // n), warm_up=2 * N // n, seed=6
)
value = (
    squares(run.samples.unflatten(0, (10, N // n)).mean(1)).mean((0, 1)).sqrt().max()
)
claim(
    "Width of averages over shuffled passes, the larger direction",
    value,
    near=0.36,
    within=0.055,
    because="about 0.36 and 0.27, with standard errors below 0.01",
)
run = sample(
    kernels["full, V + A"],
    shuffled,
    start,
    num_samples=10,
    warm_up=300,
    thinning=50,
    seed=7,
)
value = squares(run.samples).mean((0, 1)).sqrt().max()
claim(
    "Width of full P = 2(V + A)⁻¹ with shuffled passes, the larger direction",
    value,
    near=0.625,
    within=0.07,
    because="about 0.62, with standard errors of 0.01",
)

# %% [markdown]
# ## In practice
#
# * Consider constant SGD where a model is trained by SGD anyway, the posterior is close to a Gaussian, and a rough width is enough; elsewhere use {doc}`/book/tutorial/sghmc`.
# * One rate for all, $2d/\operatorname{tr}V$, gives the right size on average, and a round shape where the model fits: not the posterior's.
# * If you can afford a matrix, take the full rate with the curvature in it; if not, averages over a pass of independent minibatches come next.
# * Estimate $V$ with `estimate_noise_variance` at the mode; the rates are only as good as that estimate.
# * Draw minibatches afresh. A shuffled pass is good for optimising, and spoils the draws.
# * Use SGLD when there are directions that the data do not reach.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | constant SGD | $\theta \leftarrow \theta - P\nabla\tilde U(\theta)$, {prf:ref}`alg-csgd` |
# | its covariance, exactly | $PA\Sigma + \Sigma AP - PA\Sigma AP = PVP$, {eq}`eq-csgd-exact` |
# | for short steps | $PA\Sigma + \Sigma AP = PVP$, {eq}`eq-csgd-ou` |
# | best single rate | $\eta^* = 2d/\operatorname{tr}V$, {eq}`eq-csgd-rate` |
# | best matrices | $2V^{-1}$ for short steps, $2(V + A)^{-1}$ for any, {prf:ref}`thm-csgd-matrix` |
# | averages of $K$ iterates | $\operatorname{Cov}\bar\theta \approx A^{-1}VA^{-1}/K$, {eq}`eq-csgd-average` |
#
# ## Change it
#
# * Set `N, n = 1_000, 100` in the first cell of the example. The minibatches are then a tenth of the data, and the window has nine steps. Among others the claim on the width of averages shows ✗: such a window is too short against the chain's memory.
# * Replace `SGLD(0.5 / float(a[-1])` by `SGLD(0.05 / float(a[-1])`, a tenth of the rate. Again the width of averages shows ✗: the chain has become slow, and the window is the same.
# * In the cell of the first figure set `(0.25, 1, 200)` for `(0.25, 1, 4)`. Now $\eta a_{\max} > 2$, so that by {prf:ref}`thm-csgd-law` there is no law: the page says that the chain diverged, and the last panel has no dots.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-csgd-write
#
# *Write it yourself.* Find the covariance of {eq}`eq-csgd-exact` without a solver: the covariance of $\delta$ after a step is $(I - PA)\Sigma(I - AP) + PVP$, so repeat that, from no cloud at all, until it no longer changes.
#
# ~~~python
# def cloud(A, V, P):
#     covariance = torch.zeros_like(A)
#     while True:
#         ...
#     return covariance
# ~~~
#
# What does your function do where $PA$ has an eigenvalue above 2?
# ```
#
# ```{solution} ex-csgd-write
# :class: dropdown
#
# The code stands in the folded cell below.
# With an eigenvalue above 2 the covariance grows without end, and the loop with it; a program should look at the eigenvalues first.
# Assignment 2 has a related task, the noise of a minibatch and its estimate ({doc}`/book/practice/teaching`).
# ```


# %% tags=["hide-input"]
def cloud(A, V, P):
    """The stationary covariance of θ ← θ − P(Aθ + ξ), by repetition."""
    covariance = torch.zeros_like(A)
    shrink = torch.eye(len(A), dtype=A.dtype) - P @ A
    while True:
        after = shrink @ covariance @ shrink.T + P @ V @ P
        if (after - covariance).abs().max() <= 1e-14 * after.abs().max():
            return after
        covariance = after


own = cloud(A, V, best * torch.eye(2, dtype=DOUBLE))
package = langevin_chain(A, best, V, temperature=0.0).stationary_covariance()
claim(
    "Largest relative difference between the exercise's covariance and the package's",
    (own / package - 1).abs().max(),
    at_most=1e-9,
    because="both solve one equation; the repetition stops at rounding",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-csgd-temperature
#
# With the rate $P = 2\kappa V^{-1}$, which law do the iterates have where steps are short?
# Why does SGD with a rate that falls end at the mode?
# ```
#
# ```{solution} ex-csgd-temperature
# :class: dropdown
#
# Put $\Sigma = \kappa A^{-1}$ into {eq}`eq-csgd-ou`: $2\kappa P = PVP$ holds.
# The law is the posterior's with all variances times $\kappa$: $\kappa$ is a temperature.
# A falling rate cools it to zero.
# ```
#
# ```{exercise}
# :label: ex-csgd-pass
#
# Let $V = cA$.
# Compute the autocorrelation time of the iterates with $P = 2(V + A)^{-1}$, and compare it with a pass over the data, drawn without replacement.
# ```
#
# ```{solution} ex-csgd-pass
# :class: dropdown
#
# $P = \frac2{c + 1}A^{-1}$, so $F = \frac{c - 1}{c + 1}I$, and every direction is an autoregression with $\rho = \frac{c - 1}{c + 1}$.
# Its autocorrelation time is $\frac{1 + \rho}{1 - \rho} = c$.
# With $c = (N - n)/n$ these are $c\,n = N - n$ examples a draw: one pass, less a minibatch.
# ```
#
# ```{exercise}
# :label: ex-csgd-sgld
#
# Which noise estimate makes SGLD with mass $M$ exact on a Gaussian, at every stable step size?
# ```
#
# ```{solution} ex-csgd-sgld
# :class: dropdown
#
# $\hat B = \tfrac12\eta(V + A)$.
# The total noise is then $2\eta M^{-1} - \eta^2M^{-1}AM^{-1}$, and with $F = I - \eta M^{-1}A$ this is $A^{-1} - FA^{-1}F^\top$.
# The error of the step acts like the noise of a minibatch with covariance $A$, and can be taken out like one.
# It needs $\hat B \preceq M$; where they are equal nothing is injected, and that is the third part of {prf:ref}`thm-csgd-matrix`.
# ```
#
# ```{exercise}
# :label: ex-csgd-momentum
#
# SGHMC at temperature zero is SGD with momentum.
# Which friction makes it sample the posterior where steps are short, without any injected noise?
# ```
#
# ```{solution} ex-csgd-momentum
# :class: dropdown
#
# In the limit of short steps it is $d\theta = M^{-1}r\,dt$, $dr = -\nabla U\,dt - CM^{-1}r\,dt + N(0, 2B\,dt)$ with $B = \tfrac12\varepsilon V$.
# {doc}`/book/tutorial/sghmc` shows that $e^{-U}$ is stationary if the noise is $N(0, 2C\,dt)$: so $C = B$, as a matrix, with any mass.
# It is what SGHMC does with $\hat B = C$.
# The cell below checks it on the exact law.
# ```

# %% tags=["hide-input"]
wanted = crossed[0]
friction = torch.tensor([[4.0, -5.0], [-5.0, 8.0]], dtype=DOUBLE)
for step in (0.1, 0.01):
    chain = sghmc_chain(
        wanted, step, friction, noise_variance=2 / step * friction, temperature=0.0
    )
    covariance = chain.stationary_covariance()[:2, :2]
    claim(
        "Error of the covariance of SGD with momentum at C = ½εV, relative to the "
        f"posterior's, ε = {step:g}",
        (covariance - torch.linalg.inv(wanted)).norm()
        / torch.linalg.inv(wanted).norm(),
        at_most=step**2,
        because="exact law; the error is of the order of ε²",
        kind="exact",
    )

# %% [markdown]
# ## Further reading
#
# {cite:t}`mandt2017` for constant SGD, its rates, momentum and averages, with experiments; {cite:t}`polyak1992` for averages; {cite:t}`ahn2012` for SGLD whose preconditioner is made from the noise.
