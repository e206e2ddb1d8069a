# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Correcting it with a part of the data
#
# ```{div} page-head
# Level: second course · Reading: about 40 minutes, without the exercises · Running: about 11 seconds
# ```
#
# The obvious cure for {doc}`naive SGHMC </book/tutorial/naive_sghmc>` is the acceptance step of HMC. It reads all the data; this page counts what that costs, lets a sample of the data decide instead, and measures what that saves.
#
# **You will learn** to
#
# * price the correction of a noisy trajectory,
# * decide from a part of the data whether to accept, by two tests,
# * measure the bias that wrong decisions make, and bound it,
# * show that a decision needs a share of the data, however many there are,
# * count the price of an independent draw in passes over the data.
#
# **You will need** random-walk Metropolis from {doc}`/book/tutorial/markov_chains`, {doc}`/book/tutorial/minibatch_noise`, and {doc}`/book/tutorial/naive_sghmc`.

# %%
import itertools
import math

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.integrate import quad
from scipy.stats import t as student

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from sgmc import sample
from sgmc.kernels import NaiveSGHMC
from sgmc.targets import Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## The price of a correction with all the data
#
# Accept the end of a trajectory of naive SGHMC with probability $\min(1, e^{H(\theta, r) - H(\theta', r')})$, with the exact $H$.
# The noise of a kick does not depend on the direction in which the path is walked, so a noisy trajectory with its momentum flipped is as likely backwards as forwards, and the correction is valid ({ref}`ex-naive-palindrome`).
# But it needs the energy on all the data, which the minibatch was to spare us.
# And the {term}`acceptance` falls with the length of the trajectory, with $V$ and with the dimension, because each of them adds energy.

# %%
acceptances, path_lengths = {}, (5, 20, 50, 100)
for d in (1, 10):
    target = Gaussian.standard(d)
    for V in (0.25, 1.0, 4.0):
        for L in path_lengths:
            run = sample(
                NaiveSGHMC(0.1, L, metropolis=True),
                NoisyGradient(target, V),
                target.exact_samples(2_000, torch.Generator().manual_seed(L)),
                num_samples=20,
                seed=100 + L,
            )
            acceptances[d, V, L] = float(run.statistics["acceptance"].mean())

# %% mystnb={"figure": {"caption": "Acceptance of corrected naive trajectories in a standard Gaussian of one dimension (above) and of ten (below), $\\varepsilon = 0.1$, against their length, for three variances of the gradient noise.", "name": "fig-naive-acceptance"}, "image": {"alt": "Two panels, one above the other, with three falling curves each. In one dimension they fall from nearly 1 to between 0.85 and 0.4, in ten dimensions to between one half and nearly zero; in both the largest variance has the lowest curve."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 1, figsize=(5.0, 5.6), sharex=True)
for axes, d in zip(panels, (1, 10), strict=True):
    for V, style in zip((0.25, 1.0, 4.0), ("-o", "--s", ":^"), strict=True):
        values = [acceptances[d, V, L] for L in path_lengths]
        axes.plot(
            path_lengths,
            values,
            style,
            color=COLOURS["naive SGHMC with correction"],
            label=f"$V = {V:g}$",
        )
    axes.set(title=f"$d = {d}$", ylabel="mean acceptance", ylim=(0, 1.02))
panels[1].set_xlabel("leapfrog steps $L$")
panels[1].legend(loc="upper right")
plt.show()

# %% [markdown]
# In {numref}`fig-naive-acceptance` every curve falls, and the more noise the lower it lies. In ten dimensions, with $V = 4$, hardly one of the longest trajectories in a hundred is accepted.

# %% tags=["hide-input"]
table = torch.tensor(
    [
        [[acceptances[d, V, L] for L in path_lengths] for V in (0.25, 1.0, 4.0)]
        for d in (1, 10)
    ]
)
claim(
    "Acceptance falls with length, with V and with the dimension, in all 24 runs",
    all(bool((table.diff(dim=axis) < 0).all()) for axis in range(3)),
    because="the smallest difference is 0.011, of which the standard error is 0.0008",
)
for name, value, near, within in (
    ("5-step trajectories at V = 0.25 in one dimension", table[0, 0, 0], 0.966, 0.005),
    ("100-step trajectories at V = 4 in one dimension", table[0, 2, 3], 0.423, 0.012),
    ("the same in ten dimensions", table[1, 2, 3], 0.005, 0.003),
):
    claim(
        f"Acceptance of {name}",
        value,
        near=near,
        within=within,
        because="2,000 chains, 20 draws each; other seeds: a third of this tolerance",
    )

