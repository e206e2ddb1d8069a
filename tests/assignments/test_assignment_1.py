"""Assignment 1: what must score, and what must not."""

from tests.assignments.running import answers_score, planted_enough

ASSIGNMENT = "assignment_1"

WRONG = {
    "banana": {
        "the sign of the inner derivative": {"first / variance - 2": "first / variance + 2"},
        "no inner derivative": {"2 * bend * first * residual": "2 * bend * residual"},
        "a factor two": {"2 * bend * first * residual": "bend * first * residual"},
        "the standard deviation for the variance": {"first / variance - 2": "first / variance**0.5 - 2"},
        "the other sign of everything": {"return torch.stack([": "return -torch.stack(["},
        "the energy without a half": {"+ 0.5 * (second": "+ (second"},
    },
    "leapfrog": {
        "a full kick at the end": {
            "        momentum = momentum - step_size / 2 * gradient(position)\n    return": "        momentum = momentum - step_size * gradient(position)\n    return"
        },
        "uphill": {"momentum - step_size": "momentum + step_size"},
        "half a drift": {"step_size * momentum / mass": "step_size / 2 * momentum / mass"},
        "times the mass": {"momentum / mass": "momentum * mass"},
        "no mass": {"momentum / mass": "momentum"},
        "the root of the mass": {"momentum / mass": "momentum / mass**0.5"},
        "one step only": {"range(num_steps)": "range(1)"},
        "explicit Euler": """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    for _ in range(num_steps):
        position, momentum = position + step_size * momentum / mass, momentum - step_size * gradient(position)
    return position, momentum""",
        "symplectic Euler": """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    for _ in range(num_steps):
        position = position + step_size * momentum / mass
        momentum = momentum - step_size * gradient(position)
    return position, momentum""",
    },
    "shadow": {
        "the true energy": {"(1 - step_size**2 / 4)": "1"},
        "the other sign": {"1 - step_size": "1 + step_size"},
        "a factor two": {"step_size**2 / 4": "step_size**2 / 2"},
        "of the first order": {"step_size**2 / 4": "step_size / 2"},
        "nothing": {"return (0.5 *": "return 0 * position.sum(-1) + 12.5\n    (0.5 *"},
    },
    "stability": {
        "no root": {"2 / torch.sqrt(torch.linalg.eigvalsh(curvature).max())": "2 / torch.linalg.eigvalsh(curvature).max()"},
        "the smallest curvature": {".max()": ".min()"},
        "no mass": {" / torch.sqrt(mass[:, None] * mass[None, :])": ""},
        "half as large": {"float(2 /": "float(1 /"},
        "times the mass": {") / torch.sqrt(mass": ") * torch.sqrt(mass"},
        "the covariance for the precision": {"torch.linalg.inv(covariance)": "covariance"},
    },
    "momentum": {
        "the variance as standard deviation": {"torch.sqrt(mass)": "mass"},
        "the inverse": {"torch.sqrt(mass)": "1 / torch.sqrt(mass)"},
        "no mass": {"torch.sqrt(mass) * ": ""},
        "a factor of root two": {"torch.sqrt(mass)": "torch.sqrt(2 * mass)"},
        "uniform": {"torch.randn(position.shape": "12**0.5 * (torch.rand(position.shape", "position.dtype)": "position.dtype) - 0.5)"},
        "the same for every coordinate": {"torch.randn(position.shape": "torch.ones(position.shape) * torch.randn((1,)"},
    },
    "hamiltonian": {
        "no half": {"0.5 * ": ""},
        "times the mass": {"/ mass": "* mass"},
        "the sign of the kinetic energy": {"+ 0.5": "- 0.5"},
        "no kinetic energy": {" + 0.5 * (momentum**2 / mass).sum(-1)": ""},
        "no potential energy": {"energy(position) + ": ""},
        "no mass": {"momentum**2 / mass": "momentum**2"},
    },
    "hmc": {
        "the sign of the decision": {"torch.exp(-change)": "torch.exp(change)"},
        "everything accepted": {"< torch.exp(-change)": "< 1"},
        "everything rejected": {"< torch.exp(-change)": "< 0 * torch.exp(-change)"},
        "accepted only downhill": {"< torch.exp(-change)": "< (change < 0)"},
        "no kinetic energy in the decision": {
            "change = hamiltonian(energy, proposal, end, mass) - hamiltonian(energy, position, start, mass)": "change = energy(proposal) - energy(position)"
        },
        "a root of the ratio": {"torch.exp(-change)": "torch.exp(-change / 2)"},
        "no logarithm undone": {"torch.exp(-change)": "1 - change"},
        "the proposal kept after a rejection": {"torch.where(accepted[:, None], proposal, position)": "proposal"},
        "no fresh momentum": {"draw_momentum(position, mass, generator)": "torch.ones_like(position)"},
        "a momentum of twice the variance": {
            "draw_momentum(position, mass, generator)": "2**0.5 * draw_momentum(position, mass, generator)"
        },
    },
}

