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
# # Stochastic-gradient HMC
#
# Noise in the gradient heats a Hamiltonian sampler; friction cools it, and when the two are matched the chain has the right law again.
#
# **You will learn** to
#
# * add friction to noisy Hamiltonian dynamics and prove that the target becomes stationary,
# * read Algorithm 2 of {cite:t}`chen2014` line by line, in both of its parametrisations,
# * see SGD with momentum as its limit without noise,
# * tell the right order of updates from the wrong one, by an exact formula and by measurement,
# * choose the friction.
#
# **You will need** {doc}`/book/foundations/hamiltonian_dynamics`, the Gaussian distribution, and integration by parts.

# %%
import matplotlib.pyplot as plt
import torch

from sgmc import claim, sample
from sgmc.diagnostics import expectation
from sgmc.figures import COLOURS, TRUTH, plot_density, plot_histogram, use_style
from sgmc.kernels import SGHMC
from sgmc.linear_laws import sghmc_chain
from sgmc.potentials import DoubleWell, Gaussian, NoisyGradient

use_style()

# %% [markdown]
# ## The dynamics
#
# Let the gradient be seen through noise, $\nabla\tilde U(\theta) = \nabla U(\theta) + N(0, V)$.
# In a step of size $\varepsilon$ the momentum changes by $-\varepsilon\nabla\tilde U$, that is by $-\varepsilon\nabla U$ and noise of variance $\varepsilon^2 V = 2B\varepsilon$ with
#
# $$
# B = \tfrac12\varepsilon V.
# $$ (eq-b)
#
# Noise whose variance grows in proportion to the time $\varepsilon$ is what a Brownian motion leaves behind, so a step approximates a stochastic differential equation whose diffusion is $B$.
# That diffusion pumps energy in. Take energy out again with a friction force $-CM^{-1}r$, as wind would, where $C$ is symmetric and positive:
#
# $$
# d\theta = M^{-1}r\,dt, \qquad dr = -\nabla U(\theta)\,dt - CM^{-1}r\,dt + N\bigl(0, 2(C - \hat B)dt\bigr) + N(0, 2B\,dt).
# $$ (eq-sghmc)
#
# The last term comes with the gradient, whether we want it or not. The one before it is noise of our own: $\hat B$ is our *estimate* of $B$, and we inject only what is missing.
# With a perfect estimate the two make up $N(0, 2C\,dt)$, and then friction and noise are in balance.
#
# ```{prf:theorem} The target is stationary
# :label: thm-sghmc
#
# Let $U$ be smooth with $\int e^{-U} < \infty$. If $\hat B = B$, the density $\pi(\theta, r) \propto \exp(-U(\theta) - \tfrac12r^\top M^{-1}r)$ is stationary for {eq}`eq-sghmc`; its marginal in $\theta$ is the target.
# ```
#
# ```{prf:proof}
# Write $z = (\theta, r)$. The total noise in $r$ has diffusion $C$, and the equation is $dz = -(D + Q)\nabla H(z)\,dt + N(0, 2D\,dt)$ with
#
# $$
# D = \begin{pmatrix}0 & 0\\ 0 & C\end{pmatrix}, \qquad Q = \begin{pmatrix}0 & -I\\ I & 0\end{pmatrix}, \qquad \nabla H = \begin{pmatrix}\nabla U\\ M^{-1}r\end{pmatrix}:
# $$
#
# the first row gives $d\theta = M^{-1}r\,dt$, the second $dr = -\nabla U\,dt - CM^{-1}r\,dt$. The density $p_t(z)$ of the solution obeys the Fokker–Planck equation {cite:p}`pavliotis2014`
#
# $$
# \partial_t p = \nabla\cdot\bigl((D + Q)\nabla H\,p\bigr) + \nabla\cdot(D\nabla p).
# $$ (eq-fokker-planck)
#
# Because $Q$ is constant and antisymmetric, $\nabla\cdot(Q\nabla p) = \sum_{ij}Q_{ij}\,\partial_i\partial_j p = 0$, so it may be added on the right without changing anything:
#
# $$
# \partial_t p = \nabla\cdot\bigl((D + Q)(\nabla H\,p + \nabla p)\bigr).
# $$
#
# For $p = e^{-H}/Z$ we have $\nabla p = -\nabla H\,p$: the inner bracket vanishes, and $\partial_t p = 0$.
# ```
#
# The proof shows more than the theorem. Any positive semi-definite $D$ and antisymmetric $Q$ give a sampler of $e^{-H}$; where they depend on $z$ a correction term appears, and then *every* continuous Markov process with that stationary law is of this form {cite:p}`ma2015`.
# It also shows what a wrong $\hat B$ does. With scalar coefficients the noise is $C - \hat B + B$ where $C$ was needed, and the chain samples at the *effective temperature*
#
# $$
# T_{\text{eff}} = \frac{C - \hat B + B}{C},
# $$ (eq-temperature)
#
# that is $e^{-U/T_{\text{eff}}}$, because scaling $H$ by $1/T$ scales the balance of noise and friction by $T$.
# With $\hat B = 0$ the excess is $B/C$: it vanishes if the friction is much larger than the noise, or if the step is small, because $B = \tfrac12\varepsilon V$.
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
# This is Algorithm 2 of {cite:t}`chen2014`. The gradient is taken at the position that was just reached.
# Here is the code that the book runs; temperature $T$ multiplies $C$ in the noise, and is 1 unless said otherwise.
#
# ```{literalinclude} ../../sgmc/kernels/sghmc.py
# :language: python
# :pyobject: SGHMC.step
# ```

