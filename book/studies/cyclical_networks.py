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
# Level: second course · Reading: about 42 minutes, without the exercises · Running: about 20 seconds
# ```
#
# A step size that falls again and again helped a chain through a mixture; this chapter asks whether it helps a network, and what a published table of test errors can say about it.
#
# **You will need** {doc}`/book/further/cyclical`, and {doc}`/book/further/neighbours` for the other methods.

# %%
import math
from functools import partial

import matplotlib.pyplot as plt
import torch
from scipy import stats

from booklib.data import digits
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import DECIDED, OPEN, at_most, check, near
from booklib.page.figures import COLOURS, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, Seeds, read_result, who_ran
from booklib.scores.prediction import error_rate, log_score
from booklib.scores.seeds import LEVEL, MOST_SEEDS, family
from sgmc import sample
from sgmc.kernels import SGHMC, SGLD
from sgmc.other_kernels import Cyclical
from sgmc.posteriors import NetworkPosterior
from sgmc.splittings import LinearChain, flows, linear_chain

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## The mixture
#
# {cite:t}`zhang2020` introduce cycles on 25 Gaussians of equal weight ({doc}`/book/further/cyclical`): by their Figure 2, four chains of SGLD find 4 of the modes and cSGLD all of them.
# Repeated with 20 seeds (`python -m experiments run modes --seeds 20`) that holds: SGLD has more than one per cent of its samples in {c}`modes-sgld` modes on average, and cSGLD reaches {c}`modes-csgld` in every run.
# But the same SGLD, restarted as often as there are cycles, reaches {c}`modes-restarted` modes. And if each cycle begins at a new start instead of where the last one ended, the total variation over a hundred cells of equal probability changes by {c}`modes-fresh` at most. On this mixture a cycle is a restart.
# The program keeps all but the first 50 steps of a cycle, most of them large: the variance in a mode is {c}`modes-variance` times the right one. Even with equal weights the nine inner modes have {c}`modes-inner` times their share and the four corners {c}`modes-corners` times.

# %% tags=["hide-input"]
mixture = read_result(RESULTS / "modes.json")
runs_of = {
    name: [run["four chains"] for run in found["runs"]]
    for name, found in mixture["methods"].items()
}


def with_settings(name, cycles):
    """The tuning run of a method with these cycles and the published first step."""
    settings = {"rate": 0.07, "cycles": cycles, "exploration": 0.8}
    runs = mixture["methods"][name]["tuning"]
    return next(run["cells_tv"] for run in runs if run["settings"] == settings)


for name, method, least, share in (
    ("sgld", "SGLD", torch.mean, "1 %"),
    ("csgld", "cSGLD", torch.min, "any"),
    ("restarted", "SGLD, restarted", torch.min, "any"),
):
    counts = torch.tensor([float(run["found"][share]) for run in runs_of[method]])
    check(f"modes-{name}", least(counts), kind="stored", digits=2)
differences = [
    with_settings("cSGLD, tuned", cycles) - with_settings("fresh cycles, tuned", cycles)
    for cycles in (100, 300, 1_000)
]
fresh = max(map(abs, differences))
check("modes-fresh", fresh, at_most(0.03), kind="stored", digits=1)
variance = sum(run["variance"] for run in runs_of["cSGLD"]) / 20 / 0.03
check("modes-variance", variance, kind="stored", digits=2)
mass = torch.tensor([run["mass"] for run in runs_of["cSGLD, tuned"]]).mean(0)
mass = 25 * mass.view(5, 5)
check("modes-inner", mass[1:4, 1:4].mean(), kind="stored", digits=3)
check("modes-corners", mass[::4, ::4].mean(), kind="stored", digits=2)
print(who_ran(mixture))

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
    sampler = partial(make, **settings)
    length = 8 * STEPS_OF_PASS
    kernel = Cyclical(sampler, rate / 4_000, length, 4, 0.8, cold=True)
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
# What {numref}`fig-cyclical-digits` shows is in its crosses: a single network of a cycle is better than one of a chain at a constant step, because it is taken where the step is small. Its log loss is {c}`single-cSGLD` times as large with SGLD, and {c}`single-cSGHMC` times with SGHMC.
# The averages lie closer together, and two seeds are too few to rank them all.

