"""Ensembles of modes, with and without anchors, against what they are on Gaussian
posteriors.
"""

import pytest
import torch
from scipy.optimize import minimize_scalar

from booklib.rivals import ensemble
from booklib.rivals.ensembles import adversarial_gradient
from sgmc.models import Posterior
from sgmc.posteriors import Gaussian as Normal
from sgmc.posteriors import NetworkPosterior
from tests.booklib.rivals.moments import z_of_mean
from tests.checks import assert_covariance, z_bound


def test_on_a_gaussian_posterior_all_members_end_in_its_mean(regression, generator):
    """An ensemble of exact modes has no spread at all; a strongly convex energy bounds
    the distance: |θ − m| ≤ |∇U|/λ.
    """
    posterior, start = regression(), torch.randn(10, 3, generator=generator).double()
    draws = ensemble(posterior, start, num_steps=1000, learning_rate=0.1)
    assert draws.samples.shape == (1, 10, 3) and draws.complete
    gradient = posterior.gradient(draws.samples[0]).norm(dim=-1)
    assert (gradient < 1e-6 * posterior.gradient(start).norm(dim=-1)).all()
    distance = (draws.samples[0] - posterior.mean).norm(dim=-1)
    rounding = 1e-14  # of the mean itself
    assert (
        distance
        <= 1.001 * gradient / torch.linalg.eigvalsh(posterior.precision)[0] + rounding
    ).all()


@pytest.mark.parametrize("exactly", [False, True])
def test_anchors_scatter_the_members_as_theory_says(regression, generator, exactly):
    """Anchors of covariance S give ΣΛSΛΣ: from the prior, S = Λ⁻¹, too little; with S =
    Λ⁻¹AΛ⁻¹ the posterior itself.
    """
    posterior = regression()
    prior_variance, identity = 1 / posterior.prior_precision, torch.eye(3).double()
    scatter = (
        prior_variance**2 * posterior.precision
        if exactly
        else prior_variance * identity
    )
    expected = (
        posterior.covariance
        if exactly
        else posterior.covariance @ posterior.covariance / prior_variance
    )
    anchors = (
        torch.randn(1000, 3, generator=generator, dtype=torch.float64)
        @ torch.linalg.cholesky(scatter).mT
    )
    # the anchors themselves are far away
    start = torch.randn(1000, 3, generator=generator).double()
    draws = ensemble(
        posterior, start, anchors=anchors, num_steps=1500, learning_rate=0.1
    )
    torch.testing.assert_close(
        draws.samples[0],
        posterior.mean + anchors @ posterior.covariance / prior_variance,
    )
    centred = draws.samples - posterior.mean
    assert_covariance(centred, expected)
    assert z_of_mean(centred[0], 0.0).abs().max() < z_bound(3)
    assert (
        exactly or (expected.diagonal() < 0.1 * posterior.covariance.diagonal()).all()
    )


def test_with_minibatches_anchors_pull_as_much_as_with_all_the_data(
    regression, generator
):
    """The slope of the members on their anchors is ΣΛ, whatever the minibatches' noise
    adds; the prior is not scaled by N/n.
    """
    posterior = regression(10)
    start, anchors = torch.randn(2, 400, 3, generator=generator, dtype=torch.float64)
    samples = ensemble(
        posterior, start, anchors=anchors, num_steps=1000, learning_rate=0.1
    ).samples[0]
    known = torch.cat([anchors, torch.ones(400, 1).double()], 1)
    slope = torch.linalg.lstsq(known, samples).solution
    spread = (samples - known @ slope).var(0)
    standard_error = (
        torch.linalg.inv(known.mT @ known).diagonal()[:, None] * spread
    ).sqrt()
    z = (slope[:3] - posterior.covariance * posterior.prior_precision) / standard_error[
        :3
    ]
    assert z.abs().max() < z_bound(9), z
    assert (slope[:3].diagonal() > 8 * standard_error[:3].diagonal()).all()


def test_anchors_move_the_prior_whether_its_slope_is_a_formula_or_not(
    regression, generator
):
    """By hand: with one observation x ~ N(θ, 1) and θ ~ N(a, 1) the mode is ½(x +
    a).
    """
    anchors = torch.tensor([[1.0], [-3.0]])
    for formula in (torch.neg, None):
        posterior = Posterior(
            log_prior=lambda position: -0.5 * position.square().sum(-1),
            log_likelihood=lambda position, x: -0.5 * (x - position).square(),
            data=(torch.ones(1),),
            dim=1,
        )
        posterior.grad_log_prior = formula
        draws = ensemble(
            posterior, anchors, anchors=anchors, num_steps=1000, learning_rate=0.05
        )
        torch.testing.assert_close(draws.samples[0], torch.tensor([[1.0], [-1.0]]))


@pytest.mark.slow
def test_adversarial_training_has_the_closed_form_of_a_worse_residual():
    """In one dimension the worst neighbour of x has the residual r(1 + ϵ|θ|/|r|), so
    that the energy is ½θ²/τ² + ¼Σ[r² + (|r| + ϵ|θ|)²].
    """
    generator, size = torch.Generator().manual_seed(3), 0.3
    inputs = torch.randn(50, 1, generator=generator).double()
    targets = (2 * inputs + torch.randn(50, 1, generator=generator))[:, 0]
    posterior = NetworkPosterior(
        torch.nn.Linear(1, 1, bias=False).double(),
        inputs,
        targets,
        2.0,
        likelihood=Normal(0.5),
    )

    def energy(weight):
        residual = (targets - inputs[:, 0] * weight).abs()
        return (
            0.5 * weight**2 / 2
            + 0.25 * (residual**2 + (residual + size * weight.abs()) ** 2).sum() / 0.5
        )

    position = torch.tensor([[0.7], [-1.3]]).double()
    expected = torch.stack([torch.func.grad(energy)(weight[0]) for weight in position])[
        :, None
    ]
    torch.testing.assert_close(
        adversarial_gradient(posterior, position, None, size), expected
    )
    pairs = torch.combinations(torch.arange(50))[:, None].expand(-1, 2, -1)
    each = torch.stack(
        [adversarial_gradient(posterior, position, pair, size) for pair in pairs]
    )
    torch.testing.assert_close(each.mean(0), expected)
    best = minimize_scalar(
        lambda weight: float(energy(torch.tensor(weight).double())),
        bounds=(0.5, 3),
        method="bounded",
    ).x
    draws = ensemble(
        posterior, position, num_steps=2000, learning_rate=0.05, adversarial=size
    )
    assert (
        (draws.samples - best).abs().max()
        < 1e-4
        < abs(best - float(targets @ inputs[:, 0] / (inputs.square().sum() + 0.25)))
    )
