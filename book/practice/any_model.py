# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Any model
#
# ```{div} page-head
# Level: second course · Reading: about 43 minutes, without the exercises · Running: about 20 seconds
# ```
#
# A model may be two functions of named parameters, a module of PyTorch or a program in Pyro, and its data may lie in memory or on disk: three lines lead from it to draws.
#
# **You will learn** to
#
# * say what a sampler needs of a model, and which part of it a minibatch scales,
# * write a model as two plain functions of named, shaped, constrained parameters,
# * sample a `torch.nn.Module` and a Pyro program, and get draws with the model's own names,
# * recognise the models that minibatches cannot do, or do badly, and say why,
# * sample from data that are larger than the memory.
#
# **You will need** {doc}`/book/tutorial/minibatch_noise`, {doc}`/book/tutorial/sghmc` and {doc}`/book/practice/reference_posteriors`.

# %% tags=["hide-input"]
import gc
import itertools
import math
import re
import tempfile
import textwrap
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import arviz
import matplotlib.pyplot as plt
import pyro
import pyro.distributions as dist
import torch
from torch import Tensor
from torch.distributions import HalfNormal, Normal, constraints
from torch.func import functional_call
from torch.nn.utils import vector_to_parameters
from torch.utils.data import DataLoader, Dataset, TensorDataset

from booklib.data import digits
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.scores.diagnostics import expectation
from sgmc import sample
from sgmc.disk import to_disk
from sgmc.kernels import NUTS, SGHMC, Kernel
from sgmc.models import NamedPosterior
from sgmc.models.pyro_model import PyroPosterior
from sgmc.noise import OnlineNoise
from sgmc.posteriors import Gaussian, NetworkPosterior
from sgmc.targets import DoubleWell
from sgmc.tuning import adapt, default_kernel

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
generator = torch.Generator().manual_seed(0)

# %% [markdown]
# ## What a sampler wants, and what a model has
#
# A sampler of this book moves a position $x \in \mathbb R^d$, a list of numbers without names, by gradients of an {term}`energy`.
# A model has parameters with names and shapes, some of which must be positive or have the sum one, a {term}`prior`, and a {term}`likelihood` of each example.
# {numref}`fig-any-glue` shows the way from the one to the other; read it from the top.

# %% mystnb={"figure": {"caption": "From a position to an energy. The sampler sees the first and the last box, the model the middle ones. Only the likelihood is multiplied by N/n.", "name": "fig-any-glue"}, "image": {"alt": "Boxes joined by arrows from top to bottom: position x, cut into pieces by name, each mapped onto its support as parameters. From there two arrows: one to the log prior plus the log Jacobian, counted once, one to the log likelihood of each example of the minibatch, times N over n. Both lead to the energy."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 4.6))
places = {
    "position $x$, a list of numbers": (0, 4),
    "cut by name: $x_b$, $x_s$, …": (0, 3),
    "parameters $\\phi = g(x)$, in their borders": (0, 2),
    "log prior\n$+ \\log|\\det g'(x)|$\nonce": (-1, 0.75),
    "log likelihood of\neach example in $S$\ntimes $N/n$": (1, 0.75),
    "energy $\\tilde U(x; S)$, minus their sum": (0, -0.5),
}
for words, (across, up) in places.items():
    box = dict(boxstyle="round,pad=0.4", fc="white", ec=COLOURS["HMC"])
    axes.text(across, up, words, ha="center", va="center", size=10, bbox=box)
arrows = ((0, 3.75, 0, 3.25), (0, 2.75, 0, 2.25), (-0.3, 1.75, -0.9, 1.2))
arrows += ((0.3, 1.75, 0.9, 1.2), (-0.9, 0.3, -0.3, -0.25), (0.9, 0.3, 0.3, -0.25))
for a, b, c, d in arrows:
    axes.annotate("", (c, d), (a, b), arrowprops={"arrowstyle": "->"})
axes.set(xlim=(-2, 2), ylim=(-0.8, 4.3))
axes.axis("off")
plt.show()

# %% [markdown]
# There are four places where it can go wrong in silence:
#
# 1. **Order.** Each parameter has its place in the position, and the samples come back under its name.
# 2. **Constraints.** A parameter $\phi = g(x)$ with a constraint is replaced by unconstrained numbers $x$, and the density gets the factor $\lvert\det g'(x)\rvert$ of {prf:ref}`lem-reference-jacobian`.
# 3. **Scale.** A minibatch of $n$ of the $N$ examples stands for all of them, so that *the likelihood, and nothing else*, is multiplied by $N/n$.
# 4. **Choice.** Which examples a chain sees is drawn anew for each gradient and each chain, by a rule that a second run can repeat.
#
# ```{prf:definition} The minibatch energy of a model
# :label: def-any-energy
#
# Let $\phi = g(x)$ be the parameters of the position $x$, $p(\phi)$ their prior and $p(y_i \mid \phi)$ the likelihood of example $i$.
# For a minibatch $S$ of $n$ examples
#
# $$
# \tilde U(x; S) = -\log p(g(x)) - \log\lvert\det g'(x)\rvert - \frac Nn\sum_{i\in S}\log p(y_i \mid g(x)).
# $$ (eq-any-energy)
# ```
#
# If $S$ is drawn uniformly, the mean of $\nabla\tilde U$ over the draw of $S$ is the gradient of the full energy ({prf:ref}`thm-minibatch`); the prior and the Jacobian do not depend on $S$, and count once.
#
# What if one gets the third place wrong?
# Take the mean $\theta$ of $y_i \sim N(\theta, 1)$ with the prior $N(0, \tau^2)$.
# All densities that one may sample by mistake are Gaussian, and {numref}`fig-any-scales` shows them for $N = 100$, $n = 10$ and a prior that matters, $\tau = 0.2$: in both panels the coloured curve should lie on the grey one, and does not.

