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
# Level: first course · Reading: about 70 minutes, without the exercises · Running: about 10 seconds
# ```
#
# To draw from a density that we cannot draw from, wander so that the time spent at each place is in proportion to it; then learn to tell whether the wandering worked.
#
# **You will learn** to
#
# * define a stationary law and detailed balance, and prove that the second implies the first,
# * derive random-walk Metropolis, and write a kernel of your own,
# * measure autocorrelation, effective sample size, Monte Carlo standard error and $\hat R$,
# * recognise four runs that went wrong, made so on purpose.
#
# **You will need** conditional probability, matrices, and {doc}`/book/tutorial/bayesian_learning` for the reason why.

# %%
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import arviz
import matplotlib.pyplot as plt
import torch
from matplotlib.patches import FancyArrowPatch
from torch import Tensor

from booklib.claims import claim
from booklib.diagnostics import expectation
from booklib.figures import COLOURS, TRUTH, plot_density, show_frames, use_style
from booklib.play import play
from booklib.tables import show_table
from sgmc import sample
from sgmc.kernels import Kernel
from sgmc.other_kernels import RandomWalkMetropolis
from sgmc.targets import DoubleWell, Gaussian, GaussianMixture

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## Three states
#
# Let a walker move between three states. In each she looks at the arrows that leave it, and follows one of them with the probability that is written on it; an arrow may lead back to where she stands.
# The probabilities are the entries of a matrix $P$: from state $x$ (row) to state $y$ (column).
# She starts in state 1. The probabilities of the three states are then $p_0 = (1, 0, 0)$, after one step $p_1 = p_0P$, after two $p_2 = p_1P$, and so on.
#
# So $p_t$ is the *law*, the probability distribution, of the walker after $t$ steps.

# %%
P = torch.tensor(
    [[0, 1 / 2, 1 / 2], [1 / 3, 1 / 6, 1 / 2], [1 / 5, 3 / 10, 1 / 2]],
    dtype=torch.float64,
)
pi = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
laws = [torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)]
for _ in range(8):
    laws.append(laws[-1] @ P)

# %% mystnb={"figure": {"caption": "Left: a Markov chain on three states, with the probability of each move; the area of a disc is the probability that the walker is there. Right: the same probabilities as bars, and the law $\\pi = (0.2, 0.3, 0.5)$ as grey lines. The film has the steps from $t = 0$ to 8; the picture that stays is the last.", "name": "fig-three-states"}} tags=["hide-input"]
places = {0: (0.0, 1.25), 1: (-1.3, -0.75), 2: (1.3, -0.75)}
outwards = {0: (0, 0.9), 1: (-0.85, -0.55), 2: (0.85, -0.55)}


def draw_law(t):
    """Draw the graph with the walker's law after t steps, and the law as bars."""
    figure, (graph, bars) = plt.subplots(1, 2, figsize=(5, 3), width_ratios=(1.7, 1))
    for x, (left, low) in places.items():
        graph.scatter(left, low, s=120 + 2_600 * laws[t][x], color="#56B4E9", zorder=1)
        graph.text(left, low, str(x + 1), ha="center", va="center", zorder=4)
        for y, (right, high) in places.items():
            if P[x, y] == 0:
                continue
            if x == y:
                a, b = outwards[x]
                ends = (
                    (left + 0.30 * a - 0.2 * b, low + 0.30 * b + 0.2 * a),
                    (left + 0.30 * a + 0.2 * b, low + 0.30 * b - 0.2 * a),
                )
                bend, place = -1.6, (left + 0.85 * a, low + 0.85 * b)
            else:
                a, b = right - left, high - low
                ends = (
                    (left + 0.2 * a, low + 0.2 * b),
                    (right - 0.2 * a, high - 0.2 * b),
                )
                bend = 0.3
                place = (left + 0.37 * a + 0.08 * b, low + 0.37 * b - 0.08 * a)
            graph.add_patch(
                FancyArrowPatch(
                    *ends,
                    connectionstyle=f"arc3,rad={bend}",
                    arrowstyle="-|>",
                    mutation_scale=9,
                    color="0.35",
                    lw=0.9,
                    zorder=3,
                )
            )
            word = Fraction(float(P[x, y])).limit_denominator(20)
            graph.text(
                *place,
                str(word),
                fontsize=9,
                ha="center",
                va="center",
                bbox={"color": "white", "pad": 0.5},
                zorder=3,
            )
    graph.set(xlim=(-2.4, 2.4), ylim=(-1.75, 1.9), aspect="equal")
    graph.axis("off")
    bars.bar([1, 2, 3], laws[t], width=0.6, color="#56B4E9")
    for x, share in enumerate(pi, start=1):
        bars.plot([x - 0.42, x + 0.42], [share, share], color="0.3", lw=2)
    bars.set(xlabel="state", xticks=[1, 2, 3], ylim=(0, 1.02), title=f"$p_{t}$")
    return figure


show_frames(
    (draw_law(t) for t in range(9)),
    "A graph of three states with arrows between them, beside three bars. At first "
    "all probability is in state 1; it goes back and forth, and after about five "
    "steps the bars stand at 0.2, 0.3 and 0.5, where they stay.",
    seconds=0.8,
)

# %% [markdown]
# Play {numref}`fig-three-states`: the probability that was all in state 1 leaves it, comes back in part, and after about five steps it no longer moves, although the walker does.
# It has come to the law $\pi = (0.2, 0.3, 0.5)$. Had we wanted to draw from $\pi$, we could have let her walk, and looked now and then where she is.
# This is the idea of the whole chapter. It needs two things: a law that the walk keeps, and a way to choose the arrows so that this law is the one we want.

