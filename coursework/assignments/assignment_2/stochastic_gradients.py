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
# *Before you start*, read the chapters *What a minibatch sees*, *The obvious thing overheats: naive stochastic-gradient HMC* and *Friction: stochastic-gradient HMC* of the book *Stochastic-gradient MCMC, derived and run* (`README.md` says where it is). Each task names the sections that it rests on.
# *It takes* three to four hours: an hour and a half for the code, as much for the questions, the rest for the plots.
# *It is worth* 100 points: 60 for six code tasks, graded by tests; 25 for four questions and 15 for two plots, marked by hand.
#
# *In the code tasks* you write everything yourself: `torch`, with automatic differentiation if you like, `math`, NumPy and SciPy are allowed; `sgmc`, which holds what you are asked to write, is not, and a task that uses it scores zero.
# In the plots you may use what you like.
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
# Compute an unbiased estimate of $\nabla U$ from a minibatch of $n$ of the $N$ examples.
#
# See *What a minibatch sees*, “The gradient of a posterior is a sum”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "minibatch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def minibatch_gradient(position, inputs, targets, num_examples, prior_variance):
    """Estimate the gradient of U.

    position is (chains, dim); inputs (n, dim) and targets (n,) are the minibatch;
    returns (chains, dim).
    """
    ### BEGIN SOLUTION
    residuals = position @ inputs.T - targets
    return position / prior_variance + num_examples / len(inputs) * residuals @ inputs
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "minibatch-test", "locked": true, "points": 8, "schema_version": 3, "solution": false, "task": false}
# POINTS 3: one chain, by hand
found = minibatch_gradient(
    torch.tensor([[2.0]]),
    torch.tensor([[1.0], [2.0]]),
    torch.tensor([5.0, 1.0]),
    10,
    4.0,
)
assert_shape(found, (1, 1), "the gradient of one chain")
assert_close(
    found,
    torch.tensor([[15.5]]),
    "the gradient at θ = 2 from the examples (1, 5) and (2, 1) of 10, "
    "with prior variance 4",
)
# POINTS 5: unbiased, for several chains
inputs, targets = regression()
position = torch.tensor([[0.7, -0.4], [2.0, 1.0], [0.0, 0.0]])
exact = position / 2.5 + (position @ inputs.T - targets) @ inputs
assert_close(
    minibatch_gradient(position.clone(), inputs, targets, 6, 2.5),
    exact,
    "the gradient of all the data, for three chains",
)
### BEGIN HIDDEN TESTS
for total, dim, variance in [(6, 2, 2.5), (5, 3, 0.3)]:
    inputs, targets = regression(total, dim, seed=total)
    position = torch.randn(2, dim, generator=seeded(dim))
    exact = position / variance + (position @ inputs.T - targets) @ inputs
    for size in (1, 2, 4):
        batches = [list(batch) for batch in itertools.combinations(range(total), size)]
        found = [
            minibatch_gradient(
                position.clone(), inputs[batch], targets[batch], total, variance
            )
            for batch in batches
        ]
        assert_close(
            sum(found) / len(found), exact, f"the mean over all minibatches of {size}"
        )
### END HIDDEN TESTS

# %% [markdown]
# ## 2 Its noise (10 points)
#
# Minibatches are drawn **without replacement**, each of the $\binom Nn$ with the same probability.
# Compute the exact covariance $V(\theta)$ of the estimate from all $N$ examples, by a formula: an answer that lists minibatches scores zero.
#
# See *What a minibatch sees*, “The gradient of a posterior is a sum”.


