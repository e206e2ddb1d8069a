"""What an estimate of the noise does: what is compared, and what is looked at."""

from dataclasses import replace

import pytest
import torch

from booklib.datasets import Data
from experiments import mnist, noise
from experiments.options import Prepared
from tests.experiments.test_run import PLANS, make

ROUNDS = replace(PLANS["SGHMC, precisions drawn"], rounds=5, minibatches="fresh")


def test_the_two_plans_differ_in_the_estimate_alone():
    digits = Data(torch.zeros(50_000, 1), torch.zeros(50_000))
    zero, online = (
        choices[0]
        for choices in noise.settings(Prepared(digits, digits), small=False).values()
    )
    assert (
        zero
        == mnist.settings(Prepared(digits, digits), small=False)[
            "SGHMC, fresh minibatches"
        ][0]
    )
    assert online == replace(
        zero, noise_refresh=1, method="SGHMC, online noise estimate"
    )


def test_a_share_of_the_coordinates_is_clipped_and_the_momentum_has_a_temperature():
    """With nearly no friction there is room in no coordinate that the data reach, step
    after step; with much there is in all.
    """
    for decay, share in (1e-9, 1.0), (1.0, 0.0):
        run = make(replace(ROUNDS, momentum_decay=decay, noise_refresh=1))
        run.go(progress=False)
        found = noise.look(run)
        assert found["clipped"] == pytest.approx(share, abs=0.02)
        momentum = run.walk.state.momentum[0, :24]
        assert found["temperature"]["0.weight"] == pytest.approx(
            float(momentum.square().mean()), abs=1e-5
        )
    zero = make(ROUNDS)
    zero.go(progress=False)
    assert "clipped" not in noise.look(zero)
