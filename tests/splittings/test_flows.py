"""Flows: what each one does to a basis is its own linear law, and what splittings make
is what was written by hand, to rounding.
"""

import inspect
import math

import pytest
import torch
from scipy.linalg import expm

from sgmc.integrators import leapfrog
from sgmc.matrices import Matrix
from sgmc.splittings import LinearChain, flows, linear_chain
from sgmc.splittings.flows import (
    AtOnce,
    Descent,
    Drift,
    Free,
    Kick,
    MomentumMap,
    advance,
)

DOUBLE = torch.float64
EYE, ZERO = torch.eye(2, dtype=DOUBLE), torch.zeros(2, 2, dtype=DOUBLE)
PRECISION = torch.linalg.inv(torch.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=DOUBLE))
NOISE = torch.tensor([[4.0, 1.0], [1.0, 2.0]], dtype=DOUBLE)
DIAGONAL = torch.tensor([0.5, 2.0], dtype=DOUBLE)
FULL_MASS = torch.tensor([[1.5, 0.3], [0.3, 0.8]], dtype=DOUBLE)
# does not commute with the mass
FULL_FRICTION = torch.tensor([[2.0, -0.5], [-0.5, 3.0]], dtype=DOUBLE)
MASSES = {"number": 1.7, "diagonal": DIAGONAL, "full": FULL_MASS}
FRICTIONS = {
    "number": 1.3,
    "diagonal": torch.tensor([1.1, 0.4], dtype=DOUBLE),
    "full": FULL_FRICTION,
}
TEMPERATURES = [1.0, 0.5]
CLOSE = dict(rtol=1e-12, atol=1e-12)


def full(matrix):
    """Write a number or a diagonal out."""
    if not isinstance(matrix, torch.Tensor):
        return matrix * EYE
    return torch.diag(matrix) if matrix.ndim == 1 else matrix


def blocks(*quarters):
    return torch.cat([torch.cat(quarters[:2], 1), torch.cat(quarters[2:], 1)])


def exponential(matrix):
    """Take the exponential by SciPy's scaling and squaring, which the package does not
    use.
    """
    return torch.from_numpy(expm(matrix.numpy()))


# What a list of flows does, read off its moves


class Numbers:
    """In place of random numbers, given ones: a stream of inputs, each of one draw, for
    the injected noise and the gradients' alike.
    """

    def __init__(self, like, inputs=None):
        self.like, self.inputs, self.taken = like, inputs, 0

    def take(self):
        self.taken += 1
        return (
            torch.zeros_like(self.like)
            if self.inputs is None
            else self.inputs[self.taken - 1]
        )


def moved(splitting, start, inputs=None):
    """Follow the flows from (θ, r) in the columns of ``start``, on given inputs: the
    columns of the ends, and the number of inputs.
    """
    position, momentum = start[:2].T.clone(), start[2:].T.clone()
    numbers, root = Numbers(position, inputs), Matrix(NOISE).root.value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flows, "normal_like", lambda *_: numbers.take())
        advance(
            splitting,
            position,
            momentum,
            lambda position: position @ PRECISION + numbers.take() @ root,
            None,
        )
    return torch.cat([position.T, momentum.T]), numbers.taken


def law_of_moves(splitting):
    """Read F off the images of a basis, and Q = RRᵀ off those of unit inputs, all from
    the moves themselves.
    """
    transition, number = moved(splitting, torch.eye(4, dtype=DOUBLE))
    if number == 0:
        return transition, torch.zeros(4, 4, dtype=DOUBLE)
    units = (
        torch.eye(2 * number, dtype=DOUBLE)
        .reshape(2 * number, number, 2)
        .transpose(0, 1)
    )
    root, _ = moved(splitting, torch.zeros(4, 2 * number, dtype=DOUBLE), units)
    return transition, root @ root.T


def with_momentum(chain):
    """Write the law of a flow without momenta as one that leaves them where they
    are.
    """
    if len(chain.transition) == 4:
        return chain
    return LinearChain(
        torch.block_diag(chain.transition, EYE),
        torch.block_diag(chain.noise_covariance, ZERO),
    )


