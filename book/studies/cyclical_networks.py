# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Cycles for networks
#
# ```{div} page-head
# Level: second course · Reading: about 21 minutes, without the exercises · Running: about 3 seconds
# ```
#
# ```{index} ! snapshots, ! cold posterior, CIFAR-10, cosine annealing
# ```

# %%
import torch

from booklib.page.claims import check, near
from booklib.runs.results import Seeds
from booklib.scores.seeds import family
from sgmc.splittings import LinearChain

# %% tags=["hide-input"]
import math
from functools import partial

import matplotlib.pyplot as plt

from booklib.data import digits
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import DECIDED, OPEN, at_most
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result, who_ran
from sgmc import sample
from sgmc.kernels import SGLD
from sgmc.other_kernels import Cyclical
from sgmc.posteriors import NetworkPosterior

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# A *cycle* of $\ell$ steps has the sizes $\frac12\eta_0\bigl(1 + \cos(\pi t/\ell)\bigr)$, $t < \ell$: first large, to explore, then small, to sample ({doc}`/book/further/cyclical`). {cite:t}`zhang2020` report test errors on CIFAR-10: cycles lower that of SGLD from 5.20 to 4.29 %, that of SGHMC from 4.93 to 4.27 %. The same cycles without noise, which give *snapshots* {cite:p}`huang2017`, have 4.46 and 4.39 %.
# Do cycles help a network, and is it the sampling that helps?
#
# **On a small network SGHMC errs less with cycles than at a constant step: the difference is {c}`cycles` points (mean and 95 % interval, five seeds, temperature 1; validation took the smallest of three rates for both). It is not the sampling: without noise the same cycles differ by at most {c}`at-most` points, and one descent whose rate falls once is ahead of both (cSGHMC minus the descent: {c}`descent`).**
# {numref}`fig-cycles` shows these differences beside the published ones. At the temperature of the authors' program the table's own four comparisons all stay open. Intervals are of single comparisons; *decided* allows for how many there are ({doc}`/book/studies/mnist`).

# %%
mnist, cifar = Seeds.read("neighbours"), Seeds.read("ordering")  # five seeds each
SOURCE = (
    ("cSGLD", "SGLD"),
    ("cSGHMC", "SGHMC"),
    ("cSGLD", "snapshots of SGD"),
    ("cSGHMC", "snapshots with momentum"),
)
OURS = (
    *SOURCE,
    ("snapshots of SGD", "SGD"),
    ("snapshots with momentum", "SGD with momentum"),
    ("cSGHMC", "SGD with momentum"),
    ("SGHMC", "SGLD"),
    ("cSGHMC", "cSGLD"),
    ("SGHMC, cold", "SGHMC"),
    ("cSGHMC, cold", "cSGHMC"),
)


def cold(name):
    """A method at the temperature that the source's program has by default."""
    return f"{name}, cold" if f"{name}, cold" in cifar.methods else name


def errors(seeds, *names):
    return [seeds(name, "scores.error", 100) for name in names]


own = family({pair: errors(cifar, *map(cold, pair)) for pair in SOURCE})
ours = family(
    {
        (data, *pair): errors(seeds, *pair)
        for data, seeds in (("CIFAR-10", cifar), ("MNIST", mnist))
        for pair in OURS
    }
)

# %% mystnb={"figure": {"caption": "Test error of the first method minus that of the second, in points, on our small network at the temperature of the program (rings) and at $T = 1$ (dots), mean of five seeds with its 95 % interval, and as published for a ResNet-18 (crosses). Left of zero the first is ahead. The letter c stands for cycles. Pink: with momentum.", "name": "fig-cycles"}, "image": {"alt": "Six rows. The crosses lie between minus 0.9 and zero. In the row of cSGHMC minus SGHMC the dot lies at minus 3.3 and the ring at minus 0.6; with SGLD both lie right of zero, the ring at 4.7. Cycles minus snapshots lie on zero. Snapshots minus one descent lie right of zero, at 6.2 and 1.1, where the crosses are at minus 0.8."}} tags=["hide-input"]
published = {
    "SGD": "5.29",
    "SGD with momentum": "5.17",
    "snapshots of SGD": "4.46",
    "snapshots with momentum": "4.39",
    "SGLD": "5.20 ± 0.06",
    "cSGLD": "4.29 ± 0.06",
    "SGHMC": "4.93 ± 0.1",
    "cSGHMC": "4.27 ± 0.03",
}


