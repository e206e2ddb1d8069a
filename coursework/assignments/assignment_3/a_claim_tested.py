# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Assignment 3: a claim, tested
#
# A report says that a new sampler is right, and shows a number. You will say what would refute it, build what it takes to try, find the flaw, and put it to use.
#
# *Before you start*, read the chapters *Friction: stochastic-gradient HMC* and *When to turn back: the no-U-turn sampler* of the book *Stochastic-gradient MCMC, derived and run* (`README.md` says where it is); keep *SGNUTS: an error found and corrected* for after question 1. Each task names the sections that it rests on.
# *It takes* four to five hours: two for the code, one for the two questions, the rest for the experiment.
# *It is worth* 100 points: 60 for five code tasks, graded by tests; 25 for two questions and 15 for a figure and what you read in it, marked by hand.
#
# *In the code tasks* you write everything yourself: `torch`, `math`, NumPy, SciPy and ArviZ are allowed. `sgmc` is not there when the code tasks are graded, and its functions raise an error; in the experiment you may use what you like.
#
# A code task's test cell stands below it. Its parts begin with `# POINTS` and are graded one by one; grading runs each of them with more tests, at other numbers. `make test A=assignment_3` tells which of them pass.
# Positions and momenta are tensors `(chains, dim)` in double precision, the mass is 1. Your functions must work for any number of chains at once, also for one; how they do it is up to you. They may change their arguments in place.
# All randomness comes from the generator, or the seed, that a function is given.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import torch

if not Path("checks.py").exists():  # in the book's own tree it is one folder up
    sys.path.append("..")
from checks import (
    assert_close,
    assert_mean,
    assert_normal,
    assert_shape,
    assert_share,
    fresh,
    seeded,
)

from booklib.page.figures import use_style

torch.set_default_dtype(torch.float64)
use_style()

# %% [markdown]
# ## The report
#
# *(Made up for this course, after a real one.)*
#
# > **Window sampling with friction.** HMC needs a number of leapfrog steps, and exact energies to correct their error. We propose a sampler that needs neither to be right.
# > From $\theta$ draw a momentum $r \sim N(0, 1)$, and grow a path of $n$ states around it with the steps of SGHMC,
# >
# > $$\theta \leftarrow \theta + \varepsilon r, \qquad r \leftarrow r - \varepsilon\nabla U(\theta) - \varepsilon Cr + N(0, 2C\varepsilon),$$
# >
# > $k$ of the $n - 1$ steps forward in time and the others backward, all values of $k$ being equally likely. A step backward is: reverse the momentum, step, reverse the momentum.
# > Then move to one of the $n$ states, chosen with weights $e^{-H}$, $H = U(\theta) + \tfrac12r^2$, as in NUTS. The weights correct what friction and noise do to the energy, so that the target is right.
# >
# > We tested it on $U = \tfrac12\theta^2$ with $\varepsilon = 0.25$, $C = 0.25$ and $n = 7$. The variance of $\theta$ was $0.998 \pm 0.004$; the true value is 1.
# > **We conclude that the sampler is right, and that what discretisation error there is vanishes with $\varepsilon$.**
#
# Here are the report's step and its energy. Positions and momenta are tensors `(chains, dim)`; the mass is 1 throughout.


# %% nbgrader={"grade": false, "grade_id": "report-code", "locked": true, "schema_version": 3, "solution": false, "task": false}
def report_step(position, momentum, generator, step_size=0.25, friction=0.25):
    """Drift, then kick, on U = ½|θ|²: the step of the report."""
    position = position + step_size * momentum
    noise = math.sqrt(2 * friction * step_size) * torch.randn(
        position.shape, generator=generator
    )
    return (
        position,
        momentum - step_size * position - friction * step_size * momentum + noise,
    )


def energy(position, momentum):
    """H = ½|θ|² + ½|r|²: (..., dim) → (...)."""
    return 0.5 * (position**2 + momentum**2).sum(-1)


# %% [markdown]
# ## Question 1: what would refute it? (10 points)
#
# Answer before you run anything.
#
# 1. Write the report's conclusion as two statements that an experiment could refute. What would you measure, on which target, at which settings, and which outcome would count against each? How do you tell a deviation from Monte Carlo error?
# 2. The report measured one number at one step size. Name two different ways in which a wrong sampler can produce it.

# %% [markdown] nbgrader={"grade": true, "grade_id": "theory-hypothesis", "locked": false, "points": 10, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# 1. (a) *Right*: as $\varepsilon \to 0$ at a fixed duration $\tau = (n - 1)\varepsilon$ the stationary variance (or any other moment) tends to that of the target. (b) *The error is discretisation error*: the bias shrinks when $\varepsilon$ does, at some positive order.
# Measure $E[\theta^2]$ on the bowl, whose answer is 1, for several $\varepsilon$, say 0.5, 0.25, 0.125, 0.0625, with $\tau$ and $C$ held fixed, and again for another $C$ and another target. Many independent chains give a standard error; state beforehand how many of them a deviation has to exceed, corrected for the number of measurements. A deviation that stays or grows as $\varepsilon$ shrinks refutes both.
# 2. Two errors of opposite sign that cancel at this step size; a bias that is too small to see at these settings, such as one proportional to $C$, or hidden by too large a standard error; a chain that has not moved far from its start in the right law; a statistic that is blind to the error (a variance does not see the shape).
#
# **Rubric.** 2 for (a) with a limit, and not just "is close to 1"; 1 for (b), an order or a shrinking; 1 for holding the duration or saying why it matters; 2 for a tolerance from Monte Carlo error, fixed before the run; 2 for each of two ways in part 2. No points for "use MNIST": accuracy does not see the law.
# ### END SOLUTION

