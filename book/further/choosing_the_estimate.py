# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # How many numbers must B̂ have?
#
# ```{div} page-head
# Level: second course · Reading: about 33 minutes, without the exercises · Running: about 8 seconds
# ```
#
# ```{index} ! thermostat, ! Nosé–Hoover thermostat, ! diagonal noise estimate
# ```

# %%
import torch

from booklib.page.claims import check, near
from booklib.page.prices import ONE, at_one_per_cent, price_of
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.minibatches import Fresh
from sgmc.noise import OnlineNoise
from sgmc.posteriors import LinearRegression
from sgmc.splittings import langevin_chain, sghmc_chain

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt

from booklib.page.claims import at_most_errors
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.prices import least_prices, show_prices

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Chains are many and short, and some have a wrong temperature on purpose.
warnings.filterwarnings("ignore", message=".*too wide|.*too narrow|.*do not agree")

# %% [markdown]
# The tutorial subtracts an estimate $\hat B$ of the gradient noise that comes from the minibatch of each step.
# Should it be one number, one number for each coordinate, or a matrix?
# Or can a *thermostat*, which adjusts the friction by itself, do without it?
#
# **$\hat B$ has to match the noise in every direction**, or to be small against the friction.
# One number is enough if the noise is alike in all directions; a diagonal is enough if the gradients of different coordinates are uncorrelated; otherwise it takes the matrix.
# The thermostat of {cite:t}`ding2014` is one number.
#
# The example is a linear regression with three coefficients, whose posterior is known.
# The first two inputs have the correlation 0.8, the third is smaller and uncorrelated with them.
# The errors have the variance $N$, which makes all numbers of order one: the curvatures are 1.8 along $(1, 1, 0)$, 0.2 along $(1, -1, 0)$ and 0.1 along $(0, 0, 1)$.

# %%
N, step_size, friction = 500, 0.2, 1.2
shape = torch.tensor([[1, 0.8, 0], [0.8, 1, 0], [0, 0, 0.1]], dtype=torch.float64)
generator = torch.Generator().manual_seed(4)
normal = torch.randn(N, 4, generator=generator, dtype=torch.float64)
uncorrelated = torch.linalg.qr(normal[:, :3]).Q * N**0.5
inputs = uncorrelated @ torch.linalg.cholesky(shape).T
targets = inputs.sum(1) + N**0.5 * normal[:, 3]
options = {"noise_variance": float(N), "prior_variance": 1e6, "batch_size": 100}
regression = LinearRegression(
    inputs, targets, **options, minibatches=Fresh(replacement=True)
)
residuals = targets - inputs @ regression.mean
gradients = inputs * residuals[:, None] / N  # of the examples, at the posterior mean
B = 0.5 * step_size * N**2 / 100 * torch.cov(gradients.T, correction=0)
estimates = {
    "one number": OnlineNoise("scalar"),
    "diagonal": OnlineNoise("diagonal"),
    "matrix": OnlineNoise("full", averaging=0.9),
}
runs = {}
start = regression.mean.expand(400, -1).contiguous()
for kind, estimate in estimates.items():
    kernel = SGHMC(step_size, friction, estimate, num_steps=10)
    runs[kind] = sample(kernel, regression, start, num_samples=30, warm_up=20, seed=1)

