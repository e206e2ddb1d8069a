# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # How far the theory holds
#
# ```{div} page-head
# Level: advanced · Reading: about 82 minutes, without the exercises · Running: about 15 seconds
# ```
#
# The exact laws of the last chapters are laws of Gaussians with constant noise; this chapter says what is left of them elsewhere, and where nothing is left.
#
# **You will learn** to
#
# * find the law of a chain by sums on a grid, without drawing a number,
# * show why SGHMC has a bias of order $\varepsilon^2$ beyond Gaussians, and on what conditions,
# * say when a chain has a {term}`stationary distribution`, only one, and how long a chain without one seems to have one,
# * compute the bias of noise that depends on the position, which is not a temperature,
# * recognise the heavy tails that multiplicative noise makes,
# * name those who knew it before.
#
# **You will need** {doc}`/book/tutorial/sghmc` and the palindromic step {eq}`eq-palindromic-step` of {doc}`/book/tutorial/sgnuts`. The proofs are in {doc}`/book/appendix/proofs`.

# %%
import itertools
import math

import matplotlib.pyplot as plt
import torch
from scipy.optimize import brentq
from scipy.stats import chi2, norm

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from sgmc import sample
from sgmc.kernels import SGHMC, SGLD
from sgmc.posteriors import LogisticRegression
from sgmc.potentials import Potential
from sgmc.splittings import (
    LinearChain,
    flows,
    langevin_chain,
    linear_chain,
    sghmc_chain,
)
from sgmc.targets import DoubleWell, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
DOUBLE = torch.float64

# %% [markdown]
# ## A grid in the place of chains
#
# On a Gaussian a sampler is a linear chain, and a small equation has its law.
# On other targets we measured with chains so far, and a chain's Monte Carlo error hides a small bias.
# In one dimension there is a third way.
#
# Look at the positions of SGHMC alone. With $M = 1$ the momentum is $r = (\theta' - \theta)/\varepsilon$, so that the next position follows from the last two:
#
# $$
# \begin{aligned}
# \theta'' ={} &\theta' + (1 - \varepsilon C)(\theta' - \theta)\\
# &- \varepsilon^2U'(\theta') + \varepsilon N(0, S),
# \end{aligned}
# $$ (eq-how-far-pair)
#
# where $S = 2\varepsilon(C - \hat B) + \varepsilon^2V(\theta')$ is the noise of a step.
# So a *pair* of neighbouring positions is a Markov chain, and its {term}`law` $p(\theta, \theta')$ moves by
#
# $$
# \begin{aligned}
# &p_{t+1}(\theta', \theta'')\\
# &= \int p_t(\theta, \theta')\,k(\theta'' \mid \theta, \theta')\,d\theta,
# \end{aligned}
# $$
#
# with a Gaussian $k$. Put a grid in the place of the line and a sum in the place of the integral, and repeat until nothing changes.
# Sums over an even grid are astonishingly good integrals of smooth functions that vanish at the ends: for a Gaussian, at a spacing of one standard deviation, the relative error is of the order $e^{-2\pi^2} \approx 3\cdot10^{-9}$. We take the standard deviation of $k$.
# Only where the force is steep, as in the double well below, must the grid be finer.


# %%
def pair_law(mean, std, energy, half_width, spacing=1.0, num_steps=400):
    """The law of two neighbouring positions, θ″ ~ N(mean(θ, θ′), std(θ′)²).

    Returns the grid, the law [θ′, θ], and the probability to leave the grid in a step.
    """
    line = torch.linspace(-half_width, half_width, 1_001, dtype=DOUBLE)
    points = math.ceil(2 * half_width / (spacing * float(std(line).min()))) + 1
    grid = torch.linspace(-half_width, half_width, points, dtype=DOUBLE)
    old, middle, new = grid, grid[:, None], grid[None, :, None]
    centre, width = mean(old, middle), std(middle)
    distance = (new - centre[:, None, :]) / width[:, :, None]
    kernel = torch.exp(-0.5 * distance**2) / width[:, :, None]  # [θ′, θ″, θ]
    kernel = kernel * float(grid[1] - grid[0]) / (2 * math.pi) ** 0.5
    law = torch.exp(-energy(middle) - 2 * (middle - old) ** 2)  # any start will do
    for _ in range(num_steps):
        law = (kernel @ law[:, :, None])[:, :, 0].T  # [θ″, θ′], the next [θ′, θ]
        law = law / law.sum()
    beyond = [(half_width - s * centre) / (2**0.5 * width) for s in (1, -1)]
    leaving = 0.5 * sum(torch.erfc(x) for x in beyond)
    return grid, law, float((law * leaving).sum())


def drift_kick(slope, step_size, friction, noise, old_position=False):
    """The mean and the standard deviation of the next position of SGHMC."""

    def mean(old, middle):
        force = slope(old if old_position else middle)
        return (
            middle + (1 - step_size * friction) * (middle - old) - step_size**2 * force
        )

    return mean, lambda middle: step_size * noise(middle).sqrt()


def expect(function, grid, law):
    """The mean of a function of a position."""
    return float((law.sum(0) * function(grid)).sum())


def square(position):
    return position**2


# %% [markdown]
# On a Gaussian this must give what the linear chain gives, and it does.

# %% tags=["hide-input"]
grid, law, _ = pair_law(
    *drift_kick(lambda x: x, 0.3, 2.0, lambda x: 1.2 + 0.09 * 4.0 + 0 * x),
    lambda x: x**2 / 2,
    9.0,
)
claim(
    "Largest difference of the grid's variance on a Gaussian from the linear chain's, "
    "ε = 0.3, C = 2, V = 4",
    abs(
        expect(square, grid, law)
        - float(sghmc_chain(torch.eye(1), 0.3, 2.0, 4.0).stationary_covariance()[0, 0])
    ),
    at_most=1e-7,
    because="sums on a grid in the place of integrals",
    kind="exact",
)

# %% [markdown]
# ## Order two beyond Gaussians
#
# {doc}`/book/tutorial/sghmc` computed on a Gaussian that SGHMC has a bias of order $\varepsilon^2$, and explicit Euler one of order $\varepsilon$. Is that so in general?
# The answer comes from looking at the same chain at other moments.
#
# Half of a drift before its kick, SGHMC is at $\theta + \tfrac12\varepsilon M^{-1}r$: half-way between two of its positions.
# {prf:ref}`prop-half-drift` says that these half-way points are *exactly* the positions of the palindromic step, for every energy; only the mass is another one, $M - \tfrac12\varepsilon C$.
# The proof is a few lines of algebra, and a program can check it on a target that is nothing like a Gaussian, with matrices that do not commute.

# %%
generator = torch.Generator().manual_seed(0)
root = torch.randn(2, 3, 3, generator=generator, dtype=DOUBLE)
mass, friction = root @ root.mT / 3 + 0.5 * torch.eye(3, dtype=DOUBLE)
lighter = mass - 0.5 * 0.1 * friction
well = DoubleWell(3)


def follow(splitting, position, momentum):
    """Take twenty steps on random numbers that are the same in every call."""
    position, momentum = position.clone(), momentum.clone()
    generator = torch.Generator().manual_seed(1)
    for _ in range(20):
        flows.advance(splitting, position, momentum, well.gradient, generator)
    return position, momentum


theta, v = torch.randn(2, 5, 3, generator=generator, dtype=DOUBLE)
end, end_r = follow(flows.sghmc(0.1, friction, mass=mass), theta, v @ mass)
end_v = end_r @ torch.linalg.inv(mass)
gaps = {}
for name, other in (("M − ½εC", lighter), ("M", mass)):
    path = flows.palindromic(0.1, friction, mass=other)
    other_end, _ = follow(path, theta + 0.05 * v, v @ other)
    gaps[name] = float((other_end - (end + 0.05 * end_v)).abs().max())

# %% tags=["hide-input"]
claim(
    "After twenty steps in three dimensions, palindromic of mass M − ½εC against SGHMC "
    "of mass M half a drift later, largest difference",
    gaps["M − ½εC"],
    at_most=1e-11,
    because="the proposition; double well, random M and C, the same noise; rounding",
    kind="exact",
)
claim(
    "The same with the mass M in both",
    gaps["M"],
    at_least=0.001,
    because="without the change of mass they are two different chains",
    kind="exact",
)

