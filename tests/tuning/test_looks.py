"""Modes, ratios of standard deviations, and half the step, where the answers are known."""

import pytest
import torch

from sgmc import sample
from sgmc.door.draws import Draws
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD
from sgmc.noise import OnlineNoise
from sgmc.posteriors import LinearRegression
from sgmc.potentials import Potential
from sgmc.randomness import derived_seed
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient
from sgmc.tuning import (
    default_kernel,
    find_mode,
    half_step,
    looks,
    standard_deviations,
)
from tests.checks import z_bound

DOUBLE = torch.float64


def test_the_mode_of_a_regression_is_its_mean_from_anywhere(generator):
    x = torch.randn(50, 3, generator=generator, dtype=DOUBLE)
    posterior = LinearRegression(x, x.sum(-1), batch_size=5)
    for far in (0.0, 1e4):
        start = torch.full((2, 3), far, dtype=DOUBLE)
        mode = find_mode(posterior, start)
        torch.testing.assert_close(mode, posterior.mean.expand(2, 3), rtol=0, atol=1e-6)
        assert torch.equal(start, torch.full((2, 3), far, dtype=DOUBLE))


class Slope(Potential):
    dim = 1

    def energy(self, position):
        return -position.exp().sum(-1)


def test_an_energy_that_falls_without_end_has_no_mode():
    with pytest.raises(ValueError, match=r"no mode.*position"):
        find_mode(Slope(), torch.zeros(1, 1))


def test_ratios_of_standard_deviations_have_the_error_that_they_say(generator):
    """Of 500 pairs of runs of independent normal draws, with widths 3 and 2."""
    z = []
    for _ in range(500):
        run, other = (
            Draws(scale * torch.randn(20, 10, 4, generator=generator, dtype=DOUBLE))
            for scale in (3.0, 2.0)
        )
        ratio, error = standard_deviations(run, other)
        z.append((ratio - 1.5) / error)
    z = torch.stack(z).flatten()
    # a second-order bias, and the longer tails of errors from ten chains
    assert abs(float(z.mean())) < 0.1 + z_bound(1) / len(z) ** 0.5
    assert 0.95 < float(z.std()) < 1.25


NOISY = NoisyGradient(Gaussian.standard(2, DOUBLE), 40.0)
START = torch.randn(60, 2, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)


def test_half_the_step_sees_a_forgotten_noise_estimate_and_not_the_default():
    """Without the estimate the temperature is 4/3, and 7/6 with half the step; the
    limit has one false alarm in 1,000.
    """
    right = default_kernel(NOISY, torch.zeros(1, 2, dtype=DOUBLE))
    found = half_step(right, NOISY, START, 50, progress=False)
    assert found.standard_deviations.abs().max() < found.limit
    assert "no difference" in str(found) and found.kernel.step_size == 0.025
    wrong = SGHMC(0.05, 3.0, num_steps=40)
    found = half_step(wrong, NOISY, START, 200, warm_up=2, progress=False)
    assert found.standard_deviations.max() > found.limit
    assert "changes the answer" in str(found) and "standard deviations" in str(found)
    assert found.draws.samples.shape == (200, 60, 2)


def test_half_the_step_tells_nothing_of_chains_that_do_not_agree():
    apart = torch.tensor([[-1.0], [1.0]], dtype=DOUBLE).repeat(10, 1)
    with pytest.warns(UserWarning, match="do not agree"):
        found = half_step(SGLD(0.001), DoubleWell(), apart, 100, progress=False)
    assert "tells nothing" in str(found)


@pytest.mark.filterwarnings("ignore:the chains do not agree")
@pytest.mark.parametrize("apart", [0, 1])
def test_chains_of_one_run_that_do_not_agree_are_enough(apart, monkeypatch, generator):
    places = [torch.zeros(4, 1), torch.zeros(4, 1)]
    places[apart] = 9.0 * torch.arange(4.0)[:, None]
    values = [torch.randn(100, 4, 1, generator=generator) + place for place in places]
    monkeypatch.setattr(looks, "sample", lambda *_, **__: Draws(values.pop(0)))
    start = torch.zeros(4, 1)
    found = half_step(SGLD(0.5), Gaussian.standard(1), start, 100, progress=False)
    assert "the chains of a run do not agree" in str(found)


