"""The instructor's page, and the way of grades to learning platforms."""

import csv
import importlib.util
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tools.coursework import (
    blocks,
    confinement,
    gradebooks,
    judge,
    pairs,
    roster,
    submissions,
)

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "practice" / "teaching.md").read_text()
HEAD = "assignment,duedate,timestamp,student_id,last_name,first_name,email,raw_score,late_submission_penalty,score,max_score\n"


def test_table_of_points_is_that_of_the_notebooks():
    rows = [line for line in PAGE.splitlines() if re.match(r"\| \*\*\d ", line)]
    assert len(rows) == len(pairs.assignments())
    for row, item in zip(rows, pairs.assignments(), strict=True):
        cells = [
            cell.metadata.nbgrader
            for cell in item.read().cells
            if cell.metadata.get("nbgrader", {}).get("grade")
        ]
        points = {cell.grade_id.removesuffix("-test"): cell.points for cell in cells}
        stated = {
            task: int(number)
            for task, number in re.findall(r"([a-z][a-z-]*) (\d+)(?=,| \|)", row)
        }
        assert stated == points


def test_hours_are_those_that_the_assignments_say():
    words = {"three to four": "3–4", "four to five": "4–5"}
    hours = [
        re.search(
            r"\*It takes\* (.*?) hours",
            "\n".join(cell.source for cell in item.read().cells),
        )[1]
        for item in pairs.assignments()
    ]
    assert re.findall(r"^\| \*\*\d .* \| (\S+) \|$", PAGE, re.M) == [
        words[one] for one in hours
    ]


def test_checks_of_the_page_are_those_that_there_are():
    source = (ROOT / "book" / "assignments" / "checks.py").read_text()
    assert set(re.findall(r"`(assert_\w+)`", PAGE)) == set(
        re.findall(r"^def (assert_\w+)", source, re.M)
    )