# %% [markdown]
# ## 1 A step that reads the same from both sides (12 points)
#
# To take the report's sampler apart you need another step to put in the place of its own. Write the *palindromic* one, with $M = 1$ and a friction that is a matrix $C$, symmetric and positive semi-definite, at the temperature $T$:
#
# $$
# y = \theta + \tfrac12\varepsilon r, \qquad
# r' = r - \varepsilon\nabla U(y) - \tfrac12\varepsilon C(r + r') + \xi, \quad \xi \sim N(0, 2TC\varepsilon), \qquad
# \theta' = y + \tfrac12\varepsilon r' .
# $$
#
# The middle equation has $r'$ on both sides; solve it. The noise is independent for every chain. `gradient` maps `(chains, dim)` to `(chains, dim)`.
#
# See *Which splitting, and in which order the data?*, “A splitting is a list of flows”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "palindromic-step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def palindromic_step(
    position, momentum, gradient, step_size, friction, temperature, generator
):
    """Half a drift, a kick with friction and noise, half a drift.

    friction is (dim, dim). Returns the new position and momentum.
    """
    ### BEGIN SOLUTION
    unit, half = torch.eye(len(friction)), 0.5 * step_size * friction
    values, vectors = torch.linalg.eigh(4 * temperature * half)
    root = vectors * values.clamp(min=0).sqrt() @ vectors.T
    noise = torch.randn(position.shape, generator=generator) @ root
    position = position + 0.5 * step_size * momentum
    kicked = momentum @ (unit - half) - step_size * gradient(position) + noise
    momentum = torch.linalg.solve(unit + half, kicked.T).T
    return position + 0.5 * step_size * momentum, momentum
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "palindromic-step-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
def move(position, momentum, gradient, step_size, friction, temperature, generator):
    start = fresh(position, momentum)
    settings = step_size, friction.clone(), temperature, generator
    moved = palindromic_step(*start, gradient, *settings)
    for what, tensor in zip(("position", "momentum"), moved, strict=True):
        assert_shape(tensor, position.shape, f"the new {what}")
    return moved


def law(step_size, friction, temperature):
    """Give what multiplies the old momentum, and the noise's covariance."""
    half = step_size / 2 * friction
    inverse = torch.linalg.inv(torch.eye(2) + half)
    covariance = 4 * temperature * inverse @ half @ inverse
    return inverse @ (torch.eye(2) - half), inverse, covariance


def well(x):
    return 4 * x**3 - 4 * x


# Without a force, one step from θ = 0, r = 1 leaves friction and noise: whatever its
# size, it should be normal, and new.
generator, friction = seeded(31), torch.tensor([[1.0, 0.5], [0.5, 2.0]])
free = [
    move(
        torch.zeros(5_000, 2),
        torch.ones(5_000, 2),
        lambda x: 0 * x,
        0.5,
        friction,
        1.5,
        generator,
    )[1]
    for _ in range(2)
]
z, z_again = ((momentum - momentum.mean(0)) / momentum.std(0) for momentum in free)
assert abs(float((z**4).mean()) - 3) < 0.5, "the noise should be normally distributed"
for same in ((z * z_again).mean(), (z[1:] * z[:-1]).mean()):
    assert abs(float(same)) < 0.1, (
        "every call and every chain should have noise of its own"
    )
