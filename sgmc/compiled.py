"""SGHMC, and the energies that HMC and NUTS need, compiled to one function, for small
models, where Python takes longer than the arithmetic.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import torch
from torch import Generator, Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from sgmc.checks import check_instance
from sgmc.door.starting import check_start
from sgmc.kernels.sghmc import SGHMC
from sgmc.noise import OnlineNoise
from sgmc.potentials import Potential

# The number of potentials and shapes of tensors for which a kernel is compiled; and, of
# Inductor, not to gather the minibatches of all steps at once, more than a cache holds.
_AT_MOST, _OPTIONS = 16, {"cpp.max_horizontal_fusion_size": 1}
# Inductor writes a loop for a matrix times a vector, where a row times a matrix calls a
# library that is faster.
_PRODUCTS = {torch.ops.aten.mv.default: lambda a, x: (x[None] @ a.mT)[0]}


@dataclass(frozen=True, eq=False)
class CompiledSGHMC(SGHMC):
    """:class:`~sgmc.kernels.SGHMC`, with its arguments, whose m steps are compiled to
    one function (Chen et al., 2014, Algorithm 2).

    Its samples are those of SGHMC of the same seed, up to rounding. Compiling takes
    from seconds to a minute, once, and needs a C++ compiler, and a potential whose
    gradient has no Python that depends on values. It pays where a step takes less than
    about 0.1 ms. It is compiled anew for another potential, by its identity and that
    of its attributes, and for tensors of another form.

    Raises:
        ValueError: if a parameter is out of its range, the step size a schedule, or the
            noise estimate an online one.

    Example:
        >>> CompiledSGHMC(step_size=0.1, friction=3.0, num_steps=50).num_steps
        50
    """

    def __post_init__(self):
        super().__post_init__()
        if callable(self.step_size) or isinstance(self.noise_estimate, OnlineNoise):
            raise ValueError(
                "step_size and noise_estimate must be fixed to be compiled, but one is "
                "a schedule, or an OnlineNoise, that depends on the step: take SGHMC"
            )

    @cached_property
    def _compiled(self) -> dict[tuple, tuple[Callable, list]]:
        return {}

    def trajectory(self, potential, position, momentum, minibatches, normals, noise):
        """Take steps of Algorithm 2 on given random numbers, compiled; position and
        momentum are overwritten.

        Raises:
            RuntimeError: if they cannot be compiled, with one sentence that says why.
        """
        given = position, momentum, minibatches, normals
        leaves, things = tree_leaves(given), _things(potential)
        forms = (x if x is None else (x.shape, x.stride(), x.dtype) for x in leaves)
        key = (*map(id, things), position.device, *forms)
        tensors = [x for x in leaves if x is not None]
        if key not in self._compiled:
            if len(self._compiled) == _AT_MOST:
                raise RuntimeError(
                    "CompiledSGHMC is for one potential and few shapes, but "
                    f"{_AT_MOST + 1} were met, as in a Gibbs kernel: take SGHMC"
                )

            def steps(*places: Tensor) -> None:
                left = iter(places)
                replaced = tree_map_only(Tensor, lambda _: next(left), given)
                SGHMC.trajectory(self, potential, *replaced, noise=noise)

            # These numbers are computed before tensors are traced.
            _ = self._mass.inverse, self._damping
            # The things are kept, so that nothing else gets their identities.
            self._compiled[key] = _compile(steps, tensors), things
        self._compiled[key][0](*tensors)


class CompiledPotential(Potential):
    """A potential whose energy and gradient of all the data are compiled together, for
    HMC and NUTS of a small model, such as a program of Pyro.

    Compiling takes from seconds to a minute for each number of chains, and needs what
    :class:`CompiledSGHMC` needs. What a program computes without tensors is computed
    once, when it is compiled. Therefore ``energy`` and ``gradient`` are those of the
    potential as it is: with them the first is compared before a run, and its samples
    after it.

    Args:
        potential: the potential, such as ``PyroPosterior(program)``.

    Example:
        >>> from sgmc.targets import DoubleWell
        >>> CompiledPotential(DoubleWell()).energy(torch.tensor([[0.0], [1.0]]))
        tensor([ 0., -1.])
    """

    def __init__(self, potential: Potential):
        check_instance("potential", potential, Potential, "PyroPosterior(program)")
        self.potential, self.dim = potential, potential.dim
        self.energy, self.gradient = potential.energy, potential.gradient

    _compiled = cached_property(lambda self: {})

    def check(self, position: Tensor, generator: Generator) -> None:
        """Check the potential as it is."""
        check_start(self.potential, position, generator.initial_seed())

    def energy_and_gradient(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Compute U(θ) and ∇U(θ), compiled."""
        key = position.shape, position.stride(), position.dtype, position.device
        if key not in self._compiled:
            function = lambda x: self.potential.energy_and_gradient(x)
            self._compiled[key] = _compile(function, [position])
        return tuple(self._compiled[key](position))


def _compile(function: Callable, tensors: Any) -> Callable:
    """Compile a function of tensors, which it may overwrite, by PyTorch's Inductor, in
    one piece or not at all.
    """
    # torch.compile would check everything again at every call, which takes as long as a
    # hundred steps.
    from torch._inductor import compile as compile_graph
    from torch.fx.experimental.proxy_tensor import make_fx

    try:
        with torch.no_grad():
            kind: Any = dict(tracing_mode="fake", _allow_non_fake_inputs=True)
            trace = make_fx(function, decomposition_table=_PRODUCTS, **kind)
            return cast(Callable, compile_graph(trace(*tensors), tensors, _OPTIONS))
    except Exception as error:
        first = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise RuntimeError(
            "CompiledSGHMC and CompiledPotential need a gradient of tensor operations, "
            "without Python that depends on their values, and a C++ compiler that "
            "works here: take SGHMC, or the potential as it is "
            f"({type(error).__name__}: {first})"
        ) from error


def _things(potential: object) -> list:
    """List a potential and its attributes, and the attributes of those that are
    potentials themselves.
    """
    things = [potential]
    for value in vars(potential).values():
        things += _things(value) if hasattr(value, "gradient_given") else [value]
    return things