def theirs(first, second):
    """The published difference in per cent."""
    return float(published[first].split()[0]) - float(published[second].split()[0])


figure, axes = plt.subplots(figsize=(6.2, 3.2))
for row, pair in enumerate(OURS[:6]):
    with_momentum = pair[0] in ("cSGHMC", "snapshots with momentum")
    colour = COLOURS["SGHMC" if with_momentum else "SGLD"]
    for gap, face, up in (
        (ours["CIFAR-10", *pair], colour, 0.12),
        (own.get(pair), "white", -0.12),
    ):
        if gap:
            bar = [[gap.mean - gap.low], [gap.high - gap.mean]]
            look = {"fmt": "o", "ms": 5, "color": colour, "mfc": face, "capsize": 2}
            axes.errorbar(gap.mean, -row - up, xerr=bar, **look)
    axes.plot(theirs(*pair), -row, "x", color="black")
axes.axvline(0, color=TRUTH, zorder=0)
axes.set_yticks([-row for row in range(6)], [" − ".join(p) for p in OURS[:6]])
axes.set(xlabel="difference in error, points")
plt.show()

# %% [markdown]
# *Before you read on: a program adds noise to its steps and finds networks that predict well. How can you tell from one line of it whether it samples the posterior?*
#
# | | the setting |
# | --- | --- |
# | source | a ResNet-18 on CIFAR-10, 200 epochs, four cycles; noise in the last 5 epochs of each, three networks kept |
# | ours | two convolutions of 16 and 32 channels, priors $N(0, 1/\text{fan-in})$, 20,000 images of CIFAR-10 at $16 \times 16$ pixels, 40 epochs for every method; and the MNIST runs of {doc}`/book/studies/neighbours_on_networks`, 60 epochs |
# | cycles | six, noise in the last fifth; 18 networks kept (MNIST 30), of snapshots 6, of a descent its last. The rate of a descent falls once (MNIST, momentum: constant) |
# | cold | $T = 1/N$, $N = 20{,}000$; MNIST: $T = 0.01$ for SGHMC, at a smaller rate, too, and 0.1 for cSGHMC |
# | tuned | three rates each (MNIST three or four) by validation images, one seed, 13 epochs (MNIST 20), in which a cycle has two |
# | run | `python -m experiments run ordering`, {c}`price` minutes a seed on one core |
#
# ## What the program samples
#
# The authors' program for the table is public ([ruqizhang/csgmcmc](https://github.com/ruqizhang/csgmcmc), `experiments/cifar_csghmc.py`). It has a velocity $v$, a decay $\alpha$, a learning rate $lr$ and a temperature $T$, and its gradient is that of the *mean* loss, $U/N$ with $N = 50{,}000$ images:
#
# $$
# v \leftarrow (1 - \alpha)v - lr\,\nabla U(\theta)/N + N\bigl(0,\ 2\,lr\,\alpha\,T/N\bigr), \qquad \theta \leftarrow \theta + v.
# $$ (eq-cyclical-program)
#
# Which distribution does that sample? One direction, in which the mean loss has the curvature $\lambda$, is enough to find out.
#
# ```{prf:proposition} The temperature of the program
# :label: prop-cyclical-temperature
#
# For $U/N = \tfrac12\lambda\theta^2$ with $0 < \alpha \le 1$ and $0 < lr\,\lambda < 4 - 2\alpha$ the step {eq}`eq-cyclical-program` has the stationary variance
#
# $$
# \operatorname{Var}\theta = \frac T{N\lambda}\cdot\frac1{1 - lr\,\lambda/(4 - 2\alpha)}.
# $$ (eq-cyclical-program-law)
# ```
#
# ```{admonition} Proof
# :class: dropdown
#
# Put $v = \theta - \theta_{\text{before}}$ into the step: $\theta_{t+1} = (2 - \alpha - lr\,\lambda)\theta_t - (1 - \alpha)\theta_{t-1} + \xi_t$.
# An autoregression $x_{t+1} = \phi_1x_t + \phi_2x_{t-1} + \xi_t$ has the variance $\sigma^2(1 - \phi_2)/\bigl[(1 + \phi_2)\bigl((1 - \phi_2)^2 - \phi_1^2\bigr)\bigr]$, by its equations for the variance and the covariance of neighbours.
# Here $1 + \phi_2 = \alpha$, $1 - \phi_2 = 2 - \alpha$, and the last bracket is $lr\,\lambda(4 - 2\alpha - lr\,\lambda)$; with $\sigma^2 = 2\,lr\,\alpha\,T/N$ the rest cancels.
# It is stationary where both roots lie inside of the unit circle, that is for $|\phi_2| < 1$ and $|\phi_1| < 1 - \phi_2$.
# ```
#
# The posterior $e^{-U}$ has the variance $1/N\lambda$. So up to the error of the step $T$ is the temperature that its name says: the program samples $e^{-U/T}$. Its default is `1./50000` ("temperature (default: 1/dataset_size)"). So by default it is 50,000 times too cold, nearly an optimum; `--temperature 1` samples the posterior itself.


