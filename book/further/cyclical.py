# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Cyclical step sizes
#
# ```{div} page-head
# Level: second course · Reading: about 77 minutes, without the exercises · Running: about 15 seconds
# ```
#
# ```{index} ! learning rate schedule, ! cosine annealing, ! cyclical learning rate
# ```
#
# A step size that falls from large to almost nothing, again and again, leads a chain from mode to mode; this chapter says why, what is right about the draws, and what is not.
# Networks have a chapter of their own, {doc}`/book/studies/cyclical_networks`.
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
# **You will need** {doc}`/book/tutorial/langevin` and {doc}`/book/tutorial/sghmc`.

# %%
import itertools
import math
import warnings

import matplotlib.pyplot as plt
import torch

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, plot_contours, show_frames, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result, who_ran
from sgmc import sample
from sgmc.kernels import SGHMC, SGLD
from sgmc.other_kernels import Cyclical
from sgmc.potentials import Potential
from sgmc.splittings import LinearChain, flows, langevin_chain, linear_chain
from sgmc.targets import GaussianMixture, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# That chains which sit in different modes disagree is what this chapter is about.
warnings.filterwarnings("ignore", message=".*do not agree")

# %% [markdown]
# ## A schedule with two stages
#
# Many posteriors have several *modes*, places of high density with little between them.
# A chain with small steps draws well within a mode, but it stays in the mode where it is.
# A chain with large steps gets about, but draws every mode too wide ({doc}`/book/tutorial/langevin`).
# {cite:t}`zhang2020` take turns: they let the step fall, raise it again, and go on from where the chain is.
#
# ```{prf:definition} Cyclical step size
# :label: def-cyclical-schedule
#
# In $K$ steps with $M$ cycles of $\ell = \lceil K/M\rceil$ steps each, and $\eta_0$ the largest step, the step number $k = 1, \dots, K$ has the size
#
# $$
# \begin{aligned}
# \eta_k &= \frac{\eta_0}2\Bigl[\cos\frac{\pi j}\ell + 1\Bigr], \\
# j &= \operatorname{mod}(k - 1, \ell).
# \end{aligned}
# $$ (eq-cyclical-schedule)
# ```
#
# In a cycle the size starts at $\eta_0$, falls along half a wave of the cosine to almost nothing, and jumps back.
# (The authors write $\alpha_k$ and $\alpha_0$; here $\alpha$ is the {term}`momentum decay`.)
# Snapshot ensembles ({doc}`/book/studies/neighbours`) use the same wave for descent without noise.
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
# One of its steps takes all steps of the inner kernel up to the next draw; `_kernel_of` makes the inner kernel with the step size that belongs to a place in the cycle.
#
# ```{literalinclude} ../../sgmc/other_kernels/cyclical.py
# :language: python
# :start-at: cycle, number = divmod
# :end-at: return CyclicalState(inner, state.num_draws
# :dedent: 8
# ```
#
# The target of this chapter is theirs, and so is the schedule: 30 cycles in 50,000 steps, hence $\ell = 1{,}667$, and $\eta_0 = 0.07$.
# There are 25 Gaussians with means on the grid $\{-4, -2, 0, 2, 4\}^2$, equal weights, and the variance $\sigma^2 = 0.03$ in every direction.
# A mode is $0.17$ wide and its neighbours are 2 away.
# Between two of them the energy rises by about 16, so that a diffusion with the right law hardly ever crosses: the time it takes grows like $e^{16}$, which is nine million.
# The gradient is seen through noise $N(0, 1)$, and $\hat B = \tfrac12\eta V$ takes that out of what is injected ({prf:ref}`alg-sgld`): at every step size up to 2 both kinds of noise together are $N(0, 2\eta)$.

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


# %% mystnb={"figure": {"caption": "Two cycles, to be played. Left: the step size, where the chain is in the schedule, and $2\\sigma^2$ (dotted), of which the next section speaks. Right: the chain's last 120 steps (dots) among the 25 modes (rings of two standard deviations); in orange the ends of the cycles so far.", "name": "fig-cyclical-film"}} tags=["hide-input"]
def frames(number=16, cycles=2):
    """One picture after every eighth of a cycle."""
    long = cycles * LENGTH
    for frame in range(1, number + 1):
        now = frame * long // number
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(4.6, 2.4), width_ratios=[1, 1.15]
        )
        left.plot([rate(step) for step in range(long)], color=TRUTH, lw=1)
        left.axhline(0.06, color="black", ls=":", lw=1)
        left.plot(now - 1, rate(now - 1), "o", ms=7, color=COLOURS["SGLD"])
        left.set_xlabel("step $k$", fontsize=8)
        left.set_ylabel(r"$\eta_k$", fontsize=8)
        left.set(xticks=[0, LENGTH, long], yticks=[0, 0.02, 0.04, 0.06])
        left.tick_params(labelsize=8)
        turn = torch.linspace(0, 2 * math.pi, 40)
        ring = 2 * 0.03**0.5 * torch.stack([turn.cos(), turn.sin()])
        for mean in mixture.means:
            right.plot(*(mean[:, None] + ring), color=TRUTH, lw=0.7, aa=False)
        lately = path.samples[max(0, now - 120) : now, 0]
        right.plot(*lately.T, ".", ms=3, color=COLOURS["SGLD"], aa=False)
        for end in range(LENGTH, now + 1, LENGTH):
            place = path.samples[end - 1, 0]
            right.plot(*place, "o", ms=6, color=COLOURS["SGD with momentum"])
        right.set(xticks=[], yticks=[], xlim=(-6, 6), ylim=(-6, 6), aspect="equal")
        yield figure  # without smoothed edges of dots and rings the film is light


