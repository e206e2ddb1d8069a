"""The recommender on made-up ratings, as many as MovieLens-1M has: error, seconds of
the processor and memory of SGHMC and of the exact sampler.

Both have the settings that experiments/recommender_100k.py chose and its 200 passes,
and predict one fifth of the ratings.

usage: python -m benchmarks.recommender (3 minutes of one core; writes
book/results/recommender_1m.json)"""

from contextlib import suppress
from pathlib import Path

import torch

from booklib.runs.results import (
    RESULTS,
    checksum,
    circumstances,
    peak_memory,
    read_result,
    write_result,
)
from experiments.recommender import MADE_UP_RANK, METHODS, PASSES, Prepared, made_up
from experiments.recommender import fitted as fit

SAMPLERS = ("SGHMC", "Gibbs, all the data")


def fitted(name: str, settings: dict, prepared: Prepared, passes: int) -> dict:
    """Fit a method to four fifths of the ratings, with its settings and its memory."""
    with suppress(OSError):  # Linux forgets the peak of what was done before
        Path("/proc/self/clear_refs").write_text("5")
    found = fit(METHODS[name][0], None, settings, prepared, passes, fold=0)
    memory = {"peak_memory_megabytes": peak_memory("cpu")}
    return {"settings": settings, "runs": [found | memory]}


def run(prepared: Prepared, passes: int) -> dict:
    """Fit both samplers to the same ratings."""
    chosen = read_result(RESULTS / "recommender_100k.json")["methods"]
    command = {"command": "python -m benchmarks.recommender"}
    return {
        "provenance": command | circumstances(),
        "data": prepared.source,
        "checksum": checksum(prepared.ratings),
        "ratings": len(prepared.ratings.ratings),
        "passes": passes,
        "methods": {
            name: fitted(name, chosen[name]["settings"], prepared, passes)
            for name in SAMPLERS
        },
    }


def main() -> None:
    """Make ratings of that size up, fit, and write the result."""
    torch.set_num_threads(1)
    prepared = made_up(Path(), 6_040, 3_706, 1_000_209, MADE_UP_RANK)
    write_result(RESULTS / "recommender_1m.json", run(prepared, PASSES))


if __name__ == "__main__":
    main()
