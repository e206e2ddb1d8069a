# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # What the sources claim, and what we found
#
# ```{div} page-head
# Level: second course · Reading: about 26 minutes · Running: about 5 seconds
# ```
#
# You have read a sentence in a paper, a report or on a slide about SGHMC: is it right? Look it up here by its source and page; nobody needs to read this page from top to bottom.
#
# **Most sentences hold, many of them under a condition that they do not state. Four fail: that the report's errors are close to the paper's ({c}`align-least` to {c}`align-most` times as large), that an accuracy shows convergence to the posterior, that the report's step of SGHMC is reversible up to the momentum's sign, and a rule for combining parts of the data that counts the prior twice.**
#
# Claims that one method errs less than another are in {doc}`/book/studies/does_it_replicate`, slips of the pen in {doc}`/book/appendix/errata`. Here are theory, toy problems, times, single numbers and slides, a table for each source, in which what fails stands first, then what is open or measured, what holds, and what was not run.
#
# * *Paper* is {cite:t}`chen2014`, by page; *report* {cite:t}`adamday`, by the pages of its final version; *Duke* {cite:t}`wang2021`; *Munich* {cite:t}`munich` and *Kanpur* {cite:t}`kanpur`, by the title of the slide, cut at "…". A claim that several make stands once.
# * **Holds**: we found the same, or the same if what follows is given. **Fails**: we found otherwise at the setting named. **Open**: the seeds do not tell. **Measured**: a number beside a number. **Not run**: nothing of ours has the claim's setting.
# * A difference over seeds has its 95 % interval, and is decided by Holm's procedure ({doc}`/book/studies/mnist`) among the comparisons of its source here, or of the page that computes it; an interval is of one comparison alone.

# %% tags=["hide-input"]
import numpy as np
import torch
from scipy import stats

from booklib.page.claims import DECIDED, OPEN, at_least, at_most, check, near
from booklib.page.play import play
from booklib.runs.results import RESULTS, Seeds, read_result
from booklib.scores.seeds import family
from sgmc.matrices import Matrix
from sgmc.splittings import (
    LinearChain,
    flows,
    langevin_chain,
    linear_chain,
    naive_sghmc_chain,
    sghmc_chain,
)

play()  # a claim that fails now shows ✗, and the page goes on

one = torch.eye(1, dtype=torch.float64)
GAUSSIAN = torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64)
PRECISION = torch.linalg.inv(GAUSSIAN)


def variance(chain):
    """The stationary variance of the first coordinate."""
    return float(chain.stationary_covariance()[0, 0])


def exact(name, value, bound=None, says="", digits=None):
    check(name, float(value), bound, kind="exact", says=says, digits=digits)


def stored(name, value, bound=None, says="", digits=None, margin=None):
    check(name, value, bound, kind="stored", says=says, digits=digits, margin=margin)


# %% [markdown]
# ## The paper: theory and toy problems
#
# What it says without conditions holds under those of {doc}`/book/appendix/proofs`.
#
# | claim | where | verdict |
# | --- | --- | --- |
# | “A minibatch size on the order of hundreds of data points is sufficient for the central limit theorem approximation”, in a wide range of settings | p. 3; Duke, p. 1; Munich, Stochastic Dynamics | **holds** but for rare classes: with 100 examples and a class of 1 % the gradient's excess kurtosis is {c}`kurtosis` ({doc}`noise </book/tutorial/minibatch_noise>`) |
# | With noisy gradients $\pi$ is not invariant; growing entropy “hints at the fact” that the distribution tends toward a uniform one | p. 3–4, Theorem 3.1; report, p. 8 | **holds**: $E[\theta^2 + r^2]$ grows by {c}`growth` in 1,000 steps ({doc}`naive SGHMC </book/tutorial/naive_sghmc>`) |
# | “Long simulation runs between MH steps can lead to very low acceptance rates” | p. 4; Duke, p. 1; Munich, Naïve Stochastic Gradient … | **holds**: 100 steps add {c}`energy` to the energy of ten coordinates |
# | “It is possible to do MH using a subset of data”, a direction that it cites | p. 4 | **holds**, at a price: a trajectory in ten dimensions needs {c}`subset` of the data ({doc}`rejections </book/further/minibatch_metropolis>`) |
# | With friction $\pi$ is the unique stationary distribution, and with $\hat B = B$ SGHMC samples from it | p. 4, Theorem 3.2; report, p. 5; Munich, Stochastic Gradient HMC … | **holds** of the dynamics; a step of 0.1 has the variance {c}`step` ({doc}`SGHMC </book/tutorial/sghmc>`) |
# | SGLD's dynamics are “second-order Langevin dynamics with a large friction term” | p. 5 | **holds**: at $\alpha = 1$ equation (15) is SGLD, step by step ({doc}`Langevin </book/tutorial/langevin>`) |
# | With “the simplest choice”, $\hat B = 0$, $B$ goes to 0 with $\varepsilon$ and $C$ dominates | p. 5; report, p. 5 | **holds**: the bias at $\varepsilon = 0.05$ is {c}`choice` times that at 0.01 |
# | “For a decaying series of step sizes” $\varepsilon_t$ “an MH step is not required”; the efficiency “likewise decreases” | p. 6; Algorithm 2 | **holds** with the $\hat B$ of each step: variance {c}`decaying`; with the first one kept {c}`decaying-kept` ({doc}`falling steps </book/further/falling_steps>`) |
# | “An MH correction is not even possible because we cannot compute the probability of the reverse dynamics” | p. 6, footnote 1 | **holds** if the noise is unknown; on a Gaussian a palindromic step is as likely backwards ({doc}`SGNUTS </book/tutorial/sgnuts>`) |
# | Without noise, $C = \hat B = 0$, “SGHMC naturally reduces to” SGD with momentum | p. 6; Duke, p. 7; Munich, Stochastic Gradient HMC … | **holds** if the friction stays, as Munich has it; with $C = 0$ no momentum is lost: eigenvalue {c}`frictionless` |
# | Without a correction HMC and SGHMC are close to the target, naive SGHMC is not; with one it is right, too | p. 6, Figure 1; report, p. 5–8; Duke, p. 5 | **holds**: variances {c}`figure-1-hmc`, {c}`figure-1-sghmc`, {c}`figure-1-naive`; the correction costs all the data ({doc}`three figures </book/tutorial/figures_of_the_paper>`) |
# | The noisy path “diverges significantly”; friction corrects it, and fresh momenta, says the report, “seems to mitigate the problem” | p. 7, Figure 2; report, p. 8 | **holds** with the caption's noise: after 15,000 steps the spread is {c}`path`, with friction {c}`path-friction`, with fresh momenta {c}`path-fresh` |
# | SGHMC has lower error than SGLD “at very low autocorrelation times” | p. 7, Figure 3a; report, p. 9–10 | **holds**: SGHMC's largest error is {c}`figure-3` of SGLD's least, at shorter times; the printed times are counts of lags |
# | The momentum makes the sampler “move along the distribution contours”; “after just a few samples” it has explored the tails | p. 7, Figure 3b; Duke, p. 5; report, p. 9 | **holds** over several steps: after ten it has {c}`tails` of the variance along, SGLD {c}`tails-sgld` |
# | Time complexity and running time are those of SGLD | p. 6–8 | **holds** of the complexity; minutes, SGHMC minus SGLD, are {c}`minutes`, open |

