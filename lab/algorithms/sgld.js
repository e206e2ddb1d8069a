// Stochastic-gradient Langevin dynamics (Welling and Teh, 2011; their ε is 2η); sgmc/kernels/langevin.py.
"use strict";

lab.algorithms.sgld = {
  title: "SGLD",
  parameters: {
    step_size: { words: "step size", symbol: "η", value: 0.05, least: 0.001, most: 1, scale: "log" },
    noise_estimate: { words: "noise estimate", symbol: "B̂", value: 0, least: 0, most: 1, scale: "linear" },
  },
  init(position, parameters, noise) {
    return { position: Float64Array.from(position), gradient: new Float64Array(position.length), num_gradients: 0, info: {} };
  },
  // θ ← θ − η∇Ũ(θ) + N(0, 2(1 − B̂)η).
  step(state, parameters, noise) {
    const { position, gradient } = state;
    const { step_size, noise_estimate } = parameters;
    const root = lab.injected_root(1, noise_estimate, step_size);
    lab.stochastic_gradient(position, parameters, noise, gradient);
    for (let i = 0; i < position.length; i++) position[i] = position[i] - step_size * gradient[i] + root * noise.normal();
    state.num_gradients += 1;
    return state;
  },
};
