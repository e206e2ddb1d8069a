"""The settings of a run on a network, as objects: a kernel, a prior, a start, a
minibatch rule and a schedule of the learning rate.

Each object has the settings that its method uses and no others, so that none has to be
excluded; :meth:`Plan.record` writes them all in one flat dictionary, the form in which
result files and checkpoints have them.
"""

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import NamedTuple, Protocol

from torch import Generator, Tensor, nn

from sgmc.checks import check_choice, check_positive
from sgmc.kernels import SGHMC, SGLD, SGNUTS, Kernel
from sgmc.minibatches import Held, MinibatchRule, Passes
from sgmc.noise import OnlineNoise
from sgmc.posteriors import NetworkPosterior
from sgmc.potentials import Potential
from sgmc.randomness import normal_like


class Settings(Protocol):
    """The settings of a kernel."""

    learning_rate: float  #: η

    def make(self, rate: float) -> Kernel:
        """Make the kernel with a learning rate."""


@dataclass(frozen=True)
class Langevin:
    """SGLD, or SGD at the temperature 0.

    Example:
        >>> Langevin(1e-4).make(2e-4).step_size
        0.0002
    """

    learning_rate: float  #: η
    temperature: float = 1.0  #: T

    def make(self, rate: float) -> SGLD:
        """Make the kernel with a learning rate."""
        return SGLD(rate, temperature=self.temperature)


@dataclass(frozen=True)
class Hamiltonian:
    """SGHMC, or SGD with momentum at the temperature 0.

    Example:
        >>> Hamiltonian(1e-4, 0.1, num_steps=3).make(1e-4).num_steps
        3
    """

    learning_rate: float  #: η
    momentum_decay: float  #: α
    temperature: float = 1.0  #: T
    num_steps: int = 1  #: m, the steps of a sample
    #: number of samples from one fresh momentum to the next; None for never
    resample_every: int | None = None
    #: number of steps from one online estimate of the gradient noise's diagonal to the
    #: next; None for B̂ = 0
    noise_refresh: int | None = None

    def make(self, rate: float) -> SGHMC:
        """Make the kernel with a learning rate."""
        refresh = self.noise_refresh
        return SGHMC.from_learning_rate(
            rate,
            self.momentum_decay,
            0.0 if refresh is None else OnlineNoise("diagonal", refresh),
            temperature=self.temperature,
            num_steps=self.num_steps,
            resample_every=self.resample_every,
        )


@dataclass(frozen=True)
class Trees:
    """SGNUTS; a sample is a tree."""

    learning_rate: float  #: η
    momentum_decay: float  #: α
    #: the weights by which it chooses from its trees, or "energy"
    weights: str = "uniform"
    integrator: str = "palindromic"  #: or "drift_kick"
    held: bool = False  #: whether a tree has one minibatch, its energies included

    def make(self, rate: float) -> SGNUTS:
        """Make the kernel with a learning rate."""
        step_size = math.sqrt(rate)
        friction = self.momentum_decay / step_size
        return SGNUTS(
            step_size, friction, weights=self.weights, integrator=self.integrator
        )


@dataclass(frozen=True)
class HeadStart:
    """Trees or fresh momenta for the first rounds, then plain SGHMC with the same η and
    α.
    """

    first: Settings  #: the first kernel may have a momentum_decay, too
    rounds: int

    @property
    def learning_rate(self) -> float:
        """The learning rate η."""
        return self.first.learning_rate

    @property
    def held(self) -> bool:
        """Whether a tree has one minibatch."""
        return getattr(self.first, "held", False)

    def make(self, rate: float) -> Kernel:
        """Make the first kernel with a learning rate."""
        return self.first.make(rate)

    def after(self) -> SGHMC:
        """Make the kernel that follows.

        Example:
            >>> type(HeadStart(Trees(1e-4, 0.1), 3).after()).__name__
            'SGHMC'
        """
        then = Hamiltonian(self.first.learning_rate, self.first.momentum_decay)
        return then.make(then.learning_rate)


