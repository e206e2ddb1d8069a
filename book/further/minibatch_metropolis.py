# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Can rejections correct minibatch noise?
#
# ```{div} page-head
# Level: second course · Reading: about 33 minutes, without the exercises · Running: about 5 seconds
# ```
#
# ```{index} ! AMAGOLD, ! Metropolis correction with minibatches, ! austerity, ! acceptance; with minibatches
# ```

# %%
import torch

from booklib.page.claims import check, near

# %% tags=["hide-input"]
import itertools
import math
import warnings

import matplotlib.pyplot as plt

from booklib.page.claims import at_most
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.scoreboard import exact_variance
from sgmc import sample
from sgmc.kernels import NaiveSGHMC
from sgmc.other_kernels import AMAGOLD
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
warnings.filterwarnings("ignore", message=".*were accepted")  # that is the subject

# %% [markdown]
# HMC corrects its paths by rejecting some of them.
# Can rejections correct the noise of minibatches, too, without a noise estimate, and at what price?
#
# They can, exactly, at every step size. Take palindromic steps (half a drift, a kick whose friction acts on $(r + r')/2$, half a drift), and accept the end of the path by the *work of its own minibatch gradients*.
# But the price grows with the dimension. With paths of a quarter of a swing and the best step, an independent $\theta$ or $\theta^2$ costs, in the unit of {doc}`the price board </book/further/price>`:
#
# | dimension $d$ | passes for an independent sample |
# | --: | --: |
# | 1 | {c}`price-1` |
# | 10 | {c}`price-10` |
# | 100 | {c}`price-100` |
#
# These are numbers of the page's formula, which is for many directions; in one dimension it is an upper estimate.
# For a $\theta$ SGLD pays 100 for an error of one per cent, and SGHMC with $\hat B = B$ pays 3, in any dimension if all curvatures are alike; for a $\theta^2$ both pay half.
#
# The method is *AMAGOLD* {cite:p}`zhang2020amagold`, here for the bowl. The page needs page 12 of the tutorial, {doc}`an elective </book/tutorial/sgnuts>`: the density of a palindromic step over that of the same step backwards is $e^W$, and the work $W$ uses only the vector that is the gradient at $y$.


# %%
def amagold(theta, step_size, friction, num_steps, generator):
    """The end of a path, or its start where it is rejected, and the path's work."""
    noises = torch.randn(num_steps, *theta.shape, generator=generator)
    xis = torch.randn(num_steps, *theta.shape, generator=generator)
    r = torch.randn(theta.shape, generator=generator)
    start, work, half = theta, 0, step_size * friction / 2
    for noise, xi in zip(noises, xis, strict=True):
        y = theta + step_size / 2 * r
        gradient = y + 2 * noise  # ∇Ũ(y), with the noise N(0, 4)
        kick = (2 * friction * step_size) ** 0.5 * xi - step_size * gradient
        after = ((1 - half) * r + kick) / (1 + half)
        moved = step_size / 2 * (r + after)  # θ' − θ
        work = work - gradient * moved
        theta, r = theta + moved, after
    work = work + theta**2 / 2 - start**2 / 2  # the only energies
    accepted = torch.rand(theta.shape, generator=generator) < torch.exp(-work)
    return torch.where(accepted, theta, start), work


generator, works, variances = torch.Generator().manual_seed(1), {}, {}
for name, friction in (("naive-rejected", 0.0), ("amagold", 0.5)):
    theta, squares, works[name] = torch.randn(2_000, 1, generator=generator), [], []
    for _ in range(100):
        theta, work = amagold(theta, 0.1, friction, 50, generator)
        squares.append(theta.square())
        works[name].append(work)
    of_chains = torch.stack(squares).double().mean(0)
    variances[name], error = of_chains.mean(), float(of_chains.std()) / 2_000**0.5
    check(name, variances[name], near(1), error=error, because="it is exact")

# %% [markdown]
# The variance of $\theta$ is {c}`amagold`. Without friction the same function is naive SGHMC with HMC's rejection, and has {c}`naive-rejected`, where naive SGHMC alone has more than 2 ({numref}`fig-amagold`, left).
#
# The noise pumps energy into a path at the rate $\operatorname{tr}B$ ({doc}`page 7 of the tutorial </book/tutorial/naive_sghmc>`). The correction has to reject paths for this energy (right), and friction changes little in how many, except for long paths in one dimension.
# *A guess before you look: a path lasts until the noise has brought in the energy 1. How often is it accepted?*

