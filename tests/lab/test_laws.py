"""The laws of the scripts: on Gaussians the exact ones of their discretised chains,
elsewhere the invariance of exact draws.

The very scripts of the pages run, under Node. Each test gives a false alarm once in
10,000 times."""

import json
import math

import numpy as np
import pytest
import torch

from sgmc import sample
from sgmc.kernels import HMC
from sgmc.splittings import langevin_chain, naive_sghmc_chain, sghmc_chain
from tests.checks import assert_covariance, z_bound
from tests.fakes import generator_of
from tests.lab.node import run
from tests.lab.pages import LAB, run_node
from tests.lab.test_package import POTENTIALS, data

PRECISION = {
    "gaussian": torch.eye(2, dtype=torch.float64),
    "correlated": torch.linalg.inv(
        torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64)
    ),
    "valley": POTENTIALS["valley"].precision,
}

# Many particles at once, from the mode: positions after warm_up steps, every so many
# steps.
PARTICLES = """
return given.map(({ algorithm, landscape, settings, particles, warm_up, every, draws }) => {
  const parameters = lab.parameters(algorithm, { ...settings, landscape: lab.landscapes[landscape] });
  const kernel = lab.algorithms[algorithm], noise = lab.noise(11), [x, y] = parameters.landscape.start;
  let state = kernel.init(Float64Array.from({ length: 2 * particles }, (_, i) => (i % 2 ? y : x)), parameters, noise);
  const samples = new Float64Array(2 * particles * draws);
  for (let step = 0; step < warm_up; step++) state = kernel.step(state, parameters, noise);
  for (let draw = 0; draw < draws; draw++) {
    for (let step = 0; step < every; step++) state = kernel.step(state, parameters, noise);
    samples.set(state.position, 2 * particles * draw);
  }
  return samples;
});
"""


def sghmc_law(
    precision, step_size, friction, noise_estimate, noise_variance, **settings
):
    return sghmc_chain(
        precision, step_size, friction, noise_variance, noise_estimate, **settings
    ).stationary_covariance()


def sgld_law(precision, step_size, noise_estimate, noise_variance):
    return langevin_chain(
        precision, step_size, noise_variance, noise_estimate
    ).stationary_covariance()


def naive_law(precision, step_size, num_steps, noise_variance):
    return naive_sghmc_chain(
        precision, step_size, num_steps, noise_variance
    ).stationary_covariance()


LAWS = {
    "SGLD with a large step": (
        sgld_law,
        "sgld",
        "gaussian",
        dict(step_size=0.5, noise_estimate=0.0, noise_variance=0.0),
        50,
    ),
    "SGLD": (
        sgld_law,
        "sgld",
        "correlated",
        dict(step_size=0.05, noise_estimate=0.0, noise_variance=4.0),
        300,
    ),
    "SGLD with its noise known": (
        sgld_law,
        "sgld",
        "correlated",
        dict(step_size=0.05, noise_estimate=0.1, noise_variance=4.0),
        300,
    ),
    "naive SGHMC": (
        naive_law,
        "naive_sghmc",
        "correlated",
        dict(step_size=0.1, num_steps=6, noise_variance=4.0),
        60,
    ),
    "HMC without rejections": (
        naive_law,
        "naive_sghmc",
        "valley",
        dict(step_size=0.6, num_steps=3, noise_variance=0.0),
        60,
    ),
    "SGHMC": (
        sghmc_law,
        "sghmc",
        "correlated",
        dict(step_size=0.2, friction=2.0, noise_estimate=0.0, noise_variance=4.0),
        300,
    ),
    "SGHMC with its noise known": (
        sghmc_law,
        "sghmc",
        "correlated",
        dict(step_size=0.2, friction=2.0, noise_estimate=0.4, noise_variance=4.0),
        300,
    ),
    "SGHMC without friction enough": (
        sghmc_law,
        "sghmc",
        "gaussian",
        dict(step_size=0.1, friction=0.2, noise_estimate=0.2, noise_variance=4.0),
        500,
    ),
}


