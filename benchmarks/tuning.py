"""The default step and friction of SGHMC beside a grid that is searched by hand, on
three models.

A logistic regression, a network for digits and a matrix factorisation, as in the
chapter on tuning. On each of them SGHMC runs with steps and frictions from a quarter of
the default to four times it, in three forms: with the noise estimate matched to each of
them, where there is one; with the default's mass and no estimate; and with one number
as the mass and no estimate, as libraries come. Each setting gets as many gradients as
any other, and starts from draws of the reference, HMC with all the data. A setting is
scored by the standard deviations of what is predicted, relative to the reference's, and
by effective draws per thousand gradients of a chain, those of means and of squares.

The best by hand is the fastest whose error is at most that of the default, or a tenth
if that is more. It is chosen with the truth in view, which nobody has who tunes by
hand: the grid has an unfair advantage. The default and the best of each form are then
run again, five times as long and on other random numbers, so that luck is none. A run
of all of them is written to ``book/results/tuning.json``."""

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import arviz
import torch
from torch import Generator, Tensor
from torch.nn.functional import avg_pool2d

from booklib.data import digits
from booklib.models.networks import multilayer_perceptron
from booklib.runs.results import RESULTS, circumstances, peak_memory, write_result
from sgmc import sample
from sgmc.door.sampling import DivergenceError
from sgmc.kernels import HMC, SGHMC
from sgmc.kernels.base import Kernel
from sgmc.models import Posterior
from sgmc.posteriors import LogisticRegression, NetworkPosterior
from sgmc.potentials import Potential
from sgmc.tuning import (
    DefaultSGHMC,
    default_kernel,
    matched_noise_estimate,
    tune,
)

DOUBLE = torch.float64
STEPS = (0.25, 0.5, 1.0, 1.4, 2.0, 4.0)  # in units of the default's
FRICTIONS = (0.25, 0.5, 1.0, 2.0, 4.0)
FORMS = ("matched", "no estimate", "one mass, no estimate")
SPEEDS = ("means_median", "squares_median")
AGAIN = 5  # how many times as long the best of the grid are run again
ALLOWED = 0.1  # error of a standard deviation that is forgiven to a setting of the grid
PER_DRAW = 4  # how many times between two draws of the default a position is looked at


@dataclass(frozen=True)
class Model:
    """A model, how its default is tuned, what is compared, ``(chains, k)``, and how the
    reference is drawn.

    A ``share`` of the steps is taken, for one that is costly.
    """

    noisy: Potential
    exact: Potential
    positions: Tensor  # where curvature and noise are looked at
    start: Tensor
    quantities: Callable[[Tensor], Tensor]
    reference: Callable[[DefaultSGHMC], Kernel]
    reference_draws: int
    share: float = 1.0


