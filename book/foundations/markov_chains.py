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
# # Markov chains
#
# To draw from a density that we cannot draw from, wander so that the time spent at each place is in proportion to it; then learn to tell whether the wandering worked.
#
# **You will learn** to
#
# * define stationarity and detailed balance, and prove that one implies the other,
# * derive random-walk Metropolis,
# * measure autocorrelation, effective sample size, Monte Carlo standard error and $\hat R$,
# * recognise four chains that went wrong, made so on purpose.
#
# **You will need** conditional probability and matrices.

# %%
import arviz
import matplotlib.pyplot as plt
import torch

from sgmc import claim, sample
from sgmc.diagnostics import expectation
from sgmc.figures import COLOURS, TRUTH, plot_density, use_style
from sgmc.kernels import RandomWalkMetropolis
from sgmc.potentials import DoubleWell, Gaussian, GaussianMixture

use_style()

# %% [markdown]
# ## Three states
#
# A *Markov chain* moves from $x$ to $y$ with probability $P(x, y)$, whatever came before. A distribution $\pi$ is *stationary* if a chain that starts in it stays in it:
#
# $$
# \sum_x\pi(x)P(x, y) = \pi(y) \qquad \text{for all } y.
# $$ (eq-stationary)
#
# ```{prf:theorem} Detailed balance
# :label: thm-detailed-balance
#
# If $\pi(x)P(x, y) = \pi(y)P(y, x)$ for all $x$ and $y$, then $\pi$ is stationary.
# ```
#
# ```{prf:proof}
# Sum over $x$: $\sum_x\pi(x)P(x, y) = \pi(y)\sum_xP(y, x) = \pi(y)$.
# ```
#
# Detailed balance says that in equilibrium as much traffic flows from $x$ to $y$ as back. It is more than we need, and easy to arrange.
# If every state can be reached from every other, and the chain is not periodic, the law of $x_t$ converges to $\pi$ from any start, and averages along one path converge to averages under $\pi$ {cite:p}`neal2011`.
#
# Say the target is $\pi = (0.2, 0.3, 0.5)$. Propose one of the two other states at random; accept with probability $\min(1, \pi(y)/\pi(x))$.

# %%
pi = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
P = 0.5 * torch.minimum(torch.ones(3, 3, dtype=torch.float64), pi[None, :] / pi[:, None])
P -= torch.diag(P.sum(1) - 1)
balance = pi[:, None] * P
law = torch.linalg.matrix_power(P, 100)[0]
claim("Largest violation of detailed balance", (balance - balance.T).abs().max(), at_most=1e-14, because="exact algebra; rounding")
claim(
    "Largest distance from π after 100 steps from the first state",
    (law - pi).abs().max(),
    at_most=1e-12,
    because="the second eigenvalue of P to the power 100 is far smaller",
)

# %% [markdown]
# ## Random-walk Metropolis
#
# The same recipe works for densities, and it only needs *ratios*: the constant in $\pi(\theta) \propto e^{-U(\theta)}$ cancels {cite:p}`metropolis1953`.
#
# ```{prf:algorithm} Random-walk Metropolis
# :label: alg-random-walk
#
# Repeat: propose $\theta' = \theta + N(0, \varepsilon^2I)$; move there with probability $\min\bigl(1, e^{U(\theta) - U(\theta')}\bigr)$, otherwise stay.
# ```
#
# ```{prf:theorem}
# :label: thm-metropolis
#
# Random-walk Metropolis is in detailed balance with $\pi$.
# ```
#
# ```{prf:proof}
# Let $q(\theta, \theta')$ be the density of the proposal, symmetric in its arguments. For $\theta' \ne \theta$ the flow of probability is $\pi(\theta)q(\theta, \theta')\min(1, \pi(\theta')/\pi(\theta)) = q(\theta, \theta')\min(\pi(\theta), \pi(\theta'))$, symmetric too. Staying balances itself.
# ```
#
# With a proposal that is not symmetric the ratio $q(\theta', \theta)/q(\theta, \theta')$ joins the acceptance probability {cite:p}`hastings1970`.
#
# ```{literalinclude} ../../sgmc/kernels/random_walk.py
# :language: python
# :pyobject: RandomWalkMetropolis.step
# ```
#
# Count rejections! A chain that stays must record its position *again*; forgetting that is the commonest bug of beginners.

