"""The command line: what it lists, runs and refuses, in one line, without overwriting
anything.
"""

import importlib
import json
import shlex
import signal
from functools import partial

import pytest
from tqdm import tqdm

from booklib.runs.results import RESULTS, ExperimentError, read_result, runs_of
from booklib.runs.run import Run
from experiments import EXPERIMENTS, comparison, falling
from experiments.__main__ import main
from sgmc.door import running


@pytest.fixture(autouse=True)
def silent(monkeypatch):
    """Show no progress bars, which a busy machine writes among the errors."""
    monkeypatch.setattr(running, "tqdm", partial(tqdm, disable=True))


def shortened(monkeypatch, change):
    """Let the experiments compare other plans than they list."""
    whole = comparison.compare
    for module in (comparison, falling):
        monkeypatch.setattr(
            module,
            "compare",
            lambda methods, *given, **more: whole(change(methods), *given, **more),
        )


@pytest.fixture
def quick(monkeypatch):
    """Make the experiments on digits so short that they only show that all the parts
    fit.
    """
    size = {"rounds": 16, "burn_in": 4, "batch_size": 1600, "keep_every": 4}
    shortened(
        monkeypatch,
        lambda methods: {
            method: [plan.but(**size) for plan in plans[:2]]
            for method, plans in methods.items()
        },
    )


@pytest.fixture
def two_methods(quick, monkeypatch):
    """Make them shorter still: two methods, each with one setting."""
    shortened(
        monkeypatch,
        lambda methods: {name: methods[name][:1] for name in ("SGHMC", "SGLD")},
    )


def run(tmp_path, *more):
    return main(
        [
            "run",
            *more,
            "--runs",
            str(tmp_path / "runs"),
            "--results",
            str(tmp_path / "results"),
        ]
    )


def error_of(capsys):
    text = capsys.readouterr().err
    assert text.startswith("error: ") and text.count("\n") == 1
    return text


