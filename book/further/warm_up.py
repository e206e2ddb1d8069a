# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Warm-up: step size and mass
#
# ```{div} page-head
# Level: second course · Reading: about 14 minutes, without the exercises · Running: about 6 seconds
# ```
#
# ```{index} ! warm-up, ! dual averaging, ! adaptation
# ```
#
# {doc}`NUTS </book/tutorial/no_u_turn>` chooses the length of its trajectories; its step size and its mass are learned in a warm-up.
# This page shows how, and compares NUTS with HMC at its best and at its worst length.
#
# **You will learn** to
#
# * adapt the step size by dual averaging, and the mass by the variances of the samples so far,
# * say what NUTS costs against an HMC whose length was searched for.
#
# **You will need** {doc}`/book/tutorial/no_u_turn`.

# %% tags=["hide-input"]
from dataclasses import replace

import matplotlib.pyplot as plt
import torch

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from sgmc import sample
from sgmc.kernels import HMC, NUTS
from sgmc.targets import Gaussian
from sgmc.tuning import adapt
from sgmc.tuning.adaptation import DualAveraging

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## Adaptation
#
# No number of steps is left to choose, but a step size and a mass are. Both can be learned in a {term}`warm-up`, whose samples are then thrown away: a chain that adapts for ever remembers its past and need not have the right stationary distribution.
#
# **Step size.** Too large a step makes large energy errors; the mean of $\min(1, e^{H(z_0) - H(z)})$ over the states of a tree says how large, and 0.8 is a good value.
# *Dual averaging* {cite:p}`hoffman2014` adds up by how much the acceptance has fallen short of that, and lowers $\log\varepsilon$ in proportion to the sum, boldly at first and ever more cautiously. In the end it takes an average of where it has been.
#
# ```{literalinclude} ../../sgmc/tuning/adaptation.py
# :language: python
# :pyobject: DualAveraging.update
# ```
#
# **Mass.** The variances of the samples so far are a guess of the target's. With $M$ the diagonal matrix of their inverses all coordinates look alike to the sampler, which then needs fewer steps; the guess is renewed a few times, from windows that double in length.

# %%
scales = torch.logspace(-1, 1, 10)
target = Gaussian(torch.diag(scales**2))
averaging, trace = DualAveraging(step_size=1.0, target=0.8), []
generator = torch.Generator().manual_seed(6)
state = NUTS(1.0).init(target, target.exact_samples(50, generator), generator)
for _ in range(60):
    state, info = NUTS(averaging.step_size, max_depth=8).step(target, state, generator)
    averaging.update(float(info.acceptance.mean()))
    trace.append(
        (averaging.step_size, averaging.average, float(info.acceptance.mean()))
    )

tuned, position = adapt(
    NUTS(step_size=1.0), target, torch.zeros(100, 10), num_steps=100, seed=7
)
adapted = sample(tuned, target, position, num_samples=50, seed=8)
untuned = replace(tuned, mass=1.0, step_size=averaging.average)
without_mass = sample(
    untuned, target, target.exact_samples(50, generator), num_samples=10, seed=9
)

# %% mystnb={"figure": {"caption": "Dual averaging on a Gaussian with scales from 0.1 to 10 and unit mass. Above: the step size of each step and its average. Below: the acceptance of each step; the target is the grey line.", "name": "fig-dual-averaging"}, "image": {"alt": "Above, dots of the step size, which fall from above one to below 0.1 within a few steps and then scatter about a line that comes to rest at 0.15. Below, dots of the acceptance, which start at zero and one and then scatter about 0.8."}} tags=["hide-input"]
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.2, 5.2), sharex=True)
upper.semilogy([s for s, _, _ in trace], ".", color=COLOURS["NUTS"], label="step size")
upper.semilogy([a for _, a, _ in trace], color="black", label="average")
upper.set(ylabel=r"step size $\varepsilon$")
upper.legend()
lower.plot([a for _, _, a in trace], ".", color=COLOURS["NUTS"])
lower.axhline(0.8, color=TRUTH)
lower.set(xlabel="step of the warm-up", ylabel="acceptance")
plt.show()

# %% [markdown]
# In {numref}`fig-dual-averaging` the single step sizes (dots) jump about for ever, and their average (line) comes to rest.
# The acceptance, below, is first near 0 and then near 1, because the first steps are far too large and the next far too small; then it scatters about 0.8.
# With unit mass the narrowest scale, 0.1, holds the step down, and the widest, 10, makes the paths long. The adapted mass takes both away, and a sample costs less than a fifteenth as many gradients.

# %% tags=["hide-input"]
claim(
    "The adapted mass against the inverse variances, largest relative error of a scale",
    (tuned.mass.rsqrt() / scales - 1).abs().max(),
    at_most=0.15,
    because="5,000 correlated draws tell a scale to a few per cent",
)
claim(
    "Mean acceptance after adaptation to 0.8",
    adapted.statistics["acceptance"].mean(),
    near=0.8,
    within=0.08,
    because="100 steps of dual averaging over 100 chains; seeds differ by 0.02",
)
value, error = adapted.mean_and_standard_error(lambda x: (x / scales).square().mean(-1))
claim(
    "Mean of (θ/scale)² over 10 coordinates, from the adapted kernel",
    value,
    near=1,
    standard_error=error,
    because="100 chains",
)
cost = without_mass.statistics["num_gradients"][-1].float().mean() / 10
tuned_cost = (
    adapted.statistics["num_gradients"][-1] - adapted.statistics["num_gradients"][0]
).float().mean() / 49
claim(
    "Gradients of a sample with unit mass over those with the adapted mass",
    cost / tuned_cost,
    at_least=15,
    because="scales in the ratio 100 need longer paths; it was 21 and 22",
)

