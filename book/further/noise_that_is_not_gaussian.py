# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Noise that depends on the place
#
# ```{div} page-head
# Level: second course · Reading: about 29 minutes, without the exercises · Running: about 8 seconds
# ```
#
# ```{index} ! kurtosis, ! rare classes
# ```

# %%
import itertools

import torch

from booklib.page.claims import check, near
from sgmc.posteriors import LogisticRegression

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import at_least, at_most
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from sgmc import sample
from sgmc.kernels import SGLD

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# The tutorial took the noise of a minibatch gradient as $N(0, V)$ with one $V$ for all places.
# Real noise is larger where the examples disagree more, and it can be skew.
# What is sampled then?
#
# Noise $V(\theta)$ that depends on the place does two things: it *heats* on the way uphill, and it *thins out* the samples where it is large. No temperature does both. Skewness matters only one order of the step later. (The last section, on what corrects this, needs page 12 of the tutorial, {doc}`an elective </book/tutorial/sgnuts>`.)
#
# The example is small enough for a computer to know everything about it: twelve throws at a basket, a logistic regression with one coefficient $\theta$ and the prior $N(0, 1)$.
# Eleven throws hit, at small inputs, and one at the input 4 misses.
# Minibatches have two examples. The few that contain the miss pull $\theta$ to the left, and the harder the larger $\theta$ is, so the noise grows from left to right.
#
# *A guess before you look.* The noise is large on the right and small on the left. Which tail has more samples than it would have with the average noise everywhere?
#
# There are 66 minibatches. All of them at every place of a grid give the exact stationary distribution of SGLD:


# %%
inputs = torch.cat([torch.linspace(0.2, 1.2, 11), torch.tensor([4.0])])
labels = torch.tensor([1.0] * 11 + [0.0])  # eleven hits and a miss
grid = torch.linspace(-5, 6, 441).double()


def examples(theta):
    """The gradients of the twelve examples, each with its share of the prior's."""
    hit = torch.sigmoid(inputs * theta[..., None])
    return inputs * (hit - labels) + theta[..., None] / 12


def noise_of(g):
    """V of minibatches of two, from the gradients of all twelve examples."""
    return 12**2 / 2 * 10 / 11 * g.var(-1, correction=0)


throws = LogisticRegression(inputs.double()[:, None], labels.double(), batch_size=2)
target = torch.exp(-throws.energy(grid[:, None]))
target = target / target.sum()  # the posterior on the grid
noise, slope = noise_of(examples(grid)), examples(grid).sum(-1)  # V(θ) and U′


def sgld_on_the_grid(step_size):
    """The stationary distribution of SGLD, by all minibatches of two."""
    pairs = torch.tensor(list(itertools.combinations(range(12), 2)))
    gradient = 12 / 2 * examples(grid)[:, pairs].sum(-1)  # (places, minibatches)
    away = grid[:, None, None] - (grid[:, None] - step_size * gradient)
    moves = torch.exp(-away.square() / (4 * step_size)).mean(-1)  # [to, from]
    return torch.linalg.matrix_power(moves / moves.sum(0), 4_096)[:, 220]


# %% mystnb={"figure": {"caption": "Top: the posterior of the coefficient (grey) and the noise $V(\\theta)$ of minibatches of two among twelve examples (line). Bottom: what SGLD at $\\eta = 0.002$ adds to the density, divided by $\\eta$: enumerated (thick), by this page's formula (dashed), and by the best of all temperatures (dotted).", "name": "fig-how-far-local"}, "image": {"alt": "Top: a grey hill at 0.3, and a curve of the noise that rises across it from below 10 on the left to above 80 on the right. Bottom: the enumerated change is negative in the middle and has a positive bump on either side; the dashed line lies on it, the dotted one is a similar curve too far to the left."}} tags=["hide-input"]
hits = torch.sigmoid(inputs * grid[:, None])
curvature = (inputs.square() * hits * (1 - hits)).sum(-1) + 1  # U″


def first_order(noise):
    """The formula h that this page derives, for a noise V(θ)."""
    both = noise + curvature
    uphill = torch.cumulative_trapezoid(both * slope, grid)
    h = 0.5 * torch.cat([torch.zeros(1).double(), uphill]) - 0.5 * both
    return h - (target * h).sum()


def far(density, other):
    """The distance of two densities on the grid in total variation."""
    return float((density - other).abs().sum()) / 2


