"""mxnet: its SGLD optimiser."""

import mxnet as mx
from sglaws import Adapter, Setting, laws


class Langevin(Adapter):
    """θ ← θ − ½lr g + N(0, lr) (optimizer/optimizer.py:1534-1536), the Riemannian
    dynamics of Patterson and Teh (2013) with the metric 1.
    """

    name, kind, documented = "SGLD", "sgld", staticmethod(laws.sgld)
    at_defaults = Setting(step=5e-3)

    def arguments(self, s):
        return {"learning_rate": 2 * s.step}

    def init(self, theta, seed, **given):
        return mx.nd.array(theta, dtype="float64"), mx.optimizer.SGLD(**given)

    def step(self, state, target, seed):
        theta, optimiser = state
        gradient = mx.nd.array(target.gradient(theta.asnumpy()), dtype="float64")
        mx.random.seed(seed)
        optimiser.update(0, theta, gradient, optimiser.create_state(0, theta))
        return theta, optimiser

    def position(self, state):
        return state[0].asnumpy()

    def scheduled(self, theta, seed, sizes):
        def schedule(count):  # counts from 1
            return 2 * sizes[min(count - 1, len(sizes) - 1)]

        return self.init(theta, seed, lr_scheduler=schedule)


ADAPTERS = [Langevin()]
