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
# Page 11 of 12 · 36 minutes to read, 10 to play · Running: about 8 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! NUTS, ! no-U-turn sampler
# ```

# %%
import torch

from booklib.page.scoreboard import show_row
from sgmc.integrators import leapfrog

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import at_least, at_most, check, near
from booklib.page.figures import COLOURS, TRUTH, plot_contours, use_style
from booklib.page.play import play
from booklib.page.scoreboard import show_scoreboard
from sgmc import sample
from sgmc.kernels import NUTS
from sgmc.kernels.trees import Point, grow_tree
from sgmc.matrices import Matrix
from sgmc.targets import Gaussian

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# This page and the next are an elective: the story of pages 1 to 10 is complete without them.
# {doc}`HMC </book/tutorial/hamiltonian_monte_carlo>` left two numbers to choose, the size of a step and the number of steps, and this page is about the second: **how long should a trajectory be?**
# Its gradients are exact; minibatches come back on the next page.
#
# A trajectory that is too short is a step of a random walk, and one that is too long returns to where it began, and wastes its gradients.
# No fixed length ends all of them at their turn.
# {numref}`fig-turn-times` shows six trajectories on a ridge. Each runs away from its start up to the dot, where it first turns back; one that starts across the ridge soon does, and one that starts along it goes far.
# Among 2,000 starts the times differ widely: of every ten, one is below some $t_1$ and one above {c}`spread` times $t_1$.
#
# So let each path decide for itself: the *no-U-turn sampler*, NUTS, goes on until the two ends of the path approach each other, and then chooses one of the path's states, with a probability proportional to $e^{-H}$.
# This page shows why simply stopping at the dot is wrong, and what makes NUTS right.

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
spread = turn_time.quantile(0.9) / turn_time.quantile(0.1)
check("spread", spread, near(9, 2.5), because="periods in the ratio 6; 2,000 starts")

# %% [markdown]
# *A guess before you read on.*
# Stop each trajectory at its dot and take that point as the next sample: energy is conserved and nothing needs to be rejected.
# What variance will the bowl have after twenty samples, if it starts at the correct 1?
#
# The scoreboard, without gradient noise, has reached HMC:

# %% tags=["hide-input"]
show_scoreboard(5, first=3)

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
# This answers the guess: the variance grows by one with every sample, to 21 after twenty. The chain has no stationary distribution at all.
#
# The reason is that there is no way back.
# From $\theta = 1$ with $r = 1$ the ball stops at $\theta' = \sqrt2$.
# Start it there and turn its momentum round, which is zero, so that it starts at rest: it rolls back through 1, does not stop there, and turns at $-\sqrt2$.
# Where a path stops depends on where it started, so a move from $z$ to $z'$ has no move from $z'$ to $z$ to balance it.
#
# ## Two stages
#
# {cite:t}`hoffman2014` found the way out. A transition has two stages:
#
# 1. *A path from the state.* Grow a path to both sides of the start, so that the finished path could have been grown from any of its states with the same probability.
# 2. *A state from the path.* Choose one of the states by a rule that looks at the path, and not at where it started.
#
# Given the finished path, each of its states $z$ may then have been the start, with a probability proportional to $e^{-H(z)}$, because that is how often the chain stands at $z$. If the second stage chooses with the same probabilities, the new state has the distribution of the old one.
#
# How does one grow a path that has no beginning?
# Double it again and again, and toss a coin each time.
# To the right, take as many new steps forward from the right end as there are states; to the left, as many backward from the left end.
# Number the states of the result from left to right.
# A path of four states can be grown from each of them, by just one pair of coins:
#
# | start | first coin | path so far | second coin | path |
# | --- | --- | --- | --- | --- |
# | 0 | right | 0, 1 | right | 0, 1, 2, 3 |
# | 1 | left | 0, 1 | right | 0, 1, 2, 3 |
# | 2 | right | 2, 3 | left | 0, 1, 2, 3 |
# | 3 | left | 2, 3 | left | 0, 1, 2, 3 |
#
# So each start has the probability $\frac14$, and after $j$ doublings each of the $2^j$ states has $2^{-j}$.
#
# The table shows one thing more: on the way to the four, a start has been in 0, 1 or in 2, 3, and never in 1, 2.
# The halves of a path, its quarters, its eighths and so on are its *aligned sub-trees*. Those that hold the start were once the whole path, and the others are parts of a half that was added.
#
# ## When is the path long enough?
#
# Take any piece of the path, with the momenta $r^-$ and $r^+$ at its left and right end and the sum $\rho$ of all its momenta. Every step adds $\varepsilon M^{-1}r$ to the position, nearly, so up to a factor $M^{-1}\rho$ is the way from one end to the other.
# The piece *turns* if
#
# $$
# \rho^\top M^{-1}r^- \le 0 \quad\text{or}\quad \rho^\top M^{-1}r^+ \le 0
# $$ (eq-turn)
#
# {cite:p}`betancourt2013`.
# This is {eq}`eq-distance` asked at both ends, and the start does not appear in it. At the left end, to go on is to go backward, with the velocity $-v^-$, and the way from the other end is $-M^{-1}\rho$, so the signs cancel. With mass one:


