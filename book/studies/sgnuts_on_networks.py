# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # SGNUTS on networks
#
# ```{div} page-head
# Level: advanced · Reading: about 91 minutes, without the exercises · Running: about 20 seconds
# ```
#
# The no-U-turn sampler with noisy gradients was proposed for networks, and did well on two data sets; this chapter finds out what the trees did there, what they cost, and whether something simpler does it too.
#
# **You will learn** to
#
# * compare samplers whose steps cost different amounts, in the one currency that is fair,
# * check a sampler of a whole network on the weights whose law is known,
# * say why a tree with friction turns at once on a slope, and never near equilibrium,
# * compute what a gradient is worth when it is spent in a tree,
# * tell an effect of an algorithm from an effect of its starting point.
#
# **You will need** {doc}`/book/tutorial/sgnuts` and {doc}`/book/tutorial/digits`.

# %%
import math
import warnings

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy import stats

from booklib.data import digits
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.held import HeldMinibatch
from booklib.runs.plans import Hamiltonian, HeadStart, Plan, Prior, Trees
from booklib.runs.results import RESULTS, read_result, who_ran
from booklib.runs.trees import BURN_INS, TreeRun
from sgmc import sample
from sgmc.kernels import SGNUTS
from sgmc.minibatches import Fresh
from sgmc.posteriors import NetworkPosterior
from sgmc.potentials import Potential
from sgmc.splittings import linear_chain, sghmc_chain
from sgmc.splittings.flows import palindromic

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# That trees reach their largest depth is what this chapter is about.
warnings.filterwarnings("ignore", message=".*max_depth")
styles = {
    "SGNUTS": (COLOURS["SGNUTS"], "-"),
    "SGNUTS, our reading": (COLOURS["naive SGHMC"], "--"),
    "SGHMC": (COLOURS["SGHMC"], "-"),
    "SGNUTS, then SGHMC": (COLOURS["HMC"], "-."),
    "fresh momenta, then SGHMC": ("black", ":"),
    "SGNUTS, small start": (COLOURS["SGNUTS"], "-"),
    "SGHMC, small start": (COLOURS["SGHMC"], "-"),
}

# %% [markdown]
# ## The case for SGNUTS
#
# From a fresh {term}`momentum` SGNUTS walks with noisy gradients and friction, doubles its path forwards or backwards by the toss of a coin until the path makes a {term}`U-turn` or the *depth*, the number of doublings, reaches its limit, and chooses one state of the path.
# {cite:t}`adamday` sampled the network 784–100–10, with ReLU units and $N(0, 1)$ {term}`priors <prior>`, in this way: 20 epochs of {term}`warm-up` and 50 of sampling gave an accuracy of 0.94 on MNIST and 0.85 on Fashion-MNIST.
# They saw it do well after very few epochs, where SGHMC needed many, found each epoch slow (28.3 s for the first against 3.2 s, p. 16), and proposed a hybrid: one epoch of SGNUTS, then SGHMC.
# They name their own doubt: a step backwards does not undo a step forwards, "which likely breaks the reversibility" (p. 15).
#
# Their program counts an *epoch* of SGNUTS as $N/n = 100$ trees. A tree of the largest depth, 10, takes $2^{10} - 1 = 1{,}023$ gradients, so that such an epoch may cost as much as a thousand epochs of SGHMC.
#
# ```{prf:definition} Epoch
# :label: def-sgnuts-epoch
#
# An epoch is $N/n$ stochastic gradients, with minibatches of $n$ of the $N$ examples, whatever steps or trees they are spent on. A tree that is not finished at the end of an epoch counts in the next.
# ```
#
# We run the repaired sampler of {doc}`/book/tutorial/sgnuts` (palindromic step, equal weights, a fresh minibatch for each gradient), and one that we call *our reading* of the report: its step, drift and kick (p. 15), with the right noise, a fresh momentum for each tree (Algorithm 3, p. 14), and one minibatch held for a whole tree, as in its program, whose energy is the one in the weights.
# How a state is chosen the report leaves open ("carefully choose a subset", Algorithm 3, p. 14): we read it with the weights $e^{-H}$ of NUTS and its rule for a new half. The program has a rule, a noise and a momentum of its own, which are in {doc}`/book/appendix/errata`: what we find of our reading need not hold of what the report's authors ran. The table in the report's own unit, below, has both.
# The start is a draw from the prior. In the report's program it is uniform on $(-2, 2)$, which is about as wide.
#
# ## A thermometer
#
# How do we see whether a sampler of 79,510 weights is right? We look for weights whose law we know.
#
# ```{prf:proposition} Weights of empty pixels
# :label: prop-sgnuts-thermometer
#
# If a pixel is zero in all training images, then under the posterior the weights from it to the hidden units have the law of the prior, independent of all other weights. Their stochastic gradient is $\lambda w$, $\lambda$ being the prior's precision, without any noise.
# ```
#
# ```{prf:proof}
# The likelihood multiplies those weights by zero. So it does not depend on them, nor does its gradient.
# ```
#
# In such weights every sampler of this chapter is a chain on $N(0, 1)$ with *exact* gradients.
# Their mean square is a thermometer which should read one.
# If it reads less, the chain is too cold, or started with small weights and is not there yet.
# We look for such pixels in the 5,000 digits of this page's own data.

# %%
train, test = digits()
network = multilayer_perceptron([784, 100, 10])
posterior = NetworkPosterior(network, *train, batch_size=100)
empty = (train.inputs == 0).all(0)

generator = torch.Generator().manual_seed(0)
position = torch.randn(1, posterior.dim, generator=generator)
force = posterior.stochastic_gradient(position, generator) - position
of_empty = posterior.parameters_of(force)["0.weight"].view(100, 784)[:, empty]

# %% tags=["hide-input"]
claim(
    "Pixels that are empty in 4,000 digits",
    int(empty.sum()),
    near=124,
    within=0,
    because="counted",
    kind="exact",
)
claim(
    "Largest part of the stochastic gradient, in the weights of empty pixels, that is "
    "not the prior's",
    of_empty.abs().max(),
    at_most=0.0,
    because="zero times anything is zero",
    kind="exact",
)

# %% [markdown]
# ## On a slope a tree tosses coins
#
# A draw from the prior is a dreadful classifier.
# Its {term}`energy` lies far above where the chain has to go, and the first trees grow on a steep slope.
# What does a path look like there?
# It is that of a stone thrown along a hillside, and it goes on in both directions of time: wherever one looks along it, forwards or backwards, it runs downhill.
# {numref}`fig-sgnuts-slope` shows three such paths.

# %% mystnb={"figure": {"caption": "Three paths of eight states on the same slope, downhill being down, all with the same momentum along the slope at the start (ring). A path to one side of its start runs one way. A path to both sides comes up and goes down again: when the slope is steep, its two ends run away from each other and down together, and the criterion calls that a U-turn.", "name": "fig-sgnuts-slope"}, "image": {"alt": "Left, a parabola falling from its top at the ring to the right, called straight. Middle, a parabola with five states right of the ring and two left of it, called a turn. Right, the mirror image with the longer arm on the left, also called a turn."}} tags=["hide-input"]
figure, panels = plt.subplots(1, 3, figsize=(5.5, 2.4), sharey=True)
for axes, (before, after) in zip(panels, ((0, 7), (2, 5), (5, 2)), strict=True):
    steps = torch.arange(-before, after + 1)
    axes.plot(steps, -0.5 * steps**2, "o-", ms=4, color=COLOURS["SGNUTS"])
    axes.plot(0, 0, "o", ms=9, mfc="none", color="black")
    straight = min(before, after) == 0
    axes.set(title="straight" if straight else "a U-turn", xlim=(-7.5, 7.5))
    axes.set(xlabel="along the slope", xticks=[], yticks=[])
panels[0].set_ylabel("uphill")
plt.show()

# %% [markdown]
# How steep is steep?
#
# ```{prf:proposition} Trees on a slope
# :label: prop-sgnuts-slope
#
# On a slope $U = g^\top\theta$, without friction and noise, let a path have the momenta $r - k\varepsilon g$ for $k = -s, \dots, t$, with $r \perp g$ and $M = 1$. It is straight, by the criterion of {doc}`/book/tutorial/no_u_turn`, if and only if $\varepsilon^2\lvert g\rvert^2\min(s, t)\lvert s - t\rvert < 2\lvert r\rvert^2$.
# So a path to one side of its start never turns. If $\varepsilon^2\lvert g\rvert^2 > 2\lvert r\rvert^2$, every path of four and more states that has been to both sides does, and a tree has depth $j$ with probability $2^{-(j-1)}$, $j = 2, 3, \dots$
# ```
#
# ```{prf:proof}
# Let $a = r - t\varepsilon g$ and $b = r + s\varepsilon g$ be the momenta at the ends. All momenta add up to $\rho = \tfrac12(s + t + 1)(a + b)$, and $(a + b)^\top a = 2\lvert r\rvert^2 + \varepsilon^2\lvert g\rvert^2t(t - s)$, $(a + b)^\top b = 2\lvert r\rvert^2 + \varepsilon^2\lvert g\rvert^2s(s - t)$. Both are positive if $\min(s, t) = 0$, and the smaller of them is $2\lvert r\rvert^2 - \varepsilon^2\lvert g\rvert^2\min(s, t)\lvert s - t\rvert$.
# With $2^j$ states $s + t$ is odd, so that $\lvert s - t\rvert \ge 1$. The sub-trees of a path to one side are paths to one side. Hence the tree ends with the first doubling that goes to another side than the first one did: after $j - 1$ equal coins, and then a different one.
# ```
#
# In many dimensions a random $r$ is nearly orthogonal to any given $g$, so the proposition applies.
# Here is a bowl of 300 dimensions, and 4,000 trees from far up its wall.


# %%
class Bowl(Potential):
    """A standard normal law in any dimension."""

    def energy(self, position):
        return 0.5 * position.square().sum(-1)

    def gradient(self, position):
        return position.clone()


