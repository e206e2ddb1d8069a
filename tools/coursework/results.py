"""Write what a gradebook holds: feedback pages, the tables of scores and tasks, and the
remarks.
"""

from contextlib import suppress
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook

from tools.coursework import feedback, tables
from tools.coursework.pairs import ROOT, assignments, task_of
from tools.coursework.roster import read_roster

ABSENT, STRANGER = "handed in nothing", "is not on the roster"
NAMES = ["last_name", "first_name", "email"]
GRADES = [
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    *NAMES,
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
    "hours_late",
]
TASKS = [
    "student_id",
    "assignment",
    "task",
    "points",
    "max_points",
    "kind",
    "needs_marking",
    "reason",
]
# how many remarks on a submission, and how many characters of each, are written
REMARKS, LONGEST = 30, 500


def export(
    folder: Path, remarks: dict[tuple[str, str], list[str]], root: Path = ROOT
) -> None:
    """Write the feedback pages, and the tables of scores, of tasks and of remarks.

    Args:
        folder: where the gradebook is, and the tables go.
        remarks: on submissions, by student and assignment, as ``read_remarks`` gives
            them.
        root: the tree whose assignments these are.
    """
    items = {item.name: item for item in assignments(root)}
    roster = read_roster(folder / "roster.csv")
    remarks = {
        key: [line for line in lines if line not in (ABSENT, STRANGER)]
        for key, lines in remarks.items()
    }
    grades, tasks, pages = [], [], {}
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "sgmc") as book:
        for assignment in book.assignments:
            handed_in = {
                submission.student.id: submission
                for submission in assignment.submissions
            }
            if not handed_in:
                continue
            for student in sorted(book.students, key=lambda student: student.id):
                submission, key = (
                    handed_in.get(student.id),
                    (student.id, assignment.name),
                )
                grades.append(grade_of(assignment, student, submission))
                if submission is None:
                    if student.id in roster:
                        remarks[key] = [ABSENT]
                    continue
                if roster and student.id not in roster:
                    remarks.setdefault(key, []).append(STRANGER)
                for paper in submission.notebooks:
                    place = Path(student.id, assignment.name, f"{paper.name}.ipynb")
                    notebook = read_notebook(folder / "submitted" / place)
                    tasks += tasks_of(paper, notebook, student.id, assignment.name)
                    if assignment.name in items:
                        released = nbformat.read(
                            folder
                            / "release"
                            / assignment.name
                            / f"{paper.name}.ipynb",
                            4,
                        )
                        pages[place.with_suffix(".html")] = feedback.Paper(
                            notebook,
                            released,
                            items[assignment.name].read(),
                            marks_of(paper),
                        )
    feedback.write(folder / "feedback", pages)
    for name, head, rows in (
        ("grades.csv", GRADES, grades),
        ("tasks.csv", TASKS, tasks),
    ):
        with open(folder / name, "w", newline="", encoding="utf-8") as file:
            tables.write(file, head, rows)
    write_remarks(folder / "remarks.csv", remarks)


def grade_of(assignment, student, submission) -> dict:
    """Make a line of the table of scores."""
    who = {
        "assignment": assignment.name,
        "student_id": student.id,
        **{name: getattr(student, name) or "" for name in NAMES},
    }
    line = {
        **who,
        "duedate": f"{assignment.duedate:%Y-%m-%d %H:%M:%S}"
        if assignment.duedate
        else "",
        "max_score": assignment.max_score,
    }
    if submission is None:
        return {**line, "raw_score": 0.0, "late_submission_penalty": 0.0, "score": 0.0}
    penalty = submission.late_submission_penalty or 0.0
    score = {
        "raw_score": submission.score,
        "late_submission_penalty": penalty,
        "score": max(0.0, submission.score - penalty),
    }
    late = round(submission.total_seconds_late / 3600, 4) if assignment.duedate else ""
    return {
        **line,
        **score,
        "timestamp": f"{submission.timestamp:%Y-%m-%d %H:%M:%S}"
        if submission.timestamp
        else "",
        "hours_late": late,
    }


def tasks_of(
    paper, notebook: nbformat.NotebookNode, student: str, assignment: str
) -> list[dict]:
    """Make the lines of a submission in the table of tasks."""
    reasons = {
        task_of(cell): cell.metadata.get("reason", "") for cell in notebook.cells
    }
    return [
        {
            "student_id": student,
            "assignment": assignment,
            "task": grade.cell.name.removesuffix("-test"),
            "points": grade.score,
            "max_points": grade.max_score,
            "kind": "auto" if grade.cell.cell_type == "code" else "manual",
            "needs_marking": int(grade.needs_manual_grade),
            "reason": f"{reasons.get(grade.cell.name, '')}"[:LONGEST],
        }
        for grade in paper.grades
    ]


def marks_of(paper) -> dict[str, feedback.Mark]:
    """Read the points and the comments on the cells of a submission."""
    comments = {comment.cell.name: comment.comment or "" for comment in paper.comments}
    marks = {name: feedback.Mark(comment=comment) for name, comment in comments.items()}
    for grade in paper.grades:
        name = grade.cell.name
        points = None if grade.needs_manual_grade else grade.score
        marks[name] = feedback.Mark(
            points,
            grade.max_score,
            grade.manual_score is not None and points is not None,
            comments.get(name, ""),
        )
    return marks


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """Read a graded notebook; an empty one if there is none."""
    with suppress(OSError, ValueError):
        return nbformat.read(path, 4)
    return nbformat.v4.new_notebook()


def read_remarks(path: Path) -> dict[tuple[str, str], list[str]]:
    """Read the remarks on submissions, by student and assignment."""
    remarks = {}
    for row in tables.read(path) if path.exists() else []:
        remarks.setdefault((row["student_id"], row["assignment"]), []).append(
            row["remark"]
        )
    return remarks


def write_remarks(path: Path, remarks: dict[tuple[str, str], list[str]]) -> None:
    """Write the remarks, a line each."""
    rows = []
    for (student, assignment), lines in sorted(remarks.items()):
        shown = [line[:LONGEST] for line in lines[:REMARKS]] + [
            f"and {len(lines) - REMARKS} more remarks"
        ] * (len(lines) > REMARKS)
        rows += [
            {"student_id": student, "assignment": assignment, "remark": line}
            for line in shown
        ]
    with open(path, "w", newline="", encoding="utf-8") as file:
        tables.write(file, ["student_id", "assignment", "remark"], rows)
