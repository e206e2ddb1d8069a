# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Does it replicate?
#
# ```{div} page-head
# Level: first course · Reading: about 14 minutes, without the exercises · Running: about 5 seconds
# ```
#
# ```{index} ! replication, reproduction, equal terms
# ```

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import OPEN, check, near
from booklib.page.figures import TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# This book answers to a paper and its program, {cite:t}`chen2014` and {cite:t}`chencode`, to two reports that repeat and extend it, {cite:t}`adamday` and {cite:t}`wang2021`, and to a paper on the rival method, {cite:t}`blundell2015`.
# They make empirical claims of the form *this method errs less than that one*. Which of them come out again?
#
# **Most do, in the setting in which they were made: of {c}`claims` claims that we have run there {c}`holds` hold, {c}`open` are open and {c}`fails` fail. On equal terms, with one start, as many gradients and an averaged rival, but the report's rates, {c}`fair-holds` of {c}`fair-claims` hold, {c}`fair-open` are open and {c}`fair-fails` fails.**
# A claim *holds* if the errors over several seeds decide that the difference has the sign that its source gives it, *fails* if they decide the opposite, and is *open* otherwise. Intervals are of single comparisons; *decided* allows for how many there are ({doc}`/book/studies/mnist`).
# The one claim that fails on equal terms was open in its own setting; alone, it would hold there ({c}`five`), and Figure 8's {c}`eight`, with $C$ kept, would fail.
# {numref}`fig-replicate` has a row for each claim. Rows without a name are the report's.
#
# In code a claim is two lists of errors, one entry a seed, and a verdict:

# %%
from booklib.runs.results import Seeds
from booklib.scores.seeds import family


def verdict(found):
    """What the seeds say of a claim whose difference is below zero."""
    if not found.decided:
        return "open"
    return "holds" if found.mean < 0 else "fails"


seeds = Seeds.read("mnist_more")
sghmc = seeds("SGHMC", "average.error", 100)
rivals = {
    "its last network": seeds("SGD with momentum", "last.error", 100),
    "its path averaged, too": seeds("SGD with momentum", "average.error", 100),
}
pairs = {name: (sghmc, errors) for name, errors in rivals.items()}
for name, found in family(pairs).items():
    print(f"SGHMC − momentum, {name}: {found}, {verdict(found)}")

# %% tags=["hide-input"]
mnist, program, figure = map(Seeds.read, ("mnist_more", "bayesnn", "figure5"))
start, clothes, shoes = map(
    Seeds.read, ("small_start", "fashion_reported", "fashion_small_start")
)
fits, seven, steps, held = map(
    Seeds.read, ("renyi", "renyi_differences", "steps", "held")
)
walked = {
    method: {"runs": runs}
    for name in ("trees", "trees_program")
    for method, runs in read_result(RESULTS / f"{name}.json")["runs"].items()
}
trees = Seeds(walked)
equal = Seeds(
    {
        method: {"runs": runs}
        for method, runs in read_result(RESULTS / "sgnuts.json")["runs"][
            "MNIST"
        ].items()
    }
)
COLD, TREES = "SGHMC, noise as in their program", "their rule, one momentum"
MOMENTUM, NESTEROV = "SGD with momentum", "SGD with Nesterov momentum"
FALLING = "SGD with momentum, falling rate"


def errors(seeds, method, use="average"):
    return seeds(method, f"{use}.error", 100)


def last(method):
    return program(method, lambda run: 100 * run["error"][-1])


def epoch(method, index):
    return trees(method, lambda run: 100 * run["epochs"][index]["average"]["error"])


def drawn(seeds, method):
    """The expected error of a class drawn from what the last network says."""
    return seeds(
        method,
        lambda run: run["drawn"] if seeds is figure else run["drawn"]["error"][-1],
        100,
    )


def fitted(method):
    return fits(f"{method}, 80 rounds", "scores.error", 100)


def seconds(method, index):
    return trees(method, lambda run: run["epochs"][index]["processor_seconds"])


def first(method):
    """The error of the average at the curve's first point, after five epochs."""
    return held(
        method, lambda run: 100 * next(p for p in run["curve"]["average"] if p)[0]
    )


