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
# # Assignment 3: a claim, tested
#
# A report says that a new sampler is right, and shows a number. You will say what would refute it, build what it takes to try, find the flaw, and put it to use.
#
# *Before you start*, read the chapters *Stochastic-gradient HMC* and *The no-U-turn sampler*; keep *SGNUTS* for after question 1.
# *It takes* three to four hours.
# *It is worth* 100 points: 60 for five code tasks, graded by tests; 25 for two questions and 15 for a figure and what you read in it, marked by hand.
#
# A code task's test cell stands below it. Grading runs it with more tests, at other numbers; the points are given if all of them pass.
# Positions and momenta are tensors `(chains, dim)`, the mass is 1. Here the functions must work for many chains at once, and for one; how they do it is up to you.
# All randomness comes from the generator, or the seed, that a function is given.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch
from checks import assert_close, assert_mean, assert_shape, assert_variance, seeded

from sgmc.figures import use_style

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
    noise = math.sqrt(2 * friction * step_size) * torch.randn(position.shape, generator=generator)
    return position, momentum - step_size * position - friction * step_size * momentum + noise


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
# To take the report's sampler apart you need another step to put in the place of its own. Write the *palindromic* one: with $M = 1$,
#
# $$
# y = \theta + \tfrac12\varepsilon r, \qquad
# r' = r - \varepsilon\nabla U(y) - \tfrac12\varepsilon C(r + r') + \xi, \quad \xi \sim N(0, 2C\varepsilon), \qquad
# \theta' = y + \tfrac12\varepsilon r' .
# $$
#
# The middle equation has $r'$ on both sides; solve it. The noise is independent for every chain and coordinate. `gradient` maps `(chains, dim)` to `(chains, dim)`.


# %% nbgrader={"grade": false, "grade_id": "palindromic-step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def palindromic_step(position, momentum, gradient, step_size, friction, generator):
    """Half a drift, a kick with friction and noise, half a drift; returns the new position and momentum."""
    ### BEGIN SOLUTION
    noise = math.sqrt(2 * friction * step_size) * torch.randn(position.shape, generator=generator)
    position = position + 0.5 * step_size * momentum
    kicked = (1 - 0.5 * step_size * friction) * momentum - step_size * gradient(position) + noise
    momentum = kicked / (1 + 0.5 * step_size * friction)
    return position + 0.5 * step_size * momentum, momentum
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "palindromic-step-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
generator = seeded(31)
theta, r = torch.tensor([[0.3, -1.0]]), torch.tensor([[0.5, 2.0]])
there = palindromic_step(theta.clone(), r.clone(), lambda x: x, 0.1, 0.0, generator)
back = palindromic_step(there[0].clone(), -there[1], lambda x: x, 0.1, 0.0, generator)
assert_close(back[0], theta, "without friction, a step, a flip and a step lead back to the position")
assert_close(back[1], -r, "without friction, a step, a flip and a step lead back to the momentum, reversed")
moved = palindromic_step(torch.zeros(1, 5_000), torch.ones(1, 5_000), lambda x: x, 0.5, 1.0, generator)[1]
assert_mean(moved[0], (0.75 - 0.125) / 1.25, "the momentum after one step from θ = 0, r = 1 on U = ½|θ|², with ε = 0.5 and C = 1")
### BEGIN HIDDEN TESTS
# Four statistical calls; the rest is exact.
for seed, step_size, friction in ((3101, 0.5, 1.5), (3102, 0.25, 3.0)):
    generator = seeded(seed)
    theta, r = torch.full((1, 20_000), 0.6), torch.full((1, 20_000), -1.0)
    new_theta, new_r = palindromic_step(theta.clone(), r.clone(), lambda x: 4 * x**3 - 4 * x, step_size, friction, generator)
    assert_shape(new_theta, (1, 20_000), "the new position")
    assert_shape(new_r, (1, 20_000), "the new momentum")
    y = 0.6 - 0.5 * step_size
    assert_close(new_theta, y + step_size / 2 * new_r, "the last half drift goes with the new momentum")
    mean = (-(1 - step_size * friction / 2) - step_size * (4 * y**3 - 4 * y)) / (1 + step_size * friction / 2)
    assert_mean(new_r[0], mean, "the mean of the new momentum")
    variance = 2 * friction * step_size / (1 + step_size * friction / 2) ** 2
    assert_variance(new_r[0], variance, "the variance of the new momentum", mean=mean)
