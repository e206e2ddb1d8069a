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
# # Constant SGD: an optimiser that samples
#
# Gradient descent with minibatches never comes to rest; this chapter sets its rate so that the cloud of its iterates is as close to the posterior as it can be, and says when that is close.
#
# **You will learn** to
#
# * compute the law of the iterates exactly where the energy is quadratic, and its limit for small rates,
# * choose the best single rate, the best rate for each coordinate, and the matrix that makes the law exact,
# * get draws from averages of iterates instead,
# * see constant SGD as SGLD at temperature zero, and say what the injected noise adds,
# * name the cases in which SGD's noise is no substitute for the posterior's width.
#
# **You will need** {doc}`/book/stochastic_gradients/langevin`, and the shape of the gradient noise from {doc}`/book/stochastic_gradients/minibatch_noise`.

# %%
import matplotlib.pyplot as plt
import torch

from sgmc import adapt, claim, sample
from sgmc.approximations import constant_sgd
from sgmc.figures import COLOURS, TRUTH, use_style
from sgmc.kernels import NUTS, SGLD
from sgmc.linear_laws import langevin_chain, sghmc_chain
from sgmc.minibatches import Passes
from sgmc.noise import estimate_noise_variance
from sgmc.play import play
from sgmc.posteriors import LinearRegression, LogisticRegression

use_style()
play()

# %% [markdown]
# ## The cloud in the bowl
#
# Stochastic gradient descent at a constant rate $\eta$ is
#
# $$
# \theta \leftarrow \theta - \eta\nabla\tilde U(\theta).
# $$ (eq-csgd)
#
# It falls towards a minimum, and then it does not stop: at the minimum the gradient is zero, but a minibatch's gradient is not.
# The iterates rattle around in a cloud, and the cloud is the larger the larger the rate.
# The posterior is a cloud around the same point.
# Is there a rate at which the two agree?
# This is the question of {cite:t}`mandt2017`.
#
# Take a linear regression with two inputs that are correlated and differ in scale, $N = 1{,}000$ examples and minibatches of $n = 10$, drawn afresh in every step.
# Its posterior is Gaussian, and we know it.

# %%
DOUBLE = torch.float64
generator = torch.Generator().manual_seed(0)
N, n = 1_000, 10
mixing = torch.tensor([[1.0, 0.3], [0.0, 0.4]], dtype=DOUBLE)
inputs = torch.randn(N, 2, generator=generator, dtype=DOUBLE) @ mixing
noise = torch.randn(N, generator=generator, dtype=DOUBLE)
targets = inputs @ torch.tensor([1.0, -2.0], dtype=DOUBLE) + noise
posterior = LinearRegression(inputs, targets, batch_size=n)
A, exact = posterior.precision, posterior.covariance


def noise_variance(posterior, covariance):
    """V(θ) of the minibatches, averaged over θ ~ N(mean, covariance)."""
    x, y = posterior.data
    N, n = posterior.num_examples, posterior.batch_size
    at_mean = torch.cov((x * (x @ posterior.mean - y)[:, None]).T)
    slopes = x[:, :, None] * x[:, None, :]
    slopes = slopes - slopes.mean(0)
    growth = (slopes @ covariance @ slopes).sum(0) / (N - 1)
    return N**2 / n * (1 - n / N) * (at_mean + growth)


V = noise_variance(posterior, exact)
best = 2 * len(V) / float(V.trace())

# %% [markdown]
# The function is {eq}`eq-regression-noise`: with real minibatches the noise depends a little on where one is, and what enters the law of the iterates is its average.
# The rate called `best` is the one that the theory below will recommend; {numref}`fig-csgd-bowl` shows it between two others.


# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-csgd-bowl", "caption": "SGD on a linear regression: where 600 runs from the mode are after many steps (dots), and the posterior (grey: two standard deviations). Left: a quarter of the best rate. Middle: the best rate. Right: four times that. The cloud grows with the rate, but it is round and the posterior is not."}, "image": {"alt": "Three panels with the same grey ellipse, the posterior, and a round cloud of blue dots: inside the ellipse, as wide as its mean width, and far outside of it."}}
angle = torch.linspace(0, 2 * torch.pi, 200, dtype=DOUBLE)
circle = torch.stack([angle.cos(), angle.sin()])


def ellipse(covariance):
    """Two standard deviations of N(mean, covariance)."""
    return posterior.mean[:, None] + 2 * torch.linalg.cholesky(covariance) @ circle


figure, panels = plt.subplots(1, 3, figsize=(8.8, 3.2), sharex=True, sharey=True)
titles = (r"$\frac{1}{4}\eta^*$", r"$\eta^*$", r"$4\eta^*$")
for axes, multiple, title in zip(panels, (0.25, 1, 4), titles, strict=True):
    run = sample(
        SGLD(multiple * best, temperature=0.0),
        posterior,
        posterior.mean.expand(600, -1).contiguous(),
        num_samples=1,
        warm_up=round(800 / multiple),
    )
    axes.fill(*ellipse(exact), color=TRUTH, alpha=0.35, lw=0)
    axes.plot(*run.samples[0].T, ".", ms=2, color=COLOURS["SGD"])
    axes.set(title=title, xlabel=r"$\theta_1$", aspect="equal")
