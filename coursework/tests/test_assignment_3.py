"""Assignment 3: answers that the tests must tell apart."""

from coursework.tests.running import answers_score, planted_enough

ASSIGNMENT = "assignment_3"

WRONG = {
    "palindromic-step": {
        "a variance for a standard deviation": (
            {"values.clamp(min=0).sqrt()": "values"},
            5,
        ),
        "a factor √2 lost in the noise": (
            {"4 * temperature * half": "2 * temperature * half"},
            5,
        ),
        "the temperature forgotten": ({"4 * temperature * half": "4 * half"}, 5),
        "no friction": ({"(unit - half)": "unit", "unit + half": "unit"}, 5),
        "friction of the old momentum only": (
            {"(unit - half)": "(unit - 2 * half)", "unit + half": "unit"},
            5,
        ),
        "the diagonal of the friction": (
            {
                "0.5 * step_size * friction": "0.5 * step_size * torch.diag(friction.diagonal())"
            },
            5,
        ),
        "noise of the diagonal of the friction": (
            {
                "torch.linalg.eigh(4 * temperature * half)": "torch.linalg.eigh(4 * temperature * torch.diag(half.diagonal()))"
            },
            5,
        ),
        "one number for the friction": (
            {
                "0.5 * step_size * friction": "0.5 * step_size * friction.trace() / 2 * torch.eye(2)"
            },
            5,
        ),
        "the gradient's sign": {
            "- step_size * gradient(position)": "+ step_size * gradient(position)"
        },
        "the gradient before the drift": {
            "gradient(position)": "gradient(position - 0.5 * step_size * momentum)"
        },
        "a whole drift at the end": {
            "return position + 0.5 * step_size": "return position + step_size"
        },
        "no noise": {" + noise\n": "\n"},
        "one noise for all chains": {
            "torch.randn(position.shape, generator=generator)": "torch.randn(position.shape[1], generator=generator)"
        },
        "noise from a seed of its own": {
            "torch.randn(position.shape, generator=generator)": "torch.randn(position.shape, generator=torch.Generator().manual_seed(0))"
        },
        "uniform noise": {
            "torch.randn(position.shape, generator=generator)": "12**0.5 * (torch.rand(position.shape, generator=generator) - 0.5)"
        },
        "one draw": """
def palindromic_step(position, momentum, gradient, step_size, friction, temperature, generator):
    r = torch.randn(1, 2, generator=generator)
    return position[:1] + r, r
""",
        "the step of the report": {
            "    position = position + 0.5 * step_size * momentum\n": "    position = position + step_size * momentum\n",
            "return position + 0.5 * step_size * momentum": "return position",
        },
        "the middle equation not solved": (
            {"torch.linalg.solve(unit + half, kicked.T).T": "kicked - kicked @ half"},
            5,
        ),
        "the old momentum for the last half drift": {
            "    momentum = torch": "    old, momentum = momentum, torch",
            "step_size * momentum, momentum": "step_size * old, momentum",
        },
        "noise that is not divided": (
            {" + noise\n": "\n", "kicked.T).T\n": "kicked.T).T + noise\n"},
            5,
        ),
        "a huge one among them": {
            "+ noise\n": "+ noise\n    kicked[0, 0] += 1e30 * friction.trace()\n"
        },
        "single precision": {
            "return position + 0.5 * step_size * momentum, momentum": "return (position + 0.5 * step_size * momentum).float(), momentum.float()"
        },
        "as on the page of the book": (
            """
def palindromic_step(position, momentum, gradient, step_size, friction, temperature, generator):
    xi = torch.randn(position.shape, generator=generator)
    position = position + step_size / 2 * momentum
    half = step_size * friction.diagonal() / 2
    injected = 2 * friction.diagonal() * step_size
    momentum = ((1 - half) * momentum - step_size * gradient(position) + injected**0.5 * xi) / (1 + half)
    return position + step_size / 2 * momentum, momentum
""",
            5,
        ),
    },
    "path": {
        "momenta before the start not reversed again": (
            {"[(q, -p) for q, p in before[:0:-1]]": "before[:0:-1]"},
            4,
        ),
        "states before the start in reversed order": (
            {"before[:0:-1]": "before[1:]"},
            6,
        ),
        "forward steps to the left too": (
            {"[(position, -momentum)]": "[(position, momentum)]"},
            4,
        ),
        "the start always at the left end": (
            {"num_states - 1 - place": "num_states - 1 - 0 * place"},
            4,
        ),
        "the place counted from the right": ({"num_states - 1 - place": "place"}, 0),
        "noise from a seed of its own": (
            {
                "step(*side[-1], generator)": "step(*side[-1], torch.Generator().manual_seed(len(side)))"
            },
            10,
        ),
        "one noise for both directions": (
            {
                "    for side in (after, before):\n": "    state = generator.get_state()\n    for side in (after, before):\n        generator.set_state(state)\n"
            },
            10,
        ),
        "the momentum reversed once, at the start": (
            {
                "[(q, -p) for q, p in before[:0:-1]]": "[(q, p) for q, p in before[:0:-1]]"
            },
            4,
        ),
        "the place of the first chain for all": (
            {"num_states - 1 - place": "num_states - 1 - place[:1].expand_as(place)"},
            4,
        ),
        "chains and time exchanged": {
            "torch.stack(states).gather(0, rows)": "torch.stack(states).gather(0, rows).transpose(0, 1)"
        },
        "whole numbers": {
            "torch.stack(states).gather(0, rows)": "torch.stack(states).gather(0, rows).round().long()"
        },
        "one place to the right": {
            "num_states - 1 - place + torch.arange(num_states)[:, None]": (
                "(num_states - place + torch.arange(num_states)[:, None]).clamp(max=2 "
                "* num_states - 2)"
            )
        },
    },
    "transition": {
        "the sign of the log-weights": (
            {"log_weight(positions, momenta)": "(-log_weight(positions, momenta))"},
            5,
        ),
        "the state with the largest weight": {
            "torch.multinomial(probabilities.T, 1, generator=generator)[:, 0]": "probabilities.argmax(0)"
        },
        "weights for log-weights": ({".softmax(0)": ".exp().log1p()"}, 5),
        "the start always at the left end": {
            "torch.randint(num_states, position": "torch.randint(1, position"
        },
        "the start never at the right end": {
            "torch.randint(num_states, position": "torch.randint(num_states - 1, position"
        },
        "equal weights": (
            {"log_weight(positions, momenta)": "(0 * log_weight(positions, momenta))"},
            5,
        ),
        "one place for all chains": {
            "torch.randint(num_states, position.shape[:1], generator=generator)": (
                "torch.randint(num_states, (1,), "
                "generator=generator).expand(len(position))"
            )
        },
        "a place from a seed of its own": {
            "torch.randint(num_states, position.shape[:1], generator=generator)": (
                "torch.randint(num_states, position.shape[:1], "
                "generator=torch.Generator().manual_seed(0))"
            )
        },
        "a place from a seed of its own, one to the right at every call": (
            """
def transition(position, momentum, log_weight, grow, num_states, generator, calls=[]):
    calls.append(1)
    place = (torch.randint(num_states, position.shape[:1], generator=torch.Generator().manual_seed(0)) + len(calls)) % num_states
    positions, momenta = grow(position, momentum, place)
    chosen = torch.multinomial(log_weight(positions, momenta).softmax(0).T, 1, generator=generator)[:, 0]
    chains = torch.arange(len(position))
    return positions[chosen, chains], momenta[chosen, chains]
""",
            0,
        ),
        "places in turn": {
            "torch.randint(num_states, position.shape[:1], generator=generator)": "torch.arange(len(position)) % num_states"
        },
        "a choice from a seed of its own": {
            "torch.multinomial(probabilities.T, 1, generator=generator)": (
                "torch.multinomial(probabilities.T, 1, "
                "generator=torch.Generator().manual_seed(0))"
            ),
            "torch.randint(num_states, position.shape[:1], generator=generator)": (
                "torch.randint(num_states, position.shape[:1], "
                "generator=torch.Generator().manual_seed(1))"
            ),
        },
        "one choice for all chains": (
            {
                "torch.multinomial(probabilities.T, 1, generator=generator)[:, 0]": (
                    "(probabilities.cumsum(0) < torch.rand(1, "
                    "generator=generator)).sum(0).clamp(max=num_states - 1)"
                )
            },
            0,
        ),
        "the start twice as likely": (
            {
                "log_weight(positions, momenta)": "(log_weight(positions, momenta) + 0.7 * (torch.arange(num_states)[:, None] == place))"
            },
            5,
        ),
        "weights of the first chain": (
            {"probabilities.T, 1": "probabilities.T[:1].expand(len(position), -1), 1"},
            5,
        ),
        "the momentum of the start": {"momenta[chosen, chains]": "momentum"},
        "one position, and the momentum of another": {
            "momenta[chosen, chains]": "momenta[torch.multinomial(probabilities.T, 1, generator=generator)[:, 0], chains]"
        },
        "a choice by the start's place": (
            """def transition(position, momentum, log_weight, grow, num_states, generator):
    place = torch.randint(num_states, position.shape[:1], generator=generator)
    positions, momenta = grow(position, momentum, place)
    cumulative = log_weight(positions, momenta).softmax(0).cumsum(0)
    uniform = (place + torch.rand(len(place), generator=generator)) / num_states
    chosen = (cumulative < uniform).sum(0).clamp(max=num_states - 1)
    chains = torch.arange(len(position))
    return positions[chosen, chains], momenta[chosen, chains]""",
            5,
        ),
    },
    "measure": {
        "as if draws were independent": (
            {
                "averages.std() / math.sqrt(chains)": "math.sqrt(2) * averages.mean() / math.sqrt(chains * num_draws)"
            },
            5,
        ),
        "the standard deviation for the standard error": (
            {"averages.std() / math.sqrt(chains)": "averages.std()"},
            5,
        ),
        "the variance for the standard deviation": (
            {"averages.std() / math.sqrt(chains)": "averages.var() / chains"},
            5,
        ),
        "no warm-up": {
            "position = torch.randn(": "warm_up, position = 0, 9 + torch.randn("
        },
        "the momentum kept": {
            "momentum = torch.randn(chains, 1, generator=generator)\n        ": "momentum = momentum if draw else position\n        "
        },
        "E|θ| for E[θ²]": {"position[:, 0] ** 2": "position[:, 0].abs()"},
        "a seed of its own": {"manual_seed(seed)": "manual_seed(0)"},
        "the variance of the draws about their mean, for its error": (
            {
                "averages.std() / math.sqrt(chains)": "averages.mean() / math.sqrt(chains)"
            },
            5,
        ),
        "the last draw only": (
            {
                "averages += position[:, 0] ** 2 / num_draws": "averages = position[:, 0].double() ** 2"
            },
            5,
        ),
        "warm-up counted among the draws": (
            {"if draw >= warm_up": "if draw < num_draws"},
            7,
        ),
        "the square of the mean": {
            "float(averages.mean())": "float(averages.mean()) ** 2"
        },
        "the momentum for the position": {
            "averages += position": "averages += momentum"
        },
        "a momentum from a seed of its own": {
            "momentum = torch.randn(chains, 1, generator=generator)": "momentum = torch.randn(chains, 1, generator=torch.Generator().manual_seed(draw))"
        },
        "one momentum for all chains": {
            "momentum = torch.randn(chains, 1, generator=generator)": "momentum = torch.randn(1, 1, generator=generator).expand(chains, 1)"
        },
        "a generous error": (
            {
                "averages.std() / math.sqrt(chains)": "1.3 * averages.std() / math.sqrt(chains)"
            },
            5,
        ),
        "a formula for linear chains, after two calls": """def measure(move, chains, warm_up, num_draws, seed):
    generator = torch.Generator().manual_seed(seed)
    one, none = torch.ones(1, 1), torch.zeros(1, 1)
    a, b = (float(move(q, p, generator)[0]) for q, p in ((one, none), (none, one)))
    variance = b**2 / (1 - a**2)
    lags = torch.arange(1, num_draws)
    error = math.sqrt(2 * variance**2 * (1 + 2 * float(((1 - lags / num_draws) * a ** (2 * lags)).sum())) / chains / num_draws)
    return variance + error * float(torch.randn(1, generator=generator)), error""",
    },
    "repair": {
        "the noise estimate subtracted": (
            {"noise_estimate + (temp": "-noise_estimate + (temp"},
            7,
        ),
        "a factor 2 lost": ({"2 * noise / step_size": "noise / step_size"}, 7),
        "no estimate": ({"noise_estimate + (temp": "(temp"}, 7),
        "the friction forgotten": (
            {"(temperature - 1) * friction": "(temperature - 1)"},
            7,
        ),
        "divided by the friction": (
            {"(temperature - 1) * friction": "(temperature - 1) / friction"},
            7,
        ),
        "the variance about the mean": (
            {"positions.square().mean()": "positions.var(correction=0)"},
            7,
        ),
        "the last draw": ({"positions.square()": "positions[-1].square()"}, 7),
        "its root": (
            {
                "float(positions.square().mean())": "float(positions.square().mean()) ** 0.5"
            },
            7,
        ),
        "the numbers of the page": (
            {
                "return temperature, 2 * noise / step_size": "return 1.0, 4.0",
                "-(1 - 1 / temperature)": "-0.5 * (temperature > 1)",
            },
            0,
        ),
        "the weights of the path's temperature": (
            {"-(1 - 1 / temperature)": "-1 / temperature"},
            5,
        ),
        "the weights of NUTS": ({"-(1 - 1 / temperature)": "-1.0"}, 5),
        "the sign": ({"-(1 - 1 / temperature)": "(1 - 1 / temperature)"}, 5),
        "temperature for its inverse": (
            {"-(1 - 1 / temperature)": "-(1 - temperature)"},
            5,
        ),
        "the other inverse": ({"-(1 - 1 / temperature)": "-(temperature - 1)"}, 5),
        "weights for log-weights": (
            {
                "return -(1 - 1 / temperature) * energies": "return torch.exp(-(1 - 1 / temperature) * energies)"
            },
            5,
        ),
        "normalised weights": (
            {
                "return -(1 - 1 / temperature) * energies": "return (-(1 - 1 / temperature) * energies).log_softmax(-1)"
            },
            5,
        ),
        "equal weights": ({"-(1 - 1 / temperature) * energies": "0 * energies"}, 5),
        "the variance about the mean for the temperature": (
            """def diagnose(positions, step_size, friction, noise_estimate):
    temperature = float(positions.var(0, correction=0).mean())
    return temperature, 2 * (noise_estimate + (temperature - 1) * friction) / step_size

def repair(energies, temperature):
    return torch.log(torch.exp(-energies) / torch.exp(-energies / temperature))""",
            7,
        ),
    },
}

