# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # SGNUTS: an error found and corrected
#
# ```{div} page-head
# Page 12 of 12 · 44 minutes to read, 15 to play · Running: about 12 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! SGNUTS
# ```

# %%
import torch

from booklib.page.scoreboard import show_row
from sgmc.kernels.trees import Point, grow_tree
from sgmc.matrices import Matrix

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import at_most, check, near
from booklib.page.figures import COLOURS, TRUTH, plot_histogram, use_style
from booklib.page.play import play
from booklib.page.scoreboard import show_scoreboard
from sgmc import sample
from sgmc.kernels import SGNUTS
from sgmc.splittings import flows, linear_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient

# Bars of what NUTS's weights choose: white, because no algorithm has this colour.
BY_ENERGY = {"facecolor": "white", "edgecolor": "0.25", "hatch": "///"}
use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# This page belongs to the elective that page 11 began.
# NUTS finds its own path length, and SGHMC needs only minibatches.
# In a course project, {cite:t}`adamday` joined them: grow a path by doubling, as on {doc}`page 11 </book/tutorial/no_u_turn>`, with the steps of SGHMC.
# They called it SGNUTS, saw that it worked on MNIST, and asked in which sense it is reversible.
# The answer decides this page's question: **with which weights must a state be chosen from a path with friction and noise?**
# With $e^{-H}$, which page 11 proved right for NUTS, or with equal weights?
#
# Three states show what is at stake.
# Take page 2's walk on them, whose stationary distribution is $\pi = (0.2, 0.3, 0.5)$, but do not follow it.
# Let it *propose* a state $y$, and then choose between the old state $x$ and $y$: either with the weights $\pi(x)$ and $\pi(y)$, so $y$ with probability $\pi(y)/(\pi(x) + \pi(y))$, or with a coin.
#
# *A guess before you read on.*
# Which of the two still has the stationary distribution $\pi$?


# %%
pi = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
walk = (pi / pi[:, None]).clamp(max=1) / 2  # page 2's moves to the other states


def stationary(weights):
    """Propose y by the walk, and choose x or y by their weights; return the shares."""
    moves = walk * weights / (weights[:, None] + weights)
    moves += torch.diag(1 - moves.sum(1))  # what is left stays
    return torch.linalg.matrix_power(moves, 200)[0]


shares = {"by their weights": stationary(pi), "by a coin": stationary(torch.ones(3))}
for name, values in shares.items():
    print(f"chosen {name}:", *(f"{share:.3f}" for share in values))

# %% mystnb={"figure": {"caption": "The share of time in each of the three states when the walk's proposals are chosen by the weights $\\pi$ and by a coin. Grey: $\\pi$; black lines: $\\pi^2$, normalised.", "name": "fig-twice-chosen"}, "image": {"alt": "Three groups of bars. The bars of the coin are as high as the grey ones behind them, 0.2, 0.3 and 0.5; those of the weights are at black lines, 0.11, 0.24 and 0.66."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 2.8))
place = torch.arange(3)
axes.bar(place, pi, 0.84, color=TRUTH, alpha=0.35)
looks = (BY_ENERGY, {"color": COLOURS["SGNUTS"]})
for (name, values), look, side in zip(shares.items(), looks, (-0.2, 0.2), strict=True):
    axes.bar(place + side, values, 0.3, label=f"chosen {name}", **look)
axes.hlines(pi**2 / (pi**2).sum(), place - 0.4, place, color="black", lw=1.5)
axes.set(xlabel="state", ylabel="share of time")
axes.set_xticks(place, ["1", "2", "3"])
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# The coin is right, and the weights are wrong: they give $\pi^2$, divided by its sum ({numref}`fig-twice-chosen`).
# The walk already proposes each state as often as $\pi$ demands, and the weights demand it once more.
# As this page shows, a path with friction and noise is such a walk: by itself it visits its states as often as $e^{-H}$ demands, so NUTS's weights give $e^{-2H}$, and equal weights are right.

# %% tags=["hide-input"]
check(
    "squared",
    (shares["by their weights"] - pi**2 / (pi**2).sum()).abs().max(),
    at_most(1e-12),
    kind="exact",
    says="Largest distance of the shares chosen by weights from π², normalised",
)

