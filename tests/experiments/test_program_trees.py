"""The trees of the report's program: which state is chosen, and what its noise is."""

import math
from collections import Counter

import torch

from experiments import program_trees
from experiments.program_trees import ProgramTrees
from sgmc.targets import Gaussian

BOWL = Gaussian.standard(1)
STEP = 0.1


def grown(trees, energy=None, **settings):
    """Grow trees without friction and noise, all from θ = 1 with r = 0.5."""
    kernel = ProgramTrees(STEP**2, 0.0, **settings)
    generator = torch.Generator().manual_seed(0)
    start = kernel.init(BOWL, torch.ones(1, 1), generator)
    start = start._replace(momentum=torch.full((1, 1), 0.5))
    if energy is not None:
        start = start._replace(energy=torch.tensor([energy]))
    return [kernel.step(BOWL, start, generator) for _ in range(trees)]


def path(way, number, decay=0.0, noise=0.0):
    """The states of a path to one side, and their energies."""
    theta, r, found = 1.0, 0.5, []
    for _ in range(number):
        theta += way * STEP * r
        r += -way * STEP * theta - decay * r + noise
        found.append((theta, 0.5 * (theta**2 + r**2)))
    return found


def test_the_first_half_is_one_step_and_always_taken():
    found = {round(float(state.position), 4) for state, _ in grown(40, max_depth=1)}
    assert found == {1.05, 0.95}


def test_the_second_half_replaces_the_first_and_its_weights_choose_inside():
    """From θ = 1 with r = ½ two doublings never turn. They go to one side, where the
    second half is the states two and three, or to both, where it is one and two of the
    other side.
    """
    expected = Counter()
    for way in (1, -1):
        for states in (path(way, 3)[1:], path(way, 2)):
            weights = [math.exp(-energy) for _, energy in states]
            for (theta, _), weight in zip(states, weights, strict=True):
                expected[round(theta, 4)] += 0.25 * weight / sum(weights)
    number = 4_000
    found = Counter(
        round(float(state.position), 4) for state, _ in grown(number, max_depth=2)
    )
    assert found.keys() == expected.keys()
    for theta, share in expected.items():
        error = math.sqrt(share * (1 - share) / number)
        assert abs(found[theta] / number - share) < 5 * error


def test_the_temperature_scales_the_noise(monkeypatch):
    """With noise that is always one standard deviation, the root of 2αT, the states
    that two doublings can lead to are those of these paths.
    """
    monkeypatch.setattr(program_trees, "normal_like", lambda like, _: torch.ones(1, 1))
    kernel = ProgramTrees(STEP**2, 0.3, temperature=0.25, max_depth=2)
    noise, generator = math.sqrt(2 * 0.3 * 0.25), torch.Generator().manual_seed(2)
    start = kernel.init(BOWL, torch.ones(1, 1), generator)
    start = start._replace(momentum=torch.full((1, 1), 0.5))
    steps = [kernel.step(BOWL, start, generator)[0] for _ in range(60)]
    expected = {round(x, 4) for way in (1, -1) for x, _ in path(way, 3, 0.3, noise)}
    assert {round(float(state.position), 4) for state in steps} == expected
