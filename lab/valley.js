// A landscape with two scales: what limits the step size is not what asks for many steps.
"use strict";

// x ~ N(0, 1) along the valley, y ~ N(0, 1/9) across it.
lab.landscapes.valley = {
  title: "valley",
  dim: 2,
  energy: (x, y) => 0.5 * (x * x + 9 * y * y),
  gradient(x, y, out) {
    out[0] = x;
    out[1] = 9 * y;
  },
  window: [-4, 4, -1.4, 1.4],
  start: [0, 0],
  moments: { mean: 0, variance: 1 },
  marginal: (x) => lab.normal_density(x, 0, 1),
};
