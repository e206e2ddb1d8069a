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
# # Naive stochastic-gradient HMC
#
# ```{div} page-head
# Level: first course · Reading: about 95 minutes, without the exercises · Running: about 14 seconds
# ```
#
# Put a minibatch gradient into Hamiltonian Monte Carlo and it overheats; this chapter proves it, measures how fast, and prices the obvious repair.
#
# **You will learn** to
#
# * show that Hamiltonian dynamics with a noisy gradient cannot leave its target invariant, because entropy grows,
# * predict the rate at which noise pumps energy in, and check it,
# * compute the law at which resampling the momentum stops the heating,
# * say what a Metropolis–Hastings step would cost, and in which unit to count,
# * see what it saves to let a part of the data decide, and what that costs.
#
# **You will need** {doc}`/book/foundations/hamiltonian_monte_carlo`, {doc}`/book/stochastic_gradients/minibatch_noise`, and {prf:ref}`thm-diffusion`.

# %%
import itertools
import math

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.stats import t as student

from sgmc import claim, flows, sample
from sgmc.diagnostics import bin_probabilities, expectation
from sgmc.figures import COLOURS, TRUTH, plot_density, plot_histogram, use_style
from sgmc.integrators import leapfrog
from sgmc.kernels import NaiveSGHMC
from sgmc.linear_laws import langevin_chain, linear_chain, naive_sghmc_chain
from sgmc.play import play
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## The obvious algorithm
#
# HMC draws a {term}`momentum` $r \sim N(0, M)$, follows $L$ {term}`leapfrog` steps, and accepts or rejects the end.
# With $N$ data points each gradient reads all of them.
# So replace $\nabla U$ by a minibatch estimate $\nabla\tilde U = \nabla U + N(0, V)$, and drop the correction step, because it would read all the data too.
#
# ```{prf:algorithm} Naive SGHMC
# :label: alg-naive
#
# Repeat: draw $r \sim N(0, M)$; follow $L$ leapfrog steps of size $\varepsilon$ with $\nabla\tilde U$ in place of $\nabla U$; keep the position at the end.
# ```
#
# With mass 1, and the leapfrog of {doc}`/book/foundations/hamiltonian_dynamics`, that is soon written:


# %%
def naive_sghmc(stochastic_gradient, theta, step_size, num_steps, generator):
    """One draw of naive SGHMC: from theta (chains, d) to the end of a trajectory."""

    def gradient(position):  # every call draws fresh noise
        return stochastic_gradient(position, generator, 0)

    momentum = torch.randn(theta.shape, generator=generator, dtype=theta.dtype)
    theta, momentum = leapfrog(gradient, theta, momentum, step_size, num_steps)
    return theta


# %% [markdown]
# ````{admonition} The package's step, with any mass and with the correction step as an option
# :class: dropdown
#
# ```{literalinclude} ../../sgmc/kernels/naive_sghmc.py
# :language: python
# :pyobject: NaiveSGHMC.step
# :start-after: Follow one noisy trajectory
# :dedent: 8
# ```
# ````
#
# Try it on the double well $U = -2\theta^2 + \theta^4$, with {term}`gradient noise` of variance $V = 4$.

# %%
well, bowl = DoubleWell(), Gaussian.standard(1, dtype=torch.float64)
draws = sample(
    NaiveSGHMC(0.1, 50),
    NoisyGradient(well, 4.0),
    torch.zeros(2_000, 1),
    num_samples=50,
    warm_up=10,
    seed=0,
)
fourth, fourth_error = draws.mean_and_standard_error(lambda x: x**4)
exact_fourth = expectation(well, lambda x: x**4, -4, 4)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-naive-well", "caption": "Naive SGHMC in the double well, ε = 0.1, 50 steps a trajectory, V = 4: hills too low, valley too high, tails too long."}, "image": {"alt": "A grey density with two hills. The line of the draws is below the hills, above the valley between them, and beyond the hills on either side it is still high where the density is zero."}}
figure, axes = plt.subplots(figsize=(5.2, 3.2))
plot_density(axes, well, -2.5, 2.5)
plot_histogram(
    axes,
    draws.samples,
    torch.linspace(-2.5, 2.5, 61),
    color=COLOURS["naive SGHMC"],
    label="naive SGHMC",
)
axes.set(xlabel=r"$\theta$", ylabel="density", ylim=(0, 0.68))
axes.legend(loc="upper center", ncols=2)
plt.show()

# %% [markdown]
# {numref}`fig-naive-well` shows the result, which is far too flat, as if the {term}`temperature` had been raised.

# %% tags=["hide-input"]
start = torch.zeros(3, 1)
by_hand, generator = start, torch.Generator().manual_seed(0)
for _ in range(5):
    by_hand = naive_sghmc(
        NoisyGradient(well, 4.0).stochastic_gradient, by_hand, 0.1, 50, generator
    )
kernel, generator = NaiveSGHMC(0.1, 50), torch.Generator().manual_seed(0)
state = kernel.init(NoisyGradient(well, 4.0), start, generator)
for _ in range(5):
    state, _ = kernel.step(NoisyGradient(well, 4.0), state, generator)
claim(
    "Five draws by the function above and by the package differ by",
    (by_hand - state.position).abs().max(),
    at_most=1e-6,
    because="the same moves on the same random numbers; rounding",
    kind="exact",
)
claim(
    "E[θ⁴] of naive SGHMC in the double well over the exact one",
    fourth / exact_fourth,
    near=1.6,
    within=0.03,
    because="other seeds give 1.59 to 1.61",
)
edges = torch.tensor([0.0, 0.25, 0.75, 1.25, 1.6, 4.0], dtype=torch.float64)
shares = bin_probabilities(well, edges)  # of |θ|, by symmetry
for name, cell, near in (
    ("in the valley, |θ| < ¼", 0, 1.325),
    ("on the hills of the density, ¾ < |θ| < 1¼", 2, 0.736),
    ("in the tails, |θ| > 1.6", 4, 8.67),
):
    size = draws.samples.abs()
    share = ((size > edges[cell]) & (size < edges[cell + 1])).double().mean()
    claim(
        f"Share of its draws {name}, over the exact one",
        share / shares[cell],
        near=near,
        within=0.04 * near,
        because="2,000 chains; other seeds stay within 2 % of this",
    )

# %% [markdown]
# ## Why: entropy grows
#
# First look at one path, in the plane of position and momentum.
# In the bowl $U = \tfrac12\theta^2$ the exact dynamics runs round a circle, on which the {term}`energy` $H = \tfrac12(\theta^2 + r^2)$ is what it was.
# A kick with noise moves the path off its circle, inwards or outwards.


# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-naive-idea", "caption": "Three hundred steps, ε = 0.1, from the black dot in the bowl: with the exact gradient (grey circle) and with gradient noise, V = 4 (orange)."}, "image": {"alt": "A small grey circle, and an irregular orange spiral that starts on it and winds outwards to more than twice its radius."}}
def follow(noise_variance, generator):
    """The states (301, 2) of one path of 300 steps from (0, 1), each a kick between
    two half drifts."""
    potential = NoisyGradient(bowl, noise_variance)
    position = torch.zeros(1, 1, dtype=torch.float64)
    momentum = position + 1
    path = [(position, momentum)]
    for _ in range(300):
        position = position + 0.05 * momentum
        gradient = potential.stochastic_gradient(position, generator, 0)
        momentum = momentum - 0.1 * gradient
        position = position + 0.05 * momentum
        path.append((position, momentum))
    return torch.stack([torch.cat(state)[:, 0] for state in path])


figure, axes = plt.subplots(figsize=(4.2, 4.0))
noisy_path = follow(4.0, torch.Generator().manual_seed(1))
axes.plot(*follow(0.0, torch.Generator().manual_seed(0)).T, color=TRUTH, lw=2.5)
axes.plot(*noisy_path.T, color=COLOURS["naive SGHMC"], lw=1)
axes.plot(0, 1, "ko", ms=6)
axes.set(xlabel=r"position $\theta$", ylabel=r"momentum $r$", aspect="equal")
plt.show()

# %% [markdown]
# {numref}`fig-naive-idea` shows how this goes on. The path drifts outwards, because there is more room outside of a circle than inside.

# %% tags=["hide-input"]
claim(
    "Largest radius of the orange path, where the circle has 1",
    noisy_path.norm(dim=1).max(),
    at_least=2.5,
    because="this path; others go elsewhere",
)
ends = torch.stack(
    [follow(4.0, torch.Generator().manual_seed(seed))[-1] for seed in range(100, 140)]
)
claim(
    "Share of forty such paths that end outside of the circle",
    (ends.norm(dim=1) > 1).double().mean(),
    at_least=0.75,
    because="the expected share is 0.93",
)

# %% [markdown]
# Now the theory.
# A full kick $-\varepsilon\nabla\tilde U$ carries noise of variance $\varepsilon^2V = 2B\varepsilon$ with $B = \tfrac12\varepsilon V$, see {eq}`eq-diffusion`.
# In continuous time
#
# $$
# \begin{aligned}
# d\theta &= M^{-1}r\,dt,\\
# dr &= -\nabla U(\theta)\,dt + N(0, 2B\,dt).
# \end{aligned}
# $$ (eq-naive)
#
# Hamilton's equations carry a {term}`density` about without spreading it, because their flow keeps volume.
# Noise spreads it, and nothing here undoes that.
# *Entropy*, $-\int p\log p$, measures how far a density is spread.
#
# ```{prf:theorem} Entropy grows
# :label: thm-entropy
#
# Let $p_t$ be the density of $(\theta, r)$ under {eq}`eq-naive` with a positive definite $B(\theta)$, smooth, positive, and falling fast enough at infinity for the integrations by parts below.
# Its entropy $h(p_t) = -\int p_t\log p_t$ grows strictly:
#
# $$
# \frac{d}{dt}h(p_t) = \int\frac{\nabla_r p_t^\top B\,\nabla_r p_t}{p_t}\,d\theta\,dr > 0.
# $$ (eq-entropy)
#
# So no such density of finite entropy is stationary, the target $e^{-H}$ among them.
# ```
#
# ```{prf:proof}
# By {prf:ref}`thm-diffusion`, $\partial_tp = -\nabla\cdot(p\,f) + \nabla_r\cdot(B\nabla_rp)$ with $f = (M^{-1}r, -\nabla U)$; $B$ does not depend on $r$.
# Because $\int\partial_tp = 0$, we have $\frac{d}{dt}h = -\int\partial_tp\,\log p$.
#
# The first term contributes $\int\nabla\cdot(pf)\log p = -\int p\,f\cdot\nabla\log p = -\int f\cdot\nabla p = \int p\,\nabla\cdot f = 0$, because $M^{-1}r$ does not depend on $\theta$, nor $\nabla U$ on $r$: Hamiltonian flow keeps volume.
#
# The second contributes $-\int\nabla_r\cdot(B\nabla_rp)\log p = \int\nabla_rp^\top B\nabla_r\log p$, which is {eq}`eq-entropy`.
# It is zero only if $p$ does not depend on $r$, and then $p$ is no density.
# ```
#
# This is Theorem 3.1 of {cite:t}`chen2014`; {prf:ref}`thm-entropy-boundary` says what is fast enough at infinity.
# The heat can be counted, too.
#
# ```{prf:theorem} Energy is pumped in at the rate tr(M⁻¹B)
# :label: thm-pumping
#
# The noise of one kick adds exactly $\varepsilon\operatorname{tr}(M^{-1}B)$ to the expected energy.
# Hence under {eq}`eq-naive` $\frac{d}{dt}E[H] = \operatorname{tr}(M^{-1}B)$, for every potential.
# ```
#
# ```{prf:proof}
# Let $\xi \sim N(0, \varepsilon^2V)$ be the noise, independent of the momentum $r$ that it meets.
# Then $E[\tfrac12(r + \xi)^\top M^{-1}(r + \xi)] = E[\tfrac12r^\top M^{-1}r] + \tfrac12\operatorname{tr}(M^{-1}\varepsilon^2V)$: the mixed term has mean zero, and the last is $\varepsilon\operatorname{tr}(M^{-1}B)$.
# The position does not feel a kick, so the potential energy stays as it is; and between the kicks Hamiltonian flow keeps $H$.
# There are $1/\varepsilon$ kicks in a unit of time.
# ```
#
# {prf:ref}`thm-pumping-conditions` does the same in continuous time, and says when the expectation is finite.
#
# Compare that with what is there: in equilibrium $E[\tfrac12r^\top M^{-1}r] = d/2$.
# After a time of $d/(2\operatorname{tr}(M^{-1}B))$ the noise has brought as much energy as the momentum had.
#
# In the bowl $U = \tfrac12\theta^2$ both theorems can be watched exactly: a Gaussian stays Gaussian, its covariance $\Sigma$ obeys a linear recursion, and its entropy is $\tfrac12\log\det\Sigma$ and a constant.
# A noisy step is a list of three moves: half a drift of the position, a kick of the momentum by the gradient, and half a drift.
# Each move is linear, and `linear_chain` composes them to one linear chain in $(\theta, r)$, as in the box on linear chains in {doc}`/book/stochastic_gradients/langevin`.
# We start in equilibrium, $N(0, I)$.


# %%
def covariance_path(step_size, noise_variance, num_steps):
    """The exact covariance of (θ, r) after 0, 1, … steps from equilibrium,
    (num_steps + 1, 2, 2)."""
    half_drift, kick = flows.Drift(step_size / 2), flows.Kick(step_size)
    step = linear_chain([half_drift, kick, half_drift], torch.eye(1), noise_variance)
    path = [torch.eye(2, dtype=torch.float64)]
    for _ in range(num_steps):
        path.append(
            step.transition @ path[-1] @ step.transition.T + step.noise_covariance
        )
    return torch.stack(path)


