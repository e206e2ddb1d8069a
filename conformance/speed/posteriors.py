"""posteriors: its updates in a loop of Python, as its pages write them."""

import warnings

warnings.simplefilter("ignore")
import posteriors  # noqa: E402
import torch  # noqa: E402

from conformance.speed import in_torch, shared  # noqa: E402


def turn(density, start, batch, steps, job):
    """Make a turn: a loop of updates, of which each draw is kept."""
    kind, inner, numbers = "sgld", 1, {"lr": shared.SGLD_STEP}
    if job:
        kind, inner, numbers = "sghmc", shared.INNER, {"lr": job[0], "alpha": job[1]}
        numbers["beta"] = 2 * job[2] / job[0]
    transform = getattr(posteriors.sgmcmc, kind).build(density, **numbers)

    def run():
        state, kept = transform.init(start), []
        for step in range(steps):
            state, _ = transform.update(state, batch())
            if step % inner == inner - 1:
                kept.append(state.params)
        return steps

    return run


if __name__ == "__main__":
    torch.set_num_threads(1)
    rows = {}
    for row, (density, start, batch, steps, job) in in_torch.jobs().items():
        steps = steps if density is in_torch.network else steps // 5
        run = turn(density, start, batch, steps, job)
        rows["posteriors", row] = ("explicit Euler" if job else "SGLD"), run
    rows["posteriors", shared.OWN] = rows["posteriors", shared.SGHMC]
    shared.serve(rows, "posteriors", "torch", missing="it ships no NUTS")
