# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Choosing the noise estimate
#
# ```{div} page-head
# Level: second course · Reading: about 52 minutes, without the exercises · Running: about 15 seconds
# ```
#
# {doc}`/book/tutorial/estimating_the_noise` takes $\hat B$ from the minibatch of each step.
# Should it be one number, a diagonal or a matrix, and how much friction does it need?
# This page compares five estimates at three frictions on a logistic regression, says beforehand when a diagonal will do, shows the distributions to which four wrong estimates lead, and reduces the noise where friction is not enough.
#
# **You will learn** to
#
# * choose between one number, a diagonal and a matrix, and tell beforehand which will do,
# * recognise four wrong estimates by what they do to the chain,
# * choose the friction, and reduce the noise where friction is not enough.
#
# **You will need** {doc}`/book/tutorial/estimating_the_noise`.
# Networks have a page of their own, {doc}`/book/studies/noise_of_networks`.

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt
import torch

from booklib.conformance.thermostat import mean_field_variance
from booklib.page.claims import claim
from booklib.page.figures import TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from sgmc import sample
from sgmc.kernels import HMC, SGHMC
from sgmc.matrices import Matrix
from sgmc.minibatches import Fresh, Held
from sgmc.models import control_variates
from sgmc.noise import OnlineNoise, estimate_noise_variance
from sgmc.posteriors import LinearRegression, LogisticRegression
from sgmc.splittings import LinearChain, Splitting, flows, sghmc_chain
from sgmc.tuning import friction_for

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Several runs below take too little friction on purpose, and the kernel would warn each
# time. They start in the posterior and are short, so R̂ is no help.
warnings.filterwarnings(
    "ignore", message="½εV̂ exceeded|.*too wide|.*too narrow|.*do not agree"
)
KINDS = {
    "zero": "#D55E00",
    "scalar": "#E69F00",
    "diagonal": "#0072B2",
    "full": "#009E73",
    "fixed": "#56B4E9",
}
one, with_replacement = torch.eye(1, dtype=torch.float64), Fresh(replacement=True)

# %% [markdown]
# ## How noisy is one estimate?
#
# A variance from $n$ independent numbers has a standard deviation that is a share of its mean, the share
#
# $$
# \sqrt{\frac1n\Bigl(\kappa - \frac{n - 3}{n - 1}\Bigr)},
# $$ (eq-noise-share)
#
# where $\kappa = E[(x - Ex)^4]/\operatorname{Var}[x]^2$ is their kurtosis: about $\sqrt{2/n}$ for Gaussian numbers ($\kappa = 3$), of the order of $1/n$ for the tosses of a fair coin ($\kappa = 1$), and more for heavy tails. The full matrix has rank $n - 1$ at most.
# {prf:ref}`thm-estimate-kick` says why this does not matter as long as nothing is clipped.
# Clipping is another thing, and it decides between the kinds of estimates below.
#
# The condition $\tfrac12\varepsilon\hat V \preceq C$ can be met everywhere only where the gradients of two examples differ by a bounded amount: for the coin, or in a logistic regression.
# In a linear regression with unequal inputs they differ by more and more as $\theta$ moves away, so no friction is enough everywhere; far out the injected noise is clipped, and each step there heats.

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
    within=0.055,
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
    within=0.1,
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
    errors=True,
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
# ## A thermostat in place of an estimate
#
# {cite:t}`ding2014` do without an estimate: the friction $\xi$ becomes a variable of its own, which grows while the kinetic energy is too large and falls while it is too small, $\xi \leftarrow \xi + \varepsilon(r^\top r/d - 1)$ (`SGNHT` in `sgmc.other_kernels`).
# With many coordinates $\xi$ hardly moves once it is in balance, and each coordinate is then a linear chain with that friction, whose distribution is exact.
# If the noise is the same in all coordinates, the thermostat is right whatever $V$ is in the limit of small steps. At a finite one the variance is too small by a share of about $\tfrac12\varepsilon\xi$, where the friction $\xi$ comes to $A + \tfrac12\varepsilon V$ and $A$ is the diffusion of the injected noise.
# But $\xi$ is one number.
# The noise of minibatches is largest in the steepest directions ({doc}`/book/tutorial/minibatch_noise`): with curvatures 0.1 and 10 in half of the coordinates each and $V = 20a$, the flat ones have 0.18 times their variance and the steep ones 1.77 times, at $\varepsilon = 0.03$ and injected noise of diffusion 0.3.
# So a thermostat replaces a *scalar* $\hat B$, and has the faults of one; where the noise differs between directions, take the diagonal.


# %% tags=["hide-input"]
def thermostat(noise):
    """Variances over the target's for the curvatures 0.1 and 10."""
    curvature = torch.tensor([0.1, 10.0], dtype=torch.float64)

    def step(friction):
        kept, injected = Matrix(1 - 0.03 * friction), Matrix(2 * 0.3 * 0.03)
        return [flows.MomentumMap(kept, injected), flows.Kick(0.03), flows.Drift(0.03)]

    return curvature * mean_field_variance(step, curvature, 1.0, noise)


for words, noise, ratios in (
    ("alike", [20.0, 20.0], [0.991, 0.991]),
    ("in proportion to the curvature", [2.0, 200.0], [0.18, 1.77]),
):
    claim(
        f"A thermostat with noise {words}: distance of its two ratios from {ratios}",
        (thermostat(torch.tensor(noise)) - torch.tensor(ratios)).abs().max(),
        at_most=0.005,
        because="exact as the number of coordinates grows; the step's bias is ½εξ",
        kind="exact",
    )

# %% [markdown]
# ## In practice
#
# * Compare $B$ with $C$ before anything else: `estimate_noise_variance` once, at the mode. Below a few per cent $\hat B = 0$ will do; above $C$ no estimate will.
# * Use the online diagonal by default. Take `kind="full"` with `averaging=0.95` or more where gradients are correlated and $d$ is small; `refresh_every` saves time where the noise hardly changes.
# * Read the statistic `clipped`. If much is clipped raise the friction, there where the noise is (`friction_for` of a diagonal $\hat V$), or shorten the step, enlarge the batch, or use a control variate.
# * Averaging is for clipping and for cost, not for bias. After a bad start it remembers the start for $1/(1 - \lambda)$ steps.
# * Test an estimate by enumeration, or by the exact law of the chain on a Gaussian. Wrong factors do not crash.
#
# ## Change it
#
# * In the correlated pair replace `torch.tensor([[1, 0.8], [0.8, 1]]` by `torch.tensor([[1, 0.2], [0.2, 1]]`: the ellipses of {numref}`fig-estimate-correlated` nearly agree, and the claim on the largest deviation of a direction's temperature shows ✗, because a diagonal is now almost enough.
# * Replace `control_variates(posterior, mode.float())` by `control_variates(posterior, mode.float() + 0.1)`: the noise no longer vanishes at the mode, and the claims on the control variate show ✗.
#
# ## Exercises
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
# {cite:t}`cochran1977` has all there is to know about samples without replacement, {cite:t}`baker2019` and {cite:t}`nemeth2021` treat control variates.
