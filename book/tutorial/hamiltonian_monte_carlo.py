# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Hamiltonian Monte Carlo
#
# ```{div} page-head
# Page 4 of 12 · 38 minutes to read, 15 to play · Running: about 6 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! HMC, ! Hamiltonian Monte Carlo, ! typical set, ! resonance
# ```

# %%
import torch

from booklib.page.scoreboard import show_row
from sgmc.integrators import leapfrog
from sgmc.targets import Gaussian

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.page.claims import at_least, at_most, at_most_errors, check, near
from booklib.page.figures import (
    COLOURS,
    TRUTH,
    plot_contours,
    plot_density,
    plot_histogram,
    use_style,
)
from booklib.page.play import play
from booklib.page.scoreboard import show_scoreboard
from sgmc import sample
from sgmc.kernels import HMC
from sgmc.other_kernels import RandomWalkMetropolis

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# A sampler has to go where the probability is.
# Where is that, in many dimensions?
#
# Take a standard Gaussian in $d$ dimensions.
# Its density is largest at the mode, $\theta = 0$, but the squared distance of a sample from there, $\lvert\theta\rvert^2$, is a sum of $d$ independent squares, with mean $d$ and standard deviation $\sqrt{2d}$.
# For large $d$ the distance itself is therefore $\sqrt d$, give or take $1/\sqrt2$.
# Nearly all the probability lies in a thin shell, the *typical set*: nearer to the mode the density is larger, but there is hardly any room.
# In 100 dimensions the shell from 8 to 12 has {c}`shell` of it, and the ball within 5 of the mode {c}`core`.
# The upper part of {numref}`fig-typical-set` shows the shell, the lower part two ways to leave a point in it.

# %% mystnb={"figure": {"caption": "A standard Gaussian. Upper: the density of the distance from the mode, in 1, 10 and 100 dimensions. Lower: 100 dimensions; the distance from the mode along twenty paths that leave a sample $\\theta$ in random directions $r$: on straight ones, $\\theta + tr$ (black), and on those of a rolling ball, $\\theta\\cos t + r\\sin t$ (blue). Grey: the shell, $\\sqrt d \\pm 2$.", "name": "fig-typical-set"}, "image": {"alt": "Above, three densities of the distance from the mode: for one dimension largest at zero, for ten a hump at 3, for a hundred a hump of the same width at 10. Below, over the time from 0 to pi, twenty black curves that soon rise from the grey band, and twenty blue ones that stay in it."}} tags=["hide-input"]
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.2, 5.6))
distance = torch.linspace(0.01, 14, 500, dtype=torch.float64)
for dim, style in ((1, ":"), (10, "--"), (100, "-")):
    half = torch.tensor(dim / 2, dtype=torch.float64)
    log_density = (dim - 1) * distance.log() - distance**2 / 2
    log_density -= (half - 1) * torch.log(torch.tensor(2.0)) + torch.lgamma(half)
    upper.plot(distance, log_density.exp(), style, color="black", label=f"$d$ = {dim}")
upper.set(xlabel=r"distance from the mode, $|\theta|$", ylabel="density")
upper.legend(loc="upper center")
generator = torch.Generator().manual_seed(0)
there, direction = torch.randn(2, 20, 100, generator=generator)
time = torch.linspace(0, torch.pi, 101)[:, None, None]
lower.axhspan(8, 12, color=TRUTH, alpha=0.35, lw=0)
for points, name in (
    (there + time * direction, "random walk"),
    (there * time.cos() + direction * time.sin(), "HMC"),
):
    lower.plot(time[:, 0, 0], points.norm(dim=-1), color=COLOURS[name], lw=0.7)
lower.set(
    xlabel="time $t$",
    ylabel="distance from the mode",
    ylim=(0, 22),
    xticks=[0, torch.pi / 2, torch.pi],
    xticklabels=["0", "π/2", "π"],
)
plt.show()

