# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Langevin dynamics with minibatches
#
# ```{div} page-head
# Level: first course · Reading: about 85 minutes, without the exercises · Running: about 11 seconds
# ```
#
# Gradient descent with the right amount of noise samples a posterior; this chapter says how much noise, and what a finite step costs.
#
# **You will learn** to
#
# * derive stochastic-gradient Langevin dynamics (SGLD) and prove that its limit has the right law,
# * compute the bias of a constant step exactly on a Gaussian, and measure it,
# * count what a posterior costs in passes over the data,
# * use falling steps with weighted averages, and watch the two phases, optimising and sampling.
#
# **You will need** {doc}`/book/tutorial/minibatch_noise`, and integration by parts.

# %%
import itertools
import warnings

import matplotlib.pyplot as plt
import torch

from booklib.claims import claim
from booklib.figures import COLOURS, TRUTH, show_frames, use_style
from booklib.play import play
from booklib.tables import show_table
from sgmc import sample
from sgmc.draws import Draws
from sgmc.kernels import SGLD
from sgmc.posteriors import LinearRegression
from sgmc.splittings import langevin_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Some runs below are looked at while the chains are still on their way.
warnings.filterwarnings("ignore", message=".*do not agree")

# %% [markdown]
# ## Descend, or sample
#
# Stochastic gradient descent (SGD) repeats $\theta \leftarrow \theta - \eta\nabla\tilde U(\theta)$ with a small {term}`step size` $\eta$ and the gradient of a {term}`minibatch`.
# It looks for the top of the {term}`posterior`.
# The sampler of this chapter does the same, and adds a little normal noise at each step: $\theta \leftarrow \theta - \eta\nabla\tilde U(\theta) + N(0, 2\eta)$.
# It looks for the whole posterior.
#
# {numref}`fig-sgld-paths` has both on one posterior, a linear regression with two coefficients and a hundred examples, in minibatches of twenty.
# They start at the same place, take steps of the same size and see the same minibatches.

# %%
generator = torch.Generator().manual_seed(1)
points = torch.randn(100, 2, generator=generator, dtype=torch.float64)
points[:, 1] = 0.7 * (points[:, 0] + points[:, 1])
noise = torch.randn(100, generator=generator, dtype=torch.float64)
posterior = LinearRegression(points, points[:, 0] - points[:, 1] + noise, batch_size=20)
begin = posterior.mean + torch.tensor([-0.6, 0.5], dtype=torch.float64)

descent = SGLD(step_size=4e-4, temperature=0.0)  # no noise of its own: SGD
sampler = SGLD(step_size=4e-4)
paths = {
    name: sample(kernel, posterior, begin[None], num_samples=3_000, seed=1).samples
    for name, kernel in (("SGD", descent), ("SGLD", sampler))
}

# %% mystnb={"figure": {"caption": "Three thousand steps of SGD (above) and of SGLD (below) on the posterior of two coefficients, from the same start (black dot). Grey: one, two and three standard deviations of the posterior.", "name": "fig-sgld-paths"}, "image": {"alt": "Two panels with three nested slanting ellipses. In the upper a path runs from a dot outside of the ellipses to their centre, and ends in a small knot there. In the lower a path from the same dot covers the two inner ellipses and reaches the third."}} tags=["hide-input"]
figure, panels = plt.subplots(2, 1, figsize=(4.4, 6.6), sharex=True, sharey=True)
angle = torch.linspace(0, 2 * torch.pi, 200, dtype=torch.float64)
circle = torch.stack([angle.cos(), angle.sin()])
ring = torch.linalg.cholesky(posterior.covariance) @ circle
for axes, (name, path) in zip(panels, paths.items(), strict=True):
    for k in (1, 2, 3):
        axes.plot(*(k * ring + posterior.mean[:, None]), color=TRUTH, lw=1)
    axes.plot(*path[:, 0].T, color=COLOURS[name], lw=0.4)
    axes.plot(*begin, "ko", ms=5)
    axes.set(title=name, ylabel=r"$\theta_2$", aspect="equal")
panels[-1].set_xlabel(r"$\theta_1$")
plt.show()

# %% [markdown]
# In {numref}`fig-sgld-paths` SGD goes to the mode, the point of largest posterior density, and stays close to it.
# SGLD goes there too, and then walks over the whole hill, with nearly as much time in each place as the posterior says.

