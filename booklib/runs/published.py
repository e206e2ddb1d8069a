"""The settings that papers and reports publish, compared with those that our
experiments run.

An entry of :data:`PUBLISHED` has what one source says of one run, with the place, in
the words of :meth:`~booklib.runs.plans.Plan.record`, and names what we changed on
purpose, to which value, and why; all else has to be the same (:func:`compare`). The
entries are data, a file of ``papers`` for each source: its tables ``said`` and
``changed`` have what several runs share; a ``run`` lists what is said of it, by the
name of a table or in full, and what is changed. A list holds values that were tried;
``"none"`` is None.
"""

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from torch import nn

from booklib.runs.plans import Plan
from booklib.runs.results import runs_of

Values = dict[str, tuple]  # the values of each setting that are tried


class Tried(tuple):
    """Several values that were tried for a setting."""


class Said(NamedTuple):
    """A setting as it is published."""

    value: object  #: what every run of the method has, or what was :class:`Tried`
    place: str  #: page, section or file


class Changed(NamedTuple):
    """A setting that we change on purpose."""

    value: object
    why: str


class Published(NamedTuple):
    """The settings that one source publishes for one run."""

    experiment: str  #: our experiment that runs it
    method: str  #: the method's name there
    source: str  #: key of the bibliography
    settings: Mapping[str, Said]
    changed: Mapping[str, Changed] = MappingProxyType({})


class Row(NamedTuple):
    """A published setting beside ours."""

    name: str
    published: object
    place: str
    ours: tuple
    expected: object  #: the published value, or the value that replaces it
    #: "the same"; "more tried", if values besides the published ones were tried;
    #: "changed", on purpose; "not recorded", in an old file; "different", without a
    #: reason; or "changed back", if the reason no longer applies
    verdict: str


def said(places: Mapping[str, Mapping[str, object]]) -> dict[str, Said]:
    """Record the place at which settings are published.

    Example:
        >>> said({"p. 10": {"rate": [0.1, 0.2], "noise_refresh": "none"}})
        {'rate': Said(value=(0.1, 0.2), place='p. 10'),
         'noise_refresh': Said(value=None, place='p. 10')}
    """
    return {
        name: Said(_value(value), place)
        for place, settings in places.items()
        for name, value in settings.items()
    }


def _value(value: object) -> object:
    if isinstance(value, list):
        return Tried(value)
    return None if value == "none" else value


def read_papers(folder: Path) -> Iterator[Published]:
    """Read the published settings."""
    for path in sorted(folder.glob("*.toml")):
        paper = tomllib.loads(path.read_text())
        for run in paper["run"]:
            settings, changed, methods = {}, {}, run["method"]
            for part in run["said"]:
                settings |= said(paper["said"][part] if isinstance(part, str) else part)
            for part in run.get("changed", []):
                for name, change in paper["changed"][part].items():
                    changed[name] = Changed(_value(change["value"]), change["why"])
            for method in [methods] if isinstance(methods, str) else methods:
                yield Published(run["experiment"], method, path.stem, settings, changed)


def of_plans(
    plans: Iterable[Plan | Mapping],
    examples: int | None,
    network: nn.Module | None = None,
) -> Values:
    """List the values that plans, or records of plans, have of each setting.

    Derived are ``examples``, N; ``rate``, ηN, for a mean over the data; and
    ``stretch``, the time εm of a sample. A tree draws a momentum of its own.

    Example:
        >>> from booklib.runs.plans import Langevin
        >>> plans = [Plan(Langevin(rate)) for rate in (1e-4, 1e-3)]
        >>> values = of_plans(plans, 1_000)
        >>> values["learning_rate"], values["rate"], values["batch_size"]
        ((0.0001, 0.001), (0.1, 1.0), (500,))
    """
    rows = [plan if isinstance(plan, Mapping) else plan.record() for plan in plans]
    names = [name for name in rows[0] if name not in ("seed", "method")]
    values = {name: _distinct(_frozen(row[name]) for row in rows) for name in names}
    if "resample_every" in values:
        values["resample_every"] = _distinct(
            1 if row.get("trees") else row["resample_every"] for row in rows
        )
    values["stretch"] = _distinct(
        math.sqrt(row["learning_rate"]) * row.get("num_steps", 1) for row in rows
    )
    if examples is not None:
        values |= {
            "rate": _distinct(row["learning_rate"] * examples for row in rows),
            "examples": (examples,),
        }
    return values if network is None else values | {"network": (in_words(network),)}


