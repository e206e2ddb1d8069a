# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Twenty methods, one budget
#
# ```{div} page-head
# Level: second course · Reading: about 18 minutes, without the exercises · Running: about 3 seconds
# ```
#
# ```{index} ! ensemble, dropout, SWAG, Laplace approximation, snapshots
# ```

# %%
import numpy as np

from booklib.page.claims import check, near
from booklib.runs.results import Seeds
from booklib.scores.seeds import family

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import DECIDED, OPEN, at_most
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result, who_ran

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# You can pay for about one training of a network, 60 epochs on digits, and want probabilities. Twenty methods offer them, some at two to five times the price: samplers, ensembles, dropout, Laplace's method and others ({doc}`/book/further/neighbours` says what each does). Which of them is worth it?
# We compare each with one network trained by SGD with momentum at a constant rate: by test error, by log loss, and by how well its entropy tells *letters*, which are no digits, from digits (the area under the ROC curve, 1 if it always does).
#
# **In error only ensembles are decidedly ahead: with five trainings of 12 epochs each the error minus that of the one network is {c}`ensemble` points (mean and 95 % interval, five seeds). In log loss dropout, for twice the seconds, minus the ensemble is {c}`level`, open. Samplers at temperature $T = 1$ gain nothing in error or log loss that five seeds decide: in log loss SGHMC is behind, {c}`sghmc-loss`, and with cycles of step sizes the difference is open, {c}`cycles-loss`.**
# {numref}`fig-twenty` shows errors and letters at once. Intervals are of single comparisons; *decided* allows for how many there are ({doc}`/book/studies/mnist`).

# %%
runs = Seeds.read("neighbours")  # five seeds
ONE = "SGD with momentum"
others = [name for name in runs.methods if name != ONE]
SCORES = {
    "error": ("scores.error", 100),
    "loss": ("scores.log_loss", 1),
    "letters": ("auroc.letters", 100),
    "calibration": ("scores.calibration_error", 100),
}
gaps = {
    score: family({name: (runs(name, *what), runs(ONE, *what)) for name in others})
    for score, what in SCORES.items()
}
for name, gap in gaps["error"].items():
    if gap.decided:
        print(f"{name:32} minus one network: {gap} points of error")

# %% mystnb={"figure": {"caption": "Test error on MNIST against the area by which the entropy tells letters from digits, mean of five seeds with the standard error. Right and low is good. Filled: one training's price; open: two to five times its seconds. Pink: SGHMC. Grey lines: the one network. *c*: cycles of step sizes; *snapshots*: such cycles without noise; *cold*: a temperature below 1; *adv.*: trained on adversarial examples, too; *path*, *SWAG*, *constant SGD*: an average of, a Gaussian along, and networks from a path; *Laplace*: a Gaussian at the optimum.", "name": "fig-twenty"}, "image": {"alt": "A cloud of twenty labelled points. The ensembles and dropout lie lowest, at 1.6 to 1.8 per cent and 0.92 to 0.94; Bayes by Backprop far right at 0.99 and 2.6 per cent; the samplers at 0.91 and 2.7 to 3.1; the others between 0.81 and 0.91 at two to two and a half."}} tags=["hide-input"]
SHORT = {
    "SGD with momentum": "one network",
    "path of SGD with momentum": "path average",
    "ensemble, five times the budget": "ensemble ×5",
    "ensemble, adversarial": "ensemble, adv.",
    "snapshots with momentum": "snapshots, mom.",
    "snapshots of SGD": "snapshots",
    "Laplace, last layer": "Laplace",
    "Bayes by Backprop": "B. by Backprop",
}
SHIFT = {
    "SWAG": (-10, -18),
    "SGHMC, cold": (6, -9),
    "cSGHMC, cold": (-40, 12),
    "constant SGD": (-58, 6),
    "SGD with momentum": (-56, -9),
    "path of SGD with momentum": (-62, -12),
    "snapshots of SGD": (4, -10),
    "ensemble, five times the budget": (-52, -10),
    "ensemble, adversarial": (6, -8),
}
figure, axes = plt.subplots(figsize=(6.6, 4.6))
seconds = {name: runs(name, "processor_seconds").mean() for name in runs.methods}
for name in runs.methods:
    x, y = runs(name, "auroc.letters"), runs(name, "scores.error", 100)
    dear = seconds[name] > 1.5 * seconds[ONE]
    colour = COLOURS["SGHMC" if "S" == name[0] and "HMC" in name else ONE]
    axes.errorbar(
        x.mean(),
        y.mean(),
        xerr=x.std(ddof=1) / 5**0.5,
        yerr=y.std(ddof=1) / 5**0.5,
        fmt="o",
        ms=4,
        color=colour,
        mfc="white" if dear else colour,
        lw=0.8,
    )
    place = (x.mean(), y.mean())
    shift = SHIFT.get(name, (4, 3))
    label = SHORT.get(name, name)
    axes.annotate(label, place, shift, textcoords="offset points", fontsize=7)
