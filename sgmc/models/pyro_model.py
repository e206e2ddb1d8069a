"""Pyro programs as potentials with minibatch gradients; Pyro is an extra, ``pip install
pyro-ppl``, which nothing else in this package needs."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

import torch
from torch import Generator, Tensor

try:
    import pyro
except ModuleNotFoundError as error:  # the error says how to install it
    raise ModuleNotFoundError(
        "sgmc.models.pyro_model needs Pyro, which is not installed: pip install "
        "pyro-ppl"
    ) from error
from pyro.distributions.util import scale_and_mask
from pyro.poutine.messenger import Messenger
from pyro.poutine.subsample_messenger import SubsampleMessenger, _Subsample

from sgmc.checks import check_instance
from sgmc.minibatches import MinibatchRule
from sgmc.models import named
from sgmc.posteriors.base import Batch


class PyroPosterior(named._OfParameters):
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
        check_instance("program", program, Callable, "a function that samples")
        self.program, self.arguments, self.keywords = program, arguments, keywords
        # The values do not matter, only their shapes.
        with torch.random.fork_rng(devices=[]), named._tried("program"):
            torch.manual_seed(0)
            trace = pyro.poutine.trace(program).get_trace(*arguments, **keywords)
            self.plate, num_examples, batch_size, sites = _look_at(trace)
        self.shapes = {name: value.shape for name, (value, _) in sites.items()}
        free = {name: x.shape for name, (_, x) in sites.items()}
        self.parameters = named.Parameters(free)
        # the type is that of the sites
        self._like = torch.cat([x.flatten() for _, x in sites.values()]).new_zeros(())
        examples = torch.arange(num_examples, device=self._like.device)
        super().__init__((examples,), batch_size, minibatches, self.parameters.dim)
        ends = self.data[0][None, [0, -1]]
        generator = Generator(self._like.device).manual_seed(0)
        start = self.initial_position(1, generator)
        no_root = torch.linalg.LinAlgError  # pyright: ignore[reportPrivateImportUsage]
        # The positions may fail, and the sites may depend on a sign.
        with torch.no_grad(), named._tried("program"), suppress(no_root):
            for position in (start, -start):
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
        named._check_values("values", values, self.shapes)
        free = self._of_program(dict(values), constrained=True)[2]
        return self.parameters.join(free)

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
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Run the program for all chains with its unconstrained sites, on one example
        by default: return the part that counts once, ``(chains,)``, log p(xᵢ | θ),
        ``(chains, n)``, and the constrained sites; unconstrained if constrained ones
        are given.
        """

        def of_one(given: dict[str, Tensor], examples: Tensor):
            run = _Run(self.plate, len(examples), given, constrained)
            with _shown(self.plate, examples), pyro.validation_enabled(False), run:
                self.program(*self.arguments, **self.keywords)
            if missing := {*self.shapes, self.plate} - {None, *run.seen}:
                raise ValueError(
                    f"program did not come to its sites {sorted(missing)}: which sites "
                    "and plates there are must not depend on their values"
                )
            return run.log_prior, run.log_likelihoods, run.values

        examples = self.data[0][None, :1] if examples is None else examples
        return named._run_model(self._vmaps[0], of_one, given, examples)


