# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # My targets are …, my layer is …
#
# ```{div} page-head
# Level: first course · Reading: about 51 minutes · Running: about 30 seconds
# ```
#
# Some ten lines for each of the layers, inputs and targets that people bring first: copy the first cell, then the block that is yours. *Augmented images* has the images of *Segmentation*, and *Pretrained weights* those of *Augmented images*.
#
# | my layer or input is | my targets are | my model or machine is |
# | --- | --- | --- |
# | [an LSTM, GRU or RNN](#lstm-gru-and-rnn) | [a class for each token](#a-class-for-each-token) | [sparse: a horseshoe prior](#horseshoe-prior-for-sparse-regression) |
# | [a transformer, attention](#transformer-and-attention) | [a mask: segmentation](#segmentation-a-class-for-each-pixel) | [a time series, an autoregression](#time-series-and-autoregression) |
# | [an embedding of categories](#embedding-of-categories) | [ordinal: ratings, grades](#ordinal-targets-ratings-and-grades) | [in mixed precision](#mixed-precision-bfloat16-and-autocast) |
# | [keyword inputs, several inputs](#keyword-inputs-and-several-inputs) | [censored: survival times](#censored-targets-survival-times) | [on a GPU](#gpu-cuda-and-mps) |
# | [missing values, NaN](#missing-values-and-nan) | [of a rare class: imbalance](#class-imbalance-and-class-weights) | [of groups: a hierarchy](#groups-a-hierarchy) |
# | [augmented images](#augmented-images-from-a-dataloader) | [several outputs, with correlated noise](#multi-output-regression-with-correlated-noise) | |
# | [in a NumPy file](#a-numpy-file-on-disk) | [counts, with an exposure](#counts-with-an-offset-or-exposure) | [a network with pretrained weights](#pretrained-weights-as-the-priors-mean) |
# | | [counts, zero-inflated](#my-zero-inflated) | [of groups, with correlated slopes](#my-correlated-slopes) |
# | | [of unseen groups: a mixture](#mixture-groups-that-nobody-saw) | |
# | | [of noise that varies](#heteroscedastic-noise-which-varies-with-the-input) | |
#
# The data are made up and tiny, so that every block runs in a second or two on a CPU. The runs of `nuts` are short, and say only whether $\hat R$ is below 1.1, from where on `sample` warns; for a result raise `num_samples` until it is below 1.01. Those of networks are long enough for the result that is printed, and too short for a paper.
# Shares and angles need no block: any of `torch.distributions` is a likelihood in one line.
# How to check a run is on {doc}`/book/practice/tuning`.

# %% tags=["hide-input"]
from booklib.page.claims import at_most, check, near
from booklib.page.play import play

play()  # a claim that fails now shows ✗, and the page goes on

# %%
import math

import torch
from torch import nn
from torch.distributions import HalfNormal, Normal, constraints

from sgmc import NUTS, SGHMC, NamedPosterior, NetworkPosterior, sample
from sgmc.diagnostics import split_r_hat
from sgmc.posteriors import Gaussian, Likelihood
from sgmc.tuning import adapt

torch.set_default_dtype(torch.float64)  # double precision: no rounding to think of
generator = torch.Generator().manual_seed(0)
tokens = torch.randint(10, (200, 6), generator=generator)  # of three blocks below


def nuts(posterior, num_samples=100):  # models of plain functions, all the data
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
# ## LSTM, GRU and RNN
#
# Give the module as it is, with `batch_first=True`: without it a recurrent layer takes the minibatch for time, and the run is rejected.
# PyTorch cannot run recurrent layers for several chains at once, so the chains run one after another, and a warning says so; an `nn.GRUCell` in a loop runs together.
# Here the target is the mean of the last three of eight numbers.


# %%
class Forecast(nn.Module):  # yours
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(1, 4, batch_first=True), nn.Linear(4, 1)

    def forward(self, x):  # (n, time, 1)
        return self.head(self.lstm(x)[0][:, -1])


series = torch.randn(200, 8, 1, generator=generator)
ahead = series[:, -3:, 0].mean(1)
recurrent = NetworkPosterior(
    Forecast(), series, ahead, batch_size=50, likelihood=Gaussian(0.05)
)
forecast = predict(recurrent, sghmc(recurrent, 0.02), series)
print("unexplained by the LSTM:", f"{(forecast - ahead).var() / ahead.var():.0%}")

