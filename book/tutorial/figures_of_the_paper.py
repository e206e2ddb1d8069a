# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # The three figures of Chen et al. (2014)
#
# ```{div} page-head
# Optional · 16 minutes to read, 10 to play · Running: about 8 seconds
# ```

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt
import torch

from booklib.page.claims import claim
from booklib.page.figures import (
    COLOURS,
    plot_contours,
    plot_density,
    plot_histogram,
    use_style,
)
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.scores.diagnostics import (
    bin_probabilities,
    inverse_transform_samples,
    total_variation,
)
from sgmc import sample
from sgmc.kernels import HMC, SGHMC, SGLD, NaiveSGHMC
from sgmc.splittings import LinearChain, flows, langevin_chain, sghmc_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# The naive sampler is too wide on purpose, and chains are many and short.
warnings.filterwarnings("ignore", message=".*too wide|.*do not agree")

# %% [markdown]
# The paper that introduced SGHMC makes its case in three small figures.
# Having read the tutorial, you know what each must show; here they are computed anew.
# Where caption and published program differ, {doc}`/book/appendix/errata` has the details.
#
# ## Figure 1: five samplers, one double well
#
# The target is $U = -2\theta^2 + \theta^4$; three of the samplers see $\nabla U + N(0, 4)$ in place of its gradient.
# The step is $\varepsilon = 0.1$, the friction $C = 3$ and $\hat B = \tfrac12\varepsilon V = 0.2$; 50 steps lie between two of the 80,000 samples.
#
# A histogram needs a yardstick.
# Let $p_k$ be the probability of bin $k$, and $\hat p_k$ the share of the samples in it.
# The *total-variation distance* $\tfrac12\sum_k\lvert\hat p_k - p_k\rvert$ is the share of the samples that would have to move to another bin to make everything right.
# Even $N$ independent samples of the target itself have a distance, on average about
#
# $$
# \frac12\sum_k\sqrt{\frac{2\,p_k(1 - p_k)}{\pi N}},
# $$ (eq-tv-floor)
#
# the *noise floor* ({ref}`ex-floor`). Without it a number such as 0.01 says nothing.

# %% tags=["hide-input"]
well, bowl = DoubleWell(), Gaussian.standard(1)
edges = torch.linspace(-2.5, 2.5, 51)
probabilities = bin_probabilities(well, edges)
floor = float(
    (2 * probabilities * (1 - probabilities) / (torch.pi * 80_000)).sqrt().sum() / 2
)
samplers = {
    "HMC": HMC(0.1, 50),
    "HMC without correction": HMC(0.1, 50, metropolis=False),
    "naive SGHMC with correction": NaiveSGHMC(0.1, 50, metropolis=True),
    "naive SGHMC": NaiveSGHMC(0.1, 50),
    "SGHMC": SGHMC(0.1, 3.0, 0.2, num_steps=50, resample_every=1),
}
runs = {
    name: sample(  # four times 800 chains with 100 samples each
        kernel,
        NoisyGradient(well, 4.0),
        torch.zeros(4 * 800, 1),
        num_samples=100,
        warm_up=10,
        seed=0,
    )
    for name, kernel in samplers.items()
}
distance = {
    name: sum(
        total_variation(one_run, probabilities, edges)
        for one_run in run.samples.split(800, dim=1)
    )
    / 4
    for name, run in runs.items()
}

# %% mystnb={"figure": {"caption": "Figure 1 of Chen et al. (2014), computed anew: the double well by 80,000 samples of two samplers with minibatch noise, on the true density (grey).", "name": "fig-chen-1"}, "image": {"alt": "A grey density with two hills. The line of naive SGHMC is lower on the hills and higher in the valley and outside; that of SGHMC follows the density."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.0))
plot_density(axes, well, -2.2, 2.2)
for name in ("naive SGHMC", "SGHMC"):
    bins, samples = torch.linspace(-2.2, 2.2, 61), runs[name].samples[:, :800]
    plot_histogram(axes, samples, bins, color=COLOURS[name], label=name)
axes.set(xlabel=r"$\theta$", ylabel="density", ylim=(0, 0.65))
axes.legend(loc="upper center", ncols=3)
plt.show()

# %% [markdown]
# {numref}`fig-chen-1` is the paper's figure: naive SGHMC is too flat and too wide, and SGHMC lies on the truth.
# In numbers, the floor of 80,000 independent samples is 0.008. Naive SGHMC has the distance 0.14; the four others lie within 0.01 of the floor, what is left being the bias of the step and correlated samples.
# Correcting the naive sampler by rejection works, too, but it rejects four of ten trajectories here and needs the energy of all the data.
# (Strictly, no step size gives SGHMC a stationary distribution on this target, whose gradient grows too fast. At $\varepsilon = 0.1$ nobody will see it: {doc}`/book/further/how_far_it_holds`.)

