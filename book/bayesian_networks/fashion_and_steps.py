# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Fashion-MNIST, and steps per sample
#
# Two experiments of a reproduction report, run again: the first shows that its sampler was an optimiser, the second asks what more steps between two samples buy, and at whose expense.
#
# **You will learn** to
#
# * read off the injected noise at which temperature a program samples,
# * predict, before you run it, how far a chain will get,
# * compute on a Gaussian target what $m$ steps a sample cost and gain, step by step and with a minibatch that is held,
# * compare settings at equal numbers of gradient evaluations.
#
# **You will need** {doc}`/book/bayesian_networks/digits` and {doc}`/book/stochastic_gradients/sghmc`.

# %%
import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import torch

from experiments import fashion, steps
from experiments.options import Options
from experiments.plan import Plan
from experiments.results import RESULTS, read_result, who_ran
from experiments.run import Run
from sgmc import claim
from sgmc.figures import COLOURS, TRUTH, use_style
from sgmc.linear_laws import LinearChain, langevin_chain, sghmc_chain
from sgmc.play import play

use_style()
play()

# %% [markdown]
# ## The same network, on clothes
#
# Fashion-MNIST {cite:p}`xiao2017` has 70,000 images of ten kinds of clothing, in the format of the digits and harder to tell apart.
# {cite:t}`adamday` took the network of their MNIST experiment to it: 784–100–10 with rectified linear units, $N(0, 1)$ priors on all weights and biases, minibatches of $n = 500$, 100 epochs of warm-up.
# Their settings, which we keep without tuning anything, on the first $N = 50{,}000$ training images:
#
# | method | $\eta$ | $\alpha$ | injected noise a step |
# | --- | --- | --- | --- |
# | SGHMC | $10^{-6}$ | 0.01 | $N(0, 2\alpha\eta)$ |
# | SGLD | $10^{-5}$ | | $N(0, 2\eta)$ |
# | SGD with momentum | $10^{-6}$ | 0.01 | none |
# | SGD | $10^{-5}$ | | none |
# | SGHMC, as reported | $10^{-6}$ | 0.01 | $N\bigl(0, (2\alpha\eta)^2\bigr)$ |
#
# The last line is not a misprint. Their program draws the noise with a function that asks for a standard deviation, and gives it the variance.
#
# ```{prf:theorem} A variance passed as a standard deviation
# :label: thm-fashion-reported
#
# In the learning-rate form and with $\hat\beta = 0$, SGHMC whose injected noise has the variance $(2\alpha\eta)^2$ is SGHMC at the temperature $T = 2\alpha\eta$. SGLD with noise of variance $(2\eta)^2$ is SGLD at $T = 2\eta$.
# ```
#
# ```{prf:proof}
# At temperature $T$ SGHMC injects $N(0, 2\alpha\eta T)$ and SGLD $N(0, 2\eta T)$. Put $T = 2\alpha\eta$, and $T = 2\eta$.
# ```
#
# With their settings $T = 2\cdot10^{-8}$. The target $e^{-U/T}$ is then a spike on the mode, and the walk is that of SGD with momentum. What noise it has comes from the minibatches.

# %%
reported = Plan(learning_rate=1e-6, momentum_decay=0.01).variance_as_scale()

# %% tags=["hide-input"]
claim(
    "Temperature of the reported SGHMC",
    reported.temperature,
    near=2e-8,
    within=1e-12,
    because="T = 2αη with α = 0.01, η = 10⁻⁶",
    kind="exact",
)

# %% [markdown]
# ## How far will a chain get?
#
# Before we run anything: a weight of which the data say nothing has only its prior, $U = \tfrac12\theta^2$, and on that the chain is linear and its law known at every step. It starts near zero.
# We run 100 epochs of warm-up and 100 more, 20,000 steps. What share of the prior's variance will the chain have by then?

# %%
num_rounds, warm_up, per_round = 200, 100, 100


def growth(chain, momentum_variance=None, num_rounds=num_rounds):
    """Variance of θ after each round, from θ = 0."""
    now = torch.zeros_like(chain.noise_covariance.double())
    if momentum_variance is not None:
        now[1, 1] = momentum_variance
    one_round, variances = chain.power(per_round), []
    for _ in range(num_rounds):
        now = (
            one_round.transition @ now @ one_round.transition.T
            + one_round.noise_covariance
        )
        variances.append(float(now[0, 0]))
    return variances


step_size = math.sqrt(1e-6)
share = {
    "SGHMC": growth(
        sghmc_chain(torch.eye(1), step_size, friction=0.01 / step_size),
        momentum_variance=1.0,
    ),
    "SGLD": growth(langevin_chain(torch.eye(1), 1e-5)),
}

