# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Few samples: what has to be stored to predict
#
# ```{div} page-head
# Level: second course · Reading: about 51 minutes, without the exercises · Running: about 15 seconds
# ```
#
# A chain leaves hundreds of networks, each of which has to be stored, and evaluated for every prediction; how few will do, which ones, and what can one network learn from all of them?
#
# **You will learn** to
#
# * tell how much a chain loses when only every $k$-th sample is kept,
# * choose samples by herding, and say what is lost when the features are badly chosen,
# * distil an average over many networks into one, and say what one network cannot represent.
#
# **You will need** {doc}`/book/tutorial/markov_chains`, {doc}`/book/tutorial/sghmc` and {doc}`/book/studies/uncertainty`.

# %%
import math

import matplotlib.pyplot as plt
import torch
from scipy import stats
from torch import nn

from booklib.data import digits, letters
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.rivals import snapshots
from booklib.rivals.distillation import SoftTargets, lessons
from booklib.rivals.thinning import herd, thin
from booklib.runs.results import RESULTS, read_result, who_ran
from booklib.scores.fidelity import predictive_distance
from booklib.scores.prediction import log_score, predictive_entropy
from sgmc import sample
from sgmc.door.draws import Draws
from sgmc.kernels import SGHMC, SGLD
from sgmc.posteriors import Gaussian as Normal
from sgmc.posteriors import LinearRegression, NetworkPosterior
from sgmc.targets import Gaussian

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
DOUBLE = torch.float64

# %% [markdown]
# ## Eight draws for three hundred
#
# A prediction is an average over $S$ draws, $\bar p(y \mid x) = \frac1S\sum_sp(y \mid x, \theta_s)$.
# With $d$ weights in single precision it needs $4Sd$ bytes, and $S$ evaluations of the network for every input.
# Could a few of the draws stand for all?
# We want to keep $K$ of them, each with the same weight, so that averages stay plain means.
#
# Take a Bayesian linear regression with two weights, and 300 draws of a slow chain.
# The next cell keeps eight of them in five ways: `thin` takes draws at even distances, and `herd` chooses them so that a mean comes out right.

# %%
generator = torch.Generator().manual_seed(0)
mixing = torch.tensor([[1.0, 0.8], [0.0, 0.6]], dtype=DOUBLE)
x = torch.randn(40, 2, generator=generator, dtype=DOUBLE) @ mixing
noise = torch.randn(40, generator=generator, dtype=DOUBLE)
regression = LinearRegression(x, x @ torch.tensor([1.0, -0.5]).double() + noise)
root = torch.linalg.cholesky(regression.precision)


def whiten(position):
    """Bring the posterior to N(0, I)."""
    return (position - regression.mean) @ root


slow = SGLD(0.05, mass=regression.precision)  # whose autocorrelation is 0.95
start = regression.mean[None]
chain = sample(slow, regression, start, 300, warm_up=100, seed=3)
z = whiten(chain.samples[:, 0])
shuffled = torch.randperm(300, generator=generator)
kept = {
    "last": chain.samples[-8:, 0],
    "evenly thinned": thin(chain, 8).samples[:, 0],
    "random": chain.samples[shuffled[:8], 0],
    "herded by weights": herd(chain, 8, z @ z.mT).samples[:, 0],
    "… and their products": herd(chain, 8, (1 + z @ z.mT) ** 2).samples[:, 0],
}

# %% mystnb={"figure": {"caption": "Three hundred draws of a slow chain (grey, their mean a cross) and eight that are kept (dots, their mean a plus). The last eight are neighbours. Evenly thinned and random ones are spread out, with a mean that is off. Herded by the weights alone they have the right mean and huddle round it; herded by the weights and their products they have the right mean and the right spread.", "name": "fig-few-idea"}, "image": {"alt": "Five panels with the same grey cloud along a diagonal. Dots lie in one corner, along the whole cloud, at random in it, close to its centre, and at even distances over all of it."}} tags=["hide-input"]
figure, panels = plt.subplots(3, 2, figsize=(4.8, 6.4), sharex=True, sharey=True)
panels = panels.flatten()
for axes, (name, places) in zip(panels, kept.items(), strict=False):
    axes.plot(*chain.samples[:, 0].T, ".", color=TRUTH, ms=2, alpha=0.6)
    axes.plot(*places.T, "o", color=COLOURS["HMC"], ms=4)
    axes.plot(*chain.samples[:, 0].mean(0), "x", color="black", ms=9)
    axes.plot(*places.mean(0), "+", color=COLOURS["naive SGHMC"], ms=10, mew=2)
    axes.set_title(name, fontsize=10)
for axes in panels[3:5]:
    axes.set_xlabel(r"$\theta_1$")
    axes.xaxis.set_tick_params(labelbottom=True)
for axes in panels[::2]:
    axes.set_ylabel(r"$\theta_2$")
panels[5].axis("off")
plt.show()

# %% [markdown]
# In {numref}`fig-few-idea` the last eight have too little spread, because neighbours in a chain repeat each other.
# A choice that looks at the mean can be better than chance, but it keeps only what it was told to look at: compare the two panels of herding.


# %% tags=["hide-input"]
def off(places):
    """How far a mean is off, in posterior standard deviations."""
    return float((whiten(places).mean(0) - z.mean(0)).norm())


def spread(places):
    """Total variance over that of all the draws."""
    return float(
        whiten(places).var(0, correction=0).sum() / z.var(0, correction=0).sum()
    )


for name, most, seen in (
    ("herded by weights", 0.1, "0.004 to 0.03"),
    ("herded by weights and their products", 0.35, "0.09 to 0.16"),
):
    claim(
        f"Mean of eight draws {name}: distance from that of 300, in standard "
        "deviations",
        off(kept[name if name in kept else "… and their products"]),
        at_most=most,
        because=f"{seen} with ten seeds; 0.5 is the scale of eight independent draws",
    )
claim(
    "Variance of the last eight draws over that of all",
    spread(kept["last"]),
    at_most=0.9,
    because="eight neighbours with autocorrelation 0.95; 0.03 to 0.38 with ten seeds",
)
claim(
    "Variance of eight draws herded by weights over that of all",
    spread(kept["herded by weights"]),
    at_most=0.2,
    because="0.01 to 0.06 with ten seeds",
)
claim(
    "Variance of eight draws herded by weights and products over that of all",
    spread(kept["… and their products"]),
    near=0.87,
    within=0.3,
    because="0.79 to 0.94 with ten seeds; eight random ones have 7/8 on average",
)

