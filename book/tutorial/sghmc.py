# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Friction: stochastic-gradient HMC
#
# ```{div} page-head
# Page 8 of 12 · 30 minutes to read, 15 to play · Running: about 6 seconds
# ```
#
# ```{index} ! SGHMC, ! stochastic-gradient HMC
# ```

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt
import torch

from booklib.page.claims import at_most, check, near
from booklib.page.figures import COLOURS, TRUTH, plot_density, plot_histogram, use_style
from booklib.page.play import play
from booklib.page.scoreboard import exact_variance, show_scoreboard
from booklib.scores.diagnostics import expectation
from sgmc import sample
from sgmc.kernels import SGHMC, NaiveSGHMC
from sgmc.splittings import flows, langevin_chain, linear_chain, sghmc_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Some runs below sample the wrong temperature on purpose; sample would say so.
warnings.filterwarnings("ignore", message=".*too wide|.*do not agree")

# %% [markdown]
# The noise of a minibatch gradient pumps energy into Hamiltonian dynamics without end.
# On {doc}`page 7 </book/tutorial/naive_sghmc>` one inserted line, a friction force, bent that climb over.
# Where does the energy settle then, and can we make it settle where it should?
#
# {numref}`fig-sghmc-energy` shows the answer in the bowl $U = \tfrac12\theta^2$, where the correct mean energy is $E[H] = 1$.
# Without friction the energy climbs along a straight line.
# With friction it settles, but in one case too high.
# In the other it stays at 1, and comes back to 1 from a start that is five times too hot.


# %% mystnb={"figure": {"caption": "Exact mean energy in the bowl against time; $\\varepsilon = 0.1$, $V = 4$, $C = 0.5$. The grey line at 1 is correct.", "name": "fig-sghmc-energy"}, "image": {"alt": "Four labelled lines over a time of 20. Without friction the energy rises steadily from 1 to 5. With friction and no noise estimate it rises to 1.4 and stays there. With the right estimate it stays at 1, and from a hot start at 5 it falls to 1 within a time of ten."}} tags=["hide-input"]
def mean_energy(splitting, start, num_steps=200):
    """E[H] in the bowl after 0, 1, … steps from N(0, start · I), with V = 4."""
    chain = linear_chain(splitting, torch.eye(1), noise_variance=4.0)
    covariance = start * torch.eye(2, dtype=torch.float64)
    energies = [covariance.trace() / 2]
    for _ in range(num_steps):
        covariance = chain.transition @ covariance @ chain.transition.T
        covariance = covariance + chain.noise_covariance
        energies.append(covariance.trace() / 2)
    return torch.stack(energies)


# ε = 0.1 and V = 4, so B = ½εV = 0.2; the friction is C = 0.5.
energies = {
    "no friction": mean_energy([flows.Drift(0.1), flows.Kick(0.1)], 1.0),
    r"friction, $\hat B = 0$": mean_energy(flows.sghmc(0.1, 0.5), 1.0),
    r"friction, $\hat B = B$": mean_energy(flows.sghmc(0.1, 0.5, 0.2), 1.0),
    r"$\hat B = B$, hot start": mean_energy(flows.sghmc(0.1, 0.5, 0.2), 5.0),
}

figure, axes = plt.subplots(figsize=(5.4, 3.2))
time = 0.1 * torch.arange(201)
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
for (label, values), colour, style, height in zip(
    energies.items(),
    (COLOURS["naive SGHMC"], *3 * [COLOURS["SGHMC"]]),
    ("-", ":", "-", "--"),
    (4.6, 1.75, 0.55, 2.6),
    strict=True,
):
    axes.plot(time, values, style, color=colour)
    where = 3.6 if "hot" in label else 12.5
    axes.text(where, height, label, color=colour)
axes.set(xlabel="time", ylabel="mean energy $E[H]$", ylim=(0, 5.6), xlim=(0, 20))
axes.set_xticks(range(0, 21, 5))
plt.show()

# %% [markdown]
# *A guess before you read on.*
# The dotted line settles at 1.4, the friction is $C = 0.5$, and the gradient's noise has the diffusion $B = 0.2$.
# How might 1.4 come about?
#
# The scoreboard so far, with $\varepsilon = 0.1$ and the correct variance 1:

