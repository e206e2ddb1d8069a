# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # SGLD: its price, and falling steps
#
# ```{div} page-head
# Level: second course · Reading: about 31 minutes, without the exercises · Running: about 9 seconds
# ```
#
# {doc}`/book/tutorial/langevin` has SGLD in a bowl with constant noise.
# This page watches a density settle, counts what a posterior costs with real minibatches, and lets the steps fall.
#
# **You will learn** to
#
# * find the exact covariance of SGLD where the noise depends on the position,
# * count what a posterior costs in passes over the data,
# * use falling steps with weighted averages, and watch the two phases, optimising and sampling.
#
# **You will need** {doc}`/book/tutorial/langevin`.

# %% tags=["hide-input"]
import itertools
import warnings

import matplotlib.pyplot as plt
import torch

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, show_frames, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from sgmc import sample
from sgmc.door.draws import Draws
from sgmc.kernels import SGLD
from sgmc.posteriors import LinearRegression
from sgmc.splittings import langevin_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Some runs below are looked at while the chains are still on their way.
warnings.filterwarnings("ignore", message=".*do not agree|.*too wide|.*too narrow")

# %% [markdown]
# ## How a density settles
#
# The Fokker–Planck equation can be solved on a grid, where a particle hops from cell to cell: at a rate of $e^{-\Delta U/2}/h^2$ to a neighbour at the distance $h$ whose potential is higher by $\Delta U$.
# (As $h \to 0$ these hops have the right mean, $-U'\,dt$, and the right variance, $2\,dt$; and $\pi$ stands still on the grid too, because $\pi e^{-\Delta U/2}$ is the same in both directions.)
# {numref}`fig-langevin-density` does it for the double well $U = -2\theta^2 + \theta^4$, and follows chains of SGLD.

# %%
well = DoubleWell()
grid = torch.linspace(-2.5, 2.5, 251, dtype=torch.float64)
width = 0.02
rise = well.energy(grid[:, None]).diff()
up, down = torch.exp(-rise / 2) / width**2, torch.exp(rise / 2) / width**2
rates = torch.diag(up, -1) + torch.diag(down, 1)  # [to, from]
rates = rates - torch.diag(rates.sum(0))
target_density = torch.exp(-well.energy(grid[:, None]))
target_density = target_density / (target_density.sum() * width)

eta, first = 0.005, 1.9
steps = [0, 1, 2, 4, 7, 12, 20, 35, 60, 100, 150, 220, 400, 650, 1_200]
densities = [torch.exp(-((grid - first) ** 2) / (2 * 0.1**2)) / (0.1 * 6.2832**0.5)]
for before, after in itertools.pairwise(steps):
    move = torch.matrix_exp((after - before) * eta * rates)
    densities.append(move @ densities[-1])

followed = torch.randn(4_000, 1, generator=torch.Generator().manual_seed(3))
followed = first + 0.1 * followed
chains = sample(SGLD(eta), well, followed, num_samples=1_200, seed=5).samples[..., 0]


# %% mystnb={"figure": {"caption": "A density moves to $\\pi$ (grey) by the overdamped Langevin equation in the double well: the solution of the Fokker-Planck equation (line), and forty chains of SGLD with step 0.005 (dots).", "name": "fig-langevin-density"}} tags=["hide-input"]
def frames():
    heights = 0.03 + 0.25 * torch.rand(40, generator=torch.Generator().manual_seed(4))
    for step, density in zip(steps, densities, strict=True):
        figure, axes = plt.subplots(figsize=(4.4, 2.8))
        axes.fill_between(grid, target_density, color=TRUTH, alpha=0.35, lw=0)
        axes.plot(grid, density, color=COLOURS["SGLD"])
        places = chains[step - 1, :40] if step else followed[:40, 0]
        axes.plot(places, heights, "o", ms=3, color="black", alpha=0.7)
        axes.set(
            xlabel=r"$\theta$",
            ylabel="density",
            xlim=(-2.5, 2.5),
            ylim=(0, 1.6),
            title=f"time {step * eta:.3f}",
        )
        yield figure


