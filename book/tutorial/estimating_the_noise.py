# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Measuring the noise
#
# ```{div} page-head
# Page 9 of 12 · 20 minutes to read, 15 to play · Running: about 8 seconds
# ```
#
# ```{index} ! noise estimate, ! B̂
# ```

# %% tags=["hide-input"]
import itertools
import warnings

import matplotlib.pyplot as plt
import torch

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.scoreboard import exact_variance, show_scoreboard
from sgmc import sample
from sgmc.diagnostics import mean_and_error, virial_ratio
from sgmc.kernels import SGHMC
from sgmc.minibatches import Fresh
from sgmc.noise import OnlineNoise
from sgmc.posteriors import LinearRegression, LogisticRegression
from sgmc.splittings import sghmc_chain
from sgmc.targets import Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Several runs below are too hot or too cold on purpose; kernel and sample would say so.
warnings.filterwarnings(
    "ignore", message="½εV̂ exceeded|.*too wide|.*too narrow|.*do not agree"
)

# %% [markdown]
# {doc}`SGHMC </book/tutorial/sghmc>` injects only the noise that is missing, so it has to know how much the gradient brings already.
# Page 8 was given that number, $B = \tfrac12\varepsilon V$.
# In practice nobody is given it: libraries set $\hat B = 0$ or ask the user.
# But a minibatch shows us the gradients of $n$ examples, and how much they disagree. Can we take $\hat B$ from there?
#
# {numref}`fig-estimate-temperature` recalls what is at stake.
# In the running example ($\varepsilon = 0.1$, $V = 4$, $C = 0.5$, hence $B = 0.2$) the variance falls along a straight line as $\hat B$ grows, and passes 1 where $\hat B = B$.
# Too much is as wrong as too little.

# %% mystnb={"figure": {"caption": "Variance of $\\theta$ in the bowl against the noise estimate: the exact law (line) and measured values (points). Grey: the correct variance, and the correct estimate.", "name": "fig-estimate-temperature"}, "image": {"alt": "A straight line that falls from 1.4 at an estimate of zero through 1 at the estimate B to 0.6 at twice B. Five measured points lie on it."}} tags=["hide-input"]
noisy_bowl = NoisyGradient(Gaussian.standard(1), 4.0)


def exact(noise_estimate):
    chain = sghmc_chain(torch.eye(1), 0.1, 0.5, 4.0, noise_estimate)
    return float(chain.stationary_covariance()[0, 0])


measured = {}
for noise_estimate in (0.0, 0.1, 0.2, 0.3, 0.4):
    kernel = SGHMC(0.1, friction=0.5, noise_estimate=noise_estimate, num_steps=50)
    draws = sample(
        kernel, noisy_bowl, torch.zeros(10_000, 1), num_samples=10, warm_up=4, seed=9
    )
    measured[noise_estimate] = draws.mean_and_standard_error(lambda x: x**2)
figure, axes = plt.subplots(figsize=(5.2, 3.2))
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.axvline(0.2, color=TRUTH, lw=1, zorder=0)
grid = torch.linspace(0, 0.4, 20).tolist()
axes.plot(grid, [exact(b) for b in grid], color=COLOURS["SGHMC"])
for noise_estimate, (value, _) in measured.items():
    axes.plot(noise_estimate, float(value), "ko", ms=5)
axes.set(xlabel=r"noise estimate $\hat B$", ylabel=r"variance of $\theta$")
axes.set_xticks([0, 0.2, 0.4], ["0", "$B$", "$2B$"])
plt.show()

# %% tags=["hide-input"]
claim(
    "Largest distance of the five measured variances from the exact ones, in standard "
    "errors",
    max(
        abs(float(value) - exact(b)) / float(error)
        for b, (value, error) in measured.items()
    ),
    at_most=5,
    errors=True,
    because="10,000 chains each; exceeded by chance once in 350,000 times",
)
claim(
    "Exact variance with B̂ = 2B",
    exact_variance("sghmc-2B"),
    near=0.6015,
    within=1e-4,
    because="the exact law of the chain",
    kind="exact",
)

