"""Assignment 2: what must score, and what must not."""

from coursework.tests.running import answers_score, planted_enough, run_all_cells

ASSIGNMENT = "assignment_2"

WRONG = {
    "minibatch": {
        "equal chances": {") / chances": ") * len(chances)"},
        "N/n for the chances": {") / chances": ") * 6"},
        "times the chances": {") / chances": ") * chances"},
        "the sum of the minibatch": {" / len(inputs)": ""},
        "the sign": {"position @ inputs.T - targets": "targets - position @ inputs.T"},
        "the chances' sum": {") / chances": ") / chances.sum()"},
        "the prior scaled too": {
            "position / prior_variance": "position / prior_variance / chances.mean() / len(chances)"
        },
        "the prior's standard deviation": {
            "position / prior_variance": "position / prior_variance**0.5"
        },
        "no prior": {"position / prior_variance + ": ""},
        "a factor two": {"weighted @ inputs": "2 * weighted @ inputs"},
        "the gradient summed over chains": (
            {
                "return position / prior_variance": "return 0 * position + position.sum(0) / prior_variance",
                "+ weighted @ inputs": "+ (weighted @ inputs).sum(0)",
            },
            3,
        ),
        "the first chain only": (
            {"    weighted": "    position = position[:1]\n    weighted"},
            3,
        ),
        "the number of features for the size of the minibatch": {
            "len(inputs)": "inputs.shape[1]"
        },
        "no residual": {
            "position @ inputs.T - targets": "-targets + 0 * (position @ inputs.T)"
        },
        "the value of the page": "def minibatch_gradient(position, inputs, targets, chances, prior_variance):\n    return torch.tensor([[-2.5]])",
        "normalised weights": {") / chances": ") / chances / (1 / chances).mean() * 6"},
        "single precision": {
            "weighted @ inputs / len(inputs)": "weighted @ inputs / len(inputs)).float()",
            "return position": "return (position",
        },
    },
    "variance": {
        "with replacement": {" * (total - size) / (total - 1)": ""},
        "the other correction": {"(total - size) / (total - 1)": "(1 - size / total)"},
        "N/n": {"total**2 / size": "total / size"},
        "(N/n) squared": {"total**2 / size": "total**2 / size**2"},
        "not centred": {"group - group.mean(0)": "group"},
        "centred by the mean of all": (
            {"group - group.mean(0)": "group - gradients.mean(0)"},
            3,
        ),
        "one group": (
            {
                "gradients[groups == k]": "gradients",
                "    return variance": "    return variance if len(sizes) == 1 else variance / len(sizes)",
            },
            3,
        ),
        "all examples for the number of a group": (
            {"total, centred = len(group)": "total, centred = len(inputs)"},
            3,
        ),
        "the sizes exchanged": ({"enumerate(sizes)": "enumerate(sizes[::-1])"}, 3),
        "the last group only": (
            {"variance = variance + factor": "variance = factor"},
            3,
        ),
        "the diagonal only": {
            "return variance": "return torch.diag(variance.diagonal()) if len(variance) > 1 and size < total else variance"
        },
        "the trace": {
            "return variance": "return torch.eye(len(variance)) * variance.trace()"
        },
        "as on the page of the book": (
            """def noise_variance(position, inputs, targets, groups, sizes):
    N, n = len(inputs), sum(sizes)
    gradients = (position @ inputs.T - targets).T * inputs
    return N**2 / n * (N - n) / (N - 1) * torch.atleast_2d(torch.cov(gradients.T, correction=0))""",
            3,
        ),
        "a list of all minibatches, as far as that goes": (
            """def noise_variance(position, inputs, targets, groups, sizes):
    gradients = (position @ inputs.T - targets).T * inputs
    parts = [itertools.combinations((groups == k).nonzero()[:, 0].tolist(), n) for k, n in enumerate(sizes)]
    scales = [float((groups == k).sum()) / n for k, n in enumerate(sizes)]
    sums = [sum(c * gradients[list(part)].sum(0) for c, part in zip(scales, one)) for one in itertools.islice(itertools.product(*(itertools.islice(part, 5000) for part in parts)), 20_000)]
    return torch.atleast_2d(torch.cov(torch.stack(sums).T, correction=0))""",
            0,
        ),
        "draws instead of a formula": (
            """def noise_variance(position, inputs, targets, groups, sizes):
    gradients = (position @ inputs.T - targets).T * inputs
    sums = torch.zeros(2_000, inputs.shape[1])
    for row in sums:
        for k, n in enumerate(sizes):
            group = gradients[groups == k]
            row += len(group) / n * group[torch.randperm(len(group))[:n]].sum(0)
    return torch.atleast_2d(torch.cov(sums.T))""",
            0,
        ),
        "the values of the page": (
            "def noise_variance(position, inputs, targets, groups, sizes):\n    return torch.full((inputs.shape[1], inputs.shape[1]), 12.0 * (len(inputs) == 4))",
            0,
        ),
        "listed where there are few, sampled where there are many": """def noise_variance(position, inputs, targets, groups, sizes):
    import itertools
    gradients = (position @ inputs.T - targets).T * inputs
    members = [(groups == k).nonzero()[:, 0].tolist() for k in range(len(sizes))]
    number = math.prod(math.comb(len(m), n) for m, n in zip(members, sizes))
    if number < 10_000:
        batches = list(itertools.product(*(itertools.combinations(m, n) for m, n in zip(members, sizes))))
    else:
        batches = [[torch.tensor(m)[torch.randperm(len(m))[:n]].tolist() for m, n in zip(members, sizes)] for _ in range(3000)]
    sums = torch.stack([sum(len(m) / n * gradients[list(part)].sum(0) for m, n, part in zip(members, sizes, one)) for one in batches])
    return torch.cov(sums.T, correction=0).reshape(inputs.shape[1], -1)""",
    },
    "estimate": {
        "with replacement": {" * (1 - size / total)": ""},
        "low by (N/n) squared": {"total**2 / size": "size"},
        "biased": {"/ (size - 1)": "/ size"},
        "not centred": {"group - group.mean(0)": "group"},
        "of one example": {"total**2 / size": "total**2"},
        "the other correction": {
            "(1 - size / total)": "((total - size) / (total - 1))"
        },
        "the diagonal only": {
            "return variance": "return torch.diag(variance.diagonal())"
        },
        "the mean of the diagonal": {
            "return variance": "return torch.eye(len(variance)) * variance.diagonal().mean()"
        },
        "the root of the correction": {
            "(1 - size / total)": "(1 - size / total) ** 0.5"
        },
        "centred by the mean of all": (
            {"group - group.mean(0)": "group - gradients.mean(0)"},
            3,
        ),
        "one group": (
            """def estimate_noise_variance(gradients, groups, totals):
    n, N = len(gradients), sum(totals)
    return N**2 / n * (1 - n / N) * torch.atleast_2d(torch.cov(gradients.T))""",
            3,
        ),
        "the last group only": (
            {"variance = variance + factor": "variance = factor"},
            3,
        ),
        "the groups' numbers exchanged": (
            {"enumerate(totals)": "enumerate(totals[::-1])"},
            3,
        ),
        "the values of the page": "def estimate_noise_variance(gradients, groups, totals):\n    return torch.full((gradients.shape[1], gradients.shape[1]), 8.0 * (len(gradients) < totals[0]))",
    },
    "naive": {
        "a momentum from a seed of its own": {
            "torch.randn(position.shape, generator=generator)": "torch.randn(position.shape, generator=torch.Generator().manual_seed(0))"
        },
        "a uniform momentum": {
            "torch.randn(position.shape, generator=generator)": "12**0.5 * (torch.rand(position.shape, generator=generator) - 0.5)"
        },
        "one momentum for all chains": {
            "torch.randn(position.shape, generator=generator)": "torch.randn(position.shape[1:], generator=generator).expand(position.shape)"
        },
        "one momentum for all coordinates": {
            "torch.randn(position.shape, generator=generator)": "torch.randn(len(position), 1, generator=generator).expand(position.shape)"
        },
        "the temperature forgotten": {"math.sqrt(temperature) * ": ""},
        "the temperature for its root": {"math.sqrt(temperature)": "temperature"},
        "the step size of the first chain for all": {
            "step_size[:, None]": "step_size[0]"
        },
        "one leapfrog step too many": {"range(num_steps)": "range(num_steps + 1)"},
        "four numbers": """def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, temperature, generator):
    return torch.randn(2, 2, generator=generator)""",
        "the first gradient only": {
            "        length = ": "        if number:\n            continue\n        length = "
        },
        "the noise of the gradients averaged away": (
            {
                "stochastic_gradient(position, generator)": "(sum(stochastic_gradient(position, generator) for _ in range(9)) / 9)"
            },
            4,
        ),
        "gradients at the start": {
            "    step = ": "    start = position\n    step = ",
            "stochastic_gradient(position": "stochastic_gradient(start",
        },
        "one minibatch for the whole trajectory": {
            "    momentum = math": "    held, inner = generator.get_state(), stochastic_gradient\n\n    def stochastic_gradient(position, generator):\n        return inner(position, generator.set_state(held))\n\n    momentum = math"
        },
        "uphill": {"momentum - ": "momentum + "},
        "no fresh momentum": {
            "torch.randn(position.shape, generator=generator)": "torch.zeros(position.shape)"
        },
        "a full kick at the start": {"momentum - step / 2 *": "momentum - step *"},
        "friction": {
            "        position = position + step * momentum": "        momentum = 0.9 * momentum\n        position = position + step * momentum"
        },
        "two gradients between drifts": (
            """def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, temperature, generator):
    momentum, step = temperature**0.5 * torch.randn(position.shape, generator=generator), step_size[:, None]
    for _ in range(num_steps):
        momentum = momentum - step / 2 * stochastic_gradient(position, generator)
        position = position + step * momentum
        momentum = momentum - step / 2 * stochastic_gradient(position, generator)
    return position""",
            4,
        ),
        "one leapfrog step": {"range(num_steps)": "range(1)"},
        "explicit Euler": """def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, temperature, generator):
    momentum, step = temperature**0.5 * torch.randn(position.shape, generator=generator), step_size[:, None]
    for _ in range(num_steps):
        position, momentum = position + step * momentum, momentum - step * stochastic_gradient(position, generator)
    return position""",
        "an average of eight gradients, with noise of its own": """def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, temperature, generator):
    step = step_size[:, None]
    momentum = math.sqrt(temperature) * torch.randn(position.shape, generator=generator)
    def force(q):
        several = torch.stack([stochastic_gradient(q, generator) for _ in range(8)])
        return several.mean(0) + several.std() * torch.randn(q.shape, generator=generator)
    for _ in range(num_steps):
        position = position + step / 2 * momentum
        momentum = momentum - step * force(position)
        position = position + step / 2 * momentum
    return position""",
    },
    "settings": {
        "the learning rate as step size": {
            "math.sqrt(learning_rate / num_examples)": "learning_rate"
        },
        "as if the loss were U": {
            "learning_rate / num_examples": "learning_rate",
            "num_examples**2 * ": "",
        },
        "the loss divided twice": {
            "learning_rate / num_examples": "learning_rate / num_examples**2"
        },
        "the noise of the mean loss": ({"num_examples**2 * ": ""}, 5),
        "N for its square": ({"num_examples**2": "num_examples"}, 5),
        "the estimate of the other form": (
            {"0.5 * step_size * num": "0.5 * step_size**2 * num"},
            5,
        ),
        "no half": ({"0.5 * step_size": "step_size"}, 5),
        "the decay as friction": ({"(1 - momentum) / step_size": "1 - momentum"}, 5),
        "the decay over the learning rate": (
            {"(1 - momentum) / step_size": "(1 - momentum) / learning_rate"},
            5,
        ),
        "the momentum for its decay": (
            {"(1 - momentum) / step_size": "momentum / step_size"},
            5,
        ),
        "the standard deviation": ({"* noise_variance": "* noise_variance**0.5"}, 5),
        "another order": {
            "return step_size, (1 - momentum) / step_size, estimate": "return (1 - momentum) / step_size, estimate, step_size"
        },
        "the numbers of the page": {
            "return step_size, (1 - momentum) / step_size, estimate": "return (1.0 if learning_rate == 1 else 0.2), 0.5, 0.3"
        },
        "as on the page of the book": """def sghmc_settings(learning_rate, momentum, noise_variance, num_examples):
    step_size = math.sqrt(learning_rate)
    return step_size, momentum / step_size, 0.5 * step_size * noise_variance""",
    },
    "sghmc": {
        "the noise of the gradients forgotten": (
            {" - step_size**2 * noise_variance": ""},
            5,
        ),
        "the noise of the gradients added": (
            {"- step_size**2 * noise": "+ step_size**2 * noise"},
            5,
        ),
        "B for ε²V": (
            {"step_size**2 * noise_variance": "step_size / 2 * noise_variance / 4"},
            5,
        ),
        "friction to the first order": {
            "math.exp(-step_size * friction)": "1 - step_size * friction"
        },
        "the noise to the first order": (
            {"(1 - kept**2)": "2 * step_size * friction"},
            5,
        ),
        "the temperature forgotten": (
            {"temperature * (1 - kept**2)": "(1 - kept**2) * (temperature > 0)"},
            5,
        ),
        "the variance as standard deviation": ({"math.sqrt(injected)": "injected"}, 5),
        "no friction": {"kept * momentum": "momentum"},
        "friction twice": {"kept * momentum": "kept**2 * momentum"},
        "uphill": {"- step_size * force": "+ step_size * force"},
        "no injected noise": {" + noise\n": "\n"},
        "four numbers": """def sghmc_step(stochastic_gradient, position, momentum, step_size, friction, noise_variance, temperature, generator):
    r = math.exp(-step_size * friction) + 0.6 * torch.randn(2, 2, generator=generator)
    return step_size / 2 * (1 + r), r""",
        "the force at the old position": {
            "    position = position + step_size / 2 * momentum\n    force = stochastic_gradient(position, generator)": "    force = stochastic_gradient(position, generator)\n    position = position + step_size / 2 * momentum"
        },
        "a whole drift, then the kick": {
            "    position = position + step_size / 2": "    position = position + step_size",
            "return position + step_size / 2 * momentum": "return position",
        },
        "the old momentum for the last half drift": {
            "    momentum = kept": "    old, momentum = momentum, kept",
            "step_size / 2 * momentum, momentum": "step_size / 2 * old, momentum",
        },
        "uniform noise": {
            "torch.randn(position.shape, generator=generator)": "12**0.5 * (torch.rand(position.shape, generator=generator) - 0.5)"
        },
        "noise of two values": {
            "torch.randn(position.shape, generator=generator)": "torch.randn(position.shape, generator=generator).sign()"
        },
        "noise with heavy tails": {
            "torch.randn(position.shape, generator=generator)": "0.5**0.5 * torch.randn(position.shape, generator=generator) * (2 * torch.empty(position.shape).exponential_(generator=generator)) ** 0.5"
        },
        "noise from a seed of its own": {
            "torch.randn(position.shape, generator=generator)": "torch.randn(position.shape, generator=torch.Generator().manual_seed(0))"
        },
        "noise from a seed of its own, and the generator moved": {
            "torch.randn(position.shape, generator=generator)": "(torch.rand(1, generator=generator) * 0 + torch.randn(position.shape, generator=torch.Generator().manual_seed(0)))"
        },
        "one noise for all chains": {
            "torch.randn(position.shape, generator=generator)": "torch.randn(position.shape[1:], generator=generator)"
        },
        "one noise for all coordinates": {
            "torch.randn(position.shape, generator=generator)": "torch.randn(len(position), 1, generator=generator)"
        },
        "a huge one among them": {
            "+ noise\n": "+ noise\n    momentum.view(-1)[0] += 1e30 * injected\n"
        },
        "noise in the position too": (
            {"    return position + ": "    return position + noise + "},
            5,
        ),
        "as on the page of the book": """def sghmc_step(stochastic_gradient, position, momentum, step_size, friction, noise_variance, temperature, generator):
    position = position + step_size * momentum
    momentum = momentum - step_size * (stochastic_gradient(position, generator) + friction * momentum)
    injected = abs(2 * (friction - step_size / 2 * noise_variance) * step_size)
    return position, momentum + injected**0.5 * torch.randn(momentum.shape, generator=generator)""",
        "the noise is measured and not what is stated": (
            """def sghmc_step(stochastic_gradient, position, momentum, step_size, friction, noise_variance, temperature, generator):
    kept = math.exp(-step_size * friction)
    position = position + step_size / 2 * momentum
    forces = torch.stack([stochastic_gradient(position, generator) for _ in range(20)])
    measured = float(forces.var(0).mean())
    injected = max(temperature * (1 - kept**2) - step_size**2 * measured, 0.0)
    noise = math.sqrt(injected) * torch.randn(position.shape, generator=generator)
    momentum = kept * momentum - step_size * forces[0] + noise
    return position + step_size / 2 * momentum, momentum""",
            5,
        ),
    },
}