# %% [markdown]
# ## The energy is counted twice
#
# Take the smallest tree, of two states.
# From $z = (\theta, r)$ go to $z'$, one step forward or backward with probability one half each, and then choose one of the two.
# Let $\mu$ be the stationary density of the step, $\mu \propto e^{-H}$ where the step is exact, and suppose, for now, that in equilibrium a step forward from $z$ to $z'$ is as frequent as a step backward from $z'$ to $z$.
#
# Then with $g = \tfrac12(\text{forward} + \text{backward})$ the flow $\mu(z)\,g(z, z')$ is symmetric: exchange $z$ and $z'$, and each half of the sum becomes the other.
# Choose with equal weights, and the chance to move is one half from either side. The flow stays symmetric, and $\mu$ is stationary: that was the coin.
#
# Now choose with the weights $e^{-H}$.
# The flow from $z$ to $z'$ is $\mu(z)\,g(z, z')$ times $e^{-H(z')}/(e^{-H(z)} + e^{-H(z')})$, which is no longer symmetric.
# Multiplied by $e^{-H(z)}$ it is symmetric again: $\mu(z)\,g(z, z')$ times $e^{-H(z)}e^{-H(z')}/(e^{-H(z)} + e^{-H(z')})$.
# So the sampler is in detailed balance with $e^{-H}\mu$ instead of $\mu$, which is
#
# $$
# e^{-H}\cdot e^{-H} = e^{-2H}:
# $$ (eq-twice)
#
# the target at temperature one half ({numref}`fig-sgnuts-weights`).
# In the bowl that holds for the position at every stable step size, and the variance is 0.5; elsewhere it holds as $\varepsilon \to 0$.
#
# Why then does NUTS need $e^{-H}$?
# Because without friction and noise $H$ changes along a path only by the integrator's error, which the weights correct.
# With them energy is exchanged, and the path visits high energies as rarely as it should; the weights make them rarer still.

# %% mystnb={"figure": {"caption": "The energy counted twice, in the bowl. Upper: a path with friction and noise (dots), from far out; discs show the weights $\\exp(-H)$. Lower: density of the energy $H$ of the states that it visits in equilibrium, $\\exp(-H)$, and of those that are chosen with these weights, $2\\exp(-2H)$.", "name": "fig-sgnuts-weights"}, "image": {"alt": "Above, a path that comes from far out towards the origin of the phase plane; its discs are tiny far out and large near the origin. Below, two falling curves, the one for the chosen states starts twice as high and falls twice as fast."}} tags=["hide-input"]
noisy_bowl = NoisyGradient(Gaussian.standard(1), 4.0)
generator = torch.Generator().manual_seed(5)
theta, r = torch.tensor([[1.5]]), torch.tensor([[2.0]])
points = [torch.cat([theta, r], -1)]
for _ in range(90):
    flows.advance(
        flows.palindromic(0.1, 0.5, 0.2),
        theta,
        r,
        lambda x: noisy_bowl.stochastic_gradient(x, generator),
        generator,
    )
    points.append(torch.cat([theta, r], -1))
points = torch.cat(points)
figure, (upper, lower) = plt.subplots(2, 1, figsize=(4.6, 6.0))
upper.plot(*points.T, ".-", lw=0.6, ms=4, color=COLOURS["SGNUTS"])
sizes = 120 * torch.exp(-0.5 * points.square().sum(-1))
upper.scatter(*points.T, s=sizes, color="black", alpha=0.2, lw=0)
upper.set(xlabel=r"$\theta$", ylabel="$r$", aspect="equal")
grid = torch.linspace(0, 4, 100)
lower.fill_between(grid, torch.exp(-grid), color=TRUTH, alpha=0.35, lw=0)
lower.plot(grid, torch.exp(-grid), color=COLOURS["SGNUTS"])
lower.plot(grid, 2 * torch.exp(-2 * grid), "--", color="black")
lower.text(1.3, 0.33, "visited", color=COLOURS["SGNUTS"])
lower.text(0.4, 1.2, r"chosen by $e^{-H}$")
lower.set(xlabel="energy $H$", ylabel="density", ylim=(0, 2.1))
plt.show()

# %% [markdown]
# ## A film that looks the same backwards
#
# One thing was supposed: that a step forward is as frequent as the step backward.
# Can it be true with friction and noise, where a step backward does not undo a step forward?
#
# Two places are enough to see how: A and B, with the shares $\frac13$ and $\frac23$.
# A walker carries a momentum, $+$ to the right and $-$ to the left, so there are four states; each place's share is halved between its two momenta.
# From A$^+$ she walks to B$^+$, where a wall turns her, to B$^-$.
# From B$^-$ a coin either lets her walk to A$^-$ or turns her again, to B$^+$; and from A$^-$ a wall turns her to A$^+$.

