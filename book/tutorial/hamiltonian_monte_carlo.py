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
# Page 4 of 12 · 30 minutes to read, 15 to play · Running: about 8 seconds
# ```
#
# ```{index} ! HMC, ! Hamiltonian Monte Carlo
# ```

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt
import torch

from booklib.claims import claim
from booklib.figures import COLOURS, TRUTH, use_style
from booklib.play import play
from booklib.scoreboard import show_scoreboard
from sgmc import sample
from sgmc.kernels import HMC
from sgmc.targets import Gaussian

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Bad step sizes are tried on purpose, and chains are many and short.
warnings.filterwarnings(
    "ignore", message=".*(do not agree|were accepted|never moved|too wide)"
)

# %% [markdown]
# Where is the probability of a standard Gaussian in 100 dimensions?
# Its density is largest at the mode, but $\lvert\theta\rvert^2$ is a sum of 100 independent squares, so $\lvert\theta\rvert$ is close to $\sqrt{100} = 10$: nearly all the probability lies in a thin shell around the mode, because inside the shell there is hardly any room.
# A sampler has to get about *in* this shell, and {numref}`fig-typical-set` shows two ways of leaving a point of it.
#
# A random walk goes straight on. In many dimensions its direction $r$ is nearly at a right angle to $\theta$, so $\lvert\theta + tr\rvert^2 \approx d + t^2d$: the black paths leave the shell at once, into places of low density.
# A ball that rolls in the bowl goes to $\theta\cos t + r\sin t$, by {eq}`eq-rotation` in every coordinate, and $d\cos^2t + d\sin^2t = d$. The blue paths stay in the shell: the force $-\nabla U$, which points to the mode, bends them just enough. And after a quarter of a turn the ball is at $r$, where every coordinate is new.
#
# *A guess before you read on.*
# A computer's ball does not conserve its energy exactly. Suppose that we accept the end of a path only now and then, so that everything is right. How far may one move in 100 dimensions and still be accepted?

# %% mystnb={"figure": {"caption": "A standard Gaussian in 100 dimensions: distance from the mode on twenty paths that leave a sample $\\theta$ in random directions $r$, straight, $\\theta + tr$ (black), and rolling, $\\theta\\cos t + r\\sin t$ (blue). Grey: the shell, $\\sqrt d \\pm 2$.", "name": "fig-typical-set"}, "image": {"alt": "Over the time from 0 to pi, twenty black curves that rise from the grey band at once, and twenty blue ones that stay in it."}} tags=["hide-input"]
generator = torch.Generator().manual_seed(0)
there, direction = torch.randn(2, 20, 100, generator=generator)
time = torch.linspace(0, torch.pi, 101)[:, None, None]
figure, axes = plt.subplots(figsize=(5.2, 3.2))
axes.axhspan(8, 12, color=TRUTH, alpha=0.35, lw=0)
for points, name in (
    (there + time * direction, "random walk"),
    (there * time.cos() + direction * time.sin(), "HMC"),
):
    axes.plot(time[:, 0, 0], points.norm(dim=-1), color=COLOURS[name], lw=0.7)
axes.set(xlabel="time $t$", ylabel="distance from the mode", ylim=(0, 22))
axes.set_xticks([0, torch.pi / 2, torch.pi], ["0", "π/2", "π"])
plt.show()

# %% tags=["hide-input"]
half_dim, squares = torch.tensor(50.0).double(), torch.tensor([8, 12]).double() ** 2
low, high = torch.special.gammainc(half_dim.expand(2), squares / 2)
claim(
    "Probability that a standard Gaussian in 100 dimensions lies between 8 and 12 from "
    "its mode",
    high - low,
    at_least=0.99,
    because="the distribution χ² with 100 degrees of freedom",
    kind="exact",
)

# %% [markdown]
# The scoreboard so far:

# %% tags=["hide-input"]
show_scoreboard(4)