step_size, noise_variance, num_steps = 0.1, 4.0, 200
covariances = covariance_path(step_size, noise_variance, num_steps)
time = step_size * torch.arange(num_steps + 1)
energy = 0.5 * covariances.diagonal(dim1=1, dim2=2).sum(-1)
entropy = 0.5 * torch.logdet(covariances)  # up to a constant
B = 0.5 * step_size * noise_variance

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-heating", "caption": "Exact heating of the bowl from equilibrium, ε = 0.1, V = 4. Above: the expected energy and the line of slope tr(M⁻¹B). Below: the entropy, which never falls."}, "image": {"alt": "Above, a line that rises steadily from 1 to 5 in a time of 20, with a dashed straight line on it. Below, a curve that rises from 0 to 1.6, ever more slowly."}}
figure, (left, right) = plt.subplots(2, 1, figsize=(5.0, 5.4), sharex=True)
left.plot(time, energy, color=COLOURS["naive SGHMC"], label="naive dynamics")
left.plot(
    time,
    energy[0] + B * time,
    "--",
    color="black",
    lw=0.8,
    label=r"slope $\mathrm{tr}(M^{-1}B)$",
)
left.set(
    ylabel="expected energy $E[H]$",
    ylim=(0, None),
    xticks=range(0, 21, 5),
)
left.legend()
right.plot(time, entropy, color=COLOURS["naive SGHMC"])
right.set(
    xlabel="time",
    ylabel="entropy gained",
    xticks=range(0, 21, 5),
)
plt.show()

# %% [markdown]
# In {numref}`fig-heating` the energy climbs along a straight line, and the entropy never falls.

# %% tags=["hide-input"]
claim(
    "Entropy grows at every one of 200 noisy steps",
    bool((entropy.diff() > 0).all()),
    because="exact covariance recursion",
    kind="exact",
)
claim(
    "Without noise the entropy of 200 steps changes by",
    torch.logdet(covariance_path(step_size, 0.0, num_steps)[-1]).abs(),
    at_most=1e-10,
    because="leapfrog keeps volume; rounding",
    kind="exact",
)
claim(
    "Energy gained per unit of time over the rate tr(M⁻¹B)",
    (energy[-1] - energy[0]) / time[-1] / B,
    near=1,
    within=0.01,
    because="exact recursion; the step's own error is of order ε² = 0.01",
    kind="exact",
)

# %% [markdown]
# The rate is the same in every potential.
# In the double well no law is exact, so follow 100,000 paths for a time of 4 and count.
# One detail makes the count exact. A leapfrog trajectory of 200 steps has 201 kicks: 199 whole ones between its drifts, and a half kick at each end.
# A half kick carries half the noise, so a quarter of the variance, and brings a quarter of the energy: the trajectory has the heat of $199 + \tfrac24 = 199.5$ kicks.

# %%
chains, short_step, path_length = 100_000, 0.02, 200
generator = torch.Generator().manual_seed(1)
noisy_well = NoisyGradient(well, noise_variance)


def total_energy(position, momentum):
    """H of every chain, (chains,)."""
    return (well.energy(position) + 0.5 * momentum[:, 0] ** 2).double()


position = torch.randn(chains, 1, generator=generator) * 0.5 + 1.0
momentum = torch.randn(chains, 1, generator=generator)
end = leapfrog(
    lambda x: noisy_well.stochastic_gradient(x, generator),
    position,
    momentum,
    short_step,
    path_length,
)
gain = total_energy(*end) - total_energy(position, momentum)
# Of the 201 kicks of the trajectory the first and the last are half kicks, with a
# quarter of the noise variance each.
full_kicks = path_length - 1 + 2 / 4

# %% tags=["hide-input"]
claim(
    "The double well gains energy in a time of 4 as the formula says",
    gain.mean(),
    near=full_kicks * short_step * 0.5 * short_step * noise_variance,
    standard_error=gain.std() / chains**0.5,
    because="the rate does not depend on the potential; Monte Carlo over 100,000 paths",
)

# %% [markdown]
# ## Resampling stops the heating, too late
#
# A fresh momentum at the start of each trajectory throws away the kinetic half of the heat.
# The heat in $\theta$ stays, until as much is lost as is gained.
# In the bowl the balance is simple.
#
# ```{prf:theorem} Stationary variance of naive SGHMC in the bowl
# :label: thm-naive-variance
#
# Let $U = \tfrac12\theta^2$ and $M = 1$.
# If $r \sim N(0, 1)$ is drawn afresh after every time $t$ (not a multiple of $\pi$), the dynamics {eq}`eq-naive` has the stationary variance
#
# $$
# \begin{aligned}
# \sigma^2 &= 1 + B\Bigl(\frac{t}{\sin^2t} - \cot t\Bigr)\\
# &= 1 + \tfrac23Bt + O(t^3).
# \end{aligned}
# $$ (eq-naive-variance)
# ```
#
# ```{prf:proof}
# Without noise $(\theta, r)$ rotates.
# Noise that arrives at the time $s$ in $r$ has turned by $t - s$ when the trajectory ends, so that it has moved $\theta$ by $\sin(t - s)$ times its size.
# Hence $\theta(t) = \theta\cos t + r\sin t + \xi$, where $\xi$ has the variance $\int_0^t2B\sin^2(t - s)\,ds = B(t - \sin t\cos t)$.
# Stationarity is $\sigma^2 = \sigma^2\cos^2t + \sin^2t + B(t - \sin t\cos t)$; divide by $1 - \cos^2t = \sin^2t$.
# ```
#
# Short trajectories collect little noise, but walk at random; with a single step, $L = 1$, the algorithm is nothing but SGLD with $\eta = \tfrac12\varepsilon^2$.
# Long ones collect much.
# Near half a period, $t = L\varepsilon = \pi$, it is worst: there $\theta$ comes back as $-\theta$ whatever the fresh momentum was, so that nothing is cooled.
# The discrete chain is linear, so that its law is known exactly, the step's error included.

