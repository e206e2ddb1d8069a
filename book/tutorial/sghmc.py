# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Stochastic-gradient HMC
#
# ```{div} page-head
# Level: first course · Reading: about 105 minutes, without the exercises · Running: about 8 seconds
# ```
#
# ```{index} ! SGHMC, ! stochastic-gradient HMC
# ```
#
# Noise in the gradient heats a Hamiltonian sampler; friction cools it, and when the two are matched the chain has the right law again.
#
# **You will learn** to
#
# * add friction to noisy Hamiltonian dynamics and prove that the target becomes stationary,
# * read Algorithm 2 of {cite:t}`chen2014` line by line, in both of its parametrisations,
# * see SGD with momentum as its limit without noise,
# * tell the right order of updates from the wrong one, by an exact formula and by measurement,
# * write a step as a list of moves, from which come both the sampler and its exact law,
# * choose the friction, and say for which question it is the best.
#
# **You will need** {doc}`/book/tutorial/hamiltonian_dynamics`, {doc}`/book/tutorial/naive_sghmc`, and {prf:ref}`thm-diffusion`.

# %%
import warnings

import matplotlib.pyplot as plt
import torch

from booklib.claims import claim
from booklib.diagnostics import bin_probabilities, expectation, total_variation
from booklib.figures import COLOURS, TRUTH, plot_density, plot_histogram, use_style
from booklib.play import play
from booklib.tables import show_table
from sgmc import sample
from sgmc.kernels import SGHMC, NaiveSGHMC
from sgmc.splittings import Splitting, flows, linear_chain, sghmc_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Thousands of chains with few draws each: what R̂ says of few long chains is no help.
warnings.filterwarnings("ignore", message=".*do not agree")

# %% [markdown]
# ## The dynamics
#
# Let the gradient be seen through {term}`gradient noise`, $\nabla\tilde U(\theta) = \nabla U(\theta) + N(0, V)$.
# In a step of size $\varepsilon$ the momentum changes by $-\varepsilon\nabla\tilde U$, that is by $-\varepsilon\nabla U$ and noise of variance $\varepsilon^2 V = 2B\varepsilon$ with
#
# $$
# B = \tfrac12\varepsilon V.
# $$ (eq-b)
#
# Noise whose variance grows in proportion to the time $\varepsilon$ is what a Brownian motion leaves behind, so a step approximates a stochastic differential equation whose diffusion is $B$.
# That diffusion pumps energy in, at the rate $\operatorname{tr}(M^{-1}B)$ of {prf:ref}`thm-pumping`.
# Take energy out again with a {term}`friction` force $-CM^{-1}r$, proportional to the velocity like air drag, where $C$ is symmetric and positive:
#
# $$
# \begin{aligned}
# d\theta &= M^{-1}r\,dt,\\
# dr &= -\nabla U(\theta)\,dt - CM^{-1}r\,dt\\
# &\quad + N\bigl(0, 2(C - \hat B)dt\bigr) + N(0, 2B\,dt).
# \end{aligned}
# $$ (eq-sghmc)
#
# The last term comes with the gradient, whether we want it or not.
# The one before it is noise of our own: $\hat B$ is our {term}`noise estimate`, an estimate of $B$, and we inject only what is missing.
# With a perfect estimate the two make up $N(0, 2C\,dt)$, and then friction and noise are in balance:
# friction takes out the energy $E[r^\top M^{-1}CM^{-1}r]\,dt$, which in equilibrium, $E[rr^\top] = M$, is just the $\operatorname{tr}(M^{-1}C)\,dt$ that the noise brings.
#
# {numref}`fig-sghmc-energy` follows the expected energy $E[H]$ in the bowl $U = \tfrac12\theta^2$, where $E[H] = 1$ is right.
# Without friction it climbs and climbs.
# With friction and $\hat B = B$ it stays where it should be, and from a start that is five times too hot it comes back to it.
# With friction and $\hat B = 0$, where the gradient's noise comes on top of what is injected, it settles too, but a little too high.
# (In the bowl SGHMC is a linear chain, so the lines are exact: see the box in {doc}`/book/tutorial/langevin`.)


# %%
def expected_energy(splitting, start, num_steps=200):
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
without_friction = [flows.Drift(0.1), flows.Kick(0.1)]
energies = {
    "no friction": expected_energy(without_friction, 1.0),
    r"friction, $\hat B = 0$": expected_energy(flows.sghmc(0.1, 0.5), 1.0),
    r"friction, $\hat B = B$": expected_energy(flows.sghmc(0.1, 0.5, 0.2), 1.0),
    "the same, hot start": expected_energy(flows.sghmc(0.1, 0.5, 0.2), 5.0),
}

# %% mystnb={"figure": {"caption": "Exact expected energy in the bowl, $\\varepsilon = 0.1$, $V = 4$, $C = 0.5$; 1 is right (grey). Without friction the gradient's noise heats without end; friction takes out what noise brings in.", "name": "fig-sghmc-energy"}, "image": {"alt": "Four lines over a time of 20. Without friction the energy rises steadily from 1 to 5. With friction and no estimate it rises to 1.4 and stays there. With friction and the right estimate it stays at 1; from a hot start at 5 it falls to 1 within a time of ten."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.4, 3.5))
colours = [COLOURS["naive SGHMC"]] + 3 * [COLOURS["SGHMC"]]
styles = ("-", ":", "-", "--")
time = 0.1 * torch.arange(201)
for (label, values), colour, style in zip(
    energies.items(), colours, styles, strict=True
):
    axes.plot(time, values, style, color=colour, label=label)
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.set(
    xlabel="time",
    ylabel="expected energy $E[H]$",
    ylim=(0, 7.5),
    xticks=range(0, 21, 5),
)
axes.legend(loc="upper left", ncols=2)
plt.show()

# %% tags=["hide-input"]
names = ("no friction", "friction, B̂ = 0", "friction, B̂ = B", "the same, hot start")
for name, values, near, within in zip(
    names,
    energies.values(),
    (5.0, 1.4, 1.0, 1.0),
    (0.1, 0.03, 0.03, 0.03),
    strict=True,
):
    claim(
        f"E[H] after a time of 20: {name}",
        values[-1],
        near=near,
        within=within,
        because="exact recursion: 1 + 20B, 1 + B/C, 1 and 1, up to the step's own bias",
        kind="exact",
    )