# %% tags=["hide-input"]
lengths, measured = (2, 5, 10, 20, 50, 100), {}
kernels = {
    "AMAGOLD": lambda steps: AMAGOLD(0.1, 0.5, steps),
    "naive SGHMC with correction": lambda steps: NaiveSGHMC(
        0.1, steps, metropolis=True
    ),
}
for name, dim, steps in itertools.product(kernels, (1, 10), lengths):
    noisy = NoisyGradient(Gaussian.standard(dim), 4.0)
    start = torch.randn(2_000, dim, generator=generator)
    run = sample(kernels[name](steps), noisy, start, num_samples=5, seed=steps)
    measured[name, dim, steps] = float(run.statistics["acceptance"].mean())


def acceptance(energy):
    """2Φ(−√(w/2)), where the noise has brought in the energy w = t·tr B."""
    return math.erfc(math.sqrt(energy / 2) / math.sqrt(2))


# %% mystnb={"figure": {"caption": "The bowl, $\\varepsilon = 0.1$, $V = 4$, so $B = 0.2$ in each direction. Left: variance of $\\theta$ with paths of 50 steps, and of SGHMC with $\\hat B = B$; 1 is right (grey). Right: share of the paths that are accepted against their duration $t$, in one and in ten dimensions, for AMAGOLD with $C = 0.5$ (discs) and naive SGHMC with a correction (crosses); lines: the formula of this page.", "name": "fig-amagold"}, "image": {"alt": "Left, four points: naive SGHMC at 2.14, the other three on the grey line at 1. Right, two falling lines with discs and crosses on or a little above them: the upper falls from 0.9 to a third at time 10, the lower from 0.7 to nearly zero."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(6.8, 3.2), width_ratios=(1, 1.3))
colours = {
    "naive\nSGHMC": ("naive SGHMC", exact_variance("naive")),
    "with\nrejection": ("naive SGHMC with correction", variances["naive-rejected"]),
    "AMA-\nGOLD": ("SGNUTS", variances["amagold"]),
    "SGHMC,\n$\\hat B = B$": ("SGHMC", exact_variance("sghmc-B")),
}
left.axhline(1, color=TRUTH, lw=3, zorder=0)
for place, (colour, value) in enumerate(colours.values()):
    left.plot(place, value, "o", ms=8, color=COLOURS[colour])
left.set_xticks(range(4), colours, fontsize=8)
left.set(ylabel=r"variance of $\theta$", ylim=(0.8, 2.3))
times = torch.linspace(0.01, 10, 200).tolist()
for dim in (1, 10):
    right.plot(times, [acceptance(0.2 * time * dim) for time in times], color="0.3")
    right.text(6, 0.53 if dim == 1 else 0.1, f"$d = {dim}$")
for name, mark in (("AMAGOLD", "o"), ("naive SGHMC with correction", "x")):
    colour = COLOURS["SGNUTS" if name == "AMAGOLD" else name]
    for dim in (1, 10):
        values = [measured[name, dim, steps] for steps in lengths]
        label = name.replace(" SGHMC with", ", with") if dim == 1 else None
        right.plot([0.1 * k for k in lengths], values, mark, color=colour, label=label)
right.set(xlabel="duration of a path $t$", ylabel="acceptance", ylim=(0, 1))
right.legend()
plt.show()

