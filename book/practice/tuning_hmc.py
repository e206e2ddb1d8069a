# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Tuning HMC and NUTS
#
# ```{div} page-head
# Level: second course · Reading: about 19 minutes, without the exercises · Running: about 7 seconds
# ```
#
# ```{index} ! tuning HMC, ! mass matrix, ! warm-up, ! dual averaging, ! adaptation, ! divergences, ! divergent
# ```
#
# What must be chosen for HMC and NUTS, and what does a wrong choice cost?
#
# NUTS with a {term}`warm-up` (*warmup* in Stan and NumPyro) chooses everything: `adapt` learns the step size and the mass, and the tree the length of the paths.
# HMC with the best number of steps has {c}`hmc-best` times its effective samples per gradient, but that number has to be found, and a wrong one costs far more.
# Copy these lines, with your posterior from the {doc}`recipes </book/practice/recipes>` in place of `target`, and read the four marks:

# %%
import torch

from sgmc import sample
from sgmc.diagnostics import split_r_hat
from sgmc.kernels import HMC, NUTS
from sgmc.targets import Gaussian
from sgmc.tuning import adapt

# %% tags=["hide-input"]
import math
import warnings

import matplotlib.pyplot as plt

from booklib.page.claims import at_least, at_most, at_most_errors, check, near
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from sgmc.tuning.adaptation import DualAveraging

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Bad lengths are tried on purpose below, and what sample remarks of them is known.
warnings.filterwarnings("ignore", message=".*do not agree")

# %%
scales = torch.logspace(-1, 1, 10)  # standard deviations from 0.1 to 10
target = Gaussian(torch.diag(scales**2))  # yours
start = torch.zeros(100, 10)  # 100 chains
tuned, position = adapt(NUTS(step_size=1.0), target, start, num_steps=100, seed=7)
draws = sample(tuned, target, position, num_samples=50, seed=8)
for mark in ("acceptance", "diverged", "depth_limited"):
    print(mark, f"{float(draws.statistics[mark].double().mean()):.1f}")
print("R̂ at most 1.01:", bool(split_r_hat(draws.samples).max() <= 1.01))

# %% tags=["hide-input"]
from dataclasses import replace


def gradients_a_sample(draws):
    """Gradients that a sample cost, after the first."""
    number = draws.statistics["num_gradients"].double()
    return float((number[-1] - number[0]).mean()) / (len(number) - 1)


unit_mass = replace(tuned, mass=1.0, step_size=0.15)  # the step that suits this mass
elsewhere = target.exact_samples(50, torch.Generator().manual_seed(6))
untuned = sample(unit_mass, target, elsewhere, num_samples=10, seed=9)
ratio = gradients_a_sample(untuned) / gradients_a_sample(draws)
check("cost-of-mass", ratio, at_least(15.0), because="seeds give 21 to 24")
check(
    "mass",
    (tuned.mass.rsqrt() / scales - 1).abs().max(),
    at_most(0.15),
    because="5,000 correlated samples know a scale to a few per cent",
)
check(
    "reached",
    draws.statistics["acceptance"].mean(),
    near(0.8, 0.08),
    because="100 steps of dual averaging over 100 chains; seeds differ by 0.02",
)
square, error = draws.mean_and_standard_error(lambda x: (x / scales).square().mean(-1))
check(
    "square",
    square,
    near(1.0),
    error=float(error),
    because="100 chains",
    says="Mean of (θ/scale)² over the ten coordinates, from the tuned kernel",
)