axes.axhline(runs(ONE, "scores.error", 100).mean(), color=TRUTH, lw=0.8, zorder=0)
axes.axvline(runs(ONE, "auroc.letters").mean(), color=TRUTH, lw=0.8, zorder=0)
axes.set(xlabel="area for letters", ylabel="test error, %")
plt.show()

# %% [markdown]
# *Before you read on: five networks that share the epochs of one have each a fifth of its training. Why can their average be better all the same?*
#
# | | the setting |
# | --- | --- |
# | network, data | 784–100–10 ReLU, prior $N(0, 1)$ for all, 50,000 digits, minibatches of 500, 60 epochs |
# | tuned | every method on 10,000 validation digits, by runs of 20 epochs with one seed: three to six settings each |
# | predicts | with at most thirty networks; dropout with thirty masks |
# | seeds, price | five; 15 to 70 seconds a run on one core, `python -m experiments run neighbours` |
#
# ## Why an average of worse networks is better
#
# Let $p_1, \dots, p_m$ be the probabilities that $m$ networks give the right class of an example, and $\bar p$ their mean. By Jensen's inequality
#
# $$
# -\log\bar p \le \frac1m\sum_j(-\log p_j),
# $$ (eq-twenty-jensen)
#
# so the average's log loss is at most the mean of theirs. To second order the gain is $\frac1{2\bar p^2}$ times the variance of the $p_j$ over the networks: the more they disagree, the larger it is.
# Members that start afresh disagree; networks along one path hardly do. The cell averages five networks that share all, half or none of their mistakes:


# %%
def average_of(members, shared, digits=100_000, error=0.03, seed=0):
    """Log loss of one member and of the average: each is unsure on its own digits."""
    rng = np.random.default_rng(seed)
    common = rng.random(digits) < shared * error
    own = rng.random((members, digits)) < (1 - shared) * error
    p = np.where(common | own, 0.1, 0.99)  # of the right class
    return -np.log(p[0]).mean(), -np.log(p.mean(0)).mean()


for shared in (1.0, 0.5, 0.0):
    one, five = average_of(5, shared)
    print(f"shared {shared:.1f}: one member {one:.3f}, average of five {five:.3f}")
check("gain", five / one, near(0.51, 0.03), digits=2)

# %% [markdown]
# With nothing shared the average has {c}`gain` of a member's log loss.
#
# ## The table
#
# Each column is a family of nineteen comparisons with one network of SGD with momentum, for the same 60 epochs. Differences in letters and calibration are in hundredths.

