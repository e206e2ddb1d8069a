# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # What it costs
#
# ```{div} page-head
# Level: second course · Reading: about 18 minutes, without the exercises · Running: about 15 seconds
# ```
#
# ```{index} ! speed, ! time of a step, ! control variates, ! GPU, ! several GPUs, ! many machines, ! consensus Monte Carlo, ! slow NUTS
# ```
#
# What does an independent sample of a posterior cost, and what makes it cheaper?
#
# **On data that fit into memory, minibatches alone save no time on one core**: for an independent sample they read the data {c}`reads-sghmc` times in many small calls, HMC {c}`reads-hmc` times in a few large ones.
# Less noise saves, by {doc}`control variates </book/further/control_variates>`, and so do many chains in one call.
# {doc}`/book/practice/tuning` counts the gradients that `tune` and a run take for your number of examples and batch.
# All times below are of one core of a CPU: **no time on a GPU was measured** (`python -m benchmarks.gpu` does it), although some long runs of *Studies* were made on one.

# %% tags=["hide-input"]
import math

import matplotlib.pyplot as plt
import torch

from booklib.page.claims import at_least, at_most, check, near
from booklib.page.figures import COLOURS, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result, who_ran
import sgmc
from sgmc.splittings import sghmc_chain

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
double = torch.float64
result = read_result(RESULTS / "step_cost.json")

# %% mystnb={"figure": {"caption": "Seconds of the processor for an effective sample against the number of examples: logistic regression with four coefficients, minibatches of 500. Effective samples are those of the positions and of their squares, whichever are fewer.", "name": "fig-cost-size"}, "image": {"alt": "Log-log plot over ten thousand to ten million examples. Plain SGHMC and, below it, HMC rise in proportion to N; SGHMC with control variates is nearly level and lowest from a hundred thousand on."}} tags=["hide-input"]
size = result["size"]
styles = {
    "SGHMC": ("SGHMC", "s-"),
    "HMC": ("HMC", "o-"),
    "SGHMC, control variates": ("SGLD", "D--"),
}
each = {
    name: [row["seconds_an_effective_sample"]["best"] for row in size["rows"][name]]
    for name in styles
}
figure, axes = plt.subplots(figsize=(5.2, 3.4))
for name, (colour, style) in styles.items():
    axes.loglog(size["examples"], each[name], style, color=COLOURS[colour], label=name)
axes.set(xlabel="examples $N$", ylabel="seconds an effective sample")
axes.legend()
plt.show()
print(who_ran(result))
timed = result["provenance"]["versions"]["sgmc"]
if timed != sgmc.__version__:
    print(f"Version {timed} of sgmc was timed, which is older than this book's.")

# %% tags=["hide-input"]
stored = dict(kind="stored", digits=2)
steps = {
    name: [row["steps_an_effective_sample"] for row in size["rows"][name]]
    for name in ("SGHMC", "HMC")
}  # a step of HMC reads all the data
reads = [
    n * size["batch"] / N for n, N in zip(steps["SGHMC"], size["examples"], strict=True)
]
check("reads-sghmc", max(reads), near(1.7, 0.05), **stored)
check("reads-hmc", max(steps["HMC"]), near(2.7, 0.05), **stored)
most = max(x / y for x, y in zip(each["SGHMC"], each["HMC"], strict=True))
check("plain-over-hmc-most", most, at_least(2), **stored)
dearer = min(x / y for x, y in zip(each["SGHMC"], each["HMC"], strict=True))
check("plain-over-hmc", dearer, at_least(2), **stored)
for name, place in (("control-5", 1), ("control-7", 3)):
    gain = each["HMC"][place] / each["SGHMC, control variates"][place]
    check(name, gain, at_least(2), **stored)

