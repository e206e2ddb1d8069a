# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # When there is no stationary distribution
#
# ```{div} page-head
# Level: second course · Reading: about 30 minutes, without the exercises · Running: about 5 seconds
# ```
#
# ```{index} ! escape, ! tamed gradient, ! quasi-stationary distribution
# ```

# %%
import math

import torch

from booklib.page.claims import check, near

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import at_least, at_most, at_most_errors
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# {cite:t}`chen2014` show SGHMC first on a double well, $U = \theta^4 - 2\theta^2$, and its samples look right ({doc}`/book/tutorial/figures_of_the_paper`).
# Does SGHMC have a {term}`stationary distribution` there?
#
# No, at no step size: in the end almost every chain leaves for infinity.
# {numref}`fig-how-far-escape` shows how probable it is that a chain leaves in its next step.
# At $\varepsilon = 0.45$ it lasts {c}`steps-45` steps on average, and at 0.3 {c}`steps-30` thousand. At 0.2 the probability is $10^x$ with $x =$ {c}`power-20`: it falls roughly as $e^{-0.08/\varepsilon^4}$ (grey).
#
# The smallest of these probabilities cannot be counted in chains, so they come from a grid.
# Without its momentum $r = (\theta' - \theta)/\varepsilon$, Algorithm 2 with $M = 1$ moves by
#
# $$
# \begin{aligned}
# \theta'' ={} &\theta' + (1 - \varepsilon C)(\theta' - \theta)\\
# &- \varepsilon^2U'(\theta') + \varepsilon N(0, 2\varepsilon C),
# \end{aligned}
# $$ (eq-how-far-pair)
#
# where the last term is all the noise of a step, the minibatch's and the injected one, as it is with the right $\hat B$.
# So a *pair* of neighbouring positions is a Markov chain.
# Put a grid in the place of the line and a sum in the place of the integral, drop what leaves the grid, and repeat until the distribution of those that are left does not change:


# %%
def pair_law(slope, step_size, reach, friction=3.0, points=120, num_steps=200):
    """The grid, the law of the pairs that are left, and the share that leaves."""
    grid = torch.linspace(-reach, reach, points, dtype=torch.float64)
    old, new = grid[:, None], grid
    mean = new + (1 - step_size * friction) * (new - old) - step_size**2 * slope(new)
    width = step_size * (4 * step_size * friction) ** 0.5  # √2 standard deviations
    kernel = torch.exp(-(((grid - mean[..., None]) / width) ** 2))  # [θ, θ′, θ″]
    kernel *= (grid[1] - grid[0]) / (math.pi**0.5 * width)
    law = torch.exp(-(new**4) - (new - old) ** 2)  # any start will do
    for _ in range(num_steps):
        law = torch.einsum("ij,ijk->jk", law, kernel)  # sum over the oldest place
        law /= law.sum()
    beyond = torch.erfc((reach - mean) / width) + torch.erfc((reach + mean) / width)
    return grid, law, float((law * beyond).sum()) / 2


def quartic_slope(theta):
    return 4 * theta**3 - 4 * theta


def edge(step_size, friction=3.0):
    """The place from which a chain swings ever wider, which is derived below."""
    return (1 + (2 - step_size * friction) / (2 * step_size**2)) ** 0.5


escape = {}
for step_size in (0.45, 0.4, 0.35, 0.3, 0.25, 0.2):
    _, _, escape[step_size] = pair_law(quartic_slope, step_size, 1.5 * edge(step_size))
check("steps-45", 1 / escape[0.45], near(13.6, 0.2), kind="exact", digits=3)

# %% mystnb={"figure": {"caption": "Probability that a chain of SGHMC leaves the double well $\\theta^4 - 2\\theta^2$ for ever in its next step, friction 3: by sums on a grid (dots), and counted among 10,000 chains (circles). Grey: $e^{-0.08/\\varepsilon^4}$.", "name": "fig-how-far-escape"}, "image": {"alt": "On a logarithmic axis six dots fall from nearly a tenth at a step size of 0.45 to about ten to the minus twenty-one at 0.2, ever more steeply. Four circles lie on the first four, from 0.45 to 0.3. A grey curve runs near all of them."}} tags=["hide-input"]
generator, counted = torch.Generator().manual_seed(2), {}
for h in (0.45, 0.4, 0.35, 0.3):
    old = torch.ones(10_000, dtype=torch.float64)
    new = old + h * torch.randn(10_000, generator=generator, dtype=torch.float64)
    first = round(min(100, 1 / escape[h]))  # by then the start is forgotten
    for number in range(3 * first + 1):
        if number == first:
            before = int((new.abs() < 2 * edge(h)).sum())
        noise = torch.randn(10_000, generator=generator, dtype=torch.float64)
        kick = h * (6 * h) ** 0.5 * noise - h**2 * quartic_slope(new)
        old, new = new, (new + (1 - 3 * h) * (new - old) + kick).clamp(-1e9, 1e9)
    after = int((new.abs() < 2 * edge(h)).sum())
    counted[h] = before, after, 2 * first + 1
