"""The reference equals the package to 1e-12 on the same recorded noise, step by step.

Each of the 1,000 states of a run is a chain that takes one step.
"""

from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

from lab.reference import LANDSCAPES
from sgmc import integrators
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD, SGNUTS, NaiveSGHMC
from sgmc.kernels.hmc import HMCState
from sgmc.kernels.langevin import SGLDState
from sgmc.kernels.nuts import NUTSState
from sgmc.kernels.sghmc import SGHMCState
from sgmc.kernels.sgnuts import SGNUTSState
from sgmc.other_kernels import Cyclical, RandomWalkMetropolis
from sgmc.other_kernels.cyclical import CyclicalState
from sgmc.other_kernels.random_walk import RandomWalkState
from sgmc.posteriors import LinearRegression
from sgmc.potentials import Potential
from sgmc.targets import (
    Banana,
    DoubleWell,
    Funnel,
    Gaussian,
    GaussianMixture,
    NoisyGradient,
)
from tests.lab.cases import CASES, SETTINGS, STEPS, parameters_of, run_reference


class WellAcross(Potential):
    """A double well in the first coordinate, and a Gaussian in the second."""

    dim = 2
    along, across = DoubleWell(), Gaussian.standard(1, torch.float64)

    def energy(self, position):
        return self.along.energy(position[:, :1]) + self.across.energy(position[:, 1:])

    def gradient(self, position):
        return torch.cat(
            [
                self.along.gradient(position[:, :1]),
                self.across.gradient(position[:, 1:]),
            ],
            -1,
        )


def regression(**settings) -> LinearRegression:
    landscape = LANDSCAPES["regression"]
    inputs, targets = (
        torch.tensor(x, dtype=torch.float64)
        for x in (landscape.inputs, landscape.targets)
    )
    return LinearRegression(
        torch.stack([torch.ones_like(inputs), inputs], -1),
        targets,
        40.0,
        100.0,
        **settings,
    )


POTENTIALS = {
    "gaussian": Gaussian.standard(2, torch.float64),
    "correlated": Gaussian.correlated(0.9, torch.float64),
    "double_well": WellAcross(),
    "banana": Banana(),
    "modes": GaussianMixture(GaussianMixture().means.double()),
    "funnel": Funnel(2),
    "regression": regression(),
}


class Stream:
    """The numbers of one chain; those of a tree that is done do not matter."""

    def __init__(self, normals: list[float], uniforms: list[float]):
        self.normals, self.uniforms, self.taken = normals, uniforms, [0, 0]

    def normal(self) -> float:
        return self._next(0, self.normals)

    def uniform(self) -> float:
        return self._next(1, self.uniforms)

    def _next(self, kind: int, numbers: list[float]) -> float:
        self.taken[kind] += 1
        return (
            numbers[self.taken[kind] - 1] if self.taken[kind] <= len(numbers) else 0.5
        )


class Recorded(TorchFunctionMode):
    """Recorded numbers in place of those that torch would draw: tensors (..., chains)
    of uniform and (..., chains, dim) of normal ones.
    """

    def __init__(self, streams: list[Stream]):
        super().__init__()
        self.streams = streams

    def __torch_function__(self, function, types, arguments=(), settings=None):
        if function is torch.Tensor.normal_:
            return arguments[0].copy_(
                self.fill(arguments[0].shape[:-2], arguments[0].shape[-1], "normal")
            )
        if function is torch.rand:
            shape = (
                arguments[0]
                if isinstance(arguments[0], (tuple, torch.Size))
                else arguments
            )
            return self.fill(shape[:-1], 1, "uniform").view(shape)
        return function(*arguments, **(settings or {}))

    def fill(self, leading, dim: int, kind: str) -> torch.Tensor:
        rows = [
            [[getattr(s, kind)() for _ in range(dim)] for s in self.streams]
            for _ in range(int(np.prod(leading)))
        ]
        return torch.tensor(rows, dtype=torch.float64).view(
            *leading, len(self.streams), dim
        )

    replacement = False

    def indices(self, num_examples, batch_size, chains, seed, step):
        """Choose minibatches as a rule of :mod:`sgmc.minibatches` does."""
        return torch.tensor(
            [LANDSCAPES["regression"].gather(batch_size, s) for s in self.streams]
        )


