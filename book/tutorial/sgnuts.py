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
# Page 12 of 12 · 41 minutes to read, 15 to play · Running: about 12 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! SGNUTS
# ```

# %%
import torch

from booklib.page.scoreboard import show_row

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

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# This page belongs to the elective that page 11 began.
# NUTS finds its own path length, and SGHMC needs only minibatches.
# In a course project, {cite:t}`adamday` put the two together: grow a path by doubling, as on {doc}`page 11 </book/tutorial/no_u_turn>`, with the steps of SGHMC.
# They called the sampler SGNUTS, saw that it worked on MNIST, and asked in which sense it is reversible.
# The question decides how to choose a state from the finished path: with the weights $e^{-H}$, which page 11 proved right for NUTS, or with equal weights?
#
# Three states are enough to see what is at stake.
# Take page 2's walk on three states, whose stationary distribution is $\pi = (0.2, 0.3, 0.5)$, but do not simply follow it.
# Let it *propose* a state $y$, and then choose between the old state $x$ and $y$: either with the weights $\pi(x)$ and $\pi(y)$, or with a coin.
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
for (name, values), side in zip(shares.items(), (-0.2, 0.2), strict=True):
    colour = COLOURS["naive SGHMC" if side < 0 else "SGNUTS"]
    axes.bar(place + side, values, 0.3, color=colour, label=f"chosen {name}")
axes.hlines(pi**2 / (pi**2).sum(), place - 0.4, place, color="black", lw=1.5)
axes.set(xlabel="state", ylabel="share of time")
axes.set_xticks(place, ["1", "2", "3"])
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# The coin is right, and the weights are wrong: they give $\pi^2$, divided by its sum ({numref}`fig-twice-chosen`).
# The walk already proposes each state as often as $\pi$ demands, and the weights demand it once more.
# This page shows that a path with friction and noise is such a walk, so that NUTS's weights give $e^{-2H}$ in place of $e^{-H}$.
#
# The scoreboard so far:

