"""TensorFlow Probability: its two SG-MCMC optimisers, in a graph, where SGLD runs."""

import importlib.metadata
import json
import os
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow_probability.python.optimizer import sgld, variational_sgd

SAMPLERS = {
    "StochasticGradientLangevinDynamics": ("python/optimizer/sgld.py", 32),
    "VariationalSGD": ("python/optimizer/variational_sgd.py", 32),
}
SGLD, VSGD = SAMPLERS
MAKERS = {SGLD: sgld.StochasticGradientLangevinDynamics}
MAKERS |= {VSGD: variational_sgd.VariationalSGD}
EVEN, UNEVEN, VARIANCE = [1.0, 4.0], [0.1, 0.46, 2.15, 10.0], 4.0
v1, NORMAL = tf.compat.v1, tf.random.normal


class Chain:
    """An optimiser on ½Σaᵢθᵢ² + ζ·θ: ζ, and SGLD's normal numbers, are fed or drawn."""

    def __init__(self, name, curvature, sd=None, drawn=False, rate=None, **given):
        self.graph, dim = tf.Graph(), len(curvature)
        with self.graph.as_default():
            v1.set_random_seed(0)
            a = tf.constant(curvature, tf.float32)
            self.theta = tf.Variable(tf.zeros(dim))
            self.zeta = v1.placeholder_with_default(tf.zeros(dim), [dim])
            self.xi = v1.placeholder_with_default(tf.zeros(dim), [dim])
            noise = NORMAL([dim], stddev=sd) if sd else self.zeta
            loss = lambda: tf.reduce_sum(a * self.theta**2 / 2 + noise * self.theta)
            count = tf.Variable(0, dtype=tf.int64)
            if rate:
                given["learning_rate"] = rate(count)
            optimizer = MAKERS[name](**given)
            optimizer.iterations = count
            fed = lambda shape, mean, stddev, dtype: mean + stddev * self.xi
            sgld.tf.random.normal = NORMAL if drawn else fed
            try:
                self.move = optimizer.minimize(loss, var_list=[self.theta])
            finally:
                sgld.tf.random.normal = NORMAL
            slots = optimizer.get_slot_names()
            self.slots = {each: optimizer.get_slot(self.theta, each) for each in slots}
            self.count = count
            kept = {"theta": self.theta, "optimizer": optimizer, "count": count}
            self.saver = v1.train.Checkpoint(**kept)
            self.session = v1.Session()
            self.session.run(v1.global_variables_initializer())

    def set(self, variable, value):
        with self.graph.as_default():
            variable.load(
                np.asarray(value, variable.dtype.as_numpy_dtype), self.session
            )

    def step(self, xi=None, zeta=None):
        fed = {self.xi: xi, self.zeta: zeta}
        fed = {key: value for key, value in fed.items() if value is not None}
        self.session.run(self.move, fed)

    def read(self, variable=None):
        return self.session.run(self.theta if variable is None else variable)


def row(name, test, given, curvature=EVEN, variance=0.0):
    problem = {"curvature": curvature, "gradient_variance": variance}
    problem["temperature"] = 1.0
    return {"sampler": name, "test": test, "given": given, "problem": problem}


def probe(test, curvature=EVEN, variance=0.0, rms=None, data_size=1, **given):
    """Read F and Q off a step after the burn-in, with the preconditioner frozen."""
    dim, given = len(curvature), {"learning_rate": 0.02} | given
    given |= {"preconditioner_decay_rate": 1.0, "data_size": data_size}
    mean = np.array(curvature) / data_size
    chain = Chain(SGLD, mean, **given)
    if rms is not None:
        chain.set(chain.slots["rms"], rms)
        given["rms"] = rms
    chain.set(chain.count, 26)
    zero, columns = np.zeros(dim), []
    for which in range(3 if variance else 2):
        for each in np.eye(dim):
            chain.set(chain.theta, each if which == 0 else zero)
            xi, zeta = (each if which == k else zero for k in (1, 2))
            chain.step(xi, variance**0.5 * zeta / data_size)
            columns.append(chain.read())
    columns = np.stack(columns, 1)
    noise = columns[:, dim:]
    found = {"transition": columns[:, :dim].tolist()}
    found["noise"] = (noise @ noise.T).tolist()
    return row(SGLD, test, given, curvature, variance) | {"probe": found}


def observe(sampler, test, given, **found):
    return {"sampler": sampler, "test": test, "given": given, "observed": found}


def door(name, steps=1_000, **given):
    """Its defaults, with noisy gradients."""
    chain = Chain(name, [1.0, 1.0, 1.0], 1.0, True, **given)
    for _ in range(steps):
        chain.step()
    end = chain.read()
    found = {"finite": bool(np.isfinite(end).all()), "moved": float(np.abs(end).min())}
    return observe(name, "front door", given, **found)


def resumed(name, **given):
    """Save and restore all variables of the graph, and take the same step again."""
    chain, ends = Chain(name, EVEN, **given), []
    for _ in range(30):
        chain.step(np.ones(2), np.ones(2))
    with tempfile.TemporaryDirectory() as folder:
        with chain.graph.as_default():
            path = chain.saver.save(f"{folder}/kept", session=chain.session)
        chain.step(np.ones(2), np.ones(2))
        ends.append(chain.read())
        fresh = Chain(name, EVEN, **given)
        with fresh.graph.as_default():
            fresh.saver.restore(path).run_restore_ops(fresh.session)
        fresh.step(np.ones(2), np.ones(2))
        ends.append(fresh.read())
    difference = float(np.abs(ends[0] - ends[1]).max())
    return observe(name, "resume", given, difference=difference)