# %% [markdown]
# *A guess before you read on.*
# An estimate from one minibatch of two examples is nearly always wrong: sometimes zero, sometimes twice the right value.
# What does a chain do whose $\hat B$ jumps between 0 and $2B$ at random?
#
# The scoreboard so far, and this page's row, $\hat B = 2B$:

# %% tags=["hide-input"]
show_scoreboard(10)

# %% [markdown]
# ## One temperature for each direction
#
# In several dimensions $B$ and $\hat B$ are matrices, and each direction has a {term}`temperature` of its own.
#
# ```{prf:theorem} Temperature of a direction
# :label: thm-estimate-direction
#
# Let $U = \tfrac12\theta^\top A\theta$ with $A$ positive definite, mass 1, friction a number $C$, and gradient noise that, given the past, has mean 0 and covariance $V$. Let $\hat B \preceq C$, and let $v$ be an eigenvector of $A$ of length 1, $Av = av$. If $0 < \varepsilon C < 2$ and $\varepsilon^2a < 4 - 2\varepsilon C$, then $v^\top\theta$ has, in the limit of many steps of {prf:ref}`alg-sghmc`, mean 0 and
#
# $$
# \begin{gathered}
# \operatorname{Var}(v^\top\theta) = \frac{T_v}a\cdot\frac1{1 - \dfrac{\varepsilon^2a}{4 - 2\varepsilon C}},\\
# T_v = 1 + \frac{v^\top(B - \hat B)\,v}C.
# \end{gathered}
# $$ (eq-direction)
# ```
#
# ```{prf:proof}
# Multiply both lines of the algorithm by $v^\top$. Because $v^\top A = av^\top$, the pair $(v^\top\theta, v^\top r)$ is the one-dimensional chain of {prf:ref}`thm-sghmc-variance`, whose noise has the variance $2\varepsilon\,v^\top(B + C - \hat B)\,v = 2\varepsilon C\,T_v$. The proof there uses mean and covariance of the noise only, so the noise need not be Gaussian.
# ```
#
# Each direction feels the part of $B - \hat B$ that lies along it, and the step size's own bias, the last factor, does not mix with the temperature.
# So the question is how to find $B$.
#
# ## From the examples of a minibatch
#
# By {prf:ref}`thm-minibatch` the covariance $V$ of the {term}`gradient noise` is that of the $g_i = -\nabla\log p(x_i \mid \theta)$ over the data, times $N^2/n$, and times $(N - n)/(N - 1)$ as well if no example is drawn twice.
# We do not know the covariance over all the data, but the covariance over the minibatch estimates it {cite:p}`ahn2012`.
#
# ```{prf:definition} Estimates of the gradient noise
# :label: def-estimate
#
# For a minibatch $S$ of $n \ge 2$ examples let $\bar g_S$ be the mean of their gradients. The *full* estimate is
#
# $$
# \begin{aligned}
# \hat V &= \frac{N^2}n\Bigl(1 - \frac nN\Bigr)\hat\Sigma_S,\\
# \hat\Sigma_S &= \frac1{n - 1}\sum_{i \in S}(g_i - \bar g_S)(g_i - \bar g_S)^\top,
# \end{aligned}
# $$ (eq-estimate)
#
# without the factor $1 - n/N$ if $S$ is drawn with replacement. The *diagonal* estimate keeps $\hat V_{jj}$ only, the *scalar* one their mean. In all cases $\hat B = \tfrac12\varepsilon\hat V$.
# ```
#
# Each factor has its reason.
# The gradient is $N$ times a mean, and a variance takes that factor squared; the mean of $n$ examples has $1/n$ of the variance of one; and without replacement a minibatch of all the data has no noise.
# The mean $\bar g_S$ is subtracted because a slope that all examples share is signal, not noise.
#
# The full estimate is unbiased, $E[\hat V \mid \theta] = V(\theta)$, by {prf:ref}`thm-noise-estimate`; the other two are unbiased for the diagonal of $V$, and for its mean.
# For a logistic regression with twelve examples one can also list all 495 minibatches of four. The mean of their $\hat V$ is the covariance of their gradients, to rounding.

