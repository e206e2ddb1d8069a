"""The recommender of Chen et al. (2014, Section 4.3): Bayesian matrix factorisation.

The ratings are MovieLens where the folder of the data has it; else they are made up
from a known factor model, and the result says so. As in the authors' program,
github.com/tqchen/ML-SGHMC (mf/), a minibatch is 1/200 of the training ratings, there
are 20 factors and biases, precisions with Gamma(1, 1) priors are drawn between
stretches of the chain, and a fifth is predicted from the others, five times: the seeds.
Other than theirs, all methods scale every row by what its ratings say, take fewer
steps, and subtract the noise of the minibatches, which samplers therefore draw afresh:
in passes, by which the descents go, errors nearly cancel.
"""

import math
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from booklib.data import Ratings, made_up_ratings, movielens
from booklib.models.factorisation import MatrixFactorisation
from booklib.runs.results import checksum, circumstances
from booklib.runs.run import DivergedError
from experiments.study import CACHE, Experiment, Options, grid, in_a_name, once, study
from sgmc.kernels import SGHMC, SGLD
from sgmc.minibatches import Fresh, Passes
from sgmc.tuning import matched_noise_estimate

FOLDS, BATCHES, PASSES = 5, 200, 200  # minibatches of an epoch, and epochs of a fit
RANK, MADE_UP_RANK = 20, 5
BURN_IN = 0.3  # the share of the epochs
COLD = 5  # an item with at most so many observed ratings is cold
# so many standard deviations hold 90 % of a normal distribution
LEVEL = 1.6448536269514722
GUESS = dict.fromkeys(MatrixFactorisation.names, 1.0)
GUESS |= {"user_factors": 3.0, "item_factors": 3.0}
# These are from Chen et al. (2014), MovieLens-1M.
PUBLISHED = {"SGD": 0.8538, "SGD with momentum": 0.8539}
PUBLISHED |= {"SGLD": 0.8412, "SGHMC": 0.8411}


class Prepared(NamedTuple):
    """The ratings and their circumstances."""

    ratings: Ratings
    means: Tensor | None  #: made-up ratings without their noise
    source: str  #: the source of the ratings
    rank: int  #: number of factors
    folder: Path  #: the folder of saved runs


class Task(NamedTuple):
    """A task that a method is given: a posterior of some ratings, and others to
    predict.
    """

    posterior: MatrixFactorisation
    users: Tensor
    items: Tensor
    passes: int
    seed: int

    def start(self) -> tuple[Tensor, Generator]:
        """Draw where to start, and make the generator of the run."""
        generator = Generator().manual_seed(self.seed)
        return self.posterior.initial_position(1, generator), generator

    def check(self, position: Tensor) -> None:
        """Raise an error if a number of the run is not finite."""
        if not position.isfinite().all():
            raise DivergedError("a run left the finite numbers: lower its step sizes")

    @property
    def steps(self) -> int:
        """The number of minibatches of an epoch."""
        return self.posterior.num_examples // self.posterior.batch_size

    @property
    def burn_in(self) -> int:
        """The number of epochs before predictions are averaged."""
        return math.ceil(BURN_IN * self.passes)


class Prediction(NamedTuple):
    """A method's predictions of ratings that it did not see."""

    means: Tensor
    stds: Tensor


class Average:
    """Predictions averaged over draws, with variances by the law of total variance."""

    def __init__(self, task: Task):
        self.task, self.number, self.noise = task, 0, 0.0
        self.sum = self.squares = 0.0

    def add(self, position: Tensor, posterior: MatrixFactorisation) -> None:
        """Add a draw ``(1, dim)`` of the posterior with its precisions."""
        predicted = posterior.predict(position, self.task.users, self.task.items)
        predicted = predicted[0].double()
        self.sum, self.squares = self.sum + predicted, self.squares + predicted.square()
        self.noise += 1 / float(posterior.noise_precision)
        self.number += 1

    def prediction(self) -> Prediction:
        """Return the mean and the standard deviation of a new rating."""
        means, number = self.sum / self.number, self.number
        variances = self.squares / number - means.square() + self.noise / number
        return Prediction(means, variances.clamp(min=0).sqrt())


def scaled_kernel(
    posterior: MatrixFactorisation, share: float, hamiltonian: bool
) -> SGHMC | SGLD:
    """Make the sampler whose mass is the expected curvature, with a share of noise."""
    information = posterior.information()
    curvature = information + posterior.prior.value
    loudness = posterior.num_examples / posterior.batch_size - 1
    noise = loudness * information
    if hamiltonian:
        step_size, friction = 4 * share / loudness, 2 * curvature
        given = curvature, noise, step_size, friction, curvature
        return SGHMC(step_size, friction, matched_noise_estimate(*given), curvature)
    step_size = 2 * share / loudness
    return SGLD(step_size, noise_estimate=0.5 * step_size * noise, mass=curvature)