# %% tags=["hide-input"]
for cyclic, plain, bound in (("cSGLD", "SGLD", 0.9), ("cSGHMC", "SGHMC", 0.6)):
    ratio = live[cyclic][:, 2].mean() / live[plain][:, 2].mean()
    because = "seeds gave about 0.7 and 0.4"
    check(f"single-{cyclic}", ratio, at_most(bound), because=because, digits=1)

# %% [markdown]
# ## Five seeds on MNIST
#
# The stored result of {doc}`/book/further/neighbours` has five seeds, 50,000 digits, the settings of each method chosen on other digits, and both kinds of chain with the same 60 passes.
# Runs with one seed start from the same weights, so we may compare them in pairs.
# With $d_1, \dots, d_n$ the differences of the test error of two methods, seed by seed, the paired t-test has the 95 % interval
#
# $$
# \bar d \pm t_{n - 1}\frac s{\sqrt n}, \qquad s^2 = \frac1{n - 1}\sum_i(d_i - \bar d)^2, \qquad t = \frac{\bar d\sqrt n}s,
# $$ (eq-cyclical-paired)
#
# where $t_{n - 1}$ is the value that Student's distribution with $n - 1$ degrees of freedom exceeds with probability 2.5 %.
# We report the wider one of its interval and Welch's, and $p$ is the larger of their two p-values, as {doc}`/book/studies/mnist` explains: the probability that a difference as large as this, or larger, comes by chance where the methods do not differ and the errors are normal.
# With five seeds $p < 0.05$ asks at least for $|t| > {c}`t-alone`$.
#
# Several comparisons must each meet a stricter bound, and those of this page fall into two families.
# The first has the four that the source's table invites, on the source's kind of images and at the temperature of its program (below): each sampler with cycles against the same without them, and against the same cycles without noise.
# The second has all {c}`number` others, which are ours.
# Within a family Holm's procedure decides: the least of $k$ p-values must be below $0.05/k$, the next below $0.05/(k - 1)$, and so on up to the first that is not.
# For the least of ours that is $|t| > {c}`t-first`$.
# The interval is that of one comparison alone, and so it may leave zero out although the procedure leaves the difference open.
# What is open stands with the number of seeds that would decide it with a probability of 80 %, if it is as large as a margin that we state: here 0.1 points, which are ten digits.

# %% tags=["hide-input"]
mnist, cifar = Seeds.read("neighbours"), Seeds.read("ordering")
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
CALIBRATION = "scores.calibration_error"
FAMILIES = {  # all that is compared on this page: where, and what less what
    "the source's": [("cold", *pair) for pair in PAIRS[:4]],
    "ours": [
        *(("MNIST", *pair) for pair in PAIRS),
        ("MNIST", "SGHMC, cold", "SGHMC"),
        ("MNIST", "cSGHMC", "SGD with momentum"),
        ("MNIST", "cSGHMC", "snapshots with momentum", CALIBRATION),
        *(("warm", *pair) for pair in PAIRS),
        *(("cold", *pair) for pair in PAIRS[6:]),
        ("warm", "SGHMC, cold", "SGHMC"),
        ("warm", "cSGHMC, cold", "cSGHMC"),
    ],
}


def cold(name):
    """A method at the temperature of the source's program, if it has one."""
    return f"{name}, cold" if f"{name}, cold" in cifar.methods else name


def sides(where, first, second, what="scores.error"):
    """What two methods reach, in per cent, a number a seed."""
    seeds = mnist if where == "MNIST" else cifar
    names = map(cold, (first, second)) if where == "cold" else (first, second)
    return [seeds(name, what, 100) for name in names]


