"""Checkpoints: what is told apart by its content and what is not, and files that are
whole or refused.
"""

import cmath
import collections
import dataclasses
import functools
import hashlib
import itertools
import json
import linecache
import math
import operator
import os
import random
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from booklib.models.gibbs import Gibbs
from sgmc import sample
from sgmc.checkpoints import (
    Checkpoint,
    CheckpointError,
    brief_fingerprint,
    fingerprint,
    replace_file,
)
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD
from sgmc.matrices import Matrix
from sgmc.minibatches import Fresh, Held, Passes
from sgmc.models import Posterior, control_variates
from sgmc.noise import OnlineNoise
from sgmc.other_kernels import Cyclical
from sgmc.posteriors import Bernoulli, LogisticRegression, NetworkPosterior
from sgmc.potentials import Potential
from sgmc.splittings import Splitting
from sgmc.splittings.flows import baoab
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient

SCALE = 2.0


def reads_scale(position):
    return position * SCALE


def calls_another(position):
    return reads_scale(position) + 1


def countdown(number):
    return 0 if number == 0 else countdown(number - 1)


def even(number):
    return number == 0 or odd(number - 1)


def odd(number):
    return number != 0 and even(number - 1)


def scaled(scale):
    return lambda position: position * scale


def falling(scale):
    return lambda step: scale / (1 + step)


def nested(scale):
    def outer(position):
        def inner(x):
            return x * scale

        return inner(position)

    return outer


def with_default(scale):
    def function(position, scale=scale):
        return position * scale

    return function


def with_keyword(scale):
    def function(position, *, scale=scale):
        return position * scale

    return function


def with_attribute(scale):
    def function(position):
        return position * function.scale

    function.scale = scale
    return function


def cached(scale):
    return functools.lru_cache(scaled(scale))


def wrapped(scale):
    inner = scaled(scale)

    @functools.wraps(inner)
    def outer(position):
        return inner(position)

    return outer


class Scaled:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, position):
        return position * self.scale

    def method(self, position):
        return position * self.scale


class WithSlots:
    __slots__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale


class BelowSlots(WithSlots):
    """With a dictionary besides."""


class Point(NamedTuple):
    x: float


class Colour(NamedTuple):
    x: float


@dataclasses.dataclass(frozen=True)
class Setting:
    scale: float


class Owner:
    def __init__(self, scale):
        self.part = Part(self, scale)


class Part:
    def __init__(self, owner, scale):
        self.owner, self.scale = owner, scale


class Module(nn.Module):
    def __init__(self, scale=1.0, weight=0.0, buffer=0.0, persistent=True):
        super().__init__()
        self.scale, self.layer = scale, nn.Linear(2, 2)
        nn.init.constant_(self.layer.weight, weight)
        nn.init.zeros_(self.layer.bias)
        self.register_buffer("running", torch.tensor([buffer]), persistent=persistent)

    def forward(self, x):
        return self.layer(x) * self.scale + self.running


def made_class(scale, other=1):
    """Make a class of one name whose methods differ."""

    class Made(Potential):
        dim = 1

        def energy(self, position):
            return scale * position.pow(2).sum(-1)

        def unused(self):
            return other

    return Made


def class_with(**members):
    return type("Made", (Potential,), {"__module__": __name__, **members})


def large(change=None):
    values = torch.arange(6_000.0)
    if change is not None:
        values[change] += 0.5
    return values


def execute(source, names):
    """Execute a source that can be found again, as a notebook's cell can."""
    file = f"<cell {hash(source)}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    exec(compile(source, file, "exec"), names)


def with_global(value):
    """Make a function that reads a global of its module, which has the given value."""
    names = {
        "LIMIT": value,
        "__name__": "a_module_of_the_users",
        "__builtins__": __builtins__,
    }
    execute("def function(position):\n    return position * LIMIT", names)
    return names["function"]