RIGHT = {
    "banana": {
        "column by column": """def banana_energy(position, variance=4.0, bend=0.5):
    first, second = position[:, 0], position[:, 1]
    return first.pow(2).div(2 * variance) + (second - bend * first**2 + bend * variance).square() / 2


def banana_gradient(position, variance=4.0, bend=0.5):
    gradient = torch.empty_like(position)
    gradient[:, 1] = position[:, 1] - bend * position[:, 0] ** 2 + bend * variance
    gradient[:, 0] = position[:, 0] * (1 / variance - 2 * bend * gradient[:, 1])
    return gradient""",
        "one chain": """def banana_energy(position, variance=4.0, bend=0.5):
    x, y = position.flatten().tolist()
    return x * x / 2 / variance + (y - bend * (x * x - variance)) ** 2 / 2


def banana_gradient(position, variance=4.0, bend=0.5):
    x, y = position.flatten().tolist()
    w = y - bend * (x * x - variance)
    return torch.tensor([[x / variance - 2 * bend * x * w, w]])""",
    },
    "leapfrog": {
        "drift first": """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    for _ in range(num_steps):
        position = position + step_size / 2 * momentum / mass
        momentum = momentum - step_size * gradient(position)
        position = position + step_size / 2 * momentum / mass
    return position, momentum""",
        "in place": """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    for _ in range(num_steps):
        momentum -= step_size / 2 * gradient(position)
        position += step_size * momentum / mass
        momentum -= step_size / 2 * gradient(position)
    return position, momentum""",
        "neighbouring kicks as one": """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    momentum = momentum - step_size / 2 * gradient(position)
    for step in range(num_steps):
        position = position + step_size * momentum / mass
        momentum = momentum - (step_size if step < num_steps - 1 else step_size / 2) * gradient(position)
    return position, momentum""",
        "in velocities": """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    velocity, force = momentum / mass, -gradient(position)
    for _ in range(num_steps):
        position = position + step_size * velocity + step_size**2 / 2 * force / mass
        new = -gradient(position)
        velocity, force = velocity + step_size / 2 * (force + new) / mass, new
    return position, velocity * mass""",
    },
    "shadow": {
        "drift first": {
            "0.5 * (1 - step_size**2 / 4) * position**2 + 0.5 * momentum**2": "0.5 * position**2 + 0.5 * (1 - step_size**2 / 4) * momentum**2"
        },
        "on another scale": {
            "0.5 * (1 - step_size**2 / 4) * position**2 + 0.5 * momentum**2": "0.5 * position**2 + 0.5 * momentum**2 / (1 - step_size**2 / 4)"
        },
        "a plain number": {"return (": "return float((", ".sum(-1)": ".sum())"},
    },
    "stability": {
        "eigenvalues of a product": """def stability_limit(covariance, mass):
    return 2 / torch.linalg.eigvals(torch.diag(1 / mass) @ covariance.inverse()).real.max().sqrt()""",
        "by singular values": """def stability_limit(covariance, mass):
    root = torch.diag(mass**0.5) @ torch.linalg.cholesky(covariance)
    return 2 * torch.linalg.svdvals(root).min()""",
        "in NumPy": """def stability_limit(covariance, mass):
    import numpy as np

    return 2 / np.sqrt(np.linalg.eigvals(np.linalg.inv(covariance.numpy()) / mass.numpy()[:, None]).real.max())""",
    },
    "momentum": {
        "in place": {
            "return torch.sqrt(mass) * torch.randn(position.shape, generator=generator, dtype=position.dtype)": "return torch.empty_like(position).normal_(generator=generator).mul_(mass.sqrt())"
        },
        "by torch.normal": {
            "return torch.sqrt(mass) * torch.randn(position.shape, generator=generator, dtype=position.dtype)": "return torch.normal(torch.zeros_like(position), mass.sqrt().expand_as(position), generator=generator)"
        },
        "the global generator": {", generator=generator": ""},
    },
    "hamiltonian": {
        "an inner product": {"0.5 * (momentum**2 / mass).sum(-1)": "torch.einsum('ci,i,ci->c', momentum, 0.5 / mass, momentum)"},
        "one chain": {"0.5 * (momentum**2 / mass).sum(-1)": "0.5 * sum(momentum.flatten() ** 2 / mass)"},
    },
    "hmc": {
        "in logarithms": {
            "torch.rand(change.shape, generator=generator) < torch.exp(-change)": "torch.rand(change.shape, generator=generator).log() < -change"
        },
        "one chain, with if": """def hmc_step(energy, gradient, position, step_size, num_steps, mass, generator):
    start = draw_momentum(position, mass, generator)
    before = hamiltonian(energy, position, start, mass)
    proposal, end = leapfrog(gradient, position, start, step_size, num_steps, mass)
    if torch.rand(1, generator=generator) < min(1.0, math.exp(before - hamiltonian(energy, proposal, end, mass))):
        return proposal, True
    return position, False""",
        "the momentum flipped, drift first, all inside": """def hmc_step(energy, gradient, position, step_size, num_steps, mass, generator):
    start = mass.sqrt() * torch.empty_like(position).normal_(generator=generator)
    place, momentum = position.clone(), start.clone()
    for _ in range(num_steps):
        place += step_size / 2 * momentum / mass
        momentum -= step_size * gradient(place)
        place += step_size / 2 * momentum / mass
    momentum.neg_()
    old = energy(position) + (start**2 / mass).sum(-1) / 2
    new = energy(place) + (momentum**2 / mass).sum(-1) / 2
    accept = torch.empty_like(old).exponential_(generator=generator) > new - old
    position[accept] = place[accept]
    return position, accept""",
    },
}

test_answers_score = answers_score(ASSIGNMENT, WRONG, RIGHT)
test_planted_enough = planted_enough(ASSIGNMENT, WRONG, RIGHT)
