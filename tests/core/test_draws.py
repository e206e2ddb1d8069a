"""Draws: averages, their standard errors, and the way to ArviZ and back."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.stats
import torch
from torch.distributions import Normal

from sgmc import sample
from sgmc.draws import Draws
from sgmc.kernels import HMC, NUTS, SGLD
from sgmc.models import NamedPosterior
from sgmc.posteriors import LogisticRegression
from sgmc.targets import Gaussian
from tests.checks import z_bound


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


def test_mean_of_a_function(draws):
    mean, error = draws.mean_and_standard_error(lambda samples: samples.pow(2).sum(-1))
    values = draws.samples.pow(2).sum(-1).double().numpy()
    assert mean.shape == () and float(mean) == pytest.approx(values.mean())
    assert float(error) == pytest.approx(scipy.stats.sem(values.mean(0)))


def test_standard_error_covers_the_truth_as_often_as_it_should(generator):
    """In 4,000 runs of 8 strongly autocorrelated chains; false alarms: 1 in 10,000."""
    values = torch.randn(60, 8, 4_000, generator=generator)
    for step in range(1, 60):  # AR(1), stationary from the start
        values[step] = 0.9 * values[step - 1] + math.sqrt(1 - 0.9**2) * values[step]
    mean, error = Draws(values).mean_and_standard_error()
    covered = (mean.abs() < scipy.stats.t.ppf(0.95, 7) * error).double().mean()
    assert abs(covered - 0.9) / math.sqrt(0.9 * 0.1 / 4_000) < z_bound(1)


def test_one_chain_has_no_spread():
    with pytest.raises(
        ValueError,
        match=r"one chain.*mcse",
    ):
        Draws(torch.zeros(5, 1, 2)).mean_and_standard_error()


def test_weighted_mean_is_that_of_numpy(draws):
    for chain in range(4):
        expected = np.average(
            draws.samples[:, chain],
            axis=0,
            weights=draws.statistics["step_size"][:, chain],
        )
        np.testing.assert_allclose(draws.weighted_mean()[chain], expected, rtol=1e-5)
    assert not torch.allclose(draws.weighted_mean(), draws.samples.mean(0))


def test_weights_may_be_another_statistic_and_draws_of_any_shape(draws):
    collected = Draws(draws.samples[..., 0], draws.statistics).weighted_mean(
        "num_gradients"
    )
    expected = np.average(
        draws.samples[..., 0], axis=0, weights=draws.statistics["num_gradients"]
    )
    np.testing.assert_allclose(collected, expected, rtol=1e-5)


def test_falling_steps_weigh_their_draws():
    run = sample(
        SGLD(lambda step: 0.1 / (1 + step)),
        Gaussian.standard(2),
        torch.ones(3, 2),
        num_samples=5,
        warm_up=2,
    )
    steps = 0.1 / (3 + torch.arange(5.0))
    torch.testing.assert_close(run.statistics["step_size"], steps[:, None].expand(5, 3))
    torch.testing.assert_close(
        run.weighted_mean(), (steps[:, None, None] * run.samples).sum(0) / steps.sum()
    )


def test_to_arviz_and_back():
    import arviz

    draws = sample(HMC(0.5, 3), Gaussian.standard(2), torch.zeros(4, 2), num_samples=50)
    data = draws.to_arviz("weights")
    assert data.posterior["weights"].dims[:2] == ("chain", "draw") and data.posterior[
        "weights"
    ].shape == (4, 50, 2)
    assert torch.equal(
        torch.from_numpy(data.posterior["weights"].values).transpose(0, 1),
        draws.samples,
    )
    assert set(data.sample_stats) == {"energy", "acceptance_rate", "num_gradients"}
    assert set(draws.statistics) == {"energy", "acceptance", "num_gradients"}
    assert data.posterior.attrs["kernel"] == draws.kernel
    for name, values in draws.statistics.items():
        name = {"acceptance": "acceptance_rate"}.get(name, name)
        assert torch.equal(torch.from_numpy(data.sample_stats[name].values).T, values)
    assert list(draws.to_arviz().posterior) == ["position"]
    assert float(arviz.rhat(data)["weights"].max()) < 1.5
    scalars = Draws(draws.samples[..., 0])
    assert scalars.to_arviz().posterior["position"].shape == (4, 50)


@pytest.fixture
def named():
    collect = lambda position: {
        "position": position,
        "radius": position.norm(dim=-1),
        "inside": position.norm(dim=-1) < 1,
    }
    return sample(
        SGLD(lambda step: 0.1 / (1 + step)),
        Gaussian.standard(2),
        torch.ones(3, 2),
        num_samples=6,
        collect=collect,
    )


def test_to_arviz_takes_every_tensor_that_was_collected_by_its_name(named):
    data = named.to_arviz()
    assert set(data.posterior) == {"position", "radius", "inside"}
    assert data.posterior["position"].dims[:2] == ("chain", "draw") and data.posterior[
        "position"
    ].shape == (3, 6, 2)
    for name, values in named.samples.items():
        assert torch.equal(
            torch.from_numpy(data.posterior[name].values).transpose(0, 1), values
        )
    assert (
        set(data.sample_stats)
        == set(named.statistics)
        == {"step_size", "num_gradients"}
    )
    for name, values in named.statistics.items():
        assert torch.equal(torch.from_numpy(data.sample_stats[name].values).T, values)


def test_averages_of_several_tensors_want_a_choice(named):
    mean, error = named.mean_and_standard_error(lambda samples: samples["inside"])
    averages = named.samples["inside"].double().numpy().mean(0)
    assert float(mean) == pytest.approx(averages.mean()) and float(
        error
    ) == pytest.approx(scipy.stats.sem(averages))
    weights = named.statistics["step_size"].numpy()
    for name in named.samples:
        weighted = named.weighted_mean(
            function=lambda samples, name=name: samples[name]
        )
        for chain in range(3):
            expected = np.average(
                named.samples[name][:, chain].double(),
                axis=0,
                weights=weights[:, chain],
            )
            np.testing.assert_allclose(weighted[chain], expected, rtol=1e-5)
    for average in (named.mean_and_standard_error, named.weighted_mean):
        with pytest.raises(
            ValueError,
            match=r"samples.*\['inside', 'position', 'radius'\]",
        ):
            average()


def test_statistics_may_have_further_axes():
    statistics = {"hyperparameters": torch.arange(48.0).reshape(6, 4, 2)}
    data = Draws(torch.zeros(6, 4, 3), statistics).to_arviz()
    assert torch.equal(
        torch.from_numpy(data.sample_stats["hyperparameters"].values).transpose(0, 1),
        statistics["hyperparameters"],
    )


def test_draws_know_their_run_and_do_not_change():
    draws = sample(
        HMC(0.5, 3),
        Gaussian.standard(2),
        torch.zeros(4, 2),
        num_samples=5,
        warm_up=3,
        thinning=2,
        seed=9,
    )
    assert (draws.seed, draws.warm_up, draws.thinning, draws.complete) == (
        9,
        3,
        2,
        True,
    )
    assert (
        draws.kernel.startswith("HMC(step_size=0.5, num_steps=3") and draws.seconds > 0
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        draws.seed = 1


def test_weights_that_the_run_does_not_have_are_refused():
    draws = sample(HMC(0.5, 3), Gaussian.standard(2), torch.zeros(2, 2), num_samples=3)
    with pytest.raises(
        ValueError,
        match=r"weights.*'acceptance'.*'step_size",
    ):
        draws.weighted_mean()


@pytest.mark.parametrize(
    "samples",
    [
        [1.0],
        np.zeros((2, 3)),
        torch.zeros(3),
        {"first": torch.zeros(2, 3), "second": 1.0},
    ],
    ids=repr,
)
def test_what_are_no_draws_is_refused(samples):
    with pytest.raises(
        ValueError,
        match=r"(samples|second)\b.*\(num_samples, chains, \.\.\.\)",
    ):
        Draws(samples)


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
        (lambda samples: 1.0, "not 1.0"),
    ],
)
def test_a_function_of_the_draws_keeps_their_axes(function, message):
    """Otherwise it would be averaged over what are no chains."""
    draws = Draws(torch.zeros(5, 4, 2), {"weight": torch.ones(5, 4)})
    for average in (
        draws.mean_and_standard_error,
        lambda function: draws.weighted_mean("weight", function),
    ):
        with pytest.raises(ValueError, match=message):
            average(function)


def test_other_draws_that_cannot_be_averaged():
    draws = Draws(torch.zeros(5, 4, 2), {"hyperparameters": torch.ones(5, 4, 2)})
    with pytest.raises(
        ValueError,
        match=r"weights.*'hyperparameters'.*\(5, 4, 2\)",
    ):
        draws.weighted_mean("hyperparameters")
    for wrong in (torch.zeros(5, 4), torch.tensor([1.0, -1, 1, 1, 1]).expand(4, 5).T):
        with pytest.raises(ValueError, match=r"weights 'weight' .* at least 0"):
            Draws(torch.zeros(5, 4, 2), {"weight": wrong}).weighted_mean("weight")
    with pytest.raises(ValueError, match=r"runs.*a list$"):
        Draws.pool([])
    with pytest.raises(ValueError, match="no draws"):
        Draws(torch.zeros(0, 4, 2)).mean_and_standard_error()
    with pytest.raises(
        ValueError,
        match=r"\bname.*list",
    ):
        draws.to_arviz(["position"])


def test_arviz_gets_the_likelihood_of_every_example_and_the_names_of_the_parameters():
    """And says that the model that made the data is the better one."""
    import arviz

    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(200, 1, generator=generator)
    targets = 2 * inputs[:, 0] + 0.5 * torch.randn(200, generator=generator)

    def fit(inputs):
        posterior = NamedPosterior(
            {"slope": ()},
            lambda p: Normal(0.0, 10.0).log_prob(p["slope"]),
            lambda p, x, y: Normal(p["slope"] * x[:, 0], 0.5).log_prob(y),
            (inputs, targets),
        )
        draws = sample(NUTS(0.02), posterior, torch.ones(4, 1), 200, warm_up=50)
        return draws, posterior

    models = {}
    for name, x in {"right": inputs, "wrong": inputs.square()}.items():
        draws, posterior = fit(x)
        models[name] = draws.to_arviz(posterior=posterior)
        assert list(models[name].posterior) == ["slope"]
        expected = posterior.log_likelihoods(draws.samples[7], posterior.gather(None))
        found = models[name].log_likelihood["log_likelihood"].values[:, 7]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert "diverging" in models[name].sample_stats
    assert arviz.compare(models).index[0] == "right"


def test_arviz_gets_no_likelihood_of_a_single_example():
    """It would take it for one observation, and compare models by that."""
    posterior = LogisticRegression(torch.ones(1, 2), torch.ones(1), 1.0)
    draws = Draws(torch.zeros(10, 2, 2), {})
    with pytest.warns(UserWarning, match="one example.*subsample_size"):
        data = draws.to_arviz(posterior=posterior)
    assert "log_likelihood" not in data.groups()


def test_arviz_gets_predictions_by_name():
    draws = Draws(torch.arange(24.0).reshape(4, 3, 2))
    functions = {"total": lambda x: x.sum(-1), "each": lambda x: x[:, :, None] + 1}
    data = draws.to_arviz(predictive=functions, dims={"each": ["feature", "one"]})
    assert list(data.groups()) == ["posterior", "posterior_predictive"]
    found = data.posterior_predictive
    assert found["each"].dims == ("chain", "draw", "feature", "one")
    for name, expected in (
        ("total", draws.samples.sum(-1)),
        ("each", draws.samples[..., None] + 1),
    ):
        values = torch.from_numpy(found[name].values)
        assert torch.equal(values.transpose(0, 1), expected)
    with pytest.raises(ValueError, match=r"predictive.*\[1\]|predictive.*a list"):
        draws.to_arviz(predictive=[1])


# Files and several runs


def test_draws_come_back_from_their_file_as_they_were(tmp_path, draws, named):
    for kept in (draws, named, dataclasses.replace(draws, seed=(1, 2))):
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


@pytest.mark.parametrize("content", [b"", b"no draws", {"samples": 3}, [1.0]])
def test_a_file_without_draws_is_refused(content, tmp_path):
    path = tmp_path / "other.pt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)
    with pytest.raises(ValueError, match=r"path .*other\.pt holds no draws"):
        Draws.load(path)
    with pytest.raises(FileNotFoundError):
        Draws.load(tmp_path / "none.pt")


def test_a_file_that_holds_code_is_not_run(tmp_path):
    class Harmful:
        def __reduce__(self):
            return (pytest.fail, ("code of the file was run",))

    torch.save({"samples": Harmful()}, tmp_path / "draws.pt")
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
        ({"seed": 4, "kernel": "HMC(0.1)"}, r"runs differ in kernel: SGLD.*HMC"),
        ({"seed": 4, "thinning": 2}, "runs differ in thinning: 1 and 2"),
        ({"seed": 4, "samples": torch.zeros(6, 4, 1)}, "number of draws: 5 and 6"),
        ({"seed": 4, "samples": {"a": torch.zeros(5, 4, 1)}}, "names of their samples"),
    ],
)
def test_runs_that_cannot_be_pooled(change, message):
    first = Draws(torch.zeros(5, 4, 1), kernel="SGLD(0.1)", seed=3)
    with pytest.raises(ValueError, match=message):
        Draws.pool([first, dataclasses.replace(first, **change)])
