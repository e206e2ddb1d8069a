# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Reference posteriors
#
# ```{div} page-head
# Level: second course · Reading: about 20 minutes, without the exercises · Running: about 5 seconds
# ```
#
# ```{index} ! posteriordb, ! change of variables, importance sampling
# ```

# %%
import json

import torch
from scipy import stats
from torch.nn.functional import logsigmoid

from booklib.page.claims import check, near
from booklib.runs.results import RESULTS, read_result

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np

from booklib.page.claims import OPEN, at_least, at_most
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import who_ran
from booklib.scores.seeds import LEVEL, Gap
from sgmc.splittings import sghmc_chain

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# A sampler is usually tested on problems that its author chose. *posteriordb* {cite:p}`magnusson2024` holds models and data that others chose, and for some of them reference draws: ten long chains of Stan {cite:p}`carpenter2017`, thinned to 10,000 draws that are almost independent.
# Does the package agree with Stan?
#
# **Yes: {doc}`NUTS </book/tutorial/no_u_turn>` on eleven posteriors, SGHMC on the two on which it was run. Of {c}`comparisons` differences of means and standard deviations ({c}`of-nuts` of them NUTS's) none is decided, all 95 % intervals lie within {c}`within` % of a posterior standard deviation, and so many comparisons may well bring one as far out as the farthest, {c}`farthest` %.**
# {numref}`fig-reference-z` shows them all in standard errors: they scatter about as they should (root mean square {c}`rms`, where 1 is right; the numbers are correlated). The farthest we check by a third method. Intervals are of single comparisons; *decided* allows for how many there are.

# %% tags=["hide-input"]
titles = {
    "kidiq-kidscore_momiq": "test scores of children",
    "nes1976-nes": "voters of 1976",
    "mesquite-logmesquite_logvas": "mesquite bushes",
    "eight_schools-eight_schools_noncentered": "eight schools",
    "arK-arK": "autoregression",
    "arma-arma11": "moving average",
    "garch-garch11": "changing variance",
    "hmm_example-hmm_example": "hidden Markov chain",
    "low_dim_gauss_mix-low_dim_gauss_mix": "mixture",
    "gp_pois_regr-gp_regr": "Gaussian process",
    "gp_pois_regr-gp_pois_regr": "counts of a process",
}
stored = read_result(RESULTS / "posteriordb.json")
results = stored["posteriors"]
runs = {
    (title, sampler): results[name][sampler]
    for name, title in titles.items()
    for sampler in ("NUTS", "SGHMC")
    if sampler in results[name]
}


count = sum(2 * len(run["names"]) for run in runs.values())


def compared(run, what):
    """Ours minus Stan's, in per cent of the published standard deviation."""
    theirs, found = run["published"], []
    for k, sd in enumerate(theirs["sd"]):
        gap = 100 * (run[what][k] - theirs[what][k]) / sd
        error = 100 * np.hypot(run[f"{what}_error"][k], theirs[f"{what}_error"][k]) / sd
        half = stats.norm.ppf(0.975) * error
        p = 2 * stats.norm.sf(abs(gap) / error)
        decided = bool(p < LEVEL / count)  # Holm's first step
        found.append(Gap(gap, gap - half, gap + half, p, 10, count, decided))
    return found


found = {
    (*key, w): compared(run, w) for key, run in runs.items() for w in ("mean", "sd")
}
every = sorted(
    (one for gaps in found.values() for one in gaps), key=lambda g: g.p_value
)
z = np.concatenate([run["mean_z"] + run["sd_z"] for run in runs.values()])
check("comparisons", count, kind="stored", digits=3)
of_nuts = sum(2 * len(run["names"]) for key, run in runs.items() if "NUTS" in key)
check("of-nuts", of_nuts, kind="stored", digits=3)
check("rms", np.sqrt((z**2).mean()), near(1, 0.24), kind="stored", digits=2)
within = max(max(abs(one.low), abs(one.high)) for one in every)
check("within", within, at_most(9), kind="stored", digits=1)
check("farthest", every[0], OPEN, kind="stored")
check("chance", count * every[0].p_value, at_least(0.05), kind="stored", digits=1)

