"""Why our fit as reported errs more than that of the report's notebook.

The fit of ``renyi`` is made again with one difference at a time as `bnn/VI.ipynb` of
Adam-Day et al. has it, with some, and with all of them. Each is scored by
averaged probabilities and by votes, a label drawn by each of 200 networks.
"""

import time
from collections.abc import Iterator

import torch
from torch import Generator, Tensor
from torch.nn import functional

from booklib.data import Data
from booklib.rivals.descent import Settings, descend
from booklib.rivals.variational import bound_gradient
from booklib.runs.results import checksum, circumstances, score
from experiments.fits import Task, predict
from experiments.renyi import ALPHA, NETWORKS, Unscaled, prepare
from experiments.study import Experiment, Options, Prepared, in_a_name, study
from sgmc.minibatches import Fresh, Passes
from sgmc.randomness import normal_block

ROUNDS, MEDIAN_OF = 11, 15  # Pyro starts at the median of so many draws of the prior
DIFFERENCES = ("start", "pixels", "passes", "rate", "decay", "clipping", "digits")
ALONE = {name: (name,) for name in DIFFERENCES}
METHODS = {"as reported": (), "all": DIFFERENCES, **ALONE}
SOME = ("pixels", "rate"), ("start", "pixels", "rate")
METHODS |= {", ".join(which): which for which in SOME}


class Constant(Settings):
    """Adam at a constant rate."""

    def rate(self, step: int) -> float:
        """Return the rate."""
        return self.learning_rate


def fit(task: Task, which: tuple[str, ...]) -> Tensor:
    """Fit by Rényi's bound with some differences; draw networks ``(networks, dim)``."""
    generator, posterior = Generator().manual_seed(task.seed), task.posterior
    mean = task.start()
    if "start" in which:
        draws = torch.randn(MEDIAN_OF, *mean.shape, generator=generator)
        mean = draws.median(0).values
    rho = torch.full_like(mean, 0.1).expm1().log()  # softplus(ρ) = 0.1

    def gradients(minibatch: Tensor) -> list[Tensor]:
        given = normal_block(mean, 2, generator), minibatch, ALPHA
        slopes = bound_gradient(posterior, mean, functional.softplus(rho), *given)
        both = [slopes[0], slopes[1] * rho.sigmoid()]
        if "clipping" in which:  # as Pyro's ClippedAdam clips each coordinate
            both = [slope.clamp(-1.0, 1.0) for slope in both]
        if "decay" in which:
            pairs = zip(both, (mean, rho), strict=True)
            both = [slope + 1e-3 * value for slope, value in pairs]
        return both

    settings = (Constant if "rate" in which else Settings)(task.num_steps, 1e-3)
    run = task.run()
    given = generator, settings, run["progress"], run["checkpoint"], list(which)
    if not descend(posterior, [mean, rho], gradients, *given).complete:
        raise KeyboardInterrupt
    normal = normal_block(mean, task.num_networks, generator)
    return (mean + functional.softplus(rho) * normal)[:, 0]


def split(prepared: Prepared, which: tuple[str, ...]) -> tuple[Data, Data]:
    """Choose the data to fit and to score: the first digits if they differ."""
    train, test, validation = prepared.train, prepared.test, prepared.validation
    if "digits" in which:
        whole = [torch.cat(pair) for pair in zip(train, validation, strict=True)]
        first = len(validation.targets)
        test, train = (
            Data(*(x[:first] for x in whole)),
            Data(*(x[first:] for x in whole)),
        )
    if "pixels" in which:
        change = lambda data: Data((data.inputs - 0.1307) / 0.3081, data.targets)
        train, test = change(train), change(test)
    return train, test


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Fit with each of the differences, and with all."""
    size, rounds, many = (100, 4, 50) if options.small else (500, ROUNDS, NETWORKS)
    data, folder = checksum(prepared.train, prepared.test), prepared.folder

    def ran(name: str, settings: dict, seed: int) -> dict:
        which, started = tuple(settings["differences"]), time.process_time()
        train, test = split(prepared, which)
        rule = {
            "batch_size": size,
            "minibatches": [Fresh(), Passes()]["passes" in which],
        }
        posterior = Unscaled(prepared.network(), *train, **rule)
        path = folder / f"{in_a_name(name)}-{seed}"
        positions = fit(
            Task(posterior, rounds, many, seed, path, options.progress), which
        )
        probabilities = predict(posterior, positions, test.inputs)
        flat, generator = probabilities.flatten(0, 1), Generator().manual_seed(seed)
        labels = torch.multinomial(flat, 1, generator=generator).view(many, -1)
        votes = functional.one_hot(labels, flat.shape[1]).double().mean(0)
        return {
            "seed": seed,
            "made": circumstances(),
            "processor_seconds": round(time.process_time() - started, 1),
            "scores": score(probabilities.mean(0), test.targets),
            "voted": round(float((votes.argmax(1) != test.targets).double().mean()), 6),
        }

    choices = {name: [{"differences": list(which)}] for name, which in METHODS.items()}
    more = {"folder": folder, "rounds": rounds, "data": data}
    for found in study(choices, range(options.seeds), None, ran, **more):
        yield {"data_checksum": data, "methods": found}


EXPERIMENT = Experiment(lambda options: prepare(options, name="renyi_differences"), run)
