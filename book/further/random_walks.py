# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Random walks: speed and precision
#
# ```{div} page-head
# Level: first course · Reading: about 18 minutes, without the exercises · Running: about 8 seconds
# ```
#
# ```{index} ! eigenvalues of a chain, ! Barker, ! R-hat
# ```
#
# {doc}`/book/tutorial/markov_chains` has detailed balance and random-walk Metropolis.
# This page adds numbers to it: how fast a chain converges, which rule and which step size waste the fewest steps, and how precisely an average of its samples is known.
#
# **You will learn** to
#
# * read the speed of convergence off the eigenvalues of a kernel,
# * write a kernel of your own for the package,
# * choose the step of a random walk,
# * compute $\hat R$, and a standard error in two ways.
#
# **You will need** {doc}`/book/tutorial/markov_chains`.

# %% tags=["hide-input"]
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import arviz
import matplotlib.pyplot as plt
import torch
from torch import Tensor

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.scores.diagnostics import expectation
from sgmc import sample
from sgmc.kernels import Kernel
from sgmc.other_kernels import RandomWalkMetropolis
from sgmc.targets import DoubleWell, Gaussian, GaussianMixture

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## How fast a chain converges
#
# The walk of {numref}`fig-three-states` starts in state 1, $p_0 = (1, 0, 0)$, and after $t$ steps has the probabilities $p_t = p_0P^t$.
# They are simple to compute if $p_0$ is a sum of rows $u$ that a step only multiplies by a number, $uP = \lambda u$.
# Such rows are the *left eigenvectors* of $P$, with eigenvalues $\lambda$.
# Here there are three, and a line of arithmetic checks each:
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
# So the distance from $\pi$ shrinks by a factor of three at each step, and changes its sign, which is the going back and forth in the figure. For other chains, too, it is in the end the largest of the other eigenvalues, in size, that tells the speed.

# %% tags=["hide-input"]
P = torch.tensor(
    [[0, 1 / 2, 1 / 2], [1 / 3, 1 / 6, 1 / 2], [1 / 5, 3 / 10, 1 / 2]],
    dtype=torch.float64,
)
pi = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
u = torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64)
after = [torch.linalg.matrix_power(P, t)[0] for t in range(1, 9)]
claim(
    "Largest distance of the probabilities after 1 to 8 steps from "
    "π + 0.6 (−1/3)ᵗ (1, −1, 0)",
    max((p - pi - 0.6 * (-1 / 3) ** t * u).abs().max() for t, p in enumerate(after, 1)),
    at_most=1e-14,
    because="the eigenvalues of P are 1, −1/3 and 0; rounding",
    kind="exact",
)

# %% [markdown]
# ## A kernel of your own
#
# In the package a kernel says in which state a chain starts, `init`, and how it moves, `step`.
# The *state* is all that a chain needs to go on; what a step *learned* is kept apart, and becomes a statistic of the draws.
# With these two written, one has the rest from `sample`: many chains, warm-up, statistics, checkpoints, and the way to ArviZ.
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


well, start = DoubleWell(), torch.zeros(1_000, 1)
barker = sample(Barker(1.5), well, start, num_samples=1_000, warm_up=100, seed=1)
value, error = barker.mean_and_standard_error(lambda x: x**2)

# %% tags=["hide-input"]
exact = expectation(well, lambda x: x**2, -4, 4)
grid = torch.linspace(-3, 3, 601, dtype=torch.float64)
density = torch.exp(-well.energy(grid[:, None]))
proposal = torch.exp(-((grid[:, None] - grid) ** 2) / (2 * 1.5**2))
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
# Barker's rule is correct but wasteful: between two equally likely places it rejects half of the moves, where Metropolis rejects none.
# Given the proposals, no rule in detailed balance accepts more moves than Metropolis, and therefore none has averages of smaller variance in long runs {cite:p}`peskun1973`.
#
# ## Two ways to a standard error
#
# From a few chains the autocorrelation time {eq}`eq-tau` must be estimated from noisy correlations, as the package ArviZ does {cite:p}`kumar2019,vehtari2021`.
# From many independent chains one needs no autocorrelation ({prf:ref}`thm-chains-standard-error`).
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


