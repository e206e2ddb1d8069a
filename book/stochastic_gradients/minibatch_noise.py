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
# A gradient from 5 of 50 examples is a random vector; this chapter finds its mean, its covariance, and the shape of its law, by counting every minibatch there is.
#
# **You will learn** to
#
# * scale a minibatch gradient so that it is unbiased,
# * derive its covariance $V(\theta)$, with and without replacement,
# * turn $V$ into the diffusion $B = \tfrac12\varepsilon V$ that a sampler feels,
# * recognise when the noise is not Gaussian.
#
# **You will need** means, covariances, and Bayes' rule.

# %%
import itertools

import matplotlib.pyplot as plt
import torch

from sgmc import claim
from sgmc.figures import COLOURS, TRUTH, use_style
from sgmc.posteriors import LogisticRegression

use_style()

# %% [markdown]
# ## The gradient of a posterior is a sum
#
# Let $x_1, \dots, x_N$ be independent given $\theta$. The posterior is $\pi(\theta) \propto p(\theta)\prod_ip(x_i \mid \theta)$, and its potential and gradient are
#
# $$
# U(\theta) = -\log p(\theta) - \sum_{i=1}^N\log p(x_i \mid \theta), \qquad \nabla U(\theta) = -\nabla\log p(\theta) + \sum_{i=1}^Ng_i(\theta),
# $$ (eq-posterior)
#
# with $g_i = -\nabla\log p(x_i \mid \theta)$. Draw a minibatch $S$ of $n$ examples, uniformly, and put
#
# $$
# \nabla\tilde U(\theta) = -\nabla\log p(\theta) + \frac Nn\sum_{i \in S}g_i(\theta).
# $$ (eq-minibatch)
#
# ```{prf:theorem} Mean and covariance of a minibatch gradient
# :label: thm-minibatch
#
# Let $\bar g = \frac1N\sum_ig_i$ and $\Sigma = \frac1N\sum_i(g_i - \bar g)(g_i - \bar g)^\top$. Then $E[\nabla\tilde U] = \nabla U$, and
#
# $$
# V(\theta) = \operatorname{Cov}[\nabla\tilde U] = \begin{cases}\dfrac{N^2}n\,\Sigma & \text{with replacement,}\\[2ex] \dfrac{N^2}n\,\dfrac{N - n}{N - 1}\,\Sigma & \text{without.}\end{cases}
# $$ (eq-v)
# ```
#
# ```{prf:proof}
# *Mean.* Each place of the minibatch holds each example with probability $1/N$, so $E\frac Nn\sum_{S}g_i = \frac Nn\,n\,\bar g = \sum_ig_i$.
#
# *With replacement* the $n$ places are independent with covariance $\Sigma$ each, and $\frac{N^2}{n^2}\,n\,\Sigma = \frac{N^2}n\Sigma$.
#
# *Without replacement* two different places have a covariance $\Gamma$, the same for every pair. If $n = N$ the sum is certain: $0 = N\Sigma + N(N-1)\Gamma$, so $\Gamma = -\Sigma/(N-1)$. This does not depend on $n$. Then $\operatorname{Cov}\sum_Sg_i = n\Sigma - n(n-1)\frac{\Sigma}{N-1} = n\frac{N-n}{N-1}\Sigma$.
# ```
#
# With the sample covariance $S_{N-1} = \frac N{N-1}\Sigma$ the second line is $\frac{N^2}n(1 - \frac nN)S_{N-1}$, the form most often seen.
# Note what the formula says: the noise grows as $N^2$ while the gradient grows as $N$.
#
# ## Counting every minibatch
#
# Twelve examples of a logistic regression and minibatches of four: there are $\binom{12}4 = 495$ without replacement and $12^4 = 20{,}736$ with. No sampling, no tolerance.

# %%
generator = torch.Generator().manual_seed(0)
inputs = torch.randn(12, 3, generator=generator, dtype=torch.float64)
targets = (torch.rand(12, generator=generator) < 0.5).double()
small = LogisticRegression(inputs, targets, prior_variance=2.0, batch_size=4)
theta = torch.tensor([[0.3, -0.5, 0.8]], dtype=torch.float64)


def all_gradients(indices):
    """The minibatch gradients (batches, 3) for given minibatches (batches, 4), by the package's own code."""
    return small._gradient(theta.expand(len(indices), -1), small.minibatch(indices), 12 / 4)


