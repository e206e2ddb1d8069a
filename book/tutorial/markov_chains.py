# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Markov chains
#
# ```{div} page-head
# Page 2 of 12 · 35 minutes to read, 15 to play · Running: about 5 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! Markov chain, ! detailed balance, ! Metropolis
# ```

# %%
import torch

from booklib.page.scoreboard import show_row

# %% tags=["hide-input"]
import warnings
from fractions import Fraction

import arviz
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch

from booklib.page.claims import at_least, at_most, check, near
from booklib.page.figures import COLOURS, TRUTH, plot_density, plot_histogram, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.scores.diagnostics import expectation
from sgmc import sample
from sgmc.other_kernels import RandomWalkMetropolis
from sgmc.targets import DoubleWell, Gaussian, GaussianMixture

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# {doc}`The last page </book/tutorial/bayesian_learning>` averaged predictions over samples of a posterior, and did not say where the samples came from.
# The posterior is known only up to a constant, and nobody can draw from it directly.
# What one can do is wander.
# If a walk spends its time at each place in proportion to the probability there, the places that it visits can serve as samples.
# So how must one walk?
#
# {numref}`fig-three-states` shows the idea on three states.
# In each state a walker looks at the arrows that leave it and follows one of them, with the probability written on it; an arrow may lead back to where she stands.
# She starts in state 1.
# After five steps the probabilities of the three states are within {c}`five-steps` of numbers that no longer change, although she keeps walking, and over a long walk the share of time that she spends in each state tends to the same three numbers, $\pi = (0.2, 0.3, 0.5)$.


# %% mystnb={"figure": {"caption": "Left: a walk on three states with the probability of each move; the areas of the discs are the shares $\\pi$. Right, upper: the probability of being in each state after $t$ steps from state 1. Lower: the share of the time so far that one long walk has spent in each state. Grey: $\\pi = (0.2, 0.3, 0.5)$.", "name": "fig-three-states"}, "image": {"alt": "A graph of three states with arrows between them. Beside it two panels over the number of steps with a line for each state. Above, the lines jump from 1, 0 and 0 and lie on the grey lines at 0.2, 0.3 and 0.5 after about five steps. Below, the shares of time wander and come to the same grey lines after some hundred steps."}} tags=["hide-input"]
P = torch.tensor(
    [[0, 1 / 2, 1 / 2], [1 / 3, 1 / 6, 1 / 2], [1 / 5, 3 / 10, 1 / 2]],
    dtype=torch.float64,
)
pi = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
walkers = [torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)]  # p₀, p₁, …
for _ in range(8):
    walkers.append(walkers[-1] @ P)

state, visits, generator = 0, [], torch.Generator().manual_seed(3)
for _ in range(2_000):
    visits.append(state)
    state = int(torch.multinomial(P[state], 1, generator=generator))
counts = torch.nn.functional.one_hot(torch.tensor(visits), 3).cumsum(0)

places = {0: (0.0, 1.25), 1: (-1.3, -0.75), 2: (1.3, -0.75)}
outwards = {0: (0, 0.9), 1: (-0.85, -0.55), 2: (0.85, -0.55)}  # of the loops
figure = plt.figure(figsize=(5.4, 3.7))
graph = figure.add_subplot(1, 2, 1)
upper, lower = figure.add_subplot(2, 2, 2), figure.add_subplot(2, 2, 4)
for x, (left, low) in places.items():
    graph.scatter(left, low, s=100 + 1_500 * pi[x], color=f"C{x}", zorder=1)
    graph.text(left, low, str(x + 1), ha="center", va="center", zorder=4)
    for y, (right, high) in places.items():
        a, b = (right - left, high - low) if x != y else outwards[x]
        if x == y:
            ends = [
                (left + 0.3 * a - side * b, low + 0.3 * b + side * a)
                for side in (0.2, -0.2)
            ]
            bend, place = -1.6, (left + 0.85 * a, low + 0.85 * b)
        else:
            ends = [(left + t * a, low + t * b) for t in (0.2, 0.8)]
            bend = 0.3
            place = left + 0.37 * a + 0.08 * b, low + 0.37 * b - 0.08 * a
        if P[x, y] > 0:
            style = {"arrowstyle": "-|>", "mutation_scale": 9, "color": "0.35"}
            curve = f"arc3,rad={bend}"
            arrow = FancyArrowPatch(*ends, connectionstyle=curve, zorder=3, **style)
            graph.add_patch(arrow)
            word = str(Fraction(float(P[x, y])).limit_denominator(20))
            around = {"color": "white", "pad": 0.5}
            middle = {"ha": "center", "va": "center"}
            graph.text(*place, word, fontsize=9, bbox=around, zorder=3, **middle)
