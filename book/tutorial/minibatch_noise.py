# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # What a minibatch sees
#
# ```{div} page-head
# Page 5 of 12 · 22 minutes to read, 10 to play · Running: about 6 seconds
# ```
#
# ```{index} ! batch size, ! minibatch, ! gradient noise
# ```

# %% tags=["hide-input"]
import itertools

import matplotlib.pyplot as plt
import torch

from booklib.page.claims import claim
from booklib.page.figures import TRUTH, use_style
from booklib.page.play import play
from booklib.page.scoreboard import show_scoreboard
from sgmc.models import control_variates
from sgmc.posteriors import LogisticRegression

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# {doc}`HMC </book/tutorial/hamiltonian_monte_carlo>` is right, and needs the gradient of the whole posterior at every step: a pass over all the data.
# With millions of examples nobody can afford that. What one can afford is the gradient of a few examples, drawn at random.
#
# {numref}`fig-noise-idea` shows how good such a gradient is, in a logistic regression with 10,000 examples.
# The black cross is the exact gradient, at a typical point of the posterior; the cloud is a thousand gradients from minibatches of 50.
# They are right on average, and wildly wrong one by one; the exact gradient is so short that its arrow can hardly be seen.
#
# *A guess before you read on.*
# By how much is such a gradient typically off: a tenth of the length of the exact one, half of it, or more than its whole length?

# %% mystnb={"figure": {"caption": "Two coordinates of the gradient at a typical point of the posterior: from all 10,000 examples (cross, with an arrow from zero), and from 1,000 minibatches of 50 (dots). The ellipse is two standard deviations of the noise.", "name": "fig-noise-idea"}, "image": {"alt": "A cloud of a thousand dots that slants upwards, with an ellipse around it. In its middle a cross, so near to zero that the arrow to it can hardly be seen."}} tags=["hide-input"]
N, d = 10_000, 10
generator = torch.Generator().manual_seed(0)
inputs = torch.randn(N, d, generator=generator, dtype=torch.float64)
inputs[:, 1] = 0.8 * inputs[:, 0] + 0.6 * inputs[:, 1]
truth = torch.linspace(-1, 1, d, dtype=torch.float64)
chance = torch.rand(N, generator=generator, dtype=torch.float64)
targets = (chance < torch.sigmoid(inputs @ truth)).double()
model = LogisticRegression(inputs, targets, batch_size=50)


def curvature(theta):
    """The matrix of second derivatives of U; the prior N(0, I) adds I."""
    probability = torch.sigmoid(inputs @ theta)
    weighted = inputs.T * (probability * (1 - probability))
    return weighted @ inputs + torch.eye(d, dtype=torch.float64)


mode = torch.zeros(d, dtype=torch.float64)
for _ in range(30):  # Newton's method
    mode = mode - torch.linalg.solve(curvature(mode), model.gradient(mode[None])[0])
hessian = curvature(mode)
posterior_covariance = torch.linalg.inv(hessian)
normal = torch.randn(4_000, d, generator=generator, dtype=torch.float64)
typical = mode + normal @ torch.linalg.cholesky(posterior_covariance).T
exact = model.gradient(typical[:1])[0]
noisy = model.stochastic_gradient(typical[:1].expand(1_000, -1), generator)


def example_covariance(theta):
    """The covariance of the gradients of the examples, (d, d)."""
    wrong = torch.sigmoid(inputs @ theta) - targets
    return torch.cov((inputs * wrong[:, None]).T, correction=0)


def ellipse(covariance):
    """Two standard deviations of N(0, covariance) in the first two coordinates."""
    angle = torch.linspace(0, 2 * torch.pi, 200, dtype=torch.float64)
    circle = torch.stack([angle.cos(), angle.sin()])
    return 2 * torch.linalg.cholesky(covariance[:2, :2]) @ circle


