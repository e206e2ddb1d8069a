"""What most experiments are: several methods, each tuned on validation examples and
then run with several seeds on the test examples.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

from experiments.options import DivergedError, Options, Prepared
from experiments.plan import Plan
from experiments.provenance import checksum
from experiments.run import Run

Methods = dict[str, list[Plan]]  # the plans to choose from, by the name of the method


def named(methods: Methods) -> Methods:
    """Call every plan what its method is called.

    Example:
        >>> named({"SGLD": [Plan(1e-4), Plan(1e-3)]})["SGLD"][1].method
        'SGLD'
    """
    return {
        method: [replace(plan, method=method) for plan in plans]
        for method, plans in methods.items()
    }


def run_file(folder: Path, method: str, seed: int, tuning: int | None = None) -> Path:
    """Name the file of a run; of the so-many-th plan of the tuning where it is one."""
    name = method.replace(",", "").replace(" ", "-")
    return folder / (
        f"{name}-{seed}.pt" if tuning is None else f"tuning-{tuning}-{name}-{seed}.pt"
    )


def make_run(
    plan: Plan, prepared: Prepared, options: Options, tuning: int | None = None
) -> Run:
    """Make the run of a plan, scored on the test examples, or on the validation
    examples when it is the so-many-th plan of the tuning.
    """
    examples = prepared.test if tuning is None else prepared.validation
    path = run_file(prepared.folder, plan.method, plan.seed, tuning)
    return Run(plan, prepared.network(), prepared.train, examples, options.device, path)


def tune(
    plans: list[Plan], prepared: Prepared, options: Options, shorter: int = 8
) -> tuple[Plan, list[dict]]:
    """Choose the plan with the smallest validation error, of the averaged prediction
    for a sampler, of the last network for an optimiser.

    The runs have one seed and are shorter by the given factor, half of them burn-in.
    Ties go to the smaller log loss, and a run that diverges loses.

    Returns:
        The plan, and the table of what was tried.
    """
    if len(plans) == 1:
        return plans[0], []
    table = []
    for tuning, plan in enumerate(plans):
        short = replace(
            plan, rounds=plan.rounds // shorter, burn_in=plan.rounds // (2 * shorter)
        )
        try:
            result = make_run(short, prepared, options, tuning).go(options.progress)
        except DivergedError:
            table.append({"plan": asdict(short), "diverged": True})
        else:
            table.append(
                {
                    "plan": result["plan"],
                    **result["average" if plan.temperature > 0 else "last"],
                }
            )
    tried = [i for i, row in enumerate(table) if "diverged" not in row]
    if not tried:
        raise DivergedError(
            f"every setting of {plans[0].method} left the finite numbers: lower its "
            "learning rates"
        )
    return plans[
        min(tried, key=lambda i: (table[i]["error"], table[i]["log_loss"]))
    ], table


def compare(
    methods: Methods,
    prepared: Prepared,
    options: Options,
    shorter: int = 8,
    look: Callable[[Run], dict] | None = None,
    on: Callable[[Plan, Prepared], Prepared] = lambda plan, prepared: prepared,
) -> Iterator[dict]:
    """Run all methods, one seed after the other, and yield the result after each run; a
    method is tuned before its first.

    Args:
        methods: the plans to choose from.
        prepared: the data.
        options: what the command line says.
        shorter: by which factor a run of the tuning is shorter.
        look: what else to put into the result of a run that is finished.
        on: what a plan is run on, where that differs.
    """
    result = {
        "data_checksum": checksum(prepared.train, prepared.validation, prepared.test),
        "methods": {},
    }
    chosen = {}
    for seed in options.each_seed():
        for method, plans in methods.items():
            if seed == 0:
                chosen[method], tuning = tune(plans, prepared, options, shorter)
                result["methods"][method] = {"tuning": tuning, "runs": []}
            plan = replace(chosen[method], seed=seed)
            run = make_run(plan, on(plan, prepared), options)
            finished = run.go(options.progress)
            result["methods"][method]["runs"].append(
                finished if look is None else {**finished, **look(run)}
            )
            yield result


def mistakes(run: Run) -> dict:
    """List the examples that the last network and the average of a run get wrong, so
    that methods can be compared example by example.
    """

    def wrong(probabilities) -> list[int]:
        return (probabilities.cpu().argmax(-1) != run.targets).nonzero()[:, 0].tolist()

    return {"wrong": {"last": wrong(run.last), "average": wrong(run.average)}}


def summary(result: dict) -> list[str]:
    """Write one line for each method: test error and log loss, of the average and of
    the last network, averaged over the seeds.
    """
    width = max(map(len, result["methods"]))
    lines = [
        f"{'method':{width}} {'error, average':>15} {'last':>8} "
        f"{'log loss, average':>18} {'last':>8} {'seconds':>8}"
    ]
    for method, content in result["methods"].items():
        runs = content["runs"]

        def mean(value, runs=runs):
            return sum(map(value, runs)) / len(runs)

        lines.append(
            f"{method:{width}} {mean(lambda run: run['average']['error']):15.2%} "
            f"{mean(lambda run: run['last']['error']):8.2%} "
            f"{mean(lambda run: run['average']['log_loss']):18.4f} "
            f"{mean(lambda run: run['last']['log_loss']):8.4f} "
            f"{mean(lambda run: run['seconds']):8.1f}"
        )
    return lines
