"""Faults in posteriors: scales, priors, likelihoods, squares of the examples' gradients."""

from functools import partial

from tests.faults.planting import Fault

potentials = partial(Fault, file="sgmc/potentials.py", tests="tests/test_potentials.py")
base = partial(Fault, file="sgmc/posteriors/base.py", tests="tests/test_posteriors.py tests/test_minibatches.py tests/test_noise.py")
gamma = partial(Fault, file="sgmc/posteriors/base.py", tests="tests/test_gibbs.py tests/test_factorisation.py")
network = partial(Fault, file="sgmc/posteriors/network.py", tests="tests/test_posteriors.py tests/test_gibbs.py tests/test_noise.py")
factorisation = partial(Fault, file="sgmc/models/factorisation.py", tests="tests/test_factorisation.py")
likelihoods = partial(Fault, file="sgmc/posteriors/likelihoods.py", tests="tests/test_likelihoods.py")
linear = partial(Fault, file="sgmc/posteriors/linear.py", tests="tests/test_posteriors.py tests/test_likelihoods.py tests/test_noise.py")
control_variates = partial(Fault, file="sgmc/models/control_variates.py", tests="tests/test_noise.py")
models = partial(Fault, file="sgmc/models/named.py", tests="tests/test_models.py tests/test_pyro.py")
pyro_model = partial(Fault, file="sgmc/models/pyro_model.py", tests="tests/test_pyro.py")
shards = partial(Fault, file="sgmc/machines/shards.py", tests="tests/test_shards.py")
per_example = partial(Fault, file="sgmc/posteriors/per_example.py", tests="tests/test_noise.py tests/test_likelihoods.py")

