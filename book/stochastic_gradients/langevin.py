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
# # Langevin dynamics with minibatches
#
# Gradient descent with the right amount of noise samples a posterior; this chapter says how much noise, and what a finite step costs.
#
# **You will learn** to
#
# * derive stochastic-gradient Langevin dynamics (SGLD) and prove that its limit has the right law,
# * watch its two phases, optimising and sampling,
# * compute the bias of a constant step exactly on a Gaussian, and measure it,
# * use falling steps with weighted averages.
#
# **You will need** {doc}`/book/stochastic_gradients/minibatch_noise`.

# %%
import matplotlib.pyplot as plt
import torch

from sgmc import claim, sample
from sgmc.figures import COLOURS, TRUTH, use_style
from sgmc.kernels import SGLD
from sgmc.linear_laws import langevin_chain
from sgmc.posteriors import LinearRegression
from sgmc.potentials import Gaussian, NoisyGradient

use_style()

# %% [markdown]
# ## From diffusion to algorithm
#
# The *overdamped Langevin equation* pushes downhill and shakes:
#
# $$
# d\theta = -\nabla U(\theta)\,dt + N(0, 2\,dt).
# $$ (eq-langevin)
#
# ```{prf:theorem} The target is stationary
# :label: thm-langevin
#
# If $U$ is smooth and $\int e^{-U} < \infty$, the density $\pi \propto e^{-U}$ is stationary for {eq}`eq-langevin`.
# ```
#
# ```{prf:proof}
# The Fokker–Planck equation is $\partial_tp = \nabla\cdot(p\nabla U) + \nabla\cdot\nabla p = \nabla\cdot(p\nabla U + \nabla p)$, and $\nabla\pi = -\pi\nabla U$ makes the bracket zero {cite:p}`pavliotis2014`.
# ```
#
# Take a step of size $\eta$, and put the minibatch gradient in the place of the gradient:
#
# ```{prf:algorithm} SGLD
# :label: alg-sgld
#
# Repeat $\theta \leftarrow \theta - \eta\nabla\tilde U(\theta) + N(0, 2\eta)$, with a constant step $\eta$ or with steps $\eta_t$ that fall.
# ```
#
# {cite:t}`welling2011` write $\epsilon_t = 2\eta_t$. The code adds a temperature $T$ and a noise estimate $\hat B = \tfrac12\eta\hat V$, which takes the gradient's own noise out of what is injected; the defaults are $1$ and $0$.
#
# ```{literalinclude} ../../sgmc/kernels/langevin.py
# :language: python
# :pyobject: SGLD.step
# ```
#
# Why may one ignore the gradient's noise? In a step it has covariance $\eta^2V$, while the injected noise has $2\eta$. Their ratio $\tfrac12\eta V$ vanishes with $\eta$.
#
# ## The bias of a constant step, exactly
#
# On $U = \tfrac12\theta^\top A\theta$ with gradient noise $N(0, V)$ the algorithm is $\theta' = (I - \eta A)\theta + N(0, 2\eta I + \eta^2V)$.
#
# ```{prf:theorem} Stationary variance of SGLD
# :label: thm-sgld-variance
#
# In one dimension with curvature $a$ and $0 < \eta < 2/a$ the stationary variance is
#
# $$
# \sigma^2 = \frac{2\eta + \eta^2V}{1 - (1 - \eta a)^2} = \frac1a\cdot\frac{1 + \frac12\eta V}{1 - \frac12\eta a}.
# $$ (eq-sgld-variance)
# ```
#
# ```{prf:proof}
# Stationarity of the variance is $\sigma^2 = (1 - \eta a)^2\sigma^2 + 2\eta + \eta^2V$, and $1 - (1 - \eta a)^2 = \eta a(2 - \eta a)$.
# ```
#
# Two errors stand side by side: the numerator's is the minibatch's, the denominator's is the step's. Both widen, both are of the order of $\eta$. With the right $\hat B$ the numerator becomes 1.

# %%
step_sizes = torch.logspace(-2, -0.15, 40, dtype=torch.float64)
one = torch.eye(1, dtype=torch.float64)


def exact_variance(step_size, noise_variance=4.0, noise_estimate=0.0):
    return float(langevin_chain(one, step_size, noise_variance, noise_estimate).stationary_covariance()[0, 0])


