# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Two hundred networks
#
# ```{div} page-head
# Page 10 of 12 · 29 minutes to read, 20 to play · Running: about 50 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! Bayesian neural network, ! ensemble of sampled networks
# ```

# %%
import torch

from booklib.data import digits
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import at_least, at_most, check, near
from booklib.scores.prediction import error_rate, log_score
from sgmc import sample
from sgmc.kernels import SGHMC, SGLD
from sgmc.noise import OnlineNoise
from sgmc.posteriors import NetworkPosterior

# %% tags=["hide-input"]
import warnings

import arviz
import matplotlib.pyplot as plt

from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.scores.prediction import predictive_entropy

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# ½εV̂ exceeds the friction in half a per cent of the coordinates, and |θ|² still rises.
known = ".*(½εV̂ exceeded the friction|do not agree|too few|independent)"
warnings.filterwarnings("ignore", message=known)

# %% [markdown]
# SGHMC with a measured $\hat B$ samples a posterior from minibatches.
# This page gives it a network of 79,510 weights and 4,000 handwritten digits, and asks whether sampling networks is worth more than training one.
#
# At first sight it is not.
# {numref}`fig-digits-mistakes` shows test digits that one sampled network gets wrong, often with near certainty; such a network errs on {c}`one-error` % of the digits, and a trained network on {c}`trained-error` %.
# But the average of two hundred such networks, in the last line of each title, gets most of these digits right, and errs on {c}`gain` points fewer than one of them.

# %%
train, test = digits()
network = multilayer_perceptron([784, 100, 10])
posterior = NetworkPosterior(
    network, train.inputs, train.targets, prior_variance=1.0, batch_size=500
)
start = posterior.initial_position(4, torch.Generator().manual_seed(0))


def keep(position):
    """The probabilities of the test digits, (chains, n, 10), and |θ|², (chains,)."""
    probabilities = posterior.predict(position, test.inputs)
    return {"digits": probabilities, "length": position.square().sum(-1)}


def walk(kernel):
    """Four chains of 85 epochs, looked at twice an epoch."""
    run = sample(kernel, posterior, start, 170, thinning=4, seed=1, collect=keep)
    return run.samples


with_estimate = SGHMC.from_learning_rate(1.6e-4, 0.04, noise_estimate=OnlineNoise())
first = walk(with_estimate)
kept = first["digits"][120:].flatten(0, 1)  # 50 networks of each of the four chains
average = kept.mean(0)

one_error = sum(error_rate(p, test.targets) for p in kept) / len(kept)
gain = one_error - error_rate(average, test.targets)
check("one-error", 100 * one_error, at_least(7.5), digits=2)
check("gain", 100 * gain, at_least(2), digits=2)

# %% mystnb={"figure": {"caption": "Eight of the test digits that the last sampled network gets wrong: the class, the network's answer and that of the average of 200 networks, each with its probability.", "name": "fig-digits-mistakes"}, "image": {"alt": "Eight handwritten digits. Above each stands its class, the wrong answer of one network, often with a probability near one, and the answer of the average, mostly the right one."}} tags=["hide-input"]
one = kept[-1]
missed = (one.argmax(-1) != test.targets).nonzero()[:, 0]  # sorted by class
missed = missed[torch.linspace(0, len(missed) - 1, 8).round().long()]
figure, panels = plt.subplots(2, 4, figsize=(5.6, 4.2))
for axes, i in zip(panels.flat, missed.tolist(), strict=True):
    axes.imshow(test.inputs[i].view(28, 28), cmap="gray_r")
    answers = (
        f"{who}: {int(p[i].argmax())} ({float(p[i].max()):.2f})"
        for who, p in (("one", one), ("200", average))
    )
    axes.set_title("\n".join((f"a {test.targets[i]}", *answers)), fontsize=9)
    axes.axis("off")
plt.show()

