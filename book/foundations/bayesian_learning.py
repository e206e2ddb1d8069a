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
# # Why Bayesian learning
#
# A classifier that is trained to name digits will name a letter too, and be sure of it; a distribution over classifiers can say that it does not know.
#
# **You will learn** to
#
# * write down a posterior and a predictive distribution,
# * compute both exactly where that is possible,
# * see what a point estimate throws away, on digits and on letters.
#
# **You will need** conditional probability, and a little linear regression.

# %%
import matplotlib.pyplot as plt
import torch

from sgmc import claim, sample
from sgmc.datasets import digits, letters
from sgmc.figures import COLOURS, TRUTH, use_style
from sgmc.kernels import SGHMC
from sgmc.networks import multilayer_perceptron
from sgmc.posteriors import LinearRegression, NetworkPosterior
from sgmc.prediction import average_predictions, error_rate, predictive_entropy

use_style()

# %% [markdown]
# ## Posterior and predictive
#
# Data $x_1, \dots, x_N$ are described by a model with parameters $\theta$: the *likelihood* $p(x \mid \theta)$. What is believed of $\theta$ before is the *prior* $p(\theta)$. Bayes' rule says what to believe after:
#
# $$
# \pi(\theta) = p(\theta \mid x_1, \dots, x_N) \propto p(\theta)\prod_{i=1}^Np(x_i \mid \theta).
# $$ (eq-bayes)
#
# Predictions average over it. The *predictive distribution* of a new $x$ is
#
# $$
# p(x \mid x_1, \dots, x_N) = \int p(x \mid \theta)\,\pi(\theta)\,d\theta.
# $$ (eq-predictive)
#
# A *point estimate*, such as the $\hat\theta$ with the largest posterior density, replaces the average by the single term $p(x \mid \hat\theta)$. That is fine where $\pi$ is narrow, and wrong where it is not: far from the data, and for models with more parameters than data.
#
# ## An example without any sampling
#
# Linear regression with Gaussian noise and a Gaussian prior has a Gaussian posterior {cite:p}`bishop2006`. Take cubic features of one variable and eight observations.

# %%
generator = torch.Generator().manual_seed(3)


def features(x):
    """1, x, x², x³ of every x: (n,) → (n, 4)."""
    return x[:, None] ** torch.arange(4)


x = torch.cat([-1 + 0.8 * torch.rand(4, generator=generator), 0.3 + 0.6 * torch.rand(4, generator=generator)]).double()
y = torch.sin(2.5 * x) + 0.2 * torch.randn(8, generator=generator)
regression = LinearRegression(features(x), y, noise_variance=0.04, prior_variance=4.0)
grid = torch.linspace(-2, 2, 201, dtype=torch.float64)
mean = features(grid) @ regression.mean
variance = ((features(grid) @ regression.covariance) * features(grid)).sum(-1)
claim(
    "Largest gradient of U at the exact posterior mean",
    regression.gradient(regression.mean[None]).abs().max(),
    at_most=1e-9,
    because="the mean of a Gaussian is its mode; rounding",
)
inside, outside = variance[(grid > -0.9) & (grid < 0.8)].max(), variance[-1]
claim(
    "Predictive standard deviation of the curve at x = 2 over its largest value among the data",
    (outside / inside).sqrt(),
    at_least=5,
    because="exact formula",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-regression", "caption": "Eight observations and the exact posterior of a cubic: mean and two standard deviations of the curve, and five curves drawn from the posterior. The point estimate is the thick line, everywhere equally sure."}}
figure, axes = plt.subplots()
width = 2 * variance.sqrt()
axes.fill_between(grid, mean - width, mean + width, color=TRUTH, alpha=0.3, lw=0, label="posterior, two standard deviations")
factor = torch.linalg.cholesky(regression.covariance)
for _ in range(5):
    theta = regression.mean + factor @ torch.randn(4, generator=generator, dtype=torch.float64)
    axes.plot(grid, features(grid) @ theta, color=COLOURS["HMC"], lw=0.7)
axes.plot(grid, mean, color=COLOURS["SGHMC"], lw=2.2, label="point estimate")
axes.plot(x, y, "ko", ms=5, label="data")
axes.set(xlabel="$x$", ylabel="$y$", ylim=(-6, 6))
axes.legend(loc="lower left")
plt.show()

# %% [markdown]
# ## Digits, and letters that are none
#
# Now a network with one hidden layer of 50 units, and 4,000 handwritten digits. Train it by gradient descent with momentum; then show it letters, drawn in a dozen printing fonts.
# No letter is a digit, although some look like one: I like 1, B like 8. A careful classifier would spread its probability.

# %%
train, test = digits()
strange = letters()
posterior = NetworkPosterior(multilayer_perceptron([784, 50, 10]), train.inputs, train.targets, prior_variance=0.1, batch_size=200)
start = posterior.initial_position(1, torch.Generator().manual_seed(0))
everything = torch.cat([test.inputs, strange.inputs])


def predictions(kernel, num_samples, warm_up, thinning, seed=1):
    """The kernel's predictions on digits and letters, (num_samples, 1, n, 10)."""
    draws = sample(
        kernel,
        posterior,
        start,
        num_samples,
        warm_up=warm_up,
        thinning=thinning,
        seed=seed,
        collect=lambda theta: posterior.predict(theta, everything),
    )
    return draws.samples


point = average_predictions(predictions(SGHMC.from_learning_rate(1e-5, 0.1, temperature=0.0), 1, 2_000, 1))
many = predictions(SGHMC.from_learning_rate(1e-5, 0.01), 150, 2_000, 20)
bayes = average_predictions(many)
split = [len(test.targets), len(strange.targets)]
(point_digits, point_letters), (bayes_digits, bayes_letters) = point.split(split), bayes.split(split)

sure = (point_letters.max(-1).values > 0.9).double().mean()
claim(
    "Share of letters that the point estimate calls a digit with more than 90 % probability",
    sure,
    at_least=0.1,
    because="the measured share is nearly two in ten; 1,080 letters have a standard error of 0.012",
)
claim(
    "The same share for the average over 150 networks, over that of the point estimate",
    (bayes_letters.max(-1).values > 0.9).double().mean() / sure,
    at_most=0.8,
    because="the measured ratio is well below",
)
claim(
    "Mean entropy on letters, average over point estimate",
    predictive_entropy(bayes_letters).mean() / predictive_entropy(point_letters).mean(),
    at_least=1.2,
    because="the measured ratio is well above",
)
claim(
    "Test error of the average, less that of the point estimate",
    error_rate(bayes_digits, test.targets) - error_rate(point_digits, test.targets),
    at_most=0.01,
    because="caution about letters is not paid for on digits; the difference has a standard error of 0.005",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-letters", "caption": "Left: entropy of the predictions on letters. Right: letters that the point estimate is surest of, with the digit it names and its probability, and the probability that the average gives the same digit."}}
figure = plt.figure(figsize=(9.2, 3.2))
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.1))
axes = left.subplots()
for name, p in (("SGD with momentum", point_letters), ("SGHMC", bayes_letters)):
    axes.hist(
        predictive_entropy(p).numpy(),
        bins=25,
        range=(0, 2.31),
        histtype="step",
        lw=1.6,
        color=COLOURS[name],
        label="point estimate" if name != "SGHMC" else "average of 150 networks",
    )
