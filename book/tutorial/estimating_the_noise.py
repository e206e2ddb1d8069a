# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Measuring the noise
#
# ```{div} page-head
# Page 9 of 12 · 43 minutes to read, 15 to play · Running: about 8 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! noise estimate, ! B̂
# ```

# %%
import torch

from booklib.page.claims import check, near
from booklib.page.scoreboard import show_row
from booklib.page.tables import show_table

# %% tags=["hide-input"]
import itertools
import warnings

import matplotlib.pyplot as plt

from booklib.page.claims import at_least, at_most, at_most_errors
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from sgmc import sample
from sgmc.diagnostics import mean_and_error, virial_ratio
from sgmc.kernels import SGHMC
from sgmc.minibatches import Fresh
from sgmc.posteriors import LogisticRegression
from sgmc.splittings import sghmc_chain
from sgmc.targets import Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# The last run is too hot on purpose; sample would say so.
warnings.filterwarnings("ignore", message=".*too wide|.*do not agree")

# %% [markdown]
# {doc}`SGHMC </book/tutorial/sghmc>` injects only the noise that is missing, so it has to know how much the gradient brings already.
# Page 8 was given that number, $B = \tfrac12\varepsilon V$. In practice nobody is given it: libraries set $\hat B = 0$ or ask the user.
# Where can a sampler get $\hat B$ from, and how good must it be?
#
# It can get it from the minibatch of the very step, because the examples in it disagree, and by how much they disagree says how noisy their mean is.
# And the estimate may be wrong in every single step, as long as it is right on average and the friction leaves room for it.
# Two coins are enough to see all of this.
#
# ## Two coins
#
# The data are $N = 100$ numbers $y_i$, of which fifty are $+1$ and fifty are $-1$.
# The model is $y_i \sim N(\theta, 100)$, with a flat prior.
# The gradient of an example is $g_i = (\theta - y_i)/100$, and all hundred together have $\nabla U = \theta$: this is the bowl.
#
# A minibatch is two examples, drawn with replacement, like two coins.
# Scaled up by $N/n = 50$, its gradient is $\nabla\tilde U = \theta - \frac12(y_1 + y_2)$, so its noise is $-\frac12(y_1 + y_2)$.
# What would somebody say of this noise who sees nothing but the two coins?
# The variance of a mean of $n$ numbers is estimated by their own sample variance $s^2$ over $n$. The gradient is $N$ times the mean of the $g_i$, so $\hat V = N^2s^2/n$.
# Two equal coins have $s^2 = 0$. Two that differ have $g_1 - g_2 = \pm\frac2{100}$ and $s^2 = \frac12(g_1 - g_2)^2 = 2/100^2$, hence $\hat V = \frac{100^2}2\cdot\frac2{100^2} = 1$:
#
# | coins | probability | noise of the gradient | its square | $\hat V$ |
# | --- | ---: | ---: | ---: | ---: |
# | $+\;+$ | ¼ | −1 | 1 | 0 |
# | one of each | ½ | 0 | 0 | 1 |
# | $-\;-$ | ¼ | 1 | 1 | 0 |
# | on average | | 0 | $V = \frac12$ | $\frac12$ |
#
# The estimate is never right: it is 0 or twice the truth. It is even 0 exactly when the gradient is off, and positive when the gradient is right.
# But on average it is $V$.
#
# *A guess before you read on.*
# With $\hat B = \tfrac12\varepsilon\hat V$ this $\hat B$ jumps between 0 and $2B$ at random.
# What does a chain do that believes it?
#
# The rule for any model and any minibatch is the same {cite:p}`ahn2012`, with matrices:
#
# ```{prf:definition} Estimates of the gradient noise
# :label: def-estimate
#
# For a minibatch $S$ of $n \ge 2$ examples let $\bar g_S$ be the mean of their gradients. The *full* estimate is
#
# $$
# \begin{aligned}
# \hat V &= \frac{N^2}n\Bigl(1 - \frac nN\Bigr)\hat\Sigma_S,\\
# \hat\Sigma_S &= \frac1{n - 1}\sum_{i \in S}(g_i - \bar g_S)(g_i - \bar g_S)^\top,
# \end{aligned}
# $$ (eq-estimate)
#
# without the factor $1 - n/N$ if $S$ is drawn with replacement. The *diagonal* estimate keeps $\hat V_{jj}$ only, the *scalar* one their mean. In all cases $\hat B = \tfrac12\varepsilon\hat V$.
# ```
#
# Each factor has its reason.
# The gradient is $N$ times a mean, and a variance takes that factor squared; the mean of $n$ examples has $1/n$ of the variance of one; and without replacement a minibatch of all the data has no noise.
# The mean $\bar g_S$ is subtracted because a slope that all examples share is signal, not noise.
# The full estimate is *unbiased*, $E[\hat V \mid \theta] = V(\theta)$, as it is for the coins; {prf:ref}`thm-noise-estimate` proves it. The other two are unbiased for the diagonal of $V$, and for its mean.
# In code the step of page 8 changes in one thing: it *looks* at a minibatch, which shows a gradient and a $\hat V$, and $\hat B$ is half of $\varepsilon$ times that.