PIECES = {
    **{f"drift, {name} mass": [Drift(0.3, mass)] for name, mass in MASSES.items()},
    "kick": [Kick(0.3)],
    "momentum map": [MomentumMap(Matrix(FULL_FRICTION), Matrix(FULL_MASS))],
    "momentum map that does nothing": [MomentumMap()],
    "noise": [flows.noise_flow(Matrix(FULL_MASS))],
    "refreshment": [flows.refresh_flow(FULL_MASS)],
    "number refreshment": [flows.refresh_flow()],
    "free, numbers": [Free(0.3, 1.3, 1.7, 0.5)],
    "free, diagonals": [Free(0.3, FRICTIONS["diagonal"], DIAGONAL)],
    "free, diagonal friction": [Free(0.3, FRICTIONS["diagonal"], 1.7)],
    "free, diagonal mass": [Free(0.3, 1.3, DIAGONAL)],
    "descent": [Descent(0.3, Matrix(FULL_MASS))],
    **{
        f"descent, {name} mass": [Descent(0.3, Matrix(DIAGONAL), mass)]
        for name, mass in MASSES.items()
    },
    "at once": [
        AtOnce(
            [
                Drift(0.3, FULL_MASS),
                Kick(0.2),
                flows.friction_flow(0.1, 2.0),
                flows.noise_flow(Matrix(DIAGONAL)),
            ]
        )
    ],
    "at once, twice a kick": [AtOnce([Kick(0.2), Kick(0.3), Drift(0.1)])],
    **{
        f"{maker.__name__}, {friction} friction, {mass} mass": [
            maker(0.3, FRICTIONS[friction], MASSES[mass])
        ]
        for maker in (
            flows.friction_flow,
            flows.implicit_friction_flow,
            flows.ornstein_uhlenbeck_flow,
        )
        for friction in FRICTIONS
        for mass in MASSES
    },
    "leapfrog": flows.leapfrog(0.3, 3, FULL_MASS),
    "naive SGHMC": flows.naive_sghmc(0.3, 3, FULL_MASS),
    "SGHMC": flows.sghmc(0.2, FULL_FRICTION, 0.1 * FULL_MASS, FULL_MASS, 0.9),
    "explicit Euler": flows.explicit_euler_sghmc(
        0.2, FULL_FRICTION, 0.1 * FULL_MASS, FULL_MASS, 0.9
    ),
    "palindromic": flows.palindromic(0.2, FULL_FRICTION, 0.1 * FULL_MASS, FULL_MASS),
    "BAOAB": flows.baoab(0.2, FULL_FRICTION, FULL_MASS, 0.9),
    "OBABO": flows.obabo(0.2, FULL_FRICTION, FULL_MASS, 0.9),
    "UBU": flows.ubu(0.2, FRICTIONS["diagonal"], DIAGONAL, 0.9),
    "SGLD": flows.sgld(0.2, 0.1 * FULL_MASS, 0.9, FULL_FRICTION),
}


@pytest.mark.parametrize("name", PIECES)
def test_the_law_of_a_flow_is_what_its_move_does(name):
    chain = with_momentum(linear_chain(PIECES[name], PRECISION, NOISE))
    transition, covariance = law_of_moves(PIECES[name])
    torch.testing.assert_close(chain.transition, transition, **CLOSE)
    torch.testing.assert_close(chain.noise_covariance, covariance, **CLOSE)


def test_every_flow_and_every_splitting_is_among_those_tested():
    """Who adds one finds out here that it wants an entry above."""
    met = {type(flow) for splitting in PIECES.values() for flow in splitting}
    classes = {
        thing
        for _, thing in inspect.getmembers(flows, inspect.isclass)
        if thing.__module__ == flows.__name__ and thing.__name__[0] != "_"
    }
    assert classes - met == {flows.Flow}
    makers = {
        name
        for name, thing in inspect.getmembers(flows, inspect.isfunction)
        if thing.__module__ == flows.__name__
    }
    assert {name for name in makers if name[0] != "_"} == {
        "advance", "baoab",
        "explicit_euler_sghmc", "friction_flow", "implicit_friction_flow", "leapfrog", "naive_sghmc", "noise_flow",
        "obabo", "ornstein_uhlenbeck_flow", "palindromic", "refresh_flow", "sghmc", "sgld", "ubu",
    }  # fmt: skip