# %% mystnb={"figure": {"caption": "Which law is sampled, on average over minibatches of 10 of 100 examples. Grey: the posterior. Above: N/n forgotten; the data count for a tenth. Below: N/n on the prior too; it counts tenfold and draws the mean to its own, 0.", "name": "fig-any-scales"}, "image": {"alt": "Two panels, one below the other, with a grey bell curve around 0.8; above a flatter one around 0.3, below a narrower one around 0.3."}} tags=["hide-input"]
N, n, tau, average = 100, 10, 0.2, 1.0
figure, panels = plt.subplots(2, 1, figsize=(5.2, 5), sharex=True, sharey=True)
grid = torch.linspace(-0.4, 1.4, 400)


def gaussian(prior_weight, likelihood_weight):
    """Return the law with these weights on the prior and on the minibatch."""
    precision = prior_weight / tau**2 + likelihood_weight * n
    return Normal(likelihood_weight * n * average / precision, precision**-0.5)


right_law, forgotten, doubled = (
    gaussian(1, N / n),
    gaussian(1, 1),
    gaussian(N / n, N / n),
)
for panel, law, title in zip(
    panels, (forgotten, doubled), ("N/n forgotten", "N/n on the prior too"), strict=True
):
    panel.fill_between(
        grid,
        right_law.log_prob(grid).exp(),
        color=TRUTH,
        alpha=0.35,
        lw=0,
        label="posterior",
    )
    panel.plot(
        grid,
        law.log_prob(grid).exp(),
        color=COLOURS["naive SGHMC"],
        label="what is sampled",
    )
    panel.set(ylabel="density", title=title)
panels[1].set_xlabel(r"$\theta$")
panels[0].legend(loc="upper left")
plt.show()

# %% [markdown]
# In both the mean is drawn towards the prior's; the upper distribution is too wide, the lower one too narrow.
# Neither fault raises an error, and R̂ does not show it, because all chains agree on the wrong distribution.
#
# That is why a model is *two* functions here, and not one `log_density(parameters, batch)`, as some libraries have it: from a sum nobody can tell what counts once from what counts $N/n$ times ({ref}`ex-any-one` takes such a function apart).
# And the likelihood comes example by example, because the differences between the examples of a minibatch tell how noisy the gradient is.
#
# ## A plain function
#
# A regression with an unknown noise: $y_i \sim N(x_i^\top b, s^2)$, $b \sim N(0, 1)$, $s \sim N^+(0, 1)$.
# The two functions are written for *one* set of parameters and one batch, as one would write them for no sampler at all.

# %%
x = torch.randn(2000, 3, generator=generator)
y = x @ torch.tensor([1.0, -0.5, 0.0]) + torch.randn(2000, generator=generator)


def log_prior(p):
    return Normal(0, 1).log_prob(p["b"]).sum() + HalfNormal(1).log_prob(p["s"])


def log_likelihood(p, x, y):  # one number for each example
    return Normal(x @ p["b"], p["s"]).log_prob(y)


# %% [markdown]
# With the names and shapes of the parameters, and their *supports*, the sets in which they may lie, that is the model.
# Three rules for the functions:
#
# * `torch.func.vmap` calls them for all chains at once, so they must not draw random numbers. An `if` or `.item()` on a value works, but runs the chains one after another.
# * Their parameters come with their constraints: `p["s"]` is positive, and no Jacobian is to be added.
# * A support must not be wider than the prior, because a sampler that sees nothing but gradients does not notice that it has left: $U(0, 0.4)$ wants `constraints.interval(0, 0.4)`, and not `positive`.
#
# A start where a density is zero is refused, and so is a likelihood of an example that changes with the other examples of its batch, as it does if $(n, 1)$ targets broadcast against $(n,)$ outputs.
#
# The kernel needs a step size and a friction.
# This model has a curvature of about $N = 2{,}000$ for each coefficient, so that standard deviations are about $1/\sqrt{2000} = 0.022$; with a mass of one a step moves a coordinate by about $\varepsilon$, and 0.002 is a tenth of that.
# For a model of your own `default_kernel` of {doc}`/book/practice/tuning` measures the curvature and the noise and chooses all of this; it is used below.

# %%
shapes, supports = {"b": (3,), "s": ()}, {"s": constraints.positive}
noise = OnlineNoise("diagonal", refresh_every=20)
kernel = SGHMC(0.002, friction=200, noise_estimate=noise, num_steps=20)

# %% [markdown]
# Three lines from there to samples: a posterior with minibatches of 500, a start for forty chains, and the run.
# `warm_up` counts samples, that is calls of the kernel, each of 20 gradients (`num_steps`).
# The chains start from $U(-0.1, 0.1)$ in every unconstrained coordinate; the default is Stan's $U(-2, 2)$, which suits a kernel with a warm-up that adapts it.

# %%
posterior = NamedPosterior(shapes, log_prior, log_likelihood, (x, y), supports, 500)
start = posterior.initial_position(40, generator, radius=0.1)
draws = sample(kernel, posterior, start, 40, warm_up=10, collect=posterior.named)

# %% [markdown]
# `collect=posterior.named` keeps the parameters in place of positions: `draws.samples["s"]` is a scale and not its logarithm, and ArviZ knows all by name.