noise_variance = N**2 / 50 * (N - 50) / (N - 1) * example_covariance(mode)  # V
figure, axes = plt.subplots(figsize=(4.8, 4.0))
axes.plot(*noisy[:, :2].T, ".", ms=3, color="0.65")
axes.plot(*(ellipse(noise_variance) + exact[:2, None]), color="black", lw=1)
axes.annotate("", exact[:2], (0, 0), arrowprops={"arrowstyle": "->", "lw": 1.5})
axes.plot(*exact[:2], "kx", ms=9, mew=2)
axes.set(
    xlabel=r"$\partial\tilde U/\partial\theta_1$",
    ylabel=r"$\partial\tilde U/\partial\theta_2$",
    aspect="equal",
)
plt.show()

# %% [markdown]
# The scoreboard so far, all of it with exact gradients:

# %% tags=["hide-input"]
show_scoreboard(5)

# %% [markdown]
# ## The gradient of a posterior is a sum
#
# As on {doc}`page 1 </book/tutorial/bayesian_learning>`, the energy is a sum over the examples, and so is its gradient. From here on $x_i$ stands for the whole example, input and answer:
#
# $$
# \begin{gathered}
# \nabla U(\theta) = -\nabla\log p(\theta) + \sum_{i=1}^Ng_i(\theta),\\
# g_i = -\nabla\log p(x_i \mid \theta).
# \end{gathered}
# $$ (eq-posterior)
#
# Draw a {term}`minibatch` $S$ of $n$ examples, uniformly, and scale its sum up to that of all examples:
#
# $$
# \nabla\tilde U(\theta) = -\nabla\log p(\theta) + \frac Nn\sum_{i \in S}g_i(\theta).
# $$ (eq-minibatch)
#
# The likelihood's part is scaled by $N/n$, because $n$ examples stand for $N$; the prior is not, because it is all there.
# In code, with the prior $N(0, I)$:


# %%
def minibatch_gradient(theta, minibatch):
    x, y = inputs[minibatch], targets[minibatch]
    per_example = x * (torch.sigmoid(x @ theta) - y)[:, None]
    return theta + N / len(minibatch) * per_example.sum(0)


# %% [markdown]
# The {term}`gradient noise` is $\nabla\tilde U - \nabla U$.
# Where is the middle of the cloud, and what is its shape?
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
# *Without replacement* the examples in any two places are a random ordered pair of different examples, whatever $n$ is.
# So their covariance $\Gamma$ depends neither on the places nor on $n$. Take $n = N$: the sum over all the data is not random, $0 = N\Sigma_g + N(N-1)\Gamma$, hence $\Gamma = -\Sigma_g/(N-1)$.
# For any $n$ then $\operatorname{Cov}\sum_{i \in S}g_i = n\Sigma_g - n(n-1)\frac{\Sigma_g}{N-1} = n\frac{N-n}{N-1}\Sigma_g$.
# ```
#
# Written with the sample covariance $\frac N{N-1}\Sigma_g$ in the place of $\Sigma_g$, the factor of the second line becomes $\frac{N^2}n\bigl(1 - \frac nN\bigr)$, the form most often seen.
# Without replacement is never worse, and for $n \ll N$ it makes no difference.
#
# On twelve examples one can check the theorem without any chance: list all 495 minibatches of four, or all 20,736 sequences with replacement.
# Their means and covariances agree with the theorem to rounding.
# And if $N/n$ is forgotten, the mean gradient is off by more than half, so check your own minibatch gradients in this way.

# %% tags=["hide-input"]
few, few_targets = inputs[:12, :3], targets[:12]
small = LogisticRegression(few, few_targets, prior_variance=2.0, batch_size=4)
theta = torch.tensor([[0.3, -0.5, 0.8]], dtype=torch.float64)
per_example = few * (torch.sigmoid(few @ theta[0]) - few_targets)[:, None]
sigma, whole = torch.cov(per_example.T, correction=0), small.gradient(theta)[0]
subsets = torch.tensor(list(itertools.combinations(range(12), 4)))
for name, minibatches, factor in (
    ("495 minibatches without replacement", subsets, 144 / 4 * 8 / 11),
    (
        "20,736 minibatches with replacement",
        torch.cartesian_prod(*[torch.arange(12)] * 4),
        144 / 4,
    ),
):
    listed = small.gradient_given(theta.expand(len(minibatches), -1), minibatches)
    claim(
        f"Largest error of mean and covariance over all {name}",
        max(
            (listed.mean(0) - whole).abs().max(),
            (torch.cov(listed.T, correction=0) - factor * sigma).abs().max(),
        ),
        at_most=1e-10,
        because="enumeration; rounding",
        kind="exact",
    )
