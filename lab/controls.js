// What the reader touches: elements, sliders, the theme of the page, canvases that fit, and a run that is played.
(function () {
  "use strict";

  // An element with its attributes and what it holds; functions become listeners.
  lab.element = function (tag, attributes, ...inner) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (typeof value === "function") { made.addEventListener(name, value); }
      else if (value !== false && value !== undefined) { made.setAttribute(name, value === true ? "" : value); }
    }
    made.append(...inner);
    return made;
  };

  // A slider with its words, its symbol and its value beside it; a mark where the text's example has it.
  lab.slider = function (control, value, change) {
    const { least, most, scale, digits = 2 } = control, log = scale === "log", last = control.step ? Math.round((most - least) / control.step) : 200;
    const toPlace = (v) => Math.round(last * (log ? Math.log(v / least) / Math.log(most / least) : (v - least) / (most - least)));
    const toValue = (p) => Number((log ? least * (most / least) ** (p / last) : least + (most - least) * p / last).toFixed(digits));
    const range = lab.element("input", { type: "range", min: 0, max: last, step: 1, input: () => { show(toValue(+range.value)); change(toValue(+range.value)); } });
    const shown = lab.element("output", {}), mark = lab.element("i", { class: "lab-mark", title: "the text's example", "aria-hidden": "true" });
    function show(v) {
      shown.textContent = v.toFixed(digits);
      range.setAttribute("aria-valuetext", v.toFixed(digits));
    }
    const track = lab.element("span", { class: "lab-track" }, range, mark);
    const whole = lab.element("label", { class: "lab-slider" }, lab.element("span", {}, control.words + " ", lab.element("i", {}, control.symbol || ""), " = ", shown,
      lab.element("small", {}, "▲ in the text " + control.value.toFixed(digits))), track);
    mark.style.setProperty("--share", toPlace(control.value) / last);
    whole.set = (v) => { range.value = toPlace(v); show(v); };
    whole.set(value);
    return whole;
  };

  // Colours of the theme of the page; `changed` is called when it turns dark or light.
  lab.followTheme = function (changed) {
    const root = document.documentElement;
    function read() {
      const dark = root.dataset.theme === "dark";
      lab.theme = dark ? { dark, ink: "#ced6dd", paper: "#121212", faint: "#48566b" } : { dark, ink: "#222832", paper: "#ffffff", faint: "#d1d5da" };
      changed();
    }
    new MutationObserver(read).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
    read();
  };

  // Prepare a canvas for drawing: as many pixels as the screen has, on the paper of the theme; returns its context and its box.
  lab.fit = function (canvas) {
    const width = canvas.clientWidth, height = canvas.clientHeight, ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = lab.theme.paper;
    context.fillRect(0, 0, width, height);
    return [context, { left: 0, top: 0, width, height }];
  };

  // Calls `frame(share)` with the share of the time that has passed, until it is 1; in ten jumps for who wants less motion. Returns what stops it.
  lab.play = function (seconds, frame, done) {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let begun = null, request = requestAnimationFrame(next);
    function next(now) {
      begun = begun === null ? now : begun;
      const share = Math.min(1, (now - begun) / (1000 * seconds));
      frame(calm ? Math.floor(10 * share) / 10 : share);
      if (share < 1) { request = requestAnimationFrame(next); } else { done(); }
    }
    return () => cancelAnimationFrame(request);
  };

  // Numbers in sentences: rounded to so many digits after the point, with a true minus sign.
  lab.said = (number, digits) => number.toFixed(digits).replace("-", "−");
})();
