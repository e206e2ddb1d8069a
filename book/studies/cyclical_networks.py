# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Cycles for networks
#
# ```{div} page-head
# Level: second course · Reading: about 28 minutes, without the exercises · Running: about 20 seconds
# ```
#
# A step size that falls again and again helped a chain through a mixture; this chapter asks whether it helps a network, and what a published table of test errors can say about it.
#
# **You will learn** to
#
# * run cycles around the sampler of a network, with descent for the first part of each,
# * compare methods by pairs of runs with one seed, and say what five seeds can show,
# * read off a program at which temperature it samples,
# * compare the order of methods in two tables, and see what a short budget does to it.
#
# **You will need** {doc}`/book/further/cyclical` up to its mixture, and {doc}`/book/studies/neighbours` for the other methods.

# %%
import math
from functools import partial

import matplotlib.pyplot as plt
import torch
from scipy import stats

from booklib.claims import claim
from booklib.datasets import digits
from booklib.figures import COLOURS, use_style
from booklib.networks import multilayer_perceptron
from booklib.play import play
from booklib.prediction import error_rate, log_score
from booklib.results import RESULTS, read_result, who_ran
from booklib.tables import show_table
from sgmc import sample
from sgmc.kernels import SGHMC, SGLD
from sgmc.other_kernels import Cyclical
from sgmc.posteriors import NetworkPosterior
from sgmc.splittings import LinearChain

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## A network on digits
#
# Do cycles help a network?
# In a cycle of $\ell$ steps the step size falls from $\eta_0$ to almost nothing along half a wave of the cosine, {eq}`eq-cyclical-schedule`, and then jumps back.
# The first steps of a cycle explore, the last ones sample ({prf:ref}`alg-cyclical`); around SGLD this is *cSGLD*, around SGHMC *cSGHMC*.
# Without any noise what is left is descent that starts again and again, and the networks at the ends of its cycles are *snapshots* {cite:p}`huang2017`.
#
# A small network first, with 784 inputs, 50 hidden units and 10 classes, on 4,000 digits: 40 passes in {term}`minibatches <minibatch>` of 500, the posterior at $T = 1$.
# SGLD and SGHMC take 20 passes of {term}`warm-up` and keep 20 networks; cSGLD and cSGHMC take 5 cycles, explore at temperature 0 for four fifths of each, and keep 4 networks a cycle; the snapshots are taken at the same places, without any noise.

# %%
train, test = digits()
module = multilayer_perceptron([784, 50, 10])
network = NetworkPosterior(module, *train, batch_size=500)
STEPS_OF_PASS = 8


def momentum(rate, **settings):
    return SGHMC.from_learning_rate(rate, 0.1, **settings)


def chain(make, rate, seed):
    """Warm-up for half of 40 passes, then a network a pass."""
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

# %% tags=["hide-input"]
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

# %% mystnb={"figure": {"caption": "Log loss on 1,000 test digits, two seeds: of the average over 20 networks (dots), and of single ones, in the mean (crosses).", "name": "fig-cyclical-digits"}, "image": {"alt": "Strip plot of six methods. The crosses of SGLD and SGHMC, the chains at a constant step, lie farthest to the right of their dots; those of the four methods with cycles lie nearer."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6, 3))
for row, scores in enumerate(live.values()):
    axes.plot(scores[:, 1], [row] * 2, "o", ms=5, color=COLOURS["HMC"])
    axes.plot(scores[:, 2], [row] * 2, "x", ms=6, color=COLOURS["naive SGHMC"])
axes.set(xlabel="log loss", xscale="log", yticks=range(len(live)))
axes.set_yticklabels(list(live))
axes.set_xticks([0.2, 0.3, 0.5, 1], ["0.2", "0.3", "0.5", "1"])
axes.xaxis.minorticks_off()
axes.invert_yaxis()
plt.show()

# %% [markdown]
# What {numref}`fig-cyclical-digits` shows is in its crosses: a single network of a cycle is better than one of a chain at a constant step, because it is taken where the step is small.
# The averages lie closer together, and two seeds are too few to rank them all.