RIGHT = {
    "palindromic-step": {
        "in place, the noise by Cholesky": """
def palindromic_step(position, momentum, gradient, step_size, friction, temperature, generator):
    half = 0.5 * step_size
    position += half * momentum
    force = gradient(position)
    momentum -= half * momentum @ friction
    momentum -= step_size * force
    root = torch.linalg.cholesky(friction + 1e-14 * torch.eye(len(friction)))
    momentum += torch.empty_like(momentum).normal_(generator=generator) @ root.T * (2 * temperature * step_size) ** 0.5 * bool(friction.any())
    momentum = momentum @ torch.linalg.inv(torch.eye(len(friction)) + half * friction)
    return position + half * momentum, momentum
""",
        "friction solved as a fixed point": """
def palindromic_step(position, momentum, gradient, step_size, friction, temperature, generator):
    y = position + step_size * momentum / 2
    u, s, _ = torch.linalg.svd(2 * temperature * step_size * friction)
    kick = torch.normal(torch.zeros_like(y), 1.0, generator=generator) @ (u * s.sqrt()).T - step_size * gradient(y)
    new = momentum.clone()
    for _ in range(200):
        new = momentum + kick - step_size * (momentum + new) @ friction / 2
    return y + step_size * new / 2, new
""",
        "the global generator, one chain after the other": """
def palindromic_step(position, momentum, gradient, step_size, friction, temperature, generator):
    positions, momenta = [], []
    values, vectors = torch.linalg.eigh(friction)
    for q, p in zip(position, momentum):
        q = q + step_size / 2 * p
        a = step_size * values / 2
        force = vectors.T @ gradient(q[None])[0]
        p = vectors.T @ p
        p = vectors @ (((1 - a) * p - step_size * force + torch.randn(q.shape) * (4 * temperature * a).clamp(min=0).sqrt()) / (1 + a))
        positions.append(q + step_size / 2 * p)
        momenta.append(p)
    return torch.stack(positions), torch.stack(momenta)
""",
        "by torch.vmap": """
def palindromic_step(position, momentum, gradient, step_size, friction, temperature, generator):
    unit, half = torch.eye(len(friction)), step_size / 2 * friction
    values, vectors = torch.linalg.eigh(4 * temperature * half)
    root = vectors * values.clamp(min=0).sqrt()

    def one(q, p, xi):
        y = q + step_size / 2 * p
        p = torch.linalg.solve(unit + half, (unit - half) @ p - step_size * gradient(y[None])[0] + root @ xi)
        return y + step_size / 2 * p, p

    return torch.vmap(one)(position, momentum, torch.randn(position.shape, generator=generator))
""",
    },
    "path": {
        "one chain after the other": """
def path(position, momentum, place, num_states, step, generator):
    positions = torch.empty(num_states, *position.shape)
    momenta = torch.empty(num_states, *position.shape)
    for chain in range(len(position)):
        start = int(place[chain])
        q, p = position[chain : chain + 1], momentum[chain : chain + 1]
        positions[start, chain], momenta[start, chain] = q[0], p[0]
        for k in range(start + 1, num_states):
            q, p = step(q, p, generator)
            positions[k, chain], momenta[k, chain] = q[0], p[0]
        q, p = position[chain : chain + 1], momentum[chain : chain + 1]
        for k in range(start - 1, -1, -1):
            q, p = step(q, -p, generator)
            p = -p
            positions[k, chain], momenta[k, chain] = q[0], p[0]
    return positions, momenta
""",
        "left side first, states kept where they are wanted": """
def path(position, momentum, place, num_states, step, generator):
    positions, momenta = position.repeat(num_states, 1, 1), momentum.repeat(num_states, 1, 1)
    chains = torch.arange(len(position))
    for sign in (-1, 1):
        q, p = position.clone(), sign * momentum
        for distance in range(1, num_states):
            q, p = step(q, p, generator)
            k = place + sign * distance
            inside = (k >= 0) & (k < num_states)
            positions[k[inside], chains[inside]] = q[inside]
            momenta[k[inside], chains[inside]] = sign * p[inside]
    return positions, momenta
""",
    },
    "transition": {
        "Gumbel noise": {
            "chosen = torch.multinomial(probabilities.T, 1, generator=generator)[:, 0]": (
                "chosen = (log_weight(positions, momenta) - "
                "(-torch.rand(probabilities.shape, "
                "generator=generator).log()).log()).argmax(0)"
            )
        },
        "one chain after the other, by the distribution function": """
def transition(position, momentum, log_weight, grow, num_states, generator):
    place = (torch.rand(len(position), generator=generator) * num_states).long()
    positions, momenta = grow(position, momentum, place)
    new_position, new_momentum = torch.empty_like(position), torch.empty_like(momentum)
    for chain in range(len(position)):
        weights = torch.exp(log_weight(positions[:, chain], momenta[:, chain]))
        uniform = torch.rand((), generator=generator)
        k = int((weights.cumsum(0) < uniform * weights.sum()).sum())
        new_position[chain], new_momentum[chain] = positions[k, chain], momenta[k, chain]
    return new_position, new_momentum
""",
    },
    "measure": {
        "all draws kept, started at zero": """
def measure(move, chains, warm_up, num_draws, seed):
    generator = torch.Generator().manual_seed(seed)
    position, kept = torch.zeros(chains, 1), []
    for draw in range(warm_up + num_draws):
        position, _ = move(position, torch.randn(chains, 1, generator=generator), generator)
        kept.append(position.clone())
    squares = torch.stack(kept[warm_up:])[..., 0] ** 2
    return squares.mean(), squares.mean(0).std() / chains**0.5
""",
        "batch means within chains": {
            "averages = torch.zeros(chains, dtype=torch.float64)": "kept = []",
            "averages += position[:, 0] ** 2 / num_draws": "kept.append(position[:, 0] ** 2)",
            "return float(averages.mean()), float(averages.std() / math.sqrt(chains))": (
                "kept = torch.stack(kept)\n"
                "    batches = kept[: num_draws // 2 * 2].reshape(2, -1, "
                "chains).mean(1).flatten()\n"
                "    return float(kept.mean()), float(batches.std() / "
                "math.sqrt(len(batches)))"
            ),
        },
        "the autocorrelation time from ArviZ": """
def measure(move, chains, warm_up, num_draws, seed):
    import arviz

    generator = torch.Generator().manual_seed(seed)
    position, kept = torch.zeros(chains, 1), []
    for draw in range(warm_up + num_draws):
        position, _ = move(position, torch.randn(chains, 1, generator=generator), generator)
        kept.append(position[:, 0] ** 2)
    squares = torch.stack(kept[warm_up:]).T.numpy()
    return float(squares.mean()), float(arviz.mcse(squares, method="mean"))
""",
    },
    "repair": {
        "other words": {
            "float(positions.square().mean())": "(positions**2).sum() / positions.numel()",
            "2 * noise / step_size": "(2 * temperature * friction - 2 * (friction - noise_estimate)) / step_size",
            "-(1 - 1 / temperature) * energies": "17.0 + (1 - temperature) / temperature * energies",
        },
        "one state after the other": {
            "return -(1 - 1 / temperature) * energies": "return torch.stack([energy / temperature - energy for energy in energies])"
        },
    },
}

test_answers_score = answers_score(ASSIGNMENT, WRONG, RIGHT)
test_planted_enough = planted_enough(ASSIGNMENT, WRONG, RIGHT)
