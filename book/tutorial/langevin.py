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
# Page 6 of 12 · 37 minutes to read, 10 to play · Running: about 7 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! SGLD, ! Langevin dynamics
# ```

# %%
import torch

from booklib.page.scoreboard import show_row

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import at_most, at_most_errors, check, near
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.scoreboard import exact_variance
from sgmc.kernels import SGLD
from sgmc.posteriors import LinearRegression
from sgmc.splittings import langevin_chain
from sgmc.targets import Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# Minibatch gradients are noisy, and stochastic gradient descent (SGD) lives with that: it repeats $\theta \leftarrow \theta - \eta\nabla\tilde U(\theta)$ with a small {term}`step size` $\eta$, and ends close to the mode.
# A sampler should not end there, but visit the whole posterior. The simplest way to achieve that is to add noise of our own:
#
# $$
# \theta \leftarrow \theta - \eta\nabla\tilde U(\theta) + N(0, 2\eta).
# $$ (eq-sgld-step)
#
# In code, for one chain or for many at once, with a {term}`temperature` that is 1 for a sampler, and 0 for SGD:


# %%
def sgld_step(gradient, theta, step_size, generator, temperature=1.0):
    downhill = theta - step_size * gradient(theta)
    noise = torch.randn(theta.shape, generator=generator)
    return downhill + (2 * temperature * step_size) ** 0.5 * noise


# %% [markdown]
# {numref}`fig-sgld-paths` shows both on the posterior of a linear regression, from the same start, with the same steps and the same minibatches.
# SGD goes to the mode and stays. The other one, which is called SGLD, goes there too and then wanders all over the bowl, like a ball in syrup that is kicked from all sides.
#
# *A guess before you read on.*
# For small $\eta$ the noise of a step must have the variance $2\eta$, no more and no less. We inject all of it, but the gradient brings noise as well, of variance $\eta^2V$, which nobody has asked for.
# How large may $\eta$ be before that noise shows?

