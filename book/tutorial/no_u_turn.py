# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # The no-U-turn sampler
#
# ```{div} page-head
# Level: second course · Reading: about 100 minutes, without the exercises · Running: about 10 seconds
# ```
#
# ```{index} ! NUTS, ! no-U-turn sampler
# ```
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
# **You will need** {doc}`/book/tutorial/hamiltonian_monte_carlo`.

# %%
import itertools
from dataclasses import replace
from typing import NamedTuple
from unittest.mock import patch

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from booklib.claims import claim
from booklib.figures import COLOURS, TRUTH, plot_contours, use_style
from booklib.play import play
from sgmc import sample
from sgmc.integrators import leapfrog
from sgmc.kernels import HMC, NUTS, trees
from sgmc.kernels.trees import Point, grow_tree
from sgmc.matrices import Matrix
from sgmc.targets import Gaussian
from sgmc.tuning import adapt
from sgmc.tuning.adaptation import DualAveraging

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## Why a U-turn
#
# A {term}`trajectory` that is too short is a step of a random walk, one that is too long comes back and wastes its gradients. The right length differs from target to target, and from place to place.
# Look at the distance from the start $\theta_0$. Half its square changes, with the velocity $v = M^{-1}r$, at the rate
#
# $$
# \frac{d}{dt}\,\tfrac12\lVert\theta - \theta_0\rVert^2 = (\theta - \theta_0)^\top v.
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

# %% mystnb={"figure": {"caption": "Above: distance from the start along six trajectories on a Gaussian with correlation 0.95, drawn until they first turn (dots), then faintly. Below: the times of the first turn of 2,000 trajectories.", "name": "fig-turn-times"}, "image": {"alt": "Above, six curves of the distance from the start, which rise to dots at times between 0.4 and 3 and go up and down after them. Below, a histogram of the time of the first turn: a high peak before 1, and a long low part up to 5."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(2, 1, figsize=(5.2, 5.4))
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
# In {numref}`fig-turn-times` the dots stand at very different times: whoever draws a momentum across the ridge comes back soon, whoever draws one along it goes far. Just beyond its dot every line falls: the gradients spent there lead back. Some lines rise again, and higher; the rule stops at the first turn all the same.

# %% tags=["hide-input"]
claim(
    "The ninth decile of the time to the first turn over its first decile",
    turn_time.quantile(0.9) / turn_time.quantile(0.1),
    at_least=6.5,
    because="measured 9; the two directions of the ridge have periods in the ratio 6",
)

# %% [markdown]
# ## The obvious rule is wrong
#
# So stop at the first turn, and take the point where the trajectory stopped. Energy is kept, nothing need be rejected. What could go wrong?
#
# Take the bowl $U = \tfrac12\theta^2$ and exact dynamics. In one dimension the trajectory turns where the momentum changes its sign. There the momentum is zero, so all the energy is potential: $\tfrac12\theta'^2 = \tfrac12\theta^2 + \tfrac12r^2$.
# With a fresh $r \sim N(0, 1)$ each time,
#
# $$
# E[\theta'^2] = E[\theta^2] + 1.
# $$ (eq-naive-growth)
#
# The chain has no stationary law at all: its variance grows by one with every draw.
# Choosing a uniformly random point of the trajectory between start and turn, instead of its end, stops the growth, but the law is still wrong.
#
# The reason is the same in both cases. Let the trajectory from the state $z = (\theta, r)$ stop at $z'$. Started at $z'$ with the momentum reversed, the same path would *not* stop at $z$: the turn is judged from another start, and the path would run on. The move from $z$ to $z'$ has no way back with the same probability, so there is no detailed balance.


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
    at_least=1.7,
    because="the truth is 1; the standard error of a draw's variance is 0.03",
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
# Number the states of the finished path from left to right, $0$ to $2^j - 1$. Its halves, its quarters, its eighths and so on are called its *aligned sub-trees*: blocks of $2^k$ neighbours of which the first has a number that $2^k$ divides. States 4 to 7 are aligned, states 3 to 6 are not.
# When the path is doubled, its old half and its new half are both aligned sub-trees of the result.
#
# When is the path long enough? Take any piece of it, with the states $z^-$ and $z^+$ at its ends and the sum $\rho$ of all its momenta, both ends included; up to a factor $M^{-1}\rho$ approximates the way from one end to the other. The piece *turns* if
#
# $$
# \rho^\top M^{-1}r^- \le 0 \quad\text{or}\quad \rho^\top M^{-1}r^+ \le 0
# $$ (eq-turn)
#
# {cite:p}`betancourt2017`. This is {eq}`eq-distance` asked at both ends, and the start does not appear in it.
# Two neighbouring sub-trees may lie on either side of the very point where the path turns, and neither notice. So when two halves join, each is also checked together with the nearest state of the other: from here on a sub-tree *turns* if {eq}`eq-turn` holds for it or for one of these two pieces.
#
# Stop when the whole path turns. One more thing is needed, and easily forgotten: if the *new half*, or any aligned sub-tree of it, turns by itself, then the new half must be thrown away, and the growth ends.
# For a start inside that sub-tree would have stopped there, and never have reached this path.
#
# Here it is for one chain. Instead of growing to the left, the path is turned round, its order reversed and all its momenta flipped; then it grows at its end as ever.


