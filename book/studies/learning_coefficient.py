# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # The learning coefficient
#
# ```{div} page-head
# Level: second course · Reading: about 32 minutes, without the exercises · Running: about 6 seconds
# ```
#
# ```{index} ! learning coefficient, ! singular learning theory, devinterp, WAIC, functional variance
# ```

# %%
import math

import torch

from booklib.models.learning_coefficient import Minimum, choose
from booklib.page.claims import check, near
from sgmc.splittings import langevin_chain

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
from scipy.stats import norm

from booklib.models.learning_coefficient import reported
from booklib.page.claims import at_least, at_most
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result, who_ran

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
stored = read_result(RESULTS / "learning_coefficient.json")
runs, regression = stored["devinterp"]["settings"], stored["regression"]
users, lawful = regression["users"], regression["SGHMC"]

# %% [markdown]
# A trained network's weights may change in many ways without changing what it computes. The *local learning coefficient* $\lambda$ measures how many of them count: it is half the number of weights if there is no such way, and less otherwise {cite:p}`lau2025,furman2024`.
# The library *devinterp* estimates it by SGLD. Near the minimum $w^*$ of the mean loss $L$ of $n$ examples (the tutorial's $N$; minibatches have $m$) it samples $e^{-n\beta L(w)}$, where $n\beta$ is a number to choose, and reports $\hat\lambda = n\beta\,(\overline L - L(w^*))$ with the average loss $\overline L$ along the chain. The step is chosen by an acceptance rate and a look at loss traces, "more an art than a science", says the notebook of version 1.
# How much of the number is the sampler's?
#
# **With $n\beta = n/\log n$, the choice of {cite:t}`lau2025`, more than half: on a regression whose answer is {c}`right`, SGLD reports {c}`users` ± {c}`users-half` (95 %) at a step that looks healthy. With $n\beta = m/\log m$, the library's own setting, the same step errs by {c}`default-share` % there, but by {c}`small-wide` and {c}`small-deep` % on two linear networks.**
# {numref}`fig-coefficient` shows that the chain's exact distribution, its *law*, predicts this on the regression before the run.

# %%
d, n, m, gamma = 10, 10_000, 64, 1.0
a = torch.logspace(-1, 1, d, dtype=torch.float64)  # curvatures of the loss


def law(share, nbeta):
    """What SGLD reports (see below), its step `share` over the largest curvature."""
    p, noise = nbeta * a + gamma, nbeta**2 * a / m
    step_size = share / p.max()
    v = (1 + step_size / 2 * noise) / (p * (1 - step_size / 2 * p))
    return float(nbeta / 2 * (a * v).sum())


large, small = n / math.log(n), m / math.log(m)
exact = {b: float((b * a / (b * a + gamma)).sum() / 2) for b in (large, small)}
for share in (1.0, 0.5, 0.1):
    print(f"{share:4}: {law(share, large):6.2f} {law(share, small):6.2f}")
print(f"none: {exact[large]:6.2f} {exact[small]:6.2f}")
check("right", exact[large], near(4.989, 0.001), kind="exact")
check("law-users", law(0.5, large), near(11.667, 0.001), kind="exact")
excess = 100 * (law(0.5, small) / exact[small] - 1)
check("default-share", excess, kind="exact", digits=2)

# %% mystnb={"figure": {"caption": "Left: what SGLD reports, by the law, against its step in units of the stiffest direction (stable below 2; $p_{\\max}$ is its curvature), with $n\\beta = n/\\log n$ (line) and $m/\\log m$ (dashes); grey: an exact sampler. Points: a regression's real minibatches, stored runs; for SGHMC $\\eta$ is $\\varepsilon^2$. Right: ten settings of devinterp 2.0.1, measured against predicted from the minibatches that it drew (points, with two standard errors), and against the law of fresh minibatches (crosses).", "name": "fig-coefficient"}, "image": {"alt": "Left: a line that rises from 5 at small steps over 12 at one half to 22 at one, and a dashed one that stays between 4.4 and 5.6. One point lies on the line at one half, near 12, and one at the grey level of 5. Right: ten points on the diagonal between 4 and 24; crosses beside it."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2))
shares = torch.logspace(-2, 0, 40).tolist()
for nbeta, style in ((large, "-"), (small, "--")):
    values = [law(share, nbeta) for share in shares]
    left.plot(shares, values, style, color=COLOURS["SGLD"])
    left.axhline(exact[nbeta], ls=style, color=TRUTH, zorder=0)
