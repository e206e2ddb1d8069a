"""What comes out of a run, and the way from there to ArviZ."""

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from sgmc.checks import check_instance


@dataclass(frozen=True, eq=False)
class Draws:
    """The draws of a run, with what is needed to know where they came from.

    Attributes:
        samples: what was kept of each draw, ``(num_samples, chains, ...)``: positions
            unless the run collected something else, a dictionary of such tensors if it
            collected several.
        statistics: what the kernel's steps learned, each ``(num_samples, chains)``, or
            with further axes.
        kernel: the kernel, printed.
        seed: the seed of the run's generator.
        warm_up: number of steps thrown away at the start.
        thinning: number of steps between two draws.
        seconds: wall-clock time of the run.
        complete: whether all the draws asked for are there; false after an
            interruption.

    Example:
        >>> import torch
        >>> from sgmc.kernels import HMC
        >>> from sgmc.targets import Gaussian
        >>> from sgmc.sampling import sample
        >>> draws = sample(
        ...     HMC(0.5, 3), Gaussian.standard(2), torch.zeros(8, 2), num_samples=100
        ... )
        >>> mean, standard_error = draws.mean_and_standard_error()
        >>> mean.shape, bool((mean.abs() < 5 * standard_error).all())
        (torch.Size([2]), True)
    """

    samples: Tensor | dict[str, Tensor]
    statistics: dict[str, Tensor] = field(default_factory=dict)
    kernel: str = ""
    seed: int = 0
    warm_up: int = 0
    thinning: int = 1
    seconds: float = 0.0
    complete: bool = True

    def __post_init__(self):
        tensors = (
            self.samples
            if isinstance(self.samples, dict)
            else {"samples": self.samples}
        )
        for name, value in tensors.items():
            if not isinstance(value, Tensor) or value.ndim < 2:
                given = (
                    f"{tuple(value.shape)}"
                    if isinstance(value, Tensor)
                    else f"a {type(value).__name__}"
                )
                raise ValueError(
                    f"{name} must be a tensor (num_samples, chains, ...), but it is "
                    f"{given}"
                )

    def mean_and_standard_error(self, function=None) -> tuple[Tensor, Tensor]:
        """Average over draws and chains, with the Monte Carlo standard error from the
        spread between chains.

        Chains are independent, so their averages are independent draws of the estimate:
        no estimate of autocorrelation is needed.

        Args:
            function: a function f of the samples that keeps their first two axes;
                averages f(θ), the identity by default. Where the run collected several
                tensors, ``lambda samples: samples["name"]`` chooses one.

        Returns:
            The mean and its standard error, each with the shape of one draw.

        Raises:
            ValueError: with no draws; with fewer than two chains, where ArviZ's
                ``mcse`` is the estimate to use; with several tensors and no choice; or
                if the function gives something else.
        """
        values = self._values(function)
        chains = values.shape[1]
        if chains < 2:
            raise ValueError(
                "one chain has no spread between chains: use "
                "arviz.mcse(draws.to_arviz()), or more chains"
            )
        averages = values.double().mean(0)
        return averages.mean(0), averages.std(0) / chains**0.5

    def weighted_mean(self, weights: str = "step_size", function=None) -> Tensor:
        """Average each chain's draws with a statistic as weights: Σηₜθₜ / Σηₜ (Welling
        and Teh, 2011, eq. 11).

        Args:
            weights: the name of the statistic.
            function: a function of the samples, as for :meth:`mean_and_standard_error`.

        Returns:
            The averages ``(chains, ...)``.

        Raises:
            ValueError: if the run has no such statistic, or several tensors and no
                choice; or if the function gives something else.
        """
        if not isinstance(weights, str) or weights not in self.statistics:
            raise ValueError(
                "weights must be one of the run's statistics "
                f"{sorted(self.statistics)}, but it is {weights!r}"
            )
        values = self._values(function)
        # such as what is true of a draw
        values = values if values.is_floating_point() else values.double()
        weight = self.statistics[weights].to(values)
        if weight.ndim != 2:
            raise ValueError(
                "weights must be one number for each draw of a chain, but "
                f"{weights!r} is {tuple(weight.shape)}"
            )
        weight = weight.reshape(weight.shape + (1,) * (values.ndim - 2))
        return (weight * values).sum(0) / weight.sum(0)

    def _values(self, function) -> Tensor:
        check_instance(
            "function", function, Callable | None, "lambda samples: samples**2"
        )
        values = self.samples if function is None else function(self.samples)
        if isinstance(values, dict):
            raise ValueError(
                f"samples hold {sorted(values)}: choose one by a function, such as "
                f"lambda samples: samples[{next(iter(values), 'name')!r}]"
            )
        kept = (
            next(iter(self.samples.values()))
            if isinstance(self.samples, dict)
            else self.samples
        )
        if not isinstance(values, Tensor) or values.shape[:2] != kept.shape[:2]:
            given = (
                tuple(values.shape)
                if isinstance(values, Tensor)
                else f"a {type(values).__name__}"
            )
            raise ValueError(
                "function must give a tensor (num_samples, chains, ...) = "
                f"({kept.shape[0]}, {kept.shape[1]}, ...), not {given}"
            )
        if len(values) == 0:
            raise ValueError("there are no draws to average")
        return values

    def to_arviz(self, name: str = "position"):
        """Convert to an ``arviz.InferenceData`` with groups ``posterior`` and
        ``sample_stats``; a single tensor gets the given name.
        """
        check_instance("name", name, str, '"position"')
        # here, because it takes a second to import and most users of draws do without
        import arviz

        samples = (
            self.samples if isinstance(self.samples, dict) else {name: self.samples}
        )
        chains_first = [
            {key: value.transpose(0, 1).cpu().numpy() for key, value in group.items()}
            for group in (samples, self.statistics)
        ]
        return arviz.from_dict(posterior=chains_first[0], sample_stats=chains_first[1])
