// The leapfrog in the bowl U = ½θ² from (0, 1), by its step size: book/tutorial/hamiltonian_dynamics.
(function () {
  "use strict";
  const STEPS = 200, BLUE = lab.colours.hmc, TRUTH = lab.colours.truth;

  // By how much the energy can exceed the first, as a share: the conserved ellipse has 1/(1 − ¼ε²) at the largest.
  const bound = (step_size) => 1 / (1 - step_size * step_size / 4) - 1;

  function run({ step_size }) {
    const parameters = lab.parameters("leapfrog", { step_size }), { init, step } = lab.algorithms.leapfrog;
    const state = init([0, 0], parameters, lab.recorded([1, 0], []));
    const theta = new Float64Array(STEPS + 1), r = new Float64Array(STEPS + 1), error = new Float64Array(STEPS + 1);
    let largest = 0;
    for (let k = 0; k <= STEPS; k++) {
      if (k > 0) { step(state, parameters); }
      theta[k] = state.position[0];
      r[k] = state.momentum[0];
      error[k] = Math.abs(theta[k] * theta[k] + r[k] * r[k] - 1);
      largest = Math.max(largest, error[k]);
    }
    return { length: STEPS, theta, r, error, largest, stable: step_size < 2 };
  }

  const turn = lab.grid(0, 2 * Math.PI, 180), sizes = lab.grid(0.02, 1.999, 300);

  lab.figures.leapfrog = {
    name: "leapfrog",
    title: "The leapfrog and its step size",
    question: "Before you play: does the ball come back to its circle, and at which step size will it run away?",
    chance: false,
    seconds: 10,
    controls: [{ name: "step_size", words: "step size", symbol: "ε", least: 0.05, most: 2.1, step: 0.01, value: 0.3 }],
    presets: [
      { name: "the text's example", values: {}, why: "The points run round an ellipse that can hardly be told from the circle of the exact ball.",
        holds: (run) => run.largest <= 0.0231 && run.largest > 0.022 },
      { name: "a third of the step", values: { step_size: 0.1 }, why: "The error falls with the square of the step: a third of it leaves a ninth of the error.",
        holds: (run) => Math.abs(run.largest / bound(0.3) - 1 / 9) < 0.01 },
      { name: "near the limit", values: { step_size: 1.9 }, why: "A long ellipse: the energy is far off, yet the path still comes back and does not run away.",
        holds: (run) => run.largest > 5 && run.largest <= bound(1.9) * 1.000001 },
      { name: "beyond the limit", values: { step_size: 2.01 }, why: "This fails: from ε = 2 on the ellipse is open, and the path grows without end.",
        holds: (run) => run.largest > 1e10 },
    ],
    run,
    see: (run, { step_size }) => run.stable
      ? `With ε = ${lab.said(step_size, 2)} the points stay on an ellipse. In ${STEPS} steps the energy is never wrong by more than `
        + `${lab.said(100 * run.largest, run.largest < 0.1 ? 1 : 0)} % of the first, as much as that ellipse allows: the error swings, and does not grow.`
      : `With ε = ${lab.said(step_size, 2)}, not below the limit of 2, no ellipse holds the points: after ${STEPS} steps the energy is `
        + `${run.largest > 1e6 ? "10^" + Math.round(Math.log10(run.largest)) : Math.round(run.largest)} times the first, and it goes on growing.`,
    panels: [
      {
        height: 350,
        alt: (run) => run.stable ? "Phase plane: the exact path is a grey circle, the leapfrog's points lie on an ellipse about it." : "Phase plane: the leapfrog's points leave the circle and the frame.",
        draw(context, box, run, shown, { step_size }) {
          const reach = Math.max(1.35, Math.min(4.2, 1.1 / Math.sqrt(Math.max(0.01, 1 - step_size * step_size / 4))));
          const panel = lab.panel(context, box, {
            title: "Phase plane, one unit alike on both axes", x: [-reach, reach], y: [-1.35, 1.35], equal: true, xlabel: "position θ", ylabel: "momentum r", legendLines: 2,
            legend: [{ words: "exact", colour: TRUTH, width: 3 }, { words: "leapfrog", colour: BLUE, mark: "disc" }, { words: "the ellipse it keeps", colour: BLUE, width: 1, dash: [4, 3] }],
          });
          panel.line(turn.map(Math.sin), turn.map(Math.cos), TRUTH, { width: 3 });
          if (run.stable) {
            const wide = 1 / Math.sqrt(1 - step_size * step_size / 4);
            panel.line(turn.map((a) => wide * Math.sin(a)), turn.map(Math.cos), BLUE, { width: 1, dash: [4, 3] });
          }
          const round = Math.max(0, shown - Math.ceil(2 * Math.PI / step_size));  // the last time round, and faintly what was before
          panel.points(run.theta, run.r, BLUE, { to: round, size: 1.5, alpha: 0.35 });
          panel.points(run.theta, run.r, BLUE, { from: round, to: shown + 1, size: 3.5 });
          panel.point(0, 1, lab.theme.ink, { size: 5, kind: "square" });
          panel.note("start", 0.06 * reach, 1.16);
          panel.point(run.theta[shown], run.r[shown], BLUE, { size: 6 });
        },
      },
      {
        height: 350,
        alt: (run) => run.stable ? "Energy error of each step on a logarithmic scale: it stays below a dashed line." : "Energy error of each step on a logarithmic scale: it climbs without end.",
        draw(context, box, run, shown, { step_size }) {
          const steps = lab.grid(0, STEPS, STEPS), panel = lab.panel(context, box, {
            title: "Energy error of each step", x: [0, STEPS], y: run.stable ? [1e-6, 1e2] : [1e-6, 1e30], upwards: lab.powers, xlabel: "step", ylabel: "|H − H₀| / H₀", legendLines: 2,
            legend: [{ words: "leapfrog", colour: BLUE, mark: "disc" }, { words: "largest that the ellipse allows", colour: BLUE, width: 1, dash: [4, 3] }],
          });
          if (run.stable) { panel.level(bound(step_size), BLUE, { width: 1, dash: [4, 3] }); }
          panel.points(steps, run.error, BLUE, { from: 1, to: shown + 1, size: 2 });
        },
      },
      {
        height: 230, wide: true, answer: true,
        alt: (run) => `Largest energy error against the step size: a curve that rises to infinity at the stability limit, ε = 2. The point of this run is ${run.stable ? "on it" : "beyond the limit"}.`,
        draw(context, box, run, shown, { step_size }) {
          const panel = lab.panel(context, box, {
            title: "Largest energy error against the step size", x: [0, 2.15], y: [1e-4, 1e3], upwards: lab.powers, xlabel: "step size ε", ylabel: "largest error",
            legend: [{ words: "1/(1 − ¼ε²) − 1", colour: BLUE }, { words: "this run", colour: BLUE, mark: "disc", size: 5 }, { words: "stability limit ε = 2", colour: "#D55E00", dash: [6, 3] }],
          });
          panel.shade(2, 2.15, "#D55E00", 0.2);
          panel.upright(2, "#D55E00", { dash: [6, 3] });
          panel.line(sizes, sizes.map(bound), BLUE);
          panel.point(step_size, Math.min(run.largest, 700), BLUE, { size: 6 });
        },
      },
    ],
  };
})();
