"""Letters that are answered where 80 % of the digits are: networks of the tutorial.

The networks of its pages 1 and 10, from several starts: trained ones, averaged, and the
average of sampled ones, for as many gradients as four trainings take and, on page 10,
for five times as many. Each classifier answers what it is surer of than a threshold of
its own, at which it answers 80 % of the test digits: the fewer letters, the better. For
page 10 also where 70 and 90 % are answered, and R̂ of the test log loss over the
networks that are averaged. The small version takes a twentieth of the steps.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn import functional

from booklib.data import digits, letters
from booklib.models.networks import multilayer_perceptron
from booklib.runs.results import checksum, circumstances, score
from booklib.scores.prediction import answered, log_score
from experiments.study import Experiment, Options, Prepared, once
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.noise import OnlineNoise
from sgmc.posteriors import NetworkPosterior
from sgmc.predictions import function_space_rhat


class Page(NamedTuple):
    """The networks of a page."""

    units: list[int]  #: of the layers
    prior_variance: float
    batch_size: int
    rate: float
    decay: float  #: of the sampler's momentum; the optimiser's is 0.1
    noise_estimate: float | OnlineNoise
    training: int  #: steps of a training
    chains: int  #: of the sampler
    steps: int  #: of a chain
    looks: int  #: networks kept of a chain, from its end
    thinning: int  #: steps from one to the next


PAGES = {
    "page 1": Page([784, 50, 10], 0.1, 200, 1e-5, 0.01, 0.0, 2_000, 1, 5_000, 150, 20),
    "page 10": Page(
        [196, 50, 10], 1.0, 250, 1.6e-4, 0.04, OnlineNoise(), 480, 4, 480, 50, 4
    ),
}
LONGER = 5  # times as many steps
OTHER_SHARES = (0.7, 0.9)  # of the digits


def prepare(options: Options) -> Prepared:
    """Load the digits and letters that are always there."""
    train, test = digits()
    folder = options.folder("coverage")
    return Prepared(train, test, folder=folder, others={"letters": letters()})


def seen(inputs: Tensor, page: Page) -> Tensor:
    """Average 28 × 28 pixels to the 14 × 14 that page 10 has."""
    if page.units[0] == 784:
        return inputs
    return functional.avg_pool2d(inputs.view(-1, 1, 28, 28), 2).flatten(1)


def one_seed(name: str, seed: int, prepared: Prepared, small: bool) -> dict[str, dict]:
    """Train and sample the networks of a page, and score their averages by method."""
    page, test = PAGES[name], prepared.test
    posterior = NetworkPosterior(
        multilayer_perceptron(page.units),
        seen(prepared.train.inputs, page),
        prepared.train.targets,
        prior_variance=page.prior_variance,
        batch_size=page.batch_size,
    )
    shown = [seen(x, page) for x in (test.inputs, prepared.others["letters"].inputs)]
    several = 4 * LONGER if name == "page 10" else 4
    shares = OTHER_SHARES if name == "page 10" else ()
    start = posterior.initial_position(several, Generator().manual_seed(seed))
    size = 20 if small else 1

    def scores(positions: Tensor) -> dict[str, float]:
        inside, outside = (posterior.predict(positions, x).mean(0) for x in shown)
        found = score(inside, test.targets)
        found["letters"] = round(answered(inside, outside), 6)
        for share in shares:
            passed = answered(inside, outside, share)
            found[f"letters_{round(100 * share)}"] = round(passed, 6)
        return found

    optimiser = SGHMC.from_learning_rate(page.rate, 0.1, temperature=0.0)
    given = {"seed": seed + 1, "progress": False}
    steps = page.training // size
    trained = sample(optimiser, posterior, start, 1, warm_up=steps, **given).samples[-1]
    alone = [scores(each[None]) for each in trained]
    average = {
        key: round(sum(row[key] for row in alone) / several, 6) for key in alone[0]
    }
    found = {"one trained": {"average": average, "steps": steps}}
    for number in sorted({4, several}):
        average, spent = scores(trained[:number]), number * steps
        found[f"{number} trained"] = {"average": average, "steps": spent}
    kernel = SGHMC.from_learning_rate(
        page.rate, page.decay, noise_estimate=page.noise_estimate
    )
    kept = page.looks * page.thinning // size
    for times in sorted({1, several // 4}):
        steps = times * page.steps // size
        draws = sample(
            kernel,
            posterior,
            start[: page.chains],
            kept // page.thinning,
            warm_up=steps - kept,
            thinning=page.thinning,
            **given,
        )
        method = "sampled" if times == 1 else f"sampled, {times} times as long"
        average, spent = scores(draws.samples.flatten(0, 1)), page.chains * steps
        found[method] = {"average": average, "steps": spent}
        if page.chains > 1 and not small:
            predicted = posterior.predict(draws.samples.flatten(0, 1), shown[0])
            losses = torch.tensor([log_score(p, test.targets) for p in predicted])
            losses = losses.view(-1, page.chains, 1)
            found[method]["r_hat"] = round(float(function_space_rhat(losses)), 4)
    made = {"seed": seed, "made": circumstances()}
    return {method: {**made, **row} for method, row in found.items()}


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run the seeds one after the other, and list the runs by method."""
    data = checksum(prepared.train, prepared.test, *prepared.others.values())
    methods: dict[str, dict] = {}
    for seed in range(options.seeds):
        for name in PAGES:
            path = prepared.folder / f"{name.replace(' ', '-')}-{seed}.json"
            make = partial(one_seed, name, seed, prepared, options.small)
            depends = {"page": repr(PAGES[name]), "data": data}
            for method, row in once(path, depends, make).items():
                runs = methods.setdefault(f"{name}, {method}", {"runs": []})["runs"]
                runs.append(row)
        yield {"data_checksum": data, "methods": methods}


EXPERIMENT = Experiment(prepare, run)
