"""The settings of the experiments against those that papers and reports have published,
and against those of the stored results.
"""

import contextlib
import inspect
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import nn

from booklib import data as datasets
from booklib.data import Data
from booklib.data import bandit as rules
from booklib.models.networks import multilayer_perceptron
from booklib.runs.plans import Hamiltonian, Plan
from booklib.runs.published import (
    PUBLISHED,
    Changed,
    Published,
    Tried,
    Values,
    compare,
    in_words,
    of_plans,
    of_result,
    said,
    wrong,
)
from booklib.runs.results import RESULTS, read_result
from experiments import (
    EXPERIMENTS,
    bandit,
    baselines,
    cifar,
    comparison,
    falling,
    fashion,
    few,
    fidelity,
    load,
    modes,
    neighbours,
    ordering,
    recommender,
    renyi,
    sgnuts,
    study,
    trees,
    uncertainty,
    weights,
)
from experiments.study import Options, Prepared
from sgmc.minibatches import Fresh, Passes
from sgmc.targets import GaussianMixture

WITH_PLANS = [name for name in EXPERIMENTS if load(name).plans]
ROOT = Path(__file__).resolve().parents[2]
FEW = 40  # images that features are computed of
# Examples for training, for validation and for testing, and the number of the first of
# each among all of a data set.
PARTS = {
    "mnist": {
        "train": (0, 50_000),
        "validation": (50_000, 10_000),
        "test": (60_000, 10_000),
    },
    "fashion": {
        "train": (0, 50_000),
        "validation": (50_000, 10_000),
        "test": (60_000, 10_000),
    },
    "steps": {"train": (0, 50_000), "test": (60_000, 10_000)},
    "sgnuts": {"train": (0, 50_000), "test": (60_000, 10_000)},
    "cifar": {"train": (0, 50_000), "test": (50_000, 10_000)},
}
PARTS |= {
    name: PARTS["mnist"]
    for name in (
        "falling noise report figure5 figure5_around renyi mnist_more small_start "
        "uncertainty_control letters_report report_momentum"
    ).split()
}
PARTS |= {
    "fashion_reported": PARTS["fashion"],
    "fashion_small_start": PARTS["fashion"],
    "held": PARTS["steps"],
    "held_whole": PARTS["steps"],
    "trees": PARTS["steps"],
    "trees_hybrid": PARTS["steps"],
    "cifar_hour": PARTS["cifar"],
}


class Ran(NamedTuple):
    """What a method is run with."""

    plans: list[Plan]
    examples: int
    network: nn.Module
    prepared: Prepared
    shorter: int = 1  #: by which factor a run of the tuning is shorter

    def values(self) -> Values:
        return of_plans(self.plans, self.examples, self.network)


class SeenError(Exception):
    """Stops an experiment that has said what it would compare."""


def numbered(first: int, number: int, pixels: int) -> Data:
    """Make images whose pixels all are the image's number, in no memory."""
    return Data(
        torch.arange(first, first + number).float()[:, None].expand(-1, pixels),
        torch.arange(number) % 10,
    )


LOADERS = {
    "mnist": lambda root: (numbered(0, 60_000, 784), numbered(60_000, 10_000, 784)),
    "fashion_mnist": lambda root: (
        numbered(0, 60_000, 784),
        numbered(60_000, 10_000, 784),
    ),
    "cifar10": lambda root: (numbered(0, 50_000, 3072), numbered(50_000, 10_000, 3072)),
    "notmnist": lambda root: numbered(0, 10_000, 784),
}