# %% tags=["hide-input"]
claim(
    "SGHMC's share of the prior's variance after 200 rounds",
    share["SGHMC"][-1],
    at_least=0.95,
    because="the exact law of a linear chain",
    kind="exact",
)
claim(
    "SGLD's share of the prior's variance after 200 rounds",
    share["SGLD"][-1],
    at_most=0.35,
    because="the exact law of a linear chain",
    kind="exact",
)

# %% [markdown]
# SGHMC will have arrived where the prior alone pulls; SGLD, at a tenth of the effective rate $\eta/\alpha$, will have gone a third of the way. Whatever SGLD averages after 100 epochs, it is no posterior yet.
#
# ## The runs
#
# `python -m experiments run fashion` walks through the images in shuffled passes ({doc}`/book/bayesian_networks/mnist` says why); the line *as reported* draws each minibatch afresh, as its program did.
# The machine was shared with other work, so that its wall clock says nothing; we give processor seconds of one core.
# Samplers predict with the average over the networks after each of the 100 rounds that follow the warm-up, optimisers with their last network. How many epochs the report sampled on Fashion-MNIST we do not know; on MNIST they were 800. 100 are what two cores allowed us.

# %%
result = read_result(RESULTS / "fashion.json")
runs = {method: content["runs"] for method, content in result["methods"].items()}
styles = {method: "--" if "reported" in method else "-" for method in runs}
colours = {method: COLOURS[method.split(",")[0]] for method in runs}
uses = {
    method: "average"
    if content[0]["plan"]["temperature"] > 1e-3 or "reported" in method
    else "last"
    for method, content in runs.items()
}


def scores(runs, method, score, use):
    """One score of all seeds of a method."""
    return [run[use][score] for run in runs[method]]


def mean(values):
    return sum(values) / len(values)


def cell(values, factor=1.0, digits=4):
    spread = (
        f" ± {factor * torch.tensor(values).std():.{digits}f}"
        if len(values) > 1
        else ""
    )
    return f"{factor * mean(values):.{digits}f}{spread}"


def table(runs, columns=("error", "log_loss", "calibration_error")):
    """Print scores of the average and of the last network with their costs, means
    and standard deviations over the seeds."""
    heads = {
        "error": "error %",
        "log_loss": "log loss",
        "calibration_error": "calibration",
    }
    print(
        f"{'':26} {'seeds':5} {'':8} "
        + " ".join(f"{heads[name]:>15}" for name in columns)
        + f" {'gradients':>10} {'proc. s':>8}"
    )
    for method, content in runs.items():
        for use in ("average", "last"):
            row = [
                cell(
                    scores(runs, method, s, use),
                    100 if s == "error" else 1,
                    2 if s == "error" else 3,
                )
                for s in columns
            ]
            costs = (
                f"{mean([run['gradient_evaluations'] for run in content]):10.0f} "
                f"{mean([run['processor_seconds'] for run in content]):8.0f}"
            )
            print(
                f"{method:26} {len(content):5} {use:8} "
                + " ".join(f"{entry:>15}" for entry in row)
                + f" {costs}"
            )


table(runs)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-fashion-curves", "caption": "Fashion-MNIST: error and log loss on the 10,000 test images, a thin line for each seed. Samplers and the run as reported: average since round 100; optimisers: last network. Left and middle against rounds of 100 gradient evaluations, right against processor time, which is the wall time of one undisturbed core."}}
figure, panels = plt.subplots(1, 3, figsize=(11, 3.6))
for method, content in runs.items():
    for number, run in enumerate(content):
        curve, use = run["curve"], uses[method]
        points = [
            (r, p)
            for r, p in zip(curve["round"], curve[use], strict=True)
            if p is not None and r > warm_up
        ]
        at, values = zip(*points, strict=True)
        minutes = [
            run["processor_seconds"] / 60 * r / run["plan"]["rounds"] for r in at
        ]
        look = {
            "color": colours[method],
            "ls": styles[method],
            "lw": 1,
            "label": method if number == 0 else None,
        }
        panels[0].plot(at, [100 * error for error, _ in values], **look)
        panels[1].plot(at, [loss for _, loss in values], **look)
        panels[2].plot(minutes, [loss for _, loss in values], **look)
