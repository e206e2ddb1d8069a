# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # My model is …
#
# ```{div} page-head
# Level: first course · Reading: about 13 minutes · Running: about 25 seconds
# ```
#
# Ten to thirty lines for each of the models that people bring first: copy the first cell, then the block that is yours.
# {doc}`/book/practice/my_targets` has classes, numbers, counts and times, {doc}`/book/practice/my_layer` layers and inputs.
#
# | my model is | its block |
# | --- | --- |
# | sparse: of many coefficients few matter | [a horseshoe prior](#horseshoe-prior-for-sparse-regression) |
# | a time series | [an autoregression](#time-series-and-autoregression) |
# | of groups | [a hierarchy](#groups-a-hierarchy) |
# | of groups that have slopes | [a covariance of groups](#my-correlated-slopes) |
# | of unseen groups | [a mixture](#mixture-groups-that-nobody-saw) |
#
# The data are made up and tiny, so that every block runs in seconds on a CPU.
# The runs of `nuts` are short, and print only whether $\hat R$ is below 1.1; for a result raise the steps of `adapt` to some hundreds, and `num_samples` until $\hat R$ is at most 1.01.
# {doc}`/book/practice/tuning` says how to check a run.

# %% tags=["hide-input"]
from booklib.page.claims import at_least, at_most, check, near
from booklib.page.play import play

play()  # a claim that fails now shows ✗, and the page goes on

# %%
import torch
from torch.distributions import HalfNormal, Normal, constraints

from sgmc import NUTS, NamedPosterior, sample
from sgmc.diagnostics import split_r_hat
from sgmc.tuning import adapt

torch.set_default_dtype(torch.float64)  # double precision: no rounding to think of
generator = torch.Generator().manual_seed(0)


def nuts(posterior, num_samples=60):
    start = posterior.initial_position(10, generator, 0.5)
    kernel, start = adapt(NUTS(0.1), posterior, start, 80, progress=False)
    draws = sample(kernel, posterior, start, num_samples, progress=False)
    print("R̂ below 1.1:", bool(split_r_hat(draws.samples).max() < 1.1))
    return draws


# %% [markdown]
# ## Horseshoe prior for sparse regression
#
# Few of many coefficients matter: each gets a scale of its own with heavy tails, $b_j = z_j\lambda_j\tau$, written non-centred, with $z_j \sim N(0, 1)$.
# The horseshoe proper has half-Cauchy scales, `StudentT(1)`; three degrees of freedom have lighter tails and are easier to sample.
# Its funnels need NUTS with a small step, `target_acceptance=0.95`, all the data, and patience; minibatch methods do badly.
# The last lines are comments, because the run takes minutes, here as in NumPyro ({doc}`/book/practice/step_cost`); look at its divergences and R̂.

# %%
from torch.distributions import StudentT

x = torch.randn(60, 6, generator=generator)
y = 2 * x[:, 0] + torch.randn(60, generator=generator)  # yours: one of six matters


def log_prior(p):
    scales = StudentT(3).log_prob(p["local"]).sum() + StudentT(3).log_prob(p["all"])
    return Normal(0, 1).log_prob(p["z"]).sum() + scales  # half-t: up to a constant


def log_likelihood(p, x, y):
    return Normal(x @ (p["z"] * p["local"] * p["all"]), 1.0).log_prob(y)


shapes = {"z": (6,), "local": (6,), "all": ()}
supports = {"local": constraints.positive, "all": constraints.positive}
sparse = NamedPosterior(shapes, log_prior, log_likelihood, (x, y), supports)
start = sparse.initial_position(20, generator, radius=0.5)
print("finite energies:", bool(sparse.energy(start).isfinite().all()))
# kernel, start = adapt(NUTS(0.1), sparse, start, 500, target_acceptance=0.95)
# p = sparse.named(sample(kernel, sparse, start, 1_000).samples.flatten(0, 1))
# b = (p["z"] * p["local"] * p["all"][:, None]).mean(0)

# %% [markdown]
# ## Time series and autoregression
#
# A likelihood that looks at the row before, `y[:-1]`, is rejected with minibatches, whose rows are in no order.
# Give the lag as a column: then each row is an example of its own, and minibatches work.
# A state-space model with hidden states is one example: run a Kalman filter in the likelihood, or make the innovations $N(0, 1)$ parameters, and take all the data.

# %%
y = [torch.zeros(())]
for shock in torch.randn(300, generator=generator):
    y.append(0.8 * y[-1] + shock)
y = torch.stack(y)  # yours
now, before = y[1:], y[:-1]


def log_prior(p):
    return HalfNormal(2).log_prob(p["s"])  # phi: uniform on (-1, 1)