# %% mystnb={"figure": {"caption": "Three thousand steps of SGD (above) and of SGLD (below) on the posterior of two coefficients, from the same start (black dot). Grey: one, two and three standard deviations of the posterior.", "name": "fig-sgld-paths"}, "image": {"alt": "Two panels with three nested slanting ellipses. In the upper a path runs from a dot outside of the ellipses to their centre, and ends in a small knot there. In the lower a path from the same dot covers the two inner ellipses and reaches the third."}} tags=["hide-input"]
generator = torch.Generator().manual_seed(1)
points = torch.randn(100, 2, generator=generator, dtype=torch.float64)
points[:, 1] = 0.7 * (points[:, 0] + points[:, 1])
noise = torch.randn(100, generator=generator, dtype=torch.float64)
posterior = LinearRegression(points, points[:, 0] - points[:, 1] + noise, batch_size=20)
begin = posterior.mean + torch.tensor([-0.6, 0.5], dtype=torch.float64)
rate, paths = 4e-4, {}
for name, temperature in (("SGD", 0.0), ("SGLD", 1.0)):
    path = [begin.repeat(100, 1)]  # a hundred chains, of which one is drawn
    for step in range(3_000):
        generator.manual_seed(step)  # both see the same minibatches
        gradient = posterior.stochastic_gradient(path[-1], generator)
        settings = rate, generator, temperature
        path.append(sgld_step(lambda theta: gradient, path[-1], *settings))
    paths[name] = torch.stack(path)
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
for name, bound in (("SGD", near(0.046, 0.006)), ("SGLD", near(1.06, 0.12))):
    squares = (paths[name][1_000:] - posterior.mean) ** 2
    check(
        f"spread-{name}",
        (squares / posterior.covariance.diagonal()).mean(),
        bound,
        because="a hundred chains",
        says=f"Variance of {name} about the mode over the posterior's, at this step",
    )

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
# Read it as a recipe for a short time $dt$: move by $-\nabla U\,dt$, add to each coordinate independent normal noise of *variance* $2\,dt$, and repeat; the equation means the limit of such paths as $dt \to 0$. Elsewhere $N(0, 2\,dt)$ is written $\sqrt2\,dW$.
# $N(0, 2\,dt)$ has the *standard deviation* $\sqrt{2\,dt}$, much larger than $dt$: in a short time the noise beats the slope, and only over a time of order one, when the pushes of the slope have added up and much of the noise has cancelled, do both count.
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
# {prf:ref}`thm-fokker-planck` says under which conditions this is more than a sketch.
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
# So $\pi$ stands still. Other densities move towards it, under a mild condition on the gradient at infinity ({cite:t}`roberts1996`, Theorem 2.1).
# A step of size $\eta$ in place of $dt$, with the minibatch gradient, is the algorithm of {cite:t}`welling2011`, who write $\epsilon_t = 2\eta_t$:
#
# ```{prf:algorithm} SGLD
# :label: alg-sgld
#
# Repeat $\theta \leftarrow \theta - \eta\nabla\tilde U(\theta) + N(0, 2\eta)$, with a constant step $\eta$ or with steps $\eta_t$ that fall.
# ```
#
# Its step is `sgld_step` above. In the package, `SGLD(step_size)` is the same for many chains, with a mass as well; at the temperature $T$ both sample $e^{-U/T}$, up to the errors of the step that follow.
# No step is rejected, so SGLD has no {prf:ref}`detailed balance <thm-detailed-balance>` with the posterior: its stationary distribution is another one.
#
# Why may one ignore the {term}`gradient noise`?
# The two kinds of noise are of different orders: the injected noise has the variance $2\eta$, the gradient's $\eta^2V$.
# Their ratio $\tfrac12\eta V$ vanishes with $\eta$, so small steps drown the gradient's noise in ours. How small is small?
#
# ## What a finite step costs, exactly
#
# On $U = \tfrac12\theta^\top A\theta$ with gradient noise $N(0, V)$ the algorithm is $\theta' = (I - \eta A)\theta + N(0, 2\eta I + \eta^2V)$, a linear recursion.
# Nothing about its stationary distribution has to be simulated. The idea is in the box, and it carries every row of the scoreboard in which nothing is rejected or chosen.
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
# In the bowl $U = \tfrac12\theta^2$ with $V = 4$ we take $\eta = \varepsilon^2 = 0.01$, because a sampler with momentum and step $\varepsilon$ becomes this one if it forgets its momentum at every step (page 8). The ratio $\tfrac12\eta V$ is 0.02; together with the step's own 0.005 this makes the variance 1.025.
# With ten times that step it is 1.26, and at $\eta = 2/a$ infinite: there a step maps $\theta$ to $-\theta$, so nothing shrinks while noise is added, and beyond it each step lands farther out.
#
# Five thousand chains of `sgld_step` make this row of the scoreboard:

# %%
generator = torch.Generator().manual_seed(6)


def noisy_bowl(theta):
    """The gradient of U = ½θ², with noise of variance V = 4."""
    return theta + 2 * torch.randn(theta.shape, generator=generator)


def sgld(step_size, temperature=1.0):
    """Each θ from the time 5 to the time 15, in 5,000 chains."""
    theta, samples = torch.zeros(5_000), []
    for step in range(round(15 / step_size)):
        theta = sgld_step(noisy_bowl, theta, step_size, generator, temperature)
        if step * step_size > 5:
            samples.append(theta)
    return torch.stack(samples)


show_row("sgld", sgld(0.01))

# %% [markdown]
# The row's {c}`sgld` is more than 1 by the two errors of the step.
# If we knew the noise of the gradient, we could inject that much less: with a *noise estimate* $\hat\beta = \tfrac12\eta V$ inject the variance $2\eta(1 - \hat\beta) = 2\eta - \eta^2V$. Both noises together then have $2\eta$, and only the step's error is left {cite:p}`vollmer2016`.
# Since no variance is negative, this works up to $\tfrac12\eta V = 1$.
# This $\hat\beta$ is a pure number; the $\hat B = \tfrac12\varepsilon V$ of the samplers with momentum is a rate, and $\hat\beta = \varepsilon\hat B$ at $\eta = \varepsilon^2$. The package calls either `noise_estimate`.
# {numref}`fig-sgld-variance` shows both.

# %% mystnb={"figure": {"caption": "Stationary variance of SGLD in the bowl with gradient noise $N(0, 4)$: exact laws (lines) and measurements (points). The truth is 1 (grey).", "name": "fig-sgld-variance"}, "image": {"alt": "Over step sizes from 0.01 to 0.7, a solid line that climbs from 1 to nearly 4, and a dashed one that stays below 1.35; points lie on both."}} tags=["hide-input"]
one = torch.eye(1)


