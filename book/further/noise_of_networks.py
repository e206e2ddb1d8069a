# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # What does a network's minibatch noise look like?
#
# ```{div} page-head
# Level: second course · Reading: about 25 minutes, without the exercises · Running: about 18 seconds
# ```
#
# ```{index} ! thermometer of a run, ! Kronecker product, diagonal noise estimate
# ```

# %%
import torch

from booklib.data import digits
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import at_least, at_most, check
from sgmc.kernels import SGHMC
from sgmc.posteriors import NetworkPosterior

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
from torch.nn.functional import avg_pool2d

from booklib.page.claims import DECIDED, near
from booklib.page.figures import TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.runs.results import RESULTS, Seeds, read_result, who_ran
from booklib.scores.prediction import log_score
from booklib.scores.seeds import family, gap
from sgmc.noise import OnlineNoise, estimate_noise_variance
from sgmc.splittings import sghmc_chain

use_style()
play()  # a claim that fails now shows ✗, and the page goes on
ZERO, ONLINE = "#D55E00", "#0072B2"

# %% [markdown]
# {doc}`Page 9 of the tutorial </book/tutorial/estimating_the_noise>` subtracts an estimate $\hat B$ of the minibatches' noise.
# What does this noise look like in a network with 79,510 weights, and what does it cost to know it?
#
# **It differs from weight to weight by factors of thousands.** On average it is {c}`mean` times the friction. But an output weight has {c}`ratio` times the noise of a hidden weight, the noisiest output weight has {c}`noisiest` times the friction, and a weight whose pixel is never inked has no noise.
# **A number for each weight costs one more matrix product a layer, and {c}`time` times the processor time in a run of the paper's network.** There it brings the temperature nearer to 1: the distance from 1 changes by {c}`first` in the first layer's weights and by {c}`second` in the last layer's. But the log loss of the averaged prediction is worse, by {c}`loss`.
#
# We take SGHMC in its learning-rate form ({eq}`eq-learning-rate`). The noise of weight $j$ is $\beta_j = \tfrac12\eta V_{jj}$, and it compares with the friction $\alpha$.
# This is the whole measurement, in the 784–100–10 network on 4,000 digits, after 400 steps from random weights:

# %%
learning_rate, decay = 2e-5, 0.01
train, test = digits()
x, y, N = train.inputs.flatten(1), train.targets, len(train.targets)


def activations_and_signals(weights, x, y):
    """The inputs of both layers, and the slopes of −log p(y) by their outputs."""
    first, bias, second, last = weights.split([100 * 784, 100, 10 * 100, 10])
    hidden = torch.relu(x @ first.view(100, 784).T + bias)
    signal = torch.softmax(hidden @ second.view(10, 100).T + last, -1)
    signal[torch.arange(len(y)), y] -= 1
    return (x, (signal @ second.view(10, 100)) * (hidden > 0)), (hidden, signal)


def noise_by_weight(weights, x, y):
    """V̂ of both layers' weights from one minibatch without replacement."""
    n, found = len(y), []
    for a, delta in activations_and_signals(weights, x, y):
        squares = (delta**2).T @ a**2 - (delta.T @ a) ** 2 / n
        found.append(N**2 / n * (1 - n / N) / (n - 1) * squares)
    return found


# %%
network = multilayer_perceptron([784, 100, 10])
posterior = NetworkPosterior(network, x, y, batch_size=500)
kernel = SGHMC.from_learning_rate(learning_rate, decay)
generator = torch.Generator().manual_seed(0)
with torch.no_grad():
    state = kernel.init(posterior, posterior.initial_position(1, generator), generator)
    for _ in range(400):
        state, _ = kernel.step(posterior, state, generator)
weights = state.position[0]
epoch = torch.randperm(N, generator=generator).split(500)  # eight minibatches
layers = zip(*(noise_by_weight(weights, x[i], y[i]) for i in epoch), strict=True)
hidden, output = (
    0.5 * learning_rate * torch.stack(layer).mean(0) / decay for layer in layers
)
check(
    "ratio",
    output.mean() / hidden.mean(),
    at_least(15),
    because="other seeds give 33 to 46",
)
check("noisiest", output.max(), at_least(4), because="ten seeds give 9 to 67")

