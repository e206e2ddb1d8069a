# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The no-U-turn sampler
#
# How long should a trajectory be? Until it turns back; but that rule has to be asked in a way that does not betray where the trajectory began.
#
# **You will learn** to
#
# * tell when a trajectory turns, without choosing a length beforehand,
# * see why stopping there breaks the sampler, and by how much,
# * grow a path by doubling, and prove that the law survives,
# * read the code that does it, and draw its tree,
# * adapt the step size and the mass in a warm-up, and compare the result with hand-tuned HMC.
#
# **You will need** {doc}`/book/foundations/hamiltonian_monte_carlo`.

# %%
from dataclasses import replace
from unittest.mock import patch

import matplotlib.pyplot as plt
import torch

from sgmc import claim, sample
from sgmc.adaptation import DualAveraging, adapt
from sgmc.figures import COLOURS, TRUTH, plot_contours, use_style
from sgmc.integrators import leapfrog
from sgmc.kernels import HMC, NUTS, trees
from sgmc.kernels.trees import Point, grow_tree
from sgmc.matrices import Matrix
from sgmc.play import play
from sgmc.targets import Gaussian

use_style()
play()

# %% [markdown]
# ## Why a U-turn
#
# A trajectory that is too short is a step of a random walk, one that is too long comes back and wastes its gradients. The right length differs from target to target, and from place to place.
# Look at the distance from the start $\theta_0$. It changes at the rate
#
# $$
# \frac{d}{dt}\,\tfrac12\lVert\theta - \theta_0\rVert^2 = (\theta - \theta_0)^\top v, \qquad v = M^{-1}r.
# $$ (eq-distance)
#
# While this is positive, going on brings us farther away. When it turns negative the trajectory makes a *U-turn*: time to stop.
# On a ridge the time to the first turn depends on the momentum that was drawn; no fixed number of steps suits all of them.

# %%
ridge = Gaussian.correlated(0.95)
generator = torch.Generator().manual_seed(3)
start = ridge.exact_samples(2_000, generator)
position, momentum = start, torch.randn(2_000, 2, generator=generator)
step_size, distances, advance = 0.1, [torch.zeros(2_000)], []
for _ in range(100):
    position, momentum = leapfrog(ridge.gradient, position, momentum, step_size)
    distances.append((position - start).norm(dim=-1))
    advance.append(((position - start) * momentum).sum(-1))
distances = torch.stack(distances)
turn_time = step_size * (1 + (torch.stack(advance) < 0).float().argmax(0))

