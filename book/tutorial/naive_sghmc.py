# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Naive stochastic-gradient HMC
#
# ```{div} page-head
# Level: first course · Reading: about 80 minutes, without the exercises · Running: about 7 seconds
# ```
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
# **You will need** {doc}`/book/tutorial/hamiltonian_monte_carlo`, {doc}`/book/tutorial/minibatch_noise`, and {prf:ref}`thm-diffusion`.

# %%
import math

import matplotlib.pyplot as plt
import torch

from booklib.claims import claim
from booklib.diagnostics import bin_probabilities, expectation
from booklib.figures import COLOURS, TRUTH, plot_density, plot_histogram, use_style
from booklib.play import play
from sgmc import sample
from sgmc.integrators import leapfrog
from sgmc.kernels import NaiveSGHMC
from sgmc.splittings import flows, langevin_chain, linear_chain, naive_sghmc_chain
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
# With mass 1, and the leapfrog of {doc}`/book/tutorial/hamiltonian_dynamics`, that is soon written:


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

# %% mystnb={"figure": {"caption": "Naive SGHMC in the double well, $\\varepsilon = 0.1$, 50 steps a trajectory, $V = 4$: hills too low, valley too high, tails too long.", "name": "fig-naive-well"}, "image": {"alt": "A grey density with two hills. The line of the draws is below the hills, above the valley between them, and beyond the hills on either side it is still high where the density is zero."}} tags=["hide-input"]
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
start = torch.zeros(3, 1, dtype=torch.float64)
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
    at_most=1e-9,
    because="the same moves on the same random numbers; rounding in double precision",
    kind="exact",
)
claim(
    "E[θ⁴] of naive SGHMC in the double well over the exact one",
    fourth / exact_fourth,
    near=1.6,
    within=0.08,
    because="ten seeds give 1.58 to 1.62",
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
        within=0.12 * near,
        because="2,000 chains; ten seeds stay within 5 % of this",
    )

# %% [markdown]
# ## Why: entropy grows
#
# First look at one path, in the plane of position and momentum.
# In the bowl $U = \tfrac12\theta^2$ the exact dynamics runs round a circle, on which the {term}`energy` $H = \tfrac12(\theta^2 + r^2)$ is what it was.
# A kick with noise moves the path off its circle, inwards or outwards.


# %% mystnb={"figure": {"caption": "Three hundred steps, $\\varepsilon = 0.1$, from the black dot in the bowl: with the exact gradient (grey circle) and with gradient noise, $V = 4$ (orange).", "name": "fig-naive-idea"}, "image": {"alt": "A small grey circle, and an irregular orange spiral that starts on it and winds outwards to more than twice its radius."}} tags=["hide-input"]
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
    at_least=0.65,
    because="the expected share is 0.93; 0.82 to 0.98 over ten seeds",
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
# Each move is linear, and `linear_chain` composes them to one linear chain in $(\theta, r)$, as in the box on linear chains in {doc}`/book/tutorial/langevin`.
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

# %% mystnb={"figure": {"caption": "Exact heating of the bowl from equilibrium, $\\varepsilon = 0.1$, $V = 4$. Above: the expected energy and the line of slope $\\operatorname{tr}(M^{-1}B)$. Below: the entropy, which never falls.", "name": "fig-heating"}, "image": {"alt": "Above, a line that rises steadily from 1 to 5 in a time of 20, with a dashed straight line on it. Below, a curve that rises from 0 to 1.6, ever more slowly."}} tags=["hide-input"]
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

# %% mystnb={"figure": {"caption": "Stationary variance of naive SGHMC in the bowl against the length of a trajectory, $\\varepsilon = 0.1$, $V = 4$: exact law (line) and measurements (points, two standard errors). The true variance is 1 (grey); the peak is at half a period, and the next one, at a whole period of 63 steps, lies just beyond the edge.", "name": "fig-naive-variance"}, "image": {"alt": "A line that rises from 1 to a sharp peak near 31 steps, falls back to about 2, and rises towards another peak near 60 steps. Nine points lie on it."}} tags=["hide-input"]
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
#
# In {numref}`fig-live-naive_sghmc` the noise has a slider: the heat grows in proportion to $V$, and only $V = 0$ is right.
#
# ```{live} naive_sghmc
# :name: fig-live-naive_sghmc
# :alt: A small grey circle and a path that winds outwards from it; the mean energy, which climbs along a straight line; a histogram of draws that is lower and wider than the true density; and the variance of the draws, twice the truth.
#
# Live: naive SGHMC in the bowl, $\varepsilon = 0.1$. One path; the mean energy of 400; draws with a fresh momentum after every 50 steps; their variance, which theory has from {eq}`eq-naive-variance`.
# ```

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

# %% mystnb={"figure": {"caption": "Acceptance of corrected naive trajectories in a standard Gaussian of one dimension (above) and of ten (below), $\\varepsilon = 0.1$, against their length, for three variances of the gradient noise.", "name": "fig-naive-acceptance"}, "image": {"alt": "Two panels, one above the other, with three falling curves each. In one dimension they fall from nearly 1 to between 0.85 and 0.4, in ten dimensions to between one half and nearly zero; in both the largest variance has the lowest curve."}} tags=["hide-input"]
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
    ("100-step trajectories at V = 4 in one dimension", table[0, 2, 3], 0.423, 0.012),
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
# Nor does it help to let a part of the data decide: such a decision reads most of the data, or the draws are too wide ({doc}`/book/further/minibatch_metropolis`).
#
# ## In practice
#
# * Do not use it.
#   It is here because it is what one thinks of first.
# * If a sampler with minibatches has no friction, no noise estimate and no correction, it is this one.
# * The rate $\operatorname{tr}(M^{-1}B)$ tells how bad it is: compare $L\varepsilon\operatorname{tr}(M^{-1}B)$ with the equilibrium's kinetic energy $d/2$.
# * The cure is to take out the heat as fast as it comes: friction, in {doc}`/book/tutorial/sghmc`.
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
#
# ## Change it
#
# * Set `NaiveSGHMC(0.1, 50)` in the cell with the double well to `NaiveSGHMC(0.1, 5)`: the claims on $E[\theta^4]$ and on the shares show ✗, because shorter trajectories take up less heat.
# * Set `[half_drift, kick, half_drift]` to `[half_drift, kick, flows.friction_flow(step_size, 0.2), half_drift]`: the entropy no longer grows and the energy stays nearly where it was, so that three claims show ✗.
#   A friction of $C = B = 0.2$ takes the heat out as fast as it comes in, which is the idea of {doc}`/book/tutorial/sghmc`.
# * Set `step_size, noise_variance, num_steps = 0.1, 4.0, 200` to `step_size, noise_variance, num_steps = 0.1, 1.0, 200`: the formulas hold as before, and the smallest variance is 1.005, so that its claim shows ✗.
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
# The folded code compares this with `sgmc.splittings.naive_sghmc_chain`.
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
# {cite:t}`chen2014`, Section 3.1, for the algorithm and its theorem on entropy; {cite:t}`betancourt2015` for why subsampling and long trajectories do not go together.
