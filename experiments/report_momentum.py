"""SGD with momentum on the report's network, tuned: precision, α and learning rate.

report_wider_momentum tried weaker priors alone. Here λ is 1, 3 or 10, α is 0.1, 0.03 or
0.01 and η is 1 or 2·10⁻⁶, all in full and with all seeds. The setting is chosen by the
mean error of the last networks on the validation digits; ties go to the log loss.
"""

from functools import partial

import torch

from booklib.runs.plans import Hamiltonian, Plan, Prior
from booklib.runs.predictions import predict
from booklib.runs.results import score
from booklib.runs.together import One
from experiments import mnist
from experiments.comparison import Methods, side_by_side
from experiments.study import Prepared
from sgmc.minibatches import Fresh


def settings(prepared: Prepared, small: bool) -> Methods:
    """List every setting, by its name."""
    size = {"rounds": 850, "record_every": 50}
    if small:
        size = {"rounds": 60, "batch_size": 100, "burn_in": 20}
        size |= {"keep_every": 10, "record_every": 5}
    total = len(prepared.train.targets)
    return {
        f"ηN = {rate:g}, α = {decay:g}, λ = {precision:g}": [
            Plan(
                Hamiltonian(rate / total, decay, 0.0),
                Prior(precision),
                minibatches=Fresh(),
                **size,
            )
        ]
        for rate in (0.1, 0.05)
        for decay in (0.1, 0.03, 0.01)
        for precision in (3.0, 1.0, 10.0)
    }


def validate(one: One, prepared: Prepared) -> dict:
    """Score the last network, and the average of those kept, on validation digits."""
    posterior, found = one.chain.posterior, {}
    inputs, targets = (x.to(one.chain.device) for x in prepared.validation)
    for name, positions in {"last": [one.position[0]], "kept": one.reservoir}.items():
        average, _ = predict(posterior, torch.stack([*positions]), inputs)
        found[name] = score(average, targets.cpu())
    return {"validation": found}


EXPERIMENT = side_by_side(
    partial(mnist.prepare, name="report_momentum"), settings, look=validate
)