# %% tags=["hide-input"]
generator = torch.Generator().manual_seed(0)
independent = inverse_transform_samples(well, 8 * 80_000, -3, 3, generator)
of_independent = [
    total_variation(x, probabilities, edges) for x in independent.split(80_000)
]
claim(
    "Total variation of 80,000 independent samples over the floor, mean of eight",
    sum(of_independent) / 8 / floor,
    near=1,
    within=0.35,
    because=(
        "some 30 bins matter, each with a relative spread of 0.76: seven times "
        "0.76/√240 is 0.34"
    ),
)
claim(
    "Total variation of naive SGHMC, mean of four runs",
    distance["naive SGHMC"],
    near=0.143,
    within=0.006,
    because="ten seeds",
)
claim(
    "Largest total variation of the four other samplers less the floor",
    max(value for name, value in distance.items() if name != "naive SGHMC") - floor,
    at_most=0.01,
    because="0.004 to 0.007 over ten seeds",
)
claim(
    "Mean acceptance of corrected naive trajectories of 50 steps",
    runs["naive SGHMC with correction"].statistics["acceptance"].mean(),
    near=0.57,
    within=0.03,
    because="other seeds give 0.568 to 0.573",
)

# %% [markdown]
# ## Figure 2: the heating of a bowl
#
# The second figure is a picture of phase space in the bowl, $\theta$ to the right and $r$ upwards: 15,000 steps from $(1, 0)$, with a point after every 50.
# The exact dynamics stays on the circle.
# With noise each step adds $\varepsilon^2V$ to $E[r^2]$, so after $k$ steps
#
# $$
# E[\theta^2 + r^2] \approx 1 + k\,\varepsilon^2V,
# $$ (eq-heated-radius)
#
# which is 601 at the end.
# A fresh momentum before every point holds the path, but too wide; friction holds it where it should be ({numref}`fig-chen-2`).
# (The caption's $V = 4$ is not the noise of the printed figure, whose program draws a 32nd of the heat. In the printed figure, therefore, the points without friction stay nearer, and those with fresh momenta are hardly too wide.)


# %% mystnb={"figure": {"caption": "Figure 2 of Chen et al. (2014) with the noise of its caption, $V = 4$: 300 points of 50 steps. The points without friction leave the frame.", "name": "fig-chen-2"}, "image": {"alt": "A phase plane with a small circle. Black triangles without friction lie far out in all directions; orange points with resampled momenta fill a disc that is too wide, pink squares with friction a smaller one."}} tags=["hide-input"]
def phase_path(moves, resample=False, chains=1, num_points=300):
    """Follow a list of flows from (1, 0); return the points (num_points, chains, 2)."""
    noisy, generator = NoisyGradient(bowl, 4.0), torch.Generator().manual_seed(0)
    position, momentum, points = torch.ones(chains, 1), torch.zeros(chains, 1), []
    for _ in range(num_points):
        if resample:
            momentum = torch.randn(chains, 1, generator=generator)
        for _ in range(50):
            flows.advance(
                moves,
                position,
                momentum,
                lambda x: noisy.stochastic_gradient(x, generator),
                generator,
            )
        points.append(torch.cat([position, momentum], -1))
    return torch.stack(points)


half = flows.Drift(0.05)
no_friction, with_friction = [half, flows.Kick(0.1), half], flows.sghmc(0.1, 3.0, 0.2)
figure, axes = plt.subplots(figsize=(4.6, 4.4))
for name, points, colour, marker in (
    ("no friction", phase_path(no_friction), "black", "v"),
    ("momentum resampled", phase_path(no_friction, True), "#D55E00", "o"),
    ("with friction", phase_path(with_friction), COLOURS["SGHMC"], "s"),
):
    axes.plot(*points[:, 0].T, marker, ms=2.5, lw=0, color=colour, label=name)
circle = torch.linspace(0, 2 * torch.pi, 200)
axes.plot(circle.cos(), circle.sin(), color=COLOURS["HMC"], label="exact dynamics")
axes.set(aspect="equal", xlim=(-9, 9), ylim=(-9, 9), xlabel=r"$\theta$", ylabel="$r$")
figure.legend(loc="outside lower center", ncols=2, markerscale=2)
plt.show()