def column(states: list[dict[str, Any]], name: str) -> torch.Tensor:
    return torch.tensor([state[name] for state in states], dtype=torch.float64)


def step_by_package(
    algorithm: str,
    parameters: dict[str, Any],
    states: list[dict[str, Any]],
    potential: Potential,
) -> dict[str, torch.Tensor]:
    """Take one step from each of some states, and say in the reference's words what
    became of them.
    """
    position = column(states, "position")
    step_size, generator = parameters["step_size"], torch.Generator()
    names = ("step_size", "friction", "noise_estimate", "num_steps", "max_depth")
    settings = {name: parameters[name] for name in names if name in parameters}
    if algorithm == "leapfrog":
        position, momentum = integrators.leapfrog(
            potential.gradient, position, column(states, "momentum"), step_size
        )
        return {"position": position, "momentum": momentum}
    if algorithm == "random_walk":
        state, info = RandomWalkMetropolis(**settings).step(
            potential, RandomWalkState(position, column(states, "energy")), generator
        )
    elif algorithm == "hmc":
        start = HMCState(
            position, column(states, "momentum"), column(states, "energy"), 0
        )
        state, info = HMC(**settings).step(potential, start, generator)
    elif algorithm == "nuts":
        counts = column(states, "num_gradients").long()
        start = NUTSState(
            position, column(states, "gradient"), column(states, "energy"), counts
        )
        state, info = NUTS(**settings).step(potential, start, generator)
    elif algorithm == "sgld":
        state, info = SGLD(**settings).step(
            potential, SGLDState(position, 0), generator
        )
    elif algorithm == "naive_sghmc":
        start = HMCState(
            position, column(states, "momentum"), torch.zeros(len(position)), 0
        )
        state, info = NaiveSGHMC(**settings).step(potential, start, generator)
    elif algorithm == "sghmc":
        state, info = SGHMC(**settings).step(
            potential, SGHMCState(position, column(states, "momentum"), 0), generator
        )
    elif algorithm == "sgnuts_energy":
        start = SGNUTSState(position, 0, column(states, "num_gradients").long())
        state, info = SGNUTS(
            **settings, weights="energy", integrator="drift_kick"
        ).step(potential, start, generator)
    elif algorithm == "sgnuts_repaired":
        state, info = SGNUTS(**settings).step(
            potential,
            SGNUTSState(position, 0, column(states, "num_gradients").long()),
            generator,
        )
    elif algorithm == "cyclical":
        kernel = Cyclical(
            langevin_of(parameters),
            step_size,
            parameters["cycle_length"],
            num_draws=parameters["cycle_length"],
        )
        phase = states[0]["num_gradients"]
        assert all(
            (s["num_gradients"] - phase) % parameters["cycle_length"] == 0
            for s in states
        )
        state, info = kernel.step(
            potential, CyclicalState(SGLDState(position, phase), phase), generator
        )
        return {
            "position": state.position,
            "step_size": torch.full(
                (len(states),), info.inner.step_size, dtype=torch.float64
            ),
        }
    return info._asdict() | state._asdict()


def langevin_of(parameters: dict[str, Any]):
    return lambda rate: SGLD(
        rate, noise_estimate=0.5 * rate * parameters["noise_variance"]
    )


def recorded_mode(run, steps: list[int]) -> Recorded:
    """Give the numbers that the reference took in some steps."""
    streams = []
    for step in steps:
        (first, begin), (last, end) = run.used[step : step + 2]
        streams.append(Stream(run.normals[first:last], run.uniforms[begin:end]))
    return Recorded(streams)


