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
# Page 9 of 12 · 37 minutes to read, 15 to play · Running: about 8 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! noise estimate, ! B̂
# ```

# %%
import torch

from booklib.page.scoreboard import show_row

# %% tags=["hide-input"]
import itertools
import warnings

import matplotlib.pyplot as plt

from booklib.page.claims import at_most, at_most_errors, check, near
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
# Page 8 was given that number, $B = \tfrac12\varepsilon V$.
# In practice nobody is given it: libraries set $\hat B = 0$ or ask the user.
# But a minibatch shows us the gradients of $n$ examples, and how much they disagree. Can we take $\hat B$ from there?
#
# We can, and {numref}`fig-regression-temperatures` shows it on a posterior that is known: {doc}`page 5's </book/tutorial/minibatch_noise>` logistic regression with ten coefficients, two of them correlated, and a tenth of the examples, so that it runs in seconds.
# SGHMC samples it from real minibatches, 200 of 1,000 examples.
# Without an estimate the samples are too wide, most where the posterior is narrow, because there the noise is largest.
# With the full covariance of each minibatch's own gradients they are right in all directions.
# With its diagonal alone they are right in most, but it misses the correlations: the stiffest direction is too wide, and the two softest are too narrow.
#
# The step is that of page 8, but for one thing: it *looks* at a minibatch, which shows the gradient and its covariance $\hat V$ ({prf:ref}`def-estimate` below), and `noise_estimate` says what is taken over from $\tfrac12\varepsilon\hat V$.

# %%
N, n, d = 1_000, 200, 10  # examples, of a minibatch, coefficients
generator = torch.Generator().manual_seed(0)
inputs, truth = torch.randn(N, d, generator=generator), torch.linspace(-1, 1, d)
inputs[:, 1] = 0.8 * inputs[:, 0] + 0.6 * inputs[:, 1]
targets = torch.bernoulli(torch.sigmoid(inputs @ truth), generator=generator)


def look(theta):
    """∇Ũ (chains, d) and V̂ (chains, d, d), from a minibatch for each chain."""
    minibatch = torch.randint(N, (len(theta), n), generator=generator)
    x, y = inputs[minibatch], targets[minibatch]
    wrong = torch.sigmoid((x @ theta[:, :, None])[:, :, 0]) - y
    g = x * wrong[:, :, None]  # the gradients of the examples
    centred = g - g.mean(1, keepdim=True)
    return theta + N * g.mean(1), N**2 / n * centred.mT @ centred / (n - 1)


def sghmc_step(look, theta, r, step_size, friction, noise_estimate, generator):
    theta = theta + step_size * r
    gradient, variance = look(theta)
    r = r - step_size * (gradient + friction * r)
    estimate = noise_estimate(step_size / 2 * variance)  # B̂
    injected = 2 * step_size * (friction * torch.eye(r.shape[1]) - estimate)
    normal = torch.randn(*r.shape, 1, generator=generator)
    return theta, r + (torch.linalg.cholesky(injected) @ normal)[:, :, 0]


def sghmc(look, theta, step_size, friction, noise_estimate):
    """Every fifth θ of 400 steps in many chains, after 100 steps."""
    r, samples = torch.zeros_like(theta), []
    for step in range(500):
        settings = step_size, friction, noise_estimate, generator
        theta, r = sghmc_step(look, theta, r, *settings)
        if step >= 100 and step % 5 == 0:
            samples.append(theta)
    return torch.stack(samples)


kinds = {
    "none": lambda B: 0 * B,
    "diagonal": lambda B: torch.diag_embed(B.diagonal(dim1=1, dim2=2)),
    "full": lambda B: B,
}
start, friction = truth.repeat(60, 1), 12.0
runs = {name: sghmc(look, start, 0.008, friction, B) for name, B in kinds.items()}

# %% mystnb={"figure": {"caption": "Variance of SGHMC's samples over the posterior's, in ten directions from the softest to the stiffest: measured (points, with two standard errors) and by {eq}`eq-direction` with curvature and noise of the mode (lines), with three estimates from the minibatch of each step. Grey: the correct variance.", "name": "fig-regression-temperatures"}, "image": {"alt": "Ten directions in a row. The dotted line of no estimate rises from 1.05 to 1.3, with points about it and above. The dashed line of the diagonal starts below 0.9, lies near 1 for seven directions and ends above 1.1. The solid line of the full estimate lies at 1, and so do its points."}} tags=["hide-input"]
mode, inverse = truth.double(), torch.eye(d, dtype=torch.float64)
x = inputs.double()
for _ in range(30):  # Newton's method; afterwards x, p and hessian belong to the mode
    p = torch.sigmoid(x @ mode)
    hessian = inverse + (x.T * (p * (1 - p))) @ x
    mode = mode - torch.linalg.solve(hessian, mode + x.T @ (p - targets))