# %% mystnb={"figure": {"caption": "The first two coefficients. Left: $\\hat B$ as a diagonal and as a matrix, which reach equally far along each axis. Right: two standard deviations of the posterior, exact (grey), and of the samples with the diagonal and with the matrix.", "name": "fig-estimate-correlated"}, "image": {"alt": "Left: two ellipses that touch the same horizontal and vertical lines, one a circle, one long and narrow along the diagonal. Right: the posterior's grey ellipse lies along the other diagonal; the ellipse of the matrix is its edge, that of the diagonal is shorter and wider."}} tags=["hide-input"]
angle = torch.linspace(0, 2 * torch.pi, 200, dtype=torch.float64)
circle = torch.stack([angle.cos(), angle.sin()])
looks = {
    "diagonal": {"color": COLOURS["SGHMC"], "ls": "--"},
    "matrix": {"color": COLOURS["SGHMC"], "ls": "-"},
}
figure, (left, right) = plt.subplots(1, 2, figsize=(5.6, 3.3))
for kind, matrix in (("diagonal", torch.diag(B.diagonal())), ("matrix", B)):
    left.plot(*(torch.linalg.cholesky(matrix[:2, :2]) @ circle), **looks[kind])
    samples = (runs[kind].samples - regression.mean).flatten(0, 1)[:, :2]
    spread = torch.linalg.cholesky(samples.T @ samples / len(samples))
    right.plot(*(2 * spread @ circle), **looks[kind], label=kind)
truth = torch.linalg.cholesky(regression.covariance[:2, :2])
right.fill(*(2 * truth @ circle), color=TRUTH, alpha=0.35, lw=0, label="exact")
left.set(xlabel="kick in $r_1$", ylabel="kick in $r_2$", aspect="equal")
right.set(xlabel=r"$\theta_1 - E\theta_1$", ylabel=r"$\theta_2 - E\theta_2$")
right.set(aspect="equal")
figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %% [markdown]
# On the left of {numref}`fig-estimate-correlated` is what two estimates take away.
# Both are right in each coordinate. *A guess before you read on: what does the diagonal do to the variance along $(1, 1)$, and what to that along $(1, -1)$?*
# The right side has the answer: the first becomes too large, the second too small.
#
# An estimate of the right shape has two rows on the price board.
# SGLD with it is by {cite:t}`ahn2012`, who precondition it, too. With SGHMC the friction is by rule three times the $B$ that it takes away, and with SGLD a third of the noise is the minibatch's as well:

# %% tags=["hide-input"]
show_prices(2)

# %% [markdown]
# ## One balance for all of them
#
# Take a direction $v$ of length one, an eigenvector of the curvature, and the momentum $r_v$ along it.
# Write $B_v = v^\top Bv$, and let the injected noise have the variance $2\varepsilon D_v$ along $v$. To first order in $\varepsilon$ a step with the friction $C$ takes $2\varepsilon C\,E[r_v^2]$ from the mean of $r_v^2$, and the two noises bring $2\varepsilon(D_v + B_v)$.
# In balance
#
# $$
# T_v = E[r_v^2] = \frac{D_v + B_v}{C}.
# $$ (eq-balance)
#
# SGHMC injects $D = C - \hat B$, and that is the temperature of {prf:ref}`thm-estimate-direction`,
#
# $$
# T_v = 1 + \frac{v^\top(B - \hat B)\,v}C.
# $$
#
# So what counts is $v^\top\hat Bv$, and not whether an entry is right.
# The noise of minibatches has the shape of the curvature ({eq}`eq-noise-curvature`), so here $B$ is about 1, 0.1 and 0.05 in the three directions.
# A diagonal subtracts about a half in each of the first two, one number a third in all three.
# The exact variances over the posterior's are by {eq}`eq-direction` with the factor of the step:

# %%
curvatures, directions = torch.linalg.eigh(regression.precision)
factor = 1 / (1 - step_size**2 * curvatures / (4 - 2 * step_size * friction))
subtracted = {
    "nothing": 0 * B,
    "one number": B.diagonal().mean() * torch.eye(3),
    "diagonal": torch.diag(B.diagonal()),
    "matrix": B,
}
exact = {}
print("subtracted   along (1, 1, 0), (1, −1, 0) and (0, 0, 1);  temperatures")
for kind, part in subtracted.items():
    left_over = torch.einsum("ji,jk,ki->i", directions, B - part, directions)
    exact[kind] = factor * (1 + left_over / friction)
    T = 1 + torch.linalg.eigvalsh(B - part) / friction
    row = "  ".join(f"{x:.2f}" for x in exact[kind].flip(0))
    print(f"{kind:12} {row}   from {T.min():.2f} to {T.max():.2f}")


