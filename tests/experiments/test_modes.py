"""The mixture of 25 Gaussians: schedules, starts, what is measured, what is stored, and
going on with earlier runs.
"""

import json
import math

import pytest
import torch

from booklib.runs.results import ExperimentError
from booklib.runs.run import DivergedError
from experiments import modes
from experiments.__main__ import main
from experiments.modes import (
    METHODS,
    Falling,
    Modes,
    cyclical,
    falling,
    fresh_cycles,
    measure,
    restarted,
    starts,
)
from experiments.study import Options
from sgmc.door.sampling import DivergenceError
from sgmc.targets import GaussianMixture
from tests.checks import z_bound

GRID = GaussianMixture().means


def generator_of(seed):
    return torch.Generator().manual_seed(seed)


def test_the_gradient_by_hand_is_that_of_the_energy():
    position = (
        16 * torch.rand(200, 2, generator=generator_of(0), dtype=torch.float64) - 8
    )
    mixture, plain = (kind(GRID.double()) for kind in (Modes, GaussianMixture))
    torch.testing.assert_close(
        mixture.gradient(position), plain.gradient(position), rtol=1e-9, atol=1e-9
    )


def by_hand(steps, rates, start, seed):
    """Follow θ ← θ − η(∇U + N(0, 1)) + N(0, 2η − η²), all noise together N(0, 2η):
    sgld.m of the authors.
    """
    generator, position, kept = generator_of(seed), start, []
    for step in range(steps):
        eta = rates(step)
        gradient = Modes().gradient(position) + torch.randn(
            start.shape, generator=generator
        )
        position = (
            position
            - eta * gradient
            + math.sqrt(2 * eta * (1 - eta / 2))
            * torch.randn(start.shape, generator=generator)
        )
        kept.append(position)
    return torch.stack(kept)


def test_sgld_is_the_authors_schedule():
    start = starts(range(1))
    rates = lambda step: 0.043 if step < 500 else 0.043 * (step + 1 - 500) ** -0.55
    samples = falling(start, 510, 3, rate=0.043)
    # A few steps: around a mode rounding errors shrink, between two they grow.
    torch.testing.assert_close(
        samples[:5], by_hand(5, rates, start, 3), rtol=1e-4, atol=1e-4
    )
    kernel = Falling(0.043)
    assert [
        kernel.step_size(step) for step in (0, 499, 500, 501, 49_999)
    ] == pytest.approx([rates(step) for step in (0, 499, 500, 501, 49_999)])
    assert kernel.step_size(500) == 0.043 and kernel.step_size(501) == pytest.approx(
        0.043 * 2**-0.55
    )


def test_csgld_is_the_schedule_of_the_paper_and_keeps_all_but_fifty_steps_of_a_cycle():
    start = starts(range(1))
    rates = lambda step: 0.035 * (1 + math.cos(math.pi * (step % 1_667) / 1_667))
    assert cyclical(start, 1_667, 3, rate=0.07, cycles=1).shape == (1_617, 5, 2)
    kernel, kept = modes.cycle(50_000, 0.07)
    assert (kernel.cycle_length, kept, kernel.num_draws) == (1_667, 1_617, 1_617)
    inner = [kernel._kernel_of(step) for step in (0, 50, 1_666)]
    assert [each.step_size for each in inner] == pytest.approx(
        [rates(step) for step in (0, 50, 1_666)]
    )
    assert [each.noise_estimate for each in inner] == pytest.approx(
        [rates(step) / 2 for step in (0, 50, 1_666)]
    )


def test_every_method_takes_the_steps_that_it_may():
    start = starts(range(1))
    for name, (method, choices) in METHODS.items():
        samples = method(start, 600, 0, **choices[0])
        assert samples.shape[1:] == (5, 2) and 100 <= len(samples) <= 600, name
        assert samples.isfinite().all()