# %% mystnb={"figure": {"caption": "Random-walk Metropolis on a standard Gaussian. Upper: autocorrelation of $\\theta$ for a step that is too small, good, and too large. Lower: acceptance (grey: exact) and effective samples per draw. Too small a step crawls, too large a step is rejected.", "name": "fig-step-size"}, "image": {"alt": "Above, three falling curves of autocorrelation: the step 2.2 reaches zero after ten lags, 10 after forty, 0.32 is still at 0.2 there. Below, over the step size, acceptance falls from one to a tenth, on its exact curve; effective samples per draw rise from zero to about 0.22 near a step of 2.2 and fall again."}} tags=["hide-input"]
def autocorrelation(draws, num_lags):
    """Autocorrelation at lags 0, 1, … of draws (S, chains) with mean zero."""
    products = torch.stack(
        [(draws[: len(draws) - k] * draws[k:]).mean() for k in range(num_lags)]
    )
    return products / products[0]


figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.2, 5.6))
for i, style in ((3, "--"), (8, "-"), (12, ":")):
    upper.plot(
        autocorrelation(runs[i].samples[..., 0], 41),
        style,
        color=COLOURS["random walk"],
        label=rf"$\varepsilon$ = {step_sizes[i]:.2g}",
    )
upper.axhline(0, color=TRUTH, lw=0.8, zorder=0)
upper.set(xlabel="lag $k$", ylabel=r"autocorrelation $\rho_k$", ylim=(-0.05, 1.02))
upper.legend(loc="upper right", bbox_to_anchor=(1, 0.9))
lower.semilogx(step_sizes, theory, color=TRUTH)
lower.semilogx(
    step_sizes, acceptance, "x", color=COLOURS["random walk"], label="acceptance"
)
lower.semilogx(
    step_sizes,
    effective,
    "o-",
    ms=4,
    color=COLOURS["random walk"],
    label="effective samples per draw",
)
lower.set(xlabel=r"step size $\varepsilon$", ylim=(0, 1.25))
lower.legend()
plt.show()

# %% [markdown]
# In the upper part of {numref}`fig-step-size` the correlation of samples dies away fastest for the middle one of the three steps. In its lower part acceptance falls all the way from left to right, while the effective samples rise and fall: neither the boldest nor the most timid step is best.
#
# Even at its best this sampler gives one independent sample for four or five steps, and that in one dimension. In $d$ dimensions a proposal must suit all coordinates at once. The step must then shrink like $d^{-1/2}$, and the number of steps for an independent sample grows like $d$ {cite:p}`roberts1997`.