# %%
class PhasePoint(NamedTuple):
    theta: Tensor  # (dim,)
    r: Tensor  # (dim,)


def turns(piece):
    """Tell whether a list of states turns, with mass one."""
    rho = sum(z.r for z in piece)
    return bool(rho @ piece[0].r <= 0 or rho @ piece[-1].r <= 0)


def has_turn(path):
    """Tell whether a path of 2ʲ states, or an aligned sub-tree of it, turns."""
    half = len(path) // 2
    if half == 0:
        return False
    pieces = [path, path[: half + 1], path[half - 1 :]]
    together = any(turns(piece) for piece in pieces)
    return together or has_turn(path[:half]) or has_turn(path[half:])


def grow(start, step, coins):
    """Double a path until it turns; return it, and the half that was thrown away."""
    path = [start]
    for coin in coins:
        if coin < 0.5:
            path = [PhasePoint(z.theta, -z.r) for z in reversed(path)]
        half = [step(path[-1])]
        while len(half) < len(path):
            half.append(step(half[-1]))
        if has_turn(half):
            return path, half
        path = path + half
        if has_turn(path):
            break
    return path, []


# %% [markdown]
# Grow one on the ridge.

# %%
precise = Gaussian.correlated(0.95, dtype=torch.float64)
tree_step = 0.34


def step(z):
    theta, r = leapfrog(precise.gradient, z.theta[None], z.r[None], tree_step)
    return PhasePoint(theta[0], r[0])


first = PhasePoint(
    torch.tensor([1.5, 1.2], dtype=torch.float64),
    torch.tensor([-0.6, -1.4], dtype=torch.float64),
)
generator = torch.Generator().manual_seed(25)
coins = torch.rand(2, 10, generator=generator, dtype=torch.float64)[0]
path, thrown_away = grow(first, step, coins)

# %% mystnb={"figure": {"caption": "A path grown by doubling on the ridge. Above: its states, coloured by the doubling in which they came; the black dot is the start, hollow states belong to the last half, which was thrown away. Below: the tree. Each bracket is an aligned sub-tree; those that turn are red and thick.", "name": "fig-tree"}, "image": {"alt": "Above, a narrow ridge along the diagonal with a path of sixteen states from its upper right to its lower left end; eight filled ones in several colours about the black start, and eight hollow ones that come to the end and turn back. Below, the sixteen states in a row under brackets of two, four and eight; three of the brackets over the hollow states are red."}} tags=["hide-input"]
palette = ["black", "#D55E00", "#E69F00", "#009E73", "#56B4E9", "#0072B2", "#CC79A7"]
states = path + thrown_away
doubling_of = {}
for number in range(len(coins)):  # the path after each number of doublings
    for z in grow(first, step, coins[:number])[0]:
        doubling_of.setdefault(tuple(z.theta.tolist()), number)
last_doubling = max(doubling_of.values()) + 1
colours = [
    palette[doubling_of.get(tuple(z.theta.tolist()), last_doubling)] for z in states
]
figure, (above, below) = plt.subplots(2, 1, figsize=(5.2, 6.6), height_ratios=(2, 1))
plot_contours(above, ridge, -3, 3)
points = torch.stack([z.theta for z in states])
above.plot(*points.T, lw=0.7, color="0.6")
for index, (z, colour) in enumerate(zip(states, colours, strict=True)):
    inside = colour if index < len(path) else "white"
    above.plot(*z.theta, "o", ms=5, color=colour, mfc=inside)
    below.plot(index, 0, "o", ms=4, color=colour, mfc=inside)
