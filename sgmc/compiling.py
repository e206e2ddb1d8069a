"""Compiling, where someone wants it: nothing in the package needs a compiler."""

from collections.abc import Callable

import torch


def compiled(function: Callable) -> Callable:
    """Compile a function of tensors with :func:`torch.compile`, whole or not at all.

    Args:
        function: the function; it is compiled when it is called first, and again for other shapes.

    Returns:
        The compiled function, which raises a RuntimeError with one clear sentence where it cannot be compiled.

    Example:
        >>> compiled(lambda x: 2 * x + 1).__name__
        'call'
    """
    fast = torch.compile(function, fullgraph=True, dynamic=False)

    def call(*arguments):
        try:
            return fast(*arguments)
        except torch._dynamo.exc.Unsupported as error:
            raise RuntimeError(
                "compiled=True needs a potential whose gradient is a formula of tensor operations, without automatic differentiation and "
                f"without Python that depends on values: leave it out ({str(error).splitlines()[0]})"
            ) from error
        except torch._dynamo.exc.BackendCompilerFailed as error:
            raise RuntimeError(
                "compiled=True needs a C++ compiler that works here, such as g++ with Python's headers: install one, or leave it out "
                f"({str(error).splitlines()[0]})"
            ) from error

    return call
