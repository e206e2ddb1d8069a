"""What an estimate of the gradient noise does for SGHMC on MNIST, and what it costs: B̂
= 0 against an online estimate of its diagonal.

Network, data, priors and settings are those of the experiment mnist, with minibatches
drawn afresh, which is where the theory holds. The runs with B̂ = 0 are the very runs of
that experiment, and are made there if they are not there yet. Where ½εV̂ exceeds the
friction no noise is injected; the share of coordinates in which that happened is part
of the result."""

from collections.abc import Iterator
from dataclasses import replace

from experiments import mnist
from experiments.comparison import Methods, compare, mistakes, named, summary
from experiments.mnist import prepare
from experiments.options import Options, Prepared
from experiments.run import Run

__all__ = ["look", "prepare", "run", "settings", "summary"]


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the plans: B̂ = 0, and an estimate from the minibatch of every step."""
    [plan] = mnist.settings(prepared, small)["SGHMC, fresh minibatches"]
    return named(
        {
            plan.method: [plan],
            "SGHMC, online noise estimate": [replace(plan, noise_refresh=1)],
        }
    )


def look(run: Run) -> dict:
    """Measure the temperature of the momentum in each tensor of weights at the end of a
    run, and how often the estimate was clipped.
    """
    state = run.walk.state
    pieces = run.walk.posterior.parameters_of(state.momentum)
    found = {
        **mistakes(run),
        "temperature": {
            name: round(float(piece.square().mean()), 5)
            for name, piece in pieces.items()
        },
    }
    return (
        found
        if state.clipped is None
        else {**found, "clipped": round(float(state.clipped) / state.num_gradients, 6)}
    )


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the two."""
    return compare(settings(prepared, options.small), prepared, options, look=look)