OLD_NAMES = {"epochs": "rounds", "warm_up": "burn_in"}  # the names in the oldest file


def of_result(result: Mapping) -> dict[str, Values]:
    """List what the runs of a stored result had, and what was tried, by method; except
    for trees, their examples are counted by the gradients.
    """
    found = {}
    for method, runs in runs_of(result).items():
        plans = [
            {OLD_NAMES.get(name, name): value for name, value in run["plan"].items()}
            for run in runs
        ]
        plan, examples = plans[0], None
        gradients = runs[0].get("gradient_evaluations", runs[0].get("gradients"))
        if gradients is not None and not runs[0].get("trees"):
            steps = plan["rounds"] * plan.get("num_steps", 1)
            examples = round(gradients / steps * plan["batch_size"])
        # Runs of the tuning are shorter.
        lengths = {name: plan[name] for name in ("rounds", "burn_in")}
        tried = [
            row["plan"] | lengths
            for row in result.get("methods", {}).get(method, {}).get("tuning", [])
        ]
        found[method] = of_plans(plans + tried, examples)
    return found


def in_words(network: nn.Module) -> str:
    """Name the fully connected layers of a network, and the activation.

    Example:
        >>> in_words(nn.Sequential(nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10)))
        '784–100–10, ReLU'
    """
    layers = [module for module in network.modules() if isinstance(module, nn.Linear)]
    others = {
        type(module).__name__
        for module in network.modules()
        if not isinstance(module, nn.Linear | nn.Sequential | nn.Flatten)
    }
    widths = [layers[0].in_features, *(layer.out_features for layer in layers)]
    return "–".join(map(str, widths)) + ", " + ", ".join(sorted(others))


def compare(entry: Published, ours: Values) -> list[Row]:
    """Compare the settings of an entry with ours."""
    rows = []
    for name, (published, place) in entry.settings.items():
        values = ours.get(name, ())
        expected, why = entry.changed.get(name, (published, ""))
        if not values:
            verdict = "not recorded"
        elif not _holds(expected, values):
            verdict = "different"
        elif why:
            verdict = "changed back" if _holds(published, values) else "changed"
        elif isinstance(expected, Tried) and len(values) > len(expected):
            verdict = "more tried"
        else:
            verdict = "the same"
        rows.append(Row(name, published, place, values, expected, verdict))
    return rows


def wrong(rows: Iterable[Row]) -> list[str]:
    """Describe each setting that is not as it should be.

    Example:
        >>> settings = said({"p. 12": {"learning_rate": 1e-6}})
        >>> entry = Published("fashion", "SGHMC", "adamday", settings)
        >>> wrong(compare(entry, {"learning_rate": (1e-5,)}))
        ['learning_rate is different: 1e-05, where 1e-06 is published (p. 12) and 1e-06
        expected']
    """
    return [
        f"{row.name} is {row.verdict}: {', '.join(map(str, row.ours))}, where "
        f"{row.published} is published ({row.place}) and "
        f"{row.expected} expected"
        for row in rows
        if row.verdict in ("different", "changed back")
    ]


def _holds(expected: object, values: tuple) -> bool:
    if not isinstance(expected, Tried):
        return len(values) == 1 and _equal(expected, values[0])
    return all(any(_equal(one, other) for other in values) for one in expected)


def _equal(one: object, other: object) -> bool:
    numbers = all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in (one, other)
    )
    return math.isclose(one, other, rel_tol=1e-9) if numbers else one == other


def _distinct(values: Iterable) -> tuple:
    found: list = []
    for value in values:
        if not any(_equal(value, other) for other in found):
            found.append(value)
    return tuple(found)


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


PUBLISHED = tuple(read_papers(Path(__file__).resolve().parent / "papers"))
