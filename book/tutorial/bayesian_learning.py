# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Many answers instead of one
#
# ```{div} page-head
# Page 1 of 12 · 26 minutes to read, 10 to play · Running: about 12 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! Bayesian learning, ! predictive distribution
# ```

# %%
import torch

from booklib.data import digits, letters
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import at_least, at_most, check, near
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.posteriors import NetworkPosterior

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import DECIDED
from booklib.page.figures import COLOURS, use_style
from booklib.page.play import play
from booklib.runs.results import Seeds
from booklib.scores.prediction import answered, error_rate, predictive_entropy
from booklib.scores.seeds import family
from sgmc.posteriors import LinearRegression

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# A network that was trained to name digits will name a letter too, and often be sure of it.
# {numref}`fig-letter-network` shows such a case.
# The trained network has never seen a letter, and yet gives one digit nearly all of its probability.
# Beside it are three of 150 other networks, drawn approximately from the distribution over networks that the same training digits define, and chosen because they disagree.
# They give three different answers, and this disagreement is a warning that the trained network cannot give.
# Averaged over 150 such networks, no digit gets much more than half of the probability.
#
# Where do such networks come from, and what should one do with them?
# The answer is a probability distribution over networks, from which we draw samples.
#
# *A guess before you read on.*
# The networks are shown the letters A to J in many printing fonts. The trained network calls a share of {c}`sure` of them a digit with more than 90 per cent probability.
# How often does the average do so: as often, half as often, or still less?

# %%
train, test = digits()
images = torch.cat([test.inputs, letters().inputs])
posterior = NetworkPosterior(
    multilayer_perceptron([784, 50, 10]),
    train.inputs,
    train.targets,
    prior_variance=0.1,
    batch_size=200,
)
start = posterior.initial_position(1, torch.Generator().manual_seed(0))
optimiser = SGHMC.from_learning_rate(1e-5, 0.1, temperature=0.0)  # without noise
trained = sample(optimiser, posterior, start, 1, warm_up=2_000, seed=1).samples[-1]
point = posterior.predict(trained, images)[0]

# %% [markdown]
# Now the three statements of this page, sample, predict, average, and what they are for: how often the answer is surer than 90 per cent.

# %%
kernel = SGHMC.from_learning_rate(1e-5, 0.01)
draws = sample(kernel, posterior, start, 150, warm_up=2_000, thinning=20, seed=1)
networks = posterior.predict(draws.samples[:, 0], images)  # (150, images, 10)
average = networks.mean(0)

on_letters = slice(len(test.targets), None)
sure, average_sure = (
    (p[on_letters].max(-1).values > 0.9).double().mean() for p in (point, average)
)
check("sure", sure, at_least(0.16), because="0.19 to 0.21 in five seeds")
check("less", average_sure / sure, at_most(0.36), because="0.15 to 0.24 in five seeds")

# %% mystnb={"figure": {"caption": "A letter, and what five classifiers make of it: the probabilities of the ten digits. The letter is the one on which the 150 networks disagree most, among those where the trained network is surer than 95 per cent; the three sampled networks were chosen because they disagree.", "name": "fig-letter-network"}, "image": {"alt": "A printed letter and five bar charts over the digits 0 to 9. The trained network has one tall bar. Three sampled networks have their tallest bars at three different digits. The average has one bar of about one half, and several low ones."}} tags=["hide-input"]
disagreement = (
    predictive_entropy(average[on_letters])
    - predictive_entropy(networks[:, on_letters]).mean(0)
).where(point[on_letters].max(-1).values > 0.95, torch.tensor(-1.0))
chosen = len(test.targets) + int(disagreement.argmax())
opinions = {"trained network": point[chosen]}
for number, digit in enumerate(average[chosen].topk(3).indices, 1):
    opinions[f"sampled network {number}"] = networks[
        networks[:, chosen, digit].argmax(), chosen
    ]