show_frames(
    frames(),
    "A narrow peak at the right slides down into the right well and takes its shape; "
    "then the left well fills up slowly, until the line lies on the grey density with "
    "its two hills. Dots scatter under the line.",
    seconds=0.4,
)

# %% [markdown]
# Play {numref}`fig-langevin-density`: the start is forgotten at two speeds.
# Within a time of one half the density has slid down and nearly taken the shape of the right well.
# Few chains cross the hill between the wells, so the left well fills up much more slowly.

# %% tags=["hide-input"]
right = grid > 0


def distance(density, where):
    """Total variation from the target, both normalised on part of the grid."""
    first, second = density[where], target_density[where]
    return 0.5 * (first / first.sum() - second / second.sum()).abs().sum()


everywhere = torch.ones_like(right)
gaps = torch.stack([distance(density, everywhere) for density in densities])
claim(
    "The density comes closer to π from every frame to the next",
    bool((gaps.diff() < 0).all()),
    because="total variation, on the grid",
    kind="exact",
)
claim(
    "Total variation from π after a time of 6",
    gaps[-1],
    at_most=0.01,
    because="on the grid",
    kind="exact",
)
half = steps.index(100)
claim(
    "Total variation from π within the right well, after a time of one half",
    distance(densities[half], right),
    at_most=0.08,
    because="on the grid",
    kind="exact",
)
claim(
    "Share of the density in the left well at that time, where π has one half",
    densities[half][~right].sum() * width,
    at_most=0.1,
    because="on the grid",
    kind="exact",
)
share = float(densities[steps.index(220)][~right].sum()) * width
claim(
    "Share of 4,000 chains in the left well after a time of 1.1",
    (chains[219] < 0).double().mean(),
    near=round(share, 3),
    standard_error=(share * (1 - share) / 4_000) ** 0.5,
    because="the solution on the grid; Monte Carlo over the chains",
)

# %% [markdown]
# ## Real minibatches, and their price
#
# A Bayesian linear regression has a Gaussian posterior that we know exactly.
# With $N = 1{,}000$, $d = 3$ and minibatches of 20 its noise is no longer constant: $g_i = x_i(x_i\cdot\theta - y_i)$ is linear in $\theta$, so $V(\theta)$ is a quadratic function, smallest near the posterior mean $\hat\theta$.
# Its stationary distribution is no longer Gaussian, but its covariance can still be found exactly, in four steps.
#
# *What an example says.* Let $\delta = \theta - \hat\theta$ be the distance from the mean, and $e_i = y_i - x_i\cdot\hat\theta$ the residual of an example there. Then
#
# $$
# g_i = -x_ie_i + x_ix_i^\top\delta,
# $$
#
# a part that is always there, and a part that grows with the distance.
#
# *How far the examples differ, at a fixed $\delta$.* The second part differs from its average by $R_i\delta$, where $R_i = x_ix_i^\top - \bar A$ and $\bar A = \frac1N\sum_ix_ix_i^\top$.
# So the covariance of the $g_i$ over the examples is that of the $-x_ie_i$, plus $\frac1N\sum_iR_i\,\delta\delta^\top R_i$, plus two mixed terms with one $\delta$ each.
#
# *The average over $\delta$.* The chain is stationary, with $E[\delta] = 0$ and $E[\delta\delta^\top] = \Sigma$. The mixed terms vanish, and in the other $\Sigma$ takes the place of $\delta\delta^\top$. With the factor that {eq}`eq-v` puts before a covariance over examples,
#
# $$
# \begin{aligned}
# E[V(\theta)] &= V(\hat\theta)\\
# &\quad + \frac{N^2}n\,\frac{N - n}{N - 1}\,G(\Sigma),\\
# G(\Sigma) &= \frac1N\sum_iR_i\,\Sigma\,R_i,
# \end{aligned}
# $$ (eq-regression-noise)
#
# where $V(\hat\theta)$ is the noise of the $-x_ie_i$ alone.
#
# *The balance.* A step moves $\delta$ to $(I - \eta A)\delta$, with $A \approx NI$ the posterior's precision, and adds noise that has mean zero whatever $\delta$ is. So the covariances add up as in a linear chain:
#
# $$
# \begin{aligned}
# \Sigma ={} &(I - \eta A)\,\Sigma\,(I - \eta A)\\
# &+ 2\eta I + \eta^2E[V(\theta)].
# \end{aligned}
# $$ (eq-regression-balance)
#
# The right side is linear in $\Sigma$, and no moment higher than the second occurs in it.
# There is a fixed point that is a covariance if and only if the map from $\Sigma$ to the right side without $2\eta I$ and without the noise at the mean has a spectral radius below one ({prf:ref}`thm-contractions`): a stricter condition than $\eta a < 2$, and the one under which the chain has a variance at all.
# The code iterates it to its fixed point.

