# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # The neighbours on networks, and what they cost
#
# ```{div} page-head
# Level: second course · Reading: about 40 minutes, without the exercises · Running: about 15 seconds
# ```
#
# The last chapter computed what dropout, ensembles, snapshots, SWAG and Laplace's approximation do on a linear regression; here they meet networks, where nothing can be computed, and have to be paid for.
#
# **You will learn** to
#
# * watch whether each method is unsure in a gap of the data, beside a long run of HMC,
# * compare them on digits by error and log loss, and by what they tell about letters and clothes,
# * count what each of them costs, in gradients and in seconds, before you call it the best.
#
# **You will need** {doc}`/book/studies/neighbours`, which defines the methods, and {doc}`/book/studies/uncertainty`.

# %%

import matplotlib.pyplot as plt
import torch
from scipy import stats

from booklib.data import digits, letters
from booklib.models.networks import multilayer_perceptron
from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, use_style
from booklib.page.play import play
from booklib.page.tables import show_table
from booklib.rivals import dropout, ensemble, laplace, snapshots, swag
from booklib.runs.results import RESULTS, read_result, who_ran
from booklib.scores.prediction import (
    area_under_roc,
    error_rate,
    expected_calibration_error,
    log_score,
    predictive_entropy,
)
from sgmc import sample
from sgmc.kernels import HMC, SGHMC, SGLD
from sgmc.posteriors import Gaussian, NetworkPosterior
from sgmc.tuning import adapt, find_mode

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## A network that can be watched
#
# We need a network that is small and not trivial: ten hidden units on forty examples of a curve, with a gap between them, in {term}`minibatches <minibatch>` of ten.
# It has 31 weights, few enough for HMC to draw from the very {term}`posterior` that the others approximate.
#
# ### Snapshots in their cycles
#
# {prf:ref}`alg-neighbours-snapshots` hopes that the high rate of a cycle leaves a mode and the low one settles in another.
# We follow a run without momentum, $\alpha = 1$, and one with, at $\alpha = 0.1$ and a fifth of the rate: along flat directions a run with momentum moves as one without at the rate $\eta/\alpha$, here twice as fast, while the steepest direction, which limits the rate, knows $\eta$ only.

# %%
generator = torch.Generator().manual_seed(0)
pieces = torch.rand(20, 1, generator=generator), torch.rand(20, 1, generator=generator)
x = torch.cat([pieces[0] - 2, pieces[1] + 1])
y = (torch.sin(2 * x) + 0.3 * torch.randn(40, 1, generator=generator))[:, 0]
small = multilayer_perceptron([1, 10, 1], "tanh")
curve = NetworkPosterior(small, x, y, likelihood=Gaussian(0.09))
curve_batches = NetworkPosterior(small, x, y, likelihood=Gaussian(0.09), batch_size=10)


def follow(posterior, place, num_cycles, length, highest_rate, decay, seed=0):
    """The algorithm: rate and energy after each step, and the snapshots."""
    generator, speed = torch.Generator().manual_seed(seed), torch.zeros_like(place)
    rates, energies, kept = [], [], []
    for step in range(num_cycles * length):
        wave = torch.tensor(torch.pi * (step % length) / length).cos()
        rates.append(0.5 * highest_rate * float(1 + wave))
        (minibatch,) = posterior.draw_minibatches(place, generator, step)
        speed = (1 - decay) * speed + posterior.gradient_given(place, minibatch)
        place = place - rates[-1] * speed
        energies.append(float(posterior.energy(place)))
        if (step + 1) % length == 0:
            kept.append(place)
    return rates, energies, torch.stack(kept)


start = curve.initial_position(10, generator)
ways = {"SGD": (3e-4, 1.0), "SGD with momentum": (6e-5, 0.1)}
first = start[:1]
runs = {name: follow(curve_batches, first, 4, 200, *way) for name, way in ways.items()}

# %% mystnb={"figure": {"caption": "Two snapshot ensembles of a small network. Above: the learning rate, over its largest value. Below: the energy, with dots at the snapshots. The energy jumps up where the rate returns, and every cycle ends a little lower than the one before; with momentum the descent comes lower.", "name": "fig-neighbours-cycles"}, "image": {"alt": "Above, four cosine arcs falling from one to zero. Below, two ragged energy curves that jump at each return of the rate and settle at its end."}} tags=["hide-input"]
figure, (above, below) = plt.subplots(
    2, 1, figsize=(7, 4.6), sharex=True, height_ratios=(1, 2.2)
)
above.plot([rate / runs["SGD"][0][0] for rate in runs["SGD"][0]], color="black")
above.set(ylabel=r"$\eta_t/\eta_0$")
for name, (_, energies, _) in runs.items():
    below.semilogy(energies, color=COLOURS[name], lw=1, label=name)
    below.plot(range(199, 800, 200), energies[199::200], "o", color=COLOURS[name])
below.set(xlabel="step $t$", ylabel=r"$U(\theta)$", ylim=(None, 150))
below.set_yticks([30, 50, 100], ["30", "50", "100"])
below.minorticks_off()
below.legend()
plt.show()

# %% [markdown]
# In {numref}`fig-neighbours-cycles` the energy jumps up each time that the rate returns, so the descent does leave the bottom of what it was in.
# With momentum it comes lower in the same number of steps.
# Whether another mode is reached the energy cannot say; the functions of the next figure can.

