"""What was handed in, put into the instructor's notebook: which cells count, which
notebook counts, and whose it is.
"""

import csv
import io
import json
import os
import zipfile
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from coursework.engine import submissions, tables
from coursework.engine.pairs import Assignment
from coursework.engine.submissions import collect, rebuild


def cell(source, task=None, solution=False):
    settings = {"grade_id": task, "solution": solution}
    return new_code_cell(source, metadata={"nbgrader": settings} if task else {})


def notebook(answer, test="pass", *more):
    given, own = cell("answer = 0", "given"), cell(answer, "answer", solution=True)
    return new_notebook(cells=[given, own, *more, cell(test, "answer-test")])


RELEASED = notebook("raise NotImplementedError()")
SOURCE = notebook("answer = 42", "assert answer == 42")
SOURCES = {Assignment("assignment_1", Path("small.py")): (RELEASED, SOURCE)}
ANSWER = nbformat.writes(notebook("answer = 6 * 7")).encode()


def rebuilt(*cells):
    made, remarks = rebuild(RELEASED, SOURCE, list(cells))
    return [each.source for each in made.cells], remarks


def test_an_answer_is_put_among_the_cells_of_the_instructor():
    expected = ["answer = 0", "answer = 6 * 7", "assert answer == 42"]
    assert rebuilt(*notebook("answer = 6 * 7").cells) == (expected, [])
    handed_in = notebook("answer = 6 * 7", "assert True")
    handed_in.cells[0].source = "answer = 42"
    sources, remarks = rebuilt(*handed_in.cells)
    assert sources == expected
    assert remarks == [
        f"cell {task} was changed: the one handed out counts"
        for task in ("given", "answer-test")
    ]


def test_of_an_answer_that_is_there_twice_the_first_one_counts():
    second = cell("answer += 41", "answer", solution=True)
    sources, remarks = rebuilt(*notebook("answer = 1", "pass", second).cells)
    assert sources[1:] == ["answer = 1", "answer += 41", "assert answer == 42"]
    assert ["more than once" in remark for remark in remarks] == [True]
    same = cell("answer = 1", "answer", solution=True)
    sources, _ = rebuilt(*notebook("answer = 1", "pass", same).cells)
    assert sources[1:] == ["answer = 1", "assert answer == 42"]


def test_an_answer_that_is_missing_is_the_stub():
    sources, remarks = rebuilt(cell("answer = 0", "given"), cell("pass", "answer-test"))
    assert sources[1] == "raise NotImplementedError()"
    assert remarks == ["cell answer is missing"]


def test_cells_that_were_added_stay_behind_the_cell_that_they_followed():
    first, *others = notebook("answer = f(21)", "pass", cell("shown = answer")).cells
    sources, _ = rebuilt(cell("import math"), first, cell("f = abs"), *others)
    assert sources == [
        *("import math", "answer = 0", "f = abs", "answer = f(21)"),
        *("shown = answer", "assert answer == 42"),
    ]


def hand_in(folder, files):
    """Write files, each by its path in the folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def zipped(members, **settings):
    """Make a zip of files by their names."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, **settings) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


@pytest.mark.parametrize("newest", ["small.ipynb", "copy of small.ipynb"])
def test_of_two_notebooks_the_newest_counts(newest, tmp_path):
    for number, name in enumerate(("small.ipynb", "copy of small.ipynb")):
        made = nbformat.writes(notebook(f"answer = {number}")).encode()
        hand_in(tmp_path, {f"ann/{name}": made})
        time = 2_000_000_000 if name == newest else 1_000_000_000
        os.utime(tmp_path / "ann" / name, (10, time))
    [found] = collect(tmp_path, SOURCES).submissions
    assert found.student == "ann" and found.time.year == 2033
    assert found.notebook.cells[1].source == f"answer = {int(newest[0] == 'c')}"
    assert found.remarks == [f"2 notebooks: only the newest counts, ann/{newest}"]


