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
# # Assignment 1: integrators and Hamiltonian Monte Carlo
#
# You build a sampler from its parts: a gradient, an integrator, a momentum, an energy, a decision.
#
# *Before you start*, read the chapters *Markov chains*, *Hamiltonian dynamics* and *Hamiltonian Monte Carlo*.
# *It takes* about three hours.
# *It is worth* 100 points: 60 for seven code tasks, graded by tests; 25 for four questions and 15 for two plots, marked by hand.
#
# A code task's test cell stands below it. Grading runs it with more tests; the points are given if all of them pass.
# Positions and momenta are tensors `(chains, dim)` in double precision, energies are `(chains,)`, and a mass is a tensor `(dim,)`, the diagonal of $M$.
# The tests call your functions with one chain, `(1, dim)`, and with tensors that you may change in place.
# All randomness comes from the `torch.Generator` that a function is given.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch
from checks import assert_close, assert_mean, assert_shape, assert_variance, fresh, seeded

from sgmc.figures import COLOURS, TRUTH, use_style

torch.set_default_dtype(torch.float64)
use_style()


def bowl(position):
    """Give U(θ) = |θ|²/2."""
    return 0.5 * (position**2).sum(-1)


def spring(position):
    """Give the gradient of U(θ) = |θ|²/2 + θ₁⁴/4."""
    return position + torch.eye(position.shape[-1])[0] * position**3


# %% [markdown]
# ## 1 A landscape (8 points)
#
# The *banana* is the density of $\theta = (\theta_1, \theta_2)$ with $\theta_1 \sim N(0, v)$ and $\theta_2 \mid \theta_1 \sim N\bigl(b\,(\theta_1^2 - v),\ 1\bigr)$.
# Up to a constant its potential is
#
# $$
# U(\theta) = \frac{\theta_1^2}{2v} + \frac12\bigl(\theta_2 - b\,(\theta_1^2 - v)\bigr)^2 .
# $$
#
# Write its energy and its gradient, the latter by hand, without automatic differentiation.


# %% nbgrader={"grade": false, "grade_id": "banana", "locked": false, "schema_version": 3, "solution": true, "task": false}
def banana_energy(position, variance=4.0, bend=0.5):
    """Compute U: position (chains, 2) -> (chains,)."""
    ### BEGIN SOLUTION
    first, second = position[..., 0], position[..., 1]
    return first**2 / (2 * variance) + 0.5 * (second - bend * (first**2 - variance)) ** 2
    ### END SOLUTION


def banana_gradient(position, variance=4.0, bend=0.5):
    """Compute the gradient of U: position (chains, 2) -> (chains, 2)."""
    ### BEGIN SOLUTION
    first, second = position[..., 0], position[..., 1]
    residual = second - bend * (first**2 - variance)
    return torch.stack([first / variance - 2 * bend * first * residual, residual], -1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "banana-test", "locked": true, "points": 8, "schema_version": 3, "solution": false, "task": false}
point = torch.tensor([[2.0, 0.0]])
assert_shape(banana_gradient(point.clone()), (1, 2), "the gradient")
assert_close(banana_energy(point.clone()), 0.5, "U(2, 0)")
assert_close(banana_gradient(point.clone()), torch.tensor([[0.5, 0.0]]), "the gradient at (2, 0)")
### BEGIN HIDDEN TESTS
for variance, bend, *where in [(4.0, 0.5, 1.0, 1.0), (4.0, 0.5, -3.0, 2.0), (9.0, 0.1, 2.0, -1.0), (0.5, 2.0, -0.7, 0.3)]:
    x, y = where
    point, residual = torch.tensor([where]), y - bend * (x * x - variance)
    assert_close(banana_energy(point.clone(), variance, bend), x * x / (2 * variance) + residual**2 / 2, f"U({x}, {y})")
    slope = torch.tensor([[x / variance - 2 * bend * x * residual, residual]])
    assert_close(banana_gradient(point.clone(), variance, bend), slope, f"the gradient at ({x}, {y})")
### END HIDDEN TESTS

# %% [markdown]
# ## 2 Leapfrog (12 points)
#
# Write the leapfrog integrator with mass $M$, kick–drift–kick or drift–kick–drift, as you like.


