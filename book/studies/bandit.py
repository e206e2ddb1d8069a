# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Deciding: a contextual bandit
#
# ```{div} page-head
# Level: second course · Reading: about 57 minutes, without the exercises · Running: about 5 seconds
# ```
#
# An agent that sees only the consequences of the action it chose can be wrong for ever without noticing. This chapter lets a posterior decide, and counts what it earns.
#
# **You will learn** to
#
# * say what a contextual bandit is, and compute the regret of a rule,
# * prove that acting by the best guess may stop learning, and what that costs,
# * state Thompson sampling, and say how often it takes which action,
# * see exactly what an approximate posterior costs a decision, and when it costs nothing,
# * judge networks by what they decide: draws by Bayes by Backprop and by SGHMC against greedy rules.
#
# **You will need** {doc}`/book/further/variational_families` and {doc}`/book/tutorial/sghmc`.

# %%
import math

import matplotlib.pyplot as plt
import torch
from scipy import stats

from booklib.data import synthetic_mushrooms
from booklib.data.bandit import EAT, LEAVE, expected_rewards, regrets, rewards
from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result, who_ran
from sgmc.posteriors import LinearRegression

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
DOUBLE = torch.float64
GREEDY, EXACT, INDEPENDENT = "black", COLOURS["HMC"], "#D55E00"

# %% [markdown]
# ## You see what you try
#
# Somebody walks through a wood and comes upon one mushroom after another.
# Each can be eaten or left.
# An edible one that is eaten earns 5, and a poisonous one $-35$ or 5, by the toss of a coin; leaving a mushroom earns 0.
# The walker sees what a mushroom looks like, but not whether it is poisonous, and afterwards learns the reward of the chosen action and no other.
# This is the task by which {cite:t}`blundell2015` asked whether the uncertainty of a network is good for something.
# In {numref}`fig-bandit-rounds` only what is framed is seen: the walker never learns what the mushrooms left behind were.
#
# ```{prf:definition} Contextual bandit
# :label: def-bandit
#
# In round $t = 1, 2, \dots$ we are shown a context $x_t$, choose one of finitely many actions $a_t$, and are paid a reward $r_t$ with the law $p(r \mid x_t, a_t, \theta)$, where $\theta$ is unknown.
# What another action would have paid remains unknown.
# Contexts do not depend on what we do.
# A rule chooses $a_t$ given $x_t$ and the data $\mathcal D_{t-1} = \{(x_s, a_s, r_s)\}_{s<t}$, perhaps with random numbers of its own.
# ```

# %% mystnb={"figure": {"caption": "Nine rounds of a walker who eats every third mushroom. The rewards of the chosen actions are the data; those in grey are never seen, nor is the last row, which says what the mushrooms were.", "name": "fig-bandit-rounds"}, "image": {"alt": "A table with a column for each of nine mushrooms and rows for eating, leaving and the truth; in each column one of the first two rows is framed and holds a number, and the other numbers are grey."}} tags=["hide-input"]
table = synthetic_mushrooms(9, seed=4)
harmed = torch.rand(9, generator=torch.Generator().manual_seed(0)) < 0.5
figure, axes = plt.subplots(figsize=(6.8, 1.9))
for t, poisonous in enumerate(table.targets):
    chosen = EAT if t % 3 == 0 else LEAVE
    for row, action in enumerate((EAT, LEAVE)):
        paid = int(rewards(torch.tensor(action), poisonous, harmed[t]))
        if action == chosen:
            axes.add_patch(
                plt.Rectangle((t - 0.45, row - 0.42), 0.9, 0.84, fill=False, lw=1.2)
            )
        axes.text(
            t,
            row,
            f"{paid}",
            ha="center",
            va="center",
            color="black" if action == chosen else "0.6",
        )
    axes.text(
        t,
        2,
        "poisonous" if poisonous else "edible",
        ha="center",
        va="center",
        size=8,
        color="0.4",
    )
axes.set(
    xlim=(-0.6, 8.6),
    ylim=(2.5, -0.6),
    xticks=range(9),
    xticklabels=range(1, 10),
    xlabel="round $t$",
)
axes.set(yticks=range(3), yticklabels=["eat", "leave", "truth"])
axes.spines[:].set_visible(False)
axes.tick_params(length=0)
plt.show()

# %% [markdown]
# Two aims compete.
# To earn much one should take what seems best; to know what is best one must try what does not seem so.
# What a rule loses by not knowing is measured against somebody who knows.
#
# ```{prf:definition} Regret
# :label: def-bandit-regret
#
# Let $f(x, a; \theta) = E[r \mid x, a, \theta]$. The regret of a rule after $T$ rounds is
#
# $$
# R_T = \sum_{t=1}^T\Bigl(\max_af(x_t, a; \theta) - f(x_t, a_t; \theta)\Bigr).
# $$ (eq-bandit-regret)
# ```
#
# It counts expected rewards, not those that the coin gave, so that luck with the coin does not count.
# It is never negative, it never falls, and it is zero for an oracle that knows $\theta$.
# A rule that goes on making the same mistake has a regret that grows in a line; one that learns has a regret that bends.

# %% tags=["hide-input"]
actions, poisonous = (
    torch.tensor(case) for case in ((LEAVE, LEAVE, EAT, EAT), (0, 1, 0, 1))
)
claim(
    "Expected reward of eating a poisonous mushroom",
    expected_rewards(actions, poisonous)[3],
    near=-15,
    within=0,
    because="half of −35 + 5",
    kind="exact",
)
claim(
    "Regrets of leaving an edible one and of eating a poisonous one, in this order, "
    "are 5 and 15",
    bool((regrets(actions, poisonous) == torch.tensor([5.0, 0.0, 0.0, 15.0])).all()),
    because="the oracle eats what is edible and leaves the rest",
    kind="exact",
)

