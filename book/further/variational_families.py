# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # What does the nearest simple distribution leave out?
#
# ```{div} page-head
# Level: second course · Reading: about 32 minutes, without the exercises · Running: about 20 seconds
# ```
#
# ```{index} ! mean-field, ! evidence bound, ! reparametrisation, local reparametrisation
# ```

# %%
import math

import torch

from booklib.page.claims import check, near
from sgmc.targets import Gaussian

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.data import digits
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import at_least, at_most
from booklib.page.figures import COLOURS, TRUTH, plot_contours, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.rivals.layers import linear_layers
from booklib.rivals.variational import (
    bound_gradient,
    local_bound_gradient,
    variational,
)
from sgmc import sample
from sgmc.kernels import HMC
from sgmc.posteriors import Gaussian as GaussianLikelihood
from sgmc.posteriors import NetworkPosterior
from sgmc.tuning import adapt

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# A chain samples the posterior $\pi$, sooner or later. *Variational inference* optimises instead: from a family of simple distributions it takes the member $q$ that is nearest to $\pi$.
# For a network the family is usually *mean-field*: Gaussians with independent coordinates, $q = N(\mu, \operatorname{diag}\sigma^2)$.
# What does the nearest one leave out?
#
# **Everything that the unknowns do together. On a Gaussian the mean is right, and each standard deviation is that of somebody who knows all other unknowns: with a correlation of 0.9 it is {c}`narrow` in place of 1. In a small network the fit is surer in a gap of the data than at the data, {c}`fit-gap` times as wide; the posterior, sampled by HMC, is {c}`hmc-gap` times as wide there.**
#
# The fit is a few lines.
# Write $\theta = \mu + \sigma\varepsilon$ with standard normal $\varepsilon$, and descend in $\mu$ and $\log\sigma$ with the gradient that {prf:ref}`prop-vi-gradient` finds below.


# %%
def nearest(potential, start, *, num_steps, rate, num_draws, seed):
    """Fit one q for each row of start; return μ and σ."""
    generator = torch.Generator().manual_seed(seed)
    mu, log_sigma = start.clone(), torch.full_like(start, -2.0)
    adam = torch.optim.Adam([mu, log_sigma], rate)
    falling = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.01, num_steps)
    for _ in range(num_steps):
        noise = torch.randn(num_draws, *start.shape, generator=generator)
        theta = mu + log_sigma.exp() * noise
        slope = potential.gradient(theta.flatten(0, 1)).view_as(noise)
        mu.grad = slope.mean(0)
        log_sigma.grad = (slope * noise).mean(0) * log_sigma.exp() - 1
        adam.step()
        falling.step()
    return mu, log_sigma.exp()


target = Gaussian.correlated(0.9)  # both coordinates have variance 1
settings = {"num_steps": 500, "rate": 0.04, "num_draws": 8, "seed": 1}
mu, sigma = nearest(target, torch.ones(64, 2), **settings)
print(f"64 fits: mean {mu.mean():.3f}, standard deviation {sigma.mean():.3f}, not 1")
check("narrow", sigma.mean(), near(math.sqrt(1 - 0.9**2), 0.01), because="the theorem")

# %% tags=["hide-input"]
draw = torch.Generator().manual_seed(0)
u = 0.6 * torch.rand(60, generator=draw)
x = torch.where(u < 0.3, u - 0.1, u + 0.2)  # 60 inputs, none between 0.2 and 0.5
epsilon = 0.02 * torch.randn(60, generator=draw)


def curve(x, epsilon=0.0):
    inner = 2 * math.pi * (x + epsilon)
    return x + 0.3 * torch.sin(inner) + 0.3 * torch.sin(2 * inner) + epsilon


def scaled(x):
    """Inputs of the network: the middle of the gap is zero."""
    return ((x - 0.35) / 0.3)[:, None]


small = NetworkPosterior(
    multilayer_perceptron([1, 16, 1]),
    scaled(x),
    curve(x, epsilon),
    prior_variance={"0.weight": 1, "0.bias": 1, "2.weight": 4 / 16, "2.bias": 1},
    likelihood=GaussianLikelihood(noise_variance=0.1**2),
)
grid = torch.linspace(-0.15, 0.85, 101)


def on_grid(position):
    return small.predict(position, scaled(grid))


