"""What other libraries call their numbers: the law of their step, with the numbers of
the book's table, is that of our flows.

The steps are written from the sources that the chapter on tuning names, and taken apart
into a linear chain by feeding them unit vectors."""

import math

import pytest
import torch

from sgmc.splittings import flows, linear_chain

DOUBLE = torch.float64
# of a sum over N = 50 examples
PRECISION = torch.tensor([[20.0, 6.0], [6.0, 9.0]], dtype=DOUBLE)
N = 50


def gradient(theta):
    return PRECISION @ theta


def welling_teh(theta, p, xi, step):
    return theta - step / 2 * gradient(theta) + math.sqrt(step) * xi, p


def chen_figure_one(theta, p, xi, dt, friction, variance):
    noise = math.sqrt(2 * (friction - variance * dt / 2) * dt)
    p = p - gradient(theta) * dt - p * friction * dt + noise * xi
    return theta + p * dt, p


def chen_figure_three(theta, p, xi, eta, alpha, variance):
    beta = variance * eta / 2
    p = (
        (1 - alpha) * p
        - eta * gradient(theta)
        + math.sqrt(2 * eta * (alpha - beta)) * xi
    )
    return theta + p, p


def chen_network(theta, p, xi, eta, mdecay):
    # of the mean loss and ½wd|w|², wd = prior precision/N
    mean_loss_gradient = gradient(theta) / N
    p = (
        (1 - mdecay) * p
        - eta * mean_loss_gradient
        + math.sqrt(2 * eta * mdecay / N) * xi
    )
    return theta + p, p


def blackjax_sgld(theta, p, xi, step_size, temperature):
    return theta - step_size * gradient(theta) + math.sqrt(
        2 * temperature * step_size
    ) * xi, p


def blackjax_sghmc(theta, p, xi, step_size, alpha, beta, temperature):
    noise = math.sqrt(
        step_size * temperature * (2 * alpha - step_size * temperature * beta)
    )
    return theta + step_size * p, (1 - alpha * step_size) * p - step_size * gradient(
        theta
    ) + noise * xi


def posteriors_sgld(theta, p, xi, lr, beta):
    temperature = 1 / N
    return theta - lr * gradient(theta) / N + math.sqrt(
        temperature * lr * (2 - temperature * lr * beta)
    ) * xi, p


def posteriors_sghmc(theta, p, xi, lr, alpha, beta, sigma):
    temperature, velocity = 1 / N, p / sigma**2
    noise = math.sqrt(temperature * lr * (2 * alpha - temperature * lr * beta))
    return theta + lr * velocity, p - lr * gradient(
        theta
    ) / N - lr * alpha * velocity + noise * xi


def posteriors_baoa(theta, p, xi, lr, alpha, sigma):
    temperature, decay = 1 / N, alpha / sigma**2
    p = p - lr * gradient(theta) / N
    theta = theta + lr / 2 * p / sigma**2
    p = (
        math.exp(-decay * lr) * p
        + sigma * math.sqrt(temperature * (1 - math.exp(-2 * decay * lr))) * xi
    )
    return theta + lr / 2 * p / sigma**2, p


def sgmcmcjax_sghmc(theta, p, xi, dt, alpha):
    return theta + p, p - dt * gradient(theta) - alpha * p + math.sqrt(
        2 * alpha * dt
    ) * xi


def sgmcmcjax_baoab(theta, p, xi, dt, gamma, tau):
    p = p - dt / 2 * gradient(theta)
    theta = theta + dt / 2 * p
    p = math.exp(-gamma * dt) * p + tau * math.sqrt(1 - math.exp(-2 * gamma * dt)) * xi
    theta = theta + dt / 2 * p
    return theta, p - dt / 2 * gradient(theta)


def tfp_sgld(theta, p, xi, learning_rate, rms, bias):
    # constant where preconditioner_decay_rate = 1
    preconditioner = 1 / math.sqrt(rms + bias)
    return theta - learning_rate * preconditioner * N / 2 * gradient(
        theta
    ) / N + math.sqrt(learning_rate * preconditioner) * xi, p


def turing_sgld(theta, p, xi, stepsize):
    return theta - stepsize / 2 * gradient(theta) + math.sqrt(stepsize) * xi, p


def pytorch_sgd(theta, p, xi, lr, momentum):
    p = momentum * p + gradient(theta) / N
    return theta - lr * p, p


def kick_first(*arguments, **settings):
    drift, *rest = flows.sghmc(*arguments, **settings)
    return [*rest, drift]


def baoa(step_size, friction, mass):
    _, drift, middle, drift_again, _ = flows.baoab(step_size, friction, mass)
    return [flows.Kick(step_size), drift, middle, drift_again]