# %% [markdown]
# To compare predictions of classes we use the total variation, averaged over $n$ inputs, as in {doc}`/book/practice/fidelity`:
#
# $$
# \begin{aligned}
# d(p, q) &= \frac1n\sum_{i=1}^n d_{x_i}(p, q), \\
# d_x(p, q) &= \frac12\sum_k\lvert p(k \mid x) - q(k \mid x)\rvert.
# \end{aligned}
# $$ (eq-few-distance)
#
# ## Thinning
#
# A chain with strong autocorrelation has many draws and few {term}`effective ones <effective draws>`, so it should lose little by {term}`thinning`, when only every $k$-th draw is kept.
# Where the autocorrelations are $\rho^j$ we can say how little.
#
# ```{prf:theorem} What thinning costs
# :label: thm-few-thinning
#
# Let $f_1, \dots, f_S$ be values along a stationary chain with variance $v$ and autocorrelations $\rho^j$, $0 < \rho < 1$. The mean of $K$ of them, $k$ apart, has the variance
#
# $$
# \frac vK\Bigl(1 + 2\sum_{j<K}\bigl(1 - \tfrac jK\bigr)\rho^{kj}\Bigr).
# $$ (eq-few-thinned)
#
# For $S = kK \to \infty$ this is $\frac vS\,k\coth(\tfrac12ak)$ with $\rho = e^{-a}$. It grows with $k$. If $a$ is small, it is larger than that of all $S$ by the factor $h\coth h$ with $h = k/\tau$, where $\tau \approx 2/a$ is the integrated autocorrelation time.
# ```
#
# The {ref}`proof <proof-few-thinning>` is in the appendix.
#
# So thinning never helps the average {cite:p}`geyer1992`, but saves memory and time; with a fixed sum to spend it may help ({ref}`ex-few-cost`).
# Keep as many draws as the chain has effective ones, $S/\tau$, so that $h = 1$, and the variance is larger by 31 per cent; with twice as many it is 8 per cent.

# %%
rho, S, many = 0.9, 1_000, 2_000  # 2,000 chains, as coordinates of one
walk = SGLD(1 - rho)  # whose autocorrelation on N(0, 1) is ρ
variance = 1 / (1 - (1 - rho) / 2)  # of a draw: 1, and the bias of the step
start = variance**0.5 * torch.randn(many, 1, generator=generator, dtype=DOUBLE)
long = sample(walk, Gaussian.standard(1, DOUBLE), start, S, seed=4)
side_by_side = Draws(long.samples.transpose(1, 2))
tau = (1 + rho) / (1 - rho)
few = {K: thin(side_by_side, K).samples for K in (1_000, 200, 100, 50, 25, 10)}
squares = {K: values[:, 0].mean(0).square() for K, values in few.items()}


