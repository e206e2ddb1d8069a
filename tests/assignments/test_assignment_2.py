"""Assignment 2: what must score, and what must not."""

from tests.assignments.running import answers_score, planted_enough

ASSIGNMENT = "assignment_2"

WRONG = {
    "minibatch": {
        "no N/n": {"num_examples / len(inputs) * ": ""},
        "N/n on the prior too": {
            "position / prior_variance + num_examples / len(inputs) * residuals @ inputs": "num_examples / len(inputs) * (position / prior_variance + residuals @ inputs)"
        },
        "the sign": {"position @ inputs.T - targets": "targets - position @ inputs.T"},
        "the mean of the minibatch": {"num_examples / len(inputs)": "1 / len(inputs)"},
        "the prior's standard deviation": {"position / prior_variance": "position / prior_variance**0.5"},
        "no prior": {"position / prior_variance + ": ""},
        "a factor two": {"residuals @ inputs": "2 * residuals @ inputs"},
    },
    "variance": {
        "with replacement": {" * (total - batch_size) / (total - 1)": ""},
        "the other correction": {"(total - batch_size) / (total - 1)": "(1 - batch_size / total)"},
        "N/n": {"total**2 / batch_size": "total / batch_size"},
        "(N/n) squared": {"total**2 / batch_size": "total**2 / batch_size**2"},
        "no N": {"total**2 / batch_size": "batch_size"},
        "not centred": {"gradients - gradients.mean(0)": "gradients"},
        "the diagonal only": {"return total**2": "return torch.eye(2) * total**2"},
    },
    "estimate": {
        "with replacement": {" * (1 - batch_size / num_examples)": ""},
        "low by (N/n) squared": {"num_examples**2 / batch_size": "batch_size"},
        "biased": {"torch.cov(gradients.T)": "torch.cov(gradients.T, correction=0)"},
        "not centred": {"torch.cov(gradients.T)": "(gradients.T @ gradients / batch_size)"},
        "of one example": {"num_examples**2 / batch_size": "num_examples**2"},
        "the other correction": {"(1 - batch_size / num_examples)": "((num_examples - batch_size) / (num_examples - 1))"},
    },
    "naive": {
        "one minibatch for the whole trajectory": {
            "    momentum = torch.randn(position.shape, generator=generator)\n": "    momentum = torch.randn(position.shape, generator=generator)\n    held, inner = generator.get_state(), stochastic_gradient\n\n    def stochastic_gradient(position, generator):\n        return inner(position, generator.set_state(held))\n\n"
        },
        "uphill": {"momentum - ": "momentum + "},
        "no fresh momentum": {"torch.randn(position.shape, generator=generator)": "torch.zeros(position.shape)"},
        "a momentum of twice the variance": {
            "torch.randn(position.shape, generator=generator)": "2**0.5 * torch.randn(position.shape, generator=generator)"
        },
        "a full kick at the start": {"momentum - step_size / 2": "momentum - step_size"},
        "friction": {
            "        position = position + step_size * momentum": "        momentum = 0.9 * momentum\n        position = position + step_size * momentum"
        },
        "two gradients between drifts": """def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, generator):
    momentum = torch.randn(position.shape, generator=generator)
    for _ in range(num_steps):
        momentum = momentum - step_size / 2 * stochastic_gradient(position, generator)
        position = position + step_size * momentum
        momentum = momentum - step_size / 2 * stochastic_gradient(position, generator)
    return position""",
        "one leapfrog step": {"range(num_steps)": "range(1)"},
        "explicit Euler": """def naive_sghmc_step(stochastic_gradient, position, step_size, num_steps, generator):
    momentum = torch.randn(position.shape, generator=generator)
    for _ in range(num_steps):
        position, momentum = position + step_size * momentum, momentum - step_size * stochastic_gradient(position, generator)
    return position""",
    },
    "settings": {
        "the learning rate as step size": {"math.sqrt(learning_rate)": "learning_rate"},
        "the estimate of the other form": {"0.5 * step_size * noise": "0.5 * learning_rate * noise"},
        "no half": {"0.5 * step_size": "step_size"},
        "the decay as friction": {"momentum_decay / step_size": "momentum_decay"},
        "the standard deviation": {"* noise_variance": "* noise_variance**0.5"},
        "the momentum for its decay": {"momentum_decay / step_size": "(1 - momentum_decay) / step_size"},
    },
    "sghmc": {
        "the estimate forgotten": {"(friction - noise_estimate)": "friction"},
        "the estimate added": {"friction - noise_estimate": "friction + noise_estimate"},
        "the variance as standard deviation": {
            "math.sqrt(2 * (friction - noise_estimate) * step_size)": "2 * (friction - noise_estimate) * step_size"
        },
        "no factor root two": {"math.sqrt(2 * ": "math.sqrt("},
        "no friction": {" - step_size * friction * momentum": ""},
        "friction that pushes": {"- step_size * friction": "+ step_size * friction"},
        "uphill": {"- step_size * stochastic": "+ step_size * stochastic"},
        "no injected noise": {" + noise\n": "\n"},
        "noise of size ε": {
            "math.sqrt(2 * (friction - noise_estimate) * step_size)": "math.sqrt(2 * (friction - noise_estimate)) * step_size"
        },
        "explicit Euler": {
            "    position = position + step_size * momentum\n": "    before, position = position, position + step_size * momentum\n",
            "stochastic_gradient(position, generator) + noise": "stochastic_gradient(before, generator) + noise",
        },
        "friction without ε": {"step_size * friction * momentum": "friction * momentum"},
    },
}

RIGHT = {
    "minibatch": {
        "in place": {
            "return position / prior_variance + num_examples / len(inputs) * residuals @ inputs": "return position.div_(prior_variance).add_(residuals @ inputs, alpha=num_examples / len(inputs))"
        },
        "example by example": """def minibatch_gradient(position, inputs, targets, num_examples, prior_variance):
    total = torch.zeros_like(position)
    for x, y in zip(inputs, targets):
        total += -(y - (position * x).sum()) * x
    return total * num_examples / len(targets) + position / prior_variance""",
        "by automatic differentiation": """def minibatch_gradient(position, inputs, targets, num_examples, prior_variance):
    position = position.requires_grad_()
    misfit = 0.5 * ((targets - position @ inputs.T) ** 2).mean()
    (num_examples * misfit + (position**2).sum() / 2 / prior_variance).backward()
    return position.grad""",
    },
    "variance": {
        "by torch.cov": {
            "return total**2 / batch_size * (total - batch_size) / (total - 1) * (centred.T @ centred) / total": "return total**2 / batch_size * (1 - batch_size / total) * torch.cov(gradients.T)"
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
