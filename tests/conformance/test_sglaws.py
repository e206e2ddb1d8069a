"""The tool of `conformance`: laws against hand calculations, planted faults that each
turn their squares, right samplers that fail nowhere, and the plugin and the report.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from conformance.sglaws import (
    STANDARD,
    TESTS,
    Adapter,
    Chain,
    Setting,
    chain,
    check,
    check_one,
    compare,
    laws,
    moments,
    probe,
    refreshed,
    z_test,
)
from conformance.sglaws.measure import Moments, Probe
from conformance.sglaws.report import main
from tests.conformance.planted import SGHMC, SGLD, planted

pytest_plugins = ["pytester"]
STEPS = "drift_first kick_first euler baoab baoa obabo palindromic".split()
FEW = 40_000  # normals of a probe in these tests: 0.7 %


def test_the_law_of_sgld_by_hand():
    """F = 1 − ηa and Q = 2ηT + η²V − 2ηB̂, with a = 4: 0.6, 0.2 + 0.08 − 0.04."""
    found = chain(laws.sgld, Setting((4.0,), 0.1, variance=8, estimate=0.2), False)
    assert found.transition.item() == pytest.approx(0.6)
    assert found.noise.item() == pytest.approx(0.24)
    assert found.variance().item() == pytest.approx(0.24 / (1 - 0.36))


def test_the_law_of_kick_first_by_hand():
    """r ← (1 − εC/M)r − εaθ, θ ← θ + εr/M, with ε = 0.1, C = 1, M = 2, a = 4, T = 3."""
    found = chain(laws.kick_first, Setting((4.0,), 0.1, 1.0, 2.0, 3.0, 5.0, 0.25))
    np.testing.assert_allclose(found.transition[0], [[0.98, 0.0475], [-0.4, 0.95]])
    noise = 2 * 0.1 * (3 - 0.25) + 0.01 * 5
    expected = noise * np.outer([0.05, 1], [0.05, 1])
    np.testing.assert_allclose(found.noise[0], expected)


def test_leapfrogs_keep_the_position_of_the_target():
    """BAOAB has the target's positions exactly, BAOA too; OBABO's are 1/(1 − ε²a/4)."""
    s = Setting((1.0, 4.0), 0.5, temperature=0.7)
    for law in (laws.baoab, laws.baoa):
        np.testing.assert_allclose(chain(law, s).variance(), s.target, rtol=1e-9)
    obabo = 1 / (1 - 0.25 * np.array([1, 4]) / 4)
    np.testing.assert_allclose(chain(laws.obabo, s).variance(), s.target * obabo)
    palindromic = chain(laws.palindromic, s).variance()
    np.testing.assert_allclose(palindromic, s.target, rtol=1e-9)


def test_minibatches_of_a_step_are_held_or_fresh():
    """Two half kicks of one minibatch have twice the noise of two minibatches."""
    s = Setting((1.0,), 0.1, friction=0.0, temperature=0.0, variance=8.0)
    held, fresh = (chain(laws.obabo, s, fresh=x).noise[0, 1, 1] for x in (0, 1))
    assert held == pytest.approx(0.08, rel=1e-2)
    assert fresh == pytest.approx(0.04, rel=1e-2)


def test_a_refreshed_call_composes_its_steps():
    once = chain(refreshed(laws.euler, 1), Setting((4.0,), 0.1))
    assert once.transition[0, 0].tolist() == [1.0, 0.0]
    assert once.noise[0, 0, 0] == pytest.approx(0.01)
    twice = chain(refreshed(laws.euler, 2), Setting((4.0,), 0.1, variance=9))
    assert twice.transition[0, 0, 0] == pytest.approx(1 - 0.01 * 4)
    assert twice.noise[0, 0, 0] == pytest.approx(0.19**2 + 0.01 * 0.2 + 1e-4 * 9)


def test_a_thermostat_loses_what_explicit_euler_takes():
    """With old momenta a direction has about A/(ξ − εa); with new ones the target's."""
    s = Setting((0.1, 0.46, 2.15, 10.0), 0.03, friction=0.1)
    ratio = laws.thermostat(laws.euler, s) / s.target
    assert ratio[0] == pytest.approx(0.303, abs=1e-3)
    assert ratio[-1] == pytest.approx(3.006, abs=5e-3)
    right = laws.thermostat(laws.kick_first, s) / s.target
    assert abs(right - 1).max() < 0.01
    cold = laws.thermostat(laws.kick_first, s._replace(temperature=0.25))
    np.testing.assert_allclose(cold / s.target, 0.25, rtol=0.01)