# %%
generator = torch.Generator().manual_seed(0)
N, d, n = 1_000, 3, 20
inputs = torch.randn(N, d, generator=generator)
targets = inputs @ torch.tensor([1.0, -2.0, 0.5]) + torch.randn(N, generator=generator)
regression, full = (
    LinearRegression(inputs, targets, batch_size=n),
    LinearRegression(inputs, targets),
)

x, A, identity = (
    inputs.double(),
    regression.precision.double(),
    torch.eye(d, dtype=torch.float64),
)
residuals = targets.double() - x @ regression.mean.double()
squares = x[:, :, None] * x[:, None, :]
squares = squares - squares.mean(0)
factor = N**2 / n * (N - n) / (N - 1)
noise_at_mean = factor * torch.cov((x * residuals[:, None]).T, correction=0)


def exact_width(step_size):
    """The exact stationary variance of minibatch SGLD over the posterior's, averaged
    over the coordinates."""
    transition, covariance = identity - step_size * A, torch.linalg.inv(A)
    for _ in range(round(20 / (step_size * N))):
        noise = noise_at_mean + factor * (squares @ covariance @ squares).mean(0)
        covariance = (
            transition @ covariance @ transition.T
            + 2 * step_size * identity
            + step_size**2 * noise
        )
    return float((covariance.diagonal() / torch.linalg.inv(A).diagonal()).mean())


def measured_width(potential, step_size):
    """The same from 1,000 chains, with its standard error."""
    start = regression.mean.expand(1_000, -1).contiguous()
    pause = round(0.5 / (step_size * N))
    run = sample(
        SGLD(step_size),
        potential,
        start,
        num_samples=20,
        warm_up=8 * pause,
        thinning=pause,
        seed=2,
    )
    return run.mean_and_standard_error(
        lambda x: ((x - regression.mean) ** 2 / regression.covariance.diagonal()).mean(
            -1
        )
    )


# %% tags=["hide-input"]
def exact_full_width(step_size):
    """The exact width where every gradient reads all the data."""
    law = langevin_chain(A, step_size).stationary_covariance().diagonal()
    return float((law / torch.linalg.inv(A).diagonal()).mean())


regression_steps = (1e-5, 3e-5, 1e-4)
show_table(
    ["step size η", "all the data", f"minibatches of {n}"],
    [
        [f"{h:g}", f"{exact_full_width(h):.4f}", f"{exact_width(h):.4f}"]
        for h in regression_steps
    ],
)

# %% [markdown]
# The table has the variances over the posterior's, averaged over the coordinates: 1 is right.
# At the largest step all the data give a variance that is five per cent too large; with minibatches it is more than three times the right one.

# %% tags=["hide-input"]
runs = [(regression, h, exact_width(h)) for h in regression_steps]
runs.append((full, 1e-4, exact_full_width(1e-4)))
errors = []
for potential, h, law in runs:
    value, error = measured_width(potential, h)
    errors.append(abs(float(value) - law) / float(error))
claim(
    "Largest distance of four measured widths from these, in standard errors",
    max(errors),
    at_most=5,
    errors=True,
    because="1,000 chains each; exceeded by chance once in 400,000 times",
)
claim(
    "Excess width at η = 1e-4 with minibatches over that with all the data",
    (exact_width(1e-4) - 1) / (exact_full_width(1e-4) - 1),
    near=50,
    within=4,
    because="exact laws: about ½ηV over ½ηa, which is about N/n = 50",
    kind="exact",
)


