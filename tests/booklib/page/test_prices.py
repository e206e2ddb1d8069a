"""The price of a sample where minibatches come in passes."""

import pytest
import torch

from booklib.page.prices import ONE, at_one_per_cent, ordered_price, price_of
from sgmc.splittings import LinearChain, flows, langevin_chain, linear_chain


def of_two(splitting, noise_variance, num_lags=4_000):
    """The price with passes of two minibatches, whose errors are e and −e, by hand."""
    move, injected = linear_chain(splitting, ONE)
    error = linear_chain(splitting, ONE, 1.0).noise_covariance - injected
    vector = torch.linalg.svd(error)[0][:, 0] * torch.linalg.svd(error)[1][0] ** 0.5
    moved = (move - torch.eye(2)) @ vector  # of e, after both steps
    noise = noise_variance * torch.outer(moved, moved)
    noise = noise + move @ injected @ move.T + injected
    after = LinearChain(move @ move, noise).stationary_covariance()
    between = move @ after @ move.T + injected + noise_variance * error
    # z₂ = F z₁ − b e + ξ, and z₁ holds b e
    step = move @ between - noise_variance * torch.outer(vector, vector)
    lags = [(between, step), (after, move @ after)]  # Cov(next, now) from either place
    sums = torch.zeros(2, dtype=torch.float64)
    for now, following in lags:
        sums += torch.stack([now[0, 0], now[0, 0] ** 2])
        ahead = following
        for _ in range(num_lags):
            sums += 2 * torch.stack([ahead[0, 0], ahead[0, 0] ** 2])
            ahead = move @ ahead
    variances = torch.stack([after[0, 0], between[0, 0]])
    return (
        float(variances.mean()) - 1,
        float(sums[0] / variances.sum()),
        float(sums[1] / variances.square().sum()),
    )


@pytest.mark.parametrize("friction", [0.5, 2.0])
def test_passes_of_two_minibatches_by_hand(friction):
    step = flows.palindromic(0.2, friction)
    found, expected = ordered_price(step, 4.0, 2), of_two(step, 4.0)
    assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    ("friction", "passes", "sweeps"), [(1.0, 0.0147, 0.0118), (0.5, 0.0323, 0.0219)]
)
def test_ten_minibatches_a_pass(friction, passes, sweeps):
    step = flows.palindromic(0.1, friction)
    assert ordered_price(step, 4.0, 10).excess == pytest.approx(passes, abs=5e-5)
    assert ordered_price(step, 4.0, 10, True).excess == pytest.approx(sweeps, abs=5e-5)


def test_an_average_over_whole_passes_has_no_noise_of_minibatches():
    """σ²τ = 2C/(εa²), as with exact gradients."""
    for sweeps in (False, True):
        price = ordered_price(flows.palindromic(0.1, 1.0), 4.0, 10, sweeps)
        assert (1 + price.excess) * price.steps == pytest.approx(20)


def test_one_per_cent_of_sgld():
    price = at_one_per_cent(lambda size: price_of(langevin_chain(ONE, size, 99.0)), 1.0)
    assert price.excess == pytest.approx(0.01)
    assert price.steps / 100 == pytest.approx(100, rel=1e-3)
