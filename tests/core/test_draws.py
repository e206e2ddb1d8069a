"""Draws: averages, their standard errors, and the way to ArviZ and back."""

import dataclasses
import math
import random
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch

from sgmc import sample
from sgmc.checkpoints import Checkpoint, read_whole
from sgmc.door.draws import Draws
from sgmc.kernels import HMC, SGLD
from sgmc.posteriors import LinearRegression
from sgmc.potentials import Potential
from sgmc.targets import Gaussian
from tests.checks import z_bound
from tests.fakes import WithoutFloat64


@pytest.fixture
def draws(generator):
    statistics = {
        "step_size": torch.rand(6, 4, generator=generator) + 0.1,
        "num_gradients": torch.arange(24).reshape(6, 4),
    }
    return Draws(torch.randn(6, 4, 3, generator=generator), statistics)


def test_mean_and_standard_error_are_those_of_the_chains_averages(draws):
    averages = draws.samples.double().numpy().mean(0)
    mean, error = draws.mean_and_standard_error()
    np.testing.assert_allclose(mean, averages.mean(0))
    np.testing.assert_allclose(error, scipy.stats.sem(averages, axis=0))
    assert mean.dtype == error.dtype == torch.float64


def test_standard_error_covers_the_truth_as_often_as_it_should(generator):
    """In 4,000 runs of 8 strongly autocorrelated chains; false alarms: 1 in 10,000."""
    values = torch.randn(60, 8, 4_000, generator=generator)
    for step in range(1, 60):  # AR(1), stationary from the start
        values[step] = 0.9 * values[step - 1] + math.sqrt(1 - 0.9**2) * values[step]
    mean, error = Draws(values).mean_and_standard_error()
    covered = (mean.abs() < scipy.stats.t.ppf(0.95, 7) * error).double().mean()
    assert abs(covered - 0.9) / math.sqrt(0.9 * 0.1 / 4_000) < z_bound(1)


def test_two_chains_have_a_spread_and_one_run_is_a_pool():
    """Averages 1 and 4: their standard error is 3/2."""
    two = Draws(torch.tensor([[[0.0], [4.0]], [[2.0], [4.0]]]), seed=3)
    mean, error = two.mean_and_standard_error()
    assert mean == 2.5 and float(error) == pytest.approx(1.5)
    alone = Draws.pool((two,))
    assert torch.equal(alone.samples, two.samples) and alone.seed == (3,)
    for wrong in ([two, 3], [two, None], "ab", two, {two: 1}, 5):
        with pytest.raises(ValueError, match="runs must be a list of Draws"):
            Draws.pool(wrong)
    with pytest.raises(ValueError, match="samples"):
        Draws({})
    with pytest.raises(ValueError, match="statistics"):
        Draws(two.samples, [1.0])


def test_averages_of_several_tensors_want_a_choice(named):
    mean, error = named.mean_and_standard_error(lambda samples: samples["inside"])
    averages = named.samples["inside"].double().numpy().mean(0)
    assert float(mean) == pytest.approx(averages.mean()) and float(
        error
    ) == pytest.approx(scipy.stats.sem(averages))
    with pytest.raises(
        ValueError, match=r"samples.*\['inside', 'position', 'radius'\]"
    ):
        named.mean_and_standard_error()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            "position",
            r"function.*Callable.*'position'$",
        ),
        (
            lambda samples: samples.numpy(),
            r"function.*\(5, 4, \.\.\.\).*ndarray",
        ),
        (lambda samples: samples.mean(0), r"\(5, 4, ...\), not \(4, 2\)"),
        (lambda samples: samples.transpose(0, 1), r"\(5, 4, ...\), not \(4, 5, 2\)"),
        (lambda samples: samples.mean(1), r"\(5, 4, ...\), not \(5, 2\)"),
        (lambda samples: 1.0, "not 1.0"),
    ],
)
def test_a_function_of_the_draws_keeps_their_axes(function, message):
    """Otherwise it would be averaged over what are no chains."""
    with pytest.raises(ValueError, match=message):
        Draws(torch.zeros(5, 4, 2)).mean_and_standard_error(function)


def test_other_draws_that_cannot_be_averaged():
    draws = Draws(torch.zeros(5, 4, 2), {"hyperparameters": torch.ones(5, 4, 2)})
    with pytest.raises(ValueError, match=r"runs.*a list$"):
        Draws.pool([])
    with pytest.raises(ValueError, match="no draws"):
        Draws(torch.zeros(0, 4, 2)).mean_and_standard_error()
    with pytest.raises(
        ValueError,
        match=r"\bname.*list",
    ):
        draws.to_arviz(["position"])