# %% forbidden=["sgmc", "itertools.combinations"] nbgrader={"grade": false, "grade_id": "variance", "locked": false, "schema_version": 3, "solution": true, "task": false}
def noise_variance(position, inputs, targets, batch_size):
    """Compute V, (dim, dim).

    position is (1, dim); inputs (N, dim) and targets (N,) are all the data.
    """
    ### BEGIN SOLUTION
    total = len(inputs)
    gradients = (position @ inputs.T - targets).T * inputs
    centred = gradients - gradients.mean(0)
    return (
        total**2
        / batch_size
        * (total - batch_size)
        / (total - 1)
        * (centred.T @ centred)
        / total
    )
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "variance-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false}
inputs, targets = regression()
position = torch.tensor([[0.7, -0.4]])
# POINTS 3: the simplest cases
four = torch.tensor([[0.0]]), torch.ones(4, 1), torch.tensor([-1.0, -1.0, 2.0, 2.0])
found = noise_variance(*fresh(*four), 2)
assert_shape(found, (1, 1), "V in one dimension")
assert_close(
    found,
    torch.tensor([[12.0]]),
    "V of two of four examples, whose gradients are 1, 1, -2 and -2",
)
assert_close(
    noise_variance(position.clone(), inputs, targets, 6),
    torch.zeros(2, 2),
    "V of a minibatch of all the data",
)
# POINTS 7: every minibatch counted
gradients = (position @ inputs.T - targets).T * inputs
all_batches = torch.stack(
    [2 * gradients[list(batch)].sum(0) for batch in itertools.combinations(range(6), 3)]
)
assert_close(
    noise_variance(position.clone(), inputs, targets, 3),
    torch.cov(all_batches.T, correction=0),
    "V of minibatches of 3",
)
### BEGIN HIDDEN TESTS
for total, size, dim in [(6, 1, 2), (6, 4, 2), (7, 2, 3), (5, 3, 1)]:
    inputs, targets = regression(total, dim, seed=total)
    position = torch.randn(1, dim, generator=seeded(size))
    gradients = (position @ inputs.T - targets).T * inputs
    all_batches = torch.stack(
        [
            total / size * gradients[list(batch)].sum(0)
            for batch in itertools.combinations(range(total), size)
        ]
    )
    exact = torch.cov(all_batches.T, correction=0).reshape(dim, dim)
    assert_close(
        noise_variance(position.clone(), inputs, targets, size),
        exact,
        f"V of minibatches of {size} of {total}",
    )
### END HIDDEN TESTS

# %% [markdown]
# **Question 1 (7 points).** Derive the formula that you used. Where does the factor $N^2/n$ come from, and where the one that makes $V$ vanish at $n = N$?
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
# While sampling, $V$ is not known, but the gradients $g_i$ of the minibatch's own examples are. Make of them an **unbiased** estimate of $V$, still for minibatches without replacement.
#
# See *Measuring the noise*, “From the examples of a minibatch”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "estimate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def estimate_noise_variance(gradients, num_examples):
    """Estimate V, (dim, dim).

    gradients is (n, dim), one row for each example of the minibatch, none of them
    scaled.
    """
    ### BEGIN SOLUTION
    batch_size = len(gradients)
    return (
        num_examples**2
        / batch_size
        * (1 - batch_size / num_examples)
        * torch.cov(gradients.T).reshape(gradients.shape[1], -1)
    )
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "estimate-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false}
# POINTS 3: the simplest cases
gradients = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
assert_shape(estimate_noise_variance(gradients.clone(), 10), (2, 2), "the estimate")
assert_close(
    estimate_noise_variance(gradients.clone(), 2),
    torch.zeros(2, 2),
    "the estimate from a minibatch of all the data",
)
one = estimate_noise_variance(torch.tensor([[1.0], [3.0]]), 4)
assert_shape(one, (1, 1), "the estimate in one dimension")
assert_close(
    one,
    torch.tensor([[8.0]]),
    "the estimate from two of four examples, with gradients 1 and 3",
)
# POINTS 7: unbiased
inputs, targets = regression()
gradients = (torch.tensor([[0.7, -0.4]]) @ inputs.T - targets).T * inputs
batches = [list(batch) for batch in itertools.combinations(range(6), 3)]
exact = torch.cov(
    torch.stack([2 * gradients[batch].sum(0) for batch in batches]).T, correction=0
)
mean = sum(estimate_noise_variance(gradients[batch], 6) for batch in batches) / len(
    batches
)
assert_close(
    mean, exact, "the mean of the estimate over all minibatches of 3 of 6 examples"
)
### BEGIN HIDDEN TESTS
for total, size, dim in [(6, 2, 2), (6, 5, 2), (7, 3, 3)]:
    gradients = torch.randn(total, dim, generator=seeded(size)) + 1
    batches = [list(batch) for batch in itertools.combinations(range(total), size)]
    exact = torch.cov(
        torch.stack([total / size * gradients[batch].sum(0) for batch in batches]).T,
        correction=0,
    )
    mean = sum(
        estimate_noise_variance(gradients[batch], total) for batch in batches
    ) / len(batches)
    assert_close(
        mean,
        exact,
        f"the mean of the estimate over all minibatches of {size} of {total} examples",
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 4 The naive algorithm (10 points)
#
# Take Hamiltonian Monte Carlo, put the stochastic gradient in the place of the exact one, and leave out the decision.
# One step draws a fresh momentum $r \sim N(0, 1)$ in every coordinate and follows $L$ leapfrog steps.
# Both kinds of leapfrog are right: kick–drift–kick, where the two half kicks between neighbouring drifts **share one** stochastic gradient ($L + 1$ gradients in all), or drift–kick–drift ($L$ gradients).
# Every gradient has its own noise.
#
# See *The obvious thing overheats: naive stochastic-gradient HMC*, “The obvious algorithm”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "naive", "locked": false, "schema_version": 3, "solution": true, "task": false}
def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, generator):
    """Take one step of naive SGHMC.

    stochastic_gradient is a function of the position (chains, dim) and the generator;
    returns the new position (chains, dim).
    """
    ### BEGIN SOLUTION
    momentum = torch.randn(position.shape, generator=generator)
    momentum = momentum - step_size / 2 * stochastic_gradient(position, generator)
    for step in range(num_steps):
        position = position + step_size * momentum
        length = step_size if step < num_steps - 1 else step_size / 2
        momentum = momentum - length * stochastic_gradient(position, generator)
    return position
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "naive-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false}
def flight(position):
    return 0 * position