# %%
generator = torch.Generator().manual_seed(9)
coins = torch.tensor([-1.0, 1.0]).repeat(50)


def look(theta):
    """Toss two coins for each chain: the gradient, and V̂ of these very two."""
    pair = coins[torch.randint(100, (2, *theta.shape), generator=generator)]
    g = (theta - pair) / 100
    return 100 * g.mean(0), 100**2 / 2 * g.var(0)


def sghmc_step(look, theta, r, step_size, friction, generator):
    theta = theta + step_size * r
    gradient, variance = look(theta)
    r = r - step_size * (gradient + friction * r)
    missing = (friction - step_size / 2 * variance).clamp(min=0)  # C − B̂, or nothing
    normal = torch.randn(r.shape, generator=generator)
    return theta, r + (2 * step_size * missing) ** 0.5 * normal


# %% [markdown]
# Four thousand chains, at four frictions. The right variance is 1, or 1.02 with the error of this step size:


# %%
def sghmc(look, step_size, friction):
    """Every tenth θ of the steps 300 to 450 in 4,000 chains."""
    theta, r = torch.randn(2, 4_000, generator=generator)
    samples = []
    for step in range(450):
        theta, r = sghmc_step(look, theta, r, step_size, friction, generator)
        if step >= 300 and step % 10 == 0:
            samples.append(theta)
    return torch.stack(samples)


def coin_variance(multiple):
    """The exact variance at C = multiple · B; the formulas come below."""
    temperature = 1 + max(2 - multiple, 0) / 2 / multiple
    return temperature / (1 - 0.3**2 / (4 - 2 * 0.3 * multiple * B))


B, measured, rows = 0.3 / 2 * 0.5, {}, []  # ½εV, with ε = 0.3 and V = ½
for multiple in (0.7, 1.0, 1.5, 2.5):
    squares = (sghmc(look, 0.3, multiple * B) ** 2).mean(0)
    value, error = squares.mean(), squares.std() / len(squares) ** 0.5
    measured[multiple], exact = (value, error), coin_variance(multiple)
    rows.append([f"{multiple} B", f"{exact:.3f}", f"{value:.2f} ± {error:.2f}"])
    check(f"coin-{10 * multiple:.0f}", value, near(exact), error=float(error))
show_table(["friction", "exact variance", "measured"], rows, live=["measured"])