panels[0].set(ylabel=r"$\theta_2$")
plt.show()

# %% [markdown]
# ## The law of the iterates
#
# Let the rate be a symmetric positive matrix $P$, so that one rate for all coordinates is $P = \eta I$:
#
# ```{prf:algorithm} Constant SGD
# :label: alg-csgd
#
# From a mode $\hat\theta$ of the posterior, or after a warm-up, repeat $\theta \leftarrow \theta - P\nabla\tilde U(\theta)$, and take the iterates for draws.
# ```
#
# ```{prf:theorem} Stationary covariance of constant SGD
# :label: thm-csgd-law
#
# Let $U(\theta) = \tfrac12(\theta - \hat\theta)^\top A(\theta - \hat\theta)$ with $A \succ 0$, and $\nabla\tilde U = \nabla U + \xi$ with $E[\xi \mid \theta] = 0$ and independent minibatches in every step.
# If $V$ is the covariance of $\xi$, averaged over the stationary law, then the iterates have the mean $\hat\theta$ and a covariance $\Sigma$ with
#
# $$
# PA\Sigma + \Sigma AP - PA\Sigma AP = PVP.
# $$ (eq-csgd-exact)
#
# If $V$ is the same everywhere, such a law exists where all eigenvalues of $PA$ are less than 2, and for $V \succ 0$ only there; and if $\xi$ is normal, so is the law.
# ```
#
# ```{prf:proof}
# With $\delta = \theta - \hat\theta$ a step is $\delta' = (I - PA)\delta - P\xi$.
# Given $\delta$ the noise has mean zero, so the two terms are uncorrelated, and stationarity means $\Sigma = (I - PA)\Sigma(I - AP) + PVP$; multiply out.
# The means obey $E[\delta'] = (I - PA)E[\delta]$.
# The eigenvalues of $PA$ are those of $P^{1/2}AP^{1/2}$ and so positive; powers of $I - PA$ shrink to zero in a direction if and only if its eigenvalue is less than 2.
# Then $\delta$ is a convergent sum of past noises, which is normal if they are.
# ```
#
# The term with two $P$ on the left is smaller than the others by a factor of the size of $PA$, the share of the way to the mode that one step takes.
# Where steps are short we leave it out:
#
# $$
# PA\Sigma + \Sigma AP = PVP.
# $$ (eq-csgd-ou)
#
# This is the law of the diffusion $d\theta = -PA(\theta - \hat\theta)\,dt + N(0, PVP\,dt)$, an *Ornstein–Uhlenbeck process*, of which a step of SGD is a step of length 1.
# {cite:t}`mandt2017` start from it, and say what it takes: the noise of a minibatch is normal, because it is a sum over many examples; its covariance is the same wherever the chain goes; the rate is small enough for a diffusion; and the chain stays where the energy is a quadratic.
# Of these, {eq}`eq-csgd-exact` needs the last one only, beside minibatches that are independent.
#
# What is $\Sigma$ for one rate, $P = \eta I$?
# Where the model fits, $V \approx cA$ with $c \approx N/n$ by {eq}`eq-noise-curvature`, and then {eq}`eq-csgd-ou` is solved by $\Sigma = \tfrac12\eta c\,I$: a ball, whatever the posterior looks like.
#
# ## The best single rate
#
# A ball cannot be an ellipse, but it can have the right size.
# Measure the distance by $KL(N(\hat\theta, \Sigma)\,\|\,N(\hat\theta, A^{-1})) = \tfrac12\bigl(\operatorname{tr}A\Sigma - \log\det A\Sigma - d\bigr)$.
#
# ```{prf:theorem} The best rate
# :label: thm-csgd-rate
#
# Let $P = \eta I$, and let the solution of {eq}`eq-csgd-ou` be positive definite.
# Then among all $\eta > 0$ the divergence is least at
#
# $$
# \eta^* = \frac{2d}{\operatorname{tr}V}.
# $$ (eq-csgd-rate)
# ```
#
# ```{prf:proof}
# The equation is now $A\Sigma + \Sigma A = \eta V$, whose solution is $\eta\Sigma_1$ with a $\Sigma_1$ that does not know $\eta$.
# So $\log\det A\Sigma = d\log\eta + \text{const}$.
# Take the trace of the equation: $2\operatorname{tr}A\Sigma = \eta\operatorname{tr}V$.
# Twice the divergence is $\tfrac12\eta\operatorname{tr}V - d\log\eta + \text{const}$, a convex function of $\eta$ whose derivative vanishes at $\eta^*$.
# ```
#
# No curvature is needed, only the size of the noise.
# {cite:t}`mandt2017` write it for the mean loss $U/N$, with the rate $\epsilon = N\eta$, batches of $S = n$ and the noise covariance $BB^\top/S = V/N^2$; in these symbols it is $\epsilon^* = \frac{2S}N\cdot\frac d{\operatorname{tr}BB^\top}$.
#
# ## A rate for each direction
#
# ```{prf:theorem} Preconditioned constant SGD
# :label: thm-csgd-matrix
#
# 1. For $V \succ 0$ the law {eq}`eq-csgd-ou` of small rates is the posterior's, $\Sigma = A^{-1}$, if and only if $P = 2V^{-1}$.
# 2. If $V = cA$, then $\Sigma = \tfrac12cP$ for every $P$, and among diagonal $P$ the divergence is least at $P_{kk} = 2/V_{kk}$.
# 3. For $V \succ 0$ the exact law {eq}`eq-csgd-exact` has $\Sigma = A^{-1}$ if and only if $P = 2(V + A)^{-1}$; and at this rate the chain is stable for every constant $V$.
# ```
#
# ```{prf:proof}
# Put $\Sigma = A^{-1}$ into {eq}`eq-csgd-ou`: $2P = PVP$, and multiply by $P^{-1}$ from both sides.
# For the second part $\tfrac12cP$ solves the equation, and no other matrix does, for the eigenvalues of $PA$ are positive.
# Twice the divergence is $\tfrac12c\operatorname{tr}AP - \log\det P + \text{const} = \sum_k\bigl(\tfrac12V_{kk}P_{kk} - \log P_{kk}\bigr) + \text{const}$ for a diagonal $P$, least where every term is.
# For the third put $\Sigma = A^{-1}$ into {eq}`eq-csgd-exact`: $2P - PAP = PVP$, that is $2P^{-1} = V + A$.
# Then $PA = 2(V + A)^{-1}A$ has the eigenvalues $2a/(1 + a)$, where $a > 0$ are those of $V^{-1}A$: they are less than 2.
# ```
#
# The first two rates are those of {cite:t}`mandt2017`.
# The second part has a condition that is easy to forget: for a noise that lies across the curvature the rate $2/V_{kk}$ is a recipe and not an optimum, and it can be worse than a single number.
# The third part costs one more matrix, and takes the error of a finite step away.
#
# In code a rate is the inverse of a mass: SGLD with mass $M$ at temperature zero is $\theta \leftarrow \theta - \eta M^{-1}\nabla\tilde U(\theta)$, and `constant_sgd` returns it with $\eta = 1$ and $M = P^{-1}$, half of the noise's covariance.

