# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Many machines
#
# ```{div} page-head
# Level: second course · Reading: about 51 minutes, without the exercises · Running: about 15 seconds
# ```
#
# Cut the data into pieces, sample each piece on a machine of its own, and put the posterior together from the draws: this chapter says when that is exact, how wrong it is otherwise, what one more round of messages corrects, and what happens when a machine dies.
#
# **You will learn** to
#
# * write a posterior as a product of parts, each with its share of the data and of the prior,
# * combine the draws of the parts, prove when this is exact, and see what counting the prior twice does,
# * compute the bias of averages on skewed parts, and remove it by weights that need no Gaussian,
# * send the work to many processes or machines so that the numbers are the same for any number of them, also if one is killed,
# * count bytes and seconds, and plan for more machines than you have.
#
# **You will need** {doc}`/book/tutorial/hamiltonian_monte_carlo` and {doc}`/book/tutorial/minibatch_noise`.

# %%

import matplotlib.pyplot as plt
import torch

from booklib.page.claims import claim
from booklib.page.figures import TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.rivals.consensus import (
    candidates,
    effective_share,
    energies,
    gaussian_product,
    inverse_covariance_weights,
    moments,
    reweight,
    serialized_size,
    weighted_average,
    weighted_mean,
)
from booklib.rivals.shards import shards
from booklib.runs.cluster import run_all, sample_all, workers
from booklib.runs.results import RESULTS, read_result, who_ran
from sgmc.door.draws import Draws
from sgmc.kernels import HMC
from sgmc.models import Posterior
from sgmc.posteriors import LinearRegression, LogisticRegression
from sgmc.targets import Gaussian

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
DOUBLE = torch.float64
AVERAGE, WEIGHTED = "#D55E00", "#0072B2"
stored = read_result(RESULTS / "consensus.json")

# %% [markdown]
# ## A posterior is a product
#
# A minibatch makes a step cheap, but the data must still lie where the chain is.
# Where they are on many machines, or too many for one, every step would need a message, and messages are slow: a chain of $10^5$ steps would send $10^5$ of them.
# *Consensus Monte Carlo* {cite:p}`scott2016` sends almost none.
# A *shard* is the data of one machine, a *part* the posterior that belongs to it, and a *piece* of work what a worker is asked to do.
# Every machine samples its part, and *home*, the process that you started, puts the draws together once at the end.
#
# ```{prf:definition} Shards
# :label: def-machines-shard
#
# Let the examples be dealt to $J$ sets $S_1, \dots, S_J$, each example to one.
# The *subset posterior* of shard $j$ has the density
#
# $$
# \begin{aligned}
# \pi_j(\theta) &\propto p(\theta)^{1/J} \prod_{i \in S_j} p(x_i \mid \theta), \\
# U_j(\theta) &= -\tfrac1J \log p(\theta) - \sum_{i \in S_j} \log p(x_i \mid \theta).
# \end{aligned}
# $$ (eq-machines-shard)
# ```
#
# ```{prf:lemma} The product of the parts
# :label: lem-machines-product
#
# $\sum_j U_j = U$, and so $\pi \propto \prod_j \pi_j$.
# ```
#
# The {ref}`proof <proof-machines-product>` is in the appendix.
#
# Nothing is approximate so far.
# One thing must hold: every $\pi_j$ must have a finite integral.
# With a prior of heavy tails it may not, because the power $1/J$ makes them heavier still, and a shard that says little does not cut them off.
# `shards` deals the examples of any posterior of this book, in a shuffled order; each part is a posterior like any other, with its own minibatches, and every kernel can sample it.

# %%
generator = torch.Generator().manual_seed(0)
mixing = torch.tensor([[1.0, 0.8], [0.0, 0.5]], dtype=DOUBLE)
x = torch.randn(96, 2, generator=generator, dtype=DOUBLE) @ mixing
y = x @ torch.tensor([1.0, -1.0], dtype=DOUBLE)
y = y + torch.randn(96, generator=generator, dtype=DOUBLE)
PRIOR = 0.1  # variance; the prior is worth ten examples or so
regression = LinearRegression(x, y, noise_variance=1.0, prior_variance=PRIOR)
parts = shards(regression, 8)
theta = torch.randn(5, 2, generator=generator, dtype=DOUBLE)
total = sum(part.energy(theta) for part in parts)

# %% tags=["hide-input"]
claim(
    "Largest relative difference of U and the sum of the eight parts' energies",
    ((total - regression.energy(theta)) / total).abs().max(),
    at_most=1e-12,
    because="they are equal up to rounding",
    kind="exact",
)

# %% [markdown]
# The question is how to get draws of a product from draws of its factors.
# As an example, count rare events: how many happen in each of 64 hours, with the rate $\lambda = e^\theta$ an hour.

# %%
hours = 64
counts = torch.poisson(torch.full((hours,), 0.35, dtype=DOUBLE), generator)
shape, rate = 0.5, 1.0  # λ ~ Gamma(shape, rate); θ = log λ has the Jacobian λ
events = Posterior(
    log_prior=lambda theta: (shape * theta - rate * theta.exp()).sum(-1),
    log_likelihood=lambda theta, y: y * theta - theta.exp(),
    data=(counts,),
    dim=1,
)


def gammas(number, seed=0):
    """The shapes and the rates of the parts: θ is the logarithm of a gamma variable."""
    pieces = shards(events, number, seed)
    shapes = [shape / number + float(part.data[0].sum()) for part in pieces]
    rates = [rate / number + part.num_examples for part in pieces]
    return torch.tensor(shapes, dtype=DOUBLE), torch.tensor(rates, dtype=DOUBLE)


