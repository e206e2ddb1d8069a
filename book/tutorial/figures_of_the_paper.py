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
# Level: second course · Reading: about 60 minutes, without the exercises · Running: about 15 seconds
# ```
#
# The paper that introduced SGHMC makes its case in three small figures; here they are again, computed, measured, and in two places corrected.
#
# **You will learn** to
#
# * read the figures of {cite:t}`chen2014` as statements about numbers, and check them,
# * compare a histogram with a density, and know how well even exact draws would do,
# * tell what a published figure shows from what its caption says.
#
# **You will need** {doc}`/book/tutorial/sghmc`, and its formulas for Gaussian targets.

# %%
import matplotlib.pyplot as plt
import torch

from booklib.claims import claim
from booklib.diagnostics import (
    bin_probabilities,
    inverse_transform_samples,
    total_variation,
)
from booklib.figures import (
    COLOURS,
    TRUTH,
    plot_contours,
    plot_density,
    plot_histogram,
    use_style,
)
from booklib.play import play
from booklib.tables import show_table
from sgmc import sample
from sgmc.integrators import leapfrog
from sgmc.kernels import HMC, SGHMC, SGLD, NaiveSGHMC
from sgmc.splittings import (
    LinearChain,
    flows,
    langevin_chain,
    linear_chain,
    naive_sghmc_chain,
    sghmc_chain,
)
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## Figure 1: five samplers, one double well
#
# The target is a *double well*, $U = -2\theta^2 + \theta^4$: two valleys at $\theta = \pm1$ and a barrier at $0$.
# Three of the samplers do not see its gradient, but $\nabla U + N(0, 4)$.
# The step is $\varepsilon = 0.1$, the friction $C = 3$ and $\hat B = \tfrac12\varepsilon V = 0.2$; 50 steps lie between two of the 80,000 samples, and everything starts at $0$.
# Five samplers are compared:
#
# * *HMC* and *HMC without correction* see the exact gradient, with and without the step that accepts or rejects;
# * *naive SGHMC*, with and without that step, puts the noisy gradient into HMC ({doc}`/book/tutorial/naive_sghmc`);
# * *SGHMC* has friction, and a fresh momentum before each sample, as in the authors' published code {cite:p}`chencode`.
#
# The published code draws the same for the *bowl* $U = \tfrac12\theta^2$.
# The paper runs one long chain.
# We run 800 chains of 100 samples each, after 10 that are thrown away; they have the same stationary law, and together the same number of samples.
#
# How good can 80,000 samples be?
# Cut the line into bins of width 0.1.
# Let $p_k$ be the probability of bin $k$, and $\hat p_k$ the share of the samples in it.
# The *total-variation distance* $\tfrac12\sum_k\lvert\hat p_k - p_k\rvert$ is the share of the samples that would have to move to another bin to make everything right.
# Even $N$ independent draws from the target itself do not reach zero.
# On average their distance is about
#
# $$
# \frac12\sum_k\sqrt{\frac{2\,p_k(1 - p_k)}{\pi N}},
# $$ (eq-tv-floor)
#
# which {ref}`ex-floor` derives.
# We call it the *floor*: no sampler of $N$ independent draws does better.
# Exact draws we get by inverting the distribution function.

# %%
edges = torch.linspace(-2.5, 2.5, 51)
well, bowl = DoubleWell(), Gaussian.standard(1)
probabilities = bin_probabilities(well, edges)
generator = torch.Generator().manual_seed(0)
exact = inverse_transform_samples(well, 8 * 80_000, -3, 3, generator)
of_exact = [total_variation(x, probabilities, edges) for x in exact.split(80_000)]
floor = float(
    (2 * probabilities * (1 - probabilities) / (torch.pi * 80_000)).sqrt().sum() / 2
)

# %% tags=["hide-input"]
claim(
    "The floor of 80,000 exact draws",
    floor,
    near=0.0079,
    within=5e-5,
    because="the formula with the exact probabilities of the bins",
    kind="exact",
)
claim(
    "Total variation of 80,000 exact draws from their own density, over that floor, "
    "mean of eight",
    sum(of_exact) / 8 / floor,
    near=1,
    within=0.35,
    because=(
        "some 30 bins matter, each with a relative spread of 0.76: seven times "
        "0.76/√240 is 0.34"
    ),
)

# %% [markdown]
# The distance of one run is itself random.
# So each sampler has eight such runs, side by side, and we claim the mean of the eight distances.

# %%
samplers = {
    "HMC": HMC(0.1, 50),
    "HMC without correction": HMC(0.1, 50, metropolis=False),
    "naive SGHMC with correction": NaiveSGHMC(0.1, 50, metropolis=True),
    "naive SGHMC": NaiveSGHMC(0.1, 50),
    "SGHMC": SGHMC(
        0.1, friction=3.0, noise_estimate=0.2, num_steps=50, resample_every=1
    ),
}


def figure_one(potential, name, times=8):
    """Draw some times 80,000 samples, from chains 0 to 799, 800 to 1,599 and so on."""
    return sample(
        samplers[name],
        NoisyGradient(potential, 4.0),
        torch.zeros(800 * times, 1),
        num_samples=100,
        warm_up=10,
        seed=0,
    )


