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
# Level: second course · Reading: about 23 minutes, without the exercises · Running: about 15 seconds
# ```
#
# ```{index} ! fidelity, error floor, total variation, agreement, reference posterior
# ```

# %%
import itertools

import arviz
import numpy as np
import torch

from booklib.data import diabetes
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import at_least, at_most, check, near
from booklib.runs.results import RESULTS, Seeds, read_result
from booklib.scores.fidelity import bin_mixtures
from booklib.scores.seeds import family
from sgmc import sample
from sgmc.kernels import HMC, SGHMC
from sgmc.posteriors import Gaussian, NetworkPosterior
from sgmc.predictions import function_space_rhat
from sgmc.tuning import adapt

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt
from scipy import stats

from booklib.page.claims import DECIDED, OPEN
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import who_ran

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# That weights do not agree while functions do is an exercise of this page.
warnings.filterwarnings("ignore", message=".*do not agree")

# %% [markdown]
# Samplers, ensembles, dropout and Laplace's method promise the posterior's predictions.
# For a network of a few hundred weights long chains of HMC are a reference. We measure distances from it in *floors*: one floor is the distance between two halves of the reference.
# How close does each method come?
#
# **With 4,000 minibatches no method is close: the nearest is {c}`least-patients` floors away on patients, where a hundred exact draws would be at {c}`hundred-patients`, and {c}`least-digits` on digits, where they would be at {c}`hundred-digits`. HMC that reads ten times as many examples, in no more seconds than SGHMC takes, comes nearer: on patients its distance minus SGHMC's is {c}`hmc` floors (95 %, five seeds). With as many examples it is {c}`one-budget` farther.**
# {numref}`fig-fidelity-methods` shows all methods. Intervals are of single comparisons; *decided* allows for how many there are ({doc}`/book/studies/mnist`).

# %%
problems = read_result(RESULTS / "fidelity.json")["problems"]
seeds = {name: Seeds(found["methods"]) for name, found in problems.items()}  # five


def floors(problem, method):
    """Distance from the reference in floors, one number for each seed."""
    floor = problems[problem]["reference"]["floor"]["total_variation"]
    return seeds[problem](method, "total_variation", 1 / floor)


def by_chance(problem, draws):
    """The distance in floors of so many exact, independent draws."""
    known = problems[problem]["reference"]
    worth = 2 / np.pi * (known["deviations"] / known["floor"]["total_variation"]) ** 2
    return 0.5 * (1 + worth / draws) ** 0.5


for name in problems:
    known = problems[name]["reference"]
    floor, draws = known["floor"]["total_variation"], 8 * known["draws"]
    print(f"{name:8}  {draws:,} draws, floor {floor:.4f} in total variation")

# %% mystnb={"figure": {"caption": "Distance from the reference in floors, five seeds (dots), and where as many exact and independent draws would be expected (bars). Left: patients; right: digits. Grey: one floor. Open dots have a larger budget. Names: {doc}`/book/studies/neighbours_on_networks`.", "name": "fig-fidelity-methods"}, "image": {"alt": "Two panels of dots, methods one below the other, on a logarithmic axis from one to several hundred floors. Three chains with ten times the budget come first in both, at 7 to 14; almost all others lie between 13 and 100 floors, those with many draws to the right of their bars."}} tags=["hide-input"]
order = sorted(  # the digits have all methods
    seeds["digits"].methods, key=lambda name: floors("digits", name).mean()
)
LONGER = " times the budget"
figure, panels = plt.subplots(1, 2, figsize=(6.8, 5.2), sharex=True, sharey=True)
for axes, (problem, title) in zip(
    panels, {"diabetes": "patients", "digits": "digits"}.items(), strict=True
):
    for row, name in enumerate(order):
        if name not in seeds[problem].methods:
            continue
        found = floors(problem, name)
        colour = COLOURS.get(name.split(",")[0], "black")
        face = "white" if LONGER in name or "adversarial" in name else colour
        axes.semilogx(found, [-row] * len(found), "o", ms=4, color=colour, mfc=face)
        networks = seeds[problem](name, "networks")[0]
        axes.plot(by_chance(problem, networks), -row, "|", ms=8, mew=2, color=colour)
    axes.axvline(1, color=TRUTH, lw=3, alpha=0.5)
    axes.set(title=title, xlabel="distance in floors")