begin = small.initial_position(80, torch.Generator().manual_seed(1))
kernel, begin = adapt(HMC(0.01, num_steps=30, jitter=0.5), small, begin, 50, seed=1)
chains = sample(kernel, small, begin, 25, thinning=2, seed=2, collect=on_grid).samples
begin = small.initial_position(4, torch.Generator().manual_seed(2))
found = nearest(small, begin, num_steps=600, rate=0.03, num_draws=4, seed=3)
law = torch.distributions.Normal(*found)
torch.manual_seed(4)
places = law.sample((200,))  # (draws, fits, unknowns)
log_w = -torch.stack([small.energy(p) for p in places]) - law.log_prob(places).sum(-1)
fits = torch.stack([on_grid(place) for place in places])
best = fits[:, log_w.mean(0).argmax()]  # the fit of the largest bound

# %% mystnb={"figure": {"caption": "The posterior of a network with 16 hidden units, by HMC (above, 80 chains) and by the best of four mean-field fits (below): mean and two standard deviations of the output. The data are dots, the curve without noise is grey; in the shaded gap there are no data.", "name": "fig-vi-gap"}, "image": {"alt": "Above, a band that is narrow at the data and several times wider in the gap; below, a band that is narrowest in the gap and grows steadily wider on both sides of it."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 1, figsize=(5, 5.6), sharex=True, sharey=True)
shown = (
    ("HMC", COLOURS["HMC"], chains.flatten(0, 1)),
    ("mean-field fit", COLOURS["variational"], best),
)
for axes, (name, colour, values) in zip(panels, shown, strict=True):
    middle, spread = values.mean(0), values.std(0)
    ends = middle - 2 * spread, middle + 2 * spread
    axes.axvspan(0.2, 0.5, color="0.95", lw=0, zorder=0)
    axes.fill_between(grid, *ends, color=colour, alpha=0.3, lw=0)
    axes.plot(grid, middle, color=colour)
    axes.plot(grid, curve(grid), color=TRUTH, zorder=1)
    axes.plot(x, curve(x, epsilon), ".", color="black", ms=3)
    axes.set(title=name, ylabel="$y$", ylim=(-0.7, 1.6))
panels[1].set_xlabel("$x$")
plt.show()

# %% [markdown]
# *Before you read on: the fit's band in {numref}`fig-vi-gap` is wider than that of HMC at the data. How can a fit be too narrow in its weights and too wide in its outputs?*
#
# ## Nearest in which sense
#
# The usual distance is the Kullback–Leibler divergence,
#
# $$
# \mathrm{KL}(q \,\Vert\, \pi) = \mathbb E_q\Bigl[\log\frac{q(\theta)}{\pi(\theta)}\Bigr],
# $$
#
# which by Jensen's inequality is at least zero, and zero only for $q = \pi$.
# It can be made small without knowing the constant of $\pi = e^{-U}/Z$, since inserting $\log\pi = -U - \log Z$ gives
#
# $$
# \log Z = \mathcal L(q) + \mathrm{KL}(q \,\Vert\, \pi),
# \qquad
# \mathcal L(q) = -\mathbb E_q[U] - \mathbb E_q[\log q].
# $$ (eq-vi-bound)
#
# The left side is the *log evidence*, the log probability of the data, and does not depend on $q$.
# So $\mathcal L$, the *evidence bound* (ELBO), lies below it by the divergence, and raising $\mathcal L$ brings $q$ nearer to $\pi$ by the same amount.
# Equivalently $\mathcal L$ is the expected log likelihood less $\mathrm{KL}(q \,\Vert\, \text{prior})$: fit the data, and stay near the prior. Its negative is a description length {cite:p}`hinton1993,graves2011`.
#
# The mean is taken under $q$. Where $q$ has mass and $\pi$ hardly any, $q$ pays; where $\pi$ has mass and $q$ none, nothing is paid.
# Therefore a $q$ that cannot lean stays inside a narrow ridge ({numref}`fig-vi-ellipse`).
# The other direction, $\mathrm{KL}(\pi \,\Vert\, q)$, would cover the ridge, but it asks for means under $\pi$, which is what we do not have.

