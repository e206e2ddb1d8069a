"""Steps per sample as Adam-Day et al. (2022) ran them: one minibatch for all m steps.

Their Figure 8 has 100 rounds of warm-up and 800 more, 100 samples each, from a start
uniform on (−2, 2). η and α are not printed with it; here they are those of their Figure
5 at m = 1. For more steps either the friction C is held fixed, so that α falls to α/m,
or α is. Here 50 rounds follow the warm-up, in which its curves are farthest apart. A
network a round is averaged, and the test digits score it; theirs draws labels from
every sample, and scores on the first 10,000 training digits.
"""

from functools import partial

from booklib.runs.plans import Hamiltonian, Plan, Prior
from experiments import steps
from experiments.comparison import Methods, of_plans
from experiments.study import Prepared
from sgmc.minibatches import Fresh, Held


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    size = {"rounds": 150, "burn_in": 100, "record_every": 5}
    if small:
        size = {"rounds": 40, "burn_in": 20, "batch_size": 100, "record_every": 2}
    kernel = Hamiltonian(0.1 / len(prepared.train.targets), 0.01)
    one = Plan(kernel, Prior(1.0), "uniform", Fresh(), **size)
    finer = {m: one.finer(m).but(minibatches=Held(m, Fresh())) for m in steps.STEPS[1:]}
    fixed = {m: plan.but(momentum_decay=0.01) for m, plan in finer.items()}
    return (
        {"m = 1": [one]}
        | {f"m = {m}, held": [plan] for m, plan in finer.items()}
        | {f"m = {m}, held, α fixed": [plan] for m, plan in fixed.items()}
    )


EXPERIMENT = of_plans(partial(steps.prepare, name="held"), settings)