above.set(xlabel=r"$\theta_1$", ylabel=r"$\theta_2$")
for part, offset in ((path, 0), (thrown_away, len(path))):
    for level in range(1, len(part).bit_length()):
        for low in range(0, len(part), 2**level):
            block = part[low : low + 2**level]
            half = len(block) // 2
            turning = any(map(turns, (block, block[: half + 1], block[half - 1 :])))
            left, right = low + offset, low + offset + len(block) - 1
            below.plot(
                [left, left, right, right],
                [level - 0.35, level, level, level - 0.35],
                color="#D00000" if turning else "0.4",
                lw=2.4 if turning else 1,
            )
below.set(
    xlabel="place in the path, in the order of time",
    ylabel="depth",
    yticks=range(len(path).bit_length()),
    xticks=range(0, len(states), 4),
)
plt.show()

# %% [markdown]
# In {numref}`fig-tree` begin at the black dot and follow the colours outwards: every doubling is as long as all before it together, on one side or the other.
# The last one, hollow, came to the end of the ridge and turned back. In the tree below some of its brackets are red: sub-trees that turn. So this half was thrown away, and the growth ended.
# The filled states are the finished path, and no bracket over them is red.
#
# {numref}`fig-live-nuts` grows this tree state by state, and others from the same start.
#
# ```{live} nuts
# :name: fig-live-nuts
# :alt: A narrow ridge with a path of eight filled and six hollow states; its brackets, of which one is thick and dashed; the histogram of a chain of draws on the true density; and their variance, which comes to one.
#
# Live: a path grown by doubling on the ridge, its tree, and a chain of such draws. A step back by the slider shows the states in the order in which they came.
# ```

# %% tags=["hide-input"]
lengths, found_in_path = [], []
for seed in range(100):
    coins_of_seed = torch.rand(
        2, 10, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )[0]
    mine, _ = grow(first, step, coins_of_seed)
    start_energy = precise.energy(first.theta[None]) + first.r @ first.r / 2

    def forward(point):
        theta, r = leapfrog(precise.gradient, point.position, point.momentum, tree_step)
        log_weight = start_energy - precise.energy(theta) - (r * r).sum(-1) / 2
        return Point(theta, r, log_weight)

    tree = grow_tree(
        Point(first.theta[None], first.r[None], torch.zeros(1, dtype=torch.float64)),
        forward,
        Matrix(1.0),
        max_depth=10,
        generator=torch.Generator().manual_seed(seed),
    )
    lengths.append(len(mine) == 2 ** int(tree.depth))
    distances_to_chosen = [
        (z.theta - tree.chosen.position[0]).abs().max() for z in mine
    ]
    found_in_path.append(min(distances_to_chosen) < 1e-9)
claim(
    "In 100 trees the plain lines and the package stop at the same length, and the "
    "state that the package chooses lies on the plain path",
    all(lengths) and all(found_in_path),
    because="the same rule and the same coins",
    kind="exact",
)
claim(
    "The finished path and the half that was thrown away have eight states each",
    len(path) == len(thrown_away) == 8,
    because="each doubling doubles the path; the last one was refused",
    kind="exact",
)

