"""What an online noise estimate adds to a step of SGHMC, in one process.

usage: python -m benchmarks.noise [threads]

Logistic regression with 10,000 examples, 50 coefficients, batches of 500; and a
784–100–10 network with batches of 500."""

import sys
import time
import warnings

import torch

from booklib.models.networks import multilayer_perceptron
from sgmc.kernels import SGHMC
from sgmc.minibatches import Fresh
from sgmc.noise import OnlineNoise
from sgmc.posteriors import LogisticRegression, NetworkPosterior

REPETITIONS = 150


@torch.no_grad()
def compare(
    title: str,
    make_kernel,
    posterior,
    position: torch.Tensor,
    kinds: tuple[str, ...],
    num_steps: int,
) -> None:
    """Print the time of a step without and with each kind of estimate, taken in turns:
    the best of many short runs of each.
    """
    kernels = {
        kind: make_kernel(0.0 if kind is None else OnlineNoise(kind))
        for kind in (None, *kinds)
    }
    times, generator = (
        dict.fromkeys(kernels, float("inf")),
        torch.Generator().manual_seed(0),
    )
    for _ in range(REPETITIONS):
        for kind, kernel in kernels.items():
            # warms up
            state, _ = kernel.step(
                posterior, kernel.init(posterior, position, generator), generator
            )
            start = time.perf_counter()
            for _ in range(num_steps):
                state, _ = kernel.step(posterior, state, generator)
            times[kind] = min(times[kind], (time.perf_counter() - start) / num_steps)
    for kind, seconds in times.items():
        print(
            f"{title}, {kind or 'no'} estimate: {seconds * 1e6:.0f} microseconds a "
            f"step, × {seconds / times[None]:.2f}"
        )


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    # of clipping: these chains are not there to be right
    warnings.simplefilter("ignore")
    generator = torch.Generator().manual_seed(1)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    inputs = torch.randn(10_000, 50, generator=generator)
    coefficients = 0.3 * torch.randn(50, generator=generator)
    targets = (
        torch.rand(10_000, generator=generator) < torch.sigmoid(inputs @ coefficients)
    ).float()
    posterior = LogisticRegression(
        inputs, targets, batch_size=500, minibatches=Fresh(replacement=True)
    )
    for chains in (1, 50):
        start = coefficients.expand(chains, -1).contiguous()
        title = f"logistic regression, {chains} chains"
        compare(
            title,
            lambda noise: SGHMC(0.003, 100.0, noise),
            posterior,
            start,
            ("scalar", "diagonal", "full"),
            30 if chains == 1 else 2,
        )
    images, classes = (
        torch.rand(50_000, 784, generator=generator),
        torch.randint(10, (50_000,), generator=generator),
    )
    posterior = NetworkPosterior(
        multilayer_perceptron([784, 100, 10]), images, classes, batch_size=500
    )
    start = posterior.initial_position(1, generator)
    compare(
        "network",
        lambda noise: SGHMC.from_learning_rate(2e-6, 0.01, noise),
        posterior,
        start,
        ("scalar", "diagonal"),
        2,
    )
