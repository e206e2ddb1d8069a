// SGLD with a step size that falls from η₀ to almost nothing, again and again (Zhang et al., 2020, Algorithm 1); sgmc/other_kernels/cyclical.py.
"use strict";

lab.algorithms.cyclical = {
  title: "cyclical SGLD",
  parameters: {
    step_size: { words: "largest step size", symbol: "η₀", value: 0.05, least: 0.001, most: 1, scale: "log" },
    cycle_length: { words: "steps of a cycle", symbol: "ℓ", value: 200, least: 10, most: 1000, scale: "log" },
    num_draws: { words: "draws of a cycle", symbol: "", value: 20, least: 1, most: 100, scale: "log" },
    exploration: { words: "share that explores", symbol: "β", value: 0.5, least: 0, most: 0.9, scale: "linear" },
  },
  init: (position, parameters, noise) => lab.algorithms.sgld.init(position, parameters, noise),
  // After j steps of a cycle η = ½η₀(cos(πj/ℓ) + 1), and B̂ = ½ηV. The first βℓ steps explore; of the others draws are kept at equal distances.
  step(state, parameters, noise) {
    const { cycle_length, num_draws, noise_variance } = parameters;
    const phase = state.num_gradients % cycle_length;
    const cycle = (state.num_gradients - phase) / cycle_length;
    const step_size = 0.5 * parameters.step_size * (1 + lab.cos((3.141592653589793 * phase) / cycle_length));
    lab.algorithms.sgld.step(state, { ...parameters, step_size, noise_estimate: 0.5 * step_size * noise_variance }, noise);
    const num_exploring = Math.ceil(parameters.exploration * cycle_length - 1e-9);
    const sampling = cycle_length - num_exploring;
    const sampled = phase + 1 - num_exploring; // steps of the cycle that have sampled, this one included
    const draw = Math.ceil((sampled * num_draws) / sampling);
    const kept = sampled > 0 && Math.floor((sampling * draw) / num_draws) === sampled;
    state.info = { cycle, phase, step_size, exploring: phase < num_exploring, kept };
    return state;
  },
};