def mode_of(potential: Potential, start: Tensor) -> Tensor:
    """Minimise the energy of all the data by L-BFGS."""
    position = start.clone().requires_grad_()
    optimiser = torch.optim.LBFGS(
        [position], max_iter=300, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        energy, position.grad = potential.energy_and_gradient(position.detach())
        return energy.sum()

    optimiser.step(closure)
    return position.detach()


def logistic(generator: Generator, chains: int) -> Model:
    """Make five coefficients, two of whose inputs go together, and 1,000 examples in
    minibatches of 20.
    """
    inputs = torch.randn(1_000, 5, generator=generator, dtype=DOUBLE) * torch.tensor(
        [1.0, 0.3, 3.0, 1.0, 1.0], dtype=DOUBLE
    )
    inputs[:, 4] += inputs[:, 3]
    truth = torch.tensor([0.5, -1.0, 0.2, 0.0, 0.7], dtype=DOUBLE)
    targets = torch.bernoulli(torch.sigmoid(inputs @ truth), generator=generator)
    noisy, exact = (
        LogisticRegression(inputs, targets, 10.0, batch_size=n) for n in (20, None)
    )
    mode = mode_of(exact, torch.zeros(1, 5, dtype=DOUBLE))
    start = mode.expand(10 * chains, -1).contiguous()
    return Model(
        noisy,
        exact,
        mode,
        start,
        lambda x: x,
        lambda kernel: HMC(0.4, 4, mass=kernel.mass),
        200,
    )


def network(generator: Generator, chains: int) -> Model:
    """Make a network of 610 weights for 1,000 digits of 7×7 pixels, in minibatches of
    100; compared are logits of 40 others' classes.
    """
    train, test = digits()
    (pixels, labels), (unseen, true) = (
        (avg_pool2d(x.view(-1, 1, 28, 28), 4).flatten(1), y)
        for x, y in (
            (train.inputs[::4], train.targets[::4]),
            (test.inputs[::25], test.targets[::25]),
        )
    )
    module = multilayer_perceptron([49, 10, 10])
    noisy, exact = (
        NetworkPosterior(module, pixels, labels, prior_variance=1.0, batch_size=n)
        for n in (100, None)
    )

    def logits(position: Tensor) -> Tensor:
        return (lambda z: z[:, torch.arange(len(true)), true] - z.mean(-1))(
            exact.log_predict(position, unseen)
        )

    descent = SGHMC.from_learning_rate(5e-4, 0.1, temperature=0.0)
    start = noisy.initial_position(math.ceil(1.6 * chains), generator)
    start = sample(
        descent, noisy, start, num_samples=1, thinning=300, seed=3, progress=False
    ).samples[-1]
    hmc = lambda kernel: HMC(0.2, 12, mass=kernel.mass)
    return Model(noisy, exact, start[:3], start, logits, hmc, 120, share=0.6)


def factorisation(generator: Generator, chains: int) -> Model:
    """Make twelve readers and ten books, each two numbers, and 100 ratings in
    minibatches of ten; compared are all predicted ratings.
    """
    readers, books, rank = 12, 10, 2
    dim = (readers + books) * rank
    pairs = torch.cartesian_prod(torch.arange(readers), torch.arange(books))
    reader_rows, book_rows = (
        torch.eye(readers, dtype=DOUBLE)[pairs[:, 0]],
        torch.eye(books, dtype=DOUBLE)[pairs[:, 1]],
    )

    def predicted(position: Tensor, reader: Tensor, book: Tensor) -> Tensor:
        u, w = position.split([readers * rank, books * rank], -1)
        return (
            (reader @ u.unflatten(-1, (readers, rank)))
            * (book @ w.unflatten(-1, (books, rank)))
        ).sum(-1)

    known = torch.randperm(len(pairs), generator=generator)[:100]
    factors = torch.randn(1, dim, generator=generator, dtype=DOUBLE)
    ratings = predicted(factors, reader_rows[known][None], book_rows[known][None])[0]
    data = (
        reader_rows[known],
        book_rows[known],
        ratings + 0.5 * torch.randn(100, generator=generator, dtype=DOUBLE),
    )
    noisy, exact = (
        Posterior(
            lambda position: -0.5 * position.square().sum(-1),
            lambda position, reader, book, rating: (
                -2 * (rating - predicted(position, reader, book)) ** 2
            ),
            data,
            dim=dim,
            batch_size=n,
        )
        for n in (10, None)
    )
    mode = mode_of(exact, factors)
    everything = lambda position: predicted(
        position, reader_rows[None], book_rows[None]
    )
    start = mode.expand(6 * chains, -1).contiguous()
    return Model(
        noisy, exact, mode, start, everything, lambda _: HMC(0.08, 12, jitter=0.3), 200
    )


MODELS = {
    "logistic regression": logistic,
    "digits network": network,
    "matrix factorisation": factorisation,
}


def setting(
    default: DefaultSGHMC, form: str, step: float, friction: float
) -> SGHMC | None:
    """Make the kernel that has multiples of the default's step and friction; None where
    no estimate is matched to them.
    """
    mass = default.mass
    if form == "one mass, no estimate":
        mass = float((mass.diagonal() if mass.ndim == 2 else mass).mean())
    step_size, estimate, num_steps = (
        step * default.step_size,
        0.0,
        math.ceil(default.num_steps / PER_DRAW),
    )
    if form == "matched":
        # The default's own estimate gives V back, and with it what was measured once.
        v = noise_variance(default)
        try:
            estimate = matched_noise_estimate(
                mass, v, step_size, 2 * friction * mass, mass
            )
        except ValueError:
            return None
    return SGHMC(step_size, 2 * friction * mass, estimate, mass, num_steps=num_steps)


def noise_variance(default: DefaultSGHMC) -> Tensor:
    """Compute V from the default's B̂ = ½εV + ε²A/(2 − 2ε), as A = M and C = 2A."""
    h = default.step_size
    variance = 2 / h * (default.noise_estimate - h**2 / (2 - 2 * h) * default.mass)
    return variance if variance.ndim == 2 else variance.clamp(min=0)  # rounding


def effective_draws(samples: Tensor) -> dict[str, Tensor]:
    """Count effective draws of the means and of the squares of ``(num_samples, chains,
    k)``, by ArviZ.
    """
    squares = (samples - samples.mean((0, 1))).square()
    found = {}
    for name, values in (("means", samples), ("squares", squares)):
        data = arviz.from_dict(posterior={"x": values.transpose(0, 1).double().numpy()})
        found[name] = torch.as_tensor(arviz.ess(data, method="bulk")["x"].values)
    return found


def score(
    samples: Tensor, energies: Tensor, truth: dict, gradients: int, dim: int
) -> dict[str, float]:
    """Score draws: errors of standard deviations, the temperature by the energy,
    effective draws for a thousand gradients of a chain.
    """
    ratio = samples.flatten(0, 1).std(0) / truth["sd"]
    found = {
        "width": ratio.mean(),
        "error": (ratio - 1).abs().mean(),
        "largest_error": (ratio - 1).abs().max(),
    }
    found["temperature"] = 1 + (energies.mean() - truth["energy"]) / (dim / 2)
    for name, counts in effective_draws(samples).items():
        counts = 1000 * counts / gradients
        found |= {f"{name}_median": counts.median(), f"{name}_smallest": counts.min()}
    return {name: float(f"{float(value):.5g}") for name, value in found.items()}


def draw(
    kernel: Kernel,
    model: Model,
    potential: Potential,
    start: Tensor,
    draws: int,
    warm_up: int,
    seed: int,
) -> tuple[Tensor, ...]:
    """Draw quantities and energies, and say where the chains are in the end."""

    def collect(position: Tensor) -> dict[str, Tensor]:
        return {
            "quantities": model.quantities(position),
            "energy": model.exact.energy(position),
            "position": position.clone(),
        }

    samples = sample(
        kernel,
        potential,
        start,
        draws,
        warm_up=warm_up,
        seed=seed,
        collect=collect,
        progress=False,
    ).samples
    return samples["quantities"], samples["energy"], samples["position"][-1]


@dataclass(frozen=True)
class Trial:
    """What every setting of a model is tried on: where it starts, how many gradients it
    gets, and the truth.
    """

    model: Model
    start: Tensor
    truth: dict[str, Tensor]
    draws: int
    seed: int

    def run(self, kernel: SGHMC, own: bool = False, **row) -> dict:
        """Score what a kernel draws, or with ``own`` one position of four, which are as
        many draws as the default makes.
        """
        try:
            samples, energies, _ = draw(
                kernel,
                self.model,
                self.model.noisy,
                self.start,
                self.draws,
                PER_DRAW * 5,
                self.seed,
            )
        except DivergenceError:
            row["outcome"] = "diverged"
        else:
            samples = samples[PER_DRAW - 1 :: PER_DRAW] if own else samples
            row["outcome"] = "ran"
            row |= score(
                samples,
                energies,
                self.truth,
                self.draws * kernel.num_steps,
                self.start.shape[1],
            )
        print(
            *(
                f"{key} {value:.3g}" if isinstance(value, float) else f"{value:21}"
                for key, value in row.items()
            ),
            flush=True,
        )
        return row


def search(trial: Trial, default: DefaultSGHMC) -> dict[str, list[dict]]:
    """Try the grid in each form."""
    found = {form: [] for form in FORMS}
    for form, rows in found.items():
        for step in STEPS:
            for friction in FRICTIONS:
                kernel, row = (
                    setting(default, form, step, friction),
                    {"step": step, "friction": friction},
                )
                rows.append(
                    row | {"outcome": "no estimate"}
                    if kernel is None
                    else trial.run(kernel, **row)
                )
    return found


def best_by_hand(
    found: dict, forms: tuple[str, ...] = FORMS, speed: str = "means_median"
) -> dict | None:
    """Choose the fastest setting of a model whose error is at most the default's, or a
    tenth; None if there is none.
    """
    allowed = max(ALLOWED, found["default"]["error"])
    rows = [{"form": form, **row} for form in forms for row in found["forms"][form]]
    rows = [row for row in rows if row["outcome"] == "ran" and row["error"] <= allowed]
    return max(rows, key=lambda row: row[speed], default=None)


def looked_at(default: DefaultSGHMC) -> DefaultSGHMC:
    """Stop the default at each position that is looked at."""
    return replace(default, num_steps=math.ceil(default.num_steps / PER_DRAW))


def try_on(
    model: Model, default: DefaultSGHMC, arguments: argparse.Namespace
) -> tuple[Trial, list[Tensor]]:
    """Draw the reference: what settings are tried on, and the standard deviations of
    its halves.
    """
    number = max(8, round(arguments.draws / 50 * model.reference_draws))
    samples, energies, start = draw(
        model.reference(default),
        model,
        model.exact,
        model.start,
        number,
        number // 2,
        arguments.seed + 1,
    )
    truth = {"sd": samples.flatten(0, 1).std(0), "energy": energies.mean()}
    parts = samples.split(len(samples) // 2)[:2]
    draws = PER_DRAW * max(2, round(model.share * arguments.draws))
    trial = Trial(model, start, truth, draws, arguments.seed + 2)
    return trial, [part.flatten(0, 1).std(0) for part in parts]


def compare(name: str, arguments: argparse.Namespace) -> dict:
    """Draw the reference, the default, the grid in each form, and the best of it again,
    five times as long and on other random numbers.
    """
    model = MODELS[name](
        torch.Generator().manual_seed(arguments.seed), arguments.chains
    )
    default, _ = tune(model.noisy, model.positions, seed=arguments.seed)
    at_mode = default_kernel(model.noisy, model.positions, seed=arguments.seed)
    trial, halves = try_on(model, default, arguments)
    truth, start, draws = trial.truth, trial.start, trial.draws
    print(f"{name}: {default}", flush=True)
    found = {
        "kernel": str(default),
        "step_size": default.step_size,
        "dim": start.shape[1],
        "chains": len(start),
        "quantities": len(truth["sd"]),
        "gradients": draws * looked_at(default).num_steps,
        "halves_of_the_reference_differ": float(
            f"{float((halves[0] / halves[1] - 1).abs().mean()):.3g}"
        ),
        "default": trial.run(looked_at(default), own=True, step=1.0, friction=1.0),
        "at the mode": trial.run(
            looked_at(at_mode), own=True, step=at_mode.step_size / default.step_size
        ),
        "forms": search(trial, default),
    }
    longer = replace(trial, draws=AGAIN * draws, seed=arguments.seed + 3)
    found["again"] = {"default": longer.run(looked_at(default), own=True)}
    for form in FORMS:
        best = {speed: best_by_hand(found, (form,), speed) for speed in SPEEDS}
        chosen = {
            (row["step"], row["friction"]): row
            for row in best.values()
            if row is not None
        }
        again = {
            key: longer.run(setting(default, form, *key), step=key[0], friction=key[1])
            for key in chosen
        }
        found["again"][form] = {
            speed: again[row["step"], row["friction"]]
            for speed, row in best.items()
            if row is not None
        }
    return found


def main() -> None:
    """Run, print the table, and store the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=MODELS,
        metavar="NAME",
        help=f"some of {', '.join(MODELS)}",
    )
    for option, default in (("--chains", 10), ("--draws", 60), ("--seed", 0)):
        parser.add_argument(option, type=int, default=default)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    # chains that are too hot or too slow stand in the table
    warnings.simplefilter("ignore")
    options = {name: value for name, value in vars(arguments).items() if name != "only"}
    command = "python -m benchmarks.tuning " + " ".join(
        f"--{name} {value}" for name, value in options.items()
    )
    results = {}
    for name in arguments.only or MODELS:
        found = results[name] = compare(name, arguments)
        for form in FORMS:
            for speed, best in found["again"][form].items():
                print(
                    f"{name:22} {form:21} {speed:15} default over best "
                    f"{found['again']['default'][speed] / best[speed]:.3f}",
                    flush=True,
                )
    if not arguments.only:
        store("tuning.json", command, {"settings": options, "models": results})


def store(name: str, command: str, found: dict) -> None:
    """Write a result with its provenance."""
    provenance = {
        "command": command,
        **circumstances("cpu"),
        "peak_memory_megabytes": peak_memory("cpu"),
    }
    write_result(RESULTS / name, {"provenance": provenance, **found})


if __name__ == "__main__":
    main()
