# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Which splitting, and how much friction
#
# ```{div} page-head
# Level: second course · Reading: about 30 minutes, without the exercises · Running: about 8 seconds
# ```
#
# ```{index} ! splitting, ! BAOAB, ! UBU
# ```
#
# {doc}`/book/tutorial/sghmc` takes one discretisation of its equation and one friction.
# This page compares: the order of the updates, measured; other ways to split the same equation, at one gradient a step; and the friction that mixes fastest.
#
# **You will learn** to
#
# * write a step as a list of moves, from which come both the sampler and its exact law,
# * compare splittings at equal cost,
# * choose the friction, and say for which question it is the best.
#
# **You will need** {doc}`/book/tutorial/sghmc`, and the box on linear chains in {doc}`/book/tutorial/langevin`.

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt
import torch

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.scores.diagnostics import expectation
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.splittings import Splitting, flows, linear_chain, sghmc_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Steps are large on purpose, and chains many and short.
warnings.filterwarnings("ignore", message=".*too wide|.*do not agree")

# %% [markdown]
# ## Where the gradient is taken
#
# Algorithm 2 moves first and takes the gradient at the new position.
# Several libraries update position and momentum from the same old state instead (explicit Euler; {doc}`/book/appendix/errata` names them).
# As $\varepsilon \to 0$ both solve the same equation.
# At a finite step the difference matters, because, seen from the new position $\theta$, the old one was $\theta - \varepsilon r$, and for $d = M = 1$
#
# $$
# U'(\theta - \varepsilon r) = U'(\theta) - \varepsilon U''(\theta)\,r + O(\varepsilon^2).
# $$
#
# The gradient at the old position is thus the right gradient together with a force $+\varepsilon U''r$ along the velocity: where $U'' > 0$ it is negative friction.
# Noise was injected for the friction $C$, but only $C - \varepsilon U''$ is left.
# In a bowl of curvature $a$ the exact variance is, in place of {eq}`eq-sghmc-variance` ({prf:ref}`thm-explicit-euler-variance`),
#
# $$
# \begin{aligned}
# \sigma_{\text{old}}^2 ={} &\frac{T_{\text{eff}}}a\cdot\frac C{C - \varepsilon a}\\
# &\cdot\frac{2 - \varepsilon C + \varepsilon^2a}{2 - \varepsilon C + \tfrac12\varepsilon^2a}.
# \end{aligned}
# $$ (eq-explicit-euler-variance)
#
# The new position costs a bias of order $\varepsilon^2$, the lost friction one of order $\varepsilon$ ({numref}`fig-order-of-updates`), and with less friction it is worse, since the same $\varepsilon a$ is lost from a smaller $C$.

# %% mystnb={"figure": {"caption": "Exact bias of the variance in the bowl against the step size, $C = 3$, $V = 4$, $\\hat B = B$: of order $\\varepsilon$ with the gradient at the old position, of order $\\varepsilon^2$ at the new one.", "name": "fig-order-of-updates"}, "image": {"alt": "Two rising straight lines on logarithmic scales. The dashed one, of the old position, is far above the other and half as steep."}} tags=["hide-input"]
one = torch.eye(1, dtype=torch.float64)
step_sizes = 0.4 * 0.5 ** torch.arange(7, dtype=torch.float64)
biases = {
    old: torch.stack(
        [
            sghmc_chain(
                one, h, 3.0, 4.0, 2.0 * h, explicit_euler=old
            ).stationary_covariance()[0, 0]
            - 1
            for h in step_sizes.tolist()
        ]
    )
    for old in (True, False)
}
figure, axes = plt.subplots(figsize=(5.2, 3.0))
axes.loglog(step_sizes, biases[True], "--", color=COLOURS["explicit Euler"])
axes.loglog(step_sizes, biases[False], color=COLOURS["SGHMC"])
axes.text(0.0065, 0.04, "gradient at the old position", color=COLOURS["explicit Euler"])
axes.text(0.05, 1e-4, "gradient at the new position", color=COLOURS["SGHMC"])
axes.set(xlabel=r"step size $\varepsilon$", ylabel="bias of the variance")
plt.show()