# %%
well = DoubleWell()
good = sample(RandomWalkMetropolis(1.5), well, torch.zeros(1_000, 1), num_samples=1_000, warm_up=100, seed=1)
exact = expectation(well, lambda x: x**2, -4, 4)
value, error = good.mean_and_standard_error(lambda x: x**2)
claim(
    "E[θ²] of the double well", value, near=round(exact, 5), standard_error=error, because="quadrature, and the spread between 1,000 chains"
)
moved = good.samples[1:] != good.samples[:-1]
only_moves = good.samples[1:][moved].double().pow(2).mean()
claim(
    "E[θ²] when rejections are not counted, over the truth",
    only_moves / exact,
    at_most=0.97,
    because="places of high density are left too often; the Monte Carlo error is 0.002",
)

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-metropolis", "caption": "Random-walk Metropolis in the double well. Left: one chain's first 300 steps. Right: a million draws against the true density."}}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.2))
left.plot(good.samples[:300, 0, 0], color=COLOURS["random walk"], lw=1)
left.set(xlabel="step", ylabel=r"$\theta$")
plot_density(right, well, -2.2, 2.2)
right.hist(
    good.samples.flatten().numpy(),
    bins=90,
    range=(-2.2, 2.2),
    density=True,
    histtype="step",
    color=COLOURS["random walk"],
    label="random walk",
)
right.set(xlabel=r"$\theta$", ylabel="density")
right.legend()
plt.show()

# %% [markdown]
# ## How much is a draw worth?
#
# Draws of a chain resemble their neighbours. Let $\rho_k$ be the correlation of $f(\theta_t)$ with $f(\theta_{t+k})$ in equilibrium. The variance of an average of $n$ draws is
#
# $$
# \operatorname{Var}\Bigl[\frac1n\sum_tf(\theta_t)\Bigr] = \frac{\operatorname{Var}f}{n}\sum_{\lvert k\rvert<n}\Bigl(1 - \frac{\lvert k\rvert}n\Bigr)\rho_k \approx \frac{\operatorname{Var}f}n\,\tau, \qquad \tau = 1 + 2\sum_{k\ge1}\rho_k.
# $$ (eq-tau)
#
# So $n$ draws are worth an *effective sample size* of $n/\tau$, and the *Monte Carlo standard error* is $\sqrt{\tau\operatorname{Var}f/n}$.
# From one chain $\tau$ must be estimated from noisy correlations, for which we use ArviZ {cite:p}`kumar2019,vehtari2021`.
# From many independent chains there is a way without any such estimate: the spread of the chains' averages. This is why the book runs many chains at once, and where the standard errors of its claims come from.

# %%
few = torch.zeros(4, 1)
one_error = [
    float(
        arviz.mcse(sample(RandomWalkMetropolis(1.5), well, few, num_samples=2_000, warm_up=100, seed=s).samples[..., 0].T.double().numpy())
    )
    for s in range(20)
]
means = torch.stack(
    [sample(RandomWalkMetropolis(1.5), well, few, num_samples=2_000, warm_up=100, seed=s).samples.mean() for s in range(100)]
)
claim(
    "ArviZ's standard error of the mean from 4 chains, averaged over 20 runs, relative to the spread of 100 runs",
    sum(one_error) / 20 / float(means.std()),
    near=1,
    within=0.3,
    because="a standard deviation from 100 runs is known to 7 %, and four estimates in one run scatter",
)

# %%
step_sizes = torch.logspace(-1, 1, 13).tolist()
effective, acceptance = [], []
for step_size in step_sizes:
    run = sample(
        RandomWalkMetropolis(step_size),
        Gaussian.standard(1),
        torch.randn(20, 1, generator=torch.Generator().manual_seed(0)),
        num_samples=4_000,
        seed=2,
    )
    effective.append(float(arviz.ess(run.samples[..., 0].T.double().numpy(), method="mean")) / run.samples.numel())
    acceptance.append(float(run.statistics["acceptance"].mean()))
best = effective.index(max(effective))
claim(
    "Step size with the most effective samples on a standard Gaussian",
    step_sizes[best],
    near=2.6,
    within=1.4,
    because="a flat optimum on a grid with ratio 1.47; theory says 2.4",
)
claim("Acceptance there", acceptance[best], near=0.44, within=0.15, because="theory says 0.44 in one dimension")

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-step-size", "caption": "Random-walk Metropolis on a standard Gaussian: effective samples per draw and acceptance against the step size. Too small a step diffuses, too large a step is refused."}}
figure, axes = plt.subplots()
axes.semilogx(step_sizes, effective, "o-", color=COLOURS["random walk"], label="effective samples per draw")
axes.semilogx(step_sizes, acceptance, "--", color=TRUTH, label="acceptance")
axes.set(xlabel=r"step size $\varepsilon$", ylim=(0, 1))
axes.legend()
plt.show()