# %% [markdown]
# In {numref}`fig-cost-size` plain SGHMC takes {c}`plain-over-hmc` to {c}`plain-over-hmc-most` times the seconds of HMC with all the data.
# HMC takes {c}`control-5` times the seconds of control variates at $10^5$ examples and {c}`control-7` times at $10^7$; these pay once, by finding the mode.
#
# ## Minibatches or not?
#
# One ratio decides, the noise $V$ of a minibatch gradient over the curvature $A$.
#
# ```{prf:theorem} An effective sample reads the data once
# :label: thm-cost-pass
#
# On a Gaussian with curvature $A$ (one coordinate), SGHMC with gradient noise $V$, $\hat B = \tfrac12\varepsilon V$ and friction $C$ has the autocorrelation time
#
# $$
# \tau = \frac{2C}{\varepsilon A} - \frac{\varepsilon C}{2 - \varepsilon C}
# $$ (eq-cost-tau)
#
# steps.
# As $C \ge \tfrac12\varepsilon V$, and if $\varepsilon C \le 1$, an independent sample takes $\tau \ge V/A - 1$ steps.
# With $A = Na$ and $V = N^2v/n$ these read $n\tau \ge (v/a)N - n$ examples; for a well-specified model, where $v = a$, they read the data once.
# ```
#
# The {ref}`proof <proof-cost-pass>` is in the appendix, and {doc}`/book/further/price` has the same law without the estimate.
# `default_kernel` prints the ratio of your model:

# %%
import torch

from sgmc.models import control_variates
from sgmc.posteriors import LogisticRegression
from sgmc.tuning import default_kernel, find_mode

generator = torch.Generator().manual_seed(0)
x = torch.randn(10_000, 4, generator=generator, dtype=torch.float64)
logits = x @ torch.tensor([0.5, -0.5, 1.0, 0.0], dtype=torch.float64)
y = torch.bernoulli(logits.sigmoid(), generator=generator)
model = LogisticRegression(x, y, batch_size=100)  # yours
mode = find_mode(model, torch.zeros(1, 4, dtype=torch.float64))
calm = control_variates(model, mode[0])
plain = default_kernel(model, mode)
near_mode = mode + 0.02 * torch.randn(20, 4, generator=generator, dtype=torch.float64)
calmer = default_kernel(calm, near_mode)  # where the samples are
print("plain", plain.reason.split(";")[1])
print("control variates", calmer.reason.split(";")[1])

# %% tags=["hide-input"]
ratio = 2 / plain.step_size  # ε = min(½, 2/ν)
check(
    "read",
    ratio * 100 / 10_000,
    near(1, 0.25),
    kind="exact",
    digits=2,
    because="v = a up to the error of 10,000 examples; a direction of four",
)
largest = 0.0
settings = (0.1, 4, 100), (0.01, 4, 100), (0.3, 2, 1), (0.05, 30, 3)
for step, friction, a in settings:
    chain = sghmc_chain(torch.tensor([[a]], dtype=double), step, float(friction))
    formula = 2 * friction / (step * a) - step * friction / (2 - step * friction)
    tau = chain.autocorrelation_time(torch.tensor([1.0, 0.0], dtype=double))
    largest = max(largest, abs(tau / formula - 1))
check(
    "tau",
    largest,
    at_most(1e-9),
    kind="exact",
    because="the theorem; rounding",
    says="Largest relative difference of the formula from exact chains, four settings",
)

# %% [markdown]
# So with minibatches of 100 an independent sample takes at least as many steps as the first line says, which read {c}`read` times the data.
# With control variates the noise is nothing beside the curvature, and the step is limited by the curvature alone.
#
# Minibatches pay where a gradient of all the data is out of the question, on the way in from a bad start, and where nobody waits for independent samples, as with networks.
#
# ## Chains
#
# A step costs calls of library functions, each about a microsecond, and arithmetic. Calls do not depend on the number of chains, so a hundred chains cost hardly more than one:

# %% mystnb={"figure": {"caption": "Time of a step of all chains together against their number: SGHMC on a mixture with two parameters and 200 observations, by `SGHMC` (eager) and by `CompiledSGHMC`.", "name": "fig-cost-chains"}, "image": {"alt": "Log-log plot with two curves of points: the eager one is level at about 43 microseconds up to a hundred chains, the compiled one at about 4 up to ten, and then they rise in proportion to the number of chains; the compiled one lies below."}} tags=["hide-input"]
chains = result["chains"]
figure, axes = plt.subplots(figsize=(5.2, 3.2))
times = {}
for kind, colour in (("eager", COLOURS["SGHMC"]), ("compiled", COLOURS["SGLD"])):
    times[kind] = [row["best"] * 1e6 for row in chains[kind]]
    axes.loglog(chains["chains"], times[kind], "o-", ms=4, color=colour, label=kind)