def at_equal(method):
    return errors(equal, method)


FIVE = "m = 5, equal gradients"
sghmc, sgld = errors(mnist, "SGHMC"), errors(mnist, "SGLD")
digits, pictures = errors(figure, "SGHMC, as programmed"), errors(clothes, "SGHMC")
small, near_zero = errors(start, "SGHMC"), errors(shoes, "SGHMC")
# A claim: who is said to err less than whom, the published difference in points, the
# errors of the two in the source's setting, and on equal terms; the family there.
CLAIMS = {
    "paper": {
        "SGHMC < momentum": (
            *("−0.27", (sghmc, errors(mnist, MOMENTUM, "last"))),
            *((sghmc, errors(mnist, MOMENTUM)), "mnist"),
        ),
        "SGHMC < SGD": (
            *("−0.46", (sghmc, errors(mnist, "SGD", "last"))),
            *((sghmc, errors(mnist, "SGD")), "mnist"),
        ),
        "SGLD < momentum": (
            *("−0.05", (sgld, errors(mnist, MOMENTUM, "last"))),
            *((sgld, errors(mnist, MOMENTUM)), "mnist"),
        ),
        "SGLD < SGD": (
            *("−0.24", (sgld, errors(mnist, "SGD", "last"))),
            *((sgld, errors(mnist, "SGD")), "mnist"),
        ),
    },
    "Wang et al.": {
        "SGHMC < its momentum": (
            *("−0.07", (last("SGHMC"), last("Nesterov, noise on"))),
            *(None, "mnist"),
        ),
        "SGHMC < SGLD, at SGHMC's rate": (
            *("−2.29", (last("SGHMC"), last("SGLD"))),
            *((sghmc, sgld), "mnist"),
        ),
        "its momentum < SGLD": (
            *("−2.22", (last("Nesterov, noise on"), last("SGLD"))),
            *(None, "mnist"),
        ),
    },
    "report": {
        "Fig. 5: SGHMC < momentum": (
            *("−0.8 to 0.0", (digits, drawn(figure, NESTEROV))),
            *((small, errors(start, NESTEROV)), "report"),
        ),
        "Fig. 5: SGHMC < SGD": (
            *("−1.8 to −1.3", (digits, drawn(figure, "SGD"))),
            *((small, errors(start, "SGD")), "report"),
        ),
        "Fig. 5: SGHMC < SGLD": (
            *("−1.8 to −0.7", (digits, errors(figure, "SGLD, as programmed"))),
            *((small, errors(start, "SGLD")), "report"),
        ),
        "Fig. 7a: SGHMC < momentum": (
            *("−6 to −5", (pictures, drawn(clothes, MOMENTUM))),
            *((near_zero, errors(shoes, NESTEROV)), "report"),
        ),
        "Fig. 7a: SGHMC < SGD": (
            *("no number", (pictures, drawn(clothes, "SGD"))),
            *(None, "report"),
        ),
        "Fig. 7a: SGHMC < SGLD": (
            *("no number", (pictures, errors(clothes, "SGLD"))),
            *((near_zero, errors(shoes, "SGLD")), "report"),
        ),
        "Fig. 6b: SGHMC < the fit": (
            *("−3.2", (digits, seven("all", "scores.error", 100))),
            *((fitted("SGHMC"), fitted("Rényi's bound")), "fits"),
        ),
        "Fig. 8: five steps a sample < one": (
            *("−2.2", (first("m = 5, held, α fixed"), first("m = 1"))),
            *((errors(steps, FIVE), errors(steps, "m = 1")), "steps"),
        ),
        "p. 16: SGNUTS < SGHMC, in seconds": (
            *("+2, 28 and 50 s", (epoch(TREES, 0), epoch(COLD, 5))),
            *((at_equal("SGNUTS"), at_equal("SGHMC")), "trees"),
        ),
    },
}
# The other questions of these families, on the pages that treat them
OTHERS = {
    "mnist": {
        f"{FALLING}, {use}": (sghmc, errors(mnist, FALLING, use))
        for use in ("last", "average")
    },
    "fits": {
        f"{fit}: {score}": tuple(
            fits(f"{method}, 80 rounds", f"scores.{score}") for method in ("SGHMC", fit)
        )
        for fit in ("Rényi's bound", "evidence bound", "drawn outputs")
        for score in ("error", "log_loss")
        if (fit, score) != ("Rényi's bound", "error")
    },
    "steps": {
        f"{method}: {score}": tuple(
            steps(name, f"average.{score}") for name in (method, "m = 1")
        )
        for method in steps.methods
        for score in ("error", "log_loss")
        if method != "m = 1" and (method, score) != (FIVE, "error")
    },
    "trees": {
        f"{one} − {other}": (at_equal(one), at_equal(other))
        for one, other in (
            ("SGNUTS, then SGHMC", "SGHMC"),
            ("fresh momenta, then SGHMC", "SGHMC"),
            ("fresh momenta, then SGHMC", "SGNUTS, then SGHMC"),
        )
    },
}


