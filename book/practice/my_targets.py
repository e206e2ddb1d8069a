# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # My targets are …
#
# ```{div} page-head
# Level: first course · Reading: about 21 minutes · Running: about 25 seconds
# ```
#
# Ten to thirty lines for each kind of target: copy the first cell, then the block that is yours.
# {doc}`/book/practice/my_layer` has layers and inputs, {doc}`/book/practice/my_model` sparse coefficients, time series, groups and mixtures.
#
# | classes | numbers | counts and times |
# | --- | --- | --- |
# | [one for each token](#a-class-for-each-token) | [ordinal: ratings, grades](#ordinal-targets-ratings-and-grades) | [counts, with an exposure](#counts-with-an-offset-or-exposure) |
# | [a mask: segmentation](#segmentation-a-class-for-each-pixel) | [several, with correlated noise](#multi-output-regression-with-correlated-noise) | [counts, zero-inflated](#my-zero-inflated) |
# | [a rare class: imbalance](#class-imbalance-and-class-weights) | [of noise that varies](#heteroscedastic-noise-which-varies-with-the-input) | [censored: survival times](#censored-targets-survival-times) |
#
# Shares and angles need no block: any of `torch.distributions` is a likelihood in one line.
# The data are made up and tiny, so that every block runs in seconds on a CPU.
# Runs of networks are long enough for the result that is printed, and too short for a paper; errors are those on the training data.
# The runs of `nuts` are short, and print only whether $\hat R$ is below 1.1; for a result raise the steps of `adapt` to some hundreds, and `num_samples` until $\hat R$ is at most 1.01.
# {doc}`/book/practice/tuning` says how to check a run.

# %% tags=["hide-input"]
from booklib.page.claims import at_most, check, near
from booklib.page.play import play

play()  # a claim that fails now shows ✗, and the page goes on

# %%
import torch
from torch import nn
from torch.distributions import HalfNormal, Normal, Poisson, constraints

from sgmc import NUTS, SGHMC, NamedPosterior, NetworkPosterior, sample
from sgmc.diagnostics import split_r_hat
from sgmc.posteriors import Likelihood
from sgmc.tuning import adapt

torch.set_default_dtype(torch.float64)  # double precision: no rounding to think of
generator = torch.Generator().manual_seed(0)


def nuts(posterior, num_samples=50):  # few parameters, all the data
    start = posterior.initial_position(10, generator, 0.5)
    kernel, start = adapt(NUTS(0.1), posterior, start, 40, progress=False)
    draws = sample(kernel, posterior, start, num_samples, progress=False)
    print("R̂ below 1.1:", bool(split_r_hat(draws.samples).max() < 1.1))
    return draws


def sghmc(posterior, learning_rate, chains=2):  # networks, minibatches
    start = posterior.initial_position(chains, generator)
    rate = learning_rate / posterior.num_examples
    kernel = SGHMC.from_learning_rate(rate, 0.1, num_steps=10)
    return sample(kernel, posterior, start, 10, warm_up=10, progress=False)


def predict(posterior, draws, inputs):  # averaged over all samples
    return posterior.predict(draws.samples.flatten(0, 1), inputs).mean(0)


# %% [markdown]
# (my-tokens)=
# ## A class for each token
#
# An example is a sentence, and its log likelihood the sum over its tokens, padding, PyTorch's `ignore_index`, left out.
# That is a `Likelihood` of your own; outputs have an axis for chains in front and the classes last.
# The same class serves for pixels, below.


# %%
class Classes(Likelihood):
    def log_density(self, outputs, targets):  # (chains, n, ..., classes), (1, n, ...)
        shape = outputs.shape[:-1]
        chosen = targets.clamp(min=0).expand(shape)[..., None]
        found = outputs.log_softmax(-1).gather(-1, chosen)[..., 0]
        return (found * (targets >= 0)).flatten(2).sum(-1)  # -100 is padding

    def predict(self, outputs):
        return outputs.softmax(-1)


tokens = torch.randint(10, (200, 6), generator=generator)  # yours
tags = tokens % 3
tags[:, 4:] = -100
tagger = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 3))  # (n, 6, 3)
tagging = NetworkPosterior(tagger, tokens, tags, batch_size=50, likelihood=Classes())
chances = predict(tagging, sghmc(tagging, 0.02), tokens)
wrong = (chances.argmax(-1) != tags)[tags >= 0]
print(f"errors over the tokens: {wrong.double().mean():.0%}")