# %%
lengths = [2, 5, 10, 15, 20, 25, 28, 40, 50]
all_lengths = list(range(1, 61))
exact = [
    float(
        naive_sghmc_chain(torch.eye(1), 0.1, L, noise_variance).stationary_covariance()[
            0, 0
        ]
    )
    for L in all_lengths
]
measured = []
for L in lengths:
    run = sample(
        NaiveSGHMC(0.1, L),
        NoisyGradient(bowl, noise_variance),
        torch.zeros(2_000, 1, dtype=torch.float64),
        num_samples=40,
        warm_up=600 // L + 20,
        seed=L,
    )
    measured.append(run.mean_and_standard_error(lambda x: x**2))

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-naive-variance", "caption": "Stationary variance of naive SGHMC in the bowl against the length of a trajectory, ε = 0.1, V = 4: exact law (line) and measurements (points, two standard errors). The true variance is 1 (grey); the peak is at half a period, and the next one, at a whole period of 63 steps, lies just beyond the edge."}, "image": {"alt": "A line that rises from 1 to a sharp peak near 31 steps, falls back to about 2, and rises towards another peak near 60 steps. Nine points lie on it."}}
figure, axes = plt.subplots(figsize=(5.4, 3.4))
axes.semilogy(
    all_lengths, exact, color=COLOURS["naive SGHMC"], label="exact law of the chain"
)
values, errors = ([float(x) for x in column] for column in zip(*measured, strict=True))
axes.errorbar(
    lengths,
    values,
    [2 * e for e in errors],
    fmt="o",
    ms=4,
    color=COLOURS["naive SGHMC"],
    label="measured",
)
axes.axhline(1, color=TRUTH, zorder=0)
axes.set(
    xlabel="leapfrog steps $L$",
    ylabel=r"stationary variance of $\theta$",
    yticks=[1, 2, 5, 20, 100, 400],
    ylim=(0.9, 700),
)
axes.set_yticklabels(["1", "2", "5", "20", "100", "400"])
axes.minorticks_off()
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# In {numref}`fig-naive-variance` the variance is near 1 for the shortest trajectories only, and peaks at half a period.
# The bias is never gone, because even a single step keeps its kick's noise; and it is smallest where the trajectory is so short that one need not have integrated a Hamiltonian at all.
# {cite:t}`betancourt2015` argues that there is no way round this trade: whatever tames the noise gives up the long, coherent paths for which HMC is used.

# %% tags=["hide-input"]
claim(
    "Largest distance of nine measured variances from this law, in standard errors",
    max(
        abs(float(value) - exact[L - 1]) / float(error)
        for L, (value, error) in zip(lengths, measured, strict=True)
    ),
    at_most=4.5,
    because="2,000 chains each; exceeded by chance once in 16,000 times",
)
claim(
    "Exact variance with 31 steps, half a period, over that with 15 steps, a quarter",
    exact[30] / exact[14],
    at_least=10,
    because="exact laws",
    kind="exact",
)
times = [0.1 * L for L in all_lengths]
formula = [1 + B * (t / math.sin(t) ** 2 - 1 / math.tan(t)) for t in times]
claim(
    "Largest relative difference between the formula and the exact law at ε = 0.1, up "
    "to 28 steps",
    max(abs(f / e - 1) for f, e in zip(formula[:28], exact[:28], strict=True)),
    at_most=0.01,
    because=(
        "exact laws: half kicks at the ends and the step's error are of order ε² = 0.01"
    ),
    kind="exact",
)
claim(
    "Variance with one step a trajectory less that of SGLD with η = ε²/2",
    exact[0]
    - float(
        langevin_chain(torch.eye(1), 0.005, noise_variance).stationary_covariance()[
            0, 0
        ]
    ),
    near=0,
    within=1e-12,
    because="they are the same algorithm; rounding",
    kind="exact",
)
claim(
    "Smallest variance over trajectories of 1 to 60 steps, where 1 is right",
    min(exact),
    near=1.0125,
    within=1e-4,
    because="exact law, (1 + 0.01)/(1 − 0.0025) with a single step",
    kind="exact",
)

# %% [markdown]
# ## The price of correcting it
#
# Accept the end of a trajectory with probability $\min(1, e^{H(\theta, r) - H(\theta', r')})$, with the exact $H$.
# The noise of a kick does not depend on the direction in which the path is walked, so a noisy trajectory with its momentum flipped is as likely backwards as forwards, and the correction is valid ({ref}`ex-naive-palindrome`).
# But it needs the energy on all the data, which the minibatch was to spare us.
# And the {term}`acceptance` falls with the length of the trajectory, with $V$ and with the dimension, because each of them adds energy.

# %%
acceptances, path_lengths = {}, (5, 20, 50, 100)
for d in (1, 10):
    target = Gaussian.standard(d)
    for V in (0.25, 1.0, 4.0):
        for L in path_lengths:
            run = sample(
                NaiveSGHMC(0.1, L, metropolis=True),
                NoisyGradient(target, V),
                target.exact_samples(2_000, torch.Generator().manual_seed(L)),
                num_samples=20,
                seed=100 + L,
            )
            acceptances[d, V, L] = float(run.statistics["acceptance"].mean())

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-naive-acceptance", "caption": "Acceptance of corrected naive trajectories in a standard Gaussian of one dimension (above) and of ten (below), ε = 0.1, against their length, for three variances of the gradient noise."}, "image": {"alt": "Two panels, one above the other, with three falling curves each. In one dimension they fall from nearly 1 to between 0.85 and 0.4, in ten dimensions to between one half and nearly zero; in both the largest variance has the lowest curve."}}
figure, panels = plt.subplots(2, 1, figsize=(5.0, 5.6), sharex=True)
for axes, d in zip(panels, (1, 10), strict=True):
    for V, style in zip((0.25, 1.0, 4.0), ("-o", "--s", ":^"), strict=True):
        values = [acceptances[d, V, L] for L in path_lengths]
        axes.plot(
            path_lengths,
            values,
            style,
            color=COLOURS["naive SGHMC with correction"],
            label=f"$V = {V:g}$",
        )
    axes.set(title=f"$d = {d}$", ylabel="mean acceptance", ylim=(0, 1.02))
panels[1].set_xlabel("leapfrog steps $L$")
panels[1].legend(loc="upper right")
plt.show()

# %% [markdown]
# In {numref}`fig-naive-acceptance` every curve falls, and the more noise the lower it lies. In ten dimensions, with $V = 4$, hardly one of the longest trajectories in a hundred is accepted.

# %% tags=["hide-input"]
table = torch.tensor(
    [
        [[acceptances[d, V, L] for L in path_lengths] for V in (0.25, 1.0, 4.0)]
        for d in (1, 10)
    ]
)
claim(
    "Acceptance falls with length, with V and with the dimension, in all 24 runs",
    all(bool((table.diff(dim=axis) < 0).all()) for axis in range(3)),
    because="the smallest difference is 0.011, of which the standard error is 0.0008",
)
for name, value, near, within in (
    ("5-step trajectories at V = 0.25 in one dimension", table[0, 0, 0], 0.966, 0.005),
    ("100-step trajectories at V = 4 in one dimension", table[0, 2, 3], 0.423, 0.01),
    ("the same in ten dimensions", table[1, 2, 3], 0.005, 0.003),
):
    claim(
        f"Acceptance of {name}",
        value,
        near=near,
        within=within,
        because="2,000 chains, 20 draws each; other seeds: a third of this tolerance",
    )