# %% tags=["hide-input"]
show_scoreboard(8)

# %% [markdown]
# ## Friction in balance with noise
#
# In a step of size $\varepsilon$ the momentum changes by $-\varepsilon\nabla\tilde U$, which is $-\varepsilon\nabla U$ and noise of variance $\varepsilon^2V$.
# Write this variance as $2B\varepsilon$ with
#
# $$
# B = \tfrac12\varepsilon V.
# $$ (eq-b)
#
# A variance that grows in proportion to the time $\varepsilon$ is what a Brownian motion leaves behind, and $B$ is its diffusion.
# It pumps in energy at the rate $\operatorname{tr}(M^{-1}B)$ ({prf:ref}`thm-pumping`), so something has to take energy out again.
# {term}`Friction <friction>` does: a force $-CM^{-1}r$ against the velocity, like air drag, where $C$ is a number or a symmetric positive definite matrix.
# Friction alone would bring the ball to rest, though, so it must come with noise of the right size.
# The gradient already brings some of that noise; we inject the rest:
#
# $$
# \begin{aligned}
# d\theta &= M^{-1}r\,dt,\\
# dr &= -\nabla U(\theta)\,dt - CM^{-1}r\,dt\\
# &\quad + N\bigl(0, 2(C - \hat B)dt\bigr) + N(0, 2B\,dt).
# \end{aligned}
# $$ (eq-sghmc)
#
# The last term is the gradient's, whether we want it or not.
# The one before it is ours, and $\hat B$ is the {term}`noise estimate`: what we believe $B$ to be. (To sample $e^{-U/T}$ one injects $TC - \hat B$ in place of $C - \hat B$.)
#
# How much noise is right?
# Friction removes energy at the rate $E[r^\top M^{-1}CM^{-1}r]$.
# In equilibrium $E[rr^\top] = M$, so this rate is $\operatorname{tr}(M^{-1}C)$, which is exactly what noise with the diffusion $C$ brings in.
# The two noises above add up to the diffusion $C - \hat B + B$, so gains and losses balance if $\hat B = B$.
# The theorem says that then the whole density is in balance, and not only its energy.
#
# ```{prf:theorem} The target is stationary
# :label: thm-sghmc
#
# Let $U$ be smooth with $\int e^{-U} < \infty$.
# If $\hat B = B$, the density $\pi(\theta, r) \propto \exp(-U(\theta) - \tfrac12r^\top M^{-1}r)$ is stationary for {eq}`eq-sghmc`; its marginal in $\theta$ is the target.
# ```
#
# ```{prf:proof}
# The density $p_t$ of $z = (\theta, r)$ obeys the Fokker–Planck equation of {prf:ref}`thm-diffusion`.
# To write it in one line, collect the parts of {eq}`eq-sghmc`.
# With $H(z) = U(\theta) + \tfrac12r^\top M^{-1}r$ the drift of the equation is $-(D + Q)\nabla H$ and the noise has the diffusion $D$, where
#
# $$
# \begin{gathered}
# D = \begin{pmatrix}0 & 0\\ 0 & C\end{pmatrix}, \quad Q = \begin{pmatrix}0 & -I\\ I & 0\end{pmatrix},\\
# \nabla H = \begin{pmatrix}\nabla U\\ M^{-1}r\end{pmatrix}.
# \end{gathered}
# $$
#
# So the density changes by
#
# $$
# \begin{aligned}
# \partial_t p ={} &\nabla\cdot\bigl((D + Q)\nabla H\,p\bigr)\\
# &+ \nabla\cdot(D\nabla p).
# \end{aligned}
# $$ (eq-fokker-planck)
#
# Because $Q$ is constant and antisymmetric, $\nabla\cdot(Q\nabla p) = \sum_{ij}Q_{ij}\,\partial_i\partial_jp = 0$.
# We may therefore add it on the right, and the two terms become one:
#
# $$
# \partial_t p = \nabla\cdot\bigl((D + Q)(\nabla H\,p + \nabla p)\bigr).
# $$
#
# For $p = e^{-H}/Z$ we have $\nabla p = -\nabla H\,p$.
# The inner bracket vanishes, and $\partial_tp = 0$.
# ```
#
# If $U$ is bounded below, this stationary distribution is the only one, and every start leads to it ({prf:ref}`thm-unique-diffusion`).
# The proof also covers noise that depends on the position, if $\hat B(\theta) = B(\theta)$ everywhere; even $C$ may depend on $\theta$, because only the block of $D$ that belongs to $r$ is not zero, and a derivative with respect to $r$ does not act on $C(\theta)$.
# Indeed all dynamics with a positive semi-definite $D$ and an antisymmetric $Q$ keep $\pi$, with a correction where they vary ({prf:ref}`thm-recipe`), and {cite:t}`ma2015` show that under some conditions there are no other continuous ones.
#
# ## A wrong estimate is a wrong temperature
#
# Suppose the estimate is wrong, and take numbers for the matrices ({prf:ref}`thm-temperature` has the general case).
# Then the noise has the diffusion $C - \hat B + B$ where $C$ was needed.
# This is as if the noise were the right one at another {term}`temperature`,
#
# $$
# T_{\text{eff}} = \frac{C - \hat B + B}{C}.
# $$ (eq-temperature)
#
# Indeed the last term of {eq}`eq-fokker-planck` becomes $T_{\text{eff}}\nabla\cdot(D\nabla p)$. Add $T_{\text{eff}}\nabla\cdot(Q\nabla p) = 0$ as before: the bracket is now $\nabla H\,p + T_{\text{eff}}\nabla p$, and vanishes for $p \propto e^{-H/T_{\text{eff}}}$.
# The sampler is not lost, but it samples a density that is too wide ($\hat B < B$) or too narrow ($\hat B > B$).
# This answers the guess: with $\hat B = 0$ the temperature is $1 + B/C = 1 + 0.2/0.5 = 1.4$, and in the bowl $E[H] = \frac12T_{\text{eff}} + \frac12T_{\text{eff}}$ is the same number.
# Since $B = \tfrac12\varepsilon V$, the excess $B/C$ vanishes as the step gets small, or as the friction gets large.
#
# In {numref}`fig-live-sghmc` the two controls are $C$ and $\hat B$.
# Move them, and read the temperature off the width of the samples.
#
# ```{live} sghmc
# :name: fig-live-sghmc
# :alt: The path of one chain on the contours of a Gaussian; a histogram of the samples on the true density; the mean of theta squared, which comes to one; and the temperature against the noise estimate, a falling line that passes one where the estimate is right.
#
# Live: SGHMC in the bowl, $\varepsilon = 0.1$, $V = 4$, hence $B = 0.2$. In the bowl the mean of $\theta^2$ is the temperature, {eq}`eq-temperature`.
# ```
#
# ## The algorithm
#
# Take the equation in steps of $\varepsilon$: move the position, then let gradient, friction and noise change the momentum.
#
# ```{prf:algorithm} SGHMC
# :label: alg-sghmc
#
# **Inputs:** step size $\varepsilon$, friction $C$, noise estimate $\hat B \preceq C$, mass $M$, number of steps $m$
#
# Repeat for each sample:
#
# 1. optionally draw $r \sim N(0, M)$ afresh;
# 2. repeat $m$ times
#    1. $\theta \leftarrow \theta + \varepsilon M^{-1}r$
#    2. $r \leftarrow r - \varepsilon\nabla\tilde U(\theta) - \varepsilon CM^{-1}r + N(0, 2(C - \hat B)\varepsilon)$;
# 3. keep $\theta$.
# ```
#
# This is Algorithm 2 of {cite:t}`chen2014`.
# ($\hat B \preceq C$ says that $C - \hat B$ has no negative eigenvalue, since it becomes a variance.)
# No energy is computed and nothing is rejected, so nothing ever reads all the data.
# With $M = 1$ a step is three lines:


# %%
def sghmc_step(
    gradient, position, momentum, step_size, friction, noise_estimate, normal
):
    """One step of SGHMC, with standard normal numbers drawn beforehand."""
    position = position + step_size * momentum
    momentum = momentum - step_size * (gradient(position) + friction * momentum)
    noise_variance = 2 * (friction - noise_estimate) * step_size
    return position, momentum + noise_variance**0.5 * normal


# %% [markdown]
# The package's kernel is the same loop for many chains, with matrices for $C$, $M$ and $\hat B$:
#
# ````{admonition} The loop of the package
# :class: dropdown
#
# ```{literalinclude} ../../sgmc/kernels/sghmc.py
# :language: python
# :pyobject: SGHMC.trajectory
# :start-at: step_size = noise
# :dedent: 8
# ```
#
# `addmv_(x, A, y, alpha=a)` is $x \leftarrow x + aAy$.
# The random numbers of many steps are drawn beforehand, so that the loop is deterministic given these numbers: it can be tested on given noise, and compiled.
# ````
#
# We run it in the bowl, once without and once with the right estimate.

# %%
noisy_bowl = NoisyGradient(Gaussian.standard(1), 4.0)
rows = {}
for noise_estimate in (0.0, 0.2):
    kernel = SGHMC(0.1, friction=0.5, noise_estimate=noise_estimate, num_steps=50)
    draws = sample(
        kernel, noisy_bowl, torch.zeros(10_000, 1), num_samples=20, warm_up=4, seed=8
    )
    rows[noise_estimate] = draws.mean_and_standard_error(lambda x: x**2)