# %% mystnb={"figure": {"caption": "A Gaussian posterior with correlation 0.9 (grey contours) and the nearest Gaussians with independent coordinates, at one standard deviation: by $\\mathrm{KL}(q \\Vert \\pi)$, which a fit can compute, and by $\\mathrm{KL}(\\pi \\Vert q)$, which it cannot.", "name": "fig-vi-ellipse"}, "image": {"alt": "Long tilted contours with a small circle at their centre, as wide as the ridge, and a large circle that is wider than the ridge and shorter."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(3.6, 3.6))
plot_contours(axes, target, -2.6, 2.6)
angle = torch.linspace(0, 2 * math.pi, 200)
for radius, colour, label in (
    (math.sqrt(1 - 0.9**2), COLOURS["variational"], r"$\mathrm{KL}(q\,\|\,\pi)$"),
    (1.0, COLOURS["HMC"], r"$\mathrm{KL}(\pi\,\|\,q)$"),
):
    axes.plot(radius * angle.cos(), radius * angle.sin(), color=colour, label=label)
axes.set(xlabel=r"$\theta_1$", ylabel=r"$\theta_2$")
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# ## The best fit of a Gaussian
#
# Where $U$ is quadratic the best member can be written down. Let $U(\theta) = U(m) + \tfrac12(\theta - m)^\top A(\theta - m)$ with a positive definite precision matrix $A$.
# The two means in {eq}`eq-vi-bound` are
#
# $$
# -\mathbb E_q[U] = -U(m) - \tfrac12(\mu - m)^\top A(\mu - m) - \tfrac12\sum_iA_{ii}\sigma_i^2,
# \qquad
# -\mathbb E_q[\log q] = \sum_i\log\sigma_i + \tfrac d2\log(2\pi e).
# $$
#
# Only the diagonal of $A$ meets the $\sigma_i$, because $q$ has no covariances for the rest to act on.
# The terms are separate: the first square is least at $\mu = m$, and $\log\sigma_i - \tfrac12A_{ii}\sigma_i^2$ is largest where $1/\sigma_i = A_{ii}\sigma_i$.
#
# ```{prf:theorem} The best independent Gaussian
# :label: thm-vi-gaussian
#
# Among the $N(\mu, \operatorname{diag}\sigma^2)$ the bound is largest at
#
# $$
# \mu = m, \qquad \sigma_i^2 = \frac1{A_{ii}} \le (A^{-1})_{ii},
# $$ (eq-vi-best)
#
# with equality only where $\theta_i$ is uncorrelated with the others. There
#
# $$
# \log Z - \mathcal L = \tfrac12\Bigl(\sum_i\log A_{ii} - \log\det A\Bigr).
# $$ (eq-vi-gap)
# ```
#
# ```{admonition} Proof
# :class: dropdown
#
# The maximiser is found above. Inserted, it gives $\mathcal L = -U(m) + \tfrac d2\log2\pi - \tfrac12\sum_i\log A_{ii}$, while $\log Z = -U(m) + \tfrac d2\log2\pi - \tfrac12\log\det A$.
# With the unit vector $e_i$, $1 = \bigl((A^{1/2}e_i)\cdot(A^{-1/2}e_i)\bigr)^2 \le A_{ii}(A^{-1})_{ii}$ by the inequality of Cauchy and Schwarz, with equality only if $Ae_i$ is a multiple of $e_i$.
# ```
#
# In words: $1/A_{ii}$ is the variance of $\theta_i$ when all other unknowns are held fixed {cite:p}`bishop2006`, which is smaller than its own variance $(A^{-1})_{ii}$.
# The 64 fits of the first cell lie below the log evidence by {c}`short` on average, where {eq}`eq-vi-gap` has $-\tfrac12\log(1 - 0.9^2) = 0.83$.
# More data do not help: they multiply $A$ by a factor, nearly, and both the gap and $A_{ii}(A^{-1})_{ii}$ stay as they were.
#
# This also answers the question above. Along the ridge $q$ is too narrow, but *across* it, where $\theta_1 - \theta_2$ has the variance $2(1 - \rho) = 0.2$, $q$ has $2(1 - \rho^2) = 0.38$: it is too wide.
# At the data the posterior's weights move together so that the output hardly does. Independent weights cannot do that.

