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
# Level: second course · Reading: about 22 minutes, without the exercises · Running: about 8 seconds
# ```
#
# ```{index} ! thermostat, ! Nosé–Hoover thermostat, ! diagonal noise estimate
# ```

# %%
import torch

from booklib.page.claims import check, near
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.minibatches import Fresh
from sgmc.noise import OnlineNoise
from sgmc.posteriors import LinearRegression

# %% tags=["hide-input"]
import warnings

import matplotlib.pyplot as plt

from booklib.page.claims import at_most_errors
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.prices import least_prices
from sgmc.minibatches import Passes

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# Chains are many and short, and some have a wrong temperature on purpose.
warnings.filterwarnings(
    "ignore", message=".*too wide|.*too narrow|.*too cold|.*do not agree"
)

# %% [markdown]
# The tutorial subtracts an estimate $\hat B$ of the gradient noise that comes from the minibatch of each step.
# Should it be one number, one number for each coordinate, or a matrix?
#
# **$\hat B$ has to match the noise in every direction.**
# One number is enough if the noise is alike in all directions. A diagonal is enough if the gradients of different coordinates are uncorrelated. Otherwise it takes the matrix, or a friction beside which the noise is small.
#
# The example is a linear regression with three coefficients, whose posterior is known.
# The first two inputs have the correlation 0.8; the third is smaller and uncorrelated with them.
# The errors have the variance $N$, which makes all numbers of order one: the curvatures are 1.8 along $(1, 1, 0)$, 0.2 along $(1, -1, 0)$ and 0.1 along $(0, 0, 1)$.
# The cell below samples the posterior with each kind of estimate.
#
# *A guess before you look.* The diagonal estimate has the right variance for each coordinate. What does it do to the variance along $(1, 1, 0)$, and what to that along $(1, -1, 0)$?

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
# On the left of {numref}`fig-estimate-correlated` is what two estimates subtract. Both are right in each coordinate, but along $(1, 1)$ the noise is nearly twice what the diagonal subtracts there, and along $(1, -1)$ it is a fifth of it.
# On the right is what comes of it, which answers the guess: with the diagonal the variance is too large along $(1, 1)$ and too small along $(1, -1)$.
#
# ## The temperature of a direction
#
# Take a direction $v$ of length one, an eigenvector of the curvature, and the momentum $r_v$ along it.
# Write $B_v = v^\top Bv$, and let the injected noise have the variance $2\varepsilon D_v$ along $v$. To first order in $\varepsilon$ the friction $C$ takes $2\varepsilon C\,E[r_v^2]$ from the mean of $r_v^2$ in a step, and the two noises bring $2\varepsilon(D_v + B_v)$.
# The force $-a\theta_v$ does no work on average: since $E[\theta_v^2]$ stays the same, $E[\theta_vr_v] = 0$ up to order $\varepsilon$.
# In balance
#
# $$
# T_v = E[r_v^2] = \frac{D_v + B_v}{C}.
# $$ (eq-balance)
#
# SGHMC injects $D = C - \hat B$. Inserted, this is the temperature of {prf:ref}`thm-estimate-direction`,
#
# $$
# T_v = 1 + \frac{v^\top(B - \hat B)\,v}C.
# $$
#
# So what counts is $v^\top\hat Bv$ along the eigenvectors $v$ of the curvature. An estimate with the right diagonal entries in the coordinates can be wrong there.
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
# In the run with the diagonal the variance along $(1, 1)$ is {c}`wide` times the posterior's and that along $(1, -1)$ {c}`narrow`. All nine ratios, three runs by three directions, lie within {c}`far` standard errors of the exact ones.
#
# ## Which one for your model?
#
# One look at the noise tells beforehand how many numbers it takes.
# Compute the matrix $B$ once, at the mode (`estimate_noise_variance(…, "full")`), and subtract what an estimate would keep of it. By {eq}`eq-balance` the temperatures of all directions lie between one plus the smallest and one plus the largest eigenvalue of $(B - \hat B)/C$, the last columns above.
# Features on different scales therefore ask for a diagonal, and correlated features for the matrix, or for coordinates in which they are uncorrelated.
# A large friction makes every estimate good enough, because the error is divided by $C$, but then a sample takes more steps.
#
# The more numbers an estimate has, the more it must be averaged. The *eigenvalues* of a $d\times d$ covariance from $n$ examples spread by a factor of about $(1 \pm \sqrt{d/n})^2$. What exceeds the friction is clipped, which makes the chain too wide ({eq}`eq-clipping`), so the matrix is averaged here ($\lambda = 0.9$). It also needs $d^2$ numbers and a root at every step, where a diagonal needs only sums of squares.
#
# A *thermostat* {cite:p}`ding2014` needs no estimate. It raises the friction $\xi$ while the mean of $r^2$ over all coordinates exceeds 1, and lowers it otherwise, until by {eq}`eq-balance` $\xi = D + \bar B$ with the average $\bar B$ of the $B_v$.
# That is a scalar estimate $\hat B = \bar B$, found without measuring, and it has the faults of one number ({ref}`ex-estimate-thermostat`). {cite:t}`gan2015` have one friction for each coordinate, and {cite:t}`shang2015` subtract the covariance as well.
#
# How much friction? {doc}`Page 8 of the tutorial </book/tutorial/sghmc>` has $\sqrt a$ to $2\sqrt a$, for the sake of speed, and {doc}`page 9 </book/tutorial/estimating_the_noise>` has $3\hat B$, which leaves room for an estimate that scatters. **Take the larger of the two.**
# At $C = 3\hat B$ a $\theta$ costs {c}`estimate-theta` passes over the data in place of a hundred: it takes about $2C/(\varepsilon a) = 3V/a$ steps, *whatever the step* as long as $3\hat B$ is the larger of the two, and only the error of the step is left in the variance. SGLD with an estimate {cite:p}`ahn2012` pays as much on the board of {doc}`/book/further/price`, so it is the estimate that saves there, and not momentum.
#
# ## Not together with passes
#
# All this is for fresh minibatches. In *passes* over the shuffled data the errors of the minibatches sum to zero ({doc}`/book/further/splittings`), so nothing is left that could be subtracted.
# An estimate measures the noise of one minibatch and subtracts it nevertheless, which makes the chain too cold: with $B_v = 0$ in {eq}`eq-balance` the temperature is $1 - \hat B/C$, so ⅔ at $C = 3\hat B$.
# For the mean of 100 numbers, in passes of ten minibatches, the variance ratio is {c}`passes-estimate` with the estimate and {c}`passes-alone` without, where the exact chain has 0.714 and 1.031: these data have the variance 0.95 and not 1, and a little of the excursion within a pass is left.
# The package warns of an estimate beside passes.