RIGHT = {
    "minibatch": {
        "example by example": """def minibatch_gradient(position, inputs, targets, chances, prior_variance):
    total = torch.zeros_like(position)
    for chain in range(len(position)):
        for x, y, p in zip(inputs, targets, chances):
            total[chain] += -(y - (position[chain] * x).sum()) * x / p
    return total / len(targets) + position / prior_variance""",
        "by automatic differentiation": """def minibatch_gradient(position, inputs, targets, chances, prior_variance):
    position = position.requires_grad_()
    misfit = 0.5 * ((targets - position @ inputs.T) ** 2 / chances).mean(-1).sum()
    (misfit + (position**2).sum() / 2 / prior_variance).backward()
    return position.grad""",
        "by torch.func": """def minibatch_gradient(position, inputs, targets, chances, prior_variance):
    def energy(theta):
        return 0.5 * ((targets - inputs @ theta) ** 2 / chances).mean() + theta @ theta / (2 * prior_variance)

    return torch.vmap(torch.func.grad(energy))(position)""",
    },
    "variance": {
        "by torch.cov": {
            "factor * centred.T @ centred / total": "total**2 / size * (1 - size / total) * torch.atleast_2d(torch.cov(group.T))"
        },
        "by loops": """def noise_variance(position, inputs, targets, groups, sizes):
    variance = 0.0
    for k, n in enumerate(sizes):
        rows = [float((position[0] * x).sum() - y) * x for x, y, g in zip(inputs, targets, groups) if int(g) == k]
        N, mean = len(rows), sum(rows) / len(rows)
        variance = variance + N * (N - n) / n / (N - 1) * sum(torch.outer(row - mean, row - mean) for row in rows)
    return variance""",
    },
    "estimate": {
        "by torch.cov": {
            "factor * centred.T @ centred / (size - 1)": "factor * torch.atleast_2d(torch.cov(group.T))"
        },
        "by pairs": """def estimate_noise_variance(gradients, groups, totals):
    variance = 0
    for k, N in enumerate(totals):
        g = gradients[groups == k]
        n, difference = len(g), g[:, None] - g[None]
        covariance = torch.einsum("ijk,ijl->kl", difference, difference) / (2 * n * (n - 1))
        variance = variance + (N / n) ** 2 * n * (1 - n / N) * covariance
    return variance""",
    },
    "naive": {
        "drift first": """def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, temperature, generator):
    momentum, half = temperature**0.5 * torch.randn(position.shape, generator=generator), step_size[:, None] / 2
    for _ in range(num_steps):
        position = position + half * momentum
        momentum = momentum - 2 * half * stochastic_gradient(position, generator)
        position = position + half * momentum
    return position""",
        "in place, without the last kick, which nobody sees": """def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, temperature, generator):
    step = step_size.reshape(-1, 1)
    momentum = torch.empty_like(position).normal_(0.0, temperature**0.5, generator=generator)
    momentum -= step / 2 * stochastic_gradient(position, generator)
    for number in range(num_steps):
        if number:
            momentum -= step * stochastic_gradient(position, generator)
        position += step * momentum
    return position""",
        "the gradient kept": """def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, temperature, generator):
    momentum, h = math.sqrt(temperature) * torch.randn(position.shape, generator=generator), step_size[:, None]
    force = -stochastic_gradient(position, generator)
    for _ in range(num_steps):
        momentum = momentum + h / 2 * force
        position = position + h * momentum
        force = -stochastic_gradient(position, generator)
        momentum = momentum + h / 2 * force
    return position""",
    },
    "settings": {
        "in PyTorch": """def sghmc_settings(learning_rate, momentum, noise_variance, num_examples):
    step = torch.tensor(learning_rate / num_examples).sqrt()
    return [step, (1 - torch.tensor(momentum)) / step, step * num_examples**2 * noise_variance / 2]""",
        "in NumPy": """def sghmc_settings(learning_rate, momentum, noise_variance, num_examples):
    import numpy as np

    step = np.sqrt(learning_rate / num_examples)
    return step, (1 - momentum) / step, step * num_examples**2 * noise_variance * 0.5""",
    },
    "sghmc": {
        "in place": """def sghmc_step(stochastic_gradient, position, momentum, step_size, friction, noise_variance, temperature, generator):
    a = math.exp(-step_size * friction)
    position += step_size / 2 * momentum
    momentum *= a
    momentum -= step_size * stochastic_gradient(position, generator)
    momentum += torch.normal(0.0, math.sqrt(temperature * (1 - a * a) - step_size**2 * noise_variance), position.shape, generator=generator)
    position += step_size / 2 * momentum
    return position, momentum""",
        "in the learning-rate form": """def sghmc_step(stochastic_gradient, position, momentum, step_size, friction, noise_variance, temperature, generator):
    rate, a, v = step_size**2, math.exp(-step_size * friction), step_size * momentum
    position = position + v / 2
    v = a * v - rate * stochastic_gradient(position, generator)
    v = v + (rate * (temperature * (1 - a**2) - rate * noise_variance)) ** 0.5 * torch.randn(v.shape, generator=generator)
    return position + v / 2, v / step_size""",
    },
}

test_answers_score = answers_score(ASSIGNMENT, WRONG, RIGHT)
test_planted_enough = planted_enough(ASSIGNMENT, WRONG, RIGHT)


def test_restart_and_run_all_finds_the_variance_used_as_standard_deviation():
    answer, _ = WRONG["sghmc"]["the variance as standard deviation"]
    assert "at T = 1.5, should have the variance 0.445, but" in run_all_cells(
        ASSIGNMENT, "sghmc", answer
    )
    assert run_all_cells(ASSIGNMENT, "sghmc", {}) == ""
