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
# Level: first course · Reading: about 75 minutes, without the exercises · Running: about 15 seconds
# ```
#
# A ball that rolls in a bowl without friction goes far and never loses energy; this chapter makes a computer roll it.
#
# **You will learn** to
#
# * write down Hamilton's equations and solve them exactly for the simplest bowl,
# * prove three properties that a sampler will need: conservation of energy, reversibility, conservation of volume,
# * choose an integrator that keeps the last two exactly and the first almost, and see one that keeps none,
# * measure the order of an integrator's error.
#
# **You will need** derivatives, matrices and determinants. No physics.

# %%
import warnings

import matplotlib.pyplot as plt
import torch

from booklib.claims import claim
from booklib.figures import COLOURS, TRUTH, show_frames, use_style
from booklib.play import play
from sgmc.integrators import leapfrog
from sgmc.splittings.euler import explicit_euler, symplectic_euler
from sgmc.targets import DoubleWell, Gaussian

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Forward differentiation, further down, warns of what torch itself uses.
warnings.filterwarnings("ignore", message=r"`torch\.jit\.script` is deprecated")

# %% [markdown]
# ## Position, momentum, energy
#
# A random walk forgets at each step where it was going. A rolling ball does not: it has momentum, and the slope of the landscape steers it.
#
# Let $\theta \in \mathbb{R}^d$ be a position and $U(\theta)$ a *potential energy*: the height of the landscape at $\theta$. In the next chapter it will be minus the logarithm of a density.
# Give the ball a *momentum* $r \in \mathbb{R}^d$ and a *mass matrix* $M$, symmetric and positive definite; think of $M = I$ at first.
# Physicists write $q$ and $p$ for our $\theta$ and $r$.
#
# Two pictures show the same ball. One is the landscape, with the ball where it is. The other is the *phase plane*, a point with the coordinates $\theta$ and $r$: it tells where the ball is *and* where it goes.

# %% mystnb={"figure": {"caption": "A ball in the bowl $U = \\theta^2/2$, let go at $\\theta = -1.4$. Left: the ball in the landscape; the arrow is its momentum, the dashed line its total energy. Right: the same ball in the phase plane, with the path so far. The film has one full swing; the picture that stays is its end.", "name": "fig-ball"}} tags=["hide-input"]
bowl_line = torch.linspace(-1.9, 1.9, 100)


def draw_ball(frame, num_frames=13):
    """Draw the ball in the bowl and in the phase plane, a share of its swing done."""
    past = torch.linspace(0, 2 * torch.pi, num_frames)[: frame + 1]
    where, pace = -1.4 * past.cos(), 1.4 * past.sin()
    figure, (landscape, phase) = plt.subplots(1, 2, figsize=(5, 2.6))
    landscape.plot(bowl_line, bowl_line**2 / 2, color=TRUTH)
    landscape.axhline(1.4**2 / 2, color=TRUTH, ls="--", lw=0.8)
    landscape.plot(where[-1], where[-1] ** 2 / 2 + 0.07, "o", ms=9, color="#0072B2")
    if abs(pace[-1]) > 0.1:
        landscape.annotate(
            "",
            (where[-1] + 0.6 * pace[-1], where[-1] ** 2 / 2 + 0.07),
            (where[-1], where[-1] ** 2 / 2 + 0.07),
            arrowprops={"arrowstyle": "-|>", "color": "black", "lw": 1},
        )
    landscape.set(xlabel=r"position $\theta$", ylabel=r"energy $U$", ylim=(-0.05, 1.85))
    landscape.set(xticks=[-1, 0, 1], yticks=[0, 1])
    arc = torch.linspace(0, float(past[-1]), 200)
    phase.plot(-1.4 * arc.cos(), 1.4 * arc.sin(), lw=1, color="#0072B2")
    phase.plot(where, pace, "o", ms=3, color="#0072B2")
    phase.plot(where[-1], pace[-1], "o", ms=9, color="#0072B2")
    phase.set(
        xlabel=r"position $\theta$",
        ylabel=r"momentum $r$",
        xlim=(-1.9, 1.9),
        ylim=(-1.9, 1.9),
        xticks=[-1, 0, 1],
        yticks=[-1, 0, 1],
        aspect="equal",
    )
    return figure