# %%
well, noise_variance, step_size, friction = DoubleWell(), 4.0, 0.1, 3.0
noisy_well = NoisyGradient(well, noise_variance)
noise_estimate = 0.5 * step_size * noise_variance  # B = ½εV = 0.2
kernel = SGHMC(step_size, friction, noise_estimate, num_steps=10)
draws = sample(kernel, noisy_well, torch.zeros(4_000, 1), num_samples=200, warm_up=20, seed=1)
exact_square = expectation(well, lambda x: x**2, -4, 4)
square, square_error = draws.mean_and_standard_error(lambda x: x**2)
claim("The exact E[θ²] of the double well", exact_square, near=0.8327, within=5e-5, because="Gauss–Legendre quadrature")

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-sghmc-well", "caption": "SGHMC in the double well with gradient noise N(0, 4): the histogram of its draws lies on the true density, although no gradient it saw was right."}}
figure, axes = plt.subplots()
plot_density(axes, well, -2.2, 2.2)
plot_histogram(axes, draws.samples, torch.linspace(-2.2, 2.2, 89), color=COLOURS["SGHMC"], label="SGHMC")
axes.set(xlabel=r"$\theta$", ylabel="density", ylim=(0, None))
axes.legend()
plt.show()

# %% [markdown]
# ## The order of the updates
#
# Swap nothing but the place where the gradient is taken: read it at the *old* position, as explicit Euler does.
# Several libraries do, and the difference looks like nothing. The theory of the continuous equation cannot see it; the discrete chain can.


# %%
class ExplicitEulerSGHMC(SGHMC):
    """SGHMC with the gradient at the old position: the wrong order, for comparison only."""

    def step(self, potential, state, generator):
        position, momentum = state.position, state.momentum
        for _ in range(self.num_steps):
            gradient = potential.stochastic_gradient(position, generator)
            noise = torch.empty_like(momentum).normal_(
                0, (2 * (self.friction - self.noise_estimate) * self.step_size) ** 0.5, generator=generator
            )
            position, momentum = (
                position + self.step_size * momentum,
                momentum - self.step_size * (gradient + self.friction * momentum) + noise,
            )
        return state._replace(position=position, momentum=momentum)


