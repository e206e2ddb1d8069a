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
# # What a network knows that it does not know
#
# Networks trained on digits look at letters, at clothes and at digits lying on their side: one optimised network, and thirty that SGHMC drew.
#
# **You will learn** to
#
# * split the entropy of an averaged prediction into what every network is unsure of and what the networks disagree about,
# * measure whether an entropy tells digits from what is none, by the area under the ROC curve,
# * read error against rejection, and calibration under a shift that nobody trained for.
#
# **You will need** {doc}`/book/bayesian_networks/mnist`.

# %%
import math
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import torch

from experiments import mnist, uncertainty
from experiments.comparison import make_run
from experiments.options import Options
from experiments.results import RESULTS, read_result, who_ran
from sgmc import claim
from sgmc.figures import COLOURS, TRUTH, use_style
from sgmc.play import play

use_style()
play()

# %% [markdown]
# ## Two kinds of not knowing
#
# Draw a network $\theta$ from the posterior and let it predict: $P(y \mid x, \theta)$. Write $\bar P = E_\theta P(y \mid x, \theta)$ for the average, which is the prediction to use, and $\mathcal H(P) = -\sum_k P_k\log P_k$ for the entropy.
#
# ```{prf:definition} Disagreement
# :label: def-disagreement
#
# The disagreement of the networks about $x$ is
#
# $$
# \mathcal D(x) = \mathcal H(\bar P) - E_\theta\,\mathcal H\bigl(P(\cdot \mid x, \theta)\bigr).
# $$ (eq-disagreement)
# ```
#
# ```{prf:theorem}
# :label: thm-disagreement
#
# $\mathcal D(x)$ is the mutual information of the label and the network, given $x$ and the data. It is not negative, and zero only when almost all networks predict the same.
# ```
#
# ```{prf:proof}
# $\mathcal D(x) = E_\theta\sum_k P_k(\theta)\log\frac{P_k(\theta)}{\bar P_k}$, because $E_\theta\sum_kP_k(\theta)\log\bar P_k = \sum_k\bar P_k\log\bar P_k$. This is the mean Kullback–Leibler divergence of $P(\cdot \mid x, \theta)$ from $\bar P$, which is how mutual information is defined; a divergence is at least zero, and zero only for equal laws.
# ```
#
# A smudged 4 that could be a 9 makes each network unsure: entropy without disagreement. A letter is something else: each network may be sure of itself, and the networks need not agree, for no digit told them what to say. A single network has no disagreement to show.
#
# ```{prf:definition} Area under the ROC curve
# :label: def-auroc
#
# Given a score for digits and for other things, the area under the ROC curve is the probability that a random other thing scores higher than a random digit, ties counting half {cite:p}`fawcett2006`. A useless score has ½, a perfect one 1.
# ```
#
# ## Letters and clothes
#
# The networks are those of {doc}`/book/bayesian_networks/mnist`, trained on 50,000 digits: the last network of SGD with momentum, and the average over thirty networks of SGHMC, one every 25 rounds.
# So that nobody takes for Bayes what averaging does, thirty networks along the path of SGD with momentum are averaged too.
# They see the 10,000 test digits, 10,000 letters A to J of notMNIST {cite:p}`bulatov2011`, and the 10,000 test images of Fashion-MNIST {cite:p}`xiao2017`. All of them must be called a digit; the question is how surely ({numref}`fig-uncertainty-entropy`).

# %%
result = read_result(RESULTS / "uncertainty.json")
sghmc, point = "SGHMC", "SGD with momentum"
methods = result["methods"]


def style(method):
    """An algorithm's colour; dotted where only the averaging differs."""
    return {"color": COLOURS[method.split(",")[0]], "ls": ":" if "," in method else "-"}


def mean(method, value):
    """Average over the seeds."""
    return sum(value(run) for run in methods[method]) / len(methods[method])


def cell(method, value, digits=3, factor=1.0):
    """Mean and standard deviation over the seeds."""
    spread = torch.tensor(
        [value(run) for run in methods[method]], dtype=torch.float64
    ).std()
    return f"{factor * mean(method, value):.{digits}f} ± {factor * spread:.{digits}f}"


print(f"AUROC, mean and standard deviation over {len(methods[sghmc])} seeds")
print(f"{'':28} {'by entropy':^31} {'by disagreement':^31}")
print(f"{'':28} " + " ".join(f"{thing:>15}" for thing in ("letters", "clothes") * 2))
for method in methods:
    pairs = [
        (t, s) for s in ("auroc", "auroc_disagreement") for t in ("letters", "clothes")
    ]
    print(
        f"{method:28} "
        + " ".join(
            f"{cell(method, lambda run, t=t, s=s: run['entropy'][t][s]):>15}"
            for t, s in pairs
        )
    )

