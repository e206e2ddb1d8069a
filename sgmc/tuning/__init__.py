"""Warm-up, step sizes, frictions and noise estimates chosen for a model."""

from sgmc.tuning.adaptation import adapt
from sgmc.tuning.defaults import (
    DefaultSGHMC,
    default_kernel,
    matched_noise_estimate,
    tune,
)

__all__ = ["DefaultSGHMC", "adapt", "default_kernel", "matched_noise_estimate", "tune"]