def test_page_names_commands_and_files_that_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`make ([a-z]+)", PAGE)):
        assert re.search(rf"^{target}:", makefile, re.M) or re.search(
            rf"^{target}:",
            (ROOT / "book/assignments/student/Makefile").read_text(),
            re.M,
        )
    for path in set(re.findall(r"\b(?:tools|book/assignments)/\w+\.py", PAGE)):
        assert (ROOT / path).exists()
    for module in set(re.findall(r"-m (tools[.\w]+)", PAGE + makefile)):
        assert importlib.util.find_spec(module), module


def test_limits_on_the_page_are_those_of_the_code():
    minutes = {
        judge.Limits().cell: "has a minute of the processor",
        judge.Limits().added: "have five minutes together",
    }
    assert {60.0, 300.0} == set(minutes) and all(
        words in PAGE for words in minutes.values()
    )
    assert (
        f"It has {judge.MEMORY // 2**30} GB of memory and {judge.PROCESSES} processes"
        in PAGE
    )
    assert f"more than {submissions.LARGEST // 2**20} MB of notebooks" in PAGE
    assert "A minute of mere waiting counts as six seconds" in PAGE


def test_the_page_says_how_to_confine_as_the_program_does():
    for words in ("apt-get install bubblewrap", "UNCONFINED=1 make grade SUBMISSIONS="):
        assert words in PAGE and words in confinement.ADVICE
    assert confinement.ADVICE.splitlines()[0].startswith("NO SUBMISSION IS EXECUTED")


def test_the_roster_and_the_dates_of_the_page_can_be_read(tmp_path):
    people, dates = re.findall(r"```text\n(.*?)```", PAGE, re.S)
    (tmp_path / "roster.csv").write_text(people)
    (tmp_path / "dates.csv").write_text(dates)
    assert roster.read_roster(tmp_path / "roster.csv")["ann"] == (
        "Lee",
        "Ann",
        "ann@example.org",
    )
    due = roster.read_dates(tmp_path / "dates.csv")
    assert [f"{one:%d %H:%M %z}" for one in due.values()] == [
        "02 23:59 +0100",
        "16 23:59 +0100",
    ]


def test_the_task_of_the_page_is_one():
    [source] = [
        code
        for code in re.findall(r"```python\n(.*?)```", PAGE, re.S)
        if "two_steps" in code
    ]
    answer, test = re.split(r"^# %% .*$", textwrap.dedent(source), flags=re.M)[1:]
    sys.path.insert(0, str(ROOT / "book" / "assignments"))
    try:
        from checks import assert_close
    finally:
        sys.path.pop(0)
    parts = blocks.blocks(test.strip(), 4)
    assert [part.points for part in parts] == [1, 3]
    for part in parts:
        namespace = {"assert_close": assert_close}
        exec(answer + part.source, namespace)
        with pytest.raises(AssertionError, match="two steps"):
            exec(
                answer.replace("step(step(position))", "step(position)") + part.source,
                namespace,
            )
        assert "two_steps(" in blocks.visible(part.source)


def run(*arguments):
    command = [
        sys.executable,
        "-m",
        "tools.coursework.gradebooks",
        *map(str, arguments),
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_moodle(tmp_path):
    (tmp_path / "grades.csv").write_text(
        HEAD
        + "assignment_1,,2026-01-05 10:00:00,Ann Lee_12_assignsubmission_file,,,,80.5,0,80.5,100\n"
        + "assignment_2,,2026-01-05 10:00:00,Ann Lee_12_assignsubmission_file,,,,10,0,10,100\n"
        + "assignment_1,,2026-01-05 10:00:00,Bo Ek_7_assignsubmission_file_,,,,0,0,0,100\n"
        + "assignment_1,,,Cy Fo_8_assignsubmission_file_,,,,0,0,0,100\n"
    )
    worksheet = tmp_path / "worksheet.csv"
    lines = [
        "Participant 7,Bo Ek,,100.00,-",
        "Participant 8,Cy Fo,,100.00,-",
        "Participant 12,Ann Lee,,100.00,-",
    ]
    worksheet.write_text(
        "\n".join(
            [
                'Identifier,"Full name",Grade,"Maximum grade","Last modified (grade)"',
                *lines,
            ]
        ),
        encoding="utf-8-sig",
    )
    result = run("moodle", tmp_path / "grades.csv", "assignment_1", worksheet)
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert [row["Grade"] for row in rows] == ["0", "", "80.5"]
    assert list(rows[0]) == [
        "Identifier",
        "Full name",
        "Grade",
        "Maximum grade",
        "Last modified (grade)",
    ]
    assert (
        "no submission of 'assignment_9'"
        in run("moodle", tmp_path / "grades.csv", "assignment_9", worksheet).stderr
    )


def test_gradescope(tmp_path):
    head = "student_id,assignment,task,points,max_points,kind,needs_marking\n"
    (tmp_path / "tasks.csv").write_text(
        head
        + "student,assignment_1,leapfrog,12,12,auto,0\nstudent,assignment_1,why,,7,manual,1\n"
    )
    result = json.loads(
        run("gradescope", tmp_path / "tasks.csv", "assignment_1").stdout
    )
    assert result == {
        "tests": [
            {
                "name": "leapfrog",
                "score": 12.0,
                "max_score": 12.0,
                "visibility": "after_published",
            }
        ]
    }
    result = json.loads(
        run("gradescope", tmp_path / "tasks.csv", "assignment_2").stdout
    )
    assert result == {
        "score": 0.0,
        "output": "No notebook of assignment_2 was found in this submission.",
    }


def test_names(tmp_path):
    (tmp_path / "submission_metadata.yml").write_text(
        "submission_5:\n  :submitters:\n  - :name: Ann Lee\n    :sid: '012'\n    "
        ":email: ann@example.org\n"
        "  :created_at: 2026-01-05 10:00:00 +0000\n"
    )
    (tmp_path / "grades.csv").write_text(
        HEAD + "assignment_1,,2026-01-05 10:00:00,submission_5,,,,80.5,0,80.5,100\n"
    )
    rows = list(
        csv.DictReader(
            run(
                "names", tmp_path / "submission_metadata.yml", tmp_path / "grades.csv"
            ).stdout.splitlines()
        )
    )
    assert rows == [
        {
            "name": "Ann Lee",
            "email": "ann@example.org",
            "sid": "012",
            "assignment": "assignment_1",
            "score": "80.5",
            "max_score": "100",
        }
    ]


def test_a_table_that_is_not_a_worksheet_is_refused():
    with pytest.raises(ValueError, match="no columns Identifier and Grade"):
        gradebooks.moodle([], "assignment_1", [{"Name": "Ann"}])
