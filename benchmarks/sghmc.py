"""Speed of SGHMC through the package against the floor, in one process.

usage: PYTHONPATH=. python benchmarks/sghmc.py [threads]

Two cases: the double well in 10,000 chains against the same loop written out by hand; and a 784–100–10 network with batches of 500
against ``torch.optim.SGD`` with momentum on the same network and batches. The best of several repetitions counts.
"""

import sys
import time

import torch
from torch import nn

from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.networks import multilayer_perceptron
from sgmc.posteriors import NetworkPosterior
from sgmc.potentials import DoubleWell, NoisyGradient

REPETITIONS = 5


def best_of(function, *arguments) -> float:
    """Time a call, in seconds; the first one warms up."""
    function(*arguments)
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


def toy(chains: int = 10_000, draws: int = 40, num_steps: int = 50) -> None:
    """Compare ``sample`` with a loop by hand: as few passes over memory as the equations allow."""
    kernel = SGHMC(step_size=0.1, friction=3.0, noise_estimate=0.2, num_steps=num_steps)
    potential, start = NoisyGradient(DoubleWell(), 4.0), torch.zeros(chains, 1)

    def package():
        sample(kernel, potential, start, draws, progress=False)

    def by_hand():
        generator = torch.Generator().manual_seed(0)
        position, momentum = start.clone(), torch.randn(start.shape, generator=generator)
        noise, gradient = torch.empty_like(start), torch.empty_like(start)
        noise_std = (2 * 0.1 * (3.0 - 0.2) + 0.1**2 * 4) ** 0.5  # of the injected and the gradient's noise, drawn as one
        for _ in range(draws * num_steps):
            position.add_(momentum, alpha=0.1)
            torch.mul(position, position, out=gradient).sub_(1).mul_(position)
            momentum.mul_(0.7).sub_(gradient, alpha=0.4).add_(noise.normal_(generator=generator), alpha=noise_std)

    steps = chains * draws * num_steps
    for name, function in (("sample()", package), ("a loop by hand, one noise for two", by_hand)):
        print(f"double well, {name}: {steps / best_of(function) / 1e6:.0f} million chain-steps a second")


def network(examples: int = 50_000, batch_size: int = 500, num_steps: int = 200) -> None:
    """Compare a step of SGHMC with one of SGD with momentum."""
    inputs, targets = torch.rand(examples, 784), torch.randint(10, (examples,))
    module = multilayer_perceptron([784, 100, 10])
    generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.SGD(module.parameters(), lr=1e-6, momentum=0.99, weight_decay=1 / examples)

    def sgd():
        for _ in range(num_steps):
            indices = torch.randint(examples, (batch_size,), generator=generator)
            optimiser.zero_grad()
            nn.functional.cross_entropy(module(inputs[indices]), targets[indices]).backward()
            optimiser.step()

    posterior = NetworkPosterior(module, inputs, targets, batch_size=batch_size)
    kernel = SGHMC.from_learning_rate(2e-6, 0.01)
    state = kernel.init(posterior, posterior.initial_position(1, generator), generator)

    @torch.no_grad()
    def sghmc():
        nonlocal state
        for _ in range(num_steps):
            state = kernel.step(posterior, state, generator)

    floor, package = best_of(sgd), best_of(sghmc)
    for name, seconds in (("SGD with momentum", floor), ("SGHMC", package)):
        print(f"784–100–10 network, {name}: {seconds / num_steps * 1e6:.0f} microseconds a step, × {seconds / floor:.2f}")


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    toy()
    network()
