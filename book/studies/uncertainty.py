# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # What a network knows that it does not know
#
# ```{div} page-head
# Level: second course · Reading: about 44 minutes, without the exercises · Running: about 20 seconds
# ```
#
# Networks trained on digits look at letters, at clothes and at digits lying on their side: one optimised network, and thirty that SGHMC drew.
# The samples help in some of these places and not in others; the table before *In practice* says which.
#
# **You will learn** to
#
# * split the entropy of an averaged prediction into what every network is unsure of and what the networks disagree about,
# * measure whether an entropy tells digits from what is none, by the area under the ROC curve,
# * read error against rejection, and calibration under a shift that nobody trained for,
# * test with a handful of seeds whether a difference is more than luck.
#
# **You will need** {doc}`/book/studies/mnist`.

# %%
import math
import warnings

import matplotlib.pyplot as plt
import numpy as np
import torch

from booklib.data import Data, digits, letters, split_digits
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import at_least, at_most, check, claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.plans import Hamiltonian, Plan, Prior
from booklib.runs.predictions import BINS
from booklib.runs.predictions import look as what_they_say
from booklib.runs.predictions import turned as turn
from booklib.runs.results import RESULTS, Seeds, read_result, who_ran
from booklib.runs.run import Run
from booklib.scores.prediction import area_under_roc, predictive_entropy
from booklib.scores.seeds import family, gap
from sgmc.posteriors import NetworkPosterior

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## Two kinds of not knowing
#
# Draw a network $\theta$ from the posterior and let it predict: $P(y \mid x, \theta)$.
# Write $\bar P = E_\theta P(y \mid x, \theta)$ for the average over such networks, which is the prediction to use.
# Write $\mathcal H(P) = -\sum_k P_k\log P_k$ for the entropy of a prediction: zero when one class has all the probability, and $\log 10$ when all ten have the same.
#
# The average may be unsure for two reasons, and {numref}`fig-uncertainty-idea` shows both.
# A smudged 4 that could be a 9 makes *each* network unsure.
# A letter is something else: each network may be sure of itself, and the networks need not agree, for no digit told them what to say.

# %%
unsure = torch.tensor([[0.5, 0.5], [0.5, 0.5]])  # two networks, two classes
apart = torch.tensor([[1.0, 0.0], [0.0, 1.0]])


def disagreement(probabilities):
    """Entropy of the average less the average entropy: (networks, classes)."""
    average = predictive_entropy(probabilities.mean(0))
    return float(average - predictive_entropy(probabilities).mean())


# %% mystnb={"figure": {"caption": "Two reasons for one average. Above, both networks are unsure, and they agree. Below, each is sure, and they disagree. The average, on the right, is the same, and so is its entropy.", "name": "fig-uncertainty-idea"}, "image": {"alt": "Two rows of three bar charts over the classes 4 and 9. Upper row: network 1, network 2 and their average all give one half to each class. Lower row: network 1 gives all to 4, network 2 gives all to 9, and their average gives one half to each."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 3, figsize=(5.4, 3.6), sharey=True)
for row, networks in zip(panels, (unsure, apart), strict=True):
    shown = [*networks, networks.mean(0)]
    names = ("network 1", "network 2", "average")
    for axes, probabilities, name in zip(row, shown, names, strict=True):
        colour = TRUTH if name == "average" else COLOURS["SGHMC"]
        axes.bar(("4", "9"), probabilities, color=colour)
        axes.set(title=name, ylim=(0, 1.05))
    row[0].set_ylabel("probability")
plt.show()

# %% [markdown]
# What tells the two apart is how unsure the networks are one by one.
#
# ```{prf:definition} Disagreement
# :label: def-disagreement
#
# The disagreement of the networks about $x$ is the entropy of their average less the average of their entropies,
#
# $$
# \begin{aligned}
# &\mathcal D(x) = \mathcal H(\bar P) \\
# &\quad - E_\theta\,\mathcal H\bigl(P(\cdot \mid x, \theta)\bigr).
# \end{aligned}
# $$ (eq-disagreement)
# ```

# %% tags=["hide-input"]
claim(
    "Disagreement in the upper row of the picture",
    disagreement(unsure),
    near=0,
    within=1e-6,
    because="both networks say the same",
    kind="exact",
)
claim(
    "Disagreement in the lower row of the picture",
    disagreement(apart),
    near=math.log(2),
    within=1e-6,
    because="all of the average's entropy, log 2, is disagreement",
    kind="exact",
)

