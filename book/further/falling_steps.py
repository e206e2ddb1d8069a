# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Do falling steps buy exactness?
#
# ```{div} page-head
# Level: second course · Reading: about 23 minutes, without the exercises · Running: about 7 seconds
# ```
#
# ```{index} ! learning rate schedule, ! step size schedule, ! decreasing step size
# ```

# %%
import math

import torch

from booklib.page.claims import check, near
from sgmc.splittings import sghmc_chain

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np

from booklib.page.claims import at_least, at_most
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.noise import OnlineNoise
from sgmc.splittings import flows, linear_chain
from sgmc.targets import Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# The error of a step vanishes with the step ({doc}`/book/further/price`), so let the steps fall: does it pay?
#
# Hardly. A longer run should have smaller steps, but the best *constant* step for its length is slightly better than the best falling ones. Falling steps spare us the choice of the length beforehand: the bias goes on shrinking for as long as the chain runs.
# A noise estimate pays much more, and it has to fall with the step.
#
# Take SGHMC in the bowl with $V = 4$ and $C = 2$. What is the error of the average of $\theta^2$ over $K$ steps, at the best constant step size for this $K$?
# *A guess: let $K$ be sixteen times as large. Independent samples would have a quarter of the error. Which part of it is left without a noise estimate, and with the right one?*


# %%
def error_of_average(step_size, K, estimated):
    """The exact root mean square error of the average of θ² over a stationary chain."""
    estimate = 0.5 * step_size * 4.0 * estimated
    one = torch.eye(1, dtype=torch.float64)
    chain = sghmc_chain(one, step_size, 2.0, 4.0, estimate)
    width = float(chain.stationary_covariance()[0, 0])
    lags = torch.arange(1, min(K, 400), dtype=torch.float64)
    rho = chain.autocorrelation(torch.tensor([1.0, 0.0]), len(lags) + 1)[1:]
    time = 1 + 2 * float(((1 - lags / K) * rho**2).sum())  # ρ² is that of θ²
    return math.sqrt((width - 1) ** 2 + 2 * width**2 * time / K)


grid = torch.logspace(-1.6, -0.2, 21).tolist()
for name, estimated, left in (
    ("none", 0, 16 ** (-1 / 3)),
    ("right", 1, 16 ** (-2 / 5)),
):
    short, long = (
        min(error_of_average(size, K, estimated) for size in grid)
        for K in (4_000, 64_000)
    )
    check(f"left-{name}", long / short, near(left, 0.02), kind="exact", digits=3)


# %% tags=["hide-input"]
def errors_of_falling(firsts, gamma, num_steps):
    """The same of weighted averages, ε_t = first (1 + t/10)^−γ, B̂ of each step."""
    sizes = np.outer(firsts, (1 + np.arange(num_steps) / 10) ** -gamma)
    weights = sizes / sizes.sum(1, keepdims=True)
    zero, one = np.zeros_like(sizes), np.ones_like(sizes)
    # (θ, r) after a step, with θ first; with the right estimate all noise is 2Cε.
    steps = np.array([[one, sizes], [-sizes, 1 - 2 * sizes - sizes**2]])
    noise = np.array([[zero, zero], [zero, 4 * sizes]])
    steps, noise = steps.transpose(3, 2, 0, 1), noise.transpose(3, 2, 0, 1)
    now = np.broadcast_to(np.eye(2), (len(firsts), 2, 2))
    past = np.zeros_like(now)  # Σ_s w_s c cᵀ with c = Cov((θ_t, r_t), θ_s)
    bias, variance = np.full(len(firsts), -1.0), 0.0
    for step, added, weight in zip(steps, noise, weights.T, strict=True):
        now = step @ now @ step.mT + added
        past = step @ past @ step.mT
        variance = variance + 4 * weight * past[:, 0, 0]
        variance = variance + 2 * (weight * now[:, 0, 0]) ** 2
        past = past + weight[:, None, None] * now[:, :, :1] @ now[:, :1]
        bias = bias + weight * now[:, 0, 0]
    return np.sqrt(bias**2 + variance)