def descend(
    task: Task, rate: float, precision: float, momentum_decay: float | None = None
) -> Prediction:
    """Descend with a rate that falls by half a cosine wave, and predict at the end."""
    position, generator = task.start()
    posterior = task.posterior.given(dict.fromkeys(GUESS, precision) | {"noise": 1.0})
    scale, state = task.posterior.given(GUESS), None
    mass = scale.information() + scale.prior.value
    for number in range(task.passes):
        now = 0.5 * rate * (1 + math.cos(math.pi * number / task.passes))
        cold = {"mass": mass, "temperature": 0.0}
        if momentum_decay is None:
            kernel = SGLD(now, **cold)
        else:  # here η = ε² and α = εC, in units of the mass
            friction = momentum_decay / math.sqrt(now) * mass
            kernel = SGHMC(math.sqrt(now), friction, **cold)
        state = kernel.init(posterior, position, generator) if state is None else state
        for _ in range(task.steps):
            state, _ = kernel.step(posterior, state, generator)
        task.check(state.position)
    means = posterior.predict(state.position, task.users, task.items)[0].double()
    rows, ratings = posterior.data
    users, items = rows[:, 0], rows[:, 1] - posterior.num_users
    known = posterior.predict(state.position, users, items)[0]
    error = float((ratings - known).double().square().mean().sqrt())
    return Prediction(means, torch.full_like(means, error))


def drawn(posterior: MatrixFactorisation, *given: object) -> MatrixFactorisation:
    """Draw the precisions, given a position and a generator."""
    precisions = posterior.draw_hyperparameters(*given)
    return posterior.given({name: float(x) for name, x in precisions.items()})


