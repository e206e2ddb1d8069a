# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Tuning and checking
#
# ```{div} page-head
# Level: second course · Reading: about 20 minutes, without the exercises · Running: about 15 seconds
# ```
#
# ```{index} ! batch size, ! step size, ! friction, ! burn-in, ! thinning, ! choosing hyperparameters, ! is my sampler right?
# ```
#
# Which step size, friction and noise estimate does SGHMC need for your model, and how do you find out whether its samples are right?
#
# **Let `tune` measure them, and compare the result with half the step.**
# A learning rate that falls gains nothing at equal gradients ({doc}`/book/further/falling_steps`).
# For a network begin with the learning rate of its training instead ([below](#a-network)); HMC and NUTS have {doc}`a page of their own </book/practice/tuning_hmc>`.
# Copy these lines, with your `model` from the {doc}`recipes </book/practice/recipes>` in place of the regression:

# %%
import torch

from sgmc import sample, tune
from sgmc.diagnostics import split_r_hat
from sgmc.posteriors import LogisticRegression
from sgmc.tuning import find_mode, half_step

double = torch.float64
generator = torch.Generator().manual_seed(0)
inputs = torch.randn(1_000, 5, generator=generator, dtype=double)
logits = inputs @ torch.tensor([0.5, -1.0, 0.2, 0.0, 0.7], dtype=double)
targets = torch.bernoulli(logits.sigmoid(), generator=generator)
model = LogisticRegression(inputs, targets, prior_variance=10.0, batch_size=100)

mode = find_mode(model, torch.zeros(1, 5, dtype=double))
kernel, start = tune(model, mode)  # at the mode, then twice at samples
compared = half_step(kernel, model, start, 100, warm_up=10)
draws = sample(kernel, model, start, 400, warm_up=10, seed=1)
print(kernel)
print(compared.verdict.split(":")[0])
print(f"R̂ at most 1.01: {bool(split_r_hat(draws.samples).max() <= 1.01)}")

# %% tags=["hide-input"]
import math
import warnings

from booklib.page.claims import at_most, check, near
from booklib.page.play import play
from booklib.page.scoreboard import pace
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result
from sgmc.kernels import HMC, SGHMC
from sgmc.potentials import Potential
from sgmc.tuning import default_kernel, standard_deviations

play()  # a claim that fails now shows ✗, and the page goes on
exact = LogisticRegression(inputs, targets, prior_variance=10.0)
hmc = HMC(0.4, 4, mass=kernel.mass)
reference = sample(hmc, exact, mode.expand(200, -1).contiguous(), 100, seed=2)
ratio, error = standard_deviations(draws, reference)
check(
    "widths",
    (ratio - 1).abs().max(),
    at_most(0.15),
    because="8,000 samples, of which two are worth an independent one",
)
seen = compared.standard_deviations.abs().max()
check(
    "half-step",
    seen,
    at_most(compared.limit + 2),
    because="it exceeds the limit by chance once in 1,000 times",
    says="Half the step: largest |z| of a standard deviation",
)

check(
    "visible",
    float(compared.verdict.rpartition("by ")[2].partition("%")[0]),
    at_most(25),
    because="10 to 20 % over the seeds",
    digits=2,
)

