"""Targets: gradients against automatic differentiation, densities against known values,
noise with the variance asked for.
"""

import math

import pytest
import torch

from sgmc.potentials import Potential
from sgmc.targets import DoubleWell, Gaussian, GaussianMixture, NoisyGradient
from tests.checks import assert_covariance, z_bound
from tests.fakes import Banana, Funnel

TARGETS = {
    "gaussian": Gaussian(
        torch.tensor([[2.0, 0.4], [0.4, 1.0]], dtype=torch.float64),
        torch.tensor([1.0, -1.0], dtype=torch.float64),
    ),
    "double well": DoubleWell(2),
    "banana": Banana(),
    "mixture": GaussianMixture(variance=0.5),
    "funnel": Funnel(2),
}


@pytest.mark.parametrize("name", TARGETS)
def test_gradient_is_that_of_the_energy(name, generator):
    target = TARGETS[name]
    position = torch.randn(6, 2, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(
        target.gradient(position), Potential.gradient(target, position)
    )
    width, numeric = 1e-6, []
    for axis in torch.eye(2, dtype=torch.float64):
        numeric.append(
            (
                target.energy(position + width * axis)
                - target.energy(position - width * axis)
            )
            / (2 * width)
        )
    torch.testing.assert_close(
        target.gradient(position), torch.stack(numeric, -1), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("name", TARGETS)
def test_energy_and_gradient_together_are_those_apart(name, generator):
    position = torch.randn(6, 2, generator=generator, dtype=torch.float64)
    for target in (TARGETS[name], NoisyGradient(TARGETS[name], 1.0)):
        energy, gradient = target.energy_and_gradient(position)
        torch.testing.assert_close(energy, target.energy(position))
        torch.testing.assert_close(gradient, target.gradient(position))


@pytest.mark.parametrize("name", TARGETS)
def test_chains_do_not_interact_and_dtype_is_kept(name, generator):
    target = TARGETS[name]
    position = torch.randn(6, 2, generator=generator)
    if name == "gaussian":
        position = position.double()  # its covariance is
    together = target.gradient(position)
    assert (
        together.dtype == position.dtype
        and together.shape == (6, 2)
        and target.energy(position).shape == (6,)
    )
    apart = torch.cat([target.gradient(position[i : i + 1]) for i in range(6)])
    torch.testing.assert_close(together, apart)


def test_gaussian_energy_is_minus_its_log_density():
    target = TARGETS["gaussian"]
    position = torch.tensor([[0.3, 0.2], [1.0, -1.0]], dtype=torch.float64)
    density = torch.distributions.MultivariateNormal(
        target.mean, target.covariance
    ).log_prob(position)
    torch.testing.assert_close(
        target.energy(position) - target.energy(position)[1], -(density - density[1])
    )


@pytest.mark.parametrize(
    "name", [name for name in TARGETS if hasattr(TARGETS[name], "exact_samples")]
)
def test_exact_draws_are_of_the_law_that_the_energy_states(name, generator):
    """By parts, E[∂U/∂θⱼ] = 0 and E[θᵢ ∂U/∂θⱼ] = 1 where i = j and 0 elsewhere;
    z-tests, false alarms 1 in 10,000.
    """
    position = TARGETS[name].exact_samples(20_000, generator).double()
    force = TARGETS[name].gradient(position)
    products = torch.cat(
        [force, (position[:, :, None] * force[:, None] - torch.eye(2)).flatten(1)], -1
    )
    z = products.mean(0) / (products.std(0) / len(products) ** 0.5)
    assert z.abs().max() < z_bound(len(z)), f"z = {z.tolist()}"


def test_mixture_is_normalised():
    grid = torch.linspace(-8, 8, 801, dtype=torch.float64)
    energy = GaussianMixture().energy(torch.cartesian_prod(grid, grid))
    assert float(torch.exp(-energy).sum() * 0.02**2) == pytest.approx(1, abs=1e-6)


VARIANCES = {
    "scalar": 4.0,
    "diagonal": torch.tensor([1.0, 9.0]),
    "full": torch.tensor([[4.0, 1.0], [1.0, 2.0]]),
}


def dense(variance):
    return (
        variance * torch.eye(2)
        if isinstance(variance, float)
        else torch.diag(variance)
        if variance.ndim == 1
        else variance
    )


@pytest.mark.parametrize("kind", VARIANCES)
def test_the_noise_is_a_root_of_its_variance_times_standard_normal_numbers(
    kind, generator
):
    """The pure gradient: given ω it is ∇U(θ) + V^½ω and draws nothing; unit vectors for
    ω show the root.
    """
    noisy, position = (
        NoisyGradient(DoubleWell(2), VARIANCES[kind]),
        torch.randn(2, 2, generator=generator),
    )
    root = (noisy.gradient_given(position, torch.eye(2)) - noisy.gradient(position)).T
    torch.testing.assert_close(root @ root.T, dense(VARIANCES[kind]))
    torch.testing.assert_close(
        noisy.gradient_given(position, torch.zeros(2, 2)), noisy.gradient(position)
    )
    before = position.clone()
    noisy.gradient_given(position, torch.ones(2, 2))
    assert torch.equal(position, before)


def test_the_noise_of_a_block_of_steps_is_standard_normal_and_every_step_has_its_own(
    generator,
):
    noisy, position = NoisyGradient(Gaussian.standard(2), 4.0), torch.zeros(2_000, 2)
    noise = noisy.draw_minibatches(position, generator, step=3, num_steps=5)
    assert noise.shape == (5, 2_000, 2) and noise.dtype == position.dtype
    # the ten numbers of a chain are independent
    together = noise.transpose(0, 1).flatten(1)[None]
    assert_covariance(together, torch.eye(10, dtype=torch.float64))
    (one,) = noisy.draw_minibatches(position, torch.Generator().manual_seed(9), step=0)
    expected = noisy.gradient_given(position, one)
    assert torch.equal(
        noisy.stochastic_gradient(position, torch.Generator().manual_seed(9), step=0),
        expected,
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Gaussian(torch.tensor([[1.0, 2.0], [2.0, 1.0]])),
            r"covariance.*positive",
        ),
        (lambda: Gaussian(torch.ones(2)), r"covariance.*\(dim, dim\)"),
        (
            lambda: Gaussian(torch.eye(2), torch.zeros(3)),
            r"covariance has 2, mean has 3",
        ),
        (
            lambda: Gaussian(torch.eye(2), torch.tensor([0.0, math.nan])),
            r"\bmean.*nan.*\(1,\)",
        ),
        (lambda: Gaussian.standard(10**6), r"\bdim.*1000000"),
        (lambda: GaussianMixture(variance=0.0), r"variance.*\b0\b"),
        (lambda: GaussianMixture(torch.zeros(3)), r"\bmeans.*\(3,\)"),
        (
            lambda: NoisyGradient(DoubleWell(), torch.ones(2)),
            r"potential.*\b1\b.*noise_variance.*\b2\b",
        ),
        (
            lambda: NoisyGradient(NoisyGradient(DoubleWell(), 1.0), 4.0),
            r"potential.*exact",
        ),
        (lambda: NoisyGradient(DoubleWell(), -4.0), r"noise_variance.*negative"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "target",
    [Gaussian.standard(2), GaussianMixture()],
    ids=lambda target: type(target).__name__,
)
def test_exact_samples_need_a_number_and_a_generator(target, generator):
    """Without one PyTorch would draw from the global generator."""
    for number in (-1, 2.0, "2"):
        with pytest.raises(
            ValueError,
            match=r"num_samples\b.*whole",
        ):
            target.exact_samples(number, generator)
    for wrong in (0, None):
        with pytest.raises(
            ValueError,
            match=r"generator.*Generator",
        ):
            target.exact_samples(2, wrong)
