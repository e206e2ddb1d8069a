# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Hamiltonian dynamics
#
# ```{div} page-head
# Page 3 of 12 · 46 minutes to read, 15 to play · Running: about 5 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! Hamiltonian dynamics, ! leapfrog, ! shadow energy
# ```

# %%
import torch

from booklib.page.scoreboard import show_row

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import at_least, at_most, check, near
from booklib.page.figures import COLOURS, TRUTH, plot_density, plot_histogram, use_style
from booklib.page.play import play
from booklib.page.scoreboard import show_scoreboard
from booklib.rivals.euler import explicit_euler, symplectic_euler
from sgmc.integrators import leapfrog as leapfrog_of_package
from sgmc.targets import DoubleWell, Gaussian

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# A random walk forgets at each step where it was going.
# A ball that rolls in a bowl without friction does not: it has momentum, it goes far, and it never settles.
# If minus the logarithm of a density is the shape of the bowl, such a ball could explore the density.
# Can a computer roll it, for thousands of steps, without the errors taking over?
#
# A computer rolls it in steps of size $\varepsilon$, of two kinds: a *drift* moves the position $\theta$ by $\varepsilon r$, where $r$ is the momentum, and a *kick* pulls $r$ down the slope of the landscape, by $\varepsilon\nabla U(\theta)$.
# What matters is their order.
# The scheme that will win is called *leapfrog*: half a kick, a drift, half a kick.


# %%
def leapfrog(gradient, theta, r, step_size, num_steps=1):
    """Roll a ball from position θ with momentum r."""
    for _ in range(num_steps):
        r = r - step_size / 2 * gradient(theta)
        theta = theta + step_size * r
        r = r - step_size / 2 * gradient(theta)
    return theta, r


# %% [markdown]
# {numref}`fig-three-integrators` shows it beside two schemes of Euler, one kick and one drift a step each.
# Each point is a state of the ball: its position to the right, its momentum upwards.
# In the bowl $U = \frac12\theta^2$, whose slope is $\theta$, the true ball goes round the grey circle.


# %% mystnb={"figure": {"caption": "Twenty steps from $(0, 1)$ in the bowl $U = \\tfrac12\\theta^2$, after Figure 1 of Neal (2011). The exact path is the grey circle, the black dot the start.", "name": "fig-three-integrators"}, "image": {"alt": "Four phase planes with a grey circle. Explicit Euler's points leave the circle at once and spiral outwards to more than twice its radius; symplectic Euler's follow a slanted ellipse about it; leapfrog's lie nearly on it at a step of 0.3, and at a step of 1.2 on an ellipse a quarter wider than the circle."}} tags=["hide-input"]
bowl, well = Gaussian.standard(1, dtype=torch.float64), DoubleWell()
integrators = {
    "explicit Euler": explicit_euler,
    "symplectic Euler": symplectic_euler,
    "leapfrog": leapfrog,
}


def path(name, step_size, num_steps):
    """Follow an integrator in the bowl from (0, 1); return (num_steps + 1, 2)."""
    state = [torch.tensor([[x]], dtype=torch.float64) for x in (0, 1)]
    points = [torch.cat(state, -1)]
    for _ in range(num_steps):
        state = integrators[name](bowl.gradient, *state, step_size)
        points.append(torch.cat(state, -1))
    return torch.cat(points)


steps = [(name, 0.3) for name in integrators] + [("leapfrog", 1.2)]
figure, panels = plt.subplots(2, 2, figsize=(4.6, 4.9), sharex=True, sharey=True)
angle = torch.linspace(0, 2 * torch.pi, 200)
for axes, (name, step_size) in zip(panels.flat, steps, strict=True):
    axes.plot(angle.cos(), angle.sin(), color=TRUTH)
    axes.plot(*path(name, step_size, 20).T, "o-", ms=3, lw=1, color=COLOURS[name])
    axes.plot(0, 1, "ko", ms=5)
    axes.set(xlim=(-2.3, 2.3), ylim=(-2.3, 2.3), aspect="equal")
    axes.set_title(rf"{name}, $\varepsilon$ = {step_size}", fontsize=9)
for low, left in zip(panels[1], panels[:, 0], strict=True):
    low.set_xlabel(r"position $\theta$")
    left.set_ylabel(r"momentum $r$")
plt.show()

