# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Two hundred networks
#
# ```{div} page-head
# Page 10 of 12 · 25 minutes to read, 15 to play · Running: about 9 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! Bayesian neural network, ! ensemble of sampled networks
# ```

# %%
import torch

from booklib.data import digits
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import at_least, at_most, check, near
from booklib.page.tables import show_table
from booklib.scores.prediction import error_rate, log_score
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.noise import OnlineNoise
from sgmc.posteriors import NetworkPosterior

# %% tags=["hide-input"]
import warnings

import arviz
import matplotlib.pyplot as plt

from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# A few weights are clipped, and |θ|² still rises; the page says so.
known = ".*(½εV̂ exceeded the friction|do not agree|too few|independent)"
warnings.filterwarnings("ignore", message=known)

# %% [markdown]
# SGHMC with a measured $\hat B$ samples a posterior from minibatches.
# On this page the posterior is that of a neural network that reads handwritten digits.
# What are two hundred samples of such a network worth, beside one network that is trained in the usual way?
#
# One sample is worth little. It errs on {c}`one-error` % of the test digits, often with near certainty, where a trained network errs on {c}`trained-error` %.
# But the *average* of two hundred samples errs on {c}`average-error` %: it is about as good as the trained network, although its members are not.
# {numref}`fig-digits-mistakes` shows digits that one sampled network gets wrong, and what the average says to them.
# This page makes these numbers, and asks where the gain comes from.
#
# ## The posterior of a network
#
# The network $f(x; \theta)$ reads images of 14 × 14 pixels and has one hidden layer of 50 units, which makes $d = 10{,}360$ weights.
# The {term}`prior` is $N(0, 1)$ on every weight, and the {term}`likelihood` is the softmax of the ten outputs, so that up to a constant
#
# $$
# \begin{aligned}
# &U(\theta) = \tfrac12\lvert\theta\rvert^2\\
# &\quad - \sum_{i=1}^N\log\operatorname{softmax}\bigl(f(x_i; \theta)\bigr)_{y_i}.
# \end{aligned}
# $$ (eq-network)
#
# There are $N = 4{,}000$ digits to learn from, and 1,000 others for the test.
# A {term}`minibatch` of $n = 250$ estimates the sum as $N/n = 16$ times its own; sixteen steps see as many digits as there are, one *epoch*.

# %%
train, test = digits()


def halved(images):
    """Images of 28 × 28 pixels as 14 × 14, each pixel the mean of four."""
    return torch.nn.functional.avg_pool2d(images.view(-1, 1, 28, 28), 2).flatten(1)


network = multilayer_perceptron([196, 50, 10])
posterior = NetworkPosterior(
    network, halved(train.inputs), train.targets, prior_variance=1.0, batch_size=250
)
start = posterior.initial_position(4, torch.Generator().manual_seed(0))

# %% [markdown]
# ## One algorithm, two temperatures
#
# A sampler at {term}`temperature` $T$ injects $TC - \hat B$ in the place of $C - \hat B$ (page 8).
# At $T = 1$ it samples the posterior. At $T = 0$ it injects nothing, and is SGD with momentum $1 - \alpha$: the usual way to train.
# So one algorithm does both. The sampler takes $\hat B$ from each minibatch, as on {doc}`page 9 </book/tutorial/estimating_the_noise>`; the optimiser has the usual momentum, 0.9. Both have $\eta = 1.6\cdot10^{-4}$, which looks small because $U$ is a sum over 4,000 digits; for a loss that is a mean it is $\eta N = 0.64$.
#
# By page 2 a single chain cannot show that it has arrived, so each runs from four starts, for 30 epochs. We look at the networks every fourth step, and keep the last 50 looks: 200 networks.

# %%
kernels = {
    "sampled": SGHMC.from_learning_rate(1.6e-4, 0.04, noise_estimate=OnlineNoise()),
    "trained": SGHMC.from_learning_rate(1.6e-4, 0.1, temperature=0.0),
}


