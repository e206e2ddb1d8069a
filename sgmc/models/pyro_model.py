"""Pyro programs as potentials with minibatch gradients; Pyro is an extra, ``pip install
pyro-ppl``, which nothing else in this package needs."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Generator, Tensor
from torch.distributions import Transform

try:
    import pyro
    import pyro.distributions
except ModuleNotFoundError as error:  # the error says how to install it
    raise ModuleNotFoundError(
        "sgmc.models.pyro_model needs Pyro, which is not installed: pip install "
        "pyro-ppl"
    ) from error
from pyro.distributions.util import scale_and_mask
from pyro.poutine.messenger import Messenger
from pyro.poutine.subsample_messenger import SubsampleMessenger, _Subsample

from sgmc.minibatches import MinibatchRule
from sgmc.models.functions import _check_callable
from sgmc.models.named import (
    Parameters,
    _check_finite,
    _check_values,
    _in_event,
    _map_onto,
    _run_model,
    _tried,
)
from sgmc.posteriors.base import Batch, DataPotential


class PyroPosterior(DataPotential):
    """The posterior of a Pyro program (Bingham et al., 2019).

    Sites that are not observed are the parameters; a position holds them in the order
    of the program, through ``biject_to`` of their supports, which may depend on other
    sites. A plate with ``subsample_size=n`` of N examples is where the data are: what
    is observed in it is the likelihood, which a minibatch scales by N/n, and all the
    rest counts once. The minibatch rule, and not Pyro, chooses which examples it shows.
    A program without such a plate is one example. All chains run the program together,
    by ``torch.func.vmap``.

    Args:
        program: the program.
        arguments: the program's arguments, and keywords.
        minibatches: the rule by which the plate's examples are chosen
            (:mod:`sgmc.minibatches`).

    Attributes:
        parameters: names and sizes of the sites (:class:`sgmc.models.Parameters`).

    Raises:
        ValueError: if the program has a discrete site, a site for each example of a
            minibatch, or no sites; a ``pyro.param``, which has no prior; several plates
            with minibatches, or one that chooses them itself.

    Example:
        >>> import pyro.distributions as dist
        >>> def program(x):
        ...     mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
        ...     with pyro.plate("data", len(x), subsample_size=2) as i:
        ...         pyro.sample("x", dist.Normal(mean, 1.0), obs=x[i])
        >>> posterior = PyroPosterior(program, torch.tensor([1.0, 2.0, 3.0]))
        >>> minibatch = torch.tensor([[0, 1]])
        >>> posterior.gradient_given(torch.zeros(1, 1), minibatch)  # −(3/2)(1 + 2)
        tensor([[-4.5000]])
    """

    def __init__(
        self,
        program: Callable,
        *arguments,
        minibatches: MinibatchRule | None = None,
        **keywords,
    ):
        _check_callable("program", program, "one that calls pyro.sample")
        self.program, self.arguments, self.keywords = program, arguments, keywords
        look = _Look()
        # The values do not matter, only their shapes.
        with torch.random.fork_rng(devices=[]), look, _tried("program"):
            torch.manual_seed(0)
            program(*arguments, **keywords)
        self.plate, num_examples, batch_size = look.plate()
        self.shapes, self.parameters = look.shapes, Parameters(look.free_shapes)
        # the type is that of the sites
        self._like = torch.cat(look.values).new_zeros(())
        examples = torch.arange(num_examples, device=self._like.device)
        super().__init__((examples,), batch_size, minibatches, self.parameters.dim)
        ends = self.data[0][None, [0, -1]]
        generator = Generator(self._like.device).manual_seed(0)
        start = self.initial_position(1, generator)
        no_root = torch.linalg.LinAlgError  # pyright: ignore[reportPrivateImportUsage]
        with (
            torch.no_grad(),
            _tried("program"),
            suppress(no_root),
        ):  # at positions that may fail
            for position in (start, -start):  # the sites may depend on a sign
                self._of_program(self.parameters.cut(position), ends)

    def full(self) -> "PyroPosterior":
        """Make the posterior whose gradients take all the data, as HMC and NUTS need
        them."""
        changed = copy.copy(self)
        changed.batch_size = None
        return changed

    def energy(self, position: Tensor) -> Tensor:
        """Compute U(θ): ``(chains, dim)`` → ``(chains,)``; raise a ValueError if the
        program sees minibatches.
        """
        if not self.takes_all_data:
            raise ValueError(
                f"the plate {self.plate!r} shows {self.batch_size} of "
                f"{self.num_examples:,} examples, and HMC and NUTS decide by the "
                "energy, which another minibatch would change within a path. Give them "
                "posterior.full(), which takes all the data, or take SGHMC or SGLD"
            )
        return super().energy(position)

    def log_prior(self, position: Tensor) -> Tensor:
        """Compute the terms that count once, with the Jacobian: ``(chains, dim)`` →
        ``(chains,)``.
        """
        return self._of_program(self.parameters.cut(position))[0]

    def log_likelihood(self, position: Tensor, examples: Tensor) -> Tensor:
        """Compute log p(xᵢ | θ) of the observations in the plate: ``(chains, dim)`` and
        numbers ``(chains or 1, n)`` → ``(chains, n)``.
        """
        return self._of_program(self.parameters.cut(position), examples)[1]

    def named(self, position: Tensor) -> dict[str, Tensor]:
        """Compute the sites by name, each ``(chains, ...)``, at positions ``(chains,
        dim)``, and the values that ``pyro.deterministic`` names outside the plate, for
        ``sample`` to collect.
        """
        return self._of_program(self.parameters.cut(position))[2]

    def position(self, values: Mapping[str, Tensor]) -> Tensor:
        """Compute the positions ``(chains, dim)`` of sites by name, each ``(chains,
        ...)``.

        Raises:
            ValueError: if a site is missing, or has another shape, or lies outside of
                its support.
        """
        _check_values(values, self.shapes)
        free = self._of_program(dict(values), constrained=True)[3]
        return _check_finite(self.parameters.join(free), values)

    def initial_position(
        self, chains: int, generator: Generator, radius: float = 2.0
    ) -> Tensor:
        """Draw positions with each coordinate from U(−radius, radius), as Stan does
        with 2: ``(chains, dim)``.
        """
        return self.parameters.uniform(chains, generator, radius, self._like.dtype)

    def _energy_of(self, position: Tensor, batch: Batch, scale: float) -> Tensor:
        """Compute the energy of a minibatch."""
        # One run is enough, where the base would take two.
        free = self.parameters.cut(position)
        log_prior, log_likelihoods, *_ = self._of_program(free, batch[0])
        return -log_prior - scale * log_likelihoods.sum(-1)

    def _of_program(
        self,
        given: dict[str, Tensor],
        examples: Tensor | None = None,
        constrained: bool = False,
    ) -> tuple[Tensor, Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Run the program for all chains, on one example by default: return the part
        that counts once, ``(chains,)``, log p(xᵢ | θ), ``(chains, n)``, and the sites,
        constrained and unconstrained.
        """

        def of_one(given: dict[str, Tensor], examples: Tensor):
            run = _Run(self.plate, len(examples), given, constrained)
            with _shown(self.plate, examples), pyro.validation_enabled(False), run:
                self.program(*self.arguments, **self.keywords)
            if missing := sorted(set(self.shapes) - set(run.free)):
                raise ValueError(
                    f"program did not come to its sites {missing}: which sites there "
                    "are must not depend on their values"
                )
            return run.log_prior, run.log_likelihoods, run.values, run.free

        examples = self.data[0][None, :1] if examples is None else examples
        return _run_model(self._vmaps[0], of_one, given, examples)