runs = {
    "double well": {name: figure_one(well, name) for name in samplers},
    "bowl": {name: figure_one(bowl, name, times=4) for name in samplers},
}
distance = {
    name: sum(
        total_variation(one_run, probabilities, edges)
        for one_run in run.samples.split(800, dim=1)
    )
    / 8
    for name, run in runs["double well"].items()
}

# %% [markdown]
# Only naive SGHMC without its correction step is far off.
# The four others lie less than 0.009 above the floor.

# %% tags=["hide-input"]
for name, expected, within, reason in (
    ("HMC", 0.01, 0.0045, "its draws repeat each other a little"),
    ("HMC without correction", 0.011, 0.0035, "the step has a bias of 0.005"),
    ("SGHMC", 0.0103, 0.0038, "the step has a bias of 0.007"),
    (
        "naive SGHMC with correction",
        0.0127,
        0.0035,
        "it is exact, but rejections correlate its draws",
    ),
    ("naive SGHMC", 0.143, 0.0045, "single runs spread by 0.002"),
):
    claim(
        f"Total variation of {name}, mean of eight runs",
        distance[name],
        near=expected,
        within=within,
        because=f"the floor is 0.008; {reason}",
    )

# %% [markdown]
# In the bowl everything is linear, and the variances of the two noisy samplers without a correction are known exactly.
# Naive SGHMC's is {eq}`eq-naive-variance`.
# For SGHMC, write down what happens between two samples as a list of moves, the fresh momentum and then 50 times the flows of a step, and `linear_chain` solves for its law.

# %%
one_draw = [
    flows.refresh_flow(),
    *flows.sghmc(0.1, friction=3.0, noise_estimate=0.2) * 50,
]
exact_variance = {
    "naive SGHMC": naive_sghmc_chain(
        torch.eye(1), 0.1, 50, noise_variance=4.0
    ).stationary_covariance()[0, 0],
    "SGHMC": linear_chain(
        one_draw, torch.eye(1), noise_variance=4.0
    ).stationary_covariance()[0, 0],
}

# %% tags=["hide-input"]
for name, variance in exact_variance.items():
    value, error = runs["bowl"][name].mean_and_standard_error(lambda x: x**2)
    claim(
        f"Variance of {name} in the bowl, where 1 is right",
        value,
        near=round(float(variance), 4),
        standard_error=error,
        because="exact law of the linear chain; 3,200 chains",
    )

# %% mystnb={"figure": {"caption": "Figure 1 of Chen et al. (2014), computed anew; 80,000 samples each. Left: the double well of the paper. Right: the bowl. Top row: densities. Rows below: histogram less density for each sampler that the eye cannot tell from the truth; with exact draws two thirds of the bins would lie in the grey band.", "name": "fig-chen-1"}, "image": {"alt": "Two columns of five small panels. In the top panels the density of naive SGHMC is lower and wider than the true one, and SGHMC lies on the truth. In the other panels the differences of HMC, HMC without correction, corrected naive SGHMC and SGHMC from the truth stay near a narrow grey band."}} tags=["hide-input"]
figure, panels = plt.subplots(
    5, 2, figsize=(5.4, 7.4), height_ratios=(2.2, 1, 1, 1, 1), sharex="col"
)
for column, (title, potential, reach) in enumerate(
    (("double well", well, 2.2), ("bowl", bowl, 4.0))
):
    top = panels[0, column]
    bins = torch.linspace(-reach, reach, 45)
    width = float(bins[1] - bins[0])
    middles, share = (bins[1:] + bins[:-1]) / 2, bin_probabilities(potential, bins)
    band = (share * (1 - share) / 80_000).sqrt() / width
    plot_density(top, potential, -reach, reach)
    rows = iter(panels[1:, column])
    for name, run in runs[title].items():
        draws = run.samples[:, :800]
        if "SGHMC" in name and "correction" not in name:
            plot_histogram(top, draws, bins, color=COLOURS[name], label=name, lw=1.2)
        if name == "naive SGHMC":
            continue
        axes = next(rows)
        axes.fill_between(middles, -band, band, color=TRUTH, alpha=0.35, lw=0)
        frequencies = torch.histogram(draws.flatten(), bins).hist / 80_000
        axes.plot(middles, (frequencies - share) / width, color=COLOURS[name], lw=1.2)
        axes.set(ylim=(-0.045, 0.045), yticks=(-0.03, 0, 0.03))
        axes.set_title(name, fontsize=9, loc="left", pad=2)
    top.set(title=title, ylim=(0, None))
    panels[-1, column].set_xlabel(r"$\theta$")
panels[0, 0].set_ylabel("density")
panels[2, 0].set_ylabel("histogram less density", y=0)
figure.legend(
    *panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3
)
plt.show()

