"""Faults in what everything stands on: random streams, matrices, minibatches, targets, flows and their laws, claims, checkpoints."""

from functools import partial

from tests.faults.planting import Fault

randomness = partial(Fault, file="sgmc/randomness.py", tests="tests/test_minibatches.py tests/kernels/test_sghmc.py")
matrices = partial(Fault, file="sgmc/matrices.py", tests="tests/test_matrices.py")
minibatches = partial(Fault, file="sgmc/minibatches.py", tests="tests/test_minibatches.py")
targets = partial(Fault, file="sgmc/targets.py", tests="tests/test_targets.py tests/test_noise.py")
flows = partial(Fault, file="sgmc/flows.py", tests="tests/test_flows.py")
laws = partial(Fault, file="sgmc/splittings/linear_laws.py", tests="tests/test_linear_laws.py tests/statistical/test_linear_chains.py")
integrators = partial(Fault, file="sgmc/integrators.py", tests="tests/test_integrators.py")
compiling = partial(Fault, file="sgmc/compiling.py", tests="tests/kernels/test_compiling.py")
claims = partial(Fault, file="booklib/claims.py", tests="tests/test_play.py tests/test_claims.py")
play = partial(Fault, file="booklib/play.py", tests="tests/test_play.py")
networks = partial(Fault, file="booklib/networks.py", tests="tests/test_networks.py")
checkpoints = partial(Fault, file="sgmc/checkpoints.py", tests="tests/test_checkpoints.py")
fidelity = partial(Fault, file="sgmc/fidelity/distances.py", tests="tests/test_fidelity.py")

