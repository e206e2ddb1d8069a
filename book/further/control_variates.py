# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Less noise: control variates
#
# ```{div} page-head
# Level: second course · Reading: about 22 minutes, without the exercises · Running: about 4 seconds
# ```
#
# ```{index} ! control variate, ! SVRG, ! heavy tails, ! tail exponent
# ```

# %%
import torch

from booklib.page.claims import check, near

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import at_most, at_most_errors
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.prices import (
    NOISE,
    ONE,
    SHARE,
    at_one_per_cent,
    least_prices,
    price_of,
    show_prices,
)
from booklib.page.tables import show_table
from sgmc.models import control_variates
from sgmc.posteriors import LinearRegression
from sgmc.splittings import langevin_chain, sghmc_chain

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# The gradient of all the data at the mode costs one pass, once.
# If a minibatch had to say only how far the gradient has changed since, what would a sample cost?
#
# One pass in place of a hundred, in the example below, with a variance right to one per cent and counting both gradients of each example.
# The estimate is exact at the mode and nearly exact close by, and a posterior lies close by: its width falls as $1/\sqrt N$ while the data grow, so the price grows with the number of coefficients and no longer with $N$.
#
# *A guess before you look at {numref}`fig-control`.* With four coefficients and $N = 1{,}000$, which share of the plain noise is left at a distance of one posterior standard deviation?
#
# The example is a linear regression with $N = 1{,}000$, four inputs, errors of variance 1 and a flat prior; minibatches of $n = 10$ are drawn with replacement.

# %%
N, d, n = 1_000, 4, 10
data = {"generator": torch.Generator().manual_seed(0), "dtype": torch.float64}
inputs = torch.randn(N, d, **data)
targets = inputs.sum(1) + torch.randn(N, **data)
mode = torch.linalg.lstsq(inputs, targets[:, None]).solution.T  # (1, d)


def example_gradients(theta, minibatch):
    """The gradients (chains, n, d) of single examples at theta (chains, d)."""
    x, y = inputs[minibatch], targets[minibatch]
    return x * ((x * theta[:, None]).sum(-1) - y)[..., None]


at_mode = example_gradients(mode, torch.arange(N)[None]).sum(1)  # one pass, once


def control_variate_gradient(theta, minibatch):
    """A gradient (chains, d) that has no noise where theta is the mode."""
    change = example_gradients(theta, minibatch) - example_gradients(mode, minibatch)
    return at_mode + N / n * change.sum(1)


# %% tags=["hide-input"]
def traces(x, y):
    """The trace of V over that of the curvature A: of the plain gradient at the mode,
    and of one with a control variate on average over δ ~ N(0, A⁻¹); exact."""
    best, A = torch.linalg.lstsq(x, y[:, None]).solution[:, 0], x.T @ x
    plain = (x * (x @ best - y)[:, None]).var(0, correction=0).sum()
    fourth = ((x * x).sum(1) * (x @ torch.linalg.inv(A) * x).sum(1)).mean()
    scale = len(x) ** 2 / n / A.trace()
    return scale * plain, scale * (fourth - A.trace() / len(x) ** 2)


at_the_mode, grows = traces(inputs, targets)
distances = torch.logspace(-1, 2, 31)
noise = torch.stack([at_the_mode + grows * distances**2, grows * distances**2])

# %% mystnb={"figure": {"caption": "Trace of the noise covariance $V$ over the trace of the curvature $A$, where every coordinate is so many posterior standard deviations away from the mode; exact, averaged over the directions of the posterior. Grey: where the posterior is.", "name": "fig-control"}, "image": {"alt": "On logarithmic axes, a line that is flat at 100 and bends upwards beyond a distance of ten, and a line that rises with slope two from 0.005 at a distance of 0.1 to meet the first at a hundred. A grey band marks the distance 1."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.0))
axes.axvspan(0.8, 1.2, color=TRUTH, alpha=0.35, lw=0)
for values, name, colour in zip(
    noise, ("plain", "control variate"), ("naive SGHMC", "SGLD"), strict=True
):
    axes.loglog(distances, values, color=COLOURS[colour], label=name)
axes.set(xlabel="distance per coordinate", ylabel=r"tr $V$ / tr $A$")
axes.legend(loc="lower right")
plt.show()

# %% [markdown]
# At the distance 1 a two-hundredth of the plain noise is left, which answers the guess.
# On the price board (curvature 1, $N/n = 100$, the variance right to one per cent) this makes the second row. It counts one gradient of each example that is read, and neither the second one, at the mode, nor the search for the mode:

