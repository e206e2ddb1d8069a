# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Minibatch noise
#
# ```{div} page-head
# Level: first course · Reading: about 75 minutes, without the exercises · Running: about 10 seconds
# ```
#
# ```{index} ! batch size, ! minibatch, ! gradient noise
# ```
#
# A gradient from 4 of 12 examples is a random vector; this chapter finds its mean, its covariance and the shape of its {term}`law`, by listing every minibatch there is.
#
# **You will learn** to
#
# * scale a minibatch gradient so that it is unbiased,
# * derive its covariance $V(\theta)$, with and without replacement, and say where and in which directions it is large,
# * turn $V$ into the diffusion $B = \tfrac12\varepsilon V$ that a sampler feels,
# * recognise when the noise is not Gaussian, and how much averaging makes it so.
#
# **You will need** means, covariances, Bayes' rule, and {doc}`/book/tutorial/bayesian_learning`.

# %%
import itertools

import matplotlib.pyplot as plt
import torch

from booklib.claims import claim
from booklib.diagnostics import expectation
from booklib.figures import TRUTH, use_style
from booklib.play import play
from sgmc.minibatches import Fresh
from sgmc.models import control_variates
from sgmc.posteriors import LogisticRegression
from sgmc.targets import DoubleWell

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## The gradient of a posterior is a sum
#
# Let the examples $x_1, \dots, x_N$ be independent given $\theta$.
# The {term}`posterior` is the {term}`prior` $p(\theta)$ times the {term}`likelihood`, $\pi(\theta) \propto p(\theta)\prod_ip(x_i \mid \theta)$.
# We write it as $\pi \propto e^{-U}$ with the potential
#
# $$
# \begin{aligned}
# U(\theta) &= -\log p(\theta)\\
# &\quad - \sum_{i=1}^N\log p(x_i \mid \theta),\\
# \nabla U(\theta) &= -\nabla\log p(\theta) + \sum_{i=1}^Ng_i(\theta),
# \end{aligned}
# $$ (eq-posterior)
#
# where $g_i = -\nabla\log p(x_i \mid \theta)$ is what one example contributes.
# A gradient costs a pass over all $N$ examples, and a sampler wants thousands of gradients.
# So draw a {term}`minibatch` $S$ of $n$ examples, uniformly, and let it speak for all of them:
#
# $$
# \nabla\tilde U(\theta) = -\nabla\log p(\theta) + \frac Nn\sum_{i \in S}g_i(\theta).
# $$ (eq-minibatch)
#
# The {term}`gradient noise` is $\nabla\tilde U - \nabla U$.
#
# Before we calculate, look.
# Take twelve examples of a logistic regression and minibatches of four: there are $\binom{12}4 = 495$ of them, few enough to list them all.
# {numref}`fig-noise-idea` shows what each of them takes for the gradient.

# %%
generator = torch.Generator().manual_seed(0)
inputs = torch.randn(12, 3, generator=generator, dtype=torch.float64)
targets = (torch.rand(12, generator=generator) < 0.5).double()
small = LogisticRegression(inputs, targets, prior_variance=2.0, batch_size=4)
theta = torch.tensor([[0.3, -0.5, 0.8]], dtype=torch.float64)
exact = small.gradient(theta)[0]


def all_gradients(minibatches):
    """The gradients (batches, 3) of given minibatches (batches, 4)."""
    return small.gradient_given(theta.expand(len(minibatches), -1), minibatches)


subsets = torch.tensor(list(itertools.combinations(range(12), 4)))
without = all_gradients(subsets)

# %% mystnb={"figure": {"caption": "Two coordinates of the gradients that all 495 minibatches of 4 of 12 examples give at one $\\theta$ (dots), and the gradient from all 12 (arrow and cross). The ellipse is two standard deviations of a Gaussian with the covariance of the dots.", "name": "fig-noise-idea"}, "image": {"alt": "A short arrow leads from the origin to a cross. Hundreds of dots surround the cross, in a flat and slanting cloud that is about five times as wide as the arrow is long."}} tags=["hide-input"]
angle = torch.linspace(0, 2 * torch.pi, 200, dtype=torch.float64)
circle = torch.stack([angle.cos(), angle.sin()])


