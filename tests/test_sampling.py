"""The loop: what it keeps, what it refuses, and that stopping and resuming change nothing."""

import math
import warnings
from functools import partial

import pytest
import torch

from sgmc import sample, sampling
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD, SGNUTS, NaiveSGHMC, RandomWalkMetropolis
from sgmc.posteriors import LinearRegression
from sgmc.potentials import DoubleWell, Gaussian, NoisyGradient, Potential
from sgmc.sampling import CheckpointError, DivergenceError

NOISY = NoisyGradient(DoubleWell(), 4.0)
KERNELS = {
    "random walk": RandomWalkMetropolis(1.0),
    "HMC": HMC(0.1, 4, jitter=0.5, refreshment=0.7),
    "naive SGHMC": NaiveSGHMC(0.1, 4, metropolis=True),
    "SGLD": SGLD(lambda step: 0.1 / (1 + step)),
    "SGHMC": SGHMC(0.1, 3.0, noise_estimate=0.2, num_steps=2, resample_every=3),
    "NUTS": NUTS(0.2),
    "SGNUTS": SGNUTS(0.1, 3.0, noise_estimate=0.2, minibatch="fixed"),
}
START = torch.tensor([[0.0], [1.0], [-1.0]])


class Stop:
    """A kernel or potential that raises at its n-th step."""

    def __init__(self, kernel, at, error=KeyboardInterrupt):
        self.kernel, self.left, self.error = kernel, at, error

    def __str__(self):
        return str(self.kernel)

    def init(self, *arguments):
        return self.kernel.init(*arguments)

    def step(self, *arguments):
        if self.left == 0:
            raise self.error
        self.left -= 1
        return self.kernel.step(*arguments)


@pytest.mark.parametrize("name", KERNELS)
def test_the_same_seed_gives_the_same_draws_and_another_one_does_not(name):
    draw = lambda seed: sample(KERNELS[name], NOISY, START, num_samples=12, seed=seed).samples  # noqa: E731
    assert torch.equal(draw(3), draw(3)) and not torch.equal(draw(3), draw(4))


@pytest.mark.parametrize("name", KERNELS)
def test_a_run_resumed_from_its_checkpoint_draws_what_an_uninterrupted_one_draws(name, tmp_path, monkeypatch):
    settings = dict(num_samples=20, warm_up=5, thinning=2, seed=1)
    whole = sample(KERNELS[name], NOISY, START, **settings)
    file = tmp_path / "new" / "run.pt"
    monkeypatch.setattr(sampling, "_fingerprint", lambda thing: "the same")  # the stopping kernel is another object
    for at in (0, 3, 17):  # before a draw, in warm-up, in the middle
        with pytest.warns(UserWarning, match="interrupted after"):
            part = sample(Stop(KERNELS[name], at), NOISY, START, checkpoint=file, **settings)
        assert not part.complete and torch.equal(part.samples, whole.samples[: len(part.samples)])
    resumed = sample(KERNELS[name], NOISY, START, checkpoint=file, **settings)
    assert resumed.complete and torch.equal(resumed.samples, whole.samples)
    assert all(torch.equal(resumed.statistics[key], value) for key, value in whole.statistics.items())
    again = sample(Stop(KERNELS[name], 0), NOISY, START, checkpoint=file, **settings)  # done: it takes no step
    assert torch.equal(again.samples, whole.samples)


def test_ctrl_c_keeps_what_was_drawn():
    with pytest.warns(UserWarning, match="interrupted after 9 of 40 steps: the draws so far are kept"):
        draws = sample(Stop(KERNELS["SGHMC"], 9), NOISY, START, num_samples=20, thinning=2)
    assert draws.samples.shape == (4, 3, 1) and not draws.complete
    assert torch.equal(draws.samples, sample(KERNELS["SGHMC"], NOISY, START, num_samples=20, thinning=2).samples[:4])


def test_checkpoints_are_written_while_the_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "_CHECKPOINT_SECONDS", 0.0)
    file = tmp_path / "run.pt"
    with pytest.raises(MemoryError):
        sample(Stop(KERNELS["SGHMC"], 7, MemoryError), NOISY, START, num_samples=10, checkpoint=file)
    assert torch.load(file)["steps"] == 7 and list(tmp_path.iterdir()) == [file]


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    file = tmp_path / "run.pt"
    settings = dict(num_samples=5, checkpoint=file)
    sample(KERNELS["SGHMC"], NOISY, START, **settings)
    sample(SGHMC(0.1, 3.0, noise_estimate=0.2, num_steps=2, resample_every=3), NoisyGradient(DoubleWell(), 4.0), START.clone(), **settings)
    others = [
        (KERNELS["HMC"], NOISY, START, settings),
        (SGHMC(0.1, 3.1, noise_estimate=0.2, num_steps=2, resample_every=3), NOISY, START, settings),
        (KERNELS["SGHMC"], NoisyGradient(DoubleWell(), 4.1), START, settings),
        (KERNELS["SGHMC"], NOISY, START + 1, settings),
        (KERNELS["SGHMC"], NOISY, START, settings | {"seed": 1}),
        (KERNELS["SGHMC"], NOISY, START, settings | {"num_samples": 6}),
        (KERNELS["SGHMC"], NOISY, START, settings | {"collect": torch.abs}),
    ]
    for *arguments, changed in others:
        with pytest.raises(CheckpointError, match="belongs to a run with another kernel, potential, start"):
            sample(*arguments, **changed)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", None], ids=["empty", "text", "cut short"])
