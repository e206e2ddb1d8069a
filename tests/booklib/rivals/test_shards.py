"""Parts of a posterior: the product of their densities is the posterior, and each is a
posterior like any other.
"""

import pickle

import pytest
import torch
from torch import Generator, nn

from booklib.rivals.shards import Shard, shards
from sgmc.models import NamedPosterior, Posterior, control_variates
from sgmc.posteriors import LinearRegression, LogisticRegression, NetworkPosterior

DOUBLE = torch.float64


def make(kind, batch_size=None):
    generator = Generator().manual_seed(0)
    x = torch.randn(24, 3, generator=generator, dtype=DOUBLE)
    y = x.sum(-1) + torch.randn(24, generator=generator, dtype=DOUBLE)
    labels = (y > 0).to(DOUBLE)
    if kind == "linear":
        return LinearRegression(x, y, 0.7, 2.0, batch_size)
    if kind == "logistic":
        return LogisticRegression(x, labels, 2.0, batch_size)
    # a prior of its own for each tensor, and its own way to the gradient
    if kind == "network":
        network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
        variances = {
            name: 0.5 + i for i, (name, _) in enumerate(network.named_parameters())
        }
        return NetworkPosterior(
            network, x, labels.long(), prior_variance=variances, batch_size=batch_size
        )
    if kind == "functions":
        return Posterior(
            lambda theta: -theta.abs().add(1).log().sum(-1),
            lambda theta, x, y: -0.5 * (y - (x * theta[:, None]).sum(-1)).square(),
            (x, y),
            3,
            batch_size,
        )
    return NamedPosterior(
        {"slope": (3,), "scale": ()},
        lambda p: -0.5 * p["slope"].square().sum() - p["scale"],
        lambda p, x, y: (
            -0.5 * ((y - x @ p["slope"]) / p["scale"]).square() - p["scale"].log()
        ),
        (x, y),
        {"scale": torch.distributions.constraints.positive},
        batch_size,
    )


KINDS = ["linear", "logistic", "network", "functions", "named"]


def positions(posterior):
    return 0.3 * torch.randn(
        5, posterior.dim, generator=Generator().manual_seed(1), dtype=DOUBLE
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [1, 2, 5])
def test_the_energies_and_gradients_of_the_parts_add_up(kind, number):
    """Only up to rounding: the prior would be off by a factor of J if it were not
    shared.
    """
    posterior = make(kind)
    theta, parts = positions(posterior), shards(posterior, number)
    torch.testing.assert_close(
        sum(part.energy(theta) for part in parts), posterior.energy(theta)
    )
    torch.testing.assert_close(
        sum(part.gradient(theta) for part in parts), posterior.gradient(theta)
    )
    together = [part.energy_and_gradient(theta) for part in parts]
    torch.testing.assert_close(
        sum(energy for energy, _ in together), posterior.energy(theta)
    )
    torch.testing.assert_close(
        sum(gradient for _, gradient in together), posterior.gradient(theta)
    )
    priors = sum(part.log_prior(theta) for part in parts)
    torch.testing.assert_close(priors, posterior.log_prior(theta))


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_that_of_the_energy(kind):
    """For each part by itself, and for a minibatch of it too."""
    part = shards(make(kind, batch_size=4), 2)[1]
    theta, indices = (
        positions(part).requires_grad_(),
        torch.randint(12, (5, 4), generator=Generator().manual_seed(2)),
    )
    for energy, gradient in (
        (part.energy(theta), part.gradient(theta.detach())),
        (
            part.energy_given(theta, indices),
            part.gradient_given(theta.detach(), indices),
        ),
    ):
        torch.testing.assert_close(
            torch.autograd.grad(energy.sum(), theta)[0], gradient
        )


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_over_all_minibatches_is_the_gradient_of_the_part(kind):
    """Each example once, one at a time: N/n is that of the shard, not that of the
    whole.
    """
    part = shards(make(kind, batch_size=1), 4)[2]
    theta = positions(part)
    each = [part.gradient_given(theta, torch.full((5, 1), i)) for i in range(6)]
    torch.testing.assert_close(torch.stack(each).mean(0), part.gradient(theta))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", ["scalar", "diagonal", "full"])