opinions["average of 150"] = average[chosen]
figure, panels = plt.subplots(2, 3, figsize=(5.4, 3.6))
panels[0, 0].imshow(images[chosen].view(28, 28), cmap="gray_r")
panels[0, 0].axis("off")
for axes, (name, probabilities) in zip(panels.flat[1:], opinions.items(), strict=True):
    sgd = name.startswith("trained")
    colour = COLOURS["SGD with momentum" if sgd else "SGHMC"]
    axes.bar(range(10), probabilities, color=colour)
    axes.set(ylim=(0, 1.05), xticks=range(10), yticks=(0, 1))
    axes.set_title(name, fontsize=9)
    axes.tick_params(labelsize=7)
plt.show()

# %% [markdown]
# ## From belief to prediction
#
# The data $\mathcal D$ are $N$ pairs of an input $x_i$ and an answer $y_i$, here an image and its digit.
# A *model* with parameters $\theta$, here a network with its weights, says how probable each answer is at an input, $p(y \mid x, \theta)$.
# As a function of $\theta$ this is the *likelihood*.
# What we believe of $\theta$ before seeing data is the *prior* $p(\theta)$.
# If the answers are independent given $\theta$, and the inputs say nothing about $\theta$, Bayes' rule says what to believe afterwards, the *posterior*:
#
# $$
# \begin{aligned}
# \pi(\theta) &= p(\theta \mid \mathcal D)\\
# &\propto p(\theta)\prod_{i=1}^Np(y_i \mid x_i, \theta).
# \end{aligned}
# $$ (eq-bayes)
#
# The sign $\propto$ leaves out the factor that makes $\pi$ integrate to one.
# That factor is an integral over all $\theta$, which can hardly ever be computed. It is not needed, either: in the *energy* $U$ it is only an additive constant, and the samplers of this book use nothing but gradients and differences of $U$:
#
# $$
# \begin{gathered}
# U(\theta) = -\log p(\theta) - \sum_{i=1}^N\log p(y_i \mid x_i, \theta),\\
# \pi(\theta) \propto e^{-U(\theta)}.
# \end{gathered}
# $$ (eq-energy)
#
# Training a network with weight decay seeks a minimum of just this $U$, up to a constant factor, for a Gaussian prior; the trained network of the figure was trained on the same $U$ as the others were sampled from.
# The trained network is thus a *point estimate* $\hat\theta$, parameters near a (local) maximum of the posterior density, and its prediction is $p(y \mid x, \hat\theta)$.
# But nobody asked for the most probable parameters. We asked for an answer at a new input $x$, and the rules of probability give it in one line, the *predictive distribution*:
#
# $$
# p(y \mid x, \mathcal D) = \int p(y \mid x, \theta)\,\pi(\theta)\,d\theta.
# $$ (eq-predictive)
#
# Every $\theta$ predicts, and its vote counts in proportion to its posterior probability.
# A point estimate replaces this average by a single vote.
# That does no harm where all probable $\theta$ predict the same, but it misleads where they do not: far from the data, and in models with many parameters.
#
# Our network has one hidden layer of 50 units, so the integral runs over 39,760 weights, and no formula solves it.
# If we can draw *samples* $\theta_1, \dots, \theta_S$ from $\pi$, however, an average over them is all we need:
#
# $$
# \begin{gathered}
# p(y \mid x, \mathcal D) \approx \bar P(y) = \frac1S\sum_{s=1}^SP_s(y),\\
# P_s(y) = p(y \mid x, \theta_s).
# \end{gathered}
# $$ (eq-average-first)
#
# ## Sample, predict, average
#
# The heading names what the second of the code cells above does.
# `sample` runs SGHMC, stochastic-gradient Hamiltonian Monte Carlo, the algorithm towards which this book works.
# It is gradient descent with momentum, and with noise in every step; if the noise has the right size, a long enough run visits weights in proportion to $\pi$. The cell takes a short cut: it leaves the noise of the minibatch out of account, so the spread of its networks is somewhat too large. Pages 8 and 9 say by how much, and correct it. Why the noise does this, what the numbers `1e-5` and `0.01` mean, why a step may read 200 of the 4,000 digits only, and whether 5,000 steps are enough for such a chain to arrive, are the subjects of the following pages.
# After 2,000 steps of *warm-up* it keeps a network every 20 steps, 150 in all; `predict` asks each of them, and `mean` averages.
#
# What does the average buy?
# The average over 150 networks calls a letter a digit with more than 90 per cent probability {c}`less` times as often as the trained network; this answers the guess.
# It also makes {c}`fewer-errors` points fewer errors on digits.
#
# A model that is unsure of everything is trivially unsure of letters.
# Is that all the average does?
# In part, yes: it is less sure of digits, too.
# So let each model refuse to answer below a threshold of its own, set so that it answers 80 per cent of the digits.
# The average then answers {c}`let-through` times as many letters as the trained network.
#
# That sets 150 networks against one. A fairer rival is the average of four networks, trained from four starts, which takes more gradients than the sampler. Over ten repetitions of this page such an average still answers more letters than the samples do, by {c}`against-four` of a hundred, with the 95 % interval.
# {doc}`Page 10 </book/tutorial/digits>` goes on with this, and {doc}`/book/studies/uncertainty` asks it at full scale.