# %% tags=["hide-input"]
show_prices(4)

# %% [markdown]
# ## From $N^2/n$ to $N/n$
#
# Let $g_i(\theta) = -\nabla\log p(x_i \mid \theta)$ be the gradient of an example, and $\theta^*$ the mode.
# The {term}`control variate` of $g_i(\theta)$ is the same example's $g_i(\theta^*)$, whose sum over all examples we know:
#
# $$
# \begin{aligned}
# \nabla\tilde U(\theta) = -\nabla\log p(\theta) &+ \sum_{i=1}^Ng_i(\theta^*) \\
# &+ \frac Nn\sum_{i \in S}\bigl(g_i(\theta) - g_i(\theta^*)\bigr).
# \end{aligned}
# $$ (eq-control-variate)
#
# It is unbiased, and by {prf:ref}`thm-minibatch` its covariance is $\frac{N^2}n$ times that of the differences over the examples.
# The differences are about $\nabla g_i(\theta^*)(\theta - \theta^*)$, so $V$ grows with the square of the distance.
# But a posterior has a width of the order of $1/\sqrt N$, and within it the differences have a covariance of the order of $1/N$:
#
# $$
# V \sim \frac{N^2}n \quad\text{becomes}\quad V \sim \frac{N^2}n\cdot\frac1N = \frac Nn.
# $$ (eq-control-order)
#
# For the regression we can say more. There the differences are $x_ix_i^\top\delta$ with $\delta = \theta - \theta^*$.
# If the inputs are $N(0, I)$, the curvature is $A \approx NI$ and the posterior $\delta \sim N(0, \frac1NI)$.
# Then $\operatorname{Cov}(xx^\top\delta) = \lvert\delta\rvert^2I + \delta\delta^\top$ is $\frac{d + 1}NI$ on average, where a plain gradient at the mode has $I$. So on average over the posterior
#
# $$
# V \approx \frac{d + 1}n\,A,
# $$ (eq-control-noise)
#
# which is $\frac{d + 1}N$ of the plain noise. At one posterior standard deviation this ratio is {c}`ratio` in the data, where the formula has 0.005, and with sixteen times the data it is {c}`ratio-many` times smaller.
#
# Here is what it does to the variance of SGLD at the step $\eta = 0.2/N$:

# %%
generator = torch.Generator().manual_seed(2)
minibatches = torch.randint(N, (400, 200, n), generator=generator)
noises = torch.randn(400, 200, d, generator=generator, dtype=torch.float64)
step_size, runs = 0.2 / N, {}
for name, bound in (("plain", near(14, 1.0)), ("control", near(1.18, 0.04))):
    theta, squares = mode.expand(200, d), []
    for minibatch, xi in zip(minibatches, noises, strict=True):
        if name == "control":
            gradient = control_variate_gradient(theta, minibatch)
        else:
            gradient = N / n * example_gradients(theta, minibatch).sum(1)
        theta = theta - step_size * gradient + (2 * step_size) ** 0.5 * xi
        squares.append(N * (theta - mode).square().mean(1))
    runs[name] = torch.stack(squares[100:]).mean(0)
    check(name, runs[name].mean(), bound, because="the exact balance of these data")

# %% tags=["hide-input"]
ratio = grows / (at_the_mode + grows)
check("ratio", ratio, near(0.005, 0.001), kind="exact", digits=2)
more = torch.randn(16 * N, d, **data)
plain, calm = traces(more, more.sum(1) + torch.randn(16 * N, **data))
check("ratio-many", ratio * (plain + calm) / calm, near(16, 3), kind="exact", digits=3)
A, identity = inputs.T @ inputs, torch.eye(d, dtype=torch.float64)
R = inputs[:, :, None] * inputs[:, None, :]
spread = N / n * torch.einsum("nij,nkl->ikjl", R - R.mean(0), R - R.mean(0))
moved = identity - step_size * A
moves = torch.kron(moved, moved) + step_size**2 * spread.reshape(d * d, d * d)
plain = example_gradients(mode, torch.arange(N)[None])[0]
away = []
for name, at in (
    ("plain", N**2 / n * torch.cov(plain.T, correction=0)),
    ("control", 0),
):
    added = (2 * step_size * identity + step_size**2 * at).reshape(d * d)
    exact = torch.linalg.solve(torch.eye(d * d).double() - moves, added)
    gap = runs[name].mean() - N * exact.reshape(d, d).diagonal().mean()
    away.append(float(gap.abs() / runs[name].std()) * 200**0.5)