show_frames(
    frames(),
    "Two cycles of a chain on a grid of 25 rings. While the step is above the dotted "
    "line its dots are scattered over the whole grid; as the step falls they gather "
    "in fewer rings and at last in one, which is marked; when the step jumps up they "
    "scatter again.",
    seconds=0.5,
)

# %% [markdown]
# Play {numref}`fig-cyclical-film`, or move its slider.
# While the step is large the chain is everywhere; as the step falls it is caught in one mode, and draws it; then the step jumps up, and the chain is thrown out again.
# {numref}`fig-cyclical-idea` has four cycles in one picture.

# %% mystnb={"figure": {"caption": "Above: the step size over four cycles; steps above the dotted line, $2\\sigma^2$, are too large for a mode to hold the chain. The last fifth of each cycle is shaded. Below: one path through the mixture (grey contours). Light blue dots are steps above the dotted line, green dots the last fifth of each cycle: the chain settles in one mode a cycle.", "name": "fig-cyclical-idea"}, "image": {"alt": "Above, four cosine arcs falling from 0.07 to zero, with their last fifths shaded. Below, light blue dots all over a grid of 25 small circles, and green dots, each cluster inside of one circle."}} tags=["hide-input"]
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5, 6.6), height_ratios=[1, 2.4])
upper.plot([rate(step) for step in range(4 * LENGTH)], color=COLOURS["SGLD"])
upper.axhline(0.06, color="black", ls=":")
lower.plot(
    *path.samples[[step for step in range(4 * LENGTH) if rate(step) > 0.06], 0].T,
    ".",
    ms=2,
    color=COLOURS["SGD"],
    alpha=0.5,
)
plot_contours(lower, mixture, -5.5, 5.5)
for cycle in range(4):
    begin, end = cycle * LENGTH + 4 * LENGTH // 5, (cycle + 1) * LENGTH
    upper.axvspan(begin, end, color=COLOURS["SGLD"], alpha=0.25, lw=0)
    lower.plot(*path.samples[begin:end, 0].T, ".", ms=3, color=COLOURS["SGLD"])
upper.set(xlabel="step $k$", ylabel=r"$\eta_k$")
lower.set(
    xlabel=r"$\theta_1$",
    ylabel=r"$\theta_2$",
    xlim=(-5.5, 5.5),
    ylim=(-5.5, 5.5),
    aspect="equal",
)
plt.show()

# %% [markdown]
# Green is the last fifth of each cycle, the part that samples: every time the dots fill one ring, while those of the steps above the dotted line are everywhere.
#
# In {numref}`fig-live-cyclical` the schedule is yours: the length of a cycle and the largest step, for 20,000 steps.
#
# ```{live} cyclical
# :name: fig-live-cyclical
# :alt: Twenty-five rings; light blue dots between and in them, and green dots in ten of them. A histogram of the green ones, too high in some modes. The step size over four cycles, with the parts that explore and sample named. The number of modes found after each cycle.
#
# Live: cyclical SGLD on the 25 modes. In the first four fifths of a cycle it explores, and nothing is kept; the draws of the last fifth are kept (green).
# ```

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
)
claim(
    "Modes that the chain is in during the first tenth of a cycle, least number of "
    "four cycles",
    float(min(len(cycle.unique()) for cycle in visited.view(4, LENGTH)[:, :166])),
    at_least=10,
    because="steps above 2σ² throw it about",
)

# %% [markdown]
# ## Too large for a mode
#
# Why does the chain leave a mode in {numref}`fig-cyclical-idea`? Not because it climbs the barrier step by step.
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
# The barrier, $h^2/2\sigma^2$, appears times a factor: $h^2/2s^2 = (1 - \eta/2\sigma^2)\,h^2/2\sigma^2$, which vanishes as $\eta$ comes to $2\sigma^2$.
# What counts is the distance $h$ over the width $s$, and the *step* has inflated the width: at $\eta = 0.043$ one step in 300 leaves, at $0.02$ one in 250,000.
# So the error of a large step, which is a nuisance elsewhere, is what finds the modes here.


# %%
def leaving(eta, variance=0.03, h=1.0, directions=3.2):
    """The probability of the proposition, per step."""
    width = math.sqrt(variance / (1 - eta / (2 * variance)))
    return directions / 2 * math.erfc(h / width / math.sqrt(2))


# %% tags=["hide-input"]
exact_start = mixture.exact_samples(300, torch.Generator().manual_seed(0))
left_modes = {}
for eta in (0.04, 0.043, 0.047):
    run = sample(langevin(eta), noisy, exact_start, 800, warm_up=20, seed=1).samples
    _, mode = nearest(run)
    changes = (mode[1:] != mode[:-1]).double().mean(0)  # of each chain
    left_modes[eta] = float(changes.mean()), float(changes.std()) / 300**0.5

# %% tags=["hide-input"]
wanted = {0.04: (1.0, 0.36), 0.043: (0.97, 0.24), 0.047: (0.9, 0.18)}
for eta, (near, within) in wanted.items():
    claim(
        f"Steps that leave a mode at η = {eta:g}, over the proposition's number",
        left_modes[eta][0] / leaving(eta),
        near=near,
        within=within,
        because=(
            "what longer runs give; five standard errors here are "
            f"{within - 0.05:g}, and a little for those of the longer runs"
        ),
    )
claim(
    "Steps until one leaves at η = 0.043, by the proposition",
    1 / leaving(0.043),
    near=295,
    within=1,
    because="1/(1.6 P(|x| > 1)), s² = 0.106",
    kind="exact",
)
claim(
    "The same at η = 0.02",
    1 / leaving(0.02),
    near=250_000,
    within=25_000,
    because="s² = 0.045",
    kind="exact",
)

