# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # What each experiment runs
#
# ```{div} page-head
# Level: second course · Reading: about 60 minutes · Running: about 5 seconds
# ```
#
# Which settings the studies of this book were made with, read from their results, and beside them what the sources published, with the page.
#
# **You will learn** to
#
# * find the settings behind the numbers of the studies,
# * tell which of them are a source's, which are ours, and why,
# * hold a reproduction against its source setting by setting, so that a slip of the pen is seen.
#
# **You will need** {doc}`/book/studies/mnist`, for what a learning rate $\eta$, a momentum decay $\alpha$, a prior precision $\lambda$ and a minibatch of $n$ out of $N$ examples are.
#
# A comparison is worth as much as its settings. A learning rate ten times too large, 60,000 digits where the source has 50,000, or images read in another order give curves that look like results.
# So in this book settings are data. A run stores its own (`book/results`), a file of `booklib/runs/papers` holds what each source says and where, and two things compare them: the claims of this page for what was run, and a test for what the code would run today.

# %%
import textwrap

from booklib.numbers import in_words
from booklib.page.claims import claim
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.published import (
    PUBLISHED,
    Published,
    compare,
    of_plans,
    of_result,
    runs_of,
    said,
    wrong,
)
from booklib.runs.results import RESULTS, read_result

play()  # a claim that fails now shows ✗, and the page goes on
results = {  # of the runs that store a plan
    path.stem: read_result(path)
    for path in RESULTS.glob("*.json")
    if '"plan": {' in path.read_text()
}
ran = {name: of_result(result) for name, result in results.items()}

# %% tags=["hide-input"]
NAMES = {  # of settings, as the book writes them
    "learning_rate": "η",
    "rate": "ηN",
    "stretch": "εm",
    "momentum_decay": "α",
    "temperature": "T",
    "prior_precision": "λ",
    "batch_size": "n",
    "examples": "N",
    "num_steps": "m",
    "burn_in": "burn-in",
    "noise_refresh": "B̂",
    "resample_every": "fresh momentum",
    "data": "inputs",
    "trees": "weights of trees",
    "integrator": "step of trees",
    "nesterov": "Nesterov's momentum",
    "clip_norm": "gradients clipped at",
    "alpha": "order of the bound",
    "hidden": "hidden layers",
    "harm": "worst reward",
}
# What a setting is where it is None; where it is not named here, it says nothing.
NONE = {"prior_precision": "drawn", "noise_refresh": "0", "resample_every": "never"}
NONE |= {"weight_decay": "none", "clip_norm": "never"}
SHORT = {
    "wang2021": "Duke report, "
}  # before a page, where an experiment has two sources


def label(setting):
    """Name a setting."""
    return NAMES.get(setting, setting.replace("_", " "))