# %% [markdown]
# ## The trap of the best guess
#
# A *greedy* rule takes the action whose expected reward, given the data, is largest.
# Suppose that there is but one context, that leaving pays 0 for certain, and that eating pays an unknown $\mu$ on average ({numref}`fig-bandit-trap`, top).
# One bad meal, and the guess for $\mu$ is below zero.
# Then the greedy rule leaves every mushroom, sees no further reward of eating, and the guess stays where it is.
# A bad guess about an action that *is* taken corrects itself; about one that is not, nothing does.
#
# ```{prf:theorem} The greedy rule may stop learning
# :label: thm-bandit-greedy
#
# Let leaving pay 0, and eating $\mu + N(0, \sigma^2)$ with $\mu \sim N(0, \tau^2)$. Let the greedy rule eat in the first round, and then as long as the mean of $\mu$ given the data is not negative.
# With $\varrho = \tau/\sqrt{\tau^2 + \sigma^2}$,
#
# $$
# E[R_T] \ge (T - 1)\,\frac{\tau\,(1 - \varrho)}{2\sqrt{2\pi}}.
# $$ (eq-bandit-trap)
# ```
#
# ```{prf:proof}
# The mean given the first reward $r_1$ is $r_1\tau^2/(\tau^2 + \sigma^2)$, which is negative if and only if $r_1$ is. Then the rule never eats again, and if $\mu > 0$ each of the $T - 1$ rounds that follow adds $\mu$ to the regret. So $E[R_T] \ge (T - 1)\,E[\mu;\,\mu > 0,\,r_1 < 0]$.
#
# Now $X = \mu/\tau$ and $Y = r_1/\sqrt{\tau^2 + \sigma^2}$ are standard normal with correlation $\varrho$. Write $Y = \varrho X + \sqrt{1 - \varrho^2}\,Z$ with an independent $Z \sim N(0, 1)$, and turn the plane: with $X = R\cos\phi$ and $Z = R\sin\phi$ the direction $\phi$ is uniform and independent of $R$, $E[R] = \sqrt{\pi/2}$, and $\varrho = \cos\psi$ makes $Y = R\cos(\phi - \psi)$. Both $X > 0$ and $Y < 0$ hold for $-\frac\pi2 < \phi < \psi - \frac\pi2$, so
#
# $$
# \begin{aligned}
# E[X;\,&X > 0,\,Y < 0] \\
# &= \sqrt{\tfrac\pi2}\cdot\frac1{2\pi}\int_{-\pi/2}^{\psi - \pi/2}\cos\phi\,d\phi \\
# &= \frac{1 - \cos\psi}{2\sqrt{2\pi}}.
# \end{aligned}
# $$
# ```
#
# So the expected regret grows at least in a line, however long one waits.
# The usual remedy is to act by chance now and then:
# an *ε-greedy* rule takes a random action with probability $\epsilon$, and the greedy one otherwise.
# It escapes from the trap, but it never stops to pay for that ({ref}`ex-bandit-epsilon`), and it tries what it knows to be bad as often as what it knows nothing about.
#
# ## Thompson sampling
#
# The {term}`posterior` says more than its mean.
# In the top panel of {numref}`fig-bandit-trap` a share of its mass is still above zero: eating may well be good.
# The oldest rule for bandits {cite:p}`thompson1933` is to try an action as often as one believes in it:
#
# ```{prf:algorithm} Thompson sampling
# :label: alg-thompson
#
# In round $t$, given the context $x_t$ and the data $\mathcal D_{t-1}$:
#
# 1. draw $\theta_t$ from the posterior $p(\theta \mid \mathcal D_{t-1})$;
# 2. take $a_t = \arg\max_af(x_t, a; \theta_t)$, as if $\theta_t$ were the truth;
# 3. see $r_t$, and put $(x_t, a_t, r_t)$ into the data.
# ```
#
# ```{prf:proposition} It acts by belief
# :label: prop-thompson
#
# Given the data and the context, Thompson sampling takes an action with the posterior probability that this action is the best.
# ```
#
# ```{prf:proof}
# $a_t$ is a function of $\theta_t$, and the best action $a^*_t = \arg\max_af(x_t, a; \theta)$ the same function of $\theta$ (ties being broken by a fixed order). Given $\mathcal D_{t-1}$ both $\theta_t$ and $\theta$ have the law $p(\theta \mid \mathcal D_{t-1})$, hence $a_t$ and $a_t^*$ have one law too.
# ```
#
# Given the model, nothing needs to be tuned.
# As long as an action may be the best it is tried, and when the posterior has made up its mind it is tried no more.
# The rule asks for one draw a round, and not for the posterior's shape: just what a sampler delivers.
#
# Does it help in the trap of {prf:ref}`thm-bandit-greedy`?
# We play 20,000 walks at once, each with its own $\mu \sim N(0, 1)$, and $\sigma = 1$.
# After $n$ meals with rewards that add up to $s$ the posterior of $\mu$ is $N\bigl(s/(1 + n), 1/(1 + n)\bigr)$, that of a linear regression on the constant 1.


# %%
def walk(rule, walks=20_000, rounds=200, seed=0):
    """Eat or leave by a rule: regret of each round and walk, and the first rewards."""
    generator = torch.Generator().manual_seed(seed)

    def normal():
        return torch.randn(walks, generator=generator, dtype=DOUBLE)

    mu, total, meals = normal(), torch.zeros(walks, dtype=DOUBLE), torch.zeros(walks)
    regret, first = [], None
    for _ in range(rounds):
        mean, variance = total / (1 + meals), 1 / (1 + meals)
        value = mean if rule == "greedy" else mean + variance.sqrt() * normal()
        eats = (value >= 0) | (meals == 0)
        reward = mu + normal()
        first = reward if first is None else first
        total, meals = total + eats * reward, meals + eats.float()
        regret.append(torch.where(eats, (-mu).clamp(min=0), mu.clamp(min=0)))
    return torch.stack(regret), mu, first