# %% [markdown]
# ## The theorem of page 12, given the minibatches
#
# {prf:ref}`thm-reversal-short` has the ratio $e^W$ for the work of the exact gradient.
# There the gradient's noise was a part of the step's randomness, which the friction had to balance.
# Now take the minibatch $\omega$ as given. Then $\nabla\tilde U(y; \omega)$ is just some vector at $y$, and the proof works for any vector.
#
# ```{prf:theorem} Accepting by the minibatches' own work
# :label: thm-amagold
#
# Let $\pi \propto e^{-U}$. Let the minibatches $\omega_1, \dots, \omega_L$ of a path be independent of the state, and as likely in the reversed order. Draw $r_0 \sim N(0, I)$ and take $L$ palindromic steps {eq}`eq-palindromic-step` with $M = 1$, a friction $C > 0$, $\hat B = 0$ and the gradients $\nabla\tilde U(y_k; \omega_k)$. Let
#
# $$
# \tilde W = U(\theta_L) - U(\theta_0) - \sum_{k=1}^L\nabla\tilde U(y_k; \omega_k)^\top(\theta_k - \theta_{k-1}),
# $$ (eq-amagold-work)
#
# accept $\theta_L$ with probability $\min(1, e^{-\tilde W})$, and stay at $\theta_0$ otherwise. This is in detailed balance with $\pi$, at every $\varepsilon$. In equilibrium $E[e^{-\tilde W}] = 1$.
# ```
#
# ```{prf:proof}
# *A step, given its minibatch.* Let $p_\omega(r' \mid \theta, r)$ be the density of the new momentum, which determines the new position. The proof of {prf:ref}`thm-reversal-short`, with the minibatch gradient and the variance $2C\varepsilon$ of all noise, gives
#
# $$
# \begin{aligned}
# e^{-\frac12\lvert r\rvert^2}\,&p_\omega(r' \mid \theta, r)\\
# &= e^{-\frac12\lvert r'\rvert^2}\,e^{-\nabla\tilde U(y; \omega)^\top(\theta' - \theta)}\,p_\omega(-r \mid \theta', -r').
# \end{aligned}
# $$ (eq-amagold-step)
#
# On the right is the step backwards: it has the same $y$, and it uses the same minibatch.
#
# *A path.* The numbers $x = (\theta_0, r_0, r_1, \dots, r_L)$ determine a path, and $\bar x = (\theta_L, -r_L, \dots, -r_0)$ the same path walked backwards. The map $x \mapsto \bar x$ undoes itself and keeps volume, since $\theta_L$ is $\theta_0$ shifted by $\frac\varepsilon2\sum_k(r_{k-1} + r_k)$. Write $\bar\omega$ for the minibatches in reversed order, and
#
# $$
# q_\omega(x) = e^{-U(\theta_0) - \frac12\lvert r_0\rvert^2}\prod_{k=1}^Lp_{\omega_k}(r_k \mid \theta_{k-1}, r_{k-1}).
# $$
#
# Apply {eq}`eq-amagold-step` to each factor. The factor of the momentum is handed on from step to step, the works add up, and $e^{-U(\theta_0)} = e^{-U(\theta_L)}\,e^{U(\theta_L) - U(\theta_0)}$. So
#
# $$
# q_\omega(x) = e^{\tilde W}\,q_{\bar\omega}(\bar x).
# $$ (eq-amagold-path)
#
# *The decision.* By {eq}`eq-amagold-path` $q_\omega(x)\min(1, e^{-\tilde W}) = \min\bigl(q_\omega(x),\, q_{\bar\omega}(\bar x)\bigr)$, which stays the same if $(x, \omega)$ is replaced by $(\bar x, \bar\omega)$. This replacement keeps volume, and by assumption the distribution of the minibatches. So accepted paths lead from a set $S$ of positions to a set $S'$ as often as from $S'$ to $S$. Rejected ones stay. That is detailed balance.
#
# Integrate $q_\omega(x)\,e^{-\tilde W} = q_{\bar\omega}(\bar x)$ over $x$, average it over $\omega$, and divide by the integral of $e^{-H}$: $E[e^{-\tilde W}] = 1$.
# ```
#
# Without friction $\tilde W$ is the change of $H$, and the theorem holds too: it is {prf:ref}`thm-noisy-trajectory`, HMC's rejection for naive SGHMC.
# Algorithm 2 cannot be corrected in this way. It drifts first and kicks afterwards, so no path of its own leads back, and all would be rejected {cite:p}`garrigaalonso2021`.
#
# *The order.* Independent fresh minibatches are as likely in the reversed order. Shuffled ones in general are not, because a path may begin inside of a pass and cross into the next. The package's `AMAGOLD` therefore accepts only `Fresh`.
#
# ## What it costs
#
# Write $\nabla\tilde U(y_k) = \nabla U(y_k) + \nu_k$ with the noise $\nu_k$ of variance $V$. But for the error of the step, which is of order $\varepsilon^2$,
#
# $$
# \tilde W \approx -\sum_k\nu_k^\top(\theta_k - \theta_{k-1}), \qquad \theta_k - \theta_{k-1} \approx \tfrac12\varepsilon(r_{k-1} + r_k).
# $$
#
# While $w = t\operatorname{tr}B$, the energy from the noise so far, is small against $d$, the momentum keeps the variance 1 to leading order. So a term has the variance $\varepsilon^2\operatorname{tr}V = 2\varepsilon\operatorname{tr}B$. Because $r_k$ contains the kick $-\varepsilon\nu_k$, its mean is $\tfrac12\varepsilon^2\operatorname{tr}V = \varepsilon\operatorname{tr}B$, the energy that the kick pumps in ({prf:ref}`thm-pumping`).
# After the time $t = L\varepsilon$
#
# $$
# E[\tilde W] \approx t\operatorname{tr}B, \qquad \operatorname{Var}\tilde W \approx 2t\operatorname{tr}B.
# $$ (eq-amagold-moments)
#
# With many steps and directions it is nearly Gaussian, and then ({ref}`ex-amagold-acceptance`)
#
# $$
# \text{acceptance} \approx 2\,\Phi\bigl(-\sqrt{\tfrac12t\operatorname{tr}B}\,\bigr).
# $$ (eq-amagold-acceptance)
#
# At $t\operatorname{tr}B = 1$ it is 0.48, which answers the guess. In ten dimensions the measured acceptances of AMAGOLD lie above the formula by {c}`above-formula` at most. In one dimension more is accepted, because some paths are slower than others and do less work: there $\tilde W$ is not Gaussian.
#
# How many passes over the data is that? Measure in units of the posterior, where the curvature is 1 and $V \approx \frac NnI$ by {eq}`eq-noise-curvature`.
# A path gains the energy $w = t\operatorname{tr}B = t\,d\cdot\tfrac12\varepsilon\frac Nn$. For a given $w$ it has $t/\varepsilon = \frac{t^2d}{2w}\frac Nn$ steps of $n$ examples each, which are $\frac{t^2d}{2w}$ passes. One more pass is for the energy at its end.
#
# How many paths is an independent sample? A rejected path repeats the old $\theta$. Suppose that each path is accepted with the same probability $p$, and that an accepted one forgets its start, as a quarter of a swing does. Then the correlation after $k$ paths is $(1 - p)^k$, of $\theta$ and of $\theta^2$ alike, and an independent sample takes $1 + 2\sum_{k\ge1}(1 - p)^k = (2 - p)/p$ paths. Therefore
#
# $$
# \text{passes} \approx \Bigl(\frac{t^2d}{2w} + 1\Bigr)\frac{2 - p}p, \qquad p = 2\,\Phi\bigl(-\sqrt{w/2}\,\bigr).
# $$ (eq-naive-passes)
#
# In ten dimensions the chain itself takes {c}`paths` times as many paths as $(2 - p)/p$: slightly more, since $p$ is not the same everywhere.
# The size of the minibatch has dropped out, as in {doc}`the law of the price </book/further/price>`. Accuracy costs nothing here, because the samples are exact; what costs is the dimension. The table of the first screen has $t = \tfrac12\pi$ and the best $w$. In many dimensions that is $w = 2.3$, at which 28 per cent of the paths are accepted, and the price is {c}`best` times $\tfrac12t^2d$.