# %% [markdown]
# A random walk goes straight on in a random direction (black).
# In many dimensions two random directions are nearly at right angles, so $\lvert\theta + tr\rvert^2 \approx \lvert\theta\rvert^2 + t^2\lvert r\rvert^2 \approx d + t^2d$, and the path soon leaves the shell.
# On the way the energy rises by about $\frac12t^2d$, so a proposal has a fair chance only for $t$ of the order of $d^{-1/2}$, and each step forgets where the last one went.
#
# A ball that rolls in the bowl $U = \frac12\lvert\theta\rvert^2$ goes to $\theta\cos t + r\sin t$, by {eq}`eq-rotation` in every coordinate (blue).
# Both $\theta$ and $r$ have length about $\sqrt d$ and they are nearly at right angles, so its squared distance stays near $d\cos^2t + d\sin^2t = d$.
# The force $-\nabla U$, which points to the mode, bends the path just enough to keep it in the shell.
# After a quarter of a turn, $t = \frac\pi2$, the ball is at $r$: every coordinate is new.
#
# *A guess before you read on.*
# A computer rolls the ball with an error.
# How far may it go in one move, a tenth of the width of the shell or all the way round, and still be accepted?
#
# The scoreboard so far, in the bowl in one dimension at $\varepsilon = 0.1$, where 1 is correct:

# %% tags=["hide-input"]
show_scoreboard(4)
half_dim, squares = torch.tensor(50.0).double(), torch.tensor([5, 8, 12]).double() ** 2
mode, low, high = torch.special.gammainc(half_dim.expand(3), squares / 2)
check("shell", high - low, at_least(0.99), kind="exact", digits=3)
check("core", mode, at_most(1e-8), kind="exact", digits=1)

# %% [markdown]
# ## Resample, roll, accept
#
# Let the target be $\pi(\theta) \propto e^{-U(\theta)}$, and take $U$ as a landscape.
# Introduce a momentum $r$ that is independent of the position, so that the joint density is
#
# $$
# \pi(\theta, r) \propto e^{-H(\theta, r)} = e^{-U(\theta)}\,e^{-\frac12r^\top M^{-1}r}.
# $$ (eq-joint)
#
# If we can sample pairs $(\theta, r)$ from it, we need only discard $r$.
# Two moves keep it: to draw $r \sim N(0, M)$ afresh, and to follow Hamilton's equations, which conserve $H$ and volume ({prf:ref}`thm-flow`).
# The first changes the energy and stays in place, the second goes far at constant energy; neither would do alone.
#
# A computer's leapfrog conserves volume and is reversible, but it only nearly conserves $H$, and on {doc}`the last page </book/tutorial/hamiltonian_dynamics>` that made the variance at $\varepsilon = 1$ a third too large.
# The remedy is the rejection of {cite:t}`metropolis1953`: accept the end of the path according to its energy error {cite:p}`duane1987`.
#
# ```{prf:algorithm} Hamiltonian Monte Carlo
# :label: alg-hmc
#
# **Inputs:** step size $\varepsilon$, number of steps $L$, mass $M$
#
# Repeat:
#
# 1. draw $r \sim N(0, M)$;
# 2. follow $L$ leapfrog steps from $(\theta, r)$ to $(\theta', r')$;
# 3. with probability $\min\bigl(1, e^{H(\theta, r) - H(\theta', r')}\bigr)$ move to $\theta'$, otherwise stay at $\theta$.
# ```
#
# ```{prf:theorem} HMC leaves the target invariant
# :label: thm-hmc
#
# Let $U$ be twice continuously differentiable, and $\int e^{-U} < \infty$.
# For any $\varepsilon$, $L$ and $M$ the chain of {prf:ref}`alg-hmc` leaves $\pi(\theta) \propto e^{-U(\theta)}$ invariant.
# ```
#
# ```{prf:proof}
# Line 1 leaves $\pi(\theta, r)$ invariant.
# For lines 2 and 3 let $S = F \circ \Psi^L$ be $L$ leapfrog steps followed by the flip $F(\theta, r) = (\theta, -r)$.
# Leapfrog is reversible, so $S \circ S$ is the identity, and $\lvert\det DS\rvert = 1$ ({prf:ref}`thm-leapfrog`).
# Accept $z' = S(z)$ with probability $\min(1, \pi(z')/\pi(z))$.
# Since $\pi(z)$ times the acceptance is $\min(\pi(z), \pi(Sz))$, the flow of probability from a set $A$ to a set $B$ by accepted moves is
#
# $$
# \begin{aligned}
# &\int \mathbf 1_A(z)\,\mathbf 1_B(Sz)\,\min\bigl(\pi(z), \pi(Sz)\bigr)\,dz\\
# &\quad= \int \mathbf 1_A(Sw)\,\mathbf 1_B(w)\,\min\bigl(\pi(Sw), \pi(w)\bigr)\,dw,
# \end{aligned}
# $$
#
# where $w = Sz$, so that $z = Sw$ and $dz = dw$.
# The right side is the flow from $B$ to $A$: detailed balance.
# A rejection adds nothing to the flow between different states.
# The algorithm accepts with the same probability, because $H$ is even in $r$, and it leaves out the flip, which has no effect, because $r$ is drawn afresh.
# ```
#
# The proof uses that leapfrog is reversible and conserves volume, exactly, and nothing about the size of its energy error: an integrator that errs more is only rejected more often.
# {prf:ref}`thm-involution` has the argument for any reversible map.
# In code, with mass one and the last page's `leapfrog`, as the package has it, it is a few lines:


# %%
def hmc_step(U, gradient, theta, step_size, num_steps, generator):
    """Move from θ (chains, d) by one step of Hamiltonian Monte Carlo."""
    r = torch.randn(theta.shape, generator=generator, dtype=theta.dtype)
    new_theta, new_r = leapfrog(gradient, theta, r, step_size, num_steps)
    energy = U(theta) + (r**2).sum(-1) / 2
    new_energy = U(new_theta) + (new_r**2).sum(-1) / 2
    uniform = torch.rand(len(theta), generator=generator, dtype=theta.dtype)
    accepted = uniform < torch.exp(energy - new_energy)
    return torch.where(accepted[:, None], new_theta, theta)


# %% [markdown]
# We run it with $\varepsilon = 1$, where the last page's ball had the variance $\frac43$.
# By the theorem HMC keeps the variance 1 at any step size, so this is its row of the scoreboard, once the chain has arrived; measured it is {c}`hmc`.


# %%
bowl = Gaussian.standard(1)  # U(θ) = ½θ²
theta, samples, generator = torch.zeros(10_000, 1), [], torch.Generator().manual_seed(4)
for _ in range(24):
    theta = hmc_step(bowl.energy, bowl.gradient, theta, 1.0, 2, generator)
    samples.append(theta[:, 0])
show_row("hmc", torch.stack(samples[12:]))

# %% [markdown]
# {numref}`fig-trajectory` compares one such path with a random walk of as many steps, on a Gaussian with correlation 0.95.
# The path bounces between the walls of the valley and goes along it all the while; the random walk stays about where it was.

# %% mystnb={"figure": {"caption": "Left: one path of 20 leapfrog steps on a Gaussian with correlation 0.95. Right: 20 steps of random-walk Metropolis from the same place, with a step size of 0.25, about the valley's width.", "name": "fig-trajectory"}, "image": {"alt": "Two long narrow contour plots along the diagonal. Left, the trajectory zigzags along the whole valley from its lower left to its upper right. Right, the random walk is a small tangle near its start."}} tags=["hide-input"]
target = Gaussian.correlated(0.95)
start, momentum = torch.tensor([[-1.6, -1.2]]), torch.tensor([[0.2, 1.3]])
trajectory = [start]
position = start
for _ in range(20):
    position, momentum = leapfrog(target.gradient, position, momentum, 0.15)
    trajectory.append(position)
walk = sample(
    RandomWalkMetropolis(0.25), target, start, num_samples=20, seed=1
).samples[:, 0]

figure, panels = plt.subplots(1, 2, figsize=(5.4, 3.0), sharey=True)
for axes, points, name in (
    (panels[0], torch.cat(trajectory), "HMC"),
    (panels[1], torch.cat([start, walk]), "random walk"),
):
    plot_contours(axes, target, -3.2, 3.2)
    axes.plot(*points.T, "o-", ms=3, lw=1, color=COLOURS[name])
    axes.set(title=name, xlabel=r"$\theta_1$")
panels[0].set_ylabel(r"$\theta_2$")
plt.show()

