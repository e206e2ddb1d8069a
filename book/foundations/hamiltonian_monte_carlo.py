# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Hamiltonian Monte Carlo
#
# A ball that rolls without friction, kicked now and then in a random direction, visits every place in proportion to its probability.
#
# **You will learn** to
#
# * turn Hamiltonian dynamics into a Markov chain and prove that it leaves its target invariant,
# * say why the integrator's error needs a correction step, and see what happens without,
# * tune the step size and the number of steps, and avoid resonance,
# * recognise Langevin dynamics and partial refreshment as special cases,
# * measure the gain over a random walk in effective samples per gradient.
#
# **You will need** {doc}`/book/foundations/hamiltonian_dynamics`.

# %%
import arviz
import matplotlib.pyplot as plt
import torch

from sgmc import claim, sample
from sgmc.figures import COLOURS, TRUTH, plot_contours, use_style
from sgmc.integrators import leapfrog
from sgmc.kernels import HMC, RandomWalkMetropolis
from sgmc.linear_laws import naive_sghmc_chain
from sgmc.potentials import Gaussian

use_style()

# %% [markdown]
# ## From a density to a ball
#
# Let the target be $\pi(\theta) \propto e^{-U(\theta)}$. Invent a momentum $r$, independent of the position, and look at the joint density
#
# $$
# \pi(\theta, r) \propto e^{-H(\theta, r)} = e^{-U(\theta)}\,e^{-\frac12r^\top M^{-1}r}.
# $$ (eq-joint)
#
# Its marginal in $\theta$ is the target; its marginal in $r$ is $N(0, M)$, which we can draw from at once.
# Two moves leave it invariant. Drawing $r \sim N(0, M)$ afresh does, because $r$ is independent of $\theta$. Following Hamilton's equations does, because the flow keeps both $H$ and volume: probability is carried along lines of equal density without being squeezed.
# The first changes the energy, the second carries us far at constant energy.
#
# A computer's leapfrog keeps volume and is reversible, but it does not quite keep $H$. The correction step of {cite:t}`metropolis1953` repairs that.
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
# For any $\varepsilon$, $L$ and $M$ the chain of {prf:ref}`alg-hmc` leaves $\pi(\theta) \propto e^{-U(\theta)}$ invariant.
# ```
#
# ```{prf:proof}
# Step 1 leaves $\pi(\theta, r)$ invariant. For steps 2 and 3 let $S = F \circ \Psi^L$ be $L$ leapfrog steps followed by the flip $F(\theta, r) = (\theta, -r)$. Leapfrog is reversible, so $S \circ S$ is the identity, and $\lvert\det DS\rvert = 1$.
# Accept $z' = S(z)$ with probability $a(z) = \min(1, \pi(z')/\pi(z))$. For sets $A$ and $B$ the probability flow from $A$ to $B$ by accepted moves is
#
# $$
# \int \mathbf 1_A(z)\,\mathbf 1_B(Sz)\,\min\bigl(\pi(z), \pi(Sz)\bigr)\,dz = \int \mathbf 1_A(Sw)\,\mathbf 1_B(w)\,\min\bigl(\pi(Sw), \pi(w)\bigr)\,dw,
# $$
#
# where $w = Sz$, so that $z = Sw$ and $dz = dw$. The right side is the flow from $B$ to $A$: detailed balance. A move that is rejected stays, and balances itself. The flip at the end is invisible, because $H$ is even in $r$ and $r$ is drawn afresh.
# ```
#
# The proof used volume and reversibility of the *integrator*, exactly, and its energy error not at all: a bad integrator is only rejected more often. Here is the code.
#
# ```{literalinclude} ../../sgmc/kernels/hmc.py
# :language: python
# :pyobject: HMC.step
# ```

# %%
target = Gaussian.correlated(0.95)
generator = torch.Generator().manual_seed(3)
start, momentum = torch.tensor([[-1.6, -1.2]]), torch.tensor([[0.2, 1.3]])
trajectory = [start]
position = start
for _ in range(20):
    position, momentum = leapfrog(target.gradient, position, momentum, 0.15)
    trajectory.append(position)
