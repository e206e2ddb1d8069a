"""The steps of a round as one CUDA graph, so that Python is paid once a round and not
once a step.
"""

import torch
from torch import Tensor

from experiments.plan import Plan
from sgmc.minibatches import MinibatchRule


def fits_a_graph(plan: Plan, device: torch.device) -> bool:
    """Tell whether a graph can hold a round.

    Trees and an online estimate look at numbers as they go, a step size that falls is a
    new number every step or round, and a fresh momentum comes at some steps only."""
    free = (
        plan.trees,
        plan.noise_refresh,
        plan.annealing,
        plan.resample_every,
        plan.falling,
    ) == (None, None, None, None, False)
    return device.type == "cuda" and free and plan.cooled is None


class CapturedRound:
    """A round as a graph, and the rule by which its steps find their minibatches: in
    one tensor, filled before each round.

    Whatever the steps read stays where it is: the state, the minibatches and the
    prior's precisions are changed in place. The first round is taken step by step,
    which warms up what a graph must not start; the random numbers are drawn in the same
    order in both, so that a resumed run goes on as the uninterrupted one.

    Not measured: there was no accelerator when this was written. What needs none is
    tested on the CPU, with a graph that calls again what it was to capture.

    Args:
        rule: by which minibatches are chosen.
        num_gradients: number of minibatches of a round.
        batch_size: n.
        device: a CUDA device.
    """

    replacement = False

    def __init__(
        self,
        rule: MinibatchRule,
        num_gradients: int,
        batch_size: int,
        device: torch.device,
    ):
        self.rule, self.rows = (
            rule,
            torch.zeros(num_gradients, batch_size, dtype=torch.int64, device=device),
        )
        self.warm, self.graph = False, None

    def indices(
        self, num_examples: int, batch_size: int, chains: int, seed: int, step: int
    ) -> Tensor:
        """Find the minibatch of a step of this round: ``(1, n)``."""
        return self.rows[step % len(self.rows)][None]

    def go(self, walk) -> None:
        """Take a walk's steps of a round, step by step or by the graph."""
        examples, size, seed = (
            walk.posterior.num_examples,
            walk.plan.batch_size,
            walk.plan.seed,
        )
        steps = range(walk.num_gradients, walk.num_gradients + len(self.rows))
        self.rows.copy_(
            torch.cat(
                [self.rule.indices(examples, size, 1, seed, step) for step in steps]
            )
        )
        if not self.warm:
            self.warm = True
            self.steps(walk.kernel, walk.posterior, walk.state, walk.generator)
        else:
            if self.graph is None:
                self.capture(walk)
            if isinstance(self.precisions, Tensor):
                self.precisions.copy_(walk.posterior.prior.value)
            self.graph.replay()
        walk.num_gradients += len(self.rows)
        walk.state = walk.state._replace(num_gradients=walk.num_gradients)

    def capture(self, walk) -> None:
        """Capture the steps, which do not happen now, from a state and precisions whose
        tensors stay.
        """
        self.precisions = walk.posterior.prior.value
        self.graph = torch.cuda.CUDAGraph()
        self.graph.register_generator_state(walk.generator)
        with torch.cuda.device(walk.device), torch.cuda.graph(self.graph):
            self.steps(walk.kernel, walk.posterior, walk.state, walk.generator)

    def steps(self, kernel, posterior, start, generator) -> None:
        """Take the steps of a round, and leave the state where it was read."""
        state, end = start, start.num_gradients + len(self.rows)
        while state.num_gradients < end:
            state, _ = kernel.step(posterior, state, generator)
        for old, new in zip(start, state, strict=True):
            if isinstance(old, Tensor) and new is not old:
                old.copy_(new)
