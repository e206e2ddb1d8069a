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
# Level: second course · Reading: about 42 minutes, without the exercises · Running: about 15 seconds
# ```
#
# A sampler is tested on problems that its author chose; eleven posteriors that others chose, with published answers, tell whether it holds elsewhere.
#
# **You will learn** to
#
# * turn a model with constrained parameters into a log density without constraints, and say where its Jacobian goes,
# * compare draws with published means and standard deviations, with the Monte Carlo error of both,
# * look first whether every chain has moved,
# * tell how small an error such a comparison can see, and what it says about a sampler that never rejects a step.
#
# **You will need** {doc}`/book/tutorial/no_u_turn` and {doc}`/book/tutorial/sghmc`.

# %%

import arviz
import matplotlib.pyplot as plt
import torch

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result, who_ran
from sgmc import sample
from sgmc.kernels import HMC, NUTS
from sgmc.potentials import Potential
from sgmc.splittings import sghmc_chain
from sgmc.tuning import adapt

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## Somebody else's problems
#
# The samplers of this book are tested where the answer is known exactly: on Gaussians, on wells, on posteriors small enough to integrate.
# Such tests are sharp, but they are written by the same people as the sampler, who think of the same difficulties in both.
# A regression whose coefficients lie a hundred times farther out than the chains start, a scale that may be zero, a covariance that rounding makes singular: these come with other people's models.
#
# *posteriordb* {cite:p}`magnusson2024` collects such models with their data, and for part of them reference draws: ten long chains of Stan {cite:p}`carpenter2017`, thinned to 10,000 draws that are almost independent and have passed a list of checks.
# From 10,000 independent draws the mean of a quantity is known to a hundredth of its standard deviation $s$, and the standard deviation to $s/\sqrt{2\cdot10^4}$ where the law is normal.
# Smaller errors than these the reference cannot show.
#
# Let our own draws have the mean $\hat\mu$, with the {term}`Monte Carlo error` $e$, and let $\mu^*$ be the published mean, with its error $e^*$.
# If both samplers are right,
#
# $$
# z = \frac{\hat\mu - \mu^*}{\sqrt{e^2 + e^{*2}}}
# $$ (eq-reference-z)
#
# is close to standard normal, and the same goes for the standard deviations.
# By chance alone $|z|$ exceeds 4 once in 16,000 times.
#
# ## From a model to a log density
#
# Eight schools coached their pupils for a test, and each estimated the effect $y_j$ of it, with the standard error $\sigma_j$ {cite:p}`rubin1981`. How much do the effects differ?
# A hierarchical model lets the data say:
#
# $$
# \begin{aligned}
# y_j &\sim N(\theta_j, \sigma_j^2), \\
# \theta_j &\sim N(\mu, \tau^2), \\
# \mu &\sim N(0, 5^2), \\
# \tau &\sim \text{Cauchy}^+(0, 5).
# \end{aligned}
# $$ (eq-reference-schools)
#
# A sampler that follows gradients needs coordinates without constraints, and $\tau > 0$ has one.
# So we let it move in $x = \log\tau$ instead.
# The density changes with the coordinates, because an interval of $x$ is longer or shorter than the interval of $\tau$ that it stands for:
#
# ```{prf:lemma} A density in other coordinates
# :label: lem-reference-jacobian
#
# Let $\phi = g(x)$ with a smooth one-to-one map $g$ from $\mathbb R^d$ onto the set in which the parameters $\phi$ may lie. If $\phi$ has the density $p$, then $x$ has the density $p(g(x))\,\lvert\det g'(x)\rvert$.
# ```
#
# ```{prf:proof}
# $P(x \in A) = P(\phi \in g(A)) = \int_{g(A)} p(\phi)\,d\phi = \int_A p(g(x))\lvert\det g'(x)\rvert\,dx$ for every $A$, by the substitution $\phi = g(x)$.
# ```
#
# The potential is then $U(x) = -\log p(g(x)) - \log\lvert\det g'(x)\rvert$. These maps will do for all the models below; $u$ stands for $1/(1 + e^{-x})$.
#
# | parameter | map | $\log\lvert\det g'\rvert$ |
# | --- | --- | --- |
# | $\sigma > 0$ | $\sigma = e^x$ | $x$ |
# | $0 < w < 1$ | $w = u$ | $\log u + \log(1 - u)$ |
# | $\mu_1 < \mu_2$ | $\mu_1 = x_1$, $\mu_2 = x_1 + e^{x_2}$ | $x_2$ |
# | $0 < \mu_1 < \mu_2$ | $\mu_1 = e^{x_1}$, $\mu_2 = e^{x_1} + e^{x_2}$ | $x_1 + x_2$ |
# | $\alpha, \beta > 0$, $\alpha + \beta < 1$ | $\alpha = u_1$, $\beta = (1 - u_1)u_2$ | $\sum_i\bigl(\log u_i + \log(1 - u_i)\bigr) + \log(1 - u_1)$ |
#
# A second change of coordinates is about shape and not about constraints.
# Where $\tau$ is small all $\theta_j$ must lie close to $\mu$, and where it is large they need not: no step size suits both.
# Write $\theta_j = \mu + \tau\eta_j$ with $\eta_j \sim N(0, 1)$, and take $\eta_j$ for the coordinate: before there are data it is independent of $\tau$ {cite:p}`papaspiliopoulos2007`.
# This is the *non-centred* form.
# Here $\eta$ is the parameter and $\theta$ a function of it, so there is no further Jacobian.
# {numref}`fig-reference-funnel` shows the same draws of the prior in both forms: a funnel with a narrow neck {cite:p}`neal2003`, and a cloud.