# %% [markdown]
# The theorem says that the whole density is in balance, not only the energy.
#
# ```{prf:theorem} The target is stationary
# :label: thm-sghmc
#
# Let $U$ be smooth with $\int e^{-U} < \infty$.
# If $\hat B = B$, the density $\pi(\theta, r) \propto \exp(-U(\theta) - \tfrac12r^\top M^{-1}r)$ is stationary for {eq}`eq-sghmc`; its marginal in $\theta$ is the target.
# ```
#
# ```{prf:proof}
# Write $z = (\theta, r)$.
# The total noise in $r$ has diffusion $C$, and the equation is $dz = -(D + Q)\nabla H(z)\,dt + N(0, 2D\,dt)$ with
#
# $$
# \begin{gathered}
# D = \begin{pmatrix}0 & 0\\ 0 & C\end{pmatrix}, \quad Q = \begin{pmatrix}0 & -I\\ I & 0\end{pmatrix},\\
# \nabla H = \begin{pmatrix}\nabla U\\ M^{-1}r\end{pmatrix}:
# \end{gathered}
# $$
#
# the first row gives $d\theta = M^{-1}r\,dt$, the second $dr = -\nabla U\,dt - CM^{-1}r\,dt$.
# The density $p_t(z)$ of the solution obeys the Fokker–Planck equation, {prf:ref}`thm-diffusion`,
#
# $$
# \begin{aligned}
# \partial_t p ={} &\nabla\cdot\bigl((D + Q)\nabla H\,p\bigr)\\
# &+ \nabla\cdot(D\nabla p),
# \end{aligned}
# $$ (eq-fokker-planck)
#
# since $D$ is constant; here $\nabla\cdot$ is the divergence with respect to $\theta$ and $r$ together.
# ($D$ may also depend on $\theta$, as $B(\theta)$ does: the only derivatives beside it are with respect to $r$.)
# Because $Q$ is constant and antisymmetric, $\nabla\cdot(Q\nabla p) = \sum_{ij}Q_{ij}\,\partial_i\partial_j p = 0$, so it may be added on the right without changing anything:
#
# $$
# \partial_t p = \nabla\cdot\bigl((D + Q)(\nabla H\,p + \nabla p)\bigr).
# $$
#
# For $p = e^{-H}/Z$ we have $\nabla p = -\nabla H\,p$: the inner bracket vanishes, and $\partial_t p = 0$.
# ```
#
# If $U$ is bounded below and $C$ is positive definite, there is no other stationary law, and every start leads to this one: {prf:ref}`thm-unique-diffusion`.
# The paper calls these *second-order Langevin dynamics*; *underdamped* and *kinetic* are other names.
#
# The proof shows more than the theorem.
# Any constant positive semi-definite $D$ and antisymmetric $Q$ leave $e^{-H}$ invariant; where they depend on $z$ a correction term appears, and then *every* continuous Markov process with that stationary law is of this form {cite:p}`ma2015`; {prf:ref}`thm-recipe` has the correction.
# It also shows what a wrong $\hat B$ does.
# With scalar coefficients the noise has the diffusion $C - \hat B + B$ where $C$ was needed, and the chain samples at the effective {term}`temperature`
#
# $$
# T_{\text{eff}} = \frac{C - \hat B + B}{C},
# $$ (eq-temperature)
#
# that is $e^{-H/T_{\text{eff}}}$; {prf:ref}`thm-temperature` has it for matrices.
# For the equation is now {eq}`eq-fokker-planck` with $T_{\text{eff}}\nabla p$ in the place of $\nabla p$, and the bracket $\nabla H\,p + T_{\text{eff}}\nabla p$ vanishes at that density.
# With $\hat B = 0$ the excess is $B/C$: it vanishes if the friction is much larger than the noise, or if the step is small, because $B = \tfrac12\varepsilon V$.
#
# {numref}`fig-live-sghmc` reads the temperature off: move $C$ and $\hat B$, and see the draws grow too wide or too narrow.
#
# ```{live} sghmc
# :name: fig-live-sghmc
# :alt: The path of one chain on the contours of a Gaussian; a histogram of the draws on the true density; the mean of theta squared, which comes to one; and the temperature against the noise estimate, a falling line that passes one where the estimate is right.
#
# Live: SGHMC in the bowl, $\varepsilon = 0.1$, $V = 4$, hence $B = 0.2$. In the bowl the mean of $\theta^2$ is the temperature, {eq}`eq-temperature`.
# ```
#
# ## The algorithm
#
# ```{prf:algorithm} SGHMC
# :label: alg-sghmc
#
# **Inputs:** step size $\varepsilon$, friction $C$, noise estimate $\hat B \preceq C$, mass $M$, number of steps $m$
#
# Repeat for each draw:
#
# 1. optionally draw $r \sim N(0, M)$ afresh;
# 2. repeat $m$ times
#    1. $\theta \leftarrow \theta + \varepsilon M^{-1}r$
#    2. $r \leftarrow r - \varepsilon\nabla\tilde U(\theta) - \varepsilon CM^{-1}r + N(0, 2(C - \hat B)\varepsilon)$;
# 3. keep $\theta$.
# ```
#
# This is Algorithm 2 of {cite:t}`chen2014`, where the step size may also change from draw to draw: {doc}`/book/further/falling_steps` lets it fall, and $\hat B$ has to fall with it.
# The gradient is taken at the position that was just reached, and no energy is ever computed: nothing reads all the data.
# For one chain with mass 1 it takes a few lines:


# %%
def sghmc(
    stochastic_gradient,
    theta,
    step_size,
    friction,
    noise_estimate,
    num_steps,
    generator,
):
    """Follow one chain of SGHMC from theta (1, d); return its positions."""

    def normal():
        return torch.randn(theta.shape, generator=generator, dtype=theta.dtype)

    noise_std = (2 * (friction - noise_estimate) * step_size) ** 0.5
    momentum, path = normal(), []
    for step in range(num_steps):
        theta = theta + step_size * momentum
        gradient = stochastic_gradient(theta, generator, step)
        momentum = momentum - step_size * (gradient + friction * momentum)
        momentum = momentum + noise_std * normal()
        path.append(theta)
    return torch.cat(path)


# %% [markdown]
# The package has the same lines for many chains, and for $C$, $M$ and $\hat B$ that are numbers, diagonals or matrices.
# It draws all random numbers of a block of steps beforehand, the minibatches and the standard normal numbers, so that the loop itself is a pure function, which can be tested on given noise, and compiled:
#
# ```{literalinclude} ../../sgmc/kernels/sghmc.py
# :language: python
# :pyobject: SGHMC.trajectory
# :start-at: step_size, time = noise
# :dedent: 8
# ```
#
# Here `addmv_(x, A, y, alpha=a)` is $x \leftarrow x + aAy$, `time` is $\varepsilon$ as well (unless $\alpha$ is held fixed while $\varepsilon$ falls), and the temperature $T$ is 1 unless said otherwise; {doc}`/book/tutorial/estimating_the_noise` shows how `noise.look` can find $\hat B$ on the way.
#
# Now a target that is no bowl: the double well $U = -2\theta^2 + \theta^4$, again with gradient noise of variance 4.