show_frames(
    (draw_ball(frame) for frame in range(13)),
    "Left, a ball rolls down one side of a bowl, fastest at the bottom, up the other "
    "side to the height from which it started, and back. Right, the point of its "
    "position and momentum goes once round a circle, clockwise.",
    seconds=0.25,
)

# %% [markdown]
# Play {numref}`fig-ball`. At the rim of its swing the ball stands still, and all its energy is height; at the bottom the height is gone, and all its energy is motion.
# In the phase plane this exchange is a circle. The point on it never comes closer to the middle and never moves away: nothing is lost.
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
# The pair $z = (\theta, r)$ is the *state*; the space of states has $2d$ dimensions.
# The map that follows the equations from time $0$ to time $t$ is the *flow*, $\Phi_t(\theta, r)$.
#
# ```{prf:theorem} What the flow keeps
# :label: thm-flow
#
# Let $U$ be twice continuously differentiable, and let solutions exist for all times. With the Jacobian $D\Phi_t$, the matrix of the derivatives of $\Phi_t$ by the start:
#
# 1. *(energy)* $H(\Phi_t(\theta, r)) = H(\theta, r)$;
# 2. *(reversibility)* with the flip $F(\theta, r) = (\theta, -r)$ of the momentum, the flow run backwards is $\Phi_t^{-1} = F \circ \Phi_t \circ F$;
# 3. *(volume)* $\lvert\det D\Phi_t\rvert = 1$;
# 4. *(symplecticness)* $D\Phi_t^\top J\, D\Phi_t = J$ with $J = \begin{pmatrix} 0 & I \\ -I & 0 \end{pmatrix}$.
# ```
#
# ```{prf:proof}
# *Energy.* By the chain rule $\frac{dH}{dt} = \nabla U^\top \dot\theta + r^\top M^{-1}\dot r = \nabla U^\top M^{-1} r - r^\top M^{-1}\nabla U = 0$.
#
# *Reversibility.* If $(\theta(t), r(t))$ solves {eq}`eq-hamilton`, set $\bar\theta(s) = \theta(t - s)$ and $\bar r(s) = -r(t - s)$.
# Then $\frac{d\bar\theta}{ds} = -M^{-1} r(t-s) = M^{-1}\bar r$ and $\frac{d\bar r}{ds} = -\nabla U(\bar\theta)$, so the reversed path with the flipped momentum is a solution too.
# It starts at $F\Phi_t(\theta, r)$ and is at $F(\theta, r)$ after a time $t$: $\Phi_t F \Phi_t = F$, which is the statement because $F^{-1} = F$.
#
# *Symplecticness and volume.* The equations are $\dot z = J\nabla H(z)$ for $z = (\theta, r)$, that is $\frac{d}{dt}\Phi_t(z) = J\,\nabla H(\Phi_t(z))$ for every start $z$. Differentiate both sides with respect to the start. On the left this gives $\frac{d}{dt}S_t$ with the Jacobian $S_t = D\Phi_t(z)$; on the right, by the chain rule, $J$ times the second derivative $\nabla^2H$ at $\Phi_t(z)$ times $S_t$. So $\dot S = J\,\nabla^2 H\, S$, and $S_0 = I$ because $\Phi_0(z) = z$.
# Now $\frac{d}{dt} S^\top J S = S^\top \nabla^2 H J^\top J S + S^\top J J \nabla^2 H S$. The two terms cancel, because $J^\top J = I$ and $J^2 = -I$. So $S^\top JS$ stays what it was at time $0$, which is $J$.
# Take determinants: $(\det S)^2\det J = \det J$, so $(\det S)^2 = 1$.
# ```
#
# What the four mean: the ball stays on a contour line of $H$; a film of it can be shown backwards and is still a film of a rolling ball; a cloud of balls may change its shape, but not its volume in the space of states.
# The fourth is stronger than the third when $d > 1$: it conserves not only the volume of a cloud, but the sum of the areas of its projections on the planes $(\theta_i, r_i)$, counted with their sign. For $d = 1$ they are the same. Symplecticness is why the integrators below behave well for long times.
#
# ## A bowl that can be solved
#
# For $U(\theta) = \tfrac12\theta^2$ and $M = 1$ the equations are $\dot\theta = r$, $\dot r = -\theta$, with the solution
#
# $$
# \begin{pmatrix}\theta(t)\\ r(t)\end{pmatrix} = \begin{pmatrix}\cos t & \sin t\\ -\sin t & \cos t\end{pmatrix}\begin{pmatrix}\theta(0)\\ r(0)\end{pmatrix},
# $$ (eq-rotation)
#
# a rotation, clockwise and once round in a time of $2\pi$: the circle of {numref}`fig-ball`. It keeps $H = \tfrac12(\theta^2 + r^2)$, half the squared radius, and it keeps areas. To go back, flip $r$ and turn on: the mirror image of the path.
#
# ## Three integrators
#
# Few potentials can be solved, so we take steps of size $\varepsilon$. The three schemes below use the same ingredients in different orders: *drifts*, which move the position with the momentum held, and *kicks*, which change the momentum with the position held.
#
# ```{prf:definition} Explicit Euler, symplectic Euler, leapfrog
# :label: def-integrators
#
# * *Explicit Euler*: $\theta' = \theta + \varepsilon M^{-1} r$, $\ r' = r - \varepsilon\nabla U(\theta)$. Both read the old state.
# * *Symplectic Euler*: $\theta' = \theta + \varepsilon M^{-1} r$, $\ r' = r - \varepsilon\nabla U(\theta')$. The kick reads the **new** position.
# * *Leapfrog*: half a kick $r_{1/2} = r - \tfrac\varepsilon2\nabla U(\theta)$, a drift $\theta' = \theta + \varepsilon M^{-1} r_{1/2}$, half a kick $r' = r_{1/2} - \tfrac\varepsilon2\nabla U(\theta')$.
# ```
#
# Here is leapfrog as the package has it:
#
# ```{literalinclude} ../../sgmc/integrators.py
# :language: python
# :pyobject: leapfrog
# :start-at: position, momentum = position.clone
# :prepend: "def leapfrog(gradient, position, momentum, step_size, num_steps=1, mass=1.0):"
# ```
#
# As in PyTorch, a name that ends with `_` changes its first tensor in place: `addmv_` adds $\varepsilon M^{-1}r$ to the position, `sub_` takes the kick off the momentum.
# The half kick that ends a step and the one that begins the next fall on the same point, and the code gives them as one: $L$ steps take $L + 1$ gradients, nearly as few as the other two schemes.
#
# Start at $(0, 1)$ with $\varepsilon = 0.3$. Take 20 steps, which is a time of 6 and nearly once round; then 3,000 steps, more than a hundred times round.