# %% tags=["hide-input"]
exact("kurtosis", (1 - 6 * 0.01 * 0.99) / 0.99, near(0.95, 0.001), digits=2)
half = flows.Drift(0.05)
leap = [half, flows.Kick(0.1), half]
noisy = linear_chain(leap, one, 4.0)
exact("growth", noisy.power(1_000).noise_covariance.trace(), near(40, 0.5))
hundred = linear_chain(flows.leapfrog(0.1, 100), one, 4.0)
moved = hundred.transition @ hundred.transition.T + hundred.noise_covariance
exact("energy", 5 * float(moved.trace() - 2), near(20, 0.5))
exact("subset", 20 / (20 + 1 / 2.3**2), near(0.991, 0.001))
exact("step", variance(sghmc_chain(one, 0.1, 3.0, 4.0, 0.2)), near(1.003, 0.001))
eta, v = 0.05, torch.eye(2, dtype=torch.float64)
rows = torch.cat(
    [torch.cat([v, v], 1), torch.cat([-eta * PRECISION, -eta * PRECISION], 1)]
)
fifteen = LinearChain(
    rows, torch.block_diag(0 * v, 2 * eta * v)
).stationary_covariance()
sgld = langevin_chain(PRECISION, eta).stationary_covariance()
off = (fifteen[:2, :2] - sgld).abs().max()
exact("as-sgld", off, near(0, 1e-10), says="Equation (15) with α = 1 minus SGLD")
biased = [variance(sghmc_chain(one, step, 3.0, 4.0)) - 1 for step in (0.05, 0.01)]
exact("choice", biased[0] / biased[1], near(5, 0.2))
for name, keep, bound in (("decaying", False, 1.0), ("decaying-kept", True, 0.69)):
    covariance = torch.eye(2, dtype=torch.float64)
    for draw in range(300):
        step = 0.4 * (1 + draw / 3) ** (-1 / 3)
        chain = sghmc_chain(one, step, 2.0, 4.0, 0.8 if keep else 2 * step).power(5)
        covariance = chain.transition @ covariance @ chain.transition.T
        covariance = covariance + chain.noise_covariance
    exact(name, covariance[0, 0], near(bound, 0.01))
largest = torch.linalg.eigvals(sghmc_chain(one, 0.1, 0.0).transition).abs().max()
exact("frictionless", largest, near(1, 1e-9), digits=1)
fresh = flows.refresh_flow()
naive = naive_sghmc_chain(one, 0.1, 50, 4.0)
for name, chain, bound in (
    ("hmc", linear_chain([fresh, *flows.leapfrog(0.1, 50)], one), 1.0025),
    (
        "sghmc",
        linear_chain([fresh, *50 * flows.sghmc(0.1, 3.0, 0.2)], one, 4.0),
        1.0036,
    ),
    ("naive", naive, 2.14),
):
    exact(f"figure-1-{name}", variance(chain), near(bound, 0.01 if bound > 2 else 5e-4))
