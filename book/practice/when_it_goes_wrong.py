# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # When it goes wrong
#
# ```{div} page-head
# Level: first course · Reading: about 25 minutes · Running: about 20 seconds
# ```
#
# Each section says why, which line to change, and how to check that it helped.
# A warning ends in the label of its section; errors say their remedy themselves ({doc}`/book/appendix/messages`).
#
# | you see | most often because | section |
# | --- | --- | --- |
# | all samples predict the same | the temperature is 1/N, or samples follow too closely | [all-alike](#all-alike) |
# | samples are too wide, a temperature above 1 | the gradient noise exceeds the friction | [too-wide](#too-wide) |
# | samples are too narrow, error bars too small | the chains have not arrived, or noise is subtracted twice | [too-narrow](#too-narrow) |
# | R̂ is large, few effective samples | modes, or too short a run | [chains-disagree](#chains-disagree) |
# | a sampled network is worse than a trained one | it has not arrived | [bad-error](#bad-error) |
# | the loss rises once sampling begins | it should | [loss-rises](#loss-rises) |
# | labels of a mixture switch | the posterior is symmetric | [labels-switch](#labels-switch) |
# | NaN, infinity, `DivergenceError` | the step is too long | [diverges](#diverges) |
# | samples beyond the support | a parameter with a border has no support | [outside](#outside) |
# | a chain never moves, acceptance near 0 | the step is too long for a rejection step | [never-moves](#never-moves) |
# | divergences of NUTS | a funnel | [divergences](#divergences) |
# | NUTS or tuning is slow | too short a step, an unscaled model | [slow](#slow) |
# | underconfident, the calibration error grows | the learning rate, or the prior | [underconfident](#underconfident) |
# | predictions of the prior are wild | one variance for all layers | [which-prior](#which-prior) |
# | results depend on N or on the batch size | the mean of the loss, not its sum | [sum-or-mean](#sum-or-mean) |
# | out of memory | every sample of every weight is kept | [memory](#memory) |
# | `tune` finds no mode, curvature is flat | the start, or columns in other units | [no-mode](#no-mode) |
# | a layer, `if` or LSTM is slow | `vmap` cannot run it | [vmap](#vmap) |
# | dtype, device, float32 | data and start differ | [dtype](#dtype) |
# | `loo` or `compare` fails | no pointwise likelihood | [loo](#loo) |
# | KeyboardInterrupt, a time limit | | [interrupted](#interrupted) |
# | a checkpoint does not resume | something changed | [resuming](#resuming) |
# | a learning coefficient is negative | the start was no minimum | [learning-coefficient](#learning-coefficient) |
#
# All happens to one regression; `run` samples and prints the labels of warnings.

# %%
import re
import warnings

import torch

import sgmc
from sgmc import HMC, NUTS, SGHMC, NamedPosterior, tune
from sgmc.posteriors import LinearRegression
from sgmc.tuning import adapt, find_mode

generator = torch.Generator().manual_seed(0)
x = torch.randn(1000, 3, generator=generator)
y = x @ torch.tensor([1.0, -1.0, 0.5]) + torch.randn(1000, generator=generator)
regression = LinearRegression(x, y, batch_size=10)
start = torch.zeros(20, 3)


def run(*arguments, **settings):
    with warnings.catch_warnings(record=True, action="always") as said:
        draws = sgmc.sample(*arguments, **settings)
    text = " ".join(str(each.message) for each in said)
    print(re.findall(r"\[([a-z-]+): see", text) or "no warning")
    return draws


def width(draws):  # measured in exact standard deviations
    exact = torch.linalg.inv(x.mT @ x + torch.eye(3)).diagonal().sqrt()
    return float((draws.samples.std((0, 1)) / exact).mean())


# %% tags=["hide-input"]
from booklib.page.claims import at_least, check, near
from booklib.page.play import play

