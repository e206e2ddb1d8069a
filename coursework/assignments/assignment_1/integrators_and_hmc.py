# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Assignment 1: integrators and Hamiltonian Monte Carlo
#
# You build a sampler from its parts: a gradient, an integrator, a momentum, an energy, a decision.
#
# *Before you start*, read the chapters *Markov chains*, *Hamiltonian dynamics* and *Hamiltonian Monte Carlo* of the book *Stochastic-gradient MCMC, derived and run* (`README.md` says where it is). Each task names the sections that it rests on.
# *It takes* four to five hours: two and a half for the code, one and a half for the questions, the rest for the plots.
# *It is worth* 100 points: 60 for seven code tasks, graded by tests; 25 for four questions and 15 for two plots, marked by hand.
#
# *In the code tasks* you write everything yourself: `torch`, `math`, NumPy and SciPy are allowed. `sgmc` is not there when the code tasks are graded, and its functions raise an error; in the plots you may use what you like.
# The tasks are relatives of what the book prints, and not the same: a mass matrix that need not be diagonal, a step size for every chain, a temperature. Your functions may call each other.
#
# A code task's test cell stands below it. Its parts begin with `# POINTS` and are graded one by one; grading runs each of them with more tests. `make test A=assignment_1` tells which of them pass.
# Positions and momenta are tensors `(chains, dim)` in double precision, energies are `(chains,)`, and a mass is a tensor `(dim, dim)`, the whole symmetric matrix $M$.
# Your functions must work for any number of chains at once, also for one; how they do it is up to you. They may change their arguments in place.
# All randomness comes from the `torch.Generator` that a function is given.

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

from booklib.page.figures import COLOURS, TRUTH, use_style

torch.set_default_dtype(torch.float64)
use_style()


def bowl(position):
    """Give U(θ) = |θ|²/2."""
    return 0.5 * (position**2).sum(-1)


def spring(position):
    """Give the gradient of U(θ) = |θ|²/2 + θ₁⁴/4."""
    return position + (torch.arange(position.shape[-1]) == 0) * position**3


def parabola(first):
    """Give the curve c(θ₁) = (θ₁² - 4)/2."""
    return 0.5 * (first**2 - 4)


def parabola_slope(first):
    """Give its derivative, c′(θ₁) = θ₁."""
    return first


# %% [markdown]
# ## 1 A landscape (8 points)
#
# A *ridge* along a curve $c$ is the density of $\theta = (\theta_1, \theta_2)$ with $\theta_1 \sim N(0, v)$ and $\theta_2 \mid \theta_1 \sim N\bigl(c(\theta_1),\ 1\bigr)$.
# Up to a constant its potential is
#
# $$
# U(\theta) = \frac{\theta_1^2}{2v} + \frac12\bigl(\theta_2 - c(\theta_1)\bigr)^2 .
# $$
#
# Along a parabola it is called the *banana*. In general $c$ comes from a table, whose values are rounded, so that no differentiation of them gives $c'$, by machine or by differences; $c'$ comes from another table.
# Write the energy and its gradient, the latter by hand.
#
# See *Hamiltonian dynamics*, “Position, momentum, energy”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "banana", "locked": false, "schema_version": 3, "solution": true, "task": false}
def banana_energy(position, variance, curve):
    """Compute U: position (chains, 2) -> (chains,).

    curve is the function c, (chains,) -> (chains,).
    """
    ### BEGIN SOLUTION
    first, second = position[..., 0], position[..., 1]
    return first**2 / (2 * variance) + 0.5 * (second - curve(first)) ** 2
    ### END SOLUTION


def banana_gradient(position, variance, curve, slope):
    """Compute the gradient of U: position (chains, 2) -> (chains, 2).

    curve and slope are the functions c and c′, (chains,) -> (chains,).
    """
    ### BEGIN SOLUTION
    first, second = position[..., 0], position[..., 1]
    residual = second - curve(first)
    return torch.stack([first / variance - slope(first) * residual, residual], -1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "banana-test", "locked": true, "points": 8, "schema_version": 3, "solution": false, "task": false}
places = torch.tensor([[2.0, 0.0], [1.0, 1.0], [-3.0, 2.0]])


### BEGIN HIDDEN TESTS
def table(first):
    return torch.round(torch.sin(3 * first) - 2 * first, decimals=2)


def table_of_slopes(first):
    return torch.round(3 * torch.cos(3 * first) - 2, decimals=2)


### END HIDDEN TESTS
# POINTS 3: the energy
energies = banana_energy(places.clone(), 4.0, parabola)
assert_shape(energies, (3,), "the energies of three chains")
assert_close(
    energies, torch.tensor([0.5, 3.25, 1.25]), "U at (2, 0), (1, 1) and (-3, 2)"
)
### BEGIN HIDDEN TESTS
for variance, curve in [(9.0, table), (0.5, parabola)]:
    x, y = places.T
    exact = x * x / (2 * variance) + (y - curve(x)) ** 2 / 2
    found = banana_energy(places.clone(), variance, curve)
    assert_close(found, exact, f"U at three places along another curve, v = {variance}")
one = banana_energy(places[:1].clone(), 4.0, parabola)
assert_shape(one, (1,), "the energy of one chain")
### END HIDDEN TESTS
# POINTS 5: the gradient
slopes = banana_gradient(places.clone(), 4.0, parabola, parabola_slope)
assert_shape(slopes, (3, 2), "the gradients of three chains")
assert_close(
    slopes,
    torch.tensor([[0.5, 0.0], [-2.25, 2.5], [-2.25, -0.5]]),
    "the gradient at (2, 0), (1, 1) and (-3, 2)",
)
### BEGIN HIDDEN TESTS
for variance, curve, slope in [
    (9.0, table, table_of_slopes),
    (0.5, parabola, parabola_slope),
]:
    x, y = places.T
    residual = y - curve(x)
    exact = torch.stack([x / variance - slope(x) * residual, residual], -1)
    found = banana_gradient(places.clone(), variance, curve, slope)
    assert_close(found, exact, f"the gradient along another curve, v = {variance}")