def spectral_radius(step_size):
    """Of the map that a step makes of the covariance."""
    transition = identity - step_size * A
    noise = torch.einsum("nij,nkl->ikjl", squares, squares).reshape(d * d, d * d) / N
    moments = torch.kron(transition, transition) + step_size**2 * factor * noise
    return float(torch.linalg.eigvals(moments).abs().max())


claim(
    "Spectral radius of the covariance's map at the largest step of the table",
    spectral_radius(1e-4),
    near=0.816,
    within=0.002,
    because="below one, so that the fixed point exists; all examples enumerated",
    kind="exact",
)
claim(
    "The same at η = 2e-3, where the chain with all the data is at its limit 2/a",
    spectral_radius(2e-3),
    at_least=1.5,
    because="no variance; all examples enumerated",
    kind="exact",
)
prices = []
for step_size in regression_steps:
    decay = step_size * torch.linalg.eigvalsh(A)
    passes = float(((2 - decay) / decay).mean()) * n / N  # τ steps of n examples
    prices.append(passes * (exact_width(step_size) - 1))
claim(
    "Passes for an independent sample times the excess, three step sizes: the one "
    "furthest from 1",
    max(prices, key=lambda price: abs(price - 1)),
    near=1,
    within=0.03,
    because="nV/(aN) = 1 − n/N = 0.98 to the first order of the step; exact laws",
    kind="exact",
)

# %% [markdown]
# Compare the noise $V \approx N^2/n$ with the curvature $a \approx N$.
# At a step of the order of $1/N$, the largest that is stable, the excess $\tfrac12\eta V$ is of the order of $N/n$; to make it small the step must be small against $n/N^2$.
# An independent sample takes about $2/(\eta a)$ steps, which read $n$ examples each, or $2n/(\eta aN)$ passes over the data. Times the excess this is $nV/(aN) \approx 1$: **a variance that is too large by a share $h$ costs $1/h$ passes for one independent sample**, twenty for five per cent.
# With plain minibatches SGLD does not beat the data set {cite:p}`brosse2018,nemeth2021`; with control variates it can.
# What it saves is the way from a bad start, as stochastic gradient descent does.
#
# ## Falling steps: two phases
#
# The bias vanishes if the steps do.
# Let $\eta_t$ fall to 0, with $\sum_t\eta_t = \infty$, to get anywhere.
# The conditions of {cite:t}`robbins1951` ask for $\sum_t\eta_t^2 < \infty$ as well, which their proof uses. A sampler does not need it: the bias of its averages falls as $\sum_t\eta_t^2/\sum_t\eta_t$, or as $1/\sum_t\eta_t$ where the sum of the squares is bounded, and vanishes either way ({prf:ref}`thm-sgld-consistent`).
# A usual choice that meets both conditions is $\eta_t = c\,(b + t)^{-\gamma}$ with $\tfrac12 < \gamma \le 1$.
#
# While $\tfrac12\eta_tV > 1$ the gradient's noise is louder than ours.
# The algorithm is then stochastic gradient descent in all but name: it falls towards the mode and rattles around it, far too wide.
# Once $\tfrac12\eta_tV < 1$ the injected noise takes over, and samples are worth keeping.
# These are the two phases of {cite:t}`welling2011`, optimising and sampling, and no one has to switch from one to the other.
# We take a noisy bowl, $U = \tfrac12\theta^2$ with $V = 100$, start 4,000 chains at 4, and follow them with $\eta_t = 2(20 + t)^{-0.8}$.
# Mean and variance of the chains obey exact recursions,
#
# $$
# \begin{aligned}
# m_{t+1} &= (1 - \eta_t)\,m_t,\\
# \sigma_{t+1}^2 &= (1 - \eta_t)^2\,\sigma_t^2 + 2\eta_t + \eta_t^2V.
# \end{aligned}
# $$ (eq-sgld-recursion)
#
# {numref}`fig-sgld-phases` compares them with what the chains do.


# %%
def schedule(t):
    return 2 * (20 + t) ** -0.8


