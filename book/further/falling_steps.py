# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Step sizes that fall
#
# ```{div} page-head
# Level: second course · Reading: about 25 minutes, without the exercises · Running: about 7 seconds
# ```
#
# ```{index} ! learning rate schedule, ! step size schedule, ! decreasing step size
# ```
#
# SGHMC with smaller and smaller steps comes ever closer to its target, if its noise estimate falls with the step; this chapter says what it buys, and what a kept estimate costs.
#
# **You will learn** to
#
# * say what has to change with the step size, and what may stay,
# * compute the law of a chain whose steps fall, draw by draw,
# * see why a noise estimate that is kept is worse in the end than none,
# * derive how fast the error of an average falls, with an estimate and without.
#
# **You will need** {doc}`/book/tutorial/sghmc`, the weighted averages of {doc}`/book/further/sgld`, and from {doc}`/book/tutorial/estimating_the_noise` what $\hat B$ is and how it is found.

# %%
import math

import matplotlib.pyplot as plt
import torch

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.noise import OnlineNoise
from sgmc.splittings import flows, linear_chain, sghmc_chain
from sgmc.targets import Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
one = torch.eye(1, dtype=torch.float64)
bowl = Gaussian.standard(1, dtype=torch.float64)

# %% [markdown]
# ## What has to fall with the step
#
# In Algorithm 2 of {cite:t}`chen2014` the step has an index: all $m$ steps of draw $t$ have the size $\varepsilon_t$, and the next draw may have smaller ones.
# What must change with the step, and does it pay?
#
# The momentum may be handed on as it is: the law $e^{-U(\theta) - r^2/2}$ does not know $\varepsilon$.
# (The velocity $v = \varepsilon r$ of the learning-rate form may not, see {prf:ref}`prop-cyclical-velocity`.)
# But the noise estimate belongs to a step size.
# $V$ is given by the data, and $B_t = \tfrac12\varepsilon_tV$ falls with the step.
# A $\hat B$ that is kept becomes too large, and by {eq}`eq-temperature` the chain becomes too *cold*.
#
# {numref}`fig-sghmc-books` draws the accounts of a step, in units of what the friction takes away.
# The chain has the right {term}`temperature` if gradient noise and injected noise add up to 1.
# As the step falls the gradient brings less and less.
# With the estimate of each step we inject what is missing; with the kept one it goes on missing.

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
# ## The law of falling steps
#
# In the bowl all of it can be computed.
# Let $F_t$ and $Q_t$ be the transition and the noise of $m$ steps of size $\varepsilon_t$, as in {eq}`eq-linear-box`; then the covariance of $(\theta, r)$ follows
#
# $$
# \Sigma_{t+1} = F_t\,\Sigma_t\,F_t^\top + Q_t.
# $$ (eq-sghmc-falling)
#
# The kernel takes a function of the number of draws as its step size.
# We take $\varepsilon_t = 0.4\,(1 + t/3)^{-1/3}$, $V = 4$, $C = 2$ and $m = 5$, and three estimates: none; the right one for the first step, kept; and the right one for each step.
# The last is made on the way from what the gradients say of their noise ({doc}`/book/tutorial/estimating_the_noise`); these gradients say $V$ itself.


# %%
def falling(draw):
    return 0.4 * (1 + draw / 3) ** (-1 / 3)


num_draws, first_estimate = 300, 0.5 * falling(0) * 4.0
many = bowl.exact_samples(10_000, torch.Generator().manual_seed(60))
estimates = {
    "no estimate": 0.0,
    "kept": first_estimate,
    "of each step": OnlineNoise("scalar"),
}
runs = {
    name: sample(
        SGHMC(falling, 2.0, estimate, num_steps=5),
        NoisyGradient(bowl, 4.0),
        many,
        num_samples=num_draws,
        seed=6,
    )
    for name, estimate in estimates.items()
}


def exact_widths(estimate_of):
    """The exact variance of θ after 1, 2, … draws, with an estimate for each step."""
    covariance, widths = torch.eye(2, dtype=torch.float64), []
    for size in map(falling, range(num_draws)):
        chain = sghmc_chain(one, size, 2.0, 4.0, estimate_of(size)).power(5)
        covariance = chain.transition @ covariance @ chain.transition.T
        covariance = covariance + chain.noise_covariance
        widths.append(float(covariance[0, 0]))
    return torch.tensor(widths, dtype=torch.float64)