# %% tags=["hide-input"]
heated = phase_path(no_friction, chains=10_000, num_points=15)[-1]
claim(
    "Mean of θ² + r² after 750 noisy steps over its formula",
    heated.pow(2).sum(-1).mean() / (1 + 750 * 0.01 * 4),
    near=1,
    within=0.06,
    because="10,000 paths have a standard error of 0.01",
)
settled = phase_path(with_friction, chains=4_000, num_points=20)[-1, :, 0].double() ** 2
claim(
    "Mean of θ² after 1,000 noisy steps with friction",
    settled.mean(),
    near=float(
        sghmc_chain(torch.eye(1), 0.1, 3.0, 4.0, 0.2).stationary_covariance()[0, 0]
    ),
    standard_error=settled.std() / len(settled) ** 0.5,
    because="exact law; 4,000 paths",
)

# %% [markdown]
# ## Figure 3: SGHMC against SGLD
#
# The target is Gaussian with unit variances and correlation 0.9, the gradient noise is $N(0, I)$, and both samplers get the right noise estimate.
# The question is who pays less for the same error of the covariance.
# The price is the {term}`autocorrelation time` $\tau = 1 + 2\sum_k\rho_k$: an average over $S$ samples is as good as one over $S/\tau$ independent ones.
#
# Both chains are linear, so error and price are exact ({prf:ref}`thm-linear-tau`), and {numref}`fig-chen-3a` needs no samples: at the same error, SGHMC is far cheaper.
# For the five settings of the published program the table has the exact times, beside those of the SGLD that makes the same error.

# %% tags=["hide-input"]
gaussian, noisy = Gaussian.correlated(0.9), NoisyGradient(Gaussian.correlated(0.9), 1.0)
truth = torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64)
precision = gaussian.precision.double()
first = torch.tensor([1.0, 0.0], dtype=torch.float64)
in_phase = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
sghmc_settings = [(0.05 * 0.36**i, 0.05 * 0.6**i) for i in range(5)]


def sgld_chain(rate):
    return langevin_chain(precision, rate, 1.0, 0.5 * rate)


def sghmc_of(rate, decay):
    step = rate**0.5
    return sghmc_chain(precision, step, decay / step, 1.0, 0.5 * step)


def exact_error(chain):
    """The exact mean absolute error of the covariance."""
    return float((chain.stationary_covariance()[:2, :2] - truth).abs().mean())


def sgld_with_error(error):
    """Find by bisection the step at which SGLD's exact error is the given one;
    return its chain."""
    low, high = 1e-6, 0.18
    for _ in range(60):
        middle = (low + high) / 2
        if exact_error(sgld_chain(middle)) < error:
            low = middle
        else:
            high = middle
    return sgld_chain(low)


def time_of_square(chain, direction):
    """The exact autocorrelation time of a squared coordinate of a Gaussian chain, 1
    + 2 Σ ρ², by Σ FᵏΣccᵀΣ(Fᵏ)ᵀ, which is the covariance of a linear chain too."""
    direction = direction.double()
    covariances = chain.stationary_covariance() @ direction
    squares = LinearChain(chain.transition, torch.outer(covariances, covariances))
    summed = direction @ squares.stationary_covariance() @ direction
    return float(2 * summed / (direction @ covariances) ** 2 - 1)


chains = [sghmc_of(*setting) for setting in sghmc_settings]
exact_errors = [exact_error(chain) for chain in chains]
rivals = [sgld_with_error(error) for error in exact_errors]
times = [
    (
        chain.autocorrelation_time(in_phase),
        rival.autocorrelation_time(first),
        time_of_square(chain, in_phase),
        time_of_square(rival, first),
    )
    for chain, rival in zip(chains, rivals, strict=True)
]
show_table(
    ["η, α of SGHMC", "error", "τ of θ₁", "SGLD's", "τ of θ₁²", "SGLD's"],
    [
        [
            f"{rate:.2g}, {decay:.2g}",
            f"{error:.2g}",
            *(f"{time:.1f}" if time < 100 else f"{time:,.0f}" for time in row),
        ]
        for (rate, decay), error, row in zip(
            sghmc_settings, exact_errors, times, strict=True
        )
    ],
)

# %% mystnb={"figure": {"caption": "Figure 3a of Chen et al. (2014), exactly: error of the covariance against autocorrelation time, for five settings of each sampler.", "name": "fig-chen-3a"}, "image": {"alt": "Two falling lines of error against autocorrelation time on logarithmic axes. That of SGHMC lies far below and to the left of that of SGLD."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.0, 3.2))
of_sgld = [sgld_chain(0.18 * 0.8**i) for i in range(5)]
for name, these, direction in (("SGLD", of_sgld, first), ("SGHMC", chains, in_phase)):
    axes.loglog(
        [chain.autocorrelation_time(direction) for chain in these],
        [exact_error(chain) for chain in these],
        "o-",
        color=COLOURS[name],
        label=name,
    )
