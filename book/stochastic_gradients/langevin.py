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
# * compute the bias of a constant step exactly on a Gaussian, and measure it,
# * count what a posterior costs in passes over the data,
# * use falling steps with weighted averages, and watch the two phases, optimising and sampling.
#
# **You will need** {doc}`/book/stochastic_gradients/minibatch_noise`, and integration by parts.

# %%
import matplotlib.pyplot as plt
import torch

from sgmc import claim, sample
from sgmc.figures import COLOURS, TRUTH, use_style
from sgmc.kernels import SGLD
from sgmc.linear_laws import langevin_chain
from sgmc.play import play
from sgmc.posteriors import LinearRegression
from sgmc.targets import Gaussian, NoisyGradient

use_style()
play()

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
# Read it as a recipe for a short time $dt$: move by $-\nabla U\,dt$, add to each coordinate independent normal noise of *variance* $2\,dt$, and repeat; the equation means the limit of such paths as $dt \to 0$.
# Which density do they settle to?
# We need to know how densities move, here and in the next two chapters.
#
# ```{prf:theorem} Fokker–Planck equation
# :label: thm-diffusion
#
# Let $dz = b(z)\,dt + N(0, 2D(z)\,dt)$ with smooth $b$ and $D$.
# The density $p_t$ of $z$ at time $t$ obeys
#
# $$
# \partial_tp = -\nabla\cdot(p\,b) + \sum_{ij}\partial_i\partial_j(D_{ij}\,p).
# $$ (eq-diffusion-density)
# ```
#
# ```{prf:proof}
# Let $f$ be smooth, and zero outside a bounded set.
# In a short time $dz$ has mean $b\,dt$ and covariance $2D\,dt$, and higher moments are $o(dt)$.
# Taylor's formula gives $E[f(z + dz) \mid z] = f + \nabla f\cdot b\,dt + \sum_{ij}D_{ij}\,\partial_i\partial_jf\,dt + o(dt)$.
# Hence
#
# $$
# \int f\,\partial_tp = \frac{d}{dt}E[f(z_t)] = \int p\,\Bigl(\nabla f\cdot b + \sum_{ij}D_{ij}\,\partial_i\partial_jf\Bigr) = \int f\,\Bigl(-\nabla\cdot(p\,b) + \sum_{ij}\partial_i\partial_j(D_{ij}\,p)\Bigr)
# $$
#
# by parts, once for the first term and twice for the second.
# It holds for every such $f$, so the functions beside $f$ are equal.
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
# Now take a step of size $\eta$ instead of $dt$, and put the minibatch gradient in the place of the gradient:
#
# ```{prf:algorithm} SGLD
# :label: alg-sgld
#
# Repeat $\theta \leftarrow \theta - \eta\nabla\tilde U(\theta) + N(0, 2\eta)$, with a constant step $\eta$ or with steps $\eta_t$ that fall.
# ```
#
# This is the algorithm of {cite:t}`welling2011`, who write $\epsilon_t = 2\eta_t$.
# The code adds a temperature $T$, which makes $e^{-U/T}$ the target, and a noise estimate $\hat B = \tfrac12\eta\hat V$, which takes the gradient's own noise out of what is injected; the defaults are $1$ and $0$.
# It also knows a mass $M$, which is $1$ here: steps are then $\eta M^{-1}\nabla\tilde U$ and the noise has the covariance $2\eta M^{-1}$, as {doc}`/book/stochastic_gradients/constant_sgd` derives.
#
# ```{literalinclude} ../../sgmc/kernels/langevin.py
# :language: python
# :pyobject: SGLD.step
# ```
#
# Why may one ignore the gradient's noise?
# In a step it has covariance $\eta^2V$, while the injected noise has $2\eta$.
# Their ratio $\tfrac12\eta V$ vanishes with $\eta$.
#
# ## The bias of a constant step, exactly
#
# On $U = \tfrac12\theta^\top A\theta$ with gradient noise $N(0, V)$ the algorithm is $\theta' = (I - \eta A)\theta + N(0, 2\eta I + \eta^2V)$, a linear recursion.
# Nothing in its law has to be simulated.
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
# The truth is $1/a$.
# Two errors stand side by side: the numerator's is the minibatch's, the denominator's is the step's.
# Both widen, both are of the order of $\eta$.
# With the right $\hat B = \tfrac12\eta V$ the numerator becomes 1, and only the step's error is left.
# At $\eta = 2/a$ the variance is infinite: a longer step overshoots further than it came.
# {prf:ref}`thm-sgld-covariance` is the same with matrices.

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

