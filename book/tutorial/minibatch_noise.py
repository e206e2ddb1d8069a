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
# Page 5 of 12 · 34 minutes to read, 10 to play · Running: about 6 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! batch size, ! minibatch, ! gradient noise
# ```

# %%
import torch

from booklib.page.claims import check, near

# %% tags=["hide-input"]
import itertools

import matplotlib.pyplot as plt

from booklib.page.claims import at_least, at_most
from booklib.page.figures import TRUTH, use_style
from booklib.page.play import play
from sgmc.models import control_variates
from sgmc.posteriors import LogisticRegression

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# {doc}`HMC </book/tutorial/hamiltonian_monte_carlo>` is right, and needs the gradient of the whole posterior at every step: a pass over all the data.
# With millions of examples nobody can afford that. What one can afford is the gradient of a few examples, drawn at random.
#
# How good is such a gradient?
# We ask it of a logistic regression with 10,000 examples, whose answers were drawn with the weights `truth`.


# %%
N, d, n = 10_000, 10, 50
generator = torch.Generator().manual_seed(0)
inputs = torch.randn(N, d, generator=generator, dtype=torch.float64)
inputs[:, 1] = 0.8 * inputs[:, 0] + 0.6 * inputs[:, 1]  # two that are correlated
truth = torch.linspace(-1, 1, d, dtype=torch.float64)
chance = torch.rand(N, generator=generator, dtype=torch.float64)
targets = (chance < torch.sigmoid(inputs @ truth)).double()


def minibatch_gradient(theta, minibatch):
    """The gradient of U from some examples; the prior is N(0, I)."""
    x, y = inputs[minibatch], targets[minibatch]
    per_example = x * (torch.sigmoid(x @ theta) - y)[:, None]
    return theta + N / len(minibatch) * per_example.sum(0)


# %% [markdown]
# *A guess before you read on.*
# By how much is the gradient of 50 of these examples typically off: a tenth of the length of the exact one, half of it, or more than its whole length?
#
# Here are a thousand of them, at the weights `truth`, which are about as far from the mode as a sample of the posterior is.


# %%
exact = minibatch_gradient(truth, torch.arange(N))
noisy = torch.stack(
    [
        minibatch_gradient(truth, torch.randperm(N, generator=generator)[:n])
        for _ in range(1_000)
    ]
)
squares = (noisy - exact).square().sum(-1)  # of the length of the noise

# The theorem below: (N²/n)(N − n)/(N − 1) times the covariance of the examples
per_example = inputs * (torch.sigmoid(inputs @ truth) - targets)[:, None]
V = N**2 / n * (N - n) / (N - 1) * torch.cov(per_example.T, correction=0)
error = squares.std() / 1_000**0.5
check("theorem", squares.mean() / V.trace(), near(1), error=error / V.trace())
off, formula = (x.sqrt() / exact.norm() for x in (squares.mean(), V.trace()))
check("off", off, near(float(formula)), error=off * error / squares.mean() / 2)

# %% [markdown]
# Such a gradient is off by {c}`off` times the length of the exact one.
# In {numref}`fig-noise-idea` the cloud is right on average, and wildly wrong one by one; the exact gradient is so short that its arrow can hardly be seen.
# This page is about the cloud: its mean square is {c}`theorem` times what a formula says.


# %% mystnb={"figure": {"caption": "Two coordinates of the gradient: from all 10,000 examples (cross, with an arrow from zero), and from 1,000 minibatches of 50 (dots). The ellipse is two standard deviations of the noise.", "name": "fig-noise-idea"}, "image": {"alt": "A cloud of a thousand dots that slants upwards, with an ellipse around it. In its middle a cross, so near to zero that the arrow to it can hardly be seen."}} tags=["hide-input"]
def ellipse(covariance):
    """Two standard deviations of N(0, covariance) in the first two coordinates."""
    angle = torch.linspace(0, 2 * torch.pi, 200, dtype=torch.float64)
    circle = torch.stack([angle.cos(), angle.sin()])
    return 2 * torch.linalg.cholesky(covariance[:2, :2]) @ circle