def look(position):
    """The probabilities of the test digits, (chains, n, 10), and |θ|²/d, (chains,)."""
    probabilities = posterior.predict(position, halved(test.inputs))
    return {"digits": probabilities, "length": position.square().mean(-1)}


def scores(predictions):
    """Error in per cent, and log loss, on average over predictions (…, n, 10)."""
    pairs = [
        (100 * error_rate(p, test.targets), log_score(p, test.targets))
        for p in predictions.flatten(0, -3)
    ]
    return torch.tensor(pairs).mean(0)


runs, networks, table = {}, {}, {}
for name, kernel in kernels.items():
    run = sample(kernel, posterior, start, 120, thinning=4, seed=1, collect=look)
    runs[name] = run.samples
    p = networks[name] = run.samples["digits"][70:]  # (50 looks, 4 chains, n, 10)
    # of one network; of the average of the four chains' at a look; of all 200
    table[name] = [scores(p), scores(p.mean(1)), scores(p.mean((0, 1))[None])]

heads = ["score and networks", "one", "four, one a chain", "all 200"]
show_table(
    heads,
    [
        [f"{score}, {name}", *(f"{entry[column]:.{column + 1}f}" for entry in entries)]
        for column, score in enumerate(("error %", "log loss"))
        for name, entries in table.items()
    ],
    live=heads[1:],
)
one, four, average = (float(entry[0]) for entry in table["sampled"])
trained, four_trained, _ = (float(entry[0]) for entry in table["trained"])
check("one-error", one, at_least(8), digits=2)
check("trained-error", trained, at_most(6.5), digits=2)
check("average-error", average, at_most(6.5), digits=2)
check("level", average - trained, near(0, 1), digits=1)

# %% [markdown]
# Two scores on the test digits say how good a prediction is: the *error*, the share whose most probable class is wrong, and the *log loss*, the mean of $-\log P(y_i)$, which punishes being sure of a wrong class.
# With 1,000 digits an error of five per cent has a standard error of 0.7 points. Two predictions are compared on the same digits: if one is right and the other wrong on $k$ of them, the difference of their errors has a standard error of at most $\sqrt k/10$ points.
#
# Read the table from left to right.
# One sampled network is bad in both scores. Four of them, one of each chain, come within {c}`four-gap` points of a trained network. The 200 differ from it by {c}`level` points, which a thousand digits cannot tell from zero.
# And the second row of each pair says that *trained* networks gain by averaging, too: four of them do no worse than the 200 sampled ones, whose error is {c}`rival` points above theirs.
# So the average does it, however its members were made.

# %% mystnb={"figure": {"caption": "Eight of the test digits that the last sampled network gets wrong: the class, the network's answer and that of the average of 200 networks, each with its probability.", "name": "fig-digits-mistakes"}, "image": {"alt": "Eight handwritten digits. Above each stands its class, the wrong answer of one network, often with a probability near one, and the answer of the average, mostly the right one."}} tags=["hide-input"]
last, whole = networks["sampled"][-1, -1], networks["sampled"].mean((0, 1))
missed = (last.argmax(-1) != test.targets).nonzero()[:, 0]  # sorted by class
missed = missed[torch.linspace(0, len(missed) - 1, 8).round().long()]
figure, panels = plt.subplots(2, 4, figsize=(5.6, 4.2))
for axes, i in zip(panels.flat, missed.tolist(), strict=True):
    axes.imshow(test.inputs[i].view(28, 28), cmap="gray_r")
    answers = (
        f"{who}: {int(p[i].argmax())} ({float(p[i].max()):.2f})"
        for who, p in (("one", last), ("200", whole))
    )
    axes.set_title("\n".join((f"a {test.targets[i]}", *answers)), fontsize=9)
    axes.axis("off")
plt.show()

# %% tags=["hide-input"]
DIGITS = "the standard error of 1,000 digits is 0.7 points"
check("four-gap", four - trained, at_most(1.5), digits=1, because=DIGITS)
check("rival", average - four_trained, at_least(-0.7), digits=1, because=DIGITS)