# %% mystnb={"figure": {"caption": "The walk with a momentum between two places; the areas of the discs are the shares, and on each arrow stands its flow, share times probability. The dark arrows are one move, seen forwards and backwards.", "name": "fig-flip"}, "image": {"alt": "Four discs in a square, A plus and A minus on the left, B plus and B minus, twice as large, on the right. A dark arrow with 1/6 leads from A plus to B plus, one with 1/6 from B minus to A minus; grey arrows lead from B plus down to B minus, 1/3, from B minus up to B plus, 1/6, and from A minus up to A plus, 1/6."}} tags=["hide-input"]
names, share = ["A$^+$", "A$^-$", "B$^+$", "B$^-$"], torch.tensor([1, 1, 2, 2]) / 6
walker = torch.zeros(4, 4, dtype=torch.float64)  # the probabilities of her moves
walker[0, 2] = walker[2, 3] = walker[1, 0] = 1.0
walker[3, 1] = walker[3, 2] = 0.5
places = {0: (0, 1), 1: (0, 0), 2: (1.6, 1), 3: (1.6, 0)}
figure, axes = plt.subplots(figsize=(4.4, 2.8))
for state, (x, y) in places.items():
    axes.scatter(x, y, s=6_000 * share[state], color=TRUTH, alpha=0.5, lw=0)
    axes.text(x, y, names[state], ha="center", va="center")
for start, end, words, shift, colour in (
    (0, 2, "1/6", (0, 0), COLOURS["SGNUTS"]),
    (3, 1, "1/6", (0, 0), COLOURS["SGNUTS"]),
    (2, 3, "1/3", (0.14, 0), "0.35"),
    (3, 2, "1/6", (-0.14, 0), "0.35"),
    (1, 0, "1/6", (0, 0), "0.35"),
):
    (x, y), (u, v) = places[start], places[end]
    ends = [
        (x + t * (u - x) + shift[0], y + t * (v - y) + shift[1]) for t in (0.27, 0.73)
    ]
    style = {"arrowstyle": "-|>", "color": colour, "lw": 1.6, "mutation_scale": 12}
    axes.annotate("", ends[1], ends[0], arrowprops=style)
    middle = (ends[0][0] + ends[1][0]) / 2, (ends[0][1] + ends[1][1]) / 2
    around = {"color": "white", "pad": 0.8}
    axes.text(*middle, words, ha="center", va="center", fontsize=9, bbox=around)
axes.set(xlim=(-0.5, 2.1), ylim=(-0.45, 1.45))
axes.axis("off")
plt.show()

# %% [markdown]
# As much flows into each state of {numref}`fig-flip` as out of it, so the shares stay.
# But there is no detailed balance: $\frac16\cdot1$ flows from A$^+$ to B$^+$, and nothing ever flows back from B$^+$ to A$^+$.
#
# Now run the film backwards.
# The walker who went from A to B is seen to go from B to A, so her momentum is $-$ where it was $+$: the move from A$^+$ to B$^+$ is seen as one from B$^-$ to A$^-$. And that flow is $\frac13\cdot\frac12 = \frac16$, the same.
# A turn, seen backwards, is itself.
# So nobody can tell in which direction the film runs, if the momenta are flipped.
#
# In general, let $F(\theta, r) = (\theta, -r)$ be the flip, and let a step lead from $z$ to $z'$ with the density $p(z, z')$.
# The move from $z$ to $z'$ is seen backwards as one from $Fz'$ to $Fz$. Both are equally frequent if
#
# $$
# \mu(z)\,p(z, z') = \mu(z')\,p(Fz', Fz)
# $$ (eq-flip-balance)
#
# for the stationary density $\mu$, which the flip does not change.
# This is *detailed balance up to the flip*.
#
# A *step backward* is then flip, step, flip. From B$^+$ it flips to B$^-$, goes to A$^-$ with probability one half, and flips to A$^+$.
# So forward from A$^+$ to B$^+$ flows $\frac16\cdot1$ and backward from B$^+$ to A$^+$ flows $\frac13\cdot\frac12$, as much. In general the right side of {eq}`eq-flip-balance` is the flow of a step backward from $z'$ to $z$, so the equation says what was supposed.

# %% tags=["hide-input"]
flipped = [1, 0, 3, 2]
flow = share[:, None].double() * walker
says = "Largest distance of a flow of the walker from that of the move seen backwards"
away = (flow - flow[flipped][:, flipped].T).abs().max()
check("film-of-two", away, at_most(1e-7), kind="exact", says=says)

