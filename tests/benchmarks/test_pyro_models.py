"""The benchmark of Pyro programs: its programs with and without minibatches, a small
run, and what it stored.
"""

import sys

import pytest
import torch

from benchmarks import pyro_models
from benchmarks.pyro_models import PROGRAMS, largest_z
from booklib.runs.results import RESULTS, read_result
from sgmc.models.pyro_model import PyroPosterior


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    "name",
    [name for name, program in PROGRAMS.items() if program.batch_size is not None],
)
def test_a_pass_of_minibatches_has_the_gradient_on_average(name, generator):
    program = PROGRAMS[name]
    posterior = PyroPosterior(program.program, program.batch_size)
    passes = torch.randperm(posterior.num_examples, generator=generator).view(
        -1, program.batch_size
    )
    position = (
        posterior.initial_position(1, generator, 1.0)
        .expand(len(passes), -1)
        .contiguous()
    )
    gradients = posterior.gradient_given(position, passes)
    torch.testing.assert_close(
        gradients.mean(0), posterior.gradient(position[:1])[0], rtol=1e-10, atol=1e-10
    )


def test_centred_and_non_centred_are_one_model(generator):
    """θ = mean + spread·deviation has the Jacobian spread⁸."""
    centred, non_centred = (
        PyroPosterior(PROGRAMS[f"eight schools, {form}"].program)
        for form in ("centred", "non-centred")
    )
    position = non_centred.initial_position(5, generator)
    named = non_centred.named(position)
    other = centred.position(
        {name: named[name] for name in ("mean", "spread", "effect")}
    )
    torch.testing.assert_close(
        centred.energy(other), non_centred.energy(position) + 8 * named["spread"].log()
    )


NAME = "eight schools, non-centred"


@pytest.mark.slow
def test_a_small_run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(pyro_models, "RESULTS", tmp_path)
    monkeypatch.setattr(pyro_models, "PROGRAMS", {NAME: PROGRAMS[NAME]})
    monkeypatch.setattr(pyro_models, "STEP", 0.02)  # a mass from so few steps is none
    monkeypatch.setattr(
        sys,
        "argv",
        [
            "pyro_models",
            "--chains",
            "2",
            "--pyro-chains",
            "2",
            "--warm-up",
            "20",
            "--draws",
            "4",
        ],
    )
    pyro_models.main()
    found = read_result(tmp_path / "pyro_models.json")["programs"][NAME]
    assert [*found["samplers"]] == [
        "Pyro's NUTS",
        "HMC",
        "NUTS",
        "SGHMC",
        "SGLD",
    ] and found["dim"] == 10
    assert (
        len(found["samplers"]["SGLD"]["mean"]) == 10
        and len(capsys.readouterr().out.splitlines()) == 5
    )


def test_the_stored_result_is_of_these_programs():
    stored = read_result(RESULTS / "pyro_models.json")["programs"]
    assert [*stored] == [*PROGRAMS]
    for name in stored:
        samplers = stored[name]["samplers"]
        assert (
            largest_z(samplers["NUTS"], samplers["NUTS"])
            == (0, 0)
            < largest_z(samplers["NUTS"], samplers["Pyro's NUTS"])
        )
