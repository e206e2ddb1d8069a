"""The benchmark of a step's cost: every program has the law of the job, the counts are
right, and the stored result is whole.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks import mixture
from benchmarks.mixture import (
    MEANS,
    MINIBATCH,
    PRINTED,
    Job,
    MixtureMeans,
    observations,
)
from benchmarks.step_cost import best_step, squares_time
from sgmc.splittings import sghmc_chain

needs_compiler = pytest.mark.skipif(
    not mixture.has_compiler(),
    reason="the C++ program is compiled by g++, and there is none",
)


def test_the_gradient_is_that_of_the_energy():
    posterior = MixtureMeans(torch.from_numpy(observations()))
    position = torch.tensor(
        [[-3.0, 3.0], [0.5, -1.0], [2.0, 2.0]], dtype=torch.float64, requires_grad=True
    )
    expected = torch.autograd.grad(posterior.energy(position).sum(), position)[0]
    torch.testing.assert_close(posterior.gradient(position.detach()), expected)


def test_the_energy_is_that_of_the_model():
    x = torch.from_numpy(observations())
    first, second = (
        torch.distributions.Normal(mean, 1.0).log_prob(x).exp() for mean in (-2.0, 1.0)
    )
    energy = (
        MixtureMeans(x).energy(torch.tensor([[-2.0, 1.0]], dtype=torch.float64))
        - 5 / 20
    )
    torch.testing.assert_close(energy[0], -torch.log((first + second) / 2).sum())


def law(job: Job) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the mode, ``(2,)``, and the standard deviations of the job's chain on the
    Gaussian there, step-size error and all, ``(2,)``.
    """
    posterior, position = (
        MixtureMeans(torch.from_numpy(observations())),
        torch.tensor([MEANS], dtype=torch.float64),
    )
    for _ in range(10):
        curvature = torch.autograd.functional.hessian(
            lambda x: posterior.energy(x[None])[0], position[0]
        )
        position = position - torch.linalg.solve(
            curvature, posterior.gradient(position)[0]
        )
    if job.batch_size is None:
        noise = torch.eye(2, dtype=torch.float64) * job.noise_variance
    else:
        total, size = len(observations()), job.batch_size
        gradients = posterior.per_example_gradients(position, posterior.gather(None))[0]
        noise = total * (total - size) / size * gradients.T.cov()
    chain = sghmc_chain(
        curvature, job.step_size, job.friction, noise, job.noise_estimate
    )
    return position[0], chain.stationary_covariance().diagonal()[:2].sqrt()


# Chains apart from the first 50 draws, in eight runs with seeds of their own; their
# means and variances give the errors. Of eight runs these are Student's with seven
# degrees of freedom: 8 for one of four statistics and six programs is passed by chance
# once in 500 times.
PROGRAMS = {
    "plain Python": (
        lambda job, draws, seed: mixture.plain_python(job, draws, seed),
        300,
    ),
    "NumPy": (lambda job, draws, seed: mixture.numpy_chain(job, draws, seed), 300),
    "sgmc": (lambda job, draws, seed: mixture.package(job, 20)(draws, seed), 60),
    "C++ plain": (
        lambda job, draws, seed: mixture.cpp_chain(job, draws, seed, "plain"),
        3_000,
    ),
    "C++ fast": (
        lambda job, draws, seed: mixture.cpp_chain(job, draws, seed, "fast"),
        3_000,
    ),
}


# The printed job with ten times its gradient noise, without which half of the heat
# would be missing, and not a twentieth.
LOUD = replace(PRINTED, noise_estimate=2.0, noise_variance=40.0)


@pytest.mark.parametrize("job", [LOUD, MINIBATCH], ids=["loud noise", "minibatches"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=needs_compiler) if name.startswith("C++") else name
        for name in PROGRAMS
    ],
)
def test_every_program_has_the_law_of_the_job(name, job):
    program, draws = PROGRAMS[name]
    runs = [
        np.asarray(program(job, draws, seed), dtype=float).reshape(draws, -1, 2)[
            draws // 6 :
        ]
        for seed in range(8)
    ]
    means = torch.tensor(np.array([run.mean((0, 1)) for run in runs]))
    mode, sd = law(job)
    variances = torch.tensor(
        np.array([((run - mode.numpy()) ** 2).mean((0, 1)) for run in runs])
    )
    # for the posterior is not quite Gaussian
    for found, expected, slack in (
        (means, mode, 0.03 * sd),
        (variances, sd**2, 0.04 * sd**2),
    ):
        error = found.std(0) / len(runs) ** 0.5
        assert ((found.mean(0) - expected).abs() < 8 * error + slack).all(), (
            found.mean(0),
            expected,
            error,
        )


@pytest.mark.parametrize("job", [PRINTED, MINIBATCH], ids=["printed", "minibatches"])
def test_the_variants_of_the_report_move_as_numpy_does_on_the_same_noise(job):
    expected = mixture.numpy_chain(job, 3, seed=1)
    for injection in ("Cholesky", "multivariate normal"):
        found = mixture.numpy_chain(job, 3, seed=1, injection=injection)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    # the function that Numba compiles, in Python
    found = mixture.numba_chain(job, 3, seed=1, walk=mixture._walk)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@needs_compiler
def test_loading_the_fast_program_leaves_subnormal_numbers_alone():
    # linked with -ffast-math it would turn on the rounding of subnormal numbers to zero
    mixture.load("fast")
    tiny = np.float64(5e-324)
    assert tiny * 1.0 != 0.0 and torch.tensor(1e-310, dtype=torch.float64) * 1 != 0


def test_the_squares_of_a_chain_have_the_squared_autocorrelations():
    chain, forward = (
        sghmc_chain(torch.eye(1), 0.3, 0.8),
        torch.tensor([1.0, 0.0], dtype=torch.float64),
    )
    rho = chain.autocorrelation(forward, 400)
    assert squares_time(chain) == pytest.approx(float(2 * rho.square().sum() - 1))
    assert squares_time(chain) > chain.autocorrelation_time(forward)  # it swings


def test_the_best_step_obeys_its_bounds():
    curvature, noise = (
        torch.diag(torch.tensor([100.0, 400.0])).double(),
        torch.diag(torch.tensor([5e3, 2e4])).double(),
    )
    step_size, friction, tau = best_step(curvature, noise)
    assert friction >= 0.5 * step_size * 2e4 * (1 - 1e-12)
    taus = []
    for value, variance in ((100.0, 5e3), (400.0, 2e4)):
        chain = sghmc_chain(
            torch.tensor([[value]]).double(),
            step_size,
            friction,
            variance,
            0.5 * step_size * variance,
        )
        assert chain.stationary_covariance()[0, 0] * value < 1.05
        taus.append(chain.autocorrelation_time(torch.tensor([1.0, 0.0]).double()))
        assert taus[-1] > variance / value - 1
    assert tau == pytest.approx(max(taus))