widths = {
    "no estimate": exact_widths(lambda size: 0.0),
    "kept": exact_widths(lambda size: first_estimate),
    "of each step": exact_widths(lambda size: 0.5 * size * 4.0),
}

# %% mystnb={"figure": {"caption": "SGHMC in the bowl while the step falls from 0.4 to 0.086, V = 4, C = 2: the exact variance of the position (lines) and 10,000 chains (points). 1 is right (grey). The estimate that was right for the first step is wrong for all others.", "name": "fig-sghmc-falling"}, "image": {"alt": "Three lines over the number of draws, from 1 to 300 on a logarithmic scale, with points on them. Without an estimate the variance starts above 1.4 and comes down to 1.1. With the estimate of each step it starts a little above 1 and stays there. With the first estimate kept it falls below 0.7."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.4))
shown = (1, 3, 10, 30, 100, 300)
for (name, values), style in zip(widths.items(), (":", "--", "-"), strict=True):
    label = r"$\hat B = 0$" if name == "no estimate" else rf"$\hat B$ {name}"
    axes.semilogx(
        range(1, num_draws + 1), values, style, color=COLOURS["SGHMC"], label=label
    )
    for draw in shown:
        square = runs[name].samples[draw - 1].square().mean()
        axes.plot(draw, square, "o", ms=4, color=COLOURS["SGHMC"])
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.set(xlabel="draws", ylabel="variance of the position", ylim=(0.5, 1.8))
axes.legend(loc="upper right")
plt.show()

# %% [markdown]
# In {numref}`fig-sghmc-falling` only the estimate of each step stays near 1.
# Without one the chain is too hot, and comes ever closer: its temperature is $1 + B_t/C$.
# The kept one makes it worse than none, and no longer run mends it: with $\varepsilon_t \to 0$ the variance tends to $1 - \hat B/C = 0.6$.
# {doc}`/book/appendix/errata` says so of the paper, which prints one $\hat B$ for all $\varepsilon_t$.

# %% tags=["hide-input"]
far = []
for name, values in widths.items():
    for draw in shown:
        squares = runs[name].samples[draw - 1].square()[:, 0]
        error = float(squares.std()) / len(squares) ** 0.5
        far.append(abs(float(squares.mean() - values[draw - 1])) / error)
claim(
    "Largest distance of eighteen measured variances from the exact ones, in standard "
    "errors",
    max(far),
    at_most=4.8,
    because="10,000 chains each; exceeded by chance once in 35,000 times",
)
last = falling(num_draws - 1)
for name, limit in (
    ("no estimate", 1 + 0.5 * last * 4.0 / 2.0),
    ("kept", 1 - (first_estimate - 0.5 * last * 4.0) / 2.0),
    ("of each step", 1.0),
):
    claim(
        f"Exact variance after 300 draws, {name}, over the temperature at that step",
        widths[name][-1] / limit,
        near=1,
        within=0.015,
        because="exact recursion; the chain is a little behind the step, which falls",
        kind="exact",
    )

# %% [markdown]
# ## Does it pay?
#
# With falling steps a draw stands for the time $m\varepsilon_t$, so averages are weighted with $\varepsilon_t$, as in {eq}`eq-weighted`; `weighted_mean` of the draws does it.
# Reckon as in {ref}`ex-falling-rates`.
# After $K$ steps of a constant size the average of $\theta^2$ has a variance of about $c_2/(\varepsilon K)$, and a bias of about $c_1\varepsilon$ without an estimate, where the heat $B/C$ rules; but $c_1\varepsilon^2$ with the right one, where only the step's own bias is left.
# So the best step is of the order of $K^{-1/3}$, and the error too, without an estimate; with it the best step is of the order of $K^{-1/5}$, and the error of
#
# $$
# K^{-1/3} \quad(\hat B = 0), \qquad K^{-2/5} \quad(\hat B = B).
# $$ (eq-sghmc-rates)
#
# {cite:t}`chen2015` have the squares of these rates, $K^{-2/3}$ and $K^{-4/5}$, for integrators of the first and of the second order, and the same ones for steps that fall at the right speed.
# They state the second for SGHMC with minibatches and a symmetric splitting, without a noise estimate, and that is refuted by the bowl: gradient noise adds its heat $B = \tfrac12\varepsilon V$, which is of the first order, in an integrator of any order. BAOAB, which is symmetric and of order two, halves its bias at half the step (a claim below), and does not quarter it. The better rate needs the estimate, too.


