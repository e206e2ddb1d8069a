# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Do falling steps buy exactness?
#
# ```{div} page-head
# Level: second course · Reading: about 19 minutes, without the exercises · Running: about 7 seconds
# ```
#
# ```{index} ! learning rate schedule, ! step size schedule, ! decreasing step size
# ```

# %%
import numpy as np

from booklib.page.claims import check, near

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import torch

from booklib.page.figures import COLOURS, use_style
from booklib.page.play import play
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.noise import OnlineNoise
from sgmc.splittings import flows, linear_chain, sghmc_chain
from sgmc.targets import Gaussian, NoisyGradient

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# The error of a step vanishes with the step ({doc}`/book/further/price`). Should the steps therefore fall during a run, as the learning rate does in optimisation?
#
# **Not if you know how long you will run.** To leading order no schedule of $K$ slowly falling steps is better than the constant step of the same average size. If the step's bias is of order $p$, the best steps that fall as $t^{-1/(2p + 1)}$ have a larger error than the best constant step: by 10 per cent for $p = 1$ and by 5 for $p = 2$, in long runs.
# Falling steps spare us the choice of $K$: their error goes on shrinking for as long as the chain runs.
#
# The proof is short. A step of size $\varepsilon_t$ moves the chain on by the time $\varepsilon_t$, so we average over time,
#
# $$
# \hat E[f] = \frac{\sum_t\varepsilon_tf(\theta_t)}{\sum_t\varepsilon_t},
# $$ (eq-weighted)
#
# for SGLD with $\eta_t$ in place of $\varepsilon_t$.
# Let a constant step $\varepsilon$ have the bias $c_1\varepsilon^p$, $p \ge 1$, and let the steps fall slowly. To leading order the average then has the bias $c_1\sum\varepsilon_t^{p+1}/\sum\varepsilon_t$. Its variance is $c_2/\sum\varepsilon_t$, because independent samples come with the time.
# Now take the constant step $\bar\varepsilon = \frac1K\sum\varepsilon_t$ instead. The time is the same, so the variance is the same. The bias is smaller in size, because $x^{p+1}$ is convex:
#
# $$
# \frac{\sum_t\varepsilon_t^{p+1}}{\sum_t\varepsilon_t} = \frac{\frac1K\sum_t\varepsilon_t^{p+1}}{\bar\varepsilon} \ge \frac{\bar\varepsilon^{\,p+1}}{\bar\varepsilon} = \bar\varepsilon^{\,p},
# $$ (eq-power-mean)
#
# with equality only if all steps are equal.
# A start far away adds to {eq}`eq-weighted` a bias in $1/\sum\varepsilon_t$, to leading order the same for all schedules of the same total time, so it does not favour falling steps. (Large first steps do shorten a warm-up that is discarded.)
# With equal weights the bias is $\frac{c_1}K\sum\varepsilon_t^p$ and the variance $\frac{c_2}{K^2}\sum1/\varepsilon_t$. Both powers are convex, so both are again at least those of $\bar\varepsilon$.
#
# How much is lost? Here is the exact error in the bowl, with $V = 4$, $C = 2$ and the right noise estimate of each step, for every schedule. The recursion follows the covariance of $(\theta, r)$, and uses $\operatorname{Cov}(\theta_t^2, \theta_s^2) = 2\operatorname{Cov}(\theta_t, \theta_s)^2$.
# All chains begin in equilibrium.
# *A guess before you look: by which factor is the error of the best schedule that falls as $(1 + t/10)^{-1/5}$ larger than that of the best constant step?*


# %%
def errors_of(steps, noise=0.0):
    """The exact root mean square errors of time averages of θ², a row of steps each;
    noise is the part of V that no estimate subtracts."""
    weights = steps / steps.sum(1, keepdims=True)
    now = np.tile(np.eye(2), (len(steps), 1, 1))  # the covariance of (θ, r)
    past = 0 * now  # Σ w_s c cᵀ over the past, c = Cov((θ_t, r_t), θ_s)
    mean, variance = 0.0, 0.0
    move = np.array([[0 * steps + 1, steps], [-steps, 1 - 2 * steps - steps**2]])
    for F, step, w in zip(move.transpose(3, 2, 0, 1), steps.T, weights.T, strict=True):
        now, past = F @ now @ F.mT, F @ past @ F.mT
        now[:, 1, 1] += 4 * step + noise * step**2
        mean = mean + w * now[:, 0, 0]
        variance = variance + 4 * w * past[:, 0, 0] + 2 * (w * now[:, 0, 0]) ** 2
        past = past + w[:, None, None] * now[:, :, :1] @ now[:, :1]
    return np.sqrt((mean - 1) ** 2 + variance)