# %% tags=["hide-input"]
by_hand = follow(curve_batches, first, 2, 5, *ways["SGD with momentum"], seed=1)[2]
short = dict(cycle_length=5, learning_rate=6e-5)
by_package = snapshots(curve_batches, first, 2, seed=1, **short)
claim(
    "Largest difference between the loop above and the package's snapshots, two cycles "
    "of five steps",
    (by_hand - by_package.samples).abs().max(),
    at_most=1e-4,
    because="the same minibatches; rounding of ten steps in single precision",
)
last = {name: run[1][-1] for name, run in runs.items()}
claim(
    "Energy of the last snapshot, with momentum less without",
    last["SGD with momentum"] - last["SGD"],
    at_most=0.0,
    because="along flat directions it is twice as fast; −4 to −7 with five seeds",
)
for name, run in runs.items():
    claim(
        "Highest energy in a cycle less that of the snapshot before, mean of three, "
        f"{name}",
        sum(max(run[1][t : t + 200]) - run[1][t - 1] for t in (200, 400, 600)) / 3,
        at_least=1,
        because="the rate returns; it was 5 to 18 with eight seeds",
    )

# %% [markdown]
# ### Unsure in the gap?
#
# Where there is no formula there is a long run of HMC: 48 {term}`chains <chain>` from 48 starts draw 60 functions each.
# Every other method gets the training that it asks for; a Laplace approximation of all weights is among them.
# That of the last layer alone has a closed form.
# With the units $\phi(x)$ of the hidden layer, a 1 for the bias among them, the outputs are $w^\top\phi(x)$, and the Hessian in $w$ is
#
# $$
# H = \frac1{\sigma^2}\sum_i\phi(x_i)\,\phi(x_i)^\top + \Lambda,
# $$ (eq-neighbours-last-layer)
#
# whatever the other weights are, as long as they rest.

# %%
lines = torch.linspace(-3.5, 3.5, 71)[:, None]


def curves(position):
    """The network's outputs on a grid, (chains, 71)."""
    return curve.outputs(position, lines[None])


scattered = curve.initial_position(48, generator)
begin = ensemble(curve, scattered, num_steps=200, learning_rate=0.1).samples[0]
kernel, place = adapt(HMC(0.02, num_steps=20), curve, begin, 40, seed=1)
reference = sample(kernel, curve, place, 60, warm_up=10, seed=1, collect=curves)

adam = dict(num_steps=800, learning_rate=0.05)
found = ensemble(curve, start, **adam)
lowest = found.samples[0][curve.energy(found.samples[0]).argsort()[:2]]
mode = find_mode(curve, lowest)[:1]
pulls = torch.randn(10, curve.dim, generator=generator)
descent = SGLD(1e-4, temperature=0.0)
rattled = sample(descent, curve_batches, mode, 200, thinning=5, seed=1)
cycles = dict(cycle_length=200, learning_rate=6e-5)
hidden_only = dict(rate=[0.0, 0.1], num_steps=800, learning_rate=0.02)
of_network = {
    "dropout": dropout(curve, start[:1], 200, **hidden_only),
    "ensemble": found,
    "anchored ensemble": ensemble(curve, start, anchors=pulls, **adam),
    "snapshots": snapshots(curve_batches, first, 10, **cycles),
    "SWAG": swag(rattled, 200),
    "Laplace, last layer": laplace(curve, mode, 200, coordinates=torch.arange(20, 31)),
    "Laplace": laplace(curve, mode, 200),
}
functions = {"HMC": reference.samples.flatten(0, 1)}
for name, run in of_network.items():
    functions[name] = curves(run.samples.flatten(0, 1))
slope = torch.func.jacrev(curves)(mode)[0, :, 0]  # of each output in each weight
moves = of_network["Laplace"].samples.flatten(0, 1) - mode
functions["Laplace, tangent"] = curves(mode) + moves @ slope.T

# %% mystnb={"figure": {"caption": "Functions of a network of ten hidden units: mean and two standard deviations on forty examples (dots) by nine methods. HMC is the reference. Its band opens in the gap and closes on the data. An ensemble without anchors and SWAG are far too sure in the gap, snapshots and anchors less so; dropout's and the last layer's bands open little or not at all in the gap; draws of all weights by Laplace, put into the network, are far too wide, and put into its tangent at the mode as wide as HMC's.", "name": "fig-neighbours-gap"}, "image": {"alt": "Nine panels with the same dots in two groups. The band of HMC is narrow at the dots and wide between them; those of the anchored ensemble and the snapshots open between the dots too, and are narrower; those of ensemble and SWAG are hardly visible; dropout and last-layer Laplace have bands that open little or not at all; that of Laplace for all weights fills its panel; that of its tangent opens between the dots and closes on them, as HMC's does."}} tags=["hide-input"]
figure, panels = plt.subplots(3, 3, figsize=(7, 6.6), sharex=True, sharey=True)
for axes, (name, values) in zip(panels.flat, functions.items(), strict=True):
    middle, spread_of_it = values.mean(0), values.std(0)
    colour = TRUTH if name == "HMC" else COLOURS["HMC"]
    axes.fill_between(
        lines[:, 0],
        middle - 2 * spread_of_it,
        middle + 2 * spread_of_it,
        color=colour,
        alpha=0.4,
        lw=0,
    )
    axes.plot(lines[:, 0], middle, color=colour)
    axes.plot(*curve.data[0].T, curve.data[1], ".", ms=3, color="black")
    axes.set(title=name, ylim=(-4, 4))
for axes in panels[-1]:
    axes.set_xlabel("$x$")
for axes in panels[:, 0]:
    axes.set_ylabel(r"$f(x;\theta)$")
plt.show()

# %% [markdown]
# In {numref}`fig-neighbours-gap` compare each band with the first one: does it open between the two groups of dots, and close on them?
# Among the ensembles only the anchored one opens its band in the gap on purpose: the pull is felt where the data are silent, and not where they speak.
# Snapshots open theirs a little, and nobody asked them to.
# The ten members of the ensemble and the iterates of SWAG have found ways to the same function.

