"""Adaptation: the acceptance it reaches, the scales it finds, and what it refuses."""

import math
from itertools import pairwise

import pytest
import torch

from sgmc import adapt, sample
from sgmc.adaptation import DualAveraging, Moments, reasonable_step_size, window_ends
from sgmc.kernels import HMC, NUTS, SGHMC
from sgmc.potentials import Gaussian, Potential

SCALES = torch.tensor([0.1, 1.0, 5.0], dtype=torch.float64)
TARGET = Gaussian(torch.diag(SCALES**2), mean=SCALES)


@pytest.mark.parametrize("kernel", [NUTS(1.0), HMC(1.0, 1)], ids=["NUTS", "Langevin"])
@pytest.mark.parametrize("target_acceptance", [0.8, 0.9])
def test_the_acceptance_and_the_scales_are_found(kernel, target_acceptance):
    start = torch.zeros(200, 3, dtype=torch.float64)
    tuned, position = adapt(kernel, TARGET, start, num_steps=200, seed=1, target_acceptance=target_acceptance)
    assert type(tuned) is type(kernel) and position.shape == start.shape
    # 200 chains over a window of 100 steps: the standard deviations are known to a few per cent.
    assert (tuned.mass.rsqrt() / SCALES - 1).abs().max() < 0.1
    acceptance = sample(tuned, TARGET, position, num_samples=20, seed=2).statistics["acceptance"].mean()
    assert abs(acceptance - target_acceptance) < 0.06


def test_the_same_seed_gives_the_same_kernel():
    start = torch.zeros(3, 3, dtype=torch.float64)
    first, second, other = (adapt(NUTS(1.0), TARGET, start, num_steps=40, seed=seed) for seed in (1, 1, 2))
    assert first[0].step_size == second[0].step_size and torch.equal(first[0].mass, second[0].mass) and torch.equal(first[1], second[1])
    assert first[0].step_size != other[0].step_size and (start == 0).all()


def test_dual_averaging_finds_the_step_of_a_noisy_acceptance():
    generator = torch.Generator().manual_seed(0)
    averaging = DualAveraging(step_size=20.0, target=0.7)
    for _ in range(3_000):
        averaging.update(min(1.0, max(0.0, math.exp(-averaging.step_size) + 0.1 * float(torch.randn((), generator=generator)))))
    assert averaging.average == pytest.approx(-math.log(0.7), rel=0.05)


def test_moments_are_those_of_all_draws_together(generator):
    draws = [torch.randn(7, 3, generator=generator, dtype=torch.float64) + 1000 * i for i in range(4)]
    moments = Moments(draws[0])
    for draw in draws:
        moments.update(draw)
    together = torch.cat(draws)
    n = len(together)
    torch.testing.assert_close(moments.mean, together.mean(0))
    torch.testing.assert_close(moments.variance(), together.var(0) * n / (n + 5) + 1e-3 * 5 / (n + 5))


@pytest.mark.parametrize("num_steps", [20, 37, 100, 1000])
def test_windows_double_and_fill_the_middle(num_steps):
    ends = window_ends(num_steps)
    assert ends[-1] == num_steps - num_steps // 5
    lengths = [b - a for a, b in pairwise([num_steps // 10, *ends])]
    assert all(b >= 2 * a for a, b in pairwise(lengths)) and lengths[0] >= 5


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_first_step_size_is_of_the_scale_of_the_target(scale, generator):
    target = Gaussian(torch.tensor([[scale**2]], dtype=torch.float64))
    step_size = reasonable_step_size(target, target.exact_samples(100, generator), 1.0, generator)
    assert 0.5 < step_size / scale < 4


def test_kernels_without_acceptance_and_bad_arguments_are_refused():
    start = torch.zeros(2, 3, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"SGHMC has no step_size, mass and acceptance to adapt by: give a kernel like NUTS or HMC"):
        adapt(SGHMC(0.1, 1.0), TARGET, start, num_steps=100)
    with pytest.raises(ValueError, match=r"num_steps must be a whole number of at least 20, but it is 10"):
        adapt(NUTS(0.1), TARGET, start, num_steps=10)
    with pytest.raises(ValueError, match=r"target_acceptance must lie between 0 and 1, but it is 1.0"):
        adapt(NUTS(0.1), TARGET, start, num_steps=100, target_acceptance=1.0)
    with pytest.raises(ValueError, match=r"position must be a floating-point tensor"):
        adapt(NUTS(0.1), TARGET, torch.zeros(3), num_steps=100)
    with pytest.raises(ValueError, match=r"position has 2 coordinates, but the potential has dim = 3"):
        adapt(NUTS(0.1), TARGET, torch.zeros(2, 2), num_steps=100)


def test_ctrl_c_keeps_what_was_tuned():
    class Stopped(Gaussian):
        left = 200

        def gradient(self, position):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return super().gradient(position)

    with pytest.warns(UserWarning, match=r"interrupted after \d+ of 100 steps: the kernel is tuned as far as that"):
        kernel, position = adapt(NUTS(1.0), Stopped(torch.eye(2)), torch.zeros(2, 2), num_steps=100)
    assert 0.01 < kernel.step_size < 10 and position.shape == (2, 2)


def test_a_gradient_that_contradicts_the_energy_is_told():
    class Wrong(Potential):
        dim = 1

        def energy(self, position):
            return 1e30 * torch.sin(1e8 * position[:, 0])

        def gradient(self, position):
            return torch.ones_like(position)

    with pytest.raises(ValueError, match=r"no step size between .* its gradient"):
        adapt(NUTS(1.0), Wrong(), torch.ones(5, 1), num_steps=20)