# %%
bowl = Gaussian.standard(1, dtype=torch.float64)
integrators = {
    "explicit Euler": explicit_euler,
    "symplectic Euler": symplectic_euler,
    "leapfrog": leapfrog,
}


def path(integrator, step_size, num_steps, potential=bowl, start=(0.0, 1.0)):
    """Follow one integrator from the start; return the points (num_steps + 1, 2)."""
    position, momentum = (torch.tensor([[x]], dtype=torch.float64) for x in start)
    points = [torch.cat([position, momentum], -1)]
    for _ in range(num_steps):
        position, momentum = integrator(
            potential.gradient, position, momentum, step_size
        )
        points.append(torch.cat([position, momentum], -1))
    return torch.cat(points)


short = {name: path(integrator, 0.3, 20) for name, integrator in integrators.items()}
long = {name: path(integrator, 0.3, 3_000) for name, integrator in integrators.items()}

# %% mystnb={"figure": {"caption": "Twenty steps of size 0.3 from $(0, 1)$ in the bowl $U = \\theta^2/2$. The exact path is the grey circle, the black dot the start. Explicit Euler spirals outwards, symplectic Euler runs round an ellipse, leapfrog stays close to the circle.", "name": "fig-three-integrators"}, "image": {"alt": "Three phase planes with a grey circle. Explicit Euler's points leave the circle at once and spiral outwards to more than twice its radius; symplectic Euler's follow a slanted ellipse about it; leapfrog's lie nearly on it."}} tags=["hide-input"]
figure, panels = plt.subplots(1, 3, figsize=(5.4, 2.5), sharex=True, sharey=True)
angle = torch.linspace(0, 2 * torch.pi, 200)
for axes, (name, points) in zip(panels, short.items(), strict=True):
    axes.plot(angle.cos(), angle.sin(), color=TRUTH)
    axes.plot(*points.T, "o-", ms=3, lw=1, color=COLOURS[name])
    axes.plot(*points[0], "ko", ms=5)
    axes.set(xlabel=r"position $\theta$", aspect="equal", xlim=(-2.3, 2.3))
    axes.set(ylim=(-2.3, 2.3))
    axes.set_title(name, fontsize=9)