# %% tags=["hide-input"]
for cyclic, plain, bound in (("cSGLD", "SGLD", 0.9), ("cSGHMC", "SGHMC", 0.6)):
    claim(
        f"Log loss of single networks, {cyclic} over {plain}",
        float(live[cyclic][:, 2].mean() / live[plain][:, 2].mean()),
        at_most=bound,
        because=(
            "at the end of a cycle the step, and so the heat of the minibatches, is "
            "small: seeds gave about 0.7 and 0.4"
        ),
    )

# %% [markdown]
# ## Five seeds on MNIST
#
# The stored result of {doc}`/book/studies/neighbours` has five seeds, 50,000 digits, the settings of each method chosen on other digits, and both kinds of chain with the same 60 passes.
# Runs with one seed start from the same weights, so we may compare them in pairs.
# With $d_1, \dots, d_n$ the differences of the test error of two methods, seed by seed, we report
#
# $$
# \bar d \pm \frac s{\sqrt n}, \qquad s^2 = \frac1{n - 1}\sum_i(d_i - \bar d)^2, \qquad t = \frac{\bar d\sqrt n}s,
# $$ (eq-cyclical-paired)
#
# and $p$, the larger of the p-values of the paired test and of Welch's, as {doc}`/book/studies/mnist` explains: the probability that a difference as large as this, or larger, comes by chance where the methods do not differ and the errors are normal.
# With five seeds $p < 0.05$ asks at least for $|t| > 2.8$.
# The table has eight differences; to be safe against a chance find among eight one would ask for $p < 0.05/8$, which is at least $|t| > 5.3$.

# %% tags=["hide-input"]
mnist_result = read_result(RESULTS / "neighbours.json")
mnist = mnist_result["methods"]


def values_of(results, name, score):
    runs = results[name]["runs"]
    return torch.tensor([one["scores"][score] for one in runs], dtype=torch.float64)


def errors_of(results, name):
    return values_of(results, name, "error")


def two_tests(one, other):
    return stats.ttest_rel(one, other), stats.ttest_ind(one, other, equal_var=False)


def paired(results, first, second):
    """Mean difference in percentage points, its standard error, and p."""
    one, other = (100 * errors_of(results, name).numpy() for name in (first, second))
    p = max(test.pvalue for test in two_tests(one, other))
    return (one - other).mean(), stats.sem(one - other), p


def interval(results, first, second):
    """The wider of the two tests' 95 % intervals of the difference, in points."""
    pair = (100 * errors_of(results, name).numpy() for name in (first, second))
    ends = (test.confidence_interval() for test in two_tests(*pair))
    return max(ends, key=lambda one: one.high - one.low)


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


def told_p(p):
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def row(results, first, second):
    mean, error, p = paired(results, first, second)
    return [f"{first} less {second}", f"{mean:+.2f} ± {error:.2f}", told_p(p)]


rows = [row(mnist, *pair) for pair in PAIRS]
show_table(["MNIST, error in %", "difference", "p"], rows)
print(who_ran(mnist_result))

# %% [markdown]
# At $T = 1$ cycles take half a percentage point off the error of a chain with a constant step.
# It need not be the cycles that help: a cycle is at temperature 0 for four fifths of its steps, and SGHMC at $T = 0.01$, with a smaller constant step, takes off 0.58.
# Nor is it clear that the noise helps: cSGLD less snapshots of SGD is 0.03 points, with a 95 per cent interval from $-0.44$ to 0.50, and cSGHMC less one descent with momentum 0.03, from $-0.14$ to 0.21 (the wider of the two tests' intervals).
# cSGHMC less snapshots with momentum is no controlled comparison, because tuning gave them the rates 0.15 and 0.5 and they average 30 networks and 6. In error it leaves the question open, too; in *calibration error* it is decided, 0.22 per cent against 0.90.
# No $p$ of the table is below $0.05/8$, not even that of cSGLD less SGLD.

# %% tags=["hide-input"]
for first, second, wanted in (
    ("cSGLD", "SGLD", -0.54),
    ("cSGHMC", "SGHMC", -0.51),
    ("SGHMC, cold", "SGHMC", -0.58),
    ("cSGLD", "snapshots of SGD", 0.03),
    ("cSGHMC", "SGD with momentum", 0.03),
):
    claim(
        f"Error on MNIST, {first} less {second}, percentage points",
        paired(mnist, first, second)[0],
        near=wanted,
        within=0.01,
        because="the stored result of five seeds; standard errors are 0.01 to 0.12",
        kind="stored",
    )
