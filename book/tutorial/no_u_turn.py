# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # When to turn back: the no-U-turn sampler
#
# ```{div} page-head
# Page 11 of 12 · 24 minutes to read, 10 to play · Running: about 8 seconds
# ```
#
# ```{index} ! NUTS, ! no-U-turn sampler
# ```

# %% tags=["hide-input"]
from typing import NamedTuple
from unittest.mock import patch

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, plot_contours, use_style
from booklib.page.play import play
from booklib.page.scoreboard import show_scoreboard
from sgmc import sample
from sgmc.integrators import leapfrog
from sgmc.kernels import NUTS, trees
from sgmc.kernels.trees import Point, grow_tree
from sgmc.matrices import Matrix
from sgmc.targets import Gaussian

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# For this page we put minibatches aside and return to {doc}`HMC </book/tutorial/hamiltonian_monte_carlo>`, which left two numbers to choose. The second is the subject of this page: how long should a trajectory be?
# One that is too short is a step of a random walk, and one that is too long returns to where it began, and wastes its gradients.
# {numref}`fig-turn-times` shows six trajectories on a ridge.
# Each runs away from its start up to the dot, where it first turns back; one that starts across the ridge soon does, one that starts along it goes far.
# No fixed number of steps suits all six, so let each trajectory decide for itself when to turn back.

# %% mystnb={"figure": {"caption": "Distance from the start along six trajectories on a Gaussian with correlation 0.95: drawn until they first turn back (dots), then faintly.", "name": "fig-turn-times"}, "image": {"alt": "Six curves of the distance from the start, which rise to dots at times between 0.4 and 3 and go down and up after them."}} tags=["hide-input"]
ridge = Gaussian.correlated(0.95)
generator = torch.Generator().manual_seed(3)
start = ridge.exact_samples(2_000, generator)
position, momentum = start, torch.randn(2_000, 2, generator=generator)
distances, advance = [torch.zeros(2_000)], []
for _ in range(100):
    position, momentum = leapfrog(ridge.gradient, position, momentum, 0.1)
    distances.append((position - start).norm(dim=-1))
    advance.append(((position - start) * momentum).sum(-1))
distances = torch.stack(distances)
turn_time = 0.1 * (1 + (torch.stack(advance) < 0).float().argmax(0))
figure, axes = plt.subplots(figsize=(5.4, 3.2))
time = 0.1 * torch.arange(101)
for chain in range(6):
    until = time <= turn_time[chain]
    (line,) = axes.plot(time[until], distances[until, chain])
    colour = line.get_color()
    axes.plot(time, distances[:, chain], lw=0.7, alpha=0.4, color=colour)
    axes.plot(turn_time[chain], distances[until, chain][-1], "o", color=colour)
axes.set(xlabel="time $t$", ylabel=r"$\|\theta - \theta_0\|$")
plt.show()

# %% tags=["hide-input"]
claim(
    "The ninth decile of the time to the first turn over its first decile",
    turn_time.quantile(0.9) / turn_time.quantile(0.1),
    at_least=6.5,
    because="measured 9; the two directions of the ridge have periods in the ratio 6",
)

# %% [markdown]
# *A guess before you read on.*
# Stop each trajectory at its dot and take that point as the next sample: energy is conserved and nothing needs to be rejected.
# What variance will the bowl have after twenty samples, if it starts at the correct 1?
#
# The scoreboard so far:

# %% tags=["hide-input"]
show_scoreboard(11)

