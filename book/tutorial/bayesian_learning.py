# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Why Bayesian learning
#
# ```{div} page-head
# Level: first course · Reading: about 45 minutes, without the exercises · Running: about 15 seconds
# ```
#
# A classifier that is trained to name digits will name a letter too, and often be sure of it; a distribution over classifiers can say that it does not know.
#
# **You will learn** to
#
# * write down a posterior and a predictive distribution,
# * compute both exactly where that is possible,
# * see what a point estimate throws away, on digits and on letters,
# * tell knowing that one does not know from mere lack of confidence.
#
# **You will need** conditional probability, the Gaussian distribution in several dimensions, and least squares.

# %%
import matplotlib.pyplot as plt
import torch

from booklib.claims import claim
from booklib.datasets import digits, letters
from booklib.figures import COLOURS, TRUTH, use_style
from booklib.networks import multilayer_perceptron
from booklib.play import play
from booklib.prediction import (
    average_predictions,
    error_rate,
    log_score,
    predictive_entropy,
)
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.posteriors import LinearRegression, NetworkPosterior

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## Posterior and predictive
#
# The data $\mathcal D$ are $N$ pairs of an input $x_i$ and an answer $y_i$: an image and its digit, say.
# A *model* with parameters $\theta$ says how probable an answer is at an input, $p(y \mid x, \theta)$; as a function of $\theta$ this is the *likelihood*.
# What is believed of $\theta$ before seeing data is the *prior* $p(\theta)$.
# If the answers are independent given $\theta$, Bayes' rule says what to believe after, the *posterior* $\pi(\theta) = p(\theta \mid \mathcal D)$:
#
# $$
# \pi(\theta) \propto p(\theta)\prod_{i=1}^Np(y_i \mid x_i, \theta).
# $$ (eq-bayes)
#
# The sign $\propto$ leaves out a factor that does not depend on $\theta$ and makes $\pi$ integrate to one. It takes an integral over all $\theta$ to compute, and is hardly ever known.
# Everything in this book works with the *energy* instead, a sum over the data:
#
# $$
# \begin{aligned}
# U(\theta) &= -\log p(\theta)\\
# &\qquad{} - \sum_{i=1}^N\log p(y_i \mid x_i, \theta),\\
# \pi(\theta) &\propto e^{-U(\theta)}.
# \end{aligned}
# $$ (eq-energy)
#
# Predictions average over what is believed. The *predictive distribution* of the answer at a new input $x$ is
#
# $$
# p(y \mid x, \mathcal D) = \int p(y \mid x, \theta)\,\pi(\theta)\,d\theta.
# $$ (eq-predictive)
#
# A *point estimate* replaces the average by the single term $p(y \mid x, \hat\theta)$. The usual $\hat\theta$ has the largest posterior density, so it is where $U$ is smallest: training a network with weight decay minimises just this $U$, for a Gaussian prior.
# That is fine where all the $\theta$ that have a fair share of $\pi$ predict the same. It misleads where they do not: often far from the data, and in models with more parameters than data.
#
# A word that we shall need all the time: the *law* of a random quantity is its probability distribution. The posterior is the law of $\theta$ given the data.
#
# ## An example without any sampling
#
# ```{prf:theorem} Bayesian linear regression
# :label: thm-regression
#
# Let $y_i = \varphi(x_i)^\top\theta + N(0, \sigma^2)$ with features $\varphi(x) \in \mathbb{R}^d$, and $\theta \sim N(0, \sigma_0^2I)$. Let the rows of $\Phi$ be the $\varphi(x_i)^\top$. Then the posterior is $N(\mu, \Sigma)$ with
#
# $$
# \begin{aligned}
# \Sigma &= \bigl(\sigma^{-2}\Phi^\top\Phi + \sigma_0^{-2}I\bigr)^{-1},\\
# \mu &= \sigma^{-2}\,\Sigma\,\Phi^\top y,
# \end{aligned}
# $$ (eq-regression)
#
# and the height $\varphi(x)^\top\theta$ of the curve at a new $x$ has the law $N\bigl(\varphi(x)^\top\mu,\ \varphi(x)^\top\Sigma\,\varphi(x)\bigr)$.
# ```
#
# ```{prf:proof}
# The energy $U(\theta) = \frac1{2\sigma^2}\lvert y - \Phi\theta\rvert^2 + \frac1{2\sigma_0^2}\lvert\theta\rvert^2$ is quadratic, with second derivative $\Sigma^{-1}$ everywhere. Its gradient $\Sigma^{-1}\theta - \sigma^{-2}\Phi^\top y$ vanishes at $\mu$, which is the point estimate.
# So $U(\theta) = \frac12(\theta - \mu)^\top\Sigma^{-1}(\theta - \mu)$ plus a constant, which is the energy of $N(\mu, \Sigma)$. A linear function of a Gaussian is Gaussian, with the mean and variance stated.
# ```
#
# A new observation scatters about the curve, so its variance is that of the curve plus $\sigma^2$ {cite:p}`bishop2006`.
# Take the features $1, x, x^2, x^3$ and eight observations of $\sin(2.5\,x)$, in two groups.