forgotten = per_example[subsets].sum(1).mean(0) - small.grad_log_prior(theta)[0]
claim(
    "Relative error of the mean gradient where N/n is forgotten",
    (forgotten - whole).norm() / whole.norm(),
    at_least=0.5,
    because="enumeration: a third of the likelihood's part is left",
    kind="exact",
)
claim(
    "Largest difference between the function above and the package, one minibatch",
    (
        minibatch_gradient(mode, torch.arange(50))
        - model.gradient_given(mode[None], torch.arange(50)[None])[0]
    )
    .abs()
    .max(),
    at_most=1e-9,
    because="the same sums; rounding",
    kind="exact",
)
claim(
    "Trace of V at the origin over that at the mode",
    example_covariance(0 * mode).trace() / example_covariance(mode).trace(),
    near=1.9,
    within=0.15,
    because="exact formula at both; other data sets of this kind give 1.8 to 2",
    kind="exact",
)

# %% [markdown]
# $V$ depends on $\theta$.
# At the origin all predictions are $\frac12$, and every example has a large gradient; at the mode most examples are predicted well and contribute little. There the trace of $V$ is about half of that at the origin.
#
# ## Its shape is that of the curvature
#
# The noise is not the same in all directions, and its directions are not arbitrary.
# Suppose that the model is right, that is, that the examples were drawn from $p(x \mid \theta)$.
# Write $g = -\nabla\log p$, so that $\nabla p = -p\,g$.
# Differentiate $\int p\,dx = 1$ with respect to $\theta$, under the integral over $x$: $\int p\,g\,dx = 0$.
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
# Its right side, times $N$, is the likelihood's part of the Hessian $\nabla^2U$, which we call the *curvature*.
# Leave out the prior's small part, and let $n \ll N$; then, near the mode of a model that fits, {eq}`eq-v` becomes
#
# $$
# V(\theta) \approx \frac Nn\,\nabla^2U(\theta).
# $$ (eq-noise-curvature)
#
# The posterior's covariance, on the other hand, is nearly the *inverse* of the curvature.
# So the noise has the shape of the posterior's *inverse* covariance: it is large in the directions in which the posterior is narrow.
# {numref}`fig-noise-shape` draws both for the first two of the regression's coordinates, which are correlated. The noise and the curvature nearly coincide, and the posterior lies across.

# %% mystnb={"figure": {"caption": "The two correlated coordinates of the regression. Left: two standard deviations of the minibatch noise at the mode, $n = 50$ (solid), and of a Gaussian with the curvature times $(N - n)/n$ as its covariance (dashed). Right: two standard deviations of the posterior.", "name": "fig-noise-shape"}, "image": {"alt": "Left, two ellipses that nearly coincide and slant upwards. Right, a grey ellipse that slants downwards."}} tags=["hide-input"]
predicted = N / 50 * (N - 50) / (N - 1) * hessian
figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.2))
left.plot(*ellipse(noise_variance), color="black", label="$V$")
left.plot(*ellipse(predicted), "--", color="black", label=r"$\frac{N - n}{n}\nabla^2U$")
left.set(
    xlabel=r"$\partial\tilde U/\partial\theta_1$",
    ylabel=r"$\partial\tilde U/\partial\theta_2$",
    aspect="equal",
)
left.legend(loc="upper left")
left.margins(0.25)
shown = ellipse(posterior_covariance) + mode[:2, None]
right.fill(*shown, color=TRUTH, alpha=0.35, lw=0)
right.set(xlabel=r"$\theta_1$", ylabel=r"$\theta_2$", aspect="equal")
plt.show()

