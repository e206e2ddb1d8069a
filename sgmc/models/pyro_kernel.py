"""Kernels of this package inside of ``pyro.infer.MCMC``; Pyro is an extra."""

import warnings
from collections.abc import Callable
from functools import partial
from multiprocessing import current_process
from typing import Any

import torch
from torch import Generator, Tensor

from sgmc.checks import check_instance
from sgmc.door.remarks import remark_disagreement, remark_order, remark_target
from sgmc.door.sampling import DivergenceError, learned
from sgmc.door.starting import check_kernel, check_start
from sgmc.kernels.base import Kernel
from sgmc.matrices import in_double
from sgmc.models.named import _check_values

# raises an error if Pyro is not installed
from sgmc.models.pyro_model import PyroPosterior

# isort: split
from pyro.infer.mcmc.mcmc_kernel import MCMCKernel


class PyroKernel(MCMCKernel):
    """A kernel of this package on a Pyro program, for ``pyro.infer.MCMC``.

    The target is :class:`~sgmc.models.pyro_model.PyroPosterior` of the program, so that
    a plate with ``subsample_size`` shows a fresh minibatch at each gradient. Samples
    are the constrained sites, and what ``pyro.deterministic`` names outside of that
    plate; leave MCMC's ``transforms`` away. A chain's seed is drawn from Pyro's random
    numbers (``pyro.set_rng_seed``), and its start from U(−2, 2) in each unconstrained
    coordinate unless ``initial_params`` say otherwise; chains in processes all start
    from the last of these, for Pyro 1.9 hands on no other. MCMC gives each
    chain a process if there are cores enough, and else runs one after another, where
    :func:`sgmc.door.sampling.sample` runs twenty in one process at nearly the price of
    one.

    Warm-up steps are thrown away and tune nothing. Tune the kernel before, on
    ``posterior = PyroPosterior(model, *arguments)``: HMC and NUTS by
    :func:`sgmc.tuning.adapt`; SGHMC by :func:`sgmc.tuning.tune`, from
    ``find_mode(posterior.full(), start)``. Of the positions that these give, take
    ``posterior.parameters.cut(position[:num_chains])`` as ``initial_params``, or
    ``cut(position[0])`` for one chain. Pyro does not thin: raise ``num_steps``.

    Args:
        kernel: one of :mod:`sgmc.kernels`.
        model: the program, which ``MCMC.run`` calls with its arguments.

    Raises:
        ValueError: if the kernel or the model is invalid; in ``run``, if PyroPosterior
            rejects the program, HMC or NUTS is to see minibatches, ``initial_params``
            have other names or shapes, or a chain cannot start where it should.
        DivergenceError: in ``run``, if a position stops being finite.

    Example:
        >>> import pyro
        >>> import pyro.distributions as dist
        >>> from sgmc.kernels import SGHMC
        >>> def model(x):
        ...     mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
        ...     with pyro.plate("data", len(x), subsample_size=5) as i:
        ...         pyro.sample("x", dist.Normal(mean, 1.0), obs=x[i])
        >>> kernel = PyroKernel(SGHMC(0.05, friction=3.0, num_steps=5), model)
        >>> mcmc = pyro.infer.MCMC(kernel, num_samples=8, disable_progbar=True)
        >>> mcmc.run(torch.ones(10))
        >>> mcmc.get_samples()["mean"].shape
        torch.Size([8])
    """

    # MCMC has nothing to undo, because samples are constrained here
    transforms: dict = {}

    def __init__(self, kernel: Kernel, model: Callable):
        check_kernel(kernel)
        check_instance("model", model, Callable, "a function that samples")
        self.kernel, self.model, self.start = kernel, model, None

    def setup(self, warmup_steps: int, *args, **kwargs) -> None:
        """Start a chain on the program with these arguments."""
        if current_process().name.isdigit():  # MCMC numbers its own processes
            torch.set_num_threads(1)  # a fork would wait for its parent's threads
            if self.start is not None:
                again = (
                    "every chain starts from the last initial_params, and R̂ is blind"
                )
                warnings.warn(again, stacklevel=2)
        self.posterior = PyroPosterior(partial(self.model, **kwargs), *args)
        # The seed is drawn, because chains of one process share torch.initial_seed().
        self.seed = int(torch.randint(2**63 - 1, (), device="cpu"))
        device = self.posterior.data[0].device
        self.generator = Generator(device).manual_seed(self.seed)
        start, self.start = self.start, None  # the next chain may start elsewhere
        position = self._first_position(start)
        check_start(self.posterior, position, self.seed)
        self.state: Any = self.kernel.init(self.posterior, position, self.generator)
        self.warmup_steps, self.positions, self.infos = warmup_steps, [], []

    def sample(self, params: dict[str, Tensor]) -> dict[str, Tensor]:
        """Take a step from the chain's state, and return the sites by name."""
        self.state, info = self.kernel.step(self.posterior, self.state, self.generator)
        known = learned(info).items()
        self.infos.append({k: torch.as_tensor(v).reshape(1).clone() for k, v in known})
        self.positions.append(self.state.position.clone())
        if not self.positions[-1].isfinite().all():
            raise DivergenceError(
                f"the position stopped being finite at step {len(self.positions)} of "
                f"{self.kernel}: take a smaller step_size, or other initial_params",
                None,
            )
        return self._sites()

    def logging(self) -> dict[str, str]:
        """Return the means of the last 50 steps' information, for the progress bar."""
        recent = _columns(self.infos[-50:]).items()
        return {name: f"{float(in_double(x).mean()):.3g}" for name, x in recent}

    def diagnostics(self) -> dict[str, Any]:
        """Return the samples whose step diverged and the mean acceptance, if the kernel
        reports them; warn of problems of this chain: see ``r_hat`` of several.
        """
        seen = _columns(self.infos[self.warmup_steps :])
        samples, found = torch.stack(self.positions[self.warmup_steps :]), {}
        for remark in (
            *remark_order(self.kernel, self.posterior),
            *self.kernel.diagnose(seen),
            *remark_target(self.kernel, self.posterior, samples, self.seed),
            *remark_disagreement({"": samples}),
        ):
            warnings.warn(remark, stacklevel=2)
        if "diverged" in seen:
            found["divergences"] = seen["diverged"].nonzero()[:, 0].tolist()
        if "acceptance" in seen:
            found["acceptance rate"] = float(seen["acceptance"].mean())
        return found

    @property
    def initial_params(self) -> dict[str, Tensor]:
        """The sites of the chain's state; assign the start to them, unconstrained."""
        return self._sites()

    @initial_params.setter
    def initial_params(self, params: dict[str, Tensor]) -> None:
        self.start = params

    def _sites(self) -> dict[str, Tensor]:
        named = self.posterior.named(self.state.position.clone())
        return {name: value[0] for name, value in named.items()}

    def _first_position(self, start: dict[str, Tensor] | None) -> Tensor:
        if start is None:
            return self.posterior.initial_position(1, self.generator)
        parameters = self.posterior.parameters
        given = {name: value[None] for name, value in start.items()}
        _check_values("unconstrained initial_params", given, parameters.free_shapes)
        return parameters.join(given)


def _columns(rows: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Stack the information of steps: for each name ``(steps, 1)``."""
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