one = banana_gradient(places[:1].clone(), 4.0, parabola, parabola_slope)
assert_shape(one, (1, 2), "the gradient of one chain")
### END HIDDEN TESTS

# %% [markdown]
# ## 2 Leapfrog (12 points)
#
# Write the leapfrog integrator with a mass matrix $M$ and a step size for every chain, kick–drift–kick or drift–kick–drift, as you like.
#
# See *Hamiltonian dynamics*, “Leapfrog”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "leapfrog", "locked": false, "schema_version": 3, "solution": true, "task": false}
def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    """Follow num_steps leapfrog steps.

    gradient is a function (chains, dim) -> (chains, dim); position and momentum are
    (chains, dim); step_size is (chains,); mass is (dim, dim).
    Returns the new position and the new momentum.
    """
    ### BEGIN SOLUTION
    step, inverse = step_size[:, None], torch.linalg.inv(mass)
    for _ in range(num_steps):
        momentum = momentum - step / 2 * gradient(position)
        position = position + step * momentum @ inverse
        momentum = momentum - step / 2 * gradient(position)
    return position, momentum
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "leapfrog-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
start = (
    torch.tensor([[1.0, -0.5, 0.3], [0.0, 2.0, -1.0]]),
    torch.tensor([[0.2, 0.4, -1.0], [-1.0, 0.5, 0.7]]),
)
mass = torch.tensor([[1.0, 0.5, 0.0], [0.5, 2.0, -0.2], [0.0, -0.2, 0.5]])
steps = torch.tensor([0.1, 0.2])


def with_shapes(state):
    for what, one in zip(("position", "momentum"), state, strict=True):
        assert_shape(one, (2, 3), f"the new {what} of two chains")
    return state


# POINTS 4: free flight, and there and back
free = with_shapes(leapfrog(torch.zeros_like, *fresh(*start, steps), 20, mass.clone()))
assert_close(
    free[0],
    start[0] + 20 * steps[:, None] * torch.linalg.solve(mass, start[1].T).T,
    "the position after free flights of duration 2 and 4",
)
there = with_shapes(leapfrog(spring, *fresh(*start, steps), 5, mass.clone()))
back = leapfrog(spring, there[0].clone(), -there[1], steps.clone(), 5, mass.clone())
assert_close(back[0], start[0], "the position, there and back")
assert_close(-back[1], start[1], "the momentum, there and back")
### BEGIN HIDDEN TESTS
# A force that does not depend on the position: both kinds of leapfrog are exact.
pull = torch.tensor([0.7, -1.0, 2.0])
fall = with_shapes(
    leapfrog(
        lambda position: pull.expand_as(position),
        *fresh(*start, steps),
        4,
        mass.clone(),
    )
)
time = 4 * steps[:, None]
exact = start[0] + torch.linalg.solve(mass, (time * start[1] - time**2 / 2 * pull).T).T
assert_close(fall[0], exact, "the position after a fall by a constant force")
assert_close(
    fall[1], start[1] - time * pull, "the momentum after a fall by a constant force"
)
### END HIDDEN TESTS
# POINTS 8: the path
one = leapfrog(
    lambda position: position,
    torch.tensor([[1.0], [1.0]]),
    torch.tensor([[0.0], [0.0]]),
    torch.tensor([0.5, 1.0]),
    1,
    torch.tensor([[2.0]]),
)
assert_close(
    one[0],
    torch.tensor([[0.9375], [0.75]]),
    "the position after one step of size 0.5, or 1, from θ = 1, r = 0 in the bowl, "
    "with mass 2",
)


### BEGIN HIDDEN TESTS
def drift(position, momentum, size, mass):
    return position + size * torch.linalg.solve(mass, momentum.T).T


def kick_first(gradient, position, momentum, steps, num_steps, mass):
    for _ in range(num_steps):
        momentum = momentum - steps / 2 * gradient(position)
        position = drift(position, momentum, steps, mass)
        momentum = momentum - steps / 2 * gradient(position)
    return position, momentum


def drift_first(gradient, position, momentum, steps, num_steps, mass):
    for _ in range(num_steps):
        position = drift(position, momentum, steps / 2, mass)
        momentum = momentum - steps * gradient(position)
        position = drift(position, momentum, steps / 2, mass)
    return position, momentum


def twist(position):
    return torch.sin(position) + position.roll(1, -1)


for gradient, num_steps in [(spring, 1), (twist, 7)]:
    found = torch.cat(
        with_shapes(leapfrog(gradient, *fresh(*start, steps), num_steps, mass.clone()))
    )
    either = [
        torch.cat(f(gradient, *start, steps[:, None], num_steps, mass))
        for f in (kick_first, drift_first)
    ]
    nearest = min(either, key=lambda exact: float((found - exact).abs().max()))
    assert_close(
        found, nearest, f"position and momentum after {num_steps} steps of each chain"
    )
### END HIDDEN TESTS

# %% [markdown]
# **Question 1 (7 points).** Show that one leapfrog step, of the kind you wrote, preserves volume, and that it is undone by flipping the momentum, stepping, and flipping again.
# Where does the proof that HMC leaves $\pi$ invariant need each of the two properties?
# Which of the two does symplectic Euler (kick, then drift) lack?