def schedules(K, gamma):
    """Rows of K steps that fall as (1 + t/10)^−γ, from first steps of many sizes."""
    return np.geomspace(0.03, 0.8, 35)[:, None] * (1 + np.arange(K) / 10) ** -gamma


constant, falling = (errors_of(schedules(4_000, gamma)).min() for gamma in (0, 1 / 5))
print(f"best constant step {constant:.4f}, best falling ones {falling:.4f}")
check(
    "falling-over-constant",
    falling / constant,
    near(1.06, 0.03),
    kind="exact",
    digits=3,
)

# %% mystnb={"figure": {"caption": "SGHMC in the bowl, $V = 4$, $C = 2$: exact root mean square error of the average of $\\theta^2$ over $K$ steps. Discs: the best constant step for each $K$, without a noise estimate (orange) and with the right one (pink). Dashed: slopes $-\\frac13$ and $-\\frac25$. Crosses: the best steps that fall as $(1 + t/10)^{-1/5}$, with the right estimate of each step.", "name": "fig-falling-error"}, "image": {"alt": "On logarithmic axes, two straight falling lines with dashed lines along them. The upper one, without an estimate, is less steep. Crosses lie just above the lower one."}} tags=["hide-input"]
lengths = (250, 1_000, 4_000, 16_000, 64_000)
none, right, fallen = [], [], []
for K in lengths:
    constant, falls = schedules(K, 0)[::2], schedules(K, 1 / 5)[20::2]
    noise = np.repeat([4.0, 0.0, 0.0], [18, 18, 8])
    found = errors_of(np.concatenate([constant, constant, falls]), noise)
    none.append(found[:18].min())
    right.append(found[18:36].min())
    fallen.append(found[36:].min())
figure, axes = plt.subplots(figsize=(5.2, 3.4))
for errors, label, colour, rate in (
    (none, r"constant, $\hat B = 0$", "naive SGHMC", 1 / 3),
    (right, r"constant, $\hat B = B$", "SGHMC", 2 / 5),
):
    axes.loglog(lengths, errors, "o-", ms=4, color=COLOURS[colour], label=label)
    slope = [errors[-1] * (K / lengths[-1]) ** -rate for K in lengths]
    axes.loglog(lengths, slope, "--", color="black", lw=0.8)
label = r"falling, $\hat B_t = B_t$"
axes.loglog(lengths, fallen, "x", ms=8, color="black", label=label)
axes.set(xlabel="number of steps $K$", ylabel=r"error of the average of $\theta^2$")
axes.legend()
plt.show()

# %% tags=["hide-input"]
check("falling-long", fallen[-1] / right[-1], near(1.06, 0.03), kind="exact", digits=3)
for name, errors, left in (("none", none, 16 ** (-1 / 3)), ("right", right, 16**-0.4)):
    ratio = errors[-1] / errors[-3]
    check(f"left-{name}", ratio, near(left, 0.02), kind="exact", digits=3)
one = torch.eye(1, dtype=torch.float64)
excess = [
    float(linear_chain(flows.baoab(size, 2.0), one, 4.0).stationary_covariance()[0, 0])
    - 1
    for size in (0.1, 0.05)
]
check("baoab", excess[0] / excess[1], near(2, 0.05), kind="exact", digits=3)