# %% mystnb={"figure": {"caption": "Draws from the prior of one school, with $\\mu = 0$. Left: its effect $\\theta$ against $\\log\\tau$, a funnel; the step that suits its mouth is far too large for its neck. Right: the same draws, with $\\eta = \\theta/\\tau$ in the place of $\\theta$.", "name": "fig-reference-funnel"}, "image": {"alt": "Left, points that spread ever wider as log tau grows and close up to a line as it falls. Right, points of the same width at every log tau."}} tags=["hide-input"]
source = torch.Generator().manual_seed(0)
uniform = torch.rand(1_500, generator=source, dtype=torch.float64)
prior_tau = 5 * torch.tan(torch.pi / 2 * uniform)  # half-Cauchy
prior_eta = torch.randn(1_500, generator=source, dtype=torch.float64)
figure, (left, right) = plt.subplots(1, 2, figsize=(6.6, 2.9), sharey=True)
left.plot(prior_tau * prior_eta, prior_tau.log(), ".", ms=2, color=COLOURS["NUTS"])
right.plot(prior_eta, prior_tau.log(), ".", ms=2, color=COLOURS["NUTS"])
left.set(xlabel=r"$\theta$", ylabel=r"$\log\tau$", xlim=(-40, 40), ylim=(-5, 6))
right.set(xlabel=r"$\eta$")
plt.show()

# %% [markdown]
# The model as a potential is then a class with one method; `parameters` and `named` translate.

# %%
effect = torch.tensor([28, 8, -3, 7, -1, 1, 18, 12], dtype=torch.float64)
error = torch.tensor([15, 10, 16, 11, 9, 11, 10, 18], dtype=torch.float64)


class EightSchools(Potential):
    """Coordinates are η₁, …, η₈, μ and log τ."""

    dim = 10
    log_jacobian = 1.0  # times log τ

    def energy(self, position):
        theta, mu, tau = self.parameters(position)
        eta, log_tau = position[:, :8], position[:, 9]
        return (
            0.5 * ((effect - theta) / error).square().sum(-1)
            + 0.5 * eta.square().sum(-1)
            + 0.5 * (mu / 5).square()[:, 0]
            + torch.log1p((tau / 5).square())[:, 0]
            - self.log_jacobian * log_tau
        )

    def parameters(self, position):
        eta, mu, log_tau = position.split([8, 1, 1], -1)
        return mu + log_tau.exp() * eta, mu, log_tau.exp()

    def named(self, position):
        return torch.cat(self.parameters(position), -1)


