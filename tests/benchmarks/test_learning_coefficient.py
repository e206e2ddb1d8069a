"""The benchmark of the learning coefficient: the known values, the numbers that it
stores, and the prediction of chains that replay their minibatches.
"""

import itertools

import pytest
import torch

from benchmarks.learning_coefficient import (
    NETWORKS,
    PLAIN,
    ROWS,
    SETTINGS,
    coefficient,
    predict,
    regression,
    stored,
)


def reduced_rank(inputs, hidden, outputs, rank):
    """Aoyagi and Watanabe (2005), their four cases."""
    M, H, N, r = inputs, hidden, outputs, rank
    if M + H < N + r:
        return (H * M - H * r + N * r) / 2
    if N + H < M + r:
        return (H * N - H * r + M * r) / 2
    if M + N < H + r:
        return M * N / 2
    odd = (M + N + H + r) % 2
    whole = 2 * (H + r) * (M + N) + 2 * M * N - (H + r) ** 2 - M**2 - N**2
    return (whole + odd) / 8


def test_the_known_coefficient_is_that_of_reduced_rank_regression():
    for M, H, N in itertools.product(range(1, 6), repeat=3):
        for rank in range(min(M, H, N) + 1):
            found = coefficient([M, H, N], rank)
            assert found == pytest.approx(reduced_rank(M, H, N, rank))


def test_a_product_of_numbers_has_one_half():
    assert coefficient([1] * 6, 0) == pytest.approx(0.5)


def test_what_each_chain_drew_predicts_it():
    """Two chains with minibatches of their own: the mean of their predictions, and the
    error of independent chains.
    """
    x, residuals = regression(200)
    given = PLAIN | {"n_beta": 30.0, "batch_size": 8}
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(200, (2, 40, 8), generator=generator)
    both = predict({"ids": ids}, given, x, residuals, 1e-3)
    single = [predict({"ids": one[None]}, given, x, residuals, 1e-3) for one in ids]
    assert both[0] == pytest.approx((single[0][0] + single[1][0]) / 2)
    assert both[1] == pytest.approx((single[0][1] ** 2 + single[1][1] ** 2) ** 0.5 / 2)


def test_what_is_stored_was_predicted():
    found = stored()
    rows = found["devinterp"]["settings"]
    assert list(rows) == list(SETTINGS)
    for row in rows.values():
        assert len(row["estimates"]) >= 20
        mean = sum(row["estimates"]) / len(row["estimates"])
        assert row["measured"] == pytest.approx(mean)
        z = (row["measured"] - row["predicted"]) / row["predicted_error"]
        assert row["z"] == pytest.approx(z) and abs(z) < 3.5
        assert row["first_loss_off"] < 1e-6
    assert set(ROWS) < set(found["regression"])


def test_exactly_one_epoch_takes_away_what_32_minibatches_of_31_add():
    """It leaves less than the exact L(w*) does, because the losses of a replayed epoch
    and its first loss go together.
    """
    row = stored()["shuffles"]["replayed"]
    assert row["spread_epoch_first"] == pytest.approx(0.416, abs=1e-3)
    assert row["spread_epoch_first"] < row["spread_exact_first"] < row["spread"]


def test_a_small_inverse_temperature_lowers_the_coefficient_of_networks():
    """As λ − (θ − 1)/log nβ; with n/log n an exact sampler is near λ."""
    found = stored()
    for name in NETWORKS:
        whole, small = (found[f"{name}-{x}exact"] for x in ("", "small-"))
        assert whole["mean"] == pytest.approx(whole["known"], rel=0.03)
        assert small["mean"] + 5 * small["error"] < whole["mean"]
        assert found[f"{name}-small-users"]["mean"] > 1.3 * small["mean"]
