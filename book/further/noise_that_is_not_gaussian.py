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

from booklib.page.claims import at_least
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from sgmc import sample
from sgmc.kernels import SGLD

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# The tutorial took the noise of a minibatch gradient as $N(0, V)$ with one $V$ for all places.
# Real noise is larger where the examples disagree more, and it is skew.
# What is sampled then?
#
# Noise $V(\theta)$ that depends on the place does two things: it *heats* on the way uphill, and it *thins out* the samples where it is large. In general no temperature is the sum of both. Skewness comes one order of the step later. (The last section, on what corrects this, needs page 12 of the tutorial, {doc}`an elective </book/tutorial/sgnuts>`.)
#
# The example is small enough for a computer to know everything about it: twelve throws at a basket, a logistic regression with one coefficient $\theta$ and the prior $N(0, 1)$.
# Eleven throws hit, at small inputs, and one at the input 4 misses.
# Minibatches have two examples. The few that contain the miss pull $\theta$ to the left, and the harder the larger $\theta$ is, so the noise grows from left to right.
#
# *A guess before you look.* The noise is large on the right and small on the left. In which tail does SGLD have more samples than the same average noise everywhere would give?
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
# The bump on the right is {c}`per-cent` per cent of the density there.
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
# where $\int f\,dU$ means $\int fU'\,d\theta$, and the constant makes $\int\pi h = 0$. {prf:ref}`thm-sgld-first-order` has the conditions: bounded moments, and test functions that are smooth enough.
#
# The curvature $U''$ stands beside $V$: to first order the error of the step is that of a noise of the variance $U''$.
# For a constant $V$ the noise adds $\tfrac12V(U - \text{const})$, the first order of $e^{-U/T}$ with $T = 1 + \tfrac12\eta V$.
# If $V$ depends on the place, the first term is the heat, added up on the way uphill.
# The second, $-\tfrac12V$, thins out the samples where the noise is large: the chain moves faster there and spends less time.
# In general no $T$ gives the sum of both terms.
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
terms = {"heat": heat, "thinning": thinning, "sum": h}
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
# In the noisy right tail the heat wins, so SGLD has more samples there than with the average noise everywhere. In the quiet left tail there is little heat, so it has fewer, although the thinning elsewhere sends samples there. That answers the guess: the second term alone would keep samples away from noisy places, but the first is larger.
#
# ## What corrects it
#
# In SGHMC a noise estimate corrects the first order if it, too, depends on the place: it vanishes if $E[\hat V \mid \theta] = V(\theta)$, by the proof of {prf:ref}`thm-sghmc-first-order`. The tutorial's estimate from the step's own minibatch has this property as long as nothing is clipped, so the friction has to exceed $\hat B = \tfrac12\varepsilon\hat V$ in every step.
# A *friction that follows the noise* needs no such bound: keep the injected noise $2\varepsilon A$ as it is, and add to the friction what the noise asks for,
#
# $$
# C(y) = A + \tfrac12\varepsilon V(y),
# $$ (eq-following)
#
# at the place $y$ of the kick. In the palindromic step of page 12 the error is then of order $\varepsilon^2$ for Gaussian noise, whatever $V(\theta)$ is ({prf:ref}`thm-following-friction`). This is the integrator of {cite:t}`matthews2018`.
# The table has the shares of the samples in both tails over the posterior's, at $\varepsilon = 0.1$ and $A = 1.6$:


# %% tags=["hide-input"]
def of_two(g, generator):
    """The gradient from two of the twelve examples, and V̂ from the same two."""
    first = torch.randint(12, (len(g), 1), generator=generator)
    second = (first + torch.randint(1, 12, (len(g), 1), generator=generator)) % 12
    pair = g.gather(1, torch.cat([first, second], 1))
    return 6 * pair.sum(1), 12**2 / 2 * 10 / 12 * pair.var(1)


def gaussian(g, generator):
    """A gradient with Gaussian noise of the same variance, and that variance."""
    normal = torch.randn(len(g), generator=generator)
    return g.sum(1) + noise_of(g).sqrt() * normal, noise_of(g)


def own(friction):
    """The tutorial's estimate, from the step's own minibatch, clipped at C."""
    return lambda B, estimate: (friction + 0 * B, estimate.clamp(max=friction))


A = 1.6
settings = {  # C and B̂, from B = ½εV(y) and its estimate from the step's minibatch
    "average": lambda B, estimate: (A + 0.05 * average + 0 * B, 0.05 * average),
    "follows": lambda B, estimate: (A + B, B),
}


