"""Stops in a real process: Ctrl-C and SIGTERM that come at any moment, whatever the run
is doing, and change nothing.

The signals come from a thread that knows nothing of the loop, after waits that are a
random share of the time of a whole run; no verdict depends on when they come, for they
go on until there were enough stops."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import torch

from sgmc import sample
from sgmc.checkpoints import Checkpoint
from tests.core.test_sampling import RUNS

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STOPS = 4  # by each of them
CALLS = {
    name: partial(sample, *run, num_samples=40, warm_up=5, thinning=2, progress=False)
    for name, run in RUNS.items()
}


def tensors(result):
    """List all numbers of a run."""
    return [
        result.samples,
        *(result.statistics[name] for name in sorted(result.statistics)),
    ]


def stop_again_and_again(call, file):
    """Stop a run and resume it, again and again, and compare what it gives in the end
    with an uninterrupted one.
    """
    begun = time.perf_counter()
    whole = tensors(call())
    longest_wait = (time.perf_counter() - begun) / 10
    chance, numbers, sent, seen = random.Random(0), itertools.cycle(SIGNALS), [], []
    old = {
        number: signal.signal(number, lambda number, frame: seen.append(number))
        for number in SIGNALS
    }

    def send(over):
        """Send a signal, and the next one when the one before came outside of the loop,
        so that a run gets no second one in it.
        """
        while not over.wait(chance.uniform(0, longest_wait)):
            before = len(seen)
            sent.append(next(numbers))
            os.kill(os.getpid(), sent[-1])
            while len(seen) == before and not over.wait(0.001):
                pass

    stops, messages, wrong = Counter(), [], 0
    while min(stops[number] for number in SIGNALS) < STOPS:
        over = threading.Event()
        sender = threading.Thread(target=send, args=(over,))
        sender.start()
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = call(checkpoint=Checkpoint(file))
        finally:
            over.set()
            sender.join()
        interrupted = [
            str(each.message)
            for each in caught
            if "interrupted after" in str(each.message)
        ]
        messages += interrupted
        if interrupted:
            stops[sent[-1]] += 1
        else:  # it came to its end before a signal came, and starts anew
            wrong += not all(map(torch.equal, tensors(result), whole))
            file.unlink()
    for number, handler in old.items():
        signal.signal(number, handler)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong += not all(
            map(torch.equal, tensors(call(checkpoint=Checkpoint(file))), whole)
        )
    return {
        "stops": stops.total(),
        "torn": sum("within a step" in message for message in messages),
        "wrong": wrong,
        "terminated": [each.count(signal.SIGTERM) for each in (sent, seen)],
    }


def main():
    with tempfile.TemporaryDirectory() as folder:
        print(
            json.dumps(
                {
                    name: stop_again_and_again(call, Path(folder) / f"{name}.pt")
                    for name, call in CALLS.items()
                }
            )
        )


@pytest.fixture(scope="module")
def verdicts():
    """Of one process for all runs: pytest has handlers of its own, and importing
    PyTorch takes longer than most of them.
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        "from tests.core.test_stops import main; main()",
    ]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_whenever_a_signal_comes_the_run_goes_on_later_as_if_it_had_not(name, verdicts):
    verdict = verdicts[name]
    sent, seen = verdict["terminated"]
    assert verdict["stops"] >= 2 * STOPS and verdict["torn"] == verdict["wrong"] == 0
    assert sent == seen  # SIGTERM came to its own handler every time, once
