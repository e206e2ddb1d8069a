"""The settings of a run, as data: all that it does is in the fields of its plan, and
nothing hangs on its name.
"""

import math
from dataclasses import dataclass, replace

from torch import nn

from experiments.nesterov import Nesterov
from sgmc.checks import check_choice, check_count
from sgmc.kernels import SGHMC, SGLD, SGNUTS, Kernel
from sgmc.minibatches import Fresh, Held, MinibatchRule, Passes
from sgmc.noise import OnlineNoise

RULES = {"passes": Passes(), "fresh": Fresh(), "held": Fresh()}


@dataclass(frozen=True)
class Plan:
    """The settings of one run, which a checkpoint must agree with.

    Args:
        learning_rate: η.
        momentum_decay: α, of SGHMC, SGNUTS and SGD with momentum; None for SGLD and
            SGD, which have no momentum.
        temperature: T; 1 for a sampler, 0 for an optimiser.
        annealing: (b, γ) of SGLD's falling step size η(1 + t/b)^−γ after t steps, which
            then weights the averages; None for a constant one.
        nesterov: whether an optimiser's momentum is Nesterov's.
        falling: whether an optimiser's learning rate falls to zero, from round to
            round, by half a wave of a cosine.
        cooled: the share of its learning rate to which a sampler's falls in the same
            way over the burn-in, to stay there; None for none.
        num_steps: m, the steps of a sample.
        resample_every: number of samples from one fresh momentum to the next; None for
            never.
        noise_refresh: number of steps from one online estimate of the gradient noise's
            diagonal to the next; None for B̂ = 0.
        trees: None, or the weights with which SGNUTS chooses from its trees,
            ``"uniform"`` or ``"energy"``; a sample is then a tree.
        integrator: of the trees, ``"palindromic"`` or ``"drift_kick"``.
        head_start: number of rounds after which trees or fresh momenta give way to
            plain SGHMC; None for never.
        start: ``"fan-in"``, weights N(0, 1/fan-in) and biases zero; ``"prior"``, a draw
            from the prior; or ``"uniform"``, a draw from (−2, 2), where Pyro starts its
            chains.
        prior_precision: λ of all weights; None to draw each tensor's by a Gibbs step
            once a round.
        prior_by_fan_in: whether the precision of a weight is λ times its fan-in.
        batch_size: n, the examples of a minibatch.
        minibatches: ``"passes"``, slices of the data in an order shuffled anew every
            round; ``"fresh"``, a random subset every step; or ``"held"``, a random
            subset for a whole sample: the m steps of it, or a tree, its energies
            included.
        rounds: number of rounds, of N/n samples each; or with trees, of those trees
            that bring the number of gradients to N/n a round.
        burn_in: number of rounds before predictions are averaged, one network a round.
        keep_every: number of rounds from one network of the reservoir to the next.
        average_every: numbers of rounds from one network to the next in further
            averages, scored at the end; None for no such averages.
        record_every: number of rounds from one point of the learning curve to the next.
        data: which data the run is on, where an experiment has several.
        seed: seed of the run's only generator.
        method: what the run is called in tables and files.

    Raises:
        ValueError: if a setting is out of its range, or of no use to the method.

    Example:
        >>> Plan(1e-4).kernel().step_size
        0.0001
    """

    learning_rate: float
    momentum_decay: float | None = None
    temperature: float = 1.0
    annealing: tuple[float, float] | None = None
    nesterov: bool = False
    falling: bool = False
    cooled: float | None = None
    num_steps: int = 1
    resample_every: int | None = None
    noise_refresh: int | None = None
    trees: str | None = None
    integrator: str = "palindromic"
    head_start: int | None = None
    start: str = "fan-in"
    prior_precision: float | None = None
    prior_by_fan_in: bool = False
    batch_size: int = 500
    minibatches: str = "passes"
    rounds: int = 800
    burn_in: int = 50
    keep_every: int = 25
    average_every: tuple[int, ...] | None = None
    record_every: int = 10
    data: str = ""
    seed: int = 0
    method: str = ""

    def __post_init__(self):
        check_choice("minibatches", self.minibatches, tuple(RULES))
        check_choice("start", self.start, ("fan-in", "prior", "uniform"))
        if not 0 <= self.burn_in < self.rounds:
            raise ValueError(
                f"burn_in must be at least 0 and less than rounds, {self.rounds}, but "
                f"it is {self.burn_in}"
            )
        if self.average_every is not None and min(self.average_every, default=0) < 1:
            raise ValueError(
                "average_every must hold numbers of at least 1, but it is "
                f"{self.average_every}"
            )
        if min(self.keep_every, self.record_every) < 1:
            raise ValueError(
                "keep_every and record_every must be at least 1, but they are "
                f"{self.keep_every} and {self.record_every}"
            )
        check_count("num_steps", self.num_steps)
        for name, idle in {
            "noise_refresh": None,
            "resample_every": None,
            "trees": None,
            "nesterov": False,
            "num_steps": 1,
        }.items():
            if self.momentum_decay is None and getattr(self, name) != idle:
                raise ValueError(
                    f"{name} is for methods with momentum: leave it out, or give "
                    "momentum_decay"
                )
        for name, idle in {
            "noise_refresh": None,
            "resample_every": None,
            "temperature": 1.0,
            "num_steps": 1,
        }.items():
            if self.trees is not None and getattr(self, name) != idle:
                raise ValueError(
                    f"{name} is for methods without trees: leave it out, or leave out "
                    "trees"
                )
        if self.momentum_decay is not None and self.annealing is not None:
            raise ValueError(
                "annealing is for methods without momentum: leave it out, or leave "
                "out momentum_decay"
            )
        if self.nesterov and (
            self.temperature > 0
            or self.trees is not None
            or self.resample_every is not None
            or self.num_steps > 1
        ):
            raise ValueError(
                "nesterov is for optimisers: give the temperature 0, one step a "
                "sample, and no trees or fresh momenta"
            )
        if self.falling and self.temperature > 0:
            raise ValueError(
                "falling is for optimisers: leave it out, or give the temperature 0; "
                "a sampler's steps fall by annealing"
            )
        if self.cooled is not None and (
            self.momentum_decay is None
            or self.temperature == 0
            or self.trees is not None
        ):
            raise ValueError(
                "cooled is for SGHMC: leave it out, or give momentum_decay and a "
                "temperature, and no trees"
            )
        if self.cooled is not None and not 0 < self.cooled <= 1:
            raise ValueError(
                "cooled must be a share of the learning rate, above 0 and at most 1, "
                f"but it is {self.cooled}"
            )
        if self.trees is None and self.num_steps == 1 and self.minibatches == "held":
            raise ValueError(
                "minibatches are held for a whole sample: give trees, or more "
                "num_steps than 1, or take 'fresh' ones"
            )
        if (
            self.head_start is not None
            and self.trees is None
            and self.resample_every is None
        ):
            raise ValueError(
                "head_start is the number of rounds with trees or with fresh momenta: "
                "give trees or resample_every"
            )

    def rate(self, done: int) -> float:
        """Compute the learning rate of a round, after so many that are done.

        Example:
            >>> plan = Plan(1e-4, 0.1, temperature=0.0, falling=True, rounds=800)
            >>> plan.rate(0), round(plan.rate(400), 9), plan.rate(799) < 1e-9
            (0.0001, 5e-05, True)
            >>> plan = Plan(1e-4, 0.1, cooled=0.1, rounds=800, burn_in=200)
            >>> (
            ...     plan.rate(0),
            ...     round(plan.rate(100), 9),
            ...     round(plan.rate(200), 9),
            ...     round(plan.rate(700), 9),
            ... )
            (0.0001, 5.5e-05, 1e-05, 1e-05)
        """
        if self.cooled is not None:
            return self.learning_rate * (
                self.cooled
                + (1 - self.cooled)
                * _half_wave(min(done, self.burn_in) / max(self.burn_in, 1))
            )
        return self.learning_rate * (
            _half_wave(done / self.rounds) if self.falling else 1.0
        )

    def kernel(self, done: int = 0) -> Kernel:
        """Make the kernel that the plan describes, or with which it makes its head
        start, for the round after so many.
        """
        rate = self.rate(done)
        if self.momentum_decay is None:
            step_size = (
                rate
                if self.annealing is None
                else lambda step: self.learning_rate * self.weight(step)
            )
            return SGLD(step_size, temperature=self.temperature)
        if self.nesterov:
            return Nesterov(rate, self.momentum_decay)
        if self.trees is not None:
            step_size = math.sqrt(self.learning_rate)
            return SGNUTS(
                step_size,
                self.momentum_decay / step_size,
                weights=self.trees,
                integrator=self.integrator,
            )
        return SGHMC.from_learning_rate(
            rate,
            self.momentum_decay,
            0.0
            if self.noise_refresh is None
            else OnlineNoise("diagonal", self.noise_refresh),
            temperature=self.temperature,
            num_steps=self.num_steps,
            resample_every=self.resample_every,
        )

    def after_head_start(self) -> "Plan":
        """Go on with plain SGHMC.

        Example:
            >>> type(
            ...     Plan(1e-4, 0.1, trees="uniform", head_start=3)
            ...     .after_head_start()
            ...     .kernel()
            ... ).__name__
            'SGHMC'
        """
        minibatches = "fresh" if self.minibatches == "held" else self.minibatches
        return replace(
            self,
            trees=None,
            resample_every=None,
            head_start=None,
            minibatches=minibatches,
        )

    def rule(self) -> MinibatchRule:
        """Give the rule by which minibatches are chosen, of a tree or of a step.

        Example:
            >>> Plan(1e-4, 0.1, num_steps=3, minibatches="held").rule().num_steps
            3
        """
        rule = RULES[self.minibatches]
        return (
            Held(self.num_steps, rule)
            if self.minibatches == "held" and self.trees is None
            else rule
        )

    def prior_precisions(self, network: nn.Module) -> dict[str, float]:
        """Give the precision of each parameter's prior; where it is drawn, the one at
        the start.
        """
        precision = 1.0 if self.prior_precision is None else self.prior_precision
        fan_in = {
            name: p[0].numel() if self.prior_by_fan_in and p.ndim > 1 else 1
            for name, p in network.named_parameters()
        }
        return {name: precision * number for name, number in fan_in.items()}

    def weight(self, step: int) -> float:
        """Compute the step size after so many steps over the first one: the weight of
        the network there (Welling and Teh, 2011, eq. 11).
        """
        if self.annealing is None:
            return 1.0
        offset, power = self.annealing
        return (1 + step / offset) ** -power

    def finer(self, num_steps: int) -> "Plan":
        """Take m steps a sample, each m times finer, at the same friction: η/m², α/m.

        Example:
            >>> fine = Plan(1e-4, 0.1).finer(4)
            >>> (
            ...     fine.kernel().step_size * 4 == Plan(1e-4, 0.1).kernel().step_size,
            ...     fine.num_steps,
            ... )
            (True, 4)
        """
        rate, decay = self.learning_rate / num_steps**2, self.momentum_decay / num_steps
        return replace(
            self, learning_rate=rate, momentum_decay=decay, num_steps=num_steps
        )

    def variance_as_scale(self) -> "Plan":
        """Inject what a program injects that gives the noise's variance 2αη where a
        standard deviation is asked for; 2η without momentum.

        Noise of variance (2αη)² is that of SGHMC at the temperature 2αη, and of
        variance (2η)² that of SGLD at 2η.

        Example:
            >>> (
            ...     Plan(0.01, 0.1).variance_as_scale().temperature,
            ...     Plan(0.01).variance_as_scale().temperature,
            ... )
            (0.002, 0.02)
        """
        decay = 1.0 if self.momentum_decay is None else self.momentum_decay
        return replace(self, temperature=2 * decay * self.learning_rate)

    def rate_twice(self, weight_decay: float) -> "Plan":
        """Descend as a program does that multiplies the gradient by η for a weight
        decay, and once more for the step.

        Its learning rate is η², and its weight decay adds to the precision of the
        prior, whose gradient is in the sum already.

        Example:
            >>> plan = Plan(
            ...     1e-3, 0.1, temperature=0.0, nesterov=True, prior_precision=1.0
            ... ).rate_twice(0.5)
            >>> plan.learning_rate, plan.prior_precision
            (1e-06, 1.5)
        """
        return replace(
            self,
            learning_rate=self.learning_rate**2,
            prior_precision=self.prior_precision + weight_decay,
        )


def _half_wave(share: float) -> float:
    """Fall from 1 to 0 by half a wave of a cosine."""
    return 0.5 + 0.5 * math.cos(math.pi * share)