says = "Distance of the two variances from the exact balance, in standard errors"
check("balance", max(away), at_most_errors(), because="200 chains", says=says)
flat = LinearRegression(inputs, targets, prior_variance=1e12, batch_size=n)
posterior = control_variates(flat, mode[0])
theta = mode + 0.1 * torch.randn(3, d, generator=generator, dtype=torch.float64)
few = torch.randint(N, (3, n), generator=generator)
gap = posterior.gradient_given(theta, few) - control_variate_gradient(theta, few)
says = "The package's `control_variates` and the gradient of this page differ by"
check("package", gap.abs().max(), at_most(1e-6), kind="exact", says=says)

# %% [markdown]
# In units of the posterior's variance it is {c}`plain` with the plain gradient, and {c}`control` with the control variate.
# The package makes such a posterior in one line, `control_variates(posterior, mode[0])`. The price is the search for the mode, and either $Nd$ numbers of memory or a second gradient of each example that is read.
#
# ## Where the law of the price changes
#
# By {prf:ref}`thm-price` excess × passes $= \frac nN\cdot\frac Va$ plus a term of the step. With fresh plain minibatches the first is 1. With {eq}`eq-control-noise` it is $\frac{d + 1}N$. Counted in examples in place of passes, and with the term of the step,
#
# $$
# \text{excess of the variance} \times \text{examples for an independent sample} = (d + 1) + n\,\frac{\varepsilon C}{2 - \varepsilon C},
# $$ (eq-control-price)
#
# *however many data there are*. With little friction, $\varepsilon C \to 0$, it is $d + 1$: one per cent costs $100\,(d + 1)$ examples, and one pass for the gradient at the mode, which has to be found first. SGLD has $\varepsilon C = 1$ and pays $d + 1 + n$.
# {cite:t}`nagapetyan2017` find for strongly log-concave models that plain SGLD costs about the same at every size of minibatch, and {cite:t}`baker2019` that with control variates the cost at a given accuracy does not depend on $N$.
#
# The board takes the noise at its average, which for the regression of this page is $\frac{d + 1}N = \frac1{200}$ of the plain one (V/200 in its name).

# %% tags=["hide-input"]
least = least_prices("control")
check("board-theta", least[0].passes, near(0.5, 0.01), kind="exact", digits=2)
check("board-square", least[1].passes, near(0.35, 0.01), kind="exact", digits=2)
sgld = lambda size: price_of(langevin_chain(ONE, size, NOISE / 200))
passes = SHARE * sgld(at_one_per_cent(sgld)).steps
check("board-sgld", passes, near(1.5, 0.02), kind="exact", digits=2)
chains = {
    "SGHMC, εC = 0.001": sghmc_chain(ONE, 0.001, 1.0, (d + 1) / n),
    "SGLD, εC = 1": langevin_chain(ONE, 0.001, (d + 1) / n),
}
prices = {name: price_of(chain) for name, chain in chains.items()}
rows = [[name, f"{n * p.excess * p.steps:.2f}"] for name, p in prices.items()]
show_table(["d = 4, n = 10, small steps", "excess × examples"], rows)

