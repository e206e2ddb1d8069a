# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Step sizes of other libraries
#
# ```{div} page-head
# Level: second course · Reading: about 3 minutes · Running: about 5 seconds
# ```
#
# ```{index} ! Blackjax, ! posteriors, ! SGMCMCJax, ! Turing, ! TensorFlow Probability, ! learning rate
# ```
#
# Which step size, friction and noise estimate of this book belong to the arguments of another library.

# %% tags=["hide-input"]
import math

import torch

from booklib.claims import claim
from booklib.play import play
from sgmc.randomness import normal_like
from sgmc.splittings import flows

play()  # a claim that fails now shows ✗, and the page goes on
double = torch.float64

# %% [markdown]
# The same update has other letters in every library, and the same letter has other meanings ({doc}`/book/appendix/errata` tells what goes wrong then).
# In the table $\varepsilon$, $\eta$, $C$, $\alpha$, $\hat B$, $\hat\beta$, $M$ and $T$ are the book's; names in typewriter are theirs.
# $N$ counts the examples.
# The energy is the whole $U$, unless it says that they take the *mean*, $U/N$.
#
# | theirs | arguments | the book's |
# | --- | --- | --- |
# | SGLD of {cite:t}`welling2011`, Turing {cite:p}`ge2018` | $\epsilon$, `stepsize` | $\eta = \tfrac12\epsilon$ |
# | {cite:t}`chen2014`, `figure1/sghmc.m` | `dt`, `C`, `V` | $\varepsilon = $ `dt`, $C$, $\hat B = \tfrac12\varepsilon V$, $M = 1$; kick before drift |
# | the same, `figure3/sghmc.m` | `eta`, `alpha`, `V` | $\eta$, $\alpha$, $\hat\beta = \tfrac12\eta V$; kick before drift |
# | the same, `bayesnn` | `eta`, `mdecay`, `wd`; mean | $\eta = $ `eta`$/N$, $\alpha = $ `mdecay`, $\hat\beta = 0$, prior precision $N\cdot$`wd`; kick before drift |
# | Blackjax {cite:p}`cabezas2024`, SGLD | `step_size`, `temperature` | $\eta$, $T$ |
# | Blackjax, SGHMC | `step_size`, `alpha`, `beta`, `temperature` | $\varepsilon$, $C = $ `alpha`, $\hat B = \tfrac12\varepsilon T^2\,$`beta`, $M = 1$; explicit Euler; for each draw $r \sim N(0, 1)$ afresh, and one minibatch for all its steps |
# | posteriors {cite:p}`duffield2025`, SGLD | `lr`, `beta`; mean, `temperature` $= 1/N$ | $\eta = $ `lr`$/N$, $\hat B = \tfrac12\eta\,$`beta`, $T = 1$ |
# | posteriors, SGHMC | `lr`, `alpha`, `beta`, `sigma`; likewise | $\varepsilon = $ `lr`, $M = N\,$`sigma`², $C = N\,$`alpha`, $\hat B = \tfrac12\varepsilon\,$`beta`, $T = 1$; explicit Euler |
# | posteriors, BAOA | `lr`, `alpha`, `sigma`; likewise | $\varepsilon = $ `lr`, $M = N\,$`sigma`², $C = N\,$`alpha`, $T = 1$; BAOAB with its two half kicks made one |
# | SGMCMCJax {cite:p}`coullon2022`, SGLD | `dt` | $\eta$ |
# | SGMCMCJax, SGHMC; Turing, SGHMC | `dt`, `alpha`; `learning_rate`, `momentum_decay` | $\eta$, $\alpha$, $\hat\beta = 0$; explicit Euler; SGMCMCJax draws $v \sim N(0, \eta)$ afresh for each draw |
# | SGMCMCJax, BAOAB | `dt`, `gamma`, `tau` | $\varepsilon$, $C = $ `gamma`, $T = $ `tau`² |
# | TensorFlow Probability {cite:p}`dillon2017`, SGLD | `learning_rate`, `data_size`; mean | $\eta = \tfrac12\,$`learning_rate`, $M = \sqrt{\text{rms} + \text{bias}}$, while the preconditioner stands still; no noise in the first `burnin` steps |
# | `torch.optim.SGD` | `lr`, `momentum`; mean | $\eta = $ `lr`$/N$, $\alpha = 1 - $ `momentum`, $T = 0$; kick before drift |
#
# In words: a step that multiplies the gradient of $U$ directly is an $\eta$, one that multiplies a momentum too is an $\varepsilon$; a `beta` beside an $\varepsilon$ is a variance $\hat V$; and a mean in the place of the sum is a mass of $N$, or a learning rate over $N$.
# If you give the mean and leave the temperature at one, you sample a posterior as wide as that of a single example.
#
# Every row is run: their update, written by us in a few lines after the sources (of the versions that {doc}`/book/appendix/errata` names), and ours with the translated numbers, on the same random numbers.
# Only the update: not their schedules, nor momenta drawn afresh, nor minibatches.

