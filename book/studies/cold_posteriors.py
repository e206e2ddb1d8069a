# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Cold posteriors
#
# ```{div} page-head
# Level: second course · Reading: about 20 minutes, without the exercises · Running: about 3 seconds
# ```
#
# ```{index} ! cold posterior, ! temperature; of a posterior, tempering, data augmentation
# ```

# %%
from booklib.page.claims import check, near
from booklib.runs.results import Seeds
from booklib.scores.seeds import family

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
import torch

from booklib.page.claims import DECIDED, at_least, at_most
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result, who_ran
from sgmc.splittings import sghmc_chain

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# A kernel of temperature $T$ samples from a density proportional to $p(\theta \mid \mathcal D)^{1/T}$. Deep networks predict best at $T < 1$, found {cite:t}`wenzel2020`, and gave as causes the prior, the likelihood, or the sampler.
# {cite:t}`izmailov2021` blame data augmentation, {cite:t}`kapoor2022` the likelihood, {cite:t}`fortuin2022` the prior; {cite:t}`nabarro2022` and {cite:t}`noci2021` find the effect without any single one of them.
# Could it be the sampler? Its own temperature can be measured.
#
# **Not here: on a network of 10,360 weights $T = 0.1$ has a smaller log loss than $T = 1$, by {c}`gain` [95 %], while the chain's temperature in the weights is within {c}`within` % of the one asked for. On one of 1,210 weights cold is worse by {c}`loss`, and long HMC agrees; but there, at $T = 0.01$, the chain is {c}`hot` times too hot, which hides most of the harm ({numref}`fig-cold`).**

# %%
seeds = Seeds.read("cold")  # three seeds an arm and temperature
TEMPERATURES = (1, 0.3, 0.1, 0.03, 0.01)
NETWORKS = {"1,210 weights": "base", "10,360 weights": "larger network"}


def log_loss(arm, temperature):
    return seeds(f"{arm}, T = {temperature:g}", "average.log_loss")


def colder(arms):
    """Log loss at each lower temperature less that at T = 1: one family."""
    return family(
        {
            (arm, temperature): (log_loss(arm, temperature), log_loss(arm, 1))
            for arm in arms
            for temperature in TEMPERATURES[1:]
        }
    )


networks = colder(NETWORKS.values())
gain = networks["larger network", 0.1]
loss = networks["base", 0.1]
print(f"10,360 weights: {gain}, 1,210 weights: {loss}")
check("gain", gain, DECIDED, kind="stored")
check("loss", loss, kind="stored")

# %% mystnb={"figure": {"caption": "Left: log loss of the average on 10,000 test digits, mean of three seeds from the least to the largest; crosses: long HMC for the smaller network, one seed. Right: the chains' own temperature in the weights of the first layer (points) and the second (squares), in units of the one asked for.", "name": "fig-cold"}, "image": {"alt": "Left: the larger network's log loss falls from 0.175 at T = 1 to 0.155 at 0.1 and stays; the smaller one's is flat at 0.207 down to 0.3 and rises to 0.215, with HMC's last cross at 0.232. Right: the larger network's points lie at one; the smaller one's rise to three and five at T = 0.01."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.0))


def own(arm, temperature, layer):
    """The chains' temperature in units of T, by layer, and its standard error."""
    runs = seeds.methods[f"{arm}, T = {temperature:g}"]["runs"]
    pairs = [run["tries"][-1]["temperatures"][layer] for run in runs]
    mean, error = np.array(pairs).T
    return mean.mean(), np.sqrt((error**2).sum()) / len(error)


for (label, arm), colour in zip(NETWORKS.items(), ("SGHMC", "SGLD"), strict=True):
    values = np.array([log_loss(arm, t) for t in TEMPERATURES])
    mean = values.mean(1)
    bars = [mean - values.min(1), values.max(1) - mean]
    left.errorbar(
        TEMPERATURES, mean, bars, fmt="o-", ms=3, color=COLOURS[colour], label=label
    )
    for layer, style in (("0.weight", "o-"), ("2.weight", "s--")):
        ratios = np.array([own(arm, t, layer) for t in TEMPERATURES])
        right.errorbar(
            TEMPERATURES, *ratios.T, fmt=style, ms=3, color=COLOURS[colour]
        )