def exact(step_size, noise_estimate=0.0):
    chain = langevin_chain(one, step_size, 4.0, noise_estimate)
    return float(chain.stationary_covariance()[0, 0])


measured = {}
for step_size in (0.01, 0.05, 0.1, 0.2, 0.4):
    for estimate in (0.0, 2 * step_size):  # ½ηV
        of_chains = (sgld(step_size, temperature=1 - estimate) ** 2).mean(0)
        error = of_chains.std() / len(of_chains) ** 0.5
        measured[step_size, estimate] = float(of_chains.mean()), float(error)
grid = torch.logspace(-2, -0.15, 40).tolist()
short = [h for h in grid if h < 0.5]
figure, axes = plt.subplots(figsize=(5.4, 3.2))
colour = COLOURS["SGLD"]
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.semilogx(grid, [exact(h) for h in grid], color=colour)
axes.semilogx(short, [exact(h, 2 * h) for h in short], "--", color=colour)
for (step_size, estimate), (value, _) in measured.items():
    axes.plot(step_size, value, "s" if estimate else "o", ms=4, color=colour)
axes.text(0.17, 2.1, r"$\hat\beta = 0$", color=colour)
axes.text(0.2, 0.72, r"$\hat\beta = \frac{1}{2}\eta V$", color=colour)
axes.set(xlabel=r"step size $\eta$", ylabel="stationary variance", ylim=(0.5, 4))
plt.show()

# %% tags=["hide-input"]
check(
    "ten-variances",
    max(
        abs(value - exact(h, estimate)) / error
        for (h, estimate), (value, error) in measured.items()
    ),
    at_most_errors(),
    because="5,000 chains each; exceeded by chance once in 170,000 times",
    says="Largest distance of ten measured variances from the exact ones, in standard "
    "errors",
)
check(
    "of-the-minibatch",
    exact_variance("sgld")
    - float(langevin_chain(one, 0.01).stationary_covariance()[0, 0]),
    near(0.0201, 1e-4),
    kind="exact",
    because="exact laws: 1.0251 and 1.0050",
    says="Exact variance of the row less that without gradient noise",
)
check(
    "formula",
    max(abs((1 + 2 * h) / (1 - h / 2) - exact(h)) for h in grid),
    at_most(1e-6),
    kind="exact",
    because="rounding of the step sizes",
    says="Largest error of the formula against the Lyapunov equation, 40 steps",
)
target, kernel = NoisyGradient(Gaussian.standard(1), 4.0), SGLD(0.1)
theta = torch.ones(1, 1)
state = kernel.init(target, theta, generator.manual_seed(0))
for _ in range(50):
    state, _ = kernel.step(target, state, generator)
generator.manual_seed(0)
for _ in range(50):
    theta = sgld_step(noisy_bowl, theta, 0.1, generator)
check(
    "same-steps",
    (theta - state.position).abs().max(),
    at_most(1e-5),
    kind="exact",
    because="the same formula on the same random numbers; rounding",
    says="Fifty steps of sgld_step and of the package differ by",
)

