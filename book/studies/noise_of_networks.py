# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # The noise of a network
#
# ```{div} page-head
# Level: advanced · Reading: about 34 minutes, without the exercises · Running: about 17 seconds
# ```
#
# In a network the gradient noise differs from weight to weight by factors of thousands; this chapter measures it at nearly no cost, and spends friction where it is needed.
#
# **You will learn** to
#
# * get the variance of every weight's gradient from one more product of matrices a layer,
# * read the temperature of a run from its momenta,
# * see where in a network the noise is, and give those weights more friction,
# * judge what a matrix for each layer, the Kronecker product, would gain.
#
# **You will need** {doc}`/book/tutorial/estimating_the_noise` and {doc}`/book/tutorial/digits`.

# %%

import matplotlib.pyplot as plt
import torch
from torch.nn.functional import avg_pool2d

from booklib.data import digits
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import claim
from booklib.page.figures import TRUTH, use_style
from booklib.page.play import play
from booklib.scores.prediction import expected_calibration_error, log_score
from sgmc.kernels import SGHMC
from sgmc.noise import OnlineNoise, estimate_noise_variance
from sgmc.posteriors import NetworkPosterior
from sgmc.splittings import sghmc_chain

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
ZERO, ONLINE = "#D55E00", "#0072B2"

# %% [markdown]
# ## Squares without per-example gradients
#
# What we want is the diagonal estimate of {prf:ref}`def-estimate`: for every weight the variance of the examples' gradients over the minibatch, times $\frac{N^2}n(1 - \frac nN)$.
# A full $\hat V$ is out of reach: for 79,510 weights it has 25 gigabytes for each chain. And even the gradients of the 500 examples of a minibatch, one by one, would be 160 megabytes at each step.
#
# They need not be made. Let a linear layer map activations $a_i$ to $Wa_i$, where $i$ is the example, and let $\delta_i$ be the *signal*, the derivative of the loss of example $i$ by the layer's output. Back-propagation computes both.
# The example's gradient in $W$ is the outer product $\delta_ia_i^\top$. The square of an outer product, entry by entry, is the outer product of the squares:
#
# $$
# \sum_{i \in S}\bigl(\delta_ia_i^\top\bigr)^2 = \sum_{i \in S}\delta_i^2\,\bigl(a_i^2\bigr)^\top .
# $$ (eq-squares)
#
# That is one more product of two matrices that are there already, of the same size as the one that makes the gradient itself.
# From the sum of squares and the sum, which is the gradient, the variance follows.
#
# We take the 5,000 digits at half their resolution, 4,000 of them to learn from, and a network of 6,220 weights, 196–30–10, with the prior $N(0, 1)$. Here is the whole computation in plain lines, for one chain.

# %%
train, test = digits()
halved = [
    avg_pool2d(data.inputs.view(-1, 1, 28, 28), 2).flatten(1) for data in (train, test)
]


def activations_and_signals(position, x, y):
    """For both layers, (n, in) and (n, out); position (6220,), x (n, 196), y (n,)."""
    w1, b1, w2, b2 = position.split([30 * 196, 30, 10 * 30, 10])
    w1, w2 = w1.view(30, 196), w2.view(10, 30)
    hidden = torch.relu(x @ w1.T + b1)
    last = torch.softmax(hidden @ w2.T + b2, -1)
    last[torch.arange(len(y)), y] -= 1  # the slope of −log p(y) by the output
    return (x, (last @ w2) * (hidden > 0)), (hidden, last)


def noise_by_weight(position, x, y, num_examples):
    """V̂ of every weight from one minibatch without replacement."""
    n, pieces = len(y), []
    for a, delta in activations_and_signals(position, x, y):
        a = torch.cat([a, torch.ones(n, 1)], -1)  # a bias is a weight of the input 1
        squares = (delta**2).T @ a**2 - (delta.T @ a) ** 2 / n
        pieces += [squares[:, :-1].flatten(), squares[:, -1]]
    return num_examples**2 / n * (1 - n / num_examples) / (n - 1) * torch.cat(pieces)


