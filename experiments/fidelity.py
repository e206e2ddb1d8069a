"""How close to the posterior: every method's predictions against long chains of HMC.

Two problems whose data are always there: a network 10–16–16–1 on the diabetes data, and
one 49–16–10 on 1,000 digits averaged to 7×7; tanh units, the prior N(0, 1). The error
floor is the distance between the predictions of four chains of the reference and of the
other four. Every method may take 4,000 minibatches, one ensemble five and three chains
ten times as many, and has its settings chosen by the log loss on validation examples.
"""

import hashlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Generator, Tensor

from booklib.data import Data, diabetes, digits, letters, part
from booklib.models.networks import multilayer_perceptron
from booklib.runs.results import ExperimentError, circumstances, score
from booklib.scores.fidelity import (
    agreement,
    bin_mixtures,
    check_mixed,
    error_floor,
    predictive_distance,
)
from booklib.scores.prediction import area_under_roc, predictive_entropy
from experiments import neighbours
from experiments.fits import Method, Methods, Task, compare, tasks, whole
from experiments.neighbours import DECAY
from experiments.study import Experiment, Options, Prepared, grid
from sgmc import sample
from sgmc.checkpoints import Checkpoint
from sgmc.door.draws import Draws
from sgmc.kernels import HMC
from sgmc.minibatches import Passes
from sgmc.posteriors import Gaussian, NetworkPosterior
from sgmc.predictions import function_space_rhat
from sgmc.tuning import adapt

CHAINS, LONGER, LARGEST_RHAT = 8, 10, 1.01
NOISE_VARIANCE = 0.5  # least squares leave it of the standardised target
EDGES = torch.linspace(-6, 6, 121, dtype=torch.float64)  # the edges of a target's bins


@dataclass(frozen=True)
class Problem:
    """A data set with a network, and how long everything runs on it."""

    prepared: Prepared  #: the data, and the folder
    layers: tuple[int, ...]  #: the sizes of the network's layers
    batch_size: int  #: examples of a minibatch
    rounds: int  #: epochs of each method
    num_samples: int  #: draws of each chain of the reference
    warm_up: int  #: steps of each chain's warm-up
    num_steps: int  #: leapfrog steps of each trajectory
    largest_rhat: float = LARGEST_RHAT  #: a reference with a larger one is rejected

    @property
    def is_regression(self) -> bool:
        """Whether the target is a number rather than a class."""
        return self.prepared.train.targets.is_floating_point()

    def posterior(self, batch_size: int | None = None) -> NetworkPosterior:
        """Make the posterior, with minibatches or without."""
        return NetworkPosterior(
            multilayer_perceptron(list(self.layers), "tanh"),
            *self.prepared.train,
            batch_size=batch_size,
            minibatches=None if batch_size is None else Passes(),
            likelihood=Gaussian(NOISE_VARIANCE) if self.is_regression else None,
        )

    def cells(self, singles: Tensor) -> Tensor:
        """Average ``(draws, n)`` outputs or class probabilities to ``(n, classes)``."""
        if self.is_regression:
            return bin_mixtures(singles, NOISE_VARIANCE, EDGES)
        return singles.double().mean(0)

    def scores(self, singles: Tensor, targets: Tensor) -> dict[str, float]:
        """Score averaged predictions: error (rate or root mean square) and log loss."""
        if not self.is_regression:
            return score(self.cells(singles), targets)
        singles = singles.double()
        error = (singles.mean(0) - targets).square().mean().sqrt()
        law = torch.distributions.Normal(singles, math.sqrt(NOISE_VARIANCE))
        loss = math.log(len(singles)) - law.log_prob(targets).logsumexp(0).mean()
        return {"error": round(float(error), 6), "log_loss": round(float(loss), 6)}


def small_images(data: Data) -> Data:
    """Average images of 28×28 to 7×7."""
    pooled = torch.nn.functional.avg_pool2d(data.inputs.view(-1, 1, 28, 28), 4)
    return Data(pooled.flatten(1), data.targets)