def test_moves_are_in_place_and_draw_from_the_generator_alone(generator):
    """Where the given numbers above are real ones: the same generator, the same ends,
    and what is moved is what was given.
    """
    for splitting in PIECES.values():
        ends = []
        for _ in range(2):
            torch.manual_seed(len(ends))  # of no consequence
            position, momentum = (
                torch.ones(3, 2, dtype=DOUBLE),
                torch.ones(3, 2, dtype=DOUBLE),
            )
            kept = position, momentum
            advance(
                splitting,
                position,
                momentum,
                lambda position: position @ PRECISION,
                generator.manual_seed(1),
            )
            ends.append(torch.cat(kept))
        assert torch.equal(*ends)
    assert not torch.equal(ends[0][:3], torch.ones(3, 2, dtype=DOUBLE))


# The pieces by hand


@pytest.mark.parametrize("mass", MASSES)
def test_drift_and_kick_are_the_equations(mass):
    """θ ← θ + tM⁻¹r and r ← r − t∇Ũ(θ), with noise of variance t²V."""
    drift = Drift(0.3, MASSES[mass]).linear(PRECISION, NOISE)
    torch.testing.assert_close(
        drift[0],
        blocks(EYE, 0.3 * torch.linalg.inv(full(MASSES[mass])), ZERO, EYE),
        **CLOSE,
    )
    assert not drift[1].any()
    transition, covariance = Kick(0.3).linear(PRECISION, NOISE)
    torch.testing.assert_close(
        transition, blocks(EYE, ZERO, -0.3 * PRECISION, EYE), **CLOSE
    )
    torch.testing.assert_close(
        covariance, blocks(ZERO, ZERO, ZERO, 0.09 * NOISE), **CLOSE
    )


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("friction", FRICTIONS)
def test_frictions_are_the_equations(friction, mass):
    friction, mass = FRICTIONS[friction], MASSES[mass]
    damping = 0.3 * full(friction) @ torch.linalg.inv(full(mass))
    for flow, factor in (
        (flows.friction_flow(0.3, friction, mass), EYE - damping),
        (
            flows.implicit_friction_flow(0.3, friction, mass),
            torch.linalg.inv(EYE + damping),
        ),
    ):
        transition, covariance = flow.linear(PRECISION, NOISE)
        torch.testing.assert_close(transition, torch.block_diag(EYE, factor), **CLOSE)
        assert not covariance.any()


def van_loan(drift, diffusion, time):
    """Solve dz = Gz dt + N(0, D dt) by Van Loan's (1978) matrix exponential: F = e^(tG)
    and Q.
    """
    size = len(drift)
    whole = exponential(
        time * blocks(-drift, diffusion, torch.zeros(size, size, dtype=DOUBLE), drift.T)
    )
    transition = whole[size:, size:].T
    return transition, transition @ whole[:size, size:]


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("friction", FRICTIONS)
def test_the_ornstein_uhlenbeck_flow_is_exact(friction, mass, temperature):
    friction, mass = FRICTIONS[friction], MASSES[mass]
    transition, covariance = flows.ornstein_uhlenbeck_flow(
        0.7, friction, mass, temperature
    ).linear(PRECISION, NOISE)
    expected = van_loan(
        -full(friction) @ torch.linalg.inv(full(mass)),
        2 * temperature * full(friction),
        0.7,
    )
    torch.testing.assert_close(transition, torch.block_diag(EYE, expected[0]), **CLOSE)
    torch.testing.assert_close(covariance, torch.block_diag(ZERO, expected[1]), **CLOSE)
    kept = temperature * full(mass)  # N(0, TM) stays
    torch.testing.assert_close(
        expected[0] @ kept @ expected[0].T + covariance[2:, 2:], kept, **CLOSE
    )