without = all_gradients(torch.tensor(list(itertools.combinations(range(12), 4))))
with_replacement = all_gradients(torch.cartesian_prod(*[torch.arange(12)] * 4))
exact = small.gradient(theta)[0]
per_example = inputs * (torch.sigmoid(inputs @ theta[0]) - targets)[:, None]
sigma = torch.cov(per_example.T, correction=0)
claim(
    "Largest error of the mean over all 495 minibatches without replacement",
    (without.mean(0) - exact).abs().max(),
    at_most=1e-12,
    because="enumeration; rounding",
)
claim(
    "Largest error of the mean over all 20,736 minibatches with replacement",
    (with_replacement.mean(0) - exact).abs().max(),
    at_most=1e-12,
    because="enumeration; rounding",
)
claim(
    "Largest error of N²/n·Σ as the covariance with replacement",
    (torch.cov(with_replacement.T, correction=0) - 144 / 4 * sigma).abs().max(),
    at_most=1e-10,
    because="enumeration; rounding",
)
claim(
    "Largest error of N²/n·(N−n)/(N−1)·Σ as the covariance without",
    (torch.cov(without.T, correction=0) - 144 / 4 * 8 / 11 * sigma).abs().max(),
    at_most=1e-10,
    because="enumeration; rounding",
)
forgotten = small._gradient(theta.expand(495, -1), small.minibatch(torch.tensor(list(itertools.combinations(range(12), 4)))), 1.0).mean(0)
claim(
    "Relative error of the mean gradient where N/n is forgotten",
    (forgotten - exact).norm() / exact.norm(),
    at_least=0.3,
    because="enumeration: a third of the likelihood's part is left",
)

# %% [markdown]
# ## Its size, and where it is large
#
# Now a regression with $N = 2{,}000$ and $d = 10$. The trace of $V$ against $n$ is a line of slope $-1$ in logarithms, until without replacement it dives to zero at $n = N$.
# Away from the mode the noise is larger, because the per-example gradients disagree more: $V$ depends on $\theta$.

# %%
N, d = 2_000, 10
inputs = torch.randn(N, d, generator=generator, dtype=torch.float64)
truth = torch.randn(d, generator=generator, dtype=torch.float64)
targets = (torch.rand(N, generator=generator, dtype=torch.float64) < torch.sigmoid(inputs @ truth)).double()
model = LogisticRegression(inputs, targets)
mode = torch.zeros(1, d, dtype=torch.float64)
for _ in range(30):  # Newton's method
    hessian = torch.autograd.functional.hessian(lambda x: model.energy(x[None]).sum(), mode[0])
    mode = mode - torch.linalg.solve(hessian, model.gradient(mode)[0])


def noise_trace(position, n, replacement):
    """The trace of V from the formula."""
    residual = torch.sigmoid(inputs @ position[0]) - targets
    sigma = torch.cov((inputs * residual[:, None]).T, correction=0)
    return float(N**2 / n * (1 if replacement else (N - n) / (N - 1)) * sigma.trace())


