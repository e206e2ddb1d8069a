# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Paths: step size, length, mass
#
# ```{div} page-head
# Level: second course · Reading: about 37 minutes, without the exercises · Running: about 15 seconds
# ```
#
# ```{index} ! tuning HMC, ! mass matrix, ! partial refreshment, ! Langevin proposal
# ```
#
# {doc}`/book/tutorial/hamiltonian_monte_carlo` needs a step size, a number of steps and a mass.
# This page measures what each of them does, from the error of a single path to the price of an independent sample, and compares HMC with its relatives.
#
# **You will learn** to
#
# * measure the order of an integrator's error,
# * tune step size and number of steps in effective samples per gradient,
# * choose a mass, and say what Langevin dynamics and partial refreshment have to do with HMC,
# * say when a random walk is as good.
#
# **You will need** {doc}`/book/tutorial/hamiltonian_dynamics` and {doc}`/book/tutorial/hamiltonian_monte_carlo`.

# %% tags=["hide-input"]
import warnings

import arviz
import matplotlib.pyplot as plt
import torch

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.rivals.euler import explicit_euler, symplectic_euler
from sgmc import sample
from sgmc.integrators import leapfrog
from sgmc.kernels import HMC
from sgmc.other_kernels import RandomWalkMetropolis
from sgmc.targets import DoubleWell, Gaussian

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Bad step sizes are tried on purpose below, and what sample remarks of them is known.
warnings.filterwarnings("ignore", message=".*(do not agree|were accepted|never moved)")

well, bowl = DoubleWell(), Gaussian.standard(1, dtype=torch.float64)
target = Gaussian.correlated(0.95)
precise = Gaussian.correlated(0.95, dtype=torch.float64)
integrators = {
    "explicit Euler": explicit_euler,
    "symplectic Euler": symplectic_euler,
    "leapfrog": leapfrog,
}

# %% [markdown]
# ## The order of the error
#
# Halve the step: by how much does the error of the energy fall?
# A method is *of order $p$* if, as $\varepsilon \to 0$, the error after a fixed time is at most a constant times $\varepsilon^p$.
# Leapfrog costs one gradient a step, like Euler, but has order two ({prf:ref}`thm-leapfrog-order`).
# The reason is symmetry: a step of $-\varepsilon$ exactly undoes a step of $\varepsilon$, and that forces the odd error terms to vanish {cite:p}`hairer2006`.
# We measure the largest energy error over a time of 4 from $(0, 1)$ in the double well; the slope is that between the third-smallest and the smallest step.

# %%
step_sizes = 0.04 * 0.5 ** torch.arange(7, dtype=torch.float64)


def energy_error(integrator, step_size):
    state = torch.zeros(1, 1).double(), torch.ones(1, 1).double()
    values = [well.energy(state[0]) + 0.5 * state[1][:, 0] ** 2]
    for _ in range(round(4 / step_size)):
        state = integrator(well.gradient, *state, step_size)
        values.append(well.energy(state[0]) + 0.5 * state[1][:, 0] ** 2)
    values = torch.cat(values)
    return (values - values[0]).abs().max()


errors = {
    name: torch.stack([energy_error(f, float(h)) for h in step_sizes])
    for name, f in integrators.items()
}
slopes = {
    name: float((e[-1] / e[-3]).log() / (step_sizes[-1] / step_sizes[-3]).log())
    for name, e in errors.items()
}

# %% mystnb={"figure": {"caption": "Largest energy error over a time of 4 in the double well against the step size. Grey, dashed: slopes one and two.", "name": "fig-order"}, "image": {"alt": "A log-log plot of the energy error against the step size with three straight lines: explicit and symplectic Euler run parallel to a dashed line of slope one, leapfrog, far below, to one of slope two."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.6))
for name, values in errors.items():
    axes.loglog(step_sizes, values, "o-", ms=4, color=COLOURS[name], label=name)
axes.loglog(step_sizes, 8 * step_sizes, "--", color=TRUTH)
axes.loglog(step_sizes, 2 * step_sizes**2, "--", color=TRUTH)
axes.set(xlabel=r"step size $\varepsilon$", ylabel=r"largest error of $H$")
axes.legend()
plt.show()

