"""What samplers report as a local learning coefficient, against what the law predicts.

usage: python -m benchmarks.learning_coefficient PART

``devinterp`` runs devinterp 2.0.1 itself, in ten settings, and predicts each from the
minibatches that it drew; it needs an environment with ``devinterp==2.0.1`` above this
one. ``regression`` runs SGLD and SGHMC at settings that were chosen before, and so do
``reduced-rank`` and ``deep-linear``, on linear networks whose coefficient is known; an
exact sampler of each is a part of its own, ``-exact``. All go to
``book/results/learning_coefficient.json``, each with its provenance."""

import argparse
import math
import tempfile
import time
import warnings
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from booklib.models.learning_coefficient import (
    Minibatches,
    Minimum,
    choose,
    reported,
    reported_given,
)
from booklib.runs.results import RESULTS, circumstances, read_result, write_result
from sgmc import sample
from sgmc.kernels import NUTS, SGHMC, SGLD
from sgmc.models.functions import Posterior
from sgmc.posteriors import LinearRegression
from sgmc.potentials import Potential
from sgmc.splittings import langevin_chain

DOUBLE = torch.float64
STORED = RESULTS / "learning_coefficient.json"
USERS = 0.5  # ηp of the stiffest direction, where a Metropolis step accepts 0.90


def regression(n: int, dim: int = 10) -> tuple[Tensor, Tensor]:
    """Make a regression with curvatures from 0.1 to 10: inputs, and the residuals at
    the least squares, so that the minimum lies at 0.
    """
    generator = torch.Generator().manual_seed(0)
    scale = torch.logspace(-1, 1, dim, dtype=DOUBLE).sqrt()
    x = scale * torch.randn(n, dim, generator=generator, dtype=DOUBLE)
    y = torch.randn(n, generator=generator, dtype=DOUBLE)
    return x, y - x @ torch.linalg.lstsq(x, y[:, None]).solution[:, 0]


def minimum_of(x: Tensor, residuals: Tensor) -> Minimum:
    """Compute the Hessian and the covariance of one example's gradient."""
    gradients = x * residuals[:, None]
    n = len(x)
    return Minimum(x.T @ x / n, gradients.T @ gradients / n, n)


# what differs from ``PLAIN``: shuffled minibatches of 64 out of 2,000, nβ = n/log n
SETTINGS = {
    "the step of users": {},
    "twice that step": {"r": 1.0},
    "a fifth of it": {"r": 0.1},
    "burn-in 200 of 600": {"num_burnin_steps": 200},
    "own minibatches": {"match_sampling_input_ids_across_chains": False},
    "minibatches of 16": {"batch_size": 16},
    "four accumulated": {"gradient_accumulation_steps": 4},
    "γ = 100": {"localization": 100.0},
    "nβ = 64/log 64": {"n_beta": 64 / math.log(64)},
    "another shuffle": {},
}
PLAIN = {
    "r": USERS,
    "num_chains": 20,
    "num_draws": 400,
    "num_burnin_steps": 0,
    "batch_size": 64,
    "n_beta": 2_000 / math.log(2_000),
    "localization": 1.0,
    "gradient_accumulation_steps": 1,
    "match_sampling_input_ids_across_chains": True,
}


def run_devinterp(given: dict, x: Tensor, residuals: Tensor, step: float) -> dict:
    """Run devinterp on a regression, example i being the token i; give its estimates,
    its first loss, and the examples of each step of each chain.
    """
    from devinterp.slt.llc import compute_llc
    from devinterp.slt.sampling import sample as devinterp_sample

    inputs, targets = x.float(), residuals.float()
    model = torch.nn.Linear(x.shape[1], 1, bias=False)
    torch.nn.init.zeros_(model.weight)

    def loss(model, ids):
        chosen = ids[:, 0]
        return (targets[chosen, None] - model(inputs[chosen])).square() / 2

    data = [{"input_ids": torch.tensor([i, 0])} for i in range(len(x))]
    settings = {key: value for key, value in given.items() if key != "r"}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "samples.zarr"
        tree = devinterp_sample(
            model, data, {}, lr=2 * step, loss_fn=loss, output_path=path, **settings
        )
        found = compute_llc(tree)
        ids = torch.tensor(tree.dataset.sampling_input_ids_micro.values[..., 0])
        return {
            "estimates": found.llc_per_chain.values.tolist(),
            "first_loss": float(found.init_loss),
            "ids": ids,  # (chains, steps, examples)
        }