def with_inner_global(value):
    names = {
        "LIMIT": value,
        "__name__": "a_module_of_the_users",
        "__builtins__": __builtins__,
    }
    execute(
        "def function(position):\n    return [(lambda x: x * LIMIT)(part) for part in "
        "position]",
        names,
    )
    return names["function"]


def compiled_code(source):
    names = {"torch": torch, "__name__": "a_module_of_the_users"}
    execute(f"made = {source}", names)
    return names["made"]


PAIRS = {
    # numbers, words and collections
    "a number and a word": (1, "1"),
    "a number and another type": (1, 1.0),
    "truth and one": (True, 1),
    "two numbers": (1.0, 1.0 + 1e-15),
    "words": ("ab", "ba"),
    "words and bytes": ("a", b"a"),
    "words in lists": (["a", "bc"], ["ab", "c"]),
    "lists in lists": ([[1], 2], [[1, 2]]),
    "a list and a tuple": ([1], (1,)),
    "nothing and no list": (None, []),
    "dictionaries in dictionaries": ({"a": {"b": 2}}, {"a": {}, "b": 2}),
    "keys": ({"a": 1}, {"b": 1}),
    "the order of keys, which for layers is that of their use": (
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
    ),
    "sets": ({1, 2}, {1, 3}),
    "slices": (slice(1), slice(2)),
    "paths": (Path("a"), Path("b")),
    "default dictionaries": (
        collections.defaultdict(int, a=1),
        collections.defaultdict(int, a=2),
    ),
    "deques": (collections.deque([1]), collections.deque([2])),
    "named tuples": (Point(1.0), Point(2.0)),
    "the names of named tuples": (Point(1.0), Colour(1.0)),
    # tensors
    "an entry of many": (large(), large(3_777)),
    "an entry in a dictionary": ({"w": large()}, {"w": large(0)}),
    "shapes": (torch.zeros(2, 3), torch.zeros(3, 2)),
    "dtypes": (torch.zeros(2), torch.zeros(2, dtype=torch.int32)),
    "signs of zero": (torch.tensor(0.0), torch.tensor(-0.0)),
    "arrays": (
        np.arange(6_000),
        np.where(np.arange(6_000) == 4_000, 1, np.arange(6_000)),
    ),
    "the type of an array": (np.zeros(3), np.zeros(3, np.int64)),
    "the shape of an array": (np.zeros((2, 3)), np.zeros((3, 2))),
    "arrays of objects": (np.array([1, None]), np.array([2, None])),
    "numbers of numpy": (np.float64(1.0), np.float32(1.0)),
    "generators": (torch.Generator().manual_seed(0), torch.Generator().manual_seed(1)),
    "sparse tensors": (torch.eye(3).to_sparse(), 2 * torch.eye(3).to_sparse()),
    "conjugates": (torch.tensor([1 + 1j]).conj(), torch.tensor([1 + 1j])),
    # functions
    "constants of closures": (scaled(1.0), scaled(2.0)),
    "constants of nested closures": (nested(1.0), nested(2.0)),
    "constants of lambdas": (lambda x: 1.0 * x, lambda x: 2.0 * x),
    "operations": (lambda x: x.sum(), lambda x: x.mean()),
    "places of a tensor": (lambda x: x[..., 0], lambda x: x[..., 1]),
    "orders of arguments": (
        compiled_code("lambda x, y: x - y"),
        compiled_code("lambda y, x: x - y"),
    ),
    "names of arguments": (
        compiled_code("lambda x, y: x - y"),
        compiled_code("lambda y, x: y - x"),
    ),
    "defaults": (with_default(1.0), with_default(2.0)),
    "defaults by keyword": (with_keyword(1.0), with_keyword(2.0)),
    "attributes of functions": (with_attribute(1.0), with_attribute(2.0)),
    "globals": (with_global(1.0), with_global(2.0)),
    "globals that an inner function reads": (
        with_inner_global(1.0),
        with_inner_global(2.0),
    ),
    "globals that are tensors": (with_global(large()), with_global(large(5))),
    "globals that are functions": (with_global(scaled(1.0)), with_global(scaled(2.0))),
    "arguments of partials": (
        functools.partial(math.pow, 1.0),
        functools.partial(math.pow, 2.0),
    ),
    "keywords of partials": (
        functools.partial(scaled, scale=1.0),
        functools.partial(scaled, scale=2.0),
    ),
    "functions of partials": (
        functools.partial(scaled(1.0), 1),
        functools.partial(scaled(2.0), 1),
    ),
    "functions that are kept": (cached(1.0), cached(2.0)),
    "functions that are wrapped": (wrapped(1.0), wrapped(2.0)),
    "functions of PyTorch": (torch.abs, torch.sin),
    "methods of tensors": (torch.Tensor.abs, torch.Tensor.sin),
    "functions of modules of one name": (math.sin, cmath.sin),
    "universal functions": (np.sin, np.cos),
    "getters": (operator.itemgetter(0), operator.itemgetter(1)),
    "methods of lists": ([1].index, [2].index),
    # objects
    "state": (Scaled(1.0), Scaled(2.0)),
    "bound methods of objects with other state": (
        Scaled(1.0).method,
        Scaled(2.0).method,
    ),
    "slots": (WithSlots(1.0), WithSlots(2.0)),
    "slots below": (BelowSlots(1.0), BelowSlots(2.0)),
    "data classes": (Setting(1.0), Setting(2.0)),
    "parts that know their owner": (Owner(1.0), Owner(2.0)),
    "code of methods": (made_class(1.0)(), made_class(2.0)()),
    "code of methods that nothing seems to call": (
        made_class(1.0)(),
        made_class(1.0, other=2)(),
    ),
    "classes": (made_class(1.0), made_class(2.0)),
    "objects that a function makes": (
        with_global(made_class(1.0)),
        with_global(made_class(2.0)),
    ),
    "constants of classes": (class_with(scale=1.0)(), class_with(scale=2.0)()),
    "properties": (
        class_with(scale=property(scaled(1.0)))(),
        class_with(scale=property(scaled(2.0)))(),
    ),
    "static methods": (
        class_with(scale=staticmethod(scaled(1.0)))(),
        class_with(scale=staticmethod(scaled(2.0)))(),
    ),
    "class methods": (
        class_with(scale=classmethod(scaled(1.0)))(),
        class_with(scale=classmethod(scaled(2.0)))(),
    ),
    "derived values": (
        class_with(scale=functools.cached_property(scaled(1.0)))(),
        class_with(scale=functools.cached_property(scaled(2.0)))(),
    ),
    "bases": (
        type("Below", (class_with(scale=1.0),), {"__module__": __name__})(),
        type("Below", (class_with(scale=2.0),), {"__module__": __name__})(),
    ),
    # networks
    "parameters": (Module(), Module(weight=1.0)),
    "buffers": (Module(), Module(buffer=1.0)),
    "buffers that are not persistent": (
        Module(persistent=False),
        Module(buffer=1.0, persistent=False),
    ),
    "attributes of networks": (Module(), Module(scale=2.0)),
    "training and evaluation": (Module(), Module().eval()),
    "training of a layer": (
        nn.Sequential(nn.Dropout(), nn.Dropout()),
        nn.Sequential(nn.Dropout().eval(), nn.Dropout()),
    ),
    "layers": (nn.Sequential(nn.Tanh()), nn.Sequential(nn.ReLU())),
    "orders of layers": (
        nn.Sequential(collections.OrderedDict(a=nn.Tanh(), b=nn.ReLU())),
        nn.Sequential(collections.OrderedDict(b=nn.ReLU(), a=nn.Tanh())),
    ),
    # kernels and potentials
    "step sizes": (SGHMC(0.1, 1.0), SGHMC(0.1000001, 1.0)),
    "kernels": (HMC(0.1, 3), NUTS(0.1)),
    "masses": (HMC(0.1, 3, mass=large() + 1), HMC(0.1, 3, mass=large(5_999) + 1)),
    "the constant of a schedule": (
        SGLD(lambda t: 0.1 / (1 + t)),
        SGLD(lambda t: 0.1 / (2 + t)),
    ),
    "schedules of SGHMC": (
        SGHMC(lambda t: 0.1 / (1 + t), 1.0),
        SGHMC(lambda t: 0.1 / (2 + t), 1.0),
    ),
    "the closure of a schedule": (SGLD(falling(0.1)), SGLD(falling(0.2))),
    "online estimates": (
        SGHMC(0.1, 1.0, OnlineNoise()),
        SGHMC(0.1, 1.0, OnlineNoise(averaging=0.5)),
    ),
    "inner kernels": (Gibbs(SGHMC(0.1, 1.0)), Gibbs(SGHMC(0.2, 1.0))),
    "what makes inner kernels": (
        Cyclical(lambda rate: SGLD(rate), 0.1, 9),
        Cyclical(lambda rate: SGLD(rate / 2), 0.1, 9),
    ),
    "flows": (Splitting(baoab(0.1, 1.0)), Splitting(baoab(0.1, 2.0))),
    "noise": (NoisyGradient(DoubleWell(), 4.0), NoisyGradient(DoubleWell(), 4.1)),
    "covariances": (Gaussian(torch.eye(2)), Gaussian(2 * torch.eye(2))),
    "minibatch rules": (Fresh(), Fresh(replacement=True)),
    "rules that are held": (Held(2), Held(3)),
    "rules within": (Held(2, Fresh()), Held(2, Passes())),
}