# %% [markdown]
# ## What the rejections correct
#
# {numref}`fig-correction` shows two chains: for the squares the end of every path is accepted, for the dots it has to pass line 3 of the algorithm.
# The squares follow the variance of leapfrog's shadow, $1/(1 - \varepsilon^2/4)$ of {eq}`eq-uncorrected-variance`; the dots stay at 1 for every step size.
#
# How far may the ball go in one move? All the way round, which answers the guess: the bound on the energy error does not grow with the length of a path. In the bowl that is exact, and elsewhere it holds as long as a shadow is nearly conserved.
# In the bowl $H$ is the sum of the conserved $\tilde H$ and of $\frac18\varepsilon^2\theta^2$, so the energy error of a path is $\frac18\varepsilon^2(\theta'^2 - \theta^2)$, however long it is: it swings, and does not grow.
# In $d$ dimensions the same holds with $\lvert\theta\rvert^2$, which on the shell differs between two points by about $2\sqrt d$: a hundred dimensions and $\varepsilon = 0.1$ give an energy error of about 0.025, all the way round.
# So what limits the length of a path is the gradients that it costs, and not rejections, as long as the shadow is nearly conserved.
# A chain without rejections is not useless, though: in the bowl its bias is of order $\varepsilon^2$, and can be made small.
# With the gradient of a minibatch there will be no other choice.

# %% mystnb={"figure": {"caption": "Variance of $\\theta$ under HMC in the bowl, whose true variance is 1 (grey), against the step size; trajectories of length 1.25 to 2. Without the correction step it follows the shadow's variance (dashed). The error bars are smaller than the symbols.", "name": "fig-correction"}, "image": {"alt": "Over the step size, dots of HMC at a variance of one throughout, and squares of HMC without correction on a dashed curve that rises from one to above four at a step of 1.75."}} tags=["hide-input"]
sizes = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75]


def variance(step_size, rejections):
    """The mean of θ² in 10,000 chains, and its error."""
    theta, samples = torch.zeros(10_000, 1), []
    generator = torch.Generator().manual_seed(2)
    settings = step_size, round(1.6 / step_size)
    for _ in range(30):
        if rejections:
            theta = hmc_step(bowl.energy, bowl.gradient, theta, *settings, generator)
        else:
            r = torch.randn(theta.shape, generator=generator)
            theta, _ = leapfrog(bowl.gradient, theta, r, *settings)
        samples.append(theta[:, 0])
    of_chains = torch.stack(samples[20:]).square().mean(0)
    return float(of_chains.mean()), float(of_chains.std() / 100)


figure, axes = plt.subplots(figsize=(4.8, 3.2))
axes.axhline(1, color=TRUTH, zorder=0)
fine = torch.linspace(0.02, 1.78, 200)
colour = COLOURS["HMC without correction"]
axes.plot(fine, 1 / (1 - fine**2 / 4), "--", lw=1, color=colour)
errors = []
for rejections, name, marker in (
    (False, "HMC without correction", "s"),
    (True, "HMC", "o"),
):
    measured = [variance(h, rejections) for h in sizes]
    values = [value for value, _ in measured]
    axes.plot(sizes, values, marker, color=COLOURS[name], label=name)
    errors += [
        abs(value - (1 if rejections else 1 / (1 - h**2 / 4))) / error
        for h, (value, error) in zip(sizes, measured, strict=True)
    ]
axes.set(xlabel=r"step size $\varepsilon$", ylabel=r"variance of $\theta$", ylim=(0, 5))
axes.legend(loc="upper left")
plt.show()

# %% tags=["hide-input"]
check(
    "variances",
    max(errors),
    at_most_errors(),
    because="the shadow's variance, or 1",
    says="Largest distance of a symbol in the figure from its line, in standard errors",
)
ridge = Gaussian.correlated(0.95, dtype=torch.float64)
first = torch.tensor([[-1.6, -1.2]], dtype=torch.float64)
by_package = sample(HMC(0.3, 5), ridge, first, num_samples=30, seed=5).samples
generator = torch.Generator().manual_seed(5)
torch.randn(2, generator=generator, dtype=torch.float64)  # at the start; not used
theta, by_hand = first, []
for _ in range(30):
    theta = hmc_step(ridge.energy, ridge.gradient, theta, 0.3, 5, generator)
    by_hand.append(theta)
check(
    "package",
    (torch.stack(by_hand) - by_package).abs().max(),
    at_most(1e-9),
    kind="exact",
    because="the same rule and the same random numbers",
    says="Largest difference between 30 samples of hmc_step and of the package",
)