# %% tags=["hide-input"]
claim(
    "Largest distance of 13 acceptances from (2/π)arctan(2/ε), in standard errors",
    ((acceptance - theory).abs() / (of_chains.std(1) / 50**0.5)).max(),
    at_most=5.5,
    errors=True,
    because=(
        "13 comparisons with Student's t of 49 degrees of freedom: exceeded once in "
        "50,000 runs"
    ),
)
claim(
    "Steps for one effective draw at the best of the step sizes",
    1 / max(effective),
    near=4.45,
    within=0.5,
    because="ten seeds give 4.31 to 4.55",
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
# ## The formula of R̂
#
# Let each chain have $S$ draws, let $W$ be the mean of the variances within the chains, and $A$ the variance of the chains' averages. Then
#
# $$
# \hat R = \sqrt{\frac{W(S - 1)/S + A}{W}}
# $$ (eq-r-hat)
#
# is the spread of all draws together over the spread within chains, near 1 if all chains see the same distribution {cite:p}`gelman2013`; {cite:t}`gelman1992`, who proposed it, have a correction for few chains besides.
# ArviZ refines it in two ways {cite:p}`vehtari2021`.
# It cuts every chain in two, so that a drift shows as a difference between the halves. And it sorts all draws and works with their ranks, put on the scale of a standard Gaussian, so that a few extreme draws do no harm.

# %% [markdown]
# ## Change it
#
# * Write `torch.exp(state.energy - energy)` for `torch.sigmoid(state.energy - energy)`: this is Metropolis again, and the acceptance claim of Barker's rule shows ✗.
# * Write `draws.reshape(100, 4, 2_000)[:, :1]` for `draws.reshape(100, 4, 2_000)`: both ways to the error double, and they still agree.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-chain-write
#
# **Write it yourself.**
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
# Four chains, two of which started in each mode of a mixture, stay where they are.
# What does it say of them, and what does ArviZ?
# ````
#
# ```{solution} ex-chain-write
# :class: dropdown
#
# The code is in the next cell.
# Both are far above 1; by ranks it is $\sqrt{1 + \frac87\cdot\frac{2/\pi}{1 - 2/\pi}} = 1.73$, however far apart the modes are, whereas by hand it grows with their distance.
# The refinements are for drifts that all chains share, and for heavy tails.
# ```


# %% tags=["hide-input"]
def r_hat_by_hand(draws):
    """R̂ of draws (chains, draws), a tensor."""
    within = draws.var(1).mean()
    between = draws.mean(1).var()
    num_draws = draws.shape[1]
    return ((within * (num_draws - 1) / num_draws + between) / within).sqrt()


two_modes = GaussianMixture(torch.tensor([[-3.0], [3.0]]), variance=0.25)
ends = torch.tensor([[-3.0], [-3.0], [3.0], [3.0]])
with warnings.catch_warnings():  # sample sees it, too
    warnings.filterwarnings("ignore", message=".*do not agree")
    stuck = sample(
        RandomWalkMetropolis(0.7), two_modes, ends, 1_000, warm_up=200, seed=3
    )
by_hand = r_hat_by_hand(stuck.samples[..., 0].T.double())
unrefined = arviz.rhat(stuck.to_arviz(), method="identity")["position"].item()
claim(
    "Relative difference between R̂ by hand and ArviZ's unrefined R̂",
    abs(by_hand / unrefined - 1),
    at_most=1e-4,
    because="the same formula; rounding in single precision",
    kind="exact",
)
claim(
    "R̂ by ranks of chains that are stuck in two modes",
    arviz.rhat(stuck.to_arviz())["position"].item(),
    near=1.73,
    within=0.06,
    because=(
        "all ranks of two chains lie below those of the others: √(1 + (8/7)(2/π)/(1 − "
        "2/π)) for eight half chains"
    ),
)
claim(
    "R̂ by hand of the same chains",
    by_hand,
    at_least=3,
    because="the chains' means differ by 6, and each has a standard deviation of ½",
)

# %% [markdown]
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
# Accept with the ratio of the target alone, $\min(1, \pi(y)/\pi(x))$, although the proposal is not symmetric.
# Which distribution does the walker of {numref}`fig-three-states` come to if she proposes to go one state on with probability $\frac34$ and one back with $\frac14$, around the circle?
# For which proposals is this ratio right?
# ```
#
# ```{solution} ex-chain-hastings
# :class: dropdown
#
# With the whole ratio $\pi(y)\,q(y, x)/\bigl(\pi(x)\,q(x, y)\bigr)$ she comes to $\pi$ {cite:p}`hastings1970`. Without the $q$ she comes to $\frac1{176}(36, 45, 95) = (0.205, 0.256, 0.540)$: the second state loses a seventh of its probability.
# For symmetric proposals, $q(x, y) = q(y, x)$, the ratio of the target is the whole ratio.
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
        because="the stationary distribution of three states, solved",
        kind="exact",
    )

# %% [markdown]
# ## Further reading
#
# {cite:t}`levin2009` for eigenvalues and mixing times, {cite:t}`roberts1997` for the step size in many dimensions, and {cite:t}`vehtari2021` for $\hat R$.