# %% [markdown]
# The measured variances are {c}`variance-0` without the estimate and {c}`variance-B` with it, where the exact distribution of the chain has {c}`exact-0` and {c}`exact-B`.
# The last digits, a quarter of a per cent, are the error of the step size, which we come to below.
# (SGLD's row, 1.025 without any estimate, is bought with time. The rows are variances, so count the gradients for an independent value of $\theta^2$, $\tau$ of {eq}`eq-tau`: at the same error, a quarter of a per cent, and with $\hat B = B$ in both, SGLD takes {c}`tau-sgld` and SGHMC {c}`tau-sghmc`.)

# %% tags=["hide-input"]
show_scoreboard(9)
for (value, error), name in zip(rows.values(), ("0", "B"), strict=True):
    exact = exact_variance(f"sghmc-{name}")
    check(f"exact-{name}", exact, kind="exact")
    check(f"variance-{name}", value, near(exact), error=error, because="it is exact")


def pace(chain):
    """Compute τ = 1 + 2Σρₖ² of θ²."""
    moves, law = chain.transition.double(), chain.stationary_covariance()
    first, moved = torch.kron(law[0], law[0]), torch.kron(moves, moves)
    return (
        2 * torch.linalg.solve(torch.eye(len(moved)) - moved, first)[0] / first[0] - 1
    )


one = torch.eye(1, dtype=torch.float64)
moving = sghmc_chain(one, 0.1, 0.5, 4.0, 0.2)
rate = 2 * (1 - 1 / float(moving.stationary_covariance()[0, 0]))  # of the same error
for name, chain in (
    ("sgld", langevin_chain(one, rate, 4.0, 2 * rate)),
    ("sghmc", moving),
):
    check(f"tau-{name}", pace(chain), kind="exact", digits=3)
expected = (1 + 20 * 0.2, 1 + 0.2 / 0.5, 1.0, 1.0)
check(
    "energies",
    max(abs(e[-1] / x - 1) for e, x in zip(energies.values(), expected, strict=True)),
    at_most(0.03),
    kind="exact",
    because="the step's own bias is of order ε² = 0.01",
    says="Largest relative distance of the four energies after a time of 20 from "
    "1 + 20B, 1 + B/C, 1 and 1",
)
noisy_bowl = NoisyGradient(Gaussian.standard(1, dtype=torch.float64), 4.0)
first = torch.zeros(1, 1, dtype=torch.float64)
kernel, generator = SGHMC(0.1, 3.0, 0.2), torch.Generator().manual_seed(0)
state = kernel.init(noisy_bowl, first, generator)
again = torch.Generator().manual_seed(0)
position, momentum = first, torch.randn(1, 1, generator=again, dtype=torch.float64)
for step in range(50):
    state, _ = kernel.step(noisy_bowl, state, generator)
    omega = noisy_bowl.draw_minibatches(position, again, step, 1)[0]
    normal = torch.randn(1, 1, generator=again, dtype=torch.float64)
    position, momentum = sghmc_step(
        lambda x, omega=omega: noisy_bowl.gradient_given(x, omega),
        *(position, momentum, 0.1, 3.0, 0.2, normal),
    )