# %% [markdown]
# | mark | right | otherwise |
# | --- | --- | --- |
# | acceptance | near its target, 0.8 unless you gave another | more steps of `adapt`; too small a step costs little, too large a one much |
# | share of divergent trees | 0 | all: the step is too long, `adapt`; some: a funnel, so a {ref}`non-centred hierarchy <my-pyro-program>`, then `target_acceptance=0.95` |
# | share at the largest depth | 0 | too small a step or a wrong mass: standardise the inputs, adapt for longer |
# | $\hat R$ | at most 1.01 | more samples, or {ref}`modes <chains-disagree>` |
#
# All chains together learn the mass: give `adapt` some thousand positions for a final run, 100 steps of 100 chains or 500 of ten; the four hundred of the recipes do for a few parameters.
# The learned mass is right to {c}`mass` in the worst of the ten scales; with mass 1 a sample costs {c}`cost-of-mass` times as many gradients.
#
# ## What the acceptance says
#
# A longer step moves further with each gradient, but is rejected more often.
# With many alike coordinates the energy error $\Delta$ of a trajectory is nearly Gaussian, and $E[e^{-\Delta}] = 1$ ({prf:ref}`thm-energy-error`) makes it $N(\tfrac12\delta^2, \delta^2)$ with some $\delta$.
# Of such errors the share
#
# $$
# a = 2\Phi(-\tfrac12\delta)
# $$ (eq-hmc-acceptance)
#
# is accepted, where $\Phi$ is the distribution function of $N(0, 1)$.
# For leapfrog $\delta$ grows as $\varepsilon^2$ ({ref}`ex-hmc-dimension`). So what a gradient is worth, the acceptance times the distance, goes as
#
# $$
# a\,\varepsilon \propto a\,\sqrt{-\Phi^{-1}(a/2)} .
# $$ (eq-hmc-worth)
#
# In {numref}`fig-tuning-acceptance` HMC in 400 dimensions lies near this curve.
# The best acceptance is {c}`best-acceptance` {cite:p}`beskos2013`. At 0.9, with {c}`step-90` of the best step, a gradient is worth {c}`worth-90` of the best; with twice the best step it is worth {c}`worth-twice`.
# So a warm-up aims at 0.8, on the side where a mistake costs little.

# %% mystnb={"figure": {"caption": "What a gradient of HMC is worth, the best being 1, against the acceptance: the formula for many coordinates (line), and HMC on a standard Gaussian of 400 dimensions at six step sizes, paths of length 1.5 (circles).", "name": "fig-tuning-acceptance"}, "image": {"alt": "A curve over the acceptance that rises steeply from 0 at 0, has its top near 0.65 and falls towards 0 at 1. Six circles lie on it."}} tags=["hide-input"]
step = torch.linspace(0.001, 1.5, 1_500, dtype=torch.float64)  # √(δ/2)
accepted = 2 * torch.special.ndtr(-(step**2))
best = int((accepted * step).argmax())
worth = accepted * step / (accepted * step)[best]
many = Gaussian.standard(400)
first = many.exact_samples(200, torch.Generator().manual_seed(1))
unit = (20 * math.sin(1.5) / 8) ** 0.5  # √(δ/2) over ε, since δ = ¼ε²√d sin 1.5
circles, far = [], []
for number in (10, 6, 5, 4, 3, 2):
    size = 1.5 / number
    moved = sample(HMC(size, number), many, first, num_samples=1, seed=2)
    of_chains = moved.statistics["acceptance"][0].double()
    share = float(of_chains.mean())
    circles.append((share, share * size * unit / float((accepted * step)[best])))
    expected = 2 * float(torch.special.ndtr(torch.tensor(-((size * unit) ** 2))))
    error = math.hypot(float(of_chains.std()) / 200**0.5, 0.5 * size**2 * share)
    far.append(abs(share - expected) / error)
figure, axes = plt.subplots(figsize=(5.2, 3.2))
axes.plot(accepted, worth, color=TRUTH)
axes.plot(*zip(*circles, strict=True), "o", color=COLOURS["HMC"])
axes.set(xlabel="acceptance", ylabel="worth of a gradient", ylim=(0, 1.1))
plt.show()

# %% tags=["hide-input"]
safe = int((accepted - 0.9).abs().argmin())
exact = dict(kind="exact", digits=2)
check("best-acceptance", accepted[best], near(0.652, 0.002), **exact)
check("step-90", step[safe] / step[best], near(0.527, 0.005), **exact)
check("worth-90", worth[safe], near(0.728, 0.003), **exact)
check("worth-twice", worth[2 * best + 1], near(0.2175, 0.002), **exact)
check(
    "circles",
    max(far),
    at_most_errors(),
    because="200 chains each, and a relative ½ε² for the next order of the step",
    says="Largest distance of the six acceptances from the formula",
)