# %% [markdown]
# ## Transformer and attention
#
# Set `dropout=0.0`, or call `.eval()`: with dropout in training mode there is no posterior.
# Layer normalisation is fine, and PyTorch's warning of a "performance drop" means that attention goes chain by chain.
# Inputs may be whole numbers, such as tokens; here the class says whether the token 3 occurs among six.


# %%
class Reader(nn.Module):  # yours
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(10, 8), nn.Linear(8, 2)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)

    def forward(self, tokens):  # (n, 6)
        return self.head(self.encoder(self.embed(tokens)).mean(1))


occurs = (tokens == 3).any(1).long()
transformer = NetworkPosterior(Reader(), tokens, occurs, batch_size=50)
chances = predict(transformer, sghmc(transformer, 0.2), tokens)
wrong = (chances.argmax(1) != occurs).double().mean()
print(f"errors of the transformer: {wrong:.0%}")

# %% [markdown]
# ## Embedding of categories
#
# Categories are whole numbers, `int64`, and an embedding is a layer like any other; its rows have the prior $N(0, 1)$, or the `prior_variance` that you give under the layer's name.
# Rows of categories that are rare stay near the prior, as they should.

# %%
shop = torch.randint(5, (300,), generator=generator)  # yours: categories 0 to 4
sales = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0])[shop]
sales = sales + 0.5 * torch.randn(300, generator=generator)
levels = NetworkPosterior(nn.Embedding(5, 1), shop, sales, likelihood=Gaussian(0.25))
rows = nuts(levels).samples.mean((0, 1))
print("mean row of each category:", rows.round(decimals=1).tolist())

# %% tags=["hide-input"]
numbers = torch.bincount(shop, minlength=5)
exact = torch.bincount(shop, sales, 5) / 0.25 / (1 + numbers / 0.25)
check(
    "embedding",
    (rows - exact).abs().max(),
    at_most(0.02),
    because="the posterior is Gaussian and known; standard deviations are 0.07",
    says="Embedding: its rows less the exact ones",
)

# %% [markdown]
# ## Keyword inputs and several inputs
#
# `NetworkPosterior` calls `module(inputs)` with one tensor.
# For `module(input_ids=..., attention_mask=...)`, several inputs, a dictionary, or an output with `.logits`, as of Hugging Face, write the likelihood yourself: `functional_call` runs the module with the parameters of a sample, and every tensor whose first axis runs over the examples may be among the data.


# %%
class Model(nn.Module):  # yours
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(10, 2), nn.Linear(2, 1)

    def forward(self, input_ids=None, attention_mask=None):
        weights = attention_mask / attention_mask.sum(1, keepdim=True)
        pooled = (self.embed(input_ids) * weights[..., None]).sum(1)
        return {"logits": self.head(pooled)[:, 0]}


model, mask = Model(), (torch.rand(200, 6, generator=generator) < 0.7).double()
mask[:, 0] = 1.0
label = (((tokens >= 5) * mask).sum(1) / mask.sum(1) > 0.5).double()


def log_prior(p):
    return sum(Normal(0, 1).log_prob(w).sum() for w in p.values())


def log_likelihood(p, ids, mask, label):
    given = {"input_ids": ids, "attention_mask": mask}
    logits = torch.func.functional_call(model, p, (), given)["logits"]
    return -nn.functional.binary_cross_entropy_with_logits(
        logits, label, reduction="none"
    )


shapes = {name: w.shape for name, w in model.named_parameters()}
data = tokens, mask, label
keywords = NamedPosterior(shapes, log_prior, log_likelihood, data, batch_size=50)
weights = keywords.named(sghmc(keywords, 0.1).samples.flatten(0, 1))
each = torch.func.vmap(lambda p: log_likelihood(p, *data).exp())(weights)
print(f"mean probability of the right label: {each.mean():.1f}")

# %% [markdown]
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


