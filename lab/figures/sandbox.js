// The sandbox: any landscape, two algorithms side by side at one seed. The address holds the state, so that a link shows the same picture.
(function () {
  "use strict";
  const MOST = { 1: 8000, 1000: 400 };  // draws, by the number of chains
  const SERIES = { sgnuts_reported: "naive SGHMC", sgnuts_repaired: "SGNUTS", cyclical: "SGLD", random_walk: "random walk" };
  const colourOf = (algorithm) => lab.colours[SERIES[algorithm] || lab.algorithms[algorithm].title];
  const ALGORITHMS = ["random_walk", "hmc", "nuts", "sgld", "naive_sghmc", "sghmc", "sgnuts_reported", "sgnuts_repaired", "cyclical"];
  const MANY = ["sgld", "naive_sghmc", "sghmc", "cyclical"];  // take many chains at once
  const LANDSCAPES = ["gaussian", "correlated", "double_well", "banana", "modes", "funnel"];
  const wrong = (side) => Math.abs(side.variance - side.truth) > 5 * side.error, right = (side) => !wrong(side);

  // Stories: the first is what one sees at first; holds is what a test asserts of the two sides.
  const STORIES = [
    { name: "friction cools", why: "Right: gradient noise heats, and nothing takes the heat out. Left: friction does.",
      state: { landscape: "gaussian", noise_variance: 4, draws: 3000, left: ["sghmc", { friction: 1 }], right: ["naive_sghmc", {}] }, holds: (left, right_) => right(left) && wrong(right_) },
    { name: "an estimate too low", why: "Right: with B̂ = 0 the gradient's noise comes on top of what is injected, and the draws are too wide.",
      state: { landscape: "gaussian", noise_variance: 8, draws: 6000, left: ["sghmc", { friction: 1, noise_estimate: 0.4 }], right: ["sghmc", { friction: 1, noise_estimate: 0 }] }, holds: (left, right_) => right(left) && wrong(right_) },
    { name: "too large a step", why: "Right: η = 0.4 is above 2/10.5, the limit on this ridge, and the chain is gone. Left: a tenth of it.",
      state: { landscape: "correlated", noise_variance: 0, draws: 3000, left: ["sgld", { step_size: 0.04 }], right: ["sgld", { step_size: 0.4 }] }, holds: (left, right_) => right(left) && !(right_.variance < 1e6) },
    { name: "weights counted twice", why: "Left: the report's weights exp(−H) draw too much where the energy is low. Right: equal weights.",
      state: { landscape: "gaussian", noise_variance: 4, draws: 3000, left: ["sgnuts_reported", { step_size: 0.05, friction: 1, noise_estimate: 0.1 }], right: ["sgnuts_repaired", { step_size: 0.05, friction: 1, noise_estimate: 0.1 }] },
      holds: (left, right_) => wrong(left) && right(right_) },
    { name: "25 modes", why: "Left: a chain with small steps stays in the mode where it began. Right: cycles of large steps throw it about.",
      state: { landscape: "modes", noise_variance: 1, draws: 8000, left: ["sgld", { step_size: 0.01 }], right: ["cyclical", { step_size: 0.07, cycle_length: 800 }] }, holds: (left, right_) => left.variance < 0.1 && right_.variance > 2 },
    { name: "a narrow neck", why: "Left: HMC with one step size for all cannot enter the neck of the funnel, on the left, and leaves the small θ₁ out. Right: smaller steps get in deeper, slowly.",
      state: { landscape: "funnel", noise_variance: 0, draws: 3000, left: ["hmc", { step_size: 0.8, num_steps: 8 }], right: ["nuts", { step_size: 0.1 }] }, holds: (left, right_) => left.least > right_.least },
  ];

  // One side: a run of one algorithm, with all its draws, so that one can go back.
  function begin(state, name) {
    const [algorithm, given] = state[name], chains = MANY.includes(algorithm) ? state.chains : 1, landscape = lab.landscapes[state.landscape];
    const parameters = lab.parameters(algorithm, { ...given, landscape, noise_variance: state.noise_variance }), noise = lab.noise(state.seed), most = MOST[state.chains];
    const chain = lab.algorithms[algorithm].init(Float64Array.from({ length: 2 * chains }, (_, i) => landscape.start[i % 2]), parameters, noise);
    return { algorithm, parameters, noise, chain, chains, landscape, done: 0, x: new Float64Array(most * chains), y: new Float64Array(most * chains), squares: new Float64Array(most), infos: [] };
  }

  function advance(side, until) {
    const { chain, chains, parameters, noise, x, y, squares } = side, { step } = lab.algorithms[side.algorithm], { mean } = side.landscape.moments;
    for (; side.done < until; side.done++) {
      step(chain, parameters, noise);
      for (let c = 0, at = side.done * chains; c < chains; c++, at++) {
        x[at] = chain.position[2 * c];
        y[at] = chain.position[2 * c + 1];
        squares[side.done] += (x[at] - mean) ** 2 / chains;
      }
      side.infos.push(chains === 1 && chain.info);
    }
    return side;
  }

  // What the first `shown` draws say.
  function read({ squares, landscape, chain, x }, shown) {
    const [variance, error] = lab.meanAndError(squares, 0, shown);
    return { variance, error, truth: landscape.moments.variance, gradients: chain.num_gradients, least: x.slice(0, shown).reduce((a, b) => Math.min(a, b), Infinity) };
  }

  const storyState = (story) => ({ seed: 1, chains: 1, ...story.state });

  // The address: everything of the state, parameters as left.step_size=….
  function toAddress({ left, right: right_, ...rest }) {
    const pairs = Object.entries(rest);
    for (const [side, [algorithm, given]] of [["left", left], ["right", right_]]) {
      pairs.push([side, algorithm], ...Object.entries(given).map(([key, value]) => [`${side}.${key}`, value]));
    }
    return "#" + pairs.map((pair) => pair.join("=")).join("&");
  }

  function fromAddress(address) {
    const pairs = new URLSearchParams(address.slice(1)), state = storyState(STORIES[0]);
    const number = (text, least, most) => Math.min(most, Math.max(least, Number(text) || 0));
    if (LANDSCAPES.includes(pairs.get("landscape"))) { state.landscape = pairs.get("landscape"); }
    if (pairs.has("noise_variance")) { state.noise_variance = number(pairs.get("noise_variance"), 0, 16); }
    if (pairs.has("seed")) { state.seed = Math.round(number(pairs.get("seed"), 1, 999)); }
    state.chains = pairs.get("chains") === "1000" ? 1000 : 1;
    if (pairs.has("draws")) { state.draws = Math.round(number(pairs.get("draws"), 1, MOST[state.chains])); }
    for (const side of ["left", "right"]) {
      const algorithm = pairs.get(side);
      if (!ALGORITHMS.includes(algorithm)) { continue; }
      state[side] = [algorithm, {}];
      for (const [key, { least, most }] of Object.entries(lab.algorithms[algorithm].parameters)) {
        if (pairs.has(`${side}.${key}`)) { state[side][1][key] = number(pairs.get(`${side}.${key}`), least, most); }
      }
    }
    return state;
  }

  // The three views of a side, one under the other.
  const HEIGHTS = [250, 125, 125];
  const VIEWS = [
    function (context, box, side, shown) {
      const { chains, x, y, landscape } = side, colour = colourOf(side.algorithm), many = chains > 1;
      const panel = lab.pathView(context, box, { title: "", landscape, xs: x, ys: y, from: many ? (shown - 1) * chains : Math.max(0, shown - 80), to: shown * chains, colour, words: many ? "chains now" : "last 80 draws", joined: !many });
      const info = side.infos[shown - 1] || {}, states = info.tree ? info.tree.states : [];
      for (const { position, kept } of states) { panel.point(...position, lab.theme.ink, { kind: kept ? "disc" : "ring", size: 2.5 }); }
      if (info.path) { panel.line(info.path.map((point) => point[0]), info.path.map((point) => point[1]), lab.theme.ink, { width: 1 }); }
      if (info.accepted === false) { panel.point(...info.proposal, "#D00000", { kind: "cross", size: 5, width: 2 }); }
      if (!many) { panel.point(x[shown - 1], y[shown - 1], lab.theme.ink, { size: 5, kind: "ring", width: 2 }); }
    },
    function (context, box, side, shown) {
      const { marginal, window } = side.landscape, many = side.chains > 1;
      lab.histogramView(context, box, { title: "", density: marginal, range: window.slice(0, 2), highest: side.landscape.title === "25 modes" ? 1 : 1.6 * marginal(side.landscape.moments.mean), values: side.x, from: many ? (shown - 1) * side.chains : 0, to: shown * side.chains, colour: colourOf(side.algorithm), words: many ? "chains now" : "draws so far" });
    },
    function (context, box, side, shown) {
      const { variance } = side.landscape.moments;
      lab.runningView(context, box, { title: "", length: shown, shown, range: [0, 2.5 * variance], truth: variance, label: "var θ₁", unit: "draw", series: [{ running: lab.running(side.squares.subarray(0, shown)), colour: colourOf(side.algorithm), words: "so far, two standard errors" }] });
    },
  ];

  lab.sandbox = { STORIES, ALGORITHMS, LANDSCAPES, storyState, toAddress, fromAddress, begin, advance, read, wrong };
})();