curvatures, directions = torch.linalg.eigh(hessian)
B = 0.004 * N**2 / n * torch.cov(x.T * (p - targets), correction=0)  # ½εV at the mode
exact, measured = {}, {}
for name, kind in kinds.items():
    excess = (directions.T @ (B - kind(B[None])[0]) @ directions).diagonal()
    step = 1 - 0.008**2 * curvatures / (4 - 2 * 0.008 * friction)
    exact[name] = (1 + excess / friction) / step
    samples = runs[name].double()  # whose mean is not quite the mode
    of_chains = (((samples - samples.mean((0, 1))) @ directions) ** 2).mean(0)
    of_chains = of_chains * curvatures
    measured[name] = of_chains.mean(0), of_chains.std(0) / len(start) ** 0.5
figure, axes = plt.subplots(figsize=(6.0, 3.6))
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
for shift, (name, line, mark) in zip(
    (-0.12, 0, 0.12),
    (("none", ":", "o"), ("diagonal", "--", "s"), ("full", "-", "^")),
    strict=True,
):
    places, (value, error) = torch.arange(1, d + 1) + shift, measured[name]
    axes.plot(places, exact[name], line, color=COLOURS["SGHMC"])
    look_of = {"fmt": mark, "ms": 4, "lw": 0.8, "color": "black"}
    label = r"$\hat B = 0$" if name == "none" else rf"{name} $\hat V$"
    axes.errorbar(places, value, 2 * error, label=label, **look_of)
axes.set(xlabel="direction, from soft to stiff", ylabel="variance over the posterior's")
axes.set_xticks(range(1, d + 1))
axes.set_ylim(0.7, 1.65)
axes.legend(loc="upper center", ncols=3)
plt.show()

# %% tags=["hide-input"]
for name, (value, error) in measured.items():
    check(
        f"directions-{name}",
        ((value - exact[name]).abs() / error).max(),
        at_most_errors(),
        because="60 chains; the posterior is a Gaussian to 4 per cent",
        says=f"Largest distance of ten variances from the exact ones, {name}, in "
        "standard errors",
    )
check("narrow", exact["diagonal"].min(), kind="exact", digits=2)
check("wide", exact["diagonal"].max(), kind="exact", digits=3)
check("hot", exact["none"].max(), kind="exact", digits=3)
model = LogisticRegression(
    inputs, targets, batch_size=n, minibatches=Fresh(replacement=True)
)
first = truth.repeat(3, 1)
generator.manual_seed(1)
seen = look(first)
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
# In numbers, the stiffest direction has {c}`hot` times the posterior's variance without an estimate; with the diagonal the widest has {c}`wide` times and the narrowest {c}`narrow` times.
#
# Too much is as wrong as too little. In the bowl of the running example, where $V = 4$ is known, the same step with twice the right estimate makes this page's row:


# %%
def look_at_the_bowl(theta):
    noise = 2 * torch.randn(theta.shape, generator=generator)
    return theta + noise, torch.full((len(theta), 1, 1), 4.0)


bowl = torch.zeros(1_000, 1)
show_row("sghmc-2B", sghmc(look_at_the_bowl, bowl, 0.1, 0.5, lambda B: 2 * B)[:, :, 0])

