"""Four Pyro programs by five samplers: Pyro's own NUTS, and NUTS, HMC, SGHMC and SGLD
of this package.

Eight schools (Rubin, 1981) with centred and with non-centred effects, a regression of
groups, and a network on small images of digits. The last two have a plate with
``subsample_size``, of which SGHMC and SGLD see minibatches, and the others all the
data. Quantities are compared by their posterior means and standard deviations, with the
Monte Carlo error of both sides; those of the network are the probabilities of some test
digits' classes, for weights have no one meaning. A run of all of them is written to
``book/results/pyro_models.json``."""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import arviz
import pyro
import pyro.distributions as dist
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from booklib.data import digits
from booklib.runs.results import RESULTS, circumstances, peak_memory, write_result
from sgmc import sample
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD
from sgmc.models.pyro_model import PyroPosterior
from sgmc.noise import estimate_noise_variance
from sgmc.tuning import adapt

DOUBLE = torch.float64
EFFECT = torch.tensor([28, 8, -3, 7, -1, 1, 18, 12], dtype=DOUBLE)
ERROR = torch.tensor([15, 10, 16, 11, 9, 11, 10, 18], dtype=DOUBLE)


def centred(n: int | None = None) -> None:
    """Let each school's effect be a site."""
    mean, spread = (
        pyro.sample("mean", dist.Normal(0.0, 5.0)),
        pyro.sample("spread", dist.HalfCauchy(5.0)),
    )
    with pyro.plate("schools", 8):
        effect = pyro.sample("effect", dist.Normal(mean, spread))
        pyro.sample("seen", dist.Normal(effect, ERROR), obs=EFFECT)


def non_centred(n: int | None = None) -> None:
    """Let each school's deviation be a site, in units of the spread."""
    mean, spread = (
        pyro.sample("mean", dist.Normal(0.0, 5.0)),
        pyro.sample("spread", dist.HalfCauchy(5.0)),
    )
    with pyro.plate("schools", 8):
        deviation = pyro.sample("deviation", dist.Normal(0.0, 1.0))
    effect = pyro.deterministic("effect", mean + spread * deviation)
    with pyro.plate("seen schools", 8):
        pyro.sample("seen", dist.Normal(effect, ERROR), obs=EFFECT)


def make_groups() -> tuple[Tensor, Tensor, Tensor]:
    """Make up 400 observations of eight groups with intercepts of their own."""
    generator = torch.Generator().manual_seed(0)
    inputs, group = (
        torch.randn(400, generator=generator, dtype=DOUBLE),
        torch.arange(400) % 8,
    )
    intercept = 1 + 0.7 * torch.randn(8, generator=generator, dtype=DOUBLE)
    return (
        inputs,
        group,
        intercept[group]
        + 0.5 * inputs
        + torch.randn(400, generator=generator, dtype=DOUBLE),
    )


GROUPS = make_groups()


def groups(n: int | None = None) -> None:
    """Let lines of groups have one slope, and intercepts that come from one law."""
    inputs, group, targets = GROUPS
    slope = pyro.sample("slope", dist.Normal(0.0, 1.0))
    noise = pyro.sample("noise", dist.HalfNormal(1.0))
    mean = pyro.sample("mean", dist.Normal(0.0, 5.0))
    spread = pyro.sample("spread", dist.HalfNormal(1.0))
    with pyro.plate("groups", 8):
        intercept = pyro.sample("intercept", dist.Normal(mean, spread))
    with pyro.plate("data", len(targets), subsample_size=n) as i:
        line = intercept[group[i]] + slope * inputs[i]
        pyro.sample("target", dist.Normal(line, noise), obs=targets[i])


