"""What the appendix says of reversed steps: exact algebra, each with its control."""

import pytest
import torch

from sgmc.splittings import LinearChain, flows, linear_chain, sghmc_chain

DOUBLE = torch.float64
CLOSE = dict(rtol=1e-11, atol=1e-12)
STEP = 0.3
IDENTITY = torch.eye(3, dtype=DOUBLE)


def symmetric(*rows):
    """A symmetric matrix from the rows of its lower half."""
    lower = torch.zeros(len(rows), len(rows), dtype=DOUBLE)
    for i, row in enumerate(rows):
        lower[i, : i + 1] = torch.tensor(row, dtype=DOUBLE)
    return lower + lower.tril(-1).T


PRECISION = symmetric([1.0], [0.4, 2.0], [0.0, -0.3, 0.5])
MASS = symmetric([1.5], [0.3, 0.9], [-0.2, 0.1, 2.0])
FRICTION = symmetric([2.0], [0.5, 3.0], [0.0, 0.2, 1.0])
NOISE = symmetric([4.0], [1.0, 2.0], [0.0, 0.5, 3.0])
LIGHTER = MASS - 0.5 * STEP * FRICTION


def gradient(position):
    """Of U = ½θᵀAθ + ¼Σθ⁴, which is neither quadratic nor a sum over the
    coordinates.
    """
    return position @ PRECISION + position**3


def follow(splitting, position, velocity, mass, seed):
    """Follow flows from a position and a velocity; return both."""
    position, momentum = position.clone(), velocity @ mass
    flows.advance(
        splitting, position, momentum, gradient, torch.Generator().manual_seed(seed)
    )
    return position, momentum @ torch.linalg.inv(mass)


@pytest.mark.parametrize(
    "mass, same", [(LIGHTER, True), (MASS, False)], ids=["M − ½εC", "M"]
)
def test_drift_and_kick_is_a_palindromic_step_of_a_lighter_mass_half_a_drift_later(
    mass, same
):
    """Path by path, on the same noise, for an energy that is not quadratic."""
    position, velocity = torch.randn(
        2, 50, 3, generator=torch.Generator().manual_seed(1), dtype=DOUBLE
    )
    estimate = 0.1 * FRICTION
    moved = follow(
        flows.sghmc(STEP, FRICTION, estimate, MASS), position, velocity, MASS, seed=2
    )
    later = follow(
        flows.palindromic(STEP, FRICTION, estimate, mass),
        position + 0.5 * STEP * velocity,
        velocity,
        mass,
        seed=2,
    )
    back = later[0] - 0.5 * STEP * later[1], later[1]
    difference = max(
        float((one - other).abs().max()) for one, other in zip(moved, back, strict=True)
    )
    assert difference < 1e-12 if same else difference > 0.1


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_the_law_of_algorithm_two_with_matrices_that_do_not_commute(temperature):
    """Cov θ = T(A⁻¹ + ¼ε²K), Cov r = T MKM, Cov(θ, r) = −½εT KM with K = (M − ½εC −
    ¼ε²A)⁻¹, gradient noise accounted for.
    """
    estimate = 0.5 * STEP * NOISE
    # TC exceeds the estimate, and the mass still exceeds ½εC
    friction = FRICTION + estimate / temperature
    mass = 3 * MASS
    law = sghmc_chain(
        PRECISION, STEP, friction, NOISE, estimate, mass, temperature
    ).stationary_covariance()
    wide = torch.linalg.inv(mass - 0.5 * STEP * friction - 0.25 * STEP**2 * PRECISION)
    position, cross = (
        torch.linalg.inv(PRECISION) + 0.25 * STEP**2 * wide,
        -0.5 * STEP * wide @ mass,
    )
    expected = torch.cat(
        [torch.cat([position, cross], 1), torch.cat([cross.T, mass @ wide @ mass], 1)]
    )
    torch.testing.assert_close(law, temperature * expected, **CLOSE)


def broken_balance(chain):
    """By how much (z, z') and (Fz', Fz) differ in covariance: the largest entry of FΣF
    − Σ and of FGΣF − (GΣ)ᵀ.
    """
    dim = len(chain.transition) // 2
    flip = torch.diag(torch.cat([torch.ones(dim), -torch.ones(dim)])).double()
    covariance = chain.stationary_covariance()
    lagged = chain.transition @ covariance
    return max(
        float((flip @ covariance @ flip - covariance).abs().max()),
        float((flip @ lagged @ flip - lagged.T).abs().max()),
    )