# %%
def turns(r):
    """Tell whether the ends of a piece approach; r are its momenta, (states, dim)."""
    rho = r.sum(0)
    return bool(rho @ r[0] <= 0 or rho @ r[-1] <= 0)


# %% [markdown]
# There are two rules.
#
# * *Stop when the whole path turns, and keep it.* From whichever state it was grown, the turn is seen at the same moment, when the path is complete.
# * *Throw the new half away, and stop, if it turns, or an aligned sub-tree in it does.*
#
# The second is easily forgotten.
# Take the four states of the table, and let the pair 2, 3 turn.
# From 2 or 3 the growth ends with this pair, because it was then the whole path. So from 0 or 1, too, nobody may end with all four: the path would be one that two of its states could not have grown.
#
# In code, for one chain: a path is a list of states $(\theta, r)$, a step backward is a step forward between two flips of the momentum, and the coin says whether to turn round.


# %%
def has_turn(r):
    """Tell whether a half turns, or an aligned sub-tree in it."""
    middle = len(r) // 2
    return middle > 0 and (turns(r) or has_turn(r[:middle]) or has_turn(r[middle:]))


def momenta(path):
    return torch.stack([r for _, r in path])


def grow(start, step, generator, unusable=has_turn, max_depth=10):
    """First stage: grow a path from a state."""
    path, forward = [start], True
    for coin in torch.rand(max_depth, dtype=start[0].dtype, generator=generator):
        forward = not forward if coin < 0.5 else forward  # turn round, or not
        theta, r = path[-1] if forward else (path[0][0], -path[0][1])
        half = []
        for _ in path:
            theta, r = step(theta, r)
            half.append((theta, r))
        if not forward:
            half = [(theta, -r) for theta, r in reversed(half)]
        if unusable(momenta(half)):
            break  # throw the half away
        path = path + half if forward else half + path
        if turns(momenta(path)):
            break
    return path


def choose(path, weight, generator):
    """Second stage: choose a state from the path."""
    weights = torch.stack([weight(theta, r) for theta, r in path])
    return path[torch.multinomial(weights, 1, generator=generator)]


# %% [markdown]
# {numref}`fig-tree` grows one on the ridge.
# Begin at the black dot and follow the colours outwards: every doubling is as long as all before it together.
# The last one, hollow, came to the end of the ridge and turned back: some brackets of its tree are red. So this half was thrown away, and the filled states are the finished path.

# %% mystnb={"figure": {"caption": "A path grown by doubling on the ridge. Above: its states, coloured by the doubling in which they came; the black dot is the start, hollow states belong to the last half, which was thrown away. Below: the tree. Each bracket is an aligned sub-tree; those that turn are red and thick.", "name": "fig-tree"}, "image": {"alt": "Above, a narrow ridge along the diagonal with a path of sixteen states from its upper right to its lower left end; eight filled ones in several colours about the black start, and eight hollow ones that come to the end and turn back. Below, the sixteen states in a row under brackets of two, four and eight; three of the brackets over the hollow states are red."}} tags=["hide-input"]
precise = Gaussian.correlated(0.95, dtype=torch.float64)