# %% [markdown]
# A $\theta$ costs SGHMC {c}`board-theta` passes, and a $\theta^2$ {c}`board-square`; with the second gradient of each example that is one pass, and 0.7. SGLD needs {c}`board-sgld` passes for a $\theta$, because with so little noise most of its excess is the error of its own step.
#
# Where the mode is not known, *SVRG* takes the place where the chain was some steps ago as the reference, and renews it with a pass now and then ({cite:t}`johnson2013` for optimisation, {cite:t}`dubey2016` for Langevin).
# A reference drawn from the posterior and never renewed only doubles the noise ({ref}`ex-control-stale`), so renewing helps a chain that is still on its way. Where the posterior has many modes far apart, as that of a network has, a fixed reference serves one of them, and a renewed one follows the chain, at a pass each time.
#
# ## Keep the step small
#
# The noise that is left is not added to the distance $\delta$ from the mode but multiplies it. With one input and minibatches of one example a step of SGLD is
#
# $$
# \delta' = (1 - \eta Nx_i^2)\,\delta + \xi, \qquad \xi \sim N(0, 2\eta),
# $$ (eq-control-contraction)
#
# with a random $i$. If some factor $F = 1 - \eta Nx_i^2$ can be smaller than $-1$, a few such steps in a row throw the chain far out, and the stationary distribution has the tail of a power law, out of finitely many examples and Gaussian noise ({ref}`ex-control-tails`, {prf:ref}`thm-contractions`).
# At steps below $2/(N\max x_i^2)$ no factor can, and there are no heavy tails, so keep the step below this bound.
#
# ## Other ways round the noise
#
# For the underdamped chain {cite:t}`cheng2018` bound the number of steps with exact gradients, and {cite:t}`chatterji2018` with control variates.
# The zig-zag process of {cite:t}`bierkens2019` turns at random times, which it can draw from subsamples without a bias if the gradients of the examples have known bounds; {cite:t}`fearnhead2024` replace the bounds by steps, which brings a bias back.
# Microcanonical dynamics holds the size of the momentum fixed; {cite:t}`sommer2026smile` find that minibatches bias it nonetheless where the noise differs between directions, and precondition with the shape of the noise.
#
# **To remember:** a control variate takes away the noise at the mode, so the price of a sample grows with the dimension and no longer with the data.
#
# ## Change it
#
# * In the first visible cell of code set `N, d, n = 1_000, 4, 10` to `N, d, n = 1_000, 4, 100`: both noises fall to a tenth. The variance with the plain gradient comes down to about 2.3, and with the control variate only to 1.12, because most of that excess is the error of the step.
# * In the same cell set `example_gradients(theta, minibatch) - example_gradients(mode, minibatch)` to `example_gradients(theta, minibatch) - 0.5 * example_gradients(mode, minibatch)`: the estimate stays unbiased, because `at_mode` is zero, but a quarter of the plain noise comes back, and the variance rises to about 4.4.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-how-far-square
#
# ★ In {eq}`eq-control-contraction` let the minibatches have $n$ examples, drawn with replacement, and let $a = N\overline{x^2}$ be the curvature and $w = N^2\operatorname{Var}(x^2)/n$ the variance of what a minibatch sees of it. For which steps is the variance finite, and what is it?
# ```
#
# ```{solution} ex-how-far-square
# :class: dropdown
#
# $E F^2 = (1 - \eta a)^2 + \eta^2w < 1$ if and only if $\eta < 2a/(a^2 + w)$. Then $E\delta^2 = \frac{2\eta}{1 - EF^2} = \frac1{a - \frac12\eta(a^2 + w)}$. With constant noise $w$ would be zero, and the limit $2/a$.
# ```
#
# ```{exercise}
# :label: ex-control-stale
#
# ★★ *A stale reference.* SGLD with a small step $\eta$ samples a direction of curvature $a$, and its reference is the place where it was at the last renewal, every $m$ steps.
# How large is the noise on average, in units of that with the mode as the reference? What does renewing add to the price of an independent $\theta$? Is it worth it?
# ```
#
# ```{solution} ex-control-stale
# :class: dropdown
#
# $V$ is in proportion to $E(\theta_t - \theta_{t-k})^2 = 2\sigma^2(1 - \rho_k)$, $k$ steps after a renewal, and with the mode to $\sigma^2$. With $\rho_k = (1 - \eta a)^k$ the average over a period is $2(1 - \bar\rho)$, $\bar\rho = \frac{1 - (1 - \eta a)^m}{m\eta a}$.
# Never renewed ($m \to \infty$) it is 2.
# To come down to 1, as with the mode, takes $\bar\rho = \tfrac12$, so $m\eta a \approx 1.6$. An independent $\theta$ takes $2/(\eta a)$ steps, hence $2/(m\eta a) \approx 1.3$ passes for renewing alone. That is more than twice the whole price of 0.5 with the mode, and more than doubling the noise would cost: not worth it.
# ```

# %% tags=["hide-input"]
moves = langevin_chain(ONE, 0.02, 0.0)
rho = moves.autocorrelation(torch.ones(1), 80)[:80]  # m η a = 1.6
check(
    "stale",
    2 * (1 - rho.mean()),
    near(1, 0.02),
    kind="exact",
    says="Average noise with a reference renewed every 80 steps, η = 0.02, a = 1",
)