gaps = {
    key: found
    for keys in FAMILIES.values()
    for key, found in family({key: sides(*key) for key in keys}).items()
}


def verdict(found, margin):
    """Decided, or the seeds that would decide a difference as large as a margin."""
    seeds = found.seeds_needed(margin)
    more = " or more" if seeds == MOST_SEEDS else ""
    return "decided" if found.decided else f"open ({seeds:,}{more} seeds)"


show_table(
    ["MNIST, error in %", "difference", "verdict"],
    [
        [f"{first} less {second}", found, verdict(found, 0.1)]
        for first, second in PAIRS
        for found in [gaps["MNIST", first, second]]
    ],
)
print(who_ran(read_result(RESULTS / "neighbours.json")))

# %% [markdown]
# At $T = 1$ the error of cSGLD less that of SGLD is {c}`mnist-cSGLD` points, which is {c}`mnist-cSGLD.verdict`, and that of cSGHMC less that of SGHMC {c}`mnist-cSGHMC` points, {c}`mnist-cSGHMC.verdict`: cycles seem to help a chain with a constant step, and five seeds do not decide it among so many comparisons.
# Nor would it have to be the cycles that help: a cycle is at temperature 0 for four fifths of its steps, and the error of SGHMC at $T = 0.01$, with a smaller constant step, less that of SGHMC at $T = 1$ is {c}`mnist-cold`, also {c}`mnist-cold.verdict`.
# We cannot say either whether the noise helps: cSGLD less snapshots of SGD is {c}`mnist-noise`, which is {c}`mnist-noise.verdict`, and cSGHMC less one descent with momentum {c}`mnist-descent`, {c}`mnist-descent.verdict`.
# cSGHMC less snapshots with momentum is no controlled comparison, because tuning gave them the rates {c}`rate-cycles` and {c}`rate-snapshots` and they average {c}`networks-cycles` networks and {c}`networks-snapshots`. In error, {c}`mnist-snapshots`, it leaves the question {c}`mnist-snapshots.verdict`, too; in *calibration error* it is {c}`calibration.verdict`, {c}`calibration-cycles` per cent against {c}`calibration-snapshots`.
# None of the eight differences of the table is decided.

# %% tags=["hide-input"]
number = len(FAMILIES["ours"])
for name, level in (("alone", LEVEL), ("first", LEVEL / number)):
    check(f"t-{name}", stats.t.ppf(1 - level / 2, 4), kind="exact", digits=2)
check("number", number, kind="exact")
for name, first, second in (
    ("cSGLD", "cSGLD", "SGLD"),
    ("cSGHMC", "cSGHMC", "SGHMC"),
    ("cold", "SGHMC, cold", "SGHMC"),
    ("noise", "cSGLD", "snapshots of SGD"),
    ("descent", "cSGHMC", "SGD with momentum"),
    ("snapshots", "cSGHMC", "snapshots with momentum"),
):
    check(f"mnist-{name}", gaps["MNIST", first, second], OPEN, kind="stored")
none = not any(gaps["MNIST", *pair].decided for pair in PAIRS)
check("table", none, kind="stored", says="No difference of the table is decided")
for name, method in (("cycles", "cSGHMC"), ("snapshots", "snapshots with momentum")):
    found = mnist.methods[method]
    check(f"rate-{name}", found["settings"]["rate"], kind="stored")
    check(f"networks-{name}", found["runs"][0]["networks"], kind="stored")
    error = mnist(method, CALIBRATION, 100).mean()
    check(f"calibration-{name}", error, kind="stored", digits=2)