def on_the_ridge(theta, r):
    theta, r = leapfrog(precise.gradient, theta[None], r[None], 0.34)
    return theta[0], r[0]


first = (
    torch.tensor([1.5, 1.2], dtype=torch.float64),
    torch.tensor([-0.6, -1.4], dtype=torch.float64),
)
visited = []


def noted(theta, r):
    visited.append(on_the_ridge(theta, r))
    return visited[-1]


path = grow(first, noted, torch.Generator().manual_seed(25))
inside = {id(theta) for theta, _ in path}
thrown_away = [state for state in visited if id(state[0]) not in inside]
palette = ["black", "#D55E00", "#E69F00", "#009E73", "#56B4E9", "#0072B2", "#CC79A7"]
doubling = {id(theta): n.bit_length() for n, (theta, _) in enumerate(visited, 1)}
states = path + thrown_away
colours = [palette[doubling.get(id(theta), 0)] for theta, _ in states]
figure, (above, below) = plt.subplots(2, 1, figsize=(5.2, 6.6), height_ratios=(2, 1))
plot_contours(above, ridge, -3, 3)
points = torch.stack([theta for theta, _ in states])
above.plot(*points.T, lw=0.7, color="0.6")
for index, (point, colour) in enumerate(zip(points, colours, strict=True)):
    fill = colour if index < len(path) else "white"
    above.plot(*point, "o", ms=5, color=colour, mfc=fill)
    below.plot(index, 0, "o", ms=4, color=colour, mfc=fill)
above.set(xlabel=r"$\theta_1$", ylabel=r"$\theta_2$")
for part, offset in ((path, 0), (thrown_away, len(path))):
    for level in range(1, len(part).bit_length()):
        for low in range(0, len(part), 2**level):
            block = part[low : low + 2**level]
            turning = turns(momenta(block))
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
# Let $(\theta, r)$ have the density $e^{-H}/Z$, and let $\Psi$ be a leapfrog step.
# A path is fixed by any of its states, so call it by the leftmost: its states are $z_0$, $z_1 = \Psi(z_0)$, …, $z_s = \Psi^s(z_0)$, ….
# How probable is it that the chain stands at $z_s$ and grows the path that begins at $z_0$?
# Leapfrog conserves volume, so a small box about $z_0$ becomes, $s$ steps on, a box about $z_s$ of the same volume. The probability is therefore that volume, whatever $s$ is, times three factors:
#
# * $e^{-H(z_s)}/Z$, for the start;
# * $2^{-j}$, for the coins: exactly one sequence of coins puts the start at index $s$;
# * the probability, over the next coin, that the growth did not stop before this path, and stops at it.
#
# The third does not depend on $s$. By the two rules every aligned sub-tree of the path was examined, as the whole path or in a new half, whichever state was the start. And whether the growth stops at the path depends on the path, on $j$, and on the next coin and the half that it would add, all of which are the same for every $s$.
#
# Given the path, the start therefore has index $s$ with probability proportional to $e^{-H(z_s)}$. A new index drawn with the same probabilities gives a state with the same distribution as the start.
# ```
#
# Along an exact trajectory all weights $e^{-H}$ would be equal; they correct the integrator's error, as the acceptance step of HMC does.
# An energy error so large that the step has *diverged* also ends the growth; the package compares with the energy of the start, which the proof does not cover.
#
# Instead of an independent choice the package prefers states of the new half: after each doubling it moves there with probability $\min(1, w_{\text{new}}/w_{\text{old}})$, where $w$ sums the weights of a half.
# This keeps the distribution and travels further ({prf:ref}`lem-choice`; {ref}`ex-nuts-write`).
#
# ## NUTS in the bowl
#
# With steps of 0.5, and 300 chains that start at the true distribution:


# %%
def roll(theta, r):
    return leapfrog(lambda theta: theta, theta, r, 0.5)


def by_energy(theta, r):
    return torch.exp(-(theta @ theta + r @ r) / 2)


def nuts(theta, num_samples, generator, unusable=has_turn):
    """Draw a momentum, grow a path, choose a state, again and again."""
    samples = []
    for _ in range(num_samples):
        start = theta, torch.randn(theta.shape, generator=generator)
        theta, _ = choose(grow(start, roll, generator, unusable), by_energy, generator)
        samples.append(theta)
    return torch.cat(samples)


generator = torch.Generator().manual_seed(11)
exact = torch.randn(300, 1, generator=generator)
samples = torch.stack([nuts(start, 12, generator) for start in exact], 1)
show_row("nuts", samples)

# %% [markdown]
# {numref}`fig-naive` compares these chains with the two rules that they avoid.


# %% tags=["hide-input"]
def stop_at_the_turn(position, num_samples, step_size, generator):
    """Stop every trajectory at its first turn, and take its end."""
    samples = [position]
    for _ in range(num_samples):
        start, chosen = position, position
        momentum = torch.randn(start.shape, generator=generator)
        going = torch.ones(len(start), dtype=torch.bool)
        while going.any():
            position, momentum = leapfrog(lambda x: x, position, momentum, step_size)
            chosen = torch.where(going[:, None], position, chosen)
            going &= ((position - start) * momentum).sum(-1) >= 0
        position = chosen
        samples.append(position)
    return torch.stack(samples)


def never(r):
    """Look at no sub-tree of a new half."""
    return False


obvious = stop_at_the_turn(
    torch.randn(10_000, 1, generator=generator), 20, 0.1, generator
)
unchecked = torch.stack([nuts(start, 12, generator, never) for start in exact], 1)

# %% mystnb={"figure": {"caption": "Variance of the samples in the bowl over chains that start from the true distribution, whose variance is 1 (grey): 10,000 chains that stop at the turn, and 300 by `grow`.", "name": "fig-naive"}, "image": {"alt": "Variance of the samples one after the other, on a logarithmic scale. Stopping at the turn rises to twenty; doubling without its checks levels off near two; NUTS stays about the grey line at one."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.4))
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
for values, style, name, colour in (
    (obvious[..., 0], "--", "stop at the turn", "0.4"),
    (torch.cat([exact.T, unchecked]), ":", "sub-trees not checked", "0.4"),
    (torch.cat([exact.T, samples]), "-", "NUTS", COLOURS["NUTS"]),
):
    axes.plot(values.square().mean(1), style, color=colour, label=name)
axes.set(xlabel="sample", ylabel="variance", yscale="log")
axes.legend()
plt.show()

# %% [markdown]
# Only the whole algorithm stays about 1, within the standard error of its 300 chains: its row on the scoreboard is {c}`nuts` here, and {c}`package` for 10,000 chains of the package's `NUTS`.
# Stopping at the turn leaves it at once, as {eq}`eq-naive-growth` predicts: the variance of the twentieth sample is {c}`obvious`.
# Doubling without a look at the sub-trees of a new half leaves it, too, and ends at {c}`unchecked`.
#
# The package does both stages for all chains at once, by `grow_tree` ({doc}`/book/appendix/api/internals`), which the next page uses. With the same coins its paths have the lengths of ours.
# It also tests each half together with the first state of the other, because in many dimensions a path can come round a full circle between two tests, and then its ends move apart again.

# %% tags=["hide-input"]
bowl = Gaussian.standard(1)
draws = sample(NUTS(0.5), bowl, torch.randn(10_000, 1, generator=generator), 10, seed=5)
for name, function, truth in (("package", 2, 1), ("package-fourth", 4, 3)):
    value, error = draws.mean_and_standard_error(lambda x, power=function: x**power)
    says = "" if truth == 1 else "E[θ⁴] of the package's NUTS in the bowl"
    check(name, value, near(truth), error=error, because="the theorem", says=says)
