"""The public surface: whatever is given to a function or a constructor, it gives a
result or an error that names the argument, and nothing else.

Each argument of each call is replaced by each value of a list in turn, and, at random
by a fixed seed, two at once: SURFACE=5000 makes so many more of these.
"""

import math
import os
import random
import re
import warnings

import pytest
import torch
from torch import nn

from booklib import rivals
from booklib.data import made_up_ratings, synthetic_mushrooms
from booklib.models import factorisation, gibbs, networks
from booklib.rivals import distillation, pruning, thinning
from booklib.scores import diagnostics, fidelity, prediction
from sgmc import (
    checkpoints,
    kernels,
    minibatches,
    models,
    noise,
    other_kernels,
    posteriors,
    sample,
    splittings,
    targets,
    tuning,
)
from sgmc.door import draws
from sgmc.door.sampling import DivergenceError

GENERATOR = torch.Generator().manual_seed(0)
NORMAL, START = targets.Gaussian.standard(2), torch.zeros(3, 2)
LINE = targets.Gaussian.standard(1)
INPUTS, LABELS = torch.randn(9, 2, generator=GENERATOR), torch.arange(9) % 2
LOGISTIC = posteriors.LogisticRegression(INPUTS, LABELS.float(), batch_size=3)
WEIGHTS = {"step_size": torch.ones(30, 3)}
DRAWS = draws.Draws(torch.randn(30, 3, 2, generator=GENERATOR), WEIGHTS)
DATA = dict(inputs=INPUTS, targets=LABELS.float(), batch_size=3)
NETWORK = posteriors.NetworkPosterior(nn.Linear(2, 2), INPUTS, LABELS)
SIGNALS = dict(mean=DRAWS.samples, std=torch.ones(30, 3, 2))
RUN = dict(potential=NORMAL, position=START, seed=0)
MORE = dict(num_samples=2, progress=False)
ONE, TWO = torch.ones(2), torch.eye(2)
CALLS = {  # with arguments that are right
    sample: dict(
        **RUN,
        **MORE,
        kernel=kernels.SGLD(0.1),
        warm_up=1,
        thinning=1,
        collect=torch.abs,
        checkpoint=None,
    ),
    kernels.HMC: dict(
        step_size=0.1, num_steps=2, mass=1.0, metropolis=True, jitter=0.1, refreshment=1
    ),
    kernels.NUTS: dict(step_size=0.1, mass=ONE, max_depth=3),
    kernels.NaiveSGHMC: dict(step_size=0.1, num_steps=2, mass=TWO, metropolis=False),
    kernels.SGHMC: dict(
        step_size=0.1,
        friction=1.0,
        noise_estimate=0.1,
        mass=ONE,
        num_steps=2,
        resample_every=2,
        temperature=1.0,
    ),
    kernels.SGLD: dict(step_size=0.1, temperature=1.0, noise_estimate=0.1, mass=TWO),
    kernels.SGNUTS: dict(
        step_size=0.1,
        friction=1.0,
        noise_estimate=0.1,
        mass=1.0,
        max_depth=3,
        weights="uniform",
        integrator="palindromic",
    ),
    other_kernels.RandomWalkMetropolis: dict(step_size=0.1),
    other_kernels.AMAGOLD: dict(step_size=0.1, friction=0.5, num_steps=3, mass=ONE),
    other_kernels.SGNHT: dict(step_size=0.1, diffusion=0.5, mass=ONE),
    gibbs.Gibbs: dict(kernel=kernels.NUTS(0.1), num_steps=1),
    other_kernels.Cyclical: dict(
        kernel=kernels.SGLD,
        step_size=0.1,
        cycle_length=5,
        num_draws=2,
        exploration=0.1,
        cold=True,
    ),
    splittings.Splitting: dict(flows=splittings.flows.baoab(0.1, 1.0), num_steps=1),
    posteriors.LinearRegression: dict(DATA, noise_variance=1.0, prior_variance=1.0),
    posteriors.LogisticRegression: dict(DATA, prior_variance=1.0, minibatches=None),
    posteriors.NetworkPosterior: dict(
        DATA, module=nn.Linear(2, 2), targets=LABELS, prior_variance=1.0
    ),
    models.Posterior: dict(
        log_prior=lambda position: -position.square().sum(-1),
        log_likelihood=lambda position, x: -((x - position[:, :1]) ** 2),
        data=(torch.zeros(9),),
        dim=2,
        batch_size=3,
    ),
    posteriors.Gaussian: dict(noise_variance=1.0),
    models.control_variates: dict(posterior=LOGISTIC, reference=torch.zeros(2)),
    models.Parameters: dict(shapes={"slope": (2,)}),
    minibatches.Fresh: dict(replacement=False),
    minibatches.Held: dict(num_steps=2, rule=minibatches.Passes()),
    noise.OnlineNoise: dict(kind="diagonal", refresh_every=1, averaging=0.5),
    noise.estimate_noise_variance: dict(
        potential=LOGISTIC, position=START, generator=GENERATOR, kind="diagonal"
    ),
    targets.Gaussian: dict(covariance=TWO, mean=ONE),
    targets.Gaussian.standard: dict(dim=2),
    targets.DoubleWell: dict(dim=1),
    targets.GaussianMixture: dict(means=TWO, variance=1.0),
    targets.NoisyGradient: dict(potential=NORMAL, noise_variance=ONE),
    tuning.adapt: dict(
        RUN,
        kernel=kernels.HMC(0.1, 1),
        num_steps=20,
        target_acceptance=0.8,
        progress=False,
    ),
    tuning.find_mode: dict(potential=NORMAL, position=START, max_steps=3),
    tuning.half_step: dict(RUN, **MORE, kernel=kernels.SGLD(0.1), warm_up=1),
    tuning.default_kernel: dict(RUN, step_size=0.1),
    tuning.standard_deviations: dict(run=DRAWS, reference=DRAWS),
    rivals.laplace: dict(RUN, num_samples=2, position=START),
    rivals.swag: dict(draws=DRAWS, num_samples=2, rank=2, seed=0),
    rivals.ensemble: dict(
        RUN | dict(position=TWO),
        num_steps=2,
        learning_rate=0.01,
        adversarial=0.0,
        progress=False,
    ),
    rivals.snapshots: dict(
        RUN, **MORE, cycle_length=2, learning_rate=0.01, momentum_decay=0.1
    ),
    rivals.constant_sgd: dict(noise_variance=ONE, kind="diagonal"),
    rivals.dropout: dict(RUN, **MORE, rate=0.5, num_steps=2, learning_rate=0.01),
    rivals.variational: dict(
        RUN, **MORE, num_steps=2, learning_rate=0.01, num_draws=2, initial_std=0.1
    ),
    distillation.lessons: dict(
        teacher=NETWORK,
        draws=draws.Draws(torch.zeros(2, 2, NETWORK.dim)),
        inputs=INPUTS,
        copies=1,
        seed=0,
    ),
    fidelity.bin_mixtures: dict(
        outputs=torch.zeros(3, 2), noise_variance=1.0, edges=torch.arange(2.0)
    ),
    fidelity.predictive_distance: dict(first=TWO, second=TWO),
    fidelity.error_floor: dict(predictions=TWO.repeat(2, 1, 1)),
    diagnostics.bin_probabilities: dict(potential=LINE, edges=ONE.cumsum(0)),
    diagnostics.total_variation: dict(
        samples=ONE, probabilities=ONE / 2, edges=torch.arange(3.0)
    ),
    diagnostics.inverse_transform_samples: dict(
        potential=LINE, num_samples=2, low=-2.0, high=2.0, generator=GENERATOR
    ),
    prediction.error_rate: dict(probabilities=TWO, targets=LABELS[:2]),
    prediction.log_score: dict(probabilities=TWO, targets=LABELS[:2]),
    prediction.brier_score: dict(probabilities=TWO, targets=LABELS[:2]),
    prediction.reliability_curve: dict(
        probabilities=TWO, targets=LABELS[:2], num_bins=4
    ),
    prediction.rejection_curve: dict(
        probabilities=TWO, targets=LABELS[:2], shares=[0.0, 0.5]
    ),
    prediction.area_under_roc: dict(inside=ONE, outside=ONE),
    prediction.answered: dict(inside=TWO, outside=TWO, share=0.8),
    prediction.predictive_entropy: dict(probabilities=TWO),
    networks.multilayer_perceptron: dict(sizes=[3, 2], activation="relu"),
    networks.convolutional_network: dict(
        shape=(1, 4, 4),
        channels=(2, 2),
        hidden=3,
        kernel_size=3,
        activation="tanh",
        normalisation=None,
        classes=2,
    ),
    synthetic_mushrooms: dict(num_examples=5, seed=0),
    made_up_ratings: dict(
        num_users=4, num_items=3, num_ratings=5, rank=1, noise_std=0.1, seed=0
    ),
    factorisation.MatrixFactorisation: dict(
        users=LABELS, items=LABELS, ratings=INPUTS[:, 0], rank=2, mean=1.0
    ),
    pruning.prune: dict(draws=draws.Draws(DRAWS.samples, SIGNALS), share=0.5),
    thinning.thin: dict(draws=DRAWS, number=4),
    thinning.herd: dict(draws=DRAWS, number=4, gram=torch.eye(90)),
    draws.Draws: dict(samples=torch.zeros(3, 2, 1)),
    draws.Draws.pool: dict(runs=[DRAWS, draws.Draws(DRAWS.samples, WEIGHTS, seed=1)]),
    DRAWS.mean_and_standard_error: dict(function=torch.abs),
    checkpoints.Checkpoint: dict(path="run.pt", every=30.0),
}
HUGES = 10**30, 1e300
BAD = [
    *(None, "0", b"", True, -1, 0, 2.5, -0.5, HUGES[1], math.nan, math.inf, 1j),
    *([], {}, (), object(), torch.Tensor, lambda *_: None, kernels.SGLD),
    *(kernels.SGLD(0.1), NORMAL, LOGISTIC, DRAWS, HUGES[0]),
    *(torch.tensor(0.5), torch.ones(0), torch.ones(0, 2), torch.ones(2, 0)),
    *(torch.ones(3), -torch.ones(2), torch.full((3, 2), math.nan), torch.ones(1, 1)),
    *(torch.full((2,), math.inf), torch.full((3, 2), 1e30), torch.ones(2, 2, 2)),
    *(torch.ones(3, 2, dtype=torch.int64), torch.ones(3, 2, dtype=torch.complex64)),
    *(torch.ones(3, 2, dtype=torch.bool), torch.ones(3, 2, dtype=torch.float64)),
    *(TWO.half(), torch.ones(3, 2, device="meta"), torch.tensor([[1.0, 2.0], [0, 1]])),
]
# what a message may say in place of the argument's name
ALSO = {
    "position": "start|gradient",
    "potential": "gradient|energy|density",
    "inputs": "data",
    "targets": "data",
}
# a protocol, what a function gives, or what takes minutes
NOT_CALLED = {"Kernel", "DefaultSGHMC", "HalfStep", "tune", "matched_noise_estimate"}
# right, but endless, numbers of steps
ENDLESS = {"num_steps", "thinning", "warm_up", "max_steps", "cycle_length"}
ENDLESS |= {"num_samples", "chains", "copies"}
# helpers of the book, which may run out of memory or digits
OURS = "booklib.scores.diagnostics", "booklib.scores.prediction", "booklib.models"
OURS += "booklib.data", "booklib.rivals.variational"
RUNS = [call for call in CALLS if {"position", "draws", "law"} & CALLS[call].keys()]


