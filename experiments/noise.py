"""The effect of an estimate of the gradient noise for SGHMC on MNIST, and its costs.

Settings are those of the experiment mnist with fresh minibatches, where the theory
holds; the runs with B̂ = 0 are that experiment's own, made there if they are missing.
Where ½εV̂ exceeds the friction no noise is injected; the result has the share of
coordinates in which that happened.
"""

from functools import partial

from booklib.runs.run import Run
from experiments import mnist
from experiments.comparison import Methods, mistakes, of_plans
from experiments.study import Prepared


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the plans: B̂ = 0, and an estimate from the minibatch of every step."""
    zero = "SGHMC, fresh minibatches"
    [plan] = mnist.settings(prepared, small)[zero]
    return {zero: [plan], "SGHMC, online noise estimate": [plan.but(noise_refresh=1)]}


def look(run: Run) -> dict:
    """Measure the momentum's temperature in each tensor, and the share clipped."""
    state = run.chain.state
    pieces = run.chain.posterior.parameters_of(state.momentum)
    temperature = {
        name: round(float(piece.square().mean()), 5) for name, piece in pieces.items()
    }
    found = {**mistakes(run), "temperature": temperature}
    if state.clipped is not None:
        found["clipped"] = round(float(state.clipped) / state.num_gradients, 6)
    return found


# Half of these runs are in the folder of the experiment mnist.
EXPERIMENT = of_plans(partial(mnist.prepare, activation="sigmoid"), settings, look=look)