# %% mystnb={"figure": {"caption": "All comparisons with Stan's draws: $z$ of each mean (dots) and each standard deviation (rings), by NUTS and, on two posteriors, by SGHMC. The grey bands hold 68 % and 95 % of standard normal numbers.", "name": "fig-reference-z"}, "image": {"alt": "Strip plot of z values by posterior; nearly all lie between minus two and two. The four rings of the changing variance all lie left of zero, the farthest at minus 3.5."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.2, 4))
for width in (1, 2):
    axes.axvspan(-width, width, color=TRUTH, alpha=0.15, lw=0)
rows = list(titles.values())
for (title, sampler), run in runs.items():
    place = rows.index(title) + {"NUTS": -0.2, "SGHMC": 0.15}[sampler]
    for key, down, fill in (("mean_z", 0, COLOURS[sampler]), ("sd_z", 0.15, "none")):
        named = title == "eight schools" and key == "mean_z"
        axes.plot(
            run[key],
            [place + down] * len(run[key]),
            "o",
            ms=4,
            mfc=fill,
            color=COLOURS[sampler],
            label=sampler if named else None,
        )
axes.set(xlabel="$z$", yticks=range(len(rows)), yticklabels=rows, xlim=(-4, 4))
axes.invert_yaxis()
axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.14), ncols=2)
plt.show()

# %% [markdown]
# *Before you read on: two samplers differ by 3.5 standard errors in one of many numbers. Which of the two would you suspect, and what would settle it?*
#
# | | the setting |
# | --- | --- |
# | models | eleven of posteriordb, each density written anew from the model's description |
# | NUTS | ten chains from $U(-2, 2)$ in every coordinate, as Stan's {cite:p}`stanmanual`; 500 steps of {term}`warm-up` towards the {term}`acceptance` 0.9; 1,000 draws a chain |
# | SGHMC | on two posteriors, from where NUTS's warm-up ended and with its mass $M$: $\varepsilon = 0.05$, $C = M$, 20 steps a draw; the mixture in minibatches of 200 of 1,000 |
# | tuned | nothing after the first comparison; one seed |
# | run | `python -m benchmarks.posteriordb`, twenty minutes on one core |
#
# For our mean $\hat\mu$ with its {term}`Monte Carlo error` $e$ and the published $\mu^*$ with $e^*$,
#
# $$
# z = \frac{\hat\mu - \mu^*}{\sqrt{e^2 + e^{*2}}}
# $$ (eq-reference-z)
#
# is close to standard normal if both samplers are right. Standard deviations are compared in the same way. The {doc}`rule </book/studies/mnist>` decides among all numbers at once.
#
# ## Eleven posteriors
#
# The table has the farthest mean and standard deviation of each posterior.

# %% tags=["hide-input"]


def farthest(gaps):
    return min(gaps, key=lambda one: one.p_value).starred()


show_table(
    [
        "ours − Stan's, % of the sd [95 %]",
        "|z|",
        "mean",
        "sd",
        "R̂",
        "gradients",
    ],
    [
        [
            title if sampler == "NUTS" else f"{title}, by SGHMC",
            f"{max(map(abs, run['mean_z'] + run['sd_z'])):.1f}",
            *(farthest(found[title, sampler, what]) for what in ("mean", "sd")),
            f"{max(run['r_hat']):.3f}",
            f"{run['gradients_per_draw']:.0f}",
        ]
        for (title, sampler), run in runs.items()
    ],
)
print("|z|: the largest of a posterior; gradients: of a draw.")
print(
    "* decided by Holm's procedure over all numbers, which begins with the smallest p."
)
print(who_ran(stored))
halves = [(one.high - one.low) / 2 for one in every]
moved = sum(run["chains_moved"] == 10 for run in runs.values())
check("half", np.median(halves), at_most(5), kind="stored", digits=2)
check("moved", moved, near(len(runs), 0), kind="stored", digits=2)
trees = results["gp_pois_regr-gp_pois_regr"]["NUTS"]["divergences"]
check("trees", trees, kind="stored", digits=2)