panels[0].set(xlabel="round (100 gradient evaluations)", ylabel="test error (%)")
panels[1].set(xlabel="round (100 gradient evaluations)", ylabel="log loss (nats)")
panels[2].set(xlabel="processor minutes", ylabel="log loss (nats)")
panels[0].legend(fontsize=7)
figure.text(0.01, -0.05, who_ran(result), size=6, color="0.4")
plt.show()

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-fashion-length", "caption": "Squared length of the weights over their number, in the stored runs, with what the prior alone would give (grey: SGHMC solid, SGLD dashed)."}}
figure, axes = plt.subplots(figsize=(6.4, 3.6))
dim = 784 * 100 + 100 + 100 * 10 + 10
rounds = range(1, num_rounds + 1)
axes.plot(rounds, share["SGHMC"], color=TRUTH, lw=4, alpha=0.5)
axes.plot(rounds, share["SGLD"], "--", color=TRUTH, lw=4, alpha=0.5)
for method, content in runs.items():
    for number, run in enumerate(content):
        curve = run["curve"]
        look = {
            "color": colours[method],
            "ls": styles[method],
            "lw": 1,
            "label": method if number == 0 else None,
        }
        axes.plot(curve["round"], [length / dim for length in curve["length"]], **look)
axes.set(xlabel="round", ylabel=r"$|\theta|^2/d$", yscale="log")
axes.legend(fontsize=7)
figure.text(0.01, -0.05, who_ran(result), size=6, color="0.4")
plt.show()

# %% [markdown]
# {numref}`fig-fashion-length` first: the chains went just as far as the exact law of a weight without data says, SGHMC all the way and SGLD a third of it. The optimisers and the run as reported stayed within a few per cent of the length at which the prior holds its mass. Whatever was published under the name of SGHMC did not see the posterior.

# %% tags=["hide-input"]
claim(
    "SGHMC's |θ|²/d at the end of the stored runs, less the exact share",
    mean([run["curve"]["length"][-1] / dim for run in runs["SGHMC"]])
    - share["SGHMC"][-1],
    near=0,
    within=0.05,
    because=(
        "most of the 79,510 weights are little informed; those that are move it by a "
        "few per cent"
    ),
    kind="stored",
)
claim(
    "SGLD's |θ|²/d at the end of the stored runs, less the exact share",
    mean([run["curve"]["length"][-1] / dim for run in runs["SGLD"]])
    - share["SGLD"][-1],
    near=0,
    within=0.03,
    because="the same",
    kind="stored",
)
claim(
    "Largest |θ|²/d of the optimisers and of SGHMC as reported",
    max(
        run["curve"]["length"][-1] / dim
        for method in runs
        if method not in ("SGHMC", "SGLD")
        for run in runs[method]
    ),
    at_most=0.15,
    because="the stored result: these walks stay near a mode",
    kind="stored",
)
claim(
    "Test error of SGHMC's average less that of SGD's last network",
    mean(scores(runs, "SGHMC", "error", "average"))
    - mean(scores(runs, "SGD", "error", "last")),
    near=0,
    within=0.015,
    because=(
        "the stored result; an optimiser's last network jumps by as much from round "
        "to round"
    ),
    kind="stored",
)
claim(
    "Test error of SGHMC's average over that of its last network",
    mean(scores(runs, "SGHMC", "error", "average"))
    / mean(scores(runs, "SGHMC", "error", "last")),
    at_most=0.95,
    because="the stored result: averaging helps a sampler",
    kind="stored",
)
claim(
    "Test error of SGLD's average less that of SGHMC's",
    mean(scores(runs, "SGLD", "error", "average"))
    - mean(scores(runs, "SGHMC", "error", "average")),
    at_most=-0.003,
    because="the stored result: to have arrived is no advantage here",
    kind="stored",
)
claim(
    "Test error of SGD's average less that of SGHMC's",
    mean(scores(runs, "SGD", "error", "average"))
    - mean(scores(runs, "SGHMC", "error", "average")),
    at_most=-0.005,
    because=(
        "the stored result: averaging helps an optimiser too, and here more than "
        "sampling"
    ),
    kind="stored",
)

claim(
    "Test accuracy of the average of SGHMC as reported",
    1 - mean(scores(runs, "SGHMC, as reported", "error", "average")),
    near=0.86,
    within=0.02,
    because="0.86 is what was published",
    kind="stored",
)

