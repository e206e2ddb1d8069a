"""The runs of the experiments: what a kill and a resume change (nothing), what averages
in a stream, and what is refused.
"""

import gc
import json
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace

import pytest
import torch

from booklib.datasets import Data
from booklib.networks import multilayer_perceptron
from experiments import run as run_module
from experiments.options import DivergedError, ExperimentError
from experiments.plan import Plan
from experiments.results import score, write_result
from experiments.run import KIND, Run, read_run
from sgmc import sampling
from sgmc.checkpoints import Checkpoint, CheckpointError
from sgmc.minibatches import Passes
from sgmc.posteriors import NetworkPosterior
from sgmc.sampling import drive

SIZE = {"rounds": 8, "burn_in": 2, "batch_size": 5, "keep_every": 2, "record_every": 3}
PLANS = {
    "SGHMC, precisions drawn": Plan(1e-3, 0.1, seed=3, method="SGHMC", **SIZE),
    "SGD": Plan(1e-3, temperature=0.0, prior_precision=2.0, method="SGD", **SIZE),
    "Nesterov": Plan(
        1e-3,
        0.1,
        temperature=0.0,
        nesterov=True,
        prior_precision=2.0,
        average_every=(3, 1, 9),
        method="Nesterov",
        **SIZE,
    ),
}