# %% [markdown]
# Ten chains start from $U(-2, 2)$ in every coordinate, which is also where Stan starts them {cite:p}`stanmanual`, and know nothing of the answer.
# `named` turns coordinates into what the reference lists: $\theta_1, \dots, \theta_8$, $\mu$, $\tau$.
# `collect=schools.named` stores these instead of the coordinates.
# `sample` may warn that one or two of the 5,000 trees diverged: for a small $\tau$ the potential is steep in these coordinates, too. So few do not show in the comparison below.

# %%
generator = torch.Generator().manual_seed(0)
start = 4 * torch.rand(10, 10, generator=generator, dtype=torch.float64) - 2
schools = EightSchools()
settings = {"num_steps": 300, "target_acceptance": 0.9, "seed": 1}
kernel, position = adapt(NUTS(1.0), schools, start, **settings)
draws = sample(kernel, schools, position, 500, seed=2, collect=schools.named)

# %% [markdown]
# Before one asks whether draws are right one should ask whether every chain has moved.
# A chain that never moves raises no error, and an average over ten chains hides it.

# %%
moved = (draws.samples.std(0) > 0).all(-1)

# %% tags=["hide-input"]
claim(
    "Chains that moved, of ten",
    float(moved.sum()),
    near=10,
    within=0,
    because="from every start there is a way to the mass",
)

# %% [markdown]
# Then compare means and standard deviations with the published ones, by {eq}`eq-reference-z`.

# %%
stored = read_result(RESULTS / "posteriordb.json")
results = stored["posteriors"]
reference = results["eight_schools-eight_schools_noncentered"]["NUTS"]
published = {
    key: torch.tensor(value, dtype=torch.float64)
    for key, value in reference["published"].items()  # means, deviations, and errors
}


def compare(samples, published):
    """Return z of means, z of standard deviations, and R̂."""
    data = arviz.from_dict(posterior={"x": samples.transpose(0, 1).numpy()})
    pooled, z = samples.flatten(0, 1), []
    for what, value in (("mean", pooled.mean(0)), ("sd", pooled.std(0))):
        own = torch.as_tensor(arviz.mcse(data, method=what)["x"].values)
        both = (own.square() + published[f"{what}_error"].square()).sqrt()
        z.append((value - published[what]) / both)
    return *z, torch.as_tensor(arviz.rhat(data)["x"].values)


z_mean, z_sd, r_hat = compare(draws.samples, published)

# %% tags=["hide-input"]
for what, z in (("means", z_mean), ("standard deviations", z_sd)):
    claim(
        f"Largest |z| of ten {what} of the eight schools",
        z.abs().max(),
        at_most=4,
        because="ten normal numbers exceed it together once in 1,600 times",
    )
claim(
    "Largest R̂ of the eight schools",
    r_hat.max(),
    at_most=1.02,
    because="ten chains of 500 draws: near 1.005 over several seeds",
)

# %% [markdown]
# What does a mistake look like?
# Let us forget the Jacobian, an easy slip, and go on with the same step size and {term}`mass`.
# As $\tau \to 0$ the likelihood and the priors stay finite, so that in $x = \log\tau$ the density no longer falls: the chains have a half-line to get lost on ({ref}`ex-reference-improper`).
# (We use HMC with a fixed number of steps: on a half-line without force a path of NUTS never turns.)
# The published mean of $\tau$ gives the slip away at once.


# %%
class Forgetful(EightSchools):
    log_jacobian = 0.0


short = HMC(kernel.step_size, num_steps=8, mass=kernel.mass)
wrong = sample(short, Forgetful(), position, 300, seed=2, collect=schools.named)

# %% tags=["hide-input"]
claim(
    "Share of draws with τ < 0.01, without the Jacobian",
    (wrong.samples[..., 9] < 0.01).double().mean(),
    at_least=0.3,
    because="the law has no normalising constant, and almost all of it lies at 0",
)
claim(
    "Share of draws with τ < 0.01, with it",
    (draws.samples[..., 9] < 0.01).double().mean(),
    at_most=0.02,
    because="of the 10,000 reference draws 0.25 % lie there",
)
claim(
    "|z| of the mean of τ against the published one, without the Jacobian",
    compare(wrong.samples, published)[0][9].abs(),
    at_least=10,
    because="other seeds give 85 to 92",
)

