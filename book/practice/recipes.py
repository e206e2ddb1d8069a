# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Recipes: models
#
# ```{div} page-head
# Level: first course · Reading: about 23 minutes · Running: about 15 seconds
# ```
#
# ```{index} ! credible interval, ! credible intervals, ! quantiles
# ```
#
# A model is two functions of named parameters: the log prior, and the log likelihood of each example.
# The first cell goes from there to a verdict, and every recipe below changes a few of its lines.
#
# | you have | the recipe |
# | --- | --- |
# | a model in PyTorch, and data in memory | [from start to verdict](#from-start-to-verdict) |
# | a log density without data | [my log density](#my-log-density) |
# | a program in Pyro | [Pyro, and hierarchies centred or not](#a-pyro-program-and-a-hierarchy-centred-or-not) |
# | groups; counts with an offset | {ref}`a hierarchy of plain functions <my-groups>`, {ref}`counts <my-counts>` |
# | a model in NumPyro, PyMC or Stan | [keep it there](#a-model-in-numpyro-pymc-or-stan) |
# | a parameter with a border, or several that depend on each other | [constraints](#constraints-and-maps-of-your-own) |
# | discrete variables, or one for each example | [sum or integrate](#discrete-and-local-variables) |
# | noise that varies | [unknown noise](#unknown-noise) |
# | data on disk, or too many for full gradients | [minibatches](#pass-minibatches-to-a-sampler-from-memory-or-disk) |
# | samples | [predict](#predict-at-new-inputs), [loo](#compare-models-loo), [new data](#new-data-arrive), [save, resume, continue](#save-resume-or-continue-sampling) |
#
# A `torch.nn.Module` has {doc}`recipes of its own </book/practice/recipes_networks>`; {doc}`/book/practice/my_layer`, {doc}`/book/practice/my_targets` and {doc}`/book/practice/my_model` have blocks to copy, from LSTM to groups.
# {doc}`/book/practice/what_should_i_use` says which method suits you.

# %% tags=["hide-input"]
from booklib.page.claims import at_most, check, near
from booklib.page.play import play

play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## From start to verdict
#
# A regression with an unknown noise $s$: $y_i \sim N(a + x_i^\top b, s^2)$.
# The functions are written for one set of parameters; constraints come by `supports`, and no Jacobian is to be added.
# The likelihood has one number for each example, neither their sum nor their mean: of a minibatch of $n$ of $N$ examples it is multiplied by $N/n$, and the prior is not, which is why there are two functions.
# Standardise the columns of your inputs first.

# %%
import arviz
import torch
from torch.distributions import Binomial, HalfNormal, Normal, StudentT, constraints

from sgmc import NUTS, NamedPosterior, sample
from sgmc.tuning import adapt

torch.set_default_dtype(torch.float64)
generator = torch.Generator().manual_seed(0)
x = torch.randn(500, 2, generator=generator)  # yours
y = 1 + x @ torch.tensor([2.0, -1.0]) + 0.5 * torch.randn(500, generator=generator)


def log_prior(p):  # counts once
    coefficients = torch.cat([p["a"][None], p["b"]])
    return Normal(0, 5).log_prob(coefficients).sum() + HalfNormal(2).log_prob(p["s"])


def log_likelihood(p, x, y):  # one number for each example
    return Normal(p["a"] + x @ p["b"], p["s"]).log_prob(y)


def nuts(posterior, start, num_samples=25):
    kernel, place = adapt(NUTS(0.1), posterior, start, 40)
    return sample(kernel, posterior, place, num_samples)


model = {"a": (), "b": (2,), "s": ()}, log_prior, log_likelihood
supports = {"s": constraints.positive}
posterior = NamedPosterior(*model, (x, y), supports)
start = posterior.initial_position(10, generator, radius=0.5)
draws = nuts(posterior, start, 200)
table = arviz.summary(draws.to_arviz(posterior=posterior), round_to="none")
print(table[["mean", "sd"]].round(2))
print("R̂ and sample size:", table.r_hat.max() <= 1.01, table.ess_bulk.min() > 400)

