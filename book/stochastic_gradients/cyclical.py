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
# # Cyclical step sizes
#
# A step size that falls from large to almost nothing, again and again, leads a chain from mode to mode; this chapter says why it does, what is right about its draws, and what is not.
#
# **You will learn** to
#
# * write down the schedule and its two stages, and run it around any kernel,
# * derive at which step a chain leaves a mode, and how often,
# * compute the exact law of the draws at every place of a cycle on a Gaussian,
# * tell what a number of cycles can say about the mass of a mode, and show what no number of them can,
# * hand on a momentum while the step falls, and see what a velocity does instead,
# * read a published comparison in its own setting, and repeat it with baselines tuned alike.
#
# **You will need** {doc}`/book/stochastic_gradients/langevin` and {doc}`/book/stochastic_gradients/sghmc`.

# %%
import itertools
import math
import warnings
from functools import partial

import matplotlib.pyplot as plt
import torch
from scipy import stats

from experiments.results import RESULTS, read_result, who_ran
from sgmc import claim, flows, sample
from sgmc.datasets import digits
from sgmc.figures import COLOURS, TRUTH, plot_contours, use_style
from sgmc.kernels import SGHMC, SGLD, Cyclical
from sgmc.linear_laws import LinearChain, langevin_chain, linear_chain
from sgmc.networks import multilayer_perceptron
from sgmc.play import play
from sgmc.posteriors import NetworkPosterior
from sgmc.prediction import error_rate, log_score
from sgmc.tables import show_table
from sgmc.targets import GaussianMixture, NoisyGradient

use_style()
play()
# That chains which sit in different modes disagree is what this chapter is about.
warnings.filterwarnings("ignore", message=".*do not agree")

# %% [markdown]
# ## A schedule with two stages
#
# Steps that fall ({doc}`/book/stochastic_gradients/langevin`) remove the bias of SGLD, but a chain with small steps stays in the mode where it is.
# {cite:t}`zhang2020` let the step fall, raise it again, and go on from there.
#
# ```{prf:definition} Cyclical step size
# :label: def-cyclical-schedule
#
# In $K$ steps with $M$ cycles, and $\eta_0$ the largest step, the step number $k = 1, \dots, K$ has the size
#
# $$
# \eta_k = \frac{\eta_0}2\Bigl[\cos\Bigl(\frac{\pi\,\operatorname{mod}(k - 1, \lceil K/M\rceil)}{\lceil K/M\rceil}\Bigr) + 1\Bigr].
# $$ (eq-cyclical-schedule)
# ```
#
# A cycle has $\ell = \lceil K/M\rceil$ steps. (The authors write $\alpha_k$ and $\alpha_0$; here $\alpha$ is the momentum decay.)
# Snapshot ensembles have the same wave ({doc}`/book/bayesian_networks/neighbours`), without noise.
#
# ```{prf:algorithm} Cyclical stochastic-gradient MCMC
# :label: alg-cyclical
#
# For every $k$, with $\eta_k$ of {eq}`eq-cyclical-schedule` and a share $\beta$:
#
# 1. In the first $\beta\ell$ steps of a cycle *explore*: take a step of SGLD or SGHMC, or of the optimiser that is left of it at temperature 0, and keep nothing.
# 2. In the rest of the cycle *sample*: take a step of SGLD (cSGLD) or SGHMC (cSGHMC), and keep draws.
# ```
#
# In code it is a kernel around another one, given as a function from a step size to a kernel.
#
# ```{literalinclude} ../../sgmc/kernels/cyclical.py
# :language: python
# :start-at: cycle, number = divmod
# :end-at: return CyclicalState(inner, state.num_draws
# :dedent: 8
# ```
#
# The target of this chapter is theirs: 25 Gaussians with means on the grid $\{-4, -2, 0, 2, 4\}^2$, equal weights, and the variance $\sigma^2 = 0.03$ in every direction.
# A mode is $0.17$ wide and its neighbours are 2 away, with a barrier of $16$ between them, so that a Langevin diffusion crosses once in $e^{16}$ or so of its own times.
# The gradient is seen through noise $N(0, 1)$, and $\hat B = \tfrac12\eta V$ takes that out of what is injected ({prf:ref}`alg-sgld`): a step of any size up to 2 adds $N(0, 2\eta)$ in all.

# %%
mixture = GaussianMixture()
noisy = NoisyGradient(mixture, 1.0)


def langevin(rate):
    return SGLD(rate, noise_estimate=rate / 2)


LENGTH, HIGHEST = 1_667, 0.07  # ⌈50,000 / 30⌉


def rate(step, length=LENGTH, highest=HIGHEST):
    return highest / 2 * (math.cos(math.pi * (step % length) / length) + 1)


def nearest(positions):
    """Distance to the nearest mean, and its number."""
    return torch.cdist(positions, mixture.means).min(-1)


# Every step is drawn, so that the path can be seen.
every_step = Cyclical(langevin, HIGHEST, LENGTH, num_draws=LENGTH)
path = sample(every_step, noisy, torch.zeros(1, 2), 4 * LENGTH, seed=5)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-cyclical-idea", "caption": "The idea. Left: the step size over four cycles; steps above the dotted line, 2σ², are too large for a mode to hold the chain. Right: one path through the mixture (grey contours). Light dots are steps above that line, lines and dark dots the last fifth of each cycle: the chain settles in one mode a cycle."}, "image": {"alt": "Left, four cosine arcs falling from 0.07 to zero, with their last fifths shaded. Right, faint dots all over a grid of 25 small circles, and four dark clusters, each inside of one circle."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.8, 3.9))
left.plot([rate(step) for step in range(4 * LENGTH)], color=COLOURS["SGLD"])
left.axhline(0.06, color="black", ls=":")
right.plot(
    *path.samples[[step for step in range(4 * LENGTH) if rate(step) > 0.06], 0].T,
    ".",
    ms=1.5,
    color=COLOURS["SGD"],
    alpha=0.4,
)
plot_contours(right, mixture, -5.5, 5.5)
for cycle in range(4):
    begin, end = cycle * LENGTH + 4 * LENGTH // 5, (cycle + 1) * LENGTH
    left.axvspan(
        begin,
        end,
        color=COLOURS["SGLD"],
        alpha=0.25,
        lw=0,
        label=None if cycle else "sampling, $\\beta = 0.8$",
    )
    right.plot(*path.samples[begin:end, 0].T, ".", ms=2.5, color=COLOURS["SGLD"])
left.set(xlabel="step $k$", ylabel=r"$\eta_k$", ylim=(None, 0.085))
left.legend(loc="upper right")
right.set(
    xlabel=r"$\theta_1$",
    ylabel=r"$\theta_2$",
    xlim=(-5.5, 5.5),
    ylim=(-5.5, 5.5),
    aspect="equal",
)
plt.show()