def log_likelihood(p, now, before):
    return Normal(p["phi"] * before, p["s"]).log_prob(now)


supports = {"phi": constraints.interval(-1, 1), "s": constraints.positive}
shapes, data = {"phi": (), "s": ()}, (now, before)
autoregression = NamedPosterior(shapes, log_prior, log_likelihood, data, supports)
phi = autoregression.named(nuts(autoregression).samples.flatten(0, 1))["phi"]
least_squares = now @ before / (before @ before)
print(f"phi: {phi.mean():.1f}, least squares: {least_squares:.1f}, true: 0.8")

# %% tags=["hide-input"]
# on a grid of both parameters
grid = torch.linspace(0.5, 0.999, 2_000)
scale = torch.linspace(0.7, 1.4, 400)
residuals = (now[None] - grid[:, None] * before[None]).square().sum(1)
density = (
    -len(now) * scale.log() - residuals[:, None] / (2 * scale**2) - scale.square() / 8
).flatten()
weights = (density - density.max()).exp().view(2_000, 400).sum(1)
exact = (grid * weights).sum() / weights.sum()
check(
    "phi",
    phi.mean() - exact,
    near(0, 0.015),
    because="a sum over a grid; the standard deviation is 0.04, of 600 samples",
    says="Time series: the mean of phi, less the exact one",
)

# %% [markdown]
# (my-groups)=
# ## Groups: a hierarchy
#
# ```{index} ! hierarchical model, ! random effects, ! mixed effects, ! multilevel model, ! groups
# ```
#
# Each group has its own mean, and the means are alike. Write them *non-centred*, as deviations $z_j \sim N(0, 1)$, and give each row the number of its group; that takes minibatches, too.
# The mean of a group then lies between the average of its rows and $\mu$.
# With hundreds of rows a group the *centred* form is better: $N(\mu, \tau^2)$ as the prior of `p["effect"]`, and `p["effect"][group]` as the mean.

# %%
group = torch.arange(36) % 12  # yours: 0, 1, ... of each row
y = 1 + torch.linspace(-1, 1, 12)[group] + torch.randn(36, generator=generator)


def log_prior(p):
    top = Normal(0, 3).log_prob(p["mu"]) + HalfNormal(2).log_prob(p["tau"])
    return top + Normal(0, 1).log_prob(p["z"]).sum()


def log_likelihood(p, group, y):
    effect = p["mu"] + p["tau"] * p["z"]  # of each group
    return Normal(effect[group], 1.0).log_prob(y)


shapes, supports = {"mu": (), "tau": (), "z": (12,)}, {"tau": constraints.positive}
groups = NamedPosterior(shapes, log_prior, log_likelihood, (group, y), supports)
p = groups.named(nuts(groups, 100).samples.flatten(0, 1))
effect = (p["mu"][:, None] + p["tau"][:, None] * p["z"]).mean(0)
rows = y[group == 0].mean()
print("group 0 between its rows and all rows:", bool(rows < effect[0] < y.mean()))

# %% tags=["hide-input"]
tau = torch.linspace(0.01, 3, 600)
width = tau**2 + 1 / 3  # variance of a group's average of three rows, given μ and τ
sums = torch.stack([y[group == j].mean() for j in range(12)])
precision = 12 / width + 1 / 9  # of μ, with its prior N(0, 3²)
centre = sums.sum() / width / precision
log_density = HalfNormal(2).log_prob(tau) - 6 * width.log() - precision.log() / 2
log_density += (centre**2 * precision - sums.square().sum() / width) / 2
weights = torch.softmax(log_density, 0)
check(
    "spread",
    (p["tau"].mean() - weights @ tau) / p["tau"].std(),
    near(0, 0.25),
    because="a sum over a grid, and 1,000 samples",
    says="Groups: the mean spread less the exact one, in standard deviations",
)

# %% [markdown]
# (my-correlated-slopes)=
# ## Correlated random slopes: a covariance of groups
#
# ```{index} ! random slopes, ! varying slopes, ! correlated random effects, ! LKJ prior
# ```
#
# Each group has an intercept and a slope, $\beta_j \sim N(\mu, \Sigma)$. The covariance $\Sigma$ has the Cholesky factor $\operatorname{diag}(\tau)L$: spreads $\tau$, and $L$ of the correlation, with the prior LKJ(2).
# With few rows a group make $z_j \sim N(0, 1)$ the parameters instead, and $\beta_j = \mu + \operatorname{diag}(\tau)Lz_j$.

# %%
from torch.distributions import LKJCholesky, MultivariateNormal