# %%
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
            kind="exact",
        )

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-sgld-variance", "caption": "Stationary variance of SGLD on a standard Gaussian with gradient noise N(0, 4): exact laws (lines) and measurements (points, two standard errors); the truth is 1 (grey)."}}
figure, axes = plt.subplots()
axes.semilogx(step_sizes, formula, color=COLOURS["SGLD"], label=r"$\hat B = 0$")
axes.semilogx(
    step_sizes[step_sizes < 0.5],
    [exact_variance(h, 4.0, 2 * h) for h in step_sizes.tolist() if h < 0.5],
    "--",
    color=COLOURS["SGLD"],
    label=r"$\hat B = \frac{1}{2}\eta V$, which needs $\hat B \leq 1$",
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
# ## Real minibatches, and their price
#
# A Bayesian linear regression has a Gaussian posterior that we know exactly.
# With $N = 1{,}000$, $d = 3$ and minibatches of 20 its noise is no longer constant: $g_i = x_i(x_i\cdot\theta - y_i)$ is linear in $\theta$, so $V(\theta)$ is a quadratic function, smallest near the posterior mean $\hat\theta$.
# Second moments still close.
# With $\delta = \theta - \hat\theta$, residuals $e_i = y_i - x_i\cdot\hat\theta$ and $\Sigma = E[\delta\delta^\top]$ the average noise is
#
# $$
# E[V(\theta)] = V(\hat\theta) + \frac{N^2}n\,\frac{N - n}{N - 1}\cdot\frac1N\sum_i(x_ix_i^\top - \bar A)\,\Sigma\,(x_ix_i^\top - \bar A), \qquad \bar A = \frac1N\sum_ix_ix_i^\top,
# $$ (eq-regression-noise)
#
# where $V(\hat\theta)$ comes from the $-x_ie_i$ by {eq}`eq-v`; the cross terms have mean zero because $\delta$ has.
# So $\Sigma = (I - \eta A)\Sigma(I - \eta A) + 2\eta I + \eta^2E[V(\theta)]$, with the posterior's precision $A \approx NI$, can be iterated to its fixed point.

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
for h in (1e-5, 3e-5, 1e-4):
    value, error = measured_width(regression, h)
    claim(
        f"Variance over the posterior's, minibatches of 20 and η = {h:g}",
        value,
        near=round(exact_width(h), 3),
        standard_error=error,
        because="exact law with V(θ); 1,000 chains",
        kind="exact",
    )
value, error = measured_width(full, 1e-4)
claim(
    "Variance over the posterior's, all the data and η = 1e-4",
    value,
    near=round(
        float(
            (
                langevin_chain(A, 1e-4).stationary_covariance().diagonal()
                / torch.linalg.inv(A).diagonal()
            ).mean()
        ),
        3,
    ),
    standard_error=error,
    because="exact law; 1,000 chains",
    kind="exact",
)
claim(
    "Excess width at η = 1e-4 with minibatches over that with all the data",
    (exact_width(1e-4) - 1) / (1 / (1 - 0.5e-4 * float(A.diagonal().mean())) - 1),
    at_least=25,
    because=(
        "exact laws: the excess is about ½ηV = 2.5 against ½ηa = 0.05, a ratio of "
        "about N/n = 50"
    ),
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
# Let $\eta_t$ fall, with $\sum_t\eta_t = \infty$, to get anywhere, and $\sum_t\eta_t^2 < \infty$, to stop the bias: the conditions of {cite:t}`robbins1951`.
# A usual choice is $\eta_t = c\,(b + t)^{-\gamma}$ with $\tfrac12 < \gamma \le 1$.
#
# While $\tfrac12\eta_tV > 1$ the gradient's noise is louder than ours.
# The algorithm is then stochastic gradient descent in all but name: it falls towards the mode and rattles around it, far too wide.
# Once $\tfrac12\eta_tV < 1$ the injected noise takes over, and draws are worth keeping.
# These are the two phases of {cite:t}`welling2011`, optimising and sampling, and no one has to switch from one to the other.
# We take a noisy bowl, $U = \tfrac12\theta^2$ with $V = 100$, start 4,000 chains at 4, and follow them with $\eta_t = 2(20 + t)^{-0.8}$.
# Mean and variance of the chains obey exact recursions,
#
# $$
# m_{t+1} = (1 - \eta_t)\,m_t, \qquad \sigma_{t+1}^2 = (1 - \eta_t)^2\,\sigma_t^2 + 2\eta_t + \eta_t^2V.
# $$ (eq-sgld-recursion)


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

# %% tags=["hide-input"]
claim(
    "Number of steps in which the gradient's noise is the louder",
    boundary,
    near=297,
    within=0.1,
    because="½η_tV = 1 solved for t",
)
for step in (20, boundary, num_steps):
    draws = annealed.samples[step - 1, :, 0].double()
    claim(
        f"Variance over the chains after {step:,} steps",
        draws.var(),
        near=round(float(variances[step - 1]), 4),
        standard_error=float(variances[step - 1]) * (2 / 3_999) ** 0.5,
        because="exact recursion; 4,000 chains",
        kind="exact",
    )

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-sgld-phases", "caption": "SGLD with falling steps in the bowl, V = 100, from a start at 4. Left: mean and spread of 4,000 chains (green), the same by the exact recursion (dashed), and the target's (grey). Right: the variances that a step adds. The dotted line divides the phases, at ½ηV = 1."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.4))
steps = torch.arange(1, num_steps + 1)
mean, spread = annealed.samples.mean(1)[:, 0], annealed.samples.std(1)[:, 0]
left.axhspan(-1, 1, color=TRUTH, alpha=0.35, lw=0)
left.fill_between(
    steps, mean - spread, mean + spread, color=COLOURS["SGLD"], alpha=0.3, lw=0
)
left.semilogx(steps, mean, color=COLOURS["SGLD"])
for sign in (-1, 0, 1):
    left.semilogx(steps, means + sign * variances.sqrt(), "--", color="black", lw=0.8)
left.set(xlabel="step", ylabel=r"$\theta$: mean ± standard deviation")
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
# Equal weights would converge too, but they give much say to the many late draws, which hardly move and repeat each other.
# So the weighted average has the smaller variance.
# On the other hand it listens more to the early draws, which are biased the most.
# Both differences are small; look at both before you choose.

# %%
late = sample(
    SGLD(schedule),
    loud,
    torch.full((4_000, 1), 4.0),
    num_samples=num_steps - boundary,
    warm_up=boundary,
    seed=5,
)
weighted, equal = (
    late.weighted_mean()[:, 0].double(),
    late.samples.double().mean(0)[:, 0],
)

# %% tags=["hide-input"]
claim(
    "Standard deviation of the weighted average of θ over that of the equal one",
    weighted.std() / equal.std(),
    at_most=0.995,
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
    at_least=1.05,
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
    kind="exact",
)

# %% [markdown]
# How fast should steps fall?
# {cite:t}`teh2016` find that the best exponent is $\gamma = \tfrac13$, outside of the classical conditions, and that after $K$ steps the error is of the order of $K^{-1/3}$ rather than the $K^{-1/2}$ of an unbiased chain: that is the price of leaving out the correction step.
# {ref}`ex-sgld-rate` shows where the third comes from.
#
# ## In practice
#
# * Begin with a step well below $2/a$ for the largest curvature $a$, which is of the order of $N$.
# * Compare $\tfrac12\eta V$ with 1 before you believe any posterior width; estimate $V$ from the spread of a few minibatch gradients.
# * If the number of steps is known beforehand a constant step is simpler than a falling one, its bias is known {cite:p}`vollmer2016`, and by {ref}`ex-sgld-rate` the rate is the same.
# * SGLD is a random walk: to cross a ridge that is $k$ times as long as it is wide it needs of the order of $k^2$ steps.
#   Momentum does better, and leads to {doc}`/book/stochastic_gradients/naive_sghmc`.
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
# That is a ball, not the posterior; {doc}`/book/stochastic_gradients/constant_sgd` goes on from here.
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
# ## Further reading
#
# {cite:t}`welling2011` for the algorithm; {cite:t}`teh2016` for falling and {cite:t}`vollmer2016` for constant steps; {cite:t}`mandt2017` for SGD read as a sampler; {cite:t}`pavliotis2014` for the diffusions behind it.