# %% [markdown] nbgrader={"grade": true, "grade_id": "leapfrog-question", "locked": false, "points": 7, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# A kick $K_h(\theta, r) = (\theta, r - h\nabla U(\theta))$ and a drift $D_h(\theta, r) = (\theta + hM^{-1}r, r)$ are shears: their Jacobians are triangular with ones on the diagonal, so each has determinant 1, and so has $\Psi = K_{\varepsilon/2}D_\varepsilon K_{\varepsilon/2}$.
# With the flip $F(\theta, r) = (\theta, -r)$ one has $FK_hF = K_{-h} = K_h^{-1}$ and $FD_hF = D_{-h} = D_h^{-1}$.
# Inserting $FF = I$ between the factors, $F\Psi F = K_{\varepsilon/2}^{-1}D_\varepsilon^{-1}K_{\varepsilon/2}^{-1} = \Psi^{-1}$, since the product is a palindrome.
#
# Detailed balance of the proposal $S = F\Psi^L$ needs $S \circ S = I$ (reversibility), so that the way back from $z' = S(z)$ is proposed with certainty, and $\lvert\det DS\rvert = 1$, so that the change of variables $w = S(z)$ brings no Jacobian into the acceptance probability.
# Symplectic Euler is a product of shears and keeps volume, but it is not a palindrome, so it is not reversible.
#
# **Rubric.** 2 points: each factor is a shear, determinant 1. 2 points: $FK_hF = K_h^{-1}$ and the same for the drift, and the palindrome. 2 points: where each is used. 1 point: symplectic Euler lacks reversibility.
# An answer for drift–kick–drift is as good. "Leapfrog is symplectic" without a proof earns 1 of the first 2 points.
# ### END SOLUTION

# %% [markdown]
# ## 3 What leapfrog conserves (8 points)
#
# In the bowl $U(\theta) = \tfrac12k\theta^2$ with mass $m$ your leapfrog is a linear map of $(\theta, r)$.
# Find a quadratic form that this map conserves **exactly**, for every $\varepsilon < 2\sqrt{m/k}$, and that tends to $H = \tfrac12k\theta^2 + \tfrac1{2m}r^2$ as $\varepsilon \to 0$.
#
# See *Hamiltonian dynamics*, “The shadow”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "shadow", "locked": false, "schema_version": 3, "solution": true, "task": false}
def shadow_energy(position, momentum, step_size, curvature, mass):
    """Compute the conserved energy in the bowl.

    position and momentum are (chains, 1); step_size, curvature k and mass m are
    numbers; returns (chains,).
    """
    ### BEGIN SOLUTION
    shrunk = 1 - step_size**2 * curvature / (4 * mass)
    return (0.5 * curvature * shrunk * position**2 + 0.5 / mass * momentum**2).sum(-1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "shadow-test", "locked": true, "points": 8, "schema_version": 3, "solution": false, "task": false}
states = torch.tensor([[3.0], [1.0]]), torch.tensor([[4.0], [-2.0]])
tiny = shadow_energy(*fresh(*states), 1e-6, 2.0, 4.0)
assert_shape(tiny, (2,), "the energy of two chains")
assert_close(
    tiny,
    torch.tensor([11.0, 1.5]),
    "the energy at (3, 4) and (1, -2) with a tiny step, k = 2 and m = 4",
)
# With k = m = 2 one step of size 1 takes (1, 0) to (1/2, -3/2) if you kick first, and
# to (1/2, -2) if you drift first.
along = shadow_energy(
    torch.tensor([[1.0], [0.5], [0.5]]),
    torch.tensor([[0.0], [-1.5], [-2.0]]),
    1.0,
    2.0,
    2.0,
)
assert_shape(along, (3,), "the energy of three chains")
assert float((along[1:] - along[0]).abs().min()) < 1e-9, (
    "with k = m = 2 a step of size 1 from (1, 0) should conserve the energy"
)


### BEGIN HIDDEN TESTS
# Up to a factor there is one conserved form for each kind of leapfrog, so the energy
# must be that one at several places at once, for every step size by a factor near one.
def factors(kick_first, frequency, curvature):
    """Give the energy over the conserved form, at places of which no two are alike.

    frequency is the step size times (k/m)^½.
    """
    position, momentum = torch.randn(2, 6, 1, generator=seeded(3))
    mass = 0.8
    shrunk = 1 - frequency**2 / 4
    form = (
        curvature * position**2 * (shrunk if kick_first else 1)
        + momentum**2 / mass * (1 if kick_first else shrunk)
    ).sum(-1) / 2
    step_size = frequency * math.sqrt(mass / curvature)
    found = shadow_energy(*fresh(position, momentum), step_size, curvature, mass)
    assert_shape(found, (6,), "the energy of six chains")
    return found / form


orders = [
    [
        factors(kick_first, frequency, curvature)
        for curvature in (3.0, 0.4)
        for frequency in (0.01, 0.1, 0.7, 1.5)
    ]
    for kick_first in (True, False)
]
spreads = [
    max(float((found.max() - found.min()) / found.abs().max()) for found in order)
    for order in orders
]
best = orders[spreads.index(min(spreads))]
assert min(spreads) < 1e-9, (
    "the energy is conserved neither by kick-drift-kick nor by drift-kick-drift"
)
for begin in (0, 4):
    assert abs(float(best[begin][0]) - 1) < 1e-3, (
        "the energy should tend to H with the step size"
    )
    assert abs(float(best[begin + 1][0]) - 1) < 0.05, (
        "the energy should tend to H with the step size"
    )
assert all(0.1 < float(found[0]) < 10 for found in best), (
    "the energy should be positive, and not degenerate, below the limit of stability"
)
### END HIDDEN TESTS

# %% [markdown]
# **Question 2 (6 points).** In the bowl with $k = m = 1$, by what factor does one step of *explicit* Euler, $\theta' = \theta + \varepsilon r$, $r' = r - \varepsilon\theta$, multiply $H$?
# Can a small enough step size make it fit for a sampler? For which $\varepsilon$ does your conserved form of leapfrog stop being an ellipse, and what happens there?