for (first, second), ends in (
    (("cSGLD", "snapshots of SGD"), (-0.44, 0.50)),
    (("cSGHMC", "SGD with momentum"), (-0.14, 0.21)),
):
    claim(
        f"95 % interval of {first} less {second}, points: distance of its ends from "
        f"{ends[0]:g} and {ends[1]:g}",
        max(
            abs(end - wanted)
            for end, wanted in zip(interval(mnist, first, second), ends, strict=True)
        ),
        at_most=0.005,
        because="the stored result, the wider interval of the two tests",
        kind="stored",
    )
cycles, shots = (mnist[name] for name in ("cSGHMC", "snapshots with momentum"))
claim(
    "cSGHMC and snapshots with momentum: rates 0.15 and 0.5, networks 30 and 6",
    [(one["settings"]["rate"], one["runs"][0]["networks"]) for one in (cycles, shots)]
    == [(0.15, 30), (0.5, 6)],
    because="the stored result",
    kind="stored",
)
calibration = [
    100 * values_of(mnist, name, "calibration_error").numpy()
    for name in ("cSGHMC", "snapshots with momentum")
]
for name, values, wanted in zip(PAIRS[3], calibration, (0.22, 0.90), strict=True):
    claim(
        f"Calibration error of {name}, per cent",
        values.mean(),
        near=wanted,
        within=0.005,
        because="the stored result, mean of five seeds",
        kind="stored",
    )
claim(
    "The larger p of their calibration errors, times eight",
    8 * max(test.pvalue for test in two_tests(*calibration)),
    at_most=0.05,
    because="the stored result of five seeds; 0.001",
    kind="stored",
)
claim(
    "Least p of the eight differences on MNIST",
    min(paired(mnist, *pair)[2] for pair in PAIRS),
    at_least=0.05 / 8,
    because="the stored result of five seeds; that of cSGLD less SGLD",
    kind="stored",
)
for level, wanted in ((0.05, 2.776), (0.05 / 8, 5.261)):
    claim(
        f"Size of t that five seeds need for p < {level:.2g}",
        float(stats.t.ppf(1 - level / 2, 4)),
        near=wanted,
        within=0.001,
        because="Student's law with four degrees of freedom",
        kind="exact",
    )

# %% [markdown]
# ## What the program for CIFAR-10 samples
#
# {cite:t}`zhang2020` report a table for CIFAR-10.
# Their program is public ([ruqizhang/csgmcmc](https://github.com/ruqizhang/csgmcmc), `experiments/cifar_csghmc.py`), and two questions about it should be answered before its results are read: where in a cycle it samples, and *what*.
#
# *Where.* Noise is added in the last 5 of the 50 epochs of a cycle only, and three networks are kept, after the last three epochs.
# There are 4 cycles with $\eta_0 = 0.5$ for the mean loss, weight decay $5\cdot10^{-4}$, and images are shifted and mirrored at random, so that the likelihood is not that of 50,000 independent examples.
#
# *What.* The gradient is that of the *mean* loss, $U/N$ with $N = 50{,}000$, and a step with the learning rate $lr$ is
#
# $$
# v \leftarrow (1 - \alpha)v - lr\,\nabla U(\theta)/N + N\bigl(0,\ 2\,lr\,\alpha\,T/N\bigr), \qquad \theta \leftarrow \theta + v.
# $$ (eq-cyclical-program)
#
# ```{prf:proposition} The temperature of the program
# :label: prop-cyclical-temperature
#
# For $U/N = \tfrac12\lambda\theta^2$ with $0 < \alpha \le 1$ and $0 < lr\,\lambda < 4 - 2\alpha$ the step {eq}`eq-cyclical-program` has the stationary variance
#
# $$
# \operatorname{Var}\theta = \frac T{N\lambda}\cdot\frac1{1 - lr\,\lambda/(4 - 2\alpha)}.
# $$ (eq-cyclical-program-law)
# ```
#
# ```{prf:proof}
# Put $v = \theta - \theta_{\text{before}}$ into the step: $\theta_{t+1} = (2 - \alpha - lr\,\lambda)\theta_t - (1 - \alpha)\theta_{t-1} + \xi_t$.
# An autoregression $x_{t+1} = \phi_1x_t + \phi_2x_{t-1} + \xi_t$ has the variance $\sigma^2(1 - \phi_2)/\bigl[(1 + \phi_2)\bigl((1 - \phi_2)^2 - \phi_1^2\bigr)\bigr]$, as one finds from its equations for the variance and the covariance of neighbours.
# Here $1 + \phi_2 = \alpha$, $1 - \phi_2 = 2 - \alpha$, and the last bracket is $lr\,\lambda(4 - 2\alpha - lr\,\lambda)$; with $\sigma^2 = 2\,lr\,\alpha\,T/N$ the rest cancels.
# It is stationary where both roots lie inside of the unit circle, that is for $|\phi_2| < 1$ and $|\phi_1| < 1 - \phi_2$.
# ```
#
# The posterior $e^{-U}$ has the variance $1/N\lambda$.
# So $T$ is what its name says: up to the bias of the step the program samples $e^{-U/T}$.
# The option `--temperature` is documented as the "temperature in the posterior", and its default is $T = 1/50{,}000$.
# By default, then, it samples a posterior that is colder by a factor of 50,000, which is nearly an optimum; for the posterior itself one gives the option `--temperature 1`.
# The cell solves the law of the two lines of {eq}`eq-cyclical-program` without the proposition.