class _Look(Messenger):
    """The sites of a program from its first run, and features that no sampler here
    supports.
    """

    def __init__(self):
        super().__init__()
        # These are N and n of the plates that show a part of their examples.
        self.sizes: dict[str, tuple[int, int]] = {}
        self.shapes, self.free_shapes, self.values = {}, {}, []
        self.observed: set[str] = set()  # plates that hold observations

    def _pyro_param(self, message) -> None:
        raise ValueError(
            f"program has a pyro.param, {message['name']!r}, which has no prior and "
            "would stay where it is: make it a pyro.sample "
            "(in a PyroModule, a PyroSample)"
        )

    def _pyro_sample(self, message) -> None:
        law, given, name = message["fn"], message["value"], message["name"]
        if not isinstance(law, _Subsample):
            return
        if (law.subsample_size or 0) > law.size:
            raise ValueError(
                f"the plate {name!r} has {law.size} examples, but its subsample_size "
                f"is {law.subsample_size}"
            )
        if given is not None and len(given) < law.size:
            raise ValueError(
                f"the plate {name!r} is given its minibatch by subsample=, but which "
                "examples a chain sees is chosen by minibatches: "
                f"write pyro.plate({name!r}, {law.size}, subsample_size={len(given)}) "
                "as i, and index the data by i"
            )

    def _pyro_post_sample(self, message) -> None:
        name, law, value = message["name"], message["fn"], message["value"]
        if isinstance(law, _Subsample):
            if len(value) < law.size:
                self.sizes[name] = law.size, len(value)
            return
        plates = []  # plates that show a part of their examples
        for frame in message["cond_indep_stack"]:
            if frame.name in self.sizes:
                plates.append(frame)
            elif frame.size < (frame.full_size or frame.size):
                raise ValueError(
                    f"the plate {frame.name!r} was made outside of the program, or is "
                    f"hidden, and would show the same {frame.size} of "
                    f"{frame.full_size} examples at every step: write `with "
                    "pyro.plate(...) as i:` inside of the program"
                )
        if any(not frame.vectorized for frame in plates):
            raise ValueError(
                f"the plate {plates[0].name!r} is a loop over its examples: write "
                "`with pyro.plate(...) as i:`, and index by i"
            )
        if message["is_observed"]:
            if not message["infer"].get("_deterministic"):
                _check_observed(name, law, value)
                self.observed.update(frame.name for frame in plates)
            return
        if plates:
            raise ValueError(
                f"the site {name!r} lies in the plate {plates[0].name!r}, which shows "
                "a part of its examples: a minibatch has a force on the values of its "
                "own examples alone. Integrate it out in the likelihood, or leave "
                "subsample_size away; what all examples share belongs before the plate"
            )
        free: Any = _onto(name, law).inv(value)
        self.shapes[name], self.free_shapes[name] = value.shape, free.shape
        self.values.append(free.flatten())

    def plate(self) -> tuple[str | None, int, int | None]:
        """Return the plate of the data, N and n; one example if the program has no
        plate.
        """
        if not self.shapes:
            raise ValueError(
                "program has no sites to sample: all are observed, or there is no "
                "pyro.sample"
            )
        if len(self.sizes) > 1:
            raise ValueError(
                "program has several plates that show a part of their examples, "
                f"{sorted(self.sizes)}: leave one of them so"
            )
        for name, (size, shown) in self.sizes.items():
            if name not in self.observed:
                raise ValueError(
                    f"nothing is observed in the plate {name!r}, which shows {shown} "
                    f"of {size} examples: leave subsample_size away"
                )
            return name, size, shown
        return None, 1, None


