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
# # SGNUTS on networks
#
# The no-U-turn sampler with noisy gradients was proposed for networks, and did well on two of them. What did the trees do there, what did they cost, and would something simpler have done it too?
#
# **You will learn** to
#
# * compare samplers whose steps cost different amounts, in the one currency that is fair,
# * put a thermometer into a network,
# * say why a tree with friction turns at once on a slope, and never near equilibrium,
# * compute what a gradient is worth when it is spent in a tree,
# * tell an effect of an algorithm from an effect of its starting point.
#
# **You will need** {doc}`/book/stochastic_gradients/sgnuts` and {doc}`/book/bayesian_networks/digits`.

# %%
import math
import warnings
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import torch

from experiments import sgnuts
from experiments.options import Options
from experiments.results import RESULTS, read_result, who_ran
from sgmc import claim, sample
from sgmc.figures import COLOURS, TRUTH, use_style
from sgmc.flows import palindromic
from sgmc.kernels import SGNUTS
from sgmc.linear_laws import linear_chain, sghmc_chain
from sgmc.play import play
from sgmc.posteriors import NetworkPosterior
from sgmc.potentials import Potential

use_style()
play()
warnings.filterwarnings(
    "ignore", message=".*max_depth"
)  # that trees reach their largest depth is what this chapter is about
styles = {
    "SGNUTS": (COLOURS["SGNUTS"], "-"),
    "SGNUTS, as reported": (COLOURS["naive SGHMC"], "--"),
    "SGHMC": (COLOURS["SGHMC"], "-"),
    "SGNUTS, then SGHMC": (COLOURS["HMC"], "-."),
    "fresh momenta, then SGHMC": ("black", ":"),
    "SGNUTS, small start": (COLOURS["SGNUTS"], "-"),
    "SGHMC, small start": (COLOURS["SGHMC"], "-"),
}

# %% [markdown]
# ## The case for SGNUTS
#
# {cite:t}`adamday` sampled the network 784–100–10, with ReLU units and $N(0, 1)$ priors, with SGNUTS: 20 epochs of warm-up and 50 of sampling gave an accuracy of 0.94 on MNIST and 0.85 on Fashion-MNIST.
# They saw it do well after very few epochs, where SGHMC needed many, found each epoch very slow, and proposed a hybrid: start with SGNUTS, go on with SGHMC.
#
# Their program counts an *epoch* of SGNUTS as $N/n = 100$ trees. A tree of the largest depth, 10, takes $2^{10} - 1 = 1{,}023$ gradients, so that such an epoch may cost as much as a thousand epochs of SGHMC.
# That is the first thing to mend.
#
# ```{prf:definition} Epoch
# :label: def-sgnuts-epoch
#
# An epoch is $N/n$ stochastic gradients, with minibatches of $n$ of the $N$ examples, whatever steps or trees they are spent on. A tree that is not finished at the end of an epoch counts in the next.
# ```
#
# In the code of the experiments such an epoch is a *round*, as it is for every other method.
#
# We run the repaired sampler of {doc}`/book/stochastic_gradients/sgnuts` (palindromic step, equal weights, a fresh minibatch for each gradient), and the reported one: drift and kick, weights $e^{-H}$, and one minibatch held for a whole tree, whose energy is the one in the weights.
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
# In such weights every sampler of this chapter is a chain on $N(0, 1)$ with *exact* gradients. Their mean square is a thermometer which should read one: less is too cold, or not yet there, if they started small.

# %%
prepared = sgnuts.prepare(Options(data=Path(), runs=Path(), small=True))["MNIST"]
plans = {plan.method: plan for plan in sgnuts.settings(small=True)}
posterior = NetworkPosterior(prepared.network(), *prepared.train, batch_size=100)
empty = (prepared.train.inputs == 0).all(0)

# %% tags=["hide-input"]
claim(
    "Pixels that are empty in 4,000 digits",
    int(empty.sum()),
    near=124,
    within=0,
    because="counted",
    kind="exact",
)

