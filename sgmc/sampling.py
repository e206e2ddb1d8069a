"""The loop: chains, warm-up, thinning, progress, checkpoints."""

import hashlib
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Generator, Tensor
from tqdm import tqdm

from sgmc.draws import Draws
from sgmc.potentials import Potential

_CHECK_EVERY = 32  # steps between two looks for positions that are not finite
_CHECKPOINT_SECONDS = 30.0


class DivergenceError(RuntimeError):
    """A chain's position is no longer finite; ``draws`` holds what was drawn before."""

    def __init__(self, message: str, draws: Draws | None):
        super().__init__(message)
        self.draws = draws


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be read, or belongs to another run."""


def sample(
    kernel,
    potential: Potential,
    position: Tensor,
    num_samples: int,
    *,
    warm_up: int = 0,
    thinning: int = 1,
    seed: int = 0,
    collect: Callable[[Tensor], Tensor] | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = True,
) -> Draws:
    """Run a kernel in many chains at once and keep its draws.

    Ctrl-C stops the run and returns what was drawn, with a warning. With a checkpoint the run is saved every half minute and when it
    stops; the same call later goes on from there, to exactly the draws of an uninterrupted run.

    Args:
        kernel: one of :mod:`sgmc.kernels`.
        potential: the target.
        position: where the chains start, ``(chains, dim)``; its dtype and device are those of the run.
        num_samples: number of draws to keep of each chain.
        warm_up: number of steps to throw away first.
        thinning: number of steps from one draw to the next.
        seed: seed of the run's generator, the only source of randomness.
        collect: what to keep of the positions ``(chains, dim)`` at each draw, a tensor ``(chains, ...)``; the positions by default.
        checkpoint: file in which to save the run, or from which to go on.
        progress: whether to show a progress bar on standard error, in runs of over two seconds.

    Returns:
        The draws; ``samples`` is ``(num_samples, chains, ...)``.

    Raises:
        ValueError: if the position, a count or the gradient at the start is unusable.
        DivergenceError: if a position stops being finite; the error's ``draws`` hold what was drawn.
        CheckpointError: if the checkpoint is corrupt or belongs to a run with other settings.

    Example:
        >>> from sgmc.kernels import SGHMC
        >>> from sgmc.potentials import DoubleWell, NoisyGradient
        >>> kernel = SGHMC(step_size=0.1, friction=3.0, noise_estimate=0.2)
        >>> draws = sample(kernel, NoisyGradient(DoubleWell(), 4.0), torch.zeros(10, 1), num_samples=100, warm_up=50)
        >>> draws.samples.shape
        torch.Size([100, 10, 1])
    """
    _check(potential, position, num_samples, warm_up, thinning, seed)
    run = _Run(kernel, potential, position, num_samples, warm_up, thinning, seed, collect, checkpoint)
    total = warm_up + num_samples * thinning
    quiet = {} if progress else {"disable": True}
    with torch.no_grad(), tqdm(total=total, initial=run.steps, delay=2, unit="step", **quiet) as bar:
        try:
            while run.steps < total:
                run.step()
                bar.update()
        except KeyboardInterrupt:
            warnings.warn(f"interrupted after {run.steps} of {total} steps: the draws so far are kept", stacklevel=2)
    run.check_finite()
    run.save()
    draws = run.draws()
    for remark in kernel.remarks(draws.statistics) if hasattr(kernel, "remarks") else ():
        warnings.warn(remark, stacklevel=2)
    return draws


class _Run:
    """The state of one call of :func:`sample`."""

    def __init__(self, kernel, potential, position, num_samples, warm_up, thinning, seed, collect, checkpoint):
        self.kernel, self.potential = kernel, potential
        self.num_samples, self.warm_up, self.thinning, self.seed = num_samples, warm_up, thinning, seed
        self.collect, self.checkpoint = collect, None if checkpoint is None else Path(checkpoint)
        self.generator = Generator(position.device).manual_seed(seed)
        self.steps, self.seconds, self.started = 0, 0.0, time.monotonic()
        if self.checkpoint is not None:
            self.settings = _fingerprint([kernel, potential, position, num_samples, warm_up, thinning, seed, collect])
            self.saved = self.started
        # The kernel's init also tells what kind of state a checkpoint has to be read back into.
        self.state = kernel.init(potential, position, self.generator)
        self.chains = position.shape[0]
        if self.checkpoint is not None and self.checkpoint.exists():
            self.load()
        else:
            self.allocate()

    def step(self) -> None:
        self.state = self.kernel.step(self.potential, self.state, self.generator)
        self.steps += 1
        drawn, remainder = divmod(self.steps - self.warm_up, self.thinning)
        if remainder == 0 and drawn > 0:
            self.keep(drawn - 1)
        if self.steps % _CHECK_EVERY == 0:
            self.check_finite()
        if self.checkpoint is not None and time.monotonic() - self.saved > _CHECKPOINT_SECONDS:
            self.check_finite()
            self.save()

    def kept(self) -> dict[str, Tensor]:
        """Take from the state what a draw keeps: what was collected, under the empty name, and what the step learned."""
        position = self.state.position
        kept = {"": position if self.collect is None else self.collect(position)}
        for name, value in zip(self.state._fields, self.state, strict=True):
            if name not in ("position", "momentum", "gradient", "noise_variance"):
                kept[name] = torch.as_tensor(value)  # () where all chains share it
        return kept

    def allocate(self) -> None:
        kept = self.kept()
        if kept[""].shape[:1] != (self.chains,):
            raise ValueError(f"collect must return (chains, ...) with chains = {self.chains}, not {tuple(kept[''].shape)}")
        self.statistics = {name: value.new_empty((self.num_samples, *value.shape)) for name, value in kept.items()}
        self.samples = self.statistics.pop("")

    def keep(self, index: int) -> None:
        kept = self.kept()
        self.samples[index] = kept.pop("")
        for name, value in kept.items():
            self.statistics[name][index] = value

    @property
    def num_drawn(self) -> int:
        return max(0, self.steps - self.warm_up) // self.thinning

    def draws(self, num_drawn: int | None = None) -> Draws:
        num_drawn = self.num_drawn if num_drawn is None else num_drawn
        return Draws(
            samples=self.samples[:num_drawn],
            statistics={
                name: (value if value.ndim > 1 else value[:, None].expand(-1, self.chains))[:num_drawn]
                for name, value in self.statistics.items()
            },
            kernel=str(self.kernel),
            seed=self.seed,
            warm_up=self.warm_up,
            thinning=self.thinning,
            seconds=self.seconds + time.monotonic() - self.started,
            complete=num_drawn == self.num_samples,
        )

    def check_finite(self) -> None:
        # A position that is not finite stays so, hence one look now and then finds it, and the draws tell when it began.
        finite = torch.isfinite(self.state.position).all(-1)
        if finite.all():
            return
        chain = int((~finite).nonzero()[0])
        good = self.num_drawn
        bad = ~torch.isfinite(self.samples[:good].flatten(1)).all(-1)
        good = int(bad.nonzero()[0]) if bad.any() else good
        raise DivergenceError(
            f"the position of chain {chain} stopped being finite, at or shortly before step {self.steps}: the step_size of "
            f"{self.kernel} is too large for this potential, or the potential's gradient is not finite where the chain went. "
            f"The {good} draws before are in this error's attribute draws",
            self.draws(good),
        )

    def save(self) -> None:
        if self.checkpoint is None:
            return
        content = {
            "settings": self.settings,
            "steps": self.steps,
            "seconds": self.seconds + time.monotonic() - self.started,
            "state": tuple(self.state),
            "generator": self.generator.get_state(),
            "samples": self.samples,
            "statistics": self.statistics,
        }
        # Written beside the old one and moved over it, so that a stop in the middle of writing loses nothing.
        unfinished = self.checkpoint.with_name(self.checkpoint.name + ".unfinished")
        self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        torch.save(content, unfinished)
        os.replace(unfinished, self.checkpoint)
        self.saved = time.monotonic()

    def load(self) -> None:
        try:
            content = torch.load(self.checkpoint, map_location=self.state.position.device, weights_only=True)
            settings = content["settings"]
        except Exception as error:
            raise CheckpointError(
                f"checkpoint {self.checkpoint} is corrupt ({type(error).__name__} when reading it); delete it to start anew"
            ) from error
        if settings != self.settings:
            raise CheckpointError(
                f"checkpoint {self.checkpoint} belongs to a run with another kernel, potential, start, seed or number of draws; "
                "give another file, or delete this one to start anew"
            )
        self.steps, self.seconds = content["steps"], content["seconds"]
        self.state = type(self.state)(*content["state"])
        self.generator.set_state(content["generator"].cpu())
        self.samples, self.statistics = content["samples"], content["statistics"]


def _check(potential: Potential, position: Tensor, num_samples: int, warm_up: int, thinning: int, seed: int) -> None:
    for name, value, least in (("num_samples", num_samples, 1), ("warm_up", warm_up, 0), ("thinning", thinning, 1)):
        if not isinstance(value, int) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, but it is {value!r}")
    check_start(potential, position, seed)


def check_start(potential: Potential, position: Tensor, seed: int) -> None:
    """Raise a ValueError if chains cannot start at the position, or the potential's gradient there is unusable."""
    if not isinstance(position, Tensor) or position.ndim != 2 or not position.is_floating_point():
        given = f"{tuple(position.shape)} {position.dtype}" if isinstance(position, Tensor) else type(position).__name__
        raise ValueError(f"position must be a floating-point tensor (chains, dim), but it is {given}; one chain is (1, dim)")
    if position.shape[0] == 0 or not torch.isfinite(position).all():
        raise ValueError(f"position {tuple(position.shape)} must hold at least one chain, all of it finite")
    if potential.dim is not None and position.shape[1] != potential.dim:
        raise ValueError(f"position has {position.shape[1]} coordinates, but the potential has dim = {potential.dim}")
    try:
        # A generator of its own: a look at the gradient must not change the draws.
        gradient = potential.stochastic_gradient(position, Generator(position.device).manual_seed(seed))
    except RuntimeError as error:
        raise ValueError(f"the potential cannot take a position of shape {tuple(position.shape)}, {position.dtype}: {error}") from error
    if gradient.shape != position.shape or gradient.dtype != position.dtype:
        raise ValueError(
            f"the potential's gradient is {tuple(gradient.shape)} {gradient.dtype}, but the position is "
            f"{tuple(position.shape)} {position.dtype}; they must agree"
        )
    if not torch.isfinite(gradient).all():
        chain = int((~torch.isfinite(gradient).all(-1)).nonzero()[0])
        raise ValueError(f"the gradient at the start is not finite in chain {chain}; start elsewhere, or mend the potential")


def _fingerprint(thing) -> str:
    """Hash what a run depends on: numbers, tensors, and the attributes of kernels and potentials."""
    if isinstance(thing, Tensor):
        content = f"{thing.dtype}{tuple(thing.shape)}".encode() + thing.detach().cpu().contiguous().numpy().tobytes()
    elif isinstance(thing, (list, tuple)):
        content = "".join(map(_fingerprint, thing)).encode()
    elif isinstance(thing, torch.nn.Module):
        content = _fingerprint([str(thing), *thing.state_dict().values()]).encode()
    elif callable(thing):
        content = f"{thing.__module__}.{thing.__qualname__}".encode()
    elif hasattr(thing, "__dict__"):
        content = (type(thing).__qualname__ + "".join(k + _fingerprint(v) for k, v in sorted(vars(thing).items()))).encode()
    else:
        content = repr(thing).encode()
    return hashlib.sha256(content).hexdigest()