# %% [markdown]
# *A guess before you read on.*
# How many of these networks must one average to err about as often as the trained network: four, twenty, or a hundred? And does it matter which?
#
# ## The posterior of a network
#
# The network $f(x; \theta)$ has one hidden layer of 100 units, like that of {cite:t}`chen2014`.
# The {term}`prior` is $N(0, 1)$ on every weight, and the {term}`likelihood` is the softmax of the ten outputs, so that up to a constant
#
# $$
# \begin{aligned}
# &U(\theta) = \tfrac12\lvert\theta\rvert^2\\
# &\quad - \sum_{i=1}^N\log\operatorname{softmax}\bigl(f(x_i; \theta)\bigr)_{y_i}.
# \end{aligned}
# $$ (eq-network)
#
# A {term}`minibatch` of $n = 500$ estimates the sum as $N/n = 8$ times its own; eight steps see as many digits as there are, one *epoch*.
# Of the lines above, the first three are all it takes to turn a PyTorch module into such a posterior.
#
# ## Five samplers, four chains each
#
# A sampler at {term}`temperature` $T$ injects $TC - \hat B$ in the place of $C - \hat B$ (page 8).
# At temperature zero a sampler is an optimiser, so two kernels, each once at temperature zero and once at temperature one, are four samplers, and the one from the beginning of this page is the fifth.
# By page 2 a single chain cannot show that it has arrived, so each has four, from four initial networks.
# All have the same number of gradients, warm-up included: four times 85 epochs, of which the first 60 are thrown away.

# %%
kernels = {
    "SGD": SGLD(1e-4, temperature=0.0),
    "SGD with momentum": SGHMC.from_learning_rate(1e-5, 0.1, temperature=0.0),
    "SGLD": SGLD(4e-4),
    "SGHMC": SGHMC.from_learning_rate(1.6e-4, 0.04),
    "SGHMC with B̂": with_estimate,
}

# %% [markdown]
# The fifth is the fourth with $\hat B$ measured in each minibatch as on {doc}`page 9 </book/tutorial/estimating_the_noise>`.
# The learning rates look small because $U$ is a sum over 4,000 digits: $\eta N$, here from 0.04 to 1.6, is the usual learning rate, that of a loss which is a mean.
# Where $U$ is flat, momentum lets the walk drift at the effective rate $\eta/\alpha$, with $\alpha$ the second number of `from_learning_rate` (page 8), so SGHMC is ten times as fast as SGLD there.
# SGLD cannot follow with a larger $\eta$, because the steepest direction sets a limit to $\eta$, whereas momentum raises $\eta/\alpha$ at the same $\eta$.

# %% tags=["hide-input"]
runs = {
    name: first if kernel is with_estimate else walk(kernel)
    for name, kernel in kernels.items()
}
lengths = {name: run["length"] / posterior.dim for name, run in runs.items()}
answers = {name: run["digits"][120:] for name, run in runs.items()}  # (50, 4, n, 10)


def scores(probabilities):
    """Error in per cent, and log loss, of predictions (…, n, 10)."""
    targets = test.targets
    return torch.tensor(
        [(100 * error_rate(p, targets), log_score(p, targets)) for p in probabilities]
    )


members = {name: scores(p.flatten(0, 1)).view(50, 4, 2) for name, p in answers.items()}
of_chain = {name: scores(p.mean(0)) for name, p in answers.items()}
of_all = {name: scores(p.mean((0, 1))[None])[0] for name, p in answers.items()}
r_hat = {
    name: [
        float(arviz.rhat(values.double().T.numpy()))
        for values in (members[name][..., 1], lengths[name][120:])
    ]
    for name in kernels
}

# %% [markdown]
# ## Has it arrived?
#
# Before looking at predictions, ask whether the chains are where they should be.
# A network gives one number for free.
# Most weights are hardly informed by 4,000 digits (many pixels are empty in all of them), and these follow the prior, so $\lvert\theta\rvert^2$ must come close to $d = 79{,}510$, its mean under the prior.
# It starts near 110, where initial weights are good for an optimiser.