new_r = palindromic_step(torch.zeros(30, 20), torch.zeros(30, 20), lambda x: x, 0.5, 1.0, seeded(3103))[1]
assert len(new_r.unique()) > 590, "every chain and every coordinate has noise of its own"
### END HIDDEN TESTS

# %% [markdown]
# ## 2 A path in both directions of time (12 points)
#
# Write a function that grows a path of `num_states` states around a start: the start is state number `place`, counted from 0, a whole number for each chain.
# States after it come from steps forward, states before it from steps backward, and a step backward is: reverse the momentum, step, reverse the momentum.
# Return positions and momenta, each `(num_states, chains, dim)`, in the order of time, all momenta belonging to the film that runs forward.
#
# `step(position, momentum, generator)` returns a new position and momentum. (Growing more states than you need, and throwing some away, is fine.)


# %% nbgrader={"grade": false, "grade_id": "path", "locked": false, "schema_version": 3, "solution": true, "task": false}
def path(position, momentum, place, num_states, step, generator):
    """Grow a path around a start; place is (chains,), whole numbers from 0 to num_states - 1."""
    ### BEGIN SOLUTION
    after, before = [(position, momentum)], [(position, -momentum)]
    for side in (after, before):
        for _ in range(num_states - 1):
            side.append(step(*side[-1], generator))
    film = [(q, -p) for q, p in before[:0:-1]] + after  # 2 num_states - 1 states, the start in the middle
    wanted = num_states - 1 - place + torch.arange(num_states)[:, None]
    rows = wanted[..., None].expand(-1, -1, position.shape[1])
    return tuple(torch.stack(states).gather(0, rows) for states in zip(*film, strict=True))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "path-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
start = torch.zeros(2, 1), torch.ones(2, 1)
positions, momenta = path(*start, torch.tensor([0, 2]), 3, lambda q, p, generator: (q + p, 0.5 * p), seeded(32))
assert_shape(positions, (3, 2, 1), "the positions")
assert_shape(momenta, (3, 2, 1), "the momenta")
assert_close(positions[:, 0, 0], torch.tensor([0.0, 1.0, 1.5]), "the start and two states after it")
assert_close(positions[:, 1, 0], torch.tensor([-1.5, -1.0, 0.0]), "two states before the start, and the start")
assert_close(momenta[:, 1, 0], torch.tensor([0.25, 0.5, 1.0]), "the momenta of the film that runs forward")
### BEGIN HIDDEN TESTS
# Exact: every state of every chain is grown once more, by hand.


def crooked_step(q, p, generator=None):
    return q + 0.5 * p + 0.1, 0.8 * p - 0.3 * q + 0.2


def backward(q, p):
    q, p = crooked_step(q, -p)
    return q, -p


generator = seeded(3200)
for num_states, chains, dim in ((5, 40, 2), (1, 3, 1), (8, 1, 3)):
    q0, p0 = torch.randn(2, chains, dim, generator=generator)
    place = torch.randint(num_states, (chains,), generator=generator)
    positions, momenta = path(q0.clone(), p0.clone(), place.clone(), num_states, crooked_step, generator)
    assert_shape(positions, (num_states, chains, dim), "the positions")
    assert_shape(momenta, (num_states, chains, dim), "the momenta")
    for chain in range(chains):
        for direction, move in ((1, crooked_step), (-1, backward)):
            q, p, k = q0[chain], p0[chain], int(place[chain])
            while 0 <= k < num_states:
                assert_close(positions[k, chain], q, f"positions {'after' if direction == 1 else 'before'} the start")
                assert_close(momenta[k, chain], p, f"momenta {'after' if direction == 1 else 'before'} the start")
                q, p = move(q, p)
                k += direction
positions, _ = path(
    torch.zeros(20, 1),
    torch.zeros(20, 1),
    torch.full((20,), 2),
    5,
    lambda q, p, generator: (torch.randn(q.shape, generator=generator), p),
    seeded(3201),
)
moved = torch.cat([positions[:2], positions[3:]]).flatten()
assert len(moved.unique()) > 78, "every step has noise of its own"
### END HIDDEN TESTS

# %% [markdown]
# ## 3 Place, grow, choose (12 points)
#
# Write the transition: draw a place for the start, uniform on $0, \dots, n - 1$; grow the path; go to state $k$ of it with probability $\omega_k/\sum_i\omega_i$, where $\log\omega$ is given.
#
# `grow(position, momentum, place)` returns what `path` returns, and `log_weight(positions, momenta)` maps `(..., dim)` to `(...)`.
# Return the chosen position and its momentum, each `(chains, dim)`.