@pytest.fixture
def ran(tmp_path, monkeypatch) -> Callable[[str], dict[str, Ran]]:
    """Give what an experiment would run at full size, by method, from what reaches the
    comparison; the data are numbered images.
    """
    seen, whole = {}, comparison.compare

    def noted(*given, **more):
        call = inspect.signature(whole).bind(*given, **more)
        call.apply_defaults()
        methods, prepared, _, shorter, _, on = call.arguments.values()
        few = prepared._replace(
            **{
                part: Data(*(x[:FEW] for x in getattr(prepared, part)))
                for part in ("train", "test")
            }
        )
        for method, plans in methods.items():
            ons = {plan.data: on(plan, few) for plan in plans}.values()
            sizes = {
                len(each.train.targets) * len(prepared.train.targets) // FEW
                for each in ons
            }
            networks = {in_words(each.network()): each.network() for each in ons}
            assert len(sizes) == len(networks) == 1
            seen[method] = Ran(
                plans, sizes.pop(), *networks.values(), prepared, shorter
            )
        raise SeenError

    def noted_side_by_side(methods, prepared, options, **more):
        noted(methods, prepared, options)

    class Noted:
        """Stands for the run of an experiment that does not compare."""

        def __init__(self, plan, prepared, options, kind, name=None):
            method = f"{plan.data}, {plan.method}" if name else plan.method
            before = seen[method].plans if method in seen else []
            network, examples = prepared.network(), len(prepared.train.targets)
            seen[method] = Ran([*before, plan], examples, network, prepared)

        def go(self, progress):
            return {}

    for name, loader in LOADERS.items():
        for module in (datasets, study, fashion, cifar):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, loader)
    for module in (sgnuts, trees):
        monkeypatch.setattr(module, "make_run", Noted)
        monkeypatch.setattr(module, "checksum", lambda *given: "")
    monkeypatch.setattr(sgnuts, "costs", lambda *given: {})
    for module in (comparison, falling):
        monkeypatch.setattr(module, "compare", noted)
    monkeypatch.setattr(comparison, "compare_side_by_side", noted_side_by_side)

    def look(name: str) -> dict[str, Ran]:
        experiment = load(name)
        options = Options(tmp_path, tmp_path, seeds=5, progress=False)
        seen.clear()
        with contextlib.suppress(SeenError):
            list(experiment.run(options, experiment.prepare(options)))
        return dict(seen)

    return look


def entries(name: str) -> Iterator[Published]:
    return (each for each in PUBLISHED if each.experiment == name)


@pytest.mark.parametrize("name", [name for name in WITH_PLANS if any(entries(name))])
def test_what_is_run_is_what_is_published_but_for_what_is_said(name, ran):
    ours = ran(name)
    for each in entries(name):
        rows = compare(each, ours[each.method].values())
        assert wrong(rows) == [], (
            f"{each.method}: mend the setting, or say in booklib/runs/papers "
            "what is changed and why"
        )
        assert [row.name for row in rows if row.verdict == "not recorded"] == []
        # Not only all values of a grid are tried, but all their combinations.
        expected = {
            row: each.changed.get(row, each.settings[row]).value
            for row in ("learning_rate", "momentum_decay", "prior_precision")
            if row in each.settings
        }
        grid = {
            row: value for row, value in expected.items() if isinstance(value, Tried)
        }
        tried = [
            tuple(plan.record()[row] for row in grid)
            for plan in ours[each.method].plans
        ]
        for combination in itertools.product(*grid.values()):
            assert any(
                all(map(partial(math.isclose, rel_tol=1e-9), combination, values))
                for values in tried
            ), combination


@pytest.mark.parametrize("name", PARTS)
def test_every_experiment_learns_from_the_examples_that_it_says_and_from_no_others(
    name, ran, tmp_path
):
    if name == "renyi":
        several = [renyi.prepare(Options(tmp_path, tmp_path))]
    else:
        several = [each.prepared for each in ran(name).values()]
    for prepared in several:
        parts = {
            part: data
            for part, data in prepared._asdict().items()
            if isinstance(data, Data)
        }
        assert {
            part: (int(data.inputs[0, 0]), len(data.targets))
            for part, data in parts.items()
        } == PARTS[name]
        for data in parts.values():
            assert (
                int(data.inputs[-1, 0]) - int(data.inputs[0, 0])
                == len(data.targets) - 1
            )


