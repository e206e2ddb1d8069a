"""Checks before a run starts: its parts are valid, and its model agrees with itself."""

import torch
from torch import Generator, Tensor

from sgmc.checks import check_instance, check_seed, check_tensor, evaluate, shown
from sgmc.kernels.base import Kernel
from sgmc.potentials import Potential


def check_kernel(kernel: Kernel) -> None:
    """Raise a ValueError unless the value is a kernel.

    Example:
        >>> from sgmc.kernels import SGLD
        >>> check_kernel(SGLD)
        Traceback (most recent call last):
        ValueError: kernel must be of type Kernel, such as SGHMC(0.1, 3.0), ...
    """
    check_instance("kernel", kernel, Kernel, "SGHMC(0.1, 3.0)")


def check_start(potential: Potential, position: Tensor, seed: int) -> None:
    """Raise a ValueError if chains cannot start at the position ``(chains, dim)``, or
    the potential's stochastic gradient there, its model or its data are not what they
    should be, or its own ``check`` says so.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> check_start(Gaussian.standard(2), torch.zeros(4, 3), seed=0)
        Traceback (most recent call last):
        ValueError: position has 3 coordinates, but the potential has dim = 2
    """
    # It imports the posteriors, so only a run imports it.
    from sgmc.door import _models as models

    check_instance("potential", potential, Potential, "one of sgmc.targets")
    check_seed("seed", seed)
    check_tensor("position", position, "chains", "dim")
    if potential.dim is not None and position.shape[1] != potential.dim:
        raise ValueError(
            f"position has {position.shape[1]} coordinates, but the potential has dim "
            f"= {potential.dim}"
        )
    models.check_methods(potential)
    # This generator is separate, because a check of the gradient must not change the
    # draws.
    generator = Generator(position.device).manual_seed(seed)
    # the potential may report why it is not finite
    potential.check(position, generator)
    if isinstance(potential, models.DataPotential):
        models.check_posterior(potential, position, generator)
    gradient: object = evaluate(
        lambda: potential.stochastic_gradient(position, generator, step=0), position
    )
    if not isinstance(gradient, Tensor) or shown(gradient) != shown(position):
        raise ValueError(
            f"the potential's gradient is {shown(gradient)}, but the position is "
            f"{shown(position)}; they must agree"
        )
    if not isinstance(potential, models.DataPotential):
        models.check_minibatches(potential, position, generator)
    if not torch.isfinite(gradient).all():
        chain = int((~torch.isfinite(gradient).all(-1)).nonzero()[0])
        raise ValueError(
            f"the gradient at the start is not finite in chain {chain}; start "
            "elsewhere, or correct the potential"
        )
    models.check_model(models.on_few_examples(potential), position, generator)
