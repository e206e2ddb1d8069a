"""Posterior fidelity: data, predictions, the reference, and a small run."""

import json
from dataclasses import replace

import pytest
import torch
from torch import Generator

from booklib.data import Data
from booklib.scores.fidelity import (
    bin_mixtures,
    error_floor,
    predictive_distance,
)
from experiments import fidelity
from experiments.fidelity import (
    Problem,
    gauss_newton,
    look_at,
    methods,
    reference,
)
from experiments.study import Options, Prepared
from sgmc.predictions import function_space_rhat


def options(folder, **more):
    return Options(folder, folder, progress=False, **more)


def line(folder, layers=(2, 1)):
    """A regression whose posterior is Gaussian, for the network has no hidden units."""
    generator = Generator().manual_seed(0)

    def data(examples):
        inputs = torch.randn(examples, 2, generator=generator)
        return Data(
            inputs,
            inputs @ torch.tensor([1.0, -0.5])
            + 0.7 * torch.randn(examples, generator=generator),
        )

    prepared = Prepared(data(40), data(15), folder=folder / "line", validation=data(10))
    return Problem(prepared, layers, 10, 12, num_samples=400, warm_up=100, num_steps=8)


def classes(folder):
    generator = Generator().manual_seed(0)

    def data(examples):
        targets = torch.randint(3, (examples,), generator=generator)
        return Data(
            torch.nn.functional.one_hot(targets, 4).float()
            + 0.3 * torch.randn(examples, 4, generator=generator),
            targets,
        )

    prepared = Prepared(
        data(40),
        data(15),
        folder=folder / "classes",
        validation=data(10),
        others={"noise": data(12)},
    )
    return Problem(
        prepared,
        (4, 3, 3),
        10,
        12,
        num_samples=60,
        warm_up=40,
        num_steps=10,
        largest_rhat=1.5,
    )


def test_scores_of_a_regression_are_of_the_mixture(tmp_path):
    problem, generator = line(tmp_path), Generator().manual_seed(1)
    outputs, targets = (
        torch.randn(6, 15, generator=generator),
        torch.randn(15, generator=generator),
    )
    mixture = torch.distributions.MixtureSameFamily(
        torch.distributions.Categorical(torch.ones(15, 6)),
        torch.distributions.Normal(outputs.T, fidelity.NOISE_VARIANCE**0.5),
    )
    found = problem.scores(outputs, targets)
    assert found["log_loss"] == pytest.approx(
        -float(mixture.log_prob(targets).mean()), abs=2e-6
    )
    assert found["error"] == pytest.approx(
        float((mixture.mean - targets).square().mean().sqrt()), abs=2e-6
    )


def test_a_reference_knows_a_posterior_that_is_known(tmp_path):
    """Of a linear model the predictive law is a normal one: within a floor of the
    reference's, which should be half of one from it.
    """
    problem = line(tmp_path)
    predictions, summary = reference(problem, options(tmp_path))
    inputs, targets = (values.double() for values in problem.prepared.train)
    design = torch.cat([inputs, torch.ones(40, 1).double()], 1)
    precision = design.T @ design / fidelity.NOISE_VARIANCE + torch.eye(3).double()
    mean = torch.linalg.solve(precision, design.T @ targets / fidelity.NOISE_VARIANCE)
    where = torch.cat(
        [problem.prepared.test.inputs.double(), torch.ones(15, 1).double()], 1
    )
    variance = (where @ precision.inverse() * where).sum(-1)
    exact = torch.cat(
        [
            bin_mixtures(
                (x @ mean)[None, None],
                float(fidelity.NOISE_VARIANCE + v),
                fidelity.EDGES,
            )
            for x, v in zip(where, variance, strict=True)
        ]
    )
    assert (
        predictive_distance(predictions.mean(0), exact)
        < summary["floor"]["total_variation"]
    )
    # 3,200 draws know it to three in a hundred
    assert summary["spread"] == pytest.approx(float(variance.mean().sqrt()), rel=0.1)
    assert (
        summary["rhat"]["largest"] < 1.01
        and summary["rhat"]["number"] == 15
        and len(summary["acceptance"]) == 8
    )
    distances = error_floor(predictions)[0]
    assert summary["floor"]["total_variation"] == pytest.approx(
        float(distances.mean()), abs=1e-7
    )
    assert summary["halves"]["total_variation"] == pytest.approx(
        distances.tolist(), abs=1e-7
    )
    json.dumps(summary, allow_nan=False)
    again, _ = reference(problem, options(tmp_path))  # from its file
    assert torch.equal(again, predictions)


@pytest.mark.parametrize("make", [line, classes])
def test_draws_are_looked_at_a_few_inputs_at_a_time(make, tmp_path):
    """Against the same in one go."""
    problem = make(tmp_path)
    # of three pieces
    posterior, inputs = (
        problem.posterior(),
        torch.cat([problem.prepared.train.inputs, problem.prepared.test.inputs]),
    )
    samples = 0.3 * torch.randn(
        9, 2, posterior.dim, generator=Generator().manual_seed(0)
    )
    averages, rhat, deviations, spread = look_at(problem, posterior, samples, inputs)
    values = torch.stack([posterior.predict(draw, inputs) for draw in samples])
    for chain in range(2):
        torch.testing.assert_close(averages[chain], problem.cells(values[:, chain]))
    torch.testing.assert_close(rhat, function_space_rhat(values), rtol=1e-4, atol=1e-4)
    singles = torch.stack([problem.cells(one[None]) for one in values.flatten(0, 1)])
    torch.testing.assert_close(deviations, singles.std(0), rtol=1e-4, atol=1e-7)
    assert spread == pytest.approx(
        float(values.flatten(0, 1).double().var(0).mean().sqrt()), rel=1e-5
    )


@pytest.mark.parametrize("make", [line, classes])
def test_the_curvature_of_a_network_without_hidden_units_is_the_hessian(make, tmp_path):
    problem = make(tmp_path)
    posterior = replace(
        problem, layers=(problem.layers[0], problem.layers[-1])
    ).posterior()
    position = torch.randn(posterior.dim, generator=Generator().manual_seed(0))
    hessian = torch.autograd.functional.hessian(
        lambda place: posterior.energy(place[None])[0], position
    )
    torch.testing.assert_close(
        gauss_newton(posterior, position), hessian.double(), rtol=1e-4, atol=1e-3
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the chains do not agree")  # they are few and short
def test_the_whole_experiment_on_small_problems(tmp_path, monkeypatch):
    chosen = ("SGHMC", "ensemble", "Laplace, all weights", "HMC, the same budget")
    everything = methods
    monkeypatch.setattr(
        fidelity,
        "methods",
        lambda problem: {
            name: (m, s[:1])
            for name, (m, s) in everything(problem).items()
            if name in chosen
        },
    )
    problems = {"line": line(tmp_path, (2, 3, 1)), "classes": classes(tmp_path)}
    problems["line"] = replace(problems["line"], largest_rhat=1.5)
    *_, result = fidelity.run(options(tmp_path, seeds=2), problems)
    json.dumps(result, allow_nan=False)
    assert list(result["problems"]) == ["line", "classes"]
    for content in result["problems"].values():
        assert tuple(content["methods"]) == chosen and all(
            len(method["runs"]) == 2 for method in content["methods"].values()
        )
        assert content["reference"]["rhat"]["largest"] < 1.5