@pytest.mark.parametrize(
    "name", [name for name in WITH_PLANS if (RESULTS / f"{name}.json").exists()]
)
def test_stored_results_have_the_settings_of_the_present_plans(name, ran):
    """Each setting that a run in the file had is one that its method is given now; what
    was tried then is tried now.
    """
    ours, stored = ran(name), of_result(read_result(RESULTS / f"{name}.json"))
    assert set(stored) <= set(ours)
    for method, values in stored.items():
        now = ours[method].values()
        old = {
            row: [value for value in several if not is_among(value, now[row])]
            for row, several in values.items()
        }
        assert {row: several for row, several in old.items() if several} == {}, (
            f"{method}: run {name} again"
        )


@pytest.mark.parametrize(
    "name", [name for name in WITH_PLANS if (RESULTS / f"{name}.json").exists()]
)
def test_stored_tunings_have_the_present_length(name, ran):
    ours, stored = ran(name), read_result(RESULTS / f"{name}.json").get("methods", {})
    for method, content in stored.items():
        plan, shorter = ours[method].plans[0], ours[method].shorter
        for row in content.get("tuning", []):
            assert (row["plan"]["rounds"], row["plan"]["burn_in"]) == (
                plan.rounds // shorter,
                plan.rounds // (2 * shorter),
            ), method


def fits(problems: Mapping) -> dict[str, tuple[dict, Mapping, int | None]]:
    """List the experiments that choose from settings which are no plans: what is
    stored, the present choices, and the rounds of a try.
    """
    stored = {
        name: read_result(RESULTS / f"{name}.json")
        for name in ("neighbours", "weights", "renyi", "ordering", "modes", "fidelity")
    }
    return {
        "baselines": (
            read_result(RESULTS / "baselines.json"),
            {
                f"{name}, {method}": each
                for name in ("digits", "clothes")
                for method, each in baselines.methods(name).items()
            },
            baselines.ROUNDS // 3,
        ),
        "neighbours": (
            stored["neighbours"],
            neighbours.methods(),
            neighbours.ROUNDS // 3,
        ),
        "weights": (stored["weights"], weights.methods(), weights.ROUNDS // 5),
        "renyi": (stored["renyi"], renyi.methods(renyi.ROUNDS), None),
        "ordering": (
            stored["ordering"],
            ordering.methods(ordering.TRAINING),
            ordering.ROUNDS // 3,
        ),
        "modes": (stored["modes"], modes.METHODS, None),
        "recommender": (
            read_result(RESULTS / "recommender_100k.json"),
            recommender.METHODS,
            None,
        ),
        **{
            f"fidelity, {name}": (
                stored["fidelity"]["problems"][name],
                fidelity.methods(problem),
                problem.rounds // 3,
            )
            for name, problem in problems.items()
        },
    }


@pytest.fixture(scope="module")
def problems(tmp_path_factory) -> dict[str, fidelity.Problem]:
    folder = tmp_path_factory.mktemp("fidelity")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fidelity, "letters", lambda: numbered(0, 10, 784))
        return fidelity.prepare(Options(folder, folder))


def test_stored_fits_have_the_present_settings(problems):
    """What was tried is what would be tried, in that order and at that length."""
    for name, (stored, methods, rounds) in fits(problems).items():
        assert set(stored["methods"]) == set(methods), name
        for method, content in stored["methods"].items():
            choices, tuning = (
                json.loads(json.dumps(methods[method][1])),
                content["tuning"],
            )
            assert [row["settings"] for row in tuning] == (
                choices if len(choices) > 1 else []
            ), f"{method}: run {name} again"
            assert content["settings"] in choices and {
                row.get("rounds") for row in tuning
            } <= {rounds}