left.errorbar(
    0.5, users["mean"], 2 * users["error"], fmt="o", color=COLOURS["SGLD"], label="SGLD"
)
left.errorbar(
    lawful["step_size"] ** 2 * float(large * a.max() + gamma),
    lawful["mean"],
    2 * lawful["error"],
    fmt="s",
    color=COLOURS["SGHMC"],
    label="SGHMC set by choose,\nequal gradients",
)
left.set(xscale="log", xlabel=r"$\eta\,p_{\max}$", ylabel=r"reported $\hat\lambda$")
left.legend()
for row in runs.values():
    bar = 2 * row["predicted_error"]
    right.errorbar(
        row["predicted"], row["measured"], bar, fmt="o", ms=3, color=COLOURS["SGLD"]
    )
    right.plot(row["law"], row["measured"], "x", color=COLOURS["naive SGHMC"])
ends = [3, 25]
right.plot(ends, ends, color=TRUTH, zorder=0)
right.set(xlabel="predicted", ylabel="reported by devinterp 2.0.1")
plt.show()

# %% [markdown]
# *Before you read on: why does a small $n\beta$ protect?*
#
# | | the setting |
# | --- | --- |
# | regression | 10,000 examples, ten curvatures $a_i$ of the loss from 0.1 to 10, and unit noise, so that one example's gradient has the variance $s_i^2 = a_i$ in direction $i$; $m = 64$, a prior of precision $\gamma = 1$ around $w^*$ |
# | the step of users | $\eta\,p_{\max} = \tfrac12$ with $p_i = n\beta a_i + \gamma$, a quarter of the largest stable step; its loss trace is flat, and a full-gradient Metropolis step would accept {c}`accepts` |
# | run | `python -m benchmarks.learning_coefficient regression`, and its other parts, each under a minute |
#
# ## What it is
#
# The volume of the weights around $w^*$ with $L < L(w^*) + \varepsilon$ shrinks like $\varepsilon^\lambda$ (up to logarithms), and $\lambda$ is the learning coefficient {cite:p}`watanabe2009,lau2025`.
# The estimate rests on $n\beta\,(\mathbb E L - L(w^*)) \to \lambda$ at $\beta = 1/\log n$ {cite:p}`watanabe2013`; the prior $e^{-\frac\gamma2|w - w^*|^2}$ keeps the chain near $w^*$.
#
# ## The law
#
# Assume that $L$ is a quadratic near $w^*$ with curvatures $a_i$, and that the minibatch noise does not depend on the place. SGLD moves $\delta = w - w^*$ by $-\eta\,(n\beta\,\nabla\tilde L + \gamma\delta) + \mathcal N(0, 2\eta)$; devinterp's `lr` is $2\eta$. In direction $i$, with the gradient noise $V_i = (n\beta)^2s_i^2/m$ it multiplies $\delta$ by $1 - \eta p_i$ and adds the variance $2\eta + \eta^2V_i$.
# Starting at $w^*$, the variance after $t$ steps is therefore $v_i\,(1 - (1 - \eta p_i)^{2t})$ with
#
# $$
# v_i = \frac{1 + \frac12\eta V_i}{p_i\,(1 - \frac12\eta p_i)}, \qquad \mathbb E\hat\lambda = \tfrac12\sum_i n\beta a_iv_i,
# $$ (eq-coefficient)
#
# averaged over the steps that are kept. An exact sampler reports $\tfrac12\sum_in\beta a_i/p_i$, nearly $\tfrac d2$.
# Where the model fits, $s_i^2 = a_i$ ({eq}`eq-fisher`), so $V_i \approx (n\beta/m)\,p_i$, and the relative excess in each direction is about
#
# $$
# \tfrac12\,\eta p_i\,\bigl(1 + n\beta/m\bigr).
# $$ (eq-coefficient-excess)
#
# In all $\hat\lambda$ is too large by about $\tfrac14\eta\,n\beta\,(1 + n\beta/m)\operatorname{tr}H$, with the Hessian $H$ of $L$.
# That is why the small $n\beta$ protects: its bracket is 1.24, that of $n/\log n$ is 18. For the latter {eq}`eq-coefficient` has {c}`law-users` at the step of users, and {c}`law-run` with the curvatures of the very run.
# If a loss is a mean over $T$ nearly independent tokens, the bracket is $1 + n\beta/(mT)$: for a language model, measure $V$.
#
# The price of a small $n\beta$ is a wider neighbourhood, where $\gamma$ weighs more (4.41 in place of 4.99). On a *singular* model, in which weights can change without changing the function, even an exact sampler then reports less than $\lambda$: {c}`exact-wide` and {c}`exact-deep` on two networks whose $\lambda$ is 12 and 10. There $n\beta\,(\mathbb E L - L(w^*))$ is near $\lambda - j/\log n\beta$ only, with $j$ the power of the logarithm in the volume.
#
# A flat trace sees no excess: the chain *is* stationary, only too wide. The thermometer of `sgmc` does see it.
#
# The second assumption is only nearly right: a minibatch has a Hessian of its own, so the noise grows with the distance. In a regression the growth is known exactly, too:

# %%
generator = torch.Generator().manual_seed(0)
x = a.sqrt() * torch.randn(n, d, generator=generator, dtype=torch.float64)
y = torch.randn(n, generator=generator, dtype=torch.float64)
residuals = y - x @ torch.linalg.lstsq(x, y[:, None]).solution[:, 0]
gradients = x * residuals[:, None]
minimum = Minimum(x.T @ x / n, gradients.T @ gradients / n, n)
precision, factor = minimum.precision(large, gamma), large**2 * (1 / m - 1 / n)
step_size = 0.5 / float(torch.linalg.eigvalsh(precision)[-1])
S = torch.linalg.inv(precision)
for _ in range(30):  # the noise where the chain is, at covariance S, and S again
    H, spread = minimum.hessian, (x @ S * x).sum(1, keepdim=True)
    growth = factor * ((x * spread).T @ x / n - H @ S @ H)
    chain = langevin_chain(precision, step_size, minimum.noise(large, m) + growth)
    S = chain.stationary_covariance()
whole = float(large / 2 * (H * S).sum())

delta, total = torch.zeros(64, d, dtype=torch.float64), 0
for t in range(1_500):
    i = torch.randint(n, (64, m), generator=generator)
    gap = torch.einsum("cmd,cd->cm", x[i], delta) - residuals[i]
    force = large / m * torch.einsum("cm,cmd->cd", gap, x[i]) + gamma * delta
    noise = torch.randn(delta.shape, generator=generator, dtype=torch.float64)
    delta = delta - step_size * force + (2 * step_size) ** 0.5 * noise
    if t >= 700:
        total = total + large / 2 * torch.einsum("ci,ij,cj->c", delta, H, delta)
each = total / 800
check("simulated", each.mean(), near(whole), error=float(each.std() / 8), digits=3)