# %% [markdown]
# ## From a density to a ball
#
# Let the target be $\pi(\theta) \propto e^{-U(\theta)}$. Take minus its logarithm, $U$, as a landscape. Invent a momentum $r$, independent of the position, and look at the joint density
#
# $$
# \pi(\theta, r) \propto e^{-H(\theta, r)} = e^{-U(\theta)}\,e^{-\frac12r^\top M^{-1}r}.
# $$ (eq-joint)
#
# It is a product. So its marginal in $\theta$ is the target: sample $(\theta, r)$ and forget $r$. Its marginal in $r$ is $N(0, M)$, which we can draw from at once.
# Two moves leave it invariant:
#
# * *Draw $r \sim N(0, M)$ afresh*, because $r$ is independent of $\theta$.
# * *Follow Hamilton's equations* for some time $t$. If $z = (\theta, r)$ has the density $e^{-H}/Z$, then $\Phi_t(z)$ has at $w$ the density $\frac1Ze^{-H(\Phi_t^{-1}w)}\,\lvert\det D\Phi_t^{-1}\rvert = \frac1Ze^{-H(w)}$, because the flow keeps energy and volume ({prf:ref}`thm-flow`). Probability is carried along lines of equal density without being squeezed.
#
# The first changes the energy and stays in place, the second goes far at constant energy. Neither would do alone.
#
# A computer's {term}`leapfrog` keeps volume and is reversible, but it does not quite keep $H$. A correction step like that of {cite:t}`metropolis1953` repairs it {cite:p}`duane1987`.
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
# Let $U$ be twice continuously differentiable, and $\int e^{-U} < \infty$. For any $\varepsilon$, $L$ and $M$ the chain of {prf:ref}`alg-hmc` leaves $\pi(\theta) \propto e^{-U(\theta)}$ invariant.
# ```
#
# ```{prf:proof}
# Step 1 leaves $\pi(\theta, r)$ invariant. For steps 2 and 3 let $S = F \circ \Psi^L$ be $L$ leapfrog steps followed by the flip $F(\theta, r) = (\theta, -r)$. Leapfrog is reversible, so $S \circ S$ is the identity, and $\lvert\det DS\rvert = 1$.
# Accept $z' = S(z)$ with probability $a(z) = \min(1, \pi(z')/\pi(z))$. For sets $A$ and $B$ the probability flow from $A$ to $B$ by accepted moves is
#
# $$
# \begin{aligned}
# &\int \mathbf 1_A(z)\,\mathbf 1_B(Sz)\,\min\bigl(\pi(z), \pi(Sz)\bigr)\,dz\\
# &\quad= \int \mathbf 1_A(Sw)\,\mathbf 1_B(w)\,\min\bigl(\pi(Sw), \pi(w)\bigr)\,dw,
# \end{aligned}
# $$
#
# where $w = Sz$, so that $z = Sw$ and $dz = dw$. The right side is the flow from $B$ to $A$: detailed balance. A rejection moves no probability.
# The algorithm accepts with the same probability, because $H$ is even in $r$: $H(Sz) = H(\Psi^Lz)$. It leaves out the flip, which nobody sees, because $r$ is drawn afresh.
# ```
#
# The proof used volume and reversibility of the *integrator*, exactly, and its energy error not at all: a bad integrator is only rejected more often ({prf:ref}`thm-involution` strips the argument to its bones).
# It says that HMC stays at the target, not that it gets there; we shall meet a choice of $\varepsilon$ and $L$ with which it does not.
#
# In code, for one chain and mass one, on a Gaussian in two dimensions with correlation 0.95:

# %%
precise = Gaussian.correlated(0.95, dtype=torch.float64)
precision = precise.precision  # the inverse of the covariance


def U(theta):
    return theta @ precision @ theta / 2


def hmc_step(theta, step_size, num_steps, generator):
    """Move from θ, a tensor (2,), by one step of Hamiltonian Monte Carlo."""
    r = torch.randn(2, generator=generator, dtype=torch.float64)
    new_theta, new_r = theta, r
    for _ in range(num_steps):  # leapfrog; the gradient of U is precision @ θ
        new_r = new_r - step_size / 2 * precision @ new_theta
        new_theta = new_theta + step_size * new_r
        new_r = new_r - step_size / 2 * precision @ new_theta
    gained = U(new_theta) + new_r @ new_r / 2 - U(theta) - r @ r / 2
    uniform = torch.rand((), generator=generator, dtype=torch.float64)
    return new_theta if uniform < torch.exp(-gained) else theta