own, fair = {}, {}
for claims in CLAIMS.values():
    own |= family({name: pair for name, (_, pair, *_) in claims.items()})
every = {name: claim for claims in CLAIMS.values() for name, claim in claims.items()}
for question in dict.fromkeys(of for *_, of in every.values()):
    pairs = {name: pair for name, (*_, pair, of) in every.items() if of == question}
    ours = {name: pair for name, pair in pairs.items() if pair}
    found = family(ours | OTHERS.get(question, {}))
    fair |= {name: found[name] for name in ours}

# %% mystnb={"figure": {"caption": "Claims $A < B$, *A errs less than B*: the difference in points of error, with its 95 % interval over the seeds, on an axis that is linear from $-0.1$ to $0.1$ and logarithmic outside. Left of zero is as claimed, right of zero the opposite. Filled: in the source's own setting. Open: on equal terms. Green holds, red fails, grey is open. *Momentum* is SGD with momentum, *the fit* a variational posterior.", "name": "fig-replicate"}, "image": {"alt": "Sixteen rows. In twelve the filled point is green and lies left of zero, between minus 0.13 and minus 4.3 points; four are grey. Of the thirteen open points seven are green, between minus 0.07 and minus 0.8, five grey near zero, and that of momentum in Figure 5 is red and lies right of zero, at 0.18."}} tags=["hide-input"]
HUES = {"holds": "#2a9d5c", "open": "0.6", "fails": "#c8443c"}
_, axes = plt.subplots(figsize=(6.8, 6.2))
for place, name in enumerate(every):
    for found, shift in ((own, 0.14), (fair, -0.14)):
        if name not in found:
            continue
        one = found[name]
        hue = HUES[verdict(one)]
        axes.errorbar(
            one.mean,
            shift - place,
            xerr=[[one.mean - one.low], [one.high - one.mean]],
            fmt="o",
            ms=4,
            color=hue,
            mfc=hue if shift > 0 else "white",
        )
axes.axvline(0, color=TRUTH, zorder=0)
labels = [
    name if source == "report" else f"{source}: {name}"
    for source, claims in CLAIMS.items()
    for name in claims
]
axes.set_yticks([-k for k in range(len(every))], labels, fontsize=8)
axes.set_xscale("symlog", linthresh=0.1)
ticks = [-10, -3, -1, -0.3, 0, 0.3, 1, 3, 10]
axes.set_xticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks], fontsize=8)
axes.minorticks_off()
axes.set(xlabel="points of error: as claimed  ←  0  →  the opposite", xlim=(-12, 12))
plt.show()


# %% tags=["hide-input"]
def told(found, name):
    one = found.get(name)
    return "–" if one is None else f"{one}, {verdict(one)}"


show_table(
    ["claim, A < B", "published", "in its setting [95 %]", "on equal terms [95 %]"],
    [
        [label, published, told(own, name), told(fair, name)]
        for label, (name, (published, *_)) in zip(labels, every.items(), strict=True)
    ],
)
print(
    "Differences in points of error. Verdicts by Holm's procedure at 0.05: in its"
    "\nsetting among the claims of a source, on equal terms among the rows and our"
    "\nquestions of a page."
)