def test_the_noise_of_the_gradients_is_that_of_the_examples(kind, noise):
    """The prior has no noise: the variance does not know J, and the gradient beside it
    is the same one.
    """
    posterior = make(kind, batch_size=4)
    part = Shard(posterior, torch.arange(12), num_shards=2)
    of_all_the_prior = Shard(posterior, torch.arange(12), num_shards=1)
    theta, indices = (
        positions(part),
        torch.stack([torch.arange(4) + i for i in range(5)]),
    )
    gradient, variance = part.gradient_and_variance_given(theta, indices, noise)
    torch.testing.assert_close(gradient, part.gradient_given(theta, indices))
    torch.testing.assert_close(
        variance, of_all_the_prior.gradient_and_variance_given(theta, indices, noise)[1]
    )


def test_every_example_is_in_one_shard_and_the_posterior_stays_as_it_was():
    posterior = make("linear")
    before = [tensor.clone() for tensor in posterior.data]
    parts = shards(posterior, 5, seed=3)
    assert sorted(part.num_examples for part in parts) == [4, 5, 5, 5, 5]
    rows = torch.cat([part.data[1] for part in parts])
    assert torch.equal(
        rows.sort().values, posterior.data[1].sort().values
    ) and not torch.equal(rows, posterior.data[1])
    assert posterior.num_examples == 24 and all(
        torch.equal(old, new) for old, new in zip(before, posterior.data, strict=True)
    )
    assert torch.equal(
        torch.cat([part.data[1] for part in shards(posterior, 5, seed=3)]), rows
    )


def test_a_shard_carries_its_own_examples_alone():
    """What is sent to a machine is a J-th of the data, not all of them with a mark on
    some.
    """
    whole = LogisticRegression(torch.zeros(80_000, 10), torch.zeros(80_000))
    size, part = len(pickle.dumps(whole)), len(pickle.dumps(shards(whole, 8)[3]))
    assert size / 8 < part < size / 8 + 10_000


class Counting(LogisticRegression):
    """A model whose prior depends on how many examples there are, as a unit-information
    prior does.
    """

    def log_prior(self, position):
        return -position.square().sum(-1) / self.num_examples


def test_a_model_that_asks_for_the_number_of_its_examples_gets_that_of_the_shard():
    posterior = Counting(
        torch.ones(24, 3, dtype=DOUBLE), torch.ones(24, dtype=DOUBLE), 1.0
    )
    theta = torch.ones(1, 3, dtype=DOUBLE)
    assert torch.equal(
        shards(posterior, 2)[0].log_prior(theta),
        torch.tensor([-3 / 12 / 2], dtype=DOUBLE),
    )


def test_control_variates_are_written_for_a_shard():
    """Of the shards of a posterior with control variates there are none."""
    posterior = make("linear")
    theta, reference = positions(posterior), torch.zeros(3, dtype=DOUBLE)
    parts = [control_variates(part, reference) for part in shards(posterior, 2)]
    energies = sum(part.energy(theta) for part in parts)
    torch.testing.assert_close(energies, posterior.energy(theta))


def test_refusals():
    posterior = make("linear", batch_size=10)
    with pytest.raises(ValueError, match=r"24 examples.*shards"):
        shards(posterior, 25)
    with pytest.raises(ValueError, match=r"batch_size.*\b8\b"):
        shards(posterior, 3)
    with pytest.raises(ValueError, match=r"indices.*int64.*\b0\b.*\b23\b"):
        Shard(posterior, torch.tensor([3, 24]), 2)
    calm = control_variates(posterior, torch.zeros(3, dtype=DOUBLE))
    with pytest.raises(ValueError, match=r"posterior.*log_prior.*control_variates"):
        shards(calm, 2)
