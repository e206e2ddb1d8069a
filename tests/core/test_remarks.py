"""What is said of samples whatever the kernel: R̂, chains in separate places, the names
of chains, and the width of the samples, by the virial theorem.
"""

import math
import os
import re
import warnings

import arviz
import pytest
import scipy.stats
import torch

from booklib.models.gibbs import Gibbs
from sgmc import sample
from sgmc.checkpoints import Checkpoint
from sgmc.diagnostics import (
    mean_and_error,
    ratios,
    split_r_hat,
    virial_products,
    virial_ratio,
)
from sgmc.door.remarks import (
    LEAST,
    noise_cause,
    remark_disagreement,
    remark_growth,
    remark_order,
    remark_stuck,
    remark_target,
    remark_virial,
    rule_order,
)
from sgmc.door.sampling import DivergenceError
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD, SGNUTS
from sgmc.kernels.metropolis import remark_rounding
from sgmc.minibatches import Fresh, Held, Passes, Sweeps
from sgmc.noise import OnlineNoise
from sgmc.other_kernels import RandomWalkMetropolis
from sgmc.posteriors import LinearRegression, LogisticRegression
from sgmc.potentials import Potential
from sgmc.splittings import Splitting, flows, linear_chain, sghmc_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient
from tests.fakes import WithPrecision, generator_of


@pytest.mark.parametrize("number", [100, 101])
def test_r_hat_is_that_of_arviz(number, generator):
    values = torch.randn(number, 5, 7, generator=generator, dtype=torch.float64).cumsum(
        0
    )
    values[:, 2, 3] += 50
    expected = [arviz.rhat(values[..., k].T.numpy(), method="split") for k in range(7)]
    torch.testing.assert_close(
        split_r_hat(values), torch.tensor(expected, dtype=torch.float64)
    )


def test_independent_draws_of_one_law_get_no_remark(generator):
    """With 200 draws in 10 chains R̂² − 1 is about χ²₁₉/19/100 − 1/100: over 0.21
    never.
    """
    assert (
        remark_disagreement({"": torch.randn(200, 10, 1_000, generator=generator)})
        == []
    )


def test_the_worst_coordinate_is_named_with_the_number_of_bad_ones(generator):
    values = torch.randn(200, 4, 2, 3, generator=generator)
    values[:, 1, 0, 2] += 1.5  # less than a gap, but R̂ tells
    values[:, 1, 1, 0] += 2.5
    (remark,) = remark_disagreement(
        {"good": torch.randn(200, 4, generator=generator), "bad": values}
    )
    expected = float(split_r_hat(values.flatten(2)).amax())
    assert remark.startswith(
        f"the chains do not agree: R̂ is {expected:.2f} in coordinate 3 of bad, and over 1.1 in "
        "2 of 6. "
    )


def test_few_samples_of_one_law_get_no_remark_and_modes_do(generator):
    """Of halves of ten samples R̂² is about 0.9 + 0.1·F(7, 72): over 2.25 never, over
    1.21 in one coordinate of 170.
    """
    values = torch.randn(LEAST, 4, 1_000, generator=generator)
    assert remark_disagreement({"": values}) == []
    values[:, 3, 7] += 10
    (remark,) = remark_disagreement({"": values})
    assert "in coordinate 7" in remark and "in chain 3" in remark


class Upside(Potential):
    """A density that grows outwards: its sign is wrong."""

    def energy(self, position):
        return -0.5 * position.square().sum(-1)


def test_a_density_with_the_wrong_sign_is_told():
    with pytest.warns(UserWarning, match="too narrow.*sign may be wrong, or a prior"):
        sample(SGLD(0.01), Upside(), torch.zeros(4, 2), 100, progress=False)
    with pytest.raises(DivergenceError, match="wrong sign, or no prior"):
        sample(SGLD(1.0), Upside(), torch.zeros(4, 2), 10_000, progress=False)


def test_few_draws_one_chain_whole_numbers_and_constants_are_left_alone():
    apart = torch.arange(3.0).expand(LEAST - 1, 3) * 100
    constant = torch.zeros(200, 3)
    assert (
        remark_disagreement(
            {
                "few": apart,
                "one": torch.randn(99, 1).cumsum(0),
                "whole": apart.long(),
                "still": constant,
            }
        )
        == []
    )


def test_one_chain_that_has_not_arrived_is_told_by_its_halves():
    """From 30 it comes to 4, a hundred standard deviations in all; and independent
    samples of one chain are as they should be, the largest R̂ of many among them.
    """
    message = "halves of the chain do not agree.*not arrived"
    with pytest.warns(UserWarning, match=message):
        start = torch.full((1, 1), 30.0)
        sample(SGLD(0.001), STANDARD, start, num_samples=2_000, progress=False)
    generator = torch.Generator().manual_seed(0)
    independent = torch.randn(100, 1, 10_000, generator=generator)
    assert not remark_disagreement({"": independent})
    assert remark_disagreement({"": independent + torch.arange(100.0)[:, None, None]})


