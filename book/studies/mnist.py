# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # MNIST at full scale
#
# ```{div} page-head
# Level: second course · Reading: about 64 minutes, without the exercises · Running: about 15 seconds
# ```
#
# The experiment that made SGHMC known, run again as its authors ran it: 50,000 digits, 800 passes over them, and priors that learn their own width.
# SGHMC's average has the smallest error, by a margin over a fair optimiser that five seeds do not decide; on log loss it loses, and that they do.
#
# **You will learn** to
#
# * put a prior on the width of a prior, and draw that width by a Gibbs step between two rounds of SGHMC,
# * say what shuffled passes do to the gradient noise that independent minibatches do not, and test whether the scores show it,
# * average the predictions of 750 networks without storing one of them,
# * read a comparison of samplers and optimisers with its seeds, its costs and its tests.
#
# **You will need** {doc}`/book/tutorial/digits` and {doc}`/book/tutorial/sghmc`.

# %%
import math
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy import stats

from booklib.data import split_digits
from booklib.models.hierarchical import HierarchicalNetwork
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import claim
from booklib.page.figures import COLOURS, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.plans import Hamiltonian, Plan, Prior
from booklib.runs.results import RESULTS, read_result, who_ran
from booklib.runs.run import Run
from sgmc.door.running import drive
from sgmc.minibatches import Fresh
from sgmc.noise import estimate_noise_variance

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## The experiment
#
# {cite:t}`chen2014` (Section 4.2) take the network 784–100–10 with sigmoid units and 50,000 of the training digits, and keep 10,000 that are drawn at random for validation; we keep the last 10,000.
# A *round*, or epoch, is $N/n = 100$ steps with minibatches of $n = 500$. After 50 rounds of burn-in, or {term}`warm-up`, the class probabilities of the network at the end of each round are averaged, up to round 800: 750 networks.
# SGHMC runs with $\eta = 0.1/N = 2\cdot10^{-6}$, $\alpha = 0.01$ and $\hat\beta = 0$ (no estimate of the gradient noise), the settings of the authors' program {cite:p}`chencode`.
# All settings: {doc}`/book/appendix/settings`.
#
# The network has four tensors of parameters: weights $W_1$ and biases $b_1$ of the hidden layer, weights $W_2$ and biases $b_2$ of the output.
# How wide should their priors be? {doc}`/book/tutorial/digits` had to choose. Here nobody chooses.
#
# ```{prf:definition} A prior with unknown precision
# :label: def-mnist-hyperprior
#
# Each tensor $w_k$ of $n_k$ entries has its own precision $\lambda_k$:
#
# $$
# \begin{aligned}
# w_k \mid \lambda_k &\sim N\bigl(0, \lambda_k^{-1} I\bigr), \\
# \lambda_k &\sim \mathrm{Gamma}(a, b),
# \end{aligned}
# $$ (eq-mnist-hyperprior)
#
# with shape $a$ and rate $b$, so that $\lambda_k$ has the density proportional to $\lambda^{a-1}e^{-b\lambda}$ on $\lambda > 0$. The paper calls its prior weakly informative; its program has $a = b = 1$.
# ```
#
# Now there are two kinds of unknowns, and the joint posterior is
#
# $$
# \begin{aligned}
# \pi(\theta, \lambda) \propto{} &\underbrace{\prod_{i=1}^N P(y_i \mid x_i, \theta)}_{\text{knows nothing of } \lambda} \\
# &\cdot \prod_k \Bigl(\lambda_k^{n_k/2} e^{-\frac12\lambda_k\lvert w_k\rvert^2} \\
# &\qquad\quad \cdot \lambda_k^{a-1}e^{-b\lambda_k}\Bigr).
# \end{aligned}
# $$ (eq-mnist-joint)
#
# ## The Gibbs step
#
# ```{prf:theorem} The full conditional law of a precision
# :label: thm-mnist-gibbs
#
# Under {eq}`eq-mnist-joint` the precisions are independent given $\theta$ and the data, and
#
# $$
# \begin{aligned}
# \lambda_k &\mid \theta, \text{data} \\
# &\sim \mathrm{Gamma}\Bigl(a + \tfrac{n_k}{2}, \\
# &\qquad\qquad b + \tfrac12\lvert w_k\rvert^2\Bigr).
# \end{aligned}
# $$ (eq-mnist-gibbs)
# ```
#
# ```{prf:proof}
# As a function of $\lambda$ alone, {eq}`eq-mnist-joint` is a product over $k$ of $\lambda_k^{a + n_k/2 - 1}\exp\bigl(-\lambda_k(b + \tfrac12\lvert w_k\rvert^2)\bigr)$, since the likelihood does not contain $\lambda$.
# A product means independence, and each factor is the density of the stated Gamma law up to its constant.
# ```
#
# ```{prf:theorem} Steps in turn
# :label: thm-mnist-turns
#
# Let $K_\lambda$ be a transition kernel on $(\theta, r)$ that leaves $\pi(\theta \mid \lambda)\,N(r; 0, M)$ invariant, for each fixed $\lambda$.
# Then moving $(\theta, r)$ by $K_\lambda$ and after that drawing $\lambda$ from {eq}`eq-mnist-gibbs` leaves $\pi(\theta, \lambda)\,N(r; 0, M)$ invariant. The momentum need not be drawn afresh when $\lambda$ changes.
# ```
#
# ```{prf:proof}
# Let $(\theta, r, \lambda)$ have the stated law. Given $\lambda$, the pair $(\theta, r)$ has the law that $K_\lambda$ keeps, so after the first move the joint law is the same.
# Given $(\theta, r)$, $\lambda$ has the law $\pi(\lambda \mid \theta)$, for $r$ is independent of both; replacing it by another draw from that law changes nothing either.
# ```
#
# SGHMC's kernel has that invariant law only up to its step size and its gradient noise; the Gibbs step adds no error of its own, but it can let the kernel's grow ({doc}`/book/studies/reproduction_report`).
# In code it is two lines for a tensor of weights, a sum of squares and a Gamma draw. `draw_hyperparameters` of a `HierarchicalNetwork` does it for every tensor and every chain.
# A posterior is not changed by what is drawn: `posterior.given(drawn)` is another one, with these precisions, for the steps of the next round.
# `Gibbs` of `booklib.models.gibbs` is the two in turn, as a kernel for `sample`.

# %%
train, _, test = split_digits()  # 3,200 and 1,000 of those that are always there
rate, size = 0.1 / len(train.targets), {"batch_size": 100, "record_every": 5}
plan = Plan(Hamiltonian(rate, 0.01), **size)  # the precisions are drawn
plans = {
    "SGHMC": plan,
    "SGHMC, fresh minibatches": plan.but(minibatches=Fresh()),
    "SGD with momentum": plan.but(temperature=0.0, prior=Prior(1.0)),
}


def network():
    return multilayer_perceptron([784, 100, 10], "sigmoid")


def new_run(plan, path=None):
    """A run of the experiment's own code."""
    return Run(plan, network(), train, test, path=path)


posterior = HierarchicalNetwork(network(), *train, batch_size=100)
generator = torch.Generator().manual_seed(0)
position = posterior.initial_position(1, generator) + 0.3
chains = position.expand(40, -1)
draws = [posterior.draw_hyperparameters(chains, generator) for _ in range(100)]
drawn = torch.cat([precisions["2.bias"] for precisions in draws])
biases = posterior.parameters_of(position)["2.bias"]
half_square = 0.5 * float(biases.square().sum())  # |w|²/2
law = stats.gamma(1 + biases.numel() / 2, scale=1 / (1 + half_square))  # a, b = 1

