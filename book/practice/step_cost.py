# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # What a step costs
#
# ```{div} page-head
# Level: advanced · Reading: about 49 minutes, without the exercises · Running: about 20 seconds
# ```
#
# ```{index} ! speed, ! time of a step, ! profiler, ! bfloat16, ! control variates
# ```
#
# A step of a sampler is some arithmetic, some memory traffic and some waiting for Python; knowing which of them you pay for tells what will make it faster.
#
# One finding of this page can be read without the rest: with few parameters, and data that fit into memory, minibatches alone save nothing; [the section on the size of the data](#cost-against-the-size-of-the-data) says why, and what does save.
#
# **You will learn** to
#
# * compare two programs fairly: the same job, the same distribution, seconds an effective sample,
# * find with a profiler where the time of your own run goes,
# * choose the precision that a noisy gradient deserves,
# * say what a stochastic gradient saves when the data grow, and what it does not.
#
# **You will need** {doc}`/book/tutorial/sghmc` and {doc}`/book/tutorial/minibatch_noise`.

# %%
import math
import textwrap

import matplotlib.pyplot as plt
import torch
from torch.nn import functional

from benchmarks.mixture import MINIBATCH, PRINTED, MixtureMeans, observations, posterior
from benchmarks.step_cost import (
    PUBLISHED,
    best_step,
)
from booklib.data import digits
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import claim
from booklib.page.figures import COLOURS, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result, who_ran
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.posteriors import NetworkPosterior
from sgmc.splittings import sghmc_chain

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
double = torch.float64
result = read_result(RESULTS / "step_cost.json")

# %% [markdown]
# ## Two programs, two jobs
#
# {cite:t}`wang2021` wrote SGHMC for a course; by the times that they print C++ was 24 times as fast as Python, on a mixture $\tfrac12 N(x; \mu_1, 1) + \tfrac12 N(x; \mu_2, 1)$ with $\mu_k \sim N(0, 10)$ and true means $(-3, 3)$.
# They print $\varepsilon = 0.1$, $C = V = 4$ and minibatches of 1; their public notebooks tell what was run:
#
# | | Python, Cholesky, Numba | C++ |
# | --- | --- | --- |
# | target | the mixture, 200 observations | the double well $-2\theta^2 + \theta^4$, no data |
# | $\varepsilon$, $C$, $\hat V$ | 0.01, 1, 1 | 0.1, 1, 4 |
# | gradient | minibatches of 50, by automatic differentiation | a formula, plus $N(0, 4)$ |
# | rounds × steps | 499 × 4 | 3,999 × 100 |
# | seconds | 7.61 | 0.316 |
#
# These are two jobs, so how much of the difference is the language cannot be told from them: a *step* of the C++ program was almost five thousand times as fast, because a cubic polynomial takes the place of automatic differentiation through a sum of 50 logarithms.

# %% tags=["hide-input"]
steps = {name: run["draws"] * run["job"].steps for name, run in PUBLISHED.items()}
each = {name: PUBLISHED[name]["seconds"] / steps[name] for name in PUBLISHED}
claim(
    "Published time of Python over that of C++",
    PUBLISHED["Python"]["seconds"] / PUBLISHED["C++"]["seconds"],
    near=24.1,
    within=0.05,
    because="the numbers of the report",
    kind="exact",
)
claim(
    "Steps that the C++ program took, for each step of the Python program",
    steps["C++"] / steps["Python"],
    near=200.35,
    within=0.01,
    because="rounds times steps in the notebooks",
    kind="exact",
)
claim(
    "Published time of a step in Python over that of a step in C++",
    each["Python"] / each["C++"],
    near=4825,
    within=5,
    because="both of these",
    kind="exact",
)

# %% [markdown]
# Here are jobs of those sizes, run by our programs, whose gradients are written by hand.
# All times of this page were measured once, by `benchmarks/step_cost.py`, and are read from its stored result; the other numbers are computed as the page is built.

# %% tags=["hide-input"]
rows = []
for name, times in result["own"].items():
    published = times["published"]
    for program, value in times.items():
        seconds = value["seconds"] if program == "published" else value["best"]
        each_step = seconds / published["steps"] * 1e9
        rows.append(
            [f"{name} job, {program}", f"{seconds * 1e3:,.2f}", f"{each_step:,.0f}"]
        )
show_table(["job and program", "ms", "ns a step"], rows)

# %% [markdown]
# The speed is only half of it, because a fast chain may have another distribution.
# In the Python job the noise of a minibatch has nothing to do with $\hat V = 1$:

# %%
means = MixtureMeans(torch.from_numpy(observations()), batch_size=50)
truth = torch.tensor([[-3.0, 3.0]], dtype=double)
gradients = means.per_example_gradients(truth, means.gather(None))[0]
noise = 200 * 150 / 50 * gradients.T.cov()  # of 50 of 200 without replacement

# %% [markdown]
# SGHMC with the numbers of the Python job would have two and a half times the variance of the posterior; with those that are printed, and minibatches of one, hundreds of times ({doc}`/book/appendix/errata` describes the notebooks' loops).

