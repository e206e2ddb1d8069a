"""The loop: chains, warm-up, thinning, progress, stops and checkpoints."""

import builtins
import math
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

import torch
from torch import Generator, Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten
from tqdm import tqdm

from sgmc.checkpoints import Checkpoint, CheckpointError
from sgmc.checks import check_count
from sgmc.draws import Draws
from sgmc.kernels.base import Kernel
from sgmc.potentials import Potential
from sgmc.randomness import derived_seed
from sgmc.remarks import (
    noise_cause,
    remark_disagreement,
    remark_stuck,
    remark_virial,
    virial_ratio,
)
from sgmc.starting import check_kernel, check_start

LOOK_AT_WIDTH = True  # at the end of a run
LEAST_SAMPLES = 20  # of a chain, whose width is looked at
_CHECK_EVERY = 32  # steps between two looks for positions that are not finite
CHECKPOINT_SECONDS = 30.0
ON_DIVERGENCE = "raise"  # what sample does where it is not told


class DivergenceError(RuntimeError):
    """A chain's position is no longer finite, or the potential cannot be evaluated
    there; ``draws`` holds what was drawn before.
    """

    def __init__(self, message: str, draws: Draws | None):
        super().__init__(message)
        self.draws = draws

    # by default an error is made anew from its message alone, which fails on the way
    # from another process
    def __reduce__(self):
        return type(self), (str(self), self.draws)


def sample(
    kernel: Kernel,
    potential: Potential,
    position: Tensor,
    num_samples: int,
    *,
    warm_up: int = 0,
    thinning: int = 1,
    seed: int = 0,
    collect: Callable[[Tensor], Tensor | Mapping[str, Tensor]] | None = None,
    checkpoint: str | Path | None = None,
    on_divergence: str | None = None,
    progress: bool = True,
) -> Draws:
    """Run a kernel in many chains at once and keep its draws.

    Ctrl-C stops the run after its present step and returns what was drawn, with a
    warning. With a checkpoint the run is saved every half minute and when it stops, by
    Ctrl-C or by SIGTERM; the same call later goes on from there, to exactly the draws
    of an uninterrupted run. With a larger ``num_samples`` it goes on beyond the end of
    a run that is finished.

    Before it starts it looks whether the potential contradicts itself
    (:mod:`sgmc.starting`); at the end it says in warnings what speaks against the
    draws: what the kernel knows, chains that never moved, samples that are too wide or
    too narrow for exp(−U/T), chains that do not agree (:mod:`sgmc.remarks`). The third
    needs at most a hundred further gradients. It does not hold for a density that is
    cut off where it is not zero, and is left out with ``collect``, and where a schedule
    of step sizes, a Gibbs step or T = 0 leaves no fixed target.

    Args:
        kernel: one of :mod:`sgmc.kernels`.
        potential: the target.
        position: where the chains start, ``(chains, dim)``; its dtype and device are
            those of the run.
        num_samples: number of draws to keep of each chain.
        warm_up: number of steps to throw away first.
        thinning: number of steps from one draw to the next.
        seed: seed of the run's generator, the only source of randomness.
        collect: what to keep of the positions ``(chains, dim)`` at each draw: a tensor
            ``(chains, ...)``, or several by name; the positions by default.
        checkpoint: file in which to save the run, or from which to go on.
        on_divergence: ``"raise"`` an error, or say so in a warning and fill up the
            draws with ``"nan"``; what ``sgmc.sampling.ON_DIVERGENCE`` says by default,
            which is ``"raise"``.
        progress: whether to show a progress bar, in runs of over two seconds, where
            someone watches: on standard error in a terminal, and in a notebook below
            the cell until the run is done.

    Returns:
        The draws; ``samples`` is ``(num_samples, chains, ...)``, or a dictionary of
        such tensors.

    Raises:
        ValueError: if the position, a count or the gradient at the start is unusable,
            or the potential contradicts itself.
        DivergenceError: if a position stops being finite, or a step fails; the error's
            ``draws`` hold what was drawn. With ``on_divergence="nan"`` it is a warning,
            and further draws are NaN.
        CheckpointError: if the checkpoint is corrupt or belongs to a run with other
            settings.

    Example:
        >>> from sgmc.kernels import SGHMC
        >>> from sgmc.targets import DoubleWell, NoisyGradient
        >>> kernel = SGHMC(step_size=0.1, friction=3.0, noise_estimate=0.2)
        >>> draws = sample(
        ...     kernel,
        ...     NoisyGradient(DoubleWell(), 4.0),
        ...     torch.zeros(10, 1),
        ...     num_samples=50,
        ...     warm_up=50,
        ... )
        >>> draws.samples.shape
        torch.Size([50, 10, 1])
    """
    check_count("num_samples", num_samples)
    check_count("warm_up", warm_up, at_least=0)
    check_count("thinning", thinning)
    if on_divergence not in (None, "raise", "nan"):
        raise ValueError(
            f'on_divergence must be "raise" or "nan", but it is {on_divergence!r}'
        )
    if collect is not None and not callable(collect):
        raise ValueError(
            f"collect must be a function of the positions, but it is {collect!r}"
        )
    check_kernel(kernel)
    check_start(potential, position, seed)
    run = _Sampling(
        kernel, potential, position, num_samples, warm_up, thinning, seed, collect
    )
    saved = None if checkpoint is None else Checkpoint(checkpoint, run.settings())
    try:
        drive(
            run, warm_up + num_samples * thinning, checkpoint=saved, progress=progress
        )
    except DivergenceError as error:
        if (on_divergence or ON_DIVERGENCE) == "raise":
            raise
        warnings.warn(
            f"{error}\nHere the rest of them is NaN, as on_divergence asks",
            stacklevel=2,
        )
        return run.filled_up(error.draws)
    for remark in run.remarks():
        warnings.warn(remark, stacklevel=2)
    return run.draws()