def complaint(call, arguments, changed):
    """Make a call, and say what is wrong with what it does with changed arguments."""
    names = "|".join(rf"\b{name}\b|{ALSO.get(name, '$^')}" for name in changed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(**(arguments | changed))
        except (ValueError, DivergenceError) as error:
            if re.search(names, str(error)):
                return None
            return f"ValueError: {str(error)[:150]}"
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:150]}"


def changes(call):
    """List single bad values of a call's arguments, and pairs of them."""
    singles = [
        {name: value}
        for name in CALLS[call]
        for value in BAD
        if not (call in RUNS and name in ENDLESS and value is HUGES[0])
        if not (call.__module__.startswith(OURS) and any(value is x for x in HUGES))
    ]
    chance = random.Random(call.__qualname__)
    pairs = range(5 + int(os.environ.get("SURFACE", "0")) // len(CALLS))
    return singles + [chance.choice(singles) | chance.choice(singles) for _ in pairs]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__qualname__)
def test_a_bad_argument_is_named(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert complaint(call, CALLS[call], {}) is None
    found = {}
    for changed in changes(call):
        if said := complaint(call, CALLS[call], changed):
            found.setdefault((*changed, said[:40]), (changed, said))
    assert not found, "\n".join(map(str, found.values()))


def test_every_kernel_and_tool_of_tuning_is_among_the_calls():
    for room in (kernels, other_kernels, tuning):
        assert room.__all__
        for name in room.__all__:
            assert getattr(room, name) in CALLS or name in NOT_CALLED, name


def test_there_are_thousands_of_calls():
    assert sum(len(changes(call)) for call in CALLS) > 6_500