generator = torch.Generator().manual_seed(0)
position = torch.randn(1, posterior.dim, generator=generator)
force = posterior.stochastic_gradient(position, generator) - position
claim(
    "Largest part of the stochastic gradient, in the weights of empty pixels, that is "
    "not the prior's",
    posterior.parameters_of(force)["0.weight"].view(100, 784)[:, empty].abs().max(),
    at_most=0.0,
    because="zero times anything is zero",
    kind="exact",
)

# %% [markdown]
# ## On a slope a tree tosses coins
#
# A draw from the prior is a dreadful classifier. Its energy lies far above where the chain has to go, and the first trees grow on a steep slope.
#
# ```{prf:proposition} Trees on a slope
# :label: prop-sgnuts-slope
#
# On a slope $U = g^\top\theta$, without friction and noise, let a path have the momenta $r - k\varepsilon g$ for $k = -s, \dots, t$, with $r \perp g$ and $M = 1$. It is straight, by the criterion of {doc}`/book/foundations/no_u_turn`, if and only if $\varepsilon^2\lvert g\rvert^2\min(s, t)\lvert s - t\rvert < 2\lvert r\rvert^2$.
# So a path to one side never turns. If $\varepsilon^2\lvert g\rvert^2 > 2\lvert r\rvert^2$, every path of four and more states that has been to both sides does, and a tree has depth $j$ with probability $2^{-(j-1)}$, $j = 2, 3, \dots$
# ```
#
# ```{prf:proof}
# Let $a = r - t\varepsilon g$ and $b = r + s\varepsilon g$ be the momenta at the ends. All momenta add up to $\rho = \tfrac12(s + t + 1)(a + b)$, and $(a + b)^\top a = 2\lvert r\rvert^2 + \varepsilon^2\lvert g\rvert^2t(t - s)$, $(a + b)^\top b = 2\lvert r\rvert^2 + \varepsilon^2\lvert g\rvert^2s(s - t)$. Both are positive if $\min(s, t) = 0$, and the smaller of them is $2\lvert r\rvert^2 - \varepsilon^2\lvert g\rvert^2\min(s, t)\lvert s - t\rvert$.
# With $2^j$ states $s + t$ is odd, so that $\lvert s - t\rvert \ge 1$. The sub-trees of a path to one side are paths to one side. Hence the tree ends with the first doubling that goes to another side than the first one did: after $j - 1$ equal coins, and then a different one.
# ```
#
# The two ends run down the *same* slope, one in either direction of time, and that is a U-turn. In many dimensions $r$ is nearly orthogonal to any given $g$. Here is a bowl of 1,000 dimensions, from far up its wall.


# %%
class Bowl(Potential):
    """A standard normal law in any dimension."""

    def energy(self, position):
        return 0.5 * position.square().sum(-1)

    def gradient(self, position):
        return position.clone()


step_size = 0.002
on_the_wall = torch.full(
    (2_000, 1_000), math.sqrt(6) / step_size
)  # ε²|g|² = 6d, and |r|² is near d
first_trees = sample(
    SGNUTS(step_size, 1.0, max_depth=5), Bowl(), on_the_wall, num_samples=1, seed=1
).statistics["depth"][0]

# %% tags=["hide-input"]
for depth in (2, 3):
    claim(
        "Share of the first trees on the wall of a bowl in 1,000 dimensions that "
        f"have depth {depth}",
        (first_trees == depth).double().mean(),
        near=0.5 ** (depth - 1),
        within=0.06,
        because="coins, for orthogonal vectors; 2,000 trees, standard error 0.011",
    )

# %% [markdown]
# So a run of SGNUTS that starts high up begins with a lottery: mostly tiny trees, each with a *fresh momentum*, and now and then, when the coins agree, one long fall.
# Remember the fresh momenta. They will turn out to be what the trees are good for.
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
# In the network $C = \alpha/\varepsilon = 7.07$ and $\tfrac14C^2 = 12.5$, while most weights follow the prior, $\lambda = 1$. The momentum is forgotten long before they could turn round, and a walk without memory has no turns.
# The stiff directions, which would turn, are outvoted: their $s_k$ is at most $1/\omega_k$. With ten dimensions the noise makes a U-turn sooner or later; with ten thousand it does not ({numref}`fig-sgnuts-depths`).

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
            num_samples=6,
            seed=3,
        )
        depths[name].append(float(draws.statistics["depth"].double().mean()))

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
    at_most=5.1,
    because="half a turn takes π/0.13 = 24 steps, and 32 states are more than that",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-sgnuts-depths", "caption": "Mean depth of the trees on a standard normal law, at most 8, against the number of dimensions. The more dimensions, the less chance has the noise to fake a turn."}}
