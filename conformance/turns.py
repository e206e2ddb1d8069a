"""How fast published libraries take a step: each is a worker, a process of its own
environment, and every row is timed in turns, on one core and in one thread.
"""

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import arviz
import numpy as np

from booklib.runs.results import RESULTS, circumstances, read_result, write_result

ROOT = Path(__file__).resolve().parents[1]
TURNS, FEW, SLOW = 7, 3, 4.0  # few turns of a row that has one of so many seconds
# of each worker, the environment, named as its requirements
WORKERS = {"sgmc": "sgmc", "torch_by_hand": "sgmc", "posteriors": "torch"}
WORKERS |= {name: "jax" for name in ("jax_by_hand", "blackjax", "numpyro")}
WORKERS |= {"sgmcmcjax": "old_jax", "jax_sgmc": "old_jax"}
MODULE = "conformance.speed."
ALONE = {
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",  # compiling is timed too,
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # and in the worker's own children
    "PYTHONPATH": str(ROOT),
}


class Worker:
    """A process that says what rows it has, and takes a turn of one when asked."""

    def __init__(self, command: list[str]):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        core = ["taskset", "-c", str(max(os.sched_getaffinity(0)))]
        self.process = subprocess.Popen(core + command, env=os.environ | ALONE, **pipes)
        self.first = self._read()

    def _read(self) -> dict:
        if line := self.process.stdout.readline():
            return json.loads(line)
        raise RuntimeError(f"a worker has ended: {' '.join(self.process.args)}")

    def turn(self, row: dict) -> dict:
        """Take a turn of a row: its steps, and their seconds of the processor."""
        asked = json.dumps([row["entry"], row["row"]])
        print(asked, file=self.process.stdin, flush=True)
        found = self._read()
        if (draws := np.asarray(found["steps"])).ndim:
            found["steps"] = float(arviz.ess(arviz.convert_to_dataset(draws)).x.min())
        return found


def in_turns(workers: list[Worker], turns: int, rows: list[str]) -> list[dict]:
    """Time rows, all by default, by the workers in turns; the first turn, in which
    things are compiled, is reported apart.
    """
    have = [(each, row) for each in workers for row in each.first["rows"]]
    have = [(each, row) for each, row in have if not rows or row["row"] in rows]
    compiled, found = [worker.turn(row) for worker, row in have], []
    print("first turns taken", flush=True)
    for name in dict.fromkeys(row["row"] for _, row in have):
        taken = [
            (worker, row, [first])
            for (worker, row), first in zip(have, compiled, strict=True)
            if row["row"] == name
        ]
        for turn in range(turns):
            if turn == FEW and max(x[-1]["seconds"] for *_, x in taken) > SLOW:
                break
            for worker, row, times in taken:
                times.append(worker.turn(row))
        for _, row, (first, *times) in taken:
            each = [turn["seconds"] / turn["steps"] * 1e6 for turn in times]
            found.append(row | {"first_turn_seconds": round(first["seconds"], 2)})
            found[-1]["turns"] = len(times)
            found[-1]["microseconds_a_step"] = {
                "median": float(f"{statistics.median(each):.4g}"),
                "spread": [float(f"{x:.4g}") for x in (min(each), max(each))],
            }
            for key in ("seconds", "steps"):
                of_turns = statistics.median(turn[key] for turn in times)
                found[-1][f"{key}_a_turn"] = round(of_turns, 4)
    return found


def run_speed(
    interpreter: Callable[[str], Path], turns: int, rows: list[str], names: list[str]
) -> list[dict]:
    """Time all libraries, or those named; some rows take the place of stored ones."""
    load, start, workers = [os.getloadavg()], time.monotonic(), {}
    for name in names or WORKERS:
        environment = WORKERS[name]
        # -P: a worker has the name of its library
        command = [str(interpreter(environment)), "-P", "-m"]
        workers[name] = Worker([*command, MODULE + name])
    found = in_turns(list(workers.values()), turns, rows)
    for worker in workers.values():
        worker.process.stdin.close()
        worker.process.wait()
    for row in found:
        cost = row["microseconds_a_step"]
        print(f"{row['row']:26} {row['entry']:23} {cost['median']:10,.2f} µs a step")
    some = [f'"{x}"' for x in rows] and ["--rows", *(f'"{x}"' for x in rows)]
    some += names and ["--workers", *names]
    command = " ".join(["python -m conformance speed", *some])
    origin = {"command": command, **circumstances()}
    origin |= {"seconds": round(time.monotonic() - start, 1)}
    origin |= {"load_average": [round(x[0], 2) for x in (*load, os.getloadavg())]}
    about = {
        name: {key: worker.first[key] for key in ("versions", "missing")}
        for name, worker in workers.items()
    }
    settings = {"turns": turns, "environment": ALONE | {"PYTHONPATH": "."}}
    result = {"provenance": origin, "settings": settings, "workers": about}
    target = RESULTS / "speed_of_libraries.json"
    if rows or names:
        result = read_result(target)
        new = {(row["row"], row["entry"]) for row in found}
        old = [x for x in result["rows"] if (x["row"], x["entry"]) not in new]
        found = old + [row | {"about": about, "provenance": origin} for row in found]
    write_result(target, result | {"rows": found})
    return found