# %% [markdown]
# The first answer says what was measured: here the gradient of a minibatch is so noisy that it brings half of the noise that the friction asks for.
# The second answer, which `print(compared)` gives in full, also says which change of a standard deviation would have been seen, here {c}`visible` %: with 25 samples it is about 30 %, with 400 about 7 %. What the step still adds may be twice that, because half the step removes half of it. If the answer changes, go on with `compared.kernel`, and halve again.
# The third says whether twenty chains agree. At $\hat R = 1.01$ all chains together are one per cent wider than a chain is by itself {cite:p}`vehtari2021`, and the whole book asks for that; `sample` warns from 1.1 on, because runs of fewer than 100 effective samples a chain reach smaller values by chance.
# Beside HMC with all the data the standard deviations are wrong by {c}`widths` at most.
#
# `warm_up` and `thinning` count calls of the kernel, that is samples, and each sample takes `num_steps` gradients.
#
# ## What `tune` chooses, and from what
#
# | choose | from what |
# | --- | --- |
# | scale of data and parameters | inputs of size one; $\log\tau$ in place of $\tau > 0$ |
# | batch $n$ | the smallest at which an example costs no more than in a large one, at most $N/4$ |
# | mass $M$, friction $C$ | $M = A$, the curvature, and $C = 2A$ |
# | step $\varepsilon$ | $\min(\tfrac12, 2/\nu)$ with $\nu$, the largest eigenvalue of $A^{-1}V$: the noise in the noisiest direction, over the curvature |
# | noise estimate $\hat B$, subtracted from the noise injected, $2(C - \hat B)\varepsilon$ | {eq}`eq-tuning-matched` |
# | gradients a sample | $2/\varepsilon$; then two samples are worth one independent one for a mean |
# | warm-up | ten samples, and until the energy has stopped falling |
#
# The first two rows are yours. `default_kernel` measures the curvature and the covariance $V$ of the {term}`gradient noise` at a position and computes the others:
#
# ```{prf:algorithm} Default
# :label: alg-tuning-default
#
# **Inputs:** a mode, or some samples
#
# 1. Measure the curvature $A$ by differences of gradients, and the noise $V$ from minibatches.
# 2. Set $M = A$ and $C = 2A$.
# 3. Let $\nu$ be the largest eigenvalue of $A^{-1}V$, and $\varepsilon = \min(\tfrac12, 2/\nu)$.
# 4. Take $\hat B$ from {eq}`eq-tuning-matched`, which is $\tfrac12\varepsilon V + \dfrac{\varepsilon^2}{2 - 2\varepsilon}A$.
# 5. Keep a sample every $2/\varepsilon$ steps.
# ```
#
# `tune` then lets twenty chains make ten samples with a quarter of the step, measures again at the last of them, and does so once more, because a posterior's curvature may differ from that at its mode.
# Above 200 coordinates it works with diagonals.
#
# ## How long it takes
#
# Count gradients of a minibatch, in each of twenty chains that run together. If the model fits, $\nu$ is about $N/n$, and $N/n$ gradients are a pass over the data. The first row is the model above:

# %% tags=["hide-input"]
from collections import Counter


def tuned(N, n):
    """Gradients of minibatches and of all the data in `tune`, and those of a sample."""
    numbers = torch.Generator().manual_seed(1)
    x = torch.randn(N, 5, generator=numbers, dtype=double)
    y = torch.bernoulli(x.sum(1).sigmoid(), generator=numbers)
    if len(inputs) == N:
        x, y = inputs, targets  # of the model above
    regression = LogisticRegression(x, y, prior_variance=10.0, batch_size=n)
    mode = find_mode(regression, torch.zeros(1, 5, dtype=double))
    seen, gradient = Counter(), regression.gradient_given

    def counted(position, minibatch):
        seen[minibatch is None] += 1
        return gradient(position, minibatch)

    regression.gradient_given = counted
    steps = tune(regression, mode)[0].num_steps
    return seen[False], seen[True], steps


rows = []
for size, batch in ((1_000, 100), (10_000, 500), (1_000, 20), (10_000, 100)):
    small, whole, steps = tuned(size, batch)
    lengths = (steps, 3 * 110 * steps, 410 * steps)
    numbers = (size, batch, small, whole, *lengths)
    rows.append([f"{number:,}" for number in numbers])
heads = ["$N$", "$n$", "`tune`", "`tune`, all data", "a sample"]
show_table([*heads, "`half_step` above", "`sample` above"], rows)
small, whole, steps = tuned(10_000, 500)
passes, because = small / 20 + whole, "160/ε of minibatches, and 85"
check("passes", passes, near(165, 8), kind="exact", digits=3, because=because)
check("one-pass", steps / 20, near(1, 0.2), kind="exact", digits=2, because="2/ε")