# %%
well, noise_variance, step_size, friction = DoubleWell(), 4.0, 0.1, 3.0
noisy_well = NoisyGradient(well, noise_variance)
noise_estimate = 0.5 * step_size * noise_variance  # B = ½εV = 0.2
kernel = SGHMC(step_size, friction, noise_estimate, num_steps=10)
draws = sample(
    kernel, noisy_well, torch.zeros(4_000, 1), num_samples=1_000, warm_up=20, seed=1
)
exact_square = expectation(well, lambda x: x**2, -4, 4)
square, square_error = draws.mean_and_standard_error(lambda x: x**2)

# %% mystnb={"figure": {"caption": "SGHMC in the double well with gradient noise N(0, 4): the histogram of its draws lies on the true density, although no gradient that it saw was right.", "name": "fig-sghmc-well"}, "image": {"alt": "A grey density with two hills, and a line along its outline."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.2))
plot_density(axes, well, -2.2, 2.2)
plot_histogram(
    axes,
    draws.samples,
    torch.linspace(-2.2, 2.2, 89),
    color=COLOURS["SGHMC"],
    label="SGHMC",
)
axes.set(xlabel=r"$\theta$", ylabel="density", ylim=(0, 0.65))
axes.legend(loc="upper center", ncols=2)
plt.show()

# %% [markdown]
# No gradient that the sampler sees is right, and yet in {numref}`fig-sghmc-well` its draws lie on the true density.

# %% tags=["hide-input"]
first = torch.zeros(1, 1, dtype=torch.float64)
by_hand = sghmc(
    noisy_well.stochastic_gradient,
    first,
    step_size,
    friction,
    noise_estimate,
    50,
    torch.Generator().manual_seed(0),
)
one_step, generator = (
    SGHMC(step_size, friction, noise_estimate),
    torch.Generator().manual_seed(0),
)
state, by_package = one_step.init(noisy_well, first, generator), []
for _ in range(50):
    state, _ = one_step.step(noisy_well, state, generator)
    by_package.append(state.position.clone())
claim(
    "Fifty steps of the function above and of the package differ by",
    (by_hand - torch.cat(by_package)).abs().max(),
    at_most=1e-12,
    because="the same formula on the same random numbers; rounding",
    kind="exact",
)
claim(
    "The exact E[θ²] of the double well",
    exact_square,
    near=0.8327,
    within=5e-5,
    because="Gauss–Legendre quadrature",
    kind="exact",
)
edges = torch.linspace(-2.2, 2.2, 45, dtype=torch.float64)
claim(
    "Total variation of the draws from the double well, in 44 bins",
    total_variation(draws.samples, bin_probabilities(well, edges), edges),
    at_most=0.01,
    because="ten seeds give 0.0070 to 0.0079, most of it the bias of the step",
)

# %% [markdown]
# ## The order of the updates
#
# A step is made of four moves: the *drift* of the position, and three changes of the momentum, *friction*, *kick* by the gradient, and *noise*.
# Algorithm 2 makes one after the other, so that the kick is taken where the drift has led.
# Explicit Euler makes all four from the same state and adds up what they change, so that the kick is taken at the *old* position.
# In code, with a list of moves:
#
# ```{literalinclude} ../../sgmc/splittings/flows.py
# :language: python
# :pyobject: sghmc
# ```
#
# ```{literalinclude} ../../sgmc/splittings/flows.py
# :language: python
# :pyobject: explicit_euler_sghmc
# ```
#
# Several libraries take the second ({doc}`/book/appendix/errata` names them), and the difference looks like nothing.
# As $\varepsilon \to 0$ both become the same equation {eq}`eq-sghmc`; at a finite step they differ.

# %%
wrong_order = flows.explicit_euler_sghmc(step_size, friction, noise_estimate)
explicit = sample(
    Splitting(wrong_order, num_steps=10),
    noisy_well,
    torch.zeros(4_000, 1),
    num_samples=400,
    warm_up=20,
    seed=2,
)
explicit_square, explicit_error = explicit.mean_and_standard_error(lambda x: x**2)

# %% [markdown]
# In $E[\theta^2]$ explicit Euler's bias is about twelve times as large: five per cent too small, against 0.4.
# Where does it come from?
# The old position is $\theta - \varepsilon r$, seen from the new one (take $d = 1$, $M = 1$), and $U'(\theta - \varepsilon r) = U'(\theta) - \varepsilon U''(\theta)\,r + O(\varepsilon^2)$.
# So the gradient at the old position is the right one, and a force $+\varepsilon U''(\theta)\,r$ along the velocity: the friction is $C - \varepsilon U''(\theta)$ where noise was injected for $C$.
# In the wells, where $U'' > 0$, the chain is too hot; on the hill between them it is too cold.
# Probability moves from hot to cold, onto the hill, and $E[\theta^2]$ falls.

# %% tags=["hide-input"]
claim(
    "Relative bias of E[θ²], gradient at the new position",
    square / exact_square - 1,
    near=-0.0041,
    within=0.0035,
    because="a run ten times as long gives −0.0041; the standard error is 0.0006",
)
claim(
    "Relative bias of E[θ²], gradient at the old position",
    explicit_square / exact_square - 1,
    near=-0.0505,
    within=0.007,
    because="ten seeds give −0.050 to −0.053; the standard error is 0.001",
)
claim(
    "Share of the draws on the hill, |θ| < ½, old position over new",
    (explicit.samples.abs() < 0.5).double().mean()
    / (draws.samples.abs() < 0.5).double().mean(),
    near=1.265,
    within=0.02,
    because="4,000 chains each",
)

# %% [markdown]
# On a Gaussian target both chains are linear, their stationary covariance solves the equation {eq}`eq-linear-box`, and no Monte Carlo error clouds the comparison.
# Let $U = \tfrac12a\theta^2$ in one dimension with $M = 1$, gradient noise $N(0, V)$ and $T_{\text{eff}}$ from {eq}`eq-temperature`.
# {prf:ref}`thm-sghmc-variance` and {prf:ref}`thm-explicit-euler-variance` give the stationary variances: with the gradient at the new and at the old position
#
# $$
# \begin{aligned}
# \sigma_{\text{new}}^2 &= \frac{T_{\text{eff}}}a\cdot\frac1{1 - \dfrac{\varepsilon^2a}{4 - 2\varepsilon C}},\\
# \sigma_{\text{old}}^2 &= \frac{T_{\text{eff}}}a\cdot\frac C{C - \varepsilon a}\\
# &\quad\cdot\frac{2 - \varepsilon C + \varepsilon^2a}{2 - \varepsilon C + \tfrac12\varepsilon^2a}.
# \end{aligned}
# $$ (eq-sghmc-variance)
#
# The truth is $1/a$.
# Both feel the noise through the temperature alone.
# In the first the step adds a bias of order $\varepsilon^2$; in the second there is also $C/(C - \varepsilon a)$, the friction that was lost, of order $\varepsilon$.
# {prf:ref}`thm-general-order` says the same of energies that are not quadratic, if the gradient is Lipschitz and the chain forgets its start fast enough.
# {ref}`ex-sghmc-euler` derives both in a few lines.
# Take $a = 1$, $C = 3$, $V = 4$ and the perfect $\hat B = B$, so that $T_{\text{eff}} = 1$.
# The table has the exact variances.