# %% [markdown]
# ```{prf:theorem} Disagreement is information
# :label: thm-disagreement
#
# $\mathcal D(x)$ is the mutual information of the label and the network, given $x$ and the data: what the label would tell about which network is right. It is not negative, and zero only when almost all networks predict the same.
# ```
#
# ```{prf:proof}
# Because the average of $P_k(\theta)$ is $\bar P_k$, we have $E_\theta\sum_kP_k(\theta)\log\bar P_k = \sum_k\bar P_k\log\bar P_k$, which is $-\mathcal H(\bar P)$. So
#
# $$
# \begin{aligned}
# \mathcal D(x) &= E_\theta\sum_k P_k(\theta)\log P_k(\theta) \\
# &\quad - E_\theta\sum_kP_k(\theta)\log\bar P_k \\
# &= E_\theta\sum_k P_k(\theta)\log\frac{P_k(\theta)}{\bar P_k}.
# \end{aligned}
# $$
#
# This is the mean Kullback–Leibler divergence of $P(\cdot \mid x, \theta)$ from $\bar P$, which is how mutual information is defined. A divergence is at least zero, and zero only for equal laws.
# ```
#
# A single network has no disagreement to show.
# How well does an entropy, or a disagreement, tell a digit from what is none? We shall count pairs.
#
# ```{prf:definition} Area under the ROC curve
# :label: def-auroc
#
# Given a score for digits and for other things, the area under the ROC curve, or *area* for short, is the probability that a random other thing scores higher than a random digit, ties counting half {cite:p}`fawcett2006`. A useless score has ½, a perfect one 1.
# ```
#
# ## Letters and clothes
#
# The networks are those of {doc}`/book/studies/mnist`, trained on 50,000 digits.
# SGHMC predicts with the average over thirty networks, one every 25 rounds.
# Its rivals come from SGD with momentum:
#
# * the *last network*;
# * the *path average*, over thirty networks along the optimiser's path.
#
# Both ran at a constant rate. Near the end of the chapter come two more: one network whose rate fell to zero, and an ensemble of five.
#
# All see the 10,000 test digits, 10,000 letters A to J of notMNIST {cite:p}`bulatov2011`, and the 10,000 test images of Fashion-MNIST {cite:p}`xiao2017`.
# Whatever they see they must call a digit; the question is how sure they are ({numref}`fig-uncertainty-entropy`).
#
# Each method has five seeds. Runs with the same seed start from the same weights and see the same minibatches, so we compare them in pairs:
# the *paired t-test* asks whether the five differences are larger than their own spread allows. As in {doc}`/book/studies/mnist` we ask Welch's test as well, and take the larger of the two $p$-values.
# Several tests must each meet a stricter bound. The {c}`number` comparisons of SGHMC's average on this page are one family, and within it Holm's procedure decides: the least of $k$ p-values must be below $0.05/k$, the next below $0.05/(k - 1)$, and so on up to the first that is not. A star marks what is *decided*. An interval is that of one comparison alone, at 95 %, the wider one of the two tests', and may leave zero out where the procedure does not decide.

# %%
result = read_result(RESULTS / "uncertainty.json")
sghmc, point, path = "SGHMC", "SGD with momentum", "SGD with momentum, averaged"
methods = result["methods"]
WORDS = {sghmc: "SGHMC, average", point: "last network", path: "path average"}
rivals = [point, path]


late = read_result(RESULTS / "falling.json")
falling, five = "SGD with momentum, falling rate", "ensemble"
all_runs = methods | {
    falling: [run["look"] for run in late["methods"][falling]["runs"]],
    five: [late["ensemble"]],
}


def values(method, value):
    """One number of each seed."""
    return np.array([value(run) for run in all_runs[method]])


# %% tags=["hide-input"]
shares = result["shares"]
SCORES = {
    "error": "error",
    "log_loss": "log loss",
    "brier": "Brier score",
    "calibration_error": "calibration error",
}


def area(thing, score="auroc"):
    return lambda run: run["entropy"][thing][score]


def left(share):
    """Error, in per cent, on what is left when a share is rejected."""
    return lambda run: 100 * run["rejection"][shares.index(share)]


def turned(angle, score):
    """A score on the test digits, turned by an angle in degrees."""
    return lambda run: run["turned"][result["angles"].index(angle)][score]


VALUES = {
    "letters": area("letters"),
    "clothes": area("clothes"),
    **{share: left(share) for share in shares},
    **{(angle, s): turned(angle, s) for angle in (0, 45, 90) for s in SCORES},
}
UPRIGHT = [(0, score) for score in SCORES if score != "calibration_error"]
pairs = {  # all comparisons of SGHMC's average on this page
    (what, rival): [values(method, VALUES[what]) for method in (sghmc, rival)]
    for what in VALUES
    for rival in (*rivals, falling)
    if rival == falling or what not in UPRIGHT
}
with warnings.catch_warnings():  # at one share the five falling rates err equally often
    warnings.simplefilter("ignore", RuntimeWarning)
    gaps = family(pairs)


# %% tags=["hide-input"]
def cell(method, value, digits=3):
    """Mean and standard deviation over the seeds."""
    numbers = values(method, value)
    return f"{numbers.mean():.{digits}f} ± {numbers.std(ddof=1):.{digits}f}"


def starred(found):
    """A p-value, with a star where it is decided."""
    return f"{found.p_value:.2g}" + "*" * found.decided


show_table(
    ["area", *(WORDS[method] for method in methods), "p, last", "p, path"],
    [
        [
            f"{thing}, by {word}",
            *(cell(method, area(thing, s)) for method in methods),
            *(starred(gaps[thing, rival]) if s == "auroc" else "" for rival in rivals),
        ]
        for s, word in (("auroc", "entropy"), ("auroc_disagreement", "disagreement"))
        for thing in ("letters", "clothes")
    ],
)

# %% [markdown]
# **On letters SGHMC's average is the better alarm, and this is decided.** Of a hundred pairs of a letter and a digit SGHMC's average finds the letter the stranger in 99, the optimiser's last network in 89 and its path average in 90.
# By disagreement it is better still, 0.997 against 0.993: for letters the disagreement of the samples is the better alarm.
# But the prior differs as well as the method: SGHMC draws its precisions and has 31 times the squared length of the optimiser's weights, which have one penalty.
# A control separates the two, with fifteen seeds each: SGHMC with one fixed penalty, $\lambda = 3$, still has the area {c}`letters-fixed`, and the optimiser's path average with learned penalties has {c}`letters-learned`. So it is sampling that finds the letters, and not the width of the prior.
#
# On clothes the gain is smaller, 0.04 against the last network and 0.03 against the path average, and among so many comparisons five seeds leave it open.

# %% tags=["hide-input"]
check("number", len(gaps), kind="exact")
for thing, least in (("letters", 0.08), ("clothes", 0.02)):
    for rival in rivals:
        claim(
            f"Area for {thing}, by entropy, SGHMC less the {WORDS[rival]}",
            (values(sghmc, area(thing)) - values(rival, area(thing))).mean(),
            at_least=least,
            because="the stored result, mean of five seeds",
            kind="stored",
        )