exact = {
    t: seeds.methods[f"base, T = {t:g}"]["runs"][0]["exact"] for t in (1, 0.1, 0.01)
}
hmc = {t: run["average"]["log_loss"] for t, run in exact.items()}
left.plot(list(hmc), list(hmc.values()), "x", color=TRUTH, label="long HMC")
left.set(xscale="log", xlabel="$T$", ylabel="log loss")
left.legend()
right.axhline(1, color=TRUTH, zorder=0)
right.set(xscale="log", yscale="log", xlabel="$T$", ylabel="own temperature / $T$")
right.set_yticks([1, 2, 5], ["1", "2", "5"])
plt.show()

# %% [markdown]
# *Before you read on: why is a chain that was asked for $T = 0.01$ hotter, and one that was asked for $T = 1$ not?*
#
# | | the setting |
# | --- | --- |
# | networks | digits at 7 × 7 pixels, 49–20–10, or 14 × 14, 196–50–10; ReLU; prior $\mathcal N(0, 1)$; 4,000 examples |
# | chains | SGHMC, minibatches of 1,000, $\hat B$ from each minibatch; four chains, 10,000 steps, the second half kept; all arms at equal gradients |
# | step size | $\eta = 1.6\cdot10^{-4}$, $\alpha = 0.04$; halved ($\eta$ a quarter, $\alpha$ a half) where a layer's temperature is off by more than a tenth, at most twice |
# | HMC | 200 draws of warm-up and 400 kept, 60 steps each, from the same four starts |
# | run | `python -m experiments run cold --seeds 3` |
#
# ## A minibatch has a temperature of its own
#
# The temperature of a chain is $T' = \frac1d\,\mathbb E\,\langle\theta - m, \nabla U\rangle$, by the virial theorem ({doc}`/book/tutorial/estimating_the_noise`); we take it by layer, with each chain's other half for the mean $m$, so it speaks of the modes that the chain has reached.
#
# Let one gradient have the noise variance $V$. A step $v \leftarrow (1 - \alpha)v - \eta\nabla\tilde U + \mathcal N(0, 2\eta(\alpha T - \hat\beta))$ with $\hat\beta = \tfrac12\eta V$ replaces the noise of the minibatch by part of what it would inject.
# When $\hat\beta > \alpha T$ there is nothing left to subtract from, $\hat\beta$ is clipped, and the noise that arrives is $\eta^2V$ instead of $2\eta\alpha T$. As the temperature is in proportion to it, for small steps
#
# $$
# T' = \max\Bigl(T, \frac{\eta V}{2\alpha}\Bigr).
# $$ (eq-cold-floor)
#
# No sampler with this step can be colder than {eq}`eq-cold-floor`; that is what $T = 1$ never meets. Halving the step size halves the floor.


# %%
def temperature_of(T, learning_rate, momentum_decay, noise):
    """The exact temperature of SGHMC's positions on U = θ²/2."""
    step_size = learning_rate**0.5
    friction = momentum_decay / step_size
    estimate = min(step_size / 2 * noise, T * friction)  # clipped
    given = {"noise_estimate": estimate, "temperature": T}
    chain = sghmc_chain(torch.eye(1), step_size, friction, noise, **given)
    return float(chain.stationary_covariance()[0, 0])


for T in TEMPERATURES:
    first, last = (
        temperature_of(T, 1.6e-4 / halved**2, 0.04 / halved, noise=45) / T
        for halved in (1, 4)
    )
    print(f"T = {T:4}: {first:5.2f} T, with a quarter of the step size {last:.2f} T")
check("floor", last, near(2.25, 0.01), kind="exact", digits=2)

# %% [markdown]
# With $V = 45$, chosen so that the first line for $T = 0.01$ is what the first layer shows at the full step size, {eq}`eq-cold-floor` says {c}`floor` after two halvings; the chain has {c}`hot-first`, because the weights do not all have the same $V$.
#
# ## One cause at a time
#
# Each arm changes one thing of the smaller network. The intervals are log losses less that of the same arm at $T = 1$; a star is decided by Holm's procedure within its family, the two networks or the causes.

# %% tags=["hide-input"]
CAUSES = {
    "prior variance 0.1": "prior variance 0.1",
    "prior variance 10": "prior variance 10",
    "a fifth of the labels drawn anew": "labels flipped",
    "likelihood tempered, the prior not": "likelihood tempered",
    "five copies an image, log likelihoods averaged": "copies, log likelihoods averaged",
}
causes = colder(CAUSES.values())
shown = NETWORKS | CAUSES
gaps = networks | causes
show_table(
    ["log loss", "T = 1", *(f"T = {t:g}, less T = 1" for t in TEMPERATURES[1:])],
    [
        [
            label,
            f"{log_loss(arm, 1).mean():.3f}",
            *(gaps[arm, t].starred() for t in TEMPERATURES[1:]),
        ]
        for label, arm in shown.items()
    ],
)
print(who_ran(read_result(RESULTS / "cold.json")))