lengths = (250, 1_000, 4_000, 16_000, 64_000)
best = {
    (estimated, K): min(error_of_average(size, K, estimated) for size in grid)
    for estimated in (False, True)
    for K in lengths
}
firsts = (0.5, 0.6, 0.7, 0.8, 0.9)
fallen = {
    (gamma, K): float(errors_of_falling(firsts, gamma, K).min())
    for gamma, K in [(1 / 5, K) for K in lengths] + [(1 / 3, 4_000)]
}

# %% mystnb={"figure": {"caption": "SGHMC in the bowl, $V = 4$, $C = 2$: exact root mean square error of the average of $\\theta^2$ over $K$ steps. Lines: the best constant step for each $K$, without a noise estimate (orange) and with the right one (pink). Dashed: slopes $-\\frac13$ and $-\\frac25$. Crosses: the best steps that fall as $(1 + t/10)^{-1/5}$, with the right estimate of each step.", "name": "fig-falling-error"}, "image": {"alt": "On logarithmic axes, two straight falling lines with dashed lines along them. The upper one, without an estimate, is less steep. Crosses lie just above the lower one."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.4))
for estimated, label, colour, rate in (
    (False, r"constant, $\hat B = 0$", "naive SGHMC", 1 / 3),
    (True, r"constant, $\hat B = B$", "SGHMC", 2 / 5),
):
    errors = [best[estimated, K] for K in lengths]
    axes.loglog(lengths, errors, "o-", ms=4, color=COLOURS[colour], label=label)
    slope = [errors[-1] * (K / lengths[-1]) ** -rate for K in lengths]
    axes.loglog(lengths, slope, "--", color="black", lw=0.8)
axes.loglog(
    lengths,
    [fallen[1 / 5, K] for K in lengths],
    "x",
    ms=8,
    color="black",
    label=r"falling, $\hat B_t = B_t$",
)
axes.set(xlabel="number of steps $K$", ylabel=r"error of the average of $\theta^2$")
axes.legend()
plt.show()

# %% tags=["hide-input"]
show_table(
    ["4,000 steps", "root mean square error of the average of θ²"],
    [
        ["constant step, no estimate", f"{best[False, 4_000]:.3f}"],
        ["constant step, right estimate", f"{best[True, 4_000]:.3f}"],
        ["falling with γ = 1/5, right estimates", f"{fallen[1 / 5, 4_000]:.3f}"],
        ["falling with γ = 1/3, right estimates", f"{fallen[1 / 3, 4_000]:.3f}"],
    ],
)
ratio = fallen[1 / 5, 4_000] / best[True, 4_000]
check("falling-over-constant", ratio, near(1.07, 0.03), kind="exact", digits=3)
ratio = fallen[1 / 5, 64_000] / best[True, 64_000]
check("falling-long", ratio, near(1.07, 0.06), kind="exact", digits=3)
one = torch.eye(1, dtype=torch.float64)
excess = [
    float(linear_chain(flows.baoab(size, 2.0), one, 4.0).stationary_covariance()[0, 0])
    - 1
    for size in (0.1, 0.05)
]
check("baoab", excess[0] / excess[1], near(2, 0.05), kind="exact", digits=3)