# %%
kernels = {
    "scalar": constant_sgd(V, "scalar"),
    "diagonal": constant_sgd(V, "diagonal"),
    "full": constant_sgd(V, "full"),
    "full, V + A": constant_sgd(V + A, "full"),
}

# %% [markdown]
# ## What SGLD adds
#
# SGLD with a mass injects noise of covariance $2\eta(M^{-1} - M^{-1}\hat BM^{-1})$, so that with $\hat B = \tfrac12\eta V$ its total noise is $2\eta M^{-1}$ in a step:
#
# $$
# \underbrace{\eta^2M^{-1}VM^{-1}}_{\text{the minibatch's}} + \underbrace{2\eta\,(M^{-1} - M^{-1}\hat BM^{-1})}_{\text{injected}} = 2\eta M^{-1}.
# $$ (eq-csgd-sgld)
#
# With $M = \tfrac12\eta V$ nothing is left to inject: the full variant of constant SGD *is* SGLD with that mass.
# With any larger mass the minibatch's noise falls short, and the injected noise makes up for what is missing in each direction.
# So SGLD does not need a mass that fits the noise; a single number $M \ge \tfrac12\eta\lambda_{\max}(V)$ will do, but it still needs $V$ for $\hat B$, and the long way is as long as for any other chain with one rate.

# %%
largest = float(torch.linalg.eigvalsh(V)[-1])
kernels["SGLD"] = SGLD(1.0, noise_estimate=V / 2, mass=0.5001 * largest)

# %% [markdown]
# ## Averages of iterates
#
# There is a way to the right shape without any matrix.
# Average the iterates over a window of $K$ steps, and take the averages for draws.
#
# ```{prf:theorem} The law of an average
# :label: thm-csgd-average
#
# Let the conditions of {prf:ref}`thm-csgd-law` hold, and the chain be stable.
# In a window of $K$ steps of the stationary chain the average $\bar\theta$ has the covariance
#
# $$
# \operatorname{Cov}\bar\theta = \frac1{K^2}\Bigl(K\Sigma + \sum_{k=1}^{K-1}(K - k)\bigl(F^k\Sigma + \Sigma(F^k)^\top\bigr)\Bigr), \qquad F = I - PA,
# $$ (eq-csgd-average)
#
# and $K\operatorname{Cov}\bar\theta \to A^{-1}VA^{-1}$ as $K \to \infty$, for every $P$.
# ```
#
# ```{prf:proof}
# Iterates that are $k$ steps apart have the covariance $F^k\Sigma$, because later noises have mean zero given what came before; count the pairs.
# For the limit sum $\delta_{t+1} - \delta_t = -P(A\delta_t + \xi_t)$ over the window and solve for the average:
#
# $$
# \bar\delta = -A^{-1}\bar\xi - (PA)^{-1}\frac{\delta_{K+1} - \delta_1}K.
# $$ (eq-csgd-telescope)
#
# The $\xi_t$ are uncorrelated, so $K\operatorname{Cov}(A^{-1}\bar\xi) = A^{-1}VA^{-1}$, and the second term has a covariance of the order of $1/K^2$.
# ```
#
# The rate has dropped out, which is why {cite:t}`polyak1992` average iterates in order to optimise.
# With $V = cA$ a window of $K = c$ steps has $\operatorname{Cov}\bar\theta \approx A^{-1}$, and $c \approx N/n$ steps are one pass over the data.
# One average per pass is the *averaged* sampler of {cite:t}`mandt2017`.
# The window must be long against the chain's memory, $K\eta a_{\min} \gg 1$, while $\eta a_{\max} < 2$ for stability: so $N/n$ has to be large against the condition number of $A$, and the rate should be large, far above $\eta^*$.
# We take $\eta = 1/(2a_{\max})$, and $K = (N - n)/n$, for the factor of drawing without replacement.