short = [name.replace(LONGER, " times") for name in order]
panels[0].set_yticks([-row for row in range(len(order))], short, fontsize=7)
plt.show()

# %% [markdown]
# *Before you read on: an ensemble of five networks and five exact draws from the posterior. Which of the two predicts nearer to the posterior?*
#
# | | the setting |
# | --- | --- |
# | patients | progress of diabetes in 442 patients {cite:p}`efron2004`, 280 for training, 62 for validation, 100 for the test; 10–16–16–1 tanh units, noise variance 0.5 |
# | digits | 1,000 digits of 7×7 pixels, as many for validation and test; 49–16–10 tanh units; both priors $N(0, 1)$ |
# | budget | 4,000 minibatches of 28 patients or 50 digits; HMC reads as many examples |
# | tuned | each method by the log loss on validation examples, in runs of a third of the length; never by the reference |
# | reference | eight chains of HMC from draws of the prior; $\hat R$ of each prediction is below 1.01, or the run stops |
# | run | `python -m experiments run fidelity`, five seeds: less than an hour on one core |
#
# ## A ruler with a known error
#
# Let $p(k \mid x)$ be the posterior's probability of class $k$, the average of $p(k \mid x, \theta)$ over $\theta \sim \pi$, and $q$ a method's. Their distance is the *total variation*, averaged over the test inputs:
#
# $$
# d(p, q) = \frac1I\sum_{i=1}^I\frac12\sum_k\lvert p(k \mid x_i) - q(k \mid x_i)\rvert.
# $$ (eq-fidelity-distance)
#
# In a regression, narrow bins of the target are the classes.
#
# The reference has an error, too. Its chains are independent, so halve them: the **floor** is the distance between the two halves, averaged over all ways to halve eight chains.
#
# How far is a method that is *exact*, but averages only $n$ draws? Let $s_k(x)$ be the standard deviation of $p(k \mid x, \theta)$, and $D$ the average over inputs of $\sum_ks_k$. The difference of two averages, of $n$ and of $m$ independent draws, has mean zero and variance $s_k^2(\frac1n + \frac1m)$; for large $n$ and $m$ it is nearly normal, and $E\lvert z\rvert = \sqrt{2/\pi}$. Sum over $k$ and halve:
#
# $$
# E\,d(\hat p_n, \hat p_m) \approx \sqrt{\frac2\pi}\,\frac D2\sqrt{\frac1n + \frac1m}.
# $$ (eq-fidelity-chance)
#
# If the whole reference is worth $S$ independent draws, its floor has $n = m = S/2$, and the exact method $m = S$. Divide:
#
# $$
# \frac{E\,d(\hat p_n, \hat p_S)}{\text{floor}} \approx \frac12\sqrt{1 + \frac Sn}.
# $$ (eq-fidelity-exact)
#
# A larger distance is bias. Does {eq}`eq-fidelity-chance` hold for a chain's draws, with the {term}`effective draws` for $S$? We test it with a small reference for the patients:

# %%
train, _, test = diabetes()
network = multilayer_perceptron([10, 16, 16, 1], "tanh")
posterior = NetworkPosterior(network, *train, likelihood=Gaussian(0.5))
start = torch.randn(8, posterior.dim, generator=torch.Generator().manual_seed(0))
kernel, position = adapt(HMC(0.01, 15, jitter=0.2), posterior, start, 100)
reference = sample(kernel, posterior, position, 150)


def functions(draws):
    """f(x; θ) at the test inputs: (draws, chains, inputs)."""
    return torch.stack([posterior.predict(place, test.inputs) for place in draws])


outputs = functions(reference.samples)
check("agree", function_space_rhat(outputs).max(), at_most(1.06), digits=3)