# %% tags=["hide-input"]
gaps = [
    measured["AMAGOLD", 10, steps] - acceptance(0.2 * 0.1 * steps * 10)
    for steps in lengths
]
why = "the formula is the limit of small steps; 10,000 paths each"
check("above-formula", max(gaps), near(0.02, 0.015), because=why)
energies = torch.linspace(0.5, 6, 1_101).tolist()


def paths(p):
    """The paths for an independent sample."""
    return (2 - p) / p


best = min(paths(acceptance(energy)) / energy for energy in energies)
check("best", best, near(2.63, 0.01), kind="exact", digits=3)
for dim, right in ((1, 7.07), (10, 38.0), (100, 331.0)):
    passes = [
        ((math.pi / 2) ** 2 / 2 * dim / energy + 1) * paths(acceptance(energy))
        for energy in energies
    ]
    bound = near(right, 0.01 * right)
    check(f"price-{dim}", min(passes), bound, kind="exact", digits=2 + (dim == 100))
for name, steps, right in (("by-formula", 45, 0.574), ("half", 66, 0.5)):
    noisy = NoisyGradient(Gaussian.standard(1), 4.0)
    start = torch.randn(4_000, 1, generator=generator.manual_seed(steps))
    kernel = kernels["naive SGHMC with correction"](steps)
    run = sample(kernel, noisy, start, num_samples=5, seed=steps)
    value = run.statistics["acceptance"].mean()
    check(name, value, near(right, 0.02), because="20,000 paths")
