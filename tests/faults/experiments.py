"""Faults in the experiments: plans, chains, averages, comparisons, and what is measured in the end."""

from functools import partial

from tests.faults.planting import Fault

plan = partial(Fault, file="experiments/plan.py", tests="tests/experiments/test_plan.py tests/experiments/test_walk.py")
walk = partial(Fault, file="experiments/walk.py", tests="tests/experiments/test_walk.py tests/experiments/test_run.py")
run = partial(Fault, file="experiments/run.py", tests="tests/experiments/test_run.py")
graphs = partial(Fault, file="experiments/graphs.py", tests="tests/experiments/test_graphs.py")
comparison = partial(Fault, file="experiments/comparison.py", tests="tests/experiments/test_comparison.py")
mnist = partial(Fault, file="experiments/mnist.py", tests="tests/experiments/test_comparison.py")
fashion = partial(Fault, file="experiments/fashion.py", tests="tests/experiments/test_fashion.py")
cifar = partial(Fault, file="experiments/cifar.py", tests="tests/experiments/test_cifar.py")
report = partial(Fault, file="experiments/report.py", tests="tests/experiments/test_report.py")
nesterov = partial(Fault, file="experiments/nesterov.py", tests="tests/experiments/test_nesterov.py")
noise = partial(Fault, file="experiments/noise.py", tests="tests/experiments/test_noise.py")
steps = partial(Fault, file="experiments/steps.py", tests="tests/experiments/test_steps.py tests/experiments/test_comparison.py")
sgnuts = partial(Fault, file="experiments/sgnuts.py", tests="tests/experiments/test_sgnuts.py")
uncertainty = partial(Fault, file="experiments/uncertainty.py", tests="tests/experiments/test_uncertainty.py")
results = partial(Fault, file="experiments/results.py", tests="tests/experiments/test_results.py")
provenance = partial(
    Fault, file="experiments/provenance.py", tests="tests/experiments/test_results.py tests/experiments/test_command_line.py"
)
command_line = partial(Fault, file="experiments/__main__.py", tests="tests/experiments/test_command_line.py")

fits = partial(Fault, file="experiments/fits.py", tests="tests/experiments/test_fits.py")
ORDERING = "tests/experiments/test_ordering.py"
ordering = partial(Fault, file="experiments/ordering.py", tests=ORDERING)
neighbours = partial(Fault, file="experiments/neighbours.py", tests="tests/experiments/test_fits.py")
weights = partial(Fault, file="experiments/weights.py", tests="tests/experiments/test_fits.py")
renyi = partial(Fault, file="experiments/renyi.py", tests="tests/experiments/test_fits.py")
bandit = partial(Fault, file="experiments/bandit.py", tests="tests/experiments/test_bandit.py")
fidelity = partial(Fault, file="experiments/fidelity.py", tests="tests/experiments/test_fidelity.py")
few = partial(Fault, file="experiments/few.py", tests="tests/experiments/test_few.py")

recommender = partial(Fault, file="experiments/recommender.py", tests="tests/experiments/test_recommender.py")

STEP_COST = "tests/test_step_cost.py"
mixture = partial(Fault, file="benchmarks/mixture.py", tests=STEP_COST)
cpp = partial(Fault, file="benchmarks/mixture.cpp", tests=STEP_COST)
cost = partial(Fault, file="benchmarks/step_cost.py", tests=STEP_COST)