# %% [markdown]
# ## The obvious rule is wrong
#
# The distance from the start $\theta_0$ changes, with the velocity $v = M^{-1}r$, at the rate
#
# $$
# \frac{d}{dt}\,\tfrac12\lVert\theta - \theta_0\rVert^2 = (\theta - \theta_0)^\top v.
# $$ (eq-distance)
#
# While this is positive, going on brings us farther away; where it turns negative the trajectory makes a *U-turn*.
#
# In the bowl $U = \tfrac12\theta^2$ it turns where the momentum changes its sign.
# There the momentum is zero, so all the energy is potential: $\tfrac12\theta'^2 = \tfrac12\theta^2 + \tfrac12r^2$.
# With a fresh $r \sim N(0, 1)$ each time,
#
# $$
# E[\theta'^2] = E[\theta^2] + 1.
# $$ (eq-naive-growth)
#
# This answers the guess: the variance grows by one with every sample, to 21 after twenty. The chain has no stationary distribution at all, because $\theta'^2 = \theta^2 + r^2$ says that $\lvert\theta\rvert$ grows in every single step.
#
# The reason is that the rule depends on where the path started.
# Let the trajectory from $z = (\theta, r)$ stop at $z'$.
# Started at $z'$ with the momentum reversed, the same path would *not* stop at $z$, because the turn is then judged from another start.
# The move has no way back with the same probability, so detailed balance is lost, and with it the reason to expect the target.
#
# ## Doubling
#
# {cite:t}`hoffman2014` found the way out: build a path to *both* sides of the start, in such a way that the finished path could have been built from any of its states with the same probability.
# Then choose one of its states by a rule that looks at the path only.
#
# Double the path again and again, and toss a coin each time.
# To the right, take as many new steps forward from the right end as there are states; to the left, as many backward from the left end.
# After $j$ doublings there are $2^j$ states, and the coins have put the start at each of the $2^j$ places with probability $2^{-j}$.
#
# Number the states from left to right, $0$ to $2^j - 1$.
# The halves of the path, its quarters, its eighths and so on are its *aligned sub-trees*: blocks of $2^k$ neighbours whose first number is a multiple of $2^k$.
# After a doubling the old path is one half of the new path, and the new states are the other.
#
# When is the path long enough?
# Take any piece of it, with the states $z^-$ and $z^+$ at its ends and the sum $\rho$ of all its momenta; up to a factor, $M^{-1}\rho$ is nearly the way from one end to the other, because every step adds $\varepsilon M^{-1}r$ to the position.
# The piece *turns* if
#
# $$
# \rho^\top M^{-1}r^- \le 0 \quad\text{or}\quad \rho^\top M^{-1}r^+ \le 0
# $$ (eq-turn)
#
# {cite:p}`betancourt2013`.
# This is {eq}`eq-distance` asked at both ends, and the start does not appear in it.
# (On first reading skip this: two halves can each go on although the path turns just where they meet, so we also test each half together with the first state of the other.)
#
# Stop when the whole path turns.
# One more rule is needed, and easily forgotten: if the *new half*, or any aligned sub-tree of it, turns by itself, throw the new half away and stop.
# A start inside that sub-tree would have stopped there, and would never have built this path.
# Take four states 0, 1, 2, 3, of which the new half, 2 and 3, turns. From 0 or 1 the path of four could be built; from 2 or 3 the coins that lead to this path first make the pair 2, 3, which turns, and the growth ends with two states. So a new half that contains such a pair must be thrown away.
# A turn of the *whole* path does no harm: from whichever state it was built, it is seen at the same moment, when the path is complete.
#
# In code, for one chain: instead of growing to the left, turn the path round, and always append at its end.


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
# {numref}`fig-tree` grows one on the ridge.
# Begin at the black dot and follow the colours outwards: every doubling is as long as all before it together.
# The last one, hollow, came to the end of the ridge and turned back: some brackets of its tree are red. So this half was thrown away, and the filled states are the finished path.

