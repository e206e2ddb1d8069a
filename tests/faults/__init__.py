"""Faults that an expert might make, room by room, to see how sharp the tests are: ``python -m tests.faults`` plants them one at a time."""

from tests.faults import approximations, coursework, experiments, foundations, kernels, lab, posteriors, running, tools

FAULTS = [
    *foundations.FAULTS,
    *posteriors.FAULTS,
    *kernels.FAULTS,
    *approximations.FAULTS,
    *running.FAULTS,
    *experiments.FAULTS,
    *tools.FAULTS,
    *lab.FAULTS,
    *coursework.FAULTS,
]
