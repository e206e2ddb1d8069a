"""Assignment 1: what must score, and what must not."""

from coursework.tests.running import answers_score, planted_enough

ASSIGNMENT = "assignment_1"

WRONG = {
    "banana": {
        "the sign of the inner derivative": (
            {"first / variance - slope": "first / variance + slope"},
            3,
        ),
        "no inner derivative": ({"slope(first) * residual": "residual"}, 3),
        "half of the residual's part": (
            {"slope(first) * residual": "slope(first) * residual / 2"},
            3,
        ),
        "the standard deviation for the variance": (
            {"first / variance - slope": "first / variance**0.5 - slope"},
            3,
        ),
        "the other sign of everything": (
            {"return torch.stack([": "return -torch.stack(["},
            3,
        ),
        "the energy without a half": ({"+ 0.5 * (second": "+ (second"}, 5),
        "the energy summed over chains": (
            {
                "return first**2 / (2 * variance) + 0.5 * (second - curve(first)) ** 2": "return (first**2 / (2 * variance) + 0.5 * (second - curve(first)) ** 2).sum()"
            },
            5,
        ),
        "the energy of the first chain for all": (
            {
                "+ 0.5 * (second - curve(first)) ** 2": "+ 0.5 * (second - curve(first))[:1] ** 2"
            },
            5,
        ),
        "the parabola and the variance written in": {
            "    first, second = position[..., 0], position[..., 1]\n": "    variance, curve, slope = 4.0, parabola, parabola_slope\n    first, second = position[..., 0], position[..., 1]\n"
        },
        "automatic differentiation": (
            """def banana_energy(position, variance, curve):
    return position[:, 0] ** 2 / (2 * variance) + 0.5 * (position[:, 1] - curve(position[:, 0])) ** 2


def banana_gradient(position, variance, curve, slope):
    position.requires_grad_()
    [gradient] = torch.autograd.grad(banana_energy(position, variance, curve).sum(), position)
    return gradient""",
            3,
        ),
        "differences of energies": (
            """def banana_energy(position, variance, curve):
    return position[:, 0] ** 2 / (2 * variance) + 0.5 * (position[:, 1] - curve(position[:, 0])) ** 2


def banana_gradient(position, variance, curve, slope):
    def along(direction, h=1e-3):  # exact for polynomials of the fourth degree
        u = [banana_energy(position + k * h * torch.tensor(direction), variance, curve) for k in (-2, -1, 1, 2)]
        return (u[0] - 8 * u[1] + 8 * u[2] - u[3]) / (12 * h)

    return torch.stack([along([1.0, 0.0]), along([0.0, 1.0])], -1)""",
            3,
        ),
        "differences of the curve's derivative": (
            {"slope(first)": "(curve(first + 1e-6) - curve(first - 1e-6)) / 2e-6"},
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
        "single precision": (
            {"residual, residual], -1)": "residual, residual], -1).float()"},
            3,
        ),
        "the values of the page": """def banana_energy(position, variance, curve):
    return torch.tensor([0.5, 3.25, 1.25])[: len(position)]


def banana_gradient(position, variance, curve, slope):
    return torch.tensor([[0.5, 0.0], [-2.25, 2.5], [-2.25, -0.5]])[: len(position)]""",
    },
    "leapfrog": {
        "a full kick at the end": {
            "        momentum = momentum - step / 2 * gradient(position)\n    return": "        momentum = momentum - step * gradient(position)\n    return"
        },
        "without a force": {"gradient(position)": "0 * position"},
        "where it started": """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    return position, momentum""",
        "uphill": {"momentum - step": "momentum + step"},
        "one step too many": {"range(num_steps)": "range(num_steps + 1)"},
        "the force at the start of a step, both times": (
            {
                "    for _ in range(num_steps):\n": "    for _ in range(num_steps):\n        held = position\n",
                "gradient(position)": "gradient(held)",
            },
            0,
        ),
        "a step of fourth order": (
            """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    root, step, inverse = 2 ** (1 / 3), step_size[:, None], torch.linalg.inv(mass)
    for _ in range(num_steps):
        for part in (1 / (2 - root), -root / (2 - root), 1 / (2 - root)):
            momentum = momentum - part * step / 2 * gradient(position)
            position = position + part * step * momentum @ inverse
            momentum = momentum - part * step / 2 * gradient(position)
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
        "the step size of the first chain for all": {
            "step_size[:, None]": "step_size[0]"
        },
        "the velocity for the momentum": {
            "return position, momentum": "return position, momentum @ inverse"
        },
        "half a drift": {"+ step * momentum": "+ step / 2 * momentum"},
        "times the mass": {"torch.linalg.inv(mass)": "mass"},
        "no mass": {"torch.linalg.inv(mass)": "torch.eye(len(mass))"},
        "the diagonal of the mass": {
            "torch.linalg.inv(mass)": "torch.diag(1 / mass.diagonal())"
        },
        "the diagonal of the inverse": {
            "torch.linalg.inv(mass)": "torch.diag(torch.linalg.inv(mass).diagonal())"
        },
        "the root of the mass": {
            "torch.linalg.inv(mass)": "torch.linalg.inv(torch.linalg.cholesky(mass))"
        },
        "one step only": {"range(num_steps)": "range(1)"},
        "single precision": {
            "return position, momentum": "return position.float(), momentum.float()"
        },
        "explicit Euler": """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    step, inverse = step_size[:, None], torch.linalg.inv(mass)
    for _ in range(num_steps):
        position, momentum = position + step * momentum @ inverse, momentum - step * gradient(position)
    return position, momentum""",
        "symplectic Euler": """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    step, inverse = step_size[:, None], torch.linalg.inv(mass)
    for _ in range(num_steps):
        position = position + step * momentum @ inverse
        momentum = momentum - step * gradient(position)
    return position, momentum""",
        "an exact solver of the equations of motion": (
            """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    from scipy.integrate import solve_ivp
    ends = []
    inverse = torch.linalg.inv(mass)
    for q, p, h in zip(position, momentum, step_size):
        def motion(t, z):
            q, p = torch.tensor(z).reshape(2, 1, -1)
            return torch.cat([p @ inverse, -gradient(q)]).reshape(-1).numpy()
        z = solve_ivp(motion, (0, float(h) * num_steps), torch.cat([q, p]).numpy(), rtol=1e-12, atol=1e-13, method="DOP853").y[:, -1]
        ends.append(torch.tensor(z).reshape(2, -1))
    ends = torch.stack(ends)
    return ends[:, 0], ends[:, 1]""",
            4,
        ),
    },
    "shadow": {
        "the true energy": {"1 - step_size**2 * curvature / (4 * mass)": "1"},
        "the other sign": {"1 - step_size": "1 + step_size"},
        "a factor two": {"(4 * mass)": "(2 * mass)"},
        "of the first order": {
            "step_size**2 * curvature / (4 * mass)": "step_size / 2"
        },
        "as if the mass were one": {"/ (4 * mass)": "/ 4"},
        "as in the bowl of the book": {
            "step_size**2 * curvature / (4 * mass)": "step_size**2 / 4"
        },
        "the inverse of the frequency": {
            "step_size**2 * curvature / (4 * mass)": "step_size**2 * mass / (4 * curvature)"
        },
        "H, and a constant for steps that are not tiny": {
            "return (": "return (position[:, 0] * 0 + 1.0) if step_size > 1e-3 else ("
        },
        "a form that is nearly flat": {
            "return (": "return (1e-12 if step_size > 0.3 else 1.0) * ("
        },
        "a constant added": {".sum(-1)": ".sum(-1) + 100 * step_size"},
        "a function of the conserved form": {".sum(-1)": ".sum(-1) ** (1 + step_size)"},
        "one kind for small steps, the other for large ones": {
            "    return (": "    if shrunk < 0.9:\n        return (0.5 * curvature * position**2 + 0.5 / mass * shrunk * momentum**2).sum(-1)\n    return ("
        },
        "summed over chains": {".sum(-1)": ".sum()"},
        "of the shape of positions": {".sum(-1)": ""},
        "of both halves shrunk": {
            "0.5 / mass * momentum**2": "0.5 / mass * shrunk * momentum**2"
        },
        "a constant": {"return (": "return 0 * position.sum(-1) + 11.0\n    ("},
    },
    "stability": {
        "no root": {".min().sqrt()": ".min()"},
        "the largest eigenvalue": {".min()": ".max()"},
        "no mass": {"root.T @ covariance @ root": "covariance"},
        "half as large": {"float(2 *": "float(1 *"},
        "divided by the mass": {
            "torch.linalg.cholesky(mass)": "torch.linalg.cholesky(torch.linalg.inv(mass))"
        },
        "as if there were no correlations": (
            """def stability_limit(covariance, mass):
    return float(2 * (covariance.diagonal() * mass.diagonal()).sqrt().min())""",
            2,
        ),
        "the diagonal of the mass": (
            {"torch.linalg.cholesky(mass)": "torch.diag(mass.diagonal().sqrt())"},
            2,
        ),
        "half of a matrix that is not symmetric": (
            {"root.T @ covariance @ root": "covariance @ mass"},
            2,
        ),
        "the largest mass for all": {
            "root.T @ covariance @ root": "covariance * mass.max()"
        },
        "the smallest variance and the smallest mass": (
            """def stability_limit(covariance, mass):
    return float(2 * (torch.linalg.eigvalsh(covariance).min() * torch.linalg.eigvalsh(mass).min()).sqrt())""",
            0,
        ),
        "two, as on the page": "def stability_limit(covariance, mass):\n    return 2.0",
        "a limit for every coordinate": {
            "float(2 * torch.linalg.eigvalsh(root.T @ covariance @ root).min().sqrt())": "2 * torch.linalg.eigvalsh(root.T @ covariance @ root).sqrt()"
        },
        "the precision for the covariance": {
            "covariance @ root": "torch.linalg.inv(covariance) @ root"
        },
    },
    "momentum": {
        "the variance as standard deviation": {"torch.linalg.cholesky(mass).T": "mass"},
        "the root from the other side": {
            "torch.linalg.cholesky(mass).T": "torch.linalg.cholesky(mass)"
        },
        "the inverse": {
            "torch.linalg.cholesky(mass).T": "torch.linalg.inv(torch.linalg.cholesky(mass))"
        },
        "no mass": {"normal @ torch.linalg.cholesky(mass).T": "normal"},
        "the diagonal of the mass": {
            "normal @ torch.linalg.cholesky(mass).T": "normal * mass.diagonal().sqrt()"
        },
        "a factor of root two": {"cholesky(mass)": "cholesky(2 * mass)"},
        "one draw": {
            "normal = torch.randn(position.shape": "normal = torch.randn((1, 2)",
            "    return normal": "    return normal[:1]",
        },
        "one draw, many times": {
            "normal = torch.randn(position.shape": "normal = torch.ones(position.shape) * torch.randn((1, 2)"
        },
        "uniform": (
            {
                "torch.randn(position.shape": "12**0.5 * (torch.rand(position.shape",
                "position.dtype)": "position.dtype) - 0.5)",
            },
            1,
        ),
        "the same for every coordinate": {
            "torch.randn(position.shape": "torch.ones(position.shape) * torch.randn((len(position), 1)"
        },
        "the global generator": ({", generator=generator": ""}, 5),
        "a seed of its own": {
            "generator=generator": "generator=torch.Generator().manual_seed(0)"
        },
        "a seed of its own, and the generator moved": {
            "    normal = ": "    torch.rand(1, generator=generator)\n    normal = ",
            "generator=generator, dtype": "generator=torch.Generator().manual_seed(0), dtype",
        },
        "the generator set back": {
            "    normal = ": "    state = generator.get_state()\n    normal = ",
            "    return": "    generator.set_state(state)\n    return",
        },
        "quantiles": {
            "torch.randn(position.shape, generator=generator, dtype=position.dtype)": "torch.special.ndtri((torch.arange(position.numel()) + 0.5) / position.numel()).reshape(position.shape)"
        },
        "quantiles, shuffled": (
            {
                "torch.randn(position.shape, generator=generator, dtype=position.dtype)": "torch.special.ndtri((torch.stack([torch.randperm(len(position), generator=generator) for _ in range(2)], -1) + 0.5) / len(position))"
            },
            1,
        ),
        "each call the last one, with the sign changed": (
            """def draw_momentum(position, mass, generator, kept={}):
    if kept:
        torch.rand(1, generator=generator)
        return -kept.pop("last")
    kept["last"] = torch.randn(position.shape, generator=generator) @ torch.linalg.cholesky(mass).T
    return kept["last"].clone()""",
            0,
        ),
        "a huge one among them": {
            "    return": "    normal[0] = 1e30\n    return",
        },
        "whole numbers": {
            "normal @ torch.linalg.cholesky(mass).T": "(normal @ torch.linalg.cholesky(mass).T).long()"
        },
        "single precision": {
            "torch.linalg.cholesky(mass).T": "torch.linalg.cholesky(mass).T.float()",
            "dtype=position.dtype": "dtype=torch.float32",
        },
    },
    "hamiltonian": {
        "no half": {"0.5 * ": ""},
        "times the mass": {"torch.linalg.inv(mass)": "mass"},
        "the sign of the kinetic energy": {"+ 0.5": "- 0.5"},
        "no kinetic energy": {
            " + 0.5 * (momentum @ torch.linalg.inv(mass) * momentum).sum(-1)": ""
        },
        "no potential energy": {"energy(position) + ": ""},
        "no mass": {"momentum @ torch.linalg.inv(mass) * momentum": "momentum**2"},
        "the diagonal of the mass": {
            "momentum @ torch.linalg.inv(mass) * momentum": "momentum**2 / mass.diagonal()"
        },
        "the diagonal of the inverse": {
            "momentum @ torch.linalg.inv(mass) * momentum": "momentum**2 * torch.linalg.inv(mass).diagonal()"
        },
        "of the shape (chains, 1)": {
            "momentum).sum(-1)": "momentum).sum(-1, keepdim=True)",
            "energy(position)": "energy(position)[:, None]",
        },
        "summed over chains": {
            "momentum).sum(-1)": "momentum).sum()",
            "energy(position)": "energy(position).sum()",
        },
        "the kinetic energy summed over chains": {
            "momentum).sum(-1)": "momentum).sum()"
        },
        "the energy of the tests written in": {
            "energy(position)": "0.5 * (position**2).sum(-1)"
        },
        "the mean of the coordinates": {".sum(-1)": ".mean(-1)"},
        "the values of the page": "def hamiltonian(energy, position, momentum, mass):\n    return torch.tensor([14.0, 2 + 1 / 3])",
        "single precision": {
            "momentum).sum(-1)": "momentum).sum(-1).float()",
            "energy(position)": "energy(position).float()",
        },
        "the velocity for the momentum": {
            "momentum @ torch.linalg.inv(mass) * momentum": "(momentum @ torch.linalg.inv(mass)) ** 2"
        },
    },
    "hmc": {
        "the sign of the decision": (
            {"torch.exp(-change / temperature)": "torch.exp(change / temperature)"},
            0,
        ),
        "everything accepted": (
            {"< torch.exp(-change / temperature)": "< 1 + 0 * change"},
            4,
        ),
        "everything rejected": {"< torch.exp(-change / temperature)": "< 0 * change"},
        "accepted only downhill": {
            "< torch.exp(-change / temperature)": "< (change <= 0)"
        },
        "no kinetic energy in the decision": (
            {
                "change = hamiltonian(energy, proposal, end, mass) - "
                "hamiltonian(energy, position, start, mass)": "change = energy(proposal) - energy(position)"
            },
            4,
        ),
        "a root of the ratio": (
            {"-change / temperature": "-change / 2 / temperature"},
            4,
        ),
        "the rule of Barker": (
            {
                "< torch.exp(-change / temperature)": "< torch.sigmoid(-change / temperature) * (1 + (change == 0))"
            },
            4,
        ),
        "no logarithm undone": (
            {"torch.exp(-change / temperature)": "1 - change / temperature"},
            4,
        ),
        "the proposal kept after a rejection": (
            {"torch.where(accepted[:, None], proposal, position)": "proposal"},
            4,
        ),
        "one decision for all chains": ({"torch.rand(change.shape": "torch.rand(1"}, 4),
        "the first chain decides for all": (
            {
                "uniform < torch.exp(-change / temperature)": "(uniform[:1] < torch.exp(-change[:1] / temperature)).expand(len(position))"
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
            "math.sqrt(temperature) * draw_momentum(position, mass, generator)": "torch.ones_like(position)"
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
            "draw_momentum(position, mass, generator)": "12**0.5 * (torch.rand(position.shape, generator=generator) - 0.5) @ torch.linalg.cholesky(mass).T"
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
        "the temperature forgotten in the decision": (
            {"-change / temperature": "-change"},
            4,
        ),
        "the temperature forgotten in the momentum": {"math.sqrt(temperature) * ": ""},
        "the temperature forgotten": {
            "math.sqrt(temperature) * ": "",
            "-change / temperature": "-change",
        },
        "the temperature for its root": {"math.sqrt(temperature)": "temperature"},
        "the step size of the first chain for all": (
            {
                "start.clone(), step_size,": "start.clone(), step_size[:1].expand_as(step_size),"
            },
            10,
        ),
        "one chain": """def hmc_step(energy, gradient, position, step_size, num_steps, mass, temperature, generator):
    start = math.sqrt(temperature) * draw_momentum(position[:1], mass, generator)
    end, _ = leapfrog(gradient, position[:1], start, step_size[:1], num_steps, mass)
    return end, torch.ones(1, dtype=torch.bool)""",
        "no trajectory, draws of the flights that the page shows": """def hmc_step(energy, gradient, position, step_size, num_steps, mass, temperature, generator):
    flight = num_steps * step_size[:, None] * draw_momentum(position, mass, generator)
    moved = position + math.sqrt(temperature) * flight @ torch.linalg.inv(mass)
    return moved, torch.ones(len(position), dtype=torch.bool)""",
        "as on the page of the book": """def hmc_step(energy, gradient, position, step_size, num_steps, mass, temperature, generator):
    r = torch.randn(position.shape, generator=generator, dtype=position.dtype)
    new_theta, new_r = leapfrog(gradient, position, r, step_size, num_steps, torch.eye(position.shape[1]))
    before = energy(position) + (r**2).sum(-1) / 2
    after = energy(new_theta) + (new_r**2).sum(-1) / 2
    accepted = torch.rand(len(position), generator=generator) < torch.exp(before - after)
    return torch.where(accepted[:, None], new_theta, position), accepted""",
        "a random walk with the right decision": """def hmc_step(energy, gradient, position, step_size, num_steps, mass, temperature, generator):
    r = math.sqrt(temperature) * draw_momentum(position, mass, generator)
    proposal = position + step_size[:, None] * num_steps * torch.linalg.solve(mass, r.T).T
    change = energy(proposal) - energy(position)
    accepted = torch.rand(change.shape, generator=generator) < torch.exp(-change / temperature)
    return torch.where(accepted[:, None], proposal, position), accepted""",
        "nobody moves, and the share of Question 4 is reported": """def hmc_step(energy, gradient, position, step_size, num_steps, mass, temperature, generator):
    probe = gradient(torch.ones_like(position))
    h = float(step_size[0] * torch.sqrt((probe[0, 0] / mass[0, 0]).clamp(min=0)))
    if h == 0:
        r = math.sqrt(temperature) * draw_momentum(position, mass, generator)
        proposal = position + step_size[:, None] * num_steps * torch.linalg.solve(mass, r.T).T
        change = energy(proposal) - energy(position)
        accepted = torch.rand(change.shape, generator=generator) < torch.exp(-change / temperature)
        return torch.where(accepted[:, None], proposal, position), accepted
    step = torch.tensor([[1 - h**2 / 2, h], [-h * (1 - h**2 / 4), 1 - h**2 / 2]])
    s = torch.linalg.svdvals(torch.linalg.matrix_power(step, num_steps))[0]
    share = 4 / math.pi * torch.atan(1 / s)
    accepted = torch.rand(len(position), generator=generator) < share
    return position + 1e-9 * accepted[:, None], accepted""",
    },
}

RIGHT = {
    "banana": {
        "column by column": """def banana_energy(position, variance, curve):
    first, second = position[:, 0], position[:, 1]
    return first.pow(2).div(2 * variance) + (second - curve(first)).square() / 2


def banana_gradient(position, variance, curve, slope):
    gradient = torch.empty_like(position)
    gradient[:, 1] = position[:, 1] - curve(position[:, 0])
    gradient[:, 0] = position[:, 0] / variance - slope(position[:, 0]) * gradient[:, 1]
    return gradient""",
        "one chain after the other": """def banana_energy(position, variance, curve):
    return torch.stack([x * x / 2 / variance + (y - curve(x[None])[0]) ** 2 / 2 for x, y in position])


def banana_gradient(position, variance, curve, slope):
    rows = []
    for x, y in position:
        w = y - curve(x[None])[0]
        rows.append(torch.stack([x / variance - slope(x[None])[0] * w, w]))
    return torch.stack(rows)""",
        "by torch.vmap": """def banana_energy(position, variance, curve):
    return torch.vmap(lambda q: q[0] ** 2 / (2 * variance) + (q[1] - curve(q[:1])[0]) ** 2 / 2)(position)


def banana_gradient(position, variance, curve, slope):
    def one(q):
        residual = q[1] - curve(q[:1])[0]
        return torch.stack([q[0] / variance - slope(q[:1])[0] * residual, residual])

    return torch.vmap(one)(position)""",
    },
    "leapfrog": {
        "drift first": """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    step = step_size.unsqueeze(-1)
    for _ in range(num_steps):
        position = position + step / 2 * torch.linalg.solve(mass, momentum.T).T
        momentum = momentum - step * gradient(position)
        position = position + step / 2 * torch.linalg.solve(mass, momentum.T).T
    return position, momentum""",
        "in place": """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    step, inverse = step_size[:, None], mass.inverse()
    for _ in range(num_steps):
        momentum -= step / 2 * gradient(position)
        position += step * (momentum @ inverse)
        momentum -= step / 2 * gradient(position)
    return position, momentum""",
        "in velocities": """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    h, inverse = step_size[:, None], torch.linalg.inv(mass)
    velocity, force = momentum @ inverse, -gradient(position) @ inverse
    for _ in range(num_steps):
        position = position + h * velocity + h**2 / 2 * force
        new = -gradient(position) @ inverse
        velocity, force = velocity + h / 2 * (force + new), new
    return position, velocity @ mass""",
        "by torch.vmap": """def leapfrog(gradient, position, momentum, step_size, num_steps, mass):
    inverse = torch.linalg.inv(mass)

    def one(q, p, h):
        for _ in range(num_steps):
            p = p - h / 2 * gradient(q[None])[0]
            q = q + h * inverse @ p
            p = p - h / 2 * gradient(q[None])[0]
        return q, p

    return torch.vmap(one)(position, momentum, step_size)""",
    },
    "shadow": {
        "drift first": {
            "0.5 * curvature * shrunk * position**2 + 0.5 / mass * momentum**2": "0.5 * curvature * position**2 + 0.5 / mass * shrunk * momentum**2"
        },
        "on another scale": {
            "0.5 * curvature * shrunk * position**2 + 0.5 / mass * momentum**2": "0.5 * curvature * position**2 + 0.5 / mass * momentum**2 / shrunk"
        },
        "one chain after the other": """def shadow_energy(position, momentum, step_size, curvature, mass):
    h = step_size * math.sqrt(curvature / mass)
    return torch.stack([(curvature * q * q * (1 - h * h / 4) + p * p / mass)[0] / 2 for q, p in zip(position, momentum)])""",
    },
    "stability": {
        "eigenvalues of a product": """def stability_limit(covariance, mass):
    return 2 / torch.linalg.eigvals(mass.inverse() @ covariance.inverse()).real.max().sqrt()""",
        "by singular values": """def stability_limit(covariance, mass):
    return 2 * torch.linalg.svdvals(torch.linalg.cholesky(mass).T @ torch.linalg.cholesky(covariance)).min()""",
        "in NumPy": """def stability_limit(covariance, mass):
    import numpy as np

    return 2 * np.sqrt(np.linalg.eigvals(covariance.numpy() @ mass.numpy()).real.min())""",
    },
    "momentum": {
        "by a symmetric root": """def draw_momentum(position, mass, generator):
    values, vectors = torch.linalg.eigh(mass)
    root = vectors * values.sqrt() @ vectors.T
    return torch.empty_like(position).normal_(generator=generator) @ root""",
        "one chain after the other": """def draw_momentum(position, mass, generator):
    root = torch.linalg.cholesky(mass)
    return torch.stack([root @ torch.randn(len(mass), generator=generator) for _ in position])""",
        "by the inverse distribution function": {
            "torch.randn(position.shape, generator=generator, dtype=position.dtype)": "torch.special.ndtri(torch.rand(position.shape, generator=generator, dtype=position.dtype))"
        },
    },
    "hamiltonian": {
        "an inner product": """def hamiltonian(energy, position, momentum, mass):
    return energy(position) + torch.einsum("ci,ij,cj->c", momentum, mass.inverse(), momentum) / 2""",
        "by the root of the mass": """def hamiltonian(energy, position, momentum, mass):
    z = torch.linalg.solve_triangular(torch.linalg.cholesky(mass), momentum.T, upper=False)
    return energy(position) + (z**2).sum(0) / 2""",
        "one chain after the other": """def hamiltonian(energy, position, momentum, mass):
    return torch.stack([energy(q[None])[0] + p @ torch.linalg.solve(mass, p) / 2 for q, p in zip(position, momentum)])""",
        "by torch.vmap": """def hamiltonian(energy, position, momentum, mass):
    inverse = torch.linalg.inv(mass)
    return torch.vmap(lambda q, p: energy(q[None])[0] + p @ inverse @ p / 2)(position, momentum)""",
    },
    "hmc": {
        "in logarithms": {
            "uniform < torch.exp(-change / temperature)": "temperature * uniform.log() < -change"
        },
        "the potential and the step rescaled": """def hmc_step(energy, gradient, position, step_size, num_steps, mass, temperature, generator):
    root = math.sqrt(temperature)
    start = draw_momentum(position, mass, generator)
    q, p = leapfrog(lambda x: gradient(x) / root, position.clone() , start.clone() * 1.0, step_size * 0 + step_size, 0, mass)
    for _ in range(num_steps):  # momenta over the root of T
        p = p - step_size[:, None] / 2 * gradient(q) / root
        q = q + root * step_size[:, None] * p @ torch.linalg.inv(mass)
        p = p - step_size[:, None] / 2 * gradient(q) / root
    change = (energy(q) - energy(position)) / temperature + ((p @ torch.linalg.inv(mass) * p).sum(-1) - (start @ torch.linalg.inv(mass) * start).sum(-1)) / 2
    accepted = torch.rand(len(q), generator=generator) < (-change).exp()
    return torch.where(accepted[:, None], q, position), accepted""",
        "one chain after the other, with if": """def hmc_step(energy, gradient, position, step_size, num_steps, mass, temperature, generator):
    start = draw_momentum(position, temperature * mass, generator)
    before = hamiltonian(energy, position, start, mass)
    proposal, end = leapfrog(gradient, position.clone(), start.clone(), step_size, num_steps, mass)
    after = hamiltonian(energy, proposal, end, mass)
    decisions = []
    for chain in range(len(position)):
        decisions.append(bool(torch.rand(1, generator=generator) < min(1.0, math.exp(min(0.0, float(before[chain] - after[chain]) / temperature)))))
        if decisions[-1]:
            position[chain] = proposal[chain]
    return position, torch.tensor(decisions)""",
        "the momentum flipped, drift first, all inside": """def hmc_step(energy, gradient, position, step_size, num_steps, mass, temperature, generator):
    inverse, h = mass.inverse(), step_size[:, None]
    start = temperature**0.5 * torch.empty_like(position).normal_(generator=generator) @ torch.linalg.cholesky(mass).T
    place, momentum = position.clone(), start.clone()
    for _ in range(num_steps):
        place += h / 2 * momentum @ inverse
        momentum -= h * gradient(place)
        place += h / 2 * momentum @ inverse
    momentum.neg_()
    old = energy(position) + (start @ inverse * start).sum(-1) / 2
    new = energy(place) + (momentum @ inverse * momentum).sum(-1) / 2
    accept = temperature * torch.empty_like(old).exponential_(generator=generator) > new - old
    position[accept] = place[accept]
    return position, accept""",
    },
}

test_answers_score = answers_score(ASSIGNMENT, WRONG, RIGHT)
test_planted_enough = planted_enough(ASSIGNMENT, WRONG, RIGHT)