# %% [markdown]
# ## Segmentation: a class for each pixel
#
# With the `Classes` of the block before, only the axes need care: a convolution gives classes on the second axis, and `movedim` puts them last.
# An example has as many targets as pixels, so divide the learning rate by their number, too.

# %%
images = torch.randn(60, 1, 8, 8, generator=generator)
smooth = nn.functional.avg_pool2d(images, 3, 1, 1)[:, 0]
masks = (smooth > 0).long()  # (n, 8, 8); -100 for pixels to ignore


class Segment(nn.Module):  # yours
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x))).movedim(1, -1)


segments = NetworkPosterior(
    Segment(), images, masks, batch_size=20, likelihood=Classes()
)
chances = predict(segments, sghmc(segments, 1.0 / 64), images)
wrong = (chances.argmax(-1) != masks).double().mean()
print(f"errors over the pixels: {wrong:.0%}")

# %% [markdown]
# ## Class imbalance and class weights
#
# With a proper likelihood a rare class needs no weights: if the model fits, its probabilities are right, only small.
# Decide by their costs: if a missed case costs ten times a false alarm, raise the alarm from a probability of 1/11 on.
# A `WeightedRandomSampler` makes another data set, and its posterior.
# If you must weight examples, give the weights as a third tensor and multiply the log likelihood by them; the result then is the posterior of data in which each row was seen so many times, and its intervals are not those of your data.

# %%
from sgmc.posteriors import LogisticRegression

x = torch.cat([torch.randn(1_000, 1, generator=generator), torch.ones(1_000, 1)], 1)
rare = torch.bernoulli(torch.sigmoid(2 * x[:, 0] - 4), generator=generator)  # yours
logistic = LogisticRegression(x, rare, prior_variance=25.0)
kernel, start = adapt(NUTS(0.1), logistic, torch.zeros(10, 2), 40, progress=False)
draws = sample(kernel, logistic, start, 100, progress=False)
chance = torch.sigmoid(draws.samples @ x.T).mean((0, 1))
late, early = (rare[chance > limit].sum() / rare.sum() for limit in (1 / 2, 1 / 11))
print("an alarm from 1/2 on misses more than half of the rare:", bool(late < 0.5))
print("an alarm from 1/11 on finds more than two thirds:", bool(early > 2 / 3))
print(
    f"share of the rare class {rare.mean():.0%}, mean probability {chance.mean():.0%}"
)

# %% tags=["hide-input"]
check(
    "imbalance",
    (chance.mean() - rare.mean()).abs(),
    at_most(0.01),
    because="at the mode they are equal but for the wide prior; the mean is near it",
    says="Class imbalance: mean probability less share of the rare class",
)

# %% [markdown]
# ## Ordinal targets: ratings and grades
#
# The grade is that of the interval into which a hidden number falls, $\operatorname{P}(y \le k) = \sigma(c_k - x^\top b)$.
# Ordered cut points are a first one and positive gaps.

# %%
x = torch.randn(300, 2, generator=generator)
hidden = x @ torch.tensor([1.0, -1.0]) + torch.logit(
    torch.rand(300, generator=generator)
)
grade = torch.bucketize(hidden, torch.tensor([-1.0, 0.0, 2.0]))  # yours: 0 to 3


def log_prior(p):
    free = Normal(0, 2).log_prob(p["b"]).sum() + Normal(0, 2).log_prob(p["first"])
    return free + HalfNormal(2).log_prob(p["gaps"]).sum()


def log_likelihood(p, x, grade):
    cuts = p["first"] + torch.cat([torch.zeros(1), p["gaps"].cumsum(0)])
    below = torch.sigmoid(cuts - (x @ p["b"])[:, None])  # (n, 3)
    chances = torch.diff(
        below, dim=1, prepend=0 * below[:, :1], append=1 + 0 * below[:, :1]
    )
    return chances.gather(1, grade[:, None])[:, 0].clamp(min=1e-300).log()


shapes = {"b": (2,), "first": (), "gaps": (2,)}
ordinal = NamedPosterior(
    shapes, log_prior, log_likelihood, (x, grade), {"gaps": constraints.positive}
)
p = ordinal.named(nuts(ordinal).samples.flatten(0, 1))
print("slopes:", p["b"].mean(0).round().tolist())

# %% [markdown]
# ## Multi-output regression with correlated noise
#
# Targets `(N, k)` with one known noise variance need only `Gaussian`: it sums over the outputs.
# Noise of unknown size in each output, and correlated, is a covariance, whose parameters are scales and the Cholesky factor of a correlation.

# %%
from torch.distributions import LKJCholesky, MultivariateNormal

