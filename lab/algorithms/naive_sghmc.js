// Naive stochastic-gradient HMC, the failure that friction mends (Chen et al., 2014, Section 3.1); sgmc/kernels/naive_sghmc.py.
"use strict";

lab.algorithms.naive_sghmc = {
  title: "naive SGHMC",
  parameters: {
    step_size: { words: "step size", symbol: "ε", value: 0.1, least: 0.01, most: 0.5, scale: "log" },
    num_steps: { words: "leapfrog steps", symbol: "L", value: 50, least: 1, most: 100, scale: "linear" },
  },
  init(position, parameters, noise) {
    return { position: Float64Array.from(position), momentum: new Float64Array(position.length), num_gradients: 0, info: {} };
  },
  // Draw r ~ N(0, 1), follow L leapfrog steps with ∇Ũ in place of ∇U, and take the end.
  step(state, parameters, noise) {
    const path = [];
    const gradient = (position, out) => lab.stochastic_gradient(position, parameters, noise, out);
    state.momentum = lab.draw_momentum(state.position, noise);
    lab.leapfrog(gradient, state.position, state.momentum, parameters.step_size, parameters.num_steps, path);
    state.num_gradients += parameters.num_steps + 1;
    state.info = { path };
    return state;
  },
};
