# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # What does an independent sample cost?
#
# ```{div} page-head
# Level: second course · Reading: about 35 minutes, without the exercises · Running: about 3 seconds
# ```
#
# ```{index} ! price of a sample, passes over the data
# ```

# %%
import torch

from booklib.page.scoreboard import pace
from sgmc.splittings import langevin_chain, sghmc_chain

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import at_least, at_most, check, near
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.prices import (
    at_one_per_cent,
    least_prices,
    price_of,
    show_prices,
)
from booklib.page.tables import show_table
from sgmc import sample
from sgmc.kernels import SGLD
from sgmc.posteriors import LinearRegression

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# A step with a minibatch of 100 out of 60,000 examples costs a six-hundredth of a full gradient.
# How many passes over the data does one independent sample cost, if its variance is to be right to one per cent?
#
# **A hundred** for an independent $\theta$, which a mean needs, with small fresh minibatches, no noise estimate and a model that fits. SGLD and SGHMC cost the same, and no friction changes it.
# An independent $\theta^2$, which a variance needs, costs half of that with SGLD or at a large friction, and more at a small one.
# A sampler that reads *all* the data in each step needs one pass for a $\theta$ and two for a $\theta^2$ at the friction ½, if its integrator has no bias.
#
# {numref}`fig-price` shows it in one direction of a posterior, with curvature 1, where a step reads the share $n/N$ of the data.
# The exact chain has the three numbers that we need: how far its variance is above the right one, and how many passes an independent $\theta$ and an independent $\theta^2$ take.


# %%
def price(chain, share):
    """The excess of θ's variance, 1 being right, and the passes for a θ and a θ²."""
    variance = float(chain.stationary_covariance()[0, 0])
    theta = torch.eye(len(chain.transition))[0]
    return variance - 1, share * chain.autocorrelation_time(theta), share * pace(chain)


# %% mystnb={"figure": {"caption": "Excess of the variance of $\\theta$ over the right one, against the passes over the data that one independent $\\theta$ costs. One direction of curvature 1, no noise estimate. Each point is an exact chain: SGLD (triangles) and SGHMC with $C$ from 0.3 to 10 (circles), at many step sizes, with minibatches of a tenth, a hundredth and a thousandth of the data. Grey: the line on which the product is 1. One circle has $\\varepsilon C > 1$ and lies above it.", "name": "fig-price"}, "image": {"alt": "A double logarithmic plot. Some hundred triangles and circles lie on one grey falling line of slope minus one, from an excess of one at one pass to an excess of a thousandth at a thousand passes; one circle, at fourteen passes, lies a little above."}} tags=["hide-input"]
one = torch.eye(1, dtype=torch.float64)
points = {"textcoords": "offset points", "fontsize": 8}
figure, axes = plt.subplots(figsize=(5.2, 3.8))
axes.loglog([0.8, 2_500], [1 / 0.8, 1 / 2_500], color=TRUTH, lw=3, zorder=0)
for share in (0.1, 0.01, 0.001):
    noise = 1 / share - 1  # V of minibatches without replacement, for curvature 1
    for size in torch.logspace(-3.3, 0.0, 12).tolist():
        excess, passes, _ = price(langevin_chain(one, size * 2 / noise, noise), share)
        axes.loglog(passes, excess, "^", ms=5, color=COLOURS["SGLD"])
        for friction in (0.3, 1.0, 3.0, 10.0):
            step = size * 2 * friction / noise
            if step * friction < 1.5:
                chain = sghmc_chain(one, step, friction, noise)
                excess, passes, _ = price(chain, share)
                axes.loglog(passes, excess, "o", ms=3, color=COLOURS["SGHMC"])
                if step * friction > 1.1:
                    label = rf"$\varepsilon C = {step * friction:.1f}$"
                    axes.annotate(label, (passes, excess), (6, 4), **points)
axes.set(xlabel=r"passes over the data for an independent $\theta$")
axes.set(ylabel="excess of the variance")
plt.show()