def predict(found: dict, given: dict, x: Tensor, residuals: Tensor, step: float):
    """Predict the mean of the chains and its standard error from their minibatches."""
    first, means, errors = [], [], []
    size, seen = given["batch_size"], {}
    for ids in found["ids"]:
        key = ids.numpy().tobytes()
        if key not in seen:
            batches = Minibatches.of_regression(x[ids], residuals[ids])
            # 32 batches, as many more as are accumulated, the first ones drawn
            start = ids.reshape(-1, size)[: 32 * given["gradient_accumulation_steps"]]
            first_loss = float(residuals[start].square().mean() / 2)
            numbers = given["n_beta"], given["localization"], step
            seen[key] = (
                first_loss,
                *reported_given(batches, range(len(ids)), 0.0, *numbers),
            )
        for each, value in zip((first, means, errors), seen[key], strict=True):
            each.append(value)
    chains = len(means)
    mean = sum(means) / chains - given["n_beta"] * sum(first) / chains
    return mean, math.hypot(*errors) / chains, sum(first) / chains


def devinterp() -> dict:
    """Run and predict the ten settings, and the spread of the prediction between
    shuffles, where the first is replayed and where each epoch has its own.
    """
    x, residuals = regression(2_000)
    minimum, rows = minimum_of(x, residuals), {}
    for k, (name, changed) in enumerate(SETTINGS.items()):
        # seeds of their own, for the chains' noises are made from them alone
        given = PLAIN | {"init_seed": 1_000 * k} | changed
        precision = minimum.precision(given["n_beta"], given["localization"])
        step = given["r"] / float(torch.linalg.eigvalsh(precision)[-1])
        found = run_devinterp(given, x, residuals, step)
        mean, error, first_loss = predict(found, given, x, residuals, step)
        estimates = torch.tensor(found["estimates"], dtype=DOUBLE)
        accumulated = given["batch_size"] * given["gradient_accumulation_steps"]
        noise = minimum.noise(given["n_beta"], accumulated)
        steps = given["num_draws"] + given["num_burnin_steps"]
        curvature = given["n_beta"] * minimum.hessian
        law, _ = reported(langevin_chain(precision, step, noise), curvature, steps)
        rows[name] = {
            "changed": changed,
            "lr": 2 * step,
            "measured": float(estimates.mean()),
            "own_error": float(estimates.std() / len(estimates) ** 0.5),
            "predicted": mean,
            "predicted_error": error,
            "z": (float(estimates.mean()) - mean) / error,
            "first_loss_off": abs(found["first_loss"] - first_loss),
            "law": law,
            "localised": minimum.localised(given["n_beta"], given["localization"]),
            "estimates": found["estimates"],
        }
        print(name, rows[name]["measured"], mean, error, rows[name]["z"], flush=True)
    packages = ("devinterp", "torch", "numpy", "zarr", "xarray", "transformers")
    return {
        "packages": [f"{name}=={version(name)}" for name in packages],
        "plain": PLAIN,
        "settings": rows,
        "shuffles": {
            name: between_shuffles(x, residuals, minimum, replay)
            for name, replay in (("replayed", True), ("reshuffled", False))
        },
    }


def between_shuffles(x, residuals, minimum, replay: bool, seeds: int = 40) -> dict:
    """Predict the mean of the plain setting for many shuffles: their spread, and the
    standard error that twenty chains of one of them have.
    """
    nbeta, size, steps = PLAIN["n_beta"], PLAIN["batch_size"], PLAIN["num_draws"]
    step = USERS / float(torch.linalg.eigvalsh(minimum.precision(nbeta, 1.0))[-1])
    generator, means, errors = torch.Generator().manual_seed(1), [], []
    for _ in range(seeds):
        each, epochs = len(x) // size, -(-steps // (len(x) // size))

        def shuffle(each=each):
            drawn = torch.randperm(len(x), generator=generator)
            return drawn[: each * size].view(each, size)

        first = shuffle()
        rest = [first if replay else shuffle() for _ in range(epochs)]
        ids = torch.cat([first, *rest])[:steps]
        batches = Minibatches.of_regression(x[ids], residuals[ids])
        first_loss = float(residuals[ids[:32]].square().mean() / 2)
        numbers = first_loss, nbeta, 1.0, step
        mean, error = reported_given(batches, range(steps), *numbers)
        means.append(mean)
        errors.append(error / PLAIN["num_chains"] ** 0.5)
    means = torch.tensor(means, dtype=DOUBLE)
    return {
        "mean": float(means.mean()),
        "spread": float(means.std()),
        "own_error": sum(errors) / seeds,
        "predictions": means.tolist(),
    }


