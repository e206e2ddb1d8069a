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

from tools.coursework import submissions, tables
from tools.coursework.pairs import Assignment
from tools.coursework.submissions import collect, rebuild

ITEM = Assignment("assignment_1", Path("assignment_1/small.py"))


def cell(source, task=None, solution=False):
    return new_code_cell(
        source,
        metadata={"nbgrader": {"grade_id": task, "solution": solution}} if task else {},
    )


def notebook(answer, test="pass", *more):
    return new_notebook(
        cells=[
            cell("answer = 0", "given"),
            cell(answer, "answer", solution=True),
            *more,
            cell(test, "answer-test"),
        ]
    )


RELEASED, SOURCE = (
    notebook("raise NotImplementedError()"),
    notebook("answer = 42", "assert answer == 42"),
)


def rebuilt(*cells):
    made, remarks = rebuild(RELEASED, SOURCE, list(cells))
    return [each.source for each in made.cells], remarks


def test_an_answer_is_put_among_the_cells_of_the_instructor():
    assert rebuilt(*notebook("answer = 6 * 7").cells) == (
        ["answer = 0", "answer = 6 * 7", "assert answer == 42"],
        [],
    )


def test_tests_and_given_cells_are_those_of_the_instructor_whatever_a_student_makes_of_them():
    handed_in = notebook("answer = 6 * 7", "pass")
    handed_in.cells[0].source = "answer = 42"
    handed_in.cells[2].source = "assert True"
    sources, remarks = rebuilt(*handed_in.cells)
    assert sources == ["answer = 0", "answer = 6 * 7", "assert answer == 42"]
    assert remarks == [
        f"cell {task} was changed: the one that was handed out counts"
        for task in ("given", "answer-test")
    ]


def test_of_an_answer_that_is_there_twice_the_first_one_counts_and_what_it_was_split_into_runs_behind_it():
    sources, remarks = rebuilt(
        *notebook(
            "answer = 1", "pass", cell("answer += 41", "answer", solution=True)
        ).cells
    )
    assert sources[1:] == ["answer = 1", "answer += 41", "assert answer == 42"]
    assert remarks == [
        "cell answer is there more than once: the first one counts, and what others "
        "hold runs behind it"
    ]
    same = cell("answer = 1", "answer", solution=True)
    assert rebuilt(*notebook("answer = 1", "pass", same).cells)[0][1:] == [
        "answer = 1",
        "assert answer == 42",
    ]


def test_an_answer_that_is_missing_is_the_stub():
    sources, remarks = rebuilt(cell("answer = 0", "given"), cell("pass", "answer-test"))
    assert sources[1] == "raise NotImplementedError()" and remarks == [
        "cell answer is missing"
    ]


def test_cells_that_were_added_stay_behind_the_cell_that_they_followed():
    first, *others = notebook(
        "answer = double(21)", "pass", cell("shown = answer")
    ).cells
    sources, _ = rebuilt(
        cell("import math"), first, cell("def double(x):\n    return 2 * x"), *others
    )
    expected = [
        "import math",
        "answer = 0",
        "def double(x):\n    return 2 * x",
        "answer = double(21)",
        "shown = answer",
        "assert answer == 42",
    ]
    assert sources == expected


@pytest.mark.parametrize("newest", ["small.ipynb", "copy of small.ipynb"])
def test_of_two_notebooks_the_newest_counts(newest, tmp_path):
    for number, name in enumerate(("small.ipynb", "copy of small.ipynb")):
        path = tmp_path / "ann" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(nbformat.writes(notebook(f"answer = {number}")))
        os.utime(path, (10, 2_000_000_000 if name == newest else 1_000_000_000))
    [submission] = collect(tmp_path, {ITEM: (RELEASED, SOURCE)}).submissions
    assert submission.student == "ann" and submission.time.year == 2033
    assert (
        submission.notebook.cells[1].source
        == f"answer = {int(newest.startswith('copy'))}"
    )
    assert submission.remarks == [f"2 notebooks: only the newest counts, ann/{newest}"]


SOURCES = {ITEM: (RELEASED, SOURCE)}
ANSWER = nbformat.writes(notebook("answer = 6 * 7")).encode()