figure, axes = plt.subplots(figsize=(5.2, 3.2))
steps = torch.linspace(0.195, 0.455, 100)
axes.semilogy(steps, torch.exp(-0.08 / steps.double() ** 4), color=TRUTH, lw=3)
axes.semilogy(*zip(*escape.items(), strict=True), ".", color=COLOURS["SGHMC"])
measured = [1 - (b / a) ** (1 / n) for a, b, n in counted.values()]
axes.semilogy(list(counted), measured, "o", ms=9, mfc="none", color="black")
axes.set(xlabel=r"step size $\varepsilon$", ylabel="probability of escape in a step")
plt.show()

# %% tags=["hide-input"]
check("steps-30", 1e-3 / escape[0.3], near(47.8, 0.5), kind="exact", digits=2)
power = math.log10(escape[0.2])
check("power-20", power, near(-21.43, 0.02), kind="exact", digits=3)
worst = 0.0
for h, (before, after, number) in counted.items():
    stay = (1 - escape[h]) ** number
    of_grid = 0.02 * before * stay * number * escape[h]
    spread = (before * stay * (1 - stay) + of_grid**2) ** 0.5
    worst = max(worst, abs(after - before * stay) / spread)
check(
    "counted",
    worst,
    at_most_errors(),
    because="binomial errors, and 2 % of the grid's probabilities for its spacing",
    says="Largest distance of the four circles from the dots, in standard errors",
)
finer = [
    pair_law(quartic_slope, h, 1.5 * edge(h), points=points)[2] / escape[h]
    for h, points in ((0.45, 160), (0.3, 160), (0.2, 160))
]
check(
    "finer",
    max(abs(ratio - 1) for ratio in finer),
    at_most(0.1),
    kind="exact",
    says="Largest relative change of three of the probabilities on a finer grid",
)

# %% mystnb={"figure": {"caption": "The last steps of a chain at $\\varepsilon = 0.3$, friction 3, before it leaves. Grey: the wells. Dashed: the edges $\\pm\\theta_*$ that are derived below; beyond them each swing is wider than the last. The axis is linear between $-3$ and 3 and logarithmic beyond.", "name": "fig-how-far-path"}, "image": {"alt": "A line that moves irregularly in the grey band of the wells, touches the upper dashed line, and then swings across both to alternating sides, each swing many times wider than the one before."}} tags=["hide-input"]
generator, h, pair = torch.Generator().manual_seed(3), 0.3, [1.0, 1.0]
for noise in (h * (6 * h) ** 0.5 * torch.randn(200_000, generator=generator)).tolist():
    kick = noise - h**2 * quartic_slope(pair[-1])
    pair.append(pair[-1] + (1 - 3 * h) * (pair[-1] - pair[-2]) + kick)
    if abs(pair[-1]) > 1e3:
        break
figure, axes = plt.subplots(figsize=(5.2, 3.0))
axes.axhspan(-2, 2, color=TRUTH, alpha=0.35, lw=0)
for side in (-1, 1):
    axes.axhline(side * edge(h), ls="--", color="black", lw=0.8)
axes.plot(range(-19, 1), pair[-20:], ".-", color=COLOURS["SGHMC"])
axes.set_yscale("symlog", linthresh=3)
axes.set_yticks([-100, -10, -2, 0, 2, 10, 100, 1000])
axes.set_yticklabels(["−100", "−10", "−2", "0", "2", "10", "100", "1,000"])
axes.minorticks_off()
axes.set(xlabel="steps, from the last", ylabel=r"$\theta$", xticks=range(-20, 1, 5))
plt.show()