# POINTS 5: without friction
theta, r = (
    torch.tensor([[0.3, -1.0], [2.0, 0.0]]),
    torch.tensor([[0.5, 2.0], [1.0, -1.0]]),
)
none = torch.zeros(2, 2)
one = move(theta, r, lambda x: x, 0.5, none, 1.0, generator)
assert_close(
    one[0],
    torch.tensor([[0.496875, 0.0625], [2.21875, -0.46875]]),
    "the position after one step on U = ½|θ|² with ε = 0.5",
)
assert_close(
    one[1],
    torch.tensor([[0.2875, 2.25], [-0.125, -0.875]]),
    "the momentum after one step on U = ½|θ|² with ε = 0.5",
)
### BEGIN HIDDEN TESTS
there = move(theta, r, well, 0.1, none, 1.0, generator)
y = theta + 0.05 * r
momentum = r - 0.1 * (4 * y**3 - 4 * y)
assert_close(
    torch.cat(there),
    torch.cat([y + 0.05 * momentum, momentum]),
    "one step in a double well",
)
back = move(there[0], -there[1], well, 0.1, none, 1.0, generator)
assert_close(
    back[0],
    theta,
    "without friction, a step, a flip and a step lead back to the position",
)
assert_close(
    back[1],
    -r,
    "without friction, a step, a flip and a step lead back to the momentum, reversed",
)
### END HIDDEN TESTS
# POINTS 7: friction and noise
kept, _, covariance = law(0.5, friction, 1.5)
assert_normal(
    free[0][:, 0],
    (5_000,),
    float(kept.sum(1)[0]),
    float(covariance[0, 0]),
    "the first momentum after one step from θ = 0, r = 1 without a force, ε = 0.5,",
)
### BEGIN HIDDEN TESTS
for seed, step_size, temperature, friction in (
    (3101, 0.5, 0.6, torch.tensor([[1.5, -0.8], [-0.8, 0.7]])),
    (3102, 0.25, 2.0, torch.tensor([[0.5, 0.9], [0.9, 3.0]])),
):
    theta, r = (
        torch.full((10_000, 2), 0.6),
        torch.tensor([[-1.0, 0.4]]).repeat(10_000, 1),
    )
    new_theta, new_r = move(
        theta, r, well, step_size, friction, temperature, seeded(seed)
    )
    y = theta + step_size / 2 * r
    assert_close(
        new_theta,
        y + step_size / 2 * new_r,
        "the last half drift goes with the new momentum",
    )
    kept, inverse, covariance = law(step_size, friction, temperature)
    rest = new_r - r @ kept.T + step_size * well(y) @ inverse
    root = torch.linalg.cholesky(covariance)
    assert_normal(
        torch.linalg.solve(root, rest.T).T,
        (10_000, 2),
        0.0,
        1.0,
        "the noise of the new momentum in a double well, made standard,",
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 2 A path in both directions of time (12 points)
#
# Write a function that grows a path of `num_states` states around a start: the start is state number `place`, counted from 0, a whole number for each chain.
# States after it come from steps forward, states before it from steps backward, and a step backward is: reverse the momentum, step, reverse the momentum.
# Return positions and momenta, each `(num_states, chains, dim)`, in the order of time, all momenta belonging to the film that runs forward.
#
# `step(position, momentum, generator)` returns a new position and momentum. (Growing more states than you need, and throwing some away, is fine.)
#
# See *When to turn back: the no-U-turn sampler*, “The obvious rule is wrong” and “Two stages”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "path", "locked": false, "schema_version": 3, "solution": true, "task": false}
def path(position, momentum, place, num_states, step, generator):
    """Grow a path around a start.

    place is (chains,), whole numbers from 0 to num_states - 1.
    """
    ### BEGIN SOLUTION
    after, before = [(position, momentum)], [(position, -momentum)]
    for side in (after, before):
        for _ in range(num_states - 1):
            side.append(step(*side[-1], generator))
    film = [
        (q, -p) for q, p in before[:0:-1]
    ] + after  # 2 num_states - 1 states, the start in the middle
    wanted = num_states - 1 - place + torch.arange(num_states)[:, None]
    rows = wanted[..., None].expand(-1, -1, position.shape[1])
    return tuple(
        torch.stack(states).gather(0, rows) for states in zip(*film, strict=True)
    )
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "path-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
def crooked_step(q, p, generator=None):
    return q + 0.5 * p + 0.1, 0.8 * p - 0.3 * q + 0.2


# POINTS 4: forward in time
start = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]])
positions, momenta = path(
    *fresh(*start), torch.tensor([0]), 3, crooked_step, seeded(32)
)
assert_shape(positions, (3, 1, 2), "the positions")
assert_shape(momenta, (3, 1, 2), "the momenta")
states = [start]
for _ in range(2):
    states.append(crooked_step(*states[-1]))
assert_close(
    positions[:, 0],
    torch.cat([q for q, _ in states]),
    "the start and two states after it",
)
assert_close(
    momenta[:, 0],
    torch.cat([p for _, p in states]),
    "the momenta of the start and of two states after it",
)
### BEGIN HIDDEN TESTS
q, p = torch.randn(2, 3, 2, generator=seeded(3202))
first = torch.zeros(3, dtype=torch.int64)
positions, momenta = path(*fresh(q, p, first), 6, crooked_step, seeded(32))
assert_shape(positions, (6, 3, 2), "the positions")
assert_shape(momenta, (6, 3, 2), "the momenta")
for k in range(6):
    assert_close(positions[k], q, f"the positions {k} steps after the start")
    assert_close(momenta[k], p, f"the momenta {k} steps after the start")
    q, p = crooked_step(q, p)
### END HIDDEN TESTS
# POINTS 6: in both directions, each chain around a place of its own
start = torch.zeros(2, 1), torch.ones(2, 1)
positions, momenta = path(
    *fresh(*start),
    torch.tensor([0, 2]),
    3,
    lambda q, p, generator: (q + p, 0.5 * p),
    seeded(32),
)
assert_close(
    positions[:, 0, 0],
    torch.tensor([0.0, 1.0, 1.5]),
    "the start and two states after it",
)
assert_close(
    positions[:, 1, 0],
    torch.tensor([-1.5, -1.0, 0.0]),
    "two states before the start, and the start",
)
assert_close(
    momenta[:, 1, 0],
    torch.tensor([0.25, 0.5, 1.0]),
    "the momenta of the film that runs forward",
)


### BEGIN HIDDEN TESTS
# Exact: every state of every chain is grown once more, by hand.
def backward(q, p):
    q, p = crooked_step(q, -p)
    return q, -p


