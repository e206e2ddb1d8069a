# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # My layer or input is …
#
# ```{div} page-head
# Level: first course · Reading: about 22 minutes · Running: about 15 seconds
# ```
#
# Ten to thirty lines for each of the layers, inputs and machines that people bring first: copy the first cell, then the block that is yours.
# {doc}`/book/practice/my_targets` has classes, numbers, counts and times, {doc}`/book/practice/my_model` sparse coefficients, time series, groups and mixtures.
#
# | my layer is | my input is | my network or machine is |
# | --- | --- | --- |
# | [an LSTM, GRU or RNN](#lstm-gru-and-rnn) | [several inputs, keyword inputs](#keyword-inputs-and-several-inputs) | [a network with pretrained weights](#pretrained-weights-as-the-priors-mean) |
# | [a transformer, attention](#transformer-and-attention) | [missing values, NaN](#missing-values-and-nan) | [in mixed precision](#mixed-precision-bfloat16-and-autocast) |
# | [an embedding of categories](#embedding-of-categories) | [in a NumPy file](#a-numpy-file-on-disk) | [on a GPU](#gpu-cuda-and-mps) |
# | | [augmented images](#augmented-images-from-a-dataloader) | |
#
# The data are made up and tiny, so that every block runs in seconds on a CPU.
# Runs of networks are long enough for the result that is printed, and too short for a paper; errors are those on the training data.
# The runs of `nuts` are short, and print only whether $\hat R$ is below 1.1; for a result raise the steps of `adapt` to some hundreds, and `num_samples` until $\hat R$ is at most 1.01.
# {doc}`/book/practice/tuning` says how to check a run.

# %% tags=["hide-input"]
from booklib.page.claims import at_least, at_most, check, near
from booklib.page.play import play

play()  # a claim that fails now shows ✗, and the page goes on

# %%
import math

import torch
from torch import nn
from torch.distributions import Normal

from sgmc import NUTS, SGHMC, NamedPosterior, NetworkPosterior, sample
from sgmc.diagnostics import split_r_hat
from sgmc.posteriors import Gaussian
from sgmc.tuning import adapt

torch.set_default_dtype(torch.float64)  # double precision: no rounding to think of
generator = torch.Generator().manual_seed(0)
tokens = torch.randint(10, (200, 6), generator=generator)  # of two blocks below
images = torch.randn(60, 1, 8, 8, generator=generator)  # of two others
bright = (images.mean((1, 2, 3)) > 0).long()


def nuts(posterior, num_samples=100):  # few parameters, all the data
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
# (my-lstm)=
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
unexplained = (forecast - ahead).var() / ahead.var()
print("unexplained by the LSTM below 20 %:", bool(unexplained < 0.2))

# %% tags=["hide-input"]
check(
    "lstm",
    unexplained,
    at_most(0.2),
    because="other seeds give 0.07 to 0.09",
    says="LSTM: share of the variance that it does not explain",
)

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
# Categories are whole numbers, `int64`, and an embedding is a layer like any other; its rows have the prior $N(0, 1)$, or the `prior_variance` that you give: a number, or one for each parameter, by its name.
# Rows of categories that are rare stay near the prior, as they should.

# %%
shop = torch.randint(5, (300,), generator=generator)  # yours: categories 0 to 4
sales = torch.tensor([-2.0, -1.0, 1.0, 2.0, 3.0])[shop]
sales = sales + 0.5 * torch.randn(300, generator=generator)
levels = NetworkPosterior(nn.Embedding(5, 1), shop, sales, likelihood=Gaussian(0.25))
rows = nuts(levels).samples.mean((0, 1))
print("mean row of each category:", rows.round().tolist())

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
# (my-keyword-inputs)=
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
print("mean probability of the right label above 0.7:", bool(each.mean() > 0.7))

# %% tags=["hide-input"]
check(
    "keywords",
    each.mean(),
    at_least(0.7),
    because="other seeds give 0.85 to 0.88",
    says="Keyword inputs: mean probability of the right label",
)

# %% [markdown]
# ## Missing values and NaN
#
# A *target* missing for a reason that does not depend on its value is no information: leave its row out (else: {ref}`censored targets <my-survival>`); of several targets of a row, count those that are there, and replace the others by a number *before* the formula, because a gradient through `torch.where` keeps the NaN of the branch that was not taken.
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
print("slopes:", b.mean(0).round().tolist())

# %% tags=["hide-input"]
sides = torch.linspace(-0.4, 0.4, 161)
plane = torch.cartesian_prod(1.0 + sides, 2.0 + sides)
gone, left = missing[:, 1], y - plane[:, :1] * x[:, 0]
wide = (0.25 + plane[:, 1:] ** 2).sqrt()  # a missing input integrated out
log_density = -plane.square().sum(1) / 2
log_density += Normal(0, wide).log_prob(left[:, gone]).sum(1)
means = plane[:, 1:] * x[~gone, 1]
log_density += Normal(means, 0.5).log_prob(left[:, ~gone]).sum(1)
exact = torch.softmax(log_density, 0) @ plane
check(
    "gaps",
    ((b.mean(0) - exact) / b.std(0)).abs().max(),
    at_most(0.25),
    because="a sum over a grid, the missing inputs integrated out, and 1,000 samples",
    says="Missing values: mean slopes less exact ones, in standard deviations",
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
print("mean weights:", weights[:2].round(decimals=1).tolist())

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
# Most weights the data leave to the prior, whose standard deviation is 0.10.


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


trained = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))  # yours
near_it = NetworkPosterior(
    Around(trained), images, bright, prior_variance=0.01, batch_size=20
)
kernel = SGHMC.from_learning_rate(0.1 / len(images), 0.1, num_steps=10)
draws = sample(kernel, near_it, torch.zeros(4, near_it.dim), 10, progress=False)
moved = draws.samples[-1].std()
print("weights moved by about 0.10:", bool(0.08 < moved < 0.13))

# %% tags=["hide-input"]
check(
    "pretrained",
    moved,
    near(0.105, 0.025),
    because="the prior has 0.10, and minibatches warm the chain a little",
    says="Pretrained weights: standard deviation of their moves",
)

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
# (my-gpu)=
# ## GPU, CUDA and MPS
#
# A run is where its start is: put module, data and generator there, and call the same lines.
# On Apple's GPU, `"mps"`, take float32, because it has no float64.
# The pages run on CPUs; some long runs of *Studies* were made on an H100. A GPU should pay for large networks and for many chains; we did not time it.
# Out of memory? A step takes the memory of a training step times the number of chains: take fewer chains, or a smaller batch.
# On several GPUs run one process each, with a seed of its own, save its samples, and put the chains side by side by `Draws.pool`.

# %%
device = "cuda" if torch.cuda.is_available() else "cpu"
inputs = torch.randn(200, 8, generator=generator).float().to(device)  # yours
classes = (inputs.sum(1) > 0).long()
network = nn.Linear(8, 2).float().to(device)
there = torch.Generator(device).manual_seed(0)
on_gpu = NetworkPosterior(network, inputs, classes, batch_size=100)
start = on_gpu.initial_position(4, there)
kernel = SGHMC.from_learning_rate(0.5 / 200, 0.1, num_steps=20)
draws = sample(kernel, on_gpu, start, 100, warm_up=50, progress=False)
print(tuple(draws.samples.shape), draws.samples.dtype)
