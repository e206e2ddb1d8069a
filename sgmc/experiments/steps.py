"""Steps per sample on MNIST: m = 1, 3 and 5 steps with εm fixed, at equal numbers of samples and at equal numbers of gradients.

With the friction C fixed, ε/m is the learning rate η/m² and the momentum decay α/m: every sample is then the same stretch εm of the same
dynamics, in steps that are m times finer. The network is 784–100–10 with rectified linear units and the prior N(0, 1); η = 2·10⁻⁶ and
α = 0.01 at m = 1. With 50,000 digits and fresh minibatches of 500, a round is 100 samples. At equal samples the warm-up is 100
rounds for every m, and a larger m costs m times more; at equal gradients all have what m = 1 has, and average as many networks. The
momentum is not drawn afresh.
The small version is on the 5,000 digits.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from sgmc.datasets import digits, mnist
from sgmc.experiments.comparison import LAYERS, Prepared, checkpoint, summary
from sgmc.experiments.fashion import without_details
from sgmc.experiments.runner import Options, Plan, Run, checksum
from sgmc.kernels import SGHMC
from sgmc.networks import multilayer_perceptron

__all__ = ["STEPS", "StepsPlan", "prepare", "run", "settings", "summary"]

STEPS = (1, 3, 5)


@dataclass(frozen=True)
class StepsPlan(Plan):
    """A plan of SGHMC with m steps a sample; a round is N/n samples.

    Example:
        >>> plan = StepsPlan("SGHMC", 1e-4, 0.1, num_steps=3)
        >>> plan.finer().kernel().step_size * 3 == Plan("SGHMC", 1e-4, 0.1).kernel().step_size
        True
    """

    num_steps: int = 1

    def kernel(self) -> SGHMC:
        """Make the kernel that the plan describes."""
        return SGHMC.from_learning_rate(self.learning_rate, self.momentum_decay, temperature=self.temperature, num_steps=self.num_steps)

    def finer(self) -> "StepsPlan":
        """Divide the step size ε by m at the same friction: η/m², α/m."""
        return replace(self, learning_rate=self.learning_rate / self.num_steps**2, momentum_decay=self.momentum_decay / self.num_steps)


class StepsRun(Run):
    """A run with m steps a sample; without CUDA graphs, which know of one step a sample only."""

    def __init__(self, plan: StepsPlan, *arguments):
        super().__init__(plan, *arguments)
        self.captures = False


def prepare(options: Options) -> Prepared:
    """Load the digits; there is nothing to validate."""
    if options.small:
        train, test = digits()
    else:
        train, test = mnist(options.data)
        train = type(train)(*(x[:50_000] for x in train))
    empty = type(train)(*(x[:0] for x in train))
    network = partial(multilayer_perceptron, LAYERS, "relu")
    return Prepared(train, empty, test, options.runs / ("steps-small" if options.small else "steps"), network)


def settings(prepared: Prepared, small: bool) -> dict[str, StepsPlan]:
    """List the plans, by name."""
    size = {"rounds": 120, "burn_in": 100, "record_every": 4}
    if small:
        size = {"rounds": 30, "burn_in": 15, "batch_size": 100, "record_every": 3}
    rate = 0.1 / len(prepared.train.targets)
    one = StepsPlan("SGHMC", rate, 0.01, prior_precision=1.0, minibatches="fresh", **size)
    finer = {m: replace(one, num_steps=m).finer() for m in STEPS[1:]}
    plans = {"m = 1": one}
    # Without fresh momentum m steps a sample are m samples of one step, so that the chain can be looked at as often as that of m = 1.
    plans |= {f"m = {m}, equal gradients": replace(plan, num_steps=1) for m, plan in finer.items()}
    plans |= {f"m = {m}, equal samples": plan for m, plan in finer.items()}
    return {name: replace(plan, method=f"SGHMC, {name}") for name, plan in plans.items()}


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run all plans, one seed after the other, and yield the result after each run."""
    return without_details(_run(options, prepared))


def _run(options: Options, prepared: Prepared) -> Iterator[dict]:
    plans = settings(prepared, options.small)
    result = {"data_checksum": checksum(*prepared[:3]), "methods": {}}
    for seed in range(options.seeds):
        for name, plan in plans.items():
            path = checkpoint(prepared.folder, name, seed)
            one = StepsRun(
                replace(plan, seed=seed), prepared.network(), prepared.train, prepared.test, options.device, path, options.resume
            )
            result["methods"].setdefault(name, {"runs": []})["runs"].append(one.go(options.progress))
            yield result