# %%
data = draws.to_arviz()
print({name: values.shape for name, values in data.posterior.items()})

# %% [markdown]
# Without a batch size the posterior takes all the data, and NUTS, whose distribution is the posterior itself, is the reference.

# %% tags=["hide-input"]
whole = NamedPosterior(shapes, log_prior, log_likelihood, (x, y), supports)
nuts, position = adapt(NUTS(1.0), whole, start, 40, progress=False)
exact = sample(nuts, whole, position, 40, collect=whole.named, progress=False)


def flat(samples):
    """Return all parameters of draws side by side."""
    return torch.cat([samples["b"], samples["s"][..., None]], -1)


mine, theirs = flat(draws.samples), flat(exact.samples)
claim(
    "Largest difference of a mean from that of NUTS, in standard deviations",
    ((mine.mean((0, 1)) - theirs.mean((0, 1))) / theirs.std((0, 1))).abs().max(),
    at_most=0.25,
    because="both errors together are about 0.06; it was 0.09 to 0.15 over five seeds",
)
ratios = mine.flatten(0, 1).std(0) / theirs.flatten(0, 1).std(0)
for name, value in (("smallest", ratios.min()), ("largest", ratios.max())):
    claim(
        f"The {name} ratio of SGHMC's standard deviations to those of NUTS",
        value,
        near=1,
        within=0.25,
        because=(
            "errors of 3 % each, and some per cent for the noise estimate; 0.90 to "
            "1.09 in fourteen seeds"
        ),
    )
subset = torch.stack([torch.arange(2000)[k::20] for k in range(20)])
double = NamedPosterior(
    shapes, log_prior, log_likelihood, (x.double(), y.double()), supports, 100
)
place = double.initial_position(1, generator)
slices = double.gradient_given(place.expand(20, -1).contiguous(), subset)
claim(
    "Largest error of the mean gradient over a pass of minibatches, relative",
    (slices.mean(0) - double.gradient(place)[0]).abs().max()
    / double.gradient(place).abs().max(),
    at_most=1e-10,
    because="each example is in one of them, and the prior counts once",
    kind="exact",
)

# %% [markdown]
# The position is cut into pieces, each goes through its map, and the functions are called for all chains at once:
#
# ```{literalinclude} ../../sgmc/models/named.py
# :language: python
# :pyobject: Parameters.constrain
# ```
#
# The maps are those of `torch.distributions.biject_to`: of positive and bounded numbers, of simplices, of Cholesky factors of correlations; what it does not know is refused with a reason.
# A parameter whose range depends on another is written as a function of one with a fixed range, or in Pyro ({ref}`ex-any-dependent`).
#
# ## A module
#
# `NetworkPosterior` takes a `torch.nn.Module`, inputs and targets, and adds the prior, $N(0, 1)$ on every weight, and the likelihood: that of classes by default ({doc}`/book/tutorial/digits`), that of a regression with `likelihood=Gaussian(noise_variance=...)`.
# Fifty samples of one chain show the call and the names; they are too few to be a result.
# A likelihood with a parameter of its own is a plain function again, in which `torch.func.functional_call` runs the module ({ref}`ex-any-module`).

# %%
train, test = digits()
network = multilayer_perceptron([784, 100, 10])
kernel = SGHMC(0.003, friction=30.0, num_steps=8)

# %%
posterior = NetworkPosterior(network, *train, prior_variance=1.0, batch_size=500)
start = posterior.initial_position(1, generator)
draws = sample(kernel, posterior, start, 50, collect=posterior.named)

# %% tags=["hide-input"]
data = draws.to_arviz()
claim(
    "ArviZ knows the network's weights by the module's own names",
    {*data.posterior} == {name for name, _ in network.named_parameters()},
    because="collect gave a dictionary",
)
last = {name: value[-1, 0] for name, value in draws.samples.items()}
errors = functional_call(network, last, (test.inputs,)).argmax(-1) != test.targets
claim(
    "Error of the last of 50 draws of the digits network",
    errors.double().mean(),
    at_most=0.2,
    because="400 gradients are few; guessing has 0.9",
)

# %% [markdown]
# Next, a regression with a module of your own, data that come from a `DataLoader`, each example once (no `drop_last`, weighted sampler or augmentation), and a sample put back into the module, which then is a trained network like any other.
# `sample` warns that the chains do not agree in their weights; hidden units may change places, so look at the curve.


# %%
class Curve(torch.nn.Module):  # yours
    def __init__(self):
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(1, 20), torch.nn.Linear(20, 1)

    def forward(self, x):
        return self.outer(torch.tanh(self.inner(x)))


dice = torch.Generator().manual_seed(0)
places = 4 * torch.rand(400, 1, generator=dice) - 2
heights = torch.sin(2 * places) + 0.3 * torch.randn(400, 1, generator=dice)
loader_of_curve = DataLoader(TensorDataset(places, heights), batch_size=50)  # yours

gathered = [torch.cat(parts) for parts in zip(*loader_of_curve, strict=True)]
curve, known_noise = Curve(), Gaussian(noise_variance=0.3**2)
of_curve = NetworkPosterior(curve, *gathered, batch_size=100, likelihood=known_noise)
curve_kernel = SGHMC.from_learning_rate(0.003 / 400, 0.1, num_steps=20)
starts = of_curve.initial_position(4, dice)
curves = sample(curve_kernel, of_curve, starts, 40, warm_up=40)

