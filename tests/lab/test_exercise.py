"""The algorithm that the chapter on the lab adds as an exercise: its script and its
reference are those of the page.
"""

import re

import torch

from lab.reference import LANDSCAPES, algorithms
from lab.reference.core import Generator, Recorder
from sgmc.splittings import sghmc_chain
from tests.lab import node
from tests.lab.pages import ROOT

PAGE = (ROOT / "book" / "appendix" / "live_lab.md").read_text()
SETTINGS = {
    "step_size": 0.1,
    "friction": 1.0,
    "noise_estimate": 0.0,
    "noise_variance": 4.0,
    "batch_size": 0,
}


def solution(language):
    return re.search(
        rf"```{language}\n(lab\.algorithms.*?|class .*?)```", PAGE, re.DOTALL
    )[1]


def test_the_solution_of_the_exercise_equals_its_reference_bit_for_bit():
    made = dict(vars(algorithms))
    exec(solution("python"), made)
    kernel, noise = made["ExplicitEuler"](), Recorder(Generator(1))
    parameters = SETTINGS | {"landscape": LANDSCAPES["double_well"]}
    state = kernel.init([0.0, 0.0], parameters, noise)
    path = []
    for _ in range(100):
        state = kernel.step(state, parameters, noise)
        path += state["position"]
    script = (
        solution("javascript")
        + """
    const { explicit_euler } = lab.algorithms, noise = lab.recorded(given.normals, []), path = [];
    const parameters = { ...given.settings, landscape: lab.landscapes.double_well };
    const state = explicit_euler.init([0, 0], parameters, noise);
    for (let k = 0; k < 100; k++) path.push(...explicit_euler.step(state, parameters, noise).position);
    return Float64Array.from(path);"""
    )
    assert (
        node.run(script, {"normals": noise.normals, "settings": SETTINGS}).tolist()
        == path
    )


def test_what_the_solution_says_of_its_variance_is_right():
    said = float(re.search(r"its variance is about ([\d.]+) where", PAGE)[1])
    one = torch.eye(1, dtype=torch.float64)
    exact = sghmc_chain(one, 0.1, 1.0, explicit_euler=True).stationary_covariance()[
        0, 0
    ]
    assert abs(float(exact) - said) < 0.005