greedy, mu, first = walk("greedy")
thompson, _, _ = walk("Thompson")
bound = (1 - math.sqrt(0.5)) / (2 * math.sqrt(2 * math.pi))


def mean_and_error(values):
    """Mean and standard error over independent walks."""
    return float(values.mean()), float(values.std() / len(values) ** 0.5)


# %% mystnb={"figure": {"caption": "The trap. Top: what is believed of the reward of eating after a first reward of $-1$, with prior and noise N(0, 1). The mean is negative, so a greedy rule never eats again; the shaded mass, 24 %, is how often Thompson sampling does. Bottom: regret, averaged over 20,000 walks: the greedy rule's grows in a line, not below that of the theorem (grey).", "name": "fig-bandit-trap"}, "image": {"alt": "Top, a bell curve centred at minus one half whose part above zero is shaded; bottom, a straight line that climbs steeply and a curve that bends and stays low."}} tags=["hide-input"]
figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.6, 5.8))
grid = torch.linspace(-3, 2.5, 400)
density = torch.distributions.Normal(-0.5, math.sqrt(0.5)).log_prob(grid).exp()
top.plot(grid, density, color=EXACT)
top.fill_between(grid, density, where=grid > 0, color=EXACT, alpha=0.3, lw=0)
top.axvline(0, color="black", lw=0.8)
top.text(0.05, 0.58, "leaving", size=8)
top.plot([-0.5, -0.5], [0, float(density.max())], ls=":", color=EXACT)
top.set(
    xlabel=r"reward of eating, $\mu$", ylabel=r"$p(\mu \mid r_1 = -1)$", ylim=(0, 0.63)
)
bottom.plot(range(1, 201), greedy.mean(1).cumsum(0), color=GREEDY, label="greedy")
bottom.plot(
    range(1, 201), thompson.mean(1).cumsum(0), color=EXACT, label="Thompson sampling"
)
bottom.plot(
    [1, 200], [0, 199 * bound], color=TRUTH, zorder=0, label="bound for the greedy rule"
)
bottom.set(xlabel="rounds $T$", ylabel="$E[R_T]$")
bottom.set(ylim=(0, 27))
bottom.legend(loc="upper left")
plt.show()

# %% [markdown]
# The bottom panel of {numref}`fig-bandit-trap` has the outcome: the greedy rule's regret grows in a line, and that of Thompson sampling bends.

# %% tags=["hide-input"]
trapped = mu.clamp(min=0) * (first < 0)
value, error = mean_and_error(trapped)
claim(
    "E[μ; μ > 0, first reward < 0]",
    value,
    near=round(bound, 6),
    standard_error=error,
    because="the integral in the proof; 20,000 walks",
)
late = {
    name: mean_and_error(each[-100:].mean(0))
    for name, each in (("greedy", greedy), ("Thompson", thompson))
}
claim(
    "Regret a round of the greedy rule, rounds 101 to 200",
    late["greedy"][0],
    at_least=round(bound, 4),
    because=(
        "the theorem; who stops later pays too, and the standard error is below 0.002"
    ),
)
claim(
    "Regret a round of Thompson sampling, rounds 101 to 200",
    late["Thompson"][0],
    near=0.0115,
    within=0.002,
    because="it is near 0.0115 over several seeds with a standard error below 0.0005",
)
claim(
    "P(μ > 0) given a first reward of −1",
    0.5 * math.erfc(0.5),
    near=0.2398,
    within=1e-4,
    because="Φ(−½/√½)",
    kind="exact",
)

# %% [markdown]
# ## What the wrong posterior costs
#
# A network's posterior can only be approximated.
# Which errors of the approximation matter to a decision?
# We need a bandit whose posterior is known exactly and is not made of independent coordinates.
#
# Take $K$ dishes of one kitchen, one of which we order in each round.
# The value of dish $k$ is $f(k; \theta) = x_k\cdot\theta$ with $x_k = c\,\mathbf 1 + e_k$ and $c \ge 0$: all dishes share $c\sum_j\theta_j$, the level of the kitchen, and each has something of its own.
# The prior is $N(0, I)$ and a meal's reward has the noise $N(0, 1)$.
# After $n$ rounds, of which dish $k$ had $n_k$, the posterior is normal with the precision
#
# $$
# A = I + \sum_kn_kx_kx_k^\top,
# $$ (eq-bandit-precision)
#
# which `LinearRegression` computes as well.
# Among the Gaussians with *independent* coordinates, of which mean-field variational inference finds the best, the best one has the right mean and the variances $1/A_{ii}$ ({eq}`eq-vi-best`).
#
# ```{prf:theorem} Mean field is sure of what it never tried
# :label: thm-bandit-mean-field
#
# Let dish $j$ never have been taken in $n$ rounds, and let its value $x_j\cdot\theta$ have the variance $v$ under the posterior and $v_q$ under the best independent Gaussian. Whatever was taken,
#
# $$
# \begin{aligned}
# v &\ge \frac{(1 + Kc)^2}{(1 + (K-1)c)^2 + (K-1)c^2}, \\
# v_q &\le \frac{(1 + c)^2 + (K-1)c^2}{1 + nc^2}.
# \end{aligned}
# $$ (eq-bandit-variances)
# ```
#
# ```{prf:proof}
# Let $u_k = -c$ for $k \ne j$ and $u_j = 1 + (K-1)c$. The entries have the sum 1, so $x_k\cdot u = c + u_k = 0$ for all $k \ne j$: no meal but of dish $j$ says anything about the direction $u$. By {eq}`eq-bandit-precision` with $n_j = 0$, $Au = u$, and so $\lvert u\rvert^{-1}u$ is an eigenvector of $A^{-1}$ with the eigenvalue 1. The other eigenvectors add nothing negative to $x_j^\top A^{-1}x_j \ge (x_j\cdot u)^2/\lvert u\rvert^2$, where $x_j\cdot u = c + u_j = 1 + Kc$.
#
# On the other side $A_{ii} = 1 + \sum_kn_kx_{ki}^2 \ge 1 + nc^2$, for every entry of every $x_k$ is at least $c \ge 0$, and $x_j$ has the squared length $(1 + c)^2 + (K-1)c^2$.
# ```
#
# The bound for the posterior does not depend on $n$; that for the independent Gaussian goes to zero.
# Each entry of $x_k$ carries a part of the level $c$, so a law with independent coordinates takes every meal for a look at each of them.
# It cannot say that all these looks were at one sum.
# So it soon stops trying what seems bad, like the greedy rule.
# At $c = 0$, on the other hand, $A$ is diagonal, and mean field is exact.
#
# Try it: five dishes, $c = 3$, and a hundred meals of each dish but the last.