# %% [markdown]
# Does the posterior predict better? At these settings it does not. SGHMC's average errs about as often as the last network of plain SGD, which jumps ({numref}`fig-fashion-curves`), and less often than that of SGD with momentum, whose effective rate $\eta/\alpha$ is ten times SGD's and whose last network is the noisier for it. SGLD, which has gone a third of the way to the prior, errs less than SGHMC, which has arrived.
# The best score of the table belongs to a prediction that nobody published: the average of SGD's own networks along its path. Averaging, not sampling, is what helps here, and an honest comparison gives it to both sides.
# The prior is a part of that answer: $N(0, 1)$ on 78,400 weights of a first layer expects hidden units of a size that no clothes need, and SGHMC, other than the optimisers, takes the prior at its word. The published 0.86 is within reach of every line of the table; as a measure of what sampling does it says nothing. {doc}`/book/bayesian_networks/mnist` lets the data choose the prior's width.
#
# ## Published against ours
#
# | | published {cite:p}`adamday` | ours |
# | --- | --- | --- |
# | network, prior, minibatch | 784–100–10, rectified linear units, $N(0, 1)$, 500 | the same |
# | training images | 50,000 | the first 50,000 |
# | rates | as in the table above | the same |
# | epochs | 100 of warm-up, then a number that we do not know | 100 and 100 |
# | prediction | votes: a class *drawn* from each of 100 networks an epoch | the average of the class probabilities, one network an epoch |
# | noise of SGHMC | variance $(2\alpha\eta)^2$ | both |
# | test accuracy | 0.86 | the table above; one less its error |
#
# A class drawn from a network's prediction, and a vote over many such draws, has the same winner as the average of the probabilities when there are enough of them; it wastes some.

# %% [markdown]
# ## Steps per sample
#
# Algorithm 2 of {cite:t}`chen2014` takes $m$ steps between two draws. The report compared $m = 1, 3, 5$ with $\varepsilon m$ held fixed. What does $m$ do?
#
# ```{prf:theorem} m is two knobs
# :label: thm-steps-knobs
#
# Without fresh momentum, SGHMC with $m$ steps of size $\varepsilon/m$ a sample is the chain with one step of size $\varepsilon/m$ a sample, of which every $m$-th state is kept. In the learning-rate form the step $\varepsilon/m$ at the same friction $C$ has $\eta/m^2$ and $\alpha/m$.
# ```
#
# ```{prf:proof}
# A call of the kernel repeats its step $m$ times, and position and momentum at its end are those at the beginning of the next call. So calls with $m$ steps each are the same sequence of steps, looked at every $m$-th time. And $\eta = \varepsilon^2M^{-1}$, $\alpha = \varepsilon M^{-1}C$.
# ```
#
# Thinning changes nothing about the law of a state. So all that $m$ does at fixed $\varepsilon m$ is to make the *step* finer, and to ask for $m$ times more gradients for the same stretch of time. Two claims, of the package's own code:

# %%
with TemporaryDirectory() as folder:
    small = Options(data=Path(), runs=Path(folder), small=True, progress=False)
    prepared = steps.prepare(small)
    clothes = fashion.prepare(small)
settings = steps.settings(prepared, small=True)
plans = {name: choices[0] for name, choices in settings.items()}
three = replace(plans["m = 3, equal samples"], rounds=2, burn_in=0)
positions = []
for plan in (three, replace(three, num_steps=1, rounds=6)):
    run = Run(plan, prepared.network(), prepared.train, prepared.test)
    run.go(progress=False)
    positions.append(run.walk.state.position)

# %% tags=["hide-input"]
claim(
    "Two rounds with m = 3 end in the very state of six rounds with m = 1 and the "
    "same step",
    torch.equal(*positions),
    because="the steps are the same, and only the calls are counted differently",
)
coarse, fine = plans["m = 1"].kernel(), plans["m = 5, equal samples"].kernel()
claim(
    "Friction of m = 5 over that of m = 1",
    fine.friction / coarse.friction,
    near=1,
    within=1e-6,
    because="C is held fixed",
    kind="exact",
)