graph.set(xlim=(-2.35, 2.35), ylim=(-1.7, 1.7), aspect="equal")
graph.axis("off")
for x, share in enumerate(pi):
    for panel in (upper, lower):
        panel.axhline(share, color=TRUTH, lw=0.8, zorder=0)
    upper.plot([float(p[x]) for p in walkers], "o-", ms=3, label=f"{x + 1}")
    lower.semilogx(torch.arange(1, 2_001), counts[:, x] / torch.arange(1, 2_001))
upper.set_title("probability", fontsize=9)
upper.set_xlabel("steps")
upper.legend(title="state", ncols=3, loc="upper right")
lower.set_title("share of time", fontsize=9)
lower.set_xlabel("steps")
plt.show()

# %% [markdown]
# *A guess before you read on.*
# Somebody chose the eight numbers on the arrows so that the shares would be 0.2, 0.3 and 0.5.
# What could one ask of the arrows between two states, to make sure of that?
#
# ## Flow in balance
#
# ```{prf:definition} Markov chain, stationary distribution, detailed balance
# :label: def-markov-chain
#
# A *Markov chain* moves from state $x$ to state $y$ with probability $P(x, y)$, whatever came before.
# The rule $P$ is its *kernel*.
#
# A distribution $\pi$ is *stationary* if a chain that starts in it is still in it after a step: for all $y$
#
# $$
# \sum_x\pi(x)P(x, y) = \pi(y).
# $$ (eq-stationary)
#
# The chain is in *detailed balance* with $\pi$ if $\pi(x)P(x, y) = \pi(y)P(y, x)$ for all $x$ and $y$.
# ```
#
# Think of $\pi$ as water in ponds, and of $\pi(x)P(x, y)$ as what flows from $x$ to $y$ in a step.
# A {term}`stationary distribution` only asks that no level changes.
# {term}`Detailed balance <detailed balance>` asks for more: through every single pipe as much flows one way as the other.
# It is also the easier condition to arrange, because it speaks of two states at a time.
#
# ```{prf:theorem} Detailed balance
# :label: thm-detailed-balance
#
# If a chain is in detailed balance with $\pi$, then $\pi$ is stationary.
# ```
#
# ```{prf:proof}
# Sum over $x$: $\sum_x\pi(x)P(x, y) = \sum_x\pi(y)P(y, x) = \pi(y)\sum_xP(y, x)$.
# The last sum is 1, because from $y$ the chain goes somewhere.
# ```
#
# This answers the guess: it is enough that the flow from $x$ to $y$ equals the flow back. It is not necessary, because flows may also go round.
# The arrows of {numref}`fig-three-states` come from a recipe that does this for any $\pi$.
# Propose one of the two other states, each with probability $\frac12$, and accept the proposal $y$ with probability $\min(1, \pi(y)/\pi(x))$; after a rejection stay where you are for this step.
# From state 2 to state 1, for example, this gives $\frac12\cdot\frac{0.2}{0.3} = \frac13$.
# For $x \ne y$ the flow is $\pi(x)P(x, y) = \frac12\min(\pi(x), \pi(y))$, which does not change when $x$ and $y$ change places.
#
# A stationary distribution need not be reached: a chain that never moves keeps every distribution.
# But if a chain on finitely many states can get from every state to every other, and does not go round in a fixed period, then it converges to $\pi$ from any start, and its averages over time converge to averages under $\pi$ ({prf:ref}`thm-finite-chain`).
# Such a chain is called {term}`ergodic`, and under mild conditions much the same holds for densities {cite:p}`roberts2004`.
# How fast it converges is a matter of eigenvalues; {doc}`/book/appendix/proofs` computes it for these three states.