# %% tags=["hide-input"]
PASSES = {"ensemble, adversarial": "120", "ensemble, five times the budget": "300"}
PASSES["Laplace, last layer"] = "60 + last layer"
order = sorted(runs.methods, key=lambda name: runs(name, "scores.log_loss").mean())
show_table(
    ["minus one network [95 %]", "error, points", "log loss", "letters, area"],
    [
        [
            name,
            *(gaps[score][name].starred() for score in ("error", "loss", "letters")),
        ]
        for name in order
        if name != ONE
    ],
)
print("* decided by Holm's procedure among the nineteen of a column, at 0.05.")
print(who_ran(read_result(RESULTS / "neighbours.json")))

# %% mystnb={"code_prompt_hide": "Hide errors, calibration and price", "code_prompt_show": "Show errors, calibration and price"} tags=["hide-cell"]
show_table(
    [
        "method",
        "error, %",
        "calibration, minus one",
        "epochs",
        "seconds",
    ],
    [
        [
            name,
            runs.cell(name, "scores.error", 100),
            gaps["calibration"][name].starred() if name != ONE else "",
            PASSES.get(name, "60"),
            f"{seconds[name]:.0f}",
        ]
        for name in order
    ],
)

# %% tags=["hide-input"]
check("ensemble", gaps["error"]["ensemble"], DECIDED, kind="stored")
check("ensemble-loss", gaps["loss"]["ensemble"], DECIDED, kind="stored")
check("sghmc", gaps["error"]["SGHMC"], OPEN, kind="stored", margin=0.25)
check("sghmc-loss", gaps["loss"]["SGHMC"], DECIDED, kind="stored")
check("cycles-loss", gaps["loss"]["cSGHMC"], OPEN, kind="stored", margin=0.01)
check("calibrated", gaps["calibration"]["cSGHMC"], DECIDED, kind="stored")
check("backprop", gaps["letters"]["Bayes by Backprop"], DECIDED, kind="stored")
check("backprop-error", gaps["error"]["Bayes by Backprop"], DECIDED, kind="stored")
check("dropout", gaps["loss"]["dropout"], DECIDED, kind="stored")
check("dropout-error", gaps["error"]["dropout"], kind="stored")
paths = ("SWAG", "path of SGD with momentum", "constant SGD")
check(
    "paths",
    max(max(abs(g.low), abs(g.high)) for g in map(gaps["error"].get, paths)),
    at_most(0.25),
    kind="stored",
    digits=2,
)
letters = [name for name, gap in gaps["letters"].items() if gap.decided]
check("letters", len(letters), near(6, 0), kind="stored")
five, plain = (
    runs(name, "scores.error", 100)
    for name in ("ensemble, five times the budget", "ensemble")
)
check("five-times", family({"": (five, plain)})[""], DECIDED, kind="stored")
further = family(
    {
        name: (runs(first, *SCORES[score]), runs(second, *SCORES[score]))
        for name, score, first, second in (
            ("sghmc-error", "error", "ensemble", "SGHMC"),
            ("sghmc-log-loss", "loss", "ensemble", "SGHMC"),
            ("sghmc-letters", "letters", "ensemble", "SGHMC"),
            ("level", "loss", "dropout", "ensemble"),
        )
    }
)
for name, gap in further.items():
    check(name, gap, OPEN if name == "level" else None, kind="stored")

