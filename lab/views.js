// The views that figures share: a path on its landscape, a histogram against the truth, a running estimate with its bar; and their numbers.
"use strict";

// The normalised histogram of numbers from..to: the middles of the bins, and the densities.
lab.histogram = function (values, [low, high], bins, from, to) {
  const counts = new Float64Array(bins), width = (high - low) / bins;
  for (let i = from; i < to; i++) {
    const bin = Math.floor((values[i] - low) / width);
    if (bin >= 0 && bin < bins) counts[bin] += 1 / (to - from) / width;
  }
  return [counts.map((_, bin) => low + (bin + 0.5) * width), counts];
};

// The mean of numbers from..to and its Monte Carlo standard error, from the means of batches, about the square root of their number.
lab.meanAndError = function (values, from, to) {
  const batches = Math.max(2, Math.floor(Math.sqrt(to - from))), size = Math.floor((to - from) / batches);
  let mean = 0, square = 0;
  for (let b = 0; b < batches; b++) {
    let sum = 0;
    for (let i = from + b * size; i < from + (b + 1) * size; i++) sum += values[i] / size;
    square += ((sum - mean) ** 2 * b) / (b + 1);
    mean += (sum - mean) / (b + 1);
  }
  return [mean, Math.sqrt(square / (batches - 1) / batches)];
};

// The running mean of numbers after the first `skip` and its bar of two standard errors, at sixty places: {at, mean, low, high}.
lab.running = function (values, skip = 0) {
  const at = [], mean = [], low = [], high = [];
  for (let k = 1; k <= 60; k++) {
    const until = Math.floor((values.length * k) / 60);
    if (until - skip < 16) continue;
    const [m, error] = lab.meanAndError(values, skip, until);
    at.push(until), mean.push(m), low.push(m - 2 * error), high.push(m + 2 * error);
  }
  return { at, mean, low, high };
};

// The numbers from low to high in so many steps.
lab.grid = (low, high, steps) => Float64Array.from({ length: steps + 1 }, (_, i) => low + ((high - low) * i) / steps);

// Numbers in sentences: rounded to so many digits after the point, with a true minus sign.
lab.said = (number, digits) => number.toFixed(digits).replace("-", "−");

// A path (xs, ys) on the contours of its landscape.
lab.pathView = function (context, box, { title, landscape, xs, ys, from, to, colour, words, legend = [], joined = true, alpha }) {
  const [x0, x1, y0, y1] = landscape.window;
  const panel = lab.panel(context, box, {
    title, x: [x0, x1], y: [y0, y1], equal: x1 - x0 === y1 - y0, xlabel: "θ₁", ylabel: "θ₂",
    legend: [{ words: "contours of the target", colour: lab.colours.truth, width: 1 }, { words, colour, mark: "disc" }, ...legend],
  });
  panel.contours(landscape);
  if (joined) panel.line(xs, ys, colour, { from, to, width: 0.8, alpha: 0.6 });
  panel.points(xs, ys, colour, { from, to, size: joined ? 2 : 1.5, alpha });
  return panel;
};

// Histograms of series [{values, from, to, colour, words, dash}] against the true density.
lab.histogramView = function (context, box, { title, density, range, highest, label = "θ₁", bins = 50, series, legendLines }) {
  const xs = lab.grid(...range, 200), legend = [{ words: "truth", colour: lab.colours.truth, mark: "area" }, ...series.map((one) => ({ ...one, width: 2 }))];
  const panel = lab.panel(context, box, { title, x: range, y: [0, highest], xlabel: label, ylabel: "density", legend, legendLines });
  panel.area(xs, xs.map(density), lab.colours.truth);
  for (const { values, from = 0, to, colour, dash } of series) panel.line(...lab.histogram(values, range, bins, from, to), colour, { width: 2, dash });
};

// Running estimates with bars of two standard errors, series [{running, colour, words, dash}], against the truth.
lab.runningView = function (context, box, { title, length, shown, range, truth, label, unit = "step", series, legend = [], legendLines }) {
  const entries = [{ words: "truth", colour: lab.colours.truth, width: 3 }, ...series.map((one) => ({ ...one, width: 2 })), ...legend];
  const panel = lab.panel(context, box, { title, x: [0, length], y: range, xlabel: unit, ylabel: label, legend: entries, legendLines });
  panel.level(truth, lab.colours.truth, { width: 3 });
  for (const { running, colour, dash } of series) {
    const to = running.at.filter((at) => at <= shown).length;
    panel.area(running.at.slice(0, to), running.high, colour, running.low, 0.25);
    panel.line(running.at, running.mean, colour, { to, width: 2, dash });
  }
  return panel;
};