def heated(precision, friction, temperature):
    """The palindromic step whose noise estimate is wrong by B − B̂ = C(T − 1), with B̂
    = 0.
    """
    excess = friction @ (temperature - torch.eye(len(friction), dtype=DOUBLE))
    return linear_chain(
        flows.palindromic(STEP, friction, 0.0), precision, excess / (0.5 * STEP)
    )


def test_coordinates_that_decouple_are_reversible_each_at_its_own_temperature():
    """B − B̂ is no multiple of C, and the step is reversible all the same: the first
    two coordinates at T = 1, the third at 2.5.
    """
    temperature = torch.diag(torch.tensor([1.0, 1.0, 2.5], dtype=DOUBLE))
    precision = torch.block_diag(PRECISION[:2, :2], torch.tensor([[0.7]], dtype=DOUBLE))
    friction = torch.block_diag(FRICTION[:2, :2], torch.tensor([[1.3]], dtype=DOUBLE))
    chain = heated(precision, friction, temperature)
    assert broken_balance(chain) < 1e-12
    law = torch.block_diag(
        temperature @ torch.linalg.inv(precision),
        temperature @ torch.linalg.inv(IDENTITY - 0.25 * STEP**2 * precision),
    )
    torch.testing.assert_close(chain.stationary_covariance(), law, **CLOSE)


def test_the_curvature_as_noise_with_numbers_for_friction_and_estimate_is_reversible():
    """V ∝ A, the case of a posterior near its mode: every direction has a temperature
    of its own.
    """
    chain = linear_chain(flows.palindromic(STEP, 2.0, 0.3), PRECISION, 5 * PRECISION)
    assert broken_balance(chain) < 1e-12
    temperature = IDENTITY + (2.5 * STEP * PRECISION - 0.3 * IDENTITY) / 2.0
    torch.testing.assert_close(
        chain.stationary_covariance()[:3, :3],
        temperature @ torch.linalg.inv(PRECISION),
        **CLOSE,
    )


@pytest.mark.parametrize(
    "precision, friction",
    [
        (PRECISION, IDENTITY),
        (torch.diag(torch.tensor([1.0, 2.0, 0.5], dtype=DOUBLE)), FRICTION),
    ],
    ids=["T and A do not commute", "T is not symmetric"],
)
def test_otherwise_no_law_is_reversed(precision, friction):
    """The stationary law is the only candidate, and balance up to the flip fails in its
    covariances.
    """
    # B − B̂, and T = I + C⁻¹(B − B̂)
    excess = torch.diag(torch.tensor([0.0, 1.0, 0.5], dtype=DOUBLE))
    chain = linear_chain(
        flows.palindromic(STEP, friction, 0.0), precision, excess / (0.5 * STEP)
    )
    assert broken_balance(chain) > 0.01


def test_which_of_drift_and_kick_is_first_matters_when_the_momentum_is_drawn_afresh():
    """On U = ½θ² with ε = 0.1 and C = 3, by exact variances; with the momentum kept the
    positions have one law.
    """
    one = torch.eye(1, dtype=DOUBLE)
    afresh = LinearChain(
        torch.diag(torch.tensor([1.0, 0.0], dtype=DOUBLE)),
        torch.diag(torch.tensor([0.0, 1.0], dtype=DOUBLE)),
    )
    drift_first = flows.sghmc(0.1, 3.0)
    kick_first = [*drift_first[1:], drift_first[0]]
    variances = {}
    for name, splitting in (("drift", drift_first), ("kick", kick_first)):
        step = linear_chain(splitting, one)
        variances[name, "kept"] = float(step.stationary_covariance()[0, 0])
        for m in (2, 50):
            variances[name, m] = float(
                afresh.then(step.power(m)).stationary_covariance()[0, 0]
            )
    assert variances["drift", "kept"] == pytest.approx(
        variances["kick", "kept"], rel=1e-12
    )
    assert [variances["drift", 2], variances["kick", 2]] == pytest.approx(
        [1.737, 0.700], abs=0.001
    )
    assert [variances["drift", 50], variances["kick", 50]] == pytest.approx(
        [1.0036, 1.0016], abs=0.0001
    )
    # a random walk that never hears of U
    with pytest.raises(ValueError, match="no stationary law"):
        afresh.then(linear_chain(drift_first, one)).stationary_covariance()
    assert float(
        afresh.then(linear_chain(kick_first, one)).stationary_covariance()[0, 0]
    ) == pytest.approx(0.548, abs=0.001)
