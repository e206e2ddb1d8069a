"""Faults in kernels, the known ones of the field among them."""

from functools import partial

from tests.faults.planting import Fault

metropolis = partial(Fault, file="sgmc/kernels/metropolis.py", tests="tests/kernels/test_metropolis.py tests/kernels/test_hmc.py")
random_walk = partial(Fault, file="sgmc/other_kernels/random_walk.py", tests="tests/kernels/test_random_walk.py tests/test_gibbs.py")
hmc = partial(Fault, file="sgmc/kernels/hmc.py", tests="tests/kernels/test_hmc.py tests/test_gibbs.py")
trees = partial(Fault, file="sgmc/kernels/trees.py", tests="tests/kernels/test_trees.py tests/kernels/test_nuts.py")
nuts = partial(Fault, file="sgmc/kernels/nuts.py", tests="tests/kernels/test_nuts.py tests/kernels/test_sgnuts.py tests/test_gibbs.py")
langevin = partial(Fault, file="sgmc/kernels/langevin.py", tests="tests/kernels/test_langevin.py")
momentum = partial(Fault, file="sgmc/kernels/momentum.py", tests="tests/kernels/test_metropolis.py tests/kernels/test_sghmc.py")
naive = partial(Fault, file="sgmc/kernels/naive_sghmc.py", tests="tests/kernels/test_naive_sghmc.py tests/test_potentials.py")
sghmc = partial(Fault, file="sgmc/kernels/sghmc.py", tests="tests/kernels/test_sghmc.py")
sgnuts = partial(Fault, file="sgmc/kernels/sgnuts.py", tests="tests/kernels/test_sgnuts.py")
splitting = partial(Fault, file="sgmc/splittings/kernel.py", tests="tests/kernels/test_splitting.py")
cyclical = partial(Fault, file="sgmc/other_kernels/cyclical.py", tests="tests/kernels/test_cyclical.py")
gibbs = partial(Fault, file="sgmc/other_kernels/gibbs.py", tests="tests/test_gibbs.py")
noise = partial(Fault, file="sgmc/noise.py", tests="tests/test_noise.py tests/kernels/test_sghmc.py")

