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
# Page 4 of 12 · 23 minutes to read, 15 to play · Running: about 6 seconds
# ```
#
# ```{index} ! HMC, ! Hamiltonian Monte Carlo, ! typical set, ! resonance
# ```

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt
import torch

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, plot_contours, use_style
from booklib.page.play import play
from booklib.page.scoreboard import exact_variance, show_scoreboard
from sgmc import sample
from sgmc.integrators import leapfrog
from sgmc.kernels import HMC
from sgmc.other_kernels import RandomWalkMetropolis
from sgmc.targets import Gaussian

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Bad step sizes are tried on purpose below, and what sample remarks of them is known.
warnings.filterwarnings("ignore", message=".*(do not agree|were accepted|never moved)")

# %% [markdown]
# A sampler has to go where the probability is.
# Where is that, in many dimensions?
#
# Take a standard Gaussian in $d$ dimensions.
# Its density is largest at the mode, $\theta = 0$, but the squared distance of a sample from there, $\lvert\theta\rvert^2$, is a sum of $d$ independent squares, with mean $d$ and standard deviation $\sqrt{2d}$.
# For large $d$ the distance itself is therefore $\sqrt d$, give or take $1/\sqrt2$.
# Nearly all the probability lies in a thin shell, the *typical set*: nearer to the mode the density is larger, but there is hardly any room.
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
claim(
    "Probability that a standard Gaussian in 100 dimensions lies between 8 and 12 from "
    "its mode",
    high - low,
    at_least=0.99,
    because="the χ² distribution with 100 degrees of freedom",
    kind="exact",
)
claim(
    "Probability that it lies nearer than 5",
    mode,
    at_most=1e-8,
    because="the χ² distribution with 100 degrees of freedom",
    kind="exact",
)

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
# ({prf:ref}`thm-involution` has the argument for any reversible map.)
# In code, with mass one, it is a few lines:


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
# This answers the guess: acceptance does not deteriorate with the length of a path (here exactly, and in general as well as the shadow of page 3 is conserved).
# In the bowl $H$ is the sum of the conserved $\tilde H$ and of $\frac18\varepsilon^2\theta^2$, so the energy error of a path is $\frac18\varepsilon^2(\theta'^2 - \theta^2)$, however long it is: it swings, and does not grow.
# In $d$ dimensions the same holds with $\lvert\theta\rvert^2$, which on the shell differs between two points by about $2\sqrt d$: a hundred dimensions and $\varepsilon = 0.1$ give an energy error of about 0.025, all the way round.
# So what limits the length of a path is the gradients that it costs, and not rejections.
# A chain without rejections is not useless, though: in the bowl its bias is of order $\varepsilon^2$, and can be made small.
# With the gradient of a minibatch there will be no other choice.

# %% mystnb={"figure": {"caption": "Variance of $\\theta$ under HMC in the bowl, whose true variance is 1 (grey), against the step size; trajectories of length about 1.6. Without the correction step it follows the shadow's variance (dashed). The error bars are smaller than the symbols.", "name": "fig-correction"}, "image": {"alt": "Over the step size, dots of HMC at a variance of one throughout, and squares of HMC without correction on a dashed curve that rises from one to above four at a step of 1.75."}} tags=["hide-input"]
bowl = Gaussian.standard(1, dtype=torch.float64)
start = torch.zeros(10_000, 1, dtype=torch.float64)
sizes = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75]
measured = {}
for metropolis in (False, True):
    runs = [
        sample(
            HMC(h, round(1.6 / h), metropolis=metropolis),
            bowl,
            start,
            num_samples=10,
            warm_up=20,
            seed=2,
        )
        for h in sizes
    ]
    measured[metropolis] = torch.tensor(
        [run.mean_and_standard_error(lambda x: x**2) for run in runs]
    )

figure, axes = plt.subplots(figsize=(5.2, 3.2))
axes.axhline(1, color=TRUTH, zorder=0)
fine = torch.linspace(0.02, 1.78, 200)
axes.plot(
    fine, 1 / (1 - fine**2 / 4), "--", lw=1, color=COLOURS["HMC without correction"]
)
for metropolis, name, marker in (
    (False, "HMC without correction", "s"),
    (True, "HMC", "o"),
):
    axes.plot(
        sizes, measured[metropolis][:, 0], marker, color=COLOURS[name], label=name
    )