# %% [markdown]
# Now everything that is known of the palindromic step holds for SGHMC, half a drift away.
# Seen backwards, a palindromic step is a palindromic step again, but for the work $W$ ({prf:ref}`thm-reversal-short`), and $W$ is of the form $G(z') - G(z)$ with $G = \tfrac18\varepsilon^2v^\top\nabla^2U\,v$, up to terms of order $\varepsilon^3$.
# So the law $e^{-H + G}$ is kept by a step up to $\varepsilon^3$. In a time of one there are $1/\varepsilon$ steps, and the errors of earlier ones are forgotten: what remains is of order $\varepsilon^2$, as $G$ itself is.
# Half a drift does not spoil it, because $e^{-H+G}$ does not change if $v$ changes its sign: what half a drift forward adds to a mean at first order, the opposite velocity takes away.
# {prf:ref}`thm-general-order` is the exact statement. It asks for a Lipschitz gradient, bounded third derivatives, a force that brings the chain back from far away, Gaussian noise of constant size with $C - \hat B + B = TC$, and a chain that forgets its start at a rate in proportion to $\varepsilon$. If $M = I$ and $mI \preceq \nabla^2U \preceq LI$ with $m > 0$ and $C^2 \ge m + L$, the last condition may be dropped ({prf:ref}`thm-convex-order`). And the momentum is kept: drawn afresh now and then, it makes the order one again ({prf:ref}`prop-tear`).
# With the right estimate $T = 1$; with another the order two is that of the distance to $e^{-U/T}$.
#
# Here is a target that is no Gaussian, $U = 2\log\cosh\theta + \tfrac14\theta^2$: the energy of a coefficient in a logistic regression with one success and one failure, both at the input 2, and the prior $N(0, 2)$. In the middle it has the curvature 2.5, far out only 0.5, so that the friction $C = 2$ is enough for {prf:ref}`thm-convex-order`: $C^2 = 4 \ge 0.5 + 2.5$.


# %%
def valley(x):
    return 2 * torch.log(torch.cosh(x)) + x**2 / 4


def valley_slope(x):
    return 2 * torch.tanh(x) + x / 2


line = torch.linspace(-12, 12, 4_001, dtype=DOUBLE)
truth = float(
    (torch.exp(-valley(line)) * line**2).sum() / torch.exp(-valley(line)).sum()
)
steps = (0.4, 0.28, 0.2, 0.14)
biases = {"new position": [], "half-way points": [], "old position": []}
for h in steps:
    heat = 2 * h * 2.0
    for old_position in (False, True):
        grid, law, _ = pair_law(
            *drift_kick(
                valley_slope, h, 2.0, lambda x, s=heat: s + 0 * x, old_position
            ),
            valley,
            5.5,
        )
        bias = expect(square, grid, law) - truth
        biases["old position" if old_position else "new position"].append(bias)
        if not old_position:
            between = 0.5 * (grid + grid[:, None])
            biases["half-way points"].append(float((law * between**2).sum()) - truth)

# %% mystnb={"figure": {"caption": "Bias in the mean of $\\theta^2$ on $U = 2\\log\\cosh\\theta + \\theta^2/4$, friction 2, by sums on a grid: SGHMC with the gradient at the new position, at the half-way points, which are the positions of the palindromic step, and with the gradient at the old position. Grey: the slopes of order $\\varepsilon$ and $\\varepsilon^2$.", "name": "fig-how-far-order"}, "image": {"alt": "Three rising lines on logarithmic axes. The line of the old position is the highest and has the slope one; that of the new position and that of the half-way points, the lowest, have the slope two."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.4))
looks = {
    "new position": ("o-", COLOURS["SGHMC"]),
    "half-way points": ("s-", COLOURS["SGNUTS"]),
    "old position": ("^--", COLOURS["explicit Euler"]),
}
for name, values in biases.items():
    axes.loglog(steps, values, looks[name][0], color=looks[name][1], label=name)
axes.loglog(steps, [1.6 * h for h in steps], color=TRUTH, lw=1, zorder=0)
axes.loglog(steps, [0.02 * h**2 for h in steps], color=TRUTH, lw=1, zorder=0)
axes.text(0.15, 0.36, "order ε", color="0.4")
axes.text(0.27, 0.0007, "order ε²", color="0.4")
axes.set_xticks(steps, [f"{h:g}" for h in steps])
axes.set_xticks([], minor=True)
axes.set(xlabel=r"step size $\varepsilon$", ylabel=r"bias of $E[\theta^2]$")
figure.legend(loc="outside upper center", ncols=3)
plt.show()

# %% [markdown]
# In {numref}`fig-how-far-order` the lines of SGHMC and of the half-way points fall like the lower grey line, that of the old position like the upper one, the more so the smaller the step.
# The half-way points have the smallest bias here, and on a Gaussian none at all: who keeps the mean of two neighbouring positions, in place of the positions, gets the palindromic chain for nothing.
# But order two is all that they share in general: on $U = \tfrac12\theta^2 + 2\cos\theta$, which has a hill in the middle, the positions themselves are the better ones.

# %% tags=["hide-input"]
for name, order in (("new position", 2), ("half-way points", 2), ("old position", 1)):
    first, second = biases[name][-2:]
    claim(
        f"Order of the bias, {name}: from the two smallest steps",
        math.log(first / second) / math.log(steps[-2] / steps[-1]),
        near=order,
        within=0.35,
        because="sums on a grid; terms of the next order remain",
        kind="exact",
    )
    coarse, fine = (
        math.log(biases[name][i] / biases[name][i + 1])
        / math.log(steps[i] / steps[i + 1])
        for i in (0, 2)
    )
    claim(
        f"Distance from that order, {name}: at the smallest steps over the largest",
        (fine - order) / (coarse - order),
        at_most=0.55,
        because="it falls in proportion to the step; sums on a grid",
        kind="exact",
    )
grid, law, _ = pair_law(
    *drift_kick(lambda x: x - 2 * torch.sin(x), 0.2, 2.0, lambda x: 0.8 + 0 * x),
    lambda x: x**2 / 2 + 2 * torch.cos(x),
    7.0,
)
wide = torch.linspace(-12, 12, 4_001, dtype=DOUBLE)
weights = torch.exp(-(wide**2) / 2 - 2 * torch.cos(wide))
hilly_truth = float((weights * wide**2).sum() / weights.sum())
between = 0.5 * (grid + grid[:, None])
claim(
    "Bias of the half-way points over that of the positions on ½θ² + 2 cos θ, ε = 0.2",
    (float((law * between**2).sum()) - hilly_truth)
    / (expect(square, grid, law) - hilly_truth),
    near=3.0,
    within=0.1,
    because="sums on a grid",
    kind="exact",
)
claim(
    "Bias of the positions over that of the half-way points at ε = 0.2",
    biases["new position"][2] / biases["half-way points"][2],
    at_least=5,
    because="sums on a grid; 6.1",
    kind="exact",
)


# %%
class Valley(Potential):
    """The same energy for the package's kernels."""

    dim = 1

    def energy(self, position):
        return valley(position).sum(-1)

    def gradient(self, position):
        return valley_slope(position)


run = sample(
    SGHMC(0.4, 2.0, 0.5 * 0.4 * 4.0),
    NoisyGradient(Valley(), 4.0),
    torch.zeros(20_000, 1, dtype=DOUBLE),
    num_samples=10,
    warm_up=40,
    thinning=5,
    seed=1,
)

# %% tags=["hide-input"]
value, error = run.mean_and_standard_error(square)
claim(
    "Mean of θ² of SGHMC with noise N(0, 4) and the right estimate at ε = 0.4",
    float(value),
    near=round(truth + biases["new position"][0], 4),
    standard_error=float(error),
    because="20,000 chains of the package against the grid",
)
claim(
    "Distance of that mean from the truth, in standard errors",
    (float(value) - truth) / float(error),
    at_least=10,
    because="the bias is seen: 20,000 chains",
)