# %% tags=["hide-input"]
claim(
    "Largest distance of the walker's law from π after five steps",
    (laws[5] - pi).abs().max(),
    at_most=0.005,
    because="the powers of a matrix of three rows",
    kind="exact",
)

# %% [markdown]
# ```{prf:definition} Markov chain, stationary law, detailed balance
# :label: def-markov-chain
#
# A *Markov chain* moves from state $x$ to state $y$ with probability $P(x, y)$, whatever came before. The rule $P$ is its *kernel*.
#
# A law $\pi$ is *stationary* for it if a chain whose start has the law $\pi$ has this law after a step too, that is, for all $y$
#
# $$
# \sum_x\pi(x)P(x, y) = \pi(y).
# $$ (eq-stationary)
#
# The chain is in *detailed balance* with $\pi$ if $\pi(x)P(x, y) = \pi(y)P(y, x)$ for all $x$ and $y$.
# ```
#
# Think of $\pi$ as water in ponds. It is stationary if no level changes; it is in detailed balance if in every single pipe as much flows from $x$ to $y$ as back.
#
# ```{prf:theorem} Detailed balance
# :label: thm-detailed-balance
#
# If a chain is in detailed balance with $\pi$, then $\pi$ is stationary.
# ```
#
# ```{prf:proof}
# Sum over $x$: $\sum_x\pi(x)P(x, y) = \sum_x\pi(y)P(y, x)$. On the right $\pi(y)$ does not depend on $x$, and $\sum_xP(y, x) = 1$, because from $y$ the chain goes somewhere. So the sum is $\pi(y)$.
# ```
#
# Detailed balance is more than we need, and easy to arrange.
# Stationarity alone does not bring a chain to $\pi$: a chain that never moves keeps every law.
# But suppose that a chain on finitely many states can get from every state to every other, and is not *periodic*: its returns to a state are not confined to every second step, or every third, and so on. Then its law converges to $\pi$ from any start, and averages along one path converge to averages under $\pi$ ({prf:ref}`thm-finite-chain`). Such a chain is called *ergodic*. Much the same holds for densities {cite:p}`roberts2004`.
#
# Where did the arrows of {numref}`fig-three-states` come from? The recipe is: propose one of the two other states, each with probability $\frac12$. Accept the proposal $y$ with probability $\min(1, \pi(y)/\pi(x))$; after a refusal stay where you are for this step.
# From state 2 to state 1, for instance: $\frac12\cdot\frac{0.2}{0.3} = \frac13$. For $x \ne y$ the recipe gives $\pi(x)P(x, y) = \frac12\min(\pi(x), \pi(y))$, which is the same if $x$ and $y$ are exchanged: detailed balance.
#
# How fast does the chain converge? Look for laws, or differences of laws, that a step only multiplies by a number. These are rows $u$ with $uP = \lambda u$, the *left eigenvectors* of $P$ with their eigenvalues $\lambda$. Here there are three, and a line of arithmetic checks each:
#
# * $\pi P = \pi$, with the eigenvalue 1;
# * $u = (1, -1, 0)$, after a step, is the first row of $P$ less the second, $uP = (-\tfrac13, \tfrac13, 0) = -\tfrac13u$;
# * $w = (0.2, 0.3, -0.5)$ has $wP = 0$.
#
# The start is a sum of them, $p_0 = (1, 0, 0) = \pi + 0.6\,u + w$, and each step multiplies every part by its eigenvalue:
#
# $$
# p_t = \pi + 0.6\,\bigl(-\tfrac13\bigr)^tu \qquad \text{for } t \ge 1.
# $$ (eq-three-states)
#
# So the distance from $\pi$ shrinks by a factor of three at each step, and changes its sign, which is the going back and forth in the film. For other chains, too, it is in the end the largest of the other eigenvalues, in size, that tells the speed.

# %%
recipe = 0.5 * torch.minimum(torch.ones(3, 3), pi[None, :] / pi[:, None]).double()
recipe -= torch.diag(recipe.sum(1) - 1)  # what was refused stays
flow = pi[:, None] * P  # from each state to each, in equilibrium
u = torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64)
by_step = list(enumerate(laws))[1:]

# %% tags=["hide-input"]
claim(
    "Largest difference between the recipe's probabilities and those in the figure",
    (recipe - P).abs().max(),
    at_most=1e-14,
    because="exact algebra; rounding",
    kind="exact",
)
claim(
    "Largest violation of detailed balance",
    (flow - flow.T).abs().max(),
    at_most=1e-14,
    because="exact algebra; rounding",
    kind="exact",
)
claim(
    "Largest distance of the laws after 1 to 8 steps from π + 0.6 (−1/3)ᵗ (1, −1, 0)",
    max((law - pi - 0.6 * (-1 / 3) ** t * u).abs().max() for t, law in by_step),
    at_most=1e-14,
    because="the eigenvalues of P are 1, −1/3 and 0; rounding",
    kind="exact",
)

