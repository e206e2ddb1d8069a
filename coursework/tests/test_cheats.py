"""Cheats, each a submission to a small course: it gets what its honest rest deserves,
and nothing hidden is shown.
"""

import json
import time

import nbformat
import psutil
import pytest

from coursework.engine.confinement import obstacle
from coursework.tests.conftest import ROOT
from coursework.tests.planted import CHEATS, CONFINED
from coursework.tests.small import grade, judged, table

pytestmark = [
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
    pytest.mark.skipif(
        bool(obstacle()), reason=f"submissions cannot be confined here: {obstacle()}"
    ),
]
SECRETS = ("7919", "15838", "twice a prime", "thrice five", "BEGIN HIDDEN")


@pytest.fixture(scope="module")
def caught(course, tmp_path_factory):
    return grade(
        course,
        tmp_path_factory.mktemp("cheats"),
        {cheat: CHEATS[cheat] for cheat in CHEATS if cheat in CONFINED},
    )


def public(notebook):
    """Write a notebook without what goes to the lecturer alone."""
    notebook = json.loads(notebook)
    for cell in notebook["cells"]:
        cell["metadata"].pop("reason", None)
    return json.dumps(notebook)


def check(cheat, points, said):
    _, double, triple, remarks = CHEATS[cheat]
    assert (points["double"], points["triple"]) == (double, triple)
    assert all(any(word in line for line in said) for word in remarks), said


@pytest.mark.parametrize("cheat", [cheat for cheat in CHEATS if cheat in CONFINED])
def test_a_cheat_gets_what_its_honest_rest_deserves(caught, cheat):
    rows, said = (
        [
            row
            for row in table(caught / name)
            if row["student_id"] == cheat.replace(",", "_")
        ]
        for name in ("tasks.csv", "remarks.csv")
    )
    check(
        cheat,
        {row["task"]: float(row["points"]) for row in rows},
        [row["remark"] for row in said],
    )


@pytest.mark.parametrize("cheat", [cheat for cheat in CHEATS if cheat not in CONFINED])
def test_a_cheat_that_needs_no_confinement_gets_what_its_honest_rest_deserves(
    course, cheat, monkeypatch
):
    monkeypatch.syspath_prepend(ROOT / "coursework" / "assignments")
    notebook, points, remarks = judged(course, CHEATS[cheat][0])
    check(cheat, points, remarks)
    assert [
        secret for secret in SECRETS if secret in public(nbformat.writes(notebook))
    ] == []


def test_no_hidden_test_or_value_reaches_a_page_or_the_notebook_that_it_is_made_of(
    caught,
):
    pages = [
        *(caught / "feedback").rglob("*.html"),
        *(caught / "submitted").rglob("*.ipynb"),
        *(caught / "autograded").rglob("*.ipynb"),
    ]
    assert len(pages) == 3 * len(CONFINED)
    for path in pages:
        text = public(path.read_text()) if path.suffix == ".ipynb" else path.read_text()
        assert [secret for secret in SECRETS if secret in text] == [], path


def test_what_was_invented_to_look_around_saw_nothing(caught):
    text = "\n".join(
        path.read_text() for path in (caught / "submitted").rglob("*.ipynb")
    )
    assert "SEEN [] []" in text and "NETWORK False" in text and "KEPT [1]" in text


def test_a_detached_process_is_dead_and_no_mark_is_given_by_hand(caught):
    time.sleep(0.5)
    commands = [
        " ".join(process.info["cmdline"] or [])
        for process in psutil.process_iter(["cmdline"])
    ]
    assert not any("outlives-its-notebook" in command for command in commands)
    assert not any(
        "coursework.engine.pupil" in command
        for command in commands
        if str(caught) in command
    )
    assert {
        row["points"] for row in table(caught / "tasks.csv") if row["task"] == "why"
    } == {"0.0"}
