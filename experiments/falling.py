"""An optimiser with a falling learning rate on MNIST: SGD with momentum as the
experiment mnist runs it, but for the rate.

The rate falls to zero over the 800 rounds, from round to round by half a wave of a
cosine, as practitioners run it. Rate and prior precision are chosen on the validation
digits. The network at the end is looked at as the experiment uncertainty looks at its
own: on the test digits, turned too, on letters and on clothes. So is the average
prediction of the networks of all seeds, an ensemble that costs as many runs. The small
version is on the 5,000 digits and on letters drawn from fonts."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from booklib.datasets import fashion_mnist, letters, notmnist
from experiments import mnist, uncertainty
from experiments.comparison import Methods, compare, mistakes, named, run_file, summary
from experiments.options import Options, Prepared
from experiments.run import Run, read_run
from sgmc.posteriors import NetworkPosterior

__all__ = ["METHOD", "prepare", "run", "settings", "summary"]

METHOD = "SGD with momentum, falling rate"


def prepare(options: Options) -> Prepared:
    """Load the digits of the experiment mnist, and what is none."""
    others = (
        {"letters": letters()}
        if options.small
        else {
            "letters": notmnist(options.data),
            "clothes": fashion_mnist(options.data)[1],
        }
    )
    return mnist.prepare(options)._replace(
        folder=options.folder("falling"), others=others
    )


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the settings to choose from: larger rates than a constant one can have, and
    the same precisions.
    """
    total, plan = (
        len(prepared.train.targets),
        mnist.settings(prepared, small)["SGD with momentum"][0],
    )
    plan = replace(plan, falling=True)
    tried = [
        (rate, precision) for rate in (0.1, 0.2, 0.4) for precision in (1.0, 3.0, 10.0)
    ]
    return named(
        {
            METHOD: [
                replace(plan, learning_rate=rate / total, prior_precision=precision)
                for rate, precision in tried
            ]
        }
    )


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run all seeds; with the last one, look at the ensemble of them."""
    posterior = NetworkPosterior(prepared.network(), *prepared.test)

    def look(run: Run) -> dict:
        return {
            **mistakes(run),
            "look": uncertainty.look(posterior, run.walk.state.position, prepared),
        }

    for result in compare(
        settings(prepared, options.small), prepared, options, look=look
    ):
        if len(result["methods"][METHOD]["runs"]) == options.seeds:
            files = [
                run_file(prepared.folder, METHOD, seed) for seed in range(options.seeds)
            ]
            members = torch.cat([read_run(file)["walk"]["position"] for file in files])
            result["ensemble"] = {
                "networks": len(members),
                **uncertainty.look(posterior, members, prepared),
            }
        yield {"angles": uncertainty.ANGLES, "shares": uncertainty.SHARES, **result}
