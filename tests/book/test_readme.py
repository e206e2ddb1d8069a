"""The README: its example runs, its commands and files are there."""

import re
import textwrap
import warnings
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_example_runs_without_a_warning_and_finds_the_coefficients():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(textwrap.dedent(code), names)
    # The data were made with all coefficients 1; 10,000 of them tell each to about
    # 0.03, and 0.2 is far beyond.
    mean, standard_error = names["draws"].mean_and_standard_error()
    assert torch.all((mean - 1).abs() < 0.2)
    assert torch.all(standard_error < 0.01)


def test_every_command_is_a_target_of_the_makefile():
    heads = re.findall(r"^([a-z ]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    targets = {target for head in heads for target in head.split()}
    named = set(re.findall(r"\bmake ([a-z]+)", README)) - {"and"}
    assert named and named <= targets


def test_every_file_it_names_is_there():
    named = re.findall(
        r"`((?:[\w/]+\.(?:md|cff|py|toml|txt))|LICENSE)`|\]\((?!http)([^)]+)\)", README
    )
    missing = [
        name
        for pair in named
        for name in pair
        if name and "NAME" not in name and not (ROOT / name).exists()
    ]
    assert named and missing == []


def test_it_is_read_in_a_minute():
    lines = README.splitlines()
    assert len(lines) <= 60 and max(map(len, lines)) <= 100