def hand_in(folder, **files):
    """Write files, each by its path in the folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def zipped(members):
    """Make a zip of files by their names."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


@pytest.mark.parametrize(
    ("name", "student", "remark"),
    [
        ("Zoë Åström", "Zoë Åström", None),
        ("O'Neill, Ann", "O'Neill_ Ann", "O'Neill, Ann is called O'Neill_ Ann here"),
        (
            "Ju\u0308rgen",
            "Jürgen",
            "Ju\u0308rgen is called Jürgen here, in composed characters",
        ),
        ("=SUM(1)", "_SUM_1_", "=SUM(1) is called _SUM_1_ here"),
        ("@SUM", "_SUM", "@SUM is called _SUM here"),
        ("-2+3", "_2_3", "-2+3 is called _2_3 here"),
        ("＝1", "_1", "＝1 is called _1 here"),
        ("two\u2028lines", "two_lines", "two lines is called two_lines here"),
        ("a\nb\x7f", "a_b_", "a b  is called a_b_ here"),
        ("王小明", "王小明", None),
        ("नीरज", "नीरज", None),
        ("*[a]?", "__a__", "*[a]? is called __a__ here"),
        ("submission_12", "submission_12", None),
    ],
)
def test_a_name_is_kept_or_the_change_is_remarked(name, student, remark, tmp_path):
    hand_in(tmp_path, **{f"{name}/small.ipynb": ANSWER})
    [found] = collect(tmp_path, SOURCES).submissions
    assert found.student == student and found.remarks == ([remark] if remark else [])


def test_a_long_name_is_cut_where_files_can_bear_it():
    # of which each is two signs when composed
    student = submissions.student_id("\u0958" * 84)
    assert (
        len(student.encode()) <= submissions.LONGEST
        and student
        and set(student) <= set("\u0915\u093c")
    )


def test_a_name_that_is_no_unicode_is_a_name(tmp_path):
    os.mkdir(os.fsencode(tmp_path) + b"/J\xfcrgen")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/J\xfcrgen/small.ipynb")).write_bytes(
        ANSWER
    )
    [found] = collect(tmp_path, SOURCES).submissions
    assert found.student == "J_rgen" and found.remarks == [
        "J?rgen is called J_rgen here"
    ]


@pytest.mark.parametrize(
    "names",
    [
        ("Lee, Ann", "Lee; Ann"),
        ("Jürgen", "Ju\u0308rgen"),
        ("ann", "Ann"),
        ("Strauß", "STRAUSS"),
        ("Ａnn", "Ann"),
        ("ann", "ann.zip"),
    ],
)
def test_two_who_would_be_one_are_refused_with_both_named(names, tmp_path):
    for name in names:
        hand_in(
            tmp_path,
            **(
                {name: zipped({"small.ipynb": ANSWER})}
                if name.endswith(".zip")
                else {f"{name}/small.ipynb": ANSWER}
            ),
        )
    with pytest.raises(ValueError, match="would be the same student") as error:
        collect(tmp_path, SOURCES)
    assert all(name in str(error.value) for name in names)


def test_stray_files_and_the_files_of_platforms_are_no_students(tmp_path):
    ours = {
        "ann/small.ipynb": ANSWER,
        "bo.ipynb": ANSWER,
        "cy.zip": zipped({"small.ipynb": ANSWER}),
        "di/notes.txt": b"later",
    }
    theirs = {
        "submission_metadata.yml": b"",
        "__MACOSX/._ann": b"",
        ".DS_Store": b"",
        "Thumbs.db": b"",
        "notes.txt": b"",
        "=1.csv": b"",
    }
    hand_in(tmp_path, **ours, **theirs)
    found, empty, strays = collect(tmp_path, SOURCES)
    assert [submission.student for submission in found] == ["ann", "bo", "cy"] and list(
        empty
    ) == ["di"]
    assert strays == [
        f"{name} is no folder, notebook or zip: left out"
        for name in ("=1.csv", "notes.txt")
    ]