axes.set(xlabel="chains", ylabel="µs a step, all chains")
axes.legend()
plt.show()

# %% tags=["hide-input"]
check("hundred", times["eager"][2] / times["eager"][0], at_most(1.5), **stored)
check("compiled", times["eager"][0] / times["compiled"][0], at_least(5), **stored)

# %% [markdown]
# In {numref}`fig-cost-chains` a hundred chains take {c}`hundred` times as long as one, and compiling makes one chain {c}`compiled` times as fast.
# For a small model add chains first, then gradients a sample (`num_steps`), then `sgmc.compiled.CompiledSGHMC`. For a network the arithmetic counts: a gradient in bfloat16 took {c}`bfloat16` of the time of one in float32, where positions and momenta must stay in float32, because small moves would be lost.
#
# ## Other libraries, the faster ones first
#
# The table has microseconds a step, one chain, by stored runs (`python -m conformance speed`). Compiling is left out.

# %% tags=["hide-input"]
precision = result["precision"]["network"]
check(
    "bfloat16",
    precision["module in bfloat16"]["best"] / precision["module in float32"]["best"],
    at_most(0.6),
    **stored,
)
libraries = read_result(RESULTS / "speed_of_libraries.json")
names = {"numpyro": "NumPyro", "sgmc, compiled": "sgmc, compiled"}
jobs = {
    "NUTS": "NUTS, a gradient",
    "NUTS, Weibull frailty": "a frailty program, an effective sample",
    "NUTS, horseshoe": "a horseshoe program, an effective sample",
    "logistic, SGLD": "SGLD, logistic regression",
    "logistic, SGHMC": "SGHMC, the same",
    "network, 1 chain": "SGHMC, a network",
}
cost = {
    (row["row"], names.get(row["entry"], row["entry"])): row["microseconds_a_step"]
    for row in libraries["rows"]
    if "gradient" not in row["law"]
}
rows = []
for job, words in jobs.items():
    found = sorted(
        (time["median"], name) for (row, name), time in cost.items() if row == job
    )
    rows.append([words, "; ".join(f"{name} {time:,.0f}" for time, name in found)])
show_table(["job", "µs"], rows)
print(who_ran(libraries))
for job, words in (
    ("NUTS, horseshoe", "The rows of NUTS:"),
    ("logistic, SGHMC", "SGHMC, logistic regression:"),
):
    later = next(row for row in libraries["rows"] if row["row"] == job)
    print(words, who_ran(later), sep="\n")

# %% tags=["hide-input"]
nuts = {name: cost["NUTS", name]["median"] for name in ("sgmc", "NumPyro", "blackjax")}
check("numpyro", nuts["sgmc"] / nuts["NumPyro"], at_most(1), **stored)
check("blackjax", nuts["sgmc"] / nuts["blackjax"], near(3.36, 0.01), **stored)
for program in ("frailty", "horseshoe"):
    row = f"NUTS, {program}".replace("frailty", "Weibull frailty")
    both = [cost[row, name]["median"] for name in ("sgmc, compiled", "NumPyro")]
    check(program, both[0] / both[1], at_most(2), **stored)
names = "sgmc, compiled", "blackjax, fresh minibatches"
ours, theirs = (cost["logistic, SGHMC", name]["median"] for name in names)
check("fresh", ours / theirs, at_most(1.5), **stored)
sgld = {row: cost["logistic, SGLD", row]["median"] for row in ("sgmc", "SGMCMCJax")}
row = "network, 1 chain"
check(
    "network",
    cost[row, "sgmc"]["median"] / cost[row, "blackjax"]["median"],
    near(1.33, 0.01),
    **stored,
)
check("sgld", sgld["sgmc"] / sgld["SGMCMCJax"], near(7.1, 0.1), **stored)

