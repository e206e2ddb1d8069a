"""Write the page of settings: what each stored result was run with, from its plans, and
what its source publishes beside it, from ``booklib/runs/papers``. Nothing of it is
typed but which page of the book an experiment belongs to.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from booklib.numbers import in_words
from booklib.runs.published import PUBLISHED, Tried, compare, of_result
from booklib.runs.results import HOLDERS, read_result

ROOT = Path(__file__).resolve().parent.parent
STUDIES = {
    "studies/mnist": "mnist mnist_more bayesnn falling",
    "studies/reproduction_report": "report report_wider report_wider_momentum "
    "report_momentum figure5 figure5_around small_start fashion fashion_reported "
    "fashion_small_start",
    "studies/uncertainty": "uncertainty uncertainty_control letters_report",
    "studies/steps_per_sample": "steps held held_whole sgnuts trees trees_program "
    "trees_hybrid trees_fashion",
    "studies/cifar": "cifar cifar_hour",
    "studies/variational": "renyi renyi_differences weights",
    "studies/recommender": "recommender recommender_100k recommender_1m",
    "studies/neighbours_on_networks": "neighbours dropout",
    "studies/fidelity": "fidelity",
    "studies/cyclical_networks": "ordering",
    "studies/cold_posteriors": "cold",
    "appendix/sources": "modes",
    "further/noise_of_networks": "noise",
    "further/bandit": "bandit",
    "practice/recipes_networks": "baselines few",
    "tutorial/digits": "coverage",
}
NAMES = {  # of settings, as the book writes them
    "learning_rate": "η",
    "burn_in": "burn-in",
    "stretch": "εm",
    "momentum_decay": "α",
    "temperature": "T",
    "prior_precision": "λ",
    "batch_size": "n",
    "examples": "N",
    "num_steps": "m",
    "noise_refresh": "B̂",
    "resample_every": "samples a momentum",
    "data": "inputs",
    "trees": "weights of trees",
    "integrator": "step of trees",
    "nesterov": "Nesterov's momentum",
    "clip_norm": "gradients clipped at",
    "alpha": "order of the bound",
    "hidden": "hidden layers",
    "harm": "worst reward",
}
NONE = {"prior_precision": "drawn", "noise_refresh": "0", "resample_every": "never"}
UNSHOWN = {"keep_every", "average_every", "record_every", "rate", "stretch"}
HEAD = """# What each experiment runs

This page is written from the stored results and from the files that hold what each source publishes (`booklib/runs/papers`).
A bold line names an experiment and has what all its runs share and the command that ran it; the lines below it have what each run has besides, how many settings were tried on validation examples to choose it, the number of seeds, and the processor minutes of a run.

Letters: the learning rate η (a *rate* is ηN, and of Adam its own), the momentum decay α, the prior precision λ (*drawn* by a Gibbs step after each round), n of N examples in a minibatch, and the temperature T of the noise, which an optimiser has not.
Below each table stand the settings that are the source's, with their place, and those that we changed on purpose, with the reason; a test compares both with what the code runs."""


def page(root: Path = ROOT) -> str:
    """Write the page; of a book without stored results its head alone."""
    lines, folder = [HEAD], root / "book" / "results"
    for place, names in STUDIES.items():
        stored = [name for name in names.split() if (folder / f"{name}.json").is_file()]
        if stored:
            source = (root / f"book/{place}.py").read_text(encoding="utf-8")
            title = source.partition("\n# # ")[2].partition("\n")[0]
            lines += ["", f"## {title}", "", f"See {{doc}}`/book/{place}`.", ""]
            lines += [_line("run", "settings", "tried", "seeds", "minutes")]
            lines += [_line(*5 * ["---"])]
            lines += [row for name in stored for row in _rows(name, folder)]
            lines += ["", *(row for name in stored for row in _published(name, folder))]
    return "\n".join([*lines, ""])


