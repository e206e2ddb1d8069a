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
# Optional · 21 minutes to read, 10 to play · Running: about 8 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```

# %%
import torch

from booklib.page.claims import check, near
from booklib.page.scoreboard import pace
from booklib.page.tables import show_table
from booklib.scores.diagnostics import bin_probabilities, total_variation
from sgmc import sample
from sgmc.kernels import HMC, SGHMC, NaiveSGHMC
from sgmc.splittings import langevin_chain, sghmc_chain
from sgmc.targets import DoubleWell, NoisyGradient

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt

from booklib.page.claims import at_most
from booklib.page.figures import (
    COLOURS,
    plot_contours,
    plot_density,
    plot_histogram,
    use_style,
)
from booklib.page.play import play
from booklib.scores.diagnostics import inverse_transform_samples
from sgmc.kernels import SGLD
from sgmc.splittings import flows
from sgmc.targets import Gaussian

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# The naive sampler is too wide on purpose, and chains are many and short.
warnings.filterwarnings("ignore", message=".*too wide|.*do not agree")

# %% [markdown]
# The paper that introduced SGHMC makes its case in three small figures.
# Here they are computed anew, with exact distributions beside them, and the case stands:
#
# * {numref}`fig-chen-1`: on a double well naive SGHMC has a share of {c}`naive` of its samples in the wrong place; SGHMC has hardly more than independent samples have.
# * {numref}`fig-chen-2`: noise drives a ball out of the bowl, and friction holds it where it should be.
# * {numref}`fig-chen-3a`: at the same error SGHMC is cheaper than SGLD, although not as much as the paper's clock says: by a factor from {c}`square-largest` to {c}`square-smallest`, not from {c}`theta-largest` to {c}`theta-smallest`.
#
# Where the paper's captions and its program differ, {doc}`/book/appendix/errata` has the details.
#
# ## Figure 1: five samplers, one double well
#
# The target is $U = -2\theta^2 + \theta^4$, and three of the five samplers see $\nabla U + N(0, 4)$ in place of its gradient.
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

# %%
well, edges = DoubleWell(), torch.linspace(-2.5, 2.5, 51)
probabilities = bin_probabilities(well, edges)
samplers = {
    "HMC": HMC(0.1, 50),
    "HMC without correction": HMC(0.1, 50, metropolis=False),
    "naive SGHMC with correction": NaiveSGHMC(0.1, 50, metropolis=True),
    "naive SGHMC": NaiveSGHMC(0.1, 50),
    "SGHMC": SGHMC(0.1, 3.0, 0.2, num_steps=50, resample_every=1),  # B̂ = ½εV = 0.2
}
runs, distance = {}, {}
for name, kernel in samplers.items():
    noisy, start = NoisyGradient(well, 4.0), torch.zeros(800, 1)
    runs[name] = sample(kernel, noisy, start, num_samples=100, warm_up=10, seed=0)
    distance[name] = total_variation(runs[name].samples, probabilities, edges)
variances = probabilities * (1 - probabilities) / 80_000
floor = float((2 * variances / torch.pi).sqrt().sum() / 2)
rows = [[name, f"{value:.3f}"] for name, value in distance.items()]
heads = ["80,000 samples of", "total variation"]
show_table(heads, [["the noise floor", f"{floor:.3f}"], *rows], live=heads[1:])
naive = distance["naive SGHMC"]
check("naive", naive, near(0.143, 0.012), because="ten seeds", digits=2)

# %% mystnb={"figure": {"caption": "Figure 1 of Chen et al. (2014), computed anew: the double well by 80,000 samples of two samplers with minibatch noise, on the true density (grey).", "name": "fig-chen-1"}, "image": {"alt": "A grey density with two hills. The line of naive SGHMC is lower on the hills and higher in the valley and outside; that of SGHMC follows the density."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.0))
plot_density(axes, well, -2.2, 2.2)
for name in ("naive SGHMC", "SGHMC"):
    bins, samples = torch.linspace(-2.2, 2.2, 61), runs[name].samples
    plot_histogram(axes, samples, bins, color=COLOURS[name], label=name)
axes.set(xlabel=r"$\theta$", ylabel="density", ylim=(0, 0.65))
axes.legend(loc="upper center", ncols=3)
plt.show()

# %% [markdown]
# Naive SGHMC is too flat and too wide, and SGHMC lies on the truth, as do the three others: they exceed the floor at most by {c}`others`, the bias of the step and the correlation of the samples.
# Correcting the naive sampler by rejection works, too, but it accepts only a share of {c}`acceptance` of its trajectories here and needs the energy of all the data.
# Strictly, no step size gives SGHMC a stationary distribution on this target, whose gradient grows too fast; at $\varepsilon = 0.1$ nobody will see it ({doc}`/book/further/how_far_it_holds`).

