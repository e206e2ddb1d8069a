"""Fashion-MNIST with the settings of Adam-Day et al. (2022), and their noise.

The network of their MNIST experiment with the prior N(0, 1), 50,000 clothes, batches of
500, 100 rounds of warm-up and 100 more; nothing is tuned. "SGHMC, as reported" has the
noise of their program, SGHMC's at the temperature 2αη, and fresh minibatches.
"""

from functools import partial

from booklib.data import digits, fashion_mnist
from booklib.models.networks import multilayer_perceptron
from booklib.runs.plans import Hamiltonian, Langevin, Plan, Prior, Settings
from experiments.comparison import Methods, of_plans
from experiments.mnist import LAYERS
from experiments.study import Options, Prepared, split
from sgmc.minibatches import Fresh


def prepare(options: Options, name: str = "fashion") -> Prepared:
    """Load the data: the first 50,000 clothes are for training; the others are not
    used.
    """
    network = partial(multilayer_perceptron, LAYERS, "relu")
    if options.small:
        return Prepared(*digits(), network, options.folder(name))
    return split(options, fashion_mnist, network, name)


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the settings; learning rates times N are the report's for N = 50,000."""
    size = {"rounds": 200, "burn_in": 100, "keep_every": 10, "record_every": 4}
    if small:
        size = {"rounds": 60, "burn_in": 30, "batch_size": 100}
        size |= {"keep_every": 10, "record_every": 5}
    total = len(prepared.train.targets)

    def plan(kernel: Settings) -> Plan:
        return Plan(kernel, Prior(1.0), **size)

    sghmc, sgld = plan(Hamiltonian(0.05 / total, 0.01)), plan(Langevin(0.5 / total))
    return {
        "SGHMC": [sghmc],
        "SGLD": [sgld],
        "SGD with momentum": [sghmc.but(temperature=0.0)],
        "SGD": [sgld.but(temperature=0.0)],
        "SGHMC, as reported": [sghmc.but(minibatches=Fresh()).variance_as_scale()],
    }


EXPERIMENT = of_plans(prepare, settings)