def ellipse(covariance):
    """Two standard deviations of N(0, covariance) in the first two coordinates."""
    return 2 * torch.linalg.cholesky(covariance[:2, :2]) @ circle


figure, axes = plt.subplots(figsize=(5.0, 2.7))
axes.plot(*without[:, :2].T, ".", ms=4, color="0.65")
axes.plot(*(ellipse(torch.cov(without.T)) + exact[:2, None]), color="black", lw=1)
axes.plot(*exact[:2], "kx", ms=9, mew=2)
axes.annotate("", exact[:2], (0, 0), arrowprops={"arrowstyle": "->", "lw": 1.5})
axes.set(
    xlabel=r"$\partial\tilde U/\partial\theta_1$",
    ylabel=r"$\partial\tilde U/\partial\theta_2$",
    aspect="equal",
)
plt.show()

# %% [markdown]
# In {numref}`fig-noise-idea` the dots surround the cross.
# They are right on average, and each alone may be far out: in the root mean square, by nine tenths of the length of the true gradient.

# %% tags=["hide-input"]
claim(
    "Root mean square distance of the 495 from the exact gradient, over its length",
    (without - exact).pow(2).sum(-1).mean().sqrt() / exact.norm(),
    near=0.94,
    within=0.01,
    because="enumeration",
    kind="exact",
)

# %% [markdown]
# Where is the middle of this cloud, and what is its shape?
#
# ```{prf:theorem} Mean and covariance of a minibatch gradient
# :label: thm-minibatch
#
# Let $\bar g = \frac1N\sum_ig_i$ and $\Sigma_g = \frac1N\sum_i(g_i - \bar g)(g_i - \bar g)^\top$, both functions of $\theta$.
# Then $E[\nabla\tilde U] = \nabla U$, and $V(\theta) = \operatorname{Cov}[\nabla\tilde U]$ is, with replacement and without,
#
# $$
# \begin{aligned}
# V_{\text{with}} &= \frac{N^2}n\,\Sigma_g,\\
# V_{\text{without}} &= \frac{N^2}n\,\frac{N - n}{N - 1}\,\Sigma_g.
# \end{aligned}
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
# The list of all minibatches tests the theorem without any chance in it.
# With replacement there are $12^4 = 20{,}736$ sequences of four, and they too can be listed.
# Means and covariances over a complete list are exact, so the only tolerance is that of rounding.

# %%
with_replacement = all_gradients(torch.cartesian_prod(*[torch.arange(12)] * 4))
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


# %% tags=["hide-input"]
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


# %% mystnb={"figure": {"caption": "Trace of V in a logistic regression with N = 2,000. Above: at the mode, against the size of the minibatch, with and without replacement; formulas (lines) and 1,000 minibatches each (points). Below: for n = 100, along the straight line through the origin and the mode.", "name": "fig-noise-size"}, "image": {"alt": "Above, two falling lines that coincide up to a few hundred examples; then the one without replacement drops away, towards zero at 2,000. Points lie on both. Below, a curve that falls steeply from the left, passes the origin and is flat around the mode."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(2, 1, figsize=(5.0, 5.8))
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
# Against $n$ the trace in {numref}`fig-noise-size` is a line of slope $-1$ in logarithms, until without replacement it dives to zero at $n = N$.
# And it depends on $\theta$, as the lower panel shows.
# At the origin the model knows nothing, and every example contributes $g_i = \pm\tfrac12x_i$; at the *mode*, the $\theta$ of largest posterior density, most examples are predicted well and contribute little.
# On the far side of the origin most examples are predicted wrongly, with confidence, and the noise is largest.

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
    near=1.9,
    within=0.15,
    because="exact formula at both; other data sets of this kind give 1.80 to 1.96",
    kind="exact",
)
along_the_line = [noise_covariance(share * mode, 100).trace() for share in (-0.5, 0, 1)]
claim(
    "It falls from minus half the mode to the origin, and from there to the mode",
    bool(along_the_line[0] > along_the_line[1] > along_the_line[2]),
    because="exact formula at all three",
    kind="exact",
)