# %%
generator = torch.Generator().manual_seed(3)


def features(x):
    """1, x, x², x³ of every x: (n,) → (n, 4)."""
    return x[:, None] ** torch.arange(4)


x = torch.cat(
    [
        -1 + 0.8 * torch.rand(4, generator=generator),
        0.3 + 0.6 * torch.rand(4, generator=generator),
    ]
).double()
y = torch.sin(2.5 * x) + 0.2 * torch.randn(8, generator=generator)
regression = LinearRegression(features(x), y, noise_variance=0.04, prior_variance=4.0)
grid = torch.linspace(-2, 2, 201, dtype=torch.float64)
mean = features(grid) @ regression.mean
variance = ((features(grid) @ regression.covariance) * features(grid)).sum(-1)

# %% mystnb={"figure": {"caption": "The exact posterior of a cubic after eight observations: mean plus and minus two standard deviations of the curve (band), and five curves drawn from it (thin). The point estimate is the posterior's mean (thick); it knows nothing of the band. Dotted: the curve that made the data.", "name": "fig-regression"}, "image": {"alt": "Eight dots in two groups on a wave. Through them run five thin curves and a thick one, close together among the dots. Outside them the thin curves fan out, and the band round them opens like a funnel to both sides."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.4, 3.8))
width = 2 * variance.sqrt()
axes.fill_between(
    grid,
    mean - width,
    mean + width,
    color=COLOURS["SGHMC"],
    alpha=0.2,
    lw=0,
    label="posterior, two standard deviations",
)
factor = torch.linalg.cholesky(regression.covariance)
for i in range(5):
    theta = regression.mean + factor @ torch.randn(
        len(factor), generator=generator, dtype=torch.float64
    )
    axes.plot(
        grid,
        features(grid) @ theta,
        color=COLOURS["SGHMC"],
        lw=0.8,
        label=None if i else "draws from the posterior",
    )
axes.plot(
    grid, mean, color=COLOURS["SGD with momentum"], lw=2.4, label="point estimate"
)
axes.plot(
    grid, torch.sin(2.5 * grid), ":", color="black", lw=1.2, label=r"$\sin(2.5\,x)$"
)
axes.plot(x, y, "ko", ms=5, label="data")
axes.set(xlabel="$x$", ylabel="$y$", ylim=(-6, 6))
axes.legend(loc="upper center", ncols=2, fontsize=8)
plt.show()

# %% [markdown]
# In {numref}`fig-regression` follow the thin curves from the dots outwards. Among the data they lie close together, and the point estimate is as good as any of them. Outside they fan out. At $x = 2$ the band is more than eighteen units wide, beyond the frame, and it should be: nothing has been seen there. The thick line goes on as if it knew.

# %% tags=["hide-input"]
claim(
    "Largest gradient of U at the exact posterior mean",
    regression.gradient(regression.mean[None]).abs().max(),
    at_most=1e-9,
    because="the mean of a Gaussian is where its energy is smallest; rounding",
    kind="exact",
)
inside, outside = variance[(grid > -0.9) & (grid < 0.8)].max(), variance[-1]
claim(
    "Standard deviation of the curve at x = 2 over its largest value among the data",
    (outside / inside).sqrt(),
    at_least=5,
    because="the exact formula; the data's end is at x = 0.76",
    kind="exact",
)
claim(
    "Width at x = 2 of the band of two standard deviations to either side",
    4 * outside.sqrt(),
    near=18.6,
    within=0.05,
    because="the exact formula",
    kind="exact",
)