# %% [markdown]
# `NetworkPosterior` does this for linear and convolutional layers of any network, and falls back on per-example gradients for others.
# In a convolution the same weights act at many places of an example. The example's gradient is then a sum of outer products, which is squared example by example, a few at a time.
# The scalar estimate needs no matrix at all, for the squares of an outer product add up to $\lvert\delta_i\rvert^2\lvert a_i\rvert^2$.


# %%
def network_posterior(batch_size):
    return NetworkPosterior(
        multilayer_perceptron([196, 30, 10]),
        halved[0],
        train.targets,
        batch_size=batch_size,
    )


digit_posterior = network_posterior(100)
weights = digit_posterior.initial_position(8, torch.Generator().manual_seed(0))
with torch.no_grad():
    (indices,) = digit_posterior.draw_minibatches(
        weights, torch.Generator().manual_seed(1), step=0
    )
    _, by_package = digit_posterior.gradient_and_variance_given(
        weights, indices, "diagonal"
    )
    each = digit_posterior.per_example_gradients(
        weights, digit_posterior.gather(indices)
    )
    explicit = 4_000**2 / 100 * (1 - 100 / 4_000) * each.var(1)
    by_hand = noise_by_weight(
        weights[0], halved[0][indices[0]], train.targets[indices[0]], 4_000
    )
del each

# %% tags=["hide-input"]
claim(
    "Largest difference between V̂ of the package and V̂ from per-example gradients, "
    "relative to the largest entry",
    (by_package - explicit).abs().max() / explicit.max(),
    at_most=1e-4,
    because="the same numbers summed otherwise; single precision",
    kind="exact",
)
claim(
    "Largest difference between V̂ of the plain lines and V̂ of the package, relative "
    "to the largest entry",
    (by_hand - by_package[0]).abs().max() / by_package[0].max(),
    at_most=1e-4,
    because="the same numbers summed otherwise; single precision",
    kind="exact",
)

# %% [markdown]
# What does it cost? Most of the time of a step of a large layer goes into products of matrices of the same size: one forward, one for the gradient, and one for the squares if they are wanted. So with large layers the online diagonal should cost half a step more at most; with small ones, as here, what surrounds the products counts too, and the share can be larger.
# `python benchmarks/noise.py` measures it on your machine.
#
# ## A thermometer
#
# We give the sampler $\eta = 2\cdot10^{-5}$ and $\alpha = 0.01$, half the $\eta/\alpha$ of SGHMC in {doc}`/book/tutorial/digits`. In learning-rate form ({eq}`eq-learning-rate`) the noise $\beta = \tfrac12\eta V$ is to be compared with $\alpha$: their ratio is $B/C$.
#
# No reference posterior is to be had for a network, but a thermometer is. The proof of {prf:ref}`thm-estimate-direction` gives the variance of the momentum along a direction,
#
# $$
# \bigl(1 - \tfrac12\varepsilon C - \tfrac14\varepsilon^2a\bigr)\,E\bigl[(v^\top r)^2\bigr] = T_v ,
# $$ (eq-thermometer)
#
# and the term with the curvature $a$ is small where the step is small against the curvature. So the momenta of a run tell the temperature of every weight.
#
# We run the sampler with minibatches of $n = 500$ and of $n = 100$, with $\hat B = 0$ and with the online diagonal, and look at three things over the second half of the run: the temperature; the noise $\beta_j$ that each weight met; and the predictions on the 1,000 test digits.

# %% tags=["hide-input"]
learning_rate, decay = 2e-5, 0.01