noise_variance, num_steps = 100.0, 3_000
loud = NoisyGradient(Gaussian.standard(1), noise_variance)
annealed = sample(
    SGLD(schedule), loud, torch.full((4_000, 1), 4.0), num_samples=num_steps, seed=4
)
eta = torch.tensor([schedule(t) for t in range(num_steps)], dtype=torch.float64)
means, variances = [4.0], [0.0]
for h in eta.tolist():
    means.append((1 - h) * means[-1])
    variances.append((1 - h) ** 2 * variances[-1] + 2 * h + h**2 * noise_variance)
means, variances = torch.tensor(means[1:]), torch.tensor(variances[1:])
boundary = int((0.5 * eta * noise_variance > 1).sum())

# %% mystnb={"figure": {"caption": "SGLD with falling steps in the bowl, $V = 100$, from a start at 4. Above: mean and spread of 4,000 chains (green), the same by the exact recursion (dashed), and the target's (grey). Below: the variances that a step adds. The dotted line divides the phases, at $\\tfrac12\\eta V = 1$.", "name": "fig-sgld-phases"}, "image": {"alt": "Above, a band that drops from 4 to 0 within about twenty steps, is then several times as wide as the grey strip around zero, and narrows slowly towards it. Below, two falling lines that cross at the dotted line: the steeper one, of the gradient's noise, is above before it."}} tags=["hide-input"]
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.2, 5.8), sharex=True)
steps = torch.arange(1, num_steps + 1)
mean, spread = annealed.samples.mean(1)[:, 0], annealed.samples.std(1)[:, 0]
upper.axhspan(-1, 1, color=TRUTH, alpha=0.35, lw=0)
upper.fill_between(
    steps, mean - spread, mean + spread, color=COLOURS["SGLD"], alpha=0.3, lw=0
)
upper.semilogx(steps, mean, color=COLOURS["SGLD"])
for sign in (-1, 0, 1):
    upper.semilogx(steps, means + sign * variances.sqrt(), "--", color="black", lw=0.8)
upper.set(ylabel=r"$\theta$: mean ± standard deviation")
lower.loglog(
    steps,
    eta**2 * noise_variance,
    "--",
    color=COLOURS["SGLD"],
    label=r"gradient's noise $\eta_t^2 V$",
)
lower.loglog(steps, 2 * eta, color=COLOURS["SGLD"], label=r"injected noise $2\eta_t$")
lower.set(xlabel="step", ylabel="variance added in a step")
lower.legend(loc="lower left")
for axes in (upper, lower):
    axes.axvline(boundary, color="black", lw=1, ls=":")
plt.show()

# %% [markdown]
# In {numref}`fig-sgld-phases` the chains come down quickly and are then far too spread out.
# At the dotted line, from which on the injected noise is the louder one, their variance is still 2.1, and after 3,000 steps 1.17.

# %% tags=["hide-input"]
claim(
    "Number of steps in which the gradient's noise is the louder",
    boundary,
    near=297,
    within=0.1,
    because="½η_tV = 1 solved for t",
    kind="exact",
)
for step in (20, boundary, num_steps):
    draws = annealed.samples[step - 1, :, 0].double()
    claim(
        f"Variance over the chains after {step:,} steps",
        draws.var(),
        near=round(float(variances[step - 1]), 4),
        standard_error=float(variances[step - 1]) * (2 / 3_999) ** 0.5,
        because="exact recursion; 4,000 chains",
    )

# %% [markdown]
# ## Weighted averages
#
# With falling steps not all samples are worth the same.
# A sample stands for the time $\eta_t$ that the diffusion spends there, so the average over time is
#
# $$
# \hat E[f] = \frac{\sum_t\eta_tf(\theta_t)}{\sum_t\eta_t}.
# $$ (eq-weighted)
#
# It converges to the expectation under conditions that {prf:ref}`thm-sgld-consistent` states; on a Gaussian {prf:ref}`thm-sgld-rate` says how fast.
# For $\gamma < 1$ equal weights would converge too, but they count the many late samples fully, although these hardly move and repeat each other.
# So the weighted average has the smaller variance.
# On the other hand it counts the early samples more, which are biased the most.
# Here the standard deviation is three per cent smaller, and the mean of $\theta^2$ eight per cent larger.
# That weighted mean is 1.47, where 1 is right: which samples one throws away matters more than their weights.

