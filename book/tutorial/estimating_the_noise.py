# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Estimating the noise
#
# ```{div} page-head
# Level: second course · Reading: about 100 minutes, without the exercises · Running: about 20 seconds
# ```
#
# The minibatch that gives a gradient also tells how wrong that gradient is; this chapter makes a $\hat B$ of it, and finds out when that repairs a sampler and when nothing can.
#
# **You will learn** to
#
# * say by an exact formula what a wrong $\hat B$ does, direction by direction,
# * estimate the noise without bias, from the very minibatch of the step,
# * choose between one number, a diagonal and a matrix, and tell beforehand which will do,
# * say which law four wrong estimates lead to,
# * choose the friction, and reduce the noise where friction is not enough.
#
# **You will need** {doc}`/book/tutorial/minibatch_noise` and {doc}`/book/tutorial/sghmc`.
# Networks have a chapter of their own, {doc}`/book/studies/noise_of_networks`.

# %%
import itertools
import warnings

import matplotlib.pyplot as plt
import torch

from booklib.claims import claim
from booklib.figures import TRUTH, show_frames, use_style
from booklib.play import play
from booklib.tables import show_table
from sgmc import sample
from sgmc.kernels import HMC, SGHMC
from sgmc.matrices import Matrix
from sgmc.minibatches import Fresh, Held
from sgmc.models import control_variates
from sgmc.noise import (
    OnlineNoise,
    estimate_noise_variance,
    friction_for,
)
from sgmc.posteriors import LinearRegression, LogisticRegression
from sgmc.remarks import mean_and_error, virial_ratio
from sgmc.splittings import LinearChain, Splitting, flows, sghmc_chain
from sgmc.targets import Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Several runs below take too little friction on purpose, and the kernel would warn each
# time.
warnings.filterwarnings("ignore", message="½εV̂ exceeded the friction")
# The runs start in the posterior and are short: what R̂ says of long chains is no help.
warnings.filterwarnings("ignore", message=".*do not agree")
KINDS = {
    "zero": "#D55E00",
    "scalar": "#E69F00",
    "diagonal": "#0072B2",
    "full": "#009E73",
    "fixed": "#56B4E9",
}

# %% [markdown]
# ## What a wrong estimate does
#
# A step of SGHMC is a matter of income and expense.
#
# * The gradient kicks the momentum by $-\varepsilon\nabla\tilde U$. Its noise has covariance $\varepsilon^2V = 2\varepsilon B$ with $B = \tfrac12\varepsilon V$: income that nobody asked for.
# * We inject noise of covariance $2\varepsilon(C - \hat B)$ of our own.
# * The {term}`friction` $C$ takes away just as much as noise of covariance $2\varepsilon C$ brings.
#
# The books balance if $B + (C - \hat B) = C$, that is, if $\hat B = B$. The {term}`noise estimate` $\hat B$ is what we *take away* from our own noise, because the gradient has brought it already.
# Nobody is told $B$. Libraries set $\hat B$ to zero or ask for a number, and the chapter on SGHMC was given the answer.


# %% mystnb={"figure": {"caption": "What $\\hat B$ takes away, in the limit of small steps. Left: the noise of a step, that of the gradient ($B$) and what is injected ($C - \\hat B$), against what friction takes (line). Right: the law that follows, against the target. Move the slider: at $\\hat B = 0$ there is too much noise, at $\\hat B = B$ the two agree, at $\\hat B = 2B$ there is too little.", "name": "fig-estimate-budget"}} tags=["hide-input"]
def budget_frames():
    """A frame for each estimate from 0 to 2B and back to B, half of C = 1."""
    grid = torch.linspace(-4, 4, 200)
    target = torch.exp(-0.5 * grid**2) / (2 * torch.pi) ** 0.5
    for multiple in (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 1.5, 1):
        temperature = 1 + (1 - multiple) * 0.5
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(5, 3), width_ratios=(1, 1.5)
        )
        left.bar(0, 0.5, color=KINDS["zero"], label="gradient, $B$")
        left.bar(
            0, 1 - 0.5 * multiple, bottom=0.5, color=KINDS["fixed"], label="injected"
        )
        left.axhline(1, color="black", ls="--", label="friction, $C$")
        left.set(xlim=(-1, 1), ylim=(0, 2.6), xticks=[], ylabel="noise of a step")
        left.legend(loc="upper center", fontsize=8)
        right.fill_between(grid, target, color=TRUTH, alpha=0.35, lw=0, label="target")
        chain = torch.exp(-0.5 * grid**2 / temperature)
        chain /= (2 * torch.pi * temperature) ** 0.5
        right.plot(grid, chain, color="black", label="chain")
        right.set(xlabel=r"$\theta$", ylabel="density", ylim=(0, 0.8))
        right.set_title(
            rf"$\hat B = {multiple:.2f}\,B$: variance {temperature:.2f}", fontsize=10
        )
        right.legend(loc="upper right", fontsize=8)
        yield figure


show_frames(
    budget_frames(),
    "A bar of noise and a density. As B̂ grows from 0 to 2B and comes back to B, the "
    "injected part of the "
    "bar shrinks; its top meets the friction's line at B̂ = B, where the chain's "
    "density is the target's. Before it is too wide, after it too narrow.",
    seconds=0.6,
)

# %% [markdown]
# {numref}`fig-estimate-budget` shows the account for $B = \tfrac12C$.
# On a Gaussian target we can say exactly what a wrong $\hat B$ costs, step size and all:
#
# ```{prf:theorem} Temperature of a direction
# :label: thm-estimate-direction
#
# Let $U = \tfrac12\theta^\top A\theta$ with $A$ positive definite, mass 1, friction a number $C$, and gradient noise whose mean is 0 and whose covariance is $V$, whatever happened before. Let $\hat B \preceq C$ (no eigenvalue of $\hat B$ exceeds $C$), and let $v$ be an eigenvector of $A$ of length 1, $Av = av$. If $0 < \varepsilon C < 2$ and $\varepsilon^2a < 4 - 2\varepsilon C$, the mean of $v^\top\theta$ in the chain of {prf:ref}`alg-sghmc` tends to 0, from any start with finite second moments, and its variance to that of the second line:
#
# $$
# \begin{aligned}
# T_v &= 1 + \frac{v^\top(B - \hat B)\,v}C , \\
# \operatorname{Var}(v^\top\theta) &= \frac{T_v}a \\
# &\quad\times\frac1{1 - \dfrac{\varepsilon^2a}{4 - 2\varepsilon C}} .
# \end{aligned}
# $$ (eq-direction)
# ```
#
# ```{prf:proof}
# Write $x = v^\top\theta$, $y = v^\top r$ and multiply both lines of the algorithm by $v^\top$. Because $v^\top A = av^\top$ and $C$ is a number, $x$ and $y$ move without the other coordinates:
#
# $$
# \begin{aligned}
# x' &= x + \varepsilon y, \\
# y' &= (1 - \varepsilon C)\,y - \varepsilon a\,x' + \zeta, \\
# \operatorname{Var}\zeta &= 2\varepsilon\,v^\top(B + C - \hat B)\,v = 2\varepsilon C\,T_v .
# \end{aligned}
# $$
#
# So the mean of $(x, y)$ is multiplied by a matrix $F$ at each step. And because $\zeta$ has mean 0 whatever happened before, it is uncorrelated with all the past, and the matrix of the second moments follows $\Sigma' = F\Sigma F^\top + \operatorname{diag}(0, \operatorname{Var}\zeta)$.
# Under the two conditions $F$ shrinks ({prf:ref}`thm-sghmc-variance`): the mean tends to 0 and the moments to the one solution of $\Sigma' = \Sigma$ ({prf:ref}`thm-lyapunov`).
# Let $X$, $Y$, $Z$ be $E[x^2]$, $E[y^2]$, $E[xy]$ there. They are the same before and after a step, which gives three equations.
#
# * The first line, squared: $X = X + 2\varepsilon Z + \varepsilon^2Y$, so $Z = -\tfrac12\varepsilon Y$. Then also $E[x'y] = Z + \varepsilon Y = \tfrac12\varepsilon Y$.
# * The second line, times $x'$: $-\tfrac12\varepsilon Y = (1 - \varepsilon C)\tfrac12\varepsilon Y - \varepsilon aX$, so $aX = (1 - \tfrac12\varepsilon C)Y$.
# * The second line, squared: $Y = (1 - \varepsilon C)^2Y - (1 - \varepsilon C)\varepsilon^2aY$ $\;+\;\varepsilon^2a^2X + 2\varepsilon CT_v$.
#
# Put $aX$ from the second into the third and divide by $2\varepsilon C$: $Y(1 - \tfrac12\varepsilon C - \tfrac14\varepsilon^2a) = T_v$. With the second once more this is {eq}`eq-direction`.
# ```
#
# We call $T_v$ the {term}`temperature` of the direction $v$: more than 1 is too hot, a variance too large, less than 1 too cold.
# The noise need not be Gaussian, and $V$ and $\hat B$ need not share the eigenvectors of $A$: each direction feels the part of $B - \hat B$ that lies along it.
# The last factor is the step size's own bias. It does not mix with the temperature.
#
# In one dimension $T = 1 + (B - \hat B)/C$: with $\hat B = 0$ the chain is too hot by $B/C$, with $\hat B = \tfrac12B$ by half of that, and with $\hat B = 2B$ it is too cold by $B/C$.
# We check the formula twice: against the exact law of the linear chain, and against draws.

# %%
one = torch.eye(1, dtype=torch.float64)
step_size, friction = 0.1, 1.0
step_factor = 1 / (1 - step_size**2 / (4 - 2 * step_size * friction))
multiples = {"none": 0.0, "half": 0.5, "right": 1.0, "twice": 2.0}
largest_error = max(
    abs(
        sghmc_chain(
            one, step_size, friction, 2 * noise / step_size, multiple * noise
        ).stationary_covariance()[0, 0]
        - (1 + (1 - multiple) * noise / friction) * step_factor
    )
    for noise in (0.1, 0.2, 0.4)
    for multiple in multiples.values()
)

