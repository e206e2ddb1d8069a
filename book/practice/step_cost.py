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
# Level: advanced · Reading: about 75 minutes, without the exercises · Running: about 20 seconds
# ```
#
# A step of a sampler is some arithmetic, some memory traffic and some waiting for Python; knowing which of them you pay for tells what will make it faster, and what will not.
#
# If you want one finding of this page: with few parameters, and data that fit into memory, minibatches alone save nothing; [the section on the size of the data](#cost-against-the-size-of-the-data) says why, and what does save.
# It can be read without the rest.
#
# **You will learn** to
#
# * compare two programs fairly: the same job, the same law, seconds an effective sample,
# * count the operations and bytes of a step, and read from a roofline what limits it,
# * find with a profiler where the time of your own run goes,
# * choose the precision that a noisy gradient deserves, and know where too little of it destroys the law,
# * say what a stochastic gradient saves when the data grow, and what it does not.
#
# In a hurry?
# [Where the time goes](#where-the-time-goes) has a recipe of five steps for your own run.
#
# **You will need** {doc}`/book/stochastic_gradients/sghmc` and {doc}`/book/stochastic_gradients/minibatch_noise`.

# %%
import math
import textwrap

import matplotlib.pyplot as plt
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.mixture import MINIBATCH, PRINTED, MixtureMeans, observations, posterior
from benchmarks.step_cost import (
    PUBLISHED,
    best_step,
    logistic_counts,
    mixture_counts,
    network_counts,
    update_counts,
)
from booklib.claims import claim
from booklib.datasets import digits
from booklib.figures import COLOURS, TRUTH, use_style
from booklib.networks import multilayer_perceptron
from booklib.play import play
from booklib.results import RESULTS, read_result, who_ran
from booklib.tables import show_table
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.posteriors import NetworkPosterior
from sgmc.potentials import Potential
from sgmc.splittings import LinearChain, sghmc_chain

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
double = torch.float64
result = read_result(RESULTS / "step_cost.json")

# %% [markdown]
# ## Two programs, two jobs
#
# "Our C++ is twenty times faster than Python" is a sentence that many reports contain, and it is worth a second look.
# {cite:t}`wang2021` wrote SGHMC for a course, and report the times of four versions of it on a mixture with two unknown means,
#
# $$
# \begin{aligned}
# p(x \mid \mu) &= \tfrac12 N(x; \mu_1, 1) \\
# &\quad + \tfrac12 N(x; \mu_2, 1), \\
# \mu_k &\sim N(0, 10), \\
# \text{true } \mu &= (-3, 3).
# \end{aligned}
# $$ (eq-cost-mixture)
#
# Their report prints $\varepsilon = 0.1$, $C = V = 4$, minibatches of 1, 4,000 epochs, and two sets of times: 7.61 s for plain Python, 7.48 s with a Cholesky factor, 7.14 s with Numba and 0.316 s in C++ in a table; 7.91, 7.51 and 7.38 s for the first three in the text.
# Their notebooks, which are public, tell what was run:
#
# | | Python, Cholesky, Numba | C++ |
# | --- | --- | --- |
# | target | the mixture, 200 observations | the double well $-2\theta^2 + \theta^4$, no data |
# | $\varepsilon$, $C$, $\hat V$ | 0.01, 1, 1 | 0.1, 1, 4 |
# | gradient | minibatches of 50, by automatic differentiation | a formula, plus $N(0, 4)$ |
# | rounds × steps | 499 × 4 | 3,999 × 100 |
# | seconds | 7.61 | 0.316 |
#
# These are two jobs.
# The C++ program has all of the printed numbers but $C$, and no mixture; the Python programs have the mixture, and none of the numbers.

# %% [markdown]
# The C++ program was 24 times as fast in all, and a *step* of it almost five thousand times: automatic differentiation through a Python sum of 50 logarithms stands against a cubic polynomial.
# How much of it is the language cannot be told from these two.
# The report says itself that the differentiation takes more time than expected, and advises users to write the gradient by hand.

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
# Here are jobs of those sizes, run by the programs of this page, whose gradients are written by hand.
# All times of this page were measured once, by `benchmarks/step_cost.py`, and are read from its stored result; counts, laws and rounding errors are computed as the page is built.

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
# Our C++ program is not the report's, whose every number is a matrix of one by one of the library Eigen; ours has plain numbers, and is the harder opponent.
#
# The speed is only half of it.
# A chain may be fast and have another law.
# In the Python job the noise of a minibatch has nothing to do with $\hat V = 1$:

# %%
means = MixtureMeans(torch.from_numpy(observations()), batch_size=50)
truth = torch.tensor([[-3.0, 3.0]], dtype=double)
gradients = means.per_example_gradients(truth, means.gather(None))[0]
noise = 200 * 150 / 50 * gradients.T.cov()  # of 50 of 200 without replacement

