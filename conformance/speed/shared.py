"""What all workers share: the jobs, their sizes, and how a worker answers.

A worker needs numpy, its library and its library's framework, and nothing of ours."""

import importlib.metadata
import json
import resource
import sys
import time
from collections.abc import Callable

import numpy as np

INNER = 10  # steps from one kept draw to the next; SGLD keeps every step
BATCH, EXAMPLES, DIM = 500, 10_000, 79_510
SGLD, SGHMC, OWN = "logistic, SGLD", "logistic, SGHMC", "logistic, own density"
NUTS = "NUTS"
# programs, whose step is an effective sample: chains, and steps of each half of a run
FRAILTY, HORSESHOE = "NUTS, Weibull frailty", "NUTS, horseshoe"
CHAINS, HALF = 4, 500
# chains, and steps of a turn: of a compiled loop, and of one in Python. Turns are long
# enough for what a run costs once, such as its checks, to be a small part.
WELLS = {
    "double well, 1 chain": (1, 100_000, 4_000),
    "double well, 1,000 chains": (1_000, 10_000, 4_000),
    "double well, 10,000 chains": (10_000, 4_000, 4_000),
}
NETWORKS = {"network, 1 chain": (1, 40, 40), "network, 8 chains": (8, 10, 10)}
STEPS = 20_000, 6_000  # of the regression
# ε, C and B̂: U = θ⁴ − 2θ² with N(0, 4) in its gradient; regression; 784–100–10
WELL, LOGISTIC, NETWORK = (0.1, 3.0, 0.2), (0.003, 100.0, 0.0), (0.0014, 7.0, 0.0)
SGLD_STEP = 1e-5


def regression() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make inputs ``(10,000, 50)``, targets, and the true coefficients ``(50,)``."""
    numbers = np.random.default_rng(0)
    inputs = numbers.standard_normal((EXAMPLES, 50), np.float32)
    truth = 0.3 * numbers.standard_normal(50, np.float32)
    targets = numbers.random(EXAMPLES) < 1 / (1 + np.exp(-inputs @ truth))
    return inputs, targets.astype(np.float32), truth


def pictures(chains: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make inputs ``(10,000, 784)``, classes, and weights ``(chains, 79,510)``."""
    numbers = np.random.default_rng(1)
    inputs = numbers.random((EXAMPLES, 784), np.float32)
    weights = 0.03 * numbers.standard_normal((chains, DIM), np.float32)
    return inputs, numbers.integers(10, size=EXAMPLES), weights


def frailty(name, laws, exp, log, cast):
    """Write survival times of 20 groups, each with an effect of its own (centred), as
    a program of a library.
    """
    numbers, group = np.random.default_rng(0), np.arange(200) % 20
    x, effect = numbers.standard_normal(200), 0.5 * numbers.standard_normal(20)
    scale = np.exp(0.7 * x + effect[group] - 1)
    time = (numbers.exponential(size=200) / scale) ** (1 / 1.5)
    x, seen = cast(x), cast(time < 3)
    time, group = cast(np.minimum(time, 3)), cast(group, int)

    def program():
        shape = name.sample("shape", laws.Gamma(2.0, 1.0))
        intercept = name.sample("intercept", laws.Normal(0.0, 5.0))
        slope = name.sample("slope", laws.Normal(0.0, 2.0))
        spread = name.sample("spread", laws.HalfNormal(1.0))
        with name.plate("groups", 20):
            effect = name.sample("effect", laws.Normal(0.0, spread))
        rate = intercept + slope * x + effect[group]
        hazard = log(shape) + (shape - 1) * log(time) + rate
        name.factor("likelihood", (seen * hazard - time**shape * exp(rate)).sum())

    return program


def horseshoe(name, laws, exp, log, cast):
    """Write a regression of which three of 20 coefficients matter."""
    numbers = np.random.default_rng(1)
    inputs = numbers.standard_normal((100, 20))
    targets = inputs[:, :3] @ [2, -1.5, 1] + numbers.standard_normal(100)
    inputs, targets = cast(inputs), cast(targets)

    def program():
        width = name.sample("width", laws.HalfCauchy(1.0))
        noise = name.sample("noise", laws.HalfNormal(2.0))
        with name.plate("features", 20):
            local = name.sample("local", laws.HalfCauchy(1.0))
            z = name.sample("z", laws.Normal(0.0, 1.0))
        with name.plate("data", 100):
            line = inputs @ (z * local * width)
            name.sample("y", laws.Normal(line, noise), obs=targets)

    return program


PROGRAMS = {FRAILTY: frailty, HORSESHOE: horseshoe}


def seconds() -> float:
    """Give the seconds of the processor so far, of a compiler that was called too."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def serve(
    rows: dict[tuple[str, str], tuple[str, Callable[[], int | np.ndarray]]],
    *packages: str,
    missing: str = "",
) -> None:
    """Answer: first what there is, then the seconds of one turn for each line read.

    Args:
        rows: of (entry, row): what its chain samples, and a function that takes a turn
            and returns the number of steps, or draws ``(chains, draws, dim)``, whose
            smallest effective size is counted instead.
        packages: whose versions are reported.
        missing: why rows are missing, in words.
    """
    out, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    have = [{"entry": e, "row": r, "law": law} for (e, r), (law, _) in rows.items()]
    versions = {name: importlib.metadata.version(name) for name in packages}
    answer = {"versions": versions, "missing": missing, "rows": have}
    print(json.dumps(answer), file=out, flush=True)
    for line in sys.stdin:
        start = seconds()
        steps = rows[tuple(json.loads(line))][1]()
        answer = {"seconds": seconds() - start, "steps": np.asarray(steps).tolist()}
        print(json.dumps(answer), file=out, flush=True)