# %% [markdown]
# ## Its shape is that of the curvature
#
# The noise is not the same in all directions, and the directions are not arbitrary.
# Suppose that the model is right, that is, that the examples were drawn from $p(x \mid \theta)$.
# Write $g = -\nabla\log p$, so that $\nabla p = -p\,g$.
# Differentiate $\int p\,dx = 1$ under the integral: $\int p\,g\,dx = 0$.
# Differentiate that once more: $\int(-p\,gg^\top + p\,\nabla g)\,dx = 0$.
# As expectations these two are
#
# $$
# \begin{aligned}
# E[g] &= 0,\\
# E[gg^\top] &= E[\nabla g] = E[-\nabla^2\log p].
# \end{aligned}
# $$ (eq-fisher)
#
# This matrix is the *Fisher information*.
# Its left side, $E[gg^\top]$, is what $\Sigma_g$ estimates from $N$ examples.
# Its right side, times $N$, is what the likelihood contributes to $\nabla^2U$, the matrix of second derivatives of $U$.
# We call $\nabla^2U$ the *curvature*.
# Leave out the prior's small part, and let $n \ll N$; then, near the mode of a model that fits, {eq}`eq-v` becomes
#
# $$
# V(\theta) \approx \frac Nn\,\nabla^2U(\theta).
# $$ (eq-noise-curvature)
#
# So the noise is large in those directions in which the posterior is narrow: the covariance of the noise is $N/n$ times the *inverse* of the posterior's covariance, which is nearly $(\nabla^2U)^{-1}$.
# {numref}`fig-noise-shape` draws the two for the first two coordinates, which are the correlated ones.

# %%
hessian = curvature(mode)
predicted = N / 100 * (N - 100) / (N - 1) * hessian
values, vectors = torch.linalg.eigh(at_mode)
posterior_variance = torch.linalg.inv(hessian)
loudest, quietest = vectors[:, -1], vectors[:, 0]

# %% mystnb={"figure": {"caption": "The two correlated coordinates of the regression. Above: 1,000 minibatch gradients at the mode, $n = 100$, with two standard deviations of $N(0, V)$ (solid) and of the curvature times about $(N - n)/n$ (dashed). Below: two standard deviations of the posterior. Where the noise is long the posterior is short.", "name": "fig-noise-shape"}, "image": {"alt": "Above, a cloud of dots that slants upwards, with two ellipses that nearly coincide around it. Below, a grey ellipse that slants downwards."}} tags=["hide-input"]
figure, (above, below) = plt.subplots(2, 1, figsize=(4.6, 6.6))
noisy = LogisticRegression(inputs, targets, batch_size=100)
above.plot(
    *noisy.stochastic_gradient(mode.expand(1_000, -1), generator)[:, :2].T,
    ".",
    ms=2,
    color="0.6",
)
above.plot(*ellipse(at_mode), color="black", label="$V$")
above.plot(
    *ellipse(predicted), "--", color="black", label=r"$\frac{N - n}{n}\nabla^2U$"
)
above.set(
    xlabel=r"$\partial\tilde U/\partial\theta_1$",
    ylabel=r"$\partial\tilde U/\partial\theta_2$",
    aspect="equal",
)
above.legend(loc="upper left", borderaxespad=0)
above.margins(0.12)
below.fill(
    *(ellipse(posterior_variance) + mode[0, :2, None]), color=TRUTH, alpha=0.35, lw=0
)
below.set(xlabel=r"$\theta_1$", ylabel=r"$\theta_2$", aspect="equal")
plt.show()

# %% [markdown]
# In {numref}`fig-noise-shape` the two black ellipses, the noise and the curvature, nearly coincide.
# The grey one, the posterior, is crossed with them: the long axis of one lies along the short axis of the other.

# %% tags=["hide-input"]
claim(
    "Relative distance of V from (N/n)(N−n)/(N−1) times the curvature, at the mode, n "
    "= 100",
    (at_mode - predicted).norm() / predicted.norm(),
    at_most=0.15,
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
    within=1,
    because="(N − n)/n = 19; exact matrices, other data sets give 18.5 to 19.1",
    kind="exact",
)

claim(
    "Variance of the posterior in the loudest direction of the noise over that in the "
    "quietest",
    (loudest @ posterior_variance @ loudest)
    / (quietest @ posterior_variance @ quietest),
    at_most=0.5,
    because="exact matrices: where the noise is loud the posterior is narrow",
    kind="exact",
)

