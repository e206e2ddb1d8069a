"""What samplers report as a local learning coefficient, against what the law predicts.

usage: python -m benchmarks.learning_coefficient PART

``devinterp`` runs devinterp 2.0.1 itself, in ten settings, and predicts each from the
minibatches that it drew; it needs an environment with ``devinterp==2.0.1`` above this
one. ``regression`` runs SGLD and SGHMC at settings that were chosen before. So do the
parts of two linear networks whose coefficient is known, ``reduced-rank-users``,
``-SGLD`` and ``-SGHMC``, beside ``-exact``, and those of ``deep-linear``; with
``-small-users`` and ``-small-exact`` nβ is 64/log 64 instead of n/log n. All go to
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
from sgmc.kernels import HMC, SGHMC, SGLD
from sgmc.models.functions import Posterior
from sgmc.posteriors import LinearRegression
from sgmc.potentials import Potential
from sgmc.splittings import langevin_chain

DOUBLE = torch.float64
STORED = RESULTS / "learning_coefficient.json"
ROWS = ("users", "SGLD", "SGHMC")
USERS = 0.5  # ηp of the stiffest direction: full gradients would accept 0.90
SMALL = 64 / math.log(64)  # nβ as devinterp's default_nbeta has it


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
    "two accumulated": {"gradient_accumulation_steps": 2},
    "γ = 100": {"localization": 100.0},
    "nβ = 64/log 64": {"n_beta": SMALL},
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


def setting_of(name: str) -> dict:
    """Run and predict one setting of devinterp."""
    x, residuals = regression(2_000)
    minimum, changed = minimum_of(x, residuals), SETTINGS[name]
    # seeds of their own, for the chains' noises are made from them alone
    given = PLAIN | {"init_seed": 1_000 * list(SETTINGS).index(name)} | changed
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
    print(name, float(estimates.mean()), mean, error, flush=True)
    return {
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


def devinterp() -> dict:
    """Run and predict the ten settings; each is stored once it is there, and is not run
    again.
    """
    packages = ("devinterp", "torch", "numpy", "zarr", "xarray", "transformers")
    result = {
        "packages": [f"{name}=={version(name)}" for name in packages],
        "plain": PLAIN,
    }

    def finished() -> dict:
        before = stored().get("devinterp", {})
        same = all(before.get(key) == value for key, value in result.items())
        return before["settings"] if same else {}

    for name in SETTINGS:
        if name not in finished():
            found = setting_of(name)
            rows = finished() | {name: found}
            ordered = {key: rows[key] for key in SETTINGS if key in rows}
            store("devinterp", result | {"settings": ordered})
    return result | {"settings": finished()}


def shuffles(steps: int, seeds: int) -> dict:
    """Predict the plain setting for many shuffles, where the first is replayed and
    where each epoch has its own.
    """
    x, residuals = regression(2_000)
    given = x, residuals, minimum_of(x, residuals), steps, seeds
    return {
        name: between_shuffles(*given, replay)
        for name, replay in (("replayed", True), ("reshuffled", False))
    }


def between_shuffles(x, residuals, minimum, steps, seeds, replay: bool) -> dict:
    """Predict the mean of the plain setting for many shuffles: their spread, that with
    the exact L(w*), that with L(w*) from exactly the first epoch's minibatches, and the
    standard error that twenty chains of one shuffle have.
    """
    nbeta, size = PLAIN["n_beta"], PLAIN["batch_size"]
    step = USERS / float(torch.linalg.eigvalsh(minimum.precision(nbeta, 1.0))[-1])
    exact_loss = float(residuals.square().mean() / 2)
    generator = torch.Generator().manual_seed(1)
    means, exactly, epoch, errors = [], [], [], []
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
        exactly.append(mean + nbeta * (first_loss - exact_loss))
        epoch_loss = float(residuals[first].square().mean() / 2)
        epoch.append(mean + nbeta * (first_loss - epoch_loss))
        errors.append(error / PLAIN["num_chains"] ** 0.5)
    means = torch.tensor(means, dtype=DOUBLE)
    return {
        "mean": float(means.mean()),
        "spread": float(means.std()),
        "spread_exact_first": float(torch.tensor(exactly, dtype=DOUBLE).std()),
        "spread_epoch_first": float(torch.tensor(epoch, dtype=DOUBLE).std()),
        "own_error": sum(errors) / seeds,
        "predictions": means.tolist(),
    }


def measure(kernel, potential, curve, steps: int, dim: int, chains: int, seed: int):
    """Run chains from the minimum, at 0, and average the estimate over their second
    half: mean and standard error.
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