# %% [markdown]
# A gradient of all the data is a pass, too. So `tune` takes {c}`passes` passes in the second row, half of them as gradients of all the data; a sample takes about one ({c}`one-pass`), and half the step, with its three runs, four fifths of what 400 samples take.
# Above $\nu = 100$, up to 200 coordinates, `tune` takes some 400 passes, nearly all of them as gradients of all the data.
# Multiply by the time of one gradient of twenty chains, which you can measure in a second.
#
# The estimate in step 4 is a little larger than the noise of the gradient.
#
# ```{prf:theorem} Matched noise
# :label: thm-tuning-matched
#
# Let $U = \tfrac12\theta^\top A\theta$ with $A$ positive definite, let the gradient's noise have mean 0 and covariance $V$, given the past, and let $M$, $C$ be symmetric with $M$ positive definite.
# Put $K = (M - \tfrac12\varepsilon C)^{-1}$ and
#
# $$
# \hat B = \tfrac12\varepsilon V + \tfrac18\varepsilon^2\,(CKA + AKC).
# $$ (eq-tuning-matched)
#
# If $M - \tfrac12\varepsilon C - \tfrac14\varepsilon^2A$ is positive definite and $\hat B \preceq C$, then {prf:ref}`alg-sghmc` has the stationary covariance $\operatorname{Cov}(\theta) = A^{-1}$.
# ```
#
# The proof is that of {prf:ref}`cor-matched`. The first part of $\hat B$ is the gradient's noise, and the second what the finite step would add.
# By exact chains, at a long step:

# %% tags=["hide-input"]
from sgmc.splittings import sghmc_chain
from sgmc.tuning import matched_noise_estimate

one, step, friction, V = torch.eye(1, dtype=double), 0.78, 1.5, 1.5
estimates = {
    "nothing subtracted": 0.0,
    "the gradient's noise": 0.5 * step * V,
    "matched": matched_noise_estimate(1.0, V, step, friction),
}
for name, estimate in estimates.items():
    chain = sghmc_chain(one, step, friction, V, estimate)
    variance = float(chain.stationary_covariance()[0, 0])
    print(f"{name:22}{estimate:6.3f}   variance {variance:.3f}, where 1 is right")

# %% tags=["hide-input"]


def random_matrix(low, high, dim=4):
    """A positive matrix with eigenvalues between two bounds, in random directions."""
    numbers = torch.randn(dim, dim, generator=generator, dtype=double)
    directions = torch.linalg.qr(numbers).Q
    return directions * torch.linspace(low, high, dim, dtype=double) @ directions.T


largest = 0.0
for size in (0.1, 0.3, 0.6):
    A, noise = random_matrix(1, 3), random_matrix(0.2, 2)
    C, M = random_matrix(2, 3), random_matrix(2, 4)
    chain = sghmc_chain(
        A, size, C, noise, matched_noise_estimate(A, noise, size, C, M), M
    )
    wrong = chain.stationary_covariance()[:4, :4] - torch.linalg.inv(A)
    largest = max(largest, float(wrong.abs().max()))
check(
    "matched",
    largest,
    at_most(1e-8),
    kind="exact",
    because="the theorem, with matrices that do not commute; rounding",
    says="Matched estimates: largest error of the covariance",
)

# %% [markdown]
# ## How much friction
#
# $\sqrt a$ to $2\sqrt a$, with the curvature $a$, forgets a start the soonest ({doc}`page 8 of the tutorial </book/tutorial/sghmc>`); $3\hat B$ leaves room for an estimate that scatters ({doc}`page 2 of Further </book/further/choosing_the_estimate>`). **Take the larger of the two.**


# %% tags=["hide-input"]
def gradients(step, friction):
    """For an independent θ², by the exact chain with a = 1 and V = 40."""
    estimate = matched_noise_estimate(1.0, 40.0, step, friction)
    return pace(sghmc_chain(one, step, friction, 40.0, estimate))


exact_number = dict(kind="exact", digits=2)
check("by-default", gradients(0.05, 2.0), near(49.4, 0.1), **exact_number)
check("by-room", gradients(0.1, 6.0), near(60.7, 0.1), **exact_number)