@pytest.mark.parametrize("name", PAIRS)
def test_what_differs_is_told_apart(name):
    first, second = PAIRS[name]
    assert fingerprint(first) != fingerprint(second)
    assert fingerprint(first) == fingerprint(first) and fingerprint(
        second
    ) == fingerprint(second)
    within = [fingerprint({"settings": [1, (thing, 2)]}) for thing in (first, second)]
    assert within[0] != within[1]


def posterior(scale=1.0, change=None, batch_size=3, minibatches=None):
    data = torch.linspace(-1, 1, 6_000)
    if change is not None:
        data[change] += 1e-6
    return Posterior(
        lambda position: -position.pow(2).sum(-1) / scale,
        lambda position, x: -((x - position) ** 2),
        (data,),
        dim=1,
        batch_size=batch_size,
        minibatches=minibatches,
    )


def test_posteriors_are_told_apart_by_all_that_they_depend_on():
    names = {"0.weight": 1.0, "0.bias": 1.0}

    def network(seed=0, targets=0, variance=1.0, **settings):
        torch.manual_seed(seed)
        return NetworkPosterior(
            nn.Sequential(nn.Linear(2, 3)),
            torch.ones(7, 2),
            torch.arange(7) % (3 - targets),
            variance,
            **settings,
        )

    with torch.random.fork_rng():
        different = [
            posterior(),
            posterior(2.0),
            posterior(change=4_321),
            posterior(batch_size=4),
            posterior(batch_size=None),
            posterior(minibatches=Passes()),
            control_variates(posterior(), torch.zeros(1)),
            control_variates(posterior(), torch.ones(1)),
            network(),
            network(targets=1),
            network(variance=2.0),
            network(variance=names | {"0.bias": 2.0}),
            network(batch_size=3),
            LogisticRegression(torch.ones(4, 1), torch.ones(4)),
            LogisticRegression(torch.ones(4, 1), torch.zeros(4)),
        ]
        seen = [fingerprint(each) for each in different]
        assert len(set(seen)) == len(different)
        # what the module happened to hold is not used
        assert fingerprint(network(seed=1)) == fingerprint(network())
        again = [
            fingerprint(each)
            for each in (
                posterior(),
                network(),
                control_variates(posterior(), torch.ones(1)),
            )
        ]
    assert again == [seen[0], seen[8], seen[7]]