tagger = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 3))  # yours: (n, 6, 3)
tags = tokens % 3
tags[:, 4:] = -100
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
# ## Missing values and NaN
#
# A *target* missing for a reason that does not depend on its value is no information: leave its row out (else: *Censored targets*, below); of several targets of a row, count those that are there, and replace the others by a number *before* the formula, because a gradient through `torch.where` keeps the NaN of the branch that was not taken.
# A missing *input* is a parameter with a prior, here $N(0, 1)$ for standardised columns.
# It belongs to one example, so all the data are taken, and no minibatches.

# %%
x = torch.randn(100, 2, generator=generator)
y = x @ torch.tensor([1.0, 2.0]) + 0.5 * torch.randn(100, generator=generator)
x[:20, 1] = math.nan  # yours
missing = x.isnan()
place_of = (missing.cumsum(0) - 1)[:, 1].clamp(min=0)  # in p["gap"]


def log_prior(p):
    return sum(Normal(0, 1).log_prob(p[name]).sum() for name in p)


def log_likelihood(p, x, y, place_of, missing):
    filled = torch.where(missing[:, 1], p["gap"][place_of], x[:, 1].nan_to_num())
    return Normal(p["b"][0] * x[:, 0] + p["b"][1] * filled, 0.5).log_prob(y)


data = x, y, place_of, missing
gaps = NamedPosterior({"b": (2,), "gap": (20,)}, log_prior, log_likelihood, data)
b = gaps.named(nuts(gaps).samples.flatten(0, 1))["b"]
print(
    "slopes:", [f"{m:.1f} ± {s:.2f}" for m, s in zip(b.mean(0), b.std(0), strict=True)]
)

# %% [markdown]
# ## Censored targets: survival times
#
# Of a time that is only known to be longer, the likelihood is the chance of that, the survival function; a Weibull distribution has it in closed form.
# For a normal one `torch.special.log_ndtr` is stable where `log(1 - cdf)` is not.

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
print(f"slope {p['b'][:, 1].mean():.1f}, shape {p['k'].mean():.1f}; true: 0.5, 2")

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
print("slopes:", [f"{slope:.1f}" for slope in p["b"].mean(0)])

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
draws = sample(kernel, logistic, start, 50, progress=False)
chance = torch.sigmoid(draws.samples @ x.T).mean((0, 1))
for limit in (1 / 2, 1 / 11):
    found = rare[chance > limit].sum() / rare.sum()
    print(f"alarm from {limit:.2f} on: {found:.0%} of the rare cases are found")
print(
    f"share of the rare class: {rare.mean():.1%}, mean probability: {chance.mean():.1%}"
)

# %% tags=["hide-input"]
check(
    "imbalance",
    (chance.mean() - rare.mean()).abs(),
    at_most(0.02),
    because="with an intercept the mean probability is the share, at the mode",
    says="Class imbalance: mean probability less share of the rare class",
)

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
print(f"correlation of the noise: {p['L'][:, 1, 0].mean():.1f}, in the data 0.6")

# %% tags=["hide-input"]
check(
    "correlation",
    p["L"][:, 1, 0].mean(),
    near(0.6, 0.25),
    because="the noise was drawn with 0.3/0.5; the standard deviation is 0.05",
    says="Multi-output: correlation of the noise",
)

# %% [markdown]
# (my-mixture)=
# ## Mixture: groups that nobody saw
#
# Each example belongs to one of two groups, a discrete variable, over which the likelihood sums; an ordered pair of means keeps the names of the groups apart.

# %%
y = torch.randn(200, generator=generator) + 2  # yours
y[:60] -= 4


def log_prior(p):
    return Normal(0, 5).log_prob(p["low"]) + HalfNormal(5).log_prob(p["gap"])


def log_likelihood(p, y):
    means = torch.stack([p["low"], p["low"] + p["gap"]])[:, None]
    shares = torch.stack([p["share"], 1 - p["share"]])[:, None]
    return torch.logsumexp(shares.log() + Normal(means, 1.0).log_prob(y), 0)


supports = {"gap": constraints.positive, "share": constraints.unit_interval}
shapes = {"low": (), "gap": (), "share": ()}
mixture = NamedPosterior(shapes, log_prior, log_likelihood, (y,), supports)
share = mixture.named(nuts(mixture).samples.flatten(0, 1))["share"]
print(f"share of the low group: {share.mean():.1f} ± {share.std():.2f}")