# %% tags=["hide-input"]
recipe = 0.5 * torch.minimum(torch.ones(3, 3), pi[None, :] / pi[:, None]).double()
recipe -= torch.diag(recipe.sum(1) - 1)  # what was rejected stays
flow = pi[:, None] * P  # from each state to each, in equilibrium
apart = torch.maximum((recipe - P).abs(), (flow - flow.T).abs()).max()
words = (
    "Largest difference of the recipe from the figure, and of a flow from the flow back"
)
check("recipe", apart, at_most(1e-14), kind="exact", says=words)
away = (walkers[5] - pi).abs().max()
check("five-steps", away, at_most(0.005), kind="exact", digits=1)

# %% [markdown]
# ## Metropolis
#
# The recipe uses only the *ratio* of two probabilities, so the unknown constant in $\pi(\theta) \propto e^{-U(\theta)}$ cancels {cite:p}`metropolis1953`.
# That is why it works for posteriors.
# Sums over states become integrals, and $P(\theta, \theta')$ for $\theta' \ne \theta$ becomes the probability density of a move from $\theta$ to $\theta'$.
#
# ```{prf:algorithm} Random-walk Metropolis
# :label: alg-random-walk
#
# **Input:** step size $\varepsilon$
#
# Repeat: propose $\theta' = \theta + N(0, \varepsilon^2I)$; move there with probability $\min\bigl(1, e^{U(\theta) - U(\theta')}\bigr)$, otherwise stay.
# ```
#
# ```{prf:theorem} Random-walk Metropolis keeps its target
# :label: thm-metropolis
#
# Random-walk Metropolis is in detailed balance with $\pi \propto e^{-U}$.
# ```
#
# ```{prf:proof}
# Let $q(\theta, \theta')$ be the density of the proposal, which is symmetric in its arguments.
# For $\theta' \ne \theta$ the flow of probability is
#
# $$
# \begin{aligned}
# \pi(\theta)P(\theta, \theta') &= \pi(\theta)\,q(\theta, \theta')\min\Bigl(1, \frac{\pi(\theta')}{\pi(\theta)}\Bigr)\\
# &= q(\theta, \theta')\min\bigl(\pi(\theta), \pi(\theta')\bigr),
# \end{aligned}
# $$ (eq-metropolis-flow)
#
# which is symmetric too.
# A rejection leaves the state where it is, so it adds nothing to the flow between two different states.
# ```
#
# If the proposal is not symmetric, the ratio $q(\theta', \theta)/q(\theta, \theta')$ joins that of the densities {cite:p}`hastings1970`.
# In code, for many independent chains at once:


# %%
def random_walk(U, theta, step_size, num_steps, generator):
    """Follow random-walk Metropolis from θ (chains,); return (num_steps, chains)."""
    samples = []
    for _ in range(num_steps):
        proposal = theta + step_size * torch.randn(theta.shape, generator=generator)
        ratio = torch.exp(U(theta) - U(proposal))  # of the densities
        accepted = torch.rand(theta.shape, generator=generator) < ratio
        theta = torch.where(accepted, proposal, theta)
        samples.append(theta)  # after a rejection the same state once more
    return torch.stack(samples)


# %% [markdown]
# We run it on a *double well*, $U(\theta) = -2\theta^2 + \theta^4$, whose density has two humps.
# The 1,000 chains all start at $\theta = 0$, between the humps, which is a choice of ours and not a sample of $\pi$.
# The first 100 steps of each are therefore thrown away: this is the {term}`warm-up`.


# %%
def double_well(theta):
    return -2 * theta**2 + theta**4


start, generator = torch.zeros(1_000), torch.Generator().manual_seed(1)
samples = random_walk(double_well, start, 1.5, 1_100, generator)[100:]