# %% [markdown]
# SGHMC with the numbers of the Python job would draw with two and a half times the variance of the posterior; with those that are printed, and minibatches of one, with hundreds of times.
# The notebooks' loops are something else again, which is told in {doc}`/book/appendix/errata`; their law is nearer to the posterior, because they throw most of the noise away.

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
# For a fair comparison one job is needed, the same for all, whose law is known.
# We take what is printed, in the one reading in which $V = 4$ is the variance of the gradient: gradients of all 200 observations, seen through $N(0, 4)$.
# And a second job with true minibatches of 50, where $\varepsilon = 0.01$ and $\hat B = \tfrac12\varepsilon V = 1.5 < C = 4$.
#
# What counts is not steps but **seconds an effective sample**: time over the effective sample size, pooled over the chains {cite:p}`vehtari2021`.
# The mixture does not say which mean is the first, so its posterior has two modes that mirror each other.
# No chain ever crosses between them, and we look at the sorted means, whose law does not depend on it; of the two sample sizes the smaller one counts.
#
# Our own C++ program is in `benchmarks/mixture.cpp`, in two versions from one template: *plain*, in double precision and with the random numbers of the standard library, and *fast*, in single precision, with a small generator and with `-ffast-math`, which allows the compiler to compute many exponentials at once.
# Three words of the table: *eager* means that Python calls the operators of PyTorch one after the other, *compiled* that `torch.compile` makes one program of them, and *ESS* is the effective sample size.

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
# The machine was shared with others, so these are seconds of the processor, the best of several turns; to compile is not counted.
#
# A single chain in NumPy or PyTorch pays for calls and not for arithmetic: plain Python without a library takes no more than twice NumPy's time, and eager PyTorch, with more calls a step, takes more than either.
# Compiled, most of the calls are gone.
# The plain C++ program needs less than a tenth of NumPy's time for the same job, and the fast one, which differs in number format, random numbers and a compiler's flag, is again several times faster.
# At the job with all the data, ten thousand chains at once beat the plain C++ program, eager and compiled.
# They do not beat the fast one: compiled they are about a fifth behind (between nothing and four tenths in the runs that we made), and **that gap remains**.
# Both compute with vector instructions; ours also writes its noise to memory and reads it again.
# At the job with minibatches the package loses to both.
# A thousand different minibatches have to be drawn and gathered in each step, and that is more work than fifty exponentials.
# What wins is not the language.
# It is to keep those parts of the processor busy that do eight or more operations at once, its *vector units*, and to have enough work for each call.

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
# Many chains have a price that is not in the table: each needs a warm-up of its own.
# Chains that drop 200 steps and keep 800 pay a quarter more, which one long chain does not, and ten thousand chains are for someone who wants ten thousand draws.
#
# At the first job draws ten steps apart are nearly independent, so that its steps an effective sample only say how far apart the draws are.
# ArviZ finds more steps for an effective sample at the second job than the exact law of its linearised chain, 22 against 8: these chains swing, so that draws ten steps apart are correlated now positively, now negatively, and an estimator that stops at the first negative sum does not give credit for it.
# All programs are divided by the same number, from one long chain.
#
# All programs have the same law, or the comparison would mean nothing.
# It is not the posterior's: with the printed $\varepsilon$ the step is so long, $\varepsilon^2A \approx 1$, that the variance comes out four tenths too large, in every language.

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
# The sum assumes that the processor cannot compute while Python decides what to do next, which holds on a CPU; on a GPU, where nothing of this page was measured, the two overlap. The maximum assumes that arithmetic and memory traffic overlap, which modern processors do well.
# Dividing by $F$, what remains of the second term is the **roofline** {cite:p}`williams2009`: a program whose *intensity* is $I = F/Q$ operations a byte runs at $\min(\pi, \beta I)$ operations a second at most.
#
# The first term does not depend on the number of chains, and the second grows with it.
# So the first ten chains are nearly free:

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
# In {numref}`fig-cost-chains` the points follow the line of the model: level at the left, where a step costs its calls, and rising at the right, where it costs work.
# Where the line turns from one to the other is the *bend*.
# With 50,000 chains the eager point lies several times above the line: something else begins to cost, which we shall meet under the name of page faults.
#
# ## Counting
#
# Operations can be counted on paper.
# We let $+$, $-$, $\times$, $\div$ and $\exp$ count one each, and bytes as if every array were read or written once.
# For the mixture, with $w(x) = 1/(1 + e^{(\mu_2 - \mu_1)(x - \bar\mu)})$ the probability of the first component and $\bar\mu = (\mu_1 + \mu_2)/2$,
#
# $$
# \nabla U(\mu) = \frac{\mu}{10} + \begin{pmatrix} \mu_1\sum w - \sum wx \\ \mu_2\sum(1 - w) - \sum(1 - w)x\end{pmatrix},
# $$
#
# an example takes eight operations: a difference, a product, $\exp$, a sum, a quotient, one product $wx$ and two sums.
# A compiled program needs no memory but the data, and the positions and gradients of $c$ chains, $4(N + 4c)$ bytes in single precision.
#
# A layer of a network that turns $a$ numbers into $b$ takes $2ab$ operations forwards for each example, as many for the gradient of its weights, and as many for that of its inputs, which the first layer leaves out.
# PyTorch can count the products of matrices itself, and agrees:

# %%
module = multilayer_perceptron([784, 100, 10])
images = torch.rand(500, 784)
counter = FlopCounterMode(display=False)
with counter:
    loss = functional.cross_entropy(module(images), torch.zeros(500, dtype=torch.long))
    loss.backward()

# %% tags=["hide-input"]
operations, moved = network_counts([784, 100, 10], 500)
claim(
    "Operations of the network's gradient: ours, over those that PyTorch counts",
    operations / counter.get_total_flops(),
    near=1.0,
    within=1e-12,
    because="both count products of matrices, two operations for each pair of numbers",
    kind="exact",
)

# %% [markdown]
# The intensities differ by a factor of three hundred, and that decides what limits each program:

# %%
counted = {
    "SGHMC's update": update_counts(79_510),
    "regression, d = 4": logistic_counts(10**6, 4),
    "network's gradient, n = 500": network_counts([784, 100, 10], 500),
    "mixture's gradient, 10,000 chains": mixture_counts(200, 10_000),
}