# %% [markdown]
# *A guess before you read on.*
# After 1,000 steps, how far from the middle is the ball of explicit Euler, and how far is leapfrog's?
# Would a step of 0.03 instead of 0.3 save explicit Euler?
# And leapfrog's steps of 1.2, are they wrong for good, or do they conserve something?
#
# The scoreboard so far has one row, of the variance of $\theta$ in the bowl, where 1 is correct.
# $V$ is the variance of the noise in the gradient, 0 until page 6; the last column is what an independent value of $\theta^2$ costs, where a formula says it.

# %% tags=["hide-input"]
show_scoreboard(3)

# %% [markdown]
# ## Position, momentum, energy
#
# Let $\theta \in \mathbb{R}^d$ be the position of the ball and $U(\theta)$ its *potential energy*, the height of the landscape.
# Its {term}`momentum` is $r \in \mathbb{R}^d$, and its {term}`mass` a symmetric and positive definite matrix $M$; think of $M = I$.
# Physicists write $q$ and $p$ for our $\theta$ and $r$.
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
# In the bowl they are $\dot\theta = r$ and $\dot r = -\theta$, and their solution is a rotation, once round in a time of $2\pi$:
#
# $$
# \begin{pmatrix}\theta(t)\\ r(t)\end{pmatrix} = \begin{pmatrix}\cos t & \sin t\\ -\sin t & \cos t\end{pmatrix}\begin{pmatrix}\theta(0)\\ r(0)\end{pmatrix}.
# $$ (eq-rotation)
#
# {numref}`fig-ball` follows it through the bowl.
# At the rim the ball stands still, and all its energy is height; at the bottom all its energy is motion.
# In the plane of $\theta$ and $r$ the state goes round a circle, because the energy, half the squared distance from the middle, stays the same.


# %% mystnb={"figure": {"caption": "A ball in the bowl $U = \\tfrac12\\theta^2$, let go at $\\theta = -1.4$, at four times. Upper: the ball in the landscape; the arrow is its momentum, the dashed line its total energy. Lower: the same ball in the plane of position and momentum, with its path so far.", "name": "fig-ball"}, "image": {"alt": "Four times side by side. Above, a ball in a bowl: at rest high on the left, then moving down to the right, fastest at the bottom, and slower on its way up. Below, the point of its position and momentum goes clockwise along a circle, from the left over the top."}} tags=["hide-input"]
line = torch.linspace(-1.9, 1.9, 100)
figure, panels = plt.subplots(2, 4, figsize=(5.6, 3.2), sharey="row", sharex=True)
for number, (landscape, phase) in enumerate(panels.T):
    time = torch.linspace(0, number * torch.pi / 4 + 1e-3, 100)
    path_so_far = -1.4 * time.cos(), 1.4 * time.sin()
    x, r = (float(values[-1]) for values in path_so_far)
    landscape.plot(line, line**2 / 2, color=TRUTH)
    landscape.axhline(1.4**2 / 2, color=TRUTH, ls="--", lw=0.8)
    landscape.plot(x, x**2 / 2 + 0.07, "o", ms=7, color=COLOURS["HMC"])
    if number > 0:
        ends = (x + 0.8 * r, x**2 / 2 + 0.07), (x, x**2 / 2 + 0.07)
        landscape.annotate("", *ends, arrowprops={"arrowstyle": "-|>", "color": "k"})
    landscape.set_title(f"$t$ = {('0', 'π/4', 'π/2', '3π/4')[number]}", fontsize=9)
    landscape.set(ylim=(-0.05, 1.85), yticks=[0, 1])
    phase.plot(*path_so_far, lw=1, color=COLOURS["HMC"])
    phase.plot(x, r, "o", ms=7, color=COLOURS["HMC"])
    phase.set(xlabel=r"$\theta$", xlim=(-1.95, 1.95), ylim=(-1.95, 1.95))
    phase.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1], aspect="equal")
panels[0, 0].set_ylabel(r"energy $U$")
panels[1, 0].set_ylabel(r"momentum $r$")
plt.show()