# %% tags=["hide-input"]
examples = 50
hessian = torch.tensor([[20.0, 6.0], [6.0, 9.0]], dtype=double)


def slope(theta):
    return theta @ hessian


def euler_in_epsilon(theta, p, xi, step, alpha, beta, temperature, weight, sigma=1.0):
    """Blackjax and posteriors; the gradient of U times a weight, 1 or 1/N."""
    scale = math.sqrt(step * temperature * (2 * alpha - step * temperature * beta))
    velocity = p / sigma**2
    kick = -step * weight * slope(theta) - step * alpha * velocity + scale * xi
    return theta + step * velocity, p + kick


def langevin(theta, p, xi, drift, scale):
    return theta - drift * slope(theta) + scale * xi, p


def kick_then_drift(theta, p, xi, decay, kick, scale, reach):
    p = (1 - decay) * p - kick * slope(theta) + scale * xi
    return theta + reach * p, p


def in_eta(theta, p, xi, eta, alpha):
    return theta + p, p - eta * slope(theta) - alpha * p + math.sqrt(
        2 * eta * alpha
    ) * xi


def free_between_kicks(theta, p, xi, step, decay, spread, inverse_mass, weight, last):
    """BAOAB with last = ½, BAOA with last = 0: the share of the kick that comes at
    the end."""
    p = p - (1 - last) * step * weight * slope(theta)
    theta = theta + step / 2 * inverse_mass * p
    p = (
        math.exp(-decay * step) * p
        + spread * math.sqrt(1 - math.exp(-2 * decay * step)) * xi
    )
    theta = theta + step / 2 * inverse_mass * p
    return theta, p - last * step * weight * slope(theta)


def rotated(splitting, first=1):
    return [*splitting[first:], *splitting[:first]]


def in_epsilon(eta, alpha, beta=0.0):
    return math.sqrt(eta), alpha / math.sqrt(eta), beta / math.sqrt(eta)


root = math.sqrt
baoab_in_n = flows.baoab(0.3, 1.0 * examples, 1.2**2 * examples)
rows = {  # name: their step, its numbers, our flows, and our momentum over theirs
    "Welling and Teh; Turing SGLD": (
        langevin,
        (0.02 / 2, root(0.02)),
        flows.sgld(0.01),
        1,
    ),
    "Chen, figure 1": (
        kick_then_drift,
        (0.1 * 3, 0.1, root(2 * (3 - 4 * 0.1 / 2) * 0.1), 0.1),
        rotated(flows.sghmc(0.1, 3.0, 0.2)),
        1,
    ),
    "Chen, figure 3": (
        kick_then_drift,
        (0.3, 0.01, root(2 * 0.01 * (0.3 - 4 * 0.01 / 2)), 1.0),
        rotated(flows.sghmc(*in_epsilon(0.01, 0.3, 0.02))),
        1 / root(0.01),
    ),
    "Chen, networks": (
        kick_then_drift,
        (0.1, 0.5 / examples, root(2 * 0.5 * 0.1 / examples), 1.0),
        rotated(flows.sghmc(*in_epsilon(0.5 / examples, 0.1))),
        1 / root(0.5 / examples),
    ),
    "Blackjax SGLD": (
        langevin,
        (0.01, root(2 * 0.5 * 0.01)),
        flows.sgld(0.01, temperature=0.5),
        1,
    ),
    "Blackjax SGHMC": (
        euler_in_epsilon,
        (0.1, 3.0, 4.0, 0.5, 1.0),
        flows.explicit_euler_sghmc(0.1, 3.0, 0.5 * 0.1 * 0.5**2 * 4.0, temperature=0.5),
        1,
    ),
    "posteriors SGLD": (
        langevin,
        (0.5 / examples, root(0.5 / examples * (2 - 0.5 / examples * 30))),
        flows.sgld(0.5 / examples, 0.5 * 0.5 / examples * 30),
        1,
    ),
    "posteriors SGHMC": (
        euler_in_epsilon,
        (0.3, 1.0, 30.0, 1 / examples, 1 / examples, 1.2),
        flows.explicit_euler_sghmc(
            0.3, 1.0 * examples, 0.5 * 0.3 * 30, mass=1.2**2 * examples
        ),
        examples,
    ),
    "posteriors BAOA": (
        free_between_kicks,
        (0.3, 1.0 / 1.2**2, 1.2 / root(examples), 1.2**-2, 1 / examples, 0),
        [flows.Kick(0.3), *baoab_in_n[1:4]],
        examples,
    ),
    "SGMCMCJax SGLD": (langevin, (0.01, root(2 * 0.01)), flows.sgld(0.01), 1),
    "SGMCMCJax and Turing SGHMC": (
        in_eta,
        (0.01, 0.3),
        flows.explicit_euler_sghmc(*in_epsilon(0.01, 0.3)),
        1 / root(0.01),
    ),
    "SGMCMCJax BAOAB": (
        free_between_kicks,
        (0.1, 3.0, 0.5, 1.0, 1.0, 0.5),
        flows.baoab(0.1, 3.0, temperature=0.25),
        1,
    ),
    "TensorFlow Probability": (
        langevin,
        (0.02 / root(4 + 1e-8) / 2, root(0.02 / root(4 + 1e-8))),
        flows.sgld(0.01, mass=root(4 + 1e-8)),
        1,
    ),
    "torch.optim.SGD": (
        kick_then_drift,
        (0.1, -1 / examples, 0.0, -0.5),
        rotated(flows.sghmc(*in_epsilon(0.5 / examples, 0.1), temperature=0.0)),
        -0.5 / root(0.5 / examples),
    ),
}