# %% tags=["hide-input"]
generator = torch.Generator().manual_seed(0)
few_inputs = torch.randn(12, 3, generator=generator, dtype=torch.float64)
few_targets = (torch.rand(12, generator=generator) < 0.5).double()
position = torch.tensor([[0.3, -0.5, 0.8]], dtype=torch.float64)
for how, minibatches in (
    ("without", torch.tensor(list(itertools.combinations(range(12), 4)))),
    ("with", torch.tensor(list(itertools.product(range(12), repeat=4)))),
):
    few = LogisticRegression(
        few_inputs, few_targets, batch_size=4, minibatches=Fresh(how == "with")
    )
    gradients, estimates = few.gradient_and_variance_given(
        position.expand(len(minibatches), -1), minibatches, "full"
    )
    claim(
        f"Largest error of the mean of V̂ over all {len(minibatches):,} minibatches "
        f"{how} replacement",
        (estimates.mean(0) - torch.cov(gradients.T, correction=0)).abs().max(),
        at_most=1e-10,
        because="enumeration; rounding",
        kind="exact",
    )

# %% [markdown]
# ## As noisy as you like
#
# A variance that is estimated from $n$ Gaussian numbers has a relative error of $\sqrt{2/(n - 1)}$, so one minibatch makes a poor estimate.
# Must we average it over many steps before we use it?
# For the covariance of the noise the answer is no, because the sampler itself does the averaging.
#
# ```{prf:theorem} For the covariance, a noisy estimate is as good as the truth
# :label: thm-estimate-kick
#
# Let $\hat V$ be computed from the minibatch that gives $\nabla\tilde U(\theta)$, with $E[\hat V \mid \theta] = V(\theta)$ and $\tfrac12\varepsilon\hat V \preceq C$ always. Then the noise of a step,
#
# $$
# \begin{gathered}
# \zeta = -\varepsilon(\nabla\tilde U - \nabla U) + \sqrt{2\varepsilon C\,I - \varepsilon^2\hat V}\;\xi,\\
# \xi \sim N(0, I) \text{ fresh},
# \end{gathered}
# $$
#
# has mean 0 and covariance
#
# $$
# \operatorname{Cov}[\zeta \mid \theta] = 2\varepsilon C\,I.
# $$ (eq-kick)
# ```
#
# ```{prf:proof}
# Given the minibatch, $\xi$ has mean 0. So the two parts are uncorrelated, although both depend on the minibatch, and their covariances add up: $\varepsilon^2V + E\bigl[2\varepsilon C\,I - \varepsilon^2\hat V\bigr] = 2\varepsilon C\,I$.
# ```
#
# {prf:ref}`thm-estimate-direction` needs nothing but this mean and covariance.
# On a Gaussian target the variances therefore come out as if $B$ were known, as long as nothing is clipped, even where $V$ depends on $\theta$.
#
# There is one condition, $\tfrac12\varepsilon\hat V \preceq C$, and it is a real one.
# A variance cannot be negative, so where an estimate exceeds the friction the {term}`kernel` *clips*: it injects nothing there.
# In one dimension the variance of the step's noise is then $2\varepsilon\bigl(B + E[\max(C - \hat B, 0)]\bigr)$, and since $E[\hat B] = B$ this means the temperature
#
# $$
# T = 1 + \frac{E[\max(\hat B - C, 0)]}C.
# $$ (eq-clipping)
#
# Clipping always heats.
# And if the noise itself exceeds the friction, then $T \ge B/C$ whatever the estimate, because the least that we can inject is nothing.
#
# ## The coin that is never right
#
# Let the data be $N = 100$ numbers $y_i = \pm1$, half of each sign, with the model $y_i \sim N(\theta, 100)$ and minibatches of two, drawn with replacement.
# The two examples are equal, and then $\hat V = 0$, or they differ, and then $\hat V = 2V$; each happens half the time.
# This is the estimate of the guess: it jumps between 0 and $2B$, and is never right.
# A step for one chain:

# %%
coins, step_size = torch.tensor([-1.0, 1.0]).repeat(50), 0.3


