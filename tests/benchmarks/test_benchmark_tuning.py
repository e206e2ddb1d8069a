"""The benchmark of the default's step and friction: its grid, its scores, a small run,
and what it stored.
"""

import sys

import pytest
import torch

from benchmarks import tuning
from benchmarks.tuning import (
    FORMS,
    FRICTIONS,
    MODELS,
    PER_DRAW,
    STEPS,
    best_by_hand,
    noise_variance,
    setting,
)
from booklib.runs.results import RESULTS, read_result
from sgmc.targets import Gaussian, NoisyGradient
from sgmc.tuning import default_kernel, tune

DOUBLE = torch.float64


def gaussian(generator):
    directions = torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=DOUBLE)).Q
    target = Gaussian(
        directions * torch.tensor([1.0, 4.0, 9.0], dtype=DOUBLE) @ directions.T
    )
    return NoisyGradient(target, 30.0), default_kernel(
        NoisyGradient(target, 30.0), target.mean[None]
    )


def test_one_times_the_default_is_the_default(generator):
    """V, and with it every matched estimate of the grid, comes from the default's own
    estimate.
    """
    _, default = gaussian(generator)
    torch.testing.assert_close(
        noise_variance(default), 30 * torch.eye(3, dtype=DOUBLE), rtol=1e-8, atol=1e-8
    )
    kernel = setting(default, "matched", 1.0, 1.0)
    for name in ("step_size", "friction", "noise_estimate", "mass"):
        torch.testing.assert_close(
            torch.as_tensor(getattr(kernel, name)),
            torch.as_tensor(getattr(default, name)),
        )


def test_where_the_noise_exceeds_the_friction_there_is_no_matched_setting_and_without_estimate_there_is(
    generator,
):
    """At the default half of the friction is taken, so twice its step, or half its
    friction, leaves nothing.
    """
    _, default = gaussian(generator)
    assert (
        setting(default, "matched", 2.0, 1.0) is None
        and setting(default, "matched", 1.0, 0.5) is None
    )
    assert setting(default, "no estimate", 2.0, 1.0).noise_estimate == 0.0
    plain = setting(default, "one mass, no estimate", 1.0, 2.0)
    assert (
        plain.friction
        == 4 * plain.mass
        == pytest.approx(4 * float(default.mass.diagonal().mean()))
    )


def row(error, speed, outcome="ran"):
    return {"outcome": outcome} | (
        {"error": error, "speed": speed} if outcome == "ran" else {}
    )


def test_the_best_by_hand_is_the_fastest_that_is_right():
    """To a tenth, or to the default's own error; what diverged has no error."""
    found = {
        "default": row(0.01, 3.0),
        "forms": {
            "a": [row(0.01, 3.0), row(0.09, 4.0), row(0.2, 9.0)],
            "b": [row(0, 0, "diverged")],
        },
    }
    assert (
        best_by_hand(found, ("a", "b"), "speed")["speed"] == 4.0
        and best_by_hand(found, ("b",), "speed") is None
    )
    found["default"]["error"] = 0.3
    assert best_by_hand(found, ("a",), "speed")["speed"] == 9.0


@pytest.mark.slow
def test_a_small_run(monkeypatch, tmp_path, capsys):
    """In it too the default is the middle of the grid, and gets the gradients of any
    other setting.
    """
    monkeypatch.setattr(tuning, "RESULTS", tmp_path)
    monkeypatch.setattr(
        tuning,
        "MODELS",
        {
            name: MODELS[name]
            for name in ("logistic regression", "matrix factorisation")
        },
    )
    monkeypatch.setattr(tuning, "STEPS", (1.0, 2.0))
    monkeypatch.setattr(tuning, "FRICTIONS", (1.0,))
    monkeypatch.setattr(tuning, "AGAIN", 1)
    monkeypatch.setattr(sys, "argv", ["tuning", "--chains", "1", "--draws", "4"])
    tuning.main()
    for found in read_result(tmp_path / "tuning.json")["models"].values():
        outcomes = {
            form: [each["outcome"] for each in rows]
            for form, rows in found["forms"].items()
        }
        assert (
            outcomes["matched"] == ["ran", "no estimate"]
            and outcomes["no estimate"][0] == "ran"
        )
        assert (
            found["default"]["error"] >= 0
            and found["default"]["step"] == found["default"]["friction"] == 1
        )
        assert found["again"]["default"]["outcome"] == "ran" and {*found["again"]} == {
            "default",
            *FORMS,
        }
    assert "default over best" in capsys.readouterr().out


@pytest.fixture(scope="module")
def stored():
    return read_result(RESULTS / "tuning.json")


def test_the_stored_result_is_of_this_grid(stored):
    assert [*stored["models"]] == [*MODELS]
    grid = [(step, friction) for step in STEPS for friction in FRICTIONS]
    for found in stored["models"].values():
        assert [*found["forms"]] == [*FORMS]
        for rows in found["forms"].values():
            assert [(each["step"], each["friction"]) for each in rows] == grid
        middle = next(
            each
            for each in found["forms"]["matched"]
            if each["step"] == each["friction"] == 1
        )
        # a quarter of the same draws
        assert middle["width"] == pytest.approx(found["default"]["width"], rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_stored_result_is_of_these_models_and_this_default(stored, name):
    """The step that the code chooses today is about that of the stored run: draws of
    chaotic chains differ between processors.
    """
    found, settings = stored["models"][name], stored["settings"]
    model = MODELS[name](
        torch.Generator().manual_seed(settings["seed"]), settings["chains"]
    )
    default, _ = tune(model.noisy, model.positions, seed=settings["seed"])
    assert default.step_size == pytest.approx(
        found["step_size"], rel=0.3 if name == "digits network" else 0.1
    )
    assert found["dim"] == model.start.shape[1] and found["chains"] == len(model.start)
    draws = PER_DRAW * round(model.share * settings["draws"])
    assert found["gradients"] == pytest.approx(
        draws * default.num_steps / PER_DRAW, rel=0.35
    )
