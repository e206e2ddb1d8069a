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
# Level: first course · Reading: about 90 minutes, without the exercises · Running: about 15 seconds
# ```
#
# A ball that rolls without friction, kicked now and then in a random direction, visits every place in proportion to its probability.
#
# **You will learn** to
#
# * say where most of the probability lies in many dimensions, and why momentum helps to get about there,
# * turn Hamiltonian dynamics into a Markov chain and prove that it leaves its target invariant,
# * say why the integrator's error needs a correction step, and see what happens without,
# * tune the step size and the number of steps, and avoid resonance,
# * recognise Langevin dynamics and partial refreshment as special cases,
# * measure the gain over a random walk in effective samples per gradient.
#
# **You will need** {doc}`/book/tutorial/markov_chains` and {doc}`/book/tutorial/hamiltonian_dynamics`.

# %%
import warnings

import arviz
import matplotlib.pyplot as plt
import torch

from booklib.claims import claim
from booklib.figures import COLOURS, TRUTH, plot_contours, use_style
from booklib.play import play
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
# ## Where the probability lies, and why momentum
#
# Take a standard Gaussian in $d$ dimensions. Its density is largest at the mode, $\theta = 0$. How far from there is a draw?
# The square of its distance, $\lvert\theta\rvert^2$, is a sum of $d$ independent squares, with mean $d$ and standard deviation $\sqrt{2d}$: it is $d + \sqrt{2d}\,x$, where $x$ has mean 0 and variance 1. Since $\sqrt{d + \sqrt{2d}\,x} \approx \sqrt d + x/\sqrt2$, the distance is about $\sqrt d$, give or take $1/\sqrt2$, however large $d$ is.
# In many dimensions, then, nearly all the probability lies in a thin shell, the *typical set*. The density is larger inside, but there is hardly any room.

# %% mystnb={"figure": {"caption": "A standard Gaussian. Above: the density of the distance from the mode, in 1, 10 and 100 dimensions. Below: 100 dimensions; how far from the mode one comes on twenty paths that leave a draw $\\theta$ in random directions $r$: on straight ones, $\\theta + tr$ (black), and on those of a rolling ball, $\\theta\\cos t + r\\sin t$ (blue). Grey: the shell, $\\sqrt d \\pm 2$.", "name": "fig-typical-set"}, "image": {"alt": "Above, three densities of the distance from the mode: for one dimension largest at zero, for ten a hump at 3, for a hundred a hump of the same width at 10. Below, over the time from 0 to pi, twenty black curves that rise from the grey band at once, and twenty blue ones that stay in it."}} tags=["hide-input"]
figure, (above, below) = plt.subplots(2, 1, figsize=(5.2, 5.6))
distance = torch.linspace(0.01, 14, 500, dtype=torch.float64)
for dim, style in ((1, ":"), (10, "--"), (100, "-")):
    half = torch.tensor(dim / 2, dtype=torch.float64)
    log_density = (dim - 1) * distance.log() - distance**2 / 2
    log_density -= (half - 1) * torch.log(torch.tensor(2.0)) + torch.lgamma(half)
    above.plot(distance, log_density.exp(), style, color="black", label=f"$d$ = {dim}")
above.set(xlabel=r"distance from the mode, $|\theta|$", ylabel="density")
above.legend(loc="upper center")
generator = torch.Generator().manual_seed(0)
there, direction = torch.randn(2, 20, 100, generator=generator)
time = torch.linspace(0, torch.pi, 101)[:, None, None]
below.axhspan(8, 12, color=TRUTH, alpha=0.35, lw=0)
for points, name in (
    (there + time * direction, "random walk"),
    (there * time.cos() + direction * time.sin(), "HMC"),
):
    below.plot(time[:, 0, 0], points.norm(dim=-1), color=COLOURS[name], lw=0.7)
below.set(
    xlabel="time $t$",
    ylabel="distance from the mode",
    ylim=(0, 22),
    xticks=[0, torch.pi / 2, torch.pi],
    xticklabels=["0", "π/2", "π"],
)
plt.show()