# %% nbgrader={"grade": false, "grade_id": "leapfrog", "locked": false, "schema_version": 3, "solution": true, "task": false}
def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    """Follow num_steps leapfrog steps.

    gradient is a function (chains, dim) -> (chains, dim); position and momentum are (chains, dim); mass is (dim,).
    Returns the new position and the new momentum.
    """
    ### BEGIN SOLUTION
    for _ in range(num_steps):
        momentum = momentum - step_size / 2 * gradient(position)
        position = position + step_size * momentum / mass
        momentum = momentum - step_size / 2 * gradient(position)
    return position, momentum
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "leapfrog-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
start = torch.tensor([[1.0, -0.5, 0.3]]), torch.tensor([[0.2, 0.4, -1.0]])
mass = torch.tensor([1.0, 2.0, 0.5])
there = leapfrog(spring, *fresh(*start), 0.1, 20, mass)
back = leapfrog(spring, there[0].clone(), -there[1], 0.1, 20, mass)
assert_shape(there[0], (1, 3), "the position")
assert_close(back[0], start[0], "the position, there and back")
assert_close(-back[1], start[1], "the momentum, there and back")
free = leapfrog(lambda position: torch.zeros_like(position), *fresh(*start), 0.1, 20, torch.ones(3))
assert_close(free[0], start[0] + 2.0 * start[1], "the position after free flight of duration 2 with mass 1")


### BEGIN HIDDEN TESTS
def kick_first(gradient, position, momentum, step_size, num_steps, mass):
    for _ in range(num_steps):
        momentum = momentum - step_size / 2 * gradient(position)
        position = position + step_size * momentum / mass
        momentum = momentum - step_size / 2 * gradient(position)
    return position, momentum


def drift_first(gradient, position, momentum, step_size, num_steps, mass):
    for _ in range(num_steps):
        position = position + step_size / 2 * momentum / mass
        momentum = momentum - step_size * gradient(position)
        position = position + step_size / 2 * momentum / mass
    return position, momentum


for step_size, num_steps in [(0.3, 1), (0.2, 7)]:
    found = torch.cat(leapfrog(spring, *fresh(*start), step_size, num_steps, mass))
    either = [torch.cat(f(spring, *start, step_size, num_steps, mass)) for f in (kick_first, drift_first)]
    nearest = min(either, key=lambda exact: float((found - exact).abs().max()))
    assert_close(found, nearest, f"position and momentum after {num_steps} steps of size {step_size}")
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
# In the bowl $U(\theta) = \tfrac12\theta^2$ with mass 1 your leapfrog is a linear map of $(\theta, r)$.
# Find a quadratic form that this map conserves **exactly**, and that tends to $H = \tfrac12\theta^2 + \tfrac12r^2$ as $\varepsilon \to 0$.


# %% nbgrader={"grade": false, "grade_id": "shadow", "locked": false, "schema_version": 3, "solution": true, "task": false}
def shadow_energy(position, momentum, step_size):
    """Compute the conserved energy in the bowl: position and momentum (chains, 1) -> (chains,)."""
    ### BEGIN SOLUTION
    return (0.5 * (1 - step_size**2 / 4) * position**2 + 0.5 * momentum**2).sum(-1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "shadow-test", "locked": true, "points": 8, "schema_version": 3, "solution": false, "task": false}
tiny = shadow_energy(torch.tensor([[3.0]]), torch.tensor([[4.0]]), 1e-6)
assert_close(torch.as_tensor(tiny).reshape(-1)[0], 12.5, "the energy at (3, 4) with a tiny step")


### BEGIN HIDDEN TESTS
def conserved(first, second, step_size):
    """Is the energy the same all along a path of kicks of size `first` and drifts of size `second`, in turn and symmetric?"""
    values, state = [], [1.3, -0.4]
    for _ in range(7):
        values.append(float(torch.as_tensor(shadow_energy(torch.tensor([state[:1]]), torch.tensor([state[1:]]), step_size)).reshape(-1)[0]))
        x, y = state
        if first == "kick":
            y -= step_size / 2 * x
            x += step_size * y
            y -= step_size / 2 * x
        else:
            x += step_size / 2 * y
            y -= step_size * x
            x += step_size / 2 * y
        state = [x, y]
    return max(values) - min(values) < 1e-9 * max(map(abs, values))


for order in ("kick", "drift"):
    if all(conserved(order, None, step_size) for step_size in (0.1, 0.7, 1.5)):
        break
else:
    raise AssertionError("the energy is conserved neither by kick-drift-kick nor by drift-kick-drift")
for x, y in [(1.0, 0.0), (0.0, 1.0), (3.0, -2.0)]:
    tiny = shadow_energy(torch.tensor([[x]]), torch.tensor([[y]]), 1e-6)
    assert_close(torch.as_tensor(tiny).reshape(-1)[0], (x * x + y * y) / 2, f"the energy at ({x}, {y}) with a tiny step")
### END HIDDEN TESTS

# %% [markdown]
# **Question 2 (6 points).** In the same bowl, by what factor does one step of *explicit* Euler, $\theta' = \theta + \varepsilon r$, $r' = r - \varepsilon\theta$, multiply $H$?
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
# For a Gaussian target $N(0, \Sigma)$ and a diagonal mass, leapfrog is stable for all step sizes below a limit. Compute it.


