"""What all fits share: they go on from where they were stopped, to the same end, and
know their own files.
"""

import _thread
import threading

import pytest
import torch
from torch import nn

from booklib.rivals import dropout, ensemble, snapshots, variational
from sgmc.checkpoints import Checkpoint, CheckpointError
from sgmc.posteriors import NetworkPosterior

FITS = {
    "variational": lambda potential, start, **more: variational(
        potential, start, 3, num_steps=400, local=True, **more
    ),
    "dropout": lambda potential, start, **more: dropout(
        potential, start, 3, rate=0.3, num_steps=400, **more
    ),
    "ensemble": lambda potential, start, **more: ensemble(
        potential, start, num_steps=400, adversarial=0.1, **more
    ),
    "snapshots": lambda potential, start, **more: snapshots(
        potential, start, 8, cycle_length=50, learning_rate=0.01, **more
    ),
}


def posterior():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(30, 2, generator=generator)
    module = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
    return NetworkPosterior(module, inputs, (inputs[:, 0] > 0).long(), batch_size=10)


@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_was_stopped_goes_on_to_the_same_end(name, tmp_path, monkeypatch):
    assert threading.current_thread() is threading.main_thread()
    start = posterior().initial_position(2, torch.Generator().manual_seed(1))
    whole = FITS[name](posterior(), start, progress=False)
    draw_minibatches = NetworkPosterior.draw_minibatches

    def press_control_c(self, position, generator, step, num_steps=1):
        if step == 123:
            _thread.interrupt_main()
        return draw_minibatches(self, position, generator, step, num_steps)

    with (
        monkeypatch.context() as patched,
        pytest.warns(
            UserWarning,
            match=r"interrupted.* 1\d\d .*400",
        ),
    ):
        patched.setattr(NetworkPosterior, "draw_minibatches", press_control_c)
        part = FITS[name](
            posterior(), start, checkpoint=Checkpoint(tmp_path / "fit.pt")
        )
    assert not part.complete and whole.complete
    assert (
        part.samples.shape == whole.samples.shape
        if name != "snapshots"
        else part.samples.shape == (2, 2, 17)
    )
    again = FITS[name](posterior(), start, checkpoint=Checkpoint(tmp_path / "fit.pt"))
    assert again.complete and torch.equal(again.samples, whole.samples)
    assert again.seconds > part.seconds  # of both parts
    finished = FITS[name](
        posterior(), start, checkpoint=Checkpoint(tmp_path / "fit.pt")
    )
    assert torch.equal(finished.samples, whole.samples)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 1}, "seed"),
        ({"num_steps": 30}, "settings"),
        ({"learning_rate": 0.02}, "settings"),
        ({"rate": 0.4}, "what"),
        ({"position": torch.ones(2, 17)}, "start"),
    ],
    ids=["seed", "num_steps", "learning_rate", "rate", "position"],
)
def test_the_file_of_another_fit_is_refused(change, named, tmp_path):
    arguments = {
        "position": torch.zeros(2, 17),
        "num_samples": 1,
        "rate": 0.3,
        "num_steps": 20,
        "checkpoint": Checkpoint(tmp_path / "fit.pt"),
    }
    dropout(posterior(), **arguments)
    with pytest.raises(CheckpointError, match=f"another {named}"):
        dropout(posterior(), **(arguments | change))
