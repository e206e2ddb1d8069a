"""What every kernel of ``sgmc`` keeps to; a new one is listed in KERNELS, with settings
that suit a posterior of two coordinates, and passes.
"""

import importlib
import inspect
import math
import pkgutil
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
import torch
from torch.utils._pytree import tree_leaves

import sgmc
from booklib.models.gibbs import Gibbs
from booklib.runs.plans import Nesterov
from sgmc import sample
from sgmc.checkpoints import Checkpoint
from sgmc.compiled import CompiledSGHMC
from sgmc.door.sampling import DivergenceError, learned
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD, SGNUTS, Kernel, NaiveSGHMC
from sgmc.kernels.base import WithFriction, WithMass, WithTemperature
from sgmc.kernels.langevin import SGLDState
from sgmc.noise import OnlineNoise
from sgmc.other_kernels import AMAGOLD, SGNHT, Cyclical, RandomWalkMetropolis
from sgmc.potentials import Potential
from sgmc.splittings import Splitting, flows
from sgmc.tuning.defaults import DefaultSGHMC
from tests.fakes import (
    DOUBLE,
    NOISY,
    TARGET,
    Around,
    Counting,
    Walled,
    WithoutFloat64,
    WithPrecision,
    generator_of,
    logistic,
)
from tests.kernels.steps import DIAGONAL, FULL, START, assert_same, run, run_with_info

# what so short runs are warned of
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
BENT = torch.tensor([[1.0, 0.5], [0.0, 1.0]])  # not symmetric


def refused(says: str | None = None, **settings) -> tuple[dict, str]:
    """Settings that are refused, with a pattern of what the message says: by default
    the name of the one setting, and then its value.
    """
    if says is None:
        ((name, value),) = settings.items()
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        value = re.escape(f"{value:g}" if number else str(value))
        says = rf"\b{name}\b.*(?<![\w.]){value}\b"
    return settings, says


@dataclass(frozen=True)
class Listed:
    """A kernel and what is particular about it."""

    make: Callable[..., Kernel]  #: from settings that replace the usual ones
    #: settings that are refused, each with a pattern of the message
    refused: Sequence[tuple[dict, str]] = ()
    matrix: str | None = None  #: a setting that may be a matrix of all coordinates
    #: gradient evaluations of three steps; None where they are drawn at random
    gradients: int | None = None
    uncounted: int = 0  #: how many of them its counter leaves out
    minibatches: bool = True  #: whether its gradients are stochastic
    #: whether a move to where the energy is no number is rejected
    rejects: bool = False
    #: number of steps in which a chain's random numbers do not depend on how many the
    #: other chains draw, as they do after a tree; None for any number
    apart: int | None = None
    #: makes of a potential one that the kernel can sample
    around: Callable[[Potential], Potential] = lambda potential: potential


def listed(kind: type[Kernel], usual: dict, *bad, **particular) -> Listed:
    """List a kernel with its usual settings and those that it refuses."""
    return Listed(lambda **changed: kind(**(usual | changed)), bad, **particular)


# One of each kind: tests/core/test_surface.py gives every argument every bad value,
# and tests/core/test_matrices.py has the matrices.
STEP = [refused(step_size=math.nan), refused("step_size.*tensor", step_size=DIAGONAL)]
SCHEDULE = [
    refused(r"step_size.*-0\.1", step_size=lambda step: step - 0.1),
    refused(r"step_size.*\b0\.0", step_size=lambda step: 0.1 * step),
    refused("step_size.*takes 0 positional", step_size=lambda: 0.1),
]
LENGTH = [refused(num_steps=0)]
MASS = [refused(mass=0.0), refused("mass.*symmetric", mass=BENT)]
FRICTION = [refused(friction=-1.0), refused("friction.*symmetric", friction=BENT)]
ESTIMATE = [
    refused("noise_estimate.*symmetric", noise_estimate=BENT),
    refused("noise_estimate.*OnlineNoise", noise_estimate=OnlineNoise),
]
# where friction is 2
TOO_LARGE = [
    refused(r"friction.*noise_estimate.*-0\.5\b", noise_estimate=2.5),
    refused(r"friction.*noise_estimate.*-2\b", noise_estimate=torch.full((2, 2), 2.0)),
]
TEMPERATURE = [refused(temperature=-1.0)]
CYCLE = dict(kernel=SGLD, step_size=0.02, cycle_length=12, num_draws=3)
BAOAB = dict(flows=flows.baoab(0.05, 10.0))


