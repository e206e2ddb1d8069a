"""Warm-up, step sizes, frictions and noise estimates, chosen for a model."""

from sgmc.tuning.adaptation import adapt
from sgmc.tuning.defaults import (
    DefaultSGHMC,
    default_kernel,
    friction_for,
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
    "friction_for",
    "half_step",
    "matched_noise_estimate",
    "standard_deviations",
    "tune",
]
