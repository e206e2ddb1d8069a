// SGHMC in the bowl with gradient noise of variance 4: its temperature by friction and noise estimate; book/tutorial/sghmc.
(function () {
  "use strict";
  const STEPS = 4000, SKIP = 200, CHAINS = 20, STEP_SIZE = 0.1, V = 4, B = 0.5 * STEP_SIZE * V;
  const PINK = lab.colours.sghmc, TRUTH = lab.colours.truth, HOT = "#D00000", COLD = "#0060C0";
  const temperature = (friction, estimate) => (friction - estimate + B) / friction;

  function run({ friction, noise_estimate }, seed) {
    const parameters = lab.parameters("sghmc", { step_size: STEP_SIZE, noise_variance: V, friction, noise_estimate });
    const { init, step } = lab.algorithms.sghmc, noise = lab.noise(seed), numbers = 2 * CHAINS;
    const state = init(Float64Array.from({ length: numbers }, () => noise.normal()), parameters, noise);
    const draws = new Float64Array(STEPS * numbers), squares = new Float64Array(STEPS), x = new Float64Array(STEPS), y = new Float64Array(STEPS);
    for (let k = 0; k < STEPS; k++) {
      step(state, parameters, noise);
      draws.set(state.position, k * numbers);
      x[k] = state.position[0];
      y[k] = state.position[1];
      squares[k] = state.position.reduce((sum, theta) => sum + theta * theta, 0) / numbers;
    }
    const [measured, error] = lab.meanAndError(squares, SKIP, STEPS);
    return { length: STEPS, draws, x, y, running: lab.running(squares, SKIP), measured, error, wanted: temperature(friction, noise_estimate) };
  }

  // Within four standard errors, and a half per cent for the step's own bias.
  const asSaid = (run) => Math.abs(run.measured - run.wanted) < 4 * run.error + 0.005 * run.wanted && run.error < 0.05;

  lab.figures.sghmc = {
    name: "sghmc",
    title: "SGHMC as a thermometer",
    question: "Before you play: which noise estimate gives the right width? And with no estimate at all, which friction makes the chain only five per cent too hot?",
    controls: [
      { name: "friction", words: "friction", symbol: "C", least: 0.4, most: 8, scale: "log", value: 0.5 },
      { name: "noise_estimate", words: "noise estimate", symbol: "B̂", least: 0, most: 0.4, step: 0.01, value: 0.2 },
    ],
    presets: [
      { name: "the text's example", values: {}, why: "Friction and noise in balance: B̂ = B = ½εV = 0.2, so that all noise together is what the friction needs.",
        holds: (run) => asSaid(run) && Math.abs(run.wanted - 1) < 1e-9 },
      { name: "nothing estimated", values: { noise_estimate: 0 }, why: "This fails: with B̂ = 0 the gradient's noise comes on top of what is injected, and the chain is too hot.",
        holds: (run) => asSaid(run) && run.measured > 1.2 },
      { name: "twice too much", values: { noise_estimate: 0.4 }, why: "This fails: B̂ = 2B takes away noise that was never there, and the chain is too cold.",
        holds: (run) => asSaid(run) && run.measured < 0.8 },
      { name: "more friction", values: { friction: 4, noise_estimate: 0 }, why: "Friction far above the noise hides a wrong estimate: with C = 4 even B̂ = 0 is only 5 % too hot.",
        holds: (run) => asSaid(run) && Math.abs(run.wanted - 1.05) < 1e-9 },
    ],
    run,
    see: (run, { friction, noise_estimate }) => `T = (C − B̂ + B)/C = (${lab.said(friction, 2)} − ${lab.said(noise_estimate, 2)} + 0.20)/${lab.said(friction, 2)} = ${lab.said(run.wanted, 2)}: `
      + (Math.abs(run.wanted - 1) < 0.01 ? "the right temperature, and the histogram lies on the truth. " : run.wanted > 1 ? "too hot, and the histogram is too wide. " : "too cold, and the histogram is too narrow. ")
      + `This run agrees: in the bowl the mean of θ² is T, and it is ${lab.said(run.measured, 2)} ± ${lab.said(2 * run.error, 2)}.`,
    panels: [
      {
        height: 330,
        alt: () => "The last steps of one of twenty chains on the contours of a Gaussian.",
        draw: (context, box, run, shown) => lab.pathView(context, box, {
          title: "One of twenty chains: its last 150 steps", landscape: lab.landscapes.gaussian, xs: run.x, ys: run.y, from: Math.max(0, shown - 150), to: shown, colour: PINK, words: "SGHMC",
        }),
      },
      {
        height: 330,
        alt: (run) => `Histogram of the draws, ${run.wanted > 1.02 ? "wider than" : run.wanted < 0.98 ? "narrower than" : "on"} the grey true density.`,
        draw: (context, box, run, shown) => lab.histogramView(context, box, {
          title: "Draws of all chains", density: lab.landscapes.gaussian.marginal, range: [-4, 4], highest: 0.6, label: "θ",
          series: [{ values: run.draws, from: Math.min(Math.floor(shown / 2), SKIP) * 2 * CHAINS, to: shown * 2 * CHAINS, colour: PINK, words: "SGHMC" }],
        }),
      },
      {
        height: 270,
        alt: (run) => `Running mean of θ² with its bar: it comes to rest at ${lab.said(run.measured, 2)}; the truth is 1.`,
        draw: (context, box, run, shown) => lab.runningView(context, box, {
          title: "The thermometer: mean of θ² so far", length: STEPS, shown, range: [0.4, 1.8], truth: 1, label: "temperature", legendLines: 2,
          series: [{ running: run.running, colour: PINK, words: "mean of θ², two standard errors" }], legend: [lab.theory()],
        }).level(run.wanted, lab.theme.ink, lab.theory()),
      },
      {
        height: 270, answer: true,
        alt: (run) => `The plane of friction and noise estimate, coloured by temperature: white along the line B̂ = B, red below it and blue above, paler to the right. This run, at ${lab.said(run.measured, 2)}, is a point in it.`,
        draw(context, box, run, shown, { friction, noise_estimate }) {
          const panel = lab.panel(context, box, {
            title: "The temperature of every C and B̂", x: [0.1, 8], y: [0, 0.4], across: lab.powers, xlabel: "friction C", ylabel: "noise estimate B̂", legendLines: 2,
            legend: [{ words: "too hot", colour: HOT, mark: "square" }, { words: "too cold", colour: COLD, mark: "square" }, { words: "T = 1", colour: TRUTH, width: 3 }, { words: "not allowed, B̂ > C", colour: lab.theme.ink, width: 1, dash: [1, 3] }, { words: "this run", colour: PINK, mark: "disc", size: 4 }],
          });
          const cells = 24, wide = Math.log(80) / cells, tall = 0.4 / cells;
          for (let i = 0; i < cells; i++) {
            for (let j = 0; j < cells; j++) {
              const [low, high] = [0.1 * Math.exp(i * wide), 0.1 * Math.exp((i + 1) * wide)], estimate = (j + 0.5) * tall, C = Math.sqrt(low * high);
              if (estimate > C) { continue; }
              const off = temperature(C, estimate) - 1;
              panel.paint(off > 0 ? HOT : COLD, { alpha: Math.min(0.9, 1.4 * Math.abs(off)) }, (context, toX, toY) =>
                context.fillRect(toX(low), toY((j + 1) * tall), toX(high) - toX(low) + 0.3, toY(j * tall) - toY((j + 1) * tall) + 0.3));
            }
          }
          const line = lab.grid(0.1, 0.4, 60);
          panel.line(line, line, lab.theme.ink, { width: 1, dash: [1, 3] });
          panel.line([B, 8], [B, B], TRUTH, { width: 3 });
          panel.point(friction, noise_estimate, PINK, { size: 5 });
        },
      },
    ],
  };
})();