# %% [markdown]
# All settings with $\varepsilon C \le 1$ lie on one line of slope −1, up to the share $n/N$ of their price.
# *Before you read on: why does no friction help?*
#
# This is the *price board* of the part, for $N/n = 100$ and curvature 1: the passes for an independent $\theta$ and an independent $\theta^2$, with a variance that is right to one per cent.
# Every row is computed from an exact chain.

# %% tags=["hide-input"]
show_prices(1)

# %% [markdown]
# The first two rows are this page's. The third reads all the data in each step. The palindromic step of {doc}`/book/tutorial/sgnuts` then has the exact variance on a Gaussian, so it may be as long as the posterior is wide.
# At this accuracy fresh minibatches therefore cost a hundred times as much as full gradients for a $\theta$, and 25 times as much for a $\theta^2$.
# With an integrator that has a bias, full gradients are more expensive: Algorithm 2 takes {c}`full-theta` passes for a $\theta$ ($C = \tfrac12$) and {c}`full-square` for a $\theta^2$ ($C = 1$), so the factors are then about 20 and 5.
# The other rows are ways out: {doc}`an estimate </book/further/choosing_the_estimate>`, {doc}`passes and sweeps </book/further/splittings>`, {doc}`control variates </book/further/control_variates>` and {doc}`SGD </book/further/constant_sgd>`.
#
# ## Three factors
#
# Take one direction in which the posterior has the curvature $a$, near the mode.
# The price has three factors: the excess of the chain's variance over $1/a$, the steps that it takes to forget where it was, and the share $n/N$.
# We find the first two together, from Algorithm 2 ({prf:ref}`alg-sghmc`) with $M = 1$ and $\hat B = 0$:
#
# $$
# \begin{aligned}
# \theta_{k+1} &= \theta_k + \varepsilon r_k,\\
# r_{k+1} &= (1 - \varepsilon C)r_k - \varepsilon a\theta_{k+1} + \xi_k,
# \end{aligned}
# $$
#
# where $\xi_k$ has the variance $2C\varepsilon + \varepsilon^2V$.
# Add the second line over many steps.
# The momenta on the right add up to a difference of positions, since $\varepsilon\sum r_k = \theta_K - \theta_0$.
# The variance of that difference stays bounded, as does that of $r_K - r_0$, so what is left is
#
# $$
# \varepsilon a\sum_k\theta_k = \sum_k\xi_k + \text{bounded terms}.
# $$
#
# The noise $\xi_k$ is independent from step to step. So the average of $K$ positions has the variance $(2C\varepsilon + \varepsilon^2V)/(\varepsilon a)^2K$ for large $K$.
# By definition it is also $\sigma^2\tau/K$, with the stationary variance $\sigma^2$ and the {term}`autocorrelation time` $\tau$ of {eq}`eq-tau`. Therefore
#
# $$
# \sigma^2\,\tau = \frac{2C/\varepsilon + V}{a^2}.
# $$ (eq-price-product)
#
# {prf:ref}`thm-sghmc-variance` gives $\sigma^2$; with it, $\tau$ follows, and the excess is $a\sigma^2 - 1$.
#
# ```{prf:theorem} The price of an independent sample
# :label: thm-price
#
# Let $U = \tfrac12a\theta^2$ with gradient noise of variance $V$, from minibatches of $n$ out of $N$ examples. Let {prf:ref}`alg-sghmc` run with $M = 1$, $\hat B = 0$ and its momentum kept (step 1 left out). Then at all $\varepsilon$ and $C$ for which it has a stationary distribution
#
# $$
# (a\sigma^2 - 1)\cdot\tau\cdot\frac nN = \frac nN\Bigl(\frac Va + \frac{\varepsilon C}{2 - \varepsilon C}\Bigr).
# $$ (eq-price)
#
# SGLD with the step $\eta = \varepsilon^2$ is the case $\varepsilon C = 1$.
# ```
#
# ```{admonition} Proof
# :class: dropdown
#
# Let $h = \varepsilon V/2C$ and $q = 1 - \varepsilon^2a/(4 - 2\varepsilon C)$, so that $a\sigma^2 = (1 + h)/q$ by {eq}`eq-sghmc-variance`.
# By {eq}`eq-price-product` $\tau = 2C(1 + h)/(\varepsilon a\cdot a\sigma^2) = 2Cq/(\varepsilon a)$, and hence
#
# $$
# (a\sigma^2 - 1)\,\tau = \frac{2C}{\varepsilon a}\,(1 + h - q) = \frac Va + \frac{2C}{\varepsilon a}\cdot\frac{\varepsilon^2a}{4 - 2\varepsilon C}.
# $$
#
# With $\varepsilon C = 1$ the momentum forgets its past, and $\theta$ moves by $-\varepsilon^2\nabla\tilde U$ and noise of variance $2\varepsilon^2$ ({prf:ref}`alg-sghmc` in the form {eq}`eq-sghmc-learning-rate` with $\alpha = 1$).
# ```
#
# What is $V$?
# If the data make the curvature $a$, and not the prior, it is a sum over $N$ examples, and each brings about $a/N$. In a model that fits, the gradient of a single example has just this variance ({eq}`eq-fisher`).
# Minibatches drawn without replacement then have, by {eq}`eq-v`,
#
# $$
# V = \Bigl(\frac Nn - 1\Bigr)a,
# $$ (eq-price-noise)
#
# up to a relative error of order $1/\sqrt N$, because the data are a sample. Insert it in {eq}`eq-price`: the right side is $1 - \frac nN\cdot\frac{2 - 2\varepsilon C}{2 - \varepsilon C}$. This is 1 for SGLD, and between $1 - n/N$ and 1 for SGHMC with $\varepsilon C \le 1$.
# In words,
#
# $$
# \text{excess of the variance} \times \text{passes for an independent } \theta = 1,
# $$
#
# whatever the step size, the friction and the size of the minibatch, as long as $n \ll N$ and $\varepsilon C \le 1$.
# This answers the question: the friction cancels in the product.
# A smaller step and a larger minibatch buy accuracy at the same price.
# For a model that does not fit, the 1 becomes $\frac nN\cdot\frac Va$.
# The nearest earlier statement that we know is by {cite:t}`nagapetyan2017`: for strongly log-concave models SGLD costs about the same at every size of minibatch.
#
# Six settings with $a = 1$, and a hundredth of the data a minibatch in all but the last two:

# %%
one = torch.eye(1, dtype=torch.float64)
settings = {
    "SGLD, η = 0.0002": (langevin_chain(one, 0.0002, 99.0), 0.01),
    "SGLD, η = 0.001": (langevin_chain(one, 0.001, 99.0), 0.01),
    "SGHMC, ε = 0.001, C = 0.3": (sghmc_chain(one, 0.001, 0.3, 99.0), 0.01),
    "SGHMC, ε = 0.001, C = 3": (sghmc_chain(one, 0.001, 3.0, 99.0), 0.01),
    "n = N/10, ε = 0.01, C = 1": (sghmc_chain(one, 0.01, 1.0, 9.0), 0.1),
    "n = N/1000, ε = 0.001, C = 1": (sghmc_chain(one, 0.001, 1.0, 999.0), 0.001),
}
products = []
for name, (chain, share) in settings.items():
    excess, passes, _ = price(chain, share)
    products.append((excess * passes, share))
    print(f"{name:30}{excess:8.4f} × {passes:7.2f} passes = {excess * passes:.3f}")

# %% tags=["hide-input"]
check(
    "product-one",
    max(abs(1 - product) - share for product, share in products),
    at_most(1e-3),
    kind="exact",
    says="The six products differ from 1 by more than n/N by at most",
)
product, other = [], []
for step, friction, share in ((1e-3, 0.1, 0.01), (0.05, 5.0, 0.1), (0.3, 1.0, 0.5)):
    noise = 1 / share - 1
    excess, passes, _ = price(sghmc_chain(one, step, friction, noise), share)
    product.append(excess * passes)
    other.append(share * (noise + step * friction / (2 - step * friction)))
gaps = [abs(x - y) for x, y in zip(product, other, strict=True)]
check(
    "law",
    max(gaps),
    at_most(1e-9),
    kind="exact",
    because="the exact chain against the theorem; rounding",
    says="The two sides of the law differ, at three settings, by at most",
)