noisy = NoisyGradient(Gaussian.standard(1), 4.0)
formula = [(1 + 2 * h) / (1 - h / 2) for h in step_sizes.tolist()]
claim(
    "Largest error of the formula against the discrete Lyapunov equation, 40 step sizes",
    max(abs(f - exact_variance(h)) for f, h in zip(formula, step_sizes.tolist(), strict=True)),
    at_most=1e-10,
    because="rounding",
)
measured = {}
for h in (0.05, 0.1, 0.2, 0.4):
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
        value, error = measured[h, label]
        claim(
            f"Variance at η = {h:g}, V = 4, {label}",
            value,
            near=round(exact_variance(h, 4.0, estimate), 5),
            standard_error=error,
            because="exact law; 5,000 chains",
        )

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-sgld-variance", "caption": "Stationary variance of SGLD on a standard Gaussian with gradient noise N(0, 4): exact laws (lines) and measurements (points, two standard errors); the truth is 1."}}
figure, axes = plt.subplots()
axes.semilogx(step_sizes, formula, color=COLOURS["SGLD"], label=r"$\hat B = 0$")
axes.semilogx(
    step_sizes[step_sizes < 0.5],
    [exact_variance(h, 4.0, 2 * h) for h in step_sizes.tolist() if h < 0.5],
    "--",
    color=COLOURS["SGLD"],
    label=r"$\hat B = \frac{1}{2}\eta V$",
)
for (h, label), (value, error) in measured.items():
    axes.errorbar(h, float(value), 2 * float(error), fmt="o" if label == "no estimate" else "s", ms=4, color=COLOURS["SGLD"])
axes.axhline(1, color=TRUTH, zorder=0)
axes.set(xlabel=r"step size $\eta$", ylabel="stationary variance")
axes.legend()
plt.show()

# %% [markdown]
# ## Real minibatches
#
# A Bayesian linear regression has a Gaussian posterior that we know exactly. With $N = 1{,}000$, $d = 3$ and minibatches of 20 its noise is no longer constant, $V = V(\theta)$, and the chain is no longer quite linear.
# The curvature is about $N$, so the step must be well below $2/N$.

# %%
generator = torch.Generator().manual_seed(0)
N, d = 1_000, 3
inputs = torch.randn(N, d, generator=generator)
targets = inputs @ torch.tensor([1.0, -2.0, 0.5]) + torch.randn(N, generator=generator)
regression = LinearRegression(inputs, targets, batch_size=20)
scale = regression.covariance.diagonal()
centred = regression.mean.expand(1_000, -1).contiguous()
widths = {}
for h in (1e-5, 3e-5, 1e-4):
    run = sample(SGLD(h), regression, centred, num_samples=20, warm_up=round(4 / (h * N)), thinning=max(1, round(0.5 / (h * N))), seed=2)
    value, error = run.mean_and_standard_error(lambda x: ((x - regression.mean) ** 2 / scale).mean(-1))
    widths[h] = (value, error)
full = LinearRegression(inputs, targets)
value, error = sample(SGLD(1e-4), full, centred, num_samples=20, warm_up=40, thinning=5, seed=3).mean_and_standard_error(
    lambda x: ((x - full.mean) ** 2 / scale).mean(-1)
)
predicted = 1 / (1 - 0.5 * 1e-4 * float(regression.precision.diagonal().mean()))
claim(
    "Posterior variance of full-gradient SGLD at η = 1e-4 over the exact one, less the formula's 1/(1 − ηa/2)",
    value - predicted,
    near=0,
    within=0.03,
    because="the curvatures a of the three directions differ by a few per cent",
)
claim(
    "The same with minibatches of 20: how many times too wide",
    widths[1e-4][0],
    at_least=2.5,
    because="½ηV is about 2.5 here; the Monte Carlo error is below 0.05",
)
claim(
    "With minibatches at a tenth of that step, how many times too wide",
    widths[1e-5][0],
    near=1.25,
    within=0.12,
    because="½ηV falls in proportion to η",
)

# %% [markdown]
# The noise $V \approx N^2/n$ against the curvature $a \approx N$: with the largest stable step $\eta \sim 1/N$ the excess $\tfrac12\eta V$ is of the order $N/n$, and to make it small the step must be of the order of $n/N^2$.
# Then the chain needs about $1/(\eta a) = N/n$ steps to decorrelate: **one pass over the data**. SGLD does not beat the data set; it spreads one pass over many small steps {cite:p}`brosse2018,nemeth2021`.
#
# ## Falling steps and weighted averages
#
# Let $\eta_t$ fall, with $\sum_t\eta_t = \infty$, to get anywhere, and $\sum_t\eta_t^2 < \infty$, to stop the bias: the conditions of {cite:t}`robbins1951`. A usual choice is $\eta_t = a(b + t)^{-\gamma}$ with $\tfrac12 < \gamma \le 1$.
# At first the gradient dominates and the algorithm optimises; later the injected noise dominates and it samples: the two phases of {cite:t}`welling2011`.
#
# A draw stands for the time $\eta_t$ that the diffusion spends there, so averages must be weighted,
#
# $$
# \hat E[f] = \frac{\sum_t\eta_tf(\theta_t)}{\sum_t\eta_t}.
# $$ (eq-weighted)
#
# Equal weights would also converge, but they give the many late draws, which hardly move, too much to say.
# {cite:t}`teh2016` show that the best exponent is $\gamma = \tfrac13$, outside of the classical conditions, and that the error then falls as $T^{-1/3}$ rather than $T^{-1/2}$: there is a price.


