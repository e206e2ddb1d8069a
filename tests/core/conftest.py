"""A run that several files look at."""

import pytest
import torch

from sgmc import sample
from sgmc.kernels import SGLD
from sgmc.targets import Gaussian


@pytest.fixture
def named():
    collect = lambda position: {
        "position": position,
        "radius": position.norm(dim=-1),
        "inside": position.norm(dim=-1) < 1,
    }
    return sample(
        SGLD(lambda step: 0.1 / (1 + step)),
        Gaussian.standard(2),
        torch.ones(3, 2),
        num_samples=6,
        collect=collect,
    )