panels[0].set_ylabel(r"momentum $r$")
plt.show()

# %% [markdown]
# {numref}`fig-three-integrators` shows it to the eye: the points of explicit Euler leave the grey circle at once, the others stay by it. Energies say it exactly.
# An explicit Euler step in this bowl is the matrix $\begin{pmatrix}1 & \varepsilon\\ -\varepsilon & 1\end{pmatrix}$, which lengthens every vector by $\sqrt{1+\varepsilon^2}$: the energy grows by the factor $1 + \varepsilon^2$ at each step, for any $\varepsilon$ however small.
# It goes along the tangent, and a tangent to a circle leads outwards.

# %%
energy = {name: 0.5 * points.pow(2).sum(-1) for name, points in long.items()}

# %% tags=["hide-input"]
claim(
    "After 20 steps of size 0.3 explicit Euler's energy has grown by the factor (1 + "
    "ε²)²⁰",
    energy["explicit Euler"][20] / energy["explicit Euler"][0],
    near=1.09**20,
    within=1e-9,
    because="exact algebra",
    kind="exact",
)
claim(
    "Over 3,000 steps symplectic Euler's energy stays below this multiple of the first",
    energy["symplectic Euler"].max() / 0.5,
    at_most=1.177,
    because=(
        "the conserved ellipse, derived next, gives 1/(1 − ε/2) = 1.1765 at the largest"
    ),
    kind="exact",
)
claim(
    "Over 3,000 steps leapfrog's energy error relative to the start stays below",
    (energy["leapfrog"] - 0.5).abs().max() / 0.5,
    at_most=0.0231,
    because=(
        "the conserved ellipse, derived next, gives 1/(1 − ε²/4) − 1 = 0.0230 at the "
        "largest"
    ),
    kind="exact",
)

# %% [markdown]
# ## Why two of them work: a shadow
#
# Symplectic Euler and leapfrog do not keep $H$. They keep something close to it, a *shadow* of $H$.
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
# For $\varepsilon < 2$ both forms are positive definite: their level sets are ellipses, and a path on an ellipse cannot run away. At $\varepsilon = 2$ the ellipse opens, which is the stability limit; for a bowl $U = \tfrac12 a\theta^2$ the limit is $\varepsilon < 2/\sqrt a$: **the steepest direction sets the step size**.
# The name is apt: {prf:ref}`thm-shadow-exact` shows that leapfrog is the *exact* dynamics of a slightly different oscillator.
# For a general potential the shadow exists only as an asymptotic series in $\varepsilon$; but if $U$ is analytic and the path stays bounded, its first terms are nearly kept for times that grow exponentially with $1/\varepsilon$ {cite:p}`hairer2006`. That is why the energy error of a symplectic method oscillates rather than grows.

# %%
theta, r = long["symplectic Euler"].T
shadow = {"symplectic Euler": 0.5 * (theta**2 + r**2) + 0.3 / 2 * theta * r}
theta, r = long["leapfrog"].T
shadow["leapfrog"] = 0.5 * (1 - 0.3**2 / 4) * theta**2 + 0.5 * r**2
unstable = path(leapfrog, 2.01, 200)  # a step just over the limit