class Uniform(Potential):
    """A uniform density on (0, 1), which pushes nowhere; beyond, it is zero."""

    def energy(self, position):
        inside = ((position > 0) & (position < 1)).all(-1)
        return torch.where(inside, 0.0, math.inf).to(position)

    def gradient(self, position):
        return torch.zeros_like(position)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_walk_out_of_the_support_is_told(dtype):
    start = torch.full((4, 1), 0.5, dtype=dtype)
    with pytest.warns(UserWarning, match=r"energy is not finite in \d+% .*support"):
        sample(SGHMC(0.1, 3.0), Uniform(), start, num_samples=50, progress=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*support")
        sample(RandomWalkMetropolis(0.5), Uniform(), start, 50, progress=False)


def test_a_friction_below_the_noise_is_told_beside_the_width():
    kernel = SGHMC(0.1, 0.05, OnlineNoise(), num_steps=5)
    told = said_of(kernel, NoisyGradient(STANDARD, 4.0), torch.zeros(4, 1), 60)
    assert told[0].startswith("½εV̂ exceeded the friction in") and "too wide" in told[1]
    noise = torch.zeros(20).index_fill_(0, torch.tensor(3), 4.0)
    kernel = SGHMC(0.1, 0.1, OnlineNoise(kind="diagonal"), num_steps=5)
    target = NoisyGradient(Gaussian.standard(20), noise)
    told = said_of(kernel, target, torch.zeros(4, 20), 30)
    assert "in 5.0% of the coordinates" in told[0]  # in one of twenty


def test_chains_that_stand_still_in_different_places_disagree():
    """Their variance within is zero, and R̂ infinite."""
    (remark,) = remark_disagreement({"": torch.arange(3.0).expand(LEAST, 3)})
    assert "R̂ is inf" in remark


def test_only_chains_that_are_where_they_started_are_named():
    start = torch.tensor([[1.0, 2.0], [1.0, 2.0], [math.pi, 0.0]])
    assert remark_stuck(start, start + torch.tensor([0.0, 1e-6]), 100) == []
    end = torch.tensor([[1.0, 2.5], [1.0, 2.0], [0.0, 0.0]])
    assert remark_stuck(start, end, 100)[0].startswith("chain 1 never moved")
    assert remark_stuck(start, end, 99) == []
    assert remark_stuck(start, start, 100)[0].startswith("chains [0, 1, 2] never")


def test_beside_a_chain_that_stands_still_the_others_are_looked_at():
    class Lame(SGLD):
        def step(self, potential, state, generator):
            first = state.position[0].clone()
            state, info = super().step(potential, state, generator)
            state.position[0] = first
            return state, info

    start = torch.zeros(8, 1)
    told = said_of(Lame(1.5), Gaussian.standard(1), start, 400)
    assert [x for x in told if x.startswith("chain 0 never moved")]
    assert [x for x in told if "too wide" in x]


# Samples that are too wide or too narrow for their target

STANDARD = Gaussian.standard(1)


def linear_variance(chain):
    return float(chain.stationary_covariance()[0, 0])


# kernel, potential, the exact variance of θ, and what the remark must name
TOO_WIDE = {
    "a step of 1.5 on N(0, 1)": (SGLD(1.5), STANDARD, 4.0, "step_size"),
    "friction below the noise": (
        SGHMC(0.1, 0.05, num_steps=50),
        NoisyGradient(STANDARD, 4.0),
        linear_variance(sghmc_chain(torch.eye(1), 0.1, 0.05, 4.0)),
        "friction",
    ),
    "no noise estimate where one is needed": (
        SGHMC(0.1, 0.5, num_steps=20),
        NoisyGradient(STANDARD, 8.0),
        linear_variance(sghmc_chain(torch.eye(1), 0.1, 0.5, 8.0)),
        "noise_estimate",
    ),
    "close to the stability limit": (
        Splitting(flows.obabo(1.9, 1.0)),
        STANDARD,
        linear_variance(linear_chain(flows.obabo(1.9, 1.0), torch.eye(1))),
        "step_size",
    ),
}


@pytest.mark.parametrize("case", TOO_WIDE)
def test_samples_that_are_too_wide_are_told_with_their_cause(case):
    """The ratio is the exact variance, by five standard errors of the remark itself."""
    kernel, potential, variance, cause = TOO_WIDE[case]
    with pytest.warns(UserWarning, match=f"(?s)too wide.*{cause}") as warned:
        sample(kernel, potential, torch.zeros(40, 1), num_samples=400, progress=False)
    (told,) = [str(one.message) for one in warned if "too wide" in str(one.message)]
    found, error = map(float, re.search(r"is ([\d.]+) ± ([\d.]+)", told).groups())
    assert abs(found - variance) < 5 * error + 0.005 * found


def said_of(kernel, potential, start, num_samples, **settings):
    """Sample, and list what is said of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        settings = dict(progress=False) | settings
        sample(kernel, potential, start, num_samples, **settings)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("chains", [1, 4, 20, 100])
@pytest.mark.parametrize(
    ("kernel", "number"), [(SGLD(2.05), 600), (SGLD(2.2), 150), (SGLD(3.0), 30)]
)
def test_chains_that_grow_without_end_are_told(kernel, number, chains, dtype):
    """Their mean square and its error grow alike, and R̂ is 1."""
    start = torch.zeros(chains, 1, dtype=dtype)
    (told,) = said_of(kernel, Gaussian.standard(1, dtype), start, number)
    assert "too wide, and grow without end" in told
    factor = float(re.search(r"([\d.e+]+)-fold", told).group(1))
    # from the middle of the first tenth of the second half to that of the last
    expected = (kernel.step_size - 1) ** (0.45 * number)
    assert expected**0.7 < factor < expected**1.3


@pytest.mark.parametrize(
    ("kernel", "settings"),
    [
        (SGLD(2.2), dict(collect=torch.tanh)),
        (SGLD(2.2), dict(collect=lambda x: {"a": x.sin(), "b": x[:, 0].cos()})),
        (SGLD(lambda step: 2.2), {}),
        (SGLD(2.2, temperature=0.0), {}),
        (Splitting(flows.sghmc(0.1, 21.0)), {}),
        (SGHMC(0.5, 3.9), dict(thinning=2)),  # 1 − ½εC − ¼ε²/0.8 is −0.05
    ],
    ids=["collected", "by name", "a schedule", "no temperature", "flows", "SGHMC"],
)
def test_growth_is_told_where_the_width_means_nothing_or_is_not_kept(kernel, settings):
    start = torch.ones(4, 2, dtype=torch.float64)
    target = Gaussian(torch.diag(torch.tensor([0.8, 8.0], dtype=torch.float64)))
    assert "grow without end" in said_of(kernel, target, start, 300, **settings)[0]


def test_growth_is_ten_tenths_in_ascending_order_and_a_factor_of_ten(generator):
    sizes = torch.arange(10.0).repeat_interleave(5)
    signs = torch.arange(51) % 2 - 0.5

    def grown(sizes):
        """Samples whose neighbours are as far apart as is said."""
        steps = torch.cat([torch.zeros(1), sizes]) * signs
        return steps.cumsum(0)[:, None, None].expand(-1, 3, 2)

    assert remark_growth(grown(10.1 ** (sizes / 9)))
    assert remark_growth(grown(9.9 ** (sizes / 9))) == []
    down = 100 ** (sizes / 9)
    down[25:30] = down[20:25]
    assert remark_growth(grown(down)) == []
    assert remark_growth(grown(10.1 ** (sizes / 9))[:10]) == []
    shape = 100, 4, 3
    heavy = torch.empty(shape).cauchy_(generator=generator)
    assert remark_growth(heavy) == []
    assert remark_growth(torch.randn(shape, generator=generator).cumsum(0)) == []
    # one chain and one coordinate of all
    alone = torch.randn(shape, generator=generator)
    alone[:, 2, 1] += 1.1 ** torch.arange(100.0) * (-1) ** torch.arange(100)
    assert remark_growth(alone)
    # of so many that their mean does not grow
    alone = torch.randn(100, 4, 300, generator=generator)
    alone[:, 2, 1] += 5 * 1.05 ** torch.arange(100.0) * (-1) ** torch.arange(100)
    assert remark_growth(alone)


def test_a_mean_that_one_value_dominates_is_told_and_noise_is_not(generator):
    """Of one chain the error of the mean of such squares is as large as the mean."""
    steps = 1.03 ** torch.arange(100.0, dtype=torch.float64)
    squares = (steps**4 * 100)[:, None, None]
    means, errors, off = ratios(squares)
    assert means > 10 and (means - 1) < 6 * errors and off
    noise = 1e4 * torch.randn(100, 1, 1000, generator=generator)
    means, _, off = ratios(noise)
    assert (means.abs() > 10).double().mean() > 0.9 and not off.any()
    assert ratios(-squares)[2]


def test_few_stretches_have_the_limit_of_student():
    """The means of the ten stretches of one chain are 1 + d ± 1, so that t is 3d: its
    limit is that of nine degrees of freedom, 12.43, and not five.
    """
    signs = (-1.0) ** torch.arange(10).repeat_interleave(10)[:, None, None]
    off = [bool(ratios(1 + d + signs.double())[2]) for d in (4.12, 4.17)]
    assert off == [False, True]


def test_stretches_of_many_chains_are_some_forty():
    for chains, degrees in ((1, 9), (4, 39), (20, 39), (100, 99)):
        assert mean_and_error(torch.zeros(100, chains))[2] == degrees


def test_a_mean_below_zero_within_its_error_is_narrow_and_no_fall(generator):
    """Their error is 0.05."""
    noise = torch.randn(100, 4, 1, generator=generator)
    noise -= noise.mean()
    (narrow,) = remark_virial(noise - 0.01, noise)
    (falls,) = remark_virial(noise - 0.5, noise)
    assert "too narrow" in narrow and "Take more samples" in narrow
    assert "U falls outwards" in falls


def test_slow_chains_are_judged_by_their_number(generator):
    """Four exact draws that do not move have a mean of 1 over chains, with three
    degrees of freedom, and stretches that are all alike.
    """
    told = 0
    for _ in range(20):
        still = torch.randn(1, 4, 20, generator=generator, dtype=torch.float64)
        steps = torch.randn(100, 4, 20, generator=generator, dtype=torch.float64)
        chains, target = still + 0.01 * steps, Gaussian.standard(20, torch.float64)
        products = virial_products(target, chains, generator)
        told += len(remark_virial(products, chains))
    assert told == 0


def test_the_worst_coordinate_is_told_and_named(generator):
    """One of 50 has 10.6 times its variance, or noise makes that of eight twice as
    large; averaged over all that is 1.19 and 1.16.
    """
    target, kernel = Gaussian.standard(50), SGHMC(0.1, 4.0, num_steps=20)
    draws = torch.randn(400, 4, 50, generator=generator)
    draws[..., 31] *= 10.6**0.5
    (told,) = remark_target(kernel, target, draws, 0)
    assert told.startswith("the samples are too wide in coordinate 31, as 1 of 50")
    assert abs(float(re.search(r"is ([\d.]+) ±", told).group(1)) - 10.6) < 3
    draws = torch.randn(200, 20, 50, generator=generator)
    draws[..., 9:17] *= 2**0.5
    noise = torch.zeros(50)
    noise[9:17] = 80.0
    (told,) = remark_target(kernel, NoisyGradient(target, torch.diag(noise)), draws, 0)
    place, number = re.search(r"in coordinate (\d+), as (\d+) of 50", told).groups()
    assert 9 <= int(place) < 17 and int(number) == 8
    assert "is about 4, the noise_estimate 0 and" in told
    # of most coordinates their mean tells, unless others hide them
    draws = torch.randn(200, 20, 10, generator=generator)
    draws[..., :6] *= 2
    (told,) = remark_target(kernel, Gaussian.standard(10), draws, 0)
    assert told.startswith("the samples are too wide: the mean of (θ − c)·∂U(θ)/T")
    draws[..., :6], draws[..., 6:] = draws[..., :6] * 0.375**0.5, draws[..., 6:] / 3
    told = "".join(remark_target(kernel, Gaussian.standard(10), draws, 0))
    assert "in coordinate" in told and "10 of 10" in told


def test_few_samples_of_many_chains_are_enough_for_a_mean_beyond_ten(generator):
    """The variance is 25, and the mean of the products of five samples a chain."""
    draws = 5 * torch.randn(10, 20, 1, generator=generator)
    assert "too wide" in "".join(remark_target(SGLD(0.1), STANDARD, draws, 0))
    assert remark_target(SGLD(0.1), STANDARD, draws[:, :3], 0) == []


def test_a_sample_of_the_whole_second_half_is_looked_at(generator):
    """The last sixth is six times as wide."""
    draws = torch.randn(300, 4, 1, generator=generator)
    draws[250:] *= 6
    assert "too wide" in remark_target(SGLD(0.1), STANDARD, draws, 0)[0]
    draws[:150], draws[250:] = 100 * draws[:150], draws[250:] / 6
    assert remark_target(SGLD(0.1), STANDARD, draws, 0) == []


def test_the_noise_of_the_gradients_is_taken_out_of_the_thermometer(generator):
    """A noise of V = 10⁴ would make an error of 7 of the mean of 200 products."""
    target = NoisyGradient(STANDARD, 1e4)
    draws = torch.randn(50, 4, 1, generator=generator)
    noisy, exact = (
        virial_products(each, draws, generator_of(0)) for each in (target, STANDARD)
    )
    assert abs(float(noisy.mean() - exact.mean())) < 1.5
    # what is taken out at the centre comes back on average: at 3 and −1, (θ − c)·θ
    draws = torch.tensor([3.0, -1.0])[:, None].expand(20, 2, 1)
    quiet = virial_products(NoisyGradient(STANDARD, 1e-8), draws, generator)
    torch.testing.assert_close(
        quiet, torch.tensor([12.0, 4.0])[:, None].expand(20, 2, 1), rtol=0, atol=1e-2
    )


def test_of_what_is_collected_nothing_is_taken_for_a_position():
    collect = lambda position: 100 * position
    found = said_of(SGLD(0.1), STANDARD, torch.zeros(4, 1), 200, collect=collect)
    assert not [told for told in found if "too" in told]


def test_positions_are_kept_beside_what_is_collected_up_to_two_hundred(monkeypatch):
    """Those of the draws 0, 2ᵏ, 2·2ᵏ ..., and as many as there is room for."""
    looked = []
    monkeypatch.setattr(
        "sgmc.door.sampling.remark_target", lambda *given: looked.append(given[2]) or []
    )

    def positions(number, **settings):
        start, target = torch.zeros(2, 3), Gaussian.standard(3)
        draws = sample(SGLD(0.1), target, start, number, progress=False, **settings)
        return draws.samples, looked.pop()

    for number, stride in ((200, 1), (201, 2), (401, 4), (1_000, 8)):
        every, whole = positions(number)
        assert whole is every or torch.equal(whole, every)
        _, some = positions(number, collect=torch.sin)
        assert torch.equal(some, every[::stride]) and len(some) <= 200
    monkeypatch.setattr("sgmc.door.sampling._NUMBERS", 30)
    assert positions(100, collect=torch.sin)[1].shape == (4, 2, 3)


def test_a_resumed_run_keeps_the_positions_of_one_that_was_not_stopped(
    tmp_path, monkeypatch
):
    looked = []
    monkeypatch.setattr("sgmc.door.sampling._POSITIONS", 5)
    monkeypatch.setattr(
        "sgmc.door.sampling.remark_target", lambda *given: looked.append(given[2]) or []
    )

    def draw(number, name):
        start, checkpoint = torch.zeros(2, 1), Checkpoint(tmp_path / name)
        settings = dict(collect=torch.sin, checkpoint=checkpoint, progress=False)
        sample(SGLD(0.1), Gaussian.standard(1), start, number, **settings)

    draw(19, "whole")
    draw(11, "parts")
    draw(19, "parts")
    whole, _, parts = looked
    assert len(whole) == 5 and torch.equal(parts, whole)


class Next:
    """The next examples, in their order, from a place of each chain's own."""

    replacement = False

    def indices(self, num_examples, batch_size, chains, seed, step):
        first = torch.arange(chains)[:, None] * 3 + step * batch_size
        return (first + torch.arange(batch_size)) % num_examples


@pytest.mark.parametrize("number", [3, 4, 10, 40, 1_000])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 600])
def test_rules_that_are_ordered_are_told_from_those_that_are_not(number, size):
    if size >= number:
        return
    inputs = torch.ones(number, 1)
    orders = [
        rule_order(
            LinearRegression(inputs, inputs[:, 0], batch_size=size, minibatches=rule)
        )
        for rule in (
            Fresh(),
            Fresh(replacement=True),
            Held(2),
            Passes(),
            Next(),
            Sweeps(),
        )
    ]
    passes = "passes" if 2 * size <= number else ""  # else an epoch is one minibatch
    # which a sweep holds for its two steps
    assert orders == ["", "", "holds", passes, passes, passes or "holds"]


