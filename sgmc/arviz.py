"""The conversion of draws to ArviZ's form."""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from sgmc.checks import check_instance, evaluate, shown
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
    """
    check_instance("name", name, str, '"position"')
    example = '{"y": lambda position: ...}'
    check_instance("predictive", predictive, Mapping | None, example)
    functions, kind = predictive or {}, cast(type, Callable)
    for key, function in functions.items():
        check_instance(f"predictive[{key!r}]", function, kind, "torch.abs")
    import arviz  # ArviZ is an extra, and takes a second

    statistics = {_NAMES.get(key, key): x for key, x in draws.statistics.items()}
    groups = {"posterior": draws.by_name(name), "sample_stats": statistics}
    if posterior is not None:
        check_instance("posterior", posterior, DataPotential, "LinearRegression()")
        dim = _positions(draws).shape[-1]
        if posterior.dim not in (None, dim):
            raise ValueError(
                f"posterior has {posterior.dim} coordinates, and the samples have "
                f"{dim}: give the one that they were drawn from"
            )
        if hasattr(posterior, "named"):
            named = lambda x: evaluate(partial(posterior.named, x), x)
            groups["posterior"] = _each(draws, named)
        cold = re.findall(r"\btemperature=(?!1(?:\.0)?[,)])([^,)]+)", draws.kernel)
        if cold:
            warnings.warn(
                f"the draws are of temperature {cold[0]}, and arviz.loo and compare "
                "take them for draws of the posterior, which are of temperature 1",
                stacklevel=3,
            )
        try:
            groups["log_likelihood"] = _log_likelihood(draws, posterior)
        except NotImplementedError as error:
            warnings.warn(
                f"the group log_likelihood is left out: {error}", stacklevel=3
            )
    if functions:
        groups["posterior_predictive"] = _each(
            draws, lambda x: {key: function(x) for key, function in functions.items()}
        )
    groups = {key: group for key, group in groups.items() if group}
    groups = tree_map(lambda x: x.transpose(0, 1).cpu().numpy(), groups)
    made = {key: str(getattr(draws, key)) for key in ("kernel", "seed", "seconds")}
    attributes = {"inference_library": "sgmc", **made}
    if arviz.__version__.startswith("0."):
        groups["posterior_attrs"] = attributes
        return arviz.from_dict(**groups, **form)
    return arviz.from_dict(groups, attrs={"posterior": attributes}, **form)


def _positions(draws: Draws) -> Tensor:
    if isinstance(draws.samples, dict) or draws.samples.ndim != 3:
        raise ValueError(
            "samples must be positions (num_samples, chains, dim), but they are "
            f"{ ({key: shown(x) for key, x in draws.by_name('position').items()}) }: "
            "sample without collect"
        )
    if len(draws) == 0:
        raise ValueError("there are no draws")
    return draws.samples


def _log_likelihood(draws: Draws, posterior: Any) -> dict[str, Tensor]:
    """Compute log p(xᵢ | θ) at every draw, given its hyperparameters, if any; a
    NotImplementedError says why it cannot be computed.
    """
    if posterior.num_examples == 1:
        raise NotImplementedError(
            "the posterior counts its data as one example. For arviz.loo give a "
            "posterior that knows its examples: in Pyro a subsample_size in the data's "
            "plate"
        )
    models: Iterable = [posterior] * len(draws)
    if "hyperparameters" in draws.statistics and hasattr(posterior, "given"):
        drawn, names = draws.statistics["hyperparameters"], posterior.hyperparameters
        each = (dict(zip(names, x.unbind(-1), strict=True)) for x in drawn)
        models = map(posterior.given, each)

    def of_one(position: Tensor, model: Any) -> dict[str, Tensor]:
        found = partial(model.pointwise_log_likelihoods, position)
        return {"log_likelihood": evaluate(found, position)}

    return _each(draws, of_one, models)


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
