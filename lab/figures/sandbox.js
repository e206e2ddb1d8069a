// The sandbox: two algorithms on one landscape, side by side at one seed. The address holds the state: a link shows the same picture.
"use strict";
{
const MOST = { 1: 8000, 1000: 400 };  // draws, by the number of chains
const ALGORITHMS = Object.keys(lab.algorithms).filter((name) => name !== "leapfrog"), LANDSCAPES = Object.keys(lab.landscapes);
const WHOLE = /^(num|max|cycle)/;  // parameters that are counts
const MANY = ["sgld", "naive_sghmc", "sghmc", "cyclical"];  // take many chains at once
const NAMES = { random_walk: "random walk", sgnuts_reported: "naive SGHMC", sgnuts_repaired: "SGNUTS", cyclical: "SGLD" };
const colourOf = (algorithm) => lab.colours[NAMES[algorithm] || lab.algorithms[algorithm].title];
const wrong = ({ variance, truth, error }) => !(Math.abs(variance - truth) <= 4 * error);

// The first is what one sees at first; holds is what a test asserts of the two sides, each as `read` has it.
const STORIES = [
  { name: "friction cools", why: "Right: gradient noise heats, and nothing takes the heat out. Left: friction does.",
    state: { noise_variance: 4, left: ["sghmc", { friction: 1 }], right: ["naive_sghmc", {}] }, holds: (left, right) => !wrong(left) && wrong(right) },
  { name: "too large a step", why: "This fails on the right: on the ridge steps above η = 0.2 explode, and the chain is gone.",
    state: { landscape: "correlated", left: ["sgld", { step_size: 0.04 }], right: ["sgld", { step_size: 0.4 }] }, holds: (left, right) => !wrong(left) && !(right.variance < 1e6) },
  { name: "weights counted twice", why: "This fails on the left: the report's weights exp(−H) draw too much where the energy is low. Right: equal weights.",
    state: { noise_variance: 4, draws: 2000, left: ["sgnuts_reported", { step_size: 0.05, friction: 1, noise_estimate: 0.1 }], right: ["sgnuts_repaired", { step_size: 0.05, friction: 1, noise_estimate: 0.1 }] }, holds: (left, right) => wrong(left) && !wrong(right) },
  { name: "25 modes", why: "This fails on the left: small steps stay in the mode where they began. Right: cycles of large steps go about.",
    state: { landscape: "modes", noise_variance: 1, draws: 8000, left: ["sgld", { step_size: 0.01 }], right: ["cyclical", { step_size: 0.07, cycle_length: 800 }] }, holds: (left, right) => left.variance < 0.1 && right.variance > 2 },
  { name: "a narrow neck", why: "This fails on the left: HMC with large steps cannot enter the neck of the funnel. Right: NUTS with small steps can, slowly.",
    state: { landscape: "funnel", draws: 1500, left: ["hmc", { step_size: 0.8 }], right: ["nuts", { step_size: 0.1 }] }, holds: (left, right) => left.least > right.least },
];
const stateOf = (story) => ({ landscape: "gaussian", noise_variance: 0, seed: 1, chains: 1, draws: 3000, ...story.state });

// One side: a run of one algorithm, with all its draws, so that one can go back.
function begin(state, name) {
  const [algorithm, given] = state[name], landscape = lab.landscapes[state.landscape], chains = MANY.includes(algorithm) ? state.chains : 1, size = MOST[state.chains];
  const parameters = lab.parameters(algorithm, { ...given, landscape, noise_variance: state.noise_variance }), noise = lab.noise(state.seed);
  const chain = lab.algorithms[algorithm].init(Float64Array.from({ length: 2 * chains }, (_, i) => landscape.start[i % 2]), parameters, noise);
  return { algorithm, parameters, noise, chain, chains, landscape, x: new Float64Array(size * chains), y: new Float64Array(size * chains), squares: new Float64Array(size), infos: [] };
}
function advance(side, until) {
  const { algorithm, chain, chains, parameters, noise, landscape, x, y, squares, infos } = side;
  while (infos.length < until) {
    const draw = infos.length;
    lab.algorithms[algorithm].step(chain, parameters, noise);
    for (let c = 0, at = draw * chains; c < chains; c++, at++) {
      [x[at], y[at]] = [chain.position[2 * c], chain.position[2 * c + 1]];
      squares[draw] += (x[at] - landscape.moments.mean) ** 2 / chains;
    }
    infos.push(chain.info || {});
  }
  return side;
}
// What the first draws say.
function read({ squares, landscape, x }, draws) {
  const [variance, error] = lab.meanAndError(squares, 0, draws);
  return { variance, error, truth: landscape.moments.variance, least: Math.min(...x.subarray(0, draws)) };
}

// The address: all of the state, parameters as left.step_size=….
function toAddress({ left, right, ...rest }) {
  const sides = Object.entries({ left, right }).flatMap(([side, [name, given]]) => [[side, name], ...Object.entries(given).map(([key, value]) => [side + "." + key, value])]);
  return "#" + [...Object.entries(rest), ...sides].map((pair) => pair.join("=")).join("&");
}
function fromAddress(address) {
  const given = Object.fromEntries(new URLSearchParams(address.slice(1))), state = stateOf(STORIES[0]);
  const number = (key, least, most, or) => (given[key] === undefined || isNaN(given[key]) ? or : Math.min(most, Math.max(least, Number(given[key]))));
  if (LANDSCAPES.includes(given.landscape)) state.landscape = given.landscape;
  if (given.chains === "1000") state.chains = 1000;
  state.noise_variance = number("noise_variance", 0, 16, state.noise_variance);
  state.seed = Math.round(number("seed", 1, 999, 1));
  state.draws = Math.round(number("draws", 1, MOST[state.chains], state.draws));
  for (const side of ["left", "right"].filter((each) => ALGORITHMS.includes(given[each]))) {
    state[side] = [given[side], {}];
    for (const [key, { least, most }] of Object.entries(lab.algorithms[given[side]].parameters)) {
      const value = number(side + "." + key, least, most);
      if (value !== undefined) state[side][1][key] = value;
    }
  }
  return state;
}

// The views of a side: the path with what its last step did, the draws, the running variance.
const VIEWS = [[240, function (context, box, { algorithm, chains, x, y, landscape, infos }, shown) {
  const many = chains > 1, last = shown - 1, { tree, path, accepted, proposal } = infos[last], { ink } = lab.theme;
  const legend = tree ? [{ words: "tree", colour: ink, mark: "disc", size: 2.5 }, { words: "thrown away", colour: ink, mark: "ring", size: 2.5 }] : accepted === undefined ? [] : [{ words: "rejected", colour: "#D00000", mark: "cross" }];
  const panel = lab.pathView(context, box, { landscape, xs: x, ys: y, from: many ? last * chains : Math.max(0, shown - 80), to: shown * chains, colour: colourOf(algorithm), words: many ? "chains now" : "last 80 draws", joined: !many, legend, legendLines: 2 });
  if (many) return;
  for (const { position, kept } of tree ? tree.states : []) panel.point(...position, ink, { kind: kept ? "disc" : "ring", size: 2.5 });
  if (path) panel.line(path.map((point) => point[0]), path.map((point) => point[1]), ink, { width: 1 });
  if (accepted === false) panel.point(...proposal, "#D00000", { kind: "cross", size: 5, width: 2 });
  panel.point(x[last], y[last], ink, { size: 5, kind: "ring", width: 2 });
}], [125, function (context, box, { algorithm, chains, x, landscape }, shown) {
  const { marginal, window, moments, title } = landscape, many = chains > 1;
  const series = [{ values: x, from: many ? (shown - 1) * chains : 0, to: shown * chains, colour: colourOf(algorithm), words: many ? "chains now" : "draws so far" }];
  lab.histogramView(context, box, { density: marginal, range: window.slice(0, 2), highest: 1.8 * marginal(title === "double well" ? 1 : moments.mean), series });
}], [125, function (context, box, { algorithm, squares, landscape }, shown) {
  const { variance } = landscape.moments, running = lab.running(squares.subarray(0, shown));
  lab.runningView(context, box, { length: shown, shown, range: [0, 2.5 * variance], truth: variance, label: "var θ₁", unit: "draw", series: [{ running, colour: colourOf(algorithm), words: "so far" }] });
}]];

function mount(holder) {
  const { element, button } = lab, sides = ["left", "right"];
  let state, runs, shown, playing;
  const choice = (names, titles, change) => element("select", { change: (event) => (change(event.target.value), compute()) }, ...names.map((name, i) => element("option", { value: name }, titles[i])));
  const field = (words, control) => element("label", {}, words, control);
  const tries = STORIES.map((story) => button(story.name, () => choose(stateOf(story))));
  const why = element("p", { class: "lab-why" }), see = element("p", { class: "lab-see", role: "status" }), count = element("output", { class: "lab-count" });
  const landscape = choice(LANDSCAPES, LANDSCAPES.map((name) => lab.landscapes[name].title), (value) => (state.landscape = value));
  const chains = choice([1, 1000], ["one chain", "1,000 chains, where it can"], (value) => Object.assign(state, { chains: Number(value), draws: Math.min(state.draws, MOST[value]) }));
  const V = lab.slider({ words: "gradient noise", symbol: "V", least: 0, most: 16, step: 0.5, digits: 1 }, 0, (value) => ((state.noise_variance = value), compute()));
  const seed = element("input", { type: "number", min: 1, max: 999, required: "", change: () => seed.checkValidity() && ((state.seed = seed.valueAsNumber), compute()) });
  const play = button("Run", () => (playing ? halt() : run())), scrub = element("input", { type: "range", min: 1, "aria-label": "draw", input: () => show(+scrub.value), change: halt });
  const columns = sides.map(function (side) {
    const algorithm = choice(ALGORITHMS, ALGORITHMS.map((name) => lab.algorithms[name].title), (value) => (state[side] = [value, {}]));
    algorithm.setAttribute("aria-label", "algorithm on the " + side);
    return { algorithm, sliders: element("div", { class: "lab-sliders" }), canvases: VIEWS.map(() => element("canvas", { role: "img" })) };
  });
  const root = element("div", { class: "lab lab-sandbox", role: "group", "aria-label": "sandbox" },
    element("div", { class: "lab-try" }, element("b", {}, "Try"), ...tries), why,
    element("div", { class: "lab-common" }, field("landscape ", landscape), field("draws of ", chains), field("seed ", seed), V),
    element("div", { class: "lab-moves" }, play, button("Step", () => (forward(1), halt())), scrub, count, button("Reset", () => choose(stateOf(STORIES[0]))), button("Save picture", save)), see,
    element("div", { class: "lab-both" }, ...columns.map(({ algorithm, sliders, canvases }) => element("div", { class: "lab-side" }, algorithm, sliders, ...canvases))));

  function halt() {
    cancelAnimationFrame(playing);
    playing = undefined;
    play.textContent = "Run";
    say();
  }
  function run() {
    let frame = 0;
    play.textContent = "Pause";
    playing = requestAnimationFrame(function next() {
      playing = requestAnimationFrame(next);
      if (!lab.wantsLessMotion() || frame++ % 30 === 0) forward(Math.ceil(shown / 300));
      if (shown === MOST[state.chains]) halt();
    });
  }
  function forward(draws) {
    const until = Math.min(MOST[state.chains], shown + draws);
    state.draws = Math.max(state.draws, until);
    runs.forEach((side) => advance(side, until));
    show(until);
  }
  function choose(chosen) {
    state = structuredClone(chosen);
    compute();
  }
  // Run both sides for this state, and show the end.
  function compute() {
    runs = sides.map((side) => advance(begin(state, side), state.draws));
    [landscape.value, chains.value, seed.value] = [state.landscape, state.chains, state.seed];
    V.set(state.noise_variance);
    columns.forEach(function ({ algorithm, sliders }, i) {
      const [name, given] = state[sides[i]], parameters = Object.entries(lab.algorithms[name].parameters);
      if (sliders.algorithm !== name) sliders.replaceChildren(...parameters.map(([key, one]) =>
        lab.slider({ ...one, digits: WHOLE.test(key) ? 0 : one.least < 0.01 && one.least ? 3 : 2 }, one.value, (value) => ((state[sides[i]][1][key] = value), compute()))));
      algorithm.value = sliders.algorithm = name;
      parameters.forEach(([key, { value }], j) => sliders.children[j].set(given[key] ?? value));
    });
    show(state.draws);
    halt();
  }
  function show(number) {
    shown = number;
    [scrub.max, scrub.value, count.textContent] = [state.draws, shown, `draw ${shown} of ${state.draws}`];
    scrub.setAttribute("aria-valuetext", count.textContent);
    draw();
  }
  function draw() {
    columns.forEach(({ canvases }, i) => canvases.forEach((canvas, j) => VIEWS[j][1](...lab.fit(canvas), runs[i], shown)));
  }
  // What one sees when nothing moves: in words, and in the address.
  function say() {
    const address = toAddress(state), story = STORIES.find((each) => toAddress(stateOf(each)) === address);
    const words = runs.map(function (side) {
      const found = read(side, shown);
      return lab.algorithms[side.algorithm].title + (found.variance < 1e6 ? ` has variance ${lab.said(found.variance, 1)} ± ${lab.said(2 * found.error, 1)}, which ${wrong(found) ? "is wrong" : "agrees with the truth"}` : " has exploded");
    });
    tries.forEach((one, i) => one.setAttribute("aria-pressed", STORIES[i] === story));
    why.textContent = story ? story.why : "Your own setting. The address of the page holds it.";
    see.textContent = `After ${shown} draws, where the truth is ${lab.said(runs[0].landscape.moments.variance, 1)}: left, ${words[0]}; right, ${words[1]}.`;
    columns.forEach(({ canvases }, i) => canvases.forEach((canvas, j) => canvas.setAttribute("aria-label", ["path", "histogram", "running variance"][j] + ": " + words[i])));
    if (location.hash !== address) history.replaceState(null, "", address);
  }
  // All canvases on one, as they stand on the page.
  function save() {
    const whole = root.lastChild.getBoundingClientRect(), top = columns[0].canvases[0].getBoundingClientRect().top, ratio = devicePixelRatio;
    const picture = element("canvas", { width: whole.width * ratio, height: (whole.bottom - top) * ratio }), all = columns.flatMap(({ canvases }) => canvases);
    for (const canvas of all) picture.getContext("2d").drawImage(canvas, (canvas.getBoundingClientRect().left - whole.left) * ratio, (canvas.getBoundingClientRect().top - top) * ratio);
    element("a", { href: picture.toDataURL(), download: "sandbox.png" }).click();
  }

  root.live = () => ({ state, shown, runs });  // for the tests
  holder.querySelector("img").replaceWith(root);
  choose(fromAddress(location.hash));
  lab.followTheme(draw);
  new ResizeObserver(draw).observe(root);
  addEventListener("hashchange", () => choose(fromAddress(location.hash)));
}

lab.sandbox = { STORIES, stateOf, toAddress, fromAddress, begin, advance, read, VIEWS };
if (typeof document !== "undefined") document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".live-sandbox").forEach(mount));
}
