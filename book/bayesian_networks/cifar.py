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
# # CIFAR-10, and what batch normalisation does to a posterior
#
# A convolutional network for colour images, from a report in which two layers of four were sampled, to one in which all are; and the reason why one popular layer has no place in a posterior.
#
# **You will learn** to
#
# * show by enumeration that batch normalisation biases a minibatch gradient, and name the potential whose gradient it is,
# * prove that behind a normalisation the prior's width is a learning rate,
# * choose what to put in its place,
# * read an experiment's code before its numbers,
# * sample all layers of a convolutional network.
#
# **You will need** {doc}`/book/bayesian_networks/digits` and {doc}`/book/stochastic_gradients/minibatch_noise`.

# %%
import itertools
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import torch
from torch.func import functional_call
from torch.nn import functional

from experiments import cifar
from experiments.options import Options
from experiments.results import RESULTS, read_result, who_ran
from experiments.run import Run
from sgmc import claim
from sgmc.datasets import Data
from sgmc.figures import COLOURS, use_style
from sgmc.networks import convolutional_network
from sgmc.play import play
from sgmc.posteriors import NetworkPosterior

use_style()
play()
DOUBLE = torch.float64

# %% [markdown]
# ## One example, or the company it keeps?
#
# ```{prf:definition} Batch normalisation
# :label: def-cifar-batch
#
# Let $z_i$ be what a layer computes in one channel for example $i$ of a minibatch $S$ {cite:p}`ioffe2015`. Batch normalisation puts in its place
#
# $$
# \hat z_i = \frac{z_i - \mu_S}{\sqrt{\sigma_S^2 + \epsilon}},
# $$ (eq-cifar-batch)
#
# with the mean $\mu_S$ and the variance $\sigma^2_S$ of the channel over all examples (and places) of $S$, and a small $\epsilon > 0$; then it may scale and shift. After training, $\mu$ and $\sigma^2$ are commonly fixed at running averages.
# ```
#
# So what the network says of $x_i$ depends on the other examples of its minibatch. Write $\ell_i(\theta; S)$ for the log-probability of $y_i$ when $x_i$ is shown in the company of $S$.
# There is no $p(y_i \mid x_i, \theta)$ any more, the likelihood is no product over examples, and $-\log p(\theta) - \frac Nn\sum_{i\in S}\ell_i(\theta; S)$ is an unbiased estimate of... what?
#
# ```{prf:theorem} A potential for every batch size
# :label: thm-cifar-potential
#
# Let $S$ be uniform among the minibatches of $n$ examples. The mean of the batch-normalised minibatch gradient is the gradient of
#
# $$
# U_n(\theta) = -\log p(\theta) - \frac Nn\,\mathbb E_S\Bigl[\sum_{i\in S}\ell_i(\theta; S)\Bigr].
# $$ (eq-cifar-potential)
#
# If $\ell_i(\theta; S) = \ell_i(\theta)$ does not depend on the company, $U_n = U$ for all $n$. Otherwise $U_n$ depends on $n$ in general.
# ```
#
# ```{prf:proof}
# There are finitely many minibatches, so the mean of the gradients is the gradient of the mean. Without company, each example is in $S$ with probability $n/N$, and the mean of the sum is $\frac nN\sum_i\ell_i(\theta)$, whose factor cancels. That it depends on $n$ otherwise is shown by the example below.
# ```
#
# A sampler that uses these gradients is therefore not wrong about some posterior; it is right, up to its usual errors, about $e^{-U_n}$, a density in which the minibatch size is part of the model. It has no prior predictive, no meaning for a single new image, and changes when the batch does.
# Six images, and all their minibatches of $n$ = 2 to 6:

# %%
generator = torch.Generator().manual_seed(0)
images, labels = (
    torch.randn(6, 16, generator=generator, dtype=DOUBLE),
    torch.arange(6) % 3,
)