# %% [markdown]
# ## How far to go
#
# Two numbers are to be chosen.
# The *step size* trades acceptance for distance: in many dimensions most paths are rejected well before the limit $\varepsilon < 2s$, with $s$ the standard deviation of the narrowest direction, and far below it gradients are wasted.
# An acceptance between 0.6 and 0.9 is a good aim {cite:p}`beskos2013,betancourt2014`.
# The *number of steps* should make a quarter of a turn in the widest direction, of standard deviation $\ell$; that takes about $\ell/s$ steps.
# With fewer, HMC is a random walk again; with more, the ball comes back.
# So a valley takes HMC about $\ell/s$ steps from end to end, where a random walk needs $(\ell/s)^2$ steps of length $s$ to diffuse as far, and so does *Langevin dynamics*, which is HMC with $L = 1$ (with its rejections it is called MALA; page 6 takes it without): guided by the gradient, but with a new direction at every step.
#
# There is a trap in coming back.
# After a time $\varepsilon L = \pi$ the ball in the bowl is at $-\theta$, whatever its momentum was.
# The chain then hops from side to side, and $\theta^2$ never changes: HMC keeps its target without ever reaching it.
# Near $\pi$ it is no better: $L$ leapfrog steps turn the ball by the angle $L\omega$, with $\omega = 2\arcsin\frac\varepsilon2$ ({ref}`ex-frequency`), and if rejections are rare, the correlation of $\theta^2$ with the next $\theta^2$ is $\cos^2L\omega$.
# For 16 steps of 0.196 it misses 1 by {c}`stuck`.
#
# This is *resonance*, and a random number of steps cures it: with $L$ uniform between 8 and 24 the correlation is {c}`cured`.
# The number must be drawn before the path begins, so that the proof holds for each number ({prf:ref}`thm-random-steps`).
# {doc}`/book/practice/tuning_hmc` measures what an independent sample costs at each length, derives the rules above, and learns the mass matrix $M$, which can make all directions alike.
# In *partial refreshment* the ball keeps a part of its momentum from one sample to the next ({prf:ref}`thm-partial-refreshment`).
# The momentum then decays as if by friction, and noise makes up for it: page 8 will take that road.

# %% tags=["hide-input"]
omega = 2 * torch.tensor(0.196 / 2, dtype=torch.float64).arcsin()
check("stuck", 1 - (16 * omega).cos() ** 2, at_most(1e-6), kind="exact", digits=1)
cured = (torch.arange(8, 25) * omega).cos().square().mean()
check("cured", cured, at_most(0.5), kind="exact", digits=2)

# %% [markdown]
# {numref}`fig-live-hmc` has a valley with $\ell = 1$ and $s = \frac13$.
# Bring $\varepsilon$ near the limit $2s$ to see rejections that keep the variances right, and take 16 steps of 0.196 to see a resonance that no rejection betrays.
#
# ```{live} hmc
# :name: fig-live-hmc
# :alt: Samples on the contours of a long valley, one cross of a rejected proposal, and the path of the last proposal, an arc towards the left end; the last hundred values, which go everywhere; and the mean squared jump against the number of steps, a wave that falls to zero at every half turn, with the point of this run at its top.
#
# Live: 500 samples of HMC in the valley, with their variances in the line below the controls. Above, the last hundred samples and the path of the last proposal; below left, the coordinate along the valley; below right, how far $\lvert\theta_1\rvert$ jumps from sample to sample, which resonance brings to zero.
# ```
#
# ## Where no step suits: a funnel
#
# In a Gaussian one step size suits all places.
# {numref}`fig-funnel` has a target where none does, the funnel of {cite:t}`neal2003`: $v \sim N(0, 9)$, and $x$ given $v$ has the variance $e^v$.
# Hierarchical models look like this, with $v$ the logarithm of a variance.
# At $v$ the valley has the width $e^{v/2}$, so leapfrog is stable only for $\varepsilon < 2e^{v/2}$, to the right of the dotted line.
#
# The theorem holds: HMC keeps the funnel at any step.
# But it does not reach the deep neck: left of the dotted line paths grow, the faster the farther left, and below about $-4$ nearly all of them are rejected.
# Of the samples {c}`neck` have $v < -4$, where {c}`neck-true` is right, and the acceptance shows nothing alarming: {c}`acceptance` of the proposals are accepted, as the rule above asks, because the wide part hides the neck. The rejected paths do show it: left of the dotted line their energy errors are enormous. Such a path is called a *divergence*, and good software counts them.
# A smaller step helps, but whatever it is, deeper down there is a place where it is too large.
# The cure is another coordinate: $z = xe^{-v/2}$ is $N(0, 1)$ and independent of $v$, which makes the funnel a bowl.