# %% [markdown]
# * **No difference is decided.** The farthest, {c}`farthest` %, is the standard deviation of $\alpha_1$ in the changing variance: its $p$-value times the number of comparisons is {c}`chance`. All ten chains moved in each of the {c}`moved` runs; a chain that never moves raises no error, and an average hides it.
# * **The comparison sees a few per cent.** Half of the intervals are narrower than ±{c}`half` % of a standard deviation.
# * **The hardest are the counts of a process**: {c}`trees` of 10,000 trees {term}`diverged <divergence>`, and a draw costs three times the gradients of the next.
#
# ```{admonition} The moving average needed another start
# :class: dropdown
#
# In half of Stan's box, $\lvert\theta\rvert > 1$, an error grows to $1.5^{200} \approx 10^{35}$ in 200 times, and no step size suits such a chain and the others. Stan's chains each adapt their own, ours share one. So this posterior starts from $U(-\tfrac12, \tfrac12)$: a limit of our warm-up.
# ```
#
# ## A judge without chains
#
# Which of the two samplers is off in the changing variance? The model is GARCH(1, 1) for a series $y_t$: $y_t \sim N(\mu, v_t)$ with $v_t = \alpha_0 + \alpha_1(y_{t-1} - \mu)^2 + \beta_1v_{t-1}$, flat priors, $\alpha_0, \alpha_1, \beta_1 > 0$ and $\alpha_1 + \beta_1 < 1$.
# We compute its posterior a third way, without chains. That needs coordinates $x$ without constraints, and the density changes with them:
#
# ```{prf:lemma} A density in other coordinates
# :label: lem-reference-jacobian
#
# Let $\phi = g(x)$ with a smooth one-to-one map $g$ from $\mathbb R^d$ onto the set in which the parameters $\phi$ may lie. If $\phi$ has the density $p$, then $x$ has the density $p(g(x))\,\lvert\det g'(x)\rvert$.
# ```
#
# ```{admonition} Proof
# :class: dropdown
#
# $P(x \in A) = P(\phi \in g(A)) = \int_{g(A)} p(\phi)\,d\phi = \int_A p(g(x))\lvert\det g'(x)\rvert\,dx$ for every $A$, by the substitution $\phi = g(x)$.
# ```
#
# Here $\mu = x_1$, $\alpha_0 = e^{x_2}$, $\alpha_1 = u_3$ and $\beta_1 = (1 - u_3)u_4$ with $u = 1/(1 + e^{-x})$, whose derivative is $u(1 - u)$.

# %%
garch = json.loads((RESULTS.parents[1] / "benchmarks/posteriordb.json").read_text())
garch = garch["posteriors"]["garch-garch11"]
y = garch["data"]["y"]


def density(x):
    """Log density of the coordinates (points, 4), and the parameters of each point."""
    u = x.sigmoid()
    mu, alpha0, alpha1 = x[:, 0], x[:, 1].exp(), u[:, 2]
    beta1 = (1 - alpha1) * u[:, 3]
    variance, log_p = garch["data"]["sigma1"] ** 2 + 0 * mu, 0 * mu
    for t in range(len(y)):
        log_p = log_p - 0.5 * (variance.log() + (y[t] - mu) ** 2 / variance)
        variance = alpha0 + alpha1 * (y[t] - mu) ** 2 + beta1 * variance
    flat = logsigmoid(x[:, 2:]) + logsigmoid(-x[:, 2:])
    log_jacobian = x[:, 1] + flat.sum(-1) + logsigmoid(-x[:, 2])
    return log_p + log_jacobian, torch.stack([mu, alpha0, alpha1, beta1], -1)


