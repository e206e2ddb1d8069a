"""Distillation: one network is taught to predict what many predict on average."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from booklib.scores.checks import check_draws, check_probabilities
from sgmc.checks import (
    check_count,
    check_instance,
    check_number,
    check_seed,
    check_tensor,
    shown,
)
from sgmc.door.draws import Draws
from sgmc.posteriors import NetworkPosterior, Softmax


def lessons(
    teacher: NetworkPosterior,
    draws: Draws,
    inputs: Tensor,
    *,
    copies: int = 0,
    noise_std: float = 0.0,
    seed: int = 0,
) -> tuple[Tensor, Tensor]:
    """Average the predictions of all draws into lessons for another network: the data
    of a student (Korattikara et al., 2015).

    The student is a :class:`sgmc.posteriors.NetworkPosterior` with these data and
    :class:`SoftTargets`, and any descent trains it, such as
    :func:`booklib.rivals.snapshots`. Its energy is Σᵢ KL(p̄(· | xᵢ) ∥ q(· | xᵢ,
    w)) less its log prior up to a constant, p̄ being the average over the draws and q
    what the student predicts. Inputs need no labels: besides the given ones there are
    copies xᵢ + N(0, s²I) of all of them.

    The paper teaches while the chain runs, by what the newest draw predicts. The energy
    is linear in p̄, so that the average of what is taught over a long chain is the
    same; here the draws are there, and p̄ is computed once. Where the teacher's
    likelihood is Gaussian, what is averaged are its outputs, and the student has a
    Gaussian likelihood too.

    Args:
        teacher: the posterior that the draws are of.
        draws: the draws, whose ``samples`` are positions ``(num_samples, chains,
            dim)``.
        inputs: x, ``(n, ...)``.
        copies: number of perturbed copies of all the inputs, which follow them.
        noise_std: s, of the perturbation.
        seed: seed of the perturbation.

    Returns:
        Inputs ``((1 + copies)·n, ...)`` and averaged predictions, ``(..., classes)``
        for a softmax, both of the inputs' dtype.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> from torch import nn
        >>> teacher = NetworkPosterior(
        ...     nn.Linear(4, 3), torch.randn(20, 4), torch.arange(20) % 3
        ... )
        >>> data = lessons(
        ...     teacher,
        ...     Draws(torch.zeros(5, 2, teacher.dim)),
        ...     teacher.data[0],
        ...     copies=1,
        ...     noise_std=0.1,
        ... )
        >>> data[0].shape, data[1][0]
        (torch.Size([40, 4]), tensor([0.3333, 0.3333, 0.3333]))
        >>> student = NetworkPosterior(nn.Linear(4, 3), *data, likelihood=SoftTargets())
    """
    check_instance("teacher", teacher, NetworkPosterior, "NetworkPosterior(...)")
    check_draws("draws", draws)
    check_tensor("inputs", inputs, "...")
    known = teacher.data[0]
    if inputs.shape[1:] != known.shape[1:] or inputs.dtype != known.dtype:
        raise ValueError(
            f"inputs must be like those of the teacher, {shown(known)}, but they are "
            f"{shown(inputs)}"
        )
    check_count("copies", copies, at_least=0)
    check_number("noise_std", noise_std, 0)
    check_seed("seed", seed)
    generator = Generator(inputs.device).manual_seed(seed)
    noise = torch.randn(
        copies,
        *inputs.shape,
        generator=generator,
        dtype=inputs.dtype,
        device=inputs.device,
    )
    everything = torch.cat([inputs, (inputs + noise_std * noise).flatten(0, 1)])
    positions = draws.samples.flatten(0, 1)
    # The networks go one after the other, because the predictions of all at once may
    # not fit into memory.
    total = sum(
        teacher.predict(position[None], everything)[0].double()
        for position in positions
    )
    return everything, (total / len(positions)).to(inputs.dtype)


@dataclass(frozen=True)
class SoftTargets(Softmax):
    """The soft log likelihood Σₖ pₖ log P(y = k), P being that of
    :class:`sgmc.posteriors.Softmax`, for targets p that are probabilities of the
    classes (Hinton et al., 2015).

    Up to the entropies of the targets, its loss is Σ KL(p ∥ P): what a network has to
    make small to predict p itself.

    Example:
        >>> SoftTargets().loss(
        ...     torch.zeros(1, 1, 4), torch.tensor([[[0.7, 0.1, 0.1, 0.1]]])
        ... )  # log 4
        tensor(1.3863)
    """

    def log_density(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute Σₖ pₖzₖ − log Σⱼe^{zⱼ}."""
        return (targets * self.log_predict(outputs)).sum(-1)

    def slope(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute pₖ − P(k), for targets that sum to one."""
        return targets - self.predict(outputs)

    def check(self, outputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless the targets are probabilities of the model's dtype,
        one for each output, and the outputs for parameters of zero are not a softmax's
        1/k.
        """
        check_probabilities("targets", targets, "N", "classes")
        if targets.dtype != outputs.dtype or targets.shape[1:] != outputs.shape[2:]:
            raise ValueError(
                f"targets must be of the inputs' dtype {outputs.dtype}, of as many "
                f"classes as the module gives, {tuple(outputs.shape[2:])}, but they "
                f"are {targets.dtype} of {tuple(targets.shape[1:])}: use "
                "targets.to(inputs)"
            )
        super().check(outputs, targets.argmax(-1))