def test_a_noise_estimate_that_does_not_suit_the_rule_is_told_in_its_direction():
    """And it hides nothing: B̂ = C leaves no noise, and in epochs hardly any comes."""
    inputs = torch.randn(200, 3, generator=generator_of(0))
    targets = inputs.sum(-1) + torch.randn(200, generator=generator_of(1))

    def said(rule, estimate, batch_size=20):
        target = LinearRegression(
            inputs, targets, batch_size=batch_size, minibatches=rule
        )
        start = target.mean.expand(20, 3)
        kernel = SGHMC(0.02, 40.0, estimate, num_steps=5)
        return said_of(kernel, target, start, 60)

    for rule, estimate in ((Passes(), 40.0), (Sweeps(), OnlineNoise())):
        first, *others = said(rule, estimate)
        name = type(rule).__name__
        assert first.startswith("noise_estimate subtracts") and f"by {name}" in first
        assert "too narrow. Leave noise_estimate at 0, or take Fresh()" in first
        assert any(told.startswith("the samples are too narrow") for told in others)
        assert not any(told.startswith("the samples are too wide") for told in others)
    first, *others = said(Held(20), OnlineNoise())
    assert first.startswith("noise_estimate subtracts") and "too wide" in first
    assert [told for told in others if told.startswith("the samples are too wide: the")]
    for rule, estimate, size in (
        (Passes(), 0.0, 20),
        (Sweeps(), 0.0, 20),
        (Fresh(), 20.0, 20),
        (Passes(), 20.0, 200),
    ):
        assert not [told for told in said(rule, estimate, size) if "subtracts" in told]
    posterior = WithPrecision(
        LinearRegression(inputs, targets, batch_size=10, minibatches=Passes())
    )
    posterior.minibatches, posterior.takes_all_data = Passes(), False
    posterior.num_examples, posterior.batch_size = 200, 10
    for kernel in (
        SGLD(0.001, noise_estimate=torch.tensor([0.0, 0.1])),
        SGNUTS(1, 1, 1),
    ):
        for each in (kernel, Gibbs(kernel)):
            assert "too narrow" in remark_order(each, posterior)[0]
    assert remark_order(Gibbs(SGLD(0.001)), posterior) == []
    assert remark_order(HMC(0.1, 3), posterior) == []


