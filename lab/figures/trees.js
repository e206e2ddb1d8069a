// What the figures of NUTS and SGNUTS share: the states of a tree on its landscape, and its brackets.
(function () {
  "use strict";
  const DOUBLINGS = ["#D55E00", "#E69F00", "#009E73", "#56B4E9", "#0072B2", "#CC79A7", "#882255", "#8C8C8C"];
  const doublingColour = (doubling) => (doubling < 0 ? lab.theme.ink : DOUBLINGS[doubling % DOUBLINGS.length]);

  // The states of a tree in the order of time; each keeps the number in which it was visited, the start being 0.
  lab.timeline = function (tree) {
    const states = tree.states.map((state, visited) => ({ ...state, visited, chosen: visited === tree.chosen }));
    const left = states.filter((state) => state.way < 0).reverse();
    return [...left, ...states.filter((state) => state.way >= 0)];
  };

  // The brackets of a tree: all complete aligned sub-trees of the path, and of the half that was thrown away; `turns` marks the one that ended it.
  lab.brackets = function (tree, timeline) {
    const found = [], turn = tree.turn && tree.turn.map((visited) => timeline.findIndex((state) => state.visited === visited)).sort((a, b) => a - b);
    for (const kept of [true, false]) {
      const first = timeline.findIndex((state) => state.kept === kept), number = timeline.filter((state) => state.kept === kept).length;
      const fromRight = !kept && first === 0;  // a half on the left was grown from right to left
      for (let level = 1; 2 ** level <= number; level++) {
        for (let low = 0; low + 2 ** level <= number; low += 2 ** level) {
          const begin = fromRight ? number - low - 2 ** level : first + low, end = begin + 2 ** level - 1;
          found.push({ begin, end, level, turns: Boolean(turn) && turn[0] === begin && turn[1] === end });
        }
      }
    }
    return found;
  };

  const GONE = { words: "thrown away", colour: "#0072B2", mark: "ring" };

  // The first `shown` states of a tree on the contours; the last doublings tell by colour, the thrown away are hollow.
  lab.treeView = function (context, box, { title, landscape, window, timeline, shown, weights }) {
    const [x0, x1, y0, y1] = window || landscape.window, last = Math.max(...timeline.map((state) => state.doubling));
    const panel = lab.panel(context, box, {
      title, x: [x0, x1], y: [y0, y1], window, equal: true, xlabel: "θ₁", ylabel: "θ₂", legendLines: 2,
      legend: [
        { words: "start", colour: lab.theme.ink, mark: "square" }, { words: "chosen", colour: lab.theme.ink, mark: "cross", width: 2 },
        ...(weights ? [{ words: "exp(−H)", colour: lab.theme.ink, mark: "disc", size: 6, alpha: 0.4 }] : []),
        ...Array.from({ length: Math.min(last + 1, 6) }, (_, i) => ({ words: (i ? "" : "doubling ") + (i + 1), colour: doublingColour(i), mark: "disc" })),
      ],
    });
    panel.contours(landscape);
    const seen = timeline.filter((state) => state.visited <= shown);
    panel.line(seen.map((state) => state.position[0]), seen.map((state) => state.position[1]), lab.theme.ink, { width: 0.7, alpha: 0.6 });
    for (const state of seen) {
      const [x, y] = state.position;
      if (weights) { panel.point(x, y, lab.theme.ink, { size: 1 + 13 * Math.sqrt(weights[state.visited]), alpha: 0.15 }); }
      panel.point(x, y, doublingColour(state.doubling), { kind: state.visited === 0 ? "square" : state.kept ? "disc" : "ring", size: state.visited === 0 ? 5 : 4 });
    }
    for (const state of seen.filter((each) => each.chosen)) { panel.point(...state.position, lab.theme.ink, { kind: "cross", size: 7, width: 2 }); }
  };

  lab.bracketView = function (context, box, { title, tree, timeline, shown }) {
    const brackets = lab.brackets(tree, timeline), top = Math.max(2, ...brackets.map((bracket) => bracket.level)), last = timeline.length - 1;
    const panel = lab.panel(context, box, {
      title, x: [-1, last + 1], y: [-0.6, top + 0.6], xlabel: "place in the path, in the order of time", ylabel: "depth", legendLines: 2,
      legend: [{ words: "sub-tree", colour: lab.theme.ink, width: 1 }, { words: "turns (thick, dashed)", colour: "#D00000", width: 4, dash: [6, 2] }, GONE],
    });
    timeline.forEach((state, i) => {
      if (state.visited <= shown) { panel.point(i, 0, doublingColour(state.doubling), { kind: state.visited === 0 ? "square" : state.kept ? "disc" : "ring", size: Math.max(2, Math.min(4, 120 / last)) }); }
    });
    for (const { begin, end, level, turns } of brackets) {
      if (timeline.slice(begin, end + 1).every((state) => state.visited <= shown)) {
        panel.line([begin, begin, end, end], [level - 0.35, level, level, level - 0.35], turns ? "#D00000" : lab.theme.ink, turns ? { width: 4, dash: [6, 2] } : { width: 1 });
      }
    }
  };

  // Why a tree ended, in words.
  lab.whyEnded = (tree, kept) => ({
    "new half": `the next half turned (${tree.states.length - kept} states, hollow) and was thrown away`,
    "whole path": "the whole path turned",
    "diverged": "the energy exploded",
    "max depth": "the largest depth was reached",
  })[tree.ended];
})();