@pytest.mark.parametrize(
    ("name", "student"),
    [
        *(("Zoë Åström", "Zoë Åström"), ("O'Neill, Ann", "O'Neill_ Ann")),
        *(("Ju\u0308rgen", "Jürgen"), ("=SUM(1)", "_SUM_1_"), ("@SUM", "_SUM")),
        *(("-2+3", "_2_3"), ("＝1", "_1"), ("two\u2028lines", "two_lines")),
        *(("王小明", "王小明"), ("नीरज", "नीरज"), ("*[a]?", "__a__")),
        *(("a\nb\x7f", "a_b_"), ("submission_12", "submission_12")),
        (os.fsdecode(b"J\xfcrgen"), "J_rgen"),
    ],
)
def test_a_name_is_kept_or_the_change_is_remarked(name, student, tmp_path):
    hand_in(tmp_path, {f"{name}/small.ipynb": ANSWER})
    [found] = collect(tmp_path, SOURCES).submissions
    assert found.student == student
    plain = name.encode("utf-8", "replace").decode()
    remark = f"{plain} is called {student} here"
    assert found.remarks == ([] if student == name else [remark])


def test_a_long_name_is_cut_where_files_can_bear_it():
    # of which each is two signs when composed
    student = submissions.student_id("\u0958" * 84)
    assert 0 < len(student.encode()) <= submissions.LONGEST
    assert set(student) <= set("\u0915\u093c")


@pytest.mark.parametrize(
    "names",
    [
        *(("Lee, Ann", "Lee; Ann"), ("Jürgen", "Ju\u0308rgen"), ("ann", "Ann")),
        *(("Strauß", "STRAUSS"), ("Ａnn", "Ann"), ("ann", "ann.zip")),
    ],
)
def test_two_who_would_be_one_are_refused_with_both_named(names, tmp_path):
    for name in names:
        data = zipped({"a.ipynb": ANSWER}) if name.endswith(".zip") else ANSWER
        hand_in(tmp_path, {name if name.endswith(".zip") else f"{name}/a.ipynb": data})
    with pytest.raises(ValueError, match="would be the same student") as error:
        collect(tmp_path, SOURCES)
    assert all(name.removesuffix(".zip") in str(error.value) for name in names)


def test_stray_files_and_the_files_of_platforms_are_no_students(tmp_path):
    zip_of_ann = zipped({"deep/a.ipynb": ANSWER, "__MACOSX/deep/._a.ipynb": b"rubbish"})
    ours = {"ann.zip": zip_of_ann, "bo.ipynb": ANSWER, "cy/deep/a.ipynb": ANSWER}
    theirs = ("submission_metadata.yml", "__MACOSX/._ann", ".DS_Store", "Thumbs.db")
    others = {"di/notes.txt": b"", "notes.txt": b"", "=1.csv": b""}
    hand_in(tmp_path, ours | others | dict.fromkeys(theirs, b""))
    found, empty, strays = collect(tmp_path, SOURCES)
    assert [(one.student, one.remarks) for one in found] == [
        (student, []) for student in ("ann", "bo", "cy")
    ]
    assert list(empty) == ["di"]
    left = "is no folder, notebook or zip: left out"
    assert strays == [f"=1.csv {left}", f"notes.txt {left}"]


@pytest.mark.parametrize("files", [{}, {"notes.txt": b"", "__MACOSX/._ann": b""}])
def test_a_folder_without_a_submission_is_an_error(files, tmp_path):
    hand_in(tmp_path, files)
    with pytest.raises(ValueError, match="there is no submission in"):
        collect(tmp_path, SOURCES)


def encrypted():
    data = bytearray(zipped({"a.ipynb": ANSWER}))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + place] |= 1
    return bytes(data)


BOMB = {f"{number}.ipynb": bytes(2**20) for number in range(64)}
BAD_ZIPS = {
    "a path out of it": (zipped({"../../a.ipynb": ANSWER}), "nothing in this"),
    "a bomb": (zipped(BOMB), "more than 50 MB"),
    "many files": (zipped(dict.fromkeys(map("{}.ipynb".format, range(3_000)), b"")), "500"),
    "an encrypted one": (encrypted(), "encrypted"),
    "no zip": (b"PK\x03\x04 rubbish", "BadZipFile"),
    "half a zip": (zipped({"a.ipynb": ANSWER})[:-40], "BadZipFile"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "remark"), BAD_ZIPS.values(), ids=BAD_ZIPS)