control = Seeds.read("uncertainty_control")
for name, method, bound in (
    ("fixed", "SGHMC, λ = 3", at_least(0.98)),
    ("learned", "SGD with momentum, learned λ", at_most(0.93)),
):
    areas = control(method, "look.kept.entropy.letters.auroc")
    check(f"letters-{name}", areas.mean(), bound, kind="stored", digits=3)
claim(
    "Letters: SGHMC's average against both rivals is decided",
    all(gaps["letters", rival].decided for rival in rivals),
    because="the stored result",
    kind="stored",
)
length = {
    name: np.mean([run["curve"]["length"][-1] for run in content["runs"]])
    for name, content in read_result(RESULTS / "mnist.json")["methods"].items()
}
claim(
    "Squared length of the last weights, SGHMC's over those of SGD with momentum",
    length[sghmc] / length[point],
    near=31,
    within=1,
    because="the stored result of the chapter on MNIST, mean of five seeds",
    kind="stored",
)
claim(
    "Clothes: SGHMC's average against either rival is open",
    not any(gaps["clothes", rival].decided for rival in rivals),
    because="the stored result: what the seeds leave open",
    kind="stored",
)
claim(
    "Area for letters of SGHMC, by disagreement less by entropy: the least of five "
    "seeds",
    (
        values(sghmc, area("letters", "auroc_disagreement"))
        - values(sghmc, area("letters"))
    ).min(),
    at_least=0.002,
    because="the stored result",
    kind="stored",
)

# %% tags=["hide-input"]
show_table(
    ["mean entropy", *(WORDS[method] for method in methods)],
    [
        [thing, *(cell(method, area(thing, "mean")) for method in methods)]
        for thing in ("digits", "letters", "clothes")
    ],
)
print(who_ran(result))


# %% mystnb={"figure": {"caption": "Entropy of the predictions on digits, letters and clothes: mean over five seeds, and a band from the least to the largest. The largest possible entropy is log 10 = 2.30.", "name": "fig-uncertainty-entropy"}, "image": {"alt": "Three histograms on a logarithmic scale. On digits all three methods fall steeply from zero entropy. On letters SGHMC's average has most of its mass above one nat; the two optimisers have their tallest bins at zero, about half of their mass below 0.6 or 0.7 nats, and a tail to two. On clothes SGHMC's has less mass near zero than the other two."}} tags=["hide-input"]
def look(method):
    """Colour and line of a method."""
    line = {sghmc: "-", point: "--", path: ":"}[method]
    return {"color": COLOURS[method.split(",")[0]], "ls": line}


figure, panels = plt.subplots(3, 1, figsize=(5.4, 6.6), sharex=True, sharey=True)
edges = torch.linspace(0, math.log(10), BINS + 1)
for axes, thing in zip(panels, ("digits", "letters", "clothes"), strict=True):
    for method in methods:
        counts = values(method, area(thing, "histogram"))
        parts = np.maximum(counts / counts.sum(1, keepdims=True), 1e-5)
        axes.stairs(parts.mean(0), edges, **look(method), lw=1.6, label=WORDS[method])
        low, high = ([*end(0), end(0)[-1]] for end in (parts.min, parts.max))
        axes.fill_between(
            edges, low, high, step="post", color=look(method)["color"], alpha=0.2, lw=0
        )
    axes.set(title=thing, yscale="log", ylim=(1e-4, 1.5), ylabel="share of images")
panels[0].legend()
panels[-1].set_xlabel(r"entropy $\mathcal{H}(\bar P)$ (nats)")
plt.show()

# %% [markdown]
# {numref}`fig-uncertainty-entropy` shows why. The last network gives a fifth of the letters an answer with an entropy below 0.1, as sure as on most digits; SGHMC's average does so with one letter in two thousand.
# And the averages differ in the disagreement: it is four fifths of the entropy of SGHMC's average, and a tenth of that of the path average, whose networks are too much alike.

# %% tags=["hide-input"]


def surely_called(method):
    """Share of letters in the first bin of the histogram, entropy below log(10)/23."""
    counts = values(method, area("letters", "histogram"))
    return (counts[:, 0] / counts.sum(1)).mean()


claim(
    "Share of letters with an entropy below 0.1, last network",
    surely_called(point),
    near=0.19,
    within=0.01,
    because="the first bin of the figure; the stored result",
    kind="stored",
)
claim(
    "Share of letters with an entropy below 0.1, SGHMC's average",
    surely_called(sghmc),
    near=0.0005,
    within=0.0001,
    because="the first bin of the figure; the stored result",
    kind="stored",
)
claim(
    "Share of SGHMC's entropy on letters that is disagreement",
    values(
        sghmc,
        lambda run: area("letters", "disagreement")(run) / area("letters", "mean")(run),
    ).mean(),
    at_least=0.7,
    because="the stored result: single networks are sure, and not of one mind",
    kind="stored",
)
claim(
    "Share of the path average's entropy on letters that is disagreement",
    values(
        path,
        lambda run: area("letters", "disagreement")(run) / area("letters", "mean")(run),
    ).mean(),
    at_most=0.15,
    because="the stored result: an optimiser's networks are too much alike",
    kind="stored",
)

# %% [markdown]
# ## Rejecting what is unsure
#
# A classifier that may say *I do not know* hands its least sure inputs to a person.
# How fast does the error among the rest fall ({numref}`fig-uncertainty-rejection`)?

