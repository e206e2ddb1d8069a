"""The scripts equal the package to 1e-12 on the same recorded noise, step by step.

Each of the 1,000 states of a run is a chain that takes one step.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

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
from sgmc.targets import DoubleWell, Gaussian, GaussianMixture, NoisyGradient
from tests.fakes import Banana, Funnel, generator_of
from tests.lab import node
from tests.lab.cases import (
    CASES,
    LANDSCAPES,
    SETTINGS,
    STEPS,
    Run,
    parameters_of,
    record,
    runs,
)


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


@cache
def data() -> dict[str, list[float]]:
    """Give the data of the regression, and its start, the mean of its posterior."""
    return node.run(
        "const { inputs, targets, start } = lab.landscapes.regression;"
        "return { inputs, targets, start };"
    )


def regression(**settings) -> LinearRegression:
    inputs, targets = (
        torch.tensor(data()[name], dtype=torch.float64)
        for name in ("inputs", "targets")
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
    "valley": Gaussian(torch.diag(torch.tensor([1, 1 / 9], dtype=torch.float64))),
}


class Stream:
    """The numbers of one chain; those of a tree that is done do not matter."""

    def __init__(self, numbers: dict[str, np.ndarray]):
        self.numbers, self.taken = numbers, dict.fromkeys(numbers, 0)

    def next(self, kind: str) -> float:
        place, numbers = self.taken[kind], self.numbers[kind]
        self.taken[kind] += 1
        return numbers[place] if place < len(numbers) else 0.5


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
            [[stream.next(kind) for _ in range(dim)] for stream in self.streams]
            for _ in range(int(np.prod(leading)))
        ]
        return torch.tensor(rows, dtype=torch.float64).view(
            *leading, len(self.streams), dim
        )

    replacement = False

    def indices(self, num_examples, batch_size, chains, seed, step):
        """Choose minibatches as a rule of :mod:`sgmc.minibatches` does."""
        return torch.tensor(
            [
                [int(stream.next("chosen")) for _ in range(batch_size)]
                for stream in self.streams
            ]
        )


def column(values: dict[str, np.ndarray], name: str, steps) -> torch.Tensor:
    """Give what has a name at some steps: a number a chain, or a vector."""
    found = torch.from_numpy(values[name][steps])
    return found if name in ("position", "momentum", "gradient") else found[:, 0]


def step_by_package(
    algorithm: str,
    parameters: dict[str, Any],
    states: dict[str, np.ndarray],
    steps: list[int],
    potential: Potential,
) -> dict[str, torch.Tensor]:
    """Take one step from the states before some steps, and say in the script's words
    what became of them.
    """

    def before(name):
        return column(states, name, steps)

    position = before("position")
    step_size, generator = parameters["step_size"], torch.Generator()
    names = ("step_size", "friction", "noise_estimate", "num_steps", "max_depth")
    settings = {name: parameters[name] for name in names if name in parameters}
    if algorithm == "leapfrog":
        position, momentum = integrators.leapfrog(
            potential.gradient, position, before("momentum"), step_size
        )
        return {"position": position, "momentum": momentum}
    if algorithm == "random_walk":
        state, info = RandomWalkMetropolis(**settings).step(
            potential, RandomWalkState(position, before("energy")), generator
        )
    elif algorithm == "hmc":
        start = HMCState(position, before("momentum"), before("energy"), 0)
        state, info = HMC(**settings).step(potential, start, generator)
    elif algorithm == "nuts":
        counts = before("num_gradients").long()
        start = NUTSState(position, before("gradient"), before("energy"), counts)
        state, info = NUTS(**settings).step(potential, start, generator)
    elif algorithm == "sgld":
        state, info = SGLD(**settings).step(
            potential, SGLDState(position, 0), generator
        )
    elif algorithm == "naive_sghmc":
        start = HMCState(position, before("momentum"), torch.zeros(len(position)), 0)
        state, info = NaiveSGHMC(**settings).step(potential, start, generator)
    elif algorithm == "sghmc":
        state, info = SGHMC(**settings).step(
            potential, SGHMCState(position, before("momentum"), 0), generator
        )
    elif algorithm == "sgnuts_energy":
        start = SGNUTSState(position, 0, before("num_gradients").long())
        state, info = SGNUTS(
            **settings, weights="energy", integrator="drift_kick"
        ).step(potential, start, generator)
    elif algorithm == "sgnuts_repaired":
        state, info = SGNUTS(**settings).step(
            potential,
            SGNUTSState(position, 0, before("num_gradients").long()),
            generator,
        )
    elif algorithm == "cyclical":
        kernel = Cyclical(
            langevin_of(parameters),
            step_size,
            parameters["cycle_length"],
            num_draws=parameters["cycle_length"],
        )
        phase = int(before("num_gradients")[0])
        assert all((before("num_gradients") - phase) % parameters["cycle_length"] == 0)
        state, info = kernel.step(
            potential, CyclicalState(SGLDState(position, phase), phase), generator
        )
        return {
            "position": state.position,
            "step_size": torch.full(
                (len(steps),), info.inner.step_size, dtype=torch.float64
            ),
        }
    return info._asdict() | state._asdict()


def langevin_of(parameters: dict[str, Any]):
    return lambda rate: SGLD(
        rate, noise_estimate=0.5 * rate * parameters["noise_variance"]
    )


def recorded_mode(run: Run, steps: list[int]) -> Recorded:
    """Give the numbers that the script took in some steps."""
    return Recorded(
        [
            Stream(
                {
                    kind: numbers[first:last]
                    for (kind, numbers), first, last in zip(
                        run.drawn.items(), *run.used[step : step + 2], strict=True
                    )
                }
            )
            for step in steps
        ]
    )


def test_every_algorithm_and_landscape_is_compared():
    names = node.run(
        "return [Object.keys(lab.algorithms), Object.keys(lab.landscapes)]"
    )
    assert [sorted(kind) for kind in names] == [sorted(SETTINGS), sorted(LANDSCAPES)]


def compare(algorithm: str, parameters: dict, run: Run, steps: list[int]) -> None:
    """Compare what the package makes of the states before some steps with what the
    script made of them.
    """
    mode = recorded_mode(run, steps)
    potential = POTENTIALS[parameters["landscape"]]
    if parameters["batch_size"] > 0:
        potential = regression(batch_size=parameters["batch_size"], minibatches=mode)
    elif parameters["noise_variance"] > 0:
        potential = NoisyGradient(potential, parameters["noise_variance"])
    with mode:
        given = step_by_package(algorithm, parameters, run.states, steps, potential)
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
        if name in given and name in run.states | run.learned:
            after = (
                column(run.states, name, [step + 1 for step in steps])
                if name in run.states
                else column(run.learned, name, steps)
            )
            torch.testing.assert_close(
                given[name].double(),
                after,
                rtol=1e-12,
                atol=1e-12,
                msg=lambda m, n=name: f"{n}: {m}",
            )
            compared.add(name)
    assert "position" in compared
    if "depth" in given:
        counts = run.states["num_gradients"][[step + 1 for step in steps], 0]
        assert given["num_gradients"].tolist() == counts.tolist()
        assert {"depth", "diverged", "depth_limited"} <= compared
    for stream in mode.streams:
        for kind, numbers in stream.numbers.items():
            # all trees of a call go on until the last one is done
            more = "depth" in given and stream.taken[kind] >= len(numbers)
            assert stream.taken[kind] == len(numbers) or more


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "landscape"), CASES)
def test_a_step_equals_that_of_the_package(algorithm, landscape):
    """Positions, momenta, energies, acceptance, and the random decisions: depths, ends
    of growth, steps taken.
    """
    run, parameters = runs()[algorithm, landscape], parameters_of(algorithm, landscape)
    # or there was nothing to compare
    assert len(np.unique(run.states["position"], axis=0)) > 50
    # A cyclical kernel's step size depends on the step: the chains of a call are at one
    # place of their cycles.
    length = parameters.get("cycle_length", 1)
    for phase in range(length):
        compare(algorithm, parameters, run, list(range(phase, STEPS, length)))


@pytest.mark.parametrize("algorithm", ["random_walk", "hmc", "nuts"])
def test_a_step_that_is_too_large_is_rejected_as_by_the_package(algorithm):
    """Where energies overflow."""
    parameters = parameters_of(algorithm, "banana") | {"step_size": 1e30}
    run = record(algorithm, parameters, start=[9.0, 1.0], steps=20)
    assert (run.states["position"] == [9.0, 1.0]).all()
    compare(algorithm, parameters, run, list(range(20)))


def test_particles_move_as_the_chains_of_one_tensor_do():
    """With a number for every coordinate of all particles at a time."""
    start = [0.5, 1.0, -0.3, 0.2, 1.4, -0.7]
    parameters = parameters_of("sghmc", "banana")
    run = record("sghmc", parameters, start=start, steps=50)
    one_by_one = run.drawn["normal"][6:].reshape(50, 2, 3, 2)
    for step in range(50):
        numbers = one_by_one[step].transpose(1, 0, 2).reshape(3, 4)
        states = {
            name: values[step].reshape(3, 2)
            for name, values in run.states.items()
            if name in ("position", "momentum")
        }
        mode = Recorded([Stream({"normal": each}) for each in numbers])
        potential = NoisyGradient(POTENTIALS["banana"], 4.0)
        with mode:
            after = step_by_package("sghmc", parameters, states, [0, 1, 2], potential)
        expected = torch.from_numpy(run.states["position"][step + 1]).view(3, 2)
        torch.testing.assert_close(after["position"], expected, rtol=1e-12, atol=1e-12)


def test_the_draws_that_are_kept_are_those_of_the_package():
    run, parameters = (
        runs()["cyclical", "gaussian"],
        parameters_of("cyclical", "gaussian"),
    )
    names = ("step_size", "cycle_length", "num_draws", "exploration")
    kernel = Cyclical(
        langevin_of(parameters), **{name: parameters[name] for name in names}
    )
    kept = np.flatnonzero(run.learned["kept"][:, 0])
    mode, potential = (
        Recorded([Stream(run.drawn)]),
        NoisyGradient(POTENTIALS["gaussian"], parameters["noise_variance"]),
    )
    state = kernel.init(
        potential, column(run.states, "position", [0]), torch.Generator()
    )
    with mode:
        for step in kept:
            state, info = kernel.step(potential, state, torch.Generator())
            expected = column(run.states, "position", [step + 1])
            torch.testing.assert_close(state.position, expected, rtol=1e-12, atol=1e-12)
            assert info.cycle == run.learned["cycle"][step, 0]
    whole = 70 * (STEPS // 70)
    assert len(kept) == 9 * (STEPS // 70) + (kept >= whole).sum() > 100
    exploring = run.learned["exploring"][:70, 0]
    assert exploring.tolist() == [phase < 21 for phase in range(70)]


@pytest.mark.parametrize("landscape", LANDSCAPES)
def test_energies_and_gradients_are_those_of_the_targets(landscape):
    points = 6 * torch.rand(500, 2, generator=generator_of(0), dtype=torch.float64) - 3
    script = """
    const { energy, gradient } = lab.landscapes[given.landscape], out = [0, 0];
    const slopes = given.points.map(([x, y]) => (gradient(x, y, out), [...out]));
    return [given.points.map(([x, y]) => energy(x, y)), slopes];
    """
    energies, gradients = (
        torch.tensor(values, dtype=torch.float64)
        for values in node.run(
            script, {"landscape": landscape, "points": points.tolist()}
        )
    )
    torch.testing.assert_close(
        energies, POTENTIALS[landscape].energy(points), rtol=1e-12, atol=1e-12
    )
    torch.testing.assert_close(
        gradients, POTENTIALS[landscape].gradient(points), rtol=1e-12, atol=1e-12
    )
