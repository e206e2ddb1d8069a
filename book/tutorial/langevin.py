# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Noise on purpose: Langevin dynamics
#
# ```{div} page-head
# Page 6 of 12 · 19 minutes to read, 10 to play · Running: about 7 seconds
# ```
#
# ```{index} ! SGLD, ! Langevin dynamics
# ```

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt
import torch

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.scoreboard import exact_variance, show_scoreboard
from sgmc import sample
from sgmc.kernels import SGLD
from sgmc.posteriors import LinearRegression
from sgmc.splittings import langevin_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Large steps are too wide on purpose, and some chains are looked at on their way.
warnings.filterwarnings("ignore", message=".*do not agree|.*too wide|.*too narrow")

# %% [markdown]
# Minibatch gradients are noisy, and stochastic gradient descent (SGD) lives with that: it repeats $\theta \leftarrow \theta - \eta\nabla\tilde U(\theta)$ with a small {term}`step size` $\eta$, and ends close to the mode.
# A sampler should not end there, but visit the whole posterior. The simplest way to achieve that is to add noise of our own:
#
# $$
# \theta \leftarrow \theta - \eta\nabla\tilde U(\theta) + N(0, 2\eta).
# $$ (eq-sgld-step)
#
# {numref}`fig-sgld-paths` shows both on the posterior of a linear regression, from the same start, with the same steps and the same minibatches.
# SGD goes to the mode and stays. The other one, which is called SGLD, goes there too and then wanders all over the bowl, like a ball in syrup that is kicked from all sides.
#
# *A guess before you read on.*
# Our noise must have a variance of $2\eta$, no more and no less. But the gradient brings noise as well, of variance $\eta^2V$, which nobody has asked for.
# How large may $\eta$ be before that noise shows?

# %% mystnb={"figure": {"caption": "Three thousand steps of SGD (above) and of SGLD (below) on the posterior of two coefficients, from the same start (black dot). Grey: one, two and three standard deviations of the posterior.", "name": "fig-sgld-paths"}, "image": {"alt": "Two panels with three nested slanting ellipses. In the upper a path runs from a dot outside of the ellipses to their centre, and ends in a small knot there. In the lower a path from the same dot covers the two inner ellipses and reaches the third."}} tags=["hide-input"]
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
# The scoreboard so far:

# %% tags=["hide-input"]
show_scoreboard(6)

# %% [markdown]
# ## From diffusion to algorithm
#
# Push a particle downhill and shake it at the same time.
# This is the *overdamped Langevin equation*:
#
# $$
# d\theta = -\nabla U(\theta)\,dt + N(0, 2\,dt).
# $$ (eq-langevin)
#
# Read it as a recipe for a short time $dt$: move by $-\nabla U\,dt$, add to each coordinate independent normal noise of *variance* $2\,dt$, and repeat; the equation means the limit of such paths as $dt \to 0$. (Elsewhere $N(0, 2\,dt)$ is written $\sqrt2\,dW$.)
# Which {term}`density` do they settle to?
# We need to know how densities move, here and on the next two pages.
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
# So $\pi$ stands still. Other densities move towards it, under a mild condition on the gradient at infinity ({cite:t}`roberts1996`, Theorem 2.1; {doc}`/book/further/sgld` shows densities on their way).
# A step of size $\eta$ in place of $dt$, with the minibatch gradient, is the algorithm of {cite:t}`welling2011`, who write $\epsilon_t = 2\eta_t$:
#
# ```{prf:algorithm} SGLD
# :label: alg-sgld
#
# Repeat $\theta \leftarrow \theta - \eta\nabla\tilde U(\theta) + N(0, 2\eta)$, with a constant step $\eta$ or with steps $\eta_t$ that fall.
# ```


# %%
def sgld_step(gradient, theta, step_size, normal):
    noise = (2 * step_size) ** 0.5 * normal
    return theta - step_size * gradient(theta) + noise