def test_noise_in_epochs_is_no_cause_of_width(monkeypatch):
    """It nearly cancels there, so that twice the friction is no proof."""
    monkeypatch.setattr("sgmc.door.remarks.remark_virial", lambda *_: [])
    inputs = torch.randn(200, 3, generator=generator_of(0))
    for rule, told in ((Fresh(), 1), (Passes(), 0)):
        target = LinearRegression(
            inputs, inputs.sum(-1), batch_size=2, minibatches=rule, noise_variance=0.1
        )
        draws = target.mean + 0.1 * torch.randn(40, 4, 3, generator=generator_of(1))
        assert len(remark_target(SGHMC(0.01, 1.0), target, draws, 0)) == told


# of which nothing may be said: (kernel, potential, chains, dim)
NOISY_WELL = NoisyGradient(DoubleWell(), 4.0)
RIGHT = {
    "SGHMC": (SGHMC(0.1, 3.0, 0.2, num_steps=10), NOISY_WELL, 10, 1),
    "SGHMC, one chain": (SGHMC(0.1, 3.0, 0.2, num_steps=50), NOISY_WELL, 1, 1),
    "SGHMC, every step kept": (SGHMC(0.1, 3.0, 0.2), NOISY_WELL, 10, 1),
    "a temperature": (
        SGHMC(0.1, 3.0, temperature=0.3, num_steps=10),
        STANDARD,
        10,
        1,
    ),
    "BAOAB": (Splitting(flows.baoab(0.5, 1.0)), STANDARD, 1, 1),
    "SGLD": (SGLD(0.05), STANDARD, 1, 1),
    "NUTS": (NUTS(0.5), DoubleWell(), 1, 1),
    "NUTS, many coordinates": (NUTS(0.5), Gaussian.standard(50), 2, 50),
    "HMC": (HMC(0.3, 4), Gaussian.standard(3), 4, 3),
    "SGNUTS": (SGNUTS(0.1, 3.0, 0.2), NOISY_WELL, 4, 1),
}