# %% [markdown]
# The top row of {numref}`fig-chen-1` is the paper's figure: naive SGHMC is too flat and too wide, SGHMC lies on the truth.
# The rows below magnify what is left of the other four; it is somewhat more than chance alone would leave.
# On the double well no step size gives SGHMC a stationary law: its gradient grows too fast, and in the end every chain escapes.
# At $\varepsilon = 0.1$ nobody will see it; {doc}`/book/further/how_far_it_holds` has the rates.
#
# Why then not correct the naive sampler?
# Its correction step needs the energy of *all* the data, which is what minibatches were to save.
# And it rejects four of ten trajectories here, where HMC rejects hardly any.
# {doc}`/book/tutorial/naive_sghmc` shows that longer trajectories are rejected more often.
#
# A detail of the published code makes its naive sampler look better than it is.
# A leapfrog trajectory has half kicks at its ends; two half kicks that meet between two drifts are one full kick.
# The published code draws the gradient noise *afresh* for each of the two halves.
# Two independent half kicks carry the variance $2(\varepsilon/2)^2V$, half of the $\varepsilon^2V$ that one full kick carries and that the text of the paper assumes.
# So the naive sampler of the published figures is heated at half the rate.
# It is still wrong, only less so.


# %%
def noisy_trajectory(noisy, position, momentum, generator, fresh_half_kicks=False):
    """Fifty noisy leapfrog steps; with ``fresh_half_kicks`` the noise of every half
    kick is drawn afresh, as in the published code."""

    def gradient(position):
        return noisy.stochastic_gradient(position, generator)

    if not fresh_half_kicks:
        return leapfrog(gradient, position, momentum, 0.1, 50)
    for _ in range(50):
        position, momentum = leapfrog(gradient, position, momentum, 0.1, 1)
    return position, momentum


noisy_well, generator = NoisyGradient(well, 4.0), torch.Generator().manual_seed(0)
position, published = torch.zeros(8_000, 1), []
for _ in range(20):
    momentum = torch.randn(8_000, 1, generator=generator)
    position, _ = noisy_trajectory(
        noisy_well, position, momentum, generator, fresh_half_kicks=True
    )
    published.append(position)
halved = total_variation(torch.stack(published[10:]), probabilities, edges)

# %% tags=["hide-input"]
claim(
    "Total variation of naive SGHMC with fresh half kicks, over that with full kicks",
    halved / distance["naive SGHMC"],
    near=0.69,
    within=0.11,
    because="0.65 to 0.72 over ten seeds",
)
claim(
    "Mean acceptance of corrected naive trajectories of 50 steps",
    runs["double well"]["naive SGHMC with correction"].statistics["acceptance"].mean(),
    near=0.57,
    within=0.03,
    because="other seeds give 0.568 to 0.573",
)
claim(
    "Mean acceptance of exact HMC trajectories of 50 steps",
    runs["double well"]["HMC"].statistics["acceptance"].mean(),
    at_least=0.97,
    because="the energy error is of order ε² = 0.01",
)

# %% [markdown]
# ## Figure 2: the heating of a bowl
#
# The second figure is a picture of phase space: position $\theta$ to the right, momentum $r$ upwards.
# The energy is that of the bowl, $U = \tfrac12\theta^2$.
# The path starts at $(1, 0)$ with $\varepsilon = 0.1$ and, where there is friction, $C = 3$; a point is drawn after every 50 steps, 300 points or 15,000 steps in all.
# The caption says that the noise is $N(0, 4)$.
# The published code draws noise of *standard deviation* $0.5$, that is of variance $0.25$: a sixteenth.
# And it draws it afresh for every half kick, which halves the heat again: a 32nd in all.
# We draw both.
#
# The exact dynamics stays on the circle.
# With noise the radius grows: each step adds $\varepsilon^2V$ to $E[r^2]$, and the rotation shares it between $r$ and $\theta$.
# So after $k$ steps
#
# $$
# E[\theta^2 + r^2] \approx 1 + k\,\varepsilon^2V,
# $$ (eq-heated-radius)
#
# which is 601 after 15,000 steps with $V = 4$, and about 20 with the noise of the published code.
# A fresh momentum before every 50 steps is naive SGHMC: its momentum forgets the heat, its position does not.
# Friction holds both near $E[\theta^2] = E[r^2] = 1$.


# %%
def phase_path(
    noise_variance,
    chains=1,
    resample=False,
    fresh_half_kicks=False,
    num_points=300,
    seed=0,
):
    """Follow noisy leapfrog from (1, 0); return the points (num_points, chains, 2)."""
    noisy, generator = (
        NoisyGradient(bowl, noise_variance),
        torch.Generator().manual_seed(seed),
    )
    position, momentum, points = torch.ones(chains, 1), torch.zeros(chains, 1), []
    for _ in range(num_points):
        if resample:
            momentum = torch.randn(chains, 1, generator=generator)
        position, momentum = noisy_trajectory(
            noisy, position, momentum, generator, fresh_half_kicks
        )
        points.append(torch.cat([position, momentum], -1))
    return torch.stack(points)


# %% tags=["hide-input"]
def phase_path_with_friction(noise_variance, chains=1, num_points=300, seed=0):
    """The same with friction, by SGHMC."""
    noisy, generator = (
        NoisyGradient(bowl, noise_variance),
        torch.Generator().manual_seed(seed),
    )
    kernel = SGHMC(
        0.1, friction=3.0, noise_estimate=0.05 * noise_variance, num_steps=50
    )
    state = kernel.init(noisy, torch.ones(chains, 1), generator)._replace(
        momentum=torch.zeros(chains, 1)
    )
    points = []
    for _ in range(num_points):
        state, _ = kernel.step(noisy, state, generator)
        points.append(torch.cat([state.position, state.momentum], -1))
    return torch.stack(points)