with_friction = sghmc_chain(one, 0.1, 3.0, 4.0, 0.2)
for name, chain, bound in (
    ("path", noisy, 17.3),
    ("path-friction", with_friction, 1.0),
):
    spread = float(chain.power(15_000).noise_covariance[0, 0]) ** 0.5
    exact(name, spread, near(bound, 0.3 if bound > 2 else 0.01))
exact("path-fresh", variance(naive) ** 0.5, near(1.46, 0.01))
errors = {"SGHMC": [], "SGLD": []}
for i in range(5):
    rate, alpha, eta = 0.05 * 0.36**i, 0.05 * 0.6**i, 0.18 * 0.8**i
    step = rate**0.5
    for name, chain in (
        ("SGHMC", sghmc_chain(PRECISION, step, alpha / step, 1.0, 0.5 * step)),
        ("SGLD", langevin_chain(PRECISION, eta, 1.0, 0.5 * eta)),
    ):
        off = chain.stationary_covariance()[:2, :2] - GAUSSIAN
        errors[name].append(float(off.abs().mean()))
exact("figure-3", max(errors["SGHMC"]) / min(errors["SGLD"]), near(0.253, 0.002))
step, along = 0.05**0.5, torch.ones(2, dtype=torch.float64)
for name, chain, bound in (
    ("tails", sghmc_chain(PRECISION, step, 0.035 / step, 1.0, 0.5 * step), 0.985),
    ("tails-sgld", langevin_chain(PRECISION, 0.05, 1.0, 0.025), 0.41),
):
    covariance = chain.stationary_covariance()
    start = torch.zeros_like(covariance)
    start[2:, 2:] = torch.eye(len(start) - 2)  # a momentum is drawn, θ is a point
    ten = chain.power(10)
    grown = ten.transition @ start @ ten.transition.T + ten.noise_covariance
    ratio = (along @ grown[:2, :2] @ along) / (along @ covariance[:2, :2] @ along)
    exact(name, ratio, near(bound, 0.01))

# %% [markdown]
# ## The paper: networks and ratings
#
# | claim | where | verdict |
# | --- | --- | --- |
# | SGHMC converges “to a low test error much more rapidly” than SGLD | p. 7 | **holds**: after 100 rounds its error is {c}`rapidly` points less, with fifteen seeds ({doc}`MNIST </book/studies/mnist>`) |
# | “SGD with momentum converges faster than SGD” | p. 7 | **holds**, each at its best rate: after 50 rounds, where the figure begins, {c}`momentum-faster` points |
# | The difference is “not statistically significant”; averaging is “only as good as optimization based method on this setting” | bayesnn/README.md, the authors' later note | **holds** in log loss, where momentum is ahead ({c}`mnist/last-loss`); about the error, which its authors saw with other seeds and their momentum, it is too modest with our rivals and fifteen seeds: {c}`mnist/last` points, decided |
# | On CIFAR and ImageNet sampling averaging “is harder to catch up with optimization methods” | bayesnn/README.md | **holds** on CIFAR-10 against a falling rate, {c}`cifar/falls` points ({doc}`CIFAR-10 </book/studies/cifar>`); ImageNet not run |
# | On MovieLens-1M both samplers predict better than both optimisers, by 0.013 | p. 8, Table 1 | **not run**; on made-up ratings SGHMC minus momentum is {c}`recommender/gain`, open by our rule, and decided if folds are paired ({doc}`ratings </book/studies/recommender>`) |

# %% tags=["hide-input"]
MOMENTUM, NESTEROV = "SGD with momentum", "SGD with Nesterov momentum"
mnist, more = Seeds.read("mnist"), Seeds.read("mnist_more")


def after(method, rounds, use):
    """Errors in per cent after so many rounds."""
    place = more.methods[method]["runs"][0]["curve"]["round"].index(rounds)
    return more(method, lambda run: 100 * run["curve"][use][place][0])


def errors_of(seeds, method, use="average"):
    return seeds(method, f"{use}.error", 100)


paper = {
    f"{sampler} − {rival}": (
        errors_of(more, sampler),
        errors_of(more, rival, "last"),
    )
    for sampler in ("SGHMC", "SGLD")
    for rival in (MOMENTUM, "SGD")
}  # Figure 4
paper["rapidly"] = after("SGHMC", 100, "average"), after("SGLD", 100, "average")
paper["momentum-faster"] = after(MOMENTUM, 50, "last"), after("SGD", 50, "last")
minutes = [mnist(name, "processor_seconds", 1 / 60) for name in ("SGHMC", "SGLD")]
found = family(paper | {"minutes": minutes})
for name in ("rapidly", "momentum-faster"):
    stored(name, found[name], DECIDED)
stored("minutes", found["minutes"], OPEN)
figure_4 = all(found[name].decided and found[name].mean < 0 for name in list(paper)[:4])
stored(
    "figure-4", figure_4, says="In this larger family Figure 4's four are decided, too"
)

