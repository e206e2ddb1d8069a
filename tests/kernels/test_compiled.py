"""Compiled steps: those of the eager kernel on the same numbers, compiled once, and one
clear sentence where that cannot be.
"""

import shutil

import pytest
import torch
from torch.distributions import Normal, constraints

from sgmc import compiled, sample
from sgmc.compiled import CompiledPotential, CompiledSGHMC
from sgmc.kernels import NUTS, SGHMC
from sgmc.models import NamedPosterior, Posterior
from sgmc.noise import OnlineNoise
from sgmc.potentials import Potential
from sgmc.targets import DoubleWell, NoisyGradient
from tests.fakes import (
    DOUBLE,
    NOISY,
    Flat,
    generator_of,
)
from tests.kernels.steps import (
    DIAGONAL,
    FULL,
    START,
    assert_same,
    run_with_info,
)

needs_a_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "c++", "clang++"))),
    reason="CompiledSGHMC needs a C++ compiler, and none is installed",
)
FRICTION = torch.tensor([[2.0, -0.5], [-0.5, 3.0]], dtype=DOUBLE)


class Users(Potential):
    """A potential without a formula for its gradient."""

    def energy(self, position):
        return 0.25 * position.pow(4).sum(-1) + torch.cos(position).sum(-1)


USERS_POSTERIOR = Posterior(
    log_prior=lambda position: -0.5 * position.pow(2).sum(-1),
    log_likelihood=lambda position, x: (
        -torch.cosh(x - position.sum(-1, keepdim=True)).log()
    ),
    data=(torch.linspace(-3, 3, 40, dtype=DOUBLE),),
    dim=2,
    batch_size=5,
)
CASES = {
    "matrices": (
        NOISY,
        dict(
            friction=FRICTION,
            noise_estimate=0.2 * FULL,
            mass=DIAGONAL,
            temperature=0.5,
            resample_every=2,
        ),
    ),
    "automatic differentiation of minibatches, no temperature": (
        USERS_POSTERIOR,
        dict(friction=20.0, temperature=0.0),
    ),
}


@pytest.mark.slow
@needs_a_compiler
def test_the_compiled_energy_and_gradient_are_those_of_the_potential():
    """One of functions of named parameters, by matrices times vectors."""
    inputs = torch.linspace(-1, 1, 30, dtype=DOUBLE).view(10, 3)
    model = NamedPosterior(
        {"slope": (3,), "scale": ()},
        lambda p: -p["scale"] - p["slope"].square().sum(),
        lambda p, x: Normal(x @ p["slope"], p["scale"]).log_prob(x[:, 0]),
        (inputs,),
        {"scale": constraints.positive},
    )
    for chains in (1, 3):
        position = model.initial_position(chains, generator_of(chains))
        with torch.no_grad():
            found = CompiledPotential(model).energy_and_gradient(position)
            expected = model.energy_and_gradient(position)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@needs_a_compiler
@pytest.mark.parametrize("case", CASES)
def test_compiled_steps_are_the_eager_ones_and_are_compiled_once(case):
    """On the same seed, call after call, while the number of gradients grows; equal to
    float rounding.
    """
    potential, settings = CASES[case]
    kernel, eager = (
        make(0.05, num_steps=3, **settings) for make in (CompiledSGHMC, SGHMC)
    )
    state, info = run_with_info(kernel, potential, START, 6)
    expected, expected_info = run_with_info(eager, potential, START, 6)
    assert_same(state, expected, rtol=1e-12, atol=1e-12)
    assert info == expected_info == (18, None, None)
    assert len(kernel._compiled) == 1


class Branching(Flat):
    """A gradient with Python that depends on values."""

    def gradient(self, position):
        return position if position.sum() > 0 else 2 * position


class Leaving(Flat):
    """A gradient that leaves PyTorch."""

    def gradient(self, position):
        return torch.from_numpy(2 * position.numpy())


@pytest.mark.parametrize(
    "potential",
    [Branching(), Leaving()],
    ids=lambda potential: type(potential).__name__,
)
def test_a_gradient_that_cannot_be_traced_is_refused_in_one_sentence(potential):
    message = r"^CompiledSGHMC .*gradient.*\(.+: .+\)$"
    with pytest.raises(RuntimeError, match=message):
        sample(CompiledSGHMC(0.1, 2.0), potential, START, num_samples=2)
    assert len(sample(SGHMC(0.1, 2.0), potential, START, num_samples=2).samples) == 2


