"""Faults in approximations: bounds, descents, modes, masks, Gaussians through iterates."""

from functools import partial

from tests.faults.planting import Fault

TESTS = "tests/approximations/test_"
variational = partial(Fault, file="sgmc/approximations/variational.py", tests=f"{TESTS}variational.py")
descent = partial(Fault, file="sgmc/approximations/descent.py", tests=f"{TESTS}variational.py")
ensembles = partial(Fault, file="sgmc/approximations/ensembles.py", tests=f"{TESTS}ensembles.py")
laplace = partial(Fault, file="sgmc/approximations/laplace.py", tests=f"{TESTS}laplace.py")
dropout = partial(Fault, file="sgmc/approximations/dropout.py", tests=f"{TESTS}dropout.py")
constant_sgd = partial(Fault, file="sgmc/approximations/constant_sgd.py", tests=f"{TESTS}constant_sgd.py")
swag = partial(Fault, file="sgmc/approximations/swag.py", tests=f"{TESTS}swag.py")

FAULTS = [
    # variational inference
    variational("the entropy counts twice", "(slope * normals).sum(0) - 1 / std", "(slope * normals).sum(0) - 2 / std"),
    variational("the gradient in σ forgets what ε is", "(slope * normals).sum(0)", "(slope * normals).sum(0) * std"),
    variational("draws take other chains' minibatches", "torch.cat([omega] * len(normals))", "omega.repeat_interleave(len(normals), 0)"),
    variational("q is taken for 1/q", "log_ratio = 0.5 * normals", "log_ratio = -0.5 * normals"),
    variational("α is taken for 1 − α", "(1 - alpha) * log_ratio", "alpha * log_ratio"),
    variational(
        "Rényi's bound weighs by all the data",
        "potential.energy_given(drawn, noise) if isinstance(potential, DataPotential) else potential.energy(drawn)",
        "potential.energy(drawn)",
    ),
    variational("draws of a step are summed", "1 / len(normals))", "1.0)"),
    variational("draws have the variance as their deviation", "mean + std * normal\n", "mean + std**2 * normal\n"),
    variational(
        "all draws are one", "normal_block(mean, num_samples, generator)", "normal_block(mean, 1, generator).expand(num_samples, -1, -1)"
    ),
    variational("the density is of an average coordinate", "law.log_prob(samples).sum(-1)", "law.log_prob(samples).mean(-1)"),
    variational("what is clear is pruned", ".argsort(-1)[:,", ".argsort(-1, descending=True)[:,"),
    variational("negative weights have no signal", '["std"])[0].abs()', '["std"])[0]'),
    variational("a fit that was stopped is complete", "complete=complete", "complete=True"),
    variational("large spreads overflow", "start + (-torch.expm1(-start)).log()", "start.expm1().log()"),
    descent("every step sees the minibatch of the first", "self.generator, self.done)", "self.generator, 0)"),
    descent("the learning rate stays", "1 - step / num_steps", "1.0"),
    descent("a divergence is told at the end", "if self.done % _CHECK_EVERY == 0:", "if False:"),
    # ensembles
    ensembles("anchors push", "noise) - pull", "noise) + pull"),
    ensembles("anchors are left out", "noise) - pull", "noise)"),
    ensembles("the prior's precision is forgotten", "    pull = -slope(anchors)", "    pull = anchors"),
    ensembles("members may start in one place", "if (position == position[0]).all():", "if False:"),
    # Laplace's approximation
    laplace("the covariance is H", "solve_triangular(roots.mT, normal", "solve_triangular(torch.linalg.inv(roots).mT, normal"),
    laplace(
        "the root is taken for its transpose",
        "torch.linalg.solve_triangular(roots.mT, normal",
        "torch.linalg.solve_triangular(roots, normal",
    ),
    laplace("coordinates that stay have a density", "- 0.5 * len(chosen)", "- 0.5 * position.shape[1]"),
    laplace(
        "every chain has the curvature of the first",
        "index_put((torch.tensor(chain, device=position.device), chosen)",
        "index_put((torch.tensor(0, device=position.device), chosen)",
    ),
    laplace("any place is a mode", "if shift.max() > 1:", "if False:"),
    laplace("the first coordinates are drawn", "samples[..., chosen] +=", "samples[..., : len(chosen)] +="),
    # dropout
    dropout("what is dropped learns", "mask * potential.gradient_given(mask * weights", "potential.gradient_given(mask * weights"),
    dropout(
        "nothing is dropped in the energy", "mask * potential.gradient_given(mask * weights", "mask * potential.gradient_given(weights"
    ),
    dropout("the rate is that of what stays", "uniform >= rate", "uniform < rate"),
    dropout("what stays is scaled up", "masks(num_samples) * weights", "masks(num_samples) * weights / (1 - rate)"),
    dropout("all draws have one mask", "masks(num_samples) * weights", "masks(1).expand(num_samples, -1, -1) * weights"),
    dropout("biases are dropped", "uniform[..., -1] = 1.0", "uniform[..., -1] += 0.0"),
    dropout("all chains have one mask", "torch.rand(number, len(weights),", "torch.rand(number, 1,"),
    # constant gradient descent
    constant_sgd("the rate is 1/V", "mass=0.5 * value", "mass=1.0 * value"),
    constant_sgd("the rate is V", "mass=0.5 * value", "mass=Matrix(0.5 * value).inverse"),
    constant_sgd("it is hot", "temperature=0.0, mass", "temperature=1.0, mass"),
    constant_sgd("a number's rate goes by the largest variance", "float(value.mean())", "float(value.max())"),
    constant_sgd("the full rate is the diagonal one", 'value.ndim == 2 and kind != "full"', "value.ndim == 2"),
    constant_sgd("what has hardly an inverse has one", "if min(noise.eigenvalues) <= resolution:", "if min(noise.eigenvalues) <= 0:"),
    # SWAG
    swag("K is taken for K − 1", "(2 * (rank - 1)) ** 0.5", "(2 * rank) ** 0.5"),
    swag("the variances count in full", "independent / 2**0.5", "independent"),
    swag("deviations are the first ones", "iterates[-rank:]", "iterates[:rank]"),
    swag("deviations are from zero", "(iterates[-rank:] - mean)", "iterates[-rank:]"),
    swag("chains share their noise", "normal_block(mean, num_samples, generator)", "normal_block(mean[:1], num_samples, generator)"),
]