# %% tags=["hide-input"]
first = torch.tensor([[-1.6, -1.2]], dtype=torch.float64)
by_package = sample(HMC(0.3, 5), precise, first, num_samples=30, seed=5).samples[:, 0]
generator = torch.Generator().manual_seed(5)
torch.randn(2, generator=generator, dtype=torch.float64)  # at the start; not used
theta, by_hand = first[0], []
for _ in range(30):
    theta = hmc_step(theta, 0.3, 5, generator)
    by_hand.append(theta)
claim(
    "Largest difference between 30 samples of the dozen lines and of the package",
    (torch.stack(by_hand) - by_package).abs().max(),
    at_most=1e-9,
    because="the same rule and the same random numbers; rounding",
    kind="exact",
)

# %% [markdown]
# ## What the acceptance step corrects
#
# In the bowl leapfrog keeps the shadow $\tilde H = \tfrac12(1 - \tfrac{\varepsilon^2}4)\theta^2 + \tfrac12r^2$ exactly, and $H$ only nearly ({prf:ref}`thm-shadow`).
# Without the acceptance step both moves keep $e^{-\tilde H}$, and the chain samples the shadow, with the variance {eq}`eq-uncorrected-variance`
# (for any number of steps but at a resonance, where the end does not depend on $r$).
# This was the row of the last page, 1.0025 at $\varepsilon = 0.1$; at $\varepsilon = 1$ it is a third too wide.
# With the acceptance step the variance is 1, for every step size ({numref}`fig-correction`): this page's row.
# A chain without it is not useless, since its error is of order $\varepsilon^2$. With a stochastic gradient there will be no other choice.

# %% mystnb={"figure": {"caption": "Variance of $\\theta$ under HMC in the bowl, whose true variance is 1 (grey), against the step size; trajectories of length about 1.6. Without the acceptance step it follows the shadow's variance (dashed).", "name": "fig-correction"}, "image": {"alt": "Over the step size, dots of HMC at a variance of one throughout, and squares of HMC without correction on a dashed curve that rises from one to above four at a step of 1.75."}} tags=["hide-input"]
bowl = Gaussian.standard(1, dtype=torch.float64)
start = bowl.exact_samples(10_000, torch.Generator().manual_seed(1))
sizes = [0.1, 0.5, 1.0, 1.5, 1.75]
measured = {
    (metropolis, h): sample(
        HMC(h, round(1.6 / h), metropolis=metropolis),
        bowl,
        start,
        num_samples=10,
        warm_up=20,
        seed=2,
    ).mean_and_standard_error(lambda x: x**2)
    for metropolis in (False, True)
    for h in sizes
}
figure, axes = plt.subplots(figsize=(5.2, 3.0))
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
fine, grey_blue = torch.linspace(0.02, 1.78, 200), COLOURS["HMC without correction"]
axes.plot(fine, 1 / (1 - fine**2 / 4), "--", lw=1, color=grey_blue)
for (metropolis, h), (value, _) in measured.items():
    colour = COLOURS["HMC"] if metropolis else grey_blue
    axes.plot(h, float(value), "o" if metropolis else "s", color=colour)
axes.text(0.55, 1.9, "never rejected", color=grey_blue)
axes.text(1.05, 0.45, "HMC", color=COLOURS["HMC"])
axes.set(xlabel=r"step size $\varepsilon$", ylabel=r"variance of $\theta$", ylim=(0, 5))
plt.show()

# %% tags=["hide-input"]
show_scoreboard(5)
claim(
    "Largest distance of the ten measured variances from 1 and from 1/(1 − ε²/4), in "
    "standard errors",
    max(
        abs(float(value) - (1 if metropolis else 1 / (1 - h**2 / 4))) / float(error)
        for (metropolis, h), (value, error) in measured.items()
    ),
    at_most=5,
    because="10,000 chains each; exceeded by chance once in 170,000 times",
)