# %% tags=["hide-input"]
check(
    "mixture",
    share.mean(),
    near(0.3, 0.2),
    because="60 of 200; the standard deviation is 0.03",
    says="Mixture: share of the low group",
)

# %% [markdown]
# (my-varying-noise)=
# ## Heteroscedastic noise, which varies with the input
#
# A second output of the module is the logarithm of the noise; `outputs` have an axis for chains in front.
# Noise is what stays with ever more data (*aleatoric*); what the samples of the mean disagree about does not (*epistemic*).


# %%
class Varying(Likelihood):
    def log_density(self, outputs, targets):  # (chains, n, 2), (1, n)
        noise = outputs[..., 1].exp()
        return Normal(outputs[..., 0], noise, validate_args=False).log_prob(targets)


x = torch.randn(300, 2, generator=generator)
y = x[:, 0] + torch.exp(0.5 * x[:, 1]) * torch.randn(300, generator=generator)  # yours
noisy = NetworkPosterior(nn.Linear(2, 2), x, y, likelihood=Varying())
samples = nuts(noisy).samples.flatten(0, 1)
slope = noisy.named(samples)["weight"][:, 1, 1]
print(f"slope of the log noise: {slope.mean():.1f} ± {slope.std():.2f}; true: 0.5")
mean, log_noise = noisy.predict(samples, torch.tensor([[0.0, 1.0]])).unbind(-1)
aleatoric, epistemic = (2 * log_noise).exp().mean(), mean.var()
print(f"at x = (0, 1): aleatoric {aleatoric:.1f}, epistemic {epistemic:.2f}")

# %% tags=["hide-input"]
check(
    "varying",
    slope.mean(),
    near(0.5, 0.25),
    because="the noise was drawn with it; the standard deviation is 0.04",
    says="Heteroscedastic noise: slope of its logarithm",
)

# %% [markdown]
# ## Horseshoe prior for sparse regression
#
# Few of many coefficients matter: each gets a scale of its own with heavy tails, $b_j = z_j\lambda_j\tau$, written non-centred, with $z_j \sim N(0, 1)$.
# Its funnels need NUTS with a small step, `target_acceptance=0.95`, all the data, and patience; minibatch methods do badly.
# The last lines are comments, because the run takes minutes, here as in NumPyro ({doc}`/book/practice/step_cost`); look at its divergences and R̂.

# %%
from torch.distributions import StudentT

x = torch.randn(60, 6, generator=generator)
y = 2 * x[:, 0] + torch.randn(60, generator=generator)  # yours: one of six matters


def log_prior(p):
    scales = StudentT(3).log_prob(p["local"]).sum() + StudentT(3).log_prob(p["all"])
    return Normal(0, 1).log_prob(p["z"]).sum() + scales  # half-t: up to a constant


def log_likelihood(p, x, y):
    return Normal(x @ (p["z"] * p["local"] * p["all"]), 1.0).log_prob(y)


shapes = {"z": (6,), "local": (6,), "all": ()}
supports = {"local": constraints.positive, "all": constraints.positive}
sparse = NamedPosterior(shapes, log_prior, log_likelihood, (x, y), supports)
start = sparse.initial_position(20, generator, radius=0.5)
print("finite energies:", bool(sparse.energy(start).isfinite().all()))
# kernel, start = adapt(NUTS(0.1), sparse, start, 500, target_acceptance=0.95)
# p = sparse.named(sample(kernel, sparse, start, 1_000).samples.flatten(0, 1))
# b = (p["z"] * p["local"] * p["all"][:, None]).mean(0)

# %% [markdown]
# ## Time series and autoregression
#
# A likelihood that looks at the row before, `y[:-1]`, is rejected with minibatches, whose rows are in no order.
# Give the lag as a column: then each row is an example of its own, and minibatches work.
# Here the data were made with 0.8, and the posterior is where these data say, two standard deviations above it.
# A state-space model with hidden states is one example: run a Kalman filter in the likelihood, or make the innovations $N(0, 1)$ parameters, and take all the data.

# %%
y = [torch.zeros(())]
for shock in torch.randn(300, generator=generator):
    y.append(0.8 * y[-1] + shock)
