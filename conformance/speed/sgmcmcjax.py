"""SGMCMCJax: its compiled samplers."""

from sgmcmcjax.samplers import build_sghmc_sampler, build_sgld_sampler

from conformance.speed import in_jax, shared


def sampler(model, steps, job):
    """Its SGHMC, in the learning-rate form and without a noise estimate; or SGLD."""
    each = lambda theta, *datum: model.likelihood(theta, datum)
    given = each, model.prior, model.data, model.batch
    if not job:
        made = build_sgld_sampler(shared.SGLD_STEP, *given, pbar=False)
        return lambda key, theta: made(key, steps, theta)
    rate, inner = job[0] ** 2, shared.INNER
    made = build_sghmc_sampler(rate, inner, *given, job[0] * job[1], pbar=False)
    return lambda key, theta: made(key, steps // inner, theta)


if __name__ == "__main__":
    law = "explicit Euler, no noise estimate; momentum drawn anew for ten steps"
    rows = in_jax.rows("SGMCMCJax", law, sampler)
    shared.serve(rows, "SGMCMCJax", "jax", "jaxlib", missing="it ships no NUTS")