# %% [markdown]
# The upper part of {numref}`fig-typical-set` shows the shell: with $d$ it moves away from the mode, and keeps its width.
# A sampler has to get about *in* this shell, and its lower part shows two ways.
#
# A random walk goes straight on, in a random direction. In many dimensions two random directions are nearly at right angles. So $\lvert\theta + tr\rvert^2 \approx \lvert\theta\rvert^2 + t^2\lvert r\rvert^2 \approx d + t^2d$: the black paths leave the shell at once, into places of low density, and only steps with $t$ of the order $d^{-1/2}$ are accepted. That makes many small steps, and each forgets where the last one went.
#
# A ball that rolls in the bowl $U = \frac12\lvert\theta\rvert^2$ with the momentum $r$ goes to $\theta\cos t + r\sin t$, by {eq}`eq-rotation` in every coordinate.
# Its parts, too, are nearly at right angles, and both $\theta$ and $r$ have a length of about $\sqrt d$; so the square of its distance is nearly $d\cos^2t + d\sin^2t = d$. The blue paths stay in the shell: the gradient, which always points to the mode, bends the path just enough. And after a quarter of a turn, $t = \frac\pi2$, the ball is at $r$: every coordinate is new.
# That is what momentum is for. The rest of this chapter makes a sampler of it.

# %% tags=["hide-input"]
half_dim, squares = torch.tensor(50.0).double(), torch.tensor([5, 8, 12]).double() ** 2
mode, low, high = torch.special.gammainc(half_dim.expand(3), squares / 2)
claim(
    "Probability that a standard Gaussian in 100 dimensions lies between 8 and 12 from "
    "its mode",
    high - low,
    at_least=0.99,
    because="the law of χ² with 100 degrees of freedom",
    kind="exact",
)
claim(
    "Probability that it lies nearer than 5",
    mode,
    at_most=1e-8,
    because="the law of χ² with 100 degrees of freedom",
    kind="exact",
)

# %% [markdown]
# ## From a density to a ball
#
# Let the target be $\pi(\theta) \propto e^{-U(\theta)}$. Take minus its logarithm, $U$, as a landscape. Invent a momentum $r$, independent of the position, and look at the joint density
#
# $$
# \pi(\theta, r) \propto e^{-H(\theta, r)} = e^{-U(\theta)}\,e^{-\frac12r^\top M^{-1}r}.
# $$ (eq-joint)
#
# It is a product. So its marginal law in $\theta$ is the target, and whoever can draw $(\theta, r)$ has only to forget $r$; and its marginal in $r$ is $N(0, M)$, which we can draw from at once.
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
# where $w = Sz$, so that $z = Sw$ and $dz = dw$. The right side is the flow from $B$ to $A$: detailed balance. A refusal moves no probability.
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
    "Largest difference between 30 draws of the dozen lines and of the package",
    (torch.stack(by_hand) - by_package).abs().max(),
    at_most=1e-9,
    because="the same rule and the same random numbers; rounding",
    kind="exact",
)

# %% [markdown]
# The package does the same for many chains at once. It can also take a random number of steps, leave out the correction, and keep a part of the old momentum, all of which are explained below.
#
# ```{literalinclude} ../../sgmc/kernels/hmc.py
# :language: python
# :pyobject: HMC.step
# ```

# %%
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

# %% mystnb={"figure": {"caption": "Left: one trajectory of 20 leapfrog steps on a Gaussian with correlation 0.95. Right: 20 steps of random-walk Metropolis from the same place, with a step size of 0.25, about the valley's width.", "name": "fig-trajectory"}, "image": {"alt": "Two long narrow contour plots along the diagonal. Left, the trajectory zigzags along the whole valley from its lower left to its upper right. Right, the random walk is a small tangle near its start."}} tags=["hide-input"]
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
# In {numref}`fig-trajectory` the trajectory bounces between the walls of the valley, and all the while goes along it. The random walk, for the same number of steps, stays about where it was.
#
# ## Why the correction step
#
# In the bowl $U = \tfrac12\theta^2$ leapfrog keeps the shadow $\tilde H = \tfrac12(1 - \tfrac{\varepsilon^2}4)\theta^2 + \tfrac12r^2$ exactly, and $H$ only nearly ({prf:ref}`thm-shadow`).
# Without the correction step, then, both moves keep $e^{-\tilde H}$: leapfrog does by construction, and drawing $r$ afresh does because $r$ is $N(0, 1)$ and independent there too. So the chain samples the shadow, whose variance is
#
# $$
# \frac1{1 - \varepsilon^2/4},
# $$ (eq-uncorrected-variance)
#
# whatever the number of steps, if only the end of a trajectory depends on $r$ (three steps of $\varepsilon = 1$ end at $-\theta$, and keep every variance: the resonance below). At $\varepsilon = 1$ that is a third too wide; with the correction it is right ({numref}`fig-correction`). {prf:ref}`thm-uncorrected-hmc` has the same for any Gaussian.
# The formula can be tested without any drawing. In the bowl a trajectory is linear, $\theta' = a\theta + br$, and two trajectories tell $a$ and $b$. A variance $v$ that stays as it is must solve $v = a^2v + b^2$, because $r$ has variance one and is independent of $\theta$.
# A chain without the correction step is not useless: its error is of the order $\varepsilon^2$, and it can be made small. With a stochastic gradient there will be no other choice.