explicit = sample(
    ExplicitEulerSGHMC(step_size, friction, noise_estimate, num_steps=10),
    noisy_well,
    torch.zeros(4_000, 1),
    num_samples=200,
    warm_up=20,
    seed=2,
)
explicit_square, explicit_error = explicit.mean_and_standard_error(lambda x: x**2)
claim(
    "Relative bias of E[θ²], gradient at the new position",
    square / exact_square - 1,
    near=-0.005,
    within=0.003,
    because="the standard error is below 0.0005, and runs with other seeds agree to 0.001",
)
claim(
    "Relative bias of E[θ²], gradient at the old position",
    explicit_square / exact_square - 1,
    near=-0.05,
    within=0.01,
    because="the standard error is below 0.0005, and runs with other seeds agree to 0.001",
)

# %% [markdown]
# Explicit Euler's bias is ten times larger. On a Gaussian target $U = \tfrac12\theta^\top A\theta$ both chains are linear recursions $z' = Fz + N(0, Q)$ whose stationary covariance $\Sigma = F\Sigma F^\top + Q$ can be solved exactly, so that no Monte Carlo error clouds the comparison.
# Take $A = 1$, $C = 3$, $V = 4$ and the perfect $\hat B = B$.

# %%
one = torch.eye(1, dtype=torch.float64)
step_sizes = 0.4 * 0.5 ** torch.arange(7, dtype=torch.float64)


def gaussian_bias(step_size, explicit_euler):
    chain = sghmc_chain(one, step_size, 3.0, 4.0, 0.5 * step_size * 4.0, explicit_euler=explicit_euler)
    return float(chain.stationary_covariance()[0, 0] - 1)


biases = {order: torch.tensor([gaussian_bias(float(h), order) for h in step_sizes]).abs() for order in (False, True)}
slopes = {order: float((b[-1] / b[-2]).log() / torch.tensor(0.5).log()) for order, b in biases.items()}
claim(
    "Halving ε divides the variance's bias by 2 to the power, new position",
    slopes[False],
    near=2,
    within=0.1,
    because="exact law; terms of the next order remain",
)
claim(
    "Halving ε divides the variance's bias by 2 to the power, old position",
    slopes[True],
    near=1,
    within=0.1,
    because="exact law; terms of the next order remain",
)

measured = []
for h in (0.4, 0.2, 0.1):
    kernel = SGHMC(h, 3.0, 0.5 * h * 4.0, num_steps=5)
    run = sample(kernel, NoisyGradient(Gaussian.standard(1), 4.0), torch.zeros(10_000, 1), num_samples=100, warm_up=30, seed=3)
    measured.append((h, *run.mean_and_standard_error(lambda x: x**2)))
for h, value, error in measured:
    claim(
        f"Measured variance at ε = {h:g} against the exact law of the discrete chain",
        value,
        near=1 + gaussian_bias(h, False),
        standard_error=error,
        because="Monte Carlo, from 10,000 independent chains",
    )

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-order-of-updates", "caption": "Bias of the stationary variance on a standard Gaussian against the step size: exact laws (lines) and measured values (points, with two standard errors). The gradient at the new position gives a bias of order ε², at the old position of order ε."}}
figure, axes = plt.subplots()
axes.loglog(step_sizes, biases[True], color=COLOURS["explicit Euler"], label="gradient at the old position")
axes.loglog(step_sizes, biases[False], color=COLOURS["SGHMC"], label="gradient at the new position")
for h, value, error in measured:
    axes.errorbar(h, abs(float(value) - 1), 2 * float(error), fmt="o", color=COLOURS["SGHMC"])
axes.set(xlabel=r"step size $\varepsilon$", ylabel="bias of the variance")
axes.legend()
plt.show()