def _look_at(trace) -> tuple[str | None, int, int | None, dict[str, tuple]]:
    """Return the plate of the data, N and n of the trace of a program, one example if
    it has no plate, and its sites, each with its unconstrained value; raise a
    ValueError if no sampler here supports the program.
    """
    sizes: dict[str, tuple[int, int]] = {}  # of plates that show some examples, N and n
    observed, sites = set(), {}
    for name, node in trace.nodes.items():
        law, value = node.get("fn"), node.get("value")
        if node["type"] == "param":
            raise ValueError(
                f"program has a pyro.param, {name!r}, which has no prior and would "
                "stay where it is: make it a pyro.sample (in a PyroModule, a "
                "PyroSample)"
            )
        if isinstance(law, _Subsample):
            if len(value) < law.size:
                sizes[name] = law.size, len(value)
            continue
        if node["type"] != "sample":
            continue
        stack = node["cond_indep_stack"]
        plates = [x for x in stack if x.size < (x.full_size or x.size)]
        for frame in plates:
            if frame.name not in sizes:
                raise _plate_error(frame.name, "was made before, or is hidden")
            if not frame.vectorized:
                raise _plate_error(frame.name, "is a loop over its examples")
        if node["is_observed"]:
            if not node["infer"].get("_deterministic"):
                _check_observed(name, law, value)
                observed.update(frame.name for frame in plates)
        elif plates:
            raise ValueError(
                f"the site {name!r} lies in the plate {plates[0].name!r}, which shows "
                "a part of its examples: a minibatch has a force on the values of its "
                "own examples alone. Integrate it out in the likelihood, or leave "
                "subsample_size away; what all examples share belongs before the plate"
            )
        else:
            sites[name] = value, _onto(name, law).inv(value)
    if not sites:
        raise ValueError("program has no sites to sample: there is no free pyro.sample")
    for name, (size, shown) in sizes.items():
        if len(sizes) > 1:
            raise _plate_error(name, f"is one of several such plates, {[*sizes]}")
        if name not in observed:
            raise _plate_error(name, "shows some examples, and observes nothing")
        return name, size, shown, sites
    return None, 1, None, sites


def _plate_error(name: str, problem: str) -> ValueError:
    return ValueError(
        f"the plate {name!r} {problem}. One plate may show a part of its N examples: "
        f"write `with pyro.plate({name!r}, N, subsample_size=n) as i:` in the program, "
        "and index what is observed by i"
    )


class _Run(Messenger):
    """A run of a program with given sites, constrained or not: ``log_prior`` is the
    part that counts once, with the Jacobian, ``log_likelihoods`` that of each of the
    plate's examples, ``values`` the other form of the sites, and the deterministic
    values outside the plate, ``seen`` the names of sites and plates.
    """

    def __init__(
        self, plate: str | None, size: int, given: dict[str, Tensor], constrained: bool
    ):
        super().__init__()
        self.plate, self.size = plate, size
        self.given, self.constrained = given, constrained
        zero = next(iter(given.values())).new_zeros(size)
        self.log_prior, self.log_likelihoods = zero[0], zero
        self.values, self.seen = {}, set()

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
        self.values[name] = other = (onto.inv if self.constrained else onto)(given)
        free, value = (other, given) if self.constrained else (given, other)
        message["value"], message["done"] = value, True
        self.log_prior = self.log_prior + onto.log_abs_det_jacobian(free, value).sum()

    def _pyro_post_sample(self, message) -> None:
        name, law, value = message["name"], message["fn"], message["value"]
        if isinstance(law, _Subsample):
            return
        frames = [x for x in message["cond_indep_stack"] if x.name == self.plate]
        self.seen |= {name, *(x.name for x in frames)}
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
    if value.numel() == 0:  # a factor has no numbers
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
        inside = law.support.check(value) | named._in_event(law.support, value.isnan())
    except NotImplementedError:
        return
    if not inside.all():
        raise ValueError(
            f"the site {name!r} has observations that are not in the support of its "
            f"law, {law.support}"
        )


def _onto(name: str, law):
    """Find the map from unconstrained numbers onto the support of a site."""
    return named._map_onto(law.support, f"the site {name!r}", law.shape())


@contextmanager
def _shown(plate: str | None, examples: Tensor) -> Iterator[None]:
    """Show the given examples ``(n,)`` in a plate, whatever its subsample_size.

    Pyro has no way to do so from outside. What is replaced belongs to all threads:
    :func:`sgmc.models.named._run_model` lets in one at a time."""
    ask = SubsampleMessenger._subsample

    def answer(name, size=None, subsample_size=None, subsample=None, *more):
        if name != plate:
            return ask(name, size, subsample_size, subsample, *more)
        if subsample is not None:
            raise _plate_error(name, "is given its minibatch by subsample=")
        return size, len(examples), examples

    setattr(SubsampleMessenger, "_subsample", staticmethod(answer))  # noqa: B010
    try:
        yield
    finally:
        SubsampleMessenger._subsample = staticmethod(ask)