def samples(setting, minibatch=of_two, step_size=0.1):
    """Samples of SGHMC's palindromic step (places in time, chains)."""
    generator = torch.Generator().manual_seed(1)
    theta, r = torch.randn(2, 6_000, generator=generator)
    theta, kept = 0.4 + 0.5 * theta, []
    for step in range(round(20 / step_size)):
        y = theta + step_size / 2 * r
        gradient, V_hat = minibatch(examples(y), generator)
        B = step_size / 2 * noise_of(examples(y))
        C, B_hat = setting(B, step_size / 2 * V_hat)
        normal = torch.randn(6_000, generator=generator)
        injected = (2 * step_size * (C - B_hat)) ** 0.5 * normal
        half = step_size / 2 * C
        r = ((1 - half) * r - step_size * gradient + injected) / (1 + half)
        theta = y + step_size / 2 * r
        if step >= 5 / step_size and step % round(0.5 / step_size) == 0:
            kept.append(theta)
    return torch.stack(kept).double()


def shares(kept):
    """Shares of the samples in both tails over the posterior's, and their errors."""
    fine = torch.linspace(-5, 6, 11_001).double()
    density = torch.exp(-throws.energy(fine[:, None]))
    ratios = []
    for tail in (lambda x: x < -0.4, lambda x: x > 1.4):
        right = density[tail(fine)].sum() / density.sum()
        of_chains = tail(kept).double().mean(0) / right
        ratios.append((float(of_chains.mean()), float(of_chains.std()) / 6_000**0.5))
    return ratios


measured = {
    "one friction, one estimate: of the average V": shares(
        samples(settings["average"])
    ),
    "the minibatch's own estimate, clipped at C = 4.5": shares(samples(own(4.5))),
    "friction that follows V, Gaussian noise": shares(
        samples(settings["follows"], gaussian)
    ),
    "friction that follows V, real minibatches": shares(samples(settings["follows"])),
}
show_table(
    ["share of samples over the posterior's", "θ < −0.4", "θ > 1.4"],
    [
        [name, *(f"{x:.2f} ± {error:.2f}" for x, error in row)]
        for name, row in measured.items()
    ],
    live=["θ < −0.4", "θ > 1.4"],
)
(left, error), (right, right_error) = measured[
    "friction that follows V, Gaussian noise"
]
check("follows-left", left, near(1), error=error, because="noise that is not skew")
check(
    "follows-right", right, near(1), error=right_error, because="noise that is not skew"
)

seeds = "three seeds agree to 0.05"
for name, key, tail, bound, reason in (
    (
        "one-left",
        "one friction, one estimate: of the average V",
        0,
        near(0.6, 0.1),
        seeds,
    ),
    (
        "clipped-right",
        "the minibatch's own estimate, clipped at C = 4.5",
        1,
        at_least(2),
        "B̂ is clipped",
    ),
    (
        "skew-left",
        "friction that follows V, real minibatches",
        0,
        near(1.27, 0.12),
        seeds,
    ),
):
    value, error = measured[key][tail]
    check(name, value, bound, error=error, because=reason)