# %% tags=["hide-input"]
x = 3 + torch.eye(5, dtype=DOUBLE)
A = torch.eye(5, dtype=DOUBLE) + 100 * x[:4].T @ x[:4]
claim(
    "Variance of the value of the dish that was never taken, under the posterior",
    x[4] @ torch.linalg.solve(A, x[4]),
    at_least=round(256 / 205, 4),
    because="the theorem: (1 + 15)² / (13² + 4·3²)",
    kind="exact",
)
claim(
    "Variance of the same value under the best independent Gaussian",
    (x[4].square() / A.diagonal()).sum(),
    at_most=round(52 / 3601, 4),
    because="the theorem: (4² + 4·3²) / (1 + 400·3²)",
    kind="exact",
)

# %% [markdown]
# We play 1,000 kitchens at once, five dishes each, with exact draws, with draws from the best independent Gaussian, and greedily.


# %%
def kitchens(rule, c, kitchens=1_000, rounds=300, dishes=5, seed=0):
    """Play by a rule: regret of each round and kitchen, and the data of the first."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=DOUBLE)

    x = c + torch.eye(dishes, dtype=DOUBLE)
    theta = normal(kitchens, dishes)
    value, regret, data = theta @ x.T, [], []
    A = torch.eye(dishes, dtype=DOUBLE).repeat(kitchens, 1, 1)
    b = torch.zeros(kitchens, dishes, dtype=DOUBLE)  # A times the posterior mean
    for _ in range(rounds):
        z, noise = normal(kitchens, dishes), normal(kitchens)
        root = torch.linalg.cholesky(A)
        drawn = torch.cholesky_solve(b[..., None], root)[..., 0]
        if rule == "exact":  # adds N(0, A⁻¹)
            drawn = drawn + torch.linalg.solve(root.mT, z)
        elif rule == "mean field":  # adds N(0, 1/Aᵢᵢ)
            drawn = drawn + z / A.diagonal(dim1=1, dim2=2).sqrt()
        action = (drawn @ x.T).argmax(1)
        paid = value.gather(1, action[:, None])[:, 0]
        regret.append(value.max(1).values - paid)
        reward, meal = paid + noise, x[action]
        A = A + meal[:, :, None] * meal[:, None, :]
        b = b + meal * reward[:, None]
        data.append((meal[0], reward[0]))
    return torch.stack(regret), data, (A[0], b[0])


rules = {"greedy": GREEDY, "mean field": INDEPENDENT, "exact": EXACT}
levels = (0.0, 1.0, 3.0)
played = {(c, rule): kitchens(rule, c) for c in levels for rule in rules}
regret = {key: content[0] for key, content in played.items()}

# %% mystnb={"figure": {"caption": "Regret of three rules with five dishes, averaged over 1,000 kitchens; bands are two standard errors. Top: dishes have nothing in common, mean field is exact, and the two curves are one. Middle and bottom: the larger the common level c, the more mean field is sure of what it did not try, and the more like the greedy rule it becomes.", "name": "fig-bandit-kitchens"}, "image": {"alt": "Three panels, one above the other, of regret against rounds. Exact draws bend and stay low in all; mean field lies on the exact curve in the first panel, climbs in the second, and steeply in the third; the greedy rule climbs in all."}} tags=["hide-input"]
figure, panels = plt.subplots(3, 1, figsize=(5.4, 7.2), sharex=True, sharey=True)
for axes, c in zip(panels, levels, strict=True):
    for rule, colour in rules.items():
        total = regret[c, rule].cumsum(0)
        mean, error = total.mean(1), total.std(1) / total.shape[1] ** 0.5
        axes.plot(
            range(1, len(mean) + 1),
            mean,
            color=colour,
            ls="--" if rule == "mean field" else "-",
            label=rule,
        )
        axes.fill_between(
            range(1, len(mean) + 1),
            mean - 2 * error,
            mean + 2 * error,
            color=colour,
            alpha=0.2,
            lw=0,
        )
    axes.set(title=f"$c = {c:g}$", ylabel="$E[R_T]$")
panels[-1].set_xlabel("rounds $T$")
panels[0].legend(loc="upper left")
plt.show()

# %% [markdown]
# In {numref}`fig-bandit-kitchens` look at the dashed line: at $c = 0$ it lies on that of exact draws, and the larger $c$, the more it climbs.
#
# The three rules have the same prior and, given the same data, the same mean.
# What makes the difference is how wide they think the posterior is, above all in what it says about dishes that were not tried.
# {cite:t}`phan2019` prove for simple bandits that even a small error of the posterior, of constant size, can make the regret grow in a line, and that a little forced exploration mends an approximation that is too sure.
# {cite:t}`blundell2015` mention the danger, and say that they did not see it in practice.

# %% tags=["hide-input"]
_, meals, (A, b) = played[3.0, "exact"]
inputs, targets = (torch.stack(list(part)) for part in zip(*meals, strict=True))
regression = LinearRegression(inputs, targets)
difference = max(
    (torch.linalg.solve(A, b) - regression.mean).abs().max(),
    (A.inverse() - regression.covariance).abs().max(),
)
claim(
    "Largest difference of the posterior of a kitchen from that of LinearRegression",
    difference,
    at_most=1e-9,
    because="rounding",
    kind="exact",
)
claim(
    "With c = 0 draws from the independent Gaussian and exact draws give regrets that "
    "differ by",
    (
        regret[0.0, "exact"].sum(0).mean() - regret[0.0, "mean field"].sum(0).mean()
    ).abs(),
    at_most=0.5,
    because="A is diagonal, and the draws are the same but for rounding",
)


def late_excess(c, rule):
    """Regret a round beyond that of exact draws, in the second half, with its
    standard error over kitchens."""
    half = regret[c, rule].shape[0] // 2
    return mean_and_error((regret[c, rule] - regret[c, "exact"])[half:].mean(0))


for c, least in ((1.0, 0.08), (3.0, 0.28)):
    value, error = late_excess(c, "mean field")
    claim(
        f"With c = {c:g} mean field loses more in each late round than exact draws, by",
        value,
        at_least=least,
        because=f"its standard error is below {math.ceil(100 * error) / 100:.2f}",
    )
claim(
    "Regret a round of exact draws, second half, the largest of the three levels",
    max(float(regret[c, "exact"][150:].mean()) for c in levels),
    at_most=0.05,
    because="it is near 0.03 and falls",
)
value, error = mean_and_error(
    (regret[3.0, "greedy"] - regret[3.0, "mean field"]).sum(0)
)
claim(
    "With c = 3 the greedy rule has more regret than mean field, in standard errors",
    value / error,
    at_least=4,
    because="some of the draws still explore while the widths are large",
)

# %% [markdown]
# ## Mushrooms and networks
#
# Now a context has 22 attributes, such as odour and colour, in 117 columns of zeros and ones, and $f(x, a; \theta)$ is a network with two hidden layers of 100 rectified linear units that is given the mushroom and the action.
# The real mushrooms are those of the UCI Machine Learning Repository {cite:p}`mushroom,schlimmer1987`, 8,124 rows, of which 3,916 are poisonous.
# That file is not part of this book; `mushrooms` reads your own copy of it.
# `synthetic_mushrooms` makes up a table of the same shape from random numbers, which has nothing else to do with mushrooms: one attribute decides for all but three in a hundred of the poisonous rows, and another one for these.
#
# Each agent keeps the last 4,096 interactions and models the reward by $N(f(x, a; \theta), \sigma^2)$ with a normal prior on the weights, so that the potential is a sum over $N$ interactions and $N$ grows.
# Agents differ in how they act:
#
# * *greedy* and *ε-greedy*: by the network that Adam has found near the mode of the posterior, and with probability 0, 1 or 5 % by chance;
# * *Bayes by Backprop*: by a network drawn afresh for every mushroom from the independent Gaussian that Adam fits, or, as in the paper, by the mean of two such networks;
# * *SGHMC*: by the network at which a chain stands, which goes on while the posterior changes.
#
# This is not a repetition of the paper's experiment but a small relative of it.
#
# | | {cite:t}`blundell2015` | here |
# | --- | --- | --- |
# | interactions | 50,000 | 5,000 |
# | learning | 64 minibatches of 64 after each interaction | 20 minibatches of 64 after every 20 interactions |
# | descent by | not named | Adam |
# | averaged over | 5 runs | 5 runs, in each of which all agents meet the same mushrooms and coins |
#
# Each agent may choose among six settings, two {term}`learning rates <learning rate>` times three values of $\sigma^2$: it takes what was best in one run of 2,500 interactions with other mushrooms.
# SGHMC moves a little between two blocks of 20 interactions, and within a block it judges all mushrooms by one network. The curvature of the posterior grows with $N$, so $\eta$ falls as $1/N$.
# This rule came second: in a first trial SGHMC had one $\eta$ throughout, which went badly, and of all agents it alone had such a second chance.

# %% tags=["hide-input"]
stored = read_result(RESULTS / "bandit.json")
titles = {"made up": "made-up", "agaricus-lepiota.data": "UCI"}
every = stored["every"]
rounds = torch.arange(every, stored["interactions"] + 1, every)


def final(table, agent):
    """Regrets at the end, one a run."""
    return torch.tensor(
        [float(run["regret"][-1]) for run in stored["tables"][table][agent]["runs"]],
        dtype=DOUBLE,
    )


def show_regrets(table):
    """Show the regrets of all agents on one table of mushrooms."""
    rows = []
    for agent, content in stored["tables"][table].items():
        total, runs = final(table, agent), content["runs"]
        keys = ("poisonous_eaten", "edible_left")
        counts = (sum(run[key] for run in runs) / len(runs) for key in keys)
        numbers = [total.mean(), total.std(), total.min(), total.max(), *counts]
        rows.append([agent, *(f"{float(number):.0f}" for number in numbers)])
    heads = ["regret", "sd", "least", "most", "eaten", "left"]
    show_table([f"{titles[table]} mushrooms", *heads], rows)


show_regrets("made up")

# %% tags=["hide-input"]
show_regrets("agaricus-lepiota.data")
print(who_ran(stored))

# %% [markdown]
# Regret after 5,000 mushrooms: mean, standard deviation and range over five runs; then how many poisonous ones were eaten and how many edible ones left, on average.
# An agent that leaves everything has a regret near 12,900: 12,912 on the made-up mushrooms, the grey line of {numref}`fig-bandit-mushrooms`, and 12,949 on those of UCI.

# %% mystnb={"figure": {"caption": "Regret of six agents on two tables of mushrooms: means over five runs, and between the smallest and the largest (bands). Grey: who leaves every mushroom.", "name": "fig-bandit-mushrooms"}, "image": {"alt": "Two panels, one above the other, of regret against interactions for six agents, with wide bands that overlap. All means bend and end between two and six thousand; on the UCI table the band of the greedy rule reaches up to the straight grey line at thirteen thousand."}} tags=["hide-input"]
styles = {
    "greedy": (GREEDY, "-"),
    "ε-greedy, 1 %": (GREEDY, "--"),
    "ε-greedy, 5 %": (GREEDY, ":"),
    "Bayes by Backprop": (INDEPENDENT, "-"),
    "Bayes by Backprop, two averaged": (INDEPENDENT, "--"),
    "SGHMC": (COLOURS["SGHMC"], "-"),
}
figure, panels = plt.subplots(2, 1, figsize=(5.6, 7.6), sharex=True, sharey=True)
for axes, (table, agents) in zip(panels, stored["tables"].items(), strict=True):
    for agent, (colour, line) in styles.items():
        curves = torch.tensor(
            [run["regret"] for run in agents[agent]["runs"]], dtype=DOUBLE
        )
        axes.plot(rounds, curves.mean(0), color=colour, ls=line, label=agent)
        axes.fill_between(
            rounds,
            curves.min(0).values,
            curves.max(0).values,
            color=colour,
            alpha=0.1,
            lw=0,
        )
    axes.plot(
        rounds, 5 * 0.5165 * rounds, color=TRUTH, lw=1, zorder=0, label="leaves all"
    )
    axes.set(
        title=f"{titles[table]} mushrooms", ylabel="regret $R_T$", ylim=(0, 13_500)
    )
panels[-1].set_xlabel("interactions $T$")
handles, labels = panels[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=2)
plt.show()

# %% [markdown]
# {numref}`fig-bandit-mushrooms` shows how the regret came about: the curves climb steeply while the agents learn and less steeply later, and on the UCI table one band reaches up to the grey line. That is one run of the greedy rule, which never bends; it ends a little above the line, for it met more edible mushrooms than the average.

# %% tags=["hide-input"]
claim(
    "Regret of who leaves 5,000 mushrooms of which 48.35 % are poisonous",
    5 * 0.5165 * 5_000,
    near=12_912,
    within=1,
    because="5 for each that is edible",
    kind="exact",
)

# %% [markdown]
# Runs differ a lot, so we compare in pairs: agents that met the same mushrooms and coins.

# %% tags=["hide-input"]
reference = "ε-greedy, 1 %"
rows = []
for agent in styles:
    if agent != reference:
        pairs = [mean_and_error(final(t, agent) - final(t, reference)) for t in titles]
        rows.append([agent, *(f"{mean:.0f} ± {error:.0f}" for mean, error in pairs)])
show_table([f"regret less that of {reference}", *titles.values()], rows)

# %% [markdown]
# Mean and standard error over five runs.

# %% [markdown]
# What does it say?
#
# * *The trap is real.* On the UCI table one greedy run of five ate four poisonous mushrooms and then left all that came, edible or not, to the end. {cite:t}`blundell2015` report that their greedy agent ate nothing for about 1,000 interactions. No run that explored by chance or by draws fell into it.
# * *No run by draws of Bayes by Backprop fell into the trap, and they are not seen to do better than one chance action in a hundred.* Twenty runs do not show that the draws explore enough: where one greedy run in ten is trapped, twenty are all spared with a probability of 0.12. The difference from ε-greedy with 1 % is open on either table: its 95 per cent intervals reach from $-1{,}880$ to 2,653 on the made-up mushrooms and from $-1{,}165$ to 1,287 on UCI's. The paper has ten times the interactions, and 64 times the learning in each.
# * *Five per cent of chance is too much*: it costs 1,229 even when all is known ({ref}`ex-bandit-epsilon`). On the UCI table it lost 2,417 to 1 %; chance actions do not explain the rest.
# * *SGHMC is not seen to do better*: on the made-up mushrooms its interval is $-1{,}063$ to 1,961, and on the UCI table it lost more in each pair, which Welch's test leaves open ($p = 0.06$). Half of its settings diverged, so it had fewer to choose from.

# %% tags=["hide-input"]
uci, made_up = "agaricus-lepiota.data", "made up"
trapped = max(
    stored["tables"][uci]["greedy"]["runs"], key=lambda run: run["regret"][-1]
)
claim(
    "Poisonous mushrooms that the worst greedy run on the UCI table ate",
    trapped["poisonous_eaten"],
    near=4,
    within=0,
    because="the stored result",
    kind="stored",
)
claim(
    "Edible mushrooms, of about 2,590, that it left",
    trapped["edible_left"],
    at_least=2_500,
    because="the stored result: after the four it stopped eating",
    kind="stored",
)
claim(
    "Largest regret of the four other greedy runs on the UCI table",
    final(uci, "greedy").sort().values[-2],
    at_most=3_500,
    because="the stored result",
    kind="stored",
)
others = [agent for agent in styles if agent != "greedy"]
claim(
    "Largest regret on the UCI table of any run of the other agents",
    max(float(final(uci, agent).max()) for agent in others),
    at_most=6_500,
    because="the stored result; who leaves everything has twice as much",
    kind="stored",
)
by_draws = [agent for agent in others if "Bayes" in agent]


def two_tests(table, agent):
    """The paired test and Welch's, of the regrets of an agent and the reference."""
    pair = final(table, agent).numpy(), final(table, reference).numpy()
    return stats.ttest_rel(*pair), stats.ttest_ind(*pair, equal_var=False)