# %%
a, directions = torch.linalg.eigh(A)
window = (N - n) // n
averaged = SGLD(0.5 / float(a[-1]), temperature=0.0)


def law(kernel, posterior=posterior):
    """The exact chain, with V(θ) averaged over its own law, by iteration."""
    covariance = posterior.covariance
    for _ in range(30):
        V = noise_variance(posterior, covariance)
        chain = langevin_chain(
            posterior.precision,
            kernel.step_size,
            V,
            kernel.noise_estimate,
            kernel.temperature,
            kernel.mass,
        )
        covariance = chain.stationary_covariance()
    return chain


def divergence(covariance, precision=A):
    """KL(N(0, covariance) ‖ N(0, A⁻¹))."""
    product = precision @ covariance
    return 0.5 * float(product.trace() - torch.logdet(product) - len(product))


def widths(covariance, posterior=posterior):
    """Standard deviations over the posterior's, in its longest, shortest direction."""
    a, directions = torch.linalg.eigh(posterior.precision)
    return ((directions.T @ covariance @ directions).diagonal() * a).sqrt()


# %% [markdown]
# ## All of them, exactly and measured
#
# | | width, longest | width, shortest | divergence | memory $\tau$ in steps |
# | --- | --- | --- | --- | --- |
# | scalar, $P = 2d/\operatorname{tr}V$ | 0.493 | 1.340 | 0.434 | 403 |
# | diagonal, $P_{kk} = 2/V_{kk}$ | 0.740 | 1.218 | 0.207 | 179 |
# | full, $P = 2V^{-1}$ | 1.005 | 1.006 | 0.0001 | 97 |
# | full, $P = 2(V + A)^{-1}$ | 1 | 1 | 0 | 98 |
# | averaged over one pass | 0.930 | 0.979 | 0.006 | 99 steps a draw |
# | SGLD, one mass for all | 1.001 | 1.006 | 0.00002 | 710 |
#
# A width is a standard deviation over the posterior's, in the posterior's longest and shortest direction; the memory is the autocorrelation time in the longest.
# All of it is computed, from {eq}`eq-csgd-exact` with the noise averaged over the chain's own law; and it is what 500 chains do.
# The single rate makes a ball that is too narrow one way and too wide the other, the diagonal is halfway, and the rest agree with the posterior to a few per cent or better.
# No row is much cheaper than one pass over the data, 100 steps, for one independent draw, as in {doc}`/book/stochastic_gradients/langevin`.

# %% tags=["hide-input"]
table = {
    "scalar": (0.493, 1.340, 0.434, 403),
    "diagonal": (0.740, 1.218, 0.207, 179),
    "full": (1.005, 1.006, 0.0001, 97),
    "full, V + A": (1.0, 1.0, 0.0, 98),
    "SGLD": (1.001, 1.006, 0.00002, 710),
}
laws = {name: law(kernel) for name, kernel in kernels.items()}
claim(
    "Largest error of the table's widths",
    max(
        float(
            (
                widths(laws[name].stationary_covariance())
                - torch.tensor(row[:2], dtype=DOUBLE)
            )
            .abs()
            .max()
        )
        for name, row in table.items()
    ),
    at_most=0.0006,
    because="exact laws, rounded to three digits",
    kind="exact",
)
claim(
    "Largest error of the table's divergences",
    max(
        abs(divergence(laws[name].stationary_covariance()) - row[2])
        for name, row in table.items()
    ),
    at_most=0.0006,
    because="exact laws, rounded",
    kind="exact",
)
claim(
    "Largest error of the table's autocorrelation times",
    max(
        abs(laws[name].autocorrelation_time(directions[:, 0]) - row[3])
        for name, row in table.items()
    ),
    at_most=0.6,
    because="exact laws, rounded",
    kind="exact",
)
claim(
    "Divergence of full P = 2V⁻¹ and of SGLD, the larger one",
    max(divergence(laws[name].stationary_covariance()) for name in ("full", "SGLD")),
    at_most=0.0002,
    because="exact laws",
    kind="exact",
)
claim(
    "Largest relative error of the covariance with P = 2(V + A)⁻¹",
    (laws["full, V + A"].stationary_covariance() / exact - 1).abs().max(),
    at_most=1e-9,
    because="part 3 of the theorem; rounding",
    kind="exact",
)
exact_average = law(averaged).average_covariance(window)
claim(
    "Largest error of the table's widths of averages",
    (widths(exact_average) - torch.tensor([0.930, 0.979], dtype=DOUBLE)).abs().max(),
    at_most=0.0006,
    because="exact law, rounded to three digits",
    kind="exact",
)
claim(
    "Divergence of averages",
    divergence(exact_average),
    near=0.0061,
    within=0.0001,
    because="exact law, rounded",
    kind="exact",
)