def thinned_variance(K):
    """The exact variance of the mean of K draws, for this chain."""
    j = torch.arange(1, K, dtype=DOUBLE)
    return variance / K * (1 + 2 * float(((1 - j / K) * rho ** (S // K * j)).sum()))


# %% tags=["hide-input"]
rows = []
for K in squares:
    exact, h = thinned_variance(K), S / K / tau
    rows.append(
        [
            str(K),
            f"{K * tau / S:.2f}",
            f"{exact / thinned_variance(S):.2f}",
            f"{h / math.tanh(h):.2f}",
        ]
    )
show_table(["kept", "kept per effective draw", "variance", "h coth h"], rows)

# %% [markdown]
# Variances are the exact ones of {eq}`eq-few-thinned`, in units of that of all 1,000 draws.
# The chain has 53 effective draws, so a tenth of the draws would do.

# %% tags=["hide-input"]
for K, square in squares.items():
    claim(
        f"Variance of the mean of {K} evenly thinned draws of 1,000",
        square.mean(),
        near=round(thinned_variance(K), 6),
        standard_error=square.std() / many**0.5,
        because="the exact law of the linear chain; 2,000 chains",
    )
for kept_per, wanted in ((1, 1.31), (2, 1.08)):
    claim(
        f"h coth h, keeping {kept_per} draw{'s' * (kept_per > 1)} for each effective "
        "one",
        1 / kept_per / math.tanh(1 / kept_per),
        near=wanted,
        within=0.005,
        because="arithmetic",
        kind="exact",
    )

# %% [markdown]
# A random choice ignores the order, and needs no chain.
#
# ```{prf:theorem} Random draws
# :label: thm-few-random
#
# Let $\varphi_1, \dots, \varphi_S$ be any vectors with mean $\mu$ and $\sigma_\varphi^2 = \frac1S\sum_s\lvert\varphi_s - \mu\rvert^2$. The mean of $K$ of them, chosen at random without repetition, has the expected squared distance
#
# $$
# \begin{aligned}
# E\,e_K^2 &= \frac{\sigma_\varphi^2}{K}\cdot\frac{S - K}{S - 1}, \\
# e_K &= \Bigl|\frac1K\sum_{\text{kept}}\varphi_s - \mu\Bigr|.
# \end{aligned}
# $$ (eq-few-random)
# ```
#
# The {ref}`proof <proof-few-random>` is in the appendix.
#
# For a regression ten draws miss a tenth of the posterior's own variance.
#
# ## Herding
#
# Let the draws have *features* $\varphi_s = \varphi(\theta_s)$, such as the probabilities that $\theta_s$ predicts on some inputs.
# The choice should make $e_K$ of {eq}`eq-few-random` small, the distance between the mean feature of the kept draws and that of all.
# Take the draws one after the other, and each time the one that brings the mean nearest.
#
# ```{prf:algorithm} Herding
# :label: alg-few-herding
#
# With $u_0 = 0$, for $K = 1, 2, \dots$:
#
# 1. Of the draws that are left choose the one that makes $\lvert u_{K-1} + \varphi_s - \mu\rvert$ least, $\mu$ being the mean of all features.
# 2. Set $u_K = u_{K-1} + \varphi_s - \mu$, so that $e_K = \lvert u_K\rvert/K$.
# ```
#
# In code, with the features as rows of a matrix:


# %%
def herd_by_hand(features, number):
    """The places of the draws that herding keeps, in the order of their choice."""
    offsets = features - features.mean(0)  # φ − μ
    u, chosen = torch.zeros_like(offsets[0]), []
    for _ in range(number):
        lengths = (u + offsets).norm(dim=-1)
        lengths[chosen] = torch.inf  # those are taken
        best = int(lengths.argmin())
        u = u + offsets[best]
        chosen.append(best)
    return chosen


# %% tags=["hide-input"]
package = herd(chain, 8, z @ z.mT).statistics["index"][:, 0].tolist()
claim(
    "Draws of eight that these lines and the package's herd choose differently",
    sum(a != b for a, b in zip(herd_by_hand(z, 8), package, strict=True)),
    near=0,
    within=0,
    because="one algorithm; the package's has the inner products instead of features",
    kind="exact",
)

# %% [markdown]
# The lengths need only inner products of features, $G_{st} = \varphi_s^\top\varphi_t$.
# The package's `herd` takes this matrix, or a function $k(\theta_s, \theta_t)$, in place of the features; $e_K$ is then known as the *maximum mean discrepancy*.
#
# {cite:t}`chen2010` proposed it, and {cite:t}`bach2012` recognised a conditional gradient method in it.
#
# ```{prf:theorem} Herding is no worse than chance, and may be better
# :label: thm-few-herding
#
# Let $D = \max_s\lvert\varphi_s - \mu\rvert$.
#
# 1. Always $e_K^2 \le \dfrac{D^2}{K}\cdot\dfrac{S - K}{S - 1}$.
# 2. Suppose that up to the $K$-th choice the convex hull of the features that are left contains, in the space that $\varphi_s - \mu$ span, the ball of radius $r > 0$ around $\mu$. Then $e_K \le \dfrac1K\max\Bigl(D, \dfrac{D^2}{2r}\Bigr)$.
# ```
#
# The {ref}`proof <proof-few-herding>` is in the appendix.
#
# Chance falls like $1/\sqrt K$, and herding like $1/K$, if there is a ball, as with few features and many draws.
# With more features than draws, the usual case for networks, there is none after one choice ({ref}`ex-few-simplex`).
#
# ## What herding keeps
#
# Whatever is linear in the features is kept up to a small error: if $g(\theta) = c + w^\top\varphi(\theta)$, its mean over the kept differs from that over all by at most $\lvert w\rvert\,e_K$, by the inequality of Cauchy and Schwarz.
# For features that are the probabilities of $C$ classes on $n$ inputs, {eq}`eq-few-distance` is thereby at most $\frac12\sqrt{C/n}\;e_K$ on these inputs.
# What is not linear in them may be lost, because the rule prefers features near their mean ({numref}`fig-few-idea`).
#
# In regression all of this can be computed. Let $\zeta = L^\top(\theta - \hat\theta)$ with $LL^\top = \Sigma^{-1}$ be the weights in units in which the posterior is $N(0, I)$, and $x^\top\theta = x^\top\hat\theta + w^\top\zeta$, with $\lvert w\rvert^2 = x^\top\Sigma x = v$.
#
# * *Features* $\zeta$: the mean of every prediction is off by at most $e_K$ posterior standard deviations, but nothing holds the spread. With one weight and very many draws the $K$ innermost are kept ({ref}`ex-few-innermost`): a predictive without any uncertainty about $\theta$.
# * *Features* $1$, $\sqrt2\,\zeta$, $\zeta\zeta^\top$, that is $k = (1 + \zeta_s^\top\zeta_t)^2$: the mean is off by at most $e_K/\sqrt2$ standard deviations, and the second moment about $\hat\theta$ by at most the share $e_K$, for every $x$ at once.
#
# Let us see it with 2,000 exact draws.

# %%
S = 2_000
whole = torch.randn(S, 2, generator=generator, dtype=DOUBLE)  # exact draws, whitened
whole_draws = Draws(whole[:, None])
gram = (1 + whole @ whole.mT) ** 2
products = (whole[:, :, None] * whole[:, None]).flatten(1)
features = torch.cat([2**0.5 * whole, products], -1)
centre, sigma2 = features.mean(0), float(features.var(0, correction=0).sum())
herds = {
    "herded by weights": herd(whole_draws, 200, whole @ whole.mT),
    "herded by products too": herd(whole_draws, 200, gram),
}

# %% tags=["hide-input"]
counts = [1, 2, 5, 10, 20, 50, 100, 200]
orders = [torch.randperm(S, generator=generator) for _ in range(200)]


def distances(order):
    """e_K of the first K, in the features with products."""
    return torch.stack([(features[order[:K]].mean(0) - centre).norm() for K in counts])


def variances(order):
    """Variance of the first K over the exact one, averaged over directions."""
    return torch.stack([whole[order[:K]].var(0, correction=0).mean() for K in counts])


places = {name: run.statistics["index"][:, 0] for name, run in herds.items()}
chance = torch.stack([distances(order) for order in orders])
chance_variances = torch.stack([variances(order) for order in orders])

# %% mystnb={"figure": {"caption": "Keeping few of 2,000 exact draws of a regression with two weights. Above: distance from the mean of all in the features with products; grey lines fall like $1/\\sqrt K$ and $1/K$. Below: variance of the kept weights over the exact one. Random draws follow their theorem (black lines). Herding by the weights alone loses the variance.", "name": "fig-few-regression"}, "image": {"alt": "Above, log-log: random draws fall along the shallow line, the herd with products along the steep one, the herd by weights alone stays level. Below: the herd by weights alone lies near zero throughout, the others rise to one."}} tags=["hide-input"]
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.4, 5.8), sharex=True)
K_axis = torch.tensor(counts, dtype=DOUBLE)
expected = (sigma2 / K_axis * (S - K_axis) / (S - 1)).sqrt()
for power in (0.5, 1.0):
    upper.loglog(counts, 2.2 * K_axis**-power, color=TRUTH, lw=0.8)
upper.loglog(counts, expected, color="black", lw=1)
upper.loglog(
    counts, chance.square().mean(0).sqrt(), "o", color="black", ms=4, label="random"
)
lower.semilogx(counts, 1 - 1 / K_axis, color="black", lw=1)
lower.semilogx(
    counts, chance_variances.mean(0), "o", color="black", ms=4, label="random"
)
for (name, order), colour in zip(
    places.items(), (COLOURS["SGD"], COLOURS["HMC"]), strict=True
):
    upper.loglog(counts, distances(order), "o-", color=colour, ms=4, label=name)
    lower.semilogx(counts, variances(order), "o-", color=colour, ms=4, label=name)
upper.set(ylabel="distance $e_K$")
lower.set(xlabel="draws kept, $K$", ylabel="variance / exact")
upper.legend(loc="lower left")
plt.show()

# %% [markdown]
# In the upper half of {numref}`fig-few-regression` random draws lie on the line of their theorem, and herding with products falls faster, like $1/K$.
# In the lower half herding by the weights alone has next to no variance.

# %% tags=["hide-input"]
for K in (5, 50):
    square = chance[:, counts.index(K)].square()
    claim(
        f"Mean squared distance of {K} random draws",
        square.mean(),
        near=round(sigma2 / K * (S - K) / (S - 1), 5),
        standard_error=square.std() / len(square) ** 0.5,
        because="the theorem; 200 choices",
    )
    missing = chance_variances[:, counts.index(K)]
    exact = float(whole.var(0, correction=0).mean()) * (1 - 1 / K) * S / (S - 1)
    claim(
        f"Mean variance of {K} random draws",
        missing.mean(),
        near=round(exact, 4),
        standard_error=missing.std() / len(missing) ** 0.5,
        because="1 − 1/K of that of all, with S/(S − 1) as there is no repetition",
    )
steep = distances(places["herded by products too"])
claim(
    "Herded by products too: distance of 10 over that of 200",
    steep[counts.index(10)] / steep[-1],
    at_least=10,
    because="20 if it falls like 1/K, 4.5 if like 1/√K; 18 to 27 with ten sets of data",
)
bound = float((features - centre).square().sum(-1).max())
claim(
    "Largest squared distance over the bound of the theorem, first part",
    max(
        float(value**2 / (bound / K * (S - K) / (S - 1)))
        for K, value in zip(counts, steep, strict=True)
    ),
    at_most=1,
    because="proved",
    kind="exact",
)
claim(
    "Variance of 200 draws herded by weights over the exact one",
    variances(places["herded by weights"])[-1],
    at_most=0.15,
    because="0.049 to 0.058 with ten seeds: the innermost tenth",
)
claim(
    "Variance of 20 draws herded by products too over the exact one",
    variances(places["herded by products too"])[counts.index(20)],
    near=0.94,
    within=0.12,
    because="0.91 to 0.99 with ten sets of data",
)

# %% [markdown]
# So for a regression features must hold means *and* variances.
# For classes the prediction is linear in the probabilities, so these are the features to take.
#
# ## One network instead
#
# Train one network, the *student*, to predict what the draws predict on average, the *teacher's* $\bar p$: this is called *distillation* {cite:p}`bucila2006,hinton2015`, and for a chain of SGLD *Bayesian dark knowledge* {cite:p}`korattikara2015`.
#
# Let $q(y \mid x, w)$ be what a student with the weights $w$ predicts, and $x$ be drawn from some distribution of inputs. We look for the weights with the least
#
# $$
# \begin{aligned}
# J(w) &= E_x\,KL\bigl(\bar p(\cdot \mid x)\,\|\,q(\cdot \mid x, w)\bigr) \\
# &= -E_x\sum_k\bar p(k \mid x)\log q(k \mid x, w) + \text{const}.
# \end{aligned}
# $$ (eq-few-distil)
#
# The second form is a cross-entropy with probabilities instead of labels: a log likelihood with *soft targets*.
# So a student is a `NetworkPosterior` like any other, and any descent trains it.
#
# ```{prf:theorem} What a student comes to
# :label: thm-few-student
#
# 1. $J(w) \ge 0$, with equality only if $q = \bar p$ for almost all $x$. If some $w$ has $q(\cdot \mid \cdot, w) = \bar p$, it is a global minimum, and every global minimum predicts $\bar p$ on almost all $x$; a local one need not.
# 2. The gradient of $J$ is the average over the draws of the gradients of $J_s(w) = E_x\,KL\bigl(p(\cdot \mid x, \theta_s)\,\|\,q(\cdot \mid x, w)\bigr)$: to be taught by one random draw at a time is to be taught by the average, with noise.
# 3. On the inputs that it is taught, $d(\bar p, q) \le \sqrt{\tfrac12KL}$, with the mean divergence over these inputs.
# ```
#
# The {ref}`proof <proof-few-student>` is in the appendix.
#
# {cite:t}`korattikara2015` use the second part, while SGLD runs; we have the draws, so `lessons` averages them once.
# Inputs need no labels, so we add copies with noise, $x_i + N(0, s^2I)$.
#
# ```{prf:theorem} A linear student of a regression
# :label: thm-few-linear
#
# Let the teacher be $S$ draws of a linear regression, $p(y \mid x, \theta_s) = N(x^\top\theta_s, \sigma^2)$, with the mean $\bar\theta$ and the covariance $\hat\Sigma$. Of all $q = N(x^\top w, s^2)$ the one with the least $J$ has $w = \bar\theta$ and $s^2 = \sigma^2 + E_x\,x^\top\hat\Sigma x$, if $E\,xx^\top$ is regular.
# ```
#
# The {ref}`proof <proof-few-linear>` is in the appendix.
#
# The next cell trains such a student, with $s^2 = 1$ given and not learned.

# %%
line = nn.Linear(2, 1, bias=False).double()
of_lines = NetworkPosterior(line, *regression.data, likelihood=Normal(1.0))
theta = regression.mean + torch.linalg.solve(root.T, whole.T).T
data = lessons(of_lines, Draws(theta[:, None]), x)
pupil = NetworkPosterior(line, *data, prior_variance=1e6, likelihood=Normal(1.0))
start = torch.zeros(1, 2, dtype=DOUBLE)
learned = snapshots(pupil, start, 1, cycle_length=1_000, learning_rate=0.5 / 40)

# %% tags=["hide-input"]
claim(
    "Largest difference between the student's weights and the mean of the draws",
    (learned.samples[0, 0] - theta.mean(0)).abs().max(),
    at_most=1e-4,
    because="the theorem, and a descent of 1,000 steps with a wide prior",
)
of_prediction = (x @ theta.T.cov() * x).sum(-1)
claim(
    "Largest variance of a prediction among the forty inputs over the smallest",
    of_prediction.max() / of_prediction.min(),
    at_least=20,
    because="inputs near zero and far out; one number has to stand for all",
)

# %% [markdown]
# The student of the theorem knows the mean of the draws, and how unsure they are *on average*.
# But no single network can have the disagreement of {prf:ref}`def-disagreement`,
#
# $$
# \mathcal D(x) = H\bigl(\bar p(\cdot \mid x)\bigr) - \frac1S\sum_sH\bigl(p(\cdot \mid x, \theta_s)\bigr),
# $$
#
# which tells a smudged digit, of which every network is unsure, from a letter, on which they contradict one another; for one network $\mathcal D = 0$.
#
# ## Digits, live
#
# We take sixty networks with 50 hidden units from the second half of 60 epochs of SGHMC over 4,000 digits, herd by predictions for a quarter of the training digits, and score on test digits.

# %%
train, test = digits()
strange = letters()
network = NetworkPosterior(multilayer_perceptron([784, 50, 10]), *train, batch_size=500)
kernel = SGHMC.from_learning_rate(0.4 / 4_000, 0.1)


def run_chain(seed):
    """Sixty networks, four steps apart."""
    begin = network.initial_position(1, torch.Generator().manual_seed(seed))
    return sample(kernel, network, begin, 60, warm_up=240, thinning=4, seed=seed)


networks = run_chain(0)
positions = networks.samples[:, 0]
inside = network.predict(positions, test.inputs).double()
outside = network.predict(positions, strange.inputs).double()
other = network.predict(run_chain(1).samples[:, 0], test.inputs).double().mean(0)
teacher = inside.mean(0)

seen = network.predict(positions, train.inputs[::4]).double().flatten(1)
herded = herd(networks, 30, seen @ seen.mT).statistics["index"][:, 0]

# %% tags=["hide-input"]
orders = [torch.randperm(60, generator=generator) for _ in range(40)]
ways = {
    "last": lambda K: [torch.arange(60 - K, 60)],
    "even": lambda K: [thin(networks, K).statistics["index"][:, 0]],
    "random": lambda K: [order[:K] for order in orders],
    "herded": lambda K: [herded[:K]],
}
small_counts = [1, 2, 5, 10, 20, 30]


def mean_distance(way, K):
    """Distance from the average over all sixty, averaged over choices."""
    averages = [inside[chosen].mean(0) for chosen in ways[way](K)]
    return sum(predictive_distance(p, teacher) for p in averages) / len(averages)


# %% [markdown]
# The student has the same layers, and learns what all sixty say of the 4,000 digits.

# %%
taught = lessons(network, networks, train.inputs)
settings = dict(batch_size=500, likelihood=SoftTargets())
student = NetworkPosterior(multilayer_perceptron([784, 50, 10]), *taught, **settings)
begin = student.initial_position(1, torch.Generator().manual_seed(2))
fit = snapshots(student, begin, 1, cycle_length=480, learning_rate=0.5 / 4_000)
said = student.predict(fit.samples[0], test.inputs)[0].double()
said_of_letters = student.predict(fit.samples[0], strange.inputs)[0].double()

# %% mystnb={"figure": {"caption": "Above: total variation between the average of few networks and that of all sixty, on the test digits; the dotted line is a student, the dashed one another chain of sixty. Below: disagreement of the networks that are kept, in nats, averaged over letters; grey: that of all sixty; the student has none.", "name": "fig-few-live"}, "image": {"alt": "Above, four lines that fall with the number of networks, that of the last ones highest; a dotted line for the student lies at the height of their left ends, and a dashed one for the other chain above them all. Below, four lines rising from zero towards a grey level."}} tags=["hide-input"]
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.4, 5.8), sharex=True)
WAYS = {
    "last": (COLOURS["naive SGHMC"], "s"),
    "even": (COLOURS["SGLD"], "^"),
    "random": ("black", "o"),
    "herded": (COLOURS["HMC"], "D"),
}