# %% mystnb={"figure": {"caption": "Above: error on the test digits that are left when those of largest entropy are rejected; mean of five seeds and a band from the least to the largest. Below: the error of SGHMC's average less that of each rival, with its 95 % interval. The shares rejected are not to scale.", "name": "fig-uncertainty-rejection"}, "image": {"alt": "Above, three curves fall together from below two per cent to nearly zero as up to twenty per cent of the digits are rejected. Below, differences with intervals: those against the path average hold zero everywhere, those against the last network from two to ten per cent, and lie below it elsewhere."}} tags=["hide-input"]
places = np.arange(len(shares))
figure, (above, below) = plt.subplots(2, 1, figsize=(5.4, 5.4), sharex=True)
for method in methods:
    errors = np.stack([values(method, left(share)) for share in shares])
    above.plot(places, errors.mean(1), **look(method), marker="o", ms=3)
    above.lines[-1].set_label(WORDS[method])
    colour = look(method)["color"]
    above.fill_between(places, errors.min(1), errors.max(1), color=colour, alpha=0.2)
below.axhline(0, color=TRUTH)
for rival, shift, marker in zip(rivals, (-0.1, 0.1), "so", strict=True):
    found = [gaps[share, rival] for share in shares]
    below.errorbar(
        places + shift,
        [one.mean for one in found],
        [(one.high - one.low) / 2 for one in found],
        fmt=marker,
        ms=4,
        color="0.2",
        mfc="0.2" if rival == point else "white",
        label=f"SGHMC less {WORDS[rival]}",
    )
above.set(ylabel="error on the rest (%)")
below.set(xlabel="digits rejected (%)", ylabel="difference (points)", ylim=(-0.3, 0.3))
below.set_xticks(places, [f"{100 * share:g}" for share in shares])
above.legend()
below.legend()
plt.show()

# %% tags=["hide-input"]
show_table(
    ["rejected", *(WORDS[m] + ", %" for m in methods), "p, last", "p, path"],
    [
        [
            f"{100 * share:g} %",
            *(cell(method, left(share)) for method in methods),
            *(starred(gaps[share, rival]) for rival in rivals),
        ]
        for share in shares
    ],
)

# %% [markdown]
# **No conclusion follows.** The upper curves lie on each other, and in the lower panel all intervals from 2 to 10 per cent hold zero.
# Without rejection SGHMC errs less than the last network, by 0.18 points; with $p = 0.01$ and so many comparisons that is not decided. From 2 to 10 per cent rejected it errs *more* than the path average, and that may be luck as well.

# %% tags=["hide-input"]
claim(
    "Rejection: of the sixteen tests none is decided",
    not any(gaps[share, rival].decided for share in shares for rival in rivals),
    because="the stored result",
    kind="stored",
)
claim(
    "Rejection of 2 to 10 per cent, against the path average: shares at which SGHMC "
    "has the larger error, of four",
    sum(
        (values(sghmc, left(s)) - values(path, left(s))).mean() > 0
        for s in (0.02, 0.03, 0.05, 0.1)
    ),
    near=4,
    within=0,
    because="the stored result, means of five seeds",
    kind="stored",
)
claim(
    "Rejection of 2 to 10 per cent, against the path average: the least p-value",
    min(gaps[share, path].p_value for share in (0.02, 0.03, 0.05, 0.1)),
    at_least=0.1,
    because="the stored result, not even corrected",
    kind="stored",
)
claim(
    "Rejection of 2 to 10 per cent, both rivals: all eight intervals hold zero",
    all(
        gaps[share, rival].low < 0 < gaps[share, rival].high
        for share in (0.02, 0.03, 0.05, 0.1)
        for rival in rivals
    ),
    because="the stored result",
    kind="stored",
)

# %% [markdown]
# ## Calibration
#
# How often is a network right about the digits themselves, not turned, where it says that it is 90 % sure ({numref}`fig-uncertainty-calibration`)?

# %% mystnb={"figure": {"caption": "Accuracy against confidence on the test digits, the five seeds together, in ten bins of equal width with at least 100 predictions; on the grey line a network is right as often as it says.", "name": "fig-uncertainty-calibration"}, "image": {"alt": "Accuracy against confidence. The points of SGHMC's average lie above the grey diagonal, those of the optimiser's last network and path average close to it."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(4.6, 4))
axes.plot([0, 1], [0, 1], color=TRUTH)
for method, runs in methods.items():
    bins = {}
    for confidence, accuracy, count in (
        row for run in runs for row in run["reliability"]
    ):
        total = bins.setdefault(int(10 * min(confidence, 0.9999)), np.zeros(3))
        total += count * np.array([confidence, accuracy, 1])
    points = [b[:2] / b[2] for _, b in sorted(bins.items()) if b[2] >= 100]
    axes.plot(*zip(*points, strict=True), **look(method), marker="o", ms=4)
    axes.lines[-1].set_label(WORDS[method])
axes.set(xlabel="confidence", ylabel="accuracy", xlim=(0.2, 1.02), ylim=(0.2, 1.02))
axes.legend()
plt.show()

# %% [markdown]
# On the digits the optimiser says what is true: its confidence is close to its accuracy.
# SGHMC's average is too modest: it is right more often than it says.

# %% tags=["hide-input"]
for rival in rivals:
    calibration = turned(0, "calibration_error")
    claim(
        f"Calibration error on the digits, SGHMC less the {WORDS[rival]}",
        (values(sghmc, calibration) - values(rival, calibration)).mean(),
        at_least=0.01,
        because="the stored result, means of five seeds",
        kind="stored",
    )
    claim(
        f"Calibration error on the digits, SGHMC against the {WORDS[rival]}: p-value",
        gaps[(0, "calibration_error"), rival].p_value,
        at_most=1e-4,
        because="both tests of the stored result",
        kind="stored",
    )

# %% [markdown]
# ## Turning the digits
#
# A turned digit is still a digit, but fewer and fewer of the training digits look like it ({numref}`fig-uncertainty-digits`).
# An honest prediction loses confidence as fast as it loses accuracy. {numref}`fig-uncertainty-turned` shows that none of the three does, and that in error and log loss the order of the curves changes between 45° and 90°.

