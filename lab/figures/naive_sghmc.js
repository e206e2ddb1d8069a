// Naive SGHMC in the bowl: what the variance of the gradient's noise does to the energy and to the draws; book/tutorial/naive_sghmc.
(function () {
  "use strict";
  const STEP_SIZE = 0.1, KICKS = 200, PATHS = 400, LENGTH = 50, DRAWS = 100, SKIP = 20, CHAINS = 60;
  const ORANGE = lab.colours.naive_sghmc, TRUTH = lab.colours.truth;
  const { init, step } = lab.algorithms.naive_sghmc;

  // The exact variance of θ at the end of trajectories of the time t, thm-naive-variance of the chapter.
  function stationaryVariance(V, t) {
    const B = 0.5 * STEP_SIZE * V;
    return 1 + B * (t / Math.sin(t) ** 2 - 1 / Math.tan(t));
  }

  // One path of 300 steps from (0, 1), without a fresh momentum.
  function onePath(V, seed) {
    const parameters = lab.parameters("naive_sghmc", { step_size: STEP_SIZE, num_steps: 300, noise_variance: V }), seeded = lab.noise(seed), first = [1, 0];
    const noise = { normal: () => (first.length ? first.shift() : seeded.normal()), uniform: seeded.uniform };
    return step(init([0, 0], parameters, noise), parameters, noise).info.path;
  }

  // The mean energy of a coordinate over many paths from equilibrium, and its standard error, after 0, 1, … steps.
  function heating(V, noise) {
    const parameters = lab.parameters("naive_sghmc", { step_size: STEP_SIZE, num_steps: KICKS, noise_variance: V });
    const sum = new Float64Array(KICKS + 1), squares = new Float64Array(KICKS + 1);
    for (let i = 0; i < PATHS; i++) {
      const { path } = step(init([noise.normal(), noise.normal()], parameters, noise), parameters, noise).info;
      for (let k = 0; k <= KICKS; k++) {
        const [x, y, r, s] = path[k], energy = (x * x + y * y + r * r + s * s) / 4;
        sum[k] += energy / PATHS;
        squares[k] += energy * energy / PATHS;
      }
    }
    return { mean: sum, error: sum.map((mean, k) => Math.sqrt((squares[k] - mean * mean) / (PATHS - 1))) };
  }

  function run({ noise_variance }, seed) {
    const noise = lab.noise(1000 + seed), path = onePath(noise_variance, seed), energy = heating(noise_variance, noise);
    const parameters = lab.parameters("naive_sghmc", { step_size: STEP_SIZE, num_steps: LENGTH, noise_variance }), numbers = 2 * CHAINS;
    const state = init(Float64Array.from({ length: numbers }, () => noise.normal()), parameters, noise);
    const draws = new Float64Array(numbers * DRAWS), squares = new Float64Array(DRAWS);
    for (let k = 0; k < DRAWS; k++) {
      step(state, parameters, noise);
      draws.set(state.position, k * numbers);
      squares[k] = state.position.reduce((sum, x) => sum + x * x, 0) / numbers;
    }
    const [variance, error] = lab.meanAndError(squares, SKIP, DRAWS);
    return {
      length: 300, theta: path.map((point) => point[0]), r: path.map((point) => point[2]), energy, draws, running: lab.running(squares, SKIP), variance, error,
      end: energy.mean[KICKS], endError: energy.error[KICKS], wanted: stationaryVariance(noise_variance, STEP_SIZE * LENGTH), B: 0.5 * STEP_SIZE * noise_variance,
    };
  }

  const turn = lab.grid(0, 2 * Math.PI, 120), times = lab.grid(0, KICKS * STEP_SIZE, KICKS);
  // Four standard errors, and two per cent for the step's own bias.
  const asSaid = (run) => Math.abs(run.end - 1 - 20 * run.B) < 4 * run.endError + 0.02 * run.end && Math.abs(run.variance - run.wanted) < 4 * run.error + 0.02 * run.wanted;

  lab.figures.naive_sghmc = {
    name: "naive_sghmc",
    title: "Naive SGHMC and the noise of its gradients",
    question: "Before you play: every gradient is right on average. Where does the energy of the ball settle?",
    controls: [{ name: "noise_variance", words: "variance of the gradient noise", symbol: "V", least: 0, most: 16, step: 0.5, digits: 1, value: 4 }],
    presets: [
      { name: "the text's example", values: {}, why: "This fails: noise pumps energy in, and nothing takes it out again.", holds: (run) => asSaid(run) && run.end > 3.5 && run.variance > 1.7 },
      { name: "exact gradients", values: { noise_variance: 0 }, why: "Without noise the path stays on its circle, the energy where it was, and the draws are right.",
        holds: (run) => asSaid(run) && Math.abs(run.end - 1) < 0.2 && Math.abs(run.variance - 1) < 0.1 },
      { name: "a quarter of the noise", values: { noise_variance: 1 }, why: "A quarter of the variance heats a quarter as fast: smaller, and still wrong.", holds: (run) => asSaid(run) && run.variance > 1.15 },
      { name: "four times the noise", values: { noise_variance: 16 }, why: "Four times the variance heats four times as fast; the draws cover five times the truth's variance.", holds: (run) => asSaid(run) && run.end > 12 && run.variance > 4 },
    ],
    run,
    see: (run, { noise_variance }) => (noise_variance > 0
      ? `Noise of variance V = ${lab.said(noise_variance, 1)} brings energy at the rate B = ½εV = ${lab.said(run.B, 2)}: after a time of 20 the mean is `
        + `${lab.said(run.end, 1)} ± ${lab.said(2 * run.endError, 1)}, and the straight line has ${lab.said(1 + 20 * run.B, 1)}. A fresh momentum after every 50 steps stops that, too late: the draws`
      : `Without noise the mean energy stays at 1: after a time of 20 it is ${lab.said(run.end, 1)} ± ${lab.said(2 * run.endError, 1)}. And the draws are right: they`)
      + ` have variance ${lab.said(run.variance, 1)} ± ${lab.said(2 * run.error, 1)}, theory says ${lab.said(run.wanted, 1)}, the target has 1.`,
    panels: [
      {
        height: 340,
        alt: (run) => run.B > 0 ? "Phase plane: a grey circle, and an irregular path that begins on it and winds outwards." : "Phase plane: the path stays on the grey circle.",
        draw(context, box, run, shown) {
          const reach = 1.7 * Math.sqrt(1 + 60 * run.B), panel = lab.panel(context, box, {  // a time of 30 brings 30B to each half of ½(θ² + r²)
            title: "One path of 300 steps, ε = 0.1", x: [-reach, reach], y: [-reach, reach], equal: true, xlabel: "position θ", ylabel: "momentum r", legendLines: 2,
            legend: [{ words: "exact gradient", colour: TRUTH, width: 3 }, { words: "naive dynamics", colour: ORANGE }, { words: "start", colour: lab.theme.ink, mark: "square" }],
          });
          panel.line(turn.map(Math.sin), turn.map(Math.cos), TRUTH, { width: 3 });
          panel.line(run.theta, run.r, ORANGE, { to: shown + 1, width: 1.2 });
          panel.point(0, 1, lab.theme.ink, { size: 4, kind: "square" });
          panel.point(run.theta[shown], run.r[shown], ORANGE, { size: 5 });
        },
      },
      {
        height: 340,
        alt: (run) => `Mean energy over a time of 20: it climbs along a straight line from 1 to ${lab.said(run.end, 1)}.`,
        draw(context, box, run, shown) {
          const to = Math.round(shown * KICKS / 300) + 1, { mean, error } = run.energy, panel = lab.panel(context, box, {
            title: "Mean energy of 400 such paths, by coordinate", x: [0, 20], y: [0, Math.max(6, 1.25 * (1 + 20 * run.B))], xlabel: "time", ylabel: "E[H]", legendLines: 2,
            legend: [{ words: "truth", colour: TRUTH, width: 3 }, { words: "mean, two standard errors", colour: ORANGE, width: 2 }, { words: "slope B", colour: lab.theme.ink, width: 1, dash: [5, 3] }],
          });
          panel.level(1, TRUTH, { width: 3 });
          panel.area(times.slice(0, to), mean.map((m, k) => m + 2 * error[k]), ORANGE, mean.map((m, k) => m - 2 * error[k]), 0.25);
          panel.line(times, mean, ORANGE, { to, width: 2 });
          panel.line([0, 20], [1, 1 + 20 * run.B], lab.theme.ink, { width: 1, dash: [5, 3] });
        },
      },
      {
        height: 270,
        alt: (run) => `Histogram of the draws, ${run.B > 0 ? "lower and wider than" : "on"} the grey true density.`,
        draw: (context, box, run, shown) => lab.histogramView(context, box, {
          title: "Draws, a fresh momentum every 50 steps", density: lab.landscapes.gaussian.marginal, range: [-6, 6], highest: 0.48, bins: 60, label: "θ", legendLines: 2,
          series: [{ values: run.draws, from: Math.min(SKIP, Math.floor(shown / 6)) * 2 * CHAINS, to: Math.round(shown / 3) * 2 * CHAINS, colour: ORANGE, words: "naive SGHMC" }],
        }),
      },
      {
        height: 270,
        alt: (run) => `Running variance of the draws with its bar: it comes to rest at ${lab.said(run.variance, 1)}; the truth is 1.`,
        draw: (context, box, run, shown) => lab.runningView(context, box, {
          title: "Variance of the draws so far", length: DRAWS, shown: shown / 3, range: [0, Math.max(3, 1.4 * run.wanted)], truth: 1, label: "variance of θ", unit: "draw", legendLines: 2,
          series: [{ running: run.running, colour: ORANGE, words: "two standard errors" }], legend: [lab.theory()],
        }).level(run.wanted, lab.theme.ink, lab.theory()),
      },
    ],
  };
})();