def coin_step(theta, r, friction, pair, xi):
    """Drift, look at two coins, kick; xi is a standard normal number."""
    theta = theta + step_size * r
    gradients = (theta - coins[pair]) / 100  # of the two examples, σ² = 100
    variance = 100**2 / 2 * gradients.var()  # V̂, with N = 100 and n = 2
    room = max(friction - 0.5 * step_size * variance, 0)  # C − B̂, clipped
    slope = 100 * gradients.mean() + theta / 1e6  # the prior is N(0, 1e6)
    kick = -step_size * slope + (2 * step_size * room) ** 0.5 * xi
    return theta, r - step_size * friction * r + kick


# %% [markdown]
# In the package, `SGHMC(step_size, friction, noise_estimate=OnlineNoise())` does this for any posterior: it asks for the gradient and for the diagonal $\hat V$ of the same minibatch.
# `OnlineNoise("full")` takes the matrix, and `averaging=0.9` mixes in past minibatches with the weight $\lambda = 0.9$; the average is unbiased only where $V$ does not change along the path.
# {numref}`fig-estimate-coins` has the coin's temperature for four frictions, with the last minibatch alone and with an average, which for $\lambda = 0.9$ has the variance of a plain mean over $(1 + \lambda)/(1 - \lambda) = 19$ minibatches.

# %% tags=["hide-input"]
coin = LinearRegression(
    torch.ones(100, 1),
    coins,
    noise_variance=100.0,
    prior_variance=1e6,
    batch_size=2,
    minibatches=Fresh(replacement=True),
)
noise = 0.5 * step_size * 100**2 / 2 / 100**2  # B = ½εV, as yᵢ/σ² has variance 1/σ⁴
generator = torch.Generator().manual_seed(0)
throws = 2 * torch.randint(2, (100_000, 100), generator=generator).float()
histories = {
    0.0: torch.tensor([0.0, 2.0]),
    0.9: throws @ (0.1 * 0.9 ** torch.arange(100)),
}  # the values that B̂/B takes


def clipped_temperature(multiple, averaging):
    """The formula for clipping, at C = multiple·B."""
    return 1 + float((histories[averaging] - multiple).clamp(min=0).mean()) / multiple


coin_runs = {}
for multiple, averaging in itertools.product((0.7, 1.0, 1.5, 2.5), (0.0, 0.9)):
    online, friction = OnlineNoise(averaging=averaging), multiple * noise
    run = sample(
        SGHMC(step_size, friction, noise_estimate=online, num_steps=10),
        coin,
        torch.randn(4_000, 1, generator=generator),
        num_samples=20,
        warm_up=30,
        seed=round(10 * (multiple + averaging)),
    )
    precision = float(coin.precision)
    factor = 1 / (1 - step_size**2 * precision / (4 - 2 * step_size * friction))
    variance, error = run.mean_and_standard_error(lambda x: (x - coin.mean) ** 2)
    coin_runs[multiple, averaging] = (
        float(variance) * precision / factor,
        float(error) * precision / factor,
    )

# %% mystnb={"figure": {"caption": "Temperature of the coin's posterior against the friction, by the formula for clipping (lines) and measured (points, with two standard errors). Without averaging the estimate is zero or $2B$ at each step.", "name": "fig-estimate-coins"}, "image": {"alt": "Temperature against friction over noise. With no estimate the curve falls slowly and stays far above 1. With the last minibatch it reaches 1 at C = 2B and stays there; with an average over past minibatches it reaches 1 soon after C = B. Measured points lie on the curves."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.4, 3.6))
grid = torch.linspace(0.6, 3, 100)
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.plot(grid, 1 + 1 / grid, color=COLOURS["naive SGHMC"], label=r"$\hat B = 0$")
for averaging, colour, label in (
    (0.0, COLOURS["SGHMC"], "online, last minibatch"),
    (0.9, COLOURS["HMC"], r"online, $\lambda = 0.9$"),
):
    line = [clipped_temperature(m, averaging) for m in grid.tolist()]
    axes.plot(grid, line, color=colour, label=label)
    for (multiple, which), (temperature, error) in coin_runs.items():
        if which == averaging:
            axes.errorbar(multiple, temperature, 2 * error, fmt="o", ms=4, color=colour)
axes.set(
    xlabel=r"friction over noise, $C/B$", ylabel="temperature $T$", ylim=(0.9, 2.1)
)
axes.legend()
plt.show()

