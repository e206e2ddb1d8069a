// HMC in a valley of standard deviations 1 and ⅓: rejections by the step size, resonance by the number of steps; book/tutorial/hamiltonian_monte_carlo.
(function () {
  "use strict";
  const DRAWS = 500, RECENT = 100, BLUE = lab.colours.hmc, RED = "#D00000", MOST = 40;
  const { init, step } = lab.algorithms.hmc, landscape = lab.landscapes.valley;

  // The angle that a leapfrog step turns in the direction of standard deviation 1.
  const angle = (step_size) => 2 * Math.asin(step_size / 2);

  // The mean of (|θ'₁| − |θ₁|)² for θ' = aθ + br with θ and r standard normal, if every proposal is accepted.
  function jumpWithoutRejections(step_size, num_steps) {
    const turned = num_steps * angle(step_size), a = Math.cos(turned), b = Math.abs(Math.sin(turned)) / Math.sqrt(1 - step_size * step_size / 4);
    return 1 + a * a + b * b - (4 / Math.PI) * (b + a * Math.atan2(a, b));
  }
  const INDEPENDENT = 2 - 4 / Math.PI;

  function run({ step_size, num_steps }, seed) {
    const parameters = lab.parameters("hmc", { landscape, step_size, num_steps }), noise = lab.noise(seed), infos = [];
    const state = init([noise.normal(), noise.normal() / 3], parameters, noise);  // an exact sample
    const [x, y, squares, across, jumps, sizes] = Array.from({ length: 6 }, () => new Float64Array(DRAWS + 1));
    let accepted = 0, hops = 0;
    for (let k = 0; k <= DRAWS; k++) {
      if (k > 0) {
        const { info } = step(state, parameters, noise), [before, after] = [info.path[0], info.path[num_steps]].map((point) => lab.energy(point, parameters) + lab.kinetic_energy(point.slice(2)));
        infos[k] = { ...info, error: after - before };
        sizes[k] = Math.abs(after - before);
        accepted += info.accepted / DRAWS;
        hops += (state.position[0] * x[k - 1] < 0) / DRAWS;  // from side to side
      }
      [x[k], y[k]] = state.position;
      [squares[k], across[k]] = [x[k] * x[k], y[k] * y[k]];
      jumps[k] = k > 0 ? (Math.abs(x[k]) - Math.abs(x[k - 1])) ** 2 : 0;
    }
    const estimate = (values) => lab.meanAndError(values, 1, DRAWS + 1);
    return {
      length: DRAWS, x, y, infos, accepted, hops, size: sizes.subarray(1).sort()[DRAWS / 2], variance: estimate(squares), across: estimate(across),
      jump: estimate(jumps), wanted: jumpWithoutRejections(step_size, num_steps), turned: num_steps * angle(step_size),
    };
  }

  const near = ([mean, error], wanted) => Math.abs(mean - wanted) < 4 * error;
  const right = (run) => near(run.variance, 1) && near(run.across, 1 / 9);
  const stuck = (run) => run.jump[0] < 0.01;
  const size = (number) => (number >= 1000 ? "10^" + Math.round(Math.log10(number)) : lab.said(number, 2));
  const estimated = ([mean, error], digits) => `${lab.said(mean, digits)} ± ${lab.said(2 * error, digits)}`;
  const numbers = lab.grid(1, MOST, 390);

  lab.figures.hmc = {
    name: "hmc",
    title: "HMC, its step size and its number of steps",
    question: "Before you play: after how many steps has a proposal gone far, and when is it back where it began?",
    unit: "sample",
    seconds: 50,
    controls: [
      { name: "step_size", words: "step size", symbol: "ε", least: 0.02, most: 0.7, step: 0.004, digits: 3, value: 0.196 },
      { name: "num_steps", words: "leapfrog steps", symbol: "L", least: 1, most: MOST, step: 1, digits: 0, value: 8 },
    ],
    presets: [
      { name: "the text's example", values: {}, why: "A quarter of a turn along the valley: nearly every proposal is accepted, and each sample owes nothing to the last.",
        holds: (run) => right(run) && near(run.jump, run.wanted) && run.accepted > 0.94 && run.wanted > 0.72 },
      { name: "near the limit", values: { step_size: 0.64 }, why: "Across the valley the step is close to the limit 2s = 0.667: the energy error is large, and most proposals are rejected. The variances are still right.",
        holds: (run) => right(run) && run.accepted > 0.25 && run.accepted < 0.45 && run.jump[0] < 0.7 * run.wanted },
      { name: "beyond it", values: { step_size: 0.68, num_steps: 20 }, why: "This fails: beyond the limit the path runs away across the valley, and the chain stays where it is.", holds: (run) => run.accepted < 0.03 },
      { name: "half a turn", values: { num_steps: 16 }, why: "This fails, and no rejection shows it: εL = π is resonance, and θ₁ hops between two values. Another seed gives another variance.",
        holds: (run) => stuck(run) && run.accepted > 0.94 && !near(run.variance, 1) && Math.abs(run.variance[0] - run.x[0] ** 2) < 0.1 && run.hops > 0.9 },
      { name: "a whole turn", values: { num_steps: 32 }, why: "This fails, at twice the price: after a whole turn the ball is back where it was.",
        holds: (run) => stuck(run) && run.accepted > 0.94 && !near(run.variance, 1) && Math.abs(run.variance[0] - run.x[0] ** 2) < 0.1 && run.hops < 0.1 },
    ],
    run,
    see: (run) => `Of ${DRAWS} proposals ${lab.said(100 * run.accepted, 0)} % were accepted; median energy error ${size(run.size)}. Turns a path: ${lab.said(run.turned / 2 / Math.PI, 2)}. `
      + `Variance of θ₁: ${estimated(run.variance, 2)}, truth 1; of θ₂: ${estimated(run.across, 2)}, truth 0.11. `
      + `Mean squared jump of |θ₁|: ${estimated(run.jump, 2)}, if independent ${lab.said(INDEPENDENT, 2)}.` + (stuck(run) ? " Stuck; the error bars hide it." : ""),
    panels: [
      {
        height: 300, wide: true,
        alt: (run) => `The last samples on the contours of a valley, ${run.accepted > 0.9 ? "hardly a cross of a rejected proposal" : run.accepted < 0.03 ? "all at one place" : "many crosses of rejected proposals"}, and the path of the last proposal.`,
        draw(context, box, run, shown) {
          const from = Math.max(1, shown - RECENT), last = run.infos[shown], { ink } = lab.theme, panel = lab.panel(context, box, {
            title: last ? `Proposal ${shown}: energy error ${last.error < 0 ? "−" : ""}${size(Math.abs(last.error))}, ${last.accepted ? "accepted" : "rejected"}` : "The start",
            x: [-4, 4], y: [-1.4, 1.4], equal: true, window: landscape.window, xlabel: "θ₁", ylabel: "θ₂",
            legend: [{ words: "its path", colour: ink, mark: "disc", size: 2 }, { words: "its start", colour: ink, mark: "ring" }, { words: "accepted", colour: BLUE, mark: "disc" }, { words: "rejected", colour: RED, mark: "cross" }, { words: "target", colour: lab.colours.truth, width: 1 }],
          });
          panel.contours(landscape);
          panel.points(run.x, run.y, BLUE, { from: from - 1, to: shown + 1, size: 2.5, alpha: 0.5 });
          const end = (info, settings) => panel.point(...info.proposal, info.accepted ? BLUE : RED, { kind: info.accepted ? "disc" : "cross", ...settings });
          for (let k = from; k < shown; k++) if (!run.infos[k].accepted) end(run.infos[k], { size: 3, alpha: 0.6 });
          if (!last) return;
          const [xs, ys] = [0, 1].map((i) => last.path.map((point) => point[i]));
          panel.line(xs, ys, ink, { width: 1 });
          panel.points(xs, ys, ink, { size: 2 });
          panel.point(xs[0], ys[0], ink, { kind: "ring", size: 5, width: 2 });
          end(last, { size: 6, width: 3 });
        },
      },
      {
        height: 260,
        alt: (run) => `The last ${RECENT} values of θ₁: ${!stuck(run) ? "they go everywhere" : run.hops > 0.9 ? "they hop from side to side" : "they stay where they are"}.`,
        draw(context, box, run, shown) {
          const to = Math.max(RECENT, shown), panel = lab.panel(context, box, { title: `θ₁ of the last ${RECENT} samples`, x: [to - RECENT, to], y: [-4, 4], xlabel: "sample", ylabel: "θ₁", legendLines: 2 });
          const from = Math.max(0, shown - RECENT), places = lab.grid(0, DRAWS, DRAWS);
          panel.line(places, run.x, BLUE, { from, to: shown + 1, width: 0.8, alpha: 0.6 });
          panel.points(places, run.x, BLUE, { from, to: shown + 1, size: 2 });
        },
      },
      {
        height: 260, answer: true,
        alt: (run) => `Mean squared jump of |θ₁| against the number of steps: a wave that falls to zero after every half turn. The point of this run is at ${lab.said(run.jump[0], 2)}.`,
        draw(context, box, run, shown, { step_size, num_steps }) {
          const panel = lab.panel(context, box, {
            title: "Mean squared jump of |θ₁|, for this ε", x: [0, MOST], y: [0, 1], xlabel: "leapfrog steps L", ylabel: "E[(Δ|θ₁|)²]", legendLines: 2,
            legend: [{ words: "without rejections", colour: lab.theme.ink, width: 1, dash: [5, 3] }, { words: "this run", colour: BLUE, mark: "disc" }, { words: "half turns", colour: lab.colours.truth, width: 1 }],
          });
          for (let half = 1; half * Math.PI < MOST * angle(step_size); half++) panel.upright(half * Math.PI / angle(step_size), lab.colours.truth, { width: 1 });
          panel.line(numbers, numbers.map((number) => jumpWithoutRejections(step_size, number)), lab.theme.ink, { width: 1, dash: [5, 3] });
          panel.error(num_steps, run.jump[0], 2 * run.jump[1], BLUE);
        },
      },
    ],
    jumpWithoutRejections,  // for the tests
  };
})();