# %%
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
    gamma: min(error_of_falling(first, gamma, 4_000) for first in (0.5, 0.6, 0.7))
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

# %% [markdown]
# The table has the exact errors in the bowl, each with the best step size, or the best first one.
# Falling steps lose a little, at the right exponent as with SGLD: for a number of steps that is known beforehand a constant step is a little better, and what falling steps buy is that it need not be known.

# %% tags=["hide-input"]
for estimated, rate in ((False, 1 / 3), (True, 2 / 5)):
    name = "right estimate" if estimated else "no estimate"
    claim(
        f"Exponent of the best error from 4,000 to 64,000 steps, {name}",
        -math.log(best[estimated, 64_000] / best[estimated, 4_000]) / math.log(16),
        near=rate,
        within=0.015,
        because="exact laws; the limit is reached slowly",
        kind="exact",
    )
for gamma, near in ((1 / 5, 1.07), (1 / 3, 1.33)):
    claim(
        f"Error of falling steps over that of the best constant one, γ = {gamma:.2f}",
        fallen[gamma] / best[True, 4_000],
        near=near,
        within=0.03,
        because="exact laws, 4,000 steps, the best of three first steps",
        kind="exact",
    )
heats = [
    float(
        linear_chain(flows.baoab(size, 2.0), one, 4.0).stationary_covariance()[0, 0] - 1
    )
    for size in (0.1, 0.05)
]
claim(
    "Bias of BAOAB, of the second order, with V = 4 and no estimate, over that at half "
    "the step",
    heats[0] / heats[1],
    near=2,
    within=0.05,
    because="exact laws: B/C is of the first order",
    kind="exact",
)

