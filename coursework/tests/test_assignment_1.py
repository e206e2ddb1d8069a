"""Assignment 1: what must score, and what must not."""

from coursework.tests.running import answers_score, planted_enough

ASSIGNMENT = "assignment_1"

WRONG = {
    "banana": {
        "the sign of the inner derivative": (
            {"first / variance - 2": "first / variance + 2"},
            3,
        ),
        "no inner derivative": (
            {"2 * bend * first * residual": "2 * bend * residual"},
            3,
        ),
        "a factor two": ({"2 * bend * first * residual": "bend * first * residual"}, 3),
        "the standard deviation for the variance": (
            {"first / variance - 2": "first / variance**0.5 - 2"},
            3,
        ),
        "the other sign of everything": (
            {"return torch.stack([": "return -torch.stack(["},
            3,
        ),
        "the energy without a half": ({"+ 0.5 * (second": "+ (second"}, 5),
        "the energy summed over chains": (
            {
                "return first**2 / (2 * variance) + 0.5 * (second - bend * (first**2 "
                "- variance)) ** 2": "return torch.as_tensor((first**2 / (2 * variance) + 0.5 * (second - bend * (first**2 - variance)) ** 2).sum())"
            },
            5,
        ),
        "the energy of the first chain for all": (
            {
                "+ 0.5 * (second - bend * (first**2 - variance)) ** 2": "* 0 + banana_energy(position[:1], variance, bend)[0] if len(position) > 1 else first**2 / (2 * variance) + 0.5 * (second - bend * (first**2 - variance)) ** 2"
            },
            5,
        ),
        "the variance and the bend written as numbers": {
            "    first, second = position[..., 0], position[..., 1]\n": "    variance, bend = 4.0, 0.5\n    first, second = position[..., 0], position[..., 1]\n"
        },
        "differences of energies": (
            """def banana_energy(position, variance=4.0, bend=0.5):
    first, second = position[..., 0], position[..., 1]
    return first**2 / (2 * variance) + 0.5 * (second - bend * (first**2 - variance)) ** 2


def banana_gradient(position, variance=4.0, bend=0.5):
    def along(direction, h=1e-3):  # exact for polynomials of the fourth degree
        u = [banana_energy(position + k * h * torch.tensor(direction), variance, bend) for k in (-2, -1, 1, 2)]
        return (u[0] - 8 * u[1] + 8 * u[2] - u[3]) / (12 * h)

    return torch.stack([along([1.0, 0.0]), along([0.0, 1.0])], -1)""",
            3,
        ),
        "the columns in the other order": (
            {"residual, residual], -1)": "residual, residual], -1).flip(-1)"},
            3,
        ),
        "whole numbers": (
            {"residual, residual], -1)": "residual, residual], -1).long()"},
            3,
        ),
    },
    "leapfrog": {
        "a full kick at the end": {
            "        momentum = momentum - step_size / 2 * gradient(position)\n    "
            "return": (
                "        momentum = momentum - step_size * gradient(position)\n    "
                "return"
            )
        },
        "uphill": ({"momentum - step_size": "momentum + step_size"}, 4),
        "one step too many": {"range(num_steps)": "range(num_steps + 1)"},
        "a kick by the force before the drift, both times": {
            "    for _ in range(num_steps):\n": "    for _ in range(num_steps):\n        held = position\n",
            "gradient(position)": "gradient(held)",
        },
        "a step of fourth order": (
            """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    root = 2 ** (1 / 3)
    for _ in range(num_steps):
        for part in (1 / (2 - root), -root / (2 - root), 1 / (2 - root)):
            momentum = momentum - part * step_size / 2 * gradient(position)
            position = position + part * step_size * momentum / mass
            momentum = momentum - part * step_size / 2 * gradient(position)
    return position, momentum""",
            4,
        ),
        "a force of its own": {
            "gradient(position)": "(position + torch.eye(position.shape[-1])[0] * position**3)"
        },
        "the force of the first chain for all": (
            {"gradient(position)": "gradient(position)[:1]"},
            4,
        ),
        "the velocity for the momentum": {
            "return position, momentum": "return position, momentum / mass"
        },
        "half a drift": {
            "step_size * momentum / mass": "step_size / 2 * momentum / mass"
        },
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
        "H, and a constant for steps that are not tiny": {
            "return (0.5 *": "return (position[:, 0] * 0 + 1.0) if step_size > 1e-3 else (0.5 *"
        },
        "a form that is nearly flat": {
            "return (0.5 *": "return (1e-12 if step_size > 0.3 else 1.0) * (0.5 *"
        },
        "a constant added": {".sum(-1)": ".sum(-1) + 100 * step_size"},
        "a function of the conserved form": {".sum(-1)": ".sum(-1) ** (1 + step_size)"},
        "one kind for small steps, the other for large ones": {
            "return (0.5 *": "if step_size > 0.5:\n        return (0.5 * position**2 + 0.5 * (1 - step_size**2 / 4) * momentum**2).sum(-1)\n    return (0.5 *"
        },
        "summed over chains": {".sum(-1)": ".sum()"},
        "of the shape of positions": {".sum(-1)": ""},
        "of both halves shrunk": {
            "+ 0.5 * momentum**2": "+ 0.5 * (1 - step_size**2 / 4) * momentum**2"
        },
        "nothing": {"return (0.5 *": "return 0 * position.sum(-1) + 12.5\n    (0.5 *"},
    },
    "stability": {
        "no root": {
            "2 / torch.sqrt(torch.linalg.eigvalsh(curvature).max())": "2 / torch.linalg.eigvalsh(curvature).max()"
        },
        "the smallest curvature": {".max()": ".min()"},
        "no mass": {" / torch.sqrt(mass[:, None] * mass[None, :])": ""},
        "half as large": {"float(2 /": "float(1 /"},
        "times the mass": {") / torch.sqrt(mass": ") * torch.sqrt(mass"},
        "as if there were no correlations": (
            """def stability_limit(covariance, mass):
    return float(2 * (covariance.diagonal() * mass).sqrt().min())""",
            2,
        ),
        "the diagonal of the precision": (
            """def stability_limit(covariance, mass):
    return float(2 / (torch.linalg.inv(covariance).diagonal() / mass).max().sqrt())""",
            2,
        ),
        "half of a matrix that is not symmetric": (
            """def stability_limit(covariance, mass):
    return float(2 / torch.linalg.eigvalsh(torch.linalg.inv(covariance) / mass[:, None]).max().sqrt())""",
            2,
        ),
        "the largest mass for all": {
            "torch.sqrt(mass[:, None] * mass[None, :])": "mass.max()"
        },
        "the smallest variance and the smallest mass": (
            """def stability_limit(covariance, mass):
    return float(2 * (torch.linalg.eigvalsh(covariance).min() * mass.min()).sqrt())""",
            0,
        ),
        "two, as on the page": "def stability_limit(covariance, mass):\n    return 2.0",
        "a limit for every coordinate": {
            "float(2 / torch.sqrt(torch.linalg.eigvalsh(curvature).max()))": "2 / torch.sqrt(torch.linalg.eigvalsh(curvature))"
        },
        "the covariance for the precision": {
            "torch.linalg.inv(covariance)": "covariance"
        },
    },
    "momentum": {
        "the variance as standard deviation": ({"torch.sqrt(mass)": "mass"}, 1),
        "the inverse": ({"torch.sqrt(mass)": "1 / torch.sqrt(mass)"}, 1),
        "no mass": ({"torch.sqrt(mass) * ": ""}, 1),
        "a factor of root two": ({"torch.sqrt(mass)": "torch.sqrt(2 * mass)"}, 1),
        "uniform": (
            {
                "torch.randn(position.shape": "12**0.5 * (torch.rand(position.shape",
                "position.dtype)": "position.dtype) - 0.5)",
            },
            1,
        ),
        "the same for every coordinate": (
            {
                "torch.randn(position.shape": "torch.ones(position.shape) * torch.randn((1,)"
            },
            1,
        ),
        "the same for every chain": (
            {
                "torch.randn(position.shape": "torch.ones(position.shape) * torch.randn(position.shape[1:]"
            },
            1,
        ),
        "the global generator": ({", generator=generator": ""}, 5),
        "a seed of its own": {
            "generator=generator": "generator=torch.Generator().manual_seed(0)"
        },
        "a seed of its own, and the generator moved": {
            "    return ": "    torch.rand(1, generator=generator)\n    return ",
            "generator=generator, dtype": "generator=torch.Generator().manual_seed(0), dtype",
        },
        "the generator set back": {
            "    return torch.sqrt(mass)": "    state = generator.get_state()\n    result = torch.sqrt(mass)",
            "dtype=position.dtype)": "dtype=position.dtype)\n    generator.set_state(state)\n    return result",
        },
        "quantiles": {
            "torch.randn(position.shape, generator=generator, dtype=position.dtype)": "torch.special.ndtri((torch.arange(position.numel()) + 0.5) / position.numel()).reshape(position.shape)"
        },
        "quantiles, shuffled": (
            {
                "torch.randn(position.shape, generator=generator, "
                "dtype=position.dtype)": "torch.special.ndtri((torch.randperm(position.shape[1], generator=generator).expand(position.shape) + 0.5) / position.shape[1])"
            },
            1,
        ),
        "each call the last one, with the sign changed": (
            """def draw_momentum(position, mass, generator, kept={}):
    if kept:
        torch.rand(1, generator=generator)
        return -kept.pop("last")
    kept["last"] = torch.sqrt(mass) * torch.randn(position.shape, generator=generator, dtype=position.dtype)
    return kept["last"].clone()""",
            0,
        ),
        "a huge one among them": (
            {
                "    return torch.sqrt(mass)": "    result = torch.sqrt(mass)",
                "dtype=position.dtype)": "dtype=position.dtype)\n    result[0, :2] = 1e30\n    return result",
            },
            1,
        ),
        "whole numbers": {
            "dtype=position.dtype)": "dtype=position.dtype)\n    return r.long()",
            "    return torch.sqrt(mass)": "    r = torch.sqrt(mass)",
        },
        "single precision draws of double size": (
            {"torch.sqrt(mass) * ": "2 * torch.sqrt(mass).float() * "},
            1,
        ),
    },
    "hamiltonian": {
        "no half": {"0.5 * ": ""},
        "times the mass": {"/ mass": "* mass"},
        "the sign of the kinetic energy": {"+ 0.5": "- 0.5"},
        "no kinetic energy": {" + 0.5 * (momentum**2 / mass).sum(-1)": ""},
        "no potential energy": {"energy(position) + ": ""},
        "no mass": {"momentum**2 / mass": "momentum**2"},
        "of the shape (chains, 1)": {
            "(momentum**2 / mass).sum(-1)": "(momentum**2 / mass).sum(-1, keepdim=True)",
            "energy(position)": "energy(position)[:, None]",
        },
        "summed over chains": {
            "(momentum**2 / mass).sum(-1)": "(momentum**2 / mass).sum()",
            "energy(position)": "energy(position).sum()",
        },
        "the kinetic energy summed over chains": {
            "(momentum**2 / mass).sum(-1)": "(momentum**2 / mass).sum()"
        },
        "the energy of the tests written in": {
            "energy(position)": "0.5 * (position**2).sum(-1)"
        },
        "the mean of the coordinates": {".sum(-1)": ".mean(-1)"},
        "one chain": {
            "return energy(position)": "return float(energy(position)[0])",
            "(momentum**2 / mass).sum(-1)": "float((momentum[0] ** 2 / mass).sum())",
        },
        "the root of the mass": {"momentum**2 / mass": "momentum**2 / mass**0.5"},
        "the velocity for the momentum": {
            "momentum**2 / mass": "(momentum / mass) ** 2"
        },
    },
    "hmc": {
        "the sign of the decision": ({"torch.exp(-change)": "torch.exp(change)"}, 0),
        "everything accepted": ({"< torch.exp(-change)": "< 1"}, 4),
        "everything rejected": {"< torch.exp(-change)": "< 0 * torch.exp(-change)"},
        "accepted only downhill": {"< torch.exp(-change)": "< (change <= 0)"},
        "no kinetic energy in the decision": (
            {
                "change = hamiltonian(energy, proposal, end, mass) - "
                "hamiltonian(energy, position, start, mass)": "change = energy(proposal) - energy(position)"
            },
            4,
        ),
        "a root of the ratio": ({"torch.exp(-change)": "torch.exp(-change / 2)"}, 4),
        "the rule of Barker": (
            {"< torch.exp(-change)": "< torch.sigmoid(-change) * (1 + (change == 0))"},
            0,
        ),
        "no logarithm undone": ({"torch.exp(-change)": "1 - change"}, 4),
        "the proposal kept after a rejection": (
            {"torch.where(accepted[:, None], proposal, position)": "proposal"},
            4,
        ),
        "one decision for all chains": ({"torch.rand(change.shape": "torch.rand(1"}, 4),
        "the first chain decides for all": (
            {
                "torch.rand(change.shape, generator=generator) < torch.exp(-change)": "(torch.rand(1, generator=generator) < torch.exp(-change[:1])).expand(len(position))"
            },
            4,
        ),
        "decisions from a seed of its own": (
            {
                "torch.rand(change.shape, generator=generator)": "torch.rand(change.shape, generator=torch.Generator().manual_seed(0))"
            },
            9,
        ),
        "no fresh momentum": {
            "draw_momentum(position, mass, generator)": "torch.ones_like(position)"
        },
        "a momentum of twice the variance": {
            "draw_momentum(position, mass, generator)": "2**0.5 * draw_momentum(position, mass, generator)"
        },
        "a momentum from a seed of its own": {
            "draw_momentum(position, mass, generator)": "draw_momentum(position, mass, torch.Generator().manual_seed(0))"
        },
        "a momentum from a seed of its own, other at every place": (
            {
                "draw_momentum(position, mass, generator)": "draw_momentum(position, mass, torch.Generator().manual_seed(int(1e6 * position.abs().sum())))"
            },
            0,
        ),
        "uniform momenta": {
            "draw_momentum(position, mass, generator)": "(12 * mass) ** 0.5 * (torch.rand(position.shape, generator=generator) - 0.5)"
        },
        "one leapfrog step too many": {"num_steps, mass)": "num_steps + 1, mass)"},
        "one leapfrog step too few": {"num_steps, mass)": "num_steps - 1, mass)"},
        "always one leapfrog step": (
            {"step_size, num_steps, mass)": "step_size * num_steps, 1, mass)"},
            5,
        ),
        "steps of half the size, twice as many": (
            {"step_size, num_steps, mass)": "step_size / 2, 2 * num_steps, mass)"},
            5,
        ),
        "uphill": (
            {"leapfrog(gradient,": "leapfrog(lambda position: -gradient(position),"},
            5,
        ),
        "decisions as whole numbers": {
            "proposal, position), accepted": "proposal, position), accepted.long()"
        },
        "positions as whole numbers": {
            "proposal, position), accepted": "proposal, position).long(), accepted"
        },
        "a rejected chain sent to zero": (
            {"proposal, position), accepted": "proposal, 0 * position), accepted"},
            9,
        ),
        "one chain, with if": (
            """def hmc_step(energy, gradient, position, step_size, num_steps, mass, generator):
    start = draw_momentum(position, mass, generator)
    before = float(hamiltonian(energy, position, start, mass)[0])
    proposal, end = leapfrog(gradient, position, start, step_size, num_steps, mass)
    if torch.rand(1, generator=generator) < min(1.0, math.exp(min(0.0, before - float(hamiltonian(energy, proposal, end, mass)[0])))):
        return proposal, True
    return position, False""",
            4,
        ),
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
        "one chain after the other": """def banana_energy(position, variance=4.0, bend=0.5):
    return torch.tensor([x * x / 2 / variance + (y - bend * (x * x - variance)) ** 2 / 2 for x, y in position.tolist()])


def banana_gradient(position, variance=4.0, bend=0.5):
    rows = []
    for x, y in position.tolist():
        w = y - bend * (x * x - variance)
        rows.append([x / variance - 2 * bend * x * w, w])
    return torch.tensor(rows)""",
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
        "one chain after the other": {
            "return (0.5 * (1 - step_size**2 / 4) * position**2 + 0.5 * "
            "momentum**2).sum(-1)": "return torch.stack([(q * q * (1 - step_size**2 / 4) + p * p)[0] / 2 for q, p in zip(position, momentum)])"
        },
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
            "return torch.sqrt(mass) * torch.randn(position.shape, "
            "generator=generator, dtype=position.dtype)": "return torch.empty_like(position).normal_(generator=generator).mul_(mass.sqrt())"
        },
        "by torch.normal": {
            "return torch.sqrt(mass) * torch.randn(position.shape, "
            "generator=generator, dtype=position.dtype)": "return torch.normal(torch.zeros_like(position), mass.sqrt().expand_as(position), generator=generator)"
        },
        "one chain after the other": {
            "return torch.sqrt(mass) * torch.randn(position.shape, "
            "generator=generator, dtype=position.dtype)": "return torch.stack([mass.sqrt() * torch.randn(len(mass), generator=generator) for _ in position])"
        },
        "by the inverse distribution function": {
            "torch.randn(position.shape, generator=generator, dtype=position.dtype)": "torch.special.ndtri(torch.rand(position.shape, generator=generator, dtype=position.dtype))"
        },
    },
    "hamiltonian": {
        "an inner product": {
            "0.5 * (momentum**2 / mass).sum(-1)": "torch.einsum('ci,i,ci->c', momentum, 0.5 / mass, momentum)"
        },
        "in velocities": {
            "(momentum**2 / mass).sum(-1)": "(mass * (momentum / mass) ** 2).sum(-1)"
        },
        "one chain after the other": {
            "return energy(position) + 0.5 * (momentum**2 / mass).sum(-1)": "return torch.stack([energy(q[None])[0] + (p * p / mass).sum() / 2 for q, p in zip(position, momentum)])"
        },
    },
    "hmc": {
        "in logarithms": {
            "torch.rand(change.shape, generator=generator) < torch.exp(-change)": "torch.rand(change.shape, generator=generator).log() < -change"
        },
        "one chain after the other, with if": """def hmc_step(energy, gradient, position, step_size, num_steps, mass, generator):
    start = draw_momentum(position, mass, generator)
    before = hamiltonian(energy, position, start, mass)
    proposal, end = leapfrog(gradient, position.clone(), start.clone(), step_size, num_steps, mass)
    after = hamiltonian(energy, proposal, end, mass)
    decisions = []
    for chain in range(len(position)):
        decisions.append(bool(torch.rand(1, generator=generator) < min(1.0, math.exp(before[chain] - after[chain]))))
        if decisions[-1]:
            position[chain] = proposal[chain]
    return position, torch.tensor(decisions)""",
        "the ends of free flights kept, each force evaluated once": """def hmc_step(energy, gradient, position, step_size, num_steps, mass, generator):
    first = torch.normal(torch.zeros_like(position), mass.sqrt().expand_as(position), generator=generator)
    q, p, force = position, first, -gradient(position)
    for _ in range(num_steps):
        q = q + step_size * (p + step_size / 2 * force) / mass
        new = -gradient(q)
        p, force = p + step_size / 2 * (force + new), new
    uniform = torch.rand(len(q), generator=generator)
    accepted = uniform.log() <= energy(position) - energy(q) + ((first**2 - p**2) / (2 * mass)).sum(-1)
    return position + accepted[:, None] * (q - position), accepted""",
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
