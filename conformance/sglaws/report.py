"""Write what was measured: JSON for machines, a table in Markdown for people."""

import argparse
import datetime
import importlib
import importlib.metadata
import importlib.util
import json
import platform
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from .adapter import Adapter
from .check import SIGNS, TESTS, Square, check_one


def load(named: str) -> list[Adapter]:
    """Import ``module:NAME``, or ``file.py:NAME``; the name is ADAPTERS if left out."""
    module, _, name = named.partition(":")
    if module.endswith(".py"):
        path = Path(module).resolve()
        spec = importlib.util.spec_from_file_location(f"adapters_{path.stem}", path)
        found = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = found  # so that its classes can be pickled
        spec.loader.exec_module(found)
    else:
        found = importlib.import_module(module)
    return list(getattr(found, name or "ADAPTERS"))


def measure(
    adapters: Iterable[Adapter], library: str, tests: Iterable[str] = TESTS
) -> dict:
    """Check all samplers; return what is written as JSON."""
    started, squares = time.process_time(), []
    for adapter in adapters:
        for test in tests:
            square = check_one(adapter, test)
            squares.append(square)
            line = f"{SIGNS[square.sign]:1} {adapter.name:24} {test:17} {square.text}"
            print(line, file=sys.stderr, flush=True)
    packages = {
        each.metadata["Name"].replace("_", "-"): each.version
        for each in importlib.metadata.distributions()
    }
    return {
        "library": library,
        "version": packages.get(library, "of a checkout"),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": dict(sorted(packages.items())),
        "processor_seconds": round(time.process_time() - started, 1),
        "squares": [square._asdict() for square in squares],
    }


def markdown(found: dict) -> str:
    """Give a table with a row for each sampler, and a line for each sign but ●."""
    squares = [Square(**each) for each in found["squares"]]
    lines = [f"**{found['library']} {found['version']}**, {found['date']}", ""]
    lines += ["| sampler | " + " | ".join(TESTS) + " |", "| --- " * 15 + "|"]
    for name in dict.fromkeys(square.sampler for square in squares):
        row = {x.test: SIGNS[x.sign] for x in squares if x.sampler == name}
        lines.append(f"| {name} | " + " | ".join(row.get(x, "") for x in TESTS) + " |")
    lines += ["", *(f"{SIGNS[sign]} {sign}  " for sign in SIGNS if SIGNS[sign]), ""]
    for x in squares:
        if x.sign in ("law", "surprise", "interface"):
            lines.append(f"* {SIGNS[x.sign]} {x.sampler}, {x.test}: {x.text}")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write JSON and Markdown; the status is 1 where a square fails."""
    parser = argparse.ArgumentParser(prog="python -m sglaws", description=__doc__)
    parser.add_argument("command", choices=["report"])
    parser.add_argument("adapters", help="module:NAME or file.py:NAME")
    parser.add_argument("--library", required=True, help="its name on the index")
    parser.add_argument("-o", "--output", type=Path, default=Path("sglaws.json"))
    parser.add_argument("--markdown", type=Path, help="a summary, for a CI's page")
    given = parser.parse_args(arguments)
    found = measure(load(given.adapters), given.library)
    # what is not finite becomes a text, because JSON has no such numbers
    found = json.loads(json.dumps(found), parse_constant=str)
    given.output.write_text(json.dumps(found), encoding="utf-8")
    if given.markdown:
        given.markdown.write_text(markdown(found), encoding="utf-8")
    failed = sum(each["sign"] in ("law", "interface") for each in found["squares"])
    print(f"{len(found['squares'])} squares, {failed} failed: {given.output}")
    return int(failed > 0)