# %% [markdown]
# The measured variance is {c}`sghmc-2B`.
#
# *A guess before you read on.*
# An estimate from one minibatch of two examples is nearly always wrong: sometimes zero, sometimes twice the right value.
# What does a chain do whose $\hat B$ jumps between 0 and $2B$ at random?
#
# ## One temperature for each direction
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
# Each direction feels the part of $B - \hat B$ that lies along it, and the step size's own bias, the last factor, does not mix with the temperature.
# So the question is how to find $B$.
#
# ## From the examples of a minibatch
#
# By {prf:ref}`thm-minibatch` the covariance $V$ of the {term}`gradient noise` is that of the $g_i = -\nabla\log p(x_i \mid \theta)$ over the data, times $N^2/n$, and times $(N - n)/(N - 1)$ as well if no example is drawn twice.
# We do not know the covariance over all the data, but the covariance over the minibatch estimates it {cite:p}`ahn2012`.
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
#
# The full estimate is unbiased, $E[\hat V \mid \theta] = V(\theta)$, by {prf:ref}`thm-noise-estimate`; the other two are unbiased for the diagonal of $V$, and for its mean.
# For a logistic regression with twelve examples one can also list all 495 minibatches of four. The mean of their $\hat V$ is the covariance of their gradients, to rounding.

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
# ## As noisy as you like
#
# A variance that is estimated from $n$ Gaussian numbers has a relative error of $\sqrt{2/(n - 1)}$, so one minibatch makes a poor estimate.
# Must we average it over many steps before we use it?
# For the covariance of the noise the answer is no, because the sampler itself does the averaging.
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
# {prf:ref}`thm-estimate-direction` needs nothing but this mean and covariance.
# On a Gaussian target the variances therefore come out as if $B$ were known, as long as nothing is clipped, even where $V$ depends on $\theta$.
#
# There is one condition, $\tfrac12\varepsilon\hat V \preceq C$, and it is a real one.
# A variance cannot be negative, so where an estimate exceeds the friction the {term}`kernel` *clips*: it injects nothing there, whereas the root in `sghmc_step` above would stop with an error.
# In one dimension the variance of the step's noise is then $2\varepsilon\bigl(B + E[\max(C - \hat B, 0)]\bigr)$, and since $E[\hat B] = B$ this means the temperature
#
# $$
# T = 1 + \frac{E[\max(\hat B - C, 0)]}C.
# $$ (eq-clipping)
#
# Clipping always heats.
# And if the noise itself exceeds the friction, then $T \ge B/C$ whatever the estimate, because the least that we can inject is nothing.
#
# ## The coin that is never right
#
# Let the data be $N = 100$ numbers $y_i = \pm1$, half of each sign, with the model $y_i \sim N(\theta, 100)$ and minibatches of two, drawn with replacement.
# The two examples are equal, and then $\hat V = 0$, or they differ, and then $\hat V = 2V$; each happens half the time.
# This is the estimate of the guess: it jumps between 0 and $2B$, and is never right.
# A step, and runs at four frictions:


# %%
coins = torch.tensor([-1.0, 1.0]).repeat(50)


def coin_step(theta, r, step_size, friction, generator):
    """Drift, look at two coins, kick; theta and r (chains,)."""
    theta = theta + step_size * r
    pair = coins[torch.randint(100, (2, len(theta)), generator=generator)]
    gradients = (theta - pair) / 100  # of the two examples, σ² = 100
    variance = 100**2 / 2 * gradients.var(0)  # V̂, with N = 100 and n = 2
    missing = (friction - step_size / 2 * variance).clamp(min=0)  # C − B̂, clipped
    gradient = 100 * gradients.mean(0) + theta / 1e6  # the prior is N(0, 1e6)
    r = r - step_size * (gradient + friction * r)
    normal = torch.randn(r.shape, generator=generator)
    return theta, r + (2 * step_size * missing) ** 0.5 * normal


noise = 0.5 * 0.3 * 100**2 / 2 / 100**2  # B = ½εV at ε = 0.3: yᵢ/σ² has variance 1/σ⁴
tosses = {}
for multiple in (0.7, 1.0, 1.5, 2.5):
    theta, r = torch.randn(2, 4_000, generator=generator)
    samples = []
    for step in range(450):
        theta, r = coin_step(theta, r, 0.3, multiple * noise, generator)
        if step >= 300 and step % 10 == 0:
            samples.append(theta)
    tosses[multiple] = torch.stack(samples)

# %% [markdown]
# In the package, `SGHMC(step_size, friction, noise_estimate=OnlineNoise())` does this for any posterior: it asks for the gradient and for the diagonal $\hat V$ of the same minibatch.
# `OnlineNoise("full")` takes the matrix, and `averaging=0.9` mixes in past minibatches with the weight $\lambda = 0.9$; the average is unbiased only where $V$ does not change along the path.
# {numref}`fig-estimate-coins` has the coin's temperature for four frictions, and by {eq}`eq-clipping` with such an average, which for $\lambda = 0.9$ has the variance of a plain mean over $(1 + \lambda)/(1 - \lambda) = 19$ minibatches.

# %% mystnb={"figure": {"caption": "Temperature of the coin's posterior against the friction, by the formula for clipping (lines) and measured (points, with two standard errors). Without averaging the estimate is zero or $2B$ at each step.", "name": "fig-estimate-coins"}, "image": {"alt": "Temperature against friction over noise. With no estimate the curve falls slowly and stays far above 1. With the last minibatch it reaches 1 at C = 2B and stays there; with an average over past minibatches it reaches 1 soon after C = B. Measured points lie on the curves."}} tags=["hide-input"]
throws = 2 * torch.randint(2, (100_000, 100), generator=generator).float()
histories = {  # the values that B̂/B takes
    "last minibatch": torch.tensor([0.0, 2.0]),
    r"$\lambda = 0.9$": throws @ (0.1 * 0.9 ** torch.arange(100)),
}


def clipped_temperature(multiple, history):
    """The formula for clipping, at C = multiple·B."""
    return 1 + float((histories[history] - multiple).clamp(min=0).mean()) / multiple


temperatures = {}
for multiple, samples in tosses.items():
    step = 1 - 0.3**2 / (4 - 2 * 0.3 * multiple * noise)
    of_chains = step * (samples**2).mean(0)
    temperatures[multiple] = of_chains.mean(), of_chains.std() / len(of_chains) ** 0.5