# %% [markdown]
# This answers the guess. With enough friction, $C = 2.5B$, the estimate that is never right gives the right variance, {c}`coin-25`.
# With less it does not: at $C = 1.5B$ the variance is {c}`coin-15`, at $C = B$ {c}`coin-10`, and at $C = 0.7B$ {c}`coin-7`.
# Why is the first so, and what goes wrong in the others?
#
# ## As noisy as you like, if there is room
#
# An estimate from one minibatch is poor. Must we average it over many steps before we use it?
# No, because the sampler itself does the averaging.
#
# ```{prf:theorem} For the covariance, a noisy estimate is as good as the truth
# :label: thm-estimate-kick
#
# Let $\hat V$ be computed from the minibatch that gives $\nabla\tilde U(\theta)$, with $E[\hat V \mid \theta] = V(\theta)$ and $\tfrac12\varepsilon\hat V \preceq C$ always. Then the noise of a step,
#
# $$
# \begin{gathered}
# \zeta = -\varepsilon(\nabla\tilde U - \nabla U) + \sqrt{2\varepsilon C\,I - \varepsilon^2\hat V}\;\xi,\\
# \xi \sim N(0, I) \text{ fresh},
# \end{gathered}
# $$
#
# has mean 0 and covariance
#
# $$
# \operatorname{Cov}[\zeta \mid \theta] = 2\varepsilon C\,I.
# $$ (eq-kick)
# ```
#
# ```{prf:proof}
# Given the minibatch, $\xi$ has mean 0. So the two parts are uncorrelated, although both depend on the minibatch, and their covariances add up: $\varepsilon^2V + E\bigl[2\varepsilon C\,I - \varepsilon^2\hat V\bigr] = 2\varepsilon C\,I$.
# ```
#
# The proof of a chain's variance, {prf:ref}`thm-sghmc-variance`, uses the mean and the covariance of a step's noise and nothing else.
# On a Gaussian target the variances therefore come out as if $B$ were known, even where $V$ depends on $\theta$.
# Means and variances are what is exact here. The noise of a step is a mixture of Gaussians and not Gaussian, so higher moments are only approximately right; they improve with the number of steps in a unit of time, because the sum of the steps' noise is then nearly Gaussian.
#
# Right on average is all that is asked, but that much *is* asked.
# In the bowl of the running example, where $V = 4$, an estimate of twice the truth makes this page's row, as much too narrow as no estimate is too wide:


# %%
def look_at_twice(theta):
    """The noisy gradient of the bowl, and twice the variance of its noise."""
    noise = 2 * torch.randn(theta.shape, generator=generator)
    return theta + noise, torch.full_like(theta, 8.0)


show_row("sghmc-2B", sghmc(look_at_twice, 0.1, 0.5))

# %% [markdown]
# The measured variance is {c}`sghmc-2B`; by page 8's formula the temperature is $1 + (B - 2B)/C = 0.6$.
#
# ## Room for the estimate
#
# The theorem has one condition, $\tfrac12\varepsilon\hat V \preceq C$, and the coins broke it in three of four runs.
# A variance cannot be negative, so where an estimate exceeds the friction the sampler *clips*: it injects nothing there (`clamp` in the code).
# In one dimension the variance of the step's noise is then $2\varepsilon\bigl(B + E[\max(C - \hat B, 0)]\bigr)$. Since $E[\hat B] = B$, this is $2\varepsilon CT$ with the temperature
#
# $$
# T = 1 + \frac{E[\max(\hat B - C, 0)]}C.
# $$ (eq-clipping)
#
# Clipping always heats.
# For the coins $\hat B$ exceeds a friction of $C < 2B$ half of the time, by $2B - C$, so $T = 1 + (2B - C)/(2C)$: 1.5 at $C = B$.
# {numref}`fig-estimate-coins` has the curve and the four runs. From $C = 2B$ on nothing is clipped.
# Below $C = B$ no estimate of any kind would help: the least that we can inject is nothing, so $T \ge B/C$.

