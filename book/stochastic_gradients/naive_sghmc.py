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
# Put a minibatch gradient into Hamiltonian Monte Carlo and it overheats; this chapter proves it, measures how fast, and prices the obvious repair.
#
# **You will learn** to
#
# * show that Hamiltonian dynamics with a noisy gradient cannot leave its target invariant, because entropy grows,
# * predict the rate at which noise pumps energy in, and check it,
# * compute the law at which resampling the momentum stops the heating,
# * say what a Metropolis–Hastings step would cost, and in which unit to count.
#
# **You will need** {doc}`/book/foundations/hamiltonian_monte_carlo`, {doc}`/book/stochastic_gradients/minibatch_noise`, and {prf:ref}`thm-diffusion`.

# %%
import math

import matplotlib.pyplot as plt
import torch

from sgmc import claim, flows, sample
from sgmc.diagnostics import expectation
from sgmc.figures import COLOURS, TRUTH, plot_density, plot_histogram, use_style
from sgmc.integrators import leapfrog
from sgmc.kernels import NaiveSGHMC
from sgmc.linear_laws import langevin_chain, linear_chain, naive_sghmc_chain
from sgmc.play import play
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient

use_style()
play()

# %% [markdown]
# ## The obvious algorithm
#
# HMC draws a momentum $r \sim N(0, M)$, follows $L$ leapfrog steps, and accepts or rejects.
# With $N$ data points each gradient reads all of them.
# So replace $\nabla U$ by a minibatch estimate $\nabla\tilde U = \nabla U + N(0, V)$, and drop the correction step, because it would read all the data too.
#
# ```{prf:algorithm} Naive SGHMC
# :label: alg-naive
#
# Repeat: draw $r \sim N(0, M)$; follow $L$ leapfrog steps of size $\varepsilon$ with $\nabla\tilde U$ in place of $\nabla U$; keep the position at the end.
# ```
#
# ```{literalinclude} ../../sgmc/kernels/naive_sghmc.py
# :language: python
# :pyobject: NaiveSGHMC.step
# ```
#
# On the double well $U = -2\theta^2 + \theta^4$ with $V = 4$ the result is far too flat, as if the temperature had been raised.

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

# %% tags=["hide-input"]
claim(
    "E[θ⁴] of naive SGHMC in the double well over the exact one",
    fourth / exact_fourth,
    at_least=1.3,
    because="other seeds give 1.59 to 1.61",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-naive-well", "caption": "Naive SGHMC in the double well, ε = 0.1, 50 steps a trajectory, V = 4: hills too low, valley too high, tails too long."}}
figure, axes = plt.subplots()
plot_density(axes, well, -2.5, 2.5)
plot_histogram(
    axes,
    draws.samples,
    torch.linspace(-2.5, 2.5, 61),
    color=COLOURS["naive SGHMC"],
    label="naive SGHMC",
)
axes.set(xlabel=r"$\theta$", ylabel="density", ylim=(0, None))
axes.legend()
plt.show()

# %% [markdown]
# ## Why: entropy grows
#
# A full kick $-\varepsilon\nabla\tilde U$ carries noise of variance $\varepsilon^2V = 2B\varepsilon$ with $B = \tfrac12\varepsilon V$, see {eq}`eq-diffusion`.
# In continuous time
#
# $$
# d\theta = M^{-1}r\,dt, \qquad dr = -\nabla U(\theta)\,dt + N(0, 2B\,dt).
# $$ (eq-naive)
#
# Hamilton's equations carry a density about without spreading it, because their flow keeps volume.
# Noise spreads it, and nothing here undoes that.
# *Entropy* measures spread.
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
# A noisy leapfrog step is a list of three moves, half a drift, a kick and half a drift; `linear_chain` composes what each of them does to $(\theta, r)$.
# Start in equilibrium, $N(0, I)$.


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
B = 0.5 * step_size * noise_variance
claim(
    "Energy gained per unit of time over the rate tr(M⁻¹B)",
    (energy[-1] - energy[0]) / time[-1] / B,
    near=1,
    within=0.01,
    because="exact recursion; the step's own error is of order ε² = 0.01",
    kind="exact",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-heating", "caption": "Exact heating of the bowl from equilibrium, ε = 0.1, V = 4. Left: the expected energy and the line of slope tr(M⁻¹B). Right: the entropy, which never falls."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2))
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
    xlabel="time",
    ylabel="expected energy $E[H]$",
    ylim=(0, None),
    xticks=range(0, 21, 5),
)
left.legend()
right.plot(time, entropy, color=COLOURS["naive SGHMC"])
right.set(
    xlabel="time",
    ylabel=r"entropy gained, $\frac{1}{2}\log\det\Sigma$",
    xticks=range(0, 21, 5),
)
plt.show()

# %% [markdown]
# The rate is the same in every potential.
# In the double well no law is exact, so follow 100,000 paths for a time of 4 and count.

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
# \sigma^2 = 1 + B\Bigl(\frac{t}{\sin^2t} - \cot t\Bigr) = 1 + \tfrac23Bt + O(t^3).
# $$ (eq-naive-variance)
# ```
#
# ```{prf:proof}
# Without noise $(\theta, r)$ rotates.
# Noise that arrives at the time $s$ in $r$ has turned by $t - s$ when the trajectory ends, so that $\sin(t - s)$ of it is in $\theta$.
# Hence $\theta(t) = \theta\cos t + r\sin t + \xi$, where $\xi$ has the variance $\int_0^t2B\sin^2(t - s)\,ds = B(t - \sin t\cos t)$.
# Stationarity is $\sigma^2 = \sigma^2\cos^2t + \sin^2t + B(t - \sin t\cos t)$; divide by $1 - \cos^2t = \sin^2t$.
# ```
#
# Short trajectories collect little noise, but walk at random; with a single step, $L = 1$, the algorithm is nothing but SGLD with $\eta = \tfrac12\varepsilon^2$.
# Long ones collect much.
# Near half a period, $t = L\varepsilon = \pi$, it is worst: there $\theta$ comes back as $-\theta$ whatever the fresh momentum was, so that nothing is cooled.
# For the discrete chain, which is linear, even the step's error can be had exactly: {numref}`fig-naive-variance`.

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

# %% tags=["hide-input"]
for L in (5, 15, 25, 50):
    value, error = measured[lengths.index(L)]
    claim(
        f"Stationary variance of naive SGHMC in the bowl, {L} steps a trajectory",
        value,
        near=round(exact[L - 1], 4),
        standard_error=error,
        because="exact law of the linear chain; Monte Carlo over 2,000 chains",
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
    because="exact law",
    kind="exact",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-naive-variance", "caption": "Stationary variance of naive SGHMC in the bowl against the length of a trajectory, ε = 0.1, V = 4: exact law (line) and measurements (points, two standard errors). The true variance is 1 (grey); the peaks are at half a period and at a whole one."}}
figure, axes = plt.subplots()
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
    yticks=[1, 2, 5, 10, 20, 50],
    ylim=(0.9, 80),
)
axes.set_yticklabels(["1", "2", "5", "10", "20", "50"])
axes.minorticks_off()
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# The bias is never gone, because even a single step keeps its kick's noise; and it is smallest where the trajectory is so short that one need not have integrated a Hamiltonian at all.
# {cite:t}`betancourt2015` argues that there is no way round this trade: whatever tames the noise gives up the long, coherent paths for which HMC is used.
#
# ## The price of correcting it
#
# Accept the end of a trajectory with probability $\min(1, e^{H(\theta, r) - H(\theta', r')})$, with the exact $H$.
# The noise of a kick does not depend on the direction in which the path is walked, so a noisy trajectory with its momentum flipped is as likely backwards as forwards, and the correction is valid ({ref}`ex-naive-palindrome`).
# But it needs the energy on all the data, which the minibatch was to spare us, and it rejects the heat: the longer the trajectory, the larger $V$, and the more dimensions there are, the more of it.

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
                seed=L,
            )
            acceptances[d, V, L] = float(run.statistics["acceptance"].mean())