points = torch.linspace(-2, 2, 50)[:, None]
curves_at = torch.stack([of_curve.predict(place, points) for place in curves.samples])
mean_curve, spread = curves_at.mean((0, 1)), curves_at.std((0, 1))

vector_to_parameters(curves.samples[-1, 0], curve.parameters())
one_curve = curve(points).detach()  # the module predicts with this draw

# %% tags=["hide-input"]
claim(
    "Curve of the module with a draw put back, less what the posterior predicts of it",
    (one_curve.flatten() - curves_at[-1, 0].flatten()).abs().max(),
    at_most=1e-5,
    because="the same weights in the same module; rounding",
)
claim(
    "Root of the mean squared error of the mean curve",
    (mean_curve.flatten() - torch.sin(2 * points).flatten()).square().mean().sqrt(),
    at_most=0.12,
    because="0.03 to 0.06 in nine seeds; the prior pulls and the data are noisy",
)


# %% [markdown]
# ## A Pyro program
#
# In Pyro {cite:p}`bingham2019` `pyro.sample` names a random quantity, a *site*, and its distribution; `obs=` says that it was seen; `pyro.plate` says that what is in it is independent for each index, and with `subsample_size=n` that only $n$ of the indices are looked at.
# That is all that {eq}`eq-any-energy` asks for.
# From here on numbers are in double precision, so that rounding does not blur the comparisons.

# %%
effect = torch.tensor([28.0, 8, -3, 7, -1, 1, 18, 12], dtype=torch.float64)
error = torch.tensor([15.0, 10, 16, 11, 9, 11, 10, 18], dtype=torch.float64)
torch.set_default_dtype(torch.float64)  # for what programs make of plain numbers


def schools(n=None):
    mean = pyro.sample("mean", dist.Normal(0, 5))
    spread = pyro.sample("spread", dist.HalfCauchy(5))
    with pyro.plate("schools", 8):
        deviation = pyro.sample("deviation", dist.Normal(0, 1))
    theta = pyro.deterministic("theta", mean + spread * deviation)
    with pyro.plate("data", 8, subsample_size=n) as i:
        pyro.sample("effect", dist.Normal(theta[i], error[i]), obs=effect[i])


# %% [markdown]
# These are the eight schools of {doc}`/book/practice/reference_posteriors`, non-centred, without a Jacobian in sight.
# (Groups with hundreds of examples each are better written centred, `theta ~ Normal(mean, spread)`. And the mode at which `tune` begins may lie far from the bulk of a hierarchy: compare the spread with that of NUTS.)
# Three lines, and one more for the warm-up of NUTS:

# %%
posterior = PyroPosterior(schools)
start = posterior.initial_position(25, generator)
kernel, position = adapt(NUTS(1), posterior, start, 30, target_acceptance=0.9)
draws = sample(kernel, posterior, position, 25, collect=posterior.named)

# %% [markdown]
# The sites come back by their names, with what `pyro.deterministic` adds to them.
# Pyro's own NUTS, one chain of it, is the reference.

# %%
pyro.set_rng_seed(1)
own = pyro.infer.MCMC(
    pyro.infer.NUTS(schools), num_samples=220, warmup_steps=50, disable_progbar=True
)
own.run()

# %% tags=["hide-input"]


def numbers(named):
    """Return means, the spread's logarithm and the effects, side by side."""
    return torch.cat(
        [named["theta"], named["mean"][..., None], named["spread"][..., None].log()], -1
    )


sites = {
    name: value for name, value in own.get_samples().items() if name in posterior.shapes
}
witness = posterior.named(
    posterior.position(sites)
)  # there and back: the same sites, and theta
claim(
    "Largest change of Pyro's draws on their way to positions and back",
    max(float((witness[name] - sites[name]).abs().max()) for name in sites),
    at_most=1e-9,
    because="the maps are one-to-one",
    kind="exact",
)


def summary(values):
    """Return means, standard deviations and their Monte Carlo errors."""
    data = arviz.from_dict(posterior={"x": values.transpose(0, 1).numpy()})
    found = [values.flatten(0, 1).mean(0), values.flatten(0, 1).std(0)]
    return found, [
        torch.as_tensor(arviz.mcse(data, method=m)["x"].values) for m in ("mean", "sd")
    ]


ours, ours_errors = summary(numbers(draws.samples))
his, his_errors = summary(numbers(witness)[:, None])
for k, what in enumerate(("means", "standard deviations")):
    z = (ours[k] - his[k]) / (ours_errors[k].square() + his_errors[k].square()).sqrt()
    claim(
        f"Largest |z| of ten {what}, against Pyro's NUTS",
        z.abs().max(),
        at_most=5,
        errors=True,
        because=(
            "ten normal numbers exceed 4 once in 1,600 times; errors of one chain are "
            "rough"
        ),
    )

# %% [markdown]
# With `n=3` the same program sees three schools at a time.
# Here all 56 minibatches can be listed, and the mean of their gradients compared with the full one.

# %% tags=["hide-input"]
sees_three = PyroPosterior(schools, 3)
subsets = torch.tensor(list(itertools.combinations(range(8), 3)))
place = sees_three.initial_position(1, generator)
gradients = sees_three.gradient_given(
    place.expand(len(subsets), -1).contiguous(), subsets
)
claim(
    "Largest error of the mean gradient over all 56 minibatches",
    (gradients.mean(0) - posterior.gradient(place)[0]).abs().max(),
    at_most=1e-10,
    because="a theorem, and double precision",
    kind="exact",
)
claim(
    "Largest standard deviation of these gradients",
    gradients.std(0).max(),
    at_least=0.01,
    because="they differ, or the test would see nothing",
)