figure, axes = plt.subplots(figsize=(6, 3))
for (name, values), style in zip(depths.items(), ("o-", "s--"), strict=True):
    axes.semilogx(dims, values, style, color=COLOURS["SGNUTS"], label=name)
axes.axhline(8, color=TRUTH, lw=1)
axes.set(xlabel="dimensions", ylabel="mean depth $j$")
axes.legend()
plt.show()

# %% [markdown]
# A sampler whose point is to find the length of its paths by itself thus has its length set by `max_depth`.
#
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
    step, power, total, half = (
        palindromic_step(learning_rate, momentum_decay),
        torch.eye(2, dtype=torch.float64),
        0.0,
        2 ** (depth - 1),
    )
    for k in range(1, 2 * half):
        power = step @ power
        total += min(k, 2 * half - k) / half**2 * float(power[0, 0]) ** 2
    return total


def one_weight(learning_rate, momentum_decay):
    """SGHMC on a standard normal law as a linear chain in (θ, r)."""
    step_size = math.sqrt(learning_rate)
    return sghmc_chain(
        torch.eye(1, dtype=torch.float64),
        step_size,
        momentum_decay / step_size,
        0.0,
        0.0,
    )


def sghmc_rate(learning_rate, momentum_decay):
    """−log μ², per step of SGHMC."""
    return -2 * math.log(
        float(
            torch.linalg.eigvals(one_weight(learning_rate, momentum_decay).transition)
            .abs()
            .max()
        )
    )


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

learning_rate, momentum_decay = settings["digits, live"]
step_size = math.sqrt(learning_rate)
cold = sample(
    SGNUTS(step_size, momentum_decay / step_size, max_depth=8),
    Bowl(),
    torch.zeros(300, 100),
    num_samples=4,
    seed=4,
)
left = 1 - cold.samples.square().mean(
    -1
)  # distance from the limit, which starts at one: (draws, chains)
for number in (1, 3):
    claim(
        f"Distance of the mean square from one after {number} trees of depth 8 at "
        "most, from zero",
        left[number - 1].mean(),
        near=contraction(learning_rate, momentum_decay, 8) ** number,
        within=0.04,
        because=(
            "the formula if no tree turns; 300 chains of 100 dimensions, standard "
            "error 0.01"
        ),
    )

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-sgnuts-worth", "caption": "What a gradient is worth when it is spent in a tree of a given depth, in gradients of SGHMC, for the weights that follow the prior."}}
figure, axes = plt.subplots(figsize=(6, 3.2))
for (name, values), style in zip(worth.items(), ("o-", "s--", "^:"), strict=True):
    axes.plot(tree_depths, values, style, ms=4, color=COLOURS["SGNUTS"], label=name)
axes.axhline(0.5, color=TRUTH, lw=1)
axes.set(xlabel="depth $J$", ylabel="worth of a gradient", ylim=(0, 0.55))
axes.legend()
plt.show()

# %% [markdown]
# The worth of a gradient in a tree can be read off {numref}`fig-sgnuts-worth`: 0.40 at depth 10 with the settings of the experiments, and much less in shorter trees.
# The tree spends half of its path on states from which it could never have chosen, and forgets its momentum each time. Those weights are most of the network.
#
# ## Energy weights in many dimensions
#
# On the line, choosing with weights $e^{-H}$ sampled at half the temperature. Can that be so in 79,510 dimensions?
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
# Not that the weights did no harm. Along a path $H$ wanders by hundreds, so that $e^{-H}$ picks the one state of the lowest energy, tree after tree; and what one tree takes away the next must bring back ({numref}`fig-sgnuts-dimensions`).