@pytest.mark.parametrize("files", [{}, {"notes.txt": b"", "__MACOSX/._ann": b""}])
def test_a_folder_without_a_submission_is_an_error(files, tmp_path):
    hand_in(tmp_path, **files)
    with pytest.raises(ValueError, match="there is no submission in"):
        collect(tmp_path, SOURCES)


def test_zips_are_opened(tmp_path):
    inner = zipped(
        {
            "deep/small.ipynb": ANSWER,
            "__MACOSX/deep/._small.ipynb": b"rubbish",
            ".ipynb_checkpoints/small.ipynb": b"{}",
        }
    )
    hand_in(
        tmp_path,
        **{
            "ann.zip": inner,
            "bo/work.zip": zipped({"again.zip": inner, "a.pdf": b""}),
            "cy/small.ipynb": ANSWER,
        },
    )
    found = collect(tmp_path, SOURCES).submissions
    assert [
        (one.student, one.remarks, one.notebook.cells[1].source) for one in found
    ] == [(student, [], "answer = 6 * 7") for student in ("ann", "bo", "cy")]


def damaged():
    """Make a zip in which LZMA finds no beginning, which is an error of its own."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("small.ipynb", ANSWER)
    raw, start = bytearray(data.getvalue()), 30 + len("small.ipynb")
    raw[start + 9 : start + 60] = bytes(
        byte ^ 0x5A for byte in raw[start + 9 : start + 60]
    )
    return bytes(raw)


def encrypted():
    data = bytearray(zipped({"small.ipynb": ANSWER}))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + place] |= 1
    return bytes(data)


BOMB = zipped({f"{number}.ipynb": bytes(2**20) for number in range(64)})
BAD_ZIPS = {
    "a path out of it": (
        zipped({"../../small.ipynb": ANSWER}),
        "points out of the zip",
    ),
    "an absolute path": (zipped({"/tmp/small.ipynb": ANSWER}), "points out of the zip"),
    "a path of Windows": (
        zipped({"..\\..\\small.ipynb": ANSWER}),
        "points out of the zip",
    ),
    "a bomb": (BOMB, "holds more than 50 MB"),
    "a bomb of bombs": (
        zipped(
            {f"{number}.zip": zipped({"a.ipynb": bytes(2**22)}) for number in range(64)}
        ),
        "holds more than 50 MB",
    ),
    "many files": (
        zipped({f"{number}.ipynb": b"" for number in range(3_000)}),
        "more than 500 files",
    ),
    "an encrypted one": (encrypted(), "is encrypted"),
    "a zip in a zip in a zip": (
        zipped({"a.zip": zipped({"b.zip": zipped({"small.ipynb": ANSWER})})}),
        "a zip in a zip in a zip",
    ),
    "no zip": (b"PK\x03\x04 rubbish", "cannot be opened as a zip"),
    "a damaged one": (damaged(), "cannot be opened as a zip (LZMAError)"),
    "half a zip": (zipped({"small.ipynb": ANSWER})[:-40], "cannot be opened as a zip"),
    "wrong bytes": (
        zipped({"small.ipynb": ANSWER})
        .replace(ANSWER[:1], b"", 1)
        .replace(b"\x08\x00", b"\x63\x00", 2),
        "cannot be opened as a zip",
    ),
}


@pytest.mark.parametrize(("data", "remark"), BAD_ZIPS.values(), ids=BAD_ZIPS)
def test_a_zip_that_cannot_be_trusted_is_left_out_and_remarked(data, remark, tmp_path):
    folder = tmp_path / "submissions"
    hand_in(folder, **{"ann/work.zip": data})
    found, empty, _ = collect(folder, SOURCES)
    assert found == [] and any(remark in line for line in empty["ann"]), empty
    assert [path.name for path in tmp_path.rglob("*")] == [
        "submissions",
        "ann",
        "work.zip",
    ]


def test_links_and_pipes_are_left_out(tmp_path):
    folder, secret = tmp_path / "submissions", tmp_path / "secret.ipynb"
    secret.write_bytes(ANSWER)
    (folder / "ann").mkdir(parents=True)
    (folder / "ann" / "small.ipynb").symlink_to(secret)
    (folder / "ann" / "deep").symlink_to(tmp_path)
    os.mkfifo(folder / "ann" / "pipe.ipynb")
    found, empty, _ = collect(folder, SOURCES)
    assert (
        found == []
        and len([line for line in empty["ann"] if "is a link or no file" in line]) == 2
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"cells": 3}', "[" * 100_000, '{"cells": [3]}', "rubbish", '{"cells": [{"source": [1]}]}', "9" * 10_000,
        '{"cells": [{"metadata": []}]}', '{"cells": [{"source": 1}]}',
    ],
)  # fmt: skip
def test_what_is_not_a_notebook_is_told(text, tmp_path):
    hand_in(tmp_path, **{"ann/small.ipynb": text.encode()})
    [found] = collect(tmp_path, SOURCES).submissions
    assert (
        found.remarks == ["small.ipynb is not a notebook of at most 1,000 cells"]
        and found.notebook.cells[1].source == "raise NotImplementedError()"
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"cells": [%s{}]}' % ("{}," * 1_000),
        '{"cells": [], "x": [%s{}]}' % ("{}," * 500_000),
    ],
)
def test_a_notebook_of_too_many_cells_is_told_before_any_is_made(
    text, tmp_path, monkeypatch
):
    # the error that a cell made would be
    monkeypatch.setattr(submissions.nbformat.v4, "new_markdown_cell", None)
    assert submissions.read_cells(text.encode()) is None
    monkeypatch.undo()
    assert len(submissions.read_cells(b'{"cells": [%s{}]}' % (b"{}," * 999))) == 1_000
    hand_in(tmp_path, **{"ann/small.ipynb": text.encode()})
    [found] = collect(tmp_path, SOURCES).submissions
    assert "at most 1,000 cells" in found.remarks[0]


def test_a_notebook_too_large_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(submissions, "LARGEST", 100)
    hand_in(tmp_path, **{"ann/small.ipynb": ANSWER})
    found, empty, _ = collect(tmp_path, SOURCES)
    assert found == [] and "small.ipynb has more than" in empty["ann"][0]


def test_half_a_character_in_a_notebook_can_be_written(tmp_path):
    made = json.loads(ANSWER)
    made["cells"][1]["source"] = "answer = '\ud800'"
    hand_in(tmp_path, **{"ann/small.ipynb": json.dumps(made).encode()})
    [found] = collect(tmp_path, SOURCES).submissions
    nbformat.write(found.notebook, tmp_path / "out.ipynb")
    assert found.notebook.cells[1].source == "answer = '?'"


FORMULAS = [
    "=1+1",
    "+1+cmd",
    "-1+cmd",
    "@SUM(1)",
    " =1",
    "\t=1",
    "\r=1",
    "\n=1",
    "\xa0=1",
    "\u3000=1",
    "\u200b=1",
    "\ufeff=1",
    "＝1",
    "＋1+a",
    "－1+a",
    "＠A",
    "﹦1",
    "−1+a",
    '"=1',
    "Ann;=1",
    "Ann; =1",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_a_table_is_a_formula(text):
    file = io.StringIO()
    tables.write(file, ["one", "two"], [{"one": text, "two": f"{text}"}])
    [row] = list(csv.reader(io.StringIO(file.getvalue())))[1:]
    for part in (part for whole in row for part in whole.split(";") if part != "Ann"):
        assert part.startswith("'"), part
    # a table that is read and written again stays as it is
    assert tables.safe(tables.safe(text)) == tables.safe(text)


@pytest.mark.parametrize(
    "text",
    ["Ann", "-2.5", "-", "+3e-5", "", "a=b", "O'Neill", "3", "1;2", "x-y", "'quoted'"],
)
def test_other_cells_stay_as_they_are(text):
    assert tables.safe(text) == text


@pytest.mark.parametrize(
    "sign",
    [
        "\n",
        "\r",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x85",
        "\u2028",
        "\u2029",
        "\0",
        "\x1b",
        "\ud800",
    ],
)
def test_a_row_of_a_table_is_a_line(sign):
    file = io.StringIO()
    tables.write(file, ["one", "two"], [{"one": f"a{sign}b", "two": 1.5}])
    assert len(file.getvalue().encode().decode().splitlines()) == 2