def row_of(which: str, minimum, nbeta, posterior, curve, gradients: int, chains: int):
    """Run SGLD at the step of users, or a kernel as the law has it, with a number of
    gradients a chain; what the law cannot bring near is run all the same.
    """
    size, dim = posterior.batch_size, len(minimum.hessian)
    steps, noise = gradients // size, minimum.noise(nbeta, size)
    precision = minimum.precision(nbeta, 1.0)
    if which == "users":
        step = USERS / float(torch.linalg.eigvalsh(precision)[-1])
        kernel, curvature = SGLD(step), nbeta * minimum.hessian
        law = langevin_chain(precision, step, noise)
        expected, _ = reported(law, curvature, steps, steps // 2)
        setting = {"expected": expected, "step_size": step}
    else:
        given = nbeta, 1.0, gradients, chains, (size,), (which,)
        choice = choose(minimum, *given, within=math.inf)
        kernel, setting = kernel_of(choice, noise), choice._asdict()
    seed = 1 + ROWS.index(which)
    found = measure(kernel, posterior, curve, steps, dim, chains, seed)
    print(which, setting, found, flush=True)
    return setting | {"gradients": gradients, "chains": chains} | found


def on_regression() -> dict:
    """Run the three samplers on a regression with 10,000 examples."""
    x, residuals = regression(10_000)
    minimum, nbeta = minimum_of(x, residuals), 10_000 / math.log(10_000)
    posterior = LinearRegression(
        x, residuals, noise_variance=math.log(10_000), prior_variance=1.0, batch_size=64
    )

    def curve(theta):
        return nbeta / 2 * torch.einsum("ci,ij,cj->c", theta, minimum.hessian, theta)

    given = minimum, nbeta, posterior, curve, 640_000, 64
    rows = {which: row_of(which, *given) for which in ROWS}
    return {"localised": minimum.localised(nbeta, 1.0), **rows}


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


def on_network(
    name: str, which: str, n: int = 5_000, nbeta: float | None = None
) -> dict:
    """Run a sampler, or HMC as the exact one, on a linear network around its best
    fit, with nβ = n/log n or as given.
    """
    widths, rank = NETWORKS[name]
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=DOUBLE)

    inputs, outputs = widths[0], widths[-1]
    x = normal(n, inputs)
    true = normal(outputs, rank) @ normal(rank, inputs) / rank**0.5
    y = x @ true.T + normal(n, outputs)
    temperature = math.log(n) if nbeta is None else n / nbeta
    nbeta = n / temperature
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

    def of_example(position, x, y):  # log likelihood, tempered by β
        gap = y - x @ maps(position).mT
        return -gap.square().sum(-1) / (2 * temperature)

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
    jacobian = torch.func.jacfwd(
        lambda position: (y - x @ maps(position[None])[0].mT).square().sum(-1) / 2
    )(start[0])
    covariance = jacobian.T @ jacobian / n
    minimum = Minimum((hessian + hessian.T) / 2, covariance, n)
    gradients, chains = 640_000, 32
    result = {
        "widths": widths,
        "rank": rank,
        "dim": dim,
        "known": coefficient(widths, rank),
        "regular": dim / 2,
        "quadratic": minimum.localised(nbeta, 1.0),
    }
    if which != "exact":
        given = minimum, nbeta, posterior, curve, gradients, chains
        return result | row_of(which, *given)
    exact = Exact(loss, nbeta, dim)
    generator = torch.Generator().manual_seed(3)
    places = 0.01 * torch.randn(2 * chains, dim, generator=generator, dtype=DOUBLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = sample(
            HMC(0.6 / float(torch.linalg.eigvalsh(hessian)[-1] * nbeta) ** 0.5, 60),
            exact,
            places,
            num_samples=100,
            warm_up=60,
            seed=4,
            progress=False,
        )
    each = torch.stack([curve(theta) for theta in run.samples]).mean(0)
    found = {
        "mean": float(each.mean()),
        "error": float(each.std() / len(each) ** 0.5),
        "halves": [
            float(torch.stack([curve(t) for t in half]).mean())
            for half in run.samples.chunk(2)
        ],
        "acceptance": float(run.statistics["acceptance"].mean()),
    }
    print(name, found, flush=True)
    return result | found


PARTS = {
    "devinterp": devinterp,
    "shuffles": partial(shuffles, PLAIN["num_draws"], 40),
    "shuffles-long": partial(shuffles, 5 * PLAIN["num_draws"], 16),
    "regression": on_regression,
}
PARTS |= {
    f"{name}-{which}": partial(on_network, name, which)
    for name in NETWORKS
    for which in (*ROWS, "exact")
}
PARTS |= {
    f"{name}-small-{which}": partial(on_network, name, which, nbeta=SMALL)
    for name in NETWORKS
    for which in ("users", "exact")
}


def stored() -> dict:
    """Read what is there."""
    found = read_result(STORED) if STORED.exists() else {}
    found.pop("format", None)
    return found


def store(part: str, found: dict) -> None:
    """Write a part into the result."""
    origin = {
        "command": f"python -m benchmarks.learning_coefficient {part}",
        **circumstances(),
        "processor_seconds": round(time.process_time(), 1),
    }
    last = {"provenance": origin, part: found | {"provenance": origin}}
    write_result(STORED, stored() | last)


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=PARTS)
    part = parser.parse_args().part
    store(part, PARTS[part]())
    print(f"written: {STORED}")


if __name__ == "__main__":
    main()