# Without a force a step is a flight over 0.5 r with r ~ N(0, 1).
generator = seeded(1)
moved, again = (
    naive_sghmc_step(noisy(flight, 0.0), torch.ones(2, 5_000), 0.1, 5, generator)
    for _ in range(2)
)
assert_shape(moved, (2, 5_000), "the new position of two chains")
z, z_again = 2 * (moved - 1), 2 * (again - 1)
assert abs(float((z * z_again).mean())) < 0.1, "every call should draw another momentum"
assert abs(float((z[0] * z[1]).mean())) < 0.1, (
    "every chain should have a momentum of its own"
)
assert_normal(moved - 1, 0.0, 0.25, "the flight")


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


def assert_law(curvature, step_size, num_steps, noise, seed):
    """Demand that 20,000 coordinates from θ = 2 have the law of either chain."""
    force = noisy(lambda position: curvature * position, noise)
    draws = naive_sghmc_step(
        force, torch.full((2, 10_000), 2.0), step_size, num_steps, seeded(seed)
    )
    laws = [
        naive_sghmc_chain(torch.tensor([[curvature]]), step_size, num_steps, noise),
        drift_first(curvature, step_size, num_steps, noise),
    ]
    complaints = []
    for law in laws:
        try:
            what = (
                f"the position after {num_steps} leapfrog steps of size {step_size} "
                f"from θ = 2, with V = {noise},"
            )
            assert_normal(
                draws,
                float(2 * law.transition[0, 0]),
                float(law.noise_covariance[0, 0]),
                what,
            )
        except AssertionError as complaint:
            complaints.append(complaint)
    assert len(complaints) < 2, (
        f"{complaints[0]}; and for drift-kick-drift: {complaints[1]}"
    )


