"""What a step costs through the package, and the floor: the same by hand, as bare as it
can be written in PyTorch.

usage: python -m benchmarks.speed [--threads 1] [--compiled] [--rows double-well
logistic draws network nuts]

Everything of a row runs in turns in one process; the median of several turns counts.
Seconds are those of the processor, which other programs on the machine change little.
Compiling is left out of the times."""

import argparse
import statistics
import warnings
from collections.abc import Callable
from itertools import count
from time import process_time as clock

import torch
from torch import Tensor
from torch.nn import functional

from booklib.models.networks import multilayer_perceptron
from sgmc import sample
from sgmc.compiled import CompiledSGHMC
from sgmc.kernels import NUTS, SGHMC, SGLD
from sgmc.minibatches import Fresh
from sgmc.models import NamedPosterior, Posterior
from sgmc.posteriors import LogisticRegression, NetworkPosterior
from sgmc.targets import DoubleWell, NoisyGradient
from sgmc.tuning import adapt

TURNS = 7
# minibatches are a function of the seed: a run that was seen before would find them in
# the cache
SEEDS = count()


def in_turns(functions: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Time functions in turns; return the median of each, in seconds. The first turn
    warms up.
    """
    times = {name: [] for name in functions}
    for turn in range(TURNS + 1):
        for name, function in functions.items():
            start = clock()
            function()
            if turn:
                times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def steps(kernel, potential, start: Tensor, num_samples: int) -> Callable[[], object]:
    """Make so many steps of a kernel to time: those of ``sample`` without its checks
    before and after, which take the same time however long a run is.
    """

    @torch.no_grad()
    def take() -> None:
        generator = torch.Generator().manual_seed(next(SEEDS))
        state = kernel.init(potential, start, generator)
        for _ in range(num_samples):
            state, _ = kernel.step(potential, state, generator)

    return take


def run(kernel, potential, start: Tensor, num_samples: int) -> Callable[[], object]:
    """Make a call of ``sample`` to time."""
    return lambda: sample(
        kernel, potential, start, num_samples, seed=next(SEEDS), progress=False
    )


def double_well(compiled: bool) -> None:
    """Print millions of chain-steps a second of SGHMC on the double well with noisy
    gradients, 50 steps a draw.
    """
    potential = NoisyGradient(DoubleWell(), 4.0)
    for chains, draws in (
        (1, 200 if not compiled else 2_000),
        (1_000, 100),
        (10_000, 20),
    ):
        start = torch.zeros(chains, 1)

        def by_hand(start=start, number=50 * draws, noises=2):
            generator = torch.Generator().manual_seed(next(SEEDS))
            position, momentum = (
                start.clone(),
                torch.randn(start.shape, generator=generator),
            )
            noise, gradient = torch.empty_like(start), torch.empty_like(start)
            injected = 2 * 0.1 * (3.0 - 0.2)
            std = (injected if noises == 2 else injected + 0.1**2 * 4) ** 0.5
            for _ in range(number):
                position.add_(momentum, alpha=0.1)
                torch.mul(position, position, out=gradient).sub_(1).mul_(position)
                momentum.mul_(0.7).sub_(gradient, alpha=0.4)
                if noises == 2:
                    momentum.sub_(noise.normal_(generator=generator), alpha=0.2)
                momentum.add_(noise.normal_(generator=generator), alpha=std)

        kernels = {"eager": SGHMC(0.1, 3.0, 0.2, num_steps=50)}
        if compiled:
            kernels["compiled"] = CompiledSGHMC(0.1, 3.0, 0.2, num_steps=50)
        functions = {
            name: steps(kernel, potential, start, draws)
            for name, kernel in kernels.items()
        }
        functions |= {
            "by hand, two noises": by_hand,
            "by hand, one noise for two": lambda by_hand=by_hand: by_hand(noises=1),
        }
        for name, seconds in in_turns(functions).items():
            print(
                f"double well, {chains:6,} chains, {name:27} "
                f"{chains * draws * 50 / seconds / 1e6:9.3f} million steps a second",
                flush=True,
            )


def logistic(compiled: bool) -> None:
    """Print thousands of steps a second of SGHMC in one chain, logistic regression with
    N = 10,000, d = 50, n = 500, 50 steps a draw.
    """
    inputs, targets, position = regression()
    kernel, draws = SGHMC(0.003, 100.0, num_steps=50), 40
    settings = dict(batch_size=500, minibatches=Fresh(replacement=True))
    user = Posterior(
        lambda position: -0.5 * position.pow(2).sum(-1),
        lambda position, x, y: (
            y * (z := (x @ position[:, :, None])[..., 0]) - functional.softplus(z)
        ),
        (inputs, targets),
        dim=50,
        **settings,
    )

    log_prior = lambda w: -0.5 * w.pow(2).sum()
    log_likelihood = lambda w, x, y: y * (z := x @ w) - functional.softplus(z)
    named = NamedPosterior(
        {"w": (50,)},
        lambda p: log_prior(p["w"]),
        lambda p, x, y: log_likelihood(p["w"], x, y),
        (inputs, targets),
        **settings,
    )

    def by_autograd():
        generator = torch.Generator().manual_seed(next(SEEDS))
        theta, momentum = position[0].clone(), torch.randn(50, generator=generator)
        for _ in range(50 * draws):
            theta = theta.detach().add(momentum, alpha=0.003).requires_grad_()
            indices = torch.randint(10_000, (500,), generator=generator)
            x, y = inputs[indices], targets[indices]
            energy = -log_prior(theta) - 20 * log_likelihood(theta, x, y).sum()
            gradient = torch.autograd.grad(energy, theta)[0]
            momentum.mul_(0.7).sub_(gradient, alpha=0.003).add_(
                torch.randn(50, generator=generator), alpha=0.6**0.5
            )

    def by_hand():
        generator = torch.Generator().manual_seed(next(SEEDS))
        theta, momentum = position[0].clone(), torch.randn(50, generator=generator)
        for _ in range(50 * draws):
            theta.add_(momentum, alpha=0.003)
            indices = torch.randint(10_000, (500,), generator=generator)
            x, y = inputs[indices], targets[indices]
            gradient = theta - 20 * ((y - torch.sigmoid(x @ theta)) @ x)
            momentum.mul_(0.7).sub_(gradient, alpha=0.003).add_(
                torch.randn(50, generator=generator), alpha=0.6**0.5
            )

    functions = {
        "with replacement": steps(
            kernel, LogisticRegression(inputs, targets, **settings), position, draws
        ),
        "without replacement": steps(
            kernel, LogisticRegression(inputs, targets, batch_size=500), position, draws
        ),
        "a user's functions": steps(kernel, user, position, draws),
        "a user's functions, named": steps(kernel, named, position, draws),
        "by autograd, with its gather": by_autograd,
        "by hand, with replacement": by_hand,
    }
    if compiled:
        models = {
            "compiled": LogisticRegression(inputs, targets, **settings),
            "a user's functions, compiled": user,
            "the same, named": named,
        }
        for name, model in models.items():
            fast = CompiledSGHMC(0.003, 100.0, num_steps=10)
            functions[name] = steps(fast, model, position, 5 * draws)
    for name, seconds in in_turns(functions).items():
        print(
            f"logistic regression, {name:32} {50 * draws / seconds / 1e3:7.1f} "
            "thousand steps a second",
            flush=True,
        )


def draws_of_one_step() -> None:
    """Print thousands of steps a second through ``sample`` on the same regression: SGLD
    and SGHMC with one step a draw, each kept, and SGHMC with 20.
    """
    inputs, targets, position = regression()
    posterior = LogisticRegression(inputs, targets, batch_size=500)
    rows = {
        "SGLD, 1 step a draw": (SGLD(1e-5), 1),
        "SGHMC, 1 step a draw": (SGHMC(0.003, 100.0), 1),
        "SGHMC, 20 steps a draw": (SGHMC(0.003, 100.0, num_steps=20), 20),
    }
    functions = {
        name: run(kernel, posterior, position, 2_000 // steps)
        for name, (kernel, steps) in rows.items()
    }
    for name, seconds in in_turns(functions).items():
        print(
            f"logistic regression, {name:32} {2 / seconds:7.1f} thousand steps a "
            "second",
            flush=True,
        )


def network() -> None:
    """Print milliseconds a step and chain of SGHMC on a 784–100–10 network with n =
    500, against SGD with momentum, by ``foreach`` and ``fused``.

    The steps are the kernel's own: ``sample`` first compares gradients and energies,
    which in medium precision do not agree.
    """
    examples, steps = 50_000, 100
    inputs, targets = torch.rand(examples, 784), torch.randint(10, (examples,))
    generator = torch.Generator().manual_seed(0)

    def sgd(**settings) -> Callable[[], object]:
        module = multilayer_perceptron([784, 100, 10])
        decay = {"momentum": 0.99, "weight_decay": 1 / examples}
        optimiser = torch.optim.SGD(module.parameters(), 1e-6, **decay, **settings)

        def train():
            for _ in range(steps):
                indices = torch.randint(examples, (500,), generator=generator)
                optimiser.zero_grad()
                functional.cross_entropy(
                    module(inputs[indices]), targets[indices]
                ).backward()
                optimiser.step()

        return train

    module = multilayer_perceptron([784, 100, 10])
    posterior = NetworkPosterior(module, inputs, targets, batch_size=500)
    kernel = SGHMC.from_learning_rate(2e-6, 0.01, num_steps=steps)

    def sghmc(chains: int) -> Callable[[], object]:
        start = posterior.initial_position(chains, generator)
        state = [kernel.init(posterior, start, generator)]

        @torch.no_grad()
        def step():
            state[0], _ = kernel.step(posterior, state[0], generator)

        return step

    rows = {
        "SGD, foreach": (sgd(foreach=True), 1),
        "SGD, fused": (sgd(fused=True), 1),
        "SGHMC, 1 chain": (sghmc(1), 1),
        "SGHMC, 8 chains": (sghmc(8), 8),
    }
    for precision in ("highest", "medium"):
        torch.set_float32_matmul_precision(precision)
        functions = {name: function for name, (function, _) in rows.items()}
        for name, seconds in in_turns(functions).items():
            print(
                f"network, precision {precision}, {name:16} "
                f"{seconds / steps / rows[name][1] * 1e3:6.2f} ms a step and chain",
                flush=True,
            )
    torch.set_float32_matmul_precision("highest")


def nuts() -> None:
    """Print the seconds of 1,000 steps of warm-up and 1,000 draws of NUTS, one chain,
    logistic regression with N = 10,000 and d = 50.
    """
    inputs, targets, _ = regression()
    gradients = count()

    class Counting(LogisticRegression):
        def energy_and_gradient(self, position: Tensor) -> tuple[Tensor, Tensor]:
            next(gradients)
            return super().energy_and_gradient(position)

    posterior, bare = Counting(inputs, targets), LogisticRegression(inputs, targets)
    taken = []

    def whole():
        before = next(gradients)
        kernel, position = adapt(
            NUTS(1.0), posterior, torch.zeros(1, 50), 1_000, progress=False
        )
        sample(kernel, posterior, position, 1_000, progress=False)
        taken.append(next(gradients) - before - 1)

    def floor():
        position = torch.zeros(1, 50)
        for _ in range(taken[-1]):
            bare.energy_and_gradient(position)

    seconds = in_turns({"in all": whole, "as many bare gradients": floor})
    for name, value in seconds.items():
        print(f"NUTS, 1,000 + 1,000, {name:30} {value:6.2f} s", flush=True)


def regression() -> tuple[Tensor, Tensor, Tensor]:
    """Make inputs ``(10,000, 50)``, targets of a known regression, and its coefficients
    ``(1, 50)``.
    """
    generator = torch.Generator().manual_seed(0)
    inputs, position = (
        torch.randn(10_000, 50, generator=generator),
        0.3 * torch.randn(1, 50, generator=generator),
    )
    return (
        inputs,
        (
            torch.rand(10_000, generator=generator)
            < torch.sigmoid(inputs @ position[0])
        ).float(),
        position,
    )


def main() -> None:
    """Print the rows asked for."""
    rows = {
        "double-well": double_well,
        "logistic": logistic,
        "draws": lambda compiled: draws_of_one_step(),
        "network": lambda compiled: network(),
        "nuts": lambda compiled: nuts(),
    }
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--compiled",
        action="store_true",
        help="compiled steps too, which takes minutes at first",
    )
    parser.add_argument("--rows", nargs="+", choices=rows, default=list(rows))
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    warnings.simplefilter("ignore")  # these chains are not there to be right
    print(f"torch {torch.__version__}, {given.threads} thread(s)")
    for name in given.rows:
        rows[name](given.compiled)


if __name__ == "__main__":
    main()