# %%
exact_path = phase_path(0.0)[:, 0].norm(dim=-1)
heated = {
    "V = 4": (phase_path(4.0, 10_000, num_points=15), 1 + 0.99 * 750 * 0.01 * 4),
    "the noise of the published code": (
        phase_path(0.25, 10_000, fresh_half_kicks=True, num_points=15),
        1 + 0.5 * 750 * 0.01 * 0.25,
    ),
}

# %%
kept_momentum = sghmc_chain(
    torch.eye(1), 0.1, 3.0, noise_variance=4.0, noise_estimate=0.2
)
settled = {
    "momentum resampled": (
        phase_path(4.0, 4_000, resample=True, num_points=20)[-1, :, 0],
        float(exact_variance["naive SGHMC"]),
    ),
    "with friction": (
        phase_path_with_friction(4.0, 4_000, num_points=20)[-1, :, 0],
        float(kept_momentum.stationary_covariance()[0, 0]),
    ),
}

# %% mystnb={"figure": {"caption": "Figure 2 of Chen et al. (2014), 300 points of 50 steps. Top left: with the variance 4 of its caption. Top right: the same, its centre enlarged. Bottom: with the noise of the published code, which drew the printed figure.", "name": "fig-chen-2"}, "image": {"alt": "Three phase planes. With V = 4 the points without friction spread far beyond the unit circle; in the enlarged centre the points with resampled momenta fill a wide ellipse, and those with friction a smaller disc around the circle. With the noise of the published code the points without friction spread further than those with friction."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 2, figsize=(5.4, 5.6))
circle = torch.linspace(0, 2 * torch.pi, 200)
*planes, corner = panels.flat
for axes, title, variance, fresh, reach in zip(
    planes,
    ("$V = 4$", "$V = 4$, enlarged", "noise of the published code"),
    (4.0, 4.0, 0.25),
    (False, False, True),
    (36, 6, 6),
    strict=True,
):
    for name, points, colour, marker in (
        ("noisy", phase_path(variance, fresh_half_kicks=fresh), "black", "v"),
        (
            "noisy, momentum resampled",
            phase_path(variance, resample=True, fresh_half_kicks=fresh),
            COLOURS["naive SGHMC"],
            "o",
        ),
        (
            "noisy, with friction",
            phase_path_with_friction(variance),
            COLOURS["SGHMC"],
            "s",
        ),
    ):
        axes.plot(*points[:, 0].T, marker, ms=2.5, lw=0, color=colour, label=name)
    axes.plot(circle.cos(), circle.sin(), color=COLOURS["HMC"], label="exact dynamics")
    axes.set(aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach), title=title)
    axes.set(xlabel=r"$\theta$", ylabel="$r$")
corner.axis("off")
corner.legend(*planes[0].get_legend_handles_labels(), loc="center", markerscale=2)
plt.show()

# %% [markdown]
# {numref}`fig-chen-2` shows it: without friction the path leaves; resampling the momentum holds it, but too wide; friction keeps it where it should be.
# The printed figure is the panel at the bottom, not the one that its caption describes.

# %% tags=["hide-input"]
claim(
    "Largest distance of the exact dynamics from the circle, 15,000 leapfrog steps",
    (exact_path - 1).abs().max(),
    at_most=0.002,
    because="leapfrog keeps r² + (1 − ε²/4)θ², so the radius moves by ε²/8 = 0.00125",
    kind="exact",
)
for label, (path, expected) in heated.items():
    claim(
        f"Mean of θ² + r² after 750 noisy steps over its formula, {label}",
        path[-1].pow(2).sum(-1).mean() / expected,
        near=1,
        within=0.06,
        because=(
            "1 + kε²V, less what half kicks lack; 10,000 paths have a standard error "
            "of 0.01"
        ),
    )

# %% tags=["hide-input"]
for label, (theta, variance) in settled.items():
    squares = theta.double() ** 2
    claim(
        f"Mean of θ² after 1,000 noisy steps, V = 4, {label}",
        squares.mean(),
        near=round(variance, 4),
        standard_error=squares.std() / len(squares) ** 0.5,
        because="exact stationary law; 4,000 paths",
    )

