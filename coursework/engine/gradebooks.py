"""Bring the tables of ``make grade`` to a learning platform."""

import re

WHO = ("name", "email", "sid")  # of Gradescope's, and of a score
MARKS = ("assignment", "score", "max_score", "waiting")


def moodle(grades: list[dict], assignment: str, worksheet: list[dict]) -> list[dict]:
    """Fill the column "Grade" of Moodle's grading worksheet.

    Moodle names the folder of a submission NAME_NUMBER_assignsubmission_file, and the
    worksheet's line of the same student "Participant NUMBER". Lines of students without
    a submission stay as they are.

    Raises:
        ValueError: if the worksheet or the table is not of Moodle's, or if something
            waits for a mark by hand, so that the scores are not final.
    """
    if not worksheet or not {"Identifier", "Grade"} <= set(worksheet[0]):
        raise ValueError(
            "the worksheet has no columns Identifier and Grade: download it in "
            "English, with offline grading switched on"
        )
    own = [row for row in grades if row["assignment"] == assignment]
    if waiting := [row for row in own if float(row["waiting"])]:
        points = sum(float(row["waiting"]) for row in waiting)
        raise ValueError(
            f"the scores of {len(waiting)} students for {assignment} are not final: "
            f"{points:g} points wait for a mark by hand (the column waiting of "
            "grades.csv). Say make marking, and make grade again"
        )
    scores = {}
    for row in own:
        number = re.search(r"_(\d+)_assignsubmission_file", row["student_id"])
        if row["timestamp"] and number:
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
    """Make the results.json of a Gradescope autograder from the tasks of its one
    submission: a score for each task that a test has graded.
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
    missing = f"No notebook of {assignment} was found in this submission."
    return {"tests": tests} if tests else {"score": 0.0, "output": missing}


def names(metadata: dict, grades: list[dict]) -> list[dict]:
    """Put names, e-mail addresses and student numbers before the scores of submissions
    exported from Gradescope; one of a group gives a line for each of its members.
    """
    return [
        {key: person.get(f":{key}") for key in WHO} | {key: row[key] for key in MARKS}
        for row in grades
        for person in metadata.get(row["student_id"], {}).get(":submitters", [])
    ]
