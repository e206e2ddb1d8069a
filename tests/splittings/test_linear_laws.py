"""Linear chains against the samplers' own steps, formulas in one dimension, and series
summed by brute force.
"""

import math

import pytest
import torch

from sgmc.kernels import HMC
from sgmc.kernels.hmc import HMCState
from sgmc.splittings import (
    LinearChain,
    langevin_chain,
    linear_chain,
    naive_sghmc_chain,
    sghmc_chain,
)
from sgmc.splittings.flows import Drift, Kick
from sgmc.targets import Gaussian

DOUBLE = torch.float64
TARGET = Gaussian(torch.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=DOUBLE))
FULL = torch.tensor([[1.5, 0.3], [0.3, 0.8]], dtype=DOUBLE)
DIAGONAL = torch.tensor([0.5, 2.0], dtype=DOUBLE)
AXES = torch.eye(4, dtype=DOUBLE)
GENERATOR = torch.Generator()


def one_dimensional(precision):
    return torch.tensor([[precision]], dtype=DOUBLE)


def columns(state):
    """Write the images of the axes as the columns of a transition."""
    return torch.cat([state.position, state.momentum], -1).T


@pytest.mark.parametrize(
    "mass", [1.0, DIAGONAL, FULL], ids=["number", "diagonal", "full"]
)
def test_transition_of_naive_sghmc_is_a_leapfrog_trajectory_that_forgets_its_momentum(
    mass,
):
    # keeps the momentum, but for rounding
    kernel = HMC(0.3, 4, mass=mass, metropolis=False, refreshment=1e-12)
    nothing = torch.zeros(4, dtype=DOUBLE)
    state, _ = kernel.step(
        TARGET, HMCState(AXES[:, :2], AXES[:, 2:], nothing, 0), GENERATOR
    )
    chain = naive_sghmc_chain(TARGET.precision, 0.3, 4, mass=mass)
    torch.testing.assert_close(
        chain.transition[:, :2], columns(state)[:, :2], rtol=1e-9, atol=1e-9
    )
    assert torch.equal(chain.transition[:, 2:], torch.zeros(4, 2, dtype=DOUBLE))
    # Its noise, without that of the gradients, is the momentum N(0, M) carried along.
    carried = columns(state)[:, 2:]
    full_mass = (
        mass * torch.eye(2, dtype=DOUBLE)
        if isinstance(mass, float)
        else torch.diag(mass)
        if mass.ndim == 1
        else mass
    )
    torch.testing.assert_close(
        chain.noise_covariance, carried @ full_mass @ carried.T, rtol=1e-9, atol=1e-9
    )


def test_explicit_euler_reads_the_old_state_in_both_updates():
    chain = sghmc_chain(one_dimensional(3.0), 0.1, 2.0, mass=0.5, explicit_euler=True)
    torch.testing.assert_close(
        chain.transition, torch.tensor([[1.0, 0.2], [-0.3, 1 - 0.4]], dtype=DOUBLE)
    )


@pytest.mark.parametrize("explicit_euler", [False, True])
def test_noise_of_sghmc(explicit_euler):
    """ε²V + 2ε(TC − B̂), in the momentum only."""
    settings = dict(
        friction=2 * FULL,
        noise_variance=FULL,
        noise_estimate=0.1 * DIAGONAL,
        temperature=0.5,
    )
    covariance = sghmc_chain(
        TARGET.precision, 0.2, explicit_euler=explicit_euler, **settings
    ).noise_covariance
    expected = torch.zeros(4, 4, dtype=DOUBLE)
    expected[2:, 2:] = 0.04 * FULL + 0.4 * (FULL - torch.diag(0.1 * DIAGONAL))
    torch.testing.assert_close(covariance, expected)


def test_variance_of_sgld_in_one_dimension():
    """Σ = (η²V + 2η(T − B̂)) / (1 − (1 − ηa)²)."""
    precision, step_size, noise, estimate, temperature = 3.0, 0.2, 1.5, 0.05, 0.7
    expected = (step_size**2 * noise + 2 * step_size * (temperature - estimate)) / (
        1 - (1 - step_size * precision) ** 2
    )
    covariance = langevin_chain(
        one_dimensional(precision), step_size, noise, estimate, temperature
    ).stationary_covariance()
    assert float(covariance) == pytest.approx(expected, rel=1e-12)


def test_hmc_without_correction_in_one_dimension():
    """Leapfrog conserves ½r² + ½a(1 − ¼aε²)q² exactly for U = ½aq², so that it samples
    with the precision a(1 − ¼aε²).
    """
    precision, step_size = 3.0, 0.5
    covariance = naive_sghmc_chain(
        one_dimensional(precision), step_size, 3
    ).stationary_covariance()
    assert float(covariance[0, 0]) == pytest.approx(
        1 / (precision * (1 - precision * step_size**2 / 4)), rel=1e-12
    )


def test_noise_of_a_naive_trajectory_of_one_step():
    """Half kicks of variance ¼ε²V at both ends, the first carried along by the
    drift.
    """
    chain = naive_sghmc_chain(one_dimensional(0.0), 0.4, 1, noise_variance=5.0)
    start, kick = torch.tensor([[0.0], [1.0]], dtype=DOUBLE), 0.25 * 0.16 * 5.0
    carried = torch.tensor([[1.0, 0.4], [0.0, 1.0]], dtype=DOUBLE) @ start
    torch.testing.assert_close(
        chain.noise_covariance,
        (1 + kick) * carried @ carried.T + kick * start @ start.T,
    )