# %% [markdown]
# ## The price of a variance
#
# An independent $\theta$ is what a mean needs. A variance needs independent values of $\theta^2$. For a Gaussian $\theta$ with the autocorrelation $\rho$ that of $\theta^2$ is $\rho^2$.
# The autocorrelations of SGLD's $\theta$ are powers of $1 - \eta a$. Those of $\theta^2$ decay twice as fast, so the product is ½ up to terms of order $\eta a$.
# For SGHMC an independent $\theta^2$ takes $(C^2 + a)/(aC\varepsilon)$ steps ({eq}`eq-friction-cost`), in place of $2C/(a\varepsilon)$ for $\theta$. This holds without an estimate as well, because more noise multiplies all covariances by one number and leaves $\rho$ as it is. So the product is
#
# $$
# \tfrac12\Bigl(1 + \frac a{C^2}\Bigr).
# $$ (eq-price-square)
#
# That is never below ½, at small steps: with little friction $\theta$ swings, and the swings cancel in a mean but not in a variance.
#
# Each row of the board has the largest step that keeps one per cent. The third is exact at every step, and has half of the largest stable one. For $\theta^2$ the friction is the cheapest one. For $\theta$ a small one would often be, but the board stops at ½, because a smaller one makes $\theta^2$ expensive.

# %% tags=["hide-input"]
least = least_prices("sgld")[0].passes, least_prices("sghmc")[1].passes
check("board-theta", least[0], near(100, 0.02), kind="exact", digits=4)
check("board-square", least[1], near(49.6, 0.02), kind="exact", digits=3)


def full_gradients(friction):
    """The price of Algorithm 2 with exact gradients, at an excess of one per cent."""

    def chain(size):
        return price_of(sghmc_chain(one, size, friction))

    return chain(at_one_per_cent(chain))


passes = full_gradients(0.5).steps, full_gradients(1.0).steps_of_square
check("full-theta", passes[0], near(5.1, 0.02), kind="exact", digits=2)
check("full-square", passes[1], near(9.96, 0.02), kind="exact", digits=3)

# %% [markdown]
# A $\theta$ costs SGLD {c}`board-theta` passes. The cheapest $\theta^2$ costs {c}`board-square`; it takes a friction of 30, at which SGHMC is nearly SGLD.
#
# ## Several directions: the condition number
#
# With several curvatures all directions share one step. The excess $\tfrac12\eta V$ is in proportion to $a$, so it is largest in the stiffest direction. The passes $2n/(\eta aN)$ are largest in the softest one.
# The product of the two is $a_{\max}/a_{\min}$, the *condition number*. One per cent everywhere costs a hundred times the condition number in passes, unless a mass matrix makes the directions alike.
# With all the data in each step, and an integrator without bias, it is only the *root* of that number: the step $\varepsilon = 1/\sqrt{a_{\max}}$ and the friction $C = \sqrt{a_{\min}}$ make $(C^2 + a)/(aC\varepsilon)$ at most twice the root.
#
# ## With real minibatches
#
# The law took $V$ as constant. In a linear regression we can see what real minibatches change.
# The gradient of an example is $g_i = x_i(x_i\cdot\theta - y_i)$. At the distance $\delta = \theta - \hat\theta$ from the posterior mean, with the residual $e_i$ there, it is $-x_ie_i + x_ix_i^\top\delta$, so the noise grows with the distance.
# The covariance of SGLD then follows a linear recursion, whose fixed point is {eq}`eq-regression-balance`. It stays finite exactly if the map has a spectral radius below one.

# %%
generator = torch.Generator().manual_seed(0)
N, n = 1_000, 20
inputs = torch.randn(N, 3, generator=generator)
targets = inputs @ torch.tensor([1.0, -2.0, 0.5]) + torch.randn(N, generator=generator)