# %% tags=["hide-input"]
A = target.precision
quadratic = 0.5 * (torch.einsum("bi,ij,bj->b", mu, A, mu) + sigma**2 @ A.diagonal())
bound = sigma.log().sum(1) + 1 + math.log(2 * math.pi) - quadratic
shortfall = math.log(2 * math.pi) - 0.5 * A.logdet() - bound
check("short", shortfall.mean(), near(-0.5 * math.log(1 - 0.9**2), 0.01))

# %% [markdown]
# ## Through the noise
#
# For a network the means have no formula, and {cite:t}`blundell2015` estimate the gradient from draws (*Bayes by Backprop*).
#
# ```{prf:proposition} Gradient through the noise
# :label: prop-vi-gradient
#
# Let $\theta = \mu + \sigma\varepsilon$ with $\varepsilon \sim N(0, I)$, products by coordinates, and let $\nabla U$ be continuous and grow at most like a power of $\lvert\theta\rvert$. Then
#
# $$
# \nabla_\mu\mathcal L = -\mathbb E[\nabla U(\theta)], \qquad \nabla_\sigma\mathcal L = -\mathbb E[\nabla U(\theta)\,\varepsilon] + \frac1\sigma,
# $$ (eq-vi-gradient)
#
# also with an unbiased minibatch gradient, independent of $\varepsilon$, in the place of $\nabla U$.
# ```
#
# ```{admonition} Proof
# :class: dropdown
#
# $\mathcal L = -\mathbb E[U(\mu + \sigma\varepsilon)] + \sum_i\log\sigma_i + \tfrac d2\log(2\pi e)$, and the distribution of $\varepsilon$ does not depend on $\mu$ and $\sigma$. Near given $\mu$ and $\sigma$ the derivatives are bounded by a polynomial in $\lvert\varepsilon\rvert$, so derivative and mean may be exchanged. For minibatches take their mean first, given $\varepsilon$.
# ```
#
# So the ordinary gradient of the network at a random $\theta$ is all that is needed.
# But all examples of a minibatch share that $\theta$: what an unlucky draw does to one it does to all.
# A layer's outputs have a simple distribution too, and {cite:t}`kingma2015vd` draw those, for every example anew.
#
# ```{prf:proposition} Local reparametrisation
# :label: prop-vi-local
#
# Let a layer compute $b_k = \sum_ja_j\theta_{jk}$ with independent $\theta_{jk} \sim N(\mu_{jk}, \sigma_{jk}^2)$. Given its inputs $a$, the outputs are independent, and
#
# $$
# b_k \sim N\Bigl(\sum_ja_j\mu_{jk},\ \sum_ja_j^2\sigma_{jk}^2\Bigr).
# $$ (eq-vi-outputs)
#
# In a network of such layers, each weight used once, drawing outputs instead of weights, for every example anew, leaves the mean of $\sum_i\log p(y_i \mid x_i, \theta)$ as it is, and so its gradient.
# ```
#
# ```{admonition} Proof
# :class: dropdown
#
# $b_k$ is a sum of independent normal variables, and no weight enters two outputs. For one example, $a$ depends on the weights of earlier layers alone; so, layer by layer, the network's outputs for it have the same distribution both ways. The mean of a sum is the sum of the means, whatever the dependence among its terms.
# ```
#
# The variance does depend on it. If example $i$ contributes the gradient $\ell_i$,
#
# $$
# \operatorname{Var}\Bigl[\frac Nn\sum_{i\in\omega}\ell_i\Bigr] = N^2\Bigl(\frac1n\operatorname{Var}\ell_i + \frac{n - 1}n\operatorname{Cov}(\ell_i, \ell_j)\Bigr).
# $$ (eq-vi-variance)
#
# With a shared draw the covariance is usually positive, and the variance does not fall below it however large the minibatch is. With draws of their own the covariance is zero, up to what drawing without replacement takes off.
# For digits, in a network of 784–50–50–10 at a $q$ that was fitted in 200 steps, the variance of the slope in $\sigma$, summed over all weights, is:

# %% tags=["hide-input"]
train, _ = digits()
network = multilayer_perceptron([784, 50, 50, 10])
posterior = NetworkPosterior(network, *train, batch_size=100)
start = posterior.initial_position(1, torch.Generator().manual_seed(0))
fit = variational(
    posterior,
    start,
    1,
    num_steps=200,
    learning_rate=0.02,
    initial_std=0.01,
    local=True,
    seed=1,
)
place = [fit.statistics[key][0].expand(20, -1).contiguous() for key in ("mean", "std")]
layers = linear_layers(posterior).values()