# %% tags=["hide-input"]
alpha, k = 3 * step_sizes, step_sizes**2
formulas = {
    False: 1 / (1 - k / (4 - 2 * alpha)),
    True: 3 / (3 - step_sizes) * (2 - alpha + k) / (2 - alpha + k / 2),
}
claim(
    "Largest error of the two formulas, seven step sizes",
    max((biases[old] + 1 - formulas[old]).abs().max() for old in biases),
    at_most=1e-10,
    because="against the discrete Lyapunov equation; rounding",
    kind="exact",
)
for old, name, factor in ((True, "old", 2), (False, "new", 4)):
    claim(
        f"Bias at ε = 0.0125 over that at half of it, {name} position",
        biases[old][-2] / biases[old][-1],
        near=factor,
        within=0.1,
        because="a factor of 2 is order ε, of 4 order ε²",
        kind="exact",
    )

# %% [markdown]
# Does the argument hold where the curvature changes its sign?
# In the double well $U = -2\theta^2 + \theta^4$ the lost friction $\varepsilon U''(\theta)$ makes the chain too hot in the wells, where $U'' > 0$, and too cold on the hill between them.
# Probability moves from hot to cold, onto the hill, and $E[\theta^2]$ falls.
# Both samplers are lists of moves:
#
# ```{literalinclude} ../../sgmc/splittings/flows.py
# :language: python
# :pyobject: sghmc
# ```
#
# ```{literalinclude} ../../sgmc/splittings/flows.py
# :language: python
# :pyobject: explicit_euler_sghmc
# ```

# %%
well, noise_variance, step_size, friction = DoubleWell(), 4.0, 0.1, 3.0
noise_estimate = 0.5 * step_size * noise_variance  # B = ½εV = 0.2
lists = {
    "new": flows.sghmc(step_size, friction, noise_estimate),
    "old": flows.explicit_euler_sghmc(step_size, friction, noise_estimate),
}
draws = {
    position: sample(
        Splitting(moves, num_steps=10),
        NoisyGradient(well, noise_variance),
        torch.zeros(4_000, 1),
        num_samples=400,
        warm_up=20,
        seed=2,
    )
    for position, moves in lists.items()
}

# %% [markdown]
# Explicit Euler's bias of $E[\theta^2]$ is about twelve times as large: five per cent too small, against 0.4.

# %% tags=["hide-input"]
exact_square = expectation(well, lambda x: x**2, -4, 4)
for position, near, within in (("new", -0.0041, 0.005), ("old", -0.0505, 0.007)):
    square, _ = draws[position].mean_and_standard_error(lambda x: x**2)
    claim(
        f"Relative bias of E[θ²], gradient at the {position} position",
        square / exact_square - 1,
        near=near,
        within=within,
        because="a run ten times as long; the standard error is 0.001",
    )
on_the_hill = {
    position: (run.samples.abs() < 0.5).double().mean()
    for position, run in draws.items()
}
claim(
    "Share of the samples on the hill, |θ| < ½, old position over new",
    on_the_hill["old"] / on_the_hill["new"],
    near=1.265,
    within=0.025,
    because="4,000 chains each",
)