# %% tags=["hide-input"]
many = posterior.mean.expand(2_000, -1).contiguous()
for name, kernel, near, within in (
    ("SGD", descent, 0.046, 0.004),
    ("SGLD", sampler, 1.06, 0.12),
):
    run = sample(
        kernel, posterior, many, num_samples=6, warm_up=300, thinning=100, seed=2
    )
    squares = (run.samples - posterior.mean) ** 2 / posterior.covariance.diagonal()
    claim(
        f"Variance of {name} about the mode over the posterior's, at this step",
        squares.mean(),
        near=near,
        within=within,
        because="2,000 chains",
    )

# %% [markdown]
# How much noise is right, and why?
#
# ## From diffusion to algorithm
#
# Push a particle downhill and shake it at the same time.
# This is the *overdamped Langevin equation*:
#
# $$
# d\theta = -\nabla U(\theta)\,dt + N(0, 2\,dt).
# $$ (eq-langevin)
#
# Read it as a recipe for a short time $dt$: move by $-\nabla U\,dt$, add to each coordinate independent normal noise of *variance* $2\,dt$, and repeat; the equation means the limit of such paths as $dt \to 0$.
# Which {term}`density` do they settle to?
# We need to know how densities move, here and in the next two chapters.
# Write $\nabla\cdot v = \sum_i\partial_iv_i$ for the divergence of a vector field $v$: how much more flows out of a place than into it.
#
# ```{prf:theorem} Fokker–Planck equation
# :label: thm-diffusion
#
# Let $dz = b(z)\,dt + N(0, 2D(z)\,dt)$ with smooth $b$ and $D$.
# The density $p_t$ of $z$ at time $t$ obeys
#
# $$
# \begin{aligned}
# \partial_tp ={} &-\nabla\cdot(p\,b)\\
# &+ \sum_{ij}\partial_i\partial_j(D_{ij}\,p).
# \end{aligned}
# $$ (eq-diffusion-density)
# ```
#
# ```{prf:proof}
# Let $f$ be smooth, and zero outside a bounded set.
# In a short time $dz$ has mean $b\,dt$ and covariance $2D\,dt$; all else is $o(dt)$, that is, negligible beside $dt$.
# Taylor's formula gives $E[f(z + dz) \mid z] = f + \nabla f\cdot b\,dt + \sum_{ij}D_{ij}\,\partial_i\partial_jf\,dt + o(dt)$.
# Take the average over $z$, and then integrate by parts, once in the first term and twice in the second:
#
# $$
# \begin{aligned}
# \int f\,\partial_tp &= \frac{d}{dt}E[f(z_t)]\\
# &= \int p\,\Bigl(\nabla f\cdot b + \sum_{ij}D_{ij}\,\partial_i\partial_jf\Bigr)\\
# &= \int f\,\Bigl(-\nabla\cdot(p\,b) + \sum_{ij}\partial_i\partial_j(D_{ij}\,p)\Bigr).
# \end{aligned}
# $$
#
# This holds for every such $f$, so what multiplies $f$ is the same on both sides.
# ({prf:ref}`thm-fokker-planck` says under which conditions this is more than a sketch.)
# ```
#
# ```{prf:theorem} The target is stationary
# :label: thm-langevin
#
# If $U$ is smooth and $\int e^{-U} < \infty$, the density $\pi \propto e^{-U}$ is stationary for {eq}`eq-langevin`: $p_0 = \pi$ gives $\partial_tp = 0$.
# ```
#
# ```{prf:proof}
# Here $b = -\nabla U$ and $D = I$, so $\partial_tp = \nabla\cdot(p\nabla U) + \nabla\cdot\nabla p = \nabla\cdot(p\nabla U + \nabla p)$, and $\nabla\pi = -\pi\nabla U$ makes the bracket zero.
# ```
#
# So $\pi$ stands still.
# Other densities move towards it.
# The Fokker–Planck equation can be solved on a grid, where a particle hops from cell to cell: at a rate of $e^{-\Delta U/2}/h^2$ to a neighbour at the distance $h$ whose potential is higher by $\Delta U$.
# (As $h \to 0$ these hops have the right mean, $-U'\,dt$, and the right variance, $2\,dt$; and $\pi$ stands still on the grid too, because $\pi e^{-\Delta U/2}$ is the same in both directions.)
# {numref}`fig-langevin-density` does it for the double well $U = -2\theta^2 + \theta^4$, and follows chains of the algorithm below it.

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
# Now take a step of size $\eta$ instead of $dt$, and put the minibatch gradient in the place of the gradient:
#
# ```{prf:algorithm} SGLD
# :label: alg-sgld
#
# Repeat $\theta \leftarrow \theta - \eta\nabla\tilde U(\theta) + N(0, 2\eta)$, with a constant step $\eta$ or with steps $\eta_t$ that fall.
# ```
#
# This is the algorithm of {cite:t}`welling2011`, who write $\epsilon_t = 2\eta_t$.
# For one {term}`chain` it takes a few lines:


# %%
def sgld(stochastic_gradient, theta, step_size, num_steps, generator):
    """Follow one chain of SGLD from theta (1, d); return its positions."""
    path = []
    for step in range(num_steps):
        gradient = stochastic_gradient(theta, generator, step)
        noise = torch.randn(theta.shape, generator=generator, dtype=theta.dtype)
        theta = theta - step_size * gradient + (2 * step_size) ** 0.5 * noise
        path.append(theta)
    return torch.cat(path)


# %% tags=["hide-input"]
noisy_well = NoisyGradient(well, 4.0)
start = torch.ones(1, 1, dtype=torch.float64)
by_hand = sgld(
    noisy_well.stochastic_gradient, start, 0.01, 50, torch.Generator().manual_seed(0)
)
generator = torch.Generator().manual_seed(0)
kernel = SGLD(0.01)
state, by_package = kernel.init(noisy_well, start, generator), []
for _ in range(50):
    state, _ = kernel.step(noisy_well, state, generator)
    by_package.append(state.position.clone())
claim(
    "Fifty steps of these lines and of the package differ by",
    (by_hand - torch.cat(by_package)).abs().max(),
    at_most=1e-12,
    because="the same formula on the same random numbers; rounding",
    kind="exact",
)

# %% [markdown]
# The package's step moves many chains at once, and knows three things more.
# A {term}`temperature` $T$ makes $e^{-U/T}$ the target; with $T = 0$ it is SGD.
# A noise estimate $\hat B = \tfrac12\eta\hat V$ takes the gradient's own noise out of what is injected: the variance $2\eta(T - \hat B)$ is left.
# A mass $M$ makes the steps $\eta M^{-1}\nabla\tilde U$ and gives the noise the covariance $2\eta M^{-1}$, as {doc}`/book/further/constant_sgd` derives.
# Without being told otherwise it takes $T = 1$, $\hat B = 0$ and $M = 1$.
#
# ```{literalinclude} ../../sgmc/kernels/langevin.py
# :language: python
# :pyobject: SGLD.step
# :start-after: Take one step in every chain
# :dedent: 8
# ```
#
# Why may one ignore the {term}`gradient noise`?
# In a step it has covariance $\eta^2V$, while the injected noise has $2\eta$.
# Their ratio $\tfrac12\eta V$ vanishes with $\eta$.
#
# ## The bias of a constant step, exactly
#
# On $U = \tfrac12\theta^\top A\theta$ with gradient noise $N(0, V)$ the algorithm is $\theta' = (I - \eta A)\theta + N(0, 2\eta I + \eta^2V)$, a linear recursion.
# Nothing in its law has to be simulated.
#
# ```{admonition} Linear chains
# A chain $z' = Fz + \xi$ with a matrix $F$ and independent noise $\xi$ of mean zero and covariance $Q$ is *linear*.
# If $z$ has the covariance $\Sigma$, then $z'$ has $F\Sigma F^\top + Q$.
# So the {term}`stationary law` has the covariance that solves
#
# $$
# \Sigma = F\Sigma F^\top + Q,
# $$ (eq-linear-box)
#
# the *discrete Lyapunov equation*.
# {prf:ref}`thm-lyapunov` proves that there is one solution if $F$ shrinks every direction in the long run.
# The functions of `sgmc.splittings.linear_laws` make $F$ and $Q$ for a sampler, step size, gradient noise and all, and solve the equation.
# So a program can be compared with a law that is exact, at any step size.
# ```
#
# ```{prf:theorem} Stationary variance of SGLD
# :label: thm-sgld-variance
#
# In one dimension with curvature $a$ and $0 < \eta < 2/a$ the stationary variance is
#
# $$
# \begin{aligned}
# \sigma^2 &= \frac{2\eta + \eta^2V}{1 - (1 - \eta a)^2}\\
# &= \frac1a\cdot\frac{1 + \frac12\eta V}{1 - \frac12\eta a}.
# \end{aligned}
# $$ (eq-sgld-variance)
# ```
#
# ```{prf:proof}
# Stationarity of the variance is $\sigma^2 = (1 - \eta a)^2\sigma^2 + 2\eta + \eta^2V$, and $1 - (1 - \eta a)^2 = \eta a(2 - \eta a)$.
# ```
#
# The truth is $1/a$.
# There are two errors: the numerator's comes from the minibatch, the denominator's from the step.
# Both make the variance too large, and both are of the order of $\eta$.
# With the right $\hat B = \tfrac12\eta V$ the numerator becomes 1, and only the step's error is left.
# At $\eta = 2/a$ the variance is infinite: a longer step overshoots further than it came.
# {prf:ref}`thm-sgld-covariance` is the same with matrices.
# Here are the exact variances where $a = 1$ and $V = 4$.

