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
# Page 8 of 12 · 53 minutes to read, 15 to play · Running: about 6 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! SGHMC, ! stochastic-gradient HMC
# ```

# %%
import torch

from booklib.page.claims import check, near
from booklib.page.scoreboard import show_row
from sgmc.targets import DoubleWell

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt

from booklib.page.claims import at_least, at_most
from booklib.page.figures import COLOURS, TRUTH, plot_density, plot_histogram, use_style
from booklib.page.play import play
from booklib.page.scoreboard import pace, show_scoreboard
from booklib.scores.diagnostics import expectation
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.splittings import langevin_chain, sghmc_chain
from sgmc.targets import Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
warnings.filterwarnings("ignore", message=".*too wide|.*do not agree")  # on purpose

# %% [markdown]
# The noise of a minibatch gradient pumps energy into Hamiltonian dynamics without end.
# On {doc}`page 7 </book/tutorial/naive_sghmc>` one inserted line, a friction force $-Cr$, bent that climb over. But only one friction made the energy settle where it should, and a stronger one settled too low.
# We want to choose the friction freely, so it needs noise beside it. How much, in every potential and every direction?
#
# A step of size $\varepsilon$ with gradient noise of variance $V$ brings noise of the *diffusion* $B = \tfrac12\varepsilon V$ (page 5), as much as a friction $C = B$ would balance.
# Let $\hat B$, read "B hat", be what we believe $B$ to be. Then the noise of diffusion $C - \hat B$ is missing, which in a step is a variance of $2(C - \hat B)\varepsilon$, and we inject it.
# With mass 1 the whole sampler is three lines:


# %%
def sghmc_step(gradient, theta, r, step_size, friction, noise_estimate, generator):
    """Move, and then let gradient, friction and noise change the momentum."""
    theta = theta + step_size * r
    r = r - step_size * (gradient(theta) + friction * r)
    injected = 2 * (friction - noise_estimate) * step_size  # a variance
    return theta, r + injected**0.5 * torch.randn(r.shape, generator=generator)


# %% [markdown]
# Ten thousand chains in the bowl $U = \tfrac12\theta^2$ with $V = 4$, where $\varepsilon = 0.1$ makes $B = 0.2$ and the correct mean energy is $E[H] = 1$:

# %%
generator = torch.Generator().manual_seed(8)


def noisy_bowl(theta):
    """The gradient of U = ½θ², with noise of variance V = 4."""
    return theta + 2 * torch.randn(theta.shape, generator=generator)


def mean_energy(friction, noise_estimate, variance=1.0):
    """The mean energy after 0, 1, …, 200 steps, from N(0, variance)."""
    theta, r = variance**0.5 * torch.randn(2, 10_000, generator=generator)
    energies = []
    for _ in range(201):
        energies.append((theta**2 + r**2).mean() / 2)
        settings = 0.1, friction, noise_estimate, generator
        theta, r = sghmc_step(noisy_bowl, theta, r, *settings)
    return torch.stack(energies)


energies = {
    "no friction": mean_energy(0.0, 0.0),
    r"friction, $\hat B = 0$": mean_energy(0.5, 0.0),
    r"friction, $\hat B = B$": mean_energy(0.5, 0.2),
    r"$\hat B = B$, hot start": mean_energy(0.5, 0.2, variance=5.0),
}
_, too_hot, right, cooled = energies.values()
check("settled", too_hot[100:].mean(), near(1.42, 0.06), digits=2)
check("cooled", cooled[150:].mean(), near(1.01, 0.06), digits=2)

# %% [markdown]
# {numref}`fig-sghmc-energy` shows the answer.
# Without friction the energy climbs along a straight line.
# With friction it settles; but with $\hat B = 0$, when we take no account of the gradient's own noise, it settles at {c}`settled`, too high.
# With $\hat B = B$ it stays at 1, and comes back to {c}`cooled` from a start that is five times too hot.

