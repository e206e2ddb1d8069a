# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # A ball in a bowl: Hamiltonian dynamics
#
# ```{div} page-head
# Page 3 of 12 · 25 minutes to read, 10 to play · Running: about 8 seconds
# ```
#
# ```{index} ! Hamiltonian dynamics, ! leapfrog
# ```

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import torch

from booklib.claims import claim
from booklib.figures import COLOURS, TRUTH, use_style
from booklib.play import play
from booklib.scoreboard import exact_variance, show_scoreboard
from sgmc import sample
from sgmc.integrators import leapfrog
from sgmc.kernels import HMC
from sgmc.splittings.euler import explicit_euler, symplectic_euler
from sgmc.targets import DoubleWell, Gaussian

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# {doc}`A random walk </book/tutorial/markov_chains>` forgets at each step where it was going.
# A rolling ball does not: it has momentum, and the slope of the landscape steers it.
# It goes far without losing its energy, and that is what a sampler would like to do.
#
# To let a computer roll the ball we must cut time into steps, and {numref}`fig-three-integrators` shows that there is a wrong and a right way.
# The ball is in the bowl $U = \tfrac12\theta^2$; its position $\theta$ and its momentum $r$ should go round a circle.
# Euler's method leaves the circle at once. *Leapfrog*, which costs the same, stays so close that one has to look twice.
#
# *A guess before you read on.*
# These are twenty steps. Where is leapfrog's ball after three thousand?

# %% mystnb={"figure": {"caption": "Twenty steps of size 0.3 from $(0, 1)$ in the bowl. The exact path is the grey circle, the black dot the start.", "name": "fig-three-integrators"}, "image": {"alt": "Two phase planes with a grey circle. Explicit Euler's points leave the circle at once and spiral outwards to more than twice its radius; leapfrog's lie nearly on it."}} tags=["hide-input"]
bowl = Gaussian.standard(1, dtype=torch.float64)
integrators = {
    "explicit Euler": explicit_euler,
    "symplectic Euler": symplectic_euler,
    "leapfrog": leapfrog,
}


def path(integrator, step_size, num_steps):
    """Follow one integrator from (0, 1) in the bowl; return (num_steps + 1, 2)."""
    position = torch.zeros(1, 1, dtype=torch.float64)
    points = [torch.cat([position, position + 1], -1)]
    for _ in range(num_steps):
        state = integrator(bowl.gradient, *points[-1].split(1, -1), step_size)
        points.append(torch.cat(state, -1))
    return torch.cat(points)


angle = torch.linspace(0, 2 * torch.pi, 200)
figure, panels = plt.subplots(1, 2, figsize=(5.4, 2.9), sharex=True, sharey=True)
for axes, name in zip(panels, ("explicit Euler", "leapfrog"), strict=True):
    points = path(integrators[name], 0.3, 20)
    axes.plot(angle.cos(), angle.sin(), color=TRUTH, lw=2)
    axes.plot(*points.T, "o-", ms=3, lw=1, color=COLOURS[name])
    axes.plot(*points[0], "ko", ms=5)
    axes.set(xlabel=r"position $\theta$", aspect="equal", title=name)
    axes.set(xlim=(-2.4, 2.4), ylim=(-2.4, 2.4))
panels[0].set_ylabel(r"momentum $r$")
plt.show()

# %% [markdown]
# The scoreboard so far:

# %% tags=["hide-input"]
show_scoreboard(3)