def along(theta):
    """The squared distances over the posterior's variances, in three directions."""
    return ((theta - regression.mean) @ directions) ** 2 * curvatures


ratios, errors = runs["diagonal"].mean_and_standard_error(along)
for name, i in (("wide", 2), ("narrow", 1)):
    check(name, ratios[i], near(float(exact["diagonal"][i])), error=float(errors[i]))

# %% tags=["hide-input"]
far = []
for kind, run in runs.items():
    ratios, errors = run.mean_and_standard_error(along)
    far.append(((ratios - exact[kind]) / errors).abs().max())
check("far", max(far), at_most_errors(), because="the nine exact ratios")

# %% [markdown]
# In the run with the diagonal the variance along $(1, 1)$ is {c}`wide` times the posterior's and that along $(1, -1)$ {c}`narrow`; all nine ratios, three runs by three directions, lie within {c}`far` standard errors of the exact ones.
#
# **Beforehand**, one look at the noise tells how many numbers it takes.
# Make the matrix once, at the mode (`estimate_noise_variance(…, "full")`), and subtract what an estimate would keep of it: by {eq}`eq-balance` the temperatures of all directions lie between one plus the smallest and one plus the largest eigenvalue of $(B - \hat B)/C$, the last columns above.
# So features on different scales ask for a diagonal, and correlated ones for the matrix, or for other coordinates.
# With enough friction anything will do, because all is divided by $C$; but friction has a price, as we shall see.
# The matrix is averaged here ($\lambda = 0.9$), for one reason: the *eigenvalues* of a $d\times d$ covariance from $n$ examples spread by a factor of about $(1 \pm \sqrt{d/n})^2$, and what exceeds the friction is clipped and heats ({eq}`eq-clipping`).
# The more numbers an estimate has, the more it must be averaged; and a matrix needs $d^2$ numbers and a root at every step, where a diagonal takes sums of squares.
#
# ## This thermostat is one number
#
# {cite:t}`ding2014` do not measure the noise. The friction $\xi$ is a variable, which grows while the mean of $r^2$ over the $d$ coordinates is above 1, and falls while it is below (`SGNHT` in the package):


# %%
def sgnht_step(gradient, theta, r, xi, step_size, A, generator):
    normal = torch.randn(r.shape, generator=generator, dtype=r.dtype)
    r = r - step_size * (gradient(theta) + xi * r) + (2 * A * step_size) ** 0.5 * normal
    theta = theta + step_size * r
    xi = xi + step_size * ((r**2).mean(-1, keepdim=True) - 1)
    return theta, r, xi


