"""Hand out assignments, and grade what comes back.

usage: python -m coursework COMMAND ...

sync                       write every assignment's notebook from its percent script
check                      say which of these notebooks are out of step
release FOLDER             write the student edition, without solutions and hidden tests
export FOLDER              write a course directory of nbgrader, with its source tree
grade FOLDER [SUBMISSIONS] grade a folder of submissions into the gradebook in FOLDER;
                           without submissions only write feedback and tables again
marking FOLDER             open the pages in which one marks by hand
moodle GRADES.csv ASSIGNMENT WORKSHEET.csv    fill Moodle's grading worksheet
gradescope TASKS.csv ASSIGNMENT               write Gradescope's results.json
names SUBMISSION_METADATA.yml GRADES.csv      say who is who in Gradescope's export

The last three write to standard output. Students' code runs where it sees nothing of
this machine, unless the environment has UNCONFINED=1."""

import inspect
import json
import logging
import os
import sys
import warnings
from pathlib import Path

import yaml
from sqlalchemy.exc import SAWarning

from coursework.engine import gradebooks, pairs, tables
from coursework.engine.confinement import ConfinementError
from coursework.engine.edition import course, release
from coursework.engine.grading import grade


def sync() -> None:
    """Write the notebooks that are out of step."""
    for path, text in pairs.out_of_step().items():
        path.write_text(text)
        print(f"wrote {path.relative_to(pairs.ROOT)}")


def check() -> None:
    """Say which notebooks are out of step."""
    for path in (found := pairs.out_of_step()):
        print(f"{path.relative_to(pairs.ROOT)} is out of step: run make sync")
    sys.exit(bool(found))


def grade_all(folder: str, submissions: str | None = None) -> None:
    """Grade a folder."""
    place = Path(submissions).resolve() if submissions else None
    if place and not place.is_dir():
        sys.exit(f"SUBMISSIONS must be a folder, and there is no folder {place}")
    is_confined = os.environ.get("UNCONFINED") != "1"
    grade(Path(folder).resolve(), place, is_confined=is_confined)


def marking(folder: str) -> None:
    """Open JupyterLab in the folder of the gradebook."""
    os.chdir(folder)
    os.execv(sys.executable, [sys.executable, "-m", "jupyter", "lab"])


def moodle(grades: str, assignment: str, worksheet: str) -> None:
    """Fill Moodle's worksheet."""
    filled = gradebooks.moodle(tables.read(grades), assignment, tables.read(worksheet))
    tables.write(sys.stdout, filled)


def gradescope(tasks: str, assignment: str) -> None:
    """Write Gradescope's results."""
    rows = tables.read(tasks) if Path(tasks).exists() else []  # nothing was handed in
    print(json.dumps(gradebooks.gradescope(rows, assignment), indent=1))


def names(metadata: str, grades: str) -> None:
    """Say who is who."""
    people = yaml.safe_load(Path(metadata).read_text(encoding="utf-8"))
    tables.write(sys.stdout, gradebooks.names(people, tables.read(grades)))


COMMANDS = {
    "sync": sync,
    "check": check,
    "release": lambda folder: release(Path(folder).resolve()),
    "export": lambda folder: course(Path(folder).resolve()),
    "grade": grade_all,
    "marking": marking,
    "moodle": moodle,
    "gradescope": gradescope,
    "names": names,
}


def main(command: str = "", *arguments: str) -> None:
    """Run one of the commands of this file's head."""
    warnings.filterwarnings("ignore", category=SAWarning)  # nbgrader's own
    # which a package of colours adds, and through which nbgrader would chat
    logging.getLogger().handlers.clear()
    try:
        inspect.signature(COMMANDS[command]).bind(*arguments)
    except (KeyError, TypeError):
        sys.exit(__doc__)
    try:
        COMMANDS[command](*arguments)
    except (ConfinementError, ValueError, OSError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