# %% tags=["hide-input"]
claim(
    "Largest error of the formula against the discrete Lyapunov equation, twelve cases",
    largest_error,
    at_most=1e-9,
    because="rounding",
    kind="exact",
)

# %%
measured = []
for number, (noise, (name, multiple)) in enumerate(
    itertools.product((0.1, 0.25, 0.45, 0.8), multiples.items())
):
    if multiple * noise > friction:
        continue  # more than the friction cannot be subtracted
    target = NoisyGradient(Gaussian.standard(1), 2 * noise / step_size)
    kernel = SGHMC(step_size, friction, noise_estimate=multiple * noise, num_steps=10)
    run = sample(
        kernel, target, torch.zeros(4_000, 1), num_samples=40, warm_up=12, seed=number
    )
    variance, error = run.mean_and_standard_error(lambda x: x**2)
    measured.append(
        (
            name,
            noise,
            float(variance),
            float(error),
            (1 + (1 - multiple) * noise / friction) * step_factor,
        )
    )

# %% mystnb={"figure": {"caption": "Stationary variance on a standard Gaussian with gradient noise $B$, for four estimates of it ($C = 1$, $\\varepsilon = 0.1$): the formula (lines) and measured values (points, with two standard errors). Twice the noise can be subtracted only while it is at most the friction.", "name": "fig-estimate-temperature"}, "image": {"alt": "Four straight lines of variance against noise over friction. With no estimate the line rises to 2, with half the noise to 1.5, with the right estimate it is flat at 1, with twice the noise it falls to 0.5 and ends. Measured points lie on the lines."}} tags=["hide-input"]
figure, axes = plt.subplots()
axes.axhline(1, color=TRUTH, zorder=0)
colours = {
    "none": KINDS["zero"],
    "half": KINDS["scalar"],
    "right": KINDS["diagonal"],
    "twice": "black",
}
for name, multiple in multiples.items():
    ratios = torch.linspace(0, min(1, 1 / max(multiple, 1)), 50)
    label = {
        "none": r"$\hat B = 0$",
        "half": r"$\hat B = B/2$",
        "right": r"$\hat B = B$",
        "twice": r"$\hat B = 2B$",
    }[name]
    axes.plot(
        ratios,
        (1 + (1 - multiple) * ratios) * step_factor,
        color=colours[name],
        label=label,
    )
for name, noise, variance, error, _ in measured:
    axes.errorbar(noise, variance, 2 * error, fmt="o", ms=4.5, color=colours[name])
axes.set(
    xlabel=r"gradient noise over friction, $B/C$",
    ylabel=r"variance of $\theta$; the target's is 1",
    ylim=(0.4, 2.1),
)
axes.legend()
plt.show()

# %% [markdown]
# The points of {numref}`fig-estimate-temperature` lie on the formula's lines. Estimating too much is as wrong as estimating too little.

# %% tags=["hide-input"]
claim(
    "Largest distance of fifteen measured variances from the formula, in standard "
    "errors",
    max(abs(variance - exact) / error for _, _, variance, error, exact in measured),
    at_most=5,
    because="4,000 chains; a right formula fails once in 100,000 times",
)

# %% [markdown]
# ## The noise, from the examples of a minibatch
#
# By {prf:ref}`thm-minibatch` the {term}`gradient noise` is that of drawing $n$ of $N$ gradients $g_i = -\nabla\log p(x_i \mid \theta)$. With replacement its covariance $V$ is $\frac{N^2}n$ times their covariance over the data; without replacement it is $\frac{N - n}{N - 1}$ times that.
# The covariance over the data we do not know, but the minibatch shows us $n$ of the gradients. So estimate the covariance of all by the covariance of these {cite:p}`ahn2012`:
#
# ```{prf:definition} Estimates of the gradient noise
# :label: def-estimate
#
# For a minibatch $S$ of $n \ge 2$ examples let $\bar g_S$ be the mean of their gradients, and $h_i = g_i - \bar g_S$. The *full* estimate is
#
# $$
# \begin{aligned}
# \hat V &= \frac{N^2}n\,\Bigl(1 - \frac nN\Bigr)\,\hat\Sigma_S, \\
# \hat\Sigma_S &= \frac1{n - 1}\sum_{i \in S}h_ih_i^\top,
# \end{aligned}
# $$ (eq-estimate)
#
# without the factor $1 - n/N$ if $S$ is drawn with replacement. The *diagonal* estimate keeps $\hat V_{jj}$ only, the *scalar* one their mean $\frac1d\sum_j\hat V_{jj}$. In all three cases $\hat B = \tfrac12\varepsilon\hat V$.
# ```
#
# Each factor has its reason.
# The $N^2$ is there because $\nabla\tilde U$ is $N$ times a mean, and variances take factors squared; $1/n$ because it is a mean of $n$; and $1 - n/N$ because without replacement a minibatch of all the data has no noise {cite:p}`cochran1977`.
# The mean $\bar g_S$ is subtracted because a slope that all examples share is signal, not noise. Near the mode that hardly matters; far from it it does ({ref}`ex-estimate-centring`).
# The prior is not sampled and takes no part.
#
# The estimate is unbiased, $E[\hat V \mid \theta] = V(\theta)$. To see why, write the covariance of the minibatch as a mean over pairs of its examples,
#
# $$
# \hat\Sigma_S = \frac1{2n(n-1)}\sum_{i,k \in S}(g_i - g_k)(g_i - g_k)^\top .
# $$
#
# Every pair of different places in the minibatch is a random pair of examples, so the expectation is half of the mean of $(g_i - g_k)(g_i - g_k)^\top$ over random pairs, which is their covariance; {prf:ref}`thm-noise-estimate` has the factors.
# With twelve examples we can also look at *all* minibatches.

# %%
generator = torch.Generator().manual_seed(0)
few_inputs = torch.randn(12, 3, generator=generator, dtype=torch.float64)
few_targets = (torch.rand(12, generator=generator) < 0.5).double()
position = torch.tensor([[0.3, -0.5, 0.8]], dtype=torch.float64)

all_minibatches = {
    "without": torch.tensor(list(itertools.combinations(range(12), 4))),
    "with": torch.tensor(list(itertools.product(range(12), repeat=4))),
}
wrong_by = {}
for how, minibatches in all_minibatches.items():
    few = LogisticRegression(
        few_inputs, few_targets, batch_size=4, minibatches=Fresh(how == "with")
    )
    everywhere = position.expand(len(minibatches), -1)
    gradients, estimates = few.gradient_and_variance_given(
        everywhere, minibatches, "full"
    )
    covariance = torch.cov(gradients.T, correction=0)
    wrong_by[how] = (estimates.mean(0) - covariance).abs().max()

# %% tags=["hide-input"]
for how, minibatches in all_minibatches.items():
    claim(
        f"Largest error of the mean of V̂ over all {len(minibatches):,} minibatches "
        f"{how} replacement",
        wrong_by[how],
        at_most=1e-10,
        because="enumeration; rounding",
        kind="exact",
    )

# %% [markdown]
# ## As noisy as you like
#
# One minibatch makes a poor estimate. A variance from $n$ independent numbers has a standard deviation that is a share of its mean, the share
#
# $$
# \sqrt{\frac1n\Bigl(\kappa - \frac{n - 3}{n - 1}\Bigr)} ,
# $$ (eq-noise-share)
#
# where $\kappa = E[(x - Ex)^4]/\operatorname{Var}[x]^2$ is their kurtosis. For Gaussian numbers, $\kappa = 3$, that is about $\sqrt{2/n}$; for the tosses of a fair coin, $\kappa = 1$, of the order of $1/n$; for heavy tails more. And the full matrix has rank $n - 1$ at most.

# %% tags=["hide-input"]
generator = torch.Generator().manual_seed(2)
draws = torch.rand(2, 100_000, 20, generator=generator, dtype=torch.float64)
normal = torch.randn(100_000, 20, generator=generator, dtype=torch.float64)
for name, numbers, kurtosis, within in (
    ("20 tosses of a coin", (draws[0] < 0.5).double(), 1, 0.003),
    ("20 Gaussian numbers", normal, 3, 0.01),
    ("20 Laplace numbers", (draws[0] / draws[1]).log(), 6, 0.02),
):
    variances = numbers.var(1)
    claim(
        f"Share by which a variance from {name} is off",
        variances.std() / variances.mean(),
        near=((kurtosis - 17 / 19) / 20) ** 0.5,
        within=within,
        because=f"the formula with the kurtosis {kurtosis}; 100,000 draws",
    )

# %% [markdown]
# Must it be averaged over many steps before it can be used? For the {term}`law` of the chain, no.
#
# ```{prf:theorem} A noisy estimate is as good as the truth
# :label: thm-estimate-kick
#
# Let $\hat V$ be computed from the minibatch that gives $\nabla\tilde U(\theta)$, with $E[\hat V \mid \theta] = V(\theta)$ and $\tfrac12\varepsilon\hat V \preceq C$ always. Then the noise of a step,
#
# $$
# \begin{aligned}
# \zeta = &-\varepsilon(\nabla\tilde U - \nabla U) \\
# &+ \sqrt{2\varepsilon(C - \tfrac12\varepsilon\hat V)}\;\xi
# \end{aligned}
# $$
#
# with a fresh $\xi \sim N(0, I)$, has mean 0 and covariance
#
# $$
# \operatorname{Cov}[\zeta \mid \theta] = 2\varepsilon C .
# $$ (eq-kick)
# ```
#
# ```{prf:proof}
# Given the minibatch, $\xi$ has mean 0. So the two parts are uncorrelated, although both depend on the minibatch, and their covariances add up: $\varepsilon^2V + E\bigl[2\varepsilon C - \varepsilon^2\hat V\bigr] = 2\varepsilon C$.
# ```
#
# {prf:ref}`thm-estimate-direction` only needs the mean and the covariance of the kick's noise, given the past. So on a Gaussian target the variances tend to those of a chain that knows $B$; and since it is $2\varepsilon C$ that is always the same, not $V$, they do so even where $V$ depends on $\theta$.
#
# The condition $\tfrac12\varepsilon\hat V \preceq C$ *always* is a real one. It can be met where the gradients of two examples differ by a bounded amount at most: in the coin below, or in a logistic regression.
# In a linear regression with unequal inputs they differ by more and more as $\theta$ moves away, so no friction is enough everywhere. Far out the injected noise is clipped, and each step there heats.
# Here are six examples under minibatches of two, all 36 of them, with the least friction that suffices at the posterior mean.