axes.set(xlabel=r"autocorrelation time $\tau$", ylabel="error of the covariance")
axes.legend()
plt.show()

# %% [markdown]
# One warning about the paper's comparison: $\tau$ of $\theta$ is not the time that the error of a *covariance* feels.
# SGHMC swings to the other side, where the autocorrelation is negative ($-0.59$) and the errors of a mean cancel; those of a product do not, since its autocorrelation is a square.
# By $\tau$ of $\theta_1$ SGHMC is nearly forty times faster at equal error with the largest step and three hundred times with the smallest, by $\tau$ of $\theta_1^2$ three and a half and twenty-seven times.
# (The published program also counts lags where it should add up $\rho_k$. The conclusion survives the correction; the numbers do not.)
#
# {numref}`fig-chen-3b` shows the reason: momentum carries SGHMC along the ridge, where SGLD changes its direction at every step.

# %% mystnb={"figure": {"caption": "Figure 3b of Chen et al. (2014): the first 50 samples, on contours of the target.", "name": "fig-chen-3b"}, "image": {"alt": "Two panels, one above the other, with walks of 50 samples on a narrow ridge that rises to the right. The walk of SGLD takes small steps to and fro; the walk of SGHMC runs along the ridge in long sweeps."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 1, figsize=(4.2, 7.0), sharex=True, sharey=True)
short = {
    "SGLD": SGLD(0.05, noise_estimate=0.025),
    "SGHMC": SGHMC.from_learning_rate(0.05, 0.035, noise_estimate=0.025),
}
for axes, (name, kernel) in zip(panels, short.items(), strict=True):
    trace = sample(kernel, noisy, torch.zeros(1, 2), num_samples=50, seed=4).samples
    plot_contours(axes, gaussian, -3.2, 3.2)
    axes.plot(*trace[:, 0].T, "o-", ms=3, lw=0.8, color=COLOURS[name])
    axes.set(title=name, ylabel=r"$\theta_2$", aspect="equal")
panels[-1].set_xlabel(r"$\theta_1$")
plt.show()

# %% tags=["hide-input"]
for which, (sghmc, sgld, sghmc_square, sgld_square), *expected in (
    ("largest", times[0], 0.026, 0.29),
    ("smallest", times[-1], 0.00325, 0.037),
):
    ratios = sghmc / sgld, sghmc_square / sgld_square
    for what, ratio, near in zip(("θ₁", "θ₁²"), ratios, expected, strict=True):
        claim(
            f"At equal error, SGHMC's autocorrelation time of {what} over SGLD's, "
            f"{which} step",
            ratio,
            near=near,
            within=0.02 * near,
            because="exact laws of both chains",
            kind="exact",
        )
claim(
    "Smallest autocorrelation of SGHMC, over all lags and settings",
    min(float(chain.autocorrelation(in_phase, 500).min()) for chain in chains),
    near=-0.587,
    within=0.001,
    because="exact law",
    kind="exact",
)

# %% [markdown]
# **To remember:** where an exact distribution is known, draw it under the measured points; it finds mistakes in both.
#
# ## Change it
#
# * In the dictionary of samplers replace `SGHMC(0.1, 3.0, 0.2, num_steps=50, resample_every=1)` by `SGHMC(0.1, 3.0, 0.0, num_steps=50, resample_every=1)`: nothing is subtracted for the gradient's noise, and the claim on SGHMC's total variation shows ✗.
# * In Figure 1 replace `NoisyGradient(well, 4.0)` by `NoisyGradient(well, 0.0)`: without noise nothing heats the naive sampler, and the claims on its total variation and on the acceptance show ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-floor
#
# Derive the floor {eq}`eq-tv-floor`: the expected total-variation distance between the shares $\hat p_k$ of $N$ independent samples in the bins and their own probabilities $p_k$, where $Np_k$ is large.
# ```
#
# ```{solution} ex-floor
# :class: dropdown
#
# The number of samples in bin $k$ is nearly normal with mean $Np_k$ and variance $Np_k(1-p_k)$.
# So $\hat p_k - p_k$ is nearly $N(0, \sigma^2)$ with $\sigma^2 = p_k(1-p_k)/N$, and the mean of its absolute value is $\sigma\sqrt{2/\pi}$.
# Half of the sum over the bins is the floor.
# ```
#
# ````{exercise}
# :label: ex-tv-yourself
#
# **Write it yourself.** Compute the total-variation distance of one-dimensional samples from the probabilities of some bins.
# A sample outside of all bins counts as one in a wrong place.
#
# ```python
# def my_total_variation(samples, probabilities, edges):
#     """samples (n,), probabilities (bins,), edges (bins + 1,) -> a number"""
#     ...
# ```
#
# In assignment 2 ({doc}`/book/practice/teaching`) you draw the double well with samplers of your own; this function then tells how good they are.
# ````
#
# ````{solution} ex-tv-yourself
# :class: dropdown
#
# Count, divide, subtract, and add the share that lies outside.
#
# ```python
# def my_total_variation(samples, probabilities, edges):
#     inside = torch.histogram(samples.double(), edges.double()).hist / len(samples)
#     outside = 1 - inside.sum()
#     return 0.5 * float((inside - probabilities).abs().sum() + outside)
# ```
#
# The cell below compares it with the package's.
# ````