# %% tags=["hide-input"]
at = {
    "in the gap": lines[:, 0].abs() < 0.3,
    "on the data": (lines[:, 0].abs() > 1.1) & (lines[:, 0].abs() < 1.9),
}
stds = {
    name: {place: float(values.std(0)[where].mean()) for place, where in at.items()}
    for name, values in functions.items()
}
gap, data = ({name: each[place] for name, each in stds.items()} for place in at)
four = "with four seeds of data, starts and runs it was "
each_half = [
    float(half.flatten(0, 1).std(0)[at["in the gap"]].mean())
    for half in (reference.samples[:, :24], reference.samples[:, 24:])
]
claim(
    "HMC: spread in the gap by half of the chains over that by the other half",
    each_half[0] / each_half[1],
    near=1,
    within=0.6,
    because="it was 0.77 to 1.11 with eight seeds: two estimates of one number",
)
claim(
    "HMC: spread in the gap over that on the data",
    gap["HMC"] / data["HMC"],
    at_least=4,
    because=four + "7 to 10",
)
for names, bound, range_seen in (
    (("ensemble", "SWAG"), 0.3, "0.02 to 0.1"),
    (("snapshots",), 0.7, "0.1 to 0.4"),
):
    claim(
        f"Spread in the gap over HMC's, {' and '.join(names)}, largest",
        max(gap[name] for name in names) / gap["HMC"],
        at_most=bound,
        because=four + range_seen,
    )
claim(
    "Spread in the gap over HMC's, anchored ensemble",
    gap["anchored ensemble"] / gap["HMC"],
    at_least=0.2,
    because=four + "0.35 to 1",
)
claim(
    "Spread on the data over HMC's, anchored ensemble",
    data["anchored ensemble"] / data["HMC"],
    at_most=0.6,
    because=four + "0.1 to 0.3",
)

# %% [markdown]
# Dropout of the hidden units has no more spread between the data than on them.
# {cite:t}`foong2020` prove that neither dropout nor mean-field inference can have much more there in a network of one hidden layer of rectified units; ours are tanh.
# Laplace's approximation for all weights fails on the other side when its draws are put into the network: many directions are nearly flat at the mode and not further away, and there the network is far from its tangent.
# This is a fault of the use and not of the Gaussian: {cite:t}`immer2021` predict with the tangent, the network linearised at the mode, $f(x;\hat\theta) + \nabla f(x;\hat\theta)^\top(\theta - \hat\theta)$, which the library of {cite:t}`daxberger2021` does by default.
# In the last panel the same draws have a band as wide as HMC's.
# That of the last layer is right on the data, and in the gap it does not know that the hidden units could be others: by {eq}`eq-neighbours-last-layer` they rest.

# %% tags=["hide-input"]
claim(
    "Dropout: spread in the gap over that on the data",
    gap["dropout"] / data["dropout"],
    at_most=2,
    because=four + "0.2 to 0.9",
)
claim(
    "Laplace, last layer: spread in the gap over that on the data",
    gap["Laplace, last layer"] / data["Laplace, last layer"],
    at_most=3.5,
    because=four + "0.9 to 2.2",
)
claim(
    "Spread on the data over HMC's, last layer of Laplace",
    data["Laplace, last layer"] / data["HMC"],
    near=0.95,
    within=0.25,
    because=four + "0.92 to 0.96",
)
claim(
    "Spread on the data over HMC's, Laplace for all weights",
    data["Laplace"] / data["HMC"],
    at_least=8,
    because=four + "18 to 21",
)
for place, of, near, within, was in (
    ("on the data", data, 1, 0.2, "0.97 to 1.03"),
    ("in the gap", gap, 0.95, 0.45, "0.82 to 1.07"),
):
    claim(
        f"Spread {place} over HMC's, the same draws in the network's tangent",
        of["Laplace, tangent"] / of["HMC"],
        near=near,
        within=within,
        because=f"with ten seeds of starts and draws it was {was}",
    )

# %% [markdown]
# ## Digits, live
#
# Now classes, at one budget: 40 passes over 4,000 digits, in minibatches of 500, for a network with 50 hidden units.
#
# * Descent with momentum makes one network of it, and snapshots make five.
# * An ensemble has eight passes for each of five members.
# * Dropout, SWAG and the last layer of Laplace draw thirty networks after their one training; the last layer is first trained a little further by itself.
# * SGHMC takes 20 passes for {term}`warm-up` and one for each of twenty draws.
#
# We score the averaged prediction on 1,000 test digits, and ask whether its entropy tells letters from digits, by the area under the ROC curve.
# The budget is one of passes, not of time. Laplace's further steps come on top, but they move only the 510 weights of the last layer, of 39,760.

# %%
train, test = digits()
strange = letters()
layers = [784, 50, 10]
network = NetworkPosterior(multilayer_perceptron(layers), *train, batch_size=500)
passes = 8  # steps
steps = 40 * passes


def last_layer(posterior, mode, num_samples, seed=0):
    """Laplace's approximation of the last layer: a linear model on its inputs."""
    body, weights = posterior.module[:-1], posterior.parameters_of(mode)
    shapes = {name: parameter.shape for name, parameter in body.named_parameters()}
    own = {name: weights[name].view(shape) for name, shape in shapes.items()}
    features = torch.func.functional_call(body, own, (posterior.data[0],))
    linear = NetworkPosterior(posterior.module[-1], features, posterior.data[1])
    rest = posterior.dim - linear.dim
    further = dict(cycle_length=100, learning_rate=0.15 / len(features))
    head = snapshots(linear, mode[:, rest:], 1, **further).samples[0]
    draws = laplace(linear, head, num_samples, seed=seed)
    resting = mode[:, :rest].expand(num_samples, 1, rest)
    return torch.cat([resting, draws.samples], -1)


