# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # What should I use, and what do I gain?
#
# ```{div} page-head
# Level: first course · Reading: about 38 minutes, the fork and the chart two · Running: about 15 seconds
# ```
#
# Two questions decide: do you want parameters or predictions, and do the data fit into memory?
#
# **You will learn** to
#
# * find the method for your case in two minutes, and copy its lines,
# * read what it gains over one trained network, and what it costs in training, in prediction and in storage,
# * tell a difference between two methods from the luck of five seeds,
# * say when sampling is not worth it.
#
# **You will need** nothing of what came before; the names lead to the chapters that derive the methods.

# %% tags=["hide-input"]
import inspect
import warnings
from functools import partial
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy import stats

from booklib.data import digits
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import claim
from booklib.page.figures import COLOURS, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.rivals import (
    dropout,
    ensemble,
    laplace,
    snapshots,
    swag,
    variational,
)
from booklib.runs.results import RESULTS, read_result, who_ran
from booklib.scores.prediction import error_rate
from sgmc import sample
from sgmc.kernels import SGHMC, SGLD, SGNUTS
from sgmc.other_kernels import Cyclical
from sgmc.posteriors import NetworkPosterior

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Paths of SGNUTS are kept short on purpose, as the protocol below says.
warnings.filterwarnings("ignore", message=".*max_depth")

result, close = (
    read_result(RESULTS / f"{name}.json") for name in ("neighbours", "fidelity")
)
METHODS = {  # what is kept, in networks, and how many are evaluated for a prediction
    "SGD": (1, 1),
    "SGD with momentum": (1, 1),
    "path of SGD with momentum": (30, 30),
    "constant SGD": (15, 15),
    "snapshots of SGD": (6, 6),
    "snapshots with momentum": (6, 6),
    "ensemble": (5, 5),
    "ensemble, adversarial": (5, 5),
    "ensemble, five times the budget": (5, 5),
    "dropout": (1, 30),
    "Bayes by Backprop": (2, 30),  # means and standard deviations
    "SWAG": (22, 30),  # mean, standard deviations, 20 deviations
    "Laplace, last layer": (1 + 1010**2 / 2 / 79_510, 1 + 30 * 1010 / 79_510),
    "SGLD": (30, 30),
    "SGHMC": (30, 30),
    "SGHMC, cold": (30, 30),
    "cSGLD": (30, 30),
    "cSGHMC": (30, 30),
    "cSGHMC, cold": (30, 30),
    "SGNUTS": (30, 30),
}
runs = {name: result["methods"][name]["runs"] for name in METHODS}
SCORES = {
    "error %": lambda run: 100 * run["scores"]["error"],
    "log loss": lambda run: run["scores"]["log_loss"],
    "calibration": lambda run: run["scores"]["calibration_error"],
    "letters": lambda run: run["auroc"]["letters"],
    "clothes": lambda run: run["auroc"]["clothes"],
}
small = close["problems"]["digits"]  # with a reference
floor = small["reference"]["floor"]["total_variation"]
distances = {
    name: np.array([run["total_variation"] for run in content["runs"]]) / floor
    for name, content in small["methods"].items()
}
scores = {
    name: {score: np.array([of(run) for run in seeds]) for score, of in SCORES.items()}
    for name, seeds in runs.items()
}
for name, of in scores.items():
    of["other inputs"] = (of["letters"] + of["clothes"]) / 2
    of["distance"] = distances[name]
    seconds, of_one_network = (
        np.mean([run["processor_seconds"] for run in runs[method]])
        for method in (name, "SGD with momentum")
    )
    of["training"] = seconds / of_one_network
LARGE = ("letters", "clothes", "other inputs")  # of these the largest is best


def two_tests(first, second, score):
    """The paired t-test over the seeds, and Welch's test, both two-sided."""
    pair = scores[first][score], scores[second][score]
    return stats.ttest_rel(*pair), stats.ttest_ind(*pair, equal_var=False)


def p_value(first, second, score):
    """The larger p-value of the two tests."""
    if first == second:
        return 1.0
    return max(test.pvalue for test in two_tests(first, second, score))


def choose(score, allowed):
    """The best mean; of those that the test cannot tell from it, the cheapest to
    predict with."""
    sign = -1 if score in LARGE else 1
    best = min(allowed, key=lambda name: sign * scores[name][score].mean())
    equal = [name for name in allowed if p_value(name, best, score) > 0.05]
    return min(
        equal, key=lambda name: (METHODS[name][::-1], sign * scores[name][score].mean())
    )


# %% [markdown]
# ## Parameters or predictions?
#
# ```{index} ! which method, ! which sampler, ! choosing a method
# ```
#
# | you want | and | take |
# | --- | --- | --- |
# | the **parameters** of a model, with intervals | the data fit into memory, up to some 10⁶ rows | NUTS, tuned by `adapt` ({ref}`recipe <my-log-density>`) |
# | the same | more data, and a mode that can be found | SGHMC with control variates ({doc}`/book/tutorial/estimating_the_noise`) |
# | the same | neither | SGHMC, tuned by `tune` ({ref}`recipe <my-data-on-disk>`), or the data in parts ({doc}`/book/practice/many_machines`) |
# | the **predictions** of a network | you train it anyway | an ensemble of five, unless [the chart](#the-chart) below says otherwise |
# | a network's posterior itself | ten times the price of one training | SGHMC ({ref}`recipe <my-nn-module>`) |
#
# The border between the first two rows is a price.
# {doc}`/book/practice/step_cost` measured the milliseconds of one CPU for an effective sample, on a logistic regression with four coefficients and minibatches of 500:

# %% tags=["hide-input"]
cost = read_result(RESULTS / "step_cost.json")["size"]
show_table(
    ["examples", "HMC", "SGHMC", "SGHMC, control variates"],
    [
        [f"{number:,}"]
        + [
            f"{1e3 * cost['rows'][name][i]['seconds_an_effective_sample']['best']:,.1f}"
            for name in ("HMC", "SGHMC", "SGHMC, control variates")
        ]
        for i, number in enumerate(cost["examples"])
    ],
)