# %% tags=["hide-input"]
x = torch.tensor([0.2, 0.5, 1.0, 1.0, 1.5, 2.0], dtype=torch.float64)
y = torch.tensor([0.5, -0.5, 1.5, 0.5, 1.0, 2.5], dtype=torch.float64)
centre, width = float((x @ y) / (x @ x)), float((x @ x) ** -0.5)


def of_minibatches(theta):
    """B and the 36 values of B̂ at θ, for U = ½Σ(θxᵢ − yᵢ)² and ε = 0.1."""
    gradients = x * (theta * x - y)
    first, second = gradients.repeat(6), gradients.repeat_interleave(6)
    own_variance = (first - second).square() / 2
    return 0.05 * (3 * (first + second)).var(correction=0), 0.05 * 18 * own_variance


friction = of_minibatches(centre)[1].max()


def kick_covariance(theta):
    """The covariance of a kick over 2εC, with B̂ clipped at C."""
    brought, estimates = of_minibatches(theta)
    return float((brought + (friction - estimates).clamp(min=0).mean()) / friction)


claim(
    "Covariance of a kick's noise over 2εC at the posterior mean",
    kick_covariance(centre),
    near=1,
    within=1e-12,
    because="the theorem: nothing is clipped; all 36 minibatches",
    kind="exact",
)
claim(
    "The same, two posterior standard deviations away",
    kick_covariance(centre + 2 * width),
    at_least=1.02,
    because="the largest estimates exceed the friction there, and are clipped",
    kind="exact",
)

# %% [markdown]
# Averaging $\hat V$ over past steps cannot improve on that.
# It matters for another reason: a variance cannot be negative, so $C - \tfrac12\varepsilon\hat V$ must not be. Where it is, the {term}`kernel` *clips*: it injects nothing in that direction. In one dimension the covariance of the kick is then $2\varepsilon\bigl(B + E[\max(C - \hat B, 0)]\bigr)$. Because $\max(C - \hat B, 0) = C - \hat B + \max(\hat B - C, 0)$ and $E[\hat B] = B$,
#
# $$
# T = 1 + \frac{E[\max(\hat B - C, 0)]}C .
# $$ (eq-clipping)
#
# A noisy estimate is clipped sometimes even if its mean is below the friction, and clipping always heats.
# And if the noise itself exceeds the friction, $T \ge B/C$ whatever the estimate: we can inject less, but we cannot take out what the gradient brought.
#
# ### The coin that is never right
#
# Let the data be $N = 100$ numbers $y_i = \pm1$, half of each sign, with the model $y_i \sim N(\theta, \sigma^2)$, $\sigma^2 = 100$, and minibatches of two, drawn with replacement.
# The two examples are equal, and then $\hat V = 0$, or they differ, and then $\hat V = 2V$; each happens half the time. The estimate is never right.
# Without clipping the variance must be exact nevertheless. The clipped chain's temperature is {eq}`eq-clipping` with $\hat B \in \{0, 2B\}$: for $C < 2B$ it is $\tfrac12 + B/C$.
#
# The estimate is made *online*, during the run. In plain lines, a step for one chain and one coordinate:

# %%
coins, with_replacement = torch.tensor([-1.0, 1.0]).repeat(50), Fresh(replacement=True)
step_size = 0.3


def coin_step(theta, r, friction, pair, xi):
    """Drift, look at two coins, kick; xi is a standard normal number."""
    theta = theta + step_size * r
    gradients = (theta - coins[pair]) / 100  # of the two examples, σ² = 100
    variance = 100**2 / 2 * gradients.var()  # V̂, with N = 100 and n = 2
    room = max(friction - 0.5 * step_size * variance, 0)  # C − B̂, clipped
    slope = 100 * gradients.mean() + theta / 1e6  # the prior is N(0, 1e6)
    kick = -step_size * slope + (2 * step_size * room) ** 0.5 * xi
    return theta, r - step_size * friction * r + kick


# %% [markdown]
# In the package `OnlineNoise` asks the posterior for the gradient and for $\hat V$ from the same minibatch $\omega$, and mixes it with the past by a weight $\lambda$, which is zero by default:
#
# ```{literalinclude} ../../sgmc/noise.py
# :language: python
# :pyobject: OnlineNoise.update
# :dedent: 4
# ```
#
# The steps are those of {prf:ref}`alg-sghmc`. Where they ask for the gradient, the root of $2\varepsilon(C - \tfrac12\varepsilon\hat V)$ is made anew for each chain, and the share of it that was clipped is counted:
#
# ```{literalinclude} ../../sgmc/noise.py
# :language: python
# :pyobject: OnlineInjectedNoise.look
# :dedent: 4
# ```

# %%
coin = LinearRegression(
    torch.ones(100, 1),
    coins,
    noise_variance=100.0,
    prior_variance=1e6,
    batch_size=2,
    minibatches=with_replacement,
)
# B = ½εV, and V is N²/n times the variance of yᵢ/σ², which is 1/σ⁴.
noise = 0.5 * step_size * (100**2 / 2) / 100**2

# %% tags=["hide-input"]
by_hand = torch.tensor(0.4), torch.tensor(-0.2)
kernel = SGHMC(step_size, 1.5 * noise, noise_estimate=OnlineNoise())
generator = torch.Generator().manual_seed(7)
pairs = torch.randint(100, (10, 1, 2), generator=generator)
normals = torch.randn(10, 1, 1, generator=generator)
by_package = torch.tensor([[0.4]]), torch.tensor([[-0.2]])
noise_online = kernel.injected_noise(0, torch.zeros(1, 1), torch.zeros(1))
with torch.no_grad():
    kernel.trajectory(coin, *by_package, list(pairs), list(normals), noise_online)
for pair, xi in zip(pairs, normals, strict=True):
    by_hand = coin_step(*by_hand, 1.5 * noise, pair[0], xi[0, 0])
claim(
    "Largest difference in (θ, r) after ten steps, plain lines against the package",
    max(abs(float(a) - float(b)) for a, b in zip(by_hand, by_package, strict=True)),
    at_most=1e-5,
    because="the same coins and normal numbers; rounding in single precision",
    kind="exact",
)

# %% [markdown]
# Now 4,000 chains at four frictions, with the last minibatch alone and with an average over about twenty ($\lambda = 0.9$).

# %%
generator = torch.Generator().manual_seed(0)
throws = 2 * torch.randint(2, (100_000, 100), generator=generator).float()
histories = {
    0.0: torch.tensor([0.0, 2.0]),
    0.9: throws @ (0.1 * 0.9 ** torch.arange(100)),
}  # the values that B̂/B takes


def clipped_temperature(multiple, averaging):
    """The formula for C = multiple·B."""
    return 1 + float((histories[averaging] - multiple).clamp(min=0).mean()) / multiple


coin_runs = {}
for multiple, averaging in itertools.product((0.7, 1.0, 1.5, 2.5), (0.0, 0.9)):
    kernel = SGHMC(
        step_size,
        multiple * noise,
        noise_estimate=OnlineNoise(averaging=averaging),
        num_steps=10,
    )
    run = sample(
        kernel,
        coin,
        torch.randn(4_000, 1, generator=generator),
        num_samples=20,
        warm_up=30,
        seed=round(10 * (multiple + averaging)),
    )
    factor = 1 / (
        1
        - step_size**2 * float(coin.precision) / (4 - 2 * step_size * multiple * noise)
    )
    variance, error = run.mean_and_standard_error(lambda x: (x - coin.mean) ** 2)
    temperature = variance * float(coin.precision) / factor
    coin_runs[multiple, averaging] = (
        float(temperature),
        float(temperature * error / variance),
    )

# %% mystnb={"figure": {"caption": "Temperature of the coin's posterior against the friction, by formula (lines) and measured (points, with two standard errors). The online estimate is zero or 2B at each step.", "name": "fig-estimate-coins"}, "image": {"alt": "Temperature against friction over noise. With no estimate the curve falls slowly and stays far above 1. With the last minibatch it reaches 1 at C = 2B and stays there; with an average over past minibatches it reaches 1 soon after C = B. Measured points lie on the curves."}} tags=["hide-input"]
figure, axes = plt.subplots()
grid = torch.linspace(0.6, 3, 100)
axes.axhline(1, color=TRUTH, zorder=0)
axes.plot(grid, 1 + 1 / grid, color=KINDS["zero"], label=r"$\hat B = 0$")
axes.plot(
    grid,
    [max(1, 1 / m) for m in grid.tolist()],
    ":",
    color="black",
    label=r"$\hat B = B$, clipped at $C$",
)
for averaging, colour, label in (
    (0.0, KINDS["diagonal"], "online, last minibatch"),
    (0.9, KINDS["full"], r"online, $\lambda = 0.9$"),
):
    axes.plot(
        grid,
        [clipped_temperature(m, averaging) for m in grid.tolist()],
        color=colour,
        label=label,
    )
    points = [(m, *result) for (m, a), result in coin_runs.items() if a == averaging]
    axes.errorbar(
        *zip(*[(m, t, 2 * e) for m, t, e in points], strict=True),
        fmt="o",
        ms=4.5,
        color=colour,
    )