# %% [markdown]
# ## Random-walk Metropolis
#
# The same recipe works for densities, and it only needs *ratios*: the unknown constant in $\pi(\theta) \propto e^{-U(\theta)}$ cancels {cite:p}`metropolis1953`.
# Sums over states become integrals, and the kernel $P(\theta, \theta')$ for $\theta' \ne \theta$ is the probability density of a move from $\theta$ to $\theta'$.
#
# ```{prf:algorithm} Random-walk Metropolis
# :label: alg-random-walk
#
# **Input:** step size $\varepsilon$
#
# Repeat: propose $\theta' = \theta + N(0, \varepsilon^2I)$; move there with probability $\min\bigl(1, e^{U(\theta) - U(\theta')}\bigr)$, otherwise stay.
# ```
#
# ```{prf:theorem} Random-walk Metropolis is right
# :label: thm-metropolis
#
# Random-walk Metropolis is in detailed balance with $\pi \propto e^{-U}$.
# ```
#
# ```{prf:proof}
# Let $q(\theta, \theta')$ be the density of the proposal, symmetric in its arguments. For $\theta' \ne \theta$ the flow of probability is
#
# $$
# \begin{aligned}
# \pi(\theta)P(\theta, \theta') &= \pi(\theta)\,q(\theta, \theta')\min\Bigl(1, \frac{\pi(\theta')}{\pi(\theta)}\Bigr)\\
# &= q(\theta, \theta')\min\bigl(\pi(\theta), \pi(\theta')\bigr),
# \end{aligned}
# $$ (eq-metropolis-flow)
#
# symmetric too. A refusal moves no probability.
# ```
#
# With a proposal that is not symmetric, $q(\theta', \theta)/q(\theta, \theta')$ joins the ratio {cite:p}`hastings1970`.
# In code it is a dozen lines for one chain in one dimension. Take the double well $U(\theta) = -2\theta^2 + \theta^4$, whose density has two humps:


# %%
def U(theta):
    return -2 * theta**2 + theta**4


def random_walk(theta, step_size, num_steps, generator):
    """Follow random-walk Metropolis from a start; return every state it was in."""
    draws = []
    for _ in range(num_steps):
        proposal = theta + step_size * torch.randn((), generator=generator)
        ratio = torch.exp(U(theta) - U(proposal))  # of the densities
        if torch.rand((), generator=generator) < ratio:
            theta = proposal
        draws.append(theta)  # after a refusal the same state once more
    return torch.stack(draws)


# %% [markdown]
# The package does the same for many chains at once. Its positions are tensors `(chains, dim)`, so that a thousand chains cost little more than one; `accept` makes the decision for each of them. `Guarded` sees to it that no chain moves to where the energy cannot be computed.
#
# ```{literalinclude} ../../sgmc/other_kernels/random_walk.py
# :language: python
# :pyobject: RandomWalkMetropolis.step
# ```

# %% tags=["hide-input"]
well = DoubleWell()
torch.set_default_dtype(torch.float64)  # in which rounding decides nothing
by_hand = random_walk(torch.tensor(0.3), 1.5, 200, torch.Generator().manual_seed(5))
by_package = sample(
    RandomWalkMetropolis(1.5), well, torch.tensor([[0.3]]), num_samples=200, seed=5
)
torch.set_default_dtype(torch.float32)
claim(
    "Largest difference between 200 states of the dozen lines and of the package",
    (by_hand - by_package.samples[:, 0, 0]).abs().max(),
    at_most=1e-12,
    because="the same rule and the same random numbers; rounding in double precision",
    kind="exact",
)

# %% [markdown]
# Try it on the double well in 1,000 chains. They start at the top of the hill between the wells, which is no draw from $\pi$, so the first 100 steps of each are thrown away: the *warm-up*.
#
# All chapters draw with `sample`. It takes a kernel, a potential, the starts `(chains, dim)` and the number of draws that are to be kept, and returns an object with two parts.
# `samples` is the tensor of the draws, `(draws, chains, dim)`, so that `good.samples[:, 0, 0]` is the path of the first chain's first coordinate.
# `statistics` is a dictionary of what the kernel reports of every step, such as its acceptance. `mean_and_standard_error` averages a function of the draws, and tells by the spread between the chains how well the average is known.
#
# **Count rejections.** A chain that stays must record its position *again*; forgetting that is the commonest bug of beginners.
# Where would it lead? A chain that only records its moves records $\theta$ as often as it is left, that is with a density in proportion to the flow {eq}`eq-metropolis-flow` out of it, $\int q(\theta, \theta')\min(\pi(\theta), \pi(\theta'))\,d\theta'$. Refusals are most frequent where the density is high, so there this is too small.

# %%
good = sample(
    RandomWalkMetropolis(1.5),
    well,
    torch.zeros(1_000, 1),
    num_samples=1_000,
    warm_up=100,
    seed=1,
)
exact = expectation(well, lambda x: x**2, -4, 4)
value, error = good.mean_and_standard_error(lambda x: x**2)

# %% mystnb={"figure": {"caption": "Random-walk Metropolis in the double well. Above: the first 300 steps of one chain; the flat pieces are rejections. Below: a million draws against the true density.", "name": "fig-metropolis"}, "image": {"alt": "Above, a jagged path between -1.5 and 1.5 with many flat pieces. Below, a histogram with humps at -1 and 1 that lies exactly on the grey density."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(2, 1, figsize=(5.2, 5))
left.plot(good.samples[:300, 0, 0], color=COLOURS["random walk"], lw=0.8)
left.set(xlabel="step", ylabel=r"$\theta$")
plot_density(right, well, -2.2, 2.2)
right.hist(
    good.samples.flatten().numpy(),
    bins=90,
    range=(-2.2, 2.2),
    density=True,
    histtype="step",
    color=COLOURS["random walk"],
    label="random walk",
)
right.set(xlabel=r"$\theta$", ylabel="density", ylim=(0, 0.66))
right.legend(loc="upper center", ncols=2)
plt.show()