# %% mystnb={"figure": {"caption": "Temperature of the coins' posterior against the friction: by {eq}`eq-clipping` (solid), without an estimate (dotted), and measured in the four runs above (points, with two standard errors). Grey: the correct temperature.", "name": "fig-estimate-coins"}, "image": {"alt": "Temperature against friction over noise. With no estimate the curve falls slowly from above 2.4 and stays far above 1. With the last minibatch it falls from 2.2 to 1 at C = 2B and stays there. Four measured points lie on the second curve."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.4, 3.4))
grid, colour = torch.linspace(0.6, 3, 100), COLOURS["SGHMC"]
clipped = 1 + (2 - grid).clamp(min=0) / 2 / grid
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.plot(grid, 1 + 1 / grid, ":", color=colour, label=r"$\hat B = 0$")
axes.plot(grid, clipped, color=colour, label=r"$\hat B$ of the two coins")
for multiple, (value, error) in measured.items():
    step = 1 - 0.3**2 / (4 - 2 * 0.3 * multiple * B)
    style = {"fmt": "o", "ms": 4, "color": "black"}
    axes.errorbar(multiple, step * value, 2 * step * error, **style)
axes.set(xlabel=r"friction over noise, $C/B$", ylabel="temperature $T$")
axes.set(ylim=(0.9, 2.7))
axes.legend()
plt.show()

# %% [markdown]
# How much friction, then?
# Page 8's rule, from $\sqrt a$ to $2\sqrt a$ with $a$ the softest curvature, is about speed, and is the one to use where the noise is small or known.
# This page's rule is about room. Estimates scatter about their mean, and whatever exceeds $C$ heats. For the coins, where $\hat B$ never exceeds $2B$, twice $B$ is enough. In general take three times the largest eigenvalue of the *mean* of $\hat B$, as a rule of thumb, and count what was clipped: {eq}`eq-clipping` turns the count into a temperature.
# Take the larger of the two. In the regression below the first gives 5 to 10 and the second 12, because the largest eigenvalue of $\hat B$ is about 4: we take 12. If the second is much larger, and the chain too slow for it, reduce the noise itself, by a smaller step, larger minibatches or control variates ({doc}`/book/further/control_variates`).
#
# ## Many directions
#
# In several dimensions $B$ and $\hat B$ are matrices, and each direction has a {term}`temperature` of its own.
#
# ```{prf:theorem} Temperature of a direction
# :label: thm-estimate-direction
#
# Let $U = \tfrac12\theta^\top A\theta$ with $A$ positive definite, mass 1, friction a number $C$, and gradient noise that, given the past, has mean 0 and covariance $V$. Let $\hat B \preceq C$, and let $v$ be an eigenvector of $A$ of length 1, $Av = av$. If $0 < \varepsilon C < 2$ and $\varepsilon^2a < 4 - 2\varepsilon C$, then $v^\top\theta$ has, in the limit of many steps of {prf:ref}`alg-sghmc`, mean 0 and
#
# $$
# \begin{gathered}
# \operatorname{Var}(v^\top\theta) = \frac{T_v}a\cdot\frac1{1 - \dfrac{\varepsilon^2a}{4 - 2\varepsilon C}},\\
# T_v = 1 + \frac{v^\top(B - \hat B)\,v}C.
# \end{gathered}
# $$ (eq-direction)
# ```
#
# ```{prf:proof}
# Multiply both lines of the algorithm by $v^\top$. Because $v^\top A = av^\top$, the pair $(v^\top\theta, v^\top r)$ is the one-dimensional chain of {prf:ref}`thm-sghmc-variance`, whose noise has the variance $2\varepsilon\,v^\top(B + C - \hat B)\,v = 2\varepsilon C\,T_v$. The proof there uses mean and covariance of the noise only, so the noise need not be Gaussian.
# ```
#
# Each direction feels the part of $B - \hat B$ that lies along it. The full estimate leaves nothing, on average; the diagonal leaves out the correlations.
#
# To see this we sample a posterior that is known: {doc}`page 5's </book/tutorial/minibatch_noise>` logistic regression with ten coefficients, two of them correlated, and a tenth of the examples, so that it runs in seconds.
# Its minibatches are 200 of 1,000 examples, with replacement.
# `look` is {prf:ref}`def-estimate` line by line, and the step is the one above with matrices, in which the square root is Cholesky's. `keep` says what is kept of $\hat B$: nothing, the diagonal or all of it.