# %% mystnb={"figure": {"caption": "The energy, as a multiple of the first, in steps of size 0.3. Above: the first 120 steps, on a logarithmic scale; explicit Euler grows exponentially. Below: the last 60 of 3,000 steps; the other two still oscillate within the bounds of their shadows (dashed).", "name": "fig-energy"}, "image": {"alt": "Above, on a logarithmic scale, explicit Euler's energy climbs in a straight line to above ten thousand in 120 steps, the other two stay at one. Below, after 3,000 steps, symplectic Euler's energy swings between 0.87 and 1.18 and leapfrog's between 1 and 1.02, each inside two dashed lines."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(2, 1, figsize=(5.2, 5.4))
for name, values in energy.items():
    left.semilogy(values[:121] / values[0], color=COLOURS[name], label=name)
left.axhline(1, color=TRUTH, zorder=0)
left.set(xlabel="step", ylabel=r"energy $H / H_0$", ylim=(0.7, 1e5))
left.legend(loc="upper left")
last = torch.arange(2_940, 3_001)
for name, bounds in (
    ("symplectic Euler", (1 / 1.15, 1 / 0.85)),
    ("leapfrog", (1, 1 / (1 - 0.3**2 / 4))),
):
    right.plot(
        last,
        energy[name][last] / energy[name][0],
        "o-",
        ms=2.5,
        lw=1,
        color=COLOURS[name],
    )
    for bound in bounds:
        right.axhline(bound, color=COLOURS[name], ls="--", lw=0.8)
right.set(xlabel="step", ylabel=r"energy $H / H_0$")
plt.show()

# %% [markdown]
# {numref}`fig-energy` shows both. In its upper part explicit Euler's energy climbs a straight line on a logarithmic scale; in its lower part the energies of the other two, after thousands of steps, still swing between the bounds that their ellipses set.

# %% tags=["hide-input"]
for name, values in shadow.items():
    claim(
        f"Over 3,000 steps {name} keeps its shadow energy, with a largest error",
        (values - values[0]).abs().max(),
        at_most=1e-11,
        because="rounding of 3,000 steps in double precision",
        kind="exact",
    )
claim(
    "At a step just over the limit leapfrog's position or momentum has grown beyond",
    unstable[-1].abs().max(),
    at_least=1e3,
    because="an eigenvalue of the step matrix is -1.22, and 1.22²⁰⁰ is 10¹⁷",
    kind="exact",
)

# %% [markdown]
# Drive it yourself in {numref}`fig-live-leapfrog`: move $\varepsilon$, and watch the ellipse open at the limit.
#
# ```{live} leapfrog
# :name: fig-live-leapfrog
# :alt: A circle in the phase plane with the leapfrog's points on it; the energy error of 200 steps, which stays below a bound; and the largest error against the step size, which rises to infinity at 2.
#
# Live: 200 leapfrog steps from $(0, 1)$ in the bowl $U = \tfrac12\theta^2$. Above left, the exact circle, the points, and the ellipse of {prf:ref}`thm-shadow`; above right, the energy error of each step; below, the largest error against the step size.
# ```
#
# ## Reversible and volume-preserving, exactly
#
# Energy is kept only nearly. The other two properties hold exactly, for any potential and any step size, and they are the ones that a sampler cannot do without.
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
# (Leapfrog is also symplectic, {prf:ref}`thm-leapfrog-symplectic`.) Symplectic Euler, $K_\varepsilon D_\varepsilon$, is a product of shears too and keeps volume, but it does not read the same backwards: it is not reversible. Explicit Euler is neither.
# We let the double well $U = -2\theta^2 + \theta^4$ decide, whose dynamics no formula solves: go 25 steps, flip the momentum, go 25 steps, flip again, and compare with the start; and take the determinant of a step's Jacobian, by automatic differentiation.

# %%
well = DoubleWell()
position = torch.linspace(-1.5, 1.5, 7, dtype=torch.float64)[:, None]
momentum = torch.linspace(1.0, -1.0, 7, dtype=torch.float64)[:, None]