def log_gamma_draws(shapes, rates, number, chains):
    """Exact draws of every part."""
    found = []
    for a, b in zip(shapes, rates, strict=True):
        full = torch.full((number, chains, 1), float(a), dtype=DOUBLE)
        # what torch.distributions.Gamma calls, which takes no generator
        found.append(Draws((torch._standard_gamma(full, generator) / b).log()))
    return found


def density(grid, a, b):
    return torch.exp(a * (grid + b.log()) - b * grid.exp() - torch.lgamma(a))


# %% mystnb={"figure": {"caption": "The rate of rare events, cut into four parts and into sixteen. Thin lines: the densities of the parts, in $\\theta = \\log\\lambda$. Grey: the posterior, which is their normalised product. Orange: averages of draws of the parts, weighted by inverse variances.", "name": "fig-machines-idea"}, "image": {"alt": "Two panels. Above, wide curves of four parts, of which the grey narrow posterior is the product; the orange histogram is about as wide and lies a little to its right. Below, sixteen parts, with long left tails; the orange histogram lies well to the right of the grey posterior."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 1, figsize=(5.2, 5.6), sharex=True)
grid = torch.linspace(-4.5, 1.5, 400, dtype=DOUBLE)
whole = density(grid, shape + counts.sum(), torch.tensor(rate + hours, dtype=DOUBLE))
for axes, number in zip(panels, (4, 16), strict=True):
    a, b = gammas(number)
    for each, label in zip(
        zip(a, b, strict=True), ["parts", *[None] * (number - 1)], strict=True
    ):
        axes.plot(grid, density(grid, *each), color="black", lw=0.6, label=label)
    axes.fill_between(grid, whole, color=TRUTH, alpha=0.5, lw=0, label="posterior")
    averaged = weighted_average(log_gamma_draws(a, b, 2_000, 10)).samples
    axes.hist(
        averaged.flatten().numpy(),
        bins=80,
        density=True,
        histtype="step",
        color=AVERAGE,
        lw=1.5,
        label="averages",
    )
    axes.set(ylabel="density", title=f"$J = {number}$", xlim=(-4.5, 1.5))
panels[0].legend(loc="upper left")
panels[1].set_xlabel(r"$\theta$")
plt.show()

# %% [markdown]
# {numref}`fig-machines-idea` shows the whole chapter.
# A part knows little and is wide; the product, and the average of one draw from each part, are narrow.
# Above, with four parts, it has nearly the right width, and its centre is off by half a standard deviation.
# Below, with sixteen, its centre is off by more than one and a half.
#
# ## Averages, and why they are right for Gaussians
#
# ```{prf:theorem} Consensus is exact for Gaussian parts
# :label: thm-machines-gaussian
#
# Let $\pi_j = N(\mu_j, \Sigma_j)$ for every $j$, and $\theta_j \sim \pi_j$ independently.
# Then the product is $\pi = N(\mu, \Sigma)$ with
#
# $$
# \begin{aligned}
# \Sigma &= \Bigl(\sum_j \Sigma_j^{-1}\Bigr)^{-1}, \\
# \mu &= \Sigma \sum_j \Sigma_j^{-1}\mu_j,
# \end{aligned}
# $$ (eq-machines-product)
#
# and the average $\sum_j W_j \theta_j$ with $W_j = \Sigma\,\Sigma_j^{-1}$ has exactly this law.
# ```
#
# The {ref}`proof <proof-machines-gaussian>` is in the appendix.
#
# These are the weights of {cite:t}`scott2016`.
# In practice $\Sigma_j$ is estimated from the draws of part $j$.
# {cite:t}`neiswanger2014` fit a Gaussian to each part and multiply the fits by {eq}`eq-machines-product`.
#
# ```{prf:lemma} Averages and products of fits agree
# :label: lem-machines-moments
#
# Whatever the parts' laws, with means $\mu_j$ and covariances $\Sigma_j$, the weighted average has the mean and the covariance of the product of the Gaussians that are fitted to them.
# ```
#
# The {ref}`proof <proof-machines-moments>` is in the appendix.
#
# ### The prior, once or twice
#
# Lecture slides of this topic[^kanpur] print other weights,
#
# $$
# \begin{aligned}
# W_j &= \Sigma\,\bigl(\Sigma_0^{-1}/J + \bar\Sigma_j^{-1}\bigr), \\
# \Sigma &= \bigl(\Sigma_0^{-1} + \textstyle\sum_j\bar\Sigma_j^{-1}\bigr)^{-1},
# \end{aligned}
# $$ (eq-machines-slides)
#
# with the prior's covariance $\Sigma_0$ and the sample covariance $\bar\Sigma_j$ of part $j$.
# But a subset posterior {eq}`eq-machines-shard` holds its share of the prior already: if the likelihood of shard $j$ has the precision $\Lambda_j$, then $\bar\Sigma_j^{-1} = \Lambda_j + \Sigma_0^{-1}/J$.
# Equation {eq}`eq-machines-slides` adds $\Sigma_0^{-1}/J$ a second time, which moves the weights towards equal ones.
# But write $S = \sum_k\bar\Sigma_k^{-1}$ and $W_j^* = S^{-1}\bar\Sigma_j^{-1}$ for the weights of the theorem:
#
# $$
# W_j = \bigl(\Sigma_0^{-1} + S\bigr)^{-1}\Bigl(\Sigma_0^{-1}\,\tfrac1J I + S\,W_j^*\Bigr).
# $$
#
# That is a blend of equal weights, with the weight of the prior, and of the right ones.
# It is $W_j^*$ only where $W_j^* = \tfrac1JI$ for all $j$, that is, where all parts have the same covariance, as with $J = 1$.
#
# [^kanpur]: {cite:t}`kanpur`, *Parallel/Distributed MCMC*, Approach 1; Approach 2 is {eq}`eq-machines-product`. See {doc}`/book/appendix/errata`.