# %% [markdown]
# ## In practice
#
# * A constant step is simpler than one that falls. If yours falls, $\hat B$ has to fall with it.
# * So give `noise_estimate` as `OnlineNoise(...)`, which is $\tfrac12\varepsilon_t\hat V$ with the step size of the draw, and not as a number.
# * Without an estimate a falling step is safe: the chain is too hot, and less so with every step.
# * Weigh the draws with their step sizes: `draws.weighted_mean()`.
# * Falling steps are for runs whose length is not known beforehand.
#
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | the law of each draw | $\Sigma_{t+1} = F_t\,\Sigma_t\,F_t^\top + Q_t$ | {eq}`eq-sghmc-falling` |
# | temperature at step $t$ | $1 + (B_t - \hat B)/C$ with $B_t = \tfrac12\varepsilon_tV$ | {eq}`eq-temperature` |
# | weighted average | $\sum_t\varepsilon_tf(\theta_t)/\sum_t\varepsilon_t$ | {eq}`eq-weighted` |
# | error after $K$ steps at the best step size | $K^{-1/3}$ with $\hat B = 0$, $K^{-2/5}$ with $\hat B = B$ | {eq}`eq-sghmc-rates` |
#
# ## Change it
#
# * Set `(1 + draw / 3) ** (-1 / 3)` to `(1 + draw / 3) ** 0.0`: the step stays at 0.4, and so the kept estimate is right. The three claims on the temperature show ✗, because at so large a step the own bias of the algorithm is seven per cent; so do the two of {ref}`ex-falling-kept`, because nothing falls.
# * Set `"of each step": OnlineNoise("scalar")` to `"of each step": 0.0`: the chains of that run are as hot as those without an estimate, their points leave the line, and the claim on eighteen measured variances shows ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-falling-rates
#
# An integrator has a bias of $c_1\varepsilon^p$ at a constant step $\varepsilon$, and the average of $K$ steps a variance of $c_2/(\varepsilon K)$.
# Find the best step and the rate of the error, and with it {eq}`eq-sghmc-rates`.
# How much faster than with $p = 1$ does one get to a tenth of the error with $p = 2$?
# ```
#
# ```{solution} ex-falling-rates
# :class: dropdown
#
# The derivative of $c_1^2\varepsilon^{2p} + c_2/(\varepsilon K)$ vanishes where $2p\,c_1^2\varepsilon^{2p+1} = c_2/K$, so that $\varepsilon \propto K^{-1/(2p+1)}$, and the error is of the order of $\varepsilon^p \propto K^{-p/(2p+1)}$: a third for $p = 1$, two fifths for $p = 2$.
# A tenth of the error asks for $10^3 = 1000$ times as many steps with $p = 1$, and for $10^{5/2} \approx 316$ times as many with $p = 2$.
# ```
#
# ```{exercise}
# :label: ex-falling-kept
#
# From which step size on is the kept estimate worse than none?
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
claim(
    "Draws after which the kept estimate is worse than none, by the exact law",
    int(later.int().argmax()) + 1,
    near=28,
    within=1,
    because="exact recursion; by the temperature alone it would be 21",
    kind="exact",
)
claim(
    "It remains worse from then on",
    bool(later[int(later.int().argmax()) :].all()),
    because="exact recursion",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-falling-far
#
# Let $\varepsilon_t = \varepsilon_0\,(1 + t)^{-\gamma}$.
# A chain that starts too wide forgets its start as $e^{-c\,s}$, with the time $s = m\sum_t\varepsilon_t$.
# For which $\gamma$ does it forget the start altogether?
# ```
#
# ```{solution} ex-falling-far
# :class: dropdown
#
# The sum has to diverge, so for $\gamma \le 1$.
# At $\gamma = 1$ the time grows only as $\log t$, and the start is forgotten as a power of $t$, $t^{-cm\varepsilon_0}$.
# For $\gamma > 1$ the time is finite, and the chain stops before it has arrived.
# These are the conditions of {cite:t}`welling2011`; their second, that $\sum_t\varepsilon_t^2$ is finite, is not needed for averages to converge: {prf:ref}`thm-sgld-consistent` does without it for SGLD.
# ```
#
# ````{exercise}
# :label: ex-falling-draw
#
# **Write it yourself.**
# Write a draw of Algorithm 2 with its own step size and its own estimate, and follow three draws beside the package's, on the same random numbers.
#
# ```python
# def draw_of(theta, momentum, step_size, friction, noise_variance, kicks, normals):
#     """The steps of one draw in the bowl U = θ²/2. kicks: standard normal numbers of
#     the gradient's noise, one for each step; normals: those that are injected.
#     Return the new theta and the new momentum."""
#     ...
# ```
# ````
#
# ```{solution} ex-falling-draw
# :class: dropdown
#
# The estimate is made from the step size that the draw has: $\hat B_t = \tfrac12\varepsilon_tV$.
# The momentum goes from draw to draw as it is.
# ```


# %% tags=["hide-input"]
def draw_of(theta, momentum, step_size, friction, noise_variance, kicks, normals):
    """The steps of one draw in the bowl U = θ²/2. kicks: standard normal numbers of
    the gradient's noise, one for each step; normals: those that are injected.
    Return the new theta and the new momentum."""
    estimate = 0.5 * step_size * noise_variance
    injected = (2 * (friction - estimate) * step_size) ** 0.5
    for kick, normal in zip(kicks, normals, strict=True):
        theta = theta + step_size * momentum
        gradient = theta + noise_variance**0.5 * kick
        momentum = momentum - step_size * (gradient + friction * momentum)
        momentum = momentum + injected * normal
    return theta, momentum


kernel = SGHMC(falling, 2.0, OnlineNoise("scalar"), num_steps=5)
noisy = NoisyGradient(bowl, 4.0)
theta = torch.ones(1, 1, dtype=torch.float64)
generator, again = torch.Generator().manual_seed(0), torch.Generator().manual_seed(0)
state = kernel.init(noisy, theta, generator)
momentum = torch.randn(1, 1, generator=again, dtype=torch.float64)
for draw in range(3):
    state, _ = kernel.step(noisy, state, generator)
    kicks = noisy.draw_minibatches(theta, again, 5 * draw, 5)
    normals = torch.randn(5, 1, 1, generator=again, dtype=torch.float64)
    theta, momentum = draw_of(theta, momentum, falling(draw), 2.0, 4.0, kicks, normals)
claim(
    "Three draws with falling steps by this function and by the package differ by",
    (theta - state.position).abs().max(),
    at_most=1e-12,
    because="the same algorithm on the same random numbers; rounding",
    kind="exact",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`chen2014` print the algorithm with steps that fall, {cite:t}`welling2011` brought them to sampling with minibatches, {cite:t}`teh2016` find their best exponent for SGLD, and {cite:t}`chen2015` the rates for integrators of any order.