# %% tags=["hide-input"]
design = torch.cat([torch.ones(500, 1), x], 1)
best = torch.linalg.solve(design.T @ design, design.T @ y)
p = posterior.named(draws.samples.flatten(0, 1))
mine = torch.cat([p["a"][:, None], p["b"]], 1).mean(0)
check(
    "least-squares",
    (mine - best).abs().max(),
    at_most(0.008),
    because="the prior is wide; the errors of 2,000 samples are 0.0005",
    says="From start to verdict: means less those of least squares",
)

# %% [markdown]
# The verdict is the last line: $\hat R$ is at most 1.01, so that all chains together are at most one per cent wider than each of them, and the effective sample size is above 400.
# If one is False, take more samples; if that does not help, see {ref}`chains-disagree`.
# NUTS needs no half step: look at $\hat R$, the sample size and {doc}`divergences </book/practice/tuning_hmc>`. None of them sees a mode that all chains miss, or a slip in the density ({doc}`/book/practice/tuning`).
# The functions run for all chains at once, by `torch.func.vmap`: no random numbers in them, and `torch.where` in place of `if`.
# A support must not be wider than the prior: $U(0, 0.4)$ wants `constraints.interval(0, 0.4)`, because a sampler that sees only gradients does not notice that it has left.
#
# (my-log-density)=
# ## My log density
#
# Without data, or with a density that somebody else wrote, an energy is enough: minus the log density, up to a constant.
# Here the chance that an insect dies depends on the dose, and what is wanted is that chance at the dose 1.5, with a credible interval.

# %%
from sgmc.potentials import Potential

dose = torch.linspace(-3, 3, 7)
killed = torch.tensor([1.0, 2.0, 4.0, 9.0, 16.0, 18.0, 20.0])  # of 20 each


def log_density(theta):  # yours, of one vector
    chance = Binomial(20, logits=theta[0] + theta[1] * dose, validate_args=False)
    return chance.log_prob(killed).sum() + Normal(0, 3).log_prob(theta).sum()


class Mine(Potential):
    dim = 2

    def energy(self, position):  # (chains, 2)
        return -torch.func.vmap(log_density)(position)


theta = nuts(Mine(), torch.randn(20, 2, generator=generator)).samples
at_dose = torch.sigmoid(theta[..., 0] + 1.5 * theta[..., 1])
low, high = at_dose.quantile(torch.tensor([0.05, 0.95]))
print(f"chance {at_dose.mean():.2f}, in {low:.2f} to {high:.2f} with probability 90 %")

# %% tags=["hide-input"]
axis = torch.linspace(-4.0, 5.0, 301)
grid = torch.cartesian_prod(axis, axis)
weights = torch.softmax(-Mine().energy(grid), 0)
exact = (weights * torch.sigmoid(grid[:, 0] + 1.5 * grid[:, 1])).sum()
error = at_dose.mean(0).std() / 20**0.5
check(
    "dose",
    at_dose.mean(),
    near(exact),
    error=error,
    because="the sum over a grid",
    says="My log density: the chance at the dose 1.5",
)

# %% [markdown]
# (my-pyro-program)=
# ## A Pyro program, and a hierarchy, centred or not
#
# ```{index} ! Pyro, ! funnel, ! non-centred
# ```
#
# A program without minibatches goes to NUTS as it is, and samples come back under the names of its sites.
# These are the eight schools: effects that are alike, but not equal.
# Written as `theta ~ Normal(mean, spread)`, *centred*, they make a funnel: where the spread is small all effects must lie close together, and no step size suits both ends.
# So give the deviations $N(0, 1)$ and compute the effects, *non-centred*.
# Groups with hundreds of examples each are better centred.

# %%
import pyro
import pyro.distributions as dist

from sgmc.models.pyro_model import PyroPosterior

effect = torch.tensor([28.0, 8, -3, 7, -1, 1, 18, 12])  # yours
error = torch.tensor([15.0, 10, 16, 11, 9, 11, 10, 18])


def schools():
    mean = pyro.sample("mean", dist.Normal(0, 5))
    spread = pyro.sample("spread", dist.HalfCauchy(5))
    with pyro.plate("schools", 8):
        # centred: theta = pyro.sample("theta", dist.Normal(mean, spread))
        deviation = pyro.sample("deviation", dist.Normal(0, 1))
        theta = pyro.deterministic("theta", mean + spread * deviation)
        pyro.sample("effect", dist.Normal(theta, error), obs=effect)


