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
# Level: second course · Reading: about 21 minutes, without the exercises · Running: about 7 seconds
# ```
#
# ```{index} ! learning rate schedule, ! step size schedule, ! decreasing step size
# ```

# %%
import torch

from sgmc.splittings import sghmc_chain

# %% tags=["hide-input"]
import math

import matplotlib.pyplot as plt
import numpy as np

from booklib.page.claims import at_least, at_most, check, near
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from sgmc import sample
from sgmc.kernels import SGHMC, SGLD
from sgmc.noise import OnlineNoise
from sgmc.splittings import flows, linear_chain
from sgmc.targets import Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# The error of a step vanishes with the step, so let the steps fall: what remains of the bias, and what does it cost?
#
# The answer has two halves. With a noise estimate *that falls with the step* SGHMC comes ever closer to its target; with one that is kept it becomes too cold, and ends worse than with none.
# And falling steps hardly pay: they buy only that the number of steps need not be known beforehand.
#
# {numref}`fig-sghmc-books` draws the accounts of a step, in units of what the friction takes away: the chain has the right {term}`temperature` where gradient noise and injected noise add up to 1.
# *A guess: if the estimate of the first step is kept, which temperature does the chain end with?*

# %% mystnb={"figure": {"caption": "What noise brings in a step, over what friction takes, at four step sizes, $V = 4$ and $C = 2$. Orange: the noise of the gradient, $B/C$. Pink: what is injected, $1 - \\hat B/C$. Above: the estimate of each step. Below: the estimate of the step 0.4, kept. 1 is right (grey).", "name": "fig-sghmc-books"}, "image": {"alt": "Two panels with four bars each, for the steps 0.4, 0.2, 0.1 and 0.05. The orange part falls from 0.4 to 0.05. Above, the pink part grows by as much, and every bar ends at 1. Below, the pink part is always 0.6, and the bars fall from 1 to 0.65."}} tags=["hide-input"]
four_steps = torch.tensor([0.4, 0.2, 0.1, 0.05])
brought = 0.5 * four_steps * 4.0 / 2.0  # B/C
figure, panels = plt.subplots(2, 1, figsize=(4.8, 4.8), sharex=True)
for axes, estimate, title in zip(
    panels,
    (brought, brought[0].expand(4)),
    (r"$\hat B = B$ of each step", r"$\hat B$ of the first step, kept"),
    strict=True,
):
    axes.bar(range(4), 1 - estimate, 0.6, color=COLOURS["SGHMC"], label="injected")
    axes.bar(
        range(4),
        brought,
        0.6,
        bottom=1 - estimate,
        color=COLOURS["naive SGHMC"],
        label="gradient",
    )
    axes.axhline(1, color=TRUTH, lw=3, zorder=0)
    axes.set(title=title, ylabel="noise over friction", ylim=(0, 1.45))
panels[0].legend(loc="upper right", ncols=2)
panels[1].set(
    xlabel=r"step size $\varepsilon$",
    xticks=range(4),
    xticklabels=["0.4", "0.2", "0.1", "0.05"],
)
plt.show()

# %% [markdown]
# ## What has to fall with the step
#
# In Algorithm 2 of {cite:t}`chen2014` the step has an index: all $m$ steps of draw $t$ have the size $\varepsilon_t$, and the next draw may have smaller ones.
# The momentum may be handed on as it is, because the density $e^{-U(\theta) - r^2/2}$ does not contain $\varepsilon$.
# (The velocity $v = \varepsilon r$ of the learning-rate form may not, see {prf:ref}`prop-cyclical-velocity`.)
# But the noise estimate belongs to a step size: $V$ is given by the data, and $B_t = \tfrac12\varepsilon_tV$ falls with the step.
# A $\hat B$ that is kept becomes too large, and by {eq}`eq-temperature` the temperature ends at $1 - \hat B/C$.
#
# A draw of the algorithm in the bowl, with the estimate as an argument:


# %%
def draw_of(theta, r, step_size, estimate, generator):
    """Five steps of Algorithm 2 of one size, C = 2, in the bowl with V = 4."""
    for _ in range(5):
        theta = theta + step_size * r
        gradient = theta + 2 * torch.randn(theta.shape, generator=generator)
        r = r - step_size * (gradient + 2 * r)
        injected = 2 * (2 - estimate) * step_size
        r = r + injected**0.5 * torch.randn(theta.shape, generator=generator)
    return theta, r


def falling(draw):
    return 0.4 * (1 + draw / 3) ** (-1 / 3)


estimates = {
    "no estimate": lambda step_size: 0.0,
    "kept": lambda step_size: 0.5 * falling(0) * 4.0,
    "of each step": lambda step_size: 0.5 * step_size * 4.0,
}
generator, measured = torch.Generator().manual_seed(6), {}
for name, estimate_of in estimates.items():
    theta, r = torch.randn(2, 10_000, generator=generator)
    for draw in range(300):
        size = falling(draw)
        theta, r = draw_of(theta, r, size, estimate_of(size), generator)
        measured[name, draw + 1] = theta.square()

# %% [markdown]
# All of it can be computed, too.
# Let $F_t$ and $Q_t$ be the transition and the noise of the $m$ steps of draw $t$; then the covariance of $(\theta, r)$ follows
#
# $$
# \Sigma_{t+1} = F_t\,\Sigma_t\,F_t^\top + Q_t.
# $$ (eq-sghmc-falling)
#
# In {numref}`fig-sghmc-falling` only the estimate of each step stays near 1.
# Without one the chain is too hot and comes ever closer, at the temperature $1 + B_t/C$.
# The kept one falls below 1 and stays there, towards $1 - \hat B/C = 0.6$ as $\varepsilon_t \to 0$, and no longer run corrects it: this answers the guess.
# {doc}`/book/appendix/errata` says so of the paper, which prints one $\hat B$ for all $\varepsilon_t$.

# %% mystnb={"figure": {"caption": "SGHMC in the bowl while the step falls from 0.4 to 0.086, V = 4, C = 2: the exact variance of the position (lines) and 10,000 chains (points). 1 is right (grey). The estimate that was right for the first step is wrong for all others.", "name": "fig-sghmc-falling"}, "image": {"alt": "Three lines over the number of draws, from 1 to 300 on a logarithmic scale, with points on them. Without an estimate the variance starts above 1.4 and comes down to 1.1. With the estimate of each step it starts a little above 1 and stays there. With the first estimate kept it falls below 0.7."}} tags=["hide-input"]
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


widths = {name: exact_widths(estimate) for name, estimate in estimates.items()}
figure, axes = plt.subplots(figsize=(5.2, 3.4))
shown = (1, 3, 10, 30, 100, 300)
for (name, values), style in zip(widths.items(), (":", "--", "-"), strict=True):
    label = r"$\hat B = 0$" if name == "no estimate" else rf"$\hat B$ {name}"
    axes.semilogx(range(1, 301), values, style, color=COLOURS["SGHMC"], label=label)
    for draw in shown:
        square = measured[name, draw].mean()
        axes.plot(draw, square, "o", ms=4, color=COLOURS["SGHMC"])
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.set(xlabel="draws", ylabel="variance of the position", ylim=(0.5, 1.8))
axes.legend(loc="upper right")
plt.show()

# %% tags=["hide-input"]
far = []
for name, values in widths.items():
    for draw in shown:
        squares = measured[name, draw]
        error = float(squares.std()) / len(squares) ** 0.5
        far.append(abs(float(squares.mean() - values[draw - 1])) / error)
check(
    "points",
    max(far),
    at_most(4.8),
    because="10,000 chains each; exceeded by chance once in 35,000 times",
    says="Largest distance of the eighteen points from the lines, in standard errors",
)
kernel = SGHMC(falling, 2.0, OnlineNoise("scalar"), num_steps=5)
bowl = Gaussian.standard(1, dtype=torch.float64)
start = bowl.exact_samples(10_000, generator.manual_seed(60))
draws = sample(kernel, NoisyGradient(bowl, 4.0), start, num_samples=300, seed=6)
check(
    "package",
    draws.samples[-1].square().mean(),
    near(float(widths["of each step"][-1])),
    error=float(draws.samples[-1].square().std()) / 100,
    because="the exact recursion",
    says="Variance after 300 draws of the package's kernel with `OnlineNoise`",
)