FAULTS = [
    fits(
        "settings are chosen on the test digits",
        "networks(draws, task.num_networks), prepared.validation.inputs)",
        "networks(draws, task.num_networks), prepared.test.inputs)",
    ),
    fits("the worst setting is chosen", "best = min(tried,", "best = max(tried,"),
    fits(
        "only the first networks predict",
        "torch.linspace(0, len(positions) - 1, min(number, len(positions))).long()",
        ": min(number, len(positions))",
    ),
    results(
        "what is finished is taken for something else",
        "if before != json.loads(json.dumps(depends)):",
        "if False:",
        tests="tests/experiments/test_fits.py",
    ),
    fits(
        "letters are scored by single networks",
        "predict(task.posterior, positions, other.inputs).mean(0)",
        "predict(task.posterior, positions, other.inputs)[0]",
    ),
    neighbours("members of an ensemble have five budgets", "steps = task.num_steps // share", "steps = task.num_steps"),
    neighbours(
        "cycles explore with noise",
        "explorer=partial(kernel, temperature=0.0)",
        "explorer=partial(kernel, temperature=temperature)",
        tests=ORDERING,
    ),
    neighbours(
        "cycles sample without noise",
        "        partial(kernel, temperature=temperature),\n",
        "        partial(kernel, temperature=0.0),\n",
        tests=ORDERING,
    ),
    neighbours("a round of trees takes one too many", "+ 2**self.kernel.max_depth > rounds", "> rounds", tests=ORDERING),
    neighbours("a round of trees is due again", "RoundsState(inner, rounds), info", "RoundsState(inner, rounds - 1), info", tests=ORDERING),
    ordering("validation images are trained on", "x[TRAINING : TRAINING + VALIDATION]", "x[:VALIDATION]"),
    ordering(
        "images are thinned out in place of averaged",
        "functional.avg_pool2d(x.view(-1, 3, 32, 32), 2)",
        "x.view(-1, 3, 32, 32)[..., ::2, ::2]",
    ),
    ordering("cold is not the authors' temperature", "1 / num_examples", "0.1"),
    ordering("all weights have one prior", "1.0 if parameter.ndim == 1 else 1 / math.prod(parameter.shape[1:])", "1.0"),
    neighbours("constant SGD forgets its descent's share", "half = replace(task, rounds=task.rounds // 2)", "half = task"),
    neighbours(
        "the last layer is where the descent left it",
        "head = mode[:, -size:].clone()\n    way",
        "head = mode[:, -size:].clone() + 0.5\n    way",
    ),
    weights(
        "what is pruned are large weights", 'replace(draws, statistics={"mean": weights,', 'replace(draws, statistics={"mean": 1 / weights,'
    ),
    weights(
        "the mixture is fitted to N(0, 1)", "return vary(replace(task, posterior=posterior), **settings)", "return vary(task, **settings)"
    ),
    renyi(
        "the reported energy is scaled",
        "return super()._energy(position, batch, scale * self.batch_size / self.num_examples)",
        "return super()._energy(position, batch, scale)",
    ),
    renyi(
        "the reported gradient is scaled",
        "return super()._gradient(position, batch, scale * self.batch_size / self.num_examples)",
        "return super()._gradient(position, batch, scale)",
    ),
    renyi("two draws count as one gradient", "steps = max(1, task.num_steps // num_draws)", "steps = task.num_steps"),
    bandit("the oracle eats what is poisonous", "torch.where(poisonous == 1, LEAVE, EAT)", "torch.where(poisonous == 1, EAT, LEAVE)"),
    bandit("harm comes always", "(poisonous == 1) & harmed, BAD, GOOD", "poisonous == 1, BAD, GOOD"),
    bandit(
        "explorers leave", "torch.randint(2, (number,), generator=self.generator), best)", "torch.zeros(number, dtype=torch.int64), best)"
    ),
    # plans
    plan("the optimiser SGD samples: its temperature is not passed on", "SGLD(step_size, temperature=self.temperature)", "SGLD(step_size)"),
    plan(
        "SGD with momentum samples: its temperature is not passed on",
        "            temperature=self.temperature,\n            num_steps",
        "            num_steps",
    ),
    plan(
        "the noise is looked at every step, whatever the plan says",
        'OnlineNoise("diagonal", self.noise_refresh)',
        'OnlineNoise("diagonal")',
    ),
    plan("trees take α for C", "SGNUTS(step_size, self.momentum_decay / step_size,", "SGNUTS(step_size, self.momentum_decay,"),
    plan("all trees are palindromic", "weights=self.trees, integrator=self.integrator)", "weights=self.trees)"),
    plan("momenta are never fresh", "            resample_every=self.resample_every,\n        )", "        )"),
    plan("finer steps keep their friction α", "self.momentum_decay / num_steps\n", "self.momentum_decay\n"),
    plan("finer steps have η/m", "self.learning_rate / num_steps**2,", "self.learning_rate / num_steps,"),
    plan("a fan-in counts all weights of a tensor", "p[0].numel() if self.prior_by_fan_in", "p.numel() if self.prior_by_fan_in"),
    plan(
        "a falling step size rises",
        "return (1 + step / offset) ** -power",
        "return (1 + step / offset) ** power",
        tests="tests/experiments/test_report.py tests/experiments/test_run.py",
    ),
    plan(
        "a falling step size weighs the average, and does not fall",
        "rate if self.annealing is None else lambda step: self.learning_rate * self.weight(step)",
        "self.learning_rate",
        tests="tests/experiments/test_run.py",
    ),
    plan(
        "a variance used as a scale lacks its factor 2",
        "temperature=2 * decay * self.learning_rate)",
        "temperature=decay * self.learning_rate)",
        tests="tests/experiments/test_fashion.py tests/experiments/test_report.py",
    ),
    plan("fresh momenta go on after the head start", "trees=None, resample_every=None, head_start=None", "trees=None, head_start=None"),
    plan(
        "minibatches are passes after the head start, whatever they were",
        '"fresh" if self.minibatches == "held" else self.minibatches',
        '"passes"',
    ),
    plan("passes are drawn afresh", '{"passes": Passes(),', '{"passes": Fresh(),'),
    # chains
    walk(
        "a round counts samples, not their steps",
        "plan.num_steps * (len(train.targets) // plan.batch_size)",
        "(len(train.targets) // plan.batch_size)",
    ),
    walk("all seeds are one", "Generator(self.device).manual_seed(plan.seed)", "Generator(self.device).manual_seed(0)"),
    walk(
        "the precisions are drawn from the position before the round",
        "        while self.num_gradients < end:\n            self.step()\n"
        "        if self.plan.prior_precision is None and self.is_finite():\n"
        "            self.posterior = self.posterior.given(self.posterior.draw_hyperparameters(self.state.position, self.generator))\n",
        "        before = self.state.position.clone()\n"
        "        while self.num_gradients < end:\n            self.step()\n"
        "        if self.plan.prior_precision is None and self.is_finite():\n"
        "            self.posterior = self.posterior.given(self.posterior.draw_hyperparameters(before, self.generator))\n",
    ),
    walk(
        "precisions are drawn where the plan fixes them",
        "if self.plan.prior_precision is None and self.is_finite():",
        "if self.is_finite():",
    ),
    walk("precisions are never drawn", "if self.plan.prior_precision is None and self.is_finite():", "if False:"),
    walk("one minibatch is held for the whole run, not for a tree", "self.plan.seed, step=len(self.trees))", "self.plan.seed, step=0)"),
    walk("one minibatch is held whatever the seed", "size, 1, self.plan.seed, step=len(self.trees))", "size, 1, 0, step=len(self.trees))"),
    walk("a start from the prior has the precision for its variance", "self.posterior.prior.inverse.root @", "self.posterior.prior.root @"),
    walk(
        "a start from the prior has the variance for its deviation", "self.posterior.prior.inverse.root @", "self.posterior.prior.inverse @"
    ),
    walk("a round has a step too many", "while self.num_gradients < end:", "while self.num_gradients <= end:"),
    walk("minibatches come again after the head start", "._replace(num_gradients=steps)", ""),
    walk("the head start is so many gradients", "self.plan.head_start * self.gradients_per_round", "self.plan.head_start"),
    walk("a resumed run draws other numbers", '        self.generator.set_state(content["generator"].cpu())\n', ""),
    walk("a resumed run has the first precisions", '        self.posterior = self.posterior.given(content["precisions"])\n', ""),
    walk("a resumed run forgets its change of kernel", '        if content["changed"]:\n            self.change()\n', ""),
    # runs
    run(
        "the reservoir ignores the phase of the burn-in",
        "(self.done - self.plan.burn_in) % self.plan.keep_every",
        "self.done % self.plan.keep_every",
    ),
    run(
        "the reservoir holds the last network many times", "self.walk.state.position[0].cpu().clone()", "self.walk.state.position[0].cpu()"
    ),
    run(
        "averages start in the last round of the burn-in",
        "if self.done > self.plan.burn_in:\n            self.total",
        "if self.done >= self.plan.burn_in:\n            self.total",
    ),
    run(
        "averages weigh by the first step of a round",
        "round * self.walk.gradients_per_round - 1",
        "(round - 1) * self.walk.gradients_per_round",
    ),
    run("averages are over one round too many", "range(self.plan.burn_in + 1, self.done + 1)", "range(self.plan.burn_in, self.done + 1)"),
    run("networks of falling steps weigh alike", "self.total += self.weight(self.done) * self.last", "self.total += self.last"),
    run("a probability underflows in single precision", "[0].double().exp()", "[0].exp().double()"),
    run("predictions that are no numbers go on", " or not torch.isfinite(self.last).all()", ""),
    run("seconds are lost by a resume", 'self.seconds, self.processor_seconds = content["seconds"], content["processor_seconds"]', "pass"),
    run("seconds of walking are lost by a resume", '        self.walking_seconds = content["walking_seconds"]\n', ""),
    run(
        "the sum of predictions is lost by a resume",
        'self.total, self.last = content["total"].to(self.walk.device),',
        "self.total, self.last = self.total,",
    ),
    run(
        "the reservoir is lost by a resume",
        'self.reservoir, self.curve = content["reservoir"], content["curve"]',
        'self.curve = content["curve"]',
    ),
    run("a resume does not look at the examples that are scored", "checksum(train, examples)", "checksum(train)"),
    run("a resume does not look at the network", '"network": str(network), ', ""),
    run("a run says when its first part was made", 'content["made"] if content["done"] == self.plan.rounds else {}', 'content["made"]'),
    run("the curve lacks the end of the run", " or self.done == self.plan.rounds:", ":"),
    run(
        "the average of the learning curve is the last network", '"average": self.scores(self.average)', '"average": self.scores(self.last)'
    ),
    run(
        "the result scores the average as the last network",
        '"last": score(self.last.cpu(), self.targets)',
        '"last": score(self.average, self.targets)',
        tests="tests/experiments/test_run.py tests/experiments/test_comparison.py",
    ),
    # graphs
    graphs(
        "a fresh momentum is captured",
        "(plan.trees, plan.noise_refresh, plan.annealing, plan.resample_every, plan.falling) == (None, None, None, None, False)",
        "(plan.trees, plan.noise_refresh, plan.annealing) == (None, None, None)",
    ),
    graphs(
        "a captured round has the precisions of its capture",
        "                self.precisions.copy_(walk.posterior.prior.value)\n",
        "                pass\n",
    ),
    graphs(
        "a captured round has the minibatches of the first one",
        "range(walk.num_gradients, walk.num_gradients + len(self.rows))",
        "range(len(self.rows))",
    ),
    graphs("a captured round draws from another generator", "        self.graph.register_generator_state(walk.generator)\n", ""),
    graphs("a captured round leaves its state elsewhere", "                old.copy_(new)\n", "                pass\n"),
    # comparisons
    comparison("settings are chosen by the test examples", "prepared.test if tuning is None else prepared.validation", "prepared.test"),
    comparison(
        "a run of the tuning has the whole burn-in",
        "burn_in=plan.rounds // (2 * shorter))",
        "burn_in=min(plan.burn_in, plan.rounds // shorter - 1))",
    ),
    comparison("optimisers are chosen by their average", '"average" if plan.temperature > 0 else "last"', '"average"'),
    comparison("samplers are chosen by their last network", '"average" if plan.temperature > 0 else "last"', '"last"'),
    comparison("ties go to the first setting", '(table[i]["error"], table[i]["log_loss"])', 'table[i]["error"]'),
    comparison("settings are chosen by their log loss", '(table[i]["error"], table[i]["log_loss"])', 'table[i]["log_loss"]'),
    comparison("all seeds are one", "plan = replace(chosen[method], seed=seed)", "plan = chosen[method]"),
    comparison(
        "a setting is chosen for each seed anew, which is the first",
        "plan = replace(chosen[method], seed=seed)",
        "plan = replace(plans[0], seed=seed)",
    ),
    comparison("every plan is run on the same data", "make_run(plan, on(plan, prepared), options)", "make_run(plan, prepared, options)"),
    comparison("mistakes are what is right", "!= run.targets).nonzero()", "== run.targets).nonzero()"),
    comparison("mistakes of the average are those of the last network", '"average": wrong(run.average)', '"average": wrong(run.last)'),
    comparison(
        "runs of different seeds share a file",
        'f"{name}-{seed}.pt" if tuning is None',
        'f"{name}.pt" if tuning is None',
        tests="tests/experiments/test_comparison.py tests/experiments/test_steps.py",
    ),
    comparison(
        "a result's checksum leaves out the test examples",
        "checksum(prepared.train, prepared.validation, prepared.test)",
        "checksum(prepared.train, prepared.validation)",
    ),
    # what is compared
    mnist(
        "validation digits are among those for training",
        "Prepared(Data(*(x[:50_000] for x in train)), test",
        "Prepared(Data(*(x[:60_000] for x in train)), test",
    ),
    mnist(
        "validation digits of the small version are among those for training",
        "Prepared(Data(*(x[~chosen] for x in train))",
        "Prepared(Data(*(x for x in train))",
    ),
    mnist("the optimisers' precisions are drawn", "temperature=0.0, prior_precision=precision)", "temperature=0.0)"),
    mnist("the optimisers sample", "temperature=0.0, prior_precision=precision)", "prior_precision=precision)"),
    mnist("η is not divided by N", "return Plan(rate / total, decay, **size", "return Plan(rate / 1e4, decay, **size"),
    mnist("fresh minibatches are passes", 'sampler(0.1, 0.01, minibatches="fresh")', "sampler(0.1, 0.01)"),
    fashion(
        "the reported noise is the right one",
        '[plan(0.05, 0.01, minibatches="fresh").variance_as_scale()]',
        '[plan(0.05, 0.01, minibatches="fresh")]',
    ),
    fashion("the reported minibatches are passes", 'plan(0.05, 0.01, minibatches="fresh")', "plan(0.05, 0.01)"),
    fashion("SGD samples", "plan(0.5, temperature=0.0)", "plan(0.5)"),
    cifar("random features have one seed for all runs", "Generator().manual_seed(plan.seed)", "Generator().manual_seed(0)"),
    cifar("test images are not scrambled", "train, test = scramble(train, shape), scramble(test, shape)", "train = scramble(train, shape)"),
    cifar("scrambled images are as they were", ".permute(0, 2, 3, 1)\n", "\n"),
    cifar(
        "test images are standardised by themselves",
        "(x.view(len(x), colours, -1) - mean) / std)",
        "(x.view(len(x), colours, -1) - x.view(len(x), colours, -1).mean((0, 2), keepdim=True)) / std)",
    ),
    cifar("all colours are standardised together", "(0, 2), keepdim=True)[0]", "keepdim=False)"),
    cifar("features hang on the other images of a batch", "    features.eval()\n", ""),
    cifar(
        "random weights have the variance for their bound",
        "bound = 1 / math.sqrt(layer.weight[0].numel())",
        "bound = 1 / layer.weight[0].numel()",
    ),
    cifar("running statistics are those of the last images", "layer.momentum = None", "layer.momentum = 1.0"),
    cifar("the optimised network is sampled", "[replace(body, temperature=0.0)]", "[body]"),
    report("the spread is the mean of deviations", "piece.var(0).mean().sqrt()", "piece.std(0).mean()"),
    report("the length is the mean of absolute values", "piece.square().mean().sqrt()", "piece.abs().mean()"),
    report(
        "the entropy is the mean of the members' entropies",
        "entropy = predictive_entropy(average)",
        "each = [posterior.log_predict(position[None], prepared.test.inputs)[0].double().exp() for position in positions]\n"
        "    entropy = sum(map(predictive_entropy, each)) / len(positions)",
    ),
    report("annealed steps fall to less than a quarter", "plan.batch_size) / 15, 0.5)", "plan.batch_size) / 30, 0.5)"),
    report(
        "annealed steps fall in so many rounds, not steps",
        "(plan.rounds * (total // plan.batch_size) / 15, 0.5)",
        "(plan.rounds / 15, 0.5)",
    ),
    report(
        "the optimisers' weight decay is one", "replace(plan, temperature=0.0, prior_precision=precision)", "replace(plan, temperature=0.0)"
    ),
    report(
        "the optimisers sample", "replace(plan, temperature=0.0, prior_precision=precision)", "replace(plan, prior_precision=precision)"
    ),
    report("the report's minibatches are passes", 'prior_precision=1.0, minibatches="fresh", **size)', "prior_precision=1.0, **size)"),
    report("runs of the tuning have 106 rounds", "SHORTER = 20", "SHORTER = 8"),
    report("Figure 5 has η ten times too large", "sghmc, sgld = plan(0.1, 0.01), plan(2.0)", "sghmc, sgld = plan(1.0, 0.01), plan(2.0)"),
    report("Figure 5 starts small", ', start="uniform", **size', ", **size"),
    report("Nesterov's momentum in Figure 5 is the ordinary one", ", temperature=0.0, nesterov=True)", ", temperature=0.0)"),
    report("SGLD as programmed is SGLD", '"SGLD, as programmed": [sgld.variance_as_scale()]', '"SGLD, as programmed": [sgld]'),
    report("the weight decay leaves the rate as it is", "(0.032 / total) ** 0.5).rate_twice(1e-6)", "(0.032 / total) ** 0.5)"),
    report("a drawn label is the most probable one", "1 - float(right.mean())", "1 - float((right > 0.5).double().mean())"),
    nesterov(
        "the momentum is the ordinary one",
        "position.add_(momentum, alpha=1 - self.momentum_decay).sub_(gradient, alpha=self.learning_rate)",
        "position.add_(momentum)",
    ),
    nesterov("the step looks two steps ahead", "position.add_(momentum, alpha=1 - self.momentum_decay)", "position.add_(momentum)"),
    plan(
        "the rate is not applied twice",
        "learning_rate=self.learning_rate**2",
        "learning_rate=self.learning_rate",
        tests="tests/experiments/test_nesterov.py",
    ),
    plan(
        "the weight decay takes the place of the prior",
        "prior_precision=self.prior_precision + weight_decay",
        "prior_precision=weight_decay",
        tests="tests/experiments/test_nesterov.py",
    ),
    plan(
        "SGLD's wrong noise is SGHMC's",
        "decay = 1.0 if self.momentum_decay is None else self.momentum_decay",
        "decay = self.momentum_decay or 0.01",
        tests="tests/experiments/test_report.py",
    ),
    walk("a uniform start is on (−1, 1)", "position.uniform_(-2, 2,", "position.uniform_(-1, 1,"),
    run("further averages begin before the burn-in ends", "if (self.done - self.plan.burn_in) % every == 0:", "if self.done % every == 0:"),
    run(
        "further averages do not weigh",
        "                    total += self.weight(self.done) * self.last",
        "                    total += self.last",
    ),
    run("an old run had other settings", 'DEFAULTS | content["settings"]', 'content["settings"]'),
    run(
        "a resume forgets further averages",
        '        self.thinned = {every: content["thinned"][every].to(self.walk.device) for every in self.thinned}\n',
        "",
    ),
    noise("the temperature is that of the positions", "parameters_of(state.momentum)", "parameters_of(state.position)"),
    noise("the clipped share is a sum over the steps", "float(state.clipped) / state.num_gradients, 6)", "float(state.clipped), 6)"),
    noise(
        "the two plans differ in their minibatches too",
        "replace(plan, noise_refresh=1)",
        'replace(plan, noise_refresh=1, minibatches="passes")',
    ),
    steps("equal gradients are equal samples", "[replace(plan, num_steps=1)] for", "[plan] for"),
    steps("steps of a sample are not finer", "{m: one.finer(m) for", "{m: replace(one, num_steps=m) for"),
    steps("all 60,000 digits are for training", "    train = Data(*(x[:50_000] for x in train))\n", ""),
    # SGNUTS on networks
    sgnuts(
        "averages start with the last round of a burn-in",
        "if burn_in < self.done <= burn_in + AVERAGED:",
        "if burn_in <= self.done < burn_in + AVERAGED:",
    ),
    sgnuts("averages are sums", "average += self.last / AVERAGED", "average += self.last"),
    sgnuts(
        "a long tree has a point for each round that it ends",
        "        if self.moved:\n            super().record()\n",
        "        super().record()\n",
    ),
    sgnuts("the thermometer is among the pixels with data", "len(self.empty))[:, self.empty]", "len(self.empty))[:, ~self.empty]"),
    sgnuts(
        "the table takes the network before the burn-in's end",
        "if number >= burn_in * self.walk.gradients_per_round)",
        "if number > burn_in * self.walk.gradients_per_round)",
    ),
    sgnuts("the table's burn-ins are gradients", "if number >= burn_in * self.walk.gradients_per_round)", "if number >= burn_in)"),
    sgnuts("SGNUTS as reported has fresh minibatches", '"integrator": "drift_kick", "minibatches": "held"}', '"integrator": "drift_kick"}'),
    sgnuts("SGNUTS as reported has equal weights", '{"trees": "energy",', '{"trees": "uniform",'),
    sgnuts("the entropy of members is the sum since the burn-in", "self.entropy / (self.done - self.plan.burn_in))", "self.entropy)"),
    sgnuts("the entropy of members is lost by a resume", '        self.entropy = content["entropy"]\n', ""),
    sgnuts(
        "averages are lost by a resume",
        'average.to(self.walk.device) for burn_in, average in content["averages"].items()}',
        'self.averages[burn_in] for burn_in in content["averages"]}',
    ),
    sgnuts("all trees of the table are at their limit", "sum(limited for _, limited, _ in trees)", "sum(True for _, limited, _ in trees)"),
    sgnuts(
        "diverged trees are those at their limit", "sum(diverged for _, _, diverged in trees)", "sum(limited for _, limited, _ in trees)"
    ),
    sgnuts(
        "a gradient of a tree costs the whole tree",
        "return walk.num_gradients - before",
        "return 1",
        tests="tests/experiments/test_sgnuts.py::test_costs_are_those_of_a_gradient_however_many_a_step_takes",
    ),
    sgnuts(
        "energies are compared in lower precision",
        'torch.set_float32_matmul_precision("highest")',
        'torch.set_float32_matmul_precision("medium")',
    ),
    # uncertainty
    uncertainty(
        "the AUROC of disagreement is upside down",
        "area_under_roc(entropy - expected, other_entropy - other_expected)",
        "area_under_roc(other_entropy - other_expected, entropy - expected)",
    ),
    uncertainty(
        "the AUROC of disagreement is that of the entropies of members",
        "area_under_roc(entropy - expected, other_entropy - other_expected)",
        "area_under_roc(expected, other_expected)",
    ),
    uncertainty("the AUROC is upside down", "area_under_roc(entropy, other_entropy)", "area_under_roc(other_entropy, entropy)"),
    uncertainty(
        "the digits are never turned",
        "predict(posterior, positions, turned(digits, angle).inputs)",
        "predict(posterior, positions, digits.inputs)",
    ),
    uncertainty("the digits are turned clockwise", "28), angle, Interpolation", "28), -angle, Interpolation"),
    uncertainty(
        "the entropy is the mean of the members' entropies",
        "    entropy = predictive_entropy(probabilities)\n    confidence",
        "    entropy = expected\n    confidence",
    ),
    uncertainty("disagreement is the entropy of the average", "_rounded((entropy - expected).mean())", "_rounded(entropy.mean())"),
    uncertainty("entropies of members are summed", "predictive_entropy(one) / len(positions)", "predictive_entropy(one)"),
    uncertainty(
        "the point estimate is averaged, and the average is a point",
        'torch.stack(content["reservoir"]) if average else content["walk"]["position"]',
        'content["walk"]["position"] if average else torch.stack(content["reservoir"])',
    ),
    uncertainty(
        "runs that are not finished predict",
        'if content["done"] < content["settings"]["rounds"]:',
        'if content["done"] < 0:',
    ),
    # results
    results(
        "a result of another version is read",
        "    if version != FORMAT:\n",
        "    if version is None:\n",
    ),
    results(
        "a result of another version is written over",
        "    if path.exists():\n        read_result(path)\n",
        "",
    ),
    results(
        "the Brier score is the log loss",
        '"brier": brier_score',
        '"brier": log_score',
    ),
    provenance(
        "a checksum leaves out the targets",
        "for tensor in part or ():",
        "for tensor in (part or ())[:1]:",
        tests="tests/experiments/test_results.py",
    ),
    provenance(
        "a command does not say that the run was small",
        '(" --small" if options.small else "") + ',
        '"" + ',
        tests="tests/experiments/test_command_line.py::test_small_runs_write_results_with_their_provenance",
    ),
    command_line(
        "a small run writes into the book",
        "(options.runs if given.small else given.results)",
        "given.results",
        tests="tests/experiments/test_command_line.py::test_small_runs_write_results_with_their_provenance",
    ),
    command_line(
        "earlier runs are started over",
        " and any(folder.iterdir()) and not given.resume:",
        " and False:",
        tests="tests/experiments/test_command_line.py::test_earlier_runs_are_not_started_over",
    ),
    command_line(
        "a result of another version stops the run after its work",
        "            read_result(old)  # of another version",
        "            pass  # of another version",
        tests="tests/experiments/test_command_line.py::test_a_result_of_another_version_stops_the_run_before_it_starts",
    ),
    command_line(
        "a number of seeds below one is taken",
        "    if seeds < 1:\n",
        "    if seeds < -1:\n",
        tests="tests/experiments/test_command_line.py::test_bad_options_are_refused",
    ),
    few(
        "networks are herded by the test digits",
        "posterior, draws.samples[:, 0], prepared.validation.inputs).flatten(1)",
        "posterior, draws.samples[:, 0], prepared.test.inputs).flatten(1)",
    ),
    few("the other chain is the same", "replace(task, seed=task.seed + OTHER_CHAIN)", "task"),
    few("the last networks are the first", "torch.arange(total - number, total)", "torch.arange(number)"),
    few("a student with a copy has twice the budget", "task.rounds // (1 + copies)", "task.rounds"),
    few(
        "students are tuned by the labels",
        "if name == LABELS else predictive_distance(predicted, teacher)",
        "if True else predictive_distance(predicted, teacher)",
    ),
    few("disagreement is that of one network", "alone = [predictive_entropy(each).mean(0)", "alone = [predictive_entropy(each)[0]"),
    few("other rates go on with old results", '"run", seed, {"rates": rates},', '"run", seed, {},'),
    # fidelity
    fidelity("patients are scaled by all of them", "((x - x[:280].mean(0)) / x[:280].std(0))", "((x - x.mean(0)) / x.std(0))"),
    fidelity("a patient is in two parts", "slice(280, 342), slice(342, 442)", "slice(270, 332), slice(342, 442)"),
    fidelity(
        "settings are chosen by fidelity's own error", 'prefer=lambda found: found["log_loss"],', 'prefer=lambda found: -found["log_loss"],'
    ),
    fidelity(
        "settings are chosen on the test examples",
        "predict(task.posterior, draws.samples.flatten(0, 1), prepared.validation.inputs)\n        return problem.scores(singles, "
        "prepared.validation.targets)",
        "predict(task.posterior, draws.samples.flatten(0, 1), prepared.test.inputs)\n        return problem.scores(singles, "
        "prepared.test.targets)",
    ),
    fidelity("a reference that has not mixed is used", "        refuse_unmixed(rhat, problem.largest_rhat)\n", "        pass\n"),
    fidelity("fits of another reference are taken for finished", 'depends={"reference": ', 'depends={} and {"reference": '),
    fidelity(
        "the log loss is of the mean and not of the mixture",
        "densities.logsumexp(0).mean()",
        "(densities.mean(0) + math.log(len(singles))).mean()",
    ),
    fidelity("the curvature leaves out the likelihood's", "(jacobian.mT @ (middle @ jacobian))", "(jacobian.mT @ jacobian)"),
    fidelity(
        "the curvature leaves out the prior",
        "(posterior.prior @ torch.eye(len(position)).to(position))",
        "torch.zeros(len(position), len(position))",
    ),
    fidelity(
        "draws have the covariance H", "torch.linalg.solve_triangular(root.mT, normal[..., None], upper=True)", "(root @ normal[..., None])"
    ),
    fidelity("trajectories are counted as gradients", "task.rounds // (num_steps + 1)", "task.rounds"),
    fidelity("ten times the rounds are one time", "rounds=LONGER * task.rounds", "rounds=task.rounds"),
    fits(
        "a fit depends on nothing else",
        '"data": data, **depends},',
        '"data": data},',
        tests="tests/experiments/test_fidelity.py",
    ),
    # the recommender
    recommender("validation ratings are learnt from", "return (others[len(others) // 10 :],", "return (others,"),
    recommender("a test part is a part of what is learnt", "order[torch.arange(number) % FOLDS != fold], order", "order, order"),
    recommender("the width of a new rating forgets its noise", "means.square() + self.noise / self.number)", "means.square())"),
    recommender(
        "the noise is the first draw's", "self.noise + 1 / float(posterior.noise_precision)", "1 / float(posterior.noise_precision)"
    ),
    recommender(
        "the minibatches' noise is taken for N/n times what it is", "noise = loudness * information", "noise = loudness**2 * information"
    ),
    recommender(
        "who names an empty folder gets made-up ratings", "            raise  # who names a folder means it\n", "            pass\n"
    ),
    recommender("samplers subtract the noise of passes", "return Passes() if method is descend else Fresh()", "return Passes()"),
    recommender("precisions are drawn while factors are near zero", "if number >= burn_in // 2:", "if True:"),
    recommender(
        "the worst setting is chosen", 'best = min(finite, key=lambda row: row["rmse"])', 'best = max(finite, key=lambda row: row["rmse"])'
    ),
    # what a step costs
    cpp("the C++ program forgets N/n", "static_cast<Real>(job.number) / size, noise", "static_cast<Real>(1), noise"),
    cpp("the C++ program sees one minibatch for ever", "std::swap(data[i], data[i + normals.below(job.number - i)])", "(void)0"),
    cpp("the C++ program kicks uphill", "r0 = decay * r0 - eps * g0", "r0 = decay * r0 + eps * g0"),
    mixture(
        "NumPy leaves the gradient's noise out", "gradient += noise * rng.standard_normal(2)", "gradient += 0 * rng.standard_normal(2)"
    ),
    mixture(
        "the second mean's gradient has the wrong sign",
        "weighted - weights * first, total - weighted",
        "weighted - weights * first, weighted - total",
    ),
    cost(
        "the first layer's inputs get a gradient in the count",
        "2 * batch * (3 * sum(products) - products[0])",
        "2 * batch * (3 * sum(products))",
    ),
    cost("the means are not sorted before their sample size", "np.sort(draws, -1)  #", "np.asarray(draws)  #"),
]