program = PyroPosterior(schools)
kernel, place = adapt(
    NUTS(0.1), program, program.initial_position(20, generator, 0.5), 40
)
schools_draws = sample(kernel, program, place, 40, collect=program.named)
mean, error_of_it = schools_draws.mean_and_standard_error(lambda s: s["mean"])
print(f"mean effect: {mean:.1f}, Monte Carlo error below 0.5: {error_of_it < 0.5}")

# %% tags=["hide-input"]
check(
    "schools",
    mean,
    near(4.4),
    error=error_of_it,
    because="the reference posterior of Stan's users has 4.4",
    says="The mean effect of the eight schools",
)

# %% [markdown]
# With `pyro.plate("data", N, subsample_size=n) as i` the program sees minibatches, and takes SGHMC: `kernel, place = tune(program, find_mode(program, start))`, as for [minibatches](#pass-minibatches-to-a-sampler-from-memory-or-disk). What is in the plate and observed is scaled by $N/n$, and the rest counts once.
# Weights are drawn before the plate, a `pyro.param` has no prior and is rejected, and so is a site for each example of a minibatch.
#
# ## A model in NumPyro, PyMC or Stan
#
# ```{index} ! NumPyro, ! PyMC, ! Stan
# ```
#
# While the data fit into memory, stay where you are: their NUTS is as right as ours ({doc}`/book/practice/step_cost` has the times).
#
# ````{admonition} The first cell in NumPyro
# :class: dropdown
#
# ```{code-block} python
# :name: block-numpyro-density
#
# import jax
# import numpy as np
# import numpyro
# import numpyro.distributions as dist
# from numpyro.infer import MCMC, NUTS
# from numpyro.infer.util import log_density
#
#
# def regression(x, y):
#     a = numpyro.sample("a", dist.Normal(0, 5))
#     b = numpyro.sample("b", dist.Normal(0, 5).expand([2]).to_event(1))
#     s = numpyro.sample("s", dist.HalfNormal(2))
#     with numpyro.plate("data", len(y)):
#         numpyro.sample("y", dist.Normal(a + x @ b, s), obs=y)
#
#
# random = np.random.default_rng(0)
# x = random.normal(size=(500, 2))
# y = 1 + x @ [2.0, -1.0] + 0.5 * random.normal(size=500)  # yours
# run = MCMC(NUTS(regression), num_warmup=300, num_samples=500, progress_bar=False)
# run.run(jax.random.key(0), x, y)
# run.print_summary()
# place = {"a": 1.0, "b": np.array([2.0, -1.0]), "s": 0.5}
# print(log_density(regression, (x, y), {}, place)[0])
# ```
# ````
#
# For minibatches rewrite the model as the two functions above: each latent `sample` is a term of `log_prior`, what stands in the data's plate with `obs=` is `log_likelihood`, and its constraint goes to `supports`.
# Then compare at one point: `log_density` of NumPyro, or `model.compile_logp(jacobian=False)` of PyMC, must be the sum of the two functions.
# NumPyro's block prints {c}`numpyro`, and the functions of the first cell differ from it by {c}`same`, in single precision.

# %% tags=["hide-input"]
import numpy as np

from booklib.runs.results import RESULTS, read_result

printed = read_result(RESULTS / "blocks.json")["blocks"]["block-numpyro-density"]
theirs = float(printed["output"][-1])
random = np.random.default_rng(0)
inputs = random.normal(size=(500, 2))
seen = 1 + inputs @ [2.0, -1.0] + 0.5 * random.normal(size=500)
point = {
    "a": torch.tensor(1.0),
    "b": torch.tensor([2.0, -1.0]),
    "s": torch.tensor(0.5),
}
likelihood = log_likelihood(point, torch.tensor(inputs), torch.tensor(seen)).sum()
check("numpyro", theirs, kind="stored")
check(
    "same",
    (log_prior(point) + likelihood - theirs).abs(),
    at_most(0.01),
    kind="stored",
    digits=1,
    because="it is about 400, in seven digits",
)