# %% [markdown]
# With a million rows a thousand effective samples of HMC on all the data take a quarter of a minute, and NUTS chooses the path length by itself.
# Plain minibatches are slower at every size, because the noise of a minibatch forces short steps: **on data that fit into memory, minibatches alone save nothing**.
# Control variates remove most of that noise, and from 10⁵ rows on they are the fastest, once a mode is found. NUTS needs no mode, and stays affordable up to some 10⁶ rows.
#
# For predictions our advice rests on one network and MNIST: train one, with a learning rate that falls to zero.
# If you act on its probabilities, or fear its errors, train five short ones in its place and average what they predict.
#
# ## The chart
#
# For the predictions of a network, start at the top of {numref}`fig-decide-chart`, and stop at the first *yes*.
# Under each name stands what it gives on MNIST, and how many forward passes a prediction takes.

# %% mystnb={"figure": {"caption": "From a need to a method. Under the name: passes through a network for a prediction, and what the method reaches, beside one network trained by SGD with momentum. The first box has ten times the budget of the others, and its distance is measured on a small network.", "name": "fig-decide-chart"}, "image": {"alt": "A ladder of five questions. Yes leads to a method on the right, no to the next question below. In this order: the posterior itself, SGHMC; one pass and one network, SGD with momentum; a trained network, Laplace for the last layer; strange inputs, Bayes by Backprop; several networks, an ensemble; and otherwise dropout. The table below says the same."}} tags=["hide-input"]
ONE = "SGD with momentum"
EQUAL = [
    name for name in METHODS if "five times" not in name and "adversarial" not in name
]  # one budget
AFTERWARDS = ["SWAG", "Laplace, last layer"]  # made of a trained network
ladder = [
    (
        "Do you need the posterior's\nown predictions, at ten\ntimes the price?",
        "distance",
        [],
    ),
    (
        "Must a prediction cost no\nmore than one pass\nthrough one network?",
        "error %",
        [m for m in EQUAL if METHODS[m][1] == 1],
    ),
    (
        "Do you have a trained\nnetwork, of which only the\nlast layer may change?",
        "log loss",
        AFTERWARDS,
    ),
    (
        "Does out-of-distribution\ndetection matter more than\naccuracy?",
        "other inputs",
        EQUAL,
    ),
    ("Can you keep five\nnetworks?", "log loss", EQUAL),
    ("", "log loss", [m for m in EQUAL if METHODS[m][0] <= 2]),
]
leaves = [choose(score, allowed) if allowed else "" for _, score, allowed in ladder]
leaves[0] = min(distances, key=lambda name: distances[name].mean())
WORDS = {
    "distance": "distance {:.0f} (one network: {:.0f})",
    "error %": "error {:.2f} %",
    "log loss": "log loss {:.3f} (one network: {:.3f})",
    "other inputs": "area {:.2f} (one network: {:.2f})",
}


def gain(name, score):
    """Say what a method reaches, beside one network."""
    of = distances[name] if score == "distance" else scores[name][score]
    return WORDS[score].format(of.mean(), scores[ONE][score].mean())


def passes(name):
    """Say how many passes through a network a prediction takes."""
    number = METHODS.get(name, METHODS["SGHMC"])[1]
    return "1 pass" if number == 1 else f"{number:.2g} passes"


figure, axes = plt.subplots(figsize=(5.6, 7.2))
box = dict(boxstyle="round,pad=0.4", fc="white", ec=COLOURS["HMC"])
for place, ((question, score, _), leaf) in enumerate(zip(ladder, leaves, strict=True)):
    y = -place
    answer = dict(boxstyle="round,pad=0.4", fc=COLOURS["SGD"], ec="none", alpha=0.5)
    if question:
        axes.text(0, y, question, ha="center", va="center", size=9, bbox=box)
        axes.annotate("", (1.03, y), (0.75, y), arrowprops={"arrowstyle": "->"})
        axes.text(0.88, y + 0.06, "yes", ha="center", size=9)
        axes.annotate("", (0, y - 0.66), (0, y - 0.34), arrowprops={"arrowstyle": "->"})
        axes.text(0.04, y - 0.54, "no", size=9)
    x = 1.72 if question else 0
    name = leaf.replace(", ten", ",\nten")
    axes.text(x, y, name, ha="center", va="center", weight="bold", size=10, bbox=answer)
    below = f"{passes(leaf)}\n{gain(leaf, score).replace(' (', chr(10) + '(')}"
    low = y - (0.24 if "\n" in name else 0.17)
    axes.text(x, low, below, ha="center", va="top", size=8)
axes.set(xlim=(-0.72, 2.4), ylim=(-5.65, 0.35))
axes.axis("off")
plt.show()

# %% tags=["hide-input"]
needs = [
    "the posterior itself",
    "one pass, one network",
    "a trained network is there",
    "inputs of another kind",
]
needs += ["probabilities, 5 networks", "probabilities, 1 network"]
show_table(
    ["what you need", "take", "what it gives"],
    [
        [need, leaf, f"{gain(leaf, score).split(' (')[0]}; {passes(leaf)}"]
        for need, leaf, (_, score, _) in zip(needs, leaves, ladder, strict=True)
    ],
)
print(who_ran(result))