# %% [markdown]
# ## Figure 3: SGHMC against SGLD
#
# The target is Gaussian with unit variances and correlation 0.9, the gradient noise is $N(0, I)$, and both samplers get the right noise estimate: $\hat\beta = \tfrac12\eta V$ for SGHMC, and likewise SGLD injects noise of variance $2\eta(1 - \tfrac12\eta V)$, as the published code does.
# Each sampler has five step sizes, and five million samples a setting, here 1,250 chains of 4,000.
# The largest curvature is $1/(1 - 0.9) = 10$, so SGLD explodes at $\eta = 0.2$; its first setting, 0.18, is close.
#
# With small steps the {term}`bias` is small, but successive samples hardly differ.
# The question is who pays less for the same error, so the figure has an error upwards and a price to the right.
#
# *The error* is that of the covariance, averaged over its four entries.
#
# *The price* is the {term}`autocorrelation time` $\tau = 1 + 2\sum_k\rho_k$ of a coordinate, from {eq}`eq-tau`.
# An average over $S$ samples is as good as one over $S/\tau$ independent draws, so $\tau$ samples pay for one.
# Each lag counts by its correlation $\rho_k$: a chain that has half forgotten where it was pays half of that lag, and a chain that swings to the other side, where $\rho_k < 0$, gets something back.
# SGHMC swings, so how these terms are counted decides the comparison.
#
# Both chains are linear, so error and price are known exactly ({prf:ref}`thm-linear-tau`).
#
# The published code takes the price from a formula of {cite:t}`hoffman2014`, $1 + 2\sum_k(1 - k/K)\rho_k$ for $K$ samples, up to the first lag at which $\rho_k < 0.05$.
# But in its sum the factor $\rho_k$ is missing.
# It adds up $(1 - k/K)$, which is nearly 1, and so it counts lags instead of weighting them: a lag with $\rho_k = 0.1$ costs as much as one with $\rho_k = 0.9$.
# And because it stops at the first $\rho_k < 0.05$, it never sees what a swing gives back.
# (It also takes $\rho_k$ for the average of its two neighbours, and divides the covariances by the target's variance instead of the chain's; our version does both, with the target's variance of 1.)
#
# Here are the two sums; the code that runs the chains is folded below them.


# %%
def usual_time(autocovariances, memory):
    """1 + 2 Σ ρ over eight times the memory of the chain, the number of steps in
    which a bad start falls by 1/e."""
    return float(
        2 * autocovariances[: round(8 * memory)].sum() / autocovariances[0] - 1
    )


def time_of_published_code(autocovariances):
    """1 + 2 Σ (1 − k/K) up to the first lag at which the autocorrelation falls below
    0.05: the lags are counted."""
    smoothed = 0.5 * (autocovariances[:-2] + autocovariances[2:])
    lags = torch.arange(1, int((smoothed < 0.05).nonzero()[0]) + 1)
    return float(1 + 2 * (1 - lags / 5_000_000).sum())


# %% tags=["hide-input"]
gaussian = Gaussian.correlated(0.9)
noisy = NoisyGradient(gaussian, 1.0)
truth = torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64)
sgld_settings = [0.18 * 0.8**i for i in range(5)]
sghmc_settings = [
    (0.05, 0.05),
    (0.018, 0.03),
    (0.00648, 0.018),
    (0.0023328, 0.0108),
    (0.000839808, 0.00648),
]


def measure(kernel, seed):
    """Draw five million samples; return the mean absolute error of the covariance and
    the autocovariances (lags,)."""
    start = gaussian.exact_samples(1_250, torch.Generator().manual_seed(seed))
    draws = sample(
        kernel, noisy, start, num_samples=4_000, warm_up=500, seed=seed
    ).samples
    # Summed chain by chain: a sum of five million numbers in single precision would
    # lose the third digit.
    covariance = (
        torch.einsum("tci,tcj->cij", draws, draws).double() / len(draws)
    ).mean(0)
    power = 0.0
    for few in draws.split(100, dim=1):  # chains, whose spectra fit into a cache
        spectrum = torch.fft.rfft(few.movedim(0, -1), n=2 * len(draws))
        power += torch.view_as_real(spectrum).square().sum((0, 1, -1)).double()
    lagged = torch.fft.irfft(power / draws[0].numel())[: len(draws)]
    lagged /= torch.arange(len(draws), 0, -1)  # as many products as each lag has
    return float((covariance - truth).abs().mean()), lagged


def memory_of(chain):
    """The number of steps in which a bad start of the chain falls by 1/e."""
    return float(-1 / torch.linalg.eigvals(chain.transition.double()).abs().max().log())


precision, first = (
    gaussian.precision.double(),
    torch.tensor([1.0, 0.0], dtype=torch.float64),
)


def exact_chain(kernel_name, learning_rate, momentum_decay=None):
    """The linear chain of a setting, and the direction of θ₁ in it."""
    if kernel_name == "SGLD":
        return langevin_chain(precision, learning_rate, 1.0, 0.5 * learning_rate), first
    step = learning_rate**0.5
    chain = sghmc_chain(
        precision, step, momentum_decay / step, 1.0, 0.5 * learning_rate / step
    )
    return chain, torch.cat([first, torch.zeros(2, dtype=torch.float64)])


def exact_error(chain):
    """The exact mean absolute error of the covariance."""
    return float((chain.stationary_covariance()[:2, :2] - truth).abs().mean())