# %% [markdown]
# ## What small steps cost
#
# For a posterior of $N$ examples, $V$ is of the order of $N^2/n$ and the curvature of the order of $N$.
# To keep $\tfrac12\eta V$ small, the step must be small against $n/N^2$. The chain forgets where it was in about $1/(\eta a)$ steps, which is then more than $N/n$, and each reads $n$ examples.
# So with the plain gradient, and up to a constant, the bias times the passes over the data for one independent sample is 1, whatever the size of the minibatch: **one pass at a bias of a hundred per cent**, a hundred passes at one per cent.
# At the same accuracy SGLD does not beat the data set, unless it has gradients with less noise {cite:p}`brosse2018,nemeth2021`.
# In numbers: page 5's regression has $V \approx 200a$. For a bias of one per cent $\tfrac12\eta V = 0.01$, so $\eta a = 10^{-4}$, and an independent $\theta^2$ takes $1/(\eta a) = 10{,}000$ gradients of 50 examples: fifty times the data.
# And it is a random walk, which needs of the order of $k^2$ steps to cross a ridge that is $k$ times as long as it is wide.
#
# {doc}`/book/further/price` makes this an exact law, and {doc}`/book/further/falling_steps` lets the steps fall to zero, so that the bias vanishes.
#
# **To remember:** there are two kinds of noise, of order $\eta$ (ours) and of order $\eta^2$ (the gradient's); small steps drown the second in the first, at the price of many more steps of a random walk.
#
# On {doc}`pages 3 and 4 </book/tutorial/hamiltonian_dynamics>` momentum was the cure for the random walk.
# So put the minibatch gradient into HMC; {doc}`the next page </book/tutorial/naive_sghmc>` does, and it overheats.
#
# ## Change it
#
# * In `sgld_step` set `(2 * temperature * step_size) ** 0.5` to `2 * temperature * step_size`: the lower panel of {numref}`fig-sgld-paths` shows a second SGD, and the row has next to no variance. {ref}`ex-sgld-factor` asks what the program samples now.
# * In the cell of `noisy_bowl` set `2 * torch.randn` to `3 * torch.randn`, a little more than twice the noise variance: the points of {numref}`fig-sgld-variance` rise above their lines, by next to nothing at the smallest step and by more than one at the largest.
# * In the cell of {numref}`fig-sgld-paths` set `rate, paths = 4e-4, {}` to `rate, paths = 4e-3, {}`: the path of SGLD is nearly twice too wide across the ridge.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-sgld-factor
#
# **Predict, then run.** ★
# A program injects noise of *standard deviation* $2\eta$ instead of variance $2\eta$.
# At which temperature does it sample for small $\eta$?
# Which number will the row of the scoreboard show? Change `sgld_step`, and see.
# ```
#
# ```{solution} ex-sgld-factor
# :class: dropdown
#
# The variance is $4\eta^2 = 2\eta\cdot2\eta$: the temperature is $2\eta$, plus the $\tfrac12\eta V$ of the minibatches.
# For small $\eta$ both are nearly zero.
# It optimises, and calls the result a posterior.
# At $\eta = 0.01$ and $V = 4$ the row shows $(4\eta^2 + 4\eta^2)/(\eta(2 - \eta)) = 0.04$.
# ```
#
# ```{exercise}
# :label: ex-sgld-zero
#
# **Only the minibatch's noise.** ★★
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
# **Write it yourself.** ★★
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
# ````{solution} ex-sgld-mass
# :class: dropdown
#
# Divide the gradient by $m_i$, and the noise by $\sqrt{m_i}$, because $2\eta/m_i$ is a variance.
# With $M = A$ the chain on the bowl is $\theta' = (1 - \eta)\theta + N(0, 2\eta A^{-1})$: all directions forget at the same rate, and the condition number no longer matters.
#
# ```python
# def sgld_step_with_mass(gradient, theta, step_size, mass, generator):
#     noise = torch.randn(theta.shape, generator=generator)
#     return theta - step_size * gradient / mass + (2 * step_size / mass) ** 0.5 * noise
# ```
# ````


# %% tags=["hide-input"]
def sgld_step_with_mass(gradient, theta, step_size, mass, generator):
    noise = torch.randn(theta.shape, generator=generator)
    return theta - step_size * gradient / mass + (2 * step_size / mass) ** 0.5 * noise


stiff = torch.tensor([1.0, 100.0])
valley, theta, kernel = (
    Gaussian(torch.diag(1 / stiff)),
    torch.ones(1, 2),
    SGLD(0.1, mass=stiff),
)
state = kernel.init(valley, theta, generator.manual_seed(0))
state, _ = kernel.step(valley, state, generator)
settings = 0.1, stiff, generator.manual_seed(0)
by_hand = sgld_step_with_mass(valley.gradient(theta), theta, *settings)
check(
    "with-mass",
    (by_hand - state.position).abs().max(),
    at_most(1e-5),
    kind="exact",
    because="the same formula on the same random numbers; rounding",
    says="A step of the solution and of the package's kernel with a mass differ by",
)
moves = langevin_chain(torch.diag(stiff), 0.1, mass=stiff).transition
check(
    "one-rate",
    (moves - 0.9 * torch.eye(2)).abs().max(),
    at_most(1e-6),
    kind="exact",
    because="algebra; rounding",
    says="Distance of the transition matrix with M = A from (1 − η)I",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`welling2011` for the algorithm; {cite:t}`vollmer2016` for constant steps and the noise estimate; {cite:t}`mandt2017` for SGD read as a sampler; {cite:t}`pavliotis2014` for the diffusions behind it.