# %% [markdown]
# {numref}`fig-decide-chart` shows beside each number what one network reaches, trained by SGD with momentum.
#
# * *Error* is the share of test digits with a wrong class, *log loss* the mean of minus the logarithm of the probability given to the right class.
# * *Area*, under the ROC curve, says how well a method tells other images from digits by how unsure it is of them: 1 is perfect, 0.5 is chance.
# * *Distance* is how far the predictions are from those of the posterior, in *floors*: one floor is the distance between two halves of a long reference run.
#
# The first box names the method nearest to the posterior on the small network.
# Every other box names the method with the best mean score at the common budget; if others are statistically tied with it ($p > 0.05$ by [the rule below](#which-differences-are-real), uncorrected), it names the cheapest at prediction time.
# Methods were selected and scored on the same test set, so the winners look slightly too good.
# The third box compares Laplace with SWAG alone; whether it has less log loss than the network that it began with is not decided.
# Bayes by Backprop has a price: more errors, a larger log loss and a worse calibration than one network.
#
# Where the methods are derived: ensembles, dropout, Laplace's approximation and SWAG in {doc}`/book/studies/neighbours`, *Bayes by Backprop* in {doc}`/book/studies/variational`, *SGHMC* in {doc}`/book/tutorial/sghmc`, *SGLD* in {doc}`/book/tutorial/langevin`, cycles (*cSGHMC*, *cSGLD*, and *snapshots*, the same without noise) in {doc}`/book/further/cyclical`, *SGNUTS* in {doc}`/book/tutorial/sgnuts`.
#
# ## The protocol
#
# * **MNIST**, `python -m experiments run neighbours`: one network, 784–100–10 with rectified linear units, the prior $N(0, 1)$ on all weights, minibatches of 500 from 50,000 digits.
#   Every method may take the 6,000 gradients of 60 epochs, its *budget*; its settings have the least error on 10,000 validation digits, of three to six that were tried.
#   It runs with five seeds and predicts for 10,000 test digits, 18,724 letters and 10,000 pieces of clothing.
#   Three take more, and the chart leaves two of them out: the adversarial ensemble has a second gradient for each, one ensemble, named so, five times as many, and Laplace goes on from the trained network with 500 steps of the last layer.
# * **A network small enough for the truth**, `python -m experiments run fidelity`: eight long chains of HMC on a network of 49–16–10 units say what the posterior predicts ({doc}`/book/practice/fidelity`), and the same methods, with 4,000 minibatches of 50 digits, are measured by the total variation between their predictions and that reference.
#
# SGD with momentum has cosine annealing to zero; its *path* is run at a constant rate, and averages the networks along its second half; *constant SGD* anneals in the first half and goes on at a rate from theory ({doc}`/book/further/constant_sgd`).
# The samplers spend the first half of their epochs on warm-up, and keep one sample an epoch; those in cycles have six cycles and keep five samples at the end of each.
# *Cold* means a temperature of a tenth or a hundredth, chosen on the validation digits.
# Paths of SGNUTS are limited to 32 states ({doc}`/book/studies/steps_per_sample`).
#
# ## What you write
#
# Here is the code of each method, on a posterior of 4,000 digits.
# `warm_up` and `thinning` count samples, that is calls of the kernel; where `num_steps` is not given, a sample takes one gradient.
# All return {class}`sgmc.door.draws.Draws`, of which `posterior.predict` makes predictions.
# The rates are for this small example; those of the table are in `book/results/neighbours.json` under `settings`.
# If you have a trained network, put `torch.nn.utils.parameters_to_vector(network.parameters()).detach()[None]` in the place of `sgd_with_momentum().samples[-1]`.
# It should have been trained with the prior as weight decay, $1/N$ for a mean loss over $N$ examples: `laplace` refuses a position that is no mode.

# %%
train, test = digits()
network = multilayer_perceptron([784, 30, 10], "relu")
posterior = NetworkPosterior(network, *train, batch_size=100)
start = posterior.initial_position(1, torch.Generator().manual_seed(0))
rate, steps = 0.1 / 4_000, 400


# %%
def sgd_with_momentum():
    settings = dict(cycle_length=steps, learning_rate=rate)
    return snapshots(posterior, start, 1, **settings)


def path_of_sgd():
    kernel = SGHMC.from_learning_rate(rate, 0.1, temperature=0.0)
    return sample(kernel, posterior, start, 20, warm_up=200, thinning=10)