# %% [markdown]
# ## One law, and only one
#
# That a law stays as it is does not say that a chain finds it.
# {cite:t}`chen2014` (Theorem 3.2) call $e^{-H}$ the *unique* stationary distribution of their equation. It is unique if $U$ is bounded below and the noise is the same everywhere and reaches every momentum.
# {prf:ref}`thm-sghmc` shows that it is stationary. Two things are to be added: that there is no other, and that every start leads to it.
#
# For the chains that we run the first is short. In every step Gaussian noise enters the momentum, and one step later it has reached the position. So after two steps any region of states can be reached from any state, with a positive density.
# Two different stationary distributions would have to live in different regions; there are none. This is {prf:ref}`thm-unique-chain`, and it holds for every minibatch gradient whose examples are drawn afresh in every step, without a word on smoothness, as long as some noise is injected, $\hat B \prec C$.
# For the equation in continuous time {prf:ref}`thm-unique-diffusion` says the same.
#
# The second needs a force that brings the chain back from far away: $\langle\theta, \nabla U\rangle \ge a\lvert\theta\rvert^2 - b$, as a Gaussian prior gives it where the rest of the energy is convex or has a bounded gradient, and a *Lipschitz* gradient, which grows no faster than $\lvert\theta\rvert$; nor may the standard deviation of its noise.
# Then small steps have a stationary distribution, and the start is forgotten geometrically ({prf:ref}`thm-ergodic-chain`).
#
# How far from $\pi$ that law is at a given step, with constants and for every dimension, is known where $U$ is strongly convex: if $m \preceq \nabla^2U \preceq L$ with $m > 0$, and $\eta \le 1/L$, SGLD without an estimate has
#
# $$
# \begin{aligned}
# &W_2(\theta_n, \pi) \le (1 - \eta m)^n\,W_2(\theta_0, \pi)\\
# &\qquad+ \tfrac{3L}{2m}\sqrt{\eta d} + \sigma\sqrt{\eta d/m},
# \end{aligned}
# $$ (eq-how-far-bound)
#
# where the gradient's error has mean zero given the past and the injected noise, $\sigma^2$ bounds the variance of each of its coordinates, and $W_2$ is the smallest root mean square distance of two variables with the two laws ({prf:ref}`thm-wasserstein`; the form is that of {cite:t}`dalalyan2019`).
# It is a bound, not an estimate. On a Gaussian with the variances 1 and ⅕ we know the truth:


# %%
def true_distance(step_size, noise_variance):
    """W₂ of the stationary distribution of SGLD from N(0, diag(1, ⅕)), exactly."""
    law = langevin_chain(
        torch.diag(torch.tensor([1.0, 5.0])), step_size, noise_variance
    )
    spread = law.stationary_covariance().diagonal().sqrt()
    return float((spread - torch.tensor([1.0, 0.2**0.5], dtype=DOUBLE)).norm())


def bound(step_size, noise_variance):
    return 7.5 * (2 * step_size) ** 0.5 + (2 * step_size * noise_variance) ** 0.5


cases = [(h, V) for h in (0.1, 0.01, 0.001) for V in (0.0, 4.0)]

# %% tags=["hide-input"]
show_table(
    ["step size η", "noise V", "true distance", "bound"],
    [
        [f"{h:g}", f"{V:g}", f"{true_distance(h, V):.5f}", f"{bound(h, V):.2f}"]
        for h, V in cases
    ],
)
claim(
    "Smallest factor by which the bound exceeds the true distance, over the table",
    min(bound(h, V) / true_distance(h, V) for h, V in cases),
    at_least=20,
    because="the theorem; exact laws",
    kind="exact",
)
claim(
    "Growth of that factor from η = 0.01 to 0.001, V = 4",
    (bound(0.001, 4.0) / true_distance(0.001, 4.0))
    / (bound(0.01, 4.0) / true_distance(0.01, 4.0)),
    near=10**0.5,
    within=0.2,
    because="the bound falls as the root of η, the distance as η; exact laws",
    kind="exact",
)

# %% [markdown]
# The bound is true and generous, and the more so the smaller the step.
# For SGHMC {cite:t}`akyildiz2024` have one that needs no convexity and is uniform in the number of steps.
#
# ## Where there is no law: the double well
#
# The double well of the first figure of {cite:t}`chen2014`, $U = \theta^4 - 2\theta^2$, breaks the conditions: its gradient $4\theta^3 - 4\theta$ grows faster than $\theta$.
# What can go wrong?
# SGHMC at a large $\lvert\theta\rvert$ overshoots. If the kick $\varepsilon^2U'(\theta)$ is so large that the next position lies on the other side at the same distance, it swings forever; beyond that it swings wider at every step. With $\theta'' = \theta = -\theta'$ in {eq}`eq-how-far-pair` that place is where $\varepsilon^2U'(\theta) = (4 - 2\varepsilon C)\theta$, the edge of stability of {prf:ref}`thm-sghmc-variance` with $U'(\theta)/\theta$ for the curvature:
#
# $$
# \theta_*^2 = 1 + \frac{2 - \varepsilon C}{2\varepsilon^2} .
# $$ (eq-how-far-edge)
#
# And Gaussian noise reaches every place.
#
# ```{prf:theorem} No stationary distribution
# :label: thm-escape-short
#
# If $\lvert\nabla U(\theta)\rvert/\lvert\theta\rvert \to \infty$ as $\lvert\theta\rvert \to \infty$, SGLD and SGHMC with Gaussian noise, whose variance stays between two positive bounds, have no stationary distribution, at any step size. Almost every path runs to infinity.
# ```
#
# This is {prf:ref}`thm-escape`; for SGLD it goes back to {cite:t}`roberts1996`.
# So the question "does SGHMC sample the double well?" has the answer no, and the figure of the paper, and ours in {doc}`/book/tutorial/figures_of_the_paper`, show very good samples. Both are true, because it takes long.
# The grid knows how long: its law is that of the chains that have not left it yet, the {term}`quasi-stationary distribution`, and it also gives the probability to leave in a step.


# %%
def quartic(x):
    return x**4 - 2 * x**2


def quartic_slope(x):
    return 4 * x**3 - 4 * x


def edge(h):
    return (1 + (2 - h * 3.0) / (2 * h**2)) ** 0.5


rates, quasi = {}, {}
grids = {0.45: (2.0, 0.15), 0.4: (2.0, 0.2), 0.35: (2.0, 0.25)}
grids |= {0.3: (1.5, 0.4), 0.25: (1.5, 0.5), 0.2: (1.5, 0.8)}
for h, (reach, spacing) in grids.items():
    grid, law, rates[h] = pair_law(
        *drift_kick(quartic_slope, h, 3.0, lambda x, s=6 * h: s + 0 * x),
        quartic,
        reach * edge(h),
        spacing,
    )
    quasi[h] = expect(square, grid, law)

# %% [markdown]
# Chains can be counted where the rate is not too small. We let 10,000 of them run until they have forgotten the start, and see how many of those that are left then are left after three times as many steps.

# %%
counted = {}
for h in (0.45, 0.4, 0.35, 0.3):
    generator = torch.Generator().manual_seed(2)
    position = torch.ones(10_000, 1, dtype=DOUBLE)
    momentum = torch.randn(10_000, 1, generator=generator, dtype=DOUBLE)
    step = flows.sghmc(h, 3.0)
    first = round(min(100, 1 / rates[h]))
    for number in range(3 * first + 1):
        if number == first:
            before = int((position.abs() < 2 * edge(h)).sum())
        flows.advance(step, position, momentum, DoubleWell().gradient, generator)
    after = int((position.abs() < 2 * edge(h)).sum())
    counted[h] = before, after, 2 * first + 1

