# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Assignment 2: minibatch noise, and samplers that live with it
#
# You measure the noise of a minibatch gradient, see it spoil Hamiltonian Monte Carlo, and repair the damage with friction.
#
# *Before you start*, read the chapters *What a minibatch sees*, *The obvious thing overheats: naive stochastic-gradient HMC*, *Friction: stochastic-gradient HMC* and *Measuring the noise* of the book *Stochastic-gradient MCMC, derived and run* (`README.md` says where it is). Each task names the sections that it rests on.
# *It takes* five to six hours: three for the code, two for the questions, the rest for the plots.
# *It is worth* 100 points: 60 for six code tasks, graded by tests; 25 for four questions and 15 for two plots, marked by hand.
#
# *In the code tasks* you write everything yourself: `torch`, with automatic differentiation if you like, `math`, NumPy and SciPy are allowed. `sgmc` is not there when the code tasks are graded, and its functions raise an error; in the plots you may use what you like.
# The tasks are relatives of what the book prints, and not the same: unequal chances, groups, a step size for every chain, a temperature.
#
# A code task's test cell stands below it. Its parts begin with `# POINTS` and are graded one by one; grading runs each of them with more tests. `make test A=assignment_2` tells which of them pass.
# Positions and momenta are tensors `(chains, dim)` in double precision, and the mass is 1.
# Your functions must work for any number of chains at once, also for one, except where it says `(1, dim)`; how they do it is up to you. They may change their arguments in place.
# All randomness comes from the `torch.Generator` that a function is given.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import itertools
import math
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import torch

if not Path("checks.py").exists():  # in the book's own tree it is one folder up
    sys.path.append("..")
from checks import assert_close, assert_mean, assert_normal, assert_shape, fresh, seeded

from booklib.page.figures import COLOURS, TRUTH, plot_density, plot_histogram, use_style
from sgmc.splittings import LinearChain, naive_sghmc_chain
from sgmc.targets import DoubleWell

torch.set_default_dtype(torch.float64)
use_style()


