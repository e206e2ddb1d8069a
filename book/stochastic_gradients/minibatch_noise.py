# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Minibatch noise
#
# A gradient from 4 of 12 examples is a random vector; this chapter finds its mean, its covariance and the shape of its law, by counting every minibatch there is.
#
# **You will learn** to
#
# * scale a minibatch gradient so that it is unbiased,
# * derive its covariance $V(\theta)$, with and without replacement, and say where and in which directions it is large,
# * turn $V$ into the diffusion $B = \tfrac12\varepsilon V$ that a sampler feels,
# * recognise when the noise is not Gaussian, and how much averaging makes it so.
#
# **You will need** means, covariances, Bayes' rule, and {doc}`/book/foundations/bayesian_learning`.

# %%
import itertools

import matplotlib.pyplot as plt
import torch

from sgmc import claim
from sgmc.figures import TRUTH, use_style
from sgmc.minibatches import Fresh
from sgmc.play import play
from sgmc.posteriors import LogisticRegression

use_style()
play()

# %% [markdown]
# ## The gradient of a posterior is a sum
#
# Let the examples $x_1, \dots, x_N$ be independent given $\theta$.
# The posterior is $\pi(\theta) \propto p(\theta)\prod_ip(x_i \mid \theta)$, and we write it as $\pi \propto e^{-U}$ with the potential
#
# $$
# U(\theta) = -\log p(\theta) - \sum_{i=1}^N\log p(x_i \mid \theta), \qquad \nabla U(\theta) = -\nabla\log p(\theta) + \sum_{i=1}^Ng_i(\theta),
# $$ (eq-posterior)
#
# where $g_i = -\nabla\log p(x_i \mid \theta)$ is what one example contributes.
# A gradient costs a pass over all $N$ examples, and a sampler wants thousands of gradients.
# So draw a *minibatch* $S$ of $n$ examples, uniformly, and let it speak for all of them:
#
# $$
# \nabla\tilde U(\theta) = -\nabla\log p(\theta) + \frac Nn\sum_{i \in S}g_i(\theta).
# $$ (eq-minibatch)
#
# The *gradient noise* is $\nabla\tilde U - \nabla U$.
# What are its mean and its covariance?
#
# ```{prf:theorem} Mean and covariance of a minibatch gradient
# :label: thm-minibatch
#
# Let $\bar g = \frac1N\sum_ig_i$ and $\Sigma_g = \frac1N\sum_i(g_i - \bar g)(g_i - \bar g)^\top$, both functions of $\theta$.
# Then $E[\nabla\tilde U] = \nabla U$, and
#
# $$
# V(\theta) = \operatorname{Cov}[\nabla\tilde U] = \begin{cases}\dfrac{N^2}n\,\Sigma_g & \text{with replacement,}\\[2ex] \dfrac{N^2}n\,\dfrac{N - n}{N - 1}\,\Sigma_g & \text{without.}\end{cases}
# $$ (eq-v)
# ```
#
# ```{prf:proof}
# *Mean.* Each of the $n$ places of the minibatch holds each example with probability $1/N$, so $E\bigl[\frac Nn\sum_{i \in S}g_i\bigr] = \frac Nn\,n\,\bar g = \sum_ig_i$.
#
# *With replacement* the $n$ places are independent with covariance $\Sigma_g$ each, so the sum has covariance $n\Sigma_g$, and $\frac{N^2}{n^2}\,n\,\Sigma_g = \frac{N^2}n\Sigma_g$.
#
# *Without replacement* two different places hold every ordered pair of different examples with the same probability, whatever $n$ is.
# So they have a covariance $\Gamma$ that depends neither on the places nor on $n$, and we may find it where $n = N$: there the sum is certain, $0 = N\Sigma_g + N(N-1)\Gamma$, hence $\Gamma = -\Sigma_g/(N-1)$.
# For any $n$ then $\operatorname{Cov}\sum_{i \in S}g_i = n\Sigma_g - n(n-1)\frac{\Sigma_g}{N-1} = n\frac{N-n}{N-1}\Sigma_g$.
# ```
#
# With the sample covariance $\hat\Sigma_g = \frac N{N-1}\Sigma_g$ the second line is $\frac{N^2}n\bigl(1 - \frac nN\bigr)\hat\Sigma_g$, the form most often seen.
#
# ## Counting every minibatch
#
# Take twelve examples of a logistic regression and minibatches of four: there are $\binom{12}4 = 495$ without replacement and $12^4 = 20{,}736$ with.
# So few can all be listed, and means and covariances over the list are exact: no sampling, no tolerance but that of rounding.