# Files and several runs


def test_draws_come_back_from_their_file_as_they_were(tmp_path, draws, named):
    """With every field, whatever its value."""
    others = {"kernel": "SGLD(0.1)", "seed": (1, 2), "warm_up": 3, "thinning": 2}
    others |= {"seconds": 0.5, "complete": False, "potential": "known"}
    assert len(others) == len(dataclasses.fields(Draws)) - 2
    for kept in (draws, named, dataclasses.replace(draws, **others)):
        kept.save(tmp_path / "draws.pt")
        again = Draws.load(tmp_path / "draws.pt")
        for field in dataclasses.fields(Draws):
            one, other = getattr(kept, field.name), getattr(again, field.name)
            if isinstance(one, dict):
                assert one.keys() == other.keys()
                assert all(torch.equal(one[key], other[key]) for key in one)
            elif isinstance(one, torch.Tensor):
                assert torch.equal(one, other)
            else:
                assert one == other


def test_a_file_has_the_draws_and_no_more(tmp_path):
    """Not the room for those that an interrupted run has not drawn."""
    whole = torch.zeros(100_000, 2, 1)
    Draws(whole[:10]).save(tmp_path / "draws.pt")
    assert (tmp_path / "draws.pt").stat().st_size < 20_000


def test_a_bit_that_flipped_anywhere_in_a_file_is_noticed(tmp_path, draws):
    """And a file that was cut short anywhere."""
    path = tmp_path / "draws.pt"
    draws.save(path)
    whole, chance = path.read_bytes(), random.Random(0)
    ends = [0, 1, len(whole) - 1, len(whole) - 32, len(whole) - 33]
    for place in [*ends, *(chance.randrange(len(whole)) for _ in range(40))]:
        changed = bytearray(whole)
        changed[place] ^= 1 << chance.randrange(8)
        for content in (changed, whole[:place]):
            path.write_bytes(content)
            with pytest.raises(ValueError, match=r"draws\.pt holds no draws.*damaged"):
                Draws.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"samples": {}},
        {"samples": {"": torch.zeros(6)}},
        {"samples": [1.0]},
        {"statistics": {"energy": torch.zeros(5, 4)}},
        {"statistics": {"energy": 1.0}},
        {"statistics": [torch.zeros(6, 4)]},
        {"kernel": 1},
        {"seed": "one"},
        {"warm_up": 0.5},
        {"thinning": None},
        {"seconds": "long"},
        {"complete": "no"},
        {"potential": b""},
        {"more": 1},
    ],
    ids=str,
)
def test_a_file_with_another_field_is_refused(change, tmp_path, draws):
    """Even with a right checksum."""
    draws.save(tmp_path / "draws.pt")
    content = read_whole(tmp_path / "draws.pt")["content"]
    Checkpoint(tmp_path / "draws.pt").save({**content, **change})
    with pytest.raises(ValueError, match=r"draws\.pt holds no draws"):
        Draws.load(tmp_path / "draws.pt")


@pytest.mark.parametrize(
    "error", [OSError("full"), RuntimeError("full"), KeyboardInterrupt()], ids=repr
)
def test_a_stop_while_draws_are_written_leaves_the_older_file(
    error, tmp_path, draws, monkeypatch
):
    path = tmp_path / "draws.pt"
    draws.save(path)

    def write(content, unfinished):
        Path(unfinished).write_text("half of it")
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", write)
        kind = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else OSError
        with pytest.raises(
            kind, match=r"draws\.pt could not .*\(full\)" if kind is OSError else None
        ):
            Draws(draws.samples + 1).save(path)
    assert torch.equal(Draws.load(path).samples, draws.samples)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_goes_to_a_folder_that_is_made_and_through_a_link(tmp_path, draws):
    path, link = tmp_path / "new" / "draws.pt", tmp_path / "link.pt"
    draws.save(str(path))
    link.symlink_to(path)
    Draws(draws.samples + 1).save(link)
    assert link.is_symlink() and torch.equal(
        Draws.load(path).samples, draws.samples + 1
    )
    with pytest.raises(ValueError, match=r"path must be .*None"):
        draws.save(None)
    with pytest.raises(ValueError, match="is a folder"):
        draws.save(tmp_path)


def test_a_file_that_holds_code_is_not_run(tmp_path):
    class Harmful:
        def __reduce__(self):
            return (pytest.fail, ("code of the file was run",))

    Checkpoint(tmp_path / "draws.pt").save({"samples": Harmful()})  # with its checksum
    with pytest.raises(ValueError, match="no draws"):
        Draws.load(tmp_path / "draws.pt")


