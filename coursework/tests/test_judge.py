"""The judge: what a test sees of a student's answers, what the answers see of a test,
and that one mistake costs one task.
"""

import os
import socket
import subprocess
import sys

import pytest
import torch
from nbformat.v4 import new_code_cell

from coursework.engine import judge as judging
from coursework.engine.absent import SENTENCE
from coursework.engine.confinement import BARE
from coursework.engine.grading import library
from coursework.engine.judge import REMARKS, Cell, Limits, Sitting, judge, read_cells
from coursework.engine.pairs import ROOT
from coursework.tests.running import ForkedPupil

LIMITS = Limits(cell=20)
GIVEN = Cell(
    "given",
    "setup",
    """import torch
from torch import Generator


class Landscape:
    def __init__(self, depth):
        self.depth, self.noise = depth, float(torch.rand(()))


def landscape(depth):
    return Landscape(depth)


def bowl(x):
    return (x**2).sum()
""",
)


def answer(source, *names, **settings):
    return Cell("answer", names[0], source, names=names, **settings)


def test_cell(source, points=4, name="f-test"):
    return Cell("test", name, source, points)


test_cell.__test__ = False


def sit(*cells, hidden=True, limits=LIMITS):
    """Execute cells; give the errors of each test, or none, and the remarks."""
    sitting = Sitting([GIVEN, *cells], ForkedPupil, limits, hidden)
    errors = {
        cell.name: [verdict.error for verdict in verdicts]
        for cell, _, verdicts in sitting.run()
        if verdicts
    }
    sitting.end()
    return errors, sitting.remarks


def passes(*cells):
    errors, remarks = sit(*cells)
    assert all(error == "" for one in errors.values() for error in one), errors
    return remarks


def fails(*cells):
    errors, remarks = sit(*cells)
    assert all(error for one in errors.values() for error in one)
    return errors, remarks


def test_functions_cross_both_ways():
    doubled = answer("def f(g):\n    return lambda x: 2 * g(x)", "f")
    passes(
        doubled,
        test_cell(
            "calls = []\ndef g(x):\n    calls.append(x)\n    return x + 1\nassert "
            "f(g)(3) == 8 and calls == [3]"
        ),
    )


def test_objects_that_given_functions_made_are_made_again_with_the_same_chance():
    passes(
        answer("def f(place):\n    return place.depth, place.noise", "f"),
        test_cell(
            "torch.manual_seed(3)\nmade = landscape(depth=2)\nassert f(made) == (2, "
            "made.noise)"
        ),
    )


def test_a_generator_goes_on_where_the_answer_left_it():
    passes(
        answer(
            "def f(n, generator):\n    return torch.rand(n, generator=generator)", "f"
        ),
        test_cell(
            "one, two = Generator().manual_seed(1), Generator().manual_seed(1)\n"
            "assert torch.equal(torch.cat([f(3, one), f(700, one), torch.rand(2, "
            "generator=one)]), torch.rand(705, generator=two))"
        ),
    )


@pytest.mark.parametrize(
    "back", ["manual_seed(1)", "set_state(Generator().get_state())", "seed()"]
)
def test_a_generator_that_is_set_fails_the_test_whatever_the_test_says(back):
    _, remarks = fails(
        answer(
            "def f(generator):\n    torch.rand(1, generator=generator)\n    "
            f"generator.{back}",
            "f",
        ),
        test_cell(
            "generator = Generator().manual_seed(1)\ntorch.rand(5, "
            "generator=generator)\ntry:\n    f(generator)\nexcept BaseException:\n    "
            "pass"
        ),
    )
    assert any("sets a generator back" in remark for remark in remarks)


def test_pytorchs_own_generator_is_seeded_beyond_too():
    passes(
        answer("def f():\n    return torch.rand(())", "f"),
        test_cell(
            "torch.manual_seed(7)\nfound = f()\ntorch.manual_seed(7)\nassert found == "
            "torch.rand(())"
        ),
    )


def test_what_a_test_replaces_the_answers_see_replaced_until_it_ends():
    answers = answer("def f(x):\n    return 0\n\ndef g(x):\n    return f(x)", "f", "g")
    first = test_cell(
        "def f(x):\n    return x + 1\nassert g(3) == 4", name="first-test"
    )
    passes(answers, first, test_cell("assert g(3) == 0"))