# %% tags=["hide-input"]
on_digits = slice(None, len(test.targets))


def errors(p):
    """The error on digits, in points."""
    return 100 * error_rate(p[on_digits], test.targets)


def let_through(p):
    """The share of letters that are answered where 80 % of the digits are."""
    return answered(p[on_digits], p[on_letters])


fewer = errors(point) - errors(average)
check("fewer-errors", fewer, at_least(0.1), because="0.7 to 1.9 in five seeds")
passed = let_through(average) / let_through(point)
check("let-through", passed, at_most(0.92), because="0.60 to 0.73 in five seeds")
stored, letters_of = Seeds.read("coverage"), ("4 trained", "sampled")
pair = (stored(f"page 1, {x}", "average.letters", 100) for x in letters_of)
(gap,) = family({"letters": tuple(pair)}).values()
check("against-four", gap, DECIDED, kind="stored", because="ten starts")

# %% [markdown]
# ## Where the doubt comes from
#
# Measure doubt by the *entropy* of a prediction, $-\sum_kP(k)\log P(k)$: it is 0 where one class has all the probability, and $\log 10 \approx 2.3$ where none is preferred.
#
# A single sampled network is *surer* of letters than the trained one: its entropy is {c}`single-entropy` times as large on average, and {c}`single-average` times that of the average of all.
# One reason is that its weights are larger, and larger weights make larger differences between the outputs: the sum of their squares is {c}`larger` times that of the trained network, because training goes to a peak of the density and a sample is usually far from one (page 4 shows why).
# It also makes {c}`single-error` times as many errors on digits as that average.
# So sampling alone does not make a network modest.
# The sampled networks disagree on what the letter is, though, and an average of sure but different answers is an unsure one.

# %% tags=["hide-input"]
single, of_trained, of_average = (
    predictive_entropy(p).mean()
    for p in (networks[:, on_letters], point[on_letters], average[on_letters])
)
single_error = sum(map(errors, networks)) / len(networks)
for name, value, bound, because in (
    ("single-entropy", single / of_trained, at_most(0.8), "0.68 to 0.73 in six seeds"),
    ("single-average", single / of_average, at_most(0.55), "0.47 to 0.48 in six seeds"),
    (
        "single-error",
        single_error / errors(average),
        at_least(1.6),
        "2.1 to 2.6 in six seeds",
    ),
):
    check(name, value, bound, because=because)
sizes = draws.samples.square().sum(-1).mean() / trained.square().sum()
check("larger", sizes, at_least(30), because="37.2 to 37.5 in three seeds")

