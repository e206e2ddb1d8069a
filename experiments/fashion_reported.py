"""Fashion-MNIST as the report's program ran it: Figure 7a of Adam-Day et al., at its
length, from its start, with its noise and without.

Their program starts every weight from U(-2, 2), draws each minibatch afresh, gives SGD
the momentum of Nesterov, and goes through 100 epochs of warm-up and 800 more. Its noise
has the variance (2αη)² for SGHMC and (2η)² for SGLD, so that both are samplers at the
temperatures 2αη and 2η. What it scores is drawn: a sampler's prediction is the class
that most draws name, one draw from each of its networks, and an optimiser's is one
class drawn from its last network, which errs as often as one less the probability of
the right class, on average. "Right noise" is the same at T = 1. The data and the
network are those of the experiment fashion, of which the small version is too."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from experiments import fashion
from experiments.comparison import Methods, compare, named, summary
from experiments.options import Options, Prepared
from experiments.plan import Plan
from experiments.run import Run

__all__ = ["drawn", "prepare", "run", "settings", "summary"]


def prepare(options: Options) -> Prepared:
    """Load the data of the experiment fashion."""
    return fashion.prepare(options)._replace(folder=options.folder("fashion_reported"))


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method; learning rates times N are those of the
    report for N = 50,000.
    """
    # the first network averaged is that of round 100
    size = {"rounds": 900, "burn_in": 99, "keep_every": 25, "record_every": 10}
    if small:
        size = {
            "rounds": 60,
            "burn_in": 29,
            "batch_size": 100,
            "keep_every": 10,
            "record_every": 5,
        }
    total = len(prepared.train.targets)

    def plan(rate: float, decay: float | None = None, **more) -> Plan:
        return Plan(
            rate / total,
            decay,
            prior_precision=1.0,
            start="uniform",
            minibatches="fresh",
            **size,
            **more,
        )

    momentum, none = plan(0.05, 0.01), plan(0.5)
    return named(
        {
            "SGHMC": [momentum.variance_as_scale()],
            "SGLD": [none.variance_as_scale()],
            "SGD": [replace(none, temperature=0.0)],
            "SGD with momentum": [replace(momentum, temperature=0.0, nesterov=True)],
            "SGHMC, right noise": [momentum],
            "SGLD, right noise": [none],
        }
    )


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods."""
    return compare(
        settings(prepared, options.small),
        prepared,
        options,
        look=lambda run: {"drawn": drawn(run)},
    )


@torch.no_grad()
def drawn(run: Run) -> dict[str, list]:
    """Compute how often a class that is drawn from a network's prediction is wrong, for
    each network of the reservoir, and its round.
    """
    plan, errors = run.plan, []
    for position in run.reservoir:
        log_probabilities = (
            run.walk.posterior.log_predict(
                position[None].to(run.walk.device), run.examples
            )[0]
            .double()
            .cpu()
        )
        right = log_probabilities.exp().gather(1, run.targets[:, None])
        errors.append(round(1 - float(right.mean()), 6))
    return {
        "round": [
            plan.burn_in + (number + 1) * plan.keep_every
            for number in range(len(errors))
        ],
        "error": errors,
    }