generator = seeded(3200)
for num_states, chains, dim in ((5, 12, 2), (1, 3, 1), (8, 1, 3)):
    q0, p0 = torch.randn(2, chains, dim, generator=generator)
    place = torch.randint(num_states, (chains,), generator=generator)
    positions, momenta = path(
        q0.clone(), p0.clone(), place.clone(), num_states, crooked_step, generator
    )
    assert_shape(positions, (num_states, chains, dim), "the positions")
    assert_shape(momenta, (num_states, chains, dim), "the momenta")
    for chain in range(chains):
        for direction, move in ((1, crooked_step), (-1, backward)):
            q, p, k = q0[chain], p0[chain], int(place[chain])
            while 0 <= k < num_states:
                assert_close(
                    positions[k, chain],
                    q,
                    f"positions {'after' if direction == 1 else 'before'} the start",
                )
                assert_close(
                    momenta[k, chain],
                    p,
                    f"momenta {'after' if direction == 1 else 'before'} the start",
                )
                q, p = move(q, p)
                k += direction


### END HIDDEN TESTS
# POINTS 2: every step has noise of its own
def noisy_step(q, p, generator):
    return torch.randn(q.shape, generator=generator), p


generator = seeded(3201)
places = torch.full((20,), 2)
moved = [
    path(
        torch.zeros(20, 1), torch.zeros(20, 1), places.clone(), 5, noisy_step, generator
    )[0]
    for _ in range(2)
]
noise = torch.cat(
    [torch.cat([positions[:2], positions[3:]]).flatten() for positions in moved]
)
assert len(noise.unique()) == 160, (
    "every step of every chain and of every call should have noise of its own"
)
assert_close(moved[0][2], torch.zeros(20, 1), "the start, where it was put")
### BEGIN HIDDEN TESTS
# This step keeps the momentum, so that all of the film have that of the start.
places, ones = torch.arange(20) % 4, torch.ones(20, 2)
positions, momenta = path(
    0 * ones, ones.clone(), places.clone(), 4, noisy_step, generator
)
assert_shape(positions, (4, 20, 2), "the positions")
assert_close(momenta, torch.ones(4, 20, 2), "momenta that no step changes")
assert_close(
    positions[places, torch.arange(20)], 0 * ones, "the starts, at their places"
)
assert len(positions.unique()) == 121, (
    "every step of every chain should have noise of its own, wherever the start is"
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 Place, grow, choose (12 points)
#
# Write the transition: draw a place for the start of each chain, independent and uniform on $0, \dots, n - 1$; grow the path; go to state $k$ of it with probability $\omega_k/\sum_i\omega_i$, where $\log\omega$ is given.
#
# `grow(position, momentum, place)` returns what `path` returns, and `log_weight(positions, momenta)` maps `(..., dim)` to `(...)`.
# Return the chosen position and its momentum, each `(chains, dim)`.
#
# See *When to turn back: the no-U-turn sampler*, “Why it works”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "transition", "locked": false, "schema_version": 3, "solution": true, "task": false}
def transition(position, momentum, log_weight, grow, num_states, generator):
    """Move to a state of a window around the start, chosen with the given weights."""
    ### BEGIN SOLUTION
    place = torch.randint(num_states, position.shape[:1], generator=generator)
    positions, momenta = grow(position, momentum, place)
    probabilities = log_weight(positions, momenta).softmax(0)
    chosen = torch.multinomial(probabilities.T, 1, generator=generator)[:, 0]
    chains = torch.arange(len(position))
    return positions[chosen, chains], momenta[chosen, chains]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "transition-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
def walk(position, momentum, place, num_states):
    """A path on whole numbers, one to the right with every step.

    The momenta tell where a state is.
    """
    positions = (
        position
        + (torch.arange(num_states)[:, None] - torch.as_tensor(place))[..., None]
    )
    return positions, 10 * positions + 1


def moves(num_states, slope, chains, generator):
    """Make a transition of chains that start at 0, with weights e^(slope θ).

    Gives places and moves, each (chains,).
    """
    places = []

    def grow(position, momentum, place):
        places.append(torch.as_tensor(place).reshape(-1))
        return walk(position, momentum, place, num_states)

    start = torch.zeros(chains, 2), torch.ones(chains, 2)
    chosen, belonging = transition(
        *start, lambda q, p: slope * q[..., 0], grow, num_states, generator
    )
    assert_shape(chosen, (chains, 2), "the chosen position")
    assert_close(
        chosen[:, 0], chosen[:, 1], "both coordinates of the position are of one state"
    )
    assert_close(belonging, 10 * chosen + 1, "position and momentum are of one state")
    place = torch.cat(places)
    assert_shape(place, (chains,), "the places", torch.int64)
    return place, chosen[:, 0]


generator = seeded(33)
(place, moved), (place_again, moved_again) = (
    moves(4, 0.7, 2_000, generator),
    moves(4, 0.7, 2_000, generator),
)
assert len(place.unique()) > 1, "every chain should have a place of its own"
assert not torch.equal(place, place_again), "every call should draw other places"
assert torch.equal(place, moves(4, 0.7, 2_000, seeded(33))[0]), (
    "generators in the same state should lead to the same places"
)
assert not torch.equal(place + moved, place_again + moved_again), (
    "every call should choose anew"
)
# POINTS 5: the place
assert set(place.tolist()) == {0, 1, 2, 3}, (
    "the places in a window of 4 are 0, 1, 2 and 3"
)
### BEGIN HIDDEN TESTS
# Places of different calls and of neighbouring chains are uniform and independent:
# 4 × 4 pairs, each as frequent as the others.
for what, first, second in (
    ("calls", place, place_again),
    ("chains", place[::2], place[1::2]),
):
    assert_share(
        (4 * first + second)[:, None] == torch.arange(16),
        (len(first), 16),
        1 / 16,
        f"how often the places of two {what} are the given pair",
    )


### END HIDDEN TESTS
# POINTS 7: the choice
def heavy(q, p):
    return torch.where(q[..., 0] == 0, 50.0, 0.0)


chosen, belonging = transition(
    torch.zeros(500, 1),
    torch.ones(500, 1),
    heavy,
    lambda q, p, place: walk(q, p, place, 4),
    4,
    generator,
)
assert_close(
    chosen,
    torch.zeros(500, 1),
    "the start has nearly all the weight here, and is chosen",
)
assert_close(
    belonging, torch.ones(500, 1), "the momentum that belongs to the chosen position"
)
### BEGIN HIDDEN TESTS
# Whatever its place, each chain chooses state k with the probability p_k, independently
# of other chains.
for num_states, slope in ((4, 0.7), (3, 0.0), (4, -0.4)):
    place, moved = moves(num_states, slope, 2_000, generator)
    choice, states = place + moved.long(), torch.arange(num_states)
    p = (slope * states).double().softmax(0)
    pairs = (place[:, None, None] == states[:, None]) & (
        choice[:, None, None] == states
    )
    assert_share(
        pairs,
        (2_000, num_states, num_states),
        (p / num_states).repeat(num_states),
        f"how often a place goes with a choice, in a window of {num_states}, "
        f"slope {slope},",
    )
    assert_share(
        choice[::2] == choice[1::2],
        (1_000,),
        float((p**2).sum()),
        "how often two neighbouring chains choose the same state",
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 4 A number with an honest error (12 points)
#
# Write a function that runs `chains` independent chains in one dimension and returns an estimate of the stationary $E[\theta^2]$ **and its standard error**, two floats.
# Before each transition draw a fresh momentum $r \sim N(0, 1)$. Throw away the first `warm_up` transitions, keep the next `num_draws`. Successive draws of a chain are correlated; chains are not.
#
# `move(position, momentum, generator)` returns a position and a momentum, each `(chains, 1)`. Start where you like.
#
# See *Markov chains*, “What a sample is worth”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "measure", "locked": false, "schema_version": 3, "solution": true, "task": false}
def measure(move, chains, warm_up, num_draws, seed):
    """Estimate E[θ²] and its standard error."""
    ### BEGIN SOLUTION
    generator = torch.Generator().manual_seed(seed)
    position = torch.randn(chains, 1, generator=generator)
    averages = torch.zeros(chains, dtype=torch.float64)
    for draw in range(warm_up + num_draws):
        momentum = torch.randn(chains, 1, generator=generator)
        position, momentum = move(position, momentum, generator)
        if draw >= warm_up:
            averages += position[:, 0] ** 2 / num_draws
    return float(averages.mean()), float(averages.std() / math.sqrt(chains))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "measure-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
def autoregression(a, b):
    """θ' = aθ + br with a fresh r.

    The variance is b²/(1 − a²), and θ² has the autocorrelations a^{2k}.
    """
    return lambda q, p, generator: (a * q + b * p, torch.full_like(p, 9.0))


### BEGIN HIDDEN TESTS
def sticky(q, p, generator):
    """Stay, or go to |r|^½, with equal chances.

    E[θ²] is (2/π)^½; θ² has the variance 1 − 2/π and the autocorrelations 2^{−k}.
    """
    stays = torch.rand(q.shape, generator=generator) < 0.5
    return torch.where(stays, q, p.abs().sqrt()), p


lags = torch.arange(1, 40, dtype=torch.float64)
sticky_mean = math.sqrt(2 / math.pi)
sticky_error = math.sqrt(
    (1 - 2 / math.pi)
    * (1 + 2 * float(((1 - lags / 40) * 0.5**lags).sum()))
    / (2_000 * 40)
)
### END HIDDEN TESTS
value, standard_error = (
    float(number)
    for number in measure(autoregression(0.6, 0.8), 1_000, 50, 20, seed=34)
)
other, _ = measure(autoregression(0.6, 0.8), 1_000, 50, 20, seed=35)
assert abs(value - float(other)) > 1e-8, "different seeds give different values"
# POINTS 5: the value
assert abs(value - 1) < 0.11, "θ' = 0.6θ + 0.8r keeps a variance of one"
### BEGIN HIDDEN TESTS
# The exact error of a mean of 40 draws of 2,000 chains is known.
a, b, chains, num_draws = 0.8, 1.5, 2_000, 40
variance = b**2 / (1 - a**2)
lags = torch.arange(1, num_draws, dtype=torch.float64)
exact_error = math.sqrt(
    2
    * variance**2
    * (1 + 2 * float(((1 - lags / num_draws) * a ** (2 * lags)).sum()))
    / (chains * num_draws)
)
values = [
    float(measure(autoregression(a, b), chains, 40, num_draws, seed=3400 + k)[0])
    for k in range(4)
]
assert len(set(values)) == 4, "different seeds should give different values"
assert_mean(
    torch.tensor(values), (4,), variance, "the stationary E[θ²]", std=exact_error
)
value, _ = measure(sticky, 2_000, 40, 40, seed=3420)
assert abs(float(value) - sticky_mean) < 6 * sticky_error, (
    f"E[θ²] of a nonlinear chain should be {sticky_mean:.3g}, but it is "
    f"{float(value):.3g}"
)
### END HIDDEN TESTS
# POINTS 7: its standard error
assert 0.008 < standard_error < 0.022, (
    f"the standard error from 1,000 chains of 20 draws is not {standard_error}"
)
### BEGIN HIDDEN TESTS
# The squared standard error from 2,000 chains varies by 5 %: a tolerance of 30 % raises
# no false alarm, and leaves room for batch means.
for a, b, num_draws in ((0.8, 1.5, 40), (0.0, 2.0, 20), (-0.5, 1.0, 30)):
    variance = b**2 / (1 - a**2)
    lags = torch.arange(1, num_draws, dtype=torch.float64)
    exact = (
        2
        * variance**2
        * (1 + 2 * float(((1 - lags / num_draws) * a ** (2 * lags)).sum()))
        / (2_000 * num_draws)
    )
    value, error = measure(autoregression(a, b), 2_000, 40, num_draws, seed=3410)
    assert abs(float(value) - variance) < 6 * exact**0.5, (
        f"E[θ²] should be {variance:.3g}, but it is {float(value):.3g}"
    )
    ratio = float(error) ** 2 / exact
    assert 0.7 < ratio < 1.4, (
        f"the squared standard error is {ratio:.3g} times the variance of the estimate"
    )
_, error = measure(sticky, 2_000, 40, 40, seed=3421)
ratio = (float(error) / sticky_error) ** 2
assert 0.7 < ratio < 1.4, (
    f"the squared standard error of a nonlinear chain is {ratio:.3g} times the "
    "variance of the estimate"
)
### END HIDDEN TESTS

# %% [markdown]
# ## The experiment (15 points, together with what you read in it)
#
# Now test the claim. First reproduce the report's number. Then draw **one figure** that settles it: the variance of $\theta$ in the bowl against the step size, at a fixed duration $(n - 1)\varepsilon = 1.5$ and $C = 0.25$, with error bars and the true value, for the four samplers that you get from
#
# * the report's step or the palindromic step,
# * weights $e^{-H}$ or equal weights.
#
# Take at least four step sizes. Use enough chains for the error bars to be shorter than the effects you want to see, and at least 40 transitions of warm-up. Label it; a person will look at it and at your code.


# %% nbgrader={"grade": false, "grade_id": "plot-experiment", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["experiment"]
### BEGIN SOLUTION
# The report's ε, C and n are such that two errors cancel. For other numbers look where
# the curve of its sampler crosses 1.
def equal(position, momentum):
    return torch.zeros_like(position[..., 0])


def by_energy(position, momentum):
    return -energy(position, momentum)


def sampler(step, log_weight, num_states):
    """A transition that measure can call."""

    def move(position, momentum, generator):
        def grow(position, momentum, place):
            return path(position, momentum, place, num_states, step, generator)

        return transition(position, momentum, log_weight, grow, num_states, generator)

    return move


def drift_kick(step_size, friction=0.25):
    return lambda q, p, generator: report_step(q, p, generator, step_size, friction)


def palindromic(step_size, friction=0.25):
    return lambda q, p, generator: palindromic_step(
        q, p, lambda x: x, step_size, friction * torch.eye(1), 1.0, generator
    )


value, standard_error = measure(
    sampler(drift_kick(0.25), by_energy, 7), 4_000, 40, 40, seed=0
)
print(f"The report's number: {value:.3f} ± {standard_error:.3f}")
step_sizes = [0.5, 0.25, 0.125, 0.0625]
figure, axes = plt.subplots(figsize=(6.4, 3.8))
for label, step, log_weight, style in (
    ("report's step, $e^{-H}$ (the report)", drift_kick, by_energy, "D--"),
    ("palindromic, $e^{-H}$", palindromic, by_energy, "v-"),
    ("report's step, equal weights", drift_kick, equal, "s--"),
    ("palindromic, equal weights", palindromic, equal, "o-"),
):
    results = [
        measure(sampler(step(h), log_weight, round(1.5 / h) + 1), 4_000, 40, 40, seed=1)
        for h in step_sizes
    ]
    axes.errorbar(
        step_sizes,
        [v for v, _ in results],
        [2 * e for _, e in results],
        fmt=style,
        label=label,
        ms=4,
    )
axes.axhline(1, color="grey", zorder=0)
axes.set(
    xscale="log",
    xlabel=r"step size $\varepsilon$",
    ylabel=r"variance of $\theta$, two standard errors",
)
axes.set_xticks(step_sizes, [f"{h:g}" for h in step_sizes])
axes.minorticks_off()
axes.legend(fontsize=8)
plt.show()
### END SOLUTION

# %% [markdown]
# What you see:
#
# 1. Which of the two ingredients of the report causes which deviation? For each say its sign, and how it goes with $\varepsilon$.
# 2. Why did the report find 0.998? Is either of your two statements refuted, and by which points?
# 3. What happens to each of the two deviations when $C \to 0$ at a fixed $\varepsilon$? Argue first, then try it if you like.

# %% [markdown] nbgrader={"grade": true, "grade_id": "plot-experiment-answer", "locked": false, "points": 15, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# 1. Weights $e^{-H}$ make the variance too small, about 0.85 at $C = 0.25$ and $\tau = 1.5$, nearly whatever $\varepsilon$. The report's step makes it too large, in proportion to $\varepsilon$ where $\varepsilon$ is small: the last halving about halves the excess, the first does more. Equal weights with the palindromic step have an error of order $\varepsilon^2$, hardly to be seen.
# 2. At $\varepsilon = 0.25$ the two errors have the same size and opposite signs, and cancel. At smaller steps the excess goes away and the deficit stays: the report's variance falls below one and stays there, away from 1 by many standard errors. Both statements are refuted: the limit $\varepsilon \to 0$ is not the target, and the error grows as $\varepsilon$ shrinks.
# 3. Without friction the energy is nearly constant along a path, so that all weights are alike and the deficit goes to zero, in proportion to $C$. The excess stays: it comes from the order of drift and kick and from the fresh momentum, at both sides of the start a path is shifted by half a drift; it needs no friction.
#
# **Rubric.** The figure, 6: 1 for the report's number, reproduced within the errors; 1 for all four samplers; 1 for four step sizes at a fixed duration, so that $n$ changes with $\varepsilon$; 2 for error bars that tell the curves apart; 1 for labels and the true value. Errors made in tasks 1 to 4 do not count again.
# What it shows, 9: part 1: 2 for attributing the deficit to the weights and the excess to the step, 1 for each dependence on $\varepsilon$; part 2: 1 for the cancellation, 2 for the conclusion, with the points and error bars that carry it; part 3: 1 each. Conclusions that follow from the student's own figure count even if that is wrong.
# ### END SOLUTION

# %% [markdown]
# ## Question 2: the flaw, proved (15 points)
#
# Let $F(\theta, r) = (\theta, -r)$, let $P$ be the kernel of a step, and suppose that the step satisfies detailed balance up to the flip for some density $\mu$ with $\mu(Fz) = \mu(z)$:
#
# $$\mu(z)P(z, z') = \mu(z')P(Fz', Fz) .$$
#
# 1. Let $z_0, \dots, z_{n-1}$ be grown as in task 2 around $z_s \sim \mu$. Show that the joint density of the states is the same for every $s$.
# 2. Let $s$ be uniform, and let state $k$ be chosen with probability $\omega(z_k)/\sum_i\omega(z_i)$ for a positive function $\omega$. Show that the transition satisfies detailed balance with respect to $\omega\mu$. Which law does the report's sampler therefore have, in the limit $\varepsilon \to 0$, if the momentum is kept?
# 3. The report says "as in NUTS". Why is the weight $e^{-H}$ right there? Where exactly does your argument of part 2 no longer apply?

# %% [markdown] nbgrader={"grade": true, "grade_id": "theory-flaw", "locked": false, "points": 15, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# 1. A step to the left takes $z_{i+1}$ to $z_i$ with density $P(Fz_{i+1}, Fz_i)$. So the density of the path begun at $s$ is $\mu(z_s)\prod_{i\ge s}P(z_i, z_{i+1})\prod_{i<s}P(Fz_{i+1}, Fz_i)$. Use the assumption for $i = s - 1$: $\mu(z_s)P(Fz_s, Fz_{s-1}) = \mu(z_{s-1})P(z_{s-1}, z_s)$. That is the density of the path begun at $s - 1$. By induction all are equal to $\lambda(z_0, \dots, z_{n-1}) = \mu(z_0)\prod_iP(z_i, z_{i+1})$.
# 2. Start from $z_s \sim \omega\mu$ (normalised), with $s$ uniform. The density that the path is $w$, the start has index $s$ and the choice is $k$, is $\frac1n\,\omega(z_s)\lambda(w)\,\omega(z_k)/\sum_i\omega(z_i)$, up to a constant. It is symmetric in $s$ and $k$; so the pair (start, end) has a symmetric law, which is detailed balance. With $\mu \propto e^{-H}$, which holds in the limit, and $\omega = e^{-H}$, the law is $e^{-2H}$: temperature one half, variance $\tfrac12$. Fresh momenta bring the temperature of $r$ back to one at every transition, and the variance ends between $\tfrac12$ and 1.
# 3. In NUTS the step is deterministic and keeps volume: $P(z, \cdot)$ is a point mass at $\Phi(z)$, and it is the *volume*, not $e^{-H}$, that plays the part of $\mu$. So $\omega\mu = e^{-H}$. With friction and noise the path itself visits states with density $e^{-H}$, and Lebesgue measure is not invariant (friction contracts volumes); the assumption that holds is the one with $\mu = e^{-H}$, and a further factor $\omega$ counts the energy a second time.
#
# **Rubric.** Part 1: 2 for the density with the backward kernel written as $P(F\cdot, F\cdot)$, 3 for moving $\mu$ along by the assumption. Part 2: 3 for the joint density with $1/n$ and the choice, 2 for symmetry implying detailed balance, 1 for $e^{-2H}$. Part 3: 3 for volume as the $\mu$ of NUTS, 1 for what changes with friction. A proof for $n = 2$ only gets half of parts 1 and 2.
# ### END SOLUTION

# %% [markdown]
# ## 5 Weights that are of use (12 points)
#
# Weights can be put to good use. Suppose that the gradient has noise of variance $V$ of its own and that the step injects $N(0, 2(C - \hat B)\varepsilon)$. All noise together has the variance $2(C - \hat B)\varepsilon + \varepsilon^2V$; the right one would be $2C\varepsilon$.
# A step with friction $C$ and noise of variance $2TC\varepsilon$ has $\mu \propto e^{-H/T}$ in place of $e^{-H}$: it samples at temperature $T$.
#
# 1. *Diagnose this run.* A colleague sampled $U = \tfrac12\lvert\theta\rvert^2$ so, with $\varepsilon$, $C$ and $\hat B$, and hands you the positions of the run, `(draws, dim)`. Estimate the temperature $T$, all coordinates and draws together, and from it the variance $V$ that the gradients' noise must have had.
# 2. With the result of question 2, find $\omega$ such that the transition has the law $e^{-H}$ although the path has the temperature $T$. Write a function that maps the energies $H$ of states to their $\log\omega$. An additive constant does not matter.
#
# See *Friction: stochastic-gradient HMC*, “A wrong estimate is a wrong temperature”; *SGNUTS: an error found and corrected*, “From two states to a path”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "repair", "locked": false, "schema_version": 3, "solution": true, "task": false}
def diagnose(positions, step_size, friction, noise_estimate):
    """Estimate T and V of a run from its positions, (draws, dim): two numbers."""
    ### BEGIN SOLUTION
    temperature = float(positions.square().mean())
    noise = noise_estimate + (temperature - 1) * friction
    return temperature, 2 * noise / step_size
    ### END SOLUTION


def repair(energies, temperature):
    """Give log ω, (...), of states with the energies H, (...), at that temperature."""
    ### BEGIN SOLUTION
    return -(1 - 1 / temperature) * energies
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "repair-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
# POINTS 5: the diagnosis
temperature, variance = diagnose(torch.tensor([[1.0, -1.0], [1.0, 1.0]]), 0.1, 2.0, 0.2)
assert_close(temperature, 1.0, "the temperature of positions that are 1 or -1")
assert_close(variance, 4.0, "V at temperature one, with ε = 0.1, C = 2 and B̂ = 0.2")
### BEGIN HIDDEN TESTS
for seed, (step_size, friction, noise_estimate) in enumerate(
    ((0.25, 1.25, 0.0), (0.1, 3.0, 0.5), (0.05, 0.7, 0.1))
):
    positions = 1.3 * torch.randn(50, 3, generator=seeded(seed)) + 0.2
    exact = float((positions**2).sum()) / 150
    temperature, variance = diagnose(
        positions.clone(), step_size, friction, noise_estimate
    )
    assert_close(temperature, exact, "the temperature")
    noise = 2 * exact * friction * step_size
    own = noise - 2 * (friction - noise_estimate) * step_size
    assert_close(variance, own / step_size**2, "the variance of the gradients' noise")
### END HIDDEN TESTS
# POINTS 7: the weights
energies = torch.tensor([[0.5, 4.0], [1.0, 2.0]], dtype=torch.float64)
flat = repair(energies.clone(), 1.0)
assert_shape(flat, (2, 2), "one weight for every state and chain")
assert_close(
    flat - flat[0, 0],
    torch.zeros(2, 2),
    "the differences of log-weights at temperature one, where there is nothing to "
    "repair",
)
hot = repair(energies.clone(), 2.0)
assert float(hot[0, 0]) > float(hot[0, 1]), (
    "on a path that is too hot states of low energy need more weight"
)
### BEGIN HIDDEN TESTS
# Exact: the weight is the density e^{−H} over the density e^{−H/T}, up to a constant.
for temperature in (1.4, 3.0, 0.6):
    energies = 3 * torch.rand(6, 4, generator=seeded(3500), dtype=torch.float64)
    log_weight = repair(energies.clone(), temperature)
    expected = energies / temperature - energies
    assert_close(
        log_weight - log_weight[0, 0],
        expected - expected[0, 0],
        f"differences of log-weights at temperature {temperature}",
    )
### END HIDDEN TESTS

# %% [markdown]
# ## For the curious (no points)
#
# Put it all together: gradients $\theta + N(0, 4)$, no noise estimate, $\varepsilon = 0.25$, $C = 1.25$, the palindromic step. With equal weights the variance is too large, with your weights it is 1 up to terms of order $\varepsilon^2$.
# What do such weights cost in a problem with many coordinates, and what else do they need that a minibatch does not give? Compare with the chapter *Measuring the noise*.