def squares(x):
    """Squared coordinates in the posterior's directions, over the posterior's
    variances."""
    return ((x - posterior.mean) @ directions).square() * a


start = posterior.mean.expand(500, -1).contiguous()
for name, kernel in kernels.items():
    tau = table[name][3]
    run = sample(
        kernel,
        posterior,
        start,
        num_samples=10,
        warm_up=4 * tau,
        thinning=tau // 2,
        seed=1,
    )
    values, errors = run.mean_and_standard_error(squares)
    for axis, value, error, width in zip(
        ("longest", "shortest"),
        values,
        errors,
        widths(laws[name].stationary_covariance()),
        strict=True,
    ):
        claim(
            f"Width of {name} in the {axis} direction",
            value.sqrt(),
            near=round(float(width), 4),
            standard_error=error / (2 * value.sqrt()),
            because="exact law; 500 chains with real minibatches",
            kind="exact",
        )
run = sample(averaged, posterior, start, num_samples=10 * window, warm_up=200, seed=2)
averages = squares(run.samples.unflatten(0, (10, window)).mean(1)).mean(
    0
)  # of each chain
for axis, chains, width in zip(
    ("longest", "shortest"), averages.T, widths(exact_average), strict=True
):
    claim(
        f"Width of averages in the {axis} direction",
        chains.mean().sqrt(),
        near=round(float(width), 4),
        standard_error=chains.std() / 500**0.5 / (2 * chains.mean().sqrt()),
        because="exact law; 500 chains with real minibatches",
        kind="exact",
    )

# %% [markdown]
# Is {eq}`eq-csgd-rate` the best rate for the exact law too, and not only in the limit?
# Nearly: the steps are short here.
# And the iterates themselves, at the rate at which they are averaged, are far too wide: it is the averages that are draws.
#
# The counterexample to the diagonal rate is small enough to be written down: $A = \begin{pmatrix}1 & 0.6\\0.6 & 2\end{pmatrix}$ and $V = c\begin{pmatrix}4 & -5\\-5 & 8\end{pmatrix}$ with a large $c$. One rate has a divergence of 0.506, a rate for each coordinate 0.760.

# %% tags=["hide-input"]
multiples = torch.logspace(-0.5, 0.5, 201, dtype=DOUBLE).tolist()
curve = [
    divergence(law(SGLD(m * best, temperature=0.0)).stationary_covariance())
    for m in multiples[50:151]
]
claim(
    "Rate with the least exact divergence over the recommended one",
    multiples[50 + curve.index(min(curve))],
    near=0.977,
    within=0.012,
    because="exact laws on a grid in steps of about 1 per cent",
    kind="exact",
)
claim(
    "Width of the iterates that are averaged, in the shortest direction",
    widths(law(averaged).stationary_covariance())[1],
    at_least=5,
    because="exact law: 5.66",
    kind="exact",
)
crossed = (
    torch.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=DOUBLE),
    1e4 * torch.tensor([[4.0, -5.0], [-5.0, 8.0]], dtype=DOUBLE),
)
for kind, value in (("scalar", 0.506), ("diagonal", 0.760)):
    kernel = constant_sgd(crossed[1], kind)
    covariance = langevin_chain(
        crossed[0], 1.0, crossed[1], temperature=0.0, mass=kernel.mass
    ).stationary_covariance()
    claim(
        f"Divergence of the {kind} rate for a noise across the curvature",
        divergence(covariance, crossed[0]),
        near=value,
        within=0.001,
        because="exact law, c = 10,000",
        kind="exact",
    )

# %% [markdown]
# ## A posterior that is not Gaussian
#
# For a logistic regression neither the quadratic nor the noise is exact.
# We find the mode by Newton's method, estimate $V$ there from minibatches, and compare the draws' standard deviations with those of NUTS, which needs none of this ({numref}`fig-csgd-logistic`).

# %%
generator.manual_seed(1)
mixing = torch.block_diag(torch.tensor([[1.0, 0.8], [0.0, 0.6]]), torch.eye(2) / 2)
inputs = torch.randn(N, 4, generator=generator, dtype=DOUBLE) @ mixing.double()
inputs[:, 3] = 1.0
logits = inputs @ torch.tensor([1.0, -1.0, 1.5, -1.0], dtype=DOUBLE)
labels = torch.rand(N, generator=generator, dtype=DOUBLE) < torch.sigmoid(logits)
logistic = LogisticRegression(inputs, labels.double())
minibatches = LogisticRegression(inputs, labels.double(), batch_size=20)

mode = torch.zeros(1, 4, dtype=DOUBLE)
for _ in range(10):  # Newton's method
    p = torch.sigmoid(inputs @ mode[0])
    hessian = (inputs.T * (p * (1 - p))) @ inputs + torch.eye(4, dtype=DOUBLE)
    mode = mode - torch.linalg.solve(hessian, logistic.gradient(mode), left=False)
copies = mode.expand(200, -1).contiguous()
V_hat = estimate_noise_variance(minibatches, copies, generator, "full", num_batches=20)