# %% tags=["hide-input"]
show_scoreboard(12)
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
# Then with $g = \tfrac12(\text{forward} + \text{backward})$ the flow $\mu(z)\,g(z, z')$ is symmetric in $z$ and $z'$: the path has visited the two states as often as their energies demand.
# Choose with equal weights, and the chance to move is one half from either side. The symmetry stays, and $\mu$ is stationary.
#
# Now choose with the weights $e^{-H}$.
# The flow from $z$ to $z'$ is $\mu(z)\,g(z, z')$ times $e^{-H(z')}/(e^{-H(z)} + e^{-H(z')})$, which is symmetric no longer.
# Multiplied by $e^{-H(z)}$ it is symmetric again: $\mu(z)\,g(z, z')$ times $e^{-H(z)}e^{-H(z')}/(e^{-H(z)} + e^{-H(z')})$.
# So the sampler is in detailed balance with $e^{-H}\mu$ instead of $\mu$, which is
#
# $$
# e^{-H}\cdot e^{-H} = e^{-2H}:
# $$ (eq-twice)
#
# the target at temperature one half.
# In the bowl that holds for the position at every stable step size, and the variance is 0.5; elsewhere it holds as $\varepsilon \to 0$.
#
# Why then does NUTS need $e^{-H}$?
# Because without friction and noise the whole change of $H$ along a path is the integrator's error.
# With friction and noise $H$ changes because energy is exchanged, and the path visits high energies as rarely as it should; the weights make them rarer still, as {numref}`fig-sgnuts-weights` shows.
#
# ## Which noisy step goes backward as often as forward?
#
# HMC and NUTS are right because their paths can be walked back.
# A path with friction and noise cannot: a step backward does not undo a step forward, and the report suspected that this "likely breaks the reversibility of the Markov Chain" (p. 15).
# But a film of a swinging ball, with friction and noise in balance, looks in equilibrium the same backwards, if only we remember that momenta change their sign when the film is reversed.
# So reversibility survives in distribution.
#
# Let $F(\theta, r) = (\theta, -r)$ be this *flip*, and let a step lead from $z = (\theta, r)$ to $z'$ with the density $p(z, z')$. (In the step below $\theta'$ follows from $\theta$, $r$ and $r'$; there $p$ is the density of $r'$ given $z$.)
# Seen backwards, the move from $z$ to $z'$ starts at $Fz'$, the end with its momentum reversed, and arrives at $Fz$. The film has the same distribution in both directions if both are equally frequent,
#
# $$
# \mu(z)\,p(z, z') = \mu(z')\,p(Fz', Fz)
# $$ (eq-flip-balance)
#
# for the stationary density $\mu$, which the flip does not change.
# This is *detailed balance up to the flip*.
# The step backward in time is then flip, step, flip.
#
# SGHMC's continuous equation satisfies {eq}`eq-flip-balance` with $\mu \propto e^{-H}$, but for a discrete step this takes more: it must at least read the same from both sides.
# {prf:ref}`alg-sghmc` does not, since it drifts first and kicks afterwards. Split the drift into two halves, and let the friction act on the mean of the momenta before and after the kick: reversed in time the mean only changes its sign, whereas the old momentum would become the new one.
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
# This *palindromic* step costs one gradient, as before.
#
# ```{prf:theorem} Reversal of a step
# :label: thm-reversal-short
#
# Let the gradient noise be $N(0, V)$ with constant $V$, and $\hat B = \tfrac12\varepsilon V$.
#
# 1. The palindromic step satisfies $e^{-H(z)}\,p(z, z') = e^{W}\,e^{-H(z')}\,p(Fz', Fz)$, where $W = U(\theta') - U(\theta) - \nabla U(y)^\top(\theta' - \theta)$ is the *work*, the part of the change of $U$ that the force at $y$ does not account for.
# 2. If $U = \tfrac12\theta^\top A\theta$ with $A$ positive definite and $\varepsilon^2A \prec 4M$, then {eq}`eq-flip-balance` holds exactly, with $\theta \sim N(0, A^{-1})$ and an independent Gaussian $r$.
# ```
#
# ```{admonition} Proof of the first part, for $M = 1$ and a number $C$
# :class: dropdown
#
# All noise of the step is $\zeta = r' - r + \varepsilon\nabla U(y) + \tfrac12\varepsilon C(r + r')$, of variance $2(C - \hat B)\varepsilon + \varepsilon^2V = 2C\varepsilon$.
# The step from $Fz'$ to $Fz$ has the same $y$, and the noise $\tilde\zeta = r' - r + \varepsilon\nabla U(y) - \tfrac12\varepsilon C(r + r')$.
# So $\log p(z, z') - \log p(Fz', Fz) = -(\zeta^2 - \tilde\zeta^2)/(4C\varepsilon) = -\tfrac12(r + r')\bigl(r' - r + \varepsilon\nabla U(y)\bigr)$, and with $\theta' - \theta = \tfrac12\varepsilon(r + r')$ this is $-\tfrac12(r'^2 - r^2) - \nabla U(y)(\theta' - \theta) = W - H(z') + H(z)$.
# ```
#
# {prf:ref}`thm-step-reversal` and {prf:ref}`thm-quadratic` have the whole proof.
# In the bowl the positions of the palindromic step thus have no bias at all, at any stable step size, with friction, gradient noise and its estimate.
# For $M = 1$ the momentum's variance is not quite 1, but $1/(1 - \tfrac14\varepsilon^2)$, so a momentum that is drawn afresh from $N(0, M)$ brings back a bias of order $\varepsilon^2$.
#
# In code, with the gradient's noise of the bowl and $\hat B = B = \tfrac12\varepsilon V$:


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

# %% mystnb={"figure": {"caption": "The energy counted twice, in the bowl. Left: a path with friction and noise (dots); discs show the weights $\\exp(-H)$ of its states. Right: density of the energy $H$ of the states that such a path visits, $\\exp(-H)$, and of those that are chosen with weights $\\exp(-H)$, $2\\exp(-2H)$.", "name": "fig-sgnuts-weights"}, "image": {"alt": "Left: a path that comes from far out towards the origin of the phase plane; its discs are tiny far out and large near the origin. Right: two falling curves, the one for the chosen states starts twice as high and falls twice as fast."}} tags=["hide-input"]
generator = torch.Generator().manual_seed(3)
states = [(torch.tensor([1.5]), torch.tensor([2.0]))]
for _ in range(90):
    states.append(palindromic_step(*states[-1], generator))
