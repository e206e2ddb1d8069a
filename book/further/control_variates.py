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
# Level: second course · Reading: about 25 minutes, without the exercises · Running: about 4 seconds
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
    ONE,
    least_prices,
    price_of,
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
# **One pass in place of a hundred**, for a $\theta$ with a variance right to one per cent and little friction, in the example below. Half of it is the second gradient of each example, at the mode; SGLD pays three passes.
# One pass is as much as full gradients cost here. For a $\theta$ control variates win from $N > 200\,(d + 1)$ on, and for a $\theta^2$ earlier.
# The estimate has no noise at the mode and little close by, and a posterior lies close by: its width falls as $1/\sqrt N$ while the data grow. So the number of gradients that a sample costs grows with the number of coefficients $d$ and no longer with $N$.
#
# The example is a linear regression with $N = 1{,}000$, four inputs, errors of variance 1 and a flat prior. Minibatches of $n = 10$ are drawn with replacement.
#
# *A guess before you look at {numref}`fig-control`.* Which share of the plain noise is left at a distance of one posterior standard deviation? And in a logistic regression with the same $N$, in which 19 examples have the label 1?

# %%
N, d, n = 1_000, 4, 10
data = {"generator": torch.Generator().manual_seed(0), "dtype": torch.float64}
inputs = torch.randn(N, d, **data)
targets = inputs.sum(1) + torch.randn(N, **data)
mode = torch.linalg.lstsq(inputs, targets[:, None]).solution.T  # (1, d)


def gradients(theta, minibatch):
    """The gradients (chains, n, d) of single examples at theta (chains, d)."""
    x, y = inputs[minibatch], targets[minibatch]
    return x * ((x * theta[:, None]).sum(-1) - y)[..., None]


def with_control_variate(gradients, mode):
    """A gradient (chains, d) of a minibatch, without noise where theta is the mode."""
    at_mode = gradients(mode, torch.arange(N)[None]).sum(1)  # one pass, once

    def gradient(theta, minibatch):
        change = gradients(theta, minibatch) - gradients(mode, minibatch)
        return at_mode + N / n * change.sum(1)

    return gradient


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
distances = torch.logspace(-1, 2, 31, dtype=torch.float64)
noise = [at_the_mode + grows * distances**2, grows * distances**2]

# The logistic regression: its mode by Newton's method, its posterior by importance
# sampling with a t distribution of six degrees of freedom.
generator = torch.Generator().manual_seed(1)
design = torch.cat([torch.ones(N, 1), inputs[:, 1:]], 1)
logits = design @ torch.tensor([-5.0, 1, 1, 1], dtype=torch.float64)
labels = (torch.rand(N, generator=generator) < logits.sigmoid()).double()
rare_mode = torch.zeros(d, dtype=torch.float64)
for _ in range(30):
    share = (design @ rare_mode).sigmoid()
    rare_A = (design * (share * (1 - share))[:, None]).T @ design
    step = torch.linalg.solve(rare_A, design.T @ (share - labels))
    rare_mode = rare_mode - step
normal = torch.randn(20_000, d + 6, generator=generator, dtype=torch.float64)
wide = normal[:, :d] / normal[:, d:].square().mean(1, keepdim=True).sqrt()
proposals = rare_mode + wide @ torch.linalg.cholesky(torch.linalg.inv(rare_A)).T
z = proposals @ design.T
log_weights = z @ labels - torch.nn.functional.softplus(z).sum(1)
log_weights += (6 + d) / 2 * (wide.square().sum(1) / 6).log1p()
weights = log_weights.softmax(0)
rare_right = weights @ (proposals - rare_mode).square()  # E δ², a coordinate each
chosen = torch.multinomial(weights, 200, True, generator=generator)


def rare_gradients(theta, minibatch):
    x = design[minibatch]
    return x * ((x * theta[:, None]).sum(-1).sigmoid() - labels[minibatch])[..., None]


