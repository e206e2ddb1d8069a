"""The conversion of draws to ArviZ's form."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from sgmc.checks import check_dims, check_instance, evaluate, shown, warn
from sgmc.door.draws import Draws
from sgmc.posteriors import DataPotential

# ArviZ has these names for statistics.
_NAMES = {
    "acceptance": "acceptance_rate",
    "diverged": "diverging",
    "depth": "tree_depth",
    "depth_limited": "reached_max_treedepth",
}


def convert(
    draws: Draws,
    name: str = "position",
    posterior: Any = None,
    predictive: Mapping[str, Callable[[Tensor], Tensor]] | None = None,
    **form: Any,
) -> Any:
    """Convert draws, as :meth:`sgmc.door.draws.Draws.to_arviz` does, which explains the
    arguments; those of the form, ``coords`` and ``dims``, go to ArviZ.

    Example:
        >>> draws = Draws(torch.zeros(50, 4, 2), {"acceptance": torch.ones(50, 4)})
        >>> data = convert(draws, "weights", dims={"weights": ["feature"]})
        >>> data.posterior["weights"].dims
        ('chain', 'draw', 'feature')
    """
    check_instance("name", name, str, '"position"')
    example = '{"y": lambda position: ...}'
    check_instance("predictive", predictive, Mapping | None, example)
    for key, function in (predictive or {}).items():
        check_instance(f"predictive[{key!r}]", function, cast(Any, Callable), "abs")
    import arviz  # ArviZ is an extra, and takes a second

    statistics = {_NAMES.get(key, key): x for key, x in draws.statistics.items()}
    groups = {"posterior": draws.by_name(name), "sample_stats": statistics}
    if posterior is not None:
        check_instance("posterior", posterior, DataPotential, "LinearRegression()")
        place = _positions(draws)[0]
        if posterior.dim is not None:
            check_dims(samples=place, posterior=place.new_empty(posterior.dim))
        if hasattr(posterior, "named"):
            named = lambda x: evaluate(partial(posterior.named, x), x)
            groups["posterior"] = _each(draws, named)
        cold = re.findall(r"\btemperature=(?!1(?:\.0)?[,)])([^,)]+)", draws.kernel)
        if cold:
            warn(
                f"the draws are of temperature {cold[0]}, and arviz.loo and compare "
                "take them for draws of the posterior, which has temperature 1 [loo]",
                stacklevel=3,
            )
        try:
            groups["log_likelihood"] = _log_likelihood(draws, posterior)
        except NotImplementedError as error:
            warn(f"the group log_likelihood is left out: {error} [loo]", stacklevel=3)
    if predictive:
        predicted = lambda x: {key: f(x) for key, f in predictive.items()}
        groups["posterior_predictive"] = _each(draws, predicted)
    groups = {key: group for key, group in groups.items() if group}
    groups = tree_map(lambda x: x.transpose(0, 1).cpu().numpy(), groups)
    old = arviz.__version__.startswith("0.")
    data: Any = arviz.from_dict(**groups if old else {"data": groups}, **form)
    made = {key: str(getattr(draws, key)) for key in ("kernel", "seed", "seconds")}
    data.posterior.attrs.update(inference_library="sgmc", **made)
    return data


def _positions(draws: Draws) -> Tensor:
    samples = draws.samples
    if not isinstance(samples, Tensor) or samples.ndim != 3 or len(samples) == 0:
        raise ValueError(
            "samples must be positions (num_samples, chains, dim), of one draw at "
            f"least, but they are {shown(samples)}: sample without collect"
        )
    return samples


def _log_likelihood(draws: Draws, posterior: Any) -> dict[str, Tensor]:
    """Compute log p(xᵢ | θ) at every draw, given its hyperparameters, if any; a
    NotImplementedError says why it cannot be computed.
    """
    if posterior.num_examples == 1:
        raise NotImplementedError(
            "the posterior counts its data as one example. For arviz.loo give one that "
            "knows its examples: in Pyro a subsample_size below N in the data's plate"
        )
    models: Iterable = [posterior] * len(draws)
    if "hyperparameters" in draws.statistics and hasattr(posterior, "given"):
        drawn, names = draws.statistics["hyperparameters"], posterior.hyperparameters
        each = (dict(zip(names, x.unbind(-1), strict=True)) for x in drawn)
        models = map(posterior.given, each)
    found = lambda x, model: evaluate(partial(model.pointwise_log_likelihoods, x), x)
    return _each(draws, lambda *given: {"log_likelihood": found(*given)}, models)


def _each(
    draws: Draws, function: Callable[..., Mapping[str, Tensor]], *more: Iterable
) -> dict[str, Tensor]:
    """Apply a function of positions ``(chains, dim)`` to every draw, with its own
    values of further arguments.
    """
    positions = _positions(draws)
    with torch.no_grad():
        found = [function(*each) for each in zip(positions, *more, strict=True)]
    for key, value in found[0].items():
        if not isinstance(value, Tensor) or value.shape[:1] != positions.shape[1:2]:
            raise ValueError(
                f"{key} must be of shape (chains, ...) = ({positions.shape[1]}, ...) "
                f"at every draw, but it is {shown(value)}"
            )
    return {key: torch.stack([one[key] for one in found]) for key in found[0]}