@pytest.fixture(scope="module")
def particles():
    given = [
        dict(
            algorithm=algorithm,
            landscape=landscape,
            settings=settings,
            particles=4000,
            warm_up=warm_up,
            every=10,
            draws=10,
        )
        for _, algorithm, landscape, settings, warm_up in LAWS.values()
    ]
    return {
        name: torch.from_numpy(x.copy()).view(10, 4000, 2)
        for name, x in zip(LAWS, run(PARTICLES, given), strict=True)
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_a_script_has_the_law_of_its_linear_chain(particles, name):
    law, _, landscape, settings, _ = LAWS[name]
    assert_covariance(particles[name], law(PRECISION[landscape], **settings)[:2, :2])


def test_other_laws_are_refused(particles):
    """Negative controls: explicit Euler, a variance for a standard deviation, no noise
    estimate, and the faults of a well-known demo.
    """
    samples, settings = (
        particles["SGHMC with its noise known"],
        LAWS["SGHMC with its noise known"][3],
    )
    wrong = [
        sghmc_law(PRECISION["correlated"], **settings | {"step_size": 0.05}),
        sghmc_law(PRECISION["correlated"], **settings | {"noise_estimate": 0.0}),
        sghmc_law(PRECISION["correlated"], **settings | {"noise_variance": 2.0}),
        sghmc_law(PRECISION["correlated"], **settings, temperature=1.05),
        sghmc_law(
            PRECISION["correlated"],
            **settings | {"step_size": 0.1},
            explicit_euler=True,
        ),
    ]
    for law in wrong:
        with pytest.raises(AssertionError, match="z ="):
            assert_covariance(samples, law[:2, :2])
    for variance in (1.33, 0.39):  # in place of 1, found by an audit
        with pytest.raises(AssertionError, match="z ="):
            assert_covariance(
                samples,
                variance * sghmc_law(PRECISION["correlated"], **settings)[:2, :2],
            )


def test_cyclical_steps_have_the_law_of_a_product_of_chains():
    """On its way through a cycle, the noise estimate following the step size; 14 steps
    a draw, from the mode.
    """
    settings = dict(
        step_size=0.1, cycle_length=40, num_draws=4, exploration=0.5, noise_variance=4.0
    )
    case = dict(
        algorithm="cyclical",
        landscape="correlated",
        settings=settings,
        particles=20_000,
        warm_up=0,
        every=14,
        draws=5,
    )
    (samples,) = run(PARTICLES, [case])
    samples, covariance = (
        torch.from_numpy(samples.copy()).view(5, 20_000, 2),
        torch.zeros(2, 2, dtype=torch.float64),
    )
    for step in range(70):
        step_size = 0.05 * (1 + math.cos(math.pi * (step % 40) / 40))
        chain = langevin_chain(
            PRECISION["correlated"], step_size, 4.0, 0.5 * step_size * 4.0
        )
        covariance = (
            chain.transition @ covariance @ chain.transition.T + chain.noise_covariance
        )
        if step % 14 == 13:
            assert_covariance(samples[step // 14, None], covariance, 1e-4 / 5)


def minibatch_law(step_size: float, batch_size: int) -> torch.Tensor:
    """Iterate Σ ← (1 − ηA)Σ(1 − ηA)ᵀ + η²E[V(θ)] + 2η for SGLD on the regression, where
    V depends on θ, quadratically.
    """
    inputs = np.stack([np.ones(40), np.array(data()["inputs"])], -1)
    residuals = inputs @ np.array(data()["start"]) - np.array(data()["targets"])
    constant, slopes = (
        inputs * residuals[:, None] / 40,
        np.einsum("ni,nj->nij", inputs, inputs) / 40,
    )
    precision = slopes.sum(0) + np.eye(2) / 100
    constant, slopes = constant - constant.mean(0), slopes - slopes.mean(0)
    scale, shrink, covariance = (
        40**2 / batch_size * (1 - batch_size / 40) / 39,
        np.eye(2) - step_size * precision,
        np.eye(2),
    )
    for _ in range(2000):
        noise = scale * (
            constant.T @ constant
            + np.einsum("nij,jk,nlk->il", slopes, covariance, slopes)
        )
        covariance = (
            shrink @ covariance @ shrink.T
            + step_size**2 * noise
            + 2 * step_size * np.eye(2)
        )
    return torch.from_numpy(covariance)


@pytest.mark.parametrize("batch_size", [1, 5, 40])
def test_minibatches_have_the_noise_of_the_theorem(batch_size):
    """Mean and covariance of minibatch gradients without replacement, by the stationary
    law of SGLD.
    """
    settings = dict(step_size=0.1, batch_size=batch_size)
    case = dict(
        algorithm="sgld",
        landscape="regression",
        settings=settings,
        particles=4000,
        warm_up=150,
        every=15,
        draws=8,
    )
    (samples,) = run(PARTICLES, [case])
    samples = torch.from_numpy(samples.copy()).view(8, 4000, 2) - torch.tensor(
        data()["start"], dtype=torch.float64
    )
    law = minibatch_law(0.1, batch_size)
    assert_covariance(samples, law, 0.5e-4)
    mean = samples.mean(0)
    z = mean.mean(0) / (mean.std(0) / math.sqrt(4000))
    assert z.abs().max() < 4.6  # of two
    with pytest.raises(AssertionError, match="z ="):
        assert_covariance(samples, minibatch_law(0.1, {1: 2, 5: 6, 40: 20}[batch_size]))


# One chain from each of many exact draws, which are images of normal numbers u: the
# moved ones must be such images too.
INVARIANCE = """
const maps = {
  gaussian: [(u, v) => [u, v], (x, y) => [x, y]],
  valley: [(u, v) => [u, v / 3], (x, y) => [x, 3 * y]],
  correlated: [(u, v) => [u, 0.9 * u + Math.sqrt(0.19) * v], (x, y) => [x, (y - 0.9 * x) / Math.sqrt(0.19)]],
  banana: [(u, v) => [2 * u, v + 0.5 * (4 * u * u - 4)], (x, y) => [x / 2, y - 0.5 * (x * x - 4)]],
  funnel: [(u, v) => [3 * u, v * Math.exp(1.5 * u)], (x, y) => [x / 3, y * Math.exp(-x / 2)]],
};
return given.map(({ algorithm, landscape, settings, chains, steps }) => {
  const parameters = lab.parameters(algorithm, { ...settings, landscape: lab.landscapes[landscape] });
  const kernel = lab.algorithms[algorithm], noise = lab.noise(12), [make, undo] = maps[landscape];
  const moved = new Float64Array(2 * chains);
  for (let chain = 0; chain < chains; chain++) {
    let state = kernel.init(Float64Array.from(make(noise.normal(), noise.normal())), parameters, noise);
    for (let step = 0; step < steps; step++) state = kernel.step(state, parameters, noise);
    moved.set(undo(...state.position), 2 * chain);
  }
  return moved;
});
"""
CORRECTED = {
    "random walk": dict(
        algorithm="random_walk",
        landscape="correlated",
        settings=dict(step_size=0.6),
        steps=20,
    ),
    "random walk, banana": dict(
        algorithm="random_walk",
        landscape="banana",
        settings=dict(step_size=1.5),
        steps=20,
    ),
    "HMC": dict(
        algorithm="hmc",
        landscape="correlated",
        settings=dict(step_size=0.4, num_steps=5),
        steps=6,
    ),
    "HMC near the limit": dict(
        algorithm="hmc",
        landscape="valley",
        settings=dict(step_size=0.64, num_steps=8),
        steps=6,
    ),
    "HMC, banana": dict(
        algorithm="hmc",
        landscape="banana",
        settings=dict(step_size=0.3, num_steps=6),
        steps=6,
    ),
    "HMC, funnel": dict(
        algorithm="hmc",
        landscape="funnel",
        settings=dict(step_size=0.5, num_steps=5),
        steps=6,
    ),
    "NUTS": dict(
        algorithm="nuts", landscape="correlated", settings=dict(step_size=0.4), steps=5
    ),
    "NUTS, banana": dict(
        algorithm="nuts", landscape="banana", settings=dict(step_size=0.4), steps=5
    ),
    "NUTS, funnel": dict(
        algorithm="nuts", landscape="funnel", settings=dict(step_size=0.4), steps=5
    ),
    "repaired": dict(
        algorithm="sgnuts_repaired",
        landscape="gaussian",
        settings=dict(
            step_size=0.05, friction=1.0, noise_estimate=0.025, noise_variance=1.0
        ),
        steps=5,
    ),
}


@pytest.fixture(scope="module")
def moved():
    given = [case | {"chains": 8_000} for case in CORRECTED.values()]
    reported = CORRECTED["repaired"] | {"algorithm": "sgnuts_energy", "chains": 8_000}
    results = run(INVARIANCE, [*given, reported])
    return {
        name: torch.from_numpy(x.copy()).view(1, -1, 2)
        for name, x in zip([*CORRECTED, "reported"], results, strict=True)
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", CORRECTED)
def test_exact_draws_stay_exact(moved, name):
    """Second moments, and fourth ones by those of (u², v², uv), whose law is known
    too.
    """
    u, v = moved[name].unbind(-1)
    assert_covariance(moved[name], torch.eye(2, dtype=torch.float64), 0.5e-4)
    squares = torch.stack(
        [(u**2 - 1) / math.sqrt(2), (v**2 - 1) / math.sqrt(2), u * v], -1
    )
    assert_covariance(squares, torch.eye(3, dtype=torch.float64), 0.5e-4)


def test_the_sampler_as_reported_moves_them(moved):
    """The negative control: weights exp(−H) count the energy twice."""
    with pytest.raises(AssertionError, match="z ="):
        assert_covariance(moved["reported"], torch.eye(2, dtype=torch.float64))
    assert moved["reported"].square().mean() < 0.8


@pytest.mark.parametrize(
    "accept",
    ["() => ({ accepted: true })", "(H, proposed, n) => right(proposed, H, n)"],
)
def test_hmc_that_accepts_wrongly_moves_them(accept):
    """Negative controls: every proposal, or by the wrong sign."""
    fault = f"const right = lab.accept; lab.accept = {accept};"
    case = CORRECTED["HMC near the limit"] | {"chains": 2_000}
    (samples,) = run(fault + INVARIANCE, [case])
    with pytest.raises(AssertionError, match="z ="):
        assert_covariance(
            torch.from_numpy(samples.copy()).view(1, -1, 2),
            torch.eye(2, dtype=torch.float64),
        )


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
        chain = naive_sghmc_chain(PRECISION["valley"], step_size, i + 1)
        a, b = chain.transition[0, 0], chain.noise_covariance[0, 0].sqrt()
        size = (a**2 + b**2).sqrt()
        product = b + a * torch.atan2(a, b)  # of |θ'| and |θ|, by ½π
        assert value == pytest.approx(float(1 + size**2 - 4 / math.pi * product))