# %% [markdown]
# ## The edge
#
# The gradient $4\theta^3 - 4\theta$ grows faster than $\theta$, so a step that is small in the middle is too large far out.
# There SGHMC overshoots ({numref}`fig-how-far-path`): the kick carries $\theta$ to the other side, the next one back, and from far enough out it swings wider at every step.
# The border is where $\theta'' = \theta = -\theta'$ solves {eq}`eq-how-far-pair` without noise. With $\theta' = x$ that says $-x = x + (1 - \varepsilon C)\,2x - \varepsilon^2U'(x)$, or
#
# $$
# \varepsilon^2U'(x) = (4 - 2\varepsilon C)\,x ,
# $$
#
# the edge of stability of {prf:ref}`thm-sghmc-variance` with $U'(x)/x$ in the place of the curvature. For the double well its solution is
#
# $$
# \theta_*^2 = 1 + \frac{2 - \varepsilon C}{2\varepsilon^2} .
# $$ (eq-how-far-edge)
#
# For small steps the edge is near $1/\varepsilon$, far outside of the wells, which end at about 2.
# But Gaussian noise reaches every place with a small probability in each step, and a chain that has passed the edge hardly ever returns.
#
# ```{prf:theorem} No stationary distribution
# :label: thm-escape-short
#
# Let $\nabla U$ be bounded on bounded sets, and let $\lvert\nabla U(\theta)\rvert/\lvert\theta\rvert \to \infty$ as $\lvert\theta\rvert \to \infty$. Let the noise be Gaussian, with a variance between two positive bounds. Then SGLD and SGHMC have no stationary distribution at any step size. On almost every path $\lvert\theta\rvert$, or $\lvert(\theta, r)\rvert$, tends to infinity.
# ```
#
# {prf:ref}`thm-escape` has the proof, and the idea is short. Far out the force is so large that a step at least doubles $\lvert\theta\rvert$, unless the noise is as large as $\lvert\theta\rvert$ itself. Each doubling makes such a noise less probable, so quickly that with a positive probability it never comes. So from every start a chain runs to infinity with a positive probability.
# A stationary distribution $\mu$ forbids this: under it a chain is beyond a distance $K$ with the same probability $\mu(\lvert\theta\rvert > K)$ at all times, and this tends to zero as $K$ grows.
#
# So at no step size do all chains stay: a smaller step only moves the edge outwards.
# Whether a run of a given length is *safe* is another question.
#
# ## Right for longer than anyone can wait
#
# How can the samples be good if there is no stationary distribution?
# The distribution of the chains *that have not left yet* does settle, on the grid at least: its limit is the {term}`quasi-stationary distribution` {cite:p}`collet2013`.
# Where the probability of escape is small, a chain forgets its start many times before it leaves, and all that time it samples the quasi-stationary distribution.
#
# How fast does this probability $p$ fall with the step? Put $\theta = x/\varepsilon$ in {eq}`eq-how-far-pair`. For small steps, and without the noise, it becomes $x'' = 2x' - x - 4x'^3$, in which there is no $\varepsilon$ any more. The edge is then at $x = 1$, but the swings already grow out of it from a start at rest at $x = 0.45$ within a hundred steps, from 0.43 within a thousand and from 0.39 within ten thousand, as one sees by iterating it. There the energy is about $x^4/\varepsilon^4$, and a chain climbs so high with a probability of the order of $e^{-x^4/\varepsilon^4}$. So we expect
#
# $$
# p \approx e^{-c/\varepsilon^4}, \qquad c \approx 0.02 \text{ to } 0.04.
# $$ (eq-how-far-rate)
#
# This is an argument and not a proof. On the grid the exponent is still more than twice as large: from $\varepsilon = 0.45$ to 0.2 the number $\ln(1/p)$ becomes nineteen times as large, while $\varepsilon^4\ln(1/p)$ wanders between {c}`rate-small` and {c}`rate-large`.
# By {eq}`eq-how-far-rate` half the step has sixteen times the exponent, for small steps; from 0.4 to 0.2 it has {c}`exponents` times.
#
# At $\varepsilon = 0.2$ the mean of $\theta^2$ is wrong by a relative {c}`bias-20`, the step's own error, and no run that anyone can pay for will see an escape.
# At the paper's $\varepsilon = 0.1$ even $c = 0.02$ makes that $e^{-200}$ in a step: a million steps are safe, and nothing is wrong with the figure of the paper. But this holds for this target, this friction and this number of steps. No theorem extends it to others.
#
# ## What brings a chain back
#
# When is there a stationary distribution? It is enough that the force pulls back at least in proportion to the distance, $\langle\theta, \nabla U\rangle \ge a\lvert\theta\rvert^2 - b$, and that neither it nor its noise grows faster than $\lvert\theta\rvert$. Small steps then have exactly one, and forget the start geometrically ({prf:ref}`thm-ergodic-chain`). Linear and logistic regression with Gaussian priors are of this kind.
# Other models are not: polynomials of degree two or more in the mean of a Gaussian likelihood, factorisations, funnels, and squared errors of a network with a hidden layer of rectifiers. Their gradients grow faster in some directions, and there chains can overshoot as here.
#
# Three changes bring the chain back.
# A *correction* rejects the step across the edge: AMAGOLD ({doc}`/book/further/minibatch_metropolis`) has the exact distribution on the double well.
# A gradient that is *clipped* at a fixed size bounds the kick, but has another target.
# And a *tamed* gradient {cite:p}`brosse2019` is bounded by the step itself, so that the change vanishes with the step. No kick then moves $\theta$ by more than 1, so one scales $\theta$ first, to a posterior about 1 wide:


# %%
def tamed(slope, step_size):
    """U′ / (1 + ε²|U′|): no kick moves θ by more than 1, a width of the target."""
    return lambda theta: slope(theta) / (1 + step_size**2 * slope(theta).abs())


def mean_square(grid, law):
    return float((law.sum(0) * grid**2).sum())


found = {}
for step_size in (0.3, 0.2):
    plain = pair_law(quartic_slope, step_size, 1.5 * edge(step_size))
    bounded = pair_law(tamed(quartic_slope, step_size), step_size, 3 * edge(step_size))
    found[step_size] = mean_square(*plain[:2]), mean_square(*bounded[:2])
    left, right = found[step_size]
    print(f"ε = {step_size}: E[θ²] = {left:.3f}, escaping, and {right:.3f}, tamed")
check("tamed-30", found[0.3][1], near(0.901, 0.002), kind="exact", digits=3)

# %% tags=["hide-input"]
line = torch.linspace(-4, 4, 4_001, dtype=torch.float64)
weights = torch.exp(-(line**4) + 2 * line**2)
truth = float((weights * line**2).sum() / weights.sum())
check("truth", truth, near(0.83275, 1e-5), kind="exact", digits=4)
rates = [-(h**4) * math.log(p) for h, p in escape.items()]
check("rate-large", max(rates), near(0.107, 0.002), kind="exact", digits=2)
check("rate-small", min(rates), near(0.079, 0.002), kind="exact", digits=1)
times = math.log(escape[0.2]) / math.log(escape[0.4])
check("exponents", times, near(13.3, 0.1), kind="exact", digits=2)
bias = found[0.2][0] / truth - 1
check("bias-20", bias, near(-0.0238, 0.0005), kind="exact", digits=2)
ratios = [(right - truth) / (truth - left) for left, right in found.values()]
check(
    "opposite",
    max(abs(ratio - 1) for ratio in ratios),
    at_most(0.1),
    kind="exact",
    digits=1,
    says="Taming errs to the other side, by as much but for a relative",
)
generator = torch.Generator().manual_seed(3)
old = new = torch.full((20_000,), 100.0, dtype=torch.float64)
soft, squares = tamed(quartic_slope, 0.3), []
for number in range(600):
    noise = torch.randn(20_000, generator=generator, dtype=torch.float64)
    kick = 0.3 * 1.8**0.5 * noise - 0.3**2 * soft(new)
    old, new = new, new + 0.1 * (new - old) + kick
    if number >= 500 and number % 5 == 0:
        squares.append(new**2)
squares = torch.stack(squares).mean(0)
check(
    "tamed-chains",
    squares.mean(),
    near(found[0.3][1]),
    error=float(squares.std()) / 20_000**0.5,
    because="the grid",
)

