// Hamiltonian Monte Carlo: a leapfrog trajectory, accepted or rejected (Duane et al., 1987); sgmc/kernels/hmc.py.
"use strict";

lab.algorithms.hmc = {
  title: "HMC",
  parameters: {
    step_size: { words: "step size", symbol: "ε", value: 0.2, least: 0.01, most: 2.2, scale: "log" },
    num_steps: { words: "leapfrog steps", symbol: "L", value: 8, least: 1, most: 60, scale: "linear" },
  },
  init(position, parameters, noise) {
    const momentum = lab.draw_momentum(position, noise);
    return { position: Float64Array.from(position), momentum, energy: lab.energy(position, parameters), num_gradients: 0, info: {} };
  },
  // Draw r ~ N(0, 1), follow L leapfrog steps to (θ', r'), accept with probability min(1, exp(H − H')); else turn round.
  step(state, parameters, noise) {
    const start = lab.draw_momentum(state.position, noise);
    const position = state.position.slice(), momentum = start.slice(), path = [];
    const gradient = (position, out) => lab.gradient(position, parameters, out);
    lab.leapfrog(gradient, position, momentum, parameters.step_size, parameters.num_steps, path);
    const energy = lab.energy(position, parameters);
    const before = state.energy + lab.kinetic_energy(start);
    const after = energy + lab.kinetic_energy(momentum);
    const { accepted, acceptance } = lab.accept(before, after, noise);
    if (accepted) {
      state.position = position;
      state.momentum = momentum;
      state.energy = energy;
    } else {
      state.momentum = start.map((r) => -r);
    }
    state.num_gradients += parameters.num_steps + 1;
    state.info = { accepted, acceptance, proposal: position, path };
    return state;
  },
};