# %% [markdown]
# * **Ensembles are ahead in error and log loss, dropout in log loss.** The plain ensemble takes no more seconds than the one network: {c}`ensemble-loss` in log loss. Dropout has {c}`dropout`; its error, {c}`dropout-error`, is {c}`dropout-error.verdict`. Ensemble minus SGHMC is {c}`sghmc-error` points of error and {c}`sghmc-log-loss` of log loss, {c}`sghmc-log-loss.verdict`, and {c}`sghmc-letters` hundredths for letters, {c}`sghmc-letters.verdict` (with dropout's log loss a family of four, chosen after the results). Five times the budget lowers the ensemble's error further: the difference is {c}`five-times`.
# * **Letters: {c}`letters` methods are decidedly ahead**, the three ensembles, dropout, Laplace and Bayes by Backprop. The last has the largest area, by {c}`backprop` hundredths, and errs on {c}`backprop-error` points more.
# * **Samplers at $T = 1$ without cycles are behind in log loss.** In error SGHMC's difference, {c}`sghmc`, is open among nineteen ({c}`sghmc.seeds` seeds would decide a quarter of a point). Sixty epochs are short for a chain: {doc}`/book/studies/reproduction_report` has this network with 850.
# * **With cycles** SGHMC is better calibrated: its {term}`calibration error <expected calibration error>` minus that of one network is {c}`calibrated` hundredths.
# * **What walks along one path gains little in error**: the intervals of SWAG, the path average and constant SGD end within {c}`paths` points of error.
#
# **To remember:** on digits five networks, each trained for a fifth of the time, beat one at its price; on clothes they lose.
#
# ## What this does not show
#
# * *Longer chains, other networks*: one network, one prior, one data set. {doc}`/book/practice/recipes_networks` has clothes, where members of 12 epochs are too short and the ensemble loses.
# * *One network whose rate falls*, with momentum, which is ahead of a constant rate in {doc}`/book/studies/mnist`: three minutes for five seeds.
# * *Simple alarms*: nearest neighbours of one network tell letters as well as all of these ({doc}`/book/practice/recipes_networks`).
#
# ## Change it
#
# * In the cell of the average set `0.1, 0.99` to `0.6, 0.99`: members that are less sure of their mistakes gain less from the average, and the check shows ✗.
# * In the first cell set `"auroc.letters"` to `"auroc.clothes"`: on clothes Bayes by Backprop and dropout alone are decidedly ahead, and the check `letters` shows ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-twenty-second-order
#
# ★ *Derive.* Expand $-\log p_j$ around $\bar p$ to second order and average over $j$: what is the gain of the average, {eq}`eq-twenty-jensen`, for $\bar p = 0.8$ and a standard deviation of 0.1 over the networks?
# ```
#
# ```{solution} ex-twenty-second-order
# :class: dropdown
#
# The first-order terms cancel; the second-order term is $\frac1{2\bar p^2}\cdot\frac1m\sum_j(p_j - \bar p)^2 = 0.01/(2\cdot0.64) = 0.008$.
# ```
#
# ````{exercise}
# :label: ex-twenty-write
#
# ★★ **Write it yourself.** Split the log loss of an average into the mean log loss of its members and the gain.
#
# ```python
# def split(p):
#     """p: (members, examples), probabilities of the right class."""
#     ...
# ```
# ````
#
# ````{solution} ex-twenty-write
# :class: dropdown
#
# ```python
# def split(p):
#     members = -np.log(p).mean()
#     return members, members + np.log(p.mean(0)).mean()
# ```
# ````


# %% tags=["hide-input"]
def split(p):
    members = -np.log(p).mean()
    return members, members + np.log(p.mean(0)).mean()


_, gain = split(np.array([[0.7], [0.9]]))
check("split", gain, near(0.008, 0.0005), kind="exact", says="Two members, 0.7 and 0.9")

# %% [markdown]
# ```{exercise}
# :label: ex-twenty-choose
#
# ★★ *Choose.* You have the price of ten trainings, and strange inputs matter most. Which rows of the table would you run on your own data, and what would you compare them with first?
# ```
#
# ```{solution} ex-twenty-choose
# :class: dropdown
#
# First with simple alarms of the one network, such as its largest probability or the distance to the nearest training digits, which cost nearly nothing. Then an ensemble of ten, and one long chain of SGHMC; Bayes by Backprop if its errors can be borne.
# ```
#
# ## Further reading
#
# {cite:t}`lakshminarayanan2017` for ensembles, {cite:t}`gal2016` for dropout, {cite:t}`maddox2019` for SWAG; {doc}`/book/further/neighbours` derives what each of them scatters.