# %% mystnb={"figure": {"caption": "Three digits as the networks see them, turned by 0 to 90 degrees.", "name": "fig-uncertainty-digits"}, "image": {"alt": "Three rows of seven pictures: a 2, a 4 and a 7, each upright on the left and turned further anticlockwise until it lies on its side on the right."}} tags=["hide-input"]
_, test = digits()
figure, panels = plt.subplots(3, 7, figsize=(5.4, 2.6))
for row, digit in zip(panels, (2, 4, 7), strict=True):
    first = int((test.targets == digit).nonzero()[0])
    one = Data(test.inputs[first : first + 1], test.targets[first : first + 1])
    for axes, angle in zip(row, result["angles"], strict=True):
        picture = turn(one, angle).inputs.view(28, 28)
        axes.imshow(picture, cmap="gray_r")
        axes.axis("off")
        if digit == 2:
            axes.set_title(f"{angle}°", fontsize=9)
plt.show()

# %% mystnb={"figure": {"caption": "Error, log loss and calibration error on the test digits, turned by an angle: mean of five seeds, and a band from the least to the largest. The grey line is the log loss of a prediction that knows nothing and says so, log 10.", "name": "fig-uncertainty-turned"}, "image": {"alt": "Three panels against the angle. The error rises from below two to more than eighty per cent for all three methods alike. The log loss rises to between five and six; SGHMC's is lowest near 45 degrees and highest at 90. The calibration error of SGHMC's average is lowest from 30 degrees on."}} tags=["hide-input"]
figure, panels = plt.subplots(3, 1, figsize=(5.4, 7), sharex=True)
names = {
    "error": "error",
    "log_loss": "log loss (nats)",
    "calibration_error": "calibration error",
}
for axes, (score, name) in zip(panels, names.items(), strict=True):
    for method in methods:
        curves = np.stack([values(method, turned(a, score)) for a in result["angles"]])
        axes.plot(result["angles"], curves.mean(1), **look(method), marker="o", ms=3)
        axes.lines[-1].set_label(WORDS[method])
        axes.fill_between(
            result["angles"],
            curves.min(1),
            curves.max(1),
            color=look(method)["color"],
            alpha=0.2,
        )
    axes.set_ylabel(name)
panels[1].axhline(math.log(10), color=TRUTH, zorder=0)
panels[0].legend()
panels[2].set(xlabel="angle (degrees)", xticks=result["angles"])
plt.show()

# %% [markdown]
# It matters at which angle one looks. Here are two of them, with all the tests: two angles, four scores, two rivals, sixteen tests.

# %% tags=["hide-input"]
show_table(
    ["angle, score", *(WORDS[m] for m in methods), "p, last", "p, path"],
    [
        [
            f"{angle}°, {name}",
            *(cell(method, turned(angle, score)) for method in methods),
            *(starred(gaps[(angle, score), rival]) for rival in rivals),
        ]
        for angle in (45, 90)
        for score, name in SCORES.items()
    ],
)

# %% [markdown]
# **At 45° the samples help.** SGHMC's average is ahead on all four scores, and on log loss (1.77 against 2.02 and 1.96), Brier score and calibration the tests decide it; on error they leave it open.
#
# **At 90° it is another picture.** SGHMC's average errs more often than both rivals, and its log loss is the worst of the three: 5.73, against 5.45 for the last network and 5.27 for the path average. The tests leave these four comparisons open, although three of the four intervals leave zero out.
# It is still the least overconfident, and ahead on the Brier score and on calibration, which is decided. How can that be?
# The Brier score never exceeds two, however wrong a prediction is; log loss asks how little was left for the right class. Here $e^{-5.73} = 0.003$, the geometric mean of the probabilities given to the right class, is less than $e^{-5.27} = 0.005$.
# The average is less sure, and its doubt does not go to the right class.
#
# In log loss and in the Brier score all three do worse at 90° than a prediction that knows nothing and says so, which has 2.3 and 0.9.
# A posterior knows what the data leave open *within the model*, and nothing in the model says that digits may lie down.

# %% tags=["hide-input"]
claim(
    "At 45°: the largest difference of SGHMC from a rival, over all scores",
    max(gaps[(45, score), rival].mean for score in SCORES for rival in rivals),
    at_most=-0.01,
    because="the stored result: SGHMC is ahead in each of eight comparisons",
    kind="stored",
)
claim(
    "At 45°, log loss, Brier score and calibration: all six tests decide",
    all(gaps[(45, s), rival].decided for s in list(SCORES)[1:] for rival in rivals),
    because="both tests of the stored result, by Holm's procedure",
    kind="stored",
)
claim(
    "At 45°, error: open against both",
    not any(gaps[(45, "error"), rival].decided for rival in rivals),
    because="both tests of the stored result, by Holm's procedure",
    kind="stored",
)
claim(
    "At 90°, error and log loss: the least difference of SGHMC from a rival",
    min(gaps[(90, s), rival].mean for s in ("error", "log_loss") for rival in rivals),
    at_least=0.01,
    because="the stored result: SGHMC is behind in each of four comparisons",
    kind="stored",
)
claim(
    "At 90°, log loss of SGHMC less that of the path average",
    gaps[(90, "log_loss"), path].mean,
    at_least=0.4,
    because="the stored result, mean of five seeds",
    kind="stored",
)
claim(
    "At 90°, error and log loss against both rivals: open, and three of the four "
    "intervals leave zero out",
    not any(gaps[(90, s), rival].decided for s in list(SCORES)[:2] for rival in rivals)
    and sum(gaps[(90, s), r].low > 0 for s in list(SCORES)[:2] for r in rivals) == 3,
    because="both tests of the stored result",
    kind="stored",
)
claim(
    "At 90°, Brier score and calibration: the largest difference of SGHMC from a rival",
    max(
        gaps[(90, score), rival].mean
        for score in ("brier", "calibration_error")
        for rival in rivals
    ),
    at_most=-0.09,
    because="the stored result: there SGHMC is ahead",
    kind="stored",
)
claim(
    "At 90°, Brier score and calibration: all four tests decide",
    all(
        gaps[(90, score), rival].decided
        for score in ("brier", "calibration_error")
        for rival in rivals
    ),
    because="both tests of the stored result",
    kind="stored",
)
claim(
    "Log loss at 90°, the least of the methods",
    min(values(method, turned(90, "log_loss")).mean() for method in methods),
    at_least=5,
    because="log 10 = 2.3 is what a prediction gets that knows nothing and says so",
    kind="stored",
)