# %% [markdown]
# Let $\Phi_t(\theta, r)$ be the state after a time $t$ from $(\theta, r)$, the *flow*, and let $F(\theta, r) = (\theta, -r)$ flip the momentum.
#
# ```{prf:theorem} What the flow conserves
# :label: thm-flow
#
# Let $U$ be twice continuously differentiable, and let solutions exist for all times. Then
#
# 1. *(energy)* $H(\Phi_t(\theta, r)) = H(\theta, r)$;
# 2. *(reversibility)* $\Phi_t^{-1} = F \circ \Phi_t \circ F$: flip the momentum, and the ball goes back on its path;
# 3. *(volume)* a cloud of states changes its shape, but not its volume: $\lvert\det D\Phi_t\rvert = 1$, with $D\Phi_t$ the Jacobian matrix of $\Phi_t$ with respect to the start.
# ```
#
# ```{prf:proof}
# *Energy.* $\frac{dH}{dt} = \nabla U^\top \dot\theta + r^\top M^{-1}\dot r = \nabla U^\top M^{-1} r - r^\top M^{-1}\nabla U = 0$.
#
# *Reversibility.* If $(\theta(t), r(t))$ solves {eq}`eq-hamilton`, so does $(\theta(-t), -r(-t))$: in each equation both sides change their sign, or neither does. Solutions are unique, so flip, flow, flip is the flow backwards.
#
# *Volume.* A small box of states grows along each axis at the rate at which the velocity changes along it, and these rates add up: a flow changes volumes at the rate of the divergence of its velocity field, here $(M^{-1}r, -\nabla U(\theta))$.
# The divergence is zero, because the first part does not depend on $\theta$ and the second does not depend on $r$.
# ```
#
# A sampler needs all three.
# Without the first, the end of a long path would be improbable, and rejected.
# Without the second, a path there would have no path back, and detailed balance no second side.
# Without the third, the acceptance would need the factor by which the path squeezes volume.[^symplectic]
#
# [^symplectic]: The flow also conserves a finer thing than volume, the symplectic form, which has given its name to the integrators that conserve it: {prf:ref}`thm-flow-symplectic`.
#
# ## Leapfrog
#
# These equations can be solved for only a few potentials, so we take steps, made of drifts, which move the position while the momentum is held, and kicks, which change the momentum while the position is held.
#
# ```{prf:definition} Explicit Euler, symplectic Euler, leapfrog
# :label: def-integrators
#
# * *Explicit Euler*: $\theta' = \theta + \varepsilon M^{-1} r$, $\ r' = r - \varepsilon\nabla U(\theta)$. Both read the old state.
# * *Symplectic Euler*: $\theta' = \theta + \varepsilon M^{-1} r$, $\ r' = r - \varepsilon\nabla U(\theta')$. The kick reads the **new** position.
# * *Leapfrog*: half a kick $r_{1/2} = r - \tfrac\varepsilon2\nabla U(\theta)$, a drift $\theta' = \theta + \varepsilon M^{-1} r_{1/2}$, half a kick $r' = r_{1/2} - \tfrac\varepsilon2\nabla U(\theta')$.
# ```
#
# With $M = 1$, {term}`leapfrog` is the three lines at the head of this page.
# Its second half kick and the first of the next step are at the same position, so $L$ steps need only $L + 1$ gradients, nearly as few as Euler's ({ref}`ex-dynamics-write`).
#
# ```{prf:theorem} Leapfrog is reversible and conserves volume
# :label: thm-leapfrog
#
# Let $U$ be twice continuously differentiable, $\Psi_\varepsilon$ one leapfrog step and $F$ the flip of the momentum.
# For every step size $F \circ \Psi_\varepsilon \circ F \circ \Psi_\varepsilon$ is the identity, and $\lvert\det D\Psi_\varepsilon\rvert = 1$.
# ```
#
# ```{prf:proof}
# Write $K_h(\theta, r) = (\theta, r - h\nabla U(\theta))$ for a kick and $D_h(\theta, r) = (\theta + hM^{-1}r, r)$ for a drift: $\Psi_\varepsilon = K_{\varepsilon/2} D_\varepsilon K_{\varepsilon/2}$.
# Each is a shear: its Jacobian is triangular with ones on the diagonal, so its determinant is 1, and so is the product's.
# Flip, kick, flip is a kick backwards: $F K_h F = K_{-h} = K_h^{-1}$, and $F D_h F = D_{-h} = D_h^{-1}$.
# Insert $FF = I$ between the factors: $F\Psi_\varepsilon F = (FK_{\varepsilon/2}F)(FD_\varepsilon F)(FK_{\varepsilon/2}F) = K_{\varepsilon/2}^{-1} D_\varepsilon^{-1} K_{\varepsilon/2}^{-1} = \Psi_\varepsilon^{-1}$. An inverse takes the factors in the opposite order, and $K D K$ reads the same both ways.
# ```
#
# Symplectic Euler, $K_\varepsilon D_\varepsilon$, is a product of shears too and conserves volume, but it does not read the same backwards, and is not reversible.
# Explicit Euler neither conserves volume nor is it reversible.
# {numref}`fig-area` shows what volume means, in a double well $U = -2\theta^2 + \theta^4$, where the motion has no elementary formula.