class Job(Protocol):
    """Work that is done step by step, and may be stopped and taken up again."""

    done: int  #: steps done so far

    def advance(self) -> None:
        """Do one step more."""

    def check(self) -> None:
        """Raise an error if what was done is not worth going on with."""

    def state_dict(self) -> dict:
        """Give all that is needed to go on: tensors, numbers, words and collections of
        these.
        """

    def load_state_dict(self, saved: dict) -> None:
        """Go back to what :meth:`state_dict` gave."""


def drive(
    job: Job,
    total: int,
    *,
    checkpoint: Checkpoint | None = None,
    unit: str = "step",
    title: str | None = None,
    kept: str = "the draws so far are kept",
    progress: bool = True,
) -> None:
    """Do a job to its end, or until someone stops it: the only loop.

    Args:
        job: the work.
        total: number of steps.
        checkpoint: where to save it, every half minute and when it stops; if there is
            something, the job goes on from there.
        unit: what a step is called beside the progress bar.
        title: what stands before the progress bar.
        kept: what someone who stops it is told to have.
        progress: whether to show a progress bar, if it takes over two seconds and
            someone watches: on standard error in a terminal, below the cell in a
            notebook, where it goes when the job is done. In a log file there is none.
    """
    if checkpoint is not None:
        job.state_dict()  # what could not be saved is refused now
        if (saved := checkpoint.load("cpu")) is not None:
            job.load_state_dict(saved)
    shown = (
        {"file": _Cell(), "leave": False}
        if _in_a_notebook()
        else {}
        if sys.stderr.isatty()
        else {"disable": True}
    )
    quiet = shown if progress else {"disable": True}
    stop, saved, whole, begun = _Stop(), time.monotonic(), True, job.done
    with (
        torch.no_grad(),
        stop,
        tqdm(
            total=total, initial=job.done, delay=2, unit=unit, desc=title, **quiet
        ) as bar,
    ):
        try:
            while job.done < total and stop.signal is None:
                whole = False
                job.advance()
                whole = True
                bar.update()
                if (
                    checkpoint is not None
                    and time.monotonic() - saved > CHECKPOINT_SECONDS
                ):
                    job.check()
                    _save(job, checkpoint)
                    saved = time.monotonic()
        except KeyboardInterrupt:
            stop.signal = stop.signal or signal.SIGINT
        if job.done < total:
            lost = "" if whole else ", but it stopped within a step and is not saved"
            warnings.warn(
                f"interrupted after {job.done} of {total} {unit}s: {kept}{lost}",
                stacklevel=3,
            )
        if whole:
            job.check()
        if whole and checkpoint is not None and job.done > begun:
            _save(job, checkpoint)


