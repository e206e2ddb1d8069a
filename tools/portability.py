"""Execute the chapters as other processors would, or with other seeds, and print how
far every claim's value moved.

usage: python -m tools.portability settings [--only NAME ...] [--chapters STEM ...]
       python -m tools.portability seeds    [--number 10]     [--chapters STEM ...]
       python -m tools.portability tests    [--only NAME ...] [ARGUMENTS OF PYTEST]

settings  one setting of the libraries changed at a time; an exact claim may move by at
most a third of its margin, and no
          claim may leave its bound
seeds     the chapters' random numbers shifted, data sets excepted; a live claim's
margin is at least five of the standard
          deviations found so
tests     the tests that do not look at the built book, under each of the settings;
names a test that fails

What was executed is kept in ``_build/portability`` until a chapter's code or the
package changes, so a stopped run goes on."""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, stdev

from tools import book
from tools.notebooks import from_source

SETTINGS = {
    "as it is": {},
    "no vectors": {"ATEN_CPU_CAPABILITY": "default"},
    "AVX2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "AVX-512": {"ATEN_CPU_CAPABILITY": "avx512"},
    "MKL compatible": {"MKL_CBWR": "COMPATIBLE"},
    "oneDNN SSE4.1": {"ONEDNN_MAX_CPU_ISA": "SSE41"},
    "2 threads": {"OMP_NUM_THREADS": "2"},
    "4 threads": {"OMP_NUM_THREADS": "4"},
}
FOLDER = book.ROOT / "_build" / "portability"
# of an exact claim's margin that it may move; standard errors that a live claim's
# margin has
SHARE, ERRORS = 1 / 3, 5.0
# root mean square of ten distances in standard errors: those of right ones exceed it
# once in 10,000 times
HONEST = 1.9
# standard errors by which the largest of a few distances is below five: a normal number
# exceeds 4.2 once in 37,000 times
SPARE = 0.8
# between one seed and the next: no chapter's own seeds lie that far apart
SHIFT = 7_919


# Seeds that a chapter sets itself for its data, not for its draws: another processor
# has the same data.
DATA = {
    "minibatch_noise": (0,),
    "naive_sghmc": (1,),
    "tuning": (0,),
    "recipes": (0,),
    "my_layer": (0,),
    "my_targets": (0,),
    "my_model": (0,),
    "step_cost": (0,),
    "minibatch_metropolis": (8,),
    "control_variates": (0,),
    "variational": (0,),
    "errata": (0,),
    "constant_sgd": (0, 1),
    "langevin": (0, 1),
    "splittings": (3,),
    "neighbours": (0, 2),
    "neighbours_on_networks": (0,),
}


# One chapter, in a process of its own
# ------------------------------------------------------


def execute(path: Path, shift: int) -> dict:
    """Execute a chapter's cells here and now; return its claims, what was raised, and
    processor seconds.
    """
    import matplotlib.pyplot as plt

    import booklib.page.claims

    found, raised, started = [], [], time.process_time()

    booklib.page.claims._emit = lambda record: found.append(
        record | {"value": math.nan if record["value"] is None else record["value"]}
    )
    if shift:
        shift_seeds(shift, path)
    os.chdir(path.parent)
    names = {"__name__": "__main__"}
    lines = (
        path.read_text(encoding="utf-8").splitlines() if path.suffix == ".py" else []
    )
    for cell in book.code_cells(from_source(path)):
        first = next(
            (
                n
                for n in range(len(lines))
                if lines[n : n + cell.source.count("\n") + 1]
                == cell.source.splitlines()
            ),
            0,
        )
        code = "\n".join(
            "pass" if line.startswith("%") else line
            for line in cell.source.splitlines()
        )
        try:
            exec(compile("\n" * first + code, str(path), "exec"), names)
        except Exception as error:
            raised.append(f"{type(error).__name__}: {error}"[:500])
            break
        plt.close("all")
    return {"claims": found, "raised": raised, "seconds": time.process_time() - started}