# %% tags=["hide-input"]
curvature = torch.autograd.functional.hessian(
    lambda x: means.energy(x[None])[0], truth[0]
)
job = PUBLISHED["Python"]["job"]
hot = sghmc_chain(curvature, job.step_size, job.friction, noise, job.noise_estimate)
claim(
    "Variance of a minibatch gradient at the true means, mean of the two coordinates",
    float(noise.trace() / 2),
    near=300,
    within=60,
    because="half of the observations belong to each component, and have variance 1",
)
claim(
    "Variance of SGHMC with those numbers and fresh minibatches over that of the "
    "posterior, by its linearised law",
    float(
        hot.stationary_covariance()[:2, :2].trace()
        / torch.linalg.inv(curvature).trace()
    ),
    near=2.5,
    within=0.4,
    because="(C − B̂ + B)/C with B̂ = 0.005 and B = 1.5",
)
single = noise * (200 * 199) / (200 * 150 / 50)  # minibatches of one
claim(
    "Variance of SGHMC with the printed ε = 0.1, C = V = 4, minibatches of one, over "
    "that of the posterior",
    float((4 - 0.2 + 0.5 * 0.1 * single.trace() / 2) / 4),
    near=250,
    within=50,
    because="(C − B̂ + B)/C with B̂ = 0.2 and B about 1,000",
)

# %% [markdown]
# For a fair comparison all need one job, whose distribution is known.
# We take what is printed, with gradients of all 200 observations seen through $N(0, 4)$; and a second job with true minibatches of 50, where $\varepsilon = 0.01$ and $\hat B = \tfrac12\varepsilon V = 1.5 < C = 4$.
# What counts is **seconds an effective sample**: time over the effective sample size, pooled over the chains {cite:p}`vehtari2021`, of the sorted means, because the posterior has two modes that mirror each other.
#
# In the table *eager* means that Python calls the operators of PyTorch one after the other, *compiled* that `torch.compile` makes one program of them, and *ESS* is the effective sample size; *fast* C++ has single precision, a small generator and `-ffast-math`.

# %% tags=["hide-input"]
JOBS = (("printed", "all data"), ("minibatches", "minibatch"))
rows = [
    [
        name,
        word,
        f"{row['seconds_a_step']['best'] * 1e9:,.0f}",
        f"{row['seconds_an_example']['best'] * 1e9:,.2f}",
    ]
    for title, word in JOBS
    for name, row in result["jobs"][title].items()
]
show_table(["program", "job", "ns/step", "ns/example"], rows)

# %% [markdown]
# These are nanoseconds a step and chain, and for one example's gradient.
# Next, what counts: steps and microseconds for an effective sample, and how many times cheaper it is than in the plain C++ program.

# %% tags=["hide-input"]
rows = []
for title, _ in JOBS:
    base = result["jobs"][title]["C++ plain, 1 chain"]["seconds_an_effective_sample"]
    for name, row in result["jobs"][title].items():
        cost = row["seconds_an_effective_sample"]["best"]
        rows.append(
            [
                name if title == "printed" else f"{name}, minibatch",
                f"{cost * 1e6:,.2f}",
                f"{base['best'] / cost:,.2f}",
                f"{row['steps_an_effective_sample']:.1f}",
            ]
        )
show_table(["program", "µs/ESS", "times cheaper", "steps/ESS"], rows)
load = result["machine_load"]
words = (
    f"{who_ran(result)}. Compiler: {result['compiler']}. Load average "
    f"{load['load_average']}: seconds of the processor, best of "
    f"{result['settings']['turns']} turns."
)
print(textwrap.fill(words, 88))

# %% [markdown]
# A single chain in NumPy or PyTorch pays for calls and not for arithmetic; the plain C++ program needs less than a tenth of NumPy's time for the same job.
# At the job with all the data ten thousand chains at once beat the plain C++ program, eager and compiled, but not the fast one.
# At the job with minibatches the package loses to both, because a thousand different minibatches have to be drawn and gathered in each step.
# What wins is not the language but vector units that are kept busy, and enough work for each call.

# %% tags=["hide-input"]
price = {
    (title, name): row["seconds_an_effective_sample"]["best"]
    for title, rows_of in result["jobs"].items()
    for name, row in rows_of.items()
}
plain = price["printed", "C++ plain, 1 chain"]
claim(
    "An effective sample by NumPy over one by plain C++, all data",
    price["printed", "NumPy, 1 chain"] / plain,
    near=18,
    within=5,
    because="the stored result",
    kind="stored",
)
claim(
    "An effective sample by plain C++ over one by ten thousand chains of the package, "
    "eager, all data",
    plain / price["printed", "sgmc, 10,000 chains"],
    at_least=2.5,
    because="the stored result: C++ is beaten",
    kind="stored",
)
claim(
    "An effective sample by plain C++ over one by ten thousand chains of the package, "
    "compiled, all data",
    plain / price["printed", "sgmc compiled, 10,000 chains"],
    at_least=4,
    because="the stored result: C++ is beaten",
    kind="stored",
)
claim(
    "An effective sample by 10,000 compiled chains over one by fast C++, all data",
    price["printed", "sgmc compiled, 10,000 chains"]
    / price["printed", "C++ fast, 1 chain"],
    near=1.2,
    within=0.25,
    because="the stored result: fast C++ is not beaten",
    kind="stored",
)
claim(
    "An effective sample by a thousand chains, the better of eager and compiled, over "
    "one by plain C++, minibatches",
    min(
        price["minibatches", name]
        for name in ("sgmc, 1,000 chains", "sgmc compiled, 1,000 chains")
    )
    / price["minibatches", "C++ plain, 1 chain"],
    near=4,
    within=1.5,
    because="the stored result: not even plain C++ is beaten",
    kind="stored",
)

# %% [markdown]
# The report times a Cholesky factor and Numba; here are both, with gradients by hand, in one process:

# %% tags=["hide-input"]
variants = result["variants"]
step_of = {
    name: [
        variants["jobs"][title][name]["seconds_a_step"]["best"] * 1e9
        for title, _ in JOBS
    ]
    for name in variants["jobs"]["printed"]
}
rows = [[name, *(f"{ns:,.0f}" for ns in both)] for name, both in step_of.items()]
show_table(["program, 1 chain", "ns/step, all data", "minibatch"], rows)
words = f"{who_ran(variants)}. Load average {variants['machine_load']['load_average']}"
print(textwrap.fill(words, 88))

# %% [markdown]
# For NumPy the factor, instead of `multivariate_normal`, saves two thirds of a step, and with all data Numba's loop is about as fast as plain C++.
# In the report, whose step of 3.8 ms is mostly automatic differentiation, they help “a little” (p. 4).

# %% tags=["hide-input"]
claim(
    "A step of NumPy with multivariate_normal over one with a Cholesky factor, all "
    "data",
    step_of["NumPy, multivariate normal"][0] / step_of["NumPy, Cholesky"][0],
    near=3.2,
    within=0.5,
    because="the stored result",
    kind="stored",
)
claim(
    "What the Cholesky factor saves in the steps of the Python job, over its 7.61 s",
    (step_of["NumPy, multivariate normal"][0] - step_of["NumPy, Cholesky"][0])
    * 1e-9
    * steps["Python"]
    / PUBLISHED["Python"]["seconds"],
    at_most=0.02,
    because="the stored result, on our machine; the report prints 7.61 s and 7.48 s",
    kind="stored",
)
claim(
    "A step by Numba over one by plain C++, all data",
    step_of["Numba"][0] / step_of["C++ plain"][0],
    at_most=1.5,
    because="the stored result",
    kind="stored",
)

# %% [markdown]
# Many chains need many warm-ups: chains that drop 200 samples and keep 800 pay a quarter more, which one long chain does not.
# All programs have the same distribution, or the comparison would mean nothing; with the printed $\varepsilon$ the step is so long that its variance is four tenths too large, in every language.

# %% tags=["hide-input"]
for title, job in (("printed", PRINTED), ("minibatches", MINIBATCH)):
    rows_of = result["jobs"][title]
    best = max(rows_of.values(), key=lambda row: row["draws"] * row["chains"])
    worst = 0.0
    for row in rows_of.values():
        number = (
            row["draws"] * row["chains"] * job.steps / row["steps_an_effective_sample"]
        )
        for i in range(2):
            worst = max(
                worst,
                abs(row["mean"][i] - best["mean"][i]) / best["sd"][i] * number**0.5,
            )
    claim(
        f"Largest |z| of a posterior mean against the largest run, job {title}",
        worst,
        at_most=4.0,
        because=(
            "the stored result; 14 comparisons, Monte Carlo error of the smaller run"
        ),
        kind="stored",
    )
    sd = torch.linalg.inv(curvature).diagonal().sqrt()
    V = job.noise_variance or 2 * job.noise_estimate / job.step_size
    chain = sghmc_chain(curvature, job.step_size, job.friction, V, job.noise_estimate)
    heat = float((chain.stationary_covariance().diagonal()[:2] / sd**2).mean())
    claim(
        f"Variance of the largest run over that of the posterior, job {title}",
        float(((torch.tensor(best["sd"]) / sd) ** 2).mean()),
        near=round(heat, 2),
        within=0.06,
        because="the stored result, and the law of the linearised chain",
        kind="stored",
    )
    claim(
        f"No chain exchanged the two means, job {title}",
        not any(row["switched"] for row in rows_of.values()),
        because="the stored result; the ridge between the modes is about 760 high",
        kind="stored",
    )

# %% [markdown]
# ## Published libraries beside ours
#
# Where steps are short, programs that JAX compiles are faster than ours: for the same SGLD, jax-sgmc needs about a seventh of our time, and a JAX loop with the distribution of `CompiledSGHMC` about an eighth of its time on a single chain.
# For NUTS on the same regression, blackjax needs a quarter of our time a gradient.
# With networks the arithmetic dominates, and the differences are small.
#
# The table has microseconds of the processor a step (NUTS: a gradient), medians of turns by `python -m conformance speed`.
# A time counts only beside its distribution, which is that of the library's SGHMC in the second column; {doc}`/book/practice/which_library` has its bias.
# Compiling is left out.

# %% tags=["hide-input"]
libraries = read_result(RESULTS / "speed_of_libraries.json")
cost, laws = {}, {}
for row in libraries["rows"]:
    cost[row["entry"], row["row"]] = row["microseconds_a_step"]["median"]
    if row["row"] != "logistic, SGLD":
        law = row["law"].split("; momentum")[0].split(" and ")[0]
        laws.setdefault(row["entry"], law)
columns = {
    "well, 1": "double well, 1 chain",
    "10,000": "double well, 10,000 chains",
    "SGLD": "logistic, SGLD",
    "SGHMC": "logistic, SGHMC",
    "network, 8": "network, 8 chains",
    "NUTS": "NUTS",
}
rows = [
    [
        entry,
        law,
        *(
            f"{cost[entry, row]:,.2f}" if (entry, row) in cost else "–"
            for row in columns.values()
        ),
    ]
    for entry, law in laws.items()
]
show_table(["program", "samples", *columns], rows)
spread = max(
    last / first
    for first, last in (
        row["microseconds_a_step"]["spread"] for row in libraries["rows"]
    )
)
print(
    textwrap.fill(
        f"{who_ran(libraries)}. Load average "
        f"{libraries['provenance']['load_average']}; the largest of seven turns (NUTS: "
        f"three) was up to {spread:.1f} times the smallest, so that differences below "
        "a factor of two say nothing.",
        88,
    )
)

