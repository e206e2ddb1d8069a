// Stochastic-gradient NUTS: paths of steps with friction and noise, grown in both directions of time until they turn; sgmc/kernels/sgnuts.py.
"use strict";

// A step to the left is a step to the right with reversed momenta, before and after.
lab.sgnuts = function (title, forward, weigh) {
  return {
    title,
    parameters: {
      step_size: { words: "step size", symbol: "ε", value: 0.1, least: 0.01, most: 0.5, scale: "log" },
      friction: { words: "friction", symbol: "C", value: 3, least: 0, most: 10, scale: "linear" },
      noise_estimate: { words: "noise estimate", symbol: "B̂", value: 0.2, least: 0, most: 3, scale: "linear" },
      max_depth: { words: "largest depth", symbol: "j", value: 7, least: 1, most: 10, scale: "linear" },
    },
    init(position, parameters, noise) {
      return { position: Float64Array.from(position), num_gradients: 0, info: {} };
    },
    // Draw r ~ N(0, 1), or keep it, and move to a state of a path.
    step(state, parameters, noise) {
      const momentum = (parameters.keep_momentum && state.momentum) || lab.draw_momentum(state.position, noise);
      const start = { position: state.position, momentum, log_weight: 0 };

      function step_right(point) {
        const position = point.position.slice(), momentum = point.momentum.slice();
        forward(position, momentum, parameters, noise);
        return { position, momentum, log_weight: weigh(position, momentum, start, parameters) };
      }

      const { chosen, num_steps, info } = lab.grow_tree(start, step_right, parameters.max_depth, noise, Infinity);
      if (parameters.keep_momentum) state.momentum = info.tree.states[info.tree.chosen].momentum;
      return Object.assign(state, { position: chosen.position, num_gradients: state.num_gradients + num_steps, info });
    },
  };
};

// exp(−H)
lab.by_energy = function (position, momentum, start, parameters) {
  const gained = lab.energy(position, parameters) - lab.energy(start.position, parameters);
  return -(gained + lab.kinetic_energy(momentum) - lab.kinetic_energy(start.momentum));
};

// The report as we read it: SGHMC's step, NUTS's weights.
lab.algorithms.sgnuts_energy = lab.sgnuts(
  "SGNUTS with NUTS's weights",
  function (position, momentum, parameters, noise) {
    lab.algorithms.sghmc.step({ position, momentum, gradient: new Float64Array(2) }, parameters, noise);
  },
  lab.by_energy,
);

// Friction acts on the mean of the momenta before and after:
// θ ← θ + ½εr, r' = r − ε∇Ũ(θ) − ½εC(r + r') + N(0, 2(C − B̂)ε), θ ← θ + ½εr'.
lab.palindromic_step = function (position, momentum, parameters, noise) {
  const { step_size, friction, noise_estimate } = parameters;
  const root = lab.injected_root(friction, noise_estimate, step_size), half = step_size / 2;
  for (let i = 0; i < 2; i++) position[i] += half * momentum[i];
  const gradient = lab.stochastic_gradient(position, parameters, noise, new Float64Array(2));
  for (let i = 0; i < 2; i++) {
    momentum[i] = ((1 - half * friction) * momentum[i] - step_size * gradient[i] + root * noise.normal()) / (1 + half * friction);
    position[i] += half * momentum[i];
  }
};

// Corrected: that step, and equal weights.
lab.algorithms.sgnuts_repaired = lab.sgnuts(
  "SGNUTS corrected",
  lab.palindromic_step,
  (position, momentum) => (Number.isFinite(momentum[0] + momentum[1]) ? 0 : -Infinity),
);
