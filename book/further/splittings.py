# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Which splitting, and in which order the data?
#
# ```{div} page-head
# Level: second course · Reading: about 20 minutes, without the exercises · Running: about 8 seconds
# ```
#
# ```{index} ! splitting, ! BAOAB, ! UBU, ! shuffling, ! symmetric minibatch splitting
# ```

# %%
import torch

from sgmc import sample
from sgmc.minibatches import Fresh, Passes, Sweeps
from sgmc.posteriors import LinearRegression
from sgmc.splittings import Splitting, flows, linear_chain

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt

from booklib.page.claims import at_least, at_most, check, near
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.prices import ordered_price, price_of, show_prices
from booklib.page.tables import show_table
from sgmc.kernels import SGHMC
from sgmc.noise import OnlineNoise
from sgmc.splittings import sghmc_chain
from sgmc.targets import Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Steps are large on purpose, and chains many and short.
warnings.filterwarnings("ignore", message=".*too wide|.*too cold|.*do not agree")

# %% [markdown]
# A sampler reads one minibatch gradient a step.
# What else is in its power? Two things: how it composes the moves of a step, and in which order it takes the data.
# Which of them matters?
#
# A composition is a list of moves, such as *BAOA*, a kick (B) by the gradient, half a drift (A), friction and its noise (O), half a drift:


# %%
def baoa(step_size, friction):
    """BAOAB with its two half kicks as one, at one gradient a step."""
    drift = flows.Drift(step_size / 2)
    friction_and_noise = flows.ornstein_uhlenbeck_flow(step_size, friction)
    return [flows.Kick(step_size), drift, friction_and_noise, drift]


# %% [markdown]
# {numref}`fig-splittings` has the answer for the bowl.
# With exact gradients the composition decides: BAOAB has no error at all.
# With fresh minibatches all three compositions are about equally wrong.
# With the same minibatches in *symmetric sweeps*, a pass over the shuffled data and then the same pass backwards, all three are within 6 per cent of 1 up to a step of 0.15, where fresh minibatches make the variance 30 per cent too large.
# **The integrator reduces the error of the step; the order of the data reduces the error of the noise.**

# %% mystnb={"figure": {"caption": "Exact variance of $\\theta$ in the bowl against the step size, $C = 1$, no noise estimate, for three splittings with one gradient a step. Left: exact gradients. Middle: fresh minibatches, $V = 4$. Right: the same minibatches in symmetric sweeps, ten a pass. 1 is right (grey).", "name": "fig-splittings"}, "image": {"alt": "Three panels over step sizes from 0 to 0.5. Left, one line rises, one falls, and one stays at 1. In the middle three lines rise together to about 2. On the right three lines stay near 1 up to a step of 0.15 and then rise."}} tags=["hide-input"]
one = torch.eye(1, dtype=torch.float64)
lists = {"Algorithm 2": flows.sghmc, "BAOAB": baoa, "UBU": flows.ubu}
sizes = torch.linspace(0.02, 0.5, 13).tolist()
laws = {
    "exact gradients": lambda moves: price_of(linear_chain(moves, one)),
    "fresh, $V = 4$": lambda moves: price_of(linear_chain(moves, one, 4.0)),
    "sweeps, $V = 4$": lambda moves: ordered_price(moves, 4.0, 10, sweeps=True),
}
figure, panels = plt.subplots(1, 3, figsize=(6.8, 2.9), sharey=True)
for axes, (title, law) in zip(panels, laws.items(), strict=True):
    axes.axhline(1, color=TRUTH, lw=3, zorder=0)
    for (name, splitting), style in zip(lists.items(), ("-", "--", ":"), strict=True):
        widths = [1 + law(splitting(size, friction=1.0)).excess for size in sizes]
        axes.plot(sizes, widths, style, color=COLOURS["SGHMC"], label=name)
    axes.set(title=title, xlabel=r"step size $\varepsilon$")
panels[0].set(ylabel=r"variance of $\theta$", ylim=(0.8, 2.2))
panels[0].legend()
plt.show()

# %% [markdown]
# On the price board (curvature 1, $N/n = 100$, the variance right to one per cent) the order of the data has the two rows of this page:

# %% tags=["hide-input"]
show_prices(3)