axes.set(
    xlabel=r"friction over noise, $C/B$", ylabel=r"temperature $T$", ylim=(0.9, 2.1)
)
axes.legend()
plt.show()

# %% [markdown]
# {numref}`fig-estimate-coins` says three things. From $C = 2B$ on nothing is clipped, and the estimate that is never right gives exactly the right temperature.
# Between $B$ and $2B$ averaging helps, because the average exceeds the friction less often. Below $C = B$ nothing makes it exact.

# %% tags=["hide-input"]
for multiple, averaging, statement in (
    (2.5, 0.0, "nothing is clipped, and the estimate is zero or twice too much"),
    (1.5, 0.0, "clipped half the time"),
    (1.5, 0.9, "the same friction with an average over about twenty steps"),
    (0.7, 0.9, "less friction than noise"),
):
    temperature, error = coin_runs[multiple, averaging]
    claim(
        f"Temperature at C = {multiple}B, {statement}",
        temperature,
        near=round(clipped_temperature(multiple, averaging), 3),
        standard_error=error,
        because="the formula for clipping; 4,000 chains",
    )

# %% [markdown]
# What is exact here is the second moment. The noise of a step is a mixture of Gaussians, not a Gaussian, but many of them are averaged in a unit of time ({ref}`ex-noise-linear`).
# And on a target that is not Gaussian the theorem still says that each step, wherever it is taken, adds noise of exactly the right covariance.
#
# ## A logistic regression
#
# Now a problem as it comes: a logistic regression with $N = 10{,}000$ examples of $d = 50$ features, minibatches of $n = 500$ drawn with replacement, $\varepsilon = 0.003$.
# The features are like principal components, uncorrelated but of unequal size. At the mode $B_{jj}$ lies between 33 and 48, and its mean is 44.
# The reference is HMC with all the data and a correction step, in 100 chains that start from the Gaussian approximation at the mode.
# The data, the mode and the reference are made in folded cells.

# %% tags=["hide-input"]
N, d, n, step_size = 10_000, 50, 500, 0.003
generator = torch.Generator().manual_seed(0)
uncorrelated = (
    torch.linalg.qr(torch.randn(N, d, generator=generator, dtype=torch.float64)).Q
    * N**0.5
)
inputs = (
    uncorrelated.contiguous()
    * (0.668 - 0.21 * torch.linspace(0, 1, d, dtype=torch.float64) ** 3).sqrt()
)
truth = 0.08 * torch.randn(d, generator=generator, dtype=torch.float64)
targets = (
    torch.rand(N, generator=generator, dtype=torch.float64)
    < torch.sigmoid(inputs @ truth)
).double()


def regression(batch_size=None, kind=LogisticRegression, minibatches=with_replacement):
    return kind(
        inputs.float(), targets.float(), batch_size=batch_size, minibatches=minibatches
    )


def curvature(position):
    """The matrix of second derivatives of U; the prior N(0, I) adds I."""
    probability = torch.sigmoid(inputs @ position)
    return (inputs.T * (probability * (1 - probability))) @ inputs + torch.eye(
        d, dtype=torch.float64
    )


mode = torch.zeros(d, dtype=torch.float64)
for _ in range(20):  # Newton's method
    mode = mode - torch.linalg.solve(
        curvature(mode), inputs.T @ (torch.sigmoid(inputs @ mode) - targets) + mode
    )
hessian = curvature(mode)
at_mode = (
    N**2
    / n
    * torch.cov(
        (inputs * (torch.sigmoid(inputs @ mode) - targets)[:, None]).T, correction=0
    )
)  # V, (d, d)
noise = 0.5 * step_size * at_mode  # B

# %% tags=["hide-input"]
for name, value, expected in (
    ("Mean of the diagonal of B at the mode", noise.diagonal().mean(), 44),
    ("Its smallest entry", noise.diagonal().min(), 33),
    ("Its largest entry", noise.diagonal().max(), 48),
    ("The largest eigenvalue of B", torch.linalg.eigvalsh(noise).max(), 49),
):
    claim(
        name,
        value,
        near=expected,
        within=0.6,
        because="all the examples; the data are made so",
        kind="exact",
    )

# %% tags=["hide-input"]
approximation = mode + torch.randn(
    100, d, generator=generator, dtype=torch.float64
) @ torch.linalg.inv(torch.linalg.cholesky(hessian))
long_run = sample(
    HMC(0.5, 3, mass=hessian.float(), jitter=0.4),
    regression(),
    approximation.float(),
    num_samples=60,
    warm_up=5,
    seed=1,
)
reference_mean = long_run.samples.double().mean((0, 1))
reference_variance = (long_run.samples.double() - reference_mean).pow(2).mean((0, 1))
start = long_run.samples[-1]  # the runs below start in the posterior


def spread(run):
    """Posterior standard deviations over the reference's, by coordinate, with what
    they owe to each chain, (chains, d)."""
    squares = (run.samples.double() - reference_mean).pow(2).mean(
        0
    ) / reference_variance
    ratio = squares.mean(0).sqrt()
    return ratio, squares / (2 * ratio)


def mean_spread(run):
    """Their mean over the coordinates with its standard error, that of the reference
    included."""
    ratio, by_chain = spread(run)
    errors = [x.mean(-1).std() / len(x) ** 0.5 for x in (by_chain, spread(long_run)[1])]
    return float(ratio.mean()), float(torch.stack(errors).norm())


def formula(friction, estimate, size=n):
    """The ratio by the exact law of the chain on the Gaussian approximation, for a
    given B̂ and minibatches of the given size, by coordinate."""
    law = sghmc_chain(
        hessian, step_size, friction, at_mode * n / size, estimate
    ).stationary_covariance()[:d, :d]
    return (law.diagonal() / torch.linalg.inv(hessian).diagonal()).sqrt()


# %% [markdown]
# There are five ways to choose $\hat B$: zero; the three kinds, online; and the diagonal estimated once at the mode, *fixed*, from 1,000 minibatches.
# The full estimate is averaged with $\lambda = 0.95$. Why, we shall see.
# The friction has to exceed the largest eigenvalue of $B$, which is 49. We try 50; and 200, where the noise is a minor matter; and 10, which is too little.
# We compare standard deviations, coordinate by coordinate, with those of the reference.

# %%
posterior = regression(n)
pilot = mode.float().expand(50, -1).contiguous()
fixed = (
    0.5
    * step_size
    * estimate_noise_variance(
        posterior, pilot, torch.Generator().manual_seed(1), "diagonal", num_batches=20
    )
)
estimates = {
    "zero": 0.0,
    "scalar": OnlineNoise("scalar"),
    "diagonal": OnlineNoise("diagonal"),
    "full": OnlineNoise("full", averaging=0.95),
    "fixed": fixed,
}


def sghmc(
    friction, noise_estimate, target=posterior, chains=100, num_samples=150, warm_up=60
):
    kernel = SGHMC(step_size, friction, noise_estimate)
    return sample(
        kernel, target, start[:chains], num_samples=num_samples, warm_up=warm_up, seed=2
    )


# How many chains at C = 50 and at C = 200: a full estimate costs five times as much.
chains = {
    "zero": (50, 50),
    "scalar": (80, 20),
    "diagonal": (100, 50),
    "full": (28, 10),
    "fixed": (40, 50),
}
runs = {}
for kind, estimate in estimates.items():
    few, many = chains[kind]
    # The chains start in the posterior; only a wrong temperature has to settle.
    warm_up = (60, 100) if kind == "zero" else (20, 20)
    runs[50.0, kind] = sghmc(50.0, estimate, chains=few, warm_up=warm_up[0])
    runs[200.0, kind] = sghmc(
        200.0, estimate, chains=many, num_samples=180, warm_up=warm_up[1]
    )
    if kind != "fixed":  # it exceeds a friction of 10, and the kernel refuses it
        runs[10.0, kind] = sghmc(10.0, estimate, chains=10, num_samples=80, warm_up=100)
ratios = {key: mean_spread(run) for key, run in runs.items()}

# %% mystnb={"figure": {"caption": "Standard deviations of the regression's posterior over those of long HMC. Top: the mean over 50 coordinates at C = 10, 50 and 200 (points, moved apart a little), with the formula for zero (line). Bottom: coordinate by coordinate at C = 50, against its own noise; lines are the formula.", "name": "fig-estimate-regression"}, "image": {"alt": "Top: at friction 10 all estimates are about twice too wide; at 50 and 200 zero is too wide, by a third and by a tenth, and the others are near 1. Bottom: with zero the ratio rises from 1.25 to 1.4 with the coordinate's noise, with the scalar it rises from below 1 to above it, with the diagonal it is flat at 1."}} tags=["hide-input"]
figure, (top, bottom) = plt.subplots(2, 1, figsize=(6.4, 6.6))
for shift, kind in enumerate(estimates):
    for friction in (10.0, 50.0, 200.0):
        if (friction, kind) in ratios:
            top.plot(
                friction * 1.06**shift,
                ratios[friction, kind][0],
                "o",
                ms=5,
                color=KINDS[kind],
            )
    top.plot([], [], "o", color=KINDS[kind], label=kind)
frictions = torch.logspace(1, 2.4, 30).tolist()
top.plot(
    frictions,
    [formula(c, 0.0).mean() for c in frictions],
    color=KINDS["zero"],
    lw=1,
    zorder=0,
)
top.axhline(1, color=TRUTH, zorder=0)
top.set(xscale="log", xlabel="friction $C$", ylabel="standard deviation / reference")
top.set_xticks([10, 50, 200], ["10", "50", "200"])
top.set_xticks([], minor=True)
top.legend()
own = noise.diagonal()
order = own.argsort()
bottom.axhline(1, color=TRUTH, zorder=0)
for kind, subtracted in (
    ("zero", 0.0),
    ("scalar", float(own.mean())),
    ("diagonal", None),
):
    bottom.plot(
        own, spread(runs[50.0, kind])[0], "o", ms=3.5, color=KINDS[kind], label=kind
    )
    if subtracted is not None:
        bottom.plot(
            own[order], formula(50.0, subtracted)[order], color=KINDS[kind], lw=1
        )