def shift_seeds(shift: int, path: Path) -> None:
    """Add a number to every seed that is set from now on, other than for data sets."""
    import numpy as np
    import torch

    import booklib.data

    class Shifted(torch.Generator):
        def manual_seed(self, seed: int) -> torch.Generator:
            of_data = sys._getframe(1).f_code.co_filename == str(
                path
            ) and seed in DATA.get(path.stem, ())
            return super().manual_seed(seed if of_data else (seed + shift) % 2**63)

    rng = np.random.default_rng
    # keeps the generator that it has
    booklib.data.torch = type("torch", (), {**vars(torch)})
    torch.Generator = Shifted
    for module in list(sys.modules.values()):
        name = getattr(module, "__name__", "")
        if name.startswith(
            ("sgmc", "booklib", "experiments", "benchmarks")
        ) and hasattr(module, "Generator"):
            module.Generator = Shifted
    np.random.default_rng = lambda seed=None: rng(
        seed + shift if isinstance(seed, int) else seed
    )


# All chapters
# ------------------------------------------------------------------------------


def executed(path: Path, name: str, changes: dict[str, str], shift: int = 0) -> dict:
    """Execute a chapter in another process, or read what that gave the last time."""
    key = book.code_hash(from_source(path), book.environment_hash())
    target = FOLDER / name / f"{path.stem}.json"
    if (
        target.is_file()
        and (kept := json.loads(target.read_text(encoding="utf-8"))).get("key") == key
    ):
        return kept
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "tools.portability",
        "one",
        str(path),
        str(shift),
        str(target),
    ]
    quiet = {
        "TQDM_DISABLE": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }
    environment = {
        **os.environ,
        "PYTHONPATH": str(book.ROOT),
        "OMP_NUM_THREADS": "1",
        **quiet,
        **changes,
    }
    done = subprocess.run(
        command, env=environment, cwd=book.ROOT, capture_output=True, text=True
    )
    if done.returncode == 0:
        found = json.loads(target.read_text(encoding="utf-8"))
    else:
        found = {
            "claims": [],
            "raised": [
                f"the process ended with {done.returncode}: {done.stderr[-300:]}"
            ],
            "seconds": 0.0,
        }
    book.write(target, json.dumps({**found, "key": key}, indent=1))
    return found


def runs(
    names: dict[str, tuple[dict, int]], pages: list[Path]
) -> Iterator[tuple[Path, str, dict]]:
    """Execute all pages under all names, as many at a time as there are processors."""
    with ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count()))) as pool:
        waiting = [
            (page, name, pool.submit(executed, page, name, *how))
            for page in pages
            for name, how in names.items()
        ]
        for count, (page, name, future) in enumerate(waiting, start=1):
            found = future.result()
            print(
                f"{count} of {len(waiting)}: {page.stem}, {name}, "
                f"{found['seconds']:.0f} s",
                file=sys.stderr,
                flush=True,
            )
            yield page, name, found


def in_errors(claim: dict) -> dict:
    """Count the distance of a claim's value from another number in standard errors,
    where these are its bound.
    """
    if set(claim["bound"]) != {"near"}:
        return claim
    distance = (claim["value"] - claim["bound"]["near"]) / (claim["error"] or math.nan)
    return claim | {"value": distance, "bound": {"near": 0.0, "within": ERRORS}}


def margin(claim: dict) -> float:
    """Say how far a claim's value is inside its bound, and nothing of one without a
    bound: infinitely far, or outside.
    """
    value, bound = claim["value"], claim["bound"]
    if math.isnan(value):
        return -math.inf
    if "at_most" in bound:
        return bound["at_most"] - value
    if "at_least" in bound:
        return value - bound["at_least"]
    if "near" in bound:
        return bound["within"] - abs(value - bound["near"])
    return math.inf if claim["holds"] else -1.0