# %% [markdown] nbgrader={"grade": true, "grade_id": "euler-question", "locked": false, "points": 6, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# $\theta'^2 + r'^2 = (\theta + \varepsilon r)^2 + (r - \varepsilon\theta)^2 = (1 + \varepsilon^2)(\theta^2 + r^2)$: the factor is $1 + \varepsilon^2$, whatever the state.
# After a time $t$, in $t/\varepsilon$ steps, it is $(1 + \varepsilon^2)^{t/\varepsilon} \approx e^{\varepsilon t}$. For a fixed time it tends to one as $\varepsilon \to 0$, but for any $\varepsilon$ the energy grows exponentially with the time.
# Besides, explicit Euler multiplies volumes by $1 + \varepsilon^2$ and is not reversible, so even with a correction step of the usual form it would not leave the target invariant.
# The form $\tfrac12(1 - \varepsilon^2/4)\theta^2 + \tfrac12r^2$ is an ellipse for $\varepsilon < 2$, a pair of lines at $\varepsilon = 2$ and a hyperbola beyond: paths are no longer bounded, leapfrog is unstable.
#
# **Rubric.** 2 points: the factor, with its derivation. 2 points: the growth over a time, or the lack of reversibility and of volume preservation, as a reason that it is not fit (either will do, if argued). 2 points: $\varepsilon = 2$ and unbounded paths.
# ### END SOLUTION

# %% [markdown]
# ## 4 How large may a step be? (6 points)
#
# For a Gaussian target $N(0, \Sigma)$ and a mass matrix $M$, leapfrog is stable for all step sizes below a limit. Compute it.
#
# See *Hamiltonian dynamics*, “Leapfrog”; *Tuning HMC and NUTS*, “How NUTS learns its step and its mass”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "stability", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stability_limit(covariance, mass):
    """Compute the largest stable step size, a number.

    covariance and mass are (dim, dim).
    """
    ### BEGIN SOLUTION
    root = torch.linalg.cholesky(mass)
    return float(2 * torch.linalg.eigvalsh(root.T @ covariance @ root).min().sqrt())
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "stability-test", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
# POINTS 2: without correlations
assert_close(
    stability_limit(torch.eye(3), torch.eye(3)),
    2.0,
    "the limit for a standard normal target with mass 1",
)
assert_close(
    stability_limit(torch.diag(torch.tensor([0.25, 9.0])), torch.eye(2)),
    1.0,
    "the limit for variances 0.25 and 9 with mass 1",
)
### BEGIN HIDDEN TESTS
assert_close(
    stability_limit(torch.eye(2), torch.diag(torch.tensor([4.0, 9.0]))),
    4.0,
    "the limit for masses 4 and 9",
)
variances, masses = torch.tensor([0.25, 9.0]), torch.tensor([100.0, 0.25])
assert_close(
    stability_limit(torch.diag(variances), torch.diag(masses)),
    3.0,
    "the limit for two variances and masses",
)
### END HIDDEN TESTS
# POINTS 4: with correlations
assert_close(
    stability_limit(torch.tensor([[2.5, 1.5], [1.5, 2.5]]), torch.eye(2)),
    2.0,
    "the limit for a target with eigenvalues 4 and 1",
)
### BEGIN HIDDEN TESTS
for covariance, mass in [
    (torch.tensor([[2.0, 1.2], [1.2, 1.0]]), torch.tensor([[0.5, 0.3], [0.3, 3.0]])),
    (
        torch.tensor([[1.0, 0.6, 0.3], [0.6, 2.0, -0.4], [0.3, -0.4, 0.7]]),
        torch.tensor([[2.0, -0.3, 0.1], [-0.3, 0.3, 0.0], [0.1, 0.0, 1.0]]),
    ),
]:
    curvatures = torch.linalg.eigvals(torch.linalg.inv(covariance @ mass)).real
    assert_close(
        stability_limit(covariance.clone(), mass.clone()),
        float(2 / curvatures.max() ** 0.5),
        "the limit for a correlated target and a mass matrix",
    )
### END HIDDEN TESTS

# %% [markdown]
# **Question 3 (5 points).** Which mass makes HMC on $N(0, \Sigma)$ behave as on a standard normal, and why?
# What does the ratio of the largest to the smallest variance of the target cost, in leapfrog steps, where $M = I$?

# %% [markdown] nbgrader={"grade": true, "grade_id": "mass-question", "locked": false, "points": 5, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# $M = \Sigma^{-1}$. With $x = M^{1/2}\theta$ and $y = M^{-1/2}r$ leapfrog with mass $M$ is leapfrog with mass $I$ in $(x, y)$, and $r \sim N(0, M)$ means $y \sim N(0, I)$. The potential $\tfrac12\theta^\top\Sigma^{-1}\theta$ becomes $\tfrac12x^\top M^{-1/2}\Sigma^{-1}M^{-1/2}x = \tfrac12x^\top x$.
# With $M = I$ the step must stay below $2\sigma_{\min}$, while a trajectory must last about $\tfrac\pi2\sigma_{\max}$ to forget its start in the widest direction: of the order of $\sigma_{\max}/\sigma_{\min}$ steps, the square root of the ratio of variances (the condition number).
#
# **Rubric.** 1 point: $M = \Sigma^{-1}$. 2 points: the change of coordinates, positions and momenta. 2 points: the step is bound by $\sigma_{\min}$ and the time by $\sigma_{\max}$, so the square root of the ratio; 1 of these if the ratio itself is named.
# ### END SOLUTION

# %% [markdown]
# ## 5 A momentum (6 points)
#
# Draw $r \sim N(0, M)$, independently for every chain. In this book the second argument of $N$ is always a variance; here it is a matrix.
#
# See *Hamiltonian Monte Carlo*, “Resample, roll, accept”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "momentum", "locked": false, "schema_version": 3, "solution": true, "task": false}
def draw_momentum(position, mass, generator):
    """Draw a momentum for every chain.

    position is (chains, dim); mass is (dim, dim); returns (chains, dim).
    """
    ### BEGIN SOLUTION
    normal = torch.randn(position.shape, generator=generator, dtype=position.dtype)
    return normal @ torch.linalg.cholesky(mass).T
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "momentum-test", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
mass = torch.tensor([[2.0, 1.2], [1.2, 9.0]])
generator = seeded(1)
first, second = (
    draw_momentum(torch.zeros(5_000, 2), mass.clone(), generator) for _ in range(2)
)
for drawn in (first, second):
    assert_shape(drawn, (5_000, 2), "the momentum of 5,000 chains")