path = torch.tensor(states)
figure, (left, right) = plt.subplots(1, 2, figsize=(5.8, 3.0))
left.plot(*path.T, ".-", lw=0.6, ms=4, color=COLOURS["SGNUTS"])
sizes = 120 * torch.exp(-0.5 * path.square().sum(-1))
left.scatter(*path.T, s=sizes, color=COLOURS["naive SGHMC"], alpha=0.35, lw=0)
left.set(xlabel=r"$\theta$", ylabel="$r$", aspect="equal")
grid = torch.linspace(0, 4, 100)
right.fill_between(grid, torch.exp(-grid), color=TRUTH, alpha=0.35, lw=0)
right.plot(grid, torch.exp(-grid), color=COLOURS["SGNUTS"])
right.plot(grid, 2 * torch.exp(-2 * grid), "--", color=COLOURS["naive SGHMC"])
right.text(1.3, 0.33, "visited", color=COLOURS["SGNUTS"])
right.text(0.4, 1.2, r"chosen by $e^{-H}$", color=COLOURS["naive SGHMC"])
right.set(xlabel="energy $H$", ylabel="density", ylim=(0, 2.1))
plt.show()

# %% [markdown]
# ## From two states to a path
#
# Larger trees are the same argument with the coins of page 11.
#
# ```{prf:theorem} The tree is reversible, with equal weights
# :label: thm-tree-short
#
# Let {eq}`eq-flip-balance` hold, grow a path by doubling, by the step and its backward step, and let it stop by a rule that looks at aligned sub-trees alone. Choose from the finished path with **equal** weights, either among all states, or among those of the half in which the start is not. Then the transition satisfies ordinary detailed balance with respect to $\mu$. With the weights $e^{-H}$ on the whole path, or with page 11's rule for the new half, it satisfies detailed balance with respect to $e^{-H}\mu$.
# ```
#
# {prf:ref}`thm-tree` and {prf:ref}`thm-own-weights` have the proof.
# Its idea is page 11's proof with one factor changed: in the place of $e^{-H(z_s)}/Z$ stands the density of the film with the start at $s$, and by {eq}`eq-flip-balance` it is the same for every $s$. So, *given the path, the start is uniform on it*.
# Then a uniform choice among all states is a fresh start, and a uniform choice in the other half is a symmetric move, because the start is equally likely in either half.
# If {eq}`eq-flip-balance` holds only up to the work, the right weight of a state is $e^{-W}$ with the work summed along the path from its left end to that state; with equal weights a transition is wrong by order $\varepsilon^2$, and so is the stationary distribution if the chain forgets its start at a rate that does not depend on $\varepsilon$ ({prf:ref}`thm-uniform`).
#
# Without friction and noise $W = \Delta H$, and these are NUTS's weights.
#
# Here are page 11's functions, as they stand there, and both samplers: they differ in one line, the weight of a state.


# %%
def ends_approach(r):
    """Tell of pieces with the momenta r, (pieces, states, dim), whether one turns."""
    rho = r.sum(1)
    ends = (rho * r[:, 0]).sum(-1), (rho * r[:, -1]).sum(-1)
    return bool((torch.minimum(*ends) <= 0).any())


def turns(r):
    """Tell whether a piece turns, or its half with the first state of the other."""
    half = r.shape[1] // 2
    return any(map(ends_approach, (r, r[:, : half + 1], r[:, half - 1 :])))


def has_turn(r):
    """Tell whether one of the aligned sub-trees of (states, dim) momenta turns."""
    sizes = [2**k for k in range(1, len(r).bit_length())]
    return any(turns(r.reshape(-1, size, r.shape[-1])) for size in sizes)


def momenta(path):
    return torch.stack([r for _, r in path])


def grow(start, step, weight, generator, has_turn=has_turn, max_depth=10):
    """Grow a path from a state, and choose a state from the path; return both."""
    path, forward = [start], True
    for coin in torch.rand(max_depth, dtype=start[0].dtype, generator=generator):
        forward = not forward if coin < 0.5 else forward  # turn round, or not
        theta, r = path[-1] if forward else (path[0][0], -path[0][1])
        half = []
        for _ in path:
            theta, r = step(theta, r)
            half.append((theta, r))
        if not forward:
            half = [(theta, -r) for theta, r in reversed(half)]
        if has_turn(momenta(half)):
            break
        path = path + half if forward else half + path
        if turns(momenta(path)[None]):
            break
    weights = torch.stack([weight(theta, r) for theta, r in path])
    return path, path[torch.multinomial(weights, 1, generator=generator)]


