// The views that figures share: a path on its landscape, a histogram against the truth, a running estimate with its bar; and their numbers.
(function () {
  "use strict";
  const TRUTH = lab.colours.truth;

  // The normalised histogram of numbers from..to as a line through the middles of the bins, as the book draws it.
  lab.histogram = function (values, low, high, bins, from, to) {
    const counts = new Float64Array(bins), middles = new Float64Array(bins), width = (high - low) / bins;
    for (let i = from; i < to; i++) {
      const bin = Math.floor((values[i] - low) / width);
      if (bin >= 0 && bin < bins) { counts[bin]++; }
    }
    for (let bin = 0; bin < bins; bin++) { middles[bin] = low + (bin + 0.5) * width; counts[bin] /= Math.max(1, to - from) * width; }
    return [middles, counts];
  };

  // The mean of numbers from..to and its Monte Carlo standard error, from the means of batches, about the square root of their number.
  lab.meanAndError = function (values, from, to) {
    const count = to - from, batches = Math.max(2, Math.floor(Math.sqrt(count))), size = Math.floor(count / batches);
    if (size < 1) { return [count ? values[from] : NaN, Infinity]; }
    let mean = 0, square = 0;
    for (let b = 0; b < batches; b++) {
      let sum = 0;
      for (let i = 0; i < size; i++) { sum += values[from + b * size + i]; }
      sum /= size;
      const before = sum - mean;
      mean += before / (b + 1);
      square += before * (sum - mean);
    }
    return [mean, Math.sqrt(square / (batches - 1) / batches)];
  };

  // The running mean of numbers after the first `skip` and its bar of two standard errors, at sixty places: {at, mean, low, high}.
  lab.running = function (values, skip = 0) {
    const at = [], mean = [], low = [], high = [];
    for (let k = 1; k <= 60; k++) {
      const until = Math.floor(values.length * k / 60);
      if (until - skip < 16) { continue; }
      const [m, error] = lab.meanAndError(values, skip, until);
      at.push(until); mean.push(m); low.push(m - 2 * error); high.push(m + 2 * error);
    }
    return { at, mean, low, high };
  };

  // The numbers from low to high in so many steps.
  lab.grid = (low, high, steps) => Float64Array.from({ length: steps + 1 }, (_, i) => low + (high - low) * i / steps);

  // A path (xs, ys) on the contours of its landscape, with what is drawn after it.
  lab.pathView = function (context, box, { title, landscape, window, xs, ys, from, to, colour, words, legend = [], bare, joined = true, faint }) {
    const [x0, x1, y0, y1] = window || landscape.window;
    const panel = lab.panel(context, box, {
      title, x: [x0, x1], y: [y0, y1], window, equal: x1 - x0 === y1 - y0, bare, xlabel: "θ₁", ylabel: "θ₂",
      legend: [{ words: "contours of the target", colour: TRUTH, width: 1 }, { words, colour, mark: "disc" }, ...legend],
    });
    panel.contours(landscape);
    if (joined) { panel.line(xs, ys, colour, { from, to, width: 0.8, alpha: 0.6 }); }
    panel.points(xs, ys, colour, { from, to, size: joined ? 2 : 1.5, alpha: faint && 0.5 });
    return panel;
  };

  // The histogram of the numbers from..to against the true density.
  lab.histogramView = function (context, box, { title, density, range, values, from = 0, to, colour, words, highest, label = "θ₁", bins = 50, more = [], lines = 0 }) {
    const xs = lab.grid(range[0], range[1], 200), truth = density && xs.map(density);
    const panel = lab.panel(context, box, {
      title, x: range, y: [0, highest], xlabel: label, ylabel: "density", legendLines: lines,
      legend: [...(truth ? [{ words: "truth", colour: TRUTH, mark: "area" }] : []), { words, colour, width: 2 }, ...more.map((other) => ({ ...other, width: 2 }))],
    });
    if (truth) { panel.area(xs, truth, TRUTH); }
    for (const other of [{ values, from, to, colour }, ...more]) {
      panel.line(...lab.histogram(other.values, range[0], range[1], bins, other.from || 0, other.to), other.colour, { width: 2, dash: other.dash });
    }
    return panel;
  };

  // A running estimate with its bar of two standard errors, against the truth: series [{running, colour, words}].
  lab.runningView = function (context, box, { title, length, shown, range, truth, label, unit = "step", series, expected, lines = 0 }) {
    const panel = lab.panel(context, box, {
      title, x: [0, length], y: range, xlabel: unit, ylabel: label, legendLines: lines,
      legend: [
        ...(truth === undefined ? [] : [{ words: "truth", colour: TRUTH, width: 3 }]),
        ...series.map((one) => ({ words: one.words, colour: one.colour, width: 2, dash: one.dash })),
        ...(expected ? [{ words: expected.words, colour: lab.theme.ink, width: 1, dash: [5, 3] }] : []),
      ],
    });
    if (truth !== undefined) { panel.level(truth, TRUTH, { width: 3 }); }
    if (expected) { panel.level(expected.value, lab.theme.ink, { width: 1, dash: [5, 3] }); }
    for (const { running, colour, dash } of series) {
      const to = running.at.filter((at) => at <= shown).length;
      if (to === 0) { continue; }
      panel.band(running.at.slice(0, to), running.low, running.high, colour);
      panel.line(running.at, running.mean, colour, { to, width: 2, dash });
    }
    return panel;
  };
})();