# %% [markdown]
# ## Position, momentum, energy
#
# Let $\theta \in \mathbb{R}^d$ be a position and $U(\theta)$ a *potential energy*, the height of the landscape at $\theta$; on the next page it will be minus the logarithm of a density.
# Give the ball a *momentum* $r \in \mathbb{R}^d$ and a *mass matrix* $M$, symmetric and positive definite; think of $M = I$ at first.
#
# ```{prf:definition} Hamiltonian dynamics
# :label: def-hamiltonian
#
# The *Hamiltonian* is the total energy $H(\theta, r) = U(\theta) + \tfrac12 r^\top M^{-1} r$, and *Hamilton's equations* are
#
# $$
# \begin{aligned}
# \frac{d\theta}{dt} &= \frac{\partial H}{\partial r} = M^{-1} r,\\
# \frac{dr}{dt} &= -\frac{\partial H}{\partial \theta} = -\nabla U(\theta).
# \end{aligned}
# $$ (eq-hamilton)
# ```
#
# The first equation says that momentum is mass times velocity, the second that the force points downhill.
# The pair $z = (\theta, r)$ is the *state*, and the map that follows the equations for a time $t$ is the *flow* $\Phi_t$.
#
# ```{prf:theorem} What the flow keeps
# :label: thm-flow
#
# Let $U$ be twice continuously differentiable, and let solutions exist for all times.
#
# 1. *(energy)* $H(\Phi_t(\theta, r)) = H(\theta, r)$;
# 2. *(reversibility)* with the flip $F(\theta, r) = (\theta, -r)$ of the momentum, the flow run backwards is $\Phi_t^{-1} = F \circ \Phi_t \circ F$;
# 3. *(volume)* the Jacobian has $\lvert\det D\Phi_t\rvert = 1$.
# ```
#
# ```{prf:proof}
# *Energy.* By the chain rule $\frac{dH}{dt} = \nabla U^\top \dot\theta + r^\top M^{-1}\dot r = \nabla U^\top M^{-1} r - r^\top M^{-1}\nabla U = 0$.
#
# *Reversibility.* If $(\theta(t), r(t))$ solves {eq}`eq-hamilton`, so does the reversed path with the flipped momentum, $\bar\theta(s) = \theta(t - s)$ and $\bar r(s) = -r(t - s)$: the time derivative changes its sign, and so does $r$, while $\nabla U$ does not.
# It leads from $F\Phi_t(\theta, r)$ to $F(\theta, r)$, so $\Phi_tF\Phi_t = F$.
#
# *Volume.* A flow keeps volume if its velocity field has no divergence (Liouville). Here the field is $(M^{-1}r, -\nabla U(\theta))$: its first part does not depend on $\theta$, nor its second on $r$.
# ```
#
# In words: the ball stays on a contour line of $H$; a film of it, shown backwards, is still a film of a rolling ball; and a cloud of balls may change its shape, but not its volume in the space of states.
# A sampler will need the last two exactly and the first nearly.
# ({prf:ref}`thm-leapfrog-symplectic` has a stronger form of the third, symplecticness.)
#
# For $U = \tfrac12\theta^2$ and $M = 1$ the equations are $\dot\theta = r$, $\dot r = -\theta$, with the solution
#
# $$
# \begin{pmatrix}\theta(t)\\ r(t)\end{pmatrix} = \begin{pmatrix}\cos t & \sin t\\ -\sin t & \cos t\end{pmatrix}\begin{pmatrix}\theta(0)\\ r(0)\end{pmatrix},
# $$ (eq-rotation)
#
# a rotation: this is the circle.
#
# ## Leapfrog
#
# Few potentials can be solved, so we take steps of size $\varepsilon$, made of *drifts*, which move the position while the momentum is held, and *kicks*, which change the momentum while the position is held.
#
# ```{prf:definition} Explicit Euler, symplectic Euler, leapfrog
# :label: def-integrators
#
# * *Explicit Euler*: $\theta' = \theta + \varepsilon M^{-1} r$, $\ r' = r - \varepsilon\nabla U(\theta)$. Both read the old state.
# * *Symplectic Euler*: $\theta' = \theta + \varepsilon M^{-1} r$, $\ r' = r - \varepsilon\nabla U(\theta')$. The kick reads the **new** position.
# * *Leapfrog*: half a kick, a drift, half a kick.
# ```
#
# In code, with mass 1, leapfrog is three lines:


# %%
def leapfrog_step(gradient, theta, r, step_size):
    r = r - step_size / 2 * gradient(theta)
    theta = theta + step_size * r
    return theta, r - step_size / 2 * gradient(theta)