# %% [markdown]
# ## Why it works
#
# ```{prf:theorem} NUTS leaves the target invariant
# :label: thm-nuts
#
# Grow a path from $(\theta, r)$ with $r \sim N(0, M)$ by leapfrog steps and doubling. Stop growing when the whole path turns, or when a new half contains a turning sub-tree; such a half is thrown away, and the path before it is the finished one. Choose a state of the path with probability proportional to $e^{-H}$. The chain of the positions leaves $\pi(\theta) \propto e^{-U(\theta)}$ invariant.
# ```
#
# ```{prf:proof}
# Let $(\theta, r)$ have the density $e^{-H}/Z$. Leapfrog keeps volume, so the density for the finished path to be $w = (z_0, \dots, z_{2^j-1})$ with the start at index $s$ is a product of three things:
#
# * $e^{-H(z_s)}/Z$, for the start;
# * $2^{-j}$, for the coins: exactly one sequence of coins puts the start at index $s$;
# * one or zero, for having come so far and stopped there. The growth came so far if and only if no aligned sub-tree of $w$, other than $w$ itself, turns: those that hold the start were checked when they were the whole path, the others when they were part of a new half. It stops at $w$ if $w$ turns, or if the next new half, on the side that the next coin tells, is thrown away. Neither depends on $s$.
#
# So given the path, the start has index $s$ with probability proportional to $e^{-H(z_s)}$. A new index drawn with the same probabilities, independently, gives a state with the same law as the start.
# ```
#
# The page {doc}`/book/appendix/sgnuts_theorem` proves it in a form that also covers paths with friction and noise ({prf:ref}`thm-tree`).
# The weights $e^{-H}$ repair what the integrator's error does; along an exact trajectory they would all be equal.
#
# The new index need not be independent of the old one. Let $\kappa(s, k)$ be the probability to choose $k$ if the start has index $s$ (here $\kappa$ is no condition number). Any choice for which $e^{-H(z_s)}\kappa(s, k)$ is symmetric in $s$ and $k$ will do, and one is better than independent draws. Whenever a new half comes, draw a state of it by the weights, and take it with probability $\min(1, w_{\text{new}}/w_{\text{old}})$, where $w$ sums the weights of a half {cite:p}`betancourt2017`. That favours states far from the start ({prf:ref}`lem-choice`; {ref}`ex-nuts-write` has you write it).
#
# The package does what `grow` does, for all chains at once, and chooses a state as it goes along. Here is its code in four pieces; nothing is left out between them.
#
# *Before the loop.* `near` and `far` are the two ends of the path, both with their momenta pointing outwards. So a step at either end is a step forward, and the path always grows at `near`.
# `chosen` is the state chosen so far, `log_weight` the logarithm of the path's whole weight, `total` is $\rho$, and `growing` says which chains have not stopped.
#
# ```{literalinclude} ../../sgmc/kernels/trees.py
# :language: python
# :pyobject: grow_tree
# :start-at: near, far = start
# :end-before: for doubling in
# :dedent: 4
# ```
#
# *A coin, and a new half.* Where the coin says so the path is turned round: its ends change places, and $\rho$ its sign. `grow_branch` takes the steps of the new half, draws a candidate from its states, and checks all its sub-trees. A chain in which one of them turns stops here, and keeps what it had.
#
# ```{literalinclude} ../../sgmc/kernels/trees.py
# :language: python
# :pyobject: grow_tree
# :start-at: for doubling in
# :end-before: depth += growing
# :dedent: 4
# ```
#
# *The choice, and the whole path.* The candidate replaces the choice so far with probability $\min(1, w_{\text{new}}/w_{\text{old}})$. Then `join` asks of the old half and the new one together whether they turn, as the three pieces of `has_turn` do.
#
# ```{literalinclude} ../../sgmc/kernels/trees.py
# :language: python
# :pyobject: grow_tree
# :start-at: depth += growing
# :end-before: taken, log_weights
# :dedent: 8
# ```
#
# *What is reported.* How many steps each chain took, whether one of them diverged, and the mean acceptance over them.
#
# ```{literalinclude} ../../sgmc/kernels/trees.py
# :language: python
# :pyobject: grow_tree
# :start-at: taken, log_weights
# :dedent: 4
# ```
#
# And this is the sampler: a momentum, a tree, one of its states.
# All chains grow together. A chain that has stopped is carried along, and what happens to it no longer counts.
#
# ```{literalinclude} ../../sgmc/kernels/nuts.py
# :language: python
# :pyobject: NUTS.step
# ```
#
# Is the rule about the sub-trees really needed? Leave it out, and look: a second sampler grows its trees as ever, but looks at none of the sub-trees of a new half.


# %% tags=["hide-input"]
def careless(near, forward, inverse_mass, num_states, growing, *rest):
    """Grow a new half as ever, but look at none of its sub-trees."""
    join = trees.join
    with patch.object(
        trees, "join", lambda *spans: (join(*spans)[0], torch.ones_like(growing))
    ):
        return grow_branch(near, forward, inverse_mass, num_states, growing, *rest)


grow_branch = trees.grow_branch
generator = torch.Generator().manual_seed(4)
exact = bowl.exact_samples(10_000, generator)
with patch.object(trees, "grow_branch", careless):
    unchecked = sample(NUTS(step_size=0.5), bowl, exact, num_samples=30, seed=5)