# %% [markdown]
# At sixteen times the length {c}`left-none` of the error is left without an estimate, and {c}`left-right` with the right one. This answers the guess: neither reaches the quarter of independent samples, because the step has to fall as well. {numref}`fig-falling-error` has other lengths.
# With $\varepsilon_t \propto (1 + t/10)^{-1/5}$ falling steps have {c}`falling-over-constant` times the error of the best constant one at 4,000 steps, and {c}`falling-long` times at 64,000. Each row of the table has its best step size, or its best first step size.
#
# ## Why these rates
#
# After $K$ steps of size $\varepsilon$ the average of $\theta^2$ has a variance of $c_2/(\varepsilon K)$.
# Its bias is $c_1\varepsilon$ without an estimate, because the noise of the gradient raises the {term}`temperature` to about $1 + B/C$, and $c_1\varepsilon^2$ with the right estimate, from the error of the step.
# The best step balances the two ({ref}`ex-falling-rates`): it is of the order of $K^{-1/3}$ without an estimate and of $K^{-1/5}$ with it, and the errors are of the order of
#
# $$
# K^{-1/3} \quad(\hat B = 0), \qquad K^{-2/5} \quad(\hat B = B).
# $$ (eq-sghmc-rates)
#
# {cite:t}`chen2015` have the squares of these rates, $K^{-2/3}$ and $K^{-4/5}$, for integrators of the first and of the second order, and the same ones for steps that fall at the right speed.
# They state the second for SGHMC with minibatches and a symmetric splitting. That cannot hold for fresh minibatches without an estimate.
# Their theorem counts the order of the integrator, but the noise of a minibatch, which is zero on average, acts through its square: a kick of $-\varepsilon\nu$ adds $\varepsilon^2V$ to the variance of the momentum in a step, hence $\varepsilon V$ per unit of time, whatever the integrator. This is of the first order. BAOAB, which is symmetric and of order two, divides its bias in the bowl at half the step by {c}`baoab`, and not by 4.
# {cite:t}`lu2025` prove it for another integrator of order two: the bias is of the first order, with a coefficient in proportion to the variance of the gradient.
#
# ## The estimate has to fall with the step
#
# In Algorithm 2 of {cite:t}`chen2014` the step has an index: all $m$ steps of draw $t$ have the size $\varepsilon_t$.
# The momentum may be handed on as it is, because the density $e^{-U(\theta) - r^2/2}$ does not contain $\varepsilon$. (The velocity $v = \varepsilon r$ of the learning-rate form may not, see {prf:ref}`prop-cyclical-velocity`.)
# But $V$ is given by the data, so $B_t = \tfrac12\varepsilon_tV$ falls with the step, and a $\hat B$ that is kept becomes too large. By {eq}`eq-temperature` the temperature then ends at $1 - \hat B/C$, and no longer run helps.
# The paper defines $\hat B = \tfrac12\varepsilon\hat V$ and leaves it to the reader that it moves with $\varepsilon_t$ ({doc}`/book/appendix/errata`).
#
# All of it can be computed. Let $F_t$ and $Q_t$ be the transition and the noise of the $m$ steps of draw $t$; then the covariance of $(\theta, r)$ follows
#
# $$
# \Sigma_{t+1} = F_t\,\Sigma_t\,F_t^\top + Q_t.
# $$ (eq-sghmc-falling)
#
# The next cell computes it for three estimates: none, the right one of the first step, kept, and the right one of each step.
# *A guess before you look.* The step falls to a fifth of its first size. To which variance does the chain with the kept estimate come?


# %%
def falling(draw):
    return 0.4 * (1 + draw / 3) ** (-1 / 3)


estimates = {
    "no estimate": lambda step_size: 0.0,
    "kept": lambda step_size: 0.5 * falling(0) * 4.0,
    "of each step": lambda step_size: 0.5 * step_size * 4.0,
}
one = torch.eye(1, dtype=torch.float64)


def exact_widths(estimate_of):
    """The exact variance of θ after 1, 2, … draws, with an estimate for each step."""
    covariance, widths = torch.eye(2, dtype=torch.float64), []
    for size in map(falling, range(300)):
        chain = sghmc_chain(one, size, 2.0, 4.0, estimate_of(size)).power(5)
        covariance = chain.transition @ covariance @ chain.transition.T
        covariance = covariance + chain.noise_covariance
        widths.append(float(covariance[0, 0]))
    return torch.tensor(widths, dtype=torch.float64)