# %%
bowl = Gaussian.standard(1, dtype=torch.float64)


def uncorrected_variance(step_size, num_steps=2):
    """The variance that HMC without correction keeps in the bowl."""
    starts = torch.eye(2, dtype=torch.float64)[:, :, None]  # θ = 1, r = 0 and back
    a, b = leapfrog(bowl.gradient, *starts, step_size, num_steps)[0].flatten()
    return float(b**2 / (1 - a**2))


law = {h: uncorrected_variance(h) for h in (0.5, 1.0, 1.5)}

# %% tags=["hide-input"]
claim(
    "Largest relative distance of uncorrected HMC's exact variance from 1/(1 − ε²/4), "
    "at ε = 0.5, 1 and 1.5",
    max(abs(v * (1 - h**2 / 4) - 1) for h, v in law.items()),
    at_most=1e-9,
    because="the solution of v = a²v + b²; rounding",
    kind="exact",
)

# %%
start = bowl.exact_samples(10_000, torch.Generator().manual_seed(1))
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

# %% mystnb={"figure": {"caption": "Variance of $\\theta$ under HMC in the bowl, whose true variance is 1 (grey), against the step size; trajectories of length about 1.6. Without the correction step it follows the shadow's variance (dashed). The error bars are smaller than the symbols.", "name": "fig-correction"}, "image": {"alt": "Over the step size, dots of HMC at a variance of one throughout, and squares of HMC without correction on a dashed curve that rises from one to above four at a step of 1.75."}} tags=["hide-input"]
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
# In {numref}`fig-correction` the squares, without the correction step, follow the dashed curve of the shadow's variance; the dots, with it, stay at one for every step size.

# %% tags=["hide-input"]
for metropolis, name, exact in ((False, "without", 1 / 0.75), (True, "with", 1.0)):
    value, error = measured[metropolis][sizes.index(1.0)]
    claim(
        f"Measured variance at ε = 1 {name} the correction step",
        value,
        near=round(exact, 6),
        standard_error=error,
        because="10,000 independent chains",
    )

# %% [markdown]
# ## Tuning: step size, number of steps, resonance
#
# Two numbers are to be chosen.
# The step size trades acceptance for distance. The number of steps trades gradients for distance: too few and HMC is a random walk, too many and the trajectory turns back.
# The currency is the *effective sample size per gradient*, with the effective sample size of {eq}`eq-tau`, for the slowest of $\theta_1$, $\theta_2$, $\theta_1^2$ and $\theta_2^2$: a sampler is as good as what it is worst at. A trajectory is charged $L + 1$ gradients, as our code takes them; a code that remembers the gradient at the start pays $L$.
#
# In a bowl of curvature one, a trajectory of time $\varepsilon L = \pi$ ends at $-\theta$: the chain hops from side to side, and $\theta^2$ never changes. That is *resonance*, and there HMC keeps its target without ever reaching it.
# A random number of steps cures it. Here it is uniform between $\frac12L$ and $\frac32L$, and drawn before the trajectory begins, so that the proof above holds for each number of steps ({prf:ref}`thm-random-steps`).
# {numref}`fig-tuning` tries eleven numbers of steps in the bowl, and six step sizes on the Gaussian with correlation 0.95.


# %%
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
by_steps = {
    "fixed": [efficiency(HMC(0.196, L), bowl)[0] for L in steps],
    "random": [efficiency(HMC(0.196, L, jitter=0.5), bowl)[0] for L in steps],
}
step_sizes = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
by_step_size = [
    efficiency(HMC(h, max(1, round(1.5 / h)), jitter=0.5), target) for h in step_sizes
]
resonance = steps.index(16)  # 16 × 0.196 ≈ π

