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
# Page 10 of 12 · 32 minutes to read, 15 to play · Running: about 9 seconds
#
# Run it: `make lab` opens this page as a notebook; the visible cells alone, copied, give its result.
# ```
#
# ```{index} ! Bayesian neural network, ! ensemble of sampled networks
# ```

# %%
import torch

from booklib.data import digits, letters
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import at_least, check, near
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

from booklib.page.claims import DECIDED, OPEN
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.scoreboard import show_scoreboard
from booklib.runs.results import RESULTS, Seeds, read_result, who_ran
from booklib.scores.seeds import family

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
# A few weights are clipped, and |θ|² still rises; the page says so.
known = ".*(½εV̂ exceeded the friction|do not agree|too few|independent)"
warnings.filterwarnings("ignore", message=known)

# %% [markdown]
# SGHMC with a measured $\hat B$ samples a posterior from minibatches.
# On this page the posterior is that of a neural network that reads handwritten digits.
# What are two hundred samples of such a network good for, beside networks that are trained in the usual way?
#
# For doubt, and not for the answer: here the average of the samples declines more letters than that of four trained networks, which cost as many gradients, but names digits a little less well.
#
# {numref}`fig-digits-price` shows both.
# Each classifier answers the 80 % of the digits that it names most surely, and is then shown letters, page 1's strangers: the fewer it answers, the better.
# Four trained networks answer {c}`fewer` points more of the letters than the samples do (mean of ten starts, and its 95 % interval).
# Twenty trained networks come down to where the samples are, for five times the gradients; when both get five times the gradients, twenty trained networks answer {c}`fewer-longer` points more than the samples.
# The lower panel shows the price of the samples: a worse log loss on digits.
#
# Three reservations: it is one network and one kind of stranger; where 90 % of the digits are to be answered, ten starts do not tell the two apart; and the chains have not arrived at their posterior (*Has it arrived?* below).

# %% mystnb={"figure": {"caption": "Averages of 1, 4 and 20 trained networks (gold) and of 200 sampled ones (pink), against the epochs that all of them took together (the right pink point: 200 samples of chains five times as long). Above: the share of letters that is answered where 80 % of the digits are. Below: the log loss on digits. Small dots: ten starts; large ones, joined by a line: their mean.", "name": "fig-digits-price"}, "image": {"alt": "Two panels with the price on a logarithmic axis. Above, a gold line falls from 18 per cent at 30 epochs over 13 at 120 to 11 at 600; a pink one lies below it, at 12 per cent at 120 epochs and 9 at 600. Below, gold falls from 0.19 to 0.14, and pink lies above it, at 0.18."}} tags=["hide-input"]
stored = Seeds.read("coverage")
labels = {
    "trained": {30: "one trained", 120: "4 trained", 600: "20 trained"},
    "sampled": {120: "sampled", 600: "sampled, 5 times as long"},
}
figure, panels = plt.subplots(2, 1, figsize=(4.4, 5.0), sharex=True)
for name, colour, aside in (
    ("trained", COLOURS["SGD with momentum"], 0.95),
    ("sampled", COLOURS["SGHMC"], 1.05),
):
    for axes, score, scale in zip(
        panels, ("letters", "log_loss"), (100, 1), strict=True
    ):
        means = []
        for epochs, method in labels[name].items():
            values = stored(f"page 10, {method}", f"average.{score}", scale)
            means.append(values.mean())
            axes.plot(len(values) * [epochs * aside], values, ".", ms=4, color=colour)
        axes.plot(list(labels[name]), means, "o-", color=colour, label=name)
panels[0].set(ylabel="letters answered (%)", ylim=(0, 20), yticks=(0, 5, 10, 15, 20))
panels[1].set(xlabel="epochs in all", ylabel="log loss", xscale="log", ylim=(0, 0.22))
panels[1].set_xticks([30, 120, 600], ["30", "120", "600"])
panels[1].set_yticks([0, 0.1, 0.2])
panels[1].minorticks_off()
panels[0].legend()
plt.show()