# %% [markdown]
# Is $V = 4$ much?
# Measure it in the posterior's own units.
# In coordinates in which the posterior is about $N(0, I)$ the curvature is $I$, and {eq}`eq-noise-curvature` says $V \approx \frac NnI$: for minibatches of 500 of 60,000, $V = 120$.
# Now the bill.
# A trajectory of time $t = L\varepsilon$ gains the energy $td\cdot\tfrac12\varepsilon\frac Nn$.
# To keep that below one, so that it is accepted, $\varepsilon$ must be below $2n/(Ntd)$, which makes $L > \tfrac12t^2d\,\frac Nn$ steps of $n$ examples each:
#
# $$
# \text{passes over the data} = \frac{Ln}N > \tfrac12t^2d.
# $$ (eq-naive-passes)
#
# The size of the minibatch has dropped out.
# Exact HMC pays $t/\varepsilon$ passes, with an $\varepsilon$ of the order of one that falls only as $d^{-1/4}$ {cite:p}`neal2011`; so beyond a few dimensions nothing is gained, and much is lost.

# %%
target = Gaussian.standard(10)
start = target.exact_samples(2_000, torch.Generator().manual_seed(3))
realistic = sample(
    NaiveSGHMC(0.1, 20, metropolis=True),
    NoisyGradient(target, 120.0),
    start,
    num_samples=5,
    seed=4,
)

# %% tags=["hide-input"]
claim(
    "Acceptance of 20-step trajectories in ten dimensions at V = 120",
    realistic.statistics["acceptance"].mean(),
    at_most=1e-6,
    because="the energy gained is about 120; other seeds stay far below",
)

# %% [markdown]
# ## A decision from a sample
#
# This correction step reads all the data, to take one decision.
# In the year of SGHMC two papers let a sample take it, {cite:t}`korattikara2014` and {cite:t}`bardenet2014`.
# What does that save?
# Take random-walk Metropolis, where the decision is all that there is to pay: the end of a trajectory is decided in the same way.
#
# With independent examples and a flat prior the proposal $\theta'$ is accepted if $\sum_i\ell_i > \log u$, where $\ell_i = \log p(x_i \mid \theta') - \log p(x_i \mid \theta)$ and $u$ is uniform in $(0, 1)$.
# So the question is whether the mean of $N$ numbers is above the threshold $\psi = \frac1N\log u$, and a poll may answer it.
# {numref}`fig-poll-idea` shows one.
# The mean of those that were read wanders, and comes to rest as more are read.
# One stops when it is further from the threshold than it may still be wrong.

# %% mystnb={"figure": {"caption": "One decision among 1,000 numbers: the mean of those read so far (line), what it may be wrong by at 2.3 standard errors (band), and the threshold (dashed). The dot is where the band leaves the threshold for the first time at one of twenty looks.", "name": "fig-poll-idea"}, "image": {"alt": "A wandering line with a wide band around it that narrows to nothing at 1,000. A dashed horizontal line runs below. A dot on the line marks the look at which the lower edge of the band is above the dashed line for the first time."}} tags=["hide-input"]
terms = torch.randn(1_000, generator=torch.Generator().manual_seed(3)).double() / 30
n = torch.arange(2, 1_001)
mean = (terms.cumsum(0) / torch.arange(1, 1_001))[1:]
spread = torch.stack([terms[:count].std() for count in n.tolist()])
wide = 2.33 * spread * ((1 - n / 1_000) / n).sqrt()
limit = float(mean[-1]) - 0.0015
sure = ((mean - limit).abs() > wide) & (n % 50 == 0)
stop = int(sure.int().argmax())
figure, axes = plt.subplots(figsize=(5.2, 3.2))
colour = COLOURS["naive SGHMC with correction"]
axes.plot(n, mean, color=colour, label="mean so far")
axes.fill_between(n, mean - wide, mean + wide, color=colour, alpha=0.25, lw=0)
axes.axhline(limit, color="black", ls="--", lw=1, label="threshold")
axes.plot(n[stop], mean[stop], "o", color="black", ms=6, label="decided")
axes.set(
    xlabel="numbers read", ylabel="mean", xlim=(0, 1_000), ylim=(-0.01, 0.01), yticks=[]
)
axes.legend(loc="upper right", ncols=3)
plt.show()