def walk(task: Task, share: float, hamiltonian: bool) -> Prediction:
    """Sample, and draw the precisions after every epoch, but for the first half of the
    burn-in: factors begin near zero, where precisions are so large that neither would
    ever leave. The kernel is made anew for them twice.
    """
    position, generator = task.start()
    posterior, average = task.posterior.given(GUESS), Average(task)
    burn_in, done = task.burn_in, 0
    for number in range(task.passes):
        if number in (0, burn_in * 3 // 4, burn_in):
            kernel = scaled_kernel(posterior, share, hamiltonian)
            state = kernel.init(posterior, position, generator)
            state = state._replace(num_gradients=done)
        for _ in range(task.steps):
            state, _ = kernel.step(posterior, state, generator)
        done, position = done + task.steps, state.position
        task.check(position)
        if number >= burn_in // 2:
            posterior = drawn(posterior, position, generator)
        if number >= burn_in:
            average.add(position, posterior)
    return average.prediction()


def gibbs(task: Task) -> Prediction:
    """Draw users, items and precisions in turn from their exact conditional
    distributions.
    """
    position, generator = task.start()
    posterior, average = task.posterior.given(GUESS), Average(task)
    for number in range(task.passes):
        for side in ("users", "items"):
            position = posterior.draw_rows(position, side, generator)
        posterior = drawn(posterior, position, generator)
        if number >= task.burn_in:
            average.add(position, posterior)
    return average.prediction()


Method = Callable[..., Prediction]  # takes a task, and settings by name
PRECISIONS, SHARES = (2.0, 2.8, 4.0, 5.6, 8.0, 11.2), (0.12, 0.25, 0.5)


FASTER = grid(precision=PRECISIONS, rate=(0.0005, 0.0015), momentum_decay=0.1)
METHODS: dict[str, tuple[Method, list[dict]]] = {
    "SGD": (descend, grid(precision=PRECISIONS, rate=(0.005, 0.015))),
    "SGD with momentum": (descend, FASTER),
    "SGLD": (partial(walk, hamiltonian=False), grid(share=SHARES)),
    "SGHMC": (partial(walk, hamiltonian=True), grid(share=SHARES)),
    "Gibbs, all the data": (gibbs, [{}]),
}


def prepare(options: Options) -> Prepared:
    """Load MovieLens, or make ratings up if no folder was given."""
    folder = options.folder("recommender")
    if options.small:
        return made_up(folder, *SMALL)
    try:
        return Prepared(movielens(options.data), None, "MovieLens", RANK, folder)
    except FileNotFoundError:
        if options.data != Path(os.environ.get("SGMC_DATA", CACHE)).expanduser():
            raise  # a folder that was named must be there
    return made_up(folder, 6_040, 3_706, 1_000_209, MADE_UP_RANK)


SMALL = (100, 80, 3_000, 2)


def made_up(
    folder: Path, num_users: int, num_items: int, num_ratings: int, rank: int
) -> Prepared:
    """Make ratings up from a model with as many factors as the model fitted to them."""
    ratings, means = made_up_ratings(num_users, num_items, num_ratings, rank)
    source = f"made up, from a factor model with {rank} factors and noise of 0.85"
    return Prepared(ratings, means, f"{source}; no MovieLens", rank, folder)


def parts(
    prepared: Prepared, fold: int, validation: bool = False
) -> tuple[Tensor, Tensor]:
    """Choose ratings for training, and a fifth, or a validation tenth, to predict."""
    number = len(prepared.ratings.ratings)
    order = torch.randperm(number, generator=Generator().manual_seed(0))
    own = torch.arange(number) % FOLDS == fold
    others, tenth = order[~own], len(order[~own]) // 10
    return (others[tenth:], others[:tenth]) if validation else (others, order[own])


def task_of(
    prepared: Prepared, train: Tensor, test: Tensor, passes: int, seed: int, minibatches
) -> Task:
    """Make the posterior of some ratings, with a rule for its minibatches."""
    users, items, _ = prepared.ratings
    size = {"num_users": int(users.max()) + 1, "num_items": int(items.max()) + 1}
    size |= {"batch_size": math.ceil(len(train) / BATCHES), "minibatches": minibatches}
    known = (values[train] for values in prepared.ratings)
    posterior = MatrixFactorisation(*known, prepared.rank, **size)
    return Task(posterior, users[test], items[test], passes, seed)


def measure(
    prediction: Prediction, prepared: Prepared, task: Task, test: Tensor
) -> dict:
    """Score predictions and 90 % intervals, for all ratings and for items with hardly
    any.
    """
    root_mean_square = lambda values: round(float(values.square().mean().sqrt()), 6)
    ratings = prepared.ratings.ratings[test].double()
    error, width = ratings - prediction.means, LEVEL * prediction.stds
    cold = task.posterior.counts[task.posterior.num_users :][task.items] <= COLD
    scores = {}
    for name, chosen in {"all": slice(None), "cold items": cold}.items():
        within = (error[chosen].abs() < width[chosen]).double()
        scores[name] = {"ratings": len(within)}
        if not len(within):
            continue
        scores[name] |= {
            "rmse": root_mean_square(error[chosen]),
            "coverage": round(float(within.mean()), 6),
            "width": round(float(2 * width[chosen].mean()), 6),
        }
        if prepared.means is not None:
            means = prepared.means[test].double()
            missed = root_mean_square((prediction.means - means)[chosen])
            floor = root_mean_square((ratings - means)[chosen])
            scores[name] |= {"rmse_of_means": missed, "floor": floor}
    return scores


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Fit each method to each fifth, and yield the result after each fit."""
    passes, few = (12, 2) if options.small else (PASSES, None)
    users, items, ratings = prepared.ratings
    number = len(parts(prepared, 0)[0])
    data = checksum(prepared.ratings)
    fixed = {
        "data": prepared.source,
        "checksum": data,
        "users": int(users.max()) + 1,
        "items": int(items.max()) + 1,
        "ratings": len(ratings),
        "rank": prepared.rank,
        "passes": passes,
        "steps": passes * (number // math.ceil(number / BATCHES)),
        "published_rmse": PUBLISHED,
    }
    best = {}

    def saved(file: str, settings: dict, make: Callable, *given, **more) -> dict:
        depends = {"settings": settings, "passes": passes, "checksum": data, **more}
        make = partial(make, *given, settings, prepared, passes, **more)
        return once(prepared.folder / f"{file}.json", depends, make)

    def try_one(name: str, number: int, settings: dict) -> dict:
        file = f"tuning-{number}-{in_a_name(name)}"
        row = saved(file, settings, tried, METHODS[name][0])
        if "rmse" in row:
            best[name] = min(best.get(name, math.inf), row["rmse"])
        return row

    def ran(name: str, settings: dict, fold: int) -> dict:
        file, method = f"{in_a_name(name)}-{fold}", METHODS[name][0]
        return saved(file, settings, fitted, method, best.get(name), fold=fold)

    choices = {name: settings[:few] for name, (_, settings) in METHODS.items()}
    folds = range(min(options.seeds, FOLDS))
    for found in study(choices, folds, try_one, ran, lambda row: row["rmse"]):
        yield {**fixed, "methods": found}


def tried(method: Method, settings: dict, prepared: Prepared, passes: int) -> dict:
    """Try settings on validation ratings, with half of the epochs."""
    train, validation = parts(prepared, 0, validation=True)
    rule, size = Passes() if method is descend else Fresh(), max(4, passes // 2)
    task = task_of(prepared, train, validation, size, 1_000, rule)
    try:
        prediction = method(task, **settings)
    except DivergedError:
        return {"settings": settings, "diverged": True}
    scores = measure(prediction, prepared, task, validation)
    return {"settings": settings, "rmse": scores["all"]["rmse"]}


def fitted(
    method: Method, validated: float | None, settings: dict, prepared, passes, fold
) -> dict:
    """Fit a fold; the intervals of a descent get the validated width, too."""
    train, test = parts(prepared, fold)
    # a sampler needs independent minibatches
    rule = Passes() if method is descend else Fresh()
    task = task_of(prepared, train, test, passes, fold, rule)
    before = os.times().user
    prediction = method(task, **settings)
    found = {
        "made": circumstances(),
        "fold": fold,
        "seconds_of_processor": round(os.times().user - before, 1),
        "scores": measure(prediction, prepared, task, test),
    }
    if method is descend:
        stds = torch.full_like(prediction.stds, validated)
        widened = measure(prediction._replace(stds=stds), prepared, task, test)
        found["scores_with_validated_width"] = widened
    return found


EXPERIMENT = Experiment(prepare, run)
