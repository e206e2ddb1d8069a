"""The price of a sample where minibatches come in passes."""

import pytest
import torch

from booklib.page.prices import (
    ONE,
    WAYS,
    least_prices,
    ordered_price,
    show_prices,
)
from sgmc.splittings import LinearChain, flows, linear_chain


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


# The rows of the storyboard: passes for a θ and for a θ².
BOARD = {
    "sgld": (100.0, 50.0),
    "sghmc": (99.0, 49.6),
    "all": (1.0, 2.0),
    "sgld-estimate": (2.96, 1.48),
    "estimate": (2.94, 1.46),
    "passes": (1.97, 2.78),
    "sweeps": (1.47, 2.51),
    "control": (0.50, 0.347),
    "sgd": (0.99, 0.495),
}


@pytest.mark.parametrize("name", WAYS)
def test_the_rows_of_the_board(name):
    """Each is at one per cent and has the storyboard's numbers, and no friction near it
    makes a θ² cheaper, but where the row fixes it.
    """
    way, least = WAYS[name], least_prices(name)
    assert [x.passes for x in least] == pytest.approx(BOARD[name], rel=5e-3)
    for _, step_size, friction in least:
        excess = way.price(step_size, friction).excess
        expected = {
            "all": 0.0,
            "sgd": 0.0,
            "sgld-estimate": 1 / (1 - step_size / 2) - 1,
        }
        assert excess == pytest.approx(expected.get(name, 0.01), abs=2e-6)
        assert excess <= 0.01 + 2e-6
    if name in ("sghmc", "all", "passes", "sweeps", "control"):
        for factor in (0.8, 1.25):
            other = way._replace(frictions=(1.0, factor * way.frictions[1]))
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(WAYS, name, other)
                assert least_prices(name)[1].passes > least[1].passes


def test_the_rows_by_the_formulas_of_the_book():
    """τ and the variance of Algorithm 2 by the theorem, of SGLD and SGD by powers, and
    of ordered minibatches σ²τ = 2C/ε.
    """
    for name, noise in (("sghmc", 99.0), ("control", 99 / 200)):
        (passes, e, c), _ = least_prices(name)
        shrink = 1 - e**2 / (4 - 2 * e * c)
        assert (1 + e * noise / (2 * c)) / shrink == pytest.approx(1.01, abs=1e-5)
        assert passes == pytest.approx(0.01 * 2 * c * shrink / e, rel=1e-9)
    (passes, e, multiple), _ = least_prices("estimate")
    shrink = 1 - e**2 / (4 - e**2 * multiple * 99)
    assert 1 / shrink == pytest.approx(1.01, abs=1e-5)
    assert passes == pytest.approx(0.99 * multiple * shrink, rel=1e-9)
    for name in ("sgld", "sgld-estimate", "sgd"):
        (passes, rate, _), (of_square, *_) = least_prices(name)
        power = 1 - rate
        assert passes == pytest.approx(0.01 * (1 + power) / (1 - power))
        assert of_square == pytest.approx(0.01 * (1 + power**2) / (1 - power**2))
    (passes, e, c), _ = least_prices("all")
    assert passes == pytest.approx(2 * c / e)
    for name in ("passes", "sweeps"):
        (passes, e, c), _ = least_prices(name)
        assert 1.01 * passes == pytest.approx(0.01 * 2 * c / e, rel=1e-5)


def test_a_page_shows_its_own_rows_below_one_and_the_first_page_all(capsys):
    show_prices(2)
    heads, *rows = capsys.readouterr().out.splitlines()
    assert heads.startswith("variance right to 1 %  passes")
    names = [row.split("  ")[0] for row in rows]
    assert names == ["SGHMC, B̂ = 0", "SGLD, B̂ = B", "SGHMC, B̂ = B"]
    assert rows[2].split()[-7:] == "1.46 ε = 0.1, C = 3B".split()
    show_prices(1)
    heads, *rows = capsys.readouterr().out.splitlines()
    assert heads.count("passes") == 2 and "with" not in heads
    assert [row.split("  ")[0] for row in rows] == [way.name for way in WAYS.values()]