# %% mystnb={"figure": {"caption": "HMC in a funnel, with six steps of size 0.5. Upper: the last samples of 1,000 chains; grey, two standard deviations of $x$ on either side; left of the dotted line leapfrog is unstable. Lower: the samples of $v$ (line) and their exact density (grey).", "name": "fig-funnel"}, "image": {"alt": "Above, a grey funnel that opens to the right, filled with dots except for its narrow left end, where they end at about -4.5, somewhat beyond a dotted line at -2.8. Below, a histogram of v that follows a grey bell on the right, is a little above it in the middle, and breaks off on the left, where the bell goes on."}} tags=["hide-input"]
def funnel(theta):
    """Energy of v and x."""
    v, x = theta.T
    return v**2 / 18 + v / 2 + x**2 * torch.exp(-v) / 2


def funnel_gradient(theta):
    v, x = theta.T
    pull = x * torch.exp(-v)
    return torch.stack([v / 9 + (1 - x * pull) / 2, pull], -1)


step_size, num_steps = 0.5, 6
theta, generator = torch.zeros(1_000, 2), torch.Generator().manual_seed(6)
samples = [theta]
for _ in range(400):
    theta = hmc_step(funnel, funnel_gradient, theta, step_size, num_steps, generator)
    samples.append(theta)
samples = torch.stack(samples)
v = torch.linspace(-10, 10, 200)
figure, (upper, lower) = plt.subplots(2, 1, figsize=(4.8, 5), sharex=True)
width = 2 * torch.exp(v / 2)
upper.fill_between(v, -width, width, color=TRUTH, alpha=0.35, lw=0)
upper.plot(*samples[-1].T, ".", ms=2, color=COLOURS["HMC"])
upper.axvline(2 * torch.tensor(step_size / 2).log(), color="k", ls=":", lw=1)
upper.set(xlim=(-10, 10), ylim=(-20, 20), ylabel="$x$")
plot_density(lower, Gaussian(torch.tensor([[9.0]])), -10, 10)
edges = torch.linspace(-10, 10, 81)
plot_histogram(lower, samples[200:, :, 0], edges, color=COLOURS["HMC"], lw=1)
lower.set(xlabel="$v$", ylabel="density")
plt.show()

# %% tags=["hide-input"]
neck = (samples[200:, :, 0] < -4).double().mean(0)
error = neck.std() / 1_000**0.5
check("neck", neck.mean(), at_most(0.05), error=error, because="paths explode there")
right = torch.special.ndtr(torch.tensor(-4 / 3).double())
check("neck-true", right, kind="exact", digits=2)
accepted = (samples[201:] != samples[200:-1]).any(-1).double().mean()
check("acceptance", accepted, near(0.75, 0.1), digits=2)

# %% [markdown]
# **To remember:** resample the momentum, roll, and accept by the energy error.
#
# Every gradient and every energy here reads all the data.
# With a million examples that is the end of it, unless a few of them will do; {doc}`the next page </book/tutorial/minibatch_noise>` asks what a few examples say about the gradient.
#
# ## Change it
#
# * In the cell of {numref}`fig-correction` write `2.1` for `1.75` among the `sizes`, a step beyond the limit of stability: without rejections the chain runs away, and its last square leaves the figure, while HMC keeps the variance one.
# * In the visible cell of `hmc_step` write `torch.exp(new_energy - energy)` for `torch.exp(energy - new_energy)`, the wrong sign. Is the variance in the row now too large or too small? Look at {numref}`fig-correction` afterwards.
# * In the cell of {numref}`fig-funnel` write `0.1, 30` for `0.5, 6`: paths of the same length for five times as many gradients. The dotted line moves to the left, and the samples follow it, as far as it goes.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-hmc-write
#
# **Write it yourself.** ★★★
# Let the ball keep a part of its momentum: replace line 1 by $r \leftarrow \sqrt{1 - \phi^2}\,r + \phi\,N(0, 1)$, for a single leapfrog step of one chain, $\theta$ of shape `(1, d)`.
#
# ```python
# def refreshed_step(U, gradient, theta, r, step_size, phi, generator):
#     """Move from θ and r by one leapfrog step with partial refreshment."""
#     start = ...  # keep a part of r, draw the rest
#     ...  # one leapfrog step, and the energy gained
#     return ..., ...  # the next position and momentum, accepted or not
# ```
#
# The proof is about a move $S$ that ends with a flip.
# What must happen to the momentum after a rejection?
# Assignment 1 of {doc}`/book/practice/teaching` has you build the whole of HMC from its parts.
# ````
#
# ```{solution} ex-hmc-write
# :class: dropdown
#
# The step is $S = F \circ \Psi$, accepted or not, followed by one more flip $F$ in order to go on.
# After an acceptance that is $F \circ F \circ \Psi = \Psi$: the ball goes on.
# After a rejection only the last flip is left: the momentum that the step *started* with turns round ({prf:ref}`thm-partial-refreshment`).
#
#     fresh = torch.randn(theta.shape, generator=generator, dtype=theta.dtype)
#     start = (1 - phi**2) ** 0.5 * r + phi * fresh
#     new_theta, new_r = leapfrog(gradient, theta, start, step_size, 1)
#     gained = U(new_theta) - U(theta) + (new_r**2 - start**2).sum(-1) / 2
#     uniform = torch.rand(1, generator=generator, dtype=theta.dtype)
#     if uniform < torch.exp(-gained):
#         return new_theta, new_r
#     return theta, -start
#
# The next cell compares it with the package.
# ```