kernels = {
    "SGLD": [SGLD(step, noise_estimate=0.5 * step) for step in sgld_settings],
    "SGHMC": [
        SGHMC.from_learning_rate(rate, decay, noise_estimate=0.5 * rate)
        for rate, decay in sghmc_settings
    ],
}
exact_chains = {
    "SGLD": [exact_chain("SGLD", step) for step in sgld_settings],
    "SGHMC": [exact_chain("SGHMC", rate, decay) for rate, decay in sghmc_settings],
}
measured = {
    name: [measure(kernel, seed) for seed, kernel in enumerate(settings)]
    for name, settings in kernels.items()
}
errors = {name: [error for error, _ in results] for name, results in measured.items()}
times = {
    name: [
        usual_time(c, memory_of(chain))
        for (_, c), (chain, _) in zip(results, exact_chains[name], strict=True)
    ]
    for name, results in measured.items()
}
published_times = {
    name: [time_of_published_code(c) for _, c in results]
    for name, results in measured.items()
}
exact_errors = {
    name: [exact_error(chain) for chain, _ in chains]
    for name, chains in exact_chains.items()
}
exact_times = {
    name: [chain.autocorrelation_time(direction) for chain, direction in chains]
    for name, chains in exact_chains.items()
}

# %% mystnb={"figure": {"caption": "Figure 3a of Chen et al. (2014): error of the covariance against autocorrelation time, five million samples a point. Lines: the exact laws of the two discrete chains. Above with the usual definition of the autocorrelation time, below with the sum of the published code, which counts lags instead of weighting them.", "name": "fig-chen-3a"}, "image": {"alt": "Two panels, one above the other, of error against autocorrelation time on logarithmic axes. In both, the points of SGHMC lie below those of SGLD. In the upper one the points of SGLD lie on its exact line; those of SGHMC leave theirs where the error is small. In the lower one all points stand further to the right."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 1, figsize=(5.0, 6.6))
for name, marker in zip(kernels, "so", strict=True):
    panels[0].loglog(
        times[name], errors[name], marker, ms=5, color=COLOURS[name], label=name
    )
    panels[0].loglog(exact_times[name], exact_errors[name], color=COLOURS[name], lw=1)
    panels[1].loglog(
        published_times[name], errors[name], marker, ms=5, color=COLOURS[name]
    )
panels[0].set(
    title=r"$\tau = 1 + 2\sum\rho_k$",
    xlabel="autocorrelation time",
)
panels[1].set(title="sum of the published code", xlabel="autocorrelation time")
for axes, ticks in zip(panels, ((3, 5, 10, 20, 50), (20, 50, 100, 200)), strict=True):
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set(ylabel="error of the covariance")
figure.legend(
    *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2
)
plt.show()

# %% [markdown]
# In {numref}`fig-chen-3a` SGHMC stands below SGLD: it has less error for the same price, by either sum.
# The points of SGLD lie on its exact line.
# Those of SGHMC leave theirs where the error is small: even five million samples do not resolve it, and the points lie where chance puts them.
# By the sum of the published code, in the lower panel, all points stand further to the right.
# There SGLD's are the printed ones; SGHMC's are printed at two thirds of these times, as if its learning rates had been twice those of the code ({doc}`/book/appendix/errata`).

# %% tags=["hide-input"]
for name, bound, reason in (
    ("SGLD", 0.07, "five million samples know it to about 1.5 %"),
    (
        "SGHMC",
        0.3,
        "five million samples know it to about 7 %, because swings that cancel in the "
        "sum do not cancel in its error",
    ),
):
    claim(
        "Largest relative difference between measured and exact autocorrelation "
        f"times of {name}",
        max(
            abs(time / exact - 1)
            for time, exact in zip(times[name], exact_times[name], strict=True)
        ),
        at_most=bound,
        because=reason,
    )
claim(
    "Largest difference between measured and exact errors of SGLD",
    max(
        abs(error - exact)
        for error, exact in zip(errors["SGLD"], exact_errors["SGLD"], strict=True)
    ),
    at_most=0.003,
    because="other seeds stay below 0.001",
)
claim(
    "Largest error of SGHMC, measured with five million samples",
    max(errors["SGHMC"]),
    at_most=0.035,
    because=(
        "the exact error is at most 0.0074; the rest is Monte Carlo error, whose "
        "standard deviation is up to 0.009"
    ),
)
claim(
    "The published code's sum over the usual autocorrelation time, SGLD at 0.18",
    published_times["SGLD"][0] / times["SGLD"][0],
    near=4.5,
    within=0.4,
    because=(
        "a lag counts as 1 instead of ρ < 1 until ρ falls below 0.05; other seeds "
        "give 4.4 to 4.6"
    ),
)

# %% [markdown]
# To put a number on that, take for each setting of SGHMC the step of SGLD that has exactly the same error, and divide their times.
# Both chains are linear, so this is arithmetic, without any draw.
# The table has the five settings: the error, and the exact times of both samplers at this error, for $\theta_1$ and for $\theta_1^2$.


# %%
def sgld_with_error(error):
    """Find by bisection the step at which SGLD's exact error is the given one;
    return its chain."""
    low, high = 1e-6, 0.18
    for _ in range(60):
        middle = (low + high) / 2
        if exact_error(exact_chain("SGLD", middle)[0]) < error:
            low = middle
        else:
            high = middle
    return exact_chain("SGLD", low)[0]