def rejecting(kind, usual, *bad, **particular) -> Listed:
    """List a kernel with exact gradients and a correction step."""
    return listed(kind, usual, *bad, minibatches=False, rejects=True, **particular)


KERNELS = {
    "HMC": rejecting(
        HMC,
        dict(step_size=0.3, num_steps=3),
        *STEP,
        *LENGTH,
        *MASS,
        refused(jitter=1.0),
        *[refused(refreshment=value) for value in (0.0, 1.1)],
        matrix="mass",
        gradients=12,
    ),
    "HMC, all settings": rejecting(
        HMC, dict(step_size=0.3, num_steps=4, mass=1.7, jitter=0.5, refreshment=0.7)
    ),
    "HMC, uncorrected": listed(
        HMC,
        dict(step_size=0.3, num_steps=3, metropolis=False),
        gradients=12,
        minibatches=False,
    ),
    "naive SGHMC": listed(
        NaiveSGHMC,
        dict(step_size=0.1, num_steps=3),
        *STEP,
        *LENGTH,
        *MASS,
        refused(metropolis="yes"),
        matrix="mass",
        gradients=12,
    ),
    "naive SGHMC, corrected": listed(
        NaiveSGHMC,
        dict(step_size=0.1, num_steps=3, metropolis=True),
        gradients=12,
        rejects=True,
    ),
    "SGHMC": listed(
        SGHMC,
        dict(step_size=0.1, friction=2.0, noise_estimate=0.2, num_steps=3),
        *STEP,
        *SCHEDULE,
        *LENGTH,
        *MASS,
        *FRICTION,
        *ESTIMATE,
        *TOO_LARGE,
        *TEMPERATURE,
        refused(resample_every=0),
        refused(r"friction.*step_size.* 2 .*below 2", friction=20.0),
        refused(r"friction.* 2\.5 ", friction=torch.tensor([1.0, 25.0])),
        refused(r"friction.* 4 .*baoab", mass=torch.tensor([1.0, 0.05])),
        refused(
            r"temperature 0\.5.*-0\.5\b",
            friction=2.0,
            noise_estimate=1.5,
            temperature=0.5,
        ),
        refused(
            "friction has 2, noise_estimate has 3",
            friction=torch.ones(2),
            noise_estimate=torch.zeros(3),
        ),
        matrix="friction",
        gradients=9,
    ),
    "SGHMC, a schedule and fresh momenta": listed(
        SGHMC,
        dict(
            step_size=lambda draw: 0.2 * (1 + draw) ** -0.3,
            friction=2.0,
            resample_every=3,
        ),
        gradients=3,
    ),
    "SGHMC, an online estimate": listed(
        SGHMC,
        dict(step_size=0.05, friction=30.0, noise_estimate=OnlineNoise(), num_steps=2),
        gradients=7,
        uncounted=1,  # the first look at the noise
    ),
    "SGHMC, tuned": listed(
        DefaultSGHMC, dict(step_size=0.1, friction=2.0, num_steps=3), gradients=9
    ),
    "SGLD": listed(
        SGLD,
        dict(step_size=0.02),
        *STEP,
        *SCHEDULE,
        *MASS,
        *ESTIMATE,
        *TEMPERATURE,
        refused(r"temperature 1\.0.*noise_estimate", noise_estimate=1.1),
        refused(
            r"temperature 0\.5.*noise_estimate", noise_estimate=0.6, temperature=0.5
        ),
        refused("mass.*noise_estimate", noise_estimate=0.6, mass=0.5),
        refused("mass.*noise_estimate", noise_estimate=0.6 * FULL, mass=0.5 * FULL),
        refused(
            "noise_estimate has 2, mass has 3",
            mass=torch.ones(3),
            noise_estimate=DIAGONAL,
        ),
        matrix="mass",
        gradients=3,
    ),
    "SGLD, a schedule": listed(
        SGLD,
        dict(step_size=lambda step: 0.05 * (1 + step) ** -0.3, mass=2.0),
        gradients=3,
    ),
    "NUTS": rejecting(
        NUTS,
        dict(step_size=0.3),
        *STEP,
        *MASS,
        refused(max_depth=0),
        matrix="mass",
        apart=1,
    ),
    "SGNUTS": listed(
        SGNUTS,
        dict(step_size=0.1, friction=2.0, noise_estimate=0.2),
        *STEP,
        *MASS,
        *FRICTION,
        *ESTIMATE,
        *TOO_LARGE,
        refused(max_depth=0),
        refused(weights="equal"),
        refused(integrator="leapfrog"),
        refused(r"weights.*noise_estimate.*0\.2", weights="work"),
        refused(
            "weights.*integrator.*drift_kick",
            weights="work",
            integrator="drift_kick",
            noise_estimate=0.0,
        ),
        matrix="mass",
        rejects=True,
        apart=1,
    ),
    "SGNUTS, weighed by energy": listed(
        SGNUTS,
        dict(step_size=0.1, friction=2.0, weights="energy", integrator="drift_kick"),
        rejects=True,
        apart=1,
    ),
    "SGNUTS, weighed by work": rejecting(
        SGNUTS, dict(step_size=0.1, friction=2.0, weights="work"), apart=1
    ),
    "splitting": listed(
        Splitting,
        BAOAB | dict(num_steps=3),
        *LENGTH,
        *MASS,
        *[
            refused("flows", flows=wrong)
            for wrong in ([], "baoab", flows.baoab, [1, 2], iter(flows.obabo(0.1, 1.0)))
        ],
        matrix="mass",
        gradients=18,
    ),
    "splitting, OBABO": listed(
        Splitting, dict(flows=flows.obabo(0.05, 10.0, 1.7), mass=1.7), gradients=6
    ),
    "splitting, UBU": listed(Splitting, dict(flows=flows.ubu(0.05, 10.0)), gradients=3),
    "Nesterov": listed(
        Nesterov,
        dict(learning_rate=0.02, momentum_decay=0.3),
        refused(learning_rate=0.0),
        refused(momentum_decay=1.5),
        gradients=3,
    ),
    "SGNHT": listed(
        SGNHT,
        dict(step_size=0.05, diffusion=1.0),
        refused(step_size=0.0),
        refused(diffusion=-1.0),
        refused(r"diffusion.* 1, .*below 1", diffusion=10.0),
        refused(r"diffusion.* 1\.05, ", mass=torch.tensor([1.0, 0.05])),
        gradients=3,
    ),
    "AMAGOLD": listed(
        AMAGOLD,
        dict(step_size=0.1, friction=2.0, num_steps=3),
        matrix="friction",
        gradients=9,
        rejects=True,
    ),
    "random walk": rejecting(
        RandomWalkMetropolis, dict(step_size=0.5), *STEP, gradients=0
    ),
    "cycles": listed(
        Cyclical,
        CYCLE,
        refused(step_size=0.0),
        refused(cycle_length=0),
        *[refused(num_draws=value) for value in (0, 13)],
        *[refused(exploration=value) for value in (-0.1, 1.0, 0.95)],
        refused(r"num_draws.*7\b.*\b6\b.*\b12\b", num_draws=7, exploration=0.5),
        refused(r"kernel.*SGLD\(step_size=0\.1", kernel=SGLD(0.1)),
        refused("kernel.*missing 1 required .*'friction'", kernel=SGHMC),
        refused(r"kernel makes.*0\.02", kernel=lambda rate: rate),
        refused(
            "temperature.*noise_estimate",
            kernel=lambda rate: SGLD(rate, noise_estimate=1e3 * rate),
        ),
        refused(
            "kernel.*temperature",
            kernel=lambda rate: HMC(rate, 3),
            exploration=0.5,
            cold=True,
        ),
        gradients=12,
    ),
    "cycles of SGHMC that explore": listed(
        Cyclical,
        CYCLE
        | dict(
            kernel=lambda rate: SGHMC.from_learning_rate(rate, 0.3),
            exploration=0.25,
            cold=True,
        ),
        gradients=12,
    ),
    "Gibbs": listed(
        Gibbs,
        dict(kernel=SGHMC(0.1, 2.0), num_steps=2),
        *LENGTH,
        refused("kernel.*Gaussian", kernel=TARGET),
        refused("kernel.*class SGHMC", kernel=SGHMC),
        gradients=6,
        around=WithPrecision,
    ),
    "Gibbs with HMC": rejecting(
        Gibbs, dict(kernel=HMC(0.3, 3)), gradients=12, around=WithPrecision
    ),
}
# its steps are compared with those of SGHMC, which it compiles, in test_compiled.py
ELSEWHERE = {CompiledSGHMC}
every_kernel = pytest.mark.parametrize("name", KERNELS)