# %% [markdown]
# The package's kernel is this line for many chains, with three things that come later: a noise estimate $\hat B$ (below), a mass, and a {term}`temperature` $T$, at which the noise has the variance $2\eta T$ and the density is $e^{-U/T}$; they are 0, 1 and 1 here:
#
# ````{admonition} The step of the package
# :class: dropdown
#
# ```{literalinclude} ../../sgmc/kernels/langevin.py
# :language: python
# :pyobject: SGLD.step
# :start-after: Take one step in every chain
# :dedent: 8
# ```
# ````
#
# Why may one ignore the {term}`gradient noise`?
# The two kinds of noise are of different orders: the injected noise has the variance $2\eta$, the gradient's $\eta^2V$.
# Their ratio $\tfrac12\eta V$ vanishes with $\eta$, so small steps drown the gradient's noise in ours. How small is small?
#
# ## What a finite step costs, exactly
#
# On $U = \tfrac12\theta^\top A\theta$ with gradient noise $N(0, V)$ the algorithm is $\theta' = (I - \eta A)\theta + N(0, 2\eta I + \eta^2V)$, a linear recursion.
# Nothing about its stationary distribution has to be simulated. The idea is in the box, and it carries every row of the scoreboard in which nothing is rejected.
#
# ```{admonition} Linear chains
# A chain $z' = Fz + \xi$ with a matrix $F$ and independent noise $\xi$ of mean zero and covariance $Q$ is *linear*.
# If $z$ has the covariance $\Sigma$, then $z'$ has $F\Sigma F^\top + Q$.
# So the stationary distribution has the covariance that solves
#
# $$
# \Sigma = F\Sigma F^\top + Q,
# $$ (eq-linear-box)
#
# the *discrete Lyapunov equation*.
# {prf:ref}`thm-lyapunov` proves that there is one solution if $F$ shrinks every direction in the long run.
# The functions of `sgmc.splittings.linear_laws` make $F$ and $Q$ for a sampler, step size, gradient noise and all, and solve the equation.
# So a program can be compared with the exact distribution of its chain, the *exact law*, at any step size.
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
# There are two errors, both of the order of $\eta$ and both making the variance too large: the numerator's comes from the minibatch, the denominator's from the step.
# This answers the guess: what counts is $\tfrac12\eta V$ against 1.
# The row of the scoreboard has $\eta = \varepsilon^2 = 0.01$, as large as SGHMC's limit on page 8. (Page 4's HMC with $L = 1$ has $\eta = \tfrac12\varepsilon^2$.) With $V = 4$ the ratio $\tfrac12\eta V$ is 0.02; together with the step's own 0.005 this makes the variance 1.025.
# With ten times that step it is 1.26, and at $\eta = 2/a$ infinite: there a step maps $\theta$ to $-\theta$, so nothing shrinks while noise is added, and beyond it each step lands farther out.
#
# If we knew the noise of the gradient, we could inject that much less: with a *noise estimate* $\hat B = \tfrac12\eta V$ inject the variance $2\eta(1 - \hat B) = 2\eta - \eta^2V$. Both noises together then have $2\eta$, and only the step's error is left {cite:p}`vollmer2016`.
# (Since no variance is negative, this works up to $\tfrac12\eta V = 1$.)
# {numref}`fig-sgld-variance` shows both.

# %% mystnb={"figure": {"caption": "Stationary variance of SGLD in the bowl with gradient noise $N(0, 4)$: exact laws (lines) and measurements (points). The truth is 1 (grey).", "name": "fig-sgld-variance"}, "image": {"alt": "Over step sizes from 0.01 to 0.7, a solid line that climbs from 1 to nearly 4, and a dashed one that stays below 1.35; points lie on both."}} tags=["hide-input"]
one, noisy_bowl = torch.eye(1), NoisyGradient(Gaussian.standard(1), 4.0)


def exact(step_size, noise_estimate=0.0):
    chain = langevin_chain(one, step_size, 4.0, noise_estimate)
    return float(chain.stationary_covariance()[0, 0])


measured = {}
for step_size in (0.01, 0.05, 0.1, 0.2, 0.4):
    for estimate in (0.0, 2 * step_size):
        run = sample(
            SGLD(step_size, noise_estimate=estimate),
            noisy_bowl,
            torch.zeros(5_000, 1),
            num_samples=20,
            warm_up=round(6 / step_size),
            thinning=max(1, round(0.5 / step_size)),
            seed=1,
        )
        value, error = run.mean_and_standard_error(lambda x: x**2)
        measured[step_size, estimate] = float(value), float(error)
grid = torch.logspace(-2, -0.15, 40).tolist()
short = [h for h in grid if h < 0.5]
figure, axes = plt.subplots(figsize=(5.4, 3.2))
colour = COLOURS["SGLD"]
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.semilogx(grid, [exact(h) for h in grid], color=colour)
axes.semilogx(short, [exact(h, 2 * h) for h in short], "--", color=colour)
for (step_size, estimate), (value, _) in measured.items():
    axes.plot(step_size, value, "s" if estimate else "o", ms=4, color=colour)
axes.text(0.17, 2.1, r"$\hat B = 0$", color=colour)
axes.text(0.2, 0.72, r"$\hat B = \frac{1}{2}\eta V$", color=colour)
axes.set(xlabel=r"step size $\eta$", ylabel="stationary variance", ylim=(0.5, 4))
plt.show()