# %% [markdown]
# Is $V = 4$ much?
# Measure it in the posterior's own units.
# In coordinates in which the posterior is about $N(0, I)$ the curvature is $I$, and {eq}`eq-noise-curvature` says $V \approx \frac NnI$: for minibatches of 500 of 60,000, $V = 120$.
# Now the bill.
# A trajectory of time $t = L\varepsilon$ gains the energy $td\cdot\tfrac12\varepsilon\frac Nn$.
# To keep that below one, so that it is accepted, $\varepsilon$ must be below $2n/(Ntd)$, which makes $L > \tfrac12t^2d\,\frac Nn$ steps of $n$ examples each:
#
# $$
# \text{passes over the data} = \frac{Ln}N > \tfrac12t^2d.
# $$ (eq-naive-passes)
#
# The size of the minibatch has dropped out.
# Exact HMC pays $t/\varepsilon$ passes, with an $\varepsilon$ of the order of one that falls only as $d^{-1/4}$ {cite:p}`neal2011`; so beyond a few dimensions nothing is gained, and much is lost.

# %%
target = Gaussian.standard(10)
start = target.exact_samples(2_000, torch.Generator().manual_seed(3))
realistic = sample(
    NaiveSGHMC(0.1, 20, metropolis=True),
    NoisyGradient(target, 120.0),
    start,
    num_samples=5,
    seed=4,
)

# %% tags=["hide-input"]
claim(
    "Acceptance of 20-step trajectories in ten dimensions at V = 120",
    realistic.statistics["acceptance"].mean(),
    at_most=1e-6,
    because="the energy gained is about 120; other seeds stay far below",
)

# %% [markdown]
# ## Correcting it with a part of the data
#
# The correction step itself reads all the data, to take one decision.
# In the year of SGHMC two papers let a sample take it, {cite:t}`korattikara2014` and {cite:t}`bardenet2014`.
# What does that save?
# Take random-walk Metropolis, where the decision is all that there is to pay: the end of a trajectory is decided in the same way.
#
# With independent examples and a flat prior the proposal $\theta'$ is accepted if $\sum_i\ell_i > \log u$, where $\ell_i = \log p(x_i \mid \theta') - \log p(x_i \mid \theta)$ and $u$ is uniform in $(0, 1)$.
# So the question is whether the mean of $N$ numbers is above the threshold $\psi = \frac1N\log u$, and a poll may answer it.
#
# ```{prf:algorithm} Metropolis' decision from a sample
# :label: alg-naive-poll
#
# Go through the examples in random order, and stop now and then to look, after $n_1 < n_2 < \dots$ of them.
# Let $\bar\ell$ be the mean so far.
# If $\lvert\bar\ell - \psi\rvert > c_n$, or $n = N$, decide: accept if $\bar\ell > \psi$.
# Otherwise read on.
# ```
#
# The two papers differ in the half width $c_n$. With $s$ the standard deviation of the numbers so far,
#
# $$
# \begin{aligned}
# c_n &= t_{n-1}(1 - \epsilon)\,\frac s{\sqrt n}\,\sqrt{1 - \frac nN} & &\text{(a $t$-test),}\\
# c_n &= s\,\sqrt{\frac{2\log(3/\delta_k)}n} + \frac{3R\log(3/\delta_k)}n & &\text{(empirical Bernstein).}
# \end{aligned}
# $$ (eq-naive-tests)
#
# The first, of {cite:t}`korattikara2014`, takes the mean for normal; $t_{n-1}(1 - \epsilon)$ is a quantile of Student's law, and $1 - n/N$ is what sampling without replacement saves.
# The second, in the way of {cite:t}`bardenet2014`, holds for every law of numbers whose largest and smallest differ by $R$ {cite:p}`audibert2009,hoeffding1963`: the $k$-th look is wrong with probability $\delta_k$ at most, and with $\delta_k = \delta/(k^2 + k)$ the whole decision is wrong with probability $\delta$ at most.
# For many chains at once, one a row:


# %%
def decide(terms, threshold, looks, half_width):
    """Decide for each chain whether the mean of its terms (chains, N), which are in
    random order, is above its threshold (chains,), and say how many it has read."""
    looks = torch.as_tensor(looks)
    means = terms.cumsum(1)[:, looks - 1] / looks
    squares = terms.square().cumsum(1)[:, looks - 1] / looks
    spreads = (squares - means**2).clamp(min=0).sqrt()
    gaps = means - threshold[:, None]
    sure = gaps.abs() > half_width(spreads, looks, terms)
    sure[:, -1] = True  # all have been read
    first = sure.int().argmax(1)
    return gaps.gather(1, first[:, None])[:, 0] > 0, looks[first]


def t_test(epsilon):
    def half_width(spreads, looks, terms):
        quantiles = torch.from_numpy(student.ppf(1 - epsilon, looks - 1))
        left = 1 - looks / terms.shape[1]
        return quantiles * spreads * (left / (looks - 1)).sqrt()

    return half_width


def bernstein(delta):
    def half_width(spreads, looks, terms):
        k = torch.arange(1, len(looks) + 1)
        logs = torch.log(3 * k * (k + 1) / delta)
        reach = (terms.amax(1) - terms.amin(1))[:, None]
        return spreads * (2 * logs / looks).sqrt() + 3 * reach * logs / looks

    return half_width


# %% [markdown]
# Now a posterior that is known, the mean of $N = 1{,}000$ normal numbers of variance 1 with a flat prior: $N(\bar x, \frac1N)$.
# The proposal is a step of 2.4 posterior standard deviations, about the best for one dimension.
# The $t$-test looks after every 50 examples, the other after 50, 100, 200, and so on.
# ($R$ of the $\ell_i$ is the step times the range of the data, which need be found only once.)


# %%
def walk(numbers, width, tests, num_chains, num_steps, seed):
    """Follow random walks from the posterior of the mean of numbers (N,). Of each test:
    the draws in posterior standard deviations (steps, chains), the share of the data
    that it read, and the share of its decisions that all the data would not take."""
    size, mean = len(numbers), numbers.mean()
    shuffle = np.random.default_rng(seed)
    generator = torch.Generator().manual_seed(seed)
    double = dict(generator=generator, dtype=torch.float64)
    begin = mean + torch.randn(num_chains, **double) / size**0.5
    at, found = dict.fromkeys(tests, begin), {name: [] for name in tests}
    for _ in range(num_steps):
        rows = np.broadcast_to(numbers.numpy(), (num_chains, size))
        order = torch.from_numpy(shuffle.permuted(rows, axis=1))
        step = width / size**0.5 * torch.randn(num_chains, **double)
        threshold = torch.rand(num_chains, **double).log() / size
        for name, (looks, half_width) in tests.items():
            old, middle = at[name], at[name] + step / 2
            terms = step[:, None] * (order - middle[:, None])
            accepted, read = decide(terms, threshold, looks, half_width)
            at[name] = torch.where(accepted, old + step, old)
            wrong = accepted != (step * (mean - middle) > threshold)
            draws = (at[name] - mean) * size**0.5
            found[name].append(torch.stack([draws, read / size, wrong.double()]))
    return {name: torch.stack(steps, 1) for name, steps in found.items()}


