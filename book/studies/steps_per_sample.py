# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Do more steps a sample pay?
#
# ```{div} page-head
# Level: second course · Reading: about 23 minutes, without the exercises · Running: about 3 seconds
# ```
#
# ```{index} ! steps per sample, thinning, equal gradients; see: epoch; pass
# ```

# %%
import numpy as np

from booklib.page.claims import check, near
from booklib.runs.results import RESULTS, Seeds, read_result
from booklib.scores.seeds import family, gap

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import DECIDED, OPEN
from booklib.page.figures import COLOURS, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import who_ran

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
LOOKS = {  # darker with m
    1: {"ls": "-", "color": COLOURS["SGHMC"]},
    3: {"ls": "--", "color": "#8f5577"},
    5: {"ls": ":", "color": "#4a2c3e"},
}

# %% [markdown]
# SGHMC can keep a sample after each step, or take $m$ finer steps, of size $\varepsilon/m$, for each sample.
# {cite:t}`adamday` take finer steps on MNIST: "increasing m increases the speed with which SGHMC reaches low error rates" (p. 12).
# Their speed is counted in epochs, and an epoch is $N/n$ samples for $N$ images in minibatches of $n$. With $m = 5$ it costs five times the gradients.
#
# **At equal gradients and friction finer steps do not pay: with $m = 5$ the averaged network's log loss is {c}`loss-5` higher than with $m = 1$ (five seeds). Counted in epochs, a third of the published head start of $m = 5$ at epoch 0 is left after five, {c}`start-α` points of error, and only if its friction was five times larger, too.**
# A 95 % interval is of a single comparison; *decided* allows for how many there are ({doc}`/book/studies/mnist`).
# {numref}`fig-steps-figure` shows the published curves in both units.

# %% mystnb={"figure": {"caption": "Figure 8 of {cite:t}`adamday` (p. 13), error on MNIST against time after the warm-up of 100 epochs, as we read it off (each point to 0.1 points; one run a curve). Left: in epochs, as printed. Right: the same points in gradients, the warm-up included.", "name": "fig-steps-figure"}, "image": {"alt": "Two panels with three falling curves of the error, from between five and eight per cent to between three and four. Left, against epochs, m = 5 is lowest at first and m = 1 highest, and they meet after 400 epochs. Right, against gradients on a logarithmic scale, m = 1 comes first, m = 3 second and m = 5 last."}} tags=["hide-input"]
EPOCHS = np.array([0, 100, 200, 400, 800])
PUBLISHED = {  # error, %
    1: [7.6, 6.3, 5.1, 4.0, 3.4],
    3: [5.7, 4.9, 4.6, 4.0, 3.2],
    5: [5.4, 4.4, 4.1, 3.9, 3.5],
}
figure, (by_epochs, by_gradients) = plt.subplots(1, 2, figsize=(6, 3), sharey=True)
for m, errors in PUBLISHED.items():
    by_epochs.plot(EPOCHS, errors, "o", ms=4, label=f"m = {m}", **LOOKS[m])
    by_gradients.semilogx(100 * m * (EPOCHS + 100), errors, "o", ms=4, **LOOKS[m])
by_epochs.set(xlabel="epochs of samples", ylabel="error, %", ylim=(0, 8))
by_gradients.set(xlabel="gradients")
by_epochs.legend()
plt.show()