# %% [markdown]
# Tamed chains come back from everywhere: 20,000 of them that start at $\theta = 100$, which lies beyond the edge of every step size of the figure, have $E[\theta^2] =$ {c}`tamed-chains` at $\varepsilon = 0.3$, where the grid says {c}`tamed-30` and the truth is {c}`truth`.
# At these two steps taming is wrong by as much as the plain chain, to the other side: the two errors differ by a relative {c}`opposite` at most.
#
# ```{prf:proposition} The tamed chain has one stationary distribution
# :label: prop-tamed
#
# Let $U'(\theta) \to \pm\infty$ as $\theta \to \pm\infty$ and $0 < \varepsilon C < 2$. Then {eq}`eq-how-far-pair` with $U'/(1 + \varepsilon^2\lvert U'\rvert)$ in the place of $U'$ has exactly one stationary distribution.
# ```
#
# ```{admonition} Proof
# :class: dropdown
#
# Let $k(\theta) = \varepsilon^2U'/(1 + \varepsilon^2\lvert U'\rvert)$, which lies between $-1$ and 1 and tends to $\pm1$. Then $r' = (1 - \varepsilon C)\,r - k(\theta')/\varepsilon + \xi$ with $\theta' = \theta + \varepsilon r$ and $\xi \sim N(0, 2\varepsilon C)$. Since $\lvert1 - \varepsilon C\rvert < 1$ and $k$ is bounded,
#
# $$
# E[r'^2] \le \rho\,r^2 + c \qquad\text{with } \rho < 1 .
# $$
#
# The combination $y = \theta + r/C$ moves by $y' = y - k(\theta')/\varepsilon C + \xi/C$: the friction has cancelled.
# Take $Y = \lvert y\rvert + br^2$ with $bc \le 1/4\varepsilon C$.
# If $r^2$ is large, $E[Y'] - Y$ is at most $-b(1 - \rho)r^2$ plus a constant. If $r$ is bounded and $\lvert y\rvert$ is large, $\theta'$ is far out on the side of $y$, $k(\theta')$ is nearly its sign, and $E[Y'] - Y \le -1/\varepsilon C + 1/4\varepsilon C$ plus what vanishes as $\lvert y\rvert \to \infty$.
# So $Y$ falls by at least a constant on average outside of a bounded set. Two steps have a positive density ({prf:ref}`thm-unique-chain`), and such a chain has one stationary distribution {cite:p}`roberts2004`.
# ```
#
# To test your own model, take random directions $v$ as long as $\theta$, and compare $\lvert\nabla U(sv)\rvert/s$ at $s = 10$, 100 and 1,000. If it keeps growing in any of them, chains can overshoot as here.
#
# **To remember:** where the gradient grows faster than $\lvert\theta\rvert$ there is no stationary distribution, at any step size. In the double well, at small steps, the samples are good for longer than anyone can wait all the same: there an escape has a probability of about $e^{-c/\varepsilon^4}$ in a step.
#
# ## Change it
#
# * In the cell that defines `pair_law` set `0.25, 0.2)` to `0.25, 0.2, 0.15)`, `points=120` to `points=160` and `num_steps=200` to `num_steps=400`: in {numref}`fig-how-far-escape` the dots go on to $10^{-60}$.
# * In the cell that defines `tamed` replace `1 + step_size**2 * slope(theta).abs()` by `1 + slope(theta).abs()`, a clip of a fixed size: $E[\theta^2]$ is far too large at every step size, and the check on it shows ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-how-far-edge
#
# ★ Find the edge of SGLD, and compare it with {eq}`eq-how-far-edge`.
# The code of the paper draws a fresh momentum every 50 steps. Does that save a chain that has passed the edge of SGHMC?
# ```
#
# ```{solution} ex-how-far-edge
# :class: dropdown
#
# SGLD swings from $x$ to $-x$ if $\eta U'(x) = 2x$, so $\theta_*^2 = 1 + 1/2\eta$: that is {eq}`eq-how-far-edge` with $\varepsilon C = 1$ and $\eta = \varepsilon^2$.
# For $\varepsilon C < 1$ a fresh momentum saves next to no chain. With $r = 0$ beyond the edge the next kick alone brings $\theta$ to $\theta - \varepsilon^2U'(\theta)$, which is on the other side and more than $3 - 2\varepsilon C$ times as far out, 2.4 times with the paper's $\varepsilon = 0.1$ and $C = 3$.
# ```
#
# ```{exercise}
# :label: ex-how-far-tamed
#
# ★★ Why has SGLD with the tamed gradient $U'/(1 + \eta\lvert U'\rvert)$ a stationary distribution on the double well, at every $\eta$?
# And why has AMAGOLD one, with no change of the gradient?
# ```
#
# ```{solution} ex-how-far-tamed
# :class: dropdown
#
# A step moves $\theta$ by at most 1 besides the noise, and far out by nearly that much towards the middle: $\eta U'/(1 + \eta\lvert U'\rvert) \to \pm1$. So $E\lvert\theta'\rvert \le \lvert\theta\rvert - \tfrac12$ plus what the noise adds to the mean of $\lvert\theta'\rvert$. Far out that is nearly nothing, because there the noise lengthens or shortens $\lvert\theta'\rvert$ by as much, according to its sign. The chain comes back from far away, its density is positive everywhere, and a stationary distribution exists as in {prf:ref}`prop-tamed`.
# AMAGOLD is in detailed balance with $e^{-U}$, whose integral is finite, so that is stationary. What it does far out is to reject.
# ```
#
# ````{exercise}
# :label: ex-how-far-sgld
#
# ★ **Write it yourself.** Find the probability that SGLD leaves the grid in a step, by the same sums. One position is a Markov chain, so the law is a row of numbers.
#
# ```python
# def sgld_escape(slope, step_size, reach, points=100, num_steps=200):
#     """The share of the chains that leaves in a step, of those that are left."""
#     ...
# ```
#
# With which friction must `pair_law` say the same?
# ````
#
# ````{solution} ex-how-far-sgld
# :class: dropdown
#
# ```python
# def sgld_escape(slope, step_size, reach, points=100, num_steps=200):
#     grid = torch.linspace(-reach, reach, points, dtype=torch.float64)
#     mean = grid - step_size * slope(grid)
#     width = 2 * step_size**0.5
#     kernel = torch.exp(-(((grid - mean[:, None]) / width) ** 2))
#     kernel *= (grid[1] - grid[0]) / (math.pi**0.5 * width)
#     law = torch.exp(-(grid**4))
#     for _ in range(num_steps):
#         law = law @ kernel
#         law /= law.sum()
#     beyond = torch.erfc((reach - mean) / width) + torch.erfc((reach + mean) / width)
#     return float(law @ beyond) / 2
# ```
#
# With $C = 1/\varepsilon$ and $\varepsilon^2 = \eta$, where SGHMC forgets its momentum in every step.
# ````