# %% mystnb={"figure": {"caption": "Probability that a chain of SGHMC leaves the double well $\\theta^4 - 2\\theta^2$ for ever in a step, friction 3: by sums on a grid at six step sizes (line), and counted among 10,000 chains (circles).", "name": "fig-how-far-escape"}, "image": {"alt": "On a logarithmic axis a curve falls from nearly a tenth at a step size of 0.45 to about ten to the minus twenty-two at 0.2, ever more steeply. Four circles lie on it, from 0.45 to 0.3."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.2))
axes.semilogy(
    list(rates), list(rates.values()), ".-", color=COLOURS["SGHMC"], label="grid"
)
measured = [1 - (b / a) ** (1 / n) for a, b, n in counted.values()]
axes.semilogy(
    list(counted), measured, "o", ms=9, mfc="none", color="black", label="counted"
)
axes.set(xlabel=r"step size $\varepsilon$", ylabel="probability of escape")
axes.legend(loc="lower right")
plt.show()

# %% [markdown]
# In {numref}`fig-how-far-escape` the circles lie on the line. At $\varepsilon = 0.45$ a chain lasts about fourteen steps, at 0.3 nearly fifty thousand, at 0.2 longer than anyone can wait.
# For small steps the edge lies at $\theta_* \approx 1/\varepsilon$, and the energy there is of the order $\varepsilon^{-4}$: no power of the step follows the rate for long.
# The paper has $\varepsilon = 0.1$ and $C = 3$. Nothing is wrong with its figure; it shows the quasi-stationary distribution, which at $\varepsilon = 0.2$ already has the right mean of $\theta^2$ but for 2.4 per cent. (The paper's code draws the momentum afresh every 50 steps; that saves no chain: beyond the edge one kick from rest throws $\theta$ to the other side, at least $3 - 2\varepsilon C = 2.4$ times as far out.)
# But "there is a small step at which it is safe" is a statement about this target, this friction and this number of steps, not a theorem.

# %% tags=["hide-input"]
worst = 0.0
for h, (before, after, number) in counted.items():
    stay = (1 - rates[h]) ** number
    grid_error = 0.03 * before * stay * number * rates[h]
    spread = (before * stay * (1 - stay) + grid_error**2) ** 0.5
    worst = max(worst, abs(after - before * stay) / spread)
claim(
    "Largest distance of four numbers of surviving chains from the grid's, in standard "
    "errors",
    worst,
    at_most=5.5,
    errors=True,
    because="binomial errors, and 3 % of the grid's rates for its spacing",
)
claim(
    "Logarithm to base 10 of the rate of escape at ε = 0.2",
    math.log10(rates[0.2]),
    near=-21.5,
    within=0.4,
    because="sums on a grid",
    kind="exact",
)
claim(
    "Mean number of steps to the escape at ε = 0.45",
    1 / rates[0.45],
    near=14,
    within=1,
    because="sums on a grid",
    kind="exact",
)
claim(
    "Mean number of steps to the escape at ε = 0.3, in ten thousands",
    1e-4 / rates[0.3],
    near=4.7,
    within=0.5,
    because="sums on a grid",
    kind="exact",
)
line = torch.linspace(-4, 4, 4_001, dtype=DOUBLE)
true_square = float(
    (torch.exp(-quartic(line)) * line**2).sum() / torch.exp(-quartic(line)).sum()
)
claim(
    "Rate of escape at ε = 0.45 over that at ε = 0.3",
    rates[0.45] / rates[0.3],
    at_least=1_000,
    because="sums on a grid; 3,400",
    kind="exact",
)
powers = [
    math.log(rates[a] / rates[b]) / math.log(a / b)
    for a, b in ((0.45, 0.4), (0.25, 0.2))
]
claim(
    "Power of the step with which the rate falls, from 0.25 to 0.2, over the power "
    "from 0.45 to 0.4",
    powers[1] / powers[0],
    at_least=8,
    because="sums on a grid; 118 against 9",
    kind="exact",
)
claim(
    "Relative bias of the quasi-stationary mean of θ² at ε = 0.2",
    quasi[0.2] / true_square - 1,
    near=-0.0238,
    within=0.001,
    because="sums on a grid",
    kind="exact",
)

# %% [markdown]
# Which other targets have no Lipschitz gradient? A Gaussian likelihood whose mean is a polynomial of degree two or more in the parameters, a factorisation, a funnel, squared errors of a network with a hidden layer of rectifiers, which grow as the fourth power of its weights. Logistic and linear regression are harmless. A classifier with a hidden layer of rectifiers lies between: the gradient of its log loss grows no faster than the weights, but its curvature has no bound.
# The theorem does not cover all of these as it stands, for it asks the gradient to be steep in *every* direction, and if one factor is zero a product is flat in the other. But the theorems that give a law no longer hold for them either, and where a path runs out along a steep direction it can overshoot as here.
# Who wants a guarantee has three ways: a correction step, which refuses the fatal jump; a *tamed* gradient, $\nabla U/(1 + \eta\lvert\nabla U\rvert)$, whose steps are bounded {cite:p}`brosse2019`; or a clipped gradient with a limit that grows as $1/\eta$, which does the same with another formula. Under a fixed limit the chain has another target.
#
# ## Noise that depends on the position
#
# The {term}`gradient noise` of a minibatch is louder where the examples disagree. With constant noise and no estimate SGLD has the temperature $1 + \tfrac12\eta V$. So with $V(\theta)$ one expects a local temperature, hotter here than there. What is its law?
# Expand a step to the second order in $\eta$, as {prf:ref}`thm-sgld-first-order` does. In one dimension the law of SGLD is $\pi\,(1 + \eta h)$ up to the second order, with
#
# $$
# h = \tfrac12\int V\,dU - \tfrac12V + \tfrac14U'^2 - \tfrac12U'' + \text{const}.
# $$ (eq-how-far-density)
#
# The last two terms are the bias of the step, which is there without noise. The first is the heat, added up on the way uphill; if $V$ is constant it is $\tfrac12VU$, the first order of $e^{-U/T}$. The second is new: the law avoids the places where the gradient is loud, because a diffusion moves faster where it is hot, and so stays there for less time.
# In general no temperature has this law.
#
# Our example has twelve throws, one coefficient and minibatches of two. Eleven throws hit, at small inputs, and one at the input 4 misses: but for the prior's share only minibatches with it pull to the left, and the harder the larger $\theta$ is. So the noise grows from left to right, where nearly all of the posterior lies.
# There are 66 minibatches; we enumerate them, and the law of SGLD on the grid is exact.

# %%
N, n = 12, 2
inputs = torch.cat([torch.linspace(0.2, 1.2, 11), torch.tensor([4.0])]).double()
labels = torch.tensor([1.0] * 11 + [0.0], dtype=DOUBLE)
throws = LogisticRegression(inputs[:, None], labels, batch_size=n)

grid = torch.linspace(-5, 6, 441, dtype=DOUBLE)
width = float(grid[1] - grid[0])
target = torch.exp(-throws.energy(grid[:, None]))
target = target / target.sum()
# Each example's gradient, with its share of the prior.
each = inputs * (torch.sigmoid(inputs * grid[:, None]) - labels) + grid[:, None] / N
noise = N**2 / n * (N - n) / (N - 1) * each.var(-1, correction=0)  # V(θ)
slope = each.sum(-1)


def sgld_law(step_size):
    """The stationary distribution of SGLD, all minibatches enumerated."""
    pairs = torch.tensor(list(itertools.combinations(range(N), n)))
    mean = grid[:, None] - step_size * N / n * each[:, pairs].sum(-1)
    kernel = torch.exp(-((grid[:, None, None] - mean) ** 2) / (4 * step_size)).mean(-1)
    return torch.linalg.matrix_power(kernel / kernel.sum(0), 4_096) @ target


uphill = torch.cumulative_trapezoid(noise * slope, dx=width)
uphill = torch.cat([torch.zeros(1, dtype=DOUBLE), uphill])
share = torch.sigmoid(inputs * grid[:, None])
curvature = (inputs**2 * share * (1 - share)).sum(-1) + 1
step_bias = 0.25 * slope**2 - 0.5 * curvature
h = 0.5 * uphill - 0.5 * noise + step_bias
h = h - (target * h).sum()
# The same if the noise were everywhere that of the mode, a temperature:
mode_noise = float(noise[target.argmax()])
h_constant = 0.5 * mode_noise * throws.energy(grid[:, None]) + step_bias
h_constant = h_constant - (target * h_constant).sum()
laws = {step_size: sgld_law(step_size) for step_size in (0.02, 0.004, 0.002)}