# %% nbgrader={"grade": false, "grade_id": "stability", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stability_limit(covariance, mass):
    """Compute the largest stable step size: covariance (dim, dim), mass (dim,) -> a number."""
    ### BEGIN SOLUTION
    curvature = torch.linalg.inv(covariance) / torch.sqrt(mass[:, None] * mass[None, :])
    return float(2 / torch.sqrt(torch.linalg.eigvalsh(curvature).max()))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "stability-test", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
assert_close(stability_limit(torch.eye(3), torch.ones(3)), 2.0, "the limit for a standard normal target with mass 1")
### BEGIN HIDDEN TESTS
assert_close(stability_limit(torch.diag(torch.tensor([0.25, 9.0])), torch.ones(2)), 1.0, "the limit for variances 0.25 and 9")
assert_close(stability_limit(torch.eye(2), torch.tensor([4.0, 9.0])), 4.0, "the limit for masses 4 and 9")
covariance, mass = torch.tensor([[2.0, 1.2], [1.2, 1.0]]), torch.tensor([0.5, 3.0])
curvatures = torch.linalg.eigvals(torch.linalg.inv(covariance) / mass[:, None]).real
assert_close(stability_limit(covariance.clone(), mass.clone()), float(2 / curvatures.max() ** 0.5), "the limit for a correlated target")
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
# Draw $r \sim N(0, M)$. In this book the second argument of $N$ is always a variance.


# %% nbgrader={"grade": false, "grade_id": "momentum", "locked": false, "schema_version": 3, "solution": true, "task": false}
def draw_momentum(position, mass, generator):
    """Draw a momentum for every chain: position (chains, dim), mass (dim,) -> (chains, dim)."""
    ### BEGIN SOLUTION
    return torch.sqrt(mass) * torch.randn(position.shape, generator=generator, dtype=position.dtype)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "momentum-test", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
assert_shape(draw_momentum(torch.zeros(1, 3), torch.ones(3), seeded(1)), (1, 3), "the momentum")
### BEGIN HIDDEN TESTS
# Six statistical checks, each with a false-alarm rate of 5e-6. Ten thousand coordinates are as many independent draws.
for seed, value in enumerate([0.25, 9.0]):
    drawn = draw_momentum(torch.zeros(1, 10_000), torch.full((10_000,), value), seeded(seed))[0]
    assert_mean(drawn, 0.0, f"the mean of the momentum with mass {value}")
    assert_variance(drawn, value, f"the variance of the momentum with mass {value}")
    assert_mean(drawn**4, 3 * value**2, f"the fourth moment of the momentum with mass {value}, which should be normal,")
### END HIDDEN TESTS

# %% [markdown]
# ## 6 The total energy (6 points)


# %% nbgrader={"grade": false, "grade_id": "hamiltonian", "locked": false, "schema_version": 3, "solution": true, "task": false}
def hamiltonian(energy, position, momentum, mass):
    """Compute H: energy is a function (chains, dim) -> (chains,); position, momentum (chains, dim), mass (dim,) -> (chains,)."""
    ### BEGIN SOLUTION
    return energy(position) + 0.5 * (momentum**2 / mass).sum(-1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "hamiltonian-test", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
total = hamiltonian(bowl, torch.tensor([[3.0]]), torch.tensor([[4.0]]), torch.tensor([1.0]))
assert_close(torch.as_tensor(total).reshape(-1)[0], 12.5, "H of (3, 4) with mass 1")
### BEGIN HIDDEN TESTS
arguments = torch.tensor([[3.0, 1.0]]), torch.tensor([[4.0, -6.0]]), torch.tensor([2.0, 9.0])
total = hamiltonian(bowl, *fresh(*arguments))
assert_close(torch.as_tensor(total).reshape(-1)[0], 5.0 + 4.0 + 2.0, "H of a state with masses 2 and 9")
total = hamiltonian(lambda position: -bowl(position), *fresh(*arguments))
assert_close(torch.as_tensor(total).reshape(-1)[0], -5.0 + 4.0 + 2.0, "H with another energy")
### END HIDDEN TESTS

# %% [markdown]
# ## 7 Hamiltonian Monte Carlo (14 points)
#
# Put the parts together: draw a momentum, follow a trajectory, accept or reject its end.
# (The hidden tests first replace your `leapfrog`, `draw_momentum` and `hamiltonian` by right ones, so that a mistake there does not cost points here.)


# %% nbgrader={"grade": false, "grade_id": "hmc", "locked": false, "schema_version": 3, "solution": true, "task": false}
def hmc_step(energy, gradient, position, step_size, num_steps, mass, generator):
    """Take one step of HMC: position (chains, dim) -> the new position (chains, dim), and which chains accepted, (chains,) bool."""
    ### BEGIN SOLUTION
    start = draw_momentum(position, mass, generator)
    proposal, end = leapfrog(gradient, position.clone(), start.clone(), step_size, num_steps, mass)
    change = hamiltonian(energy, proposal, end, mass) - hamiltonian(energy, position, start, mass)
    accepted = torch.rand(change.shape, generator=generator) < torch.exp(-change)
    return torch.where(accepted[:, None], proposal, position), accepted
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "hmc-test", "locked": true, "points": 14, "schema_version": 3, "solution": false, "task": false}
### BEGIN HIDDEN TESTS
def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    for _ in range(num_steps):
        momentum = momentum - step_size / 2 * gradient(position)
        position = position + step_size * momentum / mass
        momentum = momentum - step_size / 2 * gradient(position)
    return position, momentum