# %% [markdown]
# With one friction and one estimate for all places the quiet left tail has {c}`one-left` of the samples that it should have, and the noisy right tail has too many, although the average noise is right.
# The minibatch's own estimate is clipped where the noise is large, so that the right tail has {c}`clipped-right` times its samples; a larger friction or a smaller step avoids that, at the price of a slow chain.
# With the friction that follows, both tails are right if the noise is Gaussian: {c}`follows-left` and {c}`follows-right`. The real minibatches are skew, which moves the tails at order $\varepsilon^2$: the left tail has {c}`skew-left`.
#
# The correction has a price. $V(y)$ came from all twelve examples, a whole pass in every step. The step's own minibatch cannot replace them, because a friction that depends on the error of the gradient biases the force ({ref}`ex-noise-shared`).
#
# **To remember:** noise that depends on the place heats on the way uphill and thins out the samples where it is large; in general no temperature does both.
#
# ## Change it
#
# * In the visible cell of the two checks set `thinning = -0.5 * both` to `thinning = -0.0 * both`, which leaves the second term out: the order of the formula's error drops from 2 to 1.
# * In the visible cell of the throws set `torch.tensor([4.0])` to `torch.tensor([1.0])`, so that the miss is nothing special: the noise is then small, and even with the average noise both tails are right within a tenth.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-noise-right
#
# ★ Which noise $V(\theta)$ leaves the density of SGLD right to first order? What is it if $U = \tfrac12\theta^2$?
# ```
#
# ```{solution} ex-noise-right
# :class: dropdown
#
# $h' = 0$ means that $\pi(V + U'')$ is constant, so $V = c\,e^{U} - U''$, with $c$ so large that $V \ge 0$: the noise must grow as fast as the density falls.
# (With $h = \alpha U + \text{const}$ the same gives $V = 2\alpha + c\,e^U - U''$: the noises that are a temperature to first order.)
# For the bowl $V = c\,e^{\theta^2/2} - 1$ with $c \ge 1$. Then every place gains as much from the heat on the way to it as it loses by its own noise.
# ```
#
# ````{exercise}
# :label: ex-noise-linear
#
# ★★ **Write it yourself.** A sampler on a Gaussian target is a linear recursion $z' = \varphi z + \xi$, with noises $\xi$ that are independent of the past.
# Which part of its stationary distribution is right although the $\xi$ are not Gaussian?
# Write the recursion of its second and fourth moments, and find the *kurtosis* $E[z^4]/E[z^2]^2$ of the chain from that of $\xi$, which is 3 for a Gaussian.
# (If one example's gradient has kurtosis $\kappa$, a minibatch of $n$ has $3 + (\kappa - 3)/n$. For a class of probability $p$ that the model knows to be rare, $\kappa \approx 1/p$.)
#
# ```python
# def kurtosis_of_chain(phi, kappa, num_steps=1_000):
#     """The kurtosis of z after many steps, from noise of variance 1 and kurtosis κ."""
#     ...
# ```
# ````
#
# ````{solution} ex-noise-linear
# :class: dropdown
#
# ```python
# def kurtosis_of_chain(phi, kappa, num_steps=1_000):
#     second = fourth = 0.0
#     for _ in range(num_steps):
#         fourth = phi**4 * fourth + 6 * phi**2 * second + kappa
#         second = phi**2 * second + 1
#     return fourth / second**2
# ```
#
# Mean and variance of this linear chain are right, because the recursion of the second moment has only the variance of $\xi$.
# In equilibrium $s = 1/(1 - \varphi^2)$ and $f(1 - \varphi^4) = 6\varphi^2s + \kappa$, so the excess $f/s^2 - 3$ is that of the noise times $(1 - \varphi^2)/(1 + \varphi^2)$: the smaller the step, the nearer is $\varphi$ to 1, and the less is left.
# ````


# %% tags=["hide-input"]
def kurtosis_of_chain(phi, kappa, num_steps=1_000):
    second = fourth = 0.0
    for _ in range(num_steps):
        fourth = phi**4 * fourth + 6 * phi**2 * second + kappa
        second = phi**2 * second + 1
    return fourth / second**2


check(
    "coin",
    (kurtosis_of_chain(0.9, 1.0) - 3) / -2 - (1 - 0.81) / (1 + 0.81),
    near(0, 1e-9),
    kind="exact",
    because="exact recursion of the moments",
    says="Excess kurtosis of the chain over that of its noise, a fair coin, less the "
    "formula, φ = 0.9",
)

# %% [markdown]
# ```{exercise}
# :label: ex-noise-shared
#
# ★★★ Let the friction be $A + \tfrac12\varepsilon\hat V$ with $\hat V$ from the step's *own* minibatch. What becomes of the average force of a step? Why did the same $\hat V$ do no harm as a noise estimate?
# ```
#
# ```{solution} ex-noise-shared
# :class: dropdown
#
# A step divides its gradient by $1 + \tfrac12\varepsilon C(y)$. If $C$ is large just when the gradient is far off, the large errors are divided by more than the small ones, and no longer cancel: the average force changes by about $\tfrac14\varepsilon^2\operatorname{Cov}(\zeta, \hat V)$, which for a mean of $n$ examples is in proportion to their skewness.
# As a noise estimate $\hat V$ is only in the variance of a fresh normal number, which is independent of the gradient's error and has mean zero ({prf:ref}`thm-estimate-kick`).
# Here the odd example pulls to the left, and its force is damped, so that the right tail has many times its samples.
# ```
#
# ## Further reading
#
# {cite:t}`vollmer2016` expand the bias of SGLD in the step, {cite:t}`matthews2018` let the friction follow the noise, and {cite:t}`nemeth2021` discuss what assumptions on the noise the theory needs.
