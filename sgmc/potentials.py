"""The interface through which a kernel sees its target exp(−U): the energy and its
gradients.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Generator, Tensor

from sgmc.checks import check_fits, check_instance

Kind = Literal["scalar", "diagonal", "full"]
# A density raises these where it cannot be computed.
ERRORS = (ArithmeticError, ValueError, RuntimeError)


def differentiate(
    energy: Callable[[Tensor], Tensor], position: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute energies ``(chains,)`` and their gradients ``(chains, dim)`` by automatic
    differentiation.

    Example:
        >>> differentiate(lambda x: x.pow(2).sum(-1), torch.tensor([[3.0]]))
        (tensor([9.]), tensor([[6.]]))
    """
    with torch.enable_grad():
        position = position.detach().requires_grad_()
        value = energy(position)
        # Chains do not interact, so the sum's gradient is that of each chain.
        return value.detach(), torch.autograd.grad(value.sum(), position)[0]


class Potential:
    """An energy U(θ) and its gradients; the target density is π(θ) ∝ exp(−U(θ)). A
    potential has no state that a call changes.

    A subclass writes ``energy``, and ``gradient`` where a formula is faster than
    automatic differentiation. Where the gradient ∇Ũ(θ; ω) is stochastic, it writes
    ``draw_minibatches``, which draws ω for some steps, and ``gradient_given``, a pure
    function of θ and ω: indices of data, or artificial noise. All positions are
    ``(chains, dim)``.

    Example:
        >>> class Quartic(Potential):
        ...     dim = 1
        ...
        ...     def energy(self, position):
        ...         return position.pow(4).sum(-1)
        >>> Quartic().gradient(torch.tensor([[1.0], [2.0]]))
        tensor([[ 4.],
                [32.]])
    """

    dim: int | None = None  # None means that it is open until a position is given

    def check(self, position: Tensor, generator: Generator) -> None:
        """Raise a ValueError if a model is not as its author wants it near a position
        ``(chains, dim)``; a run asks once, before it starts.
        """

    def energy(self, position: Tensor) -> Tensor:
        """Compute U(θ) for every chain: ``(chains, dim)`` → ``(chains,)``."""
        raise NotImplementedError(
            f"{type(self).__name__} has no energy: write its energy(position)"
        )

    def gradient(self, position: Tensor) -> Tensor:
        """Compute ∇U(θ) by automatic differentiation: ``(chains, dim)`` → the same."""
        return differentiate(self.energy, position)[1]

    def energy_and_gradient(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Compute U(θ) and ∇U(θ), ``(chains,)`` and ``(chains, dim)``, together; a
        subclass may write the method where the two share work.
        """
        if type(self).gradient is Potential.gradient:
            return differentiate(self.energy, position)
        return self.energy(position), self.gradient(position)

    def draw_minibatches(
        self, position: Tensor, generator: Generator, step: int, num_steps: int = 1
    ) -> Sequence[Any]:
        """Draw the minibatches ω of ``num_steps`` steps, the first of which follows
        ``step`` stochastic gradients of the run, for as many chains as the position
        has; None for each step here, where the gradient is exact.
        """
        return (None,) * num_steps

    def fresh_minibatch(self, position: Tensor, generator: Generator) -> Any:
        """Draw a minibatch ω that no step of a run has seen, whatever its rule."""
        return self._minibatch(position, generator, None)

    def _minibatch(self, position: Tensor, generator: Generator, step: int | None):
        example = "torch.Generator().manual_seed(0)"
        check_instance("generator", generator, Generator, example)
        if step is None:
            place = {"generator": generator, "device": generator.device}
            step = int(torch.randint(2**40, (), **place))
        return self.draw_minibatches(position, generator, step)[0]

    def gradient_given(self, position: Tensor, minibatch: Any) -> Tensor:
        """Compute ∇Ũ(θ; ω) of one step's ω: → ``(chains, dim)``."""
        return self.gradient(position)

    def gradient_and_variance_given(
        self, position: Tensor, minibatch: Any, kind: Kind
    ) -> tuple[Tensor, Tensor]:
        """Compute ∇Ũ(θ; ω), ``(chains, dim)``, and with it V̂ of its variance: the mean
        of all coordinates, ``(chains, 1)``, for the kind ``"scalar"``, that of each,
        ``(chains, dim)``, for ``"diagonal"``, the covariance, ``(chains, dim, dim)``,
        for ``"full"``. Raise a NotImplementedError if the potential cannot estimate it.
        """
        if type(self).gradient_given is not Potential.gradient_given:
            raise NotImplementedError(
                f"{type(self).__name__} does not know its gradient noise: write its "
                "gradient_and_variance_given"
            )
        return self.gradient(position), no_noise(position, kind)

    def stochastic_gradient(
        self, position: Tensor, generator: Generator, step: int | None = None
    ) -> Tensor:
        """Draw an unbiased estimate ∇Ũ(θ) at positions ``(chains, dim)`` for a step of
        a run; by default the step is random, so that every call draws another
        minibatch.
        """
        return self.gradient_given(position, self._minibatch(position, generator, step))

    def gradient_and_noise_variance(
        self,
        position: Tensor,
        generator: Generator,
        kind: Kind,
        step: int | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Draw ∇Ũ(θ) by ``stochastic_gradient``, and V̂ of a kind with it."""
        minibatch = self._minibatch(position, generator, step)
        return self.gradient_and_variance_given(position, minibatch, kind)


def no_noise(position: Tensor, kind: Kind) -> Tensor:
    """Make V̂ = 0 of a kind for positions ``(chains, dim)``.

    Example:
        >>> no_noise(torch.ones(2, 3), "diagonal")
        tensor([[0., 0., 0.],
                [0., 0., 0.]])
    """
    chains, dim = position.shape
    if kind == "full":
        check_fits(chains, dim, position.element_size())
    shape = {"scalar": (1,), "diagonal": (dim,), "full": (dim, dim)}[kind]
    return position.new_zeros(chains, *shape)