quarter = math.pi / 2 / 20  # 20 steps, and a noise that brings in w = 1.5
noisy = NoisyGradient(Gaussian.standard(10), 2 * 1.5 / (quarter * math.pi / 2 * 10))
start = torch.randn(500, 10, generator=generator)
run = sample(AMAGOLD(quarter, 0.01, 20), noisy, start, num_samples=120, seed=6)
p = float(run.statistics["acceptance"].mean())
lags = [(run.samples[:-k] * run.samples[k:]).mean() for k in range(1, 25)]
check("paths", (1 + 2 * sum(lags)) / paths(p), near(1.03, 0.05), digits=3)
work = torch.cat(works["amagold"]).double()
because = "the theorem; eight standard errors of 200,000 paths"
says = "The mean of exp(−W̃) over the paths in the bowl"
value = torch.exp(-work).mean()
check("jarzynski", value, near(1, 0.05), because=because, says=says)
kernel = AMAGOLD(0.1, 0.5, 50)
noisy, theta = NoisyGradient(Gaussian.standard(1), 4.0), torch.ones(64, 1)
state = kernel.init(noisy, theta, generator.manual_seed(3))
for _ in range(5):
    state, _ = kernel.step(noisy, state, generator)
generator.manual_seed(3)
for _ in range(5):
    theta, _ = amagold(theta, 0.1, 0.5, 50, generator)
says = "Five samples by `amagold` and by the package's kernel differ by"
gap = (theta - state.position).abs().max()
check("same-samples", gap, at_most(1e-4), kind="exact", says=says)
grid = torch.linspace(-3, 3, 6_001, dtype=torch.float64)[:, None]
weight = torch.softmax(-DoubleWell().energy(grid), 0)
truth = float(weight @ grid[:, 0].square())
start = grid[torch.multinomial(weight, 4_000, replacement=True, generator=generator)]
well = NoisyGradient(DoubleWell(), 4.0)
run = sample(AMAGOLD(0.3, 0.5, 10), well, start, num_samples=40, seed=5)
value, error = run.mean_and_standard_error(lambda x: x.square())
check("well", value, near(truth), error=error, because=f"exactly {truth:.4f}")