def rare_traces(distance):
    """The traces of V over that of A, averaged over the posterior's directions."""
    theta = rare_mode + distance * (proposals[chosen] - rare_mode)
    plain = rare_gradients(theta, torch.arange(N).expand(200, N))
    change = plain - rare_gradients(rare_mode[None], torch.arange(N)[None])
    both = [g.var(1, correction=0).sum(-1).mean() for g in (plain, change)]
    return N**2 / n * torch.stack(both) / rare_A.trace()


rare = torch.stack([rare_traces(distance) for distance in distances], 1)

# %% mystnb={"figure": {"caption": "Trace of the noise covariance $V$ over the trace of the curvature $A$, so many times as far from the mode as samples of the posterior are; averaged over the samples. Solid: the linear regression, exact. Dashed: the logistic regression with 19 rare labels. Grey: where the posterior is.", "name": "fig-control"}, "image": {"alt": "On logarithmic axes, two lines that are flat near 100 and bend upwards, the dashed one beyond a distance of three and the solid one beyond ten, and two lines that rise with slope two, the dashed one about seven times as high. The dashed lines flatten at large distances. A grey band marks the distance 1."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.0))
axes.axvspan(0.8, 1.2, color=TRUTH, alpha=0.35, lw=0)
for values, dashed, name, colour in zip(
    noise, rare, ("plain", "control variate"), ("naive SGHMC", "SGLD"), strict=True
):
    axes.loglog(distances, values, color=COLOURS[colour], label=name)
    axes.loglog(distances, dashed, "--", color=COLOURS[colour])
axes.set(xlabel="distance from the mode", ylabel=r"tr $V$ / tr $A$")
axes.legend(loc="lower right")
plt.show()

# %% [markdown]
# At the distance 1 the share of the plain noise that is left is {c}`ratio` in the linear regression and {c}`ratio-rare` in the logistic one, which answers the guess.
#
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
# which is $\frac{d + 1}N$ of the plain noise, 0.005 here.
#
# In the logistic regression more is left, although $N$ is the same: most examples lie far from the boundary between the classes, and their gradients hardly change with $\theta$.
# If the model says 1 with the probability $p_i$, the difference is about $v_ix_ix_i^\top\delta$ with $v_i = p_i(1 - p_i)$, and the curvature is $\sum v_ix_ix_i^\top$.
# Above, $\frac{d + 1}N$ was $\frac{d + 2}N$ of the mean square less $\frac1N$ of the squared mean. For $v_i$ that are independent of $N(0, I)$ inputs the effective number of examples, $(\sum v_i)^2/\sum v_i^2$, takes the place of $N$ in the first term alone. It is {c}`effective` here, so with four normal inputs the share would be $\frac6{171} - \frac1{1000} = 0.034$; one of ours is the intercept, and $v$ depends on the others. This posterior is not Gaussian: the intercept has the skewness {c}`skew`.
#
# Here is what the control variate does to the variance of SGLD at the step $\eta = 0.2/N$ in the linear regression:

# %%
generator = torch.Generator().manual_seed(2)
minibatches = torch.randint(N, (400, 200, n), generator=generator)
noises = torch.randn(400, 200, d, generator=generator, dtype=torch.float64)
step_size, runs = 0.2 / N, {}
for name, gradient, bound in (
    ("plain", lambda theta, few: N / n * gradients(theta, few).sum(1), near(14, 1.0)),
    ("control", with_control_variate(gradients, mode), near(1.18, 0.04)),
):
    theta, squares = mode.expand(200, d), []
    for minibatch, xi in zip(minibatches, noises, strict=True):
        theta = theta - step_size * gradient(theta, minibatch)
        theta = theta + (2 * step_size) ** 0.5 * xi
        squares.append(N * (theta - mode).square().mean(1))
    runs[name] = torch.stack(squares[100:]).mean(0)
    check(name, runs[name].mean(), bound, because="the exact balance of these data")

