"""The port of the paper's network program: its draws in their order, its arithmetic."""

import numpy as np
import pytest
import torch

from booklib.data import Data
from experiments.bayesnn_program import Method, Program
from sgmc.checkpoints import Checkpoint
from sgmc.door.running import drive

METHODS = {
    "SGHMC": Method(),
    "sgd": Method(noise=False),
    "SGLD": Method(1.0),
    "nag": Method(0.2, nesterov=True),
}
SIZE = {"held_out": 4, "batch_size": 4, "burn_in": 2, "hidden": 3, "seed": 5}


def examples(number: int, seed: int) -> Data:
    generator = torch.Generator().manual_seed(seed)
    shades = torch.randint(256, (number, 6), generator=generator)
    targets = torch.randint(4, (number,), generator=generator)
    targets[0] = 3
    return Data(shades / 255, targets)


TRAIN, TEST = examples(16, 0), examples(8, 1)


def make(method: Method) -> Program:
    return Program(method, TRAIN, TEST, **SIZE)


def by_autograd(method: Method, rounds: int):
    """The same program in double precision, its gradients by PyTorch: weights, error and
    log loss of the average, precisions.
    """
    random = np.random.RandomState(5)
    shapes = [(6, 3), (3,), (3, 4), (4,)]
    weights = [
        torch.tensor(
            0.01 * random.randn(*shape) if len(shape) > 1 else [0.0] * shape[0]
        )
        for shape in shapes
    ]
    orders = [list(range(16)), list(range(8))]
    for order in orders:
        random.shuffle(order)
    learn = torch.tensor(orders[0][4:]).view(3, 4)
    test = Data(*(x[orders[1]] for x in TEST))
    speeds = [torch.zeros(shape).double() for shape in shapes]
    precisions, seen, scores = [1.0] * 4, [], []

    def logits(inputs, weights):
        a, b, c, d = weights
        return torch.sigmoid(inputs.double() * 255 / 256 @ a + b) @ c + d

    for round in range(rounds):
        for number, chosen in enumerate(learn):
            live = [each.double().detach().requires_grad_() for each in weights]
            loss = torch.nn.functional.cross_entropy(
                logits(TRAIN.inputs[chosen], live), TRAIN.targets[chosen]
            )
            slopes = torch.autograd.grad(loss, live)
            if round > 0 and number == 2:
                precisions = [
                    random.gamma(
                        1 + each.numel() / 2, 1 / (1 + float(each.square().sum()) / 2)
                    )
                    for each in weights
                ]
            for i, slope in enumerate(slopes):
                old, kept = speeds[i], 1 - method.momentum_decay
                speed = kept * old - 0.1 * (slope + precisions[i] / 12 * weights[i])
                if method.noise and round > 0:
                    std = (2 * 0.1 * method.momentum_decay / 12) ** 0.5
                    normal = torch.from_numpy(random.randn(speed.numel()))
                    speed = speed + std * normal.view(speed.shape)
                ahead = (1 + kept) * speed - kept * old if method.nesterov else speed
                weights[i], speeds[i] = weights[i] + ahead, speed
        seen.append(logits(test.inputs, weights).softmax(-1))
        average = torch.stack(seen[min(round, 2) :] if round >= 2 else seen[-1:]).mean(
            0
        )
        wrong = float((average.argmax(-1) != test.targets).double().mean())
        loss = -float(average.gather(-1, test.targets[:, None]).log().mean())
        scores.append((wrong, loss))
    return weights, scores, precisions


@pytest.mark.parametrize("name", METHODS)
def test_it_draws_and_moves_as_the_program_does(name):
    port = make(METHODS[name])
    for _ in range(5):
        port.advance()
    weights, scores, precisions = by_autograd(METHODS[name], 5)
    for found, expected in zip(port.network.tensors, weights, strict=True):
        assert found.dtype == np.float32
        assert found == pytest.approx(expected.numpy(), rel=2e-5, abs=2e-6)
    assert port.precisions == pytest.approx(precisions, rel=1e-5)
    for name, expected in zip(
        ("error", "log_loss"), zip(*scores, strict=True), strict=True
    ):
        assert port.found[name] == pytest.approx(list(expected), abs=2e-5)
    assert port.found["precisions"][0] == [1.0] * 4


def test_a_resume_goes_on_bit_for_bit(tmp_path):
    whole, file = make(Method(0.2, nesterov=True)), tmp_path / "run.pt"
    drive(whole, 6, progress=False)
    drive(make(whole.method), 3, checkpoint=Checkpoint(file), progress=False)
    resumed = make(whole.method)
    drive(resumed, 6, checkpoint=Checkpoint(file), progress=False)
    assert resumed.done == 6 and resumed.found == whole.found
    for one, other in zip(whole.network.tensors, resumed.network.tensors, strict=True):
        assert np.array_equal(one, other)