### END HIDDEN TESTS
# POINTS 4: the trajectory, without noise
draws = naive_sghmc_step(
    noisy(lambda position: position, 0.0),
    torch.full((2, 2_000), 2.0),
    0.02,
    80,
    seeded(2),
)
assert_mean(
    draws.flatten(),
    2 * math.cos(1.6),
    "the position after a time 1.6 from θ = 2 in the bowl, by tiny steps",
    std=1.0,
)
### BEGIN HIDDEN TESTS
assert_law(1.0, 0.9, 3, 0.0, seed=3)
### END HIDDEN TESTS
# POINTS 6: the noise of the gradients
# Without a force, two steps of size 1 lead from 0 to 2r and the kicks of V = 4: their
# variance is 8 if you kick first, 10 if you drift first.
kicked = naive_sghmc_step(noisy(flight, 4.0), torch.zeros(2, 2_000), 1.0, 2, seeded(4))
assert_normal(
    kicked,
    0.0,
    min(12.0, 14.0, key=lambda variance: abs(float(kicked.var()) - variance)),
    "the position after two steps",
)
### BEGIN HIDDEN TESTS
assert_law(1.0, 0.4, 1, 50.0, seed=5)
assert_law(0.5, 0.3, 6, 20.0, seed=6)
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
# A colleague trains by SGD with momentum, $v \leftarrow (1 - \alpha)v - \eta\nabla\tilde U(\theta)$, $\theta \leftarrow \theta + v$, and knows the variance $V$ of her gradient noise (a number).
# Translate her $\eta$ and $\alpha$ into the step size $\varepsilon$, the friction $C$ and the noise estimate $\hat B = \tfrac12\varepsilon V$ of SGHMC with mass 1.
#
# See *Friction: stochastic-gradient HMC*, “As SGD with momentum”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "settings", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sghmc_settings(learning_rate, momentum_decay, noise_variance):
    """Compute ε, C and B̂ of SGHMC from η, α and V: three numbers -> three numbers."""
    ### BEGIN SOLUTION
    step_size = math.sqrt(learning_rate)
    return step_size, momentum_decay / step_size, 0.5 * step_size * noise_variance
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "settings-test", "locked": true, "points": 8, "schema_version": 3, "solution": false, "task": false}
# POINTS 2: the step size
for rate, exact in [(0.04, 0.2), (1.0, 1.0)]:
    assert_close(sghmc_settings(rate, 0.1, 3.0)[0], exact, f"ε for η = {rate}")
### BEGIN HIDDEN TESTS
for rate, decay, variance in [(4e-4, 0.03, 2.5), (0.25, 0.9, 0.3)]:
    assert_close(
        sghmc_settings(rate, decay, variance)[0],
        rate**0.5,
        f"ε for η = {rate}, α = {decay}, V = {variance}",
    )
### END HIDDEN TESTS
# POINTS 3: the friction
assert_close(sghmc_settings(0.04, 0.1, 3.0)[1], 0.5, "C for η = 0.04 and α = 0.1")
### BEGIN HIDDEN TESTS
for rate, decay, variance in [(4e-4, 0.03, 2.5), (0.25, 0.9, 0.3)]:
    assert_close(
        sghmc_settings(rate, decay, variance)[1],
        decay / rate**0.5,
        f"C for η = {rate}, α = {decay}, V = {variance}",
    )
### END HIDDEN TESTS
# POINTS 3: the noise estimate
assert_close(
    sghmc_settings(0.04, 0.1, 3.0)[2], 0.3, "the noise estimate for η = 0.04 and V = 3"
)
### BEGIN HIDDEN TESTS
for rate, decay, variance in [(4e-4, 0.03, 2.5), (0.25, 0.9, 0.3)]:
    assert_close(
        sghmc_settings(rate, decay, variance)[2],
        rate**0.5 * variance / 2,
        f"B̂ for η = {rate}, α = {decay}, V = {variance}",
    )
### END HIDDEN TESTS

# %% [markdown]
# ## 6 SGHMC (14 points)
#
# Write one step of SGHMC with mass 1,
#
# $$
# \theta \leftarrow \theta + \varepsilon r, \qquad r \leftarrow r - \varepsilon Cr - \varepsilon\nabla\tilde U(\theta) + N\bigl(0,\ 2(C - \hat B)\varepsilon\bigr),
# $$
#
# with the gradient at the position where the chain has just arrived. The other order is as right: first the momentum, with the gradient at the old position, then the position with the **new** momentum. Explicit Euler, where both updates read the old state, is not.
#
# See *Friction: stochastic-gradient HMC*, “The algorithm” and “What a step costs”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "sghmc", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sghmc_step(
    stochastic_gradient,
    position,
    momentum,
    step_size,
    friction,
    noise_estimate,
    generator,
):
    """Take one step of SGHMC.

    position and momentum are (chains, dim), and so are the new ones that it returns.
    """
    ### BEGIN SOLUTION
    position = position + step_size * momentum
    noise = math.sqrt(2 * (friction - noise_estimate) * step_size) * torch.randn(
        position.shape, generator=generator
    )
    momentum = (
        momentum
        - step_size * friction * momentum
        - step_size * stochastic_gradient(position, generator)
        + noise
    )
    return position, momentum
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "sghmc-test", "locked": true, "points": 14, "schema_version": 3, "solution": false, "task": false}
def quiet(position):
    return 0 * position