# %% tags=["hide-input"]
ratio = grows / (at_the_mode + grows)
check("ratio", ratio, near(0.005, 0.001), kind="exact", digits=2)
left = rare_traces(1.0)
check("ratio-rare", left[1] / left[0], near(0.034, 0.005), digits=2)
generator = torch.Generator().manual_seed(3)
rare_size = 0.2 / float(torch.linalg.eigvalsh(rare_A)[-1])
for name, gradient, bound in (
    (
        "rare-plain",
        lambda x, few: N / n * rare_gradients(x, few).sum(1),
        near(3.9, 0.4),
    ),
    (
        "rare-control",
        with_control_variate(rare_gradients, rare_mode[None]),
        near(1.06, 0.06),
    ),
):
    theta, kept = proposals[chosen], []
    for t in range(1_200):
        few = torch.randint(N, (200, n), generator=generator)
        xi = torch.randn(200, d, generator=generator, dtype=torch.float64)
        theta = theta - rare_size * gradient(theta, few) + (2 * rare_size) ** 0.5 * xi
        if t >= 400:
            kept.append(((theta - rare_mode) ** 2 / rare_right).mean())
    check(name, torch.stack(kept).mean(), bound, because="other seeds")
share = (design @ rare_mode).sigmoid()
carried = share * (1 - share)
number = carried.sum() ** 2 / carried.square().sum()
check("effective", number, near(171, 1), kind="exact")
centred = proposals[:, 0] - weights @ proposals[:, 0]
skewness = weights @ centred**3 / (weights @ centred**2) ** 1.5
check("skew", skewness, near(-0.4, 0.1), because="importance sampling", digits=2)
A, identity = inputs.T @ inputs, torch.eye(d, dtype=torch.float64)
R = inputs[:, :, None] * inputs[:, None, :]
spread = N / n * torch.einsum("nij,nkl->ikjl", R - R.mean(0), R - R.mean(0))
moved = identity - step_size * A
moves = torch.kron(moved, moved) + step_size**2 * spread.reshape(d * d, d * d)
plain = gradients(mode, torch.arange(N)[None])[0]
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
gap = posterior.gradient_given(theta, few)
gap = gap - with_control_variate(gradients, mode)(theta, few)
says = "The package's `control_variates` and the gradient of this page differ by"
check("package", gap.abs().max(), at_most(1e-6), kind="exact", says=says)

# %% [markdown]
# In units of the posterior's variance it is {c}`plain` with the plain gradient and {c}`control` with the control variate. In the logistic regression, at 0.2 over its largest curvature, it is {c}`rare-plain` and {c}`rare-control`.
# The package makes such a posterior in one line, `control_variates(posterior, mode[0])`. The price is the search for the mode, and either $Nd$ numbers of memory or a second gradient of each example that is read.
#
# ## Where the law of the price changes
#
# By {prf:ref}`thm-price` excess × passes is $\frac nN\cdot\frac Va$ plus a term of the step. With fresh plain minibatches the first is 1, and with {eq}`eq-control-noise` it is $\frac{d + 1}N$. Counted in examples in place of passes, and with the term of the step,
#
# $$
# \text{excess of the variance} \times \text{examples for an independent } \theta = (d + 1) + n\,\frac{\varepsilon C}{2 - \varepsilon C},
# $$ (eq-control-price)
#
# *however many data there are*. With little friction, $\varepsilon C \to 0$, it is $d + 1$: one per cent costs $100\,(d + 1)$ examples, once the mode and the gradient there are known. SGLD has $\varepsilon C = 1$ and pays $d + 1 + n$.
# A $\theta^2$ costs $\tfrac12(d + 1)(1 + a/C^2)$ at small steps, by the argument of {eq}`eq-price-square`.
# {cite:t}`baker2019` show that with control variates the cost of SGLD at a given accuracy does not depend on $N$, for strongly log-concave models.