def disagreement(probabilities):
    """Mean over inputs of the disagreement of networks (networks, n, classes)."""
    alone = predictive_entropy(probabilities).mean()
    return float(predictive_entropy(probabilities.mean(0)).mean() - alone)


def mean_disagreement(way, K):
    each = [disagreement(outside[chosen]) for chosen in ways[way](K)]
    return sum(each) / len(each)


for way, (colour, marker) in WAYS.items():
    look = dict(color=colour, marker=marker, ms=4, label=way)
    upper.loglog(small_counts, [mean_distance(way, K) for K in small_counts], **look)
    lower.semilogx(
        small_counts, [mean_disagreement(way, K) for K in small_counts], **look
    )
upper.axhline(predictive_distance(said, teacher), color=COLOURS["SGHMC"], ls=":")
upper.axhline(predictive_distance(other, teacher), color="0.3", ls="--")
lower.axhline(disagreement(outside), color=TRUTH)
upper.set(ylabel="distance from all sixty")
lower.set(xlabel="networks kept, $K$", ylabel="disagreement on letters")
lower.legend()
upper.set_xticks(small_counts, map(str, small_counts))
upper.xaxis.minorticks_off()
plt.show()

# %% [markdown]
# In the upper half of {numref}`fig-few-live` ten evenly thinned networks are far nearer to the sixty than another chain is.
# Five herded networks beat five random ones, and so do five at even distances.
# The dashed line is the other chain: *the two averages differ by more than anything that keeping loses*.
# Below, ten networks keep most of the disagreement, and one has none.
#
# The student's distance is that of a single network of the chain, and yet it predicts the labels much better.