# %%
N, lr, decay = 50_000, 0.1, 0.9  # and U = ½Nθ²


def program(temperature):
    """The variance of the program's chain, over the posterior's 1/N."""
    kick = torch.tensor([[1.0, 0.0], [-lr, 1 - decay]]).double()
    noise = torch.tensor([0.0, 2 * lr * decay * temperature / N]).double().diag()
    drift = torch.tensor([[1.0, 1.0], [0.0, 1.0]]).double()
    chain = LinearChain(kick, noise).then(LinearChain(drift, 0 * noise))
    return float(chain.stationary_covariance()[0, 0]) * N


for temperature in (1.0, 1 / N):
    print(f"T = {temperature:.5f}: variance {program(temperature):.5f}")
error_of_step = 1 / (1 - lr / (4 - 2 * decay))
check("warm", program(1.0), near(error_of_step, 1e-6), kind="exact", digits=4)
check("default", program(1 / N), near(error_of_step / N, 1e-9), kind="exact", digits=2)

# %% [markdown]
# The variance is {c}`warm` times the posterior's with $T = 1$, and {c}`default` times with the default.
# Networks from such a *cold posterior* often predict better {cite:p}`wenzel2020`, but say little about sampling *the* posterior. With which temperature the table was made is not said; we run both.
# The program also keeps the velocity $v = \varepsilon r$ while the step size falls, although only the momentum $r$ may be handed on; at its $\alpha = 0.9$ that does no harm, because nine tenths of the velocity are forgotten in a step. An early version for cSGLD scaled the noise wrongly; the authors corrected it in March 2019 ([issue 1](https://github.com/ruqizhang/csgmcmc/issues/1)).

# %% [markdown]
# ## Eleven differences
#
# The source's family has the four comparisons of its table, at its program's temperature. Our eleven questions at $T = 1$, on both data sets, make one family of 22.

# %% tags=["hide-input"]
show_table(
    ["error, points [95 %]", "published", "program's T", "T = 1", "MNIST, T = 1"],
    [
        [
            " − ".join(pair),
            f"{theirs(*pair):+.2f}".replace("-", "−") if row < 9 else "",
            own[pair].starred() if pair in own else "",
            ours["CIFAR-10", *pair].starred(),
            ours["MNIST", *pair].starred(),
        ]
        for row, pair in enumerate(OURS)
    ],
)
print("* decided by Holm's procedure in its family; five seeds, given the test images.")
print("On MNIST the descent with momentum has a constant rate.")
print(who_ran(read_result(RESULTS / "ordering.json")))