# %% mystnb={"figure": {"caption": "SGHMC in the bowl while the step falls from 0.4 to 0.086, $V = 4$, $C = 2$, $m = 5$: the exact variance of the position without an estimate (dotted), with the right one of the first step, kept (dashed), and with that of each step (solid). 1 is right (grey).", "name": "fig-sghmc-falling"}, "image": {"alt": "Three lines over the number of draws, from 1 to 300 on a logarithmic scale. Without an estimate the variance starts above 1.4 and comes down to 1.1. With the estimate of each step it starts a little above 1 and stays there. With the first estimate kept it falls below 0.7."}} tags=["hide-input"]
widths = {name: exact_widths(estimate) for name, estimate in estimates.items()}
figure, axes = plt.subplots(figsize=(5.2, 3.0))
for (name, values), style in zip(widths.items(), (":", "--", "-"), strict=True):
    label = r"$\hat B = 0$" if name == "no estimate" else rf"$\hat B$ {name}"
    axes.semilogx(range(1, 301), values, style, color=COLOURS["SGHMC"], label=label)
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.set(xlabel="draws", ylabel="variance of the position", ylim=(0.5, 1.8))
axes.legend(loc="upper right")
plt.show()

# %% tags=["hide-input"]
kernel = SGHMC(falling, 2.0, OnlineNoise("scalar"), num_steps=5)
bowl = Gaussian.standard(1, dtype=torch.float64)
start = bowl.exact_samples(10_000, torch.Generator().manual_seed(60))
draws = sample(kernel, NoisyGradient(bowl, 4.0), start, num_samples=300, seed=6)
check(
    "package",
    draws.samples[-1].square().mean(),
    near(float(widths["of each step"][-1])),
    error=float(draws.samples[-1].square().std()) / 100,
    because="the exact recursion",
)

# %% [markdown]
# In {numref}`fig-sghmc-falling` only the estimate of each step keeps the variance near 1. Without one the chain is too wide, and comes ever closer. With the kept one it becomes too narrow. That answers the guess: the last step is 0.086, where $B$ has fallen to 0.17 and the kept $\hat B$ is 0.8, so the variance is near $1 + (0.17 - 0.8)/2 = 0.69$. As $B_t$ vanishes it tends to $1 - \hat B/C = 0.6$.
#
# In the package `SGHMC(falling, 2.0, OnlineNoise("scalar"))` takes the schedule as its step size, and makes the estimate of each step from what the gradients say of their noise ({doc}`/book/tutorial/estimating_the_noise`). After 300 draws its chains have the variance {c}`package`, where the recursion has that of the solid line.
#
# ## The average over steps that fall
#
# {cite:t}`welling2011` brought falling steps to sampling.
# While $\tfrac12\eta_tV > 1$ SGLD's gradient noise is larger than the injected one, and the algorithm is stochastic gradient descent in all but name; afterwards it samples.
# A sample stands for the time $\eta_t$ that the diffusion spends there, so the average over time is
#
# $$
# \hat E[f] = \frac{\sum_t\eta_tf(\theta_t)}{\sum_t\eta_t},
# $$ (eq-weighted)
#
# which `numpy.average` computes with the statistic `step_size` as weights (for SGHMC with $\varepsilon_t$); {prf:ref}`thm-sgld-consistent` says when it converges.
# Equal weights converge, too, for $\eta_t \propto t^{-\gamma}$ with $\gamma < 1$. But small late steps make neighbouring samples nearly equal, so counting them fully wastes weight.
#
# **To remember:** a noise estimate has to fall with the step. All that falling steps buy is that one need not know the number of steps beforehand.
#
# ## Change it
#
# * In the visible cell set `0.5 * step_size * 4.0 * estimated` to `0.6 * step_size * 4.0 * estimated`, an estimate a fifth too large: 0.27 is left in place of 0.32. It makes the chain too narrow and the error of the step makes it too wide, and at one step size the two cancel. Without knowing $V$ one cannot find this step size.
# * In the same cell set `4_000, 64_000` to `250, 4_000`: 0.37 and 0.31 are left. The rates are those of long runs.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-falling-rates
#
# ★ An integrator has a bias of $c_1\varepsilon^p$ at a constant step $\varepsilon$, and the average of $K$ steps a variance of $c_2/(\varepsilon K)$.
# Find the best step and the rate of the error, and with it {eq}`eq-sghmc-rates`.
# How much faster than with $p = 1$ does one get to a tenth of the error with $p = 2$?
# ```
#
# ```{solution} ex-falling-rates
# :class: dropdown
#
# The derivative of $c_1^2\varepsilon^{2p} + c_2/(\varepsilon K)$ vanishes where $2p\,c_1^2\varepsilon^{2p+1} = c_2/K$, so that $\varepsilon \propto K^{-1/(2p+1)}$, and the error is of the order of $\varepsilon^p \propto K^{-p/(2p+1)}$: a third for $p = 1$, two fifths for $p = 2$.
# A tenth of the error asks for $10^3 = 1000$ times as many steps with $p = 1$, and for $10^{5/2} \approx 316$ times as many with $p = 2$, about a third of that.
# ```
#
# ```{exercise}
# :label: ex-falling-kept
#
# ★★ From which step size on is the kept estimate worse than none?
# After how many draws is that with the steps of {eq}`eq-sghmc-falling`'s example?
# Where does the exact law say so, and why a little later?
# ```
#
# ```{solution} ex-falling-kept
# :class: dropdown
#
# By {eq}`eq-temperature` the temperature is wrong by $B_t/C$ without an estimate, and by $(\hat B - B_t)/C$ with the kept one.
# The second is larger once $B_t < \tfrac12\hat B$, so from half of the first step size on: $(1 + t/3)^{-1/3} = \tfrac12$ at $t = 21$.
# The exact law says so a few draws later.
# The step's own bias makes all variances a little larger, which helps the chain that is too narrow; and the law is a little behind the step.
# ```