# %% [markdown]
# ## Digits, and letters that are none
#
# Now a network with one hidden layer of 50 units, with the prior $N(0, 0.1)$ on each weight, and 4,000 handwritten digits; there are 1,000 more to test on.
# We show it letters as well, the first ten of the alphabet in a dozen printing fonts, each at nine places. No letter is a digit, although an I may pass for a 1. A careful classifier should spread its probability over several digits.
#
# Gradient descent with momentum finds the point estimate. The posterior is sampled by SGHMC, stochastic-gradient Hamiltonian Monte Carlo, the algorithm towards which this book works.
# It runs the same loop, and adds noise of the right size to every step; it then visits weights in proportion to $\pi$.
# The code has one line for each: both are `SGHMC`, and `temperature=0.0` switches the noise off, which leaves gradient descent with momentum.
# Why the noise does this, what the two numbers in the lines mean, and why a step may look at 200 digits only (`batch_size`), comes later. Here we only use it: 2,000 steps to get there, called the *warm-up*, and then a network kept after every 20 steps, $S = 150$ in all. Their average stands for the integral {eq}`eq-predictive`:
#
# $$
# \begin{aligned}
# p(y \mid x, \mathcal D) \approx \bar P(y) &= \frac1S\sum_{s=1}^SP_s(y),\\
# P_s(y) &= p(y \mid x, \theta_s).
# \end{aligned}
# $$ (eq-average-first)
#
# The function `sample` runs the chain. It returns an object whose `samples` are the kept draws of $\theta$ or, as here, what `collect` makes of each: the predictions on all images.

# %%
train, test = digits()
strange = letters()
posterior = NetworkPosterior(
    multilayer_perceptron([784, 50, 10]),
    train.inputs,
    train.targets,
    prior_variance=0.1,
    batch_size=200,
)
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


point = average_predictions(
    predictions(SGHMC.from_learning_rate(1e-5, 0.1, temperature=0.0), 1, 2_000, 1)
)
networks = predictions(SGHMC.from_learning_rate(1e-5, 0.01), 150, 2_000, 20)
average = average_predictions(networks)
split = [len(test.targets), len(strange.targets)]
(point_digits, point_letters), (average_digits, average_letters) = (
    point.split(split),
    average.split(split),
)

sure = (point_letters.max(-1).values > 0.9).double().mean()

# %% [markdown]
# The point estimate calls about one letter in five a digit with more than 90 % probability. The average over 150 networks does so less than half as often, and it reads the digits at least about as well.

# %% tags=["hide-input"]
claim(
    "Share of letters that the point estimate calls a digit with more than 90 % "
    "probability",
    sure,
    at_least=0.16,
    because="it was 0.19 to 0.21 in runs with five seeds",
)
claim(
    "The same share for the average over 150 networks, over that of the point estimate",
    (average_letters.max(-1).values > 0.9).double().mean() / sure,
    at_most=0.36,
    because="it was 0.15 to 0.24 in runs with five seeds",
)
claim(
    "Test error of the average on digits, less that of the point estimate",
    error_rate(average_digits, test.targets) - error_rate(point_digits, test.targets),
    at_most=0.005,
    because="it was -0.019 to -0.007 in runs with five seeds",
)

# %% [markdown]
# ## Is it merely timid?
#
# Whoever is never sure is never sure of a letter. The average could have bought its caution by being less sure of everything, and in part it has. On digits, too, it is surer than 90 % less often than the point estimate. And its *log score*, the mean of $-\log P(y_i)$ on the test digits (small is good), is no better.
# The question is whether it is less sure in the right places.
#
# Measure doubt by the *entropy* of a prediction, $-\sum_kP(k)\log P(k)$: it is 0 where one class has all the probability, and $\log 10 \approx 2.3$ where none is preferred.
# Now let a classifier answer only where its entropy is below some threshold. For every threshold it answers some share of the digits, and lets some share of the letters through. A higher threshold raises both shares: the two move along a curve.
# A classifier that is merely timid has more entropy everywhere, with the inputs in the same order. That changes the thresholds, and not the curve. Only one that moves letters behind digits in that order lowers the curve.

# %%
doubt = {
    "point estimate": (
        predictive_entropy(point_digits).double(),
        predictive_entropy(point_letters).double(),
    ),
    "average of 150 networks": (
        predictive_entropy(average_digits).double(),
        predictive_entropy(average_letters).double(),
    ),
}
answered = torch.linspace(0, 1, 201, dtype=torch.float64)
let_through = {
    name: (on_letters <= on_digits.quantile(answered)[:, None]).double().mean(-1)
    for name, (on_digits, on_letters) in doubt.items()
}