# %% [markdown]
# ```{prf:algorithm} Metropolis' decision from a sample
# :label: alg-naive-poll
#
# Go through the examples in random order, and stop now and then to look, after $n_1 < n_2 < \dots$ of them.
# Let $\bar\ell$ be the mean so far.
# If $\lvert\bar\ell - \psi\rvert > c_n$, or $n = N$, decide: accept if $\bar\ell > \psi$.
# Otherwise read on.
# ```
#
# The two papers differ in the half width $c_n$. With $s$ the standard deviation of the numbers so far,
#
# $$
# \begin{aligned}
# c_n &= t_{n-1}(1 - \epsilon)\,\frac s{\sqrt n}\,\sqrt{1 - \frac nN} & &\text{(a $t$-test),}\\
# c_n &= s\,\sqrt{\frac{2\log(3/\delta_k)}n} + \frac{3R\log(3/\delta_k)}n & &\text{(empirical Bernstein).}
# \end{aligned}
# $$ (eq-naive-tests)
#
# The first, of {cite:t}`korattikara2014`, takes the mean for normal; $t_{n-1}(1 - \epsilon)$ is a quantile of Student's law, and $1 - n/N$ is what sampling without replacement saves.
# The second, in the way of {cite:t}`bardenet2014`, holds for every law of numbers whose largest and smallest differ by $R$ {cite:p}`audibert2009`, without replacement too {cite:p}`hoeffding1963`: the $k$-th look is wrong with probability $\delta_k$ at most, and with $\delta_k = \delta/(k^2 + k)$ the whole decision is wrong with probability $\delta$ at most.
# For many chains at once, one a row ({ref}`ex-poll-one` does it for one):


# %%
def decide(terms, threshold, looks, half_width):
    """Decide for each chain whether the mean of its terms (chains, N), which are in
    random order, is above its threshold (chains,), and say how many it has read."""
    looks = torch.as_tensor(looks)
    means = terms.cumsum(1)[:, looks - 1] / looks
    squares = terms.square().cumsum(1)[:, looks - 1] / looks
    spreads = (squares - means**2).clamp(min=0).sqrt()
    gaps = means - threshold[:, None]
    sure = gaps.abs() > half_width(spreads, looks, terms)
    sure[:, -1] = True  # all have been read
    first = sure.int().argmax(1)
    return gaps.gather(1, first[:, None])[:, 0] > 0, looks[first]


def t_test(epsilon):
    def half_width(spreads, looks, terms):
        quantiles = torch.from_numpy(student.ppf(1 - epsilon, looks - 1))
        left = 1 - looks / terms.shape[1]
        return quantiles * spreads * (left / (looks - 1)).sqrt()

    return half_width


def bernstein(delta):
    def half_width(spreads, looks, terms):
        k = torch.arange(1, len(looks) + 1)
        logs = torch.log(3 * k * (k + 1) / delta)
        reach = (terms.amax(1) - terms.amin(1))[:, None]
        return spreads * (2 * logs / looks).sqrt() + 3 * reach * logs / looks

    return half_width


# %% [markdown]
# ## What it saves
#
# Now a posterior that is known, the mean of $N = 1{,}000$ normal numbers of variance 1 with a flat prior: $N(\bar x, \frac1N)$.
# The proposal is a step of 2.4 posterior standard deviations, about the best for one dimension.
# The $t$-test looks after every 50 examples, the other after 50, 100, 200, and so on.
# ($R$ of the $\ell_i$ is the step times the range of the data, which need be found only once.)