# %% tags=["hide-input"]
because = "three seeds of chains and starts agree, with room"
claim(
    "Distance of the last five over that of five evenly thinned",
    mean_distance("last", 5) / mean_distance("even", 5),
    at_least=1.4,
    because=because,
)
claim(
    "Distance of five herded networks over that of five random ones",
    mean_distance("herded", 5) / mean_distance("random", 5),
    at_most=1,
    because="0.69 to 0.83 with ten seeds",
)
claim(
    "Distance of five evenly thinned networks over that of five random ones",
    mean_distance("even", 5) / mean_distance("random", 5),
    at_most=0.95,
    because=because,
)
claim(
    "Distance of ten evenly thinned networks over that of another chain",
    mean_distance("even", 10) / predictive_distance(other, teacher),
    at_most=0.3,
    because=because,
)
claim(
    "Largest distance of any choice over that of another chain",
    max(mean_distance(way, K) for way in ways for K in small_counts)
    / predictive_distance(other, teacher),
    at_most=1,
    because="0.68 to 0.86 with ten seeds",
)
claim(
    "Distance of the student over that of one random network",
    predictive_distance(said, teacher) / mean_distance("random", 1),
    near=1.1,
    within=0.4,
    because="1.00 to 1.22 with ten seeds",
)
alone = sum(log_score(one, test.targets) for one in inside) / 60
claim(
    "Log loss of the student over that of one network of the chain",
    log_score(said, test.targets) / alone,
    at_most=0.5,
    because=because,
)
claim(
    "Disagreement of the student's one network on letters",
    disagreement(said_of_letters[None]),
    near=0,
    within=1e-9,
    because="one network agrees with itself",
    kind="exact",
)
claim(
    "Disagreement on letters that ten evenly thinned networks keep, as a share",
    mean_disagreement("even", 10) / disagreement(outside),
    at_least=0.8,
    because=because,
)

# %% [markdown]
# ## MNIST, all of them, at full scale
#
# `python -m experiments run few` keeps 300 networks of 784–100–10, ten minibatches apart, from the second half of 60 passes over 50,000 digits.
# Herding looks at predictions for the 10,000 validation digits.
# Students with 30, 100 and 400 hidden units learn from the 50,000 digits and a copy of them with noise, $s = 0.2$; one with 100 sees no copy, and one network learns the labels instead.
# Each has 6,000 minibatches of 500, as the chain had, and a rate that was chosen on the validation digits.
# The first table and {numref}`fig-few-mnist` show the distance from the average over all 300.

# %% tags=["hide-input"]
result = read_result(RESULTS / "few.json")
seeds = result["runs"]
COLUMNS = ["distance", "distance_to_other", "error", "log_loss", "auroc"]


def row_of(run, name, K=None):
    """The scores of a way to keep K networks, of a student, or of all."""
    if name == "all":
        return run["all"]
    return run["ways"][name][str(K)] if K else run["students"][name]


def values_of(column, name, K=None):
    return [row_of(run, name, K)[column] for run in seeds]


def mean_of(column, name, K=None):
    return sum(values_of(column, name, K)) / len(seeds)


def two_tests(one, other):
    """The paired test and Welch's."""
    return stats.ttest_rel(one, other), stats.ttest_ind(one, other, equal_var=False)


named = {
    "last": "the last ones",
    "even": "evenly thinned",
    "random": "random",
    "herded": "herded",
}
axis = [int(K) for K in seeds[0]["ways"]["even"]]
show_table(
    ["networks kept", *map(str, axis)],
    [
        [title, *(f"{mean_of('distance', way, K):.4f}" for K in axis)]
        for way, title in named.items()
    ],
)
print(who_ran(result))