play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# (too-wide)=
# ## The samples are too wide
#
# ```{index} ! samples too wide, ! temperature too high
# ```
#
# * *Why.* The minibatches' gradients bring noise: the temperature is $1 + (\tfrac12\varepsilon V - \hat B)/C$. At $\tfrac12\varepsilon V = C$, with nothing subtracted, it is doubled.
#   Or the step is near its stability limit, one minibatch is held for several steps, or a cycle of step sizes has not ended. If the mean in the warning, 1 for a right chain, is in the hundreds, the learning rate was not divided by $N$.
# * *The line.* Let `tune` choose; by hand, take half the step, a larger batch, or more friction with `noise_estimate=OnlineNoise()` (`from sgmc.noise import OnlineNoise`).
# * *Check.* Half the step must not change the answer (`from sgmc.tuning import half_step`, `half_step(kernel, regression, begin, 100).verdict`).

# %%
wide = run(SGHMC(step_size=0.01, friction=50.0), regression, start, 200, warm_up=100)
print(width(wide) > 2)

mode = find_mode(regression, start[:1])
kernel, begin = tune(regression, mode)
right = run(kernel, regression, begin, 40, warm_up=5)
print(width(right) < 1.1)

# %% tags=["hide-input"]
check("too-wide", width(wide), at_least(2.0))
check("tuned-width", width(right), near(1.0, 0.1))

# %% [markdown]
# They are {c}`too-wide` and {c}`tuned-width` times as wide as the posterior.
#
# (all-alike)=
# ## All samples predict the same: no variability
#
# ```{index} ! all samples predict the same, ! no variability, ! cold posterior
# ```
#
# * *Why.* A temperature of $1/N$ suits libraries that take the *mean* of the log posterior; `sgmc` takes the sum, so that $1/N$ is applied twice.
#   Or, without `thinning`, neighbours are one step apart, or they never left the optimiser's solution.
# * *The line.* Leave `temperature` at 1, multiply `thinning` until neighbours differ, and start chains apart.
# * *Check.* `function_space_rhat(predictions)` near 1 rules out chains that are stuck (`from sgmc.predictions import function_space_rhat`). For the temperature compare the energy above the mode with half the number of parameters.

# %%
exact_gradients = LinearRegression(x, y)  # batch_size=None: all the data
length = dict(warm_up=200, thinning=20)
of_mean = SGHMC(step_size=0.005, friction=30.0, temperature=1 / 1000)
of_sum = SGHMC(step_size=0.005, friction=30.0)
alike = run(of_mean, exact_gradients, mode.repeat(20, 1), 100, **length)
apart = run(of_sum, exact_gradients, mode.repeat(20, 1), 100, **length)
energy = exact_gradients.energy
for draws in (alike, apart):
    above = energy(draws.samples.flatten(0, 1)) - energy(mode)
    print(f"{width(draws):.1f} {above.mean():.1f}")  # a right chain: 1 and 3/2

# %% tags=["hide-input"]
check("alike", width(alike), near(1000**-0.5, 0.01))
check("apart", width(apart), near(1.0, 0.1), says="At temperature 1 the width is")
check(
    "above",
    above.mean(),
    near(1.5, 0.3),
    because="half of three parameters",
    says="Energy above the mode",
)