# %% tags=["hide-input"]
def refreshed_step(U, gradient, theta, r, step_size, phi, generator):
    """Move from θ and r by one leapfrog step with partial refreshment."""
    fresh = torch.randn(theta.shape, generator=generator, dtype=theta.dtype)
    start = (1 - phi**2) ** 0.5 * r + phi * fresh
    new_theta, new_r = leapfrog(gradient, theta, start, step_size, 1)
    gained = U(new_theta) - U(theta) + (new_r**2 - start**2).sum(-1) / 2
    uniform = torch.rand(1, generator=generator, dtype=theta.dtype)
    if uniform < torch.exp(-gained):
        return new_theta, new_r
    return theta, -start


kernel = HMC(0.4, 1, refreshment=0.5)
by_package = sample(kernel, ridge, first, num_samples=100, seed=5).samples
generator = torch.Generator().manual_seed(5)
theta, r = first, torch.randn(1, 2, generator=generator, dtype=torch.float64)
by_hand, target = [], (ridge.energy, ridge.gradient)
for _ in range(100):
    theta, r = refreshed_step(*target, theta, r, 0.4, 0.5, generator)
    by_hand.append(theta)
check(
    "refreshed",
    (torch.stack(by_hand) - by_package).abs().max(),
    at_most(1e-9),
    kind="exact",
    says="Largest difference between 100 samples of this function and of the package",
)

# %% [markdown]
# ```{exercise}
# :label: ex-hmc-nan
#
# **No energy.** ★
# A proposal has an infinite or undefined energy.
# What must the correction step do with it?
# ```
#
# ```{solution} ex-hmc-nan
# :class: dropdown
#
# Reject it.
# An infinite energy means a density of zero.
# An undefined one means that the path left the region where $U$ can be computed; the path back would meet the same trouble, so rejecting both ways keeps detailed balance.
# ```
#
# ```{exercise}
# :label: ex-hmc-resonance
#
# **Diagnose a run.** ★★
# Four chains of HMC in the bowl started at four different places.
# Nearly every proposal was accepted, and the four averages of $\theta$ agree.
# The four averages of $\theta^2$ do not, however long the chains run.
# Which setting is to blame, why, and which would have been best?
# ```
#
# ```{solution} ex-hmc-resonance
# :class: dropdown
#
# The length of the paths: it is half a turn.
# {eq}`eq-rotation` at $t = \pi$ is $(\theta, r) \mapsto (-\theta, -r)$, whatever the fresh momentum was, so each chain alternates between its start and the place opposite: the averages of $\theta$ are 0, and $\theta^2$ never changes.
# At $t = \frac\pi2$ and its odd multiples it is $\theta' = \pm r$, which owes nothing to $\theta$: a quarter of a turn is the best path.
# ```
#
# ## Further reading
#
# {cite:t}`duane1987` invented it for physics, and {cite:t}`neal1996` brought it to statistics, with neural networks.
# {cite:t}`neal2011` is the review to read first; {cite:t}`betancourt2017` explains it by geometry.