# %% mystnb={"figure": {"caption": "Distance on the test digits from the average over 300 networks, against the number of networks kept: means over the seeds (lines) and the seeds (dots). Dashed: another chain of 300. Grey band: from the nearest to the farthest of four students.", "name": "fig-few-mnist"}, "image": {"alt": "Log-log plot of four falling lines, that of the last networks highest. A dashed line for another chain lies above all of them; the band of the students reaches from the height of one or two networks to far above."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.8, 4))
for way, (colour, marker) in WAYS.items():
    means = [mean_of("distance", way, K) for K in axis]
    axes.loglog(axis, means, color=colour, label=named[way])
    for run in seeds:
        dots = [run["ways"][way][str(K)]["distance"] for K in axis]
        axes.loglog(axis, dots, marker, color=colour, ms=3, alpha=0.6)
axes.axhline(
    mean_of("distance_to_other", "all"), color="0.3", ls="--", label="another chain"
)
taught_networks = [name for name in seeds[0]["students"] if "student" in name]
levels = [mean_of("distance", name) for name in taught_networks]
axes.axhspan(
    min(levels), max(levels), color="0.5", alpha=0.2, lw=0, label="four students"
)
axes.set(xlabel="networks kept, $K$", ylabel="distance from the average over 300")
axes.set_xticks(axis, map(str, axis))
heights = (0.002, 0.005, 0.01, 0.02, 0.05)
axes.set_yticks(heights, map(str, heights))
axes.minorticks_off()
axes.legend(loc="lower left")
plt.show()

# %% [markdown]
# The second table shows the choices that one would really make, with their costs.

# %% tags=["hide-input"]
one = result["sizes"]["network"]
rows = []
choices = [("all", None), *(("even", K) for K in (100, 20, 10, 5))]
choices += [("random", 1), *((name, None) for name in seeds[0]["students"])]
for name, K in choices:
    means = {column: mean_of(column, name, K) for column in COLUMNS}
    size = result["sizes"].get(name.removesuffix(", no copy"), one)
    number = seeds[0]["networks"] if name == "all" else K or 1
    title = {"all": f"all {number}", "even": f"{K} evenly thinned"}.get(name, name)
    cells = [
        f"{means['distance']:.4f}",
        f"{means['distance_to_other']:.4f}",
        f"{100 * means['error']:.2f}",
        f"{means['log_loss']:.4f}",
        f"{means['auroc']:.3f}",
        f"{4e-6 * number * size['parameters']:.1f}",
        f"{number * size['multiply_adds'] / one['multiply_adds']:.1f}",
    ]
    rows.append(["one at random" if name == "random" else title, *cells])
heads = ["kept", "distance", "to other chain", "error %", "log loss", "letters"]
show_table([*heads, "MB", "time"], rows)

# %% [markdown]
# Means over the seeds: the distance {eq}`eq-few-distance` from the average over the 300 networks, and from that of another chain; error and {term}`log loss`; how well letters are told from digits by entropy, as the area under the ROC curve; megabytes of weights; multiplications of a prediction, in units of one network.
#
# {numref}`fig-few-mnist` and the tables say four things.
#
# * *Ten networks of 300 come near to what all predict, and score worse.* Evenly thinned, they are at a quarter of the distance of another chain, but the log loss is 0.125 instead of 0.105, and the area for letters 0.886 instead of 0.920: by their autocorrelation the 300 are worth about fourteen.
# * *They should be spread out; how they are chosen matters less.* Ten herded networks are nearer by 5 per cent than ten evenly thinned ones, 95 per cent interval $-2$ to 13; random ones need half as many again, and the last ones are far worse.

# %% tags=["hide-input"]
because = "the stored result; means over the seeds"
near, far = "distance", "distance_to_other"
students = [name for name in seeds[0]["students"] if name.startswith("student")]
labels = "labels 100"
claim(
    "MNIST: distance of ten evenly thinned networks over that of another chain of 300",
    mean_of(near, "even", 10) / mean_of(far, "all"),
    at_most=0.25,
    because=because,
    kind="stored",
)
claim(
    "MNIST: distance of ten random networks over that of a hundred",
    mean_of(near, "random", 10) / mean_of(near, "random", 100),
    near=3.81,
    within=0.5,
    because="the root of the theorem's ratio for 300, which is of squares",
    kind="stored",
)
claim(
    "MNIST: distance of ten evenly thinned networks over that of ten random ones",
    mean_of(near, "even", 10) / mean_of(near, "random", 10),
    near=0.81,
    within=0.02,
    because=because + "; √(2/3), so that random ones need half as many again",
    kind="stored",
)
thinned, herded = (values_of(near, way, 10) for way in ("even", "herded"))
ends = (test.confidence_interval() for test in two_tests(thinned, herded))
wider = max(ends, key=lambda interval: interval.high - interval.low)
for what, value, expected in (
    ("", mean_of(near, "even", 10) - mean_of(near, "herded", 10), 5),
    (", low end of its interval", wider.low, -2),
    (", high end", wider.high, 13),
):
    claim(
        "MNIST: by how many per cent of its distance ten herded networks are nearer "
        f"than ten evenly thinned{what}",
        100 * value / mean_of(near, "even", 10),
        near=expected,
        within=0.5,
        because="the stored result, the wider 95 % interval of the two tests",
        kind="stored",
    )
claim(
    "MNIST: distance of the last twenty networks over that of five evenly thinned",
    mean_of(near, "last", 20) / mean_of(near, "even", 5),
    at_least=1.5,
    because=because,
    kind="stored",
)
claim(
    "MNIST: distance to the other chain, of ten evenly thinned networks over that of "
    "300",
    mean_of(far, "even", 10) / mean_of(far, "all"),
    near=1,
    within=0.06,
    because=because,
    kind="stored",
)
claim(
    "MNIST: log loss and area for letters of ten evenly thinned networks, and of all "
    "300: largest difference from 0.125, 0.105, 0.886 and 0.920",
    max(
        abs(mean_of(column, name, K) - wanted)
        for column, name, K, wanted in (
            ("log_loss", "even", 10, 0.125),
            ("log_loss", "all", None, 0.105),
            ("auroc", "even", 10, 0.886),
            ("auroc", "all", None, 0.920),
        )
    ),
    at_most=0.0006,
    because=because,
    kind="stored",
)
effective = {
    way: sum(run["effective_number"][way] for run in seeds) / len(seeds)
    for way in ("autocorrelation", "other_chain")
}
claim(
    "MNIST: effective number of 300 networks by their autocorrelation",
    effective["autocorrelation"],
    near=13.6,
    within=1,
    because=because,
    kind="stored",
)
h = seeds[0]["networks"] / 10 / (seeds[0]["networks"] / effective["autocorrelation"])
claim(
    "MNIST: factor on the variance of the average by keeping ten, h coth h",
    h / math.tanh(h),
    near=1.55,
    within=0.1,
    because="the theorem with this autocorrelation",
    kind="stored",
)