N = 1_000
numbers = torch.randn(N, generator=torch.Generator().manual_seed(8)).double()
often = range(50, N + 1, 50)
tests = {
    "all the data": ([N], t_test(0.01)),
    **{f"error {epsilon}": (often, t_test(epsilon)) for epsilon in (0.01, 0.05, 0.2)},
    "five looks, error 0.02": (range(200, N + 1, 200), t_test(0.02)),
    "Bernstein, δ = 0.1": ([50, 100, 200, 400, 800, N], bernstein(0.1)),
}
walks = walk(numbers, 2.4, tests, num_chains=200, num_steps=500, seed=9)
spread = {name: draws[20:].square().mean(0) for name, (draws, _, _) in walks.items()}
share = {name: read.mean() for name, (_, read, _) in walks.items()}

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-naive-poll", "caption": "Random-walk Metropolis whose decisions read a part of the data: the variance of its draws, where 1 is right (grey), against the share that it reads. The t-test at three errors ϵ with twenty looks, and at one with five; the Bernstein test at δ = 0.1; and Metropolis' rule."}, "image": {"alt": "Six points. Where all the data are read the variance is 1, and the Bernstein test is close to that point. The three points of the t-test go up to the left: with six tenths of the data the variance is about a tenth too large, with four tenths it is 1.7, with one seventh it is nearly 4. The point of five looks lies on the same way down."}}
figure, axes = plt.subplots(figsize=(5.2, 3.4))
colour = COLOURS["naive SGHMC with correction"]
names = [name for name in tests if name.startswith("error")]
axes.plot(
    [share[name] for name in names],
    [spread[name].mean() for name in names],
    "-o",
    color=colour,
    label="$t$-test",
)
for name in names:
    place = (share[name] + 0.02, spread[name].mean() + 0.06)
    axes.annotate(rf"$\epsilon = {name.split()[1]}$", place)
for name, mark, label in (
    ("five looks, error 0.02", "^", r"$t$-test with five looks, $\epsilon = 0.02$"),
    ("Bernstein, δ = 0.1", "s", r"Bernstein, $\delta = 0.1$"),
    ("all the data", "D", "all the data"),
):
    axes.plot(share[name], spread[name].mean(), mark, color="black", ms=5, label=label)
axes.axhline(1, color=TRUTH, zorder=0)
axes.set(
    xlabel="share of the data that a decision reads",
    ylabel="variance of the draws",
    xlim=(0, 1.05),
    ylim=(0, 4.4),
)
axes.legend(loc="upper right")
plt.show()

# %% [markdown]
# In {numref}`fig-naive-poll` what the $t$-test saves is paid for in bias.
# With $\epsilon = 0.01$ it reads six tenths of the data, and the variance is twelve per cent too large; with $\epsilon = 0.05$ four tenths, and the variance is 1.7.
# Two per cent of its decisions are wrong at $\epsilon = 0.01$, and not one, because each look is a new chance to err.
# Its authors grant the bias, and argue that more draws in the same time make up for it.
# While draws are few that is so: a variance from $K$ independent draws is known to a share of $\sqrt{2/K}$, which is a tenth at $K = 200$.
# Fewer looks err less and read more, which is the same bargain: with five looks and $\epsilon = 0.02$ it reads two thirds, and the variance is six per cent too large.
# The Bernstein test makes no mistake that we could see, and reads nearly everything.
#
# Of it one can prove what the $t$-test lacks.
#
# ```{prf:proposition} Decisions that are seldom wrong
# :label: prop-naive-poll
#
# Let $P$ and $\tilde P$ be the kernels with exact decisions and with decisions of which a share of $\delta$ at most is wrong, wherever the chain is, and $\pi$ and $\tilde\pi$ their stationary laws.
# If $m$ steps of $P$ bring any two starts together, $\lVert P^m(\theta, \cdot) - P^m(\theta', \cdot)\rVert \le \rho < 1$ in total variation, then $\lVert\tilde\pi - \pi\rVert \le m\delta/(1 - \rho)$.
# ```
#
# ```{prf:proof}
# One step from the same place differs by at most $\delta$ in total variation, so $m$ steps by at most $m\delta$. Hence
# $\lVert\tilde\pi - \pi\rVert = \lVert\tilde\pi\tilde P^m - \pi P^m\rVert \le \lVert\tilde\pi\tilde P^m - \tilde\pi P^m\rVert + \lVert\tilde\pi P^m - \pi P^m\rVert \le m\delta + \rho\lVert\tilde\pi - \pi\rVert$.
# ```
#
# Why does a decision need so much?
# By {eq}`eq-v` the mean of $n$ of the numbers, times $N$, has the variance $\frac{N^2}n(1 - \frac nN)\,s^2$.
# Near the mode $\ell_i$ varies by about the step times the score of an example; measure the step in posterior standard deviations, $\lvert\Delta\rvert$, and $Ns^2 \approx \lvert\Delta\rvert^2$.
# To know by $z$ standard errors on which side of $\log u$ a sum is, from which it is $g$ away, the test has to read
#
# $$
# \Bigl(\frac Nn - 1\Bigr)\lvert\Delta\rvert^2 \le \frac{g^2}{z^2}, \qquad\text{so}\qquad \frac nN \ge \frac{\lvert\Delta\rvert^2}{\lvert\Delta\rvert^2 + g^2/z^2}.
# $$ (eq-naive-poll)
#
# $N$ has dropped out: a share of the data is needed, however many there are.
# A trajectory of HMC in $d$ dimensions has $\lvert\Delta\rvert^2 \approx 2d$, and $g$ is of the order of one: in ten dimensions, with $z = 2.3$, that is 99 % of the data.
# Short steps are decided faster, but there are more of them.
# Where $u$ is close to the ratio $g$ is small, and then all has to be read: so the share falls no faster than $\lvert\Delta\rvert$, while the number of steps that is worth an independent draw grows as $1/\lvert\Delta\rvert^2$.
# The shortest steps are the dearest.


# %%
def exact_time(width):
    """The autocorrelation time of θ of random-walk Metropolis on N(0, 1), on a grid."""
    grid = torch.linspace(-6, 6, 601, dtype=torch.float64)
    target = torch.softmax(-(grid**2) / 2, 0)
    moves = torch.exp(-((grid - grid[:, None]) ** 2) / (2 * width**2))
    moves = 0.02 * moves / (width * math.sqrt(2 * math.pi))
    moves = moves * torch.exp((grid[:, None] ** 2 - grid**2) / 2).clamp(max=1)
    moves = moves + torch.diag(1 - moves.sum(1))  # what is refused stays
    series = torch.linalg.solve(torch.eye(601).double() - moves + target, grid)
    return float(2 * (target * grid) @ series / (target @ grid**2) - 1)


