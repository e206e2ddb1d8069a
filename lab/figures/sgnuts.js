// SGNUTS in the bowl with palindromic steps and the momentum kept: states chosen by exp(−H), which counts the energy twice, and with equal weights; book/tutorial/sgnuts.
(function () {
  "use strict";
  const DRAWS = 240, SKIP = 20, CHAINS = 20, landscape = lab.landscapes.gaussian;
  const WINE = lab.colours.sgnuts_repaired;
  // The same path, chosen from by the weights of NUTS.
  const WEIGHTED = lab.sgnuts("SGNUTS with palindromic steps and NUTS's weights", lab.palindromic_step, lab.by_energy);

  function sample({ init, step }, { step_size, noise_variance, friction }, seed) {
    const parameters = lab.parameters("sgnuts_repaired", { landscape, step_size, noise_variance, friction, noise_estimate: 0.5 * step_size * noise_variance, max_depth: 8 });
    const noise = lab.noise(seed), squares = new Float64Array(DRAWS), draws = new Float64Array(2 * CHAINS * DRAWS);
    const chains = Array.from({ length: CHAINS }, () => init([noise.normal(), noise.normal()], parameters, noise));
    parameters.keep_momentum = true;
    let tree = null;
    for (let k = 0; k < DRAWS; k++) {
      chains.forEach(function (state, chain) {
        step(state, parameters, noise);
        draws.set(state.position, 2 * (k * CHAINS + chain));
        squares[k] += (state.position[0] ** 2 + state.position[1] ** 2) / (2 * CHAINS);
        const { states } = state.info.tree;
        if (k < 10 && states.length <= 64 && (!tree || states.length > tree.states.length)) { tree = state.info.tree; }  // a long one of the first is shown
      });
    }
    const [variance, error] = lab.meanAndError(squares, SKIP, DRAWS);
    return { draws, variance, error, running: lab.running(squares, SKIP), tree };
  }

  function run(values, seed) {
    const weighted = sample(WEIGHTED, values, seed), repaired = sample(lab.algorithms.sgnuts_repaired, values, seed), { tree } = weighted;
    const energies = tree.states.map(({ position, momentum }) => landscape.energy(...position) + lab.kinetic_energy(momentum)), least = Math.min(...energies);
    // A square about the path, so that its states can be told apart.
    const lows = [0, 1].map((i) => Math.min(...tree.states.map((state) => state.position[i]))), highs = [0, 1].map((i) => Math.max(...tree.states.map((state) => state.position[i])));
    const half = 0.65 * Math.max(0.5, highs[0] - lows[0], highs[1] - lows[1]), window = [0, 1].flatMap((i) => [(lows[i] + highs[i]) / 2 - half, (lows[i] + highs[i]) / 2 + half]);
    return { window, length: tree.states.length - 1, weighted, repaired, tree, timeline: lab.timeline(tree), weights: energies.map((H) => Math.exp(least - H)) };
  }

  // Within four standard errors of the theorem's variances, which are far apart.
  const near = ({ variance, error }, exact) => Math.abs(variance - exact) < 4 * error + 0.005 && error < 0.06;
  const asSaid = ({ weighted, repaired }) => near(weighted, 0.5) && near(repaired, 1);

  lab.figures.sgnuts = {
    name: "sgnuts",
    title: "SGNUTS, chosen by NUTS's weights and with equal weights",
    question: "Before you play: one of the two samplers has half of the variance. Which one?",
    unit: "state",
    controls: [
      { name: "step_size", words: "step size", symbol: "ε", least: 0.05, most: 0.2, scale: "log", digits: 3, value: 0.1 },
      { name: "noise_variance", words: "variance of the gradient noise", symbol: "V", least: 0, most: 4, step: 0.5, digits: 1, value: 4 },
      { name: "friction", words: "friction", symbol: "C", least: 0.4, most: 4, scale: "log", value: 0.5 },
    ],
    presets: [
      { name: "the text's example", values: {}, why: "This fails with NUTS's weights: exp(−H) prefers states of low energy, which the path with friction and noise visits often as it is.", holds: asSaid },
      { name: "exact gradients", values: { noise_variance: 0 }, why: "Still wrong with NUTS's weights: not the noise of the gradients is to blame, but those weights on a path with friction.", holds: asSaid },
      { name: "more friction", values: { friction: 2 }, why: "Neither variance depends on the friction: the theorem asks only that the step goes backward as often as forward.", holds: asSaid },
    ],
    run,
    see: ({ weighted, repaired }) => `The right variance is 1. Chosen by NUTS's weights, exp(−H), the draws have ${lab.said(weighted.variance, 2)} ± ${lab.said(2 * weighted.error, 2)}, where the energy counted twice gives 0.5. `
      + `With equal weights they have ${lab.said(repaired.variance, 2)} ± ${lab.said(2 * repaired.error, 2)}.`,
    panels: [
      {
        height: 370,
        alt: (run) => `A path of ${run.tree.states.length} states with friction and noise in the bowl; discs show the weights exp(−H), which are larger where the energy is low.`,
        draw: (context, box, run, shown) => lab.treeView(context, box, { title: "A long path, and NUTS's weights", landscape, window: run.window, timeline: run.timeline, shown, weights: run.weights }),
      },
      {
        height: 370,
        alt: (run) => `The states in a row under brackets, one for each sub-tree${run.tree.turn ? "; the one that turns is thick and dashed" : ""}.`,
        draw: (context, box, run, shown) => lab.bracketView(context, box, { title: "Its tree", tree: run.tree, timeline: run.timeline, shown }),
      },
      {
        height: 270,
        alt: () => "Histograms of θ against the true density: with NUTS's weights too narrow, with equal weights on it.",
        draw(context, box, run, shown) {
          const to = Math.round(shown / run.length * DRAWS) * 2 * CHAINS, from = Math.min(to / 2, SKIP * 2 * CHAINS);
          lab.histogramView(context, box, {
            title: "Draws of twenty chains", density: landscape.marginal, range: [-4, 4], highest: 0.72, bins: 32, label: "θ",
            series: [{ values: run.repaired.draws, from, to, colour: WINE, words: "equal weights" }, { values: run.weighted.draws, from, to, colour: lab.theme.ink, words: "NUTS's weights", dash: [6, 3] }],
          });
        },
      },
      {
        height: 270,
        alt: ({ weighted, repaired }) => `Running mean of θ²: with equal weights it comes to ${lab.said(repaired.variance, 2)}, with NUTS's weights to ${lab.said(weighted.variance, 2)}; the truth is 1.`,
        draw: (context, box, run, shown) => lab.runningView(context, box, {
          title: "Mean of θ² so far, two standard errors", length: DRAWS, shown: shown / run.length * DRAWS, range: [0, 1.6], truth: 1, label: "variance of θ", unit: "draw",
          series: [{ running: run.repaired.running, colour: WINE, words: "equal weights" }, { running: run.weighted.running, colour: lab.theme.ink, words: "NUTS's weights", dash: [6, 3] }],
        }),
      },
    ],
  };
})();