# %% [markdown]
# The half kick that ends a step and the one that begins the next fall on the same point and can share their gradient, so $L$ steps cost $L + 1$ gradients, nearly as few as Euler.
#
# Reversibility and volume are not lost by the steps, however large they are.
#
# ```{prf:theorem} Leapfrog is reversible and keeps volume
# :label: thm-leapfrog
#
# Let $U$ be twice continuously differentiable, $\Psi_\varepsilon$ one leapfrog step and $F$ the flip of the momentum. Then $F \circ \Psi_\varepsilon \circ F \circ \Psi_\varepsilon$ is the identity, and $\lvert\det D\Psi_\varepsilon\rvert = 1$.
# ```
#
# ```{prf:proof}
# Write $K_h(\theta, r) = (\theta, r - h\nabla U(\theta))$ for a kick and $D_h(\theta, r) = (\theta + hM^{-1}r, r)$ for a drift: $\Psi_\varepsilon = K_{\varepsilon/2} D_\varepsilon K_{\varepsilon/2}$.
# Each is a shear: its Jacobian is triangular with ones on the diagonal, so its determinant is 1, and so is the product's.
# A kick with the momentum flipped is undone by the same kick: $F K_h F = K_{-h} = K_h^{-1}$, and $F D_h F = D_{-h} = D_h^{-1}$.
# Insert $FF = I$ between the factors: $F\Psi_\varepsilon F = K_{\varepsilon/2}^{-1} D_\varepsilon^{-1} K_{\varepsilon/2}^{-1} = \Psi_\varepsilon^{-1}$, because the order $K D K$ reads the same backwards.
# ```
#
# Symplectic Euler is a product of shears too and keeps volume, but it does not read the same backwards. Explicit Euler has neither property.
# {numref}`fig-area` shows what volume means: a disc of states in the double well $U = -2\theta^2 + \theta^4$ is drawn out, because states of different energies go round at different speeds. Leapfrog keeps its area, Euler does not.

# %% mystnb={"figure": {"caption": "A disc of states in the right half of the double well after 0 (black), 12, 24 and 36 steps of size 0.05, clockwise. Grey: contours of H, on which the exact dynamics runs.", "name": "fig-area"}, "image": {"alt": "Two phase planes with contour lines and a black disc, which moves clockwise and is drawn out into longer and thinner shapes. Explicit Euler's shapes grow and cross the contour lines outwards; leapfrog's keep their area."}} tags=["hide-input"]
well = DoubleWell()
angle = torch.linspace(0, 2 * torch.pi, 2_001, dtype=torch.float64)[:, None]
disc = (1 + 0.2 * angle.cos(), 0.7 + 0.2 * angle.sin())


def area(points):
    """Area inside a closed polygon (points, 2), by the shoelace formula."""
    x, y = points.T
    return 0.5 * (x[:-1] * y[1:] - x[1:] * y[:-1]).sum().abs()


snapshots = {
    name: [torch.cat(disc, -1)]
    + [
        torch.cat(integrator(well.gradient, *disc, 0.05, steps), -1)
        for steps in (12, 24, 36)
    ]
    for name, integrator in integrators.items()
}
figure, panels = plt.subplots(1, 2, figsize=(5.0, 4), sharex=True, sharey=True)
theta, r = torch.meshgrid(
    torch.linspace(0.1, 1.7, 120), torch.linspace(-1.7, 1.7, 120), indexing="ij"
)
levels = well.energy(theta.reshape(-1, 1)).reshape(theta.shape) + 0.5 * r**2
shown = ("explicit Euler", "leapfrog")
for axes, name in zip(panels, shown, strict=True):
    shots = snapshots[name]
    axes.contour(
        theta,
        r,
        levels,
        levels=[-0.9, -0.7, -0.5, -0.3, -0.1],
        colors=TRUTH,
        linestyles="solid",
        linewidths=0.5,
    )
    axes.fill(*shots[0].T, color="black", alpha=0.6, lw=0)
    for shot in shots[1:]:
        axes.fill(*shot.T, color=COLOURS[name], alpha=0.7, lw=0)
    axes.set(xlabel=r"position $\theta$", aspect="equal")
    axes.set_title(name, fontsize=9)
panels[0].set_ylabel(r"momentum $r$")
plt.show()

# %% tags=["hide-input"]
position = torch.linspace(-1.5, 1.5, 7, dtype=torch.float64)[:, None]
momentum = torch.linspace(1.0, -1.0, 7, dtype=torch.float64)[:, None]


def return_error(integrator, num_steps=25, step_size=0.1):
    """Go forward, flip the momentum, go forward again: how far from the start?"""
    there = integrator(well.gradient, position, momentum, step_size, num_steps)
    back = integrator(well.gradient, there[0], -there[1], step_size, num_steps)
    return float((back[0] - position).abs().max())