calibration = gaps["MNIST", "cSGHMC", "snapshots with momentum", CALIBRATION]
check("calibration", calibration, DECIDED, kind="stored")

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
# The cell solves the law of the two lines of {eq}`eq-cyclical-program` without the proposition: its variance is {c}`program-warm` times that of $e^{-U/T}$ at $T = 1$, and {c}`program-default` times by default.

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
bias = near(1 / (1 - 0.1 / 2.2), 1e-4)  # the proposition: lr = 0.1, α = 0.9
for name, temperature in (("warm", 1.0), ("default", 1 / N)):
    ratio = program(temperature) / temperature
    check(f"program-{name}", ratio, bias, kind="exact", because="the proposition")

# %% [markdown]
# In the program for cSGLD, `cifar_csgmcmc.py`, an early version scaled the noise wrongly; a user reported it, and the authors corrected it in March 2019 ([issue 1](https://github.com/ruqizhang/csgmcmc/issues/1)).
# A posterior so cold is no fault of the schedule, and {cite:t}`wenzel2020` found at the same time that cold posteriors of such networks predict better.
# But results at this temperature say little about sampling *the* posterior.
#
# ## A velocity that is kept
#
# The program keeps the velocity $v = \varepsilon r$ while the step falls. What SGHMC may hand on is the momentum $r$, because no step size enters $e^{-U(\theta) - r^2/2}$.
#
# ```{prf:proposition} Keeping the velocity heats
# :label: prop-cyclical-velocity
#
# To keep $v$ while the step goes from $\varepsilon_k$ to $\varepsilon_{k+1}$ is to multiply $r$ by $\varepsilon_k/\varepsilon_{k+1}$.
# With $n$ steps left in a cycle of {eq}`eq-cyclical-schedule`, $1 \ll n \ll \ell$, the momentum's variance without a force would settle at about
#
# $$
# \frac{1}{1 - \dfrac1{\alpha n}}
# $$ (eq-cyclical-heat)
#
# for small $\alpha$ and $n > 1/\alpha$; with fewer steps left it grows at every step.
# ```
#
# ```{admonition} Proof
# :class: dropdown
#
# Near the end $\varepsilon \propto \cos(\pi j/2\ell)$ is proportional to $n = \ell - j$, so a step multiplies $r$ by $n/(n - 1)$.
# Then $E[r^2] \leftarrow (1 - \alpha)^2\bigl(\frac n{n-1}\bigr)^2E[r^2] + 2\alpha$. The value that this leaves as it is follows with $1 - 2\alpha$ and $1 + 2/n$ for the squares.
# ```
#
# On a standard Gaussian with $\alpha = 0.1$ and cycles of 100 steps the exact variance of $\theta$ at the end is {c}`velocity-kept` with $v$ kept and {c}`momentum-kept` with $r$. With $\alpha = 0.9$, the program's default, and 1,000 steps it is {c}`velocity-default`: there the velocity does no harm.


# %% tags=["hide-input"]
def width_at_the_end(decay, length, keep_velocity):
    """The exact variance of θ at the end of a cycle, U = ½θ² and η₀ = 0.1."""
    wave = [1 + math.cos(math.pi * j / length) for j in range(length)]
    sizes, chain = [(0.05 * each) ** 0.5 for each in wave], None
    for j, size in enumerate(sizes):
        moves = flows.sghmc(size, decay / size)
        step = linear_chain(moves, torch.eye(1).double())
        if keep_velocity:
            growth = torch.tensor([1.0, size / sizes[(j + 1) % length]]).double()
            step = step.then(LinearChain(growth.diag(), torch.zeros(2, 2).double()))
        chain = chain.then(step) if chain else step
    return chain.stationary_covariance()[0, 0]


for name, decay, length, keep, bound in (
    ("velocity-kept", 0.1, 100, True, near(1.767, 0.001)),
    ("momentum-kept", 0.1, 100, False, near(0.975, 0.001)),
    ("velocity-default", 0.9, 1_000, True, at_most(1.01)),
):
    width = width_at_the_end(decay, length, keep)
    check(name, width, bound, kind="exact", because="the exact law", digits=4)

