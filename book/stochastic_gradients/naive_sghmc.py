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
# * say what a Metropolis–Hastings step would cost.
#
# **You will need** {doc}`/book/foundations/hamiltonian_dynamics`.

# %%
import matplotlib.pyplot as plt
import torch

from sgmc import claim, sample
from sgmc.figures import COLOURS, TRUTH, plot_density, plot_histogram, use_style
from sgmc.integrators import leapfrog
from sgmc.kernels import NaiveSGHMC
from sgmc.linear_laws import LinearChain, naive_sghmc_chain
from sgmc.potentials import DoubleWell, Gaussian, NoisyGradient

use_style()

# %% [markdown]
# ## The obvious algorithm
#
# HMC draws a momentum $r \sim N(0, M)$, follows $L$ leapfrog steps, and accepts or rejects.
# With $N$ data points each gradient reads all of them. So replace $\nabla U$ by a minibatch estimate $\nabla\tilde U = \nabla U + N(0, V)$, and drop the correction step, because it would read all the data too.
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
# On the double well $U = -2\theta^2 + \theta^4$ with $V = 4$ the result is far too flat.

# %%
well, bowl = DoubleWell(), Gaussian.standard(1, dtype=torch.float64)
draws = sample(NaiveSGHMC(0.1, 50), NoisyGradient(well, 4.0), torch.zeros(2_000, 1), num_samples=50, warm_up=10)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-naive-well", "caption": "Naive SGHMC in the double well, ε = 0.1, 50 steps a trajectory, V = 4."}}
figure, axes = plt.subplots()
plot_density(axes, well, -2.5, 2.5)
plot_histogram(axes, draws.samples, torch.linspace(-2.5, 2.5, 61), color=COLOURS["naive SGHMC"], label="naive SGHMC")
axes.set(xlabel=r"$\theta$", ylabel="density", ylim=(0, None))
axes.legend()
plt.show()

# %% [markdown]
# ## Why: entropy grows
#
# A full kick $-\varepsilon\nabla\tilde U$ carries noise of variance $\varepsilon^2V = 2B\varepsilon$ with $B = \tfrac12\varepsilon V$. In continuous time
#
# $$
# d\theta = M^{-1}r\,dt, \qquad dr = -\nabla U(\theta)\,dt + N(0, 2B\,dt).
# $$ (eq-naive)
#
# ```{prf:theorem} Entropy grows
# :label: thm-entropy
#
# Let $p_t$ be the density of $(\theta, r)$ under {eq}`eq-naive` with a positive definite $B$, smooth, positive, and falling fast enough at infinity for the integrations by parts below. Its entropy $h(p_t) = -\int p_t\log p_t$ grows strictly:
#
# $$
# \frac{d}{dt}h(p_t) = \int\frac{\nabla_r p_t^\top B\,\nabla_r p_t}{p_t}\,d\theta\,dr > 0.
# $$ (eq-entropy)
#
# So no density of finite entropy is stationary, the target $e^{-H}$ among them.
# ```
#
# ```{prf:proof}
# The Fokker–Planck equation is $\partial_tp = -\nabla\cdot(p\,f) + \nabla_r\cdot(B\nabla_rp)$ with $f = (M^{-1}r, -\nabla U)$. Because $\int\partial_tp = 0$,
# $\frac{d}{dt}h = -\int\partial_tp\,\log p$. The first term contributes $\int\nabla\cdot(pf)\log p = -\int f\cdot\nabla p = \int p\,\nabla\cdot f = 0$: Hamiltonian flow keeps volume.
# The second contributes $-\int\nabla_r\cdot(B\nabla_rp)\log p = \int\nabla_rp^\top B\nabla_r\log p$, which is {eq}`eq-entropy`. It is zero only if $p$ does not depend on $r$, and then $p$ is no density.
# ```
#
# The heat can be counted too.
#
# ```{prf:theorem} Energy is pumped in at the rate tr(M⁻¹B)
# :label: thm-pumping
#
# Under {eq}`eq-naive` $\frac{d}{dt}E[H] = \operatorname{tr}(M^{-1}B)$, for every potential.
# ```
#
# ```{prf:proof}
# By Itô's formula $dH = \nabla U\cdot d\theta + M^{-1}r\cdot dr + \operatorname{tr}(M^{-1}B)\,dt$. The first two terms add up to the martingale $M^{-1}r\cdot N(0, 2B\,dt)$, whose expectation is zero.
# ```
#
# In the bowl $U = \tfrac12\theta^2$ both theorems can be watched exactly: a Gaussian stays Gaussian, and its covariance obeys a linear recursion. Start in equilibrium, $N(0, I)$.


# %%
def leapfrog_chain(step_size, noise_variance):
    """One noisy leapfrog step in the bowl (one full kick a point) as a linear chain in (θ, r)."""
    half, noise = 0.5 * step_size, torch.zeros(2, 2, dtype=torch.float64)
    noise[1, 1] = step_size**2 * noise_variance
    drift = LinearChain(torch.tensor([[1, half], [0, 1]], dtype=torch.float64), torch.zeros(2, 2, dtype=torch.float64))
    kick = LinearChain(torch.tensor([[1, 0], [-step_size, 1]], dtype=torch.float64), noise)
    return drift.then(kick).then(drift)