# %% mystnb={"figure": {"caption": "Effective samples per gradient. Above: in the bowl, with $\\varepsilon = 0.196$, against the number of steps; at $\\varepsilon L = \\pi$ (grey) the fixed number resonates. Middle: on the Gaussian with correlation 0.95, trajectories of length 1.5, against the step size; grey: the limit of stability. Below: the acceptance of these.", "name": "fig-tuning"}, "image": {"alt": "Above, on a logarithmic scale, two curves of efficiency over the number of steps; both have their top near eight, and at sixteen the fixed number falls by a factor of hundreds while the random number stays level. In the middle, over the step size, efficiency rises to a flat top at 0.3 to 0.4 and falls to nearly nothing beyond the limit of stability. Below, acceptance falls from one to about 0.1."}} tags=["hide-input"]
figure = plt.figure(figsize=(5.2, 7.2))
above, middle, below = figure.subplots(3, 1, height_ratios=(1.2, 1, 0.8))
for name, style in (("fixed", "o-"), ("random", "s--")):
    above.semilogy(
        steps,
        by_steps[name],
        style,
        ms=4,
        color=COLOURS["HMC"],
        label=f"{name} number of steps",
    )
above.axvline(torch.pi / 0.196, color=TRUTH, lw=1, zorder=0)
above.set(
    xlabel="leapfrog steps $L$",
    ylabel="eff. samples per gradient",
    xticks=range(0, 21, 4),
)
above.legend(loc="lower left")
below.sharex(middle)
for axes, number, name in (
    (middle, 0, "eff. samples per gradient"),
    (below, 1, "acceptance"),
):
    axes.plot(step_sizes, [r[number] for r in by_step_size], "o-", color=COLOURS["HMC"])
    axes.axvline(2 * 0.05**0.5, color=TRUTH, lw=1, zorder=0)
    axes.set(ylabel=name, ylim=(0, None))
middle.tick_params(labelbottom=False)
below.set(xlabel=r"step size $\varepsilon$", ylim=(0, 1.05))
plt.show()

# %% [markdown]
# In the upper panel of {numref}`fig-tuning` look at the grey line: the fixed number of steps falls to almost nothing there, the random number does not.
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
# ### Five steps, nine in ten accepted?
#
# Slides of a {cite:t}`kanpur`, known to us at second hand, name $L \approx 5$ and an acceptance near 90 per cent. What do these cost?
#
# *Ninety per cent* costs about a quarter. With many alike coordinates the energy error $\Delta$ of a trajectory is nearly Gaussian; $E[e^{-\Delta}] = 1$ makes it $N(\tfrac12\delta^2, \delta^2)$, and of these a share of $a = 2\Phi(-\tfrac12\delta)$ is accepted, $\Phi$ being the distribution function of $N(0, 1)$. With $\delta \propto \varepsilon^2$ ({ref}`ex-hmc-dimension`) the worth of a gradient goes as $a\,\varepsilon \propto a\sqrt{-\Phi^{-1}(a/2)}$. It is largest at an acceptance of 0.65 {cite:p}`beskos2013`; at 0.9, with half that step, it is 73 per cent of the best, and with twice that step 21 per cent. To be safe is cheap.
#
# *Five steps* are right for one shape only. Let the narrowest direction have the standard deviation $s$, and take $\varepsilon = s$, half of what it allows. Then a direction of standard deviation $\ell$ turns by the angle $2L\arcsin\tfrac s{2\ell}$ in a trajectory; the correlation $c$ of its start and its end is the cosine of that, and a draw costs $L\,(1 + c)/(1 - c)$ gradients.

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
    ("Worth of twice the best step, over the best", worth[2 * most + 1], 0.21, 0.01),
    ("Gradients a draw for L = 5, ratio of widths 3", gradients_a_draw(5, 3), 4.1, 0.1),
    (
        "Gradients a draw for L = 5, ratio of widths 100",
        gradients_a_draw(5, 100),
        8_000,
        10,
    ),
    (
        "The least gradients a draw for the ratio 100, any L up to a quarter turn",
        min(gradients_a_draw(num_steps, 100) for num_steps in range(1, 158)),
        157,
        1,
    ),
):
    claim(statement, value, near=near, within=within, because="formula", kind="exact")