def _rows(name: str, folder: Path) -> Iterator[str]:
    """Write the lines of an experiment: what all its runs share, and each method."""
    result = read_result(folder / f"{name}.json")
    methods = dict(_contents(result))
    values = {method: _settings(method, each) for method, each in methods.items()}
    first, *others = values.values()
    shared = {
        key: value
        for key, value in first.items()
        if others and all(other.get(key, "") == value for other in others)
    }
    origin = result["provenance"]
    # The command had this name when the oldest files were made.
    command = origin["command"].replace("-m sgmc.experiments", "-m experiments")
    about = f"{_words(shared)} (`{command}`, {origin['date']})".strip()
    yield _line(f"**{name}**", about, *3 * [""])
    for method, each in methods.items():
        runs = each["runs"]
        own = {key: value for key, value in values[method].items() if key not in shared}
        spent = [
            run.get("processor_seconds", run.get("seconds_of_processor"))
            for run in runs
        ]
        known = [seconds / 60 for seconds in spent if seconds is not None]
        yield _line(
            method or "all",
            _words(own),
            str(len(each.get("tuning", ())) or ""),
            str(len(runs)),
            _minutes(known) if known else "",
        )


def _minutes(several: list[float]) -> str:
    mean = sum(several) / len(several)
    return f"{mean:.0f}" if mean >= 10 else in_words(mean, 2)


def _contents(result: Mapping | list, name: str = "") -> Iterator[tuple[str, dict]]:
    """Give the entry of each method, by the names of :func:`runs_of`."""
    if isinstance(result, list):
        yield name, {"runs": result}
    elif isinstance(result.get("runs"), list):
        yield name, dict(result)
    else:
        for key in [key for key in HOLDERS if key in result]:
            yield from _contents(result[key], name)
        if not any(key in result for key in HOLDERS):
            for key, each in result.items():
                yield from _contents(each, f"{name}, {key}" if name else key)


def _settings(method: str, entry: Mapping) -> dict[str, str]:
    """Read what a method was run with: its plan, or the settings that were chosen."""
    run = entry["runs"][0]
    if "plan" not in run:
        chosen = run.get("settings") or entry.get("settings", {})
        return {key: _value(key, each) for key, each in chosen.items() if each}
    values = of_result({"runs": {method: entry["runs"]}})[method]
    trees = values.get("trees", (None,)) != (None,)
    return {
        key: _value(key, each)
        for key, (each, *_) in values.items()
        if key not in UNSHOWN
        and (key == "prior_precision" or each not in (None, False, ""))
        and (key, each) != ("num_steps", 1)
        and (key != "integrator" or trees)
    }


def _published(name: str, folder: Path) -> Iterator[str]:
    """Write which settings of an experiment are a source's, and which were changed."""
    entries = [each for each in PUBLISHED if each.experiment == name]
    result = read_result(folder / f"{name}.json")
    with_plans = any(
        "plan" in run for _, each in _contents(result) for run in each["runs"]
    )
    ours = of_result(result) if with_plans else {}
    same: dict[str, dict[str, list[str]]] = {}
    changed: dict[str, list[str]] = {}
    for entry in entries:
        for row in compare(entry, ours.get(entry.method, {})):
            published, why = row.published, entry.changed.get(row.name)
            if why:
                words = (
                    f"{_label(row.name)} {_value(row.name, why.value)} for "
                    f"{_value(row.name, published)} ({row.place}): {why.why}"
                )
                changed.setdefault(words, []).append(entry.method)
            elif published is not False and (published is not None or row.name in NONE):
                words = _label(row.name)
                grid = isinstance(published, Tried) and row.name != "temperature"
                if grid or not row.ours:  # which no line of the table has
                    words += f" {_value(row.name, published)}"
                places = same.setdefault(entry.source, {}).setdefault(row.place, [])
                places += [words] * (words not in places)
    for source, places in same.items():
        words = "; ".join(f"{', '.join(each)} ({at})" for at, each in places.items())
        yield f"* *{name}*, as in {{cite:t}}`{source}`: {_plain(words)}."
    methods = list(dict.fromkeys(each.method for each in entries))
    for words, having in changed.items():
        which = "all" if having == methods else "; ".join(having)
        yield f"* *{name}*, changed in {_plain(which)}: {_plain(words)}."


def _words(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{_label(key)} {each}" for key, each in settings.items())


def _label(setting: str) -> str:
    return NAMES.get(setting, setting.replace("_", " "))


def _value(setting: str, value: object) -> str:
    """Write a setting, or several that were tried."""
    if value is None:
        return NONE.get(setting, "none")
    if isinstance(value, tuple | list):
        return ", ".join(_value(setting, one) for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else in_words(value, 3)
    return str(value).replace("_", " ")


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Keep Markdown from reading marks in a text."""
    return re.sub(r"([\\*_\[\]<>$|])", r"\\\1", text)