def covariance_path(step_size, noise_variance, num_steps):
    """The exact covariance of (θ, r) after 0, 1, … steps from equilibrium, (num_steps + 1, 2, 2)."""
    transition, noise = leapfrog_chain(step_size, noise_variance)
    path = [torch.eye(2, dtype=torch.float64)]
    for _ in range(num_steps):
        path.append(transition @ path[-1] @ transition.T + noise)
    return torch.stack(path)


step_size, noise_variance, num_steps = 0.1, 4.0, 200
covariances = covariance_path(step_size, noise_variance, num_steps)
time = step_size * torch.arange(num_steps + 1)
energy = 0.5 * covariances.diagonal(dim1=1, dim2=2).sum(-1)
entropy = 0.5 * torch.logdet(covariances)  # up to a constant
claim("Entropy grows at every one of 200 noisy steps", bool((entropy.diff() > 0).all()), because="exact covariance recursion")
claim(
    "Without noise the entropy of 200 steps changes by",
    torch.logdet(covariance_path(step_size, 0.0, num_steps)[-1]).abs(),
    at_most=1e-10,
    because="leapfrog keeps volume; rounding",
)
B = 0.5 * step_size * noise_variance
claim(
    "Energy gained per unit of time over the rate tr(M⁻¹B)",
    (energy[-1] - energy[0]) / time[-1] / B,
    near=1,
    within=0.01,
    because="exact recursion; the step's own error is of order ε² = 0.01",
)

# %%
chains = 20_000
generator = torch.Generator().manual_seed(1)
noisy_well = NoisyGradient(well, noise_variance)
position = torch.randn(chains, 1, generator=generator) * 0.5 + 1.0
momentum = torch.randn(chains, 1, generator=generator)
energies = []
for _ in range(21):
    energies.append((well.energy(position) + 0.5 * momentum[:, 0] ** 2).double())
    position, momentum = leapfrog(lambda x: noisy_well.stochastic_gradient(x, generator), position, momentum, 0.02, 10)
