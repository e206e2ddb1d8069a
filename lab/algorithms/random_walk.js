// Random-walk Metropolis: propose θ' ~ N(θ, ε²), accept by min(1, π(θ')/π(θ)); sgmc/other_kernels/random_walk.py.
"use strict";

lab.algorithms.random_walk = {
  title: "random-walk Metropolis",
  parameters: {
    step_size: { words: "step size", symbol: "ε", value: 1, least: 0.02, most: 10, scale: "log" },
  },
  init(position, parameters, noise) {
    return { position: Float64Array.from(position), energy: lab.energy(position, parameters), info: {} };
  },
  step(state, parameters, noise) {
    const proposal = state.position.map((x) => x + parameters.step_size * noise.normal());
    const proposed_energy = lab.energy(proposal, parameters);
    const { accepted, acceptance } = lab.accept(state.energy, proposed_energy, noise);
    if (accepted) {
      state.position = proposal;
      state.energy = proposed_energy;
    }
    state.info = { accepted, acceptance, proposal };
    return state;
  },
};