# %% [markdown]
# ## Louder than the signal
#
# How long is the noise, beside the gradient itself?
# Where the posterior has its mass the noise is the louder of the two.
# To see it, integrate by parts.
# Because $\pi \propto e^{-U}$ we have $\partial_j\pi = -\pi\,\partial_jU$, and so
#
# $$
# \begin{aligned}
# \int\partial_iU\,\partial_jU\,\pi\,d\theta &= -\int\partial_iU\,\partial_j\pi\,d\theta\\
# &= \int\partial_i\partial_jU\,\pi\,d\theta.
# \end{aligned}
# $$
#
# There is no boundary term, because $\pi$ vanishes at infinity.
# In matrices this is
#
# $$
# E_\pi[\nabla U\,\nabla U^\top] = E_\pi[\nabla^2U].
# $$ (eq-gradient-curvature)
#
# The exact gradient thus has the mean square $E_\pi[\operatorname{tr}\nabla^2U]$, and by {eq}`eq-noise-curvature` the noise has about $N/n$ times as much, here 19 times.
# That is harmless only because steps are small, so that many minibatches are averaged on the way.

# %% tags=["hide-input"]
slope_square = expectation(DoubleWell(), lambda x: (4 * x**3 - 4 * x) ** 2, -4, 4)
claim(
    "E[U′²] less E[U″] in the double well U = −2θ² + θ⁴",
    slope_square - expectation(DoubleWell(), lambda x: 12 * x**2 - 4, -4, 4),
    near=0,
    within=1e-9,
    because="the identity in one dimension, both sides by quadrature",
    kind="exact",
)
near_mode = (
    mode
    + torch.randn(4_000, d, generator=generator, dtype=torch.float64)
    @ torch.linalg.cholesky(posterior_variance).T
)
signal = model.gradient(near_mode).pow(2).sum(-1).mean()
claim(
    "Mean square of the noise at the mode, n = 100, over that of the exact gradient",
    at_mode.trace() / signal,
    near=19,
    within=1.5,
    because="4,000 draws from the Gaussian approximation of the posterior",
)

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
# As the step goes to zero so does $B$, although $V$ stays as it is: a unit of time then holds more and more minibatches, and their errors average out.
# In {doc}`/book/tutorial/sghmc` a sampler gets a friction, and $B$ is what that friction will be compared with.
#
# {numref}`fig-live-minibatch_noise` leads from the size of the minibatch to the draws of a sampler that ignores its noise, the Langevin dynamics of the next chapter. Its posterior is a line through 40 points.
#
# ```{live} minibatch_noise
# :name: fig-live-minibatch_noise
# :alt: A cloud of gradients of minibatches of four about the exact gradient, with an ellipse; the mean square of the noise against the size of the minibatch, which falls to zero at forty; a histogram of draws that is wider than the true density; and their variance over the true one, which comes to 1.7.
#
# Live: minibatches of $n$ of 40 examples without replacement. Above, their gradients at one $\theta$, and the mean square of the noise by {eq}`eq-v`; below, draws of Langevin chains with such gradients.
# ```

# %% tags=["hide-input"]
for step_size in (0.1, 0.05):
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
# A minibatch is a sum of $n$ terms, so the central limit theorem makes it nearly Gaussian, unless a few terms dominate the sum.
# One number tells how nearly.
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
# So $n$ must be large *compared with $\kappa$*, the kurtosis of the single contributions.
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
draws = {
    name: N
    / 20
    * (g[torch.randint(N, (40_000, 20), generator=generator)].sum(-1) - 20 * g.mean())
    for name, g in cases.items()
}

# %% mystnb={"figure": {"caption": "Above: quantiles of the standardised noise of minibatches of 20 against those of a Gaussian (grey); a bend at an end is a tail that N(0, V) does not have, steps are a law that takes few values. Below: the excess kurtosis falls as 1/n, by the exact formula; the grey line is at 0.1.", "name": "fig-noise-quantiles"}, "image": {"alt": "Above, the solid curve of balanced classes follows the grey diagonal in small steps. The dashed one of a rare class is flat on the right and drops below the diagonal in large steps on the left. The dotted one of a heavy-tailed feature is nearly flat, and on the left falls off to minus nine. Below, two parallel falling lines, the dotted one above the dashed one."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(2, 1, figsize=(5.0, 6.2))
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
# {numref}`fig-noise-quantiles` shows both cases.
# Noise from balanced classes follows the diagonal of the Gaussian.
# With a rare class the noise takes few values, and drops far below the diagonal at one end.
# With a heavy-tailed feature it is nearly always small, and jumps by more than nine standard deviations in a minibatch that has the one example which dominates.
# In the lower panel the line of the rare class crosses the grey one near $n = 950$; that of the heavy-tailed feature never does.