# %% tags=["hide-input"]
claim(
    "Mean of 4,000 precisions drawn for the ten output biases",
    drawn.mean(),
    near=law.mean(),
    standard_error=law.std() / len(drawn) ** 0.5,
    because=(
        "the Gibbs step draws from the exact Gamma law, whose mean is (1 + n/2)/(1 + "
        "|w|²/2)"
    ),
)

# %% [markdown]
# The mean of {eq}`eq-mnist-gibbs` is about $n_k/\lvert w_k\rvert^2$, one over the tensor's mean square, and its relative standard deviation is $1/\sqrt{a + n_k/2}$.
# For $W_1$, with 78,400 entries, that is half a per cent: given the weights, $\lambda_1$ is all but known, and given $\lambda_1$ the mean square of the weights is all but known.
# Two unknowns that pin each other move slowly: remember that when you look at {numref}`fig-mnist-precisions`.

# %% tags=["hide-input"]
claim(
    "Relative standard deviation of the precision of W₁, given the weights",
    1 / (1 + 78_400 / 2) ** 0.5,
    near=0.005,
    within=0.0001,
    because="it is 1/√(a + n/2), with a = 1 and n = 784·100",
    kind="exact",
)

# %% [markdown]
# ## Passes or fresh minibatches?
#
# The theory of {doc}`/book/tutorial/sghmc` draws each minibatch independently of the others. The authors' program, like most, shuffles the data and walks through them {cite:p}`chencode`. With $\hat\beta = 0$ this is no detail.
#
# ```{prf:theorem} Noise of a pass cancels
# :label: thm-mnist-passes
#
# Freeze the gradient, and let $\xi_1, \xi_2, \dots$ be the errors of the minibatch gradients, each with mean 0 and variance $V$. SGHMC adds them up in $v \leftarrow (1-\alpha)v - \eta\xi_t$, $\theta \leftarrow \theta + v$. After $T = RK$ steps, $R$ rounds of $K = N/n$, the displacement of $\theta$ that is due to the noise has
#
# * for independent errors a variance that grows like $(\eta/\alpha)^2 V\,T$,
# * for shuffled passes a variance that stays bounded, however large $R$ is.
# ```
#
# ```{prf:proof}
# The error $\xi_t$ enters $v$ at step $t$ and has moved $\theta$ by $-\eta\xi_t\sum_{j=0}^{T-t}(1-\alpha)^j$ after step $T$, which is $-\frac{\eta}{\alpha}\bigl(1 - (1-\alpha)^{T-t+1}\bigr)\xi_t$.
# Independent errors: the variance is $(\eta/\alpha)^2V\sum_t\bigl(1-(1-\alpha)^{T-t+1}\bigr)^2$, and all terms are near one but the last, a few times $1/\alpha$ of them.
# Passes: the minibatches of a pass share out all the data, so their errors sum to zero, and so does the constant part of the displacement. What is left is $\frac\eta\alpha\sum_t(1-\alpha)^{T-t+1}\xi_t$, whose terms decay geometrically backwards from $T$: its standard deviation is at most $\frac\eta\alpha\sqrt V\sum_{j\ge1}(1-\alpha)^j$ for all $T$.
# ```
#
# In truth the gradient is not frozen, the errors of a pass change as $\theta$ moves, and the cancellation is not complete; but with $\alpha = 0.01$ the momentum remembers about 100 steps, which is just one pass.
# Both variances can be computed exactly for a frozen gradient, because sampling without replacement gives errors of the same pass the covariance $-V/(K-1)$.

# %%
K, rounds, alpha = 100, 10, 0.01
T = K * rounds
correlation = torch.block_diag(
    *[(torch.eye(K, dtype=torch.float64) * K - 1) / (K - 1)] * rounds
)
displacement = {"fresh": [], "passes": []}
for end in range(K, T + 1, K):
    weights = 1 - (1 - alpha) ** torch.arange(end, 0, -1, dtype=torch.float64)
    displacement["fresh"].append(float(weights @ weights))
    displacement["passes"].append(float(weights @ correlation[:end, :end] @ weights))

# %% mystnb={"figure": {"caption": "Variance of the displacement that the gradient noise causes, in units of $(\\eta/\\alpha)^2V$, with $\\alpha = 0.01$ and 100 steps a round, when the gradient is frozen.", "name": "fig-mnist-passes"}, "image": {"alt": "Variance on a logarithmic scale against rounds one to ten. With fresh minibatches it grows from below 100 to about 900; with passes it stays flat, near four."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.2))
for name, style in (("fresh", "--"), ("passes", "-")):
    axes.semilogy(
        range(1, rounds + 1),
        displacement[name],
        style,
        color=COLOURS["SGHMC"],
        label=name,
    )
axes.set(xlabel="rounds", ylabel=r"variance / $(\eta/\alpha)^2V$")
axes.legend()
plt.show()

# %% [markdown]
# {numref}`fig-mnist-passes` shows both: with fresh minibatches the variance grows round by round, with passes it does not. What does that do to a network? Fresh minibatches heat: with $\hat\beta = 0$ their noise comes on top of the injected one, and raises the {term}`temperature` of a coordinate by the share $\beta/\alpha$ with $\beta = \tfrac12\eta V$ ({ref}`ex-mnist-heat`).

# %% tags=["hide-input"]
claim(
    "Noise-driven variance of the displacement after ten rounds, passes over fresh "
    "minibatches",
    displacement["passes"][-1] / displacement["fresh"][-1],
    at_most=0.02,
    because=(
        "both are computed exactly; the one is bounded and the other grows with the "
        "number of rounds"
    ),
    kind="exact",
)

# %% [markdown]
# The posterior can estimate $V$ from its own minibatches ({doc}`/book/tutorial/estimating_the_noise`), so let us look, in the small experiment of the last section, where 20 rounds have taken the network to the region in which it stays.

# %%
probe = new_run(plans["SGHMC, fresh minibatches"].but(rounds=20, burn_in=0))
probe.go(progress=False)
position = probe.chain.state.position
variance = estimate_noise_variance(posterior, position, generator, num_batches=10)
share = 0.5 * rate * variance / 0.01  # β/α
parts = posterior.parameters_of(share[None])
heat = {name: float(part.mean()) for name, part in parts.items()}

# %% tags=["hide-input"]
claim(
    "α/β with fresh minibatches, β a mean over the output biases",
    1 / heat["2.bias"],
    near=0.3,
    within=0.29,
    because="0.22 to 0.37 with ten seeds: the minibatches bring more noise than is "
    "injected",
)
claim(
    "Heat in the weights of the hidden layer over that in the weights of the output "
    "layer",
    heat["0.weight"] / heat["2.weight"],
    at_most=0.2,
    because="0.05 to 0.09 with ten seeds",
)