# %% tags=["hide-input"]
show_table(
    ["", "operations", "bytes", "operations a byte"],
    [
        [name, f"{flops:,}", f"{byte:,}", f"{flops / byte:.2f}"]
        for name, (flops, byte) in counted.items()
    ],
)
claim(
    "Operations a byte of SGHMC's update",
    counted["SGHMC's update"][0] / counted["SGHMC's update"][1],
    near=7 / 24,
    within=1e-12,
    because="seven operations on six numbers of four bytes",
    kind="exact",
)
intensity = [flops / byte for flops, byte in counted.values()]
claim(
    "Largest intensity over the smallest",
    max(intensity) / min(intensity),
    near=341,
    within=1,
    because="the counts",
    kind="exact",
)

# %% [markdown]
# ## The roofline of this machine
#
# The peak is measured by a product of two square matrices, the bandwidth by $a \leftarrow a + 3b$, in place, on arrays that fit into the second cache and on arrays that fit into none, all in the same process as the programs.

# %% mystnb={"figure": {"caption": "The roofline of one core in single precision: the level roof is the peak of matrix products, by the faster of two libraries, the dotted line below it that of the other; the slopes are the bandwidths of the cache and of memory. Points: gradients and updates, with operations and bytes as counted.", "name": "fig-cost-roofline"}, "image": {"alt": "Log-log plot of operations a second against operations a byte, with a roof of two rising lines that end in one level line. The updates lie near the rising lines on the left; the network's gradient lies below the level roof; the mixture's gradient in one chain lies two orders of magnitude or more below any roof."}} tags=["hide-input"]
roof = result["roofline"]
peak, bandwidth = roof["peak"]["float32, medium"], roof["bandwidth"]
grid = torch.logspace(-1, 3, 200, dtype=double)
figure, axes = plt.subplots(figsize=(5.4, 6))
for (name, value), style in zip(bandwidth.items(), ("--", "-"), strict=True):
    axes.loglog(
        grid, (grid * value).clamp(max=peak) / 1e9, color=TRUTH, ls=style, label=name
    )
axes.axhline(roof["peak"]["float32"] / 1e9, color=TRUTH, ls=":", lw=1)
markers = "osD^v<>P"
colours = [COLOURS["SGHMC"], COLOURS["SGLD"], COLOURS["HMC"], COLOURS["NUTS"]]
for i, (name, point) in enumerate(roof["points"].items()):
    axes.loglog(
        point["operations"] / point["bytes"],
        point["operations"] / point["seconds"] / 1e9,
        markers[i],
        color=colours[i % 4],
        label=name,
    )
axes.set(xlabel="operations a byte, $I$", ylabel="billion operations a second")
axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.13))
plt.show()

# %% [markdown]
# Three lessons are in {numref}`fig-cost-roofline`.
# The *updates* of SGHMC lie near the slopes: seven operations on six numbers cannot be faster than the numbers arrive, so only fewer bytes help.
# PyTorch's four operators move nearly twice the bytes that are counted here ({ref}`ex-cost-fuse`), which is most of the distance to the slope.
# The *regression* reads its data in more passes than one, too.
# The *network's gradient* lies to the right of the bend: it is limited by arithmetic.
# A faster product of matrices helps it most.
# The *mixture in one chain* lies far below every roof.
# It is limited by neither: it pays for calls, and more work in each call is the remedy, more chains or a compiler.
# Even compiled it stays below the roof, for the peak is that of fused products, and an exponential counts one here and costs many.
#
# ## Where the time goes
#
# The same can be found without counting.
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
# In the table *noise* is the injected noise, *batch* the choice of examples or the noise of the gradient, *gather* the copy of the chosen examples, *rest* what the parts leave.
# Parts that are timed alone need not sum to the whole; operators are counted by PyTorch.
#
# The generator of random numbers, which everybody suspects, is cheap: noise is drawn for many steps at once.
# A single chain pays for its fifty-odd operators, each about a microsecond with all that PyTorch does around it.
#
# Ten thousand chains in eager mode may pay for something that no operator shows: **page faults**.
# The system hands out memory in *pages* of four kilobytes, and fills each with zeros when a program first touches it; that moment is a page fault.
# Every array of 10,000 × 200 numbers that an operator returns is 8 megabytes of memory, some two thousand pages.
# If the C library (on Linux *glibc*) takes them from the system and gives them back at once, they are cleared again and again; if it keeps what was freed, they are not.
# This is the gradient of ten thousand chains in two processes of its own, without and with `MALLOC_MMAP_THRESHOLD_=33554432` and `MALLOC_TRIM_THRESHOLD_=1073741824` in the environment:

# %% tags=["hide-input"]
rows = [
    [name, f"{row['best'] * 1e3:.1f}", f"{row['page_faults']:,}"]
    for name, row in result["memory"].items()
]
show_table(["freed memory", "ms a gradient", "page faults a gradient"], rows)

