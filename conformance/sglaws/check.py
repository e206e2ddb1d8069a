"""Fourteen tests of a sampler, with one set of settings for all libraries."""

import copy
import pickle
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from . import laws
from .adapter import Adapter
from .laws import Setting
from .measure import Path, compare, furthest, moments, probe, z_test

#: what a square says, gravest first
SIGNS = {
    "law": "✗",  # another distribution than its documentation states
    "surprise": "△",  # as documented, and far from the textbook's, or from the target
    "interface": "○",  # an argument, state, copy or schedule fails
    "no defaults": "–",
    "right": "●",
    "blank": "",  # it has nothing that could be tested
}
CLOSE = 0.05  # how much further from the target than the textbook's is no surprise
MEASURED = 0.25  # the same of a law that only measurements show
V, EXAMPLES = 8.0, 50
#: of every kind of sampler, the settings that all libraries share; a correction by
#: rejections claims to be exact at any step, so it gets a large one, on which it
#: rejects, and little friction, by which a momentum that was kept shows
STANDARD = {
    "sgld": Setting(step=0.05),
    "sghmc": Setting(step=0.1),
    "thermostat": Setting(step=0.1),
    "exact": Setting(step=0.9, friction=0.1, curvature=(1.0, 2.0)),
}
#: of each test of a distribution, what an adapter must offer, and what changes
CHANGES: dict[str, tuple[set[str], Callable[[Adapter, Setting], Setting]]] = {
    "exact gradient": (set(), lambda _, s: s),
    "gradient noise": (set(), lambda _, s: s._replace(variance=V)),
    "temperature": ({"temperature"}, lambda _, s: s._replace(temperature=0.25)),
    "friction": ({"friction"}, lambda _, s: s._replace(friction=3 * s.friction)),
    "mass": ({"mass"}, lambda _, s: s._replace(mass=4.0)),
    "noise estimate": (
        {"estimate"},
        lambda adapter, s: s._replace(
            variance=V,
            estimate=s.step * V / 2,
            temperature=0.5 if "temperature" in adapter.offers else 1.0,
        ),
    ),
    "uneven curvature": (
        set(),
        lambda _, s: s._replace(curvature=(0.1, 0.5, 2.0, 8.0 if s.step < 0.5 else 4)),
    ),
    "mean of the loss": ({"temperature"}, lambda adapter, s: _mean(adapter, s)),
}
TESTS = (
    *CHANGES,
    "front door",
    "two states",
    "save and load",
    "copy",
    "later parameters",
    "schedule",
)


def _mean(adapter: Adapter, s: Setting) -> Setting:
    """Divide U by the number of examples, with the same chain in other numbers."""
    curvature, root = tuple(a / EXAMPLES for a in s.curvature), EXAMPLES**0.5
    step = s.step * (EXAMPLES if adapter.kind == "sgld" else root)
    new = s._replace(curvature=curvature, temperature=1 / EXAMPLES, step=step)
    return new._replace(friction=s.friction / root)


class Square(NamedTuple):
    """The outcome of one test of one sampler."""

    sampler: str
    test: str
    sign: str  #: a key of `SIGNS`
    ratio: float | None  #: variance over the target's, in the coordinate furthest off
    text: str
    numbers: dict  #: F, Q, distances, moments: what the sign rests on

    @property
    def failed(self) -> bool:
        """Whether this is a defect, whatever its size."""
        return self.sign in ("law", "interface")


def check(adapter: Adapter, tests: Iterable[str] = TESTS) -> list[Square]:
    """Put a sampler through the tests; an exception is an outcome, too."""
    return [check_one(adapter, test) for test in tests]


def check_one(adapter: Adapter, test: str) -> Square:
    """Put a sampler through one test."""
    try:
        sign, ratio, text, numbers = _check(adapter, test)
    except Exception as error:  # whatever a library raises
        text = f"{type(error).__name__}: {error}"
        sign, ratio, text, numbers = "interface", None, text[:300], {}
    if sign == "right" and test in adapter.surprises:
        sign, text = "surprise", adapter.surprises[test]
    return Square(adapter.name, test, sign, ratio, text, numbers)