# %% tags=["hide-input"]
least = least_prices("control")
check("board-theta", least[0].passes, near(0.5, 0.01), kind="exact", digits=2)
chains = {
    "SGHMC, εC = 0.001": sghmc_chain(ONE, 0.001, 1.0, (d + 1) / n),
    "SGLD, εC = 1": langevin_chain(ONE, 0.001, (d + 1) / n),
}
prices = {name: price_of(chain) for name, chain in chains.items()}
rows = [[name, f"{n * p.excess * p.steps:.2f}"] for name, p in prices.items()]
show_table(["d = 4, n = 10, small steps", "excess × examples"], rows)

# %% [markdown]
# On the price board of {doc}`/book/further/price` a $\theta$ costs {c}`board-theta` passes. The board takes the noise at its average, V/200 in its name, and counts one gradient of each example that is read. With the second one, at the mode, it is one pass: $2\cdot100\,(d + 1) = 1{,}000$ gradients, and $N = 1{,}000$. Full gradients without a bias cost one pass as well, so for a $\theta$ control variates win from $N > 200\,(d + 1)$ on where the curvatures are alike; for a $\theta^2$ the board has two passes with full gradients, and they win earlier.
#
# Where the mode is not known, *SVRG* takes the place where the chain was some steps ago as the reference, and renews it with a pass now and then ({cite:t}`johnson2013` for optimisation, {cite:t}`dubey2016` for Langevin).
# A reference drawn from the posterior and never renewed only doubles the noise ({ref}`ex-control-stale`), so renewing helps a chain that is still on its way. It also helps where modes are many and far apart, as those of a network are: a fixed reference serves one of them.
#
# ## Keep the step small
#
# The noise that is left is not added to the distance $\delta$ from the mode but multiplies it. With one input and minibatches of one example a step of SGLD is
#
# $$
# \delta' = (1 - \eta Nx_i^2)\,\delta + \xi, \qquad \xi \sim N(0, 2\eta),
# $$ (eq-control-contraction)
#
# with a random $i$. If some factor $F = 1 - \eta Nx_i^2$ can be smaller than $-1$, a few such steps in a row throw the chain far out. The stationary distribution then has the tail of a power law, although the data are finite and the injected noise is Gaussian ({ref}`ex-control-tails`, {prf:ref}`thm-contractions`).
# At steps below $2/(N\max x_i^2)$ no factor can, so **keep the step below this bound**.
#
# ## Other ways round the noise
#
# For the underdamped chain {cite:t}`cheng2018` bound the number of steps with exact gradients, and {cite:t}`chatterji2018` with control variates.
# The zig-zag process {cite:p}`bierkens2019` uses subsamples without a bias if the gradients of the examples have known bounds; in steps {cite:p}`fearnhead2024` and in microcanonical dynamics {cite:p}`sommer2026smile` a bias of the noise remains to be made small.
#
# **To remember:** a control variate takes away the noise at the mode, so the price of a sample grows with the dimension and no longer with the data.
#
# ## Change it
#
# * In the first visible cell of code set `N, d, n = 1_000, 4, 10` to `N, d, n = 1_000, 4, 100`: both noises fall to a tenth. The variance with the plain gradient comes down to about 2.3, and with the control variate only to 1.12, because most of that excess is the error of the step.
# * In the same cell set `gradients(theta, minibatch) - gradients(mode, minibatch)` to `gradients(theta, minibatch) - 0.5 * gradients(mode, minibatch)`: the estimate stays unbiased, because `at_mode` is zero, but a quarter of the plain noise comes back, and the variance rises to about 4.4.
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
# The variance is finite while $EF^2 < 1$, so up to $N\eta = 2\,\overline{x^2}/\overline{x^4}$, which is {c}`no-variance`; a linear chain with the average curvature would be stable up to about 2.
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
