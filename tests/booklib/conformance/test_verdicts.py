"""From a cell to a verdict, on laws whose numbers are known by hand."""

import math
import sys
from types import SimpleNamespace

import pytest
import torch

from booklib.conformance import verdicts
from booklib.conformance.verdicts import CLOSE, LIMIT, ROUNDING, Laws, Problem, judge
from sgmc.splittings import LinearChain, flows

# T/a is 2 and ½
PROBLEM = {"curvature": [1.0, 4.0], "gradient_variance": 3.0, "temperature": 2.0}


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.fixture
def verdict(monkeypatch):
    """Make a function that judges a cell of a made-up library by given laws."""

    def verdict(laws, problem=PROBLEM, **cell):
        def law(given, problem):
            assert given == {} and isinstance(problem, Problem)
            return laws

        found = SimpleNamespace(
            LAWS={"made": law},
            observed=lambda cell: (cell["observed"], "looked"),
        )
        monkeypatch.setitem(sys.modules, "booklib.conformance.made", found)
        cell = {"sampler": "made", "test": "friction", "given": {}, **cell}
        return judge("made", cell | {"problem": problem})

    return verdict


def moments(second, error, start=0.0, steps=1):
    return {"second": second, "standard_error": error, "start": start, "steps": steps}


def test_variances_are_off_by_so_many_standard_errors(verdict):
    """The first by 3 and the second by 2 of the code's, by 1 and 4 of those that are
    documented; 1.3 is 0.65 of the target's, and 0.4 is 0.8 of it.
    """
    laws = Laws(tensor(1.0, 0.5), tensor(1.2, 0.2))
    found = verdict(laws, moments=moments([1.3, 0.4], [0.1, 0.05]), note="seen")
    assert found.of_code == pytest.approx(3) and found.ratio == pytest.approx(0.65)
    assert found.of_documentation == pytest.approx(4)
    assert (found.name, found.text) == ("as documented", "seen")
    assert verdict(laws, moments=moments([2.0, 0.5], [1, 1])).text == ""


def test_what_is_furthest_from_one_is_so_by_its_factor(verdict):
    """0.7 is further than 1.4 (1/0.7 is 1.43), whichever comes first."""
    for second in ([1.4, 0.7], [2.8, 0.35]):
        found = verdict(
            Laws(tensor(1, 1), tensor(1, 1)), moments=moments(second, [9, 9])
        )
        assert found.ratio == pytest.approx(0.7)


def test_a_simulated_law_has_an_error_of_its_own(verdict):
    """√(0.03² + (0.02·2)²) = 0.05."""
    laws = Laws(tensor(2.0, 0.5), tensor(2.0, 0.5), error=0.02)
    found = verdict(laws, moments=moments([2.1, 0.5], [0.03, 0.03]))
    assert found.of_code == pytest.approx(2)


def test_a_chain_is_followed_from_its_start_for_its_steps(verdict):
    """z' = ½z + N(0, ¾): the variance is 1 + (4 − 1)/4³ after three steps."""
    half = LinearChain(tensor([0.5, 0], [0, 0.5]), 0.75 * torch.eye(2).double())
    cell = moments([1 + 3 / 64 + 0.1] * 2, [0.1, 0.2], start=4.0, steps=3)
    found = verdict(Laws(half, half), moments=cell)
    assert found.of_code == pytest.approx(1)


def test_a_momentum_starts_with_its_variance_in_our_unit(verdict):
    """θ' = θ + r, and r, which is twice theirs, has 2²·3 at the start: 5 + 12."""
    eye, zero = torch.eye(2).double(), torch.zeros(2, 2).double()
    chain = LinearChain(
        torch.cat([torch.cat([eye, eye], 1), torch.cat([zero, eye], 1)]),
        torch.zeros(4, 4).double(),
    )
    laws = Laws(chain, chain, momentum=2.0, start_momentum=3.0)
    found = verdict(laws, moments=moments([17.5, 17.1], [0.1, 0.1], start=5.0))
    assert found.of_code == pytest.approx(5)


def test_flows_are_composed_on_the_problem(verdict):
    """SGLD's step 0.1 from zero: variance 2ηT + η²V, 0.43, and for two steps
    (1 − ηa)² of it and that once more, 0.81 and 0.36.
    """
    laws = Laws(*[flows.sgld(0.1, temperature=2.0)] * 2)
    cell = moments([0.43 * 1.81 + 0.01, 0.43 * 1.36 - 0.02], [0.01, 0.01], steps=2)
    assert verdict(laws, moments=cell).of_code == pytest.approx(2)


ONE = {"curvature": [4.0], "gradient_variance": 0.0, "temperature": 2.0}
# a step of position and momentum, neither F nor Q of which is symmetric in the two
MOVES, NOISE = tensor([0.5, 1.0], [0.125, 0.25]), tensor([3.0, 0.5], [0.5, 2.0])


def probe(scale=1.0, transition=0.0, noise=0.0):
    """Write a step in a library's unit of momentum: ours is ``scale`` times theirs."""
    scales = tensor(1.0, scale)
    moved, random = MOVES.clone(), NOISE.clone()
    moved[1, 0] += transition
    random[1, 1] += noise
    return {
        "transition": (moved * scales / scales[:, None]).tolist(),
        "noise": (random / scales / scales[:, None]).tolist(),
    }