# %% tags=["hide-input"]
claim(
    "A step of SGLD, sgmc over jax-sgmc, logistic regression",
    cost["sgmc", "logistic, SGLD"] / cost["jax-sgmc", "logistic, SGLD"],
    at_least=3,
    because="the stored result: calls from Python, against one compiled loop",
    kind="stored",
)
claim(
    "A step of Algorithm 2 in one chain of the double well, CompiledSGHMC over a JAX "
    "loop",
    cost["sgmc, compiled", "double well, 1 chain"]
    / cost["JAX by hand", "double well, 1 chain"],
    at_least=4,
    because="the stored result: ten steps a call, against the whole run",
    kind="stored",
)

# %% [markdown]
# ## A model of the cost
#
# Where does a step's time go?
# There are three prices.
#
# ```{prf:definition} Cost of a step
# :label: def-cost-model
#
# A step that consists of $k$ calls of library functions, $F$ floating-point operations and $Q$ bytes moved between the processor and its memory takes about
#
# $$
# t \approx k\,t_0 + \max\Bigl(\frac{F}{\pi}, \frac{Q}{\beta}\Bigr),
# $$ (eq-cost-model)
#
# with the price $t_0$ of a call, the peak $\pi$ in operations a second, and the bandwidth $\beta$ in bytes a second.
# A run takes the number of steps times this; an effective sample, the autocorrelation time times this.
# ```
#
# The sum assumes that the processor cannot compute while Python decides what to do next, which holds on a CPU.
# The second term is the **roofline** {cite:p}`williams2009`: a program of $I = F/Q$ operations a byte runs at $\min(\pi, \beta I)$ operations a second at most.
# The first term does not depend on the number of chains, so the first ten chains are nearly free:

# %% mystnb={"figure": {"caption": "Time of a step of all chains together against their number, the mixture with all its data. Lines: the model $t_0 + c\\,t_1$ through the first and the last but one point. Where a line is level a step costs calls, where it rises arithmetic and memory.", "name": "fig-cost-chains"}, "image": {"alt": "Log-log plot with two curves of points, eager and compiled: the eager one is level up to about a hundred chains, the compiled one up to about ten, and then they rise in proportion to the number of chains; the compiled one lies below. The last eager point lies several times above its line."}} tags=["hide-input"]
chains = result["chains"]
number = torch.tensor(chains["chains"], dtype=double)
figure, axes = plt.subplots()
for kind, colour in (("eager", COLOURS["SGHMC"]), ("compiled", COLOURS["SGLD"])):
    if kind not in chains:
        continue
    seconds = torch.tensor([row["best"] for row in chains[kind]], dtype=double)
    slope = (seconds[-2] - seconds[0]) / (number[-2] - number[0])
    grid = torch.logspace(0, math.log10(chains["chains"][-1]), 100)
    axes.loglog(grid, (seconds[0] + slope * (grid - 1)) * 1e6, color=colour, lw=1)
    axes.loglog(number, seconds * 1e6, "o", color=colour, label=kind)
axes.set(xlabel="chains $c$", ylabel="µs a step, all chains")
axes.legend()
plt.show()

# %% [markdown]
# In {numref}`fig-cost-chains` the points follow the model: level at the left, where a step costs its calls, and rising at the right, where it costs work.
# Where arithmetic is the limit, as in a network's gradient, fewer bits help; where bytes are, as in the update of $\theta$ and $r$, only fewer bytes; and where calls are, more chains or a compiler.
#
# ## Where the time goes
#
# The table times the parts of a step alone, on the tensors of the run.

# %% tags=["hide-input"]
names = [
    "injected noise",
    "minibatch or gradient noise",
    "gather",
    "gradient",
    "update",
]
rows = []
for name, part in result["parts"].items():
    seconds = part["seconds"]
    shares = [
        f"{seconds.get(key, 0) / seconds['whole']:.0%}"
        for key in (*names, "loop and calls")
    ]
    rows.append(
        [name, f"{seconds['whole'] * 1e6:,.0f}", *shares, f"{part['operators']:.0f}"]
    )
heads = ["a step of", "µs", "noise", "batch", "gather", "gradient", "update", "rest"]
show_table([*heads, "operators"], rows)

# %% [markdown]
# *Noise* is the injected noise, *batch* the choice of examples or the noise of the gradient, *gather* the copy of the chosen examples, *rest* what the parts leave.
# The random numbers are cheap, because noise is drawn for many steps at once.
# A single chain pays for its fifty-odd operators, each about a microsecond.
#
# Ten thousand chains in eager mode may pay for something that no operator shows: **page faults**.
# Every array of 10,000 × 200 numbers is 8 megabytes, some two thousand *pages* of memory, which the system fills with zeros when a program first touches them, again and again if the C library gives freed memory back at once.
# This is the gradient of ten thousand chains without and with `MALLOC_MMAP_THRESHOLD_=33554432` and `MALLOC_TRIM_THRESHOLD_=1073741824` in the environment:

# %% tags=["hide-input"]
rows = [
    [name, f"{row['best'] * 1e3:.1f}", f"{row['page_faults']:,}"]
    for name, row in result["memory"].items()
]
show_table(["freed memory", "ms a gradient", "page faults a gradient"], rows)

# %% [markdown]
# For your own run, let PyTorch's profiler tell:

# %%
kernel = SGHMC(0.1, 4.0, 0.2, num_steps=10)
potential, generator = posterior(PRINTED), torch.Generator().manual_seed(0)
calls = {}
for chains_of in (1, 1_000):
    state = kernel.init(
        potential, torch.tensor([[-3.0, 3.0]]).repeat(chains_of, 1), generator
    )
    with torch.profiler.profile() as profile:
        kernel.step(potential, state, generator)
    calls[chains_of] = {
        row.key: row.count for row in profile.key_averages() if "aten" in row.key
    }