def variances(size):
    """Of the slope in σ, summed over the weights: drawn weights, drawn outputs."""
    few = NetworkPosterior(network, *train, batch_size=size)
    slopes = [], []
    for step in range(max(2, 100 // size)):
        (omega,) = few.draw_minibatches(place[0], draw, step)
        noise = torch.randn(place[0].shape, generator=draw)
        shapes = ((20, size, layer.out_features) for layer in layers)
        outputs = [torch.randn(shape, generator=draw) for shape in shapes]
        slopes[0].append(bound_gradient(few, *place, noise[None], omega)[1])
        slopes[1].append(local_bound_gradient(few, *place, noise, outputs, omega)[1])
    return [float(torch.cat(part).var(0).sum()) for part in slopes]


measured = {size: variances(size) for size in (10, 100, 1_000)}
show_table(
    ["minibatch n", "drawn weights", "drawn outputs"],
    [[f"{n:,}", *(f"{v:.2g}" for v in pair)] for n, pair in measured.items()],
)
by_weights, by_outputs = (measured[10][i] / measured[1_000][i] for i in range(2))
check("outputs-fall", by_outputs, at_least(50), because="theory: between 100 and 133")
check("weights-fall", by_weights, at_most(50), because="the shared draw does not fall")
less = min(weights / outputs for weights, outputs in measured.values())
check("less", less, at_least(4), because="at every size, drawn outputs have less noise")

# %% [markdown]
# From $n = 10$ to 1,000 the variance falls by a factor of {c}`outputs-fall` with drawn outputs, and of {c}`weights-fall` with drawn weights. At every size drawn outputs have less noise, by a factor of {c}`less` at least.
# That is a better *estimate* of the same gradient; $q$ stays in its family.
#
# ## The gap
#
# {numref}`fig-vi-gap` has the curve of {cite:t}`blundell2015`, with 60 data and a network of 49 unknowns, few enough for HMC to sample the very posterior that $q$ is fitted to.
# In the gap the standard deviation of the output under HMC is {c}`ratio-gap` times that of the fits; at the data it is the other way round, the fits' being {c}`ratio-data` times as large.
# The true curve has a dip in the middle of the gap. It lies {c}`far-hmc` standard deviations from the mean of HMC, and {c}`far-fit` from that of the best fit: the fit is sure, and wrong.
#
# {cite:t}`foong2020` prove that this is no accident of optimisation.
# With one hidden layer of rectified linear units, the variance that a mean-field Gaussian has between two inputs is at most the sum of the variances at both, if it is nearer to the origin than they are, as here, where the scaled inputs are zero in the middle of the gap.
# With more layers the family has better members, they show, but fits did not find them.
#
# Would another divergence help? Rényi's bound {cite:p}`li2016` takes a power of $e^{-U}/q$ inside the logarithm and makes $q$ wider, but its estimate from minibatches is biased upwards, so that it need not be a bound any more.

# %% tags=["hide-input"]
gap = (grid > 0.3) & (grid < 0.4)
data = ((grid > -0.1) & (grid < 0.2)) | ((grid > 0.5) & (grid < 0.8))
wide, thin = chains.flatten(0, 1).std(0), fits.std(0).mean(0)
check("hmc-gap", wide[gap].mean() / wide[data].mean(), at_least(2))
check("fit-gap", thin[gap].mean() / thin[data].mean(), at_most(0.8))
check("ratio-gap", wide[gap].mean() / thin[gap].mean(), at_least(2.5))
check("ratio-data", thin[data].mean() / wide[data].mean(), at_least(1.1))
between = chains[..., 50]  # in the middle of the gap
for name, values, bound in (
    ("far-hmc", between, at_most(5)),
    ("far-fit", best[:, 50], at_least(7)),
):
    check(name, (values.mean() - curve(grid[50])).abs() / values.std(), bound)
ratio = between.mean(0).var() / between.var(0).mean()
check(
    "chains-agree",
    (1 - 1 / len(between) + ratio).sqrt(),
    at_most(1.5),
    says="R̂ of the output in the middle of the gap, 80 chains of HMC",
)

# %% [markdown]
# **To remember:** a mean-field fit has the widths that each unknown would have if all others were known. Trust its means before its widths, and where widths matter, as in a gap, compare it with chains on a small version of the problem.
#
# {doc}`/book/studies/variational` sets such fits beside SGHMC on MNIST, where accuracy does not see the widths; {doc}`/book/further/bandit` has a decision that does.
#
# ## Change it
#
# * In the first cell set `Gaussian.correlated(0.9)` to `Gaussian.correlated(0.0)`: the family holds the posterior, the fits print a standard deviation of 1, and the checks `narrow` and `short` show ✗, because they expect a correlation of 0.9.
# * In the cell of the data set `(x - 0.35) / 0.3` to `(x - 0.05) / 0.3`: the origin now lies among the data on the left, and the theorem no longer speaks of the gap. The fit is still surer there than at the data, but HMC is only twice as wide, and the folded check `ratio-gap` shows ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-vi-forward
#
# ★ *Derive.* Which $N(\mu, \operatorname{diag}\sigma^2)$ minimises $\mathrm{KL}(\pi \,\Vert\, q)$, for any $\pi$ with finite variances? What does it leave out?
# ```
#
# ```{solution} ex-vi-forward
# :class: dropdown
#
# Up to a constant it is $-\mathbb E_\pi[\log q] = \sum_i\bigl(\log\sigma_i + \mathbb E_\pi[(\theta_i - \mu_i)^2]/2\sigma_i^2\bigr)$, least at the mean and the variance of each $\theta_i$ under $\pi$.
# So all means and variances are right. The correlations are still left out: the large circle of {numref}`fig-vi-ellipse` has most of its mass off the ridge.
# ```
#
# ````{exercise}
# :label: ex-vi-write
#
# ★★ **Write it yourself.** Draw the outputs of a layer by {eq}`eq-vi-outputs`, and by drawn weights. Compare the variance of the *average* output of the examples.
#
# ```python
# def by_outputs(a, mean, std, generator):
#     """Draw b for inputs a (n, in) and weights of mean and std (in, out): (n, out)."""
#     ...
# ```
# ````
#
# ````{solution} ex-vi-write
# :class: dropdown
#
# ```python
# def by_outputs(a, mean, std, generator):
#     width = (a**2 @ std**2).sqrt()
#     return a @ mean + width * torch.randn(width.shape, generator=generator)
# ```
#
# With a hundred equal examples the variance of the average falls to a hundredth; with drawn weights, `a @ (mean + std * noise)`, it does not fall at all, because all examples move together.
# ````


# %% tags=["hide-input"]
def by_outputs(a, mean, std, generator):
    width = (a**2 @ std**2).sqrt()
    return a @ mean + width * torch.randn(width.shape, generator=generator)


a, mean, std = torch.ones(100, 3), torch.zeros(3, 2_000), torch.ones(3, 2_000)
with_weights = a @ (mean + std * torch.randn(std.shape, generator=draw))
of_average = by_outputs(a, mean, std, draw).mean(0).var(), with_weights.mean(0).var()
check(
    "average",
    of_average[1] / of_average[0],
    near(100, 25),
    because="2,000 outputs: 16 standard errors",
    says="The solution has less variance of the average output by a factor of",
)

# %% [markdown]
# ```{exercise}
# :label: ex-vi-more-data
#
# ★★ *Diagnose.* A colleague fits a regression with two inputs of correlation 0.9 by mean-field and writes: "With 1,000 examples the intervals are too short by half. We collected 100,000, so the fit is now as good as exact." What did the larger data set change?
# ```
#
# ```{solution} ex-vi-more-data
# :class: dropdown
#
# $A$ is a hundred times as large, nearly, so all widths are a tenth of what they were, the posterior's and the fit's alike. Their ratio $\sqrt{1/A_{ii}(A^{-1})_{ii}} = \sqrt{1 - 0.9^2} = 0.44$ is the same, so is the gap {eq}`eq-vi-gap`, and an interval that should hold the truth in 95 cases of 100 still holds it in 61.
# ```
#
# ## Further reading
#
# {cite:t}`bishop2006`, Section 10.1, for mean-field; {cite:t}`blundell2015` and {cite:t}`kingma2015vd` for the gradient; {cite:t}`foong2020` for the gap; {cite:t}`trippe2018` for the units that a better bound gives up.