def test_every_kernel_is_listed():
    for module in pkgutil.walk_packages(sgmc.__path__, "sgmc."):
        importlib.import_module(module.name)
    kernels, found = [Kernel], set()
    while kernels:
        kernels = [each for kernel in kernels for each in kernel.__subclasses__()]
        found |= {each for each in kernels if each.__module__.startswith("sgmc.")}
    abstract = {WithMass, WithFriction, WithTemperature}
    books = {Gibbs, Nesterov}
    ours = {type(e.make()) for e in KERNELS.values()} - books
    assert found - ELSEWHERE - abstract == ours
    assert HMC in found


def innermost(state):
    """Give the state or info of the kernel that moves the chains."""
    return innermost(state.inner) if hasattr(state, "inner") else state


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        pytest.param(name, *each, id=f"{name}-{number}-{' '.join(each[0])}")
        for name, entry in KERNELS.items()
        for number, each in enumerate(entry.refused)
    ],
)
def test_bad_parameters_are_refused(name, settings, says):
    KERNELS[name].make()
    with pytest.raises(ValueError, match=says):
        KERNELS[name].make(**settings)


@pytest.mark.parametrize(
    "name", [name for name, entry in KERNELS.items() if entry.matrix]
)
def test_a_matrix_of_other_coordinates_is_refused_at_the_start(name):
    matrix = KERNELS[name].matrix
    for wrong in (torch.ones(3), torch.eye(3)):
        kernel = KERNELS[name].make(**{matrix: 3 * wrong})
        with pytest.raises(ValueError, match=f"position has 2.*{matrix} has 3"):
            kernel.init(TARGET, torch.zeros(1, 2), generator_of(0))