check(
    "same-steps",
    (position - state.position).abs().max(),
    at_most(1e-12),
    kind="exact",
    because="the same formula on the same random numbers; rounding",
    says="Fifty steps of the function above and of the package differ by",
)

# %% [markdown]
# The theorem does not need a bowl.
# In the double well $U = -2\theta^2 + \theta^4$, with the same noise, {numref}`fig-sghmc-well` has the samples on the true density when $\hat B = B$, although no gradient that the sampler saw was right.
# With $\hat B = 0$ its two humps are too low and the flanks too wide.

# %%
well = DoubleWell()
runs = {
    name: sample(
        SGHMC(0.1, friction=0.5, noise_estimate=noise_estimate, num_steps=10),
        NoisyGradient(well, 4.0),
        torch.zeros(4_000, 1),
        num_samples=400,
        warm_up=20,
        seed=1,
    )
    for name, noise_estimate in ((r"$\hat B = B$", 0.2), (r"$\hat B = 0$", 0.0))
}

# %% mystnb={"figure": {"caption": "SGHMC in the double well, $\\varepsilon = 0.1$, $V = 4$, $C = 0.5$, on the true density (grey).", "name": "fig-sghmc-well"}, "image": {"alt": "A grey density with two humps. The line of the right estimate runs along its outline; that of the estimate zero is below it on the humps, and above it in the valley and outside."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.0))
plot_density(axes, well, -2.2, 2.2)
for (name, draws), colour in zip(
    runs.items(), (COLOURS["SGHMC"], COLOURS["naive SGHMC"]), strict=True
):
    edges = torch.linspace(-2.2, 2.2, 89)
    plot_histogram(axes, draws.samples, edges, color=colour, label=name)
axes.set(xlabel=r"$\theta$", ylabel="density", ylim=(0, 0.65))
axes.legend(loc="upper center", ncols=3)
plt.show()

# %% [markdown]
# A number says the same: $E[\theta^4]$, which feels the width of the tails, is {c}`fourth-B` times the right one with $\hat B = B$ and {c}`fourth-0` times with $\hat B = 0$. At the temperature 1.4 it should be {c}`fourth-warm` times.

# %% tags=["hide-input"]
exact_fourth = expectation(well, lambda x: x**4, -4, 4)


class Warm(DoubleWell):
    """The double well at temperature 1.4."""

    def energy(self, position):
        return super().energy(position) / 1.4


warm_fourth = float(expectation(Warm(), lambda x: x**4, -5, 5) / exact_fourth)
check("fourth-warm", warm_fourth, kind="exact", digits=3, because="quadrature")
for draws, name, bound in zip(
    runs.values(), "B0", (near(1.0025, 0.006), near(warm_fourth, 0.012)), strict=True
):
    ratio = (draws.samples**4).mean() / exact_fourth
    check(f"fourth-{name}", ratio, bound, because="its error is 0.001")

# %% [markdown]
# ## Where the gradient is taken
#
# Algorithm 2 takes the gradient at the position that was just reached.
# Several libraries update position and momentum from the same old state instead (explicit Euler; {doc}`/book/appendix/errata` names them).
# The two differ by a detail, and as $\varepsilon \to 0$ they solve the same equation.
# At a finite step the detail matters, because, seen from the new position $\theta$, the old one was $\theta - \varepsilon r$, and (for $d = M = 1$)
#
# $$
# U'(\theta - \varepsilon r) = U'(\theta) - \varepsilon U''(\theta)\,r + O(\varepsilon^2).
# $$
#
# The gradient at the old position is thus the right gradient together with a force $+\varepsilon U''r$ along the velocity: where $U'' > 0$ it is negative friction.
# Noise was injected for the friction $C$, but only $C - \varepsilon U''$ is left.
# In a bowl of curvature $a$ the chains are linear and both variances are exact ({prf:ref}`thm-sghmc-variance`, {prf:ref}`thm-explicit-euler-variance`):
#
# $$
# \begin{aligned}
# \sigma_{\text{new}}^2 &= \frac{T_{\text{eff}}}a\cdot\frac1{1 - \dfrac{\varepsilon^2a}{4 - 2\varepsilon C}},\\
# \sigma_{\text{old}}^2 &= \frac{T_{\text{eff}}}a\cdot\frac C{C - \varepsilon a}\\
# &\quad\cdot\frac{2 - \varepsilon C + \varepsilon^2a}{2 - \varepsilon C + \tfrac12\varepsilon^2a}.
# \end{aligned}
# $$ (eq-sghmc-variance)
#
# In both formulas the gradient's noise enters only by the factor $T_{\text{eff}}$, at any step size.
# The new position then costs a bias of order $\varepsilon^2$, whereas the lost friction costs one of order $\varepsilon$.
# {numref}`fig-order-of-updates` shows the difference: at $\varepsilon = 0.1$ and $C = 3$ the bias of the old position is {c}`old-over-new` times as large, and with less friction it is worse, since the same $\varepsilon a$ is lost from a smaller $C$.

