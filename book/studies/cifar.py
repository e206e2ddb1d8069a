# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # CIFAR-10, and what batch normalisation does to a posterior
#
# ```{div} page-head
# Level: second course · Reading: about 68 minutes, without the exercises · Running: about 15 seconds
# ```
#
# This chapter samples a convolutional network for colour images, all four layers of it, and shows why one popular layer has no place in a posterior.
#
# **You will learn** to
#
# * show by enumeration that batch normalisation biases a minibatch gradient, and name the potential whose gradient it is,
# * prove that behind a normalisation the prior's width is a learning rate,
# * choose what to put in its place,
# * find out from an experiment's code what it really sampled,
# * sample all layers of a convolutional network, and say what the sampling itself gains.
#
# **You will need** {doc}`/book/tutorial/digits` and {doc}`/book/tutorial/minibatch_noise`.

# %%
import itertools
import textwrap

import matplotlib.pyplot as plt
import torch
from torch.func import functional_call
from torch.nn import functional

from booklib.data import Data, digits, scramble, standardise
from booklib.models.networks import convolutional_network
from booklib.page.claims import claim
from booklib.page.figures import COLOURS, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.plans import Hamiltonian, Plan, Prior
from booklib.runs.results import RESULTS, read_result, who_ran
from booklib.runs.run import Run
from sgmc.posteriors import NetworkPosterior
from sgmc.splittings import sghmc_chain

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
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
# So what the network says of an image $x_i$ depends on the other images of its {term}`minibatch`, its *company*.
# Write $\ell_i(\theta; S)$ for the log-probability of the label $y_i$ when $x_i$ is shown in the company of $S$, and $N$ for the number of all examples.
# There is no $p(y_i \mid x_i, \theta)$ any more, and the {term}`likelihood` is no product over examples.
# A program can still compute $-\log p(\theta) - \frac Nn\sum_{i\in S}\ell_i(\theta; S)$ and its gradient.
# Of which potential is that an unbiased estimate?
#
# ```{prf:theorem} A potential for every batch size
# :label: thm-cifar-potential
#
# Let $S$ be uniform among the minibatches of $n$ examples. The mean of the batch-normalised minibatch gradient is the gradient of
#
# $$
# \begin{aligned}
# U_n(\theta) ={} &{-\log p(\theta)} \\
# &- \frac Nn\,\mathbb E_S\Bigl[\sum_{i\in S}\ell_i(\theta; S)\Bigr].
# \end{aligned}
# $$ (eq-cifar-potential)
#
# If $\ell_i(\theta; S) = \ell_i(\theta)$ does not depend on the company, $U_n = U$ for all $n$. Otherwise $U_n$ depends on $n$ in general.
# ```
#
# ```{prf:proof}
# There are finitely many minibatches, so the mean of the gradients is the gradient of the mean.
# If the company does not matter, each example is in $S$ with probability $n/N$, and the mean of the sum is $\frac nN\sum_i\ell_i(\theta)$; the factor $\frac Nn$ cancels.
# That $U_n$ otherwise depends on $n$ is shown by the example below.
# ```
#
# A sampler that uses these gradients is therefore not wrong about a {term}`posterior`.
# It is right, up to its usual errors, about the density $e^{-U_n}$, in which the size of the minibatch is part of the model.
# This density says nothing of a single new image, for which there is no company, and it changes when $n$ does.
#
# How large is the effect?
# We take six images of random numbers and a network of 79 weights, and compute the gradient in *all* minibatches of $n$ = 2 to 6.
# The *bias* is their mean less the gradient of all six images.

# %%
generator = torch.Generator().manual_seed(0)
images = torch.randn(6, 16, generator=generator, dtype=DOUBLE)
labels = torch.arange(6) % 3


def tiny(normalisation):
    """A network for 4×4 images, with the same 79 weights and biases whatever the
    normalisation, which scales by one and shifts by zero."""
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
    parts = torch.autograd.grad(energy, list(weights.values()))
    return torch.cat([part.flatten() for part in parts])


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

# %% mystnb={"figure": {"caption": "Length of the minibatch gradient's bias over that of the full gradient, by enumeration of all minibatches of $n$ of six images. Without normalisation and with group normalisation it is rounding error. At $n = 6$ there is one minibatch only.", "name": "fig-cifar-bias"}, "image": {"alt": "Three lines against the minibatch size from 2 to 6 on a logarithmic axis. With batch normalisation the bias is near a tenth for two to five images, and vanishes at six; the two others lie near ten to the minus sixteen throughout."}} tags=["hide-input"]
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
axes.legend(fontsize=9, loc="center left")
plt.show()

# %% [markdown]
# {numref}`fig-cifar-bias` shows all sizes: with batch normalisation every minibatch but the one of all six has a biased gradient, while group normalisation, which looks at one image at a time, does no harm.

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

# %% [markdown]
# With larger images and more of them in a minibatch, its statistics fluctuate less, and we expect a smaller bias.
# But the gradient of a single example still does not exist, and the estimates of {doc}`/book/tutorial/estimating_the_noise` need it.
# So the package refuses a network with batch normalisation:

# %%
try:
    NetworkPosterior(
        convolutional_network((1, 4, 4), normalisation="batch"), images.float(), labels
    )
except ValueError as error:
    print(textwrap.fill(str(error), 80))

