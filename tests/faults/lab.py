"""Faults in the live lab: in its scripts, which the laws see or the bits of the reference, and in the reference, which the package sees."""

from functools import partial

from tests.faults.planting import Fault

RUNS = "tests/lab/test_bits.py::test_the_runs_of_a_page_equal_the_reference"
LAWS = "tests/lab/test_laws.py::test_a_script_has_the_law_of_its_linear_chain"
EXACT = "tests/lab/test_laws.py::test_exact_draws_stay_exact"
STEPS = "tests/lab/test_package.py::test_a_step_equals_that_of_the_package"
ARITHMETIC = "tests/lab/test_arithmetic.py"
BITS = f"{ARITHMETIC}::test_the_scripts_have_the_same_bits"
GENERATOR = "tests/lab/test_bits.py::test_the_generator_equals_the_reference"
MINIBATCHES = "tests/lab/test_laws.py::test_minibatches_have_the_noise_of_the_theorem"
MARGINALS = f"{ARITHMETIC}::test_marginals_and_moments_are_those_of_the_energy"
TARGETS = "tests/lab/test_package.py::test_energies_and_gradients_are_those_of_the_targets"

core = partial(Fault, file="lab/core.js", tests=RUNS)
landscapes = partial(Fault, file="lab/landscapes.js", tests=MARGINALS)
regression = partial(Fault, file="lab/regression.js", tests=MINIBATCHES)
trees = partial(Fault, file="lab/trees.js", tests=RUNS)
leapfrog = partial(Fault, file="lab/algorithms/leapfrog.js", tests=LAWS)
random_walk = partial(Fault, file="lab/algorithms/random_walk.js", tests=EXACT)
hmc = partial(Fault, file="lab/algorithms/hmc.js", tests=EXACT)
nuts = partial(Fault, file="lab/algorithms/nuts.js", tests=EXACT)
sgld = partial(Fault, file="lab/algorithms/sgld.js", tests=LAWS)
naive = partial(Fault, file="lab/algorithms/naive_sghmc.js", tests=LAWS)
sghmc = partial(Fault, file="lab/algorithms/sghmc.js", tests=LAWS)
sgnuts = partial(Fault, file="lab/algorithms/sgnuts.js", tests=EXACT)
cyclical = partial(
    Fault, file="lab/algorithms/cyclical.js", tests="tests/lab/test_laws.py::test_cyclical_steps_have_the_law_of_a_product_of_chains"
)
reference_core = partial(Fault, file="lab/reference/core.py", tests=f"{ARITHMETIC}::test_exp_log_and_cos_are_accurate")
reference_landscapes = partial(Fault, file="lab/reference/landscapes.py", tests=TARGETS)
reference_trees = partial(Fault, file="lab/reference/trees.py", tests=STEPS)
reference = partial(Fault, file="lab/reference/algorithms.py", tests=STEPS)