def test_a_corrupt_checkpoint_is_refused(content, tmp_path):
    file = tmp_path / "run.pt"
    sample(KERNELS["SGHMC"], NOISY, START, num_samples=5, checkpoint=file)
    file.write_bytes(file.read_bytes()[:200] if content is None else content)
    with pytest.raises(CheckpointError, match=r"run\.pt is corrupt .*delete it to start anew"):
        sample(KERNELS["SGHMC"], NOISY, START, num_samples=5, checkpoint=file)


def test_warm_up_and_thinning_keep_the_steps_they_should():
    every = sample(KERNELS["SGHMC"], NOISY, START, num_samples=17, seed=2).samples
    kept = sample(KERNELS["SGHMC"], NOISY, START, num_samples=4, warm_up=5, thinning=3, seed=2).samples
    assert torch.equal(kept, every[[7, 10, 13, 16]])


def test_collect_keeps_a_function_of_the_positions():
    squares = sample(KERNELS["SGHMC"], NOISY, START, num_samples=4, collect=lambda position: position[:, 0] ** 2).samples
    assert torch.equal(squares, sample(KERNELS["SGHMC"], NOISY, START, num_samples=4).samples[..., 0] ** 2)
    with pytest.raises(ValueError, match=r"collect must return \(chains, ...\) with chains = 3"):
        sample(KERNELS["SGHMC"], NOISY, START, num_samples=4, collect=lambda position: position.sum(0)[None].expand(2, 1))


def test_the_start_is_not_changed():
    start = START.clone()
    sample(KERNELS["SGHMC"], NOISY, start, num_samples=3)
    assert torch.equal(start, START)


def test_the_global_generator_is_neither_read_nor_moved():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = sample(KERNELS["SGHMC"], NOISY, START, num_samples=3).samples
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    assert torch.equal(sample(KERNELS["SGHMC"], NOISY, START, num_samples=3).samples, first)


def test_divergence_names_step_chain_and_cause_and_keeps_the_draws():
    kernel = SGHMC(step_size=1.0, friction=0.1)
    with pytest.raises(DivergenceError, match=r"chain \d stopped being finite.*step_size of SGHMC.*too large") as caught:
        sample(kernel, DoubleWell(), START + 3, num_samples=100)
    kept = caught.value.draws
    assert 0 < len(kept.samples) < 100 and torch.isfinite(kept.samples).all() and not kept.complete
    first_bad = len(kept.samples)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = kernel.init(DoubleWell(), START + 3, torch.Generator().manual_seed(0))
        generator = torch.Generator().manual_seed(0)
        state = kernel.init(DoubleWell(), START + 3, generator)
        for _ in range(first_bad + 1):
            state = kernel.step(DoubleWell(), state, generator)
    assert not torch.isfinite(state.position).all()


def test_a_divergence_at_the_very_end_is_found():
    class Late(Potential):
        dim, calls = 1, 0

        def stochastic_gradient(self, position, generator):
            Late.calls += 1
            return torch.full_like(position, math.nan if Late.calls > 8 else 0.0)

    with pytest.raises(DivergenceError):
        sample(SGLD(0.1), Late(), START, num_samples=9)


def test_progress_goes_to_standard_error_only(capsys, monkeypatch):
    monkeypatch.setattr(sampling, "tqdm", partial(sampling.tqdm, disable=False))  # whatever TQDM_DISABLE says
    sample(KERNELS["SGHMC"], NOISY, START, num_samples=3)
    assert capsys.readouterr() == ("", "")  # under two seconds

    class Slow(DoubleWell):
        def gradient(self, position):
            import time

            time.sleep(0.6)
            return super().gradient(position)

    sample(SGLD(0.1), Slow(), START, num_samples=5)
    out, error = capsys.readouterr()
    assert out == "" and "step" in error
    monkeypatch.undo()
    sample(SGLD(0.1), Slow(), START, num_samples=5, progress=False)
    assert capsys.readouterr() == ("", "")


class NotANumber(DoubleWell):
    def gradient(self, position):
        return torch.where(position > 0.5, math.nan, position)


class Flat(DoubleWell):
    def gradient(self, position):
        return position.sum(-1)


GOOD = dict(kernel=KERNELS["SGHMC"], potential=NOISY, position=START, num_samples=5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"position": torch.zeros(3)},
            r"position must be a floating-point tensor \(chains, dim\), but it is \(3,\) torch.float32; one chain",
        ),
        ({"position": torch.zeros(3, 1, dtype=torch.int64)}, "torch.int64"),
        ({"position": [0.0]}, "but it is list"),
        ({"position": torch.zeros(0, 1)}, "at least one chain"),
        ({"position": torch.tensor([[math.nan]])}, "all of it finite"),
        ({"position": torch.zeros(3, 2)}, "position has 2 coordinates, but the potential has dim = 1"),
        ({"num_samples": 0}, "num_samples must be a whole number of at least 1, but it is 0"),
        ({"num_samples": 2.5}, "num_samples must be a whole number of at least 1, but it is 2.5"),
        ({"warm_up": -1}, "warm_up must be a whole number of at least 0"),
        ({"thinning": 0}, "thinning must be a whole number of at least 1"),
        ({"potential": NotANumber()}, "gradient at the start is not finite in chain 1; start elsewhere"),
        ({"potential": Flat()}, r"the potential's gradient is \(3,\) torch.float32, but the position is \(3, 1\)"),
        ({"potential": Gaussian.standard(1, torch.float64)}, "torch.float64, but the position is .* torch.float32; they must agree"),
        (
            {"potential": LinearRegression(torch.ones(2, 1, dtype=torch.float64), torch.ones(2, dtype=torch.float64))},
            r"cannot take a position of shape \(3, 1\), torch.float32",
        ),
    ],
)
def test_bad_input_is_refused_before_any_step(change, message):
    with pytest.raises(ValueError, match=message):
        sample(**(GOOD | change))