# %% mystnb={"figure": {"caption": "A disc of states in the right half of the double well after 0 (black), 12, 24 and 36 steps of size 0.05, clockwise. Grey: contours of $H$, on which the exact dynamics runs.", "name": "fig-area"}, "image": {"alt": "Three phase planes with contour lines and a black disc, which moves clockwise and is drawn out into longer and thinner shapes. Explicit Euler's shapes grow and cross the contour lines outwards; the other two keep their area."}} tags=["hide-input"]
turn = torch.linspace(0, 2 * torch.pi, 2_001, dtype=torch.float64)[:, None]
disc = 1 + 0.2 * turn.cos(), 0.7 + 0.2 * turn.sin()
shapes = {
    name: [torch.cat(roll(well.gradient, *disc, 0.05, n), -1) for n in (12, 24, 36)]
    for name, roll in integrators.items()
}
figure, panels = plt.subplots(1, 3, figsize=(5.4, 3.6), sharex=True, sharey=True)
theta, r = torch.meshgrid(
    torch.linspace(0.1, 1.7, 120), torch.linspace(-1.7, 1.7, 120), indexing="ij"
)
levels = well.energy(theta.reshape(-1, 1)).reshape(theta.shape) + 0.5 * r**2
thin = {"colors": TRUTH, "linestyles": "solid", "linewidths": 0.5}
for axes, (name, shots) in zip(panels, shapes.items(), strict=True):
    axes.contour(theta, r, levels, levels=[-0.9, -0.7, -0.5, -0.3, -0.1], **thin)
    axes.fill(*torch.cat(disc, -1).T, color="black", alpha=0.6, lw=0)
    for shot in shots:
        axes.fill(*shot.T, color=COLOURS[name], alpha=0.7, lw=0)
    axes.set(xlabel=r"position $\theta$", aspect="equal")
    axes.set_title(name, fontsize=9)
panels[0].set_ylabel(r"momentum $r$")
plt.show()

# %% [markdown]
# The disc is drawn out, because states at different energies go round at different speeds, but two of the integrators keep its area.
# Explicit Euler multiplies areas by $1 + \varepsilon^2U''(\theta)$ at each step, which makes the last shape {c}`area-euler` times as large as the disc, where leapfrog's is {c}`area-leapfrog` times as large.
# And after 25 steps of 0.1, a flip of the momentum and 25 more, leapfrog is back at its start but for rounding, symplectic Euler only within {c}`back-symplectic`.


# %% tags=["hide-input"]
def area(points):
    """Area inside a closed polygon (points, 2), by the shoelace formula."""
    x, y = points.T
    return 0.5 * (x[:-1] * y[1:] - x[1:] * y[:-1]).sum().abs()


def return_error(roll):
    """Go 25 steps, flip the momentum, go 25 steps: how far from the start?"""
    theta, r = roll(well.gradient, *disc, 0.1, 25)
    theta, r = roll(well.gradient, theta, -r, 0.1, 25)
    return (theta - disc[0]).abs().max()


first = torch.pi * 0.2**2
exact = {"kind": "exact", "because": "a factor of 1 + ε²U'' a step, or of 1"}
check("area-leapfrog", area(shapes["leapfrog"][-1]) / first, near(1, 1e-3), **exact)
check(
    "area-euler", area(shapes["explicit Euler"][-1]) / first, near(1.951, 1e-3), **exact
)
back = "Leapfrog there and back, in the double well, misses the start by"
check("back-leapfrog", return_error(leapfrog), at_most(1e-11), kind="exact", says=back)
symplectic = return_error(symplectic_euler)
check("back-symplectic", symplectic, at_least(1e-2), kind="exact", digits=1)