y = torch.stack(y)  # yours
now, before = y[1:], y[:-1]


def log_prior(p):
    return HalfNormal(2).log_prob(p["s"]) + 0 * p["phi"]  # phi: uniform on (-1, 1)


def log_likelihood(p, now, before):
    return Normal(p["phi"] * before, p["s"]).log_prob(now)


supports = {"phi": constraints.interval(-1, 1), "s": constraints.positive}
shapes, data = {"phi": (), "s": ()}, (now, before)
autoregression = NamedPosterior(shapes, log_prior, log_likelihood, data, supports)
phi = autoregression.named(nuts(autoregression).samples.flatten(0, 1))["phi"]
least_squares = now @ before / (before @ before)
print(f"phi: {phi.mean():.2f} ± {phi.std():.2f}, least squares: {least_squares:.2f}")

# %% tags=["hide-input"]
grid = torch.linspace(0.5, 0.999, 2_000)
free = autoregression  # on a grid of both parameters
scale = torch.linspace(0.7, 1.4, 400)
residuals = (now[None] - grid[:, None] * before[None]).square().sum(1)
density = (
    -len(now) * scale.log() - residuals[:, None] / (2 * scale**2) - scale.square() / 8
).flatten()
weights = (density - density.max()).exp().view(2_000, 400).sum(1)
exact = (grid * weights).sum() / weights.sum()
check(
    "phi",
    phi.mean() - exact,
    near(0, 0.01),
    because="a sum over a grid; the standard deviation is 0.03, of 400 samples",
    says="Time series: the mean of phi, less the exact one",
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
from torch.distributions import Poisson

x = torch.cat([torch.ones(200, 1), torch.randn(200, 1, generator=generator)], 1)
exposure = 0.5 + 4 * torch.rand(200, generator=generator)  # yours: years, say
rate = exposure * torch.exp(x @ torch.tensor([0.5, -0.7]))
counts = torch.poisson(rate, generator=generator)


def log_prior(p):
    return Normal(0, 2).log_prob(p["b"]).sum()


def log_likelihood(p, x, exposure, counts):
    logarithm = exposure.log() + x @ p["b"]
    return Poisson(logarithm.exp()).log_prob(counts)  # or, p["size"] positive:
    # NegativeBinomial(p["size"], logits=logarithm - p["size"].log()).log_prob(counts)


data = x, exposure, counts
poisson = NamedPosterior({"b": (2,)}, log_prior, log_likelihood, data)
b = poisson.named(nuts(poisson).samples.flatten(0, 1))["b"]
print("coefficients:", [f"{mean:.1f}" for mean in b.mean(0)], "true: 0.5, -0.7")

# %% tags=["hide-input"]
bins = torch.linspace(-0.3, 0.3, 201)
plane = torch.cartesian_prod(0.5 + bins, -0.7 + bins)
weights = torch.softmax(-poisson.energy(plane), 0)
check(
    "counts",
    ((weights @ plane - b.mean(0)) / b.std(0)).abs().max(),
    at_most(0.25),
    because="the sum over a grid, and 1,000 samples",
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
from torch.distributions import Poisson

x = torch.cat([torch.ones(300, 1), torch.randn(300, 1, generator=generator)], 1)
counts = torch.poisson(torch.exp(x @ torch.tensor([1.0, 0.5])), generator=generator)
counts *= torch.rand(300, generator=generator) < 0.7  # yours: 0.3 never count


def log_prior(p):  # never: uniform on (0, 1)
    return Normal(0, 2).log_prob(p["b"]).sum()


def log_likelihood(p, x, counts):
    counted = Poisson((x @ p["b"]).exp()).log_prob(counts) + (-p["never"]).log1p()
    zero = torch.logaddexp(p["never"].log(), counted)
    return torch.where(counts == 0, zero, counted)


shapes, supports = {"b": (2,), "never": ()}, {"never": constraints.unit_interval}
inflated = NamedPosterior(shapes, log_prior, log_likelihood, (x, counts), supports)
zeros = inflated.named(nuts(inflated).samples.flatten(0, 1))
coefficients = [f"{mean:.1f}" for mean in zeros["b"].mean(0)]
print(f"never: {zeros['never'].mean():.1f}, coefficients: {coefficients}")

# %% tags=["hide-input"]
sides = torch.linspace(-0.3, 0.3, 61)
b = torch.cartesian_prod(1.0 + sides, 0.5 + sides)
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
# (my-groups)=
# ## Groups: a hierarchy
#
# ```{index} ! hierarchical model, ! random effects, ! mixed effects, ! multilevel model, ! groups
# ```
#
# Each group has its own mean, and the means are alike. Write them *non-centred*, as deviations $z_j \sim N(0, 1)$, and give each row the number of its group; that takes minibatches, too.
# With hundreds of rows a group the *centred* form is better: $N(\mu, \tau)$ as the prior of `p["effect"]`, and `p["effect"][group]` as the mean.

# %%
group = torch.arange(120) % 12  # yours: 0, 1, ... of each row
y = 1 + torch.linspace(-1, 1, 12)[group] + torch.randn(120, generator=generator)


def log_prior(p):
    top = Normal(0, 3).log_prob(p["mu"]) + HalfNormal(2).log_prob(p["tau"])
    return top + Normal(0, 1).log_prob(p["z"]).sum()


def log_likelihood(p, group, y):
    effect = p["mu"] + p["tau"] * p["z"]  # of each group
    return Normal(effect[group], 1.0).log_prob(y)


shapes, supports = {"mu": (), "tau": (), "z": (12,)}, {"tau": constraints.positive}
groups = NamedPosterior(shapes, log_prior, log_likelihood, (group, y), supports)
p = groups.named(nuts(groups).samples.flatten(0, 1))
effect = (p["mu"][:, None] + p["tau"][:, None] * p["z"]).mean(0)
rows = y[group == 0].mean()
print(f"spread {p['tau'].mean():.1f}; group 0: {effect[0]:.1f}, its rows {rows:.1f}")

# %% tags=["hide-input"]
tau = torch.linspace(0.01, 3, 600)
width = tau**2 + 0.1  # variance of a group's average of ten rows, given μ and τ
sums = torch.stack([y[group == j].mean() for j in range(12)])
precision = 12 / width + 1 / 9  # of μ, with its prior N(0, 3²)
centre = sums.sum() / width / precision
log_density = HalfNormal(2).log_prob(tau) - 6 * width.log() - precision.log() / 2
log_density += (centre**2 * precision - sums.square().sum() / width) / 2
weights = torch.softmax(log_density, 0)
check(
    "spread",
    (p["tau"].mean() - weights @ tau) / p["tau"].std(),
    near(0, 0.25),
    because="a sum over a grid, and 1,000 samples",
    says="Groups: the mean spread less the exact one, in standard deviations",
)

# %% [markdown]
# (my-correlated-slopes)=
# ## Correlated random slopes: a covariance of groups
#
# ```{index} ! random slopes, ! varying slopes, ! correlated random effects, ! LKJ prior
# ```
#
# Each group has an intercept and a slope, $\beta_j \sim N(\mu, \Sigma)$. The covariance $\Sigma$ has the Cholesky factor $\operatorname{diag}(\tau)L$: spreads $\tau$, and $L$ of the correlation, with the prior LKJ(2).
# With few rows a group make $z_j \sim N(0, 1)$ the parameters instead, and $\beta_j = \mu + \operatorname{diag}(\tau)Lz_j$.

# %%
from torch.distributions import LKJCholesky, MultivariateNormal

group, x = torch.arange(150) % 10, torch.randn(150, generator=generator)  # yours
deviations = torch.randn(10, 2, generator=generator)
deviations[:, 1] = 0.7 * deviations[:, 0] + 0.5 * deviations[:, 1]
noise = torch.randn(150, generator=generator)
y = 1 + deviations[group, 0] + (2 + deviations[group, 1]) * x + noise


def log_prior(p):
    root = p["tau"][:, None] * p["L"]
    effects = MultivariateNormal(p["mu"], scale_tril=root).log_prob(p["beta"]).sum()
    top = Normal(0, 3).log_prob(p["mu"]).sum() + HalfNormal(2).log_prob(p["tau"]).sum()
    return effects + top + LKJCholesky(2, 2.0).log_prob(p["L"])


def log_likelihood(p, group, x, y):
    level, slope = p["beta"][group].unbind(1)
    return Normal(level + slope * x, 1.0).log_prob(y)


shapes = {"mu": (2,), "tau": (2,), "L": (2, 2), "beta": (10, 2)}
supports = {"tau": constraints.positive, "L": constraints.corr_cholesky}
varying = NamedPosterior(shapes, log_prior, log_likelihood, (group, x, y), supports)
p = varying.named(nuts(varying).samples.flatten(0, 1))
correlation = p["L"][:, 1, 0]
print(f"correlation: {correlation.mean():.1f} ± {correlation.std():.1f}")
print("spreads:", [f"{spread:.1f}" for spread in p["tau"].mean(0)])

# %% tags=["hide-input"]
sides = torch.linspace(0.3, 2.0, 35), torch.linspace(0.3, 2.0, 35)
tau0, tau1, rho = torch.cartesian_prod(*sides, torch.linspace(-0.3, 0.99, 65)).T
off = tau0 * tau1 * rho
between = torch.stack([tau0**2, off, off, tau1**2], 1).view(-1, 2, 2)
precision, pull, log_density = torch.eye(2) / 9, 0.0, (1 - rho**2).log()  # LKJ(2)
log_density = log_density - (tau0**2 + tau1**2) / 8  # half-normal priors
for j in range(10):  # given τ and ρ the least squares of a group are Gaussian
    design = torch.stack([torch.ones(15), x[group == j]], 1)
    squares = design.T @ design
    best = torch.linalg.solve(squares, design.T @ y[group == j])
    inverse = torch.linalg.inv(between + torch.linalg.inv(squares))
    precision, pull = precision + inverse, pull + inverse @ best
    log_density = log_density + (inverse.logdet() - best @ (inverse @ best).T) / 2
mu = torch.linalg.solve(precision, pull)
log_density = log_density + ((pull * mu).sum(1) - precision.logdet()) / 2
weights = torch.softmax(log_density, 0)
exact = weights @ torch.cat([mu, torch.stack([tau0, tau1, rho], 1)], 1)
mine = torch.cat([p["mu"], p["tau"], correlation[:, None]], 1)
check(
    "correlated-slopes",
    ((mine.mean(0) - exact) / mine.std(0)).abs().max(),
    at_most(0.3),
    because="a sum over a grid, the rest in closed form, and 1,000 samples",
    says="Correlated slopes: means less exact ones, in standard deviations",
)

# %% [markdown]
# (my-numpy-file)=
# ## A NumPy file on disk
#
# ```{index} ! memory-mapped NumPy file, ! array is not writable
# ```
#
# `mmap_mode="r"` reads only the rows of a minibatch. PyTorch warns that "the given NumPy array is not writable"; nothing here writes to it, so silence that.
# A table in another format is written once, by `to_disk` ({ref}`my-data-on-disk`).

# %%
import tempfile
import warnings

import numpy as np

folder = tempfile.TemporaryDirectory()
np.save(f"{folder.name}/x.npy", torch.randn(1_000, 2, generator=generator).numpy())
warnings.filterwarnings("ignore", message=".*not writable")
x = torch.from_numpy(np.load(f"{folder.name}/x.npy", mmap_mode="r"))  # yours
on_disk = NetworkPosterior(
    nn.Linear(2, 1), x, x[:, 0] - x[:, 1], batch_size=50, likelihood=Gaussian(1.0)
)
weights = sghmc(on_disk, 0.1).samples.mean((0, 1))
print("mean weights and bias:", weights.round(decimals=1).tolist())

# %% [markdown]
# (my-augmented-images)=
# ## Augmented images from a DataLoader
#
# ```{index} ! augmented images
# ```
#
# Copies counted as examples make the posterior too narrow, so average the logits over the copies of an image: go through the loader a few times, without shuffling, and wrap the module.

# %%
from torch.utils.data import DataLoader, TensorDataset, default_collate


def noisy_images(batch):  # yours
    images, kinds = default_collate(batch)
    return images + 0.1 * torch.randn(images.shape, generator=generator), kinds


class Averaged(nn.Module):
    """A network's logits, averaged over the copies (examples, copies, ...)."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, copies):
        logits = self.network(copies.flatten(0, 1))
        return logits.unflatten(0, copies.shape[:2]).mean(1)


bright = (images.mean((1, 2, 3)) > 0).long()
small = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
loader = DataLoader(TensorDataset(images, bright), 20, collate_fn=noisy_images)
copies = torch.stack([torch.cat([batch for batch, _ in loader]) for _ in range(4)], 1)
augmented = NetworkPosterior(Averaged(small), copies, bright, batch_size=20)
chances = predict(augmented, sghmc(augmented, 0.1), images[:, None])
print(f"errors with augmentation: {(chances.argmax(1) != bright).double().mean():.0%}")

# %% [markdown]
# (my-pretrained-weights)=
# ## Pretrained weights as the prior's mean
#
# The package's priors have the mean zero, so sample how far the weights are from the trained ones; the chains start at zero, which is there.
# Most weights the data leave to the prior. It prints a little more than the prior's 0.10, because minibatches and the step warm the chain: a quarter of the learning rate and twice the steps give 0.10.


# %%
class Around(nn.Module):
    """A network as a function of how far its weights are from the trained ones."""

    def __init__(self, network):
        super().__init__()
        self.network = network.requires_grad_(False)
        zeros = [torch.zeros_like(w) for w in network.parameters()]
        self.moved = nn.ParameterList(zeros)

    def forward(self, x):
        named = self.network.named_parameters()
        weights = {k: w + m for (k, w), m in zip(named, self.moved, strict=True)}
        return torch.func.functional_call(self.network, weights, (x,))


near_it = NetworkPosterior(
    Around(small), images, bright, prior_variance=0.01, batch_size=20
)
kernel = SGHMC.from_learning_rate(0.1 / len(images), 0.1, num_steps=10)
draws = sample(kernel, near_it, torch.zeros(4, near_it.dim), 10, progress=False)
print(f"weights moved by {draws.samples[-1].std():.2f}; the prior allows 0.10")

# %% [markdown]
# ## Mixed precision, bfloat16 and autocast
#
# Keep the chain in float32 or float64, not in float16 or bfloat16: a step changes a weight often by less than a five-hundredth of it, which bfloat16, with its eight bits, rounds away.
# `torch.autocast` rounds the model's energy, too, so that it no longer is what its gradient belongs to; where `sample` sees that, it rejects the model.
# To save memory and time, freeze a backbone in half precision, compute its outputs once, and sample the layers behind it.

# %%
backbone = nn.Linear(50, 8).bfloat16().requires_grad_(False)  # yours
pictures = torch.randn(200, 50, generator=generator)
features = torch.tanh(backbone(pictures.bfloat16())).double()  # once
kind = (features.sum(1) > 0).long()
head = NetworkPosterior(nn.Linear(8, 2), features, kind, batch_size=50)
chances = predict(head, sghmc(head, 0.5), features)
wrong = (chances.argmax(1) != kind).double().mean()
print("errors of the head below 10 %:", bool(wrong < 0.1))

# %% [markdown]
# ## GPU, CUDA and MPS
#
# A run is where its start is: put module, data and generator there, and call the same lines.
# On Apple's GPU, `"mps"`, take float32, because it has no float64.
# The pages run on CPUs, some long runs of *Studies* were made on an H100. A GPU should pay for large networks and for many chains; we did not time it.
# Out of memory? A step takes the memory of a training step times the number of chains: take fewer chains, or a smaller batch.
# On several GPUs run one process each, with a seed of its own, save its samples, and put the chains side by side by `Draws.pool`.

# %%
device = "cuda" if torch.cuda.is_available() else "cpu"
inputs = torch.randn(200, 8, generator=generator).float().to(device)  # yours
classes = (inputs.sum(1) > 0).long()
network = nn.Linear(8, 2).float().to(device)
there = torch.Generator(device).manual_seed(0)
on_gpu = NetworkPosterior(network, inputs, classes, batch_size=50)
start = on_gpu.initial_position(4, there)
kernel = SGHMC.from_learning_rate(0.5 / 200, 0.1, num_steps=10)
draws = sample(kernel, on_gpu, start, 20, warm_up=20, progress=False)
print(tuple(draws.samples.shape), draws.samples.dtype)