# %% tags=["hide-input"]
show_scoreboard(7)
claim(
    "Largest distance of ten measured variances from the exact ones, in standard "
    "errors",
    max(
        abs(value - exact(h, estimate)) / error
        for (h, estimate), (value, error) in measured.items()
    ),
    at_most=5,
    errors=True,
    because="5,000 chains each; exceeded by chance once in 170,000 times",
)
claim(
    "Measured variance of the new row, η = 0.01",
    measured[0.01, 0.0][0],
    near=exact_variance("sgld"),
    standard_error=measured[0.01, 0.0][1],
    because="the exact law of the chain; 5,000 chains",
)
claim(
    "Exact variance of the new row less that without gradient noise",
    exact_variance("sgld")
    - float(langevin_chain(one, 0.01).stationary_covariance()[0, 0]),
    near=0.0201,
    within=1e-4,
    because="exact laws: 1.0251 and 1.0050",
    kind="exact",
)
claim(
    "Largest error of the formula against the discrete Lyapunov equation, 40 steps",
    max(abs((1 + 2 * h) / (1 - h / 2) - exact(h)) for h in grid),
    at_most=1e-6,
    because="rounding of the step sizes",
    kind="exact",
)
noisy_well, generator = NoisyGradient(DoubleWell(), 4.0), torch.Generator()
theta = torch.ones(1, 1, dtype=torch.float64)
state = SGLD(0.01).init(noisy_well, theta, generator.manual_seed(0))
again = torch.Generator().manual_seed(0)
for step in range(50):
    state, _ = SGLD(0.01).step(noisy_well, state, generator)
    omega = noisy_well.draw_minibatches(theta, again, step, 1)[0]
    normal = torch.randn(1, 1, generator=again, dtype=torch.float64)
    theta = sgld_step(
        lambda x, omega=omega: noisy_well.gradient_given(x, omega), theta, 0.01, normal
    )
claim(
    "Fifty steps of the function above and of the package differ by",
    (theta - state.position).abs().max(),
    at_most=1e-12,
    because="the same formula on the same random numbers; rounding",
    kind="exact",
)

# %% [markdown]
# ## What small steps cost
#
# For a posterior of $N$ examples, $V$ is of the order of $N^2/n$ and the curvature of the order of $N$.
# To keep $\tfrac12\eta V$ small, the step must be small against $n/N^2$. The chain forgets where it was in about $1/(\eta a)$ steps, which is then more than $N/n$, and each reads $n$ examples.
# So with the plain gradient, and up to a constant, one independent sample costs **at least one pass over the data**, whatever the size of the minibatch.
# SGLD does not beat the data set; it spreads one pass over many small steps {cite:p}`brosse2018,nemeth2021`.
# And it is a random walk, which needs of the order of $k^2$ steps to cross a ridge that is $k$ times as long as it is wide.
#
# {doc}`/book/further/sgld` measures this price on a regression, where the noise of real minibatches depends on $\theta$, and lets the steps fall to zero, so that the bias vanishes.
#
# **To remember:** there are two kinds of noise, of order $\eta$ (ours) and of order $\eta^2$ (the gradient's); small steps drown the second in the first, at the price of a random walk.
#
# On {doc}`pages 3 and 4 </book/tutorial/hamiltonian_dynamics>` momentum was the cure for the random walk.
# So put the minibatch gradient into HMC; {doc}`the next page </book/tutorial/naive_sghmc>` does, and it overheats.
#
# ## Change it
#
# * In `sgld_step` set `(2 * step_size) ** 0.5 * normal` to `2 * step_size * normal`: the claim on the function and the package shows ✗. {ref}`ex-sgld-factor` asks what the program samples now.
# * Set `NoisyGradient(Gaussian.standard(1), 4.0)` to `NoisyGradient(Gaussian.standard(1), 16.0)`: the points leave the lines, which were made for $V = 4$, most at the largest steps, and the two claims on them show ✗.
# * In the first figure set `SGLD(step_size=4e-4)` to `SGLD(step_size=4e-3)`: the path is far too wide, and the claim on its variance shows ✗.
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
# But the noise of a minibatch is not the same in all directions: by {eq}`eq-noise-curvature` it has the shape of the curvature, $V = \frac Nna$, and then the variance is $\frac Nn\cdot\frac\eta2$ in every direction, stiff or soft.
# That is a ball, not the posterior; {doc}`/book/further/constant_sgd` goes on from here.
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
# {cite:t}`welling2011` for the algorithm; {cite:t}`vollmer2016` for constant steps and the noise estimate; {cite:t}`mandt2017` for SGD read as a sampler; {cite:t}`pavliotis2014` for the diffusions behind it.
