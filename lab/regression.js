// A landscape with data, for gradients from minibatches.
"use strict";

// A straight line x + y·inputᵢ through 40 points, targetᵢ ~ N(x + y·inputᵢ, 40) and x, y ~ N(0, 100): a posterior with data.
lab.landscapes.regression = (function () {
  const num_examples = 40, inputs = [], targets = [], noise = lab.noise(1);
  for (let i = 0; i < num_examples; i++) {
    inputs.push((i - 19.5) / Math.sqrt(133.25)); // mean 0 and variance 1
    targets.push(2 * inputs[i] + Math.sqrt(40) * noise.normal());
  }
  const precision = 1.01; // Σ1/40 + 1/100, and Σinputᵢ²/40 + 1/100
  const mean = [0, 0];
  for (let i = 0; i < num_examples; i++) {
    mean[0] += targets[i] / 40 / precision;
    mean[1] += (inputs[i] * targets[i]) / 40 / precision;
  }
  // Knuth's selection sampling: of the examples that are left each one is equally likely to be among those that are still needed.
  function minibatch(batch_size, noise) {
    const chosen = [];
    for (let i = 0; chosen.length < batch_size; i++) {
      const left = num_examples - i, needed = batch_size - chosen.length;
      if (needed >= left || noise.uniform() * left < needed) chosen.push(i);
    }
    return chosen;
  }
  function minibatch_gradient(x, y, batch_size, noise, out) {
    let first = 0, second = 0;
    for (const i of lab.landscapes.regression.minibatch(batch_size, noise)) {
      const residual = x + y * inputs[i] - targets[i];
      first += residual;
      second += residual * inputs[i];
    }
    const scale = num_examples / batch_size / 40;
    out[0] = scale * first + x / 100;
    out[1] = scale * second + y / 100;
  }
  return {
    title: "a line through 40 points",
    dim: 2,
    inputs,
    targets,
    energy(x, y) {
      let sum = 0;
      for (let i = 0; i < num_examples; i++) {
        const residual = x + y * inputs[i] - targets[i];
        sum += residual * residual;
      }
      return sum / 80 + (x * x + y * y) / 200;
    },
    gradient: (x, y, out) => minibatch_gradient(x, y, num_examples, null, out),
    minibatch,
    minibatch_gradient,
    window: [mean[0] - 4, mean[0] + 4, mean[1] - 4, mean[1] + 4],
    start: mean,
    moments: { mean: mean[0], variance: 1 / precision },
    marginal: (x) => lab.normal_density(x, mean[0], 1 / precision),
  };
})();