# %% mystnb={"code_prompt_hide": "Hide the errors themselves", "code_prompt_show": "Show the errors themselves"} tags=["hide-cell"]
show_table(
    ["error, %, mean ± sd", "program's T", "T = 1"],
    [
        [
            name,
            cifar.cell(cold(name), "scores.error", 100) if cold(name) != name else "",
            cifar.cell(name, "scores.error", 100),
        ]
        for name in published
    ],
)

# %% tags=["hide-input"]
cycles = ours["CIFAR-10", "cSGHMC", "SGHMC"]
noise = ours["CIFAR-10", "cSGHMC", "snapshots with momentum"]
farthest = max(abs(noise.low), abs(noise.high))
check("cycles", cycles, DECIDED, kind="stored")
check("at-most", farthest, at_most(abs(cycles.mean) / 4), kind="stored", digits=1)
for name, bound, *key in (
    ("cooling", DECIDED, "CIFAR-10", "SGHMC, cold", "SGHMC"),
    ("descent", DECIDED, "CIFAR-10", "cSGHMC", "SGD with momentum"),
    ("budget", DECIDED, "CIFAR-10", "snapshots of SGD", "SGD"),
    ("mnist", OPEN, "MNIST", "cSGHMC", "SGHMC"),
):
    check(name, ours[tuple(key)], bound, kind="stored")
for name, pair in zip(("seeds-SGLD", "seeds-SGHMC"), SOURCE[:2], strict=True):
    check(name, own[pair], OPEN, kind="stored", margin=abs(theirs(*pair)) / 2)
seconds = sum(cifar(name, "processor_seconds").mean() for name in cifar.methods)
check("price", seconds / 60, kind="stored", digits=1)

# %% [markdown]
# * **The source's comparisons: four times open.** cSGHMC minus SGHMC is {c}`seeds-SGHMC`, published −0.66; cSGLD minus SGLD is {c}`seeds-SGLD`, which points the other way. To decide half of the published difference the first would need {c}`seeds-SGHMC.seeds` seeds and the second {c}`seeds-SGLD.seeds`.
# * **A cycle's gain may be that of less noise when networks are kept.** At the same step and $T = 1/N$ SGHMC has most of it without cycles ({c}`cooling`), and cycles without noise have it, too. A small constant step at $T = 1$ was not run.
# * **Many cycles cost more than they bring.** In the published table snapshots are 0.8 points ahead of a descent. Here they are behind it ({c}`budget` without momentum). Cycles of 7 epochs, not 50, may be the reason; we ran no other length.
# * **On MNIST nothing is decided**: cSGHMC minus SGHMC is {c}`mnist`.
#
# **To remember:** before you credit the noise, run the same cycles without it, a chain at a lower temperature, and one descent of the same length.
#
# ## What this does not show
#
# * *The published table.* A ResNet-18 at 200 epochs, eight methods and five seeds, is 40 trainings; we guess an hour of a graphics card for each.
# * *Longer cycles*: six of 50 epochs take {c}`longer` hours for five seeds of cSGHMC and its snapshots.
# * *A fair choice of rates*: SGLD at $T = 1$ and every method with momentum took the smallest of three, so a smaller one would probably be better.
#
# ## Change it
#
# * In the first cell set `"scores.error"` to `"scores.log_loss"`: cSGHMC is ahead of SGHMC on MNIST, too, and decidedly.
# * In the cell of the program set `0.1, 0.9` to `1.0, 0.9`: both variances grow by the error of the step, {eq}`eq-cyclical-program-law`, which is now 83 %, whatever the temperature.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-cyclical-temperature
#
# ★ *Compute.* Show that {eq}`eq-cyclical-program` is SGHMC in the learning-rate form of {doc}`/book/tutorial/sghmc`. By which factor is the standard deviation of the noise too small at the program's default?
# ```
#
# ```{solution} ex-cyclical-temperature
# :class: dropdown
#
# In the learning-rate form the gradient is that of $U$, so $\eta = lr/N$, and noise of temperature $T$ has the variance $2\alpha\eta T = 2\,lr\,\alpha\,T/N$: the same $T$. With $T = 1/N$ the standard deviation is $\sqrt N = 224$ times too small.
# ```
#
# ````{exercise}
# :label: ex-cyclical-snapshots
#
# ★★ **Write it yourself.** Take snapshots of SGD: descend with the step sizes $\frac12\eta_0\bigl(1 + \cos(\pi t/\ell)\bigr)$ in step $t = 0, \dots, \ell - 1$ of each cycle, and return the weights at its end.
#
# ```python
# def snapshots(posterior, theta, highest, length, number, generator):
#     ends = []
#     for step in range(number * length):
#         eta = ...  # the schedule
#         gradient = posterior.stochastic_gradient(theta, generator, step)
#         ...
#     return torch.stack(ends)
# ```
# ````
#
# ````{solution} ex-cyclical-snapshots
# :class: dropdown
#
# ```python
# def snapshots(posterior, theta, highest, length, number, generator):
#     ends = []
#     for step in range(number * length):
#         eta = highest / 2 * (1 + math.cos(math.pi * (step % length) / length))
#         theta = theta - eta * posterior.stochastic_gradient(theta, generator, step)
#         if step % length == length - 1:
#             ends.append(theta)
#     return torch.stack(ends)
# ```
#
# Noise of variance $2\eta$ in the last fifth of each cycle makes it cSGLD.
# ````