# %% [markdown]
# ## A splitting is a list of flows
#
# The right side of the SGHMC equation {eq}`eq-sghmc` is a sum, and each of its parts alone is easy to follow.
# To follow them in turn is to *split* the equation.
# Drift (A) and kick (B) can be followed exactly, for any time.
# So can friction together with its noise, the *Ornstein–Uhlenbeck* process $dr = -CM^{-1}r\,dt + N(0, 2C\,dt)$ (O), and even friction, noise and drift together (U), the motion of a ball in a fluid without a force {cite:p}`chandrasekhar1943`.
# The letters name the lists.
# *BAOAB* {cite:p}`leimkuhler2013` and *UBU* ({cite:t}`zapatero2017`, {cite:t}`sanzserna2021`) read the same from both sides, and that symmetry makes their bias of order $\varepsilon^2$ at most on a Gaussian.
# The last half kick of one BAOAB step and the first of the next use the gradient at the same position. Merged into one kick they cost one gradient: BAOA.
#
# One list gives two things.
# `Splitting` follows it: that is a sampler.
# `linear_chain` composes what each flow does to $(\theta, r)$ on a Gaussian target: that is the exact law of this sampler, with its step size and its gradient noise.
# A new integrator thus has its sharpest test before its first sample.


# %%
one = torch.eye(1, dtype=torch.float64)
for name, moves in {
    "Algorithm 2": flows.sghmc(0.5, friction=1.0),
    "BAOAB": baoa(0.5, friction=1.0),
    "UBU": flows.ubu(0.5, friction=1.0),
}.items():
    chains = [linear_chain(moves, one, noise) for noise in (0.0, 1.0)]
    exact, noisy = (float(c.stationary_covariance()[0, 0]) for c in chains)
    print(f"{name:12} exact gradients {exact:.4f}, gradient noise V = 1 {noisy:.4f}")

# %% tags=["hide-input"]
excess = [
    float(linear_chain(s(0.5, friction=1.0), one, 1.0).stationary_covariance()[0, 0])
    / float(linear_chain(s(0.5, friction=1.0), one).stationary_covariance()[0, 0])
    for s in lists.values()
]
check(
    "same-heat",
    max(abs(ratio - 1.25) for ratio in excess),
    at_most(0.03),
    kind="exact",
    says="Largest distance of the three ratios, V = 1 over exact gradients, from 1.25",
)
bowl = Gaussian.standard(1, dtype=torch.float64)
start = bowl.exact_samples(10_000, torch.Generator().manual_seed(40))
run = sample(
    Splitting(baoa(0.5, friction=1.0), num_steps=4),
    NoisyGradient(bowl, 1.0),
    start,
    num_samples=50,
    warm_up=10,
    seed=4,
)
value, error = run.mean_and_standard_error(lambda x: x**2)
exact = linear_chain(baoa(0.5, 1.0), one, 1.0).stationary_covariance()[0, 0]
check("baoa-run", value, near(float(exact)), error=error, because="the exact law")
by_list, by_kernel = (
    sample(kernel, NoisyGradient(bowl, 1.0), start[:10], num_samples=100, seed=5)
    for kernel in (Splitting(flows.sghmc(0.1, 3.0, 0.05)), SGHMC(0.1, 3.0, 0.05))
)
check(
    "list-and-kernel",
    (by_list.samples - by_kernel.samples).abs().max(),
    at_most(1e-12),
    kind="exact",
    because="the same moves on the same random numbers; rounding of 100 steps",
    says="Samples by the list of Algorithm 2's flows and by the kernel SGHMC differ by",
)

# %% [markdown]
# With exact gradients BAOAB has no bias on a Gaussian, at any stable step.
# With $V = 1$ all three are wider by about a quarter, because nothing is subtracted for the gradient's noise: at $B = \tfrac12\varepsilon V = \tfrac14$ and $C = 1$ the temperature is about 1.25 for all.
# A sampler that follows the list of BAOA has that variance, too: {c}`baoa-run`.
#
# ## The errors of a pass sum to zero
#
# Shuffle the data and walk through them in $m = N/n$ minibatches.
# The errors $\zeta_1, \dots, \zeta_m$ of their gradients each have the variance $V$, like those of fresh minibatches.
# But the minibatches of a pass share out all the data, so at one and the same position
#
# $$
# \zeta_1 + \dots + \zeta_m = 0, \qquad \operatorname{Cov}(\zeta_i, \zeta_j) = -\frac V{m - 1}.
# $$ (eq-pass-errors)
#
# Repeat the argument of {doc}`/book/further/price`: add up the momentum's updates.
# Over whole passes the errors drop out, and only the injected noise $\xi_k$ with its variance $2C\varepsilon$ is left in $\varepsilon a\sum\theta_k = \sum\xi_k$. So
#
# $$
# \sigma^2\tau = \frac{2C}{\varepsilon a^2}
# $$ (eq-pass-product)
#
# in place of $(2C/\varepsilon + V)/a^2$, for Algorithm 2 and the palindromic step, if the errors do not depend on $\theta$: the average of $\theta$ is as accurate as with exact gradients. That of $\theta^2$ has a bias.
# Within a pass the errors do move the chain: it is kicked out and brought back, and the shorter a pass is, the less it goes astray.
# In a *symmetric sweep* {cite:p}`paulin2024` the order is reversed in every second pass, so that the drift that the first errors leave behind is undone as well.
# The table has the excess of the variance for the palindromic step (half a drift, a kick with the friction of the mean momentum, half a drift; {doc}`/book/tutorial/sgnuts`) in the bowl, averaged over the steps of a pass:

# %% tags=["hide-input"]
steps = (0.2, 0.1, 0.05, 0.025)
orders = {
    "fresh": lambda size: price_of(
        linear_chain(flows.palindromic(size, 1.0), one, 4.0)
    ),
    "passes": lambda size: ordered_price(flows.palindromic(size, 1.0), 4.0, 10),
    "sweeps": lambda size: ordered_price(flows.palindromic(size, 1.0), 4.0, 10, True),
}
found = {name: [law(size).excess for size in steps] for name, law in orders.items()}
show_table(
    ["V = 4, C = 1, ten minibatches a pass", *[f"ε = {size:g}" for size in steps]],
    [[name, *[f"{x:.5f}" for x in row]] for name, row in found.items()],
)
for name, expected, within in (
    ("fresh", 2.0, 0.01),
    ("passes", 7.9, 0.15),
    ("sweeps", 15.95, 0.1),
):
    halves = orders[name](0.0125).excess, orders[name](0.00625).excess
    ratio = halves[0] / halves[1]
    check(f"ratio-{name}", ratio, near(expected, within), kind="exact", digits=3)
product = ordered_price(flows.palindromic(0.1, 1.0), 4.0, 10)
check(
    "pass-product",
    (1 + product.excess) * product.steps,
    near(20, 1e-6),
    kind="exact",
    because="2C/(εa²), for the exact chain",
    says="Variance times autocorrelation time with passes, ε = 0.1 and C = 1",
)

# %% [markdown]
# At small steps half the step divides the excess by {c}`ratio-fresh` with fresh minibatches, by {c}`ratio-passes` with passes and by {c}`ratio-sweeps` with sweeps: orders one, three and four in $\varepsilon$. At large steps plain passes are better: a sweep is twice as long.
#
# ## Real minibatches
#
# {eq}`eq-pass-errors` holds at one position, and the chain moves during a pass.
# In a regression the errors depend on $\theta$. Does the cancellation survive?
# The package has the three orders as rules; one line of the posterior chooses:

# %%
generator = torch.Generator().manual_seed(3)
inputs = torch.randn(1_000, 3, generator=generator)
targets = inputs @ torch.tensor([1.0, -2.0, 0.5]) + torch.randn(
    1_000, generator=generator
)
kernel = Splitting(flows.palindromic(0.1 / 1_000**0.5, friction=1_000**0.5), 7)
runs = {}
for rule in (Fresh(), Passes(), Sweeps()):
    posterior = LinearRegression(inputs, targets, batch_size=100, minibatches=rule)
    start = posterior.mean.expand(500, -1).contiguous()
    runs[type(rule).__name__] = sample(kernel, posterior, start, 300, warm_up=30)

# %% tags=["hide-input"]
rows, variances = [], posterior.covariance.diagonal()
for name, run in runs.items():
    ratio, error = run.mean_and_standard_error(
        lambda x: ((x - posterior.mean) ** 2 / variances).mean(-1)
    )
    bound = {"Fresh": near(1.45, 0.04), "Passes": near(1.033, 0.015)}
    bound = bound.get(name, near(1.027, 0.015))
    check(name.lower(), ratio, bound, because="the table's excess times V/4 = 9/4")
    rows.append([name, ratio, error])

# %% [markdown]
# In units of the curvature $a \approx 1{,}000$ this is the step $\varepsilon\sqrt a = 0.1$ and the friction $C = \sqrt a$, with ten minibatches a pass and $V = 9a$ by {eq}`eq-price-noise`.
# The variance over the posterior's is {c}`fresh` with fresh minibatches, {c}`passes` with passes and {c}`sweeps` with sweeps, while the formulas for constant noise have 1.45, 1.033 and 1.027. Seven steps a sample let the samples fall on all places of a pass.
# So it survives here. But a pass must be short against the chain's memory: with a thousand minibatches it takes, at the same step, 16 swings, and the errors of a pass are forgotten before they cancel, even if they do not depend on $\theta$.
#
# ## Not together with an estimate
#
# With passes nothing arrives that could be subtracted. An estimate $\hat B$ measures the noise of one minibatch, subtracts it, and makes the chain too cold.
# For the mean of 100 numbers, $n = 10$, $\varepsilon\sqrt a = 0.1$ and $C = 3B$ the variance ratio is {c}`passes-estimate` with the estimate and {c}`passes-alone` without.
# The package warns of the first.