# %% tags=["hide-input"]
pairs = {
    name + longer: [
        stored(f"page 10, {method}", f"average.{score}", scale)
        for method in (f"sampled{', 5 times as long' if longer else ''}", rival)
    ][::order]
    for name, score, scale, order in (
        ("fewer", "letters", 100, -1),
        ("error-gap", "error", 100, 1),
        ("loss-gap", "log_loss", 1, 1),
    )
    for longer, rival in (("", "4 trained"), ("-longer", "20 trained"))
}
by_holm = "zero is excluded, by Holm's rule for six comparisons, ten starts"
for name, gap in family(pairs).items():
    if name not in ("error-gap-longer", "loss-gap-longer"):  # the table shows them
        check(name, gap, DECIDED, kind="stored", because=by_holm)
thresholds = {
    f"fewer-{share}": [
        stored(f"page 10, {method}", f"average.letters_{share}", 100)
        for method in ("4 trained", "sampled")
    ]
    for share in (70, 90)
}
for (name, gap), verdict in zip(
    family(thresholds).items(), (DECIDED, OPEN), strict=True
):
    check(name, gap, verdict, kind="stored", because="Holm's rule for these two")
print(who_ran(read_result(RESULTS / "coverage.json")))

# %% [markdown]
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
images = halved(torch.cat([test.inputs, letters().inputs]))  # 1,000 and 1,080

# %% [markdown]
# ## One algorithm, two temperatures
#
# A sampler at {term}`temperature` $T$ injects $TC - \hat B$ in the place of $C - \hat B$ (page 8).
# At $T = 1$ it samples the posterior. At $T = 0$ it injects nothing, and is SGD with momentum $1 - \alpha$: the usual way to train.
# So one algorithm does both. The sampler takes $\hat B$ from each minibatch, as on {doc}`page 9 </book/tutorial/estimating_the_noise>`; the optimiser has the usual momentum, 0.9. Both have $\eta = 1.6\cdot10^{-4}$, which looks small because $U$ is a sum over 4,000 digits; for a loss that is a mean it is $\eta N = 0.64$.
#
# By page 2 a single chain cannot show that it has arrived, so each runs from four starts, for 30 epochs.
# Of the optimiser we take the last network of each start. Of the sampler we take every fourth network of the last 200 steps, 50 of each chain: 200 networks.

# %%
kernels = {
    "sampled": SGHMC.from_learning_rate(1.6e-4, 0.04, noise_estimate=OnlineNoise()),
    "trained": SGHMC.from_learning_rate(1.6e-4, 0.1, temperature=0.0),
}
runs = {
    name: sample(kernel, posterior, start, 120, thinning=4, seed=1).samples
    for name, kernel in kernels.items()
}
trained = posterior.predict(runs["trained"][-1], images)  # (4, images, 10)
sampled = posterior.predict(runs["sampled"][70:].flatten(0, 1), images)  # 200 of them

# %% [markdown]
# Three scores say how good a prediction is.
# The *error* is the share of the test digits whose most probable class is wrong.
# The *log loss* is the mean of $-\log P(y_i)$ over them, and punishes being sure of a wrong class.
# The third is the one of the figure. A classifier answers where its largest probability is above a threshold, and each sets its own so that it answers 80 % of the digits; so none gains by being unsure of everything.

# %%
n = len(test.targets)


def scores(p):
    """Of probabilities (images, 10): error in %, log loss, letters answered in %."""
    sure = p.max(-1).values
    answered = sure[n:] >= sure[:n].quantile(0.2)
    error, loss = error_rate(p[:n], test.targets), log_score(p[:n], test.targets)
    return torch.tensor([100 * error, loss, 100 * answered.float().mean()])


def mean_scores(several):
    return torch.stack([scores(p) for p in several]).mean(0)


chains = sampled.unflatten(0, (50, 4))  # looks and chains
table = {
    "one trained network": mean_scores(trained),
    "four, averaged": scores(trained.mean(0)),
    "one sampled network": mean_scores(sampled),
    "four, one of each chain": mean_scores(chains.mean(1)),
    "all 200, averaged": scores(sampled.mean(0)),
}
rows = [[name, *(f"{score:.3g}" for score in row)] for name, row in table.items()]
heads = ["error %", "log loss", "letters answered %"]
show_table(["classifier", *heads], rows, live=heads)