axes.set(xlabel=r"step size $\varepsilon$", ylabel=r"variance of $\theta$", ylim=(0, 5))
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# HMC's own row of the scoreboard is 1, at any step size, and that is what `hmc_step` gives at $\varepsilon = 0.1$ with 50 steps a sample.

# %% tags=["hide-input"]
generator, squares = torch.Generator().manual_seed(4), []
theta = torch.zeros(10_000, 1, dtype=torch.float64)
for _ in range(24):
    theta = hmc_step(bowl.energy, bowl.gradient, theta, 0.1, 50, generator)
    squares.append(theta**2)
of_chains = torch.stack(squares[12:]).mean(0)
claim(
    "Measured variance of HMC in the bowl",
    of_chains.mean(),
    near=exact_variance("hmc"),
    standard_error=of_chains.std() / 100,
    because="the theorem above; 10,000 chains",
)
for metropolis, name, exact in ((False, "without", 4 / 3), (True, "with", 1.0)):
    value, error = measured[metropolis][sizes.index(1.0)]
    claim(
        f"Measured variance at ε = 1 {name} rejections",
        value,
        near=round(exact, 6),
        standard_error=error,
        because="10,000 independent chains",
    )
precise = Gaussian.correlated(0.95, dtype=torch.float64)
first = torch.tensor([[-1.6, -1.2]], dtype=torch.float64)
by_package = sample(HMC(0.3, 5), precise, first, num_samples=30, seed=5).samples
generator = torch.Generator().manual_seed(5)
torch.randn(2, generator=generator, dtype=torch.float64)  # at the start; not used
theta, by_hand = first, []
for _ in range(30):
    theta = hmc_step(precise.energy, precise.gradient, theta, 0.3, 5, generator)
    by_hand.append(theta)
claim(
    "Largest difference between 30 samples of the function above and of the package",
    (torch.stack(by_hand) - by_package).abs().max(),
    at_most=1e-9,
    because="the same rule and the same random numbers; rounding",
    kind="exact",
)

# %% [markdown]
# ## How far to go
#
# Two numbers are to be chosen.
# The *step size* trades acceptance for distance: near the limit $\varepsilon < 2s$, with $s$ the standard deviation of the narrowest direction, most paths are rejected, and far below it gradients are wasted.
# An acceptance between 0.6 and 0.9 is a good aim {cite:p}`beskos2013,betancourt2014`.
# The *number of steps* should make a quarter of a turn in the widest direction, of standard deviation $\ell$; that takes about $\ell/s$ steps. (These rules are for Gaussians, and up to constants.)
# With fewer, HMC is a random walk again; with more, the ball comes back.
#
# There is a trap in coming back.
# After a time $\varepsilon L = \pi$ the ball in the bowl is at $-\theta$, whatever its momentum was.
# The chain then hops from side to side, and $\theta^2$ never changes: HMC keeps its target without ever reaching it.
# This is *resonance*, and a random number of steps cures it.
# The number must be drawn before the path begins, so that the proof holds for each number ({prf:ref}`thm-random-steps`).
#
# How much is at stake can be computed.
# In the bowl $L$ steps turn the ball by the angle $L\omega$, with $\omega = 2\arcsin\frac\varepsilon2$ for leapfrog ({ref}`ex-frequency`), so the mean of $\theta'$ given $\theta$ is $\theta\cos L\omega$, as if the exact ball had turned that far.
# Ignore the rejections, which are rare at small steps. A sample then keeps the part $\cos L\omega$ of $\theta$, and $\theta$ has the autocorrelations $\rho_k = a^k$ with $a = E\cos L\omega$, the mean over the random $L$. In the same way $\theta^2 - 1$ keeps the part $\cos^2L\omega$, so $\theta^2$ has $\rho_k = b^k$ with $b = E\cos^2L\omega$. (It is there because at the resonance $\theta$ only changes its sign.)
# The autocorrelation time {eq}`eq-tau` is then $(1 + \rho_1)/(1 - \rho_1)$.
# {numref}`fig-resonance` has the effective samples per gradient for the slower of the two: with a fixed number they fall to nothing at $\varepsilon L = \pi$, with a random one they do not. At its best length the fixed number is a little better; but the best length has to be known.