# %% [markdown]
# In {numref}`fig-order` both axes are logarithmic, so that the order is the slope: leapfrog's line is twice as steep as the other two.

# %% tags=["hide-input"]
for name, order in (("explicit Euler", 1), ("symplectic Euler", 1), ("leapfrog", 2)):
    claim(
        f"The energy error of {name} has order",
        slopes[name],
        near=order,
        within=0.1,
        because=(
            "theory; at the smallest steps the next power of ε still adds a few "
            "hundredths"
        ),
        kind="exact",
    )

# %% [markdown]
# ## Tuning: step size, number of steps, resonance
#
# Two numbers are to be chosen.
# The step size trades acceptance for distance. The number of steps trades gradients for distance: too few and HMC is a random walk, too many and the trajectory turns back.
# The currency is the *effective sample size per gradient*, with the effective sample size of {eq}`eq-tau`, for the slowest of $\theta_1$, $\theta_2$, $\theta_1^2$ and $\theta_2^2$: a sampler is as good as what it is worst at. A trajectory is charged $L + 1$ gradients, as our code takes them; a code that remembers the gradient at the start pays $L$.
#
# In the bowl the resonance at $\varepsilon L = \pi$ can be computed, but for rejections.
# There $L$ steps turn the ball by the angle $L\omega$, with $\omega = 2\arcsin\frac\varepsilon2$ ({ref}`ex-frequency`), so a sample keeps the part $\cos L\omega$ of $\theta$, and $\theta$ has the autocorrelations $\rho_k = a^k$ with $a = E\cos L\omega$, the mean over a random $L$.
# In the same way $\theta^2$ has $\rho_k = b^k$ with $b = E\cos^2L\omega$, and the autocorrelation time {eq}`eq-tau` is $(1 + \rho_1)/(1 - \rho_1)$.
# The random number of steps is uniform between $\frac12L$ and $\frac32L$.
# {numref}`fig-tuning` tries eleven numbers of steps in the bowl, and six step sizes on the Gaussian with correlation 0.95.


# %%
def per_gradient(num_steps, spread, step_size=0.196):
    """Effective samples per gradient in the bowl, exact but for rejections."""
    steps = torch.arange(
        round(num_steps * (1 - spread)), round(num_steps * (1 + spread)) + 1
    )
    a = (steps * 2 * torch.tensor(step_size / 2, dtype=torch.float64).arcsin()).cos()
    correlation = torch.maximum(a.mean(), (a**2).mean())
    return float((1 - correlation) / (1 + correlation) / (num_steps + 1))


def efficiency(kernel, potential, num_samples=500, chains=40, seed=0):
    """Effective samples per gradient, for the slowest of θ and θ² in the first two
    coordinates, and the acceptance."""
    start = potential.exact_samples(chains, torch.Generator().manual_seed(seed))

    def moments(position):
        return torch.cat([position[:, :2], position[:, :2] ** 2], -1).double()

    draws = sample(
        kernel, potential, start, num_samples=num_samples, seed=seed, collect=moments
    )
    gradients = (
        draws.statistics["num_gradients"][-1, 0]
        if "num_gradients" in draws.statistics
        else num_samples
    )
    sizes = arviz.ess(draws.to_arviz(), method="mean")["position"]
    return float(sizes.min()) / (chains * float(gradients)), float(
        draws.statistics["acceptance"].mean()
    )


steps = [1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]
numbers = range(2, 21)
exact = {
    name: [per_gradient(number, spread) for number in numbers]
    for name, spread in (("fixed", 0.0), ("random", 0.5))
}
by_steps = {
    "fixed": [efficiency(HMC(0.196, L), bowl)[0] for L in steps],
    "random": [efficiency(HMC(0.196, L, jitter=0.5), bowl)[0] for L in steps],
}
step_sizes = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
by_step_size = [
    efficiency(HMC(h, max(1, round(1.5 / h)), jitter=0.5), target) for h in step_sizes
]
resonance = steps.index(16)  # 16 × 0.196 ≈ π