walk = sample(RandomWalkMetropolis(0.25), target, start, num_samples=20, seed=1).samples[:, 0]

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-trajectory", "caption": "Left: one trajectory of 20 leapfrog steps along the ridge of a Gaussian with correlation 0.95. Right: 20 steps of random-walk Metropolis from the same place."}}
figure, panels = plt.subplots(1, 2, figsize=(7.6, 3.8), sharey=True)
for axes, points, name in ((panels[0], torch.cat(trajectory), "HMC"), (panels[1], torch.cat([start, walk]), "random walk")):
    plot_contours(axes, target, -3.2, 3.2)
    axes.plot(*points.T, "o-", ms=3, lw=1, color=COLOURS[name])
    axes.set(title=name, xlabel=r"$\theta_1$")
panels[0].set_ylabel(r"$\theta_2$")
plt.show()

# %% [markdown]
# ## Why the correction step
#
# In the bowl $U = \tfrac12\theta^2$ leapfrog keeps $\tfrac12(1 - \tfrac{\varepsilon^2}4)\theta^2 + \tfrac12r^2$ instead of $H$ ({prf:ref}`thm-shadow`). A chain without the correction step therefore samples that shadow: its variance is $1/(1 - \varepsilon^2/4)$, for whatever number of steps (short of resonance, see below). At $\varepsilon = 1$ that is a third too wide; with the correction it is right.

# %%
bowl = Gaussian.standard(1, dtype=torch.float64)
for step_size in (0.5, 1.0, 1.5):
    law = naive_sghmc_chain(torch.eye(1), step_size, 2).stationary_covariance()[0, 0]
    claim(
        f"Exact variance of uncorrected HMC at ε = {step_size:g} over 1/(1 − ε²/4)",
        law * (1 - step_size**2 / 4),
        near=1,
        within=1e-9,
        because="exact law of the linear chain",
    )
start = bowl.exact_samples(10_000, torch.Generator().manual_seed(1))
for metropolis, expected in ((False, 1 / 0.75), (True, 1.0)):
    draws = sample(HMC(1.0, 2, metropolis=metropolis), bowl, start, num_samples=20, warm_up=20, seed=2)
    value, error = draws.mean_and_standard_error(lambda x: x**2)
    claim(
        f"Measured variance at ε = 1 {'with' if metropolis else 'without'} the correction step",
        value,
        near=round(expected, 6),
        standard_error=error,
        because="10,000 independent chains",
    )

# %% [markdown]
# ## Tuning: step size, number of steps, resonance
#
# Two numbers are to be chosen.
# The step size trades acceptance for distance. The number of steps trades gradients for distance: too few and HMC is a random walk, too many and the trajectory turns back.
# The currency is the *effective sample size per gradient*: with autocorrelations $\rho_k$, $n$ draws are worth $n/\tau$ independent ones, $\tau = 1 + 2\sum_k\rho_k$. ArviZ estimates it {cite:p}`kumar2019,vehtari2021`; we take the smallest over coordinates and over $\theta$ and $\theta^2$.
#
# In a bowl of curvature one, a trajectory of time $\varepsilon L = \pi$ ends at $-\theta$: the chain hops from side to side and never changes its energy. That is *resonance*. A random number of steps cures it.


# %%
def efficiency(kernel, potential, num_samples=1_000, chains=20, seed=0):
    """Effective samples per gradient, the smallest over coordinates and over θ and θ²."""
    start = potential.exact_samples(chains, torch.Generator().manual_seed(seed))
    draws = sample(kernel, potential, start, num_samples=num_samples, seed=seed)
    gradients = draws.statistics["num_gradients"][-1, 0] if "num_gradients" in draws.statistics else num_samples
    values = torch.cat([draws.samples, draws.samples**2], -1).transpose(0, 1).double().numpy()
    sizes = [float(arviz.ess(values[..., i], method="mean")) for i in range(values.shape[-1])]
    return min(sizes) / (chains * float(gradients)), float(draws.statistics["acceptance"].mean())


steps = [1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]
by_steps = {jitter: [efficiency(HMC(0.196, L, jitter=jitter), bowl)[0] for L in steps] for jitter in (0.0, 0.5)}
resonance = steps.index(16)  # 16 × 0.196 ≈ π
claim(
    "Effective samples per gradient at the resonance, with jitter over without",
    by_steps[0.5][resonance] / by_steps[0.0][resonance],
    at_least=5,
    because="without jitter the energy of a chain hardly changes; the measured factor is in the hundreds",
)