def sgnuts(weight, generator, num_samples=16, chains=150):
    """Grow paths of palindromic steps, for one chain after the other."""

    def step(theta, r):
        return palindromic_step(theta, r, generator)

    samples = []
    for _ in range(chains):
        state = tuple(torch.randn(2, 1, generator=generator))
        for _ in range(num_samples):
            _, state = grow(state, step, weight, generator, max_depth=8)
            samples.append(state[0])
    return torch.cat(samples).reshape(chains, num_samples)[:, 8:].T


def by_energy(theta, r):
    return torch.exp(-(theta @ theta + r @ r) / 2)


def equal(theta, r):
    return torch.ones(())


generator = torch.Generator().manual_seed(12)
weighted, corrected = sgnuts(by_energy, generator), sgnuts(equal, generator)
show_row("sgnuts-weighted", weighted)
show_row("sgnuts", corrected)

# %% [markdown]
# {numref}`fig-sgnuts-report` has their samples.

# %% mystnb={"figure": {"caption": "SGNUTS in the bowl, $\\varepsilon = 0.1$, $V = 4$, $C = 0.5$, $\\hat B = B$: the distance $|\\theta|$ from the middle, with a state of the path chosen by $e^{-H}$ and with equal weights, and the true density (grey).", "name": "fig-sgnuts-report"}, "image": {"alt": "Half of a grey bell curve. One histogram scatters about its outline, the other is higher in the middle and falls off earlier."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.2))
line, bins = torch.linspace(0, 3.5, 100), torch.linspace(0, 3.5, 11)
normal = torch.exp(-(line**2) / 2) * (2 / torch.pi) ** 0.5
axes.fill_between(line, normal, color=TRUTH, alpha=0.35, lw=0, label="true density")
for samples, name, label in (
    (weighted, "naive SGHMC", r"chosen by $e^{-H}$"),
    (corrected, "SGNUTS", "equal weights"),
):
    plot_histogram(axes, samples.abs(), bins, color=COLOURS[name], label=label)
axes.set(xlabel=r"$|\theta|$", ylabel="density")
axes.legend()
plt.show()

# %% [markdown]
# The two rows are {c}`sgnuts-weighted` with the weights of NUTS and {c}`sgnuts` with equal weights, where 0.5 and 1 are exact.
# Both keep the momentum from path to path.
# `SGNUTS` in the package does this for many chains, by default with a fresh momentum for each path: {c}`package`.
# The sampler as we read the report has the weights of NUTS, a step that drifts first, and fresh momenta, which bring some of the heat back: {c}`report`.
# The report itself is read in {doc}`/book/studies/sgnuts_on_networks`, its program in {doc}`/book/appendix/errata`.

# %% tags=["hide-input"]
noisy_bowl, start = NoisyGradient(Gaussian.standard(1), 4.0), torch.zeros(2_000, 1)
for name, settings, bound in (
    ("package", {}, near(1.0, 0.08)),
    ("report", dict(weights="energy", integrator="drift_kick"), near(0.77, 0.08)),
):
    kernel = SGNUTS(0.1, 0.5, 0.2, max_depth=8, **settings)
    draws = sample(kernel, noisy_bowl, start, num_samples=30, warm_up=10, seed=13)
    variance = draws.samples.square().mean()
    check(name, variance, bound, because="0.013 is the standard deviation of ten runs")