# %% [markdown]
# In {numref}`fig-metropolis` look at the flat pieces of the path: there a proposal was refused, and the state is recorded again. Some moves stay in one well, others leap across. Below, the histogram of all draws covers the grey density.

# %% tags=["hide-input"]
claim(
    "E[θ²] of the double well",
    value,
    near=round(exact, 5),
    standard_error=error,
    because="quadrature, and the spread between 1,000 chains",
)

grid = torch.linspace(-3, 3, 601, dtype=torch.float64)
density = torch.exp(-well.energy(grid[:, None]))
proposal = torch.exp(-((grid[:, None] - grid) ** 2) / (2 * 1.5**2))
left_from = (proposal * torch.minimum(density[:, None], density)).sum(1)
moved = good.samples[1:] != good.samples[:-1]
claim(
    "E[θ²] of the double well when rejections are not counted",
    good.samples[1:][moved].double().pow(2).mean(),
    near=round(float((grid**2 * left_from).sum() / left_from.sum()), 4),
    within=0.006,
    because=(
        "the flow out of each place, by quadrature; the Monte Carlo standard error is "
        "0.001. It is a tenth too low"
    ),
)

# %% [markdown]
# ## A kernel of your own
#
# In the package a kernel says in which state a chain starts, `init`, and how it moves, `step`.
# The *state* is all that a chain needs to go on; what a step *learned* is kept apart, and becomes a statistic of the draws.
# Whoever writes these two has the rest from `sample`: many chains, warm-up, statistics, checkpoints, and the way to ArviZ.
#
# Take another rule of acceptance.
# Detailed balance asks for a flow that is symmetric, and the smaller of $\pi(\theta)$ and $\pi(\theta')$ is not the only symmetric function of the two.
# {cite:t}`barker1965` accepts with probability $\pi(\theta')/(\pi(\theta) + \pi(\theta'))$, which is the logistic function of $U(\theta) - U(\theta')$, and has the flow
#
# $$
# q(\theta, \theta')\,\frac{\pi(\theta)\,\pi(\theta')}{\pi(\theta) + \pi(\theta')}.
# $$ (eq-barker-flow)


# %%
class State(NamedTuple):
    position: Tensor  # (chains, dim)
    energy: Tensor  # U there, (chains,)


class Info(NamedTuple):
    acceptance: Tensor  # (chains,)


@dataclass(frozen=True)
class Barker(Kernel):
    step_size: float

    def init(self, potential, position, generator):
        return State(position.clone(), potential.energy(position))

    def step(self, potential, state, generator):
        noise = torch.randn(state.position.shape, generator=generator)
        position = state.position + self.step_size * noise
        energy = potential.energy(position)
        acceptance = torch.sigmoid(state.energy - energy)
        accepted = torch.rand(energy.shape, generator=generator) < acceptance
        position = torch.where(accepted[:, None], position, state.position)
        energy = torch.where(accepted, energy, state.energy)
        return State(position, energy), Info(acceptance)


start = torch.zeros(1_000, 1)
barker = sample(Barker(1.5), well, start, num_samples=1_000, warm_up=100, seed=1)
value, error = barker.mean_and_standard_error(lambda x: x**2)

# %% tags=["hide-input"]
claim(
    "E[θ²] of the double well by Barker's rule",
    value,
    near=round(exact, 5),
    standard_error=error,
    because="quadrature; 1,000 chains",
)
flow = proposal * density[:, None] * density / (density[:, None] + density)
spacing, normaliser = 0.01, 1.5 * (2 * torch.pi) ** 0.5  # of the grid; of the proposal
accepted = float(flow.sum() * spacing / density.sum() / normaliser)
acceptance = barker.statistics["acceptance"].double().mean(0)  # of each chain
claim(
    "Mean acceptance by Barker's rule",
    acceptance.mean(),
    near=round(accepted, 5),
    standard_error=acceptance.std() / 1_000**0.5,
    because="the flow out of all places, by quadrature; 1,000 chains",
)

# %% [markdown]
# So the rule is right, and it is not the best.
# Between places of equal density it refuses every other move, which Metropolis would always make.
# Given the proposals, no rule in detailed balance accepts more moves than Metropolis does, and so none has, in long runs, averages of smaller variance {cite:p}`peskun1973`.
#
# ## How much is a draw worth?
#
# Draws of a chain resemble their neighbours. Let the chain be stationary, and let the *autocorrelation* $\rho_k$ be the correlation of $f(\theta_t)$ with $f(\theta_{t+k})$.
# The variance of an average of $S$ draws is the sum of all covariances over $S^2$, and $S - k$ pairs are $k$ apart ({prf:ref}`thm-tau`):
#
# $$
# \begin{aligned}
# \operatorname{Var}\Bigl[\frac1S\sum_{t=1}^Sf(\theta_t)\Bigr] &= \frac{\operatorname{Var}f}{S}\Bigl[1 + 2\sum_{k=1}^{S-1}\Bigl(1 - \frac kS\Bigr)\rho_k\Bigr]\\
# &\approx \frac{\operatorname{Var}f}S\,\tau,\\
# \tau &= 1 + 2\sum_{k\ge1}\rho_k.
# \end{aligned}
# $$ (eq-tau)
#
# Independent draws have $\tau = 1$. So $S$ draws of a chain are worth an *effective sample size* of $S/\tau$, and the *Monte Carlo standard error* of their average is $\sqrt{\tau\operatorname{Var}f/S}$. The number $\tau$ is the *integrated autocorrelation time*: how many steps it takes to get one more independent draw. It depends on $f$.
#
# From a few chains $\tau$ must be estimated from noisy correlations, for which we use the package ArviZ {cite:p}`kumar2019,vehtari2021`.
# From many independent chains there is a way without any such estimate: the chains' averages are independent, so their standard deviation over the square root of their number is the standard error of the grand mean ({prf:ref}`thm-chains-standard-error`). This is why the book runs many chains at once, and where the standard errors of its claims come from.
# Do the two ways agree? Take 400 chains in 100 groups of four.