# %% tags=["hide-input"]
generator = torch.Generator().manual_seed(0)
independent = inverse_transform_samples(well, 8 * 80_000, -3, 3, generator)
of_independent = [
    total_variation(x, probabilities, edges) for x in independent.split(80_000)
]
check(
    "floor",
    sum(of_independent) / 8 / floor,
    near(1, 0.35),
    because="some 30 bins matter, each with a relative spread of 0.76",
    says="Total variation of 80,000 independent samples over the floor, mean of eight",
)
others = max(value for name, value in distance.items() if name != "naive SGHMC") - floor
check("others", others, at_most(0.012), because="ten seeds", digits=1)
accepted = runs["naive SGHMC with correction"].statistics["acceptance"].mean()
check("acceptance", accepted, near(0.57, 0.03), because="0.568 to 0.573 over seeds")

# %% [markdown]
# ## Figure 2: the heating of a bowl
#
# {numref}`fig-chen-2` is a picture of phase space in the bowl: 15,000 steps from $(1, 0)$, with a point after every 50.
# The exact dynamics stays on the circle.
# With noise each step adds $\varepsilon^2V$ to $E[r^2]$, so after $k$ steps
#
# $$
# E[\theta^2 + r^2] \approx 1 + k\,\varepsilon^2V,
# $$ (eq-heated-radius)
#
# which is 601 at the end; after 750 steps the mean over 10,000 paths is {c}`heated` times the formula.
# A fresh momentum before every point holds the path, but too wide. Friction holds it where it should be: $E[\theta^2]$ is {c}`settled` after 1,000 steps.
#
# The caption's $V = 4$ is not the noise of the printed figure, whose program draws a 32nd of the heat. In print, therefore, the points without friction stay nearer, and those with fresh momenta are hardly too wide.


# %% mystnb={"figure": {"caption": "Figure 2 of Chen et al. (2014) with the noise of its caption, $V = 4$: 300 points of 50 steps. The points without friction leave the frame.", "name": "fig-chen-2"}, "image": {"alt": "A phase plane with a small circle. Black triangles without friction lie far out in all directions; orange points with resampled momenta fill a disc that is too wide, pink squares with friction a smaller one."}} tags=["hide-input"]
def phase_path(moves, resample=False, chains=1, num_points=300):
    """Follow a list of flows from (1, 0); return the points (num_points, chains, 2)."""
    noisy, generator = (
        NoisyGradient(Gaussian.standard(1), 4.0),
        torch.Generator().manual_seed(0),
    )
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
    ("momentum resampled", phase_path(no_friction, True), COLOURS["naive SGHMC"], "o"),
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
heated = heated.pow(2).sum(-1).mean() / (1 + 750 * 0.01 * 4)
check("heated", heated, near(1, 0.06), because="the standard error is 0.01")
settled = phase_path(with_friction, chains=4_000, num_points=20)[-1, :, 0].double() ** 2
exact = float(
    sghmc_chain(torch.eye(1), 0.1, 3.0, 4.0, 0.2).stationary_covariance()[0, 0]
)
error = float(settled.std() / len(settled) ** 0.5)
check("settled", settled.mean(), near(exact), error=error, because="exact law")

# %% [markdown]
# ## Figure 3: SGHMC against SGLD
#
# The target is Gaussian with unit variances and correlation 0.9, the gradient noise is $N(0, I)$, and both samplers get the right noise estimate.
# Which of them pays less for the same error of the covariance?
# The price is the {term}`autocorrelation time` $\tau = 1 + 2\sum_k\rho_k$: an average over $S$ samples is as good as one over $S/\tau$ independent ones.
#
# Both chains are linear, so error and price are exact ({prf:ref}`thm-linear-tau`), and no samples are needed.
# The table has the five settings of the published program, each beside the SGLD that makes the same error.

# %%
truth = torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64)
first = {2: torch.eye(2)[0], 4: torch.eye(4)[0]}  # θ₁ of θ, and of θ and r


def sgld(rate):
    return langevin_chain(truth.inverse(), rate, 1.0, rate / 2)


def sghmc(rate, decay):
    step = rate**0.5  # the learning-rate form of page 8
    return sghmc_chain(truth.inverse(), step, decay / step, 1.0, step / 2)


def error(chain):
    return float((chain.stationary_covariance()[:2, :2] - truth).abs().mean())


def price(chain):
    return chain.autocorrelation_time(first[len(chain.transition)]), pace(chain)


def sgld_with(wanted, low=1e-6, high=0.18):
    for _ in range(60):  # bisection: the error grows with the rate
        middle = (low + high) / 2
        low, high = (middle, high) if error(sgld(middle)) < wanted else (low, middle)
    return sgld(low)


settings = [(0.05 * 0.36**i, 0.05 * 0.6**i) for i in range(5)]
chains = [sghmc(*setting) for setting in settings]
prices = [(*price(chain), *price(sgld_with(error(chain)))) for chain in chains]
rows = [
    [f"{rate:.2g}, {decay:.2g}", f"{error(chain):.2g}", *(f"{x:,.1f}" for x in row)]
    for (rate, decay), chain, row in zip(settings, chains, prices, strict=True)
]
heads = ["η, α of SGHMC", "error", "τ of θ₁", "of θ₁²", "SGLD: of θ₁", "of θ₁²"]
show_table(heads, rows)
_, square, _, square_of_sgld = prices[0]
check(
    "square-largest", square_of_sgld / square, near(3.47, 0.07), kind="exact", digits=3
)