# RIGHT_RUNS=20 makes two hundred of them
@pytest.mark.parametrize("seed", range(int(os.environ.get("RIGHT_RUNS", "1"))))
@pytest.mark.parametrize("case", RIGHT)
def test_nothing_is_said_of_right_samples(case, seed):
    """A false alarm has a probability of 6e-7, if the mean is 1 and stretches are
    independent; and where they are not, it must still be off by a fifth.
    """
    kernel, potential, chains, dim = RIGHT[case]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        start = torch.zeros(chains, dim)
        sample(kernel, potential, start, num_samples=400, seed=seed, progress=False)
    assert not re.findall("samples are too|halves|support", str([*map(str, warned)]))


def test_the_centre_is_independent_of_the_samples_it_is_used_for():
    """One chain of 60 samples in 2,000 coordinates, a fifth of its correlation time
    apart: about its own mean the ratio is 0.8, for the mean follows the chain.
    """
    generator, kept = torch.Generator().manual_seed(0), math.exp(-0.2)
    theta, chain = torch.randn(1, 2_000, generator=generator), []
    for _ in range(60):
        normal = torch.randn(1, 2_000, generator=generator)
        theta = kept * theta + (1 - kept**2) ** 0.5 * normal
        chain.append(theta)
    chain, target = torch.stack(chain), Gaussian.standard(2_000)
    ratio = float(virial_ratio(target, chain, generator).mean())
    own = float(((chain - chain.mean(0)) * chain).mean())
    assert own < 0.9
    assert abs(ratio - 1) < 0.1