# %%
run = sample(
    RandomWalkMetropolis(1.5),
    well,
    torch.zeros(400, 1),
    num_samples=2_000,
    warm_up=100,
    seed=2,
)
draws = (
    run.to_arviz().posterior["position"].values.astype(float)
)  # chains first, as ArviZ has them
groups = draws.reshape(100, 4, 2_000)
estimated = sum(float(arviz.mcse(chains)) for chains in groups) / len(groups)
ratio = estimated / groups.mean((1, 2)).std(ddof=1)

# %% tags=["hide-input"]
claim(
    "ArviZ's standard error from 4 chains, averaged over 100 groups, relative to the "
    "spread of the groups' means",
    ratio,
    near=1,
    standard_error=ratio / (2 * 99) ** 0.5,
    because="a standard deviation from 100 values is known to 7 %",
)

# %% [markdown]
# ## The step size
#
# On a standard Gaussian in one dimension the mean acceptance is exactly $\frac2\pi\arctan\frac2\varepsilon$ ({ref}`ex-chain-acceptance`). The best step size is near 2.4, with an acceptance of 0.44 {cite:p}`gelman1996`; in many dimensions the best acceptance falls to 0.23 {cite:p}`roberts1997`.
# {numref}`fig-step-size` tries thirteen step sizes.

# %%
step_sizes = torch.logspace(-1, 1, 13).tolist()
start = torch.randn(50, 1, generator=torch.Generator().manual_seed(0))
normal, runs = Gaussian.standard(1), []
with warnings.catch_warnings():  # the smallest steps are too small, and that is known
    warnings.filterwarnings("ignore", message=".*do not agree")
    for step_size in step_sizes:
        kernel = RandomWalkMetropolis(step_size)
        runs.append(sample(kernel, normal, start, num_samples=2_000, seed=2))
effective = [
    arviz.ess(run.to_arviz(), method="mean")["position"].item() / run.samples.numel()
    for run in runs
]
of_chains = torch.stack([run.statistics["acceptance"].double().mean(0) for run in runs])
acceptance = of_chains.mean(1)
theory = 2 / torch.pi * torch.atan(2 / torch.tensor(step_sizes, dtype=torch.float64))


# %% mystnb={"figure": {"caption": "Random-walk Metropolis on a standard Gaussian. Above: autocorrelation of $\\theta$ for a step that is too small, good, and too large. Below: acceptance (grey: exact) and effective samples per draw. Too small a step crawls, too large a step is refused.", "name": "fig-step-size"}, "image": {"alt": "Above, three falling curves of autocorrelation: the step 2.2 reaches zero after ten lags, 10 after forty, 0.32 is still at 0.2 there. Below, over the step size, acceptance falls from one to a tenth, on its exact curve; effective samples per draw rise from zero to about 0.22 near a step of 2.2 and fall again."}} tags=["hide-input"]
def autocorrelation(draws, num_lags):
    """Autocorrelation at lags 0, 1, … of draws (S, chains) with mean zero."""
    products = torch.stack(
        [(draws[: len(draws) - k] * draws[k:]).mean() for k in range(num_lags)]
    )
    return products / products[0]


figure, (left, right) = plt.subplots(2, 1, figsize=(5.2, 5.6))
for i, style in ((3, "--"), (8, "-"), (12, ":")):
    left.plot(
        autocorrelation(runs[i].samples[..., 0], 41),
        style,
        color=COLOURS["random walk"],
        label=rf"$\varepsilon$ = {step_sizes[i]:.2g}",
    )
left.axhline(0, color=TRUTH, lw=0.8, zorder=0)
left.set(xlabel="lag $k$", ylabel=r"autocorrelation $\rho_k$", ylim=(-0.05, 1.02))
left.legend(loc="upper right", bbox_to_anchor=(1, 0.9))
right.semilogx(step_sizes, theory, color=TRUTH)
right.semilogx(
    step_sizes, acceptance, "x", color=COLOURS["random walk"], label="acceptance"
)
right.semilogx(
    step_sizes,
    effective,
    "o-",
    ms=4,
    color=COLOURS["random walk"],
    label="effective samples per draw",
)
right.set(xlabel=r"step size $\varepsilon$", ylim=(0, 1.25))
right.legend()
plt.show()

# %% [markdown]
# In the upper part of {numref}`fig-step-size` the correlation of draws dies away fastest for the middle one of the three steps. In its lower part acceptance falls all the way from left to right, while the effective draws rise and fall: neither the boldest nor the most timid step is best.
#
# Even at its best this sampler gives one independent draw for four or five steps, and that in one dimension. In $d$ dimensions a proposal must suit all coordinates at once. The step must then shrink like $d^{-1/2}$, and the number of steps for an independent draw grows like $d$ {cite:p}`roberts1997`.