def test_a_test_sees_given_names_as_they_were_given_and_nothing_of_other_tests():
    student = answer("torch = bowl = landscape = None\n\ndef f(x):\n    return x", "f")
    passes(
        student, test_cell("secret = 1\nassert bowl(torch.ones(2)) == 2 and f(1) == 1")
    )
    errors, _ = fails(
        student,
        test_cell("bowl = torch", name="first-test")._replace(source="assert unknown"),
        test_cell("assert secret"),
    )
    assert "NameError" in errors["f-test"][0]


def test_an_answer_cannot_raise_what_ends_an_iteration_or_an_assertion_of_the_test():
    for kind in (
        "StopIteration",
        "AssertionError",
        "GeneratorExit",
        "SystemExit",
        "KeyboardInterrupt",
    ):
        errors, _ = fails(
            answer(f"def f(x):\n    raise {kind}", "f"),
            test_cell("assert all(map(f, [1]))"),
        )
        assert errors["f-test"][0].startswith(f"the answer raised {kind}")


def test_blocks_give_their_points_one_by_one_and_see_nothing_of_each_other():
    source = (
        "n = 1\n# POINTS 1: one\nn = 5\nassert f(1) == 1\n# POINTS 2: two\nassert "
        "f(2) == 3\n# POINTS 3: n\nassert n == 1"
    )
    sitting = Sitting(
        [answer("def f(x):\n    return x", "f"), test_cell(source, 6)],
        ForkedPupil,
        Limits(),
        True,
    )
    [verdicts] = [verdicts for *_, verdicts in sitting.run() if verdicts]
    sitting.end()
    assert [verdict.points for verdict in verdicts] == [1, 0, 3]


def test_what_deserves_a_question_is_named_and_costs_nothing():
    cells = [
        Cell("added", "2", "leap = __import__('sg' + 'mc.integrators')"),
        answer("import sgmc\n\ndef f(x):\n    return x", "f", forbidden=("sgmc",)),
        test_cell("assert f(1) == 1"),
        Cell("added", "5", "# " + "x" * 30_000),
        answer(
            "def g(x):\n    return x  # by torch.autograd", "g", forbidden=("sgmc",)
        ),
        test_cell("assert g(1) == 1", name="g-test"),
    ]
    *_, outcome = judge([GIVEN, *cells], ForkedPupil, Limits())
    assert outcome.remarks == [
        "the added cell 2 has __import__: ask what for",
        "the answer to f has sgmc: ask what for",
        "the added cell 5 has 30,002 characters: ask what for",
    ]
    assert all(one[0].points for one in outcome.verdicts.values())
    free = [cell._replace(forbidden=()) for cell in cells]
    *_, outcome = judge([GIVEN, *free], ForkedPupil, Limits())
    assert outcome.remarks == []


def test_answers_are_graded_where_there_is_no_sgmc(tmp_path):
    uses = (
        "import sgmc.kernels\nfrom sgmc.integrators import leapfrog\n"
        "from booklib.page.figures import use_style\n"
        "for use in (leapfrog, sgmc.kernels.HMC, sgmc.kernels.HMC.step, sgmc.sample):\n"
        "    try:\n        print(use(1.0))\n"
        "    except RuntimeError as error:\n        print(error)\n"
    )
    with library(ROOT) as imports:
        found = subprocess.run(
            [sys.executable, "-c", uses],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(imports / BARE)},
            capture_output=True,
            text=True,
        )
    assert found.stdout.splitlines() == 4 * [SENTENCE], found.stderr


def test_what_took_too_long_twice_is_not_run_again():
    loop = answer("def f(x):\n    while True:\n        pass", "f")
    parts = "\n".join(f"# POINTS 1: {k}\nf({k})" for k in range(5))
    cells = [GIVEN, loop, test_cell(parts, 5)]
    *_, outcome = judge(cells, ForkedPupil, Limits(cell=1))
    assert [one.error == judging.AGAIN for one in outcome.verdicts["f-test"]] == 5 * [
        True
    ]
    assert sum(one.error == judging.AGAIN for one in outcome.seen["f-test"]) == 3
    assert f"the answer tested in f-test: {judging.AGAIN}" in outcome.remarks


MAPPED = """def f(g, x):
    return torch.vmap(lambda row: g(row[None])[0] + g(row[None])[0])(x)

def h(step, x):
    return torch.vmap(torch.vmap(step, in_dims=1))(x, x)
"""


