"""A posterior on many machines: parts of the data, consensus of their draws, a
cluster.
"""

from sgmc.machines.consensus import (
    candidates,
    effective_share,
    energies,
    gaussian_product,
    inverse_covariance_weights,
    moments,
    reweight,
    weighted_average,
)
from sgmc.machines.shards import Shard, shards

__all__ = [
    "Shard",
    "candidates",
    "effective_share",
    "energies",
    "gaussian_product",
    "inverse_covariance_weights",
    "moments",
    "reweight",
    "shards",
    "weighted_average",
]