FAULTS = [
    # randomness
    randomness("large neighbouring seeds are one", "key = np.array([seed, purpose], dtype=np.uint64)", "key = [seed, purpose]"),
    randomness(
        "neighbouring places of a stream overlap",
        "counter=[0, place, 0, 0]",
        "counter=[place, 0, 0, 0]",
    ),
    randomness(
        "blocks of steps are numbered from zero",
        "yield first_step + start, min(length, num_steps - start)",
        "yield start, min(length, num_steps - start)",
        tests="tests/kernels/test_sghmc.py",
    ),
    randomness(
        "the last block of steps is as long as the others",
        "yield first_step + start, min(length, num_steps - start)",
        "yield first_step + start, length",
        tests="tests/kernels/test_sghmc.py",
    ),
    randomness(
        "noise is laid out in memory as its model is",
        "torch.empty_like(tensor, memory_format=torch.contiguous_format).normal_(",
        "torch.empty_like(tensor).normal_(",
        tests="tests/kernels/test_metropolis.py",
    ),
    randomness(
        "a warm-up replays the numbers of its run, for a derived seed is the seed",
        "return int(np.random.SeedSequence([seed % 2**64, *purpose.encode()]).generate_state(1)[0])",
        "return seed % 2**64",
        tests="tests/test_adaptation.py tests/test_sampling.py",
    ),
    # matrices
    matrices(
        "a full matrix that is not symmetric is transposed when it multiplies vectors",
        "return other @ self.value.mT if self.value.ndim == 2",
        "return other @ self.value if self.value.ndim == 2",
    ),
    matrices("a full matrix times a diagonal scales its rows", "right = right[..., None, :]", "right = right[..., :, None]"),
    matrices("a diagonal times a full matrix scales its columns", "left = left[..., :, None]", "left = left[..., None, :]"),
    matrices(
        "the root of a full matrix scales the rows of its eigenvectors",
        "(eigenvectors * eigenvalues.clamp(min=0).sqrt()[..., None, :]) @ eigenvectors.mT",
        "(eigenvectors * eigenvalues.clamp(min=0).sqrt()[..., :, None]) @ eigenvectors.mT",
    ),
    matrices(
        "the root of a diagonal is the diagonal: a variance used as a standard deviation",
        "return Matrix._make(self.value.sqrt(), False)",
        "return Matrix._make(self.value, False)",
    ),
    matrices("the exponential of a full matrix is taken entry by entry", "torch.matrix_exp(self.value)", "self.value.exp()"),
    matrices("the transpose of a full matrix is itself", "Matrix._make(self.value.mT, True) if self.full else self", "self"),
    matrices("a difference is a sum", "return self + (-1.0) * other", "return self + other"),
    matrices(
        "a number added to a full matrix is added to all of its entries",
        "return Matrix._make(full.value + thin._filled(full.value), True)",
        "return Matrix._make(full.value + thin.value, True)",
    ),
    matrices(
        "a matrix made of another one derives everything anew",
        "self.__dict__ = value.__dict__",
        "self.__dict__ = {'value': value.value, 'full': value.full}",
    ),
    matrices("a singular mass is taken for a positive one", "(positive and smallest <= 0)", "(positive and smallest < 0)"),
    matrices(
        "a full singular covariance is refused for its rounding",
        "rounding = _ROUNDING * max(abs(x) for x in matrix.eigenvalues) if matrix.full else 0.0",
        "rounding = 0.0",
    ),
    matrices(
        "a covariance with an eigenvalue below zero gets a root",
        "_check_non_negative(float(eigenvalues.min()), _ROUNDING * float(eigenvalues.abs().max()))",
        "pass",
    ),
    # minibatches
    minibatches(
        "one minibatch serves all steps that are drawn together",
        "_fresh_block(self.replacement, num_examples, batch_size, chains, seed, block, length)[place]",
        "_fresh_block(self.replacement, num_examples, batch_size, chains, seed, block, length)[0]",
    ),
    minibatches(
        "one minibatch serves all chains",
        "_fresh_block(self.replacement, num_examples, batch_size, chains, seed, block, length)[place]",
        "_fresh_block(self.replacement, num_examples, batch_size, chains, seed, block, length)[place][:1].expand(chains, -1)",
    ),
    minibatches("fresh minibatches ignore the seed", "counter_based(seed, _FRESH, block)", "counter_based(0, _FRESH, block)"),
    minibatches("fresh minibatches come again in every block", "counter_based(seed, _FRESH, block)", "counter_based(seed, _FRESH, 0)"),
    minibatches("every pass has the same order", "counter_based(seed, _PASSES, number)", "counter_based(seed, _PASSES, 0)"),
    minibatches("one order serves all chains", ".permuted(orders, axis=1)", ".permutation(orders, axis=1)"),
    minibatches(
        "one permutation serves all steps and chains of a block",
        "generator.permuted(np.broadcast_to(",
        "generator.permutation(np.broadcast_to(",
    ),
    minibatches(
        "the last example is never drawn with replacement",
        "drawn = generator.integers(num_examples, size=(rows, batch_size))",
        "drawn = generator.integers(num_examples - 1, size=(rows, batch_size))",
    ),
    minibatches(
        "a remainder is a minibatch of its pass, made up from the next",
        "number, place = divmod(step, num_examples // batch_size)",
        "number, place = divmod(step, -(-num_examples // batch_size))\n        place %= num_examples // batch_size",
    ),
    minibatches("a held minibatch changes at every step and comes again", "step // self.num_steps", "step % self.num_steps"),
    minibatches(
        "a rule that is held hides that it is with replacement",
        "return self.rule.replacement",
        "return False",
        tests="tests/test_minibatches.py tests/test_posteriors.py tests/test_noise.py",
    ),
    minibatches("a subset holds an example twice", "np.put_along_axis(new, place, first, -1)", "new[:] = first"),
    minibatches(
        "of a subset that came out short every other one is a copy",
        "_subsets(num_examples, size, int(short.sum()), generator)",
        "_subsets(num_examples, size, 1, generator)",
    ),
    minibatches(
        "a subset that came out short is filled up with the first examples",
        "chosen[short] = _subsets(num_examples, size, int(short.sum()), generator)",
        "chosen[short] = np.arange(size)",
    ),
    # targets
    targets("the Gaussian's energy lacks its half", "return 0.5 * (centred @ self", "return (centred @ self"),
    targets(
        "the Gaussian's energy beside its gradient lacks its half",
        "return 0.5 * ((position - self.mean) * gradient).sum(-1), gradient",
        "return ((position - self.mean) * gradient).sum(-1), gradient",
    ),
    targets(
        "exact draws of a Gaussian use its covariance as a root",
        "return self.mean + self._covariance.root @ noise",
        "return self.mean + self._covariance @ noise",
    ),
    targets("the double well's gradient is half of it", ".mul_(position).mul_(4)", ".mul_(position).mul_(2)"),
    targets(
        "the banana's ridge is not centred in its energy",
        "0.5 * (second - self.bend * (first**2 - self.variance)) ** 2",
        "0.5 * (second - self.bend * first**2) ** 2",
    ),
    targets("exact draws of the banana use its variance as a scale", "first * math.sqrt(self.variance)", "first * self.variance"),
    targets(
        "the mixture's density sums over its modes",
        "math.log(len(self.means)) + 0.5 * self.dim",
        "0.5 * self.dim",
    ),
    targets(
        "exact draws of the mixture use its variance as a scale",
        "self.means[modes] + math.sqrt(self.variance) * noise",
        "self.means[modes] + self.variance * noise",
    ),
    targets(
        "the funnel's normaliser counts the neck too",
        "neck**2 / 18 + 0.5 * (self.dim - 1) * neck",
        "neck**2 / 18 + 0.5 * self.dim * neck",
    ),
    targets("exact draws of the funnel use the neck's variance as a scale", "samples[:, 0] *= 3", "samples[:, 0] *= 9"),
    targets(
        "the gradient's noise has its variance as standard deviation",
        'as_matrix(noise_variance, "noise_variance").root',
        'as_matrix(noise_variance, "noise_variance")',
    ),
    targets(
        "a noisy gradient's scalar variance is that of all coordinates together",
        "full.diagonal().mean(0, keepdim=True)",
        "full.diagonal().sum(0, keepdim=True)",
    ),
    # flows
    flows("the drift ignores the mass", "return self.time * Matrix(self.mass).inverse", "return self.time * Matrix(1.0)"),
    flows(
        "the kick goes uphill", "momentum.sub_(gradient(position), alpha=self.time)", "momentum.add_(gradient(position), alpha=self.time)"
    ),
    flows(
        "the law of a kick takes the noise once, not with the square of the time",
        "_blocks(zero, zero, zero, self.time**2 * noise_variance)",
        "_blocks(zero, zero, zero, self.time * noise_variance)",
    ),
    flows(
        "the law of a drift is that of a drift back",
        "self._velocity.dense(len(precision)), zero",
        "-self._velocity.dense(len(precision)), zero",
    ),
    flows(
        "friction takes M⁻¹C for CM⁻¹",
        'as_matrix(friction, "friction") @ as_matrix(mass, "mass", positive=True).inverse',
        'as_matrix(mass, "mass", positive=True).inverse @ as_matrix(friction, "friction")',
    ),
    flows(
        "the Ornstein–Uhlenbeck noise takes E for its transpose",
        "temperature * (mass - factor @ mass @ factor.transposed)",
        "temperature * (mass - factor @ mass @ factor)",
    ),
    flows(
        "the Ornstein–Uhlenbeck noise takes EEM for EMEᵀ",
        "temperature * (mass - factor @ mass @ factor.transposed)",
        "temperature * (mass - factor @ factor @ mass)",
        survives="the two are the same, for EM = MEᵀ where E is a function of CM⁻¹",
    ),
    flows(
        "the Ornstein–Uhlenbeck noise is not at the temperature",
        "temperature * (mass - factor @ mass @ factor.transposed)",
        "mass - factor @ mass @ factor.transposed",
    ),
    flows("friction at midpoint is explicit on both sides", "implicit_friction_flow(step_size / 2", "friction_flow(step_size / 2"),
    flows("inside a trajectory kicks are halves", "*[drift, kick] * (num_steps - 1)", "*[drift, half_kick] * (num_steps - 1)"),
    flows("a naive trajectory keeps its old momentum", "[refresh_flow(mass), *leapfrog(", "[*leapfrog("),
    flows(
        "SGHMC drifts after its kick",
        "        Drift(step_size, mass),\n        friction_flow(step_size, friction, mass),\n        Kick(step_size),\n",
        "        friction_flow(step_size, friction, mass),\n        Kick(step_size),\n        Drift(step_size, mass),\n",
    ),
    flows(
        "the temperature multiplies the noise estimate too",
        'temperature * as_matrix(friction, "friction") - as_matrix(noise_estimate, "noise_estimate")',
        'temperature * (as_matrix(friction, "friction") - as_matrix(noise_estimate, "noise_estimate"))',
    ),
    flows("the injected noise lacks the factor 2", "return 2 * step_size * as_matrix(spare", "return step_size * as_matrix(spare"),
    flows(
        "BAOAB damps for half a step",
        "        ornstein_uhlenbeck_flow(step_size, friction, mass, temperature),\n",
        "        ornstein_uhlenbeck_flow(step_size / 2, friction, mass, temperature),\n",
    ),
    flows("UBU kicks with half a step", "return [half, Kick(step_size), half]", "return [half, Kick(step_size / 2), half]"),
    flows("free motion has uncorrelated noise", "shared = self.temperature * u**2 / rate / spread", "shared = 0 * spread"),
    flows("the series of free motion lacks its second term", "x**3 / 12 * (1 - x**2 / 10)", "x**3 / 12"),
    flows("free motion takes γ = CM for C/M", "rate = friction / mass", "rate = friction * mass"),
    flows(
        "flows at once see each other",
        "moved = start[0].clone(), start[1].clone()",
        "moved = position.clone(), momentum.clone()",
    ),
    flows(
        "the law of flows at once adds up the identities",
        "identity + sum(transition - identity for transition, _ in moves)",
        "sum(transition for transition, _ in moves)",
    ),
    flows(
        "the law of a descent takes the noise once, not with the square of the step",
        "descent @ noise_variance @ descent + self",
        "-descent @ noise_variance + self",
    ),
    flows("a descent ignores the mass", "return -self.time * Matrix(self.mass).inverse", "return -self.time * Matrix(1.0)"),
    flows(
        "Langevin's noise is not preconditioned",
        "inverse @ _injected(step_size, mass, noise_estimate, temperature) @ inverse",
        "_injected(step_size, mass, noise_estimate, temperature)",
    ),
    # linear laws
    laws("the noise of a first move is not carried on by the second", "f2 @ q1 @ f2.T + q2", "q1 + q2"),
    laws("moves compose in the wrong order", "return LinearChain(f2 @ f1,", "return LinearChain(f1 @ f2,"),
    laws("flows compose from the last to the first", "chain = chain.then(move)", "chain = move.then(chain)"),
    laws("a power has one move too many", "for _ in range(num_steps - 1):", "for _ in range(num_steps):"),
    laws("a random walk is taken for stationary", "if radius >= 1:", "if radius > 1:"),
    laws("autocorrelations run backwards in time", "column = transition @ column", "column = transition.T @ column"),
    laws("the autocorrelation time counts one side of the lags", "(identity + transition) @ covariance @ c", "covariance @ c"),
    laws(
        "the Lyapunov equation is that of the transposed chain",
        "solve_discrete_lyapunov(transition, self",
        "solve_discrete_lyapunov(transition.T, self",
    ),
    laws("an average counts its variances twice", "(lagged + lagged.mT - num_steps * covariance)", "(lagged + lagged.mT)"),
    laws("an average looks one way in time", "(lagged + lagged.mT - num_steps * covariance)", "(2 * lagged - num_steps * covariance)"),
    # integrators
    integrators(
        "explicit Euler takes the gradient at the new position",
        "kicked = momentum - step_size * gradient(position)\n"
        "        position, momentum = velocity.add_product_(position.clone(), momentum), kicked",
        "position = velocity.add_product_(position.clone(), momentum)\n        momentum = momentum - step_size * gradient(position)",
        tests="tests/test_integrators.py tests/test_flows.py",
    ),
    integrators(
        "symplectic Euler takes the gradient at the old position",
        "        velocity.add_product_(position, momentum)\n        momentum.sub_(gradient(position), alpha=step_size)\n",
        "        force = gradient(position).clone()\n        velocity.add_product_(position, momentum)\n"
        "        momentum.sub_(force, alpha=step_size)\n",
    ),
    integrators("the last kick of a leapfrog trajectory is a whole one", "alpha=step_size / 2 if last else step_size", "alpha=step_size"),
    integrators("all kicks of a leapfrog trajectory are halves", "alpha=step_size / 2 if last else step_size", "alpha=step_size / 2"),
    integrators(
        "leapfrog overwrites the momentum it is given",
        "position, momentum = position.clone(), momentum.clone()\n    velocity = step_size * Matrix(mass).inverse\n    momentum",
        "position, momentum = position.clone(), momentum\n    velocity = step_size * Matrix(mass).inverse\n    momentum",
    ),
    # compiling
    compiling(
        "what was compiled for one shape serves every other",
        "key += (argument.shape, argument.stride(), argument.dtype, argument.device)",
        "key += (argument.dtype, argument.device)",
    ),
    compiling(
        "what was compiled for one layout in memory serves every other",
        "key += (argument.shape, argument.stride(), argument.dtype, argument.device)",
        "key += (argument.shape, argument.dtype, argument.device)",
    ),
    compiling("what was compiled for one potential serves every other", "key = list(map(id, things))", "key = []"),
    # claims
    claims(
        "a claim with a standard error is only bounded above",
        "abs(value - near) <= STANDARD_ERRORS * standard_error",
        "value - near <= STANDARD_ERRORS * standard_error",
    ),
    claims("a claim of equality is only bounded above", "abs(value - near) <= within", "value - near <= within"),
    claims("a standard error that is infinite supports every claim", "0 < standard_error < math.inf and", "0 < standard_error and"),
    claims("a standard error of 0 is taken", "0 < standard_error < math.inf and", "standard_error < math.inf and"),
    claims("a lower bound is an upper one", "holds, bound = value >= at_least", "holds, bound = value <= at_least"),
    claims("a claim may state two bounds", "if len(bounds) != (0 if truth else 1):", "if len(bounds) < (0 if truth else 1):"),
    claims(
        "a claim that does not hold is passed over where nobody plays", "if not holds and not playing():", "if not holds and playing():"
    ),
    claims("a broken claim looks as if it held", '>{"✓" if holds else "✗"}<', ">✓<"),
    claims("a broken claim is as black as any, where the sheet is not", 'red = "" if holds else', 'red = "" if True else'),
    claims("statement and bound run together where the sheet is not", '{_joined(": ")}', ""),
    play("a script is taken for somebody who plays", '_ON = "get_ipython" in dir(builtins)', "_ON = True"),
    play("nobody plays", '_ON = "get_ipython" in dir(builtins)', "_ON = False"),
    # networks
    networks("an activation follows the logits", "return nn.Sequential(*layers[:-1])", "return nn.Sequential(*layers)"),
    networks("the default activation is another", 'activation: str = "relu") ->', 'activation: str = "tanh") ->'),
    networks(
        "images are read with their rows for columns",
        ".permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)",
        ".permute(0, 3, 2, 1).contiguous().permute(0, 3, 1, 2)",
    ),
    networks("normalisation has a group for each channel", "nn.GroupNorm(1, channels)", "nn.GroupNorm(channels, channels)"),
    networks("pooling takes means", "nn.MaxPool2d(2)", "nn.AvgPool2d(2)"),
    # checkpoints
    checkpoints(
        "a fingerprint ignores a module's buffers, its running statistics among them",
        "for name, value in sorted(state.items(), key=str) if name not in derived}",
        'for name, value in sorted(state.items(), key=str) if name not in derived | {"_buffers"}}',
    ),
    checkpoints(
        "a fingerprint counts what is only derived",
        "if isinstance(value, functools.cached_property)}",
        "if isinstance(value, functools.partial)}",
    ),
    checkpoints("a fingerprint ignores the defaults of functions", "return code, function.__defaults__, function", "return code, function"),
    checkpoints(
        "a fingerprint ignores what a function encloses",
        "enclosed = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]",
        "enclosed = []",
    ),
    checkpoints(
        "a fingerprint ignores the globals that a function reads",
        "found = [] if _is_installed(function.__module__) else _globals_of(code, function.__globals__)",
        "found = []",
    ),
    checkpoints(
        "a fingerprint ignores the globals that inner functions read",
        "for part in _globals_of(const, names)]\n",
        "for part in ()]\n",
    ),
    checkpoints(
        "a fingerprint ignores the constants of a function",
        "return thing.co_code, (*names, *numbers, thing.co_consts, thing.co_exceptiontable)",
        "return thing.co_code, (*names, *numbers, thing.co_exceptiontable)",
    ),
    checkpoints(
        "a fingerprint ignores the shape of a tensor",
        "return plain.cpu().numpy(), (thing.dtype, tuple(thing.shape), thing.device.type)",
        "return plain.cpu().numpy(), (thing.dtype, thing.device.type)",
    ),
    checkpoints(
        "a fingerprint ignores the type of a tensor",
        "return plain.cpu().numpy(), (thing.dtype, tuple(thing.shape), thing.device.type)",
        "return plain.cpu().numpy(), (tuple(thing.shape), thing.device.type)",
    ),
    checkpoints("a fingerprint takes a method without its owner", "(thing.__func__, thing.__self__)", "(thing.__func__,)"),
    checkpoints(
        "a fingerprint ignores the values of a dictionary",
        "for pair in thing.items() for part in pair]",
        "for pair in thing.items() for part in pair[:1]]",
    ),
    checkpoints(
        "a setting that only the file has is no difference",
        "for name in self.settings | settings if settings",
        "for name in self.settings if settings",
    ),
    checkpoints("a bit that flipped is not noticed", "if file.read() != digest.digest():", "if not file.read():"),
    checkpoints(
        "a file is written in its place",
        'unfinished = path.with_name(path.name + ".unfinished")',
        "unfinished = path",
    ),
    checkpoints("a stop leaves its unfinished file", "        unfinished.unlink(missing_ok=True)\n", ""),
    checkpoints(
        "a file that may not be read is called corrupt",
        "        except OSError:\n            raise  # the file may be whole\n",
        "",
    ),
    # fidelity
    fidelity("total variation is not halved", "0.5 * (first.double() - second.double())", "1.0 * (first.double() - second.double())"),
    fidelity("agreement is of the least probable class", "first.argmax(-1) == second.argmax(-1)", "first.argmin(-1) == second.argmin(-1)"),
    fidelity("a variance is taken for a standard deviation", "/ math.sqrt(noise_variance)", "/ noise_variance"),
    fidelity("bins leave out what is below the first edge", "below / len(outputs), (1, 0))", "below / len(outputs), (0, 0))"),
    fidelity("chains are taken for draws", "values.transpose(0, 1).double()", "values.double()"),
    fidelity("chains that do not agree are a reference", "    if largest.max() > at_most:\n", "    if largest.max() < at_most:\n"),
    fidelity("halves are counted twice", "        half = [0, *rest]\n", "        half = list(rest)\n"),
    fidelity("only the first half's chains are compared", "predictions[other].mean(0)", "predictions.mean(0)"),
    fidelity("the mean of |z| is taken to be one", "math.sqrt(2 / math.pi) * ", ""),
    fidelity("variances of the averages are not added", "sum(1 / number for number in numbers)", "max(1 / number for number in numbers)"),
]
