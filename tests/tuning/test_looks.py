"""Modes, ratios of standard deviations, and half the step, where the answers are known."""

import pytest
import scipy.stats
import torch

from sgmc import sample
from sgmc.door.draws import Draws
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD
from sgmc.noise import OnlineNoise
from sgmc.posteriors import LinearRegression
from sgmc.randomness import derived_seed
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient
from sgmc.tuning import (
    default_kernel,
    find_mode,
    half_step,
    looks,
    standard_deviations,
)
from tests.fakes import Box

DOUBLE = torch.float64


def test_the_mode_of_a_regression_is_its_mean_from_anywhere(generator):
    x = torch.randn(50, 3, generator=generator, dtype=DOUBLE)
    posterior = LinearRegression(x, x.sum(-1), batch_size=5)
    for far in (0.0, 1e4):
        start = torch.full((2, 3), far, dtype=DOUBLE)
        mode = find_mode(posterior, start)
        torch.testing.assert_close(mode, posterior.mean.expand(2, 3), rtol=0, atol=1e-6)
        assert torch.equal(start, torch.full((2, 3), far, dtype=DOUBLE))


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


def test_a_mode_is_sought_by_so_many_steps_of_a_line_search_and_no_more():
    narrow = Gaussian(torch.diag(torch.tensor([1.0, 1e4])))
    start = torch.tensor([[3.0, 50.0]], requires_grad=True)
    assert find_mode(narrow, start, max_steps=1).abs().max() > 1
    mode = find_mode(narrow, start, 50)
    assert mode.abs().max() < 0.01 and not mode.requires_grad and start.grad is None
    modes = find_mode(DoubleWell(), torch.tensor([[0.5], [-3.0], [30.0]]))
    torch.testing.assert_close(modes, torch.tensor([[1.0], [-1], [1]]))
    for wrong in (0, 2.5, None):
        with pytest.raises(ValueError, match=rf"max_steps.*{wrong}"):
            find_mode(narrow, start, wrong)
    with pytest.raises(ValueError, match="position has 3 coordinates"):
        find_mode(narrow, torch.zeros(1, 3))


@pytest.mark.parametrize("chain", [0, 1])
def test_one_chain_without_a_mode_is_enough(chain, monkeypatch):
    """With the place beyond all numbers, or its energy."""
    for where in (float("inf"), 9.0, 0.5):
        place = torch.full((2, 1), 0.5)
        place[chain] = where
        step = lambda self, _, to=place: self.param_groups[0]["params"][0].data.copy_(
            to
        )
        monkeypatch.setattr(torch.optim.LBFGS, "step", step)
        box = Box(float("inf") if where == 9.0 else 0.0)
        if where == 0.5:
            assert torch.equal(find_mode(box, torch.zeros(2, 1)), place)
            continue
        with pytest.raises(ValueError, match="no mode was found"):
            find_mode(box, torch.zeros(2, 1))


def test_standard_deviations_are_about_the_mean_of_the_other_run(generator):
    make = lambda add: add + torch.randn(30, 5, 2, generator=generator, dtype=DOUBLE)
    run, other = make(torch.tensor([3.0, 0])), 2 * make(torch.tensor([0.0, 1]))
    ratio, error = standard_deviations(Draws(run), Draws(other))
    centre = other.mean((0, 1))
    ours, theirs = ((x - centre).square().mean(0) for x in (run, other))
    torch.testing.assert_close(ratio, (ours.mean(0) / theirs.mean(0)).sqrt())
    relative = (
        ours.var(0) / 5 / ours.mean(0) ** 2 + theirs.var(0) / 5 / theirs.mean(0) ** 2
    )
    torch.testing.assert_close(error, ratio * relative.sqrt() / 2)
    for given, name in (
        ((run, Draws(other)), "run"),
        ((Draws(run), other), "reference"),
    ):
        with pytest.raises(ValueError, match=rf"^{name} must be of type Draws"):
            standard_deviations(*given)