# Without a force, one step from θ = 0, r = 1 leaves friction and injected noise:
# whatever its size, it should be normal, and new.
generator = seeded(1)
zero, one = torch.zeros(2, 5_000), torch.ones(2, 5_000)
(moved, unforced), (_, again) = (
    sghmc_step(noisy(quiet, 0.0), *fresh(zero, one), 0.1, 2.0, 0.5, generator)
    for _ in range(2)
)
assert_shape(moved, (2, 5_000), "the new position of two chains")
assert_shape(unforced, (2, 5_000), "the new momentum of two chains")
z, z_again = ((r - r.mean()) / r.std() for r in (unforced, again))
assert abs(float((z**4).mean()) - 3) < 0.5, (
    "the injected noise should be normally distributed"
)
assert abs(float((z * z_again).mean())) < 0.1, "every call should draw other noise"
assert abs(float((z[0] * z[1]).mean())) < 0.1, (
    "every chain should have noise of its own"
)
# POINTS 5: friction, force and order, without noise
moved, slowed = sghmc_step(
    noisy(quiet, 0.0), torch.ones(1, 3), torch.ones(1, 3), 0.1, 2.0, 2.0, seeded(2)
)
assert_close(slowed, torch.full((1, 3), 0.8), "the momentum after friction alone")
states = torch.tensor([[1.0], [0.5], [-2.0]]), torch.tensor([[-2.0], [0.0], [3.0]])
moved, kicked = sghmc_step(
    noisy(lambda position: position, 0.0), *fresh(*states), 0.3, 2.0, 2.0, seeded(2)
)
position_first = (
    states[0] + 0.3 * states[1],
    0.4 * states[1] - 0.3 * (states[0] + 0.3 * states[1]),
)
momentum_first = (
    states[0] + 0.3 * (0.4 * states[1] - 0.3 * states[0]),
    0.4 * states[1] - 0.3 * states[0],
)
exact = position_first if torch.allclose(moved, position_first[0]) else momentum_first
assert_close(
    moved, exact[0], "the position after one step in the bowl, ε = 0.3 and C = 2"
)
assert_close(
    kicked, exact[1], "the momentum after one step in the bowl, ε = 0.3 and C = 2"
)
### BEGIN HIDDEN TESTS
for curvature, step_size, friction in [(0.5, 0.2, 1.0), (3.0, 0.1, 4.0)]:
    places, momenta = torch.randn(2, 4, 3, generator=seeded(3))
    moved, kicked = sghmc_step(
        noisy(lambda x: curvature * x**3, 0.0),
        *fresh(places, momenta),
        step_size,
        friction,
        friction,
        seeded(4),
    )
    first = places + step_size * momenta
    slowed = (1 - step_size * friction) * momenta
    if torch.allclose(moved, first):
        exact = first, slowed - step_size * curvature * first**3
    else:
        exact = (
            places + step_size * (slowed - step_size * curvature * places**3),
            slowed - step_size * curvature * places**3,
        )
    assert_close(
        torch.stack([moved, kicked]),
        torch.stack(exact),
        f"one step with ε = {step_size}, C = {friction} and U = {curvature}θ⁴/4",
    )