# %% mystnb={"figure": {"caption": "Eight schools. Above: published means and standard deviations (grey bars: one standard deviation either way), ours (dots and thin lines), and what the schools reported (crosses). Below: histograms of $\\log_{10}\\tau$ with the Jacobian and without it; the first bin holds all that is below.", "name": "fig-reference-schools"}, "image": {"alt": "Above, eight estimates drawn towards their common mean, where dots and grey bars agree; the crosses lie farther apart. Below, two histograms, one peaked near one half, where tau is about three, the other spread over many orders of magnitude below."}} tags=["hide-input"]
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.6, 6))
places = torch.arange(10)
upper.errorbar(
    places,
    published["mean"],
    published["sd"],
    fmt="none",
    ecolor=TRUTH,
    elinewidth=7,
    alpha=0.5,
)
pooled = draws.samples.flatten(0, 1)
upper.errorbar(
    places, pooled.mean(0), pooled.std(0), fmt="o", ms=4, lw=1, color=COLOURS["NUTS"]
)
upper.plot(places[:8], effect, "x", color="black")
upper.set(
    ylabel="effect",
    xticks=places,
    xticklabels=[*(rf"$\theta_{j}$" for j in range(1, 9)), r"$\mu$", r"$\tau$"],
)
for label, found, colour in (
    ("with the Jacobian", draws, COLOURS["NUTS"]),
    ("without", wrong, COLOURS["HMC"]),
):
    logs = found.samples[..., 9].clamp(min=1e-300).log10().flatten()
    lower.hist(
        logs.clamp(min=-12).numpy(),
        bins=torch.linspace(-12, 2.5, 60).numpy(),
        density=True,
        histtype="step",
        color=colour,
        lw=1.6,
        label=label,
    )
lower.set(xlabel=r"$\log_{10}\tau$", ylabel="density")
lower.legend(loc="upper center")
plt.show()

# %% [markdown]
# In the upper half of {numref}`fig-reference-schools` our draws lie on the published values, and all effects are drawn together, from the crosses towards their common mean.
# In the lower half the chains without the Jacobian wander off to the left, where there is no law to come to.
# R̂ and {term}`divergences <divergence>` may or may not give such a chain away; published numbers do.
#
# ## Eleven posteriors
#
# `python -m benchmarks.posteriordb` does the same for eleven of them: four regressions, one of them on its own past, a hierarchy, a moving average, a changing variance, a hidden Markov chain, a mixture, and two Gaussian processes.
# Each is a class of a few lines, with the model in its docstring.
# This is the changing variance, GARCH(1, 1); its recursion is solved for all times at once.
#
# ```{literalinclude} ../../benchmarks/posteriordb.py
# :language: python
# :pyobject: Garch
# ```
#
# A linear regression need not keep its data: as a function of $\beta$ and $\sigma$ the likelihood depends on them through $n$, $X^\top X$, $X^\top y$ and $y^\top y$ alone ({ref}`ex-reference-sums`).
#
# ```{literalinclude} ../../benchmarks/posteriordb.py
# :language: python
# :pyobject: Regression
# ```
#
# All have the same settings: ten chains from $U(-2, 2)$, a {term}`warm-up` of 500 steps towards the {term}`acceptance` 0.9, and 1,000 draws of each chain.
# One, the moving average, starts from a smaller box; the next section says why.

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


def largest(result, key):
    return max(map(abs, result[key]))


rows = []
for name, title in titles.items():
    run = results[name]["NUTS"]
    cells = [f"{largest(run, 'mean_z'):.2f}", f"{largest(run, 'sd_z'):.2f}"]
    cells += [f"{max(run['r_hat']):.3f}", str(run["chains_moved"])]
    cells += [str(run["divergences"]), f"{run['gradients_per_draw']:.1f}"]
    rows.append([title, str(results[name]["dim"]), *cells])