# %% [markdown]
# Where the widths differ three times, five steps are near a quarter of a turn, the best there is. Where they differ a hundred times, five steps are a random walk: 8,000 gradients a draw, against 157 with a quarter of a turn.
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
# A rejected proposal must turn round, $r \leftarrow -r$. The proof above is about the move $S$, which ends with a flip of the momentum. Where the momentum survives we flip once more, after the decision, in order to go on. So an accepted proposal is flipped twice, i.e. not at all; a rejected one is flipped once, so it turns round ({prf:ref}`thm-partial-refreshment`).

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
# But a random walk is free to gamble. Let its proposals have a size $\varepsilon$ far above $s$. Most of them land on the slopes, and are refused; some happen to land in the valley, and these go far.
#
# * With *one* narrow direction a share of about $s/\varepsilon$ lands in the valley, so there is one move in $\varepsilon/s$ steps. The walk needs $(\ell/\varepsilon)^2$ moves of length $\varepsilon$, that is $\ell^2/(\varepsilon s)$ steps. The larger $\varepsilon$ the better, up to $\varepsilon = \ell$, where the price is $\ell/s = \sqrt\kappa$: no more than HMC's.
# * With $k$ narrow directions all of them must be hit at once. The share is $(s/\varepsilon)^k$, and the price $(\ell/\varepsilon)^2(\varepsilon/s)^k$ steps. For $k = 2$ that is $\kappa$ whatever $\varepsilon$ is, and from $k = 3$ on it grows with $\varepsilon$: the gamble is lost.
#
# So two dimensions, where everything can be pictured, flatter the random walk. With more of them it has $\kappa$ to pay where HMC has $\sqrt\kappa$.
#
# Now try it, on $d$ variables of variance one with correlation $\rho$ between any two. Their covariance has $s^2 = 1 - \rho$ in $d - 1$ directions and $\ell^2 = 1 + (d - 1)\rho$ in one.
# Each method gets a step that suits it. All are multiples of $s$, and shrink with the dimension, because every coordinate adds to what a proposal may get wrong: HMC's steps like $d^{-1/4}$ ({ref}`ex-hmc-dimension`), the random walk's like $d^{-1/2}$, or rather like the number $d - 1$ of narrow directions to this power.
# Langevin's shrink like $d^{-1/6}$: the same reasoning, with the error of a single step, which is of the order $\varepsilon^3$. The powers of `2 / dim` in the code say this, with a factor of one at $d = 2$.
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

# %% mystnb={"figure": {"caption": "Effective samples per gradient (per energy for the random walk) on equally correlated Gaussians, each method at a good setting. Above: two dimensions, against the correlation. Below: correlation 0.9, against the dimension.", "name": "fig-hmc-gain"}, "image": {"alt": "Two plots on logarithmic scales with three falling lines. Above, over the correlation, HMC is highest, the random walk runs below it in parallel, Langevin falls steeply. Below, over the dimension, HMC falls little, random walk and Langevin fall to a small part of it."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(2, 1, figsize=(5.2, 5.6), sharey=True)
for name, marker, colour in zip(
    ("random walk", "Langevin", "HMC"),
    "so^",
    (COLOURS["random walk"], COLOURS["SGLD"], COLOURS["HMC"]),
    strict=True,
):
    for axes, results in ((left, by_correlation), (right, by_dimension)):
        axes.semilogy(
            [f"{x:g}" for x in results],
            [best[name] for best in results.values()],
            marker + "-",
            ms=5,
            color=colour,
            label=name,
        )
left.set(xlabel=r"correlation $\rho$", ylabel="eff. samples per gradient")
left.legend(loc="lower left")
right.set(xlabel="dimension $d$", ylabel="eff. samples per gradient")
plt.show()