# %% [markdown]
# ## The report
#
# Its figures 5 to 9 are in {doc}`/book/studies/does_it_replicate`.
#
# | claim | where | verdict |
# | --- | --- | --- |
# | MNIST results “align very closely with those in” the paper | p. 11 | **fails**: its errors are {c}`align-least` to {c}`align-most` times the paper's; SGHMC is lowest in both |
# | “This accuracy demonstrates that there is convergence to the true posterior” | p. 15 | **fails**: at a temperature of a millionth the spread of $W_1$ is {c}`cold-spread` times the right one, and the error hardly shows it ({c}`cold-error` points, open) |
# | SGHMC satisfies $\pi(\theta, r)P = \pi(\theta', -r')P'$; SGNUTS is “likely reversible in some (non traditional) sense” | p. 15 | **fails** for drift and kick, the report's step, by {c}`flip`; a symmetric step satisfies it. The program's SGNUTS does not keep $\pi$ |
# | Weight decay “didn't improve anything in this setting” | p. 10 | **open**: {c}`weight-decay` ({c}`weight-decay.seeds` seeds would decide half a point); a penalty of $10^{-6}$ beside a prior of 1 could not do anything |
# | Annealing SGLD “proved not to make much of a difference” | p. 10 | **measured**, as programmed: {c}`annealing` points; “not much” is a fair word ({doc}`wrong noise </book/studies/reproduction_report>`) |
# | The experiments are not “very computationally demanding” | p. 3 | **measured**: ours take {c}`computing` minutes for 850 rounds; theirs, by their notebook, about an hour |
# | CIFAR-10: SGHMC “performed very well”, accuracy about 0.42 | p. 11–12, 17, Figure 7b | **measured**: error {c}`cifar/reported` %, of two layers on random features of scrambled pictures; all layers {c}`cifar/whole` % |
# | Accuracy after 0 to 25 epochs of warm-up, SGHMC; after 0 to 2, SGNUTS | p. 16, table | **measured**: {c}`warm-ups` of six and {c}`warm-ups-trees` of three lie where 95 % of new runs of ours would |
# | The paper's plot shows “far fewer points” than 15,000 steps; 360 steps align more closely | p. 8–9, Figure 3 | **holds** in part: its code draws 300 points, each the fiftieth step |
# | Of $\lambda = 0.1$, 1 and 10 the second is “the most effective” | p. 10 | **holds** by its score, a drawn class: 0.1 and 10 err more by {c}`strong` and {c}`weak` with momentum, {c}`strong-sgd` and {c}`weak-sgd` without; by the most probable class 0.1 is better for SGD, {c}`probable` |
# | Variational inference “converges faster” | p. 17 | **holds** from its start: after eleven epochs the fit minus SGHMC is {c}`faster` points; at a common small start SGHMC is ahead ({c}`variational/early`, {doc}`variational </book/studies/variational>`) |
# | The variational posterior needs “only hundreds of samples”, SGHMC “several more” | p. 11–12, 17 | **holds** of samples one step apart ({doc}`few </book/practice/recipes_networks>`); spread over the run, {c}`networks` networks of SGHMC are within 2 % of all in log loss, as are as many samples of a fit |
# | An estimate of the gradient noise is used to increase the “sampling accuracy” | p. 3 | **holds** of a correct one: the temperature of $W_1$ is nearer to 1 by {c}`noise_of_networks/first`; the log loss is worse, {c}`noise_of_networks/loss`. In its program the estimate was zero ({doc}`noise </book/further/noise_of_networks>`) |
# | The estimate “is much slower, and requires more memory” | p. 6 | **holds** of its matrix of $79{,}510^2$ numbers; a diagonal takes {c}`noise_of_networks/time` times the time |
# | With $m$ too small we “get slow mixing times”, with $m$ too large “we waste computational power” | p. 12 | **holds** at a fixed $\varepsilon$, where $m = 1$ takes {c}`mixing` times the samples of $m = 5$; at a fixed $\varepsilon m$ {c}`mixing-fixed` times ({doc}`more steps </book/studies/steps_per_sample>`) |
# | After a U-turn steps “likely only waste computational power”; “performance can be sensitive to L” | p. 13, 15; Kanpur, HMC in Practice | **holds**: half turns cost over a million times what quarter turns do ({doc}`no U-turn </book/tutorial/no_u_turn>`) |
# | A hybrid, one epoch of SGNUTS, then SGHMC | p. 16 | **holds** from its start, with trees by its program: {c}`hybrid` points of accuracy after 25 epochs, at some more gradients; at equal gradients open |
# | SGNUTS reaches accuracies similar to SGHMC's, 0.94 and 0.97 | p. 15–16, Figure 9 | **not run** to 70 epochs of trees; at equal gradients {c}`steps_per_sample/sgnuts` points, open |

# %% tags=["hide-input"]
figure, around, fits, report = map(
    Seeds.read, ("figure5", "figure5_around", "renyi", "report")
)
trees, program, hybrid = (
    {name: {"runs": runs} for name, runs in read_result(path)["runs"].items()}
    for path in (
        RESULTS / f"{name}.json" for name in ("trees", "trees_program", "trees_hybrid")
    )
)
RULE, COLD = "their rule, one momentum", "SGHMC, noise as in their program"


