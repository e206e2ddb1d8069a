// The sandbox: two algorithms on one landscape at one seed. The address holds the state: a link shows the same picture.
"use strict";
{
const MOST = { 1: 8000, 1000: 400 };  // draws, by the number of chains
const WHOLE = /^(num|max|cycle)/;  // counts
const MANY = /sgld|sghmc|cyclical/;  // algorithms that take many chains at once

// The first is shown at first. On the side that fails the variance is wrong, on the other right, as a test asserts.
const STORIES = [
  { name: "friction cools", fails: "right", why: "noise heats, and nothing takes the heat out. Friction does.",
    state: { noise_variance: 4, "left.friction": 1 } },
  { name: "too large a step", fails: "right", why: "on this ridge steps above η = 0.2 explode.",
    state: { landscape: "correlated", left: "sgld", "left.step_size": 0.04, right: "sgld", "right.step_size": 0.4 } },
  { name: "too small a step", fails: "left", why: "nearly all is accepted, and the walk gets nowhere.",
    state: { landscape: "banana", draws: 1000, left: "random_walk", "left.step_size": 0.03, right: "nuts" } },
  { name: "weights counted twice", fails: "left", why: "weights exp(−H) count the energy twice. Equal weights are right.",
    state: { noise_variance: 4, draws: 2000, left: "sgnuts_energy", "left.friction": 1, right: "sgnuts_repaired", "right.friction": 1 } },
  { name: "25 modes", fails: "left", why: "small steps stay in one mode. Cycles of large steps go about.",
    state: { landscape: "modes", noise_variance: 1, draws: 8000, left: "sgld", "left.step_size": 0.01, right: "cyclical", "right.step_size": 0.07, "right.cycle_length": 100 } },
];
const PLAIN = { landscape: "gaussian", noise_variance: 0, seed: 1, chains: "1", draws: 3000, left: "sghmc", right: "naive_sghmc" };
const stateOf = (story) => ({ ...PLAIN, ...story.state });

// One side: a run of one algorithm, with all draws, to go back.
function begin(state, name) {
  const algorithm = state[name], landscape = lab.landscapes[state.landscape], chains = MANY.test(algorithm) ? Number(state.chains) : 1, size = MOST[state.chains];
  const parameters = lab.parameters(algorithm, { landscape, noise_variance: state.noise_variance }), noise = lab.noise(state.seed);
  for (const key of Object.keys(parameters)) parameters[key] = state[name + "." + key] ?? parameters[key];
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
function read({ squares, landscape }, draws) {
  const [variance, error] = lab.meanAndError(squares, 0, draws), truth = landscape.moments.variance;
  return { variance, error, truth, wrong: !(Math.abs(variance - truth) <= 4 * error) };
}

// The address: all of the state; what it lacks, or has wrong, is plain.
const toAddress = (state) => "#" + new URLSearchParams(state);
function fromAddress(address) {
  const given = Object.fromEntries(new URLSearchParams(address.slice(1))), state = address ? { ...PLAIN } : stateOf(STORIES[0]);
  const take = (key, known) => Object.hasOwn(known, given[key]) && given[key] !== "leapfrog" && (state[key] = given[key]);
  const within = (key, least, most, whole) => given[key] >= least && given[key] <= most && (state[key] = whole ? parseInt(given[key]) : Number(given[key]));
  take("landscape", lab.landscapes);
  take("chains", MOST);
  within("noise_variance", 0, 16);
  within("seed", 1, 999, true);
  within("draws", 1, MOST[1], true);
  state.draws = Math.min(state.draws, MOST[state.chains]);
  for (const side of ["left", "right"]) {
    take(side, lab.algorithms);
    for (const [key, { least, most }] of Object.entries(lab.algorithms[state[side]].parameters)) within(side + "." + key, least, most, WHOLE.test(key));
  }
  return state;
}

// The views of a side: path and last step, draws, running variance.
const VIEWS = [function (context, box, { algorithm, chains, x, y, landscape, infos }, shown) {
  const many = chains > 1, last = shown - 1, { tree, path, accepted, proposal } = infos[last], { ink } = lab.theme;
  const legend = tree ? [{ words: "tree", colour: ink, mark: "disc" }, { words: "thrown away", colour: ink, mark: "ring" }] : accepted === undefined ? [] : [{ words: "rejected", colour: "#D00000", mark: "cross" }];
  const panel = lab.pathView(context, box, { landscape, xs: x, ys: y, from: many ? last * chains : Math.max(0, shown - 80), to: shown * chains, colour: lab.colours[algorithm], words: many ? "chains now" : "last 80 draws", joined: !many, legend, legendLines: 2 });
  if (many) return;
  for (const { position, kept } of tree ? tree.states : []) panel.point(...position, ink, { kind: kept ? "disc" : "ring", size: 2.5 });
  if (path) panel.line(path.map((point) => point[0]), path.map((point) => point[1]), ink, { width: 1 });
  if (accepted === false) panel.point(...proposal, "#D00000", { kind: "cross", size: 5, width: 2 });
  panel.point(x[last], y[last], ink, { size: 5, kind: "ring", width: 2 });
}, function (context, box, { algorithm, chains, x, landscape }, shown) {
  const { marginal, window, moments, title } = landscape, many = chains > 1;
  const series = [{ values: x, from: many ? (shown - 1) * chains : 0, to: shown * chains, colour: lab.colours[algorithm], words: many ? "chains now" : "draws so far" }];
  lab.histogramView(context, box, { density: marginal, range: window.slice(0, 2), highest: 1.8 * marginal(title === "double well" ? 1 : moments.mean), series });
}, function (context, box, { algorithm, squares, landscape }, shown) {
  const { variance } = landscape.moments, running = lab.running(squares.subarray(0, shown));
  lab.runningView(context, box, { length: shown, shown, range: [0, 2.5 * variance], truth: variance, label: "var θ₁", unit: "draw", series: [{ running, colour: lab.colours[algorithm], words: "so far" }] });
}];

function mount(holder) {
  const { element, button } = lab, sides = ["left", "right"];
  let state, runs, shown, playing;
  const part = (name, ...inner) => element("div", { class: "lab-" + name }, ...inner);
  const set = (key, value) => ((state[key] = value), compute());
  const choice = (known, change) => element("select", { change: (event) => change(event.target.value) },
    ...Object.entries(known).filter(([value]) => value !== "leapfrog").map(([value, { title }]) => element("option", { value }, title)));
  const field = (words, control) => element("label", {}, words, control);
  const tries = STORIES.map((story) => button(story.name, () => choose(stateOf(story))));
  const why = element("p", { class: "lab-why" }), see = element("p", { class: "lab-see", role: "status" }), count = element("output", { class: "lab-count" });
  const landscape = choice(lab.landscapes, (name) => set("landscape", name));
  const chains = choice({ 1: { title: "one chain" }, 1000: { title: "1,000 chains, where it can" } }, (chains) => choose({ ...state, chains, draws: Math.min(state.draws, MOST[chains]) }));
  const V = lab.slider({ words: "gradient noise", symbol: "V", least: 0, most: 16, step: 0.5, digits: 1 }, 0, (value) => set("noise_variance", value));
  const seed = element("input", { type: "number", min: 1, max: 999, required: "", change: () => seed.checkValidity() && set("seed", seed.valueAsNumber) });
  const play = button("Run", () => (playing ? halt() : run())), scrub = element("input", { type: "range", min: 1, "aria-label": "draw", input: () => show(+scrub.value), change: halt });
  const columns = sides.map(function (side) {
    // Another algorithm begins with its own values.
    const algorithm = choice(lab.algorithms, (name) => choose({ ...Object.fromEntries(Object.entries(state).filter(([key]) => !key.startsWith(side + "."))), [side]: name }));
    algorithm.setAttribute("aria-label", "algorithm on the " + side);
    return { algorithm, sliders: part("sliders"), canvases: VIEWS.map(() => element("canvas", { role: "img" })) };
  });
  const root = element("div", { class: "lab lab-sandbox", role: "group", "aria-label": "sandbox" },
    part("try", element("b", {}, "Try"), ...tries), why,
    part("common", field("landscape ", landscape), field("draws of ", chains), field("seed ", seed), V),
    part("moves", play, button("Step", () => (forward(1), halt())), scrub, count, button("Reset", () => choose(stateOf(STORIES[0]))), button("Save picture", save)), see,
    part("both", ...columns.map(({ algorithm, sliders, canvases }) => part("side", algorithm, sliders, ...canvases))));

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
    state = { ...chosen };
    compute();
  }
  // Run both sides for this state, and show the end.
  function compute() {
    runs = sides.map((side) => advance(begin(state, side), state.draws));
    [landscape.value, chains.value, seed.value] = [state.landscape, state.chains, state.seed];
    V.set(state.noise_variance);
    columns.forEach(function ({ algorithm, sliders }, i) {
      const name = state[sides[i]], parameters = Object.entries(lab.algorithms[name].parameters), keyOf = (key) => sides[i] + "." + key;
      if (sliders.algorithm !== name) sliders.replaceChildren(...parameters.map(([key, one]) =>
        lab.slider({ ...one, digits: WHOLE.test(key) ? 0 : one.least < 0.01 && one.least ? 3 : 2 }, one.value, (value) => set(keyOf(key), value))));
      algorithm.value = sliders.algorithm = name;
      parameters.forEach(([key, { value }], j) => sliders.children[j].set(state[keyOf(key)] ?? value));
    });
    show(state.draws);
    halt();
  }
  function show(number) {
    shown = number;
    [scrub.max, scrub.value, count.textContent] = [state.draws, shown, `draw ${shown} of ${state.draws}`];
    draw();
  }
  function draw() {
    columns.forEach(({ canvases }, i) => canvases.forEach((canvas, j) => VIEWS[j](...lab.fit(canvas), runs[i], shown)));
  }
  // What one sees when nothing moves, in words and in the address.
  function say() {
    const address = toAddress(state), story = STORIES.find((each) => toAddress(stateOf(each)) === address);
    const words = runs.map(function (side) {
      const found = read(side, shown);
      return lab.algorithms[side.algorithm].title + (found.variance < 1e6 ? ` has variance ${lab.said(found.variance, 1)} ± ${lab.said(2 * found.error, 1)}, which ${found.wrong ? "is wrong" : "agrees with the truth"}` : " has exploded");
    });
    tries.forEach((one, i) => one.setAttribute("aria-pressed", STORIES[i] === story));
    why.textContent = story ? `This fails on the ${story.fails}: ${story.why}` : "Your own setting; the address holds it.";
    see.textContent = `After ${shown} draws, where the truth is ${lab.said(runs[0].landscape.moments.variance, 1)}: left, ${words[0]}; right, ${words[1]}.`;
    columns.forEach(({ canvases }, i) => canvases.forEach((canvas, j) => canvas.setAttribute("aria-label", ["path", "histogram", "running variance"][j] + ": " + words[i])));
    if (location.hash !== address) history.replaceState(null, "", address);
  }
  function save() {
    const [{ width, height }, small] = columns[0].canvases, picture = element("canvas", { width: 2 * width, height: height + 2 * small.height });
    columns.forEach(({ canvases }, i) => canvases.forEach((canvas, j) => picture.getContext("2d").drawImage(canvas, i * width, j && height + (j - 1) * small.height)));
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
