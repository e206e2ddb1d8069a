"""Networks whose linear layers change from example to example: their inputs are masked,
or their outputs are drawn.
"""

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional

from sgmc.posteriors import NetworkPosterior
from sgmc.posteriors.base import over_chains

_KNOWN: WeakKeyDictionary[NetworkPosterior, dict[str, nn.Linear]] = WeakKeyDictionary()


def linear_layers(posterior: NetworkPosterior) -> dict[str, nn.Linear]:
    """Name the linear layers of a network in the order of their use.

    Raises:
        ValueError: if it has parameters that belong to no layer, or layers that are
            used twice or with several inputs an example.
    """
    if posterior not in _KNOWN:
        used = []
        layers = {
            layer: name
            for name, layer in posterior.module.named_modules()
            if type(layer) in (nn.Linear, nn.Conv2d)
        }

        def note(layer: nn.Module, arguments: tuple[Tensor], output: Tensor) -> None:
            used.append((layer, output.ndim))

        handles = [layer.register_forward_hook(note) for layer in layers]
        zero = next(posterior.module.parameters()).new_zeros(1, posterior.dim)
        with torch.no_grad():
            _and_remove(
                handles, lambda: posterior.outputs(zero, posterior.data[0][None, :1])
            )
        owned = sum(x.numel() for layer in layers for x in layer.parameters())
        if (
            owned != posterior.dim
            or len(used) != len(layers)
            or any(type(layer) is nn.Linear and ndim != 2 for layer, ndim in used)
        ):
            raise ValueError(
                "module must be made of linear layers and convolutions, each used "
                "once, and the linear ones on one vector of each example, but it is "
                f"{type(posterior.module).__name__} with {', '.join(posterior.shapes)}"
            )
        _KNOWN[posterior] = {
            layers[layer]: layer for layer, _ in used if type(layer) is nn.Linear
        }
    return _KNOWN[posterior]


def outputs_of_masked(
    posterior: NetworkPosterior,
    position: Tensor,
    inputs: Tensor,
    masks: Sequence[Tensor],
) -> Tensor:
    """Evaluate the network at positions ``(chains, dim)`` and inputs ``(chains, n,
    ...)``, with the inputs of each linear layer multiplied by its mask ``(chains, n,
    features)``.
    """

    def outputs(position: Tensor, inputs: Tensor, *masks: Tensor) -> Tensor:
        handles = [
            layer.register_forward_pre_hook(lambda _, x, mask=mask: (x[0] * mask,))
            for layer, mask in zip(layers.values(), masks, strict=True)
        ]
        return _and_remove(handles, lambda: posterior.outputs_of_one(position, inputs))

    layers = linear_layers(posterior)
    return over_chains(outputs, position, inputs, *masks)


def outputs_of_law(
    posterior: NetworkPosterior,
    mean: Tensor,
    std: Tensor,
    inputs: Tensor,
    normals: Sequence[Tensor],
) -> Tensor:
    """Draw outputs of weights N(μ, diag σ²), other weights for each example, layer by
    layer (Kingma et al., 2015).

    What leaves a linear layer with the input x is N(x·μ, x²·σ²), of which one number an
    output is drawn, not one a weight. μ and σ are ``(chains, dim)``, inputs ``(chains,
    n, ...)``, and the standard normal numbers of each layer ``(chains, n, outputs)``.

    Example:
        >>> posterior = NetworkPosterior(
        ...     nn.Linear(4, 3), torch.ones(20, 4), torch.arange(20) % 3
        ... )
        >>> law, x = (torch.zeros(1, 15), torch.ones(1, 15)), torch.ones(1, 1, 4)
        >>> outputs_of_law(posterior, *law, x, [torch.ones(1, 1, 3)])  # √5
        tensor([[[2.2361, 2.2361, 2.2361]]])
    """

    def blur(weight: Tensor, bias: Tensor | None, normal: Tensor) -> Callable:
        def hook(layer: nn.Module, arguments: tuple[Tensor], output: Tensor) -> Tensor:
            spread = functional.linear(arguments[0].square(), weight, bias)
            # A root has no slope at zero.
            spread = spread + torch.finfo(output.dtype).tiny
            return torch.addcmul(output, spread.sqrt(), normal)

        return hook

    def outputs(own: tuple[Tensor, Tensor], inputs: Tensor, *normals: Tensor) -> Tensor:
        mean, std = own
        variance, handles = posterior.named(std.square()), []
        for (name, layer), normal in zip(layers.items(), normals, strict=True):
            weight = variance[f"{name}.weight".lstrip(".")]
            bias = variance.get(f"{name}.bias".lstrip("."))
            handles.append(layer.register_forward_hook(blur(weight, bias, normal)))
        return _and_remove(handles, lambda: posterior.outputs_of_one(mean, inputs))

    layers = linear_layers(posterior)
    return over_chains(outputs, (mean, std), inputs, *normals)


def _and_remove(handles: list, function: Callable[[], Tensor]) -> Tensor:
    try:
        return function()
    finally:
        for handle in handles:
            handle.remove()