# %% tags=["hide-input"]
def my_total_variation(samples, probabilities, edges):
    inside = torch.histogram(samples.double(), edges.double()).hist / len(samples)
    outside = 1 - inside.sum()
    return 0.5 * float((inside - probabilities).abs().sum() + outside)


claim(
    "Difference between the written and the package's total variation",
    my_total_variation(independent.flatten(), probabilities, edges)
    - total_variation(independent, probabilities, edges),
    near=0,
    within=1e-9,
    because="the same sums; rounding",
    kind="exact",
)

# %% [markdown]
# ````{exercise}
# :label: ex-figure-three
#
# In Figure 3 one direction is nineteen times as stiff as the other.
# Give both samplers a preconditioner: sample in coordinates in which the target is $N(0, I)$.
# What is left of SGHMC's advantage at an error of 1 % in the variance?
# Compute exact autocorrelation times of $\theta$ and of $\theta^2$ with `langevin_chain` and `sghmc_chain`.
# ````
#
# ````{solution} ex-figure-three
# :class: dropdown
#
# By {eq}`eq-sgld-variance` and {eq}`eq-sghmc-variance`, with the right noise estimates, the error is 1.01 % for SGLD at $\eta = 0.02$, and for SGHMC at $\varepsilon = 0.1906$ with the friction $C = 1$.
#
# ```python
# one = torch.eye(1, dtype=torch.float64)
# langevin, c = langevin_chain(one, 0.02), torch.tensor([1.0])
# friction, e = sghmc_chain(one, 0.1906, 1.0), torch.tensor([1.0, 0.0])
# langevin.autocorrelation_time(c), friction.autocorrelation_time(e)  # of θ: 99, 10.4
# time_of_square(langevin, c), time_of_square(friction, e)  # of θ²: 49.5, 9.9
# ```
#
# A mean of $\theta$ gains a factor of ten.
# The error here is that of a variance, which feels the time of $\theta^2$: a factor of *five* is left.
# SGLD's error is proportional to $\eta$ and its time to $1/\eta$; SGHMC's error is proportional to $\varepsilon^2$ and its time only to $1/\varepsilon$.
# So the advantage grows as the inverse square root of the error that is asked for.
# Without the preconditioner it is larger still, for the softest direction takes the time: $1/(\eta a)$ steps against $1/(\varepsilon\sqrt a)$, where $a$ is its curvature.
# If the variance of *every* direction must be right to one per cent, the stiffest one limits the step, and that is another factor of the order of $\sqrt{19}$, with the condition number 19 of Figure 3; if only those of the coordinates, of about $\sqrt{1.9}$.
# ````

# %% tags=["hide-input"]
one, unit = torch.eye(1, dtype=torch.float64), torch.eye(2)[0]
langevin, friction = langevin_chain(one, 0.02), sghmc_chain(one, 0.1906, 1.0)
values = [
    value
    for chain, direction in ((langevin, unit[:1]), (friction, unit))
    for value in (
        100 * abs(float(chain.stationary_covariance()[0, 0]) - 1),
        chain.autocorrelation_time(direction),
        time_of_square(chain, direction),
    )
]
claim(
    "Largest relative difference of the six numbers from those of the solution",
    max(
        abs(value / given - 1)
        for value, given in zip(
            values, (1.01, 99.0, 49.5, 1.01, 10.4, 9.9), strict=True
        )
    ),
    at_most=0.01,
    because="exact laws; the solution rounds",
    kind="exact",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`chen2014`; for the autocorrelation time and its estimation {cite:t}`hoffman2014` and {cite:t}`vehtari2021`.
