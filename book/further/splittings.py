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
# Level: second course · Reading: about 23 minutes, without the exercises · Running: about 8 seconds
# ```
#
# ```{index} ! splitting, ! BAOAB, ! UBU, ! shuffling, ! symmetric minibatch splitting
# ```

# %%
import torch

from booklib.page.claims import check, near
from booklib.page.prices import ordered_price, price_of
from sgmc import sample
from sgmc.minibatches import Fresh, Passes, Sweeps
from sgmc.posteriors import LinearRegression
from sgmc.splittings import Splitting, flows, linear_chain

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt

from booklib.page.claims import at_most
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.prices import least_prices
from booklib.page.tables import show_table
from sgmc.kernels import SGHMC
from sgmc.targets import Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Steps are large on purpose, and chains many and short.
warnings.filterwarnings("ignore", message=".*too wide|.*too cold|.*do not agree")

# %% [markdown]
# A sampler reads one minibatch gradient a step. Two things are left to choose: how it composes the moves of a step, and in which order it takes the data. Which of them matters?
#
# **The integrator reduces the error of the step; the order of the data reduces the error of the noise.** With minibatches the second error is the larger one, so the order matters more.
#
# Of {doc}`the palindromic step </book/tutorial/sgnuts>` you need only this: half a drift, a kick whose friction acts on $(r + r')/2$, half a drift. Read backwards it is itself.
#
# A composition is a list of moves, such as *BAOA*, a kick (B) by the gradient, half a drift (A), friction and its noise (O), half a drift:


# %%
def baoa(step_size, friction):
    """BAOAB with its two half kicks as one, at one gradient a step."""
    drift = flows.Drift(step_size / 2)
    friction_and_noise = flows.ornstein_uhlenbeck_flow(step_size, friction)
    return [flows.Kick(step_size), drift, friction_and_noise, drift]


# %% [markdown]
# *A guess before you look at the figure.* BAOAB has no error in $\theta$ at all on a Gaussian with exact gradients. What is left of this advantage with fresh minibatches?

# %% mystnb={"figure": {"caption": "The bowl, $C = 1$, no noise estimate, exact. Left and middle: variance of $\\theta$ against the step size for three splittings with one gradient a step, with exact gradients and with fresh minibatches, $V = 4$; 1 is right (grey). Right, on logarithmic axes: excess of the variance for the palindromic step (below) with fresh minibatches, passes and sweeps of the same minibatches, ten a pass; at small steps the lines have the slopes 1, 3 and 4.", "name": "fig-splittings"}, "image": {"alt": "Left, one line rises with the step size, one falls, and one stays at 1. In the middle three lines rise together to about 2. Right, three straight lines fall towards small steps: that of fresh minibatches slowly, that of passes steeply and that of sweeps more steeply; the last two cross at a step of about 0.13."}} tags=["hide-input"]
one = torch.eye(1, dtype=torch.float64)
lists = {"Algorithm 2": flows.sghmc, "BAOAB": baoa, "UBU": flows.ubu}
orders = {
    "fresh": lambda moves: price_of(linear_chain(moves, one, 4.0)),
    "passes": lambda moves: ordered_price(moves, 4.0, 10),
    "sweeps": lambda moves: ordered_price(moves, 4.0, 10, sweeps=True),
}
laws = {
    "exact gradients": lambda moves: price_of(linear_chain(moves, one)),
    "fresh, $V = 4$": orders["fresh"],
}
colour, styles = COLOURS["SGHMC"], ("-", "--", ":")
sizes = torch.linspace(0.02, 0.5, 13).tolist()
figure, panels = plt.subplots(1, 3, figsize=(7.2, 2.9))
for axes, (title, law) in zip(panels, laws.items(), strict=False):
    axes.axhline(1, color=TRUTH, lw=3, zorder=0)
    for (name, splitting), style in zip(lists.items(), styles, strict=True):
        widths = [1 + law(splitting(size, friction=1.0)).excess for size in sizes]
        axes.plot(sizes, widths, style, color=colour, label=name)
    axes.set(title=title, xlabel=r"step size $\varepsilon$", ylim=(0.8, 2.2))
sizes = torch.logspace(-1.8, -0.4, 15).tolist()
for (name, law), style in zip(orders.items(), styles, strict=True):
    found = [law(flows.palindromic(size, 1.0)).excess for size in sizes]
    panels[2].loglog(sizes, found, style, color=colour, label=name)