# %% [markdown]
# ## A splitting is a list of flows
#
# The right side of the SGHMC equation {eq}`eq-sghmc` is a sum, and each of its parts alone is easy to follow.
# To follow them in turn is to *split* the equation.
# Drift (A) and kick (B) can be followed exactly, for any time.
# So can friction together with its noise, the *Ornstein–Uhlenbeck* process $dr = -CM^{-1}r\,dt + N(0, 2C\,dt)$ (O), and even friction, noise and drift together (U), the motion of a ball in a fluid without a force {cite:p}`chandrasekhar1943`.
# The letters name the lists.
# *BAOAB* {cite:p}`leimkuhler2013` and *UBU* ({cite:t}`zapatero2017`, {cite:t}`sanzserna2021`) read the same from both sides, and that symmetry makes their bias of order $\varepsilon^2$ on a Gaussian.
#
# ```{literalinclude} ../../sgmc/splittings/flows.py
# :language: python
# :pyobject: ubu
# ```
#
# One list gives two things.
# `Splitting` follows it: that is a sampler.
# `linear_chain` composes what each flow does to $(\theta, r)$ on a Gaussian target: that is the exact law of this sampler, with its step size and its gradient noise.
# A new integrator thus has its sharpest test before its first sample.
#
# To compare fairly, every list gets one gradient a step, as one would run it.
# BAOAB has two half kicks, but the last of one step and the first of the next stand at the same position and share their gradient: B A O A, with a whole kick.
# The table has the exact variances at $\varepsilon = 0.5$ and $C = 1$ in the bowl, where 1 is right.


# %%
def baoa(step_size, friction):
    """BAOAB with its two half kicks as one, at one gradient a step."""
    drift = flows.Drift(step_size / 2)
    friction_and_noise = flows.ornstein_uhlenbeck_flow(step_size, friction)
    return [flows.Kick(step_size), drift, friction_and_noise, drift]


splittings = {"Algorithm 2": flows.sghmc, "BAOAB": baoa, "UBU": flows.ubu}


def exact_variance(name, step_size, noise_variance=0.0):
    chain = linear_chain(
        splittings[name](step_size, friction=1.0), torch.eye(1), noise_variance
    )
    return float(chain.stationary_covariance()[0, 0])


# %% tags=["hide-input"]
show_table(
    ["splitting", "exact gradients", "gradient noise V = 1"],
    [
        [name, *(f"{exact_variance(name, 0.5, V):.4f}" for V in (0.0, 1.0))]
        for name in splittings
    ],
)

# %% [markdown]
# With exact gradients BAOAB has no bias; UBU is four per cent too narrow and Algorithm 2 nine per cent too wide.
# With $V = 1$ all three are wider by about a quarter, because nothing is subtracted for the gradient's noise: at $B = \tfrac12\varepsilon V = \tfrac14$ and $C = 1$ the temperature is about 1.25 for all.
# The choice of the splitting therefore matters for the bias of the step, and hardly for what the gradient noise does; against that only $\hat B$ helps.
# ({doc}`/book/tutorial/sgnuts` has a palindrome that subtracts $\hat B$, and has no bias on a Gaussian target.)

# %% tags=["hide-input"]
claim(
    "Bias of BAOAB's variance at ε = 0.5, exact gradients",
    exact_variance("BAOAB", 0.5) - 1,
    near=0,
    within=1e-12,
    because=(
        "exact law: on a Gaussian target its positions have no bias at any stable step"
    ),
    kind="exact",
)
claim(
    "Bias of UBU's variance at ε = 0.5 over that at ε = 0.25",
    (exact_variance("UBU", 0.5) - 1) / (exact_variance("UBU", 0.25) - 1),
    near=4,
    within=0.1,
    because="exact laws: of order ε², 0.041 and 0.010 too narrow",
    kind="exact",
)
excess = [
    exact_variance(name, 0.5, 1.0) / exact_variance(name, 0.5) for name in splittings
]
claim(
    "Largest distance of the three ratios, V = 1 over exact gradients, from 1 + B/C",
    max(abs(ratio - 1.25) for ratio in excess),
    at_most=0.03,
    because="exact laws",
    kind="exact",
)
bowl = Gaussian.standard(1, dtype=torch.float64)
noisy_bowl = NoisyGradient(bowl, 1.0)
start = bowl.exact_samples(10_000, torch.Generator().manual_seed(40))
errors = []
for name, splitting in splittings.items():
    kernel = Splitting(splitting(0.5, friction=1.0), num_steps=4)
    run = sample(kernel, noisy_bowl, start, num_samples=50, warm_up=10, seed=4)
    value, error = run.mean_and_standard_error(lambda x: x**2)
    errors.append(abs(float(value) - exact_variance(name, 0.5, 1.0)) / float(error))