step_size = 0.002
# ε²|g|² = 6d, and |r|² is near d
on_the_wall = torch.full((4_000, 300), math.sqrt(6) / step_size)
first_trees = sample(
    SGNUTS(step_size, 1.0, max_depth=4), Bowl(), on_the_wall, num_samples=1, seed=1
).statistics["depth"][0]

# %% tags=["hide-input"]
for depth in (2, 3):
    claim(
        "Share of the first trees on the wall of a bowl in 300 dimensions that "
        f"have depth {depth}",
        (first_trees == depth).double().mean(),
        near=0.5 ** (depth - 1),
        within=0.045,
        because="coins, for orthogonal vectors; 4,000 trees, standard error 0.008",
    )

# %% [markdown]
# So a run of SGNUTS that starts high up begins with a lottery: mostly tiny trees, each with a *fresh momentum*, and now and then, when the coins agree, one long fall.
#
# ## Near equilibrium a tree never turns
#
# ```{prf:theorem} Friction forbids the U-turn
# :label: thm-sgnuts-no-turn
#
# Let $U = \tfrac12\theta^\top A\theta$ with eigenvalues $\lambda_1, \dots, \lambda_d$, $M = 1$, and let $(\theta_t, r_t)$ be the stationary underdamped Langevin process with friction $C$. In the limit of small steps the criterion for a path of duration $\tau$ compares with zero a quantity whose mean is, at either end,
#
# $$
# \mathbb E\bigl[(\theta_\tau - \theta_0)^\top r_\tau\bigr] = \sum_{k=1}^d s_k(\tau), \qquad s_k(\tau) = e^{-C\tau/2}\,\frac{\sin\omega_k\tau}{\omega_k}, \quad \omega_k^2 = \lambda_k - \tfrac14C^2,
# $$ (eq-sgnuts-criterion)
#
# where $\sin(\omega\tau)/\omega$ is $\tau$ for $\omega = 0$ and $\sinh(\lvert\omega\rvert\tau)/\lvert\omega\rvert$ for imaginary $\omega$.
# If all $\lambda_k \le \tfrac14C^2$, and $1/\lambda_k$ stays bounded as their number grows, the probability that a tree of a given largest depth turns is $O(1/d)$.
# ```
#
# ```{prf:proof}
# The sum of the momenta times $\varepsilon$ tends to $\int_0^\tau r_t\,dt = \theta_\tau - \theta_0$. In an eigendirection let $c(\tau) = \mathbb E[\theta_0\theta_\tau]$. Since $\theta$ and $r$ are independent at a given time, $\mathbb E[(\theta_\tau - \theta_0)r_\tau] = -\mathbb E[\theta_0r_\tau] = -c'(\tau)$. The regression of the process on its past gives $c'' + Cc' + \lambda c = 0$ with $c(0) = 1/\lambda$ and $c'(0) = 0$, whose solution has $-c' = s_k$. By reversal of time the mean at the other end is the same.
# For $\lambda_k \le \tfrac14C^2$ each $s_k(\tau)$ is at least $\tau e^{-C\tau/2} > 0$, so that the mean is at least of order $d$. The quantity is a sum of $d$ independent terms with bounded variance, so its variance is at most of order $d$, and by Chebyshev's inequality it is not positive with probability $O(1/d)$. A tree checks finitely many paths, and the union of as many events of probability $O(1/d)$ is another.
# ```
#
# With the settings of the report, $\alpha = 0.01$ and $\varepsilon = \sqrt{2\cdot10^{-6}}$, the network has $C = \alpha/\varepsilon = 7.07$ and $\tfrac14C^2 = 12.5$, while the weights that follow the prior have $\lambda = 1$.
# The momentum is forgotten long before they could turn round, and a walk without memory has no turns.
# The stiff directions, which would turn, are outvoted: their $s_k$ is at most $1/\omega_k$.
# We grow trees on standard normal laws, with much friction and with little.