def test_chains_that_have_no_law():
    grows = Chain(np.array([[[1.5]]]), np.array([[[1.0]]]))
    rests = Chain(np.array([[[1.0]]]), np.array([[[0.0]]]))
    assert grows.variance() == np.inf and rests.variance() == 0


@pytest.mark.parametrize(("kind", "law"), [(SGLD, laws.sgld), (SGHMC, laws.kick_first)])
def test_a_probe_finds_f_exactly_and_q_by_its_error(kind, law):
    s = STANDARD[kind.kind]._replace(variance=8.0)
    found = probe(kind(), s, samples=FEW)
    stated = chain(law, s, kind is SGHMC)
    unit = np.diag([1.0, 3.0])[: found.chain.transition.shape[1]]
    unit = unit[:, : len(unit)]
    ours = unit @ found.chain.transition @ np.linalg.inv(unit)
    np.testing.assert_allclose(ours, stated.transition, atol=1e-9)
    noise = unit @ found.chain.noise @ unit.T
    np.testing.assert_allclose(noise, stated.noise, rtol=0.05)
    assert found.linear and not compare(found, stated).far
    off = stated._replace(transition=stated.transition * 1.001)
    assert compare(found, off).transition > 1
    off = stated._replace(noise=stated.noise * 1.1)
    assert compare(found, off).noise > 5


def test_positions_are_compared_and_neither_momentum_nor_the_first_move():
    """Drift first and kick first have the same positions, and BAOA those of BAOAB with
    an exact gradient; explicit Euler, OBABO and one per cent of noise have others.
    """
    s = STANDARD["sghmc"]
    law = {x: chain(getattr(laws, x), s) for x in STEPS}
    seen = lambda each: Probe(each, 1_000_000, True)
    assert compare(seen(law["kick_first"]), law["drift_first"]).noise < 1e-6
    same = {x for x in STEPS if not compare(seen(law[x]), law["kick_first"]).far}
    assert same == {"kick_first", "drift_first"}
    same = {x for x in STEPS if not compare(seen(law[x]), law["baoab"]).far}
    assert same == {"baoab", "baoa", "palindromic"}  # the last to 0.5 standard errors
    batch = s._replace(variance=8.0)  # BAOAB's two half kicks share a minibatch
    assert compare(seen(chain(laws.baoa, batch)), chain(laws.baoab, batch)).far
    other = law["euler"].transition * [[1, 3], [1 / 3, 1]]  # the momentum in thirds
    noise = law["euler"].noise * [[1, 1 / 3], [1 / 3, 1 / 9]]
    assert not compare(seen(Chain(other, noise)), law["euler"]).far
    more = law["euler"]._replace(noise=law["euler"].noise * 1.01)
    assert compare(seen(more), law["euler"]).noise == pytest.approx(7.1, abs=0.2)
    # noise of the same variance in the positions' moving average, another covariance
    both = np.linalg.inv(
        [[[1, 0], [-f[1, 1], f[0, 1]]] for f in law["baoab"].transition]
    )
    turned = both @ np.array([[0, 1e-4], [1e-4, 0]]) @ both.swapaxes(1, 2)
    found = compare(
        seen(law["baoab"]._replace(noise=law["baoab"].noise + turned)), law["baoab"]
    )
    assert found.noise > 5 and found.transition < 1e-6
    nan = law["euler"]._replace(noise=law["euler"].noise * np.nan)
    assert compare(seen(nan), law["euler"]).far


