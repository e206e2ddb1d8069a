// Trees: paths grown by doubling until they turn round, what NUTS and SGNUTS share; sgmc/kernels/trees.py, for one chain.
// A point is {position, momentum, log_weight, energy, gradient}; its momentum shows in the direction in which the path grows.
"use strict";

// Double the path, each time to a random side, until it turns; choose one of its states (Betancourt, 2017, Appendix A).
lab.grow_tree = function (start, forward, max_depth, noise, max_error) {
  const flip = (momentum) => momentum.map((r) => -r);
  start.index = 0; // its place among the states below
  let near = start, far = { ...start, momentum: flip(start.momentum) };
  let chosen = start, log_weight = start.log_weight, total = start.momentum;
  let depth = 0, growing = true, way = 1, acceptance = 0, ended = "max depth", turn = null;
  // For the drawing: every state that was visited, in which doubling and in which direction of time.
  const states = [{ position: start.position, momentum: start.momentum, doubling: -1, way: 0, kept: true }];
  const uniforms = lab.uniforms(2 * max_depth, noise);
  for (let doubling = 0; doubling < max_depth; doubling++) {
    const turned_round = uniforms[doubling] < 0.5, log_uniform = lab.log(uniforms[max_depth + doubling]);
    if (turned_round) {
      [near, far, total, way] = [far, near, flip(total), -way];
    }
    const first = states.length;
    const branch = lab.grow_branch(near, forward, lab.POWERS[doubling], noise, max_error, (point) => {
      point.index = states.length;
      const momentum = way > 0 ? point.momentum : flip(point.momentum);
      states.push({ position: point.position, momentum, doubling, way, kept: false });
      acceptance += lab.exp(Math.min(0, point.log_weight));
    });
    growing = branch.not_turning;
    if (!growing) {
      ended = branch.diverged ? "diverged" : "new half";
      turn = branch.diverged ? null : [states.length - branch.turning, states.length - 1];
      break;
    }
    for (const state of states.slice(first)) state.kept = true;
    depth += 1;
    if (log_uniform < branch.log_weight - log_weight) chosen = branch.chosen;
    log_weight = lab.logaddexp(log_weight, branch.log_weight);
    const old = { first: flip(far.momentum), last: near.momentum, total, num_states: lab.POWERS[doubling] };
    const whole = lab.join(old, branch.span);
    near = branch.end;
    total = whole.total;
    growing = whole.not_turning;
    if (!growing) {
      ended = "whole path";
      turn = [far.index, near.index];
      break;
    }
  }
  const num_steps = states.length - 1;
  const tree = { states, chosen: chosen.index, ended, turn };
  const info = { depth, diverged: ended === "diverged", depth_limited: growing, acceptance: acceptance / num_steps, tree };
  return { chosen, num_steps, info };
};

// Take steps from the end of a path, check all sub-trees for U-turns, and choose one of the new states by their weights.
// The sub-trees that are complete are kept on a stack, the largest at the bottom, and join as in counting in binary.
lab.grow_branch = function (near, forward, num_states, noise, max_error, visit) {
  let end = near, chosen = near, log_weight = -Infinity, not_turning = true, diverged = false, turning = 0;
  const spans = [];
  for (const uniform of lab.uniforms(num_states, noise)) {
    end = forward(end);
    if (!Number.isFinite(end.log_weight)) end.log_weight = -Infinity;
    visit(end);
    log_weight = lab.logaddexp(log_weight, end.log_weight);
    if (lab.log(uniform) < end.log_weight - log_weight) chosen = end;
    diverged = !(end.log_weight > -max_error);
    not_turning = !diverged;
    let span = { first: end.momentum, last: end.momentum, total: end.momentum, num_states: 1, not_turning: true };
    while (spans.length > 0 && spans[spans.length - 1].num_states === span.num_states) {
      span = lab.join(spans.pop(), span);
      if (!span.not_turning) {
        not_turning = false;
        turning = span.num_states;
      }
    }
    spans.push(span);
    if (!not_turning) break;
  }
  return { end, chosen, log_weight, span: spans[0], not_turning, diverged, turning };
};

// Join two neighbouring sub-trees, and tell whether they turn together; each half is also checked with the first state of the other.
lab.join = function (old, recent) {
  const add = (a, b) => [a[0] + b[0], a[1] + b[1]];
  const total = add(old.total, recent.total);
  let not_turning = lab.is_not_turning(total, old.first, recent.last);
  if (old.num_states > 1) {
    not_turning = not_turning && lab.is_not_turning(add(old.total, recent.first), old.first, recent.first);
    not_turning = not_turning && lab.is_not_turning(add(old.last, recent.total), old.last, recent.last);
  }
  return { first: old.first, last: recent.last, total, num_states: old.num_states + recent.num_states, not_turning };
};

// ρᵀr > 0 at both ends of a path, ρ being the sum of its momenta.
lab.is_not_turning = function (total, first, last) {
  return total[0] * first[0] + total[1] * first[1] > 0 && total[0] * last[0] + total[1] * last[1] > 0;
};

lab.uniforms = (number, noise) => Array.from({ length: number }, () => noise.uniform());