# %%
one = torch.eye(1, dtype=torch.float64)
step_sizes = 0.4 * 0.5 ** torch.arange(7, dtype=torch.float64)


def gaussian_bias(step_size, explicit_euler):
    chain = sghmc_chain(
        one, step_size, 3.0, 4.0, 0.5 * step_size * 4.0, explicit_euler=explicit_euler
    )
    return float(chain.stationary_covariance()[0, 0] - 1)


biases = {
    order: torch.tensor(
        [gaussian_bias(float(h), order) for h in step_sizes], dtype=torch.float64
    )
    for order in (False, True)
}
alpha, k = 3 * step_sizes, step_sizes**2
formula = 1 / (1 - k / (2 * (2 - alpha)))

# %% tags=["hide-input"]
show_table(
    ["step size ε", "gradient at the new position", "at the old position"],
    [
        [
            f"{h:g}",
            f"{1 + gaussian_bias(h, False):.4f}",
            f"{1 + gaussian_bias(h, True):.4f}",
        ]
        for h in (0.4, 0.2, 0.1)
    ],
)

# %% [markdown]
# At $\varepsilon = 0.1$ the bias on the right is nearly thirteen times that on the left.
# {numref}`fig-order-of-updates` goes on to smaller steps.

# %% tags=["hide-input"]
measured = []
for h in (0.4, 0.2, 0.1):
    explicit_euler = Splitting(
        flows.explicit_euler_sghmc(h, 3.0, 0.5 * h * 4.0), num_steps=5
    )
    for order, kernel in (
        (False, SGHMC(h, 3.0, 0.5 * h * 4.0, num_steps=5)),
        (True, explicit_euler),
    ):
        run = sample(
            kernel,
            NoisyGradient(Gaussian.standard(1), 4.0),
            torch.zeros(10_000, 1),
            num_samples=100,
            warm_up=30,
            seed=3,
        )
        measured.append((h, order, *run.mean_and_standard_error(lambda x: x**2)))

# %% mystnb={"figure": {"caption": "Bias of the stationary variance on a standard Gaussian against the step size: exact laws (lines) and measured values (points, with two standard errors; where the error hides the bias there is no point). With the gradient at the new position the bias is of order $\\varepsilon^2$, at the old position of order $\\varepsilon$.", "name": "fig-order-of-updates"}, "image": {"alt": "Two rising lines on logarithmic scales with points on them. The dashed one, of the old position, is far above the other and half as steep."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.4))
axes.loglog(
    step_sizes,
    biases[True],
    "--",
    color=COLOURS["explicit Euler"],
    label="gradient at the old position",
)
axes.loglog(
    step_sizes,
    biases[False],
    color=COLOURS["SGHMC"],
    label="gradient at the new position",
)
for h, order, value, error in measured:
    if gaussian_bias(h, order) > 3 * error:
        colour = COLOURS["explicit Euler" if order else "SGHMC"]
        axes.errorbar(
            h,
            float(value) - 1,
            2 * float(error),
            fmt="s" if order else "o",
            ms=5,
            color=colour,
        )
axes.set(xlabel=r"step size $\varepsilon$", ylabel="bias of the variance")
axes.legend()
plt.show()

# %% [markdown]
# In {numref}`fig-order-of-updates` the dashed line, of the old position, has half the slope of the other: where steps are small, half the step leaves half of the one bias, and a quarter of the other.
# The measured points lie on the lines.

# %% tags=["hide-input"]
claim(
    "Largest error of the formula against the discrete Lyapunov equation, seven step "
    "sizes",
    (biases[False] + 1 - formula).abs().max(),
    at_most=1e-10,
    because="rounding",
    kind="exact",
)

euler_formula = 3 / (3 - step_sizes) * (2 - alpha + k) / (2 - alpha + k / 2)
claim(
    "The same for the gradient at the old position",
    (biases[True] + 1 - euler_formula).abs().max(),
    at_most=1e-10,
    because="rounding",
    kind="exact",
)
for order, factor in ((True, 2), (False, 4)):
    claim(
        f"Bias at ε = 0.0125 over that at half, {'old' if order else 'new'} position",
        biases[order][-2] / biases[order][-1],
        near=factor,
        within=0.1,
        because="exact laws; a factor of 2 is order ε, of 4 order ε²",
        kind="exact",
    )
claim(
    "Bias at ε = 0.1 with the gradient at the old position over that at the new",
    biases[True][2] / biases[False][2],
    near=12.7,
    within=0.1,
    because="exact laws: 0.0375 and 0.0029",
    kind="exact",
)

claim(
    "Largest distance of six measured variances from these, in standard errors",
    max(
        abs(float(value) - 1 - gaussian_bias(h, order)) / float(error)
        for h, order, value, error in measured
    ),
    at_most=5.5,
    because="10,000 chains each; exceeded by chance once in four million times",
)

# %% [markdown]
# ## A splitting is a list of flows
#
# (The next two sections do not need this one; a first reading may go on with the learning-rate form.)
#
# The right side of {eq}`eq-sghmc` is a sum, and each of its parts alone is easy to follow.
# To follow them in turn is to *split* the equation, and there are other ways to cut it than in four.
# Drift (A) and kick (B) can be followed exactly, for any time; so can friction together with its noise, the *Ornstein–Uhlenbeck* process $dr = -CM^{-1}r\,dt + N(0, 2C\,dt)$ (O), and even that together with the drift (U), the motion of a ball in a fluid without a force {cite:p}`chandrasekhar1943`.
# The letters name the lists: *BAOAB* {cite:p}`leimkuhler2013` and *UBU* {cite:p}`sanzserna2021` read the same from both sides, and have a bias of order $\varepsilon^2$ where a list without that symmetry may have one of order $\varepsilon$.
#
# ```{literalinclude} ../../sgmc/splittings/flows.py
# :language: python
# :pyobject: baoab
# ```
#
# ```{literalinclude} ../../sgmc/splittings/flows.py
# :language: python
# :pyobject: ubu
# ```
#
# One list gives two things.
# `Splitting` follows it: that is a sampler.
# `linear_chain` puts together what each flow does to $(\theta, r)$ on a Gaussian target, a matrix and the covariance of a noise: that is the exact law of this sampler, step size, gradient noise and all.
# So whoever thinks of a new integrator writes a list, and has its sharpest test before the first draw.
# The table has the exact variances of three lists at $\varepsilon = 0.5$ and $C = 1$ in the bowl, where 1 is right.