FAULTS = [
    # potentials
    potentials(
        "by hand every stochastic gradient is that of the first step",
        "*self.draw_noise(position, generator, random_step(generator) if step is None else step))",
        "*self.draw_noise(position, generator, 0 if step is None else step))",
    ),
    potentials(
        "a gradient whose noise is not known has none",
        "if type(self).gradient_given is not Potential.gradient_given:",
        "if False:",
    ),
    potentials("a gradient that is written is not used", "if type(self).gradient is Potential.gradient:", "if True:"),
    potentials("memory is that of one chain", "size = chains * dim**2 * element_size", "size = dim**2 * element_size"),
    # posteriors
    base(
        "N/n is forgotten",
        "return self._gradient(position, self.minibatch(noise), self.num_examples / noise.shape[1])",
        "return self._gradient(position, self.minibatch(noise), 1.0)",
    ),
    base(
        "a minibatch's energy forgets N/n",
        "return self._energy(position, self.minibatch(noise), self.num_examples / noise.shape[1])",
        "return self._energy(position, self.minibatch(noise), 1.0)",
    ),
    base(
        "automatic gradients forget N/n",
        "(self._log_likelihoods(variable, batch), -scale)",
        "(self._log_likelihoods(variable, batch), -1.0)",
    ),
    base("automatic gradients forget the prior", "parts += [(self.log_prior(variable), -1.0)] if prior is None else []", "pass"),
    base(
        "automatic gradients scale the prior",
        "parts += [(self.log_prior(variable), -1.0)]",
        "parts += [(self.log_prior(variable), -scale)]",
    ),
    base("the prior's gradient points outwards", "mul_(-scale).sub_(log_prior_gradient)", "mul_(-scale).add_(log_prior_gradient)"),
    base(
        "as many draws with replacement as there are data are all of them",
        "(self.batch_size == self.num_examples and not self.minibatches.replacement)",
        "self.batch_size == self.num_examples",
    ),
    base(
        "one minibatch serves all chains",
        "[indices(self.num_examples, self.batch_size, chains, seed, each).to(",
        "[indices(self.num_examples, self.batch_size, 1, seed, each).expand(chains, -1).to(",
    ),
    base("minibatches do not hang on the seed", "generator.initial_seed(), len(position)", "0, len(position)"),
    base("every block of steps sees the first minibatches", "steps = range(step, step + num_steps)", "steps = range(num_steps)"),
    base("B̂ is low by (N/n)²", "scale = total**2 / (size * (size - 1))", "scale = size / (size - 1)"),
    base("V̂ divides by n for n − 1", "scale = total**2 / (size * (size - 1))", "scale = total**2 / size**2"),
    base("V̂ of draws without replacement is that of draws with it", "(1.0 if self.minibatches.replacement else 1 - size / total)", "1.0"),
    base(
        "V̂ of draws with replacement is that of draws without it",
        "(1.0 if self.minibatches.replacement else 1 - size / total)",
        "(1 - size / total)",
    ),
    base("a diagonal V̂ is a second moment", "moment.addcmul_(gradient, gradient, value=-1 / size)", "moment"),
    base(
        "a full V̂ is a second moment",
        "            moment.baddbmm_(gradient[:, :, None], gradient[:, None, :], alpha=-1 / size)\n",
        "            pass\n",
    ),
    base("a scalar V̂ sums over the coordinates", "            scale /= position.shape[1]\n", ""),
    base(
        "a minibatch that is held forgets N/n",
        "posterior.minibatch(indices), posterior.num_examples / indices.shape[1]",
        "posterior.minibatch(indices), 1.0",
    ),
    base(
        "of a batch of all chains the examples of the first are used",
        "x.index_select(0, indices.flatten()).unflatten(0, indices.shape)",
        "x.index_select(0, indices[:1].expand(len(indices), -1).flatten()).unflatten(0, indices.shape)",
    ),
    # networks
    network("N/n is forgotten", "gradient, -scale)", "gradient, -1.0)"),
    network("the prior's energy lacks its half", "return -0.5 * (position * (self.prior", "return -1.0 * (position * (self.prior"),
    gamma("a precision's law has n for ½n", "shape + 0.5 * weights.shape[1]", "shape + weights.shape[1]"),
    gamma("a precision's law has Σw² for ½Σw²", "standard / (rate + 0.5 * squares)", "standard / (rate + squares)"),
    gamma("a precision's rate is its scale", "standard / (rate + 0.5 * squares)", "standard * (rate + 0.5 * squares)"),
    gamma("the hyperprior is Gamma(1, 1)", "shape, rate = hyperprior", "shape, rate = 1.0, 1.0"),
    gamma(
        "all chains draw their precisions from the first one's weights",
        "squares = weights.double().square().sum(-1)",
        "squares = weights.double().square().sum(-1)[:1].expand(len(weights))",
    ),
    network("weights start with the fan-in for its root", "noise * (scale / math.sqrt(fan_in))", "noise * (scale / fan_in)"),
    network(
        "precisions are taken in the order in which they are given",
        "pieces = [values[name].to(like)[..., None] for name in self._names]",
        "pieces = [value.to(like)[..., None] for value in values.values()]",
    ),
    network("other precisions change the posterior itself", "changed = copy.copy(self)", "changed = self"),
    network("a prior variance is a precision", "self._set_prior({name: 1 / variance for", "self._set_prior({name: variance for"),
    network(
        "normalisation that mixes examples is let through", "(layer.training or layer.running_mean is None)", "layer.running_mean is None"
    ),
    network("the squares of a minibatch come with minus its gradient", "return gradient.neg_(), torch.cat(", "return gradient, torch.cat("),
    network(
        "squares come in the order in which the layers are used",
        "torch.cat([squares[name] for name in self._names], -1)",
        "torch.cat(list(squares.values()), -1)",
    ),
    network("a layer that is used twice is not noticed", "        if sorted(recorder.names) != sorted(self._layers):", "        if False:"),
    # matrix factorisation
    factorisation(
        "users get the gradient of users and items that of items",
        "both = table.index_select(0, place.flip(-1).flatten()).view(*place.shape, -1)\n        slope",
        "both = table.index_select(0, place.flatten()).view(*place.shape, -1)\n        slope",
    ),
    factorisation("a rating's gradient has no part in the biases", "        both[..., -1] = 1\n", "        both[..., -1] = 0\n"),
    factorisation("the gradient forgets the noise precision", "slope = self.noise_precision * (ratings", "slope = (ratings"),
    factorisation(
        "of several ratings of a row only one counts",
        "sums[0].index_add_(0, place, each)",
        "sums[0].index_copy_(0, place, each)",
    ),
    factorisation(
        "all chains have the rows of the first", "torch.arange(0, len(position) * number, number,", "torch.zeros(len(position), dtype=int,"
    ),
    factorisation(
        "the prior of biases is that of factors",
        "user_factors.expand(*chains, 1, self.rank), user_biases]",
        "user_factors.expand(*chains, 1, self.rank + 1)]",
    ),
    factorisation(
        "a precision's draw leaves the biases out of the residuals",
        "ratings - self._predict(position, rows)\n        return {",
        "ratings - self.mean\n        return {",
    ),
    factorisation(
        "rows are drawn with the factor L for its inverse's transpose",
        "torch.linalg.solve_triangular(root.mT, noise, upper=True)",
        "root @ noise",
    ),
    factorisation(
        "rows are drawn with L⁻¹ for L⁻ᵀ",
        "torch.linalg.solve_triangular(root.mT, noise, upper=True)",
        "torch.linalg.solve_triangular(root, noise, upper=False)",
    ),
    factorisation(
        "a row's target forgets the partner's bias",
        "expand(chains, -1).flatten() - partner[:, -1])[:, None]",
        "expand(chains, -1).flatten())[:, None]",
    ),
    factorisation(
        "the information of a user is by its own precision",
        'self._entries([noise / values["item_factors"], noise / values["user_factors"],',
        'self._entries([noise / values["user_factors"], noise / values["item_factors"],',
    ),
    factorisation(
        "the noise's precision does not scale the information", "noise, noise], self.counts)", "noise / noise, noise / noise], self.counts)"
    ),
    # likelihoods
    likelihoods(
        "the Gaussian's variance is a standard deviation",
        "-0.5 * (targets - outputs) ** 2 / self.noise_variance)",
        "-0.5 * (targets - outputs) ** 2 / self.noise_variance**2)",
    ),
    likelihoods(
        "the Gaussian's slope lacks the variance", "return (targets - outputs) / self.noise_variance\n", "return targets - outputs\n"
    ),
    likelihoods(
        "the Bernoulli slope has the opposite sign", "return targets - torch.sigmoid(outputs)", "return torch.sigmoid(outputs) - targets"
    ),
    likelihoods(
        "the Bernoulli density forgets y", "targets * outputs - functional.softplus(outputs)", "outputs - functional.softplus(outputs)"
    ),
    likelihoods("log P(y = 1) is log P(y = 0)", "return functional.logsigmoid(outputs)", "return functional.logsigmoid(-outputs)"),
    likelihoods(
        "the softmax runs over the examples", "return functional.log_softmax(outputs, -1)", "return functional.log_softmax(outputs, 1)"
    ),
    likelihoods("the loss of classes is a mean", '.flatten(), reduction="sum")', '.flatten(), reduction="mean")'),
    likelihoods("several outputs are averaged", "density.flatten(2).sum(-1)", "density.flatten(2).mean(-1)"),
    # models that see x·θ alone
    linear("N/n is forgotten", "log_likelihood_gradient, alpha=-scale)", "log_likelihood_gradient, alpha=-1)"),
    linear("N/n scales the prior too", "torch.add(self.prior_precision * position,", "torch.add(scale * self.prior_precision * position,"),
    linear("the prior's variance is taken for a standard deviation", "likelihood, 1 / prior_variance", "likelihood, 1 / prior_variance**2"),
    linear("the prior's gradient points outwards", "return -self.prior_precision * position", "return self.prior_precision * position"),
    linear("the prior's energy lacks its half", "return -0.5 * self.prior_precision", "return -self.prior_precision"),
    linear(
        "squares of gradients are sums of inputs times squared weights",
        "weighted_sum(inputs.square_(), weights.square_())",
        "weighted_sum(inputs, weights.square_())",
    ),
    linear(
        "the full second moment has the squares of the weights for weights",
        "gradients = inputs.mul_(weights[..., None])",
        "gradients = inputs.mul_(weights[..., None].square())",
    ),
    linear(
        "the exact covariance leaves out the variance of the noise",
        "inputs.T @ inputs / noise_variance + identity",
        "inputs.T @ inputs + identity",
    ),
    linear(
        "the exact mean leaves out the variance of the noise",
        "self.covariance @ (inputs.T @ targets) / noise_variance",
        "self.covariance @ (inputs.T @ targets)",
    ),
    linear("the exact covariance takes the prior's variance for a precision", "identity / prior_variance", "identity * prior_variance"),
    linear(
        "the logistic energy is wrong for negative logits",
        "logit.clamp(min=0).sub_(torch.sigmoid(logit.abs()).log_())",
        "logit.abs().sub_(torch.sigmoid(logit.abs()).log_())",
    ),
    linear("the logistic energy's prior lacks its half", "energy = loss + 0.5 * self", "energy = loss + self"),
    linear("the logistic gradient's prior is N(0, 1)", "x, beta=self.prior_precision)", "x)"),
    linear(
        "every chain sees the examples of the first one",
        "(position[:, None, :] @ inputs.mT)[:, 0]",
        "(position[:, None, :] @ inputs[:1].mT)[:, 0]",
    ),
    # control variates
    control_variates("the prior does not get the linear terms back", "prior(position) + total)", "prior(position))"),
    control_variates(
        "the linear term is added, not taken away",
        "likelihood(position, *batch[:-1]) - batch[-1].sum(1)",
        "likelihood(position, *batch[:-1]) + batch[-1].sum(1)",
    ),
    control_variates("the energy keeps the linear term of each example", "- dot(batch[-1], position)", "- 0 * dot(batch[-1], position)"),
    control_variates(
        "the gradients at the reference are those of its opposite",
        "posterior.per_example_gradients(reference[None],",
        "posterior.per_example_gradients(-reference[None],",
    ),
    control_variates("the minibatches are all the data", "batch_size=posterior.batch_size", "batch_size=None"),
    control_variates("the minibatches are chosen by another rule", "        minibatches=posterior.minibatches,\n", ""),
    # squares from activations and signals
    per_example("convolutions in groups are taken for plain ones", "layer.groups == 1 and layer", "layer"),
    per_example("padding that is no zeros is taken for zeros", ' and layer.padding_mode == "zeros"', ""),
    per_example(
        "parameters of other layers are left out of the squares",
        "layers if sorted(owned) == sorted(everything) == sorted(name for name, _ in module.named_parameters()) else None",
        "layers",
    ),
    per_example(
        "a parameter that two layers share is not noticed",
        " == sorted(name for name, _ in module.named_parameters()) else",
        " else",
    ),
    per_example("a convolution's stride is ignored", "layer.padding, layer.stride)", "layer.padding)"),
    per_example("a convolution's dilation is ignored", "layer.dilation, layer.padding,", "1, layer.padding,"),
    per_example(
        "each place of an example is an example, for the weights",
        "(signal.mT @ activation).square().sum(1)",
        "(signal.square().mT @ activation.square()).sum(1)",
    ),
    per_example(
        "each place of an example is an example, for the biases", "signals.sum(2).square().sum(1)", "signals.square().sum(2).sum(1)"
    ),
    per_example(
        "a scalar sums the activations before their squares",
        "inputs, signals = inputs.square(), signals.square()\n        if kind",
        'inputs, signals = (inputs if kind == "scalar" else inputs.square()), signals.square()\n        if kind',
    ),
    per_example("biases are left out", 'if layer.bias is not None else {"weight"', 'if layer.bias is None else {"weight"'),
    # models by name
    models(
        "the Jacobian is forgotten",
        "return over_chains(self._log_prior_of, values) + log_jacobian",
        "return over_chains(self._log_prior_of, values)",
    ),
    models("the Jacobian is that of the way back", "log_jacobian = log_jacobian + each", "log_jacobian = log_jacobian - each"),
    models(
        "one batch serves all chains",
        "shared = [len(tensor) == 1 for tensor in batch]",
        "batch = [tensor[:1] for tensor in batch]\n        shared = [True for tensor in batch]",
    ),
    models("validation stays off", "Distribution.set_default_validate_args(_VALIDATION.before)", "pass"),
    models("a position on a border is let through", "if not position.isfinite().all():", "if False:"),
    pyro_model(
        "N/n counts twice",
        "share * along",
        "along",
    ),
    pyro_model(
        "a site's Jacobian is forgotten",
        "self.log_prior = self.log_prior + onto.log_abs_det_jacobian(free, value).sum()",
        "pass",
    ),
    pyro_model("the plate shows what Pyro chooses", "if name == plate else ask(", "if False else ask("),
    pyro_model("the plate's way to choose is not given back", "SubsampleMessenger._subsample = staticmethod(ask)", "pass"),
    pyro_model("programs of two threads run beside each other", "with _ALONE:", "if True:"),
    pyro_model(
        "a plate that has chosen already is let through", "if frame.name not in self.sizes and frame.size <", "if False and frame.size <"
    ),
    pyro_model("NUTS takes minibatches", "if not self._takes_all_the_data:", "if False:"),
    pyro_model(
        "what is observed outside of the plate is scaled",
        'elif self.plate is None and message["is_observed"]:',
        'elif message["is_observed"]:',
    ),
    # shards
    shards(
        "every shard has the whole prior",
        "return self._part.log_prior(position) / self.num_shards",
        "return self._part.log_prior(position)",
    ),
    shards("the gradient has the whole prior", "share, prior = 1 - 1 / self.num_shards,", "share, prior = 0.0,"),
    shards(
        "a shard carries all the data",
        "data = [tensor.index_select(0, indices.to(tensor.device)) for",
        "data = [tensor[: len(indices)] for",
    ),
    shards(
        "a shard's N is that of the whole",
        "self._part.data, self._part.num_examples = self.data, self.num_examples",
        "self._part.data = self.data",
    ),
    shards("an example may be in a shard twice", "if len(indices.unique()) < len(indices):", "if False:"),
    shards(
        "the last examples are in no shard",
        "for indices in order.tensor_split(number)",
        "for indices in order[: len(order) // number * number].chunk(number)",
    ),
]