# %% [markdown]
# ## Constraints, and maps of your own
#
# | parameter | how to write it |
# | --- | --- |
# | $s > 0$; $0 < w < 1$; $a < w < b$ | `constraints.positive`; `unit_interval`; `interval(a, b)` |
# | shares with the sum 1 | `constraints.simplex` |
# | a covariance | scales, `positive`, times a `corr_cholesky` |
# | ordered, $c_1 < c_2 < \dots$ | `first`, and `gaps`, positive: `p["first"] + p["gaps"].cumsum(0)` |
# | $0 <$ low $<$ high | `share`, in `unit_interval`: `low = p["share"] * p["high"]` |
#
# A map of your own is a line in the functions, $\phi = g(x)$, with $x$ as the parameter.
# If the prior is one on $x$, that is all; if it is one on $\phi$, add $\log\lvert g'(x)\rvert$ to it ({prf:ref}`lem-reference-jacobian`).
#
# ## Discrete and local variables
#
# ```{index} ! discrete, ! mixture, ! latent variable
# ```
#
# Gradients do not move a discrete variable: sum over its values, by `torch.logsumexp`, as {ref}`this mixture <my-mixture>` does.
# Which value an example has follows afterwards, from its terms at each sample.
#
# A *local* variable, one for each example, has no minibatch form: a minibatch moves all of them and knows of a few.
# Integrate it out: $y_i \sim N(\theta_i, 1)$ with $\theta_i \sim N(\mu, s^2)$ is $y_i \sim N(\mu, 1 + s^2)$, and given $\mu$ and $s$ each $\theta_i$ that you want is $N\bigl((y_i s^2 + \mu)/(1 + s^2),\ s^2/(1 + s^2)\bigr)$.
# Where no formula does it, take all the data and NUTS.
#
# ## Unknown noise
#
# A constant noise is a parameter, such as `s` in the first cell.
# Noise that depends on the input is a second output of the model, its logarithm: {ref}`the lines <my-varying-noise>`.
#
# (my-data-on-disk)=
# ## Pass minibatches to a sampler, from memory or disk
#
# ```{index} ! memmap, ! memory-mapped file, ! DataLoader, ! data on disk, ! batch size
# ```
#
# Data in memory need only `batch_size`.
# `to_disk` writes what a `DataLoader` yields once, and from then on only the examples of a minibatch are read; `from_disk(folder)` opens it again.
# It rejects a weighted sampler and augmentation, because each example must come once.
# Your own NumPy file needs no copy: {ref}`the lines <my-numpy-file>`.
# `tune` chooses step, friction and noise estimate; give it all the data, because curvature and noise grow with their number.

# %%
import tempfile

from torch.utils.data import DataLoader, TensorDataset

from sgmc.disk import to_disk
from sgmc.tuning import find_mode, half_step, tune

folder = tempfile.TemporaryDirectory()
loader = DataLoader(TensorDataset(x, y), batch_size=100)  # yours
data = to_disk(loader, folder.name)
minibatches = NamedPosterior(*model, data, supports, batch_size=100)
mode = find_mode(minibatches, minibatches.initial_position(1, generator))
kernel, place = tune(minibatches, mode)
calm = sample(kernel, minibatches, place, 50, warm_up=10)
print(half_step(kernel, minibatches, place, 25, warm_up=5).verdict.split(":")[0])

# %% tags=["hide-input"]
ratio = calm.samples.flatten(0, 1).std(0) / draws.samples.flatten(0, 1).std(0)
check(
    "widths",
    100 * (ratio - 1).abs().max(),
    at_most(15),
    digits=1,
    because="errors of 2 % each",
)

# %% [markdown]
# SGHMC has no correction step, so its check is half the step: printed whole, it says which change of a standard deviation 25 samples would show, about 30 %. Here its standard deviations differ from those of NUTS by at most {c}`widths` per cent.
# From $10^5$ rows on `control_variates(minibatches, mode[0])` (`sgmc.models`) makes the gradients less noisy ({doc}`/book/practice/step_cost`).
#
# ## NUTS and HMC: no minibatches, no fixed subsample
#
# HMC and NUTS correct by the energy, which another minibatch changes; a subsample that stays fixed has a posterior of its own, by the factor $N/n$ as narrow as the right one, but with a centre that is typically off by $\sqrt{N/n - 1}$ standard deviations, 3 at $N/n = 10$. So they take all the data, and of a Pyro program `program.full()`.
#
# ## Predict at new inputs
#
# ```{index} ! predict, ! predictions, ! posterior predictive
# ```
#
# Each sample predicts, and the quantiles over the samples are the interval: of the mean without the noise, of a new measurement with it.