# %% [markdown]
# Now the published schedules can be understood.
# SGLD has $\eta = 0.043$ for 500 steps, in which it leaves a mode about twice, and then falls as $0.043\,(t - 500)^{-0.55}$: we expect it to see two or three modes and to stay in one for ever.
# cSGLD begins every cycle at $0.07 > 2\sigma^2$: for the 400 steps above the dotted line no mode can hold it.
#
# Would a constant step do? {numref}`fig-cyclical-constant` tries ten of them, with 50,000 steps each.

# %%
stored = read_result(RESULTS / "modes.json")
methods = stored["methods"]
sweep = methods["SGLD, constant"]["tuning"]

# %% mystnb={"figure": {"caption": "SGLD with a constant step, 50,000 steps. Top: probability of leaving a mode in a step, by the proposition (line) and measured (points, two standard errors). Middle: modes found of 25, mean of 20 chains. Bottom: variance about the nearest mean (points), that of a lone mode (line), and the true one (grey). The dotted line is $2\\sigma^2$.", "name": "fig-cyclical-constant"}, "image": {"alt": "Three panels over one axis, the step size: a steeply rising curve with three points on it; the number of modes found, which rises from one to 25 at about 0.045; the variance, which rises from 0.03 to above 0.25."}} tags=["hide-input"]
figure, panels = plt.subplots(3, 1, figsize=(5.4, 6.6), sharex=True)
grid = torch.linspace(0.02, 0.0585, 80).tolist()
panels[0].semilogy(grid, [leaving(eta) for eta in grid], color=COLOURS["SGLD"])
for eta, (value, error) in left_modes.items():
    panels[0].errorbar(eta, value, 2 * error, fmt="o", ms=4, color="black")
etas = [row["settings"]["rate"] for row in sweep]
found = [row["found"]["any"] for row in sweep]
panels[1].plot(etas, found, "o-", ms=4, color=COLOURS["SGLD"])
panels[1].axhline(25, color=TRUTH, zorder=0)
drawn_wide = [row["variance"] for row in sweep]
panels[2].plot(etas, drawn_wide, "o", ms=4, color=COLOURS["SGLD"])
lone = [0.03 / (1 - eta / 0.06) for eta in grid[:70]]
panels[2].plot(grid[:70], lone, color=COLOURS["SGLD"], lw=1)
panels[2].axhline(0.03, color=TRUTH, zorder=0)
titles = ("probability of leaving", "modes found", "variance in a mode")
for axes, title in zip(panels, titles, strict=True):
    axes.axvline(0.06, color="black", ls=":", lw=1)
    axes.set_ylabel(title)
panels[-1].set_xlabel(r"step size $\eta$")
plt.show()
print(who_ran(stored))

# %% [markdown]
# The larger the step, the more modes are found (middle), and the wider they are drawn (bottom): no constant step is good at both.

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
    because="σ²/(1 − η/2σ²), less what its neighbours catch",
    kind="stored",
)

# %% [markdown]
# ## The law at every place of a cycle
#
# A constant step large enough to find the modes draws each with four times its variance.
# A cycle is meant to do both: large steps find, small ones draw.
# Let the *place* of a draw be the number of steps of its cycle up to it.
# How right are draws at a place where $\eta$ has become small?
# On a Gaussian this can be computed exactly, because one linear map after another is again a linear map.
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
# Seen once a cycle, after step $p$, the chain is $z' = F^{(p)}z + N(0, Q^{(p)})$, and {prf:ref}`thm-lyapunov` gives the stationary covariance of such a chain.
# Its condition holds at every place, because products of the same maps in another cyclical order have the same eigenvalues.
# ```
#
# No single $F_j$ has to be stable.
# Around a lone mode our chain has $F_1 = 1 - 0.07/0.03 = -1.33$, so it moves away; but the product of all 1,667 factors of a cycle is nearly zero.
# On the way the exact standard deviation grows beyond $10^{30}$.
# On the mixture nothing of the kind happens, because other modes catch the chain.
# {numref}`fig-cyclical-places` compares it with chains on the mixture.


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

# %% tags=["hide-input"]
cycles, chains = 2, 200
scattered = 20 * torch.rand(chains, 2, generator=torch.Generator().manual_seed(3)) - 10
twenty = Cyclical(langevin, HIGHEST, LENGTH, num_draws=20)
run = sample(twenty, noisy, scattered, 20 * cycles, seed=3)
distance, mode = nearest(run.samples)
squares = (distance.square() / 2).double().view(cycles, 20, chains).mean(0)
measured = squares.mean(1), squares.std(1) / chains**0.5

# %% mystnb={"figure": {"caption": "Variance about the nearest mean over a cycle of cSGLD. Points: 200 chains on the mixture, two cycles, two standard errors. Line: the exact law for a lone mode. Grey: the true variance. From 45 % of the cycle on, where the step is below 0.041, the two agree; before that chains are between modes.", "name": "fig-cyclical-places"}, "image": {"alt": "Points that fall from 0.45 at the start of the cycle to 0.03 at its end; a line joins them from the middle on."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6, 3.4))
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

# %% [markdown]
# The line is the exact law, and the points are the chains: the two agree from the middle of the cycle on.
# At the end the step has vanished, and the variance is still 0.8 % too large.
# The last steps are too small to move the chain: it *freezes* before the end, and keeps the bias of the step at which it froze ({ref}`ex-cyclical-freeze`).
# By the same argument the last hundred draws of a cycle are nearly one draw.

