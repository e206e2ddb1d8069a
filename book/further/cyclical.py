# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Many modes
#
# ```{div} page-head
# Level: second course · Reading: about 31 minutes, without the exercises · Running: about 6 seconds
# ```
#
# ```{index} ! cosine annealing, ! cyclical learning rate, ! cyclical SGLD, ! tempering, ! replica exchange, ! multimodal
# ```

# %%
import math

import torch

from booklib.page.claims import check, near

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import at_most, at_most_errors
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# Many posteriors have several *modes*, places of high density with little between them.
# Small steps stay in one of them. Can large steps find the others, *and* sample each as often as it deserves?
#
# They find the modes, but they do not weigh them.
# {numref}`fig-cyclical-weights` has 25 modes of width $\sigma = \sqrt{0.03}$, at a distance of 2. Those on the right weigh nine times as much as the others, so 86 per cent of the mass is there.
# A chain whose step falls from large to small in every *cycle* reaches them all: while the step is large it crosses the plane, and as it falls it settles in the mode where it happens to be (left). But fewer than half of the cycles end on the right, although all begin in exact samples.
#
# *Tempering* gets all 25 weights right ({numref}`fig-cyclical-tempering`): two random walks at different temperatures compare energies and swap positions. For an independent sample it pays about {c}`price` hundred energies of all the data, where a cycle pays four hundred gradients. But a cycle may use minibatches.
#
# In a cycle of $\ell$ steps, step $j = 0, \dots, \ell - 1$ has the size
#
# $$
# \eta_j = \frac{\eta_0}2\Bigl[\cos\frac{\pi j}\ell + 1\Bigr],
# $$ (eq-cyclical-schedule)
#
# which falls from $\eta_0$ to almost nothing along half a wave of the cosine, and then jumps back.


# %%
grid = torch.arange(-4.0, 5, 2)
means = torch.cartesian_prod(grid, grid)
weights = torch.where(means[:, 0] > 0, 9.0, 1.0)


def log_terms(theta):
    squares = (theta[..., None, :] - means).square().sum(-1)
    return weights.log() - squares / 0.06  # 2σ²


def energy(theta):
    return -torch.logsumexp(log_terms(theta), -1)


def gradient(theta):
    return (theta - log_terms(theta).softmax(-1) @ means) / 0.03


# %% [markdown]
# This is a cycle of SGLD. We use exact gradients. With gradient noise of a known $V$ and $\hat B = \tfrac12\eta V$ the noise of a step would be the same $N(0, 2\eta)$, but only where $\hat B \le 1$: at $\eta_0$ that takes more than half of the data in each step.


# %%
def cycle(theta, generator, length=400, largest=0.07):
    """Where chains of SGLD are at the end of a cycle."""
    for step in range(length):
        size = largest / 2 * (math.cos(math.pi * step / length) + 1)
        noise = torch.randn(theta.shape, generator=generator)
        theta = theta - size * gradient(theta) + (2 * size) ** 0.5 * noise
    return theta


generator = torch.Generator().manual_seed(1)
modes = weights.multinomial(2_000, replacement=True, generator=generator)
exact = means[modes] + 0.03**0.5 * torch.randn(2_000, 2, generator=generator)
ends = cycle(exact, generator)
error = 0.5 / 2_000**0.5
check("cycles", (ends[:, 0] > 1).float().mean(), near(0.453), error=error)


# %% mystnb={"figure": {"caption": "Left: the 25 modes, as large as their weight (grey), and one cycle of 400 steps, from its start in an exact sample (cross) to its end (disc); thin while the step is above $2\\sigma^2$, where no mode holds the chain, and thick afterwards. Right: the share of each column of modes, by the density (grey) and at the ends of 2,000 cycles (green).", "name": "fig-cyclical-weights"}, "image": {"alt": "Left, a five by five grid of grey discs, large in the two columns on the right and small in the others, with a thin green line that runs to and fro across the whole grid, and a thick one that ends in one of the discs. Right, bars for five columns: grey ones of 0.05 three times and 0.43 twice, and green ones between 0.13 and 0.27."}} tags=["hide-input"]
def columns(theta):
    """The share of each of the five columns of modes."""
    nearest = (theta[:, :1] - grid).abs().argmin(-1)
    return torch.bincount(nearest, minlength=5) / len(theta)


figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2))
left.scatter(*means.T, s=40 * weights, color=TRUTH, alpha=0.5, lw=0)
theta, path, own = exact[:1], [exact[0]], torch.Generator().manual_seed(2)
for step in range(400):
    size = 0.07 / 2 * (math.cos(math.pi * step / 400) + 1)
    noise = torch.randn(theta.shape, generator=own)
    theta = theta - size * gradient(theta) + (2 * size) ** 0.5 * noise
    path.append(theta[0])
path = torch.stack(path)
falls = 99  # the first step below 2σ² = 0.06
left.plot(*path[: falls + 1].T, lw=0.4, color=COLOURS["SGLD"])
left.plot(*path[falls:].T, lw=1.5, color=COLOURS["SGLD"])
left.plot(*path[0], "x", ms=8, color="black")
left.plot(*path[-1], "o", ms=5, color="black")
left.set(xlabel=r"$\theta_1$", ylabel=r"$\theta_2$", aspect="equal")
truth = torch.tensor([5.0, 5, 5, 45, 45]) / 105
right.bar(grid - 0.3, truth, 0.6, color=TRUTH, label="density")
right.bar(grid + 0.3, columns(ends), 0.6, color=COLOURS["SGLD"], label="cycles")
right.set(xlabel=r"column of modes, $\theta_1$", ylabel="share", xticks=grid)
right.legend()
plt.show()

# %% [markdown]
# The density has 0.857 on the right, and the cycles end there with the share {c}`cycles`.
# *A guess before you read on: ten of the 25 modes are on the right. Which share would a cycle have that knew nothing of the weights?*
#
# ## Too large for a mode
#
# Why does a chain with large steps leave its mode? It does not climb the barrier, which is $h^2/2\sigma^2 = 17$ high at half the distance, $h = 1$.
# In a mode with the mean $\mu$ the energy is $|\theta - \mu|^2/2\sigma^2$. So a coordinate $x$ of $\theta - \mu$ moves to $(1 - \eta/\sigma^2)\,x + N(0, 2\eta)$.
# Its stationary variance solves $s^2 = (1 - \eta/\sigma^2)^2s^2 + 2\eta$:
#
# $$
# s^2 = \frac{\sigma^2}{1 - \eta/2\sigma^2}.
# $$ (eq-cyclical-width)
#
# From $\eta = 2\sigma^2$ on there is no stationary variance, and no mode holds the chain. A step somewhat below $2\sigma^2$ widens the mode, and may land beyond $h$.
#
# *How often?* Let a mode have $d'$ neighbours at the distance $2h$. As an estimate, let the force of the nearest mean act everywhere, and let $h$ be several times $s$. Then a chain that has settled in the mode leaves it in a step with a probability of about
#
# $$
# \tfrac12d'\,P(|x| > h), \qquad x \sim N(0, s^2).
# $$ (eq-cyclical-jump)
#
# For each neighbour is one side of one coordinate, with half of $P(|x| > h)$, and beyond $h$ the neighbour's force draws the chain in with the next step, unless the factor $1 - \eta/\sigma^2$ is close to ±1.
#
# The barrier in units of the widened mode, $h^2/2s^2 = (1 - \eta/2\sigma^2)\,h^2/2\sigma^2$, vanishes as $\eta$ comes to $2\sigma^2$. So the error of a large step, a nuisance elsewhere, is what finds the modes ({numref}`fig-cyclical-leaving`).


# %% tags=["hide-input"]
def leaving(eta, directions=4):
    """The estimate of the probability to leave a mode."""
    width = (0.03 / (1 - eta / 0.06)) ** 0.5
    return directions / 2 * math.erfc(1 / width / 2**0.5)


neighbours = (torch.cdist(means, means) < 2.1).sum(-1) - 1.0
left_modes = {}
for eta in (0.039, 0.043, 0.047):
    theta, mode, seen, expected = torch.zeros(500, 2), None, [], []
    for step in range(420):
        shares = (-(theta[:, None] - means).square().sum(-1) / 0.06).softmax(-1)
        force = (theta - shares @ means) / 0.03
        noise = torch.randn(theta.shape, generator=generator)
        theta = theta - eta * force + (2 * eta) ** 0.5 * noise
        now = torch.cdist(theta, means).argmin(-1)
        if step > 20:
            seen.append((now != mode).float())
            expected.append(leaving(eta, neighbours[mode].mean()))
        mode = now
    seen = torch.stack(seen).mean(0)
    left_modes[eta] = seen.mean(), seen.std() / 500**0.5, sum(expected) / len(expected)

