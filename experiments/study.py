"""The parts that all experiments share: their options, the loop over methods and seeds,
and a store of results that are computed only once.

A study has methods with settings to choose from. Those of a method are tried by short
runs with one seed, which validation examples score; the best is then run with every
seed.
"""

import itertools
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from booklib.data import Data, fashion_mnist, letters, notmnist, part, split_digits
from booklib.runs.results import ExperimentError
from booklib.runs.run import DivergedError
from sgmc.checkpoints import replace_file

# Data and runs are here unless the command line names another folder.
CACHE = Path("~/.cache/sgmc")


class Options(NamedTuple):
    """The options of the command line."""

    data: Path  #: folder of the data sets
    runs: Path  #: folder for checkpoints, final states and reservoirs
    small: bool = False  #: the small version, on data that are always there
    device: str = "cpu"  #: a device of torch
    seeds: int = 5  #: number of seeds, 0, 1, ...
    progress: bool = True  #: whether to show progress bars
    only: str | None = None  #: the one method that is run, of those side by side

    def folder(self, name: str) -> Path:
        """Name the folder for the runs of an experiment."""
        return self.runs / (f"{name}-small" if self.small else name)


class Prepared(NamedTuple):
    """The data and the network of an experiment's runs."""

    train: Data  #: the data of the posteriors
    test: Data  #: the data on which results are scored
    network: Callable[[], nn.Module] | None = None  #: a function that makes the network
    folder: Path | None = None  #: the folder of saved runs
    validation: Data | None = None  #: the data by which settings are chosen
    #: channels, height and width of an image, where the network needs them
    shape: tuple[int, int, int] | None = None
    others: Mapping[str, Data] = {}  #: the images that belong to no class, by name


class Experiment(NamedTuple):
    """An experiment."""

    prepare: Callable[[Options], Any]  #: loads the data
    run: Callable[[Options, Any], Iterator[dict]]  #: yields the result after each run
    plans: bool = False  #: whether its runs have a :class:`~booklib.runs.plans.Plan`


def split(
    options: Options,
    load: Callable[[Path], tuple[Data, Data]],
    network: Callable[[], nn.Module],
    name: str,
) -> Prepared:
    """Load 60,000 images, of which 50,000 are for training; digits if small."""
    if options.small:
        train, validation, test = split_digits()
    else:
        data, test = load(options.data)
        train, validation = part(data, slice(50_000)), part(data, slice(50_000, None))
    return Prepared(train, test, network, options.folder(name), validation)


def no_digits(options: Options) -> dict[str, Data]:
    """Load images that are no digits: letters and clothes, or letters from fonts."""
    if options.small:
        return {"letters": letters()}
    clothes = fashion_mnist(options.data)[1]
    return {"letters": notmnist(options.data), "clothes": clothes}


def grid(**values: object) -> list[dict]:
    """List all combinations of settings; a tuple holds the values to choose from.

    Example:
        >>> grid(rate=(0.1, 0.2), decay=0.01)
        [{'rate': 0.1, 'decay': 0.01}, {'rate': 0.2, 'decay': 0.01}]
    """
    several = [each if isinstance(each, tuple) else (each,) for each in values.values()]
    found = itertools.product(*several)
    return [dict(zip(values, each, strict=True)) for each in found]


def in_a_name(words: str) -> str:
    """Write words as they appear in the name of a file."""
    return words.replace(",", "").replace(" ", "-")


def once(path: Path, depends: dict, make: Callable[[], dict]) -> dict:
    """Return the result of a function, or read it from a file if it was computed
    before.

    Raises:
        ExperimentError: if the file is corrupt, or depends on something else.
    """
    if path.exists():
        try:
            saved = json.loads(path.read_text())
            before, found = saved["depends"], saved["found"]
        except (ValueError, KeyError, TypeError) as error:
            raise ExperimentError(
                f"{path} is corrupt ({error}): delete it to have it made anew"
            ) from error
        if before != json.loads(json.dumps(depends)):
            raise ExperimentError(
                f"{path} is of other settings, {before} and not {depends}: undo the "
                "change, or delete the file"
            )
        return found
    found = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"depends": depends, "found": found})
    replace_file(path, lambda unfinished: unfinished.write_text(text))
    return found


def study(
    methods: Mapping[str, Sequence],
    seeds: Iterable[Hashable],
    tried: Callable[[str, int, Any], dict],
    ran: Callable[[str, Any, Any], dict],
    prefer: Callable[[dict], Any] = lambda row: (row["error"], row["log_loss"]),
    folder: Path | None = None,
    **depends: object,
) -> Iterator[dict[str, dict]]:
    """Tune each method before its first run, and run it with every seed.

    Args:
        methods: the settings to choose from, by the name of the method.
        seeds: the seeds, in whose order the methods are run.
        tried: makes a short run of a method, the number of a setting and the setting;
            ``"diverged"`` is in its result if it left the finite numbers.
        ran: makes the run of a method, its setting and a seed.
        prefer: is least for what the best setting was tried to give; ties go first.
        folder: where to keep results, see :func:`once`; None if runs save themselves.
        depends: what results depend on besides the setting.

    Yields:
        After each run, by method, ``settings``, ``tuning`` and ``runs``.

    Raises:
        DivergedError: if all settings of a method left the finite numbers.
    """
    found, chosen = {}, {}

    def kept(file: str, setting: Any, make: Callable, *given: object) -> dict:
        if folder is None:
            return make(*given)
        path = folder / f"{in_a_name(file)}.json"
        return once(path, {"settings": setting, **depends}, partial(make, *given))

    for seed in seeds:
        for name, choices in methods.items():
            if name not in found:
                chosen[name], rows = choices[0], []
                if len(choices) > 1:
                    rows = [
                        kept(f"tuning-{i}-{name}-0", each, tried, name, i, each)
                        for i, each in enumerate(choices)
                    ]
                    whole = [i for i, row in enumerate(rows) if "diverged" not in row]
                    if not whole:
                        raise DivergedError(
                            f"every setting of {name} left the finite numbers: lower "
                            "its learning rates"
                        )
                    best = min(whole, key=lambda i, rows=rows: prefer(rows[i]))
                    chosen[name] = choices[best]
                found[name] = {"tuning": rows, "runs": []}
                if isinstance(chosen[name], dict):
                    found[name]["settings"] = chosen[name]
            run = kept(f"{name}-{seed}", chosen[name], ran, name, chosen[name], seed)
            found[name]["runs"].append(run)
            yield found