def table(found: dict[Path, dict[str, dict]], by_seed: bool) -> int:
    """Print for each claim how far it moved; return how many are not as they should
    be.
    """
    wrong = 0
    print(
        "| chapter | claim | kind | value | range | margin | moved | |\n| --- | --- | "
        "--- | ---: | ---: | ---: | ---: | --- |"
    )
    for page, by_name in found.items():
        for name, run in by_name.items():
            for line in run["raised"]:
                wrong += 1
                print(f"| {page.stem} | {name}: {line} | | | | | | ✗ |")
        whole = [list(map(in_errors, run["claims"])) for run in by_name.values()]
        if len({len(claims) for claims in whole}) != 1:
            continue  # one of them stopped early, which is said above
        for same in zip(*whole, strict=True):
            values, margins, kind = (
                [claim["value"] for claim in same],
                [margin(claim) for claim in same],
                same[0]["kind"],
            )
            spread, least = max(values) - min(values), min(margins)
            # a distance in standard errors: are these what they say?
            if by_seed and same[0]["bound"] == {"near": 0.0, "within": ERRORS}:
                size = math.sqrt(fmean(value**2 for value in values))
                bad, moved = (
                    kind == "live" and (least < 0 or size > HONEST),
                    f"{size:.1f} in the mean",
                )
            # no normal distribution describes the largest of some such distances
            elif by_seed and "errors" in same[0]["bound"]:
                bad, moved = kind == "live" and least < SPARE, f"{least:.1f} errors"
            elif by_seed:
                share = (
                    fmean(margins) / stdev(values)
                    if spread and math.isfinite(least)
                    else math.inf
                )
                bad, moved = (
                    kind == "live" and (least < 0 or share < ERRORS),
                    f"{share:.1f} errors",
                )
            else:
                share = spread / max(least, 1e-300) if spread else 0.0
                bad = least < 0 or (kind == "exact" and share > SHARE)
                moved = f"{100 * share:.0f} %"
            wrong += bad
            if spread or bad:
                print(
                    f"| {page.stem} | {same[0]['says'] or same[0]['name']} | {kind} | "
                    f"{values[0]:.5g} | {min(values):.5g} to {max(values):.5g} "
                    f"| {least:.2g} | {moved} | {'✗' if bad else ''} |"
                )
    seconds = sum(
        run["seconds"] for by_name in found.values() for run in by_name.values()
    )
    print(f"\n{wrong} not as they should be; {seconds:.0f} s of processor time")
    return wrong


def tests(settings: dict[str, dict], arguments: list[str]) -> int:
    """Run the tests under each of the settings; return how many of the settings made
    one fail.
    """
    failed = 0
    for name, changes in settings.items():
        print(f"\n# {name}", flush=True)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "--dist",
            "loadfile",
            "-m",
            "not book and not browser",
            *arguments,
        ]
        environment = {
            **os.environ,
            "PYTHONPATH": str(book.ROOT),
            "OMP_NUM_THREADS": "1",
            "TQDM_DISABLE": "1",
            **changes,
        }
        failed += (
            subprocess.run(command, env=environment, cwd=book.ROOT).returncode != 0
        )
    return failed


def main() -> int:
    """Run one of the commands of this file's head."""
    if sys.argv[1:2] == ["one"]:
        book.write(
            Path(sys.argv[4]), json.dumps(execute(Path(sys.argv[2]), int(sys.argv[3])))
        )
        return 0
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("command", choices=("settings", "seeds", "tests"))
    parser.add_argument("--only", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--chapters", nargs="+", default=[])
    parser.add_argument("--number", type=int, default=10)
    chosen, rest = parser.parse_known_args()
    settings = {name: SETTINGS[name] for name in chosen.only}
    if chosen.command == "tests":
        return tests(
            settings,
            rest or ["tests", "--ignore=tests/book"],
        )
    pages = [
        page
        for page in book.chapters()
        if not chosen.chapters or page.stem in chosen.chapters
    ]
    if chosen.command == "seeds":
        names = {
            f"seed {shift}" if shift else "as it is": ({}, SHIFT * shift)
            for shift in range(chosen.number)
        }
    else:
        names = {name: (changes, 0) for name, changes in settings.items()}
    found = {page: {} for page in pages}
    for page, name, run in runs(names, pages):
        found[page][name] = run
    return int(table(found, chosen.command == "seeds") > 0)


if __name__ == "__main__":
    sys.exit(main())
