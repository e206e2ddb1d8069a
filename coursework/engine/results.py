"""Write what a gradebook holds: feedback pages, the tables of scores and tasks, and the
remarks.
"""

import shutil
from contextlib import suppress
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook

from coursework.engine import feedback, tables
from coursework.engine.pairs import Assignment, task_of

REMARK = ["student_id", "assignment", "remark"]
# how many remarks on a submission, and how many characters of each, are written
REMARKS, LONGEST = 30, 500
Remarks = dict[tuple[str, str], list[str]]  # by student and assignment


def export(
    folder: Path, remarks: Remarks, released: dict[Assignment, nbformat.NotebookNode]
) -> list[dict]:
    """Write the feedback pages, and the tables of scores, of tasks and of remarks.

    Args:
        folder: where the gradebook is, and the tables go.
        remarks: on submissions.
        released: the student edition of the assignments.

    Returns:
        The lines of the table of tasks that wait for a mark by hand.
    """
    items = {item.name: item for item in released}
    grades, tasks = [], []
    shutil.rmtree(folder / "feedback", ignore_errors=True)
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "sgmc") as book:
        students = sorted(book.students, key=lambda student: student.id)
        for assignment in book.assignments:
            found = {one.student.id: one for one in assignment.submissions}
            for student in students if found else ():
                submission = found.get(student.id)
                grades.append(grade_of(assignment, student, submission))
                for paper in submission.notebooks if submission else ():
                    place = Path(student.id, assignment.name, f"{paper.name}.ipynb")
                    notebook = nbformat.v4.new_notebook()
                    with suppress(OSError, ValueError):
                        notebook = nbformat.read(folder / "submitted" / place, 4)
                    tasks += tasks_of(paper, notebook, student.id, assignment.name)
                    if item := items.get(assignment.name):
                        page = feedback.Paper(
                            notebook, released[item], item.read(), marks_of(paper)
                        )
                        feedback.write(
                            (folder / "feedback" / place).with_suffix(".html"), page
                        )
    for name, rows in (("grades.csv", grades), ("tasks.csv", tasks)):
        tables.write(folder / name, rows)
    rows = [
        dict(zip(REMARK, (*key, line[:LONGEST]), strict=True))
        for key, lines in sorted(remarks.items())
        for line in lines[:REMARKS]
    ]
    tables.write(folder / "remarks.csv", rows, REMARK)
    return [one for one in tasks if one["needs_marking"]]


def read_remarks(path: Path) -> Remarks:
    """Read the remarks on submissions."""
    remarks: Remarks = {}
    for row in tables.read(path) if path.exists() else []:
        key = row["student_id"], row["assignment"]
        remarks.setdefault(key, []).append(row["remark"])
    return remarks


def grade_of(assignment, student, submission) -> dict:
    """Make a line of the table of scores; who handed in nothing has no timestamp."""
    penalty = (submission and submission.late_submission_penalty) or 0.0
    score = submission.score if submission else 0.0
    times = assignment.duedate, submission and submission.timestamp
    due, handed_in = (f"{one:%Y-%m-%d %H:%M:%S}" if one else "" for one in times)
    is_late = submission and assignment.duedate
    late = round(submission.total_seconds_late / 3600, 4) if is_late else ""
    return {
        "assignment": assignment.name,
        "duedate": due,
        "timestamp": handed_in,
        "student_id": student.id,
        "last_name": student.last_name or "",
        "first_name": student.first_name or "",
        "email": student.email or "",
        "raw_score": score,
        "late_submission_penalty": penalty,
        "score": max(0.0, score - penalty),
        "max_score": assignment.max_score,
        "waiting": sum(
            grade.max_score
            for paper in (submission.notebooks if submission else ())
            for grade in paper.grades
            if grade.needs_manual_grade
        ),
        "hours_late": late,
    }


def tasks_of(
    paper, notebook: nbformat.NotebookNode, student: str, assignment: str
) -> list[dict]:
    """Make the lines of a submission in the table of tasks."""
    reasons = {task_of(one): one.metadata.get("reason", "") for one in notebook.cells}
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
        by_hand = grade.manual_score is not None and points is not None
        rest = grade.max_score, by_hand, comments.get(name, "")
        marks[name] = feedback.Mark(points, *rest)
    return marks