# %% [markdown]
# ## Four bad chains
#
# $\hat R$ compares the variance between chains with the variance within: if all chains see the same law it is near 1 {cite:p}`gelman1992,vehtari2021`. Above 1.01 be suspicious.
# Here are a good run and three bad ones, four chains each, and one that no diagnostic can catch.
#
# * *Too short a step*: the chains crawl.
# * *Stuck*: the modes of a mixture are so far apart that each chain stays in its own.
# * *Drift*: chains that are still on their way from a far start.
# * *Missing mode*: all chains start in the same mode. Everything agrees, and all of it is wrong.

# %%
generator = torch.Generator().manual_seed(5)
two_modes = GaussianMixture(torch.tensor([[-3.0], [3.0]]), variance=0.25)
normal = Gaussian.standard(1)
spread = torch.linspace(-3, 3, 4)[:, None]
settings = {
    "good": (RandomWalkMetropolis(2.4), normal, spread, 200),
    "too short a step": (RandomWalkMetropolis(0.05), normal, spread, 0),
    "stuck": (RandomWalkMetropolis(0.7), two_modes, spread.sign() * 3, 200),
    "drift": (RandomWalkMetropolis(0.3), normal, spread * 10, 0),
    "missing mode": (RandomWalkMetropolis(0.7), two_modes, torch.full((4, 1), 3.0), 200),
}
chains = {
    name: sample(kernel, potential, start, num_samples=1_000, warm_up=warm_up, seed=3).samples[..., 0].T.double()
    for name, (kernel, potential, start, warm_up) in settings.items()
}
r_hat = {name: float(arviz.rhat(values.numpy())) for name, values in chains.items()}
claim("R̂ of the good chains", r_hat["good"], at_most=1.02, because="4,000 draws worth about 900")
for name in ("too short a step", "stuck", "drift"):
    claim(f"R̂ of the chains of the case {name}", r_hat[name], at_least=1.2, because="between-chain spread; measured well above the bound")
claim("R̂ where all chains miss the same mode", r_hat["missing mode"], at_most=1.1, because="no diagnostic sees what no chain visited")
claim("The mean that those chains report, where 0 is right", chains["missing mode"].mean(), at_least=2.5, because="they sit at 3")

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-bad-chains", "caption": "Five runs of four chains each, with their R̂."}}
figure, panels = plt.subplots(1, 5, figsize=(10.5, 2.6))
for axes, (name, values) in zip(panels, chains.items(), strict=True):
    axes.plot(values.T, lw=0.5)
    axes.set(title=f"{name}\n" + rf"$\hat R$ = {r_hat[name]:.2f}", xlabel="step")
    axes.title.set_fontsize(9)
panels[0].set_ylabel(r"$\theta$")
plt.show()

# %% [markdown]
# ## In practice
#
# * Start chains far apart, throw the warm-up away, and look at the traces.
# * Report every average with its Monte Carlo standard error; two averages differ only if they differ by several of these.
# * Thinning loses information; thin only to save memory.
# * Random-walk Metropolis needs a number of steps in proportion to the dimension. Gradients do better: {doc}`/book/foundations/hamiltonian_dynamics`.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-chain-order
#
# Show that a product $P_1P_2$ of two kernels with the same stationary law has that law too. Is it in detailed balance if both are?
# ```
#
# ```{solution} ex-chain-order
# :class: dropdown
#
# $\pi P_1P_2 = \pi P_2 = \pi$. Detailed balance would need $P_1P_2 = P_2P_1$, which fails in general: stationarity composes, reversibility does not.
# ```
#
# ```{exercise}
# :label: ex-chain-tau
#
# Compute $\tau$ for the autoregression $\theta_{t+1} = a\theta_t + N(0, 1 - a^2)$. What happens for negative $a$?
# ```
#
# ```{solution} ex-chain-tau
# :class: dropdown
#
# $\rho_k = a^k$, so $\tau = (1 + a)/(1 - a)$. For negative $a$ it is below one: draws that alternate are worth more than independent ones, for the mean.
# ```
#
# ```{exercise}
# :label: ex-chain-independent
#
# Propose from a fixed density $q$, whatever the present state. What is the acceptance probability? When does this chain get stuck for long?
# ```
#
# ```{solution} ex-chain-independent
# :class: dropdown
#
# $\min\bigl(1, \frac{\pi(\theta')q(\theta)}{\pi(\theta)q(\theta')}\bigr)$. It stays long where $\pi/q$ is large: in tails of $\pi$ that $q$ does not reach.
# ```
#
# ## Further reading
#
# {cite:t}`metropolis1953`, {cite:t}`hastings1970`; {cite:t}`vehtari2021` on diagnostics.