# %% tags=["hide-input"]
check("simulated-error", each.std() / 8, at_most(0.2), digits=1)
check("law-run", users["expected"], kind="stored", digits=4)
check("law-growth", whole, kind="exact", digits=4)
check("users-half", norm.ppf(0.975) * users["error"], kind="stored", digits=1)
check("users", users["mean"], at_least(2 * exact[large]), kind="stored", digits=4)
z = {name: row["z"] for name, row in runs.items()}
worst = max(z, key=lambda name: abs(z[name]))
check("devinterp", abs(z[worst]), at_most(3.5), kind="stored", digits=2)
p = large * a + gamma
step, V = 0.5 / p.max(), large**2 * a / m
injected = 2 * step * (1 - step / 2 * V).clamp(min=0)
clipped = large / 2 * a * (injected + step**2 * V) / (1 - (1 - step * p) ** 2)
check("clipped", clipped.sum(), near(8.716, 0.001), kind="exact", digits=2)
start, noise = torch.randn(2, 100_000, d, generator=generator, dtype=torch.float64)
start = start / p.sqrt()
moved = (1 - step * p) * start + (2 * step) ** 0.5 * noise
back = start - (1 - step * p) * moved
ratio = noise.square() / 2 - back.square() / (4 * step)
ratio = (ratio + p * (start.square() - moved.square()) / 2).sum(1)
check("accepts", ratio.exp().clamp(max=1).mean(), near(0.9, 0.005), digits=2)
shuffles = stored["shuffles"]
replayed = shuffles["replayed"]
longer = stored["shuffles-long"]
kept, new = (longer[x]["spread_exact_first"] for x in ("replayed", "reshuffled"))
check("replayed", replayed["spread"], kind="stored", digits=2)
check("replayed-long", kept, at_least(3 * new), kind="stored", digits=2)
check("reshuffled-long", new, kind="stored", digits=1)
first = large * float((residuals.square() / 2).std()) * (1 / (32 * m) - 1 / n) ** 0.5
check("first-large", first, at_least(10), kind="exact", digits=2)
check("first-small", first * small / large, kind="exact", digits=1)
check("epoch-first", replayed["spread_epoch_first"], kind="stored", digits=2)
check("own-error", replayed["own_error"], kind="stored", digits=2)
aim = regression["localised"]
margin = 0.02 * aim + 2 * lawful["error"]
check("lawful", lawful["mean"], near(aim, margin), kind="stored", digits=3)
gain = regression["SGLD"]["error"] / lawful["error"]
check("gain", gain, kind="stored", digits=2)

# %% [markdown]
# With the growth the law says {c}`law-growth`, and the stored run {c}`users`; the 64 chains of the cell report {c}`simulated`, with a standard error of {c}`simulated-error`.
#
# ## Given the minibatches: devinterp itself
#
# The points on the right of {numref}`fig-coefficient` are the library's own runs. In its sampler (version 2.0.1) the first epoch's shuffle is replayed for ever (`_make_feed`), all chains see the same minibatches by default, the average takes in the burn-in and each step's *own* minibatch loss, and $L(w^*)$ is a mean over 32 minibatches.
# So take the minibatches as given. Then each step is an affine map plus Gaussian noise, and mean and variance of the report are known exactly (`reported_given`).
#
# ```{admonition} Mean and variance of the report, given the minibatches
# :class: dropdown
#
# The loss is a quadratic. With the gradient $g_t$ and the Hessian $H_t$ of the minibatch of step $t$ at $w^*$, and $F_t = I - \eta(n\beta H_t + \gamma)$, mean and covariance of $\delta$ begin at 0 and become
#
# $$
# \mu_{t+1} = F_t\mu_t - \eta n\beta g_t, \qquad S_{t+1} = F_tS_tF_t^\top + 2\eta I.
# $$
#
# The loss of step $t$ has the mean $L_t(w^*) + g_t\cdot\mu_t + \tfrac12\operatorname{tr}H_t(S_t + \mu_t\mu_t^\top)$.
# What a deviation $z$ of $\delta$ at step $t$ adds to this and all later losses is on average a quadratic $\tfrac12z^\top Q_tz + q_t\cdot z$, which comes backwards: $Q_t = H_t + F_t^\top Q_{t+1}F_t$ and $q_t = g_t + H_t\mu_t + F_t^\top q_{t+1}$.
# What each noise adds has mean zero given those before, so the variances add: $2\eta\,(|q|^2 + \operatorname{tr}QFSF^\top Q) + 2\eta^2\operatorname{tr}Q^2$, with $Q$ and $q$ of the next step, $F$ and $S$ of this one.
# ```
#
# We ran the library on 2,000 such examples, read which ones each step drew, and predicted its report, twenty chains in each of ten settings.