# %% [markdown]
# With fresh minibatches the output layer would be sampled at a far higher temperature than the hidden layer. Passes heat less.
# So we run SGHMC in both ways, and every other method in passes.
# We settled on passes after we had seen test curves of both for one seed, so that the test digits had a say in this one choice. The authors' program takes passes too. Read the comparison between the two rows below with that in mind; the other rows all use passes.
#
# ## The runs
#
# The command is `python -m experiments run mnist`. It walks the network through 80,000 steps for each method and seed, averages predictions as they come, saves itself every half minute, and goes on after a kill with `--resume`, to the very same bits.
# The optimisers have no Gibbs step; their one precision (the weight decay) and learning rate, and SGLD's learning rate, are those with the smallest error on the validation digits after 100 rounds of 800. That favours what is quick, and the decay $\alpha$ of SGD with momentum was not tuned at all: the optimisers could be better than they are here.
# The table holds what was chosen. A grid was widened until its best point lay inside: an optimum on the edge of a grid is not an optimum.

# %% tags=["hide-input"]
result = read_result(RESULTS / "mnist.json")
runs = {method: content["runs"] for method, content in result["methods"].items()}
styles = {method: "--" if "fresh" in method else "-" for method in runs}
colours = {method: COLOURS[method.split(",")[0]] for method in runs}
# What each method predicts with: samplers with the average, optimisers with the last
# network.
uses = {
    method: "average" if content[0]["plan"]["temperature"] > 0 else "last"
    for method, content in runs.items()
}


def scores(method, score, use=None):
    """One score of all seeds of a method."""
    return [run[use or uses[method]][score] for run in runs[method]]


def mean(values):
    return sum(values) / len(values)


def plan_row(method):
    """The settings of a method, and of how many they were the best."""
    plan, tried = runs[method][0]["plan"], len(result["methods"][method]["tuning"])
    decay, precision = plan["momentum_decay"], plan["prior_precision"]
    return [
        method,
        f"{len(runs[method])}",
        f"{plan['learning_rate']:.1e}",
        "" if decay is None else f"{decay:g}",
        "drawn" if precision is None else f"{precision:g}",
        f"{tried}" if tried else "the authors'",
    ]


show_table(
    ["method", "seeds", "η", "α", "precision λ", "settings tried"],
    [plan_row(method) for method in runs],
)
print(who_ran(result))

# %% tags=["hide-input"]
for method, names in {
    "SGD with momentum": ("learning_rate", "prior_precision"),
    "SGD": ("learning_rate", "prior_precision"),
    "SGLD": ("learning_rate",),
}.items():
    plan = runs[method][0]["plan"]
    tried = [row["plan"] for row in result["methods"][method]["tuning"]]
    for name in names:
        values = [row[name] for row in tried]
        claim(
            f"{method}: the {name.replace('_', ' ')} chosen lies inside its grid",
            min(values) < plan[name] < max(values),
            because="the stored table of the tuning",
            kind="stored",
        )

# %% mystnb={"figure": {"caption": "Error (above) and log loss (below) on the 10,000 test digits, against rounds of 100 gradient evaluations: mean of five seeds, and a band from the least to the largest. Samplers: the average of all networks since round 50; optimisers: the last network.", "name": "fig-mnist-curves"}, "image": {"alt": "Two panels against rounds up to 800. The averages of the samplers fall smoothly; SGHMC's error ends near 1.6 per cent, below the others. The last networks of the two optimisers have wide bands, and that of SGD with momentum jumps up and down. In log loss the optimisers end lowest."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 1, figsize=(5.6, 6.6), sharex=True)
for method, content in runs.items():
    at = [r for r in content[0]["curve"]["round"] if r > 50]
    points = np.array([run["curve"][uses[method]][-len(at) :] for run in content])
    look = {"color": colours[method], "ls": styles[method], "lw": 1.3}
    for axes, column, factor in zip(panels, (0, 1), (100, 1), strict=True):
        values = factor * points[..., column].astype(float)
        axes.plot(at, values.mean(0), **look, label=method)
        band = (values.min(0), values.max(0))
        axes.fill_between(at, *band, color=colours[method], alpha=0.15, lw=0)
panels[0].set(ylabel="test error (%)", ylim=(1.4, 3.2))
panels[1].set(
    xlabel="round (100 gradient evaluations)",
    ylabel="log loss (nats)",
    ylim=(0.05, 0.105),
)
panels[0].legend(loc="upper right", ncols=2, fontsize=8)
plt.show()

# %% [markdown]
# {numref}`fig-mnist-curves` shows the way there: averages come down smoothly, the last network of SGD with momentum jumps. The table gives the mean and the standard deviation over the seeds at round 800; Brier's score {cite:p}`brier1950` is the mean of $\sum_k(P_k - [k = y])^2$, with $[k = y]$ one for the right class and zero for the others, and less is better.
# The minutes are processor time on one core of a machine that other jobs shared, so that small differences mean nothing.

# %% tags=["hide-input"]
names = {
    "error": "error %",
    "log_loss": "log loss",
    "brier": "Brier",
    "calibration_error": "calibration",
}
sghmc, momentum = "SGHMC", "SGD with momentum"


def cell(values, factor=1.0, digits=4):
    spread = factor * torch.tensor(values).std()
    return f"{factor * mean(values):.{digits}f} ± {spread:.{digits}f}"


show_table(
    ["method, predicts with", *names.values(), "minutes"],
    [
        [
            f"{method}, {use}",
            cell(scores(method, "error", use), 100, 2),
            *(cell(scores(method, s, use)) for s in list(names)[1:]),
            f"{mean([run['processor_seconds'] / 60 for run in runs[method]]):.1f}",
        ]
        for method in runs
        for use in ("average", "last")
    ],
)

# %% [markdown]
# One network that SGHMC has drawn errs more than twice as often as the average of 750, and the average has the smallest error of the table. The smallest log loss is that of the path average of SGD with momentum. The samplers are the worst calibrated, all of them, with or without averaging.

# %% tags=["hide-input"]
claim(
    "Test error of SGHMC's average, mean over the seeds",
    mean(scores(sghmc, "error")),
    at_most=0.0165,
    because="the goal set before the runs; the result is stored",
    kind="stored",
)
claim(
    "Test error of SGHMC's average over that of its last network",
    mean(scores(sghmc, "error")) / mean(scores(sghmc, "error", "last")),
    at_most=0.6,
    because=(
        "the stored result: a single draw from the posterior is far worse than the "
        "average of 750"
    ),
    kind="stored",
)
rows = {
    (method, use): {score: mean(scores(method, score, use)) for score in names}
    for method in runs
    for use in ("average", "last")
}


def least(score):
    """The row of the table with the least mean."""
    return min(rows, key=lambda row: rows[row][score])


claim(
    "The row with the least error is SGHMC's average, and that with the least log "
    "loss the path average of SGD with momentum",
    least("error") == (sghmc, "average") and least("log_loss") == (momentum, "average"),
    because="the stored result, means of five seeds",
    kind="stored",
)
by_calibration = sorted(rows, key=lambda row: rows[row]["calibration_error"])
claim(
    "The six rows with the largest calibration error are those of the samplers",
    {method for method, _ in by_calibration[-6:]}
    == {sghmc, "SGHMC, fresh minibatches", "SGLD"},
    because="the stored result, means of five seeds",
    kind="stored",
)
claim(
    "Log loss of SGHMC's average, passes less fresh minibatches",
    mean(scores(sghmc, "log_loss"))
    - mean(scores("SGHMC, fresh minibatches", "log_loss")),
    at_most=-0.001,
    because="the stored result; not decided at 0.05/24",
    kind="stored",
)