def data(examples, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return Data(
        torch.rand(examples, 6, generator=generator),
        torch.randint(10, (examples,), generator=generator),
    )


def make(plan, path=None, train=None, activation="sigmoid", examples=None, **more):
    return Run(
        plan,
        multilayer_perceptron([6, 4, 10], activation),
        train or data(40),
        examples or data(30, 1),
        "cpu",
        path,
        **more,
    )


def contents(run):
    """Everything that a run comes to, but its times."""
    result = run.result()
    del result["seconds"], result["processor_seconds"]
    result["curve"] = {
        name: values for name, values in result["curve"].items() if name != "seconds"
    }
    tensors = [value for value in run.walk.state if isinstance(value, torch.Tensor)]
    return (
        result,
        run.average,
        run.last,
        *run.reservoir,
        *tensors,
        run.walk.generator.get_state(),
    )


def assert_same(one, other):
    assert one[0] == other[0]
    assert all(torch.equal(a, b) for a, b in zip(one[1:], other[1:], strict=True))


class Killed(BaseException):
    pass


@pytest.mark.parametrize("name", PLANS)
def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(
    name, tmp_path, monkeypatch
):
    monkeypatch.setattr(sampling, "CHECKPOINT_SECONDS", 0.0)
    path, whole = tmp_path / "run.pt", make(PLANS[name])
    whole.go(progress=False)
    # killed twice, in the middle of rounds 2 and 4, each of eight steps
    for after in (12, 31):
        run = make(PLANS[name], path)
        step, left = (
            type(run.walk.kernel).step,
            [after - 8 * (read_run(path)["done"] if path.exists() else 0)],
        )

        def dying(self, *arguments, step=step, left=left):
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return step(self, *arguments)

        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(type(run.walk.kernel), "step", dying)
            run.go(progress=False)
    assert read_run(path)["done"] == 3
    resumed = make(PLANS[name], path)
    resumed.go(progress=False)
    assert_same(contents(whole), contents(resumed))


LONG = """  # which never comes to its end, however long it takes the test to kill it
import sys
from pathlib import Path
from sgmc import sampling
from tests.experiments import test_run
sampling.CHECKPOINT_SECONDS = 0.0
watch = lambda run: run.done == 99 and sys.stdin.read()
test_run.make(test_run.long_plan(), Path(sys.argv[1]), watch=watch).go(progress=False)
"""


def long_plan():
    return replace(PLANS["SGHMC, precisions drawn"], rounds=100)


@pytest.mark.slow
def test_a_run_killed_by_the_system_resumes_bit_for_bit(tmp_path):
    path = tmp_path / "run.pt"
    process = subprocess.Popen(
        [sys.executable, "-c", LONG, str(path)], stdin=subprocess.PIPE
    )
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert 0 < read_run(path)["done"] < 100
    resumed, whole = make(long_plan(), path), make(long_plan())
    resumed.go(progress=False)
    whole.go(progress=False)
    assert_same(contents(whole), contents(resumed))


def test_a_run_that_is_interrupted_finishes_its_round_saves_it_and_goes_on(
    tmp_path, recwarn
):
    path, plan, whole = (
        tmp_path / "run.pt",
        PLANS["SGHMC, precisions drawn"],
        make(PLANS["SGHMC, precisions drawn"]),
    )
    whole.go(progress=False)
    with pytest.raises(KeyboardInterrupt):
        make(
            plan,
            path,
            watch=lambda run: run.done == 5 and signal.raise_signal(signal.SIGINT),
        ).go(progress=False)
    # the command line has its own words for it
    assert not recwarn.list and read_run(path)["done"] == 5
    resumed = make(plan, path)
    resumed.go(progress=False)
    assert_same(contents(whole), contents(resumed))


def test_a_finished_run_is_not_run_again(tmp_path, monkeypatch):
    first = make(PLANS["SGD"], tmp_path / "run.pt").go(progress=False)
    assert first["made"].keys() == {"date", "versions", "machine", "matmul_precision"}
    monkeypatch.setattr(Run, "advance", None)
    # what a result says of its making is not about the resume
    monkeypatch.setattr(run_module, "circumstances", None)
    assert make(PLANS["SGD"], tmp_path / "run.pt").go(progress=False) == first


def test_a_resumed_run_says_when_its_last_part_was_made(tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    for part, rounds in ("first", 3), ("second", 8), ("third", 8):
        monkeypatch.setattr(
            run_module, "circumstances", lambda device, part=part: {"date": part}
        )
        run = make(PLANS["SGD"], path)
        drive(run, rounds, checkpoint=run.checkpoint, progress=False)
    assert run.result()["made"] == {"date": "second"}


def storing_predictions(run, monkeypatch):
    """Store the positions after each round, and the logarithms predicted there."""
    stored, predict = [], run.walk.posterior.log_predict

    def storing(position, inputs):
        stored.append((position[0].clone(), predict(position, inputs)))
        return stored[-1][1]

    monkeypatch.setattr(run.walk.posterior, "log_predict", storing)
    return stored


def test_streaming_averages_are_those_of_the_stored_predictions(monkeypatch):
    run = make(PLANS["SGHMC, precisions drawn"])
    stored = storing_predictions(run, monkeypatch)
    result = run.go(progress=False)
    kept = torch.cat([logarithms for _, logarithms in stored[2:]]).double().exp()
    torch.testing.assert_close(run.average, kept.mean(0), rtol=1e-14, atol=0)
    assert result["networks_averaged"] == 6 and result["gradient_evaluations"] == 64
    assert len(run.reservoir) == 3 and all(
        torch.equal(run.reservoir[i], stored[3 + 2 * i][0]) for i in range(3)
    )
    assert result["curve"]["round"] == [3, 6, 8]
    for use, probabilities in {"last": kept[-1], "average": kept.mean(0)}.items():
        assert result["curve"][use][-1] == run.scores(probabilities) and result[
            use
        ] == score(probabilities, run.targets)
    assert result["last"] != result["average"]


def test_the_reservoir_counts_from_the_burn_in(monkeypatch):
    """With a burn-in of 3 and every second network the rounds 5 and 7 are kept, counted
    from one.
    """
    run = make(replace(PLANS["SGD"], burn_in=3))
    stored = storing_predictions(run, monkeypatch)
    run.go(progress=False)
    assert len(run.reservoir) == 2 and all(
        torch.equal(run.reservoir[i], stored[4 + 2 * i][0]) for i in range(2)
    )


def test_memory_does_not_grow_with_the_networks_averaged(tmp_path):
    held, stored = [], []
    for rounds in (20, 60):
        plan = replace(
            PLANS["SGHMC, precisions drawn"],
            rounds=rounds,
            keep_every=rounds // 2 - 1,
            record_every=1000,
        )
        run = make(plan, tmp_path / f"{rounds}.pt")
        run.go(progress=False)
        gc.collect()
        held.append(
            sum(
                thing.numel()
                for thing in gc.get_objects()
                if type(thing) is torch.Tensor
            )
        )
        stored.append((tmp_path / f"{rounds}.pt").stat().st_size)
    # less than one prediction
    assert held[0] == held[1] and abs(stored[1] - stored[0]) < 300


def test_falling_steps_weigh_the_average(monkeypatch):
    plan = replace(
        PLANS["SGHMC, precisions drawn"],
        method="SGLD",
        momentum_decay=None,
        annealing=(8.0, 1.0),
    )
    run = make(plan)
    stored = storing_predictions(run, monkeypatch)
    steps = []
    step = type(run.walk.kernel).step
    monkeypatch.setattr(
        type(run.walk.kernel),
        "step",
        lambda *given: steps.append(step(*given)) or steps[-1],
    )
    run.go(progress=False)
    # After eight steps of the first round the last one had size η/(1 + 7/8), and so on.
    assert steps[-1][1].step_size == pytest.approx(1e-3 / (1 + 63 / 8))
    weights = torch.tensor(
        [1 / (1 + (8 * round - 1) / 8) for round in range(3, 9)], dtype=torch.float64
    )
    kept = torch.cat([logarithms for _, logarithms in stored[2:]]).double().exp()
    torch.testing.assert_close(
        run.average,
        (weights[:, None, None] * kept).sum(0) / weights.sum(),
        rtol=1e-12,
        atol=0,
    )


def test_an_online_noise_estimate_survives_a_resume(tmp_path):
    plan = replace(
        PLANS["SGHMC, precisions drawn"], minibatches="fresh", noise_refresh=3
    )
    whole, part = make(plan), make(plan, tmp_path / "run.pt")
    whole.go(progress=False)
    drive(part, 3, checkpoint=part.checkpoint, progress=False)
    resumed = make(plan, tmp_path / "run.pt")
    resumed.go(progress=False)
    assert_same(contents(whole), contents(resumed))
    assert whole.walk.state.noise_variance.shape == (1, whole.walk.posterior.dim)


def test_the_prior_changes_once_a_round_and_only_where_it_is_drawn():
    seen = []
    for name in ("SGHMC, precisions drawn", "SGD"):
        run = make(PLANS[name])
        run.go(progress=False)
        seen.append(run.curve["precisions"])
    assert len({tuple(values) for values in seen[0]}) == 3
    assert seen[1] == [[2.0] * 4] * 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"plan": {"learning_rate": 2e-3}},
            r"run.pt is of a run with other settings \(learning_rate was 0.001 and is "
            r"0.002\): undo the change, or delete the file",
        ),
        ({"plan": {"seed": 9}}, r"other settings \(seed was 0 and is 9\)"),
        ({"train": data(40, 5)}, r"other settings \(checksum was"),
        # other labels
        (
            {"train": Data(data(40).inputs, 9 - data(40).targets)},
            r"other settings \(checksum was",
        ),
        ({"activation": "relu"}, r"other settings \(network was"),
        # what the sum of predictions is of
        ({"examples": data(30, 2)}, r"other settings \(checksum was"),
    ],
)
def test_a_resume_with_other_settings_is_refused(changed, message, tmp_path):
    path = tmp_path / "run.pt"
    make(PLANS["SGD"], path).go(progress=False)
    before = path.read_bytes()
    plan = replace(PLANS["SGD"], **changed.pop("plan", {}))
    with pytest.raises(ExperimentError, match=message):
        make(plan, path, **changed).go(progress=False)
    assert path.read_bytes() == before


