"""What an estimate of the gradient noise does for SGHMC on MNIST, and what it costs: B̂ = 0 against an online estimate of its diagonal.

Network, data, priors and settings are those of the experiment mnist, with minibatches drawn afresh, which is where the theory holds. The
runs with B̂ = 0 are the very runs of that experiment, and are made there if they are not there yet. Where ½εV̂ exceeds the friction no
noise is injected; the share of coordinates in which that happened is part of the result.
"""

from collections.abc import Iterator
from dataclasses import replace

from sgmc.experiments import mnist
from sgmc.experiments.comparison import Prepared, checkpoint, one_run, summary
from sgmc.experiments.mnist import prepare
from sgmc.experiments.runner import Options, Plan, checksum, read_checkpoint
from sgmc.posteriors import NetworkPosterior

__all__ = ["methods", "prepare", "run", "summary"]


def methods(prepared: Prepared, small: bool) -> list[Plan]:
    """List the plans: B̂ = 0, and an estimate from the minibatch of every step."""
    plan = mnist.settings(prepared, small)["SGHMC, fresh minibatches"][0]
    return [plan, replace(plan, method="SGHMC, online noise estimate", noise_refresh=1)]


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run all plans, one seed after the other, and yield the result after each run."""
    # A run that the experiment mnist has finished is read, whether or not this experiment goes on from somewhere.
    options = options._replace(resume=True)
    posterior = NetworkPosterior(prepared.network(), *prepared.test)
    result = {"data_checksum": checksum(*prepared[:3]), "methods": {}}
    for seed in range(options.seeds):
        for plan in methods(prepared, options.small):
            run = one_run(replace(plan, seed=seed), prepared, options)
            _, momentum, evaluations, *online = read_checkpoint(checkpoint(prepared.folder, plan.method, seed))["state"]
            pieces = posterior.parameters_of(momentum)
            run["temperature"] = {name: round(float(piece.square().mean()), 5) for name, piece in pieces.items()}
            if online:
                run["clipped"] = round(float(online[1]) / evaluations, 6)
            result["methods"].setdefault(plan.method, {"tuning": [], "runs": []})["runs"].append(run)
            yield result
