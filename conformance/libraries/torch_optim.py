"""What the samplers share that are optimisers of PyTorch."""

import io

import torch
from sglaws import Adapter, laws

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def springenberg(x, r, gradient, normal, s):
    """SGHMC of Springenberg et al. (2016), eq. 10: it takes ε⁴ from the velocity's
    noise, B̂ = ½ε V̂ with V̂ = 1 without a burn-in.
    """
    return laws.kick_first(
        x, r, gradient, normal, s._replace(estimate=s.temperature * s.step / 2)
    )


class State:
    """A parameter, its optimiser, and a scheduler."""

    def __init__(self, param, optimiser, given, scheduler=None):
        self.param, self.optimiser = param, optimiser
        self.given, self.scheduler = given, scheduler


class Optimiser(Adapter):
    """A sampler that is an optimiser: a subclass says which, and its arguments."""

    make = None  #: the optimiser's class, or a function that makes one
    buffer = ""  #: the momentum's name in the optimiser's state
    size = "lr"  #: the name of the step size
    closure = ()  #: what its step is given

    def init(self, theta, seed, **given):
        torch.manual_seed(seed)
        param = torch.nn.Parameter(torch.tensor(theta))
        return State(param, type(self).make([param], **given), given)

    def step(self, state, target, seed):
        theta = state.param.detach().numpy()
        state.param.grad = torch.tensor(target.gradient(theta))
        torch.manual_seed(seed)
        state.optimiser.step(*self.closure)
        if state.scheduler:
            state.scheduler.step()
        return state

    def position(self, state):
        return state.param.detach().numpy().copy()

    def momentum(self, state):
        if not self.buffer:
            return None
        found = state.optimiser.state[state.param].get(self.buffer)
        return torch.zeros_like(state.param).numpy() if found is None else found.numpy()

    def save(self, state):
        kept = io.BytesIO()
        parts = [state.param.detach(), state.optimiser.state_dict(), state.given]
        torch.save(parts, kept)
        return kept.getvalue()

    def load(self, kept):
        param, found, given = torch.load(io.BytesIO(kept), weights_only=False)
        param = torch.nn.Parameter(param)
        optimiser = type(self).make([param], **given)
        optimiser.load_state_dict(found)
        return State(param, optimiser, given)

    def add(self, state, theta, seed):
        later = torch.nn.Parameter(torch.tensor(theta))
        state.optimiser.add_param_group({"params": [later]})
        for param in (state.param, later):
            param.grad = torch.ones_like(param)
        torch.manual_seed(seed)
        state.optimiser.step(*self.closure)
        return later.detach().numpy()

    def scheduled(self, theta, seed, sizes):
        from sglaws import STANDARD

        standard = STANDARD[self.kind]
        sizes = [
            self.arguments(standard._replace(step=each))[self.size] for each in sizes
        ]
        given = self.arguments(standard) | {self.size: sizes[0]}
        state = self.init(theta, seed, **given)
        state.scheduler = torch.optim.lr_scheduler.LambdaLR(
            state.optimiser, lambda k: sizes[min(k, len(sizes) - 1)] / sizes[0]
        )
        return state
