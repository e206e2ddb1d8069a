"""Splittings as samplers, and the samplers as splittings: the steps that are written
out in the kernels are those of the flows.
"""

import math

import pytest
import torch

from sgmc.kernels import HMC, SGHMC, SGLD, SGNUTS, NaiveSGHMC
from sgmc.splittings import Splitting, flows
from sgmc.splittings.kernel import SplittingState
from sgmc.targets import Gaussian
from tests.fakes import (
    DOUBLE,
    NOISY,
    TARGET,
    generator_of,
    logistic,
)
from tests.kernels.steps import (
    DIAGONAL,
    FULL,
    MASSES,
    START,
    assert_same,
    normal,
    root,
    run,
    run_with_info,
    uniform,
)

# does not commute with the mass
FRICTION = torch.tensor([[2.0, -0.5], [-0.5, 3.0]], dtype=DOUBLE)
FRICTIONS = {"number": 2.0, "diagonal": 2 * DIAGONAL, "full": FRICTION}
POTENTIALS = {"noisy gradient": NOISY, "minibatches": logistic(7)}
CLOSE = dict(rtol=1e-12, atol=1e-12)


def both(kernel, splitting, potential, num_calls=3, mass=1.0, num_steps=1):
    """Take steps of a kernel and of a splitting from one state, on generators of the
    same seed: the states and infos of both.
    """
    state, generators = (
        kernel.init(potential, START, generator_of(3)),
        [generator_of(4), generator_of(4)],
    )
    momentum = getattr(state, "momentum", torch.zeros_like(START))
    other = SplittingState(START.clone(), momentum.clone(), 0)
    info = other_info = None
    splitting = Splitting(splitting, num_steps, mass)
    for _ in range(num_calls):
        state, info = kernel.step(potential, state, generators[0])
        other, other_info = splitting.step(potential, other, generators[1])
    # neither drew more
    assert torch.equal(generators[0].get_state(), generators[1].get_state())
    return state, info, other, other_info


# The ties: kernels whose step is written out beside its equation


@pytest.mark.parametrize("potential", POTENTIALS)
@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("friction", FRICTIONS)
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_the_step_of_sghmc_is_its_splitting(temperature, friction, mass, potential):
    settings = dict(
        friction=FRICTIONS[friction],
        noise_estimate=0.2 * DIAGONAL,
        mass=MASSES[mass],
        temperature=temperature,
    )
    state, info, other, other_info = both(
        SGHMC(0.1, **settings), flows.sghmc(0.1, **settings), POTENTIALS[potential]
    )
    assert_same(state[:3], other, **CLOSE)
    assert info.num_gradients == other_info.num_gradients == 3


@pytest.mark.parametrize("potential", POTENTIALS)
@pytest.mark.parametrize(
    "estimate",
    [0.0, 0.3, 0.2 * DIAGONAL, 0.2 * FULL],
    ids=["none", "number", "diagonal", "full"],
)
@pytest.mark.parametrize("mass", {"one": 1.0} | MASSES)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_step_of_sgld_is_its_splitting(temperature, mass, estimate, potential):
    mass = MASSES.get(mass, 1.0)
    kernel, splitting = (
        SGLD(0.05, temperature, estimate, mass),
        flows.sgld(0.05, estimate, temperature, mass),
    )
    state, _, other, _ = both(kernel, splitting, POTENTIALS[potential])
    assert_same(state, (other.position, other.num_gradients), **CLOSE)
    assert torch.equal(other.momentum, torch.zeros_like(START))


@pytest.mark.parametrize("mass", MASSES)
def test_the_step_of_hmc_without_correction_is_the_splitting_of_naive_sghmc(mass):
    kernel, splitting = (
        HMC(0.3, 4, MASSES[mass], metropolis=False),
        flows.naive_sghmc(0.3, 4, MASSES[mass]),
    )
    state, generators = (
        kernel.init(TARGET, START, generator_of(3)),
        [generator_of(4), generator_of(4)],
    )
    other = SplittingState(START.clone(), state.momentum.clone(), 0)
    for _ in range(3):
        state, _ = kernel.step(TARGET, state, generators[0])
        other, _ = Splitting(splitting).step(TARGET, other, generators[1])
        uniform(generators[1])  # HMC draws the decision, whatever becomes of it
    assert_same((state.position, state.momentum, state.num_gradients), other, **CLOSE)


@pytest.mark.parametrize("potential", POTENTIALS)
@pytest.mark.parametrize("mass", MASSES)
def test_the_step_of_naive_sghmc_is_its_splitting(mass, potential):
    kernel, splitting = (
        NaiveSGHMC(0.2, 4, MASSES[mass]),
        flows.naive_sghmc(0.2, 4, MASSES[mass]),
    )
    state, info, other, other_info = both(kernel, splitting, POTENTIALS[potential])
    assert_same((state.position, state.momentum, state.num_gradients), other, **CLOSE)
    assert info.num_gradients == other_info.num_gradients == 15