# %% tags=["hide-input"]
numbers = torch.randn(100, generator=torch.Generator().manual_seed(1))
mean_of = LinearRegression(
    torch.ones(100, 1), numbers, batch_size=10, minibatches=Passes()
)
a = float(mean_of.precision)
size, heat = 0.1 / a**0.5, 0.5 * (0.1 / a**0.5) * 9 * a
for name, estimate, bound, because in (
    ("passes-estimate", OnlineNoise(), near(0.684, 0.05), "T = 1 − B/C = ⅔"),
    ("passes-alone", 0.0, near(1.016, 0.04), "the errors of a pass cancel"),
):
    run = sample(
        SGHMC(size, 3 * heat, estimate, num_steps=10),
        mean_of,
        mean_of.mean.expand(500, -1).contiguous(),
        num_samples=300,
        warm_up=30,
    )
    ratio, _ = run.mean_and_standard_error(
        lambda x: ((x - mean_of.mean) ** 2).mean(-1) / float(mean_of.covariance)
    )
    check(name, ratio, bound, because=because)

# %% [markdown]
# ## What it saves
#
# The board's two rows are of the palindromic step, at the frictions that are best for each clock. For $\theta$ there is none: a smaller friction makes $\theta$ cheaper still and $\theta^2$ more expensive, and the board stops at $C = \tfrac12$.
#
# For a strongly concave log density the bias of UBU with fresh minibatches is of order one in the step, as here, and symmetric sweeps make it two {cite:p}`paulin2024`; {prf:ref}`thm-mnist-passes` has the frozen gradient.
#
# **To remember:** integrators reduce the step's error, and the order of the data reduces the noise's, as long as a pass is short.
#
# ## Change it
#
# * In the visible cell of the regression set `batch_size=100` to `batch_size=10`, a hundred minibatches a pass: $V$ is elevenfold and a pass takes the time 10, longer than the chain remembers. Passes and sweeps have a variance of about 5, hardly better than fresh minibatches with 6.
# * In the visible cell of the lists set `[flows.Kick(step_size), drift, friction_and_noise, drift]` to `flows.baoab(step_size, friction)`, with two half kicks and two minibatches a step: with exact gradients nothing changes, and with $V = 1$ the variance falls to 1.136, at twice the price.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-sghmc-overdamped
#
# ★ Set $\alpha = 1$.
# Which algorithm does {eq}`eq-sghmc-learning-rate` become?
# Check {eq}`eq-sghmc-variance` against {eq}`eq-sgld-variance`.
# ```
#
# ```{solution} ex-sghmc-overdamped
# :class: dropdown
#
# The velocity forgets its past: $v = -\eta\nabla\tilde U(\theta) + N(0, 2(1 - \hat\beta)\eta)$ and $\theta \leftarrow \theta + v$.
# That is stochastic-gradient Langevin dynamics with step $\eta$ and noise estimate $\hat\beta$.
# With $\varepsilon C = 1$ and $\varepsilon^2 = \eta$ its second factor is $1/(1 - \tfrac12\eta a)$, and $T_{\text{eff}} = 1 - \hat\beta + \tfrac12\eta V$.
# ```
#
# ```{exercise}
# :label: ex-sghmc-euler
#
# ★★★ Eliminate the momentum: show that on $U = \tfrac12a\theta^2$ with $M = 1$ both orders of updates make the positions alone a recursion $\theta_{t+2} = \varphi_1\theta_{t+1} + \varphi_2\theta_t + \zeta$.
# Find its stationary variance, and derive {eq}`eq-sghmc-variance`.
# At which step sizes do the two chains explode?
# ```
#
# ```{solution} ex-sghmc-euler
# :class: dropdown
#
# Write $\alpha = \varepsilon C$ and $k = \varepsilon^2a$.
# Because $\varepsilon r_t = \theta_{t+1} - \theta_t$, the momentum's update times $\varepsilon$ is the recursion, with $\varphi_1 = 2 - \alpha - k$, $\varphi_2 = -(1 - \alpha)$ for the gradient at the new position and $\varphi_1 = 2 - \alpha$, $\varphi_2 = -(1 - \alpha + k)$ for the old.
# In both $\operatorname{Var}\zeta = \varepsilon^2\bigl(\varepsilon^2V + 2\varepsilon(C - \hat B)\bigr) = 2\varepsilon^2\alpha T_{\text{eff}}$.
#
# Let $\sigma^2$, $c_1$, $c_2$ be the stationary covariances at lags 0, 1 and 2.
# Multiply the recursion by $\theta_{t+1}$, $\theta_t$ and $\theta_{t+2}$ and take expectations: $c_1 = \varphi_1\sigma^2 + \varphi_2c_1$, $c_2 = \varphi_1c_1 + \varphi_2\sigma^2$ and $\sigma^2 = \varphi_1c_1 + \varphi_2c_2 + \operatorname{Var}\zeta$.
# Eliminate $c_1$ and $c_2$:
#
# $$
# \sigma^2 = \frac{(1 - \varphi_2)\operatorname{Var}\zeta}{(1 + \varphi_2)\bigl((1 - \varphi_2)^2 - \varphi_1^2\bigr)}.
# $$
#
# For the new position the denominator is $\alpha\,k\,(4 - 2\alpha - k)$, for the old one $(\alpha - k)\,k\,(4 - 2\alpha + k)$; the rest is division.
# They explode where a denominator first vanishes. For the new position that is at $\varepsilon^2a = 4 - 2\varepsilon C$; for the old one at $\varepsilon = C/a$, where the lost friction $\varepsilon a$ equals $C$, or, if $C > 2\sqrt a$, already at $2\varepsilon C = 4 + \varepsilon^2a$, which for $C = 3$ and $a = 1$ is $\varepsilon = 3 - \sqrt5 = 0.76$.
# With $C = 1$ and $a = 4$ that is at $\varepsilon = 0.78$ and at $\varepsilon = 0.25$.
# ```