# %% tags=["hide-input"]
found = [[verdict(one) for one in of.values()] for of in (own, fair)]
for prefix, verdicts in zip(("", "fair-"), found, strict=True):
    check(f"{prefix}claims", len(verdicts), kind="stored", digits=2)
    for word in ("holds", "fails", "open"):
        check(f"{prefix}{word}", verdicts.count(word), kind="stored", digits=2)
eight = fair["Fig. 8: five steps a sample < one"]
check("eight", eight, OPEN, kind="stored", margin=0.25)
five = own["Fig. 5: SGHMC < momentum"]
check("five", five, OPEN, kind="stored", margin=0.5)
alone = max(five.p_value, eight.p_value) < 0.05 and five.mean < 0 < eight.mean
check("alone", alone, kind="stored", says="Alone both would be decided")
both = {name: pair for name, (_, pair, *_) in CLAIMS["report"].items()}
both["C kept"] = first("m = 5, held"), first("m = 1")
two = verdict(family(both)["Fig. 8: five steps a sample < one"]) == "holds"
check("both-readings", two, kind="stored", says="Figure 8 holds among both readings")
for name, method, index in (("trees", TREES, 0), ("chain", COLD, 5)):
    spent = seconds(method, index).mean()
    check(f"{name}-seconds", spent, kind="stored", digits=2)
for name, found in own.items():
    if name in fair and verdict(fair[name]) == "fails":
        check("failed", found, OPEN, kind="stored", says="What fails was open")