# %% [markdown]
# ## The learning-rate form
#
# Let $v = \varepsilon M^{-1}r$ be the step that the position takes, and put
#
# $$
# \eta = \varepsilon^2M^{-1}, \qquad \alpha = \varepsilon M^{-1}C, \qquad \hat\beta = \varepsilon M^{-1}\hat B.
# $$ (eq-learning-rate)
#
# Multiply the momentum's update by $\varepsilon M^{-1}$. For scalar $M$ the noise becomes $\varepsilon^2M^{-2}\cdot2(C - \hat B)\varepsilon = 2(\alpha - \hat\beta)\eta$ in variance, and the algorithm reads
#
# $$
# \theta \leftarrow \theta + v, \qquad v \leftarrow (1 - \alpha)v - \eta\nabla\tilde U(\theta) + N\bigl(0, 2(\alpha - \hat\beta)\eta\bigr).
# $$ (eq-sghmc-learning-rate)
#
# Without the noise this is stochastic gradient descent with momentum $1 - \alpha$ and learning rate $\eta$ {cite:p}`polyak1964`.
# So a practitioner may start from settings that train well, and $\hat\beta = \tfrac12\eta\hat V$.
# The kernel is the same object in both forms: `SGHMC.from_learning_rate` only translates.
# At temperature zero nothing is injected, and the sampler must *be* `torch.optim.SGD`.

# %%
target = Gaussian.correlated(0.9, dtype=torch.float64)
start = torch.tensor([[2.0, -1.0]], dtype=torch.float64)
trace = sample(SGHMC.from_learning_rate(0.02, 0.1, temperature=0.0), target, start, num_samples=100).samples[:, 0]

parameter = torch.nn.Parameter(start[0].clone())
optimiser = torch.optim.SGD([parameter], lr=0.02, momentum=0.9)
steps = []
for _ in range(99):
    optimiser.zero_grad()
    target.energy(parameter[None]).sum().backward()
    optimiser.step()
    steps.append(parameter.detach().clone())
# SGHMC drifts first, from rest, so that its draw number t + 1 is the optimiser's number t.
claim(
    "At zero temperature SGHMC differs from torch.optim.SGD with momentum 0.9 by",
    (trace[1:] - torch.stack(steps)).abs().max(),
    at_most=1e-12,
    because="rounding of 100 steps in double precision",
)

# %% [markdown]
# ## Choosing the friction
#
# Little friction lets the ball swing for long, and noise that was not estimated ($B - \hat B$) heats it by the factor $1 + (B - \hat B)/C$.
# Much friction turns the swing into a random walk. In between lies the critical damping of an oscillator, $C = 2\sqrt{A}$ for curvature $A$ and unit mass.
# The exact integrated autocorrelation time $\tau$ — the number of steps that are worth one independent draw — shows it, for the mean and in the linear chain without gradient noise.
# The first panel also shows a trap: for the *mean*, a swinging chain is anti-correlated and looks better than independent draws; for the *variance* it does not. The slowest of the two is what matters, and for a Gaussian chain the autocorrelation of $\theta^2$ is $\rho_k^2$.

# %%
frictions = torch.logspace(-1.5, 2, 60, dtype=torch.float64)
direction = torch.tensor([1.0, 0.0], dtype=torch.float64)
chains = [sghmc_chain(one, 0.1, float(c)) for c in frictions if 0.1 * c < 2]
usable = frictions[: len(chains)]
correlations = torch.stack([chain.autocorrelation(direction, 20_000) for chain in chains])
time_of_mean = 2 * correlations.sum(-1) - 1
time_of_square = 2 * correlations.pow(2).sum(-1) - 1
slowest = torch.maximum(time_of_mean, time_of_square)
best = float(usable[slowest.argmin()])
claim(
    "The friction with the smallest autocorrelation time of the slower of mean and variance",
    best,
    near=1.4,
    within=0.5,
    because="exact law at ε = 0.1, on a grid of 60 frictions; critical damping is 2",
)