# %% [markdown]
# ## One network, an ensemble, or samples?
#
# The rivals so far were one run of an optimiser at a constant rate. A practitioner would let the rate fall to zero. And with the cost of five runs one can train five networks and average their predictions: an *ensemble*.
# `python -m experiments run falling` has both, with the network, the kind of prior and the 800 passes of this page; {doc}`/book/studies/mnist` tells how rate and precision were chosen.
#
# * *Falling rate*: the last network of a run, with five seeds. These runs draw their random numbers in another order than those above, so that equal seeds make no pairs; the larger of the two $p$-values is safe all the same.
# * *Ensemble*: these five last networks together, for five times the gradients. There is one ensemble and not five, so that it has no spread and no $p$-value.
#
# The comparisons with the falling rate are the 14 of the table and one for each of the eight shares of rejected digits; a star marks what is decided.

# %% tags=["hide-input"]
questions = {
    "letters, area by entropy": "letters",
    "clothes, area by entropy": "clothes",
    **{
        f"{angle}°, {name}": (angle, score)
        for angle in (0, 45, 90)
        for score, name in SCORES.items()
    },
}
many = {  # for what predicts with more than one network
    f"{thing}, area by disagreement": area(thing, "auroc_disagreement")
    for thing in ("letters", "clothes")
}
show_table(
    ["", WORDS[sghmc], "falling rate", "p", "ensemble of five"],
    [
        [name, cell(sghmc, value, 4), "", "", f"{values(five, value)[0]:.4f}"]
        for name, value in many.items()
    ]
    + [
        [
            name,
            *(cell(method, VALUES[what], 4) for method in (sghmc, falling)),
            starred(gaps[what, falling]),
            f"{values(five, VALUES[what])[0]:.4f}",
        ]
        for name, what in questions.items()
    ],
)
print(who_ran(late))

# %% [markdown]
# **A falling rate alone makes no better alarm.** On letters its area is 0.006 above that of the last network at a constant rate, 95 per cent interval $-0.011$ to 0.024, and the verdicts are much the same as above.
# The samples win on letters, and at 45° and at 90° on Brier score and calibration. All of this is decided. Their smaller log loss at 45° and their larger one at 90° stay open, and so do clothes and rejection.
# On the upright digits the falling rate is ahead, decided, on log loss and calibration. At 90° it has the smaller error as well, which stays open.
#
# **An ensemble of five has a larger area on letters and a smaller log loss than its one network, and on letters is no match for the samples.** By entropy its area goes a fifth of the way from the one network to SGHMC's average. By disagreement it does better, and stays behind SGHMC there too.
# Its networks are too much alike: a seventh of its entropy on letters is disagreement, where SGHMC's average has four fifths.
# On log loss it is ahead on the upright digits and at 90°, and behind at 45°. Each of these comparisons is the same with all five runs of SGHMC; but five runs against one ensemble are no test.
#
# With little time it can be otherwise. In the tables of {doc}`/book/studies/neighbours_on_networks` each method has 60 passes, with another network and another prior. The chain is still on its way there, and the ensemble is ahead on the mean, on letters too.
# {doc}`/book/practice/what_should_i_use` weighs all of this against its price.

# %% tags=["hide-input"]
wider = gap(*(values(method, area("letters")) for method in (falling, point)))
claim(
    "Area for letters, last network, falling rate less constant rate: distance of the "
    "ends of its 95 % interval from −0.011 and 0.024",
    max(abs(wider.low + 0.011), abs(wider.high - 0.024)),
    at_most=0.0005,
    because="the stored results, the wider interval of the paired test and Welch's",
    kind="stored",
)
won, lost = set(), set()
for name, what in questions.items():
    found = gaps[what, falling]
    if found.decided:
        better = (found.mean > 0) == ("area" in name)  # of scores less is better
        (won if better else lost).add(name)
claim(
    "Against the falling rate the samples win on letters, and at 45° and 90° on Brier "
    "score and calibration",
    won
    == {
        "letters, area by entropy",
        *(
            f"{angle}°, {SCORES[score]}"
            for angle in (45, 90)
            for score in ("brier", "calibration_error")
        ),
    },
    because="both tests of the stored results, by Holm's procedure",
    kind="stored",
)
claim(
    "They lose upright on log loss and calibration",
    lost == {f"0°, {SCORES[s]}" for s in ("log_loss", "calibration_error")},
    because="both tests of the stored results, by Holm's procedure",
    kind="stored",
)
claim(
    "Log loss of the samples less that of the falling rate: below zero at 45° and "
    "above it at 90°",
    gaps[(45, "log_loss"), falling].mean < 0 < gaps[(90, "log_loss"), falling].mean,
    because="the stored results, means of five seeds",
    kind="stored",
)
claim(
    "Rejection, SGHMC against the falling rate: the least of eight p-values",
    min(gaps[share, falling].p_value for share in shares),
    at_least=0.05,
    because="both tests of the stored results: open, even for one test",
    kind="stored",
)
one, samples = (values(method, area("letters")).mean() for method in (falling, sghmc))
claim(
    "Letters: part of the way from one network to SGHMC that the ensemble goes",
    (values(five, area("letters"))[0] - one) / (samples - one),
    near=0.22,
    within=0.02,
    because="the stored results; one ensemble",
    kind="stored",
)
claim(
    "Share of the ensemble's entropy on letters that is disagreement",
    area("letters", "disagreement")(all_runs[five][0])
    / area("letters", "mean")(all_runs[five][0]),
    near=0.144,
    within=0.005,
    because="the stored result; one ensemble",
    kind="stored",
)