heads = [
    "posterior",
    "d",
    "|z| of means",
    "|z| of sd",
    "R̂",
    "moved",
    "diverged",
    "gradients",
]
show_table(heads, rows)
print(who_ran(stored))

# %% [markdown]
# The columns: dimensions; the largest $|z|$ of all means and of all standard deviations; the largest R̂; chains that moved, of ten; trees that diverged, of 10,000; gradients a draw.
# The counts of a process are the hardest: some trees diverge, and a draw costs many gradients; still its means and standard deviations are right.

# %% mystnb={"figure": {"caption": "All comparisons: z of each mean (dots) and each standard deviation (rings), NUTS and, on two posteriors, SGHMC. The grey bands hold 68 % and 95 % of standard normal numbers; the dashed lines are the bound of 4.", "name": "fig-reference-z"}, "image": {"alt": "Strip plot of z values by posterior; nearly all lie between minus two and two, none beyond the dashed lines at four."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.4, 4.8))
axes.axvspan(-2, 2, color=TRUTH, alpha=0.15, lw=0)
axes.axvspan(-1, 1, color=TRUTH, alpha=0.15, lw=0)
for bound in (-4, 4):
    axes.axvline(bound, color="black", ls="--", lw=0.8)
for row, name in enumerate(titles):
    for kernel_name, shift in (("NUTS", -0.12), ("SGHMC", 0.2)):
        if run := results[name].get(kernel_name):
            colour = COLOURS[kernel_name]
            label = kernel_name if name.startswith("eight") else None
            axes.plot(
                run["mean_z"],
                [row + shift] * len(run["names"]),
                "o",
                ms=4,
                color=colour,
                label=label,
            )
            axes.plot(
                run["sd_z"],
                [row + shift + 0.12] * len(run["names"]),
                "o",
                ms=4,
                mfc="none",
                color=colour,
            )
axes.set(
    xlabel="$z$",
    yticks=range(len(titles)),
    yticklabels=titles.values(),
    xlim=(-4.6, 4.6),
)
axes.invert_yaxis()
axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.1), ncols=2)
plt.show()

# %% [markdown]
# {numref}`fig-reference-z` shows all the comparisons at once.
# A wrong sampler would show as a row off the middle, an error estimate that is too small as a row that is too wide.
# Together the points are as wide as standard normal numbers, and one row lies off the middle: all four rings of the changing variance are on the left, the farthest at $-3.5$.
# Of 146 normal numbers one lies so far out in one run of seventeen; so this may be chance, ours or that of the reference, whose error no length of our runs averages away, but the figure cannot tell.

# %%
runs = {name: results[name]["NUTS"] for name in titles}

# %% tags=["hide-input"]
claim(
    "Posteriors of eleven in which every chain moved",
    float(sum(run["chains_moved"] == 10 for run in runs.values())),
    near=11,
    within=0,
    because="the stored result",
    kind="stored",
)
pieces = [torch.tensor(run["mean_z"] + run["sd_z"]) for run in runs.values()]
every_z = torch.cat(pieces)
claim(
    "Largest |z| of all means and standard deviations of eleven posteriors",
    every_z.abs().max(),
    at_most=4,
    because=(
        f"the stored result; {len(every_z)} normal numbers exceed it once in 100 times"
    ),
    kind="stored",
)
claim(
    "Largest |z| of a standard deviation of the changing variance less that of all "
    "other comparisons",
    largest(runs["garch-garch11"], "sd_z")
    - every_z.abs().sort(descending=True).values[1],
    at_least=0,
    because="the stored result",
    kind="stored",
)
claim(
    "Largest R̂ of all quantities of eleven posteriors",
    max(max(run["r_hat"]) for run in runs.values()),
    at_most=1.01,
    because="the stored result",
    kind="stored",
)
claim(
    "Root mean square of all z",
    every_z.square().mean().sqrt(),
    near=1,
    within=0.24,
    because="about 1 if the errors are right; four standard errors of 146 numbers",
    kind="stored",
)
counts = runs["gp_pois_regr-gp_pois_regr"]
claim(
    "Trees that diverged on the counts of a process, of 10,000",
    float(counts["divergences"]),
    near=33,
    within=0,
    because="the stored result",
    kind="stored",
)
claim(
    "Gradients a draw there over the most of the others",
    counts["gradients_per_draw"]
    / max(run["gradients_per_draw"] for run in runs.values() if run is not counts),
    at_least=3,
    because="the stored result",
    kind="stored",
)