def prepare(options: Options) -> dict[str, Problem]:
    """Load and split the data of both problems."""
    folder = options.folder("fidelity")
    train, validation, test = diabetes()
    patients = Prepared(train, test, None, folder / "diabetes", validation)
    rest, test = (small_images(data) for data in digits())
    number = torch.arange(len(rest.targets)) % 4  # the digits are sorted by class
    train, validation = part(rest, number == 0), part(rest, number == 1)
    images = Prepared(train, test, None, folder / "digits", validation)
    images = images._replace(others={"letters": small_images(letters())})
    problems = {
        "diabetes": Problem(patients, (10, 16, 16, 1), 28, 400, 3_000, 400, 40),
        "digits": Problem(images, (49, 16, 10), 50, 200, 1_500, 400, 60),
    }
    if not options.small:
        return problems
    shorter = {"rounds": 12, "num_samples": 40, "warm_up": 40, "num_steps": 20}
    shorter["largest_rhat"] = 2.0
    for name, problem in problems.items():
        prepared = problem.prepared
        few = slice(None, None, len(prepared.test.targets) // 20)
        prepared = prepared._replace(test=part(prepared.test, few))
        problems[name] = replace(problem, prepared=prepared, **shorter)
    return problems


def reference(problem: Problem, options: Options) -> tuple[Tensor, dict]:
    """Draw the reference, raise an error if it has not mixed, and return the
    predictions of its chains, ``(chains, n, classes)``, and a summary for the result.
    """
    posterior, folder = problem.posterior(), problem.prepared.folder
    test, number = problem.prepared.test, problem.num_samples
    folder.mkdir(parents=True, exist_ok=True)
    # The chains start from the prior.
    start = torch.randn(CHAINS, posterior.dim, generator=Generator().manual_seed(0))
    given = {"seed": 0, "progress": options.progress}
    kernel = HMC(0.01, problem.num_steps, jitter=0.2)
    kernel, position = adapt(kernel, posterior, start, problem.warm_up, **given)
    given["checkpoint"] = Checkpoint(folder / "reference.pt")
    draws = whole(sample(kernel, posterior, position, number, **given))
    given = problem, posterior, draws.samples, test.inputs
    predictions, rhat, deviations, spread = look_at(*given)
    rhat = rhat.nan_to_num(nan=1.0)  # a probability may be 1 in every draw
    try:
        check_mixed(rhat, problem.largest_rhat)
    except ValueError as error:
        message = f"the reference of {folder.name} is none: {error}"
        raise ExperimentError(message) from error
    distances, agreements = error_floor(predictions)
    floor = {"total_variation": distances}
    if not problem.is_regression:
        floor["agreement"] = agreements
    thinned = draws.samples[:: max(1, number // 200)].flatten(0, 1)
    singles = predict(posterior, thinned, test.inputs)
    acceptance = draws.statistics["acceptance"].mean(0)
    largest = {"largest": rhat.max(), "99%": rhat.quantile(0.99)}
    largest = {name: round(float(each), 6) for name, each in largest.items()}
    means = {name: round(float(each.mean()), 8) for name, each in floor.items()}
    halves = {
        name: [round(float(value), 8) for value in values]
        for name, values in floor.items()
    }
    return predictions, {
        "made": circumstances(),
        "chains": CHAINS,
        "draws": number,
        "step_size": round(kernel.step_size, 6),
        "num_steps": problem.num_steps,
        "acceptance": [round(float(value), 4) for value in acceptance],
        "seconds": round(draws.seconds, 1),
        "rhat": {**largest, "number": rhat.numel()},
        "floor": means,
        "halves": halves,
        "deviations": round(float(deviations.sum(-1).mean()), 8),
        "spread": round(spread, 8),
        "scores": problem.scores(singles, test.targets),
    }


def predict(posterior: NetworkPosterior, positions: Tensor, inputs: Tensor) -> Tensor:
    """Predict by each network: outputs ``(networks, n)``, or class probabilities."""
    return torch.cat([posterior.predict(few, inputs) for few in positions.split(50)])


def look_at(
    problem: Problem, posterior: NetworkPosterior, samples: Tensor, inputs: Tensor
) -> tuple[Tensor, Tensor, Tensor, float]:
    """Summarise the predictions of draws, a few inputs at a time: the averages of each
    chain ``(chains, n, classes)``, R̂ of every prediction, the standard deviations of
    single draws' cells ``(n, classes)``, and the root mean variance of single
    predictions.
    """
    averages, rhats, deviations, variances = [], [], [], []
    for few in inputs.split(20):
        pooled = predict(posterior, samples.flatten(0, 1), few)
        values = pooled.unflatten(0, samples.shape[:2])
        averages.append(torch.stack([problem.cells(each) for each in values.unbind(1)]))
        rhats.append(function_space_rhat(values))
        variances.append(pooled.double().var(0))
        singles = pooled.double()
        if problem.is_regression:
            thinned = pooled[:: max(1, len(pooled) // 2_000)]
            singles = torch.stack([problem.cells(one[None]) for one in thinned])
        deviations.append(singles.std(0))
    spread = float(torch.cat(variances).mean().sqrt())
    return torch.cat(averages, 1), torch.cat(rhats), torch.cat(deviations), spread


def curve(task: Task, rate: float) -> Draws:
    """Descend, and draw all weights from N(θ̂, H⁻¹), where H is the Gauss–Newton
    Hessian.
    """
    started = time.monotonic()
    mode = neighbours.descend(task, rate).samples[-1]
    root = torch.linalg.cholesky(gauss_newton(task.posterior, mode[0]))
    size, generator = (task.num_networks, 1, len(root)), Generator()
    generator.manual_seed(task.seed)
    normal = torch.randn(size, generator=generator, dtype=root.dtype)[..., None]
    drawn = torch.linalg.solve_triangular(root.mT, normal, upper=True)[..., 0]
    given = {"kernel": "laplace(Gauss-Newton)", "seed": task.seed}
    return Draws(mode + drawn.to(mode), seconds=time.monotonic() - started, **given)


def gauss_newton(posterior: NetworkPosterior, position: Tensor) -> Tensor:
    """Compute Λ + ΣᵢJᵢᵀHᵢJᵢ, Jᵢ being the Jacobian of an example's outputs and Hᵢ the
    Hessian of −log p(yᵢ | z) in them: ``(dim, dim)``.

    It is the Hessian of U but for the curvature of the outputs, and always positive
    (Daxberger et al., 2021).
    """
    # A Jacobian in forward mode would warn of what is deprecated inside PyTorch.
    jacrev, vmap = torch.func.jacrev, torch.func.vmap

    def outputs(position: Tensor, inputs: Tensor) -> Tensor:
        return posterior.outputs(position[None], inputs[None, None])[0, 0]

    def curvature(output: Tensor, target: Tensor) -> Tensor:
        loss = posterior.likelihood.loss
        return jacrev(jacrev(lambda z: loss(z[None, None], target[None])))(output)

    total = (posterior.prior @ torch.eye(len(position)).to(position)).double()
    batches = (values.split(100) for values in posterior.data)
    for inputs, targets in zip(*batches, strict=True):
        jacobian = vmap(jacrev(outputs), (None, 0))(position, inputs)
        middle = vmap(curvature)(vmap(outputs, (None, 0))(position, inputs), targets)
        if middle.ndim != 3:  # the network has one output
            middle, jacobian = middle[:, None, None], jacobian[:, None]
        total += (jacobian.mT @ (middle @ jacobian)).sum(0).double()
    return total


def hmc(task: Task, step_size: float, num_steps: int) -> Draws:
    """Sample by HMC with one gradient of all the data a round, half of the rounds
    burn-in.
    """
    number = max(2, task.rounds // (num_steps + 1))
    kept, kernel = number // 2, HMC(step_size, num_steps, jitter=0.2)
    size = {"warm_up": number - kept}
    return sample(kernel, task.posterior, task.start(), kept, **size, **task.run())


def longer(method: Method, task: Task, **settings) -> Draws:
    """Give a method several times the rounds and networks."""
    rounds, number = LONGER * task.rounds, LONGER * task.num_networks
    return method(replace(task, rounds=rounds, num_networks=number), **settings)


def methods(problem: Problem) -> Methods:
    """List the methods, those of neighbours first, with settings in steps of three."""
    momentum, adam = (0.05, 0.15, 0.5, 1.5, 0.015), (3e-3, 1e-2, 3e-2, 0.1)
    plain, low = (0.03, 0.1, 0.3, 1.0, 3.0, 0.01), (0.01, 0.03, 0.1)
    both = grid(rate=low, decay=0.01) + grid(rate=(0.1, 0.4, 1.0), decay=0.1)
    lower, first_units = grid(rate=0.003, decay=0.01), len(problem.layers) - 2
    masks = ((0.0, 0.2), (0.1, 0.1), (0.0, 0.05))
    masks = tuple([first] + [other] * first_units for first, other in masks)
    own = {
        "SGHMC": both + lower + grid(rate=0.03, decay=0.1),
        "SGLD": grid(rate=(0.01, 0.03, 0.1, 0.25, 0.5, 1.0, 0.003)),
        "cSGLD": grid(rate=(0.03, 0.1, 0.25, 0.5, 1.0, 0.01)),
        "cSGHMC": grid(rate=(0.05, 0.15, 0.5, 1.5, 0.015), decay=DECAY),
        "SGNUTS": [both[0], *both[2:], *lower],
        "SGD": grid(rate=plain, decay=1.0, number=1),
        "SGD with momentum": grid(rate=momentum),
        "path of SGD with momentum": grid(rate=momentum),
        "snapshots of SGD": grid(rate=plain, decay=1.0),
        "snapshots with momentum": grid(rate=(0.15, 0.5, 1.5, 0.05), decay=DECAY),
        "dropout": grid(rate=(3e-3, 1e-2, 3e-2), dropped=masks),
        "ensemble": grid(rate=adam),
        "ensemble, adversarial": grid(rate=adam, adversarial=0.01),
        "ensemble, five times the budget": grid(rate=adam, share=1),
        "SWAG": grid(rate=momentum),
        "Laplace, last layer": grid(rate=momentum),
    }
    cold = grid(rate=0.03, decay=DECAY, temperature=(0.1, 0.01))
    more = {"SGHMC, cold": cold, "cSGHMC, cold": cold}
    more["Bayes by Backprop"] = grid(rate=(1e-3, 3e-2), initial_std=0.05)
    found = {
        name: (method, own.get(name, settings) + more.get(name, []))
        for name, (method, settings) in neighbours.methods().items()
    }
    if problem.is_regression:
        del found["Laplace, last layer"]  # that method needs a classifier
    found["Laplace, all weights"] = (curve, grid(rate=momentum))
    steps = ((0.02, 20), (0.03, 20), (0.03, 10), (0.04, 20), (0.03, 5), (0.02, 10))
    listed = [{"step_size": step, "num_steps": number} for step, number in steps]
    found["HMC, the same budget"] = (hmc, listed)
    for name in ("SGHMC", "SGLD", "HMC, the same budget"):
        method, settings = found[name]
        short = name.partition(",")[0]
        found[f"{short}, ten times the budget"] = (partial(longer, method), settings)
    return found


def run(options: Options, problems: dict[str, Problem]) -> Iterator[dict]:
    """Draw the references, and compare the methods with them."""
    found = {name: reference(problem, options) for name, problem in problems.items()}
    summaries = {
        name: {"reference": summary, "methods": {}}
        for name, (_, summary) in found.items()
    }
    result = {"problems": summaries}
    for name, problem in problems.items():
        for each in compare_with(found[name][0], problem, options):
            result["problems"][name].update(each)
            yield result


def compare_with(
    predictions: Tensor, problem: Problem, options: Options
) -> Iterator[dict]:
    """Compare the methods with a reference's predictions ``(chains, n, classes)``."""
    exact, posterior = predictions.mean(0), problem.posterior(problem.batch_size)

    def validate(draws: Draws, task: Task, prepared: Prepared) -> dict:
        inputs, targets = prepared.validation
        singles = predict(task.posterior, draws.samples.flatten(0, 1), inputs)
        return problem.scores(singles, targets)

    listed, task = (
        methods(problem),
        tasks(posterior, lambda rounds: rounds // 2, options),
    )
    # A small run chooses nothing, and its twelve rounds end too far from a mode of the
    # last layer.
    if options.small:
        listed = {
            name: (method, settings[-1:])
            for name, (method, settings) in listed.items()
            if name != "Laplace, last layer"
        }
    digest = hashlib.sha256(exact.numpy().tobytes()).hexdigest()[:32]
    more = {"assess": partial(assess, problem, exact), "validate": validate}
    more |= {"prefer": lambda found: found["log_loss"], "reference": digest}
    return compare(listed, task, problem.prepared, options, problem.rounds, **more)


def assess(
    problem: Problem, exact: Tensor, draws: Draws, task: Task, prepared: Prepared
) -> dict:
    """Score a fit on the test examples, and against the reference ``(n, classes)``."""
    positions, test = draws.samples.flatten(0, 1), prepared.test
    singles = predict(task.posterior, positions, test.inputs)
    averaged = problem.cells(singles)
    variance = singles.double().var(0, correction=0).mean()
    found = {
        "networks": len(positions),
        "scores": problem.scores(singles, test.targets),
        "total_variation": round(predictive_distance(averaged, exact), 8),
        "spread": round(float(variance.sqrt()), 8),
    }
    if problem.is_regression:
        return found
    inside, auroc = predictive_entropy(averaged), {}
    for name, other in prepared.others.items():
        outside = problem.cells(predict(task.posterior, positions, other.inputs))
        auroc[name] = round(area_under_roc(inside, predictive_entropy(outside)), 6)
    same = round(agreement(averaged, exact), 8)
    return {**found, "agreement": same, "auroc": auroc}


EXPERIMENT = Experiment(prepare, run)