_, four, one, _, average = table.values()
right = [p[:n].argmax(-1) == test.targets for p in (sampled.mean(0), trained.mean(0))]
differ = int((right[0] != right[1]).sum())
check("level", average[0] - four[0], near(0), error=differ**0.5 / 10)
check("average-letters", average[2], near(12, 5), digits=2)

# %% [markdown]
# Read the table from its top.
# One sampled network is far worse than a trained one in all three scores. Four of them, one of each chain, nearly catch up, and all 200 do better still.
# *Trained* networks gain by averaging, too, so the average does it, however its members were made.
# Which average is the best depends on the score.
#
# * **In error the trained networks win, by little.** In this run the two averages differ by {c}`level` points. Pairing by digit makes the standard error small: if exactly one of two classifiers is right on $k$ of 1,000 digits, it is at most $\sqrt k/10$ points. One run cannot tell even so; the ten starts of {numref}`fig-digits-price` can: the samples err on {c}`error-gap` points more, with the 95 % interval.
# * **In log loss the trained networks win clearly**, by {c}`loss-gap` over ten starts. The average of the samples is too modest: its largest probability is on average {c}`modest` points below the share of digits that it names rightly. In the table below even one trained network, at a quarter of the gradients, has as small a log loss as the 200 samples.
# * **On letters the two are level in this run**; the samples answer {c}`average-letters` %. Over ten starts they answer {c}`fewer` points fewer. The 80 % are our choice, and it matters: where 70 % of the digits are answered the difference is {c}`fewer-70` points, but where 90 % are it is {c}`fewer-90`, and the ten starts leave it open.
#
# *A guess before you read on.*
# In the table, *four* are one network of each chain. Would 50 networks of *one* chain, one after the other, do better than these four?

# %% tags=["hide-input"]
confident = 100 * (sampled.mean(0)[:n].max(-1).values.mean() - right[0].float().mean())
check(
    "modest", -confident, at_least(3), because="4.3 to 5.3 from four starts", digits=2
)

# %% [markdown]
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
# What the networks agree on is what the data say; the noise, which is different in each, averages out.
#
# So the gain is disagreement, and networks that are nearly the same bring none.
# {numref}`fig-digits-curves` answers the guess.
# A network and the next of the same chain, four steps later, are nearly the same, and the chain stays in its own part of the posterior, so the thin curves fall slowly. Fifty networks of one chain err on {c}`one-chain` points more than the two hundred of all four, and are no better than four networks of four chains.
# What counts is not the number of networks, but how independent they are.
#
# It may be, and this is a guess, that samples win on letters for the same reason: what a network answers to a letter depends on weights that the digits leave open, and there samples spread as wide as the prior allows.

