"""Cold posteriors of a network of digits: T from 1 to 0.01, a cause at a time.

The network has 7 × 7 pixels and 1,210 weights, so that its first seed can be compared
with long HMC; a larger one, and one with convolutions, have the first arm only, the
latter at three temperatures and the least step size: its filters are too hot at every
other. All runs have as many gradients. The chains' own temperature is measured by
layer, by the virial theorem about the mean of each chain's other half, and so within
the modes that it has reached. Where a layer's is off by more than a tenth the run is
repeated at half the step size, at most twice; all its tries are kept. An arm that
changes one thing has the step size of the network that it changes. The small version
takes a two-hundredth of the steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from booklib.data import digits, mnist
from booklib.models.networks import multilayer_perceptron
from booklib.runs.results import checksum, circumstances, score
from booklib.scores.fidelity import predictive_distance
from experiments.study import Experiment, Options, Prepared, in_a_name, once
from sgmc import sample
from sgmc.diagnostics import mean_and_error, virial_products
from sgmc.kernels import HMC, SGHMC
from sgmc.noise import OnlineNoise
from sgmc.posteriors import NetworkPosterior, Softmax
from sgmc.tuning import adapt

TEMPERATURES = (1.0, 0.3, 0.1, 0.03, 0.01)
CHAINS, BATCH_SIZE, STEPS, KEPT = 4, 1_000, 10_000, 200
RATE, DECAY = 1.6e-4, 0.04  # at half the step size a quarter and a half of them
OFF = 0.1  # of a layer's temperature, from where on the step size is halved
COMPARED = (1.0, 0.1, 0.01)  # temperatures at which there is long HMC
FLIPPED = 0.2  # of the labels, where they are made wrong
COPIES = 5  # an image, and the same moved by two of 28 pixels


@dataclass(frozen=True)
class Weighted(Softmax):
    """The softmax likelihood to the power of a weight."""

    weight: float = 1.0

    def log_density(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute the weight times log p(y | z): ``(chains, n)``."""
        return self.weight * super().log_density(outputs, targets)

    def slope(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute the weight times ∂log p(y | z)/∂z."""
        return self.weight * super().slope(outputs, targets)


class Arm(NamedTuple):
    """What is sampled: the network's posterior with one thing changed."""

    network: str = "small"  #: or "larger", or "convolutions"
    prior_variance: float = 1.0
    tempered: str = "posterior"  #: or the "likelihood" alone
    flipped: float = 0.0  #: share of labels that are drawn anew
    copies: bool = False  #: the log likelihoods of an image and of four moved ones


ARMS = {
    "base": Arm(),
    "copies averaged": Arm(copies=True),
    "prior variance 0.1": Arm(prior_variance=0.1),
    "prior variance 10": Arm(prior_variance=10.0),
    "labels flipped": Arm(flipped=FLIPPED),
    "likelihood tempered": Arm(tempered="likelihood"),
    "larger network": Arm(network="larger"),
    "convolutions": Arm(network="convolutions"),
}
LAYERS = {"small": [49, 20, 10], "larger": [196, 50, 10]}


def prepare(options: Options) -> Prepared:
    """Load 4,000 digits, and the 10,000 of MNIST's test; its own 1,000 if small."""
    train, test = digits()
    if not options.small:
        test = mnist(options.data)[1]
    return Prepared(train, test, folder=options.folder("cold"))


def moved(pixels: Tensor) -> Tensor:
    """Stack images ``(n, 784)`` and the same moved by two pixels: ``(n, 5, 784)``."""
    wide = functional.pad(pixels.view(-1, 28, 28), (2, 2, 2, 2))
    corners = ((2, 2), (0, 2), (4, 2), (2, 0), (2, 4))
    several = [wide[:, y : y + 28, x : x + 28] for y, x in corners]
    return torch.stack(several, 1).flatten(2)


def shown(inputs: Tensor, arm: Arm, copies: bool = False) -> Tensor:
    """Average the 28 × 28 pixels to those that the arm's network reads, with or without
    copies ``(n, copies, pixels)``.
    """
    inputs = moved(inputs) if copies else inputs
    by = 4 if arm.network == "small" else 2
    few = functional.avg_pool2d(inputs.view(-1, 1, 28, 28), by)
    if arm.network == "convolutions":
        few = functional.unfold(few, 3, stride=2).mT
    return few.reshape(*inputs.shape[:-1], -1)


def network_of(arm: Arm) -> nn.Module:
    """Make the arm's network; that of convolutions has eight filters of 3 × 3 pixels,
    and reads the 36 places on which they are put.
    """
    if arm.network in LAYERS:
        return multilayer_perceptron(LAYERS[arm.network])
    filters = nn.Unflatten(-1, (36, 9)), nn.Linear(9, 8), nn.ReLU(), nn.Flatten(-2)
    return nn.Sequential(*filters, nn.Linear(288, 10))


def posterior_of(
    arm: Arm, train: tuple[Tensor, Tensor], temperature: float, weight: float = 1.0
) -> NetworkPosterior:
    """Make the posterior that a kernel of this temperature samples from, with the
    energy multiplied by a weight.
    """
    inputs, targets = shown(train[0], arm, arm.copies), train[1]
    generator = Generator().manual_seed(0)
    anew = torch.rand(len(targets), generator=generator) < arm.flipped
    drawn = torch.randint(10, targets.shape, generator=generator)
    targets = torch.where(anew, drawn, targets)
    variance = arm.prior_variance / weight
    if arm.tempered == "likelihood":
        variance /= temperature
    if arm.copies:
        inputs = inputs.flatten(0, 1)
        targets = targets.repeat_interleave(COPIES)
        weight /= COPIES
    return NetworkPosterior(
        network_of(arm),
        inputs,
        targets,
        prior_variance=variance,
        batch_size=BATCH_SIZE,
        likelihood=Weighted(weight),
    )


def thermometer(
    posterior: NetworkPosterior, samples: Tensor, temperature: float
) -> dict[str, list[float]]:
    """Measure each parameter's temperature in units of T, with its standard error."""
    generator = Generator().manual_seed(2)
    each = [
        virial_products(posterior, chain[:, None], generator, temperature)
        for chain in samples.unbind(1)
    ]
    layers = posterior.parameters_of(torch.cat(each, 1))
    found = {name: mean_and_error(x.mean(-1))[:2] for name, x in layers.items()}
    return {name: [round(x, 4) for x in pair] for name, pair in found.items()}


def scores(posterior: NetworkPosterior, samples: Tensor, arm: Arm, test) -> dict:
    """Score the average of all samples, and that of one chain, averaged over chains."""
    seen = shown(test.inputs, arm)
    chains = [posterior.predict(x, seen).mean(0) for x in samples[::4].unbind(1)]
    alone = [score(each, test.targets) for each in chains]
    mean = {k: round(sum(a[k] for a in alone) / len(alone), 6) for k in alone[0]}
    average = score(torch.stack(chains).mean(0), test.targets)
    return {"average": average, "one_chain": mean}


def sampled(
    name: str,
    temperature: float,
    seed: int,
    prepared: Prepared,
    small: bool,
    halved: int | None = None,
) -> dict:
    """Sample an arm at a temperature, measure the chains' own, and score them; without
    a number of halvings of the step size it finds one.
    """
    arm, size = ARMS[name], 200 if small else 1
    posterior = posterior_of(arm, prepared.train, temperature)
    start = posterior.initial_position(CHAINS, Generator().manual_seed(seed))
    steps, tries = STEPS // size, []
    # the noise of weights that are shared takes most of a step
    every = 10 if arm.network == "convolutions" else 1
    while True:
        half = 2 ** (len(tries) if halved is None else halved)
        kernel = SGHMC.from_learning_rate(
            RATE / half**2,
            DECAY / half,
            noise_estimate=OnlineNoise(refresh_every=every),
            temperature=temperature,
        )
        thinning = max(1, steps // (2 * KEPT))
        kept = steps // 2 // thinning
        given = {"warm_up": steps - kept * thinning, "thinning": thinning}
        draws = sample(
            kernel, posterior, start, kept, **given, seed=seed + 1, progress=False
        )
        clipped = draws.statistics["clipped"][-1].sum() / (CHAINS * steps)
        measured = thermometer(posterior, draws.samples, temperature)
        tried = {"temperatures": measured, "clipped": round(float(clipped), 5)}
        tries.append({"learning_rate": RATE / half**2, **tried})
        weights = [x for layer, (x, _) in measured.items() if layer.endswith("weight")]
        cool = all(abs(x - 1) < OFF for x in weights)
        if halved is not None or cool or len(tries) == 3:
            break
    found = scores(posterior, draws.samples, arm, prepared.test)
    if name == "base" and seed == 0 and temperature in COMPARED:
        found["exact"] = compared(
            arm, temperature, seed, draws.samples, prepared, small
        )
    made = {"seed": seed, "temperature": temperature, "made": circumstances()}
    return {**made, "tries": tries, "steps": steps * len(tries), **found}


def compared(arm, temperature, seed, samples, prepared, small) -> dict:
    """Compare the predictions of samples with those of long HMC from the same start."""
    posterior = posterior_of(arm, prepared.train, temperature, 1 / temperature)
    start = posterior.initial_position(CHAINS, Generator().manual_seed(seed))
    kernel = HMC(step_size=0.01, num_steps=3 if small else 60)
    given = {"seed": seed + 5, "progress": False}
    kernel, start = adapt(kernel, posterior, start, 20 if small else 200, **given)
    draws = sample(kernel, posterior, start, 4 if small else 400, **given)
    seen = shown(prepared.test.inputs, arm)

    def predicted(several: Tensor) -> Tensor:
        return torch.stack(
            [posterior.predict(x, seen).mean(0) for x in several[::4].unbind(1)]
        )

    ours, exact = predicted(samples), predicted(draws.samples)
    # A chain's distance from the mean of the other HMC chains, and the same of HMC's.
    others = (exact.sum(0) - exact) / (CHAINS - 1)
    pairs = zip(exact, others, strict=True)
    floor = [predictive_distance(one, other) for one, other in pairs]
    away = [predictive_distance(x, y) for x, y in zip(ours, others, strict=True)]
    accepted = draws.statistics["acceptance"].double().mean()
    found = {"acceptance": round(float(accepted), 3)}
    found |= {"distance": round(sum(away) / CHAINS, 5)}
    found |= {"distance_of_hmc": round(sum(floor) / CHAINS, 5)}
    both = predictive_distance(ours.mean(0), exact.mean(0))
    found |= {"distance_of_averages": round(both, 5)}
    return found | scores(posterior, draws.samples, arm, prepared.test)


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run arm after arm, and list the runs by arm and temperature."""
    data = checksum(prepared.train, prepared.test)
    methods: dict[str, dict] = {}
    for name, arm in ARMS.items():
        several = COMPARED if arm.network == "convolutions" else TEMPERATURES
        for temperature in several[:: len(several) - 1 if options.small else 1]:
            for seed in range(options.seeds):
                method = f"{name}, T = {temperature:g}"
                path = prepared.folder / f"{in_a_name(method)}-{seed}.json"
                halved = 2 if arm.network == "convolutions" else None
                if arm.network == "small" and name != "base":
                    base = methods[f"base, T = {temperature:g}"]["runs"][seed]
                    halved = len(base["tries"]) - 1
                make = partial(
                    sampled, name, temperature, seed, prepared, options.small, halved
                )
                row = once(path, {"arm": repr(arm), "data": data}, make)
                methods.setdefault(method, {"runs": []})["runs"].append(row)
                yield {"data_checksum": data, "methods": methods}


EXPERIMENT = Experiment(prepare, run)