def test_torch_vmap_calls_a_function_beyond_once_a_row():
    seen = (
        "x, calls = torch.arange(6.0).reshape(3, 2), []\n"
        "def g(rows):\n    calls.append(rows.shape)\n    return rows ** 2\n"
        "assert torch.equal(f(g, x), 2 * x**2) and calls == 6 * [(1, 2)]\n"
        "def step(q, p):\n    return q + p, q * p\n"
        "y = torch.arange(8.0).reshape(2, 2, 2)\n"
        "total, product = h(step, y)\n"
        "assert torch.equal(total, 2 * y.mT) and torch.equal(product, y.mT**2)"
    )
    passes(answer(MAPPED, "f", "h"), test_cell(seen))


def test_a_pupil_that_ends_costs_its_test_and_the_next_one_has_all_cells_again():
    cells = (
        Cell("added", "1", "import os\ncounted = 1"),
        answer("def f(x):\n    os._exit(0)", "f"),
        test_cell("f(1)"),
        answer("def g(x):\n    return x + counted", "g"),
        test_cell("assert g(1) == 2", name="g-test"),
    )
    errors, remarks = sit(*cells)
    assert (
        errors["f-test"][0]
        and errors["g-test"] == [""]
        and remarks == [f"cell f-test {judging.ENDED}"]
    )


def test_time_is_counted_for_each_cell_and_each_block_of_a_test():
    cells = (
        Cell("added", "1", "while True:\n    pass"),
        answer("def f(x):\n    while True:\n        pass", "f"),
        test_cell("# POINTS 1: one\nf(1)\n# POINTS 3: two\nassert True"),
        answer("def g(x):\n    return x", "g"),
        test_cell("assert g(1) == 1", name="g-test"),
    )
    errors, remarks = sit(*cells, limits=Limits(cell=1, added=2))
    assert errors["f-test"][0] and errors["f-test"][1] == errors["g-test"][0] == ""
    assert {f"cell {name} {judging.LONG}" for name in ("1", "f-test")} <= set(remarks)


def test_feedback_is_of_the_visible_run_and_points_are_of_the_other():
    source = (
        "assert f(1) == 1\n### BEGIN HIDDEN TESTS\nassert f(77) == 78\n### END HIDDEN "
        "TESTS"
    )
    spy = "kept = []\n\ndef f(x):\n    kept.append(x)\n    print(x)\n    return x"
    cells = [answer(spy, "f"), test_cell(source), Cell("added", "9", "kept")]
    *_, outcome = judge([GIVEN, *cells], ForkedPupil, Limits())
    assert (
        outcome.seen["f-test"][0].error == ""
        and outcome.verdicts["f-test"][0].points == 0
    )
    assert outcome.outputs["9"][0]["data"]["text/plain"] == "[1]" and "77" not in str(
        outcome.outputs
    )


def test_a_failed_test_names_the_line_and_what_is_wrong():
    own = answer("def f(x):\n    return 1 / x", "f")
    cells = [own, test_cell("x = 0\nassert f(x) == 1")]
    sitting = Sitting(cells, ForkedPupil, Limits(), False)
    [[output]] = [outputs for cell, outputs, _ in sitting.run() if cell.kind == "test"]
    sitting.end()
    assert output["ename"] == "ZeroDivisionError"
    assert output["evalue"] == "division by zero"
    for words in ("in the line  assert f(x) == 1", "return 1 / x"):
        assert words in output["traceback"][0]


def test_what_a_submission_puts_in_place_of_settings_does_not_matter():
    def cells(source, **settings):
        own = {"grade_id": "f", "grade": False, "solution": True, **settings}
        test = {"grade_id": "f-test", "grade": True, "solution": False, "points": 3}
        metadata = {"nbgrader": own, "forbidden": ["sgmc"]}
        first = new_code_cell(source, metadata=metadata)
        return [first, new_code_cell("assert f(1)", metadata={"nbgrader": test})]

    instructors = cells("def f(x):\n    return x")
    submitted = cells("def f(x):\n    return x", grade=True, points=99, solution=False)
    submitted[0].metadata.pop("forbidden")
    found = read_cells(submitted, instructors)
    assert found == read_cells(instructors, instructors)
    read = [(one.kind, one.points, one.names, one.forbidden) for one in found]
    assert read == [("answer", 0.0, ("f",), ("sgmc",)), ("test", 3, (), ())]


