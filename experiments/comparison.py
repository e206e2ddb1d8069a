"""Experiments whose runs are plans: methods that are tuned on validation examples and
then run with several seeds on the test examples.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from booklib.runs.plans import Plan
from booklib.runs.predictions import look
from booklib.runs.results import checksum
from booklib.runs.run import DivergedError, Run
from booklib.runs.together import One, Together
from experiments.study import Experiment, Options, Prepared, in_a_name, once, study
from sgmc.posteriors import NetworkPosterior

Methods = dict[str, list[Plan]]  # the plans to choose from, by the name of the method


def run_file(folder: Path, method: str, seed: int, tuning: int | None = None) -> Path:
    """Name the file of a run; a run of the tuning has the number of its plan in the
    name.
    """
    start = "" if tuning is None else f"tuning-{tuning}-"
    return folder / f"{start}{in_a_name(method)}-{seed}.pt"


def make_run(
    plan: Plan,
    prepared: Prepared,
    options: Options,
    tuning: int | None = None,
    kind: type[Run] = Run,
    name: str | None = None,
) -> Run:
    """Make the run of a plan, saved by its method or a name, and scored on the test
    examples; a run of the tuning has a number and is scored on the validation examples.
    """
    examples = prepared.test if tuning is None else prepared.validation
    path = run_file(prepared.folder, name or plan.method, plan.seed, tuning)
    network, train = prepared.network(), prepared.train
    return kind(plan, network, train, examples, options.device, path)


def compare(
    methods: Methods,
    prepared: Prepared,
    options: Options,
    shorter: int = 8,
    look: Callable[[Run], dict] = lambda run: {},
    on: Callable[[Plan, Prepared], Prepared] = lambda plan, prepared: prepared,
) -> Iterator[dict]:
    """Run all methods, one seed after the other, and yield the result after each run.

    Settings are chosen by the smallest validation error, of the averaged prediction for
    a sampler, of the last network for an optimiser; ties go to the smaller log loss.

    Args:
        methods: the plans to choose from.
        prepared: the data.
        options: what the command line says.
        shorter: by which factor a run of the tuning is shorter; half of it is burn-in.
        look: what else to put into the result of a run that is finished.
        on: what a plan is run on, where that differs.
    """
    data = checksum(prepared.train, prepared.validation, prepared.test)

    def tried(method: str, number: int, plan: Plan) -> dict:
        rounds, burn_in = plan.rounds // shorter, plan.rounds // (2 * shorter)
        short = plan.but(rounds=rounds, burn_in=burn_in, method=method)
        try:
            found = make_run(short, prepared, options, number).go(options.progress)
        except DivergedError:
            return {"plan": short.record(), "diverged": True}
        sampler = short.record()["temperature"] > 0
        return {"plan": found["plan"], **found["average" if sampler else "last"]}

    def ran(method: str, plan: Plan, seed: int) -> dict:
        plan = plan.but(seed=seed, method=method)
        run = make_run(plan, on(plan, prepared), options)
        return run.go(options.progress) | look(run)

    for found in study(methods, range(options.seeds), tried, ran):
        yield {"data_checksum": data, "methods": found}


def compare_side_by_side(
    methods: Methods,
    prepared: Prepared,
    options: Options,
    first: int = 0,
    look: Callable[[One, Prepared], dict] = lambda one, prepared: {},
    look_at_all: Callable[[list[One], Prepared], dict] = lambda ones, prepared: {},
) -> Iterator[dict]:
    """Run each method with all its seeds side by side, and yield after each method.

    Args:
        methods: by name the one plan of each.
        prepared: the data.
        options: what the command line says.
        first: the first seed.
        look: what else to put into the result of a seed.
        look_at_all: what else to put into the result of a method.
    """
    data = checksum(prepared.train, prepared.validation, prepared.test)

    def made(method: str, plan: Plan) -> dict:
        given = plan, prepared.network(), *prepared[:2], options.device
        run = Together(
            options.seeds, *given, run_file(prepared.folder, method, plan.seed)
        )
        runs = run.go(options.progress)["runs"]
        ones = run.ones()
        looked = [
            each | look(one, prepared) for each, one in zip(runs, ones, strict=True)
        ]
        return {"tuning": [], "runs": looked, **look_at_all(ones, prepared)}

    found = {}
    for method, [plan] in methods.items():
        if options.only in (None, method):
            plan = plan.but(seed=first, method=method)
            path = prepared.folder / f"{in_a_name(method)}.json"
            depends = {"plan": plan.record(), "seeds": options.seeds, "data": data}
            found[method] = once(path, depends, partial(made, method, plan))
            yield {"data_checksum": data, "methods": found}


def of_plans(
    prepare: Callable[[Options], Prepared],
    settings: Callable[[Prepared, bool], Methods],
    **more: object,
) -> Experiment:
    """Make the experiment that compares plans, with arguments of :func:`compare`."""

    def run(options: Options, prepared: Prepared) -> Iterator[dict]:
        return compare(settings(prepared, options.small), prepared, options, **more)

    return Experiment(prepare, run, plans=True)


def side_by_side(
    prepare: Callable[[Options], Prepared],
    settings: Callable[[Prepared, bool], Methods],
    **more: object,
) -> Experiment:
    """Make the experiment that runs plans with all seeds side by side, with arguments
    of :func:`compare_side_by_side`.
    """

    def run(options: Options, prepared: Prepared) -> Iterator[dict]:
        methods = settings(prepared, options.small)
        return compare_side_by_side(methods, prepared, options, **more)

    return Experiment(prepare, run, plans=True)


def look_at_letters(one: One, prepared: Prepared) -> dict:
    """Score the kept networks on images that are no digits and, if the run is an
    optimiser's, its last network, too.
    """
    found = {"kept": torch.stack(one.reservoir)}
    if one.plan.record()["temperature"] == 0:
        found["last"] = one.position
    return {"look": {name: looked(each, one, prepared) for name, each in found.items()}}


def look_at_ensembles(ones: list[One], prepared: Prepared) -> dict:
    """Score the last networks of five seeds together on images that are no digits, and
    those of the next five, if they are an optimiser's.
    """
    if ones[0].plan.record()["temperature"] > 0:
        return {}
    groups = [ones[at : at + 5] for at in range(0, len(ones) // 5 * 5, 5)]
    networks = [torch.cat([one.position for one in group]) for group in groups]
    return {"ensembles": [looked(each, ones[0], prepared) for each in networks]}


def looked(positions: Tensor, one: One, prepared: Prepared) -> dict:
    """Score networks ``(networks, dim)`` by their predictions, on the run's device."""
    test = [x.to(one.chain.device) for x in prepared.test]
    posterior = NetworkPosterior(prepared.network(), *test)
    found = look(posterior, positions, prepared.test, prepared.others)
    return {"networks": len(positions), **found}


def mistakes(run: Run | One, *_: object) -> dict:
    """List the examples that the last network and the average of a run get wrong."""
    predictions = {"last": run.last, "average": run.average}
    wrong = {
        name: (each.cpu().argmax(-1) != run.targets).nonzero()[:, 0].tolist()
        for name, each in predictions.items()
    }
    return {"wrong": wrong}
