# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # The obvious thing overheats: naive stochastic-gradient HMC
#
# ```{div} page-head
# Page 7 of 12 · 39 minutes to read, 10 to play · Running: about 6 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! naive SGHMC
# ```

# %%
import torch

from booklib.page.scoreboard import show_row
from sgmc.integrators import leapfrog
from sgmc.splittings import flows

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import at_least, at_most, at_most_errors, check, near
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from sgmc.kernels import NaiveSGHMC
from sgmc.splittings import langevin_chain, linear_chain, naive_sghmc_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# Momentum made HMC fast, and minibatches made {doc}`SGLD </book/tutorial/langevin>` affordable.
# The obvious idea is to have both: put the minibatch gradient into HMC, and leave out the acceptance step, because it would read all the data.
# Does that work?
#
# {numref}`fig-naive-idea` shows what happens in the bowl $U = \tfrac12\theta^2$.
# With the exact gradient the ball runs round a circle of constant {term}`energy` $H = \tfrac12(\theta^2 + r^2)$.
# With gradient noise of variance $V = 4$ each kick moves it off its circle, inwards or outwards. A kick $\xi$ changes $r^2$ by $2r\xi + \xi^2$; the first term is zero on average and the second is never negative, so on average the ball drifts outwards.
# Averaged over many paths, the energy climbs along a straight line.
#
# *A guess before you read on.*
# Does the climb go on, or level off? And if the momentum is drawn afresh every 16 steps, which variance does $\theta$ settle at: 1, 1.3 or 3?


# %% mystnb={"figure": {"caption": "The bowl with gradient noise, $\\varepsilon = 0.1$, $V = 4$. Left: one path of 300 steps (orange) and the exact dynamics (grey circle), both from $(0, 1)$. Right: the exact mean energy from a start in equilibrium, where it is $\\frac12 + \\frac12 = 1$.", "name": "fig-naive-idea"}, "image": {"alt": "Left, a small grey circle and an irregular orange spiral that starts on it and winds outwards to more than twice its radius. Right, a straight line that rises from 1 to 5 within a time of 20."}} tags=["hide-input"]
def follow(spread):
    """A path of 300 steps from (0, 1), each a kick between two half drifts."""
    theta, r, path = torch.zeros(1), torch.ones(1), []
    generator = torch.Generator().manual_seed(1)
    for _ in range(300):
        path.append((theta, r))
        theta = theta + 0.05 * r
        r = r - 0.1 * (theta + spread * torch.randn(1, generator=generator))
        theta = theta + 0.05 * r
    return zip(*path, strict=True)


def covariances(moves, noise_variance=4.0, num_steps=200, start=1.0):
    """The exact covariance of (θ, r) after 0, 1, … steps from N(0, start)."""
    chain = linear_chain(moves, torch.eye(1), noise_variance)
    path = [start * torch.eye(2, dtype=torch.float64)]
    for _ in range(num_steps):
        path.append(chain.transition @ path[-1] @ chain.transition.T)
        path[-1] = path[-1] + chain.noise_covariance
    return torch.stack(path)


def energy(covariances):
    return 0.5 * covariances.diagonal(dim1=1, dim2=2).sum(-1)


half, kick = flows.Drift(0.05), flows.Kick(0.1)
heating, time = covariances([half, kick, half]), 0.1 * torch.arange(201)
figure, (left, right) = plt.subplots(1, 2, figsize=(5.6, 3.0))
left.plot(*follow(0.0), color=TRUTH, lw=2.5)
left.plot(*follow(2.0), color=COLOURS["naive SGHMC"], lw=1)
left.plot(0, 1, "ko", ms=5)
left.set(xlabel=r"position $\theta$", ylabel="momentum $r$", aspect="equal")
right.axhline(1, color=TRUTH, lw=3, zorder=0)
right.plot(time, energy(heating), color=COLOURS["naive SGHMC"])
right.set(xlabel="time", ylabel="mean energy $E[H]$", ylim=(0, 5.5))
plt.show()

# %% [markdown]
# ## The obvious algorithm
#
# ```{prf:algorithm} Naive SGHMC
# :label: alg-naive
#
# Repeat: draw $r \sim N(0, M)$; follow $L$ {term}`leapfrog` steps of size $\varepsilon$ with $\nabla\tilde U = \nabla U + N(0, V)$ in place of $\nabla U$; keep the position at the end.
# ```
#
# With mass 1, and the package's `leapfrog`, which asks for the gradient once at each point; the lines of {doc}`/book/tutorial/hamiltonian_dynamics` ask twice, and two independent noises would heat half as fast:


