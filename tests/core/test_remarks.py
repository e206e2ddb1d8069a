"""What is said of samples whatever the kernel: R̂, chains in separate places, the names
of chains, and the width of the samples, by the virial theorem.
"""

import math
import os
import re
import warnings

import arviz
import pytest
import torch

from sgmc import sample
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD, SGNUTS
from sgmc.minibatches import Held
from sgmc.models import Posterior
from sgmc.noise import OnlineNoise
from sgmc.other_kernels import RandomWalkMetropolis
from sgmc.posteriors import LogisticRegression
from sgmc.potentials import Potential
from sgmc.remarks import (
    LEAST,
    mean_and_error,
    name_chains,
    remark_disagreement,
    remark_stuck,
    remark_target,
    remark_virial,
    split_r_hat,
    virial_ratio,
)
from sgmc.sampling import DivergenceError
from sgmc.splittings import Splitting, flows, linear_chain, sghmc_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient


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
        f"the chains do not agree: R̂ is {expected:.2f} in coordinate 3 of 'bad', and "
        "over 1.1 in 2 of 6. Take more samples"
    )


def test_chains_of_one_mean_and_unlike_widths_are_seen(generator):
    """R̂ of the values compares means alone."""
    values = torch.randn(200, 4, generator=generator) * torch.tensor(
        [1.0, 1.0, 1.0, 5.0]
    )
    assert split_r_hat(values[..., None]) < 1.05
    (remark,) = remark_disagreement({"": values})
    assert "the chains do not agree" in remark


def test_a_half_that_differs_from_the_other_is_seen():
    """Chains that drift together agree at every time, and yet have not arrived."""
    drift = torch.linspace(0, 5, 200)[:, None] + torch.randn(
        200, 4, generator=torch.Generator().manual_seed(0)
    )
    (remark,) = remark_disagreement({"": drift})
    assert "longer warm_up" in remark and "stay" not in remark


@pytest.mark.parametrize("away", [(3,), (0, 3, 4)])
def test_chains_in_separate_places_are_named_the_fewer_ones_first(away, generator):
    values = torch.randn(200, 7, 2, generator=generator)
    values[:, list(away), 1] -= 10
    (remark,) = remark_disagreement({"": values})
    named = (
        "Chain 3 stays around -"
        if len(away) == 1
        else "Chains 0, 3 and 4 stay around -"
    )
    assert (
        "coordinate 1 of the samples" in remark
        and named in remark
        and "the others around" in remark
        and "separate modes" in remark
    )


def test_few_samples_of_one_law_get_no_remark_and_modes_do(generator):
    """Of halves of ten samples R̂² is about 0.9 + 0.1·F(7, 72): over 2.25 never, over
    1.21 in one coordinate of 170.
    """
    values = torch.randn(LEAST, 4, 1_000, generator=generator)
    assert remark_disagreement({"": values}) == []
    values[:, 3, 7] += 10
    (remark,) = remark_disagreement({"": values})
    assert "in coordinate 7" in remark and "Chain 3 stays around" in remark


@pytest.mark.parametrize("apart", [1.0, 30.0])
def test_chains_that_are_still_where_they_started_are_told(apart, generator):
    start = apart * torch.randn(4, 3, generator=generator)
    walk = 0.02 * torch.randn(50, 4, 3, generator=generator).cumsum(0)
    (remark,) = remark_disagreement({"": start + walk}, start)
    assert "near their starts" in remark
    arrived = torch.randn(50, 4, 3, generator=generator)
    arrived[:, 2] += 20
    (remark,) = remark_disagreement({"": arrived}, start[:, [2, 1, 0]] + 100)
    assert "near their starts" not in remark


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
    message = "halves of the chain do not agree.* has not arrived"
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


def test_a_walk_out_of_a_priors_support_is_told():
    prior = torch.distributions.Uniform(0.0, 1.0, validate_args=False)
    posterior = Posterior(
        lambda position: prior.log_prob(position).sum(-1),
        lambda position, x: -0.5 * (x - position) ** 2,
        (torch.zeros(4),),
        dim=1,
        batch_size=2,
    )
    with pytest.warns(UserWarning, match=r"energy is not finite in \d+% .*support"):
        start = torch.full((4, 1), 0.5)
        sample(SGHMC(0.1, 3.0), posterior, start, num_samples=50, progress=False)


def test_a_friction_below_the_noise_is_told_after_a_hundred_gradients():
    """And the end of a run says its final share."""
    kernel = SGHMC(0.1, 0.05, OnlineNoise(), num_steps=5)
    said, gradients = [], NoisyGradient.gradient_given

    def interrupted(self, position, minibatch):
        said.append(len(caught))
        return gradients(self, position, minibatch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoisyGradient, "gradient_given", interrupted)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            target = NoisyGradient(STANDARD, 4.0)
            sample(kernel, target, torch.zeros(4, 1), 60, warm_up=30, progress=False)
    early, late = (str(one.message) for one in caught)
    assert re.match(r"½εV̂ exceeded the friction in \d.*\(after 100 steps\)", early)
    assert late.startswith("½εV̂ exceeded the friction in")
    assert caught[0].filename == caught[1].filename == __file__


def test_chains_that_stand_still_in_different_places_disagree():
    """Their variance within is zero, and R̂ infinite."""
    (remark,) = remark_disagreement({"": torch.arange(3.0).expand(LEAST, 3)})
    assert "R̂ is inf" in remark


def test_only_chains_that_are_where_they_started_are_named():
    start = torch.tensor([[1.0, 2.0], [1.0, 2.0], [math.pi, 0.0]])
    assert remark_stuck(start, start + torch.tensor([0.0, 1e-6]), 100) == []
    end = torch.tensor([[1.0, 2.5], [1.0, 2.0], [0.0, 0.0]])
    assert (
        remark_stuck(start, end, 100)[0].startswith("chain 1 never moved")
        and remark_stuck(start, end, 99) == []
    )


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, "chain 0"),
        (2, "chains 0 and 1"),
        (5, "chains 0, 1, 2, 3 and 4"),
        (6, "chains 0, 1, 2, 3, 4 and 1 other"),
    ],
)
def test_chains_are_named(number, expected):
    assert name_chains(torch.arange(8) < number) == expected


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


def test_a_chain_that_grows_without_end_is_told():
    with pytest.warns(UserWarning, match="too wide"):
        sample(SGLD(2.2), STANDARD, torch.ones(4, 1), num_samples=300, progress=False)


def test_a_minibatch_that_is_held_is_told():
    inputs = torch.randn(2_000, 5, generator=torch.Generator().manual_seed(1))
    posterior = LogisticRegression(
        inputs, (inputs[:, 0] > 0).float(), batch_size=50, minibatches=Held(10**6)
    )
    with pytest.warns(UserWarning, match="too wide"):
        sample(
            SGHMC(0.02, 2.0, num_steps=20),
            posterior,
            torch.zeros(20, 5),
            num_samples=400,
            progress=False,
        )


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
    assert len(counted) == 100
    monkeypatch.setattr("sgmc.remarks.remark_virial", lambda *_: [])
    assert torch.equal(draw(), looked)


def test_noise_of_twice_the_friction_is_told_whatever_chance_says(monkeypatch):
    """½εV is 2, so that a chain has twice its temperature or more where TC < 1."""
    monkeypatch.setattr("sgmc.remarks.remark_virial", lambda *_: [])
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
    assert not remark_virial(values)
    assert remark_virial(values + 0.2)


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