# %% [markdown]
# `print(profile.key_averages().table(sort_by="self_cpu_time_total"))` shows the most expensive operators first.
#
# 1. Profile ten samples after ten others, so that nothing is measured that happens once.
# 2. Add up `self_cpu_time_total` and compare with the clock.
#    If a sample takes more than twice the sum, you pay for Python: more chains, more gradients for each sample (`num_steps`), or `sgmc.compiled.CompiledSGHMC`.
# 3. If the operators take it, but each takes a few microseconds, you pay for calls: the same remedies.
# 4. If few operators take it, see which.
#    Products of matrices (`aten::mm`, `aten::addmm`): fewer bits or a smaller model.
#    `index_select`: smaller batches.
#    Elementwise operators on large arrays: a compiler.

# %% tags=["hide-input"]
claim(
    "One chain and a thousand take the same number of operators, apart from the "
    "drawing of noise",
    abs(sum(calls[1].values()) - sum(calls[1_000].values())) / sum(calls[1].values()),
    at_most=0.1,
    because="the first term of the model does not depend on the number of chains",
)
claim(
    "Operators of a step of one chain",
    sum(calls[1].values()) / 10,
    at_least=20,
    because="each takes about a microsecond, whatever it does",
)

# %% [markdown]
# ## What precision a noisy gradient deserves
#
# A product in bfloat16, with eight significant bits, is several times faster than one in float32 on processors that have it.
# Is that precise enough?
# The gradient is wrong anyway, because it comes from a minibatch, so its rounding has to be compared with *that*.
#
# ```{prf:theorem} Rounding as extra noise
# :label: thm-cost-rounding
#
# On a Gaussian, let the gradient noise have the covariance $V$, let rounding add an independent error of mean zero with covariance at most $\rho^2V$, and let the friction of SGHMC be large enough for the noise, $C \succeq B = \tfrac12\varepsilon V$, with $\hat B = B$.
# Then the covariance of the chain is at least the one without rounding, and at most $1 + \rho^2$ times it.
# ```
#
# ```{prf:proof}
# The noise that enters the momentum in a step has covariance $2(C - B)\varepsilon + \varepsilon^2V(1 + \rho^2) = 2\varepsilon(C + \rho^2B)$ instead of $2\varepsilon C$, or less.
# As $B \preceq C$, this lies between $2\varepsilon C$ and $2\varepsilon C(1 + \rho^2)$, and the stationary covariance of a linear chain grows with that of its noise.
# ```
#
# A tenth of the minibatch noise, $\rho = 0.1$, makes an error of at most one per cent in the variance; a hundredth one of at most $10^{-4}$.
# The assumption *of mean zero* needs care: data that were rounded once stay rounded, so we round the inputs first, which for images with few grey levels costs nothing.
# And where a network has learnt its digits, minibatches agree, and less noise is left to hide the rounding, so we look at three places: the start, a place that an optimiser found, and one on the way of SGHMC.

# %%
train, _ = digits()
generator = torch.Generator().manual_seed(1)
inputs = train.inputs.bfloat16().float()
module = multilayer_perceptron([inputs.shape[1], 100, 10])
network = NetworkPosterior(module, inputs, train.targets, batch_size=500)
start = network.initial_position(1, generator)
walks = {
    "start": None,
    "optimised": SGHMC.from_learning_rate(1e-5, 0.1, temperature=0.0, num_steps=8),
    "SGHMC": SGHMC.from_learning_rate(8e-5, 0.04, num_steps=8),
}


def gradient(indices, dtype):
    """The gradient of −log p(targets | weights), scaled up, in one number format."""
    named = {name: value[0].to(dtype) for name, value in network.named(weights).items()}
    for value in named.values():
        value.requires_grad_()
    outputs = torch.func.functional_call(module, named, inputs[indices].to(dtype))
    loss = functional.cross_entropy(outputs, train.targets[indices], reduction="sum")
    flat = torch.cat(
        [g.flatten() for g in torch.autograd.grad(loss, [*named.values()])]
    )
    return flat.double() * len(inputs) / len(indices)


def medium(indices):
    """The same in float32, with products in bfloat16 where the library has them."""
    torch.set_float32_matmul_precision("medium")
    found = network.gradient_given(weights, indices[None])[0]
    torch.set_float32_matmul_precision("highest")
    return (found + network.grad_log_prior(weights)[0]).double()


batches = [torch.randperm(len(inputs), generator=generator)[:500] for _ in range(24)]
shares = {}
for place, walk in walks.items():
    weights = start
    if walk is not None:  # 60 epochs
        draws = sample(walk, network, start, 60, seed=1, progress=False)
        weights = draws.samples[-1]
    weights = weights.bfloat16().float()
    exact = torch.stack([gradient(batch, double) for batch in batches])
    spread = exact.var(0).sum().sqrt()
    for name, approximate in {
        "float32": lambda batch: gradient(batch, torch.float32),
        "medium": medium,
        "bfloat16": lambda batch: gradient(batch, torch.bfloat16),
    }.items():
        errors = torch.stack([approximate(batch) for batch in batches]) - exact
        always = errors.mean(0).square().sum() - errors.var(0).sum() / len(batches)
        shares[place, name] = float(errors.square().sum(1).mean().sqrt() / spread)
        shares[place, f"{name}, always"] = float(always.clamp(min=0).sqrt() / spread)