# %% [markdown]
# ## How long a path
#
# The narrowest direction, of standard deviation $s$, sets the step, $\varepsilon < 2s$; the widest, of standard deviation $\ell$, sets how long a path must be.
# With $\varepsilon = s$ a direction of width $\ell$ turns by the angle $\varphi = 2L\arcsin(s/2\ell)$ in a trajectory of $L$ steps, and the correlation of its start and its end is $\cos\varphi$. So an independent $\theta$ costs
#
# $$
# L\,\frac{1 + \cos\varphi}{1 - \cos\varphi}
# $$ (eq-hmc-length)
#
# gradients.
# A shorter path than a quarter of a turn is a random walk. For $\theta$ alone longer is better still; but $\theta^2$ costs $L(1 + \cos^2\varphi)/(1 - \cos^2\varphi)$, and the worse of the two is least at a quarter of a turn, $L \approx \tfrac\pi2\,\ell/s$.
# A path of half a turn ends where it began, mirrored, so $\theta^2$ is not sampled at all. Because of this *resonance* the number of steps should be random, from half to one and a half times its mean (`jitter=0.5`).


# %% tags=["hide-input"]
def gradients_of(num_steps, ratio):
    """Gradients for θ and θ² to be independent, where ℓ = ratio · s and ε = s."""
    cosine = math.cos(2 * num_steps * math.asin(0.5 / ratio))
    return num_steps * max((1 + c) / (1 - c) for c in (cosine, cosine**2))


for num_steps in (5, 157):
    narrow, wide = gradients_of(num_steps, 3), gradients_of(num_steps, 100)
    print(f"L = {num_steps}: {narrow:.0f} gradients at ℓ = 3s, {wide:.0f} at 100s")

# %% tags=["hide-input"]
check("five-steps", gradients_of(5, 100), near(7997, 1), kind="exact", digits=4)

# %% [markdown]
# Five steps are right where the widths differ three times; at a hundred times they cost {c}`five-steps` gradients a sample.
# A mass matrix removes the difference: leapfrog with mass $M$ is leapfrog with mass 1 in the coordinates $M^{1/2}\theta$, so with $M = \Sigma^{-1}$, the precision of the target, all directions are alike.
#
# {numref}`fig-nuts-hmc` compares HMC at many lengths with NUTS at the same step size, on a Gaussian with standard deviations from 1 to 6.
# The best length has {c}`hmc-best` times the effective samples per gradient of NUTS, because a tree discards steps. But NUTS has {c}`nuts-worst` times those of the worst length.