# %% [markdown]
# It injects $D = A$, so by {eq}`eq-balance` $T_v = (A + B_v)/\xi$.
# With many coordinates $\xi$ settles where the average of all $T_v$ is 1. Set the average of $(A + B_v)/\xi$ equal to 1 and solve for $\xi$: it is $A + \bar B$, with the average $\bar B$ of the $B_v$. Therefore
#
# $$
# T_v = \frac{A + B_v}{A + \bar B} = 1 + \frac{B_v - \bar B}{A + \bar B}.
# $$ (eq-thermostat)
#
# That is a scalar $\hat B = \bar B$ with the friction $C = A + \bar B$: **this thermostat finds one number without measuring it, and has the faults of one number.**
# {cite:t}`gan2015` have one for each coordinate, and {cite:t}`shang2015` subtract the covariance as well.
#
# ### Its own error
#
# If the noise is alike in all directions, is the thermostat right? In the limit of small steps, but at a finite one it has the error of Euler's step ({cite:t}`leimkuhler2016adaptive` have better integrators).
# In equilibrium let $s = E[r_v^2]$, and let $\sigma^2 = E[\theta_v^2]$ with the curvature $a$.
# A step from $(\theta, r)$ to $(\theta', r')$ has $\theta' = \theta + \varepsilon r'$, so
#
# * $E\theta'^2 = E(\theta + \varepsilon r')^2$ equals $E\theta^2$, which leaves $2\varepsilon E[\theta r'] + \varepsilon^2s = 0$, so $E[\theta r'] = -\tfrac12\varepsilon s$, hence $E[\theta'r'] = +\tfrac12\varepsilon s$, and in equilibrium $E[\theta r]$ is the same;
# * the momentum's line, multiplied by $\theta$, says that $E[\theta r'] = (1 - \varepsilon\xi)E[\theta r] - \varepsilon a\sigma^2$, since both noises have mean zero whatever $\theta$ is.
#
# Insert the first in the second:
#
# $$
# a\sigma^2 = (1 - \tfrac12\varepsilon\xi)\,s.
# $$ (eq-thermostat-step)
#
# This holds in every direction, at every step size and with any noise, as long as $\xi$ stands still and the chain is stable. With few coordinates $\xi$ keeps moving, and it is only approximate.
# The thermostat keeps the average of $s$ at 1, so the average of $a\sigma^2$ is $1 - \tfrac12\varepsilon\xi$: *the better it works, the more exactly is the variance too small by $\tfrac12\varepsilon\xi$*.
# SGHMC has the same relation, but there it is $a\sigma^2$ that is right up to order $\varepsilon^2$, and $s$ is too large.
#
# Put together, with {prf:ref}`thm-estimate-direction` for $a\sigma^2$, these make the exact variances of a thermostat with very many coordinates.
# Take a third of them with each curvature of the regression, once with noise in proportion to the curvature, $V = 5a$, and once with the same average noise in all; we choose $A$ so that $A + \bar B = 1.2$.

# %%
a = torch.tensor([1.8, 0.2, 0.1], dtype=torch.float64)
B_v = 0.5 * step_size * 5 * a  # in proportion to the curvature
A = 1.2 - float(B_v.mean())


def thermostat_ratios(B_v, A):
    """The exact variances over the right ones, and the friction ξ."""
    xi = A + B_v.mean()
    for _ in range(100):
        step_factor = 1 - step_size**2 * a / (4 - 2 * step_size * xi)
        ratios = (A + B_v) / xi / step_factor
        xi = xi * (ratios / (1 - step_size / 2 * xi)).mean()  # until s is 1 on average
    return ratios, xi


for name, noise in (("in proportion", B_v), ("alike", B_v.mean().expand(3))):
    ratios, xi = thermostat_ratios(noise, A)
    row = ", ".join(f"{x:.2f}" for x in ratios)
    print(f"{name:14} {row}, on average {ratios.mean():.2f}, at ξ = {xi:.2f}")


# %% tags=["hide-input"]
def thermostat(noise, steps=2_500):
    """The same ratios, measured in 300 coordinates, and their errors."""
    generator = torch.Generator().manual_seed(2)
    all_a, all_noise = a.repeat_interleave(100), noise.repeat_interleave(100)

    def gradient(theta):
        normal = torch.randn(theta.shape, generator=generator, dtype=a.dtype)
        return all_a * theta + all_noise.sqrt() * normal

    theta, r = torch.randn(2, 20, 300, generator=generator, dtype=a.dtype)
    theta, xi = theta / all_a.sqrt(), torch.full((20, 1), 1.2, dtype=a.dtype)
    ratios = []
    for step in range(steps):
        theta, r, xi = sgnht_step(gradient, theta, r, xi, 0.2, A, generator)
        if step >= 500 and step % 20 == 0:
            ratios.append((all_a * theta**2).unflatten(1, (3, 100)).mean(-1))
    ratios = torch.stack(ratios).mean(0)
    return ratios.mean(0), ratios.std(0) / 20**0.5


alike, far = torch.full_like(a, 5 * float(a.mean())), []
for noise in (5 * a, alike):
    ratios, errors = thermostat(noise)
    expected, _ = thermostat_ratios(0.1 * noise, A)
    far += ((ratios - expected) / errors).abs().tolist()
