"""The chain of a run: a posterior, a kernel and a state, which go on round by round."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn

from booklib.datasets import Data
from experiments.plan import Plan
from sgmc.kernels import SGNUTS
from sgmc.posteriors import HeldMinibatch, NetworkPosterior
from sgmc.potentials import Potential
from sgmc.randomness import normal_like
from sgmc.sampling import flatten, unflatten


class Walk:
    """The chain that a plan describes.

    Args:
        plan: the settings.
        network: the network.
        train: what the posterior is of.
        device: a device of torch.

    Attributes:
        posterior: given the precisions of the present round.
        state: the kernel's.
        rounds: number of rounds begun.
        num_gradients: gradient evaluations so far.
        trees: depth of each tree so far, and whether it was at the depth limit and
            whether it diverged.
    """

    def __init__(
        self,
        plan: Plan,
        network: nn.Module,
        train: Data,
        device: torch.device | str = "cpu",
    ):
        self.plan, self.device = plan, torch.device(device)
        self.generator = Generator(self.device).manual_seed(plan.seed)
        self.gradients_per_round = plan.num_steps * (
            len(train.targets) // plan.batch_size
        )
        posterior = NetworkPosterior(
            network,
            train.inputs.to(self.device),
            train.targets.to(self.device),
            batch_size=plan.batch_size,
            minibatches=plan.rule(),
        )
        self.posterior = posterior.given(plan.prior_precisions(network))
        self.rounds, self.num_gradients = 0, 0
        self.trees: list[tuple[int, bool, bool]] = []
        self.kernel, self.changed = plan.kernel(), False
        self.state = self.kernel.init(self.potential(), self.start(), self.generator)

    def start(self) -> Tensor:
        """Draw where the chain starts, ``(1, dim)``."""
        position = self.posterior.initial_position(1, self.generator)
        if self.plan.start == "uniform":
            return position.uniform_(-2, 2, generator=self.generator)
        if self.plan.start == "prior":
            return self.posterior.prior.inverse.root @ normal_like(
                position, self.generator
            )
        return position

    def potential(self) -> Potential:
        """Give what the next step sees: the posterior, or its minibatch that is held
        for a tree.
        """
        if self.plan.trees is None or self.plan.minibatches != "held" or self.changed:
            return self.posterior
        examples, size = self.posterior.num_examples, self.plan.batch_size
        indices = self.plan.rule().indices(
            examples, size, 1, self.plan.seed, step=len(self.trees)
        )
        return HeldMinibatch(self.posterior, indices.to(self.device))

    def step(self) -> NamedTuple:
        """Take a step of the kernel, and say what it learned."""
        if self.plan.head_start is not None and self.head_start_is_over():
            self.change()
        before = int(self.state.num_gradients)
        self.state, info = self.kernel.step(
            self.potential(), self.state, self.generator
        )
        self.num_gradients += int(self.state.num_gradients) - before
        if isinstance(self.kernel, SGNUTS):
            self.trees.append(
                (int(info.depth), bool(info.depth_limited), bool(info.diverged))
            )
        return info

    def head_start_is_over(self) -> bool:
        """Tell whether the rounds of the head start are done."""
        return self.num_gradients >= self.plan.head_start * self.gradients_per_round

    def change(self) -> None:
        """Go on with another kernel after the head start; its steps are counted on, so
        that no minibatch comes again.
        """
        if self.changed:
            return
        steps = (
            len(self.trees) * 2**self.kernel.max_depth
            if self.trees
            else self.num_gradients
        )
        self.kernel, self.changed = self.plan.after_head_start().kernel(), True
        self.state = self.kernel.init(
            self.posterior, self.state.position, self.generator
        )._replace(num_gradients=steps)

    def round(self) -> bool:
        """Go on to the end of a round, and draw the prior's precisions there if the
        plan says so; tell whether there was a step to take.

        A tree ends where it ends, after one round or several.
        """
        if self.plan.falling or self.plan.cooled is not None:
            self.kernel = self.plan.kernel(self.rounds)
        self.rounds += 1
        end = self.rounds * self.gradients_per_round
        moves = self.num_gradients < end
        while self.num_gradients < end:
            self.step()
        if self.plan.prior_precision is None and self.is_finite():
            self.posterior = self.posterior.given(
                self.posterior.draw_hyperparameters(self.state.position, self.generator)
            )
        return moves

    def is_finite(self) -> bool:
        """Tell whether the chain is among the finite numbers."""
        return bool(torch.isfinite(self.state.position).all())

    def content(self) -> dict:
        """Give all that is needed to go on, and the position by its name for those who
        read it.
        """
        return {
            "position": self.state.position,
            "state": flatten(self.state),
            "changed": self.changed,
            "generator": self.generator.get_state(),
            "precisions": self.posterior.prior_precision,
            "rounds": self.rounds,
            "num_gradients": self.num_gradients,
            "trees": self.trees,
        }

    def restore(self, content: dict) -> None:
        """Go back to what ``content`` gave."""
        if content["changed"]:
            self.change()
        self.state = unflatten(content["state"], self.state)
        self.generator.set_state(content["generator"].cpu())
        self.posterior = self.posterior.given(content["precisions"])
        self.rounds, self.num_gradients, self.trees = (
            content["rounds"],
            content["num_gradients"],
            content["trees"],
        )