# %% tags=["hide-input"]
claim(
    "Largest distance of 13 acceptances from (2/π)arctan(2/ε), in standard errors",
    ((acceptance - theory).abs() / (of_chains.std(1) / 50**0.5)).max(),
    at_most=5.5,
    because=(
        "13 comparisons with Student's t of 49 degrees of freedom: exceeded once in "
        "50,000 runs"
    ),
)
claim(
    "Steps for one effective draw at the best of the step sizes",
    1 / max(effective),
    near=4.5,
    within=0.4,
    because=("it was 4.3 to 4.6 in runs with five seeds"),
)
claim(
    "Step size with the most effective samples, as a multiple of 2.4",
    step_sizes[effective.index(max(effective))] / 2.4,
    near=1,
    within=0.45,
    because=(
        "theory says 2.4; the optimum is flat, and neighbours on the grid differ by a "
        "factor of 1.47"
    ),
)

# %% [markdown]
# ## Four bad runs
#
# Effective sample sizes are meaningless before the chains have arrived. *Have* they arrived? $\hat R$ asks whether the chains can be told apart.
# Let each chain have $S$ draws, let $W$ be the mean of the variances within the chains, and $A$ the variance of the chains' averages. Then
#
# $$
# \hat R = \sqrt{\frac{W(S - 1)/S + A}{W}}
# $$ (eq-r-hat)
#
# is the spread of all draws together over the spread within chains, near 1 if all chains see the same law {cite:p}`gelman1992`. ArviZ refines it in two ways {cite:p}`vehtari2021`. It cuts every chain in two {cite:p}`gelman2013`, so that a drift shows as a difference between the halves. And it sorts all draws and works with their ranks, put on the scale of a standard Gaussian, so that a few extreme draws do no harm. Above 1.01 be suspicious.
#
# Here are a good run and four bad ones, of four chains each; the last is one that no diagnostic can catch.
#
# * *Short steps*: the chains crawl.
# * *Stuck*: the modes of a mixture are so far apart that each chain stays in its own. All draws together look right, but only because two chains started in each mode.
# * *Drift*: chains that are still on their way from a far start, and no warm-up thrown away.
# * *Missing mode*: all chains start in the same mode. Everything agrees, and all of it is wrong.

# %%
two_modes = GaussianMixture(torch.tensor([[-3.0], [3.0]]), variance=0.25)
normal = Gaussian.standard(1)
spread = torch.linspace(-3, 3, 4)[:, None]
settings = {
    "good": (RandomWalkMetropolis(2.4), normal, spread, 200),
    "short steps": (RandomWalkMetropolis(0.05), normal, spread, 0),
    "stuck": (RandomWalkMetropolis(0.7), two_modes, spread.sign() * 3, 200),
    "drift": (RandomWalkMetropolis(0.3), normal, 20 * spread, 0),
    "missing mode": (
        RandomWalkMetropolis(0.7),
        two_modes,
        torch.full((4, 1), 3.0),
        200,
    ),
}
runs, remarks = {}, {}
for name, (kernel, potential, start, warm_up) in settings.items():
    with warnings.catch_warnings(record=True) as warned:
        runs[name] = sample(kernel, potential, start, 1_000, warm_up=warm_up, seed=3)
    remarks[name] = [str(warning.message).partition(": ")[0] for warning in warned]
r_hat = {
    name: arviz.rhat(run.to_arviz())["position"].item() for name, run in runs.items()
}

# %% tags=["hide-input"]
show_table(
    ["run", "what sample remarked"],
    [[name, "; ".join(said) or "nothing"] for name, said in remarks.items()],
)

# %% [markdown]
# `sample` looks at its own draws, and remarked on three of the four bad runs, in warnings that also name the chains. The table has what it said. It had nothing to say of the good run, and nothing of the last one, where all that it sees is in order.

# %% mystnb={"figure": {"caption": "Five runs of four chains each, with their $\\hat R$. Left: the chains, one colour each. Right: all draws together (line) against the true density (grey).", "name": "fig-bad-chains"}, "image": {"alt": "Five rows. Good: four paths mixed together, the histogram on the density. Short steps: four smooth paths that keep apart, a ragged histogram. Stuck: two paths at 3 and two at -3, the histogram on both modes. Drift: paths that come in from far on both sides. Missing mode: four paths mixed together at 3, and no draws at the mode at -3."}} tags=["hide-input"]
figure, panels = plt.subplots(5, 2, figsize=(5.2, 8), width_ratios=(2.2, 1))
for (axes, side), (name, run) in zip(panels, runs.items(), strict=True):
    values = run.samples[..., 0]
    for chain, colour in enumerate(("#000000", "#E69F00", "#56B4E9", "#009E73")):
        axes.plot(values[:, chain], color=colour, lw=0.5)
    axes.set_title(rf"{name}: $\hat R$ = {r_hat[name]:.2f}", loc="left", fontsize=10)
    axes.set_ylabel(r"$\theta$")
    limit = max(4.5, float(values.abs().max()))
    plot_density(side, settings[name][1], -limit, limit)
    side.hist(
        values.flatten().numpy(),
        bins=60,
        range=(-limit, limit),
        density=True,
        histtype="step",
        color=COLOURS["random walk"],
        lw=1,
    )
    side.set_yticks([])
panels[-1, 0].set_xlabel("step")
panels[-1, 1].set_xlabel(r"$\theta$")
plt.show()