# %% [markdown]
# *Before you read on: $m$ finer steps cover the time of one coarser step. What else do they change?*
#
# | | the setting of our runs |
# | --- | --- |
# | network and data | 784–100–10 ReLU, prior $N(0, 1)$; 50,000 digits of MNIST, minibatches of 500, five seeds |
# | tuned | nothing: the learning rate $\eta = 2\cdot10^{-6}$ and the momentum decay $\alpha = 0.01$ are the report's, at $m = 1$ |
# | equal terms | `python -m experiments run steps`, 20 minutes on one core |
# | as in the report | `held`, 1.5 hours: its start and its minibatches, with the right noise |
#
# ## What $m$ does, exactly
#
# ```{prf:theorem} What m changes
# :label: thm-steps-knobs
#
# SGHMC with $m$ steps of size $\varepsilon/m$ a sample is the chain with one such step a sample, of which every $m$-th state is kept.
# In the learning-rate form ({doc}`/book/tutorial/sghmc`: $\eta = \varepsilon^2M^{-1}$, $\alpha = \varepsilon M^{-1}C$) the step $\varepsilon/m$ at the same friction $C$ has the rate $\eta/m^2$ and the decay $\alpha/m$.
# ```
#
# ```{admonition} Proof
# :class: dropdown
#
# Position and momentum at the end of one sample's $m$ steps are those at the start of the next; the rest is the definition of $\eta$ and $\alpha$.
# ```
#
# Keeping every $m$-th state leaves the stationary distribution as it is. So all that $m$ does is to make the step finer, at $m$ times the price for the same stretch of time.
# What does a finer step buy? In a direction of curvature $h$ a model that fits has minibatch noise of variance $V \approx \frac Nnh$ ({eq}`eq-noise-curvature`). Without an estimate of the noise the chain is too hot there: with the step $\varepsilon/m$ its temperature is, to first order,
#
# $$
# T_m = 1 + \frac1m\cdot\frac{\eta V}{2\alpha}.
# $$ (eq-steps-heat)
#
# A finer step heats less. But the report's program draws one minibatch for all $m$ steps of a sample, which we call *held* (`sample` in `kernel/sghmc.py`, commit `2ef7428`).
# Its $m$ equal errors $-\frac\varepsilon m\xi$ add up to $-\varepsilon\xi$, whose variance is that of one step of size $\varepsilon$: **the held minibatch gives all the heat back.**
#
# So in a *stiff* direction (large $h$) with the temperature 2 at $m = 1$ the step with $m = 5$ has 1.2, and 2 again with a held minibatch.
# A *flat* direction, in which most weights lie, needs five times the gradients. At equal gradients and the same $C$ finer steps must therefore fall behind where time is short, and can win only where heat is the larger evil.
#
# ## On equal terms
#
# Our question is a family of eight comparisons with $m = 1$, with fresh minibatches: at equal gradients (12,000; 20 networks of the last 2,000 averaged) and at equal samples (so 36,000 and 60,000 gradients).

# %%
steps = Seeds.read("steps")
others = [name for name in steps.methods if name != "m = 1"]
gaps = family(
    {
        f"{name}: {score}": (
            steps(name, f"average.{score}", scale),
            steps("m = 1", f"average.{score}", scale),
        )
        for name in others
        for score, scale in (("error", 100), ("log_loss", 1))
    }
)

# %% tags=["hide-input"]
show_table(
    ["average, minus that of m = 1", "error, points [95 %]", "log loss [95 %]"],
    [
        [
            name,
            *(gaps[f"{name}: {score}"].starred() for score in ("error", "log_loss")),
        ]
        for name in others
    ],
)
print("* decided by Holm's procedure among the eight, at 0.05.")
print(who_ran(read_result(RESULTS / "steps.json")))

# %% tags=["hide-input"]
for m in (3, 5):
    loss = gaps[f"m = {m}, equal gradients: log_loss"]
    check(f"loss-{m}", loss, DECIDED, kind="stored")
error = gaps["m = 5, equal gradients: error"]
check("error-5", error, OPEN, kind="stored", margin=0.25)

# %% [markdown]
# **At equal gradients finer steps are worse in log loss**, by {c}`loss-3` for $m = 3$ and {c}`loss-5` for $m = 5$. In error the difference is {c}`error-5` points for $m = 5$, open although the interval leaves zero out; {c}`error-5.seeds` seeds would decide a quarter of a point.
# At equal samples, for three and five times the gradients, the log loss is worse, too. We guess that the 20 averaged networks are too alike: over all 2,000 steps from the first to the last a weight without data keeps two thirds of where it was, and only the heat of $m = 1$ makes them differ.
#
# ## Was it the steps in Figure 8?
#
# The report does not print $\eta$ and $\alpha$, and "$\varepsilon m$ fixed" (p. 12) can be read in two ways. If $C$ was kept, five steps with a held minibatch cool nothing. If $\alpha$ was kept, the friction is $m$ times larger, the heat $m$ times smaller, and a flat direction needs $m$ times the samples.
# We ran both readings with the program's start (uniform on $(-2, 2)$), its held minibatches and the right noise, and test the claim at the first point, where the curves are farthest apart: four comparisons. Published columns are at epochs 0 and 100.

