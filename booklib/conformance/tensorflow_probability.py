"""The laws of *TensorFlow Probability* (Dillon et al., 2017), version 0.25.0.

Its SG-MCMC are two optimisers, files in ``python/optimizer``; ``tfp.mcmc`` and
``tfp.experimental.mcmc`` have kernels with exact gradients alone. Losses are means,
which ``data_size`` or ``total_num_examples`` multiplies: a problem's U is of the sum.
"""

from functools import cache

import torch

from booklib.conformance.verdicts import Laws, Problem
from sgmc.splittings import flows

CHAINS = 20_000  # the number of chains by which a law is simulated here
BIAS = 1e-8  # the default of diagonal_bias


def sgld(given: dict, problem: Problem) -> Laws:
    """sgld.py:259–294: θ ← θ − ½ηNGg + N(0, ηG), where η is ``learning_rate``, N is
    ``data_size``, G = (V + λ)^−½ and V is the running mean of g², which begins at 1.
    With a decay rate of 1 it stays what it is, and this is SGLD with the mass 1/G,
    right for every N. Li et al. (2016), Algorithm 1, have G = 1/(λ + √V), where λ is
    the docstring's "term added to the diagonal": no difference at the default of 1e-8.
    """
    size, small = given["learning_rate"] / 2, given.get("diagonal_bias", BIAS)
    one = torch.ones_like(problem.curvature)
    learned = one * torch.tensor(given.get("rms", 1.0), dtype=torch.float64)
    return Laws(
        code=flows.sgld(size, mass=(learned + small).sqrt()),
        documentation=flows.sgld(size, mass=learned.sqrt() + small),
    )


def variational_sgd(given: dict, problem: Problem) -> Laws:
    """variational_sgd.py:173–244: θ ← θ − hg, where h is the smaller of 2S/(N·Sv) and
    ``max_learning_rate``; S, ``batch_size``, cancels. With v = Var g, h is that of
    Mandt et al. (2017), corollary 1, by which SGD on a mean loss has the posterior's
    variance.

    v is to be a running variance: v ← v − (1 − ρ)(v − ρδ²), where δ is the gradient
    less its running mean. Its factor ``iterations < 1`` (:192) makes it move in the
    first step alone, where it should rest, so v stays (1 − ρ)ρg₀² of the first gradient
    g₀.

    "If the sum was taken set this [the batch size] to 1": documented is the law of the
    mean, so a gradient that is S times larger needs the S-th part of h; as S cancels, h
    is the (S²)-th part, with that of v right.
    """
    count = given["total_num_examples"]
    summed = given.get("summed", 1)
    numbers = (given["preconditioner_decay_rate"], given["burnin"], summed, count)
    numbers += (given.get("max_learning_rate", 1.0), problem.gradient_variance)
    single = given.get("use_single_learning_rate", False)
    curvature = tuple(problem.curvature.tolist())
    code, documentation = (
        torch.tensor(_variational(curvature, single, fixed, *numbers))
        for fixed in (False, True)
    )
    return Laws(code=code, documentation=documentation, error=2 / CHAINS**0.5)


@cache
def _variational(
    curvature: tuple[float, ...],
    single: bool,
    fixed: bool,
    decay: float,
    burnin: int,
    summed: int,
    count: int,
    largest: float,
    variance: float,
    steps: int = 400,
) -> list[float]:
    """Simulate the optimiser, with its running variance corrected or not."""
    generator = torch.Generator().manual_seed(7)
    a = torch.tensor(curvature)[:, None].expand(-1, CHAINS) * summed / count
    theta, mean, second = (torch.zeros(a.shape) for _ in range(3))
    sd = summed * variance**0.5 / count
    for step in range(burnin + steps):
        gradient = a * theta + sd * torch.randn(a.shape, generator=generator)
        delta = gradient - mean
        mean = mean + delta * (1.0 if step == 0 else 1 - decay)
        if (step > 0) == fixed:
            second = second - (1 - decay) * (second - decay * delta**2)
        used = second.mean() if single else second
        size = 2 / (count * used.clamp(1e-12, 1e12)) * (summed if fixed else 1)
        size = size.clamp(max=1e-6 if step < burnin else largest)
        theta = theta - size * gradient
    return theta.square().mean(1).tolist()


LAWS = {
    "StochasticGradientLangevinDynamics": sgld,
    "VariationalSGD": variational_sgd,
}


def observed(cell: dict) -> tuple[bool, str]:
    """Judge the cells that have no exact law."""
    found, given = cell["observed"], cell["given"]
    if "without_noise" in found:
        # sgld.py:260 asks for iterations > burnin, with a count from 0.
        without, asked = found["without_noise"], given["burnin"]
        return without == asked, f"burnin={asked} has {without} steps without noise"
    if "change" in found:
        return _with_moving_preconditioner(found["change"], given)
    if "sizes" in found:
        return _schedule(found, given)
    if "difference" in found:
        what = "a state read again goes on"
        if cell["test"] == "two states":
            what = "another optimiser changes nothing"
        return found["difference"] == 0, f"{what}, difference {found['difference']:g}"
    return bool(found["finite"]) and found["moved"] > 0, "finite, and moves"


def _with_moving_preconditioner(change: float, given: dict) -> tuple[bool, str]:
    """Li et al. (2016), Algorithm 1: ½η(−Gg + Γ), Γ = ∂G/∂θ, of one step's mean."""
    decay, a = given["preconditioner_decay_rate"], given["curvature"]
    gradient = a * given["theta"]
    square = decay * given["rms"] + (1 - decay) * gradient**2
    gamma = -(1 - decay) * square**-1.5 * gradient * a
    half = given["learning_rate"] / 2
    expected = half * (-gradient / square**0.5 + gamma)
    text = f"a step with Γ has the mean {expected:.4f}, found {change:.4f}"
    return abs(change - expected) < 1e-5, text


def _schedule(found: dict, given: dict) -> tuple[bool, str]:
    """A polynomial decay of power 1 over five steps; half the rate is η."""
    end = given["end_learning_rate"]
    if not found["finite"]:
        return False, f"not finite where the learning rate is {end:g}"
    asked = [(end + (0.1 - end) * max(1 - k / 5, 0)) / 2 for k in range(7)]
    off = max(abs(x - y) for x, y in zip(found["sizes"], asked, strict=True))
    return off < 1e-6, f"the step follows its schedule, difference {off:.1g}"