# %% tags=["hide-input"]
claim(
    "Relative distance of V from the curvature times (N/n)(N−n)/(N−1), at the mode",
    (noise_variance - predicted).norm() / predicted.norm(),
    at_most=0.1,
    because="exact matrices; 10,000 examples know each entry to a few per cent",
    kind="exact",
)
values, vectors = torch.linalg.eigh(noise_variance)
spreads = (vectors.T @ posterior_covariance @ vectors).diagonal()
claim(
    "Variance of the posterior in the loudest direction of the noise over that in the "
    "quietest",
    spreads[-1] / spreads[0],
    at_most=0.5,
    because="exact matrices: where the noise is loud the posterior is narrow",
    kind="exact",
)

# %% [markdown]
# ## Louder than the signal
#
# How long is the noise, beside the gradient itself?
# Integrate by parts.
# Because $\pi \propto e^{-U}$ we have $\partial_j\pi = -\pi\,\partial_jU$, and so
#
# $$
# \begin{aligned}
# \int\partial_iU\,\partial_jU\,\pi\,d\theta &= -\int\partial_iU\,\partial_j\pi\,d\theta\\
# &= \int\partial_i\partial_jU\,\pi\,d\theta.
# \end{aligned}
# $$
#
# There is no boundary term, because $\pi\nabla U$ vanishes at infinity, as it does for a Gaussian prior and a logistic likelihood.
# In matrices this is
#
# $$
# E_\pi[\nabla U\,\nabla U^\top] = E_\pi[\nabla^2U].
# $$ (eq-gradient-curvature)
#
# The exact gradient thus has the mean square $E_\pi[\operatorname{tr}\nabla^2U]$, and by {eq}`eq-noise-curvature` the noise has about $N/n = 200$ times as much.
# This is the answer to the guess: a minibatch gradient is off, in root mean square, by $\sqrt{200}$, fourteen times the length of the exact one.
# How can a direction be of use that is wrong by fourteen times its length?
# Only because steps are small: a sampler hardly moves from one minibatch to the next, and on its way it averages many of them.

# %% tags=["hide-input"]
claim(
    "Mean square of the noise at the mode over that of the exact gradient",
    noise_variance.trace() / model.gradient(typical).pow(2).sum(-1).mean(),
    near=200,
    within=20,
    because="N/n = 200; 4,000 samples of the Gaussian approximation of the posterior",
)

# %% [markdown]
# ## What a sampler feels
#
# A Hamiltonian sampler with step $\varepsilon$ kicks its momentum by $-\varepsilon\nabla\tilde U$, which brings noise of covariance $\varepsilon^2V$ at each step.
# There are $1/\varepsilon$ steps in a unit of time, and each draws its own minibatch, so the noise has the covariance $\varepsilon V$ per unit of time.
# A path is a *Brownian motion with diffusion* $B$ if its increments over disjoint times are independent, those over a time $t$ being $N(0, 2Bt)$. (The 2 is a convention; it makes $B$ comparable with the friction of page 8.) In a time $\varepsilon$ this is the noise of a step if
#
# $$
# B(\theta) = \tfrac12\varepsilon V(\theta).
# $$ (eq-diffusion)
#
# As the step goes to zero so does $B$, although $V$ stays as it is: a unit of time then holds more and more minibatches, and their errors average out.
# This needs a fresh minibatch at every step. A minibatch that is kept for many steps makes the same error in each, so that errors add up instead of averaging out ({prf:ref}`thm-noise-adds`).
#
# The following pages treat the noise as $N(0, V)$, and in the running example as $V = 4$ in the bowl, an arbitrary choice.
# A minibatch gradient is a sum, so for large minibatches the central limit theorem makes its noise nearly Gaussian (with a tail still to be seen in {numref}`fig-noise-idea`), unless a rare class or a few extreme examples dominate it; {doc}`/book/further/noise_that_is_not_gaussian` says when.
#
# {numref}`fig-live-minibatch_noise` leads from the size of the minibatch to the samples of a sampler that ignores its noise, the Langevin dynamics of the next page.
#
# ```{live} minibatch_noise
# :name: fig-live-minibatch_noise
# :alt: A cloud of gradients of minibatches of four about the exact gradient, with an ellipse; the mean square of the noise against the size of the minibatch, which falls to zero at forty; a histogram of draws that is wider than the true density; and their variance over the true one, which comes to 1.7.
#
# Live: minibatches of $n$ of 40 examples without replacement. Above, their gradients at one $\theta$, and the mean square of the noise by {eq}`eq-v`; below, draws of Langevin chains with such gradients.
# ```
#
# **To remember:** a minibatch gradient is right on average; the variance of its noise is $N^2/n$ times the covariance of the examples' gradients, and is largest where the posterior is narrowest.
# What does it do to a sampler? {doc}`The next page </book/tutorial/langevin>` begins with the simplest one.