def return_error(integrator, num_steps=25, step_size=0.1):
    """Go forward, flip the momentum, go forward again, flip: how far from the start?"""
    there = integrator(well.gradient, position, momentum, step_size, num_steps)
    back = integrator(well.gradient, there[0], -there[1], step_size, num_steps)
    return float((back[0] - position).abs().max())


def determinant(integrator, step_size=0.1):
    """Compute det DΨ at one state by forward automatic differentiation."""

    def step(state):
        moved = integrator(
            lambda x: 4 * x**3 - 4 * x, state[:1, None], state[1:, None], step_size
        )
        return torch.cat(moved).flatten()

    return float(
        torch.linalg.det(
            torch.func.jacfwd(step)(torch.tensor([0.7, -0.4], dtype=torch.float64))
        )
    )


# %% tags=["hide-input"]
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
    "Leapfrog's Jacobian has determinant",
    determinant(leapfrog),
    near=1,
    within=1e-13,
    because="a product of shears",
    kind="exact",
)
claim(
    "Symplectic Euler's Jacobian has determinant",
    determinant(symplectic_euler),
    near=1,
    within=1e-13,
    because="a product of shears",
    kind="exact",
)
claim(
    "Explicit Euler's Jacobian has determinant",
    determinant(explicit_euler),
    near=1 + 0.1**2 * (12 * 0.7**2 - 4),
    within=1e-13,
    because="det = 1 + ε²U''(θ)",
    kind="exact",
)

# %% [markdown]
# What a determinant of one looks like: take a whole disc of states, and move each by 36 steps of size 0.05 ({numref}`fig-area`).

# %%
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
grown = {name: area(shots[-1]) / area(shots[0]) for name, shots in snapshots.items()}

# %% mystnb={"figure": {"caption": "A disc of states in the right half of the double well after 0 (black), 12, 24 and 36 steps of size 0.05, clockwise. Grey: contours of H, on which the exact dynamics runs.", "name": "fig-area"}, "image": {"alt": "Three phase planes with contour lines and a black disc, which moves clockwise and is drawn out into longer and thinner shapes. Explicit Euler's shapes grow and cross the contour lines outwards; the other two keep their area."}} tags=["hide-input"]
figure, panels = plt.subplots(1, 3, figsize=(5.4, 4), sharex=True, sharey=True)
theta, r = torch.meshgrid(
    torch.linspace(0.1, 1.7, 120), torch.linspace(-1.7, 1.7, 120), indexing="ij"
)
levels = well.energy(theta.reshape(-1, 1)).reshape(theta.shape) + 0.5 * r**2
for axes, (name, shots) in zip(panels, snapshots.items(), strict=True):
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

# %% [markdown]
# In {numref}`fig-area` states at different energies go round at different speeds, so the disc is drawn out into a bent and narrow shape; but two of the integrators keep its area. Only explicit Euler's last shape is larger than the disc.

# %% tags=["hide-input"]
for name in ("leapfrog", "symplectic Euler"):
    claim(
        f"Area of the disc after 36 steps of {name}, over the first",
        grown[name],
        near=1,
        within=1e-3,
        because="areas are kept; a polygon of 2,000 corners stands for the disc",
        kind="exact",
    )
claim(
    "Area of the disc after 36 steps of explicit Euler, over the first",
    grown["explicit Euler"],
    at_least=1.5,
    because=(
        "each step multiplies areas by 1 + ε²U''(θ), 1.02 at the bottom of the well, "
        "and 1.02³⁶ is 2.04"
    ),
    kind="exact",
)

# %% [markdown]
# ## The order of the error
#
# Halve the step: by how much does the error of the energy fall?
# A method is *of order $p$* if, as $\varepsilon \to 0$, the error after a fixed time is at most a constant times $\varepsilon^p$.
# Leapfrog has order two ({prf:ref}`thm-leapfrog-order`), for the price of order one: a scheme that is undone by a step of $-\varepsilon$ cannot have an odd order {cite:p}`hairer2006`.
# We measure the largest energy error over a time of 4 from $(0, 1)$ in the double well; the slope is that between the third-smallest and the smallest step.