def by_learning_rate(splitting, eta, alpha, beta=0.0, **settings):
    """The learning-rate form with M = 1."""
    return splitting(
        math.sqrt(eta), alpha / math.sqrt(eta), beta / math.sqrt(eta), **settings
    )


# For each: the step with its own numbers, our flows with the translated ones, and the
# factor from their momentum to ours.
CONVENTIONS = {
    "Welling and Teh": (welling_teh, (0.02,), flows.sgld(0.01), 1.0),
    "Chen et al., sghmc.m of figure 1": (
        chen_figure_one,
        (0.1, 3.0, 4.0),
        kick_first(0.1, 3.0, 0.5 * 0.1 * 4.0),
        1.0,
    ),
    "Chen et al., sghmc.m of figure 3": (
        chen_figure_three,
        (0.01, 0.3, 4.0),
        by_learning_rate(kick_first, 0.01, 0.3, 0.02),
        10.0,
    ),
    "Chen et al., networks": (
        chen_network,
        (0.5, 0.1),
        by_learning_rate(kick_first, 0.5 / N, 0.1),
        10.0,
    ),
    "Blackjax SGLD": (
        blackjax_sgld,
        (0.01, 0.5),
        flows.sgld(0.01, temperature=0.5),
        1.0,
    ),
    "Blackjax SGHMC": (
        blackjax_sghmc,
        (0.1, 3.0, 4.0, 1.0),
        flows.explicit_euler_sghmc(0.1, 3.0, 0.5 * 0.1 * 4.0),
        1.0,
    ),
    "Blackjax SGHMC, T = ½": (
        blackjax_sghmc,
        (0.1, 3.0, 4.0, 0.5),
        flows.explicit_euler_sghmc(0.1, 3.0, 0.5 * 0.1 * 0.25 * 4.0, temperature=0.5),
        1.0,
    ),
    "posteriors SGLD": (
        posteriors_sgld,
        (0.5, 30.0),
        flows.sgld(0.5 / N, 0.5 * 0.5 / N * 30.0),
        1.0,
    ),
    "posteriors SGHMC": (
        posteriors_sghmc,
        (0.3, 1.0, 30.0, 1.2),
        flows.explicit_euler_sghmc(0.3, 1.0 * N, 0.5 * 0.3 * 30.0, mass=1.2**2 * N),
        N,
    ),
    "posteriors BAOA": (
        posteriors_baoa,
        (0.3, 1.0, 1.2),
        baoa(0.3, 1.0 * N, 1.2**2 * N),
        N,
    ),
    "SGMCMCJax SGHMC and Turing": (
        sgmcmcjax_sghmc,
        (0.01, 0.3),
        by_learning_rate(flows.explicit_euler_sghmc, 0.01, 0.3),
        10.0,
    ),
    "SGMCMCJax BAOAB": (
        sgmcmcjax_baoab,
        (0.1, 3.0, 0.5),
        flows.baoab(0.1, 3.0, temperature=0.25),
        1.0,
    ),
    "TFP SGLD": (
        tfp_sgld,
        (0.02, 4.0, 1e-8),
        flows.sgld(0.01, mass=math.sqrt(4.0 + 1e-8)),
        1.0,
    ),
    "Turing SGLD": (turing_sgld, (0.02,), flows.sgld(0.01), 1.0),
    "torch.optim.SGD": (
        pytorch_sgd,
        (0.5, 0.9),
        by_learning_rate(kick_first, 0.5 / N, 0.1, temperature=0.0),
        -0.5 / math.sqrt(0.5 / N),
    ),
}


@pytest.mark.parametrize("name", CONVENTIONS)
def test_the_step_has_the_law_of_our_flows(name):
    """The transition and the noise's covariance, entry by entry; a factor of 2, N or T
    anywhere is far more than rounding.
    """
    step, numbers, ours, factor = CONVENTIONS[name]
    chain = linear_chain(ours, PRECISION)
    momenta = len(chain.transition) > 2  # SGLD has none
    identity, zero = torch.eye(2, dtype=DOUBLE), torch.zeros(2, 2, dtype=DOUBLE)

    def taken(theta, p, xi):
        theta, p = step(theta, p / factor, xi, *numbers)
        return torch.cat([theta, factor * p]) if momenta else theta

    columns = [taken(identity, zero, zero), taken(zero, identity, zero)][: 1 + momenta]
    noise = taken(zero, zero, identity)
    torch.testing.assert_close(
        torch.cat(columns, 1), chain.transition, rtol=1e-12, atol=1e-12
    )
    torch.testing.assert_close(
        noise @ noise.T, chain.noise_covariance, rtol=1e-12, atol=1e-12
    )
