"""The algorithm that the lab's README adds as an example: its script equals the
package.
"""

import re

import numpy as np
import torch

from sgmc.splittings import Splitting, sghmc_chain
from sgmc.splittings.flows import explicit_euler_sghmc
from sgmc.splittings.kernel import SplittingState
from sgmc.targets import NoisyGradient
from tests.fakes import generator_of
from tests.lab import node
from tests.lab.pages import ROOT
from tests.lab.test_package import POTENTIALS, Recorded, Stream

PAGE = (ROOT / "lab" / "README.md").read_text()
SETTINGS = {
    "step_size": 0.1,
    "friction": 1.0,
    "noise_estimate": 0.0,
    "noise_variance": 4.0,
    "batch_size": 0,
}


def test_the_solution_of_the_exercise_equals_the_package():
    solution = re.search(r"```javascript\n(lab\.algorithms.*?)```", PAGE, re.DOTALL)[1]
    script = """
    const { explicit_euler } = lab.algorithms, noise = lab.recorded(given.normals, []);
    const parameters = { ...given.settings, landscape: lab.landscapes.double_well }, path = [];
    const state = explicit_euler.init([0, 0], parameters, noise);
    for (let k = 0; k < 100; k++) path.push(...explicit_euler.step(state, parameters, noise).position);
    return Float64Array.from(path);"""
    normals = torch.randn(402, generator=generator_of(1), dtype=torch.float64).tolist()
    path = node.run(solution + script, {"normals": normals, "settings": SETTINGS})
    kernel = Splitting(explicit_euler_sghmc(0.1, 1.0))
    potential = NoisyGradient(POTENTIALS["double_well"], 4.0)
    momentum = torch.tensor([normals[:2]], dtype=torch.float64)
    state, found = SplittingState(torch.zeros_like(momentum), momentum, 0), []
    with Recorded([Stream({"normal": normals[2:]})]):
        for _ in range(100):
            state, _ = kernel.step(potential, state, torch.Generator())
            found.append(state.position[0].clone())
    np.testing.assert_allclose(
        path.reshape(100, 2), torch.stack(found), rtol=1e-9, atol=1e-9
    )


def test_what_the_solution_says_of_its_variance_is_right():
    said = float(re.search(r"its variance is about ([\d.]+) where", PAGE)[1])
    one = torch.eye(1, dtype=torch.float64)
    exact = sghmc_chain(one, 0.1, 1.0, explicit_euler=True).stationary_covariance()[
        0, 0
    ]
    assert abs(float(exact) - said) < 0.005