class _Run(Messenger):
    """A run of a program with given sites, constrained or not: ``log_prior`` is the
    part that counts once, with the Jacobian, ``log_likelihoods`` that of each of the
    plate's examples, ``values`` the constrained sites and the deterministic values
    outside the plate, ``free`` the unconstrained sites.
    """

    def __init__(
        self, plate: str | None, size: int, given: dict[str, Tensor], constrained: bool
    ):
        super().__init__()
        self.plate, self.size = plate, size
        self.given, self.constrained = given, constrained
        zero = next(iter(given.values())).new_zeros(size)
        self.log_prior, self.log_likelihoods = zero[0], zero
        self.values, self.free = {}, {}

    def _pyro_sample(self, message) -> None:
        name, law = message["name"], message["fn"]
        if message["is_observed"] or isinstance(law, _Subsample):
            return
        if name not in self.given:
            raise ValueError(
                f"program came to a site {name!r} that it did not have at first: the "
                "sites must not depend on their values"
            )
        onto, given = _onto(name, law), self.given[name]
        free = onto.inv(given) if self.constrained else given
        value = given if self.constrained else onto(given)
        message["value"], message["done"] = value, True
        self.values[name], self.free[name] = value, free
        self.log_prior = self.log_prior + onto.log_abs_det_jacobian(free, value).sum()

    def _pyro_post_sample(self, message) -> None:
        name, law, value = message["name"], message["fn"], message["value"]
        if isinstance(law, _Subsample):
            return
        frames = [x for x in message["cond_indep_stack"] if x.name == self.plate]
        if message["infer"].get("_deterministic"):
            if not frames:
                self.values[name] = value
            return
        log_prob = law.log_prob(value, *message["args"], **message["kwargs"])
        log_prob = scale_and_mask(log_prob, message["scale"], message["mask"])
        if frames:  # Pyro's scale contains N/n, which the posterior has to bring in
            along = log_prob.movedim(frames[0].dim, 0).reshape(self.size, -1).sum(-1)
            share = self.size / frames[0].full_size
            self.log_likelihoods = self.log_likelihoods + share * along
        elif self.plate is None and message["is_observed"]:
            self.log_likelihoods = self.log_likelihoods + log_prob.sum()[None]
        else:
            self.log_prior = self.log_prior + log_prob.sum()