def same():
    """Make things that are equal in content whenever they are made."""
    return {
        "closures": scaled(1.5),
        "nested": nested(1.5),
        "a function that calls itself": countdown,
        "functions that call each other": (even, odd),
        "a function that calls another": calls_another,
        "partial": functools.partial(scaled, 1.5),
        "bound": Scaled(1.5).method,
        "kept": cached(1.5),
        "module": Module(),
        "recurrent": nn.LSTM(2, 2).requires_grad_(False).apply(zero),
        "class": made_class(1.5)(),
        "owner": Owner(1.5),
        "named": Point(1.5),
        "slots": BelowSlots(1.5),
        "set": {"a", "b", "c", "d", "e", "f"},
        "frozen set in code": lambda x: x in {"a", "b", "c", "d", "e", "f"},
        "kernel": SGHMC(0.1, torch.ones(2), OnlineNoise()),
        "schedule": SGLD(lambda t: 0.1 / (1 + t)),
        "posterior": posterior(),
        "regression": LogisticRegression(torch.ones(4, 1), torch.ones(4)),
        "calm": control_variates(posterior(), torch.ones(1)),
        "likelihood": Bernoulli(),
        "tensors": {"w": large(), "b": np.arange(5)},
        "generator": torch.Generator().manual_seed(3),
    }