variants = {
    "scalar": constant_sgd(V_hat, "scalar"),
    "diagonal": constant_sgd(V_hat, "diagonal"),
    "full": constant_sgd(V_hat, "full"),
    "full, V + A": constant_sgd(V_hat + hessian, "full"),
}
start = mode.expand(500, -1).contiguous()
settings = dict(num_samples=40, warm_up=600, thinning=25, seed=3)
draws = {k: sample(v, minibatches, start, **settings) for k, v in variants.items()}
nuts, position = adapt(NUTS(0.1), logistic, start[:100], 100)
reference = sample(nuts, logistic, position, num_samples=200, seed=4)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-csgd-logistic", "caption": "Logistic regression: standard deviations of the four coefficients over those of NUTS (grey: 1), for constant SGD with a scalar, a diagonal and a full rate, and a full one with the curvature. The first two coefficients are those of correlated inputs."}, "image": {"alt": "Standard deviations relative to NUTS. The scalar rate gives between a half and 1.1, the diagonal one 0.6 for the two correlated coefficients and 1 for the others, both full ones about 1 for all four."}}
figure, axes = plt.subplots()
axes.axhline(1, color=TRUTH)
markers = {"scalar": "o", "diagonal": "s", "full": "^", "full, V + A": "D"}
spread = reference.samples.flatten(0, 1).std(0)
ratios = {
    name: run.samples.flatten(0, 1).std(0) / spread for name, run in draws.items()
}
for place, (name, ratio) in enumerate(ratios.items()):
    hollow = "none" if name in ("scalar", "diagonal") else COLOURS["SGD"]
    across = torch.arange(4) + 0.12 * (place - 1.5)
    axes.plot(
        across, ratio, markers[name], color=COLOURS["SGD"], mfc=hollow, label=name
    )
axes.set(
    xticks=range(4),
    xticklabels=[rf"$\theta_{k}$" for k in range(1, 5)],
    ylabel="standard deviation over NUTS's",
    ylim=(0, 1.4),
)
axes.legend(ncols=2)
plt.show()

# %% tags=["hide-input"]
claim(
    "Smallest of the four ratios, scalar rate",
    ratios["scalar"].min(),
    near=0.53,
    within=0.06,
    because="a ball; seeds differ by 0.01",
)
claim(
    "Largest of the four ratios, scalar rate",
    ratios["scalar"].max(),
    near=1.13,
    within=0.08,
    because="a ball; seeds differ by 0.02",
)
claim(
    "Ratios of the two correlated coefficients, diagonal rate, the larger one",
    ratios["diagonal"][:2].max(),
    near=0.6,
    within=0.06,
    because=(
        "Σ = ½cP knows no correlation: it has the conditional width, √(1 − 0.8²) of "
        "the whole; seeds differ by 0.01"
    ),
)
claim(
    "Largest distance of a ratio from 1, full rate with the curvature",
    (ratios["full, V + A"] - 1).abs().max(),
    at_most=0.05,
    because=(
        "20,000 draws each know a standard deviation to about 1 per cent, and the "
        "posterior is nearly Gaussian"
    ),
)
means = (
    draws["full, V + A"].samples.flatten(0, 1).mean(0)
    - reference.samples.flatten(0, 1).mean(0)
) / spread
claim(
    "Largest distance of a mean from NUTS's, in standard deviations",
    means.abs().max(),
    at_most=0.08,
    because="20,000 draws each; 0.01 to 0.03",
)

# %% [markdown]
# The full rates give widths that are right to a few per cent, from minibatches of 20.
# The diagonal rate gives each coefficient the width that it has when the others are known, $1/\sqrt{A_{kk}}$ by the second part of {prf:ref}`thm-csgd-matrix`; for the correlated ones that is 0.6 of the whole.
#
# ## Where it fails
#
# **Large minibatches.**
# With $V = cA$ the full rate $2V^{-1}$ has the exact law $\Sigma = \frac c{c - 1}A^{-1}$, and $c \approx (N - n)/n$.
# It is too wide by half a per cent in the table above, and at half of the data the chain explodes ({numref}`fig-csgd-batch`).
# The noise that was to do the work has become too small for the rate that it asks for.
# With the curvature in the rate, the third part of {prf:ref}`thm-csgd-matrix`, all sizes are right.


# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-csgd-batch", "caption": "Width in the shortest direction against the share of the data in a minibatch: exact laws (lines) and 500 chains (points, two standard errors); the truth is 1 (grey). The rates that theory for small steps recommends make the chain explode before a minibatch holds half of the data."}, "image": {"alt": "Width against n over N. The scalar rate's line starts at 1.3 and rises steeply before 0.4, that of the full rate starts at 1 and rises steeply before one half, and that of the full rate with the curvature stays at 1."}}
figure, axes = plt.subplots()
sizes = [
    5,
    10,
    20,
    50,
    100,
    150,
    200,
    250,
    300,
    330,
    350,
    380,
    400,
    420,
    440,
    460,
    600,
    800,
]
styles = {"scalar": ":", "full": "--", "full, V + A": "-"}
lines, points = {name: {} for name in styles}, {}
for size in sizes:
    sized = LinearRegression(*posterior.data, batch_size=size)
    V_sized = noise_variance(sized, exact)
    for name, rates in {
        "scalar": constant_sgd(V_sized, "scalar"),
        "full": constant_sgd(V_sized, "full"),
        "full, V + A": constant_sgd(V_sized + A, "full"),
    }.items():
        try:
            lines[name][size] = float(
                widths(law(rates, sized).stationary_covariance())[1]
            )
        except ValueError:  # no stationary law
            continue
        if size in (100, 300) and name != "scalar":
            copies = posterior.mean.expand(500, -1).contiguous()
            run = sample(
                rates, sized, copies, num_samples=6, warm_up=40, thinning=5, seed=size
            )
            value, error = (x[1] for x in run.mean_and_standard_error(squares))
            points[name, size] = value.sqrt(), error / (2 * value.sqrt())