# %%
def exact_parts(number, prior_variance=PRIOR):
    """Means and covariances of the regression's parts."""
    means, covariances = [], []
    for part in shards(regression, number):
        inputs, targets = part.data
        prior = torch.eye(2, dtype=DOUBLE) / (prior_variance * number)
        covariances.append(torch.linalg.inv(inputs.T @ inputs + prior))
        means.append(covariances[-1] @ inputs.T @ targets)
    return torch.stack(means), torch.stack(covariances)


def law_of_average(weights, means, covariances):
    mean = (weights @ means[..., None]).sum(0)[:, 0]
    return mean, (weights @ covariances @ weights.mT).sum(0)


def slides_weights(covariances, prior_variance=PRIOR):
    number, prior = len(covariances), torch.eye(2, dtype=DOUBLE) / prior_variance
    precisions = torch.linalg.inv(covariances)
    return torch.linalg.inv(prior + precisions.sum(0)) @ (prior / number + precisions)


root = torch.linalg.cholesky(regression.precision)


def errors(weights, means, covariances):
    """How far the mean and the variance of the average are off, in deviations."""
    mean, covariance = law_of_average(weights, means, covariances)
    spread = root.T @ covariance @ root  # the identity if it is right
    wrong = (torch.linalg.eigvalsh(spread) - 1).abs().max()
    return float(((mean - regression.mean) @ root).norm()), float(wrong)


# %% tags=["hide-input"]
rows = []
for number in (1, 2, 8, 32):
    parts_of = exact_parts(number)
    right = errors(inverse_covariance_weights(parts_of[1]), *parts_of)
    slides = errors(slides_weights(parts_of[1]), *parts_of)
    rows.append([str(number), *(f"{abs(value):.3f}" for value in (*right, *slides))])
    claim(
        f"J = {number}: distance of the average's mean from the posterior's, and of "
        "its covariance",
        max(right),
        at_most=1e-9,
        because="equal up to rounding, in posterior standard deviations",
        kind="exact",
    )
heads = ["J", "mean off", "variance off", "slides: mean off", "slides: variance off"]
show_table(heads, rows)

# %% [markdown]
# The table has distances from the exact posterior: of the mean, in standard deviations, and of the variance in the worst direction, as a share.
# The last two columns are {eq}`eq-machines-slides`, under a prior that is worth ten examples or so.
# It costs little where the parts are alike, as with $J = 2$ and $8$, and half a standard deviation with $J = 32$, where they are not: a part has three examples.

# %% tags=["hide-input"]
means, covariances = exact_parts(32)
weights = slides_weights(covariances)
mean, _ = law_of_average(weights, means, covariances)
claim(
    "The slides' weights with J = 32: distance of the mean from the posterior's",
    ((mean - regression.mean) @ root).norm(),
    near=0.548,
    within=0.001,
    because="in posterior standard deviations, by linear algebra",
    kind="exact",
)
prior_variance = 10.0  # a hundred times wider: worth a tenth of an example
means, covariances = exact_parts(32, prior_variance)
wide = gaussian_product(means, covariances)
twice = slides_weights(covariances, prior_variance)
mean, _ = law_of_average(twice, means, covariances)
claim(
    "The same under a prior that is worth a tenth of an example",
    ((mean - wide.mean) @ torch.linalg.cholesky(wide.precision)).norm(),
    at_most=0.001,
    because="by linear algebra",
    kind="exact",
)
claim(
    "Their sum differs from I by",
    (weights.sum(0) - torch.eye(2, dtype=DOUBLE)).abs().max(),
    at_most=1e-12,
    because="they look right",
    kind="exact",
)

# %% [markdown]
# ## Sending the work away
#
# Pieces of work that do not talk to each other need an engine: we take *Dask* {cite:p}`rocklin2015`, and nothing in `booklib.runs.cluster` depends on how many workers there are or where.
#
# ```python
# from distributed import Client
# from booklib.runs.cluster import sample_all, workers
#
# with workers(2) as client:  # two processes on this machine, or
#     draws = sample_all(client, kernel, parts, starts, num_samples=1_000)
#
# client = Client("tcp://scheduler:8786")  # the same on a cluster
# draws = sample_all(client, kernel, parts, starts, num_samples=1_000)
# ```
#
# Workers of a cluster should have one thread each: `dask worker tcp://scheduler:8786 --nthreads 1` on every machine.
# In a script, as opposed to a notebook, processes must be started under `if __name__ == "__main__":`.
#
# HMC has no error of its step size, so its draws of the parts are a test of {prf:ref}`thm-machines-gaussian`, with weights that are estimated.

# %%
kernels, pieces, groups = [], [], []
for number in (1, 2, 8, 32):
    for covariance in exact_parts(number)[1]:  # the mass that suits a part
        kernels.append(HMC(0.8, 2, mass=torch.linalg.inv(covariance)))
    groups.append(slice(len(pieces), len(pieces) + number))
    pieces += shards(regression, number)
