"""What a library writes to be measured: a class of five methods for each sampler."""

import pickle
from typing import Any, NamedTuple

import numpy as np

from . import laws


class Target(NamedTuple):
    """What a step sees of U(θ) = ½Σaᵢθᵢ²: its minibatch adds ζ·θ, so ζ to the gradient.

    Positions are ``(copies, dim)``; every coordinate of every copy is a chain of its
    own.
    """

    curvature: np.ndarray  #: a, (dim,)
    noise: np.ndarray  #: ζ, (copies, dim)
    variance: float  #: V, for a library that draws minibatches itself, and leaves ζ out

    def gradient(self, position):
        """Return ∇U + ζ at a position."""
        return self.curvature * position + self.noise

    def energy(self, position):
        """Return U + ζ·θ of each copy, (copies,)."""
        squares = self.curvature * position**2 / 2
        return (squares + self.noise * position).sum(-1)


class Adapter:
    """A sampler: what its documentation says (the class's attributes), and how it runs.

    A subclass writes ``arguments``, ``init``, ``step``, ``position``, ``momentum``
    where there is one, and ``save`` and ``load`` where the library has its own.
    """

    name = ""  #: as users call it
    documented: Any = None  #: a step of `laws`; None where no law is known in a formula
    #: "sgld", "sghmc", "thermostat", "exact" (a correction by rejections)
    kind = "sgld"
    offers: frozenset = frozenset()  #: of temperature, friction, mass, estimate
    fresh = False  #: each gradient of a step has a minibatch of its own
    own_batches = False  #: the library draws its minibatches; steps ignore ζ
    linear = True  #: False where a step is not linear in position and momentum
    samples = 1_000_000  #: normals behind each entry of Q, whose error is then 0.14 %
    normals = 0  #: arrays of normals a step takes in the place of a seed
    #: what the defaults are, or a method that gives variances at them; None without
    at_defaults: Any = None
    required: dict = {}  #: arguments beside the defaults that have none
    undocumented: frozenset = frozenset()  #: tests that nothing documented is about
    blank: dict = {}  #: by test, why it does not apply
    surprises: dict = {}  #: by test, what is documented there, and surprising
    xfail: dict = {}  #: by test, why its authors expect it to fail

    def chain(self, setting: laws.Setting) -> laws.Chain:
        """Give the chain that the documentation states for these arguments."""
        return laws.chain(self.documented, setting, self.kind != "sgld", self.fresh)

    def variances(self, setting: laws.Setting) -> np.ndarray | None:
        """Give the stationary variances that it states, ``(dim,)``, if it has any."""
        if self.documented is None:
            return None
        if self.kind == "exact":
            return setting.target
        if self.kind == "thermostat":
            return laws.thermostat(self.documented, setting)
        return self.chain(setting).variance()

    def arguments(self, setting: laws.Setting) -> dict:
        """Translate a setting into the library's arguments."""
        raise NotImplementedError

    def init(self, theta: np.ndarray, seed: int, **given) -> Any:
        """Make a state at θ, ``(copies, dim)``."""
        raise NotImplementedError

    def step(self, state: Any, target: Target, seed: Any) -> Any:
        """Take a step; the same seed gives the same random numbers."""
        raise NotImplementedError

    def position(self, state: Any) -> np.ndarray:
        """Read θ off a state."""
        raise NotImplementedError

    def momentum(self, state: Any) -> np.ndarray | None:
        """Read the momentum off a state, in any unit; None without one."""
        return None

    def save(self, state: Any) -> bytes:
        """Write a state as the library's documentation says."""
        return pickle.dumps(state)

    def load(self, kept: bytes) -> Any:
        """Read a state again."""
        return pickle.loads(kept)