# %%
splittings = {
    "Algorithm 2": flows.sghmc,
    "BAOAB": flows.baoab,
    "UBU": flows.ubu,
}


def exact_variance(name, step_size, noise_variance=0.0):
    chain = linear_chain(splittings[name](step_size, friction=1.0), one, noise_variance)
    return float(chain.stationary_covariance()[0, 0])


# %% tags=["hide-input"]
show_table(
    ["splitting", "exact gradients", "gradient noise V = 1"],
    [
        [name, *(f"{exact_variance(name, 0.5, V):.4f}" for V in (0.0, 1.0))]
        for name in splittings
    ],
)

# %% [markdown]
# With exact gradients BAOAB has no bias; UBU is four per cent too narrow, and Algorithm 2 nine per cent too wide.
# With $V = 1$ all three have become wider, because nothing was subtracted for the gradient's noise; the list says by how much.

# %% tags=["hide-input"]
claim(
    "Bias of BAOAB's variance at ε = 0.5, exact gradients",
    exact_variance("BAOAB", 0.5) - 1,
    near=0,
    within=1e-12,
    because=(
        "exact law: on a Gaussian target its positions have no bias at any stable step"
    ),
    kind="exact",
)
claim(
    "Bias of UBU's variance at ε = 0.5 over that at ε = 0.25",
    (exact_variance("UBU", 0.5) - 1) / (exact_variance("UBU", 0.25) - 1),
    near=4,
    within=0.1,
    because="exact laws: of order ε², 0.041 and 0.010 too narrow",
    kind="exact",
)

bowl = Gaussian.standard(1, dtype=torch.float64)
noisy_bowl = NoisyGradient(bowl, 1.0)
start = bowl.exact_samples(10_000, torch.Generator().manual_seed(40))

errors = []
for name, splitting in splittings.items():
    kernel = Splitting(splitting(0.5, friction=1.0), num_steps=4)
    run = sample(kernel, noisy_bowl, start, num_samples=50, warm_up=10, seed=4)
    value, error = run.mean_and_standard_error(lambda x: x**2)
    errors.append(abs(float(value) - exact_variance(name, 0.5, 1.0)) / float(error))
claim(
    "Largest distance of three variances, V = 1, from these, in standard errors",
    max(errors),
    at_most=4.5,
    because="10,000 chains each; exceeded by chance once in 49,000 times",
)

by_list, by_kernel = (
    sample(kernel, noisy_bowl, start[:10], num_samples=100, seed=5).samples
    for kernel in (Splitting(flows.sghmc(0.1, 3.0, 0.05)), SGHMC(0.1, 3.0, 0.05))
)
claim(
    "Draws by the list of Algorithm 2's flows and by the kernel SGHMC differ by",
    (by_list - by_kernel).abs().max(),
    at_most=1e-12,
    because="the same moves on the same random numbers; rounding of 100 steps",
    kind="exact",
)

# %% [markdown]
# {doc}`/book/tutorial/sgnuts` has a palindrome that subtracts $\hat B$, and has no bias on a Gaussian target.
#
# ## The learning-rate form
#
# Let $v = \varepsilon M^{-1}r$ be the step that the position takes, and define a {term}`learning rate` $\eta$, a {term}`momentum decay` $\alpha$ and the noise estimate $\hat\beta$ that goes with them:
#
# $$
# \begin{aligned}
# \eta &= \varepsilon^2M^{-1},\\
# \alpha &= \varepsilon M^{-1}C,\\
# \hat\beta &= \varepsilon M^{-1}\hat B.
# \end{aligned}
# $$ (eq-learning-rate)
#
# Multiply the momentum's update by $\varepsilon M^{-1}$.
# For scalar $M$ the noise becomes $\varepsilon^2M^{-2}\cdot2(C - \hat B)\varepsilon = 2(\alpha - \hat\beta)\eta$ in variance, and the algorithm reads
#
# $$
# \begin{aligned}
# \theta &\leftarrow \theta + v,\\
# v &\leftarrow (1 - \alpha)v - \eta\nabla\tilde U(\theta)\\
# &\quad + N\bigl(0, 2(\alpha - \hat\beta)\eta\bigr).
# \end{aligned}
# $$ (eq-sghmc-learning-rate)
#
# Without the noise this is stochastic gradient descent with momentum $1 - \alpha$ and learning rate $\eta$, the heavy ball of {cite:t}`polyak1964` on minibatches.
# So a practitioner may start from settings that train well.
# (A training loss is usually a mean over the examples, and $U$ is a sum: then $\eta$ is the usual learning rate divided by $N$.)
# The noise estimate becomes $\hat\beta = \tfrac12\eta\hat V$, and the usual momentum of 0.9 is $\alpha = 0.1$.
# The kernel is the same object in both forms: `SGHMC.from_learning_rate` only translates.
# At temperature zero nothing is injected, and the sampler must *be* `torch.optim.SGD`.

# %%
target = Gaussian.correlated(0.9, dtype=torch.float64)
start = torch.tensor([[2.0, -1.0]], dtype=torch.float64)
trace = sample(
    SGHMC.from_learning_rate(0.02, 0.1, temperature=0.0), target, start, num_samples=100
).samples[:, 0]

parameter = torch.nn.Parameter(start[0].clone())
optimiser = torch.optim.SGD([parameter], lr=0.02, momentum=0.9)
steps = []
for _ in range(99):
    optimiser.zero_grad()
    target.energy(parameter[None]).sum().backward()
    optimiser.step()
    steps.append(parameter.detach().clone())

# %% tags=["hide-input"]
# SGHMC drifts first, from rest, so that its draw number t + 1 is the optimiser's number
# t.
claim(
    "At zero temperature SGHMC differs from torch.optim.SGD with momentum 0.9 by",
    (trace[1:] - torch.stack(steps)).abs().max(),
    at_most=1e-12,
    because="rounding of 100 steps in double precision",
    kind="exact",
)

