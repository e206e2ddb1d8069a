"""By hand in PyTorch: SGHMC and SGLD as bare loops, and the bare gradient."""

import torch

from conformance.speed import in_torch, shared


def well(theta, _):
    """Give the gradient of the well; its noise is drawn with the injected one."""
    return torch.mul(theta, theta).sub_(1).mul_(theta).mul_(4)


def logistic(theta, batch):
    """Give the gradient of the regression, of a part of the data or of all."""
    residual = torch.sigmoid(batch[0] @ theta).sub_(batch[1])
    scale = shared.EXAMPLES / len(residual)
    return torch.add(theta, residual @ batch[0], alpha=scale)


def network(theta, batch):
    """Give the gradient of the network's energy in each chain, by autograd."""
    theta = theta.detach().requires_grad_()
    return torch.autograd.grad(in_torch.network(theta, batch)[0], theta)[0].neg_()


def sample(gradient, start, batch, steps, job, noises=1):
    """Make a turn of SGHMC, all noise of a step drawn as one, or as two where the
    gradient has its own; or of SGLD.
    """
    step, friction, estimate = job or (shared.SGLD_STEP, 0, 0)
    own = 4 * step**2 if gradient is well and noises == 1 else 0.0
    std = (2 * step * (friction - estimate if job else 1) + own) ** 0.5
    inner = shared.INNER if job else 1
    batch = (lambda: None) if gradient is well else batch

    def run():
        theta, momentum, kept = start.clone(), torch.randn_like(start), []
        noise = torch.empty_like(start)
        for number in range(steps):
            if job:
                theta.add_(momentum, alpha=step)
                momentum.mul_(1 - step * friction)
            else:
                momentum = theta
            momentum.sub_(gradient(theta, batch()), alpha=step)
            if noises == 2:
                momentum.sub_(noise.normal_(), alpha=2 * step)
            momentum.add_(noise.normal_(), alpha=std)
            if number % inner == inner - 1:
                kept.append(theta.clone())
        return steps

    return run


def floor(gradient, start, batch, steps, _=None):
    """Make a turn of gradients of one minibatch, and nothing else."""
    held = batch()

    def run():
        for _ in range(steps):
            gradient(start, held)
        return steps

    return run


if __name__ == "__main__":
    torch.set_num_threads(1)
    by_hand, bare, rows = "PyTorch by hand", "PyTorch, bare gradient", {}
    for row, (density, *given) in in_torch.jobs().items():
        gradient = globals()[density.__name__]
        law = "Algorithm 2" if given[-1] else "SGLD"
        rows[by_hand, row] = law, sample(gradient, *given)
        rows[bare, row] = "a gradient", floor(gradient, *given)
        if row in shared.WELLS:
            both = "PyTorch by hand, two noises"
            rows[both, row] = "Algorithm 2", sample(gradient, *given, noises=2)
    *data, truth = map(torch.from_numpy, shared.regression())
    run = floor(logistic, truth, lambda: data, 2_000)
    rows[bare, shared.NUTS] = "a gradient of all data", run
    missing = "gradients by formula; NUTS is not written by hand"
    shared.serve(rows, "torch", missing=missing)