# %% tags=["hide-input"]
wrong = {name: (values - 1).abs() for name, values in widths.items()}
later = wrong["kept"] > wrong["no estimate"]
first = int(later.int().argmax()) + 1
check(
    "kept-worse",
    first,
    near(28, 1),
    kind="exact",
    says="Draws after which the kept estimate is worse than none, by the exact law",
)
check(
    "kept-stays-worse",
    float(later[first - 1 :].double().mean()),
    at_least(1.0),
    kind="exact",
    says="Share of the later draws at which it is worse",
)

# %% [markdown]
# ````{exercise}
# :label: ex-falling-weights
#
# ★ **Write it yourself.** Write the average {eq}`eq-weighted` of samples `(steps, chains)` with their step sizes `(steps,)`.
#
# ```python
# def weighted_mean(samples, step_sizes):
#     """The average over time of each chain, (chains,)."""
#     ...
# ```
#
# For which $\gamma$ of $\eta_t = \eta_0\,(1 + t)^{-\gamma}$ does a chain forget a start that is too wide, as $e^{-cs}$ with the time $s = \sum_t\eta_t$?
# ````
#
# ````{solution} ex-falling-weights
# :class: dropdown
#
# ```python
# def weighted_mean(samples, step_sizes):
#     weights = step_sizes / step_sizes.sum()
#     return (weights[:, None] * samples).sum(0)
# ```
#
# The time has to diverge, so for $\gamma \le 1$. At $\gamma = 1$ it grows only as $\log t$, and the start is forgotten as a power of $t$; for $\gamma > 1$ the chain stops before it has arrived.
# {cite:t}`welling2011` ask for this; their second condition, that $\sum_t\eta_t^2$ is finite, is not needed for averages to converge: {prf:ref}`thm-sgld-consistent` does without it.
# ````


# %% tags=["hide-input"]
def weighted_mean(samples, step_sizes):
    weights = step_sizes / step_sizes.sum()
    return (weights[:, None] * samples).sum(0)


sizes = 2 * (20 + torch.arange(3_000, dtype=torch.float64)) ** -0.8
values = torch.randn(3_000, 8, generator=torch.Generator().manual_seed(4)).double()
ours = weighted_mean(values, sizes)
check(
    "weighted-mean",
    abs(ours.numpy() - np.average(values.numpy(), 0, sizes.numpy())).max(),
    at_most(1e-9),
    kind="exact",
    because="the same weights; rounding",
    says="The solution and `numpy.average` differ, in eight chains, by",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`chen2014` print the algorithm with steps that fall, {cite:t}`welling2011` brought them to sampling with minibatches, {cite:t}`teh2016` find their best exponent for SGLD, and {cite:t}`chen2015` the rates for integrators of any order.