# %% [markdown]
# ## A step for which this holds
#
# SGHMC's continuous equation satisfies {eq}`eq-flip-balance` with $\mu \propto e^{-H}$. A discrete step must at least read the same from both sides, and {prf:ref}`alg-sghmc` does not, since it drifts first and kicks afterwards.
# Two changes make it a palindrome.
# Split the drift into two halves, before and after the kick. And let the friction act on the mean of the old and the new momentum, which only changes its sign when the film runs backwards, whereas the old momentum would become the new one.
# With $v = M^{-1}r$ and $\xi \sim N(0, 2(C - \hat B)\varepsilon)$,
#
# $$
# \begin{aligned}
# y &= \theta + \tfrac12\varepsilon v, \\
# r' &= r - \varepsilon\nabla\tilde U(y) + \xi - \tfrac12\varepsilon CM^{-1}(r + r'), \\
# \theta' &= y + \tfrac12\varepsilon v'.
# \end{aligned}
# $$ (eq-palindromic-step)
#
# The middle line is solved for $r'$ at once: for $M = 1$ it is $r' = \bigl((1 - \tfrac12\varepsilon C)r - \varepsilon\nabla\tilde U(y) + \xi\bigr)/(1 + \tfrac12\varepsilon C)$.
# In the bowl, with gradient noise and $\hat B = B = \tfrac12\varepsilon V$:


# %%
def palindromic_step(theta, r, generator, step_size=0.1, friction=0.5, variance=4.0):
    """Half a drift, a kick with its friction solved for, half a drift."""
    noise, xi = torch.randn(2, *theta.shape, generator=generator)
    theta = theta + step_size / 2 * r
    gradient = theta + variance**0.5 * noise  # of the bowl, with the noise N(0, V)
    injected = 2 * (friction - step_size * variance / 2) * step_size  # 2(C − B̂)ε
    half = step_size * friction / 2
    r = ((1 - half) * r - step_size * gradient + injected**0.5 * xi) / (1 + half)
    return theta + step_size / 2 * r, r


# %% [markdown]
# {numref}`fig-film` is its film, of those of 100,000 paths in equilibrium whose energy is above 4 at time 0.
# That friction then brings the energy down is no surprise. But before, noise brought it up, on average in the same way: it is {c}`before` two units of time before, and {c}`after` two units after.

# %% mystnb={"figure": {"caption": "Energy of palindromic steps in the bowl, $\\varepsilon = 0.1$, $V = 4$, $C = 0.5$, before and after a time at which it is above 4: ten paths, the mean of all such paths, and the same mean backwards in time (dashed).", "name": "fig-film"}, "image": {"alt": "Ten jagged curves and their mean, which rises from 1 at time -6 to 5 at time 0 and falls to 1 at time 6; a dashed line, the mean read from right to left, lies on it."}} tags=["hide-input"]
generator = torch.Generator().manual_seed(8)
theta, r = torch.randn(2, 100_000, generator=generator)
film = []
for _ in range(121):
    film.append((theta**2 + r**2) / 2)
    theta, r = palindromic_step(theta, r, generator)
film = torch.stack(film)[:, film[60] > 4]
time = 0.1 * torch.arange(-60, 61)
figure, axes = plt.subplots(figsize=(5.2, 3.2))
axes.axhline(1, color=TRUTH, zorder=0)
axes.plot(time, film[:, :10], lw=0.5, alpha=0.5, color=COLOURS["SGNUTS"])
axes.plot(time, film.mean(1), lw=2.5, color=COLOURS["SGNUTS"], label="forwards")
axes.plot(time, film.mean(1).flip(0), "--", color="black", label="backwards")
axes.set(xlabel="time", ylabel="energy $H$", ylim=(0, 8))
axes.legend()
plt.show()

# %% tags=["hide-input"]
moves = linear_chain(flows.palindromic(0.1, 0.5, 0.2), torch.eye(1), 4.0).transition
exact = 1 + 2 * float(torch.linalg.matrix_power(moves, 20).square().sum())
why = "in equilibrium 1 + ½(5 − 1)‖A²⁰‖²; 1,800 paths have a standard error of 0.05"
for name, energy in (("before", film[40]), ("after", film[80])):
    check(name, energy.mean(), near(round(exact, 2), 0.25), because=why)

