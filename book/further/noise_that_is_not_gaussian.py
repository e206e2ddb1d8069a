# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # When minibatch noise is not Gaussian
#
# ```{div} page-head
# Level: second course · Reading: about 14 minutes, without the exercises · Running: about 4 seconds
# ```
#
# ```{index} ! kurtosis, ! rare classes
# ```
#
# {doc}`/book/tutorial/minibatch_noise` treats the noise of a minibatch gradient as $N(0, V)$.
# This page says when that is wrong: where a class is rare, or a few examples dominate.
#
# **You will learn** to
#
# * tell by one number how nearly Gaussian the noise is,
# * say how large a minibatch, or how many of them, makes it so.
#
# **You will need** {doc}`/book/tutorial/minibatch_noise`.

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import torch

from booklib.page.claims import at_least, check, near
from booklib.page.figures import TRUTH, use_style
from booklib.page.play import play
from sgmc.posteriors import LogisticRegression

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
N, generator = 2_000, torch.Generator().manual_seed(0)
few = torch.randn(12, 3, generator=generator, dtype=torch.float64)
few_targets = (torch.rand(12, generator=generator) < 0.5).double()
small = LogisticRegression(few, few_targets, prior_variance=2.0, batch_size=4)
theta = torch.tensor([[0.3, -0.5, 0.8]], dtype=torch.float64)
per_example = few * (torch.sigmoid(few @ theta[0]) - few_targets)[:, None]

# %% [markdown]
# ## How nearly Gaussian?
#
# The theory treats the noise as $N(0, V)$.
# A minibatch is a sum of $n$ terms, so the central limit theorem makes it nearly Gaussian, unless a few terms dominate the sum.
# One number tells how nearly.
# The *kurtosis* of a random number $X$ is $E[(X - EX)^4]/\operatorname{Var}[X]^2$; a Gaussian has 3, and whatever is beyond 3 is called excess.
#
# ```{prf:theorem} Excess kurtosis of a minibatch
# :label: thm-kurtosis
#
# If one coordinate of the $g_i$ has kurtosis $\kappa$ over the $N$ examples, that coordinate of the noise of a minibatch of $n$, drawn with replacement, has kurtosis $3 + (\kappa - 3)/n$.
# The sum of $k$ independent such minibatches has $3 + (\kappa - 3)/(nk)$.
# ```
#
# ```{prf:proof}
# Let $X_1, \dots, X_n$ be independent with mean 0, variance $\sigma^2$ and fourth moment $\kappa\sigma^4$.
# In $E[(\sum_jX_j)^4]$ only terms survive in which no factor stands alone: $n$ terms $X_j^4$, and $3n(n-1)$ terms $X_j^2X_l^2$.
# So it is $n\kappa\sigma^4 + 3n(n-1)\sigma^4$; divide by $(n\sigma^2)^2$.
# ```
#
# So $n$ must be large *compared with $\kappa$*, the kurtosis of the single contributions.
# Two things make $\kappa$ large in practice.
# If a class has probability $p \ll 1$, and the model has learned that, its examples contribute gradients near $-1$ to an intercept and all others near $p$: the kurtosis is about $1/p$.
# And if a feature is heavy-tailed a few examples dominate the sum; in the worst case a single one does, and $\kappa \approx N$.


# %%
def contributions(rare, heavy):
    """The derivatives g (N,) of a regression with one feature: an intercept, or a
    heavy-tailed feature at θ = 0."""
    g = torch.Generator().manual_seed(7)
    # the ratio of a Gaussian and a uniform number has tails like those of a Cauchy
    # distribution
    if heavy:
        feature = torch.randn(N, generator=g, dtype=torch.float64) / torch.rand(
            N, generator=g, dtype=torch.float64
        )
    else:
        feature = torch.ones(N, dtype=torch.float64)
    share = 0.01 if rare else 0.5
    y = (torch.arange(N) < share * N).double()[torch.randperm(N, generator=g)]
    return feature * (share - y)


def kurtosis(values):
    """The kurtosis of numbers (n,)."""
    centred = values - values.mean()
    return float(centred.pow(4).mean() / centred.pow(2).mean() ** 2)


cases = {
    "balanced classes": contributions(False, False),
    "a class of 1 %": contributions(True, False),
    "a heavy-tailed feature": contributions(False, True),
}
enumerated = small.gradient_given(
    theta.expand(12**4, -1), torch.cartesian_prod(*[torch.arange(12)] * 4)
)[:, 0]
draws = {
    name: N
    / 20
    * (g[torch.randint(N, (40_000, 20), generator=generator)].sum(-1) - 20 * g.mean())
    for name, g in cases.items()
}

# %% mystnb={"figure": {"caption": "Above: quantiles of the standardised noise of minibatches of 20 against those of a Gaussian (grey); a bend at an end is a tail that N(0, V) does not have, steps are a distribution that takes few values. Below: the excess kurtosis falls as 1/n, by the exact formula; the grey line is at 0.1.", "name": "fig-noise-quantiles"}, "image": {"alt": "Above, the solid curve of balanced classes follows the grey diagonal in small steps. The dashed one of a rare class is flat on the right and drops below the diagonal in large steps on the upper. The dotted one of a heavy-tailed feature is nearly flat, and on the left falls off to minus nine. Below, two parallel falling lines, the dotted one above the dashed one."}} tags=["hide-input"]
figure, (upper, lower) = plt.subplots(2, 1, figsize=(5.0, 6.2))
levels = torch.linspace(0.0005, 0.9995, 500, dtype=torch.float64)
normal = 2**0.5 * torch.special.erfinv(2 * levels - 1)
upper.plot(normal, normal, color=TRUTH, lw=3, zorder=0)
for (name, values), style in zip(draws.items(), ("-", "--", ":"), strict=True):
    upper.plot(
        normal,
        (values / values.std()).quantile(levels),
        style,
        label=name,
        color="black",
    )
    if name != "balanced classes":
        lower.loglog(
            [1, N],
            [kurtosis(cases[name]) - 3, (kurtosis(cases[name]) - 3) / N],
            style,
            color="black",
            label=name,
        )