FAULTS = [
    # Metropolis
    metropolis("acceptance has the opposite sign", "(energy - proposed_energy).clamp", "(proposed_energy - energy).clamp"),
    metropolis(
        "an energy of minus infinity is accepted",
        "proposed_energy = torch.where(proposed_energy.isfinite(), proposed_energy, math.inf)",
        "proposed_energy = proposed_energy.nan_to_num(nan=math.inf, neginf=-math.inf, posinf=math.inf)",
    ),
    metropolis("an acceptance that is no number is reported", ".nan_to_num(nan=0.0)\n    uniform", "\n    uniform"),
    metropolis("one number decides for all chains", "torch.rand(energy.shape, generator", "torch.rand(1, generator"),
    random_walk(
        "the step size is a variance",
        "state.position + self.step_size * normal_like(",
        "state.position + self.step_size**0.5 * normal_like(",
    ),
    random_walk(
        "a rejected chain keeps the energy of its proposal",
        "energy = torch.where(accepted, proposed_energy, state.energy)",
        "energy = proposed_energy",
    ),
    random_walk(
        "energies are those of the potential of before",
        "return RandomWalkState(state.position, potential.energy(state.position))",
        "return state",
    ),
    # HMC
    hmc(
        "a rejected chain does not turn round",
        "torch.where(accepted[:, None], momentum, -start)",
        "torch.where(accepted[:, None], momentum, start)",
    ),
    hmc("a rejected chain keeps the momentum of its proposal", "torch.where(accepted[:, None], momentum, -start)", "-momentum"),
    hmc("a rejected chain keeps the energy of its proposal", "            energy = torch.where(accepted, energy, state.energy)\n", ""),
    hmc(
        "acceptance forgets the momenta",
        "accept(before, after, generator)",
        "accept(state.energy, energy, generator)",
    ),
    hmc(
        "acceptance has the opposite sign",
        "accept(before, after, generator)",
        "accept(after, before, generator)",
    ),
    hmc(
        "a share of the momentum is kept that is 1 − φ, not √(1 − φ²)",
        "kept = math.sqrt(1 - self.refreshment**2)",
        "kept = 1 - self.refreshment",
    ),
    hmc("a trajectory ignores the mass", "            num_steps,\n            self._mass,\n", "            num_steps,\n"),
    hmc("the longest trajectory is never drawn", "torch.randint(low, high + 1, ()", "torch.randint(low, high, ()"),
    hmc("jitter falls short of a step", "math.floor(round(self.jitter * self.num_steps, 9))", "math.floor(self.jitter * self.num_steps)"),
    hmc("the first gradient of a trajectory is not counted", "state.num_gradients + num_steps + 1", "state.num_gradients + num_steps"),
    hmc("energies are those of the potential of before", "return state._replace(energy=potential.energy(state.position))", "return state"),
    # trees
    trees(
        "a new half is chosen with its share of the weights: no biased progressive sampling",
        "(log_uniform < branch.log_weight - log_weight)",
        "(log_uniform < branch.log_weight - torch.logaddexp(log_weight, branch.log_weight))",
    ),
    trees("a half that turned is chosen from", "moves = growing & (log_uniform", "moves = (log_uniform"),
    trees(
        "the weights of a path are those of its last half",
        "log_weight = torch.logaddexp(log_weight, branch.log_weight)",
        "log_weight = branch.log_weight",
    ),
    trees("within a half the last state is too likely", "log_uniform < new - log_weight, end", "log_uniform < new - log_weight + 0.7, end"),
    trees("within a half all states are alike but for the last", "log_uniform < new - log_weight, end", "log_uniform < new, end"),
    trees("paths grow to one side alone", "uniforms[0, doubling] < 0.5", "uniforms[0, doubling] < 0.0"),
    trees("sub-trees are not checked for turns", "            not_turning = not_turning & together\n", ""),
    trees("halves are not checked with the first state of the other", "    if old.num_states > 1:\n", "    if False:\n"),
    trees("a path turned round keeps the sum of its momenta", "torch.where(turned_round[:, None], -total, total)", "total"),
    trees(
        "the far end's momentum points inwards",
        "Span(-far.momentum, near.momentum, total, 2**doubling)",
        "Span(far.momentum, near.momentum, total, 2**doubling)",
    ),
    trees("a path goes on until it turns at both ends", ".sum(-1).amin((0, 1)) > 0", ".sum(-1).amax((0, 1)) > 0"),
    trees(
        "the turn is told by momenta, whatever the mass",
        "totals if isinstance(inverse_mass.value, float) else inverse_mass @ totals",
        "totals",
        tests="tests/kernels/test_trees.py tests/kernels/test_sgnuts.py",
    ),
    trees("the acceptance of a step may exceed one", "log_weights.clamp(max=0).exp()", "log_weights.exp()"),
    trees(
        "the acceptance counts the steps of all chains",
        "(taken * log_weights.clamp(max=0).exp()).sum(0)",
        "log_weights.clamp(max=0).exp().sum(0)",
    ),
    trees(
        "a step that diverged is followed",
        "not_turning = not_turning & (new > -max_error)",
        "not_turning = not_turning & (new > -math.inf)",
    ),
    trees("what diverged is not counted", "(taken & (log_weights <= -max_error)).any(0)", "(taken & (log_weights <= -math.inf)).any(0)"),
    # NUTS
    nuts(
        "the state keeps the gradient of before",
        "NUTSState(chosen.position, chosen.gradient, chosen.energy, num_gradients)",
        "NUTSState(chosen.position, state.gradient, chosen.energy, num_gradients)",
    ),
    nuts(
        "the state keeps the energy of before",
        "NUTSState(chosen.position, chosen.gradient, chosen.energy, num_gradients)",
        "NUTSState(chosen.position, chosen.gradient, state.energy, num_gradients)",
    ),
    nuts(
        "weights have the opposite sign",
        "log_weight = start_energy - energy - kinetic_energy(momentum, self._mass)",
        "log_weight = energy + kinetic_energy(momentum, self._mass) - start_energy",
    ),
    nuts(
        "weights forget the momenta",
        "log_weight = start_energy - energy - kinetic_energy(momentum, self._mass)",
        "log_weight = state.energy - energy",
    ),
    nuts(
        "the second kick of a step is a whole one",
        "momentum.sub_(gradient, alpha=self.step_size / 2)",
        "momentum.sub_(gradient, alpha=self.step_size)",
    ),
    nuts(
        "momenta are drawn without the mass",
        "momentum = draw_momentum(state.position, self._mass, generator)",
        "momentum = draw_momentum(state.position, Matrix(1.0), generator)",
    ),
    nuts("the path turns by its momentum, not its velocity", "            self._mass.inverse,\n", "            Matrix(1.0),\n"),
    nuts("a path diverges at 1,000 whatever is asked for", "            self.max_energy_error,\n", "            1000.0,\n"),
    nuts(
        "gradients and energies are those of the potential of before",
        "return NUTSState(state.position, gradient, energy, state.num_gradients + 1)",
        "return state",
        tests="tests/test_gibbs.py",
    ),
    # SGLD
    langevin("the noise has its variance as standard deviation", "(2 * step_size) ** 0.5 * self", "(2 * step_size) * self"),
    langevin("the noise lacks the factor 2", "(2 * step_size) ** 0.5 * self", "step_size**0.5 * self"),
    langevin(
        "the noise estimate is ignored",
        "self.temperature * Matrix(self.mass) - Matrix(self.noise_estimate)",
        "self.temperature * Matrix(self.mass)",
    ),
    langevin("the temperature is ignored", "return self.temperature * Matrix(", "return float(self.temperature > 0) * Matrix("),
    langevin("the schedule is asked for the next step", "= step_size(num_gradients)", "= step_size(num_gradients + 1)"),
    langevin(
        "the schedule stays at its start",
        "= step_size(num_gradients)",
        "= step_size(0)",
    ),
    langevin(
        "every step sees the same minibatch",
        "potential.stochastic_gradient(position, generator, num_gradients)",
        "potential.stochastic_gradient(position, generator, 0)",
        tests="tests/kernels/test_langevin.py tests/experiments/test_walk.py",
    ),
    langevin("the gradient is not preconditioned", "gradient = self._velocity @ gradient", "pass"),
    langevin("the noise is that of the mass, not of its inverse", "self._velocity @ self._spare @ self._velocity", "self._spare"),
    langevin("the estimate is taken for one of the preconditioned noise", "@ self._spare @ self._velocity", "@ self._spare"),
    langevin(
        "an estimate above T, but not TM, is refused", "self.temperature * Matrix(self.mass) - M", "self.temperature * Matrix(1.0) - M"
    ),
    langevin("the start is changed", "return SGLDState(position.clone(), 0)", "return SGLDState(position, 0)"),
    # momenta
    momentum("momenta are drawn from N(0, M²)", "momentum = mass.root @ normal_like", "momentum = mass @ normal_like"),
    momentum("momenta are drawn from N(0, M⁻¹)", "momentum = mass.root @ normal_like", "momentum = mass.inverse.root @ normal_like"),
    momentum("the temperature is a standard deviation", "momentum.mul_(math.sqrt(temperature))", "momentum.mul_(temperature)"),
    momentum("kinetic energy is that of velocities", "(mass.inverse @ momentum)).sum(-1)", "(mass @ momentum)).sum(-1)"),
    momentum("kinetic energy lacks its half", "return 0.5 * (momentum", "return (momentum"),
    # naive SGHMC
    naive(
        "one minibatch is held for a whole trajectory",
        "potential.stochastic_gradient(position, generator, next(steps))",
        "potential.stochastic_gradient(position, generator, state.num_gradients)",
    ),
    naive(
        "acceptance has the opposite sign",
        "accept(before, after, generator)",
        "accept(after, before, generator)",
    ),
    naive(
        "a rejected chain keeps the energy of the proposal",
        "            energy = torch.where(accepted, energy, state.energy)\n",
        "",
    ),
    naive(
        "acceptance forgets the momenta",
        "after = energy + kinetic_energy(momentum, self._mass)",
        "after = energy + kinetic_energy(start, self._mass)",
    ),
    naive(
        "the first gradient of a trajectory is not counted",
        "state.num_gradients + self.num_steps + 1",
        "state.num_gradients + self.num_steps",
    ),
    naive(
        "energies are those of the potential of before",
        "return state._replace(energy=potential.energy(state.position)) if self.metropolis else state",
        "return state",
        tests="tests/test_gibbs.py tests/kernels/test_naive_sghmc.py",
    ),
    naive("a trajectory ignores the mass", "            self.num_steps,\n            self._mass,\n", "            self.num_steps,\n"),
    # SGHMC
    sghmc(
        "explicit Euler: the gradient is that of the old position",
        "            self._velocity.add_product_(position, momentum)\n"
        "            gradient, estimate = self.take_gradient(potential, position, omega, estimate)\n",
        "            gradient, estimate = self.take_gradient(potential, position, omega, estimate)\n"
        "            self._velocity.add_product_(position, momentum)\n",
    ),
    sghmc(
        "friction damps the kick too",
        "            self._decay.add_product_(momentum, momentum)\n            momentum.sub_(gradient, alpha=self.step_size)\n",
        "            momentum.sub_(gradient, alpha=self.step_size)\n            self._decay.add_product_(momentum, momentum)\n",
    ),
    sghmc("friction is on the wrong side, M⁻¹C", "(Matrix(self.friction) @ self._velocity)", "(self._velocity @ Matrix(self.friction))"),
    sghmc(
        "the injected noise has its variance as standard deviation",
        "Estimate(self._injected.root if not",
        "Estimate(self._injected if not",
    ),
    sghmc("the injected noise lacks the factor 2", "return 2 * self.step_size * self._spare", "return self.step_size * self._spare"),
    sghmc("the noise estimate is ignored", "Matrix(0.0 if self._online else self.noise_estimate)", "Matrix(0.0)"),
    sghmc("the temperature is ignored", "return self.temperature * Matrix(self.friction)", "return Matrix(self.friction)"),
    sghmc(
        "an online estimate has C in place of TC for room",
        "injected_root(self._room, self.step_size, variance)",
        "injected_root(Matrix(self.friction), self.step_size, variance)",
    ),
    sghmc("the root of a new online estimate is the first one's", "if root is None or variance is not old:", "if root is None:"),
    sghmc("the clipped share is that of the last step", "variance, clipped + share, share)", "variance, 0 * clipped + share, share)"),
    sghmc(
        "the clipped share is counted when the estimate is new only",
        "        if root is None or variance is not old:\n",
        "        share = 0.0\n        if root is None or variance is not old:\n",
    ),
    sghmc("an online estimate counts no steps within a call", "Estimate(root, step + 1, variance,", "Estimate(root, step, variance,"),
    sghmc("the first online estimate is that of the first step's minibatch", "kind, step=2**40)", "kind, step=0)"),
    sghmc(
        "momenta are drawn afresh by the number of gradients, not of calls",
        "state.num_gradients // self.num_steps % self.resample_every == 0",
        "state.num_gradients % self.resample_every == 0",
    ),
    sghmc(
        "a fresh momentum is not at the temperature",
        "state._replace(momentum=draw_momentum(state.position, self._mass, generator, self.temperature))",
        "state._replace(momentum=draw_momentum(state.position, self._mass, generator))",
    ),
    sghmc(
        "the first momentum is not at the temperature",
        "        momentum = draw_momentum(position, self._mass, generator, self.temperature)\n",
        "        momentum = draw_momentum(position, self._mass, generator)\n",
    ),
    sghmc(
        "the schedule is asked for the number of gradients, not of draws",
        "self.step_size(state.num_gradients // self.num_steps)",
        "self.step_size(state.num_gradients)",
    ),
    sghmc("the schedule stays at its start", "self.step_size(state.num_gradients // self.num_steps)", "self.step_size(0)"),
    sghmc("the step size of a draw is not told", "return state, info._replace(step_size=step_size)", "return state, info"),
    sghmc(
        "the momentum is rescaled where the step size changes, as a velocity would be",
        "            state, info = replace(self, step_size=step_size)",
        "            last = self.step_size(max(0, state.num_gradients // self.num_steps - 1))\n"
        "            state = state._replace(momentum=state.momentum * last / step_size)\n"
        "            state, info = replace(self, step_size=step_size)",
    ),
    sghmc("the minibatches of every call are the same", "in blocks(state.num_gradients, self", "in blocks(0, self"),
    sghmc(
        "the learning-rate form takes α for C", "return cls(step_size, momentum_decay / step_size,", "return cls(step_size, momentum_decay,"
    ),
    sghmc("the learning-rate form takes η for ε", "step_size = math.sqrt(learning_rate)", "step_size = learning_rate"),
    sghmc(
        "the learning-rate form takes β̂ for B̂",
        'noise_estimate = as_matrix(noise_estimate, "noise_estimate").value / step_size',
        'noise_estimate = as_matrix(noise_estimate, "noise_estimate").value',
    ),
    sghmc(
        "a compiled trajectory injects the square of its noise",
        "Estimate(self._injected.root, 0, None, None)",
        "Estimate(self._injected, 0, None, None)",
        tests="tests/kernels/test_compiling.py",
    ),
    # SGNUTS
    sgnuts("all trees see the minibatches of the first", "count(state.num_trees * 2**self.max_depth)", "count(0)"),
    sgnuts("trees are not counted", "state.num_trees + 1, num_gradients), info", "state.num_trees, num_gradients), info"),
    sgnuts(
        "weights of the energy have the opposite sign",
        "Point(position, momentum, -gained, energy)",
        "Point(position, momentum, gained, energy)",
    ),
    sgnuts(
        "weights of the energy forget the momenta",
        "gained = energy - start.energy + kinetic_energy(momentum, self._mass)",
        "gained = energy - start.energy + kinetic_energy(start.momentum, self._mass)",
    ),
    sgnuts("the work is that of the last step", "point.log_weight - work, energy)", "-work, energy)"),
    sgnuts("the work counts the force twice", "work = energy - point.energy - (seen[0]", "work = energy - point.energy - 2 * (seen[0]"),
    sgnuts("the work has the opposite sign", "point.log_weight - work, energy)", "point.log_weight + work, energy)"),
    sgnuts("the work is that of stochastic gradients", 'if self.weights == "work":\n', "if False:\n"),
    sgnuts("paths turn by the momentum, not the velocity", "forward, self._mass.inverse, self", "forward, Matrix(1.0), self"),
    sgnuts(
        "momenta are drawn without the mass",
        "draw_momentum(state.position, self._mass, generator)",
        "draw_momentum(state.position, Matrix(1.0), generator)",
    ),
    sgnuts("a path is thrown away by its first coordinate alone", "torch.isfinite(momentum.sum(-1))", "torch.isfinite(momentum[:, 0])"),
    sgnuts("equal weights choose what is not finite", "torch.where(finite, start.log_weight, -math.inf)", "start.log_weight"),
    sgnuts("the noise estimate is ignored", "self.friction, self.noise_estimate, self.mass)\n\n", "self.friction, 0.0, self.mass)\n\n"),
    # splittings
    splitting("every gradient of a step sees the same minibatch", "generator, next(steps))", "generator, num_gradients)"),
    splitting(
        "the first momentum ignores the mass",
        "draw_momentum(position, Matrix(self.mass), generator)",
        "draw_momentum(position, Matrix(1.0), generator)",
    ),
    splitting("steps are counted, not gradients", "num_gradients = next(steps)", "num_gradients += self.num_steps"),
    splitting("the list is followed once", "for _ in range(self.num_steps):", "for _ in range(1):"),
    # hyperparameters
    gibbs(
        "the hyperparameters are drawn from the position of before",
        "drawn = potential.draw_hyperparameters(inner.position, generator)",
        "drawn = potential.draw_hyperparameters(state.position, generator)",
    ),
    gibbs("the inner state keeps the energy of the old hyperparameters", "self.kernel.retarget(given, state.inner)", "state.inner"),
    gibbs("the parameters move given the first hyperparameters", "given = potential.given(state.hyperparameters)", "given = potential"),
    gibbs("hyperparameters take the order of their draw", "{name: drawn[name] for name in state.hyperparameters}", "drawn"),
    gibbs(
        "the statistics are the hyperparameters of before",
        "torch.stack(list(hyperparameters.values()), -1)",
        "torch.stack(list(state.hyperparameters.values()), -1)",
    ),
    gibbs("a run starts with all hyperparameters at one", "{name: ones * value for", "{name: ones for"),
    gibbs("the inner kernel takes one step a turn", "for _ in range(self.num_steps):", "for _ in range(1):"),
    # estimates of the noise
    noise(
        "the memory of an online estimate is upside down",
        "torch.lerp(now, variance, self.averaging)",
        "torch.lerp(variance, now, self.averaging)",
    ),
    noise("an online estimate looks one step late", "if step % self.refresh_every:", "if (step + 1) % self.refresh_every:"),
    noise("B̂ = εV̂ in place of ½εV̂", "room - step_size**2 * Matrix", "room - 2 * step_size**2 * Matrix"),
    noise("V̂ is taken for B̂", "room - step_size**2 * Matrix", "room - 2 * step_size * Matrix"),
    noise("the clipped share is a count", "negative.to(spare.dtype).mean(-1)", "negative.to(spare.dtype).sum(-1)"),
    noise(
        "where a full estimate exceeds the room noise is injected",
        "root[failed] = eigenvectors * eigenvalues.clamp(min=0).sqrt()",
        "root[failed] = eigenvectors * eigenvalues.abs().sqrt()",
    ),
    noise(
        "one chain that exceeds its room has all chains clipped",
        "    failed = failed > 0\n",
        "    failed = torch.ones_like(failed) > 0\n",
    ),
    noise("an estimate made once is that of the first chain", "kind)[1].mean(0) for", "kind)[1][0] for"),
    noise("an estimate made once adds its minibatches up", "variance = total / num_batches", "variance = total"),
    noise(
        "a friction has no half in it",
        "return (multiple * 0.5 * step_size * variance.value)",
        "return (multiple * step_size * variance.value)",
    ),
    noise("a friction for a full V suits its smallest direction", "* max(variance.eigenvalues), 12)", "* min(variance.eigenvalues), 12)"),
    noise("a friction has no floor", ".clamp(min=at_least)", ""),
    # cyclical step sizes
    cyclical(
        "the step size falls along a line",
        "0.5 * self.step_size * (1 + math.cos(math.pi * phase / self.cycle_length))",
        "self.step_size * (1 - phase / self.cycle_length)",
    ),
    cyclical("the wave is a whole one, which rises again", "math.cos(math.pi * phase", "math.cos(2 * math.pi * (phase + 0.5)"),
    cyclical("a cycle begins twice as high", "make(0.5 * self.step_size", "make(self.step_size"),
    cyclical("every step has the size of the one before", "math.pi * phase / self", "math.pi * max(0, phase - 1) / self"),
    cyclical("a step that begins to sample still explores", "phase < self._num_exploring\n", "phase <= self._num_exploring\n"),
    cyclical("the explorer does nothing", "explores = self.explorer is not None and", "explores = False and"),
    cyclical("a share of the steps is rounded down", "math.ceil(round(self", "math.floor(round(self"),
    cyclical(
        "what rounding adds to a share explores a step more",
        "math.ceil(round(self.exploration * self.cycle_length, 9))",
        "math.ceil(self.exploration * self.cycle_length)",
    ),
    cyclical("the exploration is left out", "first = 0 if number == 0 else", "first ="),
    cyclical("every draw begins the cycle anew", "first = 0 if number == 0 else", "first = 0 and"),
    cyclical("the exploration counts as part of the way to the first draw", "sampling * (number + 1) // self", "sampling * number // self"),
    cyclical("draws are those of the whole cycle", "exploring, inner = self._num_exploring, state", "exploring, inner = 0, state"),
    cyclical("draws are not counted", "CyclicalState(inner, state.num_draws + 1)", "CyclicalState(inner, state.num_draws)"),
    cyclical("the draw of a cycle is the number of the cycle", "CyclicalInfo(cycle, number, info)", "CyclicalInfo(cycle, cycle, info)"),
    cyclical("kernels are made anew at every step", "if phase not in self._kernels:", "if True:"),
    cyclical("as many draws as steps are refused", "if self.num_draws > sampling:", "if self.num_draws >= sampling:"),
    cyclical("more draws than steps are asked for in silence", "if self.num_draws > sampling:", "if False:"),
    cyclical("an explorer without steps is taken in silence", "is not None and self._num_exploring == 0:", "is not None and False:"),
    cyclical("kernels of different kinds are mixed", "if [type(inner), *map(", "if False and [type(inner), *map("),
    cyclical(
        "states are told apart by their class alone",
        "if [type(inner), *map(type, inner)] != [type(sampling), *map(type, sampling)]:",
        "if type(inner) is not type(sampling):",
    ),
    cyclical(
        "the look at the states draws from the chain's numbers",
        ".init(potential, position, apart)",
        ".init(potential, position, generator)",
    ),
    cyclical(
        "the inner state is not brought up to date",
        "return state._replace(inner=self._kernel_of(0).retarget",
        "return state or (self._kernel_of(0).retarget",
    ),
    cyclical("what the inner kernel says is lost", "found = self._kernel_of(self.cycle_length - 1).diagnose(statistics)", "found = []"),
    cyclical(
        "a run is judged by the number of draws that it kept",
        "(int(statistics[name][-1, 0]) for name",
        "(len(statistics[name]) - 1 - (name == 'cycle') * (len(statistics[name]) - 1) for name",
    ),
    cyclical("every run that ends within a cycle is told so", "if cycle == 0 and draw <", "if draw <"),
]