# %% nbgrader={"grade": false, "grade_id": "transition", "locked": false, "schema_version": 3, "solution": true, "task": false}
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
    """A path on whole numbers, one to the right with every step; the momenta tell where a state is."""
    positions = position + (torch.arange(num_states)[:, None] - torch.as_tensor(place))[..., None]
    return positions, 10 * positions + 1


chosen, belonging = transition(
    torch.zeros(500, 1),
    torch.ones(500, 1),
    lambda q, p: torch.where(q[..., 0] == 0, 50.0, 0.0),
    lambda q, p, place: walk(q, p, place, 4),
    4,
    seeded(33),
)
assert_shape(chosen, (500, 1), "the chosen position")
assert_close(chosen, torch.zeros(500, 1), "the start has nearly all the weight here, and is chosen")
assert_close(belonging, torch.ones(500, 1), "the momentum that belongs to the chosen position")
### BEGIN HIDDEN TESTS
# Three statistical calls, on the frequencies in 400 independent calls.
for num_states, slope in ((4, 0.7), (3, 0.0), (4, -0.4)):
    generator = seeded(3300 + num_states)
    expected = {}
    for start in range(num_states):
        weights = [math.exp(slope * (k - start)) for k in range(num_states)]
        for k in range(num_states):
            expected[k - start] = expected.get(k - start, 0) + weights[k] / sum(weights) / num_states
    frequencies = []
    for _ in range(400):
        chosen, belonging = transition(
            torch.zeros(50, 2),
            torch.ones(50, 2),
            lambda q, p: slope * q[..., 0],
            lambda q, p, place: walk(q, p, place, num_states),
            num_states,
            generator,
        )
        assert_shape(chosen, (50, 2), "the chosen position")
        assert_close(chosen[:, 0], chosen[:, 1], "both coordinates of the position are of one state")
        assert_close(belonging, 10 * chosen + 1, "position and momentum are of one state")
        frequencies.append([float((chosen[:, 0] == k).double().mean()) for k in expected])
    assert_mean(frequencies, list(expected.values()), f"how often a chain moves by {list(expected)} in a window of {num_states}")
### END HIDDEN TESTS

# %% [markdown]
# ## 4 A number with an honest error (12 points)
#
# Write a function that runs `chains` independent chains in one dimension and returns an estimate of the stationary $E[\theta^2]$ **and its standard error**, two floats.
# Before each transition draw a fresh momentum $r \sim N(0, 1)$. Throw away the first `warm_up` transitions, keep the next `num_draws`. Successive draws of a chain are correlated; chains are not.
#
# `move(position, momentum, generator)` returns a position and a momentum, each `(chains, 1)`. Start where you like.


# %% nbgrader={"grade": false, "grade_id": "measure", "locked": false, "schema_version": 3, "solution": true, "task": false}
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
value, standard_error = measure(lambda q, p, generator: (0.6 * q + 0.8 * p, p), 1_000, 50, 20, seed=34)
assert abs(value - 1) < 5 * standard_error, "θ' = 0.6θ + 0.8r keeps a variance of one"
assert 0.008 < standard_error < 0.022, f"the standard error from 1,000 chains of 20 draws is not {standard_error}"
### BEGIN HIDDEN TESTS
# θ' = aθ + br with a fresh r: variance v = b²/(1 − a²), and θ² has the autocorrelations a^{2k}. One statistical call. The squared
# standard errors, averaged over 60 runs, vary by 2 %: a tolerance of 30 % raises no false alarm, and leaves room for batch means.
a, b, chains, num_draws = 0.8, 1.5, 200, 100
variance = b**2 / (1 - a**2)
lags = torch.arange(1, num_draws, dtype=torch.float64)
inflation = 1 + 2 * float(((1 - lags / num_draws) * a ** (2 * lags)).sum())
exact_error = math.sqrt(2 * variance**2 * inflation / (chains * num_draws))


def autoregression(q, p, generator):
    return a * q + b * p, torch.full_like(p, 9.0)


torch.manual_seed(3400)
runs = [measure(autoregression, chains, 100, num_draws, seed=3400 + k) for k in range(60)]
assert len({float(value) for value, _ in runs}) > 50, "different seeds give different values"
assert_mean([float(value) for value, _ in runs], variance, "E[θ²] in the stationary law")
ratio = sum(float(error) ** 2 for _, error in runs) / 60 / exact_error**2
assert 0.7 < ratio < 1.4, f"the squared standard error is {ratio:.3g} times the variance of the estimate"
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