claim(
    "Leapfrog there and back misses the start by",
    return_error(leapfrog),
    at_most=1e-11,
    because="rounding of 50 steps",
    kind="exact",
)
claim(
    "Symplectic Euler there and back misses the start by",
    return_error(symplectic_euler),
    at_least=1e-2,
    because="its error is of the first order in ε = 0.1",
    kind="exact",
)
claim(
    "Area of the disc after 36 steps of leapfrog, over the first",
    area(snapshots["leapfrog"][-1]) / area(snapshots["leapfrog"][0]),
    near=1,
    within=1e-3,
    because="areas are kept; a polygon of 2,000 corners stands for the disc",
    kind="exact",
)
claim(
    "Area of the disc after 36 steps of explicit Euler, over the first",
    area(snapshots["explicit Euler"][-1]) / area(snapshots["explicit Euler"][0]),
    at_least=1.5,
    because="each step multiplies areas by 1 + ε²U''(θ), 1.02 at the bottom",
    kind="exact",
)
steps = (
    leapfrog_step(well.gradient, position, momentum, 0.1),
    leapfrog(well.gradient, position, momentum, 0.1),
)
claim(
    "Largest difference between a step of the function above and of the package",
    max((mine - theirs).abs().max() for mine, theirs in zip(*steps, strict=True)),
    at_most=1e-13,
    because="the same formula; rounding",
    kind="exact",
)

# %% [markdown]
# ## A shadow of the energy
#
# An explicit Euler step in the bowl lengthens every state by $\sqrt{1 + \varepsilon^2}$, because it goes along the tangent, and a tangent to a circle leads outwards. Its energy grows by the factor $1 + \varepsilon^2$ at each step, for any $\varepsilon$ however small.
# Leapfrog does not keep $H$ either. But it keeps something close to it, a *shadow* of $H$.
#
# ```{prf:theorem} The conserved ellipses
# :label: thm-shadow
#
# In the bowl $U = \tfrac12\theta^2$ with $M = 1$ and $0 < \varepsilon < 2$,
# symplectic Euler keeps $\tilde H = \tfrac12(\theta^2 + r^2) + \tfrac\varepsilon2\,\theta r$ exactly, and leapfrog keeps $\tilde H = \tfrac12\bigl(1 - \tfrac{\varepsilon^2}4\bigr)\theta^2 + \tfrac12 r^2$ exactly.
# ```
#
# ```{prf:proof}
# Symplectic Euler: its two lines, solved for the old state, are $r = r' + \varepsilon\theta'$ and $\theta = \theta' - \varepsilon r$. Insert these in $\theta^2 + r^2 + \varepsilon\theta r = \theta(\theta + \varepsilon r) + r^2 = \theta\theta' + r^2$; and
# $\theta\theta' + r^2 = (\theta' - \varepsilon r)\theta' + r^2 = \theta'^2 + r(r - \varepsilon\theta') = \theta'^2 + (r' + \varepsilon\theta')r' = \theta'^2 + r'^2 + \varepsilon\theta' r'$.
#
# Leapfrog is the matrix $\begin{pmatrix}1 - \varepsilon^2/2 & \varepsilon\\ -\varepsilon(1 - \varepsilon^2/4) & 1 - \varepsilon^2/2\end{pmatrix}$.
# With $c = 1 - \varepsilon^2/2$, $k = 1 - \varepsilon^2/4$, we have $c^2 + \varepsilon^2 k = 1$, and $k(c\theta + \varepsilon r)^2 + (cr - \varepsilon k\theta)^2 = k(c^2 + \varepsilon^2 k)\theta^2 + (c^2 + \varepsilon^2 k)r^2 = k\theta^2 + r^2$; the mixed terms cancel.
# ```
#
# This answers the guess.
# For $\varepsilon < 2$ the shadow's level sets are ellipses, and a path on an ellipse cannot run away: after three thousand steps the ball is where it was, on its ellipse next to the circle ({numref}`fig-energy`), and its energy has never been off by more than 2.3 per cent.
# At $\varepsilon = 2$ the ellipse opens; for a bowl $U = \tfrac12a\theta^2$ this limit is $\varepsilon < 2/\sqrt a$, so **the steepest direction sets the step size**.
# For other potentials a shadow exists only approximately, but it is kept for times that grow exponentially with $1/\varepsilon$ {cite:p}`hairer2006`; that is why the energy error swings instead of growing.
# The same symmetry makes the method accurate: a step of $-\varepsilon$ exactly undoes a step of $\varepsilon$, which forces the odd error terms to vanish, and so leapfrog is of order two for the price of order one ({prf:ref}`thm-leapfrog-order`).