# %% [markdown]
# Take points from a density $q$ that is wide enough, and weight them: for every function $f$
#
# $$
# \mathbb E_p f = \int f\,\frac pq\,q\,dx = \frac{\mathbb E_q[wf]}{\mathbb E_q[w]}, \qquad w \propto \frac{p}{q},
# $$ (eq-reference-importance)
#
# where the quotient removes the unknown constant of $p$. This is importance sampling. For $q$ we take products of $t_5$ densities, whose tails are heavier than the posterior's; three rounds fit its centre and width, and quasi-random points fill it evenly.


# %%
def judge(points, seed, centre, factor):
    """Points of q = centre + factor t, their weights and what the reference lists."""
    engine = torch.quasirandom.SobolEngine(4, scramble=True, seed=seed)
    uniform = engine.draw(points, dtype=torch.float64).clamp(1e-9, 1 - 1e-9)
    t = torch.from_numpy(stats.t(5).ppf(uniform))
    x = centre + t @ factor.T
    log_p, named = density(x)
    log_q = torch.from_numpy(stats.t(5).logpdf(t)).sum(-1)
    return x, torch.softmax(log_p - log_q, 0), named


def weighted(values, weights):
    return weights @ values, torch.cov(values.T, correction=0, aweights=weights)


centre, factor = torch.tensor([5.0, 0.3, 0.2, -0.5]).double(), torch.eye(4).double()
for fit in range(3):
    x, weights, _ = judge(2_048, 100 + fit, centre, factor)
    centre, covariance = weighted(x, weights)
    factor = torch.linalg.cholesky(covariance)
sds = []
for seed in range(8):  # eight scrambled sets of points: their scatter is the error
    _, weights, named = judge(4_096, seed, centre, factor)
    sds.append(weighted(named, weights)[1].diag().sqrt())
third, error = torch.stack(sds).mean(0), torch.stack(sds).std(0) / len(sds) ** 0.5
check("alpha-1", third[2], near(0.1257, 0.0006), error=error[2], digits=4)
check("beta-1", third[3], near(0.1227, 0.0006), error=error[3], digits=4)

# %% tags=["hide-input"]
ours, stan = results["garch-garch11"]["NUTS"], garch["published"]


def off(run):
    """Standard deviations of a run minus the judge's, in standard errors."""
    gaps = torch.tensor(run["sd"]) - third
    return gaps / torch.hypot(torch.tensor(run["sd_error"]).double(), error)


show_table(
    ["sd of", "ours", "Stan's", "the judge's", "z of ours", "z of Stan's"],
    [
        [
            name,
            f"{ours['sd'][k]:.4f} ± {ours['sd_error'][k]:.4f}",
            f"{stan['sd'][k]:.4f} ± {stan['sd_error'][k]:.4f}",
            f"{third[k]:.4f} ± {error[k]:.4f}",
            f"{off(ours)[k]:.1f}",
            f"{off(stan)[k]:.1f}",
        ]
        for k, name in enumerate(("μ", "α₀", "α₁", "β₁"))
    ],
    live=["the judge's", "z of ours", "z of Stan's"],
)
check("ours", off(ours)[2], near(-3.1, 0.4))
check("theirs", off(stan)[3], near(2.8, 0.4))
bias = sghmc_chain(torch.eye(1).double(), 0.05, friction=1.0).stationary_covariance()
check("bias", 100 * (bias[0, 0] - 1), near(0.064, 0.002), kind="exact")