# %% tags=["hide-input"]
regression = LinearRegression(inputs, targets, batch_size=n)
x, A, identity = inputs.double(), regression.precision.double(), torch.eye(3).double()
residuals = targets.double() - x @ regression.mean.double()
squares = x[:, :, None] * x[:, None, :]
squares = squares - squares.mean(0)  # R_i
factor = N**2 / n * (N - n) / (N - 1)
noise_at_mean = factor * torch.cov((x * residuals[:, None]).T, correction=0)


def exact_covariance(step_size):
    """The fixed point of the balance, which is linear in the covariance."""
    moved = identity - step_size * A
    spread = torch.einsum("nij,nkl->ikjl", squares, squares).reshape(9, 9) / N
    moves = torch.kron(moved, moved) + step_size**2 * factor * spread
    added = 2 * step_size * identity + step_size**2 * noise_at_mean
    radius = float(torch.linalg.eigvals(moves).abs().max())
    solved = torch.linalg.solve(torch.eye(9).double() - moves, added.reshape(9))
    return solved.reshape(3, 3), radius


rows, products = [], []
right = torch.linalg.inv(A).diagonal()
for step_size in (1e-5, 3e-5, 1e-4):
    covariance, _ = exact_covariance(step_size)
    excess = float((covariance.diagonal() / right).mean()) - 1
    decay = step_size * torch.linalg.eigvalsh(A)
    passes = float(((2 - decay) / decay).mean()) * n / N
    rows.append(
        [f"{step_size:g}", f"{excess:.4f}", f"{passes:.2f}", f"{excess * passes:.3f}"]
    )
    products.append(excess * passes)
show_table(["step size η", "excess of the variance", "passes", "product"], rows)
check(
    "regression",
    max(products, key=lambda product: abs(product - 1)),
    near(1, 0.1),
    kind="exact",
    digits=4,
    because="N/n − 1 in place of N/n, the growth of V, and 4 % between data sets",
)
run = sample(
    SGLD(3e-5),
    regression,
    regression.mean.expand(1_000, -1).contiguous(),
    num_samples=20,
    warm_up=150,
    thinning=17,
    seed=2,
)
width, error = run.mean_and_standard_error(
    lambda theta: ((theta - regression.mean) ** 2 / right).mean(-1)
)
exact = float((exact_covariance(3e-5)[0].diagonal() / right).mean())
check("regression-run", width, near(exact), error=error, because="the exact covariance")
check("regression-large", exact_covariance(1.5e-3)[1], at_most(0.9), kind="exact")
check("regression-unstable", exact_covariance(1.8e-3)[1], at_least(1.1), kind="exact")
limit = 2 / float(torch.linalg.eigvalsh(A)[-1])
check("regression-limit", limit, at_least(1.8e-3), kind="exact", digits=3)