def time_of_square(chain, direction):
    """The exact autocorrelation time of a squared coordinate of a Gaussian chain, 1
    + 2 Σ ρ², by Σ FᵏΣccᵀΣ(Fᵏ)ᵀ, which is the covariance of a linear chain too."""
    direction = direction.double()
    covariances = chain.stationary_covariance() @ direction
    squares = LinearChain(chain.transition, torch.outer(covariances, covariances))
    summed = direction @ squares.stationary_covariance() @ direction
    return float(2 * summed / (direction @ covariances) ** 2 - 1)


rivals = [sgld_with_error(error) for error in exact_errors["SGHMC"]]
rival_times = [chain.autocorrelation_time(first) for chain in rivals]
ratios = [
    time / rival for time, rival in zip(exact_times["SGHMC"], rival_times, strict=True)
]
times_of_squares = [time_of_square(*chain) for chain in exact_chains["SGHMC"]]
ratios_of_squares = [
    time / time_of_square(rival, first)
    for time, rival in zip(times_of_squares, rivals, strict=True)
]
lowest = min(
    float(chain.autocorrelation(direction, 500).min())
    for chain, direction in exact_chains["SGHMC"]
)

# %% tags=["hide-input"]
show_table(
    ["η, α of SGHMC", "error", "τ of θ₁", "SGLD's", "τ of θ₁²", "SGLD's"],
    [
        [
            f"{rate:.2g}, {decay:.2g}",
            f"{error:.2g}",
            *(f"{x:.1f}" if x < 100 else f"{x:,.0f}" for x in (time, rival)),
            *(f"{x:.1f}" if x < 100 else f"{x:,.0f}" for x in (square, square / ratio)),
        ]
        for (rate, decay), error, time, rival, square, ratio in zip(
            sghmc_settings,
            exact_errors["SGHMC"],
            exact_times["SGHMC"],
            rival_times,
            times_of_squares,
            ratios_of_squares,
            strict=True,
        )
    ],
)

# %% [markdown]
# In every row the times of SGLD are far longer than those of SGHMC beside them; for $\theta_1$ nearly forty times as long, and more at smaller steps.
#
# The published sum makes all chains look slower than they are, and SGHMC more than SGLD: it stops before the autocorrelation of a swinging chain turns negative, down to $-0.59$.
# The conclusion of the figure survives the correction, and becomes stronger; its numbers do not.
#
# A warning about reading the figure: $\tau$ of $\theta$ is not the time that the error of a *covariance* feels.
# A covariance is an average of products, and the autocorrelation of a product of Gaussian coordinates is a square: where that of $\theta$ is negative, it is positive ({doc}`/book/tutorial/sghmc`).
# By this measure SGHMC's time is more than five times as long, as the last two columns of the table show.
# It is still ahead, at equal error by a factor of three and a half at the largest step and of twenty-seven at the smallest.

# %% tags=["hide-input"]
claim(
    "At equal error, SGHMC's autocorrelation time over SGLD's, largest of five",
    max(ratios),
    near=0.026,
    within=0.001,
    because="exact laws of both chains, at the largest step",
    kind="exact",
)
claim(
    "The same, with the published code's longer sum for SGHMC alone",
    max(
        time / rival
        for time, rival in zip(published_times["SGHMC"], rival_times, strict=True)
    ),
    at_most=0.3,
    because=(
        "the figure's conclusion does not hang on the definition: other seeds give 0.15"
    ),
)
claim(
    "SGHMC's autocorrelation time of θ₁² over that of θ₁, smallest of five settings",
    min(
        square / time
        for square, time in zip(times_of_squares, exact_times["SGHMC"], strict=True)
    ),
    at_least=5,
    because="exact laws",
    kind="exact",
)
for which, ratio, expected in (
    ("largest", ratios_of_squares[0], 0.29),
    ("smallest", ratios_of_squares[-1], 0.037),
):
    claim(
        "At equal error, SGHMC's autocorrelation time of θ₁² over SGLD's, at the "
        f"{which} step",
        ratio,
        near=expected,
        within=0.02 * expected,
        because="exact laws of both chains",
        kind="exact",
    )
claim(
    "Smallest autocorrelation of SGHMC, over all lags and settings",
    lowest,
    near=-0.587,
    within=0.001,
    because="exact law",
    kind="exact",
)

# %% [markdown]
# Figure 3b of the paper shows why.
# SGLD with $\eta = 0.05$ and SGHMC with $(\eta, \alpha) = (0.05, 0.035)$ start at the origin and take 50 steps each.

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

# %% [markdown]
# In {numref}`fig-chen-3b` the momentum carries SGHMC on in the direction in which it moves, where SGLD changes its direction at every step.
# One walk of each proves little, so we take 4,000 and compare how much of the first axis they cover.

# %%
many = {
    name: sample(kernel, noisy, torch.zeros(4_000, 2), num_samples=50, seed=5).samples
    for name, kernel in short.items()
}
reach = {
    name: draws[..., 0].amax(0) - draws[..., 0].amin(0) for name, draws in many.items()
}
difference = reach["SGHMC"] - reach["SGLD"]

# %% tags=["hide-input"]
claim(
    "Length of the first axis that SGHMC covers in 50 steps, less that of SGLD, mean",
    difference.mean(),
    near=0.43,
    within=0.08,
    because="4,000 walks of each; ten seeds give 0.42 to 0.45",
)

