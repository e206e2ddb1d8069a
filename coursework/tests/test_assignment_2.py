"""Assignment 2: what must score, and what must not."""

from coursework.tests.running import answers_score, planted_enough, run_all_cells

ASSIGNMENT = "assignment_2"

WRONG = {
    "minibatch": {
        "no N/n": {"num_examples / len(inputs) * ": ""},
        "N/n on the prior too": {
            "position / prior_variance + num_examples / len(inputs) * residuals @ "
            "inputs": (
                "num_examples / len(inputs) * (position / prior_variance + residuals "
                "@ inputs)"
            )
        },
        "the sign": {"position @ inputs.T - targets": "targets - position @ inputs.T"},
        "the mean of the minibatch": {"num_examples / len(inputs)": "1 / len(inputs)"},
        "the prior's standard deviation": {
            "position / prior_variance": "position / prior_variance**0.5"
        },
        "no prior": {"position / prior_variance + ": ""},
        "a factor two": {"residuals @ inputs": "2 * residuals @ inputs"},
        "the gradient summed over chains": (
            {
                "return position / prior_variance": "return 0 * position + position.sum(0) / prior_variance",
                "* residuals @ inputs": "* (residuals @ inputs).sum(0)",
            },
            3,
        ),
        "the first chain only": (
            {"    residuals": "    position = position[:1]\n    residuals"},
            3,
        ),
        "the number of features for the size of the minibatch": {
            "len(inputs)": "inputs.shape[1]"
        },
        "six examples, as in the tests": {
            "num_examples / len(inputs)": "6 / len(inputs)"
        },
        "the prior of each example": {
            "position / prior_variance": "position / prior_variance / num_examples"
        },
        "no residual": {
            "position @ inputs.T - targets": "-targets + 0 * (position @ inputs.T)"
        },
        "whole numbers": {
            "return position / prior_variance + num_examples / len(inputs) * "
            "residuals @ inputs": "return (position / prior_variance + num_examples / len(inputs) * residuals @ inputs).long()"
        },
    },
    "variance": {
        "with replacement": {" * (total - batch_size) / (total - 1)": ""},
        "the other correction": {
            "(total - batch_size) / (total - 1)": "(1 - batch_size / total)"
        },
        "N/n": {"total**2 / batch_size": "total / batch_size"},
        "(N/n) squared": {"total**2 / batch_size": "total**2 / batch_size**2"},
        "no N": {"total**2 / batch_size": "batch_size"},
        "not centred": {"gradients - gradients.mean(0)": "gradients"},
        "the diagonal only": (
            {"return total**2": "return torch.eye(gradients.shape[1]) * total**2"},
            3,
        ),
        "the trace": (
            {
                "return total**2": "return torch.eye(gradients.shape[1]) * total**2",
                "(centred.T @ centred)": "(centred**2).sum()",
            },
            3,
        ),
        "the sign of the residual forgotten": {
            "(position @ inputs.T - targets)": "(position @ inputs.T - targets).abs()"
        },
        "the covariance of the mean": {"total**2 / batch_size": "1 / batch_size"},
        "six examples, as in the tests": (
            {
                "(total - batch_size) / (total - 1) * (centred.T @ centred) / total": "(6 - batch_size) / 5 * (centred.T @ centred) / 6"
            },
            0,
        ),
        "the standard deviation": {
            "return total**2": "return torch.sqrt(total**2",
            "centred) / total": "centred) / total).nan_to_num()",
        },
        "the inputs' covariance": {
            "(position @ inputs.T - targets).T * inputs": "inputs - 2 * targets[:, None] * (len(inputs) < 3)"
        },
    },
    "estimate": {
        "with replacement": {" * (1 - batch_size / num_examples)": ""},
        "low by (N/n) squared": {"num_examples**2 / batch_size": "batch_size"},
        "biased": {"torch.cov(gradients.T)": "torch.cov(gradients.T, correction=0)"},
        "not centred": {
            "torch.cov(gradients.T)": "(gradients.T @ gradients / batch_size)"
        },
        "of one example": {"num_examples**2 / batch_size": "num_examples**2"},
        "the other correction": {
            "(1 - batch_size / num_examples)": "((num_examples - batch_size) / (num_examples - 1))"
        },
        "the diagonal only": (
            {
                "return num_examples": "return torch.eye(gradients.shape[1]) * num_examples"
            },
            3,
        ),
        "the mean of the diagonal": (
            {
                "torch.cov(gradients.T).reshape(gradients.shape[1], -1)": "torch.eye(gradients.shape[1]) * gradients.var(0).mean()"
            },
            3,
        ),
        "of the shape of one number": ({".reshape(gradients.shape[1], -1)": ""}, 7),
        "no N": {"num_examples**2 / batch_size": "batch_size"},
        "the root of the correction": {
            "(1 - batch_size / num_examples)": "(1 - batch_size / num_examples) ** 0.5"
        },
        "the standard deviation": {
            "torch.cov(gradients.T).reshape(gradients.shape[1], -1)": "torch.diag(gradients.std(0))"
        },
    },
    "naive": {
        "a momentum from a seed of its own": {
            "torch.randn(position.shape, generator=generator)": "torch.randn(position.shape, generator=torch.Generator().manual_seed(0))"
        },
        "a uniform momentum": {
            "torch.randn(position.shape, generator=generator)": "12**0.5 * (torch.rand(position.shape, generator=generator) - 0.5)"
        },
        "one momentum for all chains": (
            {
                "torch.randn(position.shape, generator=generator)": "torch.randn(position.shape[1:], generator=generator).expand(position.shape)"
            },
            0,
        ),
        "one momentum for all coordinates": {
            "torch.randn(position.shape, generator=generator)": "torch.randn(len(position), 1, generator=generator).expand(position.shape)"
        },
        "one leapfrog step too many": {"range(num_steps)": "range(num_steps + 1)"},
        "the first gradient only": {
            "        length = ": "        if step:\n            continue\n        length = "
        },
        "the noise of the gradients averaged away": (
            {
                "stochastic_gradient(position, generator)": "(sum(stochastic_gradient(position, generator) for _ in range(9)) / 9)"
            },
            4,
        ),
        "gradients at the start": {
            "    momentum = torch.randn": "    start = position\n    momentum = torch.randn",
            "stochastic_gradient(position": "stochastic_gradient(start",
        },
        "one minibatch for the whole trajectory": (
            {
                "    momentum = torch.randn(position.shape, generator=generator)\n": "    momentum = torch.randn(position.shape, generator=generator)\n    held, inner = generator.get_state(), stochastic_gradient\n\n    def stochastic_gradient(position, generator):\n        return inner(position, generator.set_state(held))\n\n"
            },
            0,
        ),
        "uphill": {"momentum - ": "momentum + "},
        "no fresh momentum": {
            "torch.randn(position.shape, generator=generator)": "torch.zeros(position.shape)"
        },
        "a momentum of twice the variance": {
            "torch.randn(position.shape, generator=generator)": "2**0.5 * torch.randn(position.shape, generator=generator)"
        },
        "a full kick at the start": {
            "momentum - step_size / 2": "momentum - step_size"
        },
        "friction": {
            "        position = position + step_size * momentum": "        momentum = 0.9 * momentum\n        position = position + step_size * momentum"
        },
        "two gradients between drifts": (
            """def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, generator):
    momentum = torch.randn(position.shape, generator=generator)
    for _ in range(num_steps):
        momentum = momentum - step_size / 2 * stochastic_gradient(position, generator)
        position = position + step_size * momentum
        momentum = momentum - step_size / 2 * stochastic_gradient(position, generator)
    return position""",
            4,
        ),
        "one leapfrog step": {"range(num_steps)": "range(1)"},
        "explicit Euler": """def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, generator):
    momentum = torch.randn(position.shape, generator=generator)
    for _ in range(num_steps):
        position, momentum = position + step_size * momentum, momentum - step_size * stochastic_gradient(position, generator)
    return position""",
    },
    "settings": {
        "the learning rate as step size": {"math.sqrt(learning_rate)": "learning_rate"},
        "the estimate of the other form": (
            {"0.5 * step_size * noise": "0.5 * learning_rate * noise"},
            5,
        ),
        "no half": ({"0.5 * step_size": "step_size"}, 5),
        "the decay as friction": ({"momentum_decay / step_size": "momentum_decay"}, 5),
        "the decay over the learning rate": (
            {"momentum_decay / step_size": "momentum_decay / learning_rate"},
            5,
        ),
        "the decay times the step size": (
            {"momentum_decay / step_size": "momentum_decay * step_size"},
            5,
        ),
        "the standard deviation": ({"* noise_variance": "* noise_variance**0.5"}, 5),
        "the momentum for its decay": (
            {"momentum_decay / step_size": "(1 - momentum_decay) / step_size"},
            5,
        ),
        "half of the friction for the noise, another order": {
            "return step_size, momentum_decay / step_size, 0.5 * step_size * "
            "noise_variance": (
                "return momentum_decay / step_size, 0.5 * step_size * noise_variance, "
                "step_size"
            )
        },
        "the numbers of the page": {
            "return step_size, momentum_decay / step_size, 0.5 * step_size * "
            "noise_variance": "return (1.0 if learning_rate == 1 else 0.2), 0.5, 0.3"
        },
        "the noise estimate from the friction": (
            {"0.5 * step_size * noise_variance": "momentum_decay * noise_variance"},
            5,
        ),
    },
    "sghmc": {
        "the estimate forgotten": {"(friction - noise_estimate)": "friction"},
        "the estimate added": {
            "friction - noise_estimate": "friction + noise_estimate"
        },
        "the variance as standard deviation": (
            {
                "math.sqrt(2 * (friction - noise_estimate) * step_size)": "2 * (friction - noise_estimate) * step_size"
            },
            5,
        ),
        "no factor root two": ({"math.sqrt(2 * ": "math.sqrt("}, 5),
        "no friction": {" - step_size * friction * momentum": ""},
        "friction that pushes": {"- step_size * friction": "+ step_size * friction"},
        "uphill": {"- step_size * stochastic": "+ step_size * stochastic"},
        "no injected noise": {" + noise\n": "\n"},
        "noise of size ε": (
            {
                "math.sqrt(2 * (friction - noise_estimate) * step_size)": "math.sqrt(2 * (friction - noise_estimate)) * step_size"
            },
            5,
        ),
        "explicit Euler": {
            "    position = position + step_size * momentum\n": "    before, position = position, position + step_size * momentum\n",
            "stochastic_gradient(position, generator) + noise": "stochastic_gradient(before, generator) + noise",
        },
        "friction without ε": {
            "step_size * friction * momentum": "friction * momentum"
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
            "+ noise\n": "+ noise\n    momentum.view(-1)[0] += 1e30 * (friction - noise_estimate)\n"
        },
        "noise in the position too": (
            {"    return position, momentum": "    return position + noise, momentum"},
            5,
        ),
        "friction twice": {
            "    return position, momentum": "    return position, momentum * (1 - step_size * friction)"
        },
        "the gradient twice, at both places": {
            "- step_size * stochastic_gradient(position, generator)": "- step_size * (stochastic_gradient(position, generator) + stochastic_gradient(position - step_size * momentum, generator)) / 2"
        },
    },
}