# %%
def walk(numbers, width, tests, num_chains, num_steps, seed):
    """Follow random walks from the posterior of the mean of numbers (N,). Of each test:
    the draws in posterior standard deviations (steps, chains), the share of the data
    that it read, and the share of its decisions that all the data would not take."""
    size, mean = len(numbers), numbers.mean()
    shuffle = np.random.default_rng(seed)
    generator = torch.Generator().manual_seed(seed)
    double = dict(generator=generator, dtype=torch.float64)
    begin = mean + torch.randn(num_chains, **double) / size**0.5
    at, found = dict.fromkeys(tests, begin), {name: [] for name in tests}
    for _ in range(num_steps):
        rows = np.broadcast_to(numbers.numpy(), (num_chains, size))
        order = torch.from_numpy(shuffle.permuted(rows, axis=1))
        step = width / size**0.5 * torch.randn(num_chains, **double)
        threshold = torch.rand(num_chains, **double).log() / size
        for name, (looks, half_width) in tests.items():
            old, middle = at[name], at[name] + step / 2
            terms = step[:, None] * (order - middle[:, None])
            accepted, read = decide(terms, threshold, looks, half_width)
            at[name] = torch.where(accepted, old + step, old)
            wrong = accepted != (step * (mean - middle) > threshold)
            draws = (at[name] - mean) * size**0.5
            found[name].append(torch.stack([draws, read / size, wrong.double()]))
    return {name: torch.stack(steps, 1) for name, steps in found.items()}


N = 1_000
numbers = torch.randn(N, generator=torch.Generator().manual_seed(8)).double()
often = range(50, N + 1, 50)
tests = {
    "all the data": ([N], t_test(0.01)),
    **{f"error {epsilon}": (often, t_test(epsilon)) for epsilon in (0.01, 0.05, 0.2)},
    "five looks, error 0.02": (range(200, N + 1, 200), t_test(0.02)),
    "Bernstein, δ = 0.1": ([50, 100, 200, 400, 800, N], bernstein(0.1)),
}
walks = walk(numbers, 2.4, tests, num_chains=200, num_steps=500, seed=9)
spread = {name: draws[20:].square().mean(0) for name, (draws, _, _) in walks.items()}
share = {name: read.mean() for name, (_, read, _) in walks.items()}

# %% mystnb={"figure": {"caption": "Random-walk Metropolis whose decisions read a part of the data: the variance of its draws, where 1 is right (grey), against the share that it reads. The t-test at three errors $\\epsilon$ with twenty looks, and at one with five; the Bernstein test at $\\delta = 0.1$; and Metropolis' rule.", "name": "fig-naive-poll"}, "image": {"alt": "Six points. Where all the data are read the variance is 1, and the Bernstein test is close to that point. The three points of the t-test go up to the left: with six tenths of the data the variance is about a tenth too large, with four tenths it is 1.7, with one seventh it is nearly 4. The point of five looks lies on the same way down."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.4))
colour = COLOURS["naive SGHMC with correction"]
names = [name for name in tests if name.startswith("error")]
axes.plot(
    [share[name] for name in names],
    [spread[name].mean() for name in names],
    "-o",
    color=colour,
    label="$t$-test",
)
for name in names:
    place = (share[name] + 0.02, spread[name].mean() + 0.06)
    axes.annotate(rf"$\epsilon = {name.split()[1]}$", place)
for name, mark, label in (
    ("five looks, error 0.02", "^", r"$t$-test with five looks, $\epsilon = 0.02$"),
    ("Bernstein, δ = 0.1", "s", r"Bernstein, $\delta = 0.1$"),
    ("all the data", "D", "all the data"),
):
    axes.plot(share[name], spread[name].mean(), mark, color="black", ms=5, label=label)
axes.axhline(1, color=TRUTH, zorder=0)
axes.set(
    xlabel="share of the data that a decision reads",
    ylabel="variance of the draws",
    xlim=(0, 1.05),
    ylim=(0, 4.4),
)
axes.legend(loc="upper right")
plt.show()