# %% mystnb={"figure": {"caption": "Top: the posterior of one coefficient (grey) and the noise $V(\\theta)$ of minibatches of two among twelve examples (line). Bottom: what SGLD at $\\eta = 0.002$ adds to the density, over $\\eta$: enumerated (thick), by the formula (dashed), and by the formula if the noise were everywhere that of the mode (dotted).", "name": "fig-how-far-local"}, "image": {"alt": "Top: a grey hill at 0.3, and a curve of the noise that rises across it from below 10 on the left to above 80 on the right. Bottom: the enumerated change is negative in the middle and has a positive bump on either side; the dashed line lies on it, the dotted one is a similar curve too far to the left."}} tags=["hide-input"]
figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.2, 5.4), sharex=True)
top.fill_between(grid, target / width, color=TRUTH, alpha=0.35, lw=0)
top.set(ylabel="density", xlim=(-1.8, 2.2), ylim=(0, 1))
twin = top.twinx()
twin.plot(grid, noise, color="black")
twin.set(ylabel=r"noise $V(\theta)$", ylim=(0, 120))
change = (laws[0.002] - target) / width / 0.002
bottom.plot(grid, change, color=COLOURS["SGLD"], lw=4, alpha=0.5, label="enumerated")
bottom.plot(grid, target * h / width, "--", color="black", label="formula")
bottom.plot(grid, target * h_constant / width, ":", color="black", label="one noise")
bottom.set(xlabel=r"$\theta$", ylabel=r"change of the density, over $\eta$")
figure.legend(*bottom.get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %% [markdown]
# In {numref}`fig-how-far-local` the formula lies close to the enumerated law. With one noise for all places, a temperature, the left side is heated too much and the right side too little; and no other number is better than that of the mode by much.


# %% tags=["hide-input"]
def first_order_gap(step_size, change):
    """Total variation of the enumerated law from the target times 1 + η·change."""
    return float((laws[step_size] - target * (1 + step_size * change)).abs().sum()) / 2


for name, change, order in (("of the formula", h, 2), ("of one noise", h_constant, 1)):
    claim(
        f"Order in η of the distance of the law from that {name}",
        math.log2(first_order_gap(0.004, change) / first_order_gap(0.002, change)),
        near=order,
        within=0.2,
        because="total variation, enumerated at η = 0.004 and 0.002",
        kind="exact",
    )
slopes = (h_constant - step_bias) / mode_noise
others = [V * slopes + step_bias for V in range(101)]
claim(
    "Distance of the best of all noises from 0 to 100 over the formula's, η = 0.002",
    min(first_order_gap(0.002, other - (target * other).sum()) for other in others)
    / first_order_gap(0.002, h),
    at_least=7,
    because="total variation, enumerated; 8.6",
    kind="exact",
)
centre = float((target * grid).sum())
claim(
    "Shift of the mean over η at η = 0.002",
    (float((laws[0.002] * grid).sum()) - centre) / 0.002,
    near=2.49,
    within=0.02,
    because="enumerated; the formula gives 2.52, the noise of the mode 2.01",
    kind="exact",
)
run = sample(
    SGLD(0.02),
    throws,
    torch.full((20_000, 1), centre, dtype=DOUBLE),
    num_samples=5,
    warm_up=150,
    thinning=25,
    seed=3,
)
value, error = run.mean_and_standard_error(lambda x: x)
claim(
    "Mean of SGLD with minibatches at η = 0.02",
    float(value),
    near=round(float((laws[0.02] * grid).sum()), 4),
    standard_error=float(error),
    because="20,000 chains of the package against the enumeration",
)

# %% [markdown]
# For SGHMC with $\hat B = \tfrac12\varepsilon\hat V$ the bias in the mean of $f$ is, to the first order ({prf:ref}`thm-sghmc-first-order`),
#
# $$
# \varepsilon\int\tfrac12(V - \hat V):\nabla_r^2\varphi\,d\pi,
# $$ (eq-how-far-sghmc)
#
# where $\varphi$ solves $-\mathcal L\varphi = f - \int f\,d\pi$ with the generator $\mathcal L$ of the equation {eq}`eq-sghmc` without errors, and $A:B$ is $\operatorname{tr}A^\top B$. Through $\varphi$ it depends on the friction.
# A constant $\hat B$ cannot remove it in general; one that follows $V(\theta)$ does.
#
# There is another way out. Do not take the noise out of what is injected: **add the friction that belongs to it**. With $C(y) = A + \tfrac12\varepsilon V(y)$ and an injected variance of $2\varepsilon A$ the total noise is $2\varepsilon C(y)$, at every place $y$ what its friction asks for.
# For the palindromic step the proof of {prf:ref}`thm-reversal-short` goes through line by line, since forward and backward the kick is at the same $y$. If $V$ is bounded, and under the other conditions of {prf:ref}`thm-general-order`, with its contraction asked of this step, this is order two, **whatever** $V(\theta)$ is ({prf:ref}`thm-following-friction`).
# This is the integrator of {cite:t}`matthews2018`.
# We compare, at half-way points, on the valley with $V = 8\theta^2/(1 + \theta^2)$, which is silent at the mode and loud far out.


# %%
def loudness(x):
    return 8 * x**2 / (1 + x**2)


def following(step_size, least):
    """The kicks of the palindromic step with friction A + ½εV(y)."""

    def share(middle):
        return 0.5 * step_size * (least + 0.5 * step_size * loudness(middle))

    def mean(old, middle):
        force = step_size**2 * valley_slope(middle)
        s = share(middle)
        return middle + ((1 - s) * (middle - old) - force) / (1 + s)

    return mean, lambda x: step_size * (4 * share(x)).sqrt() / (1 + share(x))


line = torch.linspace(-12, 12, 4_001, dtype=DOUBLE)
weights = torch.exp(-valley(line)) / torch.exp(-valley(line)).sum()
average = float((weights * loudness(line)).sum())
local = {}


def half_way(moments):
    """The bias in θ² of the points half-way between neighbouring positions."""
    points, law, _ = pair_law(*moments, valley, 7.0)
    between = 0.5 * (points + points[:, None])
    return float((law * between**2).sum()) - truth


for s in (0.28, 0.14):
    for name, estimate, scale in (
        ("no estimate", 0.0, 1.0),
        ("average noise", average, 1.0),
        ("no gradient noise at all", 0.0, 0.0),
    ):

        def step_noise(x, s=s, estimate=estimate, scale=scale):
            injected = 2 * s * (2.0 - 0.5 * s * estimate)
            return injected + scale * s**2 * loudness(x)

        local[name, s] = half_way(drift_kick(valley_slope, s, 2.0, step_noise))
    local["friction follows", s] = half_way(following(s, 2.0))

# %% tags=["hide-input"]
names = ("no estimate", "average noise", "friction follows", "no gradient noise at all")
show_table(
    ["bias of E[θ²]", "ε = 0.28", "ε = 0.14"],
    [[name, *(f"{local[name, s]:.4f}" for s in (0.28, 0.14))] for name in names],
)
for name in names[:2]:
    extra = [local[name, s] - local[names[3], s] for s in (0.28, 0.14)]
    claim(
        f"Order of what the noise adds to the bias: {name}",
        math.log2(extra[0] / extra[1]),
        near=1,
        within=0.4,
        because="sums on a grid; terms of the next order remain",
        kind="exact",
    )
for s in (0.28, 0.14):
    silent = local[names[3], s]
    claim(
        f"Share of the added bias that the average noise leaves, ε = {s:g}",
        (local[names[1], s] - silent) / (local[names[0], s] - silent),
        at_most=0.15,
        because="sums on a grid; about an eighth",
        kind="exact",
    )
    claim(
        f"Bias where the friction follows over that without gradient noise, ε = {s:g}",
        local[names[2], s] / silent,
        near=0.8,
        within=0.2,
        because="sums on a grid; the two steps have different masses and frictions",
        kind="exact",
    )
claim(
    "Order of the whole bias where the friction follows the noise",
    math.log2(local[names[2], 0.28] / local[names[2], 0.14]),
    near=2,
    within=0.2,
    because="sums on a grid; terms of the next order remain",
    kind="exact",
)
claim(
    "Share of what the noise adds that is left with its average estimated, ε = 0.28",
    (local[names[1], 0.28] - local[names[3], 0.28])
    / (local[names[0], 0.28] - local[names[3], 0.28]),
    near=0.125,
    within=0.005,
    because="sums on a grid; an eighth, and 0.117 at ε = 0.14",
    kind="exact",
)
claim(
    "Bias where the friction follows, over that without noise: the larger of the two ε",
    max(local[names[2], s] / local[names[3], s] for s in (0.28, 0.14)),
    at_most=0.9,
    because="sums on a grid; 0.68 and 0.84",
    kind="exact",
)

# %% [markdown]
# An estimate of the average noise takes most of the bias away in this example, not its order. With friction that follows the noise no more bias is left than without any gradient noise.
# Two conditions stand in the small print. $V(y)$ must be known, or estimated from other examples than those of the step, for an estimate from the same minibatch is correlated with the gradient. And the noise is taken to be Gaussian: skew noise changes the third moment of a step by order $\varepsilon^3$, and so the law by order $\varepsilon^2$ once more.
#
# ## Heavy tails
#
# Take linear regression with control variates ({doc}`/book/further/choosing_the_estimate`): at the posterior mean the minibatch gradient has no noise at all.
# Away from it there is some, since each example sees a curvature of its own. With one input, errors of variance 1, a flat prior and minibatches of one, the distance $\delta$ from the mean follows
#
# $$
# \delta' = (1 - \eta Nx_i^2)\,\delta + N(0, 2\eta),
# $$ (eq-how-far-contraction)
#
# with a random $i$. The noise multiplies.
# Mostly the factor shrinks $\delta$; now and then, for a large $x_i$, it stretches it, and several such steps in a row throw the chain far out.
#
# ```{prf:theorem} Moments of random contractions
# :label: thm-contractions-short
#
# Let $F = 1 - \eta Nx_i^2$ and $E\log\lvert F\rvert < 0$. There is one stationary distribution. Its moment $E\lvert\delta\rvert^p$, $p \ge 1$, is finite if and only if $E\lvert F\rvert^p < 1$.
# ```
#
# This is part of {prf:ref}`thm-contractions`. If $\lvert F\rvert > 1$ can happen, $E\lvert F\rvert^p$ exceeds one for a large $p$, however small the chance. The *tail exponent* $\kappa$ solves
#
# $$
# E\lvert F\rvert^\kappa = 1 ,
# $$ (eq-how-far-kappa)
#
# and {cite:t}`kesten1973` and {cite:t}`goldie1991` show that $P(\lvert\delta\rvert > t)$ falls as $t^{-\kappa}$, unless the numbers $\log\lvert F\rvert$ are all multiples of one number: a power law, out of finitely many examples and Gaussian noise.
# {numref}`fig-how-far-tails` has $\kappa$ for a hundred inputs that are the quantiles of a standard normal.

# %%
num_examples = 100
x = torch.tensor(norm.ppf((torch.arange(num_examples) + 0.5) / num_examples))


def tail_exponent(factors):
    """The positive solution of E|F|^κ = 1; infinite if no factor exceeds one."""
    logs = factors.abs().log()
    if logs.max() <= 0:
        return math.inf
    if logs.mean() >= 0:
        return 0.0
    return brentq(
        lambda k: float(torch.logsumexp(k * logs, 0)) - math.log(len(logs)), 1e-6, 1e3
    )


def factors(scaled_step):
    """F of every example; the step is given in units of 1/N."""
    return 1 - scaled_step * x**2


scaled = torch.linspace(0.305, 1.6, 150, dtype=DOUBLE)
exponents = [tail_exponent(factors(float(s))) for s in scaled]

generator = torch.Generator().manual_seed(5)
position = torch.zeros(100_000, dtype=DOUBLE)
draws = []
for number in range(1, 181):
    chosen = torch.randint(num_examples, position.shape, generator=generator)
    fresh = torch.randn(position.shape, generator=generator, dtype=DOUBLE)
    position = factors(0.6)[chosen] * position + (2 * 0.6 / num_examples) ** 0.5 * fresh
    if number > 60 and number % 30 == 0:
        draws.append(position)
sizes = torch.cat(draws).abs().sort(descending=True).values * num_examples**0.5
largest = sizes[:1_001]
hill = 1 / float((largest[:-1] / largest[-1]).log().mean())  # Hill's estimator

# %% mystnb={"figure": {"caption": "SGLD with control variates and minibatches of one. Top: the tail exponent against the step, in units of 1/N; moments of higher order than that are infinite. Bottom: share of 400,000 draws farther than t from the mean at a step of 0.6/N (line), a power law with the computed exponent (dashed), and what a Gaussian of the same variance has (grey).", "name": "fig-how-far-tails"}, "image": {"alt": "Top: a curve that comes down from above ten at 0.35, crosses four near 0.5 and two near 0.7, and falls towards zero. Bottom: on logarithmic axes the line of the draws bends into a straight fall along the dashed line, far above the grey curve, which drops steeply."}} tags=["hide-input"]
figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.2, 5.6))
top.plot(scaled, exponents, color=COLOURS["SGLD"])
for level, text in (
    (2, "below this line: no variance"),
    (4, "below this line: no fourth moment"),
):
    top.axhline(level, color=TRUTH, lw=1, zorder=0)
    top.text(1.59, level + 0.2, text, ha="right", color="0.4")