# %% mystnb={"figure": {"caption": "Effective samples per gradient in the bowl, for the slower of $\\theta$ and $\\theta^2$, against the number of steps; $\\varepsilon = 0.196$, exact but for rejections. Random: uniform between $\\frac12L$ and $\\frac32L$. Grey: $\\varepsilon L = \\pi$.", "name": "fig-resonance"}, "image": {"alt": "Two lines over the number of steps, on a logarithmic scale. Both rise to a top near eight steps. At sixteen the line of the fixed number falls by a factor of many thousands; that of the random number declines gently."}} tags=["hide-input"]
def per_gradient(num_steps, spread, step_size=0.196):
    """Effective samples per gradient, with L uniform within ± spread · num_steps."""
    steps = torch.arange(
        round(num_steps * (1 - spread)), round(num_steps * (1 + spread)) + 1
    )
    a = (steps * 2 * torch.tensor(step_size / 2, dtype=torch.float64).arcsin()).cos()
    correlation = torch.maximum(a.mean(), (a**2).mean())
    return float((1 - correlation) / (1 + correlation) / (num_steps + 1))


numbers = range(2, 21)
worth = {
    name: [per_gradient(number, spread) for number in numbers]
    for name, spread in (("fixed", 0.0), ("random", 0.5))
}
figure, axes = plt.subplots(figsize=(5.2, 3.0))
for name, style in (("fixed", "o-"), ("random", "s--")):
    colour, label = COLOURS["HMC"], f"{name} number of steps"
    axes.semilogy(numbers, worth[name], style, ms=4, color=colour, label=label)
axes.axvline(torch.pi / 0.196, color=TRUTH, lw=1, zorder=0)
axes.set(xlabel="leapfrog steps $L$", ylabel="eff. samples per gradient")
axes.set_xticks(range(2, 21, 2))
axes.legend(loc="lower left")
plt.show()

# %% tags=["hide-input"]
resonance = numbers.index(16)  # 16 × 0.196 ≈ π
claim(
    "Effective samples per gradient at the resonance, random over fixed",
    worth["random"][resonance] / worth["fixed"][resonance],
    at_least=1e6,
    because="a² is 1 − 2·10⁻⁷ there; exact without rejections",
    kind="exact",
)
claim(
    "Effective samples per gradient at the best lengths, fixed over random",
    max(worth["fixed"]) / max(worth["random"]),
    near=1.33,
    within=0.05,
    because="exact without rejections",
    kind="exact",
)
draws = sample(
    HMC(0.196, 16, jitter=0.5),
    bowl,
    bowl.exact_samples(400, torch.Generator().manual_seed(1)),
    num_samples=800,
    seed=3,
)
before, after = draws.samples[:-1, :, 0], draws.samples[1:, :, 0]
products = (before**2 - 1) * (after**2 - 1) / 2
angles = torch.arange(8, 25) * 2 * torch.tensor(0.098, dtype=torch.float64).arcsin()
claim(
    "Measured correlation of θ² with the next θ² for a random number near 16",
    products.mean(),
    near=float((angles.cos() ** 2).mean()),
    within=0.1,
    because="the mean of a²; 800 numbers of steps, a standard error of 0.015",
)

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
# How does HMC compare with its relatives?
# Let a target be narrow, of standard deviation $s$, in several directions and wide, of standard deviation $\ell = s\sqrt\kappa$, in another.
# HMC keeps its course along the valley, in steps of about $s$.
# A random walk must take steps of about $s$ too, and needs $(\ell/s)^2 = \kappa$ of them to diffuse over the length $\ell$.
# So does *Langevin dynamics*, which is HMC with $L = 1$: a step downhill and noise, guided by the gradient, but with a new direction at every step.
#
# | | steps from end to end | step size in $d$ equal dimensions |
# | --- | --- | --- |
# | random walk | $\kappa$ | $d^{-1/2}$ |
# | Langevin ($L = 1$, with rejections) | $\kappa$ | $d^{-1/6}$ |
# | HMC | $\sqrt\kappa$ | $d^{-1/4}$ |
#
# (Langevin's step shrinks a little more slowly with the dimension, but it needs the square of the number of steps.)
# {doc}`/book/further/trajectories` derives the table and measures it.
# The same page treats the mass matrix $M$, which can make all directions alike and $\kappa$ small, and *partial refreshment*, in which the ball keeps a part of its momentum from one sample to the next.
# The momentum then decays as if by friction, and noise makes up for it: page 8 will take that road.
#
# **To remember:** resample the momentum, roll, and accept by the energy error.
#
# Every gradient and every energy here reads all the data.
# With a million examples that is the end of it, unless a few of them will do; {doc}`the next page </book/tutorial/minibatch_noise>` asks what a few examples say about the gradient.
#
# ## Change it
#
# * In the `sizes` of the figure on rejections write `2.1` for `1.75`, a step beyond the limit of stability: without rejections the chain runs away, and its last square leaves the figure, while HMC keeps the variance one.
# * Set `(("fixed", 0.0), ("random", 0.5))` to `(("fixed", 0.0), ("random", 0.1))`. At the resonance the paths now have 14 to 18 steps, all of them bad, and the claim on the resonance shows ✗.
# * In `hmc_step` write `torch.exp(new_energy - energy)` for `torch.exp(energy - new_energy)`, the wrong sign. At $\varepsilon = 0.1$ the variance hardly shows it, because nearly all is accepted; the comparison with the package shows ✗.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-hmc-write
#
# **Write it yourself.**
# Let the ball keep a part of its momentum: replace line 1 by $r \leftarrow \sqrt{1 - \phi^2}\,r + \phi\,N(0, 1)$, for a single leapfrog step and one chain with the gradient `precision @ theta`.
#
# ```python
# def refreshed_step(theta, r, step_size, phi, generator):
#     """Move from θ and r by one leapfrog step with partial refreshment."""
#     start = ...  # keep a part of r, draw the rest
#     ...  # one leapfrog step, and the energy gained
#     return ..., ...  # the next position and momentum, accepted or not
# ```
#
# The proof is about a move $S$ that ends with a flip.
# What must happen to the momentum after a rejection?
# (Assignment 1 of {doc}`/book/practice/teaching` has you build the whole of HMC from its parts.)
# ````
#
# ```{solution} ex-hmc-write
# :class: dropdown
#
# The code is in the next cell.
# The step is the move $S$, followed by one more flip in order to go on.
# An accepted state is flipped twice, that is, not at all; after a rejection the momentum that the step *started* with turns round ({prf:ref}`thm-partial-refreshment`).
# ```