def all_fingerprints():
    return json.dumps({name: fingerprint(thing) for name, thing in same().items()})


def zero(module):
    for parameter in module.parameters():
        nn.init.zeros_(parameter)


@pytest.mark.parametrize("name", same())
def test_equal_content_is_the_same_whoever_holds_it(name):
    first, second = same()[name], same()[name]
    assert fingerprint(first) == fingerprint(second)
    # whether once or twice in memory
    assert fingerprint([first, first]) == fingerprint([first, second])
    assert fingerprint((first, 1, [second])) == fingerprint((second, 1, [second]))


@pytest.mark.slow
def test_equal_content_is_the_same_in_another_process():
    """With another seed of the hashes of words."""
    root, seed = (
        Path(__file__).parents[2],
        "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1",
    )
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "from tests.core import test_checkpoints as here; "
            "print(here.all_fingerprints())",
        ],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert said.stdout == all_fingerprints() + "\n"


def test_what_is_only_derived_does_not_count():
    matrix, fresh = Matrix(torch.tensor([1.0, 4.0])), Matrix(torch.tensor([1.0, 4.0]))
    matrix.root, matrix.inverse, matrix.eigenvalues
    assert fingerprint(matrix) == fingerprint(fresh)
    for make in (
        lambda: HMC(0.1, 2, mass=torch.tensor([1.0, 4.0])),
        lambda: SGHMC(0.1, torch.tensor([1.0, 4.0])),
        lambda: SGHMC(0.1, torch.tensor([1.0, 4.0]), OnlineNoise()),
        lambda: NUTS(0.1),
        lambda: Splitting(baoab(0.1, torch.tensor([1.0, 4.0]))),
        lambda: SGLD(0.01, noise_estimate=torch.tensor([0.5, 0.1])),
        lambda: Cyclical(SGLD, 0.01, 9),
    ):
        used, fresh = make(), make()
        state = used.init(
            DoubleWell(2), torch.zeros(1, 2), torch.Generator().manual_seed(0)
        )
        used.step(DoubleWell(2), state, torch.Generator().manual_seed(0))
        assert fingerprint(used) == fingerprint(fresh), type(used).__name__


def test_a_run_does_not_change_what_it_depends_on():
    target = posterior(minibatches=Passes())
    before = fingerprint(target)
    kernel = SGHMC(0.01, 1.0, OnlineNoise())
    state = kernel.init(target, torch.zeros(2, 1), torch.Generator().manual_seed(0))
    kernel.step(target, state, torch.Generator().manual_seed(0))
    assert fingerprint(target) == before


def test_globals_count_that_are_read_and_no_others():
    """A global that shares its name with an attribute, or with a variable of the
    function's own, is not read.
    """
    source = (
        "def function(position):\n    limit = position.scale\n    return limit * "
        "position"
    )
    names = [
        {"scale": value, "limit": value, "__name__": "a_module"} for value in (1.0, 2.0)
    ]
    for each in names:
        execute(source, each)
    assert fingerprint(names[0]["function"]) == fingerprint(names[1]["function"])