def test_the_ornstein_uhlenbeck_flow_of_numbers_in_closed_form():
    """r ← e^−γt r + N(0, TM(1 − e^−2γt)) with γ = C/M, which forgets everything in a
    long time.
    """
    flow = flows.ornstein_uhlenbeck_flow(0.7, 1.3, 1.7, 0.5)
    assert flow.factor.value == pytest.approx(math.exp(-0.7 * 1.3 / 1.7), rel=1e-14)
    assert flow.covariance.value == pytest.approx(
        0.5 * 1.7 * (1 - math.exp(-1.4 * 1.3 / 1.7)), rel=1e-14
    )
    for long, fresh in zip(
        flows.ornstein_uhlenbeck_flow(100.0, 2.0, FULL_MASS).linear(PRECISION, NOISE),
        flows.refresh_flow(FULL_MASS).linear(PRECISION, NOISE),
        strict=True,
    ):
        torch.testing.assert_close(long, fresh, **CLOSE)


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("mass", [1.7, DIAGONAL], ids=["number", "diagonal"])
@pytest.mark.parametrize(
    "friction", [1.3, 1e-2, FRICTIONS["diagonal"]], ids=["number", "small", "diagonal"]
)
def test_the_free_flow_is_exact(friction, mass, temperature):
    inverse = torch.linalg.inv(full(mass))
    law = Free(0.7, friction, mass, temperature).linear(PRECISION, NOISE)
    expected = van_loan(
        blocks(ZERO, inverse, ZERO, -full(friction) @ inverse),
        torch.block_diag(ZERO, 2 * temperature * full(friction)),
        0.7,
    )
    for one, other in zip(law, expected, strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("friction", [1e-1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
def test_the_free_flow_keeps_its_digits_at_small_friction(friction):
    """As γt → 0 the noise tends to that of a free particle, 2TCt(1, t/2M; t/2M,
    t²/3M²), entry by entry to relative rounding.
    """
    time, mass, temperature = 0.1, 1.7, 0.5
    _, covariance = Free(time, friction, mass, temperature).linear(
        torch.ones(1, 1, dtype=DOUBLE), torch.zeros(1, 1, dtype=DOUBLE)
    )
    drift = torch.tensor([[0.0, 1 / mass], [0.0, -friction / mass]], dtype=DOUBLE)
    _, expected = van_loan(
        drift,
        torch.tensor([[0.0, 0.0], [0.0, 2 * temperature * friction]], dtype=DOUBLE),
        time,
    )
    torch.testing.assert_close(covariance, expected, rtol=1e-9, atol=0)
    # What is left of the position's noise given the momentum's is the same in truth: a
    # quarter of it.
    left = covariance[0, 0] - covariance[0, 1] ** 2 / covariance[1, 1]
    torch.testing.assert_close(
        left / covariance[0, 0],
        torch.tensor(0.25, dtype=DOUBLE),
        rtol=friction + 1e-9,
        atol=0,
    )


@pytest.mark.parametrize(
    "settings",
    [
        dict(friction=FULL_FRICTION),
        dict(friction=1.0, mass=FULL_MASS),
        dict(friction=0.0),
        dict(friction=-DIAGONAL),
    ],
    ids=["full friction", "full mass", "no friction", "negative friction"],
)
def test_the_free_flow_refuses_what_it_has_no_formula_for(settings):
    with pytest.raises(ValueError, match=r"free flow.*positive"):
        flows.ubu(0.1, **settings)


def test_flows_at_once_all_read_the_old_state():
    """The increments add: a drift and a kick by themselves, and two noises whose
    variances add.
    """
    pieces = [
        Drift(0.3, FULL_MASS),
        Kick(0.2),
        flows.noise_flow(Matrix(0.5)),
        flows.noise_flow(Matrix(DIAGONAL)),
    ]
    transition, covariance = AtOnce(pieces).linear(PRECISION, NOISE)
    torch.testing.assert_close(
        transition,
        blocks(EYE, 0.3 * torch.linalg.inv(FULL_MASS), -0.2 * PRECISION, EYE),
        **CLOSE,
    )
    torch.testing.assert_close(
        covariance,
        torch.block_diag(ZERO, 0.04 * NOISE + 0.5 * EYE + torch.diag(DIAGONAL)),
        **CLOSE,
    )


# Splittings by hand; the references were the builders of the exact laws before there
# were flows


def sghmc_by_hand(
    step_size, friction, noise_estimate, mass, temperature, explicit=False
):
    """θ' = θ + εM⁻¹r; then r' = (I − εCM⁻¹)r − εAθ' + N(0, ε²V + 2ε(TC − B̂)); explicit
    Euler adds the increments of both.
    """
    friction, velocity = full(friction), step_size * torch.linalg.inv(full(mass))
    drift, kick = (
        blocks(EYE, velocity, ZERO, EYE),
        blocks(EYE, ZERO, -step_size * PRECISION, EYE - friction @ velocity),
    )
    covariance = step_size**2 * NOISE + 2 * step_size * (
        temperature * friction - full(noise_estimate)
    )
    return drift + kick - torch.eye(
        4, dtype=DOUBLE
    ) if explicit else kick @ drift, torch.block_diag(ZERO, covariance)


def naive_by_hand(step_size, num_steps, mass):
    """A fresh momentum, and half a kick, drift, kick, …, drift, half a kick, with noise
    of its own in every kick.
    """
    velocity = step_size * torch.linalg.inv(full(mass))
    transition, covariance = (
        torch.block_diag(EYE, ZERO),
        torch.block_diag(ZERO, full(mass)),
    )
    drift = blocks(EYE, velocity, ZERO, EYE)
    for index in range(num_steps + 1):
        length = step_size / 2 if index in (0, num_steps) else step_size
        kick = blocks(EYE, ZERO, -length * PRECISION, EYE)
        transition, covariance = (
            kick @ transition,
            kick @ covariance @ kick.T + torch.block_diag(ZERO, length**2 * NOISE),
        )
        if index < num_steps:
            transition, covariance = drift @ transition, drift @ covariance @ drift.T
    return transition, covariance


def palindromic_by_hand(step_size, friction, noise_estimate, mass):
    """r' = r − εAθ½ − ½εCM⁻¹(r + r') + N(0, ε²V + 2(C − B̂)ε), solved for r', at the
    middle of the drift.
    """
    inverse = torch.linalg.inv(full(mass))
    half = 0.5 * step_size * full(friction) @ inverse
    solve = torch.linalg.inv(EYE + half)
    drift = blocks(EYE, 0.5 * step_size * inverse, ZERO, EYE)
    kick = blocks(EYE, ZERO, -step_size * solve @ PRECISION, solve @ (EYE - half))
    covariance = (
        solve
        @ (
            step_size**2 * NOISE
            + 2 * step_size * (full(friction) - full(noise_estimate))
        )
        @ solve.T
    )
    return drift @ kick @ drift, drift @ torch.block_diag(ZERO, covariance) @ drift.T


def composed(*moves):
    """Compose moves (F, Q), in the order in which they are made."""
    transition, covariance = torch.eye(4, dtype=DOUBLE), torch.zeros(4, 4, dtype=DOUBLE)
    for move, noise in moves:
        transition, covariance = move @ transition, move @ covariance @ move.T + noise
    return transition, covariance


def pieces_by_hand(step_size, friction, mass, temperature):
    """Write down kick (B), drift (A), thermostat (O) and the free flow (U), each for
    half a step and the first three for a whole one.
    """
    inverse, friction = torch.linalg.inv(full(mass)), full(friction)
    free, heat = (
        blocks(ZERO, inverse, ZERO, -friction @ inverse),
        torch.block_diag(ZERO, 2 * temperature * friction),
    )
    made = {}
    for name, time in (("½", step_size / 2), ("", step_size)):
        made["B" + name] = (
            blocks(EYE, ZERO, -time * PRECISION, EYE),
            torch.block_diag(ZERO, time**2 * NOISE),
        )
        made["A" + name] = (
            blocks(EYE, time * inverse, ZERO, EYE),
            torch.zeros(4, 4, dtype=DOUBLE),
        )
        momentum = van_loan(-friction @ inverse, 2 * temperature * friction, time)
        made["O" + name] = (
            torch.block_diag(EYE, momentum[0]),
            torch.block_diag(ZERO, momentum[1]),
        )
        made["U" + name] = van_loan(free, heat, time)
    return made


def assert_law(splitting, expected):
    for one, other in zip(
        linear_chain(splitting, PRECISION, NOISE), expected, strict=True
    ):
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize(
    "estimate",
    [0.1, 0.1 * DIAGONAL, 0.1 * FULL_MASS],
    ids=["number", "diagonal", "full"],
)
@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("friction", FRICTIONS)
def test_splittings_with_a_noise_estimate_by_hand(friction, mass, estimate):
    friction, mass = FRICTIONS[friction], MASSES[mass]
    for temperature in TEMPERATURES:
        arguments = (0.2, friction, estimate, mass, temperature)
        assert_law(flows.sghmc(*arguments), sghmc_by_hand(*arguments))
        assert_law(
            flows.explicit_euler_sghmc(*arguments),
            sghmc_by_hand(*arguments, explicit=True),
        )
    assert_law(
        flows.palindromic(0.2, friction, estimate, mass),
        palindromic_by_hand(0.2, friction, estimate, mass),
    )


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize(
    "estimate",
    [0.1, 0.1 * DIAGONAL, 0.1 * FULL_MASS],
    ids=["number", "diagonal", "full"],
)
@pytest.mark.parametrize("mass", {"one": 1.0} | MASSES)
def test_sgld_by_hand(mass, estimate, temperature):
    mass = MASSES.get(mass, 1.0)
    inverse = torch.linalg.inv(full(mass))
    noise = 0.04 * inverse @ NOISE @ inverse + 0.4 * (
        temperature * inverse - inverse @ full(estimate) @ inverse
    )
    assert_law(
        flows.sgld(0.2, estimate, temperature, mass),
        (EYE - 0.2 * inverse @ PRECISION, noise),
    )


@pytest.mark.parametrize("num_steps", [1, 2, 5])
@pytest.mark.parametrize("mass", MASSES)
def test_leapfrog_trajectories_by_hand(mass, num_steps):
    mass = MASSES[mass]
    assert_law(
        flows.naive_sghmc(0.3, num_steps, mass), naive_by_hand(0.3, num_steps, mass)
    )
    start = torch.eye(4, dtype=DOUBLE)
    ends = leapfrog(
        lambda position: position @ PRECISION,
        start[:, :2],
        start[:, 2:],
        0.3,
        num_steps,
        mass,
    )
    chain = linear_chain(flows.leapfrog(0.3, num_steps, mass), PRECISION)
    torch.testing.assert_close(chain.transition, torch.cat(ends, -1).T, **CLOSE)
    assert not chain.noise_covariance.any()


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("friction", FRICTIONS)
def test_splittings_with_a_thermostat_by_hand(friction, mass, temperature):
    friction, mass = FRICTIONS[friction], MASSES[mass]
    piece = pieces_by_hand(0.4, friction, mass, temperature)
    splittings = {flows.baoab: "B½ A½ O A½ B½", flows.obabo: "O½ B½ A B½ O½"}
    if full(friction) is not friction and full(mass) is not mass:
        splittings[flows.ubu] = "U½ B U½"
    for maker, letters in splittings.items():
        assert_law(
            maker(0.4, friction, mass, temperature),
            composed(*(piece[letter] for letter in letters.split())),
        )


# What their laws are


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_the_palindromic_step_with_the_right_estimate_has_a_known_law_at_any_stable_step(
    share, mass
):
    """With B̂ = ½εV it is N(0, A⁻¹) × N(0, (M⁻¹ − ¼ε²M⁻¹AM⁻¹)⁻¹), gradient noise and
    all: exact in the positions, on a Gaussian.
    """
    mass, inverse = MASSES[mass], torch.linalg.inv(full(MASSES[mass]))
    step_size = float(
        share * 2 / torch.linalg.eigvals(inverse @ PRECISION).real.max().sqrt()
    )
    estimate = 0.5 * step_size * NOISE
    law = torch.block_diag(
        torch.linalg.inv(PRECISION),
        torch.linalg.inv(inverse - step_size**2 / 4 * inverse @ PRECISION @ inverse),
    )
    chain = linear_chain(
        flows.palindromic(step_size, FULL_FRICTION + estimate, estimate, mass),
        PRECISION,
        NOISE,
    )
    torch.testing.assert_close(
        chain.transition @ law @ chain.transition.T + chain.noise_covariance,
        law,
        **CLOSE,
    )
    torch.testing.assert_close(
        chain.stationary_covariance(), law, rtol=1e-10, atol=1e-10
    )


# What is refused


@pytest.mark.parametrize("settings", [dict(friction=-1.0), dict(friction=1.0, mass=0)])
@pytest.mark.parametrize(
    "maker", [flows.sghmc, flows.palindromic, flows.baoab, flows.obabo, flows.ubu]
)
def test_bad_frictions_and_masses_are_refused(maker, settings):
    """Whatever the splitting: otherwise its law is that of another one, or of none."""
    with pytest.raises(ValueError, match=r"(friction|mass|flow)"):
        maker(0.1, **settings)


REFUSED = [
    (lambda: flows.sghmc(-0.1, 1.0), r"\btime.*-0\.1\b"),
    (lambda: flows.sghmc(0.0, 1.0), r"step_size.*\b0\.0\b"),
    (lambda: flows.sghmc(0.1, 1.0, temperature=-1.0), r"temperature.*-1\.0\b"),
    (lambda: flows.sghmc(0.1, 1.0, 1.5), r"friction.*noise_estimate.*-0\.5\b"),
    (lambda: flows.sghmc(0.1, DIAGONAL, mass=torch.ones(3)), "coordinates"),
    (lambda: flows.palindromic(0.1, FULL_MASS, 2 * FULL_MASS), "noise_estimate"),
    (lambda: flows.sgld(0.1, noise_estimate=2.0), r"friction.*noise_estimate.*-1\b"),
    (lambda: flows.sgld(math.nan), "step_size.*nan"),
    (lambda: flows.baoab(0.1, 1.0, temperature=-1.0), r"temperature.*-1\b"),
    (lambda: flows.ubu(0.1, 1.0, temperature=-1.0), r"temperature.*-1\b"),
    (lambda: flows.leapfrog(torch.tensor([0.1, 0.2])), r"\btime.*tensor"),
    (lambda: flows.leapfrog(0.1, 0), r"num_steps.*\b0\b"),
    (lambda: flows.refresh_flow(-1.0), r"\bmass.*positive"),
    (lambda: flows.noise_flow(1.0), r"covariance.*Matrix.*\b1\.0$"),
    (lambda: Descent(0.1, Matrix(-1.0)), "covariance.*negative"),
    (lambda: MomentumMap(factor=0.5), r"factor.*Matrix.*\b0\.5$"),
    (lambda: Drift("0.1"), r"\btime.*'0.1'"),
    (lambda: Kick(None), r"\btime.*None"),
    (lambda: AtOnce(Drift(0.1)), "flows.*Drift"),
    (lambda: AtOnce([]), r"\bflows.*\b0$"),
    (lambda: AtOnce([Drift]), r"\bflows"),
]


@pytest.mark.parametrize(("make", "says"), REFUSED)
def test_bad_parameters_are_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()
