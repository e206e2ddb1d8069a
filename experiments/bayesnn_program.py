"""The network program of Chen et al. (2014), ported: it draws the same numbers from
numpy's old generator, in the same order, and rounds in the same places.

The weights start from N(0, 0.01²). The data are shuffled once, before the first round.
From the second round on, the last step of each round draws the precision of every
tensor's prior before it moves the weights, with any method.
"""

import itertools
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from booklib.data import Data

START_STD = np.float64(0.01)
SHADES = 1 / 256  # the program multiplies a byte by it
HYPERPRIOR = 1.0, 1.0  # a precision's Gamma, by shape and rate


@dataclass(frozen=True)
class Method:
    """A method of the program.

    Args:
        momentum_decay: α; SGLD has 1.
        noise: whether each step adds N(0, 2αη), from the second round on.
        nesterov: whether the step looks ahead, as Nesterov's momentum does.
    """

    momentum_decay: float = 0.01
    noise: bool = True
    nesterov: bool = False


class Network:
    """A layer of sigmoid units and one of softmax.

    Args:
        sizes: numbers of inputs, hidden units and classes.
        random: source of the weights.

    Attributes:
        tensors: weights and biases of the first layer and of the second, float32.
    """

    def __init__(self, sizes: tuple[int, int, int], random: np.random.RandomState):
        self.tensors = []
        for shape in itertools.pairwise(sizes):
            weights = np.float32(random.randn(*shape) * START_STD)
            self.tensors += [weights, np.zeros(shape[1], np.float32)]

    def forward(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the hidden units and the class probabilities of ``(n, inputs)``."""
        weights, biases, out_weights, out_biases = self.tensors
        with np.errstate(over="ignore"):  # a unit may saturate
            hidden = 1.0 / (1.0 + np.exp(-(inputs @ weights + biases)))
        logits = hidden @ out_weights + out_biases
        found = np.exp(logits - logits.max(1, keepdims=True))
        return hidden, found / found.sum(1, keepdims=True)

    def gradients(self, inputs: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
        """Compute the gradient of the mean log loss of a minibatch in each tensor."""
        hidden, error = self.forward(inputs)
        error[np.arange(len(labels)), labels] -= 1.0
        share = 1.0 / len(labels)
        back = hidden * (1.0 - hidden) * (error @ self.tensors[2].T)
        return [
            share * (inputs.T @ back),
            back.mean(0),
            share * (hidden.T @ error),
            error.mean(0),
        ]


class Program:
    """A run of the program: a job of :func:`sgmc.door.running.drive`, with one step a
    round.

    Args:
        method: how the weights move.
        train: what they learn from; the first ``held_out`` of them, once shuffled, are
            left out.
        test: what is predicted.
        held_out: number of examples for validation.
        batch_size: examples of a minibatch.
        burn_in: number of rounds before the predictions are averaged.
        rate: η, of the mean over the data.
        hidden: number of hidden units.
        seed: of numpy's generator.

    Attributes:
        done: number of rounds done.
        found: of each round the error and log loss of the average, the error of the
            present network, and the precisions at its end.
    """

    def __init__(
        self,
        method: Method,
        train: Data,
        test: Data,
        held_out: int = 10_000,
        batch_size: int = 500,
        burn_in: int = 50,
        rate: float = 0.1,
        hidden: int = 100,
        seed: int = 0,
    ):
        self.method, self.rate, self.burn_in = method, rate, burn_in
        self.random = np.random.RandomState(seed)
        sizes = train.inputs.shape[1], hidden, int(train.targets.max()) + 1
        self.network = Network(sizes, self.random)
        batches = list(self.shuffled(train, batch_size))
        self.batches = batches[held_out // batch_size :]
        self.test = list(self.shuffled(test, batch_size))
        self.num_train = batch_size * len(self.batches)
        self.momenta = [np.zeros_like(each) for each in self.network.tensors]
        self.precisions = [1.0] * len(self.momenta)
        self.average = [np.float32(0.0)] * len(self.test)
        self.done = 0
        self.found: dict[str, list] = {
            name: [] for name in ("error", "log_loss", "last_error", "precisions")
        }
        self.own = {
            **asdict(method),
            **{"rate": rate, "burn_in": burn_in, "seed": seed, "hidden": hidden},
            **{"batch_size": batch_size, "examples": self.num_train},
        }

    def shuffled(self, data: Data, size: int):
        """Cut data into minibatches, in an order that is shuffled once."""
        order = np.arange(len(data.targets))
        self.random.shuffle(order)
        inputs = (255 * data.inputs).round().numpy() * np.float32(SHADES)
        for chosen in order[: len(order) // size * size].reshape(-1, size):
            yield inputs[chosen], data.targets.numpy()[chosen]

    def advance(self) -> None:
        """Go through the data, and score."""
        begun = self.done > 0
        for number, (inputs, labels) in enumerate(self.batches):
            gradients = self.network.gradients(inputs, labels)
            if begun and number + 1 == len(self.batches):
                self.precisions = list(map(self.draw_precision, self.network.tensors))
            for place, gradient in enumerate(gradients):
                self.move(place, gradient, self.method.noise and begun)
        self.score()
        self.done += 1

    def draw_precision(self, weights: np.ndarray) -> float:
        """Draw the precision of a tensor's prior given its weights."""
        shape, rate = HYPERPRIOR
        squares = float(np.sum(weights * weights))
        return self.random.gamma(shape + 0.5 * weights.size, 1 / (rate + 0.5 * squares))

    def move(self, place: int, gradient: np.ndarray, noisy: bool) -> None:
        """Take a step with one of the tensors."""
        weights, momentum = self.network.tensors[place], self.momenta[place]
        decay, before = self.method.momentum_decay, momentum.copy()
        pull = self.precisions[place] / self.num_train
        momentum *= 1.0 - decay
        momentum += -self.rate * (gradient + pull * weights)
        if noisy:
            std = np.sqrt(2.0 * (self.rate * decay / self.num_train))
            momentum += self.random.randn(weights.size).reshape(weights.shape) * std
        if self.method.nesterov:
            weights += (2.0 - decay) * momentum - (1.0 - decay) * before
        else:
            weights += momentum

    def score(self) -> None:
        """Predict the test data, and put the predictions into the average."""
        share = 1 / max(1, self.done - self.burn_in + 1)
        wrong, last_wrong, loss = 0, 0, 0.0
        for place, (inputs, labels) in enumerate(self.test):
            _, present = self.network.forward(inputs)
            mean = (1 - share) * self.average[place] + share * present
            self.average[place] = mean
            wrong += int((mean.argmax(1) != labels).sum())
            last_wrong += int((present.argmax(1) != labels).sum())
            chosen = mean[np.arange(len(labels)), labels]
            loss -= float(np.log(chosen, dtype=np.float64).sum())
        total = sum(len(labels) for _, labels in self.test)
        self.found["error"].append(wrong / total)
        self.found["log_loss"].append(round(loss / total, 6))
        self.found["last_error"].append(last_wrong / total)
        drawn = [float(f"{value:.6g}") for value in self.precisions]
        self.found["precisions"].append(drawn)

    def check(self) -> None:
        """Raise an error if a weight is not finite."""
        if not all(np.isfinite(each).all() for each in self.network.tensors):
            raise ValueError(
                f"the weights left the finite numbers in round {self.done}"
            )

    def settings(self) -> dict[str, Any]:
        """Return the settings on which the run depends."""
        return self.own

    def state_dict(self) -> dict[str, Any]:
        """Return everything that is needed to go on."""
        kind, keys, *rest = self.random.get_state(legacy=True)
        arrays = {
            name: [torch.from_numpy(np.array(each)) for each in values]
            for name, values in {
                "tensors": self.network.tensors,
                "momenta": self.momenta,
                "average": self.average,
            }.items()
        }
        own = {"done": self.done, "found": self.found, "precisions": self.precisions}
        return {**arrays, **own, "random": [kind, keys.tolist(), *rest]}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go back to a state that :meth:`state_dict` returned."""
        kind, keys, *rest = saved["random"]
        self.random.set_state((kind, np.array(keys, np.uint32), *rest))
        arrays = {
            name: [each.numpy() for each in saved[name]]
            for name in ("tensors", "momenta", "average")
        }
        self.network.tensors = arrays["tensors"]
        self.momenta, self.average = arrays["momenta"], arrays["average"]
        self.done, self.found = saved["done"], saved["found"]
        self.precisions = saved["precisions"]
