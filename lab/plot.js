// Plots in the look of the book: a panel has two axes, a legend above them, and marks.
// It draws on a canvas in the page, and in still.js on what has the same methods.
"use strict";

// Those of booklib/page/figures.py: an algorithm keeps its colour.
lab.colours = {
  random_walk: "#000000", hmc: "#0072B2", nuts: "#661100", sgld: "#009E73", cyclical: "#009E73", naive_sghmc: "#D55E00", sghmc: "#CC79A7",
  sgnuts_energy: "#D55E00", sgnuts_repaired: "#882255", sgd: "#56B4E9", truth: "#8C8C8C",
};
lab.themes = { light: { ink: "#222832", paper: "#ffffff" }, dark: { dark: true, ink: "#ced6dd", paper: "#121212" } };
lab.theme = lab.themes.light;
// For dark ground.
lab.lighter = { "#000000": "#F2F2F2", "#0072B2": "#6C93FF", "#882255": "#D9538F", "#661100": "#C98A5B", "#D00000": "#FF6B6B" };
lab.font = "12px Helvetica, Arial, sans-serif";

// An axis: the place of a number, and the words of a tick.
lab.plain = { to: (value) => value, words: (value) => String(Number(value.toPrecision(10))).replace("-", "−"), least: 0 };

// Round numbers that divide [low, high] in at most so many parts, and are not less than `least` apart.
lab.ticks = function (low, high, parts, least) {
  const rough = Math.max((high - low) / parts, least), power = 10 ** Math.floor(Math.log10(rough)), found = [];
  const size = [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) * power;
  for (let i = Math.ceil(low / size - 1e-9); i * size <= high + 1e-9 * size; i++) found.push(i * size);
  return found;
};