# %%
step_sizes = 0.04 * 0.5 ** torch.arange(7, dtype=torch.float64)


def energy_error(integrator, step_size):
    points = path(integrator, step_size, round(4 / step_size), well, start=(0.0, 1.0))
    values = well.energy(points[:, :1]) + 0.5 * points[:, 1] ** 2
    return (values - values[0]).abs().max()


errors = {
    name: torch.stack([energy_error(f, float(h)) for h in step_sizes])
    for name, f in integrators.items()
}
slopes = {
    name: float((e[-1] / e[-3]).log() / (step_sizes[-1] / step_sizes[-3]).log())
    for name, e in errors.items()
}

# %% mystnb={"figure": {"caption": "Largest energy error over a time of 4 in the double well against the step size. Grey, dashed: slopes one and two.", "name": "fig-order"}, "image": {"alt": "A log-log plot of the energy error against the step size with three straight lines: explicit and symplectic Euler run parallel to a dashed line of slope one, leapfrog, far below, to one of slope two."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.6))
for name, values in errors.items():
    axes.loglog(step_sizes, values, "o-", ms=4, color=COLOURS[name], label=name)
axes.loglog(step_sizes, 8 * step_sizes, "--", color=TRUTH)
axes.loglog(step_sizes, 2 * step_sizes**2, "--", color=TRUTH)
axes.set(xlabel=r"step size $\varepsilon$", ylabel=r"largest error of $H$")
axes.legend()
plt.show()

# %% [markdown]
# In {numref}`fig-order` both axes are logarithmic, so that the order is the slope: leapfrog's line is twice as steep as the other two.

# %% tags=["hide-input"]
for name, order in (("explicit Euler", 1), ("symplectic Euler", 1), ("leapfrog", 2)):
    claim(
        f"The energy error of {name} has order",
        slopes[name],
        near=order,
        within=0.1,
        because=(
            "theory; at the smallest steps the next power of ε still adds a few "
            "hundredths"
        ),
        kind="exact",
    )

# %% [markdown]
# ## In practice
#
# * Use leapfrog: it costs hardly more than Euler.
# * The step size must be below $2/\sqrt{a}$ for the largest curvature $a$; a mass matrix $M \approx \nabla^2 U$ makes all curvatures alike.
# * Test an integrator by going there and back, which finds a wrong half step or a wrong order at once. If the energy error grows along the path rather than oscillating, look for a bug, or take a smaller step.
# * With a *noisy* gradient there is no energy left to conserve: each kick belongs to another landscape, and the way back meets other kicks than the way there. That is how the naive algorithm with stochastic gradients will fail.
#
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | Hamiltonian | $H(\theta, r) = U(\theta) + \frac12r^\top M^{-1}r$ | {prf:ref}`def-hamiltonian` |
# | Hamilton's equations | $\dot\theta = M^{-1}r$, $\dot r = -\nabla U(\theta)$ | {eq}`eq-hamilton` |
# | what the flow keeps | $H$; reversibility; $\lvert\det D\Phi_t\rvert = 1$ | {prf:ref}`thm-flow` |
# | leapfrog | half a kick, a drift, half a kick | {prf:ref}`def-integrators` |
# | what it keeps | reversibility; $\lvert\det D\Psi_\varepsilon\rvert = 1$ | {prf:ref}`thm-leapfrog` |
# | its shadow in the bowl | $\frac12\bigl(1 - \frac{\varepsilon^2}4\bigr)\theta^2 + \frac12r^2$ | {prf:ref}`thm-shadow` |
# | its limit of stability | $\varepsilon < 2/\sqrt a$ for the largest curvature $a$ | {prf:ref}`thm-shadow` |
#
# ## Change it
#
# * Write `path(leapfrog, 1.99, 200)` for `path(leapfrog, 2.01, 200)`: a step just *under* the limit. The path no longer runs away, so the claim that it grows shows ✗.
# * In `return_error` write `step_size=0.2` for `step_size=0.1`. Leapfrog still comes back to its start to within rounding, and symplectic Euler misses it by more: no claim breaks, because reversibility holds for every step size.
# * In `short` write `path(integrator, 0.9, 20)` for `path(integrator, 0.3, 20)`. In {numref}`fig-three-integrators` symplectic Euler's ellipse leans further, leapfrog's points lie on an ellipse that one can see, and explicit Euler leaves the frame.
#
# ## Exercises
#
# ````{exercise} Write it yourself
# :label: ex-dynamics-write
#
# Write one step of each of the three integrators, with mass one, straight from {prf:ref}`def-integrators`.
#
# ```python
# def one_explicit_step(gradient, theta, r, step_size):
#     return ..., ...  # the new position, the new momentum
#
#
# def one_symplectic_step(gradient, theta, r, step_size):
#     return ..., ...
#
#
# def one_leapfrog_step(gradient, theta, r, step_size):
#     return ..., ...
# ```
#
# Take care which $\theta$ the gradient reads. Test them by the three functions of the package.
# Assignment 1 of {doc}`/book/practice/teaching` goes on from here: many steps, and a mass.
# ````
#
# ```{solution} ex-dynamics-write
# :class: dropdown
#
# The code is in the next cell. The first two differ in one prime only.
# ```