# %% tags=["hide-input"]
def sgld_escape(slope, step_size, reach, points=100, num_steps=200):
    grid = torch.linspace(-reach, reach, points, dtype=torch.float64)
    mean = grid - step_size * slope(grid)
    width = 2 * step_size**0.5
    kernel = torch.exp(-(((grid - mean[:, None]) / width) ** 2))
    kernel *= (grid[1] - grid[0]) / (math.pi**0.5 * width)
    law = torch.exp(-(grid**4))
    for _ in range(num_steps):
        law = law @ kernel
        law /= law.sum()
    beyond = torch.erfc((reach - mean) / width) + torch.erfc((reach + mean) / width)
    return float(law @ beyond) / 2


same = dict(points=100, num_steps=200)
ratios = [
    sgld_escape(quartic_slope, h**2, 3.0, **same)
    / pair_law(quartic_slope, h, 3.0, 1 / h, **same)[2]
    for h in (0.4, 0.3)
]
check(
    "sgld",
    max(abs(ratio - 1) for ratio in ratios),
    at_most(1e-9),
    kind="exact",
    because="the same chain; rounding",
    says="The solution and `pair_law` differ, at two step sizes, by a relative",
)
check(
    "sgld-leaves",
    sgld_escape(quartic_slope, 0.3**2, 3.0) / escape[0.3],
    at_least(2),
    kind="exact",
    says="Escape of SGLD at η = 0.3² over that of SGHMC at ε = 0.3",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`roberts1996` found that SGLD's chain with exact gradients can be transient where the diffusion converges, and truncated the gradient of their Metropolis proposals (MALTA); {cite:t}`brosse2019` tame it, {cite:t}`collet2013` is the book on quasi-stationary distributions, and {cite:t}`leimkuhler2016` is the book on integrators of Langevin's equation.
# Where a stationary distribution exists, {prf:ref}`thm-general-order` says when that of Algorithm 2 is wrong by no more than the order $\varepsilon^2$, and {prf:ref}`thm-wasserstein` bounds the error of SGLD at every step.
# {cite:t}`akyildiz2024` bound SGHMC's distance from its target, uniformly in the number of steps, where the gradient grows no faster than $\lvert\theta\rvert$.