class NesterovState(NamedTuple):
    """A state of the descent."""

    position: Tensor  #: the position, (chains, dim)
    momentum: Tensor  #: the velocity v, (chains, dim)
    num_gradients: int  #: gradient evaluations of each chain so far


class NesterovInfo(NamedTuple):
    """Information about a step."""

    num_gradients: int  #: gradient evaluations of each chain so far


@dataclass(frozen=True)
class Nesterov(Kernel[NesterovState]):
    """Stochastic gradient descent with Nesterov's momentum, as
    ``torch.optim.SGD(..., nesterov=True)`` takes it.

    v ← (1 − α)v − η∇Ũ(θ), then θ ← θ + (1 − α)v − η∇Ũ(θ), with one gradient, at the
    position before the step.

    Example:
        >>> Nesterov(0.02, 0.3).make(0.01)
        Nesterov(learning_rate=0.01, momentum_decay=0.3)
    """

    learning_rate: float  #: η
    momentum_decay: float  #: α, at most 1

    def __post_init__(self):
        check_positive("learning_rate", self.learning_rate)
        check_positive("momentum_decay", self.momentum_decay, at_most=1)

    def make(self, rate: float) -> "Nesterov":
        """Make the kernel with a learning rate."""
        return replace(self, learning_rate=rate)

    def target_temperature(self) -> float | None:
        """Return None: the descent has no noise, so no temperature."""
        return None

    def init(
        self, potential: Potential, position: Tensor, generator: Generator
    ) -> NesterovState:
        """Start at rest at the given position ``(chains, dim)``."""
        return NesterovState(position.clone(), position.new_zeros(position.shape), 0)

    def step(
        self, potential: Potential, state: NesterovState, generator: Generator
    ) -> tuple[NesterovState, NesterovInfo]:
        """Take one step in every chain, in place."""
        position, momentum, number = state
        rate, kept = self.learning_rate, 1 - self.momentum_decay
        gradient = potential.stochastic_gradient(position, generator, number)
        momentum.mul_(kept).sub_(gradient, alpha=rate)
        position.add_(momentum, alpha=kept).sub_(gradient, alpha=rate)
        return NesterovState(position, momentum, number + 1), NesterovInfo(number + 1)


@dataclass(frozen=True)
class Annealed:
    """A step size that falls as (1 + t/b)^−γ after t steps (Welling and Teh, 2011),
    with averages weighted by the step size.
    """

    offset: float  #: b
    power: float  #: γ

    def weight(self, step: int) -> float:
        """Compute the step size after so many steps, relative to the first one."""
        return (1 + step / self.offset) ** -self.power


@dataclass(frozen=True)
class Falling:
    """A rate that falls to zero over all rounds, from round to round, by half a wave of
    a cosine.
    """

    def share(self, done: int, rounds: int, burn_in: int) -> float:
        """Compute the rate after so many rounds, relative to the first one."""
        return _half_wave(done / rounds)


@dataclass(frozen=True)
class Cooled:
    """A rate that falls to a share of the first over the burn-in, by half a wave of a
    cosine, and stays there.
    """

    to: float  #: the share

    def share(self, done: int, rounds: int, burn_in: int) -> float:
        """Compute the rate after so many rounds, relative to the first one."""
        return self.to + (1 - self.to) * _half_wave(
            min(done, burn_in) / max(burn_in, 1)
        )


def _half_wave(share: float) -> float:
    """Fall from 1 to 0 by half a wave of a cosine."""
    return 0.5 + 0.5 * math.cos(math.pi * share)


@dataclass(frozen=True)
class Prior:
    """The prior N(0, 1/λ) of each weight.

    Args:
        precision: λ, a number or one for each tensor; None to draw that of each tensor
            by a Gibbs step once a round, from the start λ = 1.
        by_fan_in: whether the precision of a weight is λ times its fan-in.
    """

    precision: float | tuple[float, ...] | None = None
    by_fan_in: bool = False

    def precisions(self, network: nn.Module) -> dict[str, float]:
        """Give the precision of each parameter at the start."""
        tensors = dict(network.named_parameters())
        each = 1.0 if self.precision is None else self.precision
        each = each if isinstance(each, tuple) else (each,) * len(tensors)
        return {
            name: precision * p[0].numel()
            if self.by_fan_in and p.ndim > 1
            else precision
            for precision, (name, p) in zip(each, tensors.items(), strict=True)
        }