cheapest = {"error 0.01": tests["error 0.01"]}
read, passes = {}, {}
for width in (2.4, 1.0, 0.3, 0.1):
    steps = walk(numbers, width, cheapest, num_chains=400, num_steps=20, seed=10)
    read[width] = float(steps["error 0.01"][1].mean())
    passes[width] = read[width] * exact_time(width)
many_numbers = torch.randn(10_000, generator=torch.Generator().manual_seed(11)).double()
rarely = {"error 0.01": (range(500, 10_001, 500), t_test(0.01))}
of_many = walk(many_numbers, 2.4, rarely, num_chains=100, num_steps=20, seed=12)

# %% [markdown]
# At 2.4 standard deviations the $t$-test with $\epsilon = 0.01$ pays 2.7 passes over the data for an independent draw, where Metropolis' rule pays 4.4; at a tenth of one it reads a fifth of the data for a decision, and pays about ninety passes.
# Of ten times as many examples it needs the same share.
# So such tests take a constant factor off *one* of the two prices, that of the decision, and leave {eq}`eq-naive-passes` as it is, the price of a noisy trajectory that can be accepted.
#
# What helps is to know the $\ell_i$ nearly before reading them: subtract from each a cheap approximation whose sum is known, and what is left varies less.
# {cite:t}`bardenet2017` do this after they review the field, and say frankly for which posteriors it works: those that are very nearly normal.

# %% tags=["hide-input"]
small = torch.randn(8, generator=torch.Generator().manual_seed(13)).double()
sums = [8 * small[list(rows)].mean() for rows in itertools.combinations(range(8), 3)]
claim(
    "Variance of 8 times the mean of 3 of 8 numbers over N²/n (1 − n/N) s²",
    torch.stack(sums).var(correction=0) / (64 / 3 * (1 - 3 / 8) * small.var()),
    near=1,
    within=1e-12,
    because="all 56 samples, s² with the divisor N − 1; rounding",
    kind="exact",
)
generator, same = torch.Generator().manual_seed(14), True
for name in ("error 0.05", "Bernstein, δ = 0.1"):
    looks, half_width = tests[name]
    terms = torch.randn(100, N, generator=generator).double() / 30
    threshold = torch.randn(100, generator=generator).double() / 300
    accepted, number = decide(terms, threshold, looks, half_width)
    for row, limit, decision, count in zip(
        terms, threshold, accepted, number, strict=True
    ):
        for place, n in enumerate(looks):
            part = torch.tensor([row[:n].std(correction=0)])
            wide = half_width(
                part.expand(1, len(looks)), torch.tensor(looks), row[None]
            )
            gap = row[:n].mean() - limit
            if n == N or abs(gap) > wide[0, place]:
                break
        same = same and n == count and bool(gap > 0) == bool(decision)
claim(
    "Two hundred decisions by the function and example by example are the same",
    same,
    because="the same rule, in a loop",
    kind="exact",
)
for name, near, within in (
    ("error 0.01", 0.62, 0.01),
    ("error 0.05", 0.41, 0.01),
    ("error 0.2", 0.139, 0.01),
    ("five looks, error 0.02", 0.68, 0.015),
    ("Bernstein, δ = 0.1", 0.98, 0.01),
):
    claim(
        f"Share of the data that a decision reads, {name}",
        share[name],
        near=near,
        within=within,
        because="200 chains, 500 decisions each",
    )
for name, near, within in (
    ("all the data", 1.0, 0.05),
    ("error 0.01", 1.12, 0.05),
    ("error 0.05", 1.68, 0.1),
    ("error 0.2", 3.83, 0.25),
    ("five looks, error 0.02", 1.065, 0.05),
    ("Bernstein, δ = 0.1", 1.0, 0.05),
):
    claim(
        f"Variance of the draws, in those of the posterior, {name}",
        spread[name].mean(),
        near=near,
        within=within,
        because="200 chains, 500 steps each",
    )
for name, at_least, at_most in (
    ("error 0.01", 0.015, 0.022),
    ("error 0.05", 0.07, 0.085),
    ("Bernstein, δ = 0.1", 0.0, 1e-3),
):
    wrong = walks[name][2].mean()
    claim(
        f"Share of wrong decisions between {at_least:g} and {at_most:g}, {name}",
        bool(at_least <= wrong <= at_most),
        because="100,000 decisions",
    )
for width, near, within in (
    (2.4, 2.73, 0.1),
    (1.0, 4.8, 0.2),
    (0.3, 20.4, 1.0),
    (0.1, 89, 5),
):
    claim(
        f"Passes over the data for an independent draw, error 0.01, steps of {width:g}",
        passes[width],
        near=near,
        within=within,
        because="8,000 decisions from the posterior, exact autocorrelation times",
    )
claim(
    "Share read with steps of 0.3 over that with steps of 0.1",
    read[0.3] / read[0.1],
    at_most=2.2,
    because="less than in proportion; of a share in proportion to the square it were 9",
)
claim(
    "Passes for an independent draw of Metropolis' rule, steps of 2.4",
    exact_time(2.4),
    near=4.4,
    within=0.05,
    because="autocorrelation time, on a grid",
    kind="exact",
)
claim(
    "Share read of 10,000 examples less that of 1,000, error 0.01",
    of_many["error 0.01"][1].mean() - read[2.4],
    near=0,
    within=0.04,
    because="2,000 and 8,000 decisions",
)