# %% mystnb={"figure": {"caption": "Mean energy of 10,000 chains of `sghmc_step` in the bowl against time; $\\varepsilon = 0.1$, $V = 4$, $C = 0.5$. The grey line at 1 is correct.", "name": "fig-sghmc-energy"}, "image": {"alt": "Four labelled lines over a time of 20. Without friction the energy rises steadily from 1 to 5. With friction and no noise estimate it rises to 1.4 and stays there. With the right estimate it stays at 1, and from a hot start at 5 it falls to 1 within a time of ten."}} tags=["hide-input"]
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
# ## Friction in balance with noise
#
# In a step of size $\varepsilon$ the momentum changes by $-\varepsilon\nabla\tilde U$, which is $-\varepsilon\nabla U$ and noise of variance $\varepsilon^2V$.
# Write this variance as $2B\varepsilon$, with the $B$ from above,
#
# $$
# B = \tfrac12\varepsilon V.
# $$ (eq-b)
#
# It pumps in energy at the rate $\operatorname{tr}(M^{-1}B)$ ({prf:ref}`thm-pumping`), so something has to take energy out again.
# {term}`Friction <friction>` does: a force $-CM^{-1}r$ against the velocity, where $C$ is a number or a symmetric positive definite matrix.
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
# The one before it is ours, with the {term}`noise estimate` $\hat B$.
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
# For $p = e^{-H}$ the terms with $D$ cancel already, as they did for SGLD. What is left is the rolling, which goes round on the contours of $H$. To see that it changes nothing, add a term that is zero.
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
# Page 6's proof that SGLD keeps its target is this one with other matrices:
#
# | sampler | $z$ | $H$ | $D$ | $Q$ |
# | --- | --- | --- | --- | --- |
# | SGLD | $\theta$ | $U(\theta)$ | $I$ | $0$ |
# | SGHMC | $(\theta, r)$ | $U(\theta) + \tfrac12r^\top M^{-1}r$ | $\begin{pmatrix}0 & 0\\ 0 & C\end{pmatrix}$ | $\begin{pmatrix}0 & -I\\ I & 0\end{pmatrix}$ |
#
# $D$ is the noise and its friction, and $Q$ the rolling that keeps $H$. SGLD has no $Q$, so it goes downhill and is kicked; SGHMC is kicked in $r$ only, and $Q$ carries the kicks over to $\theta$.
#
# If $U$ is bounded below, this stationary distribution is the only one, and every start leads to it ({prf:ref}`thm-unique-diffusion`).
# The proof also covers noise that depends on the position, if $\hat B(\theta) = B(\theta)$ everywhere; even $C$ may depend on $\theta$, because only the block of $D$ that belongs to $r$ is not zero, and a derivative with respect to $r$ does not act on $C(\theta)$.
# All dynamics with a positive semi-definite $D$ and an antisymmetric $Q$ keep $\pi$, with a correction where they vary ({prf:ref}`thm-recipe`).
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
#
# ```{live} sghmc
# :name: fig-live-sghmc
# :alt: The path of one chain on the contours of a Gaussian; a histogram of the samples on the true density; the mean of theta squared, which comes to one; and the plane of friction and noise estimate, coloured by temperature, which is one along a level line.
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
# The condition $\hat B \preceq C$ says that $C - \hat B$ has no negative eigenvalue, since it becomes a variance; to sample $e^{-U/T}$ one injects $TC - \hat B$ in its place.
# No energy is computed and nothing is rejected, so nothing ever reads all the data.
# With $M = 1$ the two lines of step 2 are `sghmc_step` from the head of the page. In the package, `SGHMC(step_size, friction, noise_estimate)` is the same, with matrices for $C$, $M$ and $\hat B$ as well.
#
# The scoreboard is of the variance of $\theta$. Ten thousand chains, without and with the right estimate:


# %%
def sghmc(gradient, noise_estimate):
    """Every tenth θ of a thousand steps in 10,000 chains, after 200 steps."""
    theta, r = torch.zeros(2, 10_000)
    samples = []
    for step in range(1_200):
        theta, r = sghmc_step(gradient, theta, r, 0.1, 0.5, noise_estimate, generator)
        if step >= 200 and step % 10 == 0:
            samples.append(theta)
    return torch.stack(samples)