# %% [markdown]
# Programs that JAX compiles are faster where steps are short. **For NUTS take blackjax if your model is written for it**: our gradient takes {c}`blackjax` times as long, and {c}`numpyro` times as long as NumPyro's. Of two Pyro programs, compiled by `CompiledPotential` and chains one after the other in NumPyro, an effective sample costs {c}`frailty` and {c}`horseshoe` times as much as NumPyro's; to compile one took 10 to 20 seconds in both. Compiled SGHMC takes {c}`fresh` times as long as blackjax's with a fresh minibatch in each step, a fifth more or less from run to run; for SGLD it is {c}`sgld` times. On a network, where arithmetic dominates, a step takes {c}`network` times as long as blackjax's, which samples another distribution.
# Turns of one row differ by a factor of up to two. The SGHMC of posteriors, blackjax, SGMCMCJax and jax-sgmc samples another distribution than Algorithm 2, so its time does not compare; {doc}`/book/practice/which_library` has the biases.
#
# If *our* NUTS is slow: standardise the inputs, start at `find_mode`, compile a Pyro program by `sgmc.compiled.CompiledPotential`, write hierarchies {ref}`non-centred <my-pyro-program>`, and look at `draws.statistics["depth_limited"]` ({doc}`/book/practice/tuning_hmc`). All chains of a call wait for the deepest tree.
#
# ## More machines
#
# *Several processes, machines or GPUs* share nothing: give each its own seed, save what it drew, and pool. For a GPU put the data, the module, the start and its generator there; a run is on the device of its start.
#
# *Data that cannot come together* are sampled in parts, each with its share of the data and the prior to the power $1/J$, and combined {cite:p}`scott2016`.
# Gaussian log densities add, so for Gaussian parts the product of the fitted Gaussians is the posterior. The ten lines below are all of it; in practice every part runs on the machine that has its data.

# %%
import tempfile

from sgmc import NUTS, Draws, sample
from sgmc.tuning import adapt

J, folder = 4, tempfile.mkdtemp()
for j in range(J):  # on machine j
    part = LogisticRegression(x[j::J], y[j::J], prior_variance=1.0 * J)
    kernel, start = adapt(NUTS(0.1), part, mode.repeat(10, 1), 50, seed=j)
    sample(kernel, part, start, 100, seed=j).save(f"{folder}/part{j}.pt")

samples = [Draws.load(f"{folder}/part{j}.pt").samples.flatten(0, 1) for j in range(J)]
precisions = [torch.linalg.inv(part.T.cov()) for part in samples]
covariance = torch.linalg.inv(sum(precisions))
sums = [P @ part.mean(0) for P, part in zip(precisions, samples, strict=True)]
mean = covariance @ sum(sums)
print("largest mean:", round(float(mean.max()), 1))

# %% tags=["hide-input"]
whole = LogisticRegression(x, y, prior_variance=1.0)
gradient = whole.gradient(mode)
steepest = torch.autograd.functional.hessian(
    lambda t: whole.energy(t[None])[0], mode[0]
)
laplace = mode[0] - torch.linalg.solve(steepest, gradient[0])
deviations = torch.linalg.inv(steepest).diagonal().sqrt()
check(
    "parts",
    ((mean - laplace) / deviations).abs().max(),
    at_most(0.6),
    because="the Laplace approximation, good at 10,000 examples",
)


def rare_events(number, events=22, hours=64, deals=20_000):
    """How far the product of the parts is off for a log rate, in posterior standard
    deviations, root mean square over deals of the events: each part is the logarithm
    of a gamma variable, whose moments are known.
    """
    dealt = torch.randint(number, (deals, events), generator=generator)
    a = torch.nn.functional.one_hot(dealt, number).sum(1).double() + 0.5 / number
    means = torch.digamma(a) - math.log((1.0 + hours) / number)
    precisions = 1 / torch.polygamma(1, a)
    average = (precisions * means).sum(1) / precisions.sum(1)
    total = a.sum(1)
    truth = torch.digamma(total) - math.log(1.0 + hours)
    return ((average - truth) / torch.polygamma(1, total).sqrt()).square().mean().sqrt()


for number, off in ((4, 0.3), (16, 1.1)):
    check(f"rare-{number}", rare_events(number), near(off, 0.1), digits=2)