def test_what_many_functions_share_is_hashed_once():
    """Forty functions, each of which calls the two before: by their paths there would
    be a hundred million of them.
    """
    names = {"__name__": "a_module", "f0": scaled(1.0), "f1": scaled(2.0)}
    for number in range(2, 42):
        execute(
            f"def f{number}(x):\n    return f{number - 1}(x) + f{number - 2}(x)", names
        )
    first = fingerprint(names["f41"])
    names["f0"] = scaled(3.0)
    assert fingerprint(names["f41"]) != first


class Iterator:
    def __iter__(self):
        return self

    def __next__(self):
        return 1


UNTELLABLE = {
    "TextIOWrapper": lambda: open(os.devnull),
    "generator": lambda: (i for i in range(3)),
    "list_iterator": lambda: iter([1, 2]),
    "count": lambda: itertools.count(),
    "Iterator": Iterator,
    "lock": threading.Lock,
    "module": lambda: types.ModuleType("made_by_hand"),
    "memoryview": lambda: memoryview(b"abc"),
}


@pytest.mark.parametrize("kind", UNTELLABLE)
def test_what_cannot_be_told_is_refused_with_its_name(kind):
    thing = UNTELLABLE[kind]()
    message = rf"potential.*{kind}.*checkpoint"
    for holder in (
        thing,
        {"a": [thing]},
        Scaled(thing),
        scaled(thing),
        functools.partial(scaled, thing),
        with_global(thing),
    ):
        with pytest.raises(ValueError, match=message):
            fingerprint(holder, "potential")


def test_a_module_of_the_users_own_is_its_file(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "density_of_the_user.py").write_text("def density(x):\n    return x\n")
    import density_of_the_user as module

    first = fingerprint(scaled(module))
    (tmp_path / "density_of_the_user.py").write_text(
        "def density(x):\n    return 2 * x\n"
    )
    assert fingerprint(scaled(module)) != first
    assert fingerprint(scaled(torch)) != fingerprint(scaled(np))


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """A module of the user's own, in a package."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "package_of_the_user").mkdir()
    (tmp_path / "package_of_the_user" / "__init__.py").touch()
    file = tmp_path / "package_of_the_user" / "settings.py"
    file.write_text("SCALE, CALLS, TABLE = 1.0, 0, {'scale': 1.0}\n")
    from package_of_the_user import settings

    yield settings
    for name in [name for name in sys.modules if name.startswith("package_of_the")]:
        del sys.modules[name]


READERS = """
import package_of_the_user
import package_of_the_user.settings as known_as
from package_of_the_user import settings


def of_a_global(x):
    return settings.SCALE * x


def by_another_name(x):
    return known_as.SCALE * x


def through_a_package(x):
    return package_of_the_user.settings.SCALE * x


def of_a_collection(x):
    return settings.TABLE["scale"] * settings.SCALE * x


def imported_within(x):
    from package_of_the_user.settings import SCALE

    return SCALE * x


def imported_as_a_module_within(x):
    import package_of_the_user.settings as within

    return within.SCALE * x


def imported_by_a_name_within(x):
    from package_of_the_user import settings as mine

    return mine.SCALE * x


def enclosed(module):
    return lambda x: module.SCALE * x


enclosed = enclosed(settings)


class Held:
    def __init__(self):
        self.settings = settings

    def __call__(self, x):
        return self.settings.SCALE * x