bottom.set(
    xlabel="noise of the coordinate $B_{jj}$",
    ylabel="standard deviation / reference",
    ylim=(None, 1.65),
)
bottom.legend(ncols=3, loc="upper left")
plt.show()

# %% [markdown]
# With $\hat B = 0$ the standard deviations are more than a third too wide at $C = 50$ ({numref}`fig-estimate-regression`, top). The online diagonal removes that, and takes no more gradients.
# At $C = 10$ the kernel refuses the fixed estimate, because $C \succeq \hat B$ fails. The online ones are clipped in nearly every coordinate, hardly anything is injected, and the kernel warns.
#
# The bottom of the figure shows what a mean hides. One number for all coordinates is right on average, but it cools the coordinates with little noise and leaves those with much too hot. The diagonal is right for each.

# %% tags=["hide-input"]
for friction in (50.0, 200.0):
    expected = float(formula(friction, 0.0).mean())
    claim(
        f"Standard deviation over the reference's, B̂ = 0 and C = {friction:g}, "
        "divided by the formula's",
        ratios[friction, "zero"][0] / expected,
        near=1,
        within=0.05,
        because=(
            f"the formula gives {expected:.3f}; standard errors are near 0.008, and "
            "other seeds agree to 0.012"
        ),
    )
    for kind in (
        ("diagonal", "full", "fixed") if friction == 50 else ("diagonal", "fixed")
    ):
        claim(
            f"Standard deviation over the reference's, {kind} estimate and C = "
            f"{friction:g}",
            ratios[friction, kind][0],
            near=1,
            within=0.065,
            because=(
                "standard errors are near 0.008; what is left of the bias is the "
                "step's, and a little clipping"
            ),
        )
claim(
    "The smallest of the four ratios at C = 10",
    min(ratios[10.0, kind][0] for kind in estimates if kind != "fixed"),
    at_least=1.8,
    because="B/C = 4.4, and no estimate can bring the temperature below it: √4.4 = 2.1",
)

# %% [markdown]
# To put a number on that, we measure an *error*: average the ratio over groups of five coordinates of similar noise, subtract one, and take the root mean square over the ten groups, less what the {term}`Monte Carlo error` contributes to it.


# %%
def error_of(run):
    """Root mean square over ten groups of the ratio less one, net of Monte Carlo
    variance; and the smallest that the run can tell from zero."""
    ratio, by_chain = spread(run)
    parts = [
        x.unflatten(-1, (10, 5)).mean(-1) for x in (by_chain, spread(long_run)[1])
    ]  # neighbours have similar noise
    variance = sum(x.var(0) / len(x) for x in parts).mean()
    square = (ratio.unflatten(-1, (10, 5)).mean(-1) - 1).square().mean() - variance
    resolution = (
        2 * (2 / 10) ** 0.5 * variance
    ).sqrt()  # a mean of ten squares has a relative standard error of √(2/10)
    return float(square.clamp(min=0).sqrt()), float(resolution)


unaveraged = sghmc(50.0, OnlineNoise("full"), chains=30, num_samples=150, warm_up=30)

# %% tags=["hide-input"]
claim(
    "Error of the scalar estimate at C = 50",
    error_of(runs[50.0, "scalar"])[0],
    near=0.045,
    within=0.028,
    because="a dozen seeds give 0.041 to 0.051",
)
claim(
    "Error of the diagonal estimate at C = 50",
    error_of(runs[50.0, "diagonal"])[0],
    at_most=0.04,
    because="a dozen seeds give at most 0.013",
)
claim(
    "Ratio of standard deviations with the full estimate from one minibatch alone, at "
    "C = 50",
    mean_spread(unaveraged)[0],
    near=1.045,
    within=0.045,
    because="clipping: ten seeds give 1.030 to 1.058",
)

# %% [markdown]
# The last claim answers the question why the full estimate is averaged: from one minibatch alone it leaves the chain too hot. Each entry of a full $\hat V$ from 500 examples is good enough, but its *eigenvalues* are not: those of a $d \times d$ covariance from $n$ draws spread by a factor of about $(1 \pm \sqrt{d/n})^2$, here from 0.5 to 1.7.
# The large ones exceed the friction and are clipped. The average over $(1 + \lambda)/(1 - \lambda) = 39$ minibatches has a spread of a tenth.
# So the more of the matrix one estimates, the more one has to average, and for no other reason than clipping.
#
# ### Error against cost
#
# A larger minibatch has less noise and costs more. So there are two ways to spend time on less error: more examples, or a better estimate. We run both at $C = 50$, with $n = 50$ to $5{,}000$.

# %%
by_size = {}
for size, chains, num_samples in (
    (50, 10, 80),
    (150, 10, 80),
    (500, None, None),
    (1_500, 12, 120),
    (5_000, 20, 120),
):
    for kind, estimate in estimates.items():
        if size == 5_000 and kind not in ("zero", "diagonal"):
            continue  # long, and like the diagonal
        if size == n:
            by_size[size, kind] = runs[50.0, kind]
        elif kind != "fixed":
            by_size[size, kind] = sghmc(
                50.0,
                estimate,
                regression(size),
                chains if kind == "zero" else chains // 2,
                num_samples,
            )
        elif size > n:  # below, it exceeds the friction
            by_size[size, kind] = sghmc(
                50.0, fixed * n / size, regression(size), chains // 2, num_samples
            )
errors = {key: error_of(run) for key, run in by_size.items()}

# %% mystnb={"figure": {"caption": "Error of the standard deviations against the time of a step of one chain, on the machine that built this page, at C = 50. Along each line n grows from 50 (fixed: from 500) to 1,500, and for zero and the diagonal to 5,000. A hollow point is an error that the run cannot tell from zero, drawn at the smallest that it could.", "name": "fig-estimate-cost"}, "image": {"alt": "Error against time of a step on logarithmic axes, five lines. All begin with large errors at small minibatches. From minibatches of 500 on the lines of the diagonal, the full and the fixed estimate drop far below that of zero; the full estimate stands further to the right."}} tags=["hide-input"]
figure, axes = plt.subplots()
for kind in estimates:
    times, values, fills = [], [], []
    for (_, which), run in by_size.items():
        if which == kind:
            error, resolution = error_of(run)
            times.append(
                run.seconds / (run.warm_up + len(run.samples)) / run.samples.shape[1]
            )
            values.append(max(error, resolution))
            fills.append(KINDS[kind] if error > resolution else "white")
    axes.loglog(times, values, lw=1, color=KINDS[kind], label=kind, zorder=1)
    axes.scatter(times, values, s=28, c=fills, edgecolors=KINDS[kind], zorder=2)
axes.set(
    xlabel="seconds of a step of one chain", ylabel="error of the standard deviations"
)
axes.legend()
plt.show()

# %% [markdown]
# In {numref}`fig-estimate-cost` lower is better, and further left is cheaper.
# Where the noise exceeds the friction, at $n = 50$ and 150, no estimate helps. Where it does not, an estimate buys more than a tenfold minibatch: the diagonal at $n = 500$ has less error than zero at $n = 5{,}000$.
# The diagonal is cheap, because its sums of squares are made of what the gradient needed anyway. The full one also needs a root of a $d \times d$ matrix at every step, a price that does not grow with $n$.

# %% tags=["hide-input"]
by_groups = formula(50.0, 0.0, 5_000).unflatten(-1, (10, 5)).mean(-1)
exact_error = (by_groups - 1).square().mean().sqrt()
claim(
    "Error with the diagonal estimate and n = 500 over that with B̂ = 0 and n = 5,000 "
    "by the formula",
    errors[500, "diagonal"][0] / exact_error,
    at_most=0.9,
    because=f"the formula gives {exact_error:.3f}; the former is near 0.006",
)
for size, bound, reason in (
    (50, 1.5, "B/C is near 9: the standard deviations are three times too wide"),
    (150, 0.45, "B/C is near 3: no temperature is below it, and √3 = 1.7"),
):
    claim(
        f"The smallest error with n = {size}, whatever the estimate",
        min(errors[size, kind][0] for kind in ("zero", "scalar", "diagonal", "full")),
        at_least=bound,
        because=reason,
    )

# %% [markdown]
# ### Choosing the friction
#
# Friction has two prices. Much of it costs time: for $C \gg 2\sqrt a$ the chain creeps, and its {term}`autocorrelation time` is about $2C/\varepsilon a$ steps.
# Little of it leaves no room for the estimate, and {eq}`eq-clipping` says what that costs. `friction_for` takes a multiple, three by default, of the largest eigenvalue of $\hat B$, or, given a diagonal, of each entry.

# %% tags=["hide-input"]
chosen = friction_for(at_mode, step_size)
times = {
    c: sghmc_chain(
        one * float(hessian.diagonal().mean()), step_size, c
    ).autocorrelation_time(torch.tensor([1.0, 0.0]))
    for c in (50.0, chosen, 200.0)
}
show_table(
    ["friction C", "autocorrelation time in steps"],
    [[f"{c:.0f}", f"{time:.0f}"] for c, time in times.items()],
)

# %% [markdown]
# The table has exact autocorrelation times of a coordinate of mean curvature, on the Gaussian approximation, for three frictions; the friction in the middle is the choice of `friction_for`.
#
# How often the kernel had to clip is a statistic of the draws. A little clipping does no harm that could be seen, because what counts is by how much $\hat B$ exceeds $C$, not how often: at $C = 50$ the diagonal is clipped in one coordinate of eight, and its error was small.
#
# Could friction replace the estimate? With $\hat B = 0$ a standard deviation is right to one per cent if $B/C \le 0.02$, here at $C = 2{,}200$. But the step is stable only for $\varepsilon C < 2$, which is $C < 667$. The step would have to be shorter too.