# %% mystnb={"figure": {"caption": "Effective samples per gradient, for the worst of all coordinates, $\\theta$ and $\\theta^2$, on a Gaussian with scales from 1 to 6: HMC at nine lengths, with a fixed and with a random number of steps, and NUTS, which has no such setting. All use the same step size.", "name": "fig-nuts-hmc"}, "image": {"alt": "Effective samples per gradient over the number of leapfrog steps, on a logarithmic scale. HMC with a random number of steps rises above NUTS's level line for six to eight steps and falls below it for shorter and longer ones; with a fixed number it stays below, and drops by a factor of ten or more at some lengths."}} tags=["hide-input"]
widths = torch.tensor([1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
valley = Gaussian(torch.diag(widths**2))
generator = torch.Generator().manual_seed(10)


def efficiency(kernel, chains=400, num_samples=50):
    """Effective samples per gradient, for the worst of all coordinates, θ and θ²."""
    first = valley.exact_samples(chains, generator)
    draws = sample(kernel, valley, first, num_samples=num_samples, seed=11)
    scaled = draws.samples / widths
    values = torch.cat([scaled, scaled.square()], -1)
    times = num_samples * values.mean(0).var(0) / values.var((0, 1))
    gradients = draws.statistics["num_gradients"][-1].float().mean() / num_samples
    return float(1 / (times.max() * gradients))


lengths = [1, 2, 4, 6, 8, 12, 16, 20, 28]
by_length = {
    jitter: [efficiency(HMC(0.9, L, jitter=jitter)) for L in lengths]
    for jitter in (0.0, 0.5)
}
by_nuts = efficiency(NUTS(0.9))
figure, axes = plt.subplots(figsize=(5.2, 3.6))
for jitter, style, name in ((0.0, "o-", "fixed"), (0.5, "s--", "random")):
    label = f"HMC, {name} number of steps"
    axes.semilogy(
        lengths, by_length[jitter], style, ms=4, color=COLOURS["HMC"], label=label
    )
axes.axhline(by_nuts, color=COLOURS["NUTS"], label="NUTS")
axes.set(xlabel="leapfrog steps $L$", ylabel="effective samples per gradient")
axes.legend(loc="lower left", fontsize=8)
plt.show()

# %% tags=["hide-input"]
settings = by_length[0.0] + by_length[0.5]
because = "it was 1.2 to 1.8 with ten seeds and half as many chains"
check("hmc-best", max(settings) / by_nuts, at_least(1.0), because=because)
because = "it was 26 with two seeds"
check("nuts-worst", by_nuts / min(settings), at_least(12.0), because=because)

# %% [markdown]
# ## How NUTS learns its step and its mass
#
# Both are learned in the warm-up, whose samples are thrown away, because a chain that adapts for ever need not have the right stationary distribution.
#
# *Step size.* Dual averaging {cite:p}`hoffman2014` sums the shortfalls of the acceptance (for a tree the mean of $\min(1, e^{H(z_0) - H(z)})$ over its states), lowers $\log\varepsilon$ in proportion to the sum with a factor that decreases, and returns a weighted average of the values tried.
# With the acceptance $a_i$ of step $i$ and the target $a^*$,
#
# $$
# \begin{aligned}
# \bar h_t &= (1 - w_t)\,\bar h_{t-1} + w_t(a^* - a_t), \quad w_t = \frac1{t + 10},\\
# \log\varepsilon_{t+1} &= \log10\varepsilon_1 - 20\sqrt t\,\bar h_t,\\
# \log\bar\varepsilon_t &= t^{-3/4}\log\varepsilon_{t+1} + (1 - t^{-3/4})\log\bar\varepsilon_{t-1} .
# \end{aligned}
# $$ (eq-dual-averaging)
#
# *Mass.* The variances of the samples so far estimate the target's; their inverses become the diagonal of $M$, a few times, in windows that double in length.
#
# In {numref}`fig-dual-averaging` the average comes to rest; after the warm-up above the acceptance was {c}`reached`, with a target of 0.8.

# %% mystnb={"figure": {"caption": "Dual averaging on a Gaussian with scales from 0.1 to 10 and unit mass. Above: the step size of each step and its average. Below: the acceptance of each step; the target is the grey line.", "name": "fig-dual-averaging"}, "image": {"alt": "Above, dots of the step size, which fall from above one to below 0.1 within a few steps and then scatter about a line that comes to rest at 0.15. Below, dots of the acceptance, which start at zero and one and then scatter about 0.8."}} tags=["hide-input"]
averaging, trace = DualAveraging(step_size=1.0, target=0.8), []
generator = torch.Generator().manual_seed(6)
state = NUTS(1.0).init(target, target.exact_samples(50, generator), generator)
for _ in range(60):
    state, info = NUTS(averaging.step_size, max_depth=8).step(target, state, generator)
    seen = float(info.acceptance.mean())
    averaging.update(seen)
    trace.append((averaging.step_size, averaging.average, seen))
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.2, 4.6), sharex=True)
upper.semilogy([s for s, _, _ in trace], ".", color=COLOURS["NUTS"], label="step size")
upper.semilogy([a for _, a, _ in trace], color="black", label="average")
upper.set(ylabel=r"step size $\varepsilon$")
upper.legend()
lower.plot([a for _, _, a in trace], ".", color=COLOURS["NUTS"])
lower.axhline(0.8, color=TRUTH)
lower.set(xlabel="step of the warm-up", ylabel="acceptance")
plt.show()

