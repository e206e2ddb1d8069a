"""Bring the tables of `make grade` to a learning platform; every command writes to
standard output.

usage: python -m tools.coursework.gradebooks moodle GRADES.csv ASSIGNMENT WORKSHEET.csv
       python -m tools.coursework.gradebooks gradescope TASKS.csv ASSIGNMENT
       python -m tools.coursework.gradebooks names SUBMISSION_METADATA.yml GRADES.csv

moodle      fill the column of grades of Moodle's grading worksheet
gradescope  write the results.json of a Gradescope autograder, from the tasks of its one
submission names       put names, e-mail addresses and student numbers before the scores
of submissions exported from Gradescope"""

import json
import re
import sys
from pathlib import Path

from tools.coursework import tables


def moodle(grades: list[dict], assignment: str, worksheet: list[dict]) -> list[dict]:
    """Fill the column "Grade" of a worksheet.

    Moodle names the folder of a submission NAME_NUMBER_assignsubmission_file, and the
    worksheet's line of the same student "Participant NUMBER". Lines of students without
    a submission stay as they are."""
    if not worksheet or not {"Identifier", "Grade"} <= set(worksheet[0]):
        raise ValueError(
            "the worksheet has no columns Identifier and Grade: download it in "
            "English, with offline grading switched on"
        )
    scores = {}
    for row in grades:
        number = re.search(r"_(\d+)_assignsubmission_file", row["student_id"])
        if row["assignment"] == assignment and row["timestamp"] and number:
            scores[number[1]] = row["score"]
    if not scores:
        raise ValueError(
            f"no submission of {assignment!r} in this table comes from a folder of "
            "Moodle's, NAME_NUMBER_assignsubmission_file"
        )
    return [
        {**row, "Grade": scores.get(row["Identifier"].split()[-1], row["Grade"])}
        for row in worksheet
    ]


def gradescope(tasks: list[dict], assignment: str) -> dict:
    """Make what Gradescope expects of an autograder: a score for each task that a test
    has graded.
    """
    tests = [
        {
            "name": row["task"],
            "score": float(row["points"] or 0),
            "max_score": float(row["max_points"]),
            "visibility": "after_published",
        }
        for row in tasks
        if row["kind"] == "auto" and row["assignment"] == assignment
    ]
    return (
        {"tests": tests}
        if tests
        else {
            "score": 0.0,
            "output": f"No notebook of {assignment} was found in this submission.",
        }
    )


def names(metadata: dict, grades: list[dict]) -> list[dict]:
    """Say who is behind a submission's number; a submission of a group gives a line for
    each of its members.
    """
    rows = []
    for row in grades:
        for person in metadata.get(row["student_id"], {}).get(":submitters", []):
            who = {key: person.get(f":{key}") for key in ("name", "email", "sid")}
            rows.append(
                {
                    **who,
                    **{key: row[key] for key in ("assignment", "score", "max_score")},
                }
            )
    return rows


def show(rows: list[dict]) -> None:
    """Write a table to standard output."""
    if rows:
        tables.write(sys.stdout, list(rows[0]), rows)


def main(command: str = "", *arguments: str) -> None:
    """Run one of the commands of this file's head."""
    try:
        if command == "moodle" and len(arguments) == 3:
            show(
                moodle(
                    tables.read(arguments[0]), arguments[1], tables.read(arguments[2])
                )
            )
        elif command == "gradescope" and len(arguments) == 2:
            # where nothing was handed in
            tasks = tables.read(arguments[0]) if Path(arguments[0]).exists() else []
            print(json.dumps(gradescope(tasks, arguments[1]), indent=1))
        elif command == "names" and len(arguments) == 2:
            import yaml

            metadata = yaml.safe_load(Path(arguments[0]).read_text(encoding="utf-8"))
            show(names(metadata, tables.read(arguments[1])))
        else:
            sys.exit(__doc__)
    except (OSError, ValueError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