# %% [markdown]
# By the formula AMAGOLD is cheaper than SGLD at one per cent up to about 29 dimensions for a $\theta$, and up to about 13 for a $\theta^2$. But HMC goes a quarter of a swing in about five gradients of all the data.
# Shorter paths do not help: the steps of a path fall as $t^2$, but the number of paths for an independent sample rises as $1/t^2$, and each still pays its pass.
# The friction of SGHMC takes the same energy out and rejects no path ({doc}`/book/further/choosing_the_estimate`), but it needs $\hat B$, and the error of the step remains.
#
# The theorem does not ask for a Gaussian: in the tutorial's double well, at the large step 0.3, the mean of $\theta^2$ stays {c}`well` (exactly 0.8327).
#
# Here the *path* uses minibatches, and the decision all the data. May the decision use a subsample, too? A test at $z$ standard errors has to read a share of the data that does not fall with $N$ ({ref}`ex-poll-short`). {cite:t}`korattikara2014` and {cite:t}`bardenet2014` have such tests.
#
# **To remember:** rejections make the paths of minibatches exact, but the energy that the noise brings in grows with the dimension, and it is paid for in rejected paths.
#
# ## Change it
#
# * In the first visible cell of code set `work = work - gradient * moved` to `work = work - y * moved`, the work of the exact gradient: nearly every path is accepted, the noise is no longer paid for, and the variance is about 2.16 without friction and 1.36 with it.
# * In the same cell set `theta, 0.1, friction, 50` to `theta, 0.8, friction, 6`, steps eight times as large: the variance stays 1.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-amagold-acceptance
#
# ★★ Let $\tilde W \sim N(\mu, s^2)$ with $E[e^{-\tilde W}] = 1$. Show that $\mu = \tfrac12s^2$ and that the acceptance is $2\Phi(-\tfrac12s)$. How far does by this formula naive SGHMC's path in the bowl go with $V = 4$, $\varepsilon = 0.1$, if half of the paths are to be accepted?
# ```
#
# ```{solution} ex-amagold-acceptance
# :class: dropdown
#
# $E[e^{-\tilde W}] = e^{-\mu + s^2/2}$, so $\mu = \tfrac12s^2$.
# Where $\tilde W \le 0$ all is accepted: $P(\tilde W \le 0) = \Phi(-\mu/s) = \Phi(-\tfrac12s)$.
# Where $\tilde W > 0$ the share is $e^{-\tilde W}$. Since $e^{-w}$ times the density of $N(\mu, s^2)$ is the density of $N(\mu - s^2, s^2) = N(-\mu, s^2)$, it adds $P(N(-\mu, s^2) > 0) = \Phi(-\tfrac12s)$.
# With $s^2 = 2tB$ a half is $\tfrac12s = 0.674$, so $tB = 0.91$, and the formula gives $t = 4.5$ at $B = 0.2$. In one dimension it is too pessimistic, because $\tilde W$ is not Gaussian: at $t = 4.5$ measured {c}`by-formula` of the paths are accepted, and at $t = 6.6$ {c}`half`.
# ```
#
# ```{exercise}
# :label: ex-poll-short
#
# ★★ *A decision from a subsample.* Metropolis' rule accepts $\theta'$ if $\sum_i\ell_i > \log u$, with $\ell_i = \log p(x_i \mid \theta') - \log p(x_i \mid \theta)$ and $u$ uniform in $(0, 1)$. In the mean of $N$ numbers a step of $\Delta$ posterior standard deviations makes the $\ell_i$ scatter with the variance $\lvert\Delta\rvert^2/N$.
# Estimate the sum from $n$ of the $N$ examples, drawn without replacement. Which share $n/N$ must a decision at $z$ standard errors read, if the sum lies at the distance $g$ from $\log u$?
# ```
#
# ```{solution} ex-poll-short
# :class: dropdown
#
# The estimate has the variance $(\frac Nn - 1)\lvert\Delta\rvert^2$. It must be at most $g^2/z^2$, so $\frac nN \ge \lvert\Delta\rvert^2/(\lvert\Delta\rvert^2 + g^2/z^2)$: a share, however many data there are. A move like that of HMC, with $\lvert\Delta\rvert^2 \approx 2d$ and $g$ of order one, needs 99 % in ten dimensions at $z = 2.3$.
# ```
#
# ````{exercise}
# :label: ex-amagold-write
#
# ★ **Write it yourself.** Write the work {eq}`eq-amagold-work` of paths that have been recorded.
#
# ```python
# def work_of(positions, gradients, energy):
#     """W̃ (chains,) of positions (L + 1, chains, d) and gradients (L, chains, d);
#     energy takes (chains, d) and returns (chains,)."""
#     ...
# ```
#
# What is it if the gradients are exact and $\varepsilon$ goes to zero?
# ````
#
# ````{solution} ex-amagold-write
# :class: dropdown
#
# ```python
# def work_of(positions, gradients, energy):
#     done = (gradients * positions.diff(dim=0)).sum((0, 2))
#     return energy(positions[-1]) - energy(positions[0]) - done
# ```
#
# With exact gradients the sum becomes the line integral of $\nabla U$, and the work vanishes.
# ````


# %% tags=["hide-input"]
def work_of(positions, gradients, energy):
    done = (gradients * positions.diff(dim=0)).sum((0, 2))
    return energy(positions[-1]) - energy(positions[0]) - done


theta = torch.stack([torch.zeros(3, 2), torch.ones(3, 2), torch.full((3, 2), 3.0)])
g = torch.stack([torch.ones(3, 2), torch.full((3, 2), 0.5)])  # 2·1 + 2·0.5·2 = 4
by_hand = 9 - 0 - 4
gap = (work_of(theta, g, lambda x: x.square().sum(-1) / 2) - by_hand).abs().max()
says = "The solution's work of two steps by hand, 9 − 0 − 4, is wrong by"
check("written", gap, at_most(1e-6), kind="exact", says=says)

# %% [markdown]
# ## Further reading
#
# {cite:t}`zhang2020amagold` have the algorithm, its proof and networks; {cite:t}`garrigaalonso2021` the same for another splitting. The step is that of {cite:t}`brunger1984`, seen from the places $y$ of its kicks.
# {cite:t}`bardenet2017` review subsampling, and {cite:t}`betancourt2015` says why long paths and subsampling do not go together.