# %% [markdown]
# ## The shadow
#
# Reversibility and volume are exact.
# What about energy?
# An explicit Euler step in the bowl is the matrix $\begin{pmatrix}1 & \varepsilon\\ -\varepsilon & 1\end{pmatrix}$, which lengthens every vector by $\sqrt{1+\varepsilon^2}$, because it follows the tangent and a tangent to a circle leads outwards.
# Its energy grows by the factor $1 + \varepsilon^2$ at each step: after 1,000 steps of 0.3 the ball is at a distance of $1.09^{500}$, which is {c}`euler`.
# A smaller step only delays this: at $\varepsilon = 0.03$ the 10,000 steps that take the same time still multiply the distance by $1.0009^{5{,}000} \approx 90$.
# And leapfrog's?


# %%
def slope(theta):  # of the bowl: ∇U(θ) = θ
    return theta


theta, r = leapfrog(slope, 0.0, 1.0, step_size=0.3, num_steps=1_000)
print("distance from the middle:", round((theta**2 + r**2) ** 0.5, 4))

# %% [markdown]
# It started at a distance of 1.
# Leapfrog does not conserve $H$ either, but it conserves something next to it, a {term}`shadow energy`.
#
# ```{prf:theorem} The conserved ellipses
# :label: thm-shadow
#
# In the bowl $U = \tfrac12\theta^2$ with $M = 1$ and $0 < \varepsilon < 2$,
# leapfrog conserves $\tilde H = \tfrac12\bigl(1 - \tfrac{\varepsilon^2}4\bigr)\theta^2 + \tfrac12 r^2$ exactly, and symplectic Euler $\tfrac12(\theta^2 + r^2) + \tfrac\varepsilon2\,\theta r$.
# ```
#
# ```{prf:proof}
# A leapfrog step is the matrix $\begin{pmatrix}c & \varepsilon\\ -\varepsilon k & c\end{pmatrix}$ with $c = 1 - \tfrac{\varepsilon^2}2$ and $k = 1 - \tfrac{\varepsilon^2}4$, and $c^2 + \varepsilon^2 k = 1$.
# Hence $k(c\theta + \varepsilon r)^2 + (cr - \varepsilon k\theta)^2 = k(c^2 + \varepsilon^2 k)\theta^2 + (c^2 + \varepsilon^2 k)r^2 = k\theta^2 + r^2$, because the mixed terms cancel.
#
# Symplectic Euler, drift first, has $\theta' = \theta + \varepsilon r$ and $r' = r - \varepsilon\theta'$.
# Twice its form at the old state is $\theta^2 + r^2 + \varepsilon\theta r = \theta(\theta + \varepsilon r) + r^2 = \theta\theta' + r^2$.
# Insert $\theta = \theta' - \varepsilon r$, and then $r = r' + \varepsilon\theta'$: it is $\theta'^2 + r(r - \varepsilon\theta') = \theta'^2 + (r' + \varepsilon\theta')r'$, twice the form at the new state.
# ```
#
# For $\varepsilon < 2$ the level sets of both forms are ellipses, and a path on an ellipse cannot run away: the last panel of {numref}`fig-three-integrators` is such an ellipse, that of $\varepsilon = 1.2$.
# This answers the guess: after 1,000 steps, or any number of them, leapfrog's ball is between 1 and $1/\sqrt{1 - \varepsilon^2/4} = 1.0114$ from the middle.
# The largest energy of 3,000 steps, over the first, is {c}`leapfrog-energy`.
# At $\varepsilon = 2$ the ellipse opens into two parallel lines; at 2.01, 200 steps take the ball to a distance of {c}`unstable`.
# In a bowl $U = \tfrac12a\theta^2$ the limit is $\varepsilon < 2/\sqrt a$, so **the steepest direction sets the step size**.
#
# {numref}`fig-energy` shows the energies, and in {numref}`fig-live-leapfrog` you can move $\varepsilon$ and watch the ellipse open.

# %% mystnb={"figure": {"caption": "The energy, as a multiple of the first, in steps of size 0.3. Upper: the first 120 steps, on a logarithmic scale. Lower: the last 60 of 3,000 steps; dashed, the bounds that the ellipses set.", "name": "fig-energy"}, "image": {"alt": "Above, on a logarithmic scale, explicit Euler's energy climbs in a straight line to above ten thousand in 120 steps, the other two stay at one. Below, after 3,000 steps, symplectic Euler's energy swings between 0.87 and 1.18 and leapfrog's between 1 and 1.02, each inside two dashed lines."}} tags=["hide-input"]
long = {name: path(name, 0.3, 3_000) for name in integrators}
energy = {name: points.pow(2).sum(-1) for name, points in long.items()}  # H / H₀
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.2, 4.8))
for name, values in energy.items():
    upper.semilogy(values[:121], color=COLOURS[name], label=name)