# %% [markdown]
# At the temperature 1/1000 the standard deviation is {c}`alike` of the exact one, without a warning, because you may want that.
#
# (too-narrow)=
# ## The samples are too narrow
#
# ```{index} ! samples too narrow, ! too certain, ! prediction interval too narrow
# ```
#
# * *Why.* A short run from a mode has not spread yet.
#   Or `noise_estimate` subtracts the noise of independent minibatches from a kernel that shuffles, where errors nearly cancel within an epoch.
# * *The line.* More samples or a longer `warm_up`; with `minibatches=Passes()` of the posterior leave `noise_estimate` at 0, or take `minibatches=Fresh()` (`from sgmc.minibatches import Fresh, Passes`).
# * *Check.* Chains that start wider than the posterior must meet.
# * *An interval holds too few measurements.* Samples of a regression's mean lack the noise: {ref}`add it <prediction-interval>`.
#
# (chains-disagree)=
# ## R̂ (R-hat) is too high, chains disagree, or the effective sample size is small
#
# ```{index} ! R-hat large, ! chains do not agree, ! effective sample size small
# ```
#
# * *Why.* The run is short, some directions are far longer than others, or each chain is stuck in one of several modes, as of a bimodal posterior.
#   Weights of a network may be exchanged without a change of the function, so *their* R̂ means little.
# * *The line.* Run longer; standardise the columns of the data; for a network look at R̂ of its predictions ({ref}`lines <my-nn-module>`). Between modes of different height no length helps ({doc}`/book/further/cyclical`).
# * *Check.* R̂ of what you report is at most 1.01, and it has 400 effective samples. `sample` warns from 1.1 on, with fewer than 100 samples from 1.5 on.
#
# (bad-error)=
# ## The error (MSE) of a sampled network, a BNN, is bad
#
# * *Why.* A chain from random weights first has to train, in as many gradients, and HMC pays for each with all the data. Or the [prior](#which-prior) is too wide.
# * *The line.* {ref}`Start at trained weights <start-at-trained>`, and take SGHMC, whose gradients are of minibatches.
# * *Check.* The average prediction is no worse than that of the start, and both halves of the samples have the same loss.
#
# (loss-rises)=
# ## The loss rises when sampling begins
#
# ```{index} ! loss rises after burn-in, ! loss goes up
# ```
#
# * *Why.* It should. An optimiser ends at the mode; samples lie above it, on a Gaussian by half the number of parameters in $U$ on average.
# * *The line.* None, if the loss levels off; one that goes on rising is [too wide](#too-wide).
# * *Check.* The average prediction of all samples, not the last one.
#
# (labels-switch)=
# ## The labels switch
#
# ```{index} ! label switching, ! mixture components
# ```
#
# * *Why.* Exchanging two components leaves the density as it is.
# * *The line.* Order them: sample the lowest mean and the gap to the next ({ref}`my-mixture`).
# * *Check.* The ordered means have R̂ ≤ 1.01.
#
# (diverges)=
# ## It diverges: NaN or infinity
#
# ```{index} ! diverges, ! NaN, ! DivergenceError, ! loss is NaN
# ```
#
# * *Why.* The step is beyond the stability limit $2/\sqrt{\text{curvature}}$; for SGD's users: the learning rate is $\varepsilon^2$, and belongs to the *sum* of the loss, so a rate of 0.2 becomes $0.2/N$.
#   Or the density grows outwards: a wrong sign, or no prior.
# * *The line.* Divide `step_size` by ten, then `tune`.
# * *Check.* `error.draws` shows which chain went first.

# %%
from sgmc.door.sampling import DivergenceError

try:
    run(SGHMC(step_size=0.1, friction=10.0), regression, start, 200)
except DivergenceError as error:
    print("diverged, and kept", len(error.draws) > 0)
tenth = run(SGHMC(step_size=0.01, friction=90.0), exact_gradients, start, 100, **length)

# %% [markdown]
# (outside)=
# ## Samples outside of the support
#
# * *Why.* A scale is sampled as it is, and nothing holds a chain at the border; or a Cholesky factorisation fails, which NUTS counts as a rejection.
# * *The line.* `NamedPosterior(..., supports={"scale": constraints.positive})` samples its logarithm (`from torch.distributions import constraints`); `jitter * torch.eye(n)` for a covariance.
# * *Check.* The warning is gone.
#
# (never-moves)=
# ## A chain never moves
#
# ```{index} ! acceptance rate zero, ! chain is stuck
# ```
#
# * *Why.* The step is too long; or, of one chain alone, its start is far out.
# * *The line.* `adapt` finds the step; start that chain at `find_mode(posterior, start)`.
# * *Check.* `draws.statistics["acceptance"].mean(0)` of each chain is near 0.8.

# %%
run(HMC(step_size=1.0, num_steps=10), regression, start, 100)
nuts, place = adapt(NUTS(step_size=1.0), regression, start, 100)
moved = run(nuts, regression, place, 100)
print(bool(moved.statistics["acceptance"].mean(0).min() > 0.5))

# %% tags=["hide-input"]
check(
    "acceptance",
    moved.statistics["acceptance"].mean(),
    at_least(0.6),
    says="The acceptance after adapt",
)

