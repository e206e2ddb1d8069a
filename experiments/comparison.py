"""Experiments whose runs are plans: methods that are tuned on validation examples and
then run with several seeds on the test examples.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from booklib.plans import Plan
from booklib.results import checksum
from booklib.runs import DivergedError, Run
from experiments.study import Experiment, Options, Prepared, in_a_name, study

Methods = dict[str, list[Plan]]  # the plans to choose from, by the name of the method


def run_file(folder: Path, method: str, seed: int, tuning: int | None = None) -> Path:
    """Name the file of a run; of the so-many-th plan of the tuning where it is one."""
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
    examples; the so-many-th plan of the tuning on the validation examples.
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


def of_plans(
    prepare: Callable[[Options], Prepared],
    settings: Callable[[Prepared, bool], Methods],
    **more: object,
) -> Experiment:
    """Make the experiment that compares plans, with arguments of :func:`compare`."""

    def run(options: Options, prepared: Prepared) -> Iterator[dict]:
        return compare(settings(prepared, options.small), prepared, options, **more)

    return Experiment(prepare, run, plans=True)


def mistakes(run: Run) -> dict:
    """List the examples that the last network and the average of a run get wrong."""
    predictions = {"last": run.last, "average": run.average}
    wrong = {
        name: (each.cpu().argmax(-1) != run.targets).nonzero()[:, 0].tolist()
        for name, each in predictions.items()
    }
    return {"wrong": wrong}