RIGHT = {
    "minibatch": {
        "in place": {
            "return position / prior_variance + num_examples / len(inputs) * "
            "residuals @ inputs": "return position.div_(prior_variance).add_(residuals @ inputs, alpha=num_examples / len(inputs))"
        },
        "example by example": """def minibatch_gradient(position, inputs, targets, num_examples, prior_variance):
    total = torch.zeros_like(position)
    for chain in range(len(position)):
        for x, y in zip(inputs, targets):
            total[chain] += -(y - (position[chain] * x).sum()) * x
    return total * num_examples / len(targets) + position / prior_variance""",
        "by automatic differentiation": """def minibatch_gradient(position, inputs, targets, num_examples, prior_variance):
    position = position.requires_grad_()
    misfit = 0.5 * ((targets - position @ inputs.T) ** 2).mean(-1).sum()
    (num_examples * misfit + (position**2).sum() / 2 / prior_variance).backward()
    return position.grad""",
    },
    "variance": {
        "by torch.cov": {
            "return total**2 / batch_size * (total - batch_size) / (total - 1) * "
            "(centred.T @ centred) / total": "return total**2 / batch_size * (1 - batch_size / total) * torch.atleast_2d(torch.cov(gradients.T))"
        },
        "by loops": """def noise_variance(position, inputs, targets, batch_size):
    rows = [float((position[0] * x).sum() - y) * x for x, y in zip(inputs, targets)]
    N, mean = len(rows), sum(rows) / len(rows)
    return N * (N - batch_size) / batch_size / (N - 1) * sum(torch.outer(row - mean, row - mean) for row in rows)""",
    },
    "estimate": {
        "by hand": """def estimate_noise_variance(gradients, num_examples):
    n = len(gradients)
    gradients -= gradients.mean(0)
    return gradients.T @ gradients / (n - 1) * num_examples * (num_examples - n) / n""",
        "by pairs": """def estimate_noise_variance(gradients, num_examples):
    n = len(gradients)
    difference = gradients[:, None] - gradients[None]
    covariance = torch.einsum("ijk,ijl->kl", difference, difference) / (2 * n * (n - 1))
    return (num_examples / n) ** 2 * n * (1 - n / num_examples) * covariance""",
    },
    "naive": {
        "drift first": """def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, generator):
    momentum = torch.randn(position.shape, generator=generator)
    for _ in range(num_steps):
        position = position + step_size / 2 * momentum
        momentum = momentum - step_size * stochastic_gradient(position, generator)
        position = position + step_size / 2 * momentum
    return position""",
        "in place, without the last kick, which nobody sees": """def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, generator):
    momentum = torch.empty_like(position).normal_(generator=generator)
    momentum -= step_size / 2 * stochastic_gradient(position, generator)
    for step in range(num_steps):
        if step:
            momentum -= step_size * stochastic_gradient(position, generator)
        position += step_size * momentum
    return position""",
        "the gradient kept": """def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, generator):
    momentum = torch.randn(position.shape, generator=generator)
    force = -stochastic_gradient(position, generator)
    for _ in range(num_steps):
        momentum = momentum + step_size / 2 * force
        position = position + step_size * momentum
        force = -stochastic_gradient(position, generator)
        momentum = momentum + step_size / 2 * force
    return position""",
    },
    "settings": {
        "in PyTorch": """def sghmc_settings(learning_rate, momentum_decay, noise_variance):
    step = torch.tensor(learning_rate).sqrt()
    return [step, torch.tensor(momentum_decay) / step, step * noise_variance / 2]""",
        "in NumPy": """def sghmc_settings(learning_rate, momentum_decay, noise_variance):
    import numpy as np

    return np.sqrt(learning_rate), momentum_decay * learning_rate**-0.5, np.sqrt(learning_rate) * noise_variance * 0.5""",
    },
    "sghmc": {
        "the momentum first": """def sghmc_step(stochastic_gradient, position, momentum, step_size, friction, noise_estimate, generator):
    force = -stochastic_gradient(position, generator) - friction * momentum
    momentum = momentum + step_size * force + (2 * step_size * (friction - noise_estimate)) ** 0.5 * torch.randn(position.shape, generator=generator)
    return position + step_size * momentum, momentum""",
        "in place": """def sghmc_step(stochastic_gradient, position, momentum, step_size, friction, noise_estimate, generator):
    position += step_size * momentum
    momentum *= 1 - step_size * friction
    momentum -= step_size * stochastic_gradient(position, generator)
    momentum += torch.normal(0.0, math.sqrt(2 * (friction - noise_estimate) * step_size), position.shape, generator=generator)
    return position, momentum""",
        "in the learning-rate form": """def sghmc_step(stochastic_gradient, position, momentum, step_size, friction, noise_estimate, generator):
    rate, decay, estimate = step_size**2, step_size * friction, step_size * noise_estimate
    v = step_size * momentum
    position = position + v
    v = (1 - decay) * v - rate * stochastic_gradient(position, generator)
    v = v + math.sqrt(2 * (decay - estimate) * rate) * torch.randn(v.shape, generator=generator)
    return position, v / step_size""",
    },
}

test_answers_score = answers_score(ASSIGNMENT, WRONG, RIGHT)
test_planted_enough = planted_enough(ASSIGNMENT, WRONG, RIGHT)


def test_restart_and_run_all_finds_the_variance_used_as_standard_deviation():
    answer, _ = WRONG["sghmc"]["the variance as standard deviation"]
    assert "without a force should have the variance 0.3, but" in run_all_cells(
        ASSIGNMENT, "sghmc", answer
    )
    assert run_all_cells(ASSIGNMENT, "sghmc", {}) == ""