def interval(table, agent):
    """The wider 95 % interval of the two."""
    ends = (test.confidence_interval() for test in two_tests(table, agent))
    return max(ends, key=lambda one: one.high - one.low)


for who, table, agents, wanted in (
    ("Bayes by Backprop, one network or two", made_up, by_draws, (-1_880, 2_653)),
    ("Bayes by Backprop, one network or two", uci, by_draws, (-1_165, 1_287)),
    ("SGHMC", made_up, ["SGHMC"], (-1_063, 1_961)),
):
    lows, highs = zip(*(interval(table, agent) for agent in agents), strict=True)
    claim(
        f"{who} less ε-greedy with 1 %, {titles[table]}: distance of the ends of the "
        f"95 % intervals from {wanted[0]:,} and {wanted[1]:,}",
        max(abs(min(lows) - wanted[0]), abs(max(highs) - wanted[1])),
        at_most=1,
        because="the stored result, the wider intervals of the paired and Welch's test",
        kind="stored",
    )
claim(
    "SGHMC less ε-greedy with 1 %, UCI mushrooms: the larger p of the two tests",
    max(test.pvalue for test in two_tests(uci, "SGHMC")),
    near=0.06,
    within=0.005,
    because="the stored result",
    kind="stored",
)
claim(
    "Regret of ε-greedy with 5 % less that with 1 %, UCI mushrooms, over 1,229",
    (final(uci, "ε-greedy, 5 %") - final(uci, reference)).mean() / 1_229,
    near=2,
    within=0.1,
    because="the stored result; 1,229 is what the chance actions cost",
    kind="stored",
)
claim(
    "Least that SGHMC lost to ε-greedy with 1 % in a pair, UCI mushrooms",
    (final(uci, "SGHMC") - final(uci, reference)).min(),
    at_least=400,
    because="the stored result",
    kind="stored",
)
finite = [
    row["regret"] is not None
    for table in titles
    for row in stored["tables"][table]["SGHMC"]["tuning"]
]
claim(
    "Settings of SGHMC, of six on each of two tables, that left the finite numbers",
    len(finite) - sum(finite),
    near=6,
    within=0,
    because="the stored result: those with the larger learning rate",
    kind="stored",
)

