# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Do samples know what is no digit?
#
# ```{div} page-head
# Level: second course · Reading: about 18 minutes, without the exercises · Running: about 3 seconds
# ```
#
# ```{index} ! out-of-distribution detection, disagreement, ROC curve, notMNIST
# ```

# %%
import torch

from booklib.page.claims import check, near
from booklib.runs.results import Seeds
from booklib.scores.prediction import predictive_entropy
from booklib.scores.seeds import family, gap

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np

from booklib.page.claims import DECIDED, OPEN, at_least
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result, who_ran

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# A key benefit of Bayesian networks, say {cite:t}`adamday`, is "that we are not overconfident on out-of-distribution examples"; SGHMC keeps it, and they show one letter B (p. 11–12, Figure 6a).
# Does it hold?
#
# **For letters, yes: SGHMC's average gives a letter a larger entropy than a digit in a share {c}`area` of all pairs, which is {c}`letters` more than a network that was trained with a falling rate reaches. The width of the prior is not the reason: with the optimiser's prior SGHMC still has {c}`fixed`. Nor is the right noise all of it: on the report's network the wrong noise gives nearly half of the gain.**
# This share is the *area under the ROC curve*; {numref}`fig-letters-areas` has it for letters and for clothes, and brackets are 95 % intervals over fifteen seeds, each of a single comparison; *decided* allows for how many there are ({doc}`/book/studies/mnist`).
# For rejecting doubtful digits samples are no better, and on turned digits it depends on the angle.

# %%
seeds = Seeds.read("mnist_more")  # fifteen, side by side
control = Seeds.read("uncertainty_control")  # fifteen, with the priors exchanged
reported = Seeds.read("small_start")  # ten, the report's network and rates
started = Seeds.read("letters_report")  # five, and its uniform start
PREDICT = {  # whose predictions, and of which networks of the run
    "SGHMC": (seeds, "SGHMC", "kept"),
    "last network": (seeds, "SGD with momentum", "last"),
    "path average": (seeds, "SGD with momentum", "kept"),
    "falling rate": (seeds, "SGD with momentum, falling rate", "last"),
    "SGHMC, λ = 3": (control, "SGHMC, λ = 3", "kept"),
    "path average, learned λ": (control, "SGD with momentum, learned λ", "kept"),
}


def look(name, read):
    """One number of each seed, from what the networks of a method say."""
    of, method, networks = PREDICT[name]
    return of(method, lambda run: read(run["look"][networks]))


def area(thing, score="auroc"):
    return lambda said: said["entropy"][thing][score]


# %% mystnb={"figure": {"caption": "The area under the ROC curve: how often the entropy of a prediction is larger for a letter (left) or an image of clothes (right) than for a digit. Mean of fifteen seeds, from the least to the largest; one half is useless. Below the line the control: SGHMC with the optimiser's prior, and the optimiser with SGHMC's.", "name": "fig-letters-areas"}, "image": {"alt": "Two panels with six points each. For letters both SGHMC points lie at 0.99, the four optimisers between 0.88 and 0.92. For clothes SGHMC lies at 0.95 and 0.96, the optimisers between 0.85 and 0.94."}} tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(6.2, 2.8), sharey=True)
for axes, thing in zip(panels, ("letters", "clothes"), strict=True):
    for place, name in enumerate(PREDICT):
        values = look(name, area(thing))
        colour = COLOURS["SGHMC" if "SGHMC" in name else "SGD with momentum"]
        bar = [[values.mean() - values.min()], [values.max() - values.mean()]]
        axes.errorbar(values.mean(), -place, xerr=bar, fmt="o", color=colour, capsize=2)
    axes.axhline(-3.5, color=TRUTH, lw=0.8)
    axes.set(xlabel=f"area for {thing}", xlim=(0.82, 1.005))
panels[0].set_yticks([-k for k in range(len(PREDICT))], list(PREDICT))
plt.show()

