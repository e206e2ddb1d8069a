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
# # Estimating the noise
#
# The minibatch that gives a gradient also tells how wrong that gradient is; this chapter makes a $\hat B$ of it, and finds out when that repairs a sampler and when nothing can.
#
# **You will learn** to
#
# * say by an exact formula what a wrong $\hat B$ does, direction by direction,
# * estimate the noise without bias, from the very minibatch of the step, in any model and in the layers of a network,
# * choose between one number, a diagonal and a matrix, and tell beforehand which will do,
# * recognise four wrong estimates by the law they lead to,
# * choose the friction, and reduce the noise where friction is not enough.
#
# **You will need** {doc}`/book/stochastic_gradients/minibatch_noise` and {doc}`/book/stochastic_gradients/sghmc`.

# %%
import itertools
import warnings
from time import perf_counter

import matplotlib.pyplot as plt
import torch
from torch.nn.functional import avg_pool2d

from sgmc import claim, flows, sample
from sgmc.datasets import digits
from sgmc.figures import TRUTH, use_style
from sgmc.kernels import HMC, SGHMC, Splitting
from sgmc.linear_laws import LinearChain, sghmc_chain
from sgmc.matrices import Matrix
from sgmc.minibatches import Fresh, Held
from sgmc.networks import multilayer_perceptron
from sgmc.noise import OnlineNoise, estimate_noise_variance, friction_for
from sgmc.play import play
from sgmc.posteriors import (
    LinearRegression,
    LogisticRegression,
    NetworkPosterior,
    control_variates,
)
from sgmc.prediction import expected_calibration_error, log_score
from sgmc.targets import Gaussian, NoisyGradient

use_style()
play()
# Several runs below take too little friction on purpose, and the kernel would warn each
# time.
warnings.filterwarnings("ignore", message="½εV̂ exceeded the friction")
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
# A step of SGHMC kicks the momentum by $-\varepsilon\nabla\tilde U$, whose noise has covariance $\varepsilon^2V = 2\varepsilon B$ with $B = \tfrac12\varepsilon V$, and injects noise of covariance $2\varepsilon(C - \hat B)$ of its own.
# Friction $C$ is balanced by noise of covariance $2\varepsilon C$, so that everything hangs on $\hat B = B$.
# Nobody is told $B$. Libraries set $\hat B$ to zero or ask for a number, and the chapter on SGHMC was given the answer.
# What does a wrong one cost? On a Gaussian target, exactly this:
#
# ```{prf:theorem} Temperature of a direction
# :label: thm-estimate-direction
#
# Let $U = \tfrac12\theta^\top A\theta$ with $A$ positive definite and gradient noise whose mean is 0 and whose covariance is $V$, given the past, mass 1, friction a number $C$, and any $\hat B \preceq C$. Let $v$ be an eigenvector of $A$ of length 1, $Av = av$. If $0 < \varepsilon C < 2$ and $\varepsilon^2a < 4 - 2\varepsilon C$, the chain of {prf:ref}`alg-sghmc` has in equilibrium
#
# $$
# \operatorname{Var}(v^\top\theta) = \frac1a\;T_v\;\frac1{1 - \dfrac{\varepsilon^2a}{4 - 2\varepsilon C}}, \qquad T_v = 1 + \frac{v^\top(B - \hat B)\,v}C .
# $$ (eq-direction)
# ```
#
# ```{prf:proof}
# Write $x = v^\top\theta$, $y = v^\top r$ and multiply both lines of the algorithm by $v^\top$. Because $v^\top A = av^\top$ and $C$ is a number, $x$ and $y$ move without the other coordinates,
#
# $$
# x' = x + \varepsilon y, \quad y' = (1 - \varepsilon C)\,y - \varepsilon a\,x' + \zeta, \quad \operatorname{Var}\zeta = 2\varepsilon\,v^\top(B + C - \hat B)\,v = 2\varepsilon C\,T_v .
# $$
#
# Let $X$, $Y$, $Z$ be the stationary values of $E[x^2]$, $E[y^2]$, $E[xy]$. The first line gives $X = X + 2\varepsilon Z + \varepsilon^2Y$, so $Z = -\tfrac12\varepsilon Y$ and $E[x'y] = Z + \varepsilon Y = \tfrac12\varepsilon Y$.
# The second, times $x'$, gives $-\tfrac12\varepsilon Y = (1 - \varepsilon C)\tfrac12\varepsilon Y - \varepsilon aX$, so $aX = (1 - \tfrac12\varepsilon C)Y$.
# The second squared gives $Y = (1 - \varepsilon C)^2Y - (1 - \varepsilon C)\varepsilon^2aY + \varepsilon^2a^2X + 2\varepsilon CT_v$. Put $aX$ in and divide by $2\varepsilon C$: $Y(1 - \tfrac12\varepsilon C - \tfrac14\varepsilon^2a) = T_v$. That a stationary law exists under the two conditions is shown in {doc}`/book/appendix/proofs`.
# ```
#
# The noise need not be Gaussian, and $V$ and $\hat B$ need not share the eigenvectors of $A$: whatever noise is left over, $B - \hat B$, is felt in each direction in proportion to what lies along it.
# The step size has a factor of its own, which does not mix with the temperature.
#
# In one dimension $T = 1 + (B - \hat B)/C$: with $\hat B = 0$ the chain is too hot by $B/C$, with half of $B$ by half of that, with twice too much it is too cold.
# Estimating too much is as wrong as estimating too little, and {numref}`fig-estimate-temperature` shows both.

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

