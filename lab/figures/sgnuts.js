// SGNUTS with the weights of NUTS and corrected, in the double well: weights exp(−H) count the energy twice; book/tutorial/sgnuts.
(function () {
  "use strict";
  const DRAWS = 2000, FRICTION = 3, landscape = lab.landscapes.double_well;
  const WINE = lab.colours.sgnuts_repaired, ORANGE = lab.colours.naive_sghmc;

  // The exact mean energy: ½ of the bowl, and a sum over a fine grid for the well.
  const TRUE_ENERGY = (function () {
    let total = 0, energy = 0;
    for (const x of lab.grid(-4, 4, 4000)) {
      const U = x * x * (x * x - 2), weight = Math.exp(-U);
      total += weight;
      energy += weight * U;
    }
    return 0.5 + energy / total;
  })();

  function chain(name, { step_size, noise_variance }, seed) {
    const parameters = lab.parameters(name, { landscape, step_size, noise_variance, friction: FRICTION, noise_estimate: 0.5 * step_size * noise_variance, max_depth: 10 });
    const { init, step } = lab.algorithms[name], noise = lab.noise(seed), state = init([1, 0], parameters, noise);
    const energies = new Float64Array(DRAWS), draws = new Float64Array(DRAWS);
    let tree = null;
    for (let k = 0; k < DRAWS; k++) {
      step(state, parameters, noise);
      energies[k] = landscape.energy(...state.position);
      draws[k] = state.position[1];
      const size = state.info.tree.states.length;
      if (k < 300 && size <= 64 && (!tree || size > tree.states.length)) { tree = state.info.tree; }  // a long one of the first is shown
    }
    const [energy, error] = lab.meanAndError(energies, 0, DRAWS);
    return { draws, energy, error, running: lab.running(energies), tree, gradients: state.num_gradients / DRAWS };
  }

  function run(values, seed) {
    const weighted = chain("sgnuts_energy", values, seed), repaired = chain("sgnuts_repaired", values, seed), { tree } = weighted;
    const energies = tree.states.map(({ position, momentum }) => landscape.energy(...position) + lab.kinetic_energy(momentum)), least = Math.min(...energies);
    // A square about the path, so that its states can be told apart.
    const lows = [0, 1].map((i) => Math.min(...tree.states.map((state) => state.position[i]))), highs = [0, 1].map((i) => Math.max(...tree.states.map((state) => state.position[i])));
    const half = 0.65 * Math.max(0.5, highs[0] - lows[0], highs[1] - lows[1]), window = [0, 1].flatMap((i) => [(lows[i] + highs[i]) / 2 - half, (lows[i] + highs[i]) / 2 + half]);
    return { window, length: tree.states.length - 1, weighted, repaired, tree, timeline: lab.timeline(tree), weights: energies.map((H) => Math.exp(least - H)) };
  }

  const repairedHolds = ({ repaired }) => Math.abs(repaired.energy - TRUE_ENERGY) < 4 * repaired.error + 0.02;
  const tooLow = ({ weighted }) => weighted.energy < TRUE_ENERGY - 4 * weighted.error;

  lab.figures.sgnuts = {
    name: "sgnuts",
    title: "SGNUTS, with NUTS's weights and corrected",
    unit: "state",
    controls: [
      { name: "step_size", words: "step size", symbol: "ε", least: 0.025, most: 0.1, scale: "log", digits: 3, value: 0.025 },
      { name: "noise_variance", words: "variance of the gradient noise", symbol: "V", least: 0, most: 8, step: 0.5, digits: 1, value: 4 },
    ],
    presets: [
      { name: "the text's example", values: {}, why: "This fails with NUTS's weights: exp(−H) prefers states of low energy, which the path with friction and noise visits often as it is.",
        holds: (run) => repairedHolds(run) && tooLow(run) },
      { name: "exact gradients", values: { noise_variance: 0 }, why: "Still wrong with NUTS's weights: not the noise of the gradients is to blame, but those weights on a path with friction.",
        holds: (run) => repairedHolds(run) && tooLow(run) },
    ],
    run,
    see: ({ weighted, repaired }) => `The target's mean energy is ${lab.said(TRUE_ENERGY, 2)}. With NUTS's weights, exp(−H), the draws have ${lab.said(weighted.energy, 2)} ± ${lab.said(2 * weighted.error, 2)}`
      + `${weighted.energy < TRUE_ENERGY - 4 * weighted.error ? ": too low, the energy is counted twice" : ""}. Corrected, with equal weights and the palindromic step, they have `
      + `${lab.said(repaired.energy, 2)} ± ${lab.said(2 * repaired.error, 2)}.`,
    panels: [
      {
        height: 370,
        alt: (run) => `A path of ${run.tree.states.length} states with friction and noise in the double well; discs show the weights exp(−H), which are larger where the energy is low.`,
        draw: (context, box, run, shown) => lab.treeView(context, box, { title: "A long path, and NUTS's weights", landscape, window: run.window, timeline: run.timeline, shown, weights: run.weights }),
      },
      {
        height: 370,
        alt: (run) => `The states in a row under brackets, one for each sub-tree${run.tree.turn ? "; the one that turns is thick and dashed" : ""}.`,
        draw: (context, box, run, shown) => lab.bracketView(context, box, { title: "Its tree", tree: run.tree, timeline: run.timeline, shown }),
      },
      {
        height: 270,
        alt: () => "Histograms of θ₂ against the true density: with NUTS's weights too narrow, corrected on it.",
        draw(context, box, run, shown) {
          const to = Math.round(shown / run.length * DRAWS);
          lab.histogramView(context, box, {
            title: "Draws of θ₂, along the bowl", density: lab.landscapes.gaussian.marginal, range: [-4, 4], highest: 0.72, bins: 32, label: "θ₂",
            series: [{ values: run.repaired.draws, to, colour: WINE, words: "corrected" }, { values: run.weighted.draws, to, colour: ORANGE, words: "NUTS's weights", dash: [6, 3] }],
          });
        },
      },
      {
        height: 270,
        alt: ({ weighted, repaired }) => `Running mean of the energy: corrected it comes to ${lab.said(repaired.energy, 2)}, with NUTS's weights to ${lab.said(weighted.energy, 2)}; the truth is ${lab.said(TRUE_ENERGY, 2)}.`,
        draw: (context, box, run, shown) => lab.runningView(context, box, {
          title: "Mean energy so far, two standard errors", length: DRAWS, shown: shown / run.length * DRAWS, range: [-0.8, 0.6], truth: TRUE_ENERGY, label: "mean of U", unit: "draw",
          series: [{ running: run.repaired.running, colour: WINE, words: "corrected" }, { running: run.weighted.running, colour: ORANGE, words: "NUTS's weights", dash: [6, 3] }],
        }),
      },
    ],
  };
})();