# %%
nuts = sample(NUTS(step_size=0.5), bowl, exact, num_samples=30, seed=5)
value, error = nuts.mean_and_standard_error(lambda x: x**2)

# %% mystnb={"figure": {"caption": "Variance of the draws in the bowl, 10,000 chains that start from the true law, whose variance is 1 (grey). Only the sampler with all its checks keeps it.", "name": "fig-naive"}, "image": {"alt": "Variance over thirty draws, on a logarithmic scale. Stopping at the turn and taking the end rises to about thirty; doubling without its checks levels off above two, taking any point a little below two; NUTS stays on the grey line at one."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.8))
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
    torch.cat([exact[None], unchecked.samples]).square().mean((1, 2)),
    ":",
    color=COLOURS["NUTS"],
    label="doubling, sub-trees not checked",
)
axes.plot(
    torch.cat([exact[None], nuts.samples]).square().mean((1, 2)),
    color=COLOURS["NUTS"],
    label="NUTS",
)
axes.set(xlabel="draw", ylabel="variance", yscale="log")
axes.legend(fontsize=8)
plt.show()

# %% [markdown]
# All four lines of {numref}`fig-naive` begin at the truth, with the variance 1 at draw 0. The two obvious rules leave it within a few draws, one of them without end; so does doubling without its checks. Only the whole algorithm stays.

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
    at_least=2.2,
    because="measured 2.6 ± 0.1 after 30 draws; the truth is 1",
)

# %% [markdown]
# ## Adaptation
#
# No number of steps is left to choose, but a step size and a mass are. Both can be learnt in a {term}`warm-up`, whose draws are then thrown away: a chain that adapts for ever remembers its past and need not have the right law.
#
# **Step size.** Too large a step makes large energy errors; the mean of $\min(1, e^{H(z_0) - H(z)})$ over the states of a tree says how large, and 0.8 is a good value.
# *Dual averaging* {cite:p}`hoffman2014` adds up by how much the acceptance has fallen short of that, and lowers $\log\varepsilon$ in proportion to the sum, boldly at first and ever more cautiously. In the end it takes an average of where it has been.
#
# ```{literalinclude} ../../sgmc/tuning/adaptation.py
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
untuned = replace(tuned, mass=1.0, step_size=averaging.average)
without_mass = sample(
    untuned, target, target.exact_samples(50, generator), num_samples=10, seed=9
)

# %% mystnb={"figure": {"caption": "Dual averaging on a Gaussian with scales from 0.1 to 10 and unit mass. Above: the step size of each step and its average. Below: the acceptance of each step; the target is the grey line.", "name": "fig-dual-averaging"}, "image": {"alt": "Above, dots of the step size, which fall from above one to below 0.1 within a few steps and then scatter about a line that comes to rest at 0.15. Below, dots of the acceptance, which start at zero and one and then scatter about 0.8."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(2, 1, figsize=(5.2, 5.2), sharex=True)
left.semilogy([s for s, _, _ in trace], ".", color=COLOURS["NUTS"], label="step size")
left.semilogy([a for _, a, _ in trace], color="black", label="average")
left.set(ylabel=r"step size $\varepsilon$")
left.legend()
right.plot([a for _, _, a in trace], ".", color=COLOURS["NUTS"])
right.axhline(0.8, color=TRUTH)
right.set(xlabel="step of the warm-up", ylabel="acceptance")
plt.show()

# %% [markdown]
# In {numref}`fig-dual-averaging` the single step sizes (dots) jump about for ever, and their average (line) comes to rest.
# The acceptance, below, is first near 0 and then near 1, because the first steps are far too large and the next far too small; then it scatters about 0.8.
# With unit mass the narrowest scale, 0.1, holds the step down, and the widest, 10, makes the paths long. The adapted mass takes both away, and a draw costs less than a fifteenth as many gradients.

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
    "Gradients of a draw with unit mass over those with the adapted mass",
    cost / tuned_cost,
    at_least=15,
    because="scales in the ratio 100 need longer paths; it was 21 and 22",
)

# %% [markdown]
# ## Against HMC, well and badly tuned
#
# Give HMC the same step size as NUTS, and try many lengths. The measure is effective draws per gradient, for the worst of all coordinates and of $\theta$ and $\theta^2$. With many independent chains {eq}`eq-tau` gives $\tau$ at once: the variance of the chains' averages times their length, over the variance of a draw.

