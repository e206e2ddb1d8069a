"""Level 1 of the ladder: the algebra of the integrators, exact up to rounding."""

import math

import pytest
import torch

from booklib.rivals.euler import explicit_euler, symplectic_euler
from sgmc.integrators import kinetic_energy, leapfrog
from sgmc.matrices import Matrix
from sgmc.targets import DoubleWell, Gaussian
from tests.fakes import Banana

ALL = [explicit_euler, symplectic_euler, leapfrog]
MASSES = {
    "scalar": 1.7,
    "diagonal": torch.tensor([0.5, 2.0], dtype=torch.float64),
    "matrix": torch.tensor([[1.5, 0.3], [0.3, 0.8]], dtype=torch.float64),
}


@pytest.fixture
def start(generator):
    return torch.randn(2, 5, 2, generator=generator, dtype=torch.float64).unbind()


@pytest.mark.parametrize("mass", MASSES)
def test_leapfrog_retraces_its_path_when_the_momentum_is_flipped(start, mass):
    gradient, mass = Banana().gradient, MASSES[mass]
    position, momentum = leapfrog(gradient, *start, 0.1, 25, mass)
    assert not torch.allclose(position, start[0])
    position, momentum = leapfrog(gradient, position, -momentum, 0.1, 25, mass)
    torch.testing.assert_close(position, start[0], rtol=0, atol=1e-8)
    torch.testing.assert_close(-momentum, start[1], rtol=0, atol=1e-8)


def test_symplectic_euler_does_not_retrace_its_path(start):
    position, momentum = symplectic_euler(Banana().gradient, *start, 0.1, 25)
    position, momentum = symplectic_euler(
        Banana().gradient, position, -momentum, 0.1, 25
    )
    assert (position - start[0]).abs().max() > 1e-3


def jacobian(integrator, start, mass):
    """Differentiate by central differences: the integrators work in place, which
    automatic differentiation does not follow.
    """
    state, gradient, columns, width = (
        torch.cat([start[0][0], start[1][0]]),
        Banana().gradient,
        [],
        1e-5,
    )
    for axis in torch.eye(4, dtype=torch.float64):
        ends = []
        for sign in (1, -1):
            moved = state + sign * width * axis
            ends.append(
                torch.cat(
                    integrator(
                        gradient, moved[None, :2], moved[None, 2:], 0.1, 7, mass
                    ),
                    -1,
                )[0]
            )
        columns.append((ends[0] - ends[1]) / (2 * width))
    return torch.stack(columns, 1)


@pytest.mark.parametrize("integrator", [symplectic_euler, leapfrog])
@pytest.mark.parametrize("mass", MASSES)
def test_symplectic_integrators_keep_volume_and_the_symplectic_form(
    integrator, mass, start
):
    derivative = jacobian(integrator, start, MASSES[mass])
    form = torch.zeros(4, 4, dtype=torch.float64)
    form[:2, 2:], form[2:, :2] = torch.eye(2), -torch.eye(2)
    torch.testing.assert_close(
        torch.linalg.det(derivative),
        torch.tensor(1.0, dtype=torch.float64),
        rtol=0,
        atol=1e-8,
    )
    torch.testing.assert_close(
        derivative.T @ form @ derivative, form, rtol=0, atol=1e-8
    )


def test_explicit_euler_grows_volume():
    # For U = ½|q|² one step multiplies the volume by (1 + ε²) in each degree of
    # freedom.
    gradient = Gaussian.standard(2, torch.float64).gradient
    axes = torch.eye(4, dtype=torch.float64)
    columns = torch.cat(explicit_euler(gradient, axes[:, :2], axes[:, 2:], 0.1), -1)
    assert torch.linalg.det(columns).item() == pytest.approx(
        (1 + 0.1**2) ** 2, rel=1e-12
    )


@pytest.mark.parametrize(
    ("integrator", "order"),
    [(explicit_euler, 1), (symplectic_euler, 1), (leapfrog, 2)],
)
def test_order(integrator, order):
    """Halving the step divides the error at a fixed time by 2^order; the exact motion
    of U = ½q² is a rotation.
    """
    gradient = Gaussian.standard(1, torch.float64).gradient
    start = torch.ones(1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
    exact = math.cos(1.0) + math.sin(1.0)
    errors = [
        abs(float(integrator(gradient, *start, 1 / n, n)[0] - exact))
        for n in (512, 1024)
    ]
    assert errors[0] / errors[1] == pytest.approx(2**order, rel=0.02)


@pytest.mark.parametrize("integrator", ALL)
def test_arguments_are_not_changed_and_a_free_particle_moves_in_a_line(
    integrator, start
):
    before = [x.clone() for x in start]
    position, momentum = integrator(torch.zeros_like, *start, 0.25, 4, 2.0)
    assert all(torch.equal(x, y) for x, y in zip(start, before, strict=True))
    torch.testing.assert_close(position, start[0] + start[1] / 2)
    assert torch.equal(momentum, start[1])


def test_leapfrog_takes_one_gradient_more_than_steps(start):
    calls = []
    leapfrog(lambda position: calls.append(0) or position, *start, 0.1, 6)
    assert len(calls) == 7


def test_leapfrog_energy_error_stays_bounded():
    potential = DoubleWell()
    position, momentum = (
        torch.tensor([[0.3]], dtype=torch.float64),
        torch.tensor([[0.7]], dtype=torch.float64),
    )
    start = potential.energy(position) + kinetic_energy(momentum, Matrix(1.0))
    worst = 0.0
    for _ in range(200):
        position, momentum = leapfrog(potential.gradient, position, momentum, 0.05, 50)
        worst = max(
            worst,
            float(
                (
                    potential.energy(position)
                    + kinetic_energy(momentum, Matrix(1.0))
                    - start
                ).abs()
            ),
        )
    # 10,000 steps; the error of an orbit of the nearby Hamiltonian, of order ε²
    assert worst < 0.05**2 * 4


@pytest.mark.parametrize("wrong", [-3, math.nan, 2.5, True, None])
def test_what_is_no_number_of_steps_is_refused(wrong, start):
    with pytest.raises(ValueError, match=rf"num_steps.*at least 0.*{wrong}"):
        leapfrog(lambda position: position, *start, 0.1, num_steps=wrong)


def test_no_steps_leave_position_and_momentum_where_they_are(start):
    end = leapfrog(lambda position: position, *start, 0.1, num_steps=0)
    assert all(map(torch.equal, end, start))