// Axes: {x: [low, high], y: [low, high], xlabel, ylabel, title, legend: [{words, colour, mark}], across, upwards, equal}.
// With `equal` one unit is as long on both, so that a circle is a circle.
lab.panel = function (context, box, axes) {
  const { ink, paper, dark } = lab.theme, LINE = 16;
  const { across = lab.plain, upwards = lab.plain } = axes;
  context.font = lab.font;
  const lines = [];  // of the legend
  let room = 0;
  for (const entry of axes.legend || []) {
    const needed = 26 + context.measureText(entry.words).width;
    if (!lines.length || needed > room) lines.push([]), (room = box.width - 8);
    lines[lines.length - 1].push([entry, box.left + box.width - 4 - room]);
    room -= needed + 10;
  }
  const head = axes.title ? LINE : 0, left = box.left + 50, right = box.left + box.width - 18;
  const top = box.top + 8 + head + LINE * Math.max(lines.length, axes.legendLines || 0), bottom = box.top + box.height - 38;
  const wide = right - left, tall = bottom - top;
  let [x0, x1] = axes.x.map(across.to), [y0, y1] = axes.y.map(upwards.to);
  if (axes.equal) {  // show more of one axis rather than stretch it
    const unit = Math.max((x1 - x0) / wide, (y1 - y0) / tall), moreX = (unit * wide - x1 + x0) / 2, moreY = (unit * tall - y1 + y0) / 2;
    [x0, x1, y0, y1] = [x0 - moreX, x1 + moreX, y0 - moreY, y1 + moreY];
  }
  const toX = (x) => left + ((across.to(x) - x0) * wide) / (x1 - x0), toY = (y) => bottom - ((upwards.to(y) - y0) * tall) / (y1 - y0);

  function style(colour, { width = 1.5, alpha = 1, dash = [] } = {}) {
    context.strokeStyle = context.fillStyle = (dark && lab.lighter[colour]) || colour;
    context.lineWidth = width;
    context.globalAlpha = alpha;
    context.setLineDash(dash);
  }
  function text(words, x, y, align, baseline) {
    context.textAlign = align;
    context.textBaseline = baseline;
    context.fillText(words, x, y);
  }
  function trace(xs, ys, from, to) {
    for (let i = from; i < to; i++) context[i === from ? "moveTo" : "lineTo"](toX(xs[i]), toY(ys[i]));
  }
  // Draw in one style, cut off at the frame.
  function paint(colour, settings, draw) {
    context.save();
    context.beginPath();
    context.rect(left, top, wide, tall);
    context.clip();
    style(colour, settings);
    context.beginPath();
    draw(context, toX, toY);
    context.restore();
  }
  // Marks tell apart without colour, too.
  function mark(kind, x, y, size) {
    context.beginPath();
    if (kind === "square") {
      context.rect(x - size, y - size, 2 * size, 2 * size);
    } else if (kind === "cross") {
      for (const side of [-size, size]) context.moveTo(x - size, y - side), context.lineTo(x + size, y + side);
    } else {
      context.moveTo(x + size, y);
      context.arc(x, y, size, 0, 2 * Math.PI);
    }
    if (kind === "ring") {
      const colour = context.fillStyle;
      context.fillStyle = paper;
      context.fill();
      context.fillStyle = colour;
    }
    context[kind === "ring" || kind === "cross" ? "stroke" : "fill"]();
  }

  const panel = {
    paint,
    line(xs, ys, colour, settings = {}) {
      const { from = 0, to = xs.length } = settings;
      paint(colour, settings, () => (trace(xs, ys, from, to), context.stroke()));
    },
    // Between two curves, or one and the lower edge.
    area(xs, upper, colour, lower, alpha = dark ? 0.5 : 0.35) {
      paint(colour, { alpha }, function () {
        trace(xs, upper, 0, xs.length);
        for (let i = xs.length - 1; i >= 0; i--) context.lineTo(toX(xs[i]), lower ? toY(lower[i]) : bottom);
        context.fill();
      });
    },
    points(xs, ys, colour, settings = {}) {
      const { from = 0, to = xs.length, size = 2, kind = "disc" } = settings;
      paint(colour, settings, function () {
        for (let i = from; i < to; i++) {  // small ones are squares, which are quicker
          if (size <= 1.5) context.fillRect(toX(xs[i]) - size, toY(ys[i]) - size, 2 * size, 2 * size);
          else mark(kind, toX(xs[i]), toY(ys[i]), size);
        }
      });
    },
    point: (x, y, colour, settings) => panel.points([x], [y], colour, settings),
    level: (y, colour, settings) => panel.line(axes.x, [y, y], colour, settings),
    contours(landscape) {
      paint(lab.colours.truth, { width: 1 }, function () {
        for (const [a, b, c, d] of lab.contours(landscape, axes.window || landscape.window)) context.moveTo(toX(a), toY(b)), context.lineTo(toX(c), toY(d));
        context.stroke();
      });
    },
  };
  if (lab.marks) lab.marks(panel, { left, top, right, bottom, text });

  style(ink);
  context.font = "bold " + lab.font;
  text(axes.title || "", box.left + 4, box.top + 14, "left", "alphabetic");
  context.font = lab.font;
  lines.forEach((line, row) => line.forEach(function ([entry, x]) {
    const y = box.top + 10 + head + LINE * row, kind = entry.mark || "line";
    style(entry.colour, entry);
    context.beginPath();
    if (kind === "line") context.moveTo(x, y), context.lineTo(x + 18, y), context.stroke();
    else if (kind === "area") (context.globalAlpha = dark ? 0.5 : 0.35), context.fillRect(x, y - 5, 18, 10);
    else mark(kind, x + 9, y, entry.size || 4);
    style(ink);
    text(entry.words, x + 23, y, "left", "middle");
  }));
  for (const value of lab.ticks(x0, x1, Math.max(4, Math.floor(wide / 48)), across.least)) {
    const x = left + ((value - x0) * wide) / (x1 - x0);
    context.fillRect(x - 0.5, bottom, 1, 4);
    text(across.words(value), x, bottom + 7, "center", "top");
  }
  for (const value of lab.ticks(y0, y1, Math.max(2, Math.floor(tall / 36)), upwards.least)) {
    const y = bottom - ((value - y0) * tall) / (y1 - y0);
    context.fillRect(left - 4, y - 0.5, 4, 1);
    text(upwards.words(value), left - 7, y, "right", "middle");
  }
  text(axes.xlabel, (left + right) / 2, box.top + box.height - 3, "center", "bottom");
  context.save();
  context.translate(box.left + 12, (top + bottom) / 2);
  context.rotate(-Math.PI / 2);
  text(axes.ylabel, 0, 0, "center", "middle");
  context.restore();
  style(ink, { width: 1 });
  context.beginPath();
  context.rect(left, top, wide, tall);
  context.stroke();
  return panel;
};

lab.known = new Map();

// Contour lines where the density has fallen by exp(−½k²), k = ½, 1, …, 3, from its largest value: pieces [x0, y0, x1, y1].
lab.contours = function (landscape, window) {
  const key = landscape.title + window, size = 96, row = size + 1, pieces = [];
  if (lab.known.has(key)) return lab.known.get(key);
  const place = ([x0, x1, y0, y1], i, j) => [x0 + ((x1 - x0) * i) / size, y0 + ((y1 - y0) * j) / size];
  const energies = (within) => Array.from({ length: row * row }, (_, k) => landscape.energy(...place(within, k % row, Math.floor(k / row))));
  const energy = energies(window), lowest = Math.min(...energies(landscape.window));
  for (let k = 1; k <= 6; k++) {
    const level = lowest + k * k / 8;
    for (let cell = 0; cell < size * size; cell++) {
      const i = cell % size, j = Math.floor(cell / size), corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1], [i, j]], crossings = [];
      for (let side = 0; side < 4; side++) {
        const [a, b] = corners[side], [c, d] = corners[side + 1], here = energy[b * row + a] - level, there = energy[d * row + c] - level;
        if (here < 0 !== there < 0) crossings.push(...place(window, a + (here / (here - there)) * (c - a), b + (here / (here - there)) * (d - b)));
      }
      for (let c = 0; c < crossings.length; c += 4) pieces.push(crossings.slice(c, c + 4));
    }
  }
  lab.known.set(key, pieces);
  return pieces;
};