# %%
# The program's step for U = ½Nθ², λ = 1, in its own units: gradient of U/N, noise by T.
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
for temperature, title in ((1.0, "T = 1"), (1 / N, "the default, T = 1/50,000")):
    claim(
        f"Variance over that of e^(−U/T), the program's step with {title}",
        program(temperature) / temperature,
        near=1 / (1 - 0.1 / 2.2),
        within=1e-4,
        because="the proposition with lr = 0.1 and α = 0.9, a bias of 5 %",
        kind="exact",
    )

# %% [markdown]
# In the program for cSGLD, `cifar_csgmcmc.py`, an early version scaled the noise wrongly; a user reported it, and the authors corrected it in March 2019 ([issue 1](https://github.com/ruqizhang/csgmcmc/issues/1)).
# A posterior so cold is no fault of the schedule, and {cite:t}`wenzel2020` found at the same time that cold posteriors of such networks predict better.
# But results at this temperature say little about sampling *the* posterior.
#
# There is one more thing: the program keeps $v$ while the step falls, where the momentum should be kept.
# {prf:ref}`prop-cyclical-velocity` says what that does; with $\alpha = 0.9$, the default, next to nothing.
#
# ## The table for CIFAR-10
#
# For CIFAR-10 and a ResNet-18 {cite:t}`zhang2020` report the test errors of eight methods, in the table below; theirs for CIFAR-100, on which we ran nothing, has the same order.
# Four stand with their spread, in %, in the README of their program: SGLD $5.20 \pm 0.06$, cSGLD $4.29 \pm 0.06$, SGHMC $4.93 \pm 0.1$, cSGHMC $4.27 \pm 0.03$.
# We ask whether the *order* holds for a smaller one: `python -m experiments run ordering` takes 20,000 images averaged to $16 \times 16$ pixels, two convolutions, 40 passes, or *rounds*, for each method, six cycles where there are cycles, the settings chosen on 5,000 other images by runs of 13 rounds.
# The samplers are run at $T = 1$, and cold, at the $T = 1/N$ of the authors' default.

# %% tags=["hide-input"]
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


# %% [markdown]
# The methods stand in the same order in {numref}`fig-cyclical-order`, the best of the published table at the bottom.
# If the published order held here, the points would move to the left from row to row.