# %% tags=["hide-input"]
def one_explicit_step(gradient, theta, r, step_size):
    return theta + step_size * r, r - step_size * gradient(theta)


def one_symplectic_step(gradient, theta, r, step_size):
    theta = theta + step_size * r
    return theta, r - step_size * gradient(theta)


def one_leapfrog_step(gradient, theta, r, step_size):
    r = r - step_size / 2 * gradient(theta)
    theta = theta + step_size * r
    return theta, r - step_size / 2 * gradient(theta)


by_hand = (one_explicit_step, one_symplectic_step, one_leapfrog_step)
claim(
    "Largest difference between a step by hand and the package's, three integrators",
    max(
        (mine - theirs).abs().max()
        for f, g in zip(by_hand, integrators.values(), strict=True)
        for mine, theirs in zip(
            f(well.gradient, position, momentum, 0.1),
            g(well.gradient, position, momentum, 0.1),
            strict=True,
        )
    ),
    at_most=1e-13,
    because="the same formulas; rounding",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-drift-first
#
# Leapfrog may also be written drift–kick–drift, $D_{\varepsilon/2}K_\varepsilon D_{\varepsilon/2}$. Show that it is reversible and keeps volume. What does it conserve in the bowl $U = \tfrac12\theta^2$?
# ```
#
# ```{solution} ex-drift-first
# :class: dropdown
#
# The proof of {prf:ref}`thm-leapfrog` only uses that each factor is a shear that the flip inverts, and that the order is a palindrome. Exchanging the roles of $\theta$ and $r$ turns one scheme into the other, so it conserves $\tfrac12\theta^2 + \tfrac12(1 - \tfrac{\varepsilon^2}4)r^2$.
# ```
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
# :label: ex-euler-hides
#
# Explicit Euler's energy grows by the factor $1 + \varepsilon^2$ a step. Is it cured by a small enough step?
# ```
#
# ```{solution} ex-euler-hides
# :class: dropdown
#
# Over a fixed time $t$ there are $t/\varepsilon$ steps, and $(1 + \varepsilon^2)^{t/\varepsilon} \approx e^{\varepsilon t}$: the error vanishes with $\varepsilon$, at order one. But for each $\varepsilon$ it grows exponentially with $t$. For $t = 1{,}000$ and an error of one per cent, $\varepsilon = 10^{-5}$ would be needed. Leapfrog's energy error has the bound $1/(1 - \varepsilon^2/4) - 1$ for ever ({prf:ref}`thm-shadow`), which is below one per cent for $\varepsilon = 0.19$.
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
# {cite:t}`neal2011` introduces these integrators for statisticians, {cite:t}`hairer2006` is the reference on why symplectic ones work, and {cite:t}`leimkuhler2016` carries the splitting of this chapter over to stochastic dynamics.