# %%
scales = torch.tensor([1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
target = Gaussian(torch.diag(scales**2))
generator = torch.Generator().manual_seed(10)


def efficiency(kernel, chains=800, num_samples=60, seed=11):
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

# %% mystnb={"figure": {"caption": "Effective draws per gradient on a Gaussian with scales from 1 to 6: HMC at eleven lengths, with a fixed and with a random number of steps, and NUTS, which has no such setting. All use the same step size.", "name": "fig-nuts-hmc"}, "image": {"alt": "Effective draws per gradient over the number of leapfrog steps, on a logarithmic scale. HMC with a random number of steps rises above NUTS's level line for six to eight steps and falls below it for shorter and longer ones; with a fixed number it stays below, and drops by a factor of ten or more at some lengths."}} tags=["hide-input"]
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
axes.set(xlabel="leapfrog steps $L$", ylabel="effective draws per gradient")
axes.legend(loc="lower left", fontsize=8)
plt.show()

# %% [markdown]
# In {numref}`fig-nuts-hmc` see where the dashed line of HMC crosses that of NUTS. The best length beats NUTS: a tree takes steps that it throws away, and grows to both sides of the start, although the draw lies on one. But the best length is known only after the search, and a wrong one costs far more.

# %% tags=["hide-input"]
claim(
    "NUTS over the best of HMC's settings, effective draws per gradient",
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
# * A tree in which the energy explodes is called *divergent*, and recorded: it marks regions of high curvature that the chain cannot enter. Divergences in one part of the space mean that the draws miss it.
# * Chains that run together wait for the one with the deepest tree.
# * Do not put another rule in the place of {eq}`eq-turn` without going through the proof.
#
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | moving away from the start | $(\theta - \theta_0)^\top M^{-1}r > 0$ | {eq}`eq-distance` |
# | growth of the variance under the obvious rule | $E[\theta'^2] = E[\theta^2] + 1$ | {eq}`eq-naive-growth` |
# | a piece of path turns | $\rho^\top M^{-1}r^- \le 0$ or $\rho^\top M^{-1}r^+ \le 0$ | {eq}`eq-turn` |
# | place of the start | each of $2^j$ with probability $2^{-j}$ | {prf:ref}`thm-nuts` |
# | choice of a state | with probability proportional to $e^{-H}$ | {prf:ref}`thm-nuts` |
# | what dual averaging holds at 0.8 | mean of $\min(1, e^{H(z_0) - H(z)})$ over the tree | {numref}`fig-dual-averaging` |
#
# ## Change it
#
# * In `grow` write `if False:` for `if has_turn(half):`. Nothing is thrown away any more, and the two claims on the plain lines show ✗: this is the mistake that {numref}`fig-naive` prices.
# * Write `tree_step = 0.17` for `tree_step = 0.34`. The path needs about twice as many states to turn; plain lines and package still agree, and only the claim on the number of states shows ✗.
#
# ## Exercises
#
# ````{exercise} Write it yourself
# :label: ex-nuts-write
#
# Let `grow` choose a state as well. In a new half each state in its turn replaces the candidate so far; the probability is its share of the sum of the weights $e^{-H}$ so far. Then the candidate replaces the choice so far with probability $\min(1, w_{\text{new}}/w_{\text{old}})$.
#
# ```python
# def grow_and_choose(start, step, weight, generator, max_depth=10):
#     """Double a path until it turns; return one of its states."""
#     path, chosen = [start], start
#     coins, lots = torch.rand(2, max_depth, generator=generator)
#     for coin, lot in zip(coins, lots, strict=True):
#         ...  # turn the path round, or not; take the steps of the new half
#         uniforms = torch.rand(len(half), generator=generator)
#         ...  # the candidate of the half
#         ...  # if the half turns, return; else choose, and join
#     return chosen
# ```
#
# Drawing the random numbers in this order gives the very states that the package gives.
# In assignment 3 of {doc}`/book/practice/teaching` you grow such paths for another sampler, and test what its authors claim.
# ````
#
# ```{solution} ex-nuts-write
# :class: dropdown
#
# The code is in the next cell. The candidate's rule draws from a list in one pass, without knowing how much weight is still to come.
# ```


# %% tags=["hide-input"]
def grow_and_choose(start, step, weight, generator, max_depth=10):
    """Double a path until it turns; return one of its states."""
    path, chosen = [start], start
    coins, lots = torch.rand(2, max_depth, generator=generator, dtype=torch.float64)
    for coin, lot in zip(coins, lots, strict=True):
        if coin < 0.5:
            path = [PhasePoint(z.theta, -z.r) for z in reversed(path)]
        half = [step(path[-1])]
        while len(half) < len(path):
            half.append(step(half[-1]))
        if has_turn(half):
            return chosen
        uniforms = torch.rand(len(half), generator=generator, dtype=torch.float64)
        candidate, new = half[0], 0.0
        for z, uniform in zip(half, uniforms, strict=True):
            new = new + weight(z)
            candidate = z if uniform < weight(z) / new else candidate
        if lot < new / sum(weight(z) for z in path):
            chosen = candidate
        path = path + half
        if has_turn(path):
            break
    return chosen


def weight(z):
    return torch.exp(-precise.energy(z.theta[None])[0] - z.r @ z.r / 2)


def package_choice(seed):
    """Choose a state from the same start by the package."""
    start_energy = -weight(first).log()

    def forward(point):
        theta, r = leapfrog(precise.gradient, point.position, point.momentum, tree_step)
        log_weight = start_energy - precise.energy(theta) - (r * r).sum(-1) / 2
        return Point(theta, r, log_weight)

    point = Point(first.theta[None], first.r[None], start_energy[None] * 0)
    generator = torch.Generator().manual_seed(seed)
    return grow_tree(point, forward, Matrix(1.0), 10, generator).chosen.position[0]


claim(
    "Largest difference between the states chosen by hand and by the package, 50 trees",
    max(
        (
            grow_and_choose(
                first, step, weight, torch.Generator().manual_seed(seed)
            ).theta
            - package_choice(seed)
        )
        .abs()
        .max()
        for seed in range(50)
    ),
    at_most=1e-9,
    because="the same rule and the same random numbers; rounding",
    kind="exact",
)

# %% [markdown]
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


# %% tags=["hide-input"]
def turn_by(angle):
    """A step of the exact dynamics in the bowl."""
    angle = torch.tensor(angle, dtype=torch.float64)

    def step(z):
        c, s = angle.cos(), angle.sin()
        return PhasePoint(c * z.theta + s * z.r, c * z.r - s * z.theta)

    return step


def depth(start, angle, coins):
    """The number of doublings before the path stops."""
    return len(grow(start, turn_by(angle), coins)[0]).bit_length() - 1


circle = PhasePoint(*torch.eye(2, dtype=torch.float64))
as_expected = 0
for angle in (0.9, 0.6, 0.4, 0.3):
    expected = next(j for j in range(1, 7) if (2**j - 1) * angle >= torch.pi)
    coins_of_all = itertools.product((0, 1), repeat=expected + 1)
    found = {depth(circle, angle, coins) for coins in coins_of_all}
    as_expected += found == {expected}
phases = torch.linspace(0.05, 6.25, 12, dtype=torch.float64)
swings = [PhasePoint(phase.sin()[None], phase.cos()[None]) for phase in phases]
in_one_dimension = {depth(swing, 0.1, (0, 1, 0, 1, 0, 1)) for swing in swings}
claim(
    "Step sizes of four at which a path on the circle stops at the depth of the "
    "formula, whatever the coins",
    as_expected,
    near=4,
    within=0,
    because="all coins, exact dynamics",
    kind="exact",
)
claim(
    "Different depths of paths in one dimension, ε = 0.1, twelve starts",
    len(in_one_dimension),
    at_least=3,
    because="exact dynamics; there the depth depends on the phase",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-nuts-refresh
#
# Would the theorem hold if the chosen momentum were kept for the next tree, instead of drawing a fresh one?
# ```
#
# ```{solution} ex-nuts-refresh
# :class: dropdown
#
# Yes, the tree leaves $e^{-H}$ invariant. But up to the integrator's error it keeps the energy, so the chain would hardly get from one energy to another.
# ```
#
# ## Further reading
#
# {cite:t}`hoffman2014` introduced the sampler with slice sampling in place of weights, {cite:t}`betancourt2017` the weights and the criterion used here; {cite:t}`durmus2023` prove that it converges.
# What becomes of the argument when the path has friction and noise is the subject of {doc}`/book/tutorial/sgnuts`.