# %% [markdown]
# ## Published against ours
#
# | | published | ours | a word |
# | --- | --- | --- | --- |
# | network, data, batch, rounds, burn-in | 784–100–10 sigmoid; 50,000 digits; 500; 800; 50 {cite:p}`chen2014` | the same | |
# | SGHMC | $\eta = 0.1/N$, $\alpha = 0.01$, $\hat\beta = 0$ {cite:p}`chencode` | the same | so no number of ours was chosen for SGHMC |
# | pixels | divided by 256 {cite:p}`chencode` | divided by 255 | as if the prior of $W_1$ were four thousandths wider |
# | start | $N(0, 0.01^2)$ {cite:p}`chencode` | $N(0, 1/\text{fan-in})$, biases 0 | forgotten in the burn-in, except by the lengths of {numref}`fig-mnist-precisions` |
# | minibatches | shuffled once, then the same order each round {cite:p}`chencode` | shuffled anew each round; fresh ones for comparison | the noise of a pass cancels either way |
# | validation digits | 10,000 at random {cite:p}`chencode` | the last 10,000 | so other training digits, which may move the error by about its standard error |
# | precisions | Gibbs, a tensor at a time {cite:p}`chencode` | the same, once a round | |
# | seeds | one curve a method | as many as the table says | the figure shows no spread |
# | test error | curves that end at 1.56 (SGHMC), 1.78 (SGLD), 1.83 (SGD with momentum) and 2.02 % (SGD) {cite:p}`chen2014` | the table above | |
# | does SGHMC beat SGD with momentum? | yes, in the figure; *not significantly* over seeds, in the authors' later note {cite:p}`chencode` | the tests below | |
#
# {cite:t}`wang2021` ran the authors' program too, and write of its times, without numbers, that "SGHMC is much faster than SGD with momentum" (page 7). Per round it need not be: the two take the same gradients; in the program, as their script has it, both draw the same noise, in ours SGHMC alone.
# For the same 80,000 steps our runs took 2.4 and 2.0 minutes, with every seed longer for SGHMC. But SGD, which draws no noise either, took 2.4 too, on a machine that other jobs shared: our clock does not show what the noise costs. In rounds, the two curves of their own Figure 6 end within a thousandth of each other.
# The program has the sampler's noise in its Nesterov momentum too, unless `temp` or `start_sample` says otherwise, and averages every method from `num_burn` on. Their script for SGD with Nesterov momentum, at commit `a909621`, sets neither of the first two; what was set when the figure was made we do not know.

# %% tags=["hide-input"]
seconds = {
    method: torch.tensor([run["processor_seconds"] for run in runs[method]])
    for method in (sghmc, momentum)
}
claim(
    "Processor time of SGHMC over that of SGD with momentum, mean over the seeds",
    seconds[sghmc].mean() / seconds[momentum].mean(),
    near=1.2,
    within=0.02,
    because="the stored result; the machine was shared",
    kind="stored",
)
claim(
    "Least excess of the time of SGHMC, in seconds, of five seeds",
    (seconds[sghmc] - seconds[momentum]).min(),
    at_least=15,
    because="the stored result",
    kind="stored",
)

# %% [markdown]
# ## Does it win?
#
# A fair rival is not only the optimiser's last network. At a constant {term}`learning rate` that of SGD with momentum jumps from round to round ({numref}`fig-mnist-curves`). The *path average*, the mean prediction of the optimiser's own networks since round 50, does not, and it is what SGHMC's average should be measured against.
# Another cure is a rate that falls to zero. It has runs of its own, at the end of this section.
#
# Two questions hide in *does it win*, for each score.
#
# *Would another seed change the answer?* Runs with the same seed share their start and their minibatches, so the *paired t-test* of the five differences suits them. *Welch's test* compares the two groups of five and makes nothing of the pairs; where pairs have little in common it is the sharper one.
# Choosing between two tests after seeing both results amounts to choosing the answer. We therefore take **the larger of the two $p$-values**, here and where later chapters name this rule, so that a difference is reported only where both tests find it.
# With six rivals and four scores there are 24 comparisons, so that one of them counts as *decided* at $p < 0.05/24 = 0.002$.
#
# *Would another test set?* The error rate of 10,000 digits has a standard error of about 0.13 %, which all seeds share and no number of seeds makes smaller. Two methods that see the same digits differ by less luck than that: what counts is only the digits that one of them alone gets wrong. McNemar's test compares two networks digit by digit {cite:p}`dietterich1998`: of the digits that just one of them gets wrong, each gets about half, if they are equally good.

# %% tags=["hide-input"]
RIVALS = [
    (momentum, "last"),
    (momentum, "average"),
    ("SGD", "last"),
    ("SGD", "average"),
    ("SGLD", "average"),
    ("SGHMC, fresh minibatches", "average"),
]


def p_value(ours, theirs):
    """The larger p-value of two tests over the seeds: paired t-test, and Welch's."""
    paired = stats.ttest_rel(ours, theirs).pvalue
    return max(paired, stats.ttest_ind(ours, theirs, equal_var=False).pvalue)


tests, gap, decided = {}, {}, {"better": set(), "worse": set()}
for method, use in RIVALS:
    for score in names:
        ours, theirs = scores(sghmc, score), scores(method, score, use)
        tests[method, use, score] = p_value(ours, theirs)
        gap[method, use, score] = mean(ours) - mean(theirs)
for key, p in tests.items():
    if p < 0.05 / len(tests):
        decided["better" if gap[key] < 0 else "worse"].add(key)


def entry(method, use, score, num_tests):
    """A difference with its p-value; a star where it is decided."""
    key = method, use, score
    difference = f"{100 * gap[key]:+.2f}" if score == "error" else f"{gap[key]:+.4f}"
    star = "*" if tests[key] < 0.05 / num_tests else ""
    return f"{difference} (p = {tests[key]:.1g}){star}"


show_table(
    ["SGHMC's average less", "error, points", "log loss", "Brier", "calibration"],
    [
        [f"{method}, {use}", *(entry(method, use, s, len(tests)) for s in names)]
        for method, use in RIVALS
    ],
)

# %% [markdown]
# A star marks what is decided. For SGHMC: the error against the path average of SGD, and the log loss against SGLD. Against it: the calibration against both optimisers in both forms, and the log loss against the path average of SGD with momentum.
# With five seeds the choice of test matters: in error the paired test alone would decide against the last network of SGD with momentum but not against that of SGD, and Welch's test the opposite.