def all_above(value):
    """Whether all five runs of SGHMC have more than the ensemble."""
    return (values(sghmc, value) > values(five, value)[0]).all()


def all_below(value):
    """Whether all five runs of SGHMC have less than the ensemble."""
    return (values(sghmc, value) < values(five, value)[0]).all()


claim(
    "Each run of SGHMC has larger areas for letters than the ensemble, whose area by "
    "disagreement is its larger, a larger log loss upright and at 90°, and a smaller "
    "one at 45°",
    all(
        all_above(value)
        for value in (
            area("letters"),
            area("letters", "auroc_disagreement"),
            turned(0, "log_loss"),
            turned(90, "log_loss"),
        )
    )
    and all_below(turned(45, "log_loss"))
    and area("letters", "auroc_disagreement")(all_runs[five][0])
    > area("letters")(all_runs[five][0]),
    because="the stored results; one ensemble, so that no test is made",
    kind="stored",
)
near = read_result(RESULTS / "neighbours.json")["methods"]
short = {
    (name, what): np.mean([value(run) for run in near[name]["runs"]])
    for name in ("SGHMC", "ensemble")
    for what, value in (
        ("letters", lambda run: run["auroc"]["letters"]),
        ("error", lambda run: run["scores"]["error"]),
        ("log loss", lambda run: run["scores"]["log_loss"]),
    )
}
claim(
    "60 passes: the ensemble is ahead of SGHMC on letters by 0.03 and on error by 0.9 "
    "points, and on log loss",
    abs(short["ensemble", "letters"] - short["SGHMC", "letters"] - 0.03) < 0.005
    and abs(short["SGHMC", "error"] - short["ensemble", "error"] - 0.009) < 0.0005
    and short["ensemble", "log loss"] < short["SGHMC", "log loss"],
    because="the stored result of another network, means of five seeds",
    kind="stored",
)

# %% [markdown]
# ## The same code, live
#
# In small: networks trained on 3,200 digits, the reservoir of a short run, and letters drawn from the fonts of the machine that built this page.

# %%
temperature = 1.0  # of SGHMC
train, _, test = split_digits()
network = multilayer_perceptron([784, 100, 10], "sigmoid")
size = {"rounds": 100, "burn_in": 20, "batch_size": 100, "keep_every": 10}
rate = 0.1 / len(train.targets)
plans = {
    sghmc: Plan(Hamiltonian(rate, 0.01, temperature), **size),
    point: Plan(Hamiltonian(rate, 0.01, temperature=0.0), Prior(1.0), **size),
}
networks = {}
for method, plan in plans.items():
    run = Run(plan, network, train, test)
    run.go(progress=False)
    networks[method] = torch.stack(run.reservoir)
networks |= {path: networks[point], point: run.chain.state.position}
posterior, others = NetworkPosterior(network, *test), {"letters": letters()}
live = {
    method: what_they_say(posterior, positions, test, others)["entropy"]
    for method, positions in networks.items()
}

# %% tags=["hide-input"]
claim(
    "Live: area for letters, by the entropy of SGHMC's average",
    live[sghmc]["letters"]["auroc"],
    near=0.87,
    within=0.075,
    because="it was 0.850 to 0.891 over ten seeds",
)
claim(
    "Live: area for letters, SGHMC less the path average",
    live[sghmc]["letters"]["auroc"] - live[path]["letters"]["auroc"],
    at_most=0.05,
    because="at full scale it is 0.09; in small it was −0.033 to 0.008 over ten seeds",
)
claim(
    "Live: area for letters, SGHMC less the last network",
    live[sghmc]["letters"]["auroc"] - live[point]["letters"]["auroc"],
    at_most=0.07,
    because="at full scale it is 0.1; in small it was −0.034 to 0.018 over twenty",
)
claim(
    "Live: disagreement of SGHMC's networks, letters over digits",
    live[sghmc]["letters"]["disagreement"] / live[sghmc]["digits"]["disagreement"],
    at_least=1.8,
    because="nothing in the data told them what to say; near 2.8 over several seeds",
)