def test_both_runs_are_what_was_asked_for(monkeypatch):
    """Twice the steps where a step is the whole move."""
    runs = []

    def drawn(*given, **settings):
        runs.append((*given, settings))
        return Draws(torch.randn(20, 2, 1, generator=torch.Generator().manual_seed(1)))

    monkeypatch.setattr(looks, "sample", drawn)
    target, start = Gaussian.standard(1), torch.zeros(2, 1)
    half_step(SGLD(0.5), target, start, 20)
    half_step(
        SGLD(0.5), target, start, 20, warm_up=3, thinning=4, seed=5, progress=False
    )
    settings = [
        dict(warm_up=0, thinning=1, seed=0, progress=True),
        dict(
            warm_up=0, thinning=2, progress=True, seed=derived_seed(0, "half the step")
        ),
        dict(warm_up=12, thinning=4, seed=5, progress=False),
        dict(
            warm_up=24,
            thinning=8,
            progress=False,
            seed=derived_seed(5, "half the step"),
        ),
    ]
    for kernel, expected, run in zip([0.5, 0.25] * 2, settings, runs, strict=True):
        assert str(run[0]) == str(SGLD(kernel)) and run[1:] == (
            target,
            start,
            20,
            expected,
        )


@pytest.mark.filterwarnings("ignore:the chains do not agree")
def test_a_verdict_word_for_word(monkeypatch):
    """The worst of all numbers counts, and the largest of all errors."""
    start, target = torch.zeros(10, 2), Gaussian.standard(2)
    limit = float(scipy.stats.t.ppf(1 - 1e-3 / 8, 9))
    chance = f"{limit:.3g}, which 4 numbers exceed by chance once in 1,000 times"
    draws = Draws(torch.randn(100, 10, 2, generator=torch.Generator().manual_seed(0)))
    monkeypatch.setattr(looks, "sample", lambda *_, **__: draws)

    def verdict(means, ratios, errors):
        given = iter(
            [
                (torch.tensor(means), torch.tensor([3.0, 6])),
                (torch.zeros(2), torch.tensor([4.0, 8])),
            ]
        )
        monkeypatch.setattr(Draws, "mean_and_standard_error", lambda *_: next(given))
        both = torch.tensor(ratios), torch.tensor(errors)
        monkeypatch.setattr(looks, "standard_deviations", lambda *_: both)
        found = half_step(SGLD(0.5), target, start, 20, progress=False)
        assert found.limit == pytest.approx(limit) and found.kernel.step_size == 0.25
        torch.testing.assert_close(
            found.means, torch.tensor(means) / torch.tensor([5.0, 10])
        )
        z = (torch.tensor(ratios) - 1) / torch.tensor(errors)
        torch.testing.assert_close(found.standard_deviations, z)
        return str(found)

    none = f"half the step makes no difference that can be seen: |z| is at most {{}}, below {chance}. A standard deviation that changes by {{:.0%}} would be seen"
    changes = f"half the step changes the answer: |z| is {{}} for the {{}} of coordinate {{}}, above {chance}. Take half the step (kernel), and halve again"
    assert verdict([5.0, -30], [1.2, 1.0], [0.1, 0.01]) == none.format(3, 0.1 * limit)
    assert verdict([5.0, 10], [0.6, 1.0], [0.1, 0.15]) == none.format(4, 0.15 * limit)
    assert verdict([5.0, -90], [1.2, 1.0], [0.1, 0.01]) == changes.format(9, "means", 1)
    assert verdict([60.0, 0], [1.1, 0.0], [0.1, 0.05]) == changes.format(
        20, "standard deviations", 1
    )
    hidden = "half the step tells nothing: a standard deviation that is 2 times"
    assert verdict([0.0, 0], [1.0, 1], [0.01, 1.01 / limit]).startswith(hidden)
    assert verdict([0.0, 0], [1.0, 1], [0.99 / limit, 0.01]).startswith(
        "half the step makes"
    )
    for z, told in (
        (0.99 * limit, "half the step makes"),
        (1.01 * limit, "half the step changes"),
    ):
        assert verdict([5 * z, 0], [1.0, 1], [0.1, 0.1]).startswith(told)


def test_what_a_default_run_would_see_is_what_the_docstring_says():
    """About 30 % with 25 samples and 15 % with 100, of twenty chains and five
    coordinates.
    """
    target = NoisyGradient(Gaussian.standard(5, DOUBLE), 40.0)
    kernel = default_kernel(target, torch.zeros(1, 5, dtype=DOUBLE))
    numbers = torch.Generator().manual_seed(0)
    start = torch.randn(20, 5, generator=numbers, dtype=DOUBLE)
    for number, percent in ((25, 30), (100, 15)):
        verdict = half_step(kernel, target, start, number, warm_up=10).verdict
        seen = float(verdict.rpartition("by ")[2].partition("%")[0])
        assert seen == pytest.approx(percent, rel=0.2)
        assert f"{percent} % with {number}" in " ".join(half_step.__doc__.split())