assert not torch.equal(first, second), "every call should draw another momentum"


### BEGIN HIDDEN TESTS
def standard(momenta, mass):
    return torch.linalg.solve(torch.linalg.cholesky(mass), momenta.T).T


### END HIDDEN TESTS
# POINTS 5: independent draws from N(0, M)
assert_normal(first[:, 0], (5_000,), 0.0, 2.0, "the first coordinate, M₁₁ = 2")
### BEGIN HIDDEN TESTS
# Each statistical check has a false-alarm rate of 5e-6; products of independent
# standard normal numbers have mean 0, variance 1.
z, again = standard(first, mass), standard(second, mass)
assert_normal(
    z, (5_000, 2), 0.0, 1.0, "the momentum, multiplied by the inverse of M's root,"
)
products = torch.stack(
    [
        z[:, 0] * z[:, 1],
        z[:, 0] * z[:, 0].roll(1),
        z[:, 1] * z[:, 1].roll(1),
        z[:, 0] * again[:, 0],
        z[:, 1] * again[:, 1],
    ],
    -1,
)
assert_mean(
    products,
    (5_000, 5),
    0.0,
    "the correlation of momenta of different chains, coordinates and calls",
    std=1.0,
)
### END HIDDEN TESTS
# POINTS 1: all randomness comes from the generator that is given
same = [
    draw_momentum(torch.zeros(5_000, 2), mass.clone(), seeded(seed))
    for seed in (2, 2, 3)
]
assert torch.equal(same[0], same[1]), (
    "generators in the same state should lead to the same momentum"
)
assert not torch.equal(same[0], same[2]), (
    "generators in different states should lead to different momenta"
)
### BEGIN HIDDEN TESTS
both = torch.cat([standard(one, mass) for one in (same[0], same[2])]).sum(-1)
assert_normal(both, (10_000,), 0.0, 2.0, "the sum of two standard coordinates")
### END HIDDEN TESTS

# %% [markdown]
# ## 6 The total energy (6 points)
#
# Compute $H(\theta, r) = U(\theta) + \tfrac12r^\top M^{-1}r$ of every chain.
#
# See *Hamiltonian dynamics*, “Position, momentum, energy”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "hamiltonian", "locked": false, "schema_version": 3, "solution": true, "task": false}
def hamiltonian(energy, position, momentum, mass):
    """Compute H.

    energy is a function (chains, dim) -> (chains,); position and momentum are
    (chains, dim); mass is (dim, dim); returns (chains,).
    """
    ### BEGIN SOLUTION
    return energy(position) + 0.5 * (momentum @ torch.linalg.inv(mass) * momentum).sum(
        -1
    )
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "hamiltonian-test", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
arguments = (
    torch.tensor([[3.0, 1.0], [0.0, 2.0]]),
    torch.tensor([[3.0, -3.0], [1.0, 0.0]]),
    torch.tensor([[2.0, 1.0], [1.0, 2.0]]),
)
total = hamiltonian(bowl, *fresh(*arguments))
assert_shape(total, (2,), "H of two chains")
assert_close(
    total,
    torch.tensor([14.0, 2 + 1 / 3]),
    "H of two states in the bowl with a matrix M",
)
### BEGIN HIDDEN TESTS
total = hamiltonian(lambda position: 7.0 - (position**4).sum(-1), *fresh(*arguments))
assert_close(
    total, torch.tensor([7.0 - 82.0 + 9.0, 7.0 - 16.0 + 1 / 3]), "H with another energy"
)
assert_shape(
    hamiltonian(bowl, *fresh(arguments[0][:1], arguments[1][:1], arguments[2])),
    (1,),
    "H of one chain",
)
total = hamiltonian(
    bowl, torch.ones(5, 1), torch.arange(5.0)[:, None], torch.tensor([[0.5]])
)
assert_close(total, 0.5 + torch.arange(5.0) ** 2, "H of five states with mass 0.5")
### END HIDDEN TESTS

# %% [markdown]
# ## 7 Hamiltonian Monte Carlo (14 points)
#
# Put the parts together, for a target $e^{-U/T}$ at a *temperature* $T$: draw a momentum $r \sim N(0, TM)$, follow a trajectory of `num_steps` leapfrog steps, accept its end with probability $\min(1, e^{-\Delta H/T})$ or reject it, each chain by a decision of its own.
# (Grading first replaces your `leapfrog`, `draw_momentum` and `hamiltonian` by right ones, so a mistake there costs no points here. The visible tests below use
# your own: while one of those is wrong, they may show ✗ for an `hmc_step` that is right.)
#
# See *Hamiltonian Monte Carlo*, “What the rejections correct”.


# %% forbidden=["sgmc"] nbgrader={"grade": false, "grade_id": "hmc", "locked": false, "schema_version": 3, "solution": true, "task": false}
def hmc_step(
    energy, gradient, position, step_size, num_steps, mass, temperature, generator
):
    """Take one step of HMC.

    position is (chains, dim); step_size is (chains,); mass is (dim, dim); temperature
    is a number. Returns the new position (chains, dim), and which chains accepted,
    (chains,) bool.
    """
    ### BEGIN SOLUTION
    start = math.sqrt(temperature) * draw_momentum(position, mass, generator)
    proposal, end = leapfrog(
        gradient, position.clone(), start.clone(), step_size, num_steps, mass
    )
    change = hamiltonian(energy, proposal, end, mass) - hamiltonian(
        energy, position, start, mass
    )
    uniform = torch.rand(change.shape, generator=generator)
    accepted = uniform < torch.exp(-change / temperature)
    return torch.where(accepted[:, None], proposal, position), accepted
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "hmc-test", "locked": true, "points": 14, "schema_version": 3, "solution": false, "task": false}
### BEGIN HIDDEN TESTS
def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    step, inverse = step_size[:, None], torch.linalg.inv(mass)
    for _ in range(num_steps):
        momentum = momentum - step / 2 * gradient(position)
        position = position + step * momentum @ inverse
        momentum = momentum - step / 2 * gradient(position)
    return position, momentum