# %% [markdown]
# ```{admonition} Notes on the rows: which setting is the source's, and what is counted
# :class: dropdown
#
# * *Figure 8*: five steps a sample; the report's start and held minibatches, with the right noise; of two readings of its text the one that gives the published shape ($\alpha$ kept). With both in the family it holds, too. If $C$ was kept, the difference is {c}`steps_per_sample/start-C`, open. On equal terms $C$ is kept and minibatches are fresh ({doc}`/book/studies/steps_per_sample`).
# * *Figure 6a* shows letters under SGHMC alone: no row. Its area for letters minus that of its optimiser, a rival of ours, is {c}`uncertainty/start-last` against the last network and {c}`uncertainty/start-programmed`, open, against the path average ({doc}`/book/studies/uncertainty`).
# * *Figure 6b*: the fit with all seven of its program's settings and its validation digits, which cost a fit {c}`variational/cost`, three seeds; SGHMC on the test images ({doc}`/book/studies/variational`).
# * *Page 16*: "0.87 in 28s, while SGHMC reached 0.89 in 50s"; ours are trees after their first epoch and SGHMC after 26, which take {c}`trees-seconds` and {c}`chain-seconds` s. Epoch by epoch, in up to {c}`steps_per_sample/gradients-trees` times the gradients, trees are ahead: no claim in words. Trees, then SGHMC, are only proposed: no row ({doc}`/book/studies/steps_per_sample`).
# * *Wang et al.*: their momentum is a sampler; with ordinary momentum the two claims are the paper's.
# * *Blundell et al.*: that a scale mixture errs less than a Gaussian prior (published −0.46) and than SGD (−0.47) is not counted, because its 600 epochs were not run. At 50 epochs, untuned, mixture minus Gaussian is {c}`variational/mixture`.
# ```
#
# *Before you read on: a claim holds in its own setting and is open on equal terms. What kind of difference between the two settings would you look for first?*
#
# ## What the settings hide
#
# * **The start.** The report's chains and optimisers begin with weights uniform on $(-2, 2)$. SGHMC forgets that early in its average; SGD's weights carry it to the end. From a small start, with the right noise, momentum errs less than SGHMC on digits, and more on clothes ({doc}`/book/studies/reproduction_report`).
# * **The average.** A sampler predicts with an average of hundreds of networks, the optimiser with its last one. Averaging the optimiser's own path, too, takes more than half of Figure 4's gap to momentum ({doc}`/book/studies/mnist`). For SGD it does not help, so its two rows have no stronger rival there.
# * **The unit.** An epoch counted in samples takes five times the gradients, one counted in SGNUTS's trees up to a thousand times ({doc}`/book/studies/steps_per_sample`).
# * **The scale.** A likelihood that is not multiplied by $N/n$ makes the prior a hundred times too heavy ({doc}`/book/studies/variational`).
# * **The score.** Accuracy does not warn of a temperature of $4\cdot10^{-8}$ ({doc}`/book/studies/reproduction_report`).
#
# Numbers replicate, too, with their causes: the CIFAR accuracy of 0.42 is one of random features of scrambled pictures ({doc}`/book/studies/cifar`), and Wang et al.'s twenty first numbers come out digit for digit ({doc}`/book/studies/mnist`).
#
# ## What it took
#
# The authors of the paper and of both reports published their programs. The report's authors name several of their limits themselves, and print the seconds beside their accuracies; the paper's authors doubt their figure in a note.
# Hard were start and units, which no text states.
#
# ## What was not run
#
# | claim | why | price |
# | --- | --- | --- |
# | MovieLens-1M, samplers ahead of optimisers (paper, Table 1) | the ratings may not be passed on; made-up ratings in {doc}`/book/studies/recommender` | data |
# | 70 epochs of trees, accuracy 0.94 (report, Figure 9) | trees grow | 1.6 hours a seed |
# | Figure 8 to 800 epochs | nine tenths of it after the claim | 9 hours |
# | Bayes by Backprop for 600 epochs, and with 1,200 units (1.32 %) | ours have 50 epochs and one setting a fit | 3 hours a seed |
# | the mushroom bandit at full length | size | 16 hours |
#
# Claims of theory, and of slides, are in {doc}`/book/appendix/sources`; slips of the pen in {doc}`/book/appendix/errata`.
#
# **To remember:** a published difference usually comes out again; its cause shows only on equal terms.
#
# ## Change it
#
# * In the visible cell set `"SGD with momentum", "average.error"` to `"SGD with momentum, falling rate", "last.error"`: against a rate that falls to zero the claim holds, too.
# * There set `"last.error"` to `"average.error"`: both rows become the same.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-replicate-family
#
# ★ *Compute.* A source makes four comparisons, with $p$-values 0.011, 0.013, 0.02 and 0.04. Which of them does Holm's procedure decide at 0.05? Which would be decided in a family of twenty-four, in which the other twenty are our own questions with large $p$-values? (The procedure: {doc}`/book/studies/mnist`.)
# ```
#
# ```{solution} ex-replicate-family
# :class: dropdown
#
# In the family of four: $0.011 < 0.05/4$, $0.013 < 0.05/3$, $0.02 < 0.05/2$, $0.04 < 0.05$: all. In that of twenty-four none, since $0.011 > 0.05/24$. So in a source's own setting our questions are not charged to it; on equal terms, where the question is ours, they are.
# ```
#
# ````{exercise}
# :label: ex-replicate-write
#
# ★★ **Write it yourself.** Write Holm's procedure.
#
# ```python
# def holm(p_values, level=0.05):
#     """The indices of what is decided."""
#     ...
# ```
# ````
#
# ````{solution} ex-replicate-write
# :class: dropdown
#
# ```python
# def holm(p_values, level=0.05):
#     decided = set()
#     for rank, k in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
#         if p_values[k] >= level / (len(p_values) - rank):
#             break
#         decided.add(k)
#     return decided
# ```
# ````


# %% tags=["hide-input"]
def holm(p_values, level=0.05):
    decided = set()
    for rank, k in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[k] >= level / (len(p_values) - rank):
            break
        decided.add(k)
    return decided


of_four = holm([0.011, 0.013, 0.02, 0.04])
check("holm", len(of_four), near(4, 0), kind="exact", says="All four are decided")

# %% [markdown]
# ```{exercise}
# :label: ex-replicate-terms
#
# ★★ *Judge.* A new sampler is reported to need a tenth of SGHMC's epochs. Write the list of what you would make equal before you run it, in order of importance for this book's examples.
# ```
#
# ```{solution} ex-replicate-terms
# :class: dropdown
#
# Gradients, not epochs; the same start; the same prior and scale of the likelihood; an average of equally many networks for both; the rate tuned as hard for SGHMC; several seeds, and the question fixed before.
# ```
#
# ## Further reading
#
# {cite:t}`izmailov2021` and {cite:t}`wenzel2020` are models of reports that others can run.