# %% [markdown]
# In {numref}`fig-naive-poll` what the $t$-test saves is paid for in bias.
# With $\epsilon = 0.01$ it reads six tenths of the data, and the variance is twelve per cent too large; with $\epsilon = 0.05$ four tenths, and the variance is 1.7.
# Two per cent of its decisions are wrong at $\epsilon = 0.01$, and not one, because each look is a new chance to err.
# Its authors grant the bias, and argue that more draws in the same time make up for it.
# While draws are few that is so: a variance from $K$ independent draws is known to a share of $\sqrt{2/K}$, which is a tenth at $K = 200$.
# Fewer looks err less and read more, which is the same bargain: with five looks and $\epsilon = 0.02$ it reads two thirds, and the variance is six per cent too large.
# The Bernstein test makes no mistake that we could see, and reads nearly everything.
#
# Of it one can prove what the $t$-test lacks.
#
# ```{prf:proposition} Decisions that are seldom wrong
# :label: prop-naive-poll
#
# Let $P$ and $\tilde P$ be the kernels with exact decisions and with decisions of which a share of $\delta$ at most is wrong, wherever the chain is, and $\pi$ and $\tilde\pi$ stationary distributions of theirs.
# If $m$ steps of $P$ bring any two starts together, $\lVert P^m(\theta, \cdot) - P^m(\theta', \cdot)\rVert \le \rho < 1$ in total variation, then $\lVert\tilde\pi - \pi\rVert \le m\delta/(1 - \rho)$.
# ```
#
# ```{prf:proof}
# Let the two chains use the same proposals and the same $u$: one step from the same place differs by at most $\delta$ in total variation, so $m$ steps by at most $m\delta$. Hence, with $\tilde\pi\tilde P^m = \tilde\pi$ and $\pi P^m = \pi$,
# $\lVert\tilde\pi - \pi\rVert = \lVert\tilde\pi\tilde P^m - \pi P^m\rVert \le \lVert\tilde\pi\tilde P^m - \tilde\pi P^m\rVert + \lVert\tilde\pi P^m - \pi P^m\rVert \le m\delta + \rho\lVert\tilde\pi - \pi\rVert$.
# ```
#
# {ref}`ex-poll-bound` looks at how sharp that is.
#
# ## Why a decision needs so much
#
# By {eq}`eq-v` the mean of $n$ of the numbers, times $N$, has the variance $\frac{N^2}n(1 - \frac nN)\,s^2$.
# Near the mode $\ell_i$ varies by about the step times the score of an example; measure the step in posterior standard deviations, $\lvert\Delta\rvert$, and for a model that fits $Ns^2 \approx \lvert\Delta\rvert^2$.
# To know by $z$ standard errors on which side of $\log u$ a sum is, from which it is $g$ away, the test has to read
#
# $$
# \Bigl(\frac Nn - 1\Bigr)\lvert\Delta\rvert^2 \le \frac{g^2}{z^2}, \qquad\text{so}\qquad \frac nN \ge \frac{\lvert\Delta\rvert^2}{\lvert\Delta\rvert^2 + g^2/z^2}.
# $$ (eq-naive-poll)
#
# $N$ has dropped out: a share of the data is needed, however many there are.
# A trajectory of HMC in $d$ dimensions has $\lvert\Delta\rvert^2 \approx 2d$, and $g$ is of the order of one: in ten dimensions, with $z = 2.3$, that is 99 % of the data.
# Short steps are decided faster, but there are more of them.
# Where $u$ is close to the ratio $g$ is small, and then all has to be read: so the share falls no faster than $\lvert\Delta\rvert$, while the number of steps that is worth an independent draw grows as $1/\lvert\Delta\rvert^2$.
# The shortest steps are the dearest.


# %%
def exact_time(width):
    """The autocorrelation time of θ of random-walk Metropolis on N(0, 1), on a grid."""
    grid = torch.linspace(-6, 6, 601, dtype=torch.float64)
    target = torch.softmax(-(grid**2) / 2, 0)
    moves = torch.exp(-((grid - grid[:, None]) ** 2) / (2 * width**2))
    moves = 0.02 * moves / (width * math.sqrt(2 * math.pi))
    moves = moves * torch.exp((grid[:, None] ** 2 - grid**2) / 2).clamp(max=1)
    moves = moves + torch.diag(1 - moves.sum(1))  # what is refused stays
    series = torch.linalg.solve(torch.eye(601).double() - moves + target, grid)
    return float(2 * (target * grid) @ series / (target @ grid**2) - 1)


cheapest = {"error 0.01": tests["error 0.01"]}
read, passes = {}, {}
for width in (2.4, 1.0, 0.3, 0.1):
    steps = walk(numbers, width, cheapest, num_chains=400, num_steps=20, seed=10)
    read[width] = float(steps["error 0.01"][1].mean())
    passes[width] = read[width] * exact_time(width)
many_numbers = torch.randn(10_000, generator=torch.Generator().manual_seed(11)).double()
rarely = {"error 0.01": (range(500, 10_001, 500), t_test(0.01))}
of_many = walk(many_numbers, 2.4, rarely, num_chains=100, num_steps=20, seed=12)