# %% [markdown]
# *Before you read on: SGHMC's weights are much longer than the optimiser's, because its priors learn their width. Could that alone make it doubt letters?*
#
# | | the setting |
# | --- | --- |
# | networks | those of {doc}`/book/studies/mnist`: 784–100–10, 50,000 digits, 800 rounds, fifteen seeds; SGHMC and the path average predict with thirty networks, one every 25 rounds |
# | shown | 10,000 test digits, 10,000 letters A to J of notMNIST {cite:p}`bulatov2011`, 10,000 images of Fashion-MNIST {cite:p}`xiao2017` |
# | control | SGHMC with the optimiser's one fixed penalty $\lambda = 3$; the optimiser with the four precisions that SGHMC has learned |
# | tuned | as in {doc}`/book/studies/mnist`, on digits; nothing for letters |
# | run | `python -m experiments run mnist_more` and `uncertainty_control`, two to three minutes a run on one core; `small_start` and `letters_report`, four to five |
#
# ## Two ways not to know
#
# Write $\mathcal H(P) = -\sum_kP_k\log P_k$ for the entropy of a prediction, and $\bar P$ for the average over networks, which is the prediction to use. The average can be unsure because each network is, or because sure networks disagree:
#
# $$
# \mathcal D(x) = \mathcal H(\bar P) - \mathbb E_\theta\,\mathcal H\bigl(P(\cdot \mid x, \theta)\bigr) = \mathbb E_\theta\,\mathrm{KL}\bigl(P(\cdot \mid x, \theta) \,\Vert\, \bar P\bigr) \ge 0.
# $$ (eq-disagreement)
#
# This *disagreement* is the mutual information of the label and the network.


# %%
def disagreement(probabilities):
    """Entropy of the average minus the average entropy: (networks, classes)."""
    average = predictive_entropy(probabilities.mean(0))
    return float(average - predictive_entropy(probabilities).mean())


unsure = torch.tensor([[0.5, 0.5], [0.5, 0.5]])  # a smudged 4: both networks doubt
apart = torch.tensor([[1.0, 0.0], [0.0, 1.0]])  # a letter: each is sure
for name, networks in (("unsure", unsure), ("apart", apart)):
    entropy = float(predictive_entropy(networks.mean(0)))
    print(f"{name:7} entropy {entropy:.2f}, disagreement {disagreement(networks):.2f}")
check("apart", disagreement(apart), near(0.693, 0.001), kind="exact", digits=2)

# %% [markdown]
# Both pairs have the same entropy; only of the two sure networks is it disagreement, {c}`apart`.
# On letters a share {c}`share` of the entropy of SGHMC's average is disagreement, and {c}`share-path` of that of the path average, the average of networks along the optimiser's path. Ranked by disagreement letters have the area {c}`by-disagreement`.
#
# ## What samples know, and what not
#
# The source has one claim, letters; the other questions are ours, a family of their own. Every entry is SGHMC's average minus that of a rival. Rejected are digits with the largest entropy; except for areas, smaller is better.

# %%
QUESTIONS = {
    "clothes, area": area("clothes"),
    "error with 5 % rejected, points": lambda said: 100 * said["rejection"][5],
    "calibration error, upright": lambda said: said["turned"][0]["calibration_error"],
    "log loss, turned by 45°": lambda said: said["turned"][3]["log_loss"],
    "log loss, turned by 90°": lambda said: said["turned"][6]["log_loss"],
    "Brier score, turned by 90°": lambda said: said["turned"][6]["brier"],
}
RIVALS = ("last network", "path average", "falling rate")


def against(questions):
    """SGHMC's average minus each rival, for each question: one family."""
    return family(
        {
            f"{question}: {rival}": (look("SGHMC", read), look(rival, read))
            for question, read in questions.items()
            for rival in RIVALS
        }
    )


LETTERS = {"letters, area": area("letters")}
gaps = against(LETTERS) | against(QUESTIONS)


NESTEROV = "SGD with Nesterov momentum"


def of_report(runs, programmed, rivals):
    """The report's samplers minus networks of its optimiser: one family."""

    def area(method, networks="kept"):
        return runs(method, f"look.{networks}.entropy.letters.auroc")

    samplers = {"programmed": programmed, "right": "SGHMC"}
    return family(
        {
            (name, rival): (area(method), area(NESTEROV, rival))
            for name, method in samplers.items()
            for rival in rivals
        }
    )


small = of_report(reported, "SGHMC, noise as programmed", ["kept"])
uniform = of_report(started, "SGHMC, as programmed", ["last", "kept"])