# %% mystnb={"figure": {"caption": "Test error of our small network on small images of CIFAR-10, five seeds, two standard errors; the rows are ordered by the published error of a ResNet-18, which stands beside each name. Dots: samplers at T = 1, and descent. Rings: samplers at T = 1/N. Pink: with momentum.", "name": "fig-cyclical-order"}, "image": {"alt": "Points for eight methods, ordered by the published error. They do not move to the left from row to row: the largest errors are those of snapshots of SGD and of cSGLD, which stand in the lower half, and the least those of SGD and SGD with momentum, which stand in the upper half, and of cSGHMC and snapshots with momentum."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.4, 3.6))
names = sorted(published, key=published.get, reverse=True)
for place, name in enumerate(names):
    for shift, named in ((-0.12, name), (0.12, f"{name}, cold")):
        if named in ordering:
            each = 100 * errors_of(ordering, named)
            axes.errorbar(
                each.mean(),
                place + shift,
                xerr=2 * each.std() / len(each) ** 0.5,
                fmt="o",
                ms=5,
                mfc="none" if named.endswith("cold") else None,
                color=COLOURS["SGHMC" if "HMC" in name or "mom" in name else "SGLD"],
            )
axes.set(xlabel="our test error in %", yticks=range(len(names)))
axes.set_yticklabels([f"{name} ({published[name]:.2f})" for name in names], fontsize=9)
axes.invert_yaxis()
plt.show()


# %% [markdown]
# They do not.
# The differences of the same eight pairs as above, {eq}`eq-cyclical-paired`, say where the order breaks.


# %% tags=["hide-input"]
def cold(name):
    return f"{name}, cold" if f"{name}, cold" in ordering else name


def order_row(first, second):
    theirs = published[first] - published[second]
    entries = [f"{first} less {second}", f"{theirs:+.2f}"]
    for one, other in ((first, second), (cold(first), cold(second))):
        mean, error, p = paired(ordering, one, other)
        entries.append(f"{mean:+.2f} ± {error:.2f} (p {told_p(p)})")
    return entries


show_table(
    ["error in %", "published", "ours, T = 1", "ours, cold"],
    [order_row(*pair) for pair in PAIRS],
)
print(who_ran(stored_ordering))

# %% [markdown]
# At this scale the published order does not hold: cycles make SGD worse, and in the mean SGLD too.
# The rank correlation with the published errors, with $D_i$ the difference of the two ranks of method $i$ among $m$,
#
# $$
# \varrho = 1 - \frac{6\sum_iD_i^2}{m(m^2 - 1)},
# $$ (eq-cyclical-rank)
#
# is 1 for the same order, and $-0.33$ here, at both temperatures.
# With eight methods in an order of chance its standard deviation is $1/\sqrt{m - 1} = 0.38$: our table says nothing about theirs.
#
# The budget is the likely reason.
# A cycle has 7 rounds here and 50 epochs there, and 7 rounds after its rate was raised a network is not where one descent of 40 rounds ends.
# Nor does the choice of settings treat all alike: in its runs of 13 rounds a cycle has two, and SGLD and every method with momentum took the smallest rate that they were offered.
# What holds is that cSGHMC is better than SGHMC at a constant step: at $T = 1$ by 3.3 points, which is decided, and cold by 0.6, which five seeds leave open.
# Momentum is worth more than five points between the two methods with cycles, where it is worth 0.02 in the source; between the two chains at $T = 1$ it takes off 0.07, with an interval from $-0.58$ to 0.44.
# The difference of cSGHMC and SGHMC is about the noise: cold, SGHMC gains 2.8 points and cSGHMC 0.1.

# %% tags=["hide-input"]
for first, second, wanted in (
    ("snapshots of SGD", "SGD", 6.24),
    ("cSGLD", "SGLD", 2.29),
    ("cSGHMC", "SGHMC", -3.31),
    ("cSGHMC", "cSGLD", -5.67),
    ("SGHMC", "SGLD", -0.07),
):
    claim(
        f"Error of {first} less {second}, 40 rounds, T = 1, percentage points",
        paired(ordering, first, second)[0],
        near=wanted,
        within=0.01,
        because="the stored result of five seeds, as in the table",
        kind="stored",
    )
claim(
    "Errors of cSGHMC less SGHMC and of cSGHMC less cSGLD, cold, the larger one",
    max(
        paired(ordering, "cSGHMC, cold", f"{name}, cold")[0]
        for name in ("SGHMC", "cSGLD")
    ),
    at_most=-0.5,
    because="the stored result of five seeds",
    kind="stored",
)
for name, gain in (("SGHMC", 2.81), ("cSGHMC", 0.11)):
    claim(
        f"Error of {name}, T = 1 less cold, percentage points",
        paired(ordering, name, f"{name}, cold")[0],
        near=gain,
        within=0.01,
        because="the stored result of five seeds",
        kind="stored",
    )