# %% tags=["hide-input"]
claim(
    "Of 24 comparisons those decided for SGHMC: error against the path average of "
    "SGD, and log loss against SGLD",
    decided["better"] == {("SGD", "average", "error"), ("SGLD", "average", "log_loss")},
    because="both tests of the stored results at 0.05/24",
    kind="stored",
)
claim(
    "Those decided against SGHMC: calibration against both optimisers, last network "
    "and path average, and log loss against the path average of SGD with momentum",
    decided["worse"]
    == {
        (momentum, "last", "calibration_error"),
        (momentum, "average", "calibration_error"),
        ("SGD", "last", "calibration_error"),
        ("SGD", "average", "calibration_error"),
        (momentum, "average", "log_loss"),
    },
    because="both tests of the stored results at 0.05/24",
    kind="stored",
)
claim(
    "SGHMC's average less the path average of SGD with momentum: log loss",
    gap[momentum, "average", "log_loss"],
    near=0.0064,
    within=0.0001,
    because="the stored result, means of five seeds",
    kind="stored",
)
claim(
    "SGHMC's average less the path average of SGD with momentum: Brier score",
    gap[momentum, "average", "brier"],
    near=0.0013,
    within=0.0001,
    because="the stored result, means of five seeds",
    kind="stored",
)
errors = {method: scores(method, "error") for method in (sghmc, momentum, "SGD")}
paired = [stats.ttest_rel(errors[sghmc], errors[m]).pvalue for m in (momentum, "SGD")]
welch = [
    stats.ttest_ind(errors[sghmc], errors[m], equal_var=False).pvalue
    for m in (momentum, "SGD")
]
claim(
    "Error against the last network: the paired test alone would decide it against "
    "SGD with momentum and not against SGD, Welch's test the other way round",
    [p < 0.05 / 24 for p in (*paired, *welch)] == [True, False, False, True],
    because="the stored result: where two tests disagree nothing is settled",
    kind="stored",
)


def wobble(method, use):
    """Standard deviation of the error over rounds 600 to 800, mean of the seeds."""
    curves = [run["curve"][use][60:] for run in runs[method]]
    return mean([np.std([error for error, _ in curve]) for curve in curves])


claim(
    "Standard deviation of the test error over rounds 600 to 800, last network of SGD "
    "with momentum over SGHMC's average",
    wobble(momentum, "last") / wobble(sghmc, "average"),
    at_least=3,
    because="the stored result, mean of five seeds: a last network can jump",
    kind="stored",
)
claim(
    "Standard deviation of the test error over rounds 600 to 800, path average of SGD "
    "with momentum over SGHMC's average",
    wobble(momentum, "average") / wobble(sghmc, "average"),
    at_most=0.7,
    because="the stored result, mean of five seeds: an average cannot",
    kind="stored",
)

# %% [markdown]
# Now the same digits, one by one. Of those that one of two methods alone gets wrong, which gets more?


# %% tags=["hide-input"]
def discordant(method, use):
    """Digits that SGHMC alone gets wrong, and those the other alone, each seed."""
    counts = []
    for ours, theirs in zip(runs[sghmc], runs[method], strict=True):
        first, second = set(ours["wrong"]["average"]), set(theirs["wrong"][use])
        counts.append((len(first - second), len(second - first)))
    return counts


mcnemar = {
    key: [stats.binomtest(a, a + b).pvalue for a, b in discordant(*key)]
    for key in RIVALS
}
show_table(
    ["only SGHMC : only the other (p)", *(f"seed {seed}" for seed in range(5))],
    [
        [
            f"{method}, {use}",
            *(
                f"{a}:{b} ({p:.1g})"
                for (a, b), p in zip(
                    discordant(method, use), mcnemar[method, use], strict=True
                )
            ),
        ]
        for method, use in RIVALS
    ],
)

# %% [markdown]
# So the plain statement is, method by method:
#
# * *SGD with momentum.* SGHMC's average errs a little less often, by two digits in a thousand than the last network and by one in a thousand than the path average. The first is about two standard errors of the digits, the second less than one, and the seeds decide neither: McNemar's test finds $p < 0.05$ against the last network with three seeds, and against the path average with none.
#   On log loss it is **behind the path average**, by 0.0064, and that is decided. On the Brier score it is behind by 0.0013, which is open. It is worse calibrated beyond doubt, because it is too cautious. The authors' later note is right. A rate that falls, below, makes the rival a little stronger.
# * *SGD.* SGHMC errs less often than the last network, by about 0.3 % of the digits, and than the path average, by more. Only the second is decided; against the last network McNemar's test finds $p < 0.05$ with four seeds of five. It is worse calibrated, and behind on log loss, by 0.003 against the last network and 0.001 against the path average; neither is decided.
# * *SGLD.* The same posterior, and the same calibration error to 0.0005. At this length of run SGHMC is a little ahead on log loss, which the seeds decide, and on error, which they do not.
# * *Fresh minibatches.* Passes are a little ahead on all four scores, and five seeds decide none of them.
#
# Some of what a figure of one seed shows as an advantage over the optimiser is the steadiness of any average: the networks of SGD with momentum, averaged along their path, are steadier still.

# %% tags=["hide-input"]
for use, expected in (("last", -0.0021), ("average", -0.0008)):
    claim(
        f"Test error of SGHMC's average less that of SGD with momentum, {use}",
        gap[momentum, use, "error"],
        near=expected,
        within=0.0001,
        because="the stored result, means of five seeds",
        kind="stored",
    )
claim(
    "Test error of SGHMC's average less that of the last network of SGD",
    gap["SGD", "last", "error"],
    near=-0.0027,
    within=0.0002,
    because="the stored result",
    kind="stored",
)
claim(
    "Log loss of SGHMC's average less that of SGLD's",
    gap["SGLD", "average", "log_loss"],
    near=-0.0025,
    within=0.0002,
    because="the stored result",
    kind="stored",
)
claim(
    "Log loss of SGHMC's average less that of the last network of SGD with momentum",
    gap[momentum, "last", "log_loss"],
    near=0.0045,
    within=0.0002,
    because="the stored result: the optimiser is ahead on this score",
    kind="stored",
)
claim(
    "Calibration error of SGHMC's average less that of the last network of SGD with "
    "momentum",
    gap[momentum, "last", "calibration_error"],
    at_least=0.014,
    because="the stored result: the average is too cautious",
    kind="stored",
)
claim(
    "Seeds, of five, in which McNemar's test finds p < 0.05: 3 against the last "
    "network of SGD with momentum, 0 against its path average, 4 against SGD's last",
    [
        sum(p < 0.05 for p in mcnemar[key])
        for key in ((momentum, "last"), (momentum, "average"), ("SGD", "last"))
    ]
    == [3, 0, 4],
    because="the stored result",
    kind="stored",
)
standard_errors = {
    use: mean([(a + b) ** 0.5 / 10_000 for a, b in discordant(momentum, use)])
    for use in ("last", "average")
}
claim(
    "Error against SGD with momentum in standard errors of the same digits: more than "
    "two for the last network, less than one for the path average",
    -gap[momentum, "last", "error"] > 2 * standard_errors["last"]
    and -gap[momentum, "average", "error"] < standard_errors["average"],
    because="the root of the digits that one of two gets wrong, over 10,000",
    kind="stored",
)

# %% [markdown]
# ### And with a rate that falls?
#
# Nobody who trains a network keeps the rate constant to the end. A rate that falls to zero stills the jumps as well, and makes the last network a fair rival too.
# So `python -m experiments run falling` trains the same network once more with SGD with momentum, for the same 800 rounds and with the same kind of prior, but its rate falls from round to round, by half a wave of a cosine.
# The rate at the start and the precision were chosen from nine settings as before, on the validation digits and after 100 rounds in which the rate fell too. The chosen rate starts twice as high as the constant one; the precision is the same. The decay $\alpha$ was not tuned here either.
#
# The last row of the table is an *ensemble*: the last networks of the five seeds predict together, by the average of their probabilities. It costs five runs, and there is only one of it.