def regression(num_examples=6, dim=2, seed=0):
    """Make inputs (num_examples, dim) and targets (num_examples,) of a regression."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(num_examples, dim, generator=generator)
    return inputs, inputs.sum(-1) + torch.randn(num_examples, generator=generator)


def noisy(gradient, noise_variance):
    """Add independent noise N(0, V) to every coordinate of an exact gradient."""

    def stochastic_gradient(position, generator):
        return gradient(position) + math.sqrt(noise_variance) * torch.randn(
            position.shape, generator=generator
        )

    return stochastic_gradient


# %% [markdown]
# ## 1 The gradient of a minibatch (8 points)
#
# In Bayesian linear regression with unit noise, $y_i \sim N(x_i^\top\theta, 1)$, and the prior $\theta \sim N(0, vI)$, the potential is
#
# $$
# U(\theta) = \frac{\lvert\theta\rvert^2}{2v} + \frac12\sum_{i=1}^N(y_i - x_i^\top\theta)^2 .
# $$
#
# The $n$ examples of a minibatch are drawn one after the other, with replacement, and not all with the same chance: every draw picks example $i$ with probability $p_i$.
# Compute an unbiased estimate of $\nabla U$ from them.
#
# See *What a minibatch sees*, “The gradient of a posterior is a sum”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "minibatch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def minibatch_gradient(position, inputs, targets, chances, prior_variance):
    """Estimate the gradient of U.

    position is (chains, dim); inputs (n, dim) and targets (n,) are the minibatch, and
    chances (n,) the probabilities p of its examples; returns (chains, dim).
    """
    ### BEGIN SOLUTION
    weighted = (position @ inputs.T - targets) / chances
    return position / prior_variance + weighted @ inputs / len(inputs)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "minibatch-test", "locked": true, "points": 8, "schema_version": 3, "solution": false, "task": false}
# POINTS 3: one chain, by hand
found = minibatch_gradient(
    torch.tensor([[2.0]]),
    torch.tensor([[1.0], [2.0]]),
    torch.tensor([5.0, 1.0]),
    torch.tensor([0.1, 0.25]),
    4.0,
)
assert_shape(found, (1, 1), "the gradient of one chain")
assert_close(
    found,
    torch.tensor([[-2.5]]),
    "the gradient at θ = 2 from the examples (1, 5) and (2, 1), of the probabilities "
    "0.1 and 0.25, with prior variance 4",
)
### BEGIN HIDDEN TESTS
found = minibatch_gradient(
    torch.tensor([[1.0]]),
    torch.tensor([[2.0], [1.0], [1.0]]),
    torch.tensor([1.0, 4.0, 0.0]),
    torch.tensor([0.5, 0.1, 0.2]),
    0.5,
)
assert_shape(found, (1, 1), "the gradient of one chain")
assert_close(found, torch.tensor([[2.0 - 7.0]]), "the gradient from three examples")
### END HIDDEN TESTS
# POINTS 5: unbiased, for several chains
inputs, targets = regression()
position = torch.tensor([[0.7, -0.4], [2.0, 1.0], [0.0, 0.0]])
exact = position / 2.5 + (position @ inputs.T - targets) @ inputs
found = minibatch_gradient(
    position.clone(), inputs, targets, torch.full((6,), 1 / 6), 2.5
)
assert_shape(found, (3, 2), "the gradients of three chains")
assert_close(
    found, exact, "the gradient where every example is drawn once, with equal chances"
)
### BEGIN HIDDEN TESTS
for total, dim, variance, size in [(6, 2, 2.5, 1), (6, 2, 2.5, 3), (5, 3, 0.3, 2)]:
    inputs, targets = regression(total, dim, seed=total)
    chances = torch.arange(1.0, total + 1) / sum(range(total + 1))
    position = torch.randn(2, dim, generator=seeded(dim))
    exact = position / variance + (position @ inputs.T - targets) @ inputs
    mean = torch.zeros(2, dim)
    for drawn in itertools.product(range(total), repeat=size):
        batch = inputs[list(drawn)], targets[list(drawn)], chances[list(drawn)]
        found = minibatch_gradient(position.clone(), *batch, variance)
        assert_shape(found, (2, dim), "the gradients of two chains")
        mean += batch[2].prod() * found
    assert_close(
        mean, exact, f"the mean over all minibatches of {size}, by their chance"
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 2 Its noise (10 points)
#
# From now on the data are in *groups*, say of similar examples: a minibatch has a fixed number $n_k$ of the $N_k$ examples of group $k$, drawn **without replacement**, all choices being equally likely. Every group has at least two examples, and what is drawn from different groups is independent.
# The estimate scales the sum over each group's examples by $N_k/n_k$. Compute its exact covariance $V(\theta)$ from all the data, by a formula: in the tests there are more minibatches than a computer can list.
#
# See *What a minibatch sees*, “The gradient of a posterior is a sum”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "variance", "locked": false, "schema_version": 3, "solution": true, "task": false}
def noise_variance(position, inputs, targets, groups, sizes):
    """Compute V, (dim, dim).

    position is (1, dim); inputs (N, dim) and targets (N,) are all the data, groups (N,)
    the whole numbers k of the examples' groups, 0, 1, …; sizes is a list of the n_k.
    """
    ### BEGIN SOLUTION
    gradients = (position @ inputs.T - targets).T * inputs
    variance = torch.zeros(inputs.shape[1], inputs.shape[1])
    for k, size in enumerate(sizes):
        group = gradients[groups == k]
        total, centred = len(group), group - group.mean(0)
        factor = total**2 / size * (total - size) / (total - 1)
        variance = variance + factor * centred.T @ centred / total
    return variance
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "variance-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false}
def per_example(position, inputs, targets):
    return (position @ inputs.T - targets).T * inputs


def choices(groups, sizes):
    """List the minibatches: of every group all choices, without replacement."""
    members = [(groups == k).nonzero()[:, 0].tolist() for k in range(len(sizes))]
    parts = map(itertools.combinations, members, sizes)
    return [[list(part) for part in one] for one in itertools.product(*parts)]


def listed(gradients, groups, sizes):
    """Compute V from a list of all minibatches."""
    scales = [int((groups == k).sum()) / size for k, size in enumerate(sizes)]
    sums = [
        sum(
            scale * gradients[part].sum(0)
            for scale, part in zip(scales, one, strict=True)
        )
        for one in choices(groups, sizes)
    ]
    dim = gradients.shape[1]
    return torch.cov(torch.stack(sums).T, correction=0).reshape(dim, dim)


def found_variance(position, inputs, targets, groups, sizes):
    found = noise_variance(*fresh(position, inputs, targets, groups), list(sizes))
    assert_shape(found, (inputs.shape[1], inputs.shape[1]), "V")
    return found


### BEGIN HIDDEN TESTS
# Sixty examples: of 30 of them there are 10¹⁷ minibatches.
def counted(gradients, groups, sizes):
    """Compute V from the covariance of two places of a minibatch."""
    total = torch.zeros(gradients.shape[1], gradients.shape[1])
    for k, n in enumerate(sizes):
        g = gradients[groups == k] - gradients[groups == k].mean(0)
        N = len(g)
        same, other = g.T @ g / N, -g.T @ g / N / (N - 1)
        total += (N / n) ** 2 * (n * same + n * (n - 1) * other)
    return total


def assert_counted(dim, groups, sizes, seed):
    data = regression(60, dim, seed=seed)
    position = torch.randn(1, dim, generator=seeded(seed))
    assert_close(
        found_variance(position, *data, groups, sizes),
        counted(per_example(position, *data), groups, sizes),
        f"V of minibatches of {sizes} of 60 examples",
    )


### END HIDDEN TESTS
inputs, targets = regression()
position = torch.tensor([[0.7, -0.4]])
one_group = torch.zeros(6, dtype=torch.int64)
# POINTS 3: one group
four = torch.tensor([[0.0]]), torch.ones(4, 1), torch.tensor([-1.0, -1.0, 2.0, 2.0])
assert_close(
    found_variance(*four, one_group[:4], [2]),
    torch.tensor([[12.0]]),
    "V of two of four examples, whose gradients are 1, 1, -2 and -2",
)
assert_close(
    found_variance(position, inputs, targets, one_group, [6]),
    torch.zeros(2, 2),
    "V of a minibatch of all the data",
)
### BEGIN HIDDEN TESTS
assert_counted(2, torch.zeros(60, dtype=torch.int64), [30], seed=1)
assert_counted(1, torch.zeros(60, dtype=torch.int64), [7], seed=2)
### END HIDDEN TESTS
# POINTS 7: several groups
groups = torch.tensor([0, 1, 0, 1, 1, 0])
assert_close(
    found_variance(position, inputs, targets, groups, [2, 1]),
    listed(per_example(position, inputs, targets), groups, [2, 1]),
    "V of minibatches of 2 and 1 of two groups of 3",
)
### BEGIN HIDDEN TESTS
thirds = torch.arange(60) * 3 // 60
assert_counted(3, thirds, [10, 5, 12], seed=3)
assert_counted(2, (torch.arange(60) % 4 > 0).long(), [8, 30], seed=4)
### END HIDDEN TESTS

# %% [markdown]
# **Question 1 (7 points).** Derive the formula that you used, for one group of $N$ examples, of which $n$ are drawn. Where does the factor $N^2/n$ come from, and where the one that makes $V$ vanish at $n = N$?
# If the batch size is doubled, what happens to the *standard deviation* of the noise as long as $n \ll N$?

# %% [markdown] nbgrader={"grade": true, "grade_id": "variance-question", "locked": false, "points": 7, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Let $g_i$ be example $i$'s contribution, $\Sigma_g = \frac1N\sum_i(g_i - \bar g)(g_i - \bar g)^\top$. Each place of the minibatch holds every example with probability $1/N$: its covariance is $\Sigma_g$. Two different places have some covariance $\Gamma$, the same for all pairs, by symmetry, and independent of $n$.
# At $n = N$ the sum is certain: $0 = N\Sigma_g + N(N - 1)\Gamma$, so $\Gamma = -\Sigma_g/(N - 1)$.
# For any $n$: $\operatorname{Cov}\sum_{i \in S}g_i = n\Sigma_g + n(n - 1)\Gamma = n\frac{N - n}{N - 1}\Sigma_g$, and the factor $N/n$ of the estimate enters squared: $V = \frac{N^2}{n^2}\,n\,\frac{N - n}{N - 1}\,\Sigma_g$.
# So $N^2/n$ is the square of the scale $N/n$ times the $n$ terms of the sum, and $\frac{N-n}{N-1}$ is the negative correlation of draws without replacement.
# Doubling $n \ll N$ halves $V$ and divides the standard deviation by $\sqrt2$. The prior's part is not random and does not matter.
#
# **Rubric.** 3 points: the covariance between places (or indicator variables), with its value. 2 points: the factor $N^2/n$. 1 point: the factor that vanishes. 1 point: $\sqrt2$.
# ### END SOLUTION

# %% [markdown]
# ## 3 An estimate of the noise, from one minibatch (10 points)
#
# While sampling, $V$ is not known, but the gradients $g_i$ of the minibatch's own examples are. Make of them an **unbiased** estimate of $V$, still for examples in groups and without replacement. Of every group there are at least two in the minibatch.
#
# See *Measuring the noise*, “Many directions”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "estimate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def estimate_noise_variance(gradients, groups, totals):
    """Estimate V, (dim, dim).

    gradients is (n, dim), one row for each example of the minibatch, none of them
    scaled; groups (n,) are the examples' groups k, totals is a list of all N_k.
    """
    ### BEGIN SOLUTION
    variance = torch.zeros(gradients.shape[1], gradients.shape[1])
    for k, total in enumerate(totals):
        group = gradients[groups == k]
        size, centred = len(group), group - group.mean(0)
        factor = total**2 / size * (1 - size / total)
        variance = variance + factor * centred.T @ centred / (size - 1)
    return variance
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "estimate-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false}
def estimated(gradients, groups, totals):
    groups = torch.as_tensor(groups)
    found = estimate_noise_variance(*fresh(gradients, groups), list(totals))
    assert_shape(found, (gradients.shape[1], gradients.shape[1]), "the estimate")
    return found


def mean_estimate(gradients, groups, sizes):
    """Average the estimate over all minibatches; give the exact V too."""
    totals = [int((groups == k).sum()) for k in range(len(sizes))]
    members = [(groups == k).nonzero()[:, 0].tolist() for k in range(len(sizes))]
    parts = list(itertools.product(*map(itertools.combinations, members, sizes)))
    batches = [[i for part in one for i in part] for one in parts]
    mean = sum(estimated(gradients[b], groups[b], totals) for b in batches)
    scales = torch.tensor([total / n for total, n in zip(totals, sizes, strict=True)])
    scaled = scales[groups][:, None] * gradients
    sums = torch.stack([scaled[b].sum(0) for b in batches])
    exact = torch.cov(sums.T, correction=0).reshape(mean.shape)
    return mean / len(batches), exact


# POINTS 3: one group
gradients = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
assert_close(
    estimated(gradients, [0, 0], [2]),
    torch.zeros(2, 2),
    "the estimate from a minibatch of all the data",
)
assert_close(
    estimated(torch.tensor([[1.0], [3.0]]), [0, 0], [4]),
    torch.tensor([[8.0]]),
    "the estimate from two of four examples, with gradients 1 and 3",
)
### BEGIN HIDDEN TESTS
gradients = torch.randn(7, 2, generator=seeded(4)) + 1
mean, exact = mean_estimate(gradients, torch.zeros(7, dtype=torch.int64), [3])
assert_close(mean, exact, "the mean of the estimate over all minibatches of 3 of 7")
### END HIDDEN TESTS
# POINTS 7: several groups
inputs, targets = regression()
gradients = (torch.tensor([[0.7, -0.4]]) @ inputs.T - targets).T * inputs
mean, exact = mean_estimate(gradients, torch.tensor([0, 1, 0, 1, 1, 0]), [2, 2])
assert_close(mean, exact, "the mean of the estimate, 2 of 3 examples of two groups")
### BEGIN HIDDEN TESTS
for groups, sizes, dim in [
    ([0, 0, 1, 1, 1, 1], [2, 3], 2),
    ([1, 0, 1, 0, 1, 0, 0, 2, 2], [3, 2, 2], 3),
]:
    gradients = torch.randn(len(groups), dim, generator=seeded(dim)) + 1
    mean, exact = mean_estimate(gradients, torch.tensor(groups), sizes)
    assert_close(mean, exact, f"the mean of the estimate from {sizes} of the groups")
### END HIDDEN TESTS

# %% [markdown]
# ## 4 The naive algorithm (10 points)
#
# Take Hamiltonian Monte Carlo for $e^{-U/T}$, put the stochastic gradient in the place of the exact one, and leave out the decision.
# One step draws a fresh momentum $r \sim N(0, T)$ in every coordinate and follows $L$ leapfrog steps with mass 1, each chain with a step size of its own.
# Both kinds of leapfrog are right: kick–drift–kick, where the two half kicks between neighbouring drifts **share one** stochastic gradient ($L + 1$ gradients in all), or drift–kick–drift ($L$ gradients).
# Every gradient has its own noise.
#
# See *The obvious thing overheats: naive stochastic-gradient HMC*, “The obvious algorithm”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "naive", "locked": false, "schema_version": 3, "solution": true, "task": false}
def naive_sghmc_step(
    stochastic_gradient, position, step_size, num_steps, temperature, generator
):
    """Take one step of naive SGHMC.

    stochastic_gradient is a function of the position (chains, dim) and the generator;
    step_size is (chains,); returns the new position (chains, dim).
    """
    ### BEGIN SOLUTION
    step = step_size[:, None]
    momentum = math.sqrt(temperature) * torch.randn(position.shape, generator=generator)
    momentum = momentum - step / 2 * stochastic_gradient(position, generator)
    for number in range(num_steps):
        position = position + step * momentum
        length = step if number < num_steps - 1 else step / 2
        momentum = momentum - length * stochastic_gradient(position, generator)
    return position
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "naive-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false}
def flight(position):
    return 0 * position


def ends(force, start, steps, num_steps, temperature, generator):
    found = naive_sghmc_step(
        force, start.clone(), torch.tensor(steps), num_steps, temperature, generator
    )
    assert_shape(found, start.shape, f"the new position of {len(start)} chains")
    return found


# Without a force a step is a flight over 0.5 r, or r, with r ~ N(0, 2) at T = 2.
generator = seeded(1)
z, z_again = (
    (ends(noisy(flight, 0.0), torch.ones(2, 5_000), [0.1, 0.2], 5, 2.0, generator) - 1)
    / torch.tensor([[0.5], [1.0]])
    / math.sqrt(2.0)
    for _ in range(2)
)
assert abs(float((z * z_again).mean())) < 0.1, "every call should draw another momentum"
assert abs(float((z[0] * z[1]).mean())) < 0.1, (
    "every chain should have a momentum of its own"
)
assert_normal(z, (2, 5_000), 0.0, 1.0, "the flight over εL√T")


### BEGIN HIDDEN TESTS
# In the bowl with curvature A a step is linear, θ' = Fθ + N(0, Q), and F and Q are
# known exactly for either kind of leapfrog.
def drift_first(curvature, step_size, num_steps, noise):
    drift = LinearChain(
        torch.tensor([[1.0, step_size / 2], [0.0, 1.0]]), torch.zeros(2, 2)
    )
    kick = LinearChain(
        torch.tensor([[1.0, 0.0], [-step_size * curvature, 1.0]]),
        torch.diag(torch.tensor([0.0, step_size**2 * noise])),
    )
    fresh_momentum = LinearChain(
        torch.diag(torch.tensor([1.0, 0.0])), torch.diag(torch.tensor([0.0, 1.0]))
    )
    return fresh_momentum.then(drift.then(kick).then(drift).power(num_steps))


def kick_first(curvature, step_size, num_steps, noise):
    return naive_sghmc_chain(torch.tensor([[curvature]]), step_size, num_steps, noise)


def assert_law(curvature, steps, num_steps, noise, temperature, seed):
    """Demand that 20,000 coordinates from θ = 2 have the law of either chain."""
    force = noisy(lambda position: curvature * position, noise)
    draws = ends(
        force, torch.full((2, 10_000), 2.0), steps, num_steps, temperature, seeded(seed)
    )
    complaints = []
    for kind in (kick_first, drift_first):
        standard = []
        for one, step_size in zip(draws, steps, strict=True):
            law, quiet = (
                kind(curvature, step_size, num_steps, v) for v in (noise, 0.0)
            )
            hotter = (temperature - 1) * quiet.noise_covariance[0, 0]
            mean = 2 * law.transition[0, 0]
            standard.append((one - mean) / (law.noise_covariance[0, 0] + hotter) ** 0.5)
        try:
            what = (
                f"the position after {num_steps} leapfrog steps of size {steps} "
                f"from θ = 2, with V = {noise} and T = {temperature}, made standard,"
            )
            assert_normal(torch.stack(standard), (2, 10_000), 0.0, 1.0, what)
        except AssertionError as complaint:
            complaints.append(complaint)
    assert len(complaints) < 2, (
        f"{complaints[0]}; and for drift-kick-drift: {complaints[1]}"
    )


### END HIDDEN TESTS
# POINTS 4: the trajectory, without noise
draws = ends(
    noisy(lambda position: position, 0.0),
    torch.full((2, 2_000), 2.0),
    [0.02, 0.01],
    80,
    0.5,
    seeded(2),
)
assert_mean(
    draws.T,
    (2_000, 2),
    torch.tensor([2 * math.cos(1.6), 2 * math.cos(0.8)]),
    "the position after the times 1.6 and 0.8 from θ = 2 in the bowl, by tiny steps",
    std=1.0,
)
### BEGIN HIDDEN TESTS
assert_law(1.0, [0.9, 0.4], 3, 0.0, 1.7, seed=3)
### END HIDDEN TESTS
# POINTS 6: the noise of the gradients
# Without a force, two steps of size 1 lead from 0 to 2r and the kicks of V = 4: their
# variance is 12 if you kick first, 14 if you drift first.
kicked = ends(noisy(flight, 4.0), torch.zeros(2, 2_000), [1.0, 1.0], 2, 1.0, seeded(4))
assert 11 < float(kicked.var()) < 15.4, (
    "the variance of the position after two steps of size 1 without a force, with V = "
    f"4, is 12 or 14 and not {float(kicked.var()):.3g}"
)
### BEGIN HIDDEN TESTS
assert_law(1.0, [0.4, 0.7], 1, 50.0, 1.0, seed=5)
assert_law(0.5, [0.3, 0.2], 6, 20.0, 0.4, seed=6)
### END HIDDEN TESTS

# %% [markdown]
# **Question 2 (6 points).** What the noise of the gradients does to the naive algorithm:
#
# 1. By how much does the noise of one leapfrog step raise the variance of a momentum? Add it up over a fixed time $t$: does the damage vanish as $\varepsilon \to 0$ for a fixed $V$, and how fast? (4 points)
# 2. A decision with the exact $U$, as in HMC, would repair it. What does that cost? (2 points)

# %% [markdown] nbgrader={"grade": true, "grade_id": "naive-question", "locked": false, "points": 6, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# 1. A kick of length $\varepsilon$ adds $N(0, \varepsilon^2V)$ to the momentum: its variance rises by $\varepsilon^2V$.
# Over a time $t$ there are $t/\varepsilon$ steps: $\varepsilon tV = 2Bt$ with $B = \tfrac12\varepsilon V$. It vanishes as $\varepsilon \to 0$, but only in proportion to $\varepsilon$, while the cost in gradients grows as $1/\varepsilon$.
# 2. A Metropolis decision needs $H$ before and after, so the exact $U$ with all $N$ examples for every proposal, which minibatches were to avoid; and since the energy error grows with the length and the dimension, long trajectories are nearly always rejected.
#
# **Rubric.** Part 1: 2 points for $\varepsilon^2V$, 1 for $\varepsilon tV$ over a time $t$, 1 for the first order. Part 2: 1 point for all the data at each decision, 1 for low acceptance.
# ### END SOLUTION

# %% [markdown]
# ## 5 From a learning rate to SGHMC's parameters (8 points)
#
# A colleague trains a network on $N$ examples with PyTorch's SGD with momentum: $v \leftarrow \mu v + \nabla\tilde L(\theta)$, $\theta \leftarrow \theta - \gamma v$. Her loss $L = U/N$ is an average over the examples, and she knows the variance $V_L$ of the noise of $\nabla\tilde L$ (a number).
# Translate her $\gamma$ and $\mu$ into the step size $\varepsilon$, the friction $C$ and the noise estimate $\hat B = \tfrac12\varepsilon V$ of SGHMC with mass 1 on $U$, where $V$ is the variance of the noise of $\nabla\tilde U$.
#
# See *Friction: stochastic-gradient HMC*, “As SGD with momentum”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "settings", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sghmc_settings(learning_rate, momentum, noise_variance, num_examples):
    """Compute ε, C and B̂ of SGHMC from γ, μ, V_L and N: numbers -> three numbers."""
    ### BEGIN SOLUTION
    step_size = math.sqrt(learning_rate / num_examples)
    estimate = 0.5 * step_size * num_examples**2 * noise_variance
    return step_size, (1 - momentum) / step_size, estimate
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "settings-test", "locked": true, "points": 8, "schema_version": 3, "solution": false, "task": false}
# POINTS 2: the step size
for rate, total, exact in [(0.4, 10, 0.2), (1.0, 1, 1.0)]:
    found = sghmc_settings(rate, 0.9, 0.03, total)[0]
    assert_close(found, exact, f"ε for γ = {rate} and N = {total}")
### BEGIN HIDDEN TESTS
others = [(4e-3, 0.97, 2.5, 20), (0.25, 0.1, 0.3, 7)]
for rate, keep, variance, total in others:
    assert_close(
        sghmc_settings(rate, keep, variance, total)[0],
        (rate / total) ** 0.5,
        f"ε for γ = {rate}, μ = {keep}, V_L = {variance}, N = {total}",
    )
### END HIDDEN TESTS
# POINTS 3: the friction
found = sghmc_settings(0.4, 0.9, 0.03, 10)[1]
assert_close(found, 0.5, "C for γ = 0.4, μ = 0.9 and N = 10")
### BEGIN HIDDEN TESTS
for rate, keep, variance, total in [(4e-3, 0.97, 2.5, 20), (0.25, 0.1, 0.3, 7)]:
    assert_close(
        sghmc_settings(rate, keep, variance, total)[1],
        (1 - keep) / (rate / total) ** 0.5,
        f"C for γ = {rate}, μ = {keep}, V_L = {variance}, N = {total}",
    )
### END HIDDEN TESTS
# POINTS 3: the noise estimate
found = sghmc_settings(0.4, 0.9, 0.03, 10)[2]
assert_close(found, 0.3, "the noise estimate for γ = 0.4, V_L = 0.03 and N = 10")
### BEGIN HIDDEN TESTS
for rate, keep, variance, total in [(4e-3, 0.97, 2.5, 20), (0.25, 0.1, 0.3, 7)]:
    assert_close(
        sghmc_settings(rate, keep, variance, total)[2],
        (rate * total**3) ** 0.5 * variance / 2,
        f"B̂ for γ = {rate}, μ = {keep}, V_L = {variance}, N = {total}",
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 6 SGHMC (14 points)
#
# Write one step of SGHMC with mass 1 at the temperature $T$, in a palindromic order and with friction that is followed exactly: with $a = e^{-\varepsilon C}$
#
# $$
# \theta \leftarrow \theta + \tfrac12\varepsilon r, \qquad r \leftarrow ar - \varepsilon\nabla\tilde U(\theta) + N(0, W), \qquad \theta \leftarrow \theta + \tfrac12\varepsilon r .
# $$
#
# The stochastic gradient has noise of variance $V$ of its own. Find the variance $W$ that must be injected for a momentum that is $N(0, T)$, on which no force but that noise acts, to stay $N(0, T)$.
#
# See *Friction: stochastic-gradient HMC*, “The algorithm” and “What a step costs”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "sghmc", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sghmc_step(
    stochastic_gradient,
    position,
    momentum,
    step_size,
    friction,
    noise_variance,
    temperature,
    generator,
):
    """Take one step of SGHMC.

    position and momentum are (chains, dim), and so are the new ones that it returns;
    noise_variance is V, and W is not negative.
    """
    ### BEGIN SOLUTION
    kept = math.exp(-step_size * friction)
    injected = temperature * (1 - kept**2) - step_size**2 * noise_variance
    noise = math.sqrt(injected) * torch.randn(position.shape, generator=generator)
    position = position + step_size / 2 * momentum
    force = stochastic_gradient(position, generator)
    momentum = kept * momentum - step_size * force + noise
    return position + step_size / 2 * momentum, momentum
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "sghmc-test", "locked": true, "points": 14, "schema_version": 3, "solution": false, "task": false}
def quiet(position):
    return 0 * position


def step(force, position, momentum, *settings):
    moved = sghmc_step(force, *fresh(position, momentum), *settings)
    for what, one in zip(("position", "momentum"), moved, strict=True):
        assert_shape(one, position.shape, f"the new {what} of {len(position)} chains")
    return moved


# Without a force, one step from θ = 0, r = 1 leaves friction and injected noise:
# whatever its size, it should be normal, and new.
generator = seeded(1)
zero, one = torch.zeros(2, 5_000), torch.ones(2, 5_000)
(_, unforced), (_, again) = (
    step(noisy(quiet, 0.0), zero, one, 0.1, 2.0, 5.0, 1.5, generator) for _ in range(2)
)
z, z_again = ((r - r.mean()) / r.std() for r in (unforced, again))
assert abs(float((z**4).mean()) - 3) < 0.5, (
    "the injected noise should be normally distributed"
)
assert abs(float((z * z_again).mean())) < 0.1, "every call should draw other noise"
assert abs(float((z[0] * z[1]).mean())) < 0.1, (
    "every chain should have noise of its own"
)
# POINTS 5: friction, force and order, at temperature zero
moved, slowed = step(
    noisy(quiet, 0.0), torch.ones(1, 3), torch.ones(1, 3), 0.1, 2.0, 0.0, 0.0, seeded(2)
)
kept = math.exp(-0.2)
assert_close(slowed, torch.full((1, 3), kept), "the momentum after friction alone")
assert_close(
    moved, torch.full((1, 3), 1.05 + 0.05 * kept), "the position after friction alone"
)
states = torch.tensor([[1.0], [0.5], [-2.0]]), torch.tensor([[-2.0], [0.0], [3.0]])
moved, kicked = step(
    noisy(lambda position: position, 0.0), *states, 0.3, 2.0, 0.0, 0.0, seeded(2)
)
middle = states[0] + 0.15 * states[1]
exact = math.exp(-0.6) * states[1] - 0.3 * middle
assert_close(
    kicked, exact, "the momentum after one step in the bowl, ε = 0.3 and C = 2"
)
assert_close(
    moved,
    middle + 0.15 * exact,
    "the position after one step in the bowl, ε = 0.3 and C = 2",
)
### BEGIN HIDDEN TESTS
for curvature, step_size, friction in [(0.5, 0.2, 1.0), (3.0, 0.1, 4.0)]:
    places, momenta = torch.randn(2, 4, 3, generator=seeded(3))
    found = step(
        noisy(lambda x: curvature * x**3, 0.0),
        places,
        momenta,
        step_size,
        friction,
        0.0,
        0.0,
        seeded(4),
    )
    middle = places + step_size / 2 * momenta
    slowed = math.exp(-step_size * friction) * momenta
    kicked = slowed - step_size * curvature * middle**3
    assert_close(
        torch.stack(found),
        torch.stack([middle + step_size / 2 * kicked, kicked]),
        f"one step with ε = {step_size}, C = {friction} and U = {curvature}θ⁴/4",
    )
### END HIDDEN TESTS
# POINTS 9: noise of the right size
assert_normal(
    unforced,
    (2, 5_000),
    math.exp(-0.2),
    1.5 * (1 - math.exp(-0.4)) - 0.1**2 * 5,
    "the momentum after one step from θ = 0, r = 1 without a force, V = 5 at T = 1.5,",
)
### BEGIN HIDDEN TESTS
# From a fixed state the new momentum is normal with a known law.
for seed, (curvature, step_size, friction, noise, stated, temperature) in enumerate(
    [(1.0, 0.3, 2.0, 4.0, 4.0, 0.7), (0.5, 0.2, 1.0, 3.0, 0.0, 2.0)]
):
    force = noisy(lambda position: curvature * position, noise)
    start = torch.full((2, 10_000), 1.0), torch.full((2, 10_000), -2.0)
    settings = step_size, friction, stated, temperature
    moved, kicked = step(force, *start, *settings, seeded(seed))
    middle, kept = 1.0 - step_size, math.exp(-step_size * friction)
    exact = -2.0 * kept - step_size * curvature * middle
    spread = temperature * (1 - kept**2) + step_size**2 * (noise - stated)
    assert_close(
        moved,
        middle + step_size / 2 * kicked,
        "the last half drift goes with the new momentum",
    )
    assert_normal(
        kicked,
        (2, 10_000),
        exact,
        spread,
        "the momentum after one step from (1, -2) with a noisy gradient",
    )
    z = (kicked - exact) / spread**0.5
    assert_mean(
        torch.stack([z[0] * z[1], z[0] * z[0].roll(1)], -1),
        (10_000, 2),
        0.0,
        "the correlation of chains and of coordinates",
        std=1.0,
    )
### END HIDDEN TESTS

# %% [markdown]
# **Question 3 (7 points).** As $\varepsilon \to 0$ SGHMC with the right $\hat B = B$ follows $d\theta = r\,dt$, $dr = -\nabla U\,dt - Cr\,dt + N(0, 2C\,dt)$.
# Write down the Fokker–Planck equation for the density of $(\theta, r)$, and show that $e^{-H}$ with $H = U(\theta) + \tfrac12\lvert r\rvert^2$ is stationary.
# What does the same calculation say of the naive dynamics, $C = 0$ but noise $N(0, 2B\,dt)$?

# %% [markdown] nbgrader={"grade": true, "grade_id": "sghmc-question", "locked": false, "points": 7, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# $\partial_tp = -\nabla_\theta\cdot(rp) + \nabla_r\cdot\bigl((\nabla U + Cr)p\bigr) + \nabla_r\cdot(C\nabla_rp)$.
# Insert $p = e^{-H}$: $\nabla_\theta p = -p\nabla U$ and $\nabla_rp = -pr$.
# The Hamiltonian part: $-r\cdot\nabla_\theta p + \nabla U\cdot\nabla_rp = p\,r\cdot\nabla U - p\,\nabla U\cdot r = 0$.
# The rest: $\nabla_r\cdot(Crp + C\nabla_rp) = \nabla_r\cdot(Crp - Crp) = 0$. So friction and noise balance, separately from the Hamiltonian part.
# For the naive dynamics the rest is $\nabla_r\cdot(B\nabla_rp) = -\nabla_r\cdot(Brp) = p\,(r^\top Br - \operatorname{tr}B)$, which is not zero: $e^{-H}$ is not stationary. (No density is: the mean energy grows at the rate $\operatorname{tr}B$ for ever.)
#
# **Rubric.** 2 points: the equation, with its signs. 2 points: the Hamiltonian part cancels. 2 points: friction against noise. 1 point: the naive dynamics leaves a term that is not zero.
# ### END SOLUTION

# %% [markdown]
# **Question 4 (5 points).** In the bowl $U = \tfrac12\theta^2$, and as $\varepsilon \to 0$, with noise $B$ but an estimate $\hat B \ne B$, SGHMC samples $e^{-H/T}$ at some temperature $T$. Which one?
# What is it for $\hat B = 0$, and what can be done about it without any knowledge of $B$? At what price?

# %% [markdown] nbgrader={"grade": true, "grade_id": "temperature-question", "locked": false, "points": 5, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Noise of variance $2(C - \hat B)\,dt$ is injected and $2B\,dt$ comes with the gradient: together $2(C - \hat B + B)\,dt$, against the friction $C$. The balance $\nabla_r\cdot\bigl(Crp + (C - \hat B + B)\nabla_rp\bigr) = 0$ holds for $p = e^{-H/T}$ with $T = 1 + (B - \hat B)/C$.
# For $\hat B = 0$ it is $1 + B/C$, too hot. A larger friction brings it near to one, and so does a smaller step, since $B = \tfrac12\varepsilon V$. The price: with more friction the chain moves by diffusion rather than along trajectories, and more slowly; with a smaller step it takes more steps.
#
# **Rubric.** 2 points: $T$, derived. 1 point: $1 + B/C$. 1 point: larger $C$ or smaller $\varepsilon$. 1 point: slower mixing.
# ### END SOLUTION

# %% [markdown]
# ## 7 Plot: what the noise does to the naive algorithm (7 points)
#
# In the bowl $U = \tfrac12\theta^2$ with $V = 4$ and $\varepsilon = 0.1$, run your naive algorithm at $T = 1$ for 200 steps on the position `torch.zeros(1, 2_000)`, 2,000 chains at once, for $L = 1, 5, 10, 20, 40$, and record the variance of $\theta$ over the last 100 steps.
# The grey line is the exact law of the chain of kick–drift–kick, the dashed one the target's variance.

# %% nbgrader={"grade": false, "grade_id": "plot-naive", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["experiment"]
lengths = [1, 5, 10, 20, 40]
variances = []  # one for each length
### BEGIN SOLUTION
generator = torch.Generator().manual_seed(0)
for num_steps in lengths:
    position, moments = torch.zeros(1, 2_000), []
    for step in range(200):
        position = naive_sghmc_step(
            noisy(lambda position: position, 4.0),
            position,
            torch.tensor([0.1]),
            num_steps,
            1.0,
            generator,
        )
        if step >= 100:
            moments.append(float((position**2).mean()))
    variances.append(sum(moments) / len(moments))
### END SOLUTION
exact = [
    float(
        naive_sghmc_chain(torch.eye(1), 0.1, num_steps, 4.0).stationary_covariance()[
            0, 0
        ]
    )
    for num_steps in range(1, 41)
]
figure, axes = plt.subplots()
axes.plot(range(1, 41), exact, color=TRUTH)
axes.axhline(1, color=TRUTH, ls="--")
axes.plot(lengths, variances, "o", color=COLOURS["naive SGHMC"])
axes.set_yscale("log")
axes.set(xlabel="leapfrog steps $L$", ylabel=r"variance of $\theta$")
plt.show()

# %% [markdown]
# Describe the curve. Why is the variance above one for all $L$, and what happens near $L = 31$? Which of your points cannot be trusted after 200 steps from zero, and why?

# %% [markdown] nbgrader={"grade": true, "grade_id": "plot-naive-answer", "locked": false, "points": 7, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# The variance is above one for every length: noise heats the momentum on the way, and the position with it, and only the fresh momentum at the start of a step is at the right temperature.
# Short trajectories gain little energy each, and refreshing the momentum cools often; at $L = 1$ the excess is about one per cent. It rises with $L$.
# Near half a turn, $L\varepsilon \approx \pi$, so $L \approx 31$, a trajectory maps $\theta$ nearly on $-\theta$, whatever the momentum: the old position, with all the excess that it ever gained, is hardly forgotten, the excess adds up from draw to draw, and the exact variance is in the hundreds. Beyond, it falls again: at $L = 40$ a trajectory forgets more of the position than at 31.
# At $L = 1$ the chain is a slow random walk: a step multiplies $\theta$ by $1 - \varepsilon^2/2 = 0.995$, so after 200 steps from zero the variance still lacks $0.995^{400} = 13$ per cent, and the dot lies below the line, even below one. That is a transient, not a virtue.
#
# **Rubric.** 2 points: the plot, right. 2 points: heating by noise on the way and cooling by refreshment. 1 point: the peak near half a turn. 2 points: $L = 1$ has not converged, with a reason.
# ### END SOLUTION

# %% [markdown]
# ## 8 Plot: the double well (8 points)
#
# The double well $U = -2\theta^2 + \theta^4$ is seen through gradient noise of variance $V = 4$, with $\varepsilon = 0.1$.
# Run your SGHMC with $C = 0.6$ and $T = 1$ twice, with `noise_variance` $\hat V = 0$ and with the right one, on 2,000 chains at once: 400 steps of warm-up, then 400 steps whose positions you keep.

# %% nbgrader={"grade": false, "grade_id": "plot-double-well", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["experiment"]
draws = {}  # for each of the two variances, a tensor with all the positions kept
well = noisy(lambda position: 4 * position**3 - 4 * position, 4.0)
### BEGIN SOLUTION
generator = torch.Generator().manual_seed(0)
for variance in (0.0, 4.0):
    position, momentum, kept = torch.zeros(1, 2_000), torch.zeros(1, 2_000), []
    for step in range(800):
        position, momentum = sghmc_step(
            well, position, momentum, 0.1, 0.6, variance, 1.0, generator
        )
        if step >= 400:
            kept.append(position.flatten())
    draws[variance] = torch.cat(kept)
### END SOLUTION
figure, axes = plt.subplots()
plot_density(axes, DoubleWell(), -2.5, 2.5)
for (variance, positions), style in zip(draws.items(), ("--", "-"), strict=False):
    plot_histogram(
        axes,
        positions,
        torch.linspace(-2.5, 2.5, 61),
        ls=style,
        color=COLOURS["SGHMC"],
        label=rf"$\hat V = {variance:g}$",
    )
axes.set(xlabel=r"$\theta$", ylabel="density")
axes.legend()
plt.show()

# %% [markdown]
# How does the histogram with $\hat V = 0$ differ from the true density, and which temperature (Question 4, $\hat B = \tfrac12\varepsilon\hat V$) describes it? Is the one with the right $\hat V$ exact? What would you see with $\hat V = 0$ and $C = 6$, and what would it cost?

# %% [markdown] nbgrader={"grade": true, "grade_id": "plot-double-well-answer", "locked": false, "points": 8, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# With $\hat V = 0$ the histogram is too flat: the wells are too shallow, the barrier between them and the tails too high, as if at the temperature $1 + B/C = 1 + 0.2/0.6 \approx 1.33$, since $B = \tfrac12 \cdot 0.1 \cdot 4 = 0.2$; exactly, for this step, $1 + \varepsilon^2V/(1 - a^2) \approx 1.35$.
# With $\hat V = 4$ it lies on the true density up to the error of a step of 0.1, which is of the second order, and the Monte Carlo error; both are hardly visible.
# With $C = 6$ and $\hat V = 0$ the temperature would be 1.03 to 1.06: nearly right, but at the price of strong friction, so that a chain crosses the barrier less often and needs more steps for as many independent draws.
#
# **Rubric.** 3 points: the plot, right, with $\hat V = 4$. 2 points: too flat, temperature 1.33 or 1.35. 1 point: nearly exact, discretisation error. 2 points: $C = 6$ and its price.
# ### END SOLUTION
