"""Plant faults in a copy of the code, one at a time, and tell which of them the tests
see.

usage: python -m tests.faults [--only WORD] [--list]

The status is 1 if a fault survived or could not be tried.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tqdm import tqdm

from tests.faults import FAULTS
from tests.faults.planting import ROOT, NoVerdictError, copy_tree, try_fault


def main() -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description="Plant faults in the code and see which the tests see.",
    )
    parser.add_argument(
        "--only",
        metavar="WORD",
        default="",
        help="only faults with this word in their file, sentence or tests",
    )
    parser.add_argument(
        "--list", action="store_true", help="list the faults, and plant none"
    )
    given = parser.parse_args()
    faults = [fault for fault in FAULTS if given.only in f"{fault.name} {fault.tests}"]
    if given.list or not faults:
        for fault in faults:
            print(fault.name)
        print(f"{len(faults)} faults")
        return int(not faults)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        tree = Path(folder)
        copy_tree(ROOT, tree)
        counts, unexpected = Counter(), []
        for fault in tqdm(faults, unit="fault", file=sys.stderr):
            try:
                seen_by, seconds = try_fault(fault, tree)
                outcome, why = (
                    ("seen", seen_by) if seen_by else ("SURVIVED", "no test saw it")
                )
                line = f"{outcome:10}{seconds:6.1f} s  {fault.name} ({why})"
            except NoVerdictError as error:
                outcome, line = "NO VERDICT", f"NO VERDICT  {fault.name} ({error})"
            counts[outcome] += 1
            if outcome != "seen":
                unexpected.append(line)
            tqdm.write(line, file=sys.stdout)
            sys.stdout.flush()
    print(
        f"{len(faults)} faults: "
        + ", ".join(f"{number} {outcome}" for outcome, number in counts.items())
    )
    print(
        "\n".join(["not as it should be:", *unexpected])
        if unexpected
        else "all as they should be"
    )
    return int(bool(unexpected))


if __name__ == "__main__":
    sys.exit(main())