# %% [markdown]
# Left alone, glibc does now the one and now the other, depending on what the process freed before, so that the same program can take several times as long in one run as in the next.
# The compiled program has no such arrays at all.
#
# For your own run, let PyTorch's profiler tell; it needs three lines.
# On standard error it says when it starts and stops, and without a GPU also that it found none.

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
# `print(profile.key_averages().table(sort_by="self_cpu_time_total"))` shows the most expensive operators first, `sort_by="count"` the most frequent.
# The recipe:
#
# 1. Profile ten steps after ten others, so that nothing is measured that happens once.
# 2. Add up `self_cpu_time_total` and compare with the clock.
#    If a step takes more than twice the sum, you pay for Python: more chains, more steps between draws (`num_steps`), or `CompiledSGHMC`.
# 3. If the operators take it, but each takes a few microseconds, you pay for calls: the same remedies.
# 4. If few operators take it, see what they are.
#    Products of matrices (`aten::mm`, `aten::addmm`, `aten::bmm`): arithmetic, so fewer bits or a smaller model.
#    `index_select`: the gather, so smaller batches or data in cache order.
#    Elementwise operators on large arrays: bytes, so in-place operations or a compiler.
#    `normal_`: noise.
# 5. Profile again.
#    What was second is first now.

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
# A product in bfloat16, the number format of eight significant bits, is several times faster than one in float32 on processors that have it.
# Is that precise enough?
# The gradient is wrong anyway: it comes from a minibatch.
# So its rounding has to be compared with *that*.
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
# What we shall measure is one number for all directions, the root of the mean squared length of the error over that of the noise; single directions may have more.
# The assumption *of mean zero* needs care.
# Data that were rounded once stay rounded, and make another posterior rather than noise; so we round the inputs first, which for images with few grey levels costs nothing, and look at the gradients.
# And the noise is not the same everywhere: where a network has learnt its digits, minibatches agree with each other, and less is left to hide the rounding.
# So we look at three places: the start, a place that an optimiser found, and one on the way of SGHMC.

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
# {numref}`fig-cost-precision` compares: a point at 0.1 is an error of a tenth of the noise.
# *Always* is the part of the error that is the same in every minibatch; it is not noise, and moves the mean.
# On the way of SGHMC even bfloat16 makes an error of a few hundredths of the minibatch noise at most, and the heat of it is the square of that.
# In the gradient, float64 buys nothing, and float32 more than is needed.
# At the optimised place the share is several times that of the start.
# So measure it where your chain is, and not at its start.

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
# `torch.set_float32_matmul_precision("medium")` *permits* the library to multiply float32 matrices in bfloat16.
# Look at its error: in the stored run it is of the size of float32's, and far from that of bfloat16.
# On that machine PyTorch's products come from one library by default, and with the permission from another one (oneDNN; `ONEDNN_VERBOSE=1` shows which of its routines runs), which did not even use the permission and is faster all the same.
# So try the switch, and look at time *and* error before you explain either.
# True bfloat16 products are in the last row.
# The mixture gains nothing from bfloat16: it has no products of matrices, and its exponentials are computed in float32 and converted.
#
# ## Where low precision does harm
#
# A gradient may be coarse, for its errors average out.
# A *position* may not, because it is a sum of many small moves.
# Around $|\theta| \in [2^k, 2^{k+1})$ the numbers with $p$ significant bits lie $h = 2^{k+1-p}$ apart: $p = 53$, 24 and 8 for float64, float32 and bfloat16.
# A move $\theta + \varepsilon r$ is rounded to the nearest of them.
#
# ```{prf:lemma} Stalling
# :label: lem-cost-stall
#
# If $\varepsilon|r| < \tfrac12h$, the position does not change.
# With $r \sim N(0, 1)$ this is the fate of the share $2\Phi(h/2\varepsilon) - 1$ of the moves.
# ```
#
# ```{prf:proof}
# $\theta$ is one of the numbers, and no other one is nearer to $\theta + \varepsilon r$ than $\theta$ if that is less than half of their distance away.
# (Just above a power of two the numbers below lie twice as close, and the bound for moves downwards is half as large.)
# ```

# %%
one = {}
for dtype in (torch.float64, torch.float32, torch.bfloat16):
    h = torch.finfo(dtype).eps  # the distance of the numbers between 1 and 2
    position = torch.full((1,), 1.5, dtype=dtype)
    moves = [bool((position + share * h != position).all()) for share in (0.49, 0.51)]
    one[dtype] = moves

# %% tags=["hide-input"]
show_table(
    ["numbers", "moves that are lost near 1.5: below"],
    [
        [str(dtype).removeprefix("torch."), f"{torch.finfo(dtype).eps / 2:.1e}"]
        for dtype in one
    ],
)

# %% tags=["hide-input"]
claim(
    "A move of 0.49 h is lost and one of 0.51 h is not, in all three formats",
    all(moves == [False, True] for moves in one.values()),
    because="lem. Stalling",
    kind="exact",
)

# %% [markdown]
# What does it do to the law?
# For SGLD the answer can be computed without a single random number, because a rounded chain lives on a grid: its transition matrix says with which probability the Gaussian step ends in each cell.
# Let the target be $N(0, 1)$, the step size $\eta$, the injected noise of standard deviation $s = \sqrt{2\eta}$, and the grid $h\mathbb Z$.
# **Stochastic rounding** is the other way to round {cite:p}`gupta2015`: up or down at random, with the probabilities that make the mean right.

# %%
step = 0.005
s = math.sqrt(2 * step)


def rounded_variance(h, stochastic):
    """The stationary variance of SGLD on N(0, 1) whose positions are multiples of h."""
    number = round(8 / h)
    grid = h * torch.arange(-number, number + 1, dtype=double)
    move = grid[None] - (1 - step) * grid[:, None]  # from a row to a column

    def below(z):  # Φ(z/s), and its integral
        return torch.special.ndtr(z / s)

    def integral(z):
        return z * below(z) + s * torch.exp(-0.5 * (z / s) ** 2) / math.sqrt(
            2 * math.pi
        )

    if stochastic:
        matrix = (integral(move + h) - 2 * integral(move) + integral(move - h)) / h
    else:
        matrix = below(move + h / 2) - below(move - h / 2)
    matrix /= matrix.sum(1, keepdim=True)
    system = matrix.T - torch.eye(len(grid), dtype=double)
    system[-1] = 1  # the probabilities sum to one
    right = torch.zeros(len(grid), dtype=double)
    right[-1] = 1
    return float(torch.linalg.solve(system, right) @ grid.square())