# %% mystnb={"figure": {"caption": "Exact bias of the variance in the bowl against the step size, $C = 3$, $V = 4$, $\\hat B = B$: of order $\\varepsilon$ with the gradient at the old position, of order $\\varepsilon^2$ at the new one.", "name": "fig-order-of-updates"}, "image": {"alt": "Two rising straight lines on logarithmic scales. The dashed one, of the old position, is far above the other and half as steep."}} tags=["hide-input"]
step_sizes = 0.4 * 0.5 ** torch.arange(7, dtype=torch.float64)
biases = {
    old: torch.stack(
        [
            sghmc_chain(
                one, h, 3.0, 4.0, 2.0 * h, explicit_euler=old
            ).stationary_covariance()[0, 0]
            - 1
            for h in step_sizes.tolist()
        ]
    )
    for old in (True, False)
}
figure, axes = plt.subplots(figsize=(5.2, 3.0))
axes.loglog(step_sizes, biases[True], "--", color=COLOURS["explicit Euler"])
axes.loglog(step_sizes, biases[False], color=COLOURS["SGHMC"])
axes.text(0.0065, 0.04, "gradient at the old position", color=COLOURS["explicit Euler"])
axes.text(0.05, 1e-4, "gradient at the new position", color=COLOURS["SGHMC"])
axes.set(xlabel=r"step size $\varepsilon$", ylabel="bias of the variance")
plt.show()

# %% tags=["hide-input"]
alpha, k = 3 * step_sizes, step_sizes**2
formulas = {
    False: 1 / (1 - k / (4 - 2 * alpha)),
    True: 3 / (3 - step_sizes) * (2 - alpha + k) / (2 - alpha + k / 2),
}
check(
    "formulas",
    max((biases[old] + 1 - formulas[old]).abs().max() for old in biases),
    at_most(1e-10),
    kind="exact",
    because="against the discrete Lyapunov equation; rounding",
    says="Largest error of the two formulas, seven step sizes",
)
for old, name, factor in ((True, "old", 2), (False, "new", 4)):
    check(
        f"order-{name}",
        biases[old][-2] / biases[old][-1],
        near(factor, 0.1),
        kind="exact",
        because="a factor of 2 is order ε, of 4 order ε²",
        says=f"Bias at ε = 0.0125 over that at half of it, {name} position",
    )
check("old-over-new", biases[True][2] / biases[False][2], kind="exact", digits=3)