def test_a_momentum_drawn_anew_is_left_out_and_one_that_is_kept_is_not():
    anew, kept = (
        chain(law, STANDARD["sghmc"]) for law in (refreshed(laws.euler, 3), laws.euler)
    )
    seen = Probe(Chain(anew.transition[:, :1, :1], anew.noise[:, :1, :1]), 1_000, True)
    assert not compare(seen, anew).far
    assert compare(seen, kept).transition == np.inf


def test_a_step_that_is_not_linear_is_told():
    class Bent(SGLD):
        def step(self, state, target, seed):
            theta, given = super().step(state, target, seed)
            return [theta + 0.01 * state[0] ** 3, given]

    assert not probe(Bent(), STANDARD["sgld"], samples=FEW).linear

    class Coupled(SGLD):
        def step(self, state, target, seed):
            theta, given = super().step(state, target, seed)
            return [theta + 0.01 * state[0].sum(1, keepdims=True), given]

    assert not probe(Coupled(), STANDARD["sgld"], samples=FEW).linear


def test_moments_and_their_z_test():
    found = Moments(np.array([1.03, 0.5]), np.array([0.01, 0.1]))
    assert z_test(found, np.array([1.0, 0.25])) == pytest.approx(3)
    assert z_test(found._replace(second=np.array([np.nan, 0.5])), found.second) > 1e9
    s = STANDARD["sgld"]
    seen = moments(SGLD(), s, steps=200, copies=4_000)
    law = chain(laws.sgld, s, False).variance()
    assert z_test(seen, law) < 5
    assert z_test(moments(SGLD(), s, steps=400, at_mode=True), law) < 5


def test_a_chain_that_never_moves_has_no_variance():
    class Still(SGLD):
        def step(self, state, target, seed):
            return state

    assert (moments(Still(), STANDARD["sgld"], steps=10).second == 0).all()


ALL_LAWS = {"exact gradient", "gradient noise", "uneven curvature"}
PLANTED = {
    (SGLD, ""): set(),
    (SGHMC, ""): set(),
    (SGLD, "no temperature"): {"temperature", "mean of the loss", "noise estimate"},
    (SGLD, "half of the estimate"): {"noise estimate"},
    (SGLD, "the mass is not read"): {"mass"},
    (SGLD, "one seed"): {"two states"},
    (SGLD, "two states share their arguments"): {"two states"},
    (SGLD, "a saved state has another step size"): {"save and load"},
    (SGHMC, "half of the estimate"): {"noise estimate"},
    (SGHMC, "the friction squared in the noise"): {
        "friction",
        "mean of the loss",
        "noise estimate",
    },
}
EVERYWHERE = {
    (SGLD, "a variance for a standard deviation"): ALL_LAWS | {"mass", "temperature"},
    (SGHMC, "a variance for a standard deviation"): ALL_LAWS | {"mass", "friction"},
    (SGHMC, "order"): ALL_LAWS | {"mass", "friction", "temperature"},
    (SGHMC, "no friction"): ALL_LAWS | {"mass", "friction"},
}


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(Adapter, "samples", FEW)


@pytest.mark.parametrize(("kind", "fault"), [*PLANTED, *EVERYWHERE])
def test_a_planted_fault_turns_its_squares(kind, fault, few):
    squares = check(planted(kind, fault))
    failed = {square.test for square in squares if square.failed}
    if (kind, fault) in PLANTED:
        assert failed == PLANTED[kind, fault], squares
    else:
        assert failed >= EVERYWHERE[kind, fault], squares


def test_what_is_documented_is_no_failure_but_a_surprise(few):
    class Euler(SGHMC):
        documented = staticmethod(laws.euler)

    square = check_one(planted(Euler, "order"), "exact gradient")
    assert (square.sign, square.failed) == ("surprise", False)
    assert square.ratio == pytest.approx(1.684, abs=1e-3)


def test_where_nothing_is_documented_nobody_is_wrong(few):
    class Silent(SGHMC):
        undocumented = frozenset({"temperature"})

    square = check_one(planted(Silent, "no temperature"), "temperature")
    assert (square.sign, square.failed) == ("surprise", False)
    assert square.ratio == pytest.approx(4.05, abs=0.1)
    assert check_one(planted(Silent, "no temperature"), "mean of the loss").failed