# %% [markdown]
# Three things hold this comparison back.
# Five runs are few, when one early coin can decide a run.
# Each agent's settings are those of one lucky or unlucky run: eight times of twelve it was the smallest of the three $\sigma^2$, at the edge of what was offered.
# And the coin's rewards, $-35$ or 5, are nothing like $N(f, \sigma^2)$ with one $\sigma^2$ for all: what the agents draw from is the posterior of a wrong model.

# %% tags=["hide-input"]
claim(
    "Agents and tables of twelve for which the smallest of three σ² was chosen",
    sum(
        content["settings"]["noise_variance"] == 0.01
        for agents in stored["tables"].values()
        for content in agents.values()
    ),
    near=8,
    within=0,
    because="the stored result",
    kind="stored",
)

# %% [markdown]
# ## In practice
#
# * Plot regret, or what was earned, against a rule that always does the same. A network that predicts well may decide badly, and the other way round.
# * Count the actions, not only the rewards: an agent that no longer tries an action has stopped learning about it.
# * Ask of an approximate posterior how wide it is about what was never tried. Widths that shrink with every observation, whatever was observed, are the sign of {prf:ref}`thm-bandit-mean-field`.
# * A posterior that grows with the data gets steeper: let the step size of a sampler fall as $1/N$.
# * Run every agent several times on the same contexts, and compare in pairs. One run of a greedy rule says which way a few early coins fell.
# * A forced share of random actions is cheap insurance against a posterior that is too sure; it costs a known regret ({ref}`ex-bandit-epsilon`).
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | regret | $R_T = \sum_t\bigl(\max_af(x_t, a; \theta) - f(x_t, a_t; \theta)\bigr)$, {eq}`eq-bandit-regret` |
# | the greedy rule in the trap | $E[R_T] \ge (T - 1)\,\tau(1 - \varrho)/2\sqrt{2\pi}$, {eq}`eq-bandit-trap` |
# | Thompson sampling | $a_t = \arg\max_af(x_t, a; \theta_t)$, $\theta_t \sim p(\theta \mid \mathcal D_{t-1})$, {prf:ref}`alg-thompson` |
# | how often it takes an action | $P(a_t = a \mid \mathcal D_{t-1}) = P(a \text{ is best} \mid \mathcal D_{t-1})$, {prf:ref}`prop-thompson` |
# | the kitchen's precision | $A = I + \sum_kn_kx_kx_k^\top$, {eq}`eq-bandit-precision` |
# | variance about what was never tried | bounded below under the posterior, falling like $1/n$ under mean field if $c > 0$, {eq}`eq-bandit-variances` |
#
# ## Change it
#
# * In `walk` set `mean + variance.sqrt() * normal()` to `mean + 0.1 * variance.sqrt() * normal()`: draws from a posterior ten times too narrow hardly explore, and the claim on the late regret of Thompson sampling shows ✗.
# * In `kitchens` set `drawn + z / A.diagonal(dim1=1, dim2=2).sqrt()` to `drawn + 5 * z / A.diagonal(dim1=1, dim2=2).sqrt()`: mean field with draws five times as wide explores more. At $c = 0$ that is too much, and the claim that it equals exact draws there shows ✗; at $c = 1$ and 3 it helps, and the claims on what it loses show ✗ too.
# * In `kitchens` set `theta = normal(kitchens, dishes)` to `theta = 3 * normal(kitchens, dishes)`: the kitchens differ more than the prior says, a bad start is costlier, and claims on the late regrets show ✗.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-bandit-write
#
# *Write it yourself.* Complete a Thompson sampler for one kitchen. It keeps the precision $A$ and the vector $b = A\,E[\theta]$ and never looks at old data. Compare its mean and its covariance after twenty meals with those of `LinearRegression`, which sees all data at once.
#
# ```python
# class Kitchen:
#     def __init__(self, dishes):  # dishes: one row x_k for each dish
#         self.x, self.A, self.b = dishes, ..., ...
#
#     def choose(self, generator):
#         # a draw θ ~ N(A⁻¹b, A⁻¹), and the dish that is best for it
#         ...
#
#     def learn(self, dish, reward):
#         ...
# ```
# ````
#
# ```{solution} ex-bandit-write
# :class: dropdown
#
# A meal of dish $k$ with reward $r$ adds $x_kx_k^\top$ to $A$ and $r\,x_k$ to $b$. With $A = LL^\top$ and $z \sim N(0, I)$ the solution of $L^\top u = z$ has the covariance $A^{-1}$. The cell below plays twenty rounds.
# ```