last = obvious[20].square().mean()
check("obvious", last, near(21, 2), because="1 + 20; the standard error is 0.3")
late = unchecked[6:].square().mean()
check("unchecked", late, at_least(1.3), because="1.7 ± 0.1 in runs; the truth is 1")


def package_tree(seed):
    """Grow a path from the same start by the package."""

    def forward(point):
        theta, r = leapfrog(precise.gradient, point.position, point.momentum, 0.34)
        return Point(theta, r, -precise.energy(theta) - (r * r).sum(-1) / 2)

    own = torch.Generator().manual_seed(seed)
    start = Point(first[0][None], first[1][None], torch.zeros(1).double())
    return grow_tree(start, forward, Matrix(1.0), 10, own)


def length(seed):
    own = torch.Generator().manual_seed(seed)
    return len(grow(first, on_the_ridge, own))


check(
    "lengths",
    max(abs(length(seed) - 2 ** int(package_tree(seed).depth)) for seed in range(50)),
    at_most(0),
    kind="exact",
    says="Largest difference of the lengths of fifty paths and the package's",
)

# %% [markdown]
# NUTS still needs a step size and a mass, which are learned in a {term}`warm-up`; {doc}`/book/practice/tuning_hmc` shows how, and compares NUTS with HMC at its best and at its worst length.
#
# **To remember:** go on until the ends approach each other, and choose by $e^{-H}$ among states that would all have grown the same path.
#
# Does this survive a minibatch?
# The noise of its gradient makes the path irreversible, and it does not show the energy, which is a sum over all the data.
# {doc}`The next page </book/tutorial/sgnuts>` grows noisy paths, and finds an error in the obvious way to choose from them.
#
# ## Change it
#
# * In `grow` set `if unusable(momenta(half)):` to `if False:` and run all cells: nothing is thrown away any more, the path of {numref}`fig-tree` keeps its last half, red brackets and all, and in {numref}`fig-naive` NUTS's line climbs as the dotted one does.
# * In the cell of {numref}`fig-tree` set the step `0.34` to `0.17`: the path needs twice as many states to turn.
# * In `roll` set `0.5` to `1.5`: the row stays at 1, because the weights correct the energy error of even this step. Now let `by_energy` return `torch.ones(())`: the row, and NUTS's line in {numref}`fig-naive`, show what they corrected.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-nuts-by-hand
#
# **By hand.** ★
# Four states in one dimension, 0 to 3, have the momenta $1.0$, $0.6$, $0.1$, $-0.4$.
# Which aligned sub-trees turn?
# With which path does the growth end from each of the four starts, if the coins fall as in the table?
# ```
#
# ```{solution} ex-nuts-by-hand
# :class: dropdown
#
# The pair 0, 1 has $\rho = 1.6$ and does not turn. The pair 2, 3 has $\rho = -0.3$, and $-0.3\cdot0.1 < 0$: it turns. The whole has $\rho = 1.3$, and $1.3\cdot(-0.4) < 0$: it turns, too.
# From 0 or 1 the second doubling adds 2, 3, which is thrown away: the path is 0, 1.
# From 2 or 3 the first doubling gives 2, 3, which is the whole path, and turns: it stays and ends the growth.
# So nobody ends with four states, and each path could have been grown from both of its states.
# ```

# %% tags=["hide-input"]
by_hand = torch.tensor([[1.0], [0.6], [0.1], [-0.4]])
found = [turns(by_hand[:2]), turns(by_hand[2:]), turns(by_hand), has_turn(by_hand[:2])]
says = "By hand: the pair 2, 3 turns, the whole turns, and the pair 0, 1 does not"
check("by-hand", found == [False, True, True, False], kind="exact", says=says)