def small_digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Shrink digits 0, 1 and 2 to 4×4 pixels: 300 for training, and 30 for testing."""

    def shrink(data, number: int) -> tuple[Tensor, Tensor]:
        chosen = torch.cat(
            [(data.targets == label).nonzero()[:number, 0] for label in range(3)]
        )
        return avg_pool2d(data.inputs[chosen].view(-1, 1, 28, 28), 7).flatten(
            1
        ).double(), data.targets[chosen]

    train, test = digits()
    return *shrink(train, 100), *shrink(test, 10)


DIGITS = small_digits()


def network(n: int | None = None) -> None:
    """Let 16 pixels go through three hidden units to three classes, with N(0, 1) on all
    weights.
    """
    shapes = {
        "first": (16, 3),
        "first_bias": (3,),
        "second": (3, 3),
        "second_bias": (3,),
    }
    weights = {
        name: pyro.sample(
            name, dist.Normal(0.0, 1.0).expand(shape).to_event(len(shape))
        )
        for name, shape in shapes.items()
    }
    inputs, classes, test, _ = DIGITS
    pyro.deterministic("probabilities", network_of(weights, test).softmax(-1))
    with pyro.plate("data", len(classes), subsample_size=n) as i:
        pyro.sample(
            "class",
            dist.Categorical(logits=network_of(weights, inputs[i])),
            obs=classes[i],
        )


def network_of(weights: dict[str, Tensor], inputs: Tensor) -> Tensor:
    """Compute the logits ``(n, 3)``."""
    return (inputs @ weights["first"] + weights["first_bias"]).tanh() @ weights[
        "second"
    ] + weights["second_bias"]


@dataclass(frozen=True)
class Program:
    """A program, how many examples a minibatch has, and which quantities of the sites
    are compared: ``(chains, k)``.

    The costly one takes a ``share`` of the steps and the draws.
    """

    program: Callable
    batch_size: int | None
    quantities: Callable[[dict[str, Tensor]], Tensor]
    share: float = 1.0


def schools(named: dict[str, Tensor]) -> Tensor:
    """Take the effects, their mean and the logarithm of their spread."""
    return torch.cat(
        [named["effect"], named["mean"][:, None], named["spread"].log()[:, None]], -1
    )


def coefficients(named: dict[str, Tensor]) -> Tensor:
    """Take the intercepts and the numbers."""
    numbers = [named[name][:, None] for name in ("slope", "noise", "mean", "spread")]
    return torch.cat([named["intercept"], *numbers], -1)


def probabilities(named: dict[str, Tensor]) -> Tensor:
    """Take the probabilities of the test digits' classes."""
    return named["probabilities"].flatten(1, -2)[:, torch.arange(30), DIGITS[3]]


PROGRAMS = {
    "eight schools, centred": Program(centred, None, schools),
    "eight schools, non-centred": Program(non_centred, None, schools),
    "groups": Program(groups, 100, coefficients),
    "network": Program(network, 100, probabilities, share=0.4),
}


def describe(samples: Tensor) -> dict[str, list[float]]:
    """Compute means, standard deviations, and their Monte Carlo errors, and R̂, of
    draws ``(num_samples, chains, k)``.
    """
    data = arviz.from_dict(posterior={"x": samples.transpose(0, 1).numpy()})
    pooled = samples.flatten(0, 1)
    found = {"mean": pooled.mean(0), "sd": pooled.std(0)}
    found |= {
        f"{what}_error": torch.as_tensor(arviz.mcse(data, method=what)["x"].values)
        for what in ("mean", "sd")
    }
    found["r_hat"] = torch.as_tensor(arviz.rhat(data)["x"].values)
    return {
        name: [float(f"{value:.6g}") for value in values.tolist()]
        for name, values in found.items()
    }


def by_pyro(
    program: Program, posterior: PyroPosterior, arguments: argparse.Namespace
) -> dict:
    """Draw by Pyro's own NUTS, chain after chain."""
    chains, divergences, seconds = [], 0, time.perf_counter()
    for chain in range(arguments.pyro_chains):
        pyro.set_rng_seed(arguments.seed + chain)
        kernel = pyro.infer.NUTS(program.program, target_accept_prob=0.9)
        run = pyro.infer.MCMC(
            kernel,
            num_samples=int(program.share * arguments.draws),
            warmup_steps=int(program.share * arguments.warm_up),
            disable_progbar=True,
        )
        run.run(None)
        sites = {
            name: value
            for name, value in run.get_samples().items()
            if name in posterior.shapes
        }
        chains.append(program.quantities(posterior.named(posterior.position(sites))))
        divergences += len(run.diagnostics()["divergences"]["chain 0"])
    return describe(torch.stack(chains, 1)) | {
        "divergences": divergences,
        "seconds": round(time.perf_counter() - seconds, 1),
    }


# of SGHMC at most, in units of the scales that the warm-up found; SGLD has η = ½ε²
# times 8
STEP = 0.05


