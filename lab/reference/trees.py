"""Paths grown by doubling until they turn round: ``lab/trees.js`` in Python.

A point is a dict of position, momentum, log_weight, energy and gradient; its momentum
shows in the direction in which the path grows."""

import math
from collections.abc import Callable
from typing import Any

from lab.reference.core import Noise, exp, log, logaddexp

Point = dict[str, Any]
Span = dict[str, Any]
Vector = list[float]


def grow_tree(
    start: Point,
    forward: Callable[[Point], Point],
    max_depth: int,
    noise: Noise,
    max_error: float,
) -> tuple[Point, int, dict[str, Any]]:
    """Double the path, each time to a random side, until it turns; choose one of its
    states (Betancourt, 2017, Appendix A).

    Returns:
        The next state of the chain, the number of steps taken, and what was learned,
        the tree among it.
    """
    start["index"] = 0  # its place among the states below
    near, far = start, start | {"momentum": flip(start["momentum"])}
    chosen, log_weight, total = start, start["log_weight"], start["momentum"]
    depth, growing, way, acceptance, ended, turn = 0, True, 1, 0.0, "max depth", None
    states = [
        {
            "position": start["position"],
            "momentum": start["momentum"],
            "doubling": -1,
            "way": 0,
            "kept": True,
        }
    ]

    def visit(point: Point) -> None:
        nonlocal acceptance
        point["index"] = len(states)
        momentum = point["momentum"] if way > 0 else flip(point["momentum"])
        states.append(
            {
                "position": point["position"],
                "momentum": momentum,
                "doubling": doubling,
                "way": way,
                "kept": False,
            }
        )
        acceptance += exp(min(0.0, point["log_weight"]))

    uniforms = [noise.uniform() for _ in range(2 * max_depth)]
    for doubling in range(max_depth):
        turned_round, log_uniform = (
            uniforms[doubling] < 0.5,
            log(uniforms[max_depth + doubling]),
        )
        if turned_round:
            near, far, total, way = far, near, flip(total), -way
        first = len(states)
        branch = grow_branch(near, forward, 2**doubling, noise, max_error, visit)
        growing = branch["not_turning"]
        if not growing:
            ended = "diverged" if branch["diverged"] else "new half"
            turn = (
                None
                if branch["diverged"]
                else [len(states) - branch["turning"], len(states) - 1]
            )
            break
        for state in states[first:]:
            state["kept"] = True
        depth += 1
        if log_uniform < branch["log_weight"] - log_weight:
            chosen = branch["chosen"]
        log_weight = logaddexp(log_weight, branch["log_weight"])
        old = {
            "first": flip(far["momentum"]),
            "last": near["momentum"],
            "total": total,
            "num_states": 2**doubling,
        }
        whole = join(old, branch["span"])
        near, total, growing = branch["end"], whole["total"], whole["not_turning"]
        if not growing:
            ended, turn = "whole path", [far["index"], near["index"]]
            break
    num_steps = len(states) - 1
    tree = {"states": states, "chosen": chosen["index"], "ended": ended, "turn": turn}
    info = {
        "depth": depth,
        "diverged": ended == "diverged",
        "depth_limited": growing,
        "acceptance": acceptance / num_steps,
        "tree": tree,
    }
    return chosen, num_steps, info


def grow_branch(
    near: Point,
    forward: Callable[[Point], Point],
    num_states: int,
    noise: Noise,
    max_error: float,
    visit: Callable[[Point], None],
) -> dict[str, Any]:
    """Take steps from the end of a path, check all sub-trees for U-turns, and choose
    one of the new states by their weights.
    """
    end, chosen, log_weight, not_turning, diverged, turning = (
        near,
        near,
        -math.inf,
        True,
        False,
        0,
    )
    spans: list[Span] = []
    for uniform in [noise.uniform() for _ in range(num_states)]:
        end = forward(end)
        if not math.isfinite(end["log_weight"]):
            end["log_weight"] = -math.inf
        visit(end)
        log_weight = logaddexp(log_weight, end["log_weight"])
        if log(uniform) < end["log_weight"] - log_weight:
            chosen = end
        diverged = not end["log_weight"] > -max_error
        not_turning = not diverged
        span = {
            "first": end["momentum"],
            "last": end["momentum"],
            "total": end["momentum"],
            "num_states": 1,
        }
        while spans and spans[-1]["num_states"] == span["num_states"]:
            span = join(spans.pop(), span)
            if not span["not_turning"]:
                not_turning, turning = False, span["num_states"]
        spans.append(span)
        if not not_turning:
            break
    return {
        "end": end,
        "chosen": chosen,
        "log_weight": log_weight,
        "span": spans[0],
        "not_turning": not_turning,
        "diverged": diverged,
        "turning": turning,
    }


def join(old: Span, new: Span) -> Span:
    """Join two neighbouring sub-trees, and tell whether they turn together; each half
    is also checked with the first state of the other.
    """
    total = add(old["total"], new["total"])
    not_turning = is_not_turning(total, old["first"], new["last"])
    if old["num_states"] > 1:
        not_turning = not_turning and is_not_turning(
            add(old["total"], new["first"]), old["first"], new["first"]
        )
        not_turning = not_turning and is_not_turning(
            add(old["last"], new["total"]), old["last"], new["last"]
        )
    num_states = old["num_states"] + new["num_states"]
    return {
        "first": old["first"],
        "last": new["last"],
        "total": total,
        "num_states": num_states,
        "not_turning": not_turning,
    }


def is_not_turning(total: Vector, first: Vector, last: Vector) -> bool:
    """Tell whether ρᵀr > 0 at both ends of a path, ρ being the sum of its momenta."""
    return (
        total[0] * first[0] + total[1] * first[1] > 0
        and total[0] * last[0] + total[1] * last[1] > 0
    )


def add(a: Vector, b: Vector) -> Vector:
    """Add two vectors."""
    return [a[0] + b[0], a[1] + b[1]]


def flip(momentum: Vector) -> Vector:
    """Reverse a momentum."""
    return [-r for r in momentum]
