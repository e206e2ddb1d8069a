"""What chains report as a local learning coefficient: the formula, the exact chain and
the recursion with given minibatches, each against another way to the same number.
"""

import math

import pytest
import torch

from booklib.models.learning_coefficient import (
    Minibatches,
    Minimum,
    choose,
    reported,
    reported_given,
)
from sgmc.splittings import flows, langevin_chain, linear_chain, sghmc_chain
from tests.checks import z_bound

DOUBLE = torch.float64
NBETA, GAMMA, STEP = 20.0, 1.5, 0.01
CURVATURE = torch.tensor([0.2, 1.0, 4.0], dtype=DOUBLE)
MINIMUM = Minimum(CURVATURE.diag(), 2 * CURVATURE.diag(), 500)


def formula(step, noise, num_steps, dropped=0):
    """The law as the page derives it, a direction at a time."""
    p = NBETA * CURVATURE + GAMMA
    v = (1 + step * noise / 2) / (p * (1 - step * p / 2))
    t = torch.arange(dropped, num_steps)[:, None]
    grown = (1 - (1 - step * p) ** (2 * t)).mean(0)
    return float(NBETA / 2 * (CURVATURE * v * grown).sum())


@pytest.mark.parametrize(("steps", "dropped"), [(1, 0), (50, 0), (50, 20), (5000, 1)])
def test_the_law_is_that_of_the_linear_chain(steps, dropped):
    noise = MINIMUM.noise(NBETA, 10)
    precision = MINIMUM.precision(NBETA, GAMMA)
    chain = linear_chain(flows.sgld(STEP), precision, noise)
    found, _ = reported(chain, NBETA * MINIMUM.hessian, steps, dropped)
    right = formula(STEP, noise.diagonal(), steps, dropped)
    assert found == pytest.approx(right, rel=1e-12)


def test_an_exact_sampler_reports_the_localised_value():
    right = (NBETA * CURVATURE / (NBETA * CURVATURE + GAMMA)).sum() / 2
    assert MINIMUM.localised(NBETA, GAMMA) == pytest.approx(float(right), rel=1e-13)


def test_all_the_data_have_no_noise():
    assert not MINIMUM.noise(NBETA, 500).any()
    right = NBETA**2 * (1 / 10 - 1 / 500) * 2 * CURVATURE
    assert torch.allclose(MINIMUM.noise(NBETA, 10).diagonal(), right)


def test_the_deviation_of_a_long_chain_is_that_of_its_autocorrelations():
    """In one direction var(½κθ²) = ½(κv)², and those of θ² decay as (1 − ηp)²ᵏ."""
    chain = langevin_chain(torch.tensor([[3.0]]), 0.1)
    _, found = reported(chain, torch.tensor([[2.0]], dtype=DOUBLE), 1_000, 0)
    variance = 1 / (3 * (1 - 0.15))
    lags = (1 + 0.7**2) / (1 - 0.7**2)
    right = (0.5 * (2 * variance) ** 2 * lags / 1_000) ** 0.5
    assert found == pytest.approx(right, rel=1e-6)


def test_a_momentum_starts_with_its_variance():
    """After one step of SGHMC from rest, δ = εr with r ~ N(0, 1)."""
    chain = sghmc_chain(torch.eye(1), 0.1, 1.0)
    found, _ = reported(chain, torch.eye(1, dtype=DOUBLE), 2, 1)
    assert found == pytest.approx(0.5 * 0.1**2, rel=1e-10)


def test_a_chain_that_is_not_stable_is_reported():
    with pytest.raises(ValueError, match="not stable"):
        reported(langevin_chain(torch.eye(1), 2.5), torch.eye(1, dtype=DOUBLE), 10)