def draw_momentum(position, mass, generator):
    return torch.sqrt(mass) * torch.randn(position.shape, generator=generator, dtype=position.dtype)


def hamiltonian(energy, position, momentum, mass):
    return energy(position) + 0.5 * (momentum**2 / mass).sum(-1)


### END HIDDEN TESTS
moved, accepted = hmc_step(bowl, lambda position: position, torch.ones(1, 3), 0.01, 5, torch.ones(3), seeded(3))
assert_shape(moved, (1, 3), "the new position")
assert bool(torch.as_tensor(accepted).all()), "with a tiny step size nearly every proposal is accepted, and this one should be"
assert not torch.equal(moved, torch.ones(1, 3)), "an accepted proposal is another position"
### BEGIN HIDDEN TESTS
# Two statistical checks, each with a false-alarm rate of 5e-6. The target is N(0, 4), the mass one half; in normalised coordinates a
# step has the size h = 1.6. Steps that leave the target invariant keep a chain that starts there; and a chain that is there accepts
# with probability (4/π) arctan(1/s), where s is the larger singular value of the trajectory's matrix (Question 4).
h, num_steps, chains = 1.6, 2, 2_000
step = torch.tensor([[1 - h**2 / 2, h], [-h * (1 - h**2 / 4), 1 - h**2 / 2]])
stretch = float(torch.linalg.svdvals(torch.linalg.matrix_power(step, num_steps))[0])
generator, mass = seeded(4), torch.tensor([0.5])
ends, decisions = [], []
for place in 2 * torch.randn(chains, 1, 1, generator=seeded(5)):
    for _ in range(3):
        old = place.clone()
        place, accepted = hmc_step(
            lambda position: (position**2).sum(-1) / 8,
            lambda position: position / 4,
            place.clone(),
            h * math.sqrt(2.0),
            num_steps,
            mass,
            generator,
        )
        accepted = bool(torch.as_tensor(accepted).reshape(-1)[0])
        assert accepted or torch.equal(place.reshape(1, 1), old), "a rejected proposal must leave the position as it was"
    ends.append(float(place.reshape(-1)[0]))
    decisions.append(float(accepted))
assert_variance(torch.tensor(ends), 4.0, "the variance of HMC's draws from N(0, 4)")
assert_mean(torch.tensor(decisions), 4 / math.pi * math.atan(1 / stretch), "the share of accepted proposals")
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
# Follow one trajectory of duration 20 in the banana, from $\theta = (3, 2.5)$, $r = (1, 1)$ with mass 1, by leapfrog with the step sizes 0.05, 0.2 and 0.5.
# Plot the energy error $H - H_0$ against time, one line for each; the axis is linear within $\pm0.01$ and logarithmic beyond. Then say below what you see.

# %% nbgrader={"grade": false, "grade_id": "plot-energy", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["experiment"]
figure, axes = plt.subplots()
### BEGIN SOLUTION
unit = torch.ones(2)
for step_size in (0.05, 0.2, 0.5):
    position, momentum = torch.tensor([[3.0, 2.5]]), torch.tensor([[1.0, 1.0]])
    first = float(hamiltonian(banana_energy, position, momentum, unit))
    errors = [0.0]
    for _ in range(round(20 / step_size)):
        position, momentum = leapfrog(banana_gradient, position, momentum, step_size, 1, unit)
        errors.append(float(hamiltonian(banana_energy, position, momentum, unit)) - first)
    axes.plot(step_size * torch.arange(len(errors)), errors, label=rf"$\varepsilon = {step_size}$")
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
# With the largest step the error is of another kind: the path leaves the banana, and its energy grows without bound. Where $\lvert\theta_1\rvert$ is large the curvature is about $(2b\theta_1)^2$, beyond the stability limit $4/\varepsilon^2 = 16$ from $\lvert\theta_1\rvert = 4$ on.
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
        new, accepted = hmc_step(bowl, lambda position: position, position, step_size, num_steps, torch.ones(50), generator)
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