@pytest.mark.parametrize("integrator", ["palindromic", "drift_kick"])
@pytest.mark.parametrize("potential", POTENTIALS)
def test_a_step_of_sgnuts_is_its_splitting_or_the_reversal(potential, integrator):
    """A tree of two states has one step, to the right or to the left, and moves to its
    end; the numbers are drawn in a known order.
    """
    potential = POTENTIALS[potential]
    kernel = SGNUTS(
        0.2, FRICTION, 0.2 * DIAGONAL, FULL, max_depth=1, integrator=integrator
    )
    splitting = (flows.palindromic if integrator == "palindromic" else flows.sghmc)(
        0.2, FRICTION, 0.2 * DIAGONAL, FULL
    )
    state, info = run_with_info(kernel, potential, START)
    generator = generator_of(0)
    momentum = normal(generator) @ root(FULL)
    turned_round = (
        torch.rand((2, 1, len(START)), generator=generator, dtype=DOUBLE)[0, 0] < 0.5
    )
    # chooses among the states of the new half, of which there is one
    uniform(generator)
    way = torch.where(turned_round, -1.0, 1.0).to(DOUBLE)[:, None]
    position, moved = START.clone(), way * momentum
    flows.advance(
        splitting,
        position,
        moved,
        lambda position: potential.stochastic_gradient(position, generator, 0),
        generator,
    )
    assert 5 < turned_round.sum() < 25
    assert_same((state.position,), (position,), **CLOSE)
    assert (info.num_gradients == 1).all() and (info.depth == 1).all()


# The kernel


def written_baoab(potential, num_steps, step_size, friction, mass, temperature):
    """BAOAB for numbers as Leimkuhler and Matthews (2013) write it, the second half
    kick with a gradient of its own.
    """
    generator = generator_of(0)
    position, momentum, step = START, math.sqrt(mass) * normal(generator), 0
    decay = math.exp(-friction * step_size / mass)
    for _ in range(num_steps):
        momentum = momentum - step_size / 2 * potential.stochastic_gradient(
            position, generator, step
        )
        position = position + step_size / 2 * momentum / mass
        momentum = decay * momentum + math.sqrt(
            temperature * mass * (1 - decay**2)
        ) * normal(generator)
        position = position + step_size / 2 * momentum / mass
        momentum = momentum - step_size / 2 * potential.stochastic_gradient(
            position, generator, step + 1
        )
        step += 2
    return position, momentum, step


@pytest.mark.parametrize("potential", POTENTIALS)
@pytest.mark.parametrize(("num_steps", "num_calls"), [(1, 6), (3, 2)])
def test_baoab_is_the_algorithm_written_out(num_steps, num_calls, potential):
    """Gradients are numbered on from call to call, so that minibatches are never drawn
    twice.
    """
    kernel = Splitting(flows.baoab(0.3, 1.3, 1.7, 0.5), num_steps, mass=1.7)
    state, info = run_with_info(kernel, POTENTIALS[potential], START, num_calls)
    assert_same(
        state, written_baoab(POTENTIALS[potential], 6, 0.3, 1.3, 1.7, 0.5), **CLOSE
    )
    assert info == (12,)


def test_the_start_is_that_of_the_mass_and_is_not_changed():
    kernel, start = Splitting(flows.baoab(0.3, 1.3, FULL), mass=FULL), START.clone()
    state = kernel.init(NOISY, start, generator_of(3))
    assert_same(
        state, (START, normal(generator_of(3)) @ root(FULL), 0), rtol=1e-12, atol=1e-12
    )
    kernel.step(NOISY, state, generator_of(0))
    assert torch.equal(start, START)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_positions_keep_their_type(dtype):
    """Numbers and diagonals of the type of the positions make no others."""
    for friction in (1.3, DIAGONAL.to(dtype)):
        for maker in (
            flows.baoab,
            flows.obabo,
            flows.ubu,
            flows.sghmc,
            flows.palindromic,
        ):
            state = run(
                Splitting(maker(0.1, friction)),
                Gaussian.correlated(0.5, dtype),
                START.to(dtype),
                2,
            )
            assert state.position.dtype == state.momentum.dtype == dtype


@pytest.mark.parametrize(
    "settings",
    [dict(friction=torch.ones(3)), dict(friction=1.0, mass=torch.eye(3))],
    ids=str,
)
def test_flows_of_another_number_of_coordinates_are_named(settings, generator):
    for maker in (flows.baoab, flows.sghmc):
        with pytest.raises(
            ValueError,
            match=r"position.*\b2\b.*(mass of Drift|factor of MomentumMap|covariance of MomentumMap).*\b3\b",
        ):
            Splitting(maker(0.1, **settings)).init(TARGET, torch.zeros(1, 2), generator)


def test_a_splitting_at_another_temperature_starts_there_and_says_so(generator):
    kernel = Splitting(
        flows.baoab(0.3, 1.0, temperature=0.25), mass=2.0, temperature=0.25
    )
    assert kernel.target_temperature() == 0.25
    state = kernel.init(Gaussian.standard(2), torch.zeros(20_000, 2), generator)
    ratio = state.momentum.square().mean() / (0.25 * 2.0)
    assert abs(ratio - 1) < 5 * (2 / 40_000) ** 0.5  # false alarms: 6e-7
    assert Splitting(flows.sgld(0.1), temperature=0.0).target_temperature() is None
    with pytest.raises(ValueError, match=r"temperature.*-1"):
        Splitting(flows.sgld(0.1), temperature=-1.0)