# %% mystnb={"figure": {"caption": "Effective samples per gradient. Upper: in the bowl, with $\\varepsilon = 0.196$, against the number of steps; thin, exact but for rejections; at $\\varepsilon L = \\pi$ (grey) the fixed number resonates. Middle: on the Gaussian with correlation 0.95, trajectories of length 1.5, against the step size; grey: the limit of stability. Lower: the acceptance of these.", "name": "fig-tuning"}, "image": {"alt": "Above, on a logarithmic scale, two curves of efficiency over the number of steps; both have their top near eight, and at sixteen the fixed number falls by a factor of hundreds while the random number stays level. In the middle, over the step size, efficiency rises to a flat top at 0.3 to 0.4 and falls to nearly nothing beyond the limit of stability. Below, acceptance falls from one to about 0.1."}} tags=["hide-input"]
figure = plt.figure(figsize=(5.2, 7.2))
upper, middle, lower = figure.subplots(3, 1, height_ratios=(1.2, 1, 0.8))
for name, style in (("fixed", "o-"), ("random", "s--")):
    upper.semilogy(
        steps,
        by_steps[name],
        style,
        ms=4,
        color=COLOURS["HMC"],
        label=f"{name} number of steps",
    )
    upper.semilogy(numbers, exact[name], lw=0.7, color=TRUTH, zorder=0)
upper.axvline(torch.pi / 0.196, color=TRUTH, lw=1, zorder=0)
upper.set(
    xlabel="leapfrog steps $L$",
    ylabel="eff. samples per gradient",
    xticks=range(0, 21, 4),
    ylim=(1e-5, 0.3),
)
upper.legend(loc="lower left")
lower.sharex(middle)
for axes, number, name in (
    (middle, 0, "eff. samples per gradient"),
    (lower, 1, "acceptance"),
):
    axes.plot(step_sizes, [r[number] for r in by_step_size], "o-", color=COLOURS["HMC"])
    axes.axvline(2 * 0.05**0.5, color=TRUTH, lw=1, zorder=0)
    axes.set(ylabel=name, ylim=(0, None))
middle.tick_params(labelbottom=False)
lower.set(xlabel=r"step size $\varepsilon$", ylim=(0, 1.05))
plt.show()

# %% [markdown]
# In the upper panel of {numref}`fig-tuning` look at the grey line: the fixed number of steps falls to almost nothing there, the random number does not.
# At its best length the fixed number is a third better than the random one; but the best length has to be known.
# The two lower panels share their axis, the step size. Efficiency is largest where the acceptance is already below one: the smallest steps are nearly all accepted, and each is hardly worth its gradient.

# %% tags=["hide-input"]
claim(
    "Effective samples per gradient at the resonance, with jitter over without",
    by_steps["random"][resonance] / by_steps["fixed"][resonance],
    at_least=120,
    because=(
        "without jitter θ² hardly changes; it was 178 to 205 in runs with six seeds"
    ),
)
claim(
    "The same without rejections, exactly",
    exact["random"][14] / exact["fixed"][14],
    at_least=1e6,
    because="a² is 1 − 2·10⁻⁷ there",
    kind="exact",
)
claim(
    "Effective samples per gradient at the best lengths, fixed over random",
    max(exact["fixed"]) / max(exact["random"]),
    near=1.33,
    within=0.05,
    because="exact without rejections",
    kind="exact",
)
best, acceptance = max(by_step_size)
claim(
    "The most efficient of six step sizes is accepted less often than the smallest",
    acceptance < by_step_size[0][1],
    because="the smallest is accepted 99 times in 100; the best had 0.65 or 0.87",
)
claim(
    "Efficiency at the smallest step size, over the best",
    by_step_size[0][0] / best,
    at_most=0.6,
    because="it was 0.43 to 0.45 in runs with six seeds",
)

