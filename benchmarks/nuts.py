"""Effective samples a second of NUTS and of Pyro's NUTS, one chain each, on logistic
regression with N = 10,000 and d = 50.

Run with ``python -m benchmarks.nuts``, in an environment that has ``pyro-ppl`` besides
the requirements. Both samplers get the same data, prior, dtype, target acceptance
(0.8), diagonal mass, numbers of warm-up steps and draws, and run in turns in one
process on one thread. Seconds are those of the processor, which other programs on the
machine do not change; on an idle machine they are the clock's. The effective sample
size is ArviZ's bulk one, the smallest of all coordinates."""

import argparse
import statistics
from time import process_time as clock

import arviz
import pyro
import pyro.distributions as distributions
import torch
from pyro.infer import MCMC
from pyro.infer import NUTS as PyroNUTS

from sgmc import sample
from sgmc.kernels import NUTS
from sgmc.posteriors import LogisticRegression
from sgmc.tuning import adapt


def make_data(num_examples: int, dim: int):
    """Make inputs with an intercept, and targets of a known regression."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(num_examples, dim, generator=generator)
    inputs[:, 0] = 1
    position = torch.randn(dim, generator=generator) / dim**0.5
    return inputs, (
        torch.rand(num_examples, generator=generator) < torch.sigmoid(inputs @ position)
    ).float()


def run_ours(inputs, targets, warm_up, num_samples, seed):
    """Return draws ``(num_samples, dim)``, the seconds of warm-up and sampling, and the
    number of gradients when sampling.
    """
    potential = LogisticRegression(inputs, targets)
    start = clock()
    kernel, position = adapt(
        NUTS(1.0),
        potential,
        torch.zeros(1, inputs.shape[1]),
        warm_up,
        seed=seed,
        progress=False,
    )
    middle = clock()
    draws = sample(kernel, potential, position, num_samples, seed=seed, progress=False)
    end = clock()
    return (
        draws.samples[:, 0],
        middle - start,
        end - middle,
        int(draws.statistics["num_gradients"][-1, 0]),
    )


def run_pyro(inputs, targets, warm_up, num_samples, seed, jit):
    """Return the same of Pyro."""

    def model(inputs, targets):
        position = pyro.sample(
            "position",
            distributions.Normal(torch.zeros(inputs.shape[1]), 1.0).to_event(1),
        )
        with pyro.plate("data", len(inputs)):
            pyro.sample(
                "y", distributions.Bernoulli(logits=inputs @ position), obs=targets
            )

    pyro.set_rng_seed(seed)
    counted = {"gradients": 0, "start": 0.0}
    kernel = PyroNUTS(
        model, jit_compile=jit, ignore_jit_warnings=True, target_accept_prob=0.8
    )

    def note(kernel, samples, stage, i):
        if stage == "Sample" and counted["start"] == 0.0:
            counted["start"] = clock()

    chain = MCMC(
        kernel,
        num_samples + 1,
        warmup_steps=warm_up,
        disable_progbar=True,
        hook_fn=note,
    )
    start = clock()
    # the clock of sampling starts after its first draw, where the hook is called first
    chain.run(inputs, targets)
    end = clock()
    middle = counted["start"]
    return chain.get_samples()["position"][1:], middle - start, end - middle, None


def main():
    """Run both in turns and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--dim", type=int, default=50)
    parser.add_argument("--warm-up", type=int, default=300)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    inputs, targets = make_data(arguments.examples, arguments.dim)
    runs = {
        "sgmc": run_ours,
        "Pyro": lambda *given: run_pyro(*given, jit=False),
        "Pyro, jit": lambda *given: run_pyro(*given, jit=True),
    }
    rates, totals = {name: [] for name in runs}, {name: [] for name in runs}
    print(f"pyro {pyro.__version__}, torch {torch.__version__}, {arguments}")
    for seed in range(arguments.rounds):
        for name, run in runs.items():
            draws, warm_up, sampling, gradients = run(
                inputs, targets, arguments.warm_up, arguments.draws, seed
            )
            size = float(
                arviz.ess(arviz.from_dict(posterior={"x": draws[None].numpy()}))[
                    "x"
                ].min()
            )
            rates[name].append(size / sampling)
            totals[name].append(size / (warm_up + sampling))
            note = (
                ""
                if gradients is None
                else f", {gradients / len(draws):.1f} gradients a draw, {sampling / gradients * 1e6:.0f} us each"  # noqa: E501
            )
            print(
                f"  {name:10s} warm-up {warm_up:6.2f} s, sampling {sampling:6.2f} s, "
                f"ESS {size:6.0f}{note}",
                flush=True,
            )
    print(f"{'':10s} {'ESS/s of sampling':>20s} {'with warm-up':>16s}")
    for name in runs:
        print(
            f"{name:10s} {statistics.median(rates[name]):20.1f} "
            f"{statistics.median(totals[name]):16.1f}"
        )
    for name in list(runs)[1:]:
        sampling, whole = (
            statistics.median(measured["sgmc"]) / statistics.median(measured[name])
            for measured in (rates, totals)
        )
        print(f"sgmc / {name}: {sampling:.2f} in sampling, {whole:.2f} with warm-up")


if __name__ == "__main__":
    main()
