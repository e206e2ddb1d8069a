"""What the live figure of HMC says, by the package. The test gives a false alarm once
in 10,000 times; that each script has the distribution of its algorithm follows from
``test_package.py``, step by step, and from the noise in ``test_arithmetic.py``.
"""

import json
import math

import pytest
import torch

from sgmc import sample
from sgmc.kernels import HMC
from sgmc.splittings import naive_sghmc_chain
from tests.checks import z_bound
from tests.fakes import generator_of
from tests.lab.pages import LAB, run_node
from tests.lab.test_package import POTENTIALS

# What the live figure of HMC says of many seeds, and of all numbers of steps if nothing
# is rejected.
FIGURE = """
const {{ load }} = require({still}), {{ run, jumpWithoutRejections }} = load("hmc").figures.hmc;
const settings = {settings}, runs = Array.from({{ length: 100 }}, (_, seed) => run(settings, seed + 1));
console.log(JSON.stringify({{
  accepted: runs.map((run) => run.accepted), jump: runs.map((run) => run.jump[0]),
  without: Array.from({{ length: 40 }}, (_, i) => jumpWithoutRejections(settings.step_size, i + 1)),
}}));
"""


@pytest.mark.slow
@pytest.mark.parametrize(("step_size", "num_steps"), [(0.196, 12), (0.64, 8)])
def test_the_figure_of_hmc_says_what_the_package_does(step_size, num_steps):
    """The acceptance and the mean squared jump of |θ₁| from exact draws; without
    rejections the latter for every number of steps, to rounding, by the linear chain.
    """
    said = json.loads(
        run_node(
            FIGURE.format(
                still=json.dumps(str(LAB / "still.js")),
                settings=json.dumps({"step_size": step_size, "num_steps": num_steps}),
            )
        )
    )
    target = POTENTIALS["valley"]
    start = target.exact_samples(20_000, generator_of(1))

    def scores_of(kernel):
        moved = sample(kernel, target, start, num_samples=1, seed=2).samples[0]
        of_package = {
            "accepted": (moved != start).any(-1).double(),
            "jump": (moved[:, 0].abs() - start[:, 0].abs()) ** 2,
        }
        pairs = [
            (torch.tensor(said[name], dtype=torch.float64), values)
            for name, values in of_package.items()
        ]
        return [
            float((a.mean() - b.mean()) / (a.var() / len(a) + b.var() / len(b)).sqrt())
            for a, b in pairs
        ]

    bound = z_bound(2)
    assert max(map(abs, scores_of(HMC(step_size, num_steps)))) < bound
    for other in (HMC(step_size + 0.02, num_steps), HMC(step_size, num_steps + 1)):
        assert max(map(abs, scores_of(other))) > bound
    for i, value in enumerate(said["without"]):
        chain = naive_sghmc_chain(POTENTIALS["valley"].precision, step_size, i + 1)
        a, b = chain.transition[0, 0], chain.noise_covariance[0, 0].sqrt()
        size = (a**2 + b**2).sqrt()
        product = b + a * torch.atan2(a, b)  # of |θ'| and |θ|, by ½π
        assert value == pytest.approx(float(1 + size**2 - 4 / math.pi * product))
