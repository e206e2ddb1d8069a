"""What an estimate of the gradient noise does for SGHMC on MNIST, and what it costs: B̂
= 0 against an online estimate of its diagonal.

Network, data, priors and settings are those of the experiment mnist, with minibatches
drawn afresh, which is where the theory holds. The runs with B̂ = 0 are the very runs of
that experiment, and are made there if they are not there yet. Where ½εV̂ exceeds the
friction no noise is injected; the share of coordinates in which that happened is part
of the result."""

from functools import partial

from booklib.runs import Run
from experiments import mnist
from experiments.comparison import Methods, mistakes, named, of_plans
from experiments.study import Prepared


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the plans: B̂ = 0, and an estimate from the minibatch of every step."""
    [plan] = mnist.settings(prepared, small)["SGHMC, fresh minibatches"]
    estimated = "SGHMC, online noise estimate"
    return named({plan.method: [plan], estimated: [plan.but(noise_refresh=1)]})


def look(run: Run) -> dict:
    """Measure the temperature of the momentum in each tensor of weights at the end of a
    run, and how often the estimate was clipped.
    """
    state = run.chain.state
    pieces = run.chain.posterior.parameters_of(state.momentum)
    temperature = {
        name: round(float(piece.square().mean()), 5) for name, piece in pieces.items()
    }
    found = {**mistakes(run), "temperature": temperature}
    if state.clipped is not None:
        found["clipped"] = round(float(state.clipped) / state.num_gradients, 6)
    return found


# in the folder of the experiment mnist, whose runs are half of these
EXPERIMENT = of_plans(partial(mnist.prepare, activation="sigmoid"), settings, look=look)
