"""The loop: chains, warm-up, thinning, and the samples that are kept."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Generator, Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from sgmc.checks import check_count, check_instance, shown, warn
from sgmc.door.draws import Draws
from sgmc.door.remarks import (
    name_chains,
    remark_disagreement,
    remark_order,
    remark_stuck,
    remark_target,
)
from sgmc.door.running import Store, drive
from sgmc.door.starting import check_kernel, check_start
from sgmc.kernels.base import Kernel
from sgmc.potentials import ERRORS, Potential

Collect = Callable[[Tensor], Tensor | Mapping[str, Tensor]]
_CHECK_EVERY = 32  # the number of steps between two checks that positions are finite
# At most so many positions, and numbers in them, are kept beside collected values.
_POSITIONS, _NUMBERS = 200, 2**25


class DivergenceError(RuntimeError):
    """A chain's position is no longer finite, or the potential cannot be evaluated
    there; ``draws`` holds the draws of all chains, with NaN in a chain that broke from
    there on.

    Example:
        >>> from sgmc.kernels import SGLD
        >>> from sgmc.targets import Gaussian
        >>> steep = Gaussian(torch.eye(1) / 1e6)
        >>> try:
        ...     sample(SGLD(1.0), steep, torch.ones(2, 1), 50, progress=False)
        ... except DivergenceError as error:
        ...     print(
        ...         error.draws.samples.shape[1:],
        ...         bool(error.draws.samples[-1].isnan().all()),
        ...     )
        torch.Size([2, 1]) True
    """

    # Without a default the error could not be made anew in another process, from its
    # message.
    def __init__(self, message: str, draws: Draws | None = None):
        super().__init__(message)
        self.draws = draws


def sample(
    kernel: Kernel,
    potential: Potential,
    position: Tensor,
    num_samples: int,
    *,
    warm_up: int = 0,
    thinning: int = 1,
    seed: int = 0,
    collect: Collect | None = None,
    checkpoint: Store | None = None,
    progress: bool = True,
) -> Draws:
    """Run a kernel in many chains at once and keep its draws.

    Ctrl-C stops the run and returns what was drawn, with a warning. With a checkpoint
    the run is saved now and then and when it stops (:func:`sgmc.door.running.drive`);
    the same call later goes on from there, to exactly the draws of an uninterrupted
    run, and with a larger ``num_samples`` beyond the end of a finished one.

    Before the run it checks whether the potential contradicts itself
    (:mod:`sgmc.door.starting`) and whether the kernel's noise estimate suits the
    minibatch rule. At the end it warns of all that speaks against the draws
    (:mod:`sgmc.door.remarks`): the kernel's own warnings, chains that grow or never
    moved, samples out of the density's support or too wide or too narrow for exp(−U/T),
    in all coordinates or in one, chains, or halves of a single one, that do not agree.
    Each warning ends in the label of its section in *When it goes wrong*.
    The width takes at most a hundred further gradients, and with ``collect`` the run
    keeps two hundred positions for it; it means nothing for a density that is cut off
    where it is not zero, and is left out where a schedule of step sizes, a Gibbs step
    or T = 0 leaves no fixed target.

    Args:
        kernel: one of :mod:`sgmc.kernels`.
        potential: the target.
        position: where the chains start, ``(chains, dim)``; its dtype and device are
            those of the run.
        num_samples: number of draws to keep of each chain.
        warm_up: number of calls of ``kernel.step`` before the first draw, thrown away.
        thinning: number of calls of ``kernel.step`` from one draw to the next.
        seed: seed of the run's generator, the only source of randomness.
        collect: what to keep of the positions ``(chains, dim)`` at each draw: a tensor
            ``(chains, ...)``, or several by name; the positions by default.
        checkpoint: where to save the run, or from where to go on:
            :class:`sgmc.checkpoints.Checkpoint`.
        progress: whether to show a progress bar, as :func:`sgmc.door.running.drive`
        does.

    Returns:
        The draws; ``samples`` is ``(num_samples, chains, ...)``, or a dictionary of
        such tensors.

    Raises:
        ValueError: if the position, a count or the gradient at the start is unusable,
            or the potential contradicts itself.
        DivergenceError: if a position stops being finite, or a step fails; the error's
            ``draws`` hold what was drawn of all chains, and of one that broke NaN (0
            in whole numbers that were collected) from its first bad position on.
        sgmc.checkpoints.CheckpointError: if the checkpoint is corrupt or belongs to a
            run with other settings.

    Example:
        >>> from sgmc.kernels import SGHMC
        >>> from sgmc.targets import DoubleWell, NoisyGradient
        >>> kernel = SGHMC(step_size=0.1, friction=3.0, noise_estimate=0.2)
        >>> target = NoisyGradient(DoubleWell(), 4.0)
        >>> draws = sample(kernel, target, torch.zeros(10, 1), 50, warm_up=50)
        >>> draws.samples.shape
        torch.Size([50, 10, 1])
    """
    check_count("num_samples", num_samples)
    check_count("warm_up", warm_up, at_least=0)
    check_count("thinning", thinning)
    check_instance("collect", collect, Callable | None, "torch.abs")
    check_kernel(kernel)
    check_start(potential, position, seed)
    counts = num_samples, warm_up, thinning
    run = _Run(kernel, potential, position, *counts, seed, collect)
    total = warm_up + num_samples * thinning
    for remark in remark_order(kernel, potential):
        warn(remark)
    drive(run, total, checkpoint=checkpoint, progress=progress)
    for remark in run.remarks():
        warn(remark)
    return run.draws()


@dataclass(eq=False)
class _Run:
    """One call of :func:`sample`: a job of :func:`sgmc.door.running.drive`."""

    kernel: Kernel
    potential: Potential
    start: Tensor
    num_samples: int
    warm_up: int
    thinning: int
    seed: int
    collect: Collect | None

    def __post_init__(self):
        from sgmc.checkpoints import brief_fingerprint

        self.known_by = brief_fingerprint(self.potential)
        self.generator = Generator(self.start.device).manual_seed(self.seed)
        self.done, self.seconds, self.started = 0, 0.0, time.monotonic()
        self.state: Any = self.kernel.init(self.potential, self.start, self.generator)
        self.samples = {name: self.room(x) for name, x in self.collected().items()}
        # These are the draws at which a position was finite, which collected values
        # need not show.
        form = self.num_samples, len(self.start) if self.collect else 0
        self.finite = self.start.new_ones(form, dtype=torch.bool)
        self.statistics: dict[str, Tensor] = {}
        # With collect the positions of every so many draws are kept.
        self.positions, self.stride = [], 1

    def advance(self) -> None:
        """Take a step, and keep the sample if a draw ends with it."""
        given = self.potential, self.state, self.generator
        try:
            self.state, info = self.kernel.step(*given)
        except ERRORS as error:
            if self.done == 0:  # the call itself is wrong, not where a chain went
                raise
            raise self.divergence(
                f"step {self.done + 1} failed with {type(error).__name__}: {error}\nIf "
                "it cannot be evaluated where a chain went, the step_size is too large"
            ) from error
        drawn, remainder = divmod(self.done + 1 - self.warm_up, self.thinning)
        if remainder == 0 and drawn > 0:
            self.keep("collect", self.samples, drawn - 1, self.collected())
            self.keep("a kernel's info", self.statistics, drawn - 1, learned(info))
            if self.collect:
                self.finite[drawn - 1] = self.state.position.isfinite().all(-1)
                self.remember(drawn - 1)
        self.done += 1
        if self.done % _CHECK_EVERY == 0:
            self.check()

    def remember(self, draw: int) -> None:
        """Keep the position of every draw, of every second one if these are too many,
        of every fourth and so on, for the checks at the end.
        """
        if draw % self.stride == 0:
            self.positions.append(self.state.position.clone())
        if len(self.positions) > min(_POSITIONS, _NUMBERS // self.start.numel()):
            self.positions, self.stride = self.positions[::2], 2 * self.stride

    def collected(self) -> dict[str, Tensor]:
        """Take the kept values from the positions; a single tensor has the empty
        name.
        """
        position = self.state.position
        if self.collect is None:
            return {"": position}
        kept = self.collect(position.clone())
        kept = dict(kept) if isinstance(kept, Mapping) else {"": kept}
        for name, value in kept.items():
            if not isinstance(value, Tensor) or value.shape[:1] != position.shape[:1]:
                raise ValueError(
                    f"collect must return (chains, ...) with chains = {len(position)}, "
                    f"not {shown(value)}" + (f" as {name!r}" if name else "")
                )
        return kept

    def room(self, value: Tensor) -> Tensor:
        """Allocate memory for all draws of a value."""
        try:
            return value.new_empty((self.num_samples, *value.shape))
        except (RuntimeError, TypeError) as error:
            # allocation may fail, or the number be huge
            raise ValueError(
                f"num_samples is {self.num_samples}, and memory has no room for so "
                "many: take fewer, or keep less of each by collect"
            ) from error

    def keep(self, what: str, kept: dict, draw: int, new: Mapping[str, Any]) -> None:
        """Write the values of a draw into those of all draws; a number counts for each
        chain.
        """
        new = {name: torch.as_tensor(x) for name, x in new.items()}
        new = {k: x if x.ndim else x.expand(len(self.start)) for k, x in new.items()}
        if not kept:
            kept |= {name: self.room(x) for name, x in new.items()}
        right = {name: tuple(x.shape[1:]) for name, x in kept.items()}
        given = {name: tuple(x.shape) for name, x in new.items()}
        if given != right:
            raise ValueError(
                f"{what} must give the same names and shapes at every draw, but gave "
                f"{right} and then {given}"
            )
        for name, value in new.items():
            # A number may be whole at first, and not later.
            kind = torch.promote_types(kept[name].dtype, value.dtype)
            kept[name] = kept[name].to(kind)
            kept[name][draw] = value

    @property
    def num_drawn(self) -> int:
        return max(0, self.done - self.warm_up) // self.thinning

    def kept(self) -> list[dict[str, Tensor]]:
        """Return the samples and statistics drawn so far, as views."""
        each = self.samples, self.statistics
        return [
            {name: x[: self.num_drawn] for name, x in kept.items()} for kept in each
        ]

    def draws(self) -> Draws:
        samples, statistics = self.kept()
        return Draws(
            samples=samples.get("", samples),
            statistics={k: x.to(self.start.device) for k, x in statistics.items()},
            kernel=str(self.kernel),
            seed=self.seed,
            warm_up=self.warm_up,
            thinning=self.thinning,
            seconds=self.seconds + time.monotonic() - self.started,
            complete=self.num_drawn == self.num_samples,
            potential=self.known_by,
        )

    def remarks(self) -> list[str]:
        """List everything that speaks against the draws."""
        if self.num_drawn == 0:
            return []
        samples, end = self.kept()[0], self.state.position
        positions = torch.stack(self.positions) if self.collect else samples[""]
        found = self.kernel.diagnose(self.draws().statistics)
        stuck = remark_stuck(self.start, end, self.done)
        if not (stuck and (end == self.start).all()):
            found += remark_target(self.kernel, self.potential, positions, self.seed)
        # Chains that never moved do not agree with the others.
        return found + (stuck or remark_disagreement(samples))

    def check(self) -> None:
        """Raise a DivergenceError if a position is not finite, which stays so."""
        broken = ~self.state.position.isfinite().all(-1)
        if broken.any():
            raise self.divergence(
                f"the position of {name_chains(broken)} stopped being finite, at or "
                f"shortly before step {self.done}: the step_size of {self.kernel} is "
                "too large, or the density does not decay (a wrong sign, or no prior)"
            )

    def divergence(self, message: str) -> DivergenceError:
        """Make the error of a run that stops here, and set each chain's draws to NaN
        from its first position on that is not finite.
        """
        samples = self.kept()[0]
        finite = self.finite if self.collect else samples[""].isfinite().all(-1)
        broken = finite[: self.num_drawn].cumprod(0) == 0
        for value in samples.values():
            value[broken] = math.nan if torch.can_cast(torch.float, value.dtype) else 0
        return DivergenceError(
            f"{message}. The {self.num_drawn} draws before are in this error's "
            "attribute draws, NaN in a chain from where it is not finite",
            replace(self.draws(), complete=False),
        )

    def settings(self) -> dict[str, object]:
        # The number of samples is left out, because a run may be extended.
        names = [field.name for field in fields(self) if field.name != "num_samples"]
        return {name: getattr(self, name) for name in names}

    def state_dict(self) -> dict[str, Any]:
        samples, statistics = self.kept()
        return {
            "done": self.done,
            "seconds": self.seconds + time.monotonic() - self.started,
            "state": flatten(self.state),
            "generator": self.generator.get_state(),
            "samples": samples,
            "statistics": statistics,
            "positions": list(self.positions),
            "stride": self.stride,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.done, self.seconds = saved["done"], saved["seconds"]
        self.state = unflatten(saved["state"], self.state)
        self.generator.set_state(saved["generator"].cpu())
        self.positions = [each.to(self.start.device) for each in saved["positions"]]
        self.stride = saved["stride"]
        drawn = self.num_drawn
        if drawn > self.num_samples:
            raise ValueError(
                f"num_samples is {self.num_samples}, but the checkpoint holds {drawn} "
                f"draws: ask for at least {drawn}"
            )
        for kept, values in (
            (self.samples, saved["samples"]),
            (self.statistics, saved["statistics"]),
        ):
            for name, value in values.items():
                if name not in kept:
                    kept[name] = self.room(value[0])
                kept[name][:drawn] = value


def learned(info: Any) -> dict[str, Any]:
    """List the values of an info by name, with those from an inner kernel; None is left
    out.

    Example:
        >>> from sgmc.kernels.langevin import SGLDInfo
        >>> learned(SGLDInfo(step_size=0.1, num_gradients=3))
        {'step_size': 0.1, 'num_gradients': 3}
    """
    found: dict[str, Any] = {}
    for name, value in zip(info._fields, info, strict=True):
        if isinstance(value, tuple):
            found |= learned(value)
        elif value is not None:
            found[name] = value
    return found


def flatten(state: Any) -> list:
    """List the tensors and numbers of a state, however nested, for a checkpoint.

    Example:
        >>> from sgmc.kernels.langevin import SGLDState
        >>> flatten(SGLDState(torch.zeros(1, 2), 3))
        [tensor([[0., 0.]]), 3]
    """
    leaves = tree_flatten(state)[0]
    for leaf in leaves:
        if not isinstance(leaf, Tensor | bool | int | float | str | None):
            raise ValueError(
                f"{type(state).__name__} holds {shown(leaf)}, which a checkpoint "
                "cannot: use tensors and numbers"
            )
    return leaves


def unflatten(leaves: list, like: Any) -> Any:
    """Assemble a state from the list that :func:`flatten` made, in the form of another
    state and on its device.

    Example:
        >>> from sgmc.kernels.langevin import SGLDState
        >>> state = SGLDState(torch.zeros(1, 2), 3)
        >>> unflatten(flatten(state), like=state)
        SGLDState(position=tensor([[0., 0.]]), num_gradients=3)
    """
    to = lambda leaf: leaf.to(like.position.device) if torch.is_tensor(leaf) else leaf
    return tree_unflatten(list(map(to, leaves)), tree_flatten(like)[1])