# %% [markdown]
# Measurements in the bowl and in the double well, splittings with smaller errors, and the step as a list of moves are in {doc}`/book/further/splittings`.
#
# ## As SGD with momentum
#
# Let $v = \varepsilon M^{-1}r$ be the step that the position takes, and name the {term}`learning rate` $\eta$, the {term}`momentum decay` $\alpha$ and their noise estimate $\hat\beta$:
#
# $$
# \begin{gathered}
# \eta = \varepsilon^2M^{-1},\\
# \alpha = \varepsilon M^{-1}C,\\
# \hat\beta = \varepsilon M^{-1}\hat B.
# \end{gathered}
# $$ (eq-learning-rate)
#
# Multiplied by $\varepsilon M^{-1}$, the momentum's update becomes
#
# $$
# \begin{aligned}
# \theta &\leftarrow \theta + v,\\
# v &\leftarrow (1 - \alpha)v - \eta\nabla\tilde U(\theta)\\
# &\quad + N\bigl(0, 2(\alpha - \hat\beta)\eta\bigr).
# \end{aligned}
# $$ (eq-sghmc-learning-rate)
#
# Without the noise this is stochastic gradient descent with momentum $1 - \alpha$ and learning rate $\eta$, so everything that is known of training with momentum can be read as statements about SGHMC at temperature zero.
# (A training loss is usually a mean over the $N$ examples and $U$ a sum; then $\eta$ is the usual learning rate divided by $N$.)
# At the other end, with $\alpha = 1$, the velocity forgets its past and the algorithm is SGLD with $\eta = \varepsilon^2$. (Page 7's naive sampler with a single leapfrog step is SGLD too, but with $\tfrac12\varepsilon^2$, because leapfrog begins with half a kick.)
# `SGHMC.from_learning_rate` translates (page 1 ran it with $\eta = 10^{-5}$, $\alpha = 0.01$ and no noise estimate); at temperature zero it *is* `torch.optim.SGD`, to rounding.

# %% tags=["hide-input"]
target = Gaussian.correlated(0.9, dtype=torch.float64)
start = torch.tensor([[2.0, -1.0]], dtype=torch.float64)
kernel = SGHMC.from_learning_rate(0.02, 0.1, temperature=0.0)
trace = sample(kernel, target, start, num_samples=100).samples[:, 0]
parameter = torch.nn.Parameter(start[0].clone())
optimiser = torch.optim.SGD([parameter], lr=0.02, momentum=0.9)
steps = []
for _ in range(99):
    optimiser.zero_grad()
    target.energy(parameter[None]).sum().backward()
    optimiser.step()
    steps.append(parameter.detach().clone())
check(
    "optimiser",
    (trace[1:] - torch.stack(steps)).abs().max(),
    at_most(1e-12),
    kind="exact",
    because="rounding of 100 steps in double precision; SGHMC drifts first, from rest",
    says="At zero temperature SGHMC differs from torch.optim.SGD with momentum 0.9 by",
)

# %% [markdown]
# ## How much friction?
#
# Little friction lets the ball swing for long, but then the noise that $\hat B$ leaves out raises the temperature by the factor $1 + (B - \hat B)/C$.
# Much friction turns the swing into a random walk.
# In between, in a bowl of curvature $a$, a friction from $\sqrt a$ (best for variances) to $2\sqrt a$ (critical damping, which forgets a bad start fastest) is a good choice on a Gaussian.
# In many dimensions take the curvature of the softest direction, which is the slowest; {doc}`/book/further/splittings` derives the rule.
#
# **To remember:** friction and noise together set a temperature.
# The gradient brings noise $2B$, friction asks for $2C$, and SGHMC injects the difference.
# So it needs to know $B$, and that is the question of {doc}`the next page </book/tutorial/estimating_the_noise>`.
#
# ## Change it
#
# * Set `friction=0.5` in the runs on the double well to `friction=3.0`: with $\hat B = 0$ the temperature is now only $1 + 0.2/3 = 1.07$, and the number that was right for 1.4 shows ✗.
# * Set `for noise_estimate in (0.0, 0.2)` to `for noise_estimate in (0.0, 0.4)`, twice the truth: the variance drops to 0.60, and shows ✗.
# * Set `SGHMC.from_learning_rate(0.02, 0.1, temperature=0.0)` to `SGHMC.from_learning_rate(0.02, 0.2, temperature=0.0)`: this is SGD with momentum 0.8, and no longer `torch.optim.SGD` with 0.9.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-sghmc-variance
#
# Find the stationary second moments for $d = 1$, $M = 1$, $U = \tfrac12a\theta^2$ in the continuous limit with noise $B$ and estimate $\hat B$.
# Confirm {eq}`eq-temperature`.
# ```
#
# ```{solution} ex-sghmc-variance
# :class: dropdown
#
# The derivatives of $E[\theta^2]$, $E[\theta r]$ and $E[r^2]$ are $2E[\theta r]$, $E[r^2] - aE[\theta^2] - CE[\theta r]$ and $-2aE[\theta r] - 2CE[r^2] + 2(C - \hat B + B)$.
# Set them to zero: $E[\theta r] = 0$, $E[r^2] = aE[\theta^2]$ and $CE[r^2] = C - \hat B + B$.
# Hence $E[\theta^2] = \frac1a\frac{C - \hat B + B}{C}$.
# ```
#
# ````{exercise}
# :label: ex-sghmc-resample
#
# Draw the momentum afresh before every sample, `resample_every=1`.
# What does {prf:ref}`alg-sghmc` sample with $m = 1$?
# With $m = 2$?
# Try both, and $m = 50$, on the double well with the smallest friction that is allowed, $C = \hat B = 0.2$:
#
# ```python
# kernel = SGHMC(0.1, friction=0.2, noise_estimate=0.2, num_steps=2, resample_every=1)
# noisy_well, start = NoisyGradient(well, 4.0), torch.zeros(2_000, 1)
# draws = sample(kernel, noisy_well, start, num_samples=100, warm_up=500)
# (draws.samples**4).mean() / expectation(well, lambda x: x**4, -4, 4)
# ```
# ````
#
# ```{solution} ex-sghmc-resample
# :class: dropdown
#
# With $m = 1$ the position moves by $\varepsilon r$ with a fresh $r$, and the momentum that the gradient then changes is thrown away: a random walk that never hears of $U$.
# With $m = 2$ the gradient counts once in two steps, and $E[\theta^4]$ is {c}`fresh-2` times the right one.
# With $m = 50$ it is {c}`fresh-50` times that: what the fresh momentum cuts off is the last kick of each sample, one in fifty.
# This run injects no noise at all, $C - \hat B = 0$; the gradient's own is enough, and a friction of 0.2 suffices to take it out.
# Without that friction it is naive SGHMC, {c}`fresh-naive` times.
# ```