# %%
N, n, d = 1_000, 200, 10  # examples, of a minibatch, coefficients
generator = torch.Generator().manual_seed(0)
inputs, truth = torch.randn(N, d, generator=generator), torch.linspace(-1, 1, d)
inputs[:, 1] = 0.8 * inputs[:, 0] + 0.6 * inputs[:, 1]
targets = torch.bernoulli(torch.sigmoid(inputs @ truth), generator=generator)


def look_at_examples(theta):
    """∇Ũ (chains, d) and V̂ (chains, d, d), from a minibatch for each chain."""
    minibatch = torch.randint(N, (len(theta), n), generator=generator)
    x, y = inputs[minibatch], targets[minibatch]
    g = x * (torch.sigmoid((x @ theta[:, :, None])[:, :, 0]) - y)[:, :, None]
    centred = g - g.mean(1, keepdim=True)
    return theta + N * g.mean(1), N**2 / n * centred.mT @ centred / (n - 1)


def matrix_step(look, theta, r, step_size, friction, keep, generator):
    theta = theta + step_size * r
    gradient, variance = look(theta)
    r = r - step_size * (gradient + friction * r)
    missing = friction * torch.eye(d) - keep(step_size / 2 * variance)  # C − B̂
    normal = torch.randn(*r.shape, 1, generator=generator)
    root = torch.linalg.cholesky(2 * step_size * missing)
    return theta, r + (root @ normal)[:, :, 0]


# %% [markdown]
# Its posterior is nearly a Gaussian at the mode, whose directions are the eigenvectors of the curvature. In each of them we compare the samples' variance with the posterior's, $1/a$:

# %%
mode = truth
for _ in range(10):  # Newton's method
    p = torch.sigmoid(inputs @ mode)
    curvature = torch.eye(d) + (inputs.T * (p * (1 - p))) @ inputs
    slope = mode + inputs.T @ (p - targets)
    mode = mode - torch.linalg.solve(curvature, slope)
curvatures, directions = torch.linalg.eigh(curvature)  # from soft to stiff

kinds = {
    "none": lambda B: 0 * B,
    "diagonal": lambda B: torch.diag_embed(B.diagonal(dim1=1, dim2=2)),
    "full": lambda B: B,
}
start, friction = mode.repeat(60, 1), 12.0
along, rows = {}, []
for name, keep in kinds.items():
    theta, r, samples = start, torch.zeros_like(start), []
    for step in range(500):
        settings = 0.008, friction, keep, generator
        theta, r = matrix_step(look_at_examples, theta, r, *settings)
        if step >= 100 and step % 5 == 0:
            samples.append((theta - mode) @ directions)
    along[name] = torch.stack(samples)  # (samples, chains, directions)
    ratios = curvatures * along[name].var((0, 1))
    few = (f"{ratios[place].mean():.2f}" for place in (slice(0, 2), slice(2, 9), 9))
    rows.append([name, *few])
heads = ["estimate", "two softest directions", "the next seven", "the stiffest"]
show_table(heads, rows, live=heads[1:])

# %% [markdown]
# Without an estimate the samples are too wide, most in the stiff directions, because there the noise is largest. With the full covariance of each minibatch's own gradients no direction differs from 1 by more than the error of this short run.
# With the diagonal alone the stiffest direction, nearly the sum of the two correlated coefficients, is too wide, and the softest ones are too narrow.
# By the theorem the temperature in the stiffest direction is {c}`hot` without an estimate, and with the diagonal it goes from {c}`narrow` in the softest to {c}`wide` in the stiffest; {numref}`fig-regression-temperatures` shows that the measurements agree within their errors.