# %% mystnb={"figure": {"caption": "Random-walk Metropolis in the double well. Upper: 300 steps of one chain; the flat pieces are rejections. Lower: a million samples on the true density (grey), with rejected steps counted, as they must be, and left out (dashed).", "name": "fig-metropolis"}, "image": {"alt": "Above, a jagged path between -1.5 and 1.5 with many flat pieces. Below, two grey humps at -1 and 1. One line runs along their outline; a dashed one is below it on the humps, and above it between and outside them."}} tags=["hide-input"]
well = DoubleWell()
moved = torch.cat([samples[1:] != samples[:-1], torch.ones(1, 1_000, dtype=bool)])
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.2, 5))
upper.plot(samples[:300, 0], color=COLOURS["random walk"], lw=0.8)
upper.set(xlabel="step", ylabel=r"$\theta$")
plot_density(lower, well, -2.2, 2.2)
for values, style, name in (
    (samples, "-", "all steps"),
    (samples[moved], "--", "moves only"),
):
    edges = torch.linspace(-2.2, 2.2, 89)
    colour = COLOURS["random walk"]
    plot_histogram(lower, values, edges, ls=style, lw=1, color=colour, label=name)
lower.set(xlabel=r"$\theta$", ylabel="density", ylim=(0, 0.68))
lower.legend(loc="upper center", ncols=3)
plt.show()

# %% [markdown]
# The upper part of {numref}`fig-metropolis` has flat pieces, where a proposal was rejected and the state is recorded *again*.
# Forgetting that is a common mistake, because a rejection looks like a step in which nothing happened.
# But rejections happen mostly where the density is high, so leaving them out removes samples exactly at the peaks.
# A chain that records only its moves records each $\theta$ once a visit, however long the visit lasts, so it records $\theta$ in proportion to the flow out of $\theta$, which is {eq}`eq-metropolis-flow` integrated over $\theta'$.
# This is the dashed line, and its $E[\theta^2]$ is {c}`moves-only`, where {c}`all-steps` is measured with rejections and {c}`quadrature` is right.
#
# The tutorial has one running example, the *bowl* $U = \frac12\theta^2$, whose density is the standard Gaussian with variance 1.
# Each sampler to come will be run on it, and its variance entered on a scoreboard.
# Random-walk Metropolis makes the first entry, which by the theorem is 1 once the chain has arrived; measured it is {c}`random-walk`.


# %%
def bowl(theta):
    return theta**2 / 2


in_the_bowl = random_walk(bowl, start, 2.4, 1_100, generator)[100:]
show_row("random-walk", in_the_bowl)

# %% tags=["hide-input"]
of_chains = samples.double().square().mean(0)
value, error = of_chains.mean(), of_chains.std() / 1_000**0.5
right = expectation(well, lambda x: x**2, -4, 4)
check("quadrature", right, kind="exact", digits=4)
check("all-steps", value, near(right), error=error, because="quadrature; 1,000 chains")
grid = torch.linspace(-3, 3, 601, dtype=torch.float64)
density = torch.exp(-double_well(grid))
proposal = torch.exp(-((grid[:, None] - grid) ** 2) / (2 * 1.5**2))
left_from = (proposal * torch.minimum(density[:, None], density)).sum(1)
check(
    "moves-only",
    samples[moved].double().pow(2).mean(),
    near(float((grid**2 * left_from).sum() / left_from.sum()), 0.008),
    digits=3,
    because="the flow out of each place; ten seeds have a standard deviation of 0.001",
)

# %% [markdown]
# ## What a sample is worth
#
# Successive samples of a chain resemble each other, so a thousand of them say less than a thousand independent ones.
# How much less follows, if the sum below is finite, from the *autocorrelation* $\rho_k$, the correlation of $f(\theta_t)$ with $f(\theta_{t+k})$ in the stationary chain.
# The variance of an average of $S$ samples is the sum of all their covariances over $S^2$, and $S - k$ pairs are $k$ steps apart ({prf:ref}`thm-tau`):
#
# $$
# \begin{aligned}
# \operatorname{Var}\Bigl[\frac1S\sum_{t=1}^Sf(\theta_t)\Bigr] &= \frac{\operatorname{Var}f}{S}\Bigl[1 + 2\sum_{k=1}^{S-1}\Bigl(1 - \frac kS\Bigr)\rho_k\Bigr]\\
# &\approx \frac{\operatorname{Var}f}S\,\tau \quad (S \gg \tau), \qquad \tau = 1 + 2\sum_{k\ge1}\rho_k.
# \end{aligned}
# $$ (eq-tau)
#
# Independent samples have $\tau = 1$.
# In general $S$ samples are worth an *effective sample size* of $S/\tau$, and the *Monte Carlo standard error* of their average is $\sqrt{\tau\operatorname{Var}f/S}$.
# The {term}`autocorrelation time` $\tau$ is thus the number of steps that one more independent sample costs.
# {numref}`fig-walk-steps` shows it for $f(\theta) = \theta$ in the bowl.
# Steps that are too short crawl, and steps that are too long are nearly always rejected, so that the chain stands still; between them, near 2.4, an independent sample costs {c}`tau` steps.
# In $d$ equal dimensions the best step is shorter, and the cost grows in proportion to $d$, because a proposal must suit all coordinates at once {cite:p}`roberts1997`.
# That cost is why this tutorial does not end here.