# %%
step_sizes = torch.logspace(-2, -0.15, 40, dtype=torch.float64)
one = torch.eye(1, dtype=torch.float64)


def exact_variance(step_size, noise_variance=4.0, noise_estimate=0.0):
    return float(
        langevin_chain(
            one, step_size, noise_variance, noise_estimate
        ).stationary_covariance()[0, 0]
    )


noisy = NoisyGradient(Gaussian.standard(1), 4.0)
formula = [(1 + 2 * h) / (1 - h / 2) for h in step_sizes.tolist()]

# %% tags=["hide-input"]
table_steps = (0.05, 0.1, 0.2, 0.4)
show_table(
    ["step size η", "no estimate", "right estimate ½ηV"],
    [
        [f"{h:g}", f"{exact_variance(h):.4f}", f"{exact_variance(h, 4.0, 2 * h):.4f}"]
        for h in table_steps
    ],
)

# %% [markdown]
# Without an estimate the variance leaves the truth long before the step is near its limit, 2: at a fifth of it the variance is more than twice what it should be.
# With the right estimate it is a quarter too large there, which is the step's own error.
# {numref}`fig-sgld-variance` has more steps, and what chains measure.

# %% tags=["hide-input"]
measured = {}
for h in table_steps:
    for label, estimate in (("no estimate", 0.0), ("right estimate", 2.0 * h)):
        run = sample(
            SGLD(h, noise_estimate=estimate),
            noisy,
            torch.zeros(5_000, 1),
            num_samples=30,
            warm_up=round(6 / h),
            thinning=max(1, round(0.5 / h)),
            seed=1,
        )
        measured[h, label] = run.mean_and_standard_error(lambda x: x**2)

# %% mystnb={"figure": {"caption": "Stationary variance of SGLD on a standard Gaussian with gradient noise N(0, 4): exact laws (lines) and measurements (points, two standard errors); the truth is 1 (grey).", "name": "fig-sgld-variance"}, "image": {"alt": "Over step sizes from 0.01 to 0.7, a solid line that climbs from 1 to nearly 4, and a dashed one that stays below 1.35; points lie on both."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.4, 3.4))
axes.semilogx(step_sizes, formula, color=COLOURS["SGLD"], label=r"$\hat B = 0$")
axes.semilogx(
    step_sizes[step_sizes < 0.5],
    [exact_variance(h, 4.0, 2 * h) for h in step_sizes.tolist() if h < 0.5],
    "--",
    color=COLOURS["SGLD"],
    label=r"$\hat B = \frac{1}{2}\eta V \leq 1$",
)
for (h, label), (value, error) in measured.items():
    axes.errorbar(
        h,
        float(value),
        2 * float(error),
        fmt="o" if label == "no estimate" else "s",
        ms=4,
        color=COLOURS["SGLD"],
    )
axes.axhline(1, color=TRUTH, zorder=0)
axes.set(xlabel=r"step size $\eta$", ylabel="stationary variance")
axes.legend()
plt.show()