# %% mystnb={"figure": {"caption": "Variance of SGHMC's samples over the posterior's, in ten directions from the softest to the stiffest: measured (points, with two standard errors) and by {eq}`eq-direction` (lines), with three estimates from the minibatch of each step. Grey: the correct variance.", "name": "fig-regression-temperatures"}, "image": {"alt": "Ten directions in a row. The dotted line of no estimate rises from 1.05 to 1.3. The dashed line of the diagonal starts below 0.9, lies near 1 for seven directions and ends above 1.1. The solid line of the full estimate lies at 1. The points of each lie about its line."}} tags=["hide-input"]
# The posterior is not quite that Gaussian: its variances, and the noise on average over
# it, by importance samples from a Gaussian that is a little wider.
normal = torch.randn(8_000, d, generator=generator)
places = mode + 1.1 * normal @ torch.linalg.cholesky(torch.linalg.inv(curvature)).T
scores = places @ inputs.T
energy = places.square().sum(-1) / 2 + torch.nn.functional.softplus(scores).sum(-1)
energy = energy - scores @ targets
weights = torch.softmax(normal.square().sum(-1) / 2 - energy, 0)
ratios = (places - weights @ places) @ directions
posterior = weights @ ratios**2  # variances
noise = torch.zeros(d, d)
for i in torch.multinomial(weights, 100, generator=generator):
    wrong = torch.sigmoid(scores[i]) - targets
    noise += 0.004 * N**2 / n * torch.cov(inputs.T * wrong, correction=0) / 100
expected, found = {}, {}
for name, keep in kinds.items():
    excess = (directions.T @ (noise - keep(noise[None])[0]) @ directions).diagonal()
    step = 1 - 0.008**2 * curvatures / (4 - 2 * 0.008 * friction)
    expected[name] = (1 + excess / friction) / step
    centred = along[name] - along[name].mean((0, 1))
    of_chains = (centred**2).mean(0) / posterior
    found[name] = of_chains.mean(0), of_chains.std(0) / len(start) ** 0.5
figure, axes = plt.subplots(figsize=(5.4, 3.6))
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
for shift, (name, line, mark) in zip(
    (-0.12, 0, 0.12),
    (("none", ":", "o"), ("diagonal", "--", "s"), ("full", "-", "^")),
    strict=True,
):
    spots, (value, error) = torch.arange(1, d + 1) + shift, found[name]
    axes.plot(spots, expected[name], line, color=COLOURS["SGHMC"])
    style = {"fmt": mark, "ms": 4, "lw": 0.8, "color": "black"}
    label = r"$\hat B = 0$" if name == "none" else rf"{name} $\hat V$"
    axes.errorbar(spots, value, 2 * error, label=label, **style)
axes.set(xlabel="direction, from soft to stiff", ylabel="variance over the posterior's")
axes.set_xticks(range(1, d + 1))
axes.set_ylim(0.7, 1.65)
axes.legend(loc="upper center", ncols=3)
plt.show()

# %% tags=["hide-input"]
distances = [
    (value - expected[name]).abs() / error for name, (value, error) in found.items()
]
check(
    "directions",
    max(map(max, distances)),
    at_most_errors(),
    because="60 chains each; exceeded by chance once in 50,000 times",
    says="Largest distance of thirty variances from the theorem's, in standard errors",
)
check("narrow", expected["diagonal"].min(), at_most(0.95), digits=2)
check("wide", expected["diagonal"].max(), at_least(1.08), digits=3)
check("hot", expected["none"].max(), at_least(1.2), digits=3)
wider = (posterior * curvatures).mean()
check("wider", wider, near(1.02, 0.02), digits=3, because="8,000 importance samples")
model = LogisticRegression(
    inputs, targets, batch_size=n, minibatches=Fresh(replacement=True)
)
first = truth.repeat(3, 1)
generator.manual_seed(1)
seen = look_at_examples(first)
minibatch = torch.randint(N, (3, n), generator=generator.manual_seed(1))
others = model.gradient_and_variance_given(first, minibatch, "full")
check(
    "same-look",
    max((a / b - 1).abs().max() for a, b in zip(seen, others, strict=True)),
    at_most(0.01),
    kind="exact",
    because="the same sums; rounding in single precision",
    says="Largest relative difference of look and the package, three minibatches",
)