def test_stationary_covariance_is_left_where_it_is():
    chain = sghmc_chain(TARGET.precision, 0.2, 2 * FULL, FULL, 0.1 * FULL, DIAGONAL)
    covariance = chain.stationary_covariance()
    torch.testing.assert_close(
        chain.transition @ covariance @ chain.transition.T + chain.noise_covariance,
        covariance,
    )
    # from any start
    torch.testing.assert_close(chain.power(2_000).noise_covariance, covariance)


def test_moves_compose():
    first = LinearChain(FULL, torch.eye(2, dtype=DOUBLE))
    second = LinearChain(torch.diag(DIAGONAL), FULL)
    both = first.then(second)
    torch.testing.assert_close(both.transition, torch.diag(DIAGONAL) @ FULL)
    torch.testing.assert_close(both.noise_covariance, torch.diag(DIAGONAL**2) + FULL)
    for one, other in zip(first.power(3), first.then(first).then(first), strict=True):
        torch.testing.assert_close(one, other)
    assert first.power(1) is first


@pytest.mark.parametrize(
    "noise_variance", [1.5, DIAGONAL, FULL], ids=["number", "diagonal", "full"]
)
def test_flows_compose_in_the_order_in_which_they_move(noise_variance):
    drift, kick = Drift(0.3, FULL), Kick(0.2)
    identity, zero = torch.eye(2, dtype=DOUBLE), torch.zeros(2, 2, dtype=DOUBLE)
    covariance = (
        noise_variance * identity
        if isinstance(noise_variance, float)
        else noise_variance
    )
    covariance = torch.diag(covariance) if covariance.ndim == 1 else covariance
    drifted = LinearChain(
        torch.cat(
            [
                torch.cat([identity, 0.3 * FULL.inverse()], 1),
                torch.cat([zero, identity], 1),
            ]
        ),
        torch.zeros(4, 4),
    )
    kicked = LinearChain(
        torch.cat(
            [
                torch.cat([identity, zero], 1),
                torch.cat([-0.2 * TARGET.precision, identity], 1),
            ]
        ),
        torch.block_diag(zero, 0.04 * covariance),
    )
    for flows, chains in (
        ([drift], drifted),
        ([drift, kick], drifted.then(kicked)),
        ([kick, drift], kicked.then(drifted)),
    ):
        for one, other in zip(
            linear_chain(flows, TARGET.precision, noise_variance), chains, strict=True
        ):
            torch.testing.assert_close(one, other.double(), rtol=1e-12, atol=1e-12)


def test_autocorrelation_of_an_autoregression():
    chain = LinearChain(one_dimensional(0.8), one_dimensional(1.0))
    direction = torch.ones(1)
    torch.testing.assert_close(
        chain.autocorrelation(direction, 5), 0.8 ** torch.arange(5, dtype=DOUBLE)
    )
    assert chain.autocorrelation_time(direction) == pytest.approx(1.8 / 0.2, rel=1e-12)


@pytest.mark.parametrize(
    "precision, step_size, size", [(1.0, 2.5, "1.5"), (0.0, 0.1, "1")]
)
def test_a_chain_without_stationary_law_is_refused(precision, step_size, size):
    message = rf"stationary.*{size}"
    with pytest.raises(ValueError, match=message):
        langevin_chain(one_dimensional(precision), step_size).stationary_covariance()
    assert math.isfinite(
        langevin_chain(one_dimensional(1.0), 0.1).stationary_covariance()
    )


CHAIN = LinearChain(0.5 * torch.eye(2), torch.eye(2))
PIECES = [Drift(0.3, DIAGONAL), Kick(0.2)]


REFUSED = [
    (lambda: linear_chain(PIECES, [[1.0]]), "precision.*list"),
    (lambda: linear_chain(PIECES, torch.ones(2, 3)), r"precision.*\(dim, dim\)"),
    (lambda: linear_chain(PIECES, FULL.triu()), "precision.*symmetric"),
    (lambda: linear_chain(PIECES, torch.eye(3)), r"coordinates.*\b2\b.*\b3\b"),
    (lambda: linear_chain(PIECES, torch.eye(2), -1.0), "noise_variance.*negative"),
    (lambda: linear_chain(PIECES, torch.eye(2), torch.ones(3)), "coordinates.*agree"),
    (lambda: linear_chain([], torch.eye(2)), r"\bflows.*\b0$"),
    (lambda: linear_chain(iter(PIECES), torch.eye(2)), r"\bflows"),
    (lambda: sghmc_chain(torch.eye(1), 0.1, 1.0, 0.0, 2.0), "noise_estimate.*-1"),
    (lambda: langevin_chain(torch.eye(1), 0.1, 0.0, 3.0), "noise_estimate.*-2"),
    (lambda: naive_sghmc_chain(torch.eye(1), 0.1, 0), "num_steps.*whole"),
    (lambda: LinearChain([[0.5]], FULL).stationary_covariance(), "transition.*tensor"),
    (lambda: CHAIN.power(0), r"num_steps.*\b0\b"),
    (lambda: CHAIN.autocorrelation(torch.ones(2), 0), "num_lags.*whole"),
    (lambda: CHAIN.autocorrelation([1.0, 0.0], 3), "direction.*list"),
    (lambda: CHAIN.autocorrelation(torch.ones(1), 3), r"direction.*\b2\b.*zero"),
    (lambda: CHAIN.autocorrelation_time(torch.zeros(2)), r"direction.*\b2\b.*zero"),
]


@pytest.mark.parametrize(("make", "says"), REFUSED)
def test_bad_input_is_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()