# %% [markdown]
# In {numref}`fig-sgld-variance` the points lie on the lines of the exact law.
# The solid line, without an estimate, climbs much faster than the dashed one, which ends before $\eta = \tfrac12$: there $\hat B = 1$, and nothing is left to inject.

# %% tags=["hide-input"]
claim(
    "Largest error of the formula against the discrete Lyapunov equation, 40 step "
    "sizes",
    max(
        abs(f - exact_variance(h))
        for f, h in zip(formula, step_sizes.tolist(), strict=True)
    ),
    at_most=1e-10,
    because="rounding",
    kind="exact",
)

errors = [
    abs(float(value) - exact_variance(h, 4.0, 0.0 if label == "no estimate" else 2 * h))
    / float(error)
    for (h, label), (value, error) in measured.items()
]
claim(
    "Largest distance of eight measured variances from these, in standard errors",
    max(errors),
    at_most=5,
    because="5,000 chains each; exceeded by chance once in 200,000 times",
)

# %% [markdown]
# ## Real minibatches, and their price
#
# A Bayesian linear regression has a Gaussian posterior that we know exactly.
# With $N = 1{,}000$, $d = 3$ and minibatches of 20 its noise is no longer constant: $g_i = x_i(x_i\cdot\theta - y_i)$ is linear in $\theta$, so $V(\theta)$ is a quadratic function, smallest near the posterior mean $\hat\theta$.
# Its law is no longer Gaussian, but its covariance can still be found exactly, in four steps.
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
# There is a fixed point if and only if the map from $\Sigma$ to the right side without $2\eta I$ and without the noise at the mean has a spectral radius below one ({prf:ref}`thm-contractions`): a stricter condition than $\eta a < 2$, and the one under which the chain has a variance at all.
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

# %% [markdown]
# Compare the noise $V \approx N^2/n$ with the curvature $a \approx N$.
# At a step of the order of $1/N$, the largest that is stable, the excess $\tfrac12\eta V$ is of the order of $N/n$; to make it small the step must be small against $n/N^2$.
# Then the chain needs more than $1/(\eta a) = N/n$ steps to forget where it was, and these read $n$ examples each: **one pass over the data for one independent draw, at the least**.
# SGLD does not beat the data set; it spreads one pass over many small steps {cite:p}`brosse2018,nemeth2021`.
# What it saves is the way from a bad start, as stochastic gradient descent does.
#
# ## Falling steps: two phases
#
# The bias vanishes if the steps do.
# Let $\eta_t$ fall to 0, with $\sum_t\eta_t = \infty$, to get anywhere.
# The conditions of {cite:t}`robbins1951` ask for $\sum_t\eta_t^2 < \infty$ as well, as stochastic gradient descent needs it to come to rest. A sampler does not: the bias of its averages falls as $\sum_t\eta_t^2/\sum_t\eta_t$, or as $1/\sum_t\eta_t$ where the sum of the squares is bounded, and vanishes either way ({prf:ref}`thm-sgld-consistent`).
# A usual choice that meets both conditions is $\eta_t = c\,(b + t)^{-\gamma}$ with $\tfrac12 < \gamma \le 1$.
#
# While $\tfrac12\eta_tV > 1$ the gradient's noise is louder than ours.
# The algorithm is then stochastic gradient descent in all but name: it falls towards the mode and rattles around it, far too wide.
# Once $\tfrac12\eta_tV < 1$ the injected noise takes over, and draws are worth keeping.
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
figure, (left, right) = plt.subplots(2, 1, figsize=(5.2, 5.8), sharex=True)
steps = torch.arange(1, num_steps + 1)
mean, spread = annealed.samples.mean(1)[:, 0], annealed.samples.std(1)[:, 0]
left.axhspan(-1, 1, color=TRUTH, alpha=0.35, lw=0)
left.fill_between(
    steps, mean - spread, mean + spread, color=COLOURS["SGLD"], alpha=0.3, lw=0
)
left.semilogx(steps, mean, color=COLOURS["SGLD"])
for sign in (-1, 0, 1):
    left.semilogx(steps, means + sign * variances.sqrt(), "--", color="black", lw=0.8)