# %% [markdown]
# The means are within {c}`parts` standard deviations of the whole posterior's.
# With skewed parts the product is wrong: the log rate of 22 rare events is off by {c}`rare-4` standard deviations with 4 parts and by {c}`rare-16` with 16, root mean square over deals.
# A second round corrects it: send common candidates to every part, add the energies $U_j$ that come back, and weigh by $\exp(-\sum_jU_j)/q$ with the candidates' density $q$ ({ref}`ex-cost-parts`).
# Cut no finer than you must, deal the examples at random, and do not average weights of networks, which lie in different modes.
# Chains of one posterior on several machines have no such bias: combine `Draws.load(...)` of runs with different seeds by `Draws.pool`.
#
# **To remember:** look at $V/A$ before you expect minibatches to save time; control variates and chains save, and for NUTS blackjax is faster.
#
# ## Change it
#
# * In the visible cell of the ratio set `batch_size=100` to `batch_size=1_000`: the ratio falls to a tenth, and a sample reads the data as often.
# * In the cell of the parts set `J, folder = 4` to `J, folder = 40`: parts of 250 examples are less Gaussian, and the means are further off.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-cost-bend
#
# ★ A step of one chain takes 45 µs, of which the arithmetic is 0.1 µs.
# Up to how many chains is a step at most twice as expensive?
# What does a compiler change that makes the calls ten times cheaper?
# ```
#
# ```{solution} ex-cost-bend
# :class: dropdown
#
# A step of $c$ chains takes $45 + 0.1c$ µs, twice as much at $c = 450$.
# With calls of 4.5 µs the bend is at 45 chains; at 10,000 chains the compiler saves, of the calls alone, 40 µs of 1,045.
# ```
#
# ```{exercise}
# :label: ex-cost-parts
#
# ★★ **Write it yourself.** Write the second round without drawing: the candidates' $\log q$ and the energies from all parts are given.
# Take care that no weight overflows.
#
# ~~~python
# def second_round(log_q, energies, values):
#     """Weighted mean of the values, and the share of candidates that is left."""
#     ...
# ~~~
# ```
#
# ```{solution} ex-cost-parts
# :class: dropdown
#
# The cell below has it. A constant in all logarithms of weights cancels in both results, so subtract the largest one before $\exp$. The share is $(\sum w)^2/(n\sum w^2)$; near zero the result is worth nothing.
# ```


# %% tags=["hide-input"]
def second_round(log_q, energies, values):
    """Weighted mean of the values, and the share of candidates that is left."""
    log_weight = -sum(energies) - log_q
    weight = (log_weight - log_weight.max()).exp()
    share = weight.sum() ** 2 / (len(weight) * (weight**2).sum())
    return (weight * values).sum() / weight.sum(), float(share)


grid = torch.linspace(-8, 8, 4_001, dtype=double)  # candidates from a uniform q
parts = [(grid - 1) ** 2 / 2, (grid + 2) ** 2 / 2]  # energies of N(1, 1) and N(−2, 1)
found, share = second_round(torch.zeros_like(grid), parts, grid)
check(
    "second-round",
    found,
    near(-0.5, 1e-9),
    kind="exact",
    says="The solution on two Gaussian parts with means 1 and −2: the posterior mean",
)

# %% [markdown]
# ```{exercise}
# :label: ex-cost-price
#
# ★★ Your model has $N = 10^6$ rows, an effective sample of HMC reads the data three times, and a pass takes 20 ms. Minibatches of 1,000 take 50 µs a step. Which is cheaper for 400 independent samples, and what would control variates with $V/A = 1$ and $\tau = 10$ steps of 80 µs take, if the mode takes 60 passes?
# ```
#
# ```{solution} ex-cost-price
# :class: dropdown
#
# HMC takes $400\cdot3\cdot20$ ms = 24 s. Minibatches take $V/A \approx N/n = 1{,}000$ steps for each sample, $400\cdot1{,}000\cdot50$ µs = 20 s at the least, and with $\hat B$ half of the friction twice that. Control variates take 0.3 s, and 1.2 s for the mode.
# ```
#
# ## Further reading
#
# {cite:t}`baker2019` have the control variates, {cite:t}`scott2016` consensus and {cite:t}`scott2017` where it fails; {cite:t}`micikevicius2018` and {cite:t}`zhang2022` train and sample in few bits, and {cite:t}`williams2009` tell arithmetic from memory.