def train_all(seed):
    """The networks (number, dim) of each method, at the one budget."""
    begin = network.initial_position(5, torch.Generator().manual_seed(seed))
    one, rate, keep = begin[:1], 0.15 / 4_000, dict(seed=seed)
    parts = dict(cycle_length=steps // 5, learning_rate=2 * rate, **keep)
    whole = dict(cycle_length=steps, learning_rate=rate, **keep)
    optimised = snapshots(network, one, 1, **whole)
    moving = SGHMC.from_learning_rate(rate, 0.1, temperature=0.0)
    sampling = SGHMC.from_learning_rate(0.4 / 4_000, 0.1)
    kept = dict(warm_up=steps // 2, thinning=passes, **keep)
    dropping = dict(rate=[0.0, 0.2], num_steps=steps, learning_rate=3e-3, **keep)
    fifth = dict(num_steps=steps // 5, learning_rate=0.01, **keep)
    return {
        "SGD with momentum": optimised.samples[0],
        "snapshots": snapshots(network, one, 5, **parts).samples[:, 0],
        "ensemble": ensemble(network, begin, **fifth).samples[0],
        "dropout": dropout(network, one, 30, **dropping).samples[:, 0],
        "SWAG": swag(sample(moving, network, one, 20, **kept), 30).samples[:, 0],
        "Laplace, last layer": last_layer(network, optimised.samples[0], 30)[:, 0],
        "SGHMC": sample(sampling, network, one, 20, **kept).samples[:, 0],
    }


def live_scores(positions):
    """Error, log loss, mean log loss of single networks, and the area."""
    each = network.predict(positions, test.inputs).double()
    apart = network.predict(positions, strange.inputs).double().mean(0)
    average = each.mean(0)
    entropies = predictive_entropy(average), predictive_entropy(apart)
    return {
        "error": error_rate(average, test.targets),
        "log loss": log_score(average, test.targets),
        "singly": sum(log_score(one, test.targets) for one in each) / len(each),
        "calibration": expected_calibration_error(average, test.targets),
        "letters": area_under_roc(*entropies),
    }


live = {name: live_scores(networks) for name, networks in train_all(0).items()}

# %% mystnb={"figure": {"caption": "Seven methods on 4,000 digits at 40 passes each. From top to bottom: test error, log loss of the average (dots) and of its networks singly (rings), and the area that tells letters from digits. Grey: the one network of SGD with momentum.", "name": "fig-neighbours-live"}, "image": {"alt": "Three panels with a row for each method. The one network has nearly the least error and log loss; dropout and Laplace's last layer lie to the right of it in the area for letters; SGHMC has the largest log loss."}} tags=["hide-input"]
figure, panels = plt.subplots(3, 1, figsize=(5, 6.6), sharey=True)
columns = {
    "error": "test error",
    "log loss": "log loss (nats)",
    "letters": "area, letters",
}
for axes, (column, label) in zip(panels, columns.items(), strict=True):
    axes.axvline(live["SGD with momentum"][column], color=TRUTH, zorder=0)
    axes.plot(
        [scores[column] for scores in live.values()],
        range(len(live)),
        "o",
        color=COLOURS["HMC"],
    )
    axes.set(xlabel=label)
    axes.locator_params(axis="x", nbins=6)
panels[1].plot(
    [scores["singly"] for scores in live.values()],
    range(len(live)),
    "o",
    mfc="none",
    color=COLOURS["HMC"],
)
for axes in panels:
    axes.set_yticks(range(len(live)), list(live))
panels[0].invert_yaxis()
plt.show()

# %% [markdown]
# In {numref}`fig-neighbours-live` dots left of the grey line are better than the one network in the first two panels, and dots right of it in the third.
# At so small a budget one well-trained network is hard to beat on the test digits.
# The ensemble pays for its five members with their training, and SGHMC is still on its way; {doc}`/book/tutorial/digits` gives it more passes.
# SWAG's networks are so close together that their average is nearly the optimiser's one network.
# Shown letters, dropout and the last layer are unsure a little more often than the one network, and rightly so.

# %% tags=["hide-input"]
optimised = live["SGD with momentum"]
claim(
    "Largest log loss of an average over the mean log loss of its networks",
    max(scores["log loss"] / scores["singly"] for scores in live.values()),
    at_most=1 + 1e-6,
    because="−log is convex; equal for one network",
)
claim(
    "Log loss of SWAG less that of its optimiser's one network",
    live["SWAG"]["log loss"] - optimised["log loss"],
    near=0,
    within=0.025,
    because="its networks are nearly one; −0.012 to −0.004 with eight seeds",
)
claim(
    "Log loss of the ensemble less that of the one network",
    live["ensemble"]["log loss"] - optimised["log loss"],
    at_least=0,
    because="every member has had a fifth of the budget; 0.03 to 0.06 with eight seeds",
)
claim(
    "Log loss of the one network over that of SGHMC",
    optimised["log loss"] / live["SGHMC"]["log loss"],
    at_most=1.05,
    because="40 passes are no burn-in; 0.56 to 0.81 with ten seeds",
)
claim(
    "Log loss of the best average over that of the one network",
    min(scores["log loss"] for scores in live.values()) / optimised["log loss"],
    at_least=0.8,
    because="it was 0.92 to 0.97 with eight seeds",
)
careful = [live[name]["letters"] for name in ("dropout", "Laplace, last layer")]
claim(
    "Area for letters, mean of dropout and the last layer, less the one network",
    sum(careful) / 2 - optimised["letters"],
    at_least=0,
    because="0.020 to 0.030 with ten seeds",
)

# %% [markdown]
# ## MNIST, all of them, at full scale
#
# `python -m experiments run neighbours` compares these methods with SGHMC and SGLD on 50,000 digits: a network with 100 hidden units, the prior $N(0, 1)$ on all weights, and minibatches of 500.
# What to take when is in {doc}`/book/practice/what_should_i_use`.
# Each method has its rates, and what else it asks for, chosen on 10,000 validation digits by runs of 20 passes; then it runs with five seeds, and predicts with at most thirty networks.
#
# ### What each of them may take
#
# Each method has 60 passes over the data.
# That is not the same as one price, and so the first table has two columns for it:
#
# * *Passes* counts gradients of the network. An adversarial example costs a gradient more, which makes 120; one ensemble may take 60 for each member, 300 in all; Laplace goes on with 500 gradients of all the data and a Hessian of 1,010 rows, both of the last layer alone, which has 1,010 of the 79,510 weights.
# * *Seconds* are the processor's, of the training, on one thread. They are rough: runs of one method differ by up to a factor of two, because the machine had other work.

# %% tags=["hide-input"]
result = read_result(RESULTS / "neighbours.json")
OTHERS = ("cold", "cSG", "SGNUTS", "path")  # of another chapter
methods = {
    name: content["runs"]
    for name, content in result["methods"].items()
    if name != "SGD" and not any(word in name for word in OTHERS)
}
COLUMNS = {
    "error %": lambda run: 100 * run["scores"]["error"],
    "log loss": lambda run: run["scores"]["log_loss"],
    "calibration": lambda run: run["scores"]["calibration_error"],
    "letters": lambda run: run["auroc"]["letters"],
    "clothes": lambda run: run["auroc"]["clothes"],
}


def over_seeds(name, column):
    """Mean, and standard deviation of one run, over the seeds."""
    values = torch.tensor([COLUMNS[column](run) for run in methods[name]])
    return float(values.mean()), float(values.std())


PASSES = {
    "ensemble, adversarial": "120",
    "ensemble, five times the budget": "300",
    "Laplace, last layer": "60 + last layer",
}


def seconds_of(name):
    """Processor seconds of the training, mean over the seeds."""
    of_seeds = methods[name]
    return sum(run["processor_seconds"] for run in of_seeds) / len(of_seeds)


def entry(name, column):
    """Mean ± standard deviation of one run, as words."""
    middle, deviation = over_seeds(name, column)
    places = 2 if column == "error %" else 3
    return f"{middle:.{places}f} ± {deviation:.{places}f}"


stored_dropout = read_result(RESULTS / "dropout.json")
dropped = stored_dropout["methods"]["dropout"]["runs"]


def standard_entries(*scores):
    """Mean ± standard deviation of standard dropout's scores, as words."""
    words = []
    for score in scores:
        factor, places = (100, 2) if score == "error" else (1, 3)
        values = torch.tensor([factor * run["standard"][score] for run in dropped])
        words.append(
            f"{float(values.mean()):.{places}f} ± {float(values.std()):.{places}f}"
        )
    return words


show_table(
    ["on the digits", "error %", "log loss", "passes", "seconds"],
    [
        [
            name,
            entry(name, "error %"),
            entry(name, "log loss"),
            PASSES.get(name, "60"),
            f"{seconds_of(name):.0f}",
        ]
        for name in methods
    ]
    + [["dropout, weights × 0.9", *standard_entries("error", "log_loss"), "60", ""]],
)
print(who_ran(result))
print(who_ran(stored_dropout))

# %% [markdown]
# The numbers are means over the seeds, with a standard deviation of one run behind each.
# The dearer methods stand out: Bayes by Backprop and dropout take about twice the seconds of the others at the same 60 passes, because every example has a draw of its own; adversarial examples and Laplace's last layer take twice the seconds as well, and five times the budget takes what it says.
#
# * *Nothing that costs one training beats the ensemble in error or log loss.* Five members that share one budget are better than the one network that has it all.
# * *At twice the seconds adversarial examples come lower still in the mean.* Dropout's means lie between the two ensembles', and five seeds tell it from neither (p of 0.1 and more, in error as in log loss). Against five times the budget the adversarial ensemble differs by 0.01 points of error, 95 per cent interval $-0.09$ to 0.08, at less than half of the time.
# * *The samplers and Bayes by Backprop have the largest error and log loss*, whatever they cost. Sixty passes are short for a chain that starts anywhere and has the prior $N(0, 1)$; {doc}`/book/studies/reproduction_report` gives SGHMC 850, and it comes to 1.74 per cent with the same network and prior. At this budget, with this prior and network, a sampler is no way to fewer errors.
# * *Standard dropout*, the same weights times the probability of being kept, differs from the average over thirty masks by $-$0.03 points of error (95 per cent interval $-$0.11 to 0.04) and by 0.0039 in log loss (0.0024 to 0.0054).
#
# One network, or the plain ensemble, with twice the passes was not run.


# %% tags=["hide-input"]
def difference(first, second, column):
    """The mean difference of two methods over the seeds, and its standard error."""
    pairs = zip(methods[first], methods[second], strict=True)
    values = torch.tensor(
        [COLUMNS[column](one) - COLUMNS[column](other) for one, other in pairs]
    )
    return float(values.mean()), float(values.std() / len(values) ** 0.5)


stored = "the stored result; mean over the seeds, and its standard error"
pair = [
    [COLUMNS["error %"](run) for run in methods[name]]
    for name in ("ensemble, adversarial", "ensemble, five times the budget")
]
tests = stats.ttest_rel(*pair), stats.ttest_ind(*pair, equal_var=False)
ends = (test.confidence_interval() for test in tests)
wider = max(ends, key=lambda interval: interval.high - interval.low)
claim(
    "Error of the adversarial ensemble less five times the budget, points: distance "
    "of the ends of its 95 % interval from −0.09 and 0.08",
    max(abs(wider.low + 0.09), abs(wider.high - 0.08)),
    at_most=0.005,
    because="the stored result, the wider interval of the paired test and Welch's",
    kind="stored",
)
both = [
    [100 * run[prediction]["error"] for run in dropped]
    for prediction in ("standard", "scores")
]
low, high = stats.ttest_rel(*both).confidence_interval()
claim(
    "Error of dropout's scaled weights less that of its masks, points: distance of the "
    "ends of its 95 % interval from -0.11 and 0.04",
    max(abs(low - -0.11), abs(high - 0.04)),
    at_most=0.01,
    because="the stored result: the same trained networks, paired by the seed",
    kind="stored",
)
cheap = [name for name in methods if seconds_of(name) < 20]
dear = ("Bayes by Backprop", "dropout", "ensemble, adversarial", "Laplace, last layer")
one = seconds_of("SGD with momentum")
claim(
    "Methods with less than 1.25 times the seconds of the one network: all but "
    "Bayes by Backprop, dropout, Laplace and two ensembles",
    set(methods) - set(cheap) == {*dear, "ensemble, five times the budget"}
    and max(seconds_of(name) for name in cheap) < 1.25 * one,
    because="the stored result; processor seconds, means over the seeds",
    kind="stored",
)
claim(
    "Seconds of the four that take about twice as long, over the one network's, "
    "largest distance from 2.1",
    max(abs(seconds_of(name) / one - 2.1) for name in dear),
    at_most=0.25,
    because="the stored result; means over the seeds",
    kind="stored",
)
claim(
    "Least error and least log loss among those of one training's seconds: ensemble",
    all(
        min(cheap, key=lambda name: over_seeds(name, column)[0]) == "ensemble"
        for column in ("error %", "log loss")
    ),
    because="the stored result; means over the seeds",
    kind="stored",
)
claim(
    "Error and log loss: the ensemble less the one network, larger, in standard errors",
    max(
        value / error
        for value, error in (
            difference("ensemble", "SGD with momentum", column)
            for column in ("error %", "log loss")
        )
    ),
    at_most=-3,
    because=stored,
    kind="stored",
)
claim(
    "Log loss: adversarial ensemble, and five times the budget, less the ensemble, "
    "larger, in standard errors",
    max(
        value / error
        for value, error in (
            difference(name, "ensemble", "log loss")
            for name in ("ensemble, adversarial", "ensemble, five times the budget")
        )
    ),
    at_most=-3,
    because=stored,
    kind="stored",
)
claim(
    "Error and log loss in this order: adversarial ensemble, dropout, ensemble",
    all(
        over_seeds("ensemble, adversarial", column)[0]
        < over_seeds("dropout", column)[0]
        < over_seeds("ensemble", column)[0]
        for column in ("error %", "log loss")
    ),
    because="the stored result; means over the seeds",
    kind="stored",
)
claim(
    "Three methods of largest error and log loss: SGHMC, SGLD, Bayes by Backprop",
    all(
        set(sorted(methods, key=lambda name: over_seeds(name, column)[0])[-3:])
        == {"SGHMC", "SGLD", "Bayes by Backprop"}
        for column in ("error %", "log loss")
    ),
    because="the stored result; means over the seeds",
    kind="stored",
)

# %% [markdown]
# ### What they know of other things
#
# The second table has the calibration error on the digits, and how well the entropy tells letters and clothes from digits, by the area under the ROC curve.

# %% tags=["hide-input"]
show_table(
    ["doubt", "calibration", "area, letters", "area, clothes", "networks"],
    [
        [
            name,
            *(entry(name, column) for column in ("calibration", "letters", "clothes")),
            str(methods[name][0]["networks"]),
        ]
        for name in methods
    ]
    + [["dropout, weights × 0.9", *standard_entries("calibration_error"), "", "", "1"]],
)

# %% [markdown]
# On letters the order is another than on digits.
#
# * *Bayes by Backprop*, among the worst on the digits, tells letters from digits best of all, in every run. The price is its {term}`calibration`: it is unsure of digits too. On clothes its mean is the largest again, but dropout's is within its spread.
# * *The ensembles* come next, then dropout, the last layer of Laplace and the samplers; the one network is at the end with whatever stays close to it.
# * *What stays close to one network is worth one network.* On the digits SWAG, constant SGD and the last layer of Laplace differ from it by little in error; on letters the last layer gains, for twice the seconds, and the other two do not. For constant SGD the rate of the theory is too large: at a mode that fits the digits the minibatches' noise is small, and the best rate $2d/\operatorname{tr}V$ large, as {doc}`/book/further/constant_sgd` warns. The validation digits chose a ten-thousandth of it, at which hardly anything moves; what is left is a network trained for half of the passes, better calibrated (0.44 per cent against 0.82).
# * *On the digits snapshots gain nothing.* A cycle of ten passes is short, and six networks from short cycles are no better than one from a long descent. With momentum they tell letters better by 0.04, which five seeds leave open.

# %% tags=["hide-input"]
close = ("SWAG", "constant SGD", "Laplace, last layer")
claim(
    "Least area for letters of Bayes by Backprop less the largest of all others, runs",
    min(COLUMNS["letters"](run) for run in methods["Bayes by Backprop"])
    - max(
        COLUMNS["letters"](run)
        for name in methods
        if name != "Bayes by Backprop"
        for run in methods[name]
    ),
    at_least=0,
    because="the stored result, every run",
    kind="stored",
)
claim(
    "Calibration error of Bayes by Backprop over the next largest",
    over_seeds("Bayes by Backprop", "calibration")[0]
    / max(
        over_seeds(name, "calibration")[0]
        for name in methods
        if name != "Bayes by Backprop"
    ),
    at_least=2.5,
    because="the stored result; means over the seeds",
    kind="stored",
)
claim(
    "Area for letters: one network less SGHMC, the ensemble and the last layer, "
    "largest, in standard errors",
    max(
        value / error
        for value, error in (
            difference("SGD with momentum", name, "letters")
            for name in ("SGHMC", "ensemble", "Laplace, last layer")
        )
    ),
    at_most=-3,
    because=stored,
    kind="stored",
)
claim(
    "Error of what stays close less that of the one network, largest distance, points",
    max(abs(difference(name, "SGD with momentum", "error %")[0]) for name in close),
    at_most=0.05,
    because="the stored result; mean over the seeds",
    kind="stored",
)
claim(
    "Area for letters of SWAG and constant SGD, largest distance from one network's",
    max(abs(difference(name, "SGD with momentum", "letters")[0]) for name in close[:2]),
    at_most=0.01,
    because="the stored result; mean over the seeds",
    kind="stored",
)
claim(
    "Share of its best rate at which constant SGD was best on the validation digits",
    result["methods"]["constant SGD"]["settings"]["share"],
    at_most=1e-4,
    because="the stored result: the smallest of the five that were tried",
    kind="stored",
)
claim(
    "Area for letters, snapshots with momentum less the one network",
    difference("snapshots with momentum", "SGD with momentum", "letters")[0],
    near=0.04,
    within=0.005,
    because="the stored result; mean over the seeds",
    kind="stored",
)
for name, expected in (("constant SGD", 0.0044), ("SGD with momentum", 0.0082)):
    claim(
        f"Calibration error of {name}",
        over_seeds(name, "calibration")[0],
        near=expected,
        within=0.0001,
        because="the stored result; mean over the seeds",
        kind="stored",
    )
claim(
    "Error of snapshots less that of the one network, smaller of two, in points",
    min(
        difference(name, "SGD with momentum", "error %")[0]
        for name in ("snapshots of SGD", "snapshots with momentum")
    ),
    at_least=0,
    because="the stored result; mean over the seeds",
    kind="stored",
)

# %% [markdown]
# ### How many networks?
#
# A network costs memory and a prediction, too.
# We average more and more of them, in a random order.

# %% mystnb={"figure": {"caption": "Log loss on the test digits against the number of networks that are averaged, taken from all in a random order; mean over the seeds, with a standard deviation of one run either way at the last point.", "name": "fig-neighbours-networks"}, "image": {"alt": "Lines against the number of networks on logarithmic axes. Those of the ensembles and of dropout fall to the lowest log loss; those of the samplers and of Bayes by Backprop fall too and stay highest; constant SGD and SWAG are level."}} tags=["hide-input"]
LOOKS = {
    "SGHMC": (COLOURS["SGHMC"], "-", "o"),
    "SGLD": (COLOURS["SGLD"], "-", "o"),
    "SGD with momentum": (COLOURS["SGD with momentum"], "-", "*"),
    "constant SGD": (COLOURS["SGD"], "-", "o"),
    "snapshots of SGD": (COLOURS["SGD"], "--", "s"),
    "snapshots with momentum": (COLOURS["SGD with momentum"], "--", "s"),
    "Bayes by Backprop": (COLOURS["variational"], "-", "v"),
    "dropout": (COLOURS["HMC"], "--", "^"),
    "ensemble": ("black", "-", "D"),
    "ensemble, adversarial": ("black", ":", "D"),
    "ensemble, five times the budget": ("black", "--", "D"),
    "SWAG": (COLOURS["naive SGHMC"], "-", "P"),
    "Laplace, last layer": (COLOURS["naive SGHMC"], "--", "X"),
}
figure, axes = plt.subplots(figsize=(5.5, 6))
for name, of_seeds in methods.items():
    colour, line, marker = LOOKS[name]
    counts = [int(count) for count in of_seeds[0]["curve"]]
    losses = torch.tensor(
        [[run["curve"][str(count)][1] for count in counts] for run in of_seeds]
    )
    axes.loglog(
        counts, losses.mean(0), line, color=colour, marker=marker, ms=4, label=name
    )
    if len(of_seeds) > 1:
        axes.errorbar(
            counts[-1],
            float(losses.mean(0)[-1]),
            float(losses.std(0)[-1]),
            color=colour,
        )
axes.set(xlabel="networks averaged", ylabel="log loss (nats)")
losses_shown = (0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
axes.set_yticks(losses_shown, [f"{loss:g}" for loss in losses_shown])
axes.set_xticks([1, 2, 5, 10, 20, 30], ["1", "2", "5", "10", "20", "30"])
axes.minorticks_off()
figure.legend(loc="outside lower center", ncols=2)
plt.show()

# %% [markdown]
# In {numref}`fig-neighbours-networks` a line that still falls at its end would gain from more networks.
# Dropout gains from thirty, the ensembles are cut off at five while they still fall, and those of constant SGD and SWAG are level from the first network: what they average is one.

# %% tags=["hide-input"]
claim(
    "Largest log loss of an average over that of one of its networks, mean over the "
    "seeds",
    max(
        sum(run["scores"]["log_loss"] for run in of_seeds)
        / sum(run["curve"]["1"][1] for run in of_seeds)
        for of_seeds in methods.values()
    ),
    at_most=1.01,
    because="−log is convex, and one network is drawn at random",
    kind="stored",
)
for name, bound, word in (
    ("ensemble", 0.95, "five networks"),
    ("dropout", 0.95, "thirty networks"),
):
    claim(
        f"Log loss of {word} over that of one, {name}",
        sum(run["scores"]["log_loss"] for run in methods[name])
        / sum(run["curve"]["1"][1] for run in methods[name]),
        at_most=bound,
        because="the stored result; means over the seeds",
        kind="stored",
    )
claim(
    "Log loss of all networks over that of one, SWAG and constant SGD, smaller",
    min(
        sum(run["scores"]["log_loss"] for run in methods[name])
        / sum(run["curve"]["1"][1] for run in methods[name])
        for name in ("SWAG", "constant SGD")
    ),
    at_least=0.97,
    because="the stored result; means over the seeds",
    kind="stored",
)

# %% [markdown]
# ## In practice
#
# * For error and log loss an ensemble is the simplest thing that works, even one whose members share the budget of one network; its training costs no more, and keeping it and predicting with it cost five times as much.
# * Before you compare, count: gradients, seconds of training, and networks to keep. "The same number of passes" hid a factor of two here.
# * To a network that is already trained the last layer of Laplace can be added; here that took as long again as the training, and gained on letters, not in error.
# * A picture with a gap, as {numref}`fig-neighbours-gap`, takes seconds and shows a method's habits before any table does.
#
# ## Formulas
#
# | what | formula |
# | --- | --- |
# | average of $C$ networks | $\frac1C\sum_cp(y \mid x, \theta_c)$, probabilities and not weights, {prf:ref}`alg-neighbours-ensemble` |
# | its log loss | at most the mean log loss of the networks, {ref}`ex-digits-convexity` |
# | last layer of a regression | $H = \frac1{\sigma^2}\sum_i\phi(x_i)\,\phi(x_i)^\top + \Lambda$, {eq}`eq-neighbours-last-layer` |
# | far away, two classes | $P(y = 1) \to \Phi\bigl(x^\top m/\sqrt{x^\top Sx}\bigr)$ along the ray of $x$, {ref}`ex-neighbours-far` |
# | digits or not | the entropy of the average, by the area under the ROC curve |
#
# ## Change it
#
# * Set `pieces[0] - 2, pieces[1] + 1` to `2 * pieces[0] - 2, 2 * pieces[1]` in the first cell of the curve: there is no gap any more, HMC's band is as narrow in the middle as elsewhere, and the claim on its spread in the gap shows ✗; that on the anchored ensemble's does, too.
# * Set `pulls = torch.randn(10, curve.dim, generator=generator)` to `pulls = torch.zeros(10, curve.dim)`: all members are pulled to the same point, the anchored ensemble is the plain one, and the claim on its spread in the gap shows ✗.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-neighbours-last-layer
#
# *Write it yourself.* Laplace's approximation of the last layer of the small network, from {eq}`eq-neighbours-last-layer`. Complete the functions with $\sigma^2 = 0.09$ and $\Lambda = I$, and show that the log density that they give to each of the 200 draws of the package's `laplace` is the one that the package reports as `log_density`. The weights of a position are ordered as inputs' weights, hidden biases, outputs' weights, output's bias: 10, 10, 10 and 1.
#
# ```python
# def hidden_units(position, x):
#     # the units φ(x) with a 1 at the end: (examples, 11)
#     ...
#
#
# def last_layer_log_density(position, draws):
#     # log N(draws; the last 11 weights of the mode, H⁻¹): (draws,)
#     ...
# ```
# ````
#
# ```{solution} ex-neighbours-last-layer
# :class: dropdown
#
# The units are $\tanh(wx + b)$. With $H$ from the formula the log density is $\tfrac12\log\det H - \tfrac{11}2\log2\pi - \tfrac12\delta^\top H\delta$, with $\delta$ the distance of a draw from the mode.
# ```


# %% tags=["hide-input"]
def hidden_units(position, x):
    hidden = torch.tanh(x * position[:10] + position[10:20])
    return torch.cat([hidden, torch.ones(len(x), 1).to(hidden)], 1)


def last_layer_log_density(position, draws):
    units = hidden_units(position.double(), curve.data[0].double())
    H = units.T @ units / 0.09 + torch.eye(11, dtype=torch.float64)
    apart = (draws - position)[:, 20:].double()
    square = ((apart @ H) * apart).sum(-1)
    return 0.5 * (H.logdet() - 11 * torch.tensor(2 * torch.pi).log() - square)


by_package = of_network["Laplace, last layer"]
by_hand = last_layer_log_density(mode[0], by_package.samples[:, 0])
claim(
    "Exercise: largest difference of the log density from the package's, 200 draws",
    (by_hand - by_package.statistics["log_density"][:, 0]).abs().max(),
    at_most=0.01,
    because="rounding: the package's Hessian is of single precision",
    kind="exact",
)

# %% [markdown]
# ```{exercise}
# :label: ex-neighbours-far
#
# A logistic regression, or the last layer of a classifier with two classes, has $P(y = 1 \mid x, \theta) = \varsigma(x^\top\theta)$ with $\varsigma(z) = 1/(1 + e^{-z})$, and a Gaussian approximation $\theta \sim N(m, S)$, $S \succ 0$. Take an input $\delta x$ and let $\delta \to \infty$. What does the mode predict, and what the average over the Gaussian?
# ```
#
# ```{solution} ex-neighbours-far
# :class: dropdown
#
# Let $x^\top m > 0$. The mode predicts $\varsigma(\delta x^\top m) \to 1$: as sure as you like.
# Under the Gaussian $x^\top\theta \sim N(x^\top m, x^\top Sx)$, and $\varsigma(\delta z) \to 1$ for $z > 0$ and $\to 0$ for $z < 0$. The sigmoid is bounded, so that the average tends to $P(x^\top\theta > 0) = \Phi\bigl(x^\top m/\sqrt{x^\top Sx}\bigr) < 1$, $\Phi$ being the normal distribution function.
# A network with rectified units is linear along a ray far from zero, which makes this a theorem about such networks {cite:p}`kristiadi2020`.
# ```
#
# ```{exercise}
# :label: ex-neighbours-price
#
# A method takes twice the seconds of another and has a lower log loss. Which further run decides whether it is worth them, and what would you keep fixed in it? Answer for dropout against the ensemble of the first table.
# ```
#
# ```{solution} ex-neighbours-price
# :class: dropdown
#
# Run the cheaper one with twice the passes, its rate chosen again for that length, and compare on the same digits; the number of networks that predict stays as it is, for it is another price. For the ensemble, members of 24 passes in the place of 12. Its members with 60 passes each are in the table, at more than twice dropout's seconds, and have the lower log loss: the answer lies between the two rows, and the table does not hold it.
# ```
#
# ## Further reading
#
# {cite:t}`wilson2020` see ensembles as approximations of Bayesian averages, and {cite:t}`fort2019` look where their members are.
# {cite:t}`ovadia2019` compare most of these methods under a shift of the data, {cite:t}`izmailov2021` with long runs of HMC, and {cite:t}`daxberger2021` give a library for Laplace's approximation in all its forms.
