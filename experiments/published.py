"""What papers and reports say of their settings, with the place, held against what our
experiments run.

An entry of :data:`PUBLISHED` has what one source says of one run, in the words of a
:class:`~experiments.plan.Plan`, and names what we changed on purpose, to which value,
and why. All else has to be the same: :func:`compare` says where it is not, of the plans
in the code or of those that the stored results have."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import NamedTuple

from torch import nn

from experiments.plan import Plan

# Experiments whose runs are plans.
WITH_PLANS = (
    "mnist",
    "falling",
    "noise",
    "report",
    "figure5",
    "figure5_around",
    "fashion",
    "fashion_reported",
)
WITH_PLANS += ("steps", "held", "cifar", "cifar_hour", "sgnuts", "trees")
Values = dict[str, tuple]  # of each setting, those that are tried


class Tried(tuple):
    """Several values of a setting that were tried."""


class Said(NamedTuple):
    """A setting as it is published."""

    value: object  #: what every run of the method has, or what was :class:`Tried`
    place: str  #: page, section or file


class Changed(NamedTuple):
    """A setting that we run otherwise, on purpose."""

    value: object
    why: str


class Published(NamedTuple):
    """What one source says of one run."""

    experiment: str  #: ours that runs it
    method: str  #: what that calls it
    source: str  #: key of the bibliography
    settings: Mapping[str, Said]
    changed: Mapping[str, Changed] = MappingProxyType({})


class Row(NamedTuple):
    """A setting, published and ours."""

    name: str
    published: object
    place: str
    ours: tuple
    expected: object  #: the published value, or what it is changed to
    verdict: str  #: one of :data:`VERDICTS`


VERDICTS = (
    "the same",
    "more tried",  # besides what was published
    "changed",  # on purpose
    "not recorded",  # in a file that is older than the setting
    "different",  # without a reason
    "changed back",  # so that the reason is of no more use
)


def said(place: str, **settings: object) -> dict[str, Said]:
    """Say at which place settings are published.

    Example:
        >>> said("p. 10", batch_size=500)
        {'batch_size': Said(value=500, place='p. 10')}
    """
    return {name: Said(value, place) for name, value in settings.items()}


def of_plans(
    plans: Iterable[Plan | Mapping],
    examples: int | None,
    network: nn.Module | None = None,
) -> Values:
    """List the values that plans have of each setting; of plans from an old file, only
    those that it has.

    Derived are ``examples``, N; ``rate``, the learning rate ηN for a mean over the
    data; and ``stretch``, the time εm of a sample. A tree draws a momentum of its own,
    so that its ``resample_every`` is 1.

    Example:
        >>> values = of_plans([Plan(1e-4), Plan(1e-3)], 1_000)
        >>> values["learning_rate"], values["rate"], values["batch_size"]
        ((0.0001, 0.001), (0.1, 1.0), (500,))
    """
    rows = [plan if isinstance(plan, Mapping) else asdict(plan) for plan in plans]
    names = [name for name in rows[0] if name not in ("seed", "method")]
    values = {name: _distinct(_frozen(row[name]) for row in rows) for name in names}
    if "resample_every" in values:
        values["resample_every"] = _distinct(
            1 if row.get("trees") else row["resample_every"] for row in rows
        )
    values["stretch"] = _distinct(
        math.sqrt(row["learning_rate"]) * row.get("num_steps", 1) for row in rows
    )
    if examples is not None:
        values |= {
            "rate": _distinct(row["learning_rate"] * examples for row in rows),
            "examples": (examples,),
        }
    return values if network is None else values | {"network": (in_words(network),)}


OLD_NAMES = {"epochs": "rounds", "warm_up": "burn_in"}  # of the oldest file


def runs_of(result: Mapping) -> dict[str, list[dict]]:
    """List the runs of a stored result by method; where there are several data sets, by
    data set and method.
    """
    if "methods" in result:
        return {
            method: content["runs"] for method, content in result["methods"].items()
        }
    found = {}
    for name, content in result["runs"].items():
        found |= (
            {f"{name}, {method}": runs for method, runs in content.items()}
            if isinstance(content, Mapping)
            else {name: content}
        )
    return found


def of_result(result: Mapping) -> dict[str, Values]:
    """List what the runs of a stored result had, by method, with what was tried before
    them.

    The examples are counted by the gradients, for a round has N/n samples of m of them;
    not where samples are trees."""
    found = {}
    for method, runs in runs_of(result).items():
        plans = [
            {OLD_NAMES.get(name, name): value for name, value in run["plan"].items()}
            for run in runs
        ]
        plan, gradients, examples = (
            plans[0],
            runs[0].get("gradient_evaluations", runs[0].get("gradients")),
            None,
        )
        if gradients is not None and not runs[0].get("trees"):
            examples = round(
                gradients
                / plan["rounds"]
                / plan.get("num_steps", 1)
                * plan["batch_size"]
            )
        # runs of the tuning are shorter
        lengths = {name: plan[name] for name in ("rounds", "burn_in")}
        tried = [
            row["plan"] | lengths
            for row in result.get("methods", {}).get(method, {}).get("tuning", [])
        ]
        found[method] = of_plans(plans + tried, examples)
    return found


def in_words(network: nn.Module) -> str:
    """Name the layers of a network of fully connected layers, and the activation
    between them.

    Example:
        >>> in_words(nn.Sequential(nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10)))
        '784–100–10, ReLU'
    """
    layers = [module for module in network.modules() if isinstance(module, nn.Linear)]
    others = {
        type(module).__name__
        for module in network.modules()
        if not isinstance(module, nn.Linear | nn.Sequential | nn.Flatten)
    }
    widths = [layers[0].in_features, *(layer.out_features for layer in layers)]
    return "–".join(map(str, widths)) + ", " + ", ".join(sorted(others))


def compare(entry: Published, ours: Values) -> list[Row]:
    """Hold the settings of an entry against ours."""
    rows = []
    for name, (published, place) in entry.settings.items():
        values = ours.get(name, ())
        expected, why = entry.changed.get(name, (published, ""))
        if not values:
            verdict = "not recorded"
        elif not _holds(expected, values):
            verdict = "different"
        elif why:
            verdict = "changed back" if _holds(published, values) else "changed"
        else:
            verdict = (
                "more tried"
                if isinstance(expected, Tried) and len(values) > len(expected)
                else "the same"
            )
        rows.append(Row(name, published, place, values, expected, verdict))
    return rows


def wrong(rows: Iterable[Row]) -> list[str]:
    """Say of each setting that is not as it should be what it is.

    Example:
        >>> entry = Published(
        ...     "fashion", "SGHMC", "adamday", said("p. 12", learning_rate=1e-6)
        ... )
        >>> wrong(compare(entry, of_plans([Plan(1e-5)], 50_000)))
        ['learning_rate is different: 1e-05, where 1e-06 is published (p. 12) and 1e-06
        expected']
    """
    return [
        f"{row.name} is {row.verdict}: {', '.join(map(str, row.ours))}, where "
        f"{row.published} is published ({row.place}) and "
        f"{row.expected} expected"
        for row in rows
        if row.verdict in ("different", "changed back")
    ]


def _holds(expected: object, values: tuple) -> bool:
    """Whether values are the one expected; or, where several were tried, whether these
    are among them.
    """
    if not isinstance(expected, Tried):
        return len(values) == 1 and _equal(expected, values[0])
    return all(any(_equal(one, other) for other in values) for one in expected)


def _equal(one: object, other: object) -> bool:
    numbers = all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in (one, other)
    )
    return math.isclose(one, other, rel_tol=1e-9) if numbers else one == other


def _distinct(values: Iterable) -> tuple:
    found: list = []
    for value in values:
        if not any(_equal(value, other) for other in found):
            found.append(value)
    return tuple(found)


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def entry(
    experiment: str,
    method: str,
    source: str,
    *parts: Mapping[str, Said],
    changed: Mapping[str, Changed] = MappingProxyType({}),
) -> Published:
    """Make an entry from parts, of which the later ones override the earlier."""
    return Published(
        experiment,
        method,
        source,
        {name: each for part in parts for name, each in part.items()},
        changed,
    )


# The paper on MNIST; its program has η = 0.1 for a mean over the data, which is ηN
# here.
CHEN = said(
    "Section 4.2",
    network="784–100–10, Sigmoid",
    examples=50_000,
    batch_size=500,
    rounds=800,
    burn_in=50,
)
CHEN |= said("bayesnn/mnist.py", start="N(0, 0.01²)")
SGHMC_OF_CHEN = said("bayesnn/demo/mnist-sghmc.py", rate=0.1, momentum_decay=0.01)

# The reproduction report, whose files are those of its program.
REPORT = said(
    "p. 10",
    network="784–100–10, ReLU",
    batch_size=500,
    prior_precision=1.0,
    prior_by_fan_in=False,
)
REPORT |= said("kernel/sghmc.py", minibatches="fresh") | said(
    "p. 9", noise_refresh=None
)
START = said("kernel/utils/main.py", start="uniform")  # which is Pyro's choice
REPORT |= START
FIGURE_5 = (
    REPORT
    | said("p. 11", rounds=850, burn_in=50)
    | said("bnn/bnn.py", examples=50_000, num_steps=1)
)
FIGURE_7A = REPORT | said("p. 12, Figure 7a", rounds=900, burn_in=100)
FIGURE_7B = said(
    "p. 12, Figure 7b",
    learning_rate=1e-6,
    momentum_decay=0.01,
    rounds=950,
    burn_in=150,
    resample_every=None,
)
FIGURE_7B |= said(
    "bnn/conv-bnn.ipynb",
    network="1024–100–10, Tanh",
    examples=50_000,
    batch_size=500,
    prior_precision=1.0,
)
FIGURE_7B |= (
    said("bnn/conv-bnn.ipynb", data="random features of scrambled images")
    | said("kernel/sghmc.py", minibatches="fresh")
    | START
)
FIGURE_8 = (
    REPORT
    | said("p. 13, Figure 8", rounds=900, burn_in=100)
    | said("p. 11, Figure 5", stretch=math.sqrt(2e-6))
)
HELD = said("kernel/sghmc.py", minibatches="held")
FIGURE_9 = REPORT | said("p. 15", rounds=70, burn_in=20)
TREES = said(
    "kernel/sgnuts.py",
    trees="energy in a new half, which is always taken",
    integrator="drift_kick",
    minibatches="held",
)
TREES |= said("bnn/bnn.ipynb", resample_every=None)

SAMPLER, OPTIMISER = said("p. 9–10", temperature=1.0), said("p. 10", temperature=0.0)
RATES, DECAYS = Tried((1e-6, 2e-6, 4e-6, 8e-6)), Tried((0.1, 0.01, 0.001))
MOMENTUM = said("p. 10", learning_rate=RATES, momentum_decay=DECAYS)
NO_MOMENTUM = said(
    "p. 10", learning_rate=Tried((1e-5, 2e-5, 4e-5, 6e-5)), momentum_decay=None
)
VARIANCE_AS_SCALE = said(
    "kernel/sghmc.py",
    temperature=Tried(2 * rate * decay for rate in RATES for decay in DECAYS),
)
# as standard deviations 0.1, 1 and 10
STRENGTHS = said("p. 10; bnn/bnn.py", prior_precision=Tried((100.0, 1.0, 0.01)))

NESTEROV = said("p. 6", nesterov=True)

FROM_CHEN = {
    "start": Changed(
        "fan-in", "small random weights too, but of a spread that suits any width"
    )
}
FAN_IN = {
    "start": Changed(
        "fan-in",
        "small weights; the runs from the program's start have their own tables",
    )
}
FROM_PRIOR = {
    "start": Changed(
        "prior",
        "a draw from the prior; the runs from the program's start have their own table",
    )
}
ORDINARY = {
    "nesterov": Changed(
        False, "ordinary momentum, as in the paper; Nesterov's has its own table"
    )
}
OUR_TREES = {
    "trees": Changed(
        "energy", "the report leaves the rule open, and we read it as that of NUTS"
    ),
    "resample_every": Changed(1, "a momentum for each tree, as in Algorithm 3"),
    "temperature": Changed(
        1.0,
        "the right noise, so that the trees are judged and not a slip in the program",
    ),
}
FROM_ROUND_100 = {"burn_in": Changed(99, "the program averages round 100 too")}
FROM_ROUND_150 = {"burn_in": Changed(149, "the program averages round 150 too")}
OUR_HELD = {
    "rounds": Changed(
        150, "the same burn-in, and a sixteenth of the rounds that are averaged"
    )
}
OUR_PASSES = {
    "minibatches": Changed(
        "passes", "as in the paper; the line as reported has them fresh"
    )
}
OUR_LENGTH_7A = {
    "rounds": Changed(
        200, "the same burn-in, and an eighth of the rounds that are averaged"
    )
}
OUR_LENGTH_8 = {
    "rounds": Changed(
        120, "the same burn-in, and a fortieth of the rounds that are averaged"
    )
}
OUR_STRENGTHS = {
    "prior_precision": Changed(
        Tried((0.1, 1.0, 10.0)), "we took the report's 0.1, 1 and 10 for precisions"
    )
}
FRESH_STEPS = OUR_LENGTH_8 | {
    "minibatches": Changed("fresh", "a minibatch for each step, as Algorithm 2 has it")
}
MENDED = {
    "data": Changed("random features", "the colours put right"),
    "minibatches": Changed("passes", "as in the paper"),
}

# Experiments whose runs are no plans.
FIGURE_6B = said("p. 12, Figure 6b", alpha=0.01, draws_a_step=2, draws_averaged=80_000)
FIGURE_6B |= said(
    "bnn/VI.ipynb",
    learning_rate=1e-3,
    rounds=11,
    minibatches="passes",
    weight_decay=1e-3,
    clip_norm=1.0,
)
FIGURE_6B |= said(
    "bnn/VI.ipynb", start="median of draws from the prior", data="standardised images"
)
SAME_START = {"start": Changed("fan-in", "small and random, the same for both")}
OUR_FIGURE_6B = SAME_START | {
    "draws_averaged": Changed(200, "a four-hundredth of the draws"),
    "minibatches": Changed("fresh", "as those of SGHMC"),
    "data": Changed("images", "as those of SGHMC"),
    "weight_decay": Changed(None, "the prior is one already"),
    "clip_norm": Changed(None, "left out, as it is no part of the bound"),
}
BANDIT = said(
    "Section 5.3", hidden="100–100, ReLU", buffer=4096, batch_size=64, harm=-35.0
)
BANDIT |= said("Section 5.3", minibatches_an_interaction=64, interactions=50_000)
OUR_BANDIT = {
    "minibatches_an_interaction": Changed(1, "a sixty-fourth of the learning"),
    "interactions": Changed(5_000, "a tenth of the mushrooms"),
}
MIXTURE = said(
    "experiments/mog25.m", steps=50_000, noise_variance=1.0, modes=25, variance=0.03
)
FALLING, CYCLES = (
    said("experiments/sgld.m", held=500, exponent=0.55),
    said("experiments/csgld.m", skipped=50),
)
RECOMMENDER = said(
    "mf/run/SGHMC.conf", factors=20, batch_size=4_000, steps=2_000_000
) | said("mf/python/mknfold.py", folds=5)
OUR_RECOMMENDER = {
    "steps": Changed(
        40_000,
        "a fiftieth of the steps, of rows that are scaled by what their ratings say",
    )
}

PUBLISHED: tuple[Published, ...] = (
    entry(
        "mnist",
        "SGHMC",
        "chen2014",
        CHEN,
        SGHMC_OF_CHEN,
        said("Section 4.2", prior_precision=None, minibatches="passes"),
        changed=FROM_CHEN,
    ),
    entry(
        "mnist",
        "SGLD",
        "chen2014",
        CHEN,
        said("Section 4.2", momentum_decay=None, prior_precision=None),
        changed=FROM_CHEN,
    ),
    entry("mnist", "SGD with momentum", "chen2014", CHEN, changed=FROM_CHEN),
    entry(
        "mnist",
        "SGD",
        "chen2014",
        CHEN,
        said("Section 4.2", momentum_decay=None),
        changed=FROM_CHEN,
    ),
    entry(
        "mnist",
        "SGHMC",
        "wang2021",
        said(
            "p. 6",
            network="784–100–10, Sigmoid",
            examples=50_000,
            rounds=800,
            burn_in=50,
        ),
    ),
    entry(
        "report",
        "SGHMC",
        "adamday",
        FIGURE_5,
        SAMPLER,
        MOMENTUM,
        said("p. 11, Figure 5", resample_every=None),
        changed=FAN_IN,
    ),
    entry(
        "report",
        "SGHMC, variance as scale",
        "adamday",
        FIGURE_5,
        MOMENTUM,
        VARIANCE_AS_SCALE,
        changed=FAN_IN,
    ),
    entry("report", "SGLD", "adamday", FIGURE_5, SAMPLER, NO_MOMENTUM, changed=FAN_IN),
    entry(
        "report",
        "SGLD, annealed",
        "adamday",
        FIGURE_5,
        SAMPLER,
        NO_MOMENTUM,
        changed=FAN_IN,
    ),
    entry(
        "report",
        "SGD with momentum",
        "adamday",
        FIGURE_5,
        OPTIMISER,
        MOMENTUM,
        STRENGTHS,
        NESTEROV,
        changed=OUR_STRENGTHS | FAN_IN | ORDINARY,
    ),
    entry(
        "report",
        "SGD",
        "adamday",
        FIGURE_5,
        OPTIMISER,
        NO_MOMENTUM,
        STRENGTHS,
        changed=OUR_STRENGTHS | FAN_IN,
    ),
    *(
        entry(
            "fashion",
            method,
            "adamday",
            FIGURE_7A,
            said("p. 12, Figure 7a", learning_rate=rate, momentum_decay=decay),
            *parts,
            changed=OUR_LENGTH_7A
            | FAN_IN
            | ({} if "reported" in method else OUR_PASSES)
            | (ORDINARY if "momentum" in method else {}),
        )
        for method, rate, decay, *parts in (
            ("SGHMC", 1e-6, 0.01, SAMPLER),
            ("SGLD", 1e-5, None, SAMPLER),
            ("SGD with momentum", 1e-6, 0.01, OPTIMISER, NESTEROV),
            ("SGD", 1e-5, None, OPTIMISER),
            (
                "SGHMC, as reported",
                1e-6,
                0.01,
                said("kernel/sghmc.py", temperature=2e-8),
            ),
        )
    ),
    entry(
        "cifar",
        "as reported",
        "adamday",
        FIGURE_7B,
        said("kernel/sghmc.py", temperature=2e-8),
        changed=FROM_ROUND_150,
    ),
    entry(
        "cifar",
        "its posterior",
        "adamday",
        FIGURE_7B,
        SAMPLER,
        changed=FROM_ROUND_150 | MENDED,
    ),
    entry(
        "steps",
        "m = 1",
        "adamday",
        FIGURE_8,
        SAMPLER,
        said("p. 12", num_steps=1),
        changed=OUR_LENGTH_8 | FAN_IN,
    ),
    *(
        entry(
            "steps",
            f"m = {m}, equal samples",
            "adamday",
            FIGURE_8,
            SAMPLER,
            HELD,
            said("p. 12", num_steps=m),
            changed=FRESH_STEPS | FAN_IN,
        )
        for m in (3, 5)
    ),
    *(
        entry(
            "sgnuts",
            f"{data}, {method}",
            "adamday",
            FIGURE_9,
            said(place, learning_rate=rate, momentum_decay=0.01),
            trees,
            changed=changed,
        )
        for data, rate, place in (
            ("MNIST", 2e-6, "bnn/bnn.ipynb"),
            ("Fashion-MNIST", 1e-6, "p. 12, Figure 7a"),
        )
        for method, trees, changed in (
            (
                "SGNUTS, our reading",
                TREES | said("kernel/sgnuts.py", temperature=2 * rate * 0.01),
                FROM_PRIOR | OUR_TREES,
            ),
            ("SGHMC", SAMPLER, FROM_PRIOR),
        )
    ),
    *(
        entry(
            "figure5",
            method,
            "adamday",
            FIGURE_5,
            said(
                "p. 11, Figure 5",
                learning_rate=rate,
                momentum_decay=decay,
                resample_every=None,
            ),
            *parts,
            changed={
                "start": Changed("fan-in", "small weights, to see what the start does")
            }
            if "small start" in method
            else {},
        )
        for method, rate, decay, *parts in (
            (
                "SGHMC, as programmed",
                2e-6,
                0.01,
                said("kernel/sghmc.py", temperature=4e-8),
            ),
            (
                "SGLD, as programmed",
                4e-5,
                None,
                said("kernel/sgld.py", temperature=8e-5),
            ),
            ("SGHMC", 2e-6, 0.01, SAMPLER),
            ("SGLD", 4e-5, None, SAMPLER),
            ("SGD", 1e-5, None, OPTIMISER),
            ("SGD, small start", 1e-5, None, OPTIMISER),
            ("SGD with Nesterov momentum", 1e-6, 0.01, OPTIMISER, NESTEROV),
            (
                "SGD with Nesterov momentum, small start",
                1e-6,
                0.01,
                OPTIMISER,
                NESTEROV,
            ),
        )
    ),
    *(
        entry(
            "figure5_around",
            f"{method}, λ = {precision:g}",
            "adamday",
            FIGURE_5,
            OPTIMISER,
            said("p. 11, Figure 5", learning_rate=rate, momentum_decay=decay)
            | said("p. 10; bnn/bnn.py", prior_precision=precision),
            *parts,
        )
        for method, rate, decay, *parts in (
            ("SGD", 1e-5, None),
            ("SGD with Nesterov momentum", 1e-6, 0.01, NESTEROV),
        )
        for precision in (100.0, 0.01)
    ),
    *(
        entry(
            "fashion_reported",
            method,
            "adamday",
            FIGURE_7A,
            said("p. 12, Figure 7a", learning_rate=rate, momentum_decay=decay),
            *parts,
            changed=FROM_ROUND_100,
        )
        for method, rate, decay, *parts in (
            ("SGHMC", 1e-6, 0.01, said("kernel/sghmc.py", temperature=2e-8)),
            ("SGLD", 1e-5, None, said("kernel/sgld.py", temperature=2e-5)),
            ("SGD", 1e-5, None, OPTIMISER),
            ("SGD with momentum", 1e-6, 0.01, OPTIMISER, NESTEROV),
            ("SGHMC, right noise", 1e-6, 0.01, SAMPLER),
            ("SGLD, right noise", 1e-5, None, SAMPLER),
        )
    ),
    entry(
        "held",
        "m = 1",
        "adamday",
        FIGURE_8,
        SAMPLER,
        said("p. 12", num_steps=1),
        changed=OUR_HELD,
    ),
    *(
        entry(
            "held",
            f"m = {m}, held{what}",
            "adamday",
            FIGURE_8,
            SAMPLER,
            HELD,
            said("p. 12", num_steps=m),
            decay,
            changed=OUR_HELD,
        )
        for what, decay in (
            ("", {}),
            (", α fixed", said("p. 11, Figure 5", momentum_decay=0.01)),
        )
        for m in (3, 5)
    ),
    entry(
        "trees",
        "SGHMC",
        "adamday",
        REPORT,
        SAMPLER,
        said("bnn/bnn.ipynb", learning_rate=2e-6, momentum_decay=0.01),
    ),
    entry(
        "trees",
        "SGNUTS, our reading",
        "adamday",
        REPORT,
        TREES,
        said("bnn/bnn.ipynb", learning_rate=2e-6, momentum_decay=0.01)
        | said("kernel/sgnuts.py", temperature=4e-8),
        changed=OUR_TREES,
    ),
    entry(
        "renyi",
        "SGHMC",
        "adamday",
        REPORT,
        said("p. 12, Figure 6b", learning_rate=2e-6, momentum_decay=0.01),
        changed=SAME_START,
    ),
    entry("renyi", "as reported", "adamday", REPORT, FIGURE_6B, changed=OUR_FIGURE_6B),
    entry("bandit", "Bayes by Backprop", "blundell2015", BANDIT, changed=OUR_BANDIT),
    entry(
        "modes",
        "SGLD",
        "zhang2020",
        MIXTURE,
        said("experiments/mog25.m", learning_rate=0.043),
        FALLING,
    ),
    entry(
        "modes",
        "cSGLD",
        "zhang2020",
        MIXTURE,
        said("experiments/mog25.m", learning_rate=0.07, cycles=30),
        CYCLES,
    ),
    entry("recommender", "SGHMC", "chencode", RECOMMENDER, changed=OUR_RECOMMENDER),
)