def test_restarts_begin_where_the_chain_does_and_then_elsewhere():
    start = starts(range(2))
    again = modes._starts(start, 4, 0)
    assert (
        torch.equal(again.view(10, 4, 2)[:, 0], start)
        and len(again.unique(dim=0)) == 40
    )
    assert again.abs().max() <= 10 and again.abs().max() > 9
    ordered = torch.arange(40.0).view(1, 40, 1).expand(3, 40, 2)
    assert (
        modes._again(ordered, 4)[:, 1, 0].tolist()
        == [4.0] * 3 + [5.0] * 3 + [6.0] * 3 + [7.0] * 3
    )
    for method, settings in (
        (restarted, {"rate": 0.043}),
        (fresh_cycles, {"rate": 0.03, "cycles": 30, "exploration": 0.5}),
    ):
        samples = method(start, 3_000, 0, **settings)
        # Steps this small do not leave a mode, so that many modes are from many starts:
        # 30 of them.
        _, mode = torch.cdist(samples[:, 0], GRID).min(-1)
        assert len(mode.unique()) >= 8


def test_starts_belong_to_their_seed():
    assert torch.equal(starts(range(3))[5:], starts(range(1, 3)))
    every = starts(range(400))
    assert every.abs().max() <= 10
    z = every.mean(0) / (20 / 12**0.5) * len(every) ** 0.5
    assert z.abs().max() < z_bound(2)


def test_what_is_measured_of_exact_draws():
    number = 40_000
    found = measure(
        GaussianMixture().exact_samples(number, generator_of(1)).view(-1, 4, 2)
    )
    assert found["found"] == {"any": 25, "0.1 %": 25, "1 %": 25}
    z = (torch.tensor(found["mass"]) - 0.04) / (0.04 * 0.96 / number) ** 0.5
    assert z.abs().max() < z_bound(25) and sum(found["mass"]) == pytest.approx(
        1, abs=1e-4
    )
    # 2n squares of normal numbers: their mean has a relative standard error of 1/√n.
    assert abs(found["variance"] / 0.03 - 1) < z_bound(1) / number**0.5
    # the mean of ½Σ|share − 1/m|, and less than its spread
    for key, cells in (("modes_tv", 25), ("cells_tv", 100)):
        assert found[key] == pytest.approx(
            math.sqrt((cells - 1) / (2 * math.pi * number)), rel=0.5
        )


def test_what_is_measured_of_draws_by_hand():
    # 0.6 is 3.5 standard deviations
    inner, outer = GRID[:3], GRID[:3] + torch.tensor([0.6, 0.0])
    found = measure(torch.cat([inner.repeat(100, 1), outer])[:, None])
    assert found["found"] == {"any": 3, "0.1 %": 3, "1 %": 3}
    assert found["mass"] == [pytest.approx(1 / 3, abs=1e-5)] * 3 + [0.0] * 22
    assert found["modes_tv"] == pytest.approx(22 / 25, abs=1e-5)
    # too much in three innermost rings
    assert found["cells_tv"] == pytest.approx(3 * (100 / 303 - 1 / 100), abs=1e-5)
    assert found["variance"] == pytest.approx(3 * 0.36 / 303 / 2, abs=1e-6)
    rare = measure(
        torch.cat([GRID[:1].repeat(996, 1), GRID[1:2].repeat(3, 1), outer[:1]])[:, None]
    )
    assert rare["found"] == {"any": 2, "0.1 %": 2, "1 %": 1}
    assert measure(outer[:, None])["found"]["any"] == 0
    # 2.9 standard deviations
    assert measure((GRID[:3] + torch.tensor([0.0, 0.5]))[:, None])["found"]["any"] == 3


def test_the_rings_are_equally_likely():
    found = measure(GaussianMixture().exact_samples(100_000, generator_of(2))[:, None])
    wide = GRID + math.sqrt(0.035) * torch.randn(
        4_000, 25, 2, generator=generator_of(3)
    )
    # which sees a width that is 8 % too large
    assert measure(wide.flatten(0, 1)[:, None])["cells_tv"] > 3 * found["cells_tv"]