@pytest.mark.parametrize(
    "kernel",
    [SGLD(lambda step: 1.5 / (1 + 0.01 * step)), SGLD(0.5, temperature=0.0)],
    ids=["a schedule", "no temperature"],
)
def test_where_no_density_is_meant_nothing_is_said_of_the_width(kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample(kernel, STANDARD, torch.ones(4, 1), num_samples=50, progress=False)


def test_looking_at_the_width_changes_no_sample_and_takes_a_hundred_gradients(
    monkeypatch,
):
    counted = []
    real = Potential.fresh_minibatch

    def count(self, position, generator):
        counted.append(1)
        return real(self, position, generator)

    def draw():
        return sample(
            SGHMC(0.1, 3.0, 0.2), NOISY_WELL, torch.zeros(3, 1), 300, progress=False
        ).samples

    looked = draw()
    monkeypatch.setattr(Potential, "fresh_minibatch", count)
    assert torch.equal(draw(), looked)
    assert len(counted) == 128 + 100  # before the run, and after it
    monkeypatch.setattr("sgmc.door.remarks.remark_virial", lambda *_: [])
    assert torch.equal(draw(), looked)


def test_noise_of_twice_the_friction_is_told_whatever_chance_says(monkeypatch):
    """½εV is 2, so that a chain has twice its temperature or more where TC < 1."""
    monkeypatch.setattr("sgmc.door.remarks.remark_virial", lambda *_: [])
    target = NoisyGradient(Gaussian.standard(200), 40.0)
    for friction, temperature, told in ((0.8, 1, True), (1.25, 1, False), (0.8, 4, 0)):
        kernel = SGHMC(0.1, friction, 0.5, num_steps=5, temperature=float(temperature))
        found = remark_target(kernel, target, torch.randn(40, 1, 200), 0)
        assert bool(found) == told
        assert not told or found[0].startswith("the samples are too wide: ½εV̂")


def test_the_standard_error_respects_autocorrelation():
    """Of 2,000 chains with a correlation time of nine samples, against the exact one."""
    generator, kept = torch.Generator().manual_seed(0), 0.8
    normal = torch.randn(1_000, 2_000, generator=generator, dtype=torch.float64)
    chain = [normal[0] / (1 - kept**2) ** 0.5]
    for each in normal[1:]:
        chain.append(kept * chain[-1] + each)
    errors = [mean_and_error(values[:, None])[1] for values in torch.stack(chain, 1)]
    exact = 1 / (1 - kept) / 1_000**0.5
    assert 0.85 * exact < sum(errors) / len(errors) < 1.05 * exact


def test_little_is_not_told_however_sure_it_is():
    values = 1.1 + 0.001 * torch.randn(100, 40, generator=torch.Generator())
    assert not remark_virial(values[..., None], values[..., None])
    assert remark_virial(values[..., None] + 0.2, values[..., None])


class Offset(Potential):
    """A standard normal distribution with a large constant in its energy."""

    def __init__(self, constant):
        self.constant, self.dim = constant, 2

    def energy(self, position):
        return 0.5 * position.square().sum(-1) + self.constant


@pytest.mark.parametrize(
    "kernel", [NUTS(0.5), HMC(1.5, 3), RandomWalkMetropolis(2.0)], ids=str
)
def test_energies_that_are_rounded_too_much_are_told(kernel):
    """The variance of NUTS is 2.1 with a constant of 1e8 in single precision."""

    def say(constant, dtype=torch.float32):
        start = torch.randn(20, 2, generator=torch.Generator(), dtype=dtype)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            sample(kernel, Offset(constant), start, num_samples=30, progress=False)
        return [str(one.message) for one in warned if "rounds" in str(one.message)]

    (told,) = say(1e8)
    assert "1e+08" in told and "float32" in told and "float64" in told
    assert not say(1e6) and not say(1e8, torch.float64)


def test_the_last_energies_are_judged_and_not_those_of_a_far_start():
    far, near = torch.full((1, 3), 1e8), torch.zeros(1, 3)
    assert not remark_rounding(torch.cat([far, near]))
    (told,) = remark_rounding(torch.cat([near, -far]))
    assert told.startswith("energies are about 1e+08")


class Shared:
    """A rule that gives all chains one minibatch."""

    replacement = False

    def __init__(self, chains=None):
        self.chains = chains

    def indices(self, num_examples, batch_size, chains, seed, step):
        generator = torch.Generator().manual_seed(step)
        chosen = torch.randperm(num_examples, generator=generator)[:batch_size]
        return chosen.expand(self.chains or chains, -1)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Shared(), r"minibatches.*same minibatch"),
        (Shared(1), r"minibatches.*\(1, 10\)"),
    ],
    ids=["the same for all chains", "no axis of chains"],
)
def test_a_rule_without_a_minibatch_for_every_chain_is_refused(rule, message):
    posterior = LogisticRegression(
        torch.randn(100, 2), torch.ones(100), batch_size=10, minibatches=rule
    )
    with pytest.raises(ValueError, match=message):
        sample(SGLD(0.01), posterior, torch.zeros(3, 2), 5, progress=False)


# Every number of a remark, and every limit, where the right ones are known


def test_a_coordinate_that_stands_still_hides_no_other(generator):
    values = torch.randn(200, 4, 3, generator=generator)
    values[..., 1] = 0.0
    assert remark_disagreement({"": values}) == []
    values[:, 3, 2] += 30
    bad = {"one": values, "whole": torch.zeros(200, 4).long(), "two": values[..., 2]}
    one, two = remark_disagreement(bad)
    assert "coordinate 2 of one, and over 1.1 in 1 of 3" in one
    assert "R̂ is" in two and "0 of two, " in two and "chain 3" in two


def test_widths_are_distances_from_the_mean_of_all_chains(generator):
    noise = torch.randn(200, 4, generator=generator, dtype=torch.float64)
    values = noise * torch.tensor([1.0, 1, 1, 20]) + torch.tensor([0.0, 0, 3, 0])
    right, own = (
        float(split_r_hat((values - centre).abs()[..., None]))
        for centre in (values.mean(), values.mean(0))
    )
    assert f"{right:.2f}" != f"{own:.2f}"
    (told,) = remark_disagreement({"": values})
    assert f"R̂ is {right:.2f} in coordinate 0 of the samples" in told


def test_growth_is_of_logarithms_from_ten_steps_on():
    signs = torch.arange(21) % 2 - 0.5

    def told(sizes):
        steps = (
            torch.tensor([0.0, *sizes], dtype=torch.float64) * signs[: len(sizes) + 1]
        )
        return "".join(remark_growth(steps.cumsum(0)[:, None, None]))

    assert "512-fold" in told(2.0 ** torch.arange(10))
    assert told(2.0 ** torch.arange(9)) == ""
    # the first two have a mean of one on the logarithmic scale, and of five otherwise
    later = [x for k in range(9) for x in (2.0 + k, 2.0 + k)]
    assert told([0.1, 10.0, *later]) == ""
    assert "12-fold" in told([0.1, 10.0, *later[:-2], 12.0, 12.0])


class Drawn(Potential):
    """∇Ũ(θ; ω) = aθ + ω, with ω = 1, 2, 4 ... in both coordinates; it may be infinite
    in one, and it works in place.
    """

    dim, drawn, infinite = 2, 0, False

    def fresh_minibatch(self, position, generator):
        self.drawn += 1
        return 2.0 ** (self.drawn - 1)

    def gradient_given(self, position, minibatch):
        found = position.mul_(torch.tensor([2.0, 3.0])) + minibatch
        if self.infinite and minibatch == 1:
            found[position[:, 1] == 0.75, 1] = math.inf
        return found


