"""Ensembles: the same network trained again and again."""

from typing import Any

import torch
from torch import Generator, Tensor

from booklib.rivals.descent import Settings, check_task, descend
from sgmc.checks import check_instance, check_number, check_tensor, shown
from sgmc.door.draws import Draws
from sgmc.door.running import Store
from sgmc.posteriors import DataPotential, NetworkPosterior
from sgmc.potentials import Potential


def ensemble(
    potential: Potential,
    position: Tensor,
    *,
    num_steps: int,
    learning_rate: float = 0.01,
    anchors: Tensor | None = None,
    adversarial: float = 0.0,
    seed: int = 0,
    checkpoint: Store | None = None,
    progress: bool = True,
) -> Draws:
    """Descend to a mode from every start: a deep ensemble (Lakshminarayanan et al.,
    2017, Algorithm 1).

    All members are trained at once by Adam, as chains, each on minibatches of its own.
    On a Gaussian posterior all end in its mean.

    With adversarial training half of each example's log-likelihood is that of x +
    ϵ·sign(∇ₓ −log p(y | x, θ)), the input nearby that is worst for the member.

    With anchors, member c minimises U(θ) with its prior N(0, Λ⁻¹) moved to N(aᶜ, Λ⁻¹):
    randomised MAP sampling (Pearce et al., 2020). On a Gaussian posterior of precision
    A and covariance Σ, anchors of covariance S scatter the modes with the covariance
    ΣΛSΛΣ about the mean: less than Σ for anchors from the prior, S = Λ⁻¹, and Σ itself
    for S = Λ⁻¹AΛ⁻¹.

    Args:
        potential: the target.
        position: where the members start, ``(chains, dim)``, such as
            ``posterior.initial_position(5, generator)``.
        num_steps: number of Adam's steps.
        learning_rate: of Adam in the first step; it falls to zero.
        anchors: a, ``(chains, dim)``, for a prior that is Gaussian with mean zero.
        adversarial: ϵ, in units of the inputs of a NetworkPosterior; 0 for none.
        seed: seed of the minibatches.
        checkpoint: where to save the training, and from where to go on.
        progress: whether to show a progress bar.

    Returns:
        One draw of each chain, a member: ``(1, chains, dim)``.

    Raises:
        ValueError: if there is one member, all start in one place, or anchors or
            adversarial examples do not suit the potential.
        DivergenceError: if a member stops being finite.

    Example:
        >>> from sgmc.targets import DoubleWell
        >>> start = torch.tensor([[-0.5], [0.1], [0.7]])
        >>> ensemble(DoubleWell(), start, num_steps=500).samples.flatten().round()
        tensor([-1.,  1.,  1.])
    """
    check_number("adversarial", adversarial, 0)
    if adversarial > 0:
        example = "NetworkPosterior(...), which has inputs, or leave out adversarial"
        check_instance("potential", potential, NetworkPosterior, example)
    check_task(potential, position, 1, seed)
    if (position == position[0]).all():
        raise ValueError(
            "position must give each member of an ensemble, at least two members, a "
            f"start of its own, but all {len(position)} start in one place, from which "
            "they find one mode: take posterior.initial_position(chains, generator)"
        )
    pull = 0.0 if anchors is None else _pull(potential, position, anchors)
    members = position.detach().clone()

    def gradients(minibatch: Any) -> tuple[Tensor]:
        if adversarial > 0 and isinstance(potential, NetworkPosterior):
            slope = adversarial_gradient(potential, members, minibatch, adversarial)
        else:
            slope = potential.gradient_given(members, minibatch)
        return (slope - pull,)

    way = descend(
        potential,
        [members],
        gradients,
        Generator(position.device).manual_seed(seed),
        Settings(num_steps, learning_rate),
        progress,
        checkpoint,
        what=(adversarial, anchors),
    )
    what = f", adversarial={adversarial}" if adversarial > 0 else ""
    what += ", anchors" if anchors is not None else ""
    name = f"ensemble(num_steps={num_steps}, learning_rate={learning_rate}{what})"
    return way.draws(members[None], name, seed)


def adversarial_gradient(
    posterior: NetworkPosterior, position: Tensor, minibatch: Tensor | None, size: float
) -> Tensor:
    """Compute ∇Ũ(θ; S) ``(chains, dim)``, half of each log likelihood being that of x +
    ϵ·sign(∇ₓ −log p(y | x, θ)) (Goodfellow et al., 2015), with ϵ the size.
    """
    inputs, targets = posterior.gather(minibatch)
    with torch.enable_grad():
        variable = position.detach().requires_grad_()
        inputs = inputs.expand(len(position), *inputs.shape[1:])
        inputs = inputs.detach().requires_grad_()
        loss = posterior.likelihood.loss(posterior.outputs(variable, inputs), targets)
        slope, uphill = torch.autograd.grad(loss, (variable, inputs))
        worse = inputs.detach() + size * uphill.sign()
        loss = posterior.likelihood.loss(posterior.outputs(variable, worse), targets)
        slope = slope + torch.autograd.grad(loss, variable)[0]
    scale = 0.5 * posterior.num_examples / inputs.shape[1]
    return slope.mul_(scale).sub_(posterior.grad_log_prior(position))


def _pull(potential: Potential, position: Tensor, anchors: Tensor) -> Tensor:
    """Compute Λa, by which moving the prior changes the gradient, from −∇log p(θ) =
    Λθ.
    """
    if not isinstance(potential, DataPotential):
        raise ValueError(
            "anchors move the prior of a potential such as NetworkPosterior(...), but "
            f"this potential is {shown(potential)}: leave them out"
        )
    check_tensor("anchors", anchors, "chains", "dim")
    if anchors.shape != position.shape or anchors.dtype != position.dtype:
        raise ValueError(
            f"anchors must be one for each member, {shown(position)}, but they are "
            f"{shown(anchors)}"
        )

    def slope(place: Tensor) -> Tensor:
        return potential._with_prior(place, torch.zeros_like(place), 0.0)

    pull = slope(anchors)
    linear = [
        torch.allclose(slope(factor * anchors), factor * pull, rtol=1e-3)
        for factor in (0, 2)
    ]
    if not all(linear):
        raise ValueError(
            "anchors need a prior that is Gaussian with mean zero, but the slope of "
            "this log_prior is not linear: leave them out"
        )
    return pull
