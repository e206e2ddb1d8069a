"""The draws of a run, and their way to files and to ArviZ."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from sgmc.checks import check_instance, shown
from sgmc.matrices import in_double


@dataclass(frozen=True, eq=False)
class Draws:
    """The draws of a run, with the settings that made them.

    Attributes:
        samples: the values kept of each draw, ``(num_samples, chains, ...)``: positions
            unless the run collected something else, a dictionary of such tensors if it
            collected several.
        statistics: what the kernel's steps learned, ``(num_samples, chains, ...)``.
        kernel: the kernel, printed.
        seed: the seed of the run's generator, or those of the runs that were pooled.
        warm_up: number of calls of the kernel thrown away at the start.
        thinning: number of calls of the kernel from one draw to the next.
        seconds: wall-clock time of the run.
        complete: whether all the draws asked for are there.
        potential: a fingerprint of the run's potential; empty where it has none.

    Example:
        >>> from sgmc.kernels import HMC
        >>> from sgmc.targets import Gaussian
        >>> from sgmc.door.sampling import sample
        >>> draws = sample(HMC(0.5, 3), Gaussian.standard(2), torch.zeros(8, 2), 100)
        >>> mean, standard_error = draws.mean_and_standard_error()
        >>> mean.shape, bool((mean.abs() < 5 * standard_error).all())
        (torch.Size([2]), True)
    """

    samples: Tensor | dict[str, Tensor]
    statistics: dict[str, Tensor] = field(default_factory=dict)
    kernel: str = ""
    seed: int | tuple = 0
    warm_up: int = 0
    thinning: int = 1
    seconds: float | int = 0.0
    complete: bool = True
    potential: str = ""

    def __post_init__(self):
        check_instance("statistics", self.statistics, dict, "{}")
        for each in fields(self)[2:]:
            value, kind = getattr(self, each.name), cast(type, each.type)
            check_instance(each.name, value, kind, repr(each.default))
        samples = self.by_name("samples")
        if not samples:
            raise ValueError("samples must be a tensor, or some by name, but are {}")
        first = next(iter(samples.values()))
        for name, value in (samples | self.statistics).items():
            right = isinstance(value, Tensor) and value.ndim > 1
            if not right or value.shape[:2] != first.shape[:2]:
                raise ValueError(
                    f"{name} must be a tensor (num_samples, chains, ...), as many "
                    f"as the others, but it is {shown(value)}"
                )

    def by_name(self, name: str = "") -> dict[str, Tensor]:
        """Return the samples by name; a single tensor gets the given name."""
        return self.samples if isinstance(self.samples, dict) else {name: self.samples}

    def __len__(self) -> int:
        return len(next(iter(self.by_name("samples").values())))

    def mean_and_standard_error(self, function=None) -> tuple[Tensor, Tensor]:
        """Average over draws and chains, with the Monte Carlo standard error from the
        spread of the chains' averages, which are independent.

        Args:
            function: a function f of the samples that keeps their first two axes;
                averages f(θ), the identity by default. Where the run collected several
                tensors, ``lambda samples: samples["name"]`` chooses one.

        Returns:
            The mean and its standard error, float64 on the CPU, each with the shape of
            one draw.

        Raises:
            ValueError: with no draws, one chain alone, several tensors and no choice,
                or a function that returns something else.
        """
        values = self._values(function)
        chains = values.shape[1]
        if chains < 2:
            raise ValueError(
                "one chain has no spread between chains: use "
                "arviz.mcse(draws.to_arviz()), or more chains"
            )
        averages = in_double(values).mean(0)
        return averages.mean(0), averages.std(0) / chains**0.5

    def _values(self, function) -> Tensor:
        example = "lambda samples: samples**2"
        check_instance("function", function, Callable | None, example)
        values = self.samples if function is None else function(self.samples)
        if isinstance(values, dict):
            raise ValueError(
                f"samples hold {sorted(values)}: choose one by a function, such as "
                f"lambda samples: samples[{next(iter(values), 'name')!r}]"
            )
        first = next(iter(self.by_name().values()))
        if not isinstance(values, Tensor) or values.shape[:2] != first.shape[:2]:
            raise ValueError(
                "function must give a tensor (num_samples, chains, ...) = "
                f"({len(first)}, {first.shape[1]}, ...), not {shown(values)}"
            )
        if len(values) == 0:
            raise ValueError("there are no draws to average")
        return values

    def save(self, path: str | Path) -> None:
        """Write everything to one file with a checksum, which :meth:`load` reads, in
        one stroke: an older file stays until this one is complete.

        Raises:
            ValueError: if the path cannot be a file's.
            OSError: if the file cannot be written; an older one is as it was.

        Example:
            >>> import tempfile
            >>> draws = Draws(torch.zeros(5, 2, 3), kernel="SGLD(0.1)", seed=7)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     draws.save(f"{folder}/draws.pt")
            ...     Draws.load(f"{folder}/draws.pt").samples.shape
            torch.Size([5, 2, 3])
        """
        from sgmc.checkpoints import Checkpoint

        content = {field.name: getattr(self, field.name) for field in fields(self)}
        Checkpoint(path).save({**content, "samples": self.by_name()})

    @classmethod
    def load(cls, path: str | Path) -> "Draws":
        """Read a file that :meth:`save` wrote, onto the CPU; no code in the file is
        run.

        Raises:
            ValueError: if the file holds no draws, or was damaged or changed.
        """
        from sgmc.checkpoints import read_whole

        check_instance("path", path, str | Path, '"draws.pt"')
        try:
            content = read_whole(path)["content"]
            content["samples"] = content["samples"].get("", content["samples"])
            return cls(**content)
        except OSError:
            raise
        except Exception as error:
            raise ValueError(
                f"path {path} holds no draws, or was damaged or changed since they "
                f"were saved ({type(error).__name__}: {error})"
            ) from error

    @classmethod
    def pool(cls, runs: Sequence["Draws"]) -> "Draws":
        """Put the chains of several runs side by side.

        Raises:
            ValueError: if they have another potential, kernel, length, warm-up or
                thinning, draws of other shapes, or two of them one seed, so that their
                chains are the same.

        Example:
            >>> runs = [Draws(torch.zeros(5, 2, 3), seed=seed) for seed in (0, 1)]
            >>> Draws.pool(runs).samples.shape
            torch.Size([5, 4, 3])
        """
        listed = runs if isinstance(runs, list | tuple) else ()
        if not listed or not all(isinstance(run, cls) for run in listed):
            raise ValueError(f"runs must be a list of Draws, but it is {shown(runs)}")
        first, seeds = runs[0], []
        shapes = lambda parts: {name: tuple(x.shape[2:]) for name, x in parts.items()}
        form = lambda run: (
            *(run.kernel, run.warm_up, run.thinning, len(run)),
            *(shapes(run.by_name("samples")), shapes(run.statistics)),
        )
        for run in runs:
            seeds += run.seed if isinstance(run.seed, tuple) else [run.seed]
            if form(run) != form(first):
                raise ValueError(
                    "runs differ in kernel, warm_up, thinning, number or shapes of "
                    f"samples or statistics: {form(first)} and {form(run)}"
                )
        if len({run.potential for run in runs if run.potential}) > 1:
            raise ValueError(
                "runs differ in their potentials: in data, settings, or a function. If "
                "their density is the same, pool "
                '[dataclasses.replace(run, potential="") for run in runs]'
            )
        if len(set(seeds)) < len(seeds):
            raise ValueError(
                f"runs have the seeds {seeds}: those of one seed have the same random "
                "numbers, so give each run another seed"
            )
        samples, statistics = (
            {key: torch.cat([part[key] for part in parts], 1) for key in parts[0]}
            for parts in ([r.by_name() for r in runs], [r.statistics for r in runs])
        )
        return replace(
            first,
            samples=samples.get("", samples),
            statistics=statistics,
            seed=tuple(seeds),
            seconds=sum(run.seconds for run in runs),
            complete=all(run.complete for run in runs),
        )

    def to_arviz(
        self,
        name: str = "position",
        *,
        posterior: Any = None,
        predictive: Mapping[str, Callable[[Tensor], Tensor]] | None = None,
        coords: Mapping[str, Any] | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
    ):
        """Convert to an ``arviz.InferenceData``, from ArviZ 1.0 on an
        ``xarray.DataTree``, with groups ``posterior`` and ``sample_stats``, whose
        statistics have ArviZ's names.

        Args:
            name: of the samples, where they are a single tensor.
            posterior: the target, if the samples are its positions: they are cut
                into its named parameters, if it has such, and a group
                ``log_likelihood`` has log p(xᵢ | θ) of every example, for ``arviz.loo``
                and ``arviz.compare``, if there is more than one and its likelihood
                knows all constants.
            predictive: for a group ``posterior_predictive``, by name: functions from
                positions ``(chains, dim)`` to predictions, ``(chains, ...)``,
                such as ``lambda x: network.predict(x, inputs)``.
            coords: the values of the dimensions, as for ``arviz.from_dict``.
            dims: the names of the dimensions of each variable, chain and draw apart.

        Raises:
            ValueError: if the samples are not positions of such a posterior, or a
                function returns something else.

        Example:
            >>> accepted = {"acceptance": torch.ones(50, 4)}
            >>> draws = Draws(torch.zeros(50, 4, 2), accepted)
            >>> list(draws.to_arviz("weights", dims={"weights": ["feature"]}).groups())
            ['posterior', 'sample_stats']
        """
        from sgmc.arviz import convert

        return convert(self, name, posterior, predictive, coords=coords, dims=dims)