step_sizes = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
by_step_size = [efficiency(HMC(h, max(1, round(1.5 / h)), jitter=0.5), target) for h in step_sizes]

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-tuning", "caption": "Left: effective samples per gradient in the bowl against the number of steps; at εL = π the fixed number resonates. Right: the correlated Gaussian, trajectories of length 1.5: efficiency (blue) and acceptance (grey) against step size; the limit of stability is 0.45."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.8, 3.3))
for jitter, style in ((0.0, "o-"), (0.5, "s--")):
    left.semilogy(
        steps, by_steps[jitter], style, ms=4, color=COLOURS["HMC"], label="random number of steps" if jitter else "fixed number of steps"
    )
left.axvline(torch.pi / 0.196, color=TRUTH, lw=1)
left.set(xlabel="leapfrog steps $L$", ylabel="effective samples per gradient")
left.legend()
right.plot(step_sizes, [e for e, _ in by_step_size], "o-", color=COLOURS["HMC"], label="effective samples per gradient")
right.set(xlabel=r"step size $\varepsilon$", ylabel="effective samples per gradient")
twin = right.twinx()
twin.plot(step_sizes, [a for _, a in by_step_size], "--", color=TRUTH)
twin.set(ylabel="acceptance", ylim=(0, 1.02))
plt.show()

# %% [markdown]
# ## Mass
#
# The steepest direction sets the step size, the flattest sets the length of the trajectory: their ratio is the condition number's square root.
# A mass matrix $M \approx \Sigma^{-1}$, the precision of the target, makes all directions alike. For a Gaussian with exactly that mass, HMC sees a standard Gaussian whatever the correlation.

# %%
# The coordinates M^{1/2}θ turn one problem into the other, so the acceptances of the two chains have one law.
with_mass = sample(HMC(0.8, 3, mass=target.precision), target, target.exact_samples(20_000, generator), num_samples=5, seed=5)
standard = sample(HMC(0.8, 3), Gaussian.standard(2), Gaussian.standard(2).exact_samples(20_000, generator), num_samples=5, seed=6)
(a, a_error), (b, b_error) = (
    (m.mean(0).mean(), m.mean(0).std() / 20_000**0.5)
    for m in (with_mass.statistics["acceptance"].double(), standard.statistics["acceptance"].double())
)
claim(
    "Acceptance with the ideal mass on correlation 0.95, less that on a standard Gaussian",
    a - b,
    near=0,
    standard_error=(a_error**2 + b_error**2) ** 0.5,
    because="equal in law by a change of coordinates; 20,000 chains each",
)

# %% [markdown]
# ## Two relatives
#
# **Langevin.** With $L = 1$ the proposal is $\theta' = \theta - \tfrac{\varepsilon^2}2M^{-1}\nabla U(\theta) + \varepsilon M^{-1}r$ with $r \sim N(0, M)$: a step downhill and noise, the Metropolis-adjusted Langevin algorithm {cite:p}`roberts1996`. Its noise and its drift are of the sizes $\varepsilon$ and $\varepsilon^2/2$; drop the correction step and it becomes the sampler of {cite:t}`welling2011` with step $\eta = \varepsilon^2/2$.
#
# **Partial refreshment.** Instead of a new momentum take $r \leftarrow \sqrt{1 - \phi^2}\,r + \phi\,N(0, M)$, which leaves $N(0, M)$ invariant too {cite:p}`horowitz1991`. With $L = 1$ and a small $\phi$ the ball keeps its course over many short trajectories, and the momentum decays as if by friction: the way to SGHMC. A rejection must flip the momentum, because the proof above needs the flip $F$ wherever the momentum survives.

# %%
step = 0.3
z = torch.tensor([[0.7, -0.2]], dtype=torch.float64)
noise = torch.tensor([[0.4, 1.1]], dtype=torch.float64)
precise = Gaussian.correlated(0.95, dtype=torch.float64)
one_step = leapfrog(precise.gradient, z, noise, step)[0]
langevin = z - step**2 / 2 * precise.gradient(z) + step * noise
claim("One leapfrog step and the Langevin proposal differ by", (one_step - langevin).abs().max(), at_most=1e-14, because="the same algebra")