# %% tags=["hide-input"]
claim(
    "Acceptance of 5-step trajectories at V = 0.25 in one dimension",
    acceptances[1, 0.25, 5],
    at_least=0.95,
    because="other seeds give 0.965 to 0.967",
)
claim(
    "Acceptance of 100-step trajectories at V = 4 in one dimension",
    acceptances[1, 4.0, 100],
    at_most=0.45,
    because="other seeds give 0.421 to 0.426",
)
claim(
    "The same in ten dimensions",
    acceptances[10, 4.0, 100],
    at_most=0.02,
    because="other seeds give 0.004 to 0.006",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-naive-acceptance", "caption": "Acceptance of corrected naive trajectories in a standard Gaussian of one and of ten dimensions, ε = 0.1, against their length, for three variances of the gradient noise."}}
figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.3), sharey=True)
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
    axes.set(title=f"$d = {d}$", xlabel="leapfrog steps $L$", ylim=(0, 1))
panels[0].set_ylabel("mean acceptance")
panels[1].legend()
plt.show()

# %% [markdown]
# Is $V = 4$ much?
# Measure in the posterior's own units.
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
    seed=3,
)

# %% tags=["hide-input"]
claim(
    "Acceptance of 20-step trajectories in ten dimensions at V = 120",
    realistic.statistics["acceptance"].mean(),
    at_most=0.001,
    because="the energy gained is about 120; other seeds stay below 1e-4",
)

# %% [markdown]
# ## In practice
#
# * Do not use it.
#   It is here because every practitioner invents it first.
# * If a sampler with minibatches has no friction, no noise estimate and no correction, it is this one.
# * The rate $\operatorname{tr}(M^{-1}B)$ tells how bad it is: compare $L\varepsilon\operatorname{tr}(M^{-1}B)$ with the equilibrium's kinetic energy $d/2$.
# * The cure is to take out the heat as fast as it comes: friction, in {doc}`/book/stochastic_gradients/sghmc`.
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
# The law $q$ may depend on $\theta$, as that of a minibatch does; but every point must draw its noise once.
# (Fresh noise for each half kick is a palindrome too, and as valid; see {prf:ref}`thm-noisy-trajectory`.)
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
# ## Further reading
#
# {cite:t}`chen2014`, Section 3.1, for the algorithm and its theorem on entropy; {cite:t}`betancourt2015` for why subsampling and long trajectories do not go together.
