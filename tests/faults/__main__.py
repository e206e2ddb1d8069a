"""Plant faults in a copy of the code, one at a time, and tell which of them the tests see.

usage: python -m tests.faults [--only WORD] [--list]

The status is 1 if a fault survived of which it is not known why, or one was seen that is said to survive.
"""

import argparse
import shlex
import sys
import tempfile
from pathlib import Path

from tqdm import tqdm

from tests.faults import FAULTS
from tests.faults.planting import ROOT, copy_tree, run_tests, try_fault


def main() -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Plant faults in the code and see which the tests see.")
    parser.add_argument("--only", metavar="WORD", default="", help="only faults with this word in their file, sentence or tests")
    parser.add_argument("--list", action="store_true", help="list the faults, and plant none")
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
        print("the tests of these faults, without a fault", file=sys.stderr)
        if failing := run_tests(tree, dict.fromkeys(test for fault in faults for test in fault.tests.split()), seconds=None):
            print(f"{failing} fails without any fault: mend that first")
            return 2
        survived, unexpected = [], []
        for fault in tqdm(faults, unit="fault", file=sys.stderr):
            seen_by, seconds = try_fault(fault, tree)
            if not seen_by:
                survived.append(fault)
            if bool(seen_by) == bool(fault.survives):
                unexpected.append(fault)
            verdict = f"seen      {seconds:6.1f} s" if seen_by else f"SURVIVED  {seconds:6.1f} s"
            tqdm.write(f"{verdict}  {fault.name} ({seen_by or fault.survives or 'no reason is known'})", file=sys.stdout)
            sys.stdout.flush()
    print(f"{len(faults)} faults, {len(faults) - len(survived)} seen, {len(survived)} survived")
    for fault in unexpected:
        known = "is said to survive, but was seen" if fault.survives else "survived, and no reason is known"
        print(f"{fault.name}: {known}; try it by python -m tests.faults --only {shlex.quote(fault.name)}")
    return int(bool(unexpected))


if __name__ == "__main__":
    sys.exit(main())
