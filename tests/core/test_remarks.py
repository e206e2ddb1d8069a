"""What is said of draws whatever the kernel: R̂, chains in separate places, and the
names of chains.
"""

import math

import arviz
import pytest
import torch

from sgmc.remarks import (
    LEAST,
    name_chains,
    remark_disagreement,
    remark_stuck,
    split_r_hat,
)


@pytest.mark.parametrize("number", [100, 101])
def test_r_hat_is_that_of_arviz(number, generator):
    values = torch.randn(number, 5, 7, generator=generator, dtype=torch.float64).cumsum(
        0
    )
    values[:, 2, 3] += 50
    expected = [arviz.rhat(values[..., k].T.numpy(), method="split") for k in range(7)]
    torch.testing.assert_close(
        split_r_hat(values), torch.tensor(expected, dtype=torch.float64)
    )


def test_independent_draws_of_one_law_get_no_remark(generator):
    """With 200 draws in 10 chains R̂² − 1 is about χ²₁₉/19/100 − 1/100: over 0.21
    never.
    """
    assert (
        remark_disagreement({"": torch.randn(200, 10, 1_000, generator=generator)})
        == []
    )


def test_the_worst_coordinate_is_named_with_the_number_of_bad_ones(generator):
    values = torch.randn(200, 4, 2, 3, generator=generator)
    values[:, 1, 0, 2] += 1.5  # less than a gap, but R̂ tells
    values[:, 1, 1, 0] += 2.5
    (remark,) = remark_disagreement(
        {"good": torch.randn(200, 4, generator=generator), "bad": values}
    )
    expected = float(split_r_hat(values.flatten(2)).amax())
    assert remark.startswith(
        f"the chains do not agree: R̂ is {expected:.2f} in coordinate 3 of 'bad', and "
        "over 1.1 in 2 of 6. Take more draws"
    )


def test_chains_of_one_mean_and_unlike_widths_are_seen(generator):
    """R̂ of the values compares means alone."""
    values = torch.randn(200, 4, generator=generator) * torch.tensor(
        [1.0, 1.0, 1.0, 5.0]
    )
    assert split_r_hat(values[..., None]) < 1.05
    (remark,) = remark_disagreement({"": values})
    assert "the chains do not agree" in remark


def test_a_half_that_differs_from_the_other_is_seen():
    """Chains that drift together agree at every time, and yet have not arrived."""
    drift = torch.linspace(0, 5, 200)[:, None] + torch.randn(
        200, 4, generator=torch.Generator().manual_seed(0)
    )
    (remark,) = remark_disagreement({"": drift})
    assert "longer warm_up" in remark and "stay" not in remark


@pytest.mark.parametrize("away", [(3,), (0, 3, 4)])
def test_chains_in_separate_places_are_named_the_fewer_ones_first(away, generator):
    values = torch.randn(200, 7, 2, generator=generator)
    values[:, list(away), 1] -= 10
    (remark,) = remark_disagreement({"": values})
    named = (
        "Chain 3 stays around -"
        if len(away) == 1
        else "Chains 0, 3 and 4 stay around -"
    )
    assert (
        "coordinate 1 of the samples" in remark
        and named in remark
        and "the others around" in remark
        and "separate modes" in remark
    )


def test_few_draws_one_chain_whole_numbers_and_constants_are_left_alone():
    apart = torch.arange(3.0).expand(LEAST - 1, 3) * 100
    constant = torch.zeros(200, 3)
    assert (
        remark_disagreement(
            {
                "few": apart,
                "one": torch.randn(500, 1).cumsum(0),
                "whole": apart.long(),
                "still": constant,
            }
        )
        == []
    )


def test_chains_that_stand_still_in_different_places_disagree():
    """Their variance within is zero, and R̂ infinite."""
    (remark,) = remark_disagreement({"": torch.arange(3.0).expand(LEAST, 3)})
    assert "R̂ is inf" in remark


def test_only_chains_that_are_where_they_started_are_named():
    start = torch.tensor([[1.0, 2.0], [1.0, 2.0], [math.pi, 0.0]])
    assert remark_stuck(start, start + torch.tensor([0.0, 1e-6]), 100) == []
    end = torch.tensor([[1.0, 2.5], [1.0, 2.0], [0.0, 0.0]])
    assert (
        remark_stuck(start, end, 100)[0].startswith("chain 1 never moved")
        and remark_stuck(start, end, 99) == []
    )


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, "chain 0"),
        (2, "chains 0 and 1"),
        (5, "chains 0, 1, 2, 3 and 4"),
        (6, "chains 0, 1, 2, 3, 4 and 1 other"),
    ],
)
def test_chains_are_named(number, expected):
    assert name_chains(torch.arange(8) < number) == expected
