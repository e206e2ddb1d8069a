"""Who takes the course, and until when an assignment is due: two optional tables in the
folder of the gradebook.
"""

import datetime
import zoneinfo
from pathlib import Path
from typing import NamedTuple

from nbgrader.api import Gradebook

from tools.coursework import tables
from tools.coursework.submissions import student_id


class Person(NamedTuple):
    """A student as the roster has her."""

    last_name: str
    first_name: str
    email: str


def read_table(path: Path, columns: list[str]) -> list[dict[str, str]]:
    """Read a table that must have some columns; none where there is no file.

    Raises:
        ValueError: if a column is missing.
    """
    if not path.exists():
        return []
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        head = file.readline()
    if not set(columns) <= {name.strip().strip('"') for name in head.split(",")}:
        raise ValueError(
            f"{path} should begin with the line {','.join(columns)}, but it begins "
            f"with {tables.one_line(head).strip()}"
        )
    return [
        {name: (row[name] or "").strip() for name in columns}
        for row in tables.read(path)
    ]


def read_roster(path: Path) -> dict[str, Person]:
    """Read a roster, ``student_id,last_name,first_name,email``; the id is the name of
    the student's folder among the submissions.

    Raises:
        ValueError: if a column is missing, an id is empty, or two lines are of the same
            student.
    """
    people = {}
    for number, row in enumerate(
        read_table(path, ["student_id", "last_name", "first_name", "email"]), 2
    ):
        student = student_id(row.pop("student_id"))
        if student == "_":
            raise ValueError(f"line {number} of {path} has no student_id")
        if student in people:
            raise ValueError(
                f"line {number} of {path}: there is a student {student} already"
            )
        people[student] = Person(**row)
    return people


def read_dates(path: Path) -> dict[str, datetime.datetime]:
    """Read the dates, ``assignment,due``: a date and a time with a zone, 2026-11-02
    23:59 Europe/Berlin or 2026-11-02T23:59+01:00.

    Raises:
        ValueError: if a column is missing, or a date cannot be understood or has no
            zone.
    """
    dates = {}
    for number, row in enumerate(read_table(path, ["assignment", "due"]), 2):
        try:
            dates[row["assignment"]] = read_date(row["due"])
        # an unknown zone is one of the latter two
        except (ValueError, KeyError, OSError):
            shape = (
                "a date, a time and a zone, like 2026-11-02 23:59 Europe/Berlin or "
                "2026-11-02T23:59+01:00"
            )
            raise ValueError(
                f"line {number} of {path} should have {shape}, but it has "
                f"{row['due'] or 'nothing'}"
            ) from None
    return dates


def read_date(text: str) -> datetime.datetime:
    """Read a date, a time and a zone.

    Example:
        >>> print(read_date("2026-11-02 23:59 Europe/Berlin"))
        2026-11-02 23:59:00+01:00
    """
    date, _, zone = text.rpartition(" ")
    if "/" in zone or zone == "UTC":
        return datetime.datetime.fromisoformat(date).replace(
            tzinfo=zoneinfo.ZoneInfo(zone)
        )
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("no zone")
    return moment


def enrol(folder: Path) -> None:
    """Bring ``roster.csv`` and ``dates.csv``, as far as they are there, into the
    gradebook in the same folder.

    Raises:
        ValueError: if one of them cannot be understood, or names an assignment that
            there is not.
    """
    roster, dates = read_roster(folder / "roster.csv"), read_dates(folder / "dates.csv")
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "sgmc") as book:
        known = [item.name for item in book.assignments]
        for assignment, due in dates.items():
            if assignment not in known:
                raise ValueError(
                    f"{folder / 'dates.csv'} names {assignment or 'nothing'}, but the "
                    f"assignments are {', '.join(known)}"
                )
            book.update_or_create_assignment(assignment, duedate=due)
        for student, person in roster.items():
            book.update_or_create_student(student, **person._asdict())