STARTS = ("fan-in", "prior", "uniform")
PASSES = Passes()


def draw_start(
    start: str, posterior: NetworkPosterior, generator: Generator, chains: int = 1
) -> Tensor:
    """Draw where each chain starts, ``(chains, dim)``.

    Args:
        start: ``"fan-in"``, weights N(0, 1/fan-in) and biases zero; ``"prior"``, a draw
            from the prior; or ``"uniform"``, a draw from (−2, 2), where Pyro starts its
            chains.
        posterior: what is sampled.
        generator: source of randomness.
        chains: number of chains.
    """
    position = posterior.initial_position(chains, generator)
    if start == "uniform":
        return position.uniform_(-2, 2, generator=generator)
    if start == "prior":
        return posterior.prior.inverse.root @ normal_like(position, generator)
    return position


@dataclass(frozen=True)
class Plan:
    """The settings of one run, which a checkpoint must agree with.

    Args:
        kernel: the method with its settings.
        prior: of the weights.
        start: one of :data:`STARTS`.
        minibatches: the rule by which minibatches are chosen: ``Passes()``, slices of
            the data in an order shuffled anew every round, ``Fresh()``, a random subset
            every step, or ``Held(m, Fresh())``, one for the m steps of a sample.
        batch_size: n, the examples of a minibatch.
        schedule: how the learning rate falls; None for a constant one.
        rounds: number of rounds, of N/n samples each; with trees, of those trees that
            bring the number of gradients to N/n a round.
        burn_in: number of rounds before predictions are averaged, one network a round.
        keep_every: number of rounds from one network of the reservoir to the next.
        average_every: numbers of rounds from one network to the next in further
            averages, scored at the end; None for no such averages.
        record_every: number of rounds from one point of the learning curve to the next.
        data: which data the run is on, where an experiment has several.
        seed: seed of the run's only generator.
        method: what the run is called in tables and files.

    Raises:
        ValueError: if a setting is out of its range.

    Example:
        >>> Plan(Langevin(1e-4)).make_kernel().step_size
        0.0001
    """

    kernel: Settings
    prior: Prior = Prior()
    start: str = "fan-in"
    minibatches: MinibatchRule = PASSES
    batch_size: int = 500
    schedule: Annealed | Falling | Cooled | None = None
    rounds: int = 800
    burn_in: int = 50
    keep_every: int = 25
    average_every: tuple[int, ...] | None = None
    record_every: int = 10
    data: str = ""
    seed: int = 0
    method: str = ""

    def __post_init__(self):
        check_choice("start", self.start, STARTS)
        if not 0 <= self.burn_in < self.rounds:
            raise ValueError(
                f"burn_in must be at least 0 and less than rounds, {self.rounds}, but "
                f"it is {self.burn_in}"
            )
        able = {Annealed: Langevin, type(None): object}
        if not isinstance(
            self.kernel,
            able.get(type(self.schedule), Langevin | Hamiltonian | Nesterov),
        ):
            raise ValueError(
                f"schedule {self.schedule} is not for {type(self.kernel).__name__}"
            )

    def but(self, **changes: object) -> "Plan":
        """Change some settings of the plan or of its kernel.

        Example:
            >>> Plan(Langevin(1e-4)).but(temperature=0.0, rounds=60).kernel
            Langevin(learning_rate=0.0001, temperature=0.0)
        """
        names = {field.name for field in fields(self)}
        own = {name: value for name, value in changes.items() if name in names}
        kernels = {name: changes[name] for name in changes.keys() - names}
        if kernels:
            own["kernel"] = replace(self.kernel, **kernels)
        return replace(self, **own)

    def rate(self, done: int) -> float:
        """Compute η for the round after so many.

        Example:
            >>> plan = Plan(Hamiltonian(1e-4, 0.1, 0.0), schedule=Falling())
            >>> plan.rate(0), round(plan.rate(400), 9), plan.rate(799) < 1e-9
            (0.0001, 5e-05, True)
            >>> plan = Plan(Hamiltonian(1e-4, 0.1), schedule=Cooled(0.1), burn_in=200)
            >>> [round(plan.rate(done), 9) for done in (0, 100, 200, 700)]
            [0.0001, 5.5e-05, 1e-05, 1e-05]
        """
        if not isinstance(self.schedule, Falling | Cooled):
            return self.kernel.learning_rate
        share = self.schedule.share(done, self.rounds, self.burn_in)
        return self.kernel.learning_rate * share

    def weight(self, step: int) -> float:
        """Compute the weight of the network after so many steps in an average."""
        annealed = isinstance(self.schedule, Annealed)
        return self.schedule.weight(step) if annealed else 1.0

    def make_kernel(self, done: int = 0) -> Kernel:
        """Make the kernel for the round after so many; a head start gives its first
        kernel.
        """
        if isinstance(self.schedule, Annealed):
            return self.kernel.make(
                lambda step: self.kernel.learning_rate * self.schedule.weight(step)
            )
        return self.kernel.make(self.rate(done))

    def finer(self, num_steps: int) -> "Plan":
        """Take m steps a sample, each m times finer, at the same friction: η/m², α/m.

        Example:
            >>> Plan(Hamiltonian(1e-4, 0.1)).finer(4).kernel.momentum_decay
            0.025
        """
        return self.but(
            learning_rate=self.kernel.learning_rate / num_steps**2,
            momentum_decay=self.kernel.momentum_decay / num_steps,
            num_steps=num_steps,
        )

    def variance_as_scale(self) -> "Plan":
        """Inject noise with the standard deviation 2αη, as a program does that gives
        the variance where a standard deviation is expected; 2η without momentum.

        Noise of variance (2αη)² is that of SGHMC at the temperature 2αη, and of
        variance (2η)² that of SGLD at 2η.

        Example:
            >>> plans = Plan(Hamiltonian(0.01, 0.1)), Plan(Langevin(0.01))
            >>> [plan.variance_as_scale().kernel.temperature for plan in plans]
            [0.002, 0.02]
        """
        decay = getattr(self.kernel, "momentum_decay", 1.0)
        return self.but(temperature=2 * decay * self.kernel.learning_rate)

    def record(self) -> dict:
        """List all settings by the names that files use, unused ones included.

        Example:
            >>> record = Plan(Hamiltonian(1e-4, 0.1)).record()
            >>> record["momentum_decay"], record["trees"], record["minibatches"]
            (0.1, None, 'passes')
        """
        kernel, schedule, head_start = self.kernel, self.schedule, None
        if isinstance(kernel, HeadStart):
            kernel, head_start = kernel.first, kernel.rounds
        words = IDLE | asdict(kernel)
        held = words.pop("held", False) or isinstance(self.minibatches, Held)
        words["trees"] = words.pop("weights", None)
        if isinstance(kernel, Nesterov):
            words |= {"nesterov": True, "temperature": 0.0}
        own = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("kernel", "prior", "schedule")
        }
        rule = "held" if held else type(self.minibatches).__name__.lower()
        return (words | own) | {
            "minibatches": rule,
            "prior_precision": self.prior.precision,
            "prior_by_fan_in": self.prior.by_fan_in,
            "annealing": (schedule.offset, schedule.power)
            if isinstance(schedule, Annealed)
            else None,
            "falling": isinstance(schedule, Falling),
            "cooled": schedule.to if isinstance(schedule, Cooled) else None,
            "head_start": head_start,
        }


# A record has these values where a kernel has no such setting.
IDLE = {
    "momentum_decay": None,
    "temperature": 1.0,
    "nesterov": False,
    "num_steps": 1,
    "resample_every": None,
    "noise_refresh": None,
    "integrator": "palindromic",
}