# %% [markdown]
# ## Which acceptance, and how many steps
#
# What does it cost to be careful, and is there a number of steps that suits everybody?
#
# *An acceptance of ninety per cent*, instead of the best, costs about a quarter of the efficiency. With many alike coordinates the energy error $\Delta$ of a trajectory is nearly Gaussian; $E[e^{-\Delta}] = 1$ makes it $N(\tfrac12\delta^2, \delta^2)$, and of these a share of $a = 2\Phi(-\tfrac12\delta)$ is accepted, $\Phi$ being the distribution function of $N(0, 1)$. With $\delta \propto \varepsilon^2$ ({ref}`ex-hmc-dimension`) the worth of a gradient goes as $a\,\varepsilon \propto a\sqrt{-\Phi^{-1}(a/2)}$. It is largest at an acceptance of 0.65 {cite:p}`beskos2013`; at 0.9, with half that step, it is 73 per cent of the best, and with twice the best step 22 per cent. A step that is too small costs little, and one that is too large costs much.
#
# *Five steps* are right for one shape only. Let the narrowest direction have the standard deviation $s$, and take $\varepsilon = s$, half of what it allows. Then a direction of standard deviation $\ell$ turns by the angle $2L\arcsin\tfrac s{2\ell}$ in a trajectory; the correlation $c$ of its start and its end is the cosine of that, and an independent sample costs $L\,(1 + c)/(1 - c)$ gradients.

# %%
step = torch.linspace(0.001, 1.5, 1_500, dtype=torch.float64)  # in some unit
accepted = 2 * torch.special.ndtr(-(step**2))
worth = accepted * step / (accepted * step).max()
most, safe = int(worth.argmax()), int((accepted - 0.9).abs().argmin())


def gradients_a_draw(num_steps, ratio):
    """Of a direction so many times as wide as the narrowest, for ε = s."""
    angle = 2 * num_steps * torch.tensor(0.5 / ratio, dtype=torch.float64).arcsin()
    return float(num_steps * (1 + angle.cos()) / (1 - angle.cos()))


# %% tags=["hide-input"]
for statement, value, near, within in (
    ("Acceptance of the largest worth, many coordinates", accepted[most], 0.65, 0.005),
    ("Worth at an acceptance of 0.9, over the best", worth[safe], 0.73, 0.005),
    ("The step at this acceptance, over the best", step[safe] / step[most], 0.53, 0.01),
    ("Worth of twice the best step, over the best", worth[2 * most + 1], 0.217, 0.002),
    (
        "Gradients a sample for L = 5, ratio of widths 3",
        gradients_a_draw(5, 3),
        4.1,
        0.1,
    ),
    (
        "Gradients a sample for L = 5, ratio of widths 100",
        gradients_a_draw(5, 100),
        8_000,
        10,
    ),
    (
        "The least gradients a sample for the ratio 100, any L up to a quarter turn",
        min(gradients_a_draw(num_steps, 100) for num_steps in range(1, 158)),
        157,
        1,
    ),
):
    claim(statement, value, near=near, within=within, because="formula", kind="exact")

# %% [markdown]
# Where the widths differ three times, five steps are near a quarter of a turn, the best there is. Where they differ a hundred times, five steps are a random walk: 8,000 gradients a sample, against 157 with a quarter of a turn.
#
# ## Mass
#
# The narrowest direction of the target sets the step size, $\varepsilon < 2s$ for a standard deviation $s$. The widest, with standard deviation $\ell$, sets how long a trajectory should be. So a good trajectory takes about $\ell/s = \sqrt\kappa$ steps, where $\kappa$ is the condition number of the covariance.
# A mass matrix $M \approx \Sigma^{-1}$, the precision of the target, makes all directions alike: heavy where the target is narrow. With exactly that mass HMC on a Gaussian is HMC on a standard Gaussian, whatever the correlation ({ref}`ex-mass`).

# %%
# The coordinates M^{1/2}θ turn one problem into the other, so the acceptances of the
# two chains have the same law.
generator = torch.Generator().manual_seed(3)
with_mass = sample(
    HMC(0.8, 3, mass=target.precision),
    target,
    target.exact_samples(20_000, generator),
    num_samples=5,
    seed=5,
)
standard = sample(
    HMC(0.8, 3),
    Gaussian.standard(2),
    Gaussian.standard(2).exact_samples(20_000, generator),
    num_samples=5,
    seed=6,
)
(a, a_error), (b, b_error) = (
    (m.mean(0).mean(), m.mean(0).std() / 20_000**0.5)
    for m in (
        with_mass.statistics["acceptance"].double(),
        standard.statistics["acceptance"].double(),
    )
)

# %% tags=["hide-input"]
claim(
    "Acceptance with the ideal mass on correlation 0.95, less that on a standard "
    "Gaussian",
    a - b,
    near=0,
    standard_error=(a_error**2 + b_error**2) ** 0.5,
    because="equal in law by a change of coordinates; 20,000 chains each",
)