claim(
    "Largest distance of three measured variances, V = 1, in standard errors",
    max(errors),
    at_most=4.5,
    because="10,000 chains each; exceeded by chance once in 49,000 times",
)
by_list, by_kernel = (
    sample(kernel, noisy_bowl, start[:10], num_samples=100, seed=5).samples
    for kernel in (Splitting(flows.sghmc(0.1, 3.0, 0.05)), SGHMC(0.1, 3.0, 0.05))
)
claim(
    "Samples by the list of Algorithm 2's flows and by the kernel SGHMC differ by",
    (by_list - by_kernel).abs().max(),
    at_most=1e-12,
    because="the same moves on the same random numbers; rounding of 100 steps",
    kind="exact",
)

# %% [markdown]
# ## Choosing the friction
#
# Little friction lets the ball swing for long, and noise that was not estimated ($B - \hat B$) heats it by the factor $1 + (B - \hat B)/C$.
# Much friction turns the swing into a random walk.
# What is best in between depends on the question.
# Measure by the integrated {term}`autocorrelation time` $\tau = 1 + 2\sum_{k\ge1}\rho_k$, the number of steps that are worth one independent draw.
#
# Take one dimension with curvature $a$, $M = 1$ and $\hat B = B$, in equilibrium, and small steps.
# Let $\rho(t)$ be the autocorrelation of $\theta$ at a distance $t$ in time.
#
# *Why $\rho$ swings.*
# Fix the state $(\theta_0, r_0)$ at time 0, and average over all noise after it: let $m(t) = E[\theta_t \mid \theta_0, r_0]$.
# Noise has mean zero, so the average of {eq}`eq-sghmc` is $m' = E[r_t \mid \theta_0, r_0]$ and $m'' = -am - Cm'$.
# Now $E[\theta_0^2] = 1/a$, so that $\rho(t) = a\,E[\theta_0\theta_t] = a\,E[\theta_0\,m(t)]$.
# An average of solutions of a linear equation solves it too:
#
# $$
# \begin{gathered}
# \rho'' + C\rho' + a\rho = 0,\\
# \rho(0) = 1, \quad \rho'(0) = a\,E[\theta_0r_0] = 0,
# \end{gathered}
# $$ (eq-oscillator)
#
# because position and momentum are independent in equilibrium.
# This is the *damped oscillator*: a swing with air drag.
#
# *Its integrals.*
# Both $\rho$ and $\rho'$ vanish at infinity.
# Integrate {eq}`eq-oscillator` from 0 to $\infty$, once as it is, once multiplied by $\rho'$, and once multiplied by $\rho$, where $\int\rho\rho'' = -\int\rho'^2$ by parts:
#
# $$
# \begin{aligned}
# 0 - C + a\int\rho &= 0,\\
# 0 + C\int\rho'^2 - \tfrac12a &= 0,\\
# -\int\rho'^2 - \tfrac12C + a\int\rho^2 &= 0.
# \end{aligned}
# $$
#
# The second gives $\int\rho'^2 = a/2C$, and with it the third can be solved.
# The result is
#
# $$
# \begin{aligned}
# \int_0^\infty\rho\,dt &= \frac Ca,\\
# \int_0^\infty\rho^2\,dt &= \frac12\Bigl(\frac1C + \frac Ca\Bigr).
# \end{aligned}
# $$ (eq-friction)
#
# A step takes the time $\varepsilon$, so a sum over steps is about an integral divided by $\varepsilon$, and $\tau \approx \frac2\varepsilon\int_0^\infty\rho\,dt$.
# Three questions have three answers:
#
# * *The mean of $\theta$*: $\tau = 2C/(\varepsilon a)$ steps, the smaller the friction the better.
#   A swinging chain is at $\theta$ as often as at $-\theta$, and its errors cancel; for the mean it can beat independent draws.
# * *The mean of $\theta^2$*, and so every variance: for a Gaussian chain the autocorrelation of $\theta^2$ is $\rho^2$ ({prf:ref}`thm-linear-tau`), where nothing cancels, and $\tau = (1/C + C/a)/\varepsilon$ steps.
#   The best friction is $C = \sqrt a$.
# * *Forgetting a bad start*: the slowest of the two solutions $e^{-\lambda t}$ of {eq}`eq-oscillator` dies fastest at *critical damping*, $C = 2\sqrt a$, where swinging stops.

