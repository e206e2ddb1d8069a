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

from booklib.page.claims import DECIDED, OPEN, at_least, at_most
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result, who_ran
from sgmc.splittings import sghmc_chain

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# A kernel of temperature $T$ samples from a density in proportion to $p(\theta \mid \mathcal D)^{1/T}$. Deep networks predict best at $T < 1$, found {cite:t}`wenzel2020`; the prior, the likelihood or the sampler might be the cause.
# {cite:t}`izmailov2021` blame data augmentation, {cite:t}`kapoor2022` the likelihood, {cite:t}`fortuin2022` the prior; {cite:t}`noci2021` find that each suffices and none is needed.
# Whether it is the sampler can be measured: it has a temperature of its own.
#
# **On digits it is not: with 10,360 weights the log loss at $T = 0.1$ less that at $T = 1$ is {c}`gain`, and the chains' own temperature in the weights is within {c}`within` % of the one asked for at every $T$. With 1,210 weights there is no such effect ({c}`loss`, open), but a narrow prior, wrong labels or averaged copies of the images each bring it ({numref}`fig-cold`).**
# Below $T = 0.1$ the smaller network's sampler *is* at fault: at $T = 0.01$ its chains are up to {c}`hot` times too hot.
#
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
check("loss", loss, OPEN, kind="stored")

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
        right.errorbar(TEMPERATURES, *ratios.T, fmt=style, ms=3, color=COLOURS[colour])
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
right.minorticks_off()
plt.show()

# %% [markdown]
# *Before you read on: why is a chain that was asked for $T = 0.01$ hotter, and one that was asked for $T = 1$ not?*
#
# | | the setting |
# | --- | --- |
# | networks | digits at 7 × 7 pixels, 49–20–10, or 14 × 14, 196–50–10; ReLU; prior $\mathcal N(0, 1)$; 4,000 examples |
# | chains | SGHMC, minibatches of 1,000, $\hat B$ from each of them; four chains of 10,000 steps from random starts, of which 200 of the second half are kept; three seeds |
# | step size | $\eta = 1.6\cdot10^{-4}$, $\alpha = 0.04$, and halved ($\eta$ a quarter, $\alpha$ a half), at most twice, while the weights' temperature is off by more than a tenth |
# | HMC | the smaller network, one seed: 400 paths of 60 steps a chain, from the same starts |
# | tuned | nothing but the step size, on temperature alone |
# | run | `python -m experiments run cold --seeds 3`, about three hours on one core |
#
# ## A minibatch has a temperature of its own
#
# The temperature of positions is $T' = \frac1d\,\mathbb E\,\langle\theta - m, \nabla U\rangle$, by the virial theorem ({doc}`/book/tutorial/estimating_the_noise`). We take it by layer, with the mean $m$ of each chain's other half; so it speaks of the modes that a chain has reached.
#
# Let one gradient have the noise variance $V$, and $\hat\beta = \tfrac12\eta V$. A step $v \leftarrow (1 - \alpha)v - \eta\nabla\tilde U + \mathcal N(0, 2\eta(\alpha T - \hat\beta))$ injects less noise by what the minibatch brings.
# Once $\hat\beta > \alpha T$ there is nothing left to take away: $\hat\beta$ is clipped, and the noise of a step is $\eta^2V$ in place of $2\eta\alpha T$. The temperature is in proportion to it, so for small steps
#
# $$
# T' = \max\Bigl(T, \frac{\eta V}{2\alpha}\Bigr).
# $$ (eq-cold-floor)
#
# That is the answer to the question above: at $T = 1$ the floor is out of sight. Halving the step size halves it.


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
# The smaller network is like this: with $V = 45$ for all weights the law says {c}`floor` at $T = 0.01$ after two halvings, and its first layer has {c}`hot-first`. `sgmc` warns of it: in {c}`clipped` % of weights and steps $\hat\beta$ was clipped, in the larger network, whose gradients are less noisy, in {c}`clipped-larger` %.
#
# What the heat hides, HMC shows: from $T = 1$ to 0.01 the log loss rises by {c}`harm-hmc` with HMC and by {c}`harm` with SGHMC.
#
# ## One cause at a time
#
# Each line below the first two changes one thing of the smaller network, at its step sizes. Intervals are of one comparison alone; a star is decided by Holm's procedure in its family, the two networks or the causes.