# %% mystnb={"figure": {"caption": "Noise over friction, $\\beta_j/\\alpha$, in the network of the digits with $n = 500$. Left: hidden weights, averaged over the 100 units, at the pixel from which they come. Right: the share of a layer's weights that have more noise than so many times the friction; grey: where noise and friction are equal.", "name": "fig-noise-where"}, "image": {"alt": "Left: a map of the 28 by 28 pixels, bright in the middle, where digits are written, and black at the edges. Right: two falling curves on a logarithmic axis. The curve of the hidden weights lies far to the left; that of the output weights reaches furthest to the right, with a part beyond the line at one."}} tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(6.6, 3.2))
shown = left.imshow(hidden.view(100, 28, 28).mean(0), cmap="magma", vmin=0)
left.set(xticks=[], yticks=[], title="hidden weights, by pixel")
figure.colorbar(shown, ax=left, shrink=0.8)
right.axvline(1, color=TRUTH, zorder=0)
for label, values, look in (("hidden", hidden, "-"), ("output", output, "--")):
    ordered = values.flatten().sort().values
    more = 1 - torch.arange(len(ordered)) / len(ordered)
    right.plot(ordered, more, look, color=ONLINE, label=f"{label} weights")
right.set(
    xscale="log", xlim=(1e-4, 1e2), xlabel=r"noise over friction, $\beta_j/\alpha$"
)
right.set(ylabel="share of weights with more")
right.legend()
plt.show()

# %% tags=["hide-input"]
everything = torch.cat([hidden.flatten(), output.flatten()])
check("mean", everything.mean(), at_most(0.1), because="ten seeds give 0.013 to 0.05")
check(
    "never",
    hidden.view(100, 784)[:, (x == 0).all(0)].max(),
    at_most(0.0),
    because="their gradient is zero for every example",
    kind="exact",
    says="The largest noise of weights whose pixel is never inked",
)
few = torch.arange(0, N, 40)
gradients = posterior.per_example_gradients(
    state.position, posterior.gather(few[None])
)[0]
explicit = N**2 / len(few) * (1 - len(few) / N) * gradients.var(0)
explicit = explicit.split([78_400, 100, 1_000, 10])[::2]
by_hand = noise_by_weight(weights, x[few], y[few])
check(
    "by-hand",
    max(
        (a.flatten() - b).abs().max() / b.max()
        for a, b in zip(by_hand, explicit, strict=True)
    ),
    at_most(1e-4),
    because="the same numbers summed otherwise; single precision",
    kind="exact",
    says="Largest difference of noise_by_weight and the variance of 100 gradients made "
    "one by one, over the layer's largest",
)

# %% [markdown]
# {numref}`fig-noise-where` shows where the noise is.
# So one number for $\hat B$ is wrong for nearly all weights, and one number for the friction is too much for most of them or too little for the noisy ones.
#
# *A guess before you read on.* The variance of 500 examples' gradients seems to need the 500 gradients, 160 megabytes at each step. How does `noise_by_weight` do without them?
#
# ## Squares without per-example gradients
#
# We want the diagonal estimate of {prf:ref}`def-estimate`: for every weight, the variance of the examples' gradients over the minibatch.
# A full $\hat V$ is out of reach, for it has $79{,}510^2$ entries, 25 gigabytes.
#
# Let a linear layer map the activations $a_i$ of example $i$ to $Wa_i$, and let $\delta_i$ be the *signal*, the derivative of the loss of this example by the layer's output. Back-propagation computes both.
# The example's gradient in $W$ is the outer product $\delta_ia_i^\top$, whose entry $(j, k)$ is a product of one number of each, and so its square is the product of their squares.
# Added up over the minibatch, entry by entry,
#
# $$
# \sum_{i \in S}\bigl(\delta_ia_i^\top\bigr)^2 = \sum_{i \in S}\delta_i^2\,\bigl(a_i^2\bigr)^\top .
# $$ (eq-squares)
#
# The right side is a product of two matrices that are there already, of the same size as the product that makes the gradient.
# The variance follows from this sum of squares and the sum, which is the gradient: that answers the guess. A bias is a weight of the constant input 1.
#
# What does it cost? A step of a large layer takes a product of this size forward, one or two backward, and one more for the squares. In small layers the work around the products counts, too; `python -m benchmarks.noise` measures your machine.
# `NetworkPosterior` does this for linear and convolutional layers of any network. In a convolution a weight acts at many places of an example, so the example's gradient is a sum of outer products, which is squared example by example.
#
# ## A thermometer
#
# Does the estimate do its work? No reference posterior is to be had for a network, but the momenta are a thermometer.
# In the chain of {prf:ref}`thm-estimate-direction` the momentum along a direction $v$ of curvature $a$ has
#
# $$
# \bigl(1 - \tfrac12\varepsilon C - \tfrac14\varepsilon^2a\bigr)\,E\bigl[(v^\top r)^2\bigr] = T_v ,
# $$ (eq-thermometer)
#
# where the last term is small if the step is small against the curvature. So the squared momenta of a run, times $1 - \tfrac12\alpha$, show the temperature of every weight.
#
# We sample a smaller network, 196–30–10 on the digits at half their resolution, for 700 steps with the prior $N(0, 1)$, with $\hat B = 0$ and with the online diagonal, and measure over the second half.
# The third row gives each weight a friction of its own: three times the $\hat\beta_j$ that an earlier run met, at least $\alpha$ and at most ½. $T$ is the mean over the weights, and the log loss is of a chain's averaged prediction on 1,000 test digits, with its standard error over chains.

