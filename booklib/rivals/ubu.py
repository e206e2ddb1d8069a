# ruff: noqa: D102 (move and linear are those of Flow)
"""UBU, a splitting that follows friction, its noise and the drift at once."""

from dataclasses import dataclass
from functools import cached_property

import torch

from sgmc.checks import check_dims, check_number, check_positive
from sgmc.matrices import Matrix, MatrixLike, addmv_, in_double
from sgmc.randomness import normal_like
from sgmc.splittings.flows import Flow, Kick


def ubu(
    step_size: float,
    friction: MatrixLike,
    mass: MatrixLike = 1.0,
    temperature: float = 1.0,
) -> list[Flow]:
    """List UBU (Sanz-Serna and Zygalakis, 2021): a kick between free halves."""
    half = Free(step_size / 2, friction, mass, temperature)
    return [half, Kick(step_size), half]


@dataclass(frozen=True, eq=False)
class Free:
    """The exact flow of free Langevin dynamics, dθ = M⁻¹r dt and dr = −CM⁻¹r dt + N(0,
    2TC dt) (Chandrasekhar, 1943, Section II.2).

    With γ = C/M and u = e^−γt − 1: θ ← θ − (u/C)r + ξ and r ← (1 + u)r + ζ, where Var ζ
    = −TMu(2 + u), Cov(ξ, ζ) = Tu²/γ and Var ξ = (T/Mγ²)(2(γt + u) − u²), of which
    (2T/Mγ²)(γt − 2 tanh ½γt) is left when ζ is known. C and M are positive numbers or
    diagonals.
    """

    time: float
    friction: MatrixLike
    mass: MatrixLike = 1.0
    temperature: float = 1.0

    def __post_init__(self):
        check_positive("time", self.time)
        check_number("temperature", self.temperature, 0)
        check_dims(friction=self.friction, mass=self.mass)
        given = Matrix(self.friction), Matrix(self.mass)
        if not all(not m.full and min(m.eigenvalues) > 0 for m in given):
            raise ValueError(
                "friction and mass of a free flow must be positive numbers or "
                "diagonals: take a splitting without it"
            )

    @cached_property
    def _coefficients(self) -> list[Matrix]:
        given = Matrix(self.friction).tensor, Matrix(self.mass).tensor
        friction, mass = map(in_double, given)
        rate = friction / mass
        x = rate * self.time
        u = torch.expm1(-x)
        spread = (-self.temperature * mass * u * (2 + u)).sqrt()
        shared = self.temperature * u**2 / rate / spread
        # The difference comes from its series where hardly a digit of it would be left.
        series, difference = x**3 / 12 * (1 - x**2 / 10), x - 2 * torch.tanh(x / 2)
        difference = torch.where(x < 0.01, series, difference)
        alone = (2 * self.temperature * difference / (mass * rate**2)).sqrt()
        like = next((x for x in given if x.ndim), friction)
        return [Matrix(x.to(like)) for x in (-u / friction, u, spread, shared, alone)]

    def move(self, position, momentum, gradient, generator):
        reach, shrink, spread, shared, alone = self._coefficients
        addmv_(position, reach, momentum)
        addmv_(momentum, shrink, momentum)
        first = normal_like(momentum, generator)
        second = normal_like(momentum, generator)
        addmv_(momentum, spread, first)
        addmv_(addmv_(position, shared, first), alone, second)

    def linear(self, precision, noise_variance):
        one = torch.eye(len(precision), dtype=torch.float64)
        coefficients = (x.dense(len(precision)) for x in self._coefficients)
        reach, shrink, spread, shared, alone = coefficients
        rows = [one, reach], [0 * one, one + shrink]
        transition = torch.cat([torch.cat(row, 1) for row in rows])
        rows = [shared, alone], [spread, 0 * one]
        root = torch.cat([torch.cat(row, 1) for row in rows])
        return transition, root @ root.T