upper.axhline(1, color=TRUTH, zorder=0)
upper.set(xlabel="step", ylabel=r"energy $H / H_0$", ylim=(0.7, 1e5))
upper.legend(loc="upper left")
last = torch.arange(2_940, 3_001)
for name, bounds in (
    ("symplectic Euler", (1 / 1.15, 1 / 0.85)),
    ("leapfrog", (1, 1 / (1 - 0.3**2 / 4))),
):
    lower.plot(last, energy[name][last], "o-", ms=2.5, lw=1, color=COLOURS[name])
    for bound in bounds:
        lower.axhline(bound, color=COLOURS[name], ls="--", lw=0.8)
lower.set(xlabel="step", ylabel=r"energy $H / H_0$")
plt.show()

# %% tags=["hide-input"]
far, exact = path("explicit Euler", 0.3, 1_000)[-1].norm(), 1.09**500
check("euler", far, near(exact, 1e-6 * exact), kind="exact", digits=2)
largest = energy["leapfrog"].max()
check("leapfrog-energy", largest, near(1 / (1 - 0.3**2 / 4), 1e-4), kind="exact")
theta, r = long["leapfrog"].T
shadow = 0.5 * (1 - 0.3**2 / 4) * theta**2 + 0.5 * r**2
theta, r = long["symplectic Euler"].T
other_shadow = 0.5 * (theta**2 + r**2) + 0.3 / 2 * theta * r
check(
    "shadows",
    max((values - 0.5).abs().max() for values in (shadow, other_shadow)),
    at_most(1e-11),
    kind="exact",
    says="Over 3,000 steps the two shadow energies change at most by",
)
size = path("leapfrog", 2.01, 200)[-1].norm()  # a step just over the limit
check("unstable", size, at_least(1e3), kind="exact", digits=1)

# %% [markdown]
# ```{live} leapfrog
# :name: fig-live-leapfrog
# :alt: A circle in the phase plane with the leapfrog's points on it; the energy error of 200 steps, which stays below a bound; and the largest error against the step size, which rises to infinity at 2.
#
# Live: 200 leapfrog steps from $(0, 1)$ in the bowl. Above left, the exact circle, the points, and the ellipse of {prf:ref}`thm-shadow`; above right, the energy error of each step; below, the largest error against the step size.
# ```
#
# Outside of bowls, if $U$ is analytic, the steps are small and the path is bounded, a shadow is conserved up to an exponentially small error for exponentially long times {cite:p}`hairer2006`; that is why the energy error swings instead of growing.
# It also shrinks fast.
# Leapfrog costs one gradient a step, like Euler, but half the step makes a quarter of the error.
# The reason is symmetry: a step of $-\varepsilon$ exactly undoes a step of $\varepsilon$, and that forces the odd error terms to vanish ({prf:ref}`thm-leapfrog-order`).
#
# ## What such a ball samples
#
# Now let the ball explore the density $\pi(\theta) \propto e^{-U(\theta)}$.
# A ball never leaves its circle, so we stop it from time to time and draw a new momentum $r \sim N(0, 1)$.
# Which distribution of $\theta$ does this keep? We ask because with minibatches, from page 7 on, nothing will be rejected, and then this bias is all that is left of the integrator.
#
# Were the dynamics exact, it would keep $e^{-H(\theta, r)} = e^{-U(\theta)}e^{-r^2/2}$.
# The flow keeps this density because it carries each state to one of equal $H$ and does not squeeze the volume on the way; and a fresh $r$ keeps it because under $e^{-H}$ $r$ is $N(0, 1)$ and independent of $\theta$.
# In the bowl, leapfrog does the same for its shadow: it conserves $\tilde H$ and volume, and under $e^{-\tilde H}$ the momentum is again $N(0, 1)$ and independent.
# So the chain keeps $e^{-\tilde H}$, whose variance of $\theta$ is
#
# $$
# \frac1{1 - \varepsilon^2/4}
# $$ (eq-uncorrected-variance)
#
# for any number of steps ({prf:ref}`thm-uncorrected-hmc` has it for every Gaussian).
# At $\varepsilon = 0.1$ that is 1.0025.
# The 10,000 chains below, with 50 steps a sample, agree with this; but their standard error is about 0.004, so they could not tell it from 1. They make the second row of the scoreboard.