# %% [markdown]
# ## Choosing the friction
#
# Little friction lets the ball swing for long, and noise that was not estimated ($B - \hat B$) heats it by the factor $1 + (B - \hat B)/C$.
# Much friction turns the swing into a random walk.
# What is best in between depends on the question.
# Measure by the integrated {term}`autocorrelation time` $\tau = 1 + 2\sum_{k\ge1}\rho_k$, the number of steps that are worth one independent draw.
#
# Take one dimension with curvature $a$, $M = 1$ and $\hat B = B$, in equilibrium, and small steps.
# Let $\rho(t)$ be the autocorrelation of $\theta$ at a distance $t$ in time.
#
# *Why $\rho$ swings.*
# Fix the state $(\theta_0, r_0)$ at time 0, and average over all noise after it: let $m(t) = E[\theta_t \mid \theta_0, r_0]$.
# Noise has mean zero, so the average of {eq}`eq-sghmc` is $m' = E[r_t \mid \theta_0, r_0]$ and $m'' = -am - Cm'$.
# Now $E[\theta_0^2] = 1/a$, so that $\rho(t) = a\,E[\theta_0\theta_t] = a\,E[\theta_0\,m(t)]$.
# An average of solutions of a linear equation solves it too:
#
# $$
# \begin{gathered}
# \rho'' + C\rho' + a\rho = 0,\\
# \rho(0) = 1, \quad \rho'(0) = a\,E[\theta_0r_0] = 0,
# \end{gathered}
# $$ (eq-oscillator)
#
# because position and momentum are independent in equilibrium.
# This is the *damped oscillator*: a swing with air drag.
#
# *Its integrals.*
# Both $\rho$ and $\rho'$ vanish at infinity.
# Integrate {eq}`eq-oscillator` from 0 to $\infty$, once as it is, once multiplied by $\rho'$, and once multiplied by $\rho$, where $\int\rho\rho'' = -\int\rho'^2$ by parts:
#
# $$
# \begin{aligned}
# 0 - C + a\int\rho &= 0,\\
# 0 + C\int\rho'^2 - \tfrac12a &= 0,\\
# -\int\rho'^2 - \tfrac12C + a\int\rho^2 &= 0.
# \end{aligned}
# $$
#
# The second gives $\int\rho'^2 = a/2C$, and with it the third can be solved.
# The result is
#
# $$
# \begin{aligned}
# \int_0^\infty\rho\,dt &= \frac Ca,\\
# \int_0^\infty\rho^2\,dt &= \frac12\Bigl(\frac1C + \frac Ca\Bigr).
# \end{aligned}
# $$ (eq-friction)
#
# A step takes the time $\varepsilon$, so a sum over steps is about an integral divided by $\varepsilon$, and $\tau \approx \frac2\varepsilon\int_0^\infty\rho\,dt$.
# Three questions have three answers:
#
# * *The mean of $\theta$*: $\tau = 2C/(\varepsilon a)$ steps, the smaller the friction the better.
#   A swinging chain is at $\theta$ as often as at $-\theta$, and its errors cancel; for the mean it can beat independent draws.
# * *The mean of $\theta^2$*, and so every variance: for a Gaussian chain the autocorrelation of $\theta^2$ is $\rho^2$ ({prf:ref}`thm-linear-tau`), where nothing cancels, and $\tau = (1/C + C/a)/\varepsilon$ steps.
#   The best friction is $C = \sqrt a$.
# * *Forgetting a bad start*: the slowest of the two solutions $e^{-\lambda t}$ of {eq}`eq-oscillator` dies fastest at *critical damping*, $C = 2\sqrt a$, where swinging stops.

# %%
frictions = torch.logspace(-1.5, 1, 126, dtype=torch.float64)
chains = [sghmc_chain(one, 0.1, float(c)) for c in frictions]
transition = torch.stack([chain.transition for chain in chains])
column = torch.stack([chain.stationary_covariance()[:, :1] for chain in chains])
correlations = []
for _ in range(8_000):  # all frictions at once, lag by lag
    correlations.append(column[:, 0, 0])
    column = transition @ column
correlations = torch.stack(correlations) / correlations[0]
time_of_mean = 2 * correlations.sum(0) - 1
time_of_square = 2 * correlations.pow(2).sum(0) - 1
time_to_forget = -1 / torch.linalg.eigvals(transition).abs().amax(-1).log()
heated = torch.tensor(
    [
        float(sghmc_chain(one, 0.1, float(c), 4.0).stationary_covariance()[0, 0])
        for c in frictions
    ]
)

# %% mystnb={"figure": {"caption": "A standard Gaussian, $\\varepsilon = 0.1$, exact laws. Above, without gradient noise: autocorrelation times of $\\theta$ and $\\theta^2$, and the time in which a bad start is forgotten, against the friction; each of the three questions has its own best friction. Below: what ignoring the gradient noise costs, the stationary variance with $V = 4$ and $\\hat B = 0$; the true variance is 1 (grey).", "name": "fig-friction"}, "image": {"alt": "Above, a dotted line that rises with the friction, a solid one with its lowest point at friction 1, and a dashed one with a sharp lowest point near 2. Below, a line that falls from 7 at the smallest friction to 1."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(2, 1, figsize=(5.2, 6.0), sharex=True)
left.loglog(
    frictions, time_of_mean, ":", color=COLOURS["SGHMC"], label=r"$\tau$ of $\theta$"
)
left.loglog(
    frictions, time_of_square, color=COLOURS["SGHMC"], label=r"$\tau$ of $\theta^2$"
)
left.loglog(frictions, time_to_forget, "--", color="black", lw=1, label="bad start")
left.set(ylabel="time (steps)", ylim=(0.5, None))
left.legend(loc="lower right")
right.semilogx(frictions, heated, color=COLOURS["SGHMC"], label=r"$\hat B = 0$")
right.axhline(1, color=TRUTH, zorder=0)
right.set(xlabel=r"friction $C$", ylabel="stationary variance", ylim=(0, None))
right.legend()
plt.show()

# %% [markdown]
# In the upper panel of {numref}`fig-friction` the three curves have their lowest points at three different frictions.
# A friction between $\sqrt a$ and $2\sqrt a$ is right for all purposes but the first.
# In many dimensions take the $a$ of the softest direction, which is the slowest.
# The lower panel shows why a very small friction is dangerous: what was not estimated then heats the most.

# %% tags=["hide-input"]
claim(
    "Autocorrelation time of θ at C = 1 over 2C/(εa)",
    time_of_mean[75] / 20,
    near=1,
    within=0.01,
    because="exact law at ε = 0.1; the step's error is of order ε² = 0.01",
    kind="exact",
)
claim(
    "Autocorrelation time of θ² at C = 1 over (1/C + C/a)/ε",
    time_of_square[75] / 20,
    near=1,
    within=0.05,
    because=(
        "exact law at ε = 0.1; a sum over steps differs from the integral by half a "
        "step"
    ),
    kind="exact",
)
claim(
    "The friction with the smallest autocorrelation time of θ²",
    frictions[time_of_square.argmin()],
    near=1,
    within=0.1,
    because="√a = 1 up to the step; a grid of 126 frictions, 5 % apart",
    kind="exact",
)
claim(
    "The friction that forgets fastest",
    frictions[time_to_forget.argmin()],
    near=1.9,
    within=0.15,
    because="critical damping: 2√a − ε = 1.9 for the discrete chain; the grid",
    kind="exact",
)
claim(
    "The smallest autocorrelation time of θ, in steps, where independent draws have 1",
    time_of_mean.min(),
    at_most=0.7,
    because="exact law, at the smallest friction of the grid",
    kind="exact",
)

