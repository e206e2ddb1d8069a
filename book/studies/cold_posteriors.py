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
# Level: second course · Reading: about 24 minutes, without the exercises · Running: about 3 seconds
# ```
#
# ```{index} ! cold posterior, ! temperature; of a posterior, tempering, data augmentation
# ```

# %%
import torch

from booklib.page.claims import DECIDED, OPEN, check, near
from booklib.runs.results import Seeds
from booklib.scores.seeds import family
from sgmc.splittings import sghmc_chain

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np

from booklib.page.claims import at_least, at_most
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, read_result, who_ran

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# A kernel of temperature $T$ samples from a density in proportion to $p(\theta \mid \mathcal D)^{1/T}$. Some deep networks predict best at $T < 1$, found {cite:t}`wenzel2020`: a *cold posterior*.
# Is that the model's doing, or the sampler's? A sampler has a temperature of its own, and it can be measured.
#
# **In a network of 10,360 weights cold helps, and we find no fault of the sampler: the log loss at $T = 0.1$ minus that at $T = 1$ is {c}`gain`, and both layers of weights are on average within {c}`within` % of the temperature asked for. In one of 1,210 weights cold gains nothing at $T = 0.1$ ({c}`loss`, open), and at $T = 0.01$ its layers are {c}`hot-first` and {c}`hot` times too hot, so that there its curve is not that of the cold posterior ({numref}`fig-cold`). A network of eight filters gains nothing that three seeds could tell from none: {c}`filters`, open.**
# Intervals are of single comparisons; *decided* allows for how many there are ({doc}`/book/studies/mnist`).
#
# %%
seeds = Seeds.read("cold")  # three seeds an arm and temperature
TEMPERATURES = (1, 0.3, 0.1, 0.03, 0.01)
NETWORKS = {"1,210 weights": "base", "10,360 weights": "larger network"}
NETWORKS |= {"eight filters, 2,970 weights": "convolutions"}


def run_at(arm):
    return [t for t in TEMPERATURES if f"{arm}, T = {t:g}" in seeds.methods]


def log_loss(arm, temperature):
    return seeds(f"{arm}, T = {temperature:g}", "average.log_loss")


def colder(arms):
    """Log loss at each lower temperature minus that at T = 1: one family."""
    return family(
        {
            (arm, temperature): (log_loss(arm, temperature), log_loss(arm, 1))
            for arm in arms
            for temperature in run_at(arm)[1:]
        }
    )


networks = colder(NETWORKS.values())
gain = networks["larger network", 0.1]
loss = networks["base", 0.1]
filters = networks["convolutions", 0.1]
for label, arm in NETWORKS.items():
    print(f"{label}: {networks[arm, 0.1]}")
check("gain", gain, DECIDED, kind="stored")
check("loss", loss, OPEN, kind="stored")
check("filters", filters, OPEN, kind="stored")

# %% mystnb={"figure": {"caption": "Left: log loss of the average on 10,000 test digits, mean of three seeds from the least to the largest; crosses: long HMC for the smaller network, one seed. Right: the chains' own temperature in the weights of the first layer (points) and the second (squares), in units of the one asked for.", "name": "fig-cold"}, "image": {"alt": "Left: the larger network's log loss falls from 0.175 at T = 1 to 0.155 at 0.1 and stays; the smaller one's is flat at 0.207 down to 0.3 and rises to 0.215, with HMC's last cross at 0.232; that of the filters is flat at 0.14. Right: the points of the larger network and of the filters lie near one; the smaller one's rise to three and five at T = 0.01."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.0))


def own(arm, temperature, tensor):
    """The chains' temperature in units of T, by tensor, and its standard error."""
    runs = seeds.methods[f"{arm}, T = {temperature:g}"]["runs"]
    pairs = [[*run["tries"][-1]["temperatures"].values()][tensor] for run in runs]
    mean, error = np.array(pairs).T
    return mean.mean(), np.sqrt((error**2).sum()) / len(error)