# %% [markdown]
# In {numref}`fig-bad-chains` compare the left column with the right. Short steps and drift show in the paths; the stuck chains have a perfect histogram and paths that never meet.
# The last row is the one to remember: the chains agree, and half of the density has no draw. A diagnostic can show that chains disagree; it cannot show that they are right. Only starts that are more widely spread than the target give it a chance.

# %% tags=["hide-input"]
claim(
    "sample remarked on the runs with short steps, stuck and with drift, and on no "
    "others",
    {name for name, said in remarks.items() if said}
    == {"short steps", "stuck", "drift"},
    because="each of these has an R̂ far above 1.01",
)
claim(
    "R̂ of the good chains",
    r_hat["good"],
    at_most=1.02,
    because="it was 1.003 to 1.010 in runs with five seeds",
)
claim(
    "R̂ with short steps",
    r_hat["short steps"],
    at_least=1.5,
    because=(
        "1,000 steps of 0.05 wander about 1.6, the starts are 2 apart; it was 2.5 to "
        "3.7 in runs with five seeds"
    ),
)
claim(
    "R̂ of the stuck chains",
    r_hat["stuck"],
    near=1.73,
    within=0.06,
    because=(
        "all ranks of two chains lie below those of the others: √(1 + (8/7)(2/π)/(1 − "
        "2/π)) for eight half chains"
    ),
)
claim(
    "R̂ of the drifting chains",
    r_hat["drift"],
    at_least=1.5,
    because="it was 1.87 to 2.09 in runs with six seeds",
)
claim(
    "R̂ where all chains miss the same mode",
    r_hat["missing mode"],
    at_most=1.05,
    because="no diagnostic sees what no chain visited",
)
claim(
    "The mean that those chains report, where 0 is right",
    runs["missing mode"].samples.mean(),
    near=3,
    within=0.2,
    because=(
        "they sit in the mode at 3; 4,000 draws of variance 0.25, worth about 500, "
        "have a standard error of 0.02"
    ),
)

# %% [markdown]
# ## In practice
#
# * Start chains far apart, throw the warm-up away, and look at the traces.
# * Report every average with its {term}`Monte Carlo error`; two averages differ only if they differ by several of these.
# * *Thinning*, keeping only every $k$-th draw, loses information; thin only to save memory, or work on the draws.
# * A random walk slows down in proportion to the dimension. Gradients tell where to go: {doc}`/book/tutorial/hamiltonian_dynamics`.
#
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | stationary law | $\sum_x\pi(x)P(x, y) = \pi(y)$ | {eq}`eq-stationary` |
# | detailed balance | $\pi(x)P(x, y) = \pi(y)P(y, x)$ | {prf:ref}`def-markov-chain` |
# | Metropolis | accept with $\min\bigl(1, e^{U(\theta) - U(\theta')}\bigr)$ | {prf:ref}`alg-random-walk` |
# | its flow | $q(\theta, \theta')\min\bigl(\pi(\theta), \pi(\theta')\bigr)$ | {eq}`eq-metropolis-flow` |
# | autocorrelation time | $\tau = 1 + 2\sum_{k\ge1}\rho_k$ | {eq}`eq-tau` |
# | standard error of an average | $\sqrt{\tau\operatorname{Var}f/S}$ | {eq}`eq-tau` |
# | agreement of chains | $\hat R = \sqrt{(S - 1)/S + A/W}$ | {eq}`eq-r-hat` |
#
# ## Change it
#
# * Give the walker's matrix `P` the rows `[[0, 1, 0], [0, 0, 1], [1, 0, 0]]`. She goes round and round: the film shows all probability hopping from state to state for ever, and the claim on the distance after five steps shows ✗, as do the next three. This chain is periodic.
# * Among the bad runs write `spread` for `torch.full((4, 1), 3.0)`, so that the starts of *missing mode* lie apart. Its $\hat R$ shows ✗, and now `sample` remarks on it: wider starts gave the diagnostic its chance.
# * In the run of the double well, `good = sample(...)`, write `RandomWalkMetropolis(0.02)`. The 100 steps of warm-up are too few for such steps: $E[\theta^2]$ shows ✗.
#
# ## Exercises
#
# ````{exercise} Write it yourself
# :label: ex-chain-write
#
# Write $\hat R$ as {eq}`eq-r-hat` defines it, without the refinements of ArviZ.
#
# ```python
# def r_hat_by_hand(draws):
#     """R̂ of draws (chains, draws), a tensor."""
#     within = ...  # W, the mean of the variances within the chains
#     between = ...  # A, the variance of the chains' averages
#     return ...
# ```
#
# Which of the five runs does it judge otherwise than ArviZ did?
# Assignment 3 of {doc}`/book/practice/teaching` asks for a number with an honest error, which is another use of the variance between chains.
# ````
#
# ```{solution} ex-chain-write
# :class: dropdown
#
# The code is in the next cell. It has the same verdict on all five: the refinements are for drifts that all chains share, and for heavy tails.
# ```


# %% tags=["hide-input"]
def r_hat_by_hand(draws):
    """R̂ of draws (chains, draws), a tensor."""
    within = draws.var(1).mean()
    between = draws.mean(1).var()
    num_draws = draws.shape[1]
    return ((within * (num_draws - 1) / num_draws + between) / within).sqrt()