# %%
def clipped_share(run):
    """Share of coordinates that were clipped in a step, on average over the run."""
    return float(
        (run.statistics["clipped"][-1] / run.statistics["num_gradients"][-1]).mean()
    )


# %% tags=["hide-input"]
claim(
    "Share of coordinates clipped, diagonal, C = 50",
    clipped_share(runs[50.0, "diagonal"]),
    near=0.14,
    within=0.09,
    because="thousands of steps; it was 0.12 to 0.18 over ten seeds",
)
claim(
    "Share of coordinates clipped, diagonal, C = 10",
    clipped_share(runs[10.0, "diagonal"]),
    at_least=0.99,
    because="B̂ is never below 10",
)

# %% tags=["hide-input"]
claim(
    "Autocorrelation time at C = 200 over 2C/εa",
    times[200.0] * step_size * float(hessian.diagonal().mean()) / 400,
    near=1,
    within=0.1,
    because="exact law; terms of the next order remain",
    kind="exact",
)

# %% [markdown]
# ## When a diagonal is not enough
#
# In that regression the gradients' coordinates were hardly correlated. What if they are? Take a linear regression with two features of correlation 0.8, whose posterior is Gaussian and known.
# By {eq}`eq-noise-curvature` the noise has the shape of the curvature: large along $(1, 1)$, small along $(1, -1)$. A diagonal estimate takes the same away from both.
# So by {eq}`eq-direction` the first direction stays too hot and the second becomes too cold, although each coordinate's own $\hat B_{jj}$ is right.

# %%
generator = torch.Generator().manual_seed(4)
pair = (
    torch.linalg.qr(torch.randn(2_000, 2, generator=generator, dtype=torch.float64)).Q
    * 2_000**0.5
)
pair = (
    pair
    @ torch.linalg.cholesky(torch.tensor([[1, 0.8], [0.8, 1]], dtype=torch.float64)).T
)
answers = pair.sum(-1) + torch.randn(2_000, generator=generator, dtype=torch.float64)
twins = LinearRegression(
    pair,
    answers,
    noise_variance=1.0,
    prior_variance=1e6,
    batch_size=400,
    minibatches=with_replacement,
)
twin_step = 0.004
residual = pair * (answers - pair @ twins.mean)[:, None]
twin_noise = (
    0.5 * twin_step * 2_000**2 / 400 * torch.cov(residual.T, correction=0)
)  # B, (2, 2)
twin_friction = round(2 * float(twin_noise.diagonal().mean()))
values, directions = torch.linalg.eigh(
    twins.precision
)  # the last direction is (1, 1)/√2


def temperatures(run):
    """Temperature of each direction, its variance over the exact one, with standard
    errors: (2,), (2,)."""
    variance, error = run.mean_and_standard_error(
        lambda x: ((x - twins.mean) @ directions) ** 2
    )
    factor = 1 / (1 - twin_step**2 * values / (4 - 2 * twin_step * twin_friction))
    return variance * values / factor, error * values / factor


twin_runs = {
    kind: sample(
        SGHMC(twin_step, float(twin_friction), noise_estimate=estimate, num_steps=5),
        twins,
        twins.mean
        + torch.randn(200, 2, generator=generator, dtype=torch.float64)
        @ torch.linalg.cholesky(twins.covariance).T,
        num_samples=40,
        warm_up=20,
        seed=1,
    )
    for kind, estimate in (
        ("diagonal", OnlineNoise("diagonal")),
        ("full", OnlineNoise("full", averaging=0.95)),
    )
}
left_over = twin_noise - torch.diag(twin_noise.diagonal())
expected = (
    1 + torch.einsum("ji,jk,ki->i", directions, left_over, directions) / twin_friction
)

# %% mystnb={"figure": {"caption": "Left: $\\hat B$ for the two estimates, which reach equally far along each axis. Right: two standard deviations of the posterior of two correlated coefficients, exact (grey), with the diagonal and with the full estimate.", "name": "fig-estimate-correlated"}, "image": {"alt": "Left: two ellipses that touch the same horizontal and vertical lines, one round, one long and narrow along the diagonal. Right: the posterior's grey ellipse lies along the other diagonal; the ellipse of the full estimate is its edge, that of the diagonal estimate is shorter and wider."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(5.4, 3.3))
angle = torch.linspace(0, 2 * torch.pi, 200, dtype=torch.float64)
circle = torch.stack([angle.cos(), angle.sin()])
for kind, matrix in (
    ("diagonal", torch.diag(twin_noise.diagonal())),
    ("full", twin_noise),
):
    left.plot(*(torch.linalg.cholesky(matrix) @ circle), color=KINDS[kind], label=kind)
    samples = twin_runs[kind].samples.flatten(0, 1) - twins.mean
    right.plot(
        *(2 * torch.linalg.cholesky(samples.T @ samples / len(samples)) @ circle),
        color=KINDS[kind],
        label=kind,
    )
right.fill(
    *(2 * torch.linalg.cholesky(twins.covariance) @ circle),
    color=TRUTH,
    alpha=0.35,
    lw=0,
    label="exact",
)
left.set(
    xlabel="kick in $r_1$",
    ylabel="kick in $r_2$",
    aspect="equal",
    xlim=(-7, 7),
    ylim=(-7, 7),
)
right.set(
    xlabel=r"$\theta_1 - E\theta_1$",
    ylabel=r"$\theta_2 - E\theta_2$",
    aspect="equal",
    xticks=(-0.05, 0, 0.05),
    yticks=(-0.05, 0, 0.05),
)
figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %% [markdown]
# On the left of {numref}`fig-estimate-correlated` is what each estimate takes away; on the right what comes of it: the diagonal makes the posterior too short and too wide.

# %% tags=["hide-input"]
far = []
for kind, run in twin_runs.items():
    measured, error = temperatures(run)
    predicted = expected if kind == "diagonal" else torch.ones(2)
    far += ((measured - predicted) / error).tolist()
claim(
    "Temperatures along (1, −1) and (1, 1), both estimates: largest distance from the "
    "formula, in standard errors",
    max(abs(distance) for distance in far),
    at_most=5,
    because="formula; Monte Carlo from 200 chains",
)

# %% [markdown]
# **How to tell beforehand.** Make a full estimate once, at the mode, from many minibatches, and look at the eigenvalues of $(\hat V - \operatorname{diag}\hat V)\,\varepsilon/2C$.
# By {eq}`eq-direction` no direction is hotter than one plus the largest or colder than one plus the smallest of them.
# The same look at $\hat V$ less its mean diagonal tells whether one number will do.
# In words: a diagonal is enough if the friction is large against the noise, or if the coordinates' gradients are uncorrelated; features on different scales ask for a diagonal, correlated features for a matrix, or for other coordinates.


# %%
def worst(left_over, friction):
    """The largest deviation of the temperature from one in any direction."""
    return float(torch.linalg.eigvalsh(left_over).abs().max() / friction)


# %% tags=["hide-input"]
claim(
    "Largest deviation of a direction's temperature, correlated pair, diagonal",
    worst(left_over, twin_friction),
    near=0.4,
    within=0.01,
    because="exact matrix at the mean",
    kind="exact",
)
claim(
    "Largest deviation, logistic regression at C = 50, diagonal",
    worst(noise - torch.diag(noise.diagonal()), 50),
    near=0.085,
    within=0.005,
    because="exact matrix at the mode",
    kind="exact",
)
claim(
    "Largest deviation, logistic regression at C = 50, scalar",
    worst(noise - noise.diagonal().mean() * torch.eye(d), 50),
    near=0.23,
    within=0.01,
    because="exact matrix at the mode",
    kind="exact",
)

# %% [markdown]
# ## Wrong estimates, and the laws they lead to
#
# Four mistakes look right and run without a complaint. Each leaves its mark on the law of the chain; in the first three cases {eq}`eq-direction` says which.
#
# **The Hessian of the minibatch for the covariance of its gradient.** Near the mode the two have the same shape, {eq}`eq-noise-curvature`, but $V \approx \frac Nn\nabla^2U$: this $\hat B$ is too small by a factor of $N/n$, here twenty. Where a model does not fit, or a Hessian is not positive, not even the shape is right.
#
# **$N/n$ for $N^2/n$.** Here somebody forgot that a variance takes the square of a factor. This $\hat B$ is $N$ times too small, and the law is nearly that of $\hat B = 0$.
#
# **A variance for a standard deviation.** If $2(C - \hat B)\varepsilon$ is passed where a standard deviation is meant, the injected variance is its square, so that
#
# $$
# T = \frac{B + 2\varepsilon(C - \hat B)^2}C .
# $$ (eq-variance-for-deviation)
#
# That is too little where $2(C - \hat B)\varepsilon < 1$, and by accident right where it is one. At $C = 50$ most of the noise comes with the gradient anyway, and the chain is only some ten per cent too cold; in learning-rate form the variance has the small factor $\eta$, and its square would be next to nothing.
#
# **One minibatch for a whole trajectory.** Over $m$ steps that share a minibatch the kicks add up, to a covariance of $m^2\varepsilon^2V$ instead of $m\varepsilon^2V$. The $\hat V$ of each step is right, and of no use: {prf:ref}`thm-estimate-kick` needs a fresh minibatch. The chain is still linear if one looks at its state once in $m$ steps, so its law can be computed.


# %%
class HessianForCovariance(LogisticRegression):
    """Wrong: the minibatch's Hessian for the covariance of its gradient."""

    def gradient_and_variance_given(self, position, minibatch, kind):
        x, _ = self.gather(minibatch)
        probability = torch.sigmoid((x @ position[..., None])[..., 0])
        second = ((probability * (1 - probability))[:, None] @ x.square())[:, 0]
        return self.gradient_given(position, minibatch), N / n * second