# %%
variances = {"energy": [], "uniform": []}
for dim in dims:
    for weights, values in variances.items():
        position = torch.randn(
            max(1, 8_000 // dim), dim, generator=torch.Generator().manual_seed(5)
        )
        draws = sample(
            SGNUTS(0.1, 3.0, max_depth=6, weights=weights),
            Bowl(),
            position,
            num_samples=25,
            warm_up=8,
            seed=6,
        )
        values.append(float(draws.samples.square().mean()))

# %% tags=["hide-input"]
claim(
    "Variance with energy weights on the line",
    variances["energy"][0],
    at_most=0.75,
    because="near 0.67 over several seeds",
)
claim(
    "Variance with energy weights in 10,000 dimensions",
    variances["energy"][-1],
    at_least=0.95,
    because="0.98 to 0.99 over several seeds",
)
claim(
    "Largest error of the variance with equal weights, over the five dimensions",
    max(abs(value - 1) for value in variances["uniform"]),
    at_most=0.06,
    because=(
        "Monte Carlo error, largest where the dimensions are few; below 0.02 over "
        "several seeds"
    ),
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-sgnuts-dimensions", "caption": "Variance of a coordinate of a standard normal law under SGNUTS with trees of depth 6 at most, against the number of dimensions."}}
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
# The worse fault of the reported sampler on a network is the other one: a tree of a thousand steps with a *single* minibatch. Its error is a constant force ({doc}`/book/stochastic_gradients/sgnuts`), and a thousand steps are enough to fit 500 digits and forget the rest.
#
# ## The digits, live
#
# Now the network, on 4,000 digits: 30 epochs of 40 gradients, $\eta = 0.1/N$ and $\alpha = 0.02$. Besides SGNUTS and SGHMC there are two hybrids, which spend at least three epochs on a head start and go on with SGHMC: the one that the report proposed, and a simpler one, SGHMC with a fresh momentum every ten steps and no trees at all.
# Two runs start with small weights, $N(0, 1/\text{fan-in})$, as an optimiser does.

# %%
live = {}
for method, plan in plans.items():
    if method == "SGNUTS, small start":
        plan = replace(plan, rounds=76)  # three trees of depth 10 end just after that
    live[method] = sgnuts.TreeRun(replace(plan, seed=1), prepared).go(progress=False)
chain, expected = (
    one_weight(*settings["digits, live"]).power(40),
    [0.0],
)  # E[θ²] of SGHMC, from θ = 0 and r ~ N(0, 1)
covariance = torch.diag(torch.tensor([0.0, 1.0], dtype=torch.float64))
for _ in range(30):
    covariance = (
        chain.transition @ covariance @ chain.transition.T + chain.noise_covariance
    )
    expected.append(float(covariance[0, 0]))
longest = {
    method: max(run["curve"]["length"]) / posterior.dim for method, run in live.items()
}
potential_energy = float(
    posterior.energy(
        position := torch.randn(
            1, posterior.dim, generator=torch.Generator().manual_seed(7)
        )
    )
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-sgnuts-live", "caption": "Runs on 4,000 digits. Left: accuracy of the last network on 1,000 test digits, from a draw from the prior. Middle: squared length of the weights over their number. Right: the thermometer from a small start, with the exact expectations in grey; a tree moves by leaps, and three of them are shown."}}
figure, panels = plt.subplots(1, 3, figsize=(11, 3.5))
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
panels[2].plot(range(0, 1_201, 40), expected, color=TRUTH, lw=3, zorder=0)
leaps = 1 - contraction(*settings["digits, live"], 10) ** torch.arange(4.0)
panels[2].plot([0, 1_023, 2_046, 3_069], leaps, "s", color=TRUTH, zorder=0)
panels[0].set(xlabel="gradients", ylabel="accuracy", ylim=(0, 1))
panels[1].set(xlabel="gradients", ylabel=r"$|\theta|^2/d$")
panels[2].set(xlabel="gradients", ylabel="mean square, empty pixels", ylim=(0, 1.1))
panels[0].legend(fontsize=6)
panels[2].legend(fontsize=7)
plt.show()

# %% [markdown]
# In {numref}`fig-sgnuts-live` plain SGHMC is late, and the middle panel says why. At a draw from the prior the energy of the weights is ten times the kinetic energy $\tfrac12d$ that the chain has in equilibrium; with 50,000 digits it is hundreds of times that.
# SGHMC keeps its momentum, and with little friction most of that energy turns into motion before friction has taken it: the network is hurled out to weights twice too long in the square, from where the prior must pull it back.
# Whoever draws a fresh momentum every few steps throws that energy away. Small trees do so, and ten steps of SGHMC do so just as well, without the lottery.

# %% tags=["hide-input"]
claim(
    "Energy of a draw from the prior, over the mean kinetic energy d/2",
    potential_energy / (posterior.dim / 2),
    at_least=5,
    because="about 10; nearly all of it is what 4,000 digits say of random weights",
)
claim(
    "Largest |θ|²/d of SGHMC from the prior",
    longest["SGHMC"],
    at_least=1.4,
    because="1.7 to 2.2 over several seeds",
)
claim(
    "Largest |θ|²/d of SGHMC with a fresh momentum every ten steps in its head start",
    longest["fresh momenta, then SGHMC"],
    at_most=1.2,
    because="below 1.05 over several seeds",
)
claim(
    "Error of the last networks over epochs 3 to 10: fresh momenta over plain SGHMC",
    sum(live["fresh momenta, then SGHMC"]["curve"]["error"][3:11])
    / sum(live["SGHMC"]["curve"]["error"][3:11]),
    at_most=0.85,
    because="0.3 to 0.5 over several seeds",
)
claim(
    "Share of the trees of SGNUTS from a small start that reach depth 10",
    live["SGNUTS, small start"]["depths"][10] / live["SGNUTS, small start"]["trees"],
    at_least=0.99,
    because="friction forbids the U-turn",
)
claim(
    "Thermometer of SGHMC after 1,200 gradients from a small start",
    live["SGHMC, small start"]["curve"]["temperature"][-1],
    near=expected[-1],
    within=0.06,
    because="exact law from zero; 12,400 weights, standard error 0.013",
    kind="exact",
)
claim(
    "Log loss of the average over the networks of SGNUTS as reported, over that of "
    "SGNUTS",
    live["SGNUTS, as reported"]["average"]["log_loss"]
    / live["SGNUTS"]["average"]["log_loss"],
    at_least=2,
    because="a thousand steps with one minibatch; 5 and more over several seeds",
)

# %% [markdown]
# ## At full scale
#
# The runs of `python -m experiments run sgnuts`: 50,000 training images, minibatches of 500, $\alpha = 0.01$, $\eta = 2\cdot10^{-6}$ on MNIST and $10^{-6}$ on Fashion-MNIST, 20 + 50 epochs of 100 gradients, scored on the 10,000 test images, which chose nothing.
# The accuracy is that of the average of the networks at the ends of the 50 epochs; {numref}`fig-sgnuts-full` has the single networks on the way. The time is the processor's, without predictions.

# %%
result = read_result(RESULTS / "sgnuts.json")
runs = result["runs"]
seeds = len(runs["MNIST"]["SGHMC"])


def values(data, method, value):
    """One number from the runs of all seeds."""
    return torch.tensor([value(run) for run in runs[data][method]], dtype=torch.float64)


def cell(numbers, digits):
    return f"{numbers.mean():.{digits}f} ± {numbers.std():.{digits}f}"


columns = {
    "accuracy": (lambda run: 1 - run["average"]["error"], 3),
    "log loss": (lambda run: run["average"]["log_loss"], 3),
    "last network": (lambda run: 1 - run["curve"]["error"][-1], 3),
    "seconds": (lambda run: run["processor_seconds"], 1),
}


def table(columns, datasets):
    """Print the columns for every method, as means and standard deviations over the
    seeds."""
    print(f"{'':41}" + "".join(f"{name:>16}" for name in columns))
    for data in datasets:
        for method in runs[data]:
            print(
                f"{data + ', ' + method:41}"
                + "".join(
                    f"{cell(values(data, method, f), digits):>16}"
                    for f, digits in columns.values()
                )
            )


print(f"{seeds} seeds, means and standard deviations")
table(columns, runs)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-sgnuts-full", "caption": "Accuracy of the last network on the test images, and squared length of the weights over their number, against gradients. A line for each seed; a mark at the end of each tree that ends an epoch."}}
figure, panels = plt.subplots(2, 2, figsize=(10, 6.4), sharex=True)
for column, (data, methods) in enumerate(runs.items()):
    for method, series in methods.items():
        colour, dashes = styles[method]
        for number, run in enumerate(series):
            curve, marker = run["curve"], "o" if run["trees"] > 5 else None
            look = {
                "color": colour,
                "ls": dashes,
                "lw": 1,
                "marker": marker,
                "ms": 2.5,
                "label": method if number == 0 else None,
            }
            panels[0, column].plot(
                curve["gradients"], [1 - error for error in curve["error"]], **look
            )
            panels[1, column].semilogy(
                curve["gradients"],
                [length / posterior.dim for length in curve["length"]],
                **look,
            )
    panels[0, column].set(title=data, ylim=(0.4, 1))
    panels[1, column].set(
        xlabel="gradients", yticks=[1, 2, 3, 4], yticklabels=[1, 2, 3, 4]
    )
    panels[1, column].minorticks_off()
panels[0, 0].set(ylabel="accuracy of the last network")
panels[1, 0].set(ylabel=r"$|\theta|^2/d$")
panels[0, 0].legend(fontsize=7, loc="lower right")
figure.text(0.01, -0.02, who_ran(result), size=6, color="0.4")
plt.show()

# %% [markdown]
# ### How long a warm-up?
#
# The report's table, in our currency: the accuracy of the last network after a warm-up of so many epochs, that of the average over the 25 epochs that follow, and the gradients and the seconds that the warm-up took. A tree that is under way at the end of the warm-up is finished first.

# %%
for data, methods in runs.items():
    print(
        f"{data:28}{'warm-up, epochs:':>18}"
        + "".join(f"{burn_in:>9}" for burn_in in sgnuts.BURN_INS)
    )
    for method in methods:
        rows = {
            "last network": lambda line: f"{1 - line['error']:.3f}",
            "average": lambda line: f"{1 - line['average']['error']:.3f}",
            "gradients": lambda line: f"{line['gradients']:.0f}",
            "seconds": lambda line: f"{line['processor_seconds']:.1f}",
        }
        for row, (name, entry) in enumerate(rows.items()):
            entries = []
            for index in range(len(sgnuts.BURN_INS)):
                lines = [run["after"][index] for run in methods[method]]
                line = {
                    key: sum(one[key] for one in lines) / seeds
                    for key in ("error", "gradients", "processor_seconds")
                }
                line["average"] = {
                    "error": sum(one["average"]["error"] for one in lines) / seeds
                }
                entries.append(f"{entry(line):>9}")
            print(f"{method if row == 0 else '':28}{name:>18}" + "".join(entries))

# %% [markdown]
# ### Lengths, temperatures, entropies
#
# At the end of the runs: the squared length of the weights, which is near $d$ in equilibrium; on MNIST the thermometer, which should read one with a standard error of 0.017 from 6,700 weights; the mean entropy of the averaged prediction, and the mean entropy of the networks that it averages.

# %%
lengths = {
    "|θ|²/d": (lambda run: run["curve"]["length"][-1] / posterior.dim, 2),
    "entropy": (lambda run: run["entropy"][0], 2),
    "of the networks": (lambda run: run["entropy"][1], 2),
}
table(lengths, runs)
table({"thermometer": (lambda run: run["curve"]["temperature"][-1], 3)}, ["MNIST"])

# %% tags=["hide-input"]
claim(
    "Thermometer of SGNUTS at the end of the runs on MNIST, mean over the seeds",
    values("MNIST", "SGNUTS", lambda run: run["curve"]["temperature"][-1]).mean(),
    near=1,
    within=0.03,
    because="the prior's law; a seed has a standard error of 0.017",
    kind="stored",
)
claim(
    "Log loss of SGNUTS as reported less that of SGNUTS on MNIST, mean over the seeds",
    (
        values("MNIST", "SGNUTS, as reported", columns["log loss"][0])
        - values("MNIST", "SGNUTS", columns["log loss"][0])
    ).mean(),
    at_least=0.1,
    because="the stored result",
    kind="stored",
)

# %% [markdown]
# The thermometer finds nothing wrong, with the reported sampler neither: after so few trees, in so many dimensions, the energy weights have cooled little.
# What is wrong with it shows where the data speak. Its weights are too long, its networks are sure of themselves and contradict each other, as networks are that each know one minibatch well.

# %% [markdown]
# ### Trees

# %%
for data, methods in runs.items():
    for method in ("SGNUTS", "SGNUTS, as reported"):
        counts = torch.stack(
            [torch.tensor(run["depths"]) for run in methods[method]]
        ).sum(0)
        total, limited = (
            int(counts.sum()),
            sum(run["depth_limited"] for run in methods[method]),
        )
        print(f"{data}, {method}: {total} trees, depths 0 to 10: {counts.tolist()},")
        share = limited * 1_023 / sum(run["gradients"] for run in methods[method])
        print(
            f"    {limited / total:.0%} of them at the depth limit, with {share:.0%} "
            "of all gradients; ",
            end="",
        )
        print(f"{sum(run['diverged'] for run in methods[method])} divergences")

# %% tags=["hide-input"]
claim(
    "Share of the gradients of SGNUTS on MNIST that went into trees at the depth limit",
    sum(run["depth_limited"] * 1_023 for run in runs["MNIST"]["SGNUTS"])
    / sum(run["gradients"] for run in runs["MNIST"]["SGNUTS"]),
    at_least=0.85,
    because="the stored result; friction forbids the U-turn",
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
# SGNUTS tosses its coins at the start, and from then on all its trees are as deep as they may be.
# The reported sampler goes on to make short trees in between: after a thousand steps on one minibatch the next minibatch finds itself on a slope again.

# %% [markdown]
# ### What a gradient costs, and what a tree keeps
#
# A tree needs more than its gradients: the sums of momenta, the checks of sub-trees, the choice. In one process, in turn, in milliseconds of the processor for a gradient:

# %%
costs = {name: torch.tensor(measured) for name, measured in result["costs"].items()}
for name, measured in costs.items():
    print(
        f"{name:22} {measured.mean():.2f} ms, "
        f"{measured.mean() / costs['gradient'].mean():.2f} of the gradient alone"
    )
per_tree = [run["gradients"] / run["trees"] for run in runs["MNIST"]["SGNUTS"]]
hours = 70 * 100 * 1_023 * float(costs["SGNUTS"].mean()) / 3.6e6
print(
    "70 epochs as the report counts them, of 100 trees of depth 10: "
    f"{70 * 100 * 1_023:,} gradients, {hours:.1f} hours of the processor"
)

# %% tags=["hide-input"]
claim(
    "Cost of a gradient in a tree over that of a step of SGHMC",
    costs["SGNUTS"].mean() / costs["SGHMC"].mean(),
    at_most=1.4,
    because=(
        "the stored result; all the rest of the tree is a few passes over the weights"
    ),
    kind="stored",
)

# %% [markdown]
# A network of 79,510 weights is 0.32 MB, and a path of 1,024 states with their momenta would be 650 MB. The tree does not keep it. It holds the two ends and the choices, six positions at most, and of every complete sub-tree that waits for its twin the momenta at its ends and their sum.
# As in counting in binary, at most one sub-tree of each size waits, so that a tree of depth $J$ keeps some $2J + 6$ such vectors: 10 MB at depth 10.
#
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
# | a new half of a tree | always accepted, in the program | accepted with probability $\min(1, W_{\text{new}}/W_{\text{old}})$, as the report says |
#
# On MNIST and Fashion-MNIST 0.94 and 0.85 were published. The table above has what is reached at a hundredth of their price or less; what 7,000 trees reach, at the hours printed above for each run, we did not try.
#
# ## Does it pay?
#
# The differences of the table, with the seeds paired:

# %%
comparisons = {
    "trees or not: SGNUTS less SGHMC": ("SGNUTS", "SGHMC"),
    "the report's hybrid: SGNUTS, then SGHMC, less SGHMC": (
        "SGNUTS, then SGHMC",
        "SGHMC",
    ),
    "a head start without trees less SGHMC": ("fresh momenta, then SGHMC", "SGHMC"),
    "a head start without trees less one with trees": (
        "fresh momenta, then SGHMC",
        "SGNUTS, then SGHMC",
    ),
}
for name, pair in comparisons.items():
    ours, theirs = (
        values("MNIST", method, lambda run: 1 - run["average"]["error"])
        for method in pair
    )
    difference = ours - theirs
    print(
        f"{name:54} accuracy {difference.mean():+.3f} ± "
        f"{difference.std() / seeds**0.5:.3f}, ahead with "
        f"{int((difference > 0).sum())} of {seeds} seeds"
    )

# %% tags=["hide-input"]
claim(
    "Accuracy on MNIST with a head start without trees, less that of SGHMC, mean over "
    "the seeds",
    (
        values("MNIST", "fresh momenta, then SGHMC", columns["accuracy"][0])
        - values("MNIST", "SGHMC", columns["accuracy"][0])
    ).mean(),
    at_least=0.02,
    because="the stored result; ahead with each of the seeds",
    kind="stored",
)
claim(
    "Accuracy on MNIST with a head start without trees, less that of the report's "
    "hybrid, mean over the seeds",
    (
        values("MNIST", "fresh momenta, then SGHMC", columns["accuracy"][0])
        - values("MNIST", "SGNUTS, then SGHMC", columns["accuracy"][0])
    ).mean(),
    at_least=0.0,
    because="the stored result",
    kind="stored",
)

# %% [markdown]
# *What the report saw is real.* From a start high up SGNUTS finds good networks sooner than SGHMC, at equal gradients too, and with the repaired sampler the published 0.94 on MNIST takes no more than 7,000 gradients. The hybrid is better than either of its parts.
# Unless the coins agree: with seed 0 the first tree fell down the whole slope, an accident of one in hundreds by {prf:ref}`prop-sgnuts-slope` (the two data sets share its coins), and SGNUTS ended behind.
#
# *The trees are not the reason.* Three epochs with a fresh momentum every ten steps, and no tree at all, do better than the hybrid, with every seed about alike. What helps is to throw the energy of the start away.
# And after the start a tree never turns, moves most of the weights at two fifths of the pace of SGHMC, and gives one network in ten epochs to average.
#
# *The reported sampler* reaches neither 0.94 nor 0.85 in this currency, and single networks of it can be far off. No sampler here reaches 0.85 on Fashion-MNIST in 70 epochs from the prior.
#
# So the verdict is plain. We know of no use for SGNUTS on a network: for the start there is something cheaper, and for the rest something better. On few dimensions, with little friction, it is another matter ({doc}`/book/stochastic_gradients/sgnuts`).

# %% [markdown]
# ## In practice
#
# * Compare samplers on gradients. An epoch that is counted in trees hides a factor of up to a thousand.
# * If you must start high up, draw the momentum afresh every few steps until the energy has come down. Better, start where an optimiser would.
# * In a large network with friction a tree runs to `max_depth`: look at the share that does, which `sample` reports. If it is near one, you have a fixed path length, and SGHMC does the same for less than half.
# * Never hold a minibatch for a long path.
# * Weights of empty pixels, or of inputs that you add and fill with zeros, are a free thermometer.
#
# ## Exercises
#
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
# So one has to allow a greater depth. At $\alpha = 0.001$ `contraction` and `sghmc_rate` give a worth of 0.7 at depth 11 and less on either side, against SGHMC with the same friction: better, and still no gain. And with so little friction the noise of the minibatches is hardly damped any more, and heats ({doc}`/book/bayesian_networks/mnist`).
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
# Pass another `resample_every` to `SGHMC`. With a fresh momentum at every step the chain is SGLD with the step $\tfrac12\eta$, which creeps. With 100 steps the friction $\alpha = 0.02$ has taken the momentum before it is drawn, and the head start is no different from plain SGHMC.
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