@every_kernel
def test_the_position_at_the_start_is_not_changed(name):
    entry, start = KERNELS[name], START.clone()
    potential, generator = entry.around(NOISY), generator_of(0)
    kernel = entry.make()
    state = kernel.init(potential, start, generator)
    assert torch.equal(state.position, START)
    for _ in range(3):
        state, _ = kernel.step(potential, state, generator)
    assert torch.equal(start, START)
    assert (state.position != START).any(-1).double().mean() > 0.5


@every_kernel
def test_chains_do_not_interact(name):
    """Moving the start of one chain changes nothing in the others, and chains from one
    point draw their own numbers.
    """
    entry, moved = KERNELS[name], START.clone()
    moved[1] += 0.5
    others = torch.arange(len(START)) != 1
    potential, num_steps = entry.around(logistic(7)), entry.apart or 3
    first, second = (
        run_with_info(entry.make(), potential, start, num_steps)
        for start in (START, moved)
    )
    for one, other in zip(tree_leaves(first), tree_leaves(second), strict=True):
        if isinstance(one, torch.Tensor):
            torch.testing.assert_close(
                one[others], other[others], rtol=0, atol=0, equal_nan=True
            )
    assert not torch.equal(first[0].position[1], second[0].position[1])
    together = run(entry.make(), potential, torch.zeros_like(START), 3).position
    # a rejected proposal may leave a few where they were
    assert len(together.unique(dim=0)) > len(START) / 2