# %% [markdown]
# ```{prf:theorem} Reversal of a step
# :label: thm-reversal-short
#
# Let the gradient noise be $N(0, V)$ with constant $V$, and $\hat B = \tfrac12\varepsilon V$.
#
# 1. The palindromic step satisfies $e^{-H(z)}\,p(z, z') = e^{W}\,e^{-H(z')}\,p(Fz', Fz)$, where $W = U(\theta') - U(\theta) - \nabla U(y)^\top(\theta' - \theta)$ is the *work*, what the force at $y$ leaves of the change of $U$.
# 2. If $U = \tfrac12\theta^\top A\theta$ with $A$ positive definite and $\varepsilon^2A \prec 4M$, then {eq}`eq-flip-balance` holds exactly, with $\theta \sim N(0, A^{-1})$ and an independent Gaussian $r$.
# ```
#
# ```{admonition} Proof of the first part, for $M = 1$ and a number $C$
# :class: dropdown
#
# Here $\theta'$ follows from $\theta$, $r$ and $r'$, so $p$ is the density of $r'$ given $z$.
# All noise of the step is $\zeta = r' - r + \varepsilon\nabla U(y) + \tfrac12\varepsilon C(r + r')$, of variance $2(C - \hat B)\varepsilon + \varepsilon^2V = 2C\varepsilon$.
# The step from $Fz'$ to $Fz$ has the same $y$, and the noise $\tilde\zeta = r' - r + \varepsilon\nabla U(y) - \tfrac12\varepsilon C(r + r')$.
# So $\log p(z, z') - \log p(Fz', Fz) = -(\zeta^2 - \tilde\zeta^2)/(4C\varepsilon) = -\tfrac12(r + r')\bigl(r' - r + \varepsilon\nabla U(y)\bigr)$, and with $\theta' - \theta = \tfrac12\varepsilon(r + r')$ this is $-\tfrac12(r'^2 - r^2) - \nabla U(y)(\theta' - \theta) = W - H(z') + H(z)$.
# ```
#
# {prf:ref}`thm-step-reversal` and {prf:ref}`thm-quadratic` have the whole proof. So in the bowl the positions have no bias at all, at any stable step size.
# The momentum's variance, for $M = 1$, is $1/(1 - \tfrac14\varepsilon^2)$, so a momentum that is drawn afresh from $N(0, 1)$ brings back a bias of order $\varepsilon^2$.

# %% tags=["hide-input"]
precision = torch.tensor(
    [[1.0, 0.4, 0.0], [0.4, 2.0, -0.3], [0.0, -0.3, 0.5]], dtype=torch.float64
)
friction = torch.diag(torch.tensor([2.0, 3.0, 1.0], dtype=torch.float64)) + 0.2
noise = torch.diag(torch.tensor([3.0, 1.5, 2.0], dtype=torch.float64)) + 0.5
palindrome = linear_chain(
    flows.palindromic(0.3, friction, 0.15 * noise), precision, noise
)
flip = torch.diag(torch.tensor([1.0, 1, 1, -1, -1, -1], dtype=torch.float64))
covariance = palindrome.stationary_covariance()
lagged = palindrome.transition @ covariance  # E[z'zᵀ]
violation = max(
    (flip @ covariance @ flip - covariance).abs().max(),
    (flip @ lagged @ flip - lagged.T).abs().max(),
)
error = (covariance[:3, :3] - torch.linalg.inv(precision)).abs().max()
for name, value, says in (
    ("violation", violation, "Violation of detailed balance up to the flip"),
    ("no-bias", error, "Error of the position's covariance"),
):
    says += " under the palindromic step, with matrices, ε = 0.3"
    check(name, value, at_most(1e-12), kind="exact", says=says)
theta, r = torch.randn(2, 5, 1, generator=torch.Generator().manual_seed(7))
by_hand = palindromic_step(theta, r, torch.Generator().manual_seed(8), variance=0.0)
_, xi = torch.randn(2, 5, 1, generator=torch.Generator().manual_seed(8))
moved = theta + 0.05 * r
check(
    "solved",
    (by_hand[1] - (r - 0.1 * moved + 0.1**0.5 * xi - 0.025 * (r + by_hand[1])))
    .abs()
    .max(),
    at_most(1e-5),
    kind="exact",
    says="The momentum of `palindromic_step` misses its equation by",
)