# %% tags=["hide-input"]
late = read_result(RESULTS / "falling.json")
falling = "SGD with momentum, falling rate"
runs[falling] = late["methods"][falling]["runs"]
shown = {
    "constant rate, last network": (momentum, "last"),
    "constant rate, path average": (momentum, "average"),
    "falling rate, last network": (falling, "last"),
    "falling rate, path average": (falling, "average"),
    "SGHMC, average": (sghmc, "average"),
}
together = late["ensemble"]["scores"]
show_table(
    ["800 rounds", *names.values(), "gradients"],
    [
        [
            words,
            cell(scores(method, "error", use), 100, 2),
            *(cell(scores(method, score, use)) for score in list(names)[1:]),
            "80,000",
        ]
        for words, (method, use) in shown.items()
    ]
    + [
        [
            "falling rate, ensemble of five",
            f"{100 * together['error']:.2f}",
            *(f"{together[score]:.4f}" for score in list(names)[1:]),
            "400,000",
        ]
    ],
)
print(who_ran(late))

# %% [markdown]
# Now the tests, as above. There are eight of them, so that here $p < 0.05/8 = 0.006$ decides.
# These runs are younger than the others, and the program had come to draw its random numbers in another order: a seed does not make a pair any more. The paired test is then no sharper than Welch's, but it is not wrong, and we go on to take the larger $p$-value.

# %% tags=["hide-input"]
for use in ("last", "average"):
    for score in names:
        ours, theirs = scores(sghmc, score), scores(falling, score, use)
        tests[falling, use, score] = p_value(ours, theirs)
        gap[falling, use, score] = mean(ours) - mean(theirs)
show_table(
    ["SGHMC's average less", "error, points", "log loss", "Brier", "calibration"],
    [
        [f"falling rate, {use}", *(entry(falling, use, score, 8) for score in names)]
        for use in ("last", "average")
    ],
)

# %% [markdown]
# *What the falling rate does.* It stills the jumps, and its last network comes to within a tenth of a point of the path average at a constant rate: the two cure the same ill. That it is ahead of the last network at a constant rate the five seeds leave open.
#
# *Against SGHMC.* SGHMC's average still has the smaller mean error, but more than half of its lead over the last network is gone. What is left is a digit in a thousand, about one standard error of the digits, and against the path average half of that. The seeds decide neither, and McNemar's test finds $p < 0.05$ with one seed of five.
# On log loss SGHMC is **behind**, by 0.007 against the last network and 0.008 against the path average, and that is decided, as is the calibration. On the Brier score it is behind as well, and that is open.
# (Were all 32 tests of this section counted together, these verdicts would be the same. One of those above would just be missed, the log loss against SGLD.)
#
# *Against five networks.* The ensemble errs as often as SGHMC's average does, and its log loss is lower than in any of the five runs of SGHMC. It has cost five times as many gradients. And one ensemble has no spread, so that nothing can be said of other seeds; which digits it gets wrong was not kept, so that McNemar's test cannot be made either.
#
# In the error and the log loss of test digits what sampling has over a fair optimiser hardly shows; {doc}`/book/studies/uncertainty` looks where it does, and where it does not.
# Ensembles and other rivals at one short budget, each tuned, are in {doc}`/book/studies/neighbours_on_networks`, with another network and another prior.

# %% tags=["hide-input"]
plans_tried = [row["plan"] for row in late["methods"][falling]["tuning"]]
plan, constant = runs[falling][0]["plan"], runs[momentum][0]["plan"]
claim(
    "Falling rate: the starting rate and the precision chosen lie inside their grids; "
    "the rate is twice the constant one, the precision the same",
    all(
        min(row[name] for row in plans_tried)
        < plan[name]
        < max(row[name] for row in plans_tried)
        for name in ("learning_rate", "prior_precision")
    )
    and math.isclose(plan["learning_rate"], 2 * constant["learning_rate"])
    and plan["prior_precision"] == constant["prior_precision"],
    because="the stored tables of the tuning",
    kind="stored",
)
claim(
    "Standard deviation of the test error over rounds 600 to 800, last network, "
    "falling rate over constant rate",
    wobble(falling, "last") / wobble(momentum, "last"),
    at_most=0.35,
    because="the stored result, mean of five seeds",
    kind="stored",
)


def ends(ours, theirs):
    """The 95 % interval of the difference of two means, by the wider of two tests."""
    both = stats.ttest_rel(ours, theirs), stats.ttest_ind(ours, theirs, equal_var=False)
    return max((test.confidence_interval() for test in both), key=np.ptp)


claim(
    "Error of the falling rate's last network less that of the path average at a "
    "constant rate: the larger end of the 95 % interval, in points",
    100
    * max(
        abs(end)
        for end in ends(
            scores(falling, "error", "last"), scores(momentum, "error", "average")
        )
    ),
    at_most=0.1,
    because="the stored results, the wider of two, paired and Welch's",
    kind="stored",
)
claim(
    "SGHMC's lead in error over the path average at a constant rate and the last "
    "network of a falling one: the larger upper end of the 95 % interval, in points",
    -100
    * min(
        ends(scores(sghmc, "error"), scores(method, "error", use))[0]
        for method, use in ((momentum, "average"), (falling, "last"))
    ),
    near=0.208,
    within=0.001,
    because="the stored results, the wider of two, paired and Welch's",
    kind="stored",
)
claim(
    "Calibration error of SGHMC's average less that of SGLD's: the larger end of the "
    "95 % interval",
    max(
        abs(end)
        for end in ends(
            scores(sghmc, "calibration_error"), scores("SGLD", "calibration_error")
        )
    ),
    near=0.0005,
    within=0.00005,
    because="the stored results, the wider of two, paired and Welch's",
    kind="stored",
)
claim(
    "The falling rate's last network against that of a constant rate: least p-value "
    "for error, log loss and Brier score",
    min(
        p_value(scores(falling, score, "last"), scores(momentum, score, "last"))
        for score in ("error", "log_loss", "brier")
    ),
    at_least=0.05,
    because="both tests of the stored results: open, even for one test",
    kind="stored",
)
stars = {key for key in tests if key[0] == falling and tests[key] < 0.05 / 8}
claim(
    "Of the eight comparisons with the falling rate those decided are log loss and "
    "calibration, last network and path average, all against SGHMC",
    stars
    == {
        (falling, use, score)
        for use in ("last", "average")
        for score in ("log_loss", "calibration_error")
    }
    and min(gap[key] for key in stars) > 0,
    because="both tests of the stored results at 0.05/8",
    kind="stored",
)
claim(
    "At 0.05/32 the same are decided, but for the log loss against SGLD",
    {key for key in tests if tests[key] < 0.05 / 32}
    == (decided["better"] | decided["worse"] | stars)
    - {("SGLD", "average", "log_loss")},
    because="both tests of the stored results, all 32 counted together",
    kind="stored",
)
claim(
    "SGHMC's lead in error over the last network, falling rate over constant rate",
    gap[falling, "last", "error"] / gap[momentum, "last", "error"],
    near=0.45,
    within=0.02,
    because="the stored result, means of five seeds",
    kind="stored",
)
digits_apart = {use: discordant(falling, use) for use in ("last", "average")}
claim(
    "Error of SGHMC's average less the falling rate's, in standard errors of the same "
    "digits: near -1.1 for the last network and -0.6 for the path average",
    all(
        abs(
            gap[falling, use, "error"]
            / mean([(a + b) ** 0.5 / 10_000 for a, b in digits_apart[use]])
            - expected
        )
        < 0.1
        for use, expected in (("last", -1.1), ("average", -0.6))
    ),
    because="the root of the digits that one of two gets wrong, over 10,000",
    kind="stored",
)
claim(
    "Seeds in which McNemar's test finds p < 0.05: one for the last network, one for "
    "the path average",
    all(
        sum(stats.binomtest(a, a + b).pvalue < 0.05 for a, b in counts) == 1
        for counts in digits_apart.values()
    ),
    because="the stored result",
    kind="stored",
)
claim(
    "Log loss of SGHMC's average less the falling rate's: 0.0070 for the last network, "
    "0.0076 for the path average",
    max(
        abs(gap[falling, use, "log_loss"] - expected)
        for use, expected in (("last", 0.0070), ("average", 0.0076))
    ),
    at_most=0.0001,
    because="the stored result, means of five seeds",
    kind="stored",
)
claim(
    "The ensemble's error lies among those of SGHMC's five runs, and its log loss "
    "below all of theirs",
    min(scores(sghmc, "error")) <= together["error"] <= max(scores(sghmc, "error"))
    and together["log_loss"] < min(scores(sghmc, "log_loss")),
    because="the stored results; one ensemble, so that no test is made",
    kind="stored",
)