# %% [markdown]
# In the package `SGHMC(falling, 2.0, OnlineNoise("scalar"))` takes the schedule as its step size, and makes the estimate of each step from what the gradients say of their noise ({doc}`/book/tutorial/estimating_the_noise`).
#
# ## SGLD's two phases, and the weights of an average
#
# {cite:t}`welling2011` brought falling steps to sampling.
# While $\tfrac12\eta_tV > 1$ the gradient's noise is larger than the injected one, and the algorithm is stochastic gradient descent in all but name; afterwards it samples.
# {numref}`fig-sgld-phases` shows both phases on a noisy bowl, $V = 100$, with the steps $\eta_t = 2(20 + t)^{-0.8}$.
# Where the second begins, the variance is still {c}`phase-boundary`, and after 3,000 steps {c}`phase-end`.

# %% mystnb={"figure": {"caption": "SGLD with falling steps in the bowl, $V = 100$, from a start at 4. Above: mean and spread of 4,000 chains (green), the same by the exact recursion (dashed), and the target's (grey). Below: the variances that a step adds. The dotted line divides the phases, at $\\tfrac12\\eta V = 1$.", "name": "fig-sgld-phases"}, "image": {"alt": "Above, a band that drops from 4 to 0 within about twenty steps, is then several times as wide as the grey strip around zero, and narrows slowly towards it. Below, two falling lines that cross at the dotted line: the steeper one, of the gradient's noise, is above before it."}} tags=["hide-input"]
noise_variance, num_steps = 100.0, 3_000
eta = 2 * (20 + torch.arange(num_steps, dtype=torch.float64)) ** -0.8
annealed = sample(
    SGLD(lambda t: 2 * (20 + t) ** -0.8),
    NoisyGradient(Gaussian.standard(1), noise_variance),
    torch.full((4_000, 1), 4.0),
    num_samples=num_steps,
    seed=4,
)
means, variances = [4.0], [0.0]
for h in eta.tolist():
    means.append((1 - h) * means[-1])
    variances.append((1 - h) ** 2 * variances[-1] + 2 * h + h**2 * noise_variance)
means, variances = torch.tensor(means[1:]), torch.tensor(variances[1:])
boundary = int((0.5 * eta * noise_variance > 1).sum())
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.2, 5.8), sharex=True)
steps = torch.arange(1, num_steps + 1)
mean, spread = annealed.samples.mean(1)[:, 0], annealed.samples.std(1)[:, 0]
upper.axhspan(-1, 1, color=TRUTH, alpha=0.35, lw=0)
upper.fill_between(
    steps, mean - spread, mean + spread, color=COLOURS["SGLD"], alpha=0.3, lw=0
)
upper.semilogx(steps, mean, color=COLOURS["SGLD"])
for sign in (-1, 0, 1):
    upper.semilogx(steps, means + sign * variances.sqrt(), "--", color="black", lw=0.8)
upper.set(ylabel=r"$\theta$: mean ± standard deviation")
lower.loglog(
    steps,
    eta**2 * noise_variance,
    "--",
    color=COLOURS["SGLD"],
    label=r"gradient's noise $\eta_t^2 V$",
)
lower.loglog(steps, 2 * eta, color=COLOURS["SGLD"], label=r"injected noise $2\eta_t$")
lower.set(xlabel="step", ylabel="variance added in a step")
lower.legend(loc="lower left")
for axes in (upper, lower):
    axes.axvline(boundary, color="black", lw=1, ls=":")
plt.show()

# %% tags=["hide-input"]
for step, name in ((boundary, "boundary"), (num_steps, "end")):
    exact = float(variances[step - 1])
    check(
        f"phase-{name}",
        annealed.samples[step - 1, :, 0].double().var(),
        near(exact),
        error=exact * (2 / 3_999) ** 0.5,
        because="the exact recursion; 4,000 chains",
    )
