"""Runs of the scripts under Node on noise that is recorded: every algorithm on every
landscape.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tests.lab.node import run

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
LANDSCAPES = [
    "gaussian",
    "correlated",
    "double_well",
    "banana",
    "modes",
    "funnel",
    "regression",
    "valley",
]
CASES = [(algorithm, landscape) for algorithm in SETTINGS for landscape in LANDSCAPES]

RUN = """
return given.map(({ algorithm, settings, start, steps, seed }) => {
  const parameters = { ...settings, landscape: lab.landscapes[settings.landscape] };
  const { minibatch } = parameters.landscape, drawn = { normal: [], uniform: [], chosen: [] }, used = [];
  const noise = {}, source = lab.noise(seed), kernel = lab.algorithms[algorithm];
  for (const kind of ["normal", "uniform"]) noise[kind] = () => drawn[kind][drawn[kind].push(source[kind]()) - 1];
  if (minibatch) parameters.landscape.minibatch = (batch_size, noise) => {
    const chosen = minibatch(batch_size, source);
    if (noise) drawn.chosen.push(...chosen);
    return chosen;
  };
  const kept = [{}, {}];
  function keep(values, columns) {
    for (const [name, value] of Object.entries(values)) {
      if (["number", "boolean"].includes(typeof value)) (columns[name] ??= []).push(Number(value));
      if (value instanceof Float64Array) (columns[name] ??= []).push(...value);
    }
  }
  let state = kernel.init(Float64Array.from(start || parameters.landscape.start), parameters, noise);
  for (let step = 0; step <= steps; step++) {
    if (step > 0) keep((state = kernel.step(state, parameters, noise)).info, kept[1]);
    keep(state, kept[0]);
    used.push(drawn.normal.length, drawn.uniform.length, drawn.chosen.length);
  }
  if (minibatch) parameters.landscape.minibatch = minibatch;
  const arrays = (columns) => Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, Float64Array.from(values)]));
  return [...kept.map(arrays), arrays(drawn), Float64Array.from(used)];
});
"""


class Run(NamedTuple):
    """What a script did."""

    states: dict[str, np.ndarray]  #: the first one and that after each step, by name
    learned: dict[str, np.ndarray]  #: the info of each step, by name
    #: the numbers that it drew, normal and uniform, and the examples of minibatches
    drawn: dict[str, np.ndarray]
    used: np.ndarray  #: how many of each when a state was reached, (steps + 1, 3)


def record(algorithm: str, settings: dict[str, Any], **given) -> Run:
    """Run a script on noise that is recorded."""
    return recorded([{"algorithm": algorithm, "settings": settings, **given}])[0]


def recorded(given: list[dict[str, Any]]) -> list[Run]:
    """Run scripts on noise that is recorded, in one process."""
    given = [
        {"steps": STEPS, "seed": place, **each} for place, each in enumerate(given)
    ]
    runs = []
    for each, (states, learned, drawn, used) in zip(
        given, run(RUN, given), strict=True
    ):
        steps = each["steps"]
        runs.append(
            Run(
                {name: x.reshape(steps + 1, -1).copy() for name, x in states.items()},
                {name: x.reshape(steps, -1) for name, x in learned.items()},
                drawn,
                used.reshape(-1, 3).astype(int),
            )
        )
    return runs


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
def runs() -> dict[tuple[str, str], Run]:
    """Run all cases."""
    given = [{"algorithm": each[0], "settings": parameters_of(*each)} for each in CASES]
    return dict(zip(CASES, recorded(given), strict=True))