def measure(kernel, potential, curve, steps: int, dim: int, chains: int, seed: int):
    """Run chains from the minimum, at 0, and average the estimate over their second
    half: mean, standard error, and the virial ratio over T where it can be had.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = sample(
            kernel,
            potential,
            torch.zeros(chains, dim, dtype=DOUBLE),
            num_samples=steps // 20,
            warm_up=steps // 2,
            thinning=10,
            seed=seed,
            progress=False,
        )
    each = torch.stack([curve(theta) for theta in run.samples]).mean(0)
    return {"mean": float(each.mean()), "error": float(each.std() / chains**0.5)}


def kernel_of(choice, noise: Tensor):
    """Build the kernel that was chosen."""
    if choice.friction is None:
        return SGLD(choice.step_size)
    estimate = choice.step_size / 2 * noise
    return SGHMC(choice.step_size, choice.friction, noise_estimate=estimate)


def rows_of(minimum, nbeta, posterior, curve, gradients: int, chains: int) -> dict:
    """Run SGLD at the step of users and as the law has it, and SGHMC as the law has it,
    with the same number of gradients.
    """
    size, dim = posterior.batch_size, len(minimum.hessian)
    steps, noise = gradients // size, minimum.noise(nbeta, size)
    precision = minimum.precision(nbeta, 1.0)
    users = USERS / float(torch.linalg.eigvalsh(precision)[-1])
    law, _ = reported(
        langevin_chain(precision, users, noise),
        nbeta * minimum.hessian,
        steps,
        steps // 2,
    )
    rows = {
        "SGLD, the step of users": {"expected": law, "step_size": users}
        | measure(SGLD(users), posterior, curve, steps, dim, chains, seed=1)
    }
    for seed, kernel in enumerate(("SGLD", "SGHMC"), 2):
        given = nbeta, 1.0, gradients, chains, (size,), (kernel,)
        # what cannot come near is run all the same, for its row
        choice = choose(minimum, *given, within=math.inf)
        rows[f"{kernel}, by the law"] = choice._asdict() | measure(
            kernel_of(choice, noise), posterior, curve, steps, dim, chains, seed
        )
    for name, row in rows.items():
        print(name, row, flush=True)
    return rows


def on_regression() -> dict:
    """Run the three samplers on a regression with 10,000 examples."""
    x, residuals = regression(10_000)
    minimum, nbeta = minimum_of(x, residuals), 10_000 / math.log(10_000)
    posterior = LinearRegression(
        x, residuals, noise_variance=math.log(10_000), prior_variance=1.0, batch_size=64
    )

    def curve(theta):
        return nbeta / 2 * torch.einsum("ci,ij,cj->c", theta, minimum.hessian, theta)

    gradients, chains = 640_000, 64
    return {
        "gradients": gradients,
        "chains": chains,
        "localised": minimum.localised(nbeta, 1.0),
        "rows": rows_of(minimum, nbeta, posterior, curve, gradients, chains),
    }


class Exact(Potential):
    """The energy of a linear network from its sufficient statistics, all the data."""

    def __init__(self, loss, nbeta: float, dim: int):
        self.loss, self.nbeta, self.dim = loss, nbeta, dim

    def energy(self, position):
        """Compute nβL + ½|δ|²."""
        return self.nbeta * self.loss(position) + position.square().sum(-1) / 2


def product(weights: list[Tensor]) -> Tensor:
    """Multiply the layers: ``(chains, outputs, inputs)``."""
    whole = weights[0]
    for weight in weights[1:]:
        whole = weight @ whole
    return whole


def coefficient(widths: list[int], rank: int) -> float:
    """Compute λ of a linear network whose true map has this rank (Aoyagi, 2024; with
    one hidden layer Aoyagi and Watanabe, 2005).

    Example:
        >>> coefficient([6, 4, 5], 2), coefficient([1, 1, 1, 1], 0)
        (12.0, 0.5)
    """
    spare = sorted(width - rank for width in widths)
    for count in range(2, len(spare) + 1):
        chosen, others = spare[:count], spare[count:]
        layers, total = count - 1, sum(spare[:count])
        low = total >= layers * chosen[-1]
        if low and (not others or total < layers * others[0]):
            break
    top = -(-total // layers)
    left = total - (top - 1) * layers
    pairs = (total**2 - sum(each**2 for each in chosen)) / 2
    return (
        (rank * (widths[0] + widths[-1]) - rank**2) / 2
        + left * (layers - left) / (4 * layers)
        - (layers - 1) / (4 * layers) * total**2
        + pairs / 2
    )


NETWORKS = {"reduced-rank": ([6, 4, 5], 2), "deep-linear": ([5, 4, 4, 5], 2)}


def on_network(name: str, exactly: bool, n: int = 5_000) -> dict:
    """Run the samplers, or NUTS, on a linear network around its best fit."""
    widths, rank = NETWORKS[name]
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=DOUBLE)

    inputs, outputs = widths[0], widths[-1]
    x = normal(n, inputs)
    true = normal(outputs, rank) @ normal(rank, inputs) / rank**0.5
    y = x @ true.T + normal(n, outputs)
    nbeta = n / math.log(n)
    # The best fit of the rank that the widths allow, its singular values shared out.
    least = torch.linalg.lstsq(x, y).solution.T
    root = torch.linalg.cholesky(x.T @ x / n)
    left, values, _ = torch.linalg.svd(least @ root, full_matrices=False)
    kept = min(widths)
    fitted = left[:, :kept] @ left[:, :kept].T @ least
    left, values, right = torch.linalg.svd(fitted, full_matrices=False)
    layers = len(widths) - 1
    share = values[:kept].clamp(min=0) ** (1 / layers)
    best = []
    for layer, (before, after) in enumerate(pairwise(widths)):
        weight = torch.zeros(after, before, dtype=DOUBLE)
        weight[:kept, :kept] = share.diag()
        if layer == 0:
            weight = torch.zeros(after, before, dtype=DOUBLE)
            weight[:kept] = share[:, None] * right[:kept]
        elif layer == layers - 1:
            weight = torch.zeros(after, before, dtype=DOUBLE)
            weight[:, :kept] = left[:, :kept] * share
        best.append(weight)
    center = torch.cat([weight.flatten() for weight in best])
    shapes = [weight.shape for weight in best]

    def maps(position):
        parts = (center + position).split([s.numel() for s in shapes], dim=-1)
        weights = [
            part.unflatten(-1, shape) for part, shape in zip(parts, shapes, strict=True)
        ]
        return product(weights)

    cross, square = y.T @ x / n, x.T @ x / n
    whole = y.square().sum() / n

    def loss(position):  # L_n, all the data
        W = maps(position)
        both = (W * (W @ square - 2 * cross)).sum((-2, -1))
        return (whole + both) / 2

    dim = len(center)
    start = torch.zeros(1, dim, dtype=DOUBLE)
    first = loss(start)

    def curve(theta):
        return nbeta * (loss(theta) - first)

    def of_example(position, x, y):  # log likelihood, tempered by β = 1/log n
        gap = y - x @ maps(position).mT
        return -gap.square().sum(-1) / (2 * math.log(n))

    posterior = Posterior(
        lambda position: -position.square().sum(-1) / 2,
        of_example,
        (x, y),
        dim=dim,
        batch_size=64,
    )
    hessian = torch.autograd.functional.hessian(
        lambda position: loss(position[None])[0], start[0]
    )
    jacobian = torch.autograd.functional.jacobian(
        lambda position: (y - x @ maps(position[None])[0].mT).square().sum(-1) / 2,
        start[0],
    )
    covariance = jacobian.T @ jacobian / n
    minimum = Minimum((hessian + hessian.T) / 2, covariance, n)
    gradients, chains = 640_000, 32
    result = {
        "widths": widths,
        "rank": rank,
        "dim": dim,
        "known": coefficient(widths, rank),
        "regular": dim / 2,
        "gradients": gradients,
        "chains": chains,
        "quadratic": minimum.localised(nbeta, 1.0),
    }
    if not exactly:
        rows = rows_of(minimum, nbeta, posterior, curve, gradients, chains)
        return result | {"rows": rows}
    exact = Exact(loss, nbeta, dim)
    generator = torch.Generator().manual_seed(3)
    places = 0.01 * torch.randn(2 * chains, dim, generator=generator, dtype=DOUBLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = sample(
            NUTS(0.6 / float(torch.linalg.eigvalsh(hessian)[-1] * nbeta) ** 0.5),
            exact,
            places,
            num_samples=40,
            warm_up=15,
            seed=4,
            progress=False,
        )
    each = torch.stack([curve(theta) for theta in run.samples]).mean(0)
    result = {
        "mean": float(each.mean()),
        "error": float(each.std() / len(each) ** 0.5),
        "halves": [
            float(torch.stack([curve(t) for t in half]).mean())
            for half in run.samples.chunk(2)
        ],
        "acceptance": float(run.statistics["acceptance"].mean()),
        "diverged": int(run.statistics["diverged"].sum()),
        "gradients": int(run.statistics["num_gradients"][-1].double().mean()),
    }
    print(result, flush=True)
    return result


PARTS = {"devinterp": devinterp, "regression": on_regression}
for _name in NETWORKS:
    PARTS[_name] = partial(on_network, _name, exactly=False)
    PARTS[f"{_name}-exact"] = partial(on_network, _name, exactly=True)


def main() -> None:
    """Run one part and write it into the result."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=PARTS)
    part = parser.parse_args().part
    started = time.process_time()
    found = PARTS[part]()
    origin = {
        "command": f"python -m benchmarks.learning_coefficient {part}",
        **circumstances(),
        "processor_seconds": round(time.process_time() - started, 1),
    }
    stored = read_result(STORED) if STORED.exists() else {}
    stored.pop("format", None)
    write_result(STORED, stored | {part: {"provenance": origin, **found}})
    print(f"written: {STORED}")


if __name__ == "__main__":
    main()