def _in_a_notebook() -> bool:
    shell = getattr(builtins, "get_ipython", None)  # which IPython defines
    return shell is not None and hasattr(shell(), "kernel")


class _Cell:
    """The place below a notebook's cell where a bar is shown, as a file that a bar is
    written to.

    Standard error would keep a red band there after the bar has gone.
    """

    encoding = "utf-8"  # by which tqdm knows that it may draw with blocks

    def __init__(self):
        self.place = None

    def write(self, text: str) -> None:
        from IPython.display import display

        line = {"text/plain": text.strip()}
        if self.place is not None:
            self.place.update(line, raw=True)
        elif text.strip():
            self.place = display(line, raw=True, display_id=True)

    def flush(self) -> None:
        pass


class _Stop:
    """A context in which Ctrl-C and SIGTERM are noted, for the loop to stop after its
    present step; a second one stops at once.

    At its end SIGTERM goes to whom it was meant for.
    """

    def __init__(self):
        self.signal: int | None = None

    def __enter__(self) -> "_Stop":
        # others do not get signals
        here = threading.current_thread() is threading.main_thread()
        self.old = {
            number: signal.signal(number, self.note)
            for number in (signal.SIGINT, signal.SIGTERM)
            if here
        }
        return self

    def note(self, number: int, frame: object) -> None:
        again = self.signal is not None
        self.signal = (
            signal.SIGTERM if signal.SIGTERM in (number, self.signal) else number
        )
        if again:
            raise KeyboardInterrupt

    def __exit__(self, *_) -> None:
        for number, handler in self.old.items():
            # None: not one of Python's
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if self.signal == signal.SIGTERM:
            signal.raise_signal(signal.SIGTERM)


def _save(job: Job, checkpoint: Checkpoint) -> None:
    try:
        checkpoint.save(job.state_dict())
    # PyTorch says RuntimeError when a disk is full
    except (OSError, RuntimeError) as error:
        warnings.warn(
            f"the checkpoint {checkpoint.path} could not be written ({error}): the "
            "run goes on without it",
            stacklevel=4,
        )


