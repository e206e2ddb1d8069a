"""Figure 4 by the program of Chen et al. (2014) itself, ported (see booklib.bayesnn).

Its settings: η = 0.1 for the mean over 50,000 digits, α = 0.01, weights from
N(0, 0.01²), 800 rounds, averages from round 50 on, and a Gibbs step for the prior's
precisions under every method. What it calls ``sgd`` is SGD with momentum. Its
Nesterov's momentum, ``nag``, has SGHMC's noise unless that is switched off, and its SGLD
has the η of SGHMC.
"""

import time
from collections.abc import Iterator

import numpy as np

from booklib.bayesnn import Method, Program
from booklib.datasets import digits, mnist
from booklib.results import checksum, circumstances
from experiments.comparison import run_file
from experiments.study import Experiment, Options, Prepared, study
from sgmc.checkpoints import Checkpoint
from sgmc.running import drive

METHODS = {
    "SGHMC": Method(),
    "SGD with momentum": Method(noise=False),
    "SGLD": Method(momentum_decay=1.0),
    "Nesterov, noise on": Method(nesterov=True),
    "Nesterov, noise off": Method(noise=False, nesterov=True),
}
BEGUN, EVERY = 10, 10  # rounds of which all is stored: the first, and every tenth


def prepare(options: Options) -> Prepared:
    """Load the digits, in the order of their files."""
    train, test = digits() if options.small else mnist(options.data)
    return Prepared(train, test, folder=options.folder("bayesnn"))


class Timed(Program):
    """A run that counts the processor time of its rounds."""

    seconds = 0.0

    def advance(self) -> None:
        """Go through the data, and score."""
        started = time.process_time()
        super().advance()
        self.seconds += time.process_time() - started

    def state_dict(self) -> dict:
        """Give the time, too."""
        return {**super().state_dict(), "seconds": self.seconds}

    def load_state_dict(self, saved: dict) -> None:
        """Go back to the time, too."""
        super().load_state_dict(saved)
        self.seconds = saved["seconds"]


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run all methods, seed after seed, and yield the result after each run."""
    rounds, size = 800, {}
    if options.small:
        rounds, size = 30, {"held_out": 0, "batch_size": 100, "burn_in": 10}

    def ran(name: str, method: Method, seed: int) -> dict:
        file = Checkpoint(run_file(prepared.folder, name, seed))
        job = Timed(method, *prepared[:2], seed=seed, **size)
        more = {"title": f"{name}, seed {seed}", "unit": "round"}
        drive(job, rounds, checkpoint=file, progress=options.progress, **more)
        if job.done < rounds:
            raise KeyboardInterrupt
        return result_of(job)

    methods = {name: [method] for name, method in METHODS.items()}
    for found in study(methods, range(options.seeds), lambda *_: {}, ran):
        yield {"data_checksum": checksum(*prepared[:2]), "methods": found}


def result_of(job: Timed) -> dict:
    """Give the errors of all rounds, and what else was found in some of them."""
    made = circumstances()
    made["versions"]["numpy"] = np.__version__
    some = [t for t in range(job.done) if t < BEGUN or (t + 1) % EVERY == 0]
    return {
        "plan": job.own | {"rounds": job.done},
        "made": made,
        "processor_seconds": round(job.seconds, 1),
        "error": job.found["error"],
        "some": {
            "round": some,
            **{
                name: [job.found[name][t] for t in some]
                for name in ("log_loss", "last_error", "precisions")
            },
        },
    }


EXPERIMENT = Experiment(prepare, run)