temperatures = [first_order(torch.full_like(grid, float(V))) for V in range(101)]
found = sgld_on_the_grid(0.002)
best = min(temperatures, key=lambda h: far(found, target * (1 + 0.002 * h)))
width = float(grid[1] - grid[0])
figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.2, 5.2), sharex=True)
top.fill_between(grid, target / width, color=TRUTH, alpha=0.35, lw=0)
top.set(ylabel="density", xlim=(-1.8, 2.2), ylim=(0, 1))
twin = top.twinx()
twin.plot(grid, noise, color="black")
twin.set(ylabel=r"noise $V(\theta)$", ylim=(0, 120))
change = (found - target) / width / 0.002
style = {"color": COLOURS["SGLD"], "lw": 4, "alpha": 0.5}
bottom.plot(grid, change, **style, label="enumerated")
bottom.plot(
    grid, target * first_order(noise) / width, "--", color="black", label="formula"
)
bottom.plot(grid, target * best / width, ":", color="black", label="best temperature")
bottom.set(xlabel=r"$\theta$", ylabel=r"change of the density, over $\eta$")
figure.legend(*bottom.get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %% [markdown]
# In {numref}`fig-how-far-local` the formula (dashed) lies on the enumerated change (thick), and the best temperature (dotted) does not: it adds too much on the far left, where the noise is small, and its trough stands too far to the left.
# At $\eta = 0.002$ the bump on the right is {c}`per-cent` per cent of the density there.
#
# ## What a step does to a mean
#
# Let $\zeta$ be the gradient's noise at $\theta$, with mean zero and variance $V(\theta)$, of any shape. A step of SGLD is $\delta = -\eta(U' + \zeta) + N(0, 2\eta)$, and has the moments
#
# $$
# \begin{aligned}
# E\delta &= -\eta U', & E\delta^2 &= 2\eta + \eta^2(U'^2 + V),\\
# E\delta^3 &\approx -6\eta^2U', & E\delta^4 &\approx 12\eta^2,
# \end{aligned}
# $$ (eq-noise-moments)
#
# up to terms of order $\eta^3$.
# The skewness of $\zeta$ is among those terms, as $-\eta^3E\zeta^3$ in $E\delta^3$, and its fourth moment enters at order $\eta^4$.
# (When is noise nearly Gaussian? If one example's gradient has the *kurtosis* $\kappa$, a fourth moment of $\kappa$ squared variances, a minibatch of $n$ has $3 + (\kappa - 3)/n$, where a Gaussian has 3. For a class of probability $p$ that the model knows to be rare, $\kappa \approx 1/p$.)
#
# *Step 1: a balance.* In equilibrium a step changes no mean. Take a smooth function $\varphi$, expand $\varphi(\theta + \delta)$ by Taylor's formula, and write the stationary density as $\pi(1 + \eta h)$ with the posterior $\pi$ and an unknown $h$. The average change of $\varphi$ is
#
# $$
# \begin{aligned}
# 0 ={} &\eta\int\pi(1 + \eta h)(\varphi'' - U'\varphi')\,d\theta\\
# &+ \eta^2\int\pi\bigl[\tfrac12(U'^2 + V)\varphi'' - U'\varphi''' + \tfrac12\varphi''''\bigr]d\theta + O(\eta^3).
# \end{aligned}
# $$
#
# *Step 2: the first integral.* Since $\pi' = -U'\pi$, the bracket times $\pi$ is a derivative, $\pi(\varphi'' - U'\varphi') = (\pi\varphi')'$. Its integral vanishes, and what is left is of order $\eta^2$:
#
# $$
# \int h\,(\pi\varphi')'\,d\theta = -\int\pi h'\varphi'\,d\theta.
# $$
#
# *Step 3: the second integral.* The same rule removes the third and fourth derivatives:
#
# $$
# \begin{aligned}
# -\int\pi U'\varphi''' &= \int\pi'\varphi''' = -\int\pi\varphi'''',\\
# \int\pi\varphi'''' &= \int\pi''\varphi'' = \int\pi(U'^2 - U'')\varphi''.
# \end{aligned}
# $$
#
# With the $\tfrac12\varphi''''$ of the bracket that makes $-\tfrac12\int\pi(U'^2 - U'')\varphi''$, so that $U'^2$ cancels and
#
# $$
# \tfrac12\int\pi(V + U'')\,\varphi''\,d\theta = -\tfrac12\int\bigl(\pi(V + U'')\bigr)'\varphi'\,d\theta
# $$
#
# is all that is left.
#
# *Step 4: compare.* The sum of both is zero for every $\varphi$, so $\pi h' = -\tfrac12\bigl(\pi(V + U'')\bigr)'$. Divide by $\pi$, use $\pi' = -U'\pi$, and integrate:
#
# $$
# h = \tfrac12\int(V + U'')\,dU - \tfrac12(V + U'') + \text{const},
# $$ (eq-how-far-density)
#
# where $\int f\,dU$ means $\int fU'\,d\theta$, and the constant makes $\int\pi h = 0$. The expansion needs bounded moments, smooth test functions ({prf:ref}`thm-sgld-first-order`), and steps with $\eta V \ll 1$ wherever there is mass.
#
# The curvature $U''$ stands beside $V$: to first order the error of the step is that of a noise of the variance $U''$.
# For a constant $V$ the noise adds $\tfrac12V(U - \text{const})$, the first order of $e^{-U/T}$ with $T = 1 + \tfrac12\eta V$.
# If $V$ depends on the place, the first term is the heat, added up on the way uphill.
# The second, $-\tfrac12V$, thins out the samples where the noise is large: the chain moves faster there and spends less time.
# No $T$ gives the sum of both terms, unless $V$ has a special form ({ref}`ex-noise-right`).
#
# Two checks on the grid test this. The distance (in total variation) of the enumerated distribution from $\pi(1 + \eta h)$ has to fall as $\eta^2$. And Gaussian noise with the same $V(\theta)$, in place of the skew noise of the minibatches, must change the distribution by order $\eta^2$ only.


# %%
hits = torch.sigmoid(inputs * grid[:, None])
both = noise + (inputs.square() * hits * (1 - hits)).sum(-1) + 1  # V + U″


def two_terms(both):
    """Heat and thinning, the two terms of h, from V + U″, each with the mean zero."""
    uphill = torch.cumulative_trapezoid(both * slope, grid)
    heat = 0.5 * torch.cat([torch.zeros(1).double(), uphill])
    thinning = -0.5 * both
    return heat - (target * heat).sum(), thinning - (target * thinning).sum()


heat, thinning = two_terms(both)
h = heat + thinning


def gaussian_on_the_grid(step_size):
    """The distribution for Gaussian noise with the variance V(θ)."""
    variance = 2 * step_size + step_size**2 * noise
    away = grid[:, None] - (grid - step_size * slope)
    moves = torch.exp(-away.square() / (2 * variance)) / variance.sqrt()
    return torch.linalg.matrix_power(moves / moves.sum(0), 4_096)[:, 220]


gaps = {"formula": [], "skewness": []}
for size in (0.004, 0.002):
    found = sgld_on_the_grid(size)
    gaps["formula"].append((found - target * (1 + size * h)).abs().sum() / 2)
    gaps["skewness"].append((found - gaussian_on_the_grid(size)).abs().sum() / 2)
for name, (coarse, fine) in gaps.items():
    order = float((coarse / fine).log2())
    check(f"order-{name}", order, near(2, 0.2), kind="exact", digits=3)

# %% tags=["hide-input"]
best = min(far(found, target * (1 + 0.002 * x)) for x in temperatures)
check("how-much-worse", best / gaps["formula"][1], at_least(7), kind="exact", digits=2)
peak = int((target * h * (grid > 0.4)).argmax())
gain = 100 * (found / target - 1)[peak]
check("per-cent", gain, near(8.5, 0.1), kind="exact", digits=2)
centre = float((target * grid).sum())
start = torch.full((5_000, 1), centre, dtype=torch.float64)
run = sample(SGLD(0.02), throws, start, num_samples=5, warm_up=100, thinning=15, seed=3)
value, error = run.mean_and_standard_error(lambda x: x)
exact = near(float((sgld_on_the_grid(0.02) * grid).sum()))
check("sgld-run", value, exact, error=float(error), because="the enumeration")

# %% [markdown]
# The first distance falls with the order {c}`order-formula` in $\eta$, and the second with {c}`order-skewness`. At $\eta = 0.002$ the best of all temperatures is {c}`how-much-worse` times as far off as the formula; and the package's SGLD with real minibatches, at $\eta = 0.02$, has the mean of the enumeration: {c}`sgld-run`.
#
# Which term wins? {numref}`fig-noise-terms` has them one by one, and the table adds them up in both tails.

# %% tags=["hide-input"]
average = float((target * noise).sum())  # V̄
rows = []
terms = {"heat": heat, "thinning": thinning, "sum, rounded": h}
terms["average noise everywhere"] = sum(two_terms(both - noise + average))
for name, term in terms.items():
    left, right = (
        float((target * term)[tail].sum() / target[tail].sum())
        for tail in (grid < -0.41, grid > 1.41)  # 1.4 is on the grid, up to rounding
    )
    rows.append([name, f"{left:.0f} η", f"{right:.0f} η"])
show_table(["relative change of a tail's share", "θ < −0.4", "θ > 1.4"], rows)

# %% mystnb={"figure": {"caption": "The change of the density over $\\eta$ (dashed, as in {numref}`fig-how-far-local`), and its two terms, each with the mean zero: heat, $\\frac{1}{2}\\int(V + U'')\\,dU$ (solid), and thinning, $-\\frac{1}{2}(V + U'')$ (dotted).", "name": "fig-noise-terms"}, "image": {"alt": "The solid line has a trough in the middle and a high bump on the right, and little on the left. The dotted line is positive on the left, and slightly negative on the right. Their sum, dashed, has bumps on both sides."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3))
for term, line, label in ((heat, "-", "heat"), (thinning, ":", "thinning")):
    axes.plot(grid, target * term / width, line, color="black", label=label)
axes.plot(grid, target * h / width, "--", color=COLOURS["SGLD"], label="sum")
axes.set(xlabel=r"$\theta$", ylabel=r"change, over $\eta$", xlim=(-1.8, 2.2))
axes.legend()
plt.show()

# %% [markdown]
# In the noisy right tail the heat wins, so SGLD has more samples there than with the average noise everywhere. In the quiet left tail there is little heat, so it has fewer, although the thinning elsewhere sends samples there. That answers the guess. On the right the heat is larger than the thinning. On the left most of what is added is thinning, and both together are about half of what average noise would bring.
#
# ## What corrects it
#
# *An estimate that follows the place.* With $\hat B = \tfrac12\eta\hat V$ and $E[\hat V \mid \theta] = V(\theta)$ the term $V$ drops out of $E\delta^2$, so $h$ keeps only $U''$. For SGHMC the proof of {prf:ref}`thm-sghmc-first-order` says the same. The tutorial's estimate from the step's own minibatch is of this kind, as long as the friction exceeds $\tfrac12\varepsilon\hat V$ in every step.
#
# *A friction that follows the noise* needs no such bound. It keeps the injected noise $2\varepsilon D$ as it is, and takes $C(y) = D + \tfrac12\varepsilon V(y)$ at the place $y$ of the kick. In the palindromic step of page 12 the error is then of order $\varepsilon^2$ for Gaussian noise, whatever bounded $V(\theta)$ it follows ({prf:ref}`thm-following-friction`). At $\varepsilon = 0.1$ and $D = 1.6$, with Gaussian noise, the left tail $\theta < -0.4$ has {c}`follows-left` of its share, and the right tail $\theta > 1.4$ {c}`follows-right`. With the *average* of $V$ in the place of $V(y)$ they have {c}`one-left` and {c}`one-right`.
#
# *Why not the step's own minibatch?* The friction costs a pass in every step, because $V(y)$ comes from all twelve examples. An estimate from the step's own minibatch cannot replace it: a friction that depends on the error of the gradient biases the force ({ref}`ex-noise-shared`).


# %% tags=["hide-input"]
def tails(follows, step_size=0.1, D=1.6):
    """Shares of the samples in both tails over the posterior's, and their errors."""
    generator, half = torch.Generator().manual_seed(1), step_size / 2
    theta, r = torch.randn(2, 6_000, generator=generator)
    theta, kept = 0.4 + 0.5 * theta, []
    for step in range(200):
        y = theta + half * r
        V = noise_of(examples(y))
        C = D + half * (V if follows else average)
        normal, other = torch.randn(2, 6_000, generator=generator)
        gradient = examples(y).sum(1) + V.sqrt() * normal
        kick = (2 * step_size * D) ** 0.5 * other - step_size * gradient
        r = ((1 - half * C) * r + kick) / (1 + half * C)
        theta = y + half * r
        if step >= 50 and step % 5 == 0:
            kept.append(theta)
    kept = torch.stack(kept).double()
    fine = torch.linspace(-5, 6, 11_001).double()
    density = torch.exp(-throws.energy(fine[:, None]))
    for tail in (lambda x: x < -0.4, lambda x: x > 1.4):
        ratios = tail(kept).double().mean(0) * density.sum() / density[tail(fine)].sum()
        yield ratios.mean(), float(ratios.std()) / 6_000**0.5


for side, (value, error) in zip(("left", "right"), tails(True), strict=True):
    check(f"follows-{side}", value, near(1), error=error)
(left, _), (right, _) = tails(False)
check("one-left", left, near(0.45, 0.1), digits=2)
check("one-right", right, near(1.6, 0.15), digits=2)

# %% [markdown]
# **To remember:** noise that depends on the place heats on the way uphill, and thins out the samples where it is large. No temperature does both.
#
# ## Change it
#
# * In the visible cell of the two checks set `thinning = -0.5 * both` to `thinning = -0.0 * both`, which leaves the second term out: the order of the formula's error drops from 2 to 1.
# * In the visible cell of the throws set `torch.tensor([4.0])` to `torch.tensor([1.0])`, so that the miss is nothing special: the noise is then small, and in the last section both tails are right within a tenth even with its average.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-noise-right
#
# ★ Which noise $V(\theta)$ would leave the density of SGLD right to first order? What is it if $U = \tfrac12\theta^2$, and does the expansion hold for it?
# ```
#
# ```{solution} ex-noise-right
# :class: dropdown
#
# $h' = 0$ means that $\pi(V + U'')$ is constant, so $V = c\,e^{U} - U''$, with $c$ so large that $V \ge 0$: the noise must grow as fast as the density falls.
# (With $h = \alpha U + \text{const}$ the same gives $V = 2\alpha + c\,e^U - U''$: the noises that are a temperature to first order.)
# For the bowl $V = c\,e^{\theta^2/2} - 1$ with $c \ge 1$: every place would gain as much from the heat on the way to it as it loses by its own noise.
# But on the whole line $E_\pi[V]$ is then infinite: the expansion does not apply, and the chain escapes at every step size. It is an answer on a bounded interval alone.
# ```
#
# ````{exercise}
# :label: ex-noise-shared
#
# ★★★ **Write it yourself.** Let the friction be $D + \tfrac12\varepsilon\hat V$ with $\hat V$ from the step's *own* minibatch.
#
# ```python
# def own_noise(pair):
#     """An unbiased V̂ (chains,) from the gradients (chains, 2) of two of the twelve."""
#     ...
# ```
#
# What becomes of the average force of a step? Why did the same $\hat V$ do no harm as a noise estimate?
# ````
#
# ````{solution} ex-noise-shared
# :class: dropdown
#
# ```python
# def own_noise(pair):
#     return 12**2 / 2 * (1 - 2 / 12) * pair.var(-1)
# ```
#
# A step divides its gradient by $1 + \tfrac12\varepsilon C(y)$. If $C$ is large just when the gradient is far off, the large errors are divided by more than the small ones, and no longer cancel: the average force changes by about $\tfrac14\varepsilon^2\operatorname{Cov}(\zeta, \hat V)$, which for a mean of $n$ examples is in proportion to their skewness.
# As a noise estimate $\hat V$ is only in the variance of a fresh normal number, which is independent of the gradient's error and has mean zero ({prf:ref}`thm-estimate-kick`).
# Here the odd example pulls to the left, and its force is damped: with this friction, at $\varepsilon = 0.1$ and $D = 1.6$, the right tail has {c}`own-right` times its samples.
# ````


# %% tags=["hide-input"]
def own_noise(pair):
    return 12**2 / 2 * (1 - 2 / 12) * pair.var(-1)


pairs = torch.tensor(list(itertools.combinations(range(12), 2)))
g = examples(grid)
gap = (own_noise(g[:, pairs]).mean(-1) / noise_of(g) - 1).abs().max()
says = "The solution's mean over all 66 minibatches is wrong by a relative"
check("written", gap, at_most(1e-4), kind="exact", says=says)
generator = torch.Generator().manual_seed(1)
theta, r = torch.randn(2, 6_000, generator=generator)
theta, kept = 0.4 + 0.5 * theta, []
for step in range(200):
    y = theta + 0.05 * r
    pick = pairs[torch.randint(66, (6_000,), generator=generator)]
    pair = examples(y).gather(1, pick)
    half_C = 0.05 * (1.6 + 0.05 * own_noise(pair))
    kick = 0.32**0.5 * torch.randn(6_000, generator=generator) - 0.1 * 6 * pair.sum(1)
    r = ((1 - half_C) * r + kick) / (1 + half_C)
    theta = y + 0.05 * r
    if step >= 50 and step % 5 == 0:
        kept.append((theta > 1.41).double().mean())  # 1.4 of the grid
share = target[grid > 1.41].sum()
check("own-right", sum(kept) / len(kept) / share, near(8.3, 1.0), digits=2)

# %% [markdown]
# ## Further reading
#
# {cite:t}`vollmer2016` expand the bias of SGLD in the step, {cite:t}`matthews2018` have the integrator whose friction follows the noise, and {cite:t}`nemeth2021` discuss what assumptions on the noise the theory needs.