# %% [markdown]
# ## From two states to a path
#
# Larger trees are the same argument with the coins of page 11. In the first of its two stages the path visits states as often as $\mu$ demands, so in the second the choice must not prefer any.
#
# ```{prf:theorem} The tree is reversible, with equal weights
# :label: thm-tree-short
#
# Let {eq}`eq-flip-balance` hold, grow a path by doubling, by the step and its backward step, and let it stop by a rule that looks at aligned sub-trees alone. Choose from the finished path with **equal** weights, either among all states, or among those of the half in which the start is not. Then the transition satisfies ordinary detailed balance with respect to $\mu$. With the weights $e^{-H}$ on the whole path, or with page 11's rule for the new half, it satisfies detailed balance with respect to $e^{-H}\mu$.
# ```
#
# The proof ({prf:ref}`thm-tree`, {prf:ref}`thm-own-weights`) is page 11's with one factor changed: in the place of $e^{-H(z_s)}/Z$ stands the density of the path grown from $z_s$, which is $\mu(z_s)$ times those of its steps, forward to the right and backward to the left. By {eq}`eq-flip-balance` it does not change when the start moves to the next state: *given the path, the start is uniform on it*.
# Then a uniform choice among all states is a fresh start, and a uniform choice in the other half is a symmetric move, because the start is equally likely in either half.
#
# In code, `grow_tree` grows the paths as `grow` did on page 11, for many chains at once, and prefers the new half.
# The two samplers differ in one line, the weight of a state:


# %%
def sgnuts(log_weight, generator, chains=5_000, num_samples=30):
    """Grow paths of palindromic steps; choose a state of each by its weight."""

    def step(point):
        theta, r = palindromic_step(point.position, point.momentum, generator)
        return Point(theta, r, log_weight(theta, r))

    theta, r = torch.randn(2, chains, 1, generator=generator)
    samples = []
    for _ in range(num_samples):
        start = Point(theta, r, log_weight(theta, r))
        tree = grow_tree(start, step, Matrix(1.0), 8, generator)
        theta, r = tree.chosen[:2]  # the momentum is kept for the next path
        samples.append(theta[:, 0])
    return torch.stack(samples)[20:]


def by_energy(theta, r):
    return -(theta**2 + r**2).sum(-1) / 2  # log of the weight exp(−H)


def equal(theta, r):
    return torch.zeros(len(theta))  # log of the weight 1


generator = torch.Generator().manual_seed(12)
weighted, corrected = sgnuts(by_energy, generator), sgnuts(equal, generator)
show_row("sgnuts-weighted", weighted)
show_row("sgnuts", corrected)

# %% mystnb={"figure": {"caption": "SGNUTS in the bowl, $\\varepsilon = 0.1$, $V = 4$, $C = 0.5$, $\\hat B = B$: samples with a state of the path chosen by $e^{-H}$ and with equal weights. Grey: the true density; dotted: that of variance $\\tfrac12$.", "name": "fig-sgnuts-report"}, "image": {"alt": "A grey bell curve. One histogram follows its outline, the other is higher in the middle and narrower, and lies on a dotted curve."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.2))
line, bins = torch.linspace(-3.5, 3.5, 141), torch.linspace(-3.5, 3.5, 29)
normal = torch.exp(-(line**2) / 2) / (2 * torch.pi) ** 0.5
axes.fill_between(line, normal, color=TRUTH, alpha=0.35, lw=0, label="true density")
narrow = torch.exp(-(line**2)) / torch.pi**0.5
axes.plot(line, narrow, ":", lw=1.5, color="black", label="variance one half")
for samples, colour, label in (
    (weighted, "0.25", r"chosen by $e^{-H}$"),
    (corrected, COLOURS["SGNUTS"], "equal weights"),
):
    plot_histogram(axes, samples, bins, color=colour, label=label)
axes.set(xlabel=r"$\theta$", ylabel="density", ylim=(0, 0.8))
axes.legend(ncols=2, loc="upper center")
plt.show()

# %% [markdown]
# The rows are {c}`sgnuts-weighted` with the weights of NUTS and {c}`sgnuts` with equal weights, where 0.5 and 1 are exact; {numref}`fig-sgnuts-report` has their samples.
# The package's `SGNUTS` draws a fresh momentum for each path, and has {c}`package`.
# The sampler as we read the report, with the weights of NUTS, drifts first and fresh momenta, has {c}`report` ({doc}`/book/studies/steps_per_sample`).
#
# On other targets {eq}`eq-flip-balance` holds only up to the work. There the right weight of a state is $e^{-W}$, with the work summed along the path from its left end. Without friction and noise $W = \Delta H$, and these are NUTS's weights.
# With equal weights a transition is then wrong by order $\varepsilon^2$, and so is what the chain samples, unless smaller steps also make it forget its start more slowly ({prf:ref}`thm-uniform`).