# %% [markdown]
# ## Where the chains start
#
# The box $U(-2, 2)$ is less harmless than it looks.
# The intercept of the test scores is about 26 and their residual standard deviation 18, while a chain starts with an intercept below 2 and a standard deviation between $e^{-2}$ and $e^2$.
# At such a start the energy is larger than at the end by a number of up to eight digits, and its slope is so steep that a step of the size that suits the middle would be rejected.
#
# Suppose that the warm-up follows the *mean* acceptance of all chains.
# It finds a step size for the chains that have arrived, and the others stay where they are for good, without a warning.
# So `adapt` lets the slowest chain decide at first, and names any chain that did not move all the same.
#
# This too has a limit.
# In the moving average the errors obey $e_t = y_t - \mu - \varphi y_{t-1} - \theta e_{t-1}$, and half of the box has $\lvert\theta\rvert > 1$.
# After 200 times at $\theta = 1.5$ the first error has grown by $1.5^{200} \approx 10^{35}$, and the energy is of the order $10^{70}$.
# No step size suits such a chain and the others too.
# The reference was made by chains that each adapt their own step size; ours share one.
# We start this posterior from $U(-\tfrac12, \tfrac12)$, and count it as a limit of our warm-up.

# %% tags=["hide-input"]
claim(
    "Energy of the highest start less that of the draws, test scores of children",
    runs["kidiq-kidscore_momiq"]["start_height"],
    at_least=1e7,
    because="434 squared residuals of up to 100² over a variance of e⁻⁴ at least",
    kind="stored",
)
children = runs["kidiq-kidscore_momiq"]["published"]["mean"]
for what, value, wanted in (
    ("intercept", children[0], 26),
    ("residual standard deviation", children[2], 18),
):
    claim(
        f"Published {what} of the test scores",
        value,
        near=wanted,
        within=0.5,
        because="the mean of the reference draws",
        kind="stored",
    )

# %% [markdown]
# ## And without a correction step?
#
# SGHMC does not accept or reject at the end of its steps, so its distribution is wrong by an amount that depends on the step size and the {term}`gradient noise` ({doc}`/book/tutorial/sghmc`).
# It may still agree with the reference as far as the reference can see.
# We tried two of the eleven: the eight schools with the exact gradient, and the mixture, whose 1,000 observations come in minibatches of 200.
# Both start where the warm-up of NUTS ended, with its mass $M$; the friction is $C = M$ and the step $\varepsilon = 0.05$, a twentieth of a standard deviation of a coordinate, with 20 steps a draw.
# The noise of the minibatches, $\hat B = \tfrac12\varepsilon\hat V$, is estimated once at the start, and that much less is injected.
# The points of SGHMC stand under those of NUTS in {numref}`fig-reference-z`.

# %% tags=["hide-input"]
uncorrected = {
    name: content["SGHMC"]
    for name, content in results.items()
    if "SGHMC" in content  # two of them
}
for name, run in uncorrected.items():
    claim(
        f"Largest |z| by SGHMC, {titles[name]}",
        max(largest(run, "mean_z"), largest(run, "sd_z")),
        at_most=4,
        because="the stored result; the bias of so small a step is below the error",
        kind="stored",
    )
    ratios = torch.tensor(run["sd"]) / torch.tensor(run["published"]["sd"])
    claim(
        f"Mean ratio of SGHMC's standard deviations to the published, {titles[name]}",
        ratios.mean(),
        near=1,
        within=0.03,
        because="an error of about 1 % in each",
        kind="stored",
    )