held = Held()
"""


def test_values_of_a_module_of_the_users_own_count_that_are_read(
    settings, tmp_path, monkeypatch
):
    """Set to others than its file has, as in a notebook; and no value that a function
    does not read, such as a count of its calls.
    """
    (tmp_path / "readers_of_the_user.py").write_text(READERS)
    import readers_of_the_user as readers

    names = (
        "of_a_global by_another_name through_a_package of_a_collection enclosed held"
    )
    names += " imported_within imported_as_a_module_within imported_by_a_name_within"
    things = {name: getattr(readers, name) for name in names.split()}
    first = {name: fingerprint(thing) for name, thing in things.items()}
    assert [thing(2.0) for thing in things.values()] == [2.0] * len(things)
    settings.CALLS += 1
    again = {name: fingerprint(thing) for name, thing in things.items()}
    assert {name for name in first if first[name] != again[name]} == {"held"}
    settings.CALLS = 0
    settings.SCALE = 3.0
    assert [thing(2.0) for thing in things.values()] == [6.0] * len(things)
    for name, thing in things.items():
        assert fingerprint(thing) != first[name], name
    settings.SCALE, settings.TABLE["scale"] = 1.0, 2.0
    again = {name: fingerprint(thing) for name, thing in things.items()}
    assert {name for name in first if first[name] != again[name]} == {"of_a_collection"}
    del sys.modules["readers_of_the_user"]


NEIGHBOURS = """
from . import settings as beside


def imported_from_the_package_within(x):
    from .settings import SCALE

    return SCALE * x


class Held:
    def __init__(self):
        self.settings = beside