def test_a_corrupt_checkpoint_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    make(PLANS["SGD"], path).go(progress=False)
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1  # a bit that flipped
    for content in (b"nothing", bytes(whole)):
        path.write_bytes(content)
        with pytest.raises(
            CheckpointError, match=r"run.pt is corrupt .*; delete it to start anew"
        ):
            make(PLANS["SGD"], path).go(progress=False)
        with pytest.raises(CheckpointError, match=r"run.pt is corrupt"):
            read_run(path)
        assert path.read_bytes() == content


def test_the_checkpoint_of_something_else_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    Checkpoint(path, {"kernel": "SGHMC"}).save({"done": 3})
    with pytest.raises(
        CheckpointError, match=r"run.pt belongs to a run with another kind of file"
    ):
        make(PLANS["SGD"], path).go(progress=False)
    with pytest.raises(
        ExperimentError,
        match=r"nowhere.pt is missing: run the experiment that writes it first",
    ):
        read_run(tmp_path / "nowhere.pt")


@pytest.mark.parametrize("entry", ["made", "walk", "settings", "done"])
def test_a_checkpoint_without_an_entry_is_refused(entry, tmp_path):
    path = tmp_path / "run.pt"
    make(PLANS["SGD"], path).go(progress=False)
    content = read_run(path)
    Checkpoint(path, KIND).save(
        {key: value for key, value in content.items() if key != entry}
    )
    with pytest.raises(
        ExperimentError,
        match=(
            f"run.pt lacks {entry}: it is no run's file, delete it to start that run "
            "anew"
        ),
    ):
        make(PLANS["SGD"], path).go(progress=False)