# %% [markdown]
# (divergences)=
# ## Divergent transitions, or divergences, as in Stan
#
# * *Why.* If all trees diverge, the step is too long: use `adapt`. If a few do, the density has a narrow neck where a scale is small, as in a hierarchy.
# * *The line.* Write `effect = mean + scale * z` with $z\sim\mathcal N(0,1)$, the non-centred form; then `adapt(..., target_acceptance=0.95)`.
# * *Check.* No divergences, and the same answer at 0.99. {doc}`/book/practice/recipes` has both forms.
#
# (slow)=
# ## NUTS is slow, or tuning is
#
# ```{index} ! NUTS is slow, ! max_depth, ! maximum tree depth
# ```
#
# * *Why.* Too short a step makes trees reach `max_depth`; very different scales need the step of the narrowest; small minibatches need steps in proportion to $V$.
# * *The line.* `adapt` with 300 steps, standardised columns, a larger `batch_size`.
#   Leave a model in Stan, PyMC or NumPyro there ({doc}`/book/practice/step_cost`).
# * *Check.* `draws.statistics["depth"]` stays below 7.

# %%
run(NUTS(step_size=0.0005, max_depth=3), regression, place, 50, seed=1)
deep = run(nuts, regression, place, 50, seed=1)
print(bool(deep.statistics["depth"].max() < 7))

# %% [markdown]
# (underconfident)=
# ## Underconfident, or the calibration error grows
#
# ```{index} ! underconfident, ! calibration error, ! overconfident
# ```
#
# * *Why.* Too high a learning rate heats the weights, or the prior variance lets them be large.
# * *The line.* Half the rate with twice the steps, until predictions no longer move; then {ref}`temperature scaling <temperature-scaling>` on held-out examples; then a lower `temperature`.
# * *Check.* Log loss and calibration error on other examples; {doc}`/book/practice/recipes_networks` measures each.
#
# (which-prior)=
# ## Which prior for the weights of a Bayesian neural network (BNN)?
#
# * *Why.* $\mathcal N(0, 1)$ on each weight makes the functions of wide layers wild; a narrow prior underfits.
#   Some programs call its variance or precision *alpha*. It counts once, beside the summed log likelihoods.
# * *The line.* `NetworkPosterior(..., prior_variance={"0.weight": 2 / fan_in})` (`from sgmc import NetworkPosterior`), or $1/(N\lambda)$ of a weight decay $\lambda$ that trained well.
# * *Check.* Predictions of weights from the prior look like functions that you believe.
#
# (sum-or-mean)=
# ## The sum or the mean of the loss: scaling the learning rate and the noise with N
#
# ```{index} ! scale of the learning rate with N, ! N/n, ! noise of SGLD, ! weight decay and prior
# ```
#
# * *Why.* The posterior has the *sum* of $N$ log-likelihoods; `F.cross_entropy` gives the mean, as if there were one example.
#   The noise has *variance* $2\varepsilon$ in SGLD, a standard deviation of $\sqrt{2\varepsilon}$; weight decay is a prior, and a program that discards it drops the prior.
#   For the mean that is $\sqrt{2\varepsilon/N}$. The program of pSGLD divides $\sqrt{2\varepsilon}$ by $N$ (Ntrain): it samples at the temperature $1/N$.
# * *The line.* Return one log-likelihood an example; the package sums, and multiplies by $N/n$.
# * *Check.* Give the data twice: each width must fall by $\sqrt2$.

# %%
from torch.distributions import Normal


def log_prior(p):
    return Normal(0, 3).log_prob(p["slope"]).sum()


def log_likelihood(p, x, y):
    return Normal(x @ p["slope"], 1).log_prob(y)


try:
    averaged = lambda *given: log_likelihood(*given).mean()
    NamedPosterior({"slope": (3,)}, log_prior, averaged, (x, y))
except ValueError as error:
    print(str(error).partition(",")[0])
summed = NamedPosterior({"slope": (3,)}, log_prior, log_likelihood, (x, y))

# %% [markdown]
# (memory)=
# ## Out of memory
#
# ```{index} ! out of memory, ! CUDA out of memory, ! many samples of a large network
# ```
#
# * *Why.* Memory holds chains × samples × weights numbers, and each chain its own minibatch.
# * *The line.* Thin while it runs (`thinning=50`), keep predictions in place of weights (`collect`), take fewer chains or a smaller `batch_size`, freeze layers by `module.requires_grad_(False)`, and put data on disk ({ref}`lines <my-data-on-disk>`). A full noise estimate becomes `OnlineNoise("diagonal")` (`from sgmc.noise import OnlineNoise`).
# * *Check.* `draws.samples.numel()`.