@pytest.mark.parametrize("scale", [1.0, 4.0])
@pytest.mark.parametrize(
    ("changed", "off"), [({}, 0), ({"transition": 1.0}, 1), ({"noise": -6.0}, 2)]
)
def test_a_probe_is_off_by_so_many_roundings_of_its_largest_entry(
    verdict, scale, changed, off
):
    """The largest entries are 1 and 3; both laws have one momentum."""
    changed = {name: ROUNDING * value for name, value in changed.items()}
    chain = LinearChain(MOVES, NOISE)
    laws = Laws(chain, LinearChain(MOVES, 2 * NOISE), momentum=scale)
    found = verdict(laws, ONE, probe=probe(scale, **changed))
    assert found.of_code == pytest.approx(off, abs=1e-6)
    assert found.of_documentation == pytest.approx(0.5 / ROUNDING, rel=1e-3)
    assert found.name == "deviates"
    variance = float(chain.stationary_covariance()[0, 0])
    assert found.ratio == pytest.approx(variance * 4 / 2, rel=1e-3)


def test_a_probe_of_a_chain_without_a_law_is_said_to_grow(verdict):
    grows = LinearChain(tensor([[1.5]]), tensor([[1.0]]))
    cell = {"transition": [[1.5]], "noise": [[1.0]]}
    found = verdict(Laws(grows, grows), ONE, probe=cell)
    assert (found.name, found.ratio, found.of_code) == ("as documented", math.inf, 0)


@pytest.mark.parametrize(
    ("second", "error", "name"),
    [
        (2 * (1 + CLOSE) - 1e-6, 1.0, "right"),
        (2 * (1 + CLOSE) + 1e-6, 1.0, "as documented"),
        (2 * (1 - CLOSE) - 1e-6, 1.0, "as documented"),
        (2 + 0.01 * LIMIT - 1e-6, 0.01, "right"),
        (2 + 0.01 * LIMIT + 1e-6, 0.01, "deviates"),
        (math.nan, 0.01, "deviates"),
    ],
)
def test_the_name_of_a_verdict(verdict, second, error, name):
    """By the documentation's law: that of the code is far off."""
    laws = Laws(tensor(9.0, 9.0), tensor(2.0, 0.5))
    cell = moments([second, 0.5], [error, 1.0])
    assert verdict(laws, moments=cell).name == name


@pytest.mark.parametrize(("right", "name"), [(True, "right"), (False, "deviates")])
def test_what_is_no_law_is_judged_by_its_library(verdict, right, name):
    found = verdict(None, observed=right)
    assert (found.name, found.text) == (name, "looked")
    assert all(map(math.isnan, found[1:4]))


def test_a_chain_is_that_of_the_problem():
    """Curvatures on the diagonal, and noise of the gradient in each coordinate."""
    chain = Problem(tensor(1.0, 4.0), 3.0, 1.0).chain(flows.sgld(0.1))
    torch.testing.assert_close(chain.transition, tensor([0.9, 0], [0, 0.6]))
    torch.testing.assert_close(chain.noise_covariance, 0.23 * torch.eye(2).double())


def test_a_report_names_its_cells(tmp_path):
    (tmp_path / "made-b.md").write_text(
        "# A `step` that\\_is\n\nBy us. Cells: `a.b` (mass, uneven\ncurvature), `c` "
        "(mass).\n\nText `d` (friction).\n\nMore."
    )
    (tmp_path / "made-a.md").write_text("# First\n\nCells: none.\n\nText.")
    (tmp_path / "README.md").write_text("# Not one\n\nCells: `a` (mass)\n\nText.")
    first, second = verdicts.reports(tmp_path)
    assert first == ("made", "First", "made-a.md", set())
    cells = {("a.b", "mass"), ("a.b", "uneven curvature"), ("c", "mass")}
    assert second == ("made", "A step that_is", "made-b.md", cells)


def test_an_error_is_a_deviation_and_its_text(verdict):
    found = verdict(None, error="no such argument")
    assert (found.name, found.text) == ("deviates", "no such argument")
    assert all(map(math.isnan, found[1:4]))


def test_a_probe_may_have_negative_entries_and_a_law_of_flows(verdict):
    turns = LinearChain(tensor([[-0.8]]), tensor([[1.0]]))
    cell = {"transition": [[-0.8 * (1 + 3 * ROUNDING)]], "noise": [[1.0]]}
    assert verdict(Laws(turns, turns), ONE, probe=cell).of_code == pytest.approx(3)
    # 1 − ηa and 2ηT, whose variance is 0.4/0.64, of ½
    laws = Laws(*[flows.sgld(0.1, temperature=2.0)] * 2)
    found = verdict(laws, ONE, probe={"transition": [[0.6]], "noise": [[0.4]]})
    assert found.of_code == pytest.approx(0, abs=1e-6)
    assert found.ratio == pytest.approx(1.25)


def test_the_variance_of_a_momentum_is_no_matter(verdict):
    chain = LinearChain(tensor([0.5, 0], [0, 0.0]), tensor([0.375, 0], [0, 100.0]))
    cell = {"transition": chain.transition.tolist()}
    cell["noise"] = chain.noise_covariance.tolist()
    found = verdict(Laws(chain, chain), ONE, probe=cell)
    assert found.ratio == pytest.approx(1) and found.name == "right"
