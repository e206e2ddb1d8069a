// Plots in the look of the book: a panel has two axes, a legend above them, and marks.
// It draws on a canvas in the page, and in still.js on anything with the same methods.
var lab = lab || {};

(function () {
  "use strict";

  // Those of sgmc/figures.py: an algorithm keeps its colour.
  lab.colours = {
    "random walk": "#000000", "SGD": "#56B4E9", "HMC": "#0072B2", "NUTS": "#E69F00", "naive SGHMC": "#D55E00",
    "SGLD": "#009E73", "SGHMC": "#CC79A7", "SGNUTS": "#882255", "leapfrog": "#0072B2",
    "truth": "#8C8C8C",
  };
  lab.theme = { dark: false, ink: "#222832", paper: "#ffffff", faint: "#d1d5da" };
  const LIGHTER = { "#000000": "#F2F2F2", "#0072B2": "#4FA9E2", "#882255": "#D9538F", "#D00000": "#FF6B6B" };

  // A colour of the book; on dark ground the few that would vanish there are lighter.
  function shade(colour) {
    return (lab.theme.dark && LIGHTER[colour]) || colour;
  }

  const FONT = "12px -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif";
  const LINE = 16;

  // Round numbers that divide [low, high] in at most so many parts.
  function ticks(low, high, parts) {
    const rough = (high - low) / parts, power = 10 ** Math.floor(Math.log10(rough));
    const size = [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) * power;
    const found = [];
    for (let i = Math.ceil(low / size - 1e-9); i * size <= high + 1e-9 * size; i++) { found.push(i * size); }
    return found;
  }

  function written(number) {
    return String(Number(number.toPrecision(10))).replace("-", "−");
  }

  const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  function powerOfTen(exponent) {
    if (exponent >= -2 && exponent <= 3) { return String(10 ** exponent); }
    const digits = [...String(Math.abs(exponent))].map((digit) => RAISED[digit]).join("");
    return "10" + (exponent < 0 ? "⁻" : "") + digits;
  }

  // Break the entries of a legend into lines that fit.
  function legendLines(context, entries, width) {
    const lines = [];
    let room = 0;
    for (const entry of entries) {
      const needed = 26 + context.measureText(entry.words).width;
      if (!lines.length || needed > room) { lines.push([]); room = width; }
      lines[lines.length - 1].push([entry, width - room]);
      room -= needed + 10;
    }
    return lines;
  }

  // The axes: {x: [low, high], y: [low, high], xlabel, ylabel, title, legend: [{words, colour, mark}], logx, logy, equal, bare}.
  // With `equal` one unit is as long on both, so that a circle is a circle.
  lab.panel = function (context, box, axes) {
    context.font = FONT;
    context.lineJoin = "round";
    const lines = legendLines(context, axes.legend || [], box.width - 8);
    const inner = {
      left: box.left + (axes.bare ? 6 : 50), right: box.left + box.width - 18,
      top: box.top + 8 + LINE + LINE * Math.max(lines.length, axes.legendLines || 0),
      bottom: box.top + box.height - (axes.bare ? 6 : 38),
    };
    let [left, right] = axes.logx ? axes.x.map(Math.log10) : axes.x;
    let [low, high] = axes.logy ? axes.y.map(Math.log10) : axes.y;
    const wide = inner.right - inner.left, tall = inner.bottom - inner.top;
    if (axes.equal) {  // show more of one axis rather than stretch it
      const unit = Math.max((right - left) / wide, (high - low) / tall);
      const growX = (unit * wide - (right - left)) / 2, growY = (unit * tall - (high - low)) / 2;
      left -= growX; right += growX; low -= growY; high += growY;
    }
    const scaleX = wide / (right - left), scaleY = tall / (high - low);
    const toX = axes.logx ? (x) => inner.left + (Math.log10(Math.max(x, 1e-300)) - left) * scaleX : (x) => inner.left + (x - left) * scaleX;
    const toY = axes.logy ? (y) => inner.bottom - (Math.log10(Math.max(y, 1e-300)) - low) * scaleY : (y) => inner.bottom - (y - low) * scaleY;
    const ink = lab.theme.ink;

    function style(colour, settings) {
      context.strokeStyle = context.fillStyle = shade(colour || ink);
      context.lineWidth = (settings && settings.width) || 1.5;
      context.globalAlpha = (settings && settings.alpha) || 1;
      context.setLineDash((settings && settings.dash) || []);
    }

    function text(words, x, y, align, baseline) {
      context.textAlign = align || "left";
      context.textBaseline = baseline || "alphabetic";
      context.fillText(words, x, y);
    }

    // Everything within is cut off at the frame.
    function within(draw) {
      context.save();
      context.beginPath();
      context.rect(inner.left, inner.top, wide, tall);
      context.clip();
      draw();
      context.restore();
      context.globalAlpha = 1;
      context.setLineDash([]);
    }

    function trace(xs, ys, from, to) {
      context.beginPath();
      for (let i = from; i < to; i++) { context[i === from ? "moveTo" : "lineTo"](toX(xs[i]), toY(ys[i])); }
    }

    // Marks tell apart without colour, too: disc, ring, square, cross.
    function mark(kind, x, y, size) {
      context.beginPath();
      if (kind === "square") {
        context.rect(x - size, y - size, 2 * size, 2 * size);
      } else if (kind === "cross") {
        context.moveTo(x - size, y - size); context.lineTo(x + size, y + size);
        context.moveTo(x - size, y + size); context.lineTo(x + size, y - size);
      } else {
        context.moveTo(x + size, y);
        context.arc(x, y, size, 0, 2 * Math.PI);
      }
      if (kind === "ring") {
        context.save();
        context.fillStyle = lab.theme.paper;
        context.fill();
        context.restore();
      }
      context[kind === "ring" || kind === "cross" ? "stroke" : "fill"]();
    }

    const panel = {
      x: [left, right], y: [low, high],
      line(xs, ys, colour, settings) {
        const { from = 0, to = xs.length } = settings || {};
        within(() => { style(colour, settings); trace(xs, ys, from, to); context.stroke(); });
      },
      area(xs, ys, colour) {  // from the lower edge up to the curve, as the book draws a true density
        within(() => {
          style(colour, { alpha: 0.35 });
          trace(xs, ys, 0, xs.length);
          context.lineTo(toX(xs[xs.length - 1]), inner.bottom);
          context.lineTo(toX(xs[0]), inner.bottom);
          context.fill();
        });
      },
      band(xs, lower, upper, colour) {
        within(() => {
          style(colour, { alpha: 0.25 });
          trace(xs, upper, 0, xs.length);
          for (let i = xs.length - 1; i >= 0; i--) { context.lineTo(toX(xs[i]), toY(lower[i])); }
          context.fill();
        });
      },
      shade(from, to, colour, alpha) {
        within(() => {
          style(colour, { alpha: alpha || 0.15 });
          context.fillRect(toX(from), inner.top, toX(to) - toX(from), tall);
        });
      },
      points(xs, ys, colour, settings) {
        const { from = 0, to = xs.length, size = 2, kind = "disc" } = settings || {};
        within(() => {
          style(colour, settings);
          if (kind === "disc" && size <= 1.5) {  // thousands of small ones: squares, which are quicker
            for (let i = from; i < to; i++) { context.fillRect(toX(xs[i]) - size, toY(ys[i]) - size, 2 * size, 2 * size); }
          } else {
            for (let i = from; i < to; i++) { mark(kind, toX(xs[i]), toY(ys[i]), size); }
          }
        });
      },
      point(x, y, colour, settings) { panel.points([x], [y], colour, settings); },
      error(x, y, half, colour) {  // a point with its bar
        panel.line([x, x], [y - half, y + half], colour, { width: 2 });
        panel.point(x, y, colour, { size: 4 });
      },
      level(y, colour, settings) { within(() => { style(colour, settings); trace([left, right].map((v) => axes.logx ? 10 ** v : v), [y, y], 0, 2); context.stroke(); }); },
      upright(x, colour, settings) { within(() => { style(colour, settings); trace([x, x], [low, high].map((v) => axes.logy ? 10 ** v : v), 0, 2); context.stroke(); }); },
      arrow(x0, y0, x1, y1, colour) {
        within(() => {
          const [a, b, c, d] = [toX(x0), toY(y0), toX(x1), toY(y1)], turn = Math.atan2(d - b, c - a);
          style(colour, { width: 2 });
          context.beginPath();
          context.moveTo(a, b); context.lineTo(c, d);
          for (const side of [2.6, -2.6]) { context.moveTo(c, d); context.lineTo(c + 9 * Math.cos(turn + side), d + 9 * Math.sin(turn + side)); }
          context.stroke();
        });
      },
      // Words at a place of the axes, or at a share of the frame where `frame` is set.
      note(words, x, y, settings) {
        const { align = "left", colour, frame } = settings || {};
        style(colour);
        text(words, frame ? inner.left + x * wide : toX(x), frame ? inner.top + y * tall : toY(y), align, "middle");
      },
      contours(landscape) {
        within(() => {
          style(lab.colours.truth, { width: 1 });
          context.beginPath();
          for (const [x0, y0, x1, y1] of contourLines(landscape, axes.window || landscape.window)) {
            context.moveTo(toX(x0), toY(y0)); context.lineTo(toX(x1), toY(y1));
          }
          context.stroke();
        });
      },
    };

    context.globalAlpha = 1;
    context.setLineDash([]);
    context.fillStyle = ink;
    context.font = "bold " + FONT;
    text(axes.title || "", box.left + 4, box.top + 14);
    context.font = FONT;
    lines.forEach((line, row) => line.forEach(([entry, shift]) => {
      const x = box.left + 4 + shift, y = box.top + 10 + LINE * (row + 1), kind = entry.mark || "line";
      style(entry.colour, entry);
      context.beginPath();
      if (kind === "line") { context.moveTo(x, y); context.lineTo(x + 18, y); context.stroke(); }
      else if (kind === "area") { context.globalAlpha = 0.35; context.fillRect(x, y - 5, 18, 10); }
      else { mark(kind, x + 9, y, entry.size || 4); }
      style(ink);
      text(entry.words, x + 23, y, "left", "middle");
    }));

    if (!axes.bare) {
      style(ink);
      const across = axes.logx ? whole(left, right) : ticks(left, right, Math.max(3, Math.floor(wide / 48)));
      const upwards = axes.logy ? whole(low, high) : ticks(low, high, Math.max(2, Math.floor(tall / 36)));
      for (const value of across) {
        const x = inner.left + (value - left) * scaleX;
        context.fillRect(x - 0.5, inner.bottom, 1, 4);
        text(axes.logx ? powerOfTen(value) : written(value), x, inner.bottom + 7, "center", "top");
      }
      for (const value of upwards) {
        const y = inner.bottom - (value - low) * scaleY;
        context.fillRect(inner.left - 4, y - 0.5, 4, 1);
        text(axes.logy ? powerOfTen(value) : written(value), inner.left - 7, y, "right", "middle");
      }
      text(axes.xlabel || "", (inner.left + inner.right) / 2, box.top + box.height - 3, "center", "bottom");
      context.save();
      context.translate(box.left + 12, (inner.top + inner.bottom) / 2);
      context.rotate(-Math.PI / 2);
      text(axes.ylabel || "", 0, 0, "center", "middle");
      context.restore();
    }
    context.strokeStyle = axes.bare ? lab.theme.faint : ink;
    context.lineWidth = 1;
    context.strokeRect(inner.left, inner.top, wide, tall);
    return panel;
  };

  // The whole powers of ten between two exponents, at most eight.
  function whole(low, high) {
    const first = Math.ceil(low - 1e-9), last = Math.floor(high + 1e-9), every = Math.ceil((last - first + 1) / 8), found = [];
    for (let i = first; i <= last; i += every) { found.push(i); }
    return found;
  }

  const known = new Map();

  // Contour lines where the density has fallen by exp(−½k²), k = ½, 1, …, 3, from its largest value: pieces [x0, y0, x1, y1].
  function contourLines(landscape, window) {
    const key = landscape.title + window;
    if (known.has(key)) { return known.get(key); }
    const size = 96, [x0, x1, y0, y1] = window, energy = [], pieces = [];
    let lowest = Infinity;
    for (let j = 0; j <= size; j++) {
      for (let i = 0; i <= size; i++) {
        const value = landscape.energy(x0 + (x1 - x0) * i / size, y0 + (y1 - y0) * j / size);
        energy.push(value);
        lowest = Math.min(lowest, value);
      }
    }
    for (let k = 1; k <= 6; k++) {
      const level = lowest + 0.5 * (k / 2) ** 2;
      for (let j = 0; j < size; j++) {
        for (let i = 0; i < size; i++) {
          const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]], crossings = [];
          for (let side = 0; side < 4; side++) {
            const [a, b] = corners[side], [c, d] = corners[(side + 1) % 4];
            const here = energy[b * (size + 1) + a] - level, there = energy[d * (size + 1) + c] - level;
            if (here < 0 !== there < 0) {
              const share = here / (here - there);
              crossings.push([x0 + (x1 - x0) * (a + share * (c - a)) / size, y0 + (y1 - y0) * (b + share * (d - b)) / size]);
            }
          }
          for (let c = 0; c + 1 < crossings.length; c += 2) { pieces.push([...crossings[c], ...crossings[c + 1]]); }
        }
      }
    }
    known.set(key, pieces);
    return pieces;
  }

  if (typeof module !== "undefined") { module.exports = lab; }
})();