# %% [markdown]
# From $C = 2B$ on nothing is clipped, and the estimate that is never right gives the right temperature, exactly by the formula and within the error bars when measured: this answers the guess.
# Between $B$ and $2B$ averaging helps, because the average exceeds the friction less often.
# Below $C = B$ nothing makes the temperature 1.

# %% tags=["hide-input"]
for multiple, averaging, statement in (
    (2.5, 0.0, "nothing is clipped, and the estimate is zero or twice too much"),
    (1.5, 0.0, "clipped half the time"),
    (1.5, 0.9, "the same friction with an average over about twenty steps"),
    (0.7, 0.9, "less friction than noise, with that average"),
):
    temperature, error = coin_runs[multiple, averaging]
    claim(
        f"Temperature at C = {multiple}B, {statement}",
        temperature,
        near=round(clipped_temperature(multiple, averaging), 3),
        standard_error=error,
        because="the formula for clipping; 4,000 chains",
    )
by_hand = torch.tensor(0.4), torch.tensor(-0.2)
kernel = SGHMC(step_size, 1.5 * noise, noise_estimate=OnlineNoise())
generator = torch.Generator().manual_seed(7)
pairs = torch.randint(100, (10, 1, 2), generator=generator)
normals = torch.randn(10, 1, 1, generator=generator)
by_package = torch.tensor([[0.4]]), torch.tensor([[-0.2]])
noise_online = kernel.injected_noise(0, torch.zeros(1, 1), torch.zeros(1))
with torch.no_grad():
    kernel.trajectory(coin, *by_package, list(pairs), list(normals), noise_online)
for pair, xi in zip(pairs, normals, strict=True):
    by_hand = coin_step(*by_hand, 1.5 * noise, pair[0], xi[0, 0])
claim(
    "Largest difference in (θ, r) after ten steps, plain lines against the package",
    max(abs(float(a) - float(b)) for a, b in zip(by_hand, by_package, strict=True)),
    at_most=1e-5,
    because="the same coins and normal numbers; rounding in single precision",
    kind="exact",
)