figure, axes = plt.subplots(figsize=(4.8, 4.0))
axes.plot(*noisy[:, :2].T, ".", ms=3, color="0.65")
axes.plot(*(ellipse(V) + exact[:2, None]), color="black", lw=1)
axes.annotate("", exact[:2], (0, 0), arrowprops={"arrowstyle": "->", "lw": 1.5})
axes.plot(*exact[:2], "kx", ms=9, mew=2)
axes.set(
    xlabel=r"$\partial\tilde U/\partial\theta_1$",
    ylabel=r"$\partial\tilde U/\partial\theta_2$",
    aspect="equal",
)
plt.show()

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
# This is what `minibatch_gradient` computes.
#
# The {term}`gradient noise` is $\nabla\tilde U - \nabla U$.
# Where is the middle of the cloud, and what is its shape?
#
# ```{prf:theorem} Mean and covariance of a minibatch gradient
# :label: thm-minibatch
#
# Let $\bar g = \frac1N\sum_ig_i$ and $\Sigma_g = \frac1N\sum_i(g_i - \bar g)(g_i - \bar g)^\top$, both functions of $\theta$.
# Then $E[\nabla\tilde U] = \nabla U$, and $V(\theta) = \operatorname{Cov}[\nabla\tilde U]$ is, with replacement and without {cite:p}`cochran1977`,
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
# And if $N/n$ is forgotten, the mean gradient is off by {c}`forgotten` of its length, so check your own minibatch gradients in this way.

# %% tags=["hide-input"]
few, few_targets = inputs[:12, :3], targets[:12]
small = LogisticRegression(few, few_targets, prior_variance=2.0, batch_size=4)
theta = torch.tensor([[0.3, -0.5, 0.8]], dtype=torch.float64)
of_each = few * (torch.sigmoid(few @ theta[0]) - few_targets)[:, None]
sigma, whole = torch.cov(of_each.T, correction=0), small.gradient(theta)[0]
subsets = torch.tensor(list(itertools.combinations(range(12), 4)))
sequences = torch.cartesian_prod(*[torch.arange(12)] * 4)
for name, minibatches, factor in (
    ("without", subsets, 144 / 4 * 8 / 11),
    ("with", sequences, 144 / 4),
):
    listed = small.gradient_given(theta.expand(len(minibatches), -1), minibatches)
    mean_error = (listed.mean(0) - whole).abs().max()
    apart = (torch.cov(listed.T, correction=0) - factor * sigma).abs().max()
    words = (
        f"Largest error of mean and covariance over all minibatches {name} replacement"
    )
    check(name, max(mean_error, apart), at_most(1e-10), kind="exact", says=words)
forgotten = of_each[subsets].sum(1).mean(0) - small.grad_log_prior(theta)[0]
away = (forgotten - whole).norm() / whole.norm()
check("forgotten", away, at_least(0.5), kind="exact", digits=2)


def curvature(theta):
    """The matrix of second derivatives of U; the prior N(0, I) adds I."""
    probability = torch.sigmoid(inputs @ theta)
    weighted = inputs.T * (probability * (1 - probability))
    return weighted @ inputs + torch.eye(d, dtype=torch.float64)


def example_gradients(theta):
    """The gᵢ of all examples, (N, d), at theta (d,)."""
    return inputs * (torch.sigmoid(inputs @ theta) - targets)[:, None]


model, everything = LogisticRegression(inputs, targets, batch_size=50), torch.arange(N)
mode = torch.zeros(d, dtype=torch.float64)
for _ in range(30):  # Newton's method
    gradient = minibatch_gradient(mode, everything)
    mode = mode - torch.linalg.solve(curvature(mode), gradient)
hessian, fifty = curvature(mode), everything[:50]
by_package = model.gradient_given(mode[None], fifty[None])[0]
apart = (minibatch_gradient(mode, fifty) - by_package).abs().max()
words = "Largest difference between minibatch_gradient and the package, one minibatch"
check("package", apart, at_most(1e-9), kind="exact", says=words)
sigma_mode, sigma_origin = (
    torch.cov(example_gradients(theta).T, correction=0) for theta in (mode, 0 * mode)
)
check(
    "origin",
    sigma_origin.trace() / sigma_mode.trace(),
    near(1.9, 0.15),
    kind="exact",
    digits=2,
    because="other data sets of this kind give 1.8 to 2",
)

# %% [markdown]
# $V$ depends on $\theta$.
# At the origin all predictions are $\frac12$, and every example has a large gradient; at the mode most examples are predicted well and contribute little. The trace of $V$ at the origin is {c}`origin` times that at the mode.
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
# {numref}`fig-noise-shape` draws both for the first two of the regression's coordinates, which are correlated. The noise and the curvature differ by {c}`curvature` of their size, and the posterior lies across: along the noisiest of the ten directions its variance is {c}`across` of that along the quietest.