# %% [markdown]
# ## The same in one picture, exactly
#
# In a few models the posterior has a formula; here is the most useful one.
#
# ```{prf:theorem} Bayesian linear regression
# :label: thm-regression
#
# Let $y_i = \varphi(x_i)^\top\theta + N(0, \sigma^2)$ with features $\varphi(x) \in \mathbb{R}^d$, and $\theta \sim N(0, \sigma_0^2I)$. Let the rows of $\Phi$ be the $\varphi(x_i)^\top$. Then the posterior is $N(\mu, \Sigma)$ with
#
# $$
# \begin{gathered}
# \Sigma = \bigl(\sigma^{-2}\Phi^\top\Phi + \sigma_0^{-2}I\bigr)^{-1},\\
# \mu = \sigma^{-2}\,\Sigma\,\Phi^\top y,
# \end{gathered}
# $$ (eq-regression)
#
# and the height $\varphi(x)^\top\theta$ of the curve at a new $x$ has the distribution $N\bigl(\varphi(x)^\top\mu,\ \varphi(x)^\top\Sigma\,\varphi(x)\bigr)$.
# ```
#
# The reason is that $U$ is quadratic: $\Sigma^{-1}$ is its second derivative, $\mu$ the place of its minimum, and $e^{-U}$ with a quadratic $U$ is a Gaussian density {cite:p}`bishop2006`.
# {numref}`fig-regression` takes the features $1, x, x^2, x^3$ and eight observations in two groups.
# Follow the thin curves, the samples, from the dots outwards.
# Among the data they lie close together, and the point estimate is as good as any of them; outside they fan out, and at $x = 2$ the band is {c}`band` units wide, far beyond the frame, and {c}`funnel` times as wide as anywhere among the data.
# It should be, since nothing has been seen there. The thick line goes on as if it knew.

# %% mystnb={"figure": {"caption": "The exact posterior of a cubic after eight observations: mean plus and minus two standard deviations of the curve (band), five samples (thin), the point estimate (thick), and the curve that made the data (dotted).", "name": "fig-regression"}, "image": {"alt": "Eight dots in two groups on a wave. Through them run five thin curves and a thick one, close together among the dots. Outside them the thin curves fan out, and the band round them opens like a funnel to both sides."}} tags=["hide-input"]
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
normal = torch.randn(5, 4, generator=generator, dtype=torch.float64)
curves = regression.mean + normal @ torch.linalg.cholesky(regression.covariance).T
figure, axes = plt.subplots(figsize=(5.4, 3.4))
width, colour = 2 * variance.sqrt(), COLOURS["SGHMC"]
axes.fill_between(grid, mean - width, mean + width, color=colour, alpha=0.2, lw=0)
axes.plot(grid, features(grid) @ curves.T, color=colour, lw=0.8)
axes.plot(grid, mean, color=COLOURS["SGD with momentum"], lw=2.4)
axes.plot(grid, torch.sin(2.5 * grid), ":", color="black", lw=1.2)
axes.plot(x, y, "ko", ms=5)
axes.set(xlabel="$x$", ylabel="$y$", ylim=(-6, 6))
plt.show()

# %% tags=["hide-input"]
inside, outside = variance[(grid > -0.9) & (grid < 0.8)].max(), variance[-1]
steepest = regression.gradient(regression.mean[None]).abs().max()
words = "Largest gradient of U at the exact posterior mean"
check("minimum", steepest, at_most(1e-9), kind="exact", says=words)
check("funnel", (outside / inside).sqrt(), at_least(5), kind="exact", digits=2)
check("band", 4 * outside.sqrt(), near(18.6, 0.05), kind="exact", digits=3)

