"""What all descents share: a stop keeps what was reached."""

import _thread

import pytest
import torch

from sgmc.approximations import dropout, ensemble, snapshots, variational
from sgmc.targets import Gaussian

FITS = {
    "variational": lambda *given: variational(*given, 3, num_steps=400),
    "dropout": lambda *given: dropout(*given, 3, rate=0.3, num_steps=400),
    "ensemble": lambda *given: ensemble(*given, num_steps=400),
    "snapshots": lambda *given: snapshots(
        *given, 8, cycle_length=50, learning_rate=0.01
    ),
}


class Stopped(Gaussian):
    """Somebody presses Ctrl-C at step 123."""

    def draw_minibatches(self, position, generator, step, num_steps=1):
        if step == 123:
            _thread.interrupt_main()
        return super().draw_minibatches(position, generator, step, num_steps)


@pytest.mark.parametrize("name", FITS)
def test_a_stop_keeps_what_was_reached(name):
    start = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.warns(UserWarning, match=r"interrupted.* 1\d\d .*400"):
        part = FITS[name](Stopped(torch.eye(2)), start)
    whole = FITS[name](Gaussian(torch.eye(2)), start)
    assert whole.complete and not part.complete
    assert len(part.samples) == (2 if name == "snapshots" else len(whole.samples))
