// What to sample: energies U(x, y) and gradients, the targets of sgmc/targets.py in two dimensions.
// window: [x₀, x₁, y₀, y₁], what a figure shows; start; mean and variance of x, and its density.
"use strict";

lab.normal_density = (x, mean, variance) =>
  lab.exp((-(x - mean) * (x - mean)) / (2 * variance)) / Math.sqrt(6.283185307179586 * variance);

lab.landscapes.gaussian = {
  title: "Gaussian",
  dim: 2,
  energy: (x, y) => 0.5 * (x * x + y * y),
  gradient(x, y, out) {
    out[0] = x;
    out[1] = y;
  },
  window: [-4, 4, -4, 4],
  start: [0, 0],
  moments: { mean: 0, variance: 1 },
  marginal: (x) => lab.normal_density(x, 0, 1),
};

// Variances 1 and correlation 0.9: Σ⁻¹ = (1, −0.9; −0.9, 1)/0.19.
lab.landscapes.correlated = {
  title: "correlated Gaussian",
  dim: 2,
  energy: (x, y) => (0.5 * (x * x - 1.8 * x * y + y * y)) / 0.19,
  gradient(x, y, out) {
    out[0] = (x - 0.9 * y) / 0.19;
    out[1] = (y - 0.9 * x) / 0.19;
  },
  window: [-4, 4, -4, 4],
  start: [0, 0],
  moments: { mean: 0, variance: 1 },
  marginal: (x) => lab.normal_density(x, 0, 1),
};

// −2x² + x⁴ of Chen et al. (2014), and a Gaussian across.
lab.landscapes.double_well = {
  title: "double well",
  dim: 2,
  energy: (x, y) => x * x * (x * x - 2) + 0.5 * y * y,
  gradient(x, y, out) {
    out[0] = 4 * x * (x * x - 1);
    out[1] = y;
  },
  window: [-2.5, 2.5, -4, 4],
  start: [-1, 0],
  moments: { mean: 0, variance: 0.8327454871283798 },
  marginal: (x) => lab.exp(x * x * (2 - x * x)) / 5.36516023783457,
};

// x ~ N(0, 4), y | x ~ N(½(x² − 4), 1) (Haario, Saksman and Tamminen, 1999).
lab.landscapes.banana = {
  title: "banana",
  dim: 2,
  energy(x, y) {
    const across = y - 0.5 * (x * x - 4);
    return (x * x) / 8 + 0.5 * across * across;
  },
  gradient(x, y, out) {
    const across = y - 0.5 * (x * x - 4);
    out[0] = x / 4 - x * across;
    out[1] = across;
  },
  window: [-7, 7, -6, 14],
  start: [0, -2],
  moments: { mean: 0, variance: 4 },
  marginal: (x) => lab.normal_density(x, 0, 4),
};

// The 25 modes of Zhang et al. (2020), variance 0.03: the product of two mixtures of five.
lab.mixture = function (x) {
  let least = Infinity, sum = 0, moment = 0;
  for (let mean = -4; mean <= 4; mean += 2) least = Math.min(least, (x - mean) * (x - mean));
  for (let mean = -4; mean <= 4; mean += 2) {
    const weight = lab.exp((least - (x - mean) * (x - mean)) / 0.06);
    sum += weight;
    moment += weight * (x - mean);
  }
  return { least, sum, slope: moment / sum / 0.03 };
};

lab.landscapes.modes = {
  title: "25 modes",
  dim: 2,
  energy(x, y) {
    const first = lab.mixture(x), second = lab.mixture(y);
    return (first.least + second.least) / 0.06 - lab.log(first.sum * second.sum / 25) + lab.log(6.283185307179586 * 0.03);
  },
  gradient(x, y, out) {
    out[0] = lab.mixture(x).slope;
    out[1] = lab.mixture(y).slope;
  },
  window: [-5, 5, -5, 5],
  start: [0, 0],
  moments: { mean: 0, variance: 8.03 },
  marginal(x) {
    let sum = 0;
    for (let mean = -4; mean <= 4; mean += 2) sum += lab.normal_density(x, mean, 0.03) / 5;
    return sum;
  },
};

// x ~ N(0, 9), y | x ~ N(0, exp x) (Neal, 2003).
lab.landscapes.funnel = {
  title: "funnel",
  dim: 2,
  energy: (x, y) => (x * x) / 18 + 0.5 * x + 0.5 * lab.exp(-x) * y * y,
  gradient(x, y, out) {
    const scaled = lab.exp(-x) * y;
    out[0] = x / 9 + 0.5 - 0.5 * scaled * y;
    out[1] = scaled;
  },
  window: [-8, 8, -12, 12],
  start: [0, 0],
  moments: { mean: 0, variance: 9 },
  marginal: (x) => lab.normal_density(x, 0, 9),
};