top.set(xlabel=r"step size, $N\eta$", ylabel=r"tail exponent $\kappa$", ylim=(0, 12))
shares = torch.arange(1, len(sizes) + 1) / len(sizes)
kappa = tail_exponent(factors(0.6))
bottom.loglog(sizes, shares, color=COLOURS["SGLD"], label="draws")
power_law = shares[1_000] * (largest / largest[-1]) ** -kappa
bottom.loglog(largest, power_law, "--", color="black", label="power law")
spread = (1.2 / (1 - float(factors(0.6).square().mean()))) ** 0.5
places = torch.linspace(0.3, 4.3 * spread, 200)
normal = torch.erfc(places / spread / 2**0.5)
bottom.loglog(places, normal, color=TRUTH, label="Gaussian")
bottom.legend(loc="upper right")
bottom.set(xlabel=r"$t\,\sqrt{N}$", ylabel=r"$P(|\delta| > t)$", xlim=(0.3, None))
bottom.set_ylim(1e-6, 1.5)
plt.show()

# %% [markdown]
# At $N\eta = 0.6$ the chain has a variance, but the fourth moment is infinite: the *estimate* of the variance converges so slowly that its standard error means nothing.
# Beyond 0.71 the variance is infinite, though a linear chain with the average curvature is stable up to 2 and a little more.
# In the figure's lower half the draws follow the computed power law.

# %% tags=["hide-input"]
claim(
    "Tail exponent at a step of 0.6/N",
    kappa,
    near=2.69,
    within=0.01,
    because="the solution of the equation, all examples enumerated",
    kind="exact",
)
claim(
    "Hill's estimate of it, from the largest thousand of 400,000 draws",
    hill,
    near=2.69,
    within=0.5,
    because="other seeds spread by 0.09, and a power law sets in slowly",
)
limit = brentq(lambda s: float(factors(s).square().mean()) - 1, 0.1, 2)
claim(
    "Step, in units of 1/N, beyond which the variance is infinite",
    limit,
    near=0.713,
    within=0.003,
    because="E F² = 1, all examples enumerated",
    kind="exact",
)
claim(
    "Step at which the linear chain with the average curvature becomes unstable",
    2 / float(x.square().mean()),
    near=2.04,
    within=0.02,
    because="ηa = 2, in units of 1/N",
    kind="exact",
)
claim(
    "Tail exponent at the step beyond which the variance is infinite",
    tail_exponent(factors(limit)),
    near=2,
    within=1e-6,
    because="E|F|² = 1",
    kind="exact",
)
claim(
    "Step below which no moment is infinite, in units of 1/N",
    2 / float(x.square().max()),
    near=0.301,
    within=0.001,
    because="no factor exceeds one",
    kind="exact",
)