# %% [markdown]
# Count the passes as the share that is read times the autocorrelation time of the exact rule, so that the bias goes unpunished.
# At 2.4 standard deviations the $t$-test with $\epsilon = 0.01$ then pays 2.7 passes over the data for an independent draw, where Metropolis' rule pays 4.4; at a tenth of one it reads a fifth of the data for a decision, and pays about ninety passes.
# Of ten times as many examples it needs the same share.
# So such tests take a constant factor off *one* of the two prices, that of the decision, and leave {eq}`eq-naive-passes` as it is, the price of a noisy trajectory that can be accepted.
#
# What helps is to know the $\ell_i$ nearly before reading them: subtract from each a cheap approximation whose sum is known, and what is left varies less.
# {cite:t}`bardenet2017` do this after they review the field, and say frankly for which posteriors it works: those that are very nearly normal.

# %% tags=["hide-input"]
small = torch.randn(8, generator=torch.Generator().manual_seed(13)).double()
sums = [8 * small[list(rows)].mean() for rows in itertools.combinations(range(8), 3)]
claim(
    "Variance of 8 times the mean of 3 of 8 numbers over N²/n (1 − n/N) s²",
    torch.stack(sums).var(correction=0) / (64 / 3 * (1 - 3 / 8) * small.var()),
    near=1,
    within=1e-12,
    because="all 56 samples, s² with the divisor N − 1; rounding",
    kind="exact",
)
for name, near, within in (
    ("error 0.01", 0.62, 0.01),
    ("error 0.05", 0.41, 0.01),
    ("error 0.2", 0.139, 0.01),
    ("five looks, error 0.02", 0.68, 0.015),
    ("Bernstein, δ = 0.1", 0.98, 0.01),
):
    claim(
        f"Share of the data that a decision reads, {name}",
        share[name],
        near=near,
        within=within,
        because="200 chains, 500 decisions each",
    )
for name, near in (
    ("all the data", 1.0),
    ("error 0.01", 1.12),
    ("error 0.05", 1.67),
    ("error 0.2", 3.8),
    ("five looks, error 0.02", 1.065),
    ("Bernstein, δ = 0.1", 1.0),
):
    claim(
        f"Variance of the draws, in those of the posterior, {name}",
        spread[name].mean(),
        near=near,
        standard_error=spread[name].std() / 200**0.5,
        because="200 chains, 500 steps each, beside those of five other seeds",
    )
for name, at_least, at_most in (
    ("error 0.01", 0.015, 0.022),
    ("error 0.05", 0.07, 0.085),
    ("Bernstein, δ = 0.1", 0.0, 1e-3),
):
    wrong = walks[name][2].mean()
    claim(
        f"Share of wrong decisions between {at_least:g} and {at_most:g}, {name}",
        bool(at_least <= wrong <= at_most),
        because="100,000 decisions",
    )
for width, near, within in (
    (2.4, 2.73, 0.13),
    (1.0, 4.8, 0.2),
    (0.3, 20.4, 1.0),
    (0.1, 89, 9),
):
    claim(
        f"Passes over the data for an independent draw, error 0.01, steps of {width:g}",
        passes[width],
        near=near,
        within=within,
        because="8,000 decisions from the posterior, exact autocorrelation times",
    )
claim(
    "Share read with steps of 0.3 over that with steps of 0.1",
    read[0.3] / read[0.1],
    at_most=2.2,
    because=(
        "less than in proportion; of a share in proportion to the square it would be 9"
    ),
)
claim(
    "Passes for an independent draw of Metropolis' rule, steps of 2.4",
    exact_time(2.4),
    near=4.4,
    within=0.05,
    because="autocorrelation time, on a grid",
    kind="exact",
)
claim(
    "Share read of 10,000 examples less that of 1,000, error 0.01",
    of_many["error 0.01"][1].mean() - read[2.4],
    near=0,
    within=0.07,
    because="2,000 and 8,000 decisions",
)