def test_two_numbers_are_written_of_one_coordinate_and_so_that_they_differ(few):
    class Close(SGLD):
        def step(self, state, target, seed):
            theta, given = super().step(state, target, seed)
            return [state[0] + (theta - state[0]) * [1, 1.002], given]

    text = check_one(Close(), "exact gradient").text
    found, stated = map(float, text.split(" of the target, stated "))
    assert found != stated and found == pytest.approx(stated, rel=0.02)


def test_the_front_door_shows_the_variance_at_the_defaults(few):
    assert check_one(SGLD(), "front door").sign == "right"
    assert check_one(SGHMC(), "front door").sign == "no defaults"

    class Cold(SGLD):
        at_defaults = Setting(step=1e-3, temperature=1e-4)
        required = {"T": 1e-4}

    square = check_one(Cold(), "front door")
    assert square.sign == "surprise" and square.ratio < 1e-3

    class Own(SGLD):
        def at_defaults(self, curvature):
            return np.array([0.9 / curvature[0]])

    square = check_one(Own(), "front door")
    assert square.sign == "right" and square.ratio == pytest.approx(0.9)


def test_a_test_without_an_argument_is_blank_and_an_exception_an_outcome():
    assert check_one(SGLD(), "friction").sign == "blank"

    class Broken(SGLD):
        def step(self, state, target, seed):
            raise ImportError("no such thing")

    square = check_one(Broken(), "exact gradient")
    assert (square.sign, square.text) == ("interface", "ImportError: no such thing")


def test_the_plugin_has_a_test_for_each_square(pytester):
    pytester.syspathinsert(".")
    pytester.makepyfile(
        adapters="""
        from tests.conformance.planted import SGLD, planted
        bad = planted(SGLD, "the mass is not read")
        known = planted(SGLD, "the mass is not read")
        known.xfail = {"mass": "#69"}
        ADAPTERS = [bad, known]
        """
    )
    pytester.syspathinsert(str(__import__("pathlib").Path(__file__).parents[2]))
    found = pytester.runpytest(
        "-p", "conformance.sglaws.plugin", "--sglaws", "adapters:ADAPTERS", "-q"
    )
    assert found.ret == 1
    # two without a friction, later parameters and a schedule: three blank each
    found.assert_outcomes(passed=20, failed=1, xfailed=1, skipped=6)
    found.stdout.fnmatch_lines(["*SGLD[[]mass[]]: law: 1.11 of the target*"])


def test_a_report_has_numbers_and_a_table(tmp_path, few, capsys):
    out, table = tmp_path / "found.json", tmp_path / "found.md"
    named = "tests.conformance.planted:ADAPTERS"
    asked = ["report", named, "--library", "numpy", "-o", str(out)]
    assert main([*asked, "--markdown", str(table)]) == 0
    found = json.loads(out.read_text())
    assert found["version"] == np.__version__ and found["date"] and found["platform"]
    assert len(found["squares"]) == 2 * len(TESTS)
    first = found["squares"][0]
    assert first["numbers"]["F"][0][0] == pytest.approx([0.95])
    assert "| SGLD | ● |" in table.read_text()


def test_what_an_adapter_has_to_write_is_said():
    for name in ("arguments", "init", "step", "position"):
        assert getattr(Adapter, name).__doc__
    with pytest.raises(NotImplementedError):
        Adapter().arguments(Setting())


def test_the_adapter_of_the_readme_is_whole_and_right(few):
    """Its block imports the tool by the name that the wheel has."""
    folder = Path(laws.__file__).parent
    block = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    found = {}
    exec(block.replace("from sglaws", "from conformance.sglaws"), found)
    signs = {square.test: square.sign for square in check(found["ADAPTERS"][0])}
    assert signs["exact gradient"] == signs["temperature"] == "right"
    assert not {"law", "interface"} & {*signs.values()}