# %% tags=["experiment"] nbgrader={"grade": false, "grade_id": "plot-experiment", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
# The report's ε, C and n are such that two errors cancel. For other numbers look where the curve of its sampler crosses 1.
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
    return lambda q, p, generator: palindromic_step(q, p, lambda x: x, step_size, friction, generator)


value, standard_error = measure(sampler(drift_kick(0.25), by_energy, 7), 4_000, 40, 40, seed=0)
print(f"The report's number: {value:.3f} ± {standard_error:.3f}")
step_sizes = [0.5, 0.25, 0.125, 0.0625]
figure, axes = plt.subplots(figsize=(6.4, 3.8))
for label, step, log_weight, style in (
    ("report's step, $e^{-H}$ (the report)", drift_kick, by_energy, "D--"),
    ("palindromic, $e^{-H}$", palindromic, by_energy, "v-"),
    ("report's step, equal weights", drift_kick, equal, "s--"),
    ("palindromic, equal weights", palindromic, equal, "o-"),
):
    results = [measure(sampler(step(h), log_weight, round(1.5 / h) + 1), 4_000, 40, 40, seed=1) for h in step_sizes]
    axes.errorbar(step_sizes, [v for v, _ in results], [2 * e for _, e in results], fmt=style, label=label, ms=4)
axes.axhline(1, color="grey", zorder=0)
axes.set(xscale="log", xlabel=r"step size $\varepsilon$", ylabel=r"variance of $\theta$, two standard errors")
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
# 1. Write the temperature $T$ as a function of $\varepsilon$, $C$, $V$ and $\hat B$.
# 2. With the result of question 2, find $\omega$ such that the transition has the law $e^{-H}$ although the path has the temperature $T$. Write a function that returns $\log\omega$ for a given energy function and temperature. An additive constant does not matter.


# %% nbgrader={"grade": false, "grade_id": "repair", "locked": false, "schema_version": 3, "solution": true, "task": false}
def temperature_of(step_size, friction, noise_variance, noise_estimate):
    """Give the temperature at which the path samples."""
    ### BEGIN SOLUTION
    return 1 + (0.5 * step_size * noise_variance - noise_estimate) / friction
    ### END SOLUTION


def repair(energy, temperature):
    """Give log ω, a function of (position, momentum), for an energy that is a function of (position, momentum)."""
    ### BEGIN SOLUTION
    return lambda position, momentum: -(1 - 1 / temperature) * energy(position, momentum)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "repair-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
assert_close(torch.tensor(float(temperature_of(0.1, 2.0, 4.0, 0.2))), 1.0, "the temperature with a perfect estimate of the noise")
flat = repair(energy, 1.0)(torch.tensor([[0.0], [1.0]]), torch.tensor([[0.5], [2.0]]))
assert_close(flat[0], flat[1], "the weights of two states at temperature one, where there is nothing to repair")
### BEGIN HIDDEN TESTS
# Exact: the weight is the density e^{−H} over the density e^{−H/T}, up to a constant.
for step_size, friction, noise_variance, noise_estimate in ((0.25, 1.25, 4.0, 0.0), (0.1, 3.0, 2.0, 0.5), (0.05, 0.7, 10.0, 0.1)):
    noise = 2 * (friction - noise_estimate) * step_size + step_size**2 * noise_variance
    value = float(temperature_of(step_size, friction, noise_variance, noise_estimate))
    assert_close(torch.tensor(value), noise / (2 * friction * step_size), "the temperature")
generator = seeded(3500)
for temperature in (1.4, 3.0, 0.6):
    for function in (energy, lambda q, p: (q**4).sum(-1) + 0.5 * (p**2).sum(-1)):
        q, p = torch.randn(2, 6, 4, 3, generator=generator)
        log_weight = repair(function, temperature)(q, p)
        assert_shape(log_weight, (6, 4), "one weight for every state and chain")
        expected = function(q, p) / temperature - function(q, p)
        assert_close(log_weight - log_weight[0, 0], expected - expected[0, 0], f"log-weights at temperature {temperature}")
### END HIDDEN TESTS

# %% [markdown]
# ## For the curious (no points)
#
# Put it all together: gradients $\theta + N(0, 4)$, no noise estimate, $\varepsilon = 0.25$, $C = 1.25$, the palindromic step. With equal weights the variance is too large, with your weights it is 1 up to terms of order $\varepsilon^2$.
# What do such weights cost in a problem with many coordinates, and what else do they need that a minibatch does not give? Compare with the chapter *Estimating the noise*.