# %% tags=["hide-input"]
start = torch.zeros(2_000, 1)
for name, settings, bound in (
    ("package", {}, near(1.0, 0.08)),
    ("report", dict(weights="energy", integrator="drift_kick"), near(0.77, 0.08)),
):
    kernel = SGNUTS(0.1, 0.5, 0.2, max_depth=8, **settings)
    draws = sample(kernel, noisy_bowl, start, num_samples=30, warm_up=10, seed=13)
    variance = draws.samples.square().mean()
    check(name, variance, bound, because="0.013 is the standard deviation of ten runs")
    if name == "package":  # gradients of a path, times τ of θ²
        square = draws.samples[..., 0] ** 2 - variance
        rho = (square[1:] * square[:-1]).mean() / square.square().mean()
        path = draws.statistics["num_gradients"].diff(dim=0).double().mean()
        cost = path * (1 + rho) / (1 - rho)  # they fall as the powers of ρ₁
        check("cost", cost, near(73, 8), digits=2, because="72 to 75 in three seeds")

# %% [markdown]
# {numref}`fig-live-sgnuts` runs both in a bowl of two dimensions, twenty chains each. Set $V = 0$: even with exact gradients the weights $e^{-H}$ are wrong as soon as there is friction.
#
# ```{live} sgnuts
# :name: fig-live-sgnuts
# :alt: A path of some sixty states in the bowl, with discs for the weights; its brackets; histograms of two samplers, the one with NUTS's weights narrower than the true density; and the running mean of $\theta^2$, which comes to a half with those weights and to one with equal weights.
#
# Live: palindromic steps, $\hat B = \tfrac12\varepsilon V$, the momentum kept; a state chosen by NUTS's weights and with equal weights.
# ```
#
# ## Is it worth it?
#
# With known noise the corrected sampler is as accurate as SGHMC, but dearer.
# It finds its path length by itself, but pays for steps that it throws away: in this bowl an independent $\theta^2$ costs the package's SGNUTS {c}`cost` gradients, and SGHMC 24.5. On a Gaussian with eight scales SGHMC at its best friction yields nearly five times as many effective samples per gradient ({doc}`/book/appendix/sgnuts_measured`).
# If the noise depends on the position and $\hat B$ does not, its bias is of order $\varepsilon$. If one minibatch is held for a whole tree, the bias does not vanish with $\varepsilon$.
# But SGHMC itself can use the palindromic step, which costs the same as {prf:ref}`alg-sghmc` and has no bias in a bowl.
#
# **To remember:** with friction and noise a path already visits the energies at the right rate, so all of its states count alike: exactly on a Gaussian, and up to a small error of the step elsewhere.
#
# ## The last rows of the scoreboard

# %% tags=["hide-input"]
show_scoreboard(13, first=11)

# %% [markdown]
# {doc}`Page 10 </book/tutorial/digits>` has the rows before these, and their story.
# NUTS is right because it chooses by $e^{-H}$. The same weights, right without friction and noise, are wrong with them.
# The report's accuracy of 0.94 on MNIST did not show it. The variance of the bowl, which is known exactly, shows each of these errors.
#
# ## Change it
#
# * In the first visible cell of code after the imports set `pi` to `[0.1, 0.1, 0.8]`: {numref}`fig-twice-chosen` shows what squaring does to a state that is rare.
# * In `palindromic_step` set `friction=0.5` to `friction=1.0`: in {numref}`fig-film` the energy comes and goes faster, still in the same way, and both rows stay where they are.
# * In `sgnuts` replace the line `theta, r = tree.chosen[:2]` by `theta, r = tree.chosen.position, torch.randn(chains, 1, generator=generator)`, a fresh momentum: the first row rises to about three quarters, its histogram in {numref}`fig-sgnuts-report` widens, and the second stays.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-sgnuts-two
#
# **By hand.** ★
# The walker of {numref}`fig-flip` goes one step forward or one step backward, with a coin, and then chooses between the old and the new state.
# Which share of the time does she spend in A and in B if she chooses by the weights $\frac16$, $\frac16$, $\frac13$, $\frac13$ of the states, and which if she chooses with a coin?
# ```
#
# ```{solution} ex-sgnuts-two
# :class: dropdown
#
# A step forward has the same flow as the step backward, so the walk is in detailed balance with $\mu = (\frac16, \frac16, \frac13, \frac13)$, and so is the choice with a coin: A has $\frac13$ and B $\frac23$.
# The weights multiply it by $\mu$ once more: $\mu^2$ is $\frac1{36}$ in each state of A and $\frac19$ in each of B. A has {c}`in-a` of the time, and B four times as much.
# ```