def drawn(seeds, method):
    """Errors of a class that is drawn from the last networks, the report's score."""

    def end(run):
        of = run["drawn"]
        return 100 * (np.mean(of["error"][-4:]) if isinstance(of, dict) else of)

    return seeds(method, end)


def epochs(runs, method):
    """Accuracies of a table of warm-ups, a row for each seed."""
    return np.array(
        [[1 - e["average"]["error"] for e in r["epochs"]] for r in runs[method]["runs"]]
    )


ten = [run["epochs"] for run in trees[COLD]["runs"]]
ten = [100 * e["average"]["error"] for run in ten for e in run if e["warm_up"] == 10]
last = [
    100 * epochs(*of)[:, -1] for of in ((hybrid, f"{RULE}, then SGHMC"), (trees, COLD))
]
claims = {
    "annealing": (
        errors_of(around, "SGLD, annealed, as programmed"),
        errors_of(figure, "SGLD, as programmed"),
    ),
    "weight-decay": (
        drawn(around, f"{NESTEROV}, weight decay"),
        drawn(figure, NESTEROV),
    ),
    "faster": (errors_of(fits, "as reported", "scores"), ten),
    "hybrid": last,
}
for name, method, weight in (
    ("strong", NESTEROV, "100"),
    ("weak", NESTEROV, "0.01"),
    ("strong-sgd", "SGD", "100"),
    ("weak-sgd", "SGD", "0.01"),
):
    claims[name] = drawn(around, f"{method}, λ = {weight}"), drawn(figure, method)
for name, gap in family(claims).items():
    stored(name, gap, OPEN if name == "weight-decay" else DECIDED, margin=0.5)
probable = errors_of(around, "SGD, λ = 100", "last"), errors_of(figure, "SGD", "last")
stored("probable", family({"": probable})[""], DECIDED)
stored("computing", figure("SGHMC", "processor_seconds", 1 / 60).mean(), digits=2)
# its ranges for SGHMC, momentum, SGD and SGLD, over the paper's errors
ranges = np.array([(2.6, 2.9), (2.9, 3.4), (4.2, 4.4), (3.6, 4.4)])
times = ranges / np.array([[1.56], [1.83], [2.02], [1.78]])
exact("align-least", times.min(), near(1.58, 0.01), digits=2)
exact("align-most", times.max(), near(2.47, 0.01), digits=2)
table = np.array([run["by_number"] for run in figure.methods["SGHMC"]["runs"]]).mean(0)
of_fit = [run["curve"] for run in fits.methods["drawn outputs, 80 rounds"]["runs"]]
curves = (
    dict(zip(table[:, 0].astype(int), table[:, 2], strict=True)),
    {int(n): np.mean([curve[n][1] for curve in of_fit]) for n in of_fit[0]},
)
enough = [
    min(n for n in curve if curve[n] <= 1.02 * curve[max(curve)]) for curve in curves
]
stored("networks", enough[0], digits=2)
stored("samples", enough[1] - enough[0], near(0, 0), says="A fit's samples minus those")


def as_published(accuracies, published):
    """Count the numbers that lie where 95 % of new runs of ours would."""
    within = stats.t.ppf(0.975, len(accuracies) - 1) * (1 + 1 / len(accuracies)) ** 0.5
    off = np.abs(accuracies.mean(0) - published)
    return int((off <= within * accuracies.std(0, ddof=1)).sum())


SGHMC_TABLE = (0.7747, 0.5764, 0.4141, 0.6471, 0.7100, 0.8866)
stored("warm-ups", as_published(epochs(trees, COLD), SGHMC_TABLE), digits=1)
SGNUTS_TABLE = (0.8715, 0.9296, 0.9231)
of_rule = as_published(epochs(program, RULE)[:, :3], SGNUTS_TABLE)
stored("warm-ups-trees", of_rule, digits=1)
scaled = "SGHMC, variance as scale"
spreads = [
    report(name, lambda run: run["kept"]["spread"]["0.weight"]).mean()
    for name in (scaled, "SGHMC")
]
stored("cold-spread", spreads[0] / spreads[1], at_most(0.02), digits=1)
warmer = errors_of(report, scaled), errors_of(report, "SGHMC")
stored("cold-error", family({"": warmer})[""])
first = torch.tensor([1.0, 0.0], dtype=torch.float64)
for name, size, bound in (
    ("mixing", lambda m: 0.02, 5),
    ("mixing-fixed", lambda m: 0.1 / m, 1),
):
    walks = [sghmc_chain(one, size(m), 1.0).power(m) for m in (1, 5)]
    one_step, five = (walk.autocorrelation_time(first) for walk in walks)
    exact(name, one_step / five, near(bound, 0.1), digits=2)
turn = 2 * np.arcsin(0.196 / 2)
cost = [m * (1 + np.cos(m * turn) ** 2) / np.sin(m * turn) ** 2 for m in (8, 16)]
exact(
    "half-turns",
    cost[1] / cost[0],
    at_least(1e6),
    says="Price of half turns over quarter turns",
)


def flip_balance(chain):
    """How far the joint law of (θ, r) and (θ', r') is from its image under reversal of
    time and flip of the momenta."""
    covariance = chain.stationary_covariance()
    flip = torch.diag(torch.tensor([1.0, -1.0], dtype=torch.float64))
    forward = chain.transition @ covariance
    return float((forward - flip @ forward.T @ flip).abs().max())