# %% [markdown]
# *A guess before you read on.*
# The table's *four* are one network of each chain. Would 50 networks of *one* chain, one after the other, do better than these four?
#
# ## Why the average wins
#
# Bayes' rule predicts with the average over the posterior, and $S$ samples of it are an estimate:
#
# $$
# \begin{aligned}
# P(y \mid x, \mathcal D) &= \int P(y \mid x, \theta)\,\pi(\theta)\,d\theta\\
# &\approx \frac1S\sum_{s=1}^SP(y \mid x, \theta_s).
# \end{aligned}
# $$ (eq-average)
#
# Averaging cannot hurt the log loss.
# The function $-\log$ is convex, so by Jensen's inequality
#
# $$
# -\log\frac1S\sum_sP_s(y_i) \;\le\; \frac1S\sum_s\bigl(-\log P_s(y_i)\bigr)
# $$ (eq-digits-jensen)
#
# for each digit: the average is at least as good as its members are on average, and strictly better wherever they disagree about the right class.
# Each sampled network carries the noise of one sample in every weight.
# What the networks agree on is what the data say; the noise, which is different in each, averages out. The log loss of the average of two hundred is {c}`log-loss-share` times that of its members.
#
# So the gain is disagreement, and networks that are nearly the same bring none.
# {numref}`fig-digits-curves` answers the guess.
# A network and the next of the same chain, four steps later, are nearly the same, and the chain stays in its own part of the posterior, so the thin curves fall slowly. Fifty networks of one chain err on {c}`one-chain` points more than the two hundred of all four, and are no better than four networks of four chains.
# An optimiser's chain disagrees even less: averaging two hundred of its networks gains only {c}`optimiser-gain` points over four, one of each chain.
# What counts is not the number of networks, but how independent they are.