# %% mystnb={"code_prompt_hide": "Hide the ten settings", "code_prompt_show": "Show the ten settings"} tags=["hide-cell"]
show_table(
    ["setting", "reported", "predicted", "z"],
    [
        [
            name,
            f"{row['measured']:.2f}",
            f"{row['predicted']:.2f}",
            f"{row['z']:+.1f}",
        ]
        for name, row in runs.items()
    ],
)
print("The first: 2,000 examples, minibatches of 64, nβ = n/log n, 400 steps;")
print("the rest as named.")
print(who_ran(stored["devinterp"]))

# %% [markdown]
# The largest $|z|$ of the ten is {c}`devinterp`.
# Chains that share their minibatches are wrong together: between shuffles the prediction has the standard deviation {c}`replayed`, where twenty chains of one shuffle state a standard error of {c}`own-error`. Two causes:
#
# * *$L(w^*)$ from 32 minibatches* is wrong by $n\beta\operatorname{sd}(\ell)\sqrt{1/32m - 1/n}$ in all chains at once (where $32m < n$), $\ell$ being one example's loss. On 10,000 examples with $n\beta = n/\log n$ that is {c}`first-large`, with either sign; with $m/\log m$ it is {c}`first-small`. With exactly one epoch, `num_init_loss_batches` = $\lfloor n/m\rfloor$, it is gone, and {c}`epoch-first` remain of the {c}`replayed`: 2,000 examples have 31 whole minibatches, and the default 32 count the first twice.
# * *The replay*: with the exact $L(w^*)$ and five times the steps it is still {c}`replayed-long`; new shuffles in each epoch would leave {c}`reshuffled-long`.
#
# ## What to do instead
#
# SGLD cannot simply subtract $\hat B = \tfrac12\eta V$ from what it injects: at the step of users that exceeds 1 in three of ten directions, and with nothing injected there it still reports {c}`clipped`. SGHMC can, with a friction $C \ge \hat B$. `choose` searches steps and frictions for the least expected error of a budget, from the Hessian and each example's gradient at $w^*$, for up to some $10^4$ weights:

# %%
choice = choose(minimum, large, gamma, gradients=640_000, chains=64)
print(choice.kernel, f"ε = {choice.step_size:.5f}, C = {choice.friction:.0f}:", end=" ")
print(f"{choice.expected:.3f} ± {choice.deviation / 8:.3f} in {64} chains")
try:
    choose(minimum, large, gamma, 640_000, 64, kernels=("SGLD",))
except ValueError as impossible:
    print("SGLD,", str(impossible).partition(". ")[0])

# %% tags=["hide-input"]
NETWORKS = {
    "reduced-rank": "reduced-rank regression 6–4–5",
    "deep-linear": "deep linear network 5–4–4–5",
}
ROWS = {
    "users": "SGLD, the step of users",
    "SGLD": "SGLD, set by choose",
    "SGHMC": "SGHMC, set by choose",
}


def cell(row):
    return f"{row['mean']:.2f} ± {norm.ppf(0.975) * row['error']:.2f}"


def of_networks(which):
    return [stored[f"{name}-{which}"] for name in NETWORKS]