panels[0].set(ylabel=r"variance of $\theta$")
panels[2].set(title="excess, palindromic", xlabel=r"step size $\varepsilon$")
panels[2].set_xticks([0.02, 0.1, 0.4], ["0.02", "0.1", "0.4"])
panels[2].tick_params(axis="x", which="minor", labelbottom=False)
panels[0].legend()
panels[2].legend()
plt.show()

# %% [markdown]
# {numref}`fig-splittings` has the answer for the bowl. With exact gradients the composition decides.
# With fresh minibatches the noise of the gradient adds its own, larger error to all three compositions. The order of the three stays, but not which is best: UBU, too narrow with exact gradients, is now nearest to 1. At small steps all three differ little beside the noise.
#
# The right panel changes only the order of the data: *passes* over the shuffled data, or *symmetric sweeps*, a pass and then the same pass backwards. The excess is then of a higher order. At a step of 0.1 it is 1 per cent in place of 20.
# Sweeps are best at small steps. Above about 0.13 plain passes are better, because a sweep is twice as long.
#
# ## A splitting is a list of flows
#
# The right side of the SGHMC equation {eq}`eq-sghmc` is a sum, and each of its parts alone is easy to follow.
# To follow them in turn is to *split* the equation.
# Drift (A) and kick (B) can be followed exactly, for any time.
# So can friction together with its noise, the *Ornstein–Uhlenbeck* process $dr = -CM^{-1}r\,dt + N(0, 2C\,dt)$ (O).
# Even friction, noise and drift together can (U): they are the motion of a ball in a fluid without a force {cite:p}`chandrasekhar1943`.
# The letters name the lists.
# *BAOAB* {cite:p}`leimkuhler2013` and *UBU* ({cite:t}`zapatero2017`, {cite:t}`sanzserna2021`) read the same from both sides, and that symmetry makes their bias with exact gradients of order $\varepsilon^2$ (BAOAB has none in $\theta$ on a Gaussian).
# The last half kick of one BAOAB step and the first of the next use the gradient at the same position. Merged into one kick they cost one gradient: BAOA.
#
# One list gives two things.
# `Splitting` follows it: that is a sampler.
# `linear_chain` composes what each flow does to $(\theta, r)$ on a Gaussian target: that is the exact chain of this sampler, with its step size and its gradient noise.
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
# With exact gradients BAOAB has the right variance of $\theta$ on a Gaussian, at any stable step.
# With $V = 1$ all three are wider by about a quarter, because nothing is subtracted for the gradient's noise: $B = \tfrac12\varepsilon V = \tfrac14$ and $C = 1$ make the temperature about 1.25.
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
# Over whole passes the errors drop out. Only the injected noise $\xi_k$, of variance $2C\varepsilon$, is left in $\varepsilon a\sum\theta_k = \sum\xi_k$. If the errors do not depend on $\theta$, Algorithm 2 and the palindromic step therefore have
#
# $$
# \sigma^2\tau = \frac{2C}{\varepsilon a^2}
# $$ (eq-pass-product)
#
# in place of $(2C/\varepsilon + V)/a^2$: the average of $\theta$ is as accurate as with exact gradients.
# The variance still contains the excursion that the chain makes within a pass. {numref}`fig-splittings-pass` follows it.

# %% mystnb={"figure": {"caption": "What the errors of the minibatches alone do to $(\\theta, r)$ in the bowl, from rest (cross) to the end (disc): $\\varepsilon = 0.02$, $C = 1$, $V = 4$. Left: ten fresh minibatches. Middle: two passes over the same five minibatches, shuffled anew; the small circle is the end of the first. Right: a sweep, the first pass and then the same one backwards.", "name": "fig-splittings-pass"}, "image": {"alt": "Three paths of ten steps that begin at the origin. The first ends far from it. The second comes back to the horizontal axis at the end of each pass, farther to the right each time. The third goes to the circle of the first pass and returns nearly to the origin."}} tags=["hide-input"]
moves = flows.palindromic(0.02, 1.0)
transition, injected = linear_chain(moves, one)
_, with_noise = linear_chain(moves, one, 1.0)
both, vectors = torch.linalg.eigh(with_noise - injected)
enters = vectors[:, -1] * both[-1] ** 0.5  # what an error of size 1 does to (θ, r)
enters = -enters * enters[1].sign()
generator = torch.Generator().manual_seed(5)