# %% [markdown]
# ````{exercise}
# :label: ex-control-tails
#
# ★★★ **Write it yourself.** In {eq}`eq-control-contraction` let $E\log\lvert F\rvert < 0$, so that there is one stationary distribution. Show that its moment $E\lvert\delta\rvert^p$, $p \ge 1$, can be finite only if $E\lvert F\rvert^p < 1$. The *tail exponent* is the $\kappa > 0$ with $E\lvert F\rvert^\kappa = 1$:
#
# ```python
# def tail_exponent(factors):
#     """κ from the factors F of all examples, if E log|F| < 0 and some |F| > 1."""
#     ...
# ```
#
# Let the hundred $x_i$ be the quantiles of $N(0, 1)$ and $N\eta = 0.6$. Which is the first whole power of $\lvert\delta\rvert$ whose mean is infinite? From which $N\eta$ on is the variance infinite?
# ````
#
# ````{solution} ex-control-tails
# :class: dropdown
#
# In equilibrium $\delta$ and $\delta'$ have the same moments, and independent symmetric noise makes a moment larger: $E\lvert\delta\rvert^p = E\lvert F\delta + \xi\rvert^p > E\lvert F\rvert^p\,E\lvert\delta\rvert^p$. The converse is in {prf:ref}`thm-contractions`.
# As $\log E\lvert F\rvert^p$ is convex in $p$, zero at 0 and falling there, it has exactly one more zero:
#
# ```python
# def tail_exponent(factors):
#     low, high = 0.0, 1.0
#     while (factors.abs() ** high).mean() < 1:
#         low, high = high, 2 * high
#     for _ in range(60):
#         middle = (low + high) / 2
#         inside = (factors.abs() ** middle).mean() < 1
#         low, high = (middle, high) if inside else (low, middle)
#     return high
# ```
#
# Here $\kappa$ is {c}`kappa`, so the third moment is infinite; the fourth, too, so the *estimate* of the variance has no standard error.
# {cite:t}`kesten1973` and {cite:t}`goldie1991` show that $P(\lvert\delta\rvert > t)$ falls as $t^{-\kappa}$ (unless all $\log\lvert F\rvert$ are multiples of one number). The largest thousand of 400,000 samples of 100,000 chains have the exponent {c}`hill`, by Hill's estimator: $\log(\lvert\delta\rvert/t_0)$ beyond $t_0$ is exponential with the mean $1/\kappa$.
# The variance is finite while $EF^2 < 1$, so up to $N\eta = 2\,\overline{x^2}/\overline{x^4}$, which is {c}`no-variance`; a linear chain with the average curvature would be stable up to about 2. Below {c}`no-stretch` no factor exceeds 1.
# {cite:t}`gurbuzbalaban2021` and {cite:t}`hodgkinson2021` find such tails in stochastic gradient descent.
# ````


# %% tags=["hide-input"]
def tail_exponent(factors):
    low, high = 0.0, 1.0
    while (factors.abs() ** high).mean() < 1:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        inside = (factors.abs() ** middle).mean() < 1
        low, high = (middle, high) if inside else (low, middle)
    return high


x = torch.special.ndtri((torch.arange(100).double() + 0.5) / 100)
factors = 1 - 0.6 * x**2  # F of every example, at Nη = 0.6
check("kappa", tail_exponent(factors), near(2.69, 0.01), kind="exact", digits=3)
squares, fourths = x.square().mean(), (x**4).mean()
check("no-variance", 2 * squares / fourths, kind="exact", digits=2)
check("no-stretch", 2 / x.square().max(), kind="exact", digits=2)
generator = torch.Generator().manual_seed(1)
delta, kept = torch.zeros(100_000, dtype=torch.float64), []  # in units of 1/√N
for step in range(1, 181):
    chosen = torch.randint(100, delta.shape, generator=generator)
    xi = torch.randn(len(delta), generator=generator, dtype=torch.float64)
    delta = factors[chosen] * delta + (2 * 0.6) ** 0.5 * xi
    if step > 60 and step % 30 == 0:
        kept.append(delta)
largest = torch.cat(kept).abs().topk(1_001).values
hill = 1 / (largest[:-1] / largest[-1]).log().mean()
check("hill", hill, near(2.69, 0.5), because="other seeds spread by 0.09")

# %% [markdown]
# ## Further reading
#
# {cite:t}`baker2019` have control variates for SGLD, {cite:t}`brosse2018` compare them with plain SGLD and with gradient descent, and {cite:t}`nemeth2021` review both. {cite:t}`goldie1991` is the theory of such tails.