def test_list_names_the_experiments(capsys):
    assert main(["list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(
        EXPERIMENTS
    )


@pytest.mark.slow
def test_small_runs_write_results_with_their_provenance(quick, tmp_path, capsys):
    assert run(tmp_path, "mnist", "--small", "--seeds", "1") == 0
    path = tmp_path / "runs" / "mnist-small.json"
    result = json.loads(path.read_text())
    assert (
        result["provenance"]["command"]
        == "python -m experiments run mnist --seeds 1 --small"
    )
    assert list(result["methods"]) == [
        "SGHMC",
        "SGD with momentum",
        "SGLD",
        "SGD",
        "SGHMC, fresh minibatches",
    ]
    assert [len(content["tuning"]) for content in result["methods"].values()] == [
        0,
        2,
        2,
        2,
        0,
    ]
    for content in result["methods"].values():
        for entry in content["runs"]:
            for use in ("last", "average"):
                assert len(entry["wrong"][use]) == round(1000 * entry[use]["error"])
    assert len(result["data_checksum"]) == 32 and str(tmp_path) not in path.read_text()
    assert not (tmp_path / "results").exists()
    # Another seed, on top of what is there: the first is not run again.
    assert run(tmp_path, "mnist", "--small", "--seeds", "2", "--resume") == 0
    assert (
        json.loads(path.read_text())["methods"]["SGLD"]["runs"][0]
        == result["methods"]["SGLD"]["runs"][0]
    )
    assert run(tmp_path, "uncertainty", "--small", "--seeds", "2") == 0
    looked = json.loads((tmp_path / "runs" / "uncertainty-small.json").read_text())
    for content in looked["methods"].values():
        assert [entry["seed"] for entry in content] == [0, 1]
        assert sum(content[0]["entropy"]["letters"]["histogram"]) == 1080
        # turned by nothing
        assert content[0]["turned"][0]["error"] == content[0]["scores"]["error"]
    # one network agrees with itself
    assert (
        looked["methods"]["SGD with momentum"][0]["entropy"]["letters"]["disagreement"]
        == 0
    )
    assert looked["methods"]["SGHMC"][0]["entropy"]["letters"]["disagreement"] > 0
    # The point estimate is the network that mnist scored.
    point = looked["methods"]["SGD with momentum"][0]["scores"]
    assert point == pytest.approx(
        result["methods"]["SGD with momentum"]["runs"][0]["last"], abs=2e-6
    )
    assert "SGHMC: {'error': 0." in capsys.readouterr().out
    # The runs without a noise estimate are those of mnist.
    assert run(tmp_path, "noise", "--small", "--seeds", "2") == 0
    noise = json.loads((tmp_path / "runs" / "noise-small.json").read_text())["methods"]
    again = json.loads(path.read_text())["methods"]["SGHMC, fresh minibatches"]["runs"]
    zero = noise["SGHMC, fresh minibatches"]["runs"]
    assert [{name: entry[name] for name in again[0]} for entry in zero] == again
    assert all(0.9 < entry["temperature"]["0.weight"] < 1.1 for entry in zero)
    estimated = noise["SGHMC, online noise estimate"]["runs"]
    assert [0 <= entry["clipped"] < 1 for entry in estimated] == [True, True]
    assert estimated[0]["average"] != again[0]["average"]


def test_an_unknown_experiment_is_refused(tmp_path, capsys):
    assert run(tmp_path, "minst") == 1
    assert "no experiment 'minst': choose from mnist, " in error_of(capsys)


@pytest.mark.parametrize("where", ["between rounds", "in a round"])
def test_an_interrupted_experiment_goes_on(
    where, two_methods, tmp_path, monkeypatch, capsys
):
    advance, rounds = Run.advance, []

    def interrupt(self):
        if len(rounds) == 20 and where == "in a round":
            raise KeyboardInterrupt
        if len(rounds) == 20:
            signal.raise_signal(signal.SIGINT)
        rounds.append(1)
        advance(self)

    monkeypatch.setattr(Run, "advance", interrupt)
    assert run(tmp_path, "mnist", "--small") == 130
    assert capsys.readouterr().err == "interrupted: say --resume to go on\n" and len(
        rounds
    ) == (21 if where == "between rounds" else 20)
    assert run(tmp_path, "mnist", "--small") == 1  # without --resume nothing is touched
    monkeypatch.setattr(Run, "advance", advance)
    assert run(tmp_path, "mnist", "--small", "--resume") == 0


STORED = [
    path
    for path in sorted(RESULTS.glob("*.json"))
    if "experiments" in read_result(path)["provenance"]["command"]
]


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_stored_command_is_one_that_runs(path, tmp_path, monkeypatch):
    """It is parsed, and comes to the preparation of the experiment whose name the file
    has, with its number of seeds; the data are not loaded here.
    """
    result, seen = read_result(path), []
    words = shlex.split(result["provenance"]["command"])
    assert words[:2] == ["python", "-m"] and words[2].endswith("experiments")
    module = importlib.import_module(f"experiments.{path.stem}")

    def prepare(options):
        seen.append(options)
        raise ExperimentError("enough")

    stopped = module.EXPERIMENT._replace(prepare=prepare)
    monkeypatch.setattr(module, "EXPERIMENT", stopped)
    monkeypatch.setattr("experiments.__main__.check_device", lambda device: None)
    assert main([*words[3:], "--runs", str(tmp_path)]) == 1
    [options] = seen
    assert not options.small and f"--seeds {options.seeds}" in " ".join(words)
    assert all(runs_of(result).values()) and runs_of(result)


@pytest.mark.slow
def test_a_falling_rate_ends_where_it_stands_and_its_networks_make_an_ensemble(
    quick, tmp_path
):
    """The last network is looked at as uncertainty looks at its own, and so is the
    average over the seeds.
    """
    assert run(tmp_path, "falling", "--small", "--seeds", "2") == 0
    result = json.loads((tmp_path / "runs" / "falling-small.json").read_text())
    runs = result["methods"]["SGD with momentum, falling rate"]["runs"]
    assert len(runs) == 2 and result["ensemble"]["networks"] == 2
    for entry in runs:
        assert entry["look"]["scores"] == pytest.approx(entry["last"], abs=2e-6)
        assert entry["look"]["entropy"]["letters"]["disagreement"] == 0
    assert result["ensemble"]["entropy"]["letters"]["disagreement"] > 0
    assert result["ensemble"]["scores"]["log_loss"] < max(
        entry["last"]["log_loss"] for entry in runs
    )