# %% [markdown]
# * *The chain is the weak point.* The distance of two chains is that of means of fewer than 2 independent networks, not fourteen: an autocorrelation knows only the places where its chain has been.
# * *A student is a good network, and no copy of its teacher.* At best, with 400 units, its distance on inputs that it has not seen is that of a single network of the chain. There its error is less than that of the teacher, decided; but so is that of a network that learned the labels. More units bring a student nearer, as {cite:t}`vadera2020` found.
#

# %% tags=["hide-input"]
claim(
    "MNIST: effective number of 300 networks by their distance from another chain",
    effective["other_chain"],
    at_most=2,
    because=because,
    kind="stored",
)
claim(
    "MNIST: largest distance of any choice over that of another chain of 300",
    max(mean_of(near, way, K) for way in WAYS for K in axis) / mean_of(far, "all"),
    at_most=0.9,
    because=because,
    kind="stored",
)
claim(
    "MNIST: least distance of a student over that of one random network",
    min(mean_of(near, name) for name in students) / mean_of(near, "random", 1),
    near=0.95,
    within=0.05,
    because=because,
    kind="stored",
)
claim(
    "MNIST: error of the student that saw no copy less that of the one that did, in "
    "points",
    100 * (mean_of("error", "student 100, no copy") - mean_of("error", "student 100")),
    near=0.06,
    within=0.03,
    because=because,
    kind="stored",
)
claim(
    "MNIST: distance to the other chain, of the network that learned the labels over "
    "that of 300",
    mean_of(far, labels) / mean_of(far, "all"),
    at_most=0.95,
    because=because,
    kind="stored",
)
claim(
    "MNIST: distance of the student that saw no copy over that of the one that did",
    mean_of(near, "student 100, no copy") / mean_of(near, "student 100"),
    at_most=1,
    because=because,
    kind="stored",
)
claim(
    "MNIST: distance of the student with 400 units over that of the one with 100",
    mean_of(near, "student 400") / mean_of(near, "student 100"),
    at_most=0.95,
    because=because,
    kind="stored",
)
claim(
    "MNIST: errors of the student with 400 units and of the network that learned the "
    "labels, less that of the average over 300, in points, the larger",
    100
    * max(
        mean_of("error", name) - mean_of("error", "all")
        for name in ("student 400", labels)
    ),
    at_most=-0.5,
    because=because,
    kind="stored",
)
claim(
    "MNIST: the larger p of these two, of five networks that could be tested, times "
    "five",
    5
    * max(
        test.pvalue
        for name in ("student 400", labels)
        for test in two_tests(values_of("error", name), values_of("error", "all"))
    ),
    at_most=0.05,
    because="the stored result, the paired test and Welch's",
    kind="stored",
)
best = max(mean_of("auroc", name) for name in [*students, labels])
claim(
    "MNIST: area for letters, ten evenly thinned networks less the best of those that "
    "were taught",
    mean_of("auroc", "even", 10) - best,
    at_least=0.01,
    because=because,
    kind="stored",
)
claim(
    "MNIST: area for letters, the best single network less one of the chain",
    best - mean_of("auroc", "random", 1),
    at_least=0.08,
    because=because,
    kind="stored",
)

# %% [markdown]
# ## What it costs
#
# Memory and time of a prediction are proportional to $K$; before that there is the price of choosing.

# %% tags=["hide-input"]
steps, networks_kept = seeds[0]["steps"], seeds[0]["networks"]


def seconds(name):
    return sum(run["seconds"][name] for run in seeds) / len(seeds)


def training(name):
    return sum(run["students"][name]["training_seconds"] for run in seeds) / len(seeds)


rows = [
    ["the chain", f"{500 * steps:,}", "0", f"{seconds('chain'):.0f}"],
    ["thinning", "0", "0", "0"],
    ["herding", "0", f"{networks_kept * 10_000:,}", f"{seconds('herding'):.0f}"],
    [
        "lessons for students",
        "0",
        f"{networks_kept * 100_000:,}",
        f"{seconds('lessons'):.0f}",
    ],
    *(
        [name, f"{500 * steps:,}", "0", f"{training(name):.0f}"]
        for name in seeds[0]["students"]
    ),
]
show_table(["work", "gradients of an example", "predictions", "processor s"], rows)

# %% tags=["hide-input"]
claim(
    "MNIST: processor seconds of the lessons over those of teaching the student with "
    "100 units",
    seconds("lessons") / training("student 100"),
    at_least=1.5,
    because=because,
    kind="stored",
)
claim(
    "MNIST: processor seconds of herding over those of the lessons",
    seconds("herding") / seconds("lessons"),
    near=0.11,
    within=0.03,
    because=because,
    kind="stored",
)
claim(
    "MNIST: processor seconds of a gradient over those of a prediction",
    training("student 100")
    / seconds("lessons")
    * networks_kept
    * 100_000
    / (500 * steps),
    near=2.8,
    within=1,
    because=because,
    kind="stored",
)

# %% [markdown]
# The lessons, 300 predictions for each of 100,000 inputs, are the most expensive part of all; taught while the chain runs, a student costs one prediction a step instead.
# Herding costs a tenth of that, thinning nothing.
#
# ## In practice
#
# * Thin evenly, and keep twice as many networks as the chain has effective ones: that adds 8 per cent to the variance of the average.
# * Spend what is left on a second chain, and report the distance between the two beside every other distance.
# * Herd when the draws come in no order, or when a handful must do; take features that hold all that you will ask for.
# * Distil when one network is all that can be shipped, and compare the student with a network that learned the labels with the same budget.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | distance of predictions | $d(p, q) = \frac1n\sum_i\frac12\sum_k\lvert p(k \mid x_i) - q(k \mid x_i)\rvert$, {eq}`eq-few-distance` |
# | what thinning costs | the variance times $h\coth h$ with $h = S/K\tau$, {prf:ref}`thm-few-thinning` |
# | $K$ random draws | $E\,e_K^2 = \frac{\sigma_\varphi^2}K\cdot\frac{S - K}{S - 1}$, {eq}`eq-few-random` |
# | $K$ herded draws | $e_K^2 \le \frac{D^2}K\cdot\frac{S - K}{S - 1}$, and $e_K \le \frac1K\max(D, D^2/2r)$ with a ball, {prf:ref}`thm-few-herding` |
# | what a student learns | $J(w) = E_x\,KL(\bar p\,\|\,q)$, {eq}`eq-few-distil` |
#
# ## Change it
#
# * In the first example make the chain fast: `slow = SGLD(0.5, mass=regression.precision)`. The last eight draws in the first panel are then spread out, and the claim on their variance shows ✗: it was the autocorrelation that kept them together.
# * Set `rho, S, many = 0.99, 1_000, 2_000` in the cell on thinning. The table then has five effective draws instead of 53, and ten kept draws are almost as good as all.
# * Give the student a shorter training: `cycle_length=30` instead of `cycle_length=480`. The claim that it is about as far as one random network shows ✗: it is twice as far.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-few-write
#
# *Write it yourself.* Compute the cross-entropy of {eq}`eq-few-distil`, summed over the inputs, for a student that is a linear map and a softmax.
#
# ~~~python
# def soft_loss(weight, bias, inputs, targets):
#     """weight (classes, d), bias (classes,), targets (n, classes): p̄."""
#     logits = ...
#     return ...
# ~~~
#
# Compare it with the energy of a `NetworkPosterior` with `SoftTargets`. Which terms differ, and do they matter for the gradient?
# ```
#
# ```{solution} ex-few-write
# :class: dropdown
#
# The code stands in the folded cell below.
# The package's energy has the entropy of the targets taken off, which does not depend on the weights, and the prior's energy added, which does.
# With a very wide prior the differences between two positions are the same.
# ```