exact("flip", flip_balance(with_friction), at_least(0.01), digits=2)
palindromic = linear_chain(flows.palindromic(0.1, 3.0, 0.2), one, 4.0)
says = "Violation by a palindromic step"
exact("palindromic", flip_balance(palindromic), near(0, 1e-9), says=says)

# %% [markdown]
# ## The Duke report
#
# | claim | where | verdict |
# | --- | --- | --- |
# | “SGHMC is much faster than SGD with momentum” | p. 7 | **open**, and there is no reason for it, as both draw the same noise: minutes of 800 rounds, SGHMC minus its momentum, {c}`faster-than-momentum` |
# | The sampler takes 7.61 s in Python and 0.316 s in C++ | p. 4 | **holds** that C++ is faster: one job takes NumPy {c}`cpp` times as long. The printed times are of two jobs ({doc}`errata </book/appendix/errata>`) |
# | “Except using cpp, the other three methods provide similar results” | p. 4 | **holds**: the C++ program samples something else |
# | autograd's jacobian “takes more time than expected” | p. 4 | **holds**: with a gradient by hand their job is {c}`by-hand` times as fast here |
# | A Cholesky factor or Numba “only improves the algorithm a little” | p. 4 | **holds** of their program, most of whose time is differentiation; by hand the factors are {c}`cholesky` and {c}`numba` |
# | Gradients “on massive datasets” are “infeasible”; SGHMC improves “the efficiency of HMC” | p. 7; Munich, Stochastic Dynamics; Kanpur, Efficient Posterior approx. … | **holds** in examples read: SGHMC's distance from a reference minus that of HMC is {c}`examples-diabetes` and {c}`examples-digits`. In time HMC is ahead ({c}`fidelity/hmc` floors on patients, {doc}`fidelity </book/studies/fidelity>`); in regression plain SGHMC takes at least {c}`step_cost/plain-over-hmc` times HMC's time, unless it has control variates ({doc}`cost </book/practice/step_cost>`) |

# %% tags=["hide-input"]
costs, ported = read_result(RESULTS / "step_cost.json"), Seeds.read("bayesnn")
jobs = costs["jobs"]["printed"]
best = {name: job["seconds_a_step"]["best"] for name, job in jobs.items()}
stored(
    "cpp", best["NumPy, 1 chain"] / best["C++ plain, 1 chain"], near(18, 4), digits=2
)
own = costs["own"]["Python"]
stored(
    "by-hand",
    own["published"]["seconds"] / own["NumPy"]["best"],
    at_least(50),
    digits=1,
)
jobs = costs["variants"]["jobs"]["printed"]
best = {name: job["seconds_a_step"]["best"] for name, job in jobs.items()}
factor = best["NumPy, multivariate normal"] / best["NumPy, Cholesky"]
stored("cholesky", factor, at_least(2), digits=2)
stored("numba", best["plain Python"] / best["Numba"], at_least(10), digits=2)
duke = {
    "faster-than-momentum": [
        ported(name, "processor_seconds", 1 / 60)
        for name in ("SGHMC", "Nesterov, noise on")
    ]
}
for problem, content in read_result(RESULTS / "fidelity.json")["problems"].items():
    seeds = Seeds(content["methods"])
    names = ("SGHMC", "HMC, the same budget")
    duke[f"examples-{problem}"] = [seeds(name, "total_variation") for name in names]
for name, gap in family(duke).items():
    stored(name, gap, OPEN if name.startswith("faster") else DECIDED)