# %% tags=["hide-input"]
g = (walker + walker[flipped][:, flipped]) / 2  # a step forward or backward
weight = share.double()
chosen = g * weight / (weight[:, None] + weight)
chosen += torch.diag(1 - chosen.sum(1))
in_a = torch.linalg.matrix_power(chosen, 500)[0, :2].sum()
check("in-a", in_a, near(0.2, 1e-6), kind="exact", digits=2)

# %% [markdown]
# ````{exercise}
# :label: ex-sgnuts-yourself
#
# **Write it yourself.** ★★
# The report steps as SGHMC does, drift first. Write its backward step, with mass 1 and $\hat B = 0$, on a given number $\xi$ for the noise, and compare it with flip, the package's step, flip.
# Which $\xi$ does the forward step see?
#
# ```python
# def my_backward_step(theta, r, gradient, xi, step_size, friction):
#     """gradient is a function of θ; returns the new θ and r."""
#     ...
# ```
#
# Assignment 3 ({doc}`/book/practice/teaching`) goes on from here: the palindromic step, a path in both directions, and the transition.
# ````
#
# ````{solution} ex-sgnuts-yourself
# :class: dropdown
#
# Flip: the momentum is $-r$. Step: $\theta' = \theta - \varepsilon r$ and $-r - \varepsilon\nabla U(\theta') + \varepsilon Cr + \xi$. Flip: $r' = r + \varepsilon\nabla U(\theta') - \varepsilon Cr - \xi$.
# So the forward step sees $-\xi$, which has the same distribution as $\xi$.
#
# ```python
# def my_backward_step(theta, r, gradient, xi, step_size, friction):
#     theta = theta - step_size * r
#     return theta, r + step_size * gradient(theta) - step_size * friction * r + xi
# ```
#
# The cell below compares it with flip, the package's step, flip.
# ````


# %% tags=["hide-input"]
def my_backward_step(theta, r, gradient, xi, step_size, friction):
    theta = theta - step_size * r
    return theta, r + step_size * gradient(theta) - step_size * friction * r + xi


generator = torch.Generator().manual_seed(21)
theta, r = torch.randn(2, 5, 1, generator=generator)
flipped = theta.clone(), -r
state = generator.get_state()
flows.advance(flows.sghmc(0.1, 3.0), *flipped, DoubleWell().gradient, generator)
generator.set_state(state)
xi = -((2 * 3.0 * 0.1) ** 0.5) * torch.randn(5, 1, generator=generator)
written = my_backward_step(theta, r, DoubleWell().gradient, xi, 0.1, 3.0)
check(
    "backward",
    max((written[0] - flipped[0]).abs().max(), (written[1] + flipped[1]).abs().max()),
    at_most(1e-5),
    kind="exact",
    says="Largest difference between the solution's step and flip, step, flip",
)

# %% [markdown]
# ```{exercise}
# :label: ex-sgnuts-kept
#
# **Diagnose a run.** ★★
# Somebody samples a posterior by SGNUTS. All standard deviations come out at 0.87 of the right ones, and $\hat R$ is 1.00.
# Which may be the cause: too few samples, a noise estimate that is too large, or the weights of NUTS with fresh momenta? Which one run decides?
# ```
#
# ```{solution} ex-sgnuts-kept
# :class: dropdown
#
# Too few samples are not: the chains agree, and they agree on the wrong width.
# $0.87^2 = 0.76$ is what weights of NUTS with fresh momenta give, but it may also be a temperature $(C - \hat B + B)/C$ of 0.76, by an estimate that is too large.
# A run with $\hat B = 0$ and four times the friction decides: without the weights its variance is $1 + B/C$ times the right one, a little too large, whereas the weights still make it too small.
# ```
#
# ## Further reading
#
# {cite:t}`adamday` proposed the algorithm. {cite:t}`leimkuhler2016` treat splittings of Langevin dynamics and their errors, {cite:t}`riou2022` the correction of whole Langevin trajectories, {cite:t}`horowitz1991` the ancestor of both. {cite:t}`betancourt2015` explains why a minibatch must not be held for a trajectory.
# The palindromic step is that of {cite:t}`matthews2018` in another parametrisation and, for a number $C$, Mannella's leapfrog {cite:p}`mannella2006`; the work is the shadow work of {cite:t}`sivak2013`.