class MissingFactor(LogisticRegression):
    """Wrong: N/n where N²/n is meant."""

    def gradient_and_variance_given(self, position, minibatch, kind):
        gradient, variance = super().gradient_and_variance_given(
            position, minibatch, kind
        )
        return gradient, variance / N


*moves, _ = flows.sghmc(step_size, 50.0, fixed)
scale = 2 * step_size * (50 - fixed)  # wrong: a variance, passed as a deviation
variance_for_standard_deviation = Splitting(
    [*moves, flows.noise_flow(Matrix(scale**2))]
)

held_for_five = Held(5, with_replacement)  # wrong: one minibatch for five steps


# %% tags=["hide-input"]
diagonal = noise.diagonal()


def held_law(num_steps=5):
    """The covariance of (θ, r), averaged over the steps of a trajectory that share
    one draw of the gradient noise."""
    chain = sghmc_chain(
        hessian, step_size, 50.0, 0.0, diagonal
    )  # its own noise is the injected one, fresh at each step
    push = torch.cat(
        [torch.zeros(d, d), -step_size * torch.eye(d)]
    ).double()  # what the shared noise adds to (θ, r) in a step
    pushed, after = push, []
    for k in range(1, num_steps + 1):
        power = chain.power(k)
        after.append(
            LinearChain(
                power.transition, power.noise_covariance + pushed @ at_mode @ pushed.T
            )
        )
        pushed = push + chain.transition @ pushed
    at_start = after[-1].stationary_covariance()
    return (
        sum(
            transition @ at_start @ transition.T + covariance
            for transition, covariance in after
        )
        / num_steps
    )


wrong = {
    "Hessian for\ncovariance": (
        sghmc(50.0, OnlineNoise(), regression(n, HessianForCovariance), chains=30),
        formula(50.0, 0.5 * step_size * (hessian.diagonal() - 1)),
    ),
    "N/n for N²/n": (
        sghmc(50.0, OnlineNoise(), regression(n, MissingFactor), chains=30),
        formula(50.0, diagonal / N),
    ),
    "variance for\nstandard deviation": (
        sample(
            variance_for_standard_deviation,
            posterior,
            start[:30],
            num_samples=240,
            warm_up=60,
            seed=3,
        ),
        formula(50.0, 50 - 2 * step_size * (50 - diagonal) ** 2),
    ),
    "minibatch held\nfor five steps": (
        sghmc(50.0, OnlineNoise(), regression(n, minibatches=held_for_five), chains=30),
        (held_law()[:d, :d].diagonal() / torch.linalg.inv(hessian).diagonal()).sqrt(),
    ),
}

# %% mystnb={"figure": {"caption": "Four wrong estimates on the logistic regression at C = 50: measured standard deviations over the reference's (points; standard errors are smaller) and the laws of the wrong chains (bars).", "name": "fig-estimate-wrong"}, "image": {"alt": "Six rows, points on bars. The right diagonal estimate stands at 1; no estimate, the Hessian, and N/n stand near 1.37; a variance for a standard deviation stands a little below 1; a minibatch held for five steps stands furthest to the right."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.4, 3.6))
axes.axvline(1, color=TRUTH, zorder=0)
shown = {
    "right, diagonal": (runs[50.0, "diagonal"], formula(50.0, diagonal)),
    "$\\hat B = 0$": (runs[50.0, "zero"], formula(50.0, 0.0)),
} | wrong
for i, (run, expected) in enumerate(shown.values()):
    axes.vlines(expected.mean(), i - 0.25, i + 0.25, color="black")
    axes.plot(
        mean_spread(run)[0], i, "o", color=KINDS["zero"] if i else KINDS["diagonal"]
    )
axes.set_yticks(range(len(shown)), shown)
axes.invert_yaxis()
axes.set(xlabel="standard deviation / reference", xlim=(0.8, None))
plt.show()

# %% [markdown]
# In {numref}`fig-estimate-wrong` each point lies close to its bar: the mistakes do what their laws say. So a wrong law hints at the mistake, but it need not tell which one: the first two take next to nothing away, and look like $\hat B = 0$.

# %% tags=["hide-input"]
for name, (run, expected) in wrong.items():
    claim(
        f"{' '.join(name.split())}: standard deviation over the reference's, divided "
        "by the formula's",
        mean_spread(run)[0] / float(expected.mean()),
        near=1,
        within=0.06,
        because=(
            "the law of the wrong chain on the Gaussian approximation gives "
            f"{expected.mean():.2f}; other seeds agree to 0.025"
        ),
    )

# %% [markdown]
# ## Less noise instead
#
# Where the noise exceeds the friction, one can make less of it. A larger minibatch does, at its price. A *control variate* does better where the posterior is narrow {cite:p}`baker2019`: find the mode $\theta^*$ once, keep every example's gradient there, and let the minibatch sample only differences,
#
# $$
# \begin{aligned}
# \nabla\tilde U(\theta) = -\nabla\log p(\theta) &+ \sum_{i=1}^Ng_i(\theta^*) \\
# &+ \frac Nn\sum_{i \in S}\bigl(g_i(\theta) - g_i(\theta^*)\bigr).
# \end{aligned}
# $$ (eq-control)
#
# It is unbiased, and by {prf:ref}`thm-minibatch` its covariance is $\frac{N^2}n$ times that of the differences $g_i(\theta) - g_i(\theta^*) \approx \nabla g_i(\theta^*)(\theta - \theta^*)$. It grows with the square of the distance from the mode.
# A posterior has a width of the order of $1/\sqrt N$, so within it the noise is of the order of $\frac{N^2}n\cdot\frac1N = \frac Nn$, where the plain minibatch has $\frac{N^2}n$. Far from the mode, where the differences are as large as the gradients, little is gained.
# The noise multiplies the distance from the mode, and at large steps that makes heavy tails: {doc}`/book/further/how_far_it_holds`.

# %%
calm = control_variates(posterior, mode.float())
directions = reference_variance.sqrt() * torch.randn(
    20, d, generator=torch.Generator().manual_seed(5), dtype=torch.float64
)
distances = torch.logspace(-1, 2, 13)


def traces(target):
    """The trace of V̂ at growing distances from the mode, averaged over twenty
    directions, each with a minibatch."""
    generator = torch.Generator().manual_seed(6)
    positions = [(mode + distance * directions).float() for distance in distances]
    return torch.stack(
        [
            target.gradient_and_noise_variance(p, generator, "diagonal")[1]
            .sum(-1)
            .mean()
            for p in positions
        ]
    )


plain_traces, calm_traces = traces(posterior), traces(calm)
calm_run = sghmc(10.0, 0.0, calm, chains=30, num_samples=200, warm_up=20)

# %% mystnb={"figure": {"caption": "Trace of $\\hat V$ on the logistic regression at a distance from the mode, in posterior standard deviations of each coordinate: the plain minibatch gradient and the one with a control variate. The grey band is where most draws of the posterior lie.", "name": "fig-estimate-control"}, "image": {"alt": "Trace of the noise against distance on logarithmic axes. The line of the plain minibatch is nearly flat. The line of the control variate rises with slope two, lies far below in the grey band, and comes near the other far to its right."}} tags=["hide-input"]
figure, axes = plt.subplots()
axes.axvspan(0.8, 1.2, color=TRUTH, alpha=0.35, lw=0)
axes.loglog(distances, plain_traces, color=KINDS["zero"], label="plain minibatch")
axes.loglog(distances, calm_traces, color=KINDS["full"], label="control variate")
axes.set(
    xlabel="distance from the mode (posterior standard deviations)",
    ylabel=r"tr $\hat V$",
)
axes.legend()
plt.show()

# %% [markdown]
# In {numref}`fig-estimate-control` the two lines come near each other only far outside of the posterior.
# So the same regression that no estimate could sample at $C = 10$ is sampled there with $\hat B = 0$. The price is the search for the mode, $Nd$ numbers of memory and gradients at two points instead of one; and there must be *one* mode, which a network does not have.

# %% tags=["hide-input"]
claim(
    "Power of the distance with which the noise grows, from 0.1 to 1 posterior "
    "standard deviations",
    (calm_traces[4] / calm_traces[0]).log() / (distances[4] / distances[0]).log(),
    near=2,
    within=0.15,
    because=(
        "twenty directions and minibatches; the next term of the expansion is small "
        "there"
    ),
)
claim(
    "Noise with the control variate over noise without, at one posterior standard "
    "deviation",
    calm_traces[4] / plain_traces[4],
    near=0.005,
    within=0.002,
    because="twenty directions and minibatches; other directions give near 0.005",
)
claim(
    "Standard deviation over the reference's with C = 10 and B̂ = 0, with the control "
    "variate",
    mean_spread(calm_run)[0],
    near=1.01,
    within=0.06,
    because=(
        "without it the ratio is above 2; a noise of 0.005·44 over a friction of 10 "
        "leaves one per cent"
    ),
)