# %%
held_runs = Seeds.read("held")
readings = {
    f"m = {m}, {kept} kept": f"m = {m}, held{', α fixed' if kept == 'α' else ''}"
    for kept in ("C", "α")
    for m in (3, 5)
}


def after(point):
    """Error of the average at a point of the curve, every five epochs, in percent."""

    def error(run):
        return 100 * [pair for pair in run["curve"]["average"] if pair][point][0]

    return {
        name: (held_runs(method, error), held_runs("m = 1", error))
        for name, method in readings.items()
    }


early, late = family(after(0)), family(after(9))

# %% tags=["hide-input"]
show_table(
    ["minus m = 1, points [95 %]", "published, at 0", "after 5 epochs", "at 100", "50"],
    [
        [
            name,
            f"{PUBLISHED[int(name[4])][0] - PUBLISHED[1][0]:+.1f}".replace("-", "−"),
            early[name].starred(),
            f"{PUBLISHED[int(name[4])][1] - PUBLISHED[1][1]:+.1f}".replace("-", "−"),
            late[name].starred(),
        ]
        for name in readings
    ],
)
print("* decided by Holm's procedure among the four.")
print(who_ran(read_result(RESULTS / "held.json")))

# %% tags=["hide-input"]
for name, bound in (("m = 5, α kept", DECIDED), ("m = 5, C kept", OPEN)):
    check(f"start-{name[7]}", early[name], bound, kind="stored", margin=0.35)
part = early["m = 5, α kept"].mean / (PUBLISHED[5][0] - PUBLISHED[1][0])
check("part", part, near(1 / 3, 0.05), kind="stored", says="Of the published start")


def at_gradients(number):
    """Last networks after so many gradients: m = 3 with α kept, minus m = 1."""

    def error(m):
        epochs = [100 * m * k for k in range(5, 155, 5)].index(number)
        return lambda run: 100 * run["curve"]["last"][epochs][0]

    return gap(
        held_runs("m = 3, held, α fixed", error(3)), held_runs("m = 1", error(1))
    )


for name, number in (("first", 1_500), ("last", 15_000)):
    check(f"equal-{name}", at_gradients(number), kind="stored")
less = gap(after(0)["m = 5, α kept"][0], after(0)["m = 5, C kept"][0])
check("friction", less, kind="stored")

# %% [markdown]
# With $\alpha$ kept the curves begin lower: the error of $m = 5$ minus that of $m = 1$ is {c}`start-α` points, and after 50 epochs the difference is open, as in the published figure. With $C$ kept there is no such start: {c}`start-C`.
# At equal *gradients* $m = 3$ with $\alpha$ kept begins ahead, too: the error of the last network minus that of $m = 1$ is {c}`equal-first` after 1,500 and {c}`equal-last` after 15,000 (chosen after the results).
# With five steps in both, the error with $\alpha$ kept minus that with $C$ kept is {c}`friction` points (one comparison, chosen after the results).
# So **the order holds as drawn, in epochs, if $\alpha$ was kept, with a third of its size; with five steps a sample it is the friction that makes the difference**; more friction at $m = 1$ was not run. The published start is of one run, its first epoch scored by drawn labels.
#
# ```{admonition} Trees: up to a thousand steps a sample
# :class: dropdown
#
# The report also replaces SGHMC's steps by trees ({doc}`/book/tutorial/sgnuts`), which take up to 1,023 gradients a sample.
# *Epoch by epoch* trees are ahead, as reported: by {c}`trees-0`, {c}`trees-1` and {c}`trees-2` points of accuracy after the first three. By then they have had {c}`gradients-trees` times SGHMC's gradients.
# One epoch of trees and then SGHMC, the proposed hybrid, is ahead of SGHMC throughout, for {c}`hybrid-first` times the gradients at first and {c}`hybrid-last` times at the end.
# *In seconds* ("0.87 in 28s, while SGHMC reached 0.89 in 50s", p. 16) the claim is open: at accuracies that differ by {c}`seconds` points trees took {c}`longer` s more.
#
# *At equal gradients*, 7,000 from a draw of the prior and with the corrected sampler, SGNUTS minus SGHMC is {c}`sgnuts` points, open; {c}`sgnuts.seeds` seeds would decide one point.
# SGHMC with a fresh momentum every ten steps of its first three epochs, and no tree, is ahead of plain SGHMC by {c}`fresh` points; its difference from trees first, {c}`late`, is open. A fresh momentum throws away the energy of the start, of which a draw from the prior has far too much.
# Three propositions explain why trees gain little on a network: {prf:ref}`thm-sgnuts-no-turn`, {prf:ref}`prop-sgnuts-half`, {prf:ref}`prop-sgnuts-slope`.
# ```