# %% tags=["hide-input"]
for part in (9, 12, 15, 19):
    claim(
        f"Variance in a mode at {(part + 1) / 20:.0%} of a cycle, η = "
        f"{rate(places[part] - 1):.2g}",
        measured[0][part],
        near=round(laws[places[part]], 5),
        standard_error=measured[1][part],
        because="exact law of a place; 200 chains",
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
# ## What cycles say about masses
#
# A chain that settles in one mode a cycle has, after $M$ cycles, drawn $M$ modes.
# If each is drawn as it should be, how far are the shares from the truth?
#
# ```{prf:proposition} $M$ choices among $m$ modes
# :label: prop-cyclical-choices
#
# Let $M$ independent choices fall on $m$ modes with probability $1/m$ each, $X_i$ times on mode $i$, so that $X_i \sim \operatorname{Bin}(M, 1/m)$. The expected number of modes found is $m\bigl(1 - (1 - \tfrac1m)^M\bigr)$, and the expected total variation of the shares $X_i/M$ from $1/m$ is
#
# $$
# \frac m2\,E\Bigl|\frac{X_1}M - \frac1m\Bigr| \approx \sqrt{\frac{m - 1}{2\pi M}}.
# $$ (eq-cyclical-choices)
# ```
#
# ```{prf:proof}
# Mode $i$ is missed with probability $(1 - 1/m)^M$.
# Total variation is half the sum of $|X_i/M - 1/m|$, and all summands have one law.
# The standard deviation of $X_i/M$ is $\sqrt{(m - 1)/M}/m$, and for a normal $x$ with mean zero $E|x|$ is $\sqrt{2/\pi}$ times its standard deviation.
# ```


# %%
def choices(number, modes=25):
    """Expected number of modes found, and total variation."""
    counts = torch.arange(number + 1)
    chance = torch.tensor(1 / modes, dtype=torch.float64)
    mass = torch.distributions.Binomial(number, chance).log_prob(counts).exp()
    variation = modes / 2 * float((mass * (counts / number - 1 / modes).abs()).sum())
    return modes * (1 - (1 - 1 / modes) ** number), variation


# %% tags=["hide-input"]
rows = []
for M in (30, 120, 300, 1_200):
    found, variation = choices(M)
    rows.append([f"{M:,}", f"{found:.1f}", f"{variation:.3f}"])
show_table(["cycles", "modes found", "total variation"], rows)

# %% [markdown]
# Thirty cycles, one choice each, find 18 of the 25 modes on average.
# How then do the authors find 25 of 25 with one chain?
# Their program keeps every step of a cycle but the first 50, and so also those above $2\sigma^2$, at which the chain passes through all modes and stays in none.
#
# And are the modes chosen as they should be?
# With equal weights on a nearly symmetric grid hardly anything could go wrong.
# So let us put nine times the weight on the ten modes on the right, and start in exact draws, of which 86 % are on the right.

# %%
times = 9
on_the_right = mixture.means[:, 0] > 0
weights = torch.where(on_the_right, float(times), 1.0)


class Uneven(Potential):
    """The mixture with these weights."""

    dim = 2

    def energy(self, position):
        squares = (position[:, None] - mixture.means).square().sum(-1)
        return -torch.logsumexp(weights.log() - squares / 0.06, -1)


exact_share = 10 * times / (10 * times + 15)
generator = torch.Generator().manual_seed(1)
modes = weights.multinomial(1_200, replacement=True, generator=generator)
begin = mixture.means[modes] + 0.03**0.5 * torch.randn(1_200, 2, generator=generator)
kernel = Cyclical(langevin, HIGHEST, cycle_length=400)
ends = sample(kernel, NoisyGradient(Uneven(), 1.0), begin, 2, seed=2).samples
share = (ends[:, :, 0] > 1).double()

# %% [markdown]
# One or two cycles bring 86 % down to about a half.
# A chain that knew nothing of the weights would end in one of ten modes of 25, which is 40 %.
# The reason is in the gradient.
# It knows the weight of a mode only near the middle between two modes, where they overlap: nine times the weight moves that middle by $\sigma^2\ln9/2h = 0.03$.
# A chain that is thrown about in steps of length 1 hardly feels that.
# Which mode a cycle ends in depends on the shapes of the surroundings, as for an optimiser that is started at random.
# More cycles do not help: they make the estimate of the wrong masses precise.
# {cite:t}`teh2016` prove that SGLD comes to the right law with steps that go to zero; with cycles that all begin at the same $\eta_0 > 2\sigma^2$ the chain has a law of its own.

# %% tags=["hide-input"]
claim(
    "Share of the exact draws on the right",
    (begin[:, 0] > 1).double().mean(),
    near=exact_share,
    standard_error=(exact_share * (1 - exact_share) / 1_200) ** 0.5,
    because="1,200 independent draws",
)
claim(
    "Share on the right at the end of a cycle, mean of two",
    share.mean(),
    near=0.48,
    standard_error=share.mean(0).std() / 1_200**0.5,
    because="what 3,600 other chains gave, within 0.006; the law has 0.857",
)

# %% [markdown]
# Even with equal weights the masses are not equal, as the next table shows.

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

# %% [markdown]
# Modes inside of the grid are reached from four sides, and those at its corners from two: the inner ones have a third too much, and the corners not much over half of their share.

# %% tags=["hide-input"]
claim(
    "Share of the nine inner modes over the exact one",
    over["the nine inner modes"].mean(),
    near=1.35,
    within=0.01,
    because="the stored result of 20 seeds",
    kind="stored",
)
claim(
    "Share of the four corners over the exact one",
    over["the four corners"].mean(),
    near=0.58,
    within=0.01,
    because="the stored result of 20 seeds",
    kind="stored",
)

# %% [markdown]
# ## The published experiment
#
# This section repeats the experiment with which the method was introduced, first as it stands and then with baselines that are tuned alike.
# What comes out, in short: the published finding holds; restarts do as well as cycles; both are nearer to the law, masses and widths together, than any constant step; and the masses of the modes are wrong in all of them.
#
# {cite:t}`zhang2020` report the mixture in two settings: one chain, and four chains of 50,000 draws each, where, as their Figure 2 has it, SGLD finds 4 of the 25 modes and cSGLD all of them.
# Their program for one chain is public ([ruqizhang/csgmcmc](https://github.com/ruqizhang/csgmcmc), `experiments/mog25.m`, `sgld.m`, `csgld.m`); for four chains there are the draws themselves (`psgld.mat`, `pcsgld.mat`).
# A regression of their increments on the exact gradient gives the step sizes of those draws: 0.043 for 500 steps and then falling with the exponent 0.55, and 0.07 falling over 1,667 steps. The settings are those of the program for one chain.
#
# When is a mode found?
# In their draws of SGLD's four chains four modes have more than 1 % of the draws, five have more than 0.1 %, and eight have any draw within three standard deviations.
# In their draws of cSGLD it is 25 by all three counts. We give all three.
#
# `python -m experiments run modes --seeds 20` repeats both settings with 20 seeds, and adds what a reader would try next, all with 50,000 steps a chain:
#
# * *restarted*: SGLD begins anew as often as cSGLD has cycles, each time from a new start and with the first 1,667 steps of its published schedule;
# * *constant*: SGLD at the best constant step; *tuned*: SGLD whose first step is held for longer; SGHMC at its best constant step and decay;
# * *tuned* cSGLD and cSGHMC: with the best largest step, number of cycles and share of exploration;
# * *fresh cycles*: cycles that each begin at a new start.
#
# Settings are chosen in runs with other seeds, by the total variation over a hundred *cells* that have the probability 1/100 each, four rings about each mean.
# It sees both a wrong mass and a wrong width.


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


heads = ["any", "> 0.1 %", "> 1 %", "TV of modes", "TV of cells", "variance"]
show_table(["one chain", *heads], [told(name, "one chain") for name in methods])

# %% [markdown]
# These are means of 20 seeds.
# The first three columns are modes found, by the three counts; *TV of modes* is the total variation of the masses from equal ones, *TV of cells* that over the hundred cells; the variance about the nearest mean should be 0.03.
# With one chain SGLD finds two or three modes, as expected above, and cSGLD finds them all, but draws them too wide.

# %% tags=["hide-input"]
show_table(["four chains", *heads], [told(name, "four chains") for name in methods])

# %% [markdown]
# With four chains every method finds nearly every mode, but for SGLD as published.
# What differs still is the distance from the law over the cells, from 0.12 to 0.84.
# The settings that were chosen:

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

# %% [markdown]
# Every method with cycles took the most cycles that it was offered and the longer exploration.
# {numref}`fig-cyclical-modes` shows all seeds of the second table.

# %% mystnb={"figure": {"caption": "Twenty seeds with four chains. Above: modes with more than 1 % of the draws, a point for each seed; grey line: four modes. Below: total variation of the masses (dots) and over a hundred cells (rings); grey line: the masses of 120 independent even choices, as many as four chains of 30 cycles make.", "name": "fig-cyclical-modes"}, "image": {"alt": "Two strip plots for nine methods, one below the other. Above, SGLD is at three or four modes and all others lie between 20 and 25. Below, SGLD is near 0.84, and the smallest rings are those of the methods that end with small steps: fresh cycles, tuned cSGLD and tuned cSGHMC."}} tags=["hide-input"]
figure, (upper, lower) = plt.subplots(2, 1, figsize=(6.2, 6.6))
for row, name in enumerate(methods):
    runs = [one["four chains"] for one in methods[name]["runs"]]
    jitter = torch.linspace(-0.25, 0.25, len(runs)) + row
    colour = COLOURS["SGHMC" if "HMC" in name else "SGLD"]
    upper.plot([one["found"]["1 %"] for one in runs], jitter, "o", ms=3, color=colour)
    lower.plot([one["modes_tv"] for one in runs], jitter, "o", ms=3, color=colour)
    cells = [one["cells_tv"] for one in runs]
    lower.plot(cells, jitter, "o", ms=4, mfc="none", color=colour)
upper.axvline(4, color=TRUTH, zorder=0)
lower.axvline(choices(120)[1], color=TRUTH, zorder=0)
for axes in (upper, lower):
    axes.set(yticks=range(len(methods)), yticklabels=list(methods))
    axes.invert_yaxis()
upper.set(xlabel="modes with > 1 % of the draws")
lower.set(xlabel="total variation", xscale="log", xlim=(0.05, 1))
lower.set_xticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"])
lower.xaxis.minorticks_off()
plt.show()

# %% [markdown]
# In the upper half only SGLD as published stands apart; in the lower half nearly everybody differs.
# So what is one to make of the tables and of the figure? Five things.
#
# **The published finding is reproduced.**
# SGLD's four chains end in four modes, or in three where two of them meet, and cSGLD reaches all 25 with one chain or four, whatever the seed, if any draw counts; with more than 1 % of the draws it has 22 to 25 with four chains and 14 to 20 with one (the authors' draws: 25 and 20).

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
claim(
    "Fewest modes with any draw, cSGLD with the published settings, one chain and four",
    min(
        run_[chains]["found"]["any"]
        for run_ in methods["cSGLD"]["runs"]
        for chains in ("one chain", "four chains")
    ),
    near=25,
    within=0,
    because="the stored result; published: all",
    kind="stored",
)


def tuning_of(name, **settings):
    return next(row for row in methods[name]["tuning"] if row["settings"] == settings)


# %% [markdown]
# **Reaching is not sampling.**
# With what the program keeps, the variance in cSGLD's modes is five times too large, because most of the kept steps are large.
# (It does not show in their figures: the notebook that draws them, `plot_density.ipynb`, draws the target with $\sqrt{0.03} = 0.17$ for its variance, nearly six times too large itself.)
# Keeping only the last half of each cycle, or the last fifth, mends that, and then 30 cycles find 17 to 18 modes, as {prf:ref}`prop-cyclical-choices` says.

# %% tags=["hide-input"]
claim(
    "Variance in a mode, cSGLD with the published settings, four chains",
    mean_of("cSGLD", "four chains", "variance")[0],
    near=0.157,
    within=0.002,
    because="the stored result; most steps kept are large ones",
    kind="stored",
)
few = [
    tuning_of("cSGLD, tuned", rate=0.07, cycles=30, exploration=share)
    for share in (0.5, 0.8)
]
claim(
    "Modes found by one chain of 30 cycles that keeps their last halves or fifths "
    "only, largest distance from the proposition's number",
    max(abs(row["found"]["any"] - choices(30)[0]) for row in few),
    at_most=1.3,
    because=(
        "a chain's number has a standard deviation of 1.4, and there are 20 chains: "
        "four standard errors"
    ),
    kind="stored",
)

# %% [markdown]
# **The baseline was a weak one.**
# SGLD's own schedule, restarted 30 times at no cost, finds 23 modes with one chain and all with four.
# Its draws are nearer to the law over the cells than those of cSGLD as published, though its masses are farther off (0.16 against 0.14 with four chains).

# %% tags=["hide-input"]
for chains, wanted in (("one chain", 23.25), ("four chains", 25)):
    claim(
        f"Modes with any draw, SGLD restarted, {chains}",
        mean_of("SGLD, restarted", chains, "found", "any")[0],
        near=wanted,
        within=0.1,
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
claim(
    "Total variation of the masses, SGLD restarted less cSGLD as published, four "
    "chains",
    mean_of("SGLD, restarted", "four chains", "modes_tv")[0]
    - mean_of("cSGLD", "four chains", "modes_tv")[0],
    near=0.018,
    within=0.001,
    because="the stored result",
    kind="stored",
)

# %% [markdown]
# **A cycle is a restart.**
# Let each cycle begin at a start of its own instead of where the last one ended, with the same settings: for 100, 300 and 1,000 cycles the distances over the cells differ by 0.004 at most.
# A step above $2\sigma^2$ forgets where it began; that is what it is for.
# (In the tables fresh cycles are farther from the law than tuned cSGLD; but they were not offered the step 0.06, which cSGLD took.)
#
# **Falling steps do help.**
# A constant step, a longer first phase, and SGHMC at its best constant step are more than twice as far from the law as tuned cSGLD: they cannot have large steps and small ones at once.
# cSGHMC comes nearest of all.

# %% tags=["hide-input"]
differences = []
for number in (100, 300, 1_000):
    alike = {"rate": 0.07, "cycles": number, "exploration": 0.8}
    differences.append(
        tuning_of("cSGLD, tuned", **alike)["cells_tv"]
        - tuning_of("fresh cycles, tuned", **alike)["cells_tv"]
    )
claim(
    "Total variation over the cells, cSGLD less fresh cycles with the same settings, "
    "the largest of three differences",
    max(differences, key=abs),
    near=0,
    within=0.03,
    because="the stored result; 20 chains each, with a standard error below 0.01",
    kind="stored",
)
claim(
    "Total variation over the cells, the least of three with constant or long-held "
    "steps, over that of tuned cSGLD, four chains",
    min(
        mean_of(name, "four chains", "cells_tv")[0]
        for name in ("SGLD, constant", "SGLD, tuned", "SGHMC")
    )
    / mean_of("cSGLD, tuned", "four chains", "cells_tv")[0],
    at_least=2,
    because="the stored result",
    kind="stored",
)
claim(
    "Total variation over the cells, the least of all other methods less that of "
    "tuned cSGHMC, four chains",
    min(
        mean_of(name, "four chains", "cells_tv")[0]
        for name in methods
        if name != "cSGHMC, tuned"
    )
    - mean_of("cSGHMC, tuned", "four chains", "cells_tv")[0],
    at_least=0.01,
    because="the stored result; standard errors are below 0.005",
    kind="stored",
)

# %% [markdown]
# **More cycles are better, until the masses limit them.**
# Tuning took the most that it was offered, 1,000, and the total variation of the masses is still several times that of as many even choices.
# SGHMC at a constant step, which draws every mode with four times its variance, has better masses.

# %% tags=["hide-input"]
number = 4 * int(methods["cSGLD, tuned"]["settings"]["cycles"])
claim(
    f"Total variation of the masses of tuned cSGLD, over that of {number:,} even "
    "choices",
    mean_of("cSGLD, tuned", "four chains", "modes_tv")[0] / choices(number)[1],
    at_least=3,
    because="the stored result: the choices are not even",
    kind="stored",
)
claim(
    "Variance in a mode of SGHMC at its best constant step, four chains",
    mean_of("SGHMC", "four chains", "variance")[0],
    near=0.122,
    within=0.002,
    because="the stored result: four times 0.03",
    kind="stored",
)
claim(
    "Total variation of the masses, SGHMC at its best constant step over tuned cSGLD, "
    "four chains",
    mean_of("SGHMC", "four chains", "modes_tv")[0]
    / mean_of("cSGLD, tuned", "four chains", "modes_tv")[0],
    at_most=0.8,
    because="the stored result: 0.09 over 0.13",
    kind="stored",
)

# %% [markdown]
# ## Momentum while the step falls
#
# In cSGHMC the state is $(\theta, r)$, and what is handed from a step to the next, smaller one is the momentum $r$.
# That is right, because SGHMC leaves the same law $e^{-U(\theta) - r^2/2}$ invariant, up to its bias, at *any* step size; {eq}`eq-sghmc-falling` has the law on the way.
# Programs that come from optimisation may keep the velocity $v = \varepsilon r$ instead, as the authors' `experiments/cifar_csghmc.py` does.
# (`torch.optim.SGD` keeps neither: its buffer is $-v/\eta = -r/\varepsilon$, so a falling rate multiplies $r$ by $\varepsilon_{k+1}/\varepsilon_k$, and cools.)
# With a constant step it is the same; with a falling one it is not.
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
# Then $E[r^2] \leftarrow (1 - \alpha)^2(n/(n-1))^2E[r^2] + 2\alpha$, and the left side of {eq}`eq-cyclical-heat` is the value that this leaves as it is.
# For the right side put $1 - 2\alpha$ and $1 + 2/n$ for the squares.
# ```
#
# Does the position feel it?
# It freezes with $n^*$ steps left, as in {ref}`ex-cyclical-freeze`, with $\eta/\alpha$ in the place of $\eta$: for $U = \tfrac12\theta^2$ at $n^* = (12\alpha\ell^2/\pi^2\eta_0)^{1/3}$.
# From there on it keeps about the variance of that place, $1/(1 - 1/\alpha n^*)$.
# For $\alpha = \eta_0 = 0.1$ this rough argument gives 1.77 in cycles of 100 steps, and 1.10 in cycles of 1,000; the exact law has 1.77 and 1.17.
# The truth is 1.

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
short, long = lengths
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

# %% [markdown]
# With $r$ kept the variance at the end is within 3 % of the truth in all cases; with $v$ kept it is too large, and the more so the smaller $\alpha$ and the shorter the cycle.
# {numref}`fig-cyclical-velocity` has the whole of a short cycle.

# %% mystnb={"figure": {"caption": "Exact variance of $\\theta$ over a cycle of 100 steps of cSGHMC on a standard Gaussian, $\\alpha = 0.1$: with the momentum handed on (solid) and with the velocity (dashed). The truth is 1 (grey).", "name": "fig-cyclical-velocity"}, "image": {"alt": "The solid line swings a little at the start and stays near one; the dashed one starts at 1.8, swings down to below one half, and rises to 1.8 at the end."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6, 3))
for what, style in ((False, "-"), (True, "--")):
    axes.plot(
        range(1, short + 1),
        kept[0.1, short, what],
        style,
        color=COLOURS["SGHMC"],
        label="$v$ kept" if what else "$r$ kept",
    )
axes.axhline(1, color=TRUTH, zorder=0)
axes.set(xlabel="step of the cycle", ylabel="variance")
axes.legend()
plt.show()

# %% [markdown]
# With the momentum handed on the variance swings a little at the start and then stays near 1; with the velocity it swings widely, and it ends at 1.77 because the chain freezes there.
# For the authors' network this does not matter: their program's default is $\alpha = 0.9$, and a cycle has some 39,000 steps.
# With the usual momentum of 0.9, which is $\alpha = 0.1$, and short cycles it does.
# What else their program does, and whether cycles help a network, is the subject of {doc}`/book/studies/cyclical_networks`.

# %% tags=["hide-input"]
claim(
    "Variance at the end, α = 0.1 and 100 steps, r kept",
    kept[0.1, short, False][-1],
    near=0.975,
    within=0.001,
    because="exact law",
    kind="exact",
)
claim(
    "The same with v kept",
    kept[0.1, short, True][-1],
    near=1.767,
    within=0.001,
    because="exact law",
    kind="exact",
)
claim(
    "With v kept and 1,000 steps",
    kept[0.1, long, True][-1],
    near=1.165,
    within=0.001,
    because="exact law",
    kind="exact",
)
claim(
    "With v kept, 1,000 steps and α = 0.9",
    kept[0.9, long, True][-1],
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
    near=round(kept[0.1, short, False][-1], 4),
    standard_error=error,
    because="exact law with r kept; 1,000 chains",
)

# %% [markdown]
# ## In practice
#
# * Compare $\eta_0$ with $2/a$, or for SGHMC with $(4 - 2\alpha)/a$, where $a$ is the largest curvature that you know. Well below it a cycle is the same sampler with falling steps, and finds nothing that those do not; above it the chain leaves its mode, for other modes if there are any to catch it, and for infinity if there are none.
# * Keep draws from the end of a cycle only, where the law is narrow enough; {eq}`eq-cyclical-law` says how narrow. One draw a cycle, or a few, is all that there is.
# * Report the number of cycles. With $M$ of them the share of a mode has a standard error of $\sqrt{p(1 - p)/M}$, whatever the number of draws.
# * Do not take the share of cycles that end in a mode for its probability. For an average of predictions over modes, as in an ensemble, that may not matter; for probabilities of modes it does.
# * Start a fresh chain instead of a new cycle where that is cheap, and compare. On this chapter's mixture it is as good.
# * Hand on $r$, not $v$, unless $\alpha$ is near 1 or cycles are very long.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | the step size | $\eta_k = \tfrac12\eta_0\bigl[\cos(\pi j/\ell) + 1\bigr]$, with $j = 0, \dots, \ell - 1$ in each cycle, {eq}`eq-cyclical-schedule` |
# | width of a mode at the step $\eta$ | $s^2 = \sigma^2/(1 - \eta/2\sigma^2)$, none from $\eta = 2\sigma^2$ on, {prf:ref}`prop-cyclical-jump` |
# | a step leaves the mode | with probability $\tfrac12d'P(\lvert x\rvert > h)$, $x \sim N(0, s^2)$, {prf:ref}`prop-cyclical-jump` |
# | law at a place of a cycle | $\Sigma^{(p)} = F^{(p)}\Sigma^{(p)}F^{(p)\top} + Q^{(p)}$, {eq}`eq-cyclical-law` |
# | $M$ even choices of $m$ modes | total variation about $\sqrt{(m - 1)/2\pi M}$, {eq}`eq-cyclical-choices` |
# | keeping the velocity | variance about $1/(1 - 1/\alpha n)$ with $n$ steps left, {eq}`eq-cyclical-heat` |
#
# ## Change it
#
# * Set `LENGTH, HIGHEST = 1_667, 0.02` in place of `1_667, 0.07`. In the film the chain stays in one ring: no step is large enough to throw it out. Among others the claims on the first tenth of a cycle and on the share on the right show ✗, the second because the chains now stay where the exact draws put them.
# * Set `times = 1` in place of `times = 9`, so that all modes weigh the same. The exact share on the right falls from 86 % to 40 %, but the share of cycles that end there only from 48 % to 39 %; the claim on it, made for nine times the weight, shows ✗.
# * In the experiment with the velocity set `lengths = (100, 1_000)` to `lengths = (100, 4_000)`. The claim on 1,000 steps with $v$ kept shows ✗, and the table has the variance with $v$ kept nearer to 1: the longer the cycle, the gentler the fall.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-cyclical-write
#
# *Write it yourself.* Take cycles of SGLD with the gradient noise known, and return where the chain is at the end of each cycle.
#
# ~~~python
# def cycles(potential, theta, highest, length, number, generator):
#     ends = []
#     for step in range(number * length):
#         eta = ...  # the schedule
#         gradient = potential.stochastic_gradient(theta, generator, step)
#         noise = torch.randn(theta.shape, generator=generator, dtype=theta.dtype)
#         theta = ...  # gradient noise of variance 1 leaves 2η − η² to inject
#         ...
#     return torch.stack(ends)
# ~~~
# ```
#
# ```{solution} ex-cyclical-write
# :class: dropdown
#
# The code stands in the folded cell below; it takes the steps of the package's kernel, so that the ends of the cycles are the same.
# SGHMC without cycles is a task of assignment 2 ({doc}`/book/practice/teaching`).
# ```


# %% tags=["hide-input"]
def cycles_of(potential, theta, highest, length, number, generator):
    """The ends of so many cycles of SGLD, with gradient noise of variance 1."""
    ends = []
    for step in range(number * length):
        eta = highest / 2 * (1 + math.cos(math.pi * (step % length) / length))
        gradient = potential.stochastic_gradient(theta, generator, step)
        noise = torch.randn(theta.shape, generator=generator, dtype=theta.dtype)
        theta = theta - eta * gradient + math.sqrt(2 * eta - eta**2) * noise
        if step % length == length - 1:
            ends.append(theta)
    return torch.stack(ends)


begin = torch.zeros(5, 2, dtype=torch.float64)
setting = NoisyGradient(GaussianMixture(mixture.means.double()), 1.0)
own = cycles_of(setting, begin, 0.05, 40, 3, torch.Generator().manual_seed(0))
package = sample(Cyclical(langevin, 0.05, 40), setting, begin, 3, seed=0).samples
claim(
    "Largest difference between the exercise's ends of cycles and the package's",
    (own - package).abs().max(),
    at_most=1e-6,
    because="the same steps with the same random numbers, up to rounding",
    kind="exact",
)

# %% [markdown]
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
# :label: ex-cyclical-weights
#
# With falling steps draws are weighted by $\eta_t$ ({eq}`eq-weighted`). Which share of the weight have the first 500 of the 50,000 steps of the published SGLD, and what would that do to the number of modes found?
# ```
#
# ```{solution} ex-cyclical-weights
# :class: dropdown
#
# The first 500 have $500 \cdot 0.043 = 21.5$, and the others about $0.043 \cdot 49{,}500^{0.45}/0.45 = 12.4$, so that the first hundredth of the steps has almost two thirds of the weight.
# The two or three modes of that time would then have a large share, each of them too wide. Weights do not find modes.
# ```

# %% tags=["hide-input"]
frozen = (12 * 0.03 * 1_667**2 / (math.pi**2 * 0.07)) ** (1 / 3)
last_step = 0.07 * (math.pi * frozen / (2 * 1_667)) ** 2
weights = [0.043 if t < 500 else 0.043 * (t - 499) ** -0.55 for t in range(50_000)]
for sentence, value, wanted, within in (
    ("Steps left where the chain freezes", frozen, 113, 0.5),
    ("Excess of the variance at the step there", last_step / 0.06, 0.013, 0.0005),
    ("Cycles to find 25 modes", 25 * sum(1 / i for i in range(1, 26)), 95, 0.5),
    ("Weight of the first 500 steps", sum(weights[:500]) / sum(weights), 0.63, 0.01),
):
    claim(
        f"{sentence}, in the solutions",
        value,
        near=wanted,
        within=within,
        because="arithmetic",
        kind="exact",
    )

# %% [markdown]
# ## Further reading
#
# {cite:t}`zhang2020` for the method and its theory; {cite:t}`huang2017` and {cite:t}`loshchilov2017` for the same wave in optimisation.