# %% [markdown]
# ## How far, and how often accepted?
#
# Two numbers are to be chosen, the step size $\varepsilon$ and the number of steps $L$.
# Too few steps make a random walk, too many come back.
# In the bowl a trajectory of time $\varepsilon L = \pi$ ends at $-\theta$: the chain hops from side to side, and $\theta^2$ never changes. That is *resonance*, at which HMC keeps its target without ever reaching it.
# A random number of steps, drawn before the trajectory begins, is the cure ({prf:ref}`thm-random-steps`); {numref}`fig-tuning` shows both.


# %% mystnb={"figure": {"caption": "Effective samples of $\\theta^2$ per gradient in the bowl, $\\varepsilon = 0.196$, against the number of steps: fixed (solid), and uniform between $\\tfrac12L$ and $\\tfrac32L$ (dashed). Grey: $\\varepsilon L = \\pi$.", "name": "fig-tuning"}, "image": {"alt": "Two curves on a logarithmic scale with their tops near eight steps. At sixteen steps, on the grey line, the solid one falls by a factor of hundreds; the dashed one stays level."}} tags=["hide-input"]
def efficiency(num_steps, jitter):
    """Effective samples of θ² per gradient: the variance of independent samples over
    that of a chain's average."""
    start = bowl.exact_samples(400, torch.Generator().manual_seed(0))
    kernel = HMC(0.196, num_steps, jitter=jitter)
    draws = sample(kernel, bowl, start, num_samples=100, seed=0)
    squares = draws.samples[..., 0] ** 2
    gradients = float(draws.statistics["num_gradients"][-1, 0])
    return float(2 / squares.mean(0).var() / gradients)


lengths = [1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]
by_length = {jitter: [efficiency(L, jitter) for L in lengths] for jitter in (0.0, 0.5)}
figure, axes = plt.subplots(figsize=(5.2, 3.0))
axes.axvline(torch.pi / 0.196, color=TRUTH, zorder=0)
for jitter, style in ((0.0, "o-"), (0.5, "s--")):
    axes.semilogy(lengths, by_length[jitter], style, ms=4, color=COLOURS["HMC"])
axes.set(xlabel="leapfrog steps $L$", ylabel="effective samples per gradient")
axes.set_xticks(range(0, 21, 4))
plt.show()

# %% tags=["hide-input"]
resonance = lengths.index(16)  # 16 × 0.196 ≈ π
claim(
    "Effective samples per gradient at the resonance, with jitter over without",
    by_length[0.5][resonance] / by_length[0.0][resonance],
    at_least=30,
    because="without jitter θ² hardly changes",
)

# %% [markdown]
# Now the guess.
# In a bowl each coordinate's energy error is $\tfrac18\varepsilon^2(\theta'^2 - \theta^2)$, because the shadow is kept.
# The errors of $d$ coordinates add up to a variance of the order of $d\,\varepsilon^4$, so the acceptance stays if $\varepsilon$ shrinks as $d^{-1/4}$ ({ref}`ex-hmc-dimension`).
# In 100 dimensions that is only a third of the step in one, and with some five steps more the ball still goes a quarter of a turn, to the other end of the target.
# No other simple sampler comes near:
#
# | | step size, in units of the narrowest direction | steps to cross a valley $\sqrt\kappa$ times as long as it is wide |
# | --- | --- | --- |
# | HMC | $d^{-1/4}$ | $\sqrt\kappa$ |
# | Langevin ($L = 1$) | $d^{-1/6}$ | $\kappa$ |
# | random walk | $d^{-1/2}$ | $\kappa$ |
#
# HMC keeps its course, the others forget it after each step.
# Aim at an acceptance between 0.6 and 0.9, make the number of steps random, and give a mass $M \approx \Sigma^{-1}$, the precision of the target, which makes all directions alike ({ref}`ex-mass`).
# {doc}`/book/further/hmc_tuning` measures all of this, and two relatives of HMC: Langevin's proposal, and momenta of which only a part is refreshed.
#
# **To remember:** resample the momentum, roll, accept by the energy error.
# The proof used that the integrator is reversible and keeps volume, exactly; its energy error costs acceptance and nothing else.
#
# Every gradient here reads all the data, and so does every energy.
# With a million examples that is the end of it. {doc}`The next page </book/tutorial/minibatch_noise>` asks what a part of the data can tell.
#
# ## Change it
#
# * In `sizes` set `1.75` to `2.1`, a step beyond the limit of stability. Without the acceptance step the chain runs away, and its claim shows ✗; the corrected chain keeps the variance 1.
# * In `efficiency` set `jitter=jitter` to `jitter=jitter / 5`: at the resonance the trajectories have 15, 16 or 17 steps, all of them bad, and the claim shows ✗.
# * In `hmc_step` set `torch.exp(-gained)` to `torch.exp(gained)`, the commonest mistake: the function differs from the package, and the claim shows ✗.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-hmc-write
#
# **Write it yourself.** Add partial refreshment to `hmc_step`, for a single leapfrog step.
#
# ```python
# def refreshed_step(theta, r, step_size, phi, generator):
#     """Move from θ and r by one leapfrog step with partial refreshment."""
#     start = ...  # keep a part of r, draw the rest
#     ...  # one leapfrog step, and the energy gained
#     return ..., ...  # the next position and momentum, accepted or not
# ```
#
# What happens to the momentum after a rejection?
# Assignment 1 of {doc}`/book/practice/teaching` has you build the whole of HMC from its parts.
# ````
#
# ```{solution} ex-hmc-write
# :class: dropdown
#
# The code is in the next cell. After a rejection the momentum that the step *started* with turns round.
# ```