# %% [markdown]
# At 4,000 steps the best falling steps have {c}`falling-over-constant` times the error of the best constant one, and at 64,000 steps {c}`falling-long` times; {numref}`fig-falling-error` has other lengths. In the limit of long runs it is 1.05 ({ref}`ex-falling-worse`), which is reached slowly, because the first steps are too large for the leading order.
# The right noise estimate gains much more than any schedule.
#
# ## At which rate does the error fall?
#
# The squared error of a constant step is $c_1^2\varepsilon^{2p} + c_2/(\varepsilon K)$.
# It is least for $\varepsilon$ of the order of $K^{-1/(2p + 1)}$, so the error is of the order of $K^{-p/(2p + 1)}$ ({ref}`ex-falling-rates`).
# Without an estimate $p = 1$, because the gradient noise raises the {term}`temperature` to about $1 + \varepsilon V/2C$. With the right one $p = 2$, because only the error of the step is left. So the errors are of the order of
#
# $$
# K^{-1/3} \quad(\hat B = 0), \qquad K^{-2/5} \quad(\hat B = B).
# $$ (eq-sghmc-rates)
#
# Independent samples would have $K^{-1/2}$: at sixteen times the length a quarter of the error. Here {c}`left-none` of the error is left without an estimate and {c}`left-right` with the right one.
#
# {cite:t}`chen2015` have the squares of these rates, for integrators of the first and of the second order, and state the second rate for SGHMC with minibatches and a symmetric splitting.
# For fresh minibatches without an estimate this cannot hold. A kick of $-\varepsilon\zeta$ with a noise $\zeta$ of variance $V$ adds $\varepsilon^2V$ to the variance of the momentum, hence $\varepsilon V$ per unit of time. This is of the first order, whatever the integrator: BAOAB, which has order two, divides its bias in the bowl by {c}`baoab` at half the step, and not by 4.
# {cite:t}`lu2025` prove it for another integrator of order two.
#
# ## Annealing the learning rate: what falling steps need
#
# **Enough time.** A start is forgotten as $e^{-cs}$ with the time $s = \sum_t\varepsilon_t$, so this sum has to diverge. The second condition of {cite:t}`welling2011`, that the sum of squares is finite, is not needed ({prf:ref}`thm-sgld-consistent`).
#
# **An estimate that falls with the step.** The data give $V$, so $B_t = \tfrac12\varepsilon_tV$ falls with the step, and an estimate of the first step, if it is kept, becomes too large. By {eq}`eq-temperature` the temperature then tends to $1 - \hat B/C$, and no longer run helps ({ref}`ex-falling-kept`).
# In the package `SGHMC(falling, 2.0, OnlineNoise("scalar"))` takes a function of the sample's number as its step size, and makes the estimate of each step anew ({doc}`/book/tutorial/estimating_the_noise`).
#
# **To remember:** if the number of steps is known, to leading order no slowly falling schedule is better than the constant step of the same average; falling steps buy that one need not know it.
#
# ## Change it
#
# * In the first visible cell of code set `4 * step + noise * step**2` to `4 * step + noise * step**2 - 0.8 * step**2`, an estimate a fifth too large: the constant step comes down to 0.047 and the falling ones to 0.061. The estimate makes the chain too narrow and the error of the step makes it too wide, and at one constant step size the two cancel. Without knowing $V$ one cannot find this step size.
# * In the same cell set `np.arange(K) / 10` to `np.arange(K) / 1_000`, so that the steps begin to fall only after a thousand: the error is 0.0714, hardly above the constant step's. The less the steps fall, the better.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-falling-rates
#
# ★ Find the best step and the rate of the error for the squared error $c_1^2\varepsilon^{2p} + c_2/(\varepsilon K)$, and with them {eq}`eq-sghmc-rates`.
# How much faster than with $p = 1$ does one get to a tenth of the error with $p = 2$?
# ```
#
# ```{solution} ex-falling-rates
# :class: dropdown
#
# The derivative is zero where $2p\,c_1^2\varepsilon^{2p+1} = c_2/K$, so that $\varepsilon \propto K^{-1/(2p+1)}$, and the error is of the order of $\varepsilon^p \propto K^{-p/(2p+1)}$: a third for $p = 1$, two fifths for $p = 2$.
# A tenth of the error asks for $10^3 = 1000$ times as many steps with $p = 1$, and for $10^{5/2} \approx 316$ times as many with $p = 2$, about a third of that.
# ```
#
# ```{exercise}
# :label: ex-falling-worse
#
# ★★ Let $\varepsilon_t = c\,t^{-\gamma}$ with $\gamma = 1/(2p + 1)$, the exponent of the best constant step. By how much is the error larger for long runs, each at its best $c$?
# ```
#
# ```{solution} ex-falling-worse
# :class: dropdown
#
# Write $\gamma p = p/(2p+1)$ and $1 - \gamma = 2p/(2p+1)$. The sums are $\sum\varepsilon_t \approx cK^{1-\gamma}/(1 - \gamma)$ and $\sum\varepsilon_t^{p+1} \approx c^{p+1}K^{1-\gamma-\gamma p}/(1 - \gamma - \gamma p)$, where $1 - \gamma - \gamma p = \frac p{2p+1}$ is half of $1 - \gamma$.
# With the constant step $cK^{-\gamma}$ as the measure, the bias is twice as large and the variance $\frac{2p}{2p+1}$ times as large.
# The least value of $\alpha c^{2p} + \beta/c$ is in proportion to $\alpha^{1/(2p+1)}\beta^{2p/(2p+1)}$. So the squared error is $4^{1/(2p+1)}\bigl(\frac{2p}{2p+1}\bigr)^{2p/(2p+1)}$ times as large, and the error 1.10 times for $p = 1$ and 1.05 times for $p = 2$.
# ```
#
# ````{exercise}
# :label: ex-falling-kept
#
# ★★ **Write it yourself.** SGHMC in the bowl, $V = 4$ and $C = 2$, makes five steps of the size $\varepsilon_t = 0.4\,(1 + t/3)^{-1/3}$ for its sample $t$, $t < 300$. Compute the exact variance of $\theta$ in each sample: without an estimate, with the right one of the first step, kept, and with the right one of each step.
#
# ```python
# def widths(step_sizes, estimate_of):
#     """The variance of θ after each sample; estimate_of(step_size) is its B̂."""
#     ...
# ```
#
# To which variance does the chain with the kept estimate come? From which step size on is it worse than none?
# ````
#
# ````{solution} ex-falling-kept
# :class: dropdown
#
# The covariance follows $\Sigma_{t+1} = F_t\Sigma_tF_t^\top + Q_t$ with the transition and the noise of the five steps:
#
# ```python
# def widths(step_sizes, estimate_of):
#     covariance, found = torch.eye(2, dtype=torch.float64), []
#     for size in step_sizes:
#         chain = sghmc_chain(one, size, 2.0, 4.0, estimate_of(size)).power(5)
#         covariance = chain.transition @ covariance @ chain.transition.T
#         covariance = covariance + chain.noise_covariance
#         found.append(float(covariance[0, 0]))
#     return torch.tensor(found)
# ```
#
# The last step is 0.086, where $B$ has fallen to 0.17 while the kept $\hat B$ is 0.8: the temperature is $1 + (0.17 - 0.8)/2 = 0.69$, and the variance {c}`kept-end`. As $B_t$ vanishes it tends to $1 - \hat B/C = 0.6$. With the estimate of each step the variance is {c}`each-end`, and the package's chains have {c}`package`.
#
# The temperature is wrong by $B_t/C$ without an estimate, and by $(\hat B - B_t)/C$ with the kept one. The second is larger from half of the first step size on.
# ````


