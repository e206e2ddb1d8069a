// The no-U-turn sampler (Hoffman and Gelman, 2014) with multinomial weights (Betancourt, 2017, Appendix A); sgmc/kernels/nuts.py.
"use strict";

lab.algorithms.nuts = {
  title: "NUTS",
  parameters: {
    step_size: { words: "step size", symbol: "ε", value: 0.3, least: 0.01, most: 2.2, scale: "log" },
    max_depth: { words: "largest depth", symbol: "j", value: 7, least: 1, most: 10, scale: "linear" },
  },
  init(position, parameters, noise) {
    const gradient = lab.gradient(position, parameters, new Float64Array(2));
    return { position: Float64Array.from(position), gradient, energy: lab.energy(position, parameters), num_gradients: 1, info: {} };
  },
  // Draw r ~ N(0, 1), grow a path until it turns, and move to one of its states, with weights exp(−H).
  step(state, parameters, noise) {
    const { step_size, max_depth } = parameters;
    const momentum = lab.draw_momentum(state.position, noise);
    const start_energy = state.energy + lab.kinetic_energy(momentum);
    const start = { position: state.position, momentum, log_weight: 0, energy: state.energy, gradient: state.gradient };

    function leapfrog(point) {
      const momentum = point.momentum.map((r, i) => r - (step_size / 2) * point.gradient[i]);
      const position = point.position.map((x, i) => x + step_size * momentum[i]);
      const energy = lab.energy(position, parameters);
      const gradient = lab.gradient(position, parameters, new Float64Array(2));
      for (let i = 0; i < 2; i++) momentum[i] -= (step_size / 2) * gradient[i];
      const log_weight = start_energy - energy - lab.kinetic_energy(momentum);
      return { position, momentum, log_weight, energy, gradient };
    }

    const { chosen, num_steps, info } = lab.grow_tree(start, leapfrog, max_depth, noise, 1000);
    const { position, gradient, energy } = chosen;
    return Object.assign(state, { position, gradient, energy, num_gradients: state.num_gradients + num_steps, info });
  },
};
