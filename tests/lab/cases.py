"""Runs of the reference on recorded noise: every algorithm on every landscape, 1,000
steps.
"""

import hashlib
import struct
from functools import cache
from typing import Any, NamedTuple

from lab.reference import ALGORITHMS, LANDSCAPES
from lab.reference.core import Generator, Recorder

STEPS = 1000
SETTINGS = {
    "leapfrog": {"step_size": 0.1},
    "random_walk": {"step_size": 1.0},
    "hmc": {"step_size": 0.15, "num_steps": 8},
    "nuts": {"step_size": 0.2, "max_depth": 5},
    "sgld": {"step_size": 0.02, "noise_estimate": 0.04, "noise_variance": 4.0},
    "naive_sghmc": {"step_size": 0.05, "num_steps": 6, "noise_variance": 4.0},
    "sghmc": {
        "step_size": 0.1,
        "friction": 3.0,
        "noise_estimate": 0.2,
        "noise_variance": 4.0,
    },
    "sgnuts_energy": {
        "step_size": 0.1,
        "friction": 1.0,
        "noise_estimate": 0.2,
        "noise_variance": 4.0,
        "max_depth": 5,
    },
    "sgnuts_repaired": {
        "step_size": 0.1,
        "friction": 1.0,
        "noise_estimate": 0.2,
        "noise_variance": 4.0,
        "max_depth": 5,
    },
    "cyclical": {
        "step_size": 0.05,
        "cycle_length": 70,
        "num_draws": 9,
        "exploration": 0.3,
        "noise_variance": 4.0,
    },
}
CASES = [(algorithm, landscape) for algorithm in SETTINGS for landscape in LANDSCAPES]


class Run(NamedTuple):
    """What the reference did on recorded noise."""

    #: the first one and that after each step, without the states of trees
    states: list[dict[str, Any]]
    digests: list[str]  #: of everything there is in them
    normals: list[float]
    uniforms: list[float]
    used: list[tuple[int, int]]  #: how many of them when a state was reached


def parameters_of(algorithm: str, landscape: str) -> dict[str, Any]:
    """Give the parameters of a case, the landscape by its name; the gradients of the
    one with data are from minibatches of seven.
    """
    settings = (
        {"noise_variance": 0.0, "batch_size": 0}
        | SETTINGS[algorithm]
        | {"landscape": landscape}
    )
    if landscape == "regression" and settings["noise_variance"] > 0:
        settings |= {"batch_size": 7, "noise_variance": 0.0}
    return settings


@cache
def run_reference(algorithm: str, landscape: str) -> Run:
    """Run a case."""
    parameters = parameters_of(algorithm, landscape) | {
        "landscape": LANDSCAPES[landscape]
    }
    noise, kernel = (
        Recorder(Generator(CASES.index((algorithm, landscape)))),
        ALGORITHMS[algorithm],
    )
    state = kernel.init(LANDSCAPES[landscape].start, parameters, noise)
    states, digests, used = [], [], []
    for step in range(STEPS + 1):
        state = kernel.step(state, parameters, noise) if step > 0 else state
        digests.append(digest(state))
        states.append(without_tree(state))
        used.append((len(noise.normals), len(noise.uniforms)))
    return Run(states, digests, noise.normals, noise.uniforms, used)


def without_tree(state: dict[str, Any]) -> dict[str, Any]:
    """Leave out the states of a tree, which take much memory."""
    return state | {
        "info": {
            name: value
            for name, value in state["info"].items()
            if name not in ("tree", "path")
        }
    }


def digest(value: Any) -> str:
    """Make one word of the bits of all numbers, in the order of their names, as
    ``harness.js`` does.
    """
    found = list(numbers(value))
    return hashlib.sha256(struct.pack(f"<{len(found)}d", *found)).hexdigest()[:16]


def numbers(value: Any):
    """Go through all numbers of a state."""
    if isinstance(value, bool | int | float):
        yield float(value) if value == value else 1.25e300
    elif isinstance(value, str):
        yield from (float(ord(letter)) for letter in value)
    elif value is None:
        yield -1.25e300
    elif isinstance(value, dict):
        for name in sorted(value):
            yield from numbers(value[name])
    else:
        for entry in value:
            yield from numbers(entry)