# %% mystnb={"figure": {"caption": "SGLD at a constant step in one of the 25 modes: the probability that a step leaves it, estimated by {eq}`eq-cyclical-jump` with four neighbours (line) and measured in 500 chains (points), and the variance in the mode over $\\sigma^2$, {eq}`eq-cyclical-width`. The dotted line is $2\\sigma^2$.", "name": "fig-cyclical-leaving"}, "image": {"alt": "Two panels over the step size. Above, a curve on a logarithmic scale that rises steeply from one in ten million at 0.01 to a few per cent at 0.05, with three points on it. Below, a curve that rises from one and goes to infinity at the dotted line."}} tags=["hide-input"]
etas = torch.linspace(0.01, 0.0585, 80).tolist()
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.2, 4.6), sharex=True)
low = [eta for eta in etas if eta < 0.05]  # beyond, h is not several times s
upper.semilogy(low, [leaving(eta) for eta in low], color=COLOURS["SGLD"])
for eta, (rate, error, expected) in left_modes.items():
    four = rate * leaving(eta) / expected  # as if with four neighbours everywhere
    upper.errorbar(eta, four, 2 * error, fmt="o", ms=4, color="black")
upper.set(ylabel="probability of leaving")
lower.plot(etas, [1 / (1 - eta / 0.06) for eta in etas], color=COLOURS["SGLD"])
lower.axhline(1, color=TRUTH, lw=3, zorder=0)
lower.set(xlabel=r"step size $\eta$", ylabel=r"$s^2/\sigma^2$", ylim=(0, 12))
for axes in (upper, lower):
    axes.axvline(0.06, color="black", ls=":", lw=1)
plt.show()

# %% tags=["hide-input"]
rate, error, expected = left_modes[0.043]
check("leaving", rate / expected, near(0.97, 0.2))


def after_a_cycle(length, share=1.0, largest=0.07):
    """The exact variance in a mode at the end of a cycle, over σ², with a share of the
    data in each step and the best noise estimate.
    """
    variance, noise = 0.03, (1 / share - 1) / 0.03  # V = (N/n − 1)/σ²
    for step in range(length):
        size = largest / 2 * (math.cos(math.pi * step / length) + 1)
        injected = 2 * size * (1 - min(1, size * noise / 2))
        variance = (1 - size / 0.03) ** 2 * variance + size**2 * noise + injected
    return variance / 0.03


distance = torch.cdist(ends, means).min(-1).values.square() / 0.06
error = float(distance.std()) / 2_000**0.5
check("width", distance.mean(), near(after_a_cycle(400)), error=error)

# %% [markdown]
# At $\eta = 0.043$ the measured rate is {c}`leaving` times the estimate.
# So no constant step will do: one that leaves a mode every hundred steps makes it four times too wide in variance.
#
# ## Both in turn
#
# ```{prf:algorithm} Cyclical stochastic-gradient MCMC
# :label: alg-cyclical
#
# Repeat cycles of $\ell$ steps with the sizes {eq}`eq-cyclical-schedule`. In the first share $\beta$ of a cycle *explore*: take steps of SGLD or SGHMC, or of the optimiser that they become at temperature 0, and keep nothing. In the rest *sample*: take steps of SGLD (cSGLD) or SGHMC (cSGHMC), and keep positions.
# ```
#
# This is the algorithm of {cite:t}`zhang2020`.
# A cycle begins above $2\sigma^2$ and ends with small steps: there the variance about the nearest mean is {c}`width` times $\sigma^2$.
# In the package `Cyclical` puts the schedule around any kernel. In {numref}`fig-live-cyclical` you choose its two numbers; the modes there have equal weights.
#
# ```{live} cyclical
# :name: fig-live-cyclical
# :alt: Twenty-five rings; light blue dots between and in them, and green dots in ten of them. A histogram of the green ones, too high in some modes. The step size over four cycles, with the parts that explore and sample named. The number of modes found after each cycle.
#
# Live: cyclical SGLD on the 25 modes. In the first four fifths of a cycle it explores, and nothing is kept; the samples of the last fifth are kept (green).
# ```
#
# ## Finding is cheap, weighing is not
#
# Where does a cycle end? Its modes form a Markov chain with 25 states. The density here is a density of $\theta_1$ times one of $\theta_2$, and the noises are independent, so the coordinates are two chains. The $25 \times 25$ matrix of transitions is the Kronecker product of two $5 \times 5$ matrices. Here is the one for $\theta_1$, by sums on a grid over the steps of a cycle that can leave a mode:


# %%
line = torch.linspace(-8, 8, 401).double()
of_line = weights[::5].log() - (line[:, None] - grid).square() / 0.06
slope = (line - of_line.softmax(-1) @ grid.double()) / 0.03
cell = torch.nn.functional.one_hot((line[:, None] - grid).abs().argmin(-1)).double()
state = torch.exp(-(line - grid[:, None]).square() / 0.06)  # rows: the five modes
state = state / state.sum(1, keepdim=True)
for step in range(310):  # the last 90 steps leave no mode
    size = 0.07 / 2 * (math.cos(math.pi * step / 400) + 1)
    away = line - (line - size * slope)[:, None]
    moves = torch.exp(-away.square() / (4 * size))
    state = state @ (moves / moves.sum(1, keepdim=True))
matrix = state @ cell  # [column of the start, column of the end]

# %% tags=["hide-input"]
truth = weights[::5].double() / weights[::5].sum()
named = {
    f"begun at θ₁ = {place:.0f}": row for place, row in zip(grid, matrix, strict=True)
}
show_table(
    ["a cycle ends in the column", *(f"{place:.0f}" for place in grid)],
    [
        [name, *(f"{share:.3f}" for share in row)]
        for name, row in (named | {"the density": truth}).items()
    ],
)
check("on-the-right", matrix[0, 3:].sum(), near(0.453, 0.002), kind="exact", digits=3)
check(
    "restart",
    (matrix - matrix[0]).abs().max(),
    at_most(1e-3),
    kind="exact",
    says="The rows of the matrix differ by at most",
)

# %% [markdown]
# All rows are alike, because a chain whose steps are above $2\sigma^2$ forgets where it began. So a cycle is a restart, and each of its ends is an independent sample. If each mode were as probable as the others, 95 cycles would find all 25 on average ({ref}`ex-cyclical-coupons`).
#
# But the row is not the density's. The share on the right is {c}`on-the-right`. A blind choice among 25 modes would give 0.4, which answers the guess, and the cycles are nearer to that than to 0.857.
# The gradient feels the weights only near the border of two modes, where their weighted densities are equal. Nine times the weight moves that border by $\sigma^2\ln9/2h = 0.03$, and a chain that moves by about 1 in a step passes over it.
# More cycles only make the estimate of the wrong weights more precise.
#
# ## Two temperatures
#
# Small steps would weigh the modes by their crossings in both directions, but here a crossing takes of the order of $e^{17}$ steps.
# A Metropolis step compares energies instead.
# At the temperature $T$, under $e^{-U/T}$, every barrier is lower by the factor $T$, and a random walk crosses it.
# *Parallel tempering*, or replica exchange {cite:p}`swendsen1986`, runs a walk $x$ at temperature 1 and a walk $y$ at $T$, and proposes that they swap positions.
# Their joint density is $e^{-U(x) - U(y)/T}$. A swap multiplies it by
#
# $$
# e^{(1 - 1/T)\,(U(x) - U(y))},
# $$ (eq-tempering)
#
# so a Metropolis step accepts with this probability, or 1 if it is larger. Here 600 pairs of walks begin in the corner with the least weight:


# %%
def tempering(theta, num_steps, generator, hot=10.0):
    """The path at temperature 1 of two random walks that may swap their positions."""
    pair, T, path = torch.stack([theta, theta]), torch.tensor([[1.0], [hot]]), []
    for _ in range(num_steps):
        noise = torch.randn(pair.shape, generator=generator)
        proposal = pair + 0.2 * T[..., None] ** 0.5 * noise
        uniform = torch.rand(3, len(theta), generator=generator)
        accept = uniform[:2] < torch.exp((energy(pair) - energy(proposal)) / T)
        pair = torch.where(accept[..., None], proposal, pair)
        x, y = energy(pair)
        swap = uniform[2] < torch.exp((1 - 1 / hot) * (x - y))
        pair = torch.where(swap[:, None], pair.flip(0), pair)
        path.append(pair[0])
    return torch.stack(path)


corner = torch.full((600, 2), -4.0)
walks = tempering(corner, 1_500, generator)
tempered = walks[-1]
share = (tempered[:, 0] > 1).float()
check("tempering", share.mean(), near(90 / 105), error=0.35 / 600**0.5)


# %% mystnb={"figure": {"caption": "Share of the samples in each of the 25 modes, column by column: the density (grey), 2,000 cycles (green), and 600 pairs of walks after 1,500 steps (black, two standard errors).", "name": "fig-cyclical-tempering"}, "image": {"alt": "A grey staircase, at 0.01 for fifteen modes and at 0.086 for ten. The black points lie on it. The green ones lie above it on the left and below it on the right, nearly all between 0.02 and 0.065."}} tags=["hide-input"]
def shares(theta):
    """The share of each of the 25 modes."""
    nearest = torch.cdist(theta, means).argmin(-1)
    return torch.bincount(nearest, minlength=25) / len(theta)


p = weights / weights.sum()
figure, axes = plt.subplots(figsize=(5.2, 3))
axes.step(range(25), p, where="mid", color=TRUTH, lw=3, zorder=0)
axes.plot(shares(ends), "o", ms=4, color=COLOURS["SGLD"], label="cycles")
errors = 2 * (p * (1 - p) / 600) ** 0.5
look = {"fmt": "o", "ms": 4, "lw": 1, "color": "black", "label": "tempering"}
axes.errorbar(range(25), shares(tempered), errors, **look)
axes.set(xlabel="mode, column by column", ylabel="share of the samples")
axes.legend(loc="upper left")
plt.show()

# %% tags=["hide-input"]
far = (shares(tempered) - p) / (p * (1 - p) / 600) ** 0.5
check(
    "every-mode",
    far.abs().max(),
    at_most_errors(),
    because="600 independent pairs",
    says="Largest distance of the 25 shares of tempering from the weights",
)
slow = walks[500::10, :, 1].double()  # θ₂, at every tenth step
slow = slow - slow.mean(1, keepdim=True)
lags = [(slow[:-lag] * slow[lag:]).mean() for lag in range(1, 60)]
steps = 10 * (1 + 2 * sum(lags) / slow.square().mean())
check("price", 2 * steps / 100, near(6.2, 1.5), digits=1)
for name, length, part, right in (
    ("hundredth", 400, 0.01, 2.07),
    ("hundredth-long", 3_200, 0.01, 1.023),
    ("tenth", 400, 0.1, 1.02),
):
    over = after_a_cycle(length, part)
    check(name, over, near(right, 0.005), kind="exact", digits=3)