# %% [markdown]
# That is agreement, and not proof.
# The comparison resolves one or two per cent of a standard deviation.
# On a Gaussian with curvature $h$ and mass 1 the variance of this chain is too large by the factor
#
# $$
# \frac1{1 - \dfrac{\varepsilon^2h}{4(1 - \frac12\varepsilon C)}},
# $$ (eq-reference-sghmc)
#
# which is much less than that:

# %%
variance = sghmc_chain(torch.eye(1), 0.05, friction=1.0).stationary_covariance()[0, 0]


# %% tags=["hide-input"]
def excess(step, curvature=1.0, friction=1.0):
    return 1 / (1 - step**2 * curvature / (4 * (1 - step * friction / 2)))


claim(
    "Largest relative error of this factor, over twelve settings",
    max(
        abs(
            float(
                sghmc_chain(
                    h * torch.eye(1, dtype=torch.float64), step, friction=C
                ).stationary_covariance()[0, 0]
            )
            * h
            / excess(step, h, C)
            - 1
        )
        for step in (0.05, 0.2, 0.5)
        for h in (0.5, 2.0)
        for C in (0.5, 2.0)
    ),
    at_most=1e-9,
    because="exact laws of linear chains",
    kind="exact",
)
claim(
    "Variance of SGHMC with ε = 0.05 and C = 1 on a standard Gaussian",
    variance,
    near=1.0006,
    within=1e-4,
    because="the exact law of a linear chain",
    kind="exact",
)

# %% [markdown]
# A reference with 10,000 draws cannot tell such a chain from a right one; for the same reason it does not matter for a use of the draws that needs no more than the reference knows ({ref}`ex-reference-step`).
#
# ## In practice
#
# * Write the constraint as a map with its Jacobian, and let a test compare the Jacobian with automatic differentiation.
# * Look whether every chain has moved before you look at anything else; then R̂; then the numbers.
# * Compare with both errors, and count the comparisons before you choose the bound.
# * A published value has a name for every quantity. Check the order and the meaning: one of these models has a `sigma` that is a variance.
# * If a posterior disagrees, suspect your density first. Start at the published mean: a chain that does not stay there has another target.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | comparison with a reference | $z = (\hat\mu - \mu^*)/\sqrt{e^2 + e^{*2}}$, {eq}`eq-reference-z` |
# | potential in coordinates without constraints | $U(x) = -\log p(g(x)) - \log\lvert\det g'(x)\rvert$, {prf:ref}`lem-reference-jacobian` |
# | variance of SGHMC over the right one | $1/\bigl(1 - \varepsilon^2h/4(1 - \tfrac12\varepsilon C)\bigr)$, {eq}`eq-reference-sghmc` |
# | eight schools, non-centred | $\theta_j = \mu + \tau\eta_j$, with the coordinates $\eta$, $\mu$, $\log\tau$ of {eq}`eq-reference-schools` |
#
# ## Change it
#
# * Write `0.5 * (mu / 50).square()` in the place of `0.5 * (mu / 5).square()`, a wrong prior by one digit. The claim on the $|z|$ of the means shows ✗.
# * Take 25 draws of each chain in the place of 500: `sample(kernel, schools, position, 25,`. The claim on R̂ shows ✗, and those on $z$ hold: with few draws our own error is large, and the comparison sees less.
# * In the cell below {eq}`eq-reference-sghmc` set `sghmc_chain(torch.eye(1), 0.5,`. The claim shows ✗: the variance is now too large by nine per cent.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-reference-write
#
# *Write it yourself.* Map two coordinates without constraints to $\alpha, \beta > 0$ with $\alpha + \beta < 1$, by the last row of the table, and return the logarithm of the Jacobian determinant as well. Then check it against automatic differentiation.
#
# ~~~python
# def below_one(x):
#     """x is (2,); returns (alpha, beta) as one tensor, and log|det|."""
#     u = ...
#     return torch.stack([...]), ...
# ~~~
# ```
#
# ```{solution} ex-reference-write
# :class: dropdown
#
# The code stands in the folded cell below; the derivative of $1/(1 + e^{-x})$ is $u(1 - u)$, and $\partial\beta/\partial x_2$ has a factor $1 - u_1$ besides.
# Assignment 1 begins with the same kind of check, of a gradient ({doc}`/book/practice/teaching`).
# ```


