"""Warm-up, step sizes, frictions and noise estimates, chosen for a model."""

from sgmc.tuning.adaptation import adapt
from sgmc.tuning.defaults import (
    DefaultSGHMC,
    default_kernel,
    matched_noise_estimate,
    tune,
)
from sgmc.tuning.looks import HalfStep, find_mode, half_step, standard_deviations

__all__ = [
    "DefaultSGHMC",
    "HalfStep",
    "adapt",
    "default_kernel",
    "find_mode",
    "half_step",
    "matched_noise_estimate",
    "standard_deviations",
    "tune",
]