# %% tags=["hide-input"]
least = least_prices("estimate")[0]
check("estimate-theta", least.passes, near(2.94, 0.02), kind="exact", digits=3)
numbers = torch.randn(100, generator=torch.Generator().manual_seed(1))
mean_of = LinearRegression(
    torch.ones(100, 1), numbers, batch_size=10, minibatches=Passes()
)
curvature = float(mean_of.precision)
size = 0.1 / curvature**0.5
heat = 0.5 * size * 9 * curvature  # B
for name, estimate, bound, because in (
    ("passes-estimate", OnlineNoise(), near(0.714, 0.03), "the exact chain"),
    ("passes-alone", 0.0, near(1.031, 0.03), "the exact chain"),
):
    run = sample(
        SGHMC(size, 3 * heat, estimate, num_steps=10),
        mean_of,
        mean_of.mean.expand(500, -1).contiguous(),
        num_samples=300,
        warm_up=30,
    )
    ratio, _ = run.mean_and_standard_error(
        lambda x: ((x - mean_of.mean) ** 2).mean(-1) / float(mean_of.covariance)
    )
    check(name, ratio, bound, because=because)

# %% [markdown]
# **To remember:** a noise estimate must match the noise in every direction; at the friction $3\hat B$ an independent $\theta$ then costs three passes and not a hundred.
#
# ## Change it
#
# * In the first visible cell set `[1, 0.8, 0], [0.8, 1, 0]` to `[1, 0.2, 0], [0.2, 1, 0]`: the ellipses of {numref}`fig-estimate-correlated` nearly agree, and the diagonal's temperatures lie between 0.88 and 1.12.
# * In the same cell set `friction = 500, 0.2, 1.2` to `friction = 500, 0.2, 4.8`, four times the friction: all temperatures are within a quarter of 1, even with nothing subtracted, and a sample takes four times as many steps.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-estimate-two
#
# ★ With minibatches of two, write the full $\hat V$ as an outer product. How large must the friction be so that nothing is ever clipped? How large so that a typical $\hat B$ is not, and how does that compare with $B$?
# ```
#
# ```{solution} ex-estimate-two
# :class: dropdown
#
# With replacement $\hat V = \frac{N^2}4(g_1 - g_2)(g_1 - g_2)^\top$, of rank one. Its one eigenvalue that is not zero is $\frac{N^2}4\lvert g_1 - g_2\rvert^2$. Nothing is ever clipped if $C \ge \frac\varepsilon2\cdot\frac{N^2}4\max_{i,j}\lvert g_i - g_j\rvert^2$.
#
# The mean of the eigenvalue of $\hat B = \frac\varepsilon2\hat V$ is $\operatorname{tr}B$. Where all eigenvalues of $B$ are alike that is $d$ times each of them, so even a typical $\hat B$ needs a friction of $d$ times $B$. An entry of a diagonal estimate has the mean $B_{jj}$, so a friction of a few times $B$ clips it rarely, though not never. What the matrix needs is averaging over some $d$ minibatches.
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
# ★★★ **Write it yourself.** The thermostat SGNHT of {cite:t}`ding2014` moves by Algorithm 2 with a friction $\xi$ that is a variable. It injects the noise $N(0, 2\varepsilon D)$ with a number $D$, and adds $\varepsilon(\overline{r^2} - 1)$ to $\xi$ after the drift, with the mean over the $d$ coordinates.
#
# ```python
# def sgnht_step(gradient, theta, r, xi, step_size, D, generator):
#     """The next (theta, r, xi); the shapes are (chains, d), (chains, d), (chains, 1)."""
#     ...
# ```
#
# Find $T_v$ for many coordinates. If the noise is alike in all directions, is the thermostat right at a finite step?
# ````
#
# ````{solution} ex-estimate-thermostat
# :class: dropdown
#
# ```python
# def sgnht_step(gradient, theta, r, xi, step_size, D, generator):
#     normal = torch.randn(r.shape, generator=generator, dtype=r.dtype)
#     r = r - step_size * (gradient(theta) + xi * r) + (2 * D * step_size) ** 0.5 * normal
#     theta = theta + step_size * r
#     xi = xi + step_size * ((r**2).mean(-1, keepdim=True) - 1)
#     return theta, r, xi
# ```
#
# The balance is $T_v = (D + B_v)/\xi$, and $\xi$ settles where the average of these is 1, at $D + \bar B$. So $T_v = 1 + (B_v - \bar B)/(D + \bar B)$: the noisier directions are too wide and the others too narrow.
#
# At a finite step it is not right. Let $s = E[r_v^2]$ and $\sigma^2 = E[\theta_v^2]$ in equilibrium, in a direction of curvature $a$. From $\theta' = \theta + \varepsilon r'$ and $E\theta'^2 = E\theta^2$ follows $E[\theta r'] = -\tfrac12\varepsilon s$, hence $E[\theta r] = E[\theta'r'] = \tfrac12\varepsilon s$. The momentum's line times $\theta$ is $E[\theta r'] = (1 - \varepsilon\xi)E[\theta r] - \varepsilon a\sigma^2$. Together, $a\sigma^2 = (1 - \tfrac12\varepsilon\xi)\,s$.
# The thermostat keeps $s$ at 1, so the variance is too small by $\tfrac12\varepsilon\xi$: in 300 coordinates with noise alike it is {c}`thermostat` of the right one. {cite:t}`leimkuhler2016adaptive` have better integrators.
# ````