exactly, by_step = of_networks("exact"), of_networks("users")
laws = (f"{row['expected']:.2f}" for row in (users, *by_step))
show_table(
    ["reported, mean and 95 %", "regression", *NETWORKS.values()],
    [
        ["λ as known", "5", *(f"{row['known']:g}" for row in exactly)],
        ["exact sampler", f"{aim:.2f}", *map(cell, exactly)],
        ["law of the step of users", *laws],
        *(
            [title, cell(regression[which]), *map(cell, of_networks(which))]
            for which, title in ROWS.items()
        ),
        [
            "nβ = 64/log 64: exact sampler",
            f"{exact[small]:.2f}",
            *map(cell, of_networks("small-exact")),
        ],
        [
            "SGLD, the step of users",
            f"{law(0.5, small):.2f} by the law",
            *map(cell, of_networks("small-users")),
        ],
    ],
)
for name, short in zip(NETWORKS, ("wide", "deep"), strict=True):
    row = {which: stored[f"{name}-{which}"]["mean"] for which in (*ROWS, "exact")}
    over = {which: 100 * (row[which] / row["exact"] - 1) for which in ROWS}
    sghmc, bound = over["SGHMC"], at_least(over["SGLD"])
    check(f"sghmc-{short}", sghmc, bound, kind="stored", digits=2)
    percent = {f"sgld-{short}": over["SGLD"]}
    for extra in ("", "small-"):
        run, right = (stored[f"{name}-{extra}{x}"] for x in ("users", "exact"))
        excess = run["mean"] - right["mean"]
        predicted = run["expected"] - right["mean"]
        percent[f"named-{extra}{short}"] = 100 * predicted / excess
    percent[f"small-{short}"] = 100 * excess / right["mean"]
    for what, number in percent.items():
        check(what, number, kind="stored", digits=len(f"{number:.0f}"))
    check(f"exact-{short}", right["mean"], kind="stored", digits=3)
check("deep-users", row["users"], at_least(2 * row["exact"]), kind="stored", digits=3)
print("Parts regression, reduced-rank-… and deep-linear-…, same day and machine.")

# %% [markdown]
# On the regression both settings of `choose` are right; SGHMC reports {c}`lawful`, with a standard error {c}`gain` times smaller.
# On the networks SGLD at the step of users reports more than twice the exact number ({c}`deep-users` on the deep one).
# There the law knows only the quadratic at $w^*$: it named {c}`named-wide` and {c}`named-deep` % of the excess, and with $m/\log m$ only {c}`named-small-wide` and {c}`named-small-deep` %. So use SGHMC on a quadratic only: on the networks it is farther off than SGLD ({c}`sghmc-wide` and {c}`sghmc-deep` %, against {c}`sgld-wide` and {c}`sgld-deep` %), presumably because it subtracts the noise at $w^*$.
#
# **A coefficient from SGLD at a step chosen by eye is partly a property of the step.**
#
# *One line for a user of devinterp:* `n_beta=default_nbeta(batch_size)`, or, to keep $n\beta = n/\log n$, `gradient_accumulation_steps=k` with $km \ge n\beta$; and in either case `num_init_loss_batches` of exactly one epoch, $\lfloor n/(km)\rfloor$. Then halve `lr` with twice the steps: does the number stay?
#
# ```{admonition} WAIC and the functional variance
# :class: dropdown
#
# Another quantity needs no $L(w^*)$ {cite:p}`watanabe2010`: the *functional variance* $\sum_i\operatorname{Var}_w\log p(x_i \mid w)$, the penalty of WAIC, has at $\beta = 1$ an expectation that tends to $2\nu$. This singular fluctuation $\nu$ is $\lambda$ in a regular model that fits.
# The same excess enters: in a regression, to first order, it is $n\sum_is_i^2v_i$, with the $v_i$ of {eq}`eq-coefficient`.
# ```
#
# **To remember:** a number that is read off a chain's width is as wrong as the width. On a quadratic $\tfrac12\eta p\,(1 + n\beta/m)$ says how much; on the networks it says too little.
#
# ## What this does not show
#
# * *A trained nonlinear network*, of which neither $\lambda$ nor an exact sample is known. Differences between checkpoints keep an excess that grows with the curvature.
# * *RMSProp-preconditioned SGLD*, which {cite:t}`hitchcock2025` find the most faithful: no formula here, and no run.
# * *Checkpoints in training* are no minima: chains descend from them.
#
# ## Change it
#
# * In the cell of the law set `d, n, m, gamma = 10, 10_000, 64, 1.0` to `d, n, m, gamma = 10, 10_000, 1_024, 1.0`: at one half the large $n\beta$ reports 5.8; the check `law-users` shows ✗.
# * In the cell of `choose` set `gradients=640_000` to `gradients=320_000`: the law promises an error 1.4 times as large. At a tenth it finds no setting.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-coefficient-step
#
# ★ *Choose a parameter.* $n\beta = 1{,}000$, minibatches of 50, curvatures of the loss up to 20, and a model that fits. Which `lr` of devinterp keeps the excess in the stiffest direction below 4 %?
# ```
#
# ```{solution} ex-coefficient-step
# :class: dropdown
#
# $p_{\max} = 20{,}000$ and $1 + n\beta/m = 21$, so $\eta = 2\cdot0.04/(20{,}000\cdot21) = 1.9\cdot10^{-7}$ and `lr` $= 2\eta = 3.8\cdot10^{-7}$. A direction of curvature 0.2 then takes $1/(\eta p) = 26{,}000$ steps.
# ```
#
# ````{exercise}
# :label: ex-coefficient-write
#
# ★★ **Write it yourself.** What does a chain report that has not arrived? Write the law for $t$ steps from $w^*$, all of them kept, and find why it can report *less* than an exact sampler.
#
# ```python
# def early(share, nbeta, steps):
#     ...
# ```
# ````
#
# ````{solution} ex-coefficient-write
# :class: dropdown
#
# ```python
# def early(share, nbeta, steps):
#     p, noise = nbeta * a + gamma, nbeta**2 * a / m
#     step_size = share / p.max()
#     v = (1 + step_size / 2 * noise) / (p * (1 - step_size / 2 * p))
#     t = torch.arange(steps)[:, None]
#     arrived = (1 - (1 - step_size * p) ** (2 * t)).mean(0)
#     return float(nbeta / 2 * (a * v * arrived).sum())
# ```
#
# At $\eta p_{\max} = 0.004$ and 10,000 steps the softest directions have hardly moved: 3.9, less than 5, although minibatch noise makes every direction too wide.
# ````