def test_torch_has_the_generator_whose_states_are_read_here():
    state = torch.Generator().manual_seed(3).get_state()
    assert len(state) == 5056 and int(state[8:12].view(torch.int32)) == 1


def test_a_submission_has_one_budget_and_what_it_leaves_is_not_executed():
    loops = [Cell("added", f"{number}", "while True: pass") for number in range(3)]
    cells = [
        *loops,
        answer("def f(x):\n    return x", "f"),
        test_cell("assert f(1) == 1"),
    ]
    *_, outcome = judge(cells, ForkedPupil, Limits(cell=1, added=100, submission=1.5))
    assert outcome.verdicts["f-test"][0].points == 0
    assert (
        "not all cells were executed, because the submission used up its time"
        in outcome.remarks
    )
    *_, outcome = judge(
        cells[3:], ForkedPupil, Limits(cell=1, added=100, submission=60)
    )
    assert outcome.verdicts["f-test"][0].points == 4


def test_what_sleeps_is_not_said_to_have_run_out_of_time(monkeypatch):
    # nobody waits for a minute
    monkeypatch.setattr(judging.Clock, "seconds", lambda clock: 2 * clock.wall())
    monkeypatch.setattr(judging.Clock, "processor", lambda clock: 0.0)
    sitting = Sitting(
        [
            answer("import time\n\ndef f():\n    time.sleep(10**6)", "f"),
            test_cell("f()"),
        ],
        ForkedPupil,
        Limits(cell=10),
        True,
    )
    [verdict] = [verdict for cell, _, verdicts in sitting.run() for verdict in verdicts]
    sitting.end()
    assert not sitting.exhausted and any(
        "slept for too long" in remark for remark in sitting.remarks
    )
    assert verdict.points == 0


def test_little_memory_on_the_machine_is_no_fault_of_the_submission(monkeypatch):
    monkeypatch.setattr(judging, "RESERVE", 2**60)
    cells = answer("import time\n\ndef f():\n    time.sleep(60)", "f"), test_cell("f()")
    *_, outcome = judge([GIVEN, *cells], ForkedPupil, LIMITS)
    assert judging.FULL in outcome.fault and outcome.remarks == []
    assert outcome.exhausted  # it is judged again, alone


def test_no_memory_to_start_python_in_is_no_fault_of_the_submission(monkeypatch):
    monkeypatch.setattr(judging, "RESERVE", 2**60)
    process = subprocess.Popen(["sleep", "60"])
    process.border, _beyond = socket.socketpair()
    *_, outcome = judge([GIVEN], lambda bare: process, LIMITS)
    assert "Python did not start" in outcome.fault and outcome.exhausted


FLOOD = """import gc
link = next(one for one in gc.get_objects() if type(one).__name__ == "Link" and one.make)
link.describe = lambda error: ("A" * 10**6, "B" * 10**6, "C" * 10**6)
link.named["execute"] = lambda *_: {"outputs": [["stdout", "x" * 10**5]] * 100, "error": [], "full": False}
"""


def test_an_outcome_is_small_whatever_a_pupil_says(monkeypatch):
    monkeypatch.setattr(judging, "OUTPUTS", 10**7)
    cells = [
        Cell("added", "1", FLOOD),
        Cell("added", "2", "0"),
        answer("def f(x):\n    raise ValueError", "f"),
        test_cell("f(1)"),
    ]
    *_, outcome = judge(cells, ForkedPupil, Limits())
    assert len(str(outcome)) < 10**5 and any(
        "put out too much" in remark for remark in outcome.remarks
    )


def test_remarks_are_few():
    sitting = Sitting([], ForkedPupil, LIMITS, True)
    for number in range(1000):
        sitting.remark(f"{number}" * 1000)
    assert (
        len(sitting.remarks) == REMARKS
        and max(map(len, sitting.remarks)) == judging.LONGEST
    )


def test_a_cell_that_is_too_long_to_be_sent_costs_itself_only():
    long, right = (
        answer(f"x = '{'x' * 2**24}'", "f"),
        answer("def g(x):\n    return x", "g"),
    )
    errors, _ = sit(
        long, test_cell("f(1)"), right, test_cell("assert g(1) == 1", name="g-test")
    )
    assert errors["f-test"][0] and errors["g-test"] == [""]
