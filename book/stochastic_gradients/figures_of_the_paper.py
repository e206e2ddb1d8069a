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
# # The three figures of Chen et al. (2014)
#
# The paper that introduced SGHMC makes its case in three small figures; here they are again, computed, measured, and in two places corrected.
#
# **You will learn** to
#
# * read the figures of {cite:t}`chen2014` as quantitative statements, and check them,
# * compare a histogram with a density against the floor that exact sampling sets,
# * tell what a published figure shows from what its caption says.
#
# **You will need** {doc}`/book/stochastic_gradients/sghmc`.

# %%
import matplotlib.pyplot as plt
import torch

from sgmc import claim, sample
from sgmc.diagnostics import bin_probabilities, inverse_transform_samples, total_variation
from sgmc.figures import COLOURS, plot_contours, plot_density, plot_histogram, use_style
from sgmc.integrators import leapfrog
from sgmc.kernels import HMC, SGHMC, SGLD, NaiveSGHMC
from sgmc.linear_laws import langevin_chain, sghmc_chain
from sgmc.potentials import DoubleWell, Gaussian, NoisyGradient

use_style()

# %% [markdown]
# ## Figure 1: five samplers, one double well
#
# The target is $U = -2\theta^2 + \theta^4$, the gradient is seen as $\nabla U + N(0, 4)$, the step is $\varepsilon = 0.1$, the friction $C = 3$ and $\hat B = \tfrac12\varepsilon V = 0.2$; 50 steps lie between two of the 80,000 samples, and everything starts at $0$.
# The paper runs one long chain.
# We run 800 chains of 100 samples after 10 that are thrown away, which has the same stationary law and the same number of samples, and takes seconds.
#
# How good can 80,000 samples be? *Exact* draws, by inverting the distribution function, set the floor.
# We measure the total-variation distance $\tfrac12\sum_k\lvert\hat p_k - p_k\rvert$ on bins of width 0.1.

# %%
edges = torch.linspace(-2.5, 2.5, 51)
samplers = {
    "HMC": HMC(0.1, 50),
    "HMC without correction": HMC(0.1, 50, metropolis=False),
    "naive SGHMC with correction": NaiveSGHMC(0.1, 50, metropolis=True),
    "naive SGHMC": NaiveSGHMC(0.1, 50),
    "SGHMC": SGHMC(0.1, friction=3.0, noise_estimate=0.2, num_steps=50, resample_every=1),
}


def figure_one(potential):
    """Draw 80,000 samples with each of the five samplers."""
    noisy = NoisyGradient(potential, 4.0)
    return {
        name: sample(kernel, noisy, torch.zeros(800, 1), num_samples=100, warm_up=10, seed=seed)
        for seed, (name, kernel) in enumerate(samplers.items())
    }


well, bowl = DoubleWell(), Gaussian.standard(1)
runs = {"double well": figure_one(well), "bowl": figure_one(bowl)}
probabilities = bin_probabilities(well, edges)
exact = inverse_transform_samples(well, 80_000, -3, 3, torch.Generator().manual_seed(0))
distance = {name: total_variation(run.samples, probabilities, edges) for name, run in runs["double well"].items()}