plain = {
    name: r_hat_by_hand(run.samples[..., 0].T.double()) for name, run in runs.items()
}
claim(
    "Largest relative difference between R̂ by hand and ArviZ's unrefined R̂",
    max(
        abs(
            value
            / arviz.rhat(runs[name].to_arviz(), method="identity")["position"].item()
            - 1
        )
        for name, value in plain.items()
    ),
    at_most=1e-4,
    because="the same formula; rounding in single precision",
    kind="exact",
)
claim(
    "R̂ by hand is above 1.1 for the runs with short steps, stuck and with drift, and "
    "for no others",
    [value > 1.1 for value in plain.values()] == [False, True, True, True, False],
    because=(
        "good and missing mode had at most 1.01, the others at least 1.3 in runs with "
        "five seeds"
    ),
)

# %% [markdown]
# ```{exercise}
# :label: ex-chain-order
#
# Show that a product $P_1P_2$ of two kernels with the same stationary law has that law too. Is it in detailed balance if both are?
# ```
#
# ```{solution} ex-chain-order
# :class: dropdown
#
# $\pi P_1P_2 = \pi P_2 = \pi$. Run backwards, the product of two kernels in detailed balance is $P_2P_1$; so it is in detailed balance only if $P_1P_2 = P_2P_1$, which fails in general. Stationarity composes, detailed balance does not.
# ```
#
# ```{exercise}
# :label: ex-chain-tau
#
# Compute $\tau$ of $f(\theta) = \theta$ for the autoregression $\theta_{t+1} = a\theta_t + N(0, 1 - a^2)$, $\lvert a\rvert < 1$. What happens for negative $a$?
# ```
#
# ```{solution} ex-chain-tau
# :class: dropdown
#
# The stationary law is $N(0, 1)$, because $a^2 + 1 - a^2 = 1$. The correlation $\rho_k = a^k$, so $\tau = 1 + 2a/(1 - a) = (1 + a)/(1 - a)$. For negative $a$ it is below one: draws that alternate are worth more than independent ones, for the mean. For $f = \theta^2$ the correlation is $a^{2k}$, and the sign of $a$ is of no help.
# ```
#
# ```{exercise}
# :label: ex-chain-acceptance
#
# Show that on a standard Gaussian in one dimension the acceptance of random-walk Metropolis in equilibrium is $\frac2\pi\arctan\frac2\varepsilon$. By {eq}`eq-metropolis-flow`, as many accepted moves go uphill in density as downhill.
# ```
#
# ```{solution} ex-chain-acceptance
# :class: dropdown
#
# Proposals uphill are always accepted, so the acceptance is twice their probability. With $\theta' = \theta + \varepsilon z$ uphill means $\lvert\theta + \varepsilon z\rvert < \lvert\theta\rvert$: $z$ lies between $0$ and $-2\theta/\varepsilon$. In the plane of $(\theta, z)$ these are two wedges of angle $\arctan(2/\varepsilon)$, and two independent standard Gaussians point in every direction alike. So the probability is $2\arctan(2/\varepsilon)/2\pi$.
# ```
#
# ```{exercise}
# :label: ex-chain-independent
#
# Propose from a fixed density $q$, whatever the present state. What is the acceptance probability? When does this chain get stuck for long?
# ```
#
# ```{solution} ex-chain-independent
# :class: dropdown
#
# $\min\Bigl(1, \frac{\pi(\theta')\,q(\theta)}{\pi(\theta)\,q(\theta')}\Bigr)$. It stays long where $\pi/q$ is large: in tails of $\pi$ that $q$ does not reach.
# ```
#
# ```{exercise}
# :label: ex-chain-hastings
#
# Slides of a {cite:t}`munich`, known to us at second hand, accept with the ratio $f(x')/f(x)$ of the target alone, and let the proposal be arbitrary. Which law does the walker of {numref}`fig-three-states` come to in this way, if she proposes to go one state on with probability $\frac34$ and one back with $\frac14$, around the circle? For which proposals is the ratio right?
# ```
#
# ```{solution} ex-chain-hastings
# :class: dropdown
#
# With the whole ratio $\pi(y)\,q(y, x)/\bigl(\pi(x)\,q(x, y)\bigr)$ she comes to $\pi$, as {cite:t}`hastings1970` has it. Without the $q$ she comes to $\frac1{176}(36, 45, 95) = (0.205, 0.256, 0.540)$: the second state loses a seventh of its probability.
# For symmetric proposals, $q(x, y) = q(y, x)$, the ratio of the target is the whole ratio. That is the assumption to be named.
# ```

# %% tags=["hide-input"]
onwards = torch.tensor([[0, 3, 1], [1, 0, 3], [3, 1, 0]], dtype=torch.float64) / 4
for name, back, expected in (
    ("whole ratio", onwards.T / onwards, 0.3),
    ("target's ratio alone", 1.0, 45 / 176),
):
    ratio = pi / pi[:, None] * back
    chain = torch.where(onwards > 0, onwards * ratio.clamp(max=1), 0.0)
    chain += torch.diag(1 - chain.sum(1))
    settled = torch.linalg.matrix_power(chain, 1_000)[0]
    claim(
        f"Probability of the second state where the walker ends, with the {name}",
        settled[1],
        near=expected,
        within=1e-9,
        because="the stationary law of three states, solved",
        kind="exact",
    )

# %% [markdown]
# ## Further reading
#
# {cite:t}`metropolis1953` and {cite:t}`hastings1970` are short and readable; {cite:t}`levin2009` for the theory on finite spaces, {cite:t}`roberts2004` on general ones; {cite:t}`vehtari2021` on diagnostics.
