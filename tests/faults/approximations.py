"""Faults in approximations: bounds, descents, modes, masks, Gaussians through iterates."""

from functools import partial

from tests.faults.planting import Fault

TESTS = "tests/approximations/test_"
variational = partial(Fault, file="sgmc/approximations/variational.py", tests=f"{TESTS}variational.py")
descent = partial(Fault, file="sgmc/approximations/descent.py", tests=f"{TESTS}variational.py")
going_on = partial(Fault, file="sgmc/approximations/descent.py", tests=f"{TESTS}descent.py {TESTS}snapshots.py")
local = partial(Fault, file="sgmc/approximations/variational.py", tests=f"{TESTS}local.py")
layers = partial(Fault, file="sgmc/posteriors/network.py", tests=f"{TESTS}local.py {TESTS}dropout.py")
mixture = partial(Fault, file="sgmc/models/scale_mixture.py", tests=f"{TESTS}local.py")
snapshots = partial(Fault, file="sgmc/approximations/snapshots.py", tests=f"{TESTS}snapshots.py")
ensembles = partial(Fault, file="sgmc/approximations/ensembles.py", tests=f"{TESTS}ensembles.py")
laplace = partial(Fault, file="sgmc/approximations/laplace.py", tests=f"{TESTS}laplace.py")
dropout = partial(Fault, file="sgmc/approximations/dropout.py", tests=f"{TESTS}dropout.py")
constant_sgd = partial(Fault, file="sgmc/approximations/constant_sgd.py", tests=f"{TESTS}constant_sgd.py")
swag = partial(Fault, file="sgmc/approximations/swag.py", tests=f"{TESTS}swag.py")
distillation = partial(Fault, file="sgmc/approximations/distillation.py", tests=f"{TESTS}distillation.py")
soft = partial(Fault, file="sgmc/posteriors/likelihoods.py", tests=f"{TESTS}distillation.py")

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
    variational("a fit that was stopped is complete", "complete=way.complete", "complete=True"),
    variational("large spreads overflow", "start + (-torch.expm1(-start)).log()", "start.expm1().log()"),
    descent("every step sees the minibatch of the first", "self.generator, self.done)", "self.generator, 0)"),
    descent("the learning rate stays", "(1 - step / self.num_steps)", "1.0"),
    descent("a divergence is told at the end", "if self.done % _CHECK_EVERY == 0:", "if False:"),
    going_on("a fit that goes on forgets its optimiser", '"state": content["optimiser"]', '"state": {}'),
    going_on("a fit that goes on has other noise", 'self.generator.set_state(content["generator"].cpu())', "pass"),
    going_on("a fit that goes on forgets its cycles", 'for position in content["kept"]]', "for position in []]"),
    going_on("what was fitted does not tell files apart", '"what": what}', "}"),
    going_on("the seed does not tell files apart", '"seed": generator.initial_seed(), ', ""),
    going_on("cycles begin anew a step late", "step % self.cycle_length", "(step - 1) % self.cycle_length"),
    going_on("the momentum is α", "momentum=1 - self.momentum_decay", "momentum=self.momentum_decay"),
    going_on("the rate falls to zero in a line", "0.5 * self.learning_rate * (1 + math.cos(", "self.learning_rate * (1 - 0.318 * ("),
    # drawn outputs
    local("the prior's draw counts twice", "slopes[1].mul_(scale).add_(pull * normals)", "slopes[1].mul_(scale).add_(2 * pull * normals)"),
    local("the prior's draw says nothing of σ", ".add_(pull * normals).sub_(1 / std)", ".sub_(1 / std)"),
    local("a minibatch stands for itself", "posterior.num_examples / batch[0].shape[1]\n    pull", "1.0\n    pull"),
    local("the entropy counts twice in a local fit", "add_(pull * normals).sub_(1 / std)", "add_(pull * normals).sub_(2 / std)"),
    layers("variances add up as deviations", "variance = self._named(std.square())", "variance = self._named(std)"),
    layers(
        "inputs are not squared", "functional.linear(arguments[0].square(), weight, bias)", "functional.linear(arguments[0], weight, bias)"
    ),
    layers(
        "biases are certain", "functional.linear(arguments[0].square(), weight, bias)", "functional.linear(arguments[0].square(), weight)"
    ),
    layers("a variance is taken for a deviation", "spread.sqrt(), normal", "spread, normal"),
    layers("a root of zero has a slope that is none", " + torch.finfo(output.dtype).tiny", ""),
    layers("hooks stay", "            for handle in handles:\n                handle.remove()", "            pass"),
    layers("masks hide what leaves a layer's neighbour", "(arguments[0] * mask,)", "(arguments[0] * mask.flip(-1),)"),
    layers("a module's own numbers tell posteriors apart", "parameter.detach().zero_()", "pass", tests="tests/test_posteriors.py"),
    mixture("shares are swapped", "math.log(self.share / one)", "math.log((1 - self.share) / one)"),
    mixture("the slope has the odds of shares alone", "self.share * other / ((1 - self.share) * one)", "self.share / (1 - self.share)"),
    mixture("the prior of a single Gaussian is used", "    _with_prior = DataPotential._with_prior\n", ""),
    snapshots("a cycle too many", "Settings(num_samples * cycle_length,", "Settings((num_samples + 1) * cycle_length,"),
    # ensembles
    ensembles("anchors push", "noise) - pull", "noise) + pull"),
    ensembles("anchors are left out", "noise) - pull", "noise)"),
    ensembles("the prior's precision is forgotten", "    pull = -slope(anchors)", "    pull = anchors"),
    ensembles("members may start in one place", "if (position == position[0]).all():", "if False:"),
    ensembles("adversaries help", "inputs.detach() + size * uphill.sign()", "inputs.detach() - size * uphill.sign()"),
    ensembles("adversaries count in full", "0.5 * posterior.num_examples / inputs.shape[1]", "posterior.num_examples / inputs.shape[1]"),
    ensembles("the prior is left out beside adversaries", ".sub_(posterior.grad_log_prior(position))", ""),
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
    dropout("the rate is that of what stays", "device=weights.device) >= rates)", "device=weights.device) < rates)"),
    dropout("what stays is scaled up", "[..., units] * weights\n", "[..., units] * weights / (1 - rates[units])\n"),
    dropout("all draws have one mask", "masks(num_samples, len(weights))[", "masks(1, len(weights)).expand(num_samples, -1, -1)["),
    dropout("biases are dropped", "torch.tensor([*rates, 0.0])", "torch.tensor([*rates, 0.5])"),
    dropout("all chains have one mask", "masks(num_samples, len(weights))[", "masks(num_samples, 1)["),
    dropout("the prior is not masked", "- kept * posterior.grad_log_prior", "- posterior.grad_log_prior"),
    dropout("a minibatch of a network stands for itself", "posterior.num_examples / batch[0].shape[1]", "1.0"),
    dropout(
        "what leaves a layer is dropped",
        "] = begin + torch.arange(layer.in_features)",
        "] = begin + torch.arange(layer.out_features)[:, None] % layer.in_features",
    ),
    dropout("every layer has the rate of the first", "torch.tensor([*rates, 0.0])", "torch.tensor([*[rates[0]] * len(rates), 0.0])"),
    # SWAG
    swag("K is taken for K − 1", "(2 * (rank - 1)) ** 0.5", "(2 * rank) ** 0.5"),
    swag("the variances count in full", "independent / 2**0.5", "independent"),
    swag("deviations are the first ones", "iterates[-rank:]", "iterates[:rank]"),
    swag("deviations are from zero", "(iterates[-rank:] - mean)", "iterates[-rank:]"),
    swag("chains share their noise", "normal_block(mean, num_samples, generator)", "normal_block(mean[:1], num_samples, generator)"),
    # distillation
    distillation("the teacher is the first chain alone", "positions = samples.flatten(0, 1)", "positions = samples[:, 0]"),
    distillation(
        "copies say what their originals do",
        "teacher.predict(position[None], everything)[0]",
        "teacher.predict(position[None], inputs)[0].repeat(1 + copies, 1)",
    ),
    distillation("the noise has the root of its deviation", "noise_std * noise", "noise_std**0.5 * noise"),
    distillation("all copies are the same", "torch.randn(copies, *inputs.shape", "torch.randn(min(copies, 1), *inputs.shape"),
    distillation("averages are sums", "(total / len(positions))", "(total / len(samples))"),
    soft(
        "targets are made hard",
        "return (targets * self.log_predict(outputs)).sum(-1)",
        "return self.log_predict(outputs).gather(-1, targets.argmax(-1, keepdim=True).expand(outputs.shape[:2] + (1,)))[..., 0]",
    ),
    soft(
        "the loss of soft targets is a mean",
        'targets.expand(outputs.shape).flatten(0, 1), reduction="sum")',
        'targets.expand(outputs.shape).flatten(0, 1), reduction="mean")',
    ),
]
