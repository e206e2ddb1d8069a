// Minibatches of a line through 40 points: their gradients, and what a sampler makes of them, by batch size; book/tutorial/minibatch_noise.
(function () {
  "use strict";
  const N = 40, BATCHES = 600, RATE = 0.1, STEPS = 1500, SKIP = 60, CHAINS = 40;
  const GREEN = lab.colours.sgld, TRUTH = lab.colours.truth, DOTS = "#56B4E9";
  const landscape = lab.landscapes.regression, { inputs, targets } = landscape;
  const theta = [landscape.moments.mean + 1.5, landscape.start[1] - 1];  // where the gradients are shown

  // Σ of the contributions of single examples at θ: (variance, covariance, variance), over all 40.
  function contributions(x, y) {
    const first = inputs.map((input, i) => (x + y * input - targets[i]) / 40), second = first.map((g, i) => g * inputs[i]);
    const mean = (values) => values.reduce((sum, value) => sum + value, 0) / N, m = mean(first), w = mean(second);
    return [mean(first.map((g) => (g - m) ** 2)), mean(first.map((g, i) => (g - m) * (second[i] - w))), mean(second.map((g) => (g - w) ** 2))];
  }

  // V of a minibatch of n without replacement, thm-minibatch of the chapter.
  const covariance = (n, sigma) => sigma.map((s) => s * N * N / n * (N - n) / (N - 1));
  const SIGMA = contributions(...theta), SIGMA_AT_MEAN = contributions(...landscape.start);

  function run({ batch_size }, seed) {
    const noise = lab.noise(seed), out = new Float64Array(2), first = new Float64Array(BATCHES), second = new Float64Array(BATCHES), distance = new Float64Array(BATCHES);
    landscape.gradient(...theta, out);
    const exact = Array.from(out);
    for (let i = 0; i < BATCHES; i++) {
      landscape.minibatch_gradient(...theta, batch_size, noise, out);
      [first[i], second[i]] = out;
      distance[i] = (out[0] - exact[0]) ** 2 + (out[1] - exact[1]) ** 2;
    }
    const parameters = lab.parameters("sgld", { landscape, batch_size, step_size: RATE }), { init, step } = lab.algorithms.sgld, numbers = 2 * CHAINS;
    const state = init(Float64Array.from({ length: numbers }, (_, i) => landscape.start[i % 2]), parameters, noise);
    const draws = new Float64Array(STEPS * CHAINS), squares = new Float64Array(STEPS);
    for (let k = 0; k < STEPS; k++) {
      step(state, parameters, noise);
      for (let c = 0; c < CHAINS; c++) {
        const x = draws[k * CHAINS + c] = state.position[2 * c];
        squares[k] += (x - landscape.moments.mean) ** 2 / CHAINS / landscape.moments.variance;
      }
    }
    const V = covariance(batch_size, SIGMA), [ratio, error] = lab.meanAndError(squares, SKIP, STEPS), [trace, traceError] = lab.meanAndError(distance, 0, BATCHES);
    const atMean = covariance(batch_size, SIGMA_AT_MEAN)[0], a = 1 / landscape.moments.variance;
    // Of the linear chain with this V: (2η + η²V)/(1 − (1 − ηa)²), over the truth; V also depends on θ, which adds a little.
    const wanted = (2 + RATE * atMean) / (2 - RATE * a);
    return { length: BATCHES, first, second, exact, V, trace, traceError, formula: V[0] + V[2], draws, running: lab.running(squares, SKIP), ratio, error, wanted };
  }

  // Two standard deviations of N(0, V) about a centre.
  function ellipse([a, b, c], [x, y]) {
    const low = b / Math.sqrt(a), rest = Math.sqrt(Math.max(0, c - low * low)), turn = lab.grid(0, 2 * Math.PI, 90);
    return [turn.map((t) => x + 2 * Math.sqrt(a) * Math.cos(t)), turn.map((t) => y + 2 * (low * Math.cos(t) + rest * Math.sin(t)))];
  }

  const sizes = Array.from({ length: N }, (_, i) => i + 1), traces = sizes.map((n) => { const V = covariance(n, SIGMA); return V[0] + V[2]; });
  const asSaid = (run) => Math.abs(run.trace - run.formula) <= 4 * run.traceError + 1e-9;

  lab.figures.minibatch_noise = {
    name: "minibatch_noise",
    title: "Minibatch noise by the size of the minibatch",
    question: "Before you play: how far from the exact gradient are those of four examples of forty, and what do Langevin chains make of it?",
    unit: "minibatch",
    controls: [{ name: "batch_size", words: "examples in a minibatch, of 40,", symbol: "n", least: 1, most: N, step: 1, digits: 0, value: 4 }],
    presets: [
      { name: "the text's example", values: {}, why: "n = 4: on average right, and each alone far out; a sampler that takes them for exact draws too wide.",
        holds: (run) => asSaid(run) && run.ratio > 1.3 && run.ratio < 1.9 },
      { name: "one example", values: { batch_size: 1 }, why: "This fails: one example speaks for 40, and the noise is far louder than the gradient.", holds: (run) => asSaid(run) && run.ratio > 2.5 },
      { name: "half of them", values: { batch_size: 20 }, why: "Without replacement half of the examples leave a ninth of the noise that four leave.",
        holds: (run) => asSaid(run) && Math.abs(run.formula / (traces[3]) - 1 / 9) < 1e-9 && run.ratio < 1.25 },
      { name: "all of them", values: { batch_size: N }, why: "All 40: every minibatch is the same, and no noise is left but the sampler's own.", holds: (run) => run.trace < 1e-20 && Math.abs(run.ratio - run.wanted) < 4 * run.error + 0.01 },
    ],
    run,
    see: (run, { batch_size }) => `Minibatches of ${batch_size}: the mean square of their noise is ${lab.said(run.trace, 1)} ± ${lab.said(2 * run.traceError, 1)}, the formula has ${lab.said(run.formula, 1)}; `
      + `the exact gradient has ${lab.said(run.exact[0] ** 2 + run.exact[1] ** 2, 1)}. Langevin steps of size η = 0.1 that ignore it draw with ${lab.said(run.ratio, 1)} times the true variance.`,
    panels: [
      {
        height: 340,
        alt: (run, { batch_size }) => `A cloud of the gradients of ${BATCHES} minibatches of ${batch_size} about the exact gradient, and the ellipse of two standard deviations.`,
        draw(context, box, run, shown) {
          const reach = Math.max(3, 2.6 * Math.sqrt(run.V[0])), [x, y] = run.exact, panel = lab.panel(context, box, {
            title: "Gradients of minibatches at one θ", x: [x - reach, x + reach], y: [y - reach, y + reach], equal: true, xlabel: "∂Ũ/∂θ₁", ylabel: "∂Ũ/∂θ₂", legendLines: 2,
            legend: [{ words: "minibatch", colour: DOTS, mark: "disc", size: 3 }, { words: "exact", colour: lab.theme.ink, mark: "cross" }, { words: "two standard deviations, by the formula", colour: lab.theme.ink, width: 1.5 }],
          });
          panel.points(run.first, run.second, DOTS, { to: shown, size: 2, alpha: 0.7 });
          panel.line(...ellipse(run.V, run.exact), lab.theme.ink);
          panel.arrow(0, 0, ...run.exact, lab.theme.ink);
          panel.point(...run.exact, lab.theme.ink, { kind: "cross", size: 5, width: 2 });
        },
      },
      {
        height: 340, answer: true,
        alt: (run, { batch_size }) => `Mean square of the noise against the batch size: a falling curve that drops to zero at 40, and the point of this run at ${batch_size}.`,
        draw(context, box, run, shown, { batch_size }) {
          const panel = lab.panel(context, box, {
            title: "Mean square of the noise", x: [0.9, 44], y: [0.02, 100], across: lab.powers, upwards: lab.powers, xlabel: "size of the minibatch n", ylabel: "tr V", legendLines: 2,
            legend: [{ words: "N²(N − n)/(n(N − 1)) tr Σ", colour: lab.theme.ink, width: 1.5 }, { words: "these minibatches", colour: DOTS, mark: "disc", size: 4 }],
          });
          panel.line(sizes, traces.map((t) => Math.max(t, 1e-3)), lab.theme.ink);
          panel.point(batch_size, Math.max(run.trace, 0.024), DOTS, { size: 6 });
        },
      },
      {
        height: 270,
        alt: (run) => `Histogram of the draws of Langevin chains, ${run.ratio > 1.1 ? "wider than" : "close to"} the grey true density.`,
        draw: (context, box, run, shown) => lab.histogramView(context, box, {
          title: "Langevin chains that ignore the noise", density: landscape.marginal, range: [landscape.moments.mean - 5, landscape.moments.mean + 5], highest: 0.48,
          series: [{ values: run.draws, from: SKIP * CHAINS, to: Math.max(SKIP + 20, Math.round(shown * STEPS / BATCHES)) * CHAINS, colour: GREEN, words: "SGLD" }],
        }),
      },
      {
        height: 270,
        alt: (run) => `Running variance of the draws over the truth with its bar: it comes to rest at ${lab.said(run.ratio, 1)}.`,
        draw: (context, box, run, shown) => lab.runningView(context, box, {
          title: "Their variance over the true one, so far", length: STEPS, shown: shown * STEPS / BATCHES, range: [0, Math.max(2.5, 1.3 * run.wanted)], truth: 1, label: "variance of θ₁ / truth",
          series: [{ running: run.running, colour: GREEN, words: "SGLD, two standard errors" }],
        }),
      },
    ],
  };
})();