def test_a_zip_that_cannot_be_trusted_is_left_out(data, remark, tmp_path):
    folder = tmp_path / "submissions"
    hand_in(folder, {"ann/work.zip": data})
    found, empty, _ = collect(folder, SOURCES)
    assert found == [] and any(remark in line for line in empty["ann"]), empty
    assert len(list(tmp_path.rglob("*"))) == 3  # and nothing was written


def test_links_and_pipes_are_left_out(tmp_path):
    folder, secret = tmp_path / "submissions", tmp_path / "secret.ipynb"
    secret.write_bytes(ANSWER)
    (folder / "ann").mkdir(parents=True)
    (folder / "ann" / "a.ipynb").symlink_to(secret)
    (folder / "ann" / "deep").symlink_to(tmp_path)
    os.mkfifo(folder / "ann" / "pipe.ipynb")
    found, empty, _ = collect(folder, SOURCES)
    left_out = [line for line in empty["ann"] if "is a link or no file" in line]
    assert found == [] and len(left_out) == 2


@pytest.mark.parametrize(
    "text",
    [
        *('{"cells": 3}', "[" * 100_000, '{"cells": [3]}', "rubbish", "9" * 10_000),
        *('{"cells": [{"source": [1]}]}', '{"cells": [{"metadata": []}]}'),
        *('{"cells": [%s{}]}' % ("{}," * 1_000), '{"x": [%s{}]}' % ("{}," * 500_000)),
    ],
)  # fmt: skip
def test_what_is_not_a_notebook_is_told(text, tmp_path, monkeypatch):
    # no cell of one that is too long is even made
    monkeypatch.setattr(submissions, "PARTS", 1_000_000)
    hand_in(tmp_path, {"ann/small.ipynb": text.encode()})
    found, empty, _ = collect(tmp_path, SOURCES)
    assert found == []
    assert "ann/small.ipynb is no notebook of at most 1,000 cells" in empty["ann"]


def test_a_notebook_without_ids_or_too_large_is_told(tmp_path, monkeypatch):
    hand_in(tmp_path, {"ann/a.ipynb": nbformat.writes(new_notebook()).encode()})
    assert "has an nbgrader id" in collect(tmp_path, SOURCES).empty["ann"][0]
    monkeypatch.setattr(submissions, "LARGEST", 10)
    assert "has more than 0 MB" in collect(tmp_path, SOURCES).empty["ann"][0]


def test_half_a_character_in_a_notebook_can_be_written(tmp_path):
    made = json.loads(ANSWER)
    made["cells"][1]["source"] = "answer = '\ud800'"
    hand_in(tmp_path, {"ann/a.ipynb": json.dumps(made).encode()})
    [found] = collect(tmp_path, SOURCES).submissions
    nbformat.write(found.notebook, tmp_path / "out.ipynb")
    assert found.notebook.cells[1].source == "answer = '?'"


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+1+cmd", "-1+cmd", "@SUM(1)", " =1", "\t=1", "\r=1", "\n=1"),
        *("\xa0=1", "\u3000=1", "＝1", "－1+a", "＠A", "|cmd", "%0A=1", "\0=1"),
    ],
)
def test_no_cell_of_a_table_is_a_formula(text, tmp_path):
    tables.write(tmp_path / "table.csv", [{"one": text}])
    [row] = list(csv.reader((tmp_path / "table.csv").open()))[1:]
    assert row[0].startswith("'")
    # a table that is read and written again stays as it is
    assert tables.safe(tables.safe(text)) == tables.safe(text)


@pytest.mark.parametrize("text", "Ann -2.5 - +3e-5 a=b O'Neill 3 1;2 x-y".split())
def test_other_cells_stay_as_they_are(text):
    assert tables.safe(text) == text


@pytest.mark.parametrize("sign", [*"\n\r\x0b\x0c\x1c\x85\u2028\u2029\0\ud800"])
def test_a_row_of_a_table_is_a_line(sign):
    file = io.StringIO()
    tables.write(file, [{"one": f"a{sign}b", "two": 1.5}])
    assert len(file.getvalue().encode().decode().splitlines()) == 2