def test_further_averages_are_of_every_so_many_networks():
    """After two rounds of burn-in: six networks in a row, and every third; of every
    ninth there is none.
    """
    seen, plan = (
        [],
        replace(PLANS["SGD"], average_every=(3, 1, 9), annealing=(5.0, 0.5)),
    )
    run = make(plan, watch=lambda run: seen.append(run.last.clone()))
    by_number = run.go(progress=False)["by_number"]
    # of the last of the eight steps of a round
    weights = [(1 + (8 * done - 1) / 5) ** -0.5 for done in range(1, 9)]
    for row, rounds in zip(by_number, ([5, 8], [3, 4, 5, 6, 7, 8]), strict=True):
        total = sum(weights[done - 1] for done in rounds)
        average = sum(weights[done - 1] * seen[done - 1] for done in rounds) / total
        assert row == pytest.approx([len(rounds), *run.scores(average)], abs=2e-6)
    assert by_number[-1][1:] == run.scores(run.average) and "by_number" not in make(
        PLANS["SGD"]
    ).go(progress=False)


def test_a_run_that_is_older_than_a_setting_had_its_default(tmp_path):
    path = tmp_path / "run.pt"
    whole = make(PLANS["SGD"], path).go(progress=False)
    content = read_run(path)
    del (
        content["settings"]["nesterov"],
        content["settings"]["average_every"],
        content["thinned"],
    )
    Checkpoint(path, KIND).save(content)
    assert make(PLANS["SGD"], path).go(progress=False) == whole
    with pytest.raises(
        ExperimentError,
        match=r"other settings \(average_every was None and is \(2,\)\)",
    ):
        make(replace(PLANS["SGD"], average_every=(2,)), path).go(progress=False)


def test_seconds_go_on_where_they_stopped(tmp_path):
    part = make(PLANS["SGD"], tmp_path / "run.pt")
    part.advance()
    # more than any machine needs for the rest
    part.seconds = part.processor_seconds = part.walking_seconds = 1e9
    part.checkpoint.save(part.content())
    resumed = make(PLANS["SGD"], tmp_path / "run.pt")
    result = resumed.go(progress=False)
    assert all(
        1e9 <= seconds < 2e9
        for seconds in (
            result["processor_seconds"],
            result["seconds"],
            resumed.walking_seconds,
        )
    )