# %% [markdown]
# The figure divides by the true variances of the posterior, which are {c}`wider` times $1/a$ on average because it is not quite a Gaussian; the table, which divides by $1/a$, is by so much too high.
#
# In the package, `SGHMC(step_size, friction, noise_estimate=OnlineNoise())` does this for any posterior, with the diagonal; `OnlineNoise("full")` takes the matrix, and `averaging=0.9` mixes in past minibatches with the weight $\lambda = 0.9$, which is clipped less often, and unbiased where $V$ does not change along the path.
# The full matrix holds $d^2$ numbers and needs its root at every step. The diagonal costs a network about one more matrix product in each layer ({doc}`/book/further/noise_of_networks`), and leaves the correlations in the temperature.
# {doc}`/book/further/choosing_the_estimate` compares the three.
#
# **To remember:** measure the noise where it acts, in the step's own minibatch. Unbiased is enough, but what the estimate leaves out, and what is clipped, stays in the temperature.
#
# With that, the sampler is complete. {doc}`The next page </book/tutorial/digits>` samples two hundred networks with it.

# %% tags=["hide-input"]
generator = torch.Generator().manual_seed(0)
few_inputs = torch.randn(12, 3, generator=generator, dtype=torch.float64)
few_targets = (torch.rand(12, generator=generator) < 0.5).double()
position = torch.tensor([[0.3, -0.5, 0.8]], dtype=torch.float64)
for how, minibatches in (
    ("without", torch.tensor(list(itertools.combinations(range(12), 4)))),
    ("with", torch.tensor(list(itertools.product(range(12), repeat=4)))),
):
    few = LogisticRegression(
        few_inputs, few_targets, batch_size=4, minibatches=Fresh(how == "with")
    )
    gradients, estimates = few.gradient_and_variance_given(
        position.expand(len(minibatches), -1), minibatches, "full"
    )
    check(
        f"unbiased-{how}",
        (estimates.mean(0) - torch.cov(gradients.T, correction=0)).abs().max(),
        at_most(1e-10),
        kind="exact",
        because="enumeration; rounding",
        says=f"Largest error of the mean of V̂ over all {len(minibatches):,} "
        f"minibatches {how} replacement",
    )

# %% [markdown]
# ## Change it
#
# * In `sghmc_step` set `step_size / 2 * variance` to `0 * variance`: the four points of {numref}`fig-estimate-coins` jump up to the dotted curve, and the row shows 1.40.
# * In `look_at_examples` set `N**2 / n` to `N / n`, a factor that is easily forgotten: $\hat V$ is nearly nothing, and in {numref}`fig-regression-temperatures` the points of all three kinds lie about the dotted line.
# * In the visible cell with the three runs set `friction = mode.repeat(60, 1), 12.0` to `friction = mode.repeat(60, 1), 24.0`: in the same figure the dotted and the dashed line come twice as near to 1, and the chains need longer.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-estimate-centring
#
# **Without centring.** ★★
# What is the expectation of {eq}`eq-estimate`, with replacement, if $\bar g_S$ is not subtracted? When does it matter?
# ```
#
# ```{solution} ex-estimate-centring
# :class: dropdown
#
# $\frac1{n-1}\sum g_ig_i^\top$ exceeds the centred sum by $\frac n{n-1}\bar g_S\bar g_S^\top$, and $N\bar g_S$ is the likelihood's part of $\nabla\tilde U$, with mean $G$ and covariance $V$. So its expectation grows by $\frac{1}{n-1}(V + GG^\top)$.
# The first term is a matter of $1/n$. In equilibrium the average of $GG^\top$ is about $\nabla^2U \approx \frac nNV$, so the second is even smaller. Far from the mode, as at the start of a run, $G$ is as large as $N$ gradients that all agree, and the uncentred estimate takes the slope for noise; the chain is clipped or cooled on its way down.
# ```
#
# ````{exercise}
# :label: ex-estimate-yourself
#
# **Write it yourself.** ★
# Estimate $V$ from the gradients of the examples of one minibatch, drawn without replacement.
#
# ```python
# def my_estimate(gradients, num_examples):
#     """gradients (n, d), one row for each example, not scaled -> V̂ (d, d)"""
#     ...
# ```
#
# Task 3 of assignment 2 ({doc}`/book/practice/teaching`) asks for the same, and lists all minibatches to test it.
# ````
#
# ````{solution} ex-estimate-yourself
# :class: dropdown
#
# `torch.cov` divides by $n - 1$ and subtracts the mean; what remains are the two factors.
#
# ```python
# def my_estimate(gradients, num_examples):
#     n = len(gradients)
#     return num_examples**2 / n * (1 - n / num_examples) * torch.cov(gradients.T)
# ```
# ````