# %% mystnb={"figure": {"caption": "Above: the entropy of the predictions on letters. Below: the share of letters let through against the share of digits answered, for every threshold on the entropy; grey: 80 % of the digits answered.", "name": "fig-letters"}, "image": {"alt": "Above, two histograms of the entropy on letters: the point estimate's is high from zero on, the average's is near zero at first and has its heap at 1.4. Below, two rising curves of letters let through; the average's lies below the point estimate's nearly everywhere."}} tags=["hide-input"]
figure, (above, below) = plt.subplots(2, 1, figsize=(5.2, 5.4))
for (name, (_, on_letters)), colour in zip(
    doubt.items(), (COLOURS["SGD with momentum"], COLOURS["SGHMC"]), strict=True
):
    above.hist(
        on_letters.numpy(),
        bins=25,
        range=(0, 2.31),
        histtype="step",
        lw=1.6,
        color=colour,
        label=name,
    )
    below.plot(answered, let_through[name], color=colour, label=name)
above.set(xlabel="entropy (nats)", ylabel="letters", ylim=(0, 165))
above.legend(loc="upper left")
below.axvline(0.8, color=TRUTH, lw=1, zorder=0)
below.set(
    xlabel="share of digits answered",
    ylabel="share of letters let through",
    xlim=(0.3, 1.01),
)
plt.show()

# %% [markdown]
# In the upper part of {numref}`fig-letters` see where the heap lies: the point estimate has many letters near zero, of which it has no doubt at all; the average has few.
# The lower part decides. At the grey line both answer 80 % of the digits, and the average lets clearly fewer letters through. Its doubt is in the right places.

# %% tags=["hide-input"]
claim(
    "Share of letters let through where 80 % of the digits are answered, average over "
    "point estimate",
    let_through["average of 150 networks"][160] / let_through["point estimate"][160],
    at_most=0.92,
    because="it was 0.46 to 0.68 in runs with five seeds",
)
claim(
    "Log score on digits, average less point estimate",
    log_score(average_digits, test.targets) - log_score(point_digits, test.targets),
    near=0.013,
    within=0.06,
    because=(
        "it was −0.002 to 0.028 in runs with ten seeds: the average is no better here"
    ),
)
claim(
    "Share of digits on which the average is surer than 90 %, over that of the point "
    "estimate",
    (average_digits.max(-1).values > 0.9).double().mean()
    / (point_digits.max(-1).values > 0.9).double().mean(),
    at_most=0.9,
    because="it was 0.80 to 0.84 in runs with five seeds",
)

# %% [markdown]
# It is not cured. {numref}`fig-letter-images` shows the worst: of each letter the image of which the point estimate is surest.

# %% mystnb={"figure": {"caption": "Of each letter the image that the point estimate is surest of. Above it the digit that the point estimate names, its probability, and after the arrow the probability that the average gives to the same digit.", "name": "fig-letter-images"}, "image": {"alt": "Ten pictures of the printed letters A to J, each with a digit and two probabilities. The first number is near 1 for every letter, the second is smaller, least so for C, H and I."}} tags=["hide-input"]
confidence, named = point_letters.max(-1)
chosen = torch.stack(
    [torch.where(strange.targets == k, confidence, 0).argmax() for k in range(10)]
)
figure, panels = plt.subplots(2, 5, figsize=(5.2, 2.9))
for axes, i in zip(panels.flat, chosen.tolist(), strict=True):
    axes.imshow(strange.inputs[i].view(28, 28), cmap="gray_r")
    axes.set_title(
        f"{int(named[i])}: {confidence[i]:.2f} → {average_letters[i, named[i]]:.2f}",
        fontsize=8,
    )
    axes.axis("off")
plt.show()

# %% [markdown]
# The average is less sure of most of them; but where a letter looks like a digit, as an I looks like a 1, both say so.

# %% tags=["hide-input"]
claim(
    "Mean over all letters of the largest probability, average over point estimate",
    average_letters.max(-1).values.mean() / point_letters.max(-1).values.mean(),
    at_most=0.85,
    because="it was 0.74 to 0.77 in runs with ten seeds",
)
claim(
    "The average's largest probability of a 1 among the letters I",
    average_letters[strange.targets == 8, 1].max(),
    at_least=0.95,
    because="it was 0.99 in runs with five seeds: an I looks like a 1",
)

# %% [markdown]
# ## Where the doubt comes from
#
# The averaging does it, not the networks. One by one the sampled networks are *surer* of letters than the point estimate. And each makes more errors on digits than their average: it carries the noise of one draw. But they disagree on what the letter is, and an average of sure but different answers is an unsure one.