# %% mystnb={"figure": {"caption": "Steps of random-walk Metropolis for one independent sample, in the bowl, $f(\\theta) = \\theta$, measured as 2,000 times the variance of an average of 2,000 steps, over 1,000 chains.", "name": "fig-walk-steps"}, "image": {"alt": "Dots on logarithmic axes that fall from above a hundred at short steps to between four and five near 2.4, and rise again at long steps."}} tags=["hide-input"]
scales = [0.15 * 2**k for k in range(9)]
taus = []
for scale in scales:
    first = torch.randn(1_000, generator=generator)
    walk = random_walk(bowl, first, scale, 2_000, generator)
    taus.append(2_000 * float(walk.mean(0).var()))
figure, axes = plt.subplots(figsize=(4.6, 2.8))
axes.loglog(scales, taus, "o-", color=COLOURS["random walk"])
axes.set(xlabel=r"step size $\varepsilon$", ylabel=r"autocorrelation time $\tau$")
plt.show()

# %% tags=["hide-input"]
check("tau", taus[4], near(4.4, 1.0), error=0.2, because="it was 4.39 in 40,000 chains")

# %% [markdown]
#
# With many independent chains we need no autocorrelation to find the error: the chains' averages are independent numbers, so the usual standard error applies to them ({prf:ref}`thm-chains-standard-error`).
# It measures chance, and not the bias that the starts leave.
# This is why the book runs many chains at once, and it is where the standard errors of its claims come from.
#
# ## Has it arrived?
#
# All of this holds once a chain has reached its stationary distribution, and no chain shows by itself that it has.
# One thing can be checked: chains that started in different places should have become indistinguishable.
# The diagnostic $\hat R$ ({term}`R-hat`) replaces the samples by normal scores of their ranks, so that heavy tails do no harm, cuts each chain into halves, and divides the spread of all samples together by the typical spread within a half.
# It is near 1 if all chains see the same distribution, and above 1.01 one should be suspicious {cite:p}`vehtari2021`.
#
# {numref}`fig-bad-chains` has one good run and four bad ones, of four chains each.
# They are made with `sample`, the one loop of the package: it takes a kernel, an energy and the starts of the chains, and returns their samples.
# It also looks at the samples, and warns where it sees something wrong.

# %% tags=["hide-input"]
two_modes = GaussianMixture(torch.tensor([[-3.0], [3.0]]), variance=0.25)
normal, spread = Gaussian.standard(1), torch.linspace(-3, 3, 4)[:, None]
settings = {
    "good": (RandomWalkMetropolis(2.4), normal, spread, 4_000, 200),
    "short steps": (RandomWalkMetropolis(0.05), normal, spread, 1_000, 0),
    "stuck": (RandomWalkMetropolis(0.7), two_modes, spread.sign() * 3, 1_000, 200),
    "drift": (RandomWalkMetropolis(0.3), normal, 20 * spread, 1_000, 0),
    "missing mode": (
        RandomWalkMetropolis(0.7),
        two_modes,
        torch.full((4, 1), 3.0),
        *(4_000, 200),
    ),
}
runs, remarks = {}, {}
for name, (kernel, potential, first, length, warm_up) in settings.items():
    with warnings.catch_warnings(record=True) as warned:
        runs[name] = sample(kernel, potential, first, length, warm_up=warm_up, seed=3)
    remarks[name] = [str(warning.message).partition(": ")[0] for warning in warned]