@pytest.fixture
def small(monkeypatch):
    kept = {name: METHODS[name] for name in ("SGLD", "cSGLD", "SGHMC")}
    monkeypatch.setattr(modes, "METHODS", kept)
    return kept


def options(folder, seeds=2):
    return Options(folder, folder, small=True, seeds=seeds, progress=False)


def test_what_is_stored(tmp_path, small):
    *_, result = modes.run(options(tmp_path), modes.prepare(options(tmp_path)))
    assert list(result["methods"]) == list(small)
    for name, content in result["methods"].items():
        assert [one["seed"] for one in content["runs"]] == [0, 1]
        assert all(
            sum(one[chains]["mass"]) == pytest.approx(1, abs=1e-3)
            for one in content["runs"]
            for chains in modes.CHAINS
        )
        assert len(content["tuning"]) == (2 if name == "SGHMC" else 0)
    tuning = result["methods"]["SGHMC"]["tuning"]
    assert (
        result["methods"]["SGHMC"]["settings"]
        == min(tuning, key=lambda row: row["cells_tv"])["settings"]
    )
    json.dumps(result, allow_nan=False)


def test_one_chain_and_four_are_chains_of_their_own(tmp_path, monkeypatch, small):
    seen = []
    monkeypatch.setattr(
        modes,
        "measure",
        lambda samples: seen.append(samples.clone()) or measure(samples),
    )
    runs = modes.all_seeds(falling, {"rate": 0.043}, 60, 2)["runs"]
    assert [each.shape[1] for each in seen] == [1, 4, 1, 4] and len(runs) == 2
    together = torch.cat(seen, 1)
    assert len(together[-1].unique(dim=0)) == 10


def test_what_is_finished_is_not_run_again(tmp_path, monkeypatch, small):
    *_, first = modes.run(options(tmp_path), modes.prepare(options(tmp_path)))
    monkeypatch.setattr(modes, "draw", None)
    *_, second = modes.run(options(tmp_path), modes.prepare(options(tmp_path)))
    assert first == second
    with pytest.raises(
        ExperimentError,
        match=(
            r"SGLD-2\.json is of other settings, .*'rate': 0.043.* and not "
            r".*'rate': 0.05.*: undo the change"
        ),
    ):
        small["SGLD"] = (small["SGLD"][0], modes.grid(rate=0.05))
        list(modes.run(options(tmp_path), modes.prepare(options(tmp_path))))
    (modes.prepare(options(tmp_path)) / "SGLD-2.json").write_text("{")
    with pytest.raises(
        ExperimentError,
        match=r"SGLD-2\.json is corrupt .*: delete it to have it made anew",
    ):
        list(modes.run(options(tmp_path), modes.prepare(options(tmp_path))))


def test_settings_that_diverge_are_not_chosen(tmp_path, monkeypatch, small):
    def sometimes(start, steps, seed, rate, decay):
        if rate == bad or bad is None:
            raise DivergenceError("away", None)
        return GRID[:5].expand(10, 5, 2).repeat(1, len(start) // 5, 1)

    bad = 0.02
    small["SGHMC"] = (sometimes, modes.grid(rate=(0.02, 0.04), decay=(0.1,)))
    *_, result = modes.run(options(tmp_path), modes.prepare(options(tmp_path)))
    assert result["methods"]["SGHMC"]["settings"]["rate"] == 0.04
    assert result["methods"]["SGHMC"]["tuning"][0] == {
        "settings": {"rate": 0.02, "decay": 0.1},
        "diverged": True,
    }
    bad = None
    elsewhere = tmp_path / "elsewhere"
    with pytest.raises(
        DivergedError,
        match="every setting of SGHMC left the finite numbers",
    ):
        list(modes.run(options(elsewhere), modes.prepare(options(elsewhere))))


def test_the_command_line_runs_the_small_version(tmp_path, small, capsys):
    assert main(["run", "modes", "--small", "--runs", str(tmp_path)]) == 0
    assert (
        tmp_path / "modes-small.json"
    ).exists() and "cSGLD" in capsys.readouterr().out