# %% tags=["hide-input"]
def snapshots(posterior, theta, highest, length, number, generator):
    ends = []
    for step in range(number * length):
        eta = highest / 2 * (1 + math.cos(math.pi * (step % length) / length))
        theta = theta - eta * posterior.stochastic_gradient(theta, generator, step)
        if step % length == length - 1:
            ends.append(theta)
    return torch.stack(ends)


train, _ = digits()
module = multilayer_perceptron([784, 50, 10])
network = NetworkPosterior(module, train.inputs.double(), train.targets, batch_size=500)
begin = network.initial_position(1, torch.Generator().manual_seed(0)).double()
mine = snapshots(network, begin, 1 / 4_000, 64, 2, torch.Generator().manual_seed(0))
descent = Cyclical(partial(SGLD, temperature=0.0), 1 / 4_000, 64)
away = (mine - sample(descent, network, begin, 2, seed=0).samples).abs().max()
words = "The solution's two snapshots minus the package's"
check("by-hand", away, near(0, 1e-9), kind="exact", says=words)
both = ("cSGHMC", "snapshots with momentum")
one = sum(cifar(name, "processor_seconds").mean() for name in both)
check("longer", 5 * one * 300 / 40 / 3_600, kind="stored", digits=1)

# %% [markdown]
# ```{exercise}
# :label: ex-cyclical-diagnose
#
# ★★ *Diagnose.* A paper samples with six cycles of 50 epochs and averages eighteen networks. It compares them with one network of 50 epochs, and says that sampling wins. Name two comparisons with the same budget that can prove it wrong.
# ```
#
# ```{solution} ex-cyclical-diagnose
# :class: dropdown
#
# The 300 epochs buy six networks from separate descents, an ensemble; and six snapshots of the same cycles without noise. If either is level, neither the noise nor the cycles have earned the gain; averaging has.
# ```
#
# ## Further reading
#
# {cite:t}`zhang2020` for the method; {cite:t}`huang2017` and {cite:t}`loshchilov2017` for the same wave in optimisation; {cite:t}`izmailov2021` for the temperature of a network's posterior.