group, x = torch.arange(300) % 20, torch.randn(300, generator=generator)  # yours
deviations = 1.5 * torch.randn(20, 2, generator=generator)
deviations[:, 1] = 0.7 * deviations[:, 0] + 0.8 * deviations[:, 1]
noise = torch.randn(300, generator=generator)
y = 1 + deviations[group, 0] + (2 + deviations[group, 1]) * x + noise


def log_prior(p):
    root = p["tau"][:, None] * p["L"]
    effects = MultivariateNormal(p["mu"], scale_tril=root).log_prob(p["beta"]).sum()
    top = Normal(0, 3).log_prob(p["mu"]).sum() + HalfNormal(2).log_prob(p["tau"]).sum()
    return effects + top + LKJCholesky(2, 2.0).log_prob(p["L"])


def log_likelihood(p, group, x, y):
    level, slope = p["beta"][group].unbind(1)
    return Normal(level + slope * x, 1.0).log_prob(y)


shapes = {"mu": (2,), "tau": (2,), "L": (2, 2), "beta": (20, 2)}
supports = {"tau": constraints.positive, "L": constraints.corr_cholesky}
varying = NamedPosterior(shapes, log_prior, log_likelihood, (group, x, y), supports)
p = varying.named(nuts(varying).samples.flatten(0, 1))
correlation = p["L"][:, 1, 0]
positive = (correlation > 0).double().mean()
print("correlation positive with probability above 0.95:", bool(positive > 0.95))

# %% tags=["hide-input"]
sides = torch.linspace(0.7, 4.0, 46), torch.linspace(0.7, 4.0, 46)
tau0, tau1, rho = torch.cartesian_prod(*sides, torch.linspace(-0.5, 0.99, 65)).T
off = tau0 * tau1 * rho
between = torch.stack([tau0**2, off, off, tau1**2], 1).view(-1, 2, 2)
precision, pull, log_density = torch.eye(2) / 9, 0.0, (1 - rho**2).log()  # LKJ(2)
log_density = log_density - (tau0**2 + tau1**2) / 8  # half-normal priors
for j in range(20):  # given τ and ρ the least squares of a group are Gaussian
    design = torch.stack([torch.ones(15), x[group == j]], 1)
    squares = design.T @ design
    best = torch.linalg.solve(squares, design.T @ y[group == j])
    inverse = torch.linalg.inv(between + torch.linalg.inv(squares))
    precision, pull = precision + inverse, pull + inverse @ best
    log_density = log_density + (inverse.logdet() - best @ (inverse @ best).T) / 2
mu = torch.linalg.solve(precision, pull)
log_density = log_density + ((pull * mu).sum(1) - precision.logdet()) / 2
weights = torch.softmax(log_density, 0)
exact = weights @ torch.cat([mu, torch.stack([tau0, tau1, rho], 1)], 1)
mine = torch.cat([p["mu"], p["tau"], correlation[:, None]], 1)
check(
    "correlated-slopes",
    ((mine.mean(0) - exact) / mine.std(0)).abs().max(),
    at_most(0.3),
    because="a sum over a grid, the rest in closed form, and 600 samples",
    says="Correlated slopes: means less exact ones, in standard deviations",
)
check(
    "positive",
    positive,
    at_least(0.95),
    because="the correlation is about 0.6, and its standard deviation 0.15",
    says="Correlated slopes: probability of a positive correlation",
)

# %% [markdown]
# (my-mixture)=
# ## Mixture: groups that nobody saw
#
# Each example belongs to one of two groups, a discrete variable, over which the likelihood sums; an ordered pair of means keeps the names of the groups apart.

# %%
y = torch.randn(200, generator=generator) + 2  # yours
y[:60] -= 4


def log_prior(p):
    return Normal(0, 5).log_prob(p["low"]) + HalfNormal(5).log_prob(p["gap"])


def log_likelihood(p, y):
    means = torch.stack([p["low"], p["low"] + p["gap"]])[:, None]
    shares = torch.stack([p["share"], 1 - p["share"]])[:, None]
    return torch.logsumexp(shares.log() + Normal(means, 1.0).log_prob(y), 0)


supports = {"gap": constraints.positive, "share": constraints.unit_interval}
shapes = {"low": (), "gap": (), "share": ()}
mixture = NamedPosterior(shapes, log_prior, log_likelihood, (y,), supports)
share = mixture.named(nuts(mixture).samples.flatten(0, 1))["share"]
print(f"share of the low group: {share.mean():.1f}")

# %% tags=["hide-input"]
check(
    "mixture",
    share.mean(),
    near(0.3, 0.15),
    because="60 of 200, within five standard deviations of 0.03",
    says="Mixture: share of the low group",
)