def test_a_learning_rate_that_diverges_is_named_at_once():
    rounds = []
    with pytest.raises(
        DivergedError,
        match="SGD left the finite numbers in round 1: lower its learning rate",
    ):
        make(replace(PLANS["SGD"], learning_rate=1e30), watch=rounds.append).go(
            progress=False
        )
    assert not rounds


def test_logits_that_overflow_are_a_run_that_diverged(monkeypatch):
    run = make(PLANS["SGD"])
    monkeypatch.setattr(
        run.walk.posterior,
        "log_predict",
        lambda position, inputs: torch.full((1, 30, 10), torch.nan),
    )
    with pytest.raises(DivergedError, match="SGD left the finite numbers in round 1"):
        run.go(progress=False)


def test_a_surprised_network_has_the_log_score_of_its_logits(monkeypatch):
    """The probability of e⁻²⁰⁰ is 0 in float32, and the logarithm of that is no
    score.
    """
    run = make(PLANS["SGD"])
    surely = torch.full((1, 30, 10), -200.0)
    surely[0, range(30), (run.targets + 1) % 10] = 0.0
    monkeypatch.setattr(
        run.walk.posterior, "log_predict", lambda position, inputs: surely
    )
    run.advance()
    assert run.scores(run.last)[1] == 200.0


def test_a_run_is_watched_after_each_round():
    seen = []
    make(
        PLANS["SGD"], watch=lambda run: seen.append((run.done, run.walk.num_gradients))
    ).go(progress=False)
    assert seen == [(round, 8 * round) for round in range(1, 9)]


def test_result_files_are_plain_json(tmp_path):
    write_result(tmp_path / "x.json", {"run": make(PLANS["SGD"]).go(progress=False)})
    plan = json.loads((tmp_path / "x.json").read_text())["run"]["plan"]
    assert plan == asdict(PLANS["SGD"])


def test_a_round_by_hand():
    """Eight steps of SGHMC on the minibatches of a pass, then a draw of the precisions
    from the position after them.
    """
    plan, train = PLANS["SGHMC, precisions drawn"], data(40)
    run, generator = make(plan), torch.Generator().manual_seed(3)
    posterior, step_size, friction = run.walk.posterior, 1e-3**0.5, 0.1 / 1e-3**0.5
    position = posterior.initial_position(1, generator)
    momentum = torch.randn(position.shape, generator=generator)
    torch.testing.assert_close(run.walk.state.momentum, momentum, rtol=0, atol=0)
    for round in range(3):
        for step in range(8 * round, 8 * round + 8):
            [indices] = Passes().indices(40, 5, 1, 3, step)
            batch = NetworkPosterior(
                multilayer_perceptron([6, 4, 10], "sigmoid"),
                *(x[indices] for x in train),
            )
            position = position + step_size * momentum
            prior = torch.cat(
                [
                    float(posterior.prior_precision[name]) * w
                    for name, w in posterior.parameters_of(position).items()
                ],
                -1,
            )
            # that of the batch has the prior N(0, 1)
            gradient = 8 * (batch.gradient(position) - position) + prior
            noise = torch.randn(position.shape, generator=generator)
            momentum = (
                momentum
                - step_size * friction * momentum
                - step_size * gradient
                + (2 * friction * step_size) ** 0.5 * noise
            )
        posterior = posterior.given(posterior.draw_hyperparameters(position, generator))
        run.advance()
        torch.testing.assert_close(
            run.walk.state.position, position, rtol=1e-4, atol=1e-5
        )
        torch.testing.assert_close(
            run.walk.state.momentum, momentum, rtol=1e-4, atol=1e-5
        )
        # from here on both are the same once more
        position, momentum = run.walk.state.position, run.walk.state.momentum
        drawn = [
            run.walk.posterior.prior_precision[name]
            for name in posterior.prior_precision
        ]
        torch.testing.assert_close(
            torch.cat(drawn),
            torch.cat(list(posterior.prior_precision.values())),
            rtol=1e-4,
            atol=1e-6,
        )