# %% mystnb={"figure": {"caption": "The two correlated coordinates of the regression. Left: two standard deviations of the minibatch noise at the mode, $n = 50$ (solid), and of a Gaussian with the curvature times $(N - n)/n$ as its covariance (dashed). Right: two standard deviations of the posterior.", "name": "fig-noise-shape"}, "image": {"alt": "Left, two ellipses that nearly coincide and slant upwards. Right, a grey ellipse that slants downwards."}} tags=["hide-input"]
posterior_covariance = torch.linalg.inv(hessian)
noise_variance = N**2 / 50 * (N - 50) / (N - 1) * sigma_mode
predicted = N / 50 * (N - 50) / (N - 1) * hessian
figure, (left, right) = plt.subplots(1, 2, figsize=(5.4, 3.0))
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
apart = (noise_variance - predicted).norm() / predicted.norm()
check("curvature", apart, at_most(0.1), kind="exact", digits=1)
values, vectors = torch.linalg.eigh(noise_variance)
spreads = (vectors.T @ posterior_covariance @ vectors).diagonal()
check("across", spreads[-1] / spreads[0], at_most(0.5), kind="exact", digits=2)

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
# Over samples of the posterior the ratio is {c}`mean-square`.
# This is the answer to the guess: a minibatch gradient is off, in root mean square, by $\sqrt{200}$, fourteen times the length of the exact one, and at one $\theta$ by a little more or less.
# How can a direction be of use that is wrong by fourteen times its length?
# Only because steps are small. The sampler has hardly moved after $k$ of them, and the mean of $k$ independent gradients is off by only $\sqrt{200/k}$ lengths: by one length after 200 steps. These have read 10,000 examples, which is one epoch; the next page meets this price again.

# %% tags=["hide-input"]
normal = torch.randn(4_000, d, generator=generator, dtype=torch.float64)
typical = mode + normal @ torch.linalg.cholesky(posterior_covariance).T
ratio = noise_variance.trace() / model.gradient(typical).square().sum(-1).mean()
check("mean-square", ratio, near(200, 20), because="N/n = 200; a Gaussian's samples")

# %% [markdown]
# ## What a sampler feels
#
# A Hamiltonian sampler with step $\varepsilon$ kicks its momentum by $-\varepsilon\nabla\tilde U$, which brings noise of covariance $\varepsilon^2V$ at each step.
# There are $1/\varepsilon$ steps in a unit of time, and each draws its own minibatch, so the noise has the covariance $\varepsilon V$ per unit of time. A loader that goes through shuffled data does not draw them independently: at a fixed $\theta$ the errors of an epoch's minibatches add up to zero, and {doc}`/book/further/splittings` shows what that changes.
# Write this as a rate $2B$ times the time. Noise that brings the variance $2Bt$ in every time $t$, independently in disjoint times, is *Brownian motion with diffusion* $B$; the 2 is there so that page 8 can compare $B$ with the friction. In the time $\varepsilon$ of a step this is the noise above if
#
# $$
# B(\theta) = \tfrac12\varepsilon V(\theta).
# $$ (eq-diffusion)
#
# As the step goes to zero so does $B$, although $V$ stays as it is: a unit of time then holds more and more minibatches, and their errors average out.
# This needs a fresh minibatch at every step. A minibatch that is kept for many steps makes the same error in each, so that errors add up instead of averaging out ({prf:ref}`thm-noise-adds`).
#
# The following pages treat the noise as $N(0, V)$, and in the running example as $V = 4$ in the bowl, an arbitrary choice.
# A minibatch gradient is a sum, so for large minibatches the central limit theorem makes its noise nearly Gaussian, unless a rare class or a few extreme examples dominate it; {doc}`/book/further/noise_that_is_not_gaussian` says when.
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
# **To remember:** a minibatch gradient is right on average; the variance of its noise is $N^2/n$ times the covariance of the examples' gradients, and near the mode of a model that fits it is largest along the directions in which the posterior is narrowest.
# What does it do to a sampler? {doc}`The next page </book/tutorial/langevin>` begins with the simplest one.

# %% tags=["hide-input"]
kicks = sum(
    small.stochastic_gradient(theta.expand(20_000, -1), generator) - whole
    for _ in range(10)
)
squares = (0.1 * kicks).pow(2).sum(-1)
twice_diffusion = 0.1 * (144 / 4 * 8 / 11 * sigma).trace()  # tr 2B
check(
    "diffusion",
    squares.mean() / twice_diffusion,
    near(1),
    error=squares.std() / 20_000**0.5 / twice_diffusion,
    because="the twelve examples, B from enumeration; 20,000 paths",
    says="Mean square momentum from the noise in a unit of time over tr 2B, ε = 0.1",
)

