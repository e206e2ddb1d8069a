"""The exact law of a splitting on the bowl whose minibatches come in an order, by
recursion of moments.
"""

import pytest
import torch

from booklib.page.prices import ordered_price
from sgmc.minibatches import Fresh, Passes, Sweeps
from sgmc.splittings import flows, linear_chain
from tests.checks import z_bound

ONE = torch.eye(1, dtype=torch.float64)
NOISE, LENGTH, STEP_SIZE = 4.0, 10, 0.1  # V, and the minibatches of a pass


def direction(step):
    """Where a gradient of 1 moves (θ, r) from 0, without the injected noise."""
    position, momentum = torch.zeros(2, 1, 1, dtype=torch.float64)
    for flow in step:
        if getattr(flow, "covariance", None) is None:
            flow.move(position, momentum, torch.ones_like, torch.Generator())
    return torch.cat([position[0], momentum[0]])


def variances(friction, sweeps):
    """The stationary variance of θ after each step of a pass, or of a sweep, from the
    joint covariance of (θ, r) and the errors of the pass, step by step.
    """
    step = flows.palindromic(STEP_SIZE, friction)
    move, injected = linear_chain(step, ONE)
    errors = torch.eye(LENGTH, dtype=torch.float64) - 1 / LENGTH
    errors = NOISE * LENGTH / (LENGTH - 1) * errors
    order = list(range(LENGTH))
    order = order + order[::-1] if sweeps else order
    joint = torch.eye(2 + LENGTH, dtype=torch.float64)
    for _ in range(60):
        joint = torch.block_diag(joint[:2, :2], errors)  # a new shuffle
        found = []
        for place in order:
            moved = torch.eye(2 + LENGTH, dtype=torch.float64)
            moved[:2, :2], moved[:2, 2 + place] = move, direction(step)
            joint = moved @ joint @ moved.T
            joint[:2, :2] += injected
            found.append(joint[0, 0])
    return torch.stack(found)


@pytest.mark.parametrize(("friction", "fresh"), [(1.0, 0.200), (0.5, 0.400)])
def test_the_excess_of_the_variance_with_fresh_minibatches(friction, fresh):
    step = flows.palindromic(STEP_SIZE, friction)
    found = linear_chain(step, ONE, NOISE).stationary_covariance()[0, 0] - 1
    assert float(found) == pytest.approx(fresh, abs=5e-5)


@pytest.mark.parametrize(
    ("friction", "sweeps", "average", "at_the_end"),
    [
        (1.0, False, 0.0147, 0.0159),
        (1.0, True, 0.0118, 0.0172),
        (0.5, False, 0.0323, 0.0345),
        (0.5, True, 0.0219, 0.0254),
    ],
)
def test_the_excess_of_the_variance_in_passes_and_sweeps(
    friction, sweeps, average, at_the_end
):
    """Averaged over the steps, and after a pass or a whole sweep."""
    found = variances(friction, sweeps) - 1
    assert float(found.mean()) == pytest.approx(average, abs=5e-5)
    assert float(found[-1]) == pytest.approx(at_the_end, abs=5e-5)
    step = flows.palindromic(STEP_SIZE, friction)
    excess = ordered_price(step, NOISE, LENGTH, sweeps).excess
    assert float(found.mean()) == pytest.approx(excess, abs=1e-10)


@pytest.mark.parametrize("rule", [Fresh(), Passes(), Sweeps()], ids=str)
def test_minibatches_by_the_rules_make_these_variances(rule, generator):
    """What the errors of real minibatches add to (θ, r), without the injected noise,
    which is independent of them.
    """
    step = flows.palindromic(STEP_SIZE, 1.0)
    chain, enters = linear_chain(step, ONE), direction(step)
    numbers = torch.randn(2 * LENGTH, generator=generator, dtype=torch.float64)
    share = 1 / 2 - 1 / (2 * LENGTH)  # of two numbers without replacement
    numbers = (numbers - numbers.mean()) * (NOISE / share / numbers.var()) ** 0.5
    chains, state, squares = 4_000, torch.zeros(4_000, 2, dtype=torch.float64), []
    for k in range(10 * 2 * LENGTH):
        errors = numbers[rule.indices(2 * LENGTH, 2, chains, 5, k)].mean(-1)
        state = state @ chain.transition.T + errors[:, None] * enters
        squares.append(state[:, 0].square())
    each = torch.stack(squares[-4 * LENGTH :]).mean(0)  # of two sweeps
    if isinstance(rule, Fresh):
        expected = linear_chain(step, ONE, NOISE).stationary_covariance()[0, 0]
    else:
        expected = variances(1.0, isinstance(rule, Sweeps)).mean()
    expected = expected - chain.stationary_covariance()[0, 0]
    assert abs(each.mean() - expected) < z_bound(1) * each.std() / chains**0.5