# %% tags=["hide-input"]
def widths(step_sizes, estimate_of):
    covariance, found = torch.eye(2, dtype=torch.float64), []
    for size in step_sizes:
        chain = sghmc_chain(one, size, 2.0, 4.0, estimate_of(size)).power(5)
        covariance = chain.transition @ covariance @ chain.transition.T
        covariance = covariance + chain.noise_covariance
        found.append(float(covariance[0, 0]))
    return torch.tensor(found)


def schedule(t):
    return 0.4 * (1 + t / 3) ** (-1 / 3)


sizes = [schedule(t) for t in range(300)]
kept = widths(sizes, lambda size: 0.8)
each = widths(sizes, lambda size: 2 * size)
check("kept-end", kept[-1], near(0.69, 0.01), kind="exact", digits=3)
check("each-end", each[-1], near(1.0, 0.01), kind="exact", digits=4)
kernel = SGHMC(schedule, 2.0, OnlineNoise("scalar"), num_steps=5)
bowl = Gaussian.standard(1, dtype=torch.float64)
start = bowl.exact_samples(10_000, torch.Generator().manual_seed(60))
run = sample(kernel, NoisyGradient(bowl, 4.0), start, num_samples=300, seed=6)
squares = run.samples[-1].square()
right, error = near(float(each[-1])), float(squares.std()) / 100
check("package", squares.mean(), right, error=error, because="the exact recursion")

# %% [markdown]
# ## Further reading
#
# {cite:t}`welling2011` brought falling steps to sampling with minibatches. {cite:t}`teh2016` find their best exponent for SGLD, and {cite:t}`chen2015` the rates for integrators of any order.