# %% [markdown]
# ## Behind a normalisation, a prior is a learning rate
#
# Normalisation has a second effect, which group normalisation shares: the length of the weights before it no longer matters to the likelihood.
#
# ```{prf:theorem} Scale invariance
# :label: thm-cifar-scale
#
# Let $w \in \mathbb R^k$ be the weights of one channel (for group normalisation, of one group of channels) of a layer without bias that feeds a normalisation with $\epsilon = 0$, let $L(w)$ be the negative log-likelihood as a function of them, and $w \sim N(0, \tau^2I)$. Then
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
# So the one thing that such a {term}`prior` says, $\tau$, says nothing about the predictions.
# What it does is to hold $\lvert w\rvert^2$ near $k\tau^2$.
# By part 3 the sampler then moves on the sphere of directions with the step $\eta/k\tau^2$: the prior has become a {term}`learning rate`.
# In an optimiser weight decay does the same {cite:p}`vanlaarhoven2017`.
#
# We check part 1 on the tiny network with group normalisation and $\epsilon = 0$: the gradient in the first convolution is orthogonal to the weights, and at three times the weights it is a third.

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
# `convolutional_network` offers the first for demonstration, and group normalisation and none for use.
# With four layers, and weights whose prior variance is one over the *fan-in*, the number of inputs of a unit, a network does without; we run both below.

# %% [markdown]
# ## An experiment's code before its numbers
#
# {cite:t}`adamday` show that their implementation "can be used with" convolutional networks, on the images of CIFAR-10 {cite:p}`krizhevsky2009` (p. 11–12, Figure 7b), and find that SGHMC "performed very well" (p. 17).
# Its network has two 3×3 convolutions to 32 and 16 channels, each with batch normalisation, tanh and max-pooling, and then Bayesian linear layers 1024–100–10 with $N(0, 1)$ priors.
# It is sampled by SGHMC with $\eta = 10^{-6}$, $\alpha = 0.01$ and 150 epochs of {term}`warm-up`, and reached an accuracy of 0.42 after 800 more: the figure's curve ends near an error of 0.58, and the notebook of their program says 0.4195.
# Below, a network with two convolutions reaches 0.65.
# Three reasons for much of the difference stand in the notebook's code (`bnn/conv-bnn.ipynb` at `2ef7428`; {doc}`/book/appendix/errata`).
#
# * **The convolutions are not trained.** They are plain parameters of the module, and the sampler asks the probabilistic program for its *random variables* only. No optimiser is ever made. So their first random weights stay, and what is sampled is a two-layer network on random features.
# * **The images are scrambled.** The array that the notebook reads holds an image pixel by pixel, three colours each. The notebook reshapes it to (colour, row, column) without moving the axis of the colours. {numref}`fig-cifar-scramble` shows what becomes of a picture: a mosaic in which no shape is left.
# * **The noise is that of a {term}`temperature` of** $2\cdot10^{-8}$, for a variance was passed as a standard deviation: {prf:ref}`thm-fashion-reported`.
#

# %% mystnb={"figure": {"caption": "A made-up picture of $32 \\times 32$ pixels, and the same numbers read as the notebook reads its images: each of its colours is a third of the picture, with the three colours of a pixel side by side and each row of pixels cut into three lines.", "name": "fig-cifar-scramble"}, "image": {"alt": "Left, an orange disc on a background that fades from green to blue. Right, a mosaic of small squares in all colours, in which no disc can be made out."}} tags=["hide-input"]
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
scrambled = scramble(
    Data(picture.flatten()[None], torch.tensor([0])), (3, 32, 32)
).inputs.view(3, 32, 32)
figure, panels = plt.subplots(1, 2, figsize=(5.4, 2.8))
for axes, image in zip(panels, (picture, scrambled), strict=True):
    axes.imshow(image.permute(1, 2, 0))
    axes.axis("off")
plt.show()

# %% [markdown]
# Our runs of the report's design fix the statistics of the batch normalisation at those of 10,000 training images, so that there is a posterior.
# The convolutions are random features: the same throughout a run, and drawn anew for each seed.
# They are computed once for all images, so that a step costs what a step of a small network costs.
# *As reported* keeps the scrambled images and the cold noise; *its posterior* has the right colours, $T = 1$, and shuffled passes in place of fresh minibatches.
#
# ## All layers
#
# If convolutions are to be learned, and the result is to be a posterior, they have to be sampled like everything else.
# *All layers* does that.
# Its network is a 5×5 convolution to 16 channels, pooling, tanh; a 5×5 convolution to 32 channels, pooling, tanh; and linear layers 2048–100–10: 219,958 weights.
#
# * No normalisation. Each colour of the images is shifted and scaled to mean 0 and variance 1.
# * Priors $N(0, 1/\text{fan-in})$ for weights and $N(0, 1)$ for biases, so that signals neither grow nor die in a network drawn from the prior. With $N(0, 1)$ the hidden layer adds up 2,048 inputs with weights of size one, and most of its tanh saturate.
# * Minibatches of 100 in shuffled passes, $\eta N = 0.05$, $\alpha = 0.1$; the first 29 passes are warm-up, and the networks at the end of the 31 others are averaged. We chose rate and activation by hand, in runs of one to four passes on the first 45,000 training images, scored on 2,000 of the others. The test images had no part in it.
#
# Three walks stand beside it, for as many passes. *Convolutions held* is the same network and chain, but its convolutions keep weights drawn from their prior. *All layers, optimised* is the same walk without injected noise, $T = 0$, at the rate that was chosen for the sampler. *Falling rate* is an optimiser as one would run it: from that rate down to zero by half a cosine.
# The tables have, for each walk, the last network and the average of the networks along the path since the warm-up, as means over the seeds, with their standard deviation where there are several.
# All settings: {doc}`/book/appendix/settings`.