# %% tags=["hide-input"]
CAUSES = {
    "prior variance 0.1": "prior variance 0.1",
    "prior variance 10": "prior variance 10",
    "a fifth of the labels drawn anew": "labels flipped",
    "log likelihoods averaged over five copies": "copies averaged",
    "the likelihood tempered, not the prior": "likelihood tempered",
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

# %% mystnb={"code_prompt_hide": "Hide errors, calibration errors and temperatures", "code_prompt_show": "Show errors, calibration errors and temperatures"} tags=["hide-cell"]
show_table(
    ["error %; calibration error; T'/T of both layers", *map(str, TEMPERATURES)],
    [
        [
            label,
            *(
                f"{seeds(method, 'average.error', 100).mean():.1f}; "
                f"{seeds(method, 'average.calibration_error').mean():.3f}; "
                f"{own(arm, t, '0.weight')[0]:.1f}, {own(arm, t, '2.weight')[0]:.1f}"
                for t in TEMPERATURES
                for method in [f"{arm}, T = {t:g}"]
            ),
        ]
        for label, arm in shown.items()
    ],
)

# %% tags=["hide-input"]
LAYERS = ("0.weight", "2.weight")
larger = [own("larger network", t, x)[0] for t in TEMPERATURES for x in LAYERS]
within = 100 * np.abs(np.array(larger) - 1).max()
check("within", within, at_most(10), kind="stored", digits=1)
first, second = (own("base", 0.01, layer)[0] for layer in LAYERS)
check("hot-first", first, at_least(2), kind="stored", digits=2)
check("hot", second, at_least(2), kind="stored", digits=2)


def clipped(arm):
    runs = seeds.methods[f"{arm}, T = 0.01"]["runs"]
    return 100 * np.mean([run["tries"][-1]["clipped"] for run in runs])


check("clipped", clipped("base"), kind="stored", digits=2)
check("clipped-larger", clipped("larger network"), kind="stored", digits=1)
check("harm-hmc", hmc[0.01] - hmc[1], kind="stored", digits=2)
check("harm", networks["base", 0.01], kind="stored")
check("narrow", causes["prior variance 0.1", 0.1], DECIDED, kind="stored")
check("wide", causes["prior variance 10", 0.01], DECIDED, kind="stored")
check("flipped", causes["labels flipped", 0.1], DECIDED, kind="stored")
check("copies", causes["copies averaged", 0.1], DECIDED, kind="stored")
cold, plain = log_loss("copies averaged", 0.1).mean(), log_loss("base", 1).mean()
check("copies-cold", cold, at_least(plain), kind="stored", digits=3)
check("tempered", causes["likelihood tempered", 0.1], DECIDED, kind="stored")

# %% [markdown]
# * **The prior.** Narrower, it makes cold better, {c}`narrow` at $T = 0.1$; wider, worse, {c}`wide` at 0.01. To temper the likelihood alone is worse, too, {c}`tempered`. The three are one: $p(\theta \mid \mathcal D)^{1/T}$ with the prior variance $v$ is the likelihood to the power $1/T$ with the variance $vT$. A cold posterior has a narrower prior *and* more faith in its labels.
# * **Labels that are wrong.** Trained with a fifth of its labels drawn anew and tested on right ones, the network gains {c}`flipped`: it was right to believe in noise, and the test has none.
# * **Copies.** To average log likelihoods over moved copies tells the network that a label is worth a fifth in each place. That makes $T = 1$ worse, and $T = 0.1$ gains {c}`copies`, but with {c}`copies-cold` cold copies are no better than none at $T = 1$.
#
# **Verdict: in the larger network the effect is the model's, within the modes reached; below $T = 0.1$ the smaller network's curve is the sampler's.** Who reports a best $T$ should show $T'$ beside it.
#
# **To remember:** a sampler has a coldest temperature, $\eta V/2\alpha$.
#
# ## What this does not show
#
# * *Modes that were not reached*: the virial theorem and HMC from the same starts see those that a chain is in.
# * *Why the larger network gains*: its prior and labels were not varied; an hour and a half.
# * *A convolutional network*: two hours. *A residual network on CIFAR, where {cite:t}`wenzel2020` found the effect* (they check their chains by two temperatures, too): days.
# * *Averaged probabilities*, which {cite:t}`nabarro2022` propose for copies: an hour and a half. *Curated labels* {cite:p}`aitchison2021`: the opposite of our wrong ones.
# * *HMC with more than one seed*: 25 minutes each.
#
# ## Change it
#
# * In the cell of `temperature_of` set `noise=45` to `noise=4.5`: at $T = 0.01$ a quarter of the step size now reaches the temperature asked for, and `floor` shows ✗.
# * In the second cell set `"average.log_loss"` to `"average.error"`: the larger network errs a quarter of a point less at $T = 0.1$, which three seeds do not decide, and `gain` shows ✗.
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