# %% [markdown]
# ## Two relatives
#
# **Langevin.** With $L = 1$ the proposal is
#
# $$
# \begin{aligned}
# \theta' &= \theta - \tfrac{\varepsilon^2}2M^{-1}\nabla U(\theta) + \varepsilon M^{-1}r,\\
# r &\sim N(0, M),
# \end{aligned}
# $$ (eq-langevin-proposal)
#
# a step downhill and noise: the Metropolis-adjusted Langevin algorithm {cite:p}`roberts1996`. Leave out the correction step, put a minibatch's gradient in place of $\nabla U$, and with $M = I$ and the learning rate $\eta = \varepsilon^2/2$ it is the sampler of {cite:t}`welling2011`. Langevin dynamics is HMC that forgets where it was going after each step: a random walk again, although a guided one.
#
# **Partial refreshment.** Instead of a new momentum take $r \leftarrow \sqrt{1 - \phi^2}\,r + \phi\,N(0, M)$, which leaves $N(0, M)$ invariant too, because the variances add up to $(1 - \phi^2)M + \phi^2M = M$ {cite:p}`horowitz1991`.
# With $L = 1$ and a small $\phi$ the ball keeps its course over many steps. Its momentum decays as if by friction, by the factor $\sqrt{1 - \phi^2} \approx 1 - \phi^2/2$ a step, and noise makes up for what is lost: this is the way to SGHMC.
# After a rejection the momentum must turn round, $r \leftarrow -r$ ({ref}`ex-hmc-write`, {prf:ref}`thm-partial-refreshment`).

# %%
step = 0.3
position = torch.tensor([[0.7, -0.2]], dtype=torch.float64)
noise = torch.tensor([[0.4, 1.1]], dtype=torch.float64)
one_step = leapfrog(precise.gradient, position, noise, step)[0]
langevin = position - step**2 / 2 * precise.gradient(position) + step * noise

refreshed = sample(
    HMC(0.3, 1, refreshment=0.3),
    target,
    target.exact_samples(4_000, generator),
    num_samples=50,
    warm_up=20,
    seed=7,
)
keeping, forgetting = (
    efficiency(HMC(0.2, 1, refreshment=phi), target, 2_000)[0] for phi in (0.5, 1.0)
)

# %% tags=["hide-input"]
claim(
    "One leapfrog step and the Langevin proposal differ by",
    (one_step - langevin).abs().max(),
    at_most=1e-14,
    because="the same algebra",
    kind="exact",
)
value, error = refreshed.mean_and_standard_error(lambda x: x[..., 0] * x[..., 1])
claim(
    "E[θ₁θ₂] with partial refreshment",
    value,
    near=0.95,
    standard_error=error,
    because="4,000 independent chains",
)
claim(
    "Effective samples per gradient of single leapfrog steps of 0.2, momentum "
    "refreshed wholly over refreshed by φ = 0.5",
    forgetting / keeping,
    at_most=0.3,
    because="it was 0.07 to 0.13 over five seeds",
)