# %% [markdown]
# The share on the right is {c}`tempering`, and in {numref}`fig-cyclical-tempering` each of the 25 modes has its weight.
#
# What does an independent sample cost? The slowest coordinate that we found, $\theta_2$, has the autocorrelation time $1 + 2\sum_k\rho_k$, and each step of the walks reads two energies: about {c}`price` hundred passes over the data. A cycle has four hundred gradients. So with all the data tempering costs somewhat more, but only tempering has the weights. Two things speak for cycles:
#
# * *Minibatches.* With a tenth of the data and the best estimate, $\min(1, \tfrac12\eta V)$, a cycle takes 40 passes, and the variance at its end is {c}`tenth` times $\sigma^2$. With a hundredth it takes four, but the small steps are too few: the variance is {c}`hundredth` times $\sigma^2$ even so. For {c}`hundredth-long` it takes 3,200 steps, 32 passes (and double precision, because so many unstable steps throw some chains far out). The weights are as wrong as before. A swap reads all the data: with minibatches $U(x) - U(y)$ is noisy, and the noise is paid for by rejections ({ref}`ex-cyclical-penalty`). {cite:t}`deng2020replica` swap between chains of SGLD in this way.
# * *Dimensions.* In $d$ dimensions the energy at temperature $T$ is about $\tfrac12dT$ with a spread of $T\sqrt{d/2}$. So two walks swap only if their temperatures differ by a factor of at most about $1 + \sqrt{2/d}$. With 100,000 weights that makes some 500 temperatures from 1 to 10, and as many walks.
#
# What cycles do for networks is in {doc}`/book/studies/cyclical_networks`.
#
# **To remember:** a cycle of large steps is a restart: it finds the modes, but does not weigh them. Weights take comparisons of energies, and without all the data these are paid for in rejections.
#
# ## Change it
#
# * In the visible cell of `tempering` set `hot=10.0` to `hot=1.0`: all swaps are accepted and nothing is gained. The walks stay near the corner, and the number shows ✗.
# * In the visible cell of the modes set `torch.where(means[:, 0] > 0, 9.0, 1.0)` to `torch.ones(25)`: by the density 40 per cent are on the right, and cycles come close to it, with 0.38.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-cyclical-coupons
#
# ★ How many cycles find all $m$ modes, if each ends in one of them evenly? And how many give each share to 10 per cent?
# ```
#
# ```{solution} ex-cyclical-coupons
# :class: dropdown
#
# With $i$ modes still missing the next cycle finds one of them with probability $i/m$, so it takes $m\sum_{i=1}^m1/i$ cycles on average, 95 for $m = 25$.
# The share of a mode in $M$ cycles has a relative standard error of $\sqrt{(m - 1)/M}$, which is 0.1 for $M = 2{,}400$.
# ```
#
# ````{exercise}
# :label: ex-cyclical-penalty
#
# ★★★ **Write it yourself.** With minibatches one has an estimate $\hat\Delta = \Delta + N(0, s^2)$ of $\Delta = (1 - 1/T)(U(x) - U(y))$, with a known $s$.
#
# ```python
# def swaps(estimate, s, generator):
#     """Which pairs swap, so that both temperatures are still exact, (pairs,)."""
#     ...
# ```
#
# Show that a swap with the probability $\min(1, e^{\hat\Delta - s^2/2})$ has on average the acceptance $a(\Delta)$ with $a(\Delta)/a(-\Delta) = e^\Delta$, as detailed balance asks. What share of the swaps is accepted at $\Delta = 0$?
# ````
#
# ````{solution} ex-cyclical-penalty
# :class: dropdown
#
# ```python
# def swaps(estimate, s, generator):
#     uniform = torch.rand(len(estimate), generator=generator)
#     return uniform < torch.exp(estimate - s**2 / 2)
# ```
#
# $\hat\Delta - s^2/2$ is $N(\Delta - s^2/2, s^2)$, and the mean of $\min(1, e^z)$ over it is $a(\Delta) = \Phi(\Delta/s - s/2) + e^\Delta\,\Phi(-\Delta/s - s/2)$. Exchange $\Delta$ and $-\Delta$, and multiply by $e^\Delta$: the two terms change places.
# At $\Delta = 0$ the share is $2\Phi(-s/2)$: 0.32 at $s = 2$, and $6\cdot10^{-7}$ at $s = 10$. This *penalty* is that of {cite:t}`ceperley1999`.
# Simulated with $s = 2$, $\ln\bigl(a(1)/a(-1)\bigr)$ is {c}`penalty`; it should be 1.
# ````


# %% tags=["hide-input"]
def swaps(estimate, s, generator):
    uniform = torch.rand(len(estimate), generator=generator)
    return uniform < torch.exp(estimate - s**2 / 2)


noise = 2 * torch.randn(2, 1_000_000, generator=generator)
up, down = (
    swaps(sign + each, 2.0, generator).double().mean()
    for sign, each in zip((1.0, -1.0), noise, strict=True)
)
check("penalty", (up / down).log(), near(1, 0.015))

# %% [markdown]
# ## Further reading
#
# {cite:t}`zhang2020` introduce cycles for sampling; {cite:t}`huang2017` and {cite:t}`loshchilov2017` use the same wave in optimisation; {cite:t}`deng2020contour` flatten the barriers, and weight the samples back.