# %%
frictions = torch.logspace(-1.5, 1, 126, dtype=torch.float64)
chains = [sghmc_chain(one, 0.1, float(c)) for c in frictions]
transition = torch.stack([chain.transition for chain in chains])
column = torch.stack([chain.stationary_covariance()[:, :1] for chain in chains])
correlations = []
for _ in range(8_000):  # all frictions at once, lag by lag
    correlations.append(column[:, 0, 0])
    column = transition @ column
correlations = torch.stack(correlations) / correlations[0]
time_of_mean = 2 * correlations.sum(0) - 1
time_of_square = 2 * correlations.pow(2).sum(0) - 1
time_to_forget = -1 / torch.linalg.eigvals(transition).abs().amax(-1).log()
heated = torch.tensor(
    [
        float(sghmc_chain(one, 0.1, float(c), 4.0).stationary_covariance()[0, 0])
        for c in frictions
    ]
)

# %% mystnb={"figure": {"caption": "A standard Gaussian, $\\varepsilon = 0.1$, exact laws. Above, without gradient noise: autocorrelation times of $\\theta$ and $\\theta^2$, and the time in which a bad start is forgotten, against the friction; each of the three questions has its own best friction. Below: what ignoring the gradient noise costs, the stationary variance with $V = 4$ and $\\hat B = 0$; the true variance is 1 (grey).", "name": "fig-friction"}, "image": {"alt": "Above, a dotted line that rises with the friction, a solid one with its lowest point at friction 1, and a dashed one with a sharp lowest point near 2. Below, a line that falls from 7 at the smallest friction to 1."}} tags=["hide-input"]
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.2, 6.0), sharex=True)
upper.loglog(
    frictions, time_of_mean, ":", color=COLOURS["SGHMC"], label=r"$\tau$ of $\theta$"
)
upper.loglog(
    frictions, time_of_square, color=COLOURS["SGHMC"], label=r"$\tau$ of $\theta^2$"
)
upper.loglog(frictions, time_to_forget, "--", color="black", lw=1, label="bad start")
upper.set(ylabel="time (steps)", ylim=(0.5, None))
upper.legend(loc="lower right")
lower.semilogx(frictions, heated, color=COLOURS["SGHMC"], label=r"$\hat B = 0$")
lower.axhline(1, color=TRUTH, zorder=0)
lower.set(xlabel=r"friction $C$", ylabel="stationary variance", ylim=(0, None))
lower.legend()
plt.show()

# %% [markdown]
# In the upper panel of {numref}`fig-friction` the three curves have their lowest points at three different frictions.
# A friction between $\sqrt a$ and $2\sqrt a$ is right for all purposes but the first.
# In many dimensions take the $a$ of the softest direction, which is the slowest.
# The lower panel shows why a very small friction is dangerous: what was not estimated then heats the most.