r_hat = {
    name: arviz.rhat(run.to_arviz())["position"].item() for name, run in runs.items()
}
show_table(
    ["run", "what sample remarked"],
    [[name, "; ".join(said) or "nothing"] for name, said in remarks.items()],
)

# %% mystnb={"figure": {"caption": "Five runs of four chains each, with their $\\hat R$. Left: the first 1,000 steps of the chains, one colour each. Right: all samples together (line) against the true density (grey).", "name": "fig-bad-chains"}, "image": {"alt": "Five rows. Good: four paths mixed together, the histogram on the density. Short steps: four smooth paths that keep apart, a ragged histogram. Stuck: two paths at 3 and two at -3, the histogram on both modes. Drift: paths that come in from far on both sides. Missing mode: four paths mixed together at 3, and no samples at the mode at -3."}} tags=["hide-input"]
figure, panels = plt.subplots(5, 2, figsize=(5.2, 7), width_ratios=(2.2, 1))
for (axes, side), (name, run) in zip(panels, runs.items(), strict=True):
    values = run.samples[..., 0]
    for chain, colour in enumerate(("#000000", "#E69F00", "#56B4E9", "#009E73")):
        axes.plot(values[:1_000, chain], color=colour, lw=0.5)
    axes.set_title(rf"{name}: $\hat R$ = {r_hat[name]:.2f}", loc="left", fontsize=10)
    axes.set_ylabel(r"$\theta$")
    limit = max(4.5, float(values.abs().max()))
    plot_density(side, settings[name][1], -limit, limit)
    edges = torch.linspace(-limit, limit, 61)
    plot_histogram(side, values, edges, color=COLOURS["random walk"], lw=1)
    side.set_yticks([])
panels[-1, 0].set_xlabel("step")
panels[-1, 1].set_xlabel(r"$\theta$")
plt.show()

# %% [markdown]
# * *Short steps*: the chains crawl, still shorter than at the left end of {numref}`fig-walk-steps`.
# * *Stuck*: the modes are so far apart that each chain stays in its own. All samples together look right, but only because two chains started in each mode.
# * *Drift*: the chains are still on their way from distant starts, and no warm-up was thrown away.
# * *Missing mode*: all chains started in the same mode. They agree, and they are wrong.
#
# The first three of the bad runs are caught by the eye, by $\hat R$ and by `sample`.
# The last is the one to remember: half of the density has no sample, the reported mean is {c}`mean` instead of 0, and $\hat R$ is at most {c}`good` in this run and in the good one, where the other three have at least {c}`suspicious`.
# A diagnostic can show that chains disagree, but not that they are right, and only starts that are spread more widely than the target give it a chance.

# %% tags=["hide-input"]
suspicious = {"short steps", "stuck", "drift"}
check(
    "remarks",
    {name for name, said in remarks.items() if said} == suspicious,
    says="sample remarked on the runs with short steps, stuck and with drift, and on "
    "no others",
)
check(
    "good",
    max(r_hat["good"], r_hat["missing mode"]),
    at_most(1.01),
    digits=3,
    because="no diagnostic sees what no chain visited",
)
check(
    "suspicious",
    min(r_hat[name] for name in suspicious),
    at_least(1.4),
    because="stuck tends to 1.73 in long runs, the others have more",
)
missing = runs["missing mode"].samples.mean()
check("mean", missing, near(3, 0.2), because="the mode at 3; its error is 0.02")