# %%
def roll_and_redraw(theta, step_size, num_steps, generator):
    """Roll 24 times, each with a fresh momentum; return θ after each (24, chains)."""
    samples = []
    for _ in range(24):
        r = torch.randn(theta.shape, generator=generator)
        theta, _ = leapfrog(slope, theta, r, step_size, num_steps)
        samples.append(theta)
    return torch.stack(samples)


start, generator = torch.zeros(10_000), torch.Generator().manual_seed(2)
show_row("leapfrog", roll_and_redraw(start, 0.1, 50, generator)[12:])

# %% [markdown]
# At $\varepsilon = 0.1$ the measured variance is {c}`leapfrog`; at $\varepsilon = 1$, in {numref}`fig-shadow-samples`, the difference can be seen.
# A path runs along an ellipse of $\tilde H$, not along a circle; a fresh momentum is a jump straight up or down, on to another ellipse.
# Both moves keep $e^{-\tilde H}$, so the samples have its variance, $\frac43$, and {c}`wide` is measured.


# %% mystnb={"figure": {"caption": "What a ball samples that rolls two leapfrog steps of size 1 and then gets a fresh momentum. Upper: eight such moves of one ball from the black dot; lines, its ellipse between the dots; dotted, the fresh momenta. Circles of $H$ in grey, ellipses of $\\tilde H$ dashed. Lower: samples of 10,000 balls (line), the density $\\pi$ (grey) and that of $\\tilde H$ (dashed).", "name": "fig-shadow-samples"}, "image": {"alt": "Above, a phase plane with two grey circles and two dashed ellipses a little wider than they. Blue arcs of a third of a turn are joined by vertical dotted lines. Below, a blue histogram that lies on a dashed bell, which is lower and wider than the grey one."}} tags=["hide-input"]
wide = roll_and_redraw(start, 1.0, 2, generator)[12:]
figure, (upper, lower) = plt.subplots(
    2, 1, figsize=(4.4, 5.8), sharex=True, height_ratios=(3, 2)
)
blue, root, turn = COLOURS["leapfrog"], 0.75**0.5, torch.linspace(0, 2, 50)
for level in (1, 2):
    upper.plot(level * angle.cos(), level * angle.sin(), color=TRUTH, lw=0.8)
    upper.plot(level / root * angle.cos(), level * angle.sin(), "k--", lw=0.8)
theta, r, momenta = 0.4, -1.1, torch.Generator().manual_seed(7)
upper.plot(theta, r, "ko", ms=6)
for _ in range(8):
    sine, cosine = (turn * torch.pi / 3).sin(), (turn * torch.pi / 3).cos()
    arc = theta * cosine + r / root * sine, r * cosine - root * theta * sine
    upper.plot(*arc, color=blue, lw=1)
    for num_steps in (0, 1, 2):
        upper.plot(*leapfrog(slope, theta, r, 1.0, num_steps), "o", ms=3, color=blue)
    theta, end = leapfrog(slope, theta, r, 1.0, 2)
    r = float(torch.randn((), generator=momenta))
    upper.plot((theta, theta), (end, r), "k:", lw=1)
upper.set(ylabel=r"momentum $r$", aspect="equal")
line = torch.linspace(-4, 4, 200)
plot_density(lower, bowl, -4, 4)
lower.plot(line, (-3 / 8 * line**2).exp() / (8 / 3 * torch.pi) ** 0.5, "k--", lw=0.8)
plot_histogram(lower, wide, torch.linspace(-4, 4, 81), color=blue, lw=1)
lower.set(xlabel=r"position $\theta$", ylabel="density")
plt.show()

# %% tags=["hide-input"]
check(
    "wide", wide.square().mean(), near(4 / 3), error=wide.square().mean(0).std() / 100
)