# %% [markdown]
# What is exact here, on a Gaussian target, are means and variances. The noise of a step is a mixture of Gaussians and not Gaussian, so higher moments are only approximately right. They improve with the number of steps in a unit of time, because the sum of the steps' noise is then nearly Gaussian.
#
# Which of the three kinds to take, and how much friction to give it, is a matter of the model; {doc}`/book/further/choosing_the_estimate` compares them on a logistic regression.
# The full matrix is unbiased, but holds $d^2$ numbers and needs its root at every step. The diagonal adds to each step the squares of the examples' gradients, for a network of linear layers a third matrix product a layer beside the two of a gradient step ({doc}`/book/studies/noise_of_networks`), and leaves out the correlations. By {eq}`eq-direction` a direction $v$ then has the temperature $1 + v^\top(B - \operatorname{diag}B)v/C$: some directions are too hot, others too cold, by at most the largest eigenvalue of $B - \operatorname{diag}B$ in absolute value over $C$.
# Its rule: take the diagonal from the step's own minibatch, a friction of about three times the largest $\hat B_{jj}$, and watch how often it is clipped.
# Clipping is the price of too little friction. If you cannot afford the friction, which makes the chain slow, reduce the noise itself, by larger minibatches or by control variates.
#
# **To remember:** measure the noise where it acts, in the step's own minibatch; unbiased is enough, but what the estimate leaves out, and what is clipped, stays in the temperature.
# With that, the sampler is complete. {doc}`The next page </book/tutorial/digits>` samples two hundred networks with it.
#
# ## Change it
#
# * In the runs of the coin set `noise_estimate=online` to `noise_estimate=0.0`: nothing is taken away, and the four claims on the temperature of the coin show ✗. What was measured is near $1 + B/C$.
# * In `coin_step` set `100**2 / 2` to `100 / 2`, a factor of $N$ that is easily forgotten: ten steps differ from the package's, and the claim shows ✗.
# * In the cell of {numref}`fig-estimate-temperature` set `NoisyGradient(Gaussian.standard(1), 4.0)` to `NoisyGradient(Gaussian.standard(1), 8.0)`: the noise has doubled, and the points leave the line, by as much as a $\hat B$ that is too small by 0.2.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-estimate-centring
#
# What is the expectation of {eq}`eq-estimate`, with replacement, if $\bar g_S$ is not subtracted? When does it matter?
# ```
#
# ```{solution} ex-estimate-centring
# :class: dropdown
#
# $\frac1{n-1}\sum g_ig_i^\top$ exceeds the centred sum by $\frac n{n-1}\bar g_S\bar g_S^\top$, and $N\bar g_S$ is the likelihood's part of $\nabla\tilde U$, with mean $G$ and covariance $V$. So its expectation grows by $\frac{1}{n-1}(V + GG^\top)$.
# The first term is a matter of $1/n$. In equilibrium the average of $GG^\top$ is about $\nabla^2U \approx \frac nNV$, so the second is even smaller. Far from the mode, as at the start of a run, $G$ is as large as $N$ gradients that all agree, and the uncentred estimate takes the slope for noise; the chain is clipped or cooled on its way down.
# ```
#
# ````{exercise}
# :label: ex-estimate-yourself
#
# **Write it yourself.** Estimate $V$ from the gradients of the examples of one minibatch, drawn without replacement.
#
# ```python
# def my_estimate(gradients, num_examples):
#     """gradients (n, d), one row for each example, not scaled -> V̂ (d, d)"""
#     ...
# ```
#
# Task 3 of assignment 2 ({doc}`/book/practice/teaching`) asks for the same, and lists all minibatches to test it.
# ````
#
# ````{solution} ex-estimate-yourself
# :class: dropdown
#
# `torch.cov` divides by $n - 1$ and subtracts the mean; what remains are the two factors.
#
# ```python
# def my_estimate(gradients, num_examples):
#     n = len(gradients)
#     return num_examples**2 / n * (1 - n / num_examples) * torch.cov(gradients.T)
# ```
# ````
#
# ```{exercise}
# :label: ex-estimate-thermometer
#
# *A thermometer for samples.* Show that $E[(\theta - c)^\top\nabla U(\theta)] = Td$ for every $c$, if $\theta \in \mathbb R^d$ has the density $\exp(-U/T)$ up to a factor and $\lVert\theta\rVert e^{-U/T}$ vanishes at infinity. What does the average of $(\theta - c)^\top\nabla\tilde U(\theta)/d$ over the samples of a chain tell, and why must the minibatch be a fresh one, and $c$ not the mean of the same samples?
# ```
#
# ```{solution} ex-estimate-thermometer
# :class: dropdown
#
# Integrate by parts in each coordinate: $\int(\theta_j - c_j)\,\partial_jU\,e^{-U/T} = -T\int(\theta_j - c_j)\,\partial_je^{-U/T} = T\int e^{-U/T}$. This is the virial theorem. The average is the temperature of the positions, momenta apart: on a Gaussian, the mean of the variances in units of their correct values. A fresh minibatch makes $\nabla\tilde U$ unbiased given $\theta$, whereas that of the step has moved $\theta$ already. The mean of few or correlated samples is too near to them, and makes the average too small.
# `sample` computes it at the end of a run from at most two hundred gradients (`sgmc.diagnostics.virial_ratio`), and says so if it is off by a fifth and by five standard errors. Below, $\hat B = 0$ at twice as much friction as noise: the exact variance is 1.5.
# ```

# %% tags=["hide-input"]
noisy = NoisyGradient(Gaussian.standard(2), 4.0)
hot = sample(
    SGHMC(0.1, friction=0.4, num_steps=40), noisy, torch.zeros(40, 2), 100, warm_up=10
)
ratio, ratio_error, _ = mean_and_error(
    virial_ratio(noisy, hot.samples, torch.Generator().manual_seed(1))
)
claim(
    "Virial ratio of a chain without an estimate",
    ratio,
    near=float(sghmc_chain(torch.eye(1), 0.1, 0.4, 4.0).stationary_covariance()[0, 0]),
    standard_error=ratio_error,
    because="the exact variance; forty chains",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`chen2014` leave $\hat B$ to the user, and {cite:t}`ahn2012` estimate it as here, for another sampler. {cite:t}`mandt2017` ask what happens if the gradient's noise is the only one, as {doc}`/book/further/constant_sgd` does.