# %% [markdown]
# ## The slides from Munich
#
# Its equations (1) to (34) are right as printed, but for those that are named here or in {doc}`/book/appendix/errata`.
#
# | claim | where | verdict |
# | --- | --- | --- |
# | Fixed weights make “overly confident decisions”; Bayesian networks “assess degree of certainty” | Frequentist and Bayesian …; Bayesian Deep Learning | **holds** on letters: area {c}`uncertainty/letters` more than a trained network ({doc}`letters </book/studies/uncertainty>`). Not on digits: there samples are too cautious, and the trained network is better calibrated, by {c}`mnist/cautious` |
# | “Richer representations through cheap model averaging”; “compressing” samples | Bayesian Deep Learning; Kanpur, Approximate Inference … | **holds** that it is cheap: twenty networks of 300 are {c}`compressed` of another chain's distance from all; “richer” not run |
# | “With 5 % of parameters still 1.29 % instead of 1.24 %” | Performance of Bayesian Neural Networks | **holds** with the mixture, at 400 units and 50 epochs: {c}`variational/kept` points |
# | Metropolis–Hastings accepts with $\alpha = f(x')/f(x_t)$, for a proposal $g$, “e.g.” $N(y, \sigma)$ | Metropolis-Hastings Algorithm, (10) | **holds** for a symmetric proposal; a skew one is off by {c}`skew` |
# | Metropolis–Hastings is “inefficient as rejection rate is high” | Hamiltonian Dynamics: Motivation | **holds** in part: a random walk is best at an acceptance of {c}`walk`; what costs is the walk ({doc}`tuning </book/practice/tuning_hmc>`) |
# | Hamiltonian dynamics is reversible, conserves $H$ and volume; leapfrog preserves volume | Properties of Hamiltonian Dynamics; The Leapfrog Method | **holds**, proved in {doc}`dynamics </book/tutorial/hamiltonian_dynamics>` |
# | Euler's method can diverge; the modified one has “thus no tendency to diverge to infinity” | Euler's Method; Modification of Euler's Method | **holds** below $\varepsilon = 2$; at 2.1 the modified step has the eigenvalue {c}`modified` |
# | In $p' = \alpha p + (1 - \alpha^2)^{1/2}r$ “letting $\alpha \approx 1$ is best”, “as this reduces random walk aspect” | Simple Stochastic Dynamics Variant of HMC | **holds** near one: {c}`kept-88` steps at 0.88, {c}`kept-0` at 0, {c}`kept-999` at 0.999 |
# | Constant SGD has the posterior as stationary distribution, or “can be made to approximate” it | Constant SGD as Approximate Bayesian Inference | **holds** as an approximation: at any small rate its variances are {c}`constant` times apart ({doc}`constant SGD </book/further/constant_sgd>`) |
# | In SGLD “stochastic gradient noise dominates”, then “injected noise dominates” | Stochastic Gradient Langevin Dynamics (SGLD) | **holds**: equal at $\varepsilon = 4/V$ |
# | Bayes by Backprop: “test error of 1.32 % instead of 1.6 %” | Performance of Bayesian Neural Networks | **not run** with 1,200 units and 600 epochs: three hours a seed ({doc}`variational </book/studies/variational>`) |
# | Bayes by Backprop has less regret than $\varepsilon$-greedy policies | Performance of Bayesian Neural Networks, a figure | **not run** at its length; in a tenth of the interactions its regret minus that of $\varepsilon = 1$ % is {c}`bandit/backprop`, open, and of $\varepsilon = 5$ % {c}`regret` ({doc}`bandit </book/further/bandit>`) |

# %% tags=["hide-input"]
few = read_result(RESULTS / "few.json")["runs"]
twenty = np.mean([run["ways"]["even"]["20"]["distance"] for run in few])
other = np.mean([run["all"]["distance_to_other"] for run in few])
stored("compressed", twenty / other, at_most(0.2), digits=2)
bandit = Seeds(read_result(RESULTS / "bandit.json")["tables"]["agaricus-lepiota.data"])
names = ("ε-greedy, 5 %", "ε-greedy, 1 %", "greedy")
ours = bandit("Bayes by Backprop", lambda run: run["regret"][-1])
regret = {name: (ours, bandit(name, lambda run: run["regret"][-1])) for name in names}
stored("regret", family(regret)[names[0]], DECIDED)
target = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
# one state on around a circle with probability ¾, one back with ¼
proposal = torch.tensor([[0, 3, 1], [1, 0, 3], [3, 1, 0]], dtype=torch.float64) / 4
plain = target[None] / target[:, None]
right = plain * torch.where(proposal > 0, proposal.T / proposal, 0)
for name, ratio, bound, says in (
    ("skew", plain, 0.0443, ""),
    ("corrected", right, 0, "Skew proposal with the ratio of g, off by"),
):
    accept = proposal * torch.clamp(ratio, max=1.0)
    accept.fill_diagonal_(0)
    values, vectors = torch.linalg.eig((accept + torch.diag(1 - accept.sum(1))).T)
    law = vectors[:, (values - 1).abs().argmin()].real
    off = 0.5 * (law / law.sum() - target).abs().sum()
    exact(name, off, near(bound, 1e-4), says=says)
size = np.linspace(0.01, 6, 6_000)
accepted = 2 * stats.norm.cdf(-size / 2)
exact("walk", accepted[(size**2 * accepted).argmax()], near(0.234, 0.001))
step = linear_chain([flows.Kick(2.1), flows.Drift(2.1)], one).transition
exact("modified", torch.linalg.eigvals(step).abs().max(), near(1.877, 1e-3))
for kept, bound in (
    (0.0, near(189, 0.5)),
    (0.88, near(13.5, 0.5)),
    (0.999, near(999.5, 1)),
):
    refresh = flows.MomentumMap(Matrix(kept), Matrix(1 - kept**2))
    chain, slowest = linear_chain([refresh, *flows.leapfrog(0.2)], PRECISION), []
    for sign in (1.0, -1.0):
        way = torch.tensor([1.0, sign, 0.0, 0.0], dtype=torch.float64)
        rho = chain.autocorrelation(way, 20_000)[1:]
        slowest += [1 + 2 * float(rho.sum()), 1 + 2 * float(rho.square().sum())]
    name = "kept-" + f"{kept:g}".removeprefix("0.")
    exact(name, max(slowest), bound, digits=3)
noise = 2 / 0.002 * PRECISION  # noise as the curvature, at a middling rate
law = langevin_chain(PRECISION, 0.002, noise, temperature=0.0).stationary_covariance()
ratios = torch.linalg.eigvalsh(law) / torch.linalg.eigvalsh(GAUSSIAN)
exact("constant", ratios[0] / ratios[1], near(18.8, 0.1))