# %% [markdown]
# ## Random walk against HMC
#
# Take a long valley: a target that is narrow, of standard deviation $s$, in some directions, and wide, of standard deviation $\ell = s\sqrt\kappa$, in another. How many steps does it take to get from one end to the other?
#
# * *HMC* keeps its course. Its steps are about $s$, the most that leapfrog bears, and the way is $\ell$ long: that makes $\ell/s = \sqrt\kappa$ steps.
# * *Langevin* is held to the same steps, but takes each in a fresh direction. After $n$ of them it is only $s\sqrt n$ away, so that it needs $n = (\ell/s)^2 = \kappa$.
# * A *random walk* with steps of about $s$ needs $\kappa$ of them too, for the same reason.
#
# But a random walk is free to gamble. Let its proposals have a size $\varepsilon$ far above $s$. Most of them land on the slopes, and are rejected; some happen to land in the valley, and these go far.
#
# * With *one* narrow direction a share of about $s/\varepsilon$ lands in the valley, so there is one move in $\varepsilon/s$ steps. The walk needs $(\ell/\varepsilon)^2$ moves of length $\varepsilon$, that is $\ell^2/(\varepsilon s)$ steps. The larger $\varepsilon$ the better, up to $\varepsilon = \ell$, where the price is $\ell/s = \sqrt\kappa$: no more than HMC's.
# * With $k$ narrow directions all of them must be hit at once. The share is $(s/\varepsilon)^k$, and the price $(\ell/\varepsilon)^2(\varepsilon/s)^k$ steps. For $k = 2$ that is $\kappa$ whatever $\varepsilon$ is, and from $k = 3$ on it grows with $\varepsilon$: the gamble is lost.
#
# So two dimensions, where everything can be pictured, flatter the random walk. With more of them it has $\kappa$ to pay where HMC has $\sqrt\kappa$.
#
# Now try it, on $d$ variables of variance one with correlation $\rho$ between any two. Their covariance has $s^2 = 1 - \rho$ in $d - 1$ directions and $\ell^2 = 1 + (d - 1)\rho$ in one.
# Each method gets a step that suits it.
# Steps are proportional to $s$ and shrink with the dimension, because every coordinate adds to the energy error: as $d^{-1/4}$ for HMC ({ref}`ex-hmc-dimension`), as $d^{-1/6}$ for Langevin, whose error is that of a single step, of order $\varepsilon^3$, and as $(d - 1)^{-1/2}$ for the random walk, with the number $d - 1$ of narrow directions.
# The powers of `2 / dim` in the code say this, with a factor of one at $d = 2$.
# Of three settings each for the random walk and for HMC the best counts. An evaluation of the energy, the random walk's only cost, is charged like a gradient.


# %%
def compare(correlation, dim, num_samples):
    """Effective samples per gradient of random walk, Langevin and HMC on equally
    correlated variables."""
    potential = Gaussian(
        (1 - correlation) * torch.eye(dim) + correlation * torch.ones(dim, dim)
    )
    narrow, wide = (1 - correlation) ** 0.5, (1 + (dim - 1) * correlation) ** 0.5
    walks = [
        RandomWalkMetropolis(c * narrow / (dim - 1) ** 0.5) for c in (3.0, 7.0, 20.0)
    ]
    langevin = HMC(1.5 * narrow * (2 / dim) ** (1 / 6), 1)
    steps = [c * narrow * (2 / dim) ** 0.25 for c in (0.7, 1.0, 1.3)]
    trajectories = [HMC(h, round(1.5 * wide / h), jitter=0.5) for h in steps]
    return {
        "random walk": max(
            efficiency(kernel, potential, num_samples)[0] for kernel in walks
        ),
        "Langevin": efficiency(langevin, potential, num_samples)[0],
        "HMC": max(efficiency(kernel, potential, 250)[0] for kernel in trajectories),
    }


by_correlation = {rho: compare(rho, 2, 2_000) for rho in (0.0, 0.9, 0.99)}
by_dimension = {2: by_correlation[0.9]} | {
    dim: compare(0.9, dim, 4_000) for dim in (4, 8)
}

# %% mystnb={"figure": {"caption": "Effective samples per gradient (per energy for the random walk) on equally correlated Gaussians, each method at a good setting. Upper: two dimensions, against the correlation. Lower: correlation 0.9, against the dimension.", "name": "fig-hmc-gain"}, "image": {"alt": "Two plots on logarithmic scales with three falling lines. Above, over the correlation, HMC is highest, the random walk runs below it in parallel, Langevin falls steeply. Below, over the dimension, HMC falls little, random walk and Langevin fall to a small part of it."}} tags=["hide-input"]
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.2, 5.6), sharey=True)
for name, marker, colour in zip(
    ("random walk", "Langevin", "HMC"),
    "so^",
    (COLOURS["random walk"], COLOURS["SGLD"], COLOURS["HMC"]),
    strict=True,
):
    for axes, results in ((upper, by_correlation), (lower, by_dimension)):
        axes.semilogy(
            [f"{x:g}" for x in results],
            [best[name] for best in results.values()],
            marker + "-",
            ms=5,
            color=colour,
            label=name,
        )
upper.set(xlabel=r"correlation $\rho$", ylabel="eff. samples per gradient")
upper.legend(loc="lower left")
lower.set(xlabel="dimension $d$", ylabel="eff. samples per gradient")
plt.show()