FAULTS = [
    # arithmetic and noise
    core(
        "exp ends its series too early",
        "let sum = lab.FACTORIALS[14];\n  for (let n = 13;",
        "let sum = lab.FACTORIALS[13];\n  for (let n = 12;",
        tests=BITS,
    ),
    core(
        "log takes a browser's last bits",
        "return k * lab.LOG_2[0] + (2 * s * sum + k * lab.LOG_2[1]);",
        "return Math.log(x) + k * Math.LN2;",
        tests=BITS,
    ),
    core("the second normal number of a pair is thrown away", "    spare = y * scale;\n", "", tests=GENERATOR),
    core("a uniform number has 32 bits", "(high * 67108864 + (word() >>> 6)) / 9007199254740992", "high / 134217728", tests=GENERATOR),
    core(
        "a variance is used as a standard deviation", "const root = Math.sqrt(noise_variance);", "const root = noise_variance;", tests=LAWS
    ),
    core(
        "the noise estimate is added to the friction",
        "friction - noise_estimate) * step_size",
        "friction + noise_estimate) * step_size",
        tests=LAWS,
    ),
    core("the injected noise has half its variance", "Math.sqrt(2 * Math.max(", "Math.sqrt(Math.max(", tests=LAWS),
    core("acceptance has the opposite sign", "Math.min(0, energy - proposed_energy)", "Math.min(0, proposed_energy - energy)", tests=EXACT),
    core("an acceptance that is no number is reported", "Number.isFinite(proposed_energy) ? ", "proposed_energy !== Infinity ? "),
    core(
        "the particles all see one gradient",
        "gradient[i + 1] = pair[1];\n  }\n  return gradient;\n};\n\n// ∇Ũ",
        "gradient[i + 1] = pair[0];\n  }\n  return gradient;\n};\n\n// ∇Ũ",
    ),
    # landscapes
    landscapes("the double well's density is not normalised", "/ 5.36516023783457", "/ 5.36516"),
    landscapes(
        "the banana's density has a standard deviation for a variance", "lab.normal_density(x, 0, 4)", "lab.normal_density(x, 0, 2)"
    ),
    landscapes("the modes' variance is that of their means", "variance: 8.03", "variance: 8"),
    landscapes("the funnel is upside down", "out[1] = scaled;", "out[1] = -scaled;", tests=RUNS),
    regression("N/n is forgotten", "num_examples / batch_size / 40", "1 / 40"),
    regression("the prior is forgotten", "out[0] = scale * first + x / 100;", "out[0] = scale * first;", tests=RUNS),
    regression("the first examples are always taken", "noise.uniform() * (num_examples - i) >= needed", "noise.uniform() * 0 >= needed"),
    # trajectories
    leapfrog(
        "the last kick of a trajectory is a whole one", "kick(step === num_steps ? half : step_size);", "kick(step_size);", tests=RUNS
    ),
    leapfrog("the first kick of a trajectory is a whole one", "  kick(step_size / 2);\n", "  kick(step_size);\n"),
    leapfrog("a point of the path lacks half its kick", "momentum[0] - half * slope[0]", "momentum[0]", tests=RUNS),
    random_walk(
        "a rejected chain keeps the energy of its proposal",
        "    if (accepted) {\n",
        "    state.energy = proposed_energy;\n    if (accepted) {\n",
    ),
    random_walk(
        "the step size is a variance",
        "parameters.step_size * noise.normal()",
        "Math.sqrt(parameters.step_size) * noise.normal()",
        tests=RUNS,
    ),
    hmc("acceptance forgets the momenta", "lab.accept(before, after, noise)", "lab.accept(state.energy, energy, noise)"),
    hmc("every proposal is taken", "    if (accepted) {\n", "    if (true) {\n"),
    hmc("a rejected chain does not turn round", "start.map((r) => -r)", "start", tests=RUNS),
    nuts("the weights forget the momenta", "start_energy - energy - lab.kinetic_energy(momentum)", "start_energy - energy"),
    nuts("a step has no second half of its kick", "      for (let i = 0; i < 2; i++) momentum[i] -= (step_size / 2) * gradient[i];\n", ""),
    # trees
    trees("the path never grows to the left", "uniforms[doubling] < 0.5", "uniforms[doubling] < 0"),
    trees("the sum of momenta is not turned round", "[far, near, flip(total), -way]", "[far, near, total, -way]"),
    trees("half of a path is not checked with the first state of the other", "if (old.num_states > 1) {", "if (old.num_states > 1e9) {"),
    trees(
        "a half that turned may be chosen from",
        "    if (!growing) {\n      ended = branch",
        "    if (log_uniform < branch.log_weight - log_weight) chosen = branch.chosen;\n    if (!growing) {\n      ended = branch",
        tests=EXACT,
    ),
    trees("a path that turned is followed on", "    if (!not_turning) break;\n", ""),
    trees("a drawing has the momenta as the path grows", "way > 0 ? point.momentum : flip(point.momentum)", "point.momentum"),
    # stochastic gradients
    sgld("the gradient is added", "position[i] - step_size * gradient[i]", "position[i] + step_size * gradient[i]"),
    sgld(
        "the noise of Welling and Teh's ε",
        "lab.injected_root(1, noise_estimate, step_size)",
        "lab.injected_root(1, noise_estimate, step_size / 2)",
    ),
    naive("the momentum is not drawn afresh", "    state.momentum = lab.draw_momentum(state.position, noise);\n", ""),
    sghmc(
        "explicit Euler: the gradient is taken at the old position",
        "lab.stochastic_gradient(position,",
        "lab.stochastic_gradient(position.map((x, i) => x - step_size * momentum[i]),",
    ),
    sghmc("no friction", "momentum[i] - step_size * friction * momentum[i]", "momentum[i]"),
    sghmc(
        "one normal number for all coordinates",
        "    for (let i = 0; i < momentum.length; i++) {\n",
        "    const same = noise.normal();\n    noise = { normal: () => same };\n    for (let i = 0; i < momentum.length; i++) {\n",
    ),
    sgnuts(
        "the repaired weights count the energy",
        "(position, momentum) => (Number.isFinite(momentum[0] + momentum[1]) ? 0 : -Infinity),",
        "(position, momentum, start, parameters) => -lab.energy(position, parameters),",
    ),
    sgnuts("the repaired friction acts before the kick alone", " / (1 + half * friction);", ";", tests=RUNS),
    cyclical("a step size does not reach η₀", "0.5 * parameters.step_size * (1 + lab.cos(", "0.5 * parameters.step_size * (lab.cos("),
    cyclical(
        "the noise estimate is that of the largest step",
        "noise_estimate: 0.5 * step_size * noise_variance",
        "noise_estimate: 0.5 * parameters.step_size * noise_variance",
    ),
    cyclical("draws of the exploration are kept", "const kept = sampled > 0 && ", "const kept = ", tests=RUNS),
    # the reference
    reference_core(
        "exp ends its series too early", "total = FACTORIALS[14]\n    for n in range(13,", "total = FACTORIALS[11]\n    for n in range(10,"
    ),
    reference_core("log loses the end of log 2", " + k * LOG_2[1])", ")"),
    reference_landscapes("the correlation is another", "1.8 * x * y", "1.7 * x * y"),
    reference_landscapes("the modes are wider", "moment / total / 0.03", "moment / total / 0.04"),
    reference(
        "SGHMC takes the gradient at the old position",
        "gradient = core.stochastic_gradient(position, parameters, noise)\n    momentum = [\n        r - step_size",
        "old = [x - step_size * r for x, r in zip(position, momentum, strict=True)]\n"
        "    gradient = core.stochastic_gradient(old, parameters, noise)\n    momentum = [\n        r - step_size",
    ),
    reference(
        "the reported weights forget the momenta",
        'return -(gained + core.kinetic_energy(momentum) - core.kinetic_energy(start["momentum"]))',
        "return -gained",
    ),
    reference(
        "a draw of a cycle is one step early",
        "sampled = cycle_length - num_exploring, phase + 1 - num_exploring",
        "sampled = cycle_length - num_exploring, phase + 2 - num_exploring",
        tests="tests/lab/test_package.py::test_the_draws_that_are_kept_are_those_of_the_package",
    ),
    reference_trees(
        "a new half is chosen with its share of the weights",
        'if log_uniform < branch["log_weight"] - log_weight:',
        'if log_uniform < branch["log_weight"] - logaddexp(log_weight, branch["log_weight"]):',
    ),
    reference_trees("the choice within a half is its last state", 'if log(uniform) < end["log_weight"] - log_weight:', "if True:"),
    reference_trees("one end of a path is not looked at", " and total[0] * last[0] + total[1] * last[1] > 0", ""),
]