x = torch.randn(200, 2, generator=generator)
noise = torch.randn(200, 2, generator=generator) @ torch.tensor(
    [[1.0, 0.3], [0.0, 0.4]]
)
y = x @ torch.tensor([[1.0, 0.0], [0.0, 2.0]]) + noise  # yours


def log_prior(p):
    free = Normal(0, 2).log_prob(p["B"]).sum() + HalfNormal(2).log_prob(p["s"]).sum()
    return free + LKJCholesky(2, 2.0).log_prob(p["L"])


def log_likelihood(p, x, y):
    root = p["s"][:, None] * p["L"]
    return MultivariateNormal(x @ p["B"], scale_tril=root).log_prob(y)


supports = {"s": constraints.positive, "L": constraints.corr_cholesky}
shapes = {"B": (2, 2), "s": (2,), "L": (2, 2)}
outputs = NamedPosterior(shapes, log_prior, log_likelihood, (x, y), supports)
p = outputs.named(nuts(outputs).samples.flatten(0, 1))
print(f"correlation of the noise: {p['L'][:, 1, 0].mean():.1f}; true: 0.6")

# %% tags=["hide-input"]
check(
    "correlation",
    p["L"][:, 1, 0].mean(),
    near(0.6, 0.25),
    because="the noise was drawn with 0.3/0.5; the standard deviation is 0.05",
    says="Multi-output: correlation of the noise",
)

# %% [markdown]
# (my-varying-noise)=
# ## Heteroscedastic noise, which varies with the input
#
# A second output of the module is the logarithm of the noise's standard deviation; `outputs` have an axis for chains in front.
# Noise is what stays with ever more data (*aleatoric*); what the samples of the mean disagree about does not (*epistemic*).


# %%
class Varying(Likelihood):
    def log_density(self, outputs, targets):  # (chains, n, 2), (1, n)
        deviation = outputs[..., 1].exp()
        return Normal(outputs[..., 0], deviation, validate_args=False).log_prob(targets)


x = torch.randn(300, 2, generator=generator)
y = x[:, 0] + torch.exp(0.5 * x[:, 1]) * torch.randn(300, generator=generator)  # yours
noisy = NetworkPosterior(nn.Linear(2, 2), x, y, likelihood=Varying())
samples = nuts(noisy).samples.flatten(0, 1)
slope = noisy.named(samples)["weight"][:, 1, 1]
print(f"slope of the log standard deviation: {slope.mean():.1f}; true: 0.5")
mean, log_noise = noisy.predict(samples, torch.tensor([[0.0, 1.0]])).unbind(-1)
aleatoric, epistemic = (2 * log_noise).exp().mean(), mean.var()
print(f"at x = (0, 1): aleatoric {aleatoric:.0f}, epistemic {epistemic:.2f}")

# %% tags=["hide-input"]
check(
    "varying",
    slope.mean(),
    near(0.5, 0.25),
    because="the noise was drawn with it; the standard deviation is 0.04",
    says="Heteroscedastic noise: slope of its log standard deviation",
)

# %% [markdown]
# (my-counts)=
# ## Counts, with an offset or exposure
#
# ```{index} ! Poisson regression, ! offset, ! exposure, ! count data, ! negative binomial
# ```
#
# Counts that were collected over unequal times, areas or populations have the rate exposure × $e^{x^\top b}$.
# The logarithm of the exposure is the *offset*: a term without a coefficient, and a column of the data.
# If the counts scatter more than a Poisson distribution allows, replace it by the negative binomial with one more parameter.

# %%
x = torch.cat([torch.ones(200, 1), torch.randn(200, 1, generator=generator)], 1)
exposure = 0.5 + 4 * torch.rand(200, generator=generator)  # yours: years, say
rate = exposure * torch.exp(x @ torch.tensor([1.0, -1.0]))
counts = torch.poisson(rate, generator=generator)


def log_prior(p):
    return Normal(0, 2).log_prob(p["b"]).sum()


def log_likelihood(p, x, exposure, counts):
    logarithm = exposure.log() + x @ p["b"]
    return Poisson(logarithm.exp()).log_prob(counts)
    # or torch.distributions.NegativeBinomial, with a positive p["size"] and its prior:
    # NegativeBinomial(p["size"], logits=logarithm - p["size"].log()).log_prob(counts)


data = x, exposure, counts
poisson = NamedPosterior({"b": (2,)}, log_prior, log_likelihood, data)
b = poisson.named(nuts(poisson, 150).samples.flatten(0, 1))["b"]
print("coefficients:", b.mean(0).round().tolist(), "true: 1, -1")