claim(
    "95 % interval of SGHMC less SGLD, T = 1, points: distance of its ends from −0.58 "
    "and 0.44",
    max(
        abs(end - wanted)
        for end, wanted in zip(
            interval(ordering, "SGHMC", "SGLD"), (-0.58, 0.44), strict=True
        )
    ),
    at_most=0.005,
    because="the stored result, the wider interval of the two tests",
    kind="stored",
)
for temperature, first, bound in (
    ("T = 1", "", "at_most"),
    ("cold", ", cold", "at_least"),
):
    claim(
        f"p-value of cSGHMC against SGHMC, {temperature}, times sixteen",
        16 * paired(ordering, f"cSGHMC{first}", f"SGHMC{first}")[2],
        **{bound: 0.05},
        because="the stored result of five seeds; the table has sixteen differences",
        kind="stored",
    )
correlations = [
    stats.spearmanr(
        list(published.values()),
        [float(errors_of(ordering, named(name)).mean()) for name in published],
    ).statistic
    for named in (str, cold)  # as it is called, T = 1; and cold
]
claim(
    "Rank correlation of our errors with the published ones, the largest distance "
    "from −1/3 of two temperatures",
    max(abs(value + 1 / 3) for value in correlations),
    at_most=1e-6,
    because="the stored result of five seeds",
    kind="stored",
)

# %% [markdown]
# The order may still hold at the scale of the source, which we cannot reach.
# There too a part of the difference belongs to averaging: their program for predictions takes the mean of twelve networks (`cifar_ensemble.py`), and a plain descent has one.
#
# ## In practice
#
# * Look up the temperature of a program before you read its results, and how the gradient is scaled; {eq}`eq-cyclical-program` shows where the number hides.
# * Compare cycles with noise with the same cycles without, with a chain at a smaller step, and with as many networks from separate descents. Each of these can explain a gain that is not due to sampling.
# * Count the passes of a cycle. With seven of them the network does not come back to where it was.
# * Pair runs by seed, and say how many differences were tested.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | the step size in a cycle | $\eta_k = \tfrac12\eta_0\bigl[\cos(\pi j/\ell) + 1\bigr]$, $j = 0, \dots, \ell - 1$, {eq}`eq-cyclical-schedule` |
# | a difference of pairs | $\bar d \pm s/\sqrt n$, $t = \bar d\sqrt n/s$, {eq}`eq-cyclical-paired` |
# | noise for the temperature $T$, mean loss | $2\,lr\,\alpha\,T/N$ a step, {eq}`eq-cyclical-program` |
# | what comes out | $T/N\lambda$ over $1 - lr\,\lambda/(4 - 2\alpha)$, {eq}`eq-cyclical-program-law` |
# | agreement of two orders | $\varrho = 1 - 6\sum D_i^2/m(m^2 - 1)$, {eq}`eq-cyclical-rank` |
#
# ## Change it
#
# * Set `chain(momentum, 0.4, seed)` to `chain(momentum, 0.02, seed)`. The crosses of SGHMC in {numref}`fig-cyclical-digits` move more than half of the way to those of cSGHMC, and the claim on single networks of cSGHMC shows ✗: a small constant step does much of what the end of a cycle does.
# * Set `N, lr, decay = 50_000, 0.1, 0.9` to `50_000, 1.0, 0.9`. Both claims on the program's variance show ✗: the bias of the step, {eq}`eq-cyclical-program-law`, is now 83 %, whatever the temperature.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-cyclical-snapshots
#
# *Write it yourself.* Take snapshots of SGD: descend with the step sizes of {eq}`eq-cyclical-schedule`, and return the weights at the end of each cycle.
#
# ~~~python
# def snapshots(posterior, theta, highest, length, number, generator):
#     ends = []
#     for step in range(number * length):
#         eta = ...  # the schedule
#         gradient = posterior.stochastic_gradient(theta, generator, step)
#         ...
#     return torch.stack(ends)
# ~~~
# ```
#
# ```{solution} ex-cyclical-snapshots
# :class: dropdown
#
# The code stands in the folded cell below.
# It ends where the package's *snapshots of SGD* end, which are cycles of SGLD at temperature 0.
# To make it cSGLD add noise of variance $2\eta$ in the last fifth of each cycle; SGHMC without cycles is a task of assignment 2 ({doc}`/book/practice/teaching`).
# ```