# %% [markdown]
# In more dimensions the condition for a finite covariance is that the map $\Sigma \mapsto E[F\Sigma F^\top]$ has a spectral radius below one. It is also the condition under which {eq}`eq-regression-balance` has a solution that is a covariance, and it is stricter than $\eta a < 2$.
# Without control variates the same factors are at work, beside an additive noise.
# {cite:t}`gurbuzbalaban2021` and {cite:t}`hodgkinson2021` have studied this for stochastic gradient descent, whose steps are larger.
#
# ## Dimension
#
# All these errors are for one coordinate. With $d$ independent ones the mean of a function of *one* has the same error as before, but the whole law drifts away from the target: small errors add up.
# On a standard Gaussian, at $\varepsilon = 0.2$ and $C = 2$, SGHMC has variances that are too large by 1.3 per cent. This is the total variation from the target:


# %%
def total_variation(dim, factor):
    """Total variation of N(0, factor·I) from N(0, I) in so many dimensions."""
    # The densities are equal where |θ|² = d·log(factor)·factor/(factor − 1).
    where = dim * math.log(factor) * factor / (factor - 1)
    return float(chi2.cdf(where, dim) - chi2.cdf(where / factor, dim))


factor = float(sghmc_chain(torch.eye(1), 0.2, 2.0, 0.0).stationary_covariance()[0, 0])
dims = (1, 10, 100, 1_000, 10_000, 100_000)
apart = [total_variation(d, factor) for d in dims]

# %% tags=["hide-input"]
show_table(
    ["dimension", "total variation"],
    [[f"{d:,}", f"{a:.3f}"] for d, a in zip(dims, apart, strict=True)],
)
claim(
    "Excess of the variance of one coordinate at ε = 0.2, C = 2",
    factor - 1,
    near=0.0127,
    within=0.0001,
    because="exact law",
    kind="exact",
)
claim(
    "Total variation in 1,000 dimensions over that in 10",
    apart[3] / apart[1],
    near=10,
    within=1,
    because="it grows as the root of the dimension while it is small; exact",
    kind="exact",
)
claim(
    "Total variation in 100,000 dimensions",
    apart[-1],
    at_least=0.8,
    because="exact: the radius alone tells the laws apart",
    kind="exact",
)

# %% [markdown]
# While it is small it grows as $\sqrt d\,\varepsilon^2$; {prf:ref}`prop-dimension` shows that it grows no faster, and that it tends to one unless $d\,\varepsilon^4$ stays bounded. To keep the whole law, $\varepsilon$ must fall as $d^{-1/4}$, as for HMC with a correction step ({ref}`ex-hmc-dimension`).
# The constant of {prf:ref}`thm-uniform`, on SGNUTS, is of this kind. Whether it matters depends on the question. A network's prediction depends on many weights at once; the mean of one weight does not.
#
# ## Who knew it
#
# The palindromic step and its work are not new. Physicists need to integrate Langevin's equation as much as statisticians do.
#
# | who | what | here |
# | --- | --- | --- |
# | {cite:t}`mannella2006` | integrators of Langevin's equation that obey detailed balance, become symplectic without friction and have the equilibrium law to a higher order in the step | the same three requirements. The step that programs call Mannella's leapfrog is the palindromic one with $M = 1$ and a number $C = \gamma$: $\tilde x = x + \tfrac12hv$, $(1 + \tfrac12\gamma h)v' = (1 - \tfrac12\gamma h)v - hU'(\tilde x) + N(0, 2\gamma Th)$, $x' = \tilde x + \tfrac12hv'$; of the paper itself we know the summary |
# | {cite:t}`burrage2007`, {cite:t}`burrage2009` | the stationary distributions of methods for a damped oscillator with noise: of the Runge–Kutta methods with a nonsingular tableau only the implicit midpoint rule has the right one for all frictions; the second, which we know only as others cite it, builds explicit methods whose position is exact and whose error is in the velocity | {eq}`eq-how-far-midpoint` beside the palindromic step: $\theta$ right in both, $r$ in theirs ({prf:ref}`thm-quadratic`) |
# | {cite:t}`gronbechjensen2013` | a Verlet step with friction and noise whose position has the exact law on a harmonic oscillator, at every friction and every stable step | the same property of $\theta$; known by its summary |
# | {cite:t}`matthews2018` | for stochastic gradients: order two, and exact for a Gaussian with Gaussian noise | the same step, with $C = A + \tfrac12\varepsilon V$ and $\hat B = \tfrac12\varepsilon V$; the claim below |
# | {cite:t}`sivak2013` | *shadow work*: a finite step acts as a force that drives the system out of equilibrium | our $W$: the change of $H$ less the heat |
#
# What {cite:t}`matthews2018` do, in their letters: $D = c_1 + \tfrac14h^2\Sigma$, and between two half drifts
#
# $$
# \begin{aligned}
# p &\leftarrow p + \tfrac12h\tilde F + R,\\
# p &\leftarrow (1 + D)^{-1}(1 - D)\,p,\\
# p &\leftarrow p + R + \tfrac12h\tilde F,
# \end{aligned}
# $$ (eq-how-far-nogin)
#
# with one $R \sim N(0, c_1)$ used twice, as their [program](https://github.com/c-matthews/nogin) has it. Together $(1 + D)p' = (1 - D)p + h\tilde F + 2R$: friction on the mean of the old and the new momentum, with $\tfrac12\varepsilon C = D$, and noise of variance $4c_1 = 2\varepsilon(C - \hat B)$.
#
# The implicit midpoint rule of {cite:t}`burrage2007`, in our letters with $M = 1$, has the same friction and another place for the force:
#
# $$
# \begin{aligned}
# \theta' &= \theta + \tfrac12\varepsilon(r + r'),\\
# r' &= r - \varepsilon\nabla U\bigl(\tfrac12(\theta + \theta')\bigr) - \tfrac12\varepsilon C(r + r') + N(0, 2C\varepsilon),
# \end{aligned}
# $$ (eq-how-far-midpoint)
#
# an equation for $\theta'$, to be solved at every step, where the palindromic one takes the force at $\theta + \tfrac12\varepsilon r$. In the bowl $U = \tfrac12\lambda\theta^2$ the price buys the law of the momentum: the midpoint rule has both laws right, the palindromic step that of $\theta$ alone, and $\operatorname{Var}[r] = 1/(1 - \tfrac14\varepsilon^2\lambda)$.
#
# And the shadow work: on a palindromic step the force of friction and noise is $-\tfrac12C(v + v') + \xi/\varepsilon$, and it acts along $\theta' - \theta$. Its heat is $K' - K + \nabla U(y)^\top(\theta' - \theta)$, and what is left of the change of $H$ is $W$.

# %% tags=["hide-input"]
generator = torch.Generator().manual_seed(6)
covariance = root[0] @ root[0].T / 3
p, force, normal = torch.randn(3, 4, 3, generator=generator, dtype=DOUBLE)
eye, c1 = torch.eye(3, dtype=DOUBLE), 0.25
D = c1 * eye + 0.3**2 / 4 * covariance
theirs = p + 0.15 * force + c1**0.5 * normal
theirs = torch.linalg.solve(eye + D, (eye - D) @ theirs.T).T
theirs = theirs + c1**0.5 * normal + 0.15 * force
both = 2 / 0.3 * c1 * eye + 0.5 * 0.3 * covariance  # C = A + ½εV
total = 0.3 * force + (2 * 0.3 * 2 / 0.3 * c1) ** 0.5 * normal
ours = flows.friction_flow(0.15, both).factor @ p + total
ours = flows.implicit_friction_flow(0.15, both).factor @ ours
claim(
    "Largest difference of a kick of Matthews and Weare from the palindromic one",
    (ours - theirs).abs().max(),
    at_most=1e-12,
    because="the same formula; rounding",
    kind="exact",
)
drift = torch.tensor([[0.0, 1.0], [-1.0, -0.8]], dtype=DOUBLE)  # λ = 1 and C = 0.8
solved = torch.linalg.inv(torch.eye(2, dtype=DOUBLE) - 0.25 * drift)  # ε = 0.5
noise = torch.tensor([[0.0, 0.0], [0.0, 2 * 0.8 * 0.5]], dtype=DOUBLE)
steps = {
    "implicit midpoint": LinearChain(
        solved @ (torch.eye(2, dtype=DOUBLE) + 0.25 * drift), solved @ noise @ solved.T
    ),
    "palindromic": linear_chain(
        flows.palindromic(0.5, 0.8), torch.ones(1, 1, dtype=DOUBLE)
    ),
}
for name, expected in (
    ("implicit midpoint", 1.0),
    ("palindromic", 1 / (1 - 0.5**2 / 4)),
):
    law = steps[name].stationary_covariance()
    for what, value, near in zip(("θ", "r"), law.diag(), (1.0, expected), strict=True):
        claim(
            f"Variance of {what} in the bowl, {name} step, ε = 0.5",
            value,
            near=near,
            within=1e-12,
            because="the discrete Lyapunov equation, exactly",
            kind="exact",
        )