# %% [markdown]
# ## The table for CIFAR-10
#
# For CIFAR-10 and a ResNet-18 {cite:t}`zhang2020` report the test errors of eight methods, in the table below; theirs for CIFAR-100, on which we ran nothing, has the same order.
# Four have their spread, which the README of their program reports.
# We ask whether the *order* holds for a smaller one: `python -m experiments run ordering` takes 20,000 images averaged to $16 \times 16$ pixels, two convolutions, 40 passes, or *rounds*, for each method, six cycles where there are cycles, the settings chosen on 5,000 other images by runs of 13 rounds.
# The samplers are run at $T = 1$, and cold, at the $T = 1/N$ of the authors' default.

# %% tags=["hide-input"]
published = {
    "SGD": "5.29",
    "SGD with momentum": "5.17",
    "snapshots of SGD": "4.46",
    "snapshots with momentum": "4.39",
    "SGLD": "5.20 ± 0.06",
    "cSGLD": "4.29 ± 0.06",
    "SGHMC": "4.93 ± 0.1",
    "cSGHMC": "4.27 ± 0.03",
}


def theirs(name):
    """The published error in per cent."""
    return float(published[name].split()[0])


show_table(
    ["error in %, mean ± sd", "published", "ours, cold", "ours, T = 1"],
    [
        [
            name,
            published[name],
            "" if cold(name) == name else cifar.cell(cold(name), "scores.error", 100),
            cifar.cell(name, "scores.error", 100),
        ]
        for name in published
    ],
)

# %% [markdown]
# The methods stand in the same order in {numref}`fig-cyclical-order`, the best of the published table at the bottom.
# If the published order held here, the points would move to the left from row to row.

# %% mystnb={"figure": {"caption": "Test error of our small network on small images of CIFAR-10, five seeds with 95 % intervals; the rows are ordered by the published error of a ResNet-18, which stands beside each name. Dots: samplers at T = 1, and descent. Rings: samplers at T = 1/N. Pink: with momentum.", "name": "fig-cyclical-order"}, "image": {"alt": "Points for eight methods, ordered by the published error. They do not move to the left from row to row: the largest errors are those of snapshots of SGD and of cSGLD, which stand in the lower half, and the least those of SGD and SGD with momentum, which stand in the upper half, and of cSGHMC and snapshots with momentum."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.4, 3.6))
names = sorted(published, key=theirs, reverse=True)
for place, name in enumerate(names):
    for shift, named in {-0.12: name, 0.12: cold(name)}.items():
        if shift < 0 or named != name:
            each = cifar(named, "scores.error", 100)
            axes.errorbar(
                each.mean(),
                place + shift,
                xerr=stats.t.ppf(0.975, len(each) - 1) * stats.sem(each),
                fmt="o",
                ms=5,
                mfc="none" if named.endswith("cold") else None,
                color=COLOURS["SGHMC" if "HMC" in name or "mom" in name else "SGLD"],
            )
axes.set(xlabel="our test error in %", yticks=range(len(names)))
axes.set_yticklabels([f"{name} ({theirs(name):.2f})" for name in names], fontsize=9)
axes.invert_yaxis()
plt.show()


# %% [markdown]
# They do not.
# The differences of the same eight pairs as above say where the order breaks; the margin for what is open is half of the published difference.


# %% tags=["hide-input"]
def order_row(first, second):
    gap = theirs(first) - theirs(second)
    entries = [f"{first} less {second}", f"{gap:+.2f}"]
    for where in ("cold", "warm"):
        found = gaps.get((where, first, second))
        entries += [found, verdict(found, abs(gap) / 2)] if found else ["", ""]
    return entries


show_table(
    ["error in %", "published", "ours, cold", "", "ours, T = 1", ""],
    [order_row(*pair) for pair in PAIRS],
)
print(who_ran(read_result(RESULTS / "ordering.json")))