exact = 1 / (1 - step / 2)  # without rounding
ratios = [0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0]
heat = {
    word: [
        rounded_variance(s / ratio, word == "stochastic") / exact for ratio in ratios
    ]
    for word in ("nearest", "stochastic")
}

# %% mystnb={"figure": {"caption": "Variance of SGLD whose position is rounded, over that without rounding, against the noise of a step in units of the grid. Points: exact laws of the rounded chains. Lines: one plus the variance of a uniform rounding error (dashed, nearest; solid, stochastic) over that of the noise. Dotted: two.", "name": "fig-cost-grid"}, "image": {"alt": "Two falling curves of points. Both approach one on the right. To the left, the one for stochastic rounding rises beyond four; the one for rounding to nearest levels off below two."}} tags=["hide-input"]
figure, axes = plt.subplots()
fine = torch.logspace(math.log10(0.2), math.log10(8), 100, dtype=double)
axes.loglog(fine, 1 + 1 / (12 * fine**2), "--", color=COLOURS["SGLD"], lw=1)
axes.loglog(fine, 1 + 1 / (6 * fine**2), color=COLOURS["SGHMC"], lw=1)
axes.loglog(ratios, heat["nearest"], "o", color=COLOURS["SGLD"], label="to nearest")
axes.loglog(ratios, heat["stochastic"], "s", color=COLOURS["SGHMC"], label="stochastic")
axes.axhline(2, color="black", ls=":", lw=1)
axes.set(xlabel="$s/h$", ylabel="variance, over that without rounding", ylim=(0.95, 6))
axes.set_xticks([0.2, 0.5, 1, 2, 5], labels=["0.2", "0.5", "1", "2", "5"])
axes.set_yticks([1, 2, 3, 4, 5], labels=["1", "2", "3", "4", "5"])
axes.minorticks_off()
axes.legend()
plt.show()

# %% [markdown]
# To the right in {numref}`fig-cost-grid` rounding is what one expects: an error of variance $h^2/12$, uniform in a cell, is added to the noise $2\eta$ of every step, and twice as much with stochastic rounding, since a fraction $f$ has the variance $f(1 - f)h^2$, on average $h^2/6$.
# It is *heat*: the variance grows by $h^2/24\eta$ or $h^2/12\eta$, and **it grows as the step size falls**.
# A smaller step, which everywhere else in this book brings a chain closer to its target, takes this one away from it {cite:p}`zhang2022`.
#
# To the left the chain stalls.
# Rounded to nearest it moves only when the noise is larger than half a cell, which becomes rare.
# A move up is then $e^{hm/s^2}$ times as likely as one down, with the drift $m = -\eta U'$ and $s^2 = 2\eta$.
# This is $e^{-hU'/2}$, where detailed balance on the grid wants $e^{-hU'}$: the chain has the temperature 2.
# Stochastic rounding never stalls, and has no such limit.

# %% tags=["hide-input"]
for ratio, word, formula in (
    (2.0, "nearest", 1 + 1 / 48),
    (2.0, "stochastic", 1 + 1 / 24),
    (1.0, "nearest", 1 + 1 / 12),
    (1.0, "stochastic", 1 + 1 / 6),
):
    claim(
        f"Relative variance with s/h = {ratio:g}, rounding {word}, minus that of the "
        "formula",
        heat[word][ratios.index(ratio)] - formula,
        near=0,
        within=2e-3,
        because="an exact law; the error of rounding is almost uniform from s = h on",
        kind="exact",
    )
claim(
    "Relative variance where it stalls, s/h = 0.2, rounding to nearest",
    heat["nearest"][0],
    near=1.8,
    within=0.1,
    because="an exact law, on its way to two",
    kind="exact",
)
claim(
    "Relative variance at s/h = 0.2, stochastic rounding",
    heat["stochastic"][0],
    near=math.sqrt(2 / math.pi) / 0.2,
    within=0.03,
    because=(
        "an exact law: the variance of a move is h E|ξ| = hs√(2/π) where moves are "
        "shorter than a cell"
    ),
    kind="exact",
)

# %% [markdown]
# SGHMC has the same disease; its moves are $\varepsilon r$, and their length is $\varepsilon$ in place of $s$.
# Take $N(1.5, 0.1^2)$, near which bfloat16 numbers lie $h = 2^{-7} \approx 0.008$ apart, and three ways to keep a position: in bfloat16; in bfloat16 with stochastic rounding; and in float32, a **master copy**, of which only the gradient sees the rounded number.


# %%
class Spring(Potential):
    """N(1.5, 0.1²); the gradient sees the position in bfloat16 where asked to."""

    dim = 1

    def __init__(self, coarse=False):
        self.coarse = coarse

    def energy(self, position):
        return 50 * (position - 1.5).square().sum(-1)

    def gradient(self, position):
        return 100 * (position - 1.5)

    def gradient_given(self, position, minibatch):
        seen = position.bfloat16().to(position.dtype) if self.coarse else position
        return self.gradient(seen)