refreshed = sample(HMC(0.3, 1, refreshment=0.3), target, target.exact_samples(4_000, generator), num_samples=50, warm_up=20, seed=7)
value, error = refreshed.mean_and_standard_error(lambda x: x[..., 0] * x[..., 1])
claim("E[θ₁θ₂] with partial refreshment", value, near=0.95, standard_error=error, because="4,000 independent chains")

# %% [markdown]
# ## Random walk against HMC
#
# The same currency, one gradient or one energy each, on Gaussians whose correlation grows. Each method is given its best setting from a small grid.

# %%
correlations = (0.0, 0.9, 0.99)
best = {"random walk": [], "Langevin": [], "HMC": []}
for rho in correlations:
    potential = Gaussian.correlated(rho)
    shortest = (1 - rho) ** 0.5  # standard deviation across the ridge
    best["random walk"].append(max(efficiency(RandomWalkMetropolis(s * shortest), potential, 2_000)[0] for s in (1.5, 2.5, 4.0)))
    best["Langevin"].append(max(efficiency(HMC(s * shortest, 1), potential, 2_000)[0] for s in (1.0, 1.4)))
    length = 1.5 * (1 + rho) ** 0.5
    best["HMC"].append(
        max(efficiency(HMC(s * shortest, max(1, round(length / (s * shortest))), jitter=0.5), potential, 500)[0] for s in (0.7, 1.0, 1.3))
    )
gain = [h / r for h, r in zip(best["HMC"], best["random walk"], strict=True)]
claim(
    "HMC over random walk in effective samples per gradient at correlation 0.99",
    gain[-1],
    at_least=3,
    because="a third of the measured factor: effective sample sizes of 20 chains are rough",
)
claim(
    "That gain over the gain at correlation 0",
    gain[-1] / gain[0],
    at_least=1.2,
    because="a random walk pays the condition number, HMC its square root",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-hmc-gain", "caption": "Effective samples per gradient evaluation (energy evaluation for the random walk) on bivariate Gaussians, each method at its best setting of a small grid."}}
figure, axes = plt.subplots()
for (name, values), marker, colour in zip(best.items(), "so^", (COLOURS["random walk"], COLOURS["SGLD"], COLOURS["HMC"]), strict=True):
    axes.semilogy([f"{rho:g}" for rho in correlations], values, marker + "-", color=colour, label=name)
axes.set(xlabel=r"correlation $\rho$", ylabel="effective samples per gradient")
axes.legend()
plt.show()

# %% [markdown]
# ## In practice
#
# * Aim for an acceptance between 0.6 and 0.9; near one, the step is too small for its price.
# * Make the number of steps random, or let an algorithm choose it.
# * Standardise the variables, or give a mass matrix.
# * Every gradient here reads all the data. With a million examples that is the end of it, and the reason for the next part of the book.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-hmc-nan
#
# A proposal has an infinite or undefined energy. What must the correction step do with it?
# ```
#
# ```{solution} ex-hmc-nan
# :class: dropdown
#
# Reject it: an infinite energy has density zero. An undefined one is a trajectory that left the region where $U$ can be computed, and treating it as density zero keeps detailed balance.
# ```
#
# ```{exercise}
# :label: ex-hmc-resonance
#
# Show that exact dynamics of time $\pi$ in the bowl gives a chain whose $\theta^2$ never changes.
# ```
#
# ```{solution} ex-hmc-resonance
# :class: dropdown
#
# {eq}`eq-rotation` at $t = \pi$ is $(\theta, r) \mapsto (-\theta, -r)$, whatever the fresh momentum was.
# ```
#
# ```{exercise}
# :label: ex-hmc-dimension
#
# On a $d$-dimensional standard Gaussian leapfrog's energy error is a sum of $d$ independent terms. How must $\varepsilon$ shrink with $d$ to keep the acceptance?
# ```
#
# ```{solution} ex-hmc-dimension
# :class: dropdown
#
# Each term has mean of order $\varepsilon^4$ and variance of order $\varepsilon^4$; by detailed balance the mean of the sum is half its variance. So $d\varepsilon^4$ must stay fixed: $\varepsilon \propto d^{-1/4}$.
# ```
#
# ## Further reading
#
# {cite:t}`duane1987` invented it, {cite:t}`neal2011` brought it to statistics, {cite:t}`betancourt2017` explains it by geometry.