# %% tags=["hide-input"]
def early(share, nbeta, steps):
    p, noise = nbeta * a + gamma, nbeta**2 * a / m
    step_size = share / p.max()
    v = (1 + step_size / 2 * noise) / (p * (1 - step_size / 2 * p))
    t = torch.arange(steps)[:, None]
    arrived = (1 - (1 - step_size * p) ** (2 * t)).mean(0)
    return float(nbeta / 2 * (a * v * arrived).sum())


chain = langevin_chain(
    torch.diag(large * a + gamma),
    0.004 / float(large * a.max() + gamma),
    torch.diag(large**2 * a / m),
)
check(
    "early",
    early(0.004, large, 10_000) - reported(chain, large * a.diag(), 10_000)[0],
    near(0, 1e-9),
    kind="exact",
    says="The solution differs from `reported`, at 0.004 and 10,000 steps, by",
)

# %% [markdown]
# ```{exercise}
# :label: ex-coefficient-diagnose
#
# ★★ *Diagnose.* Four chains of devinterp with its defaults report 6.5, 6.6, 6.4 and 6.5, and four with another `init_seed` 7.9, 8.0, 7.8 and 7.9. All runs are long, and R̂ of the first four is 1.00. What has happened, and which lines change it?
# ```
#
# ```{solution} ex-coefficient-diagnose
# :class: dropdown
#
# The four share one shuffle: its 32 minibatches for $L(w^*)$, and a replayed path. `num_init_loss_batches` of exactly one epoch corrects the first, `match_sampling_input_ids_across_chains=False` gives each chain a path of its own, so that their spread shows the second.
# ```
#
# ## Further reading
#
# {cite:t}`watanabe2009` for the theory; {cite:t}`lau2025` for the local coefficient and its estimate; {cite:t}`aoyagi2005` and {cite:t}`aoyagi2024` for $\lambda$ of linear networks; {doc}`/book/further/price`.