# %%
x_new = torch.randn(5, 3, generator=generator)
predict = lambda position: position @ x_new.mT
few = run(nuts, regression, place, 50, thinning=2, collect=predict)
print(few.samples.shape)  # (samples, chains, predictions)

# %% [markdown]
# (no-mode)=
# ## No mode, or a flat direction
#
# * *Why.* `tune` and `default_kernel` measure curvature where you start, and columns in other units hide the small ones.
# * *The line.* `find_mode(posterior, start)` first, and `(x - x.mean(0)) / x.std(0)`; a prior, if the energy falls without end.
# * *Check.* `half_step` sees no difference.
#
# (vmap)=
# ## A layer that `vmap` cannot run
#
# ```{index} ! LSTM, ! vmap, ! batch normalisation
# ```
#
# * *Why.* An LSTM, an `if` on a tensor's value or `.item()` cannot run for all chains at once: they run in turn, right, but slow.
# * *The line.* `torch.where` in place of `if`; two chains in place of twenty; a GRU cell in a loop.
#   Batch normalisation and dropout are an error: `module.eval()` fixes their state, and `torch.nn.GroupNorm` has none.
#   {doc}`/book/practice/my_layer` has other layers.
#
# (dtype)=
# ## dtype, device, and float32
#
# ```{index} ! dtype, ! expected all tensors to be on the same device, ! float32, ! GPU
# ```
#
# * *Why.* Data and start must share type and device; energies from some 10⁷ on are rounded to whole numbers in float32, so that chance decides about proposals.
# * *The line.* `start.to(x)`; on a GPU move module, data and start before the posterior is made.

# %%
double = LinearRegression(x.double(), y.double(), batch_size=10)
try:
    sgmc.sample(kernel, double, start, 5)
except ValueError as error:
    print(str(error).partition(". ")[2])
same_type = run(nuts, double, start.to(double.data[0]), 50)

# %% [markdown]
# (loo)=
# ## `loo` or `compare` fails
#
# ```{index} ! loo, ! log likelihood, ! WAIC
# ```
#
# * *Why.* ArviZ needs the log-likelihood of each example; a potential written as one energy has none, and samples of another temperature are not the posterior's.
# * *The line.* `draws.to_arviz(posterior=posterior)` with a posterior that knows its examples; in Pyro `pyro.plate("data", N, subsample_size=n)` (`import pyro`); a `Likelihood` says its `log_constant`.
# * *Check.* `arviz.loo(draws.to_arviz(posterior=posterior))` (`import arviz`) reports no Pareto $k$ above 0.7.
#
# (interrupted)=
# ## Interrupted: KeyboardInterrupt, a time limit
#
# Ctrl-C ends a run and returns the samples so far; `tune` and a second Ctrl-C raise KeyboardInterrupt. SIGTERM, sent by a batch system at its limit, ends the process.
# With `checkpoint=Checkpoint("run.pt")` (`from sgmc.checkpoints import Checkpoint`) the same call goes on later, to the samples of an uninterrupted run.
#
# (resuming)=
# ## A checkpoint does not resume
#
# ```{index} ! resume, ! checkpoint belongs to another run
# ```
#
# * *Why.* A checkpoint belongs to one kernel, potential, seed and start, and names what changed.
# * *The line.* Give the old setting back; a larger `num_samples` is allowed; else another file.

# %%
from tempfile import TemporaryDirectory

from sgmc.checkpoints import Checkpoint, CheckpointError

with TemporaryDirectory() as folder:
    file = Checkpoint(f"{folder}/run.pt")
    run(nuts, regression, place, 20, checkpoint=file)
    try:
        run(nuts, regression, place, 20, checkpoint=file, seed=1)
    except CheckpointError as error:
        print(re.findall("with another (.*?);", str(error)))
    print(len(run(nuts, regression, place, 30, checkpoint=file)))

# %% [markdown]
# (learning-coefficient)=
# ## A local learning coefficient is negative, or depends on the step size
#
# The start was no minimum (`find_mode` first), the gradient noise was not subtracted, or the run is too short for its step: {doc}`/book/studies/learning_coefficient`.
#
# To remember: change one line, run again, and look whether *that* warning is gone.
