// What a step of the live lab costs without drawing: a million of them for every algorithm, on the double well with V = 4.
//
// usage: .venv/bin/node benchmarks/lab.js [turns, 5 by default]
//
// Times are seconds of the processor, for on a machine that others use too the clock tells how busy they are. The algorithms run in turns
// in one process; the median and the best of several turns are printed. What moves many particles at once also does so with 1,000.
"use strict";

const path = require("path"), fs = require("fs"), vm = require("vm");

const folder = path.join(__dirname, "..", "lab");
const names = fs.readdirSync(path.join(folder, "algorithms")).map((name) => path.join("algorithms", name));
for (const name of ["core.js", "landscapes.js", "trees.js", ...names]) {
  vm.runInThisContext(fs.readFileSync(path.join(folder, name), "utf8"), { filename: name });
}

const MILLION = 1e6;
const TURNS = Number(process.argv[2] || 5);
const MANY = ["sgld", "sghmc", "cyclical", "naive_sghmc"]; // what has no branch of its own for a particle

// Count a trajectory's steps, or the states of a tree, as the steps they are.
function steps_of(name, state, before) {
  return name === "random_walk" ? 1 : state.num_gradients - before;
}

function time(name, particles) {
  const parameters = lab.parameters(name, { landscape: lab.landscapes.double_well, noise_variance: 4 });
  const kernel = lab.algorithms[name], noise = lab.noise(1);
  const start = Float64Array.from({ length: 2 * particles }, (_, i) => (i % 2 ? 0 : -1));
  let state = kernel.init(start, parameters, noise), steps = 0;
  const begin = process.cpuUsage();
  while (steps * particles < MILLION) {
    const before = state.num_gradients;
    state = kernel.step(state, parameters, noise);
    steps += steps_of(name, state, before);
  }
  const used = process.cpuUsage(begin);
  return ((used.user + used.system) / 1e6) * (MILLION / (steps * particles));
}

const jobs = [...Object.keys(lab.algorithms).map((name) => [name, 1]), ...MANY.map((name) => [name, 1000])];
const seconds = jobs.map(() => []);
for (let turn = 0; turn < TURNS; turn++) jobs.forEach(([name, particles], i) => seconds[i].push(time(name, particles)));

console.log(`node ${process.version}, ${TURNS} turns; seconds of the processor for 10⁶ steps: median (best)`);
jobs.forEach(([name, particles], i) => {
  const sorted = seconds[i].sort((a, b) => a - b);
  const words = `${lab.algorithms[name].title}, ${particles === 1 ? "one particle" : "1,000 particles"}`;
  console.log(`${words.padEnd(45)} ${sorted[TURNS >> 1].toFixed(2)} (${sorted[0].toFixed(2)})`);
});
