# ruff: noqa: D102 (move and linear are those of Flow)
"""Flows, of which integrators are made; a list of them is a splitting.

On U(θ) = ½θᵀAθ with gradient noise N(0, V) a flow is a linear map with Gaussian noise,
z' = Fz + N(0, Q), where z is (θ, r), or θ alone in Langevin dynamics. So one list gives
both the step of a sampler (:class:`sgmc.splittings.Splitting`) and the exact law of its
chain (:func:`sgmc.splittings.linear_chain`).

ε or t is a time, C the friction, M the mass, T the temperature and B̂ the noise
estimate; matrices are numbers, ``(dim,)`` or ``(dim, dim)``. A ValueError says which of
them is out of its range."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from sgmc import checks
from sgmc.integrators import Gradient
from sgmc.matrices import Matrix, MatrixLike, addmv_, as_matrix, in_double
from sgmc.noise import spare
from sgmc.randomness import normal_like

Law = tuple[Tensor, Tensor]


@runtime_checkable
class Flow(Protocol):
    """A flow, one step of a splitting.

    Example:
        >>> class Turn:
        ...     def move(self, position, momentum, gradient, generator):
        ...         old = position.clone()
        ...         position.copy_(momentum)
        ...         momentum.copy_(-old)
        ...
        ...     def linear(self, precision, noise_variance):
        ...         turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
        ...         return turn, torch.zeros(2, 2, dtype=torch.float64)
        >>> theta, r = torch.ones(1, 1), torch.zeros(1, 1)
        >>> advance([Turn()], theta, r, torch.zeros_like, Generator())
        >>> theta, r, isinstance(Turn(), Flow)
        (tensor([[0.]]), tensor([[-1.]]), True)
    """

    def move(
        self,
        position: Tensor,
        momentum: Tensor,
        gradient: Gradient,
        generator: Generator,
    ) -> None:
        """Move positions and momenta ``(chains, dim)`` in place."""
        ...

    def linear(self, precision: Tensor, noise_variance: Tensor) -> Law:
        """Return F and Q of the move where U(θ) = ½θᵀAθ and the gradient's noise is
        N(0, V), from A and V; all are float64.
        """
        ...


def _check_flows(flows: Sequence[Flow]) -> None:
    """Raise a ValueError unless ``flows`` is a list of flows, and not empty."""
    checks.check_instance("flows", flows, Sequence, "baoab(0.1, friction=1.0)")
    checks.check_count("the number of flows", len(flows))
    for flow in flows:
        checks.check_instance("each of flows", flow, Flow, "Drift(0.1)")


def advance(
    flows: Sequence[Flow],
    position: Tensor,
    momentum: Tensor,
    gradient: Gradient,
    generator: Generator,
) -> None:
    """Follow flows one after the other, in place.

    Example:
        >>> theta, r = torch.zeros(1, 1), torch.ones(1, 1)
        >>> advance(leapfrog(0.5), theta, r, lambda theta: theta, Generator())
        >>> theta, r
        (tensor([[0.5000]]), tensor([[0.8750]]))
    """
    for flow in flows:
        flow.move(position, momentum, gradient, generator)


class _Moving:
    """A flow that moves positions for a time."""

    time: float
    mass: MatrixLike

    def __post_init__(self):
        checks.check_number("time", self.time)
        self._inverse_mass  # raises an error unless it is a mass

    @cached_property
    def _inverse_mass(self) -> Matrix:
        return as_matrix(self.mass, "mass", positive=True).inverse


@dataclass(frozen=True, eq=False)
class Drift(_Moving):
    """The drift θ ← θ + tM⁻¹r.

    Example:
        >>> theta, r = torch.zeros(1, 1), torch.ones(1, 1)
        >>> Drift(0.5, mass=2.0).move(theta, r, lambda theta: theta, Generator())
        >>> theta
        tensor([[0.2500]])
    """

    time: float
    mass: MatrixLike = 1.0

    def move(self, position, momentum, gradient, generator):
        addmv_(position, self._inverse_mass, momentum, alpha=self.time)

    def linear(self, precision, noise_variance):
        dim = len(precision)
        return _law(dim, xr=self.time * self._inverse_mass.dense(dim))


@dataclass(frozen=True, eq=False)
class Kick:
    """The kick r ← r − t∇Ũ(θ); each kick takes a gradient of its own.

    Example:
        >>> theta, r = torch.ones(1, 1), torch.zeros(1, 1)
        >>> Kick(0.5).move(theta, r, lambda theta: 3 * theta, Generator())
        >>> r
        tensor([[-1.5000]])
    """

    time: float

    def __post_init__(self):
        checks.check_number("time", self.time)

    def move(self, position, momentum, gradient, generator):
        momentum.sub_(gradient(position), alpha=self.time)

    def linear(self, precision, noise_variance):
        noise = self.time**2 * noise_variance
        return _law(len(precision), rx=-self.time * precision, noise=noise)


@dataclass(frozen=True, eq=False)
class MomentumMap:
    """The map r ← Gr + N(0, S), friction and its noise; with None it draws nothing.

    Example:
        >>> theta, r = torch.zeros(1, 1), torch.ones(1, 1)
        >>> MomentumMap(Matrix(0.5)).move(theta, r, torch.zeros_like, Generator())
        >>> r
        tensor([[0.5000]])
    """

    factor: Matrix = field(default_factory=lambda: Matrix(1.0))
    covariance: Matrix | None = None

    def __post_init__(self):
        checks.check_instance("factor", self.factor, Matrix, "Matrix(0.5)")
        if self.covariance is not None:
            _check_covariance(self.covariance)

    def move(self, position, momentum, gradient, generator):
        momentum.copy_(self.factor @ momentum)
        if self.covariance is not None:
            addmv_(momentum, self.covariance.root, normal_like(momentum, generator))

    def linear(self, precision, noise_variance):
        dim, covariance = len(precision), self.covariance or Matrix(0.0)
        factor, noise = self.factor.dense(dim), covariance.dense(dim)
        return _law(dim, rr=factor, noise=noise)


@dataclass(frozen=True, eq=False)
class Free:
    """The exact flow of free Langevin dynamics, dθ = M⁻¹r dt and dr = −CM⁻¹r dt + N(0,
    2TC dt) (Chandrasekhar, 1943, Section II.2).

    With γ = C/M and u = e^−γt − 1: θ ← θ − (u/C)r + ξ and r ← (1 + u)r + ζ, where Var ζ
    = −TMu(2 + u), Cov(ξ, ζ) = Tu²/γ and Var ξ = (T/Mγ²)(2(γt + u) − u²), of which
    (2T/Mγ²)(γt − 2 tanh ½γt) is left when ζ is known. C and M are positive numbers or
    diagonals.

    Example:
        >>> at_rest = torch.zeros(
        ...     1, 1, dtype=torch.float64
        ... )  # no potential and no noise
        >>> reached, _ = Free(1e9, friction=2.0).linear(at_rest, at_rest)
        >>> reached  # a momentum r takes the position r/C far, and is forgotten
        tensor([[1.0000, 0.5000],
                [0.0000, 0.0000]], dtype=torch.float64)
    """

    time: float
    friction: MatrixLike
    mass: MatrixLike = 1.0
    temperature: float = 1.0

    def __post_init__(self):
        checks.check_positive("time", self.time)
        checks.check_number("temperature", self.temperature, 0)
        checks.check_dims(friction=self.friction, mass=self.mass)
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
        coefficients = (x.dense(len(precision)) for x in self._coefficients)
        reach, shrink, spread, shared, alone = coefficients
        rows = [shared, alone], [spread, torch.zeros_like(spread)]
        root = torch.cat([torch.cat(row, 1) for row in rows])
        rr = torch.eye(len(precision), dtype=torch.float64) + shrink
        return _law(len(precision), xr=reach, rr=rr)[0], root @ root.T


@dataclass(frozen=True, eq=False)
class AtOnce:
    """Flows that all start from one state, with their increments added: explicit
    Euler.

    Example:
        >>> theta, r = torch.ones(1, 1), torch.ones(1, 1)
        >>> flow = AtOnce([Drift(0.5), Kick(0.5)])
        >>> flow.move(theta, r, lambda theta: theta, Generator())
        >>> theta, r  # the kick is that of the old position
        (tensor([[1.5000]]), tensor([[0.5000]]))
    """

    flows: Sequence[Flow]

    def __post_init__(self):
        _check_flows(self.flows)

    def move(self, position, momentum, gradient, generator):
        start = position.clone(), momentum.clone()
        for flow in self.flows:
            moved = start[0].clone(), start[1].clone()
            flow.move(*moved, gradient, generator)
            position.add_(moved[0] - start[0])
            momentum.add_(moved[1] - start[1])

    def linear(self, precision, noise_variance):
        laws = [flow.linear(precision, noise_variance) for flow in self.flows]
        transitions, noises = (torch.stack(each) for each in zip(*laws, strict=True))
        identity = torch.eye(transitions.shape[1], dtype=torch.float64)
        return identity + (transitions - identity).sum(0), noises.sum(0)


@dataclass(frozen=True, eq=False)
class Descent(_Moving):
    """The descent θ ← θ − tM⁻¹∇Ũ(θ) + N(0, S), without a momentum: Langevin
    dynamics.

    Example:
        >>> theta, r = torch.ones(1, 1), torch.zeros(1, 1)
        >>> descent = Descent(0.25, covariance=Matrix(0.0))  # without noise
        >>> descent.move(theta, r, lambda theta: theta, Generator())
        >>> theta
        tensor([[0.7500]])
    """

    time: float
    covariance: Matrix
    mass: MatrixLike = 1.0

    def __post_init__(self):
        super().__post_init__()
        _check_covariance(self.covariance)

    def move(self, position, momentum, gradient, generator):
        addmv_(position, self._inverse_mass, gradient(position), alpha=-self.time)
        addmv_(position, self.covariance.root, normal_like(position, generator))

    def linear(self, precision, noise_variance):
        dim = len(precision)
        descent = -self.time * self._inverse_mass.dense(dim)
        return (
            torch.eye(dim, dtype=torch.float64) + descent @ precision,
            descent @ noise_variance @ descent + self.covariance.dense(dim),
        )


def friction_flow(
    time: float, friction: MatrixLike, mass: MatrixLike = 1.0
) -> MomentumMap:
    """Make the friction of Euler's method: r ← (1 − tCM⁻¹)r.

    Example:
        >>> friction_flow(0.25, friction=2.0).factor.number
        0.5
    """
    return MomentumMap(Matrix(1.0) - _damping(time, friction, mass))


def implicit_friction_flow(
    time: float, friction: MatrixLike, mass: MatrixLike = 1.0
) -> MomentumMap:
    """Make the friction of Euler's implicit method: r ← (1 + tCM⁻¹)⁻¹r.

    Example:
        >>> implicit_friction_flow(0.5, friction=2.0).factor.number
        0.5
    """
    return MomentumMap((Matrix(1.0) + _damping(time, friction, mass)).inverse)


def ornstein_uhlenbeck_flow(
    time: float, friction: MatrixLike, mass: MatrixLike = 1.0, temperature: float = 1.0
) -> MomentumMap:
    """Make the exact flow of dr = −CM⁻¹r dt + N(0, 2TC dt): r ← Er + N(0, T(M − EMEᵀ))
    with E = e^(−tCM⁻¹).

    Example:
        >>> flow = ornstein_uhlenbeck_flow(0.5, friction=2.0)
        >>> (
        ...     round(flow.factor.number, 4),
        ...     round(flow.covariance.number, 4),
        ... )  # 1/e, 1 − 1/e²
        (0.3679, 0.8647)
    """
    checks.check_number("temperature", temperature, 0)
    rate, m = -1.0 * _damping(time, friction, mass), Matrix(mass)
    factor = Matrix((torch.matrix_exp if rate.full else torch.exp)(rate.tensor))
    return MomentumMap(factor, temperature * (m - factor @ m @ factor.transposed))


def noise_flow(covariance: Matrix) -> MomentumMap:
    """Make r ← r + N(0, S).

    Example:
        >>> noise_flow(Matrix(0.25)).covariance.number
        0.25
    """
    return MomentumMap(covariance=covariance)


def refresh_flow(mass: MatrixLike = 1.0) -> MomentumMap:
    """Make r ~ N(0, M), whatever r was.

    Example:
        >>> flow = refresh_flow(mass=4.0)
        >>> flow.factor.number, flow.covariance.number
        (0.0, 4.0)
    """
    return MomentumMap(Matrix(0.0), as_matrix(mass, "mass", positive=True))


def leapfrog(
    step_size: float, num_steps: int = 1, mass: MatrixLike = 1.0
) -> list[Flow]:
    """List a leapfrog trajectory: half a kick, drift, kick, drift, …, half a kick
    (Neal, 2011, eq. 5.18–5.20).

    Example:
        >>> [
        ...     f"{type(flow).__name__} {flow.time}"
        ...     for flow in leapfrog(0.5, num_steps=2)
        ... ]
        ['Kick 0.25', 'Drift 0.5', 'Kick 0.5', 'Drift 0.5', 'Kick 0.25']
    """
    checks.check_count("num_steps", num_steps)
    drift, kick, half = Drift(step_size, mass), Kick(step_size), Kick(step_size / 2)
    return [half, *[drift, kick] * (num_steps - 1), drift, half]


def naive_sghmc(step_size: float, num_steps: int, mass: MatrixLike = 1.0) -> list[Flow]:
    """List naive SGHMC: a fresh momentum, and a leapfrog trajectory with one gradient a
    point (Chen et al., 2014, Section 3.1).

    Example:
        >>> [type(flow).__name__ for flow in naive_sghmc(0.5, num_steps=1)]
        ['MomentumMap', 'Kick', 'Drift', 'Kick']
    """
    return [refresh_flow(mass), *leapfrog(step_size, num_steps, mass)]


def sghmc(
    step_size: float,
    friction: MatrixLike,
    noise_estimate: MatrixLike = 0.0,
    mass: MatrixLike = 1.0,
    temperature: float = 1.0,
) -> list[Flow]:
    """List Algorithm 2 of Chen et al. (2014), with noise N(0, 2(TC − B̂)ε).

    Example:
        >>> drift, friction, kick, noise = sghmc(0.1, friction=3.0, noise_estimate=0.2)
        >>> round(friction.factor.number, 6), round(noise.covariance.number, 6)
        (0.7, 0.56)
    """
    return [
        Drift(step_size, mass),
        friction_flow(step_size, friction, mass),
        Kick(step_size),
        noise_flow(_injected(step_size, friction, noise_estimate, temperature)),
    ]


def explicit_euler_sghmc(*arguments, **settings) -> list[Flow]:
    """List the explicit Euler step: as :func:`sghmc`, with all flows from the old
    state.

    Example:
        >>> from sgmc.splittings import linear_chain
        >>> chain = linear_chain(explicit_euler_sghmc(0.1, friction=1.0), torch.eye(1))
        >>> round(float(chain.stationary_covariance()[0, 0]), 4)  # 1 is right
        1.114
    """
    return [AtOnce(sghmc(*arguments, **settings))]


def palindromic(
    step_size: float,
    friction: MatrixLike,
    noise_estimate: MatrixLike = 0.0,
    mass: MatrixLike = 1.0,
) -> list[Flow]:
    """List the step of SGNUTS: drift, kick with midpoint friction, r' = r − ε∇Ũ(θ) −
    ½εCM⁻¹(r + r') + N(0, 2(C − B̂)ε), drift.

    With the mass M − ½εC it is :func:`sghmc` with the mass M, half a drift later, in
    position and velocity. With C = A + ½εV and B̂ = ½εV it is the integrator of Matthews
    and Weare (2018).

    Example:
        >>> from sgmc.splittings import linear_chain
        >>> chain = linear_chain(
        ...     palindromic(0.1, 1.0, noise_estimate=0.2), torch.eye(1), 4.0
        ... )
        >>> round(float(chain.stationary_covariance()[0, 0]), 4)  # with B̂ = ½εV
        1.0
    """
    return [
        Drift(step_size / 2, mass),
        friction_flow(step_size / 2, friction, mass),
        Kick(step_size),
        noise_flow(_injected(step_size, friction, noise_estimate)),
        implicit_friction_flow(step_size / 2, friction, mass),
        Drift(step_size / 2, mass),
    ]


def baoab(
    step_size: float,
    friction: MatrixLike,
    mass: MatrixLike = 1.0,
    temperature: float = 1.0,
) -> list[Flow]:
    """List BAOAB (Leimkuhler and Matthews, 2013), with halves of all flows but the
    middle one.

    Example:
        >>> from sgmc.splittings import Splitting, linear_chain
        >>> Splitting(baoab(0.5, friction=1.0)).num_steps
        1
        >>> chain = linear_chain(baoab(0.5, friction=1.0), torch.eye(1))
        >>> round(
        ...     float(chain.stationary_covariance()[0, 0]), 6
        ... )  # exact at any step size
        1.0
    """
    kick, drift = Kick(step_size / 2), Drift(step_size / 2, mass)
    middle = ornstein_uhlenbeck_flow(step_size, friction, mass, temperature)
    return [kick, drift, middle, drift, kick]


def obabo(
    step_size: float,
    friction: MatrixLike,
    mass: MatrixLike = 1.0,
    temperature: float = 1.0,
) -> list[Flow]:
    """List OBABO: half an Ornstein–Uhlenbeck flow on either side of a leapfrog step
    (Bussi and Parrinello, 2007).

    Example:
        >>> from sgmc.splittings import linear_chain
        >>> chain = linear_chain(obabo(0.5, friction=1.0), torch.eye(1))
        >>> round(float(chain.stationary_covariance()[0, 0]), 4)  # leapfrog's error
        1.0667
    """
    half = ornstein_uhlenbeck_flow(step_size / 2, friction, mass, temperature)
    return [half, *leapfrog(step_size, mass=mass), half]


def ubu(
    step_size: float,
    friction: MatrixLike,
    mass: MatrixLike = 1.0,
    temperature: float = 1.0,
) -> list[Flow]:
    """List UBU (Sanz-Serna and Zygalakis, 2021): a kick between free halves.

    Example:
        >>> from sgmc.splittings import linear_chain
        >>> chain = linear_chain(ubu(0.5, friction=1.0), torch.eye(1))
        >>> round(float(chain.stationary_covariance()[0, 0]), 4)
        0.9586
    """
    half = Free(step_size / 2, friction, mass, temperature)
    return [half, Kick(step_size), half]


def sgld(
    step_size: float,
    noise_estimate: MatrixLike = 0.0,
    temperature: float = 1.0,
    mass: MatrixLike = 1.0,
) -> list[Flow]:
    """List the step of SGLD, θ ← θ − ηM⁻¹∇Ũ(θ) + N(0, 2η(TM⁻¹ − M⁻¹B̂M⁻¹)) (Welling and
    Teh, 2011, eq. 4, with M = 1).

    Example:
        >>> from sgmc.splittings import linear_chain
        >>> chain = linear_chain(sgld(0.1), torch.eye(1))
        >>> round(float(chain.stationary_covariance()[0, 0]), 4)  # 1/(1 − η/2)
        1.0526
    """
    inverse = as_matrix(mass, "mass", positive=True).inverse
    noise = _injected(step_size, mass, noise_estimate, temperature)
    return [Descent(step_size, inverse @ noise @ inverse, mass)]


def _check_covariance(covariance: Matrix) -> None:
    checks.check_instance("covariance", covariance, Matrix, "Matrix(0.5)")
    as_matrix(covariance, "covariance")


def _damping(time: float, friction: MatrixLike, mass: MatrixLike) -> Matrix:
    checks.check_number("time", time, 0)
    checks.check_dims(friction=friction, mass=mass)
    inverse = as_matrix(mass, "mass", positive=True).inverse
    return time * (as_matrix(friction, "friction") @ inverse)  # tCM⁻¹


def _injected(step_size, friction, noise_estimate, temperature=1.0) -> Matrix:
    checks.check_positive("step_size", step_size)
    checks.check_number("temperature", temperature, 0)
    checks.check_dims(friction=friction, noise_estimate=noise_estimate)
    c = as_matrix(friction, "friction")
    left = spare(temperature, c, noise_estimate, "friction")
    return 2 * step_size * left  # 2(TC − B̂)ε


def _law(dim: int, **given: Tensor) -> Law:
    """Make F, the identity but for the effects of position (x) and momentum (r) on each
    other, and Q, with the momentum's noise.
    """
    one = torch.eye(dim, dtype=torch.float64)
    part = {"xr": 0 * one, "rx": 0 * one, "rr": one, "noise": 0 * one} | given
    rows = [one, part["xr"]], [part["rx"], part["rr"]]
    transition = torch.cat([torch.cat(row, 1) for row in rows])
    return transition, torch.block_diag(0 * one, part["noise"])