def tiny(normalisation):
    """A network of 79 weights for 4×4 images; all normalisations get the same
    weights, and scale by one and shift by zero."""
    torch_network = convolutional_network(
        (1, 4, 4), (2, 2), hidden=3, normalisation=normalisation, classes=3
    ).double()
    weights = torch.Generator().manual_seed(1)
    return torch_network, {
        name: torch.randn(p.shape, generator=weights, dtype=DOUBLE)
        for name, p in torch_network.named_parameters()
        if p.ndim > 1
    } | {
        name: torch.ones_like(p) * ("weight" in name)
        for name, p in torch_network.named_parameters()
        if p.ndim == 1
    }


def likelihood_gradient(network, weights, batch):
    """The gradient of N/n times the minibatch's negative log-likelihood, as one
    vector."""

    weights = {name: w.clone().requires_grad_() for name, w in weights.items()}
    logits = functional_call(network, weights, (images[batch],))
    energy = (
        functional.cross_entropy(logits, labels[batch], reduction="sum")
        * len(images)
        / len(batch)
    )
    return torch.cat(
        [part.flatten() for part in torch.autograd.grad(energy, list(weights.values()))]
    )


sizes = range(2, 7)
bias = {}
for normalisation in (None, "group", "batch"):
    network, weights = tiny(normalisation)
    whole = likelihood_gradient(network, weights, torch.arange(6))
    bias[normalisation] = []
    for n in sizes:
        batches = [torch.tensor(batch) for batch in itertools.combinations(range(6), n)]
        average = sum(
            likelihood_gradient(network, weights, batch) for batch in batches
        ) / len(batches)
        bias[normalisation].append(float((average - whole).norm() / whole.norm()))

# %% tags=["hide-input"]
for normalisation, name in (
    (None, "without normalisation"),
    ("group", "with group normalisation"),
):
    claim(
        f"Largest relative bias of the minibatch gradient, {name}",
        max(bias[normalisation]),
        at_most=1e-12,
        because="the mean over all minibatches is the gradient, to rounding",
        kind="exact",
    )