# %% [markdown]
# In {numref}`fig-hmc-gain` compare the slopes. In two dimensions all three fall as the correlation grows; the random walk falls about as far as HMC, and Langevin drops away. With the dimension the random walk falls steeply, and HMC far less.

# %% tags=["hide-input"]
claim(
    "Random walk over HMC in effective samples per gradient, 2 dimensions, "
    "correlation 0.99",
    by_correlation[0.99]["random walk"] / by_correlation[0.99]["HMC"],
    at_most=0.8,
    because="it was 0.26 to 0.41 over five seeds",
)
claim(
    "Random walk over Langevin in effective samples per gradient, 2 dimensions, "
    "correlation 0.99",
    by_correlation[0.99]["random walk"] / by_correlation[0.99]["Langevin"],
    at_least=2,
    because="it was 10 to 20 in runs with ten seeds",
)
claim(
    "HMC over random walk in effective samples per gradient, 8 dimensions, "
    "correlation 0.9",
    by_dimension[8]["HMC"] / by_dimension[8]["random walk"],
    at_least=20,
    because="it was 56 to 70 in runs with six seeds; the random walk has κ to pay",
)

claim(
    "HMC over random walk in 2 dimensions: at correlation 0.99, over that without "
    "correlation",
    by_correlation[0.99]["HMC"]
    / by_correlation[0.99]["random walk"]
    / (by_correlation[0.0]["HMC"] / by_correlation[0.0]["random walk"]),
    at_most=2.0,
    because="it was 0.7 to 1.35 over ten seeds",
)
claim(
    "Langevin's fall from correlation 0 to 0.99 over that of HMC, 2 dimensions",
    by_correlation[0.0]["Langevin"]
    / by_correlation[0.99]["Langevin"]
    / (by_correlation[0.0]["HMC"] / by_correlation[0.99]["HMC"]),
    at_least=10,
    because="it was 30 to 42 with four seeds",
)
claim(
    "Fall of the random walk's efficiency from 2 to 8 dimensions over that of HMC's",
    by_dimension[2]["random walk"]
    / by_dimension[8]["random walk"]
    / (by_dimension[2]["HMC"] / by_dimension[8]["HMC"]),
    at_least=6,
    because="it was 21 to 29 in runs with six seeds",
)