check("thermostat-far", max(far), at_most_errors(), because="the six exact ratios")

# %% [markdown]
# A run in 300 coordinates has these six ratios within {c}`thermostat-far` standard errors.
# With noise in proportion the flat directions have too little variance and the steep ones too much: the faults of one number.
# The average is the same with either noise, $1 - \tfrac12\varepsilon\xi$.
#
# ## What it saves
#
# An estimate that is right in every direction takes SGHMC out of the law of {doc}`/book/further/price`.
# Without it the excess is $\varepsilon V/2C$; with it only the step's is left, $\varepsilon^2a/(4 - 2\varepsilon C)$.
# With the friction $C = kB$ a sample of $\theta$ takes about $2C/(\varepsilon a) = kV/a$ steps, and these are $k$ passes over the data, *whatever the step*.
# At $k = 1$ nothing is left to inject, and there is no room for an estimate that scatters. The tutorial's rule is $k = 3$:

# %% tags=["hide-input"]
theta, square = least_prices("estimate")
check("estimate-theta", theta.passes, near(2.94, 0.02), kind="exact", digits=3)
check("estimate-square", square.passes, near(1.46, 0.02), kind="exact", digits=3)

# %% [markdown]
# A $\theta$ costs {c}`estimate-theta` passes in place of a hundred, and a $\theta^2$ {c}`estimate-square`, at the largest step whose error is one per cent.
#
# **It is the estimate that saves, and not momentum.** SGLD with the estimate is within one per cent of that price at $N/n = 100$: at $\varepsilon = 0.1$ the rule makes $\varepsilon C \approx 1.5$, so a step turns the momentum round and halves it, and nothing is carried on.
# Momentum pays for large minibatches. There little noise limits the step, and what limits SGLD is its own error, $\tfrac12\eta a$:

# %%
print("passes for a θ        SGLD    SGHMC, both with B̂ = B")
for times in (100, 30, 10):  # N/n
    V = times - 1.0
    eta = min(2 / (3 * V), 0.0198)  # a third of the noise, or an error of one per cent
    sgld = price_of(langevin_chain(ONE, eta, V, eta * V / 2))

    def sghmc(size, V=V):
        b = size * V / 2
        return price_of(sghmc_chain(ONE, size, 3 * b, V, b))

    steps = sgld.steps, sghmc(at_one_per_cent(sghmc)).steps
    print(f"N/n = {times:3}       {steps[0] / times:10.2f}{steps[1] / times:9.2f}")