left.set(ylabel=r"$\theta$: mean ± standard deviation")
right.loglog(
    steps,
    eta**2 * noise_variance,
    "--",
    color=COLOURS["SGLD"],
    label=r"gradient's noise $\eta_t^2 V$",
)
right.loglog(steps, 2 * eta, color=COLOURS["SGLD"], label=r"injected noise $2\eta_t$")
right.set(xlabel="step", ylabel="variance added in a step")
right.legend(loc="lower left")
for axes in (left, right):
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
# With falling steps not all draws are worth the same.
# A draw stands for the time $\eta_t$ that the diffusion spends there, so the average over time is
#
# $$
# \hat E[f] = \frac{\sum_t\eta_tf(\theta_t)}{\sum_t\eta_t}.
# $$ (eq-weighted)
#
# It converges to the expectation under conditions that {prf:ref}`thm-sgld-consistent` states; on a Gaussian {prf:ref}`thm-sgld-rate` says how fast.
# Equal weights would converge too, but they count the many late draws fully, although these hardly move and repeat each other.
# So the weighted average has the smaller variance.
# On the other hand it counts the early draws more, which are biased the most.
# Here the standard deviation is three per cent smaller, and the mean of $\theta^2$ eight per cent larger.
# That weighted mean is 1.47, where 1 is right: which draws one throws away matters more than their weights.

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
# {ref}`ex-sgld-rate` shows where the third comes from.

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
# ## In practice
#
# * Begin with a step well below $2/a$ for the largest curvature $a$, which is of the order of $N$.
# * Compare $\tfrac12\eta V$ with 1 before you believe any posterior width; estimate $V$ from the spread of a few minibatch gradients.
# * If the number of steps is known beforehand a constant step is simpler than a falling one, its bias is known {cite:p}`vollmer2016`, and by {ref}`ex-sgld-rate` the rate is the same.
# * SGLD is a random walk: to cross a ridge that is $k$ times as long as it is wide it needs of the order of $k^2$ steps.
#   Momentum does better, and leads to {doc}`/book/tutorial/naive_sghmc`.
#
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | Langevin equation | $d\theta = -\nabla U\,dt + N(0, 2\,dt)$ | {eq}`eq-langevin` |
# | how densities move | $\partial_tp = -\nabla\cdot(p\,b) + \sum_{ij}\partial_i\partial_j(D_{ij}\,p)$ | {eq}`eq-diffusion-density` |
# | SGLD | $\theta \leftarrow \theta - \eta\nabla\tilde U(\theta) + N(0, 2\eta)$ | {prf:ref}`alg-sgld` |
# | linear chains | $\Sigma = F\Sigma F^\top + Q$ | {eq}`eq-linear-box` |
# | variance in a bowl | $\sigma^2 = \frac1a\,(1 + \frac12\eta V)/(1 - \frac12\eta a)$ | {eq}`eq-sgld-variance` |
# | weighted average | $\sum_t\eta_tf(\theta_t)/\sum_t\eta_t$ | {eq}`eq-weighted` |
#
# ## Change it
#
# * Set `N, d, n = 1_000, 3, 20` to `N, d, n = 1_000, 3, 100`: the claim on the excess width shows ✗, near 10, because it follows $N/n$, which is 10 now.
#   The measured widths still agree with the exact law.
# * Set `(2 * step_size) ** 0.5 * noise` in the function `sgld` to `2 * step_size * noise`: the claim that these lines equal the package shows ✗.
#   {ref}`ex-sgld-factor` asks what the program samples now.
# * Set `2 * (20 + t) ** -0.8` to `2 * (20 + t) ** -1.0`: steps fall faster, the phase of sampling begins after 80 steps instead of 297, and three claims about the old schedule show ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-sgld-factor
#
# A program injects noise of *standard deviation* $2\eta$ instead of variance $2\eta$.
# At which temperature does it sample for small $\eta$?
# ```
#
# ```{solution} ex-sgld-factor
# :class: dropdown
#
# The variance is $4\eta^2 = 2\eta\cdot2\eta$: the temperature is $2\eta$, plus the $\tfrac12\eta V$ of the minibatches.
# For small $\eta$ both are nearly zero.
# It optimises, and calls the result a posterior.
# ```
#
# ```{exercise}
# :label: ex-sgld-zero
#
# What is the stationary variance at temperature zero?
# Is SGD a sampler?
# ```
#
# ```{solution} ex-sgld-zero
# :class: dropdown
#
# Without injected noise {eq}`eq-sgld-variance` becomes $\eta V/(a(2 - \eta a))$.
# So SGD samples too, for small $\eta$ at the temperature $\tfrac12\eta V$, provided that the noise is the same in all directions {cite:p}`mandt2017`.
# It is not: by {eq}`eq-noise-curvature` it has the shape of the curvature, $V = \frac Nna$, and then the variance is $\frac Nn\cdot\frac\eta2$ in every direction, stiff or soft.
# That is a ball, not the posterior; {doc}`/book/further/constant_sgd` goes on from here.
# ```
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
# ```{exercise}
# :label: ex-sgld-rate
#
# In $K$ steps of constant size $\eta$ an average has a bias of about $c_1\eta$ and a Monte Carlo variance of about $c_2/(\eta K)$.
# Which $\eta$ makes the mean square error smallest, and how does it fall with $K$?
# What does that say about $\gamma$?
# ```
#
# ```{solution} ex-sgld-rate
# :class: dropdown
#
# The derivative of $c_1^2\eta^2 + c_2/(\eta K)$ vanishes at $\eta = (c_2/2c_1^2K)^{1/3}$, where both terms are of the order of $K^{-2/3}$.
# So the error is of the order of $K^{-1/3}$.
# A falling sequence that is right for every $K$ at once must have $\eta_K \propto K^{-1/3}$ as well.
# ```
#
# ````{exercise}
# :label: ex-sgld-mass
#
# **Write it yourself.**
# On $U = \tfrac12\theta^\top A\theta$ with $A = \operatorname{diag}(1, 100)$ the stiff direction limits the step and the soft one has to wait.
# With a mass $M = \operatorname{diag}(m_1, \dots, m_d)$ a step of SGLD is $\theta \leftarrow \theta - \eta M^{-1}\nabla\tilde U(\theta) + N(0, 2\eta M^{-1})$.
# Write it.
# Which mass is the best one here?
#
# ```python
# def sgld_step_with_mass(gradient, theta, step_size, mass, generator):
#     """One step of one chain, with the gradient (1, d) at theta (1, d), a mass (d,)
#     and noise from the generator: the new theta (1, d)."""
#     ...
# ```
# ````
#
# ```{solution} ex-sgld-mass
# :class: dropdown
#
# Divide the gradient by $m_i$, and the noise by $\sqrt{m_i}$, because $2\eta/m_i$ is a variance.
# With $M = A$ the chain on the bowl is $\theta' = (1 - \eta)\theta + N(0, 2\eta A^{-1})$: all directions forget at the same rate, and the condition number no longer matters.
# The folded code has the step, compares it with the package, and checks the second sentence.
# ```