for name, style in styles.items():
    share = [size / N for size in lines[name]]
    axes.plot(
        share, list(lines[name].values()), style, color=COLOURS["SGD"], label=name
    )
for (_, size), (value, error) in points.items():
    axes.errorbar(
        size / N, float(value), 2 * float(error), fmt="o", ms=4, color=COLOURS["SGD"]
    )
axes.axhline(1, color=TRUTH, zorder=0)
axes.set(
    xlabel="share of the data in a minibatch, $n/N$",
    ylabel="width, shortest direction",
    ylim=(0, 4),
)
axes.legend()
plt.show()

# %% tags=["hide-input"]
for (name, size), (value, error) in points.items():
    claim(
        f"Width with minibatches of {size}, {name}",
        value,
        near=round(lines[name][size], 4),
        standard_error=error,
        because="exact law; 500 chains",
        kind="exact",
    )
claim(
    "Largest batch in the figure with a stationary law, full rate",
    max(lines["full"]),
    at_most=499,
    because="V must exceed A: c > 1",
)
claim(
    "Largest batch in the figure with a stationary law, full rate with the curvature",
    max(lines["full, V + A"]),
    at_least=800,
    because="any V",
)

# %% [markdown]
# **A model that does not fit.**
# The full rates use the noise that is there, whatever its reason.
# Averages do not: they have the covariance $A^{-1}VA^{-1}/K$, and if the model believes in noise of variance 1 where there is 4, that is four times the posterior's.
# Now $A^{-1}VA^{-1}/K$ is known as the *sandwich*: it says how much $\hat\theta$ would vary over other data sets, a good question, but not the one that the posterior answers.
#
# **Directions without noise.**
# An input that is zero in all examples has a coefficient about which the data say nothing; its posterior is the prior.
# Minibatches say nothing about it either, and SGD leaves it where it is: $\Sigma$ is singular, the divergence infinite, and $V$ has no inverse.
# The injected noise of SGLD spreads it as it should.
#
# **Passes over shuffled data.**
# Theory wants independent minibatches, but many programs shuffle the data and go through them.
# Within a pass every example comes once, so that the errors $\xi_t$ nearly cancel, and so does $\bar\xi$ in {eq}`eq-csgd-telescope`.
# The averages are then far too narrow, and so are the iterates.

# %% tags=["hide-input"]
misfit = LinearRegression(
    posterior.data[0],
    targets + (targets - posterior.data[0] @ posterior.mean),
    batch_size=n,
)
wide = widths(law(averaged, misfit).average_covariance(window), misfit)
claim(
    "Width of averages where the noise has twice the standard deviation, longest "
    "direction",
    wide[0],
    near=1.86,
    within=0.01,
    because="exact law",
    kind="exact",
)
claim(
    "Width of averages there, shortest direction",
    wide[1],
    near=1.96,
    within=0.01,
    because="exact law; 2 in the limit of long windows",
    kind="exact",
)
full_rate = constant_sgd(noise_variance(misfit, exact) + A, "full")
claim(
    "Distance of the widths of full P = 2(V + A)⁻¹ there from 1",
    (widths(law(full_rate, misfit).stationary_covariance(), misfit) - 1).abs().max(),
    at_most=1e-6,
    because="exact law",
    kind="exact",
)
blind = LinearRegression(
    torch.cat([posterior.data[0], torch.zeros(N, 1, dtype=DOUBLE)], 1),
    targets,
    batch_size=n,
)
V_blind = noise_variance(blind, blind.covariance)
try:
    constant_sgd(V_blind, "full")
    refused = False
except ValueError:
    refused = True