def stochastic(position, h, generator):
    """Round to multiples of h at random, with the right mean."""
    uniform = torch.rand(position.shape, generator=generator, dtype=position.dtype)
    return torch.floor(position / h + uniform) * h


def rounded_sghmc(epsilon, steps, chains=2_000, seed=1):
    """SGHMC with C = 10, the position rounded at random after every move."""
    generator, h = torch.Generator().manual_seed(seed), 2.0**-7
    position = torch.full((chains, 1), 1.5, dtype=double)
    momentum = torch.randn(chains, 1, generator=generator, dtype=double)
    kept = []
    for number in range(2 * steps):
        position = stochastic(position + epsilon * momentum, h, generator)
        noise = torch.randn(chains, 1, generator=generator, dtype=double)
        momentum = (1 - 10 * epsilon) * momentum - epsilon * 100 * (position - 1.5)
        momentum += math.sqrt(20 * epsilon) * noise
        if number >= steps and number % 20 == 0:
            kept.append(position)
    return torch.stack(kept)


def kept_as(dtype, epsilon, steps, coarse=False, chains=2_000, seed=1):
    kernel = SGHMC(epsilon, friction=10.0, num_steps=20)
    start = torch.full((chains, 1), 1.5, dtype=dtype)
    rounds = steps // 20
    draws = sample(
        kernel, Spring(coarse), start, rounds, warm_up=rounds, seed=seed, progress=False
    )
    return draws.samples


def relative(samples):
    """The variance over 0.01, and its standard error from the spread of the chains."""
    square = (samples.double() - 1.5).square().mean((0, 2)) / 0.01
    return float(square.mean()), float(square.std() / len(square) ** 0.5)


found = {}
for epsilon, steps in ((0.02, 200), (0.005, 400), (0.001, 2_000)):
    found[epsilon] = {
        "bfloat16": relative(kept_as(torch.bfloat16, epsilon, steps)),
        "bfloat16, stochastic": relative(rounded_sghmc(epsilon, steps)),
        "float32 master copy": relative(kept_as(torch.float32, epsilon, steps, True)),
    }


# %% tags=["hide-input"]
def with_position_noise(epsilon, variance):
    """The law of SGHMC whose drift has an error of that variance: drift, error, then
    the kick."""
    error = torch.diag(torch.tensor([variance, 0.0], dtype=double))
    drift = LinearChain(torch.tensor([[1, epsilon], [0, 1]], dtype=double), error)
    kick = torch.eye(2, dtype=double)
    kick[1, 0], kick[1, 1] = -100 * epsilon, 1 - 10 * epsilon
    noise = torch.diag(torch.tensor([0.0, 20 * epsilon], dtype=double))
    return (
        float(drift.then(LinearChain(kick, noise)).stationary_covariance()[0, 0]) / 0.01
    )


h = 2.0**-7


def mean_variance(epsilon):
    """E f(1 − f)h² of a Gaussian move rounded at random, by its Fourier series."""
    waves = torch.arange(1, 200, dtype=double) * math.pi
    return h**2 * (
        1 / 6 - float((torch.exp(-2 * (waves * epsilon / h) ** 2) / waves**2).sum())
    )


# %% mystnb={"figure": {"caption": "Variance of SGHMC over the true one at three step sizes, with four standard errors, by how the position is kept. Lines: exact laws, without rounding (grey) and with stochastic rounding (pink).", "name": "fig-cost-master"}, "image": {"alt": "Points over the step size on a logarithmic axis. The master copy in float32 lies on the grey line, near one. Stochastic rounding lies on its own line, some per cent above. Plain bfloat16 is near one at the largest step, and near zero at the smallest."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.4, 3.6))
looks = {
    "bfloat16": ("o", COLOURS["HMC"]),
    "bfloat16, stochastic": ("s", COLOURS["SGHMC"]),
    "float32 master copy": ("D", "black"),
}
fine = torch.logspace(-3.1, -1.6, 30, dtype=double).tolist()
laws = {0.0: TRUTH, 1.0: COLOURS["SGHMC"]}
for share, colour in laws.items():
    law = [with_position_noise(e, share * mean_variance(e)) for e in fine]
    axes.semilogx(fine, law, color=colour, lw=1)
for number, (kind, (marker, colour)) in enumerate(looks.items()):
    places = [epsilon * (1 + 0.06 * (number - 1)) for epsilon in found]
    values, errors = zip(*(row[kind] for row in found.values()), strict=True)
    axes.errorbar(
        places,
        values,
        [4 * error for error in errors],
        fmt=marker,
        ms=5,
        color=colour,
        label=kind,
    )
axes.set(xlabel=r"step size $\varepsilon$", ylabel="variance over the true one")
axes.set_xticks([*found], [f"{epsilon:g}" for epsilon in found])
axes.minorticks_off()
axes.set_ylim(-0.05, 1.2)
axes.legend(loc="lower right")
plt.show()

# %% [markdown]
# {numref}`fig-cost-master` shows the variance over the true one.
# With steps of a few cells, $\varepsilon = 0.02$, nobody notices.
# With $\varepsilon = 0.001$, most of the chains in bfloat16 never leave the place where they began, of which `sample` warns.
# Stochastic rounding keeps them moving, by its law five per cent too hot.
# The master copy is right at every step size, and nearly free: the gradient, which is where the time goes, is still computed from coarse numbers {cite:p}`micikevicius2018`.
# With a master copy SGLD converges, and suffers less from rounding than SGD does; without one, a rounding that keeps the variance of every step right is needed {cite:p}`zhang2022`, or the heat of stochastic rounding has to be subtracted from what is injected ({ref}`ex-cost-subtract`).