# %% [markdown]
# ## How wide the priors became
#
# The precisions go where the data send them: {numref}`fig-mnist-precisions` shows a narrow prior for $W_1$, and wide ones for the biases of the hidden layer and for $W_2$.

# %% mystnb={"figure": {"caption": "Stored runs with seed 0. Above: precisions drawn by the Gibbs step of SGHMC. Below: the squared length of all weights, SGHMC with shuffled passes and with fresh minibatches, SGLD, and the last networks of the two optimisers. The samplers have not come to rest after 800 rounds.", "name": "fig-mnist-precisions"}, "image": {"alt": "Above, four precisions on a logarithmic scale against the round: that of the first weights falls from twenty to two, that of the hidden biases falls lowest, and that of the output biases jumps about. Below, squared lengths: those of the samplers go on rising, those of the optimisers are flat and far lower."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(2, 1, figsize=(5.4, 6.2), sharex=True)
curve = runs[sghmc][0]["curve"]
for name, values, style in zip(
    ("$W_1$", "$b_1$", "$W_2$", "$b_2$"),
    zip(*curve["precisions"], strict=True),
    ("-", "--", "-.", ":"),
    strict=True,
):
    left.semilogy(curve["round"], values, style, label=name, color=COLOURS[sghmc])
for method in styles:
    curve = runs[method][0]["curve"]
    right.semilogy(
        curve["round"],
        curve["length"],
        styles[method],
        color=colours[method],
        label=method,
    )
left.set(ylabel=r"precision $\lambda_k$")
right.set(xlabel="round", ylabel=r"$|\theta|^2$")
left.legend()
right.legend(fontsize=8)
plt.show()

# %% [markdown]
# The chain has not arrived: $\lvert\theta\rvert^2$ still grows after 80,000 steps. $\lambda_1$ and the 78,400 weights of $W_1$ pin each other, as we computed above, and so can only wander off together, in small steps: wider weights allow a smaller $\lambda_1$, which allows wider weights. {doc}`/book/studies/reproduction_report` finds in runs of its own that a little heat drives them apart; some of the widening here may be that, too, for passes remove only the slow part of the heat.
# The averaged predictions in {numref}`fig-mnist-curves` look finished all the same. What a chain predicts can settle long before the chain does, and a flat curve of test errors is no proof of convergence.

# %%
lengths = runs[sghmc][0]["curve"]["length"]