# %% tags=["hide-input"]
def below_one(x):
    """Two positive numbers with a sum below 1, and the log Jacobian determinant."""
    u = torch.sigmoid(x)
    log_jacobian = (u.log() + (1 - u).log()).sum() + (1 - u[0]).log()
    return torch.stack([u[0], (1 - u[0]) * u[1]]), log_jacobian


worst = 0.0
for x in torch.linspace(-3, 3, 20, dtype=torch.float64).view(10, 2):
    jacobian = torch.func.jacrev(lambda y: below_one(y)[0])(x)
    worst = max(worst, float((jacobian.det().log() - below_one(x)[1]).abs()))
claim(
    "Largest difference between the exercise's log Jacobian determinant and automatic "
    "differentiation's",
    worst,
    at_most=1e-12,
    because="the formula of the table; rounding",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-reference-improper
#
# Show that without the Jacobian the density of the eight schools in $(\eta, \mu, \log\tau)$ has no finite integral.
# ```
#
# ```{solution} ex-reference-improper
# :class: dropdown
#
# As $\log\tau \to -\infty$ with $\eta$ and $\mu$ fixed, $\theta_j \to \mu$, the likelihood tends to $\prod_j N(y_j \mid \mu, \sigma_j^2) > 0$, and the Cauchy density to $2/(5\pi)$. So the integral over $\eta$ and $\mu$ tends to a positive number, and the one over $\log\tau$ from $-\infty$ diverges. With the factor $\tau = e^{\log\tau}$ it converges.
# ```
#
# ```{exercise}
# :label: ex-reference-sums
#
# Write $\sum_i(y_i - x_i^\top\beta)^2$ with $X^\top X$, $X^\top y$ and $y^\top y$. When does rounding make this a bad idea?
# ```
#
# ```{solution} ex-reference-sums
# :class: dropdown
#
# It is $y^\top y - 2\beta^\top X^\top y + \beta^\top X^\top X\beta$. The three terms nearly cancel where the fit is good: if the residuals are a share $\delta$ of the data, the sum is of order $\delta^2y^\top y$, and the relative error of it about $10^{-16}/\delta^2$ in double precision. For the test scores $\delta^2$ is about 0.04, and nothing is lost; for data that a line fits to eight digits nothing would be left.
# ```
#
# ```{exercise}
# :label: ex-reference-step
#
# Up to which step $\varepsilon$ would SGHMC pass on a Gaussian with curvature $h = 1$, with the friction $C = 1$, if our standard deviation and the published one each have an error of 0.7 %?
# ```
#
# ```{solution} ex-reference-step
# :class: dropdown
#
# It is noticed if the standard deviation is too large by more than $4\sqrt2\cdot0.7\,\% = 4\,\%$.
# With $h = C = 1$ the root of {eq}`eq-reference-sghmc` is 1.04 at $\varepsilon = 0.48$.
# A direction with a large curvature $h$ is noticed at about $\varepsilon = 0.55/\sqrt h$, and a posterior with strong correlations has large ones even if the mass has made all variances equal.
# ```

# %% tags=["hide-input"]
claim(
    "Standard deviation at ε = 0.48",
    excess(0.48) ** 0.5,
    near=1.04,
    within=0.0005,
    because="the exact law",
    kind="exact",
)
claim(
    "The same with h = 100 and ε = 0.55/√h",
    excess(0.055, 100) ** 0.5,
    near=1.04,
    within=0.002,
    because="the exact law",
    kind="exact",
)

# %% [markdown]
#
# ## Further reading
#
# {cite:t}`magnusson2024` describe the collection and how to use it; the reference manual of Stan {cite:p}`stanmanual` lists the maps for all kinds of constraints, {cite:t}`vehtari2021` R̂ and the errors of quantiles.
# Three of the regressions come from the book of {cite:t}`gelman2006data`; {cite:t}`papaspiliopoulos2007` say when to centre. Tests that need no reference are those of {cite:t}`geweke2004`.
