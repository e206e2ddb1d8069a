"""What an experiment is given, and what stops it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from torch import nn

from booklib.datasets import Data

# where data and runs are, unless the command line says otherwise
CACHE = Path("~/.cache/sgmc")


class ExperimentError(RuntimeError):
    """What stops an experiment and the user can mend: the message is one line that says
    how.
    """


class DivergedError(ExperimentError):
    """A run that left the finite numbers."""


class Options(NamedTuple):
    """What the command line says."""

    data: Path  #: folder of the data sets
    runs: Path  #: folder for checkpoints, final states and reservoirs
    small: bool = False  #: the small version, on data that are always there
    device: str = "cpu"  #: a device of torch
    seeds: int = 5  #: number of seeds, 0, 1, ...
    progress: bool = True  #: whether to show progress bars
    #: of a worker: the seed that it runs, besides seed 0, which has been run before
    part: int | None = None

    def each_seed(self) -> list[int]:
        """List the seeds to run.

        Example:
            >>> options = Options(Path("data"), Path("runs"), seeds=3)
            >>> options.each_seed(), options._replace(part=2).each_seed()
            ([0, 1, 2], [0, 2])
        """
        return list(range(self.seeds)) if self.part is None else sorted({0, self.part})

    def folder(self, name: str) -> Path:
        """Name the folder for the runs of an experiment."""
        return self.runs / (f"{name}-small" if self.small else name)


class Prepared(NamedTuple):
    """What the runs of an experiment are on."""

    train: Data  #: what posteriors are of
    test: Data  #: what results are scored on
    network: Callable[[], nn.Module] | None = None  #: makes the network
    folder: Path | None = None  #: where runs are saved
    validation: Data | None = None  #: what settings are chosen by
    #: channels, height and width of an image, where the network needs them
    shape: tuple[int, int, int] | None = None
    others: Mapping[str, Data] = {}  #: what belongs to no class, by name