@every_kernel
def test_permuted_chains_give_permuted_draws(name, monkeypatch):
    """Where their random numbers are permuted with them: no chain has a place of its
    own.
    """
    entry, order = KERNELS[name], torch.randperm(len(START), generator=generator_of(5))

    def permuted(draw):
        def drawing(*arguments, **settings):
            drawn = draw(*arguments, **settings)
            axes = [axis for axis, n in enumerate(drawn.shape) if n == len(START)]
            return drawn.copy_(drawn.index_select(*axes, order)) if axes else drawn

        return drawing

    potential = entry.around(NOISY)
    expected = run_with_info(entry.make(), potential, START, 3)
    monkeypatch.setattr(torch.Tensor, "normal_", permuted(torch.Tensor.normal_))
    for function in ("randn", "rand"):
        monkeypatch.setattr(torch, function, permuted(getattr(torch, function)))
    got = run_with_info(entry.make(), potential, START[order], 3)
    assert not torch.equal(order, torch.arange(len(START)))
    for one, other in zip(tree_leaves(got), tree_leaves(expected), strict=True):
        if isinstance(one, torch.Tensor):
            torch.testing.assert_close(
                one, other[order], rtol=1e-10, atol=1e-10, equal_nan=True
            )
        else:
            assert one == other


@every_kernel
def test_gradients_are_counted_and_no_minibatch_is_drawn_twice(name):
    """For one chain, which is all that a tree's evaluations are for."""
    entry = KERNELS[name]
    counting = Counting(logistic(7))
    state, info = run_with_info(entry.make(), entry.around(counting), START[:1], 3)
    assert entry.gradients in (None, counting.count)
    if entry.gradients != 0:
        state, info = innermost(state), innermost(info)
        assert int(state.num_gradients) == int(info.num_gradients)
        assert int(state.num_gradients) == counting.count - entry.uncounted
    assert len(set(counting.steps)) == len(counting.steps)
    assert bool(counting.steps) == entry.minibatches
    assert not entry.minibatches or len(counting.steps) == counting.count


@every_kernel
def test_a_batch_of_all_the_data_is_the_exact_gradient_bit_for_bit(name):
    entry = KERNELS[name]
    states = [
        run_with_info(entry.make(), entry.around(logistic(batch_size)), START, 4)
        for batch_size in (40, None)
    ]
    assert_same(*map(tree_leaves, states), equal_nan=True)
    fewer = run(entry.make(), entry.around(logistic(7)), START, 4).position
    assert torch.equal(fewer, states[0][0].position) != entry.minibatches