# %% mystnb={"figure": {"caption": "Error of a gradient over the noise of a minibatch of 500, in three number formats and at three places. Crosses: the part of the error of bfloat16 that is the same in every minibatch.", "name": "fig-cost-precision"}, "image": {"alt": "Three groups of points on a logarithmic axis, for the start, an optimised place and the way of SGHMC. Float32 lies below a hundred thousandth everywhere. Bfloat16 lies between a thousandth and a tenth, least at the start; the crosses lie below it. Medium lies with one of them, depending on the processor."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.4, 3.4))
looks = {
    "float32": ("o", COLOURS["HMC"]),
    "medium": ("s", COLOURS["SGLD"]),
    "bfloat16": ("D", COLOURS["SGHMC"]),
    "bfloat16, always": ("x", COLOURS["naive SGHMC"]),
}
for name, (marker, colour) in looks.items():
    values = [max(shares[place, name], 1e-8) for place in walks]
    axes.semilogy([*walks], values, marker, color=colour, label=name)
axes.set(ylabel="error over the noise", xlim=(-0.5, 2.5), ylim=(1e-8, 1))
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %% [markdown]
# In {numref}`fig-cost-precision` a point at 0.1 is an error of a tenth of the noise; *always* is the part that is the same in every minibatch, and moves the mean.
# On the way of SGHMC even bfloat16 makes an error of a few hundredths of the minibatch noise at most.
# At the optimised place the share is several times that of the start, so measure it where your chain is.

# %% tags=["hide-input"]
claim(
    "Largest error of a float32 gradient over the noise of a minibatch of 500",
    max(shares[place, "float32"] for place in walks),
    at_most=1e-5,
    because="24 significant bits",
)
claim(
    "Error of a bfloat16 gradient over the noise of a minibatch of 500, at the start",
    shares["start", "bfloat16"],
    at_most=0.015,
    because="eight significant bits, in sums that are kept in more of them",
)
claim(
    "Error of a bfloat16 gradient over the noise of a minibatch of 500, on the way of "
    "SGHMC",
    shares["SGHMC", "bfloat16"],
    at_most=0.04,
    because="measured",
)
claim(
    "Error of a bfloat16 gradient over that noise, optimised place over the start",
    shares["optimised", "bfloat16"] / shares["start", "bfloat16"],
    at_least=2,
    because="the noise of a minibatch is smaller there",
)
claim(
    "Largest error with float32 numbers, and products in bfloat16 where the library "
    "makes use of the permission",
    max(shares[place, "medium"] for place in walks),
    at_most=0.1,
    because="less is rounded, or nothing",
)
claim(
    "The part of a bfloat16 gradient's error that is the same in every minibatch, "
    "over the noise, on the way of SGHMC",
    shares["SGHMC", "bfloat16, always"],
    at_most=0.02,
    because="such a part moves the mean, and does not average out",
)

# %% [markdown]
# What does it save?
# A step of the network, and of the mixture with ten thousand chains, in the stored run:

# %% tags=["hide-input"]
rows = []
bases = {
    "network": "float32, highest",
    "mixture": "eager, float32",
    "products": "float32, highest",
}
for case, reference in bases.items():
    times = result["precision"][case]
    base = times[reference]["best"]
    for name, value in times.items():
        error = f"{value['error']:.0e}" if "error" in value else ""
        rows.append(
            [
                f"{case}: {name}",
                f"{value['best'] * 1e6:,.0f}",
                f"{base / value['best']:.1f}",
                error,
            ]
        )
show_table(["what", "µs", "times as fast", "relative error"], rows)

# %% [markdown]
# The last rows are the largest product of matrices in the network alone, with its error relative to the exact product.
# `torch.set_float32_matmul_precision("medium")` *permits* the library to multiply float32 matrices in bfloat16; in the stored run it did not do so, as its error shows, and was faster all the same.
# So try the switch, and look at time *and* error.
#
# A *position* must stay in float32, because it is a sum of many small moves: near $|\theta| = 1$ bfloat16 numbers lie $2^{-7}$ apart, and a move of less than half of that is lost.
# Keep a **master copy** in float32, of which only the gradient sees the rounded number {cite:p}`micikevicius2018,zhang2022`.
#
# ## Cost against the size of the data
#
# HMC reads all the data for every gradient, a stochastic gradient reads $n$ examples, whatever $N$ is.
# An *effective sample* is another matter.
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
# As $C \ge \tfrac12\varepsilon V$, and if $\varepsilon C \le 1$, an independent draw takes $\tau \ge V/A - 1$ steps.
# With $A = Na$ and $V = N^2v/n$ these read $n\tau \ge (v/a)N - n$ examples; for a well-specified model, where $v = a$, they read the data once.
# ```
#
# The {ref}`proof <proof-cost-pass>` is in the appendix.

# %% tags=["hide-input"]
forward = torch.tensor([1.0, 0.0], dtype=double)
largest = 0.0
for epsilon, friction, a in (
    (0.1, 4.0, 100.0),
    (0.01, 4.0, 100.0),
    (0.3, 2.0, 1.0),
    (0.05, 30.0, 3.0),
):
    chain = sghmc_chain(torch.tensor([[a]], dtype=double), epsilon, friction)
    formula = 2 * friction / (epsilon * a) - epsilon * friction / (
        2 - epsilon * friction
    )
    largest = max(largest, abs(chain.autocorrelation_time(forward) / formula - 1))
claim(
    "Largest relative difference of the formula from the exact law of the chain, four "
    "settings",
    largest,
    at_most=1e-9,
    because="thm. An effective sample reads the data once",
    kind="exact",
)

