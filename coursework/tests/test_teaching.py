"""The lecturer's page and manual, and the way of grades to learning platforms."""

import csv
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from coursework.__main__ import COMMANDS
from coursework.engine import blocks, confinement, edition, gradebooks, judge, pairs

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "practice" / "teaching.md").read_text()
MANUAL = (ROOT / "coursework" / "README.md").read_text()
HEAD = (
    "assignment,duedate,timestamp,student_id,last_name,first_name,email,raw_score,"
    "late_submission_penalty,score,max_score,waiting\n"
)


def texts():
    assignments = [item.read().cells for item in pairs.assignments()]
    return ["\n".join(cell.source for cell in cells) for cells in assignments]


def test_the_task_on_the_page_is_the_students(tmp_path):
    released = edition.release_notebooks(tmp_path).values()
    cells = {cell.source.rstrip() for one in released for cell in one.cells}
    shown = re.findall(r"^```python\n(.*?)\n```$", PAGE, re.S | re.M)
    assert len(cells & set(shown)) == 2 == len(shown)


def test_table_of_points_is_that_of_the_notebooks():
    rows = [line for line in MANUAL.splitlines() if re.match(r"\| \*\*\d ", line)]
    for row, item in zip(rows, pairs.assignments(), strict=True):
        cells = [cell.metadata.get("nbgrader", {}) for cell in item.read().cells]
        graded = [cell for cell in cells if cell.get("grade")]
        points = {one.grade_id.removesuffix("-test"): one.points for one in graded}
        stated = re.findall(r"([a-z][a-z-]*) (\d+)(?=,| \|)", row)
        assert {task: int(number) for task, number in stated} == points


def test_hours_are_those_that_the_assignments_say():
    words = {"four to five": "4–5", "five to six": "5–6"}
    hours = [words[re.search(r"\*It takes\* (.*?) hours", one)[1]] for one in texts()]
    assert re.findall(r"^\| \*\*\d .* \| (\S+) \|$", PAGE + MANUAL, re.M) == 2 * hours


def test_checks_of_the_manual_are_those_that_there_are():
    source = (ROOT / "coursework" / "assignments" / "checks.py").read_text()
    there = set(re.findall(r"^def (assert_\w+)", source, re.M))
    assert set(re.findall(r"`(assert_\w+)`", MANUAL)) == there


def test_commands_and_files_that_are_named_exist():
    text = PAGE + MANUAL
    makefiles = [(ROOT / name / "Makefile").read_text() for name in (".", "coursework")]
    targets = re.findall(r"make (?:-C coursework )?([a-z]+)\b", text)
    assert {"grade", "marking", "answers"} <= set(targets)
    rules = " ".join(re.findall(r"^([a-z ]+):", "\n".join(makefiles), re.M)).split()
    named = {one for one in targets if one not in ("and", "downloads", "namespaces")}
    assert named <= set(rules), named - set(rules)
    for path in re.findall(r"coursework/[\w/]+\.(?:py|md)", text):
        assert (ROOT / path).exists(), path
    assert set(re.findall(r"-m coursework (\w+)", text)) <= set(COMMANDS)


def test_limits_on_the_page_are_those_of_the_code():
    assert judge.Limits() == (60, 300, 900)
    for words in ("a minute per cell and per part", "five minutes in", "15 in all"):
        assert words in MANUAL
    memory, processes = judge.MEMORY // 2**30, judge.PROCESSES
    assert f"hold {memory} GB of memory and {processes} processes" in MANUAL
    assert "UNCONFINED=1 make grade SUBMISSIONS=" in MANUAL
    assert "UNCONFINED=1 make grade SUBMISSIONS=" in confinement.ADVICE


def test_the_task_of_the_manual_is_one():
    found = re.findall(r"```python\n(.*?)```", MANUAL, re.S)
    [source] = [code for code in found if "two_steps" in code]
    answer, test = re.split(r"^# %% .*$", textwrap.dedent(source), flags=re.M)[1:]

    def assert_close(value, expected, what):
        assert value == expected, what

    parts = blocks.blocks(test.strip(), 4)
    assert [part.points for part in parts] == [1, 3]
    for part in parts:
        exec(answer + part.source, {"assert_close": assert_close})
        wrong = answer.replace("step(step(position))", "step(position)")
        with pytest.raises(AssertionError, match="two steps"):
            exec(wrong + part.source, {"assert_close": assert_close})
        assert "two_steps(" in blocks.visible(part.source)