@pytest.mark.parametrize("infinite", [False, True])
def test_virial_products_are_those_of_their_formula(infinite, monkeypatch):
    """(θ − c)·(∇Ũ(θ; ω) − ∇Ũ(c; ω) + the mean of ∇Ũ(c; ·))/T; what is infinite at c is
    left out.
    """
    monkeypatch.setattr(Drawn, "infinite", infinite)

    def expected(samples, centre, first=0):
        noise = 2.0 ** (first + torch.arange(len(samples)))[:, None, None]
        at, there = (x * torch.tensor([2.0, 3.0]) + noise for x in (samples, centre))
        there = torch.where((centre == 0.25) & (noise == 1) & infinite, 0, there)
        return (samples - centre) * (at - there + there.mean(0)) / 0.5

    samples = torch.tensor([[[1.0, 5], [0, 1], [-1, -6]], [[3, 2], [1, 1], [-3, 0]]])
    centre = torch.tensor([[-0.75, -1], [0, 0.25], [1.25, 2.25]])
    before = samples.clone()
    products = virial_products(Drawn(), samples, generator_of(0), 0.5)
    torch.testing.assert_close(products, expected(samples, centre))
    ratio = virial_ratio(Drawn(), samples, generator_of(0), 0.5)
    torch.testing.assert_close(ratio, products.mean(-1))
    assert torch.equal(samples, before)
    # of one chain the other half
    monkeypatch.setattr(Drawn, "infinite", False)
    infinite = False
    alone = torch.tensor([[1.0, 5], [0, 1], [2, 2], [-1, 4], [1, 0]])[:, None]
    products = virial_products(Drawn(), alone, generator_of(0), 0.5)
    first, second = alone.tensor_split(2)
    torch.testing.assert_close(products[:3], expected(first, second.mean(0)))
    torch.testing.assert_close(products[3:], expected(second, first.mean(0), 3))


def test_the_mean_and_its_error_are_those_of_stretches():
    """Of two chains of 25 samples ten stretches each, of two; the rest is left out."""
    values = torch.arange(25.0)[:, None].square() + torch.tensor([0.0, 1e3])
    mean, error, degrees = mean_and_error(values)
    parts = values[:20].double().view(10, 2, 2).mean(1)
    assert mean == pytest.approx(float(parts.mean())) and degrees == 19
    assert error == pytest.approx(float(parts.std()) / 20**0.5)
    assert mean_and_error(torch.arange(7.0)[:, None])[2] == 6
    assert mean_and_error(torch.arange(7.0).expand(3, 7))[2] == 20


def off(*given):
    return ratios(*given)[2]


def limit_of(degrees, number=1):
    """|t| that one of so many exceeds by chance in one of 1/5.7e-7 runs."""
    return float(-scipy.stats.t.ppf(5.7e-7 / 2 / number, degrees))


# ±1 by turns, of stretches, so that the standard error of a mean of 40 is 1/√39
SIGNS = (-1.0) ** torch.arange(10, dtype=torch.float64).repeat_interleave(10)


@pytest.mark.parametrize("k", [1, 6])
def test_the_limit_is_that_of_student_for_all_coordinates_together(k):
    """Below 1 the error is divided by the mean; and 0.2 is never off."""
    signs = SIGNS[:, None, None].expand(-1, 4, k)
    for mean in (1.3, 0.7):
        usual = 0.3 * min(mean, 1) * 39**0.5 / limit_of(39, k)
        for far, told in ((0.98, False), (1.02, True)):
            _, errors, which = ratios(mean + usual / far * signs)
            assert which.tolist() == [told] * k
            torch.testing.assert_close(errors[0] * 39**0.5, errors[0] * 0 + usual / far)
    for mean, told in ((1.21, True), (1.19, False), (0.79, True), (0.81, False)):
        assert off(mean + 1e-3 * signs).tolist() == [told] * k


def test_the_limit_of_slow_chains_is_that_of_their_means():
    """Four that hardly move, with a standard error of 1/√3: three degrees of freedom.
    It is enough that the samples are slow; one chain alone tells nothing.
    """
    places = torch.tensor([-1.0, 1, -1, 1], dtype=torch.float64)[:, None]
    quick, slow = SIGNS[:, None, None].expand(-1, 4, 1), places.expand(100, -1, -1)
    slow = slow + 0.01 * quick
    for far, told in ((0.98, False), (1.02, True)):
        width = 0.5 * 3**0.5 / limit_of(3) / far
        assert off(1.5 + width * slow).tolist() == [told]
        hidden = 1.5 + width * (places + 10 * quick)
        assert off(hidden, slow) == told and off(hidden)
    assert off(1.5 + 0.01 * quick[:, :1])
    assert not off(1.5 + 0.01 * quick[:, :1], torch.arange(100.0)[:, None, None])


def test_a_mean_below_zero_is_no_slow_chain():
    """Averaged over coordinates; a coordinate by itself may have one."""
    slow = torch.linspace(-1, 1, 100, dtype=torch.float64)[:, None, None]
    slow = slow.expand(-1, 4, -1) * torch.tensor([1.0, -1, 1, -1])[:, None]
    assert off(-1 + 0.1 * slow)
    places = torch.tensor([-1.4, -0.6, -1.4, -0.6])[:, None].expand(100, -1, -1)
    assert off(places)
    assert not off(places, places)