# %% tags=["hide-input"]
kicks = sum(
    small.stochastic_gradient(theta.expand(20_000, -1), generator) - whole
    for _ in range(10)
)
squares = (0.1 * kicks).pow(2).sum(-1)
twice_diffusion = 0.1 * (144 / 4 * 8 / 11 * sigma).trace()  # tr 2B
claim(
    "Mean square momentum from the noise in a unit of time over tr 2B, ε = 0.1",
    squares.mean() / twice_diffusion,
    near=1,
    standard_error=squares.std() / 20_000**0.5 / twice_diffusion,
    because="the twelve examples at a fixed θ, B from enumeration; 20,000 paths",
)

# %% [markdown]
# ## Change it
#
# * Set `N / len(minibatch) * per_example.sum(0)` to `per_example.sum(0)`, a common mistake: the claim on the function and the package shows ✗.
# * In the first figure's cell set `batch_size=50` to `batch_size=500`, and `N**2 / 50 * (N - 50)` to `N**2 / 500 * (N - 500)`: the variance of the noise is a tenth, with $(N - n)/n = 19$ still nineteen times the signal in the mean square, and the claim on 200 shows ✗.
# * Set `inputs[:, 1] = 0.8 * inputs[:, 0] + 0.6 * inputs[:, 1]` to `inputs[:, 1] = inputs[:, 1]`: the features are no longer correlated, so the ellipses are nearly circles; the noise at the origin is now only 1.7 times that at the mode, and its claim shows ✗.
#
# ## Exercises
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
# A prior variance $s^2$ has become $s^2n/N$, and the smaller the minibatch the more everything shrinks to zero.
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
# Write it for the regression of this page, whose prior is $N(0, I)$, and compare its noise with that of the plain minibatch gradient.
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
# The folded code below has both functions, compares them with `sgmc.models.control_variates`, and finds the variance more than a hundred times smaller at each of a hundred samples of the Gaussian approximation of the posterior.
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


place = typical[0]
minibatch = torch.arange(50)
calm = control_variates(model, mode)
claim(
    "Largest difference between this gradient and that of control_variates",
    (
        control_variate_gradient(place, mode, minibatch)
        - calm.gradient_given(place[None], minibatch[None])[0]
    )
    .abs()
    .max(),
    at_most=1e-9,
    because="the same formula; rounding",
    kind="exact",
)
at_reference = example_gradients(mode)
ratios = [
    torch.cov(example_gradients(x).T).trace()
    / torch.cov((example_gradients(x) - at_reference).T).trace()
    for x in typical[:100]
]
claim(
    "Variance of the plain gradient over that with a control variate, least of 100",
    min(ratios),
    at_least=100,
    because="350 with these data; the ratio grows in proportion to N",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`ahn2012` build a sampler on the kinship of noise and curvature, {cite:t}`mandt2017` read the noise of SGD itself as a sampler's, {cite:t}`brosse2018` and {cite:t}`nemeth2021` say how it grows with $N$ and how control variates tame it.