# %% tags=["hide-input"]
claim(
    "Kurtosis of all 20,736 minibatches of 4 of 12, less its formula",
    kurtosis(enumerated) - (3 + (kurtosis(per_example[:, 0]) - 3) / 4),
    near=0,
    within=1e-10,
    because="enumeration; rounding",
    kind="exact",
)
heavy = cases["a heavy-tailed feature"]
claim(
    "What the dominating example adds to a minibatch of 20, in standard deviations",
    (heavy - heavy.mean()).abs().max() / (20 * heavy.var(correction=0)) ** 0.5,
    near=9.6,
    within=0.2,
    because="the largest of the gᵢ, over the standard deviation of the noise",
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
    near=7.75,
    within=0.001,
    because="formula: 3 + 95.01/20",
    kind="exact",
)
claim(
    "The same where a feature is heavy-tailed",
    exact_kurtosis["a heavy-tailed feature"],
    at_least=30,
    because="formula; if one example were all that counts it would be 103",
    kind="exact",
)

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

# %% [markdown]
# A sampler that moves little in $k$ steps feels the sum of $k$ minibatches, and by {prf:ref}`thm-kurtosis` that sum is nearly Gaussian as soon as $nk \gg \kappa$.
# So small steps repair the law of the noise as they repair its size.
# Where they are not small, an example that is drawn once in a hundred steps and then counts a hundredfold is felt as a jolt.
#
# There is a second, quieter lie in "$N(0, V)$": that $V$ is a constant.
# {numref}`fig-noise-size` shows that it is not: a noise estimate that was right at the mode is too small at the origin.
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
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | minibatch gradient | $\nabla\tilde U = -\nabla\log p + \frac Nn\sum_{i \in S}g_i$ | {eq}`eq-minibatch` |
# | its mean | $E[\nabla\tilde U] = \nabla U$ | {prf:ref}`thm-minibatch` |
# | its covariance | $V = \frac{N^2}n\,\frac{N - n}{N - 1}\,\Sigma_g$; with replacement $\frac{N^2}n\,\Sigma_g$ | {eq}`eq-v` |
# | noise and curvature | $V \approx \frac Nn\,\nabla^2U$ | {eq}`eq-noise-curvature` |
# | gradient and curvature | $E_\pi[\nabla U\,\nabla U^\top] = E_\pi[\nabla^2U]$ | {eq}`eq-gradient-curvature` |
# | diffusion | $B = \tfrac12\varepsilon V$ | {eq}`eq-diffusion` |
# | kurtosis | $3 + (\kappa - 3)/n$ | {prf:ref}`thm-kurtosis` |
#
# ## Change it
#
# * Set `manual_seed(0)` in the second cell to `manual_seed(1)`: other data, other numbers. Which claims hold all the same, and which are about these data?
# * Set `factor = 1 if replacement else (N - n) / (N - 1)` to `factor = 1`: the claim on the measured trace without replacement shows ✗, near 0.95 in place of 1, because the factor that was forgotten is $1{,}900/1{,}999$.
# * Set `share = 0.01 if rare` to `share = 0.001 if rare`: the claim on the kurtosis where one class has 1 % shows ✗.
#   The formula now gives 53, because two examples of 2,000 dominate every minibatch that they are in.
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
# $(N - n)/(N - 1) = \tfrac12$ at $n = (N + 1)/2$: only minibatches of more than half the data gain a factor of two.
# ```
#
# ````{exercise}
# :label: ex-noise-control
#
# **Write it yourself.**
# Compute $\nabla U(\theta_0)$ once, at a fixed $\theta_0$ near the mode, and estimate $\nabla U(\theta)$ by replacing $g_i(\theta)$ in {eq}`eq-minibatch` by $g_i(\theta) - g_i(\theta_0)$ and adding $\sum_ig_i(\theta_0)$.
# Is this unbiased?
# What is its noise for $\theta$ near $\theta_0$?
# Write it for the regression of this chapter, whose prior is $N(0, I)$, and compare its noise with that of the plain minibatch gradient.
#
# ```python
# def example_gradients(theta):
#     """The gᵢ of all examples, (N, d), at theta (d,)."""
#     ...
#
#
# def control_variate_gradient(theta, reference, minibatch):
#     """An estimate (d,) of the gradient at theta (d,) from the examples numbered in
#     minibatch (n,), without noise where theta is the reference (d,)."""
#     ...
# ```
#
# (Tasks 1 and 2 of assignment 2, *Minibatch noise, and samplers that live with it*, ask for the plain gradient and its covariance; see {doc}`/book/practice/teaching`.)
# ````
#
# ```{solution} ex-noise-control
# :class: dropdown
#
# It is unbiased by {prf:ref}`thm-minibatch`, applied to the differences.
# Its $\Sigma_g$ is the covariance of $g_i(\theta) - g_i(\theta_0)$, which is of the order of $\lvert\theta - \theta_0\rvert^2$: the noise vanishes at $\theta_0$, and in a posterior of width $1/\sqrt N$ the factor $N^2$ of {eq}`eq-v` is reduced to $N$.
# Such a {term}`control variate` costs a second per-example gradient at every step, and helps only as far as the posterior is narrow.
# The folded code below has both functions, compares them with `sgmc.models.control_variates`, and finds the variance more than twenty-five times smaller at each of a hundred draws from the Gaussian approximation of the posterior.
# ```