# %% [markdown]
# {numref}`fig-live-sgnuts` runs both in a bowl of two dimensions, twenty chains each. Set $V = 0$: even with exact gradients the weights $e^{-H}$ are wrong as soon as there is friction.
#
# ```{live} sgnuts
# :name: fig-live-sgnuts
# :alt: A path of some sixty states in the bowl, with discs for the weights; its brackets; histograms of two samplers, the one with NUTS's weights narrower than the true density; and the running mean of $\theta^2$, which comes to a half with those weights and to one with equal weights.
#
# Live: palindromic steps, $\hat B = \tfrac12\varepsilon V$, the momentum kept; a state chosen by NUTS's weights and with equal weights. The path is one of the sampler with NUTS's weights.
# ```
#
# ## Is it worth it?
#
# The corrected sampler is as accurate as SGHMC.
# On a Gaussian it has no bias if the momentum is kept, and one of order $\varepsilon^2$ with fresh momenta.
# On other targets its bias is of order $\varepsilon^2$ if the noise is constant and the chain forgets its start fast enough (measured, not proved), and of order $\varepsilon$ if the noise depends on the position and $\hat B$ does not.
# The minibatch must be fresh at each step; the report's program holds one for a whole tree, and then the bias does not vanish with $\varepsilon$ at all.
#
# It finds its path length by itself, but pays for steps that it throws away.
# On a Gaussian with eight scales, SGHMC that keeps its momentum, and so has a friction to choose in place of a length, yields nearly five times as many effective samples per gradient at its best friction.
# {doc}`/book/further/sgnuts_measured` has these measurements, and {doc}`/book/studies/sgnuts_on_networks` those on networks.
# The palindromic step is worth more than the sampler: it costs the same as {prf:ref}`alg-sghmc`, has no bias in a bowl, and can be used by SGHMC itself.
#
# **To remember:** with friction and noise a path already visits the energies at the right rate, so all of its states count alike: exactly on a Gaussian if the momentum is kept, at any stable step size, and up to a small error of the step elsewhere.
#
# ## The whole story
#
# Follow the scoreboard from the top.
# Metropolis and HMC are right because they reject.
# With minibatches a rejection would cost the energy of all the data, so their noise needs small steps (SGLD), or it overheats (naive SGHMC), or it is balanced by friction (SGHMC), provided that we know how much noise there is ($\hat B$).
# And what was right without friction and noise (the weights of NUTS) can be wrong with them.
# The report's accuracy of 0.94 on MNIST did not show the last of these errors. Each of them shows in one variance that is known exactly.
#
# ## Change it
#
# * In the first visible cell set `pi` to `[0.1, 0.1, 0.8]`: {numref}`fig-twice-chosen` shows what squaring does to a state that is rare.
# * In `palindromic_step` set `friction=0.5` to `friction=1.0`: both rows stay where they are, because the theorem holds for any friction.
# * Let `sgnuts` draw a fresh momentum for every path, by `state = state[0], torch.randn(1, generator=generator)` before `grow`: the first row rises to about three quarters, and the second stays.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-sgnuts-yourself
#
# **Write it yourself.** The report steps as SGHMC does, drift first. Write its backward step, with mass 1 and $\hat B = 0$, on a given number $\xi$ for the noise, and compare it with flip, the package's step, flip.
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
# :label: ex-sgnuts-two
#
# A tree of two states: from $z$ go to $z'$, one step forward or backward with probability one half each, and accept with probability $e^{-H(z')}/(e^{-H(z)} + e^{-H(z')})$. Let {eq}`eq-flip-balance` hold with $\mu = e^{-H}$. Show directly that the density $e^{-2H}$ is invariant.
# ```
#
# ```{solution} ex-sgnuts-two
# :class: dropdown
#
# Let $G = \tfrac12(P + FPF)$. By {eq}`eq-flip-balance` $e^{-H(z)}G(z, dz')\,dz$ is symmetric in $z$ and $z'$. Then so is $e^{-2H(z)}\,G(z, dz')\,\frac{e^{-H(z')}}{e^{-H(z)} + e^{-H(z')}}\,dz = \bigl[e^{-H(z)}G(z, dz')\,dz\bigr]\frac{e^{-H(z)}e^{-H(z')}}{e^{-H(z)} + e^{-H(z')}}$: detailed balance.
# ```
#
# ```{exercise}
# :label: ex-sgnuts-kept
#
# ★★ **Diagnose.**
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
# {cite:t}`adamday` proposed the algorithm and asked the right questions. {cite:t}`leimkuhler2016` treat splittings of Langevin dynamics and their errors, {cite:t}`riou2022` the correction of whole Langevin trajectories, {cite:t}`horowitz1991` the ancestor of both. {cite:t}`betancourt2015` explains why a minibatch must not be held for a trajectory.
# The palindromic step is that of {cite:t}`matthews2018` in another parametrisation and, for a number $C$, the leapfrog that programs name after Mannella {cite:p}`mannella2006`; the work is the shadow work of {cite:t}`sivak2013`; {doc}`/book/further/how_far_it_holds` compares them.