largest = {}
for name, (step, numbers, splitting, factor) in rows.items():
    ours = (
        torch.tensor([[1.0, -2.0]], dtype=double),
        torch.tensor([[0.3, 0.1]], dtype=double),
    )
    theirs = ours[0].clone(), ours[1] / factor
    one_stream, other_stream = (torch.Generator().manual_seed(0) for _ in range(2))
    largest[name] = 0.0
    for _ in range(40):
        flows.advance(splitting, *ours, slope, one_stream)
        theirs = step(*theirs, normal_like(ours[0], other_stream), *numbers)
        largest[name] = max(largest[name], float((theirs[0] - ours[0]).abs().max()))
claim(
    f"Largest distance of their positions from ours in 40 steps, {len(rows)} rows of "
    "the table",
    max(largest.values()),
    at_most=1e-10,
    because="the same chain in other letters, on the same random numbers; rounding",
    kind="exact",
)

# Blackjax in the exercise: position, momentum, the held minibatch's noise.
move = torch.tensor([[1, 1e-3, 0], [-10, 1 - 1e-5, -1e-3], [0, 0, 1]], dtype=double)
injected = torch.diag(torch.tensor([0, 2e-5, 0], dtype=double))
ten, added = torch.eye(3, dtype=double), torch.zeros(3, 3, dtype=double)
for _ in range(10):
    ten, added = move @ ten, move @ added @ move.T + injected
afresh = torch.tensor([0, 1, 1e6], dtype=double)  # variances, anew for each draw
held = (ten[0].square() @ afresh + added[0, 0]) / (1 - ten[0, 0] ** 2)
claim(
    "Blackjax in the exercise, one minibatch for ten steps: variance over the target's",
    1e4 * held,
    near=28.5,
    within=0.1,
    because="exact law of ten steps from a fresh momentum, a = 10⁴",
    kind="exact",
)
claim(
    "Blackjax in the exercise, momentum kept: largest eigenvalue of a step",
    torch.linalg.eigvals(move[:2, :2]).abs().max(),
    at_least=1.001,
    because="explicit Euler explodes where C < εa",
)

# %% [markdown]
# ## Exercise
#
# ```{exercise}
# :label: ex-tuning-blackjax
#
# Somebody ran Blackjax's SGHMC with `step_size` 0.001, `alpha` 0.01 and `beta` 0 on 10,000 examples in batches of 100, curvature $a = 10^4$ and $V = N^2/n$.
# What are $\varepsilon$, $C$, $B$ and the temperature?
# Which numbers does the default give?
# ```
#
# ```{solution} ex-tuning-blackjax
# :class: dropdown
#
# $\varepsilon = 0.001$, $C = 0.01$, $V = 10^6$ and $B = \tfrac12\varepsilon V = 500$, with which {prf:ref}`alg-sghmc` has the temperature $1 + B/C = 50{,}000$.
# Explicit Euler has none: it takes $\varepsilon a = 10$ away from a friction of 0.01, and explodes if the momentum is kept.
# Blackjax draws it afresh, by default after ten steps, and uses one minibatch for all ten: the variance is then 28 times that of the target.
# The loudness is $\nu = V/a = 100$, so with $M = a$ the default has $\varepsilon = 0.02$, $C = 2\cdot10^4$, $\hat B \approx 10^4$; with $M = 1$ the same chain has $\varepsilon = 0.02/\sqrt a = 0.0002$ and $C = 2\sqrt a = 200$.
# ```