noise_free = {c: 1 + 0.2 / c for c in (1.0, 3.0, 10.0)}
for c, temperature in noise_free.items():
    law = sghmc_chain(one, 0.1, c, noise_variance=4.0).stationary_covariance()[0, 0]
    claim(
        f"With B̂ = 0 and friction {c:g} the variance against 1 + B/C",
        law / temperature,
        near=1,
        within=0.01,
        because="exact law; the step's own bias is of order ε²",
    )

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-friction", "caption": "Left: exact integrated autocorrelation time of the mean and of the variance against friction (standard Gaussian, ε = 0.1, no gradient noise). Right: what ignoring the gradient noise costs, the stationary variance with B̂ = 0 and V = 4; the true variance is the grey line."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2))
left.loglog(usable, time_of_mean, color=COLOURS["SGHMC"], label=r"mean of $\theta$")
left.loglog(usable, time_of_square, "--", color=COLOURS["SGHMC"], label=r"mean of $\theta^2$")
left.set(xlabel=r"friction $C$", ylabel=r"autocorrelation time $\tau$ (steps)", ylim=(0.5, None))
left.legend()
heated = [float(sghmc_chain(one, 0.1, float(c), noise_variance=4.0).stationary_covariance()[0, 0]) for c in usable]
right.loglog(usable, heated, color=COLOURS["SGHMC"], label=r"$\hat B = 0$")
right.axhline(1, color=TRUTH)
right.set(xlabel=r"friction $C$", ylabel="stationary variance")
right.legend()
plt.show()

# %% [markdown]
# ## In practice
#
# * Move first, then take the gradient where you are. Check that your library does.
# * Noise terms have variances $2(C - \hat B)\varepsilon$ or $2(\alpha - \hat\beta)\eta$; pass their square roots where a standard deviation is asked for.
# * $\hat B = 0$ is safe where $C \gg \tfrac12\varepsilon V$. Otherwise every variance is too wide by about $1 + B/C$.
# * $C \succeq \hat B$ is required, and the kernel refuses anything else.
# * Start from $\eta$ and $1 - \alpha$ that train the model well by SGD with momentum.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-sghmc-overdamped
#
# Let $C \to \infty$ and $\varepsilon \to 0$ with $\alpha = 1$. Which algorithm does {eq}`eq-sghmc-learning-rate` become?
# ```
#
# ```{solution} ex-sghmc-overdamped
# :class: dropdown
#
# The velocity forgets its past: $v = -\eta\nabla\tilde U(\theta) + N(0, 2(1 - \hat\beta)\eta)$ and $\theta \leftarrow \theta + v$. That is stochastic-gradient Langevin dynamics with step $\eta$.
# ```
#
# ```{exercise}
# :label: ex-sghmc-variance
#
# Solve the Lyapunov equation for $d = 1$, $M = 1$, $U = \tfrac12a\theta^2$ in the continuous limit with noise $B$ and estimate $\hat B$. Confirm {eq}`eq-temperature`.
# ```
#
# ```{solution} ex-sghmc-variance
# :class: dropdown
#
# Stationarity of $E[\theta^2]$, $E[\theta r]$ and $E[r^2]$ gives $E[\theta r] = 0$, $E[r^2] = aE[\theta^2]$ and $2CE[r^2] = 2(C - \hat B + B)$. Hence $E[\theta^2] = \frac1a\frac{C - \hat B + B}{C}$.
# ```
#
# ```{exercise}
# :label: ex-sghmc-resample
#
# With `resample_every=1` and small friction, at which number of steps $m$ does the chain behave like HMC without a correction step? Try it on the double well.
# ```
#
# ```{solution} ex-sghmc-resample
# :class: dropdown
#
# When $m\varepsilon C \ll 1$ the trajectory hardly feels the friction, and the noise that it collects is that of naive SGHMC. The fresh momentum then does the cooling that friction would do.
# ```
#
# ## Further reading
#
# {cite:t}`chen2014` introduced the algorithm, {cite:t}`ma2015` found the family it belongs to, {cite:t}`leimkuhler2016` treat splittings that are better than this one in its discretisation error, and {cite:t}`nemeth2021` survey the field.