def _check(adapter: Adapter, test: str) -> tuple[str, float | None, str, dict]:
    if test in adapter.blank:
        return "blank", None, adapter.blank[test], {}
    if test == "front door":
        return _front_door(adapter)
    if test not in CHANGES:
        return ENGINEERING[test](adapter)
    needed, change = CHANGES[test]
    if not needed <= adapter.offers:
        return "blank", None, f"no argument for the {min(needed)}", {}
    setting = change(adapter, STANDARD[adapter.kind])
    return of_a_law(adapter, setting, test not in adapter.undocumented)


def of_a_law(
    adapter: Adapter, setting: Setting, documented: bool = True
) -> tuple[str, float | None, str, dict]:
    """Judge a step by its F and Q, or where it is not linear by its second moments."""
    target = setting.target
    law = adapter.variances(setting) if documented else None
    linear = adapter.linear
    if linear:
        found = probe(adapter, setting)
        linear, measured = found.linear, found.chain.variance() / target
        numbers = {"F": found.chain.transition.tolist(), "samples": found.samples}
        numbers["Q"] = found.chain.noise.tolist()
    if linear and law is not None:
        distance = compare(found, adapter.chain(setting))
        far, numbers = distance.far, numbers | distance._asdict()
    elif linear:
        far = False
    else:
        seen = moments(adapter, setting)
        measured = seen.second / target
        if law is None:  # without a law, from the target and from the mode
            mode = moments(adapter, setting, copies=500, at_mode=True)
            both = (measured, mode.second / target)
            measured = max(both, key=lambda x: _distance(x).max())
        numbers = {name: value.tolist() for name, value in seen._asdict().items()}
        numbers["z"] = None if law is None else z_test(seen, law)
        far = law is not None and not numbers["z"] <= 5
    if far:
        worst = _distance(measured * target / law).argmax()
        ratio, stated = float(measured[worst]), (law / target)[worst]
        digits = 3 if f"{ratio:.3g}" != f"{stated:.3g}" else 7
        text = f"{ratio:.{digits}g} of the target, stated {stated:.{digits}g}"
        return "law", ratio, text, numbers
    ratio = measured if law is None else law / target
    best = _textbook(adapter, setting) / target
    close = MEASURED if law is None else CLOSE
    if (_distance(ratio) - _distance(best)).max() > np.log1p(close):
        text = f"{furthest(ratio):.3g} of the target, the textbook {furthest(best):.3g}"
        return "surprise", furthest(ratio), text, numbers
    return "right", furthest(ratio), "", numbers


def _textbook(adapter: Adapter, setting: Setting) -> np.ndarray:
    """Give the variances of the textbook's algorithm of a sampler's kind."""
    if adapter.kind == "exact":
        return setting.target
    if adapter.kind == "thermostat":
        return laws.thermostat(laws.kick_first, setting)
    step = laws.sgld if adapter.kind == "sgld" else laws.kick_first
    return laws.chain(step, setting, adapter.kind != "sgld").variance()


def _distance(ratio: np.ndarray) -> np.ndarray:
    return abs(np.log(np.clip(np.nan_to_num(ratio, nan=np.inf), 1e-9, 1e9)))


#: a unit Gaussian, and the posterior of a thousand unit observations
DOORS = ((1.0,), (1_000.0,))


def _front_door(adapter: Adapter) -> tuple[str, float | None, str, dict]:
    """Look at the variance at the defaults, from the mode, with an exact gradient."""
    if adapter.at_defaults is None:
        return "no defaults", None, "the step size has no default", {}
    ratios, far = [], False
    for curvature in DOORS:
        setting = adapter.at_defaults
        if callable(setting):
            variance = setting(curvature)
        elif adapter.linear:
            setting = setting._replace(curvature=curvature)
            found = probe(adapter, setting, adapter.required, samples=100_000)
            variance = found.chain.variance()
            if adapter.documented is not None:
                far |= compare(found, adapter.chain(setting)).far
        else:
            setting = setting._replace(curvature=curvature)
            seen = moments(adapter, setting, adapter.required, copies=500, at_mode=True)
            variance = seen.second
        ratios.append(furthest(variance * np.array(curvature)))
    text = "; ".join(
        f"{ratio:.3g} of the variance 1/{curvature[0]:g}"
        for ratio, curvature in zip(ratios, DOORS, strict=True)
    )
    ratio = min(ratios, key=lambda x: _distance(np.array(x)))
    near = 0.5 <= ratio <= 2
    sign = "law" if far else "right" if near else "surprise"
    return sign, ratio, text, {"ratios": ratios}