# %% tags=["hide-input"]
def example_gradients(theta):
    """The gᵢ of all examples, (N, d), at theta (d,)."""
    return inputs * (torch.sigmoid(inputs @ theta) - targets)[:, None]


def control_variate_gradient(theta, reference, minibatch):
    """An estimate (d,) of the gradient at theta (d,) from the examples numbered in
    minibatch (n,), without noise where theta is the reference (d,)."""
    at_reference = example_gradients(reference)
    difference = (example_gradients(theta) - at_reference)[minibatch]
    prior = theta  # the gradient of ½|θ|²
    return prior + at_reference.sum(0) + N / len(minibatch) * difference.sum(0)


place = near_mode[0]
minibatch = torch.arange(100)
calm = control_variates(LogisticRegression(inputs, targets, batch_size=100), mode[0])
claim(
    "Largest difference between this gradient and that of control_variates",
    (
        control_variate_gradient(place, mode[0], minibatch)
        - calm.gradient_given(place[None], minibatch[None])[0]
    )
    .abs()
    .max(),
    at_most=1e-9,
    because="the same formula; rounding",
    kind="exact",
)
at_reference = example_gradients(mode[0])
ratios = [
    torch.cov(example_gradients(x).T).trace()
    / torch.cov((example_gradients(x) - at_reference).T).trace()
    for x in near_mode[:100]
]
claim(
    "Variance of the plain gradient over that with a control variate, least of 100",
    min(ratios),
    at_least=25,
    because=(
        "draws from the Gaussian approximation of the posterior; other seeds give 37 "
        "to 58"
    ),
)

# %% [markdown]
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
# Higher moments are wrong; the chain is a weighted sum of many $\xi$.
# In one dimension, where $F = \varphi$, its excess kurtosis is that of $\xi$ times $(1 - \varphi^2)/(1 + \varphi^2)$: the smaller the step, the nearer is $\varphi$ to 1, and the less is left.
# ```

# %% tags=["hide-input"]
second = fourth = 0.0
for _ in range(400):  # ξ is 1 or −1; its excess kurtosis is −2
    second, fourth = 0.81 * second + 1, 0.6561 * fourth + 6 * 0.81 * second + 1
claim(
    "Excess kurtosis of the chain over that of its noise, φ = 0.9, noise a fair coin",
    (fourth / second**2 - 3) / -2,
    near=(1 - 0.81) / (1 + 0.81),
    within=1e-9,
    because="exact recursion of the moments",
    kind="exact",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`ahn2012` build a sampler on the kinship of noise and curvature, {cite:t}`mandt2017` read the noise of SGD itself as a sampler's, {cite:t}`brosse2018` and {cite:t}`nemeth2021` say how it grows with $N$ and how control variates tame it.