claim(
    "Relative bias of the minibatch gradient with batch normalisation, n = 3",
    bias["batch"][1],
    at_least=0.03,
    because="enumeration of all 20 minibatches",
    kind="exact",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-cifar-bias", "caption": "Length of the minibatch gradient's bias over that of the full gradient, by enumeration of all minibatches of $n$ of six images. Without normalisation and with group normalisation it is rounding error. At $n = 6$ there is one minibatch only."}}
figure, axes = plt.subplots(figsize=(5.6, 3.2))
axes.semilogy(
    sizes,
    [max(b, 1e-17) for b in bias["batch"]],
    "o-",
    color=COLOURS["naive SGHMC"],
    label="batch normalisation",
)
axes.semilogy(
    sizes,
    [max(b, 1e-17) for b in bias["group"]],
    "s--",
    color=COLOURS["HMC"],
    label="group normalisation",
)
axes.semilogy(
    sizes,
    [max(b, 1e-17) for b in bias[None]],
    "^:",
    color=COLOURS["SGHMC"],
    label="none",
)
axes.set(
    xlabel="minibatch size $n$",
    ylabel="relative bias",
    xticks=list(sizes),
    ylim=(3e-18, 10),
)
axes.legend(fontsize=8, loc="center left")
plt.show()

# %% [markdown]
# With images of thousands of pixels and $n = 500$ the statistics of a minibatch hardly fluctuate and the bias is smaller. But small is not none, and the estimates of {doc}`/book/stochastic_gradients/estimating_the_noise` need each example's own gradient, which does not exist.
# The package refuses:

# %%
try:
    NetworkPosterior(
        convolutional_network((1, 4, 4), normalisation="batch"), images.float(), labels
    )
except ValueError as error:
    print(error)

# %% [markdown]
# ## Behind a normalisation, a prior is a learning rate
#
# Normalisation has a second effect, which group normalisation shares.
#
# ```{prf:theorem} Scale invariance
# :label: thm-cifar-scale
#
# Let $w \in \mathbb R^k$ be the weights of one channel of a layer without bias that feeds a normalisation with $\epsilon = 0$, let $L(w)$ be the negative log-likelihood as a function of them, and $w \sim N(0, \tau^2I)$. Then
#
# 1. $L(cw) = L(w)$ for $c > 0$, and $w^\top\nabla L(w) = 0$, and $\nabla L(cw) = \nabla L(w)/c$;
# 2. in the posterior the length $\lvert w\rvert$ and the direction $u = w/\lvert w\rvert$ are independent; the length keeps its prior law, $\lvert w\rvert^2 \sim \tau^2\chi^2_k$, and the law of $u$ does not depend on $\tau$;
# 3. a gradient step of size $\eta$ turns the direction by $\frac{\eta}{\lvert w\rvert^2}\lvert\nabla L(u)\rvert$, to first order.
# ```
#
# ```{prf:proof}
# 1. Scaling $w$ scales the channel's values, their mean and their standard deviation alike, and {eq}`eq-cifar-batch` cancels it. Differentiate $L(cw) = L(w)$ in $c$ at 1 for the second equation, and in $w$ for the third.
# 2. In polar coordinates the posterior density is proportional to $e^{-L(u)}\cdot\lvert w\rvert^{k-1}e^{-\lvert w\rvert^2/2\tau^2}$: a product of a function of $u$, without $\tau$, and of a function of $\lvert w\rvert$, without data.
# 3. $\nabla L(w)$ is orthogonal to $w$, so $w - \eta\nabla L(w)$ turns by the angle $\eta\lvert\nabla L(w)\rvert/\lvert w\rvert$, and $\lvert\nabla L(w)\rvert = \lvert\nabla L(u)\rvert/\lvert w\rvert$.
# ```
#
# So $\tau$, the one thing that such a prior says, says nothing about the predictions. What it does is to hold $\lvert w\rvert^2$ near $k\tau^2$, and by part 3 the sampler moves on the sphere of directions with the step $\eta/k\tau^2$: the prior has become a learning rate.
# In an optimiser weight decay does the same {cite:p}`vanlaarhoven2017`.

# %%
network, weights = tiny("group")
network[2].eps = network[6].eps = 0.0
weights = {name: w for name, w in weights.items()}
batch = torch.arange(6)
for layer in ("1", "5"):
    weights[f"{layer}.bias"] = torch.zeros(2, dtype=DOUBLE)


def gradient_in(weights, name):
    """The gradient of the negative log-likelihood in one tensor of weights."""

    def energy(w):
        return functional.cross_entropy(
            functional_call(network, {**weights, name: w}, (images,)),
            labels,
            reduction="sum",
        )

    return torch.func.grad(energy)(weights[name])


first = gradient_in(weights, "1.weight")
wider = gradient_in({**weights, "1.weight": 3 * weights["1.weight"]}, "1.weight")

# %% tags=["hide-input"]
claim(
    "Cosine between the first convolution's weights and their gradient, behind a "
    "group normalisation",
    float(
        (first * weights["1.weight"]).sum() / first.norm() / weights["1.weight"].norm()
    ),
    near=0,
    within=1e-10,
    because="the length of these weights does not matter to the likelihood",
    kind="exact",
)
claim(
    "Gradient at three times the weights, over the gradient",
    float(wider.norm() / first.norm()),
    near=1 / 3,
    within=1e-10,
    because="part 1",
    kind="exact",
)

# %% [markdown]
# ## What to put in its place
#
# | | likelihood of one example | scale-invariant | remark |
# | --- | --- | --- | --- |
# | batch normalisation, minibatch statistics | none | yes | no posterior |
# | batch normalisation, fixed statistics | yes | no | an affine map; the statistics are part of the model, and chosen with the data |
# | group or layer normalisation {cite:p}`wu2018` | yes | yes, for a group | statistics of one image |
# | filter response normalisation {cite:p}`singh2020` | yes | yes | no mean is taken away; used for posteriors by {cite:t}`izmailov2021` |
# | none | yes | no | two or four layers do not need it |
#
# `convolutional_network` offers the first for demonstration, and group normalisation and none for use. With four layers, and weights whose prior variance is one over the fan-in, none does; we measure both below.

# %% [markdown]
# ## An experiment's code before its numbers
#
# {cite:t}`adamday` close with a notebook on CIFAR-10 {cite:p}`krizhevsky2009`: two 3×3 convolutions to 32 and 16 channels, each with batch normalisation, tanh and max-pooling, then Bayesian linear layers 1024–100–10 with $N(0, 1)$ priors; SGHMC with $\eta = 10^{-6}$, $\alpha = 0.01$, 150 epochs of warm-up. It reached an accuracy of 0.42.
# A network of this kind can do much better. Three reasons stand in the code (`bnn/cnn-bnn.ipynb` at `037e325`; {doc}`/book/appendix/errata`).
#
# * **The convolutions are not trained.** They are plain parameters of the module, and the sampler asks the probabilistic program for its *random variables* only. No optimiser is ever made. So their first random weights stay, and what is sampled is a two-layer network on random features.
# * **The images are scrambled.** The files store images pixel by pixel, three colours each. The notebook reshapes the array to (colour, row, column) without moving the axis of the colours ({numref}`fig-cifar-scramble`).
# * **The noise is that of a temperature of** $2\cdot10^{-8}$, for a variance was passed as a standard deviation: {prf:ref}`thm-fashion-reported`.
#
# Besides, the likelihood is normalised by the minibatch, and the prediction by running averages.

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-cifar-scramble", "caption": "A made-up picture of 32×32 pixels, and the same numbers read as the notebook reads its images: each of its colours is a third of the picture, with the three colours of a pixel side by side and each row of pixels cut into three lines."}}
rows, columns = torch.meshgrid(
    torch.linspace(-1, 1, 32), torch.linspace(-1, 1, 32), indexing="ij"
)
disc = ((rows - 0.1) ** 2 + columns**2 < 0.3).float()
picture = torch.stack(
    [
        0.9 * disc + 0.2 * (1 - disc),
        0.5 * disc + (0.5 - 0.3 * rows) * (1 - disc),
        0.1 * disc + 0.9 * (1 - disc),
    ]
)
scrambled = cifar.scramble(
    Data(picture.flatten()[None], torch.tensor([0])), (3, 32, 32)
).inputs.view(3, 32, 32)
figure, panels = plt.subplots(1, 2, figsize=(6, 3))
for axes, image in zip(panels, (picture, scrambled), strict=True):
    axes.imshow(image.permute(1, 2, 0))
    axes.axis("off")
plt.show()

# %% [markdown]
# Our runs of the report's design fix the statistics of the batch normalisation at those of 10,000 training images, so that there is a posterior. We *assume* that the convolutions are given: random features, the same throughout a run and drawn anew for each seed. They can then be computed once for all images, and a step costs what a step of a small network costs.
# *As reported* keeps the scrambled images and the cold noise; *its posterior* has the right colours and $T = 1$.
#
# ## All layers
#
# If convolutions are to be learned, and the result is to be a posterior, they have to be sampled like everything else. *All layers* does that, for the network 5×5 convolution to 16 channels, pooling, tanh, 5×5 convolution to 32 channels, pooling, tanh, 2048–100–10: 219,958 weights.
#
# * No normalisation. Each colour of the images is shifted and scaled to mean 0 and variance 1.
# * Priors $N(0, 1/\text{fan-in})$ for weights and $N(0, 1)$ for biases, so that signals neither grow nor die in a network drawn from the prior. With $N(0, 1)$ the hidden layer of 2,048 inputs would saturate every tanh.
# * Minibatches of 100 in shuffled passes, $\eta N = 0.05$, $\alpha = 0.1$; the first 29 passes are burn-in, 31 more are averaged. We chose rate and activation by hand, in runs of one to four passes on the first 45,000 training images, scored on 2,000 of the others. The test images had no part in it.
# * Max-pooling comes before the tanh, which is the same function at a third less work: tanh rises, so $\max\tanh = \tanh\max$.
#
# *All layers, optimised* is the same at $T = 0$, for as many steps; the table has its last network and the average along its path.

# %%
result = read_result(RESULTS / "cifar.json")
runs = {name: content["runs"] for name, content in result["methods"].items()}
uses = {name: "last" if "optimised" in name else "average" for name in runs}


def mean(values):
    return sum(values) / len(values)


def cell(values, factor=1.0, digits=3):
    spread = (
        f" ± {factor * torch.tensor(values).std():.{digits}f}"
        if len(values) > 1
        else ""
    )
    return f"{factor * mean(values):.{digits}f}{spread}"


print(
    f"{'':22} {'seeds':5} {'':8} {'accuracy %':>14} {'log loss':>14} "
    f"{'calibration':>14} {'gradients':>10} {'examples seen':>13} {'proc. s':>8}"
)
for name, content in runs.items():
    for use in ("average", "last"):
        row = [
            cell([1 - run[use]["error"] for run in content], 100, 1),
            cell([run[use]["log_loss"] for run in content]),
            cell([run[use]["calibration_error"] for run in content]),
        ]
        seen = mean(
            [run["gradient_evaluations"] * run["plan"]["batch_size"] for run in content]
        )
        costs = (
            f"{mean([run['gradient_evaluations'] for run in content]):10.0f} "
            f"{seen / 1e6:11.2f} M "
            f"{mean([run['processor_seconds'] for run in content]):8.0f}"
        )
        print(
            f"{name:22} {len(content):5} {use:8} "
            + " ".join(f"{entry:>14}" for entry in row)
            + f" {costs}"
        )

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-cifar-curves", "caption": "CIFAR-10: accuracy and log loss on the 10,000 test images against the number of training images seen (left, middle) and processor time, as a share of the run's (right). Thin: last network; thick: average since the burn-in."}}
figure, panels = plt.subplots(1, 3, figsize=(11, 3.6))
looks = {
    "all layers": (COLOURS["SGHMC"], "-"),
    "all layers, optimised": (COLOURS["SGD with momentum"], "-"),
    "as reported": (COLOURS["naive SGHMC"], "--"),
    "its posterior": (COLOURS["SGHMC"], "--"),
}
for name, content in runs.items():
    colour, style = looks[name]
    for number, run in enumerate(content):
        curve = run["curve"]
        examples = (
            run["gradient_evaluations"]
            * run["plan"]["batch_size"]
            / run["plan"]["rounds"]
        )
        at = [examples * r / 1e6 for r in curve["round"]]
        seconds = [
            run["processor_seconds"] * r / run["plan"]["rounds"] / 60
            for r in curve["round"]
        ]
        for axes, xs, row in (
            (panels[0], at, 0),
            (panels[1], at, 1),
            (panels[2], seconds, 1),
        ):
            shown = [100 * (1 - p[0]) if row == 0 else p[1] for p in curve["last"]]
            axes.plot(xs, shown, style, lw=0.7, color=colour)
            if uses[name] == "average":
                points = [
                    (x, 100 * (1 - p[0]) if row == 0 else p[1])
                    for x, p in zip(xs, curve["average"], strict=True)
                    if p is not None
                ]
                axes.plot(
                    *zip(*points, strict=True),
                    style,
                    lw=2.4,
                    color=colour,
                    label=name if number == 0 else None,
                )
            elif number == 0:
                axes.lines[-1].set_label(name)
panels[0].set(
    xlabel="training images seen (millions)", ylabel="accuracy (%)", xscale="log"
)
panels[1].set(
    xlabel="training images seen (millions)",
    ylabel="log loss (nats)",
    xscale="log",
    ylim=(0.8, 3),
)
panels[2].set(xlabel="processor minutes", ylabel="log loss (nats)", ylim=(0.8, 3))
panels[0].legend(fontsize=7)
figure.text(0.01, -0.05, who_ran(result), size=6, color="0.4")
plt.show()


# %% [markdown]
# %%
def accuracy(name, use="average"):
    """Accuracy on the test images, mean over the seeds."""
    return 1 - mean([run[use]["error"] for run in runs[name]])


# %% tags=["hide-input"]
claim(
    "Accuracy of the average, as reported",
    accuracy("as reported"),
    near=0.42,
    within=0.03,
    because="the notebook reached 0.42 with 40 times more epochs to average over",
    kind="stored",
)
claim(
    "Accuracy of the average of its posterior, less that as reported",
    accuracy("its posterior") - accuracy("as reported"),
    at_least=0.02,
    because="the stored result: right colours and the right noise",
    kind="stored",
)
claim(
    "Accuracy of the average when all layers are sampled",
    accuracy("all layers"),
    at_least=0.64,
    because="the stored result",
    kind="stored",
)
claim(
    "Log loss of the average less that of the last network, all layers",
    mean(
        [
            run["average"]["log_loss"] - run["last"]["log_loss"]
            for run in runs["all layers"]
        ]
    ),
    at_most=-0.05,
    because=(
        "the stored result: networks a pass apart differ enough to be worth averaging"
    ),
    kind="stored",
)
claim(
    "Accuracy of the average with all layers, sampled less optimised",
    accuracy("all layers") - accuracy("all layers, optimised"),
    near=0,
    within=0.03,
    because="the stored result: what helps is to learn all layers and to average",
    kind="stored",
)
claim(
    "|θ|² at the end with all layers, sampled over optimised",
    mean([run["curve"]["length"][-1] for run in runs["all layers"]])
    / mean([run["curve"]["length"][-1] for run in runs["all layers, optimised"]]),
    at_least=1.4,
    because="the stored result",
    kind="stored",
)
claim(
    "Calibration error of the last network, all layers",
    mean([run["last"]["calibration_error"] for run in runs["all layers"]]),
    at_most=0.06,
    because="the stored result: one draw knows how often it errs",
    kind="stored",
)
claim(
    "Calibration error of the average, all layers",
    mean([run["average"]["calibration_error"] for run in runs["all layers"]]),
    at_least=0.08,
    because=(
        "the stored result: the average is right more often than its members, and no "
        "surer"
    ),
    kind="stored",
)

# %% [markdown]
# As reported, the average comes within two per cent of what was published, with its three errors in it. Put the colours and the noise right, and the same two layers on the same kind of random features gain a fifth of what was missing.
# To learn the convolutions is worth far more than all of that: with every layer sampled the average is right on almost two images in three, after seeing each training image sixty times, in twelve minutes of one core.
#
# Is it the sampling? Hardly: single networks of the same walk without injected noise do as well, and their average along the path is right on nearly two images in a hundred more. The minibatches have a part in it. At the sampler's last network (seed 0) we estimated their heat $\beta/\alpha = \eta V/2\alpha$ as in {doc}`/book/bayesian_networks/mnist`: its mean over the weights is 5 in the first convolution and 4 in the output layer, 0.6 in the second convolution and 0.1 in the large layer between. Where the network is most sensitive, both walks get most of their noise from the minibatches, and the temperature changes little.
# What the injected noise does show is the length of the weights, which in the sampler's chain is about twice as large, squared.
#
# Look at the calibration. A single draw is right on little more than half of the images, and says so. The average of 31 draws is right much more often, but only as sure as its members are: it is too cautious, like that of {doc}`/book/bayesian_networks/digits`.
# The optimiser's average is as cautious, so it is not the temperature: what does it is averaging: members that are calibrated and err on different images make an average that is right more often than it says.
#
# The single networks of *all layers* have nearly come to rest after a dozen passes ({numref}`fig-cifar-curves`); what still grows is the average over them. It is no posterior expectation all the same, for with minibatches of a hundred the stiff directions are heated ({doc}`/book/bayesian_networks/fashion_and_steps`): the mean square of the momentum, which should be 1, is 3.5 in the first convolution and 5 in the output layer at the end of the run with seed 0. A longer run would not mend that; larger minibatches, smaller steps or more friction would, each at a price.
#
# ## Published against ours
#
# | | published {cite:p}`adamday` | ours |
# | --- | --- | --- |
# | layers | two convolutions of 3×3 to 32 and 16 channels, random and fixed; two Bayesian linear layers | the same; and all four sampled, 5×5 to 16 and 32 |
# | images | scrambled | scrambled; and right |
# | batch normalisation | by the minibatch when sampling, running averages when predicting | fixed statistics; and none |
# | noise | $T = 2\cdot10^{-8}$ | the same; and $T = 1$ |
# | epochs | 150 of warm-up and 800 | 150 and 20; all layers: 29 and 31 |
# | prediction | votes drawn from 100 networks an epoch | probabilities of one network an epoch |
# | test accuracy | 0.42 | the table above |
#
# ## Live: digits through the same network
#
# The 5,000 digits are images of one colour and 28×28 pixels. The network has 8 and 16 channels here; we sample all its layers without normalisation and with group normalisation, and optimise them, in six passes over 4,000 digits ({numref}`fig-cifar-live`).

# %%
with TemporaryDirectory() as folder:
    prepared = cifar.prepare(Options(data=Path(), runs=Path(folder), small=True))
settings = cifar.settings(prepared, small=True)
plans = {name: choices[0] for name, choices in settings.items()}
train, test = cifar.standardise(prepared.train, prepared.test, 1)
live = {}
for name, plan, normalisation in (
    ("SGHMC", plans["all layers"], None),
    ("SGHMC, group normalisation", plans["all layers"], "group"),
    ("SGD with momentum", plans["all layers, optimised"], None),
):
    network = convolutional_network(
        prepared.shape,
        channels=(8, 16),
        kernel_size=5,
        normalisation=normalisation,
    )
    short = replace(plan, rounds=6, burn_in=3, record_every=1)
    live[name] = Run(short, network, train, test).go(progress=False)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-cifar-live", "caption": "Run while this page was built: error on 1,000 test digits, of the last network (thin) and of the average over the last three passes (thick)."}}
figure, axes = plt.subplots(figsize=(6.4, 3.4))
for name, run in live.items():
    curve, style = run["curve"], "--" if "group" in name else "-"
    colour = COLOURS[name.split(",")[0]]
    axes.plot(
        curve["round"],
        [100 * error for error, _ in curve["last"]],
        style,
        lw=0.8,
        color=colour,
        label=name,
    )
    if "SGHMC" in name:
        points = [
            (r, 100 * p[0])
            for r, p in zip(curve["round"], curve["average"], strict=True)
            if p is not None
        ]
        axes.plot(*zip(*points, strict=True), style, lw=2.4, color=colour)
axes.set(xlabel="pass", ylabel="test error (%)", yscale="log")
axes.legend(fontsize=8)
plt.show()

# %% tags=["hide-input"]
for name in ("SGHMC", "SGHMC, group normalisation"):
    claim(
        f"Live: test error of {name}",
        live[name]["average"]["error"],
        at_most=0.09,
        because="it was 0.044 to 0.055 with three seeds",
    )
claim(
    "Live: log loss with group normalisation less that without",
    live["SGHMC, group normalisation"]["average"]["log_loss"]
    - live["SGHMC"]["average"]["log_loss"],
    near=0,
    within=0.1,
    because=(
        "it was -0.03 to -0.01 with three seeds: four layers do not need a "
        "normalisation"
    ),
)
claim(
    "Live: calibration error of SGHMC",
    live["SGHMC"]["average"]["calibration_error"],
    at_least=0.08,
    because=(
        "it was 0.15 to 0.17: six passes and a prior that holds the logits small "
        "leave it too cautious"
    ),
)

# %% [markdown]
# ## In practice
#
# * Before you sample a network, ask of each layer whether it looks at one example at a time.
# * To keep a trained network's batch normalisation, fix its statistics, `module.eval()`, and sample the rest.
# * Look at what goes into the network: draw one image from the tensor that the first layer sees.
# * List what is sampled, with sizes, and compare their sum with the number of weights.
# * Scale the priors by the fan-in; with $N(0, 1)$ everywhere a wide layer saturates.
# * A step of the sampler on a convolutional network costs about a tenth more than the gradient by itself, as measured on the networks of this chapter: momentum, noise and the cutting of the position into weights.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-cifar-batch-of-one
#
# What does batch normalisation of a linear layer's output do with a minibatch of one example, and with one of two?
# ```
#
# ```{solution} ex-cifar-batch-of-one
# :class: dropdown
#
# With one, $z_1 = \mu_S$ and $\hat z_1 = 0$: the example vanishes. With two, $\hat z = \pm1$ (for $\epsilon \to 0$): only *which of the two is larger* is left, in every channel. The likelihood is a ranking of pairs, a very different model from that of $n = 500$.
# ```
#
# ```{exercise}
# :label: ex-cifar-posterior-predictive
#
# Somebody proposes to predict with batch statistics too, putting the new image into a minibatch of training images. Write down the predictive distribution. Is it invariant to the order of the data? What about two new images at once?
# ```
#
# ```{solution} ex-cifar-posterior-predictive
# :class: dropdown
#
# $P(y \mid x) = \mathbb E_{S}\,\mathbb E_{\theta\sim e^{-U_n}}\,p(y \mid x; S\cup\{x\}, \theta)$ averages over random company, so that the order of the data does not matter. But the joint prediction for two new images depends on whether they are shown together, and marginalising one of them does not give the prediction for the other alone: the predictions are not those of any one model of images and labels.
# ```
#
# ```{exercise}
# :label: ex-cifar-chi
#
# A convolution of 3×3 on 32 channels has $k = 288$ weights a channel, behind a group normalisation. By which factor does the prior variance $\tau^2 = 1$ change the step on the sphere of directions against $\tau^2 = 1/k$?
# ```
#
# ```{solution} ex-cifar-chi
# :class: dropdown
#
# $\lvert w\rvert^2$ is near $k\tau^2$: 288 against 1, so the step $\eta/\lvert w\rvert^2$ is 288 times smaller. The posterior over directions is the same, and the chain explores it 288 times more slowly.
# ```
#
# ```{exercise}
# :label: ex-cifar-enumerate
#
# Repeat the enumeration with the running averages of {prf:ref}`def-cifar-batch` fixed at the statistics of all six images. Is the minibatch gradient unbiased now, and is it the gradient of the batch-normalised $U_6$?
# ```
#
# ```{solution} ex-cifar-enumerate
# :class: dropdown
#
# With `network.eval()` it is unbiased, to rounding, for the potential with these statistics fixed. Its value is that of $U_6$ at this $\theta$, its gradient is not: in $U_6$ the statistics move with $\theta$.
# ```
#
# ## Further reading
#
# {cite:t}`ioffe2015` for batch normalisation, {cite:t}`wu2018` and {cite:t}`singh2020` for what can replace it, {cite:t}`vanlaarhoven2017` for weight decay behind it, {cite:t}`izmailov2021` and {cite:t}`wenzel2020` for posteriors of large convolutional networks.