late = annealed.samples[boundary:, :, 0].double()
weight = eta[boundary:] / eta[boundary:].sum()
weighted, equal = (late * weight[:, None]).sum(0), late.mean(0)
ratio = weighted.std() / equal.std()
because = "exactly 0.973; 4,000 pairs of averages know it to about 0.003"
check("weight-spread", ratio, near(0.973, 0.016), because=because)
squares = float((weight * variances[boundary:]).sum()) / float(
    variances[boundary:].mean()
)
check("weight-bias", squares, near(1.08, 0.01), kind="exact", digits=3)
second = float((weight * variances[boundary:]).sum())
everything = float((eta * (variances + means**2)).sum() / eta.sum())
check("weight-second", second, near(1.47, 0.01), kind="exact", digits=3)
check("weight-all", everything, at_least(2.0), kind="exact", digits=3)

# %% [markdown]
# With falling steps not all samples count alike.
# A sample stands for the time $\eta_t$ that the diffusion spends there, so the average over time is
#
# $$
# \hat E[f] = \frac{\sum_t\eta_tf(\theta_t)}{\sum_t\eta_t},
# $$ (eq-weighted)
#
# which `numpy.average` computes with the statistic `step_size` as weights (for SGHMC with $\varepsilon_t$); {prf:ref}`thm-sgld-consistent` says when it converges.
# With $\eta_t \propto t^{-\gamma}$ equal weights converge, too, for $\gamma < 1$, with a larger variance, because late samples repeat each other. Weights $\eta_t$ count the early samples more, and those are the most biased: over the second phase the weighted average of $\theta$ has {c}`weight-spread` times the standard deviation of the equal one, and that of $\theta^2$ is {c}`weight-bias` times as large.
# Which samples one drops matters more: the weighted average of $\theta^2$ is {c}`weight-second` over the second phase, and {c}`weight-all` over all steps.
#
# ## Does it pay?
#
# After $K$ steps of size $\varepsilon$ the average of $\theta^2$ has a variance of $c_2/(\varepsilon K)$.
# Its bias is $c_1\varepsilon$ without an estimate, from the heat $B/C$, and $c_1\varepsilon^2$ with the right one, from the step.
# So the best step is of the order of $K^{-1/3}$, and the error too, without an estimate; with it the best step is of the order of $K^{-1/5}$, and the error of
#
# $$
# K^{-1/3} \quad(\hat B = 0), \qquad K^{-2/5} \quad(\hat B = B).
# $$ (eq-sghmc-rates)
#
# {cite:t}`chen2015` have the squares of these rates, $K^{-2/3}$ and $K^{-4/5}$, for integrators of the first and of the second order, and the same ones for steps that fall at the right speed.
# They state the second for SGHMC with minibatches and a symmetric splitting. With fresh minibatches and no estimate the bowl contradicts it: gradient noise adds the heat $B/C$, which is of the first order, in an integrator of any order. BAOAB, which is symmetric and of order two, divides its bias at half the step by {c}`baoab`, and not by 4.


# %% tags=["hide-input"]
def error_of_average(step_size, num_steps, estimated):
    """The exact root mean square error of the average of θ² over a stationary chain."""
    estimate = 0.5 * step_size * 4.0 * estimated
    chain = sghmc_chain(one, step_size, 2.0, 4.0, estimate)
    width = float(chain.stationary_covariance()[0, 0])
    lags = torch.arange(1, min(num_steps, 400), dtype=torch.float64)
    theta = torch.tensor([1.0, 0.0])
    squares = chain.autocorrelation(theta, len(lags) + 1)[1:] ** 2  # of θ²
    time = 1 + 2 * ((1 - lags / num_steps) * squares).sum()
    return math.sqrt((width - 1) ** 2 + 2 * width**2 * float(time) / num_steps)


