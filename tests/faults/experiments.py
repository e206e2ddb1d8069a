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
reported = partial(Fault, file="experiments/fashion_reported.py", tests="tests/experiments/test_fashion_reported.py")
hour = partial(Fault, file="experiments/cifar_hour.py", tests="tests/experiments/test_cifar_hour.py")
report = partial(Fault, file="experiments/report.py", tests="tests/experiments/test_report.py")
nesterov = partial(Fault, file="experiments/nesterov.py", tests="tests/experiments/test_nesterov.py")
noise = partial(Fault, file="experiments/noise.py", tests="tests/experiments/test_noise.py")
steps = partial(Fault, file="experiments/steps.py", tests="tests/experiments/test_steps.py tests/experiments/test_comparison.py")
sgnuts = partial(Fault, file="experiments/sgnuts.py", tests="tests/experiments/test_sgnuts.py")
held = partial(Fault, file="experiments/held.py", tests="tests/experiments/test_held.py")
trees = partial(Fault, file="experiments/trees.py", tests="tests/experiments/test_trees.py")
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
setting = partial(Fault, tests="tests/experiments/test_published.py")  # of any experiment
record = partial(Fault, tests="tests/experiments/test_records.py")  # of any experiment
published = partial(Fault, file="experiments/published.py", tests="tests/experiments/test_published.py")

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
    plan("a held minibatch serves one step of a sample", "return Held(self.num_steps, rule) if", "return rule if"),
    walk("a uniform start is between zero and four", "position.uniform_(-2, 2,", "position.uniform_(0, 4,"),
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
    reported("the start of Figure 7a is small", 'start="uniform", ', ""),
    reported("its minibatches are passes", 'minibatches="fresh", ', ""),
    reported("its momentum is not Nesterov's", ", nesterov=True", ""),
    reported("its SGHMC has the right noise", '"SGHMC": [momentum.variance_as_scale()]', '"SGHMC": [momentum]'),
    reported("it has a hundred rounds after the warm-up", '"rounds": 900', '"rounds": 200'),
    reported("the most probable class is scored, and not a drawn one", "gather(1, run.targets[:, None])", "max(1)[0]"),
    cifar(
        "random features have one seed for all runs",
        "random_features(train, test, shape, Generator().manual_seed(plan.seed))",
        "random_features(train, test, shape, Generator().manual_seed(0))",
    ),
    cifar("the reported start is small", 'start="uniform", ', ""),
    cifar("the reported run is short", "rounds=950", "rounds=170"),
    cifar("the heat is that of a standard deviation", "slopes.var(0)", "slopes.std(0)"),
    cifar("the heat is that of the rate at the start", "plan.rate(run.done - 1)", "plan.learning_rate"),
    cifar("convolutions that are held are wide", ".div_(math.sqrt(layer.weight[0].numel()))", ""),
    hour("the cooled sampler is hot", ", cooled=COOLED", ""),
    walk("a cooled walk keeps its first rate", "if self.plan.falling or self.plan.cooled is not None:", "if self.plan.falling:"),
    plan("a cooled rate falls on after the burn-in", "min(done, self.burn_in) / max(self.burn_in, 1)", "done / self.rounds"),
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
    held("with α fixed the friction is", "momentum_decay=one.momentum_decay", "momentum_decay=plan.momentum_decay"),
    held("minibatches are fresh for every step", ', minibatches="held")', ")"),
    held("the start is that of an optimiser", 'start="uniform", ', ""),
    held("steps of a sample are not finer", "replace(one.finer(m), ", "replace(one, num_steps=m, "),
    # the table of warm-ups by trees
    trees("the head start is so many gradients", "return len(self.trees) >=", "return self.num_gradients >="),
    trees("averages of an epoch are sums", "(self.epoch_total / samples).cpu()", "self.epoch_total.cpu()"),
    trees("epochs are averaged from the start", "            self.epoch_total = torch.zeros_like(self.last)\n", ""),
    trees("an epoch ends a sample late", "return (self.done - 1) //", "return self.done //"),
    trees("the hybrid has three epochs of trees", "head_start=1)", "head_start=3)"),
    trees("the noise is that of the posterior after all", "replace(sghmc.variance_as_scale(), method", "replace(sghmc, method"),
    trees(
        "the average of an epoch is lost by a resume",
        'content["epoch_total"].to(self.walk.device), content["lines"]',
        'self.epoch_total, content["lines"]',
    ),
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
    sgnuts(
        "SGNUTS as we read the report has fresh minibatches",
        '"integrator": "drift_kick", "minibatches": "held"}',
        '"integrator": "drift_kick"}',
    ),
    sgnuts("SGNUTS as we read the report has equal weights", '{"trees": "energy",', '{"trees": "uniform",'),
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
    # settings, against those that are published and those that are stored
    setting(
        "learning rates are ten times too large",
        "rate / total, decay, prior_precision=1.0",
        "10 * rate / total, decay, prior_precision=1.0",
        "experiments/report.py",
    ),
    setting("the report's units are sigmoid", 'mnist.LAYERS, "relu")', 'mnist.LAYERS, "sigmoid")', "experiments/report.py"),
    setting("warm-up rounds are among the report's 800", 'else {"rounds": 850}', 'else {"rounds": 800}', "experiments/report.py"),
    setting(
        "SGHMC's learning rate is ten times too large",
        '"SGHMC": [sampler(0.1, 0.01)],',
        '"SGHMC": [sampler(1.0, 0.01)],',
        "experiments/mnist.py",
    ),
    setting(
        "the paper's units are rectified",
        '(multilayer_perceptron, LAYERS, "sigmoid")',
        '(multilayer_perceptron, LAYERS, "relu")',
        "experiments/mnist.py",
    ),
    setting("the paper has 200 hidden units", "LAYERS = [784, 100, 10]", "LAYERS = [784, 200, 10]", "experiments/mnist.py"),
    setting("a minibatch has 100 examples", "batch_size: int = 500", "batch_size: int = 100", "experiments/plan.py"),
    setting("a burn-in has 100 rounds", "burn_in: int = 50", "burn_in: int = 100", "experiments/plan.py"),
    setting(
        "learning rates are for 5,000 clothes", "    total = len(prepared.train.targets)\n", "    total = 5_000\n", "experiments/fashion.py"
    ),
    setting(
        "all 60,000 clothes are for training",
        "Prepared(Data(*(x[:50_000] for x in train)), test, network, folder, ",
        "Prepared(train, test, network, folder, ",
        "experiments/fashion.py",
    ),
    setting(
        "validation clothes are among those for training",
        "Data(*(x[50_000:] for x in train)))",
        "Data(*(x[40_000:50_000] for x in train)))",
        "experiments/fashion.py",
    ),
    setting(
        "the clothes' units are sigmoid",
        '(multilayer_perceptron, LAYERS, "relu")',
        '(multilayer_perceptron, LAYERS, "sigmoid")',
        "experiments/fashion.py",
    ),
    setting(
        "images are not scrambled as reported",
        "data=SCRAMBLED).variance_as_scale()",
        "data=FEATURES).variance_as_scale()",
        "experiments/cifar.py",
    ),
    setting("CIFAR-10's learning rate is ten times too large", "rate = 0.05 / len(", "rate = 0.5 / len(", "experiments/cifar.py"),
    setting(
        "random features are as many as pixels", "train.inputs.shape[1], 100, 10]", "train.inputs.shape[1], 10, 10]", "experiments/cifar.py"
    ),
    setting("a step's learning rate is ten times too large", "Plan(0.1 / len(", "Plan(1.0 / len(", "experiments/steps.py"),
    setting("the units of the steps are sigmoid", 'LAYERS, "relu")', 'LAYERS, "sigmoid")', "experiments/steps.py"),
    setting(
        "trees on MNIST have ten times the learning rate",
        'Plan(2e-6, 0.01, data="MNIST"',
        'Plan(2e-5, 0.01, data="MNIST"',
        "experiments/sgnuts.py",
    ),
    setting(
        "trees learn from all 60,000 digits",
        "Prepared(Data(*(x[:50_000] for x in train)), test",
        "Prepared(train, test",
        "experiments/sgnuts.py",
    ),
    setting(
        "trees have units of another kind",
        "partial(multilayer_perceptron, LAYERS)",
        'partial(multilayer_perceptron, LAYERS, "tanh")',
        "experiments/sgnuts.py",
    ),
    setting("trees as we read the report are palindromic", '"integrator": "drift_kick", ', "", "experiments/sgnuts.py"),
    setting("Rényi's α is 0.1", "ALPHA = 0.01", "ALPHA = 0.1", "experiments/renyi.py"),
    setting(
        "the report's fit has one draw a step",
        "num_draws=2, alpha=ALPHA, **task.run())",
        "num_draws=1, alpha=ALPHA, **task.run())",
        "experiments/renyi.py",
    ),
    setting(
        "the report's fit has ten times the rate",
        '"num_steps": task.num_steps, "learning_rate": 1e-3}',
        '"num_steps": task.num_steps, "learning_rate": 1e-2}',
        "experiments/renyi.py",
    ),
    setting(
        "SGHMC beside the fits has ten times the rate",
        "partial(sghmc, rate=0.1, decay=0.01)",
        "partial(sghmc, rate=1.0, decay=0.01)",
        "experiments/renyi.py",
    ),
    setting(
        "SGLD on the mixture has ten times the step",
        '"SGLD": (falling, grid(rate=(0.043,)))',
        '"SGLD": (falling, grid(rate=(0.43,)))',
        "experiments/modes.py",
    ),
    setting("steps fall from the first one on", "held: int = 500 ", "held: int = 0 ", "experiments/modes.py"),
    setting("all of a cycle is kept", "SKIPPED = 50 / 1667", "SKIPPED = 0", "experiments/modes.py"),
    setting("the bandit forgets too soon", "BUFFER, BATCH = 20, 4096, 64", "BUFFER, BATCH = 20, 1024, 64", "experiments/bandit.py"),
    setting("the bandit has 50 units", "[inputs.shape[1], 100, 100, 1]", "[inputs.shape[1], 50, 50, 1]", "experiments/bandit.py"),
    setting("agents meet 500 mushrooms", "interactions = 500 if options.small else 5_000", "interactions = 500", "experiments/bandit.py"),
    setting(
        "a minibatch is a twentieth of the ratings",
        "FOLDS, BATCHES, PASSES = 5, 200, 200",
        "FOLDS, BATCHES, PASSES = 5, 20, 2_000",
        "experiments/recommender.py",
    ),
    setting("there are ten factors", "RANK, MADE_UP_RANK = 20, 5", "RANK, MADE_UP_RANK = 10, 5", "experiments/recommender.py"),
    setting(
        "another rate falls than in the stored runs",
        "for rate in (0.1, 0.2, 0.4) for precision",
        "for rate in (0.1, 0.2) for precision",
        "experiments/falling.py",
    ),
    setting(
        "the noise is looked at every tenth step",
        "replace(plan, noise_refresh=1)",
        "replace(plan, noise_refresh=10)",
        "experiments/noise.py",
    ),
    setting(
        "fits have half of the stored rounds",
        "ROUNDS, NETWORKS, MEMBERS, CYCLES = 60,",
        "ROUNDS, NETWORKS, MEMBERS, CYCLES = 30,",
        "experiments/neighbours.py",
    ),
    setting(
        "a setting of the stored fits is not tried",
        "for rate in (0.25, 0.5, 1.0, 2.0)]),",
        "for rate in (0.25, 0.5, 1.0)]),",
        "experiments/neighbours.py",
    ),
    setting("cold is not as cold as in the stored fits", "1 / num_examples", "10 / num_examples", "experiments/ordering.py"),
    setting("dropped shares are not those of the stored fits", "[0.2, 0.5, 0.5]", "[0.2, 0.2, 0.2]", "experiments/weights.py"),
    setting("the reference is shorter than the stored one", "num_samples=3_000", "num_samples=300", "experiments/fidelity.py"),
    setting("networks are kept at other distances than the stored ones", "EVERY = 10 ", "EVERY = 20 ", "experiments/few.py"),
    setting(
        "angles are not the stored ones", "ANGLES = [0, 15, 30, 45, 60, 75, 90]", "ANGLES = [0, 30, 60, 90]", "experiments/uncertainty.py"
    ),
    published(
        "several settings are taken for one",
        "len(values) == 1 and _equal(expected, values[0])",
        "any(_equal(expected, value) for value in values)",
    ),
    published("a setting that was tried is enough for all", "return all(any(_equal(one, other)", "return any(any(_equal(one, other)"),
    published("numbers of one order are the same", "rel_tol=1e-9", "rel_tol=0.95"),
    published(
        "what is changed may have any value",
        "elif not _holds(expected, values):",
        "elif not why and not _holds(expected, values):",
    ),
    published("a change that is gone stays", '"changed back" if _holds(published, values) else "changed"', '"changed"'),
    published("examples are counted without the steps of a sample", ' / plan.get("num_steps", 1) *', " *"),
    published("the runs of the tuning are left out", "of_plans(plans + tried,", "of_plans(plans,"),
    # what results record beside their scores
    record(
        "seconds are those of the processor",
        '"seconds": round(self.seconds, 1),',
        '"seconds": round(self.processor_seconds, 1),',
        "experiments/run.py",
    ),
    record(
        "the length is a sum of absolute values",
        "float(self.walk.state.position.square().sum())",
        "float(self.walk.state.position.abs().sum())",
        "experiments/run.py",
    ),
    record(
        "a drawn precision starts at 0.1",
        "precision = 1.0 if self.prior_precision is None",
        "precision = 0.1 if self.prior_precision is None",
        "experiments/plan.py",
    ),
    record(
        "runs are on the processor, whatever is asked for",
        "examples, options.device, path)",
        'examples, "cpu", path)',
        "experiments/comparison.py",
    ),
    record(
        "a summary has the last network for the average",
        "mean(lambda run: run['average']['error']):15.2%",
        "mean(lambda run: run['last']['error']):15.2%",
        "experiments/comparison.py",
    ),
    record(
        "the machine is the processor, whatever was used",
        '"machine": machine(device)',
        '"machine": machine("cpu")',
        "experiments/provenance.py",
    ),
    record(
        "the report looks at one network", "look(run.reservoir, prepared)", "look(run.reservoir[:1], prepared)", "experiments/report.py"
    ),
    record(
        "the last burn-in of the table is another",
        "BURN_INS = [0, 1, 2, 5, 10, 25]",
        "BURN_INS = [0, 1, 2, 5, 10, 20]",
        "experiments/sgnuts.py",
    ),
    record("five rounds are averaged after a burn-in", "AVERAGED = 25", "AVERAGED = 5", "experiments/sgnuts.py"),
    record(
        "pixels that one digit lacks are the thermometer",
        "(prepared.train.inputs == 0).all(0)",
        "(prepared.train.inputs == 0).any(0)",
        "experiments/sgnuts.py",
    ),
    record(
        "seconds of trees are those with predictions",
        '"processor_seconds": round(self.walking_seconds, 2)',
        '"processor_seconds": round(self.processor_seconds, 2)',
        "experiments/sgnuts.py",
    ),
    record("SGHMC is a point estimate", '"SGHMC": ("SGHMC", True)', '"SGHMC": ("SGHMC", False)', "experiments/uncertainty.py"),
    record("SGHMC is SGLD", '"SGHMC": ("SGHMC", True)', '"SGHMC": ("SGLD", True)', "experiments/uncertainty.py"),
    record(
        "the point estimate is an average",
        '"SGD with momentum": ("SGD with momentum", False)',
        '"SGD with momentum": ("SGD with momentum", True)',
        "experiments/uncertainty.py",
    ),
    record(
        "clothes are training images", "fashion_mnist(options.data)[1]}", "fashion_mnist(options.data)[0]}", "experiments/uncertainty.py"
    ),
    record(
        "reliability has five bins",
        "reliability_curve(probabilities, targets)",
        "reliability_curve(probabilities, targets, 5)",
        "experiments/uncertainty.py",
    ),
    record("convolutions are three by three", "shape, channels, kernel_size=5)", "shape, channels, kernel_size=3)", "experiments/cifar.py"),
    record("cycles explore for a fifth", "EXPLORATION = 0.8", "EXPLORATION = 0.2", "experiments/neighbours.py"),
    record("ten networks predict", "CYCLES = 60, 30, 5, 6", "CYCLES = 60, 10, 5, 6", "experiments/neighbours.py"),
    record("paths are shorter", "DEPTH = 5 ", "DEPTH = 3 ", "experiments/neighbours.py"),
    record(
        "minibatches of the neighbours have 100 digits",
        "if options.small else (ROUNDS, 500)",
        "if options.small else (ROUNDS, 100)",
        "experiments/neighbours.py",
    ),
    record("the neighbours' units are sigmoid", 'mnist.LAYERS, "relu")', 'mnist.LAYERS, "sigmoid")', "experiments/neighbours.py"),
    record("SWAG has rank two", "rank=min(20,", "rank=min(2,", "experiments/neighbours.py"),
    record("constant SGD is slower the smaller its share", ".mean()) / share)", ".mean()) * share)", "experiments/neighbours.py"),
    record(
        "weights are drawn, not outputs",
        '"initial_std": initial_std, "local": True}',
        '"initial_std": initial_std, "local": False}',
        "experiments/neighbours.py",
    ),
    record(
        "minibatches on MNIST have 128 digits",
        "if options.small else (ROUNDS, 250)",
        "if options.small else (ROUNDS, 128)",
        "experiments/weights.py",
    ),
    record("hidden layers have 800 units", "units: int = 400", "units: int = 800", "experiments/weights.py"),
    record(
        "the evidence bound has one draw a step",
        '"evidence bound": partial(vary, num_draws=2)',
        '"evidence bound": partial(vary, num_draws=1)',
        "experiments/renyi.py",
    ),
    record("the teacher has ten times the rate", "RATE, DECAY = 0.4, 0.1", "RATE, DECAY = 4.0, 0.1", "experiments/few.py"),
    setting(
        "a choice is made by half as short runs",
        "    shorter: int = 8,\n    look",
        "    shorter: int = 4,\n    look",
        "experiments/comparison.py",
    ),
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