# %%
generator = torch.Generator().manual_seed(0)
inputs = torch.randn(12, 3, generator=generator, dtype=torch.float64)
targets = (torch.rand(12, generator=generator) < 0.5).double()
small = LogisticRegression(inputs, targets, prior_variance=2.0, batch_size=4)
theta = torch.tensor([[0.3, -0.5, 0.8]], dtype=torch.float64)


def all_gradients(minibatches):
    """The gradients (batches, 3) of given minibatches (batches, 4)."""
    return small.gradient_given(theta.expand(len(minibatches), -1), minibatches)


subsets = torch.tensor(list(itertools.combinations(range(12), 4)))
without = all_gradients(subsets)
with_replacement = all_gradients(torch.cartesian_prod(*[torch.arange(12)] * 4))
exact = small.gradient(theta)[0]
per_example = inputs * (torch.sigmoid(inputs @ theta[0]) - targets)[:, None]
sigma = torch.cov(per_example.T, correction=0)

# %% tags=["hide-input"]
claim(
    "Largest error of the mean over all 495 minibatches without replacement",
    (without.mean(0) - exact).abs().max(),
    at_most=1e-12,
    because="enumeration; rounding",
    kind="exact",
)
claim(
    "Largest error of the mean over all 20,736 minibatches with replacement",
    (with_replacement.mean(0) - exact).abs().max(),
    at_most=1e-12,
    because="enumeration; rounding",
    kind="exact",
)
claim(
    "Largest error of N²/n·Σ as the covariance with replacement",
    (torch.cov(with_replacement.T, correction=0) - 144 / 4 * sigma).abs().max(),
    at_most=1e-10,
    because="enumeration; rounding",
    kind="exact",
)
claim(
    "Largest error of N²/n·(N−n)/(N−1)·Σ as the covariance without",
    (torch.cov(without.T, correction=0) - 144 / 4 * 8 / 11 * sigma).abs().max(),
    at_most=1e-10,
    because="enumeration; rounding",
    kind="exact",
)
forgotten = per_example[subsets].sum(1).mean(0) - small.grad_log_prior(theta)[0]
claim(
    "Relative error of the mean gradient where N/n is forgotten",
    (forgotten - exact).norm() / exact.norm(),
    at_least=0.3,
    because=(
        "enumeration: a third of the likelihood's part is left, and all of the prior's"
    ),
    kind="exact",
)

# %% [markdown]
# ## Its size, and where it is large
#
# Now a regression with $N = 2{,}000$ and $d = 10$, two of whose features are correlated.
# {numref}`fig-noise-size` shows the trace of $V$, the mean square length of the noise.
# Against $n$ it is a line of slope $-1$ in logarithms, until without replacement it dives to zero at $n = N$.
# And it depends on $\theta$.
# At the origin the model knows nothing, and every example contributes $g_i = \pm\tfrac12x_i$; at the *mode*, the $\theta$ of largest posterior density, most examples are predicted well and contribute little.
# On the far side of the origin the examples are predicted wrongly, with confidence, and the noise is largest.
#
# In code a *rule* says which examples a chain sees: `Fresh()`, a new subset at each step, or `Fresh(replacement=True)`, a new sequence.
# Its minibatches are a pure function of the seed, the step and the chain, whatever else a run draws.

# %%
N, d = 2_000, 10
inputs = torch.randn(N, d, generator=generator, dtype=torch.float64)
inputs[:, 1] = 0.8 * inputs[:, 0] + 0.6 * inputs[:, 1]
truth = torch.linspace(-1, 1, d, dtype=torch.float64)
targets = (
    torch.rand(N, generator=generator, dtype=torch.float64)
    < torch.sigmoid(inputs @ truth)
).double()
model = LogisticRegression(inputs, targets)