lower.axhline(0.1, color=TRUTH, zorder=0)
upper.set(xlabel="quantile of a standard Gaussian", ylabel="quantile of the noise")
upper.legend()
lower.set(xlabel="size of the minibatch $n$", ylabel="excess kurtosis")
lower.legend()
plt.show()

# %% [markdown]
# {numref}`fig-noise-quantiles` shows both cases.
# Noise from balanced classes follows the diagonal of the Gaussian.
# With a rare class the noise takes few values, and drops far below the diagonal at one end.
# With a heavy-tailed feature it is nearly always small, and jumps by {c}`jump` standard deviations in a minibatch that has the one example which dominates.
# For minibatches of 20 the formula gives the kurtosis {c}`balanced` for balanced classes, {c}`rare` for the rare class and {c}`heavy` for the heavy-tailed feature.
# In the lower panel the line of the rare class crosses the grey one at $n = {c}`crossing`$; that of the heavy-tailed feature never does, because even a minibatch of $n = N$ examples has an excess of {c}`heavy-all`.

# %% tags=["hide-input"]
check(
    "enumerated",
    kurtosis(enumerated) - (3 + (kurtosis(per_example[:, 0]) - 3) / 4),
    near(0, 1e-10),
    kind="exact",
    because="enumeration; rounding",
    says="Kurtosis of all 20,736 minibatches of 4 of 12, less its formula",
)
for name, g in zip(("balanced", "rare", "heavy"), cases.values(), strict=True):
    check(name, 3 + (kurtosis(g) - 3) / 20, kind="exact", digits=3)
heavy = cases["a heavy-tailed feature"]
jump = (heavy - heavy.mean()).abs().max() / (20 * heavy.var(correction=0)) ** 0.5
check("jump", jump, kind="exact", digits=2)
check("heavy-all", (kurtosis(heavy) - 3) / N, at_least(0.1), kind="exact", digits=2)
rare = cases["a class of 1 %"]
check("crossing", (kurtosis(rare) - 3) / 0.1, kind="exact", digits=3)
many = rare[torch.randint(N, (400_000, 20), generator=generator)].sum(-1)
for kicks in (1, 10):
    sums = (many - 20 * rare.mean()).reshape(-1, kicks).sum(-1)
    fourth = (sums / (20 * kicks * rare.var(correction=0)).sqrt()).pow(4)
    exact = near(3 + (kurtosis(rare) - 3) / (20 * kicks))
    error = fourth.std() / len(fourth) ** 0.5
    check(f"sums-{kicks}", fourth.mean(), exact, error=error, because="the formula")

# %% [markdown]
# A sampler that moves little in $k$ steps feels the sum of $k$ minibatches, and by {prf:ref}`thm-kurtosis` that sum is nearly Gaussian as soon as $nk \gg \kappa$: with the rare class 400,000 minibatches of 20 have the kurtosis {c}`sums-1`, and sums of ten of them {c}`sums-10`.
# So small steps correct the distribution of the noise as they correct its size.
# Where they are not small, an example that appears once in a hundred steps but then weighs a hundred times as much gives the chain a jolt.
#
# ## Change it
#
# * Set `share = 0.01 if rare` to `share = 0.001 if rare`: the kurtosis with the rare class rises to 53, and the crossing to about $n = 10{,}000$, because two examples of 2,000 dominate every minibatch that they are in.
# * Set `torch.randint(N, (40_000, 20), generator=generator)` to `torch.randint(N, (40_000, 200), generator=generator)` and `20 * g.mean()` to `200 * g.mean()`: ten times larger minibatches come as near to a Gaussian as sums of ten.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-noise-linear
#
# A sampler on a Gaussian target is a linear recursion $z' = Fz + \xi$, with noises $\xi$ that are independent of the past.
# Which part of its stationary distribution is right although the $\xi$ are not Gaussian?
# ```
#
# ```{solution} ex-noise-linear
# :class: dropdown
#
# Mean and covariance: the stationary covariance solves $\Sigma = F\Sigma F^\top + \operatorname{Cov}\xi$, in which only the covariance of the noise appears.
# Higher moments are wrong; the chain is a weighted sum of many $\xi$.
# In one dimension, where $F = \varphi$, its excess kurtosis is that of $\xi$ times $(1 - \varphi^2)/(1 + \varphi^2)$: the smaller the step, the nearer is $\varphi$ to 1, and the less is left.
# ```

# %% tags=["hide-input"]
second = fourth = 0.0
for _ in range(400):  # ξ is 1 or −1; its excess kurtosis is −2
    second, fourth = 0.81 * second + 1, 0.6561 * fourth + 6 * 0.81 * second + 1
check(
    "coin",
    (fourth / second**2 - 3) / -2 - (1 - 0.81) / (1 + 0.81),
    near(0, 1e-9),
    kind="exact",
    because="exact recursion of the moments",
    says="Excess kurtosis of the chain over that of its noise, less the formula, "
    "φ = 0.9, noise a fair coin",
)

# %% [markdown]
# ## Further reading
#
# {cite:t}`nemeth2021` discuss what assumptions on the noise the theory needs.