def in_a_cell(setting, value):
    """Write a setting, or several that were tried."""
    if value is None:
        return NONE.get(setting, "none")
    if setting == "temperature" and isinstance(value, tuple) and len(value) > 1:
        return "2αη"  # of each pair
    if isinstance(value, tuple | list):
        return ", ".join(in_a_cell(setting, one) for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if setting == "resample_every":
        return "every sample" if value == 1 else f"every {value} samples"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else in_words(value, 3)
    return str(value).replace("_", " ")


def which(having, methods):
    """Name some of the methods, by the others where these are fewer."""
    others = [method for method in methods if method not in having]
    if not others:
        return "all"
    short = len(others) < len(having) and len(methods) > 2
    return ("all but " if short else "") + "; ".join(others if short else having)


def show_published(name):
    """Show what is published beside what was run, and say why they differ."""
    entries = [each for each in PUBLISHED if each.experiment == name]
    methods = list(dict.fromkeys(each.method for each in entries))
    found, reasons = {}, {}
    for each in entries:
        for row in compare(each, ran.get(name, {}).get(each.method, {})):
            if row.published is False or (
                row.published is None and row.name not in NONE
            ):
                continue  # it only says that the method has no such setting
            changed = each.changed.get(row.name)
            ours = changed.value if changed else row.published
            if row.verdict == "more tried":
                ours = tuple(sorted(row.ours))
            marks = ("" if row.ours else " †") + (" *" if changed else "")
            same = "the same" if ours == row.published else in_a_cell(row.name, ours)
            published = in_a_cell(row.name, row.published)
            line = published, SHORT.get(each.source, "") + row.place, same + marks
            found.setdefault((row.name, *line), []).append(each.method)
            if changed:
                reasons.setdefault(changed.why, []).append(label(row.name))
    show_table(
        ["setting", "of", "published", "where", "here"],
        [
            [label(setting), which(having, methods), *line]
            for (setting, *line), having in found.items()
        ],
    )
    for why, changed in reasons.items():
        print(textwrap.fill(f"* {', '.join(dict.fromkeys(changed))}: {why}.", 88))


def show_runs(name):
    """Show what each method was run with, and how many runs chose it."""
    if name not in results:
        return
    table, tried = [], {}
    for method, content in results[name].get("methods", {}).items():
        tried[method] = len(content.get("tuning", [])) or 1
    for method, runs in runs_of(results[name]).items():
        plan = runs[0]["plan"]
        rounds, burn_in = (
            plan.get(new, plan.get(old))
            for new, old in (("rounds", "epochs"), ("burn_in", "warm_up"))
        )
        [examples] = ran[name][method].get("examples", ("50,000 †",))
        precision = plan.get("prior_precision", "1 †")
        cells = [
            in_a_cell("learning_rate", plan["learning_rate"]),
            in_a_cell("momentum_decay", plan["momentum_decay"]),
            in_a_cell("prior_precision", precision),
            f"{plan['batch_size']} of {in_a_cell('examples', examples)}",
            f"{rounds} ({burn_in})",
            str(tried.get(method, 1)),
            str(len(runs)),
        ]
        table.append([method, *cells])
    heads = ["η", "α", "λ", "n of N", "rounds (burn-in)", "tried", "seeds"]
    show_table(["method", *heads], table)


def show_chosen(name, methods):
    """Show which settings each method was given, how many were tried, and its runs."""
    rows = []
    for method, content in methods.items():
        runs, tuning = content["runs"], content["tuning"]
        chosen = [
            f"{setting.replace('_', ' ')} {in_a_cell(setting, value)}"
            for setting, value in content["settings"].items()
        ]
        cells = ["; ".join(chosen) or "fixed", str(len(tuning) or 1), str(len(runs))]
        rows.append([method, *cells])
    show_table([name, "settings", "tried", "seeds"], rows)


def claim_the_same(name, source):
    """State that nothing differs from what is published but what is named."""
    if name not in results:
        return
    differing = [
        line
        for each in PUBLISHED
        if each.experiment == name and each.method in ran[name]
        for line in wrong(compare(each, ran[name][each.method]))
    ]
    claim(
        f"Stored settings of {name} that differ from {source} and are not named",
        len(differing),
        at_most=0,
        because="each is the published one, or has an asterisk in the table",
        kind="stored",
    )


# %% [markdown]
# ## How to read the tables
#
# Each experiment has two tables. The first has a row for each setting that we hold against a source: for which methods, its value, where it stands, and what we ran.
# A list of values is a grid that was tried.
# An asterisk marks what we changed on purpose, and the lines below the table say why.
# A dagger marks what no file records: it is older than the setting, or the setting is the network, which is not stored, or the file of the experiment has no plans. There the table has what the code says; `tests/experiments/test_published.py` compares that with the same list.
#
# The second table has the setting that each method was run with, how many settings were tried on validation examples to choose it, and the number of seeds.
# A $\lambda$ that is "drawn" is drawn by a Gibbs step after every round.
# $T$ is the temperature, the variance of the injected noise over the right one: 0 is an optimiser. The report's program has $2\alpha\eta$ for SGHMC, $2\eta$ for SGLD and $2\alpha$ for SGNUTS, because it takes a variance for a standard deviation.
# $N$ is counted from the gradients that a run has stored, so it is the number of examples that the run really had.
#
# ## MNIST as the paper ran it
#
# {cite:t}`chen2014` give most settings in Section 4.2, and the learning rate in their program {cite:p}`chencode`, where $0.1$ multiplies the mean gradient over the data: $\eta N$ in this book.
# {cite:t}`wang2021` ran the same program and say so (p. 6). The results are in {doc}`/book/studies/mnist`.

# %% tags=["hide-input"]
show_published("mnist")

# %% tags=["hide-input"]
show_runs("mnist")

# %% tags=["hide-input"]
claim_the_same("mnist", "the paper and its program")

# %% [markdown]
# Two more experiments start from these settings: `falling`, the optimiser with a learning rate that falls to zero, and `noise`, SGHMC with an estimate of its gradient noise.

# %% tags=["hide-input"]
show_runs("falling")

# %% tags=["hide-input"]
show_runs("noise")

# %% [markdown]
# ## MNIST as the report ran it
#
# The settings of Figure 5 of {cite:t}`adamday`, p. 9–11; what its program adds is named by its file in [sacktock/SGHMC](https://github.com/sacktock/SGHMC).
# Its program learns from the last 50,000 digits of the training set and validates on the first 10,000 (`bnn/bnn.py`); we learn from the first 50,000, as for the paper, and validate on the rest. Its published errors are of its validation digits, ours of the test digits.
# The results are in {doc}`/book/studies/reproduction_report`.

# %% tags=["hide-input"]
show_published("report")

# %% tags=["hide-input"]
show_runs("report")

# %% tags=["hide-input"]
claim_the_same("report", "the report")

# %% [markdown]
# Two grids of ours around the settings chosen for SGHMC and for SGD with momentum, each setting tried with one seed; the table has the best:

# %% tags=["hide-input"]
show_runs("report_wider")

# %% tags=["hide-input"]
show_runs("report_wider_momentum")

# %% [markdown]
# Two more experiments have the settings that the report prints with Figure 5, with its program's start and Nesterov's momentum: the first with the program's noise, the right one and a small start, the second with what the report tried around them.
# The program averages round 50 too; here the average starts after it, as the report says. It anneals over 800 rounds from round 50 on, we over all 850.
# Weight decay and annealing are in the second; the report prints no settings with either.

# %% tags=["hide-input"]
show_published("figure5")

# %% tags=["hide-input"]
show_published("figure5_around")

# %% tags=["hide-input"]
show_runs("figure5")

# %% tags=["hide-input"]
show_runs("figure5_around")

# %% tags=["hide-input"]
claim_the_same("figure5", "the report")

# %% tags=["hide-input"]
claim_the_same("figure5_around", "the report")

# %% [markdown]
# ## Fashion-MNIST
#
# Figure 7a of the report, p. 12; the results are in {doc}`/book/studies/reproduction_report`.

# %% tags=["hide-input"]
show_published("fashion")

# %% tags=["hide-input"]
show_runs("fashion")

# %% tags=["hide-input"]
claim_the_same("fashion", "the report")

# %% [markdown]
# The same figure as the program ran it, at its length, from its start, and with its noise:

# %% tags=["hide-input"]
show_published("fashion_reported")

# %% tags=["hide-input"]
show_runs("fashion_reported")

# %% tags=["hide-input"]
claim_the_same("fashion_reported", "the report")

# %% [markdown]
# ## CIFAR-10
#
# Figure 7b of the report, p. 12, and its notebook; the results are in {doc}`/book/studies/cifar`.
# The network that is sampled as a whole is ours, and has no published settings.

# %% tags=["hide-input"]
show_published("cifar")

# %% tags=["hide-input"]
show_runs("cifar")

# %% tags=["hide-input"]
claim_the_same("cifar", "the report and its notebook")

# %% [markdown]
# Sampler and optimiser of all layers once more, with five times as many passes; the sampler's rate falls to a sixteenth over its warm-up.

# %% tags=["hide-input"]
show_runs("cifar_hour")

# %% [markdown]
# ## Steps per sample
#
# Figure 8 of the report, p. 12–13. It does not state $\eta$ and $\alpha$; we take those of its Figure 5. The results are in {doc}`/book/studies/steps_per_sample`.

# %% tags=["hide-input"]
show_published("steps")

# %% tags=["hide-input"]
show_runs("steps")

# %% tags=["hide-input"]
claim_the_same("steps", "the report")

# %% [markdown]
# The same figure in its own setting, with a minibatch that is held for the steps of a sample. The report fixes $\varepsilon m$ and does not say what else: we ran it with the friction fixed, so that $\alpha$ falls to $\alpha/m$, and with $\alpha$.

# %% tags=["hide-input"]
show_published("held")

# %% tags=["hide-input"]
show_runs("held")

# %% tags=["hide-input"]
claim_the_same("held", "the report")

# %% [markdown]
# ## SGNUTS
#
# Figure 9 of the report, p. 15–16, and its notebook; the results are in {doc}`/book/studies/steps_per_sample`.
# A round of ours is $N/n$ gradients; an epoch of the report's SGNUTS is $N/n$ *trees* of up to 1,023 gradients each.
# The report ran no SGHMC of this length, and states no $\eta$ and $\alpha$ of SGNUTS on Fashion-MNIST; we take those of SGHMC in its Figure 7a.

# %% tags=["hide-input"]
show_published("sgnuts")

# %% tags=["hide-input"]
show_runs("sgnuts")

# %% tags=["hide-input"]
claim_the_same("sgnuts", "the report and its notebook")

# %% [markdown]
# The table of warm-ups, with a tree for a sample; its rounds are samples:

# %% tags=["hide-input"]
show_published("trees")

# %% tags=["hide-input"]
show_runs("trees")

# %% tags=["hide-input"]
claim_the_same("trees", "the report")

# %% [markdown]
# The trees of the report's program, with its rule, its noise and its one momentum, and ours on Fashion-MNIST:

# %% tags=["hide-input"]
show_runs("trees_program")

# %% tags=["hide-input"]
show_runs("trees_fashion")

# %% [markdown]
# ## Experiments of another kind
#
# Four more have settings of others. Their runs store no plans: in the first table of each the column *here* has what the code says, which the test compares. The second table is read from the results, with the settings as the functions of the experiment call them; where one setting was tried, nothing was tuned.
#
# ### Variational inference
#
# The fit of the report's Figure 6b and its program; the results are in {doc}`/book/studies/variational`.

# %% tags=["hide-input"]
show_published("renyi")

# %% tags=["hide-input"]
show_chosen("renyi", read_result(RESULTS / "renyi.json")["methods"])

# %% [markdown]
# ### The bandit
#
# That of {cite:t}`blundell2015`; the results are in {doc}`/book/further/bandit`. Below what is published come the agents on made-up mushrooms, and those on the mushrooms of the data set.

# %% tags=["hide-input"]
show_published("bandit")

# %% tags=["hide-input"]
for table, agents in read_result(RESULTS / "bandit.json")["tables"].items():
    show_chosen(table, agents)

# %% [markdown]
# ### The mixture of 25 Gaussians
#
# That of {cite:t}`zhang2020` with its program; the results are in {doc}`/book/studies/cyclical_networks`.

# %% tags=["hide-input"]
show_published("modes")

# %% tags=["hide-input"]
show_chosen("modes", read_result(RESULTS / "modes.json")["methods"])

# %% [markdown]
# ### The recommender
#
# The paper's, with its program; the results are in {doc}`/book/studies/recommender`. Theirs are those of MovieLens-1M; ours are made up, as many as in MovieLens-100K.

# %% tags=["hide-input"]
show_published("recommender")

# %% tags=["hide-input"]
ratings = read_result(RESULTS / "recommender_100k.json")
show_chosen("recommender 100k", ratings["methods"])

# %% [markdown]
# ## Experiments of ours
#
# The others repeat no source setting by setting, though `weights` has the network of {cite:t}`blundell2015` and `ordering` the question of {cite:t}`zhang2020`. Each stores the settings that were tried and the one that was chosen, and a test compares them with those that the code would try today.
#
# On MNIST: the samplers' neighbours ({doc}`/book/studies/neighbours_on_networks`), and the weights of variational inference ({doc}`/book/studies/variational`); for Bayes by Backprop the best of a dozen settings in shorter runs, not stored.

# %% tags=["hide-input"]
show_chosen("neighbours", read_result(RESULTS / "neighbours.json")["methods"])

# %% tags=["hide-input"]
show_chosen("weights", read_result(RESULTS / "weights.json")["methods"])

# %% [markdown]
# On small images of CIFAR-10, the order of samplers and optimisers ({doc}`/book/studies/cyclical_networks`):

# %% tags=["hide-input"]
show_chosen("ordering", read_result(RESULTS / "ordering.json")["methods"])

# %% [markdown]
# Fidelity to a reference posterior, on two problems ({doc}`/book/studies/fidelity`):

# %% tags=["hide-input"]
for problem, content in read_result(RESULTS / "fidelity.json")["problems"].items():
    show_chosen(problem, content["methods"])

# %% [markdown]
# What networks do not know ({doc}`/book/studies/uncertainty`) looks at the networks of the experiment `mnist`, with its settings:

# %% tags=["hide-input"]
looked = read_result(RESULTS / "uncertainty.json")["methods"]
show_table(
    ["uncertainty", "networks", "seeds"],
    [
        [method, str(runs[0]["networks"]), str(len(runs))]
        for method, runs in looked.items()
    ],
)

# %% [markdown]
# ## Would a slip be seen?
#
# A comparison that cannot fail compares nothing. So we take the settings of the line *as reported* on Fashion-MNIST, and change one at a time, as a slip of the pen would.

# %%
figure_7a = next(
    each
    for each in PUBLISHED
    if (each.experiment, each.method) == ("fashion", "SGHMC, as reported")
)
right = results["fashion"]["methods"]["SGHMC, as reported"]["runs"][0]["plan"]
examples = said({"bnn/bnn.py": {"examples": 50_000}})
fifty_thousand = Published("fashion", "", "adamday", examples)
slips = {
    "nothing": (right, 50_000),
    "a learning rate ten times too large": (
        right | {"learning_rate": 10 * right["learning_rate"]},
        50_000,
    ),
    "a burn-in of 50 rounds": (right | {"burn_in": 50}, 50_000),
    "the right noise where the report's is meant": (
        right | {"temperature": 1.0},
        50_000,
    ),
    "60,000 clothes": (right, 60_000),
}
seen = {
    slip: wrong(compare(figure_7a, of_plans([plan], examples)))
    + wrong(compare(fifty_thousand, of_plans([plan], examples)))
    for slip, (plan, examples) in slips.items()
}

# %% tags=["hide-input"]
claim(
    "Settings found to differ where nothing was changed",
    len(seen.pop("nothing")),
    at_most=0,
    because="these are the stored settings of the line as reported",
    kind="exact",
)
for slip, lines in seen.items():
    claim(
        f"Settings found to differ: {slip}",
        len(lines),
        at_least=1,
        because="one setting was changed",
        kind="exact",
    )

# %% [markdown]
# ## Change it
#
# * Add the line `ran["fashion"]["SGHMC"]["learning_rate"] = (1e-5,)` at the end of the first code cell, as if the runs had had a rate ten times too large. The claim on Fashion-MNIST shows ✗, with the number 1.
# * In the cell of slips set `"a burn-in of 50 rounds": (right | {"burn_in": 100}, 50_000)`, which is no slip. Its claim shows ✗: a comparison finds only what differs.
#
# ## Further reading
#
# {cite:t}`adamday` (p. 10–12) is a good example of a report that states its settings; what a reader still has to look up in its program is named by file in the tables above.