# %%
def floor_of(by_chain):
    """The mean distance between halves of the chains: (chains, inputs, bins)."""
    chains, found = set(range(len(by_chain))), []
    for half in itertools.combinations(sorted(chains), len(chains) // 2):
        one, other = by_chain[list(half)], by_chain[list(chains - set(half))]
        found.append(0.5 * (one.mean(0) - other.mean(0)).abs().sum(-1).mean())
    return sum(found) / len(found)


EDGES = torch.linspace(-6, 6, 121)  # of the bins of a target
by_chain = torch.stack([bin_mixtures(f, 0.5, EDGES) for f in outputs.unbind(1)])
some = outputs[::10].reshape(1, -1)  # single draws, as if each were an input
single = bin_mixtures(some, 0.5, EDGES).view(-1, len(test.inputs), len(EDGES) + 1)
data = arviz.convert_to_dataset(outputs.transpose(0, 1).double().numpy())
worth = 1 / (1 / arviz.ess(data)["x"]).mean().item()  # S
expected = (2 / torch.pi) ** 0.5 * single.std(0).sum(-1).mean() / worth**0.5
check("floor", floor_of(by_chain) / expected, near(1, 0.25), digits=3)

# %% [markdown]
# The chains agree in every prediction (largest $\hat R$ {c}`agree`), and the measured floor is {c}`floor` times the expected one.
#
# ## The verdict
#
# The differences of all methods from SGHMC make one family in each problem.

# %%
gaps = {
    problem: family(
        {
            name: (floors(problem, name), floors(problem, "SGHMC"))
            for name in seeds[problem].methods
            if name != "SGHMC"
        }
    )
    for problem in problems
}

# %% tags=["hide-input"]
NAMED = ["HMC, the same budget", "SGLD", "ensemble", "ensemble, adversarial"]
NAMED = [name for name in order if LONGER in name and "ens" not in name] + NAMED
NAMED += ["dropout", "Bayes by Backprop", "Laplace, all weights"]

rows = []
for name in NAMED:
    compared = [gaps[p][name].starred() if name in gaps[p] else "" for p in problems]
    rows.append([name, *compared])
show_table(["floors, minus SGHMC [95 %]", "patients", "digits"], rows)
print("* decided by Holm's procedure in its family, given this reference.")
its = [f"{floors(problem, 'SGHMC').mean():.1f}" for problem in problems]
print(f"SGHMC itself: {its[0]} floors on patients, {its[1]} on digits.")
print(who_ran(read_result(RESULTS / "fidelity.json")))

# %% mystnb={"code_prompt_hide": "Hide widths and log losses", "code_prompt_show": "Show widths, log losses and seconds"} tags=["hide-cell"]
COLD = ("SGHMC, cold", "cSGHMC, cold")
KEYS = {"width": "spread", "log loss": "scores.log_loss"}


def columns(problem, name):
    """Width and log loss of a method, mean of five seeds."""
    spread, loss = (seeds[problem](name, key).mean() for key in KEYS.values())
    width = spread / problems[problem]["reference"]["spread"]
    return [f"{width:.2f}", f"{loss:.3f}"]


known = [problems[problem]["reference"]["scores"]["log_loss"] for problem in problems]
rows = [["the reference", "1", f"{known[0]:.3f}", "1", f"{known[1]:.3f}", ""]]
for name in ["SGHMC", *NAMED[:3], "SGLD", "ensemble", *COLD, NAMED[-1]]:
    seconds = f"{seeds['digits'](name, 'processor_seconds').mean():.1f}"
    rows.append([name, *columns("diabetes", name), *columns("digits", name), seconds])
heads = [f"{title}: {key}" for title in ("patients", "digits") for key in KEYS]
show_table(["mean of five seeds", *heads, "digits: seconds"], rows)

# %% tags=["hide-input"]


def ranks(problem):
    """Spearman's correlation of log loss and distance over the methods."""
    names = list(seeds[problem].methods)
    losses = [seeds[problem](name, "scores.log_loss").mean() for name in names]
    return stats.spearmanr(losses, [floors(problem, n).mean() for n in names])[0]


TEN = ", ten times the budget"
ten = max(floors(problem, "SGHMC" + TEN).mean() for problem in problems)
price = max(
    seeds[problem]("HMC" + TEN, "processor_seconds").mean()
    / seeds[problem]("SGHMC", "processor_seconds").mean()
    for problem in problems
)
for problem, title in (("diabetes", "patients"), ("digits", "digits")):
    least = min(
        floors(problem, name).mean()
        for name in seeds[problem].methods
        if LONGER not in name and "adversarial" not in name  # each minibatch twice
    )
    check(f"least-{title}", least, at_least(12), kind="stored", digits=2)
    check(f"hundred-{title}", by_chance(problem, 100), kind="stored", digits=2)
check("ten", ten, at_most(9), kind="stored", digits=2)
check("hmc", gaps["diabetes"]["HMC" + TEN], DECIDED, kind="stored")
check("one-budget", gaps["diabetes"]["HMC, the same budget"], kind="stored")
check("price", price, at_most(1), kind="stored", digits=2)
ensemble = gaps["digits"]["ensemble"]
check("ensemble", ensemble, OPEN, kind="stored", margin=1)
source = family(
    {p: (floors(p, "SGLD"), floors(p, "ensemble")) for p in ("diabetes", "digits")}
)
check("source-patients", source["diabetes"], OPEN, kind="stored")
check("source-digits", source["digits"], DECIDED, kind="stored")
share, times = (
    floors(problem, "ensemble").mean() / by_chance(problem, 5)
    for problem in ("digits", "diabetes")
)
better = sum(
    seeds["digits"](name, "scores.log_loss").mean() < known[1]
    for name in seeds["digits"].methods
)
check("better", better, kind="stored", digits=2)
check("five", share, at_most(0.9), kind="stored", digits=2)
check("five-patients", times, kind="stored", digits=2)
patients = seeds["diabetes"]
wide = patients("SGHMC, cold", "spread").mean()
wide /= problems["diabetes"]["reference"]["spread"]
check("cold-width", wide, kind="stored", digits=2)
rates = [
    patients.methods[name]["settings"]["rate"] for name in ("SGHMC, cold", "SGHMC")
]
check("cold-rate", rates[0] / rates[1], kind="stored", digits=2)
check("demonstrated", 0.1 / rates[1], kind="stored", digits=2)
check("ranks-patients", ranks("diabetes"), at_least(0.8), kind="stored", digits=2)
check("ranks-digits", ranks("digits"), at_most(0.4), kind="stored", digits=2)

# %% [markdown]
# * **Ten times the budget: the samplers come first** on both problems; SGHMC is then within {c}`ten` floors. HMC with ten times the examples takes at most {c}`price` of the time of SGHMC at one budget: where all the data fit into a step, try HMC first.
# * **One budget: the order depends on the problem.** On patients SGHMC is ahead of all but dropout and Bayes by Backprop, which are open. On digits nothing is decidedly ahead of it: ensembles are open (minus SGHMC {c}`ensemble`).
# * **Few optimised networks can beat as many draws.** On digits the ensemble is at {c}`five` of the distance of five exact draws, because a mode lacks the scatter of a draw. It also lacks the posterior's width: on patients it is at {c}`five-patients` times their distance.
# * **The width shows what the score does not.** The *width* is the spread of the predictions over a method's draws, in units of the reference's. SGLD on patients has less than half of it, at the rate that validation chose, the smallest of seven. On patients the cold chain of SGHMC is {c}`cold-width` times as wide as the posterior: validation gave it {c}`cold-rate` times SGHMC's rate, and the minibatches' noise heats it. Laplace's draws of all weights are far too wide, because a network is not linear {cite:p}`immer2021`.
# * **A small log loss need not mean closeness.** The rankings by log loss and by distance have the correlation {c}`ranks-patients` on patients, but {c}`ranks-digits` on digits, where {c}`better` of 25 methods have a smaller log loss than the posterior. Among them are both samplers at a low temperature, a *cold posterior effect* {cite:p}`wenzel2020`.
#
# {cite:t}`izmailov2021`, on far larger networks, find an ensemble about as near to HMC as SGLD. Ours are open on patients (SGLD minus ensemble: {c}`source-patients`); on digits SGLD is farther, decided ({c}`source-digits`).
#
# What a large step would do: the minibatches' noise comes on top, and makes the chain too wide. The rate here is {c}`demonstrated` times the tuned one:

# %%
minibatches = NetworkPosterior(network, *train, likelihood=Gaussian(0.5), batch_size=28)
sghmc = SGHMC.from_learning_rate(0.1 / len(train.targets), 0.1)
draws = sample(sghmc, minibatches, reference.samples[-1], 120, thinning=10)
spreads = [
    functions(each.samples).flatten(0, 1).var(0).mean() for each in (draws, reference)
]
check("heated", (spreads[0] / spreads[1]) ** 0.5, at_least(1.4))

# %% [markdown]
# This chain of SGHMC starts in the posterior and becomes {c}`heated` times as wide.
#
# **To remember:** a distance from the posterior needs two others beside it: the reference's own error, and the distance of as many exact draws.
#
# ## What this does not show
#
# * *Large networks*: the HMC of {cite:t}`izmailov2021` took 512 TPUs.
# * *Another split or another reference*: all intervals are given these.
# * *Smaller differences on digits*: {c}`ensemble.seeds` seeds would decide one floor between the ensemble and SGHMC.
#
# ## Change it
#
# * Draw 15 in place of 150 of each chain: `sample(kernel, posterior, position, 15)`. The check on $\hat R$ shows ✗: so few draws do not show whether the chains agree.
# * Give SGHMC minibatches of 140: `batch_size=140`. The noise's variance falls to a ninth, and the check on the width shows ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-fidelity-halves
#
# ★ *Compute.* For which number of exact draws is a method as far from the reference as its halves are from each other?
# ```
#
# ```{solution} ex-fidelity-halves
# :class: dropdown
#
# $\frac12\sqrt{1 + S/n} = 1$ at $n = S/3$.
# ```
#
# ````{exercise}
# :label: ex-fidelity-write
#
# ★★ **Write it yourself.** Average the density of a target, $N(f(x; \theta), \sigma^2)$, over draws, in bins. There is a bin below the first edge and one above the last.
#
# ```python
# def in_bins(outputs, variance, edges):
#     """Probabilities (inputs, bins) from f(x; θ), (draws, inputs)."""
# ```
# ````
#
# ````{solution} ex-fidelity-write
# :class: dropdown
#
# ```python
# def in_bins(outputs, variance, edges):
#     z = (edges.double() - outputs.double()[..., None]) / variance**0.5
#     below = torch.special.ndtr(z).mean(0)  # of each edge
#     none, everything = torch.zeros_like(below[:, :1]), torch.ones_like(below[:, :1])
#     return torch.cat([none, below, everything], 1).diff()
# ```
#
# In a bin $\lvert\int(p - q)\rvert \le \int\lvert p - q\rvert$: cutting can only bring two densities nearer.
# ````


# %% tags=["hide-input"]
def in_bins(outputs, variance, edges):
    z = (edges.double() - outputs.double()[..., None]) / variance**0.5
    below = torch.special.ndtr(z).mean(0)  # of each edge
    none, everything = torch.zeros_like(below[:, :1]), torch.ones_like(below[:, :1])
    return torch.cat([none, below, everything], 1).diff()


off = (in_bins(outputs[0], 0.5, EDGES) - bin_mixtures(outputs[0], 0.5, EDGES)).abs()
says = "The solution minus the package's, at most"
check("bins", off.max(), near(0, 1e-12), kind="exact", says=says)

# %% [markdown]
# ```{exercise}
# :label: ex-fidelity-symmetry
#
# ★★ *Diagnose.* The largest $\hat R$ of this page's weights is about 1.3, that of its predictions 1.02. Have the chains mixed? Count the positions that compute the same function, for one hidden layer of $h$ tanh units.
# ```
#
# ```{solution} ex-fidelity-symmetry
# :class: dropdown
#
# Units can stand in $h!$ orders, and each can change the signs of its weights: $2^hh!$ positions, for 16 units more than $10^{18}$, which the prior does not tell apart. A chain near one of them never meets the others' weights, and its functions are theirs. For predictions the chains have mixed.
# ```
#
# ## Further reading
#
# {cite:t}`wilson2022` report the competition that used this distance: all winners approximated several modes. {cite:t}`vehtari2021` for $\hat R$; {cite:t}`foong2020` on what mean-field inference and dropout cannot express.