def test_stored_results_have_the_present_lengths(problems):
    mixture, ratings, chains, looked, references = (
        read_result(RESULTS / f"{name}.json")
        for name in ("modes", "recommender_100k", "few", "uncertainty", "fidelity")
    )
    assert (mixture["steps"], mixture["within"]) == (modes.STEPS, modes.WITHIN)
    assert (ratings["passes"], ratings["steps"]) == (
        recommender.PASSES,
        recommender.PASSES * recommender.BATCHES,
    )
    assert (looked["angles"], looked["shares"]) == (
        uncertainty.ANGLES,
        uncertainty.SHARES,
    )
    steps = few.ROUNDS * 50_000 // few.BATCH
    assert {(run["steps"], run["networks"]) for run in chains["runs"]} == {
        (steps, steps // 2 // few.EVERY)
    }
    for name, problem in problems.items():
        found = references["problems"][name]["reference"]
        assert (found["chains"], found["draws"], found["num_steps"]) == (
            fidelity.CHAINS,
            problem.num_samples,
            problem.num_steps,
        )


def test_stored_learners_and_agents_have_the_present_settings():
    for name, learnt in read_result(RESULTS / "few.json")["tuning"].items():
        assert [float(rate) for rate in learnt["tried"]] == list(
            few.LABEL_RATES if name == few.LABELS else few.STUDENT_RATES
        )
    for table in read_result(RESULTS / "bandit.json")["tables"].values():
        for agent, content in table.items():
            assert [
                {name: row[name] for name in ("rate", "noise_variance")}
                for row in content["tuning"]
            ] == bandit.AGENTS[agent][1]


def is_among(value: object, several: tuple) -> bool:
    return any(
        not wrong(compare(entry(said({"": {"one": value}})), {"one": (each,)}))
        for each in several
    )


def entry(settings: Mapping, **changed: Changed) -> Published:
    return Published("", "", "", settings, changed)


SAID = {"learning_rate": 2e-6, "batch_size": 500, "examples": 50_000}
ENTRY = entry(said({"p. 1": SAID | {"data": "scrambled", "network": "3–4–2, ReLU"}}))
PLAN = Plan(Hamiltonian(2e-6, 0.01), data="scrambled")


@pytest.mark.parametrize(
    ("plan", "examples", "activation", "name"),
    [
        (PLAN, 50_000, "relu", ""),
        (PLAN.but(learning_rate=2e-5), 50_000, "relu", "learning_rate"),
        (PLAN, 60_000, "relu", "examples"),
        (PLAN.but(data="images"), 50_000, "relu", "data"),
        (PLAN.but(batch_size=100), 50_000, "relu", "batch_size"),
        (PLAN, 50_000, "sigmoid", "network"),
    ],
)
def test_a_setting_that_is_not_the_published_one_is_told(
    plan, examples, activation, name
):
    found = wrong(
        compare(
            ENTRY,
            of_plans([plan], examples, multilayer_perceptron([3, 4, 2], activation)),
        )
    )
    assert [line.partition(" is ")[0] for line in found] == ([name] if name else [])


def test_several_runs_have_one_setting_unless_several_were_tried():
    plans = [PLAN, PLAN.but(learning_rate=4e-6)]
    one, two, three = (
        entry(said({"": {"learning_rate": value}}))
        for value in (2e-6, [4e-6, 2e-6], [4e-6, 2e-6, 1e-6])
    )
    assert [
        compare(each, of_plans(plans, 1))[0].verdict for each in (one, two, three)
    ] == ["different", "the same", "different"]
    assert (
        compare(two, of_plans([*plans, PLAN.but(learning_rate=1e-6)], 1))[0].verdict
        == "more tried"
    )
    assert compare(two, {})[0].verdict == "not recorded"


def test_what_is_changed_is_the_value_that_is_said_and_not_the_published_one():
    settings = said({"p. 11": {"rounds": 850}})

    def verdict(rounds):
        changed = entry(settings, rounds=Changed(200, "time"))
        return compare(changed, {"rounds": (rounds,)})[0].verdict

    assert verdict(200) == "changed" and verdict(100) == verdict(850) == "different"
    back = entry(settings, rounds=Changed(Tried((850.0,)), "time"))
    assert compare(back, {"rounds": (850,)})[0].verdict == "changed back"


def test_every_entry_names_its_source_and_changes_only_what_is_published():
    known = set(
        re.findall(
            r"^@\w+\{(\w+),", (ROOT / "book/references.bib").read_text(), re.MULTILINE
        )
    )
    assert {each.source for each in PUBLISHED} <= known
    assert len(
        {(each.experiment, each.method, each.source) for each in PUBLISHED}
    ) == len(PUBLISHED)
    for each in PUBLISHED:
        assert set(each.changed) <= set(each.settings) and all(
            change.why for change in each.changed.values()
        )
        assert all(one.place for one in each.settings.values())


def test_settings_of_an_old_file_are_read_by_their_names_and_its_examples_counted():
    plan = {
        "learning_rate": 1e-4,
        "batch_size": 500,
        "epochs": 70,
        "warm_up": 20,
        "seed": 0,
        "method": "SGHMC",
    }
    old = of_result(
        {
            "runs": {
                "MNIST": {
                    "SGHMC": [{"plan": plan, "gradients": 7_000}],
                    "SGNUTS": [{"plan": plan, "gradients": 7_102, "trees": 9}],
                }
            }
        }
    )
    assert {name: old["MNIST, SGHMC"][name] for name in ("rounds", "burn_in", "examples")} == {
        "rounds": (70,), "burn_in": (20,), "examples": (50_000,)
    }  # fmt: skip
    assert "examples" not in old["MNIST, SGNUTS"]
    plan = {
        "learning_rate": 1e-4,
        "batch_size": 500,
        "rounds": 120,
        "burn_in": 100,
        "num_steps": 3,
    }
    content = {
        "tuning": [
            {"plan": plan | {"rounds": 12, "burn_in": 6, "learning_rate": 1e-3}}
        ],
        "runs": [{"plan": plan, "gradient_evaluations": 36_000}],
    }
    assert of_result({"methods": {"m = 3": content}})["m = 3"] == {
        "learning_rate": (1e-4, 1e-3),
        "batch_size": (500,),
        "rounds": (120,),
        "burn_in": (100,),
        "num_steps": (3,),
        "rate": (pytest.approx(5.0), pytest.approx(50.0)),
        "stretch": (pytest.approx(0.03), pytest.approx(3 * 1e-3**0.5)),
        "examples": (50_000,),
    }


def test_the_comparison_with_variational_inference_is_the_reported_one(
    ran, tmp_path, monkeypatch
):
    seen, settings = {}, {}

    def noted(methods, task, prepared, options, rounds):
        seen.update(methods=methods, task=task)
        raise SeenError

    def common(posterior, start) -> dict:
        rule = {Fresh(): "fresh", Passes(): "passes"}[posterior.minibatches]
        precision, *others = {
            float(each) for each in posterior.prior_precision.values()
        }
        weights, biases = (
            posterior.parameters_of(start)[name] for name in ("0.weight", "0.bias")
        )
        small = not biases.any() and float(weights.std()) == pytest.approx(
            784**-0.5, rel=0.05
        )
        words = {
            "network": in_words(posterior.module),
            "batch_size": posterior.batch_size,
            "minibatches": rule,
            "noise_refresh": None,
        }
        words |= {"start": "fan-in" if small else "another"}
        return words | {"prior_precision": precision, "prior_by_fan_in": bool(others)}

    def chain(task, kernel):
        assert kernel.noise_estimate == 0
        own = {
            "learning_rate": kernel.step_size**2,
            "momentum_decay": kernel.friction * kernel.step_size,
        }
        settings["SGHMC"] = common(task.posterior, task.start()) | own

    def fit(
        posterior, start, number, *, num_steps, learning_rate, num_draws, alpha, **more
    ):
        rounds = num_steps * posterior.batch_size / posterior.num_examples
        own = {
            "learning_rate": learning_rate,
            "rounds": rounds,
            "draws_averaged": number,
            "draws_a_step": num_draws,
            "alpha": alpha,
        }
        own |= {name: more.get(name) for name in ("weight_decay", "clip_norm")}
        own |= {
            "data": "images"
            if torch.equal(posterior.data[0], numbered(0, 50_000, 784).inputs)
            else "others"
        }
        settings["as reported"] = common(posterior, start) | own

    for module, name, instead in (
        (renyi, "compare", noted),
        (renyi, "variational", fit),
        (neighbours, "chain", chain),
    ):
        monkeypatch.setattr(module, name, instead)
    options = Options(tmp_path, tmp_path, progress=False)
    with pytest.raises(SeenError):
        list(renyi.run(options, renyi.prepare(options)))
    for name in ("as reported", "SGHMC, 10 rounds"):
        method, [given] = seen["methods"][name]
        method(seen["task"](80, 0, tmp_path / "fit"), **given)
    check_constants("renyi", settings)


def check_constants(name: str, settings: Mapping[str, Mapping]) -> None:
    rows = [
        row
        for each in entries(name)
        for row in compare(
            each, {row: (value,) for row, value in settings[each.method].items()}
        )
    ]
    assert rows and wrong(rows) == []
    assert [row.name for row in rows if row.verdict == "not recorded"] == []


def test_the_mixture_has_the_settings_of_its_authors():
    mixture = GaussianMixture()
    common = {
        "steps": modes.STEPS,
        "noise_variance": modes.NOISE,
        "modes": len(mixture.means),
        "variance": mixture.variance,
    }
    [falling], [cyclical] = (modes.METHODS[name][1] for name in ("SGLD", "cSGLD"))
    kernel = modes.Falling(**{"rate": falling["rate"]})
    cycle, kept = modes.cycle(modes.STEPS, cyclical["rate"])
    check_constants(
        "modes",
        {
            "SGLD": common
            | {
                "learning_rate": kernel.rate,
                "held": kernel.held,
                "exponent": kernel.exponent,
            },
            "cSGLD": common
            | {
                "learning_rate": cycle.step_size,
                "cycles": modes.CYCLES,
                "skipped": cycle.cycle_length - kept,
            },
        },
    )


def test_the_bandit_has_the_network_the_buffer_and_the_harm_of_the_paper(
    tmp_path, monkeypatch
):
    plans = []

    class Noted:
        def __init__(self, plan, *given):
            plans.append(plan)

        def go(self):
            return {"regret": [0]}

    monkeypatch.setattr(bandit, "Run", Noted)
    options, table = Options(tmp_path, tmp_path, seeds=1), numbered(0, 10, 117)
    list(bandit.run(options, bandit.Tables({"numbered": table}, tmp_path)))
    [*_, plan] = (plan for plan in plans if plan.agent == "Bayes by Backprop")
    widths, _, activation = in_words(
        bandit.make_posterior(torch.zeros(1, 119), torch.zeros(1), 1.0).module
    ).partition(", ")
    own = {
        "hidden": f"{widths.removeprefix('119–').removesuffix('–1')}, {activation}",
        "buffer": bandit.BUFFER,
        "batch_size": bandit.BATCH,
    }
    own |= {
        "interactions": plan.interactions,
        "minibatches_an_interaction": plan.steps / bandit.BLOCK,
        "harm": rules.BAD,
    }
    check_constants("bandit", {"Bayes by Backprop": own})


def test_the_recommender_has_the_factors_the_minibatch_and_the_parts_of_the_program():
    stored = read_result(RESULTS / "recommender_100k.json")
    # those of a training part
    ratings = stored["ratings"] * (recommender.FOLDS - 1) // recommender.FOLDS
    own = {
        "factors": stored["rank"],
        "batch_size": ratings // recommender.BATCHES,
        "folds": recommender.FOLDS,
    }
    check_constants(
        "recommender",
        {"SGHMC": own | {"steps": recommender.BATCHES * recommender.PASSES}},
    )