starts = [torch.zeros(40, 2, dtype=DOUBLE)] * len(pieces)
with workers(2, processes=False) as client:
    drawn = sample_all(client, kernels, pieces, starts, 300, warm_up=10, seed=1)

largest = 0.0
for group in groups:
    white = (weighted_average(drawn[group]).samples - regression.mean) @ root
    square = torch.einsum("tci,tcj->tcij", white, white) - torch.eye(2, dtype=DOUBLE)
    for quantity in (white, square.flatten(2)):
        mean, error = Draws(quantity).mean_and_standard_error()
        largest = max(largest, float((mean.abs() / error).max()))

# %% tags=["hide-input"]
claim(
    "Largest |z| of the means and second moments of averages, for J = 1, 2, 8 and 32",
    largest,
    at_most=7,
    errors=True,
    because=(
        "24 comparisons; z of 40 chains has longer tails than a normal one; it was 1.5 "
        "to 3.8 over eight seeds"
    ),
)

# %% [markdown]
# Each chain has weights of its own, estimated from its own draws ({ref}`ex-machines-weights` says why).
# The seed of a piece follows from its number, so that it does not matter who works on it, or when, or how many others there are.
#
# ```{literalinclude} ../../booklib/runs/cluster.py
# :language: python
# :pyobject: sample_all
# :start-at: number = len(potentials)
# :dedent: 4
# ```
#
# Every piece gets a seed of its own and, if you gave some, a checkpoint of its own.
# Plain parallel chains go the same way: give one potential as often as there are pieces.
#
# ## When the parts are not Gaussian
#
# For the rare events all is known: $\theta = \log\lambda$ of a $\text{Gamma}(a, b)$ variable has the mean $\psi(a) - \log b$ and the variance $\psi'(a)$, with the digamma function $\psi$.
# Part $j$ has $a_j$ = its events and its share of the prior's shape, the posterior $a = \sum_j a_j$ and $b = \sum_j b_j$.
# Hence the mean of averages by inverse variances, from infinitely many draws:
#
# $$
# \begin{gathered}
# \sum_j w_j\bigl(\psi(a_j) - \log b_j\bigr) \quad\text{instead of}\quad \psi(a) - \log b, \\
# \text{with}\quad w_j = \frac{1/\psi'(a_j)}{\sum_k 1/\psi'(a_k)} .
# \end{gathered}
# $$ (eq-machines-bias)
#
# Two errors are in the sum, and they pull in opposite directions.
# Every part has a long tail to the left, and so a mean that is too low: if all parts were equal the average would be too small, for $\psi(a/J) - \log(a/J) < \psi(a) - \log a$.
# But a part with more events lies further to the right and is narrower too, and so gets more weight; a part without events gets next to none.


# %%
def truth():
    a, b = gammas(1)
    return float(torch.digamma(a) - b.log()), float(torch.polygamma(1, a)) ** 0.5


def limit(number, seed=0):
    """Mean and variance of averages from infinitely many draws."""
    a, b = gammas(number, seed)
    precision = 1 / torch.polygamma(1, a)
    mean = (precision * (torch.digamma(a) - b.log())).sum() / precision.sum()
    return float(mean), float(1 / precision.sum())


center, deviation = truth()
eight = shards(events, 8, seed=9)  # a deal that gives every part two events or more
start = [torch.zeros(40, 1, dtype=DOUBLE)] * 8
with workers(2, processes=False) as client:
    drawn = sample_all(
        client, HMC(0.6, 6, jitter=0.4), eight, start, 200, warm_up=50, seed=2
    )
precision = 1 / torch.polygamma(1, gammas(8, 9)[0])
exact_weights = (precision / precision.sum())[:, None, None]
mean, error = weighted_average(drawn, exact_weights).mean_and_standard_error()

# %% tags=["hide-input"]
claim(
    "Mean of averages of HMC's draws from eight parts, less the exact one",
    float(mean) - limit(8, 9)[0],
    near=0,
    standard_error=float(error),
    because="the draws of the parts are right, and the bias is that of averaging",
)
for number, expected in ((4, 0.49), (16, 1.67)):  # the panels of the first figure
    claim(
        f"Bias of averages in the first figure, J = {number}, in posterior deviations",
        (limit(number)[0] - center) / deviation,
        near=expected,
        within=0.01,
        because="by the formula",
        kind="exact",
    )
few = [(limit(8, seed)[0] - center) / deviation for seed in range(10)]
many = [(limit(32, seed)[0] - center) / deviation for seed in range(10)]
claim(
    "Smallest bias with 8 parts, of ten ways to deal the hours",
    min(few),
    at_most=-0.5,
    because="by the formula, in posterior standard deviations",
    kind="exact",
)
claim(
    "Largest bias with 8 parts, of the same ten",
    max(few),
    at_least=0.5,
    because="by the formula: either sign",
    kind="exact",
)
claim(
    "Standard deviation of averages over the posterior's, 32 parts, the first deal",
    limit(32)[1] ** 0.5 / deviation,
    near=1.19,
    within=0.01,
    because="the variance of averages is one over the sum of the precisions",
    kind="exact",
)
claim(
    "Smallest bias with 32 parts, of ten ways to deal the hours",
    min(many),
    at_least=1,
    because="two hours a part, by the formula",
    kind="exact",
)