@every_kernel
def test_a_run_resumed_from_its_checkpoint_is_the_uninterrupted_one(name, tmp_path):
    """Bit for bit, with what every step learned."""
    entry = KERNELS[name]

    def draws(num_samples, checkpoint=None):
        return sample(
            entry.make(),
            entry.around(logistic(7)),
            START,
            num_samples,
            warm_up=1,
            seed=3,
            checkpoint=checkpoint and Checkpoint(checkpoint),
        )

    file, whole = tmp_path / "run.pt", draws(5)
    draws(2, file)
    resumed = draws(5, file)
    assert torch.equal(resumed.samples, whole.samples)
    assert resumed.statistics.keys() == whole.statistics.keys()
    assert_same(resumed.statistics.values(), whole.statistics.values(), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@every_kernel
def test_a_run_keeps_the_type_of_its_positions(name, dtype):
    entry = KERNELS[name]
    kernel, potential = entry.make(), entry.around(logistic(7, dtype))
    state = innermost(run(kernel, potential, START.to(dtype), 2))
    for each in (value for value in state if isinstance(value, torch.Tensor)):
        assert each.dtype == dtype or not each.is_floating_point()
    draws = sample(kernel, potential, START.to(dtype), num_samples=2)
    assert draws.samples.dtype == dtype and draws.samples.isfinite().all()


@pytest.mark.parametrize(
    "name",
    # whose hyperparameters are float64
    [name for name in KERNELS if "Gibbs" not in name],
)
def test_a_kernel_makes_no_float64_of_what_is_float32(name):
    """Not every device has it."""
    entry, float32 = KERNELS[name], torch.float32
    potential = entry.around(logistic(7, float32))
    with WithoutFloat64():
        _, info = run_with_info(entry.make(), potential, START.to(float32), 2)
        known = {key: torch.as_tensor(x) for key, x in learned(info).items()}
        found = {
            key: (x if x.ndim else x.expand(len(START)))[None]
            for key, x in known.items()
        }
        said = {key: found[key] | True for key in {"diverged"} & found.keys()}
        said |= {key: 1 + found[key] for key in {"clipped"} & found.keys()}
        entry.make().diagnose(found | said)


@every_kernel
def test_a_gradient_that_is_not_finite_stops_the_run_or_is_rejected(name):
    """It stops with what was drawn before and names the chain, unless the kernel
    rejects such moves.
    """
    entry = KERNELS[name]
    potential = entry.around(Walled(NOISY, 1.0))
    start = torch.zeros_like(START)
    if entry.rejects:
        draws = sample(entry.make(), potential, start, num_samples=20)
        # half a drift after the last gradient may end a little beyond the wall
        assert draws.samples.abs().max() < 2
        assert (draws.samples[-1] != 0).any(-1).double().mean() > 0.5
    else:
        with pytest.raises(DivergenceError, match=r"chain \d+|step \d+") as caught:
            sample(entry.make(), potential, start, num_samples=200)
        assert len(caught.value.draws.samples) < 200


class Raising(Walled):
    """An error for all chains where one is beyond the wall, as of a Cholesky factor."""

    def inside(self, position):
        inside = super().inside(position)
        if not inside.all():
            raise torch.linalg.LinAlgError("linalg.cholesky: (Batch element 7)")
        return inside


@pytest.mark.filterwarnings("ignore:the potential raised _LinAlgError")
@every_kernel
def test_an_error_in_one_chain_is_one_where_there_is_no_number(name):
    """It ends the trajectory of that chain alone where the kernel rejects, and the run
    with the draws of all where it does not.
    """
    entry, start = KERNELS[name], torch.zeros_like(START)
    strict, walled = (entry.around(kind(NOISY, 1.0)) for kind in (Raising, Walled))
    if entry.rejects:
        found, right = (
            sample(entry.make(), each, start, 5) for each in (strict, walled)
        )
        assert torch.equal(found.samples, right.samples)
        for key, value in right.statistics.items():
            assert torch.equal(found.statistics[key], value)
    else:
        # in the first step it is raised as it is
        errors = DivergenceError, torch.linalg.LinAlgError
        with pytest.raises(errors, match="Batch element") as caught:
            sample(entry.make(), strict, start, 200)
        if isinstance(caught.value, DivergenceError):
            found = caught.value.draws.samples
            assert 0 < len(found) < 200 and found.isfinite().all()


@every_kernel
def test_a_gradient_that_is_no_number_or_empty_at_the_start_is_refused(name):
    entry = KERNELS[name]
    outside = START.clamp(-1, 1).index_fill(0, torch.tensor(4), 9.0)
    with pytest.raises(ValueError, match=r"gradient.*chain 4"):
        sample(entry.make(), entry.around(Walled(NOISY, 2.0)), outside, num_samples=1)

    empty = entry.around(Around(TARGET))
    empty.gradient = empty.gradient_given = lambda position, *_: position[:, :0]
    with pytest.raises(ValueError, match=r"gradient.*\(30, 0\).*\(30, 2\)"):
        sample(entry.make(), empty, START, num_samples=1)


# Negative controls: kernels that break one promise each, and the test that sees it


class KeepsTheStart(SGLD):
    def init(self, potential, position, generator):
        return SGLDState(position, 0)


class Gathers(SGLD):
    def step(self, potential, state, generator):
        state, info = super().step(potential, state, generator)
        position = 0.9 * state.position + 0.1 * state.position.mean(0)
        return state._replace(position=position), info


class FavoursTheFirst(SGLD):
    def step(self, potential, state, generator):
        state, info = super().step(potential, state, generator)
        state.position[0] += 0.01
        return state, info


class CountsTwice(SGLD):
    def step(self, potential, state, generator):
        state, info = super().step(potential, state, generator)
        twice = state.num_gradients + 1
        return state._replace(num_gradients=twice), info._replace(num_gradients=twice)


class SeesOneMinibatch(SGLD):
    def step(self, potential, state, generator):
        after, info = super().step(potential, SGLDState(state.position, 0), generator)
        count = state.num_gradients + 1
        return after._replace(num_gradients=count), info._replace(num_gradients=count)


class Remembers(SGLD):
    def step(self, potential, state, generator):
        memory = vars(self).setdefault("memory", [])
        memory.append(len(memory))
        state, info = super().step(potential, state, generator)
        state.position.add_(0.01 * len(memory))
        return state, info


class Rounds(SGLD):
    def step(self, potential, state, generator):
        state, info = super().step(potential, state, generator)
        return state._replace(position=state.position.float().to(DOUBLE)), info


class HidesWhatIsNoNumber(SGLD):
    def step(self, potential, state, generator):
        state, info = super().step(potential, state, generator)
        state.position.nan_to_num_(0.0)
        return state, info


@pytest.mark.parametrize(
    ("kernel", "test"),
    [
        (KeepsTheStart, test_the_position_at_the_start_is_not_changed),
        (Gathers, test_chains_do_not_interact),
        (FavoursTheFirst, test_permuted_chains_give_permuted_draws),
        (CountsTwice, test_gradients_are_counted_and_no_minibatch_is_drawn_twice),
        (SeesOneMinibatch, test_gradients_are_counted_and_no_minibatch_is_drawn_twice),
        (Remembers, test_a_run_resumed_from_its_checkpoint_is_the_uninterrupted_one),
        (Rounds, test_a_run_keeps_the_type_of_its_positions),
        (
            HidesWhatIsNoNumber,
            test_a_gradient_that_is_not_finite_stops_the_run_or_is_rejected,
        ),
    ],
    ids=lambda value: value.__name__,
)
def test_a_broken_promise_is_seen(kernel, test, monkeypatch, tmp_path):
    entry = listed(kernel, dict(step_size=0.05), gradients=3)
    monkeypatch.setitem(KERNELS, "broken", entry)
    given = dict(monkeypatch=monkeypatch, tmp_path=tmp_path, dtype=torch.float32)
    wanted = inspect.signature(test).parameters.keys() & given.keys()
    # the last one for positions that no longer go with the data
    with pytest.raises((AssertionError, pytest.fail.Exception, RuntimeError)):
        test("broken", **{name: given[name] for name in wanted})