# %% tags=["hide-input"]
result = read_result(RESULTS / "cifar.json")
runs = {name: content["runs"] for name, content in result["methods"].items()}


def mean(values):
    return sum(values) / len(values)


def cell(values, factor=1.0, digits=3):
    """Mean of the seeds, and their standard deviation if there are several."""
    middle = f"{factor * mean(values):.{digits}f}"
    if len(values) == 1:
        return middle
    return f"{middle} ± {factor * float(torch.tensor(values).std()):.{digits}f}"


# %% tags=["hide-input"]
rows = []
for name, content in runs.items():
    for use in ("average", "last"):
        rows.append(
            [
                f"{name}, {'average' if use == 'average' else 'last network'}",
                cell([1 - run[use]["error"] for run in content], 100, 1),
                cell([run[use]["log_loss"] for run in content]),
                cell([run[use]["calibration_error"] for run in content]),
            ]
        )
show_table(["walk and prediction", "accuracy, %", "log loss", "calibration"], rows)

# %% tags=["hide-input"]
rows = []
for name, content in runs.items():
    gradients = [run["gradient_evaluations"] for run in content]
    size = content[0]["plan"]["batch_size"]
    minutes = mean([run["processor_seconds"] for run in content]) / 60
    seen = f"{mean(gradients) * size / 1e6:.1f}"
    rows.append([name, f"{mean(gradients):,.0f}", seen, f"{minutes:.1f}"])
show_table(["walk", "gradients", "images seen, millions", "processor minutes"], rows)
print(f"Seeds: {min(map(len, runs.values()))}.")
print(who_ran(result))

# %% mystnb={"figure": {"caption": "CIFAR-10: accuracy and log loss on the 10,000 test images against the number of training images seen. Thin: the last network, a line for each seed. Thick: the average since the warm-up.", "name": "fig-cifar-curves"}, "image": {"alt": "Two panels, one above the other, over millions of training images. In accuracy the averages as reported end at 40 to 42 per cent, those of the held convolutions at 45 to 49, its posterior at 57 to 58; the thin lines of the two walks of all layers at a constant rate wander about 56, and their thick averages climb to 65 and 67; the dotted line of the falling rate ends highest, at 74. In log loss the order is the reverse, and the falling rate ends lowest."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 1, figsize=(6.4, 6.4), sharex=True)
looks = {
    "all layers": (COLOURS["SGHMC"], "-"),
    "all layers, optimised": (COLOURS["SGD with momentum"], "-"),
    "all layers, falling rate": (COLOURS["SGD with momentum"], ":"),
    "convolutions held": (COLOURS["SGLD"], "-."),
    "as reported": (COLOURS["naive SGHMC"], "--"),
    "its posterior": (COLOURS["HMC"], "--"),
}
for name, (colour, style) in looks.items():
    for number, run in enumerate(runs[name]):
        curve, plan = run["curve"], run["plan"]
        examples = run["gradient_evaluations"] * plan["batch_size"] / plan["rounds"]
        at = [examples * passes / 1e6 for passes in curve["round"]]
        for row, axes in enumerate(panels):

            def shown(point, row=row):
                return 100 * (1 - point[0]) if row == 0 else point[1]

            axes.plot(
                at, [shown(p) for p in curve["last"]], style, lw=0.6, color=colour
            )
            later = [
                (x, shown(p))
                for x, p in zip(at, curve["average"], strict=True)
                if p is not None
            ]
            label = name if number == 0 else None
            axes.plot(
                *zip(*later, strict=True), style, lw=2.2, color=colour, label=label
            )
panels[0].set(ylabel="accuracy (%)", xscale="log")
panels[1].set(
    xlabel="training images seen (millions)", ylabel="log loss (nats)", ylim=(0.7, 3)
)
panels[1].legend(loc="upper left")
plt.show()

# %% [markdown]
# {numref}`fig-cifar-curves` shows the six walks.
# As reported, with the three errors in it, the average comes to 41.7 per cent, between 40.1 and 42.4 with five seeds; 41.95 was published.
# Put the colours and the noise right, with shuffled passes in place of fresh minibatches, and the same network on random features gains a quarter of what was missing to 100 per cent.
# The network of all layers is right on almost two images in three, after seeing each training image sixty times instead of 950 times.
# Its learned convolutions are worth 18 points: *convolutions held*, the same network and the same passes with convolutions that keep what the prior drew, comes to 46.9.

# %% tags=["hide-input"]


def accuracy(name, use="average"):
    """Accuracy on the test images, mean over the seeds."""
    return 1 - mean([run[use]["error"] for run in runs[name]])


def over_seeds(name, use, score):
    """A score of a walk, mean over the seeds."""
    return mean([run[use][score] for run in runs[name]])