# %% tags=["hide-input"]
bins = torch.linspace(-0.3, 0.3, 201)
plane = torch.cartesian_prod(1.0 + bins, -1.0 + bins)
weights = torch.softmax(-poisson.energy(plane), 0)
check(
    "counts",
    ((weights @ plane - b.mean(0)) / b.std(0)).abs().max(),
    at_most(0.25),
    because="the sum over a grid, and 1,500 samples",
    says="Counts: means less exact ones, in standard deviations",
)

# %% [markdown]
# (my-zero-inflated)=
# ## Zero-inflated counts: more zeros than a Poisson distribution has
#
# ```{index} ! zero-inflated, ! zero inflation, ! excess zeros
# ```
#
# Some examples never count, with probability `never`, and their zeros mix with those of the Poisson distribution: the likelihood of a zero sums over both.

# %%
x = torch.cat([torch.ones(400, 1), torch.randn(400, 1, generator=generator)], 1)
counts = torch.poisson(torch.exp(x @ torch.tensor([1.0, 1.0])), generator=generator)
counts *= torch.rand(400, generator=generator) < 0.7  # yours: 0.3 never count


def log_prior(p):  # never: uniform on (0, 1)
    return Normal(0, 2).log_prob(p["b"]).sum()


def log_likelihood(p, x, counts):
    counted = Poisson((x @ p["b"]).exp()).log_prob(counts) + (-p["never"]).log1p()
    zero = torch.logaddexp(p["never"].log(), counted)
    return torch.where(counts == 0, zero, counted)


shapes, supports = {"b": (2,), "never": ()}, {"never": constraints.unit_interval}
inflated = NamedPosterior(shapes, log_prior, log_likelihood, (x, counts), supports)
zeros = inflated.named(nuts(inflated, 100).samples.flatten(0, 1))
print(f"never: {zeros['never'].mean():.1f}; true: 0.3")
print("coefficients:", zeros["b"].mean(0).round().tolist(), "true: 1, 1")

# %% tags=["hide-input"]
sides = torch.linspace(-0.3, 0.3, 61)
b = torch.cartesian_prod(1.0 + sides, 1.0 + sides)
never = torch.linspace(0.12, 0.5, 77)
rates, empty = torch.exp(b @ x.T), counts == 0
log_density = -b.square().sum(1) / 8 + b @ (x.T @ counts) - rates[:, ~empty].sum(1)
log_density = log_density[:, None] + (~empty).sum() * torch.log1p(-never)
for rate in rates[:, empty].T:
    log_density += torch.log(never + (1 - never) * torch.exp(-rate)[:, None])
weights = torch.softmax(log_density.flatten(), 0).view(log_density.shape)
exact = torch.cat([weights.sum(1) @ b, (weights.sum(0) @ never)[None]])
mine = torch.cat([zeros["b"], zeros["never"][:, None]], 1)
check(
    "zero-inflated",
    ((mine.mean(0) - exact) / mine.std(0)).abs().max(),
    at_most(0.25),
    because="the sum over a grid of all three parameters, and 1,000 samples",
    says="Zero-inflated counts: means less exact ones, in standard deviations",
)

# %% [markdown]
# (my-survival)=
# ## Censored targets: survival times
#
# Of a time that is only known to be longer, the likelihood is the chance of that, the survival function; a Weibull distribution has it in closed form.
# For a normal one it is `torch.special.log_ndtr((mean - time) / deviation)`, stable where `log(1 - cdf)` is not.
# Given the inputs, the moment of the cut must say nothing about the time.

# %%
age = torch.randn(200, generator=generator)
time = (
    3 * torch.exp(0.5 * age) * torch.rand(200, generator=generator).log().neg() ** 0.5
)
seen = (time < 4).double()  # yours: 1 for an event, 0 for a time that was cut off
time = time.clamp(max=4)


def log_prior(p):
    return Normal(0, 2).log_prob(p["b"]).sum() + HalfNormal(2).log_prob(p["k"])


def log_likelihood(p, age, time, seen):
    power = p["k"] * (time.log() - p["b"][0] - p["b"][1] * age)
    return seen * (p["k"].log() - time.log() + power) - power.exp()


supports = {"k": constraints.positive}
data = age, time, seen
survival = NamedPosterior(
    {"b": (2,), "k": ()}, log_prior, log_likelihood, data, supports
)
p = survival.named(nuts(survival).samples.flatten(0, 1))
print(f"slope {p['b'][:, 1].mean():.1f}, shape {p['k'].mean():.0f}; true: 0.5, 2")
