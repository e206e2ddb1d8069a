// Stochastic-gradient Hamiltonian Monte Carlo (Chen et al., 2014, Algorithm 2); sgmc/kernels/sghmc.py.
"use strict";

lab.algorithms.sghmc = {
  title: "SGHMC",
  parameters: {
    step_size: { words: "step size", symbol: "ε", value: 0.1, least: 0.01, most: 0.5, scale: "log" },
    friction: { words: "friction", symbol: "C", value: 3, least: 0, most: 10, scale: "linear" },
    noise_estimate: { words: "noise estimate", symbol: "B̂", value: 0.2, least: 0, most: 3, scale: "linear" },
  },
  init(position, parameters, noise) {
    const momentum = lab.draw_momentum(position, noise);
    return { position: Float64Array.from(position), momentum, gradient: new Float64Array(position.length), num_gradients: 0, info: {} };
  },
  // θ ← θ + εr, then with the gradient at the new position r ← r − εCr − ε∇Ũ(θ) + N(0, 2(C − B̂)ε).
  step(state, parameters, noise) {
    const { position, momentum, gradient } = state;
    const { step_size, friction, noise_estimate } = parameters;
    const root = lab.injected_root(friction, noise_estimate, step_size);
    for (let i = 0; i < position.length; i++) position[i] += step_size * momentum[i];
    lab.stochastic_gradient(position, parameters, noise, gradient);
    for (let i = 0; i < momentum.length; i++) {
      momentum[i] = momentum[i] - step_size * friction * momentum[i] - step_size * gradient[i] + root * noise.normal();
    }
    state.num_gradients += 1;
    return state;
  },
};