# %% [markdown]
# ### A program with minibatches
#
# Here is the regression from above as a program that sees 500 of its 2,000 examples.
# `default_kernel` wants a mode or a few samples, to measure curvature and noise there; we have those of NUTS, which `position` turns into positions.

# %%
inputs, targets = x.double(), y.double()


def regression(n=None):
    b = pyro.sample("b", dist.Normal(torch.zeros(3), 1).to_event(1))
    s = pyro.sample("s", dist.HalfNormal(1))
    with pyro.plate("data", len(targets), subsample_size=n) as i:
        pyro.sample("y", dist.Normal(inputs[i] @ b, s), obs=targets[i])


sees_500 = PyroPosterior(regression, 500)
last = {name: value[-1].double() for name, value in exact.samples.items()}
start = sees_500.position(last)
kernel = default_kernel(sees_500, start)
draws = sample(kernel, sees_500, start, 50, warm_up=10, collect=sees_500.named)

# %% tags=["hide-input"]
mine = flat(draws.samples)
claim(
    "The step that was chosen, in standard deviations",
    kernel.step_size,
    near=0.5,
    within=0,
    because=(
        "the longest there is; the noise is about N/n - 1 = 3 times the curvature, "
        "and up to 4 allow it"
    ),
    kind="exact",
)
claim(
    "Largest difference of the program's means from those of NUTS, in deviations",
    ((mine.mean((0, 1)) - theirs.mean((0, 1))) / theirs.std((0, 1))).abs().max(),
    at_most=0.25,
    because="standard error 0.04; it was 0.02 to 0.10 over five seeds",
)
ratios = mine.flatten(0, 1).std(0) / theirs.flatten(0, 1).std(0)
for name, value in (("smallest", ratios.min()), ("largest", ratios.max())):
    claim(
        f"The program: {name} ratio of standard deviations to those of NUTS",
        value,
        near=1,
        within=0.2,
        because="errors of 3 % each; 0.91 to 1.07 in seven seeds",
    )

# %% [markdown]
# ### What happens in a run of the program
#
# A *handler* of Pyro is an object to which every site is shown, and which may choose its value.
# Ours does at each site what {prf:ref}`alg-any-run` says.
#
# ```{prf:algorithm} The energy of a program
# :label: alg-any-run
#
# **Inputs:** a position $x$, the examples $S$ of the minibatch
#
# Let the plate with `subsample_size` show $S$, run the program, and at each site with the distribution $q$
#
# 1. if it is not observed, take its piece $x_k$ of the position, give the program $\phi_k = g_k(x_k)$, with $g_k$ the map onto the support of $q$, and add $\log q(\phi_k) + \log\lvert\det g_k'(x_k)\rvert$ to the prior;
# 2. if it is observed outside of the plate, add $\log q$ to the prior, for it counts once;
# 3. if it is observed in the plate, add $\log q$ of each example to the likelihoods.
#
# $\tilde U$ is minus the prior minus $N/n$ times the sum of the likelihoods.
# ```
#
# The minibatch comes from the same rules as everywhere in this book, and not from Pyro's global generator; so the plate must be made inside of the program.
# What else a program may hold:
#
# * `pyro.factor`, a mask or a scale counts where it stands, in the plate as part of the likelihood, outside of it once.
# * Plates may be nested, and one of them has a `subsample_size`.
# * A `PyroModule` whose weights are `PyroSample`s is a program; call its layers before the plate is entered, because a weight is drawn when it is first asked for.
# * Which sites there are must not depend on values by `if`, because all chains run the program together.
#
# ### A network as a program
#
# A site for each parameter of a module makes any module a Pyro model, with a prior of one's own.
# The weights are drawn *before* the plate: in it, each example would get weights of its own.

# %%
images, labels = train.inputs.double(), train.targets


def bayesian_network(n):
    weights = {}
    for name, value in network.named_parameters():
        law = dist.Normal(torch.zeros(value.shape), 1).to_event(value.ndim)
        weights[name] = pyro.sample(name, law)
    with pyro.plate("data", len(labels), subsample_size=n) as i:
        logits = functional_call(network, weights, (images[i],))
        pyro.sample("label", dist.Categorical(logits=logits), obs=labels[i])


# %% tags=["hide-input"]
network.double()
program = PyroPosterior(bayesian_network, 500)
direct = NetworkPosterior(network, images, labels, prior_variance=1.0, batch_size=500)
place = direct.initial_position(2, generator)
(indices,) = program.draw_minibatches(place, generator, step=0)
one, other = (
    program.gradient_given(place, indices),
    direct.gradient_given(place, indices),
)
claim(
    "Largest difference of the two gradients of the digits network, relative",
    (one - other).abs().max() / other.abs().max(),
    at_most=1e-10,
    because=(
        "79,510 weights under the same names, and the same 500 digits for each chain"
    ),
    kind="exact",
)
paths = [
    sample(SGHMC(0.003, 30.0), each, place, 10, progress=False).samples
    for each in (program, direct)
]
claim(
    "Largest distance of two chains of ten steps, by program and by module",
    (paths[0] - paths[1]).abs().max(),
    at_most=1e-8,
    because="the same gradients and the same noise, up to rounding",
    kind="exact",
)

# %% [markdown]
# ## What is refused, and why
#
# Three requests look as if they could be met with minibatches, and are refused.

# %%


def local(n=2):
    with pyro.plate("data", 8, subsample_size=n) as i:
        theta = pyro.sample("theta", dist.Normal(0, 5))
        pyro.sample("effect", dist.Normal(theta, error[i]), obs=effect[i])