# %% [markdown]
# The judge finds the standard deviation {c}`alpha-1` for $\alpha_1$ and {c}`beta-1` for $\beta_1$, each with an error far below those of both samplers.
#
# * **For $\alpha_1$ the error is ours**: {c}`ours` of our standard errors. Among as many numbers as here, one so far out is nothing strange.
# * **For $\beta_1$ it is Stan's**, by {c}`theirs` of its errors.
# * In both the other sampler errs to the other side, so their difference looks larger than either's error. The row needs no fault in either.
#
# **To remember:** compare with both errors, count the comparisons, and let a third method settle what two disagree about.
#
# ## What this does not show
#
# * *That SGHMC has no bias*. On a standard Gaussian with $\varepsilon = 0.05$ and $C = 1$ its variance is too large by {c}`bias` %, which no reference of 10,000 draws can see.
# * *How our error estimates scatter over seeds*: one seed was run. Fifteen take five hours on one core.
# * *Hard posteriors*: the eleven have at most thirteen dimensions, and Stan has passed them.
#
# ## Change it
#
# * In the cell of the density set `return log_p + log_jacobian` to `return log_p`, an easy slip: the checks of the judge show ✗ ({ref}`ex-reference-improper` asks why).
# * In the cell of the judge set `range(8)` to `range(2)` and `4_096` to `256`: its error is then as large as those of the chains, and it can judge neither.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-reference-count
#
# ★ *Compute.* You compare ten posteriors, a hundred numbers in all, and warn where $|z| > 3$. How often does a right sampler warn? Which bound makes it one run in a hundred?
# ```
#
# ```{solution} ex-reference-count
# :class: dropdown
#
# $P(|z| > 3) = 0.0027$, so that $1 - 0.9973^{100} = 24\,\%$ of all runs warn. One in a hundred needs $p = 10^{-4}$ for each number, which is $|z| > 3.9$.
# ```
#
# ````{exercise}
# :label: ex-reference-write
#
# ★★ **Write it yourself.** Map two coordinates without constraints to $\alpha, \beta > 0$ with $\alpha + \beta < 1$, return the logarithm of the Jacobian determinant as well, and check it against automatic differentiation.
#
# ```python
# def below_one(x):
#     """x is (2,); returns (alpha, beta) as one tensor, and log|det|."""
#     ...
# ```
# ````
#
# ````{solution} ex-reference-write
# :class: dropdown
#
# ```python
# def below_one(x):
#     u = torch.sigmoid(x)
#     log_jacobian = (u.log() + (1 - u).log()).sum() + (1 - u[0]).log()
#     return torch.stack([u[0], (1 - u[0]) * u[1]]), log_jacobian
# ```
#
# The matrix is triangular, because $\alpha$ depends on $x_1$ alone; $\partial\beta/\partial x_2$ has the factor $1 - u_1$ besides. `torch.func.jacrev` gives the matrix to compare with.
# ````


# %% tags=["hide-input"]
def below_one(x):
    u = torch.sigmoid(x)
    log_jacobian = (u.log() + (1 - u).log()).sum() + (1 - u[0]).log()
    return torch.stack([u[0], (1 - u[0]) * u[1]]), log_jacobian


worst = 0.0
for x in torch.linspace(-3, 3, 20, dtype=torch.float64).view(10, 2):
    jacobian = torch.func.jacrev(lambda y: below_one(y)[0])(x)
    worst = max(worst, float((jacobian.det().log() - below_one(x)[1]).abs()))
check(
    "by-hand",
    worst,
    at_most(1e-12),
    kind="exact",
    says="The solution minus automatic differentiation",
)

# %% [markdown]
# ```{exercise}
# :label: ex-reference-improper
#
# ★★ *Diagnose.* Eight schools estimate effects $y_j \sim N(\mu + \tau\eta_j, \sigma_j^2)$ with $\eta_j \sim N(0, 1)$ and a half-Cauchy prior of $\tau$ {cite:p}`rubin1981`. A sampler in $x = \log\tau$ forgets the Jacobian. R̂ may look harmless. What do its draws of $\tau$ do, and why?
# ```
#
# ```{solution} ex-reference-improper
# :class: dropdown
#
# As $x \to -\infty$ the likelihood tends to $\prod_j N(y_j \mid \mu, \sigma_j^2) > 0$ and the Cauchy density to a positive number, so the density in $x$ no longer falls and has no finite integral. The chains wander off towards $\tau = 0$, and never come to a stationary distribution; the published mean of $\tau$ gives it away at once. With the factor $\tau = e^x$ the integral converges.
# ```
#
# ## Further reading
#
# The manual of Stan {cite:p}`stanmanual` lists maps for all constraints. Three of the regressions come from {cite:t}`gelman2006data`; {cite:t}`papaspiliopoulos2007` say when to centre. The tests of {cite:t}`geweke2004` need no reference.