# %% tags=["hide-input"]
class Kitchen:
    def __init__(self, dishes):
        size = dishes.shape[1]
        self.x = dishes
        self.A, self.b = torch.eye(size, dtype=DOUBLE), torch.zeros(size, dtype=DOUBLE)

    def choose(self, generator):
        root = torch.linalg.cholesky(self.A)
        z = torch.randn(len(self.b), 1, generator=generator, dtype=DOUBLE)
        drawn = torch.linalg.solve(self.A, self.b) + torch.linalg.solve(root.T, z)[:, 0]
        return int((self.x @ drawn).argmax())

    def learn(self, dish, reward):
        self.A = self.A + self.x[dish][:, None] * self.x[dish]
        self.b = self.b + reward * self.x[dish]


dishes, draw = 3 + torch.eye(5, dtype=DOUBLE), torch.Generator().manual_seed(1)
truth = torch.randn(5, generator=draw, dtype=DOUBLE)
kitchen, meals = Kitchen(dishes), []
for _ in range(20):
    dish = kitchen.choose(draw)
    reward = dishes[dish] @ truth + torch.randn((), generator=draw, dtype=DOUBLE)
    kitchen.learn(dish, reward)
    meals.append((dishes[dish], reward))
at_once = LinearRegression(*(torch.stack(part) for part in zip(*meals, strict=True)))
claim(
    "Exercise: largest difference from the posterior of all data at once",
    max(
        (torch.linalg.solve(kitchen.A, kitchen.b) - at_once.mean).abs().max(),
        (kitchen.A.inverse() - at_once.covariance).abs().max(),
    ),
    at_most=1e-9,
    because="rounding",
    kind="exact",
)


