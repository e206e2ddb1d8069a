"""Faults that an expert might make, to see how sharp the tests are: ``python -m
tests.faults`` plants them one at a time.
"""

from pathlib import Path

from tests.faults.planting import read_faults

FAULTS = read_faults(Path(__file__).with_name("faults.txt"))