# %% [markdown]
# At $a = 1$ and $V = 40$ the default, $2\sqrt a$ at the step at which $\hat B$ is half of it, takes {c}`by-default` gradients for an independent $\theta^2$; twice the step with $3\hat B$ takes {c}`by-room`, because friction grows with the step.
# The default pays by sensitivity: if $V$ is wrong by a fifth, so is the temperature by a tenth, and by a fifteenth with $3\hat B$.
#
# (a-network)=
# ## A network
#
# The few noisiest directions limit the step of all.
# On a network of 610 weights a grid searched by hand, with the truth in view, had {c}`grid-means` times as many effective samples of means as the default and {c}`grid-squares` times as many of squares (`python -m benchmarks.tuning`).
# So take the learning rate at which the network trains, divided by $N$, in `SGHMC.from_learning_rate`, then halve it until the next half no longer moves the *predictions*, chain by chain from the same starts, by more than three standard errors ({ref}`lines <my-nn-module>`).
# $\hat R$ of weights says nothing there; $\hat R$ of predictions does.

# %% tags=["hide-input"]
again = read_result(RESULTS / "tuning.json")["models"]["digits network"]["again"]
for name, speed, size in (
    ("grid-means", "means_median", 3.9),
    ("grid-squares", "squares_median", 17.1),
):
    gain = again["matched"][speed][speed] / again["default"][speed]
    check(name, gain, near(size, 0.1), kind="stored", digits=2)

# %% [markdown]
# ## What each check sees
#
# To learn what a check sees, plant a fault. The model is $\theta \sim N(0, 1)$, $y_i \sim N(\theta, 1)$ with 50 examples, tuned with minibatches of five.
# *Slow* takes one gradient a sample, with a fifth of the step. *A slip* is a factor ½ before the log likelihood. *A mode missed* has $y_i \sim N(\theta^2, 1)$ and all starts at 1. *A wrong model* has data with twice the standard deviation.
# *HMC* compares means and standard deviations with an exact sampler on all the data. *Ranks* is simulation-based calibration {cite:p}`talts2018`: among 19 samples given data from the model, the rank of the true parameter is uniform. *Predictions* compares the variance of new data with that of the data.

# %% tags=["hide-input"]
N, n, chains, replicas = 50, 5, 100, 4_000


class Means(Potential):
    """θ ~ N(0, 1) and y ~ N(θ or θ², 1), with data ``(1, N)`` or ``(chains, N)``."""

    dim = 1

    def __init__(self, data, weight=1.0, square=False, scale=N / n):
        self.data, self.weight = data, weight
        self.square, self.scale = square, scale

    def predicted(self, position):
        return position.square() if self.square else position

    def energy(self, position):
        squares = (self.data - self.predicted(position)).square().sum(-1)
        return 0.5 * (position[:, 0].square() + self.weight * squares)

    def pulled(self, position, data, scale):
        slope = 2 * position if self.square else 1.0
        pull = (slope * (data - self.predicted(position))).sum(-1, keepdim=True)
        return position - self.weight * scale * pull

    def gradient(self, position):
        return self.pulled(position, self.data, 1.0)

    def draw_minibatches(self, position, generator, step, num_steps=1):
        return torch.randint(N, (num_steps, len(position), n), generator=generator)

    def gradient_given(self, position, minibatch):
        if minibatch is None:
            return self.gradient(position)
        data = self.data.expand(len(position), N).gather(1, minibatch)
        return self.pulled(position, data, self.scale)


def kernel_of(fault, target):
    """The kernel that is tuned for a target at θ = 1, or a wrong one."""
    slope = 2 if target.square else 1
    A = 1 + target.weight * slope**2 * N
    V = (target.weight * slope * N) ** 2 / n * float(target.data.var(-1).mean())
    step = min(0.5, 2 * A / V) / (5 if fault == "slow" else 1)
    estimate = matched_noise_estimate(A, V, step, 2 * A, A)
    estimate = 0.0 if fault == "no noise estimate" else estimate
    number = 1 if fault == "slow" else math.ceil(2 / step)
    return SGHMC(step, 2 * A, estimate, A, num_steps=number)