figure, axes = plt.subplots(figsize=(5.4, 3.6))
grid, colour = torch.linspace(0.6, 3, 100), COLOURS["SGHMC"]
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.plot(grid, 1 + 1 / grid, ":", color=colour, label=r"$\hat B = 0$")
for history, style in zip(histories, ("-", "--"), strict=True):
    line = [clipped_temperature(m, history) for m in grid.tolist()]
    axes.plot(grid, line, style, color=colour, label=f"online, {history}")
for multiple, (value, error) in temperatures.items():
    axes.errorbar(multiple, value, 2 * error, fmt="o", ms=4, color="black")
axes.set(
    xlabel=r"friction over noise, $C/B$", ylabel="temperature $T$", ylim=(0.9, 2.1)
)
axes.legend()
plt.show()

# %% [markdown]
# From $C = 2B$ on nothing is clipped, and the estimate that is never right gives the right temperature, exactly by the formula and within the error bars when measured: this answers the guess.
# Between $B$ and $2B$ averaging helps, because the average exceeds the friction less often (dashed).
# Below $C = B$ nothing makes the temperature 1.

# %% tags=["hide-input"]
for multiple, (value, error) in temperatures.items():
    check(
        f"coin-{multiple}",
        value,
        near(clipped_temperature(multiple, "last minibatch")),
        error=float(error),
        because="the formula for clipping; 4,000 chains",
        says=f"Temperature of the coin at C = {multiple}B",
    )
# %% [markdown]
# What is exact here, on a Gaussian target, are means and variances. The noise of a step is a mixture of Gaussians and not Gaussian, so higher moments are only approximately right. They improve with the number of steps in a unit of time, because the sum of the steps' noise is then nearly Gaussian.
#
# Which of the three kinds to take, and how much friction to give it, is a matter of the model; {doc}`/book/further/choosing_the_estimate` compares them on a logistic regression.
# {numref}`fig-regression-temperatures` has the trade: the full matrix is right, but holds $d^2$ numbers and needs its root at every step. The diagonal adds to each step the squares of the examples' gradients, for a network of linear layers a third matrix product a layer beside the two of a gradient step ({doc}`/book/studies/noise_of_networks`), and leaves out the correlations. By {eq}`eq-direction` a direction $v$ then has the temperature $1 + v^\top(B - \operatorname{diag}B)v/C$: some directions are too hot, others too cold, by at most the largest eigenvalue of $B - \operatorname{diag}B$ in absolute value over $C$.
# A rule that does well there: take the diagonal from the step's own minibatch, a friction of about three times the largest $\hat B_{jj}$, and watch how often it is clipped.
# Clipping is the price of too little friction. If you cannot afford the friction, which makes the chain slow, reduce the noise itself, by larger minibatches or by control variates.
#
# **To remember:** measure the noise where it acts, in the step's own minibatch; unbiased is enough, but what the estimate leaves out, and what is clipped, stays in the temperature.
# With that, the sampler is complete. {doc}`The next page </book/tutorial/digits>` samples two hundred networks with it.
#
# ## Change it
#
# * In `look` set `N**2 / n` to `N / n`, a factor that is easily forgotten: $\hat V$ is nearly nothing, and in {numref}`fig-regression-temperatures` the points of all three kinds lie about the dotted line.
# * In the visible cell with the three runs set `truth.repeat(60, 1), 12.0` to `truth.repeat(60, 1), 24.0`, twice the friction: in the same figure the dotted and the dashed line come twice as near to 1, and the chains need longer.
# * In `coin_step` set `step_size / 2 * variance` to `0 * variance`: the points of {numref}`fig-estimate-coins` jump up to the curve of $\hat B = 0$.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-estimate-centring
#
# ★★ What is the expectation of {eq}`eq-estimate`, with replacement, if $\bar g_S$ is not subtracted? When does it matter?
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
# ★ **Write it yourself.** Estimate $V$ from the gradients of the examples of one minibatch, drawn without replacement.
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
# ★★★ *Diagnose a run.* First the thermometer: show that $E[(\theta - c)^\top\nabla U(\theta)] = Td$ for every $c$, if $\theta \in \mathbb R^d$ has the density $\exp(-U/T)$ up to a factor and $\lVert\theta\rVert e^{-U/T}$ vanishes at infinity. What does the average of $(\theta - c)^\top\nabla\tilde U(\theta)/d$ over the samples of a chain tell, and why must the minibatch be a fresh one, and $c$ not the mean of the same samples? Then the patient: a run in the bowl with $V = 4$, $\varepsilon = 0.1$ and $C = 0.4$ shows 1.5. What was forgotten?
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
