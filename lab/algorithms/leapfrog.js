// The leapfrog (Störmer–Verlet): half kick, drift, half kick; sgmc/integrators.py.
"use strict";

// Take steps in place; gradient(position, out) writes the gradient. The half kicks of neighbouring steps fall at one point and are one
// kick with one gradient. The points (x, y, r₁, r₂) of the first particle, with both halves of its kicks, are appended to a path.
lab.leapfrog = function (gradient, position, momentum, step_size, num_steps, path) {
  const slope = new Float64Array(position.length);
  function kick(time) {
    for (let i = 0; i < momentum.length; i++) momentum[i] -= time * slope[i];
  }
  gradient(position, slope);
  path.push([position[0], position[1], momentum[0], momentum[1]]);
  kick(step_size / 2);
  for (let step = 1; step <= num_steps; step++) {
    for (let i = 0; i < position.length; i++) position[i] += step_size * momentum[i];
    gradient(position, slope);
    const half = step_size / 2;
    path.push([position[0], position[1], momentum[0] - half * slope[0], momentum[1] - half * slope[1]]);
    kick(step === num_steps ? half : step_size);
  }
};

// One leapfrog step with exact gradients: no chain, but what the others are made of.
lab.algorithms.leapfrog = {
  title: "leapfrog",
  parameters: {
    step_size: { words: "step size", symbol: "ε", value: 0.3, least: 0.01, most: 2.2, scale: "linear" },
  },
  init(position, parameters, noise) {
    return { position: Float64Array.from(position), momentum: lab.draw_momentum(position, noise), num_gradients: 0, info: {} };
  },
  step(state, parameters, noise) {
    const gradient = (position, out) => lab.gradient(position, parameters, out);
    lab.leapfrog(gradient, state.position, state.momentum, parameters.step_size, 1, []);
    state.num_gradients += 2;
    return state;
  },
};