def verdicts(fault, options, deviation, seed=0):
    """What each check says of a fault."""
    generator = torch.Generator().manual_seed(seed)
    data = torch.randn(1, N, generator=generator, dtype=double)
    data = 1 + deviation * (data - data.mean()) / data.std()
    target, start = Means(data, **options), torch.ones(chains, 1, dtype=double)
    try:
        kernel = kernel_of(fault, target)
        length = dict(num_samples=200, warm_up=2 if fault == "slow" else 10)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            draws = sample(kernel, target, start, **length, seed=seed + 1)
    except ValueError:
        return ["error", *[""] * 5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        half = half_step(kernel, target, start, **length, seed=seed + 2)
        bold = HMC(0.5 / kernel.mass**0.5, 3)
        exact = sample(bold, target, start, 200, seed=seed + 3)
        true = torch.randn(replicas, 1, generator=generator, dtype=double)
        many = Means(true, **options).predicted(true)
        many = many + torch.randn(replicas, N, generator=generator, dtype=double)
        many, first = Means(many, **options), torch.ones(replicas, 1, dtype=double)
        kernel = kernel_of(fault, many)
        after = dict(warm_up=5, thinning=1 if fault == "slow" else 3)
        found = sample(kernel, many, first, 19, **after, seed=seed + 4)
    ratio, error = standard_deviations(draws, exact)
    (a, e), (b, f) = (each.mean_and_standard_error() for each in (draws, exact))
    far = max(((ratio - 1) / error).abs(), (a - b).abs() / (e**2 + f**2).sqrt())
    ranks = (found.samples < true).sum(0)[:, 0].bincount(minlength=20)
    uneven = (ranks - replicas / 20).square().sum() / (replicas / 20)
    new = target.predicted(draws.samples.flatten()[:, None])
    new = new + torch.randn(len(new), N, generator=generator, dtype=double)
    above = float((new.var(-1) > data.var()).double().mean())
    alarms = [
        bool(said),
        bool((split_r_hat(draws.samples) > 1.01).any()),
        half.verdict.startswith("half the step changes"),
        bool(far > 6),
        bool(uneven > 55),
        min(above, 1 - above) < 0.001,
    ]
    words = ["alarm" if alarm else "–" for alarm in alarms]
    if "tells nothing" in half.verdict:
        words[2] = "cannot tell"
    return words


faults = {
    "nothing": ({}, 1.0),
    "$N/n$ forgotten": ({"scale": 1.0}, 1.0),
    "no noise estimate": ({}, 1.0),
    "slow": ({}, 1.0),
    "a slip": ({"weight": 0.5}, 1.0),
    "a mode missed": ({"square": True}, 1.0),
    "a wrong model": ({}, 2.0),
}
table = {name: verdicts(name, *given) for name, given in faults.items()}
heads = ["fault", "`sample`", "R̂", "half the step", "HMC", "ranks", "predictions"]
show_table(heads, [[name, *row] for name, row in table.items()])

# %% tags=["hide-input"]
expected = {
    "nothing": "– – – – – –",
    "no noise estimate": "alarm – alarm alarm alarm –",
    "a slip": "– – – – alarm –",
    "a mode missed": "– – – – alarm –",
    "a wrong model": "– – – – – alarm",
}
check(
    "table",
    sum(
        a != b
        for name, row in expected.items()
        for a, b in zip(table[name], row.split(), strict=True)
    ),
    near(0, 0),
    says="Entries of five rows of the table that are not as the text says",
)

# %% [markdown]
# No single check sees all, and $\hat R$ sees least. What to do about an alarm is on {doc}`/book/practice/when_it_goes_wrong`.
#
# * `sample` warns of gross errors for nothing: by the virial theorem, $\operatorname{E}[(\theta - c)\cdot\nabla U(\theta)] = T\dim\theta$ for every $c$. It does not see an error below a fifth, nor one in a run of few effective samples.
# * **Half the step** sees what falls with the step, and costs three runs. Give it twenty chains or more.
# * **HMC** on all the data, or on a small copy of the problem, sees what changes a mean or a width beyond its error: here the missing noise estimate, neither *slow* nor a missed mode. It shares a slip in the density.
# * **Ranks** see all but a wrong model, if the starts are those of the real run. They cost a hundred runs or more. $\hat R$ sees a missed mode, too, if starts are far apart.
# * **Predictions** alone see a wrong model.
#
# To check somebody else's sampler, give it a Gaussian, where its exact covariance is known: {doc}`/book/practice/which_library` does that.
#
# **To remember:** `tune`, then half the step, then $\hat R$; and one run on simulated data before the first real one.
#
# ## Change it
#
# * In the first cell set `batch_size=100` to `batch_size=20`: the kernel prints about a fifth of the step, and the same share of a half.
# * In the cell of the table set `{"weight": 0.5}` to `{"weight": 0.9}`: the slip widens the posterior by a twentieth, and no check sees it.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-tuning-one
#
# ★ Derive {eq}`eq-tuning-matched` in one dimension from {eq}`eq-direction`: which $\hat B$ makes the product of temperature and step factor one?
# ```
#
# ```{solution} ex-tuning-one
# :class: dropdown
#
# The temperature must be $1 - \varepsilon^2a/(4 - 2\varepsilon C)$ with $M = 1$, so $(B - \hat B)/C = -\varepsilon^2a/(4 - 2\varepsilon C)$ and $\hat B = B + \varepsilon^2aC/(4 - 2\varepsilon C)$.
# In {eq}`eq-tuning-matched` $K = 1/(1 - \tfrac12\varepsilon C)$, and $\tfrac18\varepsilon^2\cdot2CKa = \tfrac14\varepsilon^2aC/(1 - \tfrac12\varepsilon C)$, the same.
# ```
#
# ```{exercise}
# :label: ex-tuning-share
#
# ★ The noise at the posterior's samples is larger by a fifth than at the mode, where it was measured.
# By how much is a standard deviation wrong with the default?
# What does it cost to make this error half as large?
# ```
#
# ```{solution} ex-tuning-share
# :class: dropdown
#
# $\hat B$ covers $\tfrac12$ of the friction, and $B$ is $0.6$ of it: $T = 1 + 0.1$, and the width is wrong by 5 % in the noisiest direction.
# Half the share is half the step and twice the gradients.
# Measuring the noise at samples, as `tune` does, costs little.
# ```
#
# ```{exercise}
# :label: ex-tuning-write
#
# ★★ **Write it yourself.** Turn {prf:ref}`alg-tuning-default` into code for whole matrices.
#
# ~~~python
# def my_default(A, V):
#     """Mass, friction, step size, noise estimate and steps between samples."""
#     ...
# ~~~
# ```
#
# ```{solution} ex-tuning-write
# :class: dropdown
#
# The cell below has six lines.
# $A^{-1}V$ is not symmetric, but its eigenvalues are those of $A^{-1/2}VA^{-1/2}$ and so real; with $M = A$ and $C = 2A$ the matrix $K$ is $A^{-1}/(1 - \varepsilon)$, and the second part of $\hat B$ is $\tfrac12\varepsilon^2A/(1 - \varepsilon)$.
# ```


# %% tags=["hide-input"]
from sgmc.targets import Gaussian, NoisyGradient


def my_default(A, V):
    """Mass, friction, step size, noise estimate and steps between samples."""
    loudness = float(torch.linalg.eigvals(torch.linalg.solve(A, V)).real.max())
    step = min(0.5, 2 / loudness)
    estimate = 0.5 * step * V + 0.5 * step**2 / (1 - step) * A
    return A, 2 * A, step, estimate, math.ceil(2 / step)


A, V = random_matrix(1, 3), random_matrix(20, 50)
target = NoisyGradient(Gaussian(torch.linalg.inv(A)), V)
package = default_kernel(target, torch.zeros(1, 4, dtype=double))
theirs = (package.mass, package.friction, package.step_size)
theirs += (package.noise_estimate, package.num_steps)
check(
    "default",
    max(
        float((torch.as_tensor(a) - torch.as_tensor(b)).abs().max())
        / float(torch.as_tensor(a).abs().max())
        for a, b in zip(my_default(A, V), theirs, strict=True)
    ),
    at_most(1e-6),
    kind="exact",
    because="the package finds A by differences of gradients, good to about 1e-9",
    says="The solution: largest relative difference from what the package chooses",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`nemeth2021` review the samplers and their tuning, {cite:t}`brosse2018` say what a constant step costs, {cite:t}`gelman1992` introduced $\hat R$, {cite:t}`gelman2013` cut chains into halves and {cite:t}`vehtari2021` rank the values, and {cite:t}`talts2018` have the ranks of parameters.
# {cite:t}`gorham2017` check samples by Stein's method, which needs nothing but gradients.