# %% [markdown]
# Page 8 has a friction from $\sqrt a$ to $2\sqrt a$. That is about speed, and $3\hat B$ about room: **take the larger**. At a step so small that page 8 rules, below $\varepsilon = \frac43\sqrt a/V$ for $2\sqrt a$, a sample costs more than three passes.
#
# **To remember:** an estimate needs the noise's shape, direction by direction; where it has it, a sample costs three passes and not a hundred.
#
# ## Change it
#
# * In the first visible cell set `[1, 0.8, 0], [0.8, 1, 0]` to `[1, 0.2, 0], [0.2, 1, 0]`: the ellipses of {numref}`fig-estimate-correlated` nearly agree, and the diagonal's temperatures lie between 0.88 and 1.12.
# * In the visible cell of the exact ratios set `A = 1.2` to `A = 2.0`, for more friction: the three ratios come closer together, but $\tfrac12\varepsilon\xi$ grows, and their average falls to 0.72.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-estimate-two
#
# ★ With minibatches of two, write the full $\hat V$ as an outer product. How large must the friction be so that nothing is clipped, and how does that compare with $\hat B$'s mean?
# ```
#
# ```{solution} ex-estimate-two
# :class: dropdown
#
# With replacement $\hat V = \frac{N^2}4(g_1 - g_2)(g_1 - g_2)^\top$, of rank one. Its one eigenvalue that is not zero is $\frac{N^2}4\lvert g_1 - g_2\rvert^2$, whose mean is $\operatorname{tr}V$. Where all eigenvalues of $V$ are alike that is $d$ times each of them, so even a typical sample needs a friction of $d$ times $B$. Each entry of a diagonal estimate has the mean $V_{jj}$, so that a few times $B$ suffice for it. What the matrix needs is averaging over some $d$ minibatches.
# ```
#
# ```{exercise}
# :label: ex-estimate-mass
#
# ★★ {prf:ref}`thm-estimate-direction` has $U = \tfrac12\theta^\top A\theta$, and wants mass and friction to be numbers. Let $M$ be a matrix and $C = cM$. Show that with $\theta = M^{-1/2}u$ everything is as before, and say what becomes of $T_v$. Which mass makes one number enough?
# ```
#
# ```{solution} ex-estimate-mass
# :class: dropdown
#
# Put $r = M^{1/2}s$. Then $u' = u + \varepsilon s$ and $s' = s - \varepsilon cs - \varepsilon M^{-1/2}\nabla\tilde U + N(0, 2\varepsilon M^{-1/2}(C - \hat B)M^{-1/2})$: mass 1, friction $c$, curvature $M^{-1/2}AM^{-1/2}$, noise $M^{-1/2}BM^{-1/2}$. For its eigenvectors $w$, $T = 1 + w^\top M^{-1/2}(B - \hat B)M^{-1/2}w/c$. A mass in proportion to the noise makes it the same in all directions, and then one number $b$ is enough, with $\hat B = bM$.
# ```
#
# ````{exercise}
# :label: ex-estimate-thermostat
#
# ★★★ **Write it yourself.** Write the step of a thermostat whose variance is right at every step size, if the noise is alike in all directions.
#
# ```python
# def better_step(gradient, theta, r, xi, step_size, A, generator):
#     """The next (theta, r, xi); the shapes are (chains, d), (chains, d), (chains, 1)."""
#     ...
# ```
#
# Why does it need less friction than that of {cite:t}`ding2014`?
# ````
#
# ````{solution} ex-estimate-thermostat
# :class: dropdown
#
# ```python
# def better_step(gradient, theta, r, xi, step_size, A, generator):
#     normal = torch.randn(r.shape, generator=generator, dtype=r.dtype)
#     r = r - step_size * (gradient(theta) + xi * r) + (2 * A * step_size) ** 0.5 * normal
#     theta = theta + step_size * r
#     kinetic = (r**2).mean(-1, keepdim=True)
#     xi = xi + step_size * ((1 - step_size / 2 * xi) * kinetic - 1)
#     return theta, r, xi
# ```
#
# It holds the average of $(1 - \tfrac12\varepsilon\xi)s = a\sigma^2$ at 1, in place of that of $s$. Up to the factor of the step, $a\sigma^2$ is $T = (A + \bar B)/\xi$, so now $\xi \approx A + \bar B$; the other one needs $\xi(1 - \tfrac12\varepsilon\xi) \approx A + \bar B$, more friction by a share of $\tfrac12\varepsilon\xi$.
# ````


# %% tags=["hide-input"]
def better_step(gradient, theta, r, xi, step_size, A, generator):
    normal = torch.randn(r.shape, generator=generator, dtype=r.dtype)
    r = r - step_size * (gradient(theta) + xi * r) + (2 * A * step_size) ** 0.5 * normal
    theta = theta + step_size * r
    kinetic = (r**2).mean(-1, keepdim=True)
    xi = xi + step_size * ((1 - step_size / 2 * xi) * kinetic - 1)
    return theta, r, xi


sgnht_step = better_step
ratios, errors = thermostat(alike)
check(
    "better",
    ratios.mean(),
    near(1.0),
    error=float(errors.norm() / 3),
    says="Average of the three ratios with the better step, noise alike",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`ding2014` introduce the thermostat, {cite:t}`ahn2012` estimate the noise from the minibatch, and {cite:t}`leimkuhler2016` treat thermostats of all kinds.
