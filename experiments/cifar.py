"""CIFAR-10: the report's design, Bayesian layers on random convolutions, and a network
whose layers are all sampled.

The notebook of Adam-Day et al. puts two Bayesian linear layers on two convolutions with
batch normalisation, max-pooling and tanh. As its code stands, the convolutions keep
their first random weights, for nothing samples or trains them; the images, stored pixel
by pixel, are read as if they were stored colour by colour, which scrambles them; and
the noise has the variance (2αη)² in place of 2αη. "As reported" has all three, "its
posterior" the colours and the noise put right. In both the statistics of the batch
normalisation are fixed, those of 10,000 training images, for with those of a minibatch
there is no posterior. SGHMC with η = 10⁻⁶ and α = 0.01 draws the two layers, from the
start U(-2, 2) of their program, in 150 epochs of warm-up and 800 more.

"All layers" samples every weight, with no normalisation, from the posterior with the
priors N(0, 1/fan-in), biases N(0, 1); "all layers, optimised" is the same without
noise, "all layers, falling rate" the same with a learning rate that falls to zero.
"Convolutions held" samples the two linear layers only, on convolutions with weights
drawn from their prior. Of each run the heat is measured at its end: what the noise of
the minibatches adds to the temperature of a weight. The small version puts the 5,000
digits, as images of one colour, through the same code."""

import math
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from functools import partial

import torch
from torch import Generator, nn

from booklib.datasets import Data, cifar10, digits
from booklib.networks import convolutional_network, multilayer_perceptron
from experiments.comparison import Methods, compare, named, summary
from experiments.options import Options, Prepared
from experiments.plan import Plan
from experiments.run import Run

__all__ = [
    "heat",
    "on",
    "prepare",
    "random_features",
    "run",
    "scramble",
    "settings",
    "standardise",
    "summary",
]

PASSES = 60  # of the network that is sampled as a whole, in twelve minutes of one core
IMAGES, FEATURES, SCRAMBLED = (
    "images",
    "random features",
    "random features of scrambled images",
)
HELD = "images behind convolutions that are held"
LOOKS = 30  # minibatches from which the heat is estimated