# %% [markdown]
# **In small this lead shrinks, or is gone.** On letters SGHMC's average is 0.05 ahead of the path average at most; over ten seeds, which are not stored, it was from 0.033 behind to 0.008 ahead.
# With fifteen times fewer digits SGHMC's networks disagree about digits too.
# But in {doc}`/book/tutorial/bayesian_learning`, with another network and another prior, its average is the more careful one on letters with 4,000 digits.
# Test on your own data before you pay for samples.
#
# | where | do samples help? | how sure |
# | --- | --- | --- |
# | letters, 50,000 training digits, 800 passes: one network, at a constant or a falling rate | yes | decided |
# | letters, the same, against an ensemble of five at five times the gradients | yes | one ensemble, no test |
# | clothes, against one network | it seems so | open |
# | rejecting unsure digits | no conclusion | open |
# | log loss on the digits, against a falling rate | no | decided |
# | calibration on the digits | no, too modest | decided |
# | digits turned by 45° | yes | decided on Brier score and calibration, and on log loss against one network at a constant rate; open on error |
# | digits turned by 90°: log loss | it seems not: worse than the path average and a falling rate | open |
# | digits turned by 90°: Brier score, calibration | yes | decided |
# | letters, 60 passes, against an ensemble of five | no | not tested here |
# | letters, 3,200 training digits | it seems not | ten seeds of the live run above, not stored |
#
# ## In practice
#
# * Ask of every advantage: does it hold against the path average and a rate that falls, over seeds, in each place where you will use it?
# * Report a proper score beside every calibration curve: a network that always says 10 % is perfectly calibrated on balanced digits.
# * Entropy is a cheap alarm for strange inputs, not a reliable one: with one network a fifth of the letters still got a sure answer.
# * An ensemble of five is the simple way to a better alarm, if you can train five times. On letters expect less of it than of samples from a long chain, and more than of a short one.
# * Thirty networks are 10 MB and thirty times the price of a prediction. {ref}`how-many-to-keep` says how few will do.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | prediction to use | $\bar P = E_\theta P(y \mid x, \theta)$ |
# | disagreement | $\mathcal D = \mathcal H(\bar P) - E_\theta\mathcal H(P)$, {eq}`eq-disagreement` |
# | the same as a divergence | $\mathcal D = E_\theta\sum_kP_k\log(P_k/\bar P_k) \ge 0$, {prf:ref}`thm-disagreement` |
# | area under the ROC curve | $P(s_{\text{other}} > s_{\text{digit}}) + \tfrac12P(s_{\text{other}} = s_{\text{digit}})$, {prf:ref}`def-auroc` |
#
# ## Change it
#
# * Set `apart = torch.tensor([[1.0, 0.0], [1.0, 0.0]])` in the first picture: two networks that are sure of the same class. The claim on the lower row shows ✗, for nothing is left to disagree about.
# * Set `gaps = family(pairs)` to `gaps = {key: family({key: pair})[key] for key, pair in pairs.items()}`: each test is a family of its own. The claim that no test of the rejection is decided shows ✗, for four of the sixteen look decided when nobody counts them.
# * Set `temperature = 0.01` in the live cell: colder networks disagree no more about letters than about digits, and the area falls. The claims on both show ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-uncertainty-write
#
# Write it yourself: the area of {prf:ref}`def-auroc`, from all pairs, and the disagreement of {prf:ref}`def-disagreement` for many inputs at once. Tasks *uncertainty* and *separation* of assignment 4 ({doc}`/book/practice/teaching`) go on from here.
#
# ~~~python
# def my_area(inside, outside):
#     """Probability that outside scores higher than inside; ties count half."""
#     ...
#
#
# def my_disagreement(probabilities):
#     """(networks, inputs, classes) -> (inputs,)."""
#     ...
# ~~~
# ```
#
# ```{solution} ex-uncertainty-write
# :class: dropdown
#
# The next cell compares both with the package. `xlogy(p, p)` is $p\log p$, and zero at zero.
# ```


# %% tags=["hide-input"]
def my_area(inside, outside):
    """Probability that outside scores higher than inside; ties count half."""
    gap = outside[:, None] - inside[None, :]
    return float(((gap > 0).double() + 0.5 * (gap == 0)).mean())


def my_disagreement(probabilities):
    """(networks, inputs, classes) -> (inputs,)."""

    def entropy(p):
        return -torch.xlogy(p, p).sum(-1)

    return entropy(probabilities.mean(0)) - entropy(probabilities).mean(0)


numbers_drawn = torch.Generator().manual_seed(0)
inside = torch.randint(9, (50,), generator=numbers_drawn).double()
outside = torch.randint(3, 12, (60,), generator=numbers_drawn).double()
several = torch.rand(5, 7, 10, generator=numbers_drawn).double().softmax(-1)
claim(
    "Area from all pairs less that of the package",
    my_area(inside, outside) - area_under_roc(inside, outside),
    near=0,
    within=1e-9,
    because="the package sorts, and counts the same pairs",
    kind="exact",
)
claim(
    "Largest difference of the disagreement from that of the chapter, seven inputs",
    max(
        abs(float(mine) - disagreement(several[:, i]))
        for i, mine in enumerate(my_disagreement(several))
    ),
    at_most=1e-9,
    because="the same formula",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-uncertainty-auroc
#
# Show that the area under the ROC curve does not change when the score is replaced by an increasing function of it.
# ```
#
# ```{solution} ex-uncertainty-auroc
# :class: dropdown
#
# It depends only on the order of each pair of scores, and an increasing function keeps every order and every tie.
# ```
#
# ```{exercise}
# :label: ex-uncertainty-bound
#
# How large can the disagreement of {prf:ref}`def-disagreement` be for ten classes, and of ten networks for any number of classes?
# ```
#
# ```{solution} ex-uncertainty-bound
# :class: dropdown
#
# $\mathcal D \le \mathcal H(\bar P) \le \log 10$, with equality when each network is certain and all classes are named equally often. As a mutual information it is also at most the entropy of the network's number, $\log S$ for $S$ networks: again $\log 10$ for ten.
# ```
#
# ```{exercise}
# :label: ex-uncertainty-brier
#
# A prediction gives the right one of ten classes the probability 0.003. Between which values can its Brier score $\sum_k(P_k - [k = y])^2$ lie, and what is its log loss? Explain why the two scores rank the methods differently at 90°.
# ```
#
# ```{solution} ex-uncertainty-brier
# :class: dropdown
#
# The right class adds $0.997^2 = 0.994$. The other nine share 0.997: their squares add least when they are equal, $0.997^2/9 = 0.110$, and most when one class has it all, 0.994. So the score is between 1.10 and 1.99, and the log loss is $-\log 0.003 = 5.81$ in every case.
# Brier's score rewards doubt among the *wrong* classes, and log loss does not see it. SGHMC's average spreads more, and gives the right class no more.
# ```
#
# ## Further reading
#
# {cite:t}`guo2017` on calibration, {cite:t}`ovadia2019` on uncertainty under shift, {cite:t}`neal1996` on predictive distributions of networks.