# %% [markdown]
# ### One more round
#
# No combination of draws alone escapes this easily.
# Products of kernel density estimates {cite:p}`neiswanger2014` break down after ten dimensions or fewer {cite:p}`scott2017`.
#
# But the parts are at hand, and can be asked.
# $U = \sum_jU_j$ is a sum of $J$ numbers: send the same candidates $\theta^{(1)}, \dots, \theta^{(n)}$ to all workers, where the data already are, and let each send back its $n$ energies.
# Then home knows the energy of every candidate exactly, without a fit and without any data.
#
# ```{prf:algorithm} Consensus with a second round
# :label: alg-machines-reweight
#
# 1. Sample all parts; take their means and covariances, and multiply the fitted Gaussians: $N(\mu, \Sigma)$.
# 2. Draw candidates $\theta^{(s)}$ from Student's $t$ with this centre and shape, whose density is $q$.
# 3. Every worker computes $U_j(\theta^{(s)})$ for all of them.
# 4. Weigh candidate $s$ by $w_s = \exp\bigl(-\sum_jU_j(\theta^{(s)})\bigr)/q(\theta^{(s)})$, and average $f$ by $\sum_sw_sf(\theta^{(s)})/\sum_sw_s$.
# ```
#
# ```{prf:theorem} The second round needs no Gaussian
# :label: thm-machines-reweight
#
# If $q > 0$ wherever $\pi > 0$ and $\int\lvert f\rvert\,\pi < \infty$, then $\sum_sw_sf(\theta^{(s)})/\sum_sw_s \to \int f\,\pi$ with probability one.
# If also $\pi/q$ is bounded and $\int f^2\,\pi < \infty$, the error falls as $n^{-1/2}$.
# ```
#
# The {ref}`proof <proof-machines-reweight>` is in the appendix.
#
# This is importance sampling {cite:p}`geweke1989`: what is fitted badly now costs draws and not accuracy.
# The tails of Student's $t$ fall as a power, so that $\pi/q$ is bounded if the tails of $\pi$ fall as fast or faster, as an exponential's do.
# The weights say what the fit was worth: of $n$ candidates, $(\sum w)^2/\sum w^2$ independent draws are left {cite:p}`kong1992`.

# %%
law = gaussian_product(*moments(drawn))
proposed = candidates(law, 500, 40, seed=3)
with workers(2, processes=False) as client:
    answers = run_all(client, energies, eight, [proposed.samples] * 8)
weighed = reweight(proposed, answers)
averages = weighted_mean(weighed)[:, 0]

# %% tags=["hide-input"]
claim(
    "Mean by the second round, less the exact posterior mean",
    averages.mean() - center,
    near=0,
    standard_error=averages.std() / 40**0.5,
    because="the same draws of the eight parts, and 20,000 candidates",
)
claim(
    "Share of the candidates that are left",
    effective_share(weighed),
    at_least=0.5,
    because="eight parts are skewed, but their product is not far from a Gaussian",
)

# %% mystnb={"figure": {"caption": "Above: bias of the mean, in posterior standard deviations, against the number of parts. Orange: averages and products of fitted Gaussians, exact, for ten ways to deal the hours (dots) and their mean (line). Blue: the second round, with four standard errors. Below: the share of candidates that the weights leave.", "name": "fig-machines-bias"}, "image": {"alt": "Above, the orange line stays near zero up to eight parts, with dots on both sides of it, and rises to more than two standard deviations at thirty-two, while blue points stay at zero. Below, the share falls from 0.96 at one part to 0.77 at eight and 0.13 at thirty-two."}} tags=["hide-input"]
numbers = (1, 2, 4, 8, 16, 32)
figure, (left, right) = plt.subplots(2, 1, figsize=(5.2, 6))
biases, shares, reweighted = [], [], []
for number in numbers:
    each = [(limit(number, seed)[0] - center) / deviation for seed in range(10)]
    left.plot([number] * 10, each, ".", color=AVERAGE, ms=4)
    biases.append(sum(each) / 10)
    variance = torch.tensor([[limit(number)[1]]], dtype=DOUBLE)
    mean = torch.tensor([[limit(number)[0]]], dtype=DOUBLE)
    proposed = candidates(gaussian_product(mean, variance[None]), 400, 25, seed=number)
    answer = [energies(part, proposed.samples) for part in shards(events, number)]
    weighed = reweight(proposed, answer)
    averages = (weighted_mean(weighed)[:, 0] - center) / deviation
    reweighted.append((float(averages.mean()), 4 * float(averages.std()) / 5))
    shares.append(effective_share(weighed))
left.plot(
    numbers, biases, color=AVERAGE, label="averages, products of fits (exact bias)"
)
left.errorbar(
    numbers,
    [value for value, _ in reweighted],
    [error for _, error in reweighted],
    fmt="o",
    ms=4,
    color=WEIGHTED,
    label="second round",
)
left.axhline(0, color=TRUTH, lw=0.8)
left.set(ylabel="bias / posterior deviation", xscale="log")
right.plot(numbers, shares, "o-", color=WEIGHTED)
right.set(
    xlabel="parts $J$", ylabel="share of candidates left", xscale="log", ylim=(0, 1)
)
for axes in (left, right):
    axes.set_xticks(numbers, numbers)
    axes.minorticks_off()
left.legend()
plt.show()

# %% tags=["hide-input"]
claim(
    "Largest bias of the second round, in its standard errors, J = 1 to 32",
    max(abs(4 * value / error) for value, error in reweighted),
    at_most=5,
    errors=True,
    because="six comparisons, each of 25 independent chains",
)