# %% tags=["hide-input"]
stored = {}
for name in ("trees", "trees_program", "trees_hybrid"):
    runs = read_result(RESULTS / f"{name}.json")["runs"]
    stored |= {method: {"runs": of_seeds} for method, of_seeds in runs.items()}
epochs = Seeds(stored)
COLD = "SGHMC, noise as in their program"
PROGRAM, HYBRID = "their rule, one momentum", "their rule, one momentum, then SGHMC"


def accuracy(method, index):
    return epochs(method, lambda run: 1 - run["epochs"][index]["average"]["error"])


def spent(method, index):
    return epochs(method, lambda run: run["epochs"][index]["gradients"]).mean()


columns = [(accuracy(PROGRAM, k), accuracy(COLD, k)) for k in range(3)]
ahead = family({f"trees-{k}": (100 * a, 100 * b) for k, (a, b) in enumerate(columns)})
for name, found in ahead.items():
    check(name, found, DECIDED, kind="stored")
check("gradients-trees", spent(PROGRAM, 2) / spent(COLD, 2), kind="stored", digits=2)
quick = gap(100 * accuracy(PROGRAM, 0), 100 * accuracy(COLD, 5))
check("seconds", quick, OPEN, kind="stored", margin=5)


def taken(run, index):
    return run["epochs"][index]["processor_seconds"]


longer = gap(
    epochs(PROGRAM, lambda run: taken(run, 0)), epochs(COLD, lambda run: taken(run, 5))
)
check("longer", longer, kind="stored")
columns = [(accuracy(HYBRID, k), accuracy(COLD, k)) for k in range(6)]
hybrid = family({str(k): (100 * a, 100 * b) for k, (a, b) in enumerate(columns)})
every = all(found.decided and found.mean > 0 for found in hybrid.values())
check("hybrid", every, kind="stored", says="The hybrid is ahead at every epoch")
for name, index in (("hybrid-first", 0), ("hybrid-last", 5)):
    times = spent(HYBRID, index) / spent(COLD, index)
    check(name, times, kind="stored", digits=2)

mnist = read_result(RESULTS / "sgnuts.json")["runs"]["MNIST"]
fair = Seeds({method: {"runs": runs} for method, runs in mnist.items()})


def correct(method):
    return 100 - fair(method, "average.error", 100)


FRESH, TREES_FIRST = "fresh momenta, then SGHMC", "SGNUTS, then SGHMC"
pairs = [(name, "SGHMC") for name in ("SGNUTS", TREES_FIRST, FRESH)]
pairs.append((FRESH, TREES_FIRST))
equal = family({f"{a} − {b}": (correct(a), correct(b)) for a, b in pairs})
check("fresh", equal[f"{FRESH} − SGHMC"], DECIDED, kind="stored")
check("sgnuts", equal["SGNUTS − SGHMC"], OPEN, kind="stored", margin=1)
check("late", equal[f"{FRESH} − {TREES_FIRST}"], OPEN, kind="stored", margin=1)