# %% [markdown]
# **To remember:** leapfrog is reversible and conserves volume exactly; in the bowl it also conserves a shadow next to $H$, and with fresh momenta it samples that shadow, for all but a few numbers of steps (the third change below is one of them).
# In other landscapes the shadow mixes position and momentum, so that fresh momenta do not keep it, and what is sampled depends on the number of steps, too.
#
# The variance $\frac43$ at $\varepsilon = 1$ is a bias that no number of samples removes.
# Can it be corrected without small steps?
# {doc}`The next page </book/tutorial/hamiltonian_monte_carlo>` combines the ball with the rejections of page 2.
#
# ## Change it
#
# * In the visible cell of `leapfrog` give the first kick the whole step and delete the second: this is symplectic Euler with the kick first. Its ellipse in {numref}`fig-three-integrators` slants, and its energy in {numref}`fig-energy` swings.
# * In the cell of {numref}`fig-three-integrators` write `1.8`, and then `2.01`, for `1.2`: the ellipse becomes long and thin, then it opens, and the points leave the picture.
# * In the visible cell of the row write `1.0, 3` for `0.1, 50`, but predict first. Three steps of size 1 turn by $3 \times 60$ degrees, from $\theta$ to $-\theta$ whatever $r$ is, so the chains never leave their start at 0. This is *resonance*, to which the next page returns.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-dynamics-write
#
# **Write it yourself.** ★
# The `leapfrog` of this page calls the gradient $2L$ times for $L$ steps.
# Write it with $L + 1$ calls, and count them.
#
# ```python
# def leapfrog(gradient, theta, r, step_size, num_steps=1):
#     """Roll a ball from position θ with momentum r, by num_steps + 1 gradients."""
#     ...
# ```
#
# Assignment 1 of {doc}`/book/practice/teaching` goes on from here, with a mass.
# ````
#
# ```{solution} ex-dynamics-write
# :class: dropdown
#
# Make each kick a whole one, except for the first and the last half:
#
#     r = r - step_size / 2 * gradient(theta)
#     for step in range(num_steps):
#         theta = theta + step_size * r
#         last = step == num_steps - 1
#         r = r - (step_size / 2 if last else step_size) * gradient(theta)
#     return theta, r
#
# This is what `sgmc.integrators.leapfrog` does; the next cell counts its calls and compares it with the function at the head of this page.
# ```


# %% tags=["hide-input"]
calls = []


def counted(theta):
    calls.append(theta)
    return well.gradient(theta)


theta, r = leapfrog(well.gradient, *disc, 0.05, 10)
there, moving = leapfrog_of_package(counted, *disc, 0.05, 10)
check(
    "package",
    torch.cat([theta - there, r - moving]).abs().max(),
    at_most(1e-13),
    kind="exact",
    says="Ten steps of the page's leapfrog and of the package's differ by",
)
check("calls", len(calls) == 11, kind="exact", says="The package's took 11 gradients")

# %% [markdown]
# ```{exercise}
# :label: ex-frequency
#
# **Ahead or behind?** ★★
# In the bowl the exact flow turns by the angle $\varepsilon$ in a step.
# By what angle does leapfrog turn?
# Does its ball run ahead of the exact one, or behind?
# ```
#
# ```{solution} ex-frequency
# :class: dropdown
#
# The step matrix has determinant 1 and trace $2 - \varepsilon^2$, so for $\varepsilon < 2$ it is similar to a rotation by an angle $\omega$ with $2\cos\omega = 2 - \varepsilon^2$, or $\sin\frac\omega2 = \frac\varepsilon2$.
# Then $\omega = 2\arcsin\frac\varepsilon2 > \varepsilon$: it runs ahead, by about $\varepsilon^3/24$ a step.
# ```
#
# ```{exercise}
# :label: ex-euler-hides
#
# **Choose the step.** ★★
# A run of length $t = 1{,}000$ in the bowl may change the energy by one per cent at most.
# Which step does explicit Euler need, which leapfrog, and how many gradients does each then take?
# Is explicit Euler cured by a small enough step?
# ```
#
# ```{solution} ex-euler-hides
# :class: dropdown
#
# Explicit Euler takes $t/\varepsilon$ steps, and $(1 + \varepsilon^2)^{t/\varepsilon} \approx e^{\varepsilon t}$ is 1.01 at $\varepsilon = 10^{-5}$: a hundred million gradients.
# Leapfrog's energy stays below $1/(1 - \varepsilon^2/4)$, which is 1.01 at $\varepsilon = 0.199$: about 5,000 gradients.
# Explicit Euler's error does vanish with $\varepsilon$, but for each $\varepsilon$ it grows exponentially with $t$; leapfrog's bound holds for ever.
# ```
#
# ## Further reading
#
# {cite:t}`neal2011` introduces these integrators for statisticians, and {cite:t}`hairer2006` is the reference on why symplectic ones work.
# {cite:t}`leimkuhler2016` carries drifts and kicks over to stochastic dynamics.