class _Sampling:
    """The state of one call of :func:`sample`."""

    def __init__(
        self, kernel, potential, position, num_samples, warm_up, thinning, seed, collect
    ):
        self.kernel, self.potential, self.start = kernel, potential, position
        self.num_samples, self.warm_up, self.thinning, self.seed, self.collect = (
            num_samples,
            warm_up,
            thinning,
            seed,
            collect,
        )
        self.generator = Generator(position.device).manual_seed(seed)
        self.done, self.seconds, self.started = 0, 0.0, time.monotonic()
        self.state = kernel.init(potential, position, self.generator)
        self.samples = {
            name: value.new_empty((num_samples, *value.shape))
            for name, value in self.collected().items()
        }
        self.statistics: dict[str, Tensor | list[float]] = {}

    def settings(self) -> dict[str, object]:
        # without num_samples: a run may be extended
        names = (
            "kernel",
            "potential",
            "start",
            "warm_up",
            "thinning",
            "seed",
            "collect",
        )
        return {name: getattr(self, name) for name in names}

    def advance(self) -> None:
        try:
            self.state, info = self.kernel.step(
                self.potential, self.state, self.generator
            )
        except (ArithmeticError, ValueError, RuntimeError) as error:
            if self.done == 0:  # not where a chain went, but the call itself
                raise
            raise DivergenceError(
                f"step {self.done + 1} failed with {type(error).__name__}: "
                f"{error}\nIf it cannot be evaluated where a chain went, "
                f"the step_size may be too large. The {self.num_drawn} draws before "
                "are in this error's attribute draws",
                self.draws(),
            ) from error
        drawn, remainder = divmod(self.done + 1 - self.warm_up, self.thinning)
        if remainder == 0 and drawn > 0:
            self.keep(drawn - 1, info)
        self.done += 1
        if self.done % _CHECK_EVERY == 0:
            self.check()

    def collected(self) -> dict[str, Tensor]:
        """Take what a draw keeps of the positions; what has no name has the empty
        one.
        """
        position = self.state.position
        kept = position if self.collect is None else self.collect(position.clone())
        kept = dict(kept) if isinstance(kept, Mapping) else {"": kept}
        for name, value in kept.items():
            if not isinstance(value, Tensor) or value.shape[:1] != position.shape[:1]:
                given = (
                    tuple(value.shape)
                    if isinstance(value, Tensor)
                    else type(value).__name__
                )
                what = (
                    f"collect must return (chains, ...) with chains = {len(position)}"
                )
                raise ValueError(f"{what}, not {given}{name and f' as {name!r}'}")
        return kept

    def keep(self, index: int, info: NamedTuple) -> None:
        collected, statistics = self.collected(), learned(info)
        if index == 0:
            self.statistics = {
                name: value.new_empty((self.num_samples, *value.shape))
                if isinstance(value, Tensor)
                else []
                for name, value in statistics.items()
            }
        for what, kept, new in (
            ("collect", self.samples, collected),
            ("a kernel's info", self.statistics, statistics),
        ):
            if new.keys() != kept.keys():
                raise ValueError(
                    f"{what} must give the same names at every draw, but gave "
                    f"{sorted(kept)} and then {sorted(new)}"
                )
            for name, value in new.items():
                if isinstance(kept[name], list):  # far faster for a single number
                    kept[name].append(value)
                else:
                    kept[name][index] = value

    @property
    def num_drawn(self) -> int:
        return max(0, self.done - self.warm_up) // self.thinning

    def draws(self, num_drawn: int | None = None) -> Draws:
        num_drawn = self.num_drawn if num_drawn is None else num_drawn
        samples = {name: value[:num_drawn] for name, value in self.samples.items()}
        chains = len(self.start)
        return Draws(
            samples=samples.get("", samples),
            statistics={
                name: _for_all(chains, value[:num_drawn], self.start.device)
                for name, value in self.statistics.items()
            },
            kernel=str(self.kernel),
            seed=self.seed,
            warm_up=self.warm_up,
            thinning=self.thinning,
            seconds=self.seconds + time.monotonic() - self.started,
            complete=num_drawn == self.num_samples,
        )

    def filled_up(self, drawn: Draws) -> Draws:
        """Give as many draws as were asked for, those after a divergence NaN."""

        def fill(value: Tensor) -> Tensor:
            rest = value.new_empty(self.num_samples - len(value), *value.shape[1:])
            return torch.cat(
                [value, rest.fill_(math.nan if value.is_floating_point() else 0)]
            )

        named = isinstance(drawn.samples, dict)
        samples = (
            {name: fill(value) for name, value in drawn.samples.items()}
            if named
            else fill(drawn.samples)
        )
        statistics = {name: fill(value) for name, value in drawn.statistics.items()}
        return replace(drawn, samples=samples, statistics=statistics)

    def remarks(self) -> list[str]:
        """Say what speaks against the draws."""
        draws = self.draws()
        if self.num_drawn == 0:
            return []
        samples = (
            draws.samples if isinstance(draws.samples, dict) else {"": draws.samples}
        )
        found = self.kernel.diagnose(draws.statistics) + remark_stuck(
            self.start, self.state.position, self.done
        )
        # what was said already explains the rest
        return found or self.remark_width() or remark_disagreement(samples)

    def remark_width(self) -> list[str]:
        """Say if the second half of the samples is too wide or too narrow for its
        target, by at most a hundred further gradients.
        """
        temperature, drawn = self.kernel.target_temperature(), self.num_drawn
        half = self.samples.get("", self.start[:0])[drawn // 2 : drawn]
        meant = LOOK_AT_WIDTH and temperature is not None and not self.collect
        if not meant or len(half) < LEAST_SAMPLES:
            return []
        chosen = half[torch.linspace(0, len(half) - 1, min(len(half), 100)).long()]
        generator = Generator(self.start.device).manual_seed(
            derived_seed(self.seed, "fresh minibatches")
        )
        with torch.no_grad():
            try:
                ratios = virial_ratio(self.potential, chosen, generator, temperature)
            except (ArithmeticError, ValueError, RuntimeError):
                return []  # a potential without a gradient
            cause = noise_cause(self.kernel, self.potential, chosen[-1], generator)
        return remark_virial(ratios, cause)

    def check(self) -> None:
        # A position that is not finite stays so, hence one look now and then finds it,
        # and the draws tell when it began.
        finite = torch.isfinite(self.state.position).all(-1)
        if finite.all():
            return
        chain = int((~finite).nonzero()[0])
        good = self.num_drawn
        for value in self.samples.values():
            bad = ~torch.isfinite(value[:good].flatten(1)).all(-1)
            good = int(bad.nonzero()[0]) if bad.any() else good
        raise DivergenceError(
            f"the position of chain {chain} stopped being finite, at or shortly "
            f"before step {self.done}: the step_size of "
            f"{self.kernel} is too large for this potential, or the potential's "
            "gradient is not finite where the chain went. "
            f"The {good} draws before are in this error's attribute draws",
            self.draws(good),
        )

    def state_dict(self) -> dict:
        return {
            "done": self.done,
            "seconds": self.seconds + time.monotonic() - self.started,
            "state": flatten(self.state),
            "generator": self.generator.get_state(),
            "samples": {
                name: value[: self.num_drawn].clone()
                for name, value in self.samples.items()
            },
            "statistics": {
                name: value.copy()
                if isinstance(value, list)
                else value[: self.num_drawn].clone()
                for name, value in self.statistics.items()
            },
        }

    def load_state_dict(self, saved: dict) -> None:
        device = self.start.device
        self.done, self.seconds = saved["done"], saved["seconds"]
        self.state = unflatten(saved["state"], self.state)
        self.generator.set_state(saved["generator"].cpu())
        drawn, number = self.num_drawn, self.num_samples
        if drawn > number:
            raise CheckpointError(
                f"num_samples is {number}, but the checkpoint holds {drawn} draws: "
                f"ask for at least {drawn}"
            )

        def room(value: Tensor) -> Tensor:
            return torch.cat(
                [value, value.new_empty(number - drawn, *value.shape[1:])]
            ).to(device)

        self.samples = {name: room(value) for name, value in saved["samples"].items()}
        self.statistics = {
            name: value if isinstance(value, list) else room(value)
            for name, value in saved["statistics"].items()
        }


def _for_all(
    chains: int, statistic: Tensor | list[float], device: torch.device
) -> Tensor:
    """Give what all chains share to each of them."""
    statistic = torch.as_tensor(statistic, device=device)
    return statistic if statistic.ndim > 1 else statistic[:, None].expand(-1, chains)


def learned(info: NamedTuple) -> dict[str, Tensor | float]:
    """List what an info holds, by name, what it has from another kernel included; what
    is None is left out.
    """
    pairs = list(_pairs(info))
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(
            f"{type(info).__name__} has {twice} of its own and from another kernel: "
            "give one another name"
        )
    return found


def _pairs(info: NamedTuple) -> Iterator[tuple[str, Tensor | float]]:
    for name, value in zip(info._fields, info, strict=True):
        if isinstance(value, tuple):
            yield from _pairs(value)
        elif value is not None:
            yield name, value


def flatten(state: NamedTuple) -> list:
    """List the tensors and numbers of a state, however nested, for a checkpoint."""
    leaves = tree_flatten(state)[0]
    for leaf in leaves:
        if not isinstance(leaf, Tensor) and type(leaf) not in (
            type(None),
            bool,
            int,
            float,
            str,
        ):
            raise ValueError(
                f"{type(state).__name__} holds a {type(leaf).__name__}, which a "
                "checkpoint cannot: use tensors and numbers"
            )
    return leaves


def unflatten(leaves: list, like: NamedTuple) -> NamedTuple:
    """Put a state together from what :func:`flatten` listed, in the form of another
    state and on its device.
    """
    device = like.position.device
    leaves = [leaf.to(device) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    return tree_unflatten(leaves, tree_flatten(like)[1])
