"""The experiments of the papers at full scale: ``python -m experiments list | run
NAME``, one experiment a file, which has it as ``EXPERIMENT``.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.study import Experiment

# The list prints them in this order.
EXPERIMENTS = (
    "mnist mnist_more bayesnn report report_wider report_wider_momentum "
    "report_momentum figure5 figure5_around small_start uncertainty "
    "uncertainty_control letters_report falling noise fashion fashion_reported "
    "fashion_small_start steps held held_whole cifar cifar_hour "
    "sgnuts trees trees_program trees_hybrid trees_fashion "
    "neighbours weights dropout renyi renyi_differences bandit ordering few fidelity "
    "modes recommender recommender_100k coverage baselines cold"
).split()


def load(name: str) -> "Experiment":
    """Import an experiment.

    Example:
        >>> load("modes").plans
        False
    """
    return importlib.import_module(f"experiments.{name}").EXPERIMENT