y, r, xi = torch.randn(3, 200, generator=generator, dtype=DOUBLE)
after = ((1 - 0.15) * r - 0.3 * valley_slope(y) + xi) / (1 + 0.15)  # ε = 0.3, C = 1
moved = 0.15 * (r + after)
begin, finish = y - 0.15 * r, y + 0.15 * after
heat = moved * (-0.5 * (r + after) + xi / 0.3)
rise = valley(finish) - valley(begin) + 0.5 * (after**2 - r**2)
work = valley(finish) - valley(begin) - valley_slope(y) * moved
claim(
    "Largest difference of the work from the change of H less the heat, 200 steps",
    (rise - heat - work).abs().max(),
    at_most=1e-12,
    because="an identity; rounding",
    kind="exact",
)

# %% [markdown]
# ## In practice
#
# * While the momentum is kept, the mean of two neighbouring positions of SGHMC is a draw of the palindromic chain. Where the posterior is nearly Gaussian, keep it in place of the position.
# * Before you trust a run on a model whose energy grows faster than a parabola, run it once with a step that is half as long again. The rate of escape changes by powers of ten; if no chain escapes there, yours are far from the edge.
# * A temperature describes the heat of minibatches only if the noise is the same everywhere. If it is not, lower the step, or let the friction follow the noise.
# * With control variates, and with every method whose noise grows with the distance from the mode, look at the fourth moment: a few draws far out are no accident.
# * "Close in total variation" is a strong wish in high dimensions. Ask for the quantities that you need.
#
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | SGHMC as a chain of pairs | next position from the last two | {eq}`eq-how-far-pair` |
# | half a drift | palindromic of mass $M - \tfrac12\varepsilon C$, at $\theta + \tfrac12\varepsilon v$ | {prf:ref}`prop-half-drift` |
# | a bound at every step | $W_2 \le \dots + \tfrac{3L}{2m}\sqrt{\eta d} + \sigma\sqrt{\eta d/m}$ | {eq}`eq-how-far-bound` |
# | edge of the double well | $\theta_*^2 = 1 + (2 - \varepsilon C)/(2\varepsilon^2)$ | {eq}`eq-how-far-edge` |
# | law of SGLD to first order | $h = \tfrac12\int V\,dU - \tfrac12V + \tfrac14U'^2 - \tfrac12U''$ | {eq}`eq-how-far-density` |
# | tail exponent | $E\lvert F\rvert^\kappa = 1$ | {eq}`eq-how-far-kappa` |
#
# ## Change it
#
# * In the cell that compares masses replace `lighter = mass - 0.5 * 0.1 * friction` by `lighter = mass - 0.1 * friction`: the claim on the lighter mass shows ✗.
# * In the cell of the throws replace `- 0.5 * noise + step_bias` by `+ step_bias`, that is, leave the second term of {eq}`eq-how-far-density` out: the claim on the order of the distance from the formula shows ✗, and so does that on the best of all noises.
# * In the cell that draws the chains replace `factors(0.6)[chosen]` by `factors(0.3)[chosen]`: at half the step no factor exceeds one, the tail is light, and the claim on Hill's estimate shows ✗.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-how-far-yourself
#
# **Write it yourself.** Write a function that takes the factors $F$ of all minibatches, equally likely, and returns the tail exponent by bisection: $\kappa$ with $E\lvert F\rvert^\kappa = 1$.
# You may take for granted that some $\lvert F\rvert > 1$ and that $E\log\lvert F\rvert < 0$. Why is there exactly one positive solution?
#
# ```python
# def my_tail_exponent(factors):
#     """factors is a tensor of numbers."""
#     ...
# ```
# ````
#
# ````{solution} ex-how-far-yourself
# :class: dropdown
#
# $g(k) = \log E\lvert F\rvert^k$ is convex, $g(0) = 0$ and $g'(0) = E\log\lvert F\rvert < 0$; it tends to infinity, because some $\lvert F\rvert > 1$. So it crosses zero once more, on its way up.
#
# ```python
# def my_tail_exponent(factors):
#     low, high = 0.0, 1.0
#     while float((factors.abs() ** high).mean()) < 1:
#         low, high = high, 2 * high
#     for _ in range(60):
#         middle = 0.5 * (low + high)
#         if float((factors.abs() ** middle).mean()) < 1:
#             low = middle
#         else:
#             high = middle
#     return high
# ```
#
# The cell below compares it with the chapter's.
# ````


# %% tags=["hide-input"]
def my_tail_exponent(factors):
    low, high = 0.0, 1.0
    while float((factors.abs() ** high).mean()) < 1:
        low, high = high, 2 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        if float((factors.abs() ** middle).mean()) < 1:
            low = middle
        else:
            high = middle
    return high


claim(
    "Largest difference of the written function from the chapter's, four steps",
    max(
        abs(my_tail_exponent(factors(s)) - tail_exponent(factors(s)))
        for s in (0.4, 0.5, 0.6, 0.8)
    ),
    at_most=1e-6,
    because="the same equation",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-how-far-square
#
# In {eq}`eq-how-far-contraction` let the minibatches have $n$ examples, drawn with replacement, and let $a = N\overline{x^2}$ be the curvature and $w = N^2\operatorname{Var}(x^2)/n$ the variance of what a minibatch sees of it. For which steps is the variance finite, and what is it?
# ```
#
# ```{solution} ex-how-far-square
# :class: dropdown
#
# $E F^2 = (1 - \eta a)^2 + \eta^2w < 1$ if and only if $\eta < 2a/(a^2 + w)$. Then $E\delta^2 = \frac{2\eta}{1 - EF^2} = \frac1{a - \frac12\eta(a^2 + w)}$. With constant noise $w$ would be zero, and the limit $2/a$.
# ```
#
# ```{exercise}
# :label: ex-how-far-tamed
#
# Why has SGLD with the tamed gradient $U'/(1 + \eta\lvert U'\rvert)$ a stationary distribution on the double well, at every $\eta$?
# ```
#
# ```{solution} ex-how-far-tamed
# :class: dropdown
#
# A step moves $\theta$ by at most 1 besides the noise, and far out by nearly that much towards the middle: $\eta U'/(1 + \eta\lvert U'\rvert) \to \pm1$. So $E\lvert\theta'\rvert \le \lvert\theta\rvert - \tfrac12$ plus what the noise adds to the mean of $\lvert\theta'\rvert$. Far out that is nearly nothing, because there the noise lengthens or shortens $\lvert\theta'\rvert$ by as much, according to its sign. The chain comes back from far away, its density is positive everywhere, and a law exists as in {prf:ref}`thm-ergodic-chain`.
# ```
#
# ## Further reading
#
# {cite:t}`leimkuhler2016` is the book on integrators of Langevin's equation and the orders of their laws. {cite:t}`vollmer2016` expand the bias of SGLD, {cite:t}`durmus2021` prove what discretised kinetic Langevin dynamics needs to forget its start at a rate in proportion to the step. {cite:t}`brosse2018` say what constant steps and minibatches cost together.