def by_sgmc(
    program: Program, posterior: PyroPosterior, arguments: argparse.Namespace
) -> dict[str, dict]:
    """Draw by the four samplers; the last two start where the warm-up of NUTS ended,
    with its mass.
    """
    generator = torch.Generator().manual_seed(arguments.seed)
    start = posterior.initial_position(arguments.chains, generator, 1.0)
    settings = {"seed": arguments.seed, "progress": False}
    found = {}

    def draw(name: str, kernel, potential, position, seconds: float, **more) -> None:
        seconds = time.perf_counter() - seconds
        begun = time.perf_counter()
        collect = lambda position: program.quantities(posterior.named(position))
        draws = sample(
            kernel,
            potential,
            position,
            int(program.share * arguments.draws),
            collect=collect,
            **settings,
            **more,
        )
        found[name] = describe(draws.samples) | {
            "divergences": int(draws.statistics.get("diverged", torch.zeros(1)).sum()),
            "step_size": float(f"{kernel.step_size:.4g}"),
            "seconds": round(seconds + time.perf_counter() - begun, 1),
        }

    for name, kernel in (
        ("HMC", HMC(1.0, num_steps=15, jitter=0.4)),
        ("NUTS", NUTS(1.0)),
    ):
        begun = time.perf_counter()
        tuned, position = adapt(
            kernel,
            posterior,
            start,
            int(program.share * arguments.warm_up),
            target_acceptance=0.9,
            **settings,
        )
        draw(name, tuned, posterior, position, begun)
    sees = (
        posterior
        if program.batch_size is None
        else PyroPosterior(program.program, program.batch_size)
    )
    step, variance = STEP, 0.0
    if program.batch_size is not None:
        variance = estimate_noise_variance(
            sees,
            position,
            torch.Generator().manual_seed(arguments.seed),
            "diagonal",
            num_batches=10,
        )
        # minibatches bring at most half of the noise that friction needs
        step = min(STEP, float((tuned.mass / variance).min()))
    num_steps = round(1 / step)
    sghmc = SGHMC(
        step, tuned.mass, 0.5 * step * variance, tuned.mass, num_steps=num_steps
    )
    draw("SGHMC", sghmc, sees, position, time.perf_counter(), warm_up=20)
    eta = 4 * step**2
    sgld = SGLD(eta, noise_estimate=0.5 * eta * variance, mass=tuned.mass)
    draw(
        "SGLD",
        sgld,
        sees,
        position,
        time.perf_counter(),
        warm_up=20 * num_steps,
        thinning=num_steps,
    )
    return found


def largest_z(one: dict, other: dict) -> tuple[float, float]:
    """Compare two samplers: the largest |z| of the means and of the standard
    deviations.
    """
    result = []
    for what in ("mean", "sd"):
        values = [
            torch.tensor(found[key], dtype=DOUBLE)
            for found in (one, other)
            for key in (what, f"{what}_error")
        ]
        result.append(
            float(
                (
                    (values[0] - values[2])
                    / (values[1].square() + values[3].square()).sqrt()
                )
                .abs()
                .max()
            )
        )
    return tuple(result)


def main() -> None:
    """Run, print the table, and store the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PROGRAMS,
        metavar="NAME",
        help=f"some of {', '.join(PROGRAMS)}",
    )
    for option, default in (
        ("--chains", 10),
        ("--pyro-chains", 2),
        ("--warm-up", 250),
        ("--draws", 400),
        ("--seed", 0),
    ):
        parser.add_argument(option, type=int, default=default)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_default_dtype(DOUBLE)
    warnings.simplefilter("ignore")  # divergences stand in the table
    results = {}
    for name in arguments.only or PROGRAMS:
        program, posterior = PROGRAMS[name], PyroPosterior(PROGRAMS[name].program, None)
        found = {"Pyro's NUTS": by_pyro(program, posterior, arguments)} | by_sgmc(
            program, posterior, arguments
        )
        results[name] = {
            "dim": posterior.dim,
            "batch_size": program.batch_size,
            "samplers": found,
        }
        for sampler, result in found.items():
            means, sds = largest_z(result, found["Pyro's NUTS"])
            rest = (
                f"R-hat {max(result['r_hat']):.3f}  {result['divergences']:4} "
                f"{result['seconds']:7.1f} s"
            )
            print(
                f"{name:28} {sampler:12} |z| {means:6.2f} {sds:6.2f}  {rest}",
                flush=True,
            )
    if not arguments.only:
        options = {
            name: value for name, value in vars(arguments).items() if name != "only"
        }
        command = "python -m benchmarks.pyro_models " + " ".join(
            f"--{name.replace('_', '-')} {value}" for name, value in options.items()
        )
        provenance = {
            "command": command,
            **circumstances("cpu"),
            "peak_memory_megabytes": peak_memory("cpu"),
        }
        write_result(
            RESULTS / "pyro_models.json",
            {"provenance": provenance, "settings": options, "programs": results},
        )


if __name__ == "__main__":
    main()