corrected = accuracy("its posterior") - accuracy("as reported")
both = [
    (one["average"]["error"] - other["average"]["error"])
    for one, other in zip(
        runs["all layers"], runs["all layers, optimised"], strict=True
    )
]
seeds = "the stored result"
for statement, value, near, within in (
    ("Accuracy of the average, as reported", accuracy("as reported"), 0.4195, 0.01),
    ("Accuracy gained by right colours and noise", corrected, 0.155, 0.01),
    (
        "The same, as a share of what was missing",
        corrected / (1 - accuracy("as reported")),
        0.266,
        0.02,
    ),
    (
        "Accuracy that learned convolutions gain",
        accuracy("all layers") - accuracy("convolutions held"),
        0.181,
        0.015,
    ),
    (
        "Accuracy of the average when all layers are sampled",
        accuracy("all layers"),
        0.651,
        0.005,
    ),
):
    claim(statement, value, near=near, within=within, because=seeds, kind="stored")

# %% [markdown]
# Is it the sampling?
# No: the same walk without injected noise does better, at a rate that was tuned for the sampler and not for it. The average along its path is right on some one and a half images in a hundred more.
# And an optimiser as one would run it does far better: *falling rate* begins at the same rate, which falls to zero by half a cosine. In as many passes its *last network* is right on three images in four, with a smaller log loss than any average here.
# The author of the paper's code reports the like of CIFAR and ImageNet: sampling "is harder to catch up with optimization methods due to larger variance bought by sampling" {cite:p}`chencode`.
# What the injected noise does show is the length of the weights: $\lvert\theta\rvert^2$ is 1.7 times as large in the sampler's chain.

# %% tags=["hide-input"]
for statement, value, near, within in (
    (
        "Error of the average, sampled less optimised, all layers",
        mean(both),
        0.016,
        0.005,
    ),
    (
        "Accuracy of the last network with a falling rate",
        accuracy("all layers, falling rate", "last"),
        0.743,
        0.008,
    ),
    (
        "The same less that of the sampler's average",
        accuracy("all layers, falling rate", "last") - accuracy("all layers"),
        0.09,
        0.01,
    ),
    (
        "|θ|² at the end with all layers, sampled over optimised",
        mean([run["curve"]["length"][-1] for run in runs["all layers"]])
        / mean([run["curve"]["length"][-1] for run in runs["all layers, optimised"]]),
        1.7,
        0.05,
    ),
):
    claim(statement, value, near=near, within=within, because=seeds, kind="stored")
claim(
    "Log loss of the last network with a falling rate less the smallest of an average",
    over_seeds("all layers, falling rate", "last", "log_loss")
    - min(over_seeds(name, "average", "log_loss") for name in runs),
    at_most=-0.03,
    because=seeds,
    kind="stored",
)

# %% [markdown]
# Look at the {term}`calibration`.
# A single draw is right on little more than half of the images, and says so.
# The average of 31 draws is right much more often, but only as sure as its members are: it is too cautious, like that of {doc}`/book/tutorial/digits`.
# The optimiser's average is just as cautious, so the cause is averaging, not temperature: members that are calibrated and err on different images make an average that is right more often than it says.
#
# In the second half of a run the single networks of *all layers* do not get better that one could measure; the average, which begins there as a single network, gains about ten points.
# It is no posterior expectation all the same.
# With minibatches of a hundred, the noise of the minibatches heats the directions in which the energy is steep ({doc}`/book/studies/mnist`), and a longer run would not change that.
# Larger minibatches, smaller steps and more friction would. They are one remedy, with one price.
#
# ```{prf:theorem} What a pass moves, and what it heats
# :label: thm-cifar-heat
#
# Let a coordinate's gradient have the variance $\sigma^2$ over the $N$ examples, let minibatches of $n$, small against $N$, be drawn afresh, and put
#
# $$
# \kappa = \frac\eta\alpha\,\frac Nn .
# $$ (eq-cifar-kappa)
#
# A pass of $N/n$ steps of SGHMC takes a coordinate that the prior alone holds, with the precision $\lambda$, towards its mean by the factor $e^{-\kappa\lambda}$, and heats each coordinate by $\tfrac12\kappa N\sigma^2$, in units of the temperature; to first order in $\eta$.
# ```
#
# ```{prf:proof}
# Where the force is $-\lambda\theta$, the velocity settles at $-\eta\lambda\theta/\alpha$ a step, and $(1 - \eta\lambda/\alpha)^{N/n} \to e^{-\kappa\lambda}$.
# The minibatch gradient is $N/n$ times a sum over $n$ examples, so its variance is $V = N^2\sigma^2/n$, and a coordinate is heated by $\eta V/2\alpha = \tfrac12\frac\eta\alpha\frac NnN\sigma^2$.
# ```
#
# The exact law of the chain says the same.
# Four settings with $\kappa = 0.005$, that of *all layers*, on $U = \tfrac12\theta^2$ with $N = 50{,}000$ examples and $\sigma^2 = 0.004$: after 200 passes $e^{-1}$ of the start is left, and the variance is that of the temperature 1.5.