floor = float((2 * probabilities * (1 - probabilities) / (torch.pi * 80_000)).sqrt().sum() / 2)
claim(
    "Total variation of 80,000 exact draws from their own density, relative to the expected floor",
    total_variation(exact, probabilities, edges) / floor,
    near=1,
    within=0.4,
    because="the floor ½ Σ √(2p(1−p)/(πN)) is an average over some 30 bins that matter",
)
claim("Total variation of HMC with the correction step", distance["HMC"], at_most=0.013, because="the floor is 0.008")
claim("Total variation of SGHMC", distance["SGHMC"], at_most=0.015, because="the floor of 0.008 and the bias of the step, 0.005")
claim("Total variation of naive SGHMC without correction", distance["naive SGHMC"], at_least=0.12, because="other seeds stay above 0.13")
claim(
    "Total variation of naive SGHMC with the correction step",
    distance["naive SGHMC with correction"],
    at_most=0.02,
    because="it is exact, but rejections correlate its draws",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-chen-1", "caption": "Figure 1 of Chen et al. (2014), computed anew. Left: the double well of the paper. Right: the bowl U = θ²/2, which their code also draws. Naive SGHMC is far too flat; SGHMC cannot be told from HMC by eye. 80,000 samples each."}}
figure, panels = plt.subplots(1, 2, figsize=(8.8, 3.6))
for axes, (title, results), potential, reach in zip(panels, runs.items(), (well, bowl), (2.2, 4.0), strict=True):
    plot_density(axes, potential, -reach, reach)
    for name, run in results.items():
        plot_histogram(axes, run.samples, torch.linspace(-reach, reach, 45), color=COLOURS[name], label=name, lw=1.2)
    axes.set(title=title, xlabel=r"$\theta$", ylabel="density", ylim=(0, None))
panels[0].legend(fontsize=7, loc="upper center")
panels[0].set_ylim(0, 1.0)
plt.show()

# %% [markdown]
# Two remarks on details.
# The authors' published code draws the gradient noise *twice* at each point of a naive trajectory, once for each of the half kicks that meet there, so that a full kick carries half the variance that the text says; ours draws it once.
# With theirs the naive histogram is a little less wrong; nothing else changes.
# And the correction step, which repairs the naive algorithm in principle, costs an evaluation of the energy on *all* the data and rejects the more, the longer the trajectory.

# %%
acceptance = runs["double well"]["naive SGHMC with correction"].statistics["acceptance"].mean()
claim("Mean acceptance of corrected naive trajectories of 50 steps", acceptance, at_most=0.75, because="other seeds give 0.55 to 0.7")
claim(
    "Mean acceptance of exact HMC trajectories of 50 steps",
    runs["double well"]["HMC"].statistics["acceptance"].mean(),
    at_least=0.97,
    because="the energy error is of order ε² = 0.01",
)

# %% [markdown]
# ## Figure 2: the heating of a bowl
#
# Phase space $(\theta, r)$ of $U = \tfrac12\theta^2$, from $(1, 0)$, with $\varepsilon = 0.1$ and $C = 3$; a point after every 50 steps.
# The caption says that the noise is $N(0, 4)$ and that 15,000 steps are shown.
# The published code draws noise of standard deviation $0.5$, variance $0.25$, and 300 points of 50 steps each: 15,000 steps, but sixteen times less noise. We draw both.
#
# The exact dynamics stays on the circle. With noise, the radius grows: each step adds $\varepsilon^2V$ to $E[r^2]$, so $E[\theta^2 + r^2] \approx 1 + k\,\varepsilon^2V$ after $k$ steps.


# %%
def phase_path(noise_variance, chains, resample=False, num_points=300, seed=0):
    """Follow noisy leapfrog from (1, 0); return the points (num_points, chains, 2)."""
    noisy, generator = NoisyGradient(bowl, noise_variance), torch.Generator().manual_seed(seed)
    position, momentum, points = torch.ones(chains, 1), torch.zeros(chains, 1), []
    for _ in range(num_points):
        if resample:
            momentum = torch.randn(chains, 1, generator=generator)
        position, momentum = leapfrog(lambda x: noisy.stochastic_gradient(x, generator), position, momentum, 0.1, 50)
        points.append(torch.cat([position, momentum], -1))
    return torch.stack(points)


def phase_path_with_friction(noise_variance, num_points=300, seed=0):
    """The same with friction, by SGHMC; return the points (num_points, 2)."""
    kernel = SGHMC(0.1, friction=3.0, noise_estimate=0.05 * noise_variance, num_steps=50)
    state = kernel.init(bowl, torch.ones(1, 1), torch.Generator())._replace(momentum=torch.zeros(1, 1))
    noisy, generator, points = NoisyGradient(bowl, noise_variance), torch.Generator().manual_seed(seed), []
    for _ in range(num_points):
        state = kernel.step(noisy, state, generator)
        points.append(torch.cat([state.position, state.momentum], -1)[0].clone())
    return torch.stack(points)


heated = phase_path(4.0, chains=2_000, num_points=30)
radius = heated[-1].pow(2).sum(-1).double()
steps = 30 * 50
claim(
    "Mean of θ² + r² after 1,500 noisy steps with V = 4, relative to 1 + kε²V",
    radius.mean() / (1 + steps * 0.01 * 4),
    near=1,
    within=0.1,
    because="2,000 paths have a standard error of 0.022; leapfrog's own error is 0.3 %",
)
quiet = phase_path(0.25, chains=2_000, num_points=30)[-1].pow(2).sum(-1).mean()
claim(
    "The same with the variance of the published code, V = 0.25",
    quiet / (1 + steps * 0.01 * 0.25),
    near=1,
    within=0.1,
    because="2,000 paths have a standard error of 0.02",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-chen-2", "caption": "Figure 2 of Chen et al. (2014), 300 points of 50 steps. Left: with the variance 4 of its caption. Right: with the variance 0.25 of its published code, which is what the printed figure shows. Without friction the path leaves; resampling the momentum holds it, too wide; friction keeps it where it belongs."}}
figure, panels = plt.subplots(1, 2, figsize=(8.8, 4.2))
circle = torch.linspace(0, 2 * torch.pi, 200)
for axes, variance in zip(panels, (4.0, 0.25), strict=True):
    for name, points, colour, marker in (
        ("noisy", phase_path(variance, 1)[:, 0], COLOURS["naive SGHMC"], "v"),
        ("noisy, momentum resampled", phase_path(variance, 1, resample=True)[:, 0], "black", "o"),
        ("noisy, with friction", phase_path_with_friction(variance), COLOURS["SGHMC"], "s"),
    ):
        axes.plot(*points.T, marker, ms=2.5, lw=0, color=colour, label=name)
    axes.plot(circle.cos(), circle.sin(), color=COLOURS["HMC"], label="exact")
    axes.set(title=f"V = {variance:g}", xlabel=r"$\theta$", ylabel="$r$", aspect="equal")
panels[1].legend(fontsize=7, loc="lower left")
plt.show()

# %% [markdown]
# ## Figure 3: SGHMC against SGLD
#
# The target is Gaussian with unit variances and correlation 0.9, the gradient noise is $N(0, I)$, and both samplers get the right noise estimate: $\hat\beta = \tfrac12\eta V$ for SGHMC, and likewise SGLD injects $2\eta(1 - \tfrac12\eta V)$, as the published code does.
# Five step sizes each, and ten million samples a setting, here 1,000 chains of 10,000.
# Small steps have little bias and much autocorrelation; the question is who pays less for the same error.
# Both chains are linear, so the exact error and the exact autocorrelation time $\tau = 1 + 2\sum_k\rho_k$ are known, and drawn as lines.

# %%
gaussian = Gaussian.correlated(0.9)
noisy = NoisyGradient(gaussian, 1.0)
truth = torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64)
sgld_settings = [0.18 * 0.8**i for i in range(5)]
sghmc_settings = [(0.05, 0.05), (0.018, 0.03), (0.00648, 0.018), (0.0023328, 0.0108), (0.000839808, 0.00648)]


def measure(kernel, seed):
    """Draw ten million samples; return the mean absolute error of the covariance and the autocorrelations (lags,)."""
    start = gaussian.exact_samples(1_000, torch.Generator().manual_seed(seed))
    draws = sample(kernel, noisy, start, num_samples=10_000, warm_up=2_000, seed=seed).samples
    # Summed chain by chain: a sum of ten million numbers in single precision would lose the third digit.
    covariance = (torch.einsum("tci,tcj->cij", draws, draws).double() / len(draws)).mean(0)
    spectrum = torch.fft.rfft(draws.movedim(0, -1), n=2 * len(draws))
    lagged = torch.fft.irfft(spectrum.abs().pow(2).mean((0, 1)))[: len(draws)].double()
    lagged /= torch.arange(len(draws), 0, -1)  # as many products as each lag has
    return float((covariance - truth).abs().mean()), lagged / lagged[0]


def usual_time(correlations, num_lags=1_000):
    """1 + 2 Σ ρ over so many lags that the rest is nothing; ten million samples leave an error of about 1 %."""
    return float(2 * correlations[:num_lags].sum() - 1)


def time_of_published_code(correlations):
    """1 + 2 Σ (1 − k/T) up to the first lag with ρ < 0.05: the lags are counted, not weighted with ρ."""
    end = int((correlations < 0.05).nonzero()[0])
    lags = torch.arange(1, end)
    return float(1 + 2 * (1 - lags / len(correlations)).sum())


precision, first = gaussian.precision.double(), torch.tensor([1.0, 0.0], dtype=torch.float64)


def exact_law(kernel_name, learning_rate, momentum_decay=None):
    """The exact mean absolute error of the covariance, and the exact autocorrelation time."""
    if kernel_name == "SGLD":
        chain = langevin_chain(precision, learning_rate, 1.0, 0.5 * learning_rate)
        direction = first
    else:
        step = learning_rate**0.5
        chain = sghmc_chain(precision, step, momentum_decay / step, 1.0, 0.5 * learning_rate / step)
        direction = torch.cat([first, torch.zeros(2, dtype=torch.float64)])
    error = (chain.stationary_covariance()[:2, :2] - truth).abs().mean()
    return float(error), chain.autocorrelation_time(direction)


measured = {"SGLD": [], "SGHMC": []}
for seed, step in enumerate(sgld_settings):
    measured["SGLD"].append(measure(SGLD(step, noise_estimate=0.5 * step), seed))
for seed, (rate, decay) in enumerate(sghmc_settings):
    measured["SGHMC"].append(measure(SGHMC.from_learning_rate(rate, decay, noise_estimate=0.5 * rate), seed))
exact_points = {
    "SGLD": [exact_law("SGLD", step) for step in sgld_settings],
    "SGHMC": [exact_law("SGHMC", rate, decay) for rate, decay in sghmc_settings],
}

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-chen-3a", "caption": "Figure 3a of Chen et al. (2014): error of the covariance against autocorrelation time, ten million samples a point. Lines: the exact laws of the two discrete chains. Left with the usual definition of the autocorrelation time, right with the sum of the published code, which counts lags instead of weighting them."}}
figure, panels = plt.subplots(1, 2, figsize=(8.8, 3.5), sharey=True)
for name, results in measured.items():
    errors = [error for error, _ in results]
    panels[0].loglog([usual_time(c) for _, c in results], errors, "o", color=COLOURS[name], label=name)
    panels[0].loglog([time for _, time in exact_points[name]], [e for e, _ in exact_points[name]], color=COLOURS[name], lw=1)
    panels[1].loglog([time_of_published_code(c) for _, c in results], errors, "o", color=COLOURS[name])
panels[0].set(title=r"$\tau = 1 + 2\sum\rho_k$", xlabel="autocorrelation time", ylabel="mean absolute error of the covariance")
panels[1].set(title="published code's sum", xlabel="autocorrelation time")
for axes in panels:
    axes.xaxis.set_minor_formatter("")
panels[0].legend()
plt.show()

# %%
for name in measured:
    worst = max(abs(usual_time(c) / time - 1) for (_, c), (_, time) in zip(measured[name], exact_points[name], strict=True))
    claim(
        f"Largest relative difference between measured and exact autocorrelation times of {name}",
        worst,
        at_most=0.2,
        because="ten million samples know a sum over 1,000 lags to about 1 % of the length of the sum over |ρ|",
    )


def sgld_with_error(error):
    """Find by bisection the step at which SGLD's exact error is the given one; return its exact autocorrelation time."""
    low, high = 1e-6, 0.18
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if exact_law("SGLD", middle)[0] < error else (low, middle)
    return exact_law("SGLD", low)[1]


ratios = [time / sgld_with_error(error) for error, time in exact_points["SGHMC"]]
claim(
    "At equal error, SGHMC's autocorrelation time over SGLD's, at all five settings",
    max(ratios),
    at_most=0.1,
    because="exact laws of both chains",
)
most_generous = [
    time_of_published_code(c) / sgld_with_error(e) for (e, _), (_, c) in zip(exact_points["SGHMC"], measured["SGHMC"], strict=True)
]
claim(
    "The same, with the published code's longer sum for SGHMC alone",
    max(most_generous),
    at_most=0.5,
    because="the figure's conclusion does not hang on the definition",
)
worst = max(abs(e / exact - 1) for (e, _), (exact, _) in zip(measured["SGLD"], exact_points["SGLD"], strict=True))
claim(
    "Largest relative difference between measured and exact errors of SGLD",
    worst,
    at_most=0.15,
    because="the Monte Carlo error of the covariance is about 0.003",
)
claim(
    "Largest error of SGHMC, measured with ten million samples",
    max(e for e, _ in measured["SGHMC"]),
    at_most=0.02,
    because="the exact error is at most 0.0074; the rest is Monte Carlo error",
)
counted = time_of_published_code(measured["SGLD"][0][1]) / usual_time(measured["SGLD"][0][1])
claim(
    "The published code's sum over the usual autocorrelation time, SGLD at 0.18",
    counted,
    at_least=1.5,
    because="a lag counts as 1 instead of ρ < 1 until ρ falls below 0.05",
)

# %% [markdown]
# The published sum differs from $\tau$ in two ways. It counts a lag as 1 where $\rho_k$ belongs, and it stops at the first lag with $\rho_k < 0.05$, before the autocorrelation of a swinging chain turns negative.
# Both make SGHMC look slower than it is: its $\rho_k$ falls to $-0.59$. The conclusion of the figure survives the correction; its numbers do not.
# Ten million samples do not resolve SGHMC's error at small steps: there the points leave the exact line by their Monte Carlo error.
# Nor is $\tau$ of the mean the whole story: for $\theta^2$ the negative lobes count as positive, see {doc}`/book/stochastic_gradients/sghmc`.
#
# Figure 3b shows why. SGLD with $\eta = 0.05$ and SGHMC with $(\eta, \alpha) = (0.05, 0.035)$ start at the origin and take 50 steps each.

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-chen-3b", "caption": "Figure 3b of Chen et al. (2014): the first 50 samples. The momentum carries SGHMC along the ridge, where SGLD diffuses."}}
figure, panels = plt.subplots(1, 2, figsize=(7.6, 3.8), sharex=True, sharey=True)
short = {
    "SGLD": SGLD(0.05, noise_estimate=0.025),
    "SGHMC": SGHMC.from_learning_rate(0.05, 0.035, noise_estimate=0.025),
}
for axes, (name, kernel) in zip(panels, short.items(), strict=True):
    trace = sample(kernel, noisy, torch.zeros(1, 2), num_samples=50, seed=4).samples[:, 0]
    plot_contours(axes, gaussian, -3.2, 3.2)
    axes.plot(*trace.T, "o-", ms=3, lw=0.8, color=COLOURS[name])
    axes.set(title=name, xlabel=r"$\theta_1$")
panels[0].set_ylabel(r"$\theta_2$")
plt.show()

# %%
many = {name: sample(kernel, noisy, torch.zeros(4_000, 2), num_samples=50, seed=5).samples for name, kernel in short.items()}
reach = {name: draws[..., 0].amax(0) - draws[..., 0].amin(0) for name, draws in many.items()}
difference = reach["SGHMC"] - reach["SGLD"]
claim(
    "Over 50 steps SGHMC covers more of the first axis than SGLD, on average by at least",
    difference.mean(),
    at_least=0.3,
    because="the mean over 4,000 pairs of runs has a standard error below 0.03",
)

# %% [markdown]
# ## In practice
#
# * Put the floor beside every distance between a histogram and a density; without it a number such as 0.011 says nothing.
# * Where an exact law is known, draw it under the measured points. It finds mistakes in both.
# * When a figure cannot be reproduced from its caption, look for the code that drew it, and say which of the two you followed.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-floor
#
# Derive the floor: the expected total-variation distance between a histogram of $n$ independent draws and its own density, for bins of small probability.
# ```
#
# ```{solution} ex-floor
# :class: dropdown
#
# The count of a bin is nearly normal with variance $np(1-p)$, and $E\lvert N(0, \sigma^2)\rvert = \sigma\sqrt{2/\pi}$. So the expectation is $\tfrac12\sum_k\sqrt{2p_k(1-p_k)/(\pi n)}$.
# ```
#
# ```{exercise}
# :label: ex-half-kicks
#
# Show that drawing the noise afresh for each half kick halves the rate at which the energy grows in Figure 2.
# ```
#
# ```{solution} ex-half-kicks
# :class: dropdown
#
# Two independent half kicks add the variance $2(\varepsilon/2)^2V = \tfrac12\varepsilon^2V$ to the momentum, one full kick $\varepsilon^2V$.
# ```
#
# ```{exercise}
# :label: ex-figure-three
#
# Give SGLD a preconditioner: sample in the coordinates in which the target is isotropic. What is left of SGHMC's advantage in Figure 3?
# ```
#
# ```{solution} ex-figure-three
# :class: dropdown
#
# The advantage of momentum grows with the square root of the condition number, here 19. With condition number one, SGLD with a step of order one mixes in a few steps too, and the advantage is a constant.
# ```
#
# ## Further reading
#
# {cite:t}`chen2014`; for the definition of the autocorrelation time and its estimation {cite:t}`hoffman2014` and {cite:t}`vehtari2021`.