def two(name, **given):
    """A chain alone, and beside another one in the process."""
    ends = []
    for others in (0, 1):
        first = [Chain(name, EVEN, **given) for _ in range(others)]
        chain = Chain(name, EVEN, **given)
        for _ in range(30):
            for each in [*first, chain]:
                each.step(np.ones(2), np.ones(2))
        ends.append(chain.read())
    difference = float(np.abs(ends[0] - ends[1]).max())
    return observe(name, "two states", given, difference=difference)


def scheduled(end):
    """A polynomial decay over five steps, as in the docstring; two steps after it."""
    rate = lambda count: v1.train.polynomial_decay(0.1, count, 5, end, power=1.0)
    given = {"preconditioner_decay_rate": 1.0, "diagonal_bias": 0.0, "burnin": 0}
    chain, sizes = Chain(SGLD, [0.0], rate=rate, **given), []
    for _ in range(7):
        before = chain.read()
        chain.step(zeta=np.ones(1))
        sizes.append(float(before[0] - chain.read()[0]))
    given |= {"learning_rate": "polynomial_decay", "end_learning_rate": end}
    finite = bool(np.isfinite(sizes).all())
    sizes = [each if np.isfinite(each) else -1.0 for each in sizes]
    return observe(SGLD, "schedule", given, finite=finite, sizes=sizes)


def burnin(length=25):
    """Count the steps before the first one that depends on the random numbers."""
    chain, without = Chain(SGLD, [1.0], learning_rate=0.1, burnin=length), 0
    while without < 100:
        chain.set(chain.theta, np.zeros(1))
        chain.step(np.ones(1))
        if chain.read()[0] != 0:
            break
        without += 1
    return observe(SGLD, "arguments", {"burnin": length}, without_noise=without)


def adapted(theta=2.0, a=3.0, rms=0.5, **given):
    """A step without noise and with a moving preconditioner, from a given state."""
    given |= {"learning_rate": 0.02, "preconditioner_decay_rate": 0.9}
    chain = Chain(SGLD, [a], **given)
    chain.set(chain.slots["rms"], [rms])
    chain.set(chain.theta, [theta])
    chain.step()
    given |= {"theta": theta, "curvature": a, "rms": rms}
    found = {"change": float(chain.read()[0] - theta)}
    return observe(SGLD, "arguments", given, **found)


def variational(test, curvature, copies=4_000, steps=400, variance=400.0, **extra):
    """Moments of VariationalSGD on the mean loss U / N; a batch's gradient has V / N²."""
    given = {"batch_size": 4, "total_num_examples": 100} | extra
    given |= {"preconditioner_decay_rate": 0.95, "burnin": 100}
    settings, count = dict(given), given["total_num_examples"]
    factor = settings.pop("summed", 1)
    a, sd = factor * np.array(curvature) / count, factor * variance**0.5 / count
    chain = Chain(VSGD, np.repeat(a, copies), sd, **settings)
    for _ in range(given["burnin"] + steps):
        chain.step()
    square = chain.read().reshape(len(curvature), copies) ** 2
    error = square.std(1) / copies**0.5
    found = {"steps": steps, "start": 0.0, "second": square.mean(1).tolist()}
    found |= {"standard_error": error.tolist(), "chains": copies}
    kept = chain.read(chain.slots["second_moment"])
    found |= {"mean_of_second_moment": float(kept.mean()), "variance": float(sd**2)}
    return row(VSGD, test, given, curvature, variance) | {"moments": found}


def all_cells():
    yield probe("exact gradient")
    yield probe("gradient noise", variance=VARIANCE)
    yield probe("uneven curvature", UNEVEN)
    yield probe("mean or sum", data_size=50)
    yield probe("mean or sum", variance=VARIANCE, data_size=50)
    yield probe("mass", rms=[4.0, 0.25])
    yield probe("arguments", diagonal_bias=1.0)
    yield adapted()
    yield burnin()
    for end in (0.01, 0.0):
        yield scheduled(end)
    yield door(SGLD, learning_rate=0.01)
    yield two(SGLD, learning_rate=0.01)
    yield resumed(SGLD, learning_rate=0.01)

    yield variational("gradient noise", EVEN)
    yield variational("uneven curvature", UNEVEN)
    yield variational("mean or sum", EVEN, summed=4, batch_size=1)
    given = {"use_single_learning_rate": True, "max_learning_rate": 100.0}
    yield variational("arguments", EVEN, **given)
    required = {"batch_size": 4, "total_num_examples": 100}
    yield door(VSGD, **required)
    yield two(VSGD, **required)
    yield resumed(VSGD, **required)


if __name__ == "__main__":
    held = "it takes one step a call: its caller chooses the batch"
    reasons = [{"sampler": name, "test": "held minibatch"} for name in SAMPLERS]
    reasons = [each | {"reason": held} for each in reasons]
    alone = "its only noise is that of the gradient: with exact ones it descends"
    reasons.append({"sampler": VSGD, "test": "exact gradient", "reason": alone})
    found = {
        "library": "tensorflow-probability",
        "version": importlib.metadata.version("tensorflow-probability"),
        "samplers": [
            {"name": name, "file": file, "line": line}
            for name, (file, line) in SAMPLERS.items()
        ],
        "cells": list(all_cells()),
        "reasons": reasons,
    }
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