# %% tags=["hide-input"]
few = LogisticRegression(few_inputs, few_targets, batch_size=4)
four = (
    few_inputs[:4] * (torch.sigmoid(few_inputs @ position[0]) - few_targets)[:4, None]
)
solution = 12**2 / 4 * (1 - 4 / 12) * torch.cov(four.T)
_, estimate = few.gradient_and_variance_given(position, torch.arange(4)[None], "full")
check(
    "my-estimate",
    (solution - estimate).abs().max(),
    at_most(1e-10),
    kind="exact",
    because="the same sums; rounding",
    says="Largest difference of the solution and the package, four of twelve examples",
)

# %% [markdown]
# ```{exercise}
# :label: ex-estimate-thermometer
#
# **Diagnose a run.** ★★★
# First the thermometer: show that $E[(\theta - c)^\top\nabla U(\theta)] = Td$ for every $c$, if $\theta \in \mathbb R^d$ has the density $\exp(-U/T)$ up to a factor and $\lVert\theta\rVert e^{-U/T}$ vanishes at infinity. What does the average of $(\theta - c)^\top\nabla\tilde U(\theta)/d$ over the samples of a chain tell, and why must the minibatch be a fresh one, and $c$ not the mean of the same samples? Then the patient: a run in the bowl with $V = 4$, $\varepsilon = 0.1$ and $C = 0.4$ shows 1.5. What was forgotten?
# ```
#
# ```{solution} ex-estimate-thermometer
# :class: dropdown
#
# Integrate by parts in each coordinate: $\int(\theta_j - c_j)\,\partial_jU\,e^{-U/T} = -T\int(\theta_j - c_j)\,\partial_je^{-U/T} = T\int e^{-U/T}$. This is the virial theorem. The average is the temperature of the positions, momenta apart: on a Gaussian, the mean of the variances in units of their correct values. A fresh minibatch makes $\nabla\tilde U$ unbiased given $\theta$, whereas that of the step has moved $\theta$ already. The mean of few or correlated samples is too near to them, and makes the average too small.
# `sample` computes it at the end of a run from at most two hundred gradients (`sgmc.diagnostics.virial_ratio`), and says so if it is off by a fifth and by five standard errors.
# The patient has $B = 0.2$, and $1.5 = 1 + B/C$: the estimate was forgotten, $\hat B = 0$. With a factor of 2 too much, $\hat B = 2B$, it would be $0.5$. The folded run below has this very mistake.
# ```

# %% tags=["hide-input"]
noisy = NoisyGradient(Gaussian.standard(2), 4.0)
hot = sample(
    SGHMC(0.1, friction=0.4, num_steps=40), noisy, torch.zeros(40, 2), 100, warm_up=10
)
ratio, ratio_error, _ = mean_and_error(
    virial_ratio(noisy, hot.samples, torch.Generator().manual_seed(1))
)
check(
    "virial",
    ratio,
    near(float(sghmc_chain(torch.eye(1), 0.1, 0.4, 4.0).stationary_covariance()[0, 0])),
    error=float(ratio_error),
    because="the exact variance; forty chains",
    says="Virial ratio of a chain without an estimate",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`chen2014` leave $\hat B$ to the user, and {cite:t}`ahn2012` estimate it as here, for another sampler. {cite:t}`mandt2017` ask what happens if the gradient's noise is the only one, as {doc}`/book/further/constant_sgd` does.