# %% [markdown]
# **To remember:** let the flow from $x$ to $y$ equal the flow back; then, if the walk can reach every place, the share of the time that it spends at a place tends to its probability.
#
# A random walk, though, forgets at every step where it was going.
# A rolling ball does not, and {doc}`the next page </book/tutorial/hamiltonian_dynamics>` asks whether a computer can roll one.
#
# ## Change it
#
# * In the cell of {numref}`fig-three-states` give `P` the rows `[[0, 1, 0], [0, 0, 1], [1, 0, 0]]`. She goes round and round: her share of time is a third everywhere, but the probabilities jump for ever.
# * In the visible cell of the double well write `0.02` for `1.5`. A warm-up of 100 steps is too short for such steps: {numref}`fig-metropolis` shows paths that are still near their start.
# * In the cell before {numref}`fig-bad-chains` write `spread` for `torch.full((4, 1), 3.0)`, so that the starts of *missing mode* lie apart. Look at its $\hat R$ and at the table: wider starts gave the diagnostic its chance.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-chain-barker
#
# **Write it yourself.** ★★
# {cite:t}`barker1965` accepts a proposal with probability $\pi(\theta')/(\pi(\theta) + \pi(\theta'))$.
# Show that this is in detailed balance with $\pi$, and change `random_walk` accordingly.
#
# ```python
# def barker_walk(U, theta, step_size, num_steps, generator):
#     """Follow Barker's rule from θ (chains,); return (num_steps, chains)."""
#     ...
# ```
#
# Which of the two rules would you rather use?
# Assignment 3 of {doc}`/book/practice/teaching` asks for a number with an honest error, which is the other half of this page.
# ````
#
# ```{solution} ex-chain-barker
# :class: dropdown
#
# The flow is $q(\theta, \theta')\,\pi(\theta)\,\pi(\theta')/(\pi(\theta) + \pi(\theta'))$, which is symmetric.
# Only the line of the decision changes, because the probability is the logistic function of $U(\theta) - U(\theta')$:
#
#     accepted = torch.rand(theta.shape, generator=generator) < torch.sigmoid(
#         U(theta) - U(proposal)
#     )
#
# The rule is correct but wasteful: between two equally likely places it rejects half of the moves, where Metropolis rejects none.
# {class}`sgmc.kernels.base.Kernel` says how to write such a rule as a kernel of the package.
# ```
#
# ```{exercise}
# :label: ex-chain-order
#
# **Two rules in turn.** ★★
# Show that a product $P_1P_2$ of two kernels with the same stationary distribution has that distribution too.
# Is it in detailed balance if both are?
# ```
#
# ```{solution} ex-chain-order
# :class: dropdown
#
# $\pi P_1P_2 = \pi P_2 = \pi$.
# Run backwards, the product of two kernels in detailed balance is $P_2P_1$, so it is in detailed balance only if $P_1P_2 = P_2P_1$, which fails in general.
# Stationarity composes, detailed balance does not.
# ```
#
# ```{exercise}
# :label: ex-chain-tau
#
# **Predict, then run.** ★
# The autoregression $\theta_{t+1} = a\theta_t + N(0, 1 - a^2)$, $\lvert a\rvert < 1$, keeps $N(0, 1)$, because $a^2 + 1 - a^2 = 1$.
# Compute its $\tau$ for $f(\theta) = \theta$, and with it the error of an average of 1,000 steps at $a = 0.8$ and at $a = -0.8$.
# Then run 1,000 chains and look.
# ```
#
# ```{solution} ex-chain-tau
# :class: dropdown
#
# The correlation is $\rho_k = a^k$, so $\tau = 1 + 2a/(1 - a) = (1 + a)/(1 - a)$: 9 and $\frac19$.
# The error is $\sqrt{\tau/1000}$: 0.095 and 0.0105.
# Samples that alternate are worth more than independent ones, for the mean.
# For $f = \theta^2$ the correlation is $a^{2k}$, and the sign of $a$ is of no help.
#
#     theta, total = torch.randn(1_000), torch.zeros(1_000)
#     for _ in range(1_000):
#         theta = a * theta + (1 - a**2) ** 0.5 * torch.randn(1_000)
#         total += theta
#     print((total / 1_000).std())
#
# The next cell runs it at $a = -0.8$.
# ```

# %% tags=["hide-input"]
theta, total = torch.randn(1_000, generator=generator), torch.zeros(1_000)
for _ in range(1_000):
    theta = -0.8 * theta + 0.6 * torch.randn(1_000, generator=generator)
    total += theta
error = (total / 1_000).std()
words = "Error of an average of 1,000 steps at a = -0.8"
check("alternating", error, near((1 / 9_000) ** 0.5, 0.0015), digits=2, says=words)

# %% [markdown]
# ## Further reading
#
# {cite:t}`metropolis1953` and {cite:t}`hastings1970` are short and readable.
# {cite:t}`levin2009` has the theory on finite spaces and {cite:t}`roberts2004` on general ones; {cite:t}`vehtari2021` is on diagnostics.