# %% tags=["hide-input"]
def refreshed_step(theta, r, step_size, phi, generator):
    """Move from θ and r by one leapfrog step with partial refreshment."""
    precision = precise.precision
    fresh = torch.randn(2, generator=generator, dtype=torch.float64)
    start = (1 - phi**2) ** 0.5 * r + phi * fresh
    new_r = start - step_size / 2 * precision @ theta
    new_theta = theta + step_size * new_r
    new_r = new_r - step_size / 2 * precision @ new_theta
    gained = new_theta @ precision @ new_theta + new_r @ new_r
    gained = (gained - theta @ precision @ theta - start @ start) / 2
    if torch.rand((), generator=generator, dtype=torch.float64) < torch.exp(-gained):
        return new_theta, new_r
    return theta, -start


by_package = sample(
    HMC(0.4, 1, refreshment=0.5), precise, first, num_samples=100, seed=5
).samples[:, 0]
generator = torch.Generator().manual_seed(5)
theta, r = first[0], torch.randn(2, generator=generator, dtype=torch.float64)
by_hand = []
for _ in range(100):
    theta, r = refreshed_step(theta, r, 0.4, 0.5, generator)
    by_hand.append(theta)
claim(
    "Largest difference between 100 samples of this function and of the package",
    (torch.stack(by_hand) - by_package).abs().max(),
    at_most=1e-9,
    because="the same rule and the same random numbers; rounding",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-hmc-nan
#
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
# Show that exact dynamics for a time $\pi$ in the bowl gives a chain whose $\theta^2$ never changes.
# For which other times is the new $\theta$ independent of the old one?
# ```
#
# ```{solution} ex-hmc-resonance
# :class: dropdown
#
# {eq}`eq-rotation` at $t = \pi$ is $(\theta, r) \mapsto (-\theta, -r)$, whatever the fresh momentum was.
# At $t = \frac\pi2$ and its odd multiples it is $\theta' = \pm r$, which owes nothing to $\theta$: a quarter of a turn is the best path.
# ```
#
# ## Further reading
#
# {cite:t}`duane1987` invented it for physics, and {cite:t}`neal1996` brought it to statistics, with neural networks.
# {cite:t}`neal2011` is the review to read first; {cite:t}`betancourt2017` explains it by geometry.
