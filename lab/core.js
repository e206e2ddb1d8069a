// The live lab's core: arithmetic that gives the same bits everywhere, noise, and what the algorithms share.
// Names are those of the package sgmc.
"use strict";

var lab = { landscapes: {}, algorithms: {} };

// exp, log and cos out of + − × ÷ alone: those of two browsers may differ in the last bit, and every reader sees the run that was tested.

lab.LOG_2 = [0.693147180369123816490, 1.90821492927058770002e-10]; // their sum is log 2, and the first ends in zeros
lab.FACTORIALS = [1]; // 1/k!
lab.ODD = []; // 1/(2k + 1)
lab.POWERS = [1]; // 2^k, exact
for (let k = 1; k <= 22; k++) lab.FACTORIALS.push(lab.FACTORIALS[k - 1] / k);
for (let k = 0; k <= 11; k++) lab.ODD.push(1 / (2 * k + 1));
for (let k = 1; k <= 1023; k++) lab.POWERS.push(2 * lab.POWERS[k - 1]);

// exp x = 2^k exp(x − k log 2), by Taylor's series; 0 below −708 and ∞ above 709.
lab.exp = function (x) {
  if (x !== x) return x;
  if (x < -708) return 0;
  if (x > 709) return Infinity;
  const k = Math.floor(x / lab.LOG_2[0] + 0.5);
  const rest = x - k * lab.LOG_2[0] - k * lab.LOG_2[1];
  let sum = lab.FACTORIALS[14];
  for (let n = 13; n >= 0; n--) sum = sum * rest + lab.FACTORIALS[n];
  return k < 0 ? sum / lab.POWERS[-k] : sum * lab.POWERS[k];
};

// log x = k log 2 + 2 artanh((m − 1)/(m + 1)) for x = 2^k m, by its series.
lab.log = function (x) {
  if (!(x > 0)) return x === 0 ? -Infinity : NaN;
  if (x === Infinity) return x;
  let k = 0;
  for (let power = 512; power >= 1; power /= 2) {
    while (x >= lab.POWERS[power]) {
      x /= lab.POWERS[power];
      k += power;
    }
    while (x * lab.POWERS[power] <= 1) {
      x *= lab.POWERS[power];
      k -= power;
    }
  }
  if (x > 1.4) {
    x /= 2;
    k += 1;
  } else if (x < 0.7) {
    x *= 2;
    k -= 1;
  }
  const s = (x - 1) / (x + 1);
  let sum = lab.ODD[11];
  for (let n = 10; n >= 0; n--) sum = sum * s * s + lab.ODD[n];
  return k * lab.LOG_2[0] + (2 * s * sum + k * lab.LOG_2[1]);
};

// cos x = 2 cos² ½x − 1 by Taylor's series, for |x| ≤ π.
lab.cos = function (x) {
  const square = (x * x) / 4;
  let sum = 0;
  for (let n = 22; n >= 0; n -= 2) sum = lab.FACTORIALS[n] - sum * square;
  return 2 * sum * sum - 1;
};

lab.logaddexp = function (a, b) {
  const most = Math.max(a, b);
  return most === -Infinity ? most : most + lab.log(1 + lab.exp(Math.min(a, b) - most));
};

// Noise: every algorithm takes it as an argument, normal() and uniform().

// A generator from a seed: the 32 bits of sfc32 (Doty-Humphrey, PractRand), and the polar method (Marsaglia and Bray, 1964).
lab.noise = function (seed) {
  let a = 0, b = seed | 0, c = 0, counter = 1, spare = null;
  function word() {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }
  function uniform() {
    const high = word() >>> 5; // 27 bits, and 26
    return (high * 67108864 + (word() >>> 6)) / 9007199254740992;
  }
  function normal() {
    if (spare !== null) {
      const kept = spare;
      spare = null;
      return kept;
    }
    let x, y, square;
    do {
      x = 2 * uniform() - 1;
      y = 2 * uniform() - 1;
      square = x * x + y * y;
    } while (square >= 1 || square === 0);
    const scale = Math.sqrt((-2 * lab.log(square)) / square);
    spare = y * scale;
    return x * scale;
  }
  for (let i = 0; i < 16; i++) word();
  return { uniform, normal };
};

// Numbers that were recorded, in their order.
lab.recorded = function (normals, uniforms) {
  let i = 0, j = 0;
  return { normal: () => normals[i++], uniform: () => uniforms[j++] };
};

// What the algorithms share. Positions are a Float64Array(2n): x and y of one particle after the other; mass and temperature are 1.

// The parameters of an algorithm with which a figure begins: the values of its sliders, exact gradients, a standard Gaussian.
lab.parameters = function (name, given) {
  const parameters = { landscape: lab.landscapes.gaussian, noise_variance: 0, batch_size: 0 };
  for (const [key, slider] of Object.entries(lab.algorithms[name].parameters)) parameters[key] = slider.value;
  return Object.assign(parameters, given);
};

lab.pair = new Float64Array(2); // of one particle, for a moment

lab.energy = (position, parameters) => parameters.landscape.energy(position[0], position[1]);

lab.gradient = function (position, parameters, gradient) {
  const pair = lab.pair;
  for (let i = 0; i < position.length; i += 2) {
    parameters.landscape.gradient(position[i], position[i + 1], pair);
    gradient[i] = pair[0];
    gradient[i + 1] = pair[1];
  }
  return gradient;
};

// ∇Ũ: from a minibatch where the landscape has data and a batch size is given; else ∇U + N(0, V), V a variance.
lab.stochastic_gradient = function (position, parameters, noise, gradient) {
  const { landscape, noise_variance, batch_size } = parameters;
  if (landscape.minibatch_gradient && batch_size > 0) {
    const pair = lab.pair;
    for (let i = 0; i < position.length; i += 2) {
      landscape.minibatch_gradient(position[i], position[i + 1], batch_size, noise, pair);
      gradient[i] = pair[0];
      gradient[i + 1] = pair[1];
    }
    return gradient;
  }
  lab.gradient(position, parameters, gradient);
  if (noise_variance > 0) {
    const root = Math.sqrt(noise_variance);
    for (let i = 0; i < gradient.length; i++) gradient[i] += root * noise.normal();
  }
  return gradient;
};

// A root of 2(C − B̂)ε; where the estimate exceeds the friction nothing is injected.
lab.injected_root = (friction, noise_estimate, step_size) => Math.sqrt(2 * Math.max(0, friction - noise_estimate) * step_size);

lab.draw_momentum = (position, noise) => Float64Array.from(position, () => noise.normal());

lab.kinetic_energy = (momentum) => 0.5 * (momentum[0] * momentum[0] + momentum[1] * momentum[1]);

// The Metropolis decision min(1, exp(H − H')); a proposal whose energy is not finite is rejected.
lab.accept = function (energy, proposed_energy, noise) {
  const acceptance = Number.isFinite(proposed_energy) ? lab.exp(Math.min(0, energy - proposed_energy)) : 0;
  return { accepted: noise.uniform() < acceptance, acceptance };
};

if (typeof module === "object") globalThis.lab = lab; // Node: the other files find it there