# %% mystnb={"figure": {"caption": "The energy as a multiple of the first, in steps of size 0.3. Left: the first 120 steps, on a logarithmic scale. Right: the last 60 of 3,000 steps of leapfrog, within the bounds of its shadow (dashed).", "name": "fig-energy"}, "image": {"alt": "Left, on a logarithmic scale, explicit Euler's energy climbs in a straight line to above ten thousand in 120 steps; leapfrog's stays at one. Right, after 3,000 steps, leapfrog's energy swings between 1 and 1.02, inside two dashed lines."}} tags=["hide-input"]
long = {name: path(f, 0.3, 3_000) for name, f in integrators.items()}
energy = {name: points.pow(2).sum(-1) for name, points in long.items()}  # over H₀ = ½
figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 2.9))
for name in ("explicit Euler", "leapfrog"):
    left.semilogy(energy[name][:121], color=COLOURS[name], label=name)
left.set(xlabel="step", ylabel=r"energy $H / H_0$", ylim=(0.7, 1e5))
left.legend(loc="upper left")
last = torch.arange(2_940, 3_001)
right.plot(
    last, energy["leapfrog"][last], "o-", ms=2.5, lw=1, color=COLOURS["leapfrog"]
)
for bound in (1, 1 / (1 - 0.3**2 / 4)):
    right.axhline(bound, color=COLOURS["leapfrog"], ls="--", lw=0.8)
right.set(xlabel="step", ylim=(0.99, 1.035))
plt.show()

# %% tags=["hide-input"]
theta, r = long["leapfrog"].T
shadow = 0.5 * (1 - 0.3**2 / 4) * theta**2 + 0.5 * r**2
claim(
    "Over 3,000 steps leapfrog keeps its shadow energy, with a largest error",
    (shadow - shadow[0]).abs().max(),
    at_most=1e-11,
    because="rounding of 3,000 steps in double precision",
    kind="exact",
)
claim(
    "Over 3,000 steps leapfrog's energy error relative to the start stays below",
    (energy["leapfrog"] - 1).abs().max(),
    at_most=0.0231,
    because="the ellipse: 1/(1 − ε²/4) − 1 = 0.0230 at the largest",
    kind="exact",
)
claim(
    "After 20 steps explicit Euler's energy has grown by the factor (1 + ε²)²⁰",
    energy["explicit Euler"][20],
    near=1.09**20,
    within=1e-9,
    because="exact algebra",
    kind="exact",
)
claim(
    "At a step just over the limit leapfrog's position or momentum has grown beyond",
    path(leapfrog, 2.01, 200)[-1].abs().max(),
    at_least=1e3,
    because="an eigenvalue of the step matrix is -1.22, and 1.22²⁰⁰ is 10¹⁷",
    kind="exact",
)

# %% [markdown]
# In {numref}`fig-live-leapfrog` move $\varepsilon$, and watch the ellipse open at the limit.
#
# ```{live} leapfrog
# :name: fig-live-leapfrog
# :alt: A circle in the phase plane with the leapfrog's points on it; the energy error of 200 steps, which stays below a bound; and the largest error against the step size, which rises to infinity at 2.
#
# Live: 200 leapfrog steps from $(0, 1)$ in the bowl $U = \tfrac12\theta^2$. Above left, the exact circle, the points, and the ellipse of {prf:ref}`thm-shadow`; above right, the energy error of each step; below, the largest error against the step size.
# ```
#
# ## What the shadow does to a sampler
#
# Roll the ball for a while, note where it is, give it a new random momentum $r \sim N(0, 1)$, and roll it again.
# With the exact dynamics the noted positions would have the distribution $e^{-U}$, as the next page proves.
# With leapfrog they have that of the shadow, $e^{-\frac12(1 - \varepsilon^2/4)\theta^2}$ in the bowl: a variance of $1/(1 - \varepsilon^2/4)$, which is 1.0025 at $\varepsilon = 0.1$.
# This is the row of the page. The error is tiny, but it is there, and no number of samples removes it.

# %% tags=["hide-input"]
show_scoreboard(4)
claim(
    "Exact variance of the row less 1/(1 − ε²/4)",
    exact_variance("leapfrog, never rejected") - 1 / (1 - 0.1**2 / 4),
    near=0,
    within=1e-9,
    because="the linear chain against the shadow",
    kind="exact",
)
for step_size in (0.1, 1.0):
    kernel = HMC(step_size, round(5 / step_size), metropolis=False)
    start = Gaussian.standard(1).exact_samples(20_000, torch.Generator().manual_seed(3))
    run = sample(
        kernel, Gaussian.standard(1), start, num_samples=10, warm_up=20, seed=3
    )
    value, error = run.mean_and_standard_error(lambda x: x**2)
    claim(
        f"Measured variance, momentum resampled and never rejected, ε = {step_size:g}",
        value,
        near=1 / (1 - step_size**2 / 4),
        standard_error=error,
        because="the shadow's variance; 20,000 chains",
    )