show_row("sghmc-0", sghmc(noisy_bowl, 0.0))
show_row("sghmc-B", sghmc(noisy_bowl, 0.2))

# %% [markdown]
# With $\hat B = 0$ the variance is {c}`sghmc-0`, the guess's number, and with $\hat B = B$ it is {c}`sghmc-B`. Where the exact values differ from 1.4 and 1, by a quarter of a per cent, it is the error of the step size, which we come to below.
#
# SGLD reached 1.025 without any estimate, so what does the momentum buy?
# A sampler is as good as the number of gradients that it takes for one independent value of what we are after. Here that is $\theta^2$, whose mean is the variance: the number is $\tau$ of {eq}`eq-tau` with $\theta^2$ in the place of $\theta$, and stands in the last column of the scoreboard.
# To be fair, let both be off by the same 0.26 per cent, with the right noise estimate in both. Then an independent $\theta^2$ costs SGLD {c}`tau-sgld` gradients, and SGHMC {c}`tau-sghmc`.
# Of this factor of eight, two come from the bias, $\tfrac12\eta$ against $\tfrac14\varepsilon^2$, which allows the larger step, and four from the mixing: at $\eta = \varepsilon^2$ SGLD forgets $\theta^2$ in 100 gradients and SGHMC in 25.

# %% tags=["hide-input"]
show_scoreboard(9)
one = torch.eye(1, dtype=torch.float64)


def chain_of(friction):
    """The linear chain of SGHMC in the bowl, ε = 0.1; B̂ = B has that of V = 0."""
    return sghmc_chain(one, 0.1, friction)


moving = chain_of(0.5)
rate = 2 * (1 - 1 / float(moving.stationary_covariance()[0, 0]))  # of the same error
still = langevin_chain(one, rate, 4.0, 2 * rate)
for name, chain, formula, because in (
    ("tau-sgld", still, 1 / rate, "1/η at curvature 1"),
    ("tau-sghmc", moving, 25, "(C² + a)/(aCε), up to the step's error"),
):
    value, bound = pace(chain), near(formula, 1)
    check(name, value, bound, kind="exact", digits=3, because=because)
kernel, target = SGHMC(0.1, 3.0, 0.2), NoisyGradient(Gaussian.standard(1), 4.0)
state = kernel.init(target, torch.zeros(1, 1), generator.manual_seed(0))
for _ in range(50):
    state, _ = kernel.step(target, state, generator)
theta, r = torch.zeros(1, 1), torch.randn(1, 1, generator=generator.manual_seed(0))
for _ in range(50):
    theta, r = sghmc_step(noisy_bowl, theta, r, 0.1, 3.0, 0.2, generator)
