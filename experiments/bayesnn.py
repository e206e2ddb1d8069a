"""Figure 4 by the program of Chen et al. (2014), ported: experiments.bayesnn_program.

Its settings: η = 0.1 for the mean over 50,000 digits, α = 0.01, weights from N(0,
0.01²), 800 rounds, averages from round 50 on, and a Gibbs step for the prior's
precisions under every method. What it calls ``sgd`` is SGD with momentum; Nesterov's,
``nag``, has the noise of SGHMC unless that is switched off, and SGLD has the η of
SGHMC.
"""

import time
from collections.abc import Iterator

import numpy as np

from booklib.data import digits, mnist
from booklib.runs.results import checksum, circumstances
from experiments.bayesnn_program import Method, Program
from experiments.comparison import run_file
from experiments.study import Experiment, Options, Prepared, study
from sgmc.checkpoints import Checkpoint
from sgmc.door.running import drive

METHODS = {
    "SGHMC": Method(),
    "SGD with momentum": Method(noise=False),
    "SGLD": Method(momentum_decay=1.0),
    "Nesterov, noise on": Method(nesterov=True),
    "Nesterov, noise off": Method(noise=False, nesterov=True),
}
BEGUN, EVERY = 10, 10  # all is stored of the first ten rounds and of every tenth


def prepare(options: Options) -> Prepared:
    """Load the digits, in the order of their files."""
    train, test = digits() if options.small else mnist(options.data)
    return Prepared(train, test, folder=options.folder("bayesnn"))


class Timed(Program):
    """A run that records when and where it ran, and counts processor time."""

    seconds = 0.0
    parts: tuple[dict, ...] = ()  #: circumstances, and from which round on
    begun = False

    def advance(self) -> None:
        """Go through the data, and score."""
        if not self.begun:
            made = {"from_round": self.done, **circumstances()}
            made["versions"]["numpy"] = np.__version__
            self.parts, self.begun = (*self.parts, made), True
        started = time.process_time()
        super().advance()
        self.seconds += time.process_time() - started

    def state_dict(self) -> dict:
        """Return the state with the circumstances."""
        own = {"seconds": self.seconds, "parts": list(self.parts)}
        return super().state_dict() | own

    def load_state_dict(self, saved: dict) -> None:
        """Restore the state with the circumstances."""
        super().load_state_dict(saved)
        self.seconds, self.parts = saved["seconds"], tuple(saved["parts"])


def make(name: str, seed: int, options: Options, prepared: Prepared) -> dict:
    """Make the run of a method and a seed, or go on with it."""
    rounds, size = 800, {}
    if options.small:
        rounds, size = 30, {"held_out": 0, "batch_size": 100, "burn_in": 10}
    job = Timed(METHODS[name], *prepared[:2], seed=seed, **size)
    file = Checkpoint(run_file(prepared.folder, name, seed))
    more = {"title": f"{name}, seed {seed}", "unit": "round"}
    drive(job, rounds, checkpoint=file, progress=options.progress, **more)
    if job.done < rounds:
        raise KeyboardInterrupt
    return result_of(job)


def result_of(job: Timed) -> dict:
    """Return the errors of all rounds, with further results of some of them."""
    some = [t for t in range(job.done) if t < BEGUN or (t + 1) % EVERY == 0]
    names = ("log_loss", "last_error", "precisions")
    found = {name: [job.found[name][t] for t in some] for name in names}
    return {
        "seed": job.own["seed"],
        "settings": job.own | {"rounds": job.done},
        "made": list(job.parts),
        "processor_seconds": round(job.seconds, 1),
        "error": job.found["error"],
        "some": {"round": some, **found},
    }


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run all methods, seed after seed, and yield the result after each run."""

    def ran(name: str, method: Method, seed: int) -> dict:
        return make(name, seed, options, prepared)

    methods = {name: [method] for name, method in METHODS.items()}
    for found in study(methods, range(options.seeds), lambda *_: {}, ran):
        yield {"data_checksum": checksum(*prepared[:2]), "methods": found}


EXPERIMENT = Experiment(prepare, run)