# %%
N, variance, passes = 50_000, 0.004, 200
left, temperature = [], []
for rate, decay, n in (
    (1e-6, 0.1, 100),
    (4e-6, 0.1, 400),
    (2e-6, 0.2, 100),
    (2.5e-7, 0.1, 25),
):
    step_size = rate**0.5
    chain = sghmc_chain(
        torch.eye(1, dtype=DOUBLE), step_size, decay / step_size, N**2 * variance / n
    )
    temperature.append(float(chain.stationary_covariance()[0, 0]))
    move = torch.linalg.matrix_power(chain.transition.double(), passes * N // n)
    left.append(float(move[0, 0]))

# %% tags=["hide-input"]
for values, near, what in (
    (left, 0.368, "Share of the start that is left after 200 passes"),
    (temperature, 1.5, "Variance in the steady state"),
):
    for value, most in ((min(values), "least"), (max(values), "largest")):
        claim(
            f"{what}, the {most} of four settings",
            value,
            near=near,
            within=0.001,
            because="the exact law; κ and the heat are the same in all",
            kind="exact",
        )

# %% [markdown]
# For a given number of passes no choice of $\eta$, $\alpha$ and $n$ buys less heat but by moving less.
# What is left is to take more passes with a smaller $\kappa$ once the chain has arrived, or to estimate the noise and inject so much less ({doc}`/book/tutorial/estimating_the_noise`), which works where the heat is below one.
# [Below](#five-times-as-many-passes) we take the first to five times as many passes.

# %% tags=["hide-input"]
for statement, value, near, within in (
    (
        "Accuracy of the last network, all layers",
        accuracy("all layers", "last"),
        0.543,
        0.015,
    ),
    (
        "Log loss of the average less that of the last network, all layers",
        over_seeds("all layers", "average", "log_loss")
        - over_seeds("all layers", "last", "log_loss"),
        -0.2,
        0.03,
    ),
    (
        "Calibration error of the last network, all layers",
        over_seeds("all layers", "last", "calibration_error"),
        0.036,
        0.02,
    ),
    (
        "Calibration error of the average, all layers",
        over_seeds("all layers", "average", "calibration_error"),
        0.158,
        0.006,
    ),
    (
        "Calibration error of the average, all layers, optimised",
        over_seeds("all layers, optimised", "average", "calibration_error"),
        0.158,
        0.006,
    ),
):
    claim(statement, value, near=near, within=within, because=seeds, kind="stored")
for score in ("last", "average"):
    curves = torch.tensor(
        [
            [error for error, _ in (point for point in run["curve"][score][-16:])]
            for run in runs["all layers"]
        ]
    )
    falls = curves[:, 0] - curves[:, -1]
    claim(
        f"Fall of the error over the second half of the run, {score}, all layers",
        falls.mean(),
        **({"at_least": 0.085} if score == "average" else {"at_most": 0.02}),
        because=seeds,
        kind="stored",
    )

# %% [markdown]
# ## Five times as many passes
#
# *All layers, cooled* has 300 passes in place of 60. Over the first 150 its $\eta$ falls by half a cosine to a sixteenth, and stays there; the networks after the others are averaged.
# In the second half $\kappa$ is 0.0003, and fresh minibatches would heat a coordinate by a sixteenth of what they did, as long as $\sigma^2$ is the same; passes, as here, heat slow coordinates less ({prf:ref}`thm-mnist-passes`), so that the heats below are upper values.
# Beside it stands the optimiser whose rate falls to zero, over 300 passes too.

# %% tags=["hide-input"]
longer_result = read_result(RESULTS / "cifar_hour.json")
longer = {
    name: content["runs"][0] for name, content in longer_result["methods"].items()
}
walks_beside = {
    "all layers, 60 passes": runs["all layers"][0],
    "all layers, cooled, 300": longer["all layers, cooled"],
    "falling rate, 60 passes": runs["all layers, falling rate"][0],
    "falling rate, 300": longer["all layers, falling rate"],
}
rows = []
for name, run in walks_beside.items():
    for use in ("average", "last"):
        rows.append(
            [
                f"{name}, {'average' if use == 'average' else 'last network'}",
                cell([1 - run[use]["error"]], 100, 1),
                cell([run[use]["log_loss"]]),
                cell([run[use]["calibration_error"]]),
            ]
        )
show_table(["walk and prediction", "accuracy, %", "log loss", "calibration"], rows)

# %% tags=["hide-input"]
layers = longer["all layers, cooled"]["heat"]
names = ("first convolution", "second convolution", "large layer", "last layer")
rows = [
    [name, *(f"{run['heat'][layer]:.2f}" for run in list(walks_beside.values())[:2])]
    for name, layer in zip(names, layers, strict=True)
]
show_table(["heat of the sampler's last network", "60 passes", "cooled, 300"], rows)
minutes = mean([run["processor_seconds"] for run in longer.values()]) / 60
print(f"One seed; {minutes:.0f} minutes of the processor for each of the longer runs.")
print(who_ran(longer_result))

# %% mystnb={"figure": {"caption": "CIFAR-10: accuracy on the test images against passes, for 60 (dashed) and 300 passes (solid), one seed. Thin: the last network. Thick: the average since the warm-up. The sampler's single networks get better chiefly from pass 50 to pass 150; its rate falls from the start to pass 150.", "name": "fig-cifar-longer"}, "image": {"alt": "Accuracy against passes. Up to pass 60 all thin lines wander about 55 per cent, but that of the optimiser whose rate has fallen by then, at 74. The sampler's thin line over 300 passes rises from 55 to 70 per cent between passes 50 and 150 and is flat after that, and its thick line is flat near 74. The optimiser's rises from pass 100 to the end, to 76, with its thick line close below."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.4, 4))
for name, run in walks_beside.items():
    colour = COLOURS["SGHMC" if name.startswith("all") else "SGD with momentum"]
    style, curve = "--" if "60" in name else "-", run["curve"]
    for use, width in (("last", 0.6), ("average", 2.2)):
        points = [
            (passes, 100 * (1 - point[0]))
            for passes, point in zip(curve["round"], curve[use], strict=True)
            if point is not None
        ]
        label = name if use == "average" else None
        axes.plot(
            *zip(*points, strict=True), style, lw=width, color=colour, label=label
        )
axes.set(xlabel="passes", ylabel="accuracy (%)")
axes.legend(loc="lower right")
plt.show()

# %% [markdown]
# It seems to be the heat that was in the way, not the number of passes ({numref}`fig-cifar-longer`); one seed, without 300 passes at the first rate, does not prove it; another seed of the sampler and the optimiser would take three and a half hours of a processor.
# From pass 10 to pass 50, while the rate falls to three quarters of the first, the sampler's single networks get better by two points at most.
# While it falls further they get better by fourteen points in a hundred, and stay there with the rate.
# Their average gains nine points over that of 60 passes, with half of its calibration error.
#
# Three limits stay.
# The optimiser, with as many passes, has a single network that is right on two images in a hundred more, and a smaller log loss.
# The first convolution is still heated by more than the temperature itself: a sixteenth of the rate has not made a sixteenth of its heat, for the gradients there vary more where the chain is now.
# And smaller steps have their price: at $\kappa = 0.0003$ a weight of the first convolution that the prior alone holds, with $\lambda = 75$, forgets all but $e^{-1}$ of its place in 43 passes, so that 150 passes bring few independent draws of it.

# %% tags=["hide-input"]
cooled, falling = longer["all layers, cooled"], longer["all layers, falling rate"]
at_first = [
    error
    for passes, (error, _) in zip(
        cooled["curve"]["round"], cooled["curve"]["last"], strict=True
    )
    if 10 <= passes <= 50
]
before, plan = runs["all layers"][0], cooled["plan"]
steps_a_pass = cooled["gradient_evaluations"] / plan["rounds"]
rate = plan["learning_rate"] * plan["cooled"]
kappa = rate / plan["momentum_decay"] * steps_a_pass
because = "the stored result, one seed"
for statement, value, bound in (
    (
        "Errors of the last network from pass 10 to 50, mean of the later half less "
        "that of the earlier",
        mean(at_first[len(at_first) // 2 :]) - mean(at_first[: len(at_first) // 2]),
        {"near": 0, "within": 0.02},
    ),
    (
        "Accuracy of the last network after 300 passes less its mean up to pass 50",
        mean(at_first) - cooled["last"]["error"],
        {"near": 0.14, "within": 0.015},
    ),
    (
        "Accuracy of the average, 300 passes less 60",
        before["average"]["error"] - cooled["average"]["error"],
        {"near": 0.087, "within": 0.008},
    ),
    (
        "Calibration error of the average, 300 passes over 60",
        cooled["average"]["calibration_error"] / before["average"]["calibration_error"],
        {"near": 0.54, "within": 0.05},
    ),
    (
        "Accuracy of the optimiser's last network less that of the sampler's average",
        cooled["average"]["error"] - falling["last"]["error"],
        {"near": 0.02, "within": 0.006},
    ),
    (
        "Log loss of the optimiser's last network less that of the sampler's average",
        falling["last"]["log_loss"] - cooled["average"]["log_loss"],
        {"at_most": -0.05},
    ),
    (
        "Heat of the first convolution after 300 passes",
        cooled["heat"]["1.weight"],
        {"near": 1.54, "within": 0.1},
    ),
    (
        "Passes that leave 1/e, of a weight of the first convolution: 1/κλ",
        1 / (kappa * cooled["curve"]["precisions"][-1][0]),
        {"near": 42.7, "within": 0.1},
    ),
):
    claim(statement, value, **bound, because=because, kind="stored")

# %% [markdown]
# ## Published against ours
#
# | | published {cite:p}`adamday` | ours |
# | --- | --- | --- |
# | layers | two convolutions of 3×3 to 32 and 16 channels, random and fixed; two Bayesian linear layers | the same; and all four sampled, 5×5 to 16 and 32 |
# | images | scrambled | scrambled; and right |
# | batch normalisation | by the minibatch when sampling, running averages when predicting | fixed statistics; and none |
# | noise | $T = 2\cdot10^{-8}$ | the same; and $T = 1$ |
# | start | uniform on $(-2, 2)$ | the same; all layers: $N(0, 1/\text{fan-in})$ |
# | epochs | 150 of warm-up and 800 | the same; all layers: 29 and 31, and 150 and 150 |
# | prediction | votes drawn from 100 networks an epoch | probabilities of one network an epoch |
# | test accuracy | 0.42 | 0.42; 0.57 with colours and noise put right; 0.65 with all layers sampled, 0.74 in five times as many passes with a rate that falls; 0.74 and 0.76 by an optimiser whose rate falls, in 60 and in 300 passes |
#
# ## Live: digits through the same network
#
# The 5,000 digits are images of one colour and 28×28 pixels.
# The network has 8 and 16 channels here.
# We sample all its layers without normalisation and with group normalisation, and optimise them, in four passes over 4,000 digits.

# %%
train, test = standardise(*digits(), 1)
rate, decay, shape = 0.05 / len(train.targets), 0.1, (1, 28, 28)
size = {"batch_size": 100, "rounds": 4, "burn_in": 2, "record_every": 1}
short = Plan(Hamiltonian(rate, decay), Prior(1.0, by_fan_in=True), **size)
live, chains = {}, {}
for name, plan, normalisation in (
    ("SGHMC", short, None),
    ("SGHMC, group normalisation", short, "group"),
    ("SGD with momentum", short.but(temperature=0.0), None),
):
    network = convolutional_network(
        shape,
        channels=(8, 16),
        kernel_size=5,
        normalisation=normalisation,
    )
    run = Run(plan, network, train, test)
    live[name], chains[name] = run.go(progress=False), run.chain

# %% mystnb={"figure": {"caption": "Run while this page was built: error on 1,000 test digits, of the last network (thin) and of the sampler's average over the last two passes (thick).", "name": "fig-cifar-live"}, "image": {"alt": "Test error against passes on a logarithmic axis: three thin lines fall together, and two thick ones, from the third pass on, end lowest."}} tags=["hide-input"]
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
axes.set_yticks([5, 10, 20], ["5", "10", "20"])
axes.minorticks_off()
axes.legend()
plt.show()

# %% [markdown]
# In {numref}`fig-cifar-live` the error falls in much the same way in all three runs.

# %% tags=["hide-input"]
for name in ("SGHMC", "SGHMC, group normalisation"):
    claim(
        f"Live: test error of {name}",
        live[name]["average"]["error"],
        at_most=0.13,
        because="0.051 to 0.084 with ten seeds",
    )
claim(
    "Live: log loss with group normalisation less that without",
    live["SGHMC, group normalisation"]["average"]["log_loss"]
    - live["SGHMC"]["average"]["log_loss"],
    near=0,
    within=0.13,
    because="−0.04 to 0.03 with ten seeds: four layers do not need a normalisation",
)
claim(
    "Live: calibration error of SGHMC",
    live["SGHMC"]["average"]["calibration_error"],
    at_least=0.08,
    because=(
        "0.13 to 0.17 with ten seeds: four passes and a prior that holds the logits "
        "small leave it too cautious"
    ),
)

# %% [markdown]
# Last, the heat.
# A coordinate whose stochastic gradient has the variance $V$ is heated by $\eta V/2\alpha$, in units of the temperature ({doc}`/book/studies/mnist`).
# We estimate $V$ at the sampler's last network from 30 minibatches, and take the mean over the weights of each layer.

# %%
chain, draw = chains["SGHMC"], torch.Generator().manual_seed(0)
place = chain.state.position
slopes = [chain.posterior.stochastic_gradient(place, draw) for _ in range(30)]
V = torch.cat(slopes).var(0)
heat = rate * V / (2 * decay)
by_layer = chain.posterior.parameters_of(heat[None])
heats = [float(by_layer[name].mean()) for name in by_layer if "weight" in name]

# %% [markdown]
# The convolution at the start and the layer at the end are heated far more than the large layer between them.
# A weight of the convolution acts at every place of an image, and one of the last layer acts on an output directly; so they feel most of what a minibatch has by chance.
# On these 4,000 digits even the largest heat is small.
# But with $\eta \propto 1/N$ and $V \propto N^2/n$ the heat grows like $N/n$, other things being equal.
#
# And the theorem: with minibatches four times as large and $\eta$ four times as large, $\kappa$ is what it was, and so is the heat.

# %%
coarse = short.but(batch_size=400)
larger = Run(coarse, convolutional_network(shape, (8, 16), kernel_size=5), train, test)
slopes = [larger.chain.posterior.stochastic_gradient(place, draw) for _ in range(30)]
same = 4 * rate * torch.cat(slopes).var(0) / (2 * decay)

# %% tags=["hide-input"]
claim(
    "Live: largest heat of a layer, in units of the temperature",
    max(heats),
    at_most=0.3,
    because="0.07 to 0.13 with ten seeds",
)
claim(
    "Live: weight tensors of the network: two convolutions, a large and a last layer",
    len(heats),
    near=4,
    within=0,
    because="counted",
    kind="exact",
)
claim(
    "Live: heat at four times η and n, over the heat: mean over the weights",
    float(same.mean() / heat.mean()),
    near=0.95,
    within=0.38,
    because="κ is the same, and V has the factor 1 − n/N; it was 0.84 to 1.04 in nine",
)
for name, number, most, was in (
    ("first convolution", 0, 0.17, "0.04 to 0.09"),
    ("last layer", 3, 0.5, "0.16 to 0.22"),
):
    claim(
        f"Live: heat of the large layer over that of the {name}",
        heats[2] / heats[number],
        at_most=most,
        because=f"{was} with ten seeds",
    )

# %% [markdown]
# ## In practice
#
# * Before you sample a network, ask of each layer whether it looks at one example at a time.
# * To keep a trained network's batch normalisation, fix its statistics, `module.eval()`, and sample the rest.
# * Look at what goes into the network: draw one image from the tensor that the first layer sees.
# * List what is sampled, with sizes, and compare their sum with the number of weights.
# * Scale the priors by the fan-in; with $N(0, 1)$ everywhere a wide layer saturates.
# * Compare the sampler with the average along the path of the same walk without noise. Here that average was better.
# * When single networks of a chain stop getting better, let the rate fall: they may be held up by the heat, which more passes do not take away.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | batch normalisation | $\hat z_i = (z_i - \mu_S)/\sqrt{\sigma_S^2 + \epsilon}$, {eq}`eq-cifar-batch` |
# | what its minibatch gradient is the gradient of | $U_n = -\log p(\theta) - \frac Nn\,\mathbb E_S\bigl[\sum_{i\in S}\ell_i(\theta; S)\bigr]$, {eq}`eq-cifar-potential` |
# | weights before a normalisation | $w^\top\nabla L(w) = 0$ and $\nabla L(cw) = \nabla L(w)/c$, {prf:ref}`thm-cifar-scale` |
# | what a pass moves and heats | $\kappa = (\eta/\alpha)(N/n)$: by the factor $e^{-\kappa\lambda}$, and by $\tfrac12\kappa N\sigma^2$, {prf:ref}`thm-cifar-heat` |
# | the step on the sphere of directions | $\eta/\lvert w\rvert^2$, near $\eta/k\tau^2$, {prf:ref}`thm-cifar-scale` |
#
# ## Change it
#
# * Set `network[2].eps = network[6].eps = 0.0` to `network[2].eps = network[6].eps = 1.0`: the normalisation now feels the length of the weights, and both claims on the cosine and on the gradient at three times the weights show ✗.
# * Set `convolutional_network((1, 4, 4), normalisation="batch"), images` to `convolutional_network((1, 4, 4), normalisation="group"), images`: nothing is printed, for this network is accepted.
# * Set `"rounds": 4, "burn_in": 2` to `"rounds": 1, "burn_in": 0`: after one pass the networks have learnt little, and the claims on the live test error show ✗.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-cifar-write
#
# *Write it yourself.* Batch and group normalisation differ in one thing: over which numbers mean and variance are taken. Complete the function, for a layer's output of shape (examples, channels, rows, columns), and compare it with the layers of `convolutional_network`. Which of the two gives an image the same output whatever its company?
#
# ```python
# def normalise(z, over, epsilon=1e-5):
#     # z less its mean, over the root of its variance plus epsilon;
#     # mean and variance are taken over the dimensions in `over`
#     ...
#
#
# batch = normalise(z, over=...)
# group = normalise(z, over=...)  # one group: all channels of an image
# ```
# ````
#
# ```{solution} ex-cifar-write
# :class: dropdown
#
# Batch normalisation takes mean and variance of a channel over the examples and the places, `(0, 2, 3)`; group normalisation with one group takes them of an image over channels and places, `(1, 2, 3)`. So the second does not depend on the company. The cell below has both.
# ```

# %% tags=["hide-input"]


def normalise(z, over, epsilon=1e-5):
    """Make mean zero and variance one over the given dimensions."""
    mean = z.mean(over, keepdim=True)
    variance = z.var(over, correction=0, keepdim=True)
    return (z - mean) / (variance + epsilon).sqrt()


z = torch.randn(6, 2, 4, 4, generator=torch.Generator().manual_seed(2), dtype=DOUBLE)
kept = {}
for name, over in (("batch", (0, 2, 3)), ("group", (1, 2, 3))):
    with torch.no_grad():
        theirs = tiny(name)[0][2](z)
    claim(
        f"Exercise: largest difference from the package's {name} normalisation",
        (normalise(z, over) - theirs).abs().max(),
        at_most=1e-10,
        because="rounding",
        kind="exact",
    )
    kept[name] = float((normalise(z[:3], over) - normalise(z, over)[:3]).abs().max())
claim(
    "Exercise: change of three images' outputs without the others, group",
    kept["group"],
    at_most=1e-12,
    because="rounding",
    kind="exact",
)
claim(
    "Exercise: the same, batch",
    kept["batch"],
    at_least=0.01,
    because="the company matters",
    kind="exact",
)

# %% [markdown]
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
# A convolution of 3×3 on 32 channels has $k = 288$ weights a channel, and each channel is normalised by itself. By which factor does the prior variance $\tau^2 = 1$ change the step on the sphere of directions against $\tau^2 = 1/k$?
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
# Repeat the enumeration with the statistics of {prf:ref}`def-cifar-batch` fixed at those of all six images. Is the minibatch gradient unbiased now, and is it the gradient of the batch-normalised $U_6$?
# ```
#
# ```{solution} ex-cifar-enumerate
# :class: dropdown
#
# With the running averages set to these statistics, and `network.eval()`, it is unbiased for the potential with these statistics fixed, by {prf:ref}`thm-cifar-potential`: there is no company any more. Its value is that of $U_6$ at this $\theta$, its gradient is not: in $U_6$ the statistics move with $\theta$.
# ```
#
# ## Further reading
#
# {cite:t}`ioffe2015` for batch normalisation, {cite:t}`wu2018` and {cite:t}`singh2020` for what can replace it, {cite:t}`vanlaarhoven2017` for weight decay behind it, {cite:t}`izmailov2021` and {cite:t}`wenzel2020` for posteriors of large convolutional networks.