# %% mystnb={"figure": {"caption": "Error on the test digits of the average of $S$ sampled networks (pink): spread over the four chains (thick), or consecutive ones of each chain (thin). Gold: one trained network (solid), and four averaged (dashed).", "name": "fig-digits-curves"}, "image": {"alt": "A thick falling curve from ten per cent at one network to about six at four and about five at two hundred. Four thin curves fall more slowly and end at fifty networks above it. A solid gold line lies at five and a half per cent, and a dashed one a little below five."}} tags=["hide-input"]
ours, sizes = networks["sampled"], (8, 20, 40, 100, 200)
spread = [one, four] + [  # of the S networks the same number from each chain
    scores(ours[torch.linspace(49, 0, S // 4).round().long()].mean((0, 1))[None])[0]
    for S in sizes
]
counts = (1, 2, 4, 8, 16, 32, 50)
figure, axes = plt.subplots(figsize=(5.4, 3.4))
for chain in range(4):
    errors = [scores(ours[:S, chain].mean(0)[None])[0] for S in counts]
    axes.semilogx(counts, errors, color=COLOURS["SGHMC"], lw=0.9)
axes.semilogx((1, 4, *sizes), spread, color=COLOURS["SGHMC"], lw=2.8)
for value, style in ((trained, "-"), (four_trained, "--")):
    axes.axhline(value, ls=style, color=COLOURS["SGD with momentum"], zorder=0)
axes.set(xlabel="number of networks $S$", ylabel="error (%)", ylim=(0, None))
axes.set_xticks([1, 4, 10, 50, 200], ["1", "4", "10", "50", "200"])
axes.minorticks_off()
plt.show()

# %% tags=["hide-input"]
of_chains = scores(ours.mean(0))
of_one, of_all = table["sampled"][0], table["sampled"][2]
for name, value, bound, because in (
    ("one-chain", of_chains[0] - average, at_least(0.4), "four chains, on average"),
    ("log-loss-share", of_all[1] / of_one[1], at_most(0.5), ""),
    (
        "optimiser-gain",
        abs(four_trained - float(table["trained"][2][0])),
        at_most(0.7),
        DIGITS,
    ),
):
    check(name, value, bound, because=because, digits=2)
check(
    "no-better",
    of_chains[0] - four,
    at_least(-0.7),
    because=DIGITS,
    says="Error of fifty networks of a chain less that of four, one of each chain",
)

# %% [markdown]
# ## Has it arrived?
#
# Bayes' rule is about the posterior, so we ask whether the chains are there.
# A network gives one number for free.
# Most weights are hardly informed by 4,000 digits (many pixels are empty in all of them), and these follow the prior, so $\lvert\theta\rvert^2$ must come close to $d$, its mean under the prior.
# It is a sign and no proof: the exact mean is $d - \mathbb E[\theta\cdot\nabla L]$, where $L$ is the negative log likelihood (the formula of {ref}`ex-estimate-thermometer` with $c = 0$), and the second term is not known.
#
# In {numref}`fig-digits-length` the sampler starts where initial weights are good for an optimiser, near zero, and has risen to {c}`length` of $d$ when the run ends, which is no place of rest.
# The optimiser is somewhere else: it looks for the mode, while nearly all of the posterior lies in a shell of radius $\sqrt d \approx 102$ around it, just as on {doc}`page 4 </book/tutorial/hamiltonian_monte_carlo>`.
#
# By the standard of page 2 the chains have not arrived.
# Over the last 50 looks $\hat R$ of $\lvert\theta\rvert^2$ is {c}`r-length`, because all four are still rising together, and that of the test log loss is {c}`r-loss`, because they sit in different places of the posterior; 1.01 is asked for.
# So what the table says is true of these 200 networks, and not yet of the posterior.

# %% mystnb={"figure": {"caption": "Squared length of the weight vector, as a share of $d = 10{,}360$ (grey: 1), against the epoch: four chains at temperature one (pink) and four at temperature zero (gold).", "name": "fig-digits-length"}, "image": {"alt": "Four pink curves rise together from zero to the grey line at 1 within thirty epochs; four gold ones stay near zero."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.4, 3.0))
colours = {"sampled": COLOURS["SGHMC"], "trained": COLOURS["SGD with momentum"]}
for name, run in runs.items():
    epochs, colour = torch.arange(1, 121) / 4, colours.get(name, COLOURS["SGLD"])
    axes.plot(epochs, run["length"], color=colour, lw=1)
    axes.text(23, float(run["length"][-1].mean()) + 0.05, name, color=colour)
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.set(xlabel="epoch", ylabel=r"$|\theta|^2 / d$", ylim=(0, 1.2), xlim=(0, 30))
plt.show()

# %% tags=["hide-input"]
lengths = runs["sampled"]["length"]
losses = torch.tensor([[scores(p[None])[1] for p in look] for look in ours])
r_length, r_loss = (
    float(arviz.rhat(values.double().T.numpy())) for values in (lengths[70:], losses)
)
check("length", lengths[-1].mean(), near(1, 0.03), because="other starts", digits=3)
check("r-length", r_length, at_least(1.2), digits=2)
check("r-loss", r_loss, at_least(1.03), because="1.13 to 1.37 from other starts")

# %% [markdown]
# ## What are samples for, then?
#
# For one good prediction from a given number of gradients, train a few networks apart and average them; {doc}`/book/practice/what_should_i_use` comes to the same end with five, and {doc}`/book/studies/mnist` with rates that fall, on 50,000 digits and over several seeds.
# Samples are for the question how sure one may be. Page 1's average was less often fooled by letters than one trained network. Whether it beats several trained ones this page does not show; {doc}`/book/studies/uncertainty` measures it at full scale.
#
# **To remember:** the average of mediocre networks is one good prediction, because they disagree where the data do not decide; a few that are independent are worth more than many that are alike.
#
# Three numbers of these samplers are still set by hand: the step size, the friction, and the length of a path between two samples.
# {doc}`The next page </book/tutorial/no_u_turn>` lets a path decide for itself when it has gone far enough.
#
# ## Change it
#
# * In the visible cell of `kernels` leave out `, noise_estimate=OnlineNoise()`: the noise of the gradient comes on top of what is injected, and in {numref}`fig-digits-length` the pink curves end above the grey line.
# * In the same cell set `temperature=0.0` to `temperature=0.1`, a cold posterior: the gold curves rise towards a tenth. What becomes of the rows of the trained networks?
# * In the visible cell of the posterior set `manual_seed(0)` to `manual_seed(1)`, four other starts: all numbers of the table change. Which of the sentences below it stand?
#
# ## Exercises
#
# ```{exercise}
# :label: ex-digits-write
#
# **Write it yourself.** ★★
# The energy {eq}`eq-network` of one network, in plain PyTorch. Check that its *difference* between two places is the package's, since a constant does not matter. Task *minibatch-energy* of assignment 4 ({doc}`/book/practice/teaching`) goes on from here.
#
# ~~~python
# def my_energy(position):
#     """U(θ) of one network, position (dim,)."""
#     torch.nn.utils.vector_to_parameters(position, network.parameters())
#     ...
# ~~~
# ```
#
# ```{solution} ex-digits-write
# :class: dropdown
#
# `cross_entropy` with `reduction="sum"` is the sum of $-\log\operatorname{softmax}$; its default would be the mean, the commonest slip here.
#
#     torch.nn.utils.vector_to_parameters(position, network.parameters())
#     with torch.no_grad():
#         outputs = network(halved(train.inputs))
#     misfit = torch.nn.functional.cross_entropy(
#         outputs, train.targets, reduction="sum"
#     )
#     return 0.5 * position.square().sum() + misfit
#
# The next cell compares it with the package.
# ```


# %% tags=["hide-input"]
def my_energy(position):
    """U(θ) of one network, position (dim,)."""
    torch.nn.utils.vector_to_parameters(position, network.parameters())
    with torch.no_grad():
        outputs = network(halved(train.inputs))
    misfit = torch.nn.functional.cross_entropy(outputs, train.targets, reduction="sum")
    return 0.5 * position.square().sum() + misfit


places = torch.cat([start, 2 * start])
check(
    "energy",
    (my_energy(places[1]) - my_energy(places[0])) / posterior.energy(places).diff()[0],
    near(1, 1e-4),
    kind="exact",
    because="the same sum, in single precision",
    says="Difference of the energies of two networks, by hand over the package's",
)

# %% [markdown]
# ```{exercise}
# :label: ex-digits-convexity
#
# **And the error?** ★
# {eq}`eq-digits-jensen` says that averaging cannot hurt the log loss. Is the same true of the error?
# ```
#
# ```{solution} ex-digits-convexity
# :class: dropdown
#
# No. Let one network say $(0.9, 0.1)$ and two say $(0.4, 0.6)$, and let the second class be right: they err on one third on average, and their average, $(0.57, 0.43)$, errs.
# ```
#
# ```{exercise}
# :label: ex-digits-sgld
#
# **Predict, then run.** ★★
# Page 6's sampler on this posterior: import `SGLD` from `sgmc.kernels`, and add `"SGLD": SGLD(4e-4)` to `kernels`. Where will $\lvert\theta\rvert^2/d$ be after 480 steps? The prior alone would bring it to $1 - e^{-2\cdot480\,\eta}$.
# Then double the step, and double it again. What becomes of the average?
# ```
#
# ```{solution} ex-digits-sgld
# :class: dropdown
#
# The prior alone gives 0.32, 0.54 and 0.78; {numref}`fig-digits-length` has SGLD as a third curve, and at the first two steps it is far from having arrived. A larger step does not help the average, because it grows too large for the steep directions before it is large enough for the flat ones: with $\eta = 1.6\cdot10^{-3}$ the steps in the steep directions are no longer stable, $\lvert\theta\rvert^2$ passes $d$, and most answers of the single networks are wrong.
# Momentum lets SGHMC drift in flat directions at the rate $\eta/\alpha$, 25 times $\eta$, while the steep ones still see $\eta$.
# ```
#
# ## Further reading
#
# {cite:t}`mackay1992` and {cite:t}`neal1996` began with Bayesian networks; {cite:t}`izmailov2021` run full HMC on large ones, and {cite:t}`wenzel2020` ask whether a colder posterior predicts better.