# %% [markdown]
# The table has the average over the three coefficients. The product that is furthest from 1 is {c}`regression`, and a thousand chains of SGLD at $\eta = 3\cdot10^{-5}$ have the exact variance ratio: {c}`regression-run`.
# The law holds even at an excess of 2.7 times the right variance. At still larger steps the chain has no stationary variance any more: the spectral radius is {c}`regression-large` at $\eta = 1.5\cdot10^{-3}$ and {c}`regression-unstable` at $1.8\cdot10^{-3}$, although with all the data the chain would be stable up to {c}`regression-limit`.
#
# So fresh minibatches save nothing at an accuracy of one per cent. At an excess of a hundred per cent a $\theta$ costs one pass, as with full gradients; only a $\theta^2$ is cheaper, half a pass in place of two. They do save on the way in from a bad start, as in stochastic gradient descent.
# {cite:t}`brosse2018` and {cite:t}`nemeth2021` find that plain SGLD is no cheaper than full gradients at the same accuracy, and that {doc}`control variates </book/further/control_variates>` can make it so.
#
# **To remember:** with fresh minibatches and no noise estimate, excess of the variance × passes for an independent $\theta$ = 1. One per cent costs a hundred passes, where full gradients cost one, or five with the bias of Algorithm 2.
#
# ## Change it
#
# * In the visible cell that makes the regression set `N, n = 1_000, 20` to `N, n = 1_000, 200`: the excess in the table falls to a tenth, the passes grow tenfold, and the product stays at 1, as the theorem says of SGLD at every $n$.
# * In the cell of {numref}`fig-price` set `(0.3, 1.0, 3.0, 10.0)` to `(0.03, 0.1)`: the circles stay on the line.
# * In the cell of the six settings set `excess, passes, _ = price(chain, share)` to `excess, _, passes = price(chain, share)`, the price of a $\theta^2$: the products become 0.5 for SGLD and $\tfrac12(1 + 1/C^2)$ for SGHMC, which is 6 at $C = 0.3$.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-price-epochs
#
# ★ *Choose a parameter.* A model with $N = 60{,}000$ examples fits; you want 200 independent samples of $\theta$ with variances that are right to five per cent, by SGLD with $n = 500$.
# How many epochs does that take, and which step size, if the curvature is $a = N$ in every direction?
# What changes with $n = 50$?
# ```
#
# ```{solution} ex-price-epochs
# :class: dropdown
#
# Five per cent costs 20 passes for each sample, so 4,000 epochs.
# The excess is $\tfrac12\eta V$ with $V \approx \frac Nna$, so $\eta = 2\cdot0.05\,n/(N\cdot N) = 1.4\cdot10^{-8}$.
# With $n = 50$ the step is a tenth of it, the number of epochs the same.
# ```
#
# ````{exercise}
# :label: ex-price-square
#
# ★★ **Write it yourself.** Find the steps for an independent $\theta^2$ without `pace`, by adding up squared autocorrelations.
#
# ```python
# def steps_of_square(chain, num_lags):
#     """1 + 2 Σ ρₖ² of θ, the first coordinate of the chain."""
#     ...
# ```
#
# Then derive {eq}`eq-price-square` from the excess $\varepsilon V/2C$ and {eq}`eq-friction-cost`. Which friction is the best one for a *given step size*, and which for a *given excess*?
# ````
#
# ````{solution} ex-price-square
# :class: dropdown
#
# ```python
# def steps_of_square(chain, num_lags):
#     theta = torch.eye(len(chain.transition))[0]
#     return float(2 * chain.autocorrelation(theta, num_lags).square().sum() - 1)
# ```
#
# $\frac{\varepsilon V}{2C}\cdot\frac{C^2 + a}{aC\varepsilon}\cdot\frac nN = \frac{V}{2a}\cdot\frac{C^2 + a}{C^2}\cdot\frac nN$, and $\frac nN V \approx a$.
# For a given step the cost is least at $C = \sqrt a$ ({doc}`/book/tutorial/sghmc`). For a given excess it falls with the friction towards that of SGLD, because a larger friction allows a larger step.
# ````


# %% tags=["hide-input"]
def steps_of_square(chain, num_lags):
    theta = torch.eye(len(chain.transition))[0]
    return float(2 * chain.autocorrelation(theta, num_lags).square().sum() - 1)


chain = sghmc_chain(one, 0.1, 1.0)
check(
    "lags",
    abs(steps_of_square(chain, 500) - pace(chain)),
    at_most(1e-9),
    kind="exact",
    says="The solution differs from `pace`, at ε = 0.1 and C = 1, by",
)

# %% [markdown]
# ```{exercise}
# :label: ex-price-diagnose
#
# ★★ *Diagnose a run.* Without a noise estimate, 30 epochs of SGLD gave an effective sample size of 900, in a direction in which the data make the curvature and not the prior. How far is the variance from the right one there? The authors halve the step and find the same effective sample size after 60 epochs. What do they learn about the excess?
# ```
#
# ```{solution} ex-price-diagnose
# :class: dropdown
#
# A sample took $\frac1{30}$ of a pass, so the excess is 30, and the variance about 31 times the right one.
# Half the step doubles the passes, as they find; by the law it halves the excess, and the variance is still 16 times the right one (if the chain is stable at all).
# So without a noise estimate a *large* effective sample size for each epoch is a bad sign.
# ```
#
# ## Further reading
#
# {cite:t}`teh2016` and {cite:t}`vollmer2016` have the bias and the variance of SGLD, each by itself.