check(
    "same-steps",
    (theta - state.position).abs().max(),
    at_most(1e-5),
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


def noisy_well(theta):
    return well.gradient(theta) + 2 * torch.randn(theta.shape, generator=generator)


in_the_well = {estimate: sghmc(noisy_well, estimate) for estimate in (0.2, 0.0)}

# %% mystnb={"figure": {"caption": "SGHMC in the double well, $\\varepsilon = 0.1$, $V = 4$, $C = 0.5$, on the true density (grey).", "name": "fig-sghmc-well"}, "image": {"alt": "A grey density with two humps. The line of the right estimate runs along its outline; that of the estimate zero is below it on the humps, and above it in the valley and outside."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.0))
plot_density(axes, well, -2.2, 2.2)
edges, names = torch.linspace(-2.2, 2.2, 89), (r"$\hat B = B$", r"$\hat B = 0$")
for samples, style, name in zip(in_the_well.values(), ("-", ":"), names, strict=True):
    look = {"ls": style, "color": COLOURS["SGHMC"], "label": name}
    plot_histogram(axes, samples, edges, **look)
axes.set(xlabel=r"$\theta$", ylabel="density", ylim=(0, 0.65))
axes.legend(loc="upper center", ncols=3)
plt.show()

# %% [markdown]
# $E[\theta^4]$, which feels the width of the tails, is {c}`fourth-B` times the right one with $\hat B = B$ and {c}`fourth-0` times with $\hat B = 0$, as the density at the temperature 1.4 has it.

# %% tags=["hide-input"]
exact_fourth = expectation(well, lambda x: x**4, -4, 4)


class Warm(DoubleWell):
    """The double well at temperature 1.4."""

    def energy(self, position):
        return super().energy(position) / 1.4


warm_fourth = float(expectation(Warm(), lambda x: x**4, -5, 5) / exact_fourth)
for samples, name, bound, because in zip(
    in_the_well.values(),
    "B0",
    (near(1.0025, 0.006), near(warm_fourth, 0.012)),
    ("the step's own bias; five errors", "the temperature 1.4, by quadrature"),
    strict=True,
):
    ratio = (samples**4).mean() / exact_fourth
    check(f"fourth-{name}", ratio, bound, because=because)

# %% [markdown]
# ## What a step costs
#
# In a bowl of curvature $a$ the algorithm is a linear chain, and its variance is exact at any step size ({prf:ref}`thm-sghmc-variance`):
#
# $$
# \sigma^2 = \frac{T_{\text{eff}}}a\cdot\frac1{1 - \dfrac{\varepsilon^2a}{4 - 2\varepsilon C}}.
# $$ (eq-sghmc-variance)
#
# The gradient's noise enters only by the factor $T_{\text{eff}}$; the other factor, a bias of order $\varepsilon^2$, is the step's own.
# Several libraries take the gradient at the old position instead (explicit Euler; {doc}`/book/appendix/errata` names them), which loses the part $\varepsilon U''$ of the friction: the bias is then of order $\varepsilon$, {c}`old-over-new` times as large at $\varepsilon = 0.1$ and $C = 3$.
# {prf:ref}`thm-explicit-euler-variance` has it; {doc}`/book/further/splittings` has splittings with smaller errors.

# %% tags=["hide-input"]
new, old = (
    float(
        sghmc_chain(
            one, 0.1, 3.0, 4.0, 0.2, explicit_euler=euler
        ).stationary_covariance()[0, 0]
    )
    - 1
    for euler in (False, True)
)
check("old-over-new", old / new, at_least(10), kind="exact", digits=3)

# %% [markdown]
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
# Without the noise this is stochastic gradient descent with momentum $1 - \alpha$ and learning rate $\eta$.
# A training loss is usually a mean over the $N$ examples and $U$ a sum; then $\eta$ is the usual learning rate divided by $N$.
# At the other end, with $\alpha = 1$, the velocity forgets its past and the algorithm is SGLD with $\eta = \varepsilon^2$. Programs that clip their `alpha` or `mdecay` at 1 stop there.
# `SGHMC.from_learning_rate` translates; at temperature zero it *is* `torch.optim.SGD`, to rounding.

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
# The friction $C$ is the one number, besides the step size, that the user of SGHMC has to choose.
# {numref}`fig-how-much-friction` shows above what becomes of a start at $\theta = 3$: with little friction the ball swings for long, with much it crawls.
# Either way it forgets slowly. How slowly, in a bowl of curvature $a$ with $\hat B = B$?
#
# The autocorrelation $\rho(t)$ of $\theta$ is such a swing without noise, from $\rho(0) = 1$ at rest: $\rho'' + C\rho' + a\rho = 0$.
# That of $\theta^2$ is $\rho^2$, because $\theta$ is Gaussian. So what we need is the integral of $\rho^2$, and the equation gives it without being solved.
# Multiply it by $\rho'$ and integrate from 0 to infinity, then by $\rho$:
#
# $$
# \begin{aligned}
# C\int\rho'^2\,dt &= \tfrac12a,\\
# a\int\rho^2\,dt &= \int\rho'^2\,dt + \tfrac12C.
# \end{aligned}
# $$
#
# Hence $\int\rho^2dt = \frac12\bigl(\frac1C + \frac Ca\bigr)$. With $1/\varepsilon$ gradients in a unit of time, and $\tau$ twice the integral, an independent $\theta^2$ costs about
#
# $$
# \frac2\varepsilon\int_0^\infty\rho^2\,dt = \frac{C^2 + a}{aC\varepsilon}
# $$ (eq-friction-cost)
#
# gradients. The cost is least at $C = \sqrt a$, and twice that at about a quarter or four times this friction: in the bowl it is 25, 20 and 25 for $C = \frac12$, 1 and 2.

# %% mystnb={"figure": {"caption": "Friction in the bowl, $\\varepsilon = 0.1$. Above: 200 steps from $(3, 0)$, with the noise of SGHMC (thin) and without any (thick). Below: gradients for an independent $\\theta^2$ against the friction, exact (line) and by {eq}`eq-friction-cost` (dotted); the dot marks $C = \\sqrt a$.", "name": "fig-how-much-friction"}, "image": {"alt": "Three panels with a thick curve and a thin irregular one: a spiral of many turns for the friction 0.1, one that runs into the centre within a turn for 1, and one that falls to the axis and creeps along it for 5. Below them a curve like a U, lowest at friction 1."}} tags=["hide-input"]
figure, panels = plt.subplot_mosaic(
    [["0.1", "1", "5"], 3 * ["cost"]], figsize=(5.4, 4.9), height_ratios=(1, 1.3)
)
generator.manual_seed(4)
for name in ("0.1", "1", "5"):
    friction, axes = float(name), panels[name]
    for estimate, width in ((0.0, 0.7), (friction, 2.2)):  # B̂ = C injects nothing
        path = [(torch.tensor([3.0]), torch.zeros(1))]
        for _ in range(200):
            settings = 0.1, friction, estimate, generator
            path.append(sghmc_step(lambda theta: theta, *path[-1], *settings))
        axes.plot(*zip(*path, strict=True), color=COLOURS["SGHMC"], lw=width)
    axes.set(title=f"$C = {name}$", xlim=(-4, 4), ylim=(-4, 4), aspect="equal")
    axes.set(xlabel=r"$\theta$", ylabel="$r$" if name == "0.1" else "")
frictions, axes = torch.logspace(-1, 1, 41).tolist(), panels["cost"]
costs = [pace(chain_of(friction)) for friction in frictions]
axes.loglog(frictions, costs, color=COLOURS["SGHMC"])
axes.loglog(frictions, [(c**2 + 1) / (0.1 * c) for c in frictions], "k:", lw=1)
axes.plot(1, pace(chain_of(1.0)), "ko", ms=5)
axes.set(xlabel="friction $C$", ylabel=r"gradients for a $\theta^2$")
axes.set_xticks([0.1, 0.5, 1, 2, 10], ["0.1", "0.5", "1", "2", "10"])
axes.set_yticks([20, 50, 100], ["20", "50", "100"])
axes.minorticks_off()
plt.show()

# %% [markdown]
# Two more things speak for friction.
# What $\hat B$ leaves out raises the temperature by the factor $1 + (B - \hat B)/C$, and a bad start is forgotten fastest at *critical damping*, $C = 2\sqrt a$, where swinging just stops.
# So take a friction from $\sqrt a$ to $2\sqrt a$; in many dimensions take the curvature of the softest direction, which is the slowest.
# This is the friction that is best for speed; page 9 adds a second rule, for noise that has to be measured.

# %% tags=["hide-input"]
check(
    "best-friction",
    frictions[costs.index(min(costs))],
    near(1, 0.13),
    kind="exact",
    because="√a = 1, up to the step; a grid of 41 frictions, 12 % apart",
    says="The friction with the smallest exact cost",
)

# %% [markdown]
# **To remember:** friction and noise together set a temperature.
# The gradient brings noise $2B$, friction asks for $2C$, and SGHMC injects the difference.
# So it needs to know $B$, and that is the question of {doc}`the next page </book/tutorial/estimating_the_noise>`.
#
# ## Change it
#
# * In the cell of `mean_energy` set the third line's `mean_energy(0.5, 0.2)` to `mean_energy(0.5, 0.4)`, twice the truth: in {numref}`fig-sghmc-energy` that line falls to 0.6.
# * In the visible cell of the two rows set `0.1, 0.5, noise_estimate` to `0.1, 3.0, noise_estimate`, six times the friction: with $\hat B = 0$ the temperature is only $1 + 0.2/3 = 1.07$, and in {numref}`fig-sghmc-well` the dotted line nearly joins the other.
# * In `sghmc_step` set `gradient(theta) + friction * r` to `gradient(theta)`: nothing takes the noise out any more, all lines of {numref}`fig-sghmc-energy` climb, the dotted one out of its frame, and the thick paths of {numref}`fig-how-much-friction` are circles.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-sghmc-variance
#
# **Second moments.** ★★
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
# **Predict, then run.** ★★
# Draw the momentum afresh before every sample, `resample_every=1`.
# What does {prf:ref}`alg-sghmc` sample with $m = 1$?
# With $m = 2$?
# With $m = 50$?
# Write down your three answers, and try them on the double well with the smallest friction that is allowed, $C = \hat B = 0.2$:
#
# ```python
# kernel = SGHMC(0.1, friction=0.2, noise_estimate=0.2, num_steps=2, resample_every=1)
# start = torch.zeros(2_000, 1)
# draws = sample(kernel, NoisyGradient(well, 4.0), start, num_samples=100, warm_up=500)
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
# ```

# %% tags=["hide-input"]
for name, resampling, bound in (
    ("2", SGHMC(0.1, 0.2, 0.2, num_steps=2, resample_every=1), near(1.2, 0.1)),
    ("50", SGHMC(0.1, 0.2, 0.2, num_steps=50, resample_every=1), near(1.0, 0.02)),
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
# **Write it yourself.** ★★
# Write a step in the learning-rate form {eq}`eq-sghmc-learning-rate`, and compare it with `sghmc_step` on the same random numbers.
#
# ```python
# def learning_rate_step(gradient, theta, velocity, eta, alpha, beta, generator):
#     """A step with the noise estimate beta: the new theta and the new velocity."""
#     ...
# ```
#
# Tasks 5 and 6 of assignment 2, *Minibatch noise, and samplers that live with it*, ask for the translation of the parameters and for a sampler; see {doc}`/book/practice/teaching`.
# ````
#
# ````{solution} ex-sghmc-learning-rate
# :class: dropdown
#
# The noise has the variance $2(\alpha - \hat\beta)\eta$, so the normal numbers are multiplied by its square root.
#
# ```python
# def learning_rate_step(gradient, theta, velocity, eta, alpha, beta, generator):
#     theta = theta + velocity
#     velocity = (1 - alpha) * velocity - eta * gradient(theta)
#     noise = torch.randn(velocity.shape, generator=generator)
#     return theta, velocity + (2 * (alpha - beta) * eta) ** 0.5 * noise
# ```
#
# `sghmc_step` keeps the momentum $r$, and $v = \varepsilon r$ with $\varepsilon = \sqrt\eta$.
# ````


# %% tags=["hide-input"]
def learning_rate_step(gradient, theta, velocity, eta, alpha, beta, generator):
    theta = theta + velocity
    velocity = (1 - alpha) * velocity - eta * gradient(theta)
    noise = torch.randn(velocity.shape, generator=generator)
    return theta, velocity + (2 * (alpha - beta) * eta) ** 0.5 * noise


settings = 0.01, 0.05, 0.02, generator.manual_seed(0)
theta, velocity = learning_rate_step(
    noisy_bowl, torch.ones(9), torch.ones(9), *settings
)
settings = 0.1, 0.5, 0.2, generator.manual_seed(0)
same, r = sghmc_step(noisy_bowl, torch.ones(9), 10 * torch.ones(9), *settings)
check(
    "learning-rate",
    max((theta - same).abs().max(), (velocity - 0.1 * r).abs().max()),
    at_most(1e-6),
    kind="exact",
    because="the same step; rounding",
    says="The solution and sghmc_step differ, in nine chains, by",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`chen2014` introduced the algorithm, as *second-order Langevin dynamics* with stochastic gradients; *underdamped* and *kinetic* Langevin are other names of the same equation.
# {cite:t}`ma2015` found the family it belongs to, and {cite:t}`nemeth2021` survey the field.