# %%
late = Draws(  # the same chains, once the injected noise is the louder
    annealed.samples[boundary:],
    {"step_size": annealed.statistics["step_size"][boundary:]},
)
weighted, equal = (
    late.weighted_mean()[:, 0].double(),
    late.samples.double().mean(0)[:, 0],
)

# %% tags=["hide-input"]
claim(
    "Standard deviation of the weighted average of θ over that of the equal one",
    weighted.std() / equal.std(),
    near=0.973,
    within=0.016,
    because=(
        "the exact ratio is 0.973, and 4,000 pairs of averages know it to about 0.003"
    ),
)
weights = eta[boundary:] / eta[boundary:].sum()
exact_square = {
    "weighted": float((weights * variances[boundary:]).sum()),
    "equal": float(variances[boundary:].mean()),
}
claim(
    "Weighted average of the exact variances over their equal average",
    exact_square["weighted"] / exact_square["equal"],
    near=1.08,
    within=0.01,
    because="exact recursion: early draws are wider",
    kind="exact",
)
squares = (late.samples[..., 0].double() ** 2 * weights[:, None]).sum(0)
claim(
    "Weighted average of θ² over the chains, where the target has 1",
    squares.mean(),
    near=round(exact_square["weighted"], 4),
    standard_error=squares.std() / 4_000**0.5,
    because="exact recursion; 4,000 chains",
)

# %% [markdown]
# How fast should steps fall?
# {cite:t}`teh2016` find that the best exponent is $\gamma = \tfrac13$, outside of the classical conditions, and that after $K$ steps the error is of the order of $K^{-1/3}$ rather than the $K^{-1/2}$ of an unbiased chain: that is the price of leaving out the correction step.
# {ref}`ex-falling-rates` shows where the third comes from.

# %% tags=["hide-input"]
spread, weight, total, square_sum, biases, square_sums = 1.0, 0.0, 0.0, 0.0, {}, {}
for t in range(1, 100_001):
    h = 0.5 * t ** (-1 / 3)
    weight, total, square_sum = weight + h, total + h * spread, square_sum + h**2
    spread = (1 - h) ** 2 * spread + 2 * h + h**2  # V = 1
    biases[t], square_sums[t] = total / weight - 1, square_sum
claim(
    "γ = ⅓: sum of the squares of 100,000 steps over that of 1,000",
    square_sums[100_000] / square_sums[1_000],
    at_least=4,
    because="it grows as t^{1/3}, without bound",
    kind="exact",
)
claim(
    "Bias of the weighted mean of θ² after them, over that after 1,000",
    biases[100_000] / biases[1_000],
    near=100 ** (-1 / 3),
    within=0.01,
    because="exact recursion; it falls as t^{−1/3} all the same",
    kind="exact",
)

# %% [markdown]
# ## Change it
#
# * Set `N, d, n = 1_000, 3, 20` to `N, d, n = 1_000, 3, 100`: the claim on the excess width shows ✗, near 10, because it follows $N/n$, and so does the last one on the spectral radius. The measured widths still agree with the exact covariance.
# * Set `2 * (20 + t) ** -0.8` to `2 * (20 + t) ** -1.0`: steps fall faster, the phase of sampling begins after 80 steps instead of 297, and three claims about the old schedule show ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-sgld-optimal
#
# On a Gaussian with curvatures between $a_{\min}$ and $a_{\max}$, how many steps does SGLD need to decorrelate at its largest usable step?
# ```
#
# ```{solution} ex-sgld-optimal
# :class: dropdown
#
# With $\eta$ a fraction of $1/a_{\max}$ the slowest direction shrinks by $1 - \eta a_{\min}$ a step, so of the order of $a_{\max}/a_{\min}$ steps, the condition number.
# It is the square of length over width.
# ```
#
# ## Further reading
#
# {cite:t}`teh2016` for falling and {cite:t}`vollmer2016` for constant steps.
