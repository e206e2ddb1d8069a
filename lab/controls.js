// What the reader touches: elements, sliders, the theme of the page, canvases that fit.
"use strict";

// An element with its attributes and what it holds; functions become listeners.
lab.element = function (tag, attributes, ...inner) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...inner);
  return made;
};

lab.button = (words, click) => lab.element("button", { type: "button", click }, words);

// A slider with its words, its symbol and its value.
lab.slider = function ({ words, symbol, least, most, scale, step, digits = 2, unit = "" }, value, change) {
  const log = scale === "log" && least > 0, last = step ? Math.round((most - least) / step) : 200;
  const toPlace = (v) => Math.round(last * (log ? Math.log(v / least) / Math.log(most / least) : (v - least) / (most - least)));
  const toValue = (place) => Number((log ? least * (most / least) ** (place / last) : least + ((most - least) * place) / last).toFixed(digits));
  const range = lab.element("input", { type: "range", min: 0, max: last, input: () => (show(toValue(+range.value)), change(toValue(+range.value))) });
  const shown = lab.element("output", {}), head = lab.element("span", {}, words + " ", lab.element("i", {}, symbol), symbol ? " = " : "", shown);
  const whole = lab.element("label", { class: "lab-slider" }, head, lab.element("span", { class: "lab-track" }, range));
  function show(v) {
    shown.textContent = v.toFixed(digits) + unit;
    range.setAttribute("aria-valuetext", shown.textContent);
  }
  whole.set = (v) => ((range.value = toPlace(v)), show(v));
  whole.set(value);
  return whole;
};

// Take the colours of the page's theme; `changed` is called now, and when it turns dark or light.
lab.followTheme = function (changed) {
  const root = document.documentElement;
  const read = () => ((lab.theme = lab.themes[root.dataset.theme === "dark" ? "dark" : "light"]), changed());
  new MutationObserver(read).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
  read();
};

// Prepare a canvas for drawing, with as many pixels as the screen has; returns its context and its box.
lab.fit = function (canvas) {
  const { clientWidth: width, clientHeight: height } = canvas, ratio = devicePixelRatio, context = canvas.getContext("2d");
  const size = [width, height].map((length) => Math.round(length * ratio));
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = lab.theme.paper;
  context.fillRect(0, 0, width, height);
  return [context, { left: 0, top: 0, width, height }];
};

lab.wantsLessMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