def error_of_falling(first, gamma, num_steps):
    """The same of a weighted average, ε_t = first (1 + t/10)^−γ, B̂ of each step."""
    sizes = first * (1 + torch.arange(num_steps).double() / 10) ** -gamma
    weights = sizes / sizes.sum()
    now, bias, variance = torch.eye(2, dtype=torch.float64), -1.0, 0.0
    with_past = torch.zeros(2, num_steps, dtype=torch.float64)  # Cov((θ_t, r_t), θ_s)
    for t, size in enumerate(sizes.tolist()):
        step = torch.tensor([[1, size], [-size, 1 - 2 * size - size**2]]).double()
        now = step @ now @ step.T
        now[1, 1] += 2 * 2 * size  # with the right estimate all noise is 2Cε
        with_past[:, :t] = step @ with_past[:, :t]
        with_past[:, t] = now[:, 0]
        shares = weights[: t + 1] * with_past[0, : t + 1] ** 2
        variance += 4 * weights[t] * (shares.sum() - 0.5 * shares[-1])
        bias += weights[t] * now[0, 0]
    return math.sqrt(bias**2 + variance)


grid = torch.logspace(-1.6, -0.2, 41).tolist()
best = {
    (estimated, K): min(error_of_average(size, K, estimated) for size in grid)
    for estimated in (False, True)
    for K in (4_000, 64_000)
}
fallen = {
    gamma: min(
        error_of_falling(first, gamma, 4_000) for first in (0.5, 0.6, 0.7, 0.8, 0.9)
    )
    for gamma in (1 / 5, 1 / 3)
}

# %% tags=["hide-input"]
show_table(
    ["4,000 steps", "root mean square error of the mean of θ²"],
    [
        ["constant step, no estimate", f"{best[False, 4_000]:.3f}"],
        ["constant step, right estimate", f"{best[True, 4_000]:.3f}"],
        ["falling with γ = 1/5, right estimates", f"{fallen[1 / 5]:.3f}"],
        ["falling with γ = 1/3, right estimates", f"{fallen[1 / 3]:.3f}"],
    ],
)
because = "exact laws; the limit is reached slowly"
for estimated, rate in ((False, 1 / 3), (True, 2 / 5)):
    found = math.log(best[estimated, 4_000] / best[estimated, 64_000]) / math.log(16)
    name = f"rate-{'right' if estimated else 'none'}"
    check(name, found, near(rate, 0.015), kind="exact", because=because, digits=3)
ratio = fallen[1 / 5] / best[True, 4_000]
check("falling-over-constant", ratio, near(1.07, 0.03), kind="exact", digits=3)
heats = [
    float(linear_chain(flows.baoab(size, 2.0), one, 4.0).stationary_covariance()[0, 0])
    for size in (0.1, 0.05)
]
ratio = (heats[0] - 1) / (heats[1] - 1)
check("baoab", ratio, near(2, 0.05), kind="exact", digits=3)

# %% [markdown]
# The table has the exact errors in the bowl, each with the best step size, or the best first one.
# From 4,000 to 64,000 steps the best error falls with the exponent {c}`rate-none` without an estimate and {c}`rate-right` with the right one.
# If the number of steps is known, the best constant step is slightly better: with $\varepsilon_t \propto (1 + t/10)^{-1/5}$ falling steps have {c}`falling-over-constant` times its error. They buy only that the number need not be known.
#
# **To remember:** $\hat B$ falls with the step, and falling steps buy only that the number of steps need not be known.
#
# ## Change it
#
# * In the visible cell set `(1 + draw / 3) ** (-1 / 3)` to `(1 + draw / 3) ** 0.0`: the step stays at 0.4, the kept estimate is right, and two lines of {numref}`fig-sghmc-falling` fall together, seven per cent above 1.
# * In the same cell set `0.5 * step_size * 4.0` to `step_size * 4.0`, twice the truth: the third line falls to 0.67 and comes back towards 1, 0.92 after 300 draws, because a wrong estimate that falls is wrong by less and less.
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
# The step's own bias makes all variances a little larger, which helps the chain that is too cold; and the law is a little behind the step.
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


ours = weighted_mean(annealed.samples[..., 0].double(), eta)
check(
    "weighted-mean",
    abs(ours - np.average(annealed.samples[..., 0].double(), 0, eta)).max(),
    at_most(1e-9),
    kind="exact",
    because="the same weights; rounding",
    says="The solution and `numpy.average` differ, in 4,000 chains, by",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`chen2014` print the algorithm with steps that fall, {cite:t}`welling2011` brought them to sampling with minibatches, {cite:t}`teh2016` find their best exponent for SGLD, and {cite:t}`chen2015` the rates for integrators of any order.