# %% tags=["hide-input"]
for epsilon in found:
    value, error = found[epsilon]["bfloat16, stochastic"]
    claim(
        f"Relative variance with stochastic rounding, ε = {epsilon}",
        value,
        near=round(with_position_noise(epsilon, mean_variance(epsilon)), 4),
        standard_error=error,
        because=(
            "the law of the linear chain in which every move has an error of variance "
            "E f(1 − f)h²"
        ),
    )
    value, error = found[epsilon]["float32 master copy"]
    claim(
        f"Relative variance with a master copy in float32, ε = {epsilon}",
        value,
        near=round(with_position_noise(epsilon, 0.0), 4),
        standard_error=error,
        because="the law without rounding",
    )
value, error = found[0.02]["bfloat16"]
claim(
    "Relative variance in bfloat16, rounded to nearest, ε = 0.02",
    value,
    near=round(with_position_noise(0.02, h**2 / 12), 4),
    standard_error=error,
    because="the law with a uniform error of variance h²/12 in every move",
)
value, error = found[0.001]["bfloat16"]
claim(
    "Relative variance in bfloat16, ε = 0.001, chains that started at the mean",
    value,
    at_most=0.1,
    because="nearly every move is lost: they are where they were",
)
claim(
    "Share of the moves of length 0.001·|r| that bfloat16 loses near 1.5",
    2 * float(torch.special.ndtr(torch.tensor(2.0**-8 / 0.001))) - 1,
    at_least=0.9999,
    because="lem. Stalling",
    kind="exact",
)