# %% [markdown]
# ````{exercise}
# :label: ex-nuts-write
#
# **Write it yourself.** ★★
# The package prefers states of the new half: from each half it draws a candidate in proportion to the weights, and the candidate of a new half replaces the choice so far with probability $\min(1, w_{\text{new}}/w_{\text{old}})$, where $w$ sums the weights of a half.
# Write this choice for two halves, and put it into `grow`, which then does both stages.
#
# ```python
# def prefer(chosen, path, half, weight, generator):
#     """Return the choice so far, or a candidate from the new half."""
#     ...
# ```
#
# In assignment 3 of {doc}`/book/practice/teaching` you grow such paths for another sampler, and test what its authors claim.
# ````
#
# ```{solution} ex-nuts-write
# :class: dropdown
#
# Give `grow` the argument `weight`, begin with `chosen = start`, write `chosen = prefer(chosen, path, half, weight, generator)` before `path` gets longer, and return `chosen` with the path.
#
#     new, old = (torch.stack([weight(*z) for z in part]) for part in (half, path))
#     candidate = half[torch.multinomial(new, 1, generator=generator)]
#     lot = torch.rand((), generator=generator)
#     return candidate if lot < new.sum() / old.sum() else chosen
# ```


# %% tags=["hide-input"]
def prefer(chosen, path, half, weight, generator):
    new, old = (torch.stack([weight(*z) for z in part]) for part in (half, path))
    candidate = half[torch.multinomial(new, 1, generator=generator)]
    lot = torch.rand((), generator=generator)
    return candidate if lot < new.sum() / old.sum() else chosen


# States with the weights 1, 2 | 3, 2, which a start in equilibrium must keep.
four = [(torch.tensor([weight]), torch.zeros(1)) for weight in (1.0, 2.0, 3.0, 2.0)]
weights, counts = torch.tensor([1.0, 2.0, 3.0, 2.0]), torch.zeros(4)
for place in torch.multinomial(weights, 4_000, True, generator=generator).tolist():
    path, half = (four[:2], four[2:]) if place < 2 else (four[2:], four[:2])
    state = prefer(four[place], path, half, lambda theta, r: theta[0], generator)
    counts[[other is state for other in four].index(True)] += 1
check(
    "prefer",
    (counts / 4_000 - weights / 8).abs().max(),
    at_most(0.04),
    because="the choice keeps the weights 1, 2, 3, 2; five standard errors of 0.008",
    says="Largest distance of the shares that the solution keeps from their weights",
)

# %% [markdown]
# ```{exercise}
# :label: ex-nuts-coins
#
# **Predict, then run.** ★
# A path of {numref}`fig-naive` has {c}`states` states on average, at a step of 0.5.
# How many has one at a step of 0.25, and what then happens to the cost of a sample?
# Which numbers of states are possible at all?
# ```
#
# ```{solution} ex-nuts-coins
# :class: dropdown
#
# The time to a turn is the same, so one might expect twice as many; it is {c}`states-half`, and {c}`states-quarter` at a quarter of the step.
# Only powers of two are possible, so a path of few states overshoots its turn by a larger share, and the number doubles only in the limit.
# Each state costs a gradient, and so does each state of a half that is thrown away, for samples that are as good: the weights correct the larger step.
# ```


# %% tags=["hide-input"]
def states(step_size, paths=200):
    def step(theta, r):
        return leapfrog(lambda x: x, theta, r, step_size)

    starts = torch.randn(paths, 2, 1, generator=generator)
    return sum(len(grow(tuple(z), step, generator)) for z in starts) / paths


check("states", states(0.5), near(3.95, 0.6), because="over 2,000 paths")
check("states-half", states(0.25), near(6.3, 1.0), because="over 2,000 paths")
check("states-quarter", states(0.125), near(11.3, 1.8), because="over 2,000 paths")

# %% [markdown]
# ## Further reading
#
# {cite:t}`hoffman2014` introduced the sampler, with slice sampling in place of weights. The weights are due to {cite:t}`betancourt2017`, the criterion of {cite:t}`betancourt2013`; {cite:t}`durmus2023` prove that the chain converges.