def _begin(adapter: Adapter, setting: Setting | None = None, seed: int = 1) -> Path:
    setting = setting or STANDARD[adapter.kind]
    return Path(adapter, setting, np.ones((2, len(setting.curvature))), seed=seed)


def _walk(path: Path, steps: int, seed: int) -> np.ndarray:
    path.seed = seed
    return [path.step(1.0) for _ in range(steps)][-1]


def _same(one: np.ndarray, other: np.ndarray, what: str):
    difference = float(abs(one - other).max())
    numbers = {"difference": difference}
    if difference == 0:
        return "right", None, "", numbers
    return "interface", None, f"{what}: {difference:.2g} apart", numbers


def _two_states(adapter: Adapter):
    """A chain alone, and in turns with another one of other arguments."""
    setting = STANDARD[adapter.kind]
    alone = _walk(_begin(adapter), 5, 10)
    first, other = _begin(adapter), _begin(adapter, setting._replace(step=0.02), 7)
    for seed in range(10, 15):
        found = _walk(first, 1, seed)
        _walk(other, 1, 100 + seed)
    outcome = _same(alone, found, "a chain, alone and beside another one")
    if outcome[0] != "right":
        return outcome
    if (alone == _walk(_begin(adapter, seed=3), 5, 60)).all():
        return "interface", None, "another seed changes nothing", {}
    return _same(alone, _walk(_begin(adapter), 5, 10), "a later chain and the first")


def _again(adapter: Adapter, means: dict[str, Callable[[Adapter, Any], Any]]):
    """Compare how a state goes on with what another way of having it does."""
    for what, again in means.items():
        path = _begin(adapter)
        _walk(path, 5, 10)
        other = copy.copy(path)
        other.state = again(adapter, path.state)
        moved = _walk(other, 3, 50)  # first, so that nothing of it may be the original
        outcome = _same(_walk(path, 3, 50), moved, what)
        if outcome[0] != "right":
            return outcome
    return outcome


def _later(adapter: Adapter):
    """Parameters that are added after some steps move (`add` of an adapter)."""
    if not hasattr(adapter, "add"):
        return "blank", None, "it has no groups of parameters", {}
    path = _begin(adapter)
    _walk(path, 3, 10)
    moved = adapter.add(path.state, np.ones((2, 2)), 20)
    if abs(moved - 1).min() > 0:
        return "right", None, "", {}
    return "interface", None, "parameters added later do not move", {}


def _schedule(adapter: Adapter):
    """Each step uses the step size that a schedule says (`scheduled` of an adapter)."""
    if not hasattr(adapter, "scheduled"):
        return "blank", None, "its caller passes the step size", {}
    if not adapter.linear:
        return "blank", None, "its step depends on the steps before", {}
    setting = STANDARD[adapter.kind]
    sizes = [setting.step / (1 + k) for k in range(5)]
    theta, found, asked = np.ones((1, len(setting.curvature))), [], []

    def push(make, steps):
        """What ζ = 1 in the last step adds to position and momentum."""
        ends = []
        for noise in (0.0, 1.0):
            path = Path(adapter, setting, theta)
            path.state = make()
            path.seed = 30
            for k in range(steps):
                end = path.step(noise * (k == steps - 1))
            ends.append(end)
        return abs(ends[1] - ends[0]).max()

    for k, size in enumerate(sizes):
        given = adapter.arguments(setting._replace(step=size))
        found.append(push(lambda: adapter.scheduled(theta, 0, sizes), k + 1))
        asked.append(push(lambda given=given: adapter.init(theta, 0, **given), 1))
    off = max(abs(x / y - 1) for x, y in zip(found, asked, strict=True))
    numbers = {"found": [float(x) for x in found], "asked": [float(x) for x in asked]}
    if off < 1e-4:
        return "right", None, "", numbers
    return "interface", None, f"step sizes are up to {off:.2g} off", numbers


LOADED = {"a loaded state": lambda adapter, state: adapter.load(adapter.save(state))}
COPIED = {
    "a deepcopy": lambda _, state: copy.deepcopy(state),
    "a pickled copy": lambda _, state: pickle.loads(pickle.dumps(state)),
}
ENGINEERING = {
    "two states": _two_states,
    "save and load": lambda adapter: _again(adapter, LOADED),
    "copy": lambda adapter: _again(adapter, COPIED),
    "later parameters": _later,
    "schedule": _schedule,
}