axes.set(xlabel="entropy (nats)", ylabel="letters")
axes.legend()
confidence, named = point_letters.max(-1)
chosen = torch.stack([torch.where(strange.targets == k, confidence, 0).argmax() for k in range(10)])
for axes, i in zip(right.subplots(2, 5).flat, chosen.tolist(), strict=True):
    axes.imshow(strange.inputs[i].view(28, 28), cmap="gray_r")
    axes.set_title(f"{int(named[i])}: {confidence[i]:.2f}, {bayes_letters[i, named[i]]:.2f}", fontsize=8)
    axes.axis("off")
plt.show()

# %% [markdown]
# Each of the sampled networks is at least as sure of itself as the point estimate. But they disagree on what the letter is, and the disagreement is the information: the *average* of ten sure but different answers is an unsure one.
# On digits, where the data speak, the networks agree, and nothing is lost.

# %%
each = predictive_entropy(many[:, 0, split[0] :]).mean()
claim(
    "Mean entropy of single sampled networks on letters, over that of their average",
    each / predictive_entropy(bayes_letters).mean(),
    at_most=0.9,
    because="by concavity of the entropy at most 1; the rest of the average's entropy is disagreement",
)

# %% [markdown]
# ## What it takes
#
# We needed draws from a density in 39,760 dimensions, known up to a constant, whose gradient is a sum over all the data. The rest of the book is about how to get them, and how to know that one has.
# Chapters on {doc}`/book/foundations/markov_chains` and {doc}`/book/foundations/hamiltonian_dynamics` come first.
#
# ## In practice
#
# * Ask what a wrong but sure answer costs. If little, a point estimate will do.
# * Test a classifier on inputs from elsewhere, not only on held-out data from the same source.
# * A posterior is only as good as its prior and its likelihood; it says nothing of data that the model cannot imagine.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-bayes-coin
#
# A coin shows heads three times in three throws. Compare the predictive probability of heads under a uniform prior with the point estimate.
# ```
#
# ```{solution} ex-bayes-coin
# :class: dropdown
#
# The posterior is $\propto\theta^3$, and $\int\theta\cdot4\theta^3\,d\theta = \tfrac45$. The point estimate says 1: it is certain after three throws.
# ```
#
# ```{exercise}
# :label: ex-bayes-entropy
#
# Show that the entropy of an averaged prediction is the average entropy plus a term that is never negative. What does that term measure?
# ```
#
# ```{solution} ex-bayes-entropy
# :class: dropdown
#
# $H(\bar P) - \overline{H(P_s)} = \frac1S\sum_s\mathrm{KL}(P_s\,\|\,\bar P) \ge 0$: how far the networks disagree, the mutual information between the label and $\theta$.
# ```
#
# ```{exercise}
# :label: ex-bayes-features
#
# Repeat the regression with features of degree 7, one for each observation. What do the point estimate and the posterior do between the observations?
# ```
#
# ```{solution} ex-bayes-features
# :class: dropdown
#
# The point estimate still draws one curve, held back only by the prior; the posterior's band opens between the two groups of observations, where the curve is not determined.
# ```
#
# ## Further reading
#
# {cite:t}`bishop2006` for exact examples, {cite:t}`mackay1992` and {cite:t}`neal1996` for networks.
