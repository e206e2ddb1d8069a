// Marks that only figures in the prose use.
"use strict";

// An axis in powers of ten.
lab.powers = {
  to: (value) => Math.log10(Math.max(value, 1e-300)),
  words: (power) => (power >= -2 && power <= 3 ? String(Number((10 ** power).toPrecision(2))) : "10" + [...String(power)].map((digit) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(digit)]).join("")),
  least: 1,
};

// A line for what theory says, on the view of a running estimate.
lab.theory = () => ({ words: "theory", colour: lab.theme.ink, width: 1, dash: [5, 3] });

lab.marks = function (panel, { left, top, right, bottom, text }) {
  // A point with its bar.
  panel.error = function (x, y, half, colour) {
    panel.line([x, x], [y - half, y + half], colour, { width: 2 });
    panel.point(x, y, colour, { size: 4 });
  };
  panel.upright = (x, colour, settings) =>
    panel.paint(colour, settings, (context, toX) => (context.moveTo(toX(x), top), context.lineTo(toX(x), bottom), context.stroke()));
  panel.shade = (from, to, colour, alpha) =>
    panel.paint(colour, { alpha }, (context, toX) => context.fillRect(toX(from), top, toX(to) - toX(from), bottom - top));
  panel.arrow = (x0, y0, x1, y1, colour) =>
    panel.paint(colour, { width: 2 }, function (context, toX, toY) {
      const [a, b, c, d] = [toX(x0), toY(y0), toX(x1), toY(y1)], turn = Math.atan2(d - b, c - a);
      context.moveTo(a, b);
      context.lineTo(c, d);
      for (const side of [2.6, -2.6]) context.moveTo(c, d), context.lineTo(c + 9 * Math.cos(turn + side), d + 9 * Math.sin(turn + side));
      context.stroke();
    });
  panel.note = (words, x, y, align = "left") => panel.paint(lab.theme.ink, {}, (context, toX, toY) => text(words, toX(x), toY(y), align, "middle"));
};