# %% [markdown]
# ## What a finer step buys, exactly
#
# On the Gaussian target $U = \tfrac12h\theta^2$ with gradient noise of variance $V$ the chain is linear, and everything can be computed.
# How large is $V$? The likelihood of a well-specified model has a Hessian equal to the covariance of its score, so that $N$ examples with the curvature $h$ have per-example gradients of variance near $h/N$, and the minibatch gradient has $V \approx \frac{N^2}{n}\cdot\frac hN = \frac Nn h$. We take $V = 100\,h$, for $N/n = 100$.
#
# With $\hat\beta = 0$ the minibatches' noise comes on top of the injected one, and heats: to $1 + \beta/\alpha$ with $\beta = \tfrac12\eta V$, as in {doc}`/book/bayesian_networks/mnist`. For the step $\varepsilon/m$,
#
# $$
# \frac{\beta_m}{\alpha_m} = \frac{\tfrac12(\eta/m^2)V}{\alpha/m} = \frac1m\cdot\frac{\eta V}{2\alpha} :
# $$ (eq-steps-heat)
#
# a finer step heats less, by the factor $m$.
#
# And if the *same* minibatch serves all $m$ steps of a sample, as it did in the report's program?
#
# ```{prf:theorem} A held minibatch
# :label: thm-steps-held
#
# Let the gradient error $\xi$ be drawn once for $m$ steps of size $\varepsilon/m$. To first order in $\varepsilon$ the momentum then receives in a sample the noise $-\varepsilon\xi$, of variance $\varepsilon^2V$: as much as in *one* step of size $\varepsilon$, and the heat is $\eta V/2\alpha$ again, whatever $m$ is.
# ```
#
# ```{prf:proof}
# Each of the $m$ steps adds $-\frac\varepsilon m\xi$ to $r$, and within a sample friction and force change $r$ only in proportion to $\varepsilon$. The sum is $-\varepsilon\xi + O(\varepsilon^2)$. Drawn afresh, the errors would add up to the variance $m\cdot\frac{\varepsilon^2}{m^2}V = \frac{\varepsilon^2}mV$.
# ```

# %%
eta, alpha, noise = 2e-6, 0.01, 100.0
step_size, friction = math.sqrt(eta), alpha / math.sqrt(eta)
curvatures = torch.logspace(0, 4, 41, dtype=torch.float64)


def held(precision, m, variance):
    """The chain of whole samples of m steps, each sample with one gradient error."""
    silent = sghmc_chain(precision, step_size / m, friction)
    kick = torch.tensor([0.0, -step_size / m], dtype=torch.float64)
    total = sum(
        torch.linalg.matrix_power(silent.transition, k) @ kick for k in range(m)
    )
    whole = silent.power(m)
    return LinearChain(
        whole.transition, whole.noise_covariance + variance * torch.outer(total, total)
    )


temperature = {m: [] for m in steps.STEPS} | {"held": []}
gradients = {m: [] for m in steps.STEPS}
for h in curvatures:
    precision = h.reshape(1, 1)
    for m in steps.STEPS:
        chain = sghmc_chain(
            precision, step_size / m, friction, noise_variance=noise * float(h)
        ).power(m)
        temperature[m].append(float(h * chain.stationary_covariance()[0, 0]))
        gradients[m].append(m * chain.autocorrelation_time(torch.tensor([1.0, 0.0])))
    temperature["held"].append(
        float(h * held(precision, 5, noise * float(h)).stationary_covariance()[0, 0])
    )
middle = 20  # h = 100