def run(*arguments):
    command = [sys.executable, "-m", "coursework", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_other_commands_get_the_usage():
    for words in ((), ("else",), ("release",), ("grade", "a", "b", "c")):
        assert "usage: python -m coursework" in run(*words).stderr


def test_moodle(tmp_path):
    due, rest = "2026-01-05 10:00:00", "_assignsubmission_file"
    lines = [
        f"assignment_1,,{due},Ann Lee_12{rest},,,,80.5,0,80.5,100,0",
        f"assignment_2,,{due},Ann Lee_12{rest},,,,10,0,10,100,0.0",
        f"assignment_1,,{due},Bo Ek_7{rest}_,,,,0,0,0,100,0.0",
        f"assignment_1,,,Cy Fo_8{rest}_,,,,0,0,0,100,0",
    ]
    grades, worksheet = tmp_path / "grades.csv", tmp_path / "worksheet.csv"
    lines_of_grades = "\n".join(lines)
    grades.write_text(HEAD + lines_of_grades)
    head = 'Identifier,"Full name",Grade,"Maximum grade","Last modified (grade)"'
    people = ("7,Bo Ek", "8,Cy Fo", "12,Ann Lee")
    lines = [head, *(f"Participant {one},,100.00,-" for one in people)]
    worksheet.write_text("\n".join(lines), encoding="utf-8-sig")
    result = run("moodle", grades, "assignment_1", worksheet)
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert [row["Grade"] for row in rows] == ["0", "", "80.5"]
    assert list(rows[0]) == head.replace('"', "").split(",")
    grades.write_text(HEAD + lines_of_grades.replace("80.5,100,0", "80.5,100,15"))
    early = run("moodle", grades, "assignment_1", worksheet)
    assert early.stdout == "" and "15 points wait for a mark by hand" in early.stderr
    wrong = run("moodle", grades, "assignment_9", worksheet).stderr
    assert "no submission of 'assignment_9'" in wrong and "Traceback" not in wrong
    with pytest.raises(ValueError, match="no columns Identifier and Grade"):
        gradebooks.moodle([], "assignment_1", [{"Name": "Ann"}])


def test_gradescope(tmp_path):
    head = "student_id,assignment,task,points,max_points,kind,needs_marking\n"
    auto = "student,assignment_1,leapfrog,12,12,auto,0\n"
    manual = "student,assignment_1,why,,7,manual,1\n"
    (tmp_path / "tasks.csv").write_text(head + auto + manual)
    result = json.loads(
        run("gradescope", tmp_path / "tasks.csv", "assignment_1").stdout
    )
    marks = {"score": 12.0, "max_score": 12.0}
    leapfrog = {"name": "leapfrog", **marks, "visibility": "after_published"}
    assert result == {"tests": [leapfrog]}
    result = json.loads(
        run("gradescope", tmp_path / "tasks.csv", "assignment_2").stdout
    )
    missing = "No notebook of assignment_2 was found in this submission."
    assert result == {"score": 0.0, "output": missing}


def test_names(tmp_path):
    (tmp_path / "submission_metadata.yml").write_text(
        "submission_5:\n  :submitters:\n  - :name: Ann Lee\n    :sid: '012'\n"
        "    :email: ann@example.org\n  :created_at: 2026-01-05 10:00:00 +0000\n"
    )
    line = "assignment_1,,2026-01-05 10:00:00,submission_5,,,,80.5,0,80.5,100,7.0\n"
    (tmp_path / "grades.csv").write_text(HEAD + line)
    names = tmp_path / "submission_metadata.yml", tmp_path / "grades.csv"
    [row] = csv.DictReader(run("names", *names).stdout.splitlines())
    expected = [
        "Ann Lee",
        "ann@example.org",
        "012",
        "assignment_1",
        "80.5",
        "100",
        "7.0",
    ]
    assert list(row.values()) == expected