# %% [markdown]
# In {numref}`fig-machines-bias` the bias of averages, orange, has either sign up to eight parts, as the hours are dealt, and reaches half a standard deviation and more.
# With more parts, which are further from Gaussian, it is positive, and at the end more than one standard deviation in each of the ten deals.
# The second round stays at zero and pays with candidates: with 32 parts about one in eight is left.
# In $d$ dimensions it is expensive: a fit that leaves the share $s$ in one coordinate leaves about $s^d$ of candidates in $d$ independent ones.
# And Student's $t$ itself costs more in more dimensions, as the next cell shows.
# Look at the share before you look at anything else.

# %% tags=["hide-input"]
claim(
    "Share of the candidates that are left with 32 parts",
    shares[-1],
    near=0.13,
    within=0.04,
    because="the last point of the figure; other deals leave from 0.08 to 0.44",
)
for dim, expected in ((1, 0.96), (10, 0.73), (100, 0.30)):
    perfect = Gaussian.standard(dim, DOUBLE)
    tried = candidates(perfect, 500, 20, seed=dim)
    claim(
        f"Share that is left where the fit is perfect, d = {dim}",
        effective_share(reweight(tried, [energies(perfect, tried.samples)])),
        near=expected,
        within=0.04,
        because="Student's t with 5 degrees of freedom for a Gaussian; measured",
    )

# %% [markdown]
# Two parts that are far apart, or a part without any event, whose density hardly falls to one side, are bad news for every method.
# Deal the examples at random, and do not cut finer than the data allow.
#
# ## When a worker dies
#
# On a hundred machines one is always about to be restarted.
# What is then lost?
#
# * *Data.* A shard travels to a worker as a part of its piece, and Dask's scheduler keeps the piece until it is done.
#   If the worker dies, the scheduler sends the piece to another one.
# * *Finished pieces.* Dask leaves a result where it was computed until somebody asks.
#   We ask at once: a result that came home is never computed again.
# * *The unfinished piece.* It begins again, with the seed of the piece, and so to the same draws; with `checkpoints` that all workers see, it goes on from its last half minute.
#
# This is tested, by processes that kill themselves in the middle of a piece.

# %%
kills = stored["kills"]

# %% tags=["hide-input"]
claim(
    "Runs in which a worker was killed",
    sum(kill["killed"] for kill in kills),
    near=20,
    within=0,
    because="stored; one process of two, in the middle of a piece",
    kind="stored",
)
claim(
    "Runs among them with the draws of a run that nothing disturbed",
    sum(kill["same_draws"] for kill in kills),
    near=20,
    within=0,
    because="bit by bit",
    kind="stored",
)
claim(
    "Pieces that were at home and were begun again, in all of them",
    sum(kill["received_and_begun_again"] for kill in kills),
    near=0,
    within=0,
    because="each start of a piece leaves a trace",
    kind="stored",
)
claim(
    "Pieces that were begun again, in all of them",
    sum(kill["begun_again"] for kill in kills),
    near=20,
    within=0,
    because="the unfinished one of the killed worker, and nothing else",
    kind="stored",
)

# %% [markdown]
# ## Bytes and seconds
#
# A shard should cost a $J$-th of the bytes, and it is easy to break this: a tensor that is a *view* of a larger one takes all of it along when it is pickled.
# So it is measured.

# %%
large = LogisticRegression(
    torch.randn(20_000, 10, generator=generator), torch.zeros(20_000), batch_size=100
)
share = serialized_size(shards(large, 8)[0]) / serialized_size(large)

# %% tags=["hide-input"]
claim(
    "Bytes of one shard of eight, over those of the posterior",
    share,
    near=1 / 8,
    within=0.02,
    because="data, and a few kilobytes that describe the model",
)

# %% tags=["hide-input"]
sizes = stored["bytes"]
show_table(
    ["what is sent (stored)", "megabytes"],
    [
        ["the posterior, whole", f"{sizes['posterior'] / 1e6:.2f}"],
        ["one shard", f"{sizes['shard'] / 1e6:.2f}"],
        ["all shards", f"{sizes['all_shards'] / 1e6:.2f}"],
        ["draws of one shard, coming home", f"{sizes['draws'] / 1e6:.2f}"],
        ["in a second, to a worker", f"{stored['bytes_per_second'] / 1e6:.0f}"],
    ],
)

# %% [markdown]
# `python -m benchmarks.consensus` samples 16 shards of a logistic regression by HMC on one worker and on two, and reads from Dask's own record how long each task computed.
# Where the load is above two, other programs take their part, and the seconds on the clock say more about them than about us.

# %% tags=["hide-input"]
rows = []
for run in stored["runs"]:
    rows.append(
        [
            str(run["workers"]),
            f"{run['seconds']:.1f}",
            f"{sum(run['compute_seconds']):.1f}",
            f"{sum(run['processor_seconds']):.1f}",
            f"{stored['runs'][0]['seconds'] / run['seconds']:.2f}",
            f"{1e3 * run['seconds_per_empty_task']:.1f}",
            f"{run['load_average']:.1f}",
        ]
    )
show_table(
    [
        "workers",
        "seconds",
        "in tasks",
        "of processors",
        "speed-up",
        "ms an empty task",
        "load",
    ],
    rows,
)
claim(
    "Runs with the same draws as on one worker, over all runs",
    sum(run["same_draws"] for run in stored["runs"]) / len(stored["runs"]),
    near=1,
    within=0,
    because="bit by bit, stored",
    kind="stored",
)