claim(
    "Largest relative distance of the variance with B̂ = 0 from 1 + B/C",
    (heated / (1 + 0.2 / frictions) - 1).abs().max(),
    at_most=0.01,
    because="exact laws; the step's own bias is of order ε²",
    kind="exact",
)

# %% [markdown]
# ## In practice
#
# * Move first, then take the gradient where you are.
#   Check that your library does.
# * Noise terms have variances $2(C - \hat B)\varepsilon$ or $2(\alpha - \hat\beta)\eta$; pass their square roots where a standard deviation is asked for.
# * The minibatches themselves tell $\hat B$, see {doc}`/book/tutorial/estimating_the_noise`.
#   $\hat B = 0$ is safe where $C \gg \tfrac12\varepsilon V$.
#   Otherwise every variance is too wide by the factor $1 + B/C$.
# * Friction of about the square root of the smallest curvature mixes best; more is safer against noise that was not estimated.
# * $C \succeq \hat B$ is required, and the kernel refuses anything else.
# * Start from $N\eta$ and $1 - \alpha$ that train the model well as learning rate and momentum of SGD on a mean loss. That is the paper's own recipe (p. 6): $\alpha$ fixed at 0.01 or 0.1, $\eta$ as for SGD with momentum, and $\hat\beta = \tfrac12\eta\hat V$; for momentum that is scheduled it points to its supplement. We had no copy of the supplement. The authors' programs for networks and for ratings have $N\eta$ of 0.1 and 0.4, $\alpha$ of 0.01 and 0.05, and minibatches of 500 and 4,000 {cite:p}`chencode`.
# * At a fixed $N\eta$ more data mean more heat: with $V = N^2s^2/n$ the share $\hat\beta/\alpha = \tfrac12\eta V/\alpha = \tfrac12(N\eta)\,Ns^2/(n\alpha)$ grows as $N/n$. Let the minibatch grow with the data, or $N\eta$ fall, or subtract $\hat B$.
#
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | dynamics | $dr = -\nabla U\,dt - CM^{-1}r\,dt + N(0, 2(C - \hat B)dt) + N(0, 2B\,dt)$ | {eq}`eq-sghmc` |
# | diffusion of the noise | $B = \tfrac12\varepsilon V$ | {eq}`eq-b` |
# | effective temperature | $T_{\text{eff}} = (C - \hat B + B)/C$ | {eq}`eq-temperature` |
# | a step | $\theta \leftarrow \theta + \varepsilon M^{-1}r$, then $r \leftarrow r - \varepsilon\nabla\tilde U(\theta) - \varepsilon CM^{-1}r + N(0, 2(C - \hat B)\varepsilon)$ | {prf:ref}`alg-sghmc` |
# | variance in a bowl | $\sigma^2 = \frac{T_{\text{eff}}}a\big/\bigl(1 - \frac{\varepsilon^2a}{4 - 2\varepsilon C}\bigr)$ | {eq}`eq-sghmc-variance` |
# | learning-rate form | $\eta = \varepsilon^2M^{-1}$, $\alpha = \varepsilon M^{-1}C$, $\hat\beta = \varepsilon M^{-1}\hat B$ | {eq}`eq-learning-rate` |
# | friction | $\tau$ of $\theta$: $2C/(\varepsilon a)$; of $\theta^2$: $(1/C + C/a)/\varepsilon$ | {eq}`eq-friction` |
#
# ## Change it
#
# * Set `DoubleWell(), 4.0, 0.1, 3.0` to `DoubleWell(), 4.0, 0.2, 3.0`, which doubles the step: SGHMC's bias is several times as large, and explicit Euler diverges.
#   Claims on the double well show ✗, and the page goes on.
# * Set `SGHMC(step_size, friction, noise_estimate, num_steps=10)` to `SGHMC(step_size, friction, 0.0, num_steps=10)`: nothing is subtracted for the gradient's noise, the chain samples at $T_{\text{eff}} = 1 + B/C = 1.07$, and the claims on its draws show ✗.
# * Set `SGHMC.from_learning_rate(0.02, 0.1, temperature=0.0)` to `SGHMC.from_learning_rate(0.02, 0.2, temperature=0.0)`: this is SGD with momentum 0.8, so that the claim on `torch.optim.SGD` with momentum 0.9 shows ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-sghmc-overdamped
#
# Set $\alpha = 1$.
# Which algorithm does {eq}`eq-sghmc-learning-rate` become?
# Check the first formula of {eq}`eq-sghmc-variance` against {eq}`eq-sgld-variance`.
# ```
#
# ```{solution} ex-sghmc-overdamped
# :class: dropdown
#
# The velocity forgets its past: $v = -\eta\nabla\tilde U(\theta) + N(0, 2(1 - \hat\beta)\eta)$ and $\theta \leftarrow \theta + v$.
# That is stochastic-gradient Langevin dynamics with step $\eta$ and noise estimate $\hat\beta$.
# With $\varepsilon C = 1$ and $\varepsilon^2 = \eta$ its second factor is $1/(1 - \tfrac12\eta a)$, and $T_{\text{eff}} = 1 - \hat\beta + \tfrac12\eta V$.
# ```
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
# ```{exercise}
# :label: ex-sghmc-euler
#
# Eliminate the momentum: show that on $U = \tfrac12a\theta^2$ with $M = 1$ both orders of updates make the positions alone a recursion $\theta_{t+2} = \varphi_1\theta_{t+1} + \varphi_2\theta_t + \zeta$.
# Find its stationary variance, and derive {eq}`eq-sghmc-variance`.
# At which step sizes do the two chains explode?
# ```
#
# ```{solution} ex-sghmc-euler
# :class: dropdown
#
# Write $\alpha = \varepsilon C$ and $k = \varepsilon^2a$.
# Because $\varepsilon r_t = \theta_{t+1} - \theta_t$, the momentum's update times $\varepsilon$ is the recursion, with $\varphi_1 = 2 - \alpha - k$, $\varphi_2 = -(1 - \alpha)$ for the gradient at the new position and $\varphi_1 = 2 - \alpha$, $\varphi_2 = -(1 - \alpha + k)$ for the old.
# In both $\operatorname{Var}\zeta = \varepsilon^2\bigl(\varepsilon^2V + 2\varepsilon(C - \hat B)\bigr) = 2\varepsilon^2\alpha T_{\text{eff}}$.
#
# Let $\sigma^2$, $c_1$, $c_2$ be the stationary covariances at lags 0, 1 and 2.
# Multiply the recursion by $\theta_{t+1}$, $\theta_t$ and $\theta_{t+2}$ and take expectations: $c_1 = \varphi_1\sigma^2 + \varphi_2c_1$, $c_2 = \varphi_1c_1 + \varphi_2\sigma^2$ and $\sigma^2 = \varphi_1c_1 + \varphi_2c_2 + \operatorname{Var}\zeta$.
# Eliminate $c_1$ and $c_2$:
#
# $$
# \sigma^2 = \frac{(1 - \varphi_2)\operatorname{Var}\zeta}{(1 + \varphi_2)\bigl((1 - \varphi_2)^2 - \varphi_1^2\bigr)}.
# $$
#
# For the new position the denominator is $\alpha\,k\,(4 - 2\alpha - k)$, for the old one $(\alpha - k)\,k\,(4 - 2\alpha + k)$; the rest is division.
# They explode where a denominator first vanishes. For the new position that is at $\varepsilon^2a = 4 - 2\varepsilon C$; for the old one at $\varepsilon = C/a$, where the lost friction eats up all there is, or, if $C > 2\sqrt a$, already at $2\varepsilon C = 4 + \varepsilon^2a$, which for $C = 3$ and $a = 1$ is $\varepsilon = 3 - \sqrt5 = 0.76$.
# With $C = 1$ and $a = 4$ that is at $\varepsilon = 0.78$ and at $\varepsilon = 0.25$.
# ```