# %% tags=["hide-input"]
claim(
    "Largest distance of fifteen measured variances from the formula, in standard "
    "errors",
    max(abs(variance - exact) / error for _, _, variance, error, exact in measured),
    at_most=4.5,
    because="4,000 chains; a right formula fails once in 10,000 times",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-estimate-temperature", "caption": "Stationary variance on a standard Gaussian with gradient noise B, for four estimates of it (C = 1, ε = 0.1): the formula (lines) and measured values (points; their standard errors are smaller than they are). Twice the noise can be subtracted only while it is at most the friction."}}
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
# ## The noise, from the examples of a minibatch
#
# By {prf:ref}`thm-minibatch` the noise is that of drawing $n$ of $N$ gradients $g_i = -\nabla\log p(x_i \mid \theta)$, and its covariance $V$ is $\frac{N^2}n$ times their covariance over the data, and $\frac{N - n}{N - 1}$ times that without replacement.
# The minibatch shows us $n$ of them. So estimate the covariance of all by the covariance of these {cite:p}`ahn2012`:
#
# ```{prf:definition} Estimates of the gradient noise
# :label: def-estimate
#
# For a minibatch $S$ of $n \ge 2$ examples let $\bar g_S$ be the mean of their gradients. The *full* estimate is
#
# $$
# \hat V = \frac{N^2}n\,\Bigl(1 - \frac nN\Bigr)\,\frac1{n - 1}\sum_{i \in S}(g_i - \bar g_S)(g_i - \bar g_S)^\top,
# $$ (eq-estimate)
#
# without the factor $1 - n/N$ if $S$ is drawn with replacement. The *diagonal* estimate keeps $\hat V_{jj}$ only, the *scalar* one their mean $\frac1d\sum_j\hat V_{jj}$. In all three cases $\hat B = \tfrac12\varepsilon\hat V$.
# ```
#
# Each factor has its reason.
# The $N^2$ is there because $\nabla\tilde U$ is $N$ times a mean, and variances take factors squared; $1/n$ because it is a mean of $n$; and $1 - n/N$ because without replacement a minibatch of all the data has no noise {cite:p}`cochran1977`.
# The mean $\bar g_S$ is subtracted because a slope that all examples share is signal, not noise. Near the mode it hardly matters, far from it it does.
# The prior is not sampled and takes no part.
#
# The estimate is unbiased, $E[\hat V \mid \theta] = V(\theta)$. The sum is a mean over pairs, $\frac1{n-1}\sum_i(g_i - \bar g_S)(g_i - \bar g_S)^\top = \frac1{2n(n-1)}\sum_{i,k}(g_i - g_k)(g_i - g_k)^\top$, so its expectation is half that of one random pair, which is the covariance over the data; {prf:ref}`thm-noise-estimate` has the factors.
# With twelve examples we need no proof, because all minibatches can be listed.

# %%
generator = torch.Generator().manual_seed(0)
few_inputs = torch.randn(12, 3, generator=generator, dtype=torch.float64)
few_targets = (torch.rand(12, generator=generator) < 0.5).double()
position = torch.tensor([[0.3, -0.5, 0.8]], dtype=torch.float64)

all_minibatches = {
    False: torch.tensor(list(itertools.combinations(range(12), 4))),
    True: torch.tensor(list(itertools.product(range(12), repeat=4))),
}
for replacement, minibatches in all_minibatches.items():
    few = LogisticRegression(
        few_inputs, few_targets, batch_size=4, minibatches=Fresh(replacement)
    )
    everywhere = position.expand(len(minibatches), -1)
    gradients, estimates = few.gradient_and_variance_given(
        everywhere, minibatches, "full"
    )
    covariance = torch.cov(gradients.T, correction=0)
    claim(
        f"Largest error of the mean of V̂ over all {len(minibatches):,} minibatches "
        f"{'with' if replacement else 'without'} replacement",
        (estimates.mean(0) - covariance).abs().max(),
        at_most=1e-10,
        because="enumeration; rounding",
        kind="exact",
    )

# %% [markdown]
# ## As noisy as you like
#
# One minibatch makes a poor estimate. A variance from $n$ numbers is off by a share of $\sqrt{2/n}$ or more, and the full matrix has rank $n - 1$ at most.
# Must it be averaged over many steps before it can be used? For the law of the chain, no.
#
# ```{prf:theorem} A noisy estimate is as good as the truth
# :label: thm-estimate-kick
#
# Let $\hat V$ be computed from the minibatch that gives $\nabla\tilde U(\theta)$, with $E[\hat V \mid \theta] = V(\theta)$ and $\tfrac12\varepsilon\hat V \preceq C$ always. Then the noise of a step, $\zeta = -\varepsilon(\nabla\tilde U - \nabla U) + \sqrt{2\varepsilon(C - \tfrac12\varepsilon\hat V)}\;\xi$ with a fresh $\xi \sim N(0, I)$, has mean 0 and covariance
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
# {prf:ref}`thm-estimate-direction` only needs means and covariances, so the chain on a Gaussian target has exactly the variances that it would have if it knew $B$, even where $V$ depends on $\theta$.
# Averaging $\hat V$ over past steps cannot improve on that.
# It matters for another reason: $C - \tfrac12\varepsilon\hat V$ must not be negative. Where it is, nothing can be injected, and the kernel *clips*, that is, injects nothing in that direction. In one dimension the covariance of the kick is then $2\varepsilon\bigl(B + E[\max(C - \hat B, 0)]\bigr)$, so that
#
# $$
# T = 1 + \frac{E[\max(\hat B - C, 0)]}C .
# $$ (eq-clipping)
#
# A noisy estimate is clipped sometimes even if its mean is below the friction, and clipping always heats.
# And if the noise itself exceeds the friction, $T \ge B/C$: no estimate can take noise out.
#
# ### The coin that is never right
#
# Let the data be $N$ numbers $y_i = \pm1$, half of each sign, with the model $y_i \sim N(\theta, \sigma^2)$ and minibatches of two, drawn with replacement.
# The two examples are equal, and then $\hat V = 0$, or they differ, and then $\hat V = 2V$; each happens half the time. The estimate is never right.
# Without clipping the variance must be exact nevertheless, and the clipped chain's temperature is {eq}`eq-clipping` with $\hat B \in \{0, 2B\}$: for $C < 2B$ it is $\tfrac12 + B/C$.
# The estimate is made *online*: `OnlineNoise` asks the posterior for the gradient and for $\hat V$ from the same minibatch $\omega$, and mixes it with the past by a weight $\lambda$, which is zero by default.
#
# ```{literalinclude} ../../sgmc/noise.py
# :language: python
# :pyobject: OnlineNoise.update
# ```
#
# The steps are those of {prf:ref}`alg-sghmc`; where they ask for the gradient, the root of $2\varepsilon(C - \tfrac12\varepsilon\hat V)$ is made anew for each chain, and the share of it that was clipped is counted:
#
# ```{literalinclude} ../../sgmc/kernels/sghmc.py
# :language: python
# :pyobject: SGHMC.take_gradient
# :dedent: 4
# ```

# %%
coins, with_replacement = torch.tensor([-1.0, 1.0]).repeat(50), Fresh(replacement=True)
coin = LinearRegression(
    torch.ones(100, 1),
    coins,
    noise_variance=100.0,
    prior_variance=1e6,
    batch_size=2,
    minibatches=with_replacement,
)
step_size = 0.3
noise = (
    0.5 * step_size * 100**2 / 2 * 1 / 100**2
)  # B = ½εV, and V = N²/n times the variance of yᵢ/σ², 1/σ⁴


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
        num_samples=60,
        warm_up=40,
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

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-estimate-coins", "caption": "Temperature of the coin's posterior against the friction, by formula (lines) and measured (points, with two standard errors). The online estimate is zero or 2B at each step. From C = 2B on nothing is clipped and it is exact; below, averaging helps; below C = B nothing makes it exact."}}
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
# What is exact here is the second moment. The noise of a step is a mixture of Gaussians, not a Gaussian, but many of them are averaged in a unit of time ({ref}`ex-noise-linear`).
# And on a target that is not Gaussian the theorem still says that each step, wherever it is taken, adds noise of exactly the right covariance.
#
# ## A logistic regression
#
# Now in earnest: $N = 10{,}000$ examples of $d = 50$ features, minibatches of $n = 500$ drawn with replacement, $\varepsilon = 0.003$.
# The features are like principal components, uncorrelated but of unequal size, and the mean of $B_{jj}$ at the mode is 44.
# The reference is HMC with all the data and a correction step, in 100 chains that start from the Gaussian approximation at the mode.

# %%
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
claim(
    "Mean of the diagonal of B at the mode",
    noise.diagonal().mean(),
    near=44,
    within=0.5,
    because="exact; the data are made so",
    kind="exact",
)

# %%
print(
    f"Entries of the diagonal of B from {noise.diagonal().min():.0f} to "
    f"{noise.diagonal().max():.0f}"
)

approximation = mode + torch.randn(
    100, d, generator=generator, dtype=torch.float64
) @ torch.linalg.inv(torch.linalg.cholesky(hessian))
long_run = sample(
    HMC(0.5, 3, mass=hessian.float(), jitter=0.4),
    regression(),
    approximation.float(),
    num_samples=200,
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


def formula(friction, estimate):
    """The ratio by the exact law of the chain on the Gaussian approximation, for a
    given B̂, by coordinate."""
    law = sghmc_chain(
        hessian, step_size, friction, at_mode, estimate
    ).stationary_covariance()[:d, :d]
    return (law.diagonal() / torch.linalg.inv(hessian).diagonal()).sqrt()


# %% [markdown]
# Five ways to choose $\hat B$: zero; the three kinds, online; and the diagonal estimated once at the mode, *fixed*, from 1,000 minibatches.
# The full estimate is averaged with $\lambda = 0.95$. Why, we shall see.
# The friction has to exceed the largest eigenvalue of $B$, which is 49. We try 50; and 200, where the noise is a minor matter; and 10, which is too little.

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
    friction, noise_estimate, target=posterior, chains=100, num_samples=240, warm_up=60
):
    kernel = SGHMC(step_size, friction, noise_estimate)
    return sample(
        kernel, target, start[:chains], num_samples=num_samples, warm_up=warm_up, seed=2
    )


runs = {}
for kind, estimate in estimates.items():
    chains = 80 if kind == "full" else 100
    runs[50.0, kind] = sghmc(50.0, estimate, chains=chains)
    runs[200.0, kind] = sghmc(
        200.0,
        estimate,
        chains=30 if kind == "full" else 100,
        num_samples=300,
        warm_up=100,
    )
    if kind != "fixed":  # it exceeds a friction of 10, and the kernel refuses it
        runs[10.0, kind] = sghmc(
            10.0, estimate, chains=20, num_samples=100, warm_up=150
        )
ratios = {key: mean_spread(run) for key, run in runs.items()}

# %% tags=["hide-input"]
for friction in (50.0, 200.0):
    expected = float(formula(friction, 0.0).mean())
    claim(
        f"Standard deviation over the reference's, B̂ = 0 and C = {friction:g}, "
        "divided by the formula's",
        ratios[friction, "zero"][0] / expected,
        near=1,
        within=0.03,
        because=(
            f"the formula gives {expected:.3f}; standard errors are below 0.005, and "
            "other seeds agree to 0.01"
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
            within=0.02,
            because=(
                "standard errors are below 0.005; what is left of the bias is the "
                "step's, and a little clipping"
            ),
        )
claim(
    "The smallest of the four ratios at C = 10",
    min(ratios[10.0, kind][0] for kind in estimates if kind != "fixed"),
    at_least=1.8,
    because="B/C = 4.4, and no estimate can bring the temperature below it: √4.4 = 2.1",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-estimate-regression", "caption": "Standard deviations of the regression's posterior over those of long HMC. Left: the mean over 50 coordinates at C = 10, 50 and 200 (points, moved apart a little), with the formula for zero (line). Right: coordinate by coordinate at C = 50, against its own noise; lines are the formula. One number for all coordinates is right on average, and wrong for most; the diagonal is right for each."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8))
for shift, kind in enumerate(estimates):
    for friction in (10.0, 50.0, 200.0):
        if (friction, kind) in ratios:
            left.plot(
                friction * 1.06**shift,
                ratios[friction, kind][0],
                "o",
                ms=5,
                color=KINDS[kind],
            )
    left.plot([], [], "o", color=KINDS[kind], label=kind)
frictions = torch.logspace(1, 2.4, 30).tolist()
left.plot(
    frictions,
    [formula(c, 0.0).mean() for c in frictions],
    color=KINDS["zero"],
    lw=1,
    zorder=0,
)
left.axhline(1, color=TRUTH, zorder=0)
left.set(xscale="log", xlabel="friction $C$", ylabel="standard deviation / reference")
left.legend()
own = noise.diagonal()
order = own.argsort()
right.axhline(1, color=TRUTH, zorder=0)
for kind, subtracted in (
    ("zero", 0.0),
    ("scalar", float(own.mean())),
    ("diagonal", None),
):
    right.plot(
        own, spread(runs[50.0, kind])[0], "o", ms=3.5, color=KINDS[kind], label=kind
    )
    if subtracted is not None:
        right.plot(
            own[order], formula(50.0, subtracted)[order], color=KINDS[kind], lw=1
        )
right.set(
    xlabel="noise of the coordinate $B_{jj}$", ylabel="standard deviation / reference"
)
right.legend()
plt.show()

# %% [markdown]
# With $\hat B = 0$ the standard deviations are more than a third too wide at $C = 50$. The online diagonal removes that, and takes no more gradients.
# At $C = 10$ the kernel refuses the fixed estimate, because $C \succeq \hat B$ fails; the online ones are clipped in every coordinate, nothing is injected, and the kernel warns.
#
# The mean of a ratio hides what the scalar does: it cools the coordinates with little noise and heats those with much.
# So measure the *error*: average the ratio over groups of five coordinates of similar noise, and take the root mean square over the ten groups of what it differs from one, after subtracting what Monte Carlo contributes to a mean square.


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


unaveraged = sghmc(50.0, OnlineNoise("full"), chains=50, num_samples=150)

# %% tags=["hide-input"]
claim(
    "Error of the scalar estimate at C = 50",
    error_of(runs[50.0, "scalar"])[0],
    at_least=0.03,
    because="other seeds give 0.037 to 0.048",
)
claim(
    "Error of the diagonal estimate at C = 50",
    error_of(runs[50.0, "diagonal"])[0],
    at_most=0.015,
    because="other seeds give at most 0.0082",
)
claim(
    "Ratio of standard deviations with the full estimate from one minibatch alone, at "
    "C = 50",
    mean_spread(unaveraged)[0],
    at_least=1.025,
    because="clipping: other seeds give 1.045 to 1.051",
)

# %% [markdown]
# The last claim answers the question that we left open. Each entry of a full $\hat V$ from 500 examples is good enough, but its *eigenvalues* are not: those of a $d \times d$ covariance from $n$ draws spread by a factor of about $(1 \pm \sqrt{d/n})^2$, here from 0.5 to 1.7.
# The large ones exceed the friction and are clipped. The average over $(1 + \lambda)/(1 - \lambda) = 39$ minibatches has a spread of a tenth.
# So the more of the matrix one estimates, the more one has to average, and for no other reason than clipping.
#
# ### Error against cost
#
# A larger minibatch has less noise and costs more. {numref}`fig-estimate-cost` asks what one gets for the time of a step, at $C = 50$ and from $n = 50$ to $5{,}000$.

# %%
by_size = {}
for size, chains, num_samples in (
    (50, 20, 100),
    (150, 20, 100),
    (500, None, None),
    (1_500, 30, 200),
    (5_000, 20, 140),
):
    for kind, estimate in estimates.items():
        if size == 5_000 and kind not in ("zero", "diagonal"):
            continue  # long, and like the diagonal
        if size == n:
            by_size[size, kind] = runs[50.0, kind]
        elif kind != "fixed":
            by_size[size, kind] = sghmc(
                50.0, estimate, regression(size), chains, num_samples
            )
        elif size > n:  # below, it exceeds the friction
            by_size[size, kind] = sghmc(
                50.0, fixed * n / size, regression(size), chains, num_samples
            )
errors = {key: error_of(run) for key, run in by_size.items()}

# %% tags=["hide-input"]
claim(
    "Error with the diagonal estimate and n = 500 over that with B̂ = 0 and n = 5,000",
    errors[500, "diagonal"][0] / errors[5_000, "zero"][0],
    at_most=0.5,
    because="the formula gives 0.043 for the latter; the former is below 0.01",
)
claim(
    "The smallest error with n = 50, whatever the estimate",
    min(errors[50, kind][0] for kind in ("zero", "scalar", "diagonal", "full")),
    at_least=1,
    because="B/C is near 9: the standard deviations are three times too wide",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-estimate-cost", "caption": "Error of the standard deviations against the time of a step of one chain, on the machine that built this page, at C = 50. Along each line n grows from 50 (fixed: from 500) to 1,500, and for zero and the diagonal to 5,000. A hollow point is an error that the run cannot tell from zero, drawn at the smallest that it could."}}
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
# Where the noise exceeds the friction, at $n = 50$ and 150, all estimates fail alike. Where it does not, an estimate buys more than a tenfold minibatch.
# The diagonal is cheap, because its sums of squares are made of what the gradient needed anyway. The full one pays for a root of a $d \times d$ matrix at every step, which does not grow with $n$.
#
# ### Choosing the friction
#
# Friction that leaves room is bought with time: for $C \gg 2\sqrt a$ the chain creeps, and its autocorrelation time is about $2C/\varepsilon a$ steps.
# Friction that leaves no room is paid for by {eq}`eq-clipping`. `friction_for` takes a multiple, three by default, of the largest eigenvalue of $\hat B$, or, given a diagonal, of each entry.
# How often the kernel had to clip is a statistic of the draws. A few per cent are no drama, because what counts is by how much $\hat B$ exceeded $C$, not how often: at $C = 50$ the diagonal is clipped in one coordinate of eight, and no harm was seen.
#
# Could friction replace the estimate? With $\hat B = 0$ a standard deviation is right to one per cent if $B/C \le 0.02$, here at $C = 2{,}200$. But $\varepsilon C < 2$ asks for less than 667. The step would have to be shorter too.


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
    at_least=0.05,
    because="it is near 0.13",
)
claim(
    "Share of coordinates clipped, diagonal, C = 10",
    clipped_share(runs[10.0, "diagonal"]),
    at_least=0.99,
    because="B̂ is never below 10",
)

# %%
chosen = friction_for(at_mode, step_size)
times = {
    c: sghmc_chain(
        one * float(hessian.diagonal().mean()), step_size, c
    ).autocorrelation_time(torch.tensor([1.0, 0.0]))
    for c in (50.0, chosen, 200.0)
}
print(f"friction_for chooses C = {chosen:.0f}")
for c, time in times.items():
    print(f"Autocorrelation time at C = {c:.0f}: {time:.0f} steps")

# %% [markdown]
# ## When a diagonal is not enough
#
# In that regression the gradients' coordinates were hardly correlated. Let them be: a linear regression with two features of correlation 0.8, whose posterior is Gaussian and known.
# By {eq}`eq-noise-curvature` the noise has the shape of the curvature, so it is large along $(1, 1)$, small along $(1, -1)$; the diagonal estimate takes the same from both.
# By {eq}`eq-direction` the first is then too hot and the second too cold, although each coordinate's own $\hat B_{jj}$ is right.

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
        + torch.randn(600, 2, generator=generator, dtype=torch.float64)
        @ torch.linalg.cholesky(twins.covariance).T,
        num_samples=60,
        warm_up=40,
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

# %% tags=["hide-input"]
for kind, run in twin_runs.items():
    measured, error = temperatures(run)
    for direction, name in enumerate(("(1, −1)", "(1, 1)")):
        predicted = float(expected[direction]) if kind == "diagonal" else 1.0
        claim(
            f"Temperature along {name}, {kind} estimate",
            measured[direction],
            near=round(predicted, 3),
            standard_error=error[direction],
            because="formula; Monte Carlo from 600 chains",
        )

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-estimate-correlated", "caption": "Left: B̂ for the two estimates, which reach equally far along each axis. Right: two standard deviations of the posterior of two correlated coefficients, exact (grey), with the diagonal and with the full estimate."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.8))
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
    xlabel=r"$\theta_1 - E\theta_1$", ylabel=r"$\theta_2 - E\theta_2$", aspect="equal"
)
left.legend(loc="upper left")
right.legend(loc="upper right")
plt.show()

# %% [markdown]
# **How to tell beforehand.** Make a full estimate once, at the mode, from many minibatches, and look at the eigenvalues of $(\hat V - \operatorname{diag}\hat V)\,\varepsilon/2C$.
# By {eq}`eq-direction` no direction is hotter than one plus the largest or colder than one plus the smallest of them.
# The same look at $\hat V$ less its mean diagonal tells whether one number will do. In words: a diagonal is enough if the friction is large against the noise, or if the coordinates' gradients are uncorrelated; features on different scales ask for a diagonal, correlated features for a matrix, or for other coordinates.


# %%
def worst(left_over, friction):
    """The largest deviation of the temperature from one in any direction."""
    return float(torch.linalg.eigvalsh(left_over).abs().max() / friction)


# %% tags=["hide-input"]
claim(
    "Largest deviation of a direction's temperature, correlated pair, diagonal",
    worst(left_over, twin_friction),
    at_least=0.35,
    because="exact matrix at the mean; it is 0.40",
    kind="exact",
)
claim(
    "Largest deviation, logistic regression at C = 50, diagonal",
    worst(noise - torch.diag(noise.diagonal()), 50),
    at_most=0.1,
    because="exact matrix at the mode; it is 0.085",
    kind="exact",
)
claim(
    "Largest deviation, logistic regression at C = 50, scalar",
    worst(noise - noise.diagonal().mean() * torch.eye(d), 50),
    at_least=0.2,
    because="exact matrix at the mode; it is 0.23",
    kind="exact",
)

# %% [markdown]
# ## In a network
#
# A network of 79,510 weights has a full $\hat V$ of 25 gigabytes for each chain; the diagonal is what there is. But per-example gradients of a minibatch of 500 would be 160 megabytes too, at each step.
# They need not be made. Let a linear layer map activations $a_i$ to $W a_i$, for example $i$, and let $\delta_i$ be the *signal*, the derivative of the loss of example $i$ by the layer's output. Back-propagation computes both. The example's gradient in $W$ is the outer product $\delta_ia_i^\top$, and the square of an outer product, entry by entry, is the outer product of the squares:
#
# $$
# \sum_{i \in S}\bigl(\delta_ia_i^\top\bigr)^2 = \sum_{i \in S}\delta_i^2\,\bigl(a_i^2\bigr)^\top .
# $$ (eq-squares)
#
# That is one more product of two matrices that are there already, the same size as the one that makes the gradient itself. The scalar estimate needs no matrix at all, for the squares of an outer product add up to $\lvert\delta_i\rvert^2\lvert a_i\rvert^2$.
# In a convolution the same weights act at many places of an example, and its gradient is a sum of outer products, which is squared example by example, a few at a time.
# `NetworkPosterior` does this for linear and convolutional layers, and falls back on per-example gradients for others.
#
# How much time that takes is soon told. In a step of a 784–100–10 network with $n = 500$ most of it goes into products of matrices, three of the same size: forward, backward, and squares if they are wanted. So the online diagonal should cost half a step more at most.
# `python benchmarks/noise.py` measured 1.4 times the plain step for the diagonal and 1.1 times for the scalar.
#
# We take the digits at half their resolution, a network of 6,220 weights with the prior $N(0, 1)$, and $\eta = 2\cdot10^{-5}$ and $\alpha = 0.01$, the $\eta/\alpha$ of SGHMC in {doc}`/book/bayesian_networks/digits`; there $\hat\beta = \tfrac12\eta\hat V$ is to be compared with $\alpha$.

# %%
train, test = digits()
halved = [
    avg_pool2d(data.inputs.view(-1, 1, 28, 28), 2).flatten(1) for data in (train, test)
]


def network_posterior(batch_size):
    return NetworkPosterior(
        multilayer_perceptron([196, 30, 10]),
        halved[0],
        train.targets,
        batch_size=batch_size,
    )


digit_posterior = network_posterior(100)
weights = digit_posterior.initial_position(8, torch.Generator().manual_seed(0))
with torch.no_grad():
    (indices,) = digit_posterior.draw_noise(
        weights, torch.Generator().manual_seed(1), step=0
    )
    _, squares = digit_posterior.gradient_and_variance_given(
        weights, indices, "diagonal"
    )
    each = digit_posterior.per_example_gradients(
        weights, digit_posterior.minibatch(indices)
    )
    explicit = 4_000**2 / 100 * (1 - 100 / 4_000) * each.var(1)

# %% tags=["hide-input"]
claim(
    "Largest difference between V̂ from signals and V̂ from per-example gradients, "
    "relative to the largest entry",
    (squares - explicit).abs().max() / explicit.max(),
    at_most=1e-4,
    because="single precision",
)
del each

# %% [markdown]
# No reference posterior is to be had, but a thermometer is. By the proof of {prf:ref}`thm-estimate-direction` the momentum has $(1 - \tfrac12\varepsilon C)E[(v^\top r)^2] \approx T_v$, up to the step's factor. So the momenta of a run tell the temperature of every weight.
# We run the sampler for $n = 500$ and $n = 100$, with $\hat B = 0$ and with the online diagonal, and look at three things: the temperature, the noise $\beta_j = \tfrac12\eta V_{jj}$ that the run met, and the predictions on the 1,000 test digits averaged over the second half of the run.


# %%
learning_rate, decay = 2e-5, 0.01


def follow(batch_size, chains, momentum_decay, noise_estimate, num_steps=1_000):
    """Temperature and noise β of every weight, each chain's log score and
    calibration error, and the seconds of its steps."""
    target = network_posterior(batch_size)
    kernel = SGHMC.from_learning_rate(learning_rate, momentum_decay, noise_estimate)
    generator = torch.Generator().manual_seed(1)
    temperature, variance, probabilities, seconds = 0, 0, [], 0.0
    with torch.no_grad():
        state = kernel.init(target, weights[:chains], generator)
        for step in range(num_steps):
            started = perf_counter()
            state, _ = kernel.step(target, state, generator)
            seconds += (perf_counter() - started) / num_steps / chains
            if step >= num_steps // 2:
                temperature += (
                    state.momentum.square().mean(0)
                    * (1 - 0.5 * momentum_decay)
                    / (num_steps // 2)
                )
                if step % 20 == 0:
                    variance += estimate_noise_variance(
                        target, state.position, generator
                    ) / (num_steps // 40)
                    probabilities.append(target.predict(state.position, halved[1]))
    average = torch.stack(probabilities).mean(0)
    scores = torch.tensor(
        [
            (log_score(p, test.targets), expected_calibration_error(p, test.targets))
            for p in average
        ]
    )
    return temperature, 0.5 * learning_rate * variance, scores, seconds


online = OnlineNoise("diagonal", averaging=0.9)
network_runs = {
    ("n = 500", "zero"): follow(500, 4, decay, 0.0, num_steps=700),
    ("n = 500", "online"): follow(500, 4, decay, online, num_steps=700),
    ("n = 100", "zero"): follow(100, 8, decay, 0.0),
    ("n = 100", "online"): follow(100, 8, decay, online),
}
met = network_runs["n = 100", "online"][1] / (
    0.5 * learning_rate
)  # the variance V of each weight's gradient
more_friction = friction_for(met, learning_rate, at_least=decay).clamp(
    max=0.5
)  # α of each weight, three times its noise or 0.01
network_runs["n = 100, friction by weight", "zero"] = follow(100, 8, more_friction, 0.0)
network_runs["n = 100, friction by weight", "online"] = follow(
    100, 8, more_friction, online
)
temperatures_of = {
    key: float(temperature.mean()) for key, (temperature, *_) in network_runs.items()
}
noises_of = {
    key: float((network_noise / decay).mean())
    for key, (_, network_noise, *_) in network_runs.items()
}
scores_of = {key: scores.mean(0) for key, (_, _, scores, _) in network_runs.items()}

# %% tags=["hide-input"]
claim(
    "n = 500: mean noise over friction",
    noises_of["n = 500", "zero"],
    near=0.06,
    within=0.03,
    because="other seeds give 0.06 to 0.075",
)
claim(
    "n = 500: log score with the estimate less log score without",
    scores_of["n = 500", "online"][0] - scores_of["n = 500", "zero"][0],
    near=0,
    within=0.08,
    because="no effect is seen; the standard error of the difference is near 0.02",
)
claim(
    "n = 100: mean noise over friction",
    noises_of["n = 100", "zero"],
    near=0.3,
    within=0.12,
    because="other seeds give 0.31 to 0.35",
)
claim(
    "n = 100: share of the weights whose noise exceeds the friction",
    (network_runs["n = 100", "zero"][1] > decay).double().mean(),
    at_least=0.03,
    because="other seeds give 0.07 to 0.10",
)
for setting, kind, bound in (
    ("n = 500", "online", 1.04),
    ("n = 100", "online", 1.25),
    ("n = 100, friction by weight", "online", 1.06),
):
    claim(
        f"{setting}: mean temperature with the estimate",
        temperatures_of[setting, kind],
        at_most=bound,
        because="other seeds agree to 0.03",
    )
for setting, bound in (("n = 500", 1.03), ("n = 100", 1.25)):
    claim(
        f"{setting}: mean temperature with B̂ = 0",
        temperatures_of[setting, "zero"],
        at_least=bound,
        because="other seeds agree to 0.03",
    )
for setting, kind, change, bound in (
    ("n = 100", "online", "the estimate alone", 0.97),
    ("n = 100, friction by weight", "zero", "friction by weight alone", 0.92),
):
    claim(
        f"n = 100: log score with {change}, over that with neither",
        scores_of[setting, kind][0] / scores_of["n = 100", "zero"][0],
        at_most=bound,
        because="other seeds give 0.86 to 0.90"
        if kind == "online"
        else "other seeds give 0.75 to 0.83",
    )
for measure, name in enumerate(("log score", "calibration error")):
    claim(
        f"n = 100: {name} with friction by weight and the estimate, over that with "
        "neither",
        scores_of["n = 100, friction by weight", "online"][measure]
        / scores_of["n = 100", "zero"][measure],
        at_most=0.9,
        because="other seeds give 0.72 to 0.81"
        if measure == 0
        else "other seeds give 0.31 to 0.46",
    )

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-estimate-network", "caption": "The digits' network. Left: temperature of the weights against their noise over friction, in bins, with 1 + β/α (solid: nothing subtracted) and max(1, β/α) (dashed: all that can be). Right: log score of a chain's averaged prediction, with two standard errors over chains, against the time of a step on the machine that built this page."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.2))
edges = torch.logspace(-3, 1, 13)
middles = (edges[1:] * edges[:-1]).sqrt()
left.axhline(1, color=TRUTH, zorder=0)
grid = torch.logspace(-3, 1, 200)
left.plot(grid, 1 + grid, color="black", lw=1)
left.plot(grid, grid.clamp(min=1), "--", color="black", lw=1)
markers = {"n = 500": "s", "n = 100": "o", "n = 100, friction by weight": "^"}
for (setting, kind), (
    temperature,
    network_noise,
    scores,
    seconds,
) in network_runs.items():
    colour = KINDS["zero"] if kind == "zero" else KINDS["diagonal"]
    label = f"{setting}, " + (r"$\hat B = 0$" if kind == "zero" else "online")
    score, error = scores[:, 0].mean(), scores[:, 0].std() / len(scores) ** 0.5
    right.errorbar(
        1e6 * seconds, score, 2 * error, fmt=markers[setting], color=colour, label=label
    )
    if "friction" not in setting:
        bins = torch.bucketize(network_noise / decay, edges)
        points = [
            (float(middles[i - 1]), float(temperature[bins == i].mean()))
            for i in range(1, 13)
            if (bins == i).sum() >= 20
        ]
        left.plot(*zip(*points, strict=True), markers[setting], ms=4.5, color=colour)
left.set(
    xscale="log",
    xlabel=r"noise over friction, $\beta_j/\alpha$",
    ylabel="temperature",
    ylim=(0.8, 4),
)
right.set(
    xlabel="time of a step of one chain (µs)",
    ylabel="log score (nats, smaller is better)",
    xlim=(0, None),
)
figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %% [markdown]
# The thermometer reads what the formula says, weight by weight ({numref}`fig-estimate-network`, left): with nothing subtracted $1 + \beta_j/\alpha$, and with the estimate one, as long as $\beta_j$ is well below $\alpha$.
# It rises from one before $\beta_j$ reaches $\alpha$, in part because the noise of a weight comes and goes along the run, and is clipped when it is up.
#
# At $n = 500$ the noise is some seven per cent of the friction on average. The estimate cools the weights from 1.06 to 1.00, and the predictions do not notice: not because the estimate is bad, but because there is little to correct.
#
# At $n = 100$ it is near a third, and unequally so. Most weights hardly see any, and several in a hundred, in the biases and the output layer above all, have more noise than friction. There the estimate is clipped and the chain stays hot.
# Nothing forces the friction to be one number. With $\alpha_j = \max(3\hat\beta_j, \alpha)$, where $\hat\beta$ is what the run before met, there is room nearly everywhere, the mean temperature is one, and both scores improve.
# The estimate alone helps, the friction alone helps more, and the two together most. So the first use of $\hat V$ in a network is to see where the noise is, and the second to subtract it.
#
# A better score is no proof of a better posterior. But a temperature of one is a test that a sampler of the posterior must pass, and the hot chains fail it.
#
# ### The larger network, and a matrix for each layer
#
# Is it the same with all 784 pixels and 100 hidden units? Long runs of that network are for {doc}`/book/bayesian_networks/digits`; its noise is measured in two seconds.
# We take 400 steps from random weights at $n = 500$, and compare $\beta_j$ with $\alpha$ in each layer.
#
# With the weights in hand we can also settle what lies between a diagonal and a full matrix. The noise of a layer is $\operatorname{Cov}(\delta_ia_i^\top)$, and if the signal $\delta_i$ were independent of the activations $a_i$ it would be, apart from the means, the *Kronecker product* $E[\delta_i\delta_i^\top] \otimes E[a_ia_i^\top]$ of two small matrices {cite:p}`martens2015`.
# Such an estimate is cheap, and it knows correlations. Is it good? The output layer has 1,000 weights, few enough to compute the covariance over all 4,000 examples.

# %%
larger = NetworkPosterior(
    multilayer_perceptron([784, 100, 10]),
    train.inputs.flatten(1),
    train.targets,
    batch_size=500,
)
generator = torch.Generator().manual_seed(0)
kernel = SGHMC.from_learning_rate(learning_rate, decay)
with torch.no_grad():
    state = kernel.init(larger, larger.initial_position(1, generator), generator)
    for _ in range(400):
        state, _ = kernel.step(larger, state, generator)
found = estimate_noise_variance(
    larger, state.position.expand(4, -1).contiguous(), generator, num_batches=2
)
over_friction = 0.5 * learning_rate * found / decay
parts = over_friction.split([100 * 784, 100, 10 * 100, 10])
by_layer = dict(
    zip(
        ("hidden weights", "hidden biases", "output weights", "output biases"),
        parts,
        strict=True,
    )
)

# %% tags=["hide-input"]
claim(
    "784–100–10, n = 500: mean noise over friction",
    over_friction.mean(),
    at_most=0.15,
    because="other seeds give 0.02 to 0.04",
)
claim(
    "784–100–10, n = 500: mean noise of the output weights over that of the hidden "
    "weights",
    by_layer["output weights"].mean() / by_layer["hidden weights"].mean(),
    at_least=15,
    because="other seeds give 33 to 43",
)
claim(
    "784–100–10, n = 500: share of all weights whose noise exceeds the friction",
    (over_friction > 1).double().mean(),
    at_most=0.02,
    because="other seeds give 0.001 to 0.003",
)
claim(
    "784–100–10, n = 500: the largest noise over friction among the output weights",
    by_layer["output weights"].max(),
    at_least=5,
    because="other seeds give 12 to 37",
)

first, first_bias, second, second_bias = state.position[0].split(
    [100 * 784, 100, 10 * 100, 10]
)
activations = torch.relu(train.inputs.flatten(1) @ first.view(100, 784).T + first_bias)
signals = torch.softmax(activations @ second.view(10, 100).T + second_bias, -1)
signals[torch.arange(len(signals)), train.targets] -= 1
exact = torch.cov(
    (signals[:, :, None] * activations[:, None, :]).flatten(1).T, correction=0
)
kronecker = torch.kron(
    signals.T @ signals / len(signals), activations.T @ activations / len(signals)
)
claim(
    "Kronecker product, output layer: distance from the covariance, relative to its "
    "norm",
    torch.linalg.norm(kronecker - exact) / torch.linalg.norm(exact),
    at_least=0.6,
    because="other seeds give 0.79 to 0.98, and a diagonal 0.92 to 0.96",
)
claim(
    "Kronecker product, output layer: mean absolute error of its diagonal, relative "
    "to the mean of the right one",
    (kronecker - exact).diagonal().abs().mean() / exact.diagonal().mean(),
    at_least=0.5,
    because="other seeds give 0.8 to 1.3, and a diagonal estimate has none",
)
noisiest = torch.linalg.eigh(exact).eigenvectors[:, -1]
claim(
    "Kronecker product, output layer: variance along the noisiest direction, over the "
    "right one",
    (noisiest @ kronecker @ noisiest) / (noisiest @ exact @ noisiest),
    at_most=0.8,
    because="other seeds give 0.17 to 0.56, and the diagonal 0.06 to 0.15",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-estimate-layers", "caption": "The 784–100–10 network with n = 500, after 400 steps: share of a layer's weights whose noise is more than so many times the friction. Weights of pixels that are never inked have no noise at all."}}
figure, axes = plt.subplots()
axes.axvline(1, color=TRUTH, zorder=0)
for (layer, values), style in zip(
    by_layer.items(), ("-", "--", "-", "--"), strict=True
):
    colour = KINDS["diagonal"] if layer.startswith("hidden") else KINDS["zero"]
    axes.plot(
        values.sort().values,
        1 - torch.arange(len(values)) / len(values),
        style,
        color=colour,
        label=layer,
    )
axes.set(
    xscale="log",
    xlim=(1e-4, 1e2),
    xlabel=r"noise over friction, $\beta_j/\alpha$",
    ylabel="share of weights with more",
)
axes.legend()
plt.show()

# %% [markdown]
# It is the same, only more so. The noise is a few per cent of the friction on average, more than thirty times as large in the output layer as in the hidden one, and ten times the friction and more in a few weights ({numref}`fig-estimate-layers`).
# One number for $\hat B$ would do harm to nearly all weights and cure none, and one number for $C$ is the wrong place to save.
#
# The Kronecker product does not earn its place. As a matrix it is hardly closer to the truth than the diagonal, and what the diagonal has right, each weight's own variance, it misses by about as much as the variance itself. Along the noisiest direction it does find more than the diagonal, but at best about half of what is there.
# The reason is that signal and activations are not independent: once a network fits, $\delta_i$ is near zero except for a few hard examples, and their activations are not those of the average.
# Averaging does not help, for it is a bias; and {prf:ref}`thm-estimate-kick` asks for nothing but an unbiased estimate. So `sgmc` has none.
#
# ## Wrong estimates, and the laws they lead to
#
# Four mistakes look right, run without a complaint, and leave their mark on the law of the chain. In the first three cases {eq}`eq-direction` says which.
#
# **The Hessian of the minibatch for the covariance of its gradient.** Near the mode the two have the same shape, {eq}`eq-noise-curvature`, but $V \approx \frac Nn\nabla^2U$: this $\hat B$ is too small by a factor of $N/n$, twenty here. And where a model does not fit, or a Hessian is not positive, not even the shape is right.
#
# **$N/n$ for $N^2/n$.** One forgets that a variance takes the square of the factor. This $\hat B$ is $N$ times too small, and the law is that of $\hat B = 0$.
#
# **A variance for a standard deviation.** If $2(C - \hat B)\varepsilon$ is passed as a scale, the injected variance is its square, so that $T = \bigl[B + 2\varepsilon(C - \hat B)^2\bigr]/C$. That is too little where $2(C - \hat B)\varepsilon < 1$, and by accident right where it is one. At $C = 50$ most of the noise comes with the gradient anyway, and the chain is too cold by some ten per cent; in learning-rate form, with a factor of $\eta$, next to nothing would be injected.
#
# **One minibatch for a whole trajectory.** Over $m$ steps that share a minibatch the kicks add up, to a covariance of $m^2\varepsilon^2V$ instead of $m\varepsilon^2V$. The $\hat V$ of each step is right, and of no use: {prf:ref}`thm-estimate-kick` needs a fresh minibatch. The law is still that of a linear chain, whose state is looked at once in $m$ steps.


# %%
class HessianForCovariance(LogisticRegression):
    """Wrong: the diagonal of the minibatch's Hessian where the covariance of the
    gradient is meant."""

    def gradient_and_variance_given(self, position, noise, kind):
        x, _ = self.minibatch(noise)
        probability = torch.sigmoid((x @ position[..., None])[..., 0])
        second = ((probability * (1 - probability))[:, None] @ x.square())[:, 0]
        return self.gradient_given(position, noise), N / n * second


class MissingFactor(LogisticRegression):
    """Wrong: N/n where N²/n is meant."""

    def gradient_and_variance_given(self, position, noise, kind):
        gradient, variance = super().gradient_and_variance_given(position, noise, kind)
        return gradient, variance / N


*moves, _ = flows.sghmc(step_size, 50.0, fixed)
scale = (
    2 * step_size * (50 - fixed)
)  # wrong: it is a variance, and is passed as a standard deviation
variance_for_standard_deviation = Splitting(
    [*moves, flows.noise_flow(Matrix(scale**2))]
)

held_for_five = Held(5, with_replacement)  # wrong: one minibatch for five steps

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
        sghmc(50.0, OnlineNoise(), regression(n, HessianForCovariance), chains=50),
        formula(50.0, 0.5 * step_size * (hessian.diagonal() - 1)),
    ),
    "N/n for N²/n": (
        sghmc(50.0, OnlineNoise(), regression(n, MissingFactor), chains=50),
        formula(50.0, diagonal / N),
    ),
    "variance for\nstandard deviation": (
        sample(
            variance_for_standard_deviation,
            posterior,
            start[:50],
            num_samples=240,
            warm_up=60,
            seed=3,
        ),
        formula(50.0, 50 - 2 * step_size * (50 - diagonal) ** 2),
    ),
    "minibatch held\nfor five steps": (
        sghmc(50.0, OnlineNoise(), regression(n, minibatches=held_for_five), chains=50),
        (held_law()[:d, :d].diagonal() / torch.linalg.inv(hessian).diagonal()).sqrt(),
    ),
}

# %% tags=["hide-input"]
for name, (run, expected) in wrong.items():
    claim(
        f"{' '.join(name.split())}: standard deviation over the reference's, divided "
        "by the formula's",
        mean_spread(run)[0] / float(expected.mean()),
        near=1,
        within=0.04,
        because=(
            "the law of the wrong chain on the Gaussian approximation gives "
            f"{expected.mean():.2f}; other seeds agree to 0.025"
        ),
    )

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-estimate-wrong", "caption": "Four wrong estimates on the logistic regression at C = 50: measured standard deviations over the reference's (points; standard errors are smaller) and the laws of the wrong chains (bars)."}}
figure, axes = plt.subplots(figsize=(7.2, 3.4))
axes.axhline(1, color=TRUTH, zorder=0)
shown = {
    "right, diagonal": (runs[50.0, "diagonal"], formula(50.0, diagonal)),
    "$\\hat B = 0$": (runs[50.0, "zero"], formula(50.0, 0.0)),
} | wrong
for i, (run, expected) in enumerate(shown.values()):
    axes.hlines(expected.mean(), i - 0.25, i + 0.25, color="black")
    axes.plot(
        i, mean_spread(run)[0], "o", color=KINDS["zero"] if i else KINDS["diagonal"]
    )
axes.set_xticks(range(len(shown)), shown, fontsize=8)
axes.set(ylabel="standard deviation / reference", ylim=(0.8, None))
plt.show()

# %% [markdown]
# ## Less noise instead
#
# Where the noise exceeds the friction, one can make less of it. A larger minibatch does, at its price. A *control variate* does better where the posterior is narrow {cite:p}`baker2019`: find the mode $\theta^*$ once, keep every example's gradient there, and let the minibatch sample only differences,
#
# $$
# \nabla\tilde U(\theta) = -\nabla\log p(\theta) + \sum_{i=1}^Ng_i(\theta^*) + \frac Nn\sum_{i \in S}\bigl(g_i(\theta) - g_i(\theta^*)\bigr).
# $$ (eq-control)
#
# It is unbiased, and by {prf:ref}`thm-minibatch` its covariance is $\frac{N^2}n$ times that of the differences $g_i(\theta) - g_i(\theta^*) \approx \nabla g_i(\theta^*)(\theta - \theta^*)$: it grows with the square of the distance from the mode.
# In a posterior of width $1/\sqrt N$ the factor $N^2$ has become $N$. Far from the mode, where the differences are as large as the gradients, nothing is gained.

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
calm_run = sghmc(10.0, 0.0, calm, chains=50, num_samples=300, warm_up=100)

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
    at_most=0.02,
    because="other directions give near 0.005",
)
claim(
    "Standard deviation over the reference's with C = 10 and B̂ = 0, with the control "
    "variate",
    mean_spread(calm_run)[0],
    near=1,
    within=0.05,
    because=(
        "without it the ratio is above 2; a noise of 0.005·44 over a friction of 10 "
        "leaves one per cent"
    ),
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-estimate-control", "caption": "Trace of V̂ on the logistic regression at a distance from the mode, in posterior standard deviations of each coordinate: the plain minibatch gradient and the one with a control variate. The grey band is where the posterior is."}}
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
# So the same regression that no estimate could sample at $C = 10$ is sampled there with $\hat B = 0$. The price is the search for the mode, $Nd$ numbers of memory and a minibatch twice as large to read; and there must be *one* mode, which a network does not have.
#
# ## In practice
#
# * Compare $B$ with $C$ before anything else: `estimate_noise_variance` once, at the mode. Below a few per cent $\hat B = 0$ will do; above $C$ nothing will.
# * Use the online diagonal by default. Take `kind="full"` with `averaging=0.95` or more where gradients are correlated and $d$ is small; `refresh_every` saves time where the noise hardly changes.
# * Read the statistic `clipped`. If much is clipped raise the friction, there where the noise is (`friction_for` of a diagonal $\hat V$), or shorten the step, enlarge the batch, or use a control variate.
# * A network's noise is uneven: look at it layer by layer before you choose one number for anything.
# * Averaging is for clipping and for cost, not for bias. After a bad start it remembers the start for $1/(1 - \lambda)$ steps.
# * Test an estimate by enumeration, or by the law of the chain on a Gaussian. Wrong factors do not crash.
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
# ```{exercise}
# :label: ex-estimate-accident
#
# At which friction is the sampler with a variance for a standard deviation right on the logistic regression, by accident? What would it do with a tenth of the step size?
# ```
#
# ```{solution} ex-estimate-accident
# :class: dropdown
#
# $2(C - B)\varepsilon = 1$ at $C = B + 1/2\varepsilon = 44 + 167 = 211$. A test at $C = 200$ only would have found next to nothing. With $\varepsilon = 0.0003$ and $C = 200$ the injected scale is $2\cdot195.6\cdot0.0003 = 0.117$ and $T = (4.4 + 0.117\cdot195.6)/200 = 0.14$: the smaller the step, the colder.
# ```
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
# With replacement $\hat V = \frac{N^2}4(g_1 - g_2)(g_1 - g_2)^\top$, of rank one, with eigenvalue $\frac{N^2}4\lvert g_1 - g_2\rvert^2$, whose mean is $\operatorname{tr}V$. Where all eigenvalues of $V$ are alike that is $d$ times each of them, so even a typical draw needs a friction of $d$ times $B$. A diagonal estimate from the same two examples needs a few times $B$. What the matrix needs is averaging over some $d$ minibatches.
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