# %% [markdown]
# **To remember:** compare samplers at equal gradients. An epoch counted in samples hides a factor of five, one counted in trees {c}`gradients-trees` here, and perhaps a thousand.
#
# ## What this does not show
#
# * *Figure 8 to its end*: ours has 50 of 800 epochs. Five seeds of all lines take 9 hours.
# * *The report's 70 epochs of trees*: we ran three. They take 1.6 hours a seed. On clothes trees are open at equal gradients.
#
# ## Change it
#
# * In the cell of the four comparisons set `after(0)` to `after(3)`, the curve after 20 epochs: nothing is decided any more, and the check of $\alpha$ shows ✗.
# * In the cell of the eight comparisons set `average.{score}` to `last.{score}` in both lines: single networks of the finer steps err less, none decidedly; the checks of the log loss show ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-steps-minibatch
#
# ★ *Choose.* The $m$ gradients of a sample could also go into one minibatch of $mn$ examples and a single step. What does that do to the heat of a stiff direction, and to the time that a flat one needs?
# ```
#
# ```{solution} ex-steps-minibatch
# :class: dropdown
#
# It divides $V$ by $m$, and with it the heat, as the finer steps do. A step is still of size $\varepsilon$ and costs $m$ gradients, so a flat direction needs $m$ times the gradients in both cases. Two ways, one price.
# ```
#
# ````{exercise}
# :label: ex-steps-write
#
# ★★ **Write it yourself.** Compute the temperature of SGHMC at curvature $h$ with the step $\varepsilon/m$ from nothing but its formula: write a step as $(\theta, r)^\top \mapsto F(\theta, r)^\top + \text{noise}$ of covariance $Q$, and solve $\Sigma = F\Sigma F^\top + Q$ by repeating it. For $h = 100$, $V = 10^4$, $\eta = 2\cdot10^{-6}$, $\alpha = 0.01$ it should be 2.0 with $m = 1$ and 1.2 with $m = 5$.
#
# ```python
# def my_temperature(h, m, variance, step_size, friction):
#     step = step_size / m
#     F = np.array(...)
#     Q = np.diag(...)
#     ...
# ```
# ````
#
# ````{solution} ex-steps-write
# :class: dropdown
#
# The position moves first, so the gradient at the new position is $h\theta + h\varepsilon r$; the momentum receives $2C\varepsilon + \varepsilon^2V$.
#
# ```python
# def my_temperature(h, m, variance, step_size, friction):
#     step = step_size / m
#     F = np.array([[1, step], [-step * h, 1 - step * friction - step**2 * h]])
#     Q = np.diag([0, 2 * friction * step + step**2 * variance])
#     covariance = Q
#     for _ in range(40):  # each turn doubles the number of steps
#         covariance, F = covariance + F @ covariance @ F.T, F @ F
#     return h * covariance[0, 0]
# ```
# ````


# %% tags=["hide-input"]
def my_temperature(h, m, variance, step_size, friction):
    step = step_size / m
    F = np.array([[1, step], [-step * h, 1 - step * friction - step**2 * h]])
    Q = np.diag([0, 2 * friction * step + step**2 * variance])
    covariance = Q
    for _ in range(40):
        covariance, F = covariance + F @ covariance @ F.T, F @ F
    return h * covariance[0, 0]


mine = my_temperature(100.0, 5, 1e4, 2e-6**0.5, 0.01 / 2e-6**0.5)
check("by-hand", mine, near(1.2, 0.01), kind="exact", says="By hand, as the formula")

# %% [markdown]
# ```{exercise}
# :label: ex-steps-diagnose
#
# ★★ *Diagnose.* A paper's sampler with paths of 50 leapfrog steps a sample reaches a test error after 30 epochs that plain SGHMC reaches after 400. An epoch is $N/n$ samples. What do you ask before you believe that the paths help, and what may be the reason if they do?
# ```
#
# ```{solution} ex-steps-diagnose
# :class: dropdown
#
# Ask for the gradients: 30 epochs of such samples are 1,500 epochs of gradients. If the paths are ahead at equal gradients, ask what else differs: whether each sample begins with a fresh momentum (which throws the start's energy away), whether the friction per sample is another one, and whether a minibatch is held for the path.
# ```
#
# ## Further reading
#
# {doc}`/book/appendix/sgnuts_measured` has trees on a double well. {cite:t}`izmailov2021` show what long paths with exact gradients reach on networks.