# %% tags=["hide-input"]
show_table(
    ["SGHMC minus [95 %]", *RIVALS],
    [
        [question, *(gaps[f"{question}: {rival}"].starred() for rival in RIVALS)]
        for question in LETTERS | QUESTIONS
    ],
)
print("* decided by Holm's procedure in its family, given these images.")
print(who_ran(read_result(RESULTS / "mnist_more.json")))

# %% mystnb={"code_prompt_hide": "Hide the control's values", "code_prompt_show": "Show the control's values"} tags=["hide-cell"]
CONTROL = list(PREDICT)[-2:]
show_table(
    ["mean of fifteen seeds", *CONTROL],
    [
        [
            question,
            *(f"{look(name, read).mean():.3f}" for name in CONTROL),
        ]
        for question, read in (LETTERS | QUESTIONS).items()
    ],
)
print(who_ran(read_result(RESULTS / "uncertainty_control.json")))

# %% tags=["hide-input"]


def share(name):
    """The part of the entropy on letters that is disagreement."""
    whole, part = area("letters", "mean"), area("letters", "disagreement")
    return (look(name, part) / look(name, whole)).mean()


alike = look("SGHMC", area("letters", "auroc_disagreement")).mean()
check("share", share("SGHMC"), kind="stored", digits=2)
check("share-path", share("path average"), kind="stored", digits=2)
check("by-disagreement", alike, at_least(0.99), kind="stored", digits=3)
check("letters", gaps["letters, area: falling rate"], DECIDED, kind="stored")
check("clothes", gaps["clothes, area: falling rate"], DECIDED, kind="stored")
rejected = "error with 5 % rejected, points"
check("rejected", gaps[f"{rejected}: path average"], DECIDED, kind="stored")
check("rejected-last", gaps[f"{rejected}: last network"], OPEN, kind="stored")
for angle in (45, 90):
    found = gaps[f"log loss, turned by {angle}°: falling rate"]
    check(f"turned-{angle}", found, DECIDED, kind="stored")
check("area", look("SGHMC", area("letters")).mean(), kind="stored", digits=3)
fixed = look("SGHMC, λ = 3", area("letters")).mean()
check("noise-programmed", small["programmed", "kept"], DECIDED, kind="stored")
check("noise-right", small["right", "kept"], kind="stored")
half = small["programmed", "kept"].mean / small["right", "kept"].mean
check("half", half, near(0.45, 0.05), kind="stored", says="The part without the noise")
together = [
    five["entropy"]["letters"]["auroc"]
    for optimiser in seeds.methods.values()
    for five in optimiser.get("ensembles", [])
]
check("least", min(together), kind="stored", digits=3)
check("most", max(together), kind="stored", digits=3)
twenty = Seeds.read("neighbours")
ensemble, samples = (
    twenty(method, "auroc.letters", 100) for method in ("ensemble", "SGHMC")
)
check("ensemble", gap(ensemble, samples), kind="stored")
check("start-last", uniform["programmed", "last"], DECIDED, kind="stored")
for name, method, networks in (
    ("entropy", "SGHMC, as programmed", "kept"),
    ("entropy-last", NESTEROV, "last"),
):
    sure = started(method, f"look.{networks}.entropy.letters.mean")
    check(name, sure.mean(), kind="stored", digits=2)
check("start-programmed", uniform["programmed", "kept"], OPEN, kind="stored")
check("start-right", uniform["right", "kept"], DECIDED, kind="stored")
check("fixed", fixed, at_least(0.98), kind="stored", digits=3)
learned = look("path average, learned λ", area("letters")).mean()
check("learned", learned, kind="stored", digits=3)