@pytest.mark.parametrize(("algorithm", "landscape"), CASES)
def test_a_step_equals_that_of_the_package(algorithm, landscape):
    """Positions, momenta, energies, acceptance, and the random decisions: depths, ends
    of growth, steps taken.
    """
    run, parameters = (
        run_reference(algorithm, landscape),
        parameters_of(algorithm, landscape),
    )
    # A cyclical kernel's step size depends on the step: the chains of a call are at one
    # place of their cycles.
    length = parameters.get("cycle_length", 1)
    for phase in range(length):
        steps = list(range(phase, STEPS, length))
        mode = recorded_mode(run, steps)
        potential = POTENTIALS[landscape]
        if parameters["batch_size"] > 0:
            potential = regression(
                batch_size=parameters["batch_size"], minibatches=mode
            )
        elif parameters["noise_variance"] > 0:
            potential = NoisyGradient(potential, parameters["noise_variance"])
        with mode:
            given = step_by_package(
                algorithm, parameters, [run.states[step] for step in steps], potential
            )
        after = [run.states[step + 1] for step in steps]
        expected = [state | state["info"] for state in after]
        compared = set()
        for name in (
            "position",
            "momentum",
            "energy",
            "gradient",
            "acceptance",
            "depth",
            "diverged",
            "depth_limited",
            "step_size",
        ):
            if name in given and name in expected[0]:
                torch.testing.assert_close(
                    given[name].double(),
                    column(expected, name),
                    rtol=1e-12,
                    atol=1e-12,
                    msg=lambda m, n=name: f"{n}: {m}",
                )
                compared.add(name)
        if "depth" in given:
            assert torch.equal(
                given["num_gradients"], column(expected, "num_gradients").long()
            )
            assert {"depth", "diverged", "depth_limited"} <= compared
        assert "position" in compared
        for stream in mode.streams:
            recorded = [len(stream.normals), len(stream.uniforms)]
            assert stream.taken == recorded or (
                "depth" in given
                and all(a >= b for a, b in zip(stream.taken, recorded, strict=True))
            )


def test_the_draws_that_are_kept_are_those_of_the_package():
    run, parameters = (
        run_reference("cyclical", "gaussian"),
        parameters_of("cyclical", "gaussian"),
    )
    names = ("step_size", "cycle_length", "num_draws", "exploration")
    kernel = Cyclical(
        langevin_of(parameters), **{name: parameters[name] for name in names}
    )
    kept = [state for state in run.states[1:] if state["info"]["kept"]]
    mode, potential = (
        Recorded([Stream(run.normals, run.uniforms)]),
        NoisyGradient(POTENTIALS["gaussian"], parameters["noise_variance"]),
    )
    state = kernel.init(
        potential, column(run.states[:1], "position"), torch.Generator()
    )
    with mode:
        for expected in kept:
            state, info = kernel.step(potential, state, torch.Generator())
            torch.testing.assert_close(
                state.position, column([expected], "position"), rtol=1e-12, atol=1e-12
            )
            assert info.cycle == expected["info"]["cycle"]
    assert (
        len(kept)
        == 9 * (STEPS // 70)
        + sum(s["info"]["kept"] for s in run.states[1 + 70 * (STEPS // 70) :])
        > 100
    )
    exploring = [state["info"]["exploring"] for state in run.states[1:71]]
    assert exploring == [phase < 21 for phase in range(70)]


@pytest.mark.parametrize("landscape", LANDSCAPES)
def test_energies_and_gradients_are_those_of_the_targets(landscape, generator):
    points = 6 * torch.rand(500, 2, generator=generator, dtype=torch.float64) - 3
    energies = torch.tensor(
        [LANDSCAPES[landscape].energy(*point) for point in points.tolist()],
        dtype=torch.float64,
    )
    gradients = torch.tensor(
        [LANDSCAPES[landscape].gradient(*point) for point in points.tolist()],
        dtype=torch.float64,
    )
    torch.testing.assert_close(
        energies, POTENTIALS[landscape].energy(points), rtol=1e-12, atol=1e-12
    )
    torch.testing.assert_close(
        gradients, POTENTIALS[landscape].gradient(points), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"step_size": 0.1 * (1 + 1e-9)},
        {"friction": 3.0 + 1e-8},
        {"noise_estimate": 0.2 + 1e-8},
    ],
)
def test_another_kernel_differs(wrong):
    """The negative control: a parameter that is off in its ninth digit."""
    run, states = (
        run_reference("sghmc", "banana"),
        run_reference("sghmc", "banana").states[:100],
    )
    with recorded_mode(run, list(range(100))):
        given = step_by_package(
            "sghmc",
            SETTINGS["sghmc"] | wrong,
            states,
            NoisyGradient(POTENTIALS["banana"], 4.0),
        )
    assert not torch.allclose(
        given["momentum"], column(run.states[1:101], "momentum"), rtol=1e-12, atol=1e-12
    )