# %%
new = torch.tensor([[0.5, 0.5], [2.0, 0.0]])
p = posterior.named(draws.samples.flatten(0, 1))
mean = p["a"][:, None] + p["b"] @ new.T  # (samples, inputs)
measured = mean + p["s"][:, None] * torch.randn(mean.shape, generator=generator)
print(mean.mean(0).round(decimals=2).tolist())
print(measured.quantile(torch.tensor([0.05, 0.95]), 0).round(decimals=1).tolist())

# %% [markdown]
# For ArviZ's posterior predictive checks give `to_arviz` a function of positions: `predictive={"y": lambda position: ...}`.
#
# ## Compare models: loo
#
# ```{index} ! loo, ! model comparison, ! ArviZ
# ```
#
# `to_arviz(posterior=...)` stores the log likelihood of every example, with its constants and never scaled by $N/n$, as ArviZ 0.23 and 1.x both want it.
# Sample without `collect` for it; a Pyro program needs a plate with `subsample_size`, or counts as one example.
# Names of dimensions are `to_arviz(dims={"b": ["column"]}, coords={"column": ["age", "dose"]})`.


# %%
def heavy_tails(p, x, y):
    return StudentT(3, p["a"] + x @ p["b"], p["s"]).log_prob(y)


other = NamedPosterior(*model[:2], heavy_tails, (x, y), supports)
runs = {"normal": (draws, posterior), "heavy tails": (nuts(other, start), other)}
data_of = {name: run.to_arviz(posterior=of) for name, (run, of) in runs.items()}
print(arviz.compare(data_of)[["rank", "elpd_diff", "dse"]].round(0))

# %% [markdown]
# The best model comes first. `elpd_diff` is by how many nats, summed over the examples, another would predict new data worse, whatever its sign, and `dse` is the standard error of this difference: below 4, or below twice its `dse`, it decides nothing.
#
# ## New data arrive
#
# Sample again with all the data, from where the chains are: that takes a short warm-up.
# A kernel that `tune` made belongs to its number of examples, so tune again at the last samples: `tune(posterior_of_all, draws.samples[-1])`.
# To use the old posterior as a prior, as a Gaussian with its mean and covariance, is right only as far as it is one.
#
# (save-samples-and-go-on)=
# ## Save, resume, or continue sampling
#
# ```{index} ! save samples, ! saving samples, ! load samples, ! checkpoint, ! checkpoints, ! resume a run
# ```
#
# With a `Checkpoint` a run is saved every half minute and when it stops, by Ctrl-C or by a signal.
# The same call goes on from there, bit for bit, and with a larger `num_samples` beyond the end.
# A file of another kernel, posterior, seed or start is rejected.

# %%
from sgmc import Draws
from sgmc.checkpoints import Checkpoint

saved = Checkpoint(f"{folder.name}/run.pt")
first = sample(kernel, minibatches, place, 20, checkpoint=saved)
longer = sample(kernel, minibatches, place, 40, checkpoint=saved)  # 20 more
longer.save(f"{folder.name}/samples.pt")
again = Draws.load(f"{folder.name}/samples.pt")
print(again.samples.shape)

# %% tags=["hide-input"]
check(
    "longer",
    (again.samples - sample(kernel, minibatches, place, 40).samples).abs().max(),
    near(0, 0),
    kind="exact",
    because="the same random numbers",
    says="Largest difference between 20 and 20 more samples and 40 at once",
)
folder.cleanup()

# %% [markdown]
# A file of `Draws` holds samples, statistics, kernel and seed; reading it runs no code. `Draws.pool` joins the chains of runs with different seeds.
# Samples that fill the memory are thinned while they are drawn, `thinning=10`, or only what you need of them is kept: `collect=lambda position: ...`, such as predictions.
#
# ## Further reading
#
# {cite:t}`vehtari2021` say what $\hat R$ and the effective sample size see and what they miss; {cite:t}`papaspiliopoulos2007` say when to centre; {cite:t}`bingham2019` describe Pyro; and {cite:t}`talts2018` test a whole way from data to samples.