# %% tags=["hide-input"]
for name, resampling, bound in (
    ("2", SGHMC(0.1, 0.2, 0.2, num_steps=2, resample_every=1), near(1.2, 0.1)),
    ("50", SGHMC(0.1, 0.2, 0.2, num_steps=50, resample_every=1), near(1.0, 0.02)),
    ("naive", NaiveSGHMC(0.1, 50), near(1.6, 0.06)),
):
    draws = sample(
        resampling,
        NoisyGradient(well, 4.0),
        torch.zeros(2_000, 1),
        num_samples=100,
        warm_up=500 if name == "2" else 20,
    )
    ratio = (draws.samples**4).mean() / exact_fourth
    check(f"fresh-{name}", ratio, bound, because="2,000 chains")

# %% [markdown]
# ````{exercise}
# :label: ex-sghmc-learning-rate
#
# **Write it yourself.**
# Write a step in the learning-rate form {eq}`eq-sghmc-learning-rate`, and compare it with `SGHMC.from_learning_rate` on the same random numbers.
#
# ```python
# def learning_rate_step(gradient, theta, velocity, eta, alpha, beta, normal):
#     """A step with the function gradient, a noise estimate beta and standard normal
#     numbers: theta and velocity (1, d) -> the new theta and the new velocity."""
#     ...
# ```
#
# (Tasks 5 and 6 of assignment 2, *Minibatch noise, and samplers that live with it*, ask for the translation of the parameters and for a sampler; see {doc}`/book/practice/teaching`.)
# ````
#
# ```{solution} ex-sghmc-learning-rate
# :class: dropdown
#
# The noise has the variance $2(\alpha - \hat\beta)\eta$, so the normal numbers are multiplied by its square root:
#
#     theta = theta + velocity
#     velocity = (1 - alpha) * velocity - eta * gradient(theta)
#     velocity = velocity + (2 * (alpha - beta) * eta) ** 0.5 * normal
#
# The kernel keeps the momentum $r$, and $v = \varepsilon r$ with $\varepsilon = \sqrt\eta$.
# ```
#
# ## Further reading
#
# {cite:t}`chen2014` introduced the algorithm, as *second-order Langevin dynamics* with stochastic gradients; *underdamped* and *kinetic* Langevin are other names of the same equation.
# {cite:t}`ma2015` found the family it belongs to, and {cite:t}`nemeth2021` survey the field.