def curvature(position):
    """The matrix of second derivatives of U; the prior N(0, I) adds I."""
    probability = torch.sigmoid(inputs @ position[0])
    return (inputs.T * (probability * (1 - probability))) @ inputs + torch.eye(
        d, dtype=torch.float64
    )


mode = torch.zeros(1, d, dtype=torch.float64)
for _ in range(30):  # Newton's method
    mode = mode - torch.linalg.solve(curvature(mode), model.gradient(mode)[0])


def noise_covariance(position, n, replacement=False):
    """V by the formula, (d, d)."""
    per_example = inputs * (torch.sigmoid(inputs @ position[0]) - targets)[:, None]
    factor = 1 if replacement else (N - n) / (N - 1)
    return N**2 / n * factor * torch.cov(per_example.T, correction=0)


def measured_trace(position, n, replacement, batches=4_000):
    """The trace of V from minibatches, with its standard error: the mean square
    distance from the exact gradient."""
    noisy = LogisticRegression(
        inputs, targets, batch_size=n, minibatches=Fresh(replacement)
    )
    draws = torch.cat(
        [
            noisy.stochastic_gradient(position.expand(200, -1), generator)
            for _ in range(batches // 200)
        ]
    )
    squares = (draws - model.gradient(position)).pow(2).sum(-1)
    return float(squares.mean()), float(squares.std() / batches**0.5)


# %% tags=["hide-input"]
claim(
    "Size of the gradient at the mode",
    model.gradient(mode).abs().max(),
    at_most=1e-8,
    because="Newton's method has converged",
    kind="exact",
)
for replacement in (True, False):
    value, error = measured_trace(mode, 100, replacement)
    trace = float(noise_covariance(mode, 100, replacement).trace())
    claim(
        "Measured trace of V over its formula, 100 of 2,000 "
        f"{'with' if replacement else 'without'} replacement",
        value / trace,
        near=1,
        standard_error=error / trace,
        because="4,000 minibatches",
    )
at_mode = noise_covariance(mode, 100)
claim(
    "Trace of V at the origin over that at the mode",
    noise_covariance(0 * mode, 100).trace() / at_mode.trace(),
    at_least=1.5,
    because="exact formula at both; other data sets of this kind give 1.86 to 1.96",
    kind="exact",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-noise-size", "caption": "Trace of V in a logistic regression with N = 2,000. Left: at the mode, against the size of the minibatch, with and without replacement; formulas (lines) and 1,000 minibatches each (points). Right: for n = 100, along the straight line through the origin and the mode."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.4))
sizes = torch.logspace(0, 3.3, 100).clamp(max=1_999)
counts = [2, 10, 50, 250, 1_000]
for replacement, style, marker in ((True, "-", "ko"), (False, "--", "ws")):
    traces = [
        float(noise_covariance(mode, float(n), replacement).trace()) for n in sizes
    ]
    left.loglog(
        sizes,
        traces,
        style,
        color="black",
        label="with replacement" if replacement else "without",
    )
    points = [measured_trace(mode, n, replacement, 1_000)[0] for n in counts]
    left.loglog(counts, points, marker, ms=5, markeredgecolor="black")
left.set(xlabel="size of the minibatch $n$", ylabel=r"tr $V$")
left.legend()
shares = torch.linspace(-0.5, 2, 51, dtype=torch.float64)
right.plot(
    shares,
    [float(noise_covariance(share * mode, 100).trace()) for share in shares],
    color="black",
)
right.set(xlabel="position: 0 the origin, 1 the mode", ylabel=r"tr $V$", ylim=(0, None))
plt.show()

# %% [markdown]
# ## Its shape is that of the curvature
#
# The noise is not the same in all directions, and the directions are not arbitrary.
# Suppose that the model is right, that is, that the examples were drawn from $p(x \mid \theta)$.
# Differentiate $\int p(x \mid \theta)\,dx = 1$ twice under the integral, with $g = -\nabla\log p$:
#
# $$
# E[g] = 0, \qquad E[gg^\top] = E[\nabla g] = E[-\nabla^2\log p(x \mid \theta)].
# $$ (eq-fisher)
#
# This matrix is the *Fisher information*.
# The left side is what $\Sigma_g$ estimates from $N$ examples, and the right side, times $N$, is what the likelihood contributes to $\nabla^2U$, the matrix of second derivatives.
# With the prior's small part left out and $n \ll N$,
#
# $$
# V(\theta) \approx \frac Nn\,\nabla^2U(\theta) \quad\text{near the mode of a model that fits.}
# $$ (eq-noise-curvature)
#
# Two things follow.
# The noise is large where the posterior is narrow: its covariance is $N/n$ times the *inverse* of the posterior's, which is nearly $(\nabla^2U)^{-1}$ ({numref}`fig-noise-shape`).
# And in the bulk of the posterior noise always beats signal: integration by parts gives $E_\pi[\nabla U\nabla U^\top] = E_\pi[\nabla^2U]$, so the noise's mean square is about $N/n$ times that of the gradient it hides.
# That is harmless only because steps are small and many minibatches are averaged on the way.

# %%
hessian = curvature(mode)
predicted = N / 100 * (N - 100) / (N - 1) * hessian

# %% tags=["hide-input"]
claim(
    "Relative distance of V from (N/n)(N−n)/(N−1) times the curvature, at the mode, n "
    "= 100",
    (at_mode - predicted).norm() / predicted.norm(),
    at_most=0.2,
    because=(
        "exact matrices; 2,000 examples know each entry to a few per cent, and other "
        "data sets give 0.08 to 0.12"
    ),
    kind="exact",
)
claim(
    "Trace of V over that of the curvature, n = 100",
    at_mode.trace() / hessian.trace(),
    near=19,
    within=1.5,
    because="(N − n)/n = 19; exact matrices, other data sets give 18.5 to 19.1",
)
values, vectors = torch.linalg.eigh(at_mode)
posterior_variance = torch.linalg.inv(hessian)
loudest, quietest = vectors[:, -1], vectors[:, 0]
claim(
    "Variance of the posterior in the loudest direction of the noise over that in the "
    "quietest",
    (loudest @ posterior_variance @ loudest)
    / (quietest @ posterior_variance @ quietest),
    at_most=0.5,
    because="exact matrices: where the noise is loud the posterior is narrow",
    kind="exact",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-noise-shape", "caption": "The two correlated coordinates of the regression. Left: 1,000 minibatch gradients at the mode, n = 100, with two standard deviations of N(0, V) (solid) and of the curvature times about (N − n)/n (dashed). Right: two standard deviations of the posterior. Where the noise is long the posterior is short."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.8))
angle = torch.linspace(0, 2 * torch.pi, 200, dtype=torch.float64)
circle = torch.stack([angle.cos(), angle.sin()])


def ellipse(covariance):
    """Two standard deviations of N(0, covariance) in the first two coordinates."""
    return 2 * torch.linalg.cholesky(covariance[:2, :2]) @ circle


noisy = LogisticRegression(inputs, targets, batch_size=100)
left.plot(
    *noisy.stochastic_gradient(mode.expand(1_000, -1), generator)[:, :2].T,
    ".",
    ms=2,
    color="0.6",
)
left.plot(*ellipse(at_mode), color="black", label="$V$")
left.plot(*ellipse(predicted), "--", color="black", label=r"$\frac{N - n}{n}\nabla^2U$")
left.set(
    xlabel=r"$\partial\tilde U/\partial\theta_1$",
    ylabel=r"$\partial\tilde U/\partial\theta_2$",
    aspect="equal",
)
left.legend(loc="upper left")
right.fill(
    *(ellipse(posterior_variance) + mode[0, :2, None]), color=TRUTH, alpha=0.35, lw=0
)
right.set(xlabel=r"$\theta_1$", ylabel=r"$\theta_2$", aspect="equal")
plt.show()

# %% [markdown]
# ## What a sampler feels
#
# A Hamiltonian sampler with step $\varepsilon$ kicks its momentum by $-\varepsilon\nabla\tilde U$: noise of covariance $\varepsilon^2V$ at each step.
# There are $1/\varepsilon$ steps in a unit of time and each draws its own minibatch, so the noise has covariance $\varepsilon V$ per unit of time ({prf:ref}`thm-noise-adds`).
# A Brownian motion with *diffusion* $B$ is defined by independent increments of covariance $2B$ per unit of time, hence
#
# $$
# B(\theta) = \tfrac12\varepsilon V(\theta).
# $$ (eq-diffusion)
#
# The noise vanishes with the step, although $V$ does not, because more and more minibatches average out within a unit of time.
# And $B$ is what the friction $C$ of a sampler will have to be compared with.

# %% tags=["hide-input"]
for step_size in (0.05, 0.025):
    kicks = sum(
        small.stochastic_gradient(theta.expand(20_000, -1), generator) - exact
        for _ in range(round(1 / step_size))
    )
    squares = (step_size * kicks).pow(2).sum(-1)
    diffusion = 0.5 * step_size * torch.cov(without.T, correction=0)
    claim(
        "Mean square momentum from the noise in a unit of time over tr 2B, ε = "
        f"{step_size:g}",
        squares.mean() / (2 * diffusion.trace()),
        near=1,
        standard_error=squares.std() / 20_000**0.5 / (2 * diffusion.trace()),
        because=(
            "the twelve examples at a fixed θ, B from enumeration; Monte Carlo over "
            "20,000 paths"
        ),
    )

# %% [markdown]
# ## When the central limit theorem is a lie
#
# The theory of the following chapters treats the noise as $N(0, V)$.
# A minibatch is a sum of $n$ terms, so the central limit theorem makes it nearly Gaussian — if no few terms dominate.
# How nearly, one number tells.
# The *kurtosis* of a random number $X$ is $E[(X - EX)^4]/\operatorname{Var}[X]^2$; a Gaussian has 3, and whatever is beyond 3 is called excess.
#
# ```{prf:theorem} Excess kurtosis of a minibatch
# :label: thm-kurtosis
#
# If one coordinate of the $g_i$ has kurtosis $\kappa$ over the $N$ examples, that coordinate of the noise of a minibatch of $n$, drawn with replacement, has kurtosis $3 + (\kappa - 3)/n$.
# The sum of $k$ independent such minibatches has $3 + (\kappa - 3)/(nk)$.
# ```
#
# ```{prf:proof}
# Let $X_1, \dots, X_n$ be independent with mean 0, variance $\sigma^2$ and fourth moment $\kappa\sigma^4$.
# In $E[(\sum_jX_j)^4]$ only terms survive in which no factor stands alone: $n$ terms $X_j^4$, and $3n(n-1)$ terms $X_j^2X_l^2$.
# So it is $n\kappa\sigma^4 + 3n(n-1)\sigma^4$; divide by $(n\sigma^2)^2$.
# ```
#
# So $n$ must be large *compared with $\kappa$*.
# Two things make $\kappa$ large in practice.
# If a class has probability $p \ll 1$, and the model has learned that, its examples contribute gradients near $-1$ to an intercept and all others near $p$: the kurtosis is about $1/p$.
# And if a feature is heavy-tailed a few examples dominate the sum; in the worst case a single one does, and $\kappa \approx N$.


# %%
def contributions(rare, heavy):
    """The derivatives g (N,) of a regression with one feature: an intercept, or a
    heavy-tailed feature at θ = 0."""
    g = torch.Generator().manual_seed(7)
    # the ratio of a Gaussian and a uniform number has tails like those of a Cauchy
    # distribution
    if heavy:
        feature = torch.randn(N, generator=g, dtype=torch.float64) / torch.rand(
            N, generator=g, dtype=torch.float64
        )
    else:
        feature = torch.ones(N, dtype=torch.float64)
    share = 0.01 if rare else 0.5
    y = (torch.arange(N) < share * N).double()[torch.randperm(N, generator=g)]
    return feature * (share - y)


def kurtosis(values):
    """The kurtosis of numbers (n,)."""
    centred = values - values.mean()
    return float(centred.pow(4).mean() / centred.pow(2).mean() ** 2)


cases = {
    "balanced classes": contributions(False, False),
    "a class of 1 %": contributions(True, False),
    "a heavy-tailed feature": contributions(False, True),
}
enumerated = with_replacement[:, 0]

# %% tags=["hide-input"]
claim(
    "Kurtosis of all 20,736 minibatches of 4 of 12, less its formula",
    kurtosis(enumerated) - (3 + (kurtosis(per_example[:, 0]) - 3) / 4),
    near=0,
    within=1e-10,
    because="enumeration; rounding",
    kind="exact",
)
exact_kurtosis = {name: 3 + (kurtosis(g) - 3) / 20 for name, g in cases.items()}
claim(
    "Kurtosis of minibatches of 20 from balanced classes",
    exact_kurtosis["balanced classes"],
    near=2.9,
    within=1e-6,
    because="formula",
    kind="exact",
)
claim(
    "The same where one class has 1 % of the examples",
    exact_kurtosis["a class of 1 %"],
    at_least=7.5,
    because="formula: 3 + 95/20",
)
claim(
    "The same where a feature is heavy-tailed",
    exact_kurtosis["a heavy-tailed feature"],
    at_least=10,
    because="formula",
)
draws = {
    name: N
    / 20
    * (g[torch.randint(N, (40_000, 20), generator=generator)].sum(-1) - 20 * g.mean())
    for name, g in cases.items()
}
rare = draws["a class of 1 %"]
for kicks in (1, 10):
    sums = rare.reshape(-1, kicks).sum(-1)
    fourth = (
        sums / (kicks * N**2 / 20 * cases["a class of 1 %"].var(correction=0)).sqrt()
    ).pow(4)
    claim(
        "Measured kurtosis with a class of 1 %, "
        f"{'one minibatch' if kicks == 1 else 'the sum of ten minibatches'} of 20",
        fourth.mean(),
        near=round(3 + (kurtosis(cases["a class of 1 %"]) - 3) / (20 * kicks), 3),
        standard_error=fourth.std() / len(fourth) ** 0.5,
        because=f"formula; {len(fourth):,} sums",
    )

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-noise-quantiles", "caption": "Left: quantiles of the standardised noise of minibatches of 20 against those of a Gaussian (grey); a bend at an end is a tail that N(0, V) does not have, steps are a law that takes few values. Right: the excess kurtosis falls as 1/n, by the exact formula; below the grey line, at 0.1, the noise is Gaussian for most purposes."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.6))
levels = torch.linspace(0.0005, 0.9995, 500, dtype=torch.float64)
normal = 2**0.5 * torch.special.erfinv(2 * levels - 1)
left.plot(normal, normal, color=TRUTH, lw=3, zorder=0)
for (name, values), style in zip(draws.items(), ("-", "--", ":"), strict=True):
    left.plot(
        normal,
        (values / values.std()).quantile(levels),
        style,
        label=name,
        color="black",
    )
    if name != "balanced classes":
        right.loglog(
            [1, N],
            [kurtosis(cases[name]) - 3, (kurtosis(cases[name]) - 3) / N],
            style,
            color="black",
            label=name,
        )
right.axhline(0.1, color=TRUTH, zorder=0)
left.set(xlabel="quantile of a standard Gaussian", ylabel="quantile of the noise")
left.legend()
right.set(xlabel="size of the minibatch $n$", ylabel="excess kurtosis")
right.legend()
plt.show()

# %% [markdown]
# A sampler that moves little in $k$ steps feels the sum of $k$ minibatches, and by {prf:ref}`thm-kurtosis` that sum is Gaussian as soon as $nk \gg \kappa$.
# So small steps repair the law of the noise as they repair its size.
# Where they are not small, an example that is drawn once in a hundred steps and then counts a hundredfold is felt as a jolt.
#
# There is a second, quieter lie in "$N(0, V)$": that $V$ is a constant.
# {numref}`fig-noise-size` shows that it is not, and a noise estimate that was right at the mode is too small in the tails.
#
# ## In practice
#
# * Scale the likelihood by $N/n$ and **not** the prior.
# * Draw a fresh minibatch at every gradient, and for every chain its own.
#   A minibatch that is held for a whole trajectory adds up its error instead of averaging it, see {ref}`ex-naive-minibatch`.
# * Without replacement is never worse; with $n \ll N$ it makes no difference.
# * Compare $n$ with the kurtosis of the per-example gradients, or with the inverse of the rarest class's share.
# * Check a minibatch gradient once by enumeration on a tiny data set.
#   It finds a forgotten $N/n$ at once.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-noise-duplicates
#
# To draw a small minibatch without replacement, the package draws a sequence of examples with replacement, a little longer than $n$, and keeps the first $n$ different ones.
# A sequence that has fewer is thrown away, and a new one drawn.
# Show that every subset of size $n$ is equally likely.
# ```
#
# ```{solution} ex-noise-duplicates
# :class: dropdown
#
# The procedure treats all examples alike: renaming the examples by a permutation renames the result by the same permutation, and leaves its probability as it is.
# (Whether a sequence is thrown away depends on how many different examples it has, and not on which.)
# So all subsets of one size, which permutations carry into each other, have the same probability.
# {prf:ref}`thm-redraw` has another proof, which also says that the procedure ends.
# ```
#
# ```{exercise}
# :label: ex-noise-prior
#
# What goes wrong if the gradient of a Gaussian prior is scaled by $N/n$ too?
# ```
#
# ```{solution} ex-noise-prior
# :class: dropdown
#
# The estimate is unbiased, but for another posterior, whose prior is raised to the power $N/n$.
# A prior variance $\tau^2$ has become $\tau^2n/N$, and the smaller the minibatch the more everything shrinks to zero.
# ```
#
# ```{exercise}
# :label: ex-noise-half
#
# At which $n$ has sampling without replacement half the variance of sampling with?
# ```
#
# ```{solution} ex-noise-half
# :class: dropdown
#
# $(N - n)/(N - 1) = \tfrac12$ at $n = (N + 1)/2$: only minibatches of half the data gain a factor of two.
# ```
#
# ```{exercise}
# :label: ex-noise-control
#
# Compute $\nabla U(\theta_0)$ once, at a fixed $\theta_0$ near the mode, and estimate $\nabla U(\theta)$ by replacing $g_i(\theta)$ in {eq}`eq-minibatch` by $g_i(\theta) - g_i(\theta_0)$ and adding $\sum_ig_i(\theta_0)$.
# Is this unbiased?
# What is its noise for $\theta$ near $\theta_0$?
# Try it on the regression of this chapter.
# ```
#
# ````{solution} ex-noise-control
# :class: dropdown
#
# It is unbiased by {prf:ref}`thm-minibatch`, applied to the differences.
# Its $\Sigma_g$ is the covariance of $g_i(\theta) - g_i(\theta_0)$, which is of the order of $\lvert\theta - \theta_0\rvert^2$: the noise vanishes at $\theta_0$, and in the bulk of a posterior of width $1/\sqrt N$ the factor $N^2$ is reduced to $N$.
# Such a *control variate* costs a second per-example gradient at every step, and helps only as far as the posterior is narrow.
# With
#
# ```python
# theta = mode[0] + torch.linalg.cholesky(posterior_variance) @ torch.randn(d, dtype=torch.float64)
# difference = inputs * (torch.sigmoid(inputs @ theta) - torch.sigmoid(inputs @ mode[0]))[:, None]
# noise_covariance(theta[None], 100, True).trace() / (N**2 / 100 * torch.cov(difference.T, correction=0).trace())
# ```
#
# the noise is between ninety and two hundred times smaller in six draws from the Gaussian approximation of the posterior.
# ````
#
# ```{exercise}
# :label: ex-noise-linear
#
# A sampler on a Gaussian target is a linear recursion $z' = Fz + \xi$, with noises $\xi$ that are independent of the past.
# Which part of its stationary law is right although the $\xi$ are not Gaussian?
# ```
#
# ```{solution} ex-noise-linear
# :class: dropdown
#
# Mean and covariance: the stationary covariance solves $\Sigma = F\Sigma F^\top + \operatorname{Cov}\xi$, in which only the covariance of the noise appears.
# Higher moments are wrong; the excess kurtosis of the chain is a weighted average of that of many $\xi$, hence smaller, and the smaller the step the more of them it averages.
# ```
#
# ## Further reading
#
# {cite:t}`ahn2012` build a sampler on the kinship of noise and curvature, {cite:t}`mandt2017` read the noise of SGD itself as a sampler's, {cite:t}`brosse2018` and {cite:t}`nemeth2021` say how it grows with $N$ and how control variates tame it.