# %% [markdown]
# The same lemma says when float32 fails.
# Near $|\theta| = 1$ half a cell is $6\cdot10^{-8}$, and steps are as long as $\varepsilon$.
# With $N = 10^{10}$ examples the posterior is $10^{-5}$ wide and steps are a tenth of that: eight cells.
# Beyond that, sample the distance from the mode.
#
# ## Cost against the size of the data
#
# HMC reads all the data for every gradient, a stochastic gradient reads $n$ examples.
# So its step costs nearly the same at ten thousand examples and at ten million.
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
# ```{prf:proof}
# With $\hat B = \tfrac12\varepsilon V$ the noise of a step is $2C\varepsilon$ in all, whatever $V$.
# Let $F = \begin{pmatrix}1 & \varepsilon\\ -\varepsilon A & 1 - \varepsilon C - \varepsilon^2A\end{pmatrix}$ be the transition in $(\theta, r)$ and $\Sigma = F\Sigma F^\top + Q$.
# Then $\tau\Sigma_{11} = e_1^\top(I - F)^{-1}(I + F)\Sigma e_1 = e_1^\top(2(I - F)^{-1} - I)\Sigma e_1$.
# From $I - F = \begin{pmatrix}0 & -\varepsilon\\ \varepsilon A & \varepsilon C + \varepsilon^2A\end{pmatrix}$ the first row of the inverse is $\bigl((C + \varepsilon A)/\varepsilon A,\; 1/\varepsilon A\bigr)$, hence $\tau = 2C/\varepsilon A + 1 + (2/\varepsilon A)\,\Sigma_{12}/\Sigma_{11}$.
# A stationary chain has $\operatorname{Var}\theta' = \operatorname{Var}\theta$ for $\theta' = \theta + \varepsilon r$, so $2\varepsilon\Sigma_{12} + \varepsilon^2\Sigma_{22} = 0$, that is $\varepsilon\Sigma_{22} = -2\Sigma_{12}$.
# With it, $r' = (1 - \varepsilon C)r - \varepsilon A\theta' + \xi$ has $\Sigma_{12} = \operatorname{Cov}(\theta', r') = (1 - \varepsilon C)(\Sigma_{12} + \varepsilon\Sigma_{22}) - \varepsilon A\Sigma_{11} = -(1 - \varepsilon C)\Sigma_{12} - \varepsilon A\Sigma_{11}$.
# So $(2 - \varepsilon C)\Sigma_{12} = -\varepsilon A\Sigma_{11}$, the last term of $\tau$ is $-2/(2 - \varepsilon C)$, and $1 - 2/(2 - \varepsilon C) = -\varepsilon C/(2 - \varepsilon C)$.
# The bound follows from $2C/\varepsilon A \ge V/A$ and $\varepsilon C/(2 - \varepsilon C) \le 1$.
# For a well-specified model the variance $v$ of an example's score and its mean curvature $a$ are both the Fisher information.
# ```

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
# The noise does not enter $\tau$; it enters by the friction that is needed to hold it.
# Neither a smaller step nor a cleverer friction escapes the bound, which {doc}`/book/stochastic_gradients/langevin` has for SGLD, but by a variance that is too large: $\tau$ times the variance over the target's is $2C/\varepsilon A \ge V/A$ at every stable step. What does is less noise: with **control variates** {cite:p}`baker2019` the variance is that of the *differences* between gradients here and at the mode, which near the mode is $N^2/n$ times the squared width $1/N$ of the posterior.
# So $V/A$ stays the same however large $N$ is.
#
# Here is the best that SGHMC can do by its exact law, over step sizes and frictions with at most 5 % too much variance, with batches of 500.
# A draw counts as independent when both $\theta$ and $\theta^2$ are: chains with little friction swing, and are quick with $\theta$ alone.

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
# And by the processor: logistic regression with four coefficients, from ten thousand examples to ten million.

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
# In the upper panel of {numref}`fig-cost-size` a step of HMC grows like $N$, as it must.
# A stochastic step reads 500 examples whatever $N$ is, and is nearly flat: over three decades of $N$ it does not even double, and what is added is the time in which rows are fetched from memory and no longer from a cache.
# What is timed is the kernel's step.
# A first version of this page timed `sample` over 200 steps, and saw a tenfold growth: `sample` looks once at all the data before it begins, and 200 steps are too few for that to be of no weight.
#
# The lower panel has what counts.
# Plain SGHMC grows like $N$, as the theorem says, and lies *above* HMC: both read the data about as often for an effective sample, but HMC reads them in order and in few calls, and SGHMC five hundred at a time, with the price of its calls for each.
# **For a posterior with four coefficients on data that fit into memory, minibatches alone save nothing.** They save where a gradient of all the data is out of the question, where nobody waits for independent draws, as with networks, or where the noise is taken away: control variates stay nearly flat, and pay for it once, by finding the mode.
# The steps of SGHMC are those of its exact law; where that is not long, up to $10^5$ examples, the chain was run, and its draws tell the same.

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
# * Compare programs at one job, check that their laws agree, and divide by effective samples.
#   A table of times without the number of steps, the gradient and the precision says little.
# * Measure on a shared machine in seconds of the processor, in turns, and keep the best: others can only make a run slower.
#   Measure so many steps that what happens once has no weight.
# * Small model: more chains in each call first, then more steps between draws, then `CompiledSGHMC`.
#   Large model: precision of the products first.
# * Look at page faults when large arrays come and go.
#   Fewer chains at a time, so that arrays fit into the cache, can be faster than more.
# * Gradients in bfloat16 or with `"medium"`, positions and momenta in float32.
#   Measure the error of a gradient against the noise of its minibatch where your chain is, not at its start; below a tenth its noise does not matter, and a part that is always there should be smaller still.
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
# | a move that is lost | $\varepsilon\lvert r\rvert < \tfrac12h$, {prf:ref}`lem-cost-stall` |
# | the heat of rounding a position | $h^2/24\eta$ to nearest, $h^2/12\eta$ at random, for SGLD on $N(0, 1)$ |
# | steps of an effective sample | $\tau = 2C/\varepsilon A - \varepsilon C/(2 - \varepsilon C) \ge V/A - 1$, {eq}`eq-cost-tau` |
#
# ## Change it
#
# * Set `step = 0.005` to `step = 0.001`: the points of {numref}`fig-cost-grid` stay where they are and all of its claims hold, for only $s/h$ matters.
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
# :label: ex-cost-fuse
#
# The update of SGHMC in PyTorch is four operators: $\theta \mathrel{+}= \varepsilon r$, $r \mathrel{+}= -\varepsilon Cr$, $r \mathrel{-}= \varepsilon g$, $r \mathrel{+}= \sigma\xi$.
# How many bytes a coordinate do they move, one after the other, and how many does one fused loop?
# When does the difference not matter?
# ```
#
# ```{solution} ex-cost-fuse
# :class: dropdown
#
# The first reads two numbers and writes one, the second reads one and writes one, the other two read two and write one: eleven numbers, 44 bytes.
# A fused loop reads $\theta$, $r$, $g$, $\xi$ and writes $\theta$ and $r$: 24 bytes.
# Where the arrays fit into a cache the calls cost more than the bytes; and where the gradient is a network's, with $n = 500$ examples, it takes a hundred times as long as either.
# ```
#
# ```{exercise}
# :label: ex-cost-write
#
# *Write it yourself.* Compute the autocorrelation time of SGHMC's position on $U = \tfrac12A\theta^2$ from its matrices $F$ and $Q$, as in the proof of {prf:ref}`thm-cost-pass`.
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
# :label: ex-cost-subtract
#
# Stochastic rounding of a position with $s \ge h$ adds $h^2/6$ to the variance of each move of SGLD. What should be injected instead of $N(0, 2\eta)$?
# What is the smallest step size for which this is possible, in bfloat16 near $\theta = 1.5$?
# ```
#
# ```{solution} ex-cost-subtract
# :class: dropdown
#
# $N(0, 2\eta - h^2/6)$, if $2\eta \ge h^2/6$: with $h = 2^{-7}$ from $\eta = 5.1\cdot10^{-6}$ on.
# There $s$ is not $\ge h$ any more but $0.41h$ before the subtraction and 0 after it, so the formula for the variance fails earlier; $\eta = h^2/2$, six times as much, is safe.
# This is the idea of the variance-corrected rounding of {cite:t}`zhang2022`.
# ```
#
# ```{exercise}
# :label: ex-cost-tempered
#
# A misspecified model has $v = 4a$.
# How many passes over the data does an effective sample of SGHMC cost, at the least?
# And at temperature $T$?
# ```
#
# ```{solution} ex-cost-tempered
# :class: dropdown
#
# Four, by {prf:ref}`thm-cost-pass`.
# At temperature $T$ the noise may be as large as $TC \ge \tfrac12\varepsilon V$, so $\tau \ge V/(TA) - 1$: $4/T$ passes.
# Cold posteriors, $T < 1$, are expensive.
# ```
#
# ## Further reading
#
# {cite:t}`williams2009` introduce the roofline in a few pages.
# {cite:t}`zhang2022` study SGLD in low precision, with and without a master copy; {cite:t}`gupta2015` made stochastic rounding known, {cite:t}`micikevicius2018` the master copy.
# {cite:t}`baker2019` and {cite:t}`nemeth2021` say what a stochastic gradient saves.