# %% [markdown]
# ## In practice
#
# * Do not use it.
#   It is here because it is what one thinks of first.
# * If a sampler with minibatches has no friction, no noise estimate and no correction, it is this one.
# * The rate $\operatorname{tr}(M^{-1}B)$ tells how bad it is: compare $L\varepsilon\operatorname{tr}(M^{-1}B)$ with the equilibrium's kinetic energy $d/2$.
# * A correction whose decisions are taken from a sample is no way out: it reads most of the data, or its draws are too wide.
# * The cure is to take out the heat as fast as it comes: friction, in {doc}`/book/stochastic_gradients/sghmc`.
#
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | noisy dynamics | $dr = -\nabla U\,dt + N(0, 2B\,dt)$, $B = \tfrac12\varepsilon V$ | {eq}`eq-naive` |
# | entropy | $\frac{d}{dt}h = \int(\nabla_rp)^\top B\,\nabla_rp\,/\,p > 0$ | {eq}`eq-entropy` |
# | heating | $\frac{d}{dt}E[H] = \operatorname{tr}(M^{-1}B)$ | {prf:ref}`thm-pumping` |
# | variance in the bowl | $\sigma^2 = 1 + B\,(t/\sin^2t - \cot t)$ | {eq}`eq-naive-variance` |
# | price of correcting | passes over the data $> \tfrac12t^2d$ | {eq}`eq-naive-passes` |
# | a decision from a sample | $n/N \ge \lvert\Delta\rvert^2/(\lvert\Delta\rvert^2 + g^2/z^2)$ | {eq}`eq-naive-poll` |
#
# ## Change it
#
# * Set `NaiveSGHMC(0.1, 50)` in the cell with the double well to `NaiveSGHMC(0.1, 5)`: the claims on $E[\theta^4]$ and on the shares show ✗, because shorter trajectories take up less heat.
# * Set `[half_drift, kick, half_drift]` to `[half_drift, kick, flows.friction_flow(step_size, 0.2), half_drift]`: the entropy no longer grows and the energy stays nearly where it was, so that three claims show ✗.
#   A friction of $C = B = 0.2$ takes the heat out as fast as it comes in, which is the idea of {doc}`/book/stochastic_gradients/sghmc`.
# * Set `step_size, noise_variance, num_steps = 0.1, 4.0, 200` to `step_size, noise_variance, num_steps = 0.1, 1.0, 200`: the formulas hold as before, and the smallest variance is 1.005, so that its claim shows ✗.
# * Set `often = range(50, N + 1, 50)` to `often = range(200, N + 1, 200)`: with fewer looks the $t$-test errs less and reads more, so that the claims on its shares and variances show ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-naive-step
#
# At a fixed time $t = L\varepsilon$, how does the energy gained depend on $\varepsilon$?
# Does a smaller step cure the naive algorithm, and at what price?
# Compare with a larger minibatch.
# ```
#
# ```{solution} ex-naive-step
# :class: dropdown
#
# The gain is $t\operatorname{tr}(M^{-1}B) = \tfrac12t\varepsilon\operatorname{tr}(M^{-1}V)$.
# It falls in proportion to $\varepsilon$, while the number of gradients grows as $1/\varepsilon$.
# A minibatch $k$ times as large divides $V$ by $k$ at $k$ times the price: the same bargain.
# What counts is the number of examples read in a unit of time.
# ```
#
# ```{exercise}
# :label: ex-naive-palindrome
#
# Prove that the correction step is valid: compare the density of a noisy path with that of the same path reversed.
# Does the law of the noise have to be the same everywhere?
# ```
#
# ```{solution} ex-naive-palindrome
# :class: dropdown
#
# Let $\xi_0, \dots, \xi_L$ be the noises at the points $\theta_0, \dots, \theta_L$ of the path, each used in both half kicks that meet there.
# For given noises the map from $(\theta, r)$ to $(\theta', -r')$ keeps volume, and it is undone by the same map with the noises in the reversed order.
# The reversed path visits the same points and needs the same noise at each, so both paths have the density $\prod_iq(\xi_i \mid \theta_i)$, and the proposal is in detailed balance with respect to Lebesgue measure.
# Accepting with $\min(1, e^{-\Delta H})$ makes that detailed balance for $e^{-H}$.
# The law $q$ may depend on $\theta$, as that of a minibatch does.
# (Fresh noise for each half kick is as valid: number the half kicks in place of the points. {prf:ref}`thm-noisy-trajectory` has the proof.)
# ```
#
# ```{exercise}
# :label: ex-naive-minibatch
#
# Hold *one* minibatch for the whole trajectory.
# What is the stationary variance in the bowl then?
# Is it any better?
# ```
#
# ```{solution} ex-naive-minibatch
# :class: dropdown
#
# Each trajectory follows the exact dynamics of a wrong potential, $\tfrac12\theta^2 + \xi\theta$ with $\xi \sim N(0, V)$: a rotation about $-\xi$.
# So $\theta(t) = \theta\cos t + r\sin t - \xi(1 - \cos t)$, and $\sigma^2 = \sigma^2\cos^2t + \sin^2t + V(1 - \cos t)^2$ gives
#
# $$
# \sigma^2 = 1 + V\tan^2(t/2).
# $$
#
# No $\varepsilon$ is left in it: all kicks push in the same direction, their sum has the variance $(L\varepsilon)^2V$ instead of $L\varepsilon^2V$ while $t$ is short, and no smaller step averages the error away.
# ```
#
# ````{exercise}
# :label: ex-naive-law
#
# **Write it yourself.**
# In the bowl a drift and a kick are 2 × 2 matrices on $(\theta, r)$, and a kick adds noise to $r$.
# Follow $F$ and $Q$ of $z' = Fz + \xi$, $\operatorname{Cov}\xi = Q$, through a whole trajectory, and find the exact stationary variance of naive SGHMC.
#
# ```python
# def naive_variance(step_size, num_steps, noise_variance):
#     """The stationary variance of theta in the bowl, with a fresh momentum from N(0, 1)
#     before each trajectory and one gradient at each of its points."""
#     transition, covariance = torch.eye(2), torch.zeros(2, 2)
#     ...
# ```
#
# (Task 4 of assignment 2, *Minibatch noise, and samplers that live with it*, asks for the sampler itself, and one of its figures for a plot like {numref}`fig-naive-variance`; see {doc}`/book/practice/teaching`.)
# ````
#
# ```{solution} ex-naive-law
# :class: dropdown
#
# A move with matrix $G$ and noise covariance $S$ makes $F$ into $GF$, and $Q$ into $GQG^\top + S$.
# At the end $\theta' = F_{11}\theta + F_{12}r + \xi_1$ with a fresh $r \sim N(0, 1)$, so that $\sigma^2 = F_{11}^2\sigma^2 + F_{12}^2 + Q_{11}$.
# The folded code compares this with `sgmc.linear_laws.naive_sghmc_chain`.
# ```


# %% tags=["hide-input"]
def naive_variance(step_size, num_steps, noise_variance):
    """The stationary variance of theta in the bowl, with a fresh momentum from N(0, 1)
    before each trajectory and one gradient at each of its points."""
    transition = torch.eye(2, dtype=torch.float64)
    covariance = torch.zeros(2, 2, dtype=torch.float64)
    drift = torch.tensor([[1.0, step_size], [0.0, 1.0]], dtype=torch.float64)
    for point in range(num_steps + 1):
        length = step_size / 2 if point in (0, num_steps) else step_size
        kick = torch.tensor([[1.0, 0.0], [-length, 1.0]], dtype=torch.float64)
        transition, covariance = kick @ transition, kick @ covariance @ kick.T
        covariance[1, 1] += length**2 * noise_variance
        if point < num_steps:
            transition, covariance = drift @ transition, drift @ covariance @ drift.T
    return (transition[0, 1] ** 2 + covariance[0, 0]) / (1 - transition[0, 0] ** 2)


claim(
    "Largest relative difference from naive_sghmc_chain, trajectories of 1 to 60 steps",
    max(
        abs(float(naive_variance(0.1, L, noise_variance)) / exact[L - 1] - 1)
        for L in all_lengths
    ),
    at_most=1e-9,
    because="the same law; rounding",
    kind="exact",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`chen2014`, Section 3.1, for the algorithm and its theorem on entropy; {cite:t}`betancourt2015` for why subsampling and long trajectories do not go together; {cite:t}`bardenet2017` for all that has been tried to correct with a part of the data.