# %% [markdown]
# In {numref}`fig-hmc-gain` compare the slopes. In two dimensions all three fall as the correlation grows; the random walk keeps its distance from HMC, and Langevin drops away. With the dimension the random walk falls steeply, and HMC far less.

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
    at_most=2,
    because="it was 0.7 to 1.1 over five seeds",
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
# ## In practice
#
# * Aim for an acceptance between 0.6 and 0.9 {cite:p}`beskos2013,betancourt2014`; near one, the step is too small for its price.
# * Make the number of steps random, or let an algorithm choose it {cite:p}`hoffman2014`.
# * Standardise the variables, or give a mass matrix.
# * HMC follows gradients; it does not find other modes. Start chains in different places, and look at $\hat R$.
# * Every gradient here reads all the data. With a million examples that is the end of it, and the reason for the next part of the book.
#
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | joint density | $\pi(\theta, r) \propto e^{-U(\theta)}\,e^{-\frac12r^\top M^{-1}r}$ | {eq}`eq-joint` |
# | acceptance | $\min\bigl(1, e^{H(\theta, r) - H(\theta', r')}\bigr)$ | {prf:ref}`alg-hmc` |
# | variance without correction, in the bowl | $1/(1 - \varepsilon^2/4)$ | {eq}`eq-uncorrected-variance` |
# | limit of stability | $\varepsilon < 2s$, with $s$ the smallest standard deviation | {prf:ref}`thm-shadow` |
# | steps of a good trajectory | about $\sqrt\kappa = \ell/s$ | {ref}`ex-mass` |
# | Langevin proposal | $\theta - \frac{\varepsilon^2}2M^{-1}\nabla U(\theta) + \varepsilon M^{-1}r$ | {eq}`eq-langevin-proposal` |
# | partial refreshment | $r \leftarrow \sqrt{1 - \phi^2}\,r + \phi\,N(0, M)$ | {prf:ref}`thm-partial-refreshment` |
#
# ## Change it
#
# * In the sizes of the section on the correction step write `2.1` for `1.75`, a step beyond the limit of stability. Without the correction the chain runs away, and its last square leaves the figure; the corrected chain keeps the variance one.
# * In `by_steps` write `jitter=0.1` for `jitter=0.5`. At the resonance the trajectories have 15, 16 or 17 steps, all of them bad: the claim on the resonance shows ✗.
# * In the section on mass write `mass=1.0` for `mass=target.precision`. The step 0.8 is far beyond the limit of the narrow direction, hardly a proposal is accepted, and the claim shows ✗.
#
# ## Exercises
#
# ````{exercise} Write it yourself
# :label: ex-hmc-write
#
# Add partial refreshment to `hmc_step`, for a single leapfrog step.
#
# ```python
# def refreshed_step(theta, r, step_size, phi, generator):
#     """Move from θ and r by one leapfrog step with partial refreshment."""
#     start = ...  # keep a part of r, draw the rest
#     ...  # one leapfrog step, and the energy gained
#     return ..., ...  # the next position and momentum, accepted or not
# ```
#
# What happens to the momentum after a refusal?
# Assignment 1 of {doc}`/book/practice/teaching` has you build the whole of HMC from its parts.
# ````
#
# ```{solution} ex-hmc-write
# :class: dropdown
#
# The code is in the next cell. After a refusal the momentum that the step *started* with turns round.
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
    "Largest difference between 100 draws with partial refreshment by hand and by the "
    "package",
    (torch.stack(by_hand) - by_package).abs().max(),
    at_most=1e-9,
    because="the same rule and the same random numbers; rounding",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-hmc-nan
#
# A proposal has an infinite or undefined energy. What must the correction step do with it?
# ```
#
# ```{solution} ex-hmc-nan
# :class: dropdown
#
# Reject it. An infinite energy means a density of zero. An undefined one means that the trajectory left the region where $U$ can be computed; the trajectory back would meet the same trouble, so refusing both ways keeps detailed balance.
# ```
#
# ```{exercise}
# :label: ex-hmc-resonance
#
# Show that exact dynamics for a time $\pi$ in the bowl gives a chain whose $\theta^2$ never changes. For which other times is $\theta$ drawn independently?
# ```
#
# ```{solution} ex-hmc-resonance
# :class: dropdown
#
# {eq}`eq-rotation` at $t = \pi$ is $(\theta, r) \mapsto (-\theta, -r)$, whatever the fresh momentum was. At $t = \frac\pi2$ and its odd multiples it is $\theta' = \pm r$, a draw that owes nothing to $\theta$: a quarter of a turn is the best trajectory.
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
# $1 - \varepsilon C = \sqrt{1 - \phi^2} \approx 1 - \phi^2/2$, so $C \approx \phi^2/(2\varepsilon)$. The noise has the variance $\phi^2 \approx 2C\varepsilon$: that is the noise which {doc}`/book/tutorial/sghmc` injects. With $\varepsilon = 0.2$ and $\phi = 0.5$, as above, the momentum lasts for a time of about $1/C \approx 1.6$, as long as a good trajectory.
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
# Slides of a {cite:t}`munich`, known to us at second hand, follow the dynamics by the *modified* Euler method, which {doc}`/book/tutorial/hamiltonian_dynamics` calls symplectic: kick, then drift, a whole step each. Is {prf:ref}`alg-hmc` right with it in the place of leapfrog? With drift before kick? What if a coin chooses between the two before each trajectory?
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
    chain += torch.diag(1 - chain.sum(1))  # refusals
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
# {cite:t}`duane1987` invented it, {cite:t}`neal2011` brought it to statistics, {cite:t}`betancourt2017` explains it by geometry.