@pytest.mark.parametrize(
    ("kernel", "steps"),
    [
        (SGHMC(0.05, 3.0, 1.0, num_steps=4), 1),
        (SGHMC(0.05, 3.0, OnlineNoise(), num_steps=4), 1),
        (SGLD(0.05), 2),
        (HMC(0.5, 3), 1),
        (NUTS(0.5), 2),
    ],
    ids=lambda each: type(each).__name__ if not isinstance(each, int) else str(each),
)
def test_both_runs_have_the_same_time_and_half_of_the_fixed_noise(kernel, steps):
    target = NOISY if isinstance(kernel, SGHMC) else Gaussian.standard(2, DOUBLE)
    found = half_step(
        kernel, target, START[:4], 3, warm_up=2, thinning=5, progress=False
    )
    half, draws = found.kernel, found.draws
    assert half.step_size == kernel.step_size / 2
    assert draws.thinning == 5 * steps and draws.warm_up == 10 * steps
    if steps == 1:
        assert half.num_steps == 2 * kernel.num_steps
    if isinstance(kernel, SGHMC):
        fixed = not isinstance(kernel.noise_estimate, OnlineNoise)
        assert half.noise_estimate == (0.5 if fixed else kernel.noise_estimate)


def test_refusals():
    with pytest.raises(ValueError, match="one chain"):
        half_step(SGLD(0.1), DoubleWell(), torch.ones(1, 1), 5)
    with pytest.raises(ValueError, match=r"kernel.*step_size"):
        half_step(SGLD(lambda t: 0.1), DoubleWell(), torch.ones(2, 1), 5)


@pytest.mark.parametrize(
    ("step_size", "chains", "dtype"),
    [(2.2, 4, DOUBLE), (2.2, 10, DOUBLE), (3.0, 4, torch.float32)],
)
def test_where_its_errors_hide_a_factor_of_two_there_is_no_verdict(
    step_size, chains, dtype
):
    """The standard deviation grows a million million times and more, and its error with
    it; in float32 the squares overflow."""
    start = torch.zeros(chains, 1, dtype=dtype)
    target = Gaussian.standard(1, dtype)
    number = 200 if dtype == DOUBLE else 100
    found = half_step(SGLD(step_size), target, start, number, progress=False)
    assert "tells nothing: a standard deviation that is 2 times" in str(found)


def test_the_limit_of_a_verdict_is_a_standard_deviation_twice_as_large(monkeypatch):
    """Of four chains z has a limit of 16.3: with an error of 0.06 a factor of 1.98 would
    be seen, and with one of 0.0625 none below 2.02.
    """
    start = torch.zeros(4, 1, dtype=DOUBLE)
    for error, seen in ((0.06, True), (0.0625, False), (float("nan"), False)):
        ratios = torch.tensor([1.0]), torch.tensor([error])
        monkeypatch.setattr(looks, "standard_deviations", lambda *_, r=ratios: r)
        found = half_step(
            SGLD(0.5), Gaussian.standard(1, DOUBLE), start, 200, progress=False
        )
        assert ("no difference" in str(found)) == seen
        assert ("may not be seen" in str(found)) != seen


def test_the_two_runs_are_independent_and_their_errors_add_up_as_such(monkeypatch):
    """z of the means is the difference over the root of the sum of squares."""
    seeds, found = [], iter([(1.0, 3.0), (11.0, 4.0)])

    def drawn(*arguments, seed, **settings):
        seeds.append(seed)
        return sample(*arguments, seed=seed, **settings)

    def summary(self, function=None):
        mean, error = next(found)
        return torch.tensor([mean]), torch.tensor([error])

    monkeypatch.setattr(looks, "sample", drawn)
    monkeypatch.setattr(looks, "standard_deviations", lambda *_: (torch.ones(1),) * 2)
    monkeypatch.setattr(Draws, "mean_and_standard_error", summary)
    start, settings = torch.zeros(2, 1), dict(seed=7, progress=False)
    looked = half_step(SGLD(0.5), Gaussian.standard(1), start, 20, **settings)
    assert seeds == [7, derived_seed(7, "half the step")] and seeds[0] != seeds[1]
    assert looked.means == -10 / 5