# %% [markdown]
# * **Letters and clothes: samples are the better alarm**, by {c}`letters` in area on letters against the falling rate, and by {c}`clothes` on clothes.
# * **On letters it is not the width of the prior**: the optimiser with learned precisions has the area {c}`learned`. **Nor is it the right noise alone**: from a small start the report's samples have {c}`noise-right` more than the path average with it, and {c}`noise-programmed` with the program's (ten seeds).
# * **The report's own run is not overconfident on letters**: its mean entropy there is {c}`entropy`, that of its optimiser's last network {c}`entropy-last`. It is a better alarm than that network, by {c}`start-last` in area, at its uniform start and its program's $T = 4\cdot10^{-8}$ (five seeds). **Against the path average of that optimiser it is open**, {c}`start-programmed`; the right noise has {c}`start-right`.
# * **Rejecting doubtful digits: no gain.** With 5 % rejected the path average errs on fewer of the rest (SGHMC minus it: {c}`rejected` points), and against the last network the difference is open, {c}`rejected-last`.
# * **Turned digits: it depends on the angle.** At 45° SGHMC's log loss minus that of the falling rate is {c}`turned-45`; at 90° it is *positive*, {c}`turned-90`, although its Brier score, the mean squared error of the probabilities, is the smaller.
# * **Upright digits: worse calibrated** than all three rivals ({term}`calibration error <expected calibration error>`). At 60 epochs and with another prior the sign is the other one, open ({doc}`/book/studies/neighbours_on_networks`).
#
# **To remember:** samples disagree where no data told them what to say. That finds strangers better than an optimiser does, and one's own mistakes no better.
#
# ## What this does not show
#
# * *Ensembles*: nine, of five optimisers' trainings each, have areas of {c}`least` to {c}`most`. With 60 epochs and another prior an ensemble minus SGHMC has {c}`ensemble` hundredths (chosen after the results; {doc}`/book/studies/neighbours_on_networks`), and dropout's and Laplace's gains do not differ decidedly from SGHMC's.
#
# ## Change it
#
# * In the cell of the questions set `said["rejection"][5]` to `said["rejection"][0]`, nothing rejected: SGHMC errs less than all three, as in {doc}`/book/studies/mnist`.
# * In the cell of the two ways set `apart` to `torch.tensor([[0.9, 0.1], [0.1, 0.9]])`: the disagreement falls to 0.37, although the entropy of the average stays at 0.69, and the check shows ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-letters-area
#
# ★ *Compute.* Ten digits have the entropies 0.1, 0.2, …, 1.0, and four letters 0.35, 0.75, 1.5 and 2. Which area under the ROC curve is that?
# ```
#
# ```{solution} ex-letters-area
# :class: dropdown
#
# Of the ten digits 3, 7, 10 and 10 lie below. So 30 of 40 pairs: 0.75.
# ```
#
# ````{exercise}
# :label: ex-letters-write
#
# ★★ **Write it yourself.** Write the area from ranks, without listing all pairs: sort all values together, and use that the ranks of the letters add up to the number of pairs that they win plus $\tfrac12n(n + 1)$.
#
# ```python
# def area_by_ranks(digits, letters):
#     ...
# ```
# ````
#
# ````{solution} ex-letters-write
# :class: dropdown
#
# ```python
# def area_by_ranks(digits, letters):
#     ranks = np.argsort(np.argsort(np.concatenate([digits, letters]))) + 1
#     n = len(letters)
#     won = ranks[len(digits):].sum() - n * (n + 1) / 2
#     return won / (n * len(digits))
# ```
#
# It is the statistic of Mann and Whitney. Ties need average ranks.
# ````


# %% tags=["hide-input"]
def area_by_ranks(digits, letters):
    ranks = np.argsort(np.argsort(np.concatenate([digits, letters]))) + 1
    n = len(letters)
    won = ranks[len(digits) :].sum() - n * (n + 1) / 2
    return won / (n * len(digits))


ten = np.arange(1, 11) / 10
found = area_by_ranks(ten, np.array([0.35, 0.75, 1.5, 2]))
check("by-ranks", found, near(0.75, 1e-12), kind="exact", says="The solution")

# %% [markdown]
# ```{exercise}
# :label: ex-letters-diagnose
#
# ★★ *Diagnose.* A model is unsure of everything: its entropy is 2 on digits and 2.2 on letters. Its area is 0.95. Another has 0.05 and 1.5, and the area 0.95. Which one do you take, and what does the area not see?
# ```
#
# ```{solution} ex-letters-diagnose
# :class: dropdown
#
# The second: the area sees only the order, and a threshold must be set somewhere. With the first model every digit would be handed to a person. Look at the log loss on digits beside the area.
# ```
#
# ## Further reading
#
# {cite:t}`fawcett2006` for ROC curves; {doc}`/book/tutorial/digits` asks the same at equal gradients on a small network.