# %% [markdown]
# **To remember:** what leapfrog conserves is not $H$, but next to it.
# It is reversible and keeps volume exactly, at every step size.
#
# {doc}`The next page </book/tutorial/hamiltonian_monte_carlo>` makes a sampler of the ball, and removes the last 0.25 per cent.
#
# ## Change it
#
# * Set `path(leapfrog, 2.01, 200)` to `path(leapfrog, 1.99, 200)`: a step just *under* the limit. The path no longer runs away, so the claim that it grows shows ✗.
# * In `leapfrog_step` set the last `step_size / 2` to `step_size`: no longer a palindrome. The claim on the function and the package shows ✗.
# * Set `points = path(integrators[name], 0.3, 20)` to `points = path(integrators[name], 0.9, 20)`: leapfrog's points lie on an ellipse that one can see, and Euler leaves the frame.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-dynamics-write
#
# **Write it yourself:** one step of explicit and of symplectic Euler, with mass one, straight from {prf:ref}`def-integrators`. Take care which $\theta$ the gradient reads, and test them by the functions of `sgmc.splittings.euler`.
#
# ```python
# def one_explicit_step(gradient, theta, r, step_size):
#     return ..., ...  # the new position, the new momentum
#
#
# def one_symplectic_step(gradient, theta, r, step_size):
#     return ..., ...
# ```
#
# Assignment 1 of {doc}`/book/practice/teaching` goes on from here: many steps, and a mass.
# ````
#
# ````{solution} ex-dynamics-write
# :class: dropdown
#
# They differ in one prime only.
#
# ```python
# def one_explicit_step(gradient, theta, r, step_size):
#     return theta + step_size * r, r - step_size * gradient(theta)
#
#
# def one_symplectic_step(gradient, theta, r, step_size):
#     theta = theta + step_size * r
#     return theta, r - step_size * gradient(theta)
# ```
# ````
#
# ```{exercise}
# :label: ex-frequency
#
# In the bowl $U = \tfrac12\theta^2$ the exact flow turns by the angle $\varepsilon$ in a step. By what angle does leapfrog turn? Does its ball run ahead of the exact one, or behind?
# ```
#
# ```{solution} ex-frequency
# :class: dropdown
#
# The step matrix has determinant 1 and trace $2 - \varepsilon^2$, so for $\varepsilon < 2$ it is similar to a rotation by an angle $\omega$ with $2\cos\omega = 2 - \varepsilon^2$, or $\sin\frac\omega2 = \frac\varepsilon2$. Then $\omega = 2\arcsin\frac\varepsilon2 > \varepsilon$: it runs ahead, by about $\varepsilon^3/24$ a step.
# ```
#
# ```{exercise}
# :label: ex-mass
#
# Show that leapfrog with mass $M$ is leapfrog with mass $I$ in the coordinates $x = M^{1/2}\theta$, $y = M^{-1/2}r$. What mass is best for $U = \tfrac12\theta^\top A\theta$?
# ```
#
# ```{solution} ex-mass
# :class: dropdown
#
# Multiply the drift $\theta \leftarrow \theta + \varepsilon M^{-1}r$ by $M^{1/2}$: it is $x \leftarrow x + \varepsilon y$. Multiply the kick $r \leftarrow r - \varepsilon\nabla U$ by $M^{-1/2}$: it is $y \leftarrow y - \varepsilon M^{-1/2}\nabla U$, and $M^{-1/2}\nabla U$ is the gradient with respect to $x$, by the chain rule. The quadratic form becomes $x^\top M^{-1/2}AM^{-1/2}x$, the identity for $M = A$: all directions then have the same limit, $\varepsilon < 2$.
# ```
#
# ## Further reading
#
# {cite:t}`neal2011` introduces these integrators for statisticians, {cite:t}`hairer2006` is the reference on why symplectic ones work, and {cite:t}`leimkuhler2016` carries the splitting of this page over to stochastic dynamics.