def path(errors):
    """Where the errors alone bring (θ, r)."""
    z = [torch.zeros(2, dtype=torch.float64)]
    for error in errors:
        z.append(transition @ z[-1] + enters * error)
    return torch.stack(z)


errors = 2 * torch.randn(10, generator=generator, dtype=torch.float64)
one_pass = (errors[:5] - errors[:5].mean()) * (5 / 4) ** 0.5
again = one_pass[torch.randperm(5, generator=generator)]
shown = {
    "fresh": errors,
    "two passes": torch.cat([one_pass, again]),
    "a sweep": torch.cat([one_pass, one_pass.flip(0)]),
}
figure, panels = plt.subplots(1, 3, figsize=(7.2, 2.7), sharex=True, sharey=True)
for axes, (name, values) in zip(panels, shown.items(), strict=True):
    z = path(values)
    axes.axhline(0, color=TRUTH, lw=0.8, zorder=0)
    axes.plot(*z.T, ".-", ms=4, lw=1, color=colour)
    axes.plot(0, 0, "x", color="black", ms=7)
    axes.plot(*z[-1], "o", color="black", ms=6)
    if name != "fresh":
        axes.plot(*z[5], "o", color="black", mfc="white", ms=6)
    axes.set(title=name, xlabel=r"$\theta$")
panels[0].set(ylabel="$r$")
plt.show()

# %% [markdown]
# Fresh errors drive the chain away. At the end of a pass the momentum is nearly back, because the kicks add up to zero, but the position stays displaced. In a *symmetric sweep* {cite:p}`paulin2024` every second pass has the reversed order, which undoes this displacement as well ({ref}`ex-splittings-order`).
# The table has the excess of the variance for the palindromic step in the bowl, averaged over the steps of a pass:

# %% tags=["hide-input"]
steps = (0.2, 0.1, 0.05, 0.025)


def excess_at(order, size):
    return orders[order](flows.palindromic(size, 1.0)).excess


found = {name: [excess_at(name, size) for size in steps] for name in orders}
show_table(
    ["V = 4, C = 1, ten minibatches a pass", *[f"ε = {size:g}" for size in steps]],
    [[name, *[f"{x:.5f}" for x in row]] for name, row in found.items()],
)
for name, expected, within in (
    ("fresh", 2.0, 0.01),
    ("passes", 7.9, 0.15),
    ("sweeps", 15.95, 0.1),
):
    ratio = excess_at(name, 0.0125) / excess_at(name, 0.00625)
    check(f"ratio-{name}", ratio, near(expected, within), kind="exact", digits=3)
for name, passes in (("passes", 1.97), ("sweeps", 1.47)):
    least = least_prices(name)[0].passes
    check(f"board-{name}", least, near(passes, 0.02), kind="exact", digits=3)
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
# At small steps half the step divides the excess by {c}`ratio-fresh` with fresh minibatches, by {c}`ratio-passes` with passes and by {c}`ratio-sweeps` with sweeps: orders one, three and four in $\varepsilon$.
# These are orders of the noise's error alone, for constant noise on a Gaussian. The palindromic step has no error of its own in the variance of $\theta$; Algorithm 2 and UBU keep theirs, of order two.
# For strongly concave log densities in general, UBU has a bias of order one with fresh minibatches and of order two with sweeps {cite:p}`paulin2024`.
#
# At one per cent, and with $N/n = 100$ as on the price board of {doc}`/book/further/price`, an independent $\theta$ costs {c}`board-passes` epochs with passes and {c}`board-sweeps` with sweeps, at $C = \tfrac12$, where fresh minibatches take 99.
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
constant_noise = {Fresh: (1.45, 0.08), Passes: (1.033, 0.03), Sweeps: (1.027, 0.03)}
for rule, expected in constant_noise.items():
    posterior = LinearRegression(inputs, targets, batch_size=100, minibatches=rule())
    start = posterior.mean.expand(250, -1).contiguous()
    run = sample(kernel, posterior, start, 200, warm_up=30)
    ratios = (run.samples - posterior.mean) ** 2 / posterior.covariance.diagonal()
    check(rule.__name__.lower(), ratios.mean(), near(*expected))