def some_batches(num=4, size=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(num, size, 2, generator=generator, dtype=DOUBLE)
    residuals = torch.randn(num, size, generator=generator, dtype=DOUBLE)
    return Minibatches.of_regression(inputs, residuals), inputs, residuals


def test_the_quadratic_of_a_minibatch_is_its_loss():
    batches, inputs, residuals = some_batches()
    delta = torch.tensor([0.3, -0.7], dtype=DOUBLE)
    right = (residuals - inputs @ delta).square().mean(1) / 2
    found = batches.losses + batches.gradients @ delta
    found = found + torch.einsum("i,bij,j->b", delta, batches.hessians, delta) / 2
    assert torch.allclose(found, right)


def test_two_steps_with_given_minibatches_by_hand():
    """Of two steps only the first noise counts: δ = −ηnβg₀ + √(2η)ξ."""
    batches, *_ = some_batches()
    mean, deviation = reported_given(batches, [0, 1], 0.4, NBETA, GAMMA, STEP)
    there = -STEP * NBETA * batches.gradients[0]
    g, h = batches.gradients[1], batches.hessians[1]
    second = batches.losses[1] + g @ there + there @ h @ there / 2 + STEP * h.trace()
    right = NBETA * (float(batches.losses[0] + second) / 2 - 0.4)
    assert mean == pytest.approx(right, rel=1e-12)
    slope = g + h @ there
    variance = 2 * STEP * slope @ slope + 2 * STEP**2 * (h * h).sum()
    assert deviation == pytest.approx(NBETA * float(variance) ** 0.5 / 2, rel=1e-12)


def test_without_noise_of_minibatches_both_ways_agree():
    """One minibatch that is all the data, again and again, from a minimum."""
    hessian = torch.tensor([[1.0, 0.3], [0.3, 2.0]], dtype=DOUBLE)
    whole = Minibatches(
        torch.tensor([0.7], dtype=DOUBLE),
        torch.zeros(1, 2, dtype=DOUBLE),
        hessian[None],
    )
    steps = 3_000
    found = reported_given(whole, [0] * steps, 0.7, NBETA, GAMMA, STEP)
    minimum = Minimum(hessian, hessian, 10)
    chain = langevin_chain(minimum.precision(NBETA, GAMMA), STEP)
    right = reported(chain, NBETA * hessian, steps)
    assert found[0] == pytest.approx(right[0], rel=1e-9)
    assert found[1] == pytest.approx(right[1], rel=0.01)  # a start at rest


def test_chains_with_given_minibatches_report_what_is_predicted():
    """Two thousand chains replay four minibatches; both moments, at 1e-6 together."""
    batches, inputs, residuals = some_batches()
    order, chains = [0, 1, 2, 3] * 15, 2_000
    mean, deviation = reported_given(batches, order, 0.1, NBETA, GAMMA, STEP)
    generator = torch.Generator().manual_seed(1)
    delta, total = torch.zeros(chains, 2, dtype=DOUBLE), torch.zeros(chains)
    for b in order:
        gap = delta @ inputs[b].T - residuals[b]
        total = total + gap.square().mean(1) / 2
        force = NBETA * gap @ inputs[b] / gap.shape[1] + GAMMA * delta
        noise = torch.randn(delta.shape, generator=generator, dtype=DOUBLE)
        delta = delta - STEP * force + math.sqrt(2 * STEP) * noise
    each = NBETA * (total / len(order) - 0.1)
    bound = z_bound(2, 1e-6)
    assert abs(each.mean() - mean) < bound * deviation / chains**0.5
    squares = (each - each.mean()).square()
    error = squares.std() / chains**0.5
    assert abs(squares.mean() - deviation**2) < bound * error


def test_what_is_chosen_comes_near_and_the_rest_is_reported():
    found = choose(MINIMUM, NBETA, GAMMA, 2_000_000, 50, (10,))
    assert abs(found.bias) < 0.02
    assert found.friction is None or found.step_size * found.friction < 1
    with pytest.raises(ValueError, match="no setting of 2000 gradients"):
        choose(MINIMUM, NBETA, GAMMA, 2_000, 50, (10,))


def test_a_chosen_friction_leaves_noise_to_inject():
    found = choose(MINIMUM, NBETA, GAMMA, 2_000_000, 50, (10,), ("SGHMC",))
    noise = MINIMUM.noise(NBETA, 10)
    assert found.friction >= found.step_size / 2 * float(noise.diagonal().max())