# %% [markdown]
# At this scale the published order does not show.
# Of the source's own four comparisons, at the temperature of its program, none is decided.
# cSGHMC less SGHMC is {c}`cold-cSGHMC` points, cSGLD less SGLD {c}`cold-cSGLD`, which is the other direction; and what the noise adds to the snapshots is {c}`cold-noise` without momentum and {c}`cold-noise-momentum` with it.
# For cSGHMC less SGHMC {c}`seeds-cSGHMC` seeds would decide half of the published difference, for cSGLD less SGLD {c}`seeds-cSGLD`; a seed of all twelve runs takes {c}`price` minutes of one core.
#
# The rank correlation with the published errors, with $D_i$ the difference of the two ranks of method $i$ among $m$,
#
# $$
# \varrho = 1 - \frac{6\sum_iD_i^2}{m(m^2 - 1)},
# $$ (eq-cyclical-rank)
#
# is 1 for the same order, and here {c}`rank-cold` cold and {c}`rank-warm` at $T = 1$.
# With eight methods in an order of chance its standard deviation is $1/\sqrt{m - 1} = 0.38$: our table says nothing about theirs.
#
# The budget is the likely reason.
# A cycle has 7 rounds here and 50 epochs there, and 7 rounds after its rate was raised a network is not where one descent of 40 rounds ends: snapshots of SGD less SGD is {c}`warm-cycles` points, which is {c}`warm-cycles.verdict`.
# At $T = 1$ cSGLD less SGLD, {c}`warm-cSGLD`, points the same way and is {c}`warm-cSGLD.verdict`.
# Nor does the choice of settings treat all alike: in its runs of 13 rounds a cycle has two, and SGLD and every method with momentum took the smallest rate that they were offered.
#
# At $T = 1$ cSGHMC is better than SGHMC at a constant step, {c}`warm-cSGHMC` points, which is {c}`warm-cSGHMC.verdict`.
# Cooling explains most of this difference: to go to $T = 1/N$ changes the error of SGHMC by {c}`cooling-SGHMC` points, {c}`cooling-SGHMC.verdict`, and that of cSGHMC by {c}`cooling-cSGHMC`, {c}`cooling-cSGHMC.verdict`.
# Momentum matters more than the source's table has it, where both methods with cycles are level: between those two it makes {c}`warm-momentum` points at $T = 1$, {c}`warm-momentum.verdict`, and {c}`cold-momentum` cold, {c}`cold-momentum.verdict`; between the two chains {c}`warm-chains` at $T = 1$, {c}`warm-chains.verdict`, and {c}`cold-chains` cold, {c}`cold-chains.verdict`.

# %% tags=["hide-input"]
for name, bound, *key in (
    ("cold-cSGHMC", OPEN, "cold", "cSGHMC", "SGHMC"),
    ("cold-cSGLD", OPEN, "cold", "cSGLD", "SGLD"),
    ("cold-noise", OPEN, "cold", "cSGLD", "snapshots of SGD"),
    ("cold-noise-momentum", OPEN, "cold", "cSGHMC", "snapshots with momentum"),
    ("warm-cycles", DECIDED, "warm", "snapshots of SGD", "SGD"),
    ("warm-cSGLD", OPEN, "warm", "cSGLD", "SGLD"),
    ("warm-cSGHMC", DECIDED, "warm", "cSGHMC", "SGHMC"),
    ("cooling-SGHMC", DECIDED, "warm", "SGHMC, cold", "SGHMC"),
    ("cooling-cSGHMC", OPEN, "warm", "cSGHMC, cold", "cSGHMC"),
    ("warm-momentum", DECIDED, "warm", "cSGHMC", "cSGLD"),
    ("cold-momentum", OPEN, "cold", "cSGHMC", "cSGLD"),
    ("warm-chains", OPEN, "warm", "SGHMC", "SGLD"),
    ("cold-chains", DECIDED, "cold", "SGHMC", "SGLD"),
):
    check(name, gaps[tuple(key)], bound, kind="stored")
