"""Distillation, against what a student must come to where that is known."""

import pytest
import torch
from torch import distributions, nn

from booklib.models.networks import multilayer_perceptron
from booklib.rivals import snapshots
from booklib.rivals.distillation import SoftTargets, lessons
from sgmc.door.draws import Draws
from sgmc.posteriors import Gaussian, LinearRegression, NetworkPosterior, Softmax
from tests.checks import z_bound

DOUBLE = torch.float64


def numbers(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=DOUBLE)


@pytest.fixture
def teacher(generator):
    inputs = numbers(generator, 12, 4)
    return NetworkPosterior(
        multilayer_perceptron([4, 5, 3]).double(), inputs, torch.arange(12) % 3
    )


@pytest.fixture
def draws(teacher, generator):
    return Draws(numbers(generator, 6, 2, teacher.dim))


def test_lessons_are_what_the_draws_predict_on_average(teacher, draws):
    inputs, targets = lessons(teacher, draws, teacher.data[0])
    assert torch.equal(inputs, teacher.data[0]) and targets.dtype == DOUBLE
    torch.testing.assert_close(
        targets, teacher.predict(draws.samples.flatten(0, 1), inputs).mean(0)
    )


def test_copies_are_the_inputs_with_noise_and_are_predicted_anew(teacher, draws):
    given = teacher.data[0].repeat(500, 1)
    inputs, targets = lessons(teacher, draws, given, copies=2, noise_std=0.3, seed=1)
    assert torch.equal(inputs[: len(given)], given) and len(inputs) == len(
        targets
    ) == 3 * len(given)
    first, second = (inputs[len(given) :] - given.repeat(2, 1)).view(2, -1)
    for z in (
        first.mean() / 0.3,
        (first * second).mean() / 0.09,
        ((first.square() / 0.09).mean() - 1) / 2**0.5,
    ):
        assert abs(z) * len(first) ** 0.5 < z_bound(3)
    torch.testing.assert_close(
        targets[-5:], teacher.predict(draws.samples.flatten(0, 1), inputs[-5:]).mean(0)
    )
    again = lessons(teacher, draws, given, copies=2, noise_std=0.3, seed=1)[0]
    assert torch.equal(again, inputs) and not torch.equal(
        lessons(teacher, draws, given, copies=2, noise_std=0.3)[0], inputs
    )


def test_the_energy_is_the_divergence_from_the_teacher(teacher, draws, generator):
    """Σ KL(p̄ ∥ q) + ½|w|²/τ², up to the entropies of the targets, by
    torch.distributions.
    """
    inputs, targets = lessons(teacher, draws, teacher.data[0], copies=1, noise_std=0.5)
    student = NetworkPosterior(
        multilayer_perceptron([4, 2, 3]).double(),
        inputs,
        targets,
        2.0,
        likelihood=SoftTargets(),
    )
    position = numbers(generator, 3, student.dim)
    taught, said = (
        distributions.Categorical(probs=probabilities)
        for probabilities in (targets, student.predict(position, inputs))
    )
    divergence = distributions.kl_divergence(taught, said).sum(
        -1
    ) + 0.25 * position.square().sum(-1)
    torch.testing.assert_close(
        student.energy(position) - taught.entropy().sum(), divergence
    )
    torch.testing.assert_close(
        student.likelihood.loss(student.outputs(position, inputs[None]), targets[None]),
        -student_density(student, position),
    )


def student_density(student, position):
    return student.log_likelihood(
        position, *(each[None] for each in student.data)
    ).sum()


def test_hard_targets_are_those_of_a_softmax(generator):
    outputs, classes = numbers(generator, 2, 6, 3), torch.arange(6)[None] % 3
    hard = nn.functional.one_hot(classes, 3).to(DOUBLE)
    for what in ("log_density", "loss"):
        torch.testing.assert_close(
            getattr(SoftTargets(), what)(outputs, hard),
            getattr(Softmax(), what)(outputs, classes),
        )


def test_a_student_that_can_say_anything_says_what_the_teacher_does(teacher, draws):
    """One weight for each input and class: at the mode p̄ − q = w/τ², and with a wide
    prior q is p̄.
    """
    predictions = lessons(teacher, draws, teacher.data[0])[1]
    module, each = nn.Linear(12, 3, bias=False).double(), torch.eye(12, dtype=DOUBLE)
    for variance, bound in ((1.0, None), (1e6, 1e-4)):
        student = NetworkPosterior(
            module, each, predictions, variance, likelihood=SoftTargets()
        )
        fit = {"cycle_length": 4_000, "learning_rate": 0.5, "progress": False}
        mode = snapshots(
            student, torch.zeros(1, student.dim, dtype=DOUBLE), 1, **fit
        ).samples[0]
        said = student.predict(mode, each)[0]
        torch.testing.assert_close(
            predictions - said, mode.view(3, 12).mT / variance, atol=1e-6, rtol=0
        )
        assert bound is None or (predictions - said).abs().max() < bound


def test_a_linear_student_of_a_regression_comes_to_the_mean_of_the_draws_and_no_further(
    generator,
):
    """Its mode is (G/σ² + I/τ²)⁻¹Gθ̄/σ²: the draws enter by their mean θ̄ alone, so
    that their spread is lost.
    """
    inputs, size, dim = numbers(generator, 40, 3), 40, 3
    inputs = inputs @ torch.tensor(
        [[1.0, 0.6, 0.2], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]], dtype=DOUBLE
    )
    exact = LinearRegression(inputs, inputs.sum(-1) + numbers(generator, 40), 1.0, 2.0)
    teacher = NetworkPosterior(
        nn.Linear(dim, 1, bias=False).double(),
        inputs,
        exact.data[1],
        2.0,
        likelihood=Gaussian(1.0),
    )
    spread = numbers(generator, 50, 1, dim) @ torch.linalg.cholesky(exact.covariance).mT
    draws, wider = (
        Draws(exact.mean + scale * (spread - spread.mean(0))) for scale in (1.0, 10.0)
    )
    fit = {"cycle_length": 2_000, "learning_rate": 0.5 / size, "progress": False}
    modes = []
    for some in (draws, wider):
        taught = lessons(teacher, some, inputs)
        student = NetworkPosterior(
            nn.Linear(dim, 1, bias=False).double(),
            *taught,
            2.0,
            likelihood=Gaussian(1.0),
        )
        modes.append(
            snapshots(student, torch.zeros(1, dim, dtype=DOUBLE), 1, **fit).samples[
                0, 0
            ]
        )
    G = inputs.mT @ inputs
    expected = torch.linalg.solve(G + torch.eye(dim, dtype=DOUBLE) / 2, G @ exact.mean)
    for mode in modes:
        torch.testing.assert_close(mode, expected, atol=1e-6, rtol=0)