# %% tags=["hide-input"]
claim(
    "The ninth decile of the time to the first turn over its first decile",
    turn_time.quantile(0.9) / turn_time.quantile(0.1),
    at_least=5,
    because="measured 9; the two directions of the ridge have periods in the ratio 6",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-turn-times", "caption": "Left: distance from the start along six trajectories on a Gaussian with correlation 0.95, drawn until they first turn (dots), then faintly. Right: the times of the first turn of 2,000 trajectories."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.2))
time = step_size * torch.arange(101)
for chain in range(6):
    until = time <= turn_time[chain]
    (line,) = left.plot(time[until], distances[until, chain])
    left.plot(time, distances[:, chain], lw=0.7, alpha=0.4, color=line.get_color())
    left.plot(
        turn_time[chain], distances[until, chain][-1], "o", color=line.get_color()
    )
left.set(xlabel="time $t$", ylabel=r"$\|\theta - \theta_0\|$")
right.hist(turn_time.numpy(), bins=40, color=COLOURS["NUTS"])
right.set(xlabel="time of the first turn", ylabel="trajectories")
plt.show()

# %% [markdown]
# ## The obvious rule is wrong
#
# So stop at the first turn, and take the point where the trajectory stopped. Energy is kept, nothing need be rejected. What could go wrong?
#
# Take the bowl $U = \tfrac12\theta^2$ and exact dynamics. In one dimension the trajectory turns where the momentum changes its sign, and there all the energy is potential: $\tfrac12\theta'^2 = \tfrac12\theta^2 + \tfrac12r^2$.
# With a fresh $r \sim N(0, 1)$ each time,
#
# $$
# E[\theta'^2] = E[\theta^2] + 1.
# $$ (eq-naive-growth)
#
# The chain has no stationary law at all: its variance grows by one with every draw.
# Choosing a uniformly random point of the trajectory between start and turn, instead of its end, stops the growth, but the law is still wrong.
#
# The reason is the same in both cases. Let the trajectory from $z$ stop at $z'$. Started at $z'$ with the momentum reversed, the same path would *not* stop at $z$: the turn is judged from another start, and the path would run on. The move from $z$ to $z'$ has no way back with the same probability, so there is no detailed balance.


# %%
def draw_until_turn(position, num_draws, step_size, uniform, generator):
    """Stop every trajectory at its first turn, and take its end, or a uniformly
    random point of it."""
    draws = [position]
    for _ in range(num_draws):
        start = chosen = position
        momentum = torch.randn(start.shape, generator=generator)
        going, num_points = torch.ones(len(start), dtype=torch.bool), 1
        while going.any():
            position, momentum = leapfrog(bowl.gradient, position, momentum, step_size)
            num_points += 1
            take = (
                torch.rand(len(start), generator=generator) * num_points < 1
                if uniform
                else going
            )
            chosen = torch.where((going & take)[:, None], position, chosen)
            going &= ((position - start) * momentum).sum(-1) >= 0
        position = chosen
        draws.append(position)
    return torch.stack(draws)[..., 0]


bowl = Gaussian.standard(1)
naive = {
    uniform: draw_until_turn(
        bowl.exact_samples(10_000, generator), 30, 0.1, uniform, generator
    )
    .square()
    .mean(-1)
    for uniform in (False, True)
}

# %% tags=["hide-input"]
claim(
    "Variance of the bowl's draw number 20, starting from the truth and taking the "
    "end of each trajectory",
    naive[False][20],
    near=21,
    within=2,
    because=(
        "it grows by 1 with every draw; standard error 0.3, and a step too many at "
        "each turn lowers it a little"
    ),
)
claim(
    "Variance of the bowl's draw number 30, taking a uniform point of each trajectory",
    naive[True][30],
    at_least=1.6,
    because="measured 1.85 ± 0.03; the truth is 1",
)

# %% [markdown]
# ## Doubling
#
# {cite:t}`hoffman2014` found the way out: build a path to *both* sides of the start, in such a way that the finished path could have been built from any of its states with the same probability.
# Then choose one of its states by a rule that only looks at the path.
#
# Double the path again and again. Toss a coin: to the right, take as many new steps forward from the right end as there are states; to the left, as many steps backward from the left end.
# After $j$ doublings there are $2^j$ states, and the start is at a place that the coins decide: each of the $2^j$ places has probability $2^{-j}$.
#
# When is the path long enough? Compare its two ends: for the states $z^-$ and $z^+$ at the ends of a piece of path, and the sum $\rho$ of the momenta between them, which approximates $\theta^+ - \theta^-$ up to a factor, the piece *turns* if
#
# $$
# \rho^\top M^{-1}r^- \le 0 \quad\text{or}\quad \rho^\top M^{-1}r^+ \le 0
# $$ (eq-turn)
#
# {cite:p}`betancourt2017`. The start does not appear.
# Stop when the whole path turns. One more thing is needed, and easily forgotten: if the *new half*, or a half of it, or a quarter of it and so on, turns by itself, then the new half must be thrown away.
# For a start inside that piece would have stopped there, and never have reached this path.

# %%
record = []  # the parent and the child of every step, in the order of growth
step_size = 0.22


def forward(point):
    position, momentum = leapfrog(
        ridge.gradient, point.position, point.momentum, step_size
    )
    record.append((point.position[0], position[0]))
    return Point(position, momentum, torch.zeros(1))


generator = torch.Generator().manual_seed(46)
first = Point(torch.tensor([[0.3, 0.6]]), torch.tensor([[-0.9, -0.5]]), torch.zeros(1))
tree = grow_tree(first, forward, Matrix(1.0), max_depth=10, generator=generator)

# Put the states in order, and remember for each in which doubling it came.
path, born = [first.position[0]], [-1]
depth, right_end, left_end = int(tree.depth), first.position[0], first.position[0]
for number, (parent, child) in enumerate(record):
    to_right = torch.equal(parent, right_end)
    path, born = (
        ([*path, child], [*born, number])
        if to_right
        else ([child, *path], [number, *born])
    )
    right_end, left_end = path[-1], path[0]
path, generation = (
    torch.stack(path),
    torch.tensor(born).add(1).float().log2().floor().int() + 1,
)
generation[torch.tensor(born) == -1] = 0
kept = generation <= depth

# %% tags=["hide-input"]
claim(
    "The number of states of the finished path",
    float(kept.sum()),
    near=2**depth,
    within=0,
    because="each doubling doubles it",
    kind="exact",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-tree", "caption": "A path grown by doubling on the ridge. Above: its states, coloured by the doubling in which they came; the black dot is the start, hollow states were thrown away, and their growth given up at the first sub-tree that turned. Below: the tree. Each bracket is an aligned sub-tree, and every one of them is checked for a U-turn."}}
figure, (above, below) = plt.subplots(2, 1, figsize=(6.4, 7.2), height_ratios=(2.4, 1))
plot_contours(above, ridge, -3, 3)
palette = ["black", "#D55E00", "#E69F00", "#009E73", "#56B4E9", "#0072B2", "#CC79A7"]
colours = [palette[g] for g in generation]
above.plot(*path.T, lw=0.7, color="0.6")
above.scatter(
    *path[kept].T,
    c=[c for c, k in zip(colours, kept, strict=True) if k],
    s=26,
    zorder=3,
)
if not kept.all():
    above.scatter(
        *path[~kept].T,
        facecolors="none",
        edgecolors=[c for c, k in zip(colours, kept, strict=True) if not k],
        s=26,
        zorder=3,
    )
above.set(xlabel=r"$\theta_1$", ylabel=r"$\theta_2$")
offset = int(kept.float().argmax())
for index in range(len(path)):
    below.plot(
        index - offset,
        0,
        "o",
        ms=5,
        color=colours[index],
        mfc=colours[index] if kept[index] else "none",
    )
for level in range(1, depth + 1):
    for block in range(2 ** (depth - level)):
        low, high = block * 2**level, (block + 1) * 2**level - 1
        below.plot(
            [low, low, high, high],
            [level - 0.35, level, level, level - 0.35],
            color="0.4",
            lw=1,
        )
below.set(
    xlabel="place in the path, from left to right",
    ylabel="depth",
    yticks=range(depth + 1),
    xticks=range(0, len(path), 4),
)
plt.show()

# %% [markdown]
# ## Why it works
#
# ```{prf:theorem} NUTS leaves the target invariant
# :label: thm-nuts
#
# Grow a path from $(\theta, r)$ with $r \sim N(0, M)$ by leapfrog steps and doubling, throw away new halves that contain a turning sub-tree, stop when the path turns, and choose a state of the path with probability proportional to $e^{-H}$. The chain of the positions leaves $\pi(\theta) \propto e^{-U(\theta)}$ invariant.
# ```
#
# ```{prf:proof}
# Let $(\theta, r)$ have the density $e^{-H}/Z$. Leapfrog keeps volume, so the density for the finished path to be $w = (z_0, \dots, z_{2^j-1})$ with the start at index $s$ is a product of three things:
#
# * $e^{-H(z_s)}/Z$, for the start;
# * $2^{-j}$, for the coins: exactly one sequence of coins puts the start at index $s$;
# * one or zero, for having come so far and stopped there. The path was not complete before if no aligned sub-tree of $w$, other than $w$ itself, turns: those that hold the start were checked when they were the whole path, the others when they were part of a new half. It stops at $w$ if $w$ turns, or if the next new half, on the side that the next coin tells, is thrown away. Neither asks for $s$.
#
# So given the path, the start has index $s$ with probability proportional to $e^{-H(z_s)}$. A new index drawn with the same probabilities, independently, gives a state with the same law as the start.
# ```
#
# The page {doc}`/book/appendix/sgnuts_theorem` proves it in a form that also covers paths with friction and noise ({prf:ref}`thm-tree`).
# In the proof the weights $e^{-H}$ repair what the integrator's error does; along an exact trajectory they would all be equal.
#
# Any choice for which $e^{-H(z_s)}\kappa(s, k)$ is symmetric in $s$ and $k$ will do, and one is better than independent draws: whenever a new half comes, take a state of it with probability $\min(1, w_{\text{new}}/w_{\text{old}})$, where $w$ sums the weights of a half {cite:p}`betancourt2017`. That favours states far from the start ({prf:ref}`lem-choice`).
# This is the code that doubles. All chains grow their trees together, and a step to the left is: reverse the momentum, step forward, reverse it.
#
# ```{literalinclude} ../../sgmc/kernels/trees.py
# :language: python
# :pyobject: grow_tree
# ```
#
# And this is the sampler.
#
# ```{literalinclude} ../../sgmc/kernels/nuts.py
# :language: python
# :pyobject: NUTS.step
# ```
#
# Is the rule about the sub-trees really needed? Leave it out, and look.


# %%
def careless(near, forward, inverse_mass, num_states, growing, *rest):
    """Grow a new half as ever, but look at none of its sub-trees."""
    join = trees.join
    with patch.object(
        trees, "join", lambda *spans: (join(*spans)[0], torch.ones_like(growing))
    ):
        return grow_branch(near, forward, inverse_mass, num_states, growing, *rest)


grow_branch = trees.grow_branch
generator = torch.Generator().manual_seed(4)
kernel, exact = NUTS(step_size=0.5), bowl.exact_samples(10_000, generator)
nuts = sample(kernel, bowl, exact, num_samples=30, seed=5)
with patch.object(trees, "grow_branch", careless):
    unchecked = sample(kernel, bowl, exact, num_samples=30, seed=5)
value, error = nuts.mean_and_standard_error(lambda x: x**2)

# %% tags=["hide-input"]
claim(
    "Variance of the bowl with NUTS",
    value,
    near=1,
    standard_error=error,
    because="10,000 independent chains",
)
value, error = nuts.mean_and_standard_error(lambda x: x**4)
claim(
    "E[θ⁴] of the bowl with NUTS",
    value,
    near=3,
    standard_error=error,
    because="10,000 independent chains",
)
claim(
    "Variance of the bowl's last draw, without the checks of the sub-trees",
    unchecked.samples[-1].square().mean(),
    at_least=1.8,
    because="measured 2.6 ± 0.1 after 30 draws; the truth is 1",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-naive", "caption": "Variance of the draws in the bowl, 10,000 chains that start from the true law, whose variance is 1 (grey). Only the sampler with all its checks keeps it."}}
figure, axes = plt.subplots()
axes.axhline(1, color=TRUTH)
axes.plot(
    naive[False], color=COLOURS["naive SGHMC"], label="stop at the turn, take the end"
)
axes.plot(
    naive[True],
    "--",
    color=COLOURS["naive SGHMC"],
    label="stop at the turn, take any point",
)
axes.plot(
    range(1, 31),
    unchecked.samples.square().mean((1, 2)),
    ":",
    color=COLOURS["NUTS"],
    label="doubling, sub-trees not checked",
)
axes.plot(
    range(1, 31),
    nuts.samples.square().mean((1, 2)),
    color=COLOURS["NUTS"],
    label="NUTS",
)
axes.set(xlabel="draw", ylabel="variance", yscale="log")
axes.legend()
plt.show()

# %% [markdown]
# ## Adaptation
#
# No number of steps is left to choose, but a step size and a mass are. Both can be learnt in a warm-up, whose draws are then thrown away: a chain that adapts for ever remembers its past and need not have the right law.
#
# **Step size.** Too large a step makes large energy errors; the mean of $\min(1, e^{H(z_0) - H(z)})$ over the states of a tree says how large, and 0.8 is a good value.
# *Dual averaging* {cite:p}`hoffman2014` moves $\log\varepsilon$ against the accumulated shortfall, boldly at first and ever more cautiously, and in the end takes an average of where it has been.
#
# ```{literalinclude} ../../sgmc/adaptation.py
# :language: python
# :pyobject: DualAveraging.update
# ```
#
# **Mass.** The variances of the draws so far are a guess of the target's. With $M$ the diagonal matrix of their inverses all coordinates look alike to the sampler, which then needs fewer steps; the guess is renewed a few times, from windows that double in length.

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
untuned = replace(tuned, mass=1.0, step_size=averaging.average)
cost = (
    sample(untuned, target, target.exact_samples(50, generator), num_samples=10, seed=9)
    .statistics["num_gradients"][-1]
    .float()
    .mean()
    / 10
)
tuned_cost = (
    adapted.statistics["num_gradients"][-1] - adapted.statistics["num_gradients"][0]
).float().mean() / 49
claim(
    "Gradients of a draw with unit mass over those with the adapted mass",
    cost / tuned_cost,
    at_least=8,
    because="scales in the ratio 100 need paths that much longer; measured about 22",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-dual-averaging", "caption": "Dual averaging on a Gaussian with scales from 0.1 to 10 and unit mass. Left: the step size of each step and its average. Right: the acceptance of each step; the target is the grey line."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3))
left.semilogy([s for s, _, _ in trace], ".", color=COLOURS["NUTS"], label="step size")
left.semilogy([a for _, a, _ in trace], color="black", label="average")
left.set(xlabel="step of the warm-up", ylabel=r"$\varepsilon$")
left.legend()
right.plot([a for _, _, a in trace], ".", color=COLOURS["NUTS"])
right.axhline(0.8, color=TRUTH)
right.set(xlabel="step of the warm-up", ylabel="acceptance")
plt.show()

# %% [markdown]
# ## Against HMC, well and badly tuned
#
# Give HMC the same step size, and try all lengths. The measure is effective draws per gradient, for the worst of all coordinates and of $\theta$ and $\theta^2$; with many independent chains the autocorrelation time $\tau$ is the variance of a chain's average times its length, over the variance of a draw.

# %%
scales = torch.tensor([1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
target = Gaussian(torch.diag(scales**2))
generator = torch.Generator().manual_seed(10)


def efficiency(kernel, chains=400, num_samples=60, seed=11):
    """Effective draws per gradient, the smallest over coordinates and over θ and θ²."""
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

# %% tags=["hide-input"]
claim(
    "NUTS over the best of HMC's settings, effective draws per gradient",
    by_nuts / best,
    at_least=0.3,
    because=(
        "half of the measured ratio; an effective number has an error of about 10 %"
    ),
)
claim(
    "NUTS over the worst of HMC's settings",
    by_nuts / worst,
    at_least=5,
    because="a fifth of the measured ratio",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-nuts-hmc", "caption": "Effective draws per gradient on a Gaussian with scales from 1 to 6: HMC at every length, with a fixed and with a random number of steps, and NUTS, which has no such setting. All use the same step size."}}
figure, axes = plt.subplots()
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
axes.set(xlabel="leapfrog steps $L$", ylabel="effective draws per gradient")
axes.legend()
plt.show()

# %% [markdown]
# The best length, if it is made random, beats NUTS: a tree takes steps that it throws away, and of two sides only one leads far. But the best length is known only after the search, and a wrong one costs far more.
#
# ## In practice
#
# * Adapt, then freeze the step size and the mass, then sample.
# * A tree that ends because of its largest depth, and not because it turned, is legitimate but short. `draws.statistics["depth_limited"]` has the share of them; a large one says that the step size is too small or the mass wrong.
# * A tree in which the energy explodes is called *divergent*, and recorded: it marks regions of high curvature that the chain cannot enter. Divergences in one part of the space mean that the draws miss it.
# * Chains that run together wait for the one with the deepest tree.
# * Do not put another rule in the place of {eq}`eq-turn` without going through the proof.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-nuts-coins
#
# A path of eight states has the start at index 5. Which coins were thrown?
# ```
#
# ```{solution} ex-nuts-coins
# :class: dropdown
#
# $5 = 1 + 4$, so the first and the third doubling went to the left, the second to the right.
# ```
#
# ```{exercise}
# :label: ex-nuts-frozen
#
# In the bowl, with exact dynamics, states at the phases $\phi_0 + i\varepsilon$ and equal energies: at which number of doublings does a path stop? Does it depend on the start?
# ```
#
# ```{solution} ex-nuts-frozen
# :class: dropdown
#
# The momenta of $n$ states add up to one that points along the middle of the arc, with the sign of $\sin(n\varepsilon/2)$, and the ends are $(n-1)\varepsilon/2$ away from the middle. So the path turns when $(n - 1)\varepsilon/2 \ge \pi/2$ for the first time: when it covers half a period. By symmetry all starts stop at the same depth.
# ```
#
# ```{exercise}
# :label: ex-nuts-refresh
#
# Would the theorem hold if the chosen momentum were kept for the next tree, instead of drawing a fresh one?
# ```
#
# ```{solution} ex-nuts-refresh
# :class: dropdown
#
# Yes, the tree leaves $e^{-H}$ invariant. But up to the integrator's error it keeps the energy, so the chain would not be ergodic.
# ```
#
# ## Further reading
#
# {cite:t}`hoffman2014` introduced the sampler with slice sampling in place of weights, {cite:t}`betancourt2017` the weights and the criterion used here; {cite:t}`durmus2023` prove that it converges.
# What becomes of the argument when the path has friction and noise is the subject of {doc}`/book/stochastic_gradients/sgnuts`.
