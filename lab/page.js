// A live figure in a page: takes the place of its still, with presets, sliders, a run that can be played, and a sentence of what one sees.
//
// A figure is {title, controls, presets, run(values, seed), see(run, values), panels}, and may have
// unit (of what is played), seconds (for all of it), chance (false where no seed matters) and question (with which it opens, at
// its start; verdict and panels marked `answer` come after the first play or change):
//   controls  [{name, words, symbol, least, most, scale, step, digits, value}], the value being that of the text's example
//   presets   [{name, values, why, holds(run)}], of which the first is the text's example; holds is what a test asserts
//   run       computes everything through the step() of the algorithms, and says its length; it depends on values and seed alone
//   see       the sentence: what one should see, with the numbers of this run
//   panels    [{height, wide, alt(run, values), draw(context, box, run, shown, values)}], the first `shown` steps of the run
"use strict";

lab.figures = {};

// The values of a preset: those of the text's example, but for what it changes.
lab.presetValues = (figure, preset) => Object.assign(Object.fromEntries(figure.controls.map(({ name, value }) => [name, value])), preset.values);

// In the place of a panel that would give the answer away.
lab.later = function (context, { width, height }) {
  context.fillStyle = lab.theme.ink;
  context.font = lab.font;
  context.textAlign = "center";
  context.fillText("after the first play", width / 2, height / 2);
  context.strokeStyle = lab.theme.ink;
  context.strokeRect(8.5, 8.5, width - 17, height - 17);
};

lab.mount = function (figure, holder) {
  const { controls, presets, panels, unit = "step" } = figure, values = lab.presetValues(figure, presets[0]), { element, button } = lab;
  let seed = 1, run, shown, playing, waiting, told, open = Boolean(figure.question);
  const why = element("p", { class: "lab-why" }), see = element("p", { class: "lab-see", role: "status" });
  const tries = presets.map((preset) => button(preset.name, () => choose(preset)));
  const sliders = controls.map((control) => lab.slider(control, control.value, function (value) {
    values[control.name] = value;
    open = false;
    cancelAnimationFrame(waiting);  // while a slider moves on there is one run a frame
    waiting = requestAnimationFrame(compute);
  }));
  // A mark where the text's example has it.
  sliders.forEach(function (slider, i) {
    const { max, value } = slider.querySelector("input"), said = slider.querySelector("output").textContent, [head, track] = slider.children;
    head.append(element("small", {}, "▲ in the text " + said));
    track.append(element("i", { class: "lab-mark", style: `--share: ${value / max}` }));
  });
  const play = button("Play", () => (playing ? answer() : begin()));
  const scrub = element("input", { type: "range", min: 0, "aria-label": unit, input: () => (answer(), show(+scrub.value)) });
  const count = element("output", { class: "lab-count" });
  const moves = element("div", { class: "lab-moves" }, play, button("Step", () => (answer(), show(Math.min(run.length, shown + 1)))), scrub, count);
  if (figure.chance !== false) moves.append(button("Another seed", () => (seed++, (open = false), compute())));
  moves.append(button("Reset", () => choose(presets[0])));
  const canvases = panels.map(({ height, wide }) => element("canvas", { role: "img", class: wide ? "lab-wide" : "", style: `height: ${height}px` }));
  const root = element("div", { class: "lab", role: "group", "aria-label": figure.title },
    element("div", { class: "lab-try" }, element("b", {}, "Try"), ...tries), why,
    element("div", { class: "lab-sliders" }, ...sliders), moves, see, element("div", { class: "lab-panels" }, ...canvases));

  function halt() {
    cancelAnimationFrame(playing);
    playing = undefined;
    play.textContent = "Play";
  }
  // Say what there was to see.
  function answer() {
    halt();
    open = false;
    say();
    draw();
  }
  // Play from here, or from the start if this is the end; in ten jumps for who wants less motion.
  function begin() {
    const from = shown < run.length ? shown : 0, left = run.length - from, seconds = ((figure.seconds || 8) * left) / run.length;
    let begun;
    play.textContent = "Pause";
    playing = requestAnimationFrame(function next(now) {
      begun = begun || now;
      const share = Math.min(1, (now - begun) / (1000 * seconds));
      show(from + Math.round(left * (lab.wantsLessMotion() ? Math.floor(10 * share) / 10 : share)));
      if (share < 1) playing = requestAnimationFrame(next);
      else answer();
    });
  }
  function choose(preset) {
    seed = 1;
    open = false;
    Object.assign(values, lab.presetValues(figure, preset));
    controls.forEach(({ name }, i) => sliders[i].set(values[name]));
    compute();
  }
  // Run for these values, and show the end; as the page opens, the start.
  function compute() {
    halt();
    run = figure.run(values, seed);
    const chosen = presets.findIndex((preset) => Object.entries(lab.presetValues(figure, preset)).every(([name, value]) => values[name] === value));
    tries.forEach((one, i) => one.setAttribute("aria-pressed", i === chosen));
    told = chosen < 0 ? "Your own setting; Reset leads back to the text's example." : presets[chosen].why;
    see.textContent = figure.see(run, values);
    say();
    scrub.max = run.length;
    canvases.forEach((canvas, i) => canvas.setAttribute("aria-label", panels[i].alt(run, values)));
    show(open ? 0 : run.length);
  }
  function say() {
    why.textContent = open ? figure.question : told;
    root.classList.toggle("lab-open", open);
  }
  function show(number) {
    shown = scrub.value = number;
    count.textContent = `${unit} ${shown} of ${run.length}`;
    scrub.setAttribute("aria-valuetext", count.textContent);
    draw();
  }
  function draw() {
    canvases.forEach((canvas, i) => (open && panels[i].answer ? lab.later(...lab.fit(canvas)) : panels[i].draw(...lab.fit(canvas), run, shown, values)));
  }

  root.live = { figure, now: () => ({ run, values, seed, shown }) };  // for the tests
  holder.querySelector("img").replaceWith(root);
  compute();
  lab.followTheme(draw);
  new ResizeObserver(draw).observe(root);
};

if (typeof document !== "undefined") {
  document.addEventListener("DOMContentLoaded", function () {
    for (const [name, figure] of Object.entries(lab.figures)) document.querySelectorAll(".live-" + name).forEach((holder) => lab.mount(figure, holder));
  });
}