# %% tags=["hide-input"]
def refreshed_step(theta, r, step_size, phi, generator):
    """Move from θ and r by one leapfrog step with partial refreshment."""
    fresh = torch.randn(2, generator=generator, dtype=torch.float64)
    start = (1 - phi**2) ** 0.5 * r + phi * fresh
    new_r = start - step_size / 2 * precision @ theta
    new_theta = theta + step_size * new_r
    new_r = new_r - step_size / 2 * precision @ new_theta
    gained = U(new_theta) + new_r @ new_r / 2 - U(theta) - start @ start / 2
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
    "Largest difference between 100 samples with partial refreshment by hand and by the "
    "package",
    (torch.stack(by_hand) - by_package).abs().max(),
    at_most=1e-9,
    because="the same rule and the same random numbers; rounding",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-hmc-friction
#
# A friction $C$ takes $\varepsilon C$ of the momentum away in a step, with $M = 1$. Which friction does a partial refreshment by $\phi$ stand for, and which noise goes with it?
# ```
#
# ```{solution} ex-hmc-friction
# :class: dropdown
#
# $1 - \varepsilon C = \sqrt{1 - \phi^2} \approx 1 - \phi^2/2$, so $C \approx \phi^2/(2\varepsilon)$. The noise has the variance $\phi^2 \approx 2C\varepsilon$: that is the noise which {doc}`/book/tutorial/sghmc` injects. The exact relation is $C = (1 - \sqrt{1 - \phi^2})/\varepsilon$. With $\varepsilon = 0.2$ and $\phi = 0.5$ it is 0.67, so the momentum lasts for a time of about $1/C \approx 1.5$, as long as a good trajectory.
# ```
#
# ```{exercise}
# :label: ex-hmc-dimension
#
# On a $d$-dimensional standard Gaussian the energy error $\Delta$ of a trajectory of a given time is a sum of $d$ independent terms. How must $\varepsilon$ shrink with $d$ to keep the acceptance? Use $E[e^{-\Delta}] = 1$, which is {prf:ref}`thm-energy-error`.
# ```
#
# ```{solution} ex-hmc-dimension
# :class: dropdown
#
# Because the shadow is kept, a coordinate's error is $\tfrac{\varepsilon^2}8(\theta'^2 - \theta^2)$, of order $\varepsilon^2$, and its variance is of order $\varepsilon^4$. Expanding $E[e^{-\Delta}] = 1$ to the second order shows that its mean is half its variance. The sum is nearly Gaussian, with mean and variance of order $d\varepsilon^4$: the acceptance is kept if that is, $\varepsilon \propto d^{-1/4}$ {cite:p}`beskos2013`.
# ```
#
# ## Further reading
#
# {cite:t}`duane1987` invented it, {cite:t}`neal1996` brought it to statistics and {cite:t}`neal2011` reviews it, {cite:t}`betancourt2017` explains it by geometry.