# %% [markdown]
# ## In practice
#
# * With these two tests a correction whose decisions are taken from a sample is no way out: it reads most of the data, or its samples are too wide, or its steps are so short that an independent sample costs more. (Other minibatch corrections, which bound or randomise the likelihood ratio, were not examined.)
# * If you use one, count what its decisions read, and count it for an independent draw.
# * Every look is a chance to err: an error of one per cent a look is not one of one per cent a decision.
# * What would help is a good and cheap approximation of each $\ell_i$; then a Gaussian approximation of the posterior may do by itself.
# * The other way is to leave the correction out, and to take out the heat: {doc}`/book/tutorial/sghmc`.
#
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | the rule | read on while $\lvert\bar\ell - \psi\rvert \le c_n$ | {prf:ref}`alg-naive-poll` |
# | half widths | $t$-test: $t_{n-1}(1 - \epsilon)\,\frac s{\sqrt n}\sqrt{1 - \frac nN}$ | {eq}`eq-naive-tests` |
# | bias of the law | $\lVert\tilde\pi - \pi\rVert \le m\delta/(1 - \rho)$ | {prf:ref}`prop-naive-poll` |
# | a decision from a sample | $n/N \ge \lvert\Delta\rvert^2/(\lvert\Delta\rvert^2 + g^2/z^2)$ | {eq}`eq-naive-poll` |
#
# ## Change it
#
# * Set `often = range(50, N + 1, 50)` to `often = range(200, N + 1, 200)`: with fewer looks the $t$-test errs less and reads more, so that the claims on its shares and variances show ✗.
# * Set `left = 1 - looks / terms.shape[1]` to `left = 1 + 0 * looks / terms.shape[1]`, which forgets that the numbers are drawn without replacement: the test reads more than it needs, errs less for it, and the claims on its shares, its variances and its price show ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-poll-short
#
# Let the steps be short, $\lvert\Delta\rvert \to 0$.
# Then the sum of the $\ell_i$ is small, and $g \approx -\log u$.
# What is the expected share of the data by {eq}`eq-naive-poll`, and how do the passes for an independent draw grow?
# ```
#
# ```{solution} ex-poll-short
# :class: dropdown
#
# $-\log u$ has the density $e^{-g}$.
# Write $a = z\lvert\Delta\rvert$: the share is $a^2/(a^2 + g^2)$, and its expectation
#
# $$
# \int_0^\infty\frac{a^2}{a^2 + g^2}\,e^{-g}\,dg \approx \int_0^\infty\frac{a^2}{a^2 + g^2}\,dg = \frac\pi2\,z\lvert\Delta\rvert,
# $$
#
# in proportion to $\lvert\Delta\rvert$ and not to its square.
# A random walk takes of the order of $1/\lvert\Delta\rvert^2$ steps for an independent draw, so the passes grow as $1/\lvert\Delta\rvert$.
# ```

# %% tags=["hide-input"]
for a, within in ((1e-2, 0.05), (1e-3, 0.01)):
    expected = sum(
        quad(lambda g, a=a: a**2 / (a**2 + g**2) * math.exp(-g), *ends)[0]
        for ends in itertools.pairwise((0, a, 10 * a, 100 * a, 50))
    )
    claim(
        f"Expected share over ½πz|Δ|, for z|Δ| = {a:g}",
        expected / (math.pi / 2 * a),
        near=1,
        within=within,
        because="integration by quadrature",
        kind="exact",
    )

# %% [markdown]
# ```{exercise}
# :label: ex-poll-bound
#
# Does random-walk Metropolis on $N(0, 1)$ meet the condition of {prf:ref}`prop-naive-poll`?
# Cut the line to a grid from $-3$ to 3, let every decision be reversed with probability $\delta$, and compare the distance of the two stationary distributions with the bound.
# ```
#
# ```{solution} ex-poll-bound
# :class: dropdown
#
# On the whole line it does not: two chains that start far enough from each other are still apart after $m$ steps, whatever $m$ is.
# On a bounded set it does.
# The folded code computes the laws for steps of 2.4, with 121 points.
# $\rho$ is the largest distance between two rows of the matrix $P^m$, and the best $m$ makes $m/(1 - \rho)$ smallest.
# The bound holds, and is more than five times as large as what it bounds.
# ```

# %% tags=["hide-input"]
points = torch.linspace(-3, 3, 121, dtype=torch.float64)
steps = torch.exp(-((points - points[:, None]) ** 2) / (2 * 2.4**2))
steps = 0.05 * steps / (2.4 * math.sqrt(2 * math.pi))
right = torch.exp((points[:, None] ** 2 - points**2) / 2).clamp(max=1)