# %% mystnb={"figure": {"caption": "Figure 3a of Chen et al. (2014), exactly: error of the covariance against autocorrelation time of $\\theta_1$, for five settings of each sampler.", "name": "fig-chen-3a"}, "image": {"alt": "Two falling lines of error against autocorrelation time on logarithmic axes. That of SGHMC lies far below and to the left of that of SGLD."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.0, 3.2))
for name, these in (
    ("SGLD", [sgld(0.18 * 0.8**i) for i in range(5)]),
    ("SGHMC", chains),
):
    times, errors = [price(x)[0] for x in these], [error(x) for x in these]
    axes.loglog(times, errors, "o-", color=COLOURS[name], label=name)
axes.set(xlabel=r"autocorrelation time $\tau$", ylabel="error of the covariance")
axes.set_xticks([4, 10, 20, 40], ["4", "10", "20", "40"])
axes.set_xticks([], minor=True)
axes.legend()
plt.show()

# %% [markdown]
# One warning about the paper's comparison: $\tau$ of $\theta$ is not the time that the error of a *covariance* feels.
# SGHMC swings to the other side, where the autocorrelation is negative, down to {c}`swing`, and the errors of a mean cancel; those of a product do not, since its autocorrelation is a square.
# By $\tau$ of $\theta_1$ SGHMC is {c}`theta-largest` times faster at equal error with the largest step and {c}`theta-smallest` times with the smallest, by $\tau$ of $\theta_1^2$ only {c}`square-largest` and {c}`square-smallest` times.
# The published program also counts lags where it should add up $\rho_k$; the conclusion survives the correction, and the numbers do not.
#
# {numref}`fig-chen-3b` shows the reason: momentum carries SGHMC along the ridge, where SGLD changes its direction at every step.

# %% mystnb={"figure": {"caption": "Figure 3b of Chen et al. (2014): the first 50 samples, on contours of the target.", "name": "fig-chen-3b"}, "image": {"alt": "Two panels, one above the other, with walks of 50 samples on a narrow ridge that rises to the right. The walk of SGLD takes small steps to and fro; the walk of SGHMC runs along the ridge in long sweeps."}} tags=["hide-input"]
gaussian = Gaussian.correlated(0.9)
noisy = NoisyGradient(gaussian, 1.0)
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
exact = {"kind": "exact", "because": "exact laws of both chains", "digits": 3}
for name, value, near_to in (
    ("theta-largest", prices[0][2] / prices[0][0], 38.7),
    ("theta-smallest", prices[-1][2] / prices[-1][0], 308.0),
    ("square-smallest", prices[-1][3] / prices[-1][1], 27.1),
):
    check(name, value, near(near_to, 0.02 * near_to), **exact)
lowest = min(float(x.autocorrelation(first[4].double(), 500).min()) for x in chains)
check("swing", lowest, near(-0.587, 0.001), kind="exact", digits=2)

# %% [markdown]
# **To remember:** where an exact distribution is known, draw it under the measured points; it finds mistakes in both.
#
# ## Change it
#
# * In the visible cell of the samplers replace `SGHMC(0.1, 3.0, 0.2,` by `SGHMC(0.1, 0.5, 0.0,`: the temperature is page 8's 1.4, and in {numref}`fig-chen-1` the line of SGHMC flattens.
# * In the same cell replace `NoisyGradient(well, 4.0)` by `NoisyGradient(well, 0.0)`: without noise nothing heats the naive sampler, and its line falls on the density.
# * In the cell of {numref}`fig-chen-3b` replace the momentum decay `0.035` by `0.5`: SGHMC forgets its direction as SGLD does.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-floor
#
# **The noise floor.** ★★
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
# **Write it yourself.** ★
# Compute the total-variation distance of one-dimensional samples from the probabilities of some bins.
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


written = my_total_variation(independent.flatten(), probabilities, edges)
check(
    "written",
    abs(written - total_variation(independent, probabilities, edges)),
    at_most(1e-9),
    kind="exact",
    says="Difference between the written and the package's total variation",
)

# %% [markdown]
# ````{exercise}
# :label: ex-figure-three
#
# **Choose.** ★★★
# In Figure 3 one direction is nineteen times as stiff as the other.
# Give both samplers a preconditioner: sample in coordinates in which the target is $N(0, I)$.
# What is left of SGHMC's advantage at an error of 1 % in the variance?
# Compute exact autocorrelation times of $\theta$ and of $\theta^2$ with `langevin_chain`, `sghmc_chain` and `pace`.
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
# pace(langevin), pace(friction)  # of θ²: 49.5, 9.9
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
        pace(chain),
    )
]
check(
    "six",
    max(
        abs(value / given - 1)
        for value, given in zip(
            values, (1.01, 99.0, 49.5, 1.01, 10.4, 9.9), strict=True
        )
    ),
    at_most(0.01),
    kind="exact",
    says="Largest relative difference of the six numbers from those of the solution",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`chen2014`; for the autocorrelation time and its estimation {cite:t}`hoffman2014` and {cite:t}`vehtari2021`.