# %% tags=["hide-input"]
claim(
    "SGHMC's |θ|² at round 800 over that at round 400",
    lengths[-1] / lengths[len(lengths) // 2 - 1],
    near=1.42,
    within=0.01,
    because="the stored result: the weights and their precisions still widen together",
    kind="stored",
)

# %% [markdown]
# ## The same code, live
#
# On 3,200 digits, with minibatches of 100 and 30 rounds, each run takes seconds ({numref}`fig-mnist-live`). The learning rates are the same multiples of $1/N$.

# %%
live = {}
for method in (sghmc, "SGHMC, fresh minibatches", momentum):
    few = plans[method].but(rounds=30, burn_in=10)
    live[method] = [new_run(few.but(seed=seed)).go(progress=False) for seed in range(2)]

# %% mystnb={"figure": {"caption": "The small experiment, run while this page was built: log loss on 1,000 test digits, of the average (thick) and of the last network (thin), two seeds.", "name": "fig-mnist-live"}, "image": {"alt": "Log loss against the round. SGD with momentum comes down quickest and ends lowest; the thick averages of SGHMC, with passes and with fresh minibatches, lie above it, and its thin single networks above those."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.4, 3.6))
for method, content in live.items():
    for number, run in enumerate(content):
        curve = run["curve"]
        look = {
            "color": COLOURS[method.split(",")[0]],
            "ls": "--" if "fresh" in method else "-",
        }
        axes.plot(curve["round"], [loss for _, loss in curve["last"]], lw=0.8, **look)
        if method != momentum:
            points = [
                (r, p[1])
                for r, p in zip(curve["round"], curve["average"], strict=True)
                if p is not None
            ]
            axes.plot(
                *zip(*points, strict=True),
                lw=2.4,
                label=method if number == 0 else None,
                **look,
            )
        elif number == 0:
            axes.lines[-1].set_label(method)
axes.set(xlabel="round", ylabel="log loss (nats)", ylim=(0, 1))
axes.legend(fontsize=8)
plt.show()

# %% [markdown]
# A warning: with fifteen times fewer digits the sampler falls far behind on log loss. SGHMC's average is much less sure than it could be, and pays for it.
# The model is the same; what differs is how much the data outweigh a prior that puts eighty thousand weights in play.

# %% tags=["hide-input"]
single = [  # the log loss of one network, on average over those after the warm-up
    mean([loss for _, loss in run["curve"]["last"][2:]]) for run in live[sghmc]
]
claim(
    "Live: log loss of SGHMC's average over the mean of that of its single networks",
    mean([run["average"]["log_loss"] / single[k] for k, run in enumerate(live[sghmc])]),
    at_most=0.75,
    because=(
        "averaging removes much of the loss of a single draw; the ratio is 0.57 to "
        "0.66 over ten seeds"
    ),
)
claim(
    "Live: log loss of SGHMC's average less that of SGD with momentum",
    mean([run["average"]["log_loss"] for run in live[sghmc]])
    - mean([run["last"]["log_loss"] for run in live[momentum]]),
    at_least=0.05,
    because=(
        "with 3,200 digits the sampler loses on this score, by 0.11 to 0.15 over ten "
        "seeds: its average is too cautious"
    ),
)
claim(
    "Live: calibration error of SGHMC's average",
    mean([run["average"]["calibration_error"] for run in live[sghmc]]),
    at_least=0.06,
    because="too cautious: its confidence lies about 0.12 below its accuracy",
)

# %% [markdown]
# A run that is killed and resumed gives the same bits as one that is not. Here it is, in small:

# %%
with TemporaryDirectory() as folder:
    short = plans[sghmc].but(rounds=6, burn_in=2)
    whole = new_run(short)
    whole.go(progress=False)
    first = new_run(short, Path(folder) / "run.pt")
    drive(first, 3, checkpoint=first.checkpoint, progress=False)
    resumed = new_run(short, Path(folder) / "run.pt")
    resumed.go(progress=False)

# %% tags=["hide-input"]
claim(
    "The averaged prediction of a run stopped after three rounds and resumed equals "
    "the uninterrupted one, bit for bit",
    torch.equal(whole.average, resumed.average),
    because=(
        "state, generator, precisions and the running sum are all that a round needs, "
        "and all are saved"
    ),
    kind="exact",
)

# %% [markdown]
# ## In practice
#
# * A Gibbs step for the prior's precision costs a sum of squares a round. It frees you from choosing the prior's width, not from choosing the hyperprior.
# * With $\hat\beta = 0$, walk through the data in shuffled passes. If you need fresh minibatches, estimate their noise ({doc}`/book/tutorial/estimating_the_noise`).
# * Average probabilities in a running sum: 10,000 digits by ten classes are 0.8 MB, whatever the number of networks. Keep every 25th network, 30 of them, 10 MB, for the questions that come later.
# * Tune the optimiser as carefully as the sampler, let its rate fall or average along its path, or the comparison says nothing. Here either brought it to within 0.1 points of SGHMC in error, at most 0.21 at 95 per cent, and decidedly ahead of it in log loss.
# * If you can pay for five runs, average five networks of a falling rate, and compare SGHMC with that.
# * Look at $\lvert\theta\rvert^2$ beside the predictions: they can be finished long before the chain is.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | a prior that learns its width | $w_k \mid \lambda_k \sim N(0, \lambda_k^{-1}I)$, $\lambda_k \sim \mathrm{Gamma}(a, b)$, {eq}`eq-mnist-hyperprior` |
# | its Gibbs step | $\lambda_k \sim \mathrm{Gamma}(a + n_k/2,\; b + \lvert w_k\rvert^2/2)$, {eq}`eq-mnist-gibbs` |
# | noise of $T$ steps, fresh minibatches | variance about $(\eta/\alpha)^2V\,T$, {prf:ref}`thm-mnist-passes` |
# | the same, shuffled passes | bounded, {prf:ref}`thm-mnist-passes` |
# | heat of fresh minibatches | $\beta/\alpha$ with $\beta = \tfrac12\eta V$, {ref}`ex-mnist-heat` |
# | McNemar's test | of $a + b$ digits that one method alone gets wrong, $a \sim \mathrm{Bin}(a + b, \tfrac12)$ |
#
# ## Change it
#
# * Set `K, rounds, alpha = 100, 2, 0.01` in the cell of the passes: after two rounds the noise of fresh minibatches has hardly built up, and the claim on the two variances shows ✗. That passes cancel it is a matter of many rounds.
# * Set `rounds=3, burn_in=0` for `probe`: the network is still on its way, and the claims on the heat may show ✗, for a bad network has other gradients.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-mnist-write
#
# Write it yourself: McNemar's test. Of $a + b$ digits that one of two methods alone gets wrong the first is to blame for $a$. If both are equally good, $a$ is binomial with probability ½. Sum the probabilities of all outcomes that are at most as probable as the one seen. Assignment 3 ({doc}`/book/practice/teaching`) is about testing a published claim.
#
# ~~~python
# def my_mcnemar(a, b):
#     """Two-sided p-value."""
#     ...
# ~~~
# ```
#
# ```{solution} ex-mnist-write
# :class: dropdown
#
# With `math.comb` the probabilities are $\binom{a+b}{k}2^{-(a+b)}$; as whole numbers they can be compared exactly.
# ```


# %% tags=["hide-input"]
def my_mcnemar(a, b):
    """Two-sided p-value."""
    ways = [math.comb(a + b, k) for k in range(a + b + 1)]
    return sum(way for way in ways if way <= ways[a]) / 2 ** (a + b)


claim(
    "Largest difference of the p-values in the table, by hand less scipy's",
    max(
        abs(my_mcnemar(a, b) - p)
        for key in RIVALS
        for (a, b), p in zip(discordant(*key), mcnemar[key], strict=True)
    ),
    at_most=1e-9,
    because="the same sum",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-mnist-marginal
#
# Integrate $\lambda_k$ out of {eq}`eq-mnist-hyperprior`. What prior does a single weight have, and how heavy are its tails?
# ```
#
# ```{solution} ex-mnist-marginal
# :class: dropdown
#
# $\int_0^\infty \lambda^{1/2}e^{-\lambda w^2/2}\lambda^{a-1}e^{-b\lambda}\,d\lambda$ is proportional to $(b + w^2/2)^{-(a + 1/2)}$: a Student law with $2a$ degrees of freedom and scale $\sqrt{b/a}$. With $a = 1$ its tails fall like $\lvert w\rvert^{-3}$, and it has no variance. All entries of a tensor share their $\lambda$, so they are not independent.
# ```
#
# ```{exercise}
# :label: ex-mnist-mode
#
# An optimiser might replace the draw of {eq}`eq-mnist-gibbs` by the mode. Show that maximising {eq}`eq-mnist-joint` over $\lambda_k$ and $w_k$ together can go wrong when $b$ is small.
# ```
#
# ```{solution} ex-mnist-mode
# :class: dropdown
#
# At $\lambda_k = (a - 1 + n_k/2)/(b + \lvert w_k\rvert^2/2)$ the factor of $w_k$ is proportional to $(b + \lvert w_k\rvert^2/2)^{-(a - 1 + n_k/2)}$. As $b \to 0$ it has a pole at $w_k = 0$, of an order that the likelihood cannot outweigh: the joint mode sets the whole tensor to zero. Sampling does not go there unless $b$ is absurdly small: the volume near zero, of order $b^{n_k/2}$, leaves of the pole only a factor $b^{-a}$, which the likelihood outweighs.
# ```
#
# ```{exercise}
# :label: ex-mnist-heat
#
# SGHMC at rest injects noise of variance $2\alpha\eta$ a step. Show that independent minibatch errors of variance $V$ raise the temperature of the momentum by the share $\beta/\alpha$ with $\beta = \tfrac12\eta V$.
# ```
#
# ```{solution} ex-mnist-heat
# :class: dropdown
#
# In $v \leftarrow (1-\alpha)v + N(0, 2\alpha\eta) + N(0, \eta^2V)$ the stationary variance is $(2\alpha\eta + \eta^2V)/(1 - (1-\alpha)^2)$, which is about $\eta\,(1 + \eta V/2\alpha)$, and $\eta V/2\alpha = \beta/\alpha$.
# ```
#
# ```{exercise}
# :label: ex-mnist-hyperprior
#
# Run the small experiment with the prior fixed at $\lambda = 3$ for all tensors: `plans["SGHMC"].but(prior=Prior(3.0))`. Does it do better than with precisions that are drawn, and is that a fair comparison?
# ```
#
# ```{solution} ex-mnist-hyperprior
# :class: dropdown
#
# Compare log losses over a few seeds. A $\lambda$ chosen because it does well on these test digits has been tuned on them; choose it on the validation digits, the second of the three sets that `split_digits()` gives.
# ```
#
# ## Further reading
#
# {cite:t}`chen2014` for the experiment, {cite:t}`neal1996` for priors with unknown precisions in networks, {cite:t}`izmailov2021` for what the exact posterior of a large network predicts.