# %% [markdown]
# ## Change it
#
# * In `by_steps` write `jitter=0.1` for `jitter=0.5`. At the resonance the paths have 15, 16 or 17 steps, all of them bad: the claim on the resonance shows ✗.
# * In the section on mass write `mass=1.0` for `mass=target.precision`. The step 0.8 is far beyond the limit of the narrow direction, hardly a proposal is accepted, and the claim shows ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-drift-first
#
# Leapfrog may also be written drift–kick–drift, $D_{\varepsilon/2}K_\varepsilon D_{\varepsilon/2}$. Show that it is reversible and keeps volume. What does it conserve in the bowl $U = \tfrac12\theta^2$?
# ```
#
# ```{solution} ex-drift-first
# :class: dropdown
#
# The proof of {prf:ref}`thm-leapfrog` only uses that each factor is a shear that the flip inverts, and that the order is a palindrome. Exchanging the roles of $\theta$ and $r$ turns one scheme into the other, so it conserves $\tfrac12\theta^2 + \tfrac12(1 - \tfrac{\varepsilon^2}4)r^2$.
# ```
#
# ```{exercise}
# :label: ex-mass
#
# Show that leapfrog with mass $M$ is leapfrog with mass $I$ in the coordinates $x = M^{1/2}\theta$, $y = M^{-1/2}r$. What mass is best for $U = \tfrac12\theta^\top A\theta$?
# ```
#
# ```{solution} ex-mass
# :class: dropdown
#
# Multiply the drift $\theta \leftarrow \theta + \varepsilon M^{-1}r$ by $M^{1/2}$: it is $x \leftarrow x + \varepsilon y$. Multiply the kick $r \leftarrow r - \varepsilon\nabla U$ by $M^{-1/2}$: it is $y \leftarrow y - \varepsilon M^{-1/2}\nabla U$, and $M^{-1/2}\nabla U$ is the gradient with respect to $x$, by the chain rule. The quadratic form becomes $x^\top M^{-1/2}AM^{-1/2}x$, the identity for $M = A$: all directions then have the same limit, $\varepsilon < 2$.
# ```
#
# ```{exercise}
# :label: ex-hmc-friction
#
# A friction $C$ takes $\varepsilon C$ of the momentum away in a step, with $M = 1$. Which friction does a partial refreshment by $\phi$ stand for, and which noise goes with it?
# ```
#
# ```{solution} ex-hmc-friction
# :class: dropdown
#
# $1 - \varepsilon C = \sqrt{1 - \phi^2} \approx 1 - \phi^2/2$, so $C \approx \phi^2/(2\varepsilon)$ for small $\phi$.
# The noise has the variance $\phi^2 \approx 2C\varepsilon$: that is the noise which {doc}`/book/tutorial/sghmc` injects.
# With $\varepsilon = 0.2$ and $\phi = 0.5$, as above, $C = (1 - \sqrt{0.75})/0.2 = 0.67$, and the momentum lasts for a time of about $1/C = 1.5$, as long as a good path.
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
# ```{exercise}
# :label: ex-hmc-euler
#
# Follow the dynamics by symplectic Euler in the *modified* order: kick, then drift, a whole step each.
# Is {prf:ref}`alg-hmc` right with it in the place of leapfrog?
# With drift before kick?
# What if a coin chooses between the two before each path?
# ```
#
# ```{solution} ex-hmc-euler
# :class: dropdown
#
# Neither order is right, and the coin is. Backwards in time, and with the momentum flipped, kick–drift becomes drift–kick: so $S = F\circ\Psi^L$ is not its own inverse, and the proof of {prf:ref}`thm-hmc` breaks down. But the two maps are inverse to each other. With a fair coin the flow from $A$ to $B$ by the one is the flow from $B$ to $A$ by the other, and detailed balance is back.
# The cell computes the law of the chain in the bowl on a grid, for two steps of $\varepsilon = \tfrac12$: the variance is 0.76 with the kick first, 1.40 with the drift first, and 1 with the coin. Leapfrog, for the same number of gradients, needs no coin.
# ```


# %% tags=["hide-input"]
def grid_variance(orders, step_size=0.5, num_steps=2):
    """Variance of HMC with symplectic Euler in the bowl, the order drawn at random."""
    place = torch.linspace(-7, 7, 401, dtype=torch.float64)
    fresh = torch.linspace(-6, 6, 801, dtype=torch.float64)
    weights = torch.exp(-(fresh**2) / 2)
    chain = torch.zeros(401, 401, dtype=torch.float64)
    for order in orders:
        x, r = place[:, None].expand(-1, 801), fresh.expand(401, -1)
        for _ in range(num_steps):
            for move in order:
                if move == "kick":
                    r = r - step_size * x
                else:
                    x = x + step_size * r
        gained = (x**2 + r**2 - place[:, None] ** 2 - fresh**2) / 2
        mass = torch.exp(-gained.clamp(min=0)) * weights / weights.sum() / len(orders)
        at = ((x + 7) / (place[1] - place[0])).clamp(0, 400)
        below = at.floor().long().clamp(max=399)
        chain.scatter_add_(1, below, mass * (1 - at + below))
        chain.scatter_add_(1, below + 1, mass * (at - below))
    chain += torch.diag(1 - chain.sum(1))  # rejections
    settled = torch.linalg.matrix_power(chain, 2**14)[200]
    return float((settled * place**2).sum())


kick_first, drift_first = ("kick", "drift"), ("drift", "kick")
for name, orders, expected in (
    ("the kick first", [kick_first], 0.759),
    ("the drift first", [drift_first], 1.396),
    ("a fair coin", [kick_first, drift_first], 1.0),
):
    claim(
        f"Variance of HMC with modified Euler in the bowl, {name}",
        grid_variance(orders),
        near=expected,
        within=0.002,
        because="the law of the chain on a grid of 401 places; its own error is 0.0003",
        kind="exact",
    )

# %% [markdown]
# ## Further reading
#
# {cite:t}`beskos2013` and {cite:t}`betancourt2014` on the acceptance, {cite:t}`neal2011` on everything else, and {cite:t}`hoffman2014` for an algorithm that chooses the number of steps.