# %% [markdown]
# A tree in which the energy explodes is *divergent*, and the samples miss the place where that happens.
#
# **To remember:** learn the step size and the mass, and let a tree or a random number of steps choose the length; if in doubt, take the smaller step.
#
# ## Change it
#
# * In the cell that calls `adapt` replace `torch.zeros(100, 10)` by `torch.zeros(3, 10)`, and `num_steps=100` by `num_steps=20`: the mass is learned from too few samples, and the check on it shows ✗.
# * In the cell of {numref}`fig-dual-averaging` replace `target=0.8), []` by `target=0.95), []`: the average comes to rest at a smaller step, and the dots below scatter about 0.95.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-hmc-dimension
#
# ★ On a $d$-dimensional standard Gaussian the energy error $\Delta$ of a trajectory of a given time is a sum of $d$ independent terms. How must $\varepsilon$ shrink with $d$ to keep the acceptance? Use $E[e^{-\Delta}] = 1$, which is {prf:ref}`thm-energy-error`.
# ```
#
# ```{solution} ex-hmc-dimension
# :class: dropdown
#
# Because the shadow is kept, a coordinate's error is $\tfrac{\varepsilon^2}8(\theta'^2 - \theta^2)$, of order $\varepsilon^2$, and its variance is of order $\varepsilon^4$. Expanding $E[e^{-\Delta}] = 1$ to the second order shows that its mean is half its variance. The sum is nearly Gaussian, with mean and variance of order $d\varepsilon^4$: the acceptance is kept if that is, $\varepsilon \propto d^{-1/4}$ {cite:p}`beskos2013`.
# After the time $t$ the variance of $\theta'^2 - \theta^2$ is $4\sin^2t$, so that $\delta = \tfrac14\varepsilon^2\sqrt d\,\lvert\sin t\rvert$, as in {numref}`fig-tuning-acceptance`.
# Without a correction step the same power keeps the distribution of all coordinates together ({prf:ref}`prop-dimension`).
# ```
#
# ````{exercise}
# :label: ex-hmc-averaging
#
# ★★ **Write it yourself.** Write one step of {eq}`eq-dual-averaging`.
#
# ```python
# def averaged(step_size, average, shortfall, time, acceptance, first, target):
#     """The next step size, average and shortfall, after step `time` = 1, 2, …"""
#     ...
# ```
#
# What does $\log10\varepsilon_1$ in the place of $\log\varepsilon_1$ do?
# ````
#
# ````{solution} ex-hmc-averaging
# :class: dropdown
#
# ```python
# def averaged(step_size, average, shortfall, time, acceptance, first, target):
#     weight = 1 / (time + 10)
#     shortfall = (1 - weight) * shortfall + weight * (target - acceptance)
#     step_size = 10 * first * math.exp(-20 * time**0.5 * shortfall)
#     return step_size, step_size**time**-0.75 * average ** (1 - time**-0.75), shortfall
# ```
#
# It draws the search to large steps, which are cheap to try: paths are shorter.
# ````


# %% tags=["hide-input"]
def averaged(step_size, average, shortfall, time, acceptance, first, target):
    weight = 1 / (time + 10)
    shortfall = (1 - weight) * shortfall + weight * (target - acceptance)
    step_size = 10 * first * math.exp(-20 * time**0.5 * shortfall)
    return step_size, step_size**time**-0.75 * average ** (1 - time**-0.75), shortfall


now, gap = (1.0, 1.0, 0.0), 0.0
for time, (size, average, seen) in enumerate(trace, 1):
    now = averaged(*now, time, seen, 1.0, averaging.target)
    gap = max(gap, abs(now[0] / size - 1), abs(now[1] / average - 1))
check(
    "averaged",
    gap,
    at_most(1e-9),
    kind="exact",
    because="the same formulas; rounding",
    says="Largest relative difference of the solution from the package, 60 steps",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`beskos2013` and {cite:t}`betancourt2014` on the acceptance, {cite:t}`neal2011` on everything else, and {cite:t}`hoffman2014` on NUTS and dual averaging.