def normal_below(z):
    """The normal distribution function."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


cost = 0.5 * 0.05 * (0.5165 * 5 + 0.4835 * 15)
for statement, value, near, within in (
    ("Regret of 5,000 rounds with 5 % of chance actions", 5_000 * cost, 1_229, 1.5),
    ("Share of the worse action, m = −s, one draw", normal_below(-1), 0.16, 0.005),
    ("The same, two draws averaged", normal_below(-math.sqrt(2)), 0.08, 0.005),
):
    claim(
        f"Exercises: {statement}",
        value,
        near=near,
        within=within,
        because="arithmetic",
        kind="exact",
    )

# %% [markdown]
# ```{exercise}
# :label: ex-bandit-epsilon
#
# A network has learned all about the mushrooms. What regret does a random action with probability $\epsilon = 5\,\%$ cost it in 5,000 interactions, if a share 0.4835 is poisonous?
# ```
#
# ```{solution} ex-bandit-epsilon
# :class: dropdown
#
# An action by chance is the wrong one half the time. It costs 5 at an edible mushroom and 15 at a poisonous one, so a round costs $\tfrac12\epsilon(0.5165\cdot5 + 0.4835\cdot15) = 0.246$, and 5,000 rounds 1,229. That goes on in a line; with an $\epsilon$ that falls like $1/t$ it would grow like $\log T$.
# ```
#
# ```{exercise}
# :label: ex-bandit-averaged
#
# Let the difference of the two actions' values have the posterior $N(m, s^2)$ with $m < 0$. How often does Thompson sampling take the action that seems worse? And a rule that averages $k$ draws of the difference? What does $k \to \infty$ give?
# ```
#
# ```{solution} ex-bandit-averaged
# :class: dropdown
#
# $\Phi(m/s)$, and with $k$ draws, whose mean is $N(m, s^2/k)$, $\Phi(\sqrt k\,m/s)$. For $m = -s$ that is 16 % and, with two draws as in the paper, 8 %. As $k \to \infty$ the rule becomes greedy: averaging explores less.
# ```
#
# ```{exercise}
# :label: ex-bandit-coordinates
#
# In the kitchen write the posterior in the values $v_k = x_k\cdot\theta$ of the dishes in place of $\theta$. What is its precision, and when is mean field in these coordinates nearly right?
# ```
#
# ```{solution} ex-bandit-coordinates
# :class: dropdown
#
# With $v = X\theta$ the prior is $N(0, XX^\top)$, and a meal of dish $k$ looks at $v_k$ alone, so the precision is $(XX^\top)^{-1} + \operatorname{diag}(n_1, \dots, n_K)$. The part of the data is diagonal; what couples the values is the prior, and it matters only for dishes that were hardly tried. There the diagonal of $(XX^\top)^{-1}$ does not grow with the other dishes' meals, so the width about what was never tried stays, and such an agent goes on exploring. Mean field is a statement about coordinates, and an agent may choose them.
# ```
#
# ```{exercise}
# :label: ex-bandit-bernoulli
#
# Two medicines cure with unknown probabilities, each uniform on $[0, 1]$ before. The first cured 2 of 3 patients, the second was never given. How often does Thompson sampling give the second next?
# ```
#
# ```{solution} ex-bandit-bernoulli
# :class: dropdown
#
# The first has the posterior Beta(3, 2), of mean $\tfrac35$, the second is uniform. So $P(p_2 > p_1) = E[1 - p_1] = \tfrac25$: of the second nothing is known, and it is given with probability two fifths. The greedy rule does not give it before the mean of the first falls below that of the second, $\tfrac12$.
# ```
#
# ## Further reading
#
# {cite:t}`russo2018` is a tutorial on Thompson sampling {cite:p}`thompson1933`, with many more bandits than two.
# {cite:t}`blundell2015` set the task of the mushrooms; {cite:t}`riquelme2018` compare many approximate posteriors on it and on other tables.
# {cite:t}`phan2019` say what an error of the posterior does to the regret.