# %% tags=["hide-input"]
claim(
    "Temperature at h = 100, m = 1",
    temperature[1][middle],
    near=2,
    within=0.01,
    because="1 + ηV/2α = 1 + 0.01h",
)
claim(
    "Temperature at h = 100, m = 5",
    temperature[5][middle],
    near=1.2,
    within=0.01,
    because="the heat falls by the factor m",
)
claim(
    "Temperature at h = 100, m = 5, minibatch held",
    temperature["held"][middle],
    near=2,
    within=0.01,
    because="holding gives it all back",
)
claim(
    "Gradients for an independent draw at h = 1, m = 5 over m = 1",
    gradients[5][0] / gradients[1][0],
    near=5,
    within=0.05,
    because="the chain forgets in the same time εm, which costs m gradients",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-steps-exact", "caption": "Exact results for a Gaussian direction of curvature $h$, with $\\varepsilon m$ fixed, $\\eta = 2\\cdot10^{-6}$ and $\\alpha = 0.01$ at $m = 1$, and $V = 100\\,h$. Left: the temperature at which the chain samples that direction; right would be 1. Right: gradient evaluations for one independent draw."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.8, 3.4))
for m, style in zip(steps.STEPS, ("-", "--", ":"), strict=True):
    left.loglog(
        curvatures, temperature[m], style, color=COLOURS["SGHMC"], label=f"m = {m}"
    )
    right.loglog(
        curvatures, gradients[m], style, color=COLOURS["SGHMC"], label=f"m = {m}"
    )
left.loglog(
    curvatures[::4],
    temperature["held"][::4],
    "x",
    color=COLOURS["naive SGHMC"],
    label="m = 5, minibatch held",
)
left.axhline(1, color=TRUTH, zorder=0)
left.set(xlabel="curvature $h$", ylabel="temperature")
right.set(xlabel="curvature $h$", ylabel="gradients a draw")
left.legend(fontsize=8)
right.legend(fontsize=8)
plt.show()

# %% [markdown]
# {numref}`fig-steps-exact` is the whole trade. Stiff directions, those that the data know well, are too hot, and $m$ cools them; flat ones, in which most of the weights lie, take $m$ times as many gradients to explore.
# At equal *samples* a larger $m$ can only come nearer to the posterior, for it pays in nothing but computing. At equal *gradients* it must fall behind wherever time is short, and win where heat is the larger evil.
# The same $m$ gradients could also go into a minibatch of $mn$ examples for a single step: that divides $V$, and with it the heat, by the same $m$ ({ref}`ex-steps-minibatch`).
#
# ## The runs
#
# `python -m experiments run steps` does it on MNIST, with the network above, $\eta = 2\cdot10^{-6}$ and $\alpha = 0.01$ at $m = 1$, fresh minibatches, and 100 rounds of 100 samples as warm-up, 20 more to average over. At equal gradients all have 12,000 of them, 10,000 as warm-up, and average 20 networks; by {prf:ref}`thm-steps-knobs` we may look at the chains of $m = 3$ and 5 as often as at that of $m = 1$.

# %%
steps_result = read_result(RESULTS / "steps.json")
steps_runs = {
    name: content["runs"] for name, content in steps_result["methods"].items()
}
table(steps_runs)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-steps-curves", "caption": "MNIST with $m$ steps a sample, $\\varepsilon m$ fixed: log loss of the last network (thin) and of the average since the warm-up (thick). Left: against samples; right: against gradient evaluations."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.8, 3.6), sharey=True)
looks = {
    1: ("-", COLOURS["SGHMC"]),
    3: ("--", "#8f5577"),
    5: (":", "#4a2c3e"),
}  # darker with m
for name, content in steps_runs.items():
    for number, run in enumerate(content):
        m, curve = int(name.split(",")[0][-1]), run["curve"]
        per_sample = run["gradient_evaluations"] / run["plan"]["rounds"]
        style, colour = looks[m]
        for axes, scale in ((left, 100), (right, per_sample)):
            if m > 1 and (axes is left) == ("gradients" in name):
                continue
            at = [scale * r for r in curve["round"]]
            label = f"m = {m}" if number == 0 else None
            axes.plot(
                at, [loss for _, loss in curve["last"]], style, lw=0.7, color=colour
            )
            points = [
                (a, p[1])
                for a, p in zip(at, curve["average"], strict=True)
                if p is not None
            ]
            axes.plot(
                *zip(*points, strict=True), style, lw=2.4, color=colour, label=label
            )
left.set(xlabel="samples", ylabel="log loss (nats)", yscale="log")
right.set(xlabel="gradient evaluations")
left.legend()
figure.text(0.01, -0.05, who_ran(steps_result), size=6, color="0.4")
plt.show()

# %% [markdown]
# First the law of a weight without data, once more: at equal gradients $m = 5$ has covered a fifth of the time, and must lag behind.

# %%
fair = {1: "m = 1", 3: "m = 3, equal gradients", 5: "m = 5, equal gradients"}

# %% tags=["hide-input"]
for m, name in fair.items():
    chain = sghmc_chain(torch.eye(1), math.sqrt(eta) / m, alpha / math.sqrt(eta))
    expected = growth(chain, momentum_variance=1.0, num_rounds=120)[-1]
    claim(
        f"|θ|²/d at the end, less the exact share of a weight without data, m = {m}",
        mean([run["curve"]["length"][-1] / dim for run in steps_runs[name]]) - expected,
        near=0,
        within=0.06,
        because="most weights are little informed; heat makes it a little more",
        kind="stored",
    )


def recent(name):
    """Log loss of the last network, mean over the last six points of the curve and
    over the seeds."""
    return mean(
        [loss for run in steps_runs[name] for _, loss in run["curve"]["last"][-6:]]
    )


claim(
    "Log loss of the last networks at equal gradients, m = 5 less m = 1",
    recent(fair[5]) - recent(fair[1]),
    at_most=-0.01,
    because=(
        "the stored result: the stiff directions are cooler, and the flat ones not "
        "yet filled"
    ),
    kind="stored",
)
claim(
    "Log loss of the average at equal gradients, m = 5 less m = 1",
    mean(scores(steps_runs, fair[5], "log_loss", "average"))
    - mean(scores(steps_runs, fair[1], "log_loss", "average")),
    at_least=0.03,
    because="the stored result",
    kind="stored",
)
claim(
    "Log loss of the average at equal gradients, m = 3 less m = 1",
    mean(scores(steps_runs, fair[3], "log_loss", "average"))
    - mean(scores(steps_runs, fair[1], "log_loss", "average")),
    at_least=0.015,
    because="the stored result",
    kind="stored",
)

for m in (3, 5):
    name = f"m = {m}, equal samples"
    claim(
        f"Error of the average with m = {m} at equal samples over that with m = 1",
        mean(scores(steps_runs, name, "error", "average"))
        / mean(scores(steps_runs, "m = 1", "error", "average")),
        at_most=1.0,
        because=f"the stored result: cooler, and for {m} times the gradients",
        kind="stored",
    )
    claim(
        f"Log loss of the average with m = {m} at equal samples less that with m = 1",
        mean(scores(steps_runs, name, "log_loss", "average"))
        - mean(scores(steps_runs, "m = 1", "log_loss", "average")),
        at_least=0.02,
        because="the stored result",
        kind="stored",
    )

# %% [markdown]
# The fair question has a clear answer here. At equal gradients a single network of a larger $m$ errs less, for it is cooler; but the average, which is what we predict with, is *worse* with $m = 3$ and $m = 5$ than with $m = 1$, in error and in log loss.
#
# At equal samples, for three and five times the gradients, the finer steps win in error, by less than the seeds of $m = 1$ spread: the chain is nearer to the posterior, and has had the time. In log loss they lose even then.
# We can say what that is not, and not for certain what it is. It is not a lack of time, for all have covered the same. But the 20 rounds over which we average are 2,000 steps of $m = 1$, in which a weight without data forgets only a third of where it was ($e^{-0.4} = 0.67$ is left), so that the networks of an average are alike, and single networks with this prior are far too sure; the heat of $m = 1$ makes its networks differ more, and the average the humbler.
# Nearer to the posterior is not nearer to the truth while the average is short and the prior is wrong.
# The order of $m = 3$ and $m = 5$ at equal samples is within the spread between the seeds.
#
# So begin with $m = 1$. Where the stiff directions are far too hot the balance tips: the small experiment below, whose heat $\eta V/2\alpha = 0.05\,h$ is five times that of the large one, is such a case, and there the finer steps win at equal gradients too, in the error of the average. Then too it is better to take the heat out of the stiff directions than the speed out of all the others.
#
# ## Live, on 5,000 digits
#
# Both experiments in small, by the same code: 4,000 digits to learn from, minibatches of 100, and the learning rates as the same multiples of $1/N$ ({numref}`fig-fashion-live`).

# %%
chosen = ("SGHMC", "SGHMC, as reported", "SGD with momentum")
live = {}
for method in chosen:
    plan = fashion.settings(clothes, small=True)[method][0]
    live[method] = Run(plan, clothes.network(), clothes.train, clothes.test).go(
        progress=False
    )
live_steps = {}
for name in ("m = 1", "m = 5, equal gradients", "m = 5, equal samples"):
    run = Run(plans[name], prepared.network(), prepared.train, prepared.test)
    live_steps[name] = run.go(progress=False)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-fashion-live", "caption": "Run while this page was built, on 4,000 digits. Left: squared length of the weights over their number, for the settings of the first experiment. Right: log loss of the last network for those of the second, against gradient evaluations."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.8, 3.4))
for method, run in live.items():
    look = {
        "color": COLOURS[method.split(",")[0]],
        "ls": "--" if "reported" in method else "-",
        "label": method,
    }
    left.semilogy(
        run["curve"]["round"],
        [length / dim for length in run["curve"]["length"]],
        **look,
    )
for name, run in live_steps.items():
    style, colour = looks[int(name.split(",")[0][-1])]
    per_round = run["gradient_evaluations"] / run["plan"]["rounds"]
    width = 2 if "gradients" in name else 1
    right.semilogy(
        [per_round * r for r in run["curve"]["round"]],
        [loss for _, loss in run["curve"]["last"]],
        style,
        lw=width,
        color=colour,
        label=name,
    )
left.set(xlabel="round", ylabel=r"$|\theta|^2/d$")
right.set(xlabel="gradient evaluations", ylabel="log loss (nats)")
left.legend(fontsize=8)
right.legend(fontsize=8)
plt.show()


# %%
def size(run):
    """Squared length of the last network over the number of weights."""
    return run["curve"]["length"][-1] / dim


# %% tags=["hide-input"]
claim(
    "Live: |θ|²/d of SGHMC",
    size(live["SGHMC"]),
    at_least=0.9,
    because="it goes where the prior sends it: near 1.03 over several seeds",
)
claim(
    "Live: |θ|²/d of SGHMC as reported",
    size(live["SGHMC, as reported"]),
    at_most=0.05,
    because="it stays at the mode with the optimisers: near 0.013 over several seeds",
)
claim(
    "Live: log loss of SGHMC's average over that of its last network",
    live["SGHMC"]["average"]["log_loss"] / live["SGHMC"]["last"]["log_loss"],
    at_most=0.6,
    because="averaging takes the noise out; the ratio is 0.25 to 0.31 over four seeds",
)
claim(
    "Live: |θ|² of m = 5 over that of m = 1 at equal gradients",
    size(live_steps["m = 5, equal gradients"]) / size(live_steps["m = 1"]),
    at_most=0.75,
    because=(
        "a fifth of the time is too short for the flat directions: the ratio is near "
        "0.57"
    ),
)
claim(
    "Live: error of the last network with m = 1 over that with m = 5 at equal "
    "gradients",
    live_steps["m = 1"]["last"]["error"]
    / live_steps["m = 5, equal gradients"]["last"]["error"],
    at_least=1.2,
    because=(
        "the stiff directions are five times less heated; the ratio is 2.1 to 3.2 "
        "over five seeds"
    ),
)
claim(
    "Live: error of the average with m = 1 less that with m = 5 at equal gradients",
    live_steps["m = 1"]["average"]["error"]
    - live_steps["m = 5, equal gradients"]["average"]["error"],
    at_least=0.005,
    because="it was 0.02 to 0.05 over four seeds: so much heat does not average out",
)

# %% [markdown]
# ## In practice
#
# * Check the injected noise of a sampler at a point without force: one line of code, and it finds the commonest bug of the field.
# * A chain whose $\lvert\theta\rvert^2$ stays where an optimiser's does is an optimiser.
# * Ask before the run how far $\eta/\alpha$ times the number of steps can take a weight.
# * Compare at equal gradient evaluations. At equal samples the setting that computes more wins.
# * Never hold a minibatch for a trajectory: it costs nothing to draw another one, and the noise of the held one adds up.
# * To cool stiff directions, estimate the noise ({doc}`/book/stochastic_gradients/estimating_the_noise`), raise $\alpha$, or pay with larger minibatches or finer steps.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-fashion-votes
#
# An ensemble of $S$ networks votes, each with one class drawn from its prediction. Show that the share of votes for a class estimates the averaged probability without bias, and find its variance. How many votes are needed to tell 0.45 from 0.40?
# ```
#
# ```{solution} ex-fashion-votes
# :class: dropdown
#
# A draw from $P_s$ is class $k$ with probability $P_s(k)$, so the share has the mean $\bar P(k) = \frac1S\sum_sP_s(k)$ and the variance $\frac1{S^2}\sum_sP_s(k)(1 - P_s(k)) \le \bar P(k)(1 - \bar P(k))/S$. The difference of the two shares has a variance of at most $\bigl(0.85 - 0.05^2\bigr)/S$; for two standard deviations to be 0.05, $S$ must be about 1,360. The average of the probabilities needs no votes at all.
# ```
#
# ```{exercise}
# :label: ex-steps-minibatch
#
# Compare $m$ steps of size $\varepsilon/m$ with minibatches of $n$ against one step of size $\varepsilon$ with a minibatch of $mn$: heat, cost, discretisation error.
# ```
#
# ```{solution} ex-steps-minibatch
# :class: dropdown
#
# The large minibatch has $V/m$, so its heat is $\eta V/2\alpha m$, the same as {eq}`eq-steps-heat`, for the same number of examples looked at. What differs is the discretisation error: the temperature without gradient noise is off by a share of order $\varepsilon^2h$ with the step $\varepsilon$, and of order $\varepsilon^2h/m^2$ with $\varepsilon/m$. Where $\eta h \ll 1$ neither matters, and the large minibatch, which keeps a processor busier, is the cheaper.
# ```
#
# ```{exercise}
# :label: ex-steps-resample
#
# With `resample_every=1` the momentum is drawn afresh before each sample. Is $m$ still only thinning?
# ```
#
# ```{solution} ex-steps-resample
# :class: dropdown
#
# No: now $\varepsilon m$ is the length of a trajectory between two refreshments. At fixed $\varepsilon m$ all $m$ have the same length, and the finer step again only lowers the errors within it. With a small $\varepsilon m$, fresh momentum each time makes the walk a Langevin walk with the step $\tfrac12(\varepsilon m)^2$, and throws away what friction $C \ll 1/\varepsilon m$ would have kept.
# ```
#
# ## Further reading
#
# {cite:t}`adamday` for the experiments, {cite:t}`chen2014` for the algorithm, {cite:t}`betancourt2015` for why a held minibatch is dangerous, {cite:t}`wenzel2020` for posteriors that are cold on purpose.