gain = energies[-1] - energies[0]
# Where two runs of leapfrog meet, the two half kicks are drawn afresh, so 1 kick in 10 carries half the noise variance.
rate = 0.5 * 0.02 * noise_variance * 0.95
claim(
    "The double well gains energy in a time of 4 at the rate that the same formula gives",
    gain.mean(),
    near=4 * rate,
    standard_error=gain.std() / chains**0.5,
    because="the rate does not depend on the potential; Monte Carlo over 20,000 paths",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-heating", "caption": "Exact heating of the bowl from equilibrium (ε = 0.1, V = 4): expected energy with the line of slope tr(M⁻¹B) in grey, and entropy, which never falls."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2))
left.plot(time, energy, color=COLOURS["naive SGHMC"], label="naive dynamics")
left.plot(time, energy[0] + B * time, "--", color=TRUTH, label=r"slope $\mathrm{tr}(M^{-1}B)$")
left.set(xlabel="time", ylabel="expected energy $E[H]$")
left.legend()
right.plot(time, entropy, color=COLOURS["naive SGHMC"])
right.set(xlabel="time", ylabel=r"entropy $\frac{1}{2}\log\det\Sigma$ (from the start)")
plt.show()

# %% [markdown]
# ## Resampling stops the heating, too late
#
# A fresh momentum at the start of each trajectory throws away the kinetic half of the heat. The heat in $\theta$ stays, until as much is lost as is gained.
# In the bowl the whole algorithm is a linear chain and its stationary variance is exact.

# %%
lengths = [2, 5, 10, 15, 20, 25, 28]
exact = [float(naive_sghmc_chain(torch.eye(1), 0.1, L, noise_variance).stationary_covariance()[0, 0]) for L in range(1, 31)]
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
for L in (5, 15, 25):
    value, error = measured[lengths.index(L)]
    claim(
        f"Stationary variance of naive SGHMC in the bowl, {L} steps a trajectory",
        value,
        near=round(exact[L - 1], 4),
        standard_error=error,
        because="exact law of the linear chain; Monte Carlo over 2,000 chains",
    )
claim("Smallest variance over trajectories of 1 to 30 steps, where 1 is right", min(exact), at_least=1.012, because="exact law")

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-naive-variance", "caption": "Stationary variance of naive SGHMC in the bowl against trajectory length: exact (line) and measured (points, two standard errors). The true variance is 1."}}
figure, axes = plt.subplots()
axes.plot(range(1, 31), exact, color=COLOURS["naive SGHMC"], label="exact law of the chain")
axes.errorbar(
    lengths,
    [float(v) for v, _ in measured],
    [2 * float(e) for _, e in measured],
    fmt="o",
    ms=4,
    color=COLOURS["naive SGHMC"],
    label="measured",
)
axes.axhline(1, color=TRUTH)
axes.set(xlabel="leapfrog steps $L$", ylabel=r"stationary variance of $\theta$")
axes.legend()
plt.show()

# %% [markdown]
# Short trajectories collect little noise but walk at random; the bias is never gone, because even a single step keeps its kick's noise. {cite:t}`betancourt2015` shows that no choice of trajectory length escapes this trade.
#
# ## The price of correcting it
#
# Accept the end of a trajectory with probability $\min(1, e^{H(\theta, r) - H(\theta', r')})$, with the exact $H$.
# The noise of a kick does not depend on the direction in which the path is walked, so a noisy trajectory with its momentum flipped is as likely backwards as forwards, and the correction is valid.
# But it needs the energy on all the data, which the minibatch was to spare us, and it rejects the heat: the longer the trajectory and the larger $V$, the more.

# %%
acceptances = {}
for V in (0.25, 1.0, 4.0):
    acceptances[V] = []
    for L in (5, 20, 50, 100):
        run = sample(
            NaiveSGHMC(0.1, L, metropolis=True),
            NoisyGradient(bowl, V),
            bowl.exact_samples(2_000, torch.Generator().manual_seed(L)),
            num_samples=20,
            seed=L,
        )
        acceptances[V].append(float(run.statistics["acceptance"].mean()))
claim(
    "Acceptance of 100-step trajectories at V = 4",
    acceptances[4.0][-1],
    at_most=0.55,
    because="over 40,000 trajectories the standard error is below 0.003",
)
claim(
    "Acceptance of 5-step trajectories at V = 0.25",
    acceptances[0.25][0],
    at_least=0.9,
    because="over 40,000 trajectories the standard error is below 0.003",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-naive-acceptance", "caption": "Acceptance of corrected naive trajectories in the bowl, ε = 0.1, against their length, for three variances of the gradient noise."}}
figure, axes = plt.subplots()
for (V, values), style in zip(acceptances.items(), ("-o", "--s", ":^"), strict=True):
    axes.plot((5, 20, 50, 100), values, style, color=COLOURS["naive SGHMC with correction"], label=f"V = {V:g}")
axes.set(xlabel="leapfrog steps $L$", ylabel="mean acceptance", ylim=(0, 1))
axes.legend()
plt.show()

# %% [markdown]
# ## In practice
#
# * Do not use it. It is here because every practitioner invents it first.
# * If a sampler with minibatches has no friction, no noise estimate and no correction, it is this one.
# * The rate $\operatorname{tr}(M^{-1}B)$ tells how bad it is: compare $L\varepsilon\operatorname{tr}(M^{-1}B)$ with the equilibrium's kinetic energy $d/2$.
# * The cure is to take out the heat as fast as it comes: friction, in {doc}`/book/stochastic_gradients/sghmc`.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-naive-step
#
# At a fixed time $t = L\varepsilon$, how does the energy gained depend on $\varepsilon$? Does a smaller step cure the naive algorithm, and at what price?
# ```
#
# ```{solution} ex-naive-step
# :class: dropdown
#
# The gain is $t\operatorname{tr}(M^{-1}B) = \tfrac12t\varepsilon\operatorname{tr}(M^{-1}V)$: it falls in proportion to $\varepsilon$, at $1/\varepsilon$ times the gradients. Averaging $1/\varepsilon$ minibatches at each step would do the same.
# ```
#
# ```{exercise}
# :label: ex-naive-palindrome
#
# Prove that the correction step is valid: write the density of a noisy path and of the same path reversed.
# ```
#
# ```{solution} ex-naive-palindrome
# :class: dropdown
#
# Given the noises $\xi_0, \dots, \xi_L$ at the points of the path, the map from $(\theta, r)$ to $(\theta', -r')$ keeps volume and is undone by the same map with the noises in the reversed order. The noises are independent and equally distributed, so the reversed order has the same density. That is detailed balance for the proposal with respect to Lebesgue measure; accepting with $\min(1, e^{-\Delta H})$ makes it detailed balance for $e^{-H}$. It needs noise whose law does not depend on $\theta$.
# ```
#
# ```{exercise}
# :label: ex-naive-minibatch
#
# Hold *one* minibatch for the whole trajectory. What is the law of the chain then? Is it any better?
# ```
#
# ```{solution} ex-naive-minibatch
# :class: dropdown
#
# Each trajectory follows the exact dynamics of a wrong potential $\tilde U$. Energy is not pumped in along the path, but the kicks add up coherently: the momentum collects variance $(L\varepsilon)^2V$ rather than $L\varepsilon^2V$ while $L\varepsilon$ is short, and the bias no longer vanishes with $\varepsilon$.
# ```
#
# ## Further reading
#
# {cite:t}`chen2014`, Section 3.1, for the first proof that entropy grows; {cite:t}`betancourt2015` for why subsampling and long trajectories do not go together.