FIRST, BIASES, SECOND = range(3)  # first weights, first biases, second weights
colours = COLOURS["SGHMC"], COLOURS["SGLD"], COLOURS["HMC"]
for (label, arm), colour in zip(NETWORKS.items(), colours, strict=True):
    values = np.array([log_loss(arm, t) for t in run_at(arm)])
    mean = values.mean(1)
    bars = [mean - values.min(1), values.max(1) - mean]
    look = {"ms": 3, "color": colour}
    left.errorbar(run_at(arm), mean, bars, fmt="o-", label=label, **look)
    for tensor, style in ((FIRST, "o-"), (SECOND, "s--")):
        ratios = np.array([own(arm, t, tensor) for t in run_at(arm)])
        right.errorbar(run_at(arm), *ratios.T, fmt=style, **look)
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
# | networks | digits at 7 × 7 pixels, 49–20–10, or 14 × 14, 196–50–10, or there eight filters of 3 × 3, stride 2, and then 288–10; ReLU; prior $\mathcal N(0, 1)$; 4,000 examples |
# | chains | SGHMC, minibatches of 1,000, $\hat\beta$ from each of them; four chains of 10,000 steps from random starts, of which 200 of the second half are kept; three seeds |
# | step size | $\eta = 1.6\cdot10^{-4}$, $\alpha = 0.04$, and halved ($\eta$ a quarter, $\alpha$ a half), at most twice, while a layer's temperature is off by more than a tenth; so a cold chain of the smaller network has a quarter of the path; twice throughout for the filters, whose $\hat\beta$ is of every tenth minibatch |
# | HMC | the smaller network, one seed: 400 paths of 60 steps a chain, from the same starts |
# | tuned | nothing but the step size, on temperature alone |
# | run | `python -m experiments run cold --seeds 3`, about four hours on one core |
#
# ## A minibatch has a temperature of its own
#
# The temperature of positions is $T' = \frac1d\,\mathbb E\,\langle\theta - m, \nabla U\rangle$, by the virial theorem ({doc}`/book/tutorial/estimating_the_noise`). We take it by layer, with $m$ the mean of the other half of the same chain. It sees neither modes that a chain has not reached, nor hot and cold directions of one layer that cancel.
#
# Let a gradient have the noise variance $V$, and $\hat\beta = \tfrac12\eta V$. A step $v \leftarrow (1 - \alpha)v - \eta\nabla\tilde U + \mathcal N(0, 2\eta(\alpha T - \hat\beta))$ injects less noise by what the minibatch brings.
# Once $\hat\beta > \alpha T$ there is nothing left to take away: $\hat\beta$ is clipped, and the noise of a step is $\eta^2V$ in place of $2\eta\alpha T$. The temperature is in proportion to it, so for small steps and a $V$ that is known
#
# $$
# T' = \max\Bigl(T, \frac{\eta V}{2\alpha}\Bigr).
# $$ (eq-cold-floor)
#
# That is the answer to the question above: at $T = 1$ the floor is out of sight. Halving the step size halves it. An estimate $\hat V$ of each minibatch makes it $\mathbb E\max(T, \eta\hat V/2\alpha)$, which is never less, and rises before the corner.


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
# Here $V = 45$, chosen so that the first number at $T = 0.01$ is what the first layer shows at the full step size. After two halvings the law says {c}`floor` there, and the layer has {c}`hot-first`; at $T = 0.03$ it says 1.0, and the layer has {c}`hot-corner`. So it is a lower bound, as it should be.
# `sgmc` warns of all this: at $T = 0.01$ it clipped $\hat\beta$ in {c}`clipped` % of weights and steps, in the larger network in {c}`clipped-larger` %. The smaller one's first *biases* are {c}`hot-biases` times too hot even at $T = 1$.
#
# In the one seed with HMC the log loss rises from $T = 1$ to 0.01 by {c}`harm-hmc`, with SGHMC from the same starts by {c}`harm`. Heat would explain it, for a chain that is too hot is at a larger $T$, where the log loss is smaller; so would other modes, for HMC's chains do not agree with each other either.
#
# ## What cools well
#
# {cite:t}`izmailov2021` blame largely data augmentation, {cite:t}`nabarro2022` find the effect in augmented models with a proper likelihood, too, {cite:t}`kapoor2022` blame a likelihood that cannot state its label noise and that augmentation softens, {cite:t}`fortuin2022` in part the prior; {cite:t}`noci2021` find augmentation sufficient but not needed, and expect no single cause.
# Each line below the first three changes one thing of the smaller network, at its step sizes.

# %% tags=["hide-input"]
CAUSES = {
    "prior variance 0.1": "prior variance 0.1",
    "prior variance 10 †": "prior variance 10",
    "a fifth of the labels drawn anew": "labels flipped",
    "log likelihoods averaged over five copies": "copies averaged",
}
causes = colder(CAUSES.values())
shown = NETWORKS | CAUSES
gaps = networks | causes


def one_chain(arm, temperature):
    return seeds(f"{arm}, T = {temperature:g}", "one_chain.log_loss")


alone = family(
    {arm: (one_chain(arm, 0.1), one_chain(arm, 1)) for arm in shown.values()}
)
show_table(
    [
        "log loss",
        "T = 1",
        "0.3, minus T = 1",
        "0.1, minus T = 1",
        "one chain, 0.1",
        "T'/T at 0.1",
    ],
    [
        [
            label,
            f"{log_loss(arm, 1).mean():.3f}",
            *(
                gaps[arm, t].starred() if (arm, t) in gaps else "not run"
                for t in (0.3, 0.1)
            ),
            alone[arm].starred(),
            ", ".join(f"{own(arm, 0.1, x)[0]:.1f}" for x in (FIRST, SECOND, BIASES)),
        ]
        for label, arm in shown.items()
    ],
)
print("* decided by Holm's procedure in its family: networks, causes, one chain.")
print("T'/T: weights of the first and the second layer, first biases.")
print("† has not arrived: one relaxation time of its prior is the whole run.")
print(who_ran(read_result(RESULTS / "cold.json")))