def draw_momentum(position, mass, generator):
    normal = torch.randn(position.shape, generator=generator)
    return normal @ torch.linalg.cholesky(mass).T


def hamiltonian(energy, position, momentum, mass):
    kinetic = (momentum @ torch.linalg.inv(mass) * momentum).sum(-1) / 2
    return energy(position) + kinetic


### END HIDDEN TESTS
def still(position):
    return torch.zeros_like(position)


def flat(position):
    return torch.zeros(len(position))


def hmc(energy, gradient, position, step_size, num_steps, mass, temperature, generator):
    """Take a step with one step size for all chains; its result has right shapes."""
    chains = len(position)
    steps = torch.full((chains,), step_size)
    settings = num_steps, mass.clone(), temperature, generator
    moved, accepted = hmc_step(energy, gradient, position.clone(), steps, *settings)
    assert_shape(moved, position.shape, f"the new position of {chains} chains")
    assert_shape(accepted, (chains,), f"which of {chains} chains accepted", torch.bool)
    return moved, accepted


# Without a force everything is accepted, and a trajectory of 5 steps of size 0.1 with
# mass 4 at T = 2 is a flight over 0.5 r/4, r ~ N(0, 8).
generator, unit = seeded(3), torch.eye(1)
moved, accepted = hmc(
    flat, still, torch.ones(4_000, 1), 0.1, 5, 4 * unit, 2.0, generator
)
again, _ = hmc(flat, still, torch.ones(4_000, 1), 0.1, 5, 4 * unit, 2.0, generator)
assert bool(accepted.all()), (
    "a flight that does not change the energy should be accepted"
)
assert not torch.equal(moved, again), "every call should draw another momentum"
assert_normal(moved - 1, (4_000, 1), 0.0, 0.5**2 * 8 / 16, "the flight")
# POINTS 4: a trajectory in a bowl
near, accepted = hmc(
    bowl,
    lambda position: position,
    torch.ones(3, 2),
    0.01,
    5,
    torch.eye(2),
    1.0,
    seeded(3),
)
assert bool(accepted.all()), (
    "with a tiny step size nearly every proposal is accepted, and these should be"
)
assert 0 < float((near - 1).abs().max()) < 0.5, (
    "the new position should be another one, but not far away"
)
### BEGIN HIDDEN TESTS
# Two thousand chains from (1/2, -1), half of them with another step size, with an
# energy that rewards every proposal: the end is normal, with a known law for either
# leapfrog.
num_steps, temperature = 3, 0.6
curvature = torch.tensor([[1.3, 0.4], [0.4, 0.7]])
mass = torch.tensor([[0.5, -0.2], [-0.2, 1.5]])
places, steps = torch.tensor([0.5, -1.0]), torch.tensor([0.8, 0.5]).repeat(1_000)
moved, accepted = hmc_step(
    lambda position: (
        (position @ curvature * position).sum(-1) / 2
        - 500.0 * (position != places).any(-1)
    ),
    lambda position: position @ curvature,
    places.repeat(2_000, 1),
    steps.clone(),
    num_steps,
    mass.clone(),
    temperature,
    seeded(31),
)
assert_shape(moved, (2_000, 2), "the new position of 2,000 chains")
assert_shape(accepted, (2_000,), "which of 2,000 chains accepted", torch.bool)
assert bool(accepted.all()), "a proposal of much lower energy should be accepted"


def kick(size):
    return torch.cat(
        [torch.eye(4)[:2], torch.cat([-size * curvature, torch.eye(2)], 1)]
    )


def drift(size):
    return torch.cat(
        [torch.cat([torch.eye(2), size * torch.linalg.inv(mass)], 1), torch.eye(4)[2:]]
    )


complaints = []
for outer, inner in ((kick, drift), (drift, kick)):
    standard = torch.empty(2_000, 2)
    for size in (0.8, 0.5):
        path = torch.linalg.matrix_power(
            outer(size / 2) @ inner(size) @ outer(size / 2), num_steps
        )
        root = torch.linalg.cholesky(temperature * path[:2, 2:] @ mass @ path[:2, 2:].T)
        rest = moved[steps == size] - path[:2, :2] @ places
        standard[steps == size] = torch.linalg.solve(root, rest.T).T
    try:
        assert_normal(
            standard,
            (2_000, 2),
            0.0,
            1.0,
            "the end of a trajectory from (1/2, -1) in a bowl, made standard,",
        )
    except AssertionError as complaint:
        complaints.append(complaint)
assert len(complaints) < 2, (
    f"{complaints[0]}; and for drift-kick-drift: {complaints[1]}"
)
### END HIDDEN TESTS
# POINTS 5: the decision, for each chain of its own
# Every chain starts at (0, Δ), flies off along the first coordinate, the second being
# too heavy, and pays Δ for it, at T = 2.
rises = torch.tensor([-2.0, 60.0, 0.5, 2.0, 5.0])
starts = torch.stack([torch.zeros(5), rises], -1).repeat(2_000, 1)
heavy = torch.diag(torch.tensor([1.0, 1e24]))
generator, decisions = seeded(4), []


def price(position):
    return torch.where(position[:, 0] == 0, 0.0, position[:, 1].round(decimals=3))


for _ in range(2):
    moved, accepted = hmc(price, still, starts, 0.5, 2, heavy, 2.0, generator)
    assert torch.equal(moved[:, 0] != 0, accepted), (
        "the chains that accept, and no others, should be at another position"
    )
    decisions.append(accepted.reshape(2_000, 5))