# %% tags=["hide-input"]
steps = path.statistics["step_size"][:, 0]
claim(
    "Largest difference between the kernel's step sizes and the schedule, four cycles",
    (
        steps.double()
        - torch.tensor([rate(step) for step in range(len(steps))], dtype=torch.float64)
    )
    .abs()
    .max(),
    at_most=1e-8,
    because="single precision of the statistics",
    kind="exact",
)
_, visited = nearest(path.samples[:, 0])
settled = visited.view(4, LENGTH)[:, 4 * LENGTH // 5 :]
claim(
    "Modes that the chain is in during the last fifth of a cycle, largest number of "
    "four cycles",
    float(max(len(cycle.unique()) for cycle in settled)),
    near=1,
    within=0,
    because="it jumps there less than once in 10⁷ steps, by the proposition below",
    kind="exact",
)

# %% [markdown]
# ## Too large for a mode
#
# Why does it leave a mode in {numref}`fig-cyclical-idea`? Not over the barrier.
#
# ```{prf:proposition} When a step leaves a mode
# :label: prop-cyclical-jump
#
# Assume that near a mean $\mu$ the energy is $|\theta - \mu|^2/2\sigma^2$, that the gradient's noise is $N(0, V)$ and known, $\hat B = \tfrac12\eta V \le 1$, and that a neighbour's force takes over where its mean is the nearer one.
#
# 1. With a constant step $\eta < 2\sigma^2$ each coordinate of $\theta - \mu$ has the stationary variance $s^2 = \sigma^2/(1 - \eta/2\sigma^2)$ as long as the chain stays; from $2\sigma^2$ on there is none.
# 2. With neighbours at the distance $2h$ in $d'$ directions, $P(|x| > h)$ small for $x \sim N(0, s^2)$, and $1 - \eta/\sigma^2$ not near $\pm1$, it leaves in a step with a probability of about $\tfrac12d'P(|x| > h)$.
# ```
#
# ```{prf:proof}
# A step is $x' = (1 - \eta/\sigma^2)x + N(0, 2\eta)$ in each coordinate, whatever $V$, so $s^2 = (1 - \eta/\sigma^2)^2s^2 + 2\eta$, which has a positive solution for $|1 - \eta/\sigma^2| < 1$ only.
# A chain that lands beyond $h$, on the side of a neighbour, feels the neighbour's force in the next step.
# There it is at the distance $2h - |x| < h$, from where one step with a factor not near $\pm1$ draws it in: it has left, and each visit beyond $h$ is one step long.
# Each of the $d'$ directions is one side of one coordinate, and has half of $P(|x| > h)$.
# ```
#
# Here $h = 1$, and on average over the 25 modes $d' = 3.2$.
# No energy barrier enters, only a distance over a width that the *step* has inflated: at $\eta = 0.043$ one step in 300 leaves, at $0.02$ one in 250,000.
# This is an error of the discretisation, put to use.


# %%
def leaving(eta, variance=0.03, h=1.0, directions=3.2):
    """The probability of the proposition, per step."""
    width = math.sqrt(variance / (1 - eta / (2 * variance)))
    return directions / 2 * math.erfc(h / width / math.sqrt(2))


exact_start = mixture.exact_samples(300, torch.Generator().manual_seed(0))
left_modes = {}
for eta in (0.04, 0.043, 0.047):
    run = sample(langevin(eta), noisy, exact_start, 800, warm_up=20, seed=1).samples
    _, mode = nearest(run)
    changes = (mode[1:] != mode[:-1]).double().mean(0)  # of each chain
    left_modes[eta] = float(changes.mean()), float(changes.std()) / 300**0.5

# %% tags=["hide-input"]
for eta, (value, _) in left_modes.items():
    claim(
        f"Steps that leave a mode at η = {eta:g}, over the proposition's number",
        value / leaving(eta),
        near=1,
        within=0.4 if eta == 0.04 else 0.3,
        because=(
            "longer runs give 0.98, 0.97 and 0.9; four standard errors here are 0.2, "
            "0.15 and 0.1"
        ),
    )
claim(
    "Steps until one leaves at η = 0.043, by the proposition",
    1 / leaving(0.043),
    near=295,
    within=1,
    because="1/(1.6 P(|x| > 1)), s² = 0.106",
)
claim(
    "The same at η = 0.02",
    1 / leaving(0.02),
    near=250_000,
    within=25_000,
    because="s² = 0.045",
)

# %% [markdown]
# The published schedules can now be read.
# SGLD has $\eta = 0.043$ for 500 steps, in which it leaves a mode about twice, and then falls as $0.043\,(t - 500)^{-0.55}$: it will see two or three modes and stay in one for ever.
# cSGLD begins every cycle at $0.07 > 2\sigma^2$: it is thrown out of every mode, all over the grid, for 400 steps.
# {numref}`fig-cyclical-constant` asks what constant steps do in 50,000 steps.
# More modes are found the larger the step, and wider ones.

# %%
stored = read_result(RESULTS / "modes.json")
methods = stored["methods"]
sweep = methods["SGLD, constant"]["tuning"]

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-cyclical-constant", "caption": "SGLD with a constant step, 50,000 steps. Left: probability of leaving a mode in a step, by the proposition (line) and measured (points, two standard errors). Middle: modes found of 25, mean of 20 chains. Right: variance about the nearest mean (points), that of a lone mode (line), and the true one (grey). The dotted line is 2σ²."}, "image": {"alt": "Three panels over the step size: a steeply rising curve with three points on it; the number of modes found rises from one to 25 at about 0.04; the variance rises from 0.03 to above 0.25."}}
figure, panels = plt.subplots(1, 3, figsize=(9, 3))
grid = torch.linspace(0.02, 0.0585, 80).tolist()
panels[0].semilogy(grid, [leaving(eta) for eta in grid], color=COLOURS["SGLD"])
for eta, (value, error) in left_modes.items():
    panels[0].errorbar(eta, value, 2 * error, fmt="o", ms=4, color="black")
etas = [row["settings"]["rate"] for row in sweep]
panels[1].plot(
    etas, [row["found"]["any"] for row in sweep], "o-", ms=4, color=COLOURS["SGLD"]
)
panels[1].axhline(25, color=TRUTH, zorder=0)
panels[2].plot(
    etas, [row["variance"] for row in sweep], "o", ms=4, color=COLOURS["SGLD"]
)
panels[2].plot(
    grid[:70],
    [0.03 / (1 - eta / 0.06) for eta in grid[:70]],
    color=COLOURS["SGLD"],
    lw=1,
)
panels[2].axhline(0.03, color=TRUTH, zorder=0)
for axes, label in zip(
    panels, ("probability of leaving", "modes found", "variance in a mode"), strict=True
):
    axes.axvline(0.06, color="black", ls=":", lw=1)
    axes.set(xlabel=r"$\eta$", ylabel=label)
figure.text(0.01, -0.04, who_ran(stored), size=6, color="0.4")
plt.show()

# %% tags=["hide-input"]
by_rate = {row["settings"]["rate"]: row for row in sweep}
claim(
    "Modes found by SGLD at the constant step 0.02, mean of 20 chains",
    by_rate[0.02]["found"]["any"],
    at_most=2,
    because="the stored result; it leaves once in 250,000 steps",
    kind="stored",
)
claim(
    "The same at 0.046",
    by_rate[0.046]["found"]["any"],
    at_least=24.5,
    because="the stored result; it leaves about 400 times",
    kind="stored",
)
claim(
    "Variance in a mode at 0.02",
    by_rate[0.02]["variance"],
    near=0.045,
    within=0.002,
    because="σ²/(1 − η/2σ²)",
    kind="stored",
)
claim(
    "Variance in a mode at 0.046",
    by_rate[0.046]["variance"],
    near=0.12,
    within=0.015,
    because="about σ²/(1 − η/2σ²) = 0.129",
    kind="stored",
)

# %% [markdown]
# ## The law at every place of a cycle
#
# A large constant step finds the modes and draws each with four times its variance.
# A cycle wants both, the large steps to find and the small ones to draw.
# Let the *place* of a draw be the number of steps of its cycle up to it. How right are draws at a place where $\eta$ has become small?
# On a Gaussian this can be said exactly, for a product of linear maps is linear.
#
# ```{prf:theorem} The law of a place
# :label: thm-cyclical-law
#
# Let $U(\theta) = \tfrac12\theta^\top A\theta$, let the gradient's noise be $N(0, V)$, and let step $j$ of a cycle be $z \leftarrow F_jz + N(0, Q_j)$, with $z = \theta$ for SGLD and $z = (\theta, r)$ for SGHMC.
# Let $F^{(p)} = F_p\cdots F_1F_\ell\cdots F_{p+1}$ be the cycle that ends after step $p$, and $Q^{(p)}$ the covariance of its noise.
# If the eigenvalues of $F_\ell\cdots F_1$ lie inside of the unit circle, then the draws after step $p$ have in the limit of many cycles the law $N(0, \Sigma^{(p)})$ with
#
# $$
# \Sigma^{(p)} = F^{(p)}\Sigma^{(p)}F^{(p)\top} + Q^{(p)}.
# $$ (eq-cyclical-law)
# ```
#
# ```{prf:proof}
# Seen once a cycle, after step $p$, the chain is $z' = F^{(p)}z + N(0, Q^{(p)})$, to which {prf:ref}`thm-lyapunov` applies.
# The product of the same maps in another cyclical order has the same eigenvalues.
# ```
#
# No single $F_j$ has to be stable. Our chain around a lone mode has $F_1 = 1 - 0.07/0.03 = -1.33$, and over the 1,667 steps of a cycle the product of all its factors is nearly zero.
# On the way the exact standard deviation grows to $10^{34}$. What holds the chain on the grid is that it is not alone: the other modes catch it.


# %%
def law_of_places(steps, places):
    """The stationary covariances after so many steps of a cycle."""
    cycle = steps[0]
    for step in steps[1:]:
        cycle = cycle.then(step)
    covariance, found = cycle.stationary_covariance(), {}
    for place, step in enumerate(steps, start=1):
        F, Q = step
        covariance = F @ covariance @ F.mT + Q
        if place in places:
            found[place] = covariance
    return found


one_mode = torch.tensor([[1 / 0.03]], dtype=torch.float64)
steps = [langevin_chain(one_mode, rate(j), 1.0, rate(j) / 2) for j in range(LENGTH)]
places = [LENGTH * (part + 1) // 20 for part in range(20)]  # ends of twentieths
laws = {place: float(law) for place, law in law_of_places(steps, places).items()}

cycles, chains = 3, 150
scattered = 20 * torch.rand(chains, 2, generator=torch.Generator().manual_seed(3)) - 10
twenty = Cyclical(langevin, HIGHEST, LENGTH, num_draws=20)
run = sample(twenty, noisy, scattered, 20 * cycles, seed=3)
distance, mode = nearest(run.samples)
squares = (distance.square() / 2).double().view(cycles, 20, chains).mean(0)
measured = squares.mean(1), squares.std(1) / chains**0.5

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-cyclical-places", "caption": "Variance about the nearest mean over a cycle of cSGLD. Points: 150 chains on the mixture, three cycles, two standard errors. Line: the exact law for a lone mode. Grey: the true variance. From 45 % of the cycle on, where the step is below 0.041, the two agree; before that chains are between modes."}, "image": {"alt": "Points that fall from 0.45 at the start of the cycle to 0.03 at its end; a line joins them from the middle on."}}
figure, axes = plt.subplots(figsize=(7, 3.4))
axes.errorbar(
    [place / LENGTH for place in places],
    measured[0],
    2 * measured[1],
    fmt="o",
    ms=4,
    color=COLOURS["SGLD"],
    label="mixture",
)
late = [place for place in places if laws[place] < 0.3]
axes.plot(
    [place / LENGTH for place in late],
    [laws[place] for place in late],
    color="black",
    lw=1,
    label="lone mode, exact",
)
axes.axhline(0.03, color=TRUTH, zorder=0)
axes.set(xlabel="place in the cycle", ylabel="variance", yscale="log")
axes.set_yticks([0.03, 0.1, 0.3], ["0.03", "0.1", "0.3"])
axes.yaxis.minorticks_off()
axes.legend()
plt.show()

# %% tags=["hide-input"]
for part in (9, 12, 15, 19):
    claim(
        f"Variance in a mode at {(part + 1) / 20:.0%} of a cycle, η = "
        f"{rate(places[part] - 1):.2g}",
        measured[0][part],
        near=round(laws[places[part]], 5),
        standard_error=measured[1][part],
        because="exact law of a place; 150 chains",
        kind="exact",
    )
claim(
    "Exact variance at the end of a cycle, over the true one",
    laws[LENGTH] / 0.03,
    near=1.0076,
    within=0.0005,
    because="the exact law: 0.8 % too wide",
    kind="exact",
)
claim(
    "Product of the factors of a cycle, its size",
    abs(float(torch.stack([step.transition for step in steps]).prod())),
    at_most=1e-30,
    because="each cycle forgets the one before",
    kind="exact",
)
claim(
    "Largest exact standard deviation in a cycle around a lone mode",
    max(laws.values()) ** 0.5,
    at_least=1e30,
    because="the exact law, with 412 steps above 2σ²",
    kind="exact",
)

# %% [markdown]
# At the end the step has vanished, and the law is still 0.8 % too wide: the last steps are too small to move the chain, and what is left is the bias of the place where it froze ({ref}`ex-cyclical-freeze`).
# By the same argument the last hundred draws of a cycle are nearly one draw.
#
# ## What cycles say about masses
#
# A chain that settles in one mode a cycle has, after $M$ cycles, drawn $M$ modes.
# If each is drawn as it should be, how far are the shares from the truth?
#
# ```{prf:proposition} $M$ choices among $m$ modes
# :label: prop-cyclical-choices
#
# Let $M$ independent choices fall on $m$ modes with probability $1/m$ each, $X_i$ times on mode $i$. The expected number of modes found is $m\bigl(1 - (1 - \tfrac1m)^M\bigr)$, and the expected total variation of the shares $X_i/M$ from $1/m$ is
#
# $$
# \frac m2\,E\Bigl|\frac{X_1}M - \frac1m\Bigr| \approx \sqrt{\frac{m - 1}{2\pi M}}, \qquad X_1 \sim \operatorname{Bin}(M, 1/m).
# $$ (eq-cyclical-choices)
# ```
#
# ```{prf:proof}
# Mode $i$ is missed with probability $(1 - 1/m)^M$. Total variation is half the sum of $|X_i/M - 1/m|$, and all summands have one law; its standard deviation is $\sqrt{(m - 1)/M}/m$, and the mean of $|x|$ is $\sqrt{2/\pi}$ of it for a normal $x$.
# ```


# %%
def choices(number, modes=25):
    """Expected number of modes found, and total variation."""
    counts = torch.arange(number + 1)
    mass = torch.from_numpy(stats.binom.pmf(counts.numpy(), number, 1 / modes))
    variation = modes / 2 * float((mass * (counts / number - 1 / modes).abs()).sum())
    return modes * (1 - (1 - 1 / modes) ** number), variation


rows = []
for M in (30, 120, 300, 1_200):
    found, variation = choices(M)
    rows.append([f"{M:,}", f"{found:.1f}", f"{variation:.3f}"])
show_table(["cycles", "modes found", "total variation"], rows)

# %% [markdown]
# Thirty cycles, one choice each, find 18 modes of 25, and not all of them.
# The authors' 25 of 25 with one chain are found because their program keeps every step of a cycle but the first 50, and so the long time above $2\sigma^2$ too, in which the chain is in all modes and in none.
#
# And are the modes chosen as they should be? Here all weights are equal, and the grid is nearly symmetric, so that hardly anything could go wrong.
# Let us put nine times the weight on the ten modes on the right, and start in exact draws, of which 86 % are on the right.

# %%
right_side = mixture.means[:, 0] > 0
others, repeated = mixture.means[~right_side], mixture.means[right_side].repeat(9, 1)
uneven = GaussianMixture(torch.cat([others, repeated]))
exact_share = 90 / (90 + 15)
begin = uneven.exact_samples(400, torch.Generator().manual_seed(1))
kernel = Cyclical(langevin, HIGHEST, cycle_length=400)
ends = sample(kernel, NoisyGradient(uneven, 1.0), begin, 2, seed=2).samples
share = (ends[:, :, 0] > 1).double()

# %% tags=["hide-input"]
claim(
    "Share of the exact draws on the right",
    (begin[:, 0] > 1).double().mean(),
    near=exact_share,
    within=4 * (exact_share * (1 - exact_share) / 400) ** 0.5,
    because="four standard errors",
)
claim(
    "Share on the right at the end of a cycle, mean of two",
    share.mean(),
    near=0.485,
    within=0.08,
    because=(
        "1,500 chains gave 0.485 ± 0.009; here four standard errors are 0.07. The law "
        "has 0.857"
    ),
)

# %% [markdown]
# One cycle or two are enough to bring 86 % down to about a half; ten of 25 modes, which are 40 %, would be no knowledge of the weights at all.
# It has to be so. A weight enters the gradient only where two modes overlap, near the middle between them, and moves that middle by $\sigma^2\ln9/2h = 0.03$; a chain that is thrown about by steps of the length 1 hardly feels it.
# Which mode a cycle ends in depends on the shapes of the surroundings, as with an optimiser that is started at random.
# More cycles do not mend this: they make the estimate of the wrong masses precise.
# That SGLD comes to the law is proved for steps that go to zero {cite:p}`teh2016`; with $\eta_0 > 2\sigma^2$ fixed the chain has a law of its own.
#
# Even with equal weights the masses are not equal. Modes inside of the grid are reached from four sides, and those at its corners from two.

# %% tags=["hide-input"]
pooled = torch.tensor(
    [run_["four chains"]["mass"] for run_ in methods["cSGLD, tuned"]["runs"]],
    dtype=torch.float64,
)
edge = mixture.means.abs().max(-1).values == 4
corner = mixture.means.abs().min(-1).values == 4
parts = (("the nine inner modes", ~edge, 9 / 25), ("the four corners", corner, 4 / 25))
over = {name: pooled[:, these].sum(1) / expected for name, these, expected in parts}
show_table(
    ["cSGLD, last fifths of 1,000 cycles, four chains", "share over the exact one"],
    [
        [name, f"{each.mean():.2f} ± {each.std() / len(each) ** 0.5:.2f}"]
        for name, each in over.items()
    ],
)
claim(
    "Share of the nine inner modes over the exact one",
    over["the nine inner modes"].mean(),
    at_least=1.1,
    because="the stored result of 20 seeds; its standard error is 0.01",
    kind="stored",
)
claim(
    "Share of the four corners over the exact one",
    over["the four corners"].mean(),
    at_most=0.85,
    because="the stored result; its standard error is 0.01",
    kind="stored",
)

# %% [markdown]
# ## The published experiment
#
# {cite:t}`zhang2020` report the mixture in two settings: one chain, and four chains of 50,000 draws each, where, as their Figure 2 has it, SGLD finds 4 of the 25 modes and cSGLD all of them.
# Their program for one chain is public ([ruqizhang/csgmcmc](https://github.com/ruqizhang/csgmcmc), `experiments/mog25.m`, `sgld.m`, `csgld.m`); for four chains there are the draws themselves (`psgld.mat`, `pcsgld.mat`).
# A regression of their increments on the exact gradient gives the step sizes of those draws: 0.043 for 500 steps and then falling with the exponent 0.55, and 0.07 falling over 1,667 steps. The settings are those of the program for one chain.
#
# What is a mode found? In their draws of SGLD's four chains four modes have more than 1 % of the draws, five more than 0.1 %, and eight have any within three standard deviations.
# In those of cSGLD it is 25 by all three counts. We give all three.
#
# `python -m experiments run modes --seeds 20` repeats both settings with 20 seeds, and adds what a reader would try next, all with 50,000 steps a chain:
#
# * SGLD restarted as often as cSGLD has cycles, each time from a new start with the first 1,667 steps of its published schedule;
# * each method once more with settings chosen by runs of other seeds: the constant step of SGLD, how long its first step is held, step and decay of SGHMC; the largest step, the number of cycles and the share of exploration of cSGLD and cSGHMC; and the same for cycles that each begin at a new start.
#
# They are chosen by the total variation over a hundred cells that have the probability 1/100 each, four rings about each mean. It sees both a wrong mass and a wrong width.


# %% tags=["hide-input"]
def mean_of(name, chains, *keys):
    """Mean over the seeds, and its standard error."""
    values = []
    for one in methods[name]["runs"]:
        value = one[chains]
        for key in keys:
            value = value[key]
        values.append(float(value))
    values = torch.tensor(values, dtype=torch.float64)
    return float(values.mean()), float(values.std()) / len(values) ** 0.5


def told(name, chains):
    found = (
        mean_of(name, chains, "found", share)[0] for share in ("any", "0.1 %", "1 %")
    )
    variations = (mean_of(name, chains, key)[0] for key in ("modes_tv", "cells_tv"))
    width = mean_of(name, chains, "variance")[0]
    counts, distances = (
        (f"{each:.1f}" for each in found),
        (f"{each:.3f}" for each in variations),
    )
    return [name, *counts, *distances, f"{width:.3f}"]


heads = ["", "any", "> 0.1 %", "> 1 %", "TV of modes", "TV of cells", "variance"]
for chains in ("one chain", "four chains"):
    show_table([chains, *heads[1:]], [told(name, chains) for name in methods])

# %% [markdown]
# Means of 20 seeds: modes found by three counts, total variation from equal masses and over a hundred cells, variance about the nearest mean (0.03). The settings that were chosen:

# %% tags=["hide-input"]
show_table(
    ["method", "settings"],
    [
        [
            name,
            ", ".join(f"{key} {value:g}" for key, value in content["settings"].items()),
        ]
        for name, content in methods.items()
        if content["tuning"]
    ],
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-cyclical-modes", "caption": "Twenty seeds with four chains. Left: modes with more than 1 % of the draws, a point for each seed. Right: total variation of the masses (dots) and over a hundred cells (rings). Grey lines: four modes, and the total variation of 120 independent choices."}, "image": {"alt": "Strip plots for nine methods. SGLD is at three or four modes; all others lie between 21 and 25. On the right SGLD is at 0.84; the smallest rings are those of methods with small steps at the end."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True)
for row, name in enumerate(methods):
    runs = [one["four chains"] for one in methods[name]["runs"]]
    jitter = torch.linspace(-0.25, 0.25, len(runs)) + row
    colour = COLOURS["SGHMC" if "HMC" in name else "SGLD"]
    left.plot([one["found"]["1 %"] for one in runs], jitter, "o", ms=3, color=colour)
    right.plot([one["modes_tv"] for one in runs], jitter, "o", ms=3, color=colour)
    right.plot(
        [one["cells_tv"] for one in runs], jitter, "o", ms=4, mfc="none", color=colour
    )
left.axvline(4, color=TRUTH, zorder=0)
right.axvline(choices(120)[1], color=TRUTH, zorder=0)
left.set(
    xlabel="modes with > 1 % of the draws",
    yticks=range(len(methods)),
    yticklabels=list(methods),
)
left.invert_yaxis()
right.set(xlabel="total variation", xscale="log", xlim=(0.05, 1))
right.set_xticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"])
right.xaxis.minorticks_off()
figure.text(0.01, -0.03, who_ran(stored), size=6, color="0.4")
plt.show()

# %% tags=["hide-input"]
claim(
    "Modes with more than 1 % of the draws, SGLD with four chains, mean of 20 seeds",
    mean_of("SGLD", "four chains", "found", "1 %")[0],
    near=4,
    within=0.4,
    because="the stored result; published: 4",
    kind="stored",
)
claim(
    "Modes with any draw within three standard deviations, the same",
    mean_of("SGLD", "four chains", "found", "any")[0],
    near=8,
    within=1.5,
    because="the stored result; the authors' draws: 8",
    kind="stored",
)
for chains in ("one chain", "four chains"):
    claim(
        f"Fewest modes with any draw, cSGLD with the published settings, {chains}",
        min(
            one["found"]["any"]
            for one in (run_[chains] for run_ in methods["cSGLD"]["runs"])
        ),
        near=25,
        within=0,
        because="the stored result; published: all",
        kind="stored",
    )
claim(
    "Variance in a mode, the same, four chains",
    mean_of("cSGLD", "four chains", "variance")[0],
    at_least=0.12,
    because=(
        "the stored result: five times too wide, for most steps kept are large ones"
    ),
    kind="stored",
)
claim(
    "Modes with any draw, SGLD restarted, four chains",
    mean_of("SGLD, restarted", "four chains", "found", "any")[0],
    near=25,
    within=0.2,
    because="the stored result",
    kind="stored",
)
claim(
    "Total variation over the cells, cSGLD with the published settings less SGLD "
    "restarted, four chains",
    mean_of("cSGLD", "four chains", "cells_tv")[0]
    - mean_of("SGLD, restarted", "four chains", "cells_tv")[0],
    at_least=0.1,
    because="the stored result; standard errors are below 0.01",
    kind="stored",
)


def tuning_of(name, **settings):
    return next(row for row in methods[name]["tuning"] if row["settings"] == settings)


for number in (100, 300, 1_000):
    alike = {"rate": 0.07, "cycles": number, "exploration": 0.8}
    claim(
        f"Total variation over the cells, {number} cycles of cSGLD less fresh cycles, "
        "the same settings",
        tuning_of("cSGLD, tuned", **alike)["cells_tv"]
        - tuning_of("fresh cycles, tuned", **alike)["cells_tv"],
        near=0,
        within=0.03,
        because="the stored result; 20 chains each, with a standard error below 0.01",
        kind="stored",
    )
for name in ("SGLD, constant", "SGLD, tuned", "SGHMC"):
    claim(
        f"Total variation over the cells, {name}, over that of tuned cSGLD, four "
        "chains",
        mean_of(name, "four chains", "cells_tv")[0]
        / mean_of("cSGLD, tuned", "four chains", "cells_tv")[0],
        at_least=2,
        because="the stored result",
        kind="stored",
    )
claim(
    "Total variation over the cells, tuned cSGHMC over tuned cSGLD, four chains",
    mean_of("cSGHMC, tuned", "four chains", "cells_tv")[0]
    / mean_of("cSGLD, tuned", "four chains", "cells_tv")[0],
    at_most=0.95,
    because=(
        "the stored result: 0.116 over 0.138, each with a standard error below 0.005"
    ),
    kind="stored",
)
claim(
    "Total variation of the masses, SGHMC at its best constant step over tuned cSGLD, "
    "four chains",
    mean_of("SGHMC", "four chains", "modes_tv")[0]
    / mean_of("cSGLD, tuned", "four chains", "modes_tv")[0],
    at_most=0.9,
    because="the stored result: 0.09 over 0.13",
    kind="stored",
)
number = 4 * int(methods["cSGLD, tuned"]["settings"]["cycles"])
claim(
    f"Total variation of the masses of tuned cSGLD, over that of {number:,} even "
    "choices",
    mean_of("cSGLD, tuned", "four chains", "modes_tv")[0] / choices(number)[1],
    at_least=3,
    because="the stored result: the choices are not even",
    kind="stored",
)
few = tuning_of("cSGLD, tuned", rate=0.07, cycles=30, exploration=0.8)
claim(
    "Modes found by one chain of 30 cycles that keeps their last fifths only",
    few["found"]["any"],
    near=choices(30)[0],
    within=1.5,
    because=(
        "the proposition; a chain's number has a standard deviation of 1.4, and there "
        "are 20 chains"
    ),
    kind="stored",
)

# %% [markdown]
# The published finding is reproduced. SGLD's four chains end in four modes, or in three where two of them meet, and cSGLD reaches all 25 with one chain or four, whatever the seed.
# The rest of the two tables, and {numref}`fig-cyclical-modes`, is less simple.
#
# * *Reaching is not sampling.* With what the program keeps, the variance in cSGLD's modes is five times too large, because most of the kept steps are large. (It does not show in their figures: the notebook that draws them, `plot_density.ipynb`, draws the target with $\sqrt{0.03} = 0.17$ for its variance, nearly six times too large itself.) Keeping the last half of each cycle mends that, and then 30 cycles find 17 to 18 modes, as {prf:ref}`prop-cyclical-choices` says.
# * *The baseline was a weak one.* SGLD's own schedule, restarted 30 times at no cost, finds 23 modes with one chain and all with four, and its draws are nearer to the law over the cells than those of cSGLD as published, though its masses are farther off (0.16 against 0.14 with four chains).
# * *A cycle is a restart.* Let each cycle begin at a start of its own instead of where the last one ended, with the same settings: for 100, 300 and 1,000 cycles no difference can be seen. A step above $2\sigma^2$ forgets where it began; that is what it is for. (In the tables fresh cycles are farther from the law than tuned cSGLD; but they were not offered the step 0.06, which cSGLD took.)
# * *Cycles do help.* Tuned alike, a constant step, a longer first phase, and SGHMC at its best constant step are more than twice as far from the law: they cannot have large steps and small ones at once. cSGHMC comes nearest.
# * *More cycles are better until the masses stop them.* Tuning takes the most that it is offered, and the total variation of the masses stays several times that of as many even choices. SGHMC at a constant step, which draws every mode with four times its variance, has better masses.
#
# ## Momentum while the step falls
#
# In cSGHMC the state is $(\theta, r)$, and SGHMC leaves $e^{-U(\theta) - r^2/2}$ invariant, up to its bias, at *any* step: what is handed from a step to the next, smaller one is $r$.
# Programs that come from optimisation keep the velocity $v = \varepsilon r$ instead, as `torch.optim.SGD` does, and as the authors' `experiments/cifar_csghmc.py` does.
#
# ```{prf:proposition} Keeping the velocity heats
# :label: prop-cyclical-velocity
#
# To keep $v = \varepsilon r$ while the step goes from $\varepsilon_k$ to $\varepsilon_{k+1}$ is to multiply $r$ by $\varepsilon_k/\varepsilon_{k+1}$.
# With $n$ steps left in a cycle of {eq}`eq-cyclical-schedule`, $1 \ll n \ll \ell$, the momentum's variance without a force would settle at
#
# $$
# \frac{2\alpha}{1 - (1 - \alpha)^2\bigl(\tfrac n{n-1}\bigr)^2} \approx \frac{1}{1 - \dfrac1{\alpha n}}
# $$ (eq-cyclical-heat)
#
# for small $\alpha$ and $n > 1/\alpha$; with fewer steps left there is no such value, and it grows at every step.
# ```
#
# ```{prf:proof}
# $v$ is the same before and after, so $r = v/\varepsilon$ grows by that factor. Near the end $\varepsilon = \sqrt{\eta_0}\cos(\pi j/2\ell)$ is proportional to $n = \ell - j$, and the factor is $n/(n - 1)$.
# Then $E[r^2] \leftarrow (1 - \alpha)^2(n/(n-1))^2E[r^2] + 2\alpha$; put $1 - 2\alpha$ and $1 + 2/n$ for the squares.
# ```
#
# Does the position feel it? With $n^*$ steps left it freezes, as in {ref}`ex-cyclical-freeze`, with $\eta/\alpha$ in the place of $\eta$: for $U = \tfrac12\theta^2$ at $n^* = (12\alpha\ell^2/\pi^2\eta_0)^{1/3}$.
# It keeps about the temperature of that place, $1/(1 - 1/\alpha n^*)$, which for $\alpha = \eta_0 = 0.1$ is 1.77 in cycles of 100 steps, and 1.10 in cycles of 1,000.
# The exact law has 1.77 and 1.17.

# %%
one = torch.eye(1, dtype=torch.float64)


def widths(decay, length, keep_velocity):
    """The exact variance of the position at each place of a cycle."""
    sizes = [math.sqrt(rate(j, length, 0.1)) for j in range(length)]
    steps = [linear_chain(flows.sghmc(size, decay / size), one) for size in sizes]
    if keep_velocity:
        still = torch.zeros(2, 2, dtype=torch.float64)
        for j, step in enumerate(steps):
            growth = sizes[j] / sizes[(j + 1) % length]
            scale = torch.diag(torch.tensor([1.0, growth], dtype=torch.float64))
            steps[j] = step.then(LinearChain(scale, still))
    found = law_of_places(steps, range(1, length + 1))
    return [float(found[place][0, 0]) for place in range(1, length + 1)]


lengths = (100, 1_000)
kept = {}
for decay, length, what in itertools.product((0.1, 0.9), lengths, (False, True)):
    kept[decay, length, what] = widths(decay, length, what)

# %% tags=["hide-input"]
show_table(
    ["variance at the end of a cycle", *(f"{length:,} steps" for length in lengths)],
    [
        [
            f"α = {decay:g}, {'v' if what else 'r'} kept",
            *(f"{kept[decay, length, what][-1]:.3f}" for length in lengths),
        ]
        for decay in (0.1, 0.9)
        for what in (False, True)
    ],
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-cyclical-velocity", "caption": "Exact variance of θ over a cycle of 100 steps of cSGHMC on a standard Gaussian, α = 0.1: with the momentum handed on (solid) and with the velocity (dashed). The truth is 1 (grey)."}, "image": {"alt": "The solid line stays near one; the dashed one swings down to below one half and up to 1.8."}}
figure, axes = plt.subplots(figsize=(7, 3))
for what, style in ((False, "-"), (True, "--")):
    axes.plot(
        range(1, 101),
        kept[0.1, 100, what],
        style,
        color=COLOURS["SGHMC"],
        label="$v$ kept" if what else "$r$ kept",
    )
axes.axhline(1, color=TRUTH, zorder=0)
axes.set(xlabel="step of the cycle", ylabel="variance")
axes.legend()
plt.show()

# %% tags=["hide-input"]
claim(
    "Variance at the end, α = 0.1 and 100 steps, r kept",
    kept[0.1, 100, False][-1],
    near=0.975,
    within=0.001,
    because="exact law",
    kind="exact",
)
claim(
    "The same with v kept",
    kept[0.1, 100, True][-1],
    near=1.767,
    within=0.001,
    because="exact law",
    kind="exact",
)
claim(
    "With v kept and 1,000 steps",
    kept[0.1, 1_000, True][-1],
    near=1.165,
    within=0.001,
    because="exact law",
    kind="exact",
)
claim(
    "With v kept, 1,000 steps and α = 0.9",
    kept[0.9, 1_000, True][-1],
    at_most=1.01,
    because="exact law: 1/α is one step",
    kind="exact",
)
drawn = sample(
    Cyclical(lambda rate: SGHMC.from_learning_rate(rate, 0.1), 0.1, 100),
    NoisyGradient(GaussianMixture(torch.zeros(1, 1), 1.0), 0.0),
    torch.zeros(1_000, 1),
    num_samples=10,
    warm_up=5,
    seed=1,
)
value, error = drawn.mean_and_standard_error(lambda x: x**2)
claim(
    "Variance of the package's draws at the end of a cycle",
    value,
    near=round(kept[0.1, 100, False][-1], 4),
    standard_error=error,
    because="exact law with r kept; 1,000 chains",
    kind="exact",
)

# %% [markdown]
# For the authors' network this is of no weight: their program's default is $\alpha = 0.9$, and a cycle has some 39,000 steps.
# With the usual momentum of 0.9, which is $\alpha = 0.1$, and short cycles it is.
#
# ## What the program for CIFAR-10 samples
#
# The same file settles two more questions that the schedule leaves open, and one should know the answers before reading its results.
#
# * *Temperature.* The gradient is that of the *mean* loss, $U/N$ with $N = 50{,}000$, and the velocity gets noise of variance $2\,lr\,\alpha\,T/N$, which is right for $e^{-U/T}$ ({ref}`ex-cyclical-temperature`). `--temperature` is documented as the "temperature in the posterior", and its default is $T = 1/50{,}000$. So by default it samples a posterior that is colder by a factor of 50,000, all but an optimum; $T = 1$ is one option away.
# * *Exploration.* Noise is added in the last 5 of the 50 epochs of a cycle only, and three networks are kept, after the last three epochs. There are 4 cycles with $\eta_0 = 0.5$ for the mean loss, weight decay $5\cdot10^{-4}$, and images are shifted and mirrored at random, so that the likelihood is not that of 50,000 independent examples.
#
# An early version scaled the noise wrongly; a user reported it, and the authors mended it in March 2019 ([issue 1](https://github.com/ruqizhang/csgmcmc/issues/1)).
# A posterior so cold is no fault of the schedule, and {cite:t}`wenzel2020` found at the same time that cold posteriors of such networks predict better. But results at this temperature say little about sampling *the* posterior.

# %%
# The program's step for U = ½Nθ², in its own units: gradient of U/N, noise by T.
N, lr, decay = 50_000, 0.1, 0.9


def program(temperature):
    """θ ← θ + v after v ← (1 − α)v − lr·∇U/N + N(0, 2·lr·α·T/N)."""
    kick = torch.tensor([[1.0, 0.0], [-lr, 1 - decay]], dtype=torch.float64)
    variances = torch.tensor([0.0, 2 * lr * decay * temperature / N])
    noise = torch.diag(variances.double())
    drift = torch.tensor([[1.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    chain = LinearChain(kick, noise).then(LinearChain(drift, torch.zeros_like(noise)))
    return float(chain.stationary_covariance()[0, 0]) * N  # over the posterior's 1/N


# %% tags=["hide-input"]
claim(
    "Variance over the posterior's, the program's step with T = 1",
    program(1.0),
    near=1,
    within=0.06,
    because="exact law; lr/(4 − 2α) = 0.045 is the step's own bias",
    kind="exact",
)
claim(
    "The same by default, T = 1/50,000, times 50,000",
    program(1 / N) * N,
    near=1,
    within=0.06,
    because="exact law, which is proportional to T",
    kind="exact",
)

# %% [markdown]
# ## A network on digits
#
# Does it matter for a network? A small one first: 784–50–10 on 4,000 digits, 40 passes in minibatches of 500, the posterior at $T = 1$.
# SGLD and SGHMC take 20 passes of burn-in and keep 20 networks; cSGLD and cSGHMC take 5 cycles, explore at temperature 0 for four fifths of each, and keep 4 networks a cycle; the snapshots are the same without any noise.

# %%
train, test = digits()
module = multilayer_perceptron([784, 50, 10])
network = NetworkPosterior(module, *train, batch_size=500)
STEPS_OF_PASS = 8


def momentum(rate, **settings):
    return SGHMC.from_learning_rate(rate, 0.1, **settings)


def chain(make, rate, seed):
    """Burn-in for half of 40 passes, then a network a pass."""
    start = network.initial_position(1, torch.Generator().manual_seed(seed))
    schedule = dict(warm_up=20 * STEPS_OF_PASS, thinning=STEPS_OF_PASS, seed=seed)
    return sample(make(rate / 4_000), network, start, 20, **schedule)


def cycle(make, rate, seed, **settings):
    """Five cycles of eight passes."""
    start = network.initial_position(1, torch.Generator().manual_seed(seed))
    sampler, cold = partial(make, **settings), partial(make, temperature=0.0)
    length = 8 * STEPS_OF_PASS
    kernel = Cyclical(sampler, rate / 4_000, length, 4, 0.8, explorer=cold)
    return sample(kernel, network, start, 20, seed=seed)


ways = {
    "SGLD": lambda seed: chain(SGLD, 1.0, seed),
    "cSGLD": lambda seed: cycle(SGLD, 1.0, seed),
    "snapshots of SGD": lambda seed: cycle(SGLD, 1.0, seed, temperature=0.0),
    "SGHMC": lambda seed: chain(momentum, 0.4, seed),
    "cSGHMC": lambda seed: cycle(momentum, 0.5, seed),
    "snapshots with momentum": lambda seed: cycle(momentum, 0.5, seed, temperature=0.0),
}
live = {}
for name, way in ways.items():
    scores = []
    for seed in range(2):
        each = network.predict(way(seed).samples[:, 0], test.inputs).double()
        average = each.mean(0)
        single = sum(log_score(one_, test.targets) for one_ in each) / len(each)
        together = error_rate(average, test.targets), log_score(average, test.targets)
        scores.append([*together, single])
    live[name] = torch.tensor(scores, dtype=torch.float64)

# %%
show_table(
    ["method", "test error", "log loss", "of single networks"],
    [
        [name, f"{value[0]:.1%}", f"{value[1]:.2f}", f"{value[2]:.2f}"]
        for name, value in ((name, scores.mean(0)) for name, scores in live.items())
    ],
)

# %% tags=["hide-input"]
for cyclic, plain in (("cSGLD", "SGLD"), ("cSGHMC", "SGHMC")):
    claim(
        f"Log loss of single networks, {cyclic} over {plain}",
        float(live[cyclic][:, 2].mean() / live[plain][:, 2].mean()),
        at_most=0.9,
        because=(
            "at the end of a cycle the step, and so the heat of the minibatches, is "
            "small; with one seed it was 0.7 and 0.4"
        ),
    )

# %% [markdown]
# Two seeds and a thousand test digits are too few for more than this: a single network of a cycle is better than one of a chain at a constant step, because it is taken where the step is small.
# The stored result of {doc}`/book/bayesian_networks/neighbours` has five seeds, 50,000 digits, the settings of each method chosen on other digits, and both kinds of chain with the same 60 passes.

# %%
mnist = read_result(RESULTS / "neighbours.json")["methods"]


def errors_of(results, name):
    runs = results[name]["runs"]
    return torch.tensor([one["scores"]["error"] for one in runs], dtype=torch.float64)


def paired(results, first, second):
    """Mean difference in percentage points, its standard error, and p."""
    difference = 100 * (errors_of(results, first) - errors_of(results, second))
    error = float(difference.std()) / len(difference) ** 0.5
    p = stats.ttest_1samp(difference, 0).pvalue
    return float(difference.mean()), error, float(p)


PAIRS = (
    ("cSGLD", "SGLD"),
    ("cSGHMC", "SGHMC"),
    ("cSGLD", "snapshots of SGD"),
    ("cSGHMC", "snapshots with momentum"),
    ("snapshots of SGD", "SGD"),
    ("snapshots with momentum", "SGD with momentum"),
    ("SGHMC", "SGLD"),
    ("cSGHMC", "cSGLD"),
)


def row(results, first, second):
    mean, error, p = paired(results, first, second)
    return [f"{first} less {second}", f"{mean:+.2f} ± {error:.2f}", f"{p:.3f}"]


rows = [row(mnist, *pair) for pair in PAIRS]
show_table(["MNIST, error in %", "difference", "p"], rows)

# %% [markdown]
# Differences of the test error, paired by seeds, with standard errors and the $p$ of a $t$-test.

# %% tags=["hide-input"]
for first, second, bound in (("cSGLD", "SGLD", -0.3), ("cSGHMC", "SGHMC", -0.3)):
    claim(
        f"Error on MNIST, {first} less {second}, percentage points",
        paired(mnist, first, second)[0],
        at_most=bound,
        because="the stored result of five seeds; the standard error is 0.05 to 0.1",
        kind="stored",
    )
claim(
    "Error on MNIST, SGHMC at T = 0.01 and a constant step less SGHMC, percentage "
    "points",
    paired(mnist, "SGHMC, cold", "SGHMC")[0],
    at_most=-0.3,
    because="the stored result of five seeds; its rate is 0.15, that of SGHMC 0.4",
    kind="stored",
)
for first, second in (("cSGLD", "snapshots of SGD"), ("cSGHMC", "SGD with momentum")):
    claim(
        f"Error on MNIST, {first} less {second}, percentage points",
        paired(mnist, first, second)[0],
        near=0,
        within=0.15,
        because="the stored result of five seeds",
        kind="stored",
    )

# %% [markdown]
# At $T = 1$ cycles take half a percentage point off the error of a chain with a constant step. But SGHMC at a constant step, a smaller one, gains as much when it is cold, and a cycle is cold for four fifths: it need not be the cycles that help.
# But what they reach is the error of the descent inside of them. cSGLD is where snapshots of SGD are, and cSGHMC where one descent with momentum is; the noise of the last fifth of a cycle, where the step is nearly nothing, adds little.
#
# ## The table for CIFAR-10
#
# For CIFAR-10 and a ResNet-18 {cite:t}`zhang2020` report the test errors of eight methods, in the table below. Four stand with their spread, in %, in the README of their program: SGLD $5.20 \pm 0.06$, cSGLD $4.29 \pm 0.06$, SGHMC $4.93 \pm 0.1$, cSGHMC $4.27 \pm 0.03$.
# Two cores do not train that network eight times with five seeds.
# What they can do is ask whether the *order* holds for a smaller one: `python -m experiments run ordering` takes 20,000 images averaged to $16 \times 16$ pixels, two convolutions, 40 passes, or *rounds*, for each method, six cycles where there are cycles, the settings chosen on 5,000 other images by runs of 13 rounds.
# The samplers are run at $T = 1$, and cold, at the $T = 1/N$ of the authors' default.

# %%
published = {
    "SGD": 5.29,
    "SGD with momentum": 5.17,
    "snapshots of SGD": 4.46,
    "snapshots with momentum": 4.39,
    "SGLD": 5.20,
    "cSGLD": 4.29,
    "SGHMC": 4.93,
    "cSGHMC": 4.27,
}
stored_ordering = read_result(RESULTS / "ordering.json")
ordering = stored_ordering["methods"]


def told_errors(name):
    if name not in ordering:
        return ""
    each = 100 * errors_of(ordering, name)
    return f"{each.mean():.2f} ± {each.std() / len(each) ** 0.5:.2f}"


# %% tags=["hide-input"]
show_table(
    ["method", "published", "ours, T = 1", "ours, cold"],
    [
        [name, f"{error:.2f}", told_errors(name), told_errors(f"{name}, cold")]
        for name, error in published.items()
    ],
)


# %% tags=["hide-input"]
def cold(name):
    return f"{name}, cold" if f"{name}, cold" in ordering else name


def order_row(first, second):
    theirs = published[first] - published[second]
    entries = [f"{first} less {second}", f"{theirs:+.2f}"]
    for one, other in ((first, second), (cold(first), cold(second))):
        mean, error, p = paired(ordering, one, other)
        entries.append(f"{mean:+.2f} ± {error:.2f} (p {p:.3f})")
    return entries


show_table(
    ["error in %", "published", "ours, T = 1", "ours, cold"],
    [order_row(*pair) for pair in PAIRS],
)
correlations = {}
for temperature, named in (("T = 1", lambda name: name), ("cold", cold)):
    ours = [float(errors_of(ordering, named(name)).mean()) for name in published]
    correlations[temperature] = stats.spearmanr(
        list(published.values()), ours
    ).statistic
show_table(
    ["", *correlations],
    [
        [
            "rank correlation with the published errors",
            *(f"{value:.2f}" for value in correlations.values()),
        ]
    ],
)
print(who_ran(stored_ordering))

# %% tags=["hide-input"]
claim(
    "Error of snapshots of SGD less SGD, 40 rounds, percentage points",
    paired(ordering, "snapshots of SGD", "SGD")[0],
    at_least=1,
    because="the stored result of five seeds",
    kind="stored",
)
claim(
    "Error of cSGHMC less SGHMC, the same, T = 1",
    paired(ordering, "cSGHMC", "SGHMC")[0],
    at_most=-0.5,
    because="the stored result of five seeds",
    kind="stored",
)
claim(
    "Error of cSGLD less SGLD, the same, T = 1",
    paired(ordering, "cSGLD", "SGLD")[0],
    at_least=1,
    because="the stored result of five seeds",
    kind="stored",
)
claim(
    "Error of SGHMC less SGLD, the same, T = 1",
    paired(ordering, "SGHMC", "SGLD")[0],
    near=0,
    within=0.5,
    because="the stored result of five seeds: no difference",
    kind="stored",
)
claim(
    "Error of cSGHMC less cSGLD, the same, T = 1",
    paired(ordering, "cSGHMC", "cSGLD")[0],
    at_most=-1,
    because="the stored result of five seeds",
    kind="stored",
)
for temperature, value in correlations.items():
    claim(
        f"Rank correlation of our errors with the published ones, {temperature}",
        value,
        at_most=0.5,
        because=(
            "the stored result of five seeds; eight methods in the same order would "
            "give 1"
        ),
        kind="stored",
    )

# %% [markdown]
# At this scale the order does not hold: cycles make SGD worse, and SGLD too. The budget is the likely reason. A cycle has 7 rounds here and 50 epochs there, and 7 rounds after its rate was raised a network is not where one descent of 40 rounds ends.
# Nor is the choice of settings the same to all: a cycle has two rounds in it, and SGLD and every method with momentum took the smallest rate that they were offered.
# What holds is that cSGHMC is better than SGHMC at a constant step. Momentum is worth more than five points between cycles, where it is worth 0.02 in the source, and nothing between the chains at $T = 1$. These differences are about how far the training comes.
# It may still hold at the scale of the source, which we cannot reach. There too a part of the difference belongs to averaging: their program for predictions takes the mean of twelve networks ([cifar_ensemble.py](https://github.com/ruqizhang/csgmcmc)), and a plain descent has one.
#
# ## In practice
#
# * Compare $\eta_0$ with $2/a$ for the largest curvature $a$ that you know. Well below it a cycle is SGLD with falling steps, and finds nothing that those do not; above it the chain leaves, to other modes if there are any to catch it, and to infinity if there are none.
# * Keep draws from the end of a cycle only, where the law of a place is narrow enough; {eq}`eq-cyclical-law` says how narrow. One draw a cycle or a few are all that there is.
# * Report the number of cycles. With $M$ of them the share of a mode has a standard error of $\sqrt{p(1 - p)/M}$, whatever the number of draws.
# * Do not read masses off the cycles. For an average of predictions over modes, as in an ensemble, that may not matter; for probabilities of modes it does.
# * Start a fresh chain instead of a new cycle where that is cheap, and compare. On this chapter's mixture it is as good.
# * Hand on $r$, not $v$, unless $\alpha$ is near 1 or cycles are very long.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-cyclical-freeze
#
# Near the end of a cycle, with $n$ steps left, $\eta \approx \eta_0\pi^2n^2/4\ell^2$. When does the chain no longer follow, and which excess of the variance is left there? How does it depend on $\ell$?
# ```
#
# ```{solution} ex-cyclical-freeze
# :class: dropdown
#
# The steps that are left shrink a deviation by $\exp(-\sum\eta/\sigma^2)$, and $\sum\eta \approx \eta_0\pi^2n^3/12\ell^2$. It is $\sigma^2$ at $n^* = (12\sigma^2\ell^2/\pi^2\eta_0)^{1/3}$; here 113.
# The step there is $\eta^* = \eta_0\pi^2n^{*2}/4\ell^2$, which is $8\cdot10^{-4}$, and the excess at that step $\eta^*/2\sigma^2$ is 1.3 %; the exact law has 0.8 %, for the last steps do a little still.
# As $n^{*2}/\ell^2 \propto \ell^{-2/3}$, so does the excess: eight times as long a cycle leaves a quarter of it.
# ```
#
# ```{exercise}
# :label: ex-cyclical-coupons
#
# How many cycles find all $m$ modes, if each chooses one evenly? And how many to know each mass to 10 %?
# ```
#
# ```{solution} ex-cyclical-coupons
# :class: dropdown
#
# With $i$ modes still missing the next cycle finds one of them with probability $i/m$, so it takes $m\sum_{i=1}^m1/i$ cycles on average, 95 for $m = 25$.
# The relative standard error of a share is $\sqrt{(m - 1)/M}$, which is 0.1 for $M = 2{,}400$ cycles.
# Finding is cheap, weighing is not.
# ```
#
# ```{exercise}
# :label: ex-cyclical-temperature
#
# A program follows $g = \nabla U/N$ with the learning rate $lr$, $v \leftarrow (1 - \alpha)v - lr\,g + N(0, s^2)$, $\theta \leftarrow \theta + v$. Which $s^2$ samples $e^{-U/T}$?
# ```
#
# ```{solution} ex-cyclical-temperature
# :class: dropdown
#
# In the learning-rate form the gradient is that of $U$, so $\eta = lr/N$, and the noise is $2\alpha\eta T = 2\,lr\,\alpha\,T/N$.
# Left out altogether it is $T = 0$; with $T = 1/N$ its standard deviation is $\sqrt N$ times smaller than the posterior asks for, 224 times for CIFAR-10.
# ```
#
# ```{exercise}
# :label: ex-cyclical-weights
#
# With falling steps draws are weighted by $\eta_t$ ({eq}`eq-weighted`). Which share of the weight have the first 500 of the 50,000 steps of the published SGLD, and what would that do to the number of modes found?
# ```
#
# ```{solution} ex-cyclical-weights
# :class: dropdown
#
# They have $500 \cdot 0.043 = 21.5$, and the others about $0.043 \cdot 49{,}500^{0.45}/0.45 = 12.4$, so that the first hundredth of the steps has almost two thirds of the weight.
# Its two or three modes would then all have a large share, each of them too wide. Weights do not find modes.
# ```
#
# ## Further reading
#
# {cite:t}`zhang2020` for the method and its theory; {cite:t}`huang2017` and {cite:t}`loshchilov2017` for the same wave in optimisation; {cite:t}`wenzel2020` and {cite:t}`izmailov2021` for what the temperature of a network's posterior does.