# %% [markdown]
# From these numbers follows a plan for more machines than we have.
#
# $$
# \begin{aligned}
# T(W) = {} & \underbrace{J\,(s + d)/\beta}_{\text{moving}} + \underbrace{J\,o}_{\text{overhead}} \\
# & + \underbrace{\lceil J/W\rceil\,\bar t}_{\text{computing}}
# \end{aligned}
# $$ (eq-machines-plan)
#
# with $s$ bytes of a shard and $d$ of its draws, home's rate of $\beta$ bytes a second, an overhead of $o$ seconds a task, and a mean CPU time $\bar t$ of a task.
# It assumes that home sends one shard after the other, and that machines are as fast as ours.
# For our own runs, of 16 shards, the plan is within five per cent of what was measured, on one worker and on two.

# %% mystnb={"figure": {"caption": "A hundred shards of the measured size on up to a hundred workers, by the plan: seconds in all, and the part of them that does not shrink, sending and overhead.", "name": "fig-machines-plan"}, "image": {"alt": "Log-log plot: planned seconds fall in proportion to the number of workers at first, from 29 to 3.5 at ten, and then more slowly, to 0.9 at a hundred; a flat line at 0.65 is moving and overhead."}} tags=["hide-input"]
plans = stored["plans_of_hundred"]
figure, axes = plt.subplots(figsize=(5.2, 3.2))
axes.loglog(
    [plan["workers"] for plan in plans],
    [plan["seconds"] for plan in plans],
    "o-",
    color=WEIGHTED,
    label="in all",
)
axes.loglog(
    [plan["workers"] for plan in plans],
    [plan["moving"] + plan["overhead"] for plan in plans],
    color=AVERAGE,
    label="moving and overhead",
)
axes.set(xlabel="workers $W$", ylabel="planned seconds")
axes.legend()
plt.show()
print(who_ran(stored))

# %% tags=["hide-input"]
show_table(
    ["workers", "moving", "overhead", "computing", "planned seconds", "speed-up"],
    [
        [
            str(plan["workers"]),
            *(f"{plan[key]:.2f}" for key in ("moving", "overhead", "computing")),
            f"{plan['seconds']:.2f}",
            f"{plan['speed_up']:.1f}",
        ]
        for plan in plans
    ],
)
measured = {run["workers"]: run["seconds"] for run in stored["runs"]}
ours = {plan["workers"]: plan["seconds"] for plan in stored["plans"]}
for number in (1, 2):
    claim(
        f"Planned seconds over measured ones, sixteen shards, workers: {number}",
        ours[number] / measured[number],
        near=1,
        within=0.05,
        because="stored, of a machine that did nothing else",
        kind="stored",
    )
claim(
    "Share of moving and overhead in the plan for a hundred workers",
    (plans[-1]["moving"] + plans[-1]["overhead"]) / plans[-1]["seconds"],
    at_least=0.5,
    because="computed from what is stored",
    kind="stored",
)

# %% [markdown]
# {numref}`fig-machines-plan` and the table say where the gain ends: at the time that home needs to send and to answer, which does not shrink with $W$.
# At a hundred workers that is more than half of the time, and by the plan they are 32 times as fast as one worker, not a hundred times.
# Where $\lceil J/W\rceil\bar t$ has come down to that, more machines are of no use, and data should be loaded by the workers themselves, from files, instead of sent.
#
# ## In practice
#
# * Ask first whether one machine would do.
#   Parallel chains on one posterior have no bias of combination at all; consensus is for data that cannot come together.
# * Cut no finer than you must.
#   A shard should hold enough examples that its posterior looks Gaussian; draw its marginals.
# * Deal the examples at random; and choose coordinates in which parts look Gaussian.
#   That is often the logarithm of a scale, and sometimes not: {ref}`ex-machines-coordinates`.
# * Use $\Sigma_j$ of the draws, and nothing of the prior besides: its share is in them.
# * Do the second round, if the dimension allows; if the share of candidates left is near zero, its result is worth nothing, and whether the averages were right you do not know.
# * Networks have many modes, and draws of different modes have no sensible average: do not do this to weights of networks.
# * Sampling errors of the parts, such as that of SGHMC's step size, are corrected by the second round, and by nothing else.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | a part | $\pi_j \propto p^{1/J}\prod_{i\in S_j}p(x_i \mid \theta)$, {eq}`eq-machines-shard` |
# | the posterior is their product | $U = \sum_jU_j$, {prf:ref}`lem-machines-product` |
# | Gaussian parts | $\Sigma^{-1} = \sum_j\Sigma_j^{-1}$, $\mu = \Sigma\sum_j\Sigma_j^{-1}\mu_j$, {eq}`eq-machines-product` |
# | averages | $\theta = \sum_jW_j\theta_j$, $W_j = \Sigma\Sigma_j^{-1}$, {prf:ref}`thm-machines-gaussian` |
# | the second round | $w = \exp(-\sum_jU_j)/q$, {prf:ref}`alg-machines-reweight` |
# | what it leaves | $(\sum w)^2/(n\sum w^2)$ of $n$ candidates |
# | time on $W$ workers | $J(s + d)/\beta + Jo + \lceil J/W\rceil\bar t$, {eq}`eq-machines-plan` |
#
# ## Change it
#
# * Set `PRIOR = 0.1` to `PRIOR = 1.0`: the prior is worth one example, counting it twice costs less, and the claim on the slides' weights with 32 parts shows ✗ with 0.08 in place of 0.55.
# * Set `hours = 64` to `hours = 640`, and `HMC(0.6, 6, jitter=0.4)` to `HMC(0.2, 6, jitter=0.4)`: ten times the hours for each part, which is then nearly Gaussian, and narrower, so that the longer step would be rejected.
#   The claims on the bias show ✗, for it has nearly gone, and of the candidates for 32 parts many more are left.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-machines-prior
#
# Which law has the product of the $J$ subset posteriors if every machine forgets the power and uses the whole prior?
# ```
#
# ```{solution} ex-machines-prior
# :class: dropdown
#
# $\prod_jp(\theta)\prod_{i\in S_j}p(x_i \mid \theta) = p(\theta)^{J}\prod_ip(x_i \mid \theta)$: the posterior under the prior $\propto p^J$.
# A Gaussian prior $N(0, \tau^2)$ becomes $N(0, \tau^2/J)$, and with a hundred machines everything is shrunk as by a prior a hundred times as sure of itself.
# ```
#
# ```{exercise}
# :label: ex-machines-weights
#
# Two parts have one coordinate, precisions $1$, and means $\pm m$.
# The weights are estimated from $n$ draws of each, with $\hat\sigma_j^2 = 1 + e_j$ and $\operatorname{var}(e_j) \approx 2/n$.
# How large is the error of the average's mean that comes from the weights, beside that of the $n$ draws?
# Why should each chain have its own?
# ```
#
# ```{solution} ex-machines-weights
# :class: dropdown
#
# $\hat w_1 \approx \tfrac12 + \tfrac14(e_2 - e_1)$, so the mean is off by $m(\hat w_1 - \hat w_2) = \tfrac12m(e_2 - e_1)$, of variance $\tfrac14m^2\cdot4/n = m^2/n$.
# The draws have $\tfrac14\cdot2/n = 1/(2n)$.
# With $m = 1$, parts that are two deviations apart, the weights' error is the larger one.
# Chains that share their weights share this error, and the spread between them does not show it; with weights of its own, each chain errs by itself.
# ```
#
# ```{exercise}
# :label: ex-machines-write
#
# *Write it yourself.* Write steps 2 to 4 of {prf:ref}`alg-machines-reweight`, without drawing: the candidates, their log density $\log q$ and the energies from all parts are given.
# Take care that no weight overflows.
# (No assignment treats this; the {doc}`coursework </book/practice/teaching>` has the samplers of the parts.)
#
# ~~~python
# def second_round(log_q, energies_of_parts, values):
#     """Weighted mean of the values, and the share of candidates that is left."""
#     ...
# ~~~
# ```
#
# ```{solution} ex-machines-write
# :class: dropdown
#
# The cell below has it.
# A constant in all logarithms of weights cancels in both results, so subtract the largest one before $\exp$.
# ```