assert not bool((decisions[0] == decisions[0][0]).all()), (
    "chains with the same energies should not all decide alike: draw a number for each"
)
assert bool(decisions[0][:, 0].all()), "a proposal of lower energy should be accepted"
assert not bool(decisions[0][:, 1].any()), (
    "a proposal whose energy is higher by 60 should be rejected at T = 2"
)
### BEGIN HIDDEN TESTS
# Three statistical checks. A constant force g changes r to r - a, a = Lεg: with mass 1
# the kinetic energy rises by N(a²/2, Ta²).
p = torch.exp(-rises[2:] / 2)
assert_share(
    decisions[0][:, 2:],
    (2_000, 3),
    p,
    "the share of accepted proposals at T = 2, with energies higher by 0.5, 2 and 5",
)
assert_share(
    decisions[0][:, 2:] == decisions[1][:, 2:],
    (2_000, 3),
    p**2 + (1 - p) ** 2,
    "how often two steps decide alike",
)
_, accepted = hmc(
    flat,
    lambda position: torch.full_like(position, 1.2),
    torch.zeros(4_000, 1),
    0.5,
    2,
    unit,
    2.0,
    generator,
)
assert_share(
    accepted,
    (4_000,),
    math.erfc(0.3),
    "the share of accepted proposals where only the kinetic energy changes",
)
### END HIDDEN TESTS
# POINTS 5: a step leaves the target where it is
wide = 2 * torch.randn(8_000, 1, generator=seeded(5))
moved, accepted = hmc(
    lambda position: bowl(position) / 2,
    lambda position: position / 2,
    wide,
    0.5,
    3,
    unit,
    2.0,
    seeded(6),
)
assert_normal(
    moved, (8_000, 1), 0.0, 4.0, "a chain of e^(-U/T) that was at N(0, 4), after a step"
)
### BEGIN HIDDEN TESTS
# Three statistical checks. The target is N(0, 4), as U = θ²/4 at T = 2, the mass one.
# In normalised coordinates a step has the size h = 1.6. A chain that is there accepts
# with probability (4/π) arctan(1/s), where s is the larger singular value of the
# trajectory's matrix (Question 4).
h, num_steps = 1.6, 2
step = torch.tensor([[1 - h**2 / 2, h], [-h * (1 - h**2 / 4), 1 - h**2 / 2]])
stretch = float(torch.linalg.svdvals(torch.linalg.matrix_power(step, num_steps))[0])
generator, moved = seeded(7), wide
for _ in range(3):
    moved, accepted = hmc(
        lambda position: bowl(position) / 2,
        lambda position: position / 2,
        moved,
        h * math.sqrt(2.0),
        num_steps,
        unit,
        2.0,
        generator,
    )
assert_normal(
    moved, (8_000, 1), 0.0, 4.0, "a chain that was at N(0, 4), after three long steps"
)
assert_share(
    accepted,
    (8_000,),
    4 / math.pi * math.atan(1 / stretch),
    "the share of accepted proposals",
)
# Thirty short steps follow the circle: what the momentum adds is normal, of variance
# one, and independent of the start. These averages vary by 0.016 at most.
turned, _ = hmc(
    lambda position: bowl(position) / 2,
    lambda position: position / 2,
    wide,
    0.05 * math.sqrt(2.0),
    30,
    unit,
    2.0,
    seeded(8),
)
rest = (turned - math.cos(1.5) * wide) / (2 * math.sin(1.5))
averages = torch.stack([rest.mean(), (rest**2).mean() - 1, (rest * wide).mean() / 2])
assert float(averages.abs().max()) < 0.1, (
    "thirty short steps should lead nearly a quarter of the way around the circle"
)
### END HIDDEN TESTS

# %% [markdown]
# **Question 4 (7 points).** Let $\Delta = H(\theta', r') - H(\theta, r)$ be the energy error of a trajectory that starts in $\pi(\theta, r)$, with a continuous distribution.
# Show that the mean acceptance probability is $E[\min(1, e^{-\Delta})] = 2\,P(\Delta < 0)$.
# For the one-dimensional standard normal with mass 1 a trajectory is a matrix with determinant 1; let $s \ge 1$ be its larger singular value.
# Show that the mean acceptance probability is $\tfrac4\pi\arctan\tfrac1s$.

# %% [markdown] nbgrader={"grade": true, "grade_id": "acceptance-question", "locked": false, "points": 7, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Let $S$ be the trajectory followed by the flip: $S \circ S = I$, $\lvert\det DS\rvert = 1$, and $\Delta(Sz) = -\Delta(z)$, since $H$ is even in $r$.
# Then with $w = Sz$
#
# $$
# E\bigl[e^{-\Delta}\mathbf 1_{\Delta > 0}\bigr] = \int \pi(z)\,\frac{\pi(Sz)}{\pi(z)}\,\mathbf 1_{\Delta(z) > 0}\,dz = \int \pi(w)\,\mathbf 1_{\Delta(w) < 0}\,dw = P(\Delta < 0),
# $$
#
# and $E[\min(1, e^{-\Delta})] = P(\Delta < 0) + E[e^{-\Delta}\mathbf 1_{\Delta > 0}] = 2P(\Delta < 0)$.
#
# For the standard normal $z \sim N(0, I)$ in two dimensions and $\Delta = \tfrac12\lvert Fz\rvert^2 - \tfrac12\lvert z\rvert^2$.
# With the singular value decomposition $F = Q\operatorname{diag}(s, 1/s)P^\top$ and $x = P^\top z \sim N(0, I)$: $2\Delta = (s^2 - 1)x_1^2 - (1 - s^{-2})x_2^2$, which is negative where $x_1^2/x_2^2 < (1 - s^{-2})/(s^2 - 1) = s^{-2}$.
# The direction of $x$ is uniform, so this has probability $\tfrac2\pi\arctan\tfrac1s$. Twice that is the claim.
#
# **Rubric.** 1 point: $\Delta(Sz) = -\Delta(z)$. 2 points: the change of variables with the Jacobian 1. 1 point: the two parts added. 1 point: $\Delta$ as a quadratic form with the singular values. 1 point: $s^{-2}$. 1 point: the angle.
# ### END SOLUTION