def prepare(options: Options) -> Prepared:
    """Load the data, with inputs between 0 and 1."""
    train, test = digits() if options.small else cifar10(options.data)
    shape, channels = (
        ((1, 28, 28), (8, 16)) if options.small else ((3, 32, 32), (16, 32))
    )
    network = partial(convolutional_network, shape, channels, kernel_size=5)
    return Prepared(train, test, network, options.folder("cifar"), shape=shape)


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    rate = 0.05 / len(prepared.train.targets)
    head = Plan(
        rate,
        0.01,
        prior_precision=1.0,
        start="uniform",
        data=FEATURES,
        rounds=950,
        burn_in=149,
        record_every=10,
    )
    body = Plan(
        rate,
        0.1,
        prior_precision=1.0,
        prior_by_fan_in=True,
        data=IMAGES,
        rounds=PASSES,
        burn_in=PASSES // 2 - 1,
        batch_size=100,
        keep_every=4,
        record_every=2,
    )
    if small:
        head = replace(head, rounds=20, burn_in=10, batch_size=100, record_every=2)
        body = replace(body, rounds=10, burn_in=5)
    return named(
        {
            "as reported": [
                replace(head, minibatches="fresh", data=SCRAMBLED).variance_as_scale()
            ],
            "its posterior": [head],
            "convolutions held": [replace(body, data=HELD)],
            "all layers": [body],
            "all layers, optimised": [replace(body, temperature=0.0)],
            "all layers, falling rate": [replace(body, temperature=0.0, falling=True)],
        }
    )


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods."""
    return compare(
        settings(prepared, options.small),
        prepared,
        options,
        look=lambda run: {"heat": heat(run)},
        on=on,
    )


def heat(run: Run) -> dict[str, float]:
    """Estimate ηV/2α at the end of a run, the mean over each tensor of weights, from
    minibatches drawn afresh at its last network.
    """
    walk, plan = run.walk, run.plan
    generator = Generator(walk.device).manual_seed(plan.seed)
    slopes = torch.cat(
        [
            walk.posterior.stochastic_gradient(walk.state.position, generator)
            for _ in range(LOOKS)
        ]
    )
    heats = plan.rate(run.done - 1) * slopes.var(0) / (2 * plan.momentum_decay)
    pieces = walk.posterior.parameters_of(heats[None])
    return {
        name: float(f"{float(piece.mean()):.4g}")
        for name, piece in pieces.items()
        if "weight" in name
    }


def on(plan: Plan, prepared: Prepared) -> Prepared:
    """Put together what a plan is run on: the images, or random features of its seed,
    and the network that is sampled.
    """
    train, test, shape = prepared.train, prepared.test, prepared.shape
    if plan.data == IMAGES:
        train, test = standardise(train, test, shape[0])
        return prepared._replace(train=train, test=test)
    if plan.data == HELD:
        train, test = standardise(train, test, shape[0])
        train, test, layers = behind_convolutions(
            train, test, prepared.network(), Generator().manual_seed(plan.seed)
        )
        return prepared._replace(
            train=train, test=test, network=lambda: deepcopy(layers)
        )
    if plan.data == SCRAMBLED:
        train, test = scramble(train, shape), scramble(test, shape)
    train, test = random_features(
        train, test, shape, Generator().manual_seed(plan.seed)
    )
    network = partial(multilayer_perceptron, [train.inputs.shape[1], 100, 10], "tanh")
    return prepared._replace(train=train, test=test, network=network)


def standardise(train: Data, test: Data, colours: int) -> tuple[Data, Data]:
    """Shift and scale each colour to mean 0 and variance 1 over the training images."""
    mean, std = (
        f(train.inputs.view(len(train.inputs), colours, -1), (0, 2), keepdim=True)[0]
        for f in (torch.mean, torch.std)
    )
    return tuple(
        Data(((x.view(len(x), colours, -1) - mean) / std).flatten(1), targets)
        for x, targets in (train, test)
    )


def scramble(data: Data, shape: tuple[int, int, int]) -> Data:
    """Read images, stored pixel by pixel with the colours of a pixel side by side, as
    if they were stored colour by colour.
    """
    pixel_by_pixel = data.inputs.view(-1, *shape).permute(0, 2, 3, 1)
    return Data(pixel_by_pixel.reshape(len(data.inputs), -1), data.targets)


@torch.no_grad()
def behind_convolutions(
    train: Data, test: Data, network: nn.Sequential, generator: Generator
) -> tuple[Data, Data, nn.Sequential]:
    """Compute what a network's convolutions make of the images, with weights N(0,
    1/fan-in) and biases zero, and give its other layers.
    """
    cut = (
        next(i for i, layer in enumerate(network) if isinstance(layer, nn.Flatten)) + 1
    )
    for layer in network[:cut]:
        if isinstance(layer, nn.Conv2d):
            layer.weight.normal_(generator=generator).div_(
                math.sqrt(layer.weight[0].numel())
            )
            layer.bias.zero_()
    return *(_applied(network[:cut], data) for data in (train, test)), network[cut:]


@torch.no_grad()
def random_features(
    train: Data, test: Data, shape: tuple[int, int, int], generator: Generator
) -> tuple[Data, Data]:
    """Compute what two random convolutions make of the images, with batch normalisation
    by the statistics of 10,000 training images.

    The weights are those with which PyTorch starts, uniform between ±1/√fan-in.

    Returns:
        Training and test data; inputs ``(n, 16·height·width/16)``.
    """
    network = convolutional_network(shape, normalisation="batch")
    features = network[
        : next(i for i, layer in enumerate(network) if isinstance(layer, nn.Flatten))
        + 1
    ]
    for layer in features:
        if isinstance(layer, nn.Conv2d):
            bound = 1 / math.sqrt(layer.weight[0].numel())
            layer.weight.uniform_(-bound, bound, generator=generator)
            layer.bias.uniform_(-bound, bound, generator=generator)
        if isinstance(layer, nn.BatchNorm2d):
            # the running statistics are the average over all batches
            layer.momentum = None
    features.train()
    for few in train.inputs[
        torch.randperm(len(train.inputs), generator=generator)[:10_000]
    ].split(500):
        features(few)
    features.eval()
    return _applied(features, train), _applied(features, test)


def _applied(features: nn.Module, data: Data) -> Data:
    return Data(
        torch.cat([features(few) for few in data.inputs.split(500)]), data.targets
    )
