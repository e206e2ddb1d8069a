// NUTS on a ridge: how a path grows by doubling until it turns, and what it draws; book/tutorial/no_u_turn.
(function () {
  "use strict";
  const BROWN = lab.colours.nuts, DRAWS = 4000, SPREAD = 1 - 0.95 ** 2;
  const COINS = [0.014, 0.503, 0.062, 0.746, 0.933, 0.385, 0.816, 0.227, 0.158, 0.78];  // of the chapter's tree: below one half the path is turned round

  // Variances 1 and correlation 0.95, the ridge of the chapter.
  const ridge = {
    title: "ridge",
    dim: 2,
    energy: (x, y) => (0.5 * (x * x - 1.9 * x * y + y * y)) / SPREAD,
    gradient(x, y, out) {
      out[0] = (x - 0.95 * y) / SPREAD;
      out[1] = (y - 0.95 * x) / SPREAD;
    },
    window: [-3, 3, -3, 3],
    marginal: lab.landscapes.gaussian.marginal,
  };
  const { init, step } = lab.algorithms.nuts;

  function run({ step_size, angle }, seed) {
    const parameters = lab.parameters("nuts", { landscape: ridge, step_size, max_depth: 10 }), seeded = lab.noise(seed);
    // One tree from the chapter's start, its momentum of the given direction, its coins the chapter's for the first seed.
    const turned = angle * Math.PI / 180, first = [1.523 * Math.cos(turned), 1.523 * Math.sin(turned)], coins = seed === 1 ? COINS.slice() : [];
    const noise = { normal: () => (first.length ? first.shift() : seeded.normal()), uniform: () => (coins.length ? coins.shift() : seeded.uniform()) };
    const { tree, depth } = step(init([1.5, 1.2], parameters, noise), parameters, noise).info, timeline = lab.timeline(tree);
    const state = init([0, 0], parameters, seeded), draws = new Float64Array(DRAWS), squares = new Float64Array(DRAWS);
    for (let k = 0; k < DRAWS; k++) {
      step(state, parameters, seeded);
      draws[k] = state.position[0];
      squares[k] = draws[k] * draws[k];
    }
    const [variance, error] = lab.meanAndError(squares, 0, DRAWS);
    return { length: tree.states.length - 1, tree, depth, timeline, draws, running: lab.running(squares), variance, error, gradients: state.num_gradients / DRAWS };
  }

  const asSaid = (run) => Math.abs(run.variance - 1) < 4 * run.error;

  lab.figures.nuts = {
    name: "nuts",
    title: "A tree of NUTS, grown on a ridge",
    question: "Before you play: where on the ridge does the path stop, and which of its halves is thrown away?",
    unit: "state",
    controls: [
      { name: "step_size", words: "step size", symbol: "ε", least: 0.05, most: 0.5, step: 0.01, value: 0.34 },
      { name: "angle", words: "direction of the first momentum", symbol: "φ", unit: "°", least: 0, most: 359, step: 1, digits: 0, value: 247 },
    ],
    presets: [
      { name: "the text's example", values: {}, why: "Each doubling is as long as the path before it. The last half came to the end of the ridge and turned back: it is thrown away.",
        holds: (run) => asSaid(run) && run.depth === 3 && run.tree.ended === "new half" },
      { name: "small steps", values: { step_size: 0.08 }, why: "The same ball in smaller steps: the path needs two doublings more before it turns, and each draw costs more gradients.",
        holds: (run) => asSaid(run) && run.depth >= 5 },
      { name: "across the ridge", values: { angle: 135 }, why: "Started across the ridge the ball comes back at once, and the tree stays small: no fixed length suits both.",
        holds: (run) => asSaid(run) && run.depth <= 2 },
      { name: "too large a step", values: { step_size: 0.5 }, why: "Beyond the stability limit, ε = 0.45 across the ridge: the energy grows along every path, trees stay small, and the chain crawls. Right, but with a wide bar.",
        holds: (run) => asSaid(run) && run.depth <= 2 && run.error > 0.07 },
    ],
    run,
    see: (run, { step_size }) => `From the square the path doubled ${run.depth} time${run.depth === 1 ? "" : "s"}, to ${2 ** run.depth} states; then ${lab.whyEnded(run.tree, 2 ** run.depth)}. `
      + `A chain of ${DRAWS} such draws, of ${Math.round(run.gradients)} gradients each, has variance ${lab.said(run.variance, 1)} ± ${lab.said(2 * run.error, 1)}; the truth is 1.`,
    panels: [
      {
        height: 370,
        alt: (run) => `A narrow ridge along the diagonal with a path of ${run.tree.states.length} states, coloured by doubling; those thrown away are hollow.`,
        draw: (context, box, run, shown) => lab.treeView(context, box, { title: "One path on the ridge, by doubling", landscape: ridge, timeline: run.timeline, shown }),
      },
      {
        height: 370,
        alt: (run) => `The states in a row under brackets, one for each sub-tree${run.tree.turn ? "; the one that turns is thick and dashed" : ""}.`,
        draw: (context, box, run, shown) => lab.bracketView(context, box, { title: "Its tree", tree: run.tree, timeline: run.timeline, shown }),
      },
      {
        height: 250,
        alt: (run) => `Histogram of the draws of θ₁ against the true density.`,
        draw: (context, box, run, shown) => lab.histogramView(context, box, {
          title: "Draws of a chain", density: ridge.marginal, range: [-4, 4], highest: 0.6, bins: 32,
          series: [{ values: run.draws, to: Math.round(shown / run.length * DRAWS), colour: BROWN, words: "NUTS" }],
        }),
      },
      {
        height: 250,
        alt: (run) => `Running variance of the draws with its bar: ${lab.said(run.variance, 1)} at the end; the truth is 1.`,
        draw: (context, box, run, shown) => lab.runningView(context, box, {
          title: "Variance of the draws so far", length: DRAWS, shown: shown / run.length * DRAWS, range: [0, 2], truth: 1, label: "variance of θ₁", unit: "draw", series: [{ running: run.running, colour: BROWN, words: "NUTS, two standard errors" }],
        }),
      },
    ],
  };
})();
