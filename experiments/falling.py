"""An optimiser with a falling learning rate on MNIST: SGD with momentum as the
experiment mnist runs it, but for the rate.

The rate falls to zero over the 800 rounds, from round to round by half a wave of a
cosine, as practitioners run it. Rate and prior precision are chosen on the validation
digits. The network at the end is looked at as the experiment uncertainty looks at its
own: on the test digits, turned too, on letters and on clothes. So is the average
prediction of the networks of all seeds, an ensemble that costs as many runs. The small
version is on the 5,000 digits and on letters drawn from fonts."""

from collections.abc import Iterator

import torch

from booklib import looks
from booklib.plans import Falling, Prior
from booklib.runs import Run, read_run
from experiments import mnist
from experiments.comparison import COLUMNS, Methods, compare, mistakes, named, run_file
from experiments.study import Experiment, Options, Prepared, no_digits
from sgmc.posteriors import NetworkPosterior

METHOD = "SGD with momentum, falling rate"


def prepare(options: Options) -> Prepared:
    """Load the digits of the experiment mnist, and what is none."""
    prepared = mnist.prepare(options, "sigmoid", "falling")
    return prepared._replace(others=no_digits(options))


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the settings to choose from: larger rates than a constant one can have, and
    the same precisions.
    """
    total = len(prepared.train.targets)
    plan = mnist.settings(prepared, small)["SGD with momentum"][0]
    plans = [
        plan.but(learning_rate=rate / total, prior=Prior(precision), schedule=Falling())
        for rate in (0.1, 0.2, 0.4)
        for precision in (1.0, 3.0, 10.0)
    ]
    return named({METHOD: plans})


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run all seeds; with the last one, look at the ensemble of them."""
    posterior = NetworkPosterior(prepared.network(), *prepared.test)
    data = prepared.test, prepared.others

    def look(run: Run) -> dict:
        position = run.chain.state.position
        return mistakes(run) | {"look": looks.look(posterior, position, *data)}

    methods = settings(prepared, options.small)
    for result in compare(methods, prepared, options, look=look):
        if len(result["methods"][METHOD]["runs"]) == options.seeds:
            files = [run_file(prepared.folder, METHOD, i) for i in range(options.seeds)]
            members = torch.cat([read_run(file)["walk"]["position"] for file in files])
            looked = looks.look(posterior, members, *data)
            result["ensemble"] = {"networks": len(members), **looked}
        yield {"angles": looks.ANGLES, "shares": looks.SHARES, **result}


EXPERIMENT = Experiment(prepare, run, COLUMNS, plans=True)