def follow(batch_size, chains, momentum_decay, noise_estimate, num_steps=700):
    """Temperature and noise β of every weight, and each chain's log score and
    calibration error."""
    target = network_posterior(batch_size)
    kernel = SGHMC.from_learning_rate(learning_rate, momentum_decay, noise_estimate)
    generator = torch.Generator().manual_seed(1)
    temperature, variance, probabilities = 0, 0, []
    with torch.no_grad():
        state = kernel.init(target, weights[:chains], generator)
        for step in range(num_steps):
            state, _ = kernel.step(target, state, generator)
            if step >= num_steps // 2:
                temperature += (
                    state.momentum.square().mean(0)
                    * (1 - 0.5 * momentum_decay)
                    / (num_steps // 2)
                )
                if step % 20 == 0:
                    variance += estimate_noise_variance(
                        target, state.position, generator
                    ) / (num_steps // 40)
                    probabilities.append(target.predict(state.position, halved[1]))
    average = torch.stack(probabilities).mean(0)
    scores = torch.tensor(
        [
            (log_score(p, test.targets), expected_calibration_error(p, test.targets))
            for p in average
        ]
    )
    return temperature, 0.5 * learning_rate * variance, scores


# %%
online = OnlineNoise("diagonal", averaging=0.9)
network_runs = {
    ("n = 500", "zero"): follow(500, 4, decay, 0.0),
    ("n = 500", "online"): follow(500, 4, decay, online),
    ("n = 100", "zero"): follow(100, 8, decay, 0.0),
    ("n = 100", "online"): follow(100, 8, decay, online),
}

# %% [markdown]
# Nothing forces the friction to be one number. The noise that the last run met tells where friction is short. So we give each weight the decay $\alpha_j = \max(3\hat\beta_j, \alpha)$, but at most ½, and run twice more:

# %%
met = network_runs["n = 100", "online"][1] / (0.5 * learning_rate)  # V of each weight
by_weight = (1.5 * learning_rate * met).clamp(decay, 0.5)  # 3β̂, or α
more = "n = 100, friction by weight"
network_runs[more, "zero"] = follow(100, 8, by_weight, 0.0)
network_runs[more, "online"] = follow(100, 8, by_weight, online)

# %% mystnb={"figure": {"caption": "The digits' network. Top: temperature of the weights against their noise over friction, in bins, with $1 + \\beta/\\alpha$ (solid: nothing is taken away) and $\\max(1, \\beta/\\alpha)$ (dashed: all that can be). Friction by weight (triangles) is in the lower panel only. Bottom: log score of a chain's averaged prediction, with two standard errors over chains.", "name": "fig-estimate-network"}, "image": {"alt": "Top: points of the runs without an estimate rise along the solid line; those with the estimate stay near 1 for small noise and rise where the noise approaches the friction. Bottom: at n = 100 the score falls from neither, over the estimate alone and friction by weight alone, to both together; at n = 500 two points stand side by side."}} tags=["hide-input"]
figure, (top, bottom) = plt.subplots(2, 1, figsize=(6.4, 7.6))
edges = torch.logspace(-3, 1, 13)
middles = (edges[1:] * edges[:-1]).sqrt()
top.axhline(1, color=TRUTH, zorder=0)
grid = torch.logspace(-3, 1, 200)
top.plot(grid, 1 + grid, color="black", lw=1)
top.plot(grid, grid.clamp(min=1), "--", color="black", lw=1)
markers = {"n = 500": "s", "n = 100": "o", more: "^"}
for place, ((setting, kind), run) in enumerate(network_runs.items()):
    temperature, network_noise, scores = run
    colour = ZERO if kind == "zero" else ONLINE
    label = f"{setting}, " + (r"$\hat B = 0$" if kind == "zero" else "online")
    score, error = scores[:, 0].mean(), scores[:, 0].std() / len(scores) ** 0.5
    bottom.errorbar(
        place, score, 2 * error, fmt=markers[setting], color=colour, label=label
    )
    if setting != more:
        bins = torch.bucketize(network_noise / decay, edges)
        points = [
            (float(middles[i - 1]), float(temperature[bins == i].mean()))
            for i in range(1, 13)
            if (bins == i).sum() >= 20
        ]
        top.plot(*zip(*points, strict=True), markers[setting], ms=4.5, color=colour)
top.set(
    xscale="log",
    xlabel=r"noise over friction, $\beta_j/\alpha$",
    ylabel="temperature",
    ylim=(0.8, 4),
)
bottom.set(xticks=[], ylabel="log score (smaller is better)")
figure.legend(*bottom.get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()

# %% [markdown]
# The thermometer reads nearly what the formula says, over weights of like noise ({numref}`fig-estimate-network`, top): with nothing taken away $1 + \beta_j/\alpha$, and with the estimate one, as long as $\beta_j$ is well below $\alpha$.
# With the estimate it rises from one before $\beta_j$ reaches $\alpha$. In part this is because the noise of a weight comes and goes along the run, and is clipped when it is up.
#
# Where there is little noise the thermometer reads a little *below* one.
# These runs are short, 700 steps, which are some three units of time, and start with small weights. On its way out to the width of the prior a weight takes energy from its momentum.
# For weights without data, whose pixel is never inked, the law of this start is exactly known, and the cell below computes what the thermometer has to show.
#
# At $n = 500$ the noise is six or seven per cent of the friction on average. The estimate brings the mean temperature down to about one. In log score it has no effect beyond 0.08, because there is little to correct.

# %%
step_size, one = learning_rate**0.5, torch.eye(1, dtype=torch.float64)
free = sghmc_chain(one, step_size, decay / step_size)  # prior N(0, 1), no data
covariance = torch.diag(torch.tensor([1 / 196, 1], dtype=torch.float64))  # (θ, r)
readings = []
for _ in range(700):
    covariance = free.transition @ covariance @ free.transition.T
    covariance = covariance + free.noise_covariance
    readings.append(float(covariance[1, 1]) * (1 - 0.5 * decay))

# %% tags=["hide-input"]
temperatures_of = {
    key: float(temperature.mean()) for key, (temperature, *_) in network_runs.items()
}
noises_of = {
    key: float((network_noise / decay).mean())
    for key, (_, network_noise, *_) in network_runs.items()
}
scores_of = {key: scores.mean(0) for key, (_, _, scores) in network_runs.items()}
no_ink = (halved[0] == 0).all(0)
without_data = network_runs["n = 500", "zero"][0][: 30 * 196].view(30, 196)[:, no_ink]
claim(
    "Temperature of a weight without data over steps 351 to 700, from a small start",
    sum(readings[350:]) / 350,
    near=0.9524,
    within=0.001,
    because="exact law of a linear chain on N(0, 1)",
    kind="exact",
)
claim(
    "The same, measured in the weights of the pixels that are never inked",
    without_data.mean(),
    near=0.9524,
    within=0.09,
    because="540 weights in four chains, standard error near 0.018",
)
claim(
    "n = 500: mean noise over friction",
    noises_of["n = 500", "zero"],
    near=0.068,
    within=0.035,
    because="ten seeds give 0.062 to 0.076",
)
claim(
    "n = 500: mean temperature with the estimate",
    temperatures_of["n = 500", "online"],
    near=1,
    within=0.055,
    because="what the estimate is for; 0.988 to 1.005 with three seeds",
)
claim(
    "n = 500: mean temperature with B̂ = 0",
    temperatures_of["n = 500", "zero"],
    at_least=1.02,
    because="the noise adds 0.06 to 0.075",
)
claim(
    "n = 500: log score with the estimate less log score without",
    scores_of["n = 500", "online"][0] - scores_of["n = 500", "zero"][0],
    near=0,
    within=0.08,
    because="no effect is seen; the standard error of the difference is near 0.02",
)

# %% [markdown]
# At $n = 100$ the noise is more than a third of the friction, and unequally so. About half of the weights have less noise than a tenth of the friction, and one in ten has more than all of it. There the estimate is clipped and the chain stays hot.
# With friction by weight there is room nearly everywhere, the mean temperature is again about one, and both scores improve: the log score, which is the {term}`log loss`, and the {term}`calibration` error.
# In our seeds the estimate alone helped, the friction alone helped too, and the two together most ({numref}`fig-estimate-network`, bottom).
# So the first use of $\hat V$ in a network is to see where the noise is, and the second is to take it away.
#
# A better score is no proof of a better posterior. But, once a run has forgotten its start, a temperature of one is a test that a sampler of the posterior must pass, and the hot chains fail it.

# %% tags=["hide-input"]
claim(
    "n = 100: mean noise over friction",
    noises_of["n = 100", "zero"],
    near=0.37,
    within=0.12,
    because="three seeds give 0.35 to 0.38",
)
claim(
    "n = 100: share of the weights whose noise exceeds the friction",
    (network_runs["n = 100", "zero"][1] > decay).double().mean(),
    near=0.108,
    within=0.055,
    because="three seeds give 0.10 to 0.12",
)
claim(
    "n = 100: share of the weights whose noise is below a tenth of the friction",
    (network_runs["n = 100", "zero"][1] < 0.1 * decay).double().mean(),
    near=0.55,
    within=0.1,
    because="other seeds agree to 0.03",
)
claim(
    "n = 100: mean temperature with B̂ = 0",
    temperatures_of["n = 100", "zero"],
    at_least=1.25,
    because="other seeds agree to 0.03",
)
for setting, expected, within in (("n = 100", 1.21, 0.14), (more, 0.98, 0.05)):
    claim(
        f"{setting}: mean temperature with the estimate",
        temperatures_of[setting, "online"],
        near=expected,
        within=within,
        because="other seeds agree to 0.03",
    )
claim(
    "n = 100: log score with friction by weight and the estimate, over that with "
    "neither",
    scores_of[more, "online"][0] / scores_of["n = 100", "zero"][0],
    at_most=1,
    because="it is the least of four; the estimate alone gives 0.86 to 0.95",
)
claim(
    "n = 100: calibration error with friction by weight and the estimate, over that "
    "with neither",
    scores_of[more, "online"][1] / scores_of["n = 100", "zero"][1],
    at_most=0.7,
    because="other seeds give 0.31 to 0.46",
)

# %% [markdown]
# ## Where the noise is
#
# Is it the same with all 784 pixels and 100 hidden units, 79,510 weights? Long runs of that network are for {doc}`/book/studies/mnist`; its noise is measured in a few seconds.
# We take 400 steps from random weights at $n = 500$, and compare $\beta_j$ with $\alpha$ in each layer.

# %%
larger = NetworkPosterior(
    multilayer_perceptron([784, 100, 10]),
    train.inputs.flatten(1),
    train.targets,
    batch_size=500,
)
generator = torch.Generator().manual_seed(0)
kernel = SGHMC.from_learning_rate(learning_rate, decay)
with torch.no_grad():
    state = kernel.init(larger, larger.initial_position(1, generator), generator)
    for _ in range(400):
        state, _ = kernel.step(larger, state, generator)
found = estimate_noise_variance(
    larger, state.position.expand(4, -1).contiguous(), generator, num_batches=2
)
over_friction = 0.5 * learning_rate * found / decay
sizes = [100 * 784, 100, 10 * 100, 10]
layers = ("hidden weights", "hidden biases", "output weights", "output biases")
by_layer = dict(zip(layers, over_friction.split(sizes), strict=True))

# %% mystnb={"figure": {"caption": "Noise over friction in the 784-100-10 network with $n = 500$, after 400 steps. Top: hidden weights, averaged over the 100 units, at the pixel from which they come. Bottom: the $10 \\times 100$ output weights. Note the two scales.", "name": "fig-noise-where"}, "image": {"alt": "Top: a map of the 28 by 28 pixels, bright in the middle, where digits are written, and black at the edges. Bottom: a map of ten rows and a hundred columns; some columns, the hidden units that are much in use, are bright in most rows, many are dark."}} tags=["hide-input"]
figure, (top, bottom) = plt.subplots(2, 1, figsize=(6.4, 5.8), height_ratios=(2, 1))
pixels = by_layer["hidden weights"].view(100, 28, 28).mean(0)
shown = top.imshow(pixels, cmap="magma", vmin=0)
top.set(xticks=[], yticks=[], title="hidden weights, by pixel")
figure.colorbar(shown, cax=top.inset_axes([1.04, 0, 0.05, 1]))
shown = bottom.imshow(
    by_layer["output weights"].view(10, 100), cmap="magma", vmin=0, aspect="auto"
)
bottom.set(xlabel="hidden unit", ylabel="digit", title="output weights")
figure.colorbar(shown, cax=bottom.inset_axes([1.02, 0, 0.02, 1]))
plt.show()

# %% mystnb={"figure": {"caption": "The same network: share of a layer's weights whose noise is more than so many times the friction. The grey line is where noise and friction are equal.", "name": "fig-estimate-layers"}, "image": {"alt": "Four falling curves on a logarithmic axis. The curve of the hidden weights lies far to the left; that of the output weights reaches furthest to the right, with a part beyond the line at one."}} tags=["hide-input"]
figure, axes = plt.subplots()
axes.axvline(1, color=TRUTH, zorder=0)
for (layer, values), style in zip(
    by_layer.items(), ("-", "--", "-", "--"), strict=True
):
    axes.plot(
        values.sort().values,
        1 - torch.arange(len(values)) / len(values),
        style,
        color=ONLINE if layer.startswith("hidden") else ZERO,
        label=layer,
    )
axes.set(
    xscale="log",
    xlim=(1e-4, 1e2),
    xlabel=r"noise over friction, $\beta_j/\alpha$",
    ylabel="share of weights with more",
)
axes.legend()
plt.show()

# %% [markdown]
# The noise sits where the ink is and in the output layer ({numref}`fig-noise-where`); a weight whose pixel is never inked has none.
# On average it is a few per cent of the friction. In the output layer it is more than fifteen times that of the hidden one, and in a few weights more than four times the friction ({numref}`fig-estimate-layers`).
# So one number for $\hat B$ is wrong for nearly all weights, and one number for $C$ is too much for most of them or too little for the noisy ones.

# %% tags=["hide-input"]
claim(
    "784–100–10, n = 500: mean noise over friction",
    over_friction.mean(),
    at_most=0.1,
    because="ten seeds give 0.013 to 0.05",
)
claim(
    "784–100–10, n = 500: mean noise of the output weights over that of the hidden "
    "weights",
    by_layer["output weights"].mean() / by_layer["hidden weights"].mean(),
    at_least=15,
    because="other seeds give 33 to 46",
)
claim(
    "784–100–10, n = 500: share of all weights whose noise exceeds the friction",
    (over_friction > 1).double().mean(),
    at_most=0.01,
    because="other seeds give 0.001 to 0.003",
)
claim(
    "784–100–10, n = 500: friction over the largest noise among the output weights",
    1 / by_layer["output weights"].max(),
    at_most=0.25,
    because="ten seeds give 0.015 to 0.11",
)
never = (train.inputs.flatten(1) == 0).all(0)
claim(
    "784–100–10: the largest noise of weights whose pixel is never inked",
    by_layer["hidden weights"].view(100, 784)[:, never].max(),
    at_most=0.0,
    because="their gradient is zero for every example",
    kind="exact",
)

# %% [markdown]
# ## A matrix for each layer?
#
# With the weights in hand we can also settle what lies between a diagonal and a full matrix. The noise of a layer is $\operatorname{Cov}(\delta_ia_i^\top)$. If the signal $\delta_i$ were independent of the activations $a_i$ it would be, apart from the means, the *Kronecker product* $E[\delta_i\delta_i^\top] \otimes E[a_ia_i^\top]$ of two small matrices {cite:p}`martens2015`: the entry for the weights $(j, k)$ and $(j', k')$ is $E[\delta_j\delta_{j'}]\,E[a_ka_{k'}]$.
# Such an estimate is cheap, and it knows correlations. Is it good? The output layer has 1,000 weights, few enough to compute the covariance over all 4,000 examples.

# %%
first, first_bias, second, second_bias = state.position[0].split(sizes)
activations = torch.relu(train.inputs.flatten(1) @ first.view(100, 784).T + first_bias)
signals = torch.softmax(activations @ second.view(10, 100).T + second_bias, -1)
signals[torch.arange(len(signals)), train.targets] -= 1
exact = torch.cov(
    (signals[:, :, None] * activations[:, None, :]).flatten(1).T, correction=0
)
kronecker = torch.kron(
    signals.T @ signals / len(signals), activations.T @ activations / len(signals)
)
diagonal = torch.diag(exact.diagonal())
noisiest = torch.linalg.eigh(exact).eigenvectors[:, -1]


def along(matrix):
    """Variance along the noisiest direction."""
    return float(noisiest @ matrix @ noisiest)


# %% [markdown]
# The Kronecker product does not earn its place. As a matrix it was about as far from the truth as the diagonal, with several seeds. What the diagonal has right, each weight's own variance, it misses by a large part of that variance on average. Along the noisiest direction it finds more than the diagonal, but still only a part of what is there.
# The reason is that signal and activations are not independent: once a network fits, $\delta_i$ is near zero except for a few hard examples, and their activations are not those of the average.
# More minibatches do not help, for this is a bias; and {prf:ref}`thm-estimate-kick` asks for an unbiased estimate. So `sgmc` has none of this kind.

# %% tags=["hide-input"]
claim(
    "Kronecker product: distance from the covariance, over that of the diagonal",
    torch.linalg.norm(kronecker - exact) / torch.linalg.norm(diagonal - exact),
    at_least=0.4,
    because="several seeds give 0.8 to 1.16",
)
claim(
    "Kronecker product: mean absolute error of its diagonal, relative to the mean of "
    "the right one",
    (kronecker - exact).diagonal().abs().mean() / exact.diagonal().mean(),
    at_least=0.3,
    because="other seeds give 0.8 to 1.3, and a diagonal estimate has none",
)
claim(
    "Kronecker product: variance along the noisiest direction, over the right one",
    along(kronecker) / along(exact),
    at_most=0.95,
    because="other seeds give 0.17 to 0.60",
)
claim(
    "What the diagonal finds there, over what the Kronecker product finds",
    along(diagonal) / along(kronecker),
    at_most=1,
    because="other seeds give 0.14 to 0.5",
)

# %% [markdown]
# ## In practice
#
# * Measure before you choose: `estimate_noise_variance` once, after a few hundred steps, compared with the friction layer by layer.
# * If the noise is a few per cent of the friction everywhere, take $\hat B = 0$ and go on.
# * If it is large in a few weights, give those more friction: `(1.5 * learning_rate * variance).clamp(min=decay)`, three times $\hat\beta$ and at least $\alpha$.
# * Then take the rest away with `OnlineNoise("diagonal", averaging=0.9)`.
# * Read the thermometer: momenta squared, times $1 - \tfrac12\alpha$, should average to one.
#
# ## Formulas
#
# | what | formula | where |
# | --- | --- | --- |
# | squares of a layer's gradients | $\sum_i(\delta_ia_i^\top)^2 = \sum_i\delta_i^2(a_i^2)^\top$ | {eq}`eq-squares` |
# | thermometer | $T_v = (1 - \tfrac12\varepsilon C - \tfrac14\varepsilon^2a)\,E[(v^\top r)^2]$ | {eq}`eq-thermometer` |
# | temperature of a weight | $1 + \beta_j/\alpha$ with $\hat B = 0$ | {eq}`eq-direction`, {eq}`eq-learning-rate` |
# | least temperature by any estimate | $\max(1, \beta_j/\alpha)$ | {eq}`eq-clipping` |
#
# ## Change it
#
# * Replace `learning_rate, decay = 2e-5, 0.01` by `learning_rate, decay = 2e-5, 0.04`: with four times the friction the noise is a quarter of what it was in comparison, and the claims on the mean noise over friction and on the temperatures with $\hat B = 0$ show ✗. There is now nothing to repair. The exact one on weights without data shows ✗ too, for with this friction they spread more slowly.
# * In `noise_by_weight` replace `(delta.T @ a) ** 2 / n` by `0 * (delta.T @ a) ** 2`: the mean is no longer subtracted, and the claim that compares the plain lines with the package shows ✗.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-network-scalar
#
# **Write it yourself.** Compute the *scalar* estimate, the mean of $\hat V_{jj}$ over all weights, without any product of matrices for the squares.
#
# ```python
# def my_scalar_noise(position, x, y, num_examples):
#     """position (6220,), x (n, 196), y (n,) -> a number"""
#     for a, delta in activations_and_signals(position, x, y):
#         ...
# ```
#
# Task 3 of assignment 2 ({doc}`/book/practice/teaching`) is the same estimate from per-example gradients; assignment 4 samples a network.
# ````
#
# ````{solution} ex-network-scalar
# :class: dropdown
#
# The squares of $\delta_ia_i^\top$ add up to $\lvert\delta_i\rvert^2\lvert a_i\rvert^2$, where $a_i$ has a 1 for the bias. The gradient itself, $\sum_i\delta_ia_i^\top$, is there already.
#
# ```python
# def my_scalar_noise(position, x, y, num_examples):
#     n, total = len(y), 0.0
#     for a, delta in activations_and_signals(position, x, y):
#         a = torch.cat([a, torch.ones(n, 1)], -1)
#         total += ((delta**2).sum(-1) * (a**2).sum(-1)).sum()
#         total -= ((delta.T @ a) ** 2).sum() / n
#     factor = num_examples**2 / n * (1 - n / num_examples) / (n - 1)
#     return factor * total / len(position)
# ```
#
# The cell below compares it with the package's.
# ````


# %% tags=["hide-input"]
def my_scalar_noise(position, x, y, num_examples):
    n, total = len(y), 0.0
    for a, delta in activations_and_signals(position, x, y):
        a = torch.cat([a, torch.ones(n, 1)], -1)
        total += ((delta**2).sum(-1) * (a**2).sum(-1)).sum()
        total -= ((delta.T @ a) ** 2).sum() / n
    factor = num_examples**2 / n * (1 - n / num_examples) / (n - 1)
    return factor * total / len(position)


with torch.no_grad():
    scalar = digit_posterior.gradient_and_variance_given(weights, indices, "scalar")[1]
    mine = my_scalar_noise(
        weights[0], halved[0][indices[0]], train.targets[indices[0]], 4_000
    )
claim(
    "The written scalar estimate over the package's",
    mine / scalar[0, 0],
    near=1,
    within=1e-4,
    because="the same numbers summed otherwise; single precision",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-network-thermometer
#
# The thermometer leaves out $\tfrac14\varepsilon^2a$. In which weights does it read too high, and how large may the curvature $a$ be if the reading is to be right to two per cent at $\eta = 2\cdot10^{-5}$?
# ```
#
# ```{solution} ex-network-thermometer
# :class: dropdown
#
# By {eq}`eq-thermometer` the reading is $(1 - \tfrac12\varepsilon C)\,E[(v^\top r)^2] = T_v + \tfrac14\varepsilon^2a\,E[(v^\top r)^2]$, too high by a share of about $\tfrac14\eta a$, because $\eta = \varepsilon^2$ for mass 1. It is largest in stiff directions. Two per cent allow $a \le 0.08/\eta = 4{,}000$.
# ```
#
# ```{exercise}
# :label: ex-network-friction
#
# {prf:ref}`thm-estimate-direction` wants the friction to be a number. Let $A$, $V$, $\hat B$ and $C$ all be diagonal. What is the temperature of coordinate $j$, and what becomes of it with $C_{jj} = 3B_{jj}$ and $\hat B = 0$?
# ```
#
# ```{solution} ex-network-friction
# :class: dropdown
#
# The coordinates are then independent chains, each in one dimension with a friction of its own, so $T_j = 1 + (B_{jj} - \hat B_{jj})/C_{jj}$. With three times the noise as friction and no estimate it is $\tfrac43$ in every coordinate, however much noise there is: friction by weight makes the heat equal, and the estimate takes it away.
# ```
#
# ```{exercise}
# :label: ex-network-kronecker
#
# Let $\delta_i$ and $a_i$ be independent, with means $\bar\delta$ and $\bar a$. By how much does the Kronecker product exceed the covariance of $\delta_ia_i^\top$, and when does that matter?
# ```
#
# ```{solution} ex-network-kronecker
# :class: dropdown
#
# Independence gives $E[\delta_ja_k\,\delta_{j'}a_{k'}] = E[\delta_j\delta_{j'}]\,E[a_ka_{k'}]$, and the covariance is that less $\bar\delta_j\bar a_k\bar\delta_{j'}\bar a_{k'}$. So the product exceeds it by $\bar\delta\bar\delta^\top \otimes \bar a\bar a^\top$, the square of the mean gradient. Where the network fits, the mean signal $\bar\delta$ is small, and it hardly matters. The failure above is another: the two are not independent.
# ```
#
# ## Further reading
#
# {cite:t}`ahn2012` make the estimate part of a sampler, {cite:t}`martens2015` introduce Kronecker products for optimisation, where a bias does less harm, and {cite:t}`wenzel2020` measure temperatures of networks' samplers by their momenta.