# %% tags=["hide-input"]
def soft_loss(weight, bias, inputs, targets):
    """Cross-entropy with probabilities for targets, summed over the inputs."""
    logits = inputs @ weight.T + bias
    return -(targets * logits.log_softmax(-1)).sum()


source = torch.Generator().manual_seed(0)
some_inputs = torch.randn(20, 4, generator=source, dtype=DOUBLE)
logits = torch.randn(20, 3, generator=source, dtype=DOUBLE)
weights = torch.randn(2, 15, generator=source, dtype=DOUBLE)
linear = NetworkPosterior(
    nn.Linear(4, 3).double(),
    some_inputs,
    logits.softmax(-1),
    prior_variance=1e12,
    likelihood=SoftTargets(),
)
own = [
    soft_loss(w[:12].view(3, 4), w[12:], some_inputs, logits.softmax(-1))
    for w in weights
]
energies = linear.energy(weights)
claim(
    "Difference of the exercise's loss between two positions over that of the "
    "package's energy",
    float((own[0] - own[1]) / (energies[0] - energies[1])),
    near=1,
    within=1e-6,
    because="the same cross-entropy; the prior is very wide",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-few-simplex
#
# Let the features of $S$ draws be orthonormal. What is $e_K^2$ for a set of $K$ of them? How does it agree with {prf:ref}`thm-few-random` and with {prf:ref}`thm-few-herding`?
# ```
#
# ```{solution} ex-few-simplex
# :class: dropdown
#
# $\lvert\frac1K\sum_{\text{kept}}\varphi_s - \frac1S\sum_s\varphi_s\rvert^2 = K(\frac1K - \frac1S)^2 + (S - K)\frac1{S^2} = \frac1K - \frac1S$, whatever is kept.
# With $\sigma_\varphi^2 = D^2 = 1 - \frac1S$ both theorems give $\frac{S - 1}{SK}\cdot\frac{S - K}{S - 1} = \frac1K - \frac1S$: the average, the bound and every set agree. Where all draws predict something of their own, no choice is better than another.
# ```
#
# ```{exercise}
# :label: ex-few-innermost
#
# The draws of one weight lie at $-m, \dots, -1, 0, 1, \dots, m$, and the feature is the weight itself. Which are the first $2k + 1$ that herding keeps, and what is their variance? What happens for $S$ draws from $N(0, 1)$ with $S \gg K$?
# ```
#
# ```{solution} ex-few-innermost
# :class: dropdown
#
# First 0, so that $u = 0$. Then the least $\lvert u + \varphi\rvert$ of those left is at $-1$ or $1$, and after it the other one makes $u = 0$ again; and so on outwards. The first $2k + 1$ are $-k, \dots, k$, with the variance $k(k + 1)/3$ instead of $m(m + 1)/3$.
# Of many normal draws the $K$ innermost lie in an interval in which the density is nearly its value at 0, $1/\sqrt{2\pi}$; its length is $\sqrt{2\pi}K/S$, and the variance of a uniform law on it a twelfth of the square, $\frac\pi6(K/S)^2$. Herding keeps nearly these, as every pair of neighbours on both sides cancels.
# ```
#
# ```{exercise}
# :label: ex-few-cost
#
# A step of the chain costs 1, and asking a network that was kept costs $c$ over its life. With a fixed sum to spend on a long chain with $\rho = e^{-a}$, how far apart should the networks be?
# ```
#
# ```{solution} ex-few-cost
# :class: dropdown
#
# A network that is kept costs $k + c$, so that $K \propto 1/(k + c)$, and the variance is $\frac vK\coth(\tfrac12ak) \propto (k + c)\coth(\tfrac12ak)$.
# Its derivative vanishes where $\coth h = (k + c)\frac a2/\sinh^2h$ with $h = \tfrac12ak$, which is $\sinh(ak) = a(k + c)$. For $c = 0$ only $k = 0$ solves it: keep all. For $a = 0.02$ and $c = 100$, $\sinh y = y + 2$ has the solution $y = 2.12$, and $k = 106$ is about the integrated autocorrelation time $2/a = 100$.
# ```

# %% tags=["hide-input"]
claim(
    "sinh y less y + 2 at the solution's y",
    math.sinh(2.12) - (2.12 + 2),
    near=0,
    within=0.02,
    because="arithmetic, two digits",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-few-weights
#
# Let weights be allowed: $\sum_sw_s\,p(\cdot \mid x, \theta_s)$ with $w_s \ge 0$ and sum 1. Show that for $n$ inputs and $C$ classes $n(C - 1) + 1$ of the draws are enough to reproduce $\bar p$ on these inputs without any error. Why is this of little use here?
# ```
#
# ```{solution} ex-few-weights
# :class: dropdown
#
# The probabilities of a draw on $n$ inputs are a point in a space of $n(C - 1)$ dimensions, and $\bar p$ lies in the convex hull of $S$ such points. By Carathéodory's theorem it lies in the hull of $n(C - 1) + 1$ of them.
# For a thousand digits these are 9,001 networks, more than there are. And on other inputs nothing is promised: an exact fit to few inputs is what one calls overfitting elsewhere.
# ```
#
# ## Further reading
#
# {cite:t}`geyer1992` says why one long chain should not be thinned for its average, and {cite:t}`owen2017` when it should.
# {cite:t}`chen2010` is the paper on herding with kernels, {cite:t}`bach2012` say which algorithm it is and what other members of its family do, {cite:t}`teymur2021` study the greedy choice that is made here, and *kernel thinning* {cite:p}`dwivedi2024` halves a sample again and again, with guarantees for many kernels.
# {cite:t}`bucila2006` and {cite:t}`hinton2015` distil ensembles, {cite:t}`korattikara2015` a chain while it runs; {cite:t}`vadera2020` teach a student the expected entropy as well, which brings the disagreement back.