# %% mystnb={"code_prompt_hide": "Hide the other temperatures", "code_prompt_show": "Show the other temperatures, errors and calibration errors"} tags=["hide-cell"]
show_table(
    ["log loss; error %; calibration error; T'/T", *map(str, TEMPERATURES)],
    [
        [
            label,
            *(
                f"{log_loss(arm, t).mean():.3f}; "
                f"{seeds(method, 'average.error', 100).mean():.1f}; "
                f"{seeds(method, 'average.calibration_error').mean():.3f}; "
                f"{own(arm, t, FIRST)[0]:.1f}, {own(arm, t, SECOND)[0]:.1f}"
                if t in run_at(arm)
                else "not run"
                for t in TEMPERATURES
                for method in [f"{arm}, T = {t:g}"]
            ),
        ]
        for label, arm in (
            shown | {"likelihood tempered": "likelihood tempered"}
        ).items()
    ],
)

# %% tags=["hide-input"]
weights = FIRST, SECOND
larger = [own("larger network", t, x)[0] for t in TEMPERATURES for x in weights]
within = 100 * np.abs(np.array(larger) - 1).max()
check("within", within, at_most(10), kind="stored", digits=1)
first, second = (own("base", 0.01, tensor)[0] for tensor in weights)
check("hot-first", first, at_least(2), kind="stored", digits=2)
check("hot", second, at_least(2), kind="stored", digits=2)
corner = own("base", 0.03, FIRST)[0]
check("hot-corner", corner, at_least(1.2), kind="stored", digits=2)
biases = own("base", 1, BIASES)[0]
check("hot-biases", biases, at_least(1.5), kind="stored", digits=2)


def clipped(arm):
    runs = seeds.methods[f"{arm}, T = 0.01"]["runs"]
    return 100 * np.mean([run["tries"][-1]["clipped"] for run in runs])


check("clipped", clipped("base"), kind="stored", digits=2)
check("clipped-larger", clipped("larger network"), kind="stored", digits=1)
check("harm-hmc", hmc[0.01] - hmc[1], kind="stored", digits=2)
of_seed = log_loss("base", 0.01)[0] - log_loss("base", 1)[0]
check("harm", of_seed, kind="stored", digits=1)
check("narrow", causes["prior variance 0.1", 0.1], DECIDED, kind="stored")
check(
    "narrow-costs",
    log_loss("prior variance 0.1", 1).mean() - log_loss("base", 1).mean(),
    kind="stored",
    digits=2,
)
check("flipped", causes["labels flipped", 0.1], DECIDED, kind="stored")
check("flipped-one", alone["labels flipped"], OPEN, kind="stored")

# %% [markdown]
# * **A narrow prior** makes cold better, {c}`narrow`: it wins back that much of the {c}`narrow-costs` that the narrow prior costs. A cold posterior is the likelihood to the power $1/T$ with the prior variance $\sigma^2T$; to temper the likelihood alone is to cool a posterior of the prior variance $\sigma^2/T$, and those chains have not arrived here.
# * **Labels that are wrong**, and a test with right ones: {c}`flipped`. But one chain gains nothing, {c}`flipped-one`: it is the average of four cold modes that predicts well, which is no posterior's average.
# * **Averaged copies**, moved by two pixels of 28, bring an effect, and are still behind no copies at all. Their chains are up to 1.6 times too hot.
#
# **Verdict:** in the larger network the effect is there and no fault of the sampler was found, within the modes reached; in the smaller one, where cold gains nothing, weights are too hot from $T = 0.03$ down (its biases at every $T$), so its curve there is the sampler's, too. Who reports a best $T$ should show $T'$ and one chain beside it.
#
# **To remember:** with minibatches SGHMC at given $\eta$ and $\alpha$ has a coldest temperature, $\eta V/2\alpha$.
#
# ## What this does not show
#
# * *HMC on the larger network, and why it gains*: its prior and labels were not varied; two hours.
# * *A residual network on CIFAR, where {cite:t}`wenzel2020` found the effect* (they check their chains by two temperatures, too): days.
# * *Averaged probabilities*, the proper likelihood of {cite:t}`nabarro2022`: an hour and a half. *Curated labels* {cite:p}`aitchison2021`: the opposite of our wrong ones.
# * *Cold chains of equal path*: four times as many steps.
#
# ## Change it
#
# * In the cell of `temperature_of` set `noise=45` to `noise=4.5`: at $T = 0.01$ both step sizes now reach the temperature asked for, and `floor` shows ✗.
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
# The temperature of the positions, and by layer. One number for all momenta is an average over directions: a few with a large $V$ may be much hotter, as the first biases are here.
# ```
#
# ## Further reading
#
# {cite:t}`adlam2020` for why a prior that expects label noise asks to be cooled; {doc}`/book/studies/fidelity` for how near samplers come to long HMC.