# %%
def naive_sghmc(gradient, theta, step_size, num_steps, generator):
    """One sample: the end of a noisy trajectory with a fresh momentum."""
    r = torch.randn(theta.shape, generator=generator)
    theta, r = leapfrog(gradient, theta, r, step_size, num_steps)
    return theta


# %% [markdown]
# Two thousand chains with trajectories of 50 steps make its row of the scoreboard, in which SGLD had 1.025:

# %%
generator = torch.Generator().manual_seed(7)


def noisy_bowl(theta):
    """The gradient of U = ½θ², with noise of variance V = 4."""
    return theta + 2 * torch.randn(theta.shape, generator=generator)


def run(num_steps):
    """Forty samples of 2,000 chains, after a warm-up."""
    theta, samples = torch.zeros(2_000, 1), []
    for _ in range(600 // num_steps + 60):
        theta = naive_sghmc(noisy_bowl, theta, 0.1, num_steps, generator)
        samples.append(theta[:, 0])
    return torch.stack(samples[-40:])


show_row("naive", run(50))

# %% [markdown]
# ## Why it overheats
#
# A full kick $-\varepsilon\nabla\tilde U$ carries noise of variance $\varepsilon^2V = 2B\varepsilon$ with $B = \tfrac12\varepsilon V$, see {eq}`eq-diffusion`.
# A model in continuous time, with $B$ held at its value for this step size, brings in noise at the same rate:
#
# $$
# \begin{aligned}
# d\theta &= M^{-1}r\,dt,\\
# dr &= -\nabla U(\theta)\,dt + N(0, 2B\,dt).
# \end{aligned}
# $$ (eq-naive)
#
# Noise pumps energy in, and nothing takes it out. How much, in a unit of time?
#
# ```{prf:theorem} Energy is pumped in at the rate tr(M⁻¹B)
# :label: thm-pumping
#
# The noise of one kick adds exactly $\varepsilon\operatorname{tr}(M^{-1}B)$ to the expected energy.
# Under {eq}`eq-naive` likewise $\frac{d}{dt}E[H] = \operatorname{tr}(M^{-1}B)$, for every potential, as long as $E[H]$ is finite.
# ```
#
# ```{prf:proof}
# Let $\xi \sim N(0, \varepsilon^2V)$ be the noise, independent of the momentum $r$ that it meets.
# Then $E[\tfrac12(r + \xi)^\top M^{-1}(r + \xi)] = E[\tfrac12r^\top M^{-1}r] + \tfrac12\operatorname{tr}(M^{-1}\varepsilon^2V)$: the mixed term has mean zero, and the last is $\varepsilon\operatorname{tr}(M^{-1}B)$.
# The position does not feel a kick, so the potential energy stays as it is; and without noise $H$ would change only by the integrator's error.
# There are $1/\varepsilon$ kicks in a unit of time.
#
# Under {eq}`eq-naive` itself Taylor's formula as in {prf:ref}`thm-diffusion`, with $f = H$, gives $\frac d{dt}E[H] = E[\nabla_\theta H\cdot M^{-1}r - \nabla_rH\cdot\nabla U] + \sum_{ij}B_{ij}(M^{-1})_{ij} = \operatorname{tr}(M^{-1}B)$.
# ```
#
# This answers the guess: for constant $V$, and without resampling, the rate does not depend on where the ball is, so the climb of {numref}`fig-naive-idea` never stops.
# In the bowl it is $B = 0.2$. In equilibrium the mean kinetic energy is $\tfrac12$, so the noise adds as much in 2.5 units of time.
# With a constant $V$ the rate is the same in every potential: in the double well $U = -2\theta^2 + \theta^4$, where the chain is not linear, 100,000 simulated paths gain what the theorem says, up to the integrator's own error of $10^{-3}$.
#
# So no distribution of finite mean energy is stationary. A second argument excludes more, and needs no energy.
# The *entropy* of a density, $h(p) = -\int p\log p$, measures how far it is spread out; that of a Gaussian is a constant plus half the logarithm of the determinant of its covariance.
# Hamilton's equations only carry a density about: their flow keeps volume, so the density is nowhere thinned, and the entropy stays.
# Noise in the momentum spreads the density, and nothing in {eq}`eq-naive` gathers it again, so the entropy grows for ever, whereas that of a stationary density would stay.
#
# ```{prf:theorem} Entropy grows
# :label: thm-entropy
#
# Let $p_t$ be the density of $(\theta, r)$ under {eq}`eq-naive` with a positive definite $B(\theta)$, smooth, positive, and falling fast enough at infinity for the integrations by parts below.
# If its entropy is finite, it grows strictly:
#
# $$
# \frac{d}{dt}h(p_t) = \int\frac{\nabla_r p_t^\top B\,\nabla_r p_t}{p_t}\,d\theta\,dr > 0.
# $$ (eq-entropy)
#
# So no such density is stationary, not even the target $e^{-H}$.
# ```
#
# ```{prf:proof}
# The derivative of $p\log p$ is $(1 + \log p)\,\partial_tp$, and $\int\partial_tp = 0$ because the probability stays 1. Hence $\frac{d}{dt}h = -\int\partial_tp\,\log p$.
# By {prf:ref}`thm-diffusion`, $\partial_tp$ has two parts, $-\nabla\cdot(p\,f)$ with Hamilton's velocity $f = (M^{-1}r, -\nabla U)$, and $\nabla_r\cdot(B\nabla_rp)$ from the noise, where $B$ stands in front of $\nabla_r p$ because it does not depend on $r$.
#
# *Hamilton's part.* Integrate by parts twice:
#
# $$
# \begin{aligned}
# \int\nabla\cdot(p\,f)\,\log p &= -\int p\,f\cdot\nabla\log p\\
# &= -\int f\cdot\nabla p = \int p\,\nabla\cdot f = 0.
# \end{aligned}
# $$
#
# The divergence of $f$ is zero because $M^{-1}r$ does not depend on $\theta$, nor $\nabla U$ on $r$: it is what keeps volume on page 3.
#
# *The noise's part.* Integrate by parts once, and write $\nabla_r\log p = \nabla_rp/p$:
#
# $$
# -\int\nabla_r\cdot(B\nabla_rp)\,\log p = \int\frac{\nabla_rp^\top B\,\nabla_rp}p.
# $$
#
# This is {eq}`eq-entropy`. $B$ is positive definite, so the integral is positive unless $\nabla_rp = 0$ everywhere; but then $p$ would not depend on $r$, and its integral over all momenta would be infinite.
# ```
#
# This is Theorem 3.1 of {cite:t}`chen2014`; {prf:ref}`thm-entropy-boundary` says what is fast enough at infinity.

# %% tags=["hide-input"]
check(
    "rate",
    (energy(heating)[-1] - 1) / 20 / 0.2,
    near(1, 0.01),
    kind="exact",
    because="exact recursion; the step's own error is of order ε² = 0.01",
    says="Energy gained per unit of time over the rate tr(M⁻¹B)",
)
check(
    "entropy-grows",
    bool((torch.logdet(heating).diff() > 0).all()),
    kind="exact",
    because="½ log det of the exact covariance, and a constant",
    says="Entropy grows at every one of 200 noisy steps",
)
check(
    "entropy-stays",
    torch.logdet(covariances([half, kick, half], 0.0)[-1]).abs(),
    at_most(1e-10),
    kind="exact",
    because="leapfrog keeps volume; rounding",
    says="Without noise the entropy of 200 steps changes by",
)
well, generator = DoubleWell(), torch.Generator().manual_seed(1)
theta = torch.randn(100_000, 1, generator=generator) * 0.5 + 1.0
r = torch.randn(100_000, 1, generator=generator)
end = leapfrog(
    lambda x: well.gradient(x) + 2 * torch.randn(x.shape, generator=generator),
    *(theta, r, 0.02, 200),
)
gain = well.energy(end[0]) + end[1][:, 0] ** 2 / 2
gain = (gain - well.energy(theta) - r[:, 0] ** 2 / 2).double()
check(
    "double-well",
    gain.mean(),
    near(
        (199 + 2 / 4) * 0.02 * 0.5 * 0.02 * 4,  # half kicks at both ends
        5 * float(gain.std()) / 100_000**0.5 + 0.001,
    ),
    because="five standard errors of 100,000 paths, and the integrator's own 0.001",
    says="The double well gains energy in a time of 4 as the formula says",
)

# %% [markdown]
# ## Resampling stops the heating, too late
#
# Two questions must be kept apart. *Without* fresh momenta the energy climbs for ever: both theorems are about that. *With* them the climb is cut short after each path, and what is left of it is a bias, a variance that is too large, but finite. How large?
#
# {prf:ref}`alg-naive` draws a momentum before each trajectory, and so throws away the kinetic half of the surplus energy.
# The surplus in $\theta$ stays, and grows until what is thrown away with a momentum equals what the noise brings in during a trajectory.
# In the bowl this balance is simple.
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
# A kick at time $s$ is rotated by the remaining time $t - s$, so a fraction $\sin(t - s)$ of it ends up in $\theta$.
# Hence $\theta(t) = \theta\cos t + r\sin t + \xi$, where $\xi$ has the variance $\int_0^t2B\sin^2(t - s)\,ds = B(t - \sin t\cos t)$.
# Stationarity is $\sigma^2 = \sigma^2\cos^2t + \sin^2t + B(t - \sin t\cos t)$; divide by $1 - \cos^2t = \sin^2t$.
# ```
#
# Short trajectories collect little noise, but walk at random; with a single step, $L = 1$, the algorithm is SGLD with $\eta = \tfrac12\varepsilon^2$.
# Long ones collect much: with 16 steps, a quarter of a turn and thus a good length for HMC, the variance is {c}`quarter` instead of 1, and with the 50 of the row {c}`naive`, where {eq}`eq-naive-variance`, the limit of small steps, has {c}`limit`.
# Near half a period it is worst ({numref}`fig-naive-variance`), because there $\theta$ comes back as $-\theta$ whatever the fresh momentum was, and none of the surplus in $\theta$ is lost.
# The bias is smallest for trajectories so short that one might as well have used Langevin.
# {cite:t}`betancourt2015` argues that there is no way round this trade: whatever tames the noise gives up the long, coherent paths for which HMC is used.

# %% mystnb={"figure": {"caption": "Stationary variance of naive SGHMC in the bowl against the length of a trajectory, $\\varepsilon = 0.1$, $V = 4$, on a logarithmic scale: exact values (line) and measurements (points). The true variance is 1 (grey); the peak is at half a period.", "name": "fig-naive-variance"}, "image": {"alt": "A line that rises from 1 to a sharp peak near 31 steps, falls back to about 2, and rises towards another peak near 60 steps. Six points lie on it."}} tags=["hide-input"]
all_lengths = range(1, 61)
exact = [
    float(naive_sghmc_chain(torch.eye(1), 0.1, L, 4.0).stationary_covariance()[0, 0])
    for L in all_lengths
]
measured = {}
for L in (2, 5, 15, 25, 40, 50):
    of_chains = (run(L) ** 2).mean(0)
    measured[L] = float(of_chains.mean()), float(of_chains.std()) / 2_000**0.5
figure, axes = plt.subplots(figsize=(5.4, 3.2))
colour = COLOURS["naive SGHMC"]
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.semilogy(all_lengths, exact, color=colour)
axes.plot(list(measured), [value for value, _ in measured.values()], "ko", ms=4)
axes.set(xlabel="leapfrog steps $L$", ylabel=r"variance of $\theta$", ylim=(0.9, 700))
axes.set_yticks([1, 2, 5, 20, 100, 400], ["1", "2", "5", "20", "100", "400"])
axes.minorticks_off()
plt.show()

# %% [markdown]
# In {numref}`fig-live-naive_sghmc` the noise has a slider: the heat grows in proportion to $V$, and only $V = 0$ is right.
#
# ```{live} naive_sghmc
# :name: fig-live-naive_sghmc
# :alt: A small grey circle and a path that winds outwards from it; the mean energy, which climbs along a straight line; a histogram of samples that is lower and wider than the true density; and the variance of the samples, twice the truth.
#
# Live: naive SGHMC in the bowl, $\varepsilon = 0.1$. One path; the mean energy of 400; samples with a fresh momentum after every 50 steps; their variance, and its exact value ({ref}`ex-naive-law`).
# ```

# %% tags=["hide-input"]
check(
    "six-variances",
    max(abs(value - exact[L - 1]) / error for L, (value, error) in measured.items()),
    at_most_errors(),
    because="2,000 chains each; exceeded by chance once in 290,000 times",
    says="Largest distance of six measured variances from the exact ones, in standard "
    "errors",
)
times = 0.1 * torch.arange(1, 61, dtype=torch.float64)
limits = 1 + 0.2 * (times / times.sin() ** 2 - 1 / times.tan())
check("quarter", exact[15], kind="exact", digits=3)
check("limit", limits[49], kind="exact")
check(
    "half-period",
    exact[30] / exact[15],
    at_least(10),
    kind="exact",
    because="exact laws",
    says="Exact variance with 31 steps, half a period, over that with 16",
)
check(
    "formula",
    (limits / torch.tensor(exact) - 1)[:28].abs().max(),
    at_most(0.01),
    kind="exact",
    because="exact laws; half kicks and the step's error are of order ε² = 0.01",
    says="Largest relative difference between formula and exact law, up to 28 steps",
)
check(
    "one-step",
    exact[0]
    - float(langevin_chain(torch.eye(1), 0.005, 4.0).stationary_covariance()[0, 0]),
    near(0, 1e-12),
    kind="exact",
    because="they are the same algorithm; rounding",
    says="Variance with one step a trajectory less that of SGLD with η = ε²/2",
)
target, kernel = NoisyGradient(Gaussian.standard(1), 4.0), NaiveSGHMC(0.1, 50)
theta = torch.zeros(3, 1)
state = kernel.init(target, theta, generator.manual_seed(0))
for _ in range(5):
    state, _ = kernel.step(target, state, generator)
generator.manual_seed(0)
for _ in range(5):
    theta = naive_sghmc(noisy_bowl, theta, 0.1, 50, generator)
check(
    "same-samples",
    (theta - state.position).abs().max(),
    at_most(1e-4),
    kind="exact",
    because="the same moves on the same random numbers; rounding",
    says="Five samples by naive_sghmc and by the package differ by",
)

# %% [markdown]
# ## What would help?
#
# The acceptance step of HMC would make the sampler exact, but it needs the energy of all the data, and it rejects nearly every long trajectory of a noisy gradient ({doc}`/book/further/minibatch_metropolis` counts the cost).
# Smaller steps or larger minibatches do reduce the heating, but to halve the rate either way one has to read twice as many examples in a unit of time ({ref}`ex-naive-step`).
#
# There is a better way: take the energy out as fast as it comes in.
# A force $-Cr$ against the motion does that, friction.
# It removes the energy $C\,E[r^2]$ in a unit of time, which in equilibrium is $C$, so a friction of $C = B = 0.2$ should balance the noise exactly.
#
# In code a step is a list of moves: the drift of the position, and then the kick of the momentum by the noisy gradient.
# Friction is one move more, which shrinks the momentum, $r \leftarrow (1 - \varepsilon C)r$, after the kick; the next page lets it act on the momentum before the kick, a difference of order $\varepsilon^2$ in a step:

# %%
drift, kick = flows.Drift(0.1), flows.Kick(0.1)
naive = [drift, kick]
slowed = [drift, kick, flows.friction_flow(0.1, friction=0.2)]

# %% mystnb={"figure": {"caption": "Exact mean energy in the bowl, $\\varepsilon = 0.1$, $V = 4$, $B = 0.2$: without friction, and with friction that is inserted at time 10. The grey line at 1 is correct.", "name": "fig-heating"}, "image": {"alt": "A line that rises from 1 to 3 within a time of 10. There it splits in three: without friction it goes on rising; with friction 0.2 it bends over and falls to 1; with friction 0.5 it falls faster, to 0.4."}} tags=["hide-input"]
before, strong = covariances(naive, num_steps=100), flows.friction_flow(0.1, 0.5)
bent = {
    name: energy(covariances(moves, num_steps=300, start=before[-1]))
    for name, moves in (
        ("no friction", naive),
        ("$C = 0.2$", slowed),
        ("$C = 0.5$", [drift, kick, strong]),
    )
}
figure, axes = plt.subplots(figsize=(5.4, 3.2))
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.plot(time[:101], energy(before), color=COLOURS["naive SGHMC"])
for (name, values), colour, height in zip(
    bent.items(),
    (COLOURS["naive SGHMC"], COLOURS["SGHMC"], COLOURS["SGHMC"]),
    (5.0, 1.3, 0.05),
    strict=True,
):
    later = 10 + 0.1 * torch.arange(301)
    axes.plot(later, values, "--" if "0.5" in name else "-", color=colour)
    axes.text(24, height, name, color=colour)
axes.set(xlabel="time", ylabel="mean energy $E[H]$", ylim=(0, 6), xlim=(0, 32))
plt.show()

# %% tags=["hide-input"]
for (name, values), end in zip(bent.items(), (9.0, 1.0, 0.4), strict=True):
    check(
        f"bent-{end}",
        values[-1],
        near(end, 0.07 * end),
        kind="exact",
        because="exact recursion: 1 + 40B, B/C and B/C, up to an error of order εC",
        says=f"E[H] after a time of 40, {name.replace('$', '')} from time 10 on",
    )

# %% [markdown]
# In {numref}`fig-heating` the climb bends over where the friction is inserted.
# With a friction of $C = B = 0.2$ the energy comes back to where it should be.
# With $C = 0.5$ the friction takes out more than the noise brings, and the energy settles near $B/C = 0.4$, unless some noise of our own is put back.
# How much of each is right, in every potential and in every direction?
# That is the question of {doc}`the next page </book/tutorial/sghmc>`.
#
# **To remember:** minibatch noise pumps the energy $\operatorname{tr}(M^{-1}B)$ into the dynamics in every unit of time, and nothing takes it out unless friction is inserted.
#
# ## Change it
#
# * In the visible cell above {numref}`fig-heating` set `friction=0.2` to `friction=0.4`: the middle curve bends further down, and settles at one half.
# * In `naive_sghmc` set `torch.randn(` to `2 * torch.randn(`: the momenta have four times the energy that they should have, and the points of {numref}`fig-naive-variance` lie far above the line.
# * In the cell of `noisy_bowl` set `2 * torch.randn` to `1 * torch.randn`: a quarter of the noise brings a quarter of the surplus, and the points drop below the line.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-naive-step
#
# **Choose what to pay for.** ★
# At a fixed time $t = L\varepsilon$, how does the energy gained depend on $\varepsilon$?
# Does a smaller step cure the naive algorithm, and at what price?
# You have examples for twice as many gradients: will you halve $\varepsilon$, or double the minibatch?
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
# :label: ex-naive-minibatch
#
# **One minibatch a trajectory.** ★★
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
# **Write it yourself.** ★★★
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
# Task 4 of assignment 2, *Minibatch noise, and samplers that live with it*, asks for the sampler itself, and one of its figures for a plot like {numref}`fig-naive-variance`; see {doc}`/book/practice/teaching`.
# ````
#
# ````{solution} ex-naive-law
# :class: dropdown
#
# A move with matrix $G$ and noise covariance $S$ makes $F$ into $GF$, and $Q$ into $GQG^\top + S$.
# At the end $\theta' = F_{11}\theta + F_{12}r + \xi_1$ with a fresh $r \sim N(0, 1)$, so that $\sigma^2 = F_{11}^2\sigma^2 + F_{12}^2 + Q_{11}$.
#
# ```python
# def naive_variance(step_size, num_steps, noise_variance):
#     transition = torch.eye(2, dtype=torch.float64)
#     covariance = torch.zeros(2, 2, dtype=torch.float64)
#     drift = torch.tensor([[1.0, step_size], [0.0, 1.0]], dtype=torch.float64)
#     for point in range(num_steps + 1):
#         length = step_size / 2 if point in (0, num_steps) else step_size
#         kick = torch.tensor([[1.0, 0.0], [-length, 1.0]], dtype=torch.float64)
#         transition, covariance = kick @ transition, kick @ covariance @ kick.T
#         covariance[1, 1] += length**2 * noise_variance
#         if point < num_steps:
#             transition, covariance = drift @ transition, drift @ covariance @ drift.T
#     return (transition[0, 1] ** 2 + covariance[0, 0]) / (1 - transition[0, 0] ** 2)
# ```
# ````


# %% tags=["hide-input"]
def naive_variance(step_size, num_steps, noise_variance):
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


check(
    "naive-law",
    max(
        abs(float(naive_variance(0.1, L, 4.0)) / exact[L - 1] - 1) for L in all_lengths
    ),
    at_most(1e-9),
    kind="exact",
    because="the same variance; rounding",
    says="Largest relative difference of the solution from naive_sghmc_chain, "
    "trajectories of 1 to 60 steps",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`chen2014` introduce the algorithm and its theorem on entropy in their Section 3.1.
# {cite:t}`betancourt2015` explains why subsampling and long trajectories do not go together.