# %%
def schedule(t):
    return 0.5 * (10 + t) ** -0.6


far = torch.full((4_000, 1), 4.0)
annealed = sample(SGLD(schedule), noisy, far, num_samples=3_000, seed=4)
eta = annealed.statistics["step_size"][:, 0].double()
squares = annealed.samples[..., 0].double() ** 2
claim(
    "E|θ| of the first draw, from a start at 4",
    annealed.samples[0].mean(),
    at_least=3,
    because="the first phase: η₀ = 0.126, so one step goes an eighth of the way",
)
late = squares[2_000:].mean()
claim(
    "Variance over the last thousand draws",
    late,
    near=1.012,
    within=0.05,
    because="η is 0.005 there, and the formula gives a bias of 2.5η; the Monte Carlo error is about 0.012",
)
weights = eta[200:] / eta[200:].sum()
spread = {"weighted": (weights[:, None] * annealed.samples[200:, :, 0]).sum(0).std(), "equal": annealed.samples[200:, :, 0].mean(0).std()}
claim(
    "Standard deviation of the weighted average over that of the equal one",
    spread["weighted"] / spread["equal"],
    at_most=0.99,
    because="equal weights overrate the late, highly correlated draws; 4,000 chains",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-sgld-phases", "caption": "Annealed SGLD from a start at 4. Left: mean and spread over 4,000 chains. Right: the variances that a step adds, by the gradient's noise and by the injected noise; their ratio falls with η."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.3))
steps = torch.arange(1, 3_001)
mean, sd = annealed.samples.mean(1)[:, 0], annealed.samples.std(1)[:, 0]
left.fill_between(steps, mean - sd, mean + sd, color=COLOURS["SGLD"], alpha=0.3, lw=0)
left.semilogx(steps, mean, color=COLOURS["SGLD"])
left.set(xlabel="step", ylabel=r"$\theta$: mean ± standard deviation")
right.loglog(steps, eta**2 * 4, color=COLOURS["SGD"], label=r"gradient noise $\eta^2 V$")
right.loglog(steps, 2 * eta, color=COLOURS["SGLD"], label=r"injected noise $2\eta$")
right.set(xlabel="step", ylabel="variance added in a step")
right.legend()
plt.show()

# %% [markdown]
# ## In practice
#
# * Begin with a step well below $2/a$ for the largest curvature, which is of the order of $N$.
# * Compare $\tfrac12\eta V$ with 1 before you believe any posterior width.
# * A constant small step is simpler than annealing and usually as good.
# * SGLD is a random walk: on a ridge it needs the square of the ridge's length. Momentum does better, and leads to {doc}`/book/stochastic_gradients/naive_sghmc`.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-sgld-factor
#
# A program injects noise of *standard deviation* $2\eta$ instead of variance $2\eta$. At which temperature does it sample for small $\eta$?
# ```
#
# ```{solution} ex-sgld-factor
# :class: dropdown
#
# The variance is $4\eta^2 = 2\eta\cdot2\eta$: the temperature is $2\eta$, nearly zero. It optimises, and calls the result a posterior.
# ```
#
# ```{exercise}
# :label: ex-sgld-zero
#
# What is the stationary variance at temperature zero? Is SGD a sampler?
# ```
#
# ```{solution} ex-sgld-zero
# :class: dropdown
#
# $\eta V/(a(2 - \eta a))$: SGD samples too, at the temperature $\tfrac12\eta V$ for small $\eta$, provided that the noise is isotropic {cite:p}`mandt2017`.
# ```
#
# ```{exercise}
# :label: ex-sgld-optimal
#
# On a Gaussian with curvatures between $a$ and $A$, how many steps does SGLD need to decorrelate at its largest usable step?
# ```
#
# ```{solution} ex-sgld-optimal
# :class: dropdown
#
# With $\eta$ a fraction of $1/A$, the slowest direction shrinks by $1 - \eta a$ a step, so of the order of $A/a$, the condition number.
# ```
#
# ## Further reading
#
# {cite:t}`welling2011`; {cite:t}`teh2016` and {cite:t}`vollmer2016` for its theory; {cite:t}`mandt2017` for constant steps.
