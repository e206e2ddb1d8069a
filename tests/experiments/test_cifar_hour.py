"""CIFAR-10 for an hour: five times the passes, the sampler cooled, and what larger
minibatches do to the heat of a pass.
"""

from dataclasses import replace

import pytest
import torch

from booklib.datasets import Data
from booklib.networks import multilayer_perceptron
from experiments import cifar, cifar_hour
from experiments.options import Options, Prepared
from experiments.run import Run


def test_the_settings_are_those_of_the_experiment_cifar_for_longer():
    train = Data(torch.zeros(50_000, 1), torch.zeros(50_000, dtype=torch.int64))
    shorter = cifar.settings(Prepared(train, train), small=False)
    [cooled], [falling] = cifar_hour.settings(
        Prepared(train, train), small=False
    ).values()
    [body], [before] = shorter["all layers"], shorter["all layers, falling rate"]
    assert cooled == replace(
        body,
        rounds=300,
        burn_in=150,
        cooled=cifar_hour.COOLED,
        method="all layers, cooled",
    )
    assert falling == replace(before, rounds=300, burn_in=150)
    assert (
        cooled.rate(299) == pytest.approx(1e-6 * cifar_hour.COOLED)
        and falling.rate(299) < 1e-4 * before.learning_rate
    )


@pytest.mark.parametrize(
    ("rate", "decay", "size"),
    [(1.0, 0.2, 10), (4.0, 0.2, 40), (2.0, 0.1, 40), (0.5, 0.4, 10)],
)
def test_the_heat_of_a_pass_hangs_on_one_number(rate, decay, size, generator):
    """With κ = (η/α)(N/n) held, or divided by four, the heat at one place is the same,
    or a fourth, whatever η, α and n.
    """
    train = Data(torch.rand(400, 5, generator=generator), torch.arange(400) % 3)
    first = {"learning_rate": 1e-5, "momentum_decay": 0.2, "batch_size": 10}
    heats = {}
    for name, changed in {
        "first": first,
        "second": {
            "learning_rate": rate * 1e-5,
            "momentum_decay": decay,
            "batch_size": size,
        },
    }.items():
        [plan] = cifar.settings(Prepared(train, train), small=False)["its posterior"]
        run = Run(
            replace(plan, **changed, rounds=1, burn_in=0, start="fan-in"),
            multilayer_perceptron([5, 3]),
            train,
            train,
        )
        heats[name] = [
            sum(cifar.heat(run_with_seed(run, seed)).values()) for seed in range(20)
        ]
    kappa = rate / decay / size / (1 / 0.2 / 10)
    ratio = torch.tensor(heats["second"]).mean() / torch.tensor(heats["first"]).mean()
    # Without replacement the variance has the factor 1 - n/N, 0.9 against 0.975; 600
    # looks at 15 weights leave two per cent to chance.
    assert float(ratio) == pytest.approx(
        kappa * (1 - size / 400) / (1 - 10 / 400), rel=0.12
    )


def run_with_seed(run, seed):
    run.plan = replace(run.plan, seed=seed)
    return run


@pytest.mark.slow
def test_small_runs_end_to_end(tmp_path, monkeypatch):
    settings, size = (
        cifar_hour.settings,
        {"rounds": 2, "burn_in": 1, "batch_size": 100, "record_every": 1},
    )
    monkeypatch.setattr(
        cifar_hour,
        "settings",
        lambda *given: {
            k: [replace(p, **size) for p in v] for k, v in settings(*given).items()
        },
    )
    options = Options(
        data=tmp_path / "nowhere", runs=tmp_path, small=True, seeds=1, progress=False
    )
    prepared = cifar_hour.prepare(options)
    prepared = prepared._replace(
        **{
            name: Data(*(x[::20] for x in getattr(prepared, name)))
            for name in ("train", "test")
        }
    )
    result = list(cifar_hour.run(options, prepared))[-1]
    assert list(result["methods"]) == ["all layers, cooled", "all layers, falling rate"]
    [run] = result["methods"]["all layers, cooled"]["runs"]
    assert (
        len(run["heat"]) == 4
        and min(run["heat"].values()) > 0
        and len(cifar_hour.summary(result)) == 3
    )