# %% [markdown]
# ## The slides from Kanpur
#
# | claim | where | verdict |
# | --- | --- | --- |
# | Consensus with weights $W_j = \Sigma(\Sigma_0^{-1}/J + \bar\Sigma_j^{-1})$; by the product of $J$ Gaussians | Parallel/Distributed MCMC, Approaches 1, 2 | **fails** in the first form unless the parts are alike: the prior counts twice, which moves the mean by {c}`errata/consensus` standard deviations; the second form holds for Gaussian parts |
# | Standard dropout: “at test time, multiply each weight by the “keep” probability”; Monte Carlo dropout is “another popular and efficient way” | Efficient Posterior approx. … | **measured**: of the same networks, scaled weights minus thirty masks, error {c}`dropout`, log loss {c}`dropout-loss`, both open |
# | “L usually set to 5”, “acceptance rate around 90 %” | Generating Samples in HMC; HMC in Practice | **measured**: {c}`best-hmc` is best in many dimensions, 0.9 has {c}`ninety` of its worth; five steps fit widths that differ three times |
# | “The momentum forces exploring different regions instead of getting driven to” the MAP solution | Generating Samples in HMC | **holds** of HMC, whose only noise is the momentum; SGLD does without |
# | Dropout “can be seen as learning a variational approximation of the weights” | Efficient Posterior approx. … | **holds** of one whose spread does not shrink with the data: with 10,000 examples {c}`dropout-spread` times the posterior's ({doc}`neighbours </book/further/neighbours>`) |
# | “Most inference methods tend to produce local approximations only”; cyclical “big steps” find “different modes” | Deep Ensembles; Efficient Posterior approx. … | **holds** of the modes: {c}`modes-csgld` of 25 against {c}`modes-sgld`, with 20 seeds; restarts find them, too |
# | “The uncertainties may be underestimated in general” | Deep Ensembles | **holds** of ensembles at one budget, with {c}`width-diabetes` of the posterior's width on patients and {c}`width-digits` on digits ({doc}`fidelity </book/studies/fidelity>`) |
# | “VI only has local convergence, sampling (in theory) can give exact posterior” | Approximate Inference … | **holds** of sampling; at a correlation of 0.9 the best independent fit has {c}`independent` of the variance |
# | “Storing thousands of parameterisations” is “very costly” | Approximate Inference …; report, p. 11 | **holds** if all are kept; some tens are enough ({doc}`few </book/practice/recipes_networks>`) |
# | Deep ensembles often perform better, “in terms of more diversity in the set of parameters learned”, “than other inference methods” | Deep Ensembles | **holds** of the error at one budget, against three of four: minus SGHMC {c}`ensemble-SGHMC`, SGLD {c}`ensemble-SGLD`, Bayes by Backprop {c}`ensemble-Bayes`, but minus dropout {c}`ensemble-dropout` is open; the diversity was not measured ({doc}`twenty methods </book/studies/neighbours_on_networks>`) |
# | Test errors of eight methods on CIFAR-10 and CIFAR-100, cSGHMC lowest | Efficient Posterior approx. …, a table | **not run** on its ResNet-18; on a small network its four comparisons are open ({doc}`cycles </book/studies/cyclical_networks>`) |

# %% tags=["hide-input"]
step = np.linspace(0.001, 1.5, 1_500)
accepted = 2 * stats.norm.cdf(-(step**2))  # a Gaussian energy error, size as ε²
worth = accepted * step
exact("best-hmc", accepted[worth.argmax()], near(0.651, 0.002))
ninety = worth[np.abs(accepted - 0.9).argmin()] / worth.max()
exact("ninety", ninety, near(0.73, 0.005))
masks, methods = Seeds.read("dropout"), Seeds.read("neighbours")
kanpur = {
    f"ensemble-{name.split()[0]}": [
        methods(each, "scores.error", 100) for each in ("ensemble", name)
    ]
    for name in ("SGHMC", "SGLD", "Bayes by Backprop", "dropout")
}
for name, score, scale in (("dropout", "error", 100), ("dropout-loss", "log_loss", 1)):
    uses = ("standard", "scores")
    kanpur[name] = [masks("dropout", f"{use}.{score}", scale) for use in uses]
for name, gap in family(kanpur).items():
    stored(name, gap, OPEN if "dropout" in name else DECIDED)
for problem, content in read_result(RESULTS / "fidelity.json")["problems"].items():
    width = Seeds(content["methods"])("ensemble", "spread").mean()
    width /= content["reference"]["spread"]
    stored(f"width-{problem}", width, at_most(0.7), digits=1)
mixture = read_result(RESULTS / "modes.json")["methods"]
for name in ("SGLD", "cSGLD"):
    modes = [run["four chains"]["found"]["1 %"] for run in mixture[name]["runs"]]
    stored(f"modes-{name.lower()}", np.mean(modes), digits=2)
exact("dropout-spread", (0.2 * 0.8) ** 0.5 * 10_000**0.5, near(40, 1e-6), digits=2)
exact("independent", 1 / PRECISION[0, 0], near(0.19, 1e-6), digits=2)