# %% tags=["hide-input"]
def second_round(log_q, energies_of_parts, values):
    """Weighted mean of the values, and the share of candidates that is left."""
    log_weight = -sum(energies_of_parts) - log_q
    weight = (log_weight - log_weight.max()).exp()
    share = weight.sum() ** 2 / (weight.numel() * (weight**2).sum())
    return (weight * values).sum() / weight.sum(), share


tried = candidates(law, 500, 1, seed=3)
asked = [energies(part, tried.samples) for part in eight]
package = reweight(tried, asked)
mine = second_round(tried.statistics["log_density"], asked, tried.samples[..., 0])
claim(
    "Largest difference of mean and share from the package's",
    max(
        abs(float(mine[0]) - float(weighted_mean(package)[0, 0])),
        abs(float(mine[1]) - effective_share(package)),
    ),
    at_most=1e-9,
    because="the same formulas; rounding",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-machines-coordinates
#
# Take the draws of $\theta$ from the parts of the rare events, with equal $b_j$, and transform each to $\lambda = e^\theta$.
# Show that their averages with equal weights have the right mean and the right variance, and that averages with weights by inverse variances have too small a mean, unless all $a_j$ are equal.
# ```
#
# ```{solution} ex-machines-coordinates
# :class: dropdown
#
# The transformed draws of part $j$ have the law $\text{Gamma}(a_j, b_j)$.
# Its mean is $a_j/b_j$ and its variance $a_j/b_j^2$.
# With $b_j = b/J$ the plain average has the mean $\tfrac1J\sum_ja_jJ/b = a/b$ and the variance $\tfrac1{J^2}\sum_ja_jJ^2/b^2 = a/b^2$: both right, and even the law is, for the sum of gamma variables with one rate is a gamma variable.
# Weights $\propto 1/a_j$ give the mean $J^2/(b\sum_j1/a_j)$, which by Jensen's inequality is less than $a/b$ unless all $a_j$ are equal.
# ```
#
# ```{exercise}
# :label: ex-machines-kill
#
# Kill a worker yourself: start `workers(2)` in a notebook, sample twenty parts, find the processes by `client.run(os.getpid)`, and end one with `kill -9` from a terminal while they run.
# What do you see, and what do the draws say?
# ```
#
# ```{solution} ex-machines-kill
# :class: dropdown
#
# Little: Dask sends the pieces that were at work or waited there to another worker, and starts a new process in place of the one that is gone.
# The draws are those of the same call without the kill, which `torch.equal` confirms.
# ```
#
# ## Further reading
#
# {cite:t}`scott2016` give the algorithm, with examples up to trees; {cite:t}`neiswanger2014` the products of kernel estimates, with a proof that they become exact; {cite:t}`scott2017` compares ways to combine, and says where they fail.
# {cite:t}`rocklin2015` describes the task graphs of Dask, from before its scheduler for many machines.
# Distributed SGLD {cite:p}`ahn2014` has no parts to combine: a chain takes some steps with the data of one worker, goes on to another, and allows for the share of the data that each holds.
