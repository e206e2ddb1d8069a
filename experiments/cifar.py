"""CIFAR-10: the report's design, and a network whose layers are all sampled.

The notebook of Adam-Day et al. puts two Bayesian linear layers on two convolutions that
keep their first random weights, reads images stored pixel by pixel as if colour by
colour, and injects noise of the variance (2αη)². "As reported" has all three, "its
posterior" the colours and the noise put right; the statistics of both batch
normalisations are those of 10,000 training images, for with a minibatch's there is no
posterior. "All layers" samples every weight, "convolutions held" the linear layers
only. At the end it measures what minibatches add to a weight's temperature.
"""

import math
from copy import deepcopy
from functools import partial

import torch
from torch import Generator, nn

from booklib.data import Data, cifar10, digits, scramble, standardise
from booklib.models.networks import convolutional_network, multilayer_perceptron
from booklib.runs.plans import Falling, Hamiltonian, Plan, Prior
from booklib.runs.run import Run
from experiments.comparison import Methods, of_plans
from experiments.study import Options, Prepared
from sgmc.minibatches import Fresh

# epochs of the network that is sampled as a whole, in twelve minutes of one core
PASSES = 60
IMAGES, FEATURES = "images", "random features"
SCRAMBLED = "random features of scrambled images"
HELD = "images behind convolutions that are held"
LOOKS = 30  # minibatches from which the temperature is estimated


def prepare(options: Options, name: str = "cifar") -> Prepared:
    """Load the data, with inputs between 0 and 1."""
    train, test = digits() if options.small else cifar10(options.data)
    shape, channels = (3, 32, 32), (16, 32)
    if options.small:
        shape, channels = (1, 28, 28), (8, 16)
    network = partial(convolutional_network, shape, channels, kernel_size=5)
    return Prepared(train, test, network, options.folder(name), shape=shape)


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    rate = 0.05 / len(prepared.train.targets)
    kernel, size = Hamiltonian(rate, 0.01), {"rounds": 950, "burn_in": 149}
    if small:
        size = {"rounds": 20, "burn_in": 10, "batch_size": 100, "record_every": 2}
    head = Plan(kernel, Prior(1.0), "uniform", data=FEATURES, **size)
    size = {"rounds": PASSES, "burn_in": PASSES // 2 - 1}
    if small:
        size = {"rounds": 10, "burn_in": 5}
    size |= {"batch_size": 100, "keep_every": 4, "record_every": 2}
    prior = Prior(1.0, by_fan_in=True)
    body = Plan(Hamiltonian(rate, 0.1), prior, data=IMAGES, **size)
    optimised = body.but(temperature=0.0)
    scrambled = head.but(minibatches=Fresh(), data=SCRAMBLED)
    return {
        "as reported": [scrambled.variance_as_scale()],
        "its posterior": [head],
        "convolutions held": [body.but(data=HELD)],
        "all layers": [body],
        "all layers, optimised": [optimised],
        "all layers, falling rate": [optimised.but(schedule=Falling())],
    }


def heat(run: Run) -> dict[str, dict[str, float]]:
    """Estimate ηV/2α at the end of a run, averaged over each tensor of weights."""
    posterior, position = run.chain.posterior, run.chain.state.position
    generator = Generator(run.chain.device).manual_seed(run.plan.seed)
    slopes = torch.cat(
        [posterior.stochastic_gradient(position, generator) for _ in range(LOOKS)]
    )
    decay = run.plan.kernel.momentum_decay
    heats = run.plan.rate(run.done - 1) * slopes.var(0) / (2 * decay)
    found = {
        name: float(f"{float(piece.mean()):.4g}")
        for name, piece in posterior.parameters_of(heats[None]).items()
        if "weight" in name
    }
    return {"heat": found}


def on(plan: Plan, prepared: Prepared) -> Prepared:
    """Build the posterior from the images, or random features of the seed, and the
    network.
    """
    train, test, shape = prepared.train, prepared.test, prepared.shape
    generator = Generator().manual_seed(plan.seed)
    if plan.data in (IMAGES, HELD):
        train, test = standardise(train, test, shape[0])
        prepared = prepared._replace(train=train, test=test)
        if plan.data == IMAGES:
            return prepared
        network = prepared.network()
        train, test, layers = behind_convolutions(train, test, network, generator)
        return Prepared(train, test, lambda: deepcopy(layers), prepared.folder)
    if plan.data == SCRAMBLED:
        train, test = scramble(train, shape), scramble(test, shape)
    train, test = random_features(train, test, shape, generator)
    network = partial(multilayer_perceptron, [train.inputs.shape[1], 100, 10], "tanh")
    return Prepared(train, test, network, prepared.folder)


@torch.no_grad()
def behind_convolutions(
    train: Data, test: Data, network: nn.Sequential, generator: Generator
) -> tuple[Data, Data, nn.Sequential]:
    """Put data through a prior's convolutions, and return its other layers."""
    convolutions, others = _cut(network)
    for layer in convolutions:
        if isinstance(layer, nn.Conv2d):
            std = math.sqrt(layer.weight[0].numel())
            layer.weight.normal_(generator=generator).div_(std)
            layer.bias.zero_()
    return _applied(convolutions, train), _applied(convolutions, test), others


@torch.no_grad()
def random_features(
    train: Data, test: Data, shape: tuple[int, int, int], generator: Generator
) -> tuple[Data, Data]:
    """Put data through two random convolutions, with batch normalisation by the
    statistics of 10,000 training images, and weights as PyTorch's, U(±1/√fan-in).
    """
    features, _ = _cut(convolutional_network(shape, normalisation="batch"))
    for layer in features:
        if isinstance(layer, nn.Conv2d):
            bound = 1 / math.sqrt(layer.weight[0].numel())
            layer.weight.uniform_(-bound, bound, generator=generator)
            layer.bias.uniform_(-bound, bound, generator=generator)
        if isinstance(layer, nn.BatchNorm2d):
            # The running statistics average over all minibatches.
            layer.momentum = None
    features.train()
    chosen = torch.randperm(len(train.inputs), generator=generator)[:10_000]
    for few in train.inputs[chosen].split(500):
        features(few)
    features.eval()
    return _applied(features, train), _applied(features, test)


def _cut(network: nn.Sequential) -> tuple[nn.Sequential, nn.Sequential]:
    flat = [isinstance(layer, nn.Flatten) for layer in network].index(True) + 1
    return network[:flat], network[flat:]


def _applied(features: nn.Module, data: Data) -> Data:
    inputs = torch.cat([features(few) for few in data.inputs.split(500)])
    return Data(inputs, data.targets)


EXPERIMENT = of_plans(prepare, settings, look=heat, on=on)
