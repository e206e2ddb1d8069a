"""Hand out the assignments, and grade what comes back.

usage: python -m tools.coursework sync | check | release FOLDER | grade FOLDER
[SUBMISSIONS]

sync      write every assignment's notebook from its percent script
check     say which of these pairs are out of step
release   write the student edition: notebooks without solutions and hidden tests, and
what is needed to work on them grade     grade a folder of submissions, one folder for
each student; without submissions, only write feedback and tables again;
          what students wrote is executed where it sees nothing of this machine, unless
          the environment has UNCONFINED=1
"""

import logging
import os
import sys
import warnings
from pathlib import Path

from sqlalchemy.exc import SAWarning

from tools.coursework import pairs
from tools.coursework.confinement import ConfinementError
from tools.coursework.edition import release
from tools.coursework.grading import grade


def main(command: str = "", *arguments: str) -> None:
    """Run one of the commands of this file's head."""
    warnings.filterwarnings("ignore", category=SAWarning)  # nbgrader's own
    # one that a package of colours adds at its import, and through which nbgrader would
    # chat
    logging.getLogger().handlers.clear()
    if command == "sync":
        pairs.sync()
    elif command == "check":
        found = pairs.problems()
        print("\n".join(found) or f"{len(pairs.assignments())} assignments are in step")
        sys.exit(bool(found))
    elif command == "release" and len(arguments) == 1:
        release(Path(arguments[0]).resolve())
    elif command == "grade" and len(arguments) in (1, 2):
        submissions = Path(arguments[1]).resolve() if len(arguments) == 2 else None
        if submissions is not None and not submissions.is_dir():
            sys.exit(
                "SUBMISSIONS must be a folder with one folder for each student, but "
                f"there is no folder {submissions}"
            )
        try:
            grade(
                Path(arguments[0]).resolve(),
                submissions,
                is_confined=os.environ.get("UNCONFINED") != "1",
            )
        except (ConfinementError, ValueError) as error:
            sys.exit(f"{error}")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