# %% [markdown]
# The noise does not enter $\tau$; it enters by the friction that is needed to balance it.
# What helps is less noise: with **control variates** {cite:p}`baker2019` the variance is that of the *differences* between gradients here and at the mode, which near the mode is $N^2/n$ times the squared width $1/N$ of the posterior, so that $V/A$ stays the same however large $N$ is.
#
# Here is the best that SGHMC can do by its exact law, over step sizes and frictions with at most 5 % too much variance, with batches of 500.
# A sample counts as independent when both $\theta$ and $\theta^2$ are.

# %%
a, v, n = 0.2, 0.2, 500  # curvature and variance of an example's score
taus = {}
for N in (10**4, 10**5, 10**6, 10**7):
    A = torch.tensor([[N * a]], dtype=double)
    V = torch.tensor([[N**2 / n * v]], dtype=double)
    calm = V / N  # control variates, at a distance of one standard deviation
    taus[N] = best_step(A, V)[2], best_step(A, calm)[2]

# %% tags=["hide-input"]
claim(
    "Growth of the steps an independent draw from N = 10⁵ to 10⁷, minibatches",
    taus[10**7][0] / taus[10**5][0],
    near=100,
    within=8,
    because="thm. An effective sample reads the data once",
    kind="exact",
)
claim(
    "Growth of the steps an independent draw from N = 10⁴ to 10⁷, control variates",
    taus[10**7][1] / taus[10**4][1],
    near=1,
    within=0.05,
    because="V/A does not depend on N",
    kind="exact",
)
claim(
    "Examples read for an independent draw over N, at N = 10⁷",
    n * taus[10**7][0] / 10**7,
    near=1,
    within=0.05,
    because="v = a: one pass over the data",
    kind="exact",
)

# %% [markdown]
# And in CPU time: logistic regression with four coefficients, from ten thousand examples to ten million.

# %% mystnb={"figure": {"caption": "Seconds of the processor for a step (above) and for an effective sample (below) against the number of examples, logistic regression with four coefficients: HMC on all the data, SGHMC with minibatches of 500, the same with control variates. A step of HMC is a leapfrog step. Effective samples are those of the positions and of their squares, whichever are fewer.", "name": "fig-cost-size"}, "image": {"alt": "Two log-log plots. Above: HMC's line rises in proportion to N, those of both SGHMC chains are nearly level. Below: plain SGHMC and, below it, HMC rise in proportion to N; SGHMC with control variates is nearly level and lowest at the right."}} tags=["hide-input"]
size = result["size"]
figure, (above, below) = plt.subplots(2, 1, figsize=(5.2, 6.4), sharex=True)
styles = {
    "HMC": ("HMC", "o-"),
    "SGHMC": ("SGHMC", "s-"),
    "SGHMC, control variates": ("SGLD", "D--"),
}
for name, (colour, style) in styles.items():
    for axes, key in (
        (above, "seconds_a_step"),
        (below, "seconds_an_effective_sample"),
    ):
        values = [row[key]["best"] for row in size["rows"][name]]
        axes.loglog(size["examples"], values, style, color=COLOURS[colour], label=name)
above.set(ylabel="seconds a step")
below.set(xlabel="examples $N$", ylabel="seconds an effective sample")
above.legend()
plt.show()

# %% tags=["hide-input"]
rows = []
for name in styles:
    for number, row in zip(size["examples"], size["rows"][name], strict=True):
        rows.append(
            [
                name,
                f"{number:,}",
                f"{row['seconds_a_step']['best'] * 1e6:,.0f}",
                f"{row['steps_an_effective_sample']:,.1f}",
                f"{row['seconds_an_effective_sample']['best'] * 1e3:,.2f}",
            ]
        )
show_table(
    [
        "sampler",
        "examples",
        "µs a step",
        "steps an effective sample",
        "ms an effective sample",
    ],
    rows,
)

# %% [markdown]
# In the upper panel of {numref}`fig-cost-size` a leapfrog step of HMC grows like $N$, and a stochastic step, which reads 500 examples, is nearly flat.
# The lower panel has what counts.
# Plain SGHMC grows like $N$, as the theorem says, and lies *above* HMC: both read the data about as often for an effective sample, but HMC reads them in order and in few calls.
# **For a posterior with four coefficients on data that fit into memory, minibatches alone save nothing.**
# They save where a gradient of all the data is out of the question, where nobody waits for independent samples, as with networks, or where the noise is taken away: control variates stay nearly flat, and pay for it once, by finding the mode.

# %% tags=["hide-input"]
for name in ("SGHMC", "SGHMC, control variates"):
    for number, row in zip(size["examples"], size["rows"][name], strict=True):
        if "sampled_worst" in row:
            claim(
                f"Steps an effective sample, ArviZ's over the law's, N = {number:,}, "
                f"{name}",
                row["sampled_worst"] / row["steps_an_effective_sample"],
                near=1.0,
                within=0.5,
                because="the stored result; 800 draws, the worst coordinate",
                kind="stored",
            )
each_step = {
    name: [row["seconds_a_step"]["best"] for row in rows_of]
    for name, rows_of in size["rows"].items()
}
each_sample = {
    name: [row["seconds_an_effective_sample"]["best"] for row in rows_of]
    for name, rows_of in size["rows"].items()
}
for name, bounds in (
    ("SGHMC", {"at_most": 2}),
    ("SGHMC, control variates", {"at_most": 2}),
    ("HMC", {"at_least": 200}),
):
    claim(
        f"A step at ten million examples over one at ten thousand, {name}",
        each_step[name][-1] / each_step[name][0],
        **bounds,
        because="the stored result",
        kind="stored",
    )