# %% tags=["hide-input"]
def radius(step_size, explicit_euler, friction=1.0, a=4):
    """The largest size of an eigenvalue of a step."""
    chain = sghmc_chain(a * one, step_size, friction, explicit_euler=explicit_euler)
    return torch.linalg.eigvals(chain.transition).abs().max()


check(
    "stable",
    max(radius(0.78, False), radius(0.249, True), radius(0.763, True, 3.0, 1)),
    at_most(0.99999),
    kind="exact",
    says="Largest eigenvalue just below the three limits 0.781, 0.25 and 0.764",
)
check(
    "unstable",
    min(radius(0.782, False), radius(0.251, True), radius(0.765, True, 3.0, 1)),
    at_least(1.00001),
    kind="exact",
    says="Smallest of those just above the limits",
)

# %% [markdown]
# ````{exercise}
# :label: ex-splittings-sweep
#
# ★★ **Write it yourself.** Write the order of a symmetric sweep as a function of the step.
#
# ```python
# def sweep(order, batch_size, step):
#     """The indices of a step: order is the shuffled data of this sweep, (N,)."""
#     ...
# ```
#
# Which minibatch comes twice in a row? Why does this not double its error?
# ````
#
# ````{solution} ex-splittings-sweep
# :class: dropdown
#
# ```python
# def sweep(order, batch_size, step):
#     length = len(order) // batch_size
#     place = step % (2 * length)
#     place = min(place, 2 * length - 1 - place)
#     return order[place * batch_size : (place + 1) * batch_size]
# ```
#
# The last minibatch of the way there is the first of the way back. All minibatches come twice in a sweep, so the errors still sum to zero.
# ````


# %% tags=["hide-input"]
def sweep(order, batch_size, step):
    length = len(order) // batch_size
    place = step % (2 * length)
    place = min(place, 2 * length - 1 - place)
    return order[place * batch_size : (place + 1) * batch_size]


package = [Sweeps().indices(12, 3, 1, 7, step)[0] for step in range(8)]
order = torch.cat(package[:4])
check(
    "sweep",
    float(sum((sweep(order, 3, t) != package[t]).sum() for t in range(8))),
    at_most(0),
    kind="exact",
    says="Indices of eight steps in which the solution and the package differ",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`leimkuhler2016` is the textbook on splittings of Langevin dynamics, {cite:t}`sanzserna2021` bound their errors in Wasserstein distance, and {cite:t}`paulin2024` have symmetric minibatch splitting for convex and neural models.
# {cite:t}`zhang2020amagold` correct the noise by a rejection instead, which needs fresh minibatches; `AMAGOLD` of `sgmc.other_kernels` is their algorithm.
