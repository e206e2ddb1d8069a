"""Write what a gradebook holds: feedback pages, the tables of scores and tasks, and the remarks."""

import csv
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.plugins.export import CsvExportPlugin
from traitlets.config import Config


def export(api: NbGraderAPI, folder: Path, config: Config) -> None:
    """Write the feedback pages, the table of scores and the table of tasks."""
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "sgmc") as book:
        submitted = [(submission.assignment.name, submission.student.id) for item in book.assignments for submission in item.submissions]
    for assignment, student in submitted:
        api.generate_feedback(assignment, student, force=True)
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "sgmc") as book:
        CsvExportPlugin(to=str(folder / "grades.csv"), config=config).export(book)
        with open(folder / "tasks.csv", "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["student_id", "assignment", "task", "points", "max_points", "kind", "needs_marking"])
            for item in book.assignments:
                for submission in sorted(item.submissions, key=lambda submission: submission.student.id):
                    for grade in (grade for notebook in submission.notebooks for grade in notebook.grades):
                        kind = "auto" if grade.cell.cell_type == "code" else "manual"
                        row = [grade.cell.name.removesuffix("-test"), grade.score, grade.max_score, kind, int(grade.needs_manual_grade)]
                        table.writerow([submission.student.id, item.name, *row])


def read_remarks(path: Path) -> dict[tuple[str, str], list[str]]:
    """Read the remarks on submissions, by student and assignment."""
    remarks = {}
    if path.exists():
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                remarks.setdefault((row["student_id"], row["assignment"]), []).append(row["remark"])
    return remarks


def write_remarks(path: Path, remarks: dict[tuple[str, str], list[str]]) -> None:
    """Write the remarks, a line each."""
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["student_id", "assignment", "remark"])
        for (student, assignment), lines in sorted(remarks.items()):
            table.writerows([student, assignment, line] for line in lines)
