"""A function of a potential and of tensors that it overwrites, compiled."""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

_AT_MOST = 16  # forms of its arguments for which a function is compiled


class CompiledInPlace:
    """A function of a potential and of tensors that it overwrites, compiled by
    PyTorch's Inductor, whole or not at all.

    It is traced when it is called first, and anew for another potential, told by its
    identity and that of its attributes, and for tensors of another form.

    Args:
        function: what to compile, of a potential, and of tensors or lists of tensors
            and None; what it returns is dropped.

    Example:
        >>> descent = lambda potential, place: place.sub_(potential.gradient(place))
        >>> CompiledInPlace(descent).num_compiled
        0
    """

    def __init__(self, function: Callable):
        if not callable(function):
            raise ValueError(
                "function must be one of a potential and of tensors, such as lambda "
                f"potential, position: position.zero_(), but it is {function!r}"
            )
        self.function, self.num_compiled = function, 0
        self._made: dict[tuple, tuple[Callable, list]] = {}

    def __call__(
        self, potential: object, *arguments: Tensor | Sequence[Tensor | None]
    ) -> None:
        """Call the compiled function.

        Raises:
            RuntimeError: if it cannot be compiled, with one sentence that says why.
        """
        things, tensors = _things(potential), []
        key = list(map(id, things))
        for argument in arguments:
            _describe(argument, key, tensors)
        made = self._made.get(tuple(key))
        if made is None:
            if self.num_compiled == _AT_MOST:
                raise RuntimeError(
                    "CompiledSGHMC is for one potential and few shapes of its "
                    f"positions, but {_AT_MOST + 1} were met, as in a Gibbs "
                    "kernel, where every step has a potential of its own: take SGHMC"
                )
            # kept, so that nothing else gets their identities
            made = self._compile(potential, arguments, tensors), things
            self._made[tuple(key)], self.num_compiled = made, self.num_compiled + 1
        made[0](*tensors)

    def _compile(
        self, potential: object, arguments: tuple, tensors: list[Tensor]
    ) -> Callable:
        # Not by torch.compile, whose every call checks again all that it saw on its
        # way, and takes as long as a hundred steps.
        from torch._inductor import compile as compile_graph
        from torch.fx.experimental.proxy_tensor import make_fx

        def of_tensors(*given: Tensor) -> None:
            places = iter(given)
            replaced = tree_map_only(Tensor, lambda _: next(places), arguments)
            self.function(potential, *replaced)

        needed = (
            "a potential whose gradient is a formula of tensor operations, without "
            "Python that depends on their values: take SGHMC"
        )
        try:
            with torch.no_grad():
                tracer = make_fx(
                    of_tensors, tracing_mode="fake", _allow_non_fake_inputs=True
                )
                graph = tracer(*tensors)
                needed = (
                    "a C++ compiler that works here, such as g++ with Python's "
                    "headers, and a gradient of operations that it can be given: "
                    "install one, or take SGHMC"
                )
                return cast(Callable, compile_graph(graph, cast(list, tensors)))
        except Exception as error:
            first = (str(error).strip().splitlines() or ["no reason given"])[0]
            raise RuntimeError(
                f"CompiledSGHMC needs {needed} ({type(error).__name__}: {first})"
            ) from error


def _things(potential: object) -> list:
    """List a potential and its attributes, and the attributes of those that are
    potentials themselves.
    """
    things = [potential]
    for value in vars(potential).values():
        if hasattr(value, "gradient_given"):
            things += _things(value)
        else:
            things.append(value)
    return things


def _describe(
    argument: Tensor | Sequence[Tensor | None] | None, key: list, tensors: list[Tensor]
) -> None:
    """Put into the key what a compiled function depends on, and list the tensors."""
    if isinstance(argument, Tensor):
        tensors.append(argument)
        key += (argument.shape, argument.stride(), argument.dtype, argument.device)
    elif argument is None:
        key.append(None)
    else:
        key.append(len(argument))
        for part in argument:
            _describe(part, key, tensors)