# %% tags=["hide-input"]
def snapshots(posterior, theta, highest, length, number, generator):
    """The weights at the ends of so many cycles of SGD."""
    ends = []
    for step in range(number * length):
        eta = highest / 2 * (1 + math.cos(math.pi * (step % length) / length))
        theta = theta - eta * posterior.stochastic_gradient(theta, generator, step)
        if step % length == length - 1:
            ends.append(theta)
    return torch.stack(ends)


precise = NetworkPosterior(module, train.inputs.double(), train.targets, batch_size=500)
begin = precise.initial_position(1, torch.Generator().manual_seed(0)).double()
source, length = torch.Generator().manual_seed(0), 8 * STEPS_OF_PASS
own = snapshots(precise, begin, 1.0 / 4_000, length, 2, source)
cold = Cyclical(partial(SGLD, temperature=0.0), 1.0 / 4_000, length)
package = sample(cold, precise, begin, 2, seed=0).samples
claim(
    "Largest difference between the exercise's first two snapshots and the package's",
    (own - package).abs().max(),
    at_most=1e-9,
    because="the same steps with the same minibatches; rounding in double precision",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-cyclical-temperature
#
# Show that {eq}`eq-cyclical-program` is SGHMC in the learning-rate form of {doc}`/book/tutorial/sghmc`, and find its $\eta$ and its temperature. By which factor is the noise with the program's default smaller than the posterior asks for?
# ```
#
# ```{solution} ex-cyclical-temperature
# :class: dropdown
#
# In the learning-rate form the gradient is that of $U$, so $\eta = lr/N$, and the noise has the variance $2\alpha\eta T = 2\,lr\,\alpha\,T/N$ at the temperature $T$: it is the same $T$.
# Left out altogether it is $T = 0$; with $T = 1/N$ its standard deviation is $\sqrt N$ times smaller than the posterior asks for, 224 times for CIFAR-10.
# ```
#
# ```{exercise}
# :label: ex-cyclical-budget
#
# How many rounds would six cycles take with as many rounds each as the source has epochs? And how many networks, trained one after the other for 40 rounds each, could one have instead?
# ```
#
# ```{solution} ex-cyclical-budget
# :class: dropdown
#
# $6 \cdot 50 = 300$ rounds, against 40; for these one has seven networks of 40 rounds, a deep ensemble, which is the comparison to make ({doc}`/book/studies/neighbours`).
# ```
#
# ```{exercise}
# :label: ex-cyclical-power
#
# cSGHMC and snapshots with momentum differ by 0.23 points on MNIST, with a standard error of 0.09 from five seeds. About how many seeds would show a difference of that size at $p < 0.05/8$?
# ```
#
# ```{solution} ex-cyclical-power
# :class: dropdown
#
# The standard deviation of a difference is $0.09\sqrt5 = 0.20$, so that $t$ is about $1.15\sqrt n$.
# With $n$ seeds it has to exceed the value that Student's law with $n - 1$ degrees of freedom exceeds with probability $0.05/8$ in both tails together: at $n = 10$ that is 3.5, and $t$ is 3.6 on average. (That is the paired test; the larger of the two $p$-values asks for one seed more.)
# Twice as many seeds would have been needed for an even chance.
# ```

# %% tags=["hide-input"]
needed = [
    n
    for n in range(3, 30)
    if 0.23 / (0.09 * math.sqrt(5 / n)) > stats.t.ppf(1 - 0.05 / 16, n - 1)
]
claim(
    "Fewest seeds of the last solution",
    min(needed),
    near=10,
    within=0,
    because="arithmetic",
    kind="exact",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`zhang2020` for the method and the table; {cite:t}`huang2017` and {cite:t}`loshchilov2017` for the same wave in optimisation; {cite:t}`wenzel2020` and {cite:t}`izmailov2021` for what the temperature of a network's posterior does.