def _check_observed(name: str, law, value: Tensor) -> None:
    """Raise a ValueError unless the value suits the shape and support of its
    distribution.
    """
    if isinstance(getattr(law, "base_dist", law), pyro.distributions.Unit):
        # a factor has this base
        return
    # a hidden Markov model may have any length
    any_length = getattr(law, "duration", 0) is None
    if not any_length and value.shape != law.shape():
        raise ValueError(
            f"the site {name!r} has observations of shape {tuple(value.shape)}, but "
            f"its law draws {tuple(law.shape())}, and broadcasting "
            "would count them several times: give both one shape, such as y[:, 0] for "
            "y of (n, 1), and no .to_event for a plate's axis"
        )
    try:
        # A NaN may stand below a mask.
        inside = law.support.check(value) | _in_event(law.support, value.isnan())
    except NotImplementedError:
        return
    if not inside.all():
        raise ValueError(
            f"the site {name!r} has observations that are not in the support of its "
            f"law, {law.support}"
        )


def _onto(name: str, law) -> Transform:
    """Find the map from unconstrained numbers onto the support of a site."""
    try:
        return _map_onto(law.support, f"the site {name!r}")
    except NotImplementedError as error:
        raise ValueError(
            f"the law of the site {name!r}, {type(law).__name__}, does not say its "
            "support: take one that does"
        ) from error


@contextmanager
def _shown(plate: str | None, examples: Tensor) -> Iterator[None]:
    """Show the given examples ``(n,)`` in a plate, whatever its subsample_size.

    Pyro has no way to do so from outside. What is replaced belongs to all threads:
    :func:`_run_model` lets in one at a time."""
    ask, asked = SubsampleMessenger._subsample, []

    def answer(name, size=None, subsample_size=None, subsample=None, *more):
        asked.append(name)
        if name == plate:
            return size, len(examples), examples
        return ask(name, size, subsample_size, subsample, *more)

    setattr(SubsampleMessenger, "_subsample", staticmethod(answer))  # noqa: B010
    try:
        yield
    finally:
        SubsampleMessenger._subsample = staticmethod(ask)
    if plate is not None and plate not in asked:
        raise ValueError(
            f"program did not come to its plate {plate!r}, or this version of Pyro, "
            f"{pyro.__version__}, does not ask what it shows"
        )
