// Cycles of a falling step size on 25 modes: where it explores, where it samples, which draws are kept; book/further/cyclical.
(function () {
  "use strict";
  const STEPS = 20000, SHARE = 0.8, LIMIT = 0.06;  // 2σ² of a mode
  const GREEN = lab.colours.sgld, BLUE = lab.colours.sgd, TRUTH = lab.colours.truth;
  const landscape = lab.landscapes.modes;
  const nearest = (x) => Math.max(-4, Math.min(4, 2 * Math.round(x / 2)));

  function run({ cycle_length, step_size }, seed) {
    const cycles = Math.round(STEPS / cycle_length), length = cycles * cycle_length, keep = cycle_length - Math.ceil(SHARE * cycle_length);
    const parameters = lab.parameters("cyclical", { landscape, noise_variance: 1, cycle_length, step_size, exploration: SHARE, num_draws: keep });
    const { init, step } = lab.algorithms.cyclical, noise = lab.noise(seed), state = init(landscape.start, parameters, noise);
    const x = new Float64Array(length), y = new Float64Array(length), sizes = new Float64Array(length), keptX = [], keptY = [], widths = new Float64Array(cycles), found = [], modes = new Set();
    let visits = 0, seen = new Set();
    for (let k = 0; k < length; k++) {
      step(state, parameters, noise);
      [x[k], y[k]] = state.position;
      sizes[k] = state.info.step_size;
      const [cx, cy] = [nearest(x[k]), nearest(y[k])];
      if (state.info.exploring) { seen.add(cx + " " + cy); }
      if (state.info.kept) {
        keptX.push(x[k]);
        keptY.push(y[k]);
        widths[state.info.cycle] += ((x[k] - cx) ** 2 + (y[k] - cy) ** 2) / 0.06 / keep;
        modes.add(cx + " " + cy);
      }
      if ((k + 1) % cycle_length === 0) { found.push(modes.size); visits += seen.size / cycles; seen = new Set(); }
    }
    const width = widths.reduce((sum, one) => sum + one, 0) / cycles, error = Math.sqrt(widths.reduce((sum, one) => sum + (one - width) ** 2, 0) / cycles / (cycles - 1));
    return { length, cycles, cycle: cycle_length, keep, x, y, sizes, keptX, keptY, found, visits, modes: modes.size, width, error };
  }

  // How many of 25 modes so many even choices find.
  const even = (number) => 25 * (1 - (24 / 25) ** number);
  const kept = (run, shown) => Math.floor(shown / run.cycle) * run.keep + Math.max(0, shown % run.cycle - (run.cycle - run.keep));

  lab.figures.cyclical = {
    name: "cyclical",
    title: "Cycles of the step size",
    question: "Before you play: with small steps alone a chain stays in one of the 25 modes. How many does it find if its steps are large now and then?",
    seconds: 16,
    controls: [
      { name: "cycle_length", words: "steps of a cycle", symbol: "ℓ", least: 50, most: 3000, scale: "log", digits: 0, value: 1667 },
      { name: "step_size", words: "largest step size", symbol: "η₀", least: 0.01, most: 0.1, step: 0.005, digits: 3, value: 0.07 },
    ],
    presets: [
      { name: "the text's example", values: {}, why: "Above the dotted line a step is too large for a mode to hold the chain: it explores. Then the step falls, and the chain samples the mode that caught it.",
        holds: (run) => run.visits > 12 && run.modes >= 5 && run.modes <= 12 && Math.abs(run.width - 1) < 4 * run.error },
      { name: "no large steps", values: { step_size: 0.02 }, why: "This fails: 0.02 is below 2σ² = 0.06, no step is too large, and the chain never leaves its mode.",
        holds: (run) => run.modes === 1 },
      { name: "short cycles", values: { cycle_length: 50 }, why: "The same number of steps in 400 cycles finds all modes; but the step falls too fast for the chain to follow, and draws are too wide for their modes.",
        holds: (run) => run.modes === 25 && run.width - 1 > 2 * run.error },
    ],
    run,
    see: (run, { step_size }) => `In the first 80 % of a cycle the chain explores, and nothing is kept${step_size > LIMIT ? `: it sees ${Math.round(run.visits)} of the 25 modes` : ""}. `
      + `The last 20 % are kept (green): ${run.cycles} cycles end in ${run.modes} mode${run.modes === 1 ? "" : "s"}, where ${run.cycles} even choices would find about ${Math.round(even(run.cycles))}. `
      + `About their modes these draws have ${lab.said(run.width, 2)} ± ${lab.said(2 * run.error, 2)} times the true variance.`,
    panels: [
      {
        height: 380,
        alt: (run) => `The 25 modes as grey rings; steps that explore are all over them, kept draws lie in ${run.modes} of them.`,
        draw(context, box, run, shown) {
          const panel = lab.pathView(context, box, {
            title: "The chain among 25 modes", landscape, xs: run.x, ys: run.y, from: Math.max(0, shown - 2 * run.cycle), to: shown, colour: BLUE, words: "explores (last two cycles)", joined: false, alpha: 0.5,
            legend: [{ words: "kept", colour: GREEN, mark: "disc", size: 3 }, { words: "now", colour: lab.theme.ink, mark: "ring" }],
          });
          panel.points(run.keptX, run.keptY, GREEN, { to: kept(run, shown), size: 1.5 });
          const last = Math.max(0, shown - 1);
          panel.point(run.x[last], run.y[last], lab.theme.ink, { kind: "ring", size: 5, width: 2 });
        },
      },
      {
        height: 380,
        alt: (run) => `Histogram of the kept draws of θ₁ against the true density, which has five equal peaks; the draws make some peaks too high and leave out others.`,
        draw: (context, box, run, shown) => lab.histogramView(context, box, {
          title: "Kept draws of θ₁", density: landscape.marginal, range: [-5, 5], highest: 1.5, bins: 100, legendLines: 2,
          series: [{ values: run.keptX, to: kept(run, shown), colour: GREEN, words: "kept draws" }],
        }),
      },
      {
        height: 210, wide: true,
        alt: () => "Step size over the cycles: half waves of a cosine; the first four fifths of each are marked explore, the last fifth sample.",
        draw(context, box, run, shown, { step_size }) {
          const cycles = box.width < 500 ? 2 : 4, first = Math.max(0, Math.min(Math.ceil(shown / run.cycle), run.cycles) - cycles) * run.cycle;
          const end = first + cycles * run.cycle, steps = lab.grid(first, end - 1, Math.min(400, end - first - 1)).map(Math.round), top = Math.max(0.08, 1.25 * step_size);
          const panel = lab.panel(context, box, {
            title: "Step size over the last cycles", x: [first, end], y: [0, top], xlabel: "step k", ylabel: "η",
            legend: [{ words: "η", colour: TRUTH, width: 3 }, { words: "2σ²: above it no mode holds the chain", colour: lab.theme.ink, width: 1, dash: [2, 3] }, { words: "sample: draws are kept", colour: GREEN, mark: "area" }],
          });
          for (let cycle = first; cycle < end; cycle += run.cycle) {
            panel.shade(cycle + run.cycle - run.keep, cycle + run.cycle, GREEN, 0.3);
            panel.note("explore", cycle + 0.4 * run.cycle, 0.92 * top, "center");
            panel.note("sample", cycle + 0.99 * run.cycle, 0.92 * top, "right");
          }
          panel.line(steps, steps.map((k) => run.sizes[k]), TRUTH, { width: 3 });
          panel.level(LIMIT, lab.theme.ink, { width: 1, dash: [2, 3] });
          if (shown > 0) { panel.point(shown, run.sizes[shown - 1], GREEN, { size: 6 }); }
        },
      },
      {
        height: 210, wide: true,
        alt: (run) => `Modes found after each cycle, ${run.modes} at the end, against what even choices would find.`,
        draw(context, box, run, shown) {
          const cycles = lab.grid(1, run.cycles, run.cycles - 1), spread = cycles.map((m) => Math.sqrt(25 * ((24 / 25) ** m - (24 / 25) ** (2 * m)) + 600 * ((23 / 25) ** m - (24 / 25) ** (2 * m))));
          const panel = lab.panel(context, box, {
            title: "Modes that hold kept draws, so far", x: [0, run.cycles * 1.03], y: [0, 26], xlabel: "cycle", ylabel: "modes of 25",
            legend: [{ words: "even choices, two standard deviations", colour: TRUTH, mark: "area" }, { words: "this chain", colour: GREEN, mark: "disc" }],
          });
          panel.area(cycles, cycles.map((m, i) => even(m) + 2 * spread[i]), TRUTH, cycles.map((m, i) => even(m) - 2 * spread[i]));
          panel.points(cycles, run.found, GREEN, { to: Math.floor(shown / run.cycle), size: Math.max(1.5, Math.min(5, 60 / run.cycles)) });
        },
      },
    ],
  };
})();