print("\nmean entropy")
print(
    f"{'':28} " + " ".join(f"{thing:>15}" for thing in ("digits", "letters", "clothes"))
)
for method in methods:
    texts = [
        cell(method, lambda run, t=thing: run["entropy"][t]["mean"])
        for thing in ("digits", "letters", "clothes")
    ]
    print(f"{method:28} " + " ".join(f"{text:>15}" for text in texts))

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-uncertainty-entropy", "caption": "Entropy of the predictions on digits, letters and clothes; a line for each seed. The largest possible entropy is log 10."}}
figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.2), sharey=True)
edges = torch.linspace(0, math.log(10), uncertainty.BINS + 1)
for axes, thing in zip(panels, ("digits", "letters", "clothes"), strict=True):
    for method, runs in methods.items():
        for number, run in enumerate(runs):
            counts = torch.tensor(run["entropy"][thing]["histogram"]).float()
            axes.stairs(
                counts / counts.sum(),
                edges,
                **style(method),
                lw=1.4,
                label=method if number == 0 else None,
            )
    axes.set(
        title=thing,
        xlabel=r"$\mathcal{H}(\bar P)$ (nats)",
        yscale="log",
        ylim=(1e-4, 1),
    )
panels[0].set_ylabel("share of the images")
panels[0].legend(fontsize=8)
figure.text(0.01, -0.05, who_ran(result), size=6, color="0.4")
plt.show()

# %% tags=["hide-input"]
for thing in ("letters", "clothes"):
    claim(
        f"Area under the ROC curve for {thing}, by entropy, SGHMC less the optimised "
        "network",
        mean(sghmc, lambda run, t=thing: run["entropy"][t]["auroc"])
        - mean(point, lambda run, t=thing: run["entropy"][t]["auroc"]),
        at_least=0.02,
        because=(
            "the stored result; with 10,000 images on each side such an area has a "
            "standard error below 0.005"
        ),
        kind="stored",
    )
claim(
    "Area under the ROC curve for letters, by entropy, SGHMC less the average along "
    "the optimiser's path",
    mean(sghmc, lambda run: run["entropy"]["letters"]["auroc"])
    - mean(
        "SGD with momentum, averaged", lambda run: run["entropy"]["letters"]["auroc"]
    ),
    at_least=0.02,
    because=(
        "the stored result; an optimiser's networks are too much alike for their "
        "average to be unsure"
    ),
    kind="stored",
)
claim(
    "Share of SGHMC's entropy on letters that is disagreement",
    mean(
        sghmc,
        lambda run: (
            run["entropy"]["letters"]["disagreement"]
            / run["entropy"]["letters"]["mean"]
        ),
    ),
    at_least=0.6,
    because=(
        "the stored result: single networks are sure of themselves, and not of one mind"
    ),
    kind="stored",
)

# %% [markdown]
# This is where the samples earn their keep. On the test digits they had little to show ({doc}`/book/bayesian_networks/mnist`); before letters and clothes it is far more often unsure, and what makes it so is disagreement, of which a single network has none.

# %% [markdown]
# ## Rejecting what is unsure
#
# A classifier that may say *I do not know* hands its least sure inputs to a person. How fast does the error among the rest fall ({numref}`fig-uncertainty-rejection`)?

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-uncertainty-rejection", "caption": "Left: error on the test digits that are left when those of largest entropy are rejected. Right: accuracy against confidence, in bins of equal width with at least 20 digits; on the grey line a network is right as often as it says."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.8, 3.4))
right.plot([0, 1], [0, 1], color=TRUTH)
for method, runs in methods.items():
    for number, run in enumerate(runs):
        look = {**style(method), "lw": 1.4, "label": method if number == 0 else None}
        left.plot(
            [100 * share for share in result["shares"]],
            [100 * error for error in run["rejection"]],
            marker="o",
            ms=3,
            **look,
        )
        shown = [
            (confidence, accuracy)
            for confidence, accuracy, count in run["reliability"]
            if count >= 20
        ]
        right.plot(*zip(*shown, strict=True), marker="o", ms=3, **look)
left.set(xlabel="digits rejected (%)", ylabel="error on the rest (%)")
right.set(xlabel="confidence", ylabel="accuracy", xlim=(0.2, 1.02), ylim=(0.2, 1.02))
left.legend()
figure.text(0.01, -0.05, who_ran(result), size=6, color="0.4")
plt.show()