# %% mystnb={"figure": {"caption": "Squared length of the weight vector, as a share of $d = 79{,}510$ (grey: 1), against the epoch. The curves of the two optimisers coincide near zero.", "name": "fig-digits-length"}, "image": {"alt": "Two curves of SGHMC, with and without an estimate, rise together from zero to near the grey line at 1 within sixty epochs, four lines of each; the one without is a little above the other at the end. SGLD reaches 0.42, and the two optimisers stay at zero."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.4, 3.3))
styles = {"SGHMC with B̂": ("--", "black"), "SGD": ("--", COLOURS["SGD"])}
for name, values in lengths.items():
    style, colour = styles.get(name, ("-", COLOURS.get(name)))
    epochs = torch.arange(1, len(values) + 1) / 2
    lines = axes.plot(epochs, values, style, color=colour, lw=1)
    lines[0].set_label(name)
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.set(xlabel="epoch", ylabel=r"$|\theta|^2 / d$")
axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()

# %% [markdown]
# In {numref}`fig-digits-length` $\lvert\theta\rvert^2$ of SGHMC comes near $d$ in 60 epochs, SGLD has come to {c}`length-SGLD` of it after 85, and the optimisers are somewhere else: they look for the mode, while nearly all of the posterior lies in a shell of radius $\sqrt d \approx 282$ around it, just as on {doc}`page 4 </book/tutorial/hamiltonian_monte_carlo>`.
# The measured $\hat B$ shortens $\theta$; in half a per cent of the coordinates it exceeds the friction and is clipped, which page 9 warns of. Without it $\lvert\theta\rvert^2$ is {c}`length-SGHMC` times $d$ over the last 25 epochs, with it {c}`length-estimate` times; the difference is what the gradient noise adds to the temperature on average over the weights.
#
# Have they arrived? Not by the standard of page 2, as this table shows.
# For SGHMC with $\hat B$ both $\hat R$ are {c}`r-hat` or more, where 1.01 is asked for: that of $\lvert\theta\rvert^2$ because all four are still rising together, that of the test log loss because the chains sit in different places of the posterior.
# What follows is true of these 200 networks, and not yet of the posterior.

# %% tags=["hide-input"]
heads = ["sampler", "R̂, log loss", "R̂, |θ|²", "error % of a chain's 50", "of all 200"]
show_table(
    heads,
    [
        [
            name,
            *(f"{value:.2f}" for value in r_hat[name]),
            f"{errors.mean():.1f} ({errors.min():.1f} to {errors.max():.1f})",
            f"{of_all[name][0]:.1f}",
        ]
        for name, errors in ((name, of_chain[name][:, 0]) for name in kernels)
    ],
    live=heads[1:],
)
for name, value, bound, because in (
    ("length-SGHMC", lengths["SGHMC"][120:].mean(), near(1.01, 0.01), ""),
    ("length-estimate", lengths["SGHMC with B̂"][120:].mean(), near(0.986, 0.01), ""),
    ("length-SGLD", lengths["SGLD"][-1].mean(), near(0.43, 0.03), ""),
    ("r-hat", min(r_hat["SGHMC with B̂"]), at_least(1.03), "25 epochs are short"),
):
    check(name, value, bound, because=because, digits=3)

# %% [markdown]
# The length is a sign and no proof in any case. Its exact mean is $d - \mathbb E[\theta\cdot\nabla L]$, where $L$ is the negative log likelihood (the formula of {ref}`ex-estimate-thermometer` with $c = 0$), and the second term is not known.
# {doc}`/book/studies/noise_of_networks` looks at single weights.
#
# ## Why the average wins
#
# Bayes' rule predicts with the average over the posterior, and $S$ samples of it are an estimate:
#
# $$
# \begin{aligned}
# P(y \mid x, \mathcal D) &= \int P(y \mid x, \theta)\,\pi(\theta)\,d\theta\\
# &\approx \frac1S\sum_{s=1}^SP(y \mid x, \theta_s).
# \end{aligned}
# $$ (eq-average)
#
# Two scores on the 1,000 test digits tell how good it is: the *error*, the share whose most probable class is wrong, and the *log loss*, the mean of $-\log P(y_i)$, which punishes being sure of a wrong class.
# With 1,000 digits the standard error of a share of six per cent is 0.75 points, so a difference of half a point decides nothing, except between two predictions for the same digits that differ on few of them.
#
# Averaging cannot hurt the log loss.
# The function $-\log$ is convex, so by Jensen's inequality
#
# $$
# -\log\frac1S\sum_sP_s(y_i) \;\le\; \frac1S\sum_s\bigl(-\log P_s(y_i)\bigr)
# $$ (eq-digits-jensen)
#
# for each digit: the average is at least as good as its members are on average, and strictly better wherever they disagree about the right class.
# Each network carries the noise of one sample in every weight.
# What the networks agree on is what the data say; the noise, which is different in each, averages out.