# %% [markdown]
# In units of the curvature $a \approx 1{,}000$ this is the step $\varepsilon\sqrt a = 0.1$ and the friction $C = \sqrt a$, with ten minibatches a pass and $V = 9a$ by {eq}`eq-price-noise`.
# The variance over the posterior's is {c}`fresh` with fresh minibatches, {c}`passes` with passes and {c}`sweeps` with sweeps, while the formulas for constant noise have 1.45, 1.033 and 1.027. Seven steps a sample let the samples fall on all places of a pass.
# The cancellation therefore survives here.
# But a pass must be short against the time of a swing. Otherwise the chain has forgotten the first errors of the pass before the last ones cancel them. The bowl shows how short, with $m$ minibatches a pass:


# %%
step = flows.palindromic(0.1, friction=1.0)
fresh = price_of(linear_chain(step, one, 4.0)).excess
for m in (5, 10, 20, 40, 80):
    left = ordered_price(step, 4.0, m).excess / fresh
    print(f"mε√a = {m * 0.1:3}: passes leave {left:.3f} of the excess")

# %% [markdown]
# **Keep $m\varepsilon\sqrt a$ at about 1 or below.** This is one direction, with $C = \sqrt a$; with several curvatures the same limit for the largest one keeps a pass short in all. And subtract nothing: short passes leave next to no noise, so they do not go together with an estimate ({doc}`/book/further/choosing_the_estimate`).
#
# **To remember:** a better integrator reduces the error of the step, and a better order of the data reduces the error of the noise, as long as a pass is short.
#
# ## Change it
#
# * In the visible cell of the regression set `batch_size=100` to `batch_size=10`, a hundred minibatches a pass: $V$ is elevenfold and a pass takes the time 10, longer than the chain remembers. Passes and sweeps have a variance of about 5, hardly better than fresh minibatches with 6.
# * In the visible cell of the lists set `[flows.Kick(step_size), drift, friction_and_noise, drift]` to `flows.baoab(step_size, friction)`, with two half kicks and two minibatches a step: with exact gradients nothing changes, and with $V = 1$ the variance falls to 1.136, at twice the price.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-splittings-short
#
# ★ *Choose a parameter.* A regression has $N = 50{,}000$ examples and the curvature $a = N$; the step is $\varepsilon\sqrt a = 0.05$. How large must the minibatches be so that a pass is short? What does that mean for $n = 50$?
# ```
#
# ```{solution} ex-splittings-short
# :class: dropdown
#
# $m\varepsilon\sqrt a \le 1$ means at most 20 minibatches a pass, $n \ge 2{,}500$. With $n = 50$ there are a thousand, and the step would have to be $\varepsilon\sqrt a = 0.001$: fifty times as many steps, at a fiftieth of the price each.
# ```
#
# ```{exercise}
# :label: ex-splittings-order
#
# ★★ Why do sweeps gain an order? Take two minibatches a pass, with the errors $e$ and $-e$, and leave out the force, the friction and its noise, so that a step is $r \leftarrow r - \varepsilon\zeta$, $\theta \leftarrow \theta + \varepsilon r$. Follow the displacement of $(\theta, r)$ from rest through a pass, and through a symmetric sweep.
# ```
#
# ```{solution} ex-splittings-order
# :class: dropdown
#
# After the first step $r = -\varepsilon e$ and $\theta = -\varepsilon^2e$; the second kick takes the momentum back to zero, and the position stays at $-\varepsilon^2e$: a pass returns the momentum and not the position.
# A sweep goes on with $-e$ and $e$: $r = \varepsilon e$ and $\theta = 0$, then $r = 0$ and $\theta = 0$. It returns both. What remains is what force and friction change meanwhile, $\varepsilon^3$ in place of $\varepsilon^2$.
#
# In the variance these displacements add up over the $1/\varepsilon$ steps that the chain remembers: to order $\varepsilon^4/\varepsilon = \varepsilon^3$ with passes, and to order $\varepsilon^6/\varepsilon = \varepsilon^5$ at the end of a sweep.
# The order four of the table is the excursion within a sweep: $\theta$ is displaced by the order of $\varepsilon^2$, so its variance by $\varepsilon^4$, averaged over the steps. With passes the excursion is of the same order, but the net displacement, of order three, is larger.
# ```

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