def discrete():
    coaching = pyro.sample("coaching", dist.Bernoulli(0.5))
    pyro.sample("effect", dist.Normal(10 * coaching, 5), obs=torch.tensor(8.0))


refused = {
    "a site for each example": lambda: PyroPosterior(local),
    "a discrete site": lambda: PyroPosterior(discrete),
    "NUTS on minibatches": lambda: sample(NUTS(0.1), sees_three, position, 1),
}
reasons = {}
for what, attempt in refused.items():
    try:
        attempt()
    except ValueError as reason:
        reasons[what] = str(reason)
        print(textwrap.fill(f"{what}: {reason}", 88) + "\n")

# %% tags=["hide-input"]
claim(
    "Of three requests that cannot be met, with a reason refused",
    len(reasons),
    near=3,
    within=0,
    because="each is found before the first step",
    kind="exact",
)
his = pyro.infer.MCMC(
    pyro.infer.NUTS(schools), num_samples=1, warmup_steps=1, disable_progbar=True
)
try:
    his.run(3)
    said = ""
except NotImplementedError as reason:
    said = str(reason)
claim(
    "Pyro's own NUTS refuses a plate that shows three of eight schools",
    "subsample" in said,
    because="its energy would be another at each call",
)

# %% [markdown]
# *A site for each example.*
# If $\theta_i$ belongs to example $i$, a minibatch has a force on the $\theta_i$ of its own examples alone.
# Scaled by $N/n$ it is right on average, but its variance is $f_i^2(N/n - 1)$, larger than the force $f_i$ itself for every batch below half of the data; and a step moves all $\theta_i$, which costs as much as an epoch.
# Integrate the $\theta_i$ out ({ref}`ex-any-local`), or leave the plate whole.
#
# *A discrete site* has no gradient.
# Sum over its values: the density of a mixture is a sum, and `torch.logsumexp` adds its terms without underflow ({ref}`ex-any-discrete`).
#
# *NUTS on minibatches.*
# The decision at the end of a path compares the energies of its states.
# If one minibatch is held for a whole path, the path is drawn towards the minibatch's own posterior; if each gradient has a fresh one, the decision is as much about the minibatches as about the position {cite:p}`betancourt2015`.
# {doc}`/book/tutorial/sgnuts` measures the first: smaller steps do not help.
# `posterior.full()` makes a program take all the data; the other two forms take all of them for their energy, whatever the batch size.
#
# ## Data that do not fit into memory
#
# ```{index} ! memmap, ! memory-mapped file, ! DataLoader, ! data on disk
# ```
#
# Minibatches are chosen by number, so that a step can look up its examples and a second run finds the same ones.
# A `DataLoader` is a stream, which cannot be asked for example number 17.
# `to_disk` writes a copy as plain NumPy files, reads the stream once more to see that it stays the same, and maps the files into memory (a *memmap*); from then on only those examples are read that are asked for.


# %%
class Made(Dataset):
    """10,000 examples of 4,096 numbers, each made when it is asked for."""

    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        source = torch.Generator().manual_seed(index)
        x = torch.randn(4096, generator=source, dtype=torch.float32)
        return x, x[:10].mean()


folder = tempfile.TemporaryDirectory()
inputs, targets = to_disk(DataLoader(Made(), batch_size=500), folder.name)

# %% [markdown]
# All three forms of a model take such tensors as they take others.
# How much memory does a run need?
# On Linux a process can forbid itself to get more than a given number of bytes: beyond what the process has we allow 1.5 times what a minibatch and the network take, 62 MB for a file of 164 MB, and the run takes its ten samples.