# %% [markdown]
# ## In practice
#
# * Compare $B$ with $C$ before anything else: `estimate_noise_variance` once, at the mode. Below a few per cent $\hat B = 0$ will do; above $C$ no estimate will.
# * Use the online diagonal by default. Take `kind="full"` with `averaging=0.95` or more where gradients are correlated and $d$ is small; `refresh_every` saves time where the noise hardly changes.
# * Read the statistic `clipped`. If much is clipped raise the friction, there where the noise is (`friction_for` of a diagonal $\hat V$), or shorten the step, enlarge the batch, or use a control variate.
# * Averaging is for clipping and for cost, not for bias. After a bad start it remembers the start for $1/(1 - \lambda)$ steps.
# * Test an estimate by enumeration, or by the law of the chain on a Gaussian. Wrong factors do not crash.
# * For a network, go on to {doc}`/book/studies/noise_of_networks`.
#
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | temperature of a direction | $T_v = 1 + v^\top(B - \hat B)v/C$ | {eq}`eq-direction` |
# | factor of the step size | $1/\bigl(1 - \varepsilon^2a/(4 - 2\varepsilon C)\bigr)$ | {eq}`eq-direction` |
# | estimate from a minibatch | $\hat V = \frac{N^2}n(1 - \frac nN)$ times the covariance of its gradients; $\hat B = \tfrac12\varepsilon\hat V$ | {eq}`eq-estimate` |
# | noise of a step with an unbiased estimate | $2\varepsilon C$ | {eq}`eq-kick` |
# | what clipping costs | $T = 1 + E[\max(\hat B - C, 0)]/C$ | {eq}`eq-clipping` |
# | control variate | sample the differences to the mode only | {eq}`eq-control` |
#
# ## Change it
#
# * In the runs of the coin replace `noise_estimate=OnlineNoise(averaging=averaging)` by `noise_estimate=0.0`: nothing is taken away, and the four claims on the temperature of the coin show ✗. What was measured is near $1 + B/C$.
# * In the correlated pair replace `torch.tensor([[1, 0.8], [0.8, 1]]` by `torch.tensor([[1, 0.2], [0.2, 1]]`: the ellipses of {numref}`fig-estimate-correlated` nearly agree, and the claim on the largest deviation of a direction's temperature shows ✗, because a diagonal is now almost enough.
# * Replace `control_variates(posterior, mode.float())` by `control_variates(posterior, mode.float() + 0.1)`: the noise no longer vanishes at the mode, and the claims on the control variate show ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-estimate-centring
#
# What is the expectation of {eq}`eq-estimate`, with replacement, if $\bar g_S$ is not subtracted? When does it matter?
# ```
#
# ```{solution} ex-estimate-centring
# :class: dropdown
#
# $\frac1{n-1}\sum g_ig_i^\top$ exceeds the centred sum by $\frac n{n-1}\bar g_S\bar g_S^\top$, and $N\bar g_S$ is the likelihood's part of $\nabla\tilde U$, with mean $G$ and covariance $V$. So $\hat V$ grows by $\frac{1}{n-1}(V + GG^\top)$.
# The first term is a matter of $1/n$. In equilibrium the average of $GG^\top$ is about $\nabla^2U \approx \frac nNV$, so the second is even smaller. Far from the mode, as at the start of a run, $G$ is as large as $N$ gradients that all agree, and the uncentred estimate takes the slope for noise; the chain is clipped or cooled on its way down.
# ```
#
# ````{exercise}
# :label: ex-estimate-yourself
#
# **Write it yourself.** Estimate $V$ from the gradients of the examples of one minibatch, drawn without replacement.
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
#
# The cell below compares it with the package's on the twelve examples of this chapter.
# ````


# %% tags=["hide-input"]
def my_estimate(gradients, num_examples):
    n = len(gradients)
    return num_examples**2 / n * (1 - n / num_examples) * torch.cov(gradients.T)


chosen_four = torch.tensor([[0, 3, 5, 11]])
few = LogisticRegression(few_inputs, few_targets, batch_size=4, minibatches=Fresh())
wrongness = torch.sigmoid(few_inputs @ position[0]) - few_targets
claim(
    "Largest difference between the written estimate and the package's",
    (
        my_estimate((wrongness[:, None] * few_inputs)[chosen_four[0]], 12)
        - few.gradient_and_variance_given(position, chosen_four, "full")[1][0]
    )
    .abs()
    .max(),
    at_most=1e-9,
    because="the same sums; rounding",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-estimate-accident
#
# At which friction is the sampler with a variance for a standard deviation right on the logistic regression, by accident? What would it do with a tenth of the step size?
# ```
#
# ```{solution} ex-estimate-accident
# :class: dropdown
#
# $2(C - B)\varepsilon = 1$ at $C = B + 1/(2\varepsilon) = 44 + 167 = 211$. A test at $C = 200$ only would have found next to nothing. With $\varepsilon = 0.0003$ the noise is $B = 4.4$, and at $C = 200$ {eq}`eq-variance-for-deviation` gives $T = (4.4 + 0.0006\cdot195.6^2)/200 = 0.14$: the smaller the step, the colder.
# ```

# %% tags=["hide-input"]
for step, b, c, expected in (
    (0.003, 44, 211, 1),
    (0.003, 44, 200, 0.95),
    (0.0003, 4.4, 200, 0.14),
):
    claim(
        f"Temperature with a variance for a standard deviation, ε = {step:g}, C = {c}",
        (b + 2 * step * (c - b) ** 2) / c,
        near=expected,
        within=0.01,
        because="arithmetic",
        kind="exact",
    )

# %% [markdown]
#
# ```{exercise}
# :label: ex-estimate-two
#
# With minibatches of two, write the full $\hat V$ as an outer product. How large must the friction be so that nothing is clipped, and how does that compare with $\hat B$'s mean?
# ```
#
# ```{solution} ex-estimate-two
# :class: dropdown
#
# With replacement $\hat V = \frac{N^2}4(g_1 - g_2)(g_1 - g_2)^\top$, of rank one. Its one eigenvalue that is not zero is $\frac{N^2}4\lvert g_1 - g_2\rvert^2$, whose mean is $\operatorname{tr}V$. Where all eigenvalues of $V$ are alike that is $d$ times each of them, so even a typical draw needs a friction of $d$ times $B$. Each entry of a diagonal estimate has the mean $V_{jj}$, so that a few times $B$ suffice for it. What the matrix needs is averaging over some $d$ minibatches.
# ```
#
# ```{exercise}
# :label: ex-estimate-langevin
#
# SGLD steps by $-\eta\nabla\tilde U + N(0, 2\eta)$. Write its version with an online estimate, prove the analogue of {prf:ref}`thm-estimate-kick`, and find the condition under which nothing is clipped. Why can its friction not be raised?
# ```
#
# ```{solution} ex-estimate-langevin
# :class: dropdown
#
# Inject $N(0, 2\eta(I - \tfrac12\eta\hat V))$. The noise of a step has covariance $\eta^2V + 2\eta I - \eta^2E[\hat V] = 2\eta I$, and nothing is clipped while $\tfrac12\eta\hat V \preceq I$. By {eq}`eq-learning-rate` SGLD is SGHMC with $\alpha = 1$: its friction is as high as it goes, and only a smaller $\eta$ helps. {cite:t}`ahn2012` precondition by the Fisher information instead, which the noise resembles.
# ```
#
# ```{exercise}
# :label: ex-estimate-thermometer
#
# *A thermometer for samples.* Show that $E[(\theta - c)^\top\nabla U(\theta)] = Td$ for every $c$, if $\theta \in \mathbb R^d$ has the density $\exp(-U/T)$ up to a factor and $\lVert\theta\rVert e^{-U/T}$ vanishes at infinity. What does the average of $(\theta - c)^\top\nabla\tilde U(\theta)/d$ over the samples of a chain tell, and why must the minibatch be a fresh one, and $c$ not the mean of the same samples?
# ```
#
# ```{solution} ex-estimate-thermometer
# :class: dropdown
#
# Integrate by parts in each coordinate: $\int(\theta_j - c_j)\,\partial_jU\,e^{-U/T} = -T\int(\theta_j - c_j)\,\partial_je^{-U/T} = T\int e^{-U/T}$. This is the virial theorem. The average is the temperature of the positions, momenta apart: on a Gaussian, the mean of the variances in units of their right values. A fresh minibatch makes $\nabla\tilde U$ unbiased given $\theta$, whereas that of the step has moved $\theta$ already. The mean of few or correlated samples is too near to them, and makes the average too small.
# `sample` computes it at the end of a run from at most a hundred gradients (`sgmc.remarks.virial_ratio`), and says so if it is off by a fifth and by five standard errors. Below, no $\hat B$ at twice as much friction as noise: the exact variance is 1.5.
# ```

# %% tags=["hide-input"]
noisy = NoisyGradient(Gaussian.standard(2), 4.0)
hot = sample(
    SGHMC(0.1, friction=0.4, num_steps=40), noisy, torch.zeros(40, 2), 100, warm_up=10
)
ratio, ratio_error, _ = mean_and_error(
    virial_ratio(noisy, hot.samples, torch.Generator().manual_seed(1))
)
claim(
    "Virial ratio of a chain without an estimate",
    ratio,
    near=float(sghmc_chain(torch.eye(1), 0.1, 0.4, 4.0).stationary_covariance()[0, 0]),
    standard_error=ratio_error,
    because="the variance of its exact law; forty chains",
)

# %% [markdown]
#
# ```{exercise}
# :label: ex-estimate-mass
#
# {prf:ref}`thm-estimate-direction` wants mass and friction to be numbers. Let $M$ be a matrix and $C = cM$. Show that with $\theta = M^{-1/2}u$ everything is as before, and say what becomes of $T_v$.
# ```
#
# ```{solution} ex-estimate-mass
# :class: dropdown
#
# Put $r = M^{1/2}s$. Then $u' = u + \varepsilon s$ and $s' = s - \varepsilon cs - \varepsilon M^{-1/2}\nabla\tilde U + N(0, 2\varepsilon M^{-1/2}(C - \hat B)M^{-1/2})$: mass 1, friction $c$, curvature $M^{-1/2}AM^{-1/2}$, noise $M^{-1/2}BM^{-1/2}$. For its eigenvectors $w$, $T = 1 + w^\top M^{-1/2}(B - \hat B)M^{-1/2}w/c$. A mass in proportion to the noise makes it the same in all directions, and then one number is enough for $\hat B$.
# ```
#
# ## Further reading
#
# {cite:t}`chen2014` leave $\hat B$ to the user and {cite:t}`ahn2012` estimate it as here, for another sampler. {cite:t}`cochran1977` has all there is to know about samples without replacement, {cite:t}`baker2019` and {cite:t}`nemeth2021` treat control variates, and {cite:t}`mandt2017` ask what happens if the gradient's noise is the only one.