# %% [markdown]
# ## Turning the digits
#
# A turned digit is still a digit, but fewer and fewer of the training digits look like it. An honest prediction loses confidence as fast as it loses accuracy ({numref}`fig-uncertainty-turned`).

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-uncertainty-turned", "caption": "Error, log loss and calibration error on the test digits, turned by an angle."}}
figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.2))
labels = {
    "error": "error",
    "log_loss": "log loss (nats)",
    "calibration_error": "calibration error",
}
for axes, (score, label) in zip(panels, labels.items(), strict=True):
    for method, runs in methods.items():
        for number, run in enumerate(runs):
            values = [turned[score] for turned in run["turned"]]
            axes.plot(
                result["angles"],
                values,
                marker="o",
                ms=3,
                **style(method),
                label=method if number == 0 else None,
            )
    axes.set(xlabel="angle (degrees)", ylabel=label)
panels[1].legend(fontsize=7)
figure.text(0.01, -0.05, who_ran(result), size=6, color="0.4")
plt.show()

# %%
print(
    f"{'':28} {'angle':>6} {'error %':>15} {'log loss':>15} {'Brier':>15} "
    f"{'calibration':>15}"
)
for method in methods:
    for number in (0, 3, 6):
        texts = [
            cell(
                method,
                lambda run, n=number, s=score: run["turned"][n][s],
                digits,
                factor,
            )
            for score, digits, factor in (
                ("error", 2, 100),
                ("log_loss", 3, 1),
                ("brier", 3, 1),
                ("calibration_error", 4, 1),
            )
        ]
        print(
            f"{method:28} {result['angles'][number]:5}° "
            + " ".join(f"{text:>15}" for text in texts)
        )

# %% tags=["hide-input"]
claim(
    "Calibration error at 45 degrees, SGHMC less the optimised network",
    mean(sghmc, lambda run: run["turned"][3]["calibration_error"])
    - mean(point, lambda run: run["turned"][3]["calibration_error"]),
    at_most=-0.04,
    because="the stored result; it has a standard error below 0.01",
    kind="stored",
)
claim(
    "Log loss of SGHMC at 90 degrees",
    mean(sghmc, lambda run: run["turned"][-1]["log_loss"]),
    at_least=math.log(10),
    because="log 10 is what a prediction gets that knows nothing and says so",
    kind="stored",
)

# %% [markdown]
# The average loses confidence sooner than the point estimate, and not soon enough: for digits on their side both predict worse than one who knows nothing and says so.
# A posterior knows what the data leave open *within the model*, and nothing in the model says that digits may lie down.

# %% [markdown]
# ## The same code, live
#
# In small: networks trained on 3,200 digits, the reservoir of a short run, and letters drawn from the fonts of the machine that built this page.

# %%
with TemporaryDirectory() as folder:
    options = Options(
        data=Path(folder), runs=Path(folder), small=True, seeds=1, progress=False
    )
    prepared = mnist.prepare(options)
    for method in (sghmc, point):
        plan = mnist.settings(prepared, small=True)[method][0]
        make_run(plan, prepared, options).go(progress=False)
    *_, live = uncertainty.run(options, uncertainty.prepare(options))
live = {method: runs[0] for method, runs in live["methods"].items()}

# %% tags=["hide-input"]
claim(
    "Live: area under the ROC curve for letters, by the entropy of SGHMC's average",
    live[sghmc]["entropy"]["letters"]["auroc"],
    at_least=0.8,
    because="it is near 0.87 over several seeds",
)
claim(
    "Live: disagreement of SGHMC's networks, letters over digits",
    live[sghmc]["entropy"]["letters"]["disagreement"]
    / live[sghmc]["entropy"]["digits"]["disagreement"],
    at_least=1.8,
    because=(
        "nothing in the data told the networks what to say about letters; it is near "
        "2.8 over several seeds"
    ),
)

# %% [markdown]
# ## In practice
#
# * Report a proper score beside every calibration curve: a network that always says 10 % is perfectly calibrated on balanced digits.
# * Entropy is a cheap alarm for strange inputs, not a reliable one: look at how many letters still get a sure answer.
# * Thirty networks are 10 MB and thirty times the price of a prediction. Ask how much of the gain five of them bring.
#
# ## Exercises
#
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
# :label: ex-uncertainty-few
#
# In the live cell, average over the first, the first two, the first four and all networks of the reservoir. How does the log loss fall?
# ```
#
# ```{solution} ex-uncertainty-few
# :class: dropdown
#
# Slice `positions` before `uncertainty.look`. The first few networks bring most of the gain: the excess of the log loss falls about like $1/S$, as the variance of the average does.
# ```
#
# ## Further reading
#
# {cite:t}`guo2017` on calibration, {cite:t}`ovadia2019` on uncertainty under shift, {cite:t}`neal1996` on predictive distributions of networks.