claim(
    "The full rate is refused where a direction has no noise",
    refused,
    because="V has no inverse",
)
run = sample(
    constant_sgd(V_blind, "scalar"),
    blind,
    blind.mean.expand(100, -1).contiguous(),
    num_samples=1,
    warm_up=199,
    seed=5,
)
claim(
    "SGD leaves the third coefficient where it is",
    bool((run.samples[..., 2] == blind.mean[2]).all()),
    because="its gradient is zero in every minibatch",
)
mass = 0.5001 * float(torch.linalg.eigvalsh(V_blind)[-1])
spread_out = law(
    SGLD(1.0, noise_estimate=V_blind / 2, mass=mass), blind
).stationary_covariance()
claim(
    "Width of SGLD in the third coefficient",
    spread_out[2, 2].sqrt(),
    near=1,
    within=0.001,
    because="exact law; the prior's standard deviation is 1",
    kind="exact",
)
shuffled = LinearRegression(*posterior.data, batch_size=n, minibatches=Passes())
start = posterior.mean.expand(500, -1).contiguous()
run = sample(
    averaged, shuffled, start, num_samples=10 * (N // n), warm_up=2 * N // n, seed=6
)
value = (
    squares(run.samples.unflatten(0, (10, N // n)).mean(1)).mean((0, 1)).sqrt().max()
)
claim(
    "Width of averages over shuffled passes, the larger direction",
    value,
    at_most=0.5,
    because="0.35 and 0.27, with standard errors below 0.01",
)
run = sample(
    kernels["full, V + A"],
    shuffled,
    start,
    num_samples=10,
    warm_up=300,
    thinning=50,
    seed=7,
)
value = squares(run.samples).mean((0, 1)).sqrt().max()
claim(
    "Width of full P = 2(V + A)⁻¹ with shuffled passes, the larger direction",
    value,
    at_most=0.75,
    because="about 0.62, with standard errors of 0.01",
)

# %% [markdown]
# ## In practice
#
# * Constant SGD is worth a thought where a model is trained by SGD anyway, the posterior is close to a Gaussian, and a rough width is enough; look at {doc}`/book/stochastic_gradients/sghmc` where it is not.
# * One rate for all, $2d/\operatorname{tr}V$, gives the right average size and the shape of the noise, not that of the posterior.
# * If you can afford a matrix, take the full rate with the curvature in it; if not, averages over a pass of independent minibatches come next.
# * Estimate $V$ with `estimate_noise_variance` at the mode; the rates are only as good as that.
# * Draw minibatches afresh. A shuffled pass is good for optimising, and spoils the draws.
# * Use SGLD when there are directions that the data do not reach.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-csgd-temperature
#
# With the rate $P = 2\kappa V^{-1}$, which law do the iterates have where steps are short?
# Why does SGD with a rate that falls end at the mode?
# ```
#
# ```{solution} ex-csgd-temperature
# :class: dropdown
#
# Put $\Sigma = \kappa A^{-1}$ into {eq}`eq-csgd-ou`: $2\kappa P = PVP$ holds.
# The target is tempered: $\kappa$ is a temperature.
# A falling rate cools it to zero.
# ```
#
# ```{exercise}
# :label: ex-csgd-pass
#
# Let $V = cA$.
# Compute the autocorrelation time of the iterates with $P = 2(V + A)^{-1}$, and compare it with a pass over the data, drawn without replacement.
# ```
#
# ```{solution} ex-csgd-pass
# :class: dropdown
#
# $P = \frac2{c + 1}A^{-1}$, so $F = \frac{c - 1}{c + 1}I$, and every direction is an autoregression with $\rho = \frac{c - 1}{c + 1}$.
# Its autocorrelation time is $\frac{1 + \rho}{1 - \rho} = c$.
# With $c = (N - n)/n$ these are $c\,n = N - n$ examples a draw: one pass, less a minibatch.
# ```
#
# ```{exercise}
# :label: ex-csgd-sgld
#
# Which noise estimate makes SGLD with mass $M$ exact on a Gaussian, at every stable step size?
# ```
#
# ```{solution} ex-csgd-sgld
# :class: dropdown
#
# $\hat B = \tfrac12\eta(V + A)$.
# The total noise is then $2\eta M^{-1} - \eta^2M^{-1}AM^{-1}$, and with $F = I - \eta M^{-1}A$ this is $A^{-1} - FA^{-1}F^\top$.
# The error of the step acts like the noise of a minibatch with covariance $A$, and can be taken out like one.
# It needs $\hat B \preceq M$; where they are equal nothing is injected, and that is the third part of {prf:ref}`thm-csgd-matrix`.
# ```
#
# ```{exercise}
# :label: ex-csgd-momentum
#
# SGHMC at temperature zero is SGD with momentum.
# Which friction makes it sample the posterior where steps are short, without any injected noise?
# ```
#
# ```{solution} ex-csgd-momentum
# :class: dropdown
#
# In the limit of short steps it is $d\theta = M^{-1}r\,dt$, $dr = -\nabla U\,dt - CM^{-1}r\,dt + N(0, 2B\,dt)$ with $B = \tfrac12\varepsilon V$.
# {doc}`/book/stochastic_gradients/sghmc` shows that $e^{-U}$ is stationary if the noise is $N(0, 2C\,dt)$: so $C = B$, as a matrix, with any mass.
# It is what SGHMC does with $\hat B = C$.
# The cell below checks it on the exact law.
# ```

# %% tags=["hide-input"]
wanted = crossed[0]
friction = torch.tensor([[4.0, -5.0], [-5.0, 8.0]], dtype=DOUBLE)
for step in (0.1, 0.01):
    chain = sghmc_chain(
        wanted, step, friction, noise_variance=2 / step * friction, temperature=0.0
    )
    covariance = chain.stationary_covariance()[:2, :2]
    claim(
        "Error of the covariance of SGD with momentum at C = ½εV, relative to the "
        f"posterior's, ε = {step:g}",
        (covariance - torch.linalg.inv(wanted)).norm()
        / torch.linalg.inv(wanted).norm(),
        at_most=step**2,
        because="exact law; the error is of the order of ε²",
        kind="exact",
    )

# %% [markdown]
# ## Further reading
#
# {cite:t}`mandt2017` for constant SGD, its rates, momentum and averages, with experiments; {cite:t}`polyak1992` for averages; {cite:t}`ahn2012` for SGLD whose preconditioner is made from the noise.