# %% [markdown]
# ## 8 Plot: the energy along a trajectory (7 points)
#
# Follow one trajectory of duration 20 in the banana (the ridge along `parabola` with $v = 4$), from $\theta = (3, 2.5)$, $r = (1, 1)$ with mass 1, by leapfrog with the step sizes 0.05, 0.2 and 0.5.
# Plot the energy error $H - H_0$ against time, one line for each; the axis is linear within $\pm0.01$ and logarithmic beyond. Then say below what you see.

# %% nbgrader={"grade": false, "grade_id": "plot-energy", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["experiment"]
figure, axes = plt.subplots()


### BEGIN SOLUTION
def banana(position):
    return banana_energy(position, 4.0, parabola)


def downhill(position):
    return banana_gradient(position, 4.0, parabola, parabola_slope)


unit = torch.eye(2)
for step_size in (0.05, 0.2, 0.5):
    position, momentum = torch.tensor([[3.0, 2.5]]), torch.tensor([[1.0, 1.0]])
    first = float(hamiltonian(banana, position, momentum, unit))
    errors = [0.0]
    for _ in range(round(20 / step_size)):
        position, momentum = leapfrog(
            downhill, position, momentum, torch.tensor([step_size]), 1, unit
        )
        errors.append(float(hamiltonian(banana, position, momentum, unit)) - first)
    axes.plot(
        step_size * torch.arange(len(errors)),
        errors,
        label=rf"$\varepsilon = {step_size}$",
    )
### END SOLUTION
axes.set_yscale("symlog", linthresh=0.01)
axes.set(xlabel="time", ylabel=r"energy error $H - H_0$", ylim=(-100, 100))
axes.legend()
plt.show()

# %% [markdown]
# By how much does the largest error fall from 0.2 to 0.05, and what does the order of leapfrog let you expect? Does the error of the two smaller steps grow with time?
# What happens with the largest step, and where in the banana does it begin? What would HMC do with such a trajectory?

# %% [markdown] nbgrader={"grade": true, "grade_id": "plot-energy-answer", "locked": false, "points": 7, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# The error of the two smaller steps oscillates about zero, largest where the path turns in the steep bends of the banana, and does not grow: leapfrog conserves a nearby energy for very long times.
# Leapfrog is of order two, so a step four times smaller should have an error about sixteen times smaller: read off the plot, 0.04 against 0.002.
# With the largest step the error is of another kind: the path leaves the banana, and its energy grows without bound. Where $\lvert\theta_1\rvert$ is large the curvature is about $c'(\theta_1)^2 = \theta_1^2$, beyond the stability limit $4/\varepsilon^2 = 16$ from $\lvert\theta_1\rvert = 4$ on.
# HMC accepts the end of a trajectory with probability $\min(1, e^{-\Delta H})$: where $\Delta H$ is large it rejects, and the work is lost.
#
# **Rubric.** 2 points: the plot, right and labelled. 2 points: order two, sixteen, compared with a number read off. 1 point: oscillates and does not grow. 2 points: the large step is unstable where the curvature is large, and HMC rejects it.
# ### END SOLUTION

# %% [markdown]
# ## 9 Plot: tuning the step size (8 points)
#
# Sample the standard normal in 50 dimensions by HMC with mass 1 and trajectories of duration about 1.5: for each step size take `num_steps = max(1, round(1.5 / step_size))`.
# For ten step sizes between 0.1 and 1.9 run a chain of 500 steps from an exact draw, and estimate two things: the acceptance rate, and the mean squared jump $\lvert\theta_{t+1} - \theta_t\rvert^2$ (zero where rejected) per leapfrog step.

# %% nbgrader={"grade": false, "grade_id": "plot-tuning", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["experiment"]
step_sizes = torch.linspace(0.1, 1.9, 10).tolist()
rates, jumps = [], []  # one number for each step size
### BEGIN SOLUTION
generator = torch.Generator().manual_seed(0)
for step_size in step_sizes:
    num_steps = max(1, round(1.5 / step_size))
    position = torch.randn(1, 50, generator=generator)
    rate = jump = 0.0
    for _ in range(500):
        new, accepted = hmc_step(
            bowl,
            lambda position: position,
            position,
            torch.tensor([step_size]),
            num_steps,
            torch.eye(50),
            1.0,
            generator,
        )
        rate += float(accepted) / 500
        jump += float(((new - position) ** 2).sum()) / 500
        position = new
    rates.append(rate)
    jumps.append(jump / num_steps)
### END SOLUTION
figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.0))
left.plot(step_sizes, rates, "o-", color=COLOURS["HMC"])
left.set(xlabel=r"step size $\varepsilon$", ylabel="acceptance rate", ylim=(0, 1.05))
right.plot(rates, jumps, "o-", color=COLOURS["HMC"])
right.axvline(0.65, color=TRUTH, ls="--")
right.set(xlabel="acceptance rate", ylabel="squared jump per leapfrog step")
plt.show()

# %% [markdown]
# Where is the squared jump per leapfrog step largest? Why not at the smallest step size, and why not at the largest? The dashed line is the rate of 0.65 that theory recommends for many dimensions: how near do you come to it, and what, besides chance, may set them apart?

# %% [markdown] nbgrader={"grade": true, "grade_id": "plot-tuning-answer", "locked": false, "points": 8, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# The best step size is neither small nor large. With small steps nearly everything is accepted, but a trajectory of the same duration takes many steps, and each costs a gradient. With large steps the energy error, which is a sum over 50 coordinates, makes rejections frequent, and a rejected trajectory is wasted.
# The curve is flat about its maximum: anything between acceptance rates of about 0.4 and 0.85 does nearly as well.
# The theory's 0.65 is a limit for many independent coordinates, a duration fixed as the step size varies, and a cost of one gradient a step; here there are 50 coordinates, the number of steps is rounded, so that the duration jumps, and a stability limit at $\varepsilon = 2$ is near.
#
# **Rubric.** 3 points: the plot, right. 2 points: both ends explained, cost of a step and rejections. 1 point: flat maximum, read off. 2 points: a reason besides chance: rounding of the number of steps, finite dimension, a target other than the theory's.
# ### END SOLUTION