# %% [markdown]
# ## Against HMC, well and badly tuned
#
# Give HMC the same step size as NUTS, and try many lengths. The measure is effective samples per gradient, for the worst of all coordinates and of $\theta$ and $\theta^2$. With many independent chains {eq}`eq-tau` gives $\tau$ at once: the variance of the chains' averages times their length, over the variance of a sample.

# %%
scales = torch.tensor([1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
target = Gaussian(torch.diag(scales**2))
generator = torch.Generator().manual_seed(10)


def efficiency(kernel, chains=800, num_samples=60, seed=11):
    """Effective samples per gradient, for the worst of all coordinates, θ and θ²."""
    draws = sample(
        kernel,
        target,
        target.exact_samples(chains, generator),
        num_samples=num_samples,
        seed=seed,
    )
    values = torch.cat([draws.samples / scales, (draws.samples / scales).square()], -1)
    times = num_samples * values.mean(0).var(0) / values.var((0, 1))
    gradients = draws.statistics["num_gradients"][-1].float().mean() / num_samples
    return float(1 / (times.max() * gradients))


step_size, lengths = 0.9, [1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32]
by_length = {
    jitter: [efficiency(HMC(step_size, L, jitter=jitter)) for L in lengths]
    for jitter in (0.0, 0.5)
}
by_nuts = efficiency(NUTS(step_size))
best, worst = (
    max(max(v) for v in by_length.values()),
    min(min(v) for v in by_length.values()),
)

# %% mystnb={"figure": {"caption": "Effective samples per gradient on a Gaussian with scales from 1 to 6: HMC at eleven lengths, with a fixed and with a random number of steps, and NUTS, which has no such setting. All use the same step size.", "name": "fig-nuts-hmc"}, "image": {"alt": "Effective samples per gradient over the number of leapfrog steps, on a logarithmic scale. HMC with a random number of steps rises above NUTS's level line for six to eight steps and falls below it for shorter and longer ones; with a fixed number it stays below, and drops by a factor of ten or more at some lengths."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.6))
axes.semilogy(
    lengths,
    by_length[0.0],
    "o-",
    ms=4,
    color=COLOURS["HMC"],
    label="HMC, fixed number of steps",
)
axes.semilogy(
    lengths,
    by_length[0.5],
    "s--",
    ms=4,
    color=COLOURS["HMC"],
    label="HMC, random number of steps",
)
axes.axhline(by_nuts, color=COLOURS["NUTS"], label="NUTS")
axes.set(xlabel="leapfrog steps $L$", ylabel="effective samples per gradient")
axes.legend(loc="lower left", fontsize=8)
plt.show()

# %% [markdown]
# In {numref}`fig-nuts-hmc` see where the dashed line of HMC crosses that of NUTS. The best length beats NUTS: a tree takes steps that it throws away, and grows to both sides of the start, although the sample lies on one. But the best length is known only after the search, and a wrong one costs far more.

# %% tags=["hide-input"]
claim(
    "NUTS over the best of HMC's settings, effective samples per gradient",
    by_nuts / best,
    at_most=1,
    because="it was 0.57 to 0.83 with ten seeds and half as many chains",
)
claim(
    "NUTS over the worst of HMC's settings",
    by_nuts / worst,
    at_least=12,
    because="it was 26 with two seeds",
)

# %% [markdown]
# ## In practice
#
# * Adapt, then freeze the step size and the mass, then sample.
# * A tree that ends because of its largest depth, and not because it turned, is legitimate but short. `draws.statistics["depth_limited"]` marks such trees; a large share of them says that the step size is too small or the mass wrong.
# * A tree in which the energy explodes is called *divergent*, and recorded: it marks regions of high curvature that the chain cannot enter. Divergences in one part of the space mean that the samples miss it.
# * Chains that run together wait for the one with the deepest tree.
# * Do not put another rule in the place of {eq}`eq-turn` without going through the proof.
#
# ## Change it
#
# * Set `DualAveraging(step_size=1.0, target=0.8)` to `DualAveraging(step_size=1.0, target=0.95)`: the average comes to rest at a smaller step, and the dots below scatter about 0.95; the untuned sampler takes this smaller step, so the ratio of the gradients grows.
# * Set `num_steps=100, seed=7` to `num_steps=20, seed=7`: the mass is learned from too few samples, and the claim on it shows ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-nuts-frozen
#
# In two dimensions let $U = \frac12\lvert\theta\rvert^2$ and $M = I$, with exact dynamics. Start with $r$ at a right angle to $\theta$ and as long, so that the ball goes round a circle, in steps of $\varepsilon < 1$. After how many doublings does a path stop? Does that depend on the coins?
# ```
#
# ```{solution} ex-nuts-frozen
# :class: dropdown
#
# The momentum turns by the angle $\varepsilon$ in a step. The momenta of $n$ states add up to $\sin(n\varepsilon/2)/\sin(\varepsilon/2)$ times the one at the middle of the arc, and those at the ends are at the angle $(n-1)\varepsilon/2$ from it. So the path turns as soon as $(n - 1)\varepsilon \ge \pi$: when it covers half a circle (where $n\varepsilon > 2\pi$ the check of a half with its neighbour finds it). Every arc of $n$ states is a rotation of every other, so the coins do not matter, and no new half turns before the whole: $j$ is the smallest with $(2^j - 1)\varepsilon \ge \pi$.
#
# All this hangs on the circle. In one dimension the momenta are numbers, and the test depends on where in its swing the ball begins: the same bowl and the same $\varepsilon$ give trees of several depths.
# ```
#
# ## Further reading
#
# {cite:t}`hoffman2014` for dual averaging; {cite:t}`betancourt2014` on the acceptance to aim at.