# %%
dims = (1, 10, 100, 1_000, 10_000)
frictions = {"overdamped, $C = 3$": (3.0, 0.1), "underdamped, $C = 0.5$": (0.5, 0.13)}
depths = {name: [] for name in frictions}
for name, (friction, step_size) in frictions.items():
    for dim in dims:
        position = torch.randn(
            max(4, min(200, 10_000 // dim)),
            dim,
            generator=torch.Generator().manual_seed(2),
        )
        draws = sample(
            SGNUTS(step_size, friction, max_depth=8),
            Bowl(),
            position,
            num_samples=3,
            seed=3,
        )
        depths[name].append(float(draws.statistics["depth"].double().mean()))

# %% mystnb={"figure": {"caption": "Mean depth of the trees on a standard normal law, at most 8, against the number of dimensions. The more dimensions, the less chance has the noise to fake a turn.", "name": "fig-sgnuts-depths"}, "image": {"alt": "Mean depth against dimensions from one to ten thousand. The overdamped line rises from two to the limit of eight; the underdamped one rises to five at a hundred dimensions and stays there."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6, 3))
for (name, values), style in zip(depths.items(), ("o-", "s--"), strict=True):
    axes.semilogx(dims, values, style, color=COLOURS["SGNUTS"], label=name)
axes.axhline(8, color=TRUTH, lw=1)
axes.set(xlabel="dimensions", ylabel="mean depth $j$")
axes.legend(loc="lower right")
plt.show()

# %% [markdown]
# {numref}`fig-sgnuts-depths` shows it: with little friction half a turn of the oscillation ends the tree at depth five in a hundred dimensions and more; with much friction trees turn in ten dimensions, where chance decides, and run to the limit in ten thousand.
# A sampler whose point is to find the length of its paths by itself thus has its length set by `max_depth`.

# %% tags=["hide-input"]
claim(
    "Mean depth of the trees in 10,000 dimensions, overdamped, of at most 8",
    depths["overdamped, $C = 3$"][-1],
    at_least=7.99,
    because="in that many dimensions no tree turns",
)
claim(
    "Mean depth of the trees in 10,000 dimensions, underdamped",
    depths["underdamped, $C = 0.5$"][-1],
    near=5,
    within=0.1,
    because="half a turn takes π/0.13 = 24 steps, and 32 states are more than that",
)

# %% [markdown]
# ## What a gradient is worth in a tree
#
# Suppose, then, that every tree has depth $J$. Its $2^J - 1$ gradients buy a move to a state of the other half, and a fresh momentum. How far does that carry a weight that follows the prior?
#
# ```{prf:proposition} Less than half
# :label: prop-sgnuts-half
#
# Let $U = \tfrac12\lambda\theta^2$, and let $a_k$ be the correlation of $\theta_k$ with $\theta_0$ after $k$ palindromic steps from a fresh momentum. A tree of depth $J$ with equal weights multiplies the distance of $\mathbb E[\theta^2]$ from its limit by
#
# $$
# \varrho_J = \sum_{k=1}^{2^J - 1}p_k\,a_k^2, \qquad p_k = \frac{\min(k, 2^J - k)}{4^{J-1}} .
# $$ (eq-sgnuts-rate)
#
# SGHMC multiplies it, in the long run, by $\mu^{2m}$ in $m$ steps, $\mu$ being the largest modulus of the eigenvalues of its transition in $(\theta, r)$. Call $\log\varrho_J / \bigl((2^J - 1)\log\mu^2\bigr)$ the **worth** of a gradient in a tree, in gradients of SGHMC. In the limit of small steps, and for $\lambda < \tfrac14C^2$, it is at most one half.
# ```
#
# ```{prf:proof}
# The start is uniform in its half, and the choice in the other half: for $n = 2^{J-1}$ there are $\min(k, 2n - k)$ pairs at distance $k$ among $n^2$. After $k$ steps $\mathbb E[\theta_k^2]$ has $a_k^2$ times the distance of $\mathbb E[\theta_0^2]$, because momentum and noise do not depend on $\theta_0$; by symmetry that holds to the left as well.
# In the limit $a(t) = \lambda c(t)$ with the $c$ of the last proof, $a(t) = (\kappa_+e^{-\kappa_-t} - \kappa_-e^{-\kappa_+t})/(\kappa_+ - \kappa_-) \ge e^{-\kappa_-t}$ with the rates $\kappa_- < \kappa_+$, and SGHMC's $\mu^{2}$ is $e^{-2\kappa_-}$ in a unit of time. The mean distance is half the path's duration, $\tfrac12\tau$, so that $\varrho_J \ge \mathbb E[e^{-2\kappa_-t}] \ge e^{-\kappa_-\tau}$ by Jensen's inequality, and the worth is at most $\kappa_-\tau/(2\kappa_-\tau)$.
# ```


# %%
def palindromic_step(learning_rate, momentum_decay):
    """Matrix of the palindromic step in (θ, r) on a standard normal law."""
    step_size = math.sqrt(learning_rate)
    flows = palindromic(step_size, momentum_decay / step_size)
    return linear_chain(flows, torch.eye(1, dtype=torch.float64)).transition


def contraction(learning_rate, momentum_decay, depth):
    """ϱ of a tree of the given depth."""
    step = palindromic_step(learning_rate, momentum_decay)
    power, total, half = torch.eye(2, dtype=torch.float64), 0.0, 2 ** (depth - 1)
    for k in range(1, 2 * half):
        power = step @ power
        total += min(k, 2 * half - k) / half**2 * float(power[0, 0]) ** 2
    return total


def one_weight(learning_rate, momentum_decay):
    """SGHMC on a standard normal law as a linear chain in (θ, r)."""
    step_size, unit = math.sqrt(learning_rate), torch.eye(1, dtype=torch.float64)
    return sghmc_chain(unit, step_size, momentum_decay / step_size)


def sghmc_rate(learning_rate, momentum_decay):
    """−log μ², per step of SGHMC."""
    transition = one_weight(learning_rate, momentum_decay).transition
    return -2 * math.log(float(torch.linalg.eigvals(transition).abs().max()))


settings = {
    "MNIST": (2e-6, 0.01),
    "Fashion-MNIST": (1e-6, 0.01),
    "digits, live": (0.1 / 4000, 0.02),
}
tree_depths = range(3, 13)
worth = {
    name: [
        -math.log(contraction(*pair, depth)) / ((2**depth - 1) * sghmc_rate(*pair))
        for depth in tree_depths
    ]
    for name, pair in settings.items()
}

learning_rate, momentum_decay = settings["digits, live"]
step_size = math.sqrt(learning_rate)
kernel = SGNUTS(step_size, momentum_decay / step_size, max_depth=8)
cold = sample(kernel, Bowl(), torch.zeros(300, 100), num_samples=3, seed=4)
# distance of the mean square from its limit, which starts at one: (draws, chains)
left = 1 - cold.samples.square().mean(-1)

# %% mystnb={"figure": {"caption": "What a gradient is worth when it is spent in a tree of a given depth, in gradients of SGHMC, for the weights that follow the prior. Grey: the bound of the proposition, one half.", "name": "fig-sgnuts-worth"}, "image": {"alt": "Three curves of the worth against the depth from 3 to 12. All rise from near zero to 0.4 at depth ten. That of the live settings falls after it, the two others rise to less than 0.47 at depth twelve; none touches the grey line at one half."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6, 3.2))
for (name, values), style in zip(worth.items(), ("o-", "s--", "^:"), strict=True):
    axes.plot(tree_depths, values, style, ms=4, color=COLOURS["SGNUTS"], label=name)
axes.axhline(0.5, color=TRUTH, lw=1)
axes.set(xlabel="depth $J$", ylabel="worth of a gradient", ylim=(0, 0.55))
axes.legend()
plt.show()

# %% [markdown]
# The worth of a gradient in a tree can be read off {numref}`fig-sgnuts-worth`: 0.40 at depth 10 with the settings of the experiments, and much less in shorter trees.
# The tree spends half of its path on states that it could never have chosen, and forgets its momentum each time.

# %% tags=["hide-input"]
for name in ("MNIST", "Fashion-MNIST"):
    claim(
        f"Worth of a gradient in a tree of depth 10, with the settings of {name}, for "
        "a weight that follows the prior",
        worth[name][10 - 3],
        near=0.4,
        within=0.006,
        because="exact law of a linear chain",
        kind="exact",
    )
claim(
    "Worth at depth 6, with the settings of MNIST",
    worth["MNIST"][6 - 3],
    near=0.0814,
    within=0.001,
    because="exact law of a linear chain",
    kind="exact",
)
for number in (1, 3):
    claim(
        f"Distance of the mean square from one after {number} trees of depth 8 at "
        "most, from zero",
        left[number - 1].mean(),
        near=contraction(learning_rate, momentum_decay, 8) ** number,
        within=0.065,
        because=(
            "the formula if no tree turns; 300 chains of 100 dimensions, standard "
            "error 0.01"
        ),
    )

# %% [markdown]
# ## Energy weights in many dimensions
#
# Our reading of the report chooses a state of its path with weights $e^{-H}$, where $H$ is the energy with that of the momentum.
# In one dimension that makes the {term}`chain` far too cold ({doc}`/book/tutorial/sgnuts`).
# Can that be so in 79,510 dimensions?
#
# ```{prf:proposition} A choice can cool only so much
# :label: prop-sgnuts-choice
#
# Let $\theta_1, \dots, \theta_N$ each have the law $N(0, I_d)$, dependent in whatever way, and let a state $s$ be chosen among them by whatever rule. Then $\mathbb E\lvert\theta_s\rvert^2 \ge d - 2\sqrt{d\log N}$.
# ```
#
# ```{prf:proof}
# For $u > 0$, $\mathbb E\,e^{u(d - \lvert\theta_i\rvert^2)} = e^{ud}(1 + 2u)^{-d/2} \le e^{du^2}$, because $\log(1 + 2u) \ge 2u - 2u^2$. By Jensen's inequality $e^{u\,\mathbb E(d - \lvert\theta_s\rvert^2)} \le \mathbb E\max_ie^{u(d - \lvert\theta_i\rvert^2)} \le Ne^{du^2}$. Take logarithms, and $u = \sqrt{\log N/d}$.
# ```
#
# A tree has at most 1,024 states: one choice from equilibrium cools 79,510 weights by at most 1.9 %.
# And many trees?

# %%
variances = {"energy": [], "uniform": []}
for dim in dims:
    for weights, values in variances.items():
        seeded = torch.Generator().manual_seed(5)
        position = torch.randn(max(1, 8_000 // dim), dim, generator=seeded)
        kernel = SGNUTS(0.1, 3.0, max_depth=6, weights=weights)
        draws = sample(kernel, Bowl(), position, 5, warm_up=16, seed=6)
        values.append(float(draws.samples.square().mean()))

# %% mystnb={"figure": {"caption": "Variance of a coordinate of a standard normal law under SGNUTS with trees of depth 6 at most, against the number of dimensions.", "name": "fig-sgnuts-dimensions"}, "image": {"alt": "The variance with equal weights stays at one; with energy weights it is about two thirds in one and in ten dimensions, and rises to almost one in ten thousand."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6, 3))
axes.semilogx(
    dims,
    variances["energy"],
    "v--",
    color=COLOURS["naive SGHMC"],
    label="weights $e^{-H}$",
)
axes.semilogx(
    dims, variances["uniform"], "o-", color=COLOURS["SGNUTS"], label="equal weights"
)
axes.axhline(1, color=TRUTH, lw=1)
axes.set(xlabel="dimensions", ylabel=r"variance of $\theta$", ylim=(0.5, 1.1))
axes.legend(loc="lower right")
plt.show()

# %% [markdown]
# {numref}`fig-sgnuts-dimensions` shows the variance after many trees: far too small on the line, nearly right in ten thousand dimensions.
# So the thermometer cannot tell the two rules apart in a network; it does not say that choosing by energy does no harm.

# %% tags=["hide-input"]
claim(
    "Share by which one choice among 1,024 states can cool 79,510 weights",
    2 * math.sqrt(math.log(1_024) / 79_510),
    near=0.019,
    within=0.0005,
    because="the proposition",
    kind="exact",
)
claim(
    "Variance with energy weights on the line",
    variances["energy"][0],
    at_most=0.75,
    because="0.65 to 0.68 over eight seeds",
)
claim(
    "Variance with energy weights in 10,000 dimensions",
    variances["energy"][-1],
    at_least=0.91,
    because="0.95 to 0.98 over eight seeds; the standard error is 0.01",
)
claim(
    "Largest error of the variance with equal weights, over the five dimensions",
    max(abs(value - 1) for value in variances["uniform"]),
    at_most=0.06,
    because=(
        "Monte Carlo error, largest where the dimensions are few; up to 0.02 over "
        "eight seeds"
    ),
)

# %% [markdown]
# The worse fault of our reading on a network is the other one: a tree of up to a thousand steps with a *single* {term}`minibatch`.
# Its error is a constant force ({doc}`/book/tutorial/sgnuts`), which drives the network to fit 500 digits at the cost of the rest.
#
# ## The digits, live
#
# Now the network, on 4,000 digits: 12 epochs of 40 gradients, or until the tree under way is done, $\eta = 0.1/N$ and $\alpha = 0.02$. Besides SGNUTS and SGHMC there are two hybrids, which spend at least three epochs on a head start and go on with SGHMC: the one that the report proposed, but with three epochs of gradients in the place of one of trees, and a simpler one, SGHMC with a fresh momentum every ten steps and no trees at all.
# Two runs start with small weights, $N(0, 1/\text{fan-in})$, as an optimiser does.

# %%
both = 0.1 / len(train.targets), 0.02  # η, α
reading = Trees(*both, "energy", "drift_kick", held=True)
fresh_momenta = Hamiltonian(*both, resample_every=10)
kernels = {
    "SGNUTS": Trees(*both),
    "SGNUTS, our reading": reading,
    "SGHMC": Hamiltonian(*both),
    "SGNUTS, then SGHMC": HeadStart(Trees(*both), 3),
    "fresh momenta, then SGHMC": HeadStart(fresh_momenta, 3),
    "SGNUTS, small start": Trees(*both),
    "SGHMC, small start": Hamiltonian(*both),
}
size = {"batch_size": 100, "burn_in": 5, "record_every": 1}
live = {}
# two trees of depth 10, and some SGHMC after the trees of the head start
more = {"SGNUTS, small start": 51, "SGNUTS, then SGHMC": 30}
for method, kernel in kernels.items():
    start = "fan-in" if "small start" in method else "prior"
    plan = Plan(kernel, Prior(1.0), start, Fresh(), **size)
    plan = plan.but(rounds=more.get(method, 12), seed=1)
    live[method] = TreeRun(plan, network, train, test).go(progress=False)

# E[θ²] of SGHMC, from θ = 0 and r ~ N(0, 1)
chain, expected = one_weight(*settings["digits, live"]).power(40), [0.0]
F, Q = chain.transition, chain.noise_covariance
covariance = torch.diag(torch.tensor([0.0, 1.0], dtype=torch.float64))
for _ in range(12):
    covariance = F @ covariance @ F.T + Q
    expected.append(float(covariance[0, 0]))
longest = {
    method: max(run["curve"]["length"]) / posterior.dim for method, run in live.items()
}
seeded = torch.Generator().manual_seed(7)
potential_energy = float(
    posterior.energy(torch.randn(8, posterior.dim, generator=seeded)).mean()
)

# %% mystnb={"figure": {"caption": "Runs on 4,000 digits. Top: accuracy of the last network on 1,000 test digits, from a draw from the prior. Middle: squared length of the weights over their number. Bottom: the thermometer from a small start, with the exact expectations in grey; a tree moves by leaps, and two of them are shown. All weights share a tree's leap, so a run need not lie on the squares.", "name": "fig-sgnuts-live"}, "image": {"alt": "Three panels, one above the other, over gradients. Accuracy: the run with fresh momenta rises first, plain SGHMC rises late. Length: plain SGHMC climbs to about twice the length and comes back slowly, the others stay near one. Thermometer: SGHMC follows a smooth grey curve towards one; SGNUTS leaps twice, first to a place far below its grey square, then to one near the next."}} tags=["hide-input"]
figure, panels = plt.subplots(3, 1, figsize=(6.4, 8.4))
for method, run in live.items():
    curve, (colour, dashes) = run["curve"], styles[method]
    look = {
        "color": colour,
        "ls": dashes,
        "marker": "o",
        "ms": 2,
        "lw": 1.2,
        "label": method,
    }
    if "small" in method:
        panels[2].plot(curve["gradients"], curve["temperature"], **look)
    else:
        panels[0].plot(
            curve["gradients"], [1 - error for error in curve["error"]], **look
        )
        panels[1].plot(
            curve["gradients"],
            [length / posterior.dim for length in curve["length"]],
            **look,
        )
panels[2].plot(range(0, 481, 40), expected, color=TRUTH, lw=3, zorder=0)
leaps = 1 - contraction(*settings["digits, live"], 10) ** torch.arange(3.0)
panels[2].plot([0, 1_023, 2_046], leaps, "s", color=TRUTH, zorder=0)
panels[0].set(xlabel="gradients", ylabel="accuracy", ylim=(0, 1))
panels[1].set(xlabel="gradients", ylabel=r"$|\theta|^2/d$")
panels[2].set(xlabel="gradients", ylabel="mean square, empty pixels", ylim=(0, 1.1))
panels[0].legend(loc="lower right")
panels[2].legend(loc="lower right")
plt.show()

# %% [markdown]
# In {numref}`fig-sgnuts-live` plain SGHMC is late, and the middle panel says why.
# At a draw from the prior the energy of the weights is many times the kinetic energy $\tfrac12d$ that the chain has in equilibrium.
# SGHMC keeps its momentum, and with little {term}`friction` much of that energy turns into motion before friction has taken it: $\lvert\theta\rvert^2$ grows, to more than one and a half times its size in our runs, and the prior must pull it back.
# A sampler that draws a fresh momentum every few steps throws that energy away.
# Small trees do so, and ten steps of SGHMC do so just as well, without the lottery.

# %% tags=["hide-input"]
claim(
    "Energy of a draw from the prior, over the mean kinetic energy d/2, mean of eight",
    potential_energy / (posterior.dim / 2),
    at_least=5,
    because="about 10; nearly all of it is what 4,000 digits say of random weights",
)
claim(
    "Largest |θ|²/d of SGHMC from the prior",
    longest["SGHMC"],
    at_least=1.1,
    because="1.6 to 1.9 over several seeds",
)
claim(
    "Largest |θ|²/d of SGHMC with a fresh momentum every ten steps in its head start",
    longest["fresh momenta, then SGHMC"],
    at_most=1.1,
    because="below 1.05 over several seeds",
)
claim(
    "Error of the last networks over epochs 2 to 10: fresh momenta over plain SGHMC",
    sum(live["fresh momenta, then SGHMC"]["curve"]["error"][2:11])
    / sum(live["SGHMC"]["curve"]["error"][2:11]),
    at_most=1,
    because="0.42 to 0.71 over ten seeds",
)
claim(
    "Share of the trees of SGNUTS from a small start that reach depth 10",
    live["SGNUTS, small start"]["depths"][10] / live["SGNUTS, small start"]["trees"],
    at_least=0.99,
    because="friction forbids the U-turn",
)
claim(
    "Thermometer of SGHMC after 480 gradients from a small start",
    live["SGHMC, small start"]["curve"]["temperature"][-1],
    near=expected[-1],
    within=0.06,
    because="exact law from zero; 12,400 weights, standard error 0.013",
)

# %% [markdown]
# ## At full scale
#
# The runs of `python -m experiments run sgnuts`: 50,000 training images, minibatches of 500, $\alpha = 0.01$, $\eta = 2\cdot10^{-6}$ on MNIST and $10^{-6}$ on Fashion-MNIST, 20 + 50 epochs of 100 gradients, scored on the 10,000 test images, which chose nothing.
# The two hybrids ran on MNIST alone.
# The accuracy is that of the average of the networks at the ends of the 50 epochs; {numref}`fig-sgnuts-full` has the single networks on the way.
# The time is the processor's, without predictions.
# All settings: {doc}`/book/appendix/settings`.

# %% tags=["hide-input"]
result = read_result(RESULTS / "sgnuts.json")
runs = result["runs"]
seeds = len(runs["MNIST"]["SGHMC"])


def values(data, method, value):
    """One number from the runs of all seeds."""
    return torch.tensor([value(run) for run in runs[data][method]], dtype=torch.float64)


def cell(numbers, digits):
    return f"{numbers.mean():.{digits}f} ± {numbers.std():.{digits}f}"


def interval(ours, theirs):
    """The 95 % interval of the difference of two means, by the wider of two tests."""
    pair = ours.numpy(), theirs.numpy()
    both = stats.ttest_rel(*pair), stats.ttest_ind(*pair, equal_var=False)
    return max((test.confidence_interval() for test in both), key=np.ptp)


columns = {
    "accuracy": (lambda run: 1 - run["average"]["error"], 3),
    "log loss": (lambda run: run["average"]["log_loss"], 3),
    "last network": (lambda run: 1 - run["curve"]["error"][-1], 3),
    "seconds": (lambda run: run["processor_seconds"], 1),
}


def table(columns, data):
    """Show the columns for every method: means and standard deviations over seeds."""
    rows = [
        [method, *(cell(values(data, method, f), d) for f, d in columns.values())]
        for method in runs[data]
    ]
    show_table([data, *columns], rows)


# %% tags=["hide-input"]
table(columns, "MNIST")

# %% tags=["hide-input"]
table(columns, "Fashion-MNIST")
print(f"{seeds} seeds, means and standard deviations of one run.")
print(who_ran(result))

# %% mystnb={"figure": {"caption": "Accuracy of the last network on the test images (above) and squared length of the weights over their number (below), against gradients: mean over five seeds (line), and from the smallest to the largest (band). Networks of a tree count from the end of the tree.", "name": "fig-sgnuts-full"}, "image": {"alt": "Four panels. On MNIST the line of SGHMC with fresh momenta rises first, then that of plain SGHMC, which the hybrid overtakes after 1,100 gradients; fresh momenta and the hybrid end near 0.95, SGNUTS has a wide band, and the line of our reading stays below 0.85. On Fashion-MNIST all bands are wide and overlap. Below, the line of SGHMC climbs to three and a half or four and comes back slowly, the bands of the tree samplers reach nearly as high, and with fresh momenta the length stays at one."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 2, figsize=(5.5, 5.6), sharex=True)
accuracies = {}
at = torch.arange(0, 7_001, 100)
for column, (data, methods) in enumerate(runs.items()):
    for method, series in methods.items():
        colour, dashes = styles[method]
        for row, read in enumerate(
            (
                lambda curve: [1 - error for error in curve["error"]],
                lambda curve: [length / posterior.dim for length in curve["length"]],
            )
        ):
            lines = []
            for run in series:
                ends = torch.tensor(run["curve"]["gradients"])
                latest = torch.searchsorted(ends, at, right=True) - 1
                lines.append(torch.tensor(read(run["curve"]))[latest])
            lines = torch.stack(lines)
            if (row, data) == (0, "MNIST"):
                accuracies[method] = lines.mean(0)
            axes = panels[row, column]
            axes.plot(
                at,
                lines.mean(0),
                color=colour,
                ls=dashes,
                label=method,
                drawstyle="steps-post",
            )
            low, high = lines.min(0).values, lines.max(0).values
            axes.fill_between(
                at, low, high, color=colour, alpha=0.15, lw=0, step="post"
            )
    panels[0, column].set(title=data, ylim=(0.4, 1))
    panels[1, column].set(xlabel="gradients", ylim=(0.9, 4.2))
panels[0, 0].set(ylabel="accuracy")
panels[1, 0].set(ylabel=r"$|\theta|^2/d$")
handles, labels = panels[0, 0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=2)
plt.show()

# %% [markdown]
# On MNIST the runs with fresh momenta rise first in {numref}`fig-sgnuts-full`. For 1,100 gradients plain SGHMC is ahead of the hybrid, whose trees are under way; from 1,200 on the hybrid is second, and our reading, which was not last before, is lowest. SGNUTS has a wide band.
# On Fashion-MNIST our reading ends lowest too, and the wide bands of the two others overlap.

# %% tags=["hide-input"]
ahead = accuracies["SGNUTS, then SGHMC"] > accuracies["SGHMC"]
claim(
    "Gradients, in hundreds, from which on the hybrid is ahead of SGHMC, MNIST",
    int((~ahead).nonzero().max()) + 1,
    near=12,
    within=0,
    because="the stored result, mean over the seeds",
    kind="stored",
)
others = torch.stack([a for m, a in accuracies.items() if m != "SGNUTS, our reading"])
lowest = accuracies["SGNUTS, our reading"] < others.min(0).values
claim(
    "Our reading is lowest on MNIST from 1,200 gradients on, and not before",
    lowest.nonzero().flatten().tolist() == list(range(12, len(at))),
    because="the stored result, mean over the seeds",
    kind="stored",
)

# %% [markdown]
# ### How long a warm-up?
#
# The report has a table of warm-ups, and here is ours, in our currency.
# For a warm-up of so many epochs: the accuracy of the average over the 25 epochs that follow, and in the second table of each pair that of the last network when the warm-up ends.
# A tree that is under way at the end of the warm-up is finished first, which is why columns of SGNUTS repeat.


# %% tags=["hide-input"]
def by_warm_up(data, title):
    """Show one accuracy of every method for each length of the warm-up."""
    rows = []
    for method, series in runs[data].items():
        entries = []
        for index in range(len(BURN_INS)):
            lines = [run["after"][index] for run in series]
            if title == "average":
                lines = [line["average"] for line in lines]
            entries.append(sum(1 - line["error"] for line in lines) / seeds)
        rows.append([method, *(f"{entry:.3f}" for entry in entries)])
    heads = [f"{data}, {title}, warm-up:", *map(str, BURN_INS)]
    show_table(heads, rows)


by_warm_up("MNIST", "average")

# %% tags=["hide-input"]
by_warm_up("MNIST", "last network")

# %% tags=["hide-input"]
by_warm_up("Fashion-MNIST", "average")

# %% tags=["hide-input"]
by_warm_up("Fashion-MNIST", "last network")

# %% [markdown]
# ### The report's table, in its own unit
#
# In the report's table (page 16) one epoch follows a warm-up of so many, and its accuracy is given, by votes of its networks on held-out training digits, with the seconds of all epochs together. An epoch is $N/n$ samples there, and a tree is a sample.
# `python -m experiments run trees` does so from the start of their program, all weights uniform on $(-2, 2)$: the mean of the probabilities of the 100 networks of an epoch, on the test digits.

# %% tags=["hide-input"]
published = {  # warm-up: SGHMC's accuracy and seconds, SGNUTS's accuracy and seconds
    0: (0.7747, 3.2, 0.8715, 28.3),
    1: (0.5764, 4.5, 0.9296, 127.2),
    2: (0.4141, 6.2, 0.9231, 453.3),
    5: (0.6471, 11.4),
    10: (0.7100, 20.3),
    25: (0.8866, 50.2),
}
by_samples = read_result(RESULTS / "trees.json")
by_program = read_result(RESULTS / "trees_program.json")
on_clothes = read_result(RESULTS / "trees_fashion.json")
of_epochs = by_samples["runs"] | by_program["runs"] | on_clothes["runs"]


def epochs(method, read):
    """One number of every epoch of the table: (seeds, warm-ups)."""
    found = of_epochs[method]
    series = [[read(line) for line in run["epochs"]] for run in found]
    return torch.tensor(series, dtype=torch.float64)


def accuracy_of(line):
    return 1 - line["average"]["error"]


def seconds_of(line):
    return line["processor_seconds"]


ours = epochs("SGHMC", accuracy_of)
quieter = epochs("SGHMC, noise as in their program", accuracy_of)
lengths_then = epochs("SGHMC", lambda line: line["length"] / posterior.dim)
show_table(
    ["warm-up", "published", "seconds", "ours", "less noise", "|θ|²/d", "seconds"],
    [
        [
            str(warm_up),
            f"{line[0]:.3f}",
            f"{line[1]:.1f}",
            cell(ours[:, index], 3),
            cell(quieter[:, index], 3),
            f"{lengths_then[:, index].mean():.1f}",
            f"{epochs('SGHMC', seconds_of)[:, index].mean():.1f}",
        ]
        for index, (warm_up, line) in enumerate(published.items())
    ],
)
print(f"{len(ours)} seeds, means and standard deviations of one run.")
print(who_ran(by_samples))

# %% [markdown]
# *The dip is no accident.* In the report SGHMC's accuracy falls from 0.77 to 0.41 when two epochs of warm-up are added, and is at 0.71 after ten. Here it falls from 0.79 to 0.51 after one, has 0.57 after two, and comes back.
# In the first epoch the chain is so fast that its networks are many and different, and their average is far better than the last of them, which errs on 58 per cent. After that the networks of an epoch are all bad in the same way, and the average gains little. From 0.51 to 0.64, at five epochs, the accuracy comes back although the weights are longer then than after one; the rest comes as their length falls.
# The noise makes little difference: the column *less noise* has a standard deviation of $2\alpha\eta$, as the last version of their program, in the place of $\sqrt{2\alpha\eta}$. But for the row of two epochs it is within 0.03 of the published column, of which the report does not say how many runs it is.
#
# The seconds beside the published column are theirs, on a machine that they do not name; ours of the walk alone, on one core.
#
# Now the trees: those of our reading, for three epochs, and one epoch of the repaired sampler, with SGHMC after it, which is the hybrid that they propose.
# The published column came from their program; the trees of our reading are not the same sampler.

# %% tags=["hide-input"]
by_trees = epochs("SGNUTS, our reading", accuracy_of)
hybrid = epochs("SGNUTS, then SGHMC", accuracy_of)
spent = {
    method: epochs(method, lambda line: line["gradients"])
    for method in ("SGNUTS, our reading", "SGNUTS, then SGHMC")
}


def trees_cells(method, accuracies, index):
    """Accuracy, and the gradients and seconds so far, of a row; empty at its end."""
    if index >= accuracies.shape[1]:
        return ["", "", ""]
    so_far = spent[method][:, index].mean(), epochs(method, seconds_of)[:, index].mean()
    return [cell(accuracies[:, index], 3), *(f"{number:,.0f}" for number in so_far)]


show_table(
    [
        "warm-up",
        "published",
        "seconds",
        "our reading",
        "gradients",
        "seconds",
        "hybrid",
        "gradients",
        "seconds",
    ],
    [
        [
            str(warm_up),
            *((f"{line[2]:.3f}", f"{line[3]:.1f}") if len(line) > 2 else ("", "")),
            *trees_cells("SGNUTS, our reading", by_trees, index),
            *trees_cells("SGNUTS, then SGHMC", hybrid, index),
        ]
        for index, (warm_up, line) in enumerate(published.items())
    ],
)
print(
    f"{len(hybrid)} seeds, means and standard deviations of one run; gradients and "
    "seconds of the processor so far."
)

# %% [markdown]
# *What a tree cost them* can be told from their seconds. Twenty-five epochs more of SGHMC took 47.0 of them, 18.8 milliseconds a gradient. If a gradient cost as much in a tree, the first epoch of SGNUTS had 1,500 gradients, 15 a tree, the second 5,300, and the third 17,300, which is 173 a tree.
# So their trees were short on the slope, and grew as they left it. Those of our reading take some 400 gradients each in the first epoch already.
#
# `python -m experiments run trees_program` grows trees by the rules of their program ({doc}`/book/appendix/errata`), with its noise, and with one momentum for all trees, as in its notebook, or a fresh one at every 50th, its default.

# %% tags=["hide-input"]
rules = ("their rule, one momentum", "their rule, a fresh momentum at 50")
of_rules = {rule: epochs(rule, accuracy_of) for rule in rules}
new_gradients = {
    rule: epochs(rule, lambda line: line["gradients"]).diff(
        dim=1, prepend=torch.zeros(len(of_rules[rule]), 1, dtype=torch.float64)
    )
    for rule in rules
}
a_gradient = (published[25][1] - published[0][1]) / 2_500
trees_of = [published[0][3]] + [published[k][3] - published[k - 1][3] for k in (1, 2)]
show_table(
    [
        "warm-up",
        "published",
        "gradients, by their seconds",
        *("one momentum", "gradients", "a fresh one at 50", "gradients"),
    ],
    [
        [
            str(warm_up),
            f"{published[warm_up][2]:.3f}",
            f"{trees_of[warm_up] / a_gradient:,.0f}",
            *(
                text
                for rule in rules
                for text in (
                    cell(of_rules[rule][:, warm_up], 3),
                    cell(new_gradients[rule][:, warm_up], 0),
                )
            ),
        ]
        for warm_up in range(3)
    ],
)
print(f"{len(of_rules[rules[0]])} seeds; gradients of the epoch alone.")
print(who_ran(by_program))

# %% [markdown]
# Their rule makes such trees, and every published accuracy is within two standard deviations of the seeds. How soon the trees grow depends on the seed: the first epoch has 800 to 4,100 gradients.
# Why are they short on the slope? The energy with which a tree starts was computed from another minibatch, by which the state was chosen; there minibatches differ by far more than 1,000, on these 4,000 digits too. So states count as divergent, and a new half is cut off at the first of them, and taken: ten doublings may take ten steps. In more than four trees of five some half is cut off.
# From this start few gradients then do much: SGHMC has an accuracy of 0.72 after 1,100, because it keeps the energy of the start, which trees throw away, as in the live runs above.
#
# On Fashion-MNIST, where the report has no such table, the trees of our reading (`python -m experiments run trees_fashion`, one seed) take 42,000 gradients in their first epoch, whose average errs on three images of four, and have accuracies of 0.80 in the second and the third, after 218,000.
#
# *One epoch of SGNUTS, then SGHMC,* is proposed to save half a minute, as they reckon themselves. It is a cheap start as long as the trees are short.
# With ours, which reach the limit after a dozen, an epoch of 100 trees is nearly 100,000 gradients: more than the 85,000 that SGHMC takes in all of {doc}`/book/studies/reproduction_report`. They are not wasted: the average over its 100 networks is within half a point of SGHMC's over the 800 of Figure 5 (−0.1 points, 95 % from −0.4 to +0.2), though behind it in log loss, 0.113 against 0.082; and every epoch of SGHMC that follows, a hundred networks one step apart, is a little worse.
# That is why our hybrid above has three epochs of *gradients*.

# %% tags=["hide-input"]
theirs = torch.tensor([line[0] for line in published.values()], dtype=torch.float64)
for name, table_of in (("SGHMC", ours), ("SGHMC with less noise", quieter)):
    off = table_of.mean(0) - theirs
    claim(
        f"Accuracy of {name}, mean over the seeds less the published one, largest of "
        "the rows but that of two epochs",
        torch.cat([off[:2], off[3:]]).abs().max(),
        at_most=0.07 if table_of is ours else 0.03,
        because="the stored result; votes and averages differ a little",
        kind="stored",
    )
    claim(
        f"{name}: the same in the row of two epochs",
        off[2],
        near=0.17,
        within=0.02,
        because="the stored result; how many runs the published one is, is not said",
        kind="stored",
    )
claim(
    "Fall of SGHMC's accuracy from no warm-up to one epoch, the least of five seeds",
    (ours[:, 0] - ours[:, 1]).min(),
    at_least=0.2,
    because="the stored result; its mean is 0.27",
    kind="stored",
)
claim(
    "Error of the last network of SGHMC's first epoch, mean over the seeds",
    epochs("SGHMC", lambda line: line["last"]["error"])[:, 0].mean(),
    near=0.58,
    within=0.005,
    because="the stored result",
    kind="stored",
)
claim(
    "The row of the table in which the weights are longest, in every seed",
    sorted(set(lengths_then.argmax(1).tolist())) == [2],
    because="the stored result: after two epochs of warm-up",
    kind="stored",
)
claim(
    "After five epochs of warm-up SGHMC is more accurate than after one, with longer "
    "weights, in every seed",
    bool(
        (ours[:, 3] > ours[:, 1]).all()
        and (lengths_then[:, 3] > lengths_then[:, 1]).all()
    ),
    because="the stored result",
    kind="stored",
)
for name, seconds, expected in zip(
    ("first", "second", "third"), trees_of, (1_500, 5_300, 17_300), strict=True
):
    claim(
        f"Gradients in their {name} epoch of SGNUTS, at SGHMC's price",
        seconds / a_gradient,
        near=expected,
        within=50,
        because="seconds of their table over 18.8 ms",
        kind="exact",
    )
figure_five = read_result(RESULTS / "figure5.json")["methods"]["SGHMC"]["runs"]
of_800 = torch.tensor([1 - run["average"]["error"] for run in figure_five])
for statement, value, near, within in (
    (
        "Gradients of a tree in the first epoch of our reading",
        spent["SGNUTS, our reading"][:, 0].mean() / 100,
        400,
        100,
    ),
    (
        "Accuracy of the first epoch of our reading",
        by_trees[:, 0].mean(),
        0.92,
        0.015,
    ),
    (
        "Accuracy of the second and third epoch of our reading",
        by_trees[:, 1:].mean(),
        0.92,
        0.015,
    ),
    (
        "Gradients of the one epoch of trees of the hybrid",
        spent["SGNUTS, then SGHMC"][:, 0].mean(),
        96_000,
        4_000,
    ),
    (
        "Accuracy of its 100 networks less that of SGHMC's 800 in Figure 5, the ends "
        "of its 95 % interval: the larger in size",
        max(abs(end) for end in interval(hybrid[:, 0], of_800)),
        0.0041,
        0.0002,
    ),
    (
        "Log loss of its 100 networks less that of SGHMC's 800 in Figure 5",
        epochs("SGNUTS, then SGHMC", lambda line: line["average"]["log_loss"])[
            :, 0
        ].mean()
        - sum(run["average"]["log_loss"] for run in figure_five) / len(figure_five),
        0.031,
        0.001,
    ),
    (
        "Accuracy of its 100 networks less that of SGHMC's epochs after them",
        hybrid[:, 0].mean() - hybrid[:, 1:].mean(),
        0.012,
        0.004,
    ),
):
    claim(
        statement,
        value,
        near=near,
        within=within,
        because="the stored result",
        kind="stored",
    )
for rule, accuracies in of_rules.items():
    off = accuracies.mean(0) - torch.tensor([published[k][2] for k in range(3)])
    claim(
        f"Accuracy by {rule}, mean less the published one, in standard deviations of "
        "the seeds: largest of three epochs",
        (off / accuracies.std(0)).abs().max(),
        at_most=2,
        because="the stored result; of how many runs the published are, is not said",
        kind="stored",
    )
in_first = torch.cat([new_gradients[rule][:, 0] for rule in rules])
for most, extreme, near in (
    ("fewest", in_first.min(), 800),
    ("most", in_first.max(), 4_100),
):
    claim(
        f"Gradients of the first epoch by their rule, the {most} of all runs",
        extreme,
        near=near,
        within=50,
        because="the stored result; ten doublings of one step each would be 1,000",
        kind="stored",
    )
somewhere = torch.empty(1, posterior.dim).uniform_(-2, 2, generator=seeded)
energies = torch.stack(
    [
        HeldMinibatch(posterior, Fresh().indices(4_000, 100, 1, 0, step=each)).energy(
            somewhere
        )
        for each in range(40)
    ]
)
claim(
    "Live: 1,000, the limit of a divergence, over the standard deviation of the energy "
    "of a start over 40 minibatches",
    1_000 / energies.std(),
    at_most=0.2,
    because="0.02 to 0.04 with ten seeds",
)
claim(
    "Least share of the program's trees in which a half was cut off",
    min(run["diverged"] / 300 for rule in rules for run in of_epochs[rule]),
    at_least=0.8,
    because="the stored result: 0.80 to 0.94",
    kind="stored",
)
clothes = "our reading, Fashion-MNIST"
for name, value, near, within in (
    ("Accuracy in the first epoch", epochs(clothes, accuracy_of)[0, 0], 0.23, 0.01),
    (
        "Accuracy in the second and the third",
        epochs(clothes, accuracy_of)[0, 1:].mean(),
        0.8,
        0.005,
    ),
    (
        "Gradients in all",
        epochs(clothes, lambda line: line["gradients"])[0, -1],
        218_000,
        1_000,
    ),
):
    claim(
        f"Fashion-MNIST, trees of our reading: {name.lower()}",
        value,
        near=near,
        within=within,
        because="the stored result, one seed",
        kind="stored",
    )
claim(
    "Trees until the first of depth 10 in SGNUTS on MNIST, the most of the seeds",
    max(run["depths_in_order"].index(10) + 1 for run in runs["MNIST"]["SGNUTS"]),
    at_most=12,
    because="the stored result",
    kind="stored",
)

# %% [markdown]
# ### Lengths, temperatures, entropies
#
# At the end of the runs: the squared length of the weights, which is near $d$ in equilibrium; the mean entropy of the averaged prediction; the mean entropy of the networks that it averages; and on MNIST the thermometer, which should read one with a standard error of 0.017 from 6,700 weights.

# %% tags=["hide-input"]
lengths = {
    "|θ|²/d": (lambda run: run["curve"]["length"][-1] / posterior.dim, 2),
    "entropy": (lambda run: run["entropy"][0], 2),
    "of the networks": (lambda run: run["entropy"][1], 2),
}
thermometer = {"thermometer": (lambda run: run["curve"]["temperature"][-1], 3)}
table(lengths | thermometer, "MNIST")

# %% tags=["hide-input"]
table(lengths, "Fashion-MNIST")

# %% [markdown]
# The thermometer finds nothing wrong, not even with our reading: after so few trees, in so many dimensions, the energy weights have cooled little.
# What is wrong with it shows where the data speak.
# Its networks contradict each other: the entropy of their average exceeds their own by 0.28 nats and more with every seed, as it would for networks that each know one minibatch well. For SGNUTS the difference is at most 0.1 nats.

# %% tags=["hide-input"]
for method in ("SGNUTS", "SGNUTS, our reading"):
    claim(
        f"Thermometer of {method} at the end on MNIST, mean over the seeds",
        values("MNIST", method, thermometer["thermometer"][0]).mean(),
        near=1,
        within=0.03,
        because="the prior's law; the mean of five has a standard error of 0.008",
        kind="stored",
    )
worse = values("MNIST", "SGNUTS, our reading", columns["log loss"][0]) - values(
    "MNIST", "SGNUTS", columns["log loss"][0]
)
claim(
    "Log loss of our reading less that of SGNUTS, MNIST, smallest of seeds",
    worse.min(),
    at_least=0.01,
    because="the stored result; the mean is 0.32",
    kind="stored",
)


def disagreement(data, method):
    """Entropy of the average less the mean entropy of its networks."""
    return values(data, method, lambda run: run["entropy"][0] - run["entropy"][1])


claim(
    "Entropy of the average less that of its networks, our reading, MNIST, smallest",
    disagreement("MNIST", "SGNUTS, our reading").min(),
    at_least=0.28,
    because="the stored result",
    kind="stored",
)
claim(
    "The same for SGNUTS, largest",
    disagreement("MNIST", "SGNUTS").max(),
    at_most=0.11,
    because="the stored result",
    kind="stored",
)

# %% [markdown]
# ### Trees
#
# {numref}`fig-sgnuts-full` shows SGNUTS with a band as wide as the panel: with one seed of five its first tree falls down the whole slope.
# How deep were the trees?
# The first table counts them by depth over the five seeds, the second says what was spent at the limit.
# A tree of depth 10 is at the limit if it would have grown on; two on Fashion-MNIST turned in their last doubling.

# %% tags=["hide-input"]
counted, spent = [], []
for data, methods in runs.items():
    for method in ("SGNUTS", "SGNUTS, our reading"):
        series = methods[method]
        counts = torch.tensor([run["depths"] for run in series]).sum(0)
        total, limited = int(counts.sum()), sum(run["depth_limited"] for run in series)
        share = limited * 1_023 / sum(run["gradients"] for run in series)
        counted.append([f"{data}, {method}", *map(str, counts.tolist()[2:])])
        diverged = sum(run["diverged"] for run in series)
        shares = [f"{limited / total:.0%}", f"{share:.0%}"]
        spent.append([f"{data}, {method}", str(total), *shares, str(diverged)])
show_table(["trees of depth", *map(str, range(2, 11))], counted)

# %% tags=["hide-input"]
heads = ["sampler", "trees", "at the limit", "share of gradients", "divergences"]
show_table(heads, spent)

# %% [markdown]
# SGNUTS tosses its coins at the start, and once a tree has reached depth 10 all later ones do.
# Most runs of our reading go on to make short trees in between, as they would if after a thousand steps on one minibatch the next one found itself on a slope again.

# %% tags=["hide-input"]
claim(
    "Share of the gradients of SGNUTS on MNIST that went into trees at the depth limit",
    sum(run["depth_limited"] * 1_023 for run in runs["MNIST"]["SGNUTS"])
    / sum(run["gradients"] for run in runs["MNIST"]["SGNUTS"]),
    at_least=0.85,
    because="the stored result; friction forbids the U-turn",
    kind="stored",
)
after_limit = [
    set(run["depths_in_order"][run["depths_in_order"].index(10) :]) == {10}
    for methods in runs.values()
    for run in methods["SGNUTS"]
]
claim(
    "In every run of SGNUTS all trees after the first of depth 10 have depth 10",
    all(after_limit),
    because="the stored result, ten runs",
    kind="stored",
)
again = [
    set(run["depths_in_order"][run["depths_in_order"].index(10) :]) == {10}
    for methods in runs.values()
    for run in methods["SGNUTS, our reading"]
    if 10 in run["depths_in_order"]
]
claim(
    "Runs of our reading, of ten, that go on to make shorter trees",
    len(again) - sum(again),
    at_least=6,
    because="the stored result",
    kind="stored",
)
claim(
    "Trees of depth 0 and 1",
    sum(
        sum(run["depths"][:2])
        for methods in runs.values()
        for method in ("SGNUTS", "SGNUTS, our reading")
        for run in methods[method]
    ),
    near=0,
    within=0,
    because="the stored result; a first doubling cannot turn on a slope",
    kind="stored",
)
claim(
    "Divergences of all trees",
    sum(
        run["diverged"]
        for methods in runs.values()
        for series in methods.values()
        for run in series
    ),
    at_most=0,
    because="the stored result",
    kind="stored",
)

# %% [markdown]
# ### What a gradient costs, and what a tree keeps
#
# A tree needs more than its gradients: the sums of momenta, the checks of sub-trees, the choice. In one process, in turn, in milliseconds of the processor for a gradient:

# %% tags=["hide-input"]
costs = {name: torch.tensor(measured) for name, measured in result["costs"].items()}
alone = costs["gradient"].mean()
rows = [
    [name, f"{measured.mean():.2f}", f"{measured.mean() / alone:.2f}"]
    for name, measured in costs.items()
]
show_table(["a step of", "milliseconds", "over the gradient alone"], rows)

# %% [markdown]
# A network of 79,510 weights is 0.32 MB, and a path of 1,024 states with their momenta would be 650 MB. The tree does not keep it. It holds the two ends and the choices, six positions at most, and of every complete sub-tree that waits for its twin the momenta at its ends and their sum.
# As in counting in binary, at most one sub-tree of each size waits, so that a tree of depth $J$ keeps some $3J + 6$ such vectors: 11 MB at depth 10.

# %% tags=["hide-input"]
claim(
    "Cost of a gradient in a tree over that of a step of SGHMC",
    costs["SGNUTS"].mean() / costs["SGHMC"].mean(),
    near=1.17,
    within=0.02,
    because=(
        "the stored result; all the rest of the tree is a few passes over the weights"
    ),
    kind="stored",
)
for method, hours in (("SGNUTS, our reading", 6.0), ("their rule, one momentum", 1.6)):
    of_third = epochs(method, seconds_of).diff(dim=1)[:, -1].mean()
    claim(
        f"Processor hours of 70 epochs at the price of the third, {method}",
        70 * of_third / 3_600,
        near=hours,
        within=0.3,
        because="the stored result",
        kind="stored",
    )
for what, vectors, megabytes in (
    ("One network", 1, 0.32),
    ("A path of 1,024 states with momenta", 2 * 1_024, 650),
    ("What a tree of depth 10 keeps, 3J + 6 vectors", 36, 11.4),
):
    claim(
        f"{what}, in MB",
        vectors * 79_510 * 4 / 1e6,
        near=megabytes,
        within=0.01 * megabytes,
        because="79,510 weights of four bytes",
        kind="exact",
    )

# %% [markdown]
# ## Published against ours
#
# | | published {cite:p}`adamday` | ours |
# | --- | --- | --- |
# | network, priors | 784–100–10 ReLU, $N(0, 1)$ | the same |
# | epochs | 20 + 50, of $N/n$ trees | 20 + 50, of $N/n$ gradients |
# | largest depth, $\eta$, $\alpha$, minibatch | 10, $2\cdot10^{-6}$, 0.01, 500 (MNIST, in the program) | the same; $\eta = 10^{-6}$ on Fashion-MNIST, as for SGHMC there |
# | start | uniform on $(-2, 2)$ | $N(0, 1)$, a draw from the prior |
# | prediction | votes of labels drawn from every network | mean of the probabilities |
# | images to score | the first 10,000 of the training set, held out | the test set |
# | noise | $N(0, 2\alpha\eta)$; in the program of SGNUTS a standard deviation of $2\alpha\sqrt\eta$, which is $T = 2\alpha$; in that of SGHMC $2\alpha\eta$ | $N(0, 2\alpha\eta)$ |
# | a new half of a tree | not said in the report; always taken, in its program | taken with probability $\min(1, W_{\text{new}}/W_{\text{old}})$, as in NUTS |
# | momentum at the start of a tree | fresh in Algorithm 3; in the program's notebook one for all trees | fresh |
#
# The tables by gradients show the accuracy after 7,000 of them; the tables in the report's own unit start uniform on $(-2, 2)$, as it does, and end after three epochs of trees.
# What 70 epochs of trees reach we did not try: at the price of the third epoch they would take six hours by our reading, and one and a half by the rule of the report's program.
#
# ## Does it pay?
#
# The differences in accuracy on MNIST, with the seeds paired: mean, standard error, the number of seeds of five that speak for the first, and the larger of the two-sided $p$-values of the paired t-test and Welch's over five seeds, as in {doc}`/book/studies/mnist`, not corrected for the number of comparisons.

# %% tags=["hide-input"]
comparisons = (
    ("SGNUTS", "SGHMC"),
    ("SGNUTS, then SGHMC", "SGHMC"),
    ("SGNUTS, then SGHMC", "SGNUTS"),
    ("fresh momenta, then SGHMC", "SGHMC"),
    ("fresh momenta, then SGHMC", "SGNUTS, then SGHMC"),
)


def compared(first, second, data="MNIST"):
    """Mean, standard error and seeds ahead of the paired difference, and the larger
    p-value of two tests over the seeds: paired t-test, and Welch's."""
    pair = [values(data, name, columns["accuracy"][0]) for name in (first, second)]
    gap = pair[0] - pair[1]
    ours, theirs = (one.numpy() for one in pair)
    paired = stats.ttest_rel(ours, theirs).pvalue
    welch = stats.ttest_ind(ours, theirs, equal_var=False).pvalue
    p_value = float(max(paired, welch))
    error = float(gap.std()) / seeds**0.5
    return float(gap.mean()), error, int((gap > 0).sum()), p_value


rows = []
for first, second in comparisons:
    mean, error, ahead, p_value = compared(first, second)
    shown = [f"{mean:+.3f} ± {error:.3f}", f"{ahead} of {seeds}"]
    digits = 5 if p_value < 0.001 else 3
    rows.append([f"{first} less {second}", *shown, f"{p_value:.{digits}f}"])
show_table(["accuracy on MNIST", "difference", "ahead", "p"], rows)

# %% [markdown]
# *What the report saw can be seen here too, with four seeds of five.* From a start high up SGNUTS then ends ahead of SGHMC at nearly equal gradients (its last tree is finished), and passes the published 0.94 on MNIST with little more than 7,000 of them.
# With seed 0 the coins agree: the first tree falls down the whole slope, to depth 9, which {prf:ref}`prop-sgnuts-slope` gives one tree in 256 (the two data sets share its coins), and SGNUTS ends far behind.
# The five seeds together decide nothing: the difference is +0.1 points, 95 % from −5 to +5.
# The hybrid is ahead of SGHMC with four seeds of five, and of SGNUTS with all five.
#
# *The trees are not needed for it.* Three epochs with a fresh momentum every ten steps, and no tree at all, beat SGHMC beyond doubt.
# They are ahead of the hybrid with each of the five seeds too, but most of the mean difference is seed 0's, and the $p$-value does not tell the two apart.
# What both have in common is that they throw the energy of the start away.
# With each $p$-value multiplied by five, for five comparisons, only that of fresh momenta against SGHMC stays below 0.05.
# After the start a tree never turns, moves the weights that follow the prior at two fifths of the pace of SGHMC, and gives one network in ten epochs to average.
#
# *Our reading of the report* reaches neither 0.94 nor 0.85 in this currency, and single networks of it can be far off. Of the report's own program, and of its 7,000 trees, this says nothing.
# No sampler here reaches 0.85 on Fashion-MNIST in 70 epochs from the prior.

# %% tags=["hide-input"]
claim(
    "MNIST, seeds of five with which the first is ahead, in the five comparisons of "
    "the table",
    [compared(*pair)[2] for pair in comparisons] == [4, 4, 5, 5, 5],
    because="the stored result",
    kind="stored",
)
pair = [values("MNIST", name, columns["accuracy"][0]) for name in comparisons[0]]
claim(
    "Half of the 95 % interval of SGNUTS less SGHMC on MNIST",
    float(np.ptp(interval(*pair))) / 2,
    near=0.05,
    within=0.001,
    because="the stored result, the wider of two, paired and Welch's",
    kind="stored",
)
p_values = [compared(*pair)[3] for pair in comparisons]
claim(
    "Five times the p-value of fresh momenta against SGHMC on MNIST",
    5 * p_values[3],
    at_most=0.0005,
    because="the stored result, the larger of two tests",
    kind="stored",
)
claim(
    "Five times the smallest of the four other p-values",
    5 * min(p for number, p in enumerate(p_values) if number != 3),
    at_least=0.15,
    because="the stored result, the larger of two tests",
    kind="stored",
)
passing = values("MNIST", "SGNUTS", columns["accuracy"][0])
claim(
    "Seeds of five with which SGNUTS passes an accuracy of 0.94 on MNIST",
    int((passing > 0.94).sum()),
    near=4,
    within=0,
    because="the stored result, after 7,264 to 7,672 gradients",
    kind="stored",
)
reading = {
    data: float(values(data, "SGNUTS, our reading", columns["accuracy"][0]).max())
    for data in runs
}
claim(
    "Best accuracy of our reading less the published one, the larger of two data sets",
    max(reading["MNIST"] - 0.94, reading["Fashion-MNIST"] - 0.85),
    at_most=-0.04,
    because="the stored result, five seeds each",
    kind="stored",
)
claim(
    "Best accuracy of any run on Fashion-MNIST",
    max(
        float(values("Fashion-MNIST", method, columns["accuracy"][0]).max())
        for method in runs["Fashion-MNIST"]
    ),
    at_most=0.84,
    because="the stored result",
    kind="stored",
)
claim(
    "Lowest accuracy of a last network of our reading on MNIST",
    values("MNIST", "SGNUTS, our reading", columns["last network"][0]).min(),
    at_most=0.7,
    because="the stored result",
    kind="stored",
)
claim(
    "Depth of the first tree of SGNUTS with seed 0 on MNIST",
    runs["MNIST"]["SGNUTS"][0]["depths_in_order"][0],
    near=9,
    within=0,
    because="the stored result; on a slope the coins give it once in 256 times",
    kind="stored",
)

# %% [markdown]
# So the verdict, from one small network, two data sets and five seeds, from 70 epochs of gradients, one friction and trees of depth 10 at most: we found no use for SGNUTS on a network.
# For the start a fresh momentum now and then is ahead with every seed and needs no tree, and after the start a gradient moves the weights that follow the prior less in a tree than in SGHMC.
# What speaks against it: an epoch of 100 trees, 96,000 gradients, came within half a point of the accuracy that SGHMC reaches with 85,000 (above).
# In few dimensions, with little friction, it is another matter ({doc}`/book/tutorial/sgnuts`).

# %% [markdown]
# ## In practice
#
# * Compare samplers on gradients. An epoch that is counted in trees hides a factor of up to a thousand.
# * If you must start high up, draw the momentum afresh every few steps until the energy has come down. Better, start where an optimiser would.
# * In a large network with friction a tree runs to `max_depth`: look at the share that does, which `sample` reports. If it is near one, you have a fixed path length, and SGHMC moves the weights that follow the prior as far with less than half the gradients.
# * Never hold a minibatch for a long path.
# * Weights of empty pixels, or of inputs that you add and fill with zeros, are a free thermometer.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | a path on a slope is straight if | $\varepsilon^2\lvert g\rvert^2\min(s, t)\lvert s - t\rvert < 2\lvert r\rvert^2$, {prf:ref}`prop-sgnuts-slope` |
# | near equilibrium the criterion has the mean | $\sum_ke^{-C\tau/2}\sin(\omega_k\tau)/\omega_k$, $\omega_k^2 = \lambda_k - \tfrac14C^2$, {eq}`eq-sgnuts-criterion` |
# | a tree brings $\mathbb E[\theta^2]$ nearer by | $\varrho_J = \sum_kp_k\,a_k^2$, $p_k = \min(k, 2^J - k)/4^{J-1}$, {eq}`eq-sgnuts-rate` |
# | the worth of a gradient in a tree | $\log\varrho_J / \bigl((2^J - 1)\log\mu^2\bigr)$, at most about $\tfrac12$, {prf:ref}`prop-sgnuts-half` |
# | a choice among $N$ states cools at most to | $d - 2\sqrt{d\log N}$, {prf:ref}`prop-sgnuts-choice` |
#
# ## Change it
#
# * Set `math.sqrt(6) / step_size` to `math.sqrt(0.06) / step_size`: on a slope a hundred times less steep in its square the trees no longer toss coins, and the claims on their depths show ✗.
# * Set `"overdamped, $C = 3$": (3.0, 0.1)` to `"overdamped, $C = 3$": (0.3, 0.1)`: with a tenth of the friction trees turn in 10,000 dimensions too, and the claim on the mean depth shows ✗.
# * Set `"MNIST": (2e-6, 0.01)` to `"MNIST": (2e-6, 0.001)`: the claims on the worth of a gradient show ✗, for with less friction a gradient is worth more in a tree of depth 10, and less in one of depth 6.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-sgnuts-networks-write
#
# *Write it yourself.* The palindromic step of {doc}`/book/tutorial/sgnuts` drifts by half a step, multiplies the momentum by $1 - \tfrac12\varepsilon C$, kicks by $-\varepsilon\nabla U$, divides the momentum by $1 + \tfrac12\varepsilon C$ (the noise comes before this division), and drifts by the other half. Write it for one weight without noise, and use it to compute $a_k$ and $\varrho_J$ of {prf:ref}`prop-sgnuts-half` by a double loop over all starts in one half and all choices in the other. The same step is a task of assignment 3 ({doc}`/book/practice/teaching`).
#
# ```python
# def step(theta, r, step_size, friction):
#     ...
#
#
# def rate(step_size, friction, depth):
#     # correlations a_k: θ after k steps from θ = 1, r = 0
#     # mean of a_k² over starts 0 … n − 1 and choices n … 2n − 1, k = choice − start
#     ...
# ```
# ````
#
# ```{solution} ex-sgnuts-networks-write
# :class: dropdown
#
# A fresh momentum has the mean zero, and so has the noise, so $a_k$ is where $\theta = 1$, $r = 0$ goes in $k$ steps. The cell below has both functions.
# ```


# %% tags=["hide-input"]
def step(theta, r, step_size, friction):
    theta = theta + 0.5 * step_size * r
    r = (1 - 0.5 * step_size * friction) * r
    r = r - step_size * theta
    r = r / (1 + 0.5 * step_size * friction)
    return theta + 0.5 * step_size * r, r


def rate(step_size, friction, depth):
    n, places, state = 2 ** (depth - 1), [1.0], (1.0, 0.0)
    for _ in range(2 * n - 1):
        state = step(*state, step_size, friction)
        places.append(state[0])
    pairs = [
        places[choice - start] ** 2 for start in range(n) for choice in range(n, 2 * n)
    ]
    return sum(pairs) / n**2


learning_rate, momentum_decay = settings["digits, live"]
step_size = math.sqrt(learning_rate)
claim(
    "Exercise: the rate by the double loop less that by the formula, depth 8",
    abs(
        rate(step_size, momentum_decay / step_size, 8)
        - contraction(learning_rate, momentum_decay, 8)
    ),
    at_most=1e-10,
    because="rounding",
    kind="exact",
)
low = {depth: contraction(2e-6, 0.001, depth) for depth in (10, 11, 12)}
of_low = {
    depth: -math.log(value) / ((2**depth - 1) * sghmc_rate(2e-6, 0.001))
    for depth, value in low.items()
}
for statement, value, near, within in (
    ("Exercise: worth at α = 0.001 and depth 11", of_low[11], 0.7, 0.05),
    (
        "Exercise: the same less the larger of those at depths 10 and 12",
        of_low[11] - max(of_low[10], of_low[12]),
        0.15,
        0.15,
    ),
    ("Exercise: steps of half a turn on MNIST", math.pi / 2e-6**0.5, 2_200, 30),
    (
        "Exercise: depth of a tree that may halve it",
        79_510 / 16 / math.log(2),
        7_170,
        5,
    ),
):
    claim(
        statement, value, near=near, within=within, because="arithmetic", kind="exact"
    )

# %% [markdown]
# ```{exercise}
# :label: ex-sgnuts-networks-every-state
#
# With equal weights the states of a finished tree are alike. Could one average the predictions of several of them, and what would that gain?
# ```
#
# ```{solution} ex-sgnuts-networks-every-state
# :class: dropdown
#
# Yes: given the finished path all its states are equally likely draws, so that the mean of a prediction over the path, or over some states taken from it at random, has the same expectation as the prediction of a uniform choice, and less variance.
# It costs a prediction for each state. SGHMC, which keeps a network per epoch, does the same without a tree.
# ```
#
# ```{exercise}
# :label: ex-sgnuts-networks-low-friction
#
# With which friction would the trees of a network begin to turn, and what would a gradient then be worth?
# ```
#
# ```{solution} ex-sgnuts-networks-low-friction
# :class: dropdown
#
# By {prf:ref}`thm-sgnuts-no-turn` the weights that follow the prior turn if $\tfrac14C^2 < \lambda = 1$, that is $\alpha < 2\varepsilon = 0.0028$ on MNIST, after about $\pi/\varepsilon \approx 2{,}200$ steps: deeper than ten doublings.
# So one has to allow a greater depth. At $\alpha = 0.001$ `contraction` and `sghmc_rate` give a worth of 0.7 at depth 11 and less on either side, against SGHMC with the same friction: better, and still no gain. And with so little friction the noise of the minibatches is hardly damped any more, and heats ({doc}`/book/studies/mnist`).
# ```
#
# ```{exercise}
# :label: ex-sgnuts-networks-head-start
#
# In the live runs, vary the number of steps between fresh momenta in the head start, from 1 to 100. What happens at either end?
# ```
#
# ```{solution} ex-sgnuts-networks-head-start
# :class: dropdown
#
# Replace `resample_every` in the plan, as `rounds` is replaced above. With a fresh momentum at every step the chain is a random walk that never sees a gradient ({ref}`ex-sghmc-resample`). With 100 steps the friction $\alpha = 0.02$ has taken most of the momentum, $1 - 0.98^{100} = 87$ per cent, before it is drawn, and we expect the head start to be like plain SGHMC.
# ```
#
# ```{exercise}
# :label: ex-sgnuts-networks-bound
#
# How many states would a tree in 79,510 dimensions need before {prf:ref}`prop-sgnuts-choice` allows a choice to halve the temperature?
# ```
#
# ```{solution} ex-sgnuts-networks-bound
# :class: dropdown
#
# $2\sqrt{\log N/d} \ge \tfrac12$ needs $\log N \ge d/16 \approx 4{,}970$: a depth of about 7,170.
# ```
#
# ## Further reading
#
# {cite:t}`adamday` for the proposal, {cite:t}`hoffman2014` and {cite:t}`betancourt2017` for trees without friction, {cite:t}`izmailov2021` for what long paths with exact gradients reach on networks.