def test_few_samples_have_no_ratio_but_a_far_one():
    signs = (-1.0) ** torch.arange(20)
    for number, told in ((19, False), (20, True)):
        assert off(3 + 0.01 * signs[:number, None, None]) == told
    # 5.0011 standard deviations of as many signs as there are products beyond 10
    for chains, number, told in ((5, 5, False), (2, 13, True), (1, 19, False)):
        assert off(torch.full((number, chains, 1), 11.0)) == told
        assert off(torch.full((number, chains, 1), -11.0)) == told
        assert not off(torch.full((number, chains, 1), 9.9))
    many = torch.full((13, 2, 9), 11.0)
    assert not off(many).any()
    # four of forty on the other side: 32 is 5.06 times √40, and 28 less than five
    products = torch.full((2, 20, 1), 100.0)
    for others, told in ((2, True), (3, False)):
        products[:, :others] = -11.0
        assert off(products) == told
    assert off(torch.full((5, 1, 1), math.nan))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_share_of_the_samples_outside_is_of_every_fourth_of_a_hundred(dtype):
    """What overflows is no border of the support."""

    class Bounded(Gaussian):
        def energy(self, position):
            inside = (position.abs() < 100).all(-1) | (position.abs() > 1e20).any(-1)
            return torch.where(inside, super().energy(position), math.inf)

    draws = torch.randn(200, 4, 2, generator=generator_of(0), dtype=dtype)
    target = Bounded(torch.eye(2, dtype=dtype))
    draws[:100] = 300.0  # not looked at
    assert remark_target(SGLD(0.1), target, draws, 0) == []
    draws[-3:, 1] = 200.0
    assert "not finite" not in "".join(remark_target(SGLD(0.1), target, draws, 0))
    draws[-8:, 1] = 200.0  # the last two of 25, of one of four chains
    (told,) = remark_target(SGLD(0.1), target, draws, 0)
    assert told.startswith("the energy is not finite in 2% of the samples")
    draws[150:] = 1e25 * torch.randn(50, 4, 2, generator=generator_of(0), dtype=dtype)
    assert "too wide" in "".join(remark_target(SGLD(0.1), target, draws, 0))


def test_a_hundred_samples_are_many_and_one_chain_has_halves():
    """R̂ is 1.2 of two chains at ±0.6, 1.3 of the halves of one, and 1.7 at ±1."""
    swing = (-1.0) ** torch.arange(100)[:, None]
    chains, halves = (
        torch.tensor([0.6, -0.6]),
        (torch.arange(100)[:, None] < 50) * 1.0 - 0.5,
    )
    (told,) = remark_disagreement({"": swing + chains})
    assert told.startswith("the chains do not agree: R̂ is 1.20 in coordinate 0")
    assert remark_disagreement({"": (swing + chains)[:99]}) == []
    assert remark_disagreement({"": swing + 1.2 * halves}) == []
    (told,) = remark_disagreement({"": swing + 2 * halves})
    assert told.startswith("the halves of the chain do not agree: R̂ is 1.7")
    assert remark_disagreement({"": (swing + 2 * halves)[:99]}) == []


def test_a_remark_on_the_width_names_where_how_much_and_why():
    ones = torch.ones(100, 4, 6, dtype=torch.float64)
    signs = SIGNS[:, None].expand(-1, 4)
    says = lambda place: (f"Cause {place}.", False)
    narrow, wide = ones.clone(), ones.clone()
    narrow[..., 1], wide[..., :3] = 0.5, 3
    wide[..., 2] = 4 + signs / 2
    assert remark_virial(ones, ones) == []
    error = f"{0.5 / 39**0.5:.1g}"
    for products, given in (
        (2 * ones, "too wide: .* is 2 ± 0, .*Cause None"),
        (narrow, "too narrow in coordinate 1, as 1 of 6: .* is 0.5 ± 0, .*Take more"),
        (wide, f"too wide in coordinate 2, as 3 of 6: .* is 4 ± {error}, .*Cause 2"),
        (wide[..., [0, 0, 2, 0, 1, 5]], "too wide: .*Cause None"),  # their mean tells
        (-ones[..., :1], "too narrow: .*U falls outwards"),
        (math.nan * ones, "too wide: .*U falls outwards"),
    ):
        (told,) = remark_virial(products, ones[..., : products.shape[-1]], says)
        assert re.match(f"the samples are {given}", told), told


def test_what_the_noise_says_is_of_the_coordinate_friction_and_estimate():
    """εV/2 is 2, or of three coordinates 1, 2 and 6."""
    equal, variances = torch.tensor(40.0), torch.tensor([20.0, 40.0, 120.0])

    def said(variance, place=None, step_size=0.1, **settings):
        kernel = SGHMC(step_size, **settings)
        target, start = NoisyGradient(Gaussian.standard(3), variance), torch.zeros(2, 3)
        told, hot = noise_cause(kernel, target, start, generator_of(0), place)
        return [
            float(x)
            for x in re.findall(r"(?:about|estimate|friction) (\d\S*\d|\d)", told)
        ], hot

    assert said(equal, friction=9.0, noise_estimate=1.59) == ([2, 1.6, 9], False)
    assert said(equal, friction=9.0, noise_estimate=1.61) == ([], False)
    assert said(equal, friction=2.1, noise_estimate=OnlineNoise()) == ([], False)
    for factor, hot in ((1.01, True), (0.99, False)):
        for temperature in (1.0, 4.0):
            limit = {"friction": 1 / factor / temperature, "temperature": temperature}
            assert said(equal, **limit) == ([2, 0, float(f"{1 / factor:.2g}")], hot)
    assert said(equal, friction=2.01, noise_estimate=1.9) == ([], False)
    # of one coordinate, or averaged over all
    for diagonal in (
        torch.tensor([3.0, 1.5, 9.0]),
        torch.diag(torch.tensor([3.0, 1.5, 9.0])),
    ):
        given = dict(friction=diagonal, noise_estimate=diagonal / 9)
        assert said(variances, 1, **given) == ([2, 0.17, 1.5], False)
        assert said(variances, 2, **given) == ([6, 1, 9], False)
        assert said(variances, None, **given) == ([3, 0.5, 4.5], False)
    # where there is no step of one size, no friction, or no noise that is known
    assert said(equal, step_size=lambda step: 0.1, friction=0.1) == ([], False)
    given = NoisyGradient(Gaussian.standard(3), equal), torch.zeros(2, 3)
    assert noise_cause(SGLD(0.1), *given, generator_of(0), None) == ("", False)
    given = Drawn(), torch.zeros(2, 2), generator_of(0)
    assert noise_cause(SGHMC(0.1, 0.1), *given, 0) == ("", False)