# %% tags=["hide-input"]
def sgnht_step(gradient, theta, r, xi, step_size, D, generator):
    normal = torch.randn(r.shape, generator=generator, dtype=r.dtype)
    r = r - step_size * (gradient(theta) + xi * r) + (2 * D * step_size) ** 0.5 * normal
    theta = theta + step_size * r
    xi = xi + step_size * ((r**2).mean(-1, keepdim=True) - 1)
    return theta, r, xi


a = torch.tensor([1.8, 0.2, 0.1], dtype=torch.float64)
D = 1.2 - 0.1 * 5 * float(a.mean())


def thermostat_ratios(B_v, D):
    """The exact variances of many coordinates over the right ones, and ξ."""
    xi = D + B_v.mean()
    for _ in range(100):
        step_factor = 1 - step_size**2 * a / (4 - 2 * step_size * xi)
        ratios = (D + B_v) / xi / step_factor
        xi = xi * (ratios / (1 - step_size / 2 * xi)).mean()  # until s is 1 on average
    return ratios, xi


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
        theta, r, xi = sgnht_step(gradient, theta, r, xi, 0.2, D, generator)
        if step >= 500 and step % 20 == 0:
            ratios.append((all_a * theta**2).unflatten(1, (3, 100)).mean(-1))
    ratios = torch.stack(ratios).mean(0)
    return ratios.mean(0), ratios.std(0) / 20**0.5


far = []
for noise in (5 * a, torch.full_like(a, 5 * float(a.mean()))):
    ratios, errors = thermostat(noise)
    expected, xi = thermostat_ratios(0.1 * noise, D)
    far += ((ratios - expected) / errors).abs().tolist()
says = "Largest distance of the solution's six ratios, noise in proportion and alike, "
says += "from the exact ones, in standard errors"
check("thermostat-far", max(far), at_most_errors(), because="the balance", says=says)
right = near(float(1 - step_size / 2 * xi))
check("thermostat", ratios.mean(), right, error=float(errors.norm() / 3))

# %% [markdown]
# ## Further reading
#
# {cite:t}`ahn2012` estimate the noise from the minibatch and precondition with it, and {cite:t}`leimkuhler2016` treat thermostats of all kinds.