# %% tags=["hide-input"]
def radius(step_size, explicit_euler, friction=1.0, a=4):
    """The largest size of an eigenvalue of a step."""
    chain = sghmc_chain(a * one, step_size, friction, explicit_euler=explicit_euler)
    return torch.linalg.eigvals(chain.transition).abs().max()


claim(
    "The two chains are stable just below 0.7808 and 0.25, and not just above",
    bool(radius(0.78, False) < 1 < radius(0.782, False))
    and bool(radius(0.249, True) < 1 < radius(0.251, True)),
    because="eigenvalues of the step",
    kind="exact",
)
claim(
    "With C = 3 and a = 1 the old position is stable at ε = 0.763, and not at 0.765",
    bool(radius(0.763, True, 3.0, 1) < 1 < radius(0.765, True, 3.0, 1)),
    because="eigenvalues of the step; 3 − √5 = 0.7639",
    kind="exact",
)

# %% [markdown]
# ````{exercise}
# :label: ex-sghmc-resample
#
# Draw the momentum afresh before every draw, `resample_every=1`.
# What does {prf:ref}`alg-sghmc` sample with $m = 1$?
# With $m = 2$?
# Try both, and $m = 50$, on the double well with the smallest friction that is allowed, $C = \hat B = 0.2$:
#
# ```python
# kernel = SGHMC(0.1, friction=0.2, noise_estimate=0.2, num_steps=2, resample_every=1)
# draws = sample(kernel, noisy_well, torch.zeros(2_000, 1), num_samples=100, warm_up=500)
# (draws.samples**4).mean() / expectation(well, lambda x: x**4, -4, 4)
# ```
# ````
#
# ```{solution} ex-sghmc-resample
# :class: dropdown
#
# With $m = 1$ the position moves by $\varepsilon r$ with a fresh $r$, and the momentum that the gradient then changes is thrown away: a random walk that never hears of $U$.
# With $m = 2$ the gradient counts once in two steps, and $E[\theta^4]$ is still about a fifth too large.
# With $m = 50$ it is right to two per cent: what the fresh momentum cuts off is the last kick of each draw, one in fifty.
# This run injects no noise at all, $C - \hat B = 0$; the gradient's own is enough, and a friction of 0.2 suffices to take it out.
# Without that friction it is naive SGHMC, 60 % too large.
# ```

# %% tags=["hide-input"]
exact_fourth = expectation(well, lambda x: x**4, -4, 4)
resampled = {
    "m = 2": SGHMC(0.1, 0.2, 0.2, num_steps=2, resample_every=1),
    "m = 50": SGHMC(0.1, 0.2, 0.2, num_steps=50, resample_every=1),
    "naive SGHMC": NaiveSGHMC(0.1, 50),
}
for (name, resampling), near, within in zip(
    resampled.items(), (1.2, 1.0, 1.6), (0.1, 0.02, 0.06), strict=True
):
    draws = sample(
        resampling,
        noisy_well,
        torch.zeros(2_000, 1),
        num_samples=100,
        warm_up=500 if name == "m = 2" else 20,
    )
    claim(
        f"E[θ⁴] with a fresh momentum before every draw over the exact one, {name}",
        (draws.samples**4).mean() / exact_fourth,
        near=near,
        within=within,
        because="2,000 chains",
    )

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
# The noise has the variance $2(\alpha - \hat\beta)\eta$, so the normal numbers are multiplied by its square root.
# The kernel keeps the momentum $r$, and $v = \varepsilon r$ with $\varepsilon = \sqrt\eta$.
# The folded code below does both for fifty steps.
# ```


# %% tags=["hide-input"]
def learning_rate_step(gradient, theta, velocity, eta, alpha, beta, normal):
    """A step with the function gradient, a noise estimate beta and standard normal
    numbers: theta and velocity (1, d) -> the new theta and the new velocity."""
    theta = theta + velocity
    velocity = (1 - alpha) * velocity - eta * gradient(theta)
    return theta, velocity + (2 * (alpha - beta) * eta) ** 0.5 * normal


eta, alpha, beta = 0.01, 0.3, 0.02
kernel = SGHMC.from_learning_rate(eta, alpha, beta)
theta = torch.ones(1, 1, dtype=torch.float64)
generator, again = torch.Generator().manual_seed(0), torch.Generator().manual_seed(0)
state = kernel.init(bowl, theta, generator)
velocity = eta**0.5 * torch.randn(1, 1, generator=again, dtype=torch.float64)
for _ in range(50):
    state, _ = kernel.step(bowl, state, generator)
    normal = torch.randn(1, 1, generator=again, dtype=torch.float64)
    theta, velocity = learning_rate_step(
        bowl.gradient, theta, velocity, eta, alpha, beta, normal
    )
claim(
    "Fifty steps in learning-rate form and by the package differ by",
    (theta - state.position).abs().max(),
    at_most=1e-12,
    because="the same formula on the same random numbers; rounding",
    kind="exact",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`chen2014` introduced the algorithm, {cite:t}`ma2015` found the family it belongs to, {cite:t}`leimkuhler2016` and {cite:t}`sanzserna2021` treat splittings of Langevin dynamics with smaller discretisation errors than this one's, and {cite:t}`nemeth2021` survey the field.