def snapshots_with_momentum():
    settings = dict(cycle_length=steps // 5, learning_rate=2 * rate)
    return snapshots(posterior, start, 5, **settings)


def ensemble_of_five():
    starts = posterior.initial_position(5, torch.Generator().manual_seed(0))
    return ensemble(posterior, starts, num_steps=80, learning_rate=0.01)


def monte_carlo_dropout():
    settings = dict(rate=[0.0, 0.2], num_steps=steps, learning_rate=0.003)
    return dropout(posterior, start, 20, **settings)


def bayes_by_backprop():
    settings = dict(learning_rate=0.01, initial_std=0.01, local=True)
    return variational(posterior, start, 20, num_steps=steps, **settings)


def swag_of_a_path():
    kernel = SGHMC.from_learning_rate(rate, 0.1, temperature=0.0)
    path = sample(kernel, posterior, start, 20, warm_up=200, thinning=10)
    return swag(path, 20, rank=10)


def laplace_of_the_last_layer():
    trained = sgd_with_momentum().samples[-1]
    last = torch.arange(posterior.dim - 310, posterior.dim)
    return laplace(posterior, trained, 20, coordinates=last)


def sgld():
    kernel = SGLD(5 * rate)
    return sample(kernel, posterior, start, 20, warm_up=200, thinning=10)


def sghmc():
    kernel = SGHMC.from_learning_rate(2 * rate, 0.1)
    return sample(kernel, posterior, start, 20, warm_up=200, thinning=10)


def cyclical_sghmc():
    make = partial(SGHMC.from_learning_rate, momentum_decay=0.1)
    kernel = Cyclical(make, 2 * rate, steps // 5, 4, 0.8, cold=True)
    return sample(kernel, posterior, start, 20)


def sgnuts():
    step_size = rate**0.5
    kernel = SGNUTS(step_size, 0.1 / step_size, max_depth=5)
    return sample(kernel, posterior, start, 10, warm_up=10)


# %% tags=["hide-input"]
RECIPES = {
    "SGD with momentum": sgd_with_momentum,
    "path of SGD with momentum": path_of_sgd,
    "snapshots with momentum": snapshots_with_momentum,
    "ensemble": ensemble_of_five,
    "dropout": monte_carlo_dropout,
    "Bayes by Backprop": bayes_by_backprop,
    "SWAG": swag_of_a_path,
    "Laplace, last layer": laplace_of_the_last_layer,
    "SGLD": sgld,
    "SGHMC": sghmc,
    "cSGHMC": cyclical_sghmc,
    "SGNUTS": sgnuts,
}
lines = {}
for name, recipe in RECIPES.items():
    written = inspect.getsource(recipe).strip().splitlines()
    lines[name] = len(written) - 1  # without the def
SAME = {
    "SGD": ONE,
    "ensemble, adversarial": "ensemble",
    "ensemble, five times the budget": "ensemble",
}
SAME |= {"snapshots of SGD": "snapshots with momentum"}
SAME |= {"SGHMC, cold": "SGHMC", "cSGHMC, cold": "cSGHMC", "cSGLD": "cSGHMC"}
errors = {}
for name, recipe in RECIPES.items():
    networks = recipe().samples.flatten(0, 1)
    average = posterior.predict(networks, test.inputs).mean(0)
    errors[name] = error_rate(average, test.targets)

# %% [markdown]
# No recipe takes more than four lines; you choose the learning rate.


# %% tags=["hide-input"]
claim(
    "Lines of the longest recipe",
    float(max(lines.values())),
    at_most=4,
    because="counted",
    kind="exact",
)
claim(
    "Largest error of the recipes on 1,000 test digits",
    max(errors.values()),
    at_most=0.25,
    because="ten short passes; guessing errs in 90 %",
)

# %% [markdown]
# ## The table
#
# Means over five seeds; the differences with their errors stand below.
# *Calib.* is the expected calibration error, *letters* and *cloth* the areas, *floors* the distance from the posterior on the small network.
# *Train* is the CPU time of a fit over that of SGD with momentum, which is rough: runs of one method differ by up to a factor of two.
# *Pass* is the number of forward passes of a prediction, *keep* the number of networks, of 0.32 MB each, that have to be stored, and *lines* the length of the recipe above.

# %% tags=["hide-input"]
WHEN = {
    "SGD": "there is no room for a momentum",
    "SGD with momentum": "a prediction may cost one pass and no more",
    "path of SGD with momentum": (
        "never here: no less log loss than one network, and thirty passes"
    ),
    "constant SGD": (
        "never here: at its tuned rate one network, trained for half of the epochs"
    ),
    "snapshots of SGD": (
        "never here: no less error or log loss than one network, and six passes"
    ),
    "snapshots with momentum": (
        "never here: no less error or log loss than one network, and six passes"
    ),
    "ensemble": "you can keep five networks: the first thing to try",
    "ensemble, adversarial": "the same, and training may take twice as long",
    "ensemble, five times the budget": "training costs you nothing",
    "dropout": "you can keep one network, and predictions may take long",
    "Bayes by Backprop": "inputs of another kind are the danger",
    "SWAG": "never here: no less log loss than one network, and thirty passes",
    "Laplace, last layer": "the network is trained, and only its last layer may change",
    "SGLD": (
        "never here: more error than one network, and SGHMC is nearer to the posterior"
    ),
    "SGHMC": "you need the posterior, and have ten times the budget",
    "SGHMC, cold": "never here: no less log loss than one network, and thirty passes",
    "cSGLD": "never here: no less error or log loss than cSGHMC",
    "cSGHMC": "one chain has to do, and calibration counts",
    "cSGHMC, cold": (
        "never here: predicts as cSGHMC does, and is farther from the posterior"
    ),
    "SGNUTS": "never here: more error and log loss than one network",
}
rows = []
for name, (kept, passes) in METHODS.items():
    of = scores[name]
    quality = [
        f"{of['error %'].mean():.2f}",
        *(f"{of[score].mean():.3f}" for score in ("log loss", "calibration")),
        *(f"{of[score].mean():.2f}" for score in ("letters", "clothes")),
        f"{of['distance'].mean():.1f}",
    ]
    counts = [f"{count:.1f}".removesuffix(".0") for count in (passes, kept)]
    cost = [f"{of['training']:.1f}", *counts]
    cost.append(str(lines.get(SAME.get(name, name), "–")))
    rows.append([name, *quality, *cost])
heads = ["method", "error %", "log loss", "calib.", "letters", "cloth", "floors"]
heads += ["train", "pass", "keep", "lines"]
show_table(heads, rows)

# %% tags=["hide-input"]
show_table(["method", "use it when"], [[name, words] for name, words in WHEN.items()])

# %% [markdown]
# *Never here* goes by the means over five seeds; the next section says which differences are decided.
#
# ## Which differences are real
#
# Would another five seeds change the answer?
# As in {doc}`/book/studies/mnist`, we run two tests and take **the larger of the two $p$-values**, so that whatever is decided, both tests decide.
# Let $n$ be the number of seeds, here five, and $\bar d$ the difference of the two means.
# The *paired t-test* uses the standard deviation $s_d$ of the $n$ differences, one for each seed; *Welch's test* uses those of the two groups, $s_1$ and $s_2$:
#
# $$
# \begin{aligned}
# t_{\text{paired}} &= \frac{\bar d}{s_d/\sqrt n}, \\
# t_{\text{Welch}} &= \frac{\bar d}{\sqrt{(s_1^2 + s_2^2)/n}}.
# \end{aligned}
# $$ (eq-decide-t)
#
# If the values are normal and independent from seed to seed, and the two means are the same, the first has Student's distribution with $n - 1$ degrees of freedom.
# The second, for independent groups, has it nearly, with
#
# $$
# \nu = (n - 1)\,\frac{(s_1^2 + s_2^2)^2}{s_1^4 + s_2^4}
# $$ (eq-decide-freedom)
#
# degrees of freedom.
# Each column of the next table makes nineteen such comparisons with SGD with momentum, and Holm's correction {cite:p}`holm1979` keeps the probability that any one of a column is a false alarm below five per cent.
#
# ```{prf:algorithm} Holm's correction
# :label: alg-decide-holm
#
# Sort the $m$ p-values, $p_{(1)} \le \dots \le p_{(m)}$, and replace the $i$-th by $\max_{j \le i}\min\bigl(1, (m - j + 1)\,p_{(j)}\bigr)$.
# ```
#
# The test examples are the same for all seeds, so the table says which method is better on *these* 10,000 digits.
# In the table ± is half of the wider of the two tests' 95 % intervals of that one difference, not corrected, and a star marks a larger $p$-value that stays below 0.05 after the correction.


# %% tags=["hide-input"]
def holm(p_values):
    """Adjust p-values for their number."""
    order = np.argsort(p_values)
    raised = np.minimum(
        1, np.arange(len(p_values), 0, -1) * np.asarray(p_values)[order]
    )
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.maximum.accumulate(raised)
    return adjusted


COMPARED = ["error %", "log loss", "calibration", "letters", "clothes", "distance"]
others = [name for name in METHODS if name != ONE]
adjusted = {
    score: dict(
        zip(others, holm([p_value(name, ONE, score) for name in others]), strict=True)
    )
    for score in COMPARED
}


def difference(name, score):
    """Mean and half width of the wider 95 % interval of the difference from one
    network, marked where the rule decides."""
    mean = (scores[name][score] - scores[ONE][score]).mean()
    limits = [test.confidence_interval() for test in two_tests(name, ONE, score)]
    half = max(high - low for low, high in limits) / 2
    places = {"error %": 2, "distance": 1}.get(score, 3)
    star = " *" if adjusted[score][name] < 0.05 else ""
    return f"{mean:+.{places}f} ± {half:.{places}f}{star}"


show_table(
    ["less SGD with momentum", *COMPARED[:5], "floors"],
    [[name, *(difference(name, score) for score in COMPARED)] for name in others],
)

# %% [markdown]
# Beside one network:
#
# * The three ensembles have less error and less log loss, dropout has less log loss.
# * SGLD, SGNUTS and Bayes by Backprop have more error and more log loss, SGHMC has more log loss.
# * Both kinds of cSGHMC, SGLD, SGNUTS, constant SGD and the ensemble with five times the budget are better calibrated, Bayes by Backprop is worse.
# * Bayes by Backprop and dropout tell both letters and clothes from digits better; the ensembles and Laplace's last layer do so for letters, and for clothes nothing is decided about them.
#
# Laplace's last layer goes on from the very network that it is compared with: the paired test alone would decide its log loss, Welch's does not, and so it is not decided.

# %% mystnb={"figure": {"caption": "All pairs: blue where the method of the row has the smaller error (above) or log loss (below) than that of the column, orange where the larger, and white where the larger p-value of the two tests over five seeds, corrected for all 190 pairs, decides nothing.", "name": "fig-decide-pairs"}, "image": {"alt": "Two square tables of cells, one above the other, with the methods along both sides, sorted by their mean. Nearly all coloured cells lie far from the diagonal; near it, and in most of each table, cells are white."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 1, figsize=(5.2, 8.4))
seen = {}
for axes, score in zip(panels, ("error %", "log loss"), strict=True):
    order = sorted(METHODS, key=lambda name: scores[name][score].mean())
    pairs = list(combinations(range(len(order)), 2))
    p_values = holm([p_value(order[i], order[j], score) for i, j in pairs])
    matrix = np.full((len(order), len(order), 3), 1.0)
    for (i, j), p in zip(pairs, p_values, strict=True):
        if p < 0.05:
            matrix[i, j], matrix[j, i] = (
                plt.matplotlib.colors.to_rgb(COLOURS[name])
                for name in ("HMC", "SGD with momentum")
            )
    seen[score] = int((p_values < 0.05).sum())
    axes.imshow(matrix)
    ranks = [str(rank) for rank in range(1, len(order) + 1)]
    names = [f"{name}  {rank}" for name, rank in zip(order, ranks, strict=True)]
    axes.set_xticks(range(len(order)), ranks, size=8)
    axes.set_yticks(range(len(order)), names, size=8)
    axes.tick_params(length=0)
    axes.set_title(score.removesuffix(" %"))
plt.show()

# %% [markdown]
# {numref}`fig-decide-pairs` has all pairs: read a row from left to right, blue is a win and orange a loss of its method.
# Most of it is white: of 190 pairs five seeds tell 18 apart by error, and 49 by log loss.


# %% tags=["hide-input"]
def claim_differences(statement, score, sign, names):
    """Claim that the corrected rule decides on a difference of that sign from one
    network, for all of some methods."""
    signed = {
        name: adjusted[score][name]
        if sign * (scores[name][score] - scores[ONE][score]).mean() > 0
        else 1.0
        for name in names
    }
    claim(
        f"{statement} than {ONE}: {'; '.join(names)}: the largest corrected p-value",
        max(signed.values()),
        at_most=0.05,
        because=(
            "the stored result, the larger p-value of two tests over five seeds; a "
            "difference of the other sign would count as 1"
        ),
        kind="stored",
    )


ENSEMBLES = ["ensemble", "ensemble, adversarial", "ensemble, five times the budget"]
claim_differences("Less error", "error %", -1, ENSEMBLES)
claim_differences("Less log loss", "log loss", -1, [*ENSEMBLES, "dropout"])
claim_differences("More error", "error %", 1, ["SGLD", "SGNUTS", "Bayes by Backprop"])
claim_differences(
    "More log loss", "log loss", 1, ["SGLD", "SGHMC", "SGNUTS", "Bayes by Backprop"]
)
claim_differences(
    "Better calibrated",
    "calibration",
    -1,
    [
        *("cSGHMC", "cSGHMC, cold", "SGLD", "SGNUTS", "constant SGD"),
        "ensemble, five times the budget",
    ],
)
claim_differences("Worse calibrated", "calibration", 1, ["Bayes by Backprop"])
claim_differences(
    "Letters told better",
    "letters",
    1,
    ["Bayes by Backprop", "dropout", "Laplace, last layer", *ENSEMBLES],
)
claim_differences("Clothes told better", "clothes", 1, ["Bayes by Backprop", "dropout"])
claim(
    "Least corrected p-value in clothes of the three ensembles and Laplace",
    min(adjusted["clothes"][name] for name in [*ENSEMBLES, "Laplace, last layer"]),
    at_least=0.06,
    because="the stored result: not decided",
    kind="stored",
)

# %% tags=["hide-input"]
starred = {(s, name) for s in COMPARED for name in others if adjusted[s][name] < 0.05}
more = {}  # what one test alone would star besides
for number, test in enumerate(("paired", "Welch")):
    alone = {
        score: holm([two_tests(name, ONE, score)[number].pvalue for name in others])
        for score in COMPARED
    }
    more[test] = {
        (score, name)
        for score in COMPARED
        for name, p in zip(others, alone[score], strict=True)
        if p < 0.05
    } - starred
claim(
    "What the paired test alone would decide besides: log loss of SWAG, Laplace, cold "
    "SGHMC, constant SGD; letters of cSGHMC, cold cSGHMC; clothes of Laplace",
    more["paired"]
    == {("log loss", n) for n in ("SWAG", "SGHMC, cold", "constant SGD")}
    | {("letters", name) for name in ("cSGHMC", "cSGHMC, cold")}
    | {(score, "Laplace, last layer") for score in ("log loss", "clothes")},
    because="the stored result, each column corrected",
    kind="stored",
)
claim(
    "What Welch's test alone would decide besides: entries of the table",
    len(more["Welch"]),
    near=10,
    within=0,
    because="the stored result, each column corrected",
    kind="stored",
)
claim(
    "On both of these lists: none",
    not more["paired"] & more["Welch"],
    because="the stored result",
    kind="stored",
)
claim(
    "Largest difference in log loss of Laplace's last layer from one network, of five",
    (scores["Laplace, last layer"]["log loss"] - scores[ONE]["log loss"]).max(),
    at_most=-0.002,
    because="the stored result: one sign with each seed",
    kind="stored",
)
claim(
    "Corrected p-value of Laplace's last layer in log loss, beside one network",
    adjusted["log loss"]["Laplace, last layer"],
    at_least=0.3,
    because="the stored result, the larger of two tests",
    kind="stored",
)
claim(
    "p-value of Laplace's last layer against SWAG in log loss",
    p_value("Laplace, last layer", "SWAG", "log loss"),
    at_most=0.01,
    because="the stored result, the larger of two tests, not corrected",
    kind="stored",
)

# %% tags=["hide-input"]
CLOSE = [
    "SGHMC, cold",
    "cSGHMC",
    "cSGHMC, cold",
    "path of SGD with momentum",
    "SWAG",
    "Laplace, last layer",
]
claim(
    f"Largest difference in error, in points, from {ONE}: {'; '.join(CLOSE)}",
    max(
        abs((scores[name]["error %"] - scores[ONE]["error %"]).mean()) for name in CLOSE
    ),
    at_most=0.1,
    because=(
        "the stored result, means over five seeds; a tenth of a point is ten digits"
    ),
    kind="stored",
)
for name in ("SGHMC", "SGLD"):
    claim(
        f"Error of c{name} less that of {name}, in points",
        (scores[f"c{name}"]["error %"] - scores[name]["error %"]).mean(),
        at_most=-0.4,
        because="the stored result, means over five seeds",
        kind="stored",
    )
claim(
    "Pairs of the 190 that the corrected rule tells apart, by error",
    seen["error %"],
    near=18,
    within=0,
    because="the stored result: five seeds do not tell neighbours in a ranking apart",
    kind="stored",
)
for name, bound in (("cSGHMC", 0.003), ("cSGHMC, cold", 0.003)):
    claim(
        f"Calibration error of {name}",
        scores[name]["calibration"].mean(),
        at_most=bound,
        because="the stored result, mean over five seeds",
        kind="stored",
    )
claim(
    "Calibration error of the ensemble with five times the budget",
    scores["ensemble, five times the budget"]["calibration"].mean(),
    near=0.003,
    within=0.0005,
    because="the stored result, mean over five seeds",
    kind="stored",
)
claim(
    "p-value of its difference in calibration from cSGHMC",
    p_value("cSGHMC", "ensemble, five times the budget", "calibration"),
    near=0.09,
    within=0.005,
    because="the stored result, the larger of two tests, not corrected",
    kind="stored",
)
claim(
    f"Calibration error of {ONE}",
    scores[ONE]["calibration"].mean(),
    near=0.008,
    within=0.0005,
    because="the stored result, mean over five seeds",
    kind="stored",
)
stored = "the stored result, means over five seeds"
best = {
    "error %": "ensemble, adversarial",
    "log loss": "ensemble, adversarial",
    "calibration": "cSGHMC",
    "letters": "Bayes by Backprop",
    "clothes": "Bayes by Backprop",
}
claim(
    "Methods that are better than the best named below in any of five columns: "
    + "; ".join(f"{score}, {name}" for score, name in best.items()),
    float(
        sum(
            (-1 if score in LARGE else 1)
            * (of[score].mean() - scores[name][score].mean())
            < 0
            for score, name in best.items()
            for of in scores.values()
        )
    ),
    near=0,
    within=0,
    because=stored,
    kind="stored",
)
claim(
    "Pairs of the 190 that the corrected rule tells apart, by log loss",
    seen["log loss"],
    near=49,
    within=0,
    because="the stored result",
    kind="stored",
)

# %% [markdown]
# ## Where sampling is not worth it
#
# **For error and log loss on inputs like those of the training, at the price of one training, no sampler of this book was worth its samples in this experiment.**
# SGLD, SGHMC and SGNUTS at temperature one have a larger log loss than one network trained for as long, and an ensemble whose five members share the same 60 epochs has less error and log loss than all samplers, in the mean over the seeds.
# The chain from a random start is still on its way after 60 epochs (with 850 SGHMC errs in 1.74 per cent, {doc}`/book/studies/reproduction_report`), and the posterior under the prior $N(0, 1)$ is not what minimises the error ({doc}`/book/studies/uncertainty`).
#
# Other studies have asked the same of larger networks.
# {cite:t}`jordahn2025` find that in a large enough ensemble plain members do better on the data's own distribution than members with local posteriors, which help on other inputs.
# {cite:t}`izmailov2021` ran long chains of HMC on 512 TPUs: their average predicts better than an ensemble, but worse than one network when the inputs are disturbed.
# {cite:t}`sommer2026` hold that the price of sampling was exaggerated; our sixty epochs are one point on that scale.
#
# What sampling does give, at that budget, is in the same table:
#
# * *Calibration.* SGHMC in cycles has a calibration error of 0.2 to 0.3 per cent, one network of 0.8; an ensemble, for five times the budget, has 0.3 too ($p = 0.09$ against cSGHMC).
# * *The posterior, if there is time.* On the small network, at one budget and with one gradient for each minibatch, the plain ensemble comes nearest in the mean, to 14.0 floors, and SGHMC to 15.1.
#   With ten times as many minibatches SGHMC comes to 8.3 floors, SGLD to 11, and HMC, which sees as many examples in fewer steps, to 12 ({doc}`/book/practice/fidelity`).
# * *A use beyond prediction*: intervals for parameters ({doc}`/book/practice/reference_posteriors`), and what {doc}`/book/studies/bandit` says of decisions.

# %% tags=["hide-input"]
claim(
    "Least distance from the posterior at one budget, in floors",
    min(distances[name].mean() for name in EQUAL),
    near=13.97,
    within=0.06,
    because=stored,
    kind="stored",
)
for name, expected in (("SGHMC", 8.3), ("SGLD", 10.9), ("HMC", 12.1)):
    name = f"{name}, ten times the budget"
    claim(
        f"Distance from the posterior in floors: {name}",
        distances[name].mean(),
        near=expected,
        within=0.06,
        because=stored,
        kind="stored",
    )
claim(
    "Distance of the ensemble with five times the budget over that of the one without",
    distances["ensemble, five times the budget"].mean() / distances["ensemble"].mean(),
    at_least=1,
    because=stored,
    kind="stored",
)
claim(
    "Distance of SGHMC at one budget, in floors",
    distances["SGHMC"].mean(),
    near=15.1,
    within=0.05,
    because=stored,
    kind="stored",
)
claim(
    "p-value of the difference in distance of the ensemble and SGHMC",
    p_value("SGHMC", "ensemble", "distance"),
    at_most=0.01,
    because="the stored result, the larger of two tests over five seeds",
    kind="stored",
)
samplers = ["SGLD", "SGHMC", "SGHMC, cold", "cSGLD", "cSGHMC", "cSGHMC, cold", "SGNUTS"]
for score in ("error %", "log loss"):
    claim(
        f"Least {score} of the seven samplers less that of the ensemble",
        min(scores[name][score].mean() for name in samplers)
        - scores["ensemble"][score].mean(),
        at_least=0.01,
        because=stored,
        kind="stored",
    )

# %% [markdown]
# ## What this table cannot say
#
# One architecture, one kind of data, one prior, one budget.
# A convolution, a longer budget or another prior may order the methods otherwise; {doc}`/book/studies/cifar` and {doc}`/book/studies/cyclical_networks` have colour images.
# The methods were tuned for error on MNIST and for log loss on the small network: tuned for letters, or for fidelity, some may do better at that.
# Some settings lie at the edge of what was tried: the rates of the shared ensemble and of dropout are the largest, those of Bayes by Backprop, cSGHMC, constant SGD and both cold samplers the smallest, and cold SGHMC has the lowest temperature.
#
# ## In practice
#
# * Start with one network and a falling rate.
#   If its errors are few enough, stop.
# * If not, or if you act on probabilities, train five networks in place of one, for a fifth of the epochs each, before you try anything else on this page.
# * Choose by the need: in the means over five seeds the adversarial ensemble has the least error and log loss, cSGHMC the least calibration error, Bayes by Backprop the largest areas.
# * Compare with at least five seeds, take the larger $p$-value of both tests, and correct for the number of pairs.
# * If the posterior is what you need, do not judge a sampler by its error: measure its distance from a long run of HMC on a small version of your problem ({doc}`/book/practice/fidelity`).
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | the paired test | $t = \bar d\sqrt n/s_d$, $n - 1$ degrees of freedom, {eq}`eq-decide-t` |
# | Welch's test | $t = \bar d\sqrt n/\sqrt{s_1^2 + s_2^2}$, {eq}`eq-decide-t`, with $\nu$ of {eq}`eq-decide-freedom` |
# | the correction for $m$ comparisons | $p_{(i)} \mapsto \max_{j \le i}\min(1, (m - j + 1)\,p_{(j)})$, {prf:ref}`alg-decide-holm` |
# | what another test set of $n$ examples would change | $\sqrt{p(1 - p)/n}$ for an error $p$ |
#
# ## Change it
#
# * Set `p_value(name, best, score) > 0.05` to `p_value(name, best, score) >= 1` in the first cell: the chart then takes the best mean at whatever cost, and the two last boxes are both *dropout*.
# * Set `num_steps=80` to `num_steps=1` in the recipe of the ensemble: five networks of one step each have learnt little, and the claim on the largest error shows ✗.
# * Set `effect=0.1 / 0.15` to `effect=0.2 / 0.15` in the cell of the first solution: an effect twice as large needs a third of the seeds, or so; the claims on the seeds show ✗ with the new numbers.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-decide-power
#
# Two methods differ by $\delta = 0.1$ points of error, and the difference between their runs with one seed has the standard deviation 0.15 points.
# With how many seeds does the paired t-test alone see it in 80 of 100 repetitions, at the level of five per cent?
# And after Holm's correction for 190 pairs, for the smallest p-value?
# ```
#
# ```{solution} ex-decide-power
# :class: dropdown
#
# The statistic has the non-central t-distribution with $n - 1$ degrees of freedom and the parameter $\sqrt n\,\delta/\sigma$.
# The cell below computes the power: 20 seeds at five per cent, and 52 at $0.05/190$.
# Five seeds see it in 21 of 100 repetitions; a difference that is not seen is not absent.
# The larger $p$-value of the two is never below that of the paired test, so our rule sees the difference no more often, and needs at least as many seeds.
# ```


# %% tags=["hide-input"]
def power(seeds, level, effect=0.1 / 0.15):
    """The probability that a two-sided t-test sees the effect."""
    bound, shift = stats.t.ppf(1 - level / 2, seeds - 1), effect * seeds**0.5
    return stats.nct.sf(bound, seeds - 1, shift) + stats.nct.cdf(
        -bound, seeds - 1, shift
    )


for level, name, expected in (
    (0.05, "five per cent", 20),
    (0.05 / 190, "0.05/190", 52),
):
    claim(
        f"Seeds for a power of 80 % at the level {name}",
        float(next(n for n in range(3, 200) if power(n, level) >= 0.8)),
        near=expected,
        within=0,
        because="the non-central t-distribution",
        kind="exact",
    )
claim(
    "Power of five seeds at the level five per cent",
    power(5, 0.05),
    near=0.21,
    within=0.01,
    because="the same",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-decide-cost
#
# A prediction is asked for a million times a day, and a training is done once a month.
# Which column of costs decides, and what does the chart become if a pass through a network costs more than a mistake?
# ```
#
# ```{solution} ex-decide-cost
# :class: dropdown
#
# Passes: thirty million predictions between two trainings outweigh any factor of five in training.
# Then the column *pass* comes first, only methods with one pass, or hardly more, are left, and these are SGD with momentum and the last layer of Laplace, which is one pass and thirty small products.
# An ensemble may still be used to make one network that predicts like it: {doc}`/book/practice/few_samples`.
# ```
#
# ```{exercise}
# :label: ex-decide-pairing
#
# One of our two tests pairs runs by their seed, the other does not.
# What would have to be true for pairing to help, what does it cost if it is not, and what becomes of either when the larger $p$-value counts?
# Compute from the stored result how much it helped for the error of the ensemble and of its adversarial sister.
# ```
#
# ```{solution} ex-decide-pairing
# :class: dropdown
#
# The variance of a difference is $\sigma_1^2 + \sigma_2^2 - 2\rho\sigma_1\sigma_2$: it helps where runs with the same seed err alike, $\rho > 0$, because they share starting weights or minibatches.
# Where $\rho = 0$ it costs degrees of freedom, four in place of up to eight, which widens an interval by the factor $2.78/2.31 = 1.2$.
# The two ensembles have $\rho = 0.55$, as far as five seeds know it, and the standard error of their difference shrinks by a third; one network and SWAG, whose path starts as its own does, have 0.91.
#
# The larger $p$-value takes no profit from pairs: where pairing helps it is Welch's, where it costs it is the paired test's.
# The log losses of one network and of Laplace's last layer, which goes on from it, have a correlation above 0.99: the paired test alone says $p = 0.003$, Welch's $0.05$, and after the correction nothing is decided.
# If you plan to compare such close relatives, say beforehand that the test is paired.
# ```

# %% tags=["hide-input"]
claim(
    "Factor by which four degrees of freedom widen an interval over eight",
    stats.t.ppf(0.975, 4) / stats.t.ppf(0.975, 8),
    near=1.2,
    within=0.01,
    because="quantiles of Student's distribution",
    kind="exact",
)
correlations = {
    pair: np.corrcoef(*(scores[name]["error %"] for name in pair))[0, 1]
    for pair in (("ensemble", "ensemble, adversarial"), (ONE, "SWAG"))
}
kin = [test.pvalue for test in two_tests("Laplace, last layer", ONE, "log loss")]
for name, p, expected in zip(("paired", "Welch's"), kin, (0.0034, 0.049), strict=True):
    claim(
        f"p-value of Laplace's last layer and one network in log loss, {name} test",
        p,
        near=expected,
        within=0.0005,
        because="the stored result, not corrected",
        kind="stored",
    )
claim(
    "Correlation over the seeds of the log losses of one network and Laplace's layer",
    np.corrcoef(scores[ONE]["log loss"], scores["Laplace, last layer"]["log loss"])[
        0, 1
    ],
    at_least=0.99,
    because="the stored result",
    kind="stored",
)
for (first, second), expected in zip(correlations, (0.55, 0.91), strict=True):
    claim(
        f"Correlation over the seeds of the errors of {first} and {second}",
        correlations[first, second],
        near=expected,
        within=0.01,
        because="the stored result; five pairs know it to about a half",
        kind="stored",
    )

# %% [markdown]
# ```{exercise}
# :label: ex-decide-write
#
# *Write it yourself.* Write the two tests, {eq}`eq-decide-t` and {eq}`eq-decide-freedom`, and {prf:ref}`alg-decide-holm` with nothing but sums and roots, and `scipy.stats.t.sf` for the tail of Student's distribution.
# Then correct the larger of the two $p$-values.
#
# ~~~python
# def paired_p_value(first, second):
#     """Two-sided, for two lists of scores, one pair for each seed."""
#     ...
#
#
# def welch_p_value(first, second):
#     """Two-sided, for two lists of scores of the same length."""
#     ...
#
#
# def corrected(p_values):
#     """Holm's, in the order in which they are given."""
#     ...
# ~~~
# ```
#
# ```{solution} ex-decide-write
# :class: dropdown
#
# The cell below has all three.
# Take care of two things: every variance, of the differences and of the two groups, has $n - 1$ in its denominator, and a corrected p-value must never be smaller than one before it.
# ```


# %% tags=["hide-input"]
def variance(values):
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def paired_p_value(first, second):
    """Two-sided, for two lists of scores, one pair for each seed."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    n = len(differences)
    t = sum(differences) / n / (variance(differences) / n) ** 0.5
    return 2 * stats.t.sf(abs(t), n - 1)


def welch_p_value(first, second):
    """Two-sided, for two lists of scores of the same length."""
    n, one, two = len(first), variance(first), variance(second)
    t = (sum(first) - sum(second)) / n / ((one + two) / n) ** 0.5
    freedom = (n - 1) * (one + two) ** 2 / (one**2 + two**2)
    return 2 * stats.t.sf(abs(t), freedom)


def corrected(p_values):
    """Holm's, in the order in which they are given."""
    found, largest = [0.0] * len(p_values), 0.0
    for place in sorted(range(len(p_values)), key=lambda i: p_values[i]):
        left = sum(p >= p_values[place] for p in p_values)
        largest = max(largest, min(1.0, left * p_values[place]))
        found[place] = largest
    return found


mine = []
for name in others:
    pair = scores[name]["error %"], scores[ONE]["error %"]
    mine.append(max(paired_p_value(*pair), welch_p_value(*pair)))
claim(
    "Largest difference of these p-values, corrected, from those of the table",
    max(
        abs(a - adjusted["error %"][name])
        for a, name in zip(corrected(mine), others, strict=True)
    ),
    at_most=1e-9,
    because="the same formulas; rounding",
    kind="exact",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`ovadia2019` compare most of these methods when inputs drift away from the training's, and {cite:t}`wilson2020` argue for seeing ensembles and posteriors as one thing.
# More of the same numbers is in {doc}`/book/studies/neighbours_on_networks` and {doc}`/book/studies/cyclical_networks`.