# %% mystnb={"figure": {"caption": "Error (above) and log loss (below) on the test digits of the average of $S$ networks of SGHMC with $\\hat B$: from all four chains (thick), or consecutive ones of one chain (thin). Grey: single networks of SGD with momentum, the mean of their scores.", "name": "fig-digits-curves"}, "image": {"alt": "In both panels two curves fall from the same height as the number of networks grows, the thick one sooner and deeper than the thin one. The thick curves pass their grey lines, that of the error at about four networks; the thin curves end at fifty networks near or above theirs."}} tags=["hide-input"]
sizes = (1, 2, 4, 8, 20, 40, 100, 200)
trained = members["SGD with momentum"].mean((0, 1))
ours = answers["SGHMC with B̂"]  # (50, 4, n, 10)
spread = scores(  # of the S networks the same number from each chain
    ours[torch.linspace(49, 0, max(1, S // 4)).round().long(), : min(S, 4)].mean((0, 1))
    for S in sizes
)
consecutive = scores(ours[:S, 0].mean(0) for S in range(1, 51))
figure, panels = plt.subplots(2, 1, figsize=(5.4, 5.0), sharex=True)
for column, axes in enumerate(panels):
    axes.semilogx(sizes, spread[:, column], color=COLOURS["SGHMC"], lw=2.8)
    axes.semilogx(range(1, 51), consecutive[:, column], color=COLOURS["SGHMC"], lw=0.9)
    axes.axhline(float(trained[column]), color=TRUTH, lw=3, zorder=0)
panels[0].set(ylabel="error (%)", ylim=(0, None))
panels[1].set(xlabel="number of networks $S$", ylabel="log loss (nats)", yscale="log")
plt.show()

# %% [markdown]
# {numref}`fig-digits-curves` answers the guess.
# Take four networks, one of each chain: the error of their average exceeds that of a trained network by {c}`four-gap` points, so it comes within a point of it, or below.
# Fifty consecutive networks of *one* chain are no substitute for such a four, because a network and the next, half an epoch later, are nearly the same, and because a chain stays in its own part of the posterior: their average errs on {c}`one-chain` points more than that of all four chains.
# What counts is not the number of samples, but how independent they are.
# The log loss of the average of two hundred is {c}`log-loss-share` times that of its members.
#
# Averaging two hundred networks of the *optimiser* gains almost nothing: their log loss is {c}`optimiser-share` times that of each.
# Along its path the networks are nearly the same one, and its four chains differ little more, so there is hardly anything to average out; the gain comes from the disagreement of the samples.
# Against a tuned rate that falls, on 50,000 digits and over several seeds, {doc}`/book/studies/mnist` repeats the comparison.
#
# {numref}`fig-digits-walks` has all five samplers.
# The measured $\hat B$, which changed the length, changes the error of the average by {c}`estimate-gap` points, less than 1,000 digits can tell.
# SGLD's average is the worst of the samplers' in that figure, most clearly in the log loss. Not having arrived is only one reason: with twice the step $\lvert\theta\rvert^2$ comes nearer to $d$, but the step is then too large for the steep directions ({ref}`ex-digits-sgld`).

# %% mystnb={"figure": {"caption": "The five samplers: error and log loss on the test digits of single networks (mean, open), of the average of fifty of one chain (small, one for each chain), and of all two hundred (filled).", "name": "fig-digits-walks"}, "image": {"alt": "Two panels with a row for each sampler, an open circle, four small dots and a filled circle. For the two optimisers they nearly coincide; for SGLD and both kinds of SGHMC the filled circle lies far to the left of the open one, and for SGHMC to the left of the optimisers, with the small dots between."}} tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(5.6, 2.4), sharey=True)
for column, axes in enumerate(panels):
    for row, name in enumerate(reversed(kernels)):
        colour = COLOURS.get(name, "black")
        ends = members[name].mean((0, 1))[column], of_all[name][column]
        axes.plot(ends, (row, row), color=colour, lw=1)
        axes.plot(of_chain[name][:, column], [row] * 4, ".", ms=4, color=colour)
        axes.plot(ends[0], row, "o", color=colour, mfc="white")
        axes.plot(ends[1], row, "o", color=colour)
    axes.set(yticks=range(len(kernels)), yticklabels=list(reversed(kernels)))
panels[0].set(xlabel="error (%)", xlim=(0, None))
panels[1].set(xlabel="log loss (nats)", xscale="log", ylim=(-0.5, 4.5))
panels[1].set_xticks((0.2, 0.5, 1), ("0.2", "0.5", "1"))
panels[1].minorticks_off()
plt.show()

# %% [markdown]
# So the practical conclusion of this small trial: the average of two hundred networks from four chains errs on {c}`average-gain` points fewer digits than a trained network.
# It costs four walks of 85 epochs and two hundred networks to store, and it rests on one set of 1,000 digits.
# There is a rival: five networks that are trained apart do better still for the same number of gradients ({doc}`/book/practice/what_should_i_use`). They, too, work by disagreeing; the optimisers of this page, which take small steps at a fixed rate, hardly do.

# %% tags=["hide-input"]
one_of_each = scores(p.mean(0) for p in ours[::5])
DIGITS = "the standard error of 1,000 digits is 0.75 points"
best, whole = of_all["SGHMC with B̂"], of_all["SGD with momentum"]
for name, value, bound, because in (
    ("trained-error", trained[0], near(6.5, 2), DIGITS),
    ("four-gap", (one_of_each.mean(0) - trained)[0], at_most(1), "ten choices"),
    ("one-chain", of_chain["SGHMC with B̂"].mean(0)[0] - best[0], at_least(0.5), ""),
    ("average-gain", trained[0] - best[0], at_least(0.2), DIGITS),
    (
        "log-loss-share",
        best[1] / members["SGHMC with B̂"][..., 1].mean(),
        at_most(0.27),
        "",
    ),
    ("optimiser-share", whole[1] / trained[1], at_least(0.88), ""),
    ("estimate-gap", of_all["SGHMC"][0] - best[0], near(0, 2), DIGITS),
):
    check(name, value, bound, because=because, digits=2)

# %% [markdown]
# ## Knowing when to ask
#
# A probability is worth most where it says "I do not know".
# {numref}`fig-digits-unsure` shows the sixteen test digits of which the average is least sure; a person would hesitate over some of them, too.
# If a person checks the 20 per cent of the digits that it is least sure of, a share of {c}`least-sure` of the errors is gone.
# {doc}`/book/studies/uncertainty` measures such things at full scale.

# %% mystnb={"figure": {"caption": "The sixteen test digits with the largest entropy of the averaged prediction: above each its class, then the two most probable classes.", "name": "fig-digits-unsure"}, "image": {"alt": "Sixteen handwritten digits, many of them oddly written, each with its class and the two most probable classes."}} tags=["hide-input"]
unsure = predictive_entropy(average).topk(16).indices
figure, panels = plt.subplots(2, 8, figsize=(6.4, 2.3))
for axes, i in zip(panels.flat, unsure.tolist(), strict=True):
    axes.imshow(test.inputs[i].view(28, 28), cmap="gray_r")
    likely, next_likely = average[i].topk(2).indices.tolist()
    axes.set_title(f"{test.targets[i]}: {likely}, {next_likely}", fontsize=8)
    axes.axis("off")
plt.show()

# %% tags=["hide-input"]
wrong = average.argmax(-1) != test.targets
least_sure = predictive_entropy(average).topk(200).indices
share = wrong[least_sure].sum() / wrong.sum()
check("least-sure", share, at_least(0.75), because="0.88 to 0.96 in six seeds")

# %% [markdown]
# **To remember:** the average of mediocre networks is one good prediction, because they disagree where the data do not decide; four of them, from four chains, come within a point of a trained network, on 1,000 digits.
#
# Two parameters of these samplers are still set by hand, the step size and the length of a path between samples.
# {doc}`The next page </book/tutorial/no_u_turn>` lets a path decide for itself when it has gone far enough.
#
# ## Change it
#
# * In the visible cell of `kernels` set `SGLD(4e-4)` to `SGLD(8e-4)`: SGLD's curve in {numref}`fig-digits-length` comes nearer to 1. Do its averages in {numref}`fig-digits-walks` move with it?
# * In the visible cell of `walk` set `170` to `250`, and `120` to `200` there and below: 40 epochs more are thrown away. Which column of the table changes?
# * There set `OnlineNoise()` to `OnlineNoise("scalar")`, one number for all weights: noise is now taken from weights that have none, which cools them, and the dashed curve of {numref}`fig-digits-length` ends lower.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-digits-write
#
# **Write it yourself.** ★★
# The energy {eq}`eq-network` of one network, in plain PyTorch. Check that its *difference* between two places is the package's, since a constant does not matter. Task *minibatch-energy* of assignment 4 ({doc}`/book/practice/teaching`) goes on from here.
#
# ~~~python
# def my_energy(position):
#     """U(θ) of one network, position (dim,)."""
#     torch.nn.utils.vector_to_parameters(position, network.parameters())
#     ...
# ~~~
# ```
#
# ```{solution} ex-digits-write
# :class: dropdown
#
# `cross_entropy` with `reduction="sum"` is the sum of $-\log\operatorname{softmax}$; its default would be the mean, the commonest slip here.
#
#     torch.nn.utils.vector_to_parameters(position, network.parameters())
#     with torch.no_grad():
#         outputs = network(train.inputs)
#     misfit = torch.nn.functional.cross_entropy(
#         outputs, train.targets, reduction="sum"
#     )
#     return 0.5 * position.square().sum() + misfit
#
# The next cell compares it with the package.
# ```


# %% tags=["hide-input"]
def my_energy(position):
    """U(θ) of one network, position (dim,)."""
    torch.nn.utils.vector_to_parameters(position, network.parameters())
    with torch.no_grad():
        outputs = network(train.inputs)
    misfit = torch.nn.functional.cross_entropy(outputs, train.targets, reduction="sum")
    return 0.5 * position.square().sum() + misfit


places = torch.cat([start, 2 * start])
check(
    "energy",
    (my_energy(places[1]) - my_energy(places[0])) / posterior.energy(places).diff()[0],
    near(1, 1e-4),
    kind="exact",
    because="the same sum, in single precision",
    says="Difference of the energies of two networks, by hand over the package's",
)

# %% [markdown]
# ```{exercise}
# :label: ex-digits-convexity
#
# **And the error?** ★
# {eq}`eq-digits-jensen` says that averaging cannot hurt the log loss. Is the same true of the error?
# ```
#
# ```{solution} ex-digits-convexity
# :class: dropdown
#
# No. Let one network say $(0.9, 0.1)$ and two say $(0.4, 0.6)$, and let the second class be right: they err on one third on average, and their average, $(0.57, 0.43)$, errs.
# ```
#
# ```{exercise}
# :label: ex-digits-sgld
#
# **Predict, then run.** ★★
# Double SGLD's step, and double it again. What happens to $\lvert\theta\rvert^2$ and to the average?
# The prior alone would bring $\lvert\theta\rvert^2/d$ to $1 - e^{-2\cdot680\,\eta}$ in 680 steps.
# ```
#
# ```{solution} ex-digits-sgld
# :class: dropdown
#
# Look at $\lvert\theta\rvert^2$ first. With $\eta = 8\cdot10^{-4}$ the prior alone would bring it to $0.66d$. That need not help the average, because the step grows too large for the steep directions before it is large enough for the flat ones. With $\eta = 1.6\cdot10^{-3}$ the steps in the steep directions may no longer be stable at all; then the log loss of the average rises, and $\lvert\theta\rvert^2$ may pass $d$ by far.
# ```
#
# ## Further reading
#
# {cite:t}`mackay1992` and {cite:t}`neal1996` began with Bayesian networks; {cite:t}`izmailov2021` run full HMC on large ones, and {cite:t}`wenzel2020` ask whether a colder posterior predicts better.