# %%
single = predictive_entropy(networks[:, 0, split[0] :]).mean()
single_error = sum(
    error_rate(p, test.targets) for p in networks[:, 0, : split[0]]
) / len(networks)

# %% tags=["hide-input"]
claim(
    "Mean entropy on letters of single sampled networks, over that of the point "
    "estimate",
    single / predictive_entropy(point_letters).mean(),
    at_most=0.8,
    because="it was 0.69 to 0.73 in runs with five seeds",
)
claim(
    "Mean entropy on letters of single sampled networks, over that of their average",
    single / predictive_entropy(average_letters).mean(),
    at_most=0.55,
    because=(
        "at most 1 by the concavity of entropy; it was 0.47 to 0.48 in runs with five "
        "seeds"
    ),
)
claim(
    "Mean test error of single sampled networks, over that of their average",
    single_error / error_rate(average_digits, test.targets),
    at_least=1.6,
    because="it was 2.1 to 2.5 in runs with five seeds",
)

# %% [markdown]
# So a distribution over weights buys three things: predictions with fewer errors than those of its members, doubt where the data do not decide, and a number, the disagreement, that tells this doubt from the noise of the answers themselves ({ref}`ex-bayes-entropy`).
#
# ## What it takes
#
# We needed draws from a density in 39,760 dimensions, known up to a constant, whose energy is a sum over all the data. The rest of the book is about how to get them, and how to know that one has.
# Two roads meet in it, {doc}`/book/tutorial/markov_chains` and {doc}`/book/tutorial/hamiltonian_dynamics`.
#
# ## In practice
#
# * Ask what a wrong but sure answer costs. If little, a point estimate will do.
# * Test a classifier on inputs from elsewhere, not only on held-out data from the same source.
# * Compare two measures of doubt at the same share of inputs answered, never at an equal threshold: a timid classifier passes every test of the second kind.
# * A posterior is only as good as its prior and its likelihood; it says nothing of data that the model cannot imagine.
#
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | posterior | $\pi(\theta) \propto p(\theta)\prod_ip(y_i \mid x_i, \theta)$ | {eq}`eq-bayes` |
# | energy | $U(\theta) = -\log p(\theta) - \sum_i\log p(y_i \mid x_i, \theta)$ | {eq}`eq-energy` |
# | predictive distribution | $\int p(y \mid x, \theta)\,\pi(\theta)\,d\theta$ | {eq}`eq-predictive` |
# | its average over draws | $\frac1S\sum_sp(y \mid x, \theta_s)$ | {eq}`eq-average-first` |
# | Gaussian regression | $\Sigma = (\sigma^{-2}\Phi^\top\Phi + \sigma_0^{-2}I)^{-1}$, $\mu = \sigma^{-2}\Sigma\Phi^\top y$ | {eq}`eq-regression` |
# | entropy | $-\sum_kP(k)\log P(k)$ | {ref}`ex-bayes-entropy` |
#
# ## Change it
#
# * In `features` write `torch.arange(8)` for `torch.arange(4)`. The band outside the data becomes many times wider, and the claim on its width shows ✗ ({ref}`ex-bayes-features`).
# * In the regression write `prior_variance=0.01` for `prior_variance=4.0`. The prior now holds the weights near zero, and the band at $x = 2$ is several times narrower: the claim on its width shows ✗. Where there are no data, how much one does not know is a matter of the prior.
# * Keep one network in place of 150: write `1, 2_000, 20` for `150, 2_000, 20`. One draw is as sure as the point estimate or surer, and its error is larger: the claims on what the average gains show ✗.
#
# ## Exercises
#
# ````{exercise} Write it yourself
# :label: ex-bayes-write
#
# Write the posterior of {prf:ref}`thm-regression`.
#
# ```python
# def regression_posterior(Phi, y, noise_variance, prior_variance):
#     """Mean (d,) and covariance (d, d) of the weights, for features (N, d)."""
#     ...
# ```
#
# Test it by the chapter's eight observations. `LinearRegression` has the answers as `mean` and `covariance`.
# The same with a network in the place of the cubic, and the two kinds of doubt of {ref}`ex-bayes-entropy`, are assignment 4 of {doc}`/book/practice/teaching`.
# ````
#
# ```{solution} ex-bayes-write
# :class: dropdown
#
# The code is in the next cell: one line for each half of {eq}`eq-regression`.
# ```