# %% tags=["hide-input"]
halved, halved_test = (
    avg_pool2d(data.inputs.view(-1, 1, 28, 28), 2).flatten(1) for data in (train, test)
)


def small_network(batch_size):
    small = multilayer_perceptron([196, 30, 10])
    return NetworkPosterior(small, halved, y, batch_size=batch_size)


def follow(batch_size, chains, momentum_decay, noise_estimate, num_steps=700):
    """Temperature and noise β of every weight, and each chain's log loss."""
    target = small_network(batch_size)
    kernel = SGHMC.from_learning_rate(learning_rate, momentum_decay, noise_estimate)
    generator = torch.Generator().manual_seed(1)
    temperature, variance, probabilities = 0, 0, []
    half = num_steps // 2
    with torch.no_grad():
        state = kernel.init(target, start[:chains], generator)
        for step in range(num_steps):
            state, _ = kernel.step(target, state, generator)
            if step >= half:
                heat = state.momentum.square().mean(0) * (1 - 0.5 * momentum_decay)
                temperature += heat / half
                if step % 20 == 0:
                    seen = estimate_noise_variance(target, state.position, generator)
                    variance += seen / (num_steps // 40)
                    probabilities.append(target.predict(state.position, halved_test))
    average = torch.stack(probabilities).mean(0)
    losses = torch.tensor([log_score(p, test.targets) for p in average])
    return temperature, 0.5 * learning_rate * variance, losses


start = small_network(100).initial_position(8, torch.Generator().manual_seed(0))
online = OnlineNoise("diagonal", averaging=0.9)
runs, MORE = {}, "n = 100, friction by weight"
for setting, *numbers in (("n = 500", 500, 4, decay), ("n = 100", 100, 8, decay)):
    runs[setting] = follow(*numbers, 0.0), follow(*numbers, online)
by_weight = (3 * runs["n = 100"][1][1]).clamp(decay, 0.5)  # 3β̂, or α
runs[MORE] = follow(100, 8, by_weight, 0.0), follow(100, 8, by_weight, online)


def with_error(losses):
    return f"{losses.mean():.3f} ± {losses.std() / len(losses) ** 0.5:.3f}"


heads = ["", "mean β/α", "β > α, %", "T, B̂ = 0", "T, online"]
heads += ["log loss, B̂ = 0", "log loss, online"]
rows = [
    [
        setting,
        f"{(zero[1] / decay).mean():.2f}",
        f"{100 * (zero[1] > decay).double().mean():.0f}",
        *(f"{temperature.mean():.2f}" for temperature, _, _ in (zero, estimated)),
        *(with_error(losses) for _, _, losses in (zero, estimated)),
    ]
    for setting, (zero, estimated) in runs.items()
]
show_table(heads, rows, live=heads[1:])
temperatures = {
    setting: [float(temperature.mean()) for temperature, _, _ in both]
    for setting, both in runs.items()
}
agree = "other seeds agree to 0.03"
check(
    "T-500",
    temperatures["n = 500"][1],
    near(1, 0.055),
    because="what the estimate is for; 0.988 to 1.005 with three seeds",
)
for name, setting, expected in (
    ("T-100", "n = 100", near(1.21, 0.14)),
    ("T-more", MORE, near(0.98, 0.05)),
):
    check(name, temperatures[setting][1], expected, digits=3, because=agree)
check(
    "best",
    runs[MORE][1][2].mean() / runs["n = 100"][0][2].mean(),
    at_most(1),
    because="it is the least of four; the estimate alone gives 0.86 to 0.95",
)

# %% mystnb={"figure": {"caption": "The smaller network: temperature of the weights, in bins of their noise over friction, with the friction $\\alpha$ for all. Solid: $1 + \\beta/\\alpha$, nothing is subtracted; dashed: $\\max(1, \\beta/\\alpha)$, all that can be.", "name": "fig-estimate-network"}, "image": {"alt": "Points of the runs without an estimate rise along the solid line; those with the estimate stay near 1 for small noise and rise where the noise approaches the friction, from the dashed line upwards."}} tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.0, 3.4))
edges = torch.logspace(-3, 1, 13)
middles = (edges[1:] * edges[:-1]).sqrt()
grid = torch.logspace(-3, 1, 200)
axes.axhline(1, color=TRUTH, zorder=0)
axes.plot(grid, 1 + grid, color="black", lw=1)
axes.plot(grid, grid.clamp(min=1), "--", color="black", lw=1)
for setting, marker in (("n = 500", "s"), ("n = 100", "o")):
    kinds = ((r"$\hat B = 0$", ZERO), ("online", ONLINE))
    for (kind, colour), (temperature, met, _) in zip(kinds, runs[setting], strict=True):
        bins = torch.bucketize(met / decay, edges)
        full = [i for i in range(1, 13) if (bins == i).sum() >= 20]
        height = [float(temperature[bins == i].mean()) for i in full]
        place = [float(middles[i - 1]) for i in full]
        label = f"{setting}, {kind}"
        axes.plot(place, height, marker, ms=4.5, color=colour, label=label)
axes.set(xscale="log", xlabel=r"noise over friction, $\beta_j/\alpha$")
axes.set(ylabel="temperature", ylim=(0.8, 4))
axes.legend()
plt.show()

# %% tags=["hide-input"]
step_size, one = learning_rate**0.5, torch.eye(1, dtype=torch.float64)
free = sghmc_chain(one, step_size, decay / step_size)  # prior N(0, 1), no data
covariance = torch.diag(torch.tensor([1 / 196, 1], dtype=torch.float64))  # (θ, r)
readings = []
for _ in range(700):
    covariance = free.transition @ covariance @ free.transition.T
    covariance = covariance + free.noise_covariance
    readings.append(float(covariance[1, 1]) * (1 - 0.5 * decay))
no_ink = (halved == 0).all(0)
check(
    "small-start",
    runs["n = 500"][0][0][: 30 * 196].view(30, 196)[:, no_ink].mean(),
    near(sum(readings[350:]) / 350, 0.09),
    because="the exact law of the start; 540 weights, standard error near 0.018",
)

# %% [markdown]
# The weights follow the formula ({numref}`fig-estimate-network`): $1 + \beta_j/\alpha$ with nothing subtracted, and 1 with the estimate as long as $\beta_j$ is well below $\alpha$.
# It rises before $\beta_j$ reaches $\alpha$, in part because the noise of a weight comes and goes along the run, and is clipped when it is up ({eq}`eq-clipping`).
#
# At $n = 500$ the estimate brings the mean temperature to {c}`T-500`, and the log loss does not notice, because there was little to correct.
# At $n = 100$ the mean temperature is still {c}`T-100` with the estimate, because a tenth of the weights have more noise than friction.
# With friction by weight there is room nearly everywhere: {c}`T-more`. The log loss is then the least of the four, {c}`best` times that with neither.
# So first use $\hat V$ to see where friction is short, and then subtract it.
#
# The runs are short and start with small weights, which take energy from their momenta on the way out to the width of the prior. So the thermometer shows less than one where there is no noise: {c}`small-start` in weights without data, as the exact chain of this start does.
#
# ## In a whole run
#
# The experiment `noise` runs the paper's network ({doc}`/book/studies/mnist`, fresh minibatches of 500) for 80,000 steps with five seeds, with $\hat B = 0$ and with the estimate.
# We ask three questions of it, as one family: is the temperature of $W_1$, the squared momenta of the last step, nearer to 1, is that of $W_2$, and is the log loss of the average of 750 networks another?

# %% tags=["hide-input"]
seeds = Seeds.read("noise")
both = "SGHMC, online noise estimate", "SGHMC, fresh minibatches"


def from_one(weight):
    """How far the temperature of a layer is from 1, in each seed of both methods."""
    return tuple(
        seeds(method, lambda run: abs(run["temperature"][weight] - 1))
        for method in both
    )


def pair(what):
    return tuple(seeds(method, what) for method in both)


asked = {
    "distance of the temperature from 1, W₁": from_one("0.weight"),
    "distance of the temperature from 1, W₂": from_one("2.weight"),
    "log loss of the average": pair("average.log_loss"),
}
found = family(asked)
beside = {"log loss of the last network": pair("last.log_loss")}
show_table(
    ["5 seeds", "B̂ = 0", "online", "online less B̂ = 0 [95 %]"],
    [
        [
            name,
            f"{without.mean():.4f}",
            f"{given.mean():.4f}",
            found[name].starred() if name in found else str(gap(given, without)),
        ]
        for name, (given, without) in (asked | beside).items()
    ],
)
print(who_ran(read_result(RESULTS / "noise.json")))
first, second, loss = found.values()
check("first", first, DECIDED, kind="stored")
check("second", second, kind="stored")
check("loss", loss, DECIDED, kind="stored")
given, without = pair("processor_seconds")
check("time", given.mean() / without.mean(), kind="stored", digits=2)
check("clipped", 100 * seeds(both[0], "clipped").mean(), kind="stored", digits=2)

# %% [markdown]
# A star marks what Holm's procedure decides at 0.05 with the larger $p$-value of the paired and Welch's t-test; the last row was not asked.
# The temperature of $W_1$ comes nearer to 1, by {c}`first`, and that of $W_2$ by {c}`second`. The second interval ends close to zero.
# Both stay above 1: the squares are not multiplied by $1 - \tfrac12\alpha$, and {c}`clipped` per cent of the coordinates' steps were clipped, which heats.
# The log loss of the average is worse all the same, by {c}`loss`, although that of the last network is better.
# So a better temperature is no better prediction; a likely reason is that the hotter chain averages networks that differ more. The temperature says only which distribution is sampled: it is a test that a sampler of the posterior has to pass.
#
# ## A matrix for each layer?
#
# What lies between a diagonal and a full matrix? If the signal $\delta_i$ were independent of the activations $a_i$, the noise $\operatorname{Cov}(\delta_ia_i^\top)$ of a layer would be, apart from the means, the *Kronecker product* $E[\delta_i\delta_i^\top] \otimes E[a_ia_i^\top]$ of two small matrices {cite:p}`martens2015`.
# It is cheap, and it knows correlations. The output layer has 1,000 weights, few enough to compare with the covariance over all examples:

# %% tags=["hide-input"]
a, delta = activations_and_signals(weights, x, y)[1]
exact = torch.cov((delta[:, :, None] * a[:, None, :]).flatten(1).T, correction=0)
kronecker = torch.kron(delta.T @ delta / N, a.T @ a / N)
diagonal = torch.diag(exact.diagonal())
noisiest = torch.linalg.eigh(exact).eigenvectors[:, -1]


def along(matrix):
    """Variance along the noisiest direction."""
    return float(noisiest @ matrix @ noisiest)


def distance(matrix):
    return float(torch.linalg.norm(matrix - exact) / torch.linalg.norm(exact))


show_table(
    ["", "distance from the covariance", "variance found along the noisiest"],
    [
        [name, f"{distance(matrix):.2f}", f"{along(matrix) / along(exact):.2f}"]
        for name, matrix in (("diagonal", diagonal), ("Kronecker", kronecker))
    ],
    live=["distance from the covariance", "variance found along the noisiest"],
)
check(
    "kronecker-diagonal",
    (kronecker - exact).diagonal().abs().mean() / exact.diagonal().mean(),
    at_least(0.3),
    because="other seeds give 0.8 to 1.3",
)
check(
    "kronecker-along",
    along(kronecker) / along(exact),
    at_most(0.95),
    because="other seeds give 0.17 to 0.60",
)

# %% [markdown]
# The Kronecker product does not earn its place. Each weight's own variance, which the diagonal has right, it misses by {c}`kronecker-diagonal` times their mean. Along the noisiest direction it finds {c}`kronecker-along` of the variance, more than the diagonal but still only a part.
# The reason is that signal and activations are not independent: once a network fits, $\delta_i$ is near zero except for a few hard examples, whose activations are not those of the average.
# More minibatches do not help, for this is a bias, and {prf:ref}`thm-estimate-kick` asks for an unbiased estimate.
#
# **To remember:** measure the noise of every weight once, by one more product a layer. A few per cent of the friction everywhere: take $\hat B = 0$. Much in a few weights: give those three times their $\hat\beta$ as friction, then subtract the rest with `OnlineNoise("diagonal", averaging=0.9)`, and read the thermometer.
#
# ## Change it
#
# * In the cell of the two functions set `(delta.T @ a) ** 2 / n` to `0 * (delta.T @ a) ** 2`: the mean is no longer subtracted, and the comparison with gradients made one by one shows ✗.
# * There set `learning_rate, decay = 2e-5, 0.01` to `2e-5, 0.04`: with four times the friction there is room, the temperature at $n = 100$ with the estimate comes down to 1, and its claim shows ✗. Without an estimate there is less to correct, too.
#
# ## Exercises
#
# ```{exercise}
# :label: ex-network-friction
#
# ★ {prf:ref}`thm-estimate-direction` wants the friction to be a number. Let $A$, $V$, $\hat B$ and $C$ all be diagonal. What is the temperature of coordinate $j$, and what becomes of it with $C_{jj} = 3B_{jj}$ and $\hat B = 0$?
# ```
#
# ```{solution} ex-network-friction
# :class: dropdown
#
# The coordinates are independent chains, each in one dimension with a friction of its own, so $T_j = 1 + (B_{jj} - \hat B_{jj})/C_{jj}$. With three times the noise as friction and no estimate it is $\tfrac43$ in every coordinate, however much noise there is: friction by weight makes the temperatures equal, and the estimate brings them to 1.
# ```
#
# ````{exercise}
# :label: ex-network-scalar
#
# ★★ **Write it yourself.** Compute the *scalar* estimate, the mean of $\hat V_{jj}$ over the weights of both layers, without any product of matrices for the squares.
#
# ```python
# def my_scalar_noise(weights, x, y):
#     for a, delta in activations_and_signals(weights, x, y):
#         ...
# ```
# ````
#
# ````{solution} ex-network-scalar
# :class: dropdown
#
# The squares of $\delta_ia_i^\top$ add up to $\lvert\delta_i\rvert^2\lvert a_i\rvert^2$. The gradient itself, $\sum_i\delta_ia_i^\top$, is there already.
#
# ```python
# def my_scalar_noise(weights, x, y):
#     n, total, count = len(y), 0.0, 0
#     for a, delta in activations_and_signals(weights, x, y):
#         gradient = delta.T @ a
#         total += ((delta**2).sum(-1) * (a**2).sum(-1)).sum()
#         total -= (gradient**2).sum() / n
#         count += gradient.numel()
#     return N**2 / n * (1 - n / N) / (n - 1) * total / count
# ```
#
# The cell below compares it with `noise_by_weight`.
# ````


# %% tags=["hide-input"]
def my_scalar_noise(weights, x, y):
    n, total, count = len(y), 0.0, 0
    for a, delta in activations_and_signals(weights, x, y):
        gradient = delta.T @ a
        total += ((delta**2).sum(-1) * (a**2).sum(-1)).sum()
        total -= (gradient**2).sum() / n
        count += gradient.numel()
    return N**2 / n * (1 - n / N) / (n - 1) * total / count


of_each = torch.cat([layer.flatten() for layer in by_hand])
check(
    "scalar",
    my_scalar_noise(weights, x[few], y[few]) / of_each.mean(),
    near(1, 1e-3),
    because="the same numbers summed otherwise; single precision",
    kind="exact",
    says="The written scalar estimate over the mean of noise_by_weight",
)

# %% [markdown]
# ```{exercise}
# :label: ex-network-kronecker
#
# ★★★ Let $\delta_i$ and $a_i$ be independent, with means $\bar\delta$ and $\bar a$. By how much does the Kronecker product exceed the covariance of $\delta_ia_i^\top$, and when does that matter?
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