held = Held()
"""


def test_values_that_a_package_imports_within_itself_count(settings, tmp_path):
    (tmp_path / "package_of_the_user" / "neighbours.py").write_text(NEIGHBOURS)
    from package_of_the_user import neighbours

    function, held = neighbours.imported_from_the_package_within, neighbours.held
    settings._OFFSET = 2.0
    first, before = fingerprint(function), fingerprint(held)
    settings.SCALE = 3.0
    assert fingerprint(function) != first
    # of an object's module also those that are meant for nobody else
    settings.SCALE, settings._OFFSET = 1.0, 3.0
    assert fingerprint(function) == first and fingerprint(held) != before


def test_a_run_does_not_go_on_after_a_value_of_a_module_changed(settings, tmp_path):
    class Mine(Potential):
        def energy(self, position):
            from package_of_the_user import settings

            return settings.SCALE * position.square().sum(-1)

    run = HMC(0.1, 2), Mine(), torch.zeros(2, 1), 3
    sample(*run, checkpoint=Checkpoint(tmp_path / "run.pt"))
    sample(*run, checkpoint=Checkpoint(tmp_path / "run.pt"))
    settings.SCALE = 2.0
    with pytest.raises(CheckpointError, match="with another potential"):
        sample(*run, checkpoint=Checkpoint(tmp_path / "run.pt"))


def test_a_brief_look_tells_what_it_can():
    x = torch.zeros(1_000)
    changed = x.clone()
    changed[-1] = 1.0
    looks = [brief_fingerprint(each) for each in (x, x.clone(), changed)]
    assert looks[0] == looks[1] != looks[2] != "" and len(set(looks)) == 2
    assert looks[0] == fingerprint(x)
    assert brief_fingerprint(iter(x)) == brief_fingerprint([0.0] * 10**5 + [1.0]) == ""
    assert brief_fingerprint([0.0] * 10**5) != ""


def test_a_brief_look_at_much_data_sees_whole_numbers(monkeypatch):
    """All bytes of some: the last of a small whole number in float32 is always 0."""
    monkeypatch.setattr("sgmc.checkpoints.fingerprints._BYTES", 2**17)
    for x in (torch.zeros(2**18), np.zeros(2**18, np.float32)):
        other = x + 3
        assert brief_fingerprint(x) == brief_fingerprint(x + 0) != fingerprint(x)
        assert brief_fingerprint(x) != brief_fingerprint(other)


# Files


CONTENT = {
    "done": 3,
    "seconds": 0.5,
    "state": [torch.arange(50.0), None, 7],
    "samples": {"": torch.ones(4, 2)},
}


def written(path, settings, content=CONTENT):
    checkpoint = Checkpoint(path)
    checkpoint.open(settings)
    checkpoint.save(content)
    return path


def saved(path, **settings):
    return written(path, {"seed": 0, **settings})


def test_what_was_saved_is_loaded(tmp_path):
    path = saved(tmp_path / "new" / "folder" / "run.pt")
    content = Checkpoint(path).open({"seed": 0})
    assert (
        content["done"] == 3
        and content["seconds"] == 0.5
        and content["state"][1:] == [None, 7]
    )
    assert torch.equal(content["state"][0], torch.arange(50.0)) and list(
        path.parent.iterdir()
    ) == [path]
    assert Checkpoint(tmp_path / "none.pt").open({"seed": 0}) is None


def test_a_bit_that_flipped_anywhere_is_noticed(tmp_path):
    path = saved(tmp_path / "run.pt")
    whole, chance = path.read_bytes(), random.Random(0)
    places = [
        0,
        1,
        len(whole) - 1,
        len(whole) - 32,
        len(whole) - 33,
        *(chance.randrange(len(whole)) for _ in range(60)),
    ]
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        with pytest.raises(
            CheckpointError,
            match=r"run\.pt.*corrupt.*ValueError",
        ):
            Checkpoint(path).open({"seed": 0})
        assert path.read_bytes() == changed  # left as it is
    path.write_bytes(whole)
    assert Checkpoint(path).open({"seed": 0})["done"] == 3


def test_a_file_with_a_checksum_but_of_something_else_is_refused(tmp_path):
    for content in (b"", b"something else"):
        (tmp_path / "run.pt").write_bytes(content + hashlib.sha256(content).digest())
        with pytest.raises(CheckpointError, match="corrupt"):
            Checkpoint(tmp_path / "run.pt").open({"seed": 0})


def test_settings_that_differ_are_named(tmp_path):
    path = saved(tmp_path / "run.pt", kernel=SGHMC(0.1, 1.0), thinning=1)
    with pytest.raises(
        CheckpointError,
        match=r"run\.pt.*\bseed.*kernel",
    ):
        Checkpoint(path).open({"seed": 1, "kernel": SGHMC(0.2, 1.0), "thinning": 1})
    with pytest.raises(CheckpointError, match=r"\bburn_in\b"):
        Checkpoint(path).open(
            {"seed": 0, "kernel": SGHMC(0.1, 1.0), "thinning": 1, "burn_in": 2}
        )
    with pytest.raises(CheckpointError, match="with another thinning;"):
        Checkpoint(path).open({"seed": 0, "kernel": SGHMC(0.1, 1.0)})


def test_a_file_that_may_not_be_read_is_not_called_corrupt(tmp_path, monkeypatch):
    written(tmp_path / "run.pt", {"seed": 0}, {})

    def refuse(*_, **__):
        raise PermissionError

    monkeypatch.setattr(torch, "load", refuse)
    with pytest.raises(PermissionError):
        Checkpoint(tmp_path / "run.pt").open({"seed": 0})


@pytest.mark.parametrize(
    "error",
    [OSError("disk full"), KeyboardInterrupt()],
    ids=lambda error: type(error).__name__,
)
def test_a_stop_in_the_middle_of_writing_leaves_the_old_file(error, tmp_path):
    path = tmp_path / "run.pt"
    path.write_text("old")

    def write(unfinished):
        unfinished.write_text("ne")
        assert path.read_text() == "old"
        raise error

    with pytest.raises(type(error)):
        replace_file(path, write)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    replace_file(path, lambda unfinished: unfinished.write_text("new"))
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/dev/full", "path '/dev/full' .*device"),
        ("a" * 250, "path 'a+' cannot be the name of a file"),
        ("a\0b", "path .* cannot be the name of a file"),
    ],
    ids=["a device", "a long name", "a null byte"],
)
def test_what_cannot_be_a_file_is_refused_before_the_run(
    path, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        Checkpoint(path)


def test_another_pytorch_is_told(tmp_path, monkeypatch):
    path = saved(tmp_path / "run.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Checkpoint(path).open({"seed": 0})
    monkeypatch.setattr(torch, "__version__", "1.0")
    with pytest.warns(UserWarning, match=r"PyTorch .* this is PyTorch 1\.0"):
        assert Checkpoint(path).open({"seed": 0})["done"] == 3