def test_runs_of_several_seeds_are_pooled_chain_beside_chain():
    runs = [
        sample(HMC(0.5, 3), Gaussian.standard(2), torch.zeros(3, 2), 20, seed=seed)
        for seed in (0, 1, 5)
    ]
    pooled = Draws.pool(runs)
    assert pooled.samples.shape == (20, 9, 2) and pooled.seed == (0, 1, 5)
    assert torch.equal(pooled.samples[:, 3:6], runs[1].samples)
    assert torch.equal(pooled.statistics["energy"][:, 6:], runs[2].statistics["energy"])
    again = Draws.pool([Draws.pool(runs[:2]), runs[2]])
    assert torch.equal(again.samples, pooled.samples) and again.seed == pooled.seed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, r"runs have the seeds \[3, 3\].*another seed"),
        ({"seed": 4, "kernel": "HMC(0.1)"}, "runs differ.*SGLD.*HMC"),
        ({"seed": 4, "thinning": 2}, r"runs differ.*0, 1, 5,.*0, 2, 5,"),
        (
            {"seed": 4, "samples": torch.zeros(6, 4, 1)},
            r"runs differ.*0, 1, 5,.*0, 1, 6,",
        ),
        ({"seed": 4, "samples": {"a": torch.zeros(5, 4, 1)}}, "runs differ.*'a'"),
        ({"seed": 4, "samples": torch.zeros(5, 4, 2)}, r"runs differ.*\(1,\).*\(2,\)"),
        (
            {"seed": 4, "samples": torch.zeros(5, 4, 2), "potential": "b"},
            r"runs differ in kernel",
        ),
        ({"seed": 4, "potential": "b"}, "runs differ in their potentials.*replace"),
    ],
)
def test_runs_that_cannot_be_pooled(change, message):
    first = Draws(torch.zeros(5, 4, 1), kernel="SGLD(0.1)", seed=3, potential="a")
    with pytest.raises(ValueError, match=message):
        Draws.pool([first, dataclasses.replace(first, **change)])


def test_runs_of_two_posteriors_are_not_pooled():
    """Of other targets, another setting or function; equal ones are, made anew too."""
    scale = 1.0

    class Mine(Potential):
        def energy(self, position):
            return scale * position.square().sum(-1)

    x, y = torch.randn(20, 1), torch.randn(20)
    regression = lambda targets, variance=1.0: LinearRegression(x, targets, variance)

    def run(potential, seed):
        return sample(SGLD(0.01), potential, torch.zeros(3, 1), 5, seed=seed)

    first, other = run(regression(y), 0), run(regression(y.clone()), 1)
    assert first.potential == other.potential != ""
    assert Draws.pool([first, other]).potential == first.potential
    for another in (regression(-y), regression(y, 2.0), Gaussian.standard(1), Mine()):
        with pytest.raises(ValueError, match="differ in their potentials"):
            Draws.pool([first, run(another, 2)])
    mine = run(Mine(), 3)
    scale = 2.0
    with pytest.raises(ValueError, match="differ in their potentials"):
        Draws.pool([mine, run(Mine(), 4)])


def test_a_potential_that_cannot_be_told_is_sampled_and_pooled():
    numbers = iter(range(10**9))

    class Mine(Potential):
        def energy(self, position):
            return position.square().sum(-1) + 0 * next(numbers)

    runs = [sample(HMC(0.1, 2), Mine(), torch.zeros(2, 1), 3, seed=k) for k in (0, 1)]
    assert [run.potential for run in runs] == ["", ""]
    assert Draws.pool(runs).samples.shape == (3, 4, 1)
    known = dataclasses.replace(runs[0], seed=2, potential="known")
    assert Draws.pool([*runs, known]).samples.shape == (3, 6, 1)


def test_averages_need_no_float64_on_the_device():
    """Apple's has none."""
    values = torch.randn(5, 4, 2)
    with WithoutFloat64():
        found = Draws(values).mean_and_standard_error()
    for one, other in zip(found, Draws(values).mean_and_standard_error(), strict=True):
        assert torch.equal(one, other)


def test_a_pool_took_as_long_as_all_runs_and_is_as_complete_as_the_least():
    first = Draws(torch.zeros(5, 4, 1), seed=3, seconds=2.0)
    other = dataclasses.replace(first, seed=4, seconds=3.5, complete=False)
    pooled = Draws.pool([first, other])
    assert pooled.seconds == 5.5 and not pooled.complete
