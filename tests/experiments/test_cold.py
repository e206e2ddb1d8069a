"""Cold posteriors: what each arm samples from, and that the small version runs."""

import math

import pytest
import torch
from torch.nn import functional

from experiments import cold
from experiments.cold import ARMS, Arm, Weighted, moved, posterior_of, shown
from experiments.study import Options
from sgmc.posteriors import Softmax

GENERATOR = torch.Generator().manual_seed(0)
TRAIN = torch.rand(40, 784, generator=GENERATOR), torch.arange(40) % 10


@pytest.fixture(autouse=True)
def of_forty_examples(monkeypatch):
    monkeypatch.setattr(cold, "BATCH_SIZE", 20)


def energy(posterior):
    start = posterior.initial_position(2, torch.Generator().manual_seed(1)) + 0.1
    return start, posterior.energy(start)


def test_a_weight_multiplies_likelihood_and_slope():
    outputs = torch.randn(3, 5, 10, generator=GENERATOR)
    targets = torch.arange(5)
    for name in ("log_density", "slope"):
        plain = getattr(Softmax(), name)(outputs, targets)
        twice = getattr(Weighted(2.0), name)(outputs, targets)
        torch.testing.assert_close(twice, 2 * plain)


def test_a_copy_is_the_image_moved_by_two_pixels():
    images = TRAIN[0][:2].view(2, 28, 28)
    copies = moved(TRAIN[0][:2]).view(2, 5, 28, 28)
    assert torch.equal(copies[:, 0], images)
    assert torch.equal(copies[:, 1, 2:], images[:, :-2])
    assert torch.equal(copies[:, 4, :, :-2], images[:, :, 2:])


def test_a_tempered_likelihood_keeps_its_prior():
    """U/T of the arm is the tempered log likelihood and the whole prior."""
    temperature = 0.1
    posterior = posterior_of(Arm(tempered="likelihood"), TRAIN, temperature)
    position, found = energy(posterior)
    base = posterior_of(Arm(), TRAIN, 1.0)
    prior = position.square().sum(-1) / 2
    expected = (base.energy(position) - prior) / temperature + prior
    torch.testing.assert_close(found / temperature, expected, rtol=1e-4, atol=1e-2)


def test_a_weighted_energy_is_the_cold_one_at_temperature_one():
    """As long HMC samples it."""
    position, found = energy(posterior_of(Arm(), TRAIN, 0.1, weight=10.0))
    base = posterior_of(Arm(), TRAIN, 1.0).energy(position)
    torch.testing.assert_close(found, 10 * base, rtol=1e-4, atol=1e-2)


def test_averaged_log_likelihoods_count_an_image_once():
    position, found = energy(posterior_of(Arm(copies=True), TRAIN, 1.0))
    base = posterior_of(Arm(), TRAIN, 1.0)
    prior = position.square().sum(-1) / 2
    several = [
        posterior_of(Arm(), (copy, TRAIN[1]), 1.0).energy(position) - prior
        for copy in moved(TRAIN[0]).unbind(1)
    ]
    expected = torch.stack(several).mean(0) + prior
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-2)
    assert not torch.allclose(found, base.energy(position), rtol=1e-4)


def test_a_fifth_of_the_labels_are_drawn_anew():
    inputs = torch.zeros(4_000, 784)
    targets = torch.arange(4_000) % 10
    posterior = posterior_of(Arm(flipped=0.2), (inputs, targets), 1.0)
    wrong = (posterior.data[1] != targets).float().mean()
    assert abs(wrong - 0.18) < 4 * math.sqrt(0.18 * 0.82 / 4_000)


@pytest.mark.parametrize(
    ("name", "dim"),
    [("base", 1_210), ("larger network", 10_360), ("convolutions", 2_970)],
)
def test_a_network_has_the_weights_that_the_page_says(name, dim):
    posterior = posterior_of(ARMS[name], TRAIN, 1.0)
    assert posterior.dim == dim
    assert energy(posterior)[1].isfinite().all()


def test_a_filter_is_a_convolution():
    """The weights of all places are shared, as PyTorch's convolution has them."""
    arm = ARMS["convolutions"]
    network, inputs = cold.network_of(arm), shown(TRAIN[0], arm)
    filters = network[1].weight.view(8, 1, 3, 3)
    images = functional.avg_pool2d(TRAIN[0].view(-1, 1, 28, 28), 2)
    expected = functional.conv2d(images, filters, network[1].bias, stride=2)
    found = network[1](network[0](inputs)).mT
    torch.testing.assert_close(found, expected.flatten(2))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:½εV̂ exceeded")
def test_the_small_version_runs_and_takes_the_step_size_of_its_network(
    tmp_path, monkeypatch
):
    few = {name: ARMS[name] for name in ("base", "prior variance 10")}
    monkeypatch.setattr(cold, "ARMS", few)
    options = Options(tmp_path / "no", tmp_path, small=True, seeds=1, progress=False)
    [*_, result] = cold.run(options, cold.prepare(options))
    for temperature in ("1", "0.01"):
        [base], [arm] = (
            result["methods"][f"{name}, T = {temperature}"]["runs"] for name in few
        )
        rates = [tried["learning_rate"] for tried in base["tries"]]
        assert rates == [cold.RATE / 4**k for k in range(len(rates))]
        assert [tried["learning_rate"] for tried in arm["tries"]] == rates[-1:]
        assert "exact" in base
        assert "exact" not in arm