# %% tags=["hide-input"]
claim(
    "Autocorrelation time of θ at C = 1 over 2C/(εa)",
    time_of_mean[75] / 20,
    near=1,
    within=0.01,
    because="exact law at ε = 0.1; the step's error is of order ε² = 0.01",
    kind="exact",
)
claim(
    "Autocorrelation time of θ² at C = 1 over (1/C + C/a)/ε",
    time_of_square[75] / 20,
    near=1,
    within=0.05,
    because=(
        "exact law at ε = 0.1; a sum over steps differs from the integral by half a "
        "step"
    ),
    kind="exact",
)
claim(
    "The friction with the smallest autocorrelation time of θ²",
    frictions[time_of_square.argmin()],
    near=1,
    within=0.1,
    because="√a = 1 up to the step; a grid of 126 frictions, 5 % apart",
    kind="exact",
)
claim(
    "The friction that forgets fastest",
    frictions[time_to_forget.argmin()],
    near=1.9,
    within=0.15,
    because="critical damping: 2√a − ε = 1.9 for the discrete chain; the grid",
    kind="exact",
)
claim(
    "The smallest autocorrelation time of θ, in steps, where independent draws have 1",
    time_of_mean.min(),
    at_most=0.7,
    because="exact law, at the smallest friction of the grid",
    kind="exact",
)

claim(
    "Largest relative distance of the variance with B̂ = 0 from 1 + B/C",
    (heated / (1 + 0.2 / frictions) - 1).abs().max(),
    at_most=0.01,
    because="exact laws; the step's own bias is of order ε²",
    kind="exact",
)

# %% [markdown]
# ## Change it
#
# * Set `DoubleWell(), 4.0, 0.1, 3.0` to `DoubleWell(), 4.0, 0.2, 3.0`, which doubles the step: SGHMC's bias is several times as large, and explicit Euler diverges.
# * Set `[flows.Kick(step_size), drift, friction_and_noise, drift]` to `flows.baoab(step_size, friction)`, with two half kicks and two minibatches a step: with exact gradients nothing changes, and with $V = 1$ the variance falls to 1.136, at twice the price.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-sghmc-overdamped
#
# Set $\alpha = 1$.
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
# Eliminate the momentum: show that on $U = \tfrac12a\theta^2$ with $M = 1$ both orders of updates make the positions alone a recursion $\theta_{t+2} = \varphi_1\theta_{t+1} + \varphi_2\theta_t + \zeta$.
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
# They explode where a denominator first vanishes. For the new position that is at $\varepsilon^2a = 4 - 2\varepsilon C$; for the old one at $\varepsilon = C/a$, where the lost friction eats up all there is, or, if $C > 2\sqrt a$, already at $2\varepsilon C = 4 + \varepsilon^2a$, which for $C = 3$ and $a = 1$ is $\varepsilon = 3 - \sqrt5 = 0.76$.
# With $C = 1$ and $a = 4$ that is at $\varepsilon = 0.78$ and at $\varepsilon = 0.25$.
# ```


# %% tags=["hide-input"]
def radius(step_size, explicit_euler, friction=1.0, a=4):
    """The largest size of an eigenvalue of a step."""
    chain = sghmc_chain(a * one, step_size, friction, explicit_euler=explicit_euler)
    return torch.linalg.eigvals(chain.transition).abs().max()


claim(
    "The two chains are stable just below 0.7808 and 0.25, and not just above",
    bool(radius(0.78, False) < 1 < radius(0.782, False))
    and bool(radius(0.249, True) < 1 < radius(0.251, True)),
    because="eigenvalues of the step",
    kind="exact",
)
claim(
    "With C = 3 and a = 1 the old position is stable at ε = 0.763, and not at 0.765",
    bool(radius(0.763, True, 3.0, 1) < 1 < radius(0.765, True, 3.0, 1)),
    because="eigenvalues of the step; 3 − √5 = 0.7639",
    kind="exact",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`leimkuhler2016` is the textbook on splittings of Langevin dynamics, and {cite:t}`sanzserna2021` bound their errors in Wasserstein distance.