# %% tags=["hide-input"]
def sgld_step_with_mass(gradient, theta, step_size, mass, generator):
    """One step of one chain, with the gradient (1, d) at theta (1, d), a mass (d,)
    and noise from the generator: the new theta (1, d)."""
    noise = torch.randn(theta.shape, generator=generator, dtype=theta.dtype)
    return theta - step_size * gradient / mass + (2 * step_size / mass) ** 0.5 * noise


stiff = torch.tensor([1.0, 100.0], dtype=torch.float64)
valley = Gaussian(torch.diag(1 / stiff))
theta = torch.ones(1, 2, dtype=torch.float64)
kernel, generator = SGLD(0.1, mass=stiff), torch.Generator().manual_seed(0)
state, _ = kernel.step(valley, kernel.init(valley, theta, generator), generator)
by_hand = sgld_step_with_mass(
    valley.gradient(theta), theta, 0.1, stiff, torch.Generator().manual_seed(0)
)
claim(
    "A step of this function and of the package's kernel with a mass differ by",
    (by_hand - state.position).abs().max(),
    at_most=1e-12,
    because="the same formula on the same random numbers; rounding",
    kind="exact",
)
chain = langevin_chain(torch.diag(stiff), 0.1, mass=stiff)
claim(
    "Distance of the transition matrix with M = A from (1 − η)I",
    (chain.transition - 0.9 * torch.eye(2, dtype=torch.float64)).abs().max(),
    at_most=1e-12,
    because="algebra; rounding",
    kind="exact",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`welling2011` for the algorithm; {cite:t}`teh2016` for falling and {cite:t}`vollmer2016` for constant steps; {cite:t}`mandt2017` for SGD read as a sampler; {cite:t}`pavliotis2014` for the diffusions behind it.