### END HIDDEN TESTS
# POINTS 9: noise of the right size
assert_normal(
    unforced,
    0.8,
    2 * (2.0 - 0.5) * 0.1,
    "the momentum after one step from θ = 0, r = 1 without a force",
)
### BEGIN HIDDEN TESTS
# From a fixed state the new momentum is normal for either order, with a known law.
for seed, (curvature, step_size, friction, noise, estimate) in enumerate(
    [(1.0, 0.3, 2.0, 4.0, 0.6), (0.5, 0.2, 1.0, 3.0, 0.0)]
):
    force = noisy(lambda position: curvature * position, noise)
    start = torch.full((2, 10_000), 1.0), torch.full((2, 10_000), -2.0)
    moved, kicked = sghmc_step(
        force, *fresh(*start), step_size, friction, estimate, seeded(seed)
    )
    place = (
        1.0 - 2.0 * step_size if float(moved.std()) < 1e-9 else 1.0
    )  # where the gradient was taken
    exact = -2.0 + 2.0 * step_size * friction - step_size * curvature * place
    spread = step_size**2 * noise + 2 * (friction - estimate) * step_size
    assert_normal(
        kicked,
        exact,
        spread,
        "the momentum after one step from (1, -2) with a noisy gradient",
    )
    z = (kicked - exact) / spread**0.5
    assert_mean(
        torch.stack([z[0] * z[1], z[0] * z[0].roll(1)], -1),
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
# In the bowl $U = \tfrac12\theta^2$ with $V = 4$ and $\varepsilon = 0.1$, run your naive algorithm for 200 steps on the position `torch.zeros(1, 2_000)`, 2,000 chains at once, for $L = 1, 5, 10, 20, 40$, and record the variance of $\theta$ over the last 100 steps.
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
            noisy(lambda position: position, 4.0), position, 0.1, num_steps, generator
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
# Run your SGHMC with $C = 0.6$ twice, with $\hat B = 0$ and with the right $\hat B$, on 2,000 chains at once: 400 steps of warm-up, then 400 steps whose positions you keep.

# %% nbgrader={"grade": false, "grade_id": "plot-double-well", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["experiment"]
draws = {}  # for each of the two estimates, a tensor with all the positions kept
well = noisy(lambda position: 4 * position**3 - 4 * position, 4.0)
### BEGIN SOLUTION
generator = torch.Generator().manual_seed(0)
for estimate in (0.0, 0.2):
    position, momentum, kept = torch.zeros(1, 2_000), torch.zeros(1, 2_000), []
    for step in range(800):
        position, momentum = sghmc_step(
            well, position, momentum, 0.1, 0.6, estimate, generator
        )
        if step >= 400:
            kept.append(position.flatten())
    draws[estimate] = torch.cat(kept)
### END SOLUTION
figure, axes = plt.subplots()
plot_density(axes, DoubleWell(), -2.5, 2.5)
for (estimate, positions), style in zip(draws.items(), ("--", "-"), strict=False):
    plot_histogram(
        axes,
        positions,
        torch.linspace(-2.5, 2.5, 61),
        ls=style,
        color=COLOURS["SGHMC"],
        label=rf"$\hat B = {estimate}$",
    )
axes.set(xlabel=r"$\theta$", ylabel="density")
axes.legend()
plt.show()

# %% [markdown]
# How does the histogram with $\hat B = 0$ differ from the true density, and which temperature (Question 4) describes it? Is the one with the right $\hat B$ exact? What would you see with $\hat B = 0$ and $C = 6$, and what would it cost?

# %% [markdown] nbgrader={"grade": true, "grade_id": "plot-double-well-answer", "locked": false, "points": 8, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# With $\hat B = 0$ the histogram is too flat: the wells are too shallow, the barrier between them and the tails too high, as if at the temperature $1 + B/C = 1 + 0.2/0.6 \approx 1.33$, since $B = \tfrac12 \cdot 0.1 \cdot 4 = 0.2$.
# With $\hat B = 0.2$ it lies on the true density up to the error of a step of 0.1, which is of the second order, and the Monte Carlo error; both are hardly visible.
# With $C = 6$ and $\hat B = 0$ the temperature would be 1.03: nearly right, but at the price of strong friction, so that a chain crosses the barrier less often and needs more steps for as many independent draws.
#
# **Rubric.** 3 points: the plot, right, with $\hat B = 0.2$. 2 points: too flat, temperature 1.33. 1 point: nearly exact, discretisation error. 2 points: $C = 6$ and its price.
# ### END SOLUTION