# %% [markdown]
# **To remember:** a single network can say that a digit is ambiguous, but not that the data leave its weights open; that doubt shows where several plausible networks disagree, and the posterior says which are plausible.
#
# We needed samples from a density in 39,760 dimensions which is known up to a constant, and whose energy is a sum over all the data.
# The rest of the tutorial is about how to get them, and how to know that one has.
# {doc}`The next page </book/tutorial/markov_chains>` begins with three states instead of 39,760 dimensions.
#
# ## Change it
#
# * In the visible cell of `draws` keep one network in place of 150: write `1` for `150`. One sample is as sure as the trained network or surer; the average in {numref}`fig-letter-network` is then one more bar chart with a tall bar.
# * In the cell of {numref}`fig-regression` set `torch.arange(4)` to `torch.arange(8)`, and `5, 4` below to `5, 8`, as many features as observations: the band outside the data becomes about fifty times wider.
# * There set `prior_variance=4.0` to `prior_variance=0.01`. The prior now holds the weights near zero, and the band at $x = 2$ is several times narrower: away from the data, the prior determines the width of the band.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-bayes-write
#
# **Write it yourself.** ★
# The posterior of {prf:ref}`thm-regression`.
#
# ```python
# def regression_posterior(Phi, y, noise_variance, prior_variance):
#     """Mean (d,) and covariance (d, d) of the weights, for features (N, d)."""
#     ...
# ```
#
# Test it by the page's eight observations. `LinearRegression` has the answers as `mean` and `covariance`.
# The same with a network in the place of the cubic, and the two kinds of doubt of {ref}`ex-bayes-entropy`, are assignment 4 of {doc}`/book/practice/teaching`.
# ````
#
# ```{solution} ex-bayes-write
# :class: dropdown
#
# One line for each half of {eq}`eq-regression`:
#
#     identity = torch.eye(Phi.shape[1], dtype=Phi.dtype)
#     covariance = (Phi.T @ Phi / noise_variance + identity / prior_variance).inverse()
#     return covariance @ Phi.T @ y / noise_variance, covariance
#
# The next cell compares it with the package.
# ```


# %% tags=["hide-input"]
def regression_posterior(Phi, y, noise_variance, prior_variance):
    """Mean (d,) and covariance (d, d) of the weights, for features (N, d)."""
    identity = torch.eye(Phi.shape[1], dtype=Phi.dtype)
    covariance = (Phi.T @ Phi / noise_variance + identity / prior_variance).inverse()
    return covariance @ Phi.T @ y / noise_variance, covariance


by_hand = regression_posterior(features(x), y, 0.04, 1 / regression.prior_precision)
apart = [
    (by_hand[0] - regression.mean).abs().max(),
    (by_hand[1] - regression.covariance).abs().max(),
]
words = "Largest difference between the posterior by hand and that of the package"
check("package", max(apart), at_most(1e-9), kind="exact", says=words)

# %% [markdown]
# ```{exercise}
# :label: ex-bayes-coin
#
# **Predict, then run.** ★
# A coin shows heads three times in three throws. Compare the predictive probability of heads under a uniform prior with that of the point estimate.
# Then draw 100,000 coins from the prior, throw each three times, and keep those that showed three heads: what is the average of their $\theta$?
# ```
#
# ```{solution} ex-bayes-coin
# :class: dropdown
#
# Let $\theta$ be the probability of heads. The posterior is $\propto\theta^3$ on $[0, 1]$, so its density is $4\theta^3$, and the predictive probability is $\int_0^1\theta\cdot4\theta^3\,d\theta = \tfrac45$. The density is largest at $\hat\theta = 1$: the point estimate is certain of heads after three throws.
#
#     theta = torch.rand(100_000)
#     heads = torch.rand(3, 100_000) < theta
#     print(theta[heads.all(0)].mean())
#
# This is Bayes' rule by simulation: what is kept is a sample of the posterior. It gave {c}`coin` in the next cell.
# ```

# %% tags=["hide-input"]
theta = torch.rand(100_000, generator=generator)
kept = theta[(torch.rand(3, 100_000, generator=generator) < theta).all(0)]
error = kept.std() / len(kept) ** 0.5
check("coin", kept.mean(), near(0.8), error=error, because="the integral")

# %% [markdown]
# ```{exercise}
# :label: ex-bayes-entropy
#
# **Two kinds of doubt.** ★★
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
# because $\sum_sP_s(k) = S\bar P(k)$; the Kullback–Leibler divergence $\mathrm{KL}$ is never negative. The term measures how far the networks disagree, and is the mutual information between the answer and $\theta$: what one would learn of the weights from being told the answer. The average entropy is the rest, the doubt that each network has by itself. The letter of {numref}`fig-letter-network` was chosen to make the mutual information large.
# ```
#
# ## Further reading
#
# {cite:t}`bishop2006` has more examples that are exact, {cite:t}`mackay1992` made the case for networks, and {cite:t}`neal1996` was the first to sample them by Hamiltonian dynamics.
