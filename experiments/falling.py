"""SGD with momentum as the experiment mnist runs it, but with a falling learning rate.

The rate falls to zero over the 800 rounds by half a wave of a cosine; rate and prior
precision are chosen on the validation digits. The last network is looked at as the
experiment uncertainty looks at its own, and so is the average over all seeds, an
ensemble that costs as many runs.
"""

from collections.abc import Iterator

import torch

from booklib.runs import predictions as looks
from booklib.runs.plans import Falling, Prior
from booklib.runs.run import Run, read_run
from experiments import mnist
from experiments.comparison import Methods, compare, mistakes, run_file
from experiments.study import Experiment, Options, Prepared, no_digits
from sgmc.posteriors import NetworkPosterior

METHOD = "SGD with momentum, falling rate"


def prepare(options: Options) -> Prepared:
    """Load the digits of the experiment mnist, and images that are no digits."""
    prepared = mnist.prepare(options, "sigmoid", "falling")
    return prepared._replace(others=no_digits(options))


def settings(prepared: Prepared, small: bool) -> Methods:
    """List rates larger than a constant rate can be, with the same precisions."""
    total = len(prepared.train.targets)
    plan = mnist.settings(prepared, small)["SGD with momentum"][0]
    plans = [
        plan.but(learning_rate=rate / total, prior=Prior(precision), schedule=Falling())
        for rate in (0.1, 0.2, 0.4)
        for precision in (1.0, 3.0, 10.0)
    ]
    return {METHOD: plans}


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run all seeds; with the last seed, score their ensemble."""
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


EXPERIMENT = Experiment(prepare, run, plans=True)