@pytest.mark.slow
def test_a_missing_compiler_is_told_in_one_sentence(monkeypatch, tmp_path):
    """PyTorch looks for a compiler of another name, and finds nothing that it compiled
    before.
    """
    from torch._inductor import config

    monkeypatch.setattr(config.cpp, "cxx", (None, "/nowhere/g++"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    with pytest.raises(
        RuntimeError,
        match=r"^CompiledSGHMC .*C\+\+ compiler.*\(.*/nowhere/g\+\+'\)\)$",
    ):
        sample(CompiledSGHMC(0.1, 2.0), Users(), START, num_samples=2)


def test_where_every_call_has_another_potential_it_is_refused(monkeypatch):
    """As in a Gibbs kernel; without compiling anything, which is not what is tested."""
    monkeypatch.setattr(compiled, "_compile", lambda *given: lambda *tensors: None)
    kernel = CompiledSGHMC(0.1, 2.0)
    state = kernel.init(NOISY, START, generator_of(0))
    for _ in range(compiled._AT_MOST):
        kernel.step(NoisyGradient(DoubleWell(2), 1.0), state, generator_of(0))
    with pytest.raises(
        RuntimeError,
        match=rf"one potential.*{compiled._AT_MOST + 1}",
    ):
        kernel.step(NoisyGradient(DoubleWell(2), 1.0), state, generator_of(0))


def test_each_form_of_the_arguments_is_compiled_once(monkeypatch):
    """Told by shape, strides, type and number, and by the potential and what it has;
    the numbers alone are no form. Nothing is compiled here.
    """
    monkeypatch.setattr("sgmc.compiled._compile", lambda *_: lambda *tensors: 0)
    kernel, well = CompiledSGHMC(0.1, 2.0), DoubleWell()
    one, wide = torch.zeros(3, 2), torch.zeros(3, 4)
    forms = [
        (well, one, [None]),
        (well, one.double(), [None]),
        (well, torch.zeros(2, 3), [None]),
        (well, wide[:, ::2], [None]),
        (well, torch.zeros(3, 2, device="meta"), [None]),
        (well, one, [None, None]),
        (well, one, [one]),
        (NoisyGradient(well, 1.0), one, [one]),
        (NoisyGradient(well, 1.0), one, [one]),
    ]

    def number(potential, place, minibatches):
        kernel.trajectory(potential, place, place, minibatches, [place], noise=None)
        return len(kernel._compiled)

    assert [number(*form) for form in forms] == list(range(1, len(forms) + 1))
    assert {number(*form) for form in [*forms, (well, one + 1, [None])]} == {len(forms)}
    forms[-1][0].noise_variance = 2.0
    assert number(*forms[-1]) == len(forms) + 1
    well.dim = 3
    assert number(*forms[-1]) == len(forms) + 2


@pytest.mark.parametrize("case", CASES)
def test_what_is_compiled_are_the_steps_of_the_eager_kernel(case, monkeypatch):
    """Run as it is, for nothing is compiled here: bit for bit."""
    seen = []

    def as_it_is(function, tensors):
        seen.append(len(tensors))
        return function

    monkeypatch.setattr("sgmc.compiled._compile", as_it_is)
    potential, settings = CASES[case]
    kernel, eager = (
        make(0.05, num_steps=3, **settings) for make in (CompiledSGHMC, SGHMC)
    )
    state, info = run_with_info(kernel, potential, START, 4)
    expected, expected_info = run_with_info(eager, potential, START, 4)
    assert_same(state, expected, rtol=0, atol=0)
    assert info == expected_info and len(seen) == 1


def test_parameters_are_checked_as_those_of_the_eager_kernel():
    for wrong in (dict(friction=-1.0), dict(friction=40.0), dict(num_steps=0)):
        for make in (SGHMC, CompiledSGHMC):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                make(0.1, **dict(friction=2.0) | wrong)


def test_what_depends_on_the_step_is_refused():
    for given in (dict(noise_estimate=OnlineNoise()), dict(step_size=lambda draw: 0.1)):
        with pytest.raises(ValueError, match=r"step_size and noise_estimate must be"):
            CompiledSGHMC(**dict(step_size=0.1, friction=2.0) | given)


def counted(monkeypatch):
    """Let functions run as they are in place of compiled ones; count them."""
    made = []

    def compile_nothing(function, tensors):
        made.append(function)
        return lambda *given: list(function(*given))

    monkeypatch.setattr(compiled, "_compile", compile_nothing)
    return made


def test_a_compiled_potential_is_compiled_once_for_each_form(monkeypatch):
    made, fast = counted(monkeypatch), CompiledPotential(Users())
    for position in (START, START.clone(), START[:1], START.float()):
        energy, gradient = fast.energy_and_gradient(position)
        right = Users().energy_and_gradient(position)
        assert torch.equal(energy, right[0]) and torch.equal(gradient, right[1])
    assert len(made) == 3


class Frozen(Potential):
    """What is not a tensor is computed once, when the energy is traced."""

    scale = 1.0

    def energy(self, position):
        self.scale += 1.0
        return self.scale * position.square().sum(-1)


def test_a_compiled_potential_is_compared_with_the_one_that_it_stands_for(monkeypatch):
    """Before a run, by the checks of the door, which see those of the potential too."""
    made = counted(monkeypatch)
    draws = sample(NUTS(0.5), CompiledPotential(Users()), START, 5, progress=False)
    expected = sample(NUTS(0.5), Users(), START, 5, progress=False)
    assert torch.equal(draws.samples, expected.samples) and len(made) == 1

    def other(function, tensors):
        return lambda position: [2 * x for x in function(position)]

    monkeypatch.setattr(compiled, "_compile", other)
    with pytest.raises(ValueError, match=r"energy is .* and its gradient is"):
        sample(NUTS(0.5), CompiledPotential(Users()), START, 5, progress=False)
    with pytest.raises(ValueError, match="not the same when it is computed twice"):
        sample(NUTS(0.5), CompiledPotential(Frozen()), START, 5, progress=False)
    with pytest.raises(ValueError, match="potential must be"):
        CompiledPotential(lambda position: position)