# %% tags=["hide-input"]
@contextmanager
def at_most(more):
    """Let this process have no more than so many bytes beyond what it has."""
    if not Path("/proc/self/status").exists():  # not on Linux: no limit
        yield
        return
    import resource

    gc.collect()
    status = Path("/proc/self/status").read_text()
    now = 1024 * int(re.search(r"VmData:\s+(\d+)", status)[1])
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (int(now + more), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


# %%
module = multilayer_perceptron([4096, 10, 1]).float()
normal = Gaussian(noise_variance=1.0)
big = NetworkPosterior(module, inputs, targets, batch_size=2500, likelihood=normal)
start = big.initial_position(1, generator).float()
kernel = SGHMC(1e-4, friction=1.0)
sample(kernel, big, start, 1)  # what libraries set up at their first use

batch = 2500 * inputs[0].numel() * inputs.element_size()
with at_most(1.5 * (batch + big.dim * start.element_size())):
    finished = sample(kernel, big, start, 10)

# %% tags=["hide-input"]
claim(
    "Steps that a run from a file of 164 MB did, on Linux in 1.5 times the memory of "
    "a minibatch and the network",
    len(finished.samples),
    near=10,
    within=0,
    because="a step copies its minibatch, 41 MB, and nothing else of the data",
    kind="exact",
)
folder.cleanup()

# %% [markdown]
# In another session `from_disk(folder)` gives the same tensors without reading the stream again.
#
# A NumPy file of one's own needs no copy: `torch.from_numpy(numpy.load("x.npy", mmap_mode="r"))` is a tensor for reading.
# PyTorch warns that it must not be written into, and a program that does so is ended by the system: standardise by `(x - mean) / scale` in the likelihood, or before the file is written, and never in place.
#
# Give tuning and sampling the file itself, and not a part of it, because a kernel that is tuned on a tenth of the data makes samples that are far too wide for all of them.
#
# ## A kernel of your own
#
# ```{index} ! kernel of your own, ! Barker
# ```
#
# A sampler of one's own has every potential of the package, too, and from `sample` it has many chains, warm-up, statistics and checkpoints.
# A kernel says in which state a chain starts, `init`, and how it moves, `step`.
# The *state* is all that a chain needs to go on; what a step *learned* is kept apart, and becomes a statistic of the draws.
# This one is the rule of {cite:t}`barker1965` ({ref}`ex-chain-barker`). It is right but wasteful: given the proposals, no rule in detailed balance has averages of smaller variance in long runs than Metropolis {cite:p}`peskun1973`.


# %%
class State(NamedTuple):
    position: Tensor  # (chains, dim)
    energy: Tensor  # U there, (chains,)


class Info(NamedTuple):
    acceptance: Tensor  # (chains,)


@dataclass(frozen=True)
class Barker(Kernel):
    step_size: float

    def init(self, potential, position, generator):
        return State(position.clone(), potential.energy(position))

    def step(self, potential, state, generator):
        noise = torch.randn(state.position.shape, generator=generator)
        position = state.position + self.step_size * noise
        energy = potential.energy(position)
        acceptance = torch.sigmoid(state.energy - energy)
        accepted = torch.rand(energy.shape, generator=generator) < acceptance
        position = torch.where(accepted[:, None], position, state.position)
        energy = torch.where(accepted, energy, state.energy)
        return State(position, energy), Info(acceptance)


well = DoubleWell()
barker = sample(Barker(1.5), well, torch.zeros(1_000, 1), 1_000, warm_up=100, seed=1)

# %% tags=["hide-input"]
square, error = barker.mean_and_standard_error(lambda x: x**2)
claim(
    "E[θ²] of the double well by Barker's rule",
    square,
    near=round(expectation(well, lambda x: x**2, -4, 4), 5),
    standard_error=error,
    because="quadrature; 1,000 chains",
)

# %% [markdown]
# ## In practice
#
# * Write the prior and the likelihood apart, and let nothing but the plate, or `batch_size`, scale anything.
# * Look at the names, shapes and ranges of ten samples before you ask for ten thousand.
# * Let `default_kernel` choose the step, the friction and the noise estimate; then compare with half the step, as {doc}`/book/practice/tuning` says.
# * Give data the type of the parameters: `y.float()` for a `Bernoulli`, and in a program tensors of `torch.get_default_dtype()`.
# * Draw weights outside of the plate of the data, and make a `pyro.param`, which has no prior, a `pyro.sample`.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | the minibatch energy | $-\log p(g(x)) - \log\lvert\det g'(x)\rvert - \frac Nn\sum_{i\in S}\log p(y_i \mid g(x))$, {eq}`eq-any-energy` |
# | its gradient is right on average | {prf:ref}`thm-minibatch` |
# | the density of a parameter without constraints | $p(g(x))\lvert\det g'(x)\rvert$, {prf:ref}`lem-reference-jacobian` |
# | the energy of a program | {prf:ref}`alg-any-run` |
#
# ## Change it
#
# * Set `N, n, tau, average = 100, 10, 0.2, 1.0` to `N, n, tau, average = 100, 10, 2.0, 1.0`: the prior hardly counts, even tenfold, and in {numref}`fig-any-scales` the lower curve lies nearly on the posterior.
# * Set `itertools.combinations(range(8), 3)` to `itertools.combinations(range(7), 3)`: one school is in no minibatch, and the claim on the mean gradient over all minibatches shows ✗.
# * Set `HalfNormal(1).log_prob(p["s"])` to `HalfNormal(0.02).log_prob(p["s"])`: SGHMC and NUTS agree on the new posterior, for they share the model; the Pyro program further down has the old prior, and its claims show ✗.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-any-scales
#
# With the weight $w$ on the prior and $v$ on a minibatch's likelihood of $n$ examples the precision is $w/\tau^2 + vn$.
# Compute mean and standard deviation of the three distributions of {numref}`fig-any-scales`.
# For which $\tau$ would the second mistake hardly be seen?
# ```
#
# ```{solution} ex-any-scales
# :class: dropdown
#
# With $\bar y = 1$ the precision is $w\cdot25 + 10v$, the mean $10v$ over it.
# Right, $w = 1$, $v = 10$: precision 125, mean 0.8, standard deviation 0.089.
# Forgotten, $v = 1$: 35, 0.29, 0.17.
# On the prior too, $w = v = 10$: 350, 0.29, 0.053.
# With $\tau \gg 1/\sqrt n$ the prior hardly counts even tenfold: for $\tau = 10$ the precisions are 100.01 and 100.1.
# ```
#
# ```{exercise}
# :label: ex-any-write
#
# *Write it yourself.* Write {eq}`eq-any-energy` for the regression and one chain, with $x = (b_1, b_2, b_3, \log s)$ and nothing but sums, logarithms and exponentials.
# Assignment 2 of the {doc}`coursework </book/practice/teaching>` asks for the gradient of such an energy.
#
# ~~~python
# def my_energy(position, inputs, targets, N):
#     """A number, from (4,), and a minibatch of n examples of N."""
#     b, s = position[:3], position[3].exp()
#     ...
# ~~~
# ```
#
# ```{solution} ex-any-write
# :class: dropdown
#
# The cell below has it.
# $\log\lvert g'\rvert = \log s$, and $N^+(0, 1)$ has twice the density of $N(0, 1)$.
# ```


# %% tags=["hide-input"]
def my_energy(position, inputs, targets, N):
    """A number, from (4,), and a minibatch of n examples of N."""
    b, s = position[:3], position[3].exp()
    root = 0.5 * math.log(2 * math.pi)
    prior = -0.5 * b.square().sum() - 3 * root  # of b
    prior += math.log(2) - 0.5 * s**2 - root  # of s
    residuals = (targets - inputs @ b) / s
    likelihoods = -0.5 * residuals.square() - s.log() - root
    return -prior - s.log() - N / len(targets) * likelihoods.sum()


place = double.initial_position(1, generator)
batch = torch.randperm(2000, generator=generator)[:100]
mine = my_energy(place[0], x[batch].double(), y[batch].double(), 2000)
theirs = double.energy_given(place, batch[None])[0]
claim(
    "Difference of this energy from the package's, relative",
    (mine - theirs).abs() / theirs.abs(),
    at_most=1e-10,
    because="the same formula; rounding",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-any-one
#
# Somebody has `log_density(p, batch)`, the log-prior plus the sum of the log-likelihoods of a batch `(x, y)`, without a factor $N/n$.
# Make the two functions of it.
# What if it gives the *mean* of the log-likelihoods, plus the log-prior over $N$?
# ```
#
# ```{solution} ex-any-one
# :class: dropdown
#
# Take the terms without data for the prior.
# Without looking inside: a batch of no examples has the prior left, and one example less the prior is its likelihood.
#
#     def log_prior(p):
#         return log_density(p, (x[:0], y[:0]))
#
#     def of_one(p, x, y):
#         return log_density(p, (x[None], y[None])) - log_prior(p)
#
#     log_likelihood = torch.func.vmap(of_one, (None, 0, 0))
#
# That costs the prior once for each example, and rounding; two functions are better.
# With a mean the batch of no examples gives `nan`: separate the terms by hand, and multiply the prior's by $N$.
# ```
#
# ```{exercise}
# :label: ex-any-module
#
# A regression by a module `net` has an unknown noise $s$.
# Write its shapes and its likelihood.
# ```
#
# ```{solution} ex-any-module
# :class: dropdown
#
#     shapes = {name: w.shape for name, w in net.named_parameters()} | {"s": ()}
#
#     def log_likelihood(p, x, y):
#         weights = {name: w for name, w in p.items() if name != "s"}
#         mean = functional_call(net, weights, (x,))[:, 0]
#         return Normal(mean, p["s"]).log_prob(y)
#
# With `[:, 0]` the outputs have the shape of the targets, $(n,)$.
# The prior adds up over all weights and takes $s$ too.
# ```
#
# ```{exercise}
# :label: ex-any-dependent
#
# A program draws `high` from a law on positive numbers and `low` from $U(0, \text{high})$.
# Write down both maps and the log-Jacobian.
# What would be wrong with a map onto $(0, h)$ that was made once, when `high` was $h$?
# ```
#
# ```{solution} ex-any-dependent
# :class: dropdown
#
# $\text{high} = e^{x_1}$ and $\text{low} = \text{high}/(1 + e^{-x_2})$.
# The matrix of derivatives is triangular, so that $\log\lvert\det g'\rvert = x_1 + \log\text{high} + \log u + \log(1 - u)$ with $u = 1/(1 + e^{-x_2})$.
# A fixed map would give values of `low` above `high`, where the density is zero, whenever `high` is below $h$, and none between $h$ and `high` when it is above; and the term $\log\text{high}$ would be a constant.
# ```
#
# ```{exercise}
# :label: ex-any-discrete
#
# Of the schools each was coached with probability $\frac12$, which adds 10 points.
# Write the program without a discrete site.
# ```
#
# ```{solution} ex-any-discrete
# :class: dropdown
#
# $p(y_j) = \frac12N(y_j \mid \theta_j, \sigma_j^2) + \frac12N(y_j \mid \theta_j + 10, \sigma_j^2)$, so in the plate of the data
#
#     both = torch.stack([dist.Normal(theta[i], error[i]).log_prob(effect[i]),
#                         dist.Normal(theta[i] + 10, error[i]).log_prob(effect[i])])
#     pyro.factor("effect", both.logsumexp(0) + math.log(0.5))
#
# A `pyro.factor` in the plate is part of the likelihood of each example, and scaled like it.
# Afterwards the probability that a school was coached follows from the two terms at each draw.
# ```
#
# ```{exercise}
# :label: ex-any-local
#
# Let $y_i \sim N(\theta_i, 1)$ with $\theta_i \sim N(\mu, s^2)$ for a million $i$.
# Write a program that may see minibatches.
# ```
#
# ```{solution} ex-any-local
# :class: dropdown
#
# Integrate out: $y_i \sim N(\mu, 1 + s^2)$.
# The sites are $\mu$ and $s$; in the plate with `subsample_size` stands `pyro.sample("y", dist.Normal(mu, (1 + s**2).sqrt()), obs=y[i])`.
# Given a draw of $\mu$ and $s$, each $\theta_i$ that one wants is $N\bigl((y_i s^2 + \mu)/(1 + s^2),\ s^2/(1 + s^2)\bigr)$.
# ```
#
# ## Further reading
#
# {cite:t}`bingham2019` describe Pyro, handlers and plates.
# {cite:t}`carpenter2017` describe Stan, whose list of maps {cite:p}`stanmanual` is the usual one; {cite:t}`papaspiliopoulos2007` say when to centre.
# Why paths and minibatches do not go together is the subject of {cite:t}`betancourt2015`.