# %% [markdown]
# ## Change it
#
# * In the visible cell of `minibatch_gradient` write `per_example.sum(0)` for `N / len(minibatch) * per_example.sum(0)`, a common mistake: the cloud of {numref}`fig-noise-idea` shrinks to a point, and both records of the next cell show ✗.
# * There write `500` for `50`: the cloud is about a third as wide. The record `off` below the next cell says that ten times the examples are still wrong by several lengths of the arrow.
# * There delete the line `inputs[:, 1] = 0.8 * …`: the features are no longer correlated, and all ellipses of {numref}`fig-noise-shape` become nearly circles.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-noise-prior
#
# **Scaled twice.** ★
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
# **Choose the batch size.** ★★
# How many of the 10,000 examples must a minibatch have so that it is off, in root mean square, by the length of the exact gradient?
# And by a tenth of it?
# What follows for a sampler?
# ```
#
# ```{solution} ex-noise-half
# :class: dropdown
#
# By {eq}`eq-v` and {eq}`eq-noise-curvature` the mean square of the noise is about $(N - n)/n$ times that of the gradient.
# It is 1 at $n = N/2 = 5{,}000$, and $\frac1{100}$ at $n = N/1.01$, nearly all examples.
# A good gradient costs as much as the exact one, so a sampler that is to be cheaper has to live with bad ones.
# ```
#
# ````{exercise}
# :label: ex-noise-control
#
# **Write it yourself.** ★★★
# Compute $\nabla U(\theta_0)$ once, at a fixed $\theta_0$ near the mode, and estimate $\nabla U(\theta)$ by replacing $g_i(\theta)$ in {eq}`eq-minibatch` by $g_i(\theta) - g_i(\theta_0)$ and adding $\sum_ig_i(\theta_0)$.
# Is this unbiased?
# What is its noise for $\theta$ near $\theta_0$?
# Write it for the regression of this page, whose prior is $N(0, I)$, and compare its noise with that of the plain minibatch gradient.
#
# ```python
# def control_variate_gradient(theta, reference, minibatch):
#     """An estimate (d,) of the gradient at theta (d,) from the examples numbered in
#     minibatch (n,), without noise where theta is the reference (d,)."""
#     ...
# ```
#
# Tasks 1 and 2 of assignment 2, *Minibatch noise, and samplers that live with it*, ask for the plain gradient and its covariance; see {doc}`/book/practice/teaching`.
# ````
#
# ```{solution} ex-noise-control
# :class: dropdown
#
# It is unbiased by {prf:ref}`thm-minibatch`, applied to the differences.
# Its $\Sigma_g$ is the covariance of $g_i(\theta) - g_i(\theta_0)$, which is of the order of $\lvert\theta - \theta_0\rvert^2$: the noise vanishes at $\theta_0$, and in a posterior of width $1/\sqrt N$ the factor $N^2$ of {eq}`eq-v` is reduced to $N$.
# Such a {term}`control variate` costs a second per-example gradient at every step, and helps only as far as the posterior is narrow.
#
#     x, y = inputs[minibatch], targets[minibatch]
#     change = torch.sigmoid(x @ theta) - torch.sigmoid(x @ reference)
#     difference = (x * change[:, None]).sum(0)
#     at_reference = minibatch_gradient(reference, torch.arange(N)) - reference
#     return theta + at_reference + N / len(minibatch) * difference
#
# The sum at the reference is computed anew at each call here; a sampler keeps it.
# The next cell compares this with `sgmc.models.control_variates`.
# With these data the variance is {c}`calmer` times smaller, or more, at each of a hundred samples.
# ```


# %% tags=["hide-input"]
def control_variate_gradient(theta, reference, minibatch):
    """An estimate (d,) of the gradient at theta (d,) from the examples numbered in
    minibatch (n,), without noise where theta is the reference (d,)."""
    x = inputs[minibatch]
    change = torch.sigmoid(x @ theta) - torch.sigmoid(x @ reference)
    difference = (x * change[:, None]).sum(0)
    at_reference = minibatch_gradient(reference, everything) - reference
    return theta + at_reference + N / len(minibatch) * difference


place, calm = typical[0], control_variates(model, mode)
by_package = calm.gradient_given(place[None], fifty[None])[0]
apart = (control_variate_gradient(place, mode, fifty) - by_package).abs().max()
words = "Largest difference between this gradient and that of control_variates"
check("control-variates", apart, at_most(1e-9), kind="exact", says=words)
at_mode = example_gradients(mode)
ratios = [
    torch.cov(example_gradients(x).T).trace()
    / torch.cov((example_gradients(x) - at_mode).T).trace()
    for x in typical[:100]
]
check(
    "calmer",
    min(ratios),
    at_least(100),
    because="it grows in proportion to N",
    digits=1,
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`ahn2012` build a sampler on the kinship of noise and curvature, {cite:t}`mandt2017` read the noise of SGD itself as a sampler's, {cite:t}`brosse2018` and {cite:t}`nemeth2021` say how it grows with $N$ and how control variates tame it.