def with_errors(delta):
    """The kernel whose decisions are reversed with probability delta, and its law."""
    kernel = steps * (right * (1 - delta) + (1 - right) * delta)
    kernel = kernel + torch.diag(1 - kernel.sum(1))
    left = torch.cat([kernel.T - torch.eye(121).double(), torch.ones(1, 121).double()])
    return kernel, torch.linalg.lstsq(left, torch.eye(122).double()[:, -1:]).solution


exactly, exact_law = with_errors(0.0)
factor, power = math.inf, torch.eye(121, dtype=torch.float64)
for m in range(1, 31):
    power = power @ exactly
    rho = float(torch.cdist(power, power, p=1).max() / 2)
    factor = min(factor, m / (1 - rho)) if rho < 1 else factor
ratios = [
    float((with_errors(delta)[1] - exact_law).abs().sum() / 2 / (factor * delta))
    for delta in (0.01, 0.05, 0.1)
]
claim(
    "Largest distance of the two laws over the bound, for errors of 1, 5 and 10 %",
    max(ratios),
    at_most=0.2,
    because="stationary distributions on the grid; the bound allows 1",
    kind="exact",
)

# %% [markdown]
# ````{exercise}
# :label: ex-poll-one
#
# **Write it yourself.**
# Write {prf:ref}`alg-naive-poll` for one chain, as a loop over the looks, and compare it with `decide`.
#
# ```python
# def poll(terms, limit, looks, half_width):
#     """Whether the mean of terms (N,) is above limit, and how many were read.
#     half_width(spreads, looks, terms), all with one row, gives the c_n of all looks."""
#     ...
# ```
# ````
#
# ```{solution} ex-poll-one
# :class: dropdown
#
# At each look the standard deviation is that of the part which was read.
# At the last all have been read, and the decision is taken whatever $c_n$ says.
# ```


# %% tags=["hide-input"]
def poll(terms, limit, looks, half_width):
    """Whether the mean of terms (N,) is above limit, and how many were read.
    half_width(spreads, looks, terms), all with one row, gives the c_n of all looks."""
    for place, n in enumerate(looks):
        part = torch.tensor([terms[:n].std(correction=0)])
        wide = half_width(part.expand(1, len(looks)), torch.tensor(looks), terms[None])
        gap = terms[:n].mean() - limit
        if n == len(terms) or abs(gap) > wide[0, place]:
            return bool(gap > 0), n


generator, same = torch.Generator().manual_seed(14), True
for name in ("error 0.05", "Bernstein, δ = 0.1"):
    looks, half_width = tests[name]
    terms = torch.randn(100, N, generator=generator).double() / 30
    threshold = torch.randn(100, generator=generator).double() / 300
    accepted, number = decide(terms, threshold, looks, half_width)
    for row, limit, decision, count in zip(
        terms, threshold, accepted, number, strict=True
    ):
        above, n = poll(row, limit, looks, half_width)
        same = same and n == count and above == bool(decision)
claim(
    "Two hundred decisions by the function and example by example are the same",
    same,
    because="the same rule, in a loop",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-naive-palindrome
#
# Prove that the correction step is valid: compare the density of a noisy path with that of the same path reversed.
# Does the law of the noise have to be the same everywhere?
# ```
#
# ```{solution} ex-naive-palindrome
# :class: dropdown
#
# Let $\xi_0, \dots, \xi_L$ be the noises at the points $\theta_0, \dots, \theta_L$ of the path, each used in both half kicks that meet there.
# For given noises the map from $(\theta, r)$ to $(\theta', -r')$ keeps volume, and it is undone by the same map with the noises in the reversed order.
# The reversed path visits the same points and needs the same noise at each, so both paths have the density $\prod_iq(\xi_i \mid \theta_i)$, and the proposal is in detailed balance with respect to Lebesgue measure.
# Accepting with $\min(1, e^{-\Delta H})$ makes that detailed balance for $e^{-H}$.
# The law $q$ may depend on $\theta$, as that of a minibatch does.
# (Fresh noise for each half kick is as valid: number the half kicks in place of the points. {prf:ref}`thm-noisy-trajectory` has the proof.)
# ```
#
# ## Further reading
#
# {cite:t}`korattikara2014` and {cite:t}`bardenet2014` proposed these tests, and {cite:t}`bardenet2017` review all that has been tried to correct with a part of the data; {cite:t}`betancourt2015` says why subsampling and long trajectories do not go together.