# %% tags=["hide-cell"]
show_table(
    ["error %, calibration error, own temperatures / T", *map(str, TEMPERATURES)],
    [
        [
            label,
            *(
                f"{seeds(method, 'average.error', 100).mean():.2f}, "
                f"{seeds(method, 'average.calibration_error').mean():.3f}, "
                f"{own(arm, t, '0.weight')[0]:.2f} and {own(arm, t, '2.weight')[0]:.2f}"
                for t in TEMPERATURES
                for method in [f"{arm}, T = {t:g}"]
            ),
        ]
        for label, arm in shown.items()
    ],
)

# %% tags=["hide-input"]
first = own("base", 0.01, "0.weight")[0]
check("hot-first", first, at_least(2), kind="stored", digits=2)
check("hot", own("base", 0.01, "2.weight")[0], at_least(2), kind="stored", digits=2)
off = max(
    abs(own("larger network", t, layer)[0] - 1)
    for t in (1, 0.3, 0.1)
    for layer in ("0.weight", "2.weight")
)
check("within", 100 * off, at_most(10), kind="stored", digits=2)


# %% [markdown]
# VERDICT
#
# ## What this does not show
#
# * *Modes that were not reached*: the virial theorem and HMC from the same starts see those that a chain is in.
# * *A convolutional network*: the arm `convolutions` of the experiment, an hour. *A residual network on CIFAR, where {cite:t}`wenzel2020` found the effect*: days.
# * *Averaged probabilities*, the likelihood that {cite:t}`nabarro2022` propose for copies: the arm exists and takes an hour and a half.
# * *Curated labels* {cite:p}`aitchison2021`: the opposite of our labels drawn anew.
#
# ## Change it
#
# * In the cell of the floor set `noise=45` to `noise=4.5`: at $T = 0.01$ the first step size is now 0.9 of the floor's ten, and a quarter of it reaches the temperature asked for. Only `floor` shows ✗.
# * In the first cell set `"average.log_loss"` to `"average.error"`: the larger network still gains from cold, by a quarter of a point, and `gain` shows whether that is decided.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-cold-floor
#
# ★ *Compute.* A gradient has the noise variance $V = 100$. You use $\eta = 10^{-5}$ and $\alpha = 0.01$. Which is the coldest posterior that this chain can sample from?
# ```
#
# ```{solution} ex-cold-floor
# :class: dropdown
#
# $\eta V/2\alpha = 10^{-3}/0.02 = 0.05$.
# ```
#
# ````{exercise}
# :label: ex-cold-write
#
# ★★ **Write it yourself.** How often must the step size be halved until the floor is at most a tenth of $T$?
#
# ```python
# def halvings(T, learning_rate, momentum_decay, noise):
#     ...
# ```
# ````
#
# ````{solution} ex-cold-write
# :class: dropdown
#
# ```python
# def halvings(T, learning_rate, momentum_decay, noise):
#     floor = learning_rate * noise / (2 * momentum_decay)
#     return max(0, int(np.ceil(np.log2(10 * floor / T))))
# ```
#
# Every halving costs as many gradients again for the same path.
# ````


# %% tags=["hide-input"]
def halvings(T, learning_rate, momentum_decay, noise):
    floor = learning_rate * noise / (2 * momentum_decay)
    return max(0, int(np.ceil(np.log2(10 * floor / T))))


needed = [halvings(T, 1.6e-4, 0.04, 45) for T in (1, 0.01)]
check("halvings", np.array_equal(needed, [0, 7]), kind="exact", says="The solution")

# %% [markdown]
# ```{exercise}
# :label: ex-cold-diagnose
#
# ★★ *Diagnose.* A paper finds the least log loss at $T = 10^{-3}$ and shows that the momenta have the temperature $10^{-3}$. Which plot do you ask for, and why are the momenta not enough?
# ```
#
# ```{solution} ex-cold-diagnose
# :class: dropdown
#
# The temperature of the positions by layer ({eq}`eq-cold-floor`'s $T'$). One number for all momenta is an average over directions: a few with a large $V$ may be a hundred times hotter, as the first biases are here, and those decide the predictions.
# ```
#
# ## Further reading
#
# {cite:t}`adlam2020` for why a likelihood that expects label noise asks to be cooled; {doc}`/book/studies/fidelity` for how near samplers come to long HMC.
