"""Steps per sample as Adam-Day et al. (2022) ran them: m = 1, 3 and 5 steps with εm
fixed and one minibatch for all m of them.

Their Figure 8 has 100 rounds of warm-up and 800 more, of 100 samples each, on the
network 784–100–10 with the prior N(0, 1), and their program starts with all weights
uniform on (−2, 2). η and α are not printed with the figure; here they are those of
their Figure 5 at m = 1. For more steps the friction C is held fixed, so that α falls to
α/m, or α is, so that the friction grows to mC. Here 50 rounds follow the warm-up, in
which the curves of that figure are farthest apart. A network a round is averaged, and
the test digits score it; theirs draws labels from every sample, and scores on the first
10,000 training digits. The small version is on the 5,000 digits."""

from functools import partial

from booklib.plans import Hamiltonian, Plan, Prior
from experiments import steps
from experiments.comparison import Methods, named, of_plans
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
    return named(
        {"m = 1": [one]}
        | {f"m = {m}, held": [plan] for m, plan in finer.items()}
        | {f"m = {m}, held, α fixed": [plan] for m, plan in fixed.items()}
    )


EXPERIMENT = of_plans(partial(steps.prepare, name="held"), settings)