# %% mystnb={"figure": {"caption": "Error on the test digits of the average of $S$ sampled networks (pink): spread over the four chains (thick), or consecutive ones of each chain (thin). Gold: one trained network (solid), and four averaged (dashed).", "name": "fig-digits-curves"}, "image": {"alt": "A thick falling curve from ten per cent at one network to about six at four and about five at two hundred. Four thin curves fall more slowly and end at fifty networks above it. A solid gold line lies at five per cent, and a dashed one a little above four."}} tags=["hide-input"]
counts, sizes = (1, 2, 4, 8, 16, 32, 50), (8, 20, 40, 100, 200)
spread = [one[0], table["four, one of each chain"][0]] + [
    scores(chains[torch.linspace(49, 0, S // 4).round().long()].mean((0, 1)))[0]
    for S in sizes  # the same number from each chain
]
figure, axes = plt.subplots(figsize=(4.6, 3.2))
for chain in range(4):
    errors = [scores(chains[:S, chain].mean(0))[0] for S in counts]
    axes.semilogx(counts, errors, color=COLOURS["SGHMC"], lw=0.9)
axes.semilogx((1, 4, *sizes), spread, color=COLOURS["SGHMC"], lw=2.8)
for name, style in (("one trained network", "-"), ("four, averaged", "--")):
    level = float(table[name][0])
    axes.axhline(level, ls=style, color=COLOURS["SGD with momentum"], zorder=0)
axes.set(xlabel="number of networks $S$", ylabel="error (%)", ylim=(0, None))
axes.set_xticks([1, 4, 10, 50, 200], ["1", "4", "10", "50", "200"])
axes.minorticks_off()
plt.show()

# %% tags=["hide-input"]
of_chains = mean_scores(chains.mean(0))[0]
more = "four chains, on average"
check("one-chain", of_chains - average[0], at_least(0.4), because=more, digits=2)

# %% [markdown]
# ## Has it arrived?
#
# Bayes' rule is about the posterior, so we ask whether the chains are there.
# A network gives one number for free.
# Most weights are hardly informed by 4,000 digits (many pixels are empty in all of them), and these follow the prior, so $\lvert\theta\rvert^2$ must come close to $d$, its mean under the prior.
# It is a sign and no proof: the exact mean is $d - \mathbb E[\theta\cdot\nabla L]$, where $L$ is the negative log likelihood (the formula of {ref}`ex-estimate-thermometer` with $c = 0$), and the second term is not known.
#
# In {numref}`fig-digits-length` the sampler starts where initial weights are good for an optimiser, near zero, and has risen to {c}`length` of $d$ when the run ends, and is still rising.
# The optimiser is somewhere else: it looks for the mode, while nearly all of the posterior lies in a shell of radius $\sqrt d \approx 102$ around it, just as on {doc}`page 4 </book/tutorial/hamiltonian_monte_carlo>`.
#
# By the standard of page 2 the chains have not arrived.
# Over the last 50 networks of each chain $\hat R$ of the test log loss is {c}`r-loss`, because the four sit in different places of the posterior; 1.01 is asked for. In chains of five times as many steps it is still {c}`r-longer`, the mean of ten starts.
# So what this page finds is true of such networks, and not yet of the posterior.
#
# Nor is the temperature quite 1. By page 9 the friction $C = \alpha/\varepsilon$ must have room for $\hat B$, and here it has not everywhere. In a weight along which the likelihood has the curvature $h$, $\hat B$ is about $\tfrac12\varepsilon\tfrac Nnh$ (page 5), so it is clipped where $h$ exceeds $2\alpha n/(\eta N) = 31$. By {eq}`eq-clipping` this adds {c}`heat` to the temperature of a weight on average, most of it in the stiff ones. With page 9's friction, three times the largest $\hat B$, nothing would be clipped, but the chain would crawl.

# %% mystnb={"figure": {"caption": "Squared length of the weight vector, as a share of $d = 10{,}360$ (grey: 1), against the epoch: four chains at temperature one (pink) and four at temperature zero (gold).", "name": "fig-digits-length"}, "image": {"alt": "Four pink curves rise together from zero to the grey line at 1 within thirty epochs; four gold ones stay near zero."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(4.6, 2.9))
colours = {"sampled": COLOURS["SGHMC"], "trained": COLOURS["SGD with momentum"]}
for name, positions in runs.items():
    epochs, colour = torch.arange(1, 121) / 4, colours.get(name, COLOURS["SGLD"])
    lengths = positions.square().mean(-1)
    axes.plot(epochs, lengths, color=colour, lw=1)
    height = min(float(lengths[-1].mean()) + 0.05, 1.12)
    axes.text(22, height, name, color=colour)
axes.axhline(1, color=TRUTH, lw=3, zorder=0)
axes.set(xlabel="epoch", ylabel=r"$|\theta|^2 / d$", ylim=(0, 1.2), xlim=(0, 30))
plt.show()

# %% tags=["hide-input"]
losses = torch.stack([scores(p)[1] for p in sampled]).view(50, 4).T
lengths, generator = runs["sampled"].square().mean(-1), torch.Generator().manual_seed(1)
check("length", lengths[-1].mean(), near(1, 0.03), because="other starts", digits=3)
r_loss = float(arviz.rhat(losses.double().numpy()))
check("r-loss", r_loss, at_least(1.03), because="1.13 to 1.37 from other starts")
longer = stored("page 10, sampled, 5 times as long", "r_hat").mean()
check("r-longer", longer, at_least(1.05), kind="stored", digits=3, because="ten starts")
rate, decay = 1.6e-4, 0.04
variances = torch.stack(  # V̂ of a minibatch at every tenth look
    [
        posterior.gradient_and_noise_variance(look, generator, "diagonal")[1]
        for look in runs["sampled"][70::10]
    ]
)
excess = (rate * variances / 2 / decay - 1).clamp(min=0)  # of B̂/C over 1
check(
    "heat",
    excess.mean(),
    near(0.075, 0.03),
    because="0.06 to 0.09 from four starts",
    digits=1,
)

# %% [markdown]
# ## What are samples for, then?
#
# The ten starts again, each number a mean ± the standard deviation from start to start; the epochs are those of all networks together, and *longer* means chains of five times as many steps. `python -m experiments run coverage --seeds 10` makes them in about ten minutes.

# %% tags=["hide-input"]
columns = (("error", 100), ("log_loss", 1), ("letters", 100))
rows = [
    [
        method.replace("5 times as long", "longer"),
        str(epochs),
        *(stored.cell(f"page 10, {method}", f"average.{x}", by) for x, by in columns),
    ]
    for name in labels
    for epochs, method in labels[name].items()
]
show_table(["networks", "epochs", *heads], rows)

# %% [markdown]
# If all that you want is one good answer for each digit, train a few networks apart and average them: they err less, and their probabilities are better. {doc}`/book/practice/what_should_i_use` comes to the same end with five, and {doc}`/book/studies/mnist` with rates that fall, on 50,000 digits.
#
# If the network will meet what it was not trained for, and a sure wrong answer is so expensive that a fifth of the digits may stay unanswered, samples are the cheaper doubt to make. Twenty trained networks buy it at five times the price, and with it a smaller error and log loss (third row).
# To keep and to ask, it is the other way round: two hundred samples are ten times as many networks as those twenty, for as many letters.
#
# How far does this reach? The difference on letters is {c}`fewer` points, found with chains that do not agree and are a little hot, on one kind of stranger. {doc}`/book/studies/uncertainty` asks the same at full scale, of letters, clothes and turned digits, and there the samples do not always win.
#
# **To remember:** for the answer, average a few trained networks; for doubt, many samples were the cheaper average here. Both averages live by disagreement.
#
# ## The whole story
#
# Whether a sampler is right these digits cannot say, since nobody knows their posterior. The bowl of the pages before can, and this is its board, complete for the necessary part of the tutorial:

# %% tags=["hide-input"]
show_scoreboard(10)

# %% [markdown]
# Follow the scoreboard from the top.
# Metropolis and HMC are right because they reject, but to reject costs the energy of all the data. With minibatches nothing is rejected, and their noise has to be dealt with: small steps keep it down (SGLD), or it overheats (naive SGHMC), or friction balances it (SGHMC), provided that we know how much noise there is ($\hat B$).
#
# Here the road of the tutorial ends. Pages 11 and 12 are an elective.
# Three numbers of these samplers are still set by hand: the step size, the friction, and the length of a path between two samples.
# {doc}`The next page </book/tutorial/no_u_turn>` lets a path decide for itself when it has gone far enough.
#
# ## Change it
#
# * In the visible cell of `kernels` leave out `, noise_estimate=OnlineNoise()`: the noise of the gradient comes on top of what is injected, and in {numref}`fig-digits-length` the pink curves end above the grey line.
# * In the same cell set `temperature=0.0` to `temperature=0.1`, a cold posterior: the gold curves end nearly a tenth higher. What becomes of the second row of the table?
# * There set `runs["trained"][-1]` to `runs["trained"][70:].flatten(0, 1)`: the second row is then the average of two hundred networks of the optimiser, and hardly better than that of four, because one and the next are nearly the same.
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
# Page 6's sampler on this posterior: import `SGLD` from `sgmc.kernels`, and add `"SGLD": SGLD(4e-4)` to `kernels`. Where in {numref}`fig-digits-length` will $\lvert\theta\rvert^2/d$ be after 480 steps? The prior alone would bring it to $1 - e^{-2\cdot480\,\eta}$.
# Then double the step, and double it again, with `runs["SGLD"]` in the place of `runs["sampled"]`. What becomes of the average?
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
