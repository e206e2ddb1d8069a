// A live figure in a page: takes the place of its still, with presets, sliders, a run that can be played, and a sentence of what one sees.
//
// A figure is {name, title, controls, presets, length, run(values, seed), see(run, values), panels}:
//   controls  [{name, words, symbol, least, most, scale, step, digits, value}], the value being that of the text's example
//   presets   [{name, values, why, holds(run)}], of which the first is the text's example; holds is what a test asserts
//   run       computes everything through the step() of the algorithms; what it returns depends on values and seed alone
//   see       the sentence: what one should see, with the numbers of this run
//   panels    [{height, alt(run), draw(context, box, run, shown)}], the first `shown` of `length` steps
var lab = lab || {};
lab.figures = lab.figures || {};

(function () {
  "use strict";
  const still = typeof document === "undefined";

  // The values of a preset: those of the text's example, but for what it changes.
  lab.presetValues = function (figure, preset) {
    const values = {};
    figure.controls.forEach((control) => { values[control.name] = control.value; });
    return Object.assign(values, preset.values);
  };

  function mount(figure, holder) {
    const state = { values: lab.presetValues(figure, figure.presets[0]), seed: 1, shown: 0, stop: null };
    let waiting;
    const why = lab.element("p", { class: "lab-why" }), see = lab.element("p", { class: "lab-see", role: "status", "aria-live": "polite" });
    const tries = figure.presets.map((preset) => lab.element("button", { type: "button", click: () => choose(preset) }, preset.name));
    const sliders = figure.controls.map((control) => lab.slider(control, control.value, (value) => {
      state.values[control.name] = value;
      cancelAnimationFrame(waiting);  // a slider that moves on has one run a frame
      waiting = requestAnimationFrame(compute);
    }));
    const play = lab.element("button", { type: "button", click: toggle }, "Play");
    const scrub = lab.element("input", { type: "range", min: 0, step: 1, "aria-label": figure.unit || "step", input: () => { halt(); show(+scrub.value); } });
    const count = lab.element("output", { class: "lab-count" });
    const canvases = figure.panels.map((panel) => {
      const canvas = lab.element("canvas", { role: "img" });
      canvas.style.height = (panel.height || 270) + "px";
      if (panel.wide) { canvas.className = "lab-wide"; }
      return canvas;
    });
    const moves = lab.element("div", { class: "lab-moves" }, play, lab.element("button", { type: "button", click: () => { halt(); show(Math.min(state.run.length, state.shown + 1)); } }, "Step"), scrub, count);
    if (figure.chance !== false) { moves.append(lab.element("button", { type: "button", click: () => { state.seed++; compute(); } }, "Another seed")); }
    moves.append(lab.element("button", { type: "button", click: () => choose(figure.presets[0]) }, "Reset"));
    const root = lab.element("div", { class: "lab", role: "group", "aria-label": figure.title },
      lab.element("div", { class: "lab-try" }, lab.element("b", {}, "Try"), ...tries), why,
      lab.element("div", { class: "lab-sliders" }, ...sliders), moves, see, lab.element("div", { class: "lab-panels" }, ...canvases));

    function halt() {
      if (state.stop) { state.stop(); state.stop = null; }
      play.textContent = "Play";
    }
    function toggle() {
      if (state.stop) { halt(); return; }
      const from = state.shown < state.run.length ? state.shown : 0, left = 1 - from / state.run.length;
      play.textContent = "Pause";
      state.stop = lab.play((figure.seconds || 8) * left, (share) => show(Math.round(from + share * (state.run.length - from))), halt);
    }
    function choose(preset) {
      state.seed = 1;
      Object.assign(state.values, lab.presetValues(figure, preset));
      figure.controls.forEach((control, i) => sliders[i].set(state.values[control.name]));
      compute();
    }
    // Run for these values; what is shown is the end.
    function compute() {
      halt();
      state.run = figure.run(state.values, state.seed);
      const chosen = figure.presets.findIndex((preset) => Object.entries(lab.presetValues(figure, preset)).every(([name, value]) => state.values[name] === value));
      tries.forEach((button, i) => button.setAttribute("aria-pressed", i === chosen));
      if (chosen >= 0) { why.textContent = figure.presets[chosen].why; }
      why.classList.toggle("lab-other", chosen < 0);
      see.textContent = figure.see(state.run, state.values);
      scrub.max = state.run.length;
      canvases.forEach((canvas, i) => canvas.setAttribute("aria-label", figure.panels[i].alt(state.run, state.values)));
      show(state.run.length);
    }
    function show(shown) {
      state.shown = shown;
      scrub.value = shown;
      count.textContent = `${figure.unit || "step"} ${shown} of ${state.run.length}`;
      draw();
    }
    function draw() {
      canvases.forEach((canvas, i) => figure.panels[i].draw(...lab.fit(canvas), state.run, state.shown, state.values));
    }

    root.live = { figure, state, choose };
    holder.querySelector("img, object").replaceWith(root);
    compute();
    lab.followTheme(draw);
    new ResizeObserver(draw).observe(root);
  }

  lab.mount = function () {
    for (const [name, figure] of Object.entries(lab.figures)) {
      document.querySelectorAll("figure.live-" + name).forEach((holder) => mount(figure, holder));
    }
  };

  if (!still) { document.addEventListener("DOMContentLoaded", lab.mount); }
  if (typeof module !== "undefined") { module.exports = lab; }
})();