def measured_trace(position, n, replacement, batches=4_000):
    """The same from minibatches, with its standard error: the mean square distance from the exact gradient."""
    noisy = LogisticRegression(inputs, targets, batch_size=n, replacement=replacement)
    draws = torch.cat([noisy.stochastic_gradient(position.expand(200, -1), generator) for _ in range(batches // 200)])
    squares = (draws - model.gradient(position)).pow(2).sum(-1)
    return float(squares.mean()), float(squares.std() / batches**0.5)


claim("Size of the gradient at the mode", model.gradient(mode).abs().max(), at_most=1e-8, because="Newton's method has converged")
for replacement in (True, False):
    value, error = measured_trace(mode, 100, replacement)
    claim(
        f"Measured trace of V over its formula, 100 of 2,000 {'with' if replacement else 'without'} replacement",
        value / noise_trace(mode, 100, replacement),
        near=1,
        standard_error=error / noise_trace(mode, 100, replacement),
        because="4,000 minibatches",
    )
claim(
    "Trace of V at the origin over that at the mode",
    noise_trace(torch.zeros_like(mode), 100, False) / noise_trace(mode, 100, False),
    at_least=1.5,
    because="exact formula at both",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-noise-size", "caption": "Trace of V at the mode of a logistic regression with N = 2,000 against the size of the minibatch: formulas (lines) and 1,000 minibatches each (points)."}}
figure, axes = plt.subplots()
sizes = torch.logspace(0, 3.3, 100)
for replacement, style, marker in ((True, "-", "o"), (False, "--", "s")):
    axes.loglog(
        sizes,
        [noise_trace(mode, float(n), replacement) for n in sizes.clamp(max=1_999)],
        style,
        color=COLOURS["SGLD"],
        label="with replacement" if replacement else "without",
    )
    counts = [2, 10, 50, 250, 1_000]
    axes.loglog(counts, [measured_trace(mode, n, replacement, 1_000)[0] for n in counts], marker, ms=5, color=COLOURS["SGLD"])
axes.set(xlabel="size of the minibatch $n$", ylabel=r"tr $V$")
axes.legend()
plt.show()

# %% [markdown]
# ## What a sampler feels
#
# A sampler with step $\varepsilon$ adds $-\varepsilon\nabla\tilde U$ to its momentum: noise of covariance $\varepsilon^2V$ at each step, $\varepsilon V$ per unit of time.
# A Brownian motion with diffusion $B$ has covariance $2B$ per unit of time, hence
#
# $$
# B(\theta) = \tfrac12\varepsilon V(\theta).
# $$ (eq-diffusion)
#
# Two limits follow. At fixed $V$ the noise vanishes with the step, because more and more minibatches average out within a unit of time. And at fixed $\varepsilon$ it must be compared with the friction $C$ of the sampler, not with the gradient.
#
# ## When the central limit theorem is a lie
#
# The theory of the following chapters treats the noise as $N(0, V)$. A minibatch is a sum of $n$ terms, so it is nearly Gaussian — if no single term dominates.
# Let one class be rare and one feature heavy-tailed, and it is not.


# %%
def standardised_noise(n, heavy, batches=4_000):
    """One coordinate of the gradient noise of a regression, divided by its exact standard deviation."""
    g = torch.Generator().manual_seed(7)
    x = torch.randn(N, 1, generator=g, dtype=torch.float64)
    if heavy:
        x = x / torch.rand(N, 1, generator=g, dtype=torch.float64)  # tails like those of a Cauchy distribution
    y = (torch.rand(N, generator=g) < (0.01 if heavy else 0.5)).double()
    noisy = LogisticRegression(x, y, batch_size=n, replacement=True)
    position = torch.tensor([[-0.5 if heavy else 0.0]], dtype=torch.float64)
    draws = torch.cat([noisy.stochastic_gradient(position.expand(500, -1), g) for _ in range(batches // 500)])[:, 0]
    residual = x[:, 0] * (torch.sigmoid(x[:, 0] * position[0, 0]) - y)
    return (draws - noisy.gradient(position)[0, 0]) / (N * residual.std(correction=0) / n**0.5)


cases = {
    "balanced, n = 20": standardised_noise(20, False),
    "rare class, heavy tails, n = 20": standardised_noise(20, True),
    "rare class, heavy tails, n = 1,000": standardised_noise(1_000, True),
}
kurtosis = {name: float(values.pow(4).mean()) for name, values in cases.items()}
claim(
    "Fourth moment of the noise with 20 balanced examples, where a Gaussian has 3",
    kurtosis["balanced, n = 20"],
    near=3,
    within=0.6,
    because="4,000 minibatches have a standard error of 0.15",
)
claim(
    "Fourth moment with 20 examples of a rare class with heavy tails",
    kurtosis["rare class, heavy tails, n = 20"],
    at_least=6,
    because="the measured value is several times 3",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-noise-quantiles", "caption": "Quantiles of standardised gradient noise against those of a Gaussian (grey). A bend at the ends is a tail that N(0, V) does not have."}}
figure, axes = plt.subplots()
levels = torch.linspace(0.0005, 0.9995, 500, dtype=torch.float64)
normal = 2**0.5 * torch.special.erfinv(2 * levels - 1)
for (name, values), style in zip(cases.items(), ("-", "-", "--"), strict=True):
    axes.plot(normal, values.quantile(levels), style, label=name, color=COLOURS["SGHMC"] if "rare" in name else COLOURS["HMC"])
axes.plot(normal, normal, color=TRUTH, zorder=0)
axes.set(xlabel="quantile of a standard Gaussian", ylabel="quantile of the noise")
axes.legend()
plt.show()

# %% [markdown]
# A sampler adds up many minibatches before it has moved far, and that sum is more Gaussian than one of them; but a rare example that arrives once in a hundred steps with a hundred times the weight is felt as a jolt.
#
# ## In practice
#
# How to build a minibatch gradient:
#
# * Scale the likelihood by $N/n$ and **not** the prior.
# * Draw a fresh minibatch at every gradient, and for every chain its own. A minibatch held for a whole trajectory makes the noise coherent.
# * Without replacement is never worse; with $n \ll N$ it makes no difference.
# * Check it once by enumeration on a tiny data set.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-noise-duplicates
#
# To draw without replacement, the package draws with replacement and redraws repeated indices until none is left. Show that every subset of size $n$ is equally likely.
# ```
#
# ```{solution} ex-noise-duplicates
# :class: dropdown
#
# The procedure treats all examples alike: renaming the examples by a permutation renames the result by the same permutation. So all subsets of one size, which permutations carry into each other, have the same probability.
# ```
#
# ```{exercise}
# :label: ex-noise-prior
#
# What goes wrong if the prior's gradient is scaled by $N/n$ too?
# ```
#
# ```{solution} ex-noise-prior
# :class: dropdown
#
# The chain samples a posterior with the prior raised to the power $N/n$: a prior variance $n/N$ times too small.
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
# ## Further reading
#
# {cite:t}`mandt2017` treat the noise of SGD as a sampler's, {cite:t}`brosse2018` and {cite:t}`nemeth2021` say how it grows with $N$ and how control variates tame it.