# %% mystnb={"figure": {"caption": "A path grown by doubling on the ridge. Above: its states, coloured by the doubling in which they came; the black dot is the start, hollow states belong to the last half, which was thrown away. Below: the tree. Each bracket is an aligned sub-tree; those that turn are red and thick.", "name": "fig-tree"}, "image": {"alt": "Above, a narrow ridge along the diagonal with a path of sixteen states from its upper right to its lower left end; eight filled ones in several colours about the black start, and eight hollow ones that come to the end and turn back. Below, the sixteen states in a row under brackets of two, four and eight; three of the brackets over the hollow states are red."}} tags=["hide-input"]
precise, tree_step = Gaussian.correlated(0.95, dtype=torch.float64), 0.34


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
# {numref}`fig-live-nuts` grows this tree state by state, and others from the same start.
#
# ```{live} nuts
# :name: fig-live-nuts
# :alt: A narrow ridge with a path of eight filled and six hollow states; its brackets, of which one is thick and dashed; the histogram of a chain of draws on the true density; and their variance, which comes to one.
#
# Live: a path grown by doubling on the ridge, its tree, and a chain of such samples. It stops at the first turn in the new half, so its tree has fewer states than {numref}`fig-tree`, which shows the whole half. Moving the slider back shows the states in the order in which they came.
# ```
#
# ## Why it works
#
# ```{prf:theorem} NUTS leaves the target invariant
# :label: thm-nuts
#
# Let $U$ be as in {prf:ref}`thm-hmc`. Grow a path from $(\theta, r)$ with $r \sim N(0, M)$ by leapfrog steps and at most $J$ doublings. Stop growing when the whole path turns, when a new half contains a turning sub-tree, or after $J$ doublings; in the second case the new half is thrown away. Choose a state of the finished path with probability proportional to $e^{-H}$. The chain of the positions leaves $\pi(\theta) \propto e^{-U(\theta)}$ invariant.
# ```
#
# ```{prf:proof}
# Let $(\theta, r)$ have the density $e^{-H}/Z$. Leapfrog keeps volume, so we may use the coordinates of $z_0$ whichever state is the start. In these the density for the finished path to be $w = (z_0, \dots, z_{2^j-1})$ with the start at index $s$ has three factors:
#
# * $e^{-H(z_s)}/Z$, for the start;
# * $2^{-j}$, for the coins: exactly one sequence of coins puts the start at index $s$;
# * the probability, over the next coin, that the growth did not stop before $w$, and stops at $w$.
#
# The third does not depend on $s$. A sub-tree with the start in it was once the whole path, and any other was part of a new half. So every aligned sub-tree of $w$ was examined, whichever state was the start. And whether the growth stops at $w$ depends on $w$, on $j$, and on the next coin and the half that it would add, all of which are the same for every $s$.
#
# Given the path, the start therefore has index $s$ with probability proportional to $e^{-H(z_s)}$. A new index drawn with the same probabilities gives a state with the same distribution as the start.
# ```
#
# Along an exact trajectory all weights $e^{-H}$ would be equal; they correct the integrator's error, as the acceptance step of HMC does.
# Instead of an independent draw one may prefer states of the new half: move there with probability $\min(1, w_{\text{new}}/w_{\text{old}})$, where $w$ sums the weights of a half.
# This keeps the distribution and travels further ({prf:ref}`lem-choice`; {ref}`ex-nuts-write`).
# (An energy error so large that the step has *diverged* also ends the growth; the package compares with the energy of the start, which the proof does not cover.)
#
# The package does what `grow` does for all chains at once ({doc}`/book/appendix/api/kernel_parts`).
# {numref}`fig-naive` compares it with the two rules that it avoids, in 10,000 chains from the true distribution.


# %% tags=["hide-input"]
def stop_at_the_turn(position, num_samples, step_size, generator):
    """Stop every trajectory at its first turn, and take its end."""
    samples = [position]
    for _ in range(num_samples):
        start, chosen = position, position
        momentum = torch.randn(start.shape, generator=generator)
        going = torch.ones(len(start), dtype=torch.bool)
        while going.any():
            position, momentum = leapfrog(bowl.gradient, position, momentum, step_size)
            chosen = torch.where(going[:, None], position, chosen)
            going &= ((position - start) * momentum).sum(-1) >= 0
        position = chosen
        samples.append(position)
    return torch.stack(samples)


def careless(near, forward, inverse_mass, num_states, growing, *rest):
    """Grow a new half as ever, but look at none of its sub-trees."""
    join = trees.join
    with patch.object(
        trees, "join", lambda *spans: (join(*spans)[0], torch.ones_like(growing))
    ):
        return grow_branch(near, forward, inverse_mass, num_states, growing, *rest)


grow_branch, bowl = trees.grow_branch, Gaussian.standard(1)
generator = torch.Generator().manual_seed(4)
exact = bowl.exact_samples(10_000, generator)
obvious = stop_at_the_turn(exact, 30, 0.1, generator)
nuts = sample(NUTS(step_size=0.5), bowl, exact, num_samples=30, seed=5)
with patch.object(trees, "grow_branch", careless):
    unchecked = sample(NUTS(step_size=0.5), bowl, exact, num_samples=30, seed=5)

# %% mystnb={"figure": {"caption": "Variance of the samples in the bowl, 10,000 chains that start from the true distribution, whose variance is 1 (grey).", "name": "fig-naive"}, "image": {"alt": "Variance over thirty samples, on a logarithmic scale. Stopping at the turn rises to about thirty; doubling without its checks levels off above two; NUTS stays on the grey line at one."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.4))
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
for samples, style, name, colour in (
    (obvious, "-", "stop at the turn", "naive SGHMC"),
    (torch.cat([exact[None], unchecked.samples]), ":", "sub-trees not checked", "HMC"),
    (torch.cat([exact[None], nuts.samples]), "-", "NUTS", "NUTS"),
):
    variance = samples.square().mean((1, 2))
    axes.plot(variance, style, color=COLOURS[colour], label=name)
axes.set(xlabel="sample", ylabel="variance", yscale="log")
axes.legend()
plt.show()

# %% [markdown]
# Only the whole algorithm stays at 1, its row on the scoreboard.
# Stopping at the turn leaves it at once, as {eq}`eq-naive-growth` predicts, and so does doubling without a look at the sub-trees of a new half.