# %% tags=["hide-input"]
def regression_posterior(Phi, y, noise_variance, prior_variance):
    """Mean (d,) and covariance (d, d) of the weights, for features (N, d)."""
    identity = torch.eye(Phi.shape[1], dtype=Phi.dtype)
    covariance = (Phi.T @ Phi / noise_variance + identity / prior_variance).inverse()
    return covariance @ Phi.T @ y / noise_variance, covariance


prior_variance = 1 / regression.prior_precision
by_hand = regression_posterior(features(x), y, 0.04, prior_variance)
claim(
    "Largest difference between the posterior by hand and that of the package",
    max(
        (by_hand[0] - regression.mean).abs().max(),
        (by_hand[1] - regression.covariance).abs().max(),
    ),
    at_most=1e-9,
    because="the same formula; rounding",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-bayes-coin
#
# A coin shows heads three times in three throws. Compare the predictive probability of heads under a uniform prior with that of the point estimate.
# ```
#
# ```{solution} ex-bayes-coin
# :class: dropdown
#
# Let $\theta$ be the probability of heads. The posterior is $\propto\theta^3$ on $[0, 1]$, so its density is $4\theta^3$, and the predictive probability is $\int_0^1\theta\cdot4\theta^3\,d\theta = \tfrac45$. The density is largest at $\hat\theta = 1$: the point estimate is certain of heads after three throws.
# ```
#
# ```{exercise}
# :label: ex-bayes-entropy
#
# Write $\operatorname{Ent}(P) = -\sum_kP(k)\log P(k)$. Show that the entropy of the averaged prediction $\bar P$ of {eq}`eq-average-first` is the average entropy of the $P_s$ plus a term that is never negative. What does that term measure?
# ```
#
# ```{solution} ex-bayes-entropy
# :class: dropdown
#
# $$
# \begin{aligned}
# \operatorname{Ent}(\bar P) - \frac1S\sum_s\operatorname{Ent}(P_s) &= \frac1S\sum_s\sum_kP_s(k)\log\frac{P_s(k)}{\bar P(k)}\\
# &= \frac1S\sum_s\mathrm{KL}(P_s\,\|\,\bar P) \ge 0,
# \end{aligned}
# $$
#
# because $\sum_sP_s(k) = S\bar P(k)$; the Kullback–Leibler divergence $\mathrm{KL}$ is never negative. The term measures how far the networks disagree, and is the mutual information between the answer and $\theta$: what one would learn of the weights from being told the answer. The average entropy is the rest, the doubt that each network has by itself.
# ```
#
# ```{exercise}
# :label: ex-bayes-features
#
# Repeat the regression with features up to $x^7$, as many as there are observations. What happens to the band between the two groups of data, and outside?
# ```
#
# ```{solution} ex-bayes-features
# :class: dropdown
#
# Change `features` to `x[:, None] ** torch.arange(8)`. Between the groups, at $x = -0.3$, the standard deviation grows from 0.27 to 0.43, because more curves fit; at $x = 2$ it grows from 4.6 to 225, because the seventh power does. The point estimate is still one curve, held back by the prior alone.
# The next cell has the four numbers.
# ```

# %% tags=["hide-input"]
deviations = []
for powers in (4, 8):
    Phi, new = (
        z[:, None] ** torch.arange(powers) for z in (x, torch.tensor([-0.3, 2]))
    )
    _, covariance = regression_posterior(Phi, y, 0.04, 4.0)
    deviations.append(((new.double() @ covariance) * new).sum(-1).sqrt())
between_the_groups, beyond = torch.stack(deviations).T
claim(
    "Standard deviation at x = -0.3 with eight features, over that with four",
    between_the_groups[1] / between_the_groups[0],
    near=0.43 / 0.27,
    within=0.1,
    because="the exact formula",
    kind="exact",
)
claim(
    "Standard deviation at x = 2 with eight features, over that with four",
    beyond[1] / beyond[0],
    near=225 / 4.6,
    within=1,
    because="the exact formula",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-bayes-prior
#
# The data can be imagined away: set $N = 0$. What is the predictive distribution of the network? Could it be sure of anything?
# ```
#
# ```{solution} ex-bayes-prior
# :class: dropdown
#
# The posterior is the prior. Relabelling the ten outputs does not change its law, so the predictive probability of each class is exactly $\tfrac1{10}$ for every input, although a single network drawn from it may be sure. All confidence of the average comes from the data.
# ```
#
# ## Further reading
#
# {cite:t}`bishop2006` has more examples that are exact, {cite:t}`mackay1992` made the case for networks, and {cite:t}`neal1996` was the first to sample them by Hamiltonian dynamics.