claim(
    "Plain SGHMC's effective sample over HMC's, the least of the four sizes",
    min(x / y for x, y in zip(each_sample["SGHMC"], each_sample["HMC"], strict=True)),
    at_least=2,
    because="the stored result",
    kind="stored",
)
claim(
    "An effective sample of SGHMC with control variates over HMC's, at ten million "
    "examples",
    each_sample["SGHMC, control variates"][-1] / each_sample["HMC"][-1],
    at_most=0.02,
    because="the stored result",
    kind="stored",
)

# %% [markdown]
# ## In practice
#
# * Compare programs at one job, check that their distributions agree, and divide by effective samples.
# * Measure on a shared machine in seconds of the CPU, in turns, and keep the best.
# * Small model: more chains in each call first, then more gradients for each sample, then `CompiledSGHMC`.
#   Large model: precision of the products first.
# * Gradients in bfloat16 or with `"medium"`, positions and momenta in float32.
# * Before you expect a stochastic gradient to save time on large data, compute $V/A$.
#   Where it is large, control variates, or larger batches, or HMC.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | the cost of a step | $t \approx kt_0 + \max(F/\pi, Q/\beta)$, {eq}`eq-cost-model` |
# | the roofline | $\min(\pi, \beta I)$ operations a second, $I = F/Q$ |
# | rounding as noise | the covariance grows by a factor of at most $1 + \rho^2$, {prf:ref}`thm-cost-rounding` |
# | steps of an effective sample | $\tau = 2C/\varepsilon A - \varepsilon C/(2 - \varepsilon C) \ge V/A - 1$, {eq}`eq-cost-tau` |
#
# ## Change it
#
# * Set `for chains_of in (1, 1_000)` to `for chains_of in (1, 100_000)`: a step still calls the same operators, and every claim of this page holds.
# * Set `a, v, n = 0.2, 0.2, 500` to `a, v, n = 0.2, 0.8, 500`: the model is misspecified, an independent draw reads the data four times, and the claim on the examples read shows ✗ with about 4.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-cost-bend
#
# A step of one chain takes 45 µs, of which the arithmetic is 0.1 µs.
# Up to how many chains is a step at most twice as expensive?
# What does a compiler change that makes the calls ten times cheaper?
# ```
#
# ```{solution} ex-cost-bend
# :class: dropdown
#
# By {eq}`eq-cost-model` a step of $c$ chains takes $45 + 0.1c$ µs, twice as much at $c = 450$.
# With calls of 4.5 µs the bend is at 45 chains; at 10,000 chains the compiler saves, of the calls alone, 40 µs of 1,045.
# What else it saves there is memory traffic.
# ```
#
# ```{exercise}
# :label: ex-cost-write
#
# *Write it yourself.* Compute the autocorrelation time of SGHMC's position on $U = \tfrac12A\theta^2$ from its matrices $F$ and $Q$, as in {prf:ref}`thm-linear-tau`.
# Assignment 2 of the {doc}`coursework </book/practice/teaching>` has the step itself.
#
# ~~~python
# def my_autocorrelation_time(epsilon, friction, a):
#     """In steps, by solving Σ = FΣFᵀ + Q and summing the correlations."""
#     ...
# ~~~
# ```
#
# ```{solution} ex-cost-write
# :class: dropdown
#
# The cell below has it.
# $\Sigma = F\Sigma F^\top + Q$ is linear in the four entries of $\Sigma$; written row by row they are multiplied by the Kronecker product $F \otimes F$.
# ```


# %% tags=["hide-input"]
def my_autocorrelation_time(epsilon, friction, a):
    """In steps, by solving Σ = FΣFᵀ + Q and summing the correlations."""
    one_step = [[1, epsilon], [-epsilon * a, 1 - epsilon * friction - epsilon**2 * a]]
    F = torch.tensor(one_step, dtype=double)
    Q = torch.tensor([[0, 0], [0, 2 * epsilon * friction]], dtype=double)
    system = torch.eye(4, dtype=double) - torch.kron(F, F)
    covariance = torch.linalg.solve(system, Q.flatten()).view(2, 2)
    sums = torch.linalg.inv(torch.eye(2, dtype=double) - F)  # I + F + F² + …
    return float(2 * (sums @ covariance)[0, 0] / covariance[0, 0] - 1)


chain = sghmc_chain(torch.tensor([[100.0]], dtype=double), 0.05, 4.0)
claim(
    "This autocorrelation time over the package's, less one",
    abs(
        my_autocorrelation_time(0.05, 4.0, 100.0) / chain.autocorrelation_time(forward)
        - 1
    ),
    at_most=1e-9,
    because="the same law; rounding",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-cost-tempered
#
# A misspecified model has $v = 4a$.
# How many epochs does an effective sample of SGHMC cost, at the least?
# And at temperature $T$?
# ```
#
# ```{solution} ex-cost-tempered
# :class: dropdown
#
# Four, by {prf:ref}`thm-cost-pass`.
# At temperature $T$ the noise may be as large as $TC \ge \tfrac12\varepsilon V$, so $\tau \ge V/(TA) - 1$: $4/T$ epochs.
# Cold posteriors, $T < 1$, are expensive.
# ```
#
# ## Further reading
#
# {cite:t}`williams2009` introduce the roofline in a few pages.
# {cite:t}`zhang2022` study SGLD in low precision, with and without a master copy.
# {cite:t}`baker2019` and {cite:t}`nemeth2021` say what a stochastic gradient saves.