# %% [markdown]
# ## In practice
#
# * Put the floor beside every distance between a histogram and a density; without it a number such as 0.011 says nothing.
# * One run of a random experiment is one number; know its spread before you compare it with another.
# * Where an exact law is known, draw it under the measured points.
#   It finds mistakes in both.
# * When a figure cannot be reproduced from its caption, look for the code that drew it, and say which of the two you followed.
#
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | floor of the total-variation distance | $\tfrac12\sum_k\sqrt{2p_k(1 - p_k)/(\pi N)}$ | {eq}`eq-tv-floor` |
# | heat without friction, after $k$ steps | $E[\theta^2 + r^2] \approx 1 + k\,\varepsilon^2V$ | {eq}`eq-heated-radius` |
# | heat with fresh momenta, in a bowl | $1 + B(t/\sin^2t - \cot t)$ | {eq}`eq-naive-variance` |
# | price of a sample | $\tau = 1 + 2\sum_k\rho_k$ | {prf:ref}`thm-linear-tau` |
#
# ## Change it
#
# * In the list of samplers replace `friction=3.0, noise_estimate=0.2` by `friction=3.0, noise_estimate=0.0`: nothing is subtracted for the gradient's noise, and the claims on SGHMC's total variation and on its variance in the bowl show ✗.
# * In `figure_one` replace `NoisyGradient(potential, 4.0)` by `NoisyGradient(potential, 0.0)`: without noise nothing heats the naive sampler, and the claims on its total variation and on its variance show ✗.
#   So do the one on SGHMC's variance in the bowl, for SGHMC still subtracts a noise that is not there, and the one on the acceptance of corrected trajectories, which are now those of HMC.
# * In the chains of Figure 3 replace `noisy = NoisyGradient(gaussian, 1.0)` by `noisy = NoisyGradient(gaussian, 2.0)`: the measured errors leave the exact lines, and the claim on the errors of SGLD shows ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-floor
#
# Derive the floor {eq}`eq-tv-floor`: the expected total-variation distance between the shares $\hat p_k$ of $N$ independent draws in the bins and their own probabilities $p_k$, where $Np_k$ is large.
# ```
#
# ```{solution} ex-floor
# :class: dropdown
#
# The number of draws in bin $k$ is nearly normal with mean $Np_k$ and variance $Np_k(1-p_k)$.
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
    "Difference between the written and the package's total variation, exact draws",
    my_total_variation(exact.flatten(), probabilities, edges)
    - total_variation(exact, probabilities, edges),
    near=0,
    within=1e-9,
    because="the same sums; rounding",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-half-kicks
#
# The chain of Figure 2 with fresh half kicks is the naive dynamics {eq}`eq-naive` with another $B = \tfrac12\varepsilon V$.
# Which?
# What variance does naive SGHMC have in the bowl with it, with $\varepsilon = 0.1$, 50 steps and $V = 4$?
# ```
#
# ```{solution} ex-half-kicks
# :class: dropdown
#
# Two independent half kicks add the variance $2(\varepsilon/2)^2V = \tfrac12\varepsilon^2V$ to the momentum, so $B = \tfrac14\varepsilon V = 0.1$.
# By {eq}`eq-naive-variance` the excess of the variance over 1 halves, from 1.15 to 0.57.
# ```

# %% tags=["hide-input"]
for noise_variance, expected in ((4.0, 1.15), (2.0, 0.57)):
    chain = naive_sghmc_chain(torch.eye(1), 0.1, 50, noise_variance=noise_variance)
    claim(
        f"Excess of naive SGHMC's variance in the bowl, V = {noise_variance:g}",
        chain.stationary_covariance()[0, 0] - 1,
        near=expected,
        within=0.01,
        because="exact law",
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
# Without the preconditioner it is larger still, because the stiffest direction limits the step and the softest takes the time: $1/(\eta a)$ steps against $1/(\varepsilon\sqrt a)$, where $a$ is the softest curvature.
# With the condition number 19 of Figure 3 that is another factor of the order of $\sqrt{19}$.
# ````

# %% tags=["hide-input"]
one = torch.eye(1, dtype=torch.float64)
for name, chain, direction, expected in (
    ("SGLD", langevin_chain(one, 0.02), torch.tensor([1.0]), (99.0, 49.5)),
    ("SGHMC", sghmc_chain(one, 0.1906, 1.0), torch.tensor([1.0, 0.0]), (10.4, 9.9)),
):
    claim(
        f"Preconditioned, error of the variance of {name} in per cent",
        100 * abs(chain.stationary_covariance()[0, 0] - 1),
        near=1.01,
        within=0.01,
        because="exact law",
        kind="exact",
    )
    for what, time, value in zip(
        ("θ", "θ²"),
        (chain.autocorrelation_time(direction), time_of_square(chain, direction)),
        expected,
        strict=True,
    ):
        claim(
            f"Preconditioned, autocorrelation time of {what} of {name}",
            time,
            near=value,
            within=0.06,
            because="exact law",
            kind="exact",
        )

# %% [markdown]
# ## Further reading
#
# {cite:t}`chen2014`; for the autocorrelation time and its estimation {cite:t}`hoffman2014` and {cite:t}`vehtari2021`.