for method, plain in PAIRS[:2]:
    half = abs(theirs(method) - theirs(plain)) / 2
    seeds = gaps["cold", method, plain].seeds_needed(half)
    check(f"seeds-{method}", seeds, kind="stored")
price = sum(cifar(name, "processor_seconds").mean() for name in cifar.methods) / 60
check("price", price, kind="stored", digits=1)
for name, named in (("warm", str), ("cold", cold)):
    errors = [cifar(named(method), "scores.error").mean() for method in published]
    order = stats.spearmanr([*map(theirs, published)], errors).statistic
    check(f"rank-{name}", order, kind="stored", digits=2)

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
# ## Change it
#
# * Set `chain(momentum, 0.4, seed)` to `chain(momentum, 0.02, seed)`. The crosses of SGHMC in {numref}`fig-cyclical-digits` move more than half of the way to those of cSGHMC, and the number of its single networks shows ✗: a small constant step does much of what the end of a cycle does.
# * Set `N, lr, decay = 50_000, 0.1, 0.9` to `50_000, 1.0, 0.9`. Both variances of the program show ✗: the bias of the step, {eq}`eq-cyclical-program-law`, is now 83 %, whatever the temperature.
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
descent = Cyclical(partial(SGLD, temperature=0.0), 1.0 / 4_000, length)
package = sample(descent, precise, begin, 2, seed=0).samples
check(
    "snapshots",
    (own - package).abs().max(),
    at_most(1e-9),
    kind="exact",
    because="the same steps with the same minibatches; rounding in double precision",
    says="The exercise's first two snapshots and the package's differ by",
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
# $6 \cdot 50 = 300$ rounds, against 40; for these one has seven networks of 40 rounds, a deep ensemble, which is the comparison to make ({doc}`/book/further/neighbours`).
# ```
#
# ```{exercise}
# :label: ex-cyclical-power
#
# cSGHMC and snapshots with momentum differ by {c}`power-mean` points on MNIST, with a standard error of {c}`power-error` from five seeds by the paired test. About how many seeds would show a difference of that size at $p < 0.05/{c}`number`$?
# ```
#
# ```{solution} ex-cyclical-power
# :class: dropdown
#
# The standard deviation of a difference is $\sqrt5$ times the standard error, so that $t$ is about ${c}`power-slope`\sqrt n$.
# With $n$ seeds it has to exceed the value that Student's distribution with $n - 1$ degrees of freedom exceeds with probability $0.05/{c}`number`$ in both tails together: at $n = {c}`power-seeds`$ that is {c}`power-limit`, and $t$ is {c}`power-t` on average.
# That is an even chance, with the paired test alone. For a chance of four in five, and with the wider one of the two intervals, the rule of this page asks for {c}`power-rule` seeds.
# ```

# %% tags=["hide-input"]
one, other = sides("MNIST", "cSGHMC", "snapshots with momentum")
mean, error = abs((one - other).mean()), stats.sem(one - other)
slope, limits = mean / error / 5**0.5, stats.t.ppf(1 - LEVEL / number / 2, range(1, 99))
needed = min(n for n in range(3, 100) if slope * n**0.5 > limits[n - 2])
for name, value in {
    "mean": mean,
    "error": error,
    "slope": slope,
    "seeds": needed,
    "limit": limits[needed - 2],
    "t": slope * needed**0.5,
    "rule": gaps["MNIST", "cSGHMC", "snapshots with momentum"].seeds_needed(mean),
}.items():
    check(f"power-{name}", value, kind="stored", digits=2)

# %% [markdown]
# ## Further reading
#
# {cite:t}`zhang2020` for the method and the table; {cite:t}`huang2017` and {cite:t}`loshchilov2017` for the same wave in optimisation; {cite:t}`wenzel2020` and {cite:t}`izmailov2021` for what the temperature of a network's posterior does.