# %% tags=["hide-input"]
for name, function, truth in (
    ("Variance", lambda x: x**2, 1),
    ("E[θ⁴]", lambda x: x**4, 3),
):
    value, error = nuts.mean_and_standard_error(function)
    claim(
        f"{name} of the bowl with NUTS",
        value,
        near=truth,
        standard_error=error,
        because="the theorem; 10,000 independent chains",
    )
claim(
    "Variance of sample number 20, taking the end of each trajectory",
    obvious[20].square().mean(),
    near=21,
    within=2,
    because="it grows by 1 with every sample; the standard error is 0.3",
)
claim(
    "Variance of the last sample, without the checks of the sub-trees",
    unchecked.samples[-1].square().mean(),
    at_least=2.2,
    because="measured 2.6 ± 0.1 after 30 samples; the truth is 1",
)
claim(
    "The finished path of the figure and the half that was thrown away have eight "
    "states each",
    len(path) == len(thrown_away) == 8,
    because="each doubling doubles the path; the last one turned",
    kind="exact",
)

# %% [markdown]
# NUTS still needs a step size and a mass, which are learned in a {term}`warm-up`; {doc}`/book/further/warm_up` shows how, and compares NUTS with HMC at its best and at its worst length.
#
# **To remember:** go on until the ends approach each other, and choose by $e^{-H}$ among states that would all have built the same path.
#
# Does this survive a minibatch?
# The noise of its gradient makes the path irreversible, and it does not show the energy, which is a sum over all the data.
# {doc}`The next page </book/tutorial/sgnuts>` builds the tree on noisy paths, and finds an error in the obvious way to do so.
#
# ## Change it
#
# * In `grow` set `if has_turn(half):` to `if False:`. Nothing is thrown away any more: the path of {numref}`fig-tree` runs on, and the claims on it and on the exercise show ✗. {numref}`fig-naive` shows what this mistake costs.
# * Set `Gaussian.correlated(0.95, dtype=torch.float64), 0.34` to `Gaussian.correlated(0.95, dtype=torch.float64), 0.17`: the path needs twice as many states to turn, and the claim on their number shows ✗.
# * Set both `NUTS(step_size=0.5)` to `NUTS(step_size=1.5)`: the variance stays 1, because the weights correct the energy error of even this step.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-nuts-write
#
# **Write it yourself.** Let `grow` choose a state as well. In a new half each state in its turn replaces the candidate so far; the probability is its share of the sum of the weights $e^{-H}$ so far. Then the candidate replaces the choice so far with probability $\min(1, w_{\text{new}}/w_{\text{old}})$.
#
# ```python
# def grow_and_choose(start, step, weight, generator, max_depth=10):
#     """Double a path until it turns; return one of its states."""
#     path, chosen = [start], start
#     coins, lots = torch.rand(2, max_depth, generator=generator, dtype=torch.float64)
#     for coin, lot in zip(coins, lots, strict=True):
#         ...  # turn the path round, or not; take the steps of the new half
#         uniforms = torch.rand(len(half), generator=generator, dtype=torch.float64)
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
# The code is in the next cell. The candidate's rule draws from a list in one pass, without the sum of the weights.
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


def package_tree(seed):
    """Grow a tree from the same start by the package."""
    start_energy = -weight(first).log()

    def forward(point):
        theta, r = leapfrog(precise.gradient, point.position, point.momentum, tree_step)
        log_weight = start_energy - precise.energy(theta) - (r * r).sum(-1) / 2
        return Point(theta, r, log_weight)

    point = Point(first.theta[None], first.r[None], start_energy[None] * 0)
    generator = torch.Generator().manual_seed(seed)
    return grow_tree(point, forward, Matrix(1.0), 10, generator)


def differences(seed):
    """Doublings and chosen state, by hand against the package."""
    tree = package_tree(seed)
    generators = (torch.Generator().manual_seed(seed) for _ in range(2))
    tosses = torch.rand(2, 10, generator=next(generators), dtype=torch.float64)[0]
    chosen = grow_and_choose(first, step, weight, next(generators)).theta
    return (
        abs(len(grow(first, step, tosses)[0]) - 2 ** int(tree.depth)),
        float((chosen - tree.chosen.position[0]).abs().max()),
    )


claim(
    "Largest difference in length and in the chosen state between the plain lines and "
    "the package, 50 trees",
    max(max(differences(seed)) for seed in range(50)),
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
# {cite:t}`hoffman2014` introduced the sampler, with slice sampling in place of weights. The weights are due to {cite:t}`betancourt2017`, the criterion of {cite:t}`betancourt2013`; {cite:t}`durmus2023` prove that the chain converges.
