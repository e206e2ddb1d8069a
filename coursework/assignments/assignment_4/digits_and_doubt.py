# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # Assignment 4: digits and doubt
#
# A network that says "seven" should also say how sure it is, and whether it is looking at a digit at all. You will build what it takes to judge that, sample a Bayesian network on real digits, and say what its doubt is worth.
#
# *Before you start*, read the chapters *Many answers instead of one*, *Friction: stochastic-gradient HMC* and *Two hundred networks* of the book *Stochastic-gradient MCMC, derived and run* (`README.md` says where it is). Each task names the sections that it rests on.
# *It takes* four to five hours: two for the code, one and a half for the questions, the rest for the figure.
# *It is worth* 100 points: 60 for five code tasks, graded by tests; 25 for three questions and 15 for a figure and what you read in it, marked by hand.
#
# *In all tasks* you may use everything: `torch`, NumPy, SciPy and all of `sgmc`, of which task 5 and the figure cannot do without.
#
# A code task's test cell stands below it. Its parts begin with `# POINTS` and are graded one by one; grading runs each of them with more tests, at other numbers. `make test A=assignment_4` tells which of them pass.
# Positions are tensors `(chains, dim)`.
# All randomness comes from the generator, or the seed, that a function is given.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import torch

if not Path("checks.py").exists():  # in the book's own tree it is one folder up
    sys.path.append("..")
from checks import (
    assert_close,
    assert_mean,
    assert_normal,
    assert_shape,
    assert_share,
    seeded,
)
from scipy import integrate, stats

from booklib.data import digits, letters
from booklib.models.networks import multilayer_perceptron
from booklib.page.figures import use_style
from booklib.scores.prediction import (
    error_rate,
    expected_calibration_error,
    log_score,
    reliability_curve,
)
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.posteriors import NetworkPosterior

use_style()

# %% [markdown]
# ## 1 An energy from a minibatch (12 points)
#
# A network with weights $\theta$ turns an input $x$ into the logits $f(x; \theta)$ of its classes. The prior is $N(0, \tau^2)$ on every weight, the likelihood the softmax of the logits. Write an unbiased estimate $\tilde U(\theta)$ of the energy $U(\theta) = -\log\bigl(\text{prior} \times \text{likelihood of all } N \text{ examples}\bigr)$ from a minibatch of $n$.
#
# `logits_of(position, inputs)` maps `(chains, dim)` and `(n, features)` to `(chains, n, classes)`; `targets` are class numbers `(n,)`. Return `(chains,)`, several chains at once. Additive constants do not matter. Logits may be in the thousands: do not exponentiate them.
#
# See *Many answers instead of one*, “From belief to prediction”; *What a minibatch sees*, “The gradient of a posterior is a sum”.


# %% nbgrader={"grade": false, "grade_id": "minibatch-energy", "locked": false, "schema_version": 3, "solution": true, "task": false}
def minibatch_energy(
    position, inputs, targets, logits_of, num_examples, prior_variance
):
    """Estimate U(θ) of every chain from a minibatch, up to a constant.

    position is (chains, dim); returns (chains,).
    """
    ### BEGIN SOLUTION
    prior = 0.5 * position.square().sum(-1) / prior_variance
    log_probabilities = logits_of(position, inputs).log_softmax(-1)
    log_likelihoods = log_probabilities[:, torch.arange(len(targets)), targets]
    return prior - num_examples / len(targets) * log_likelihoods.sum(-1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "minibatch-energy-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
def linear_logits(position, inputs):
    """A network without hidden units: θ holds a matrix (features, 3)."""
    return torch.einsum("nf,cfk->cnk", inputs, position.reshape(len(position), -1, 3))


two_chains = torch.tensor([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]], dtype=torch.float64)
# POINTS 5: the energy of two chains
energies = minibatch_energy(
    two_chains.clone(),
    torch.ones(4, 1).double(),
    torch.tensor([0, 0, 1, 2]),
    linear_logits,
    40,
    0.5,
)
assert_shape(energies, (2,), "the energies", torch.float64)
exact = 4 + 10 * (4 * math.log((math.exp(2) + 2) / 3) - 2 * 2)
assert_close(
    energies[1] - energies[0],
    exact,
    "the energy at θ = (2, 0, 0) less that at 0, with N/n = 10 and τ² = 0.5",
)
### BEGIN HIDDEN TESTS
three_chains = torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, -1.0]])
energies = minibatch_energy(
    three_chains.double(),
    torch.tensor([[1.0], [2.0]]).double(),
    torch.tensor([1, 0]),
    linear_logits,
    10,
    2.0,
)
assert_shape(energies, (3,), "the energies", torch.float64)
e = math.e
both = [
    0.25 + 5 * (math.log((e + 2) * (e**2 + 2) / 9) - 1),
    0.5 + 5 * (math.log((e + 1 + 1 / e) * (e**2 + 1 + e**-2) / 9) - 2),
]
assert_close(
    energies[1:] - energies[0],
    torch.tensor(both, dtype=torch.float64),
    "the energies of two chains less that at 0, from other examples",
)
### END HIDDEN TESTS
# POINTS 5: unbiased, at other numbers
single = [
    minibatch_energy(
        two_chains.clone(),
        torch.ones(1, 1).double(),
        torch.tensor([k]),
        linear_logits,
        3,
        2.0,
    )
    for k in range(3)
]
average = sum(single) / 3
exact = 1 + 3 * math.log((math.exp(2) + 2) / 3) - 2
assert_close(
    average[1] - average[0],
    exact,
    "the average over three minibatches of one example, at θ = (2, 0, 0) less that "
    "at 0, with τ² = 2",
)
### BEGIN HIDDEN TESTS
generator = seeded(41)
inputs = torch.randn(12, 4, generator=generator, dtype=torch.float64)
targets = torch.randint(3, (12,), generator=generator)
position = torch.randn(5, 12, generator=generator, dtype=torch.float64)
logits = linear_logits(position, inputs)
loss = (
    logits.logsumexp(-1) - logits.gather(-1, targets.expand(5, 12)[..., None])[..., 0]
).sum(-1)
for prior_variance in (0.3, 4.0):
    expected = position.pow(2).sum(-1) / (2 * prior_variance) + loss
    for size in (4, 6, 12):
        parts = [
            minibatch_energy(
                position.clone(),
                inputs[k : k + size],
                targets[k : k + size],
                linear_logits,
                12,
                prior_variance,
            )
            for k in range(0, 12, size)
        ]
        average = torch.stack(parts).mean(0)
        assert_shape(average, (5,), "the energies", torch.float64)
        assert_close(
            average - average[0],
            expected - expected[0],
            f"the average over all minibatches of {size}, up to a constant",
        )
one = minibatch_energy(position[:1].clone(), inputs, targets, linear_logits, 12, 1.0)
assert_shape(one, (1,), "the energy of a single chain", torch.float64)
### END HIDDEN TESTS
# POINTS 2: logits in the thousands
far = minibatch_energy(
    1000 * two_chains,
    torch.ones(2, 1).double(),
    torch.tensor([0, 1]),
    linear_logits,
    2,
    1e6,
)
assert_close(
    far[1] - far[0],
    2 + 2000 - 2 * math.log(3),
    "the energy where logits are in the thousands, less that at 0",
)
### BEGIN HIDDEN TESTS
far = minibatch_energy(
    -1000 * two_chains,
    torch.ones(2, 1).double(),
    torch.tensor([0, 1]),
    linear_logits,
    4,
    1e6,
)
assert_close(
    far[1] - far[0],
    2 + 2 * (2000 + 2 * math.log(2) - 2 * math.log(3)),
    "the energy where other logits are in the thousands, less that at 0",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 Two kinds of doubt (12 points)
#
# Let $p_s(k \mid x)$, $s = 1, \dots, S$, be the predictions of networks drawn from the posterior, and $\bar p(k \mid x)$ their average. With the entropy $\mathcal H(p) = -\sum_kp_k\log p_k$ in nats, where $0\log0 = 0$, let
#
# * the *total* uncertainty be $\mathcal H(\bar p)$,
# * the *expected* uncertainty be the average of $\mathcal H(p_s)$,
# * the *information* be their difference: what the label would tell about the weights.
#
# Write a function that maps predictions `(draws, n, classes)` to these three, each `(n,)`.
#
# See *Many answers instead of one*, “Where the doubt comes from”.


# %% nbgrader={"grade": false, "grade_id": "uncertainty", "locked": false, "schema_version": 3, "solution": true, "task": false}
def uncertainty(probabilities):
    """Give total uncertainty, expected uncertainty and information of every example.

    probabilities is (draws, n, classes); returns three times (n,).
    """

    ### BEGIN SOLUTION
    def entropy(p):
        return -torch.xlogy(p, p).sum(-1)

    total, expected = entropy(probabilities.mean(0)), entropy(probabilities).mean(0)
    return total, expected, total - expected
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "uncertainty-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
coin, certain = [0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]]
three = uncertainty(
    torch.tensor([[coin, certain[0], certain[0]], [coin, certain[0], certain[1]]])
)
for value in three:
    assert_shape(value, (3,), "each of the three")


### BEGIN HIDDEN TESTS
def cases():
    """Give predictions, some of them zero, with their exact expected uncertainty.

    And with their information: the mean divergence from their average.
    """
    generator = seeded(42)
    for draws, n, classes in ((7, 11, 4), (1, 3, 10), (25, 2, 3)):
        logits = 3 * torch.randn(
            draws, n, classes, generator=generator, dtype=torch.float64
        )
        logits[:, 0, 0] = -torch.inf
        p = logits.softmax(-1)
        average = p.sum(0) / draws
        divergence = (
            torch.where(p > 0, p * (p.log() - average.log()), 0.0).sum(-1).sum(0)
            / draws
        )
        surprise = torch.where(p > 0, -p * p.log(), 0.0).sum(-1).sum(0) / draws
        found = uncertainty(p.clone())
        for value in found:
            assert_shape(value, (n,), "each of the three", torch.float64)
        yield found, surprise, divergence


### END HIDDEN TESTS
# POINTS 4: the total uncertainty
assert_close(
    three[0], torch.tensor([math.log(2), 0, math.log(2)]), "the total uncertainty"
)
### BEGIN HIDDEN TESTS
for found, surprise, divergence in cases():
    assert_close(found[0], surprise + divergence, "the total uncertainty")
### END HIDDEN TESTS
# POINTS 4: the expected uncertainty
assert_close(three[1], torch.tensor([math.log(2), 0, 0]), "the expected uncertainty")
### BEGIN HIDDEN TESTS
for found, surprise, _ in cases():
    assert_close(found[1], surprise, "the expected uncertainty")
### END HIDDEN TESTS
# POINTS 4: the information
assert_close(three[2], torch.tensor([0, 0, math.log(2)]), "the information")
### BEGIN HIDDEN TESTS
for found, _, divergence in cases():
    assert_close(found[2], divergence, "the information")
### END HIDDEN TESTS

# %% [markdown]
# ## Question 1: what doubt is good for (9 points)
#
# 1. Show that the information is never negative, and that it is zero only if all the networks predict the same.
# 2. Two ensembles of two networks each have the average $\bar p = (0.5, 0.5)$ for some input: one with as much information as possible, one with none. Write them down. For which of the two would you collect more data like this input, and why?
# 3. You compute the information from $S$ draws of the posterior. How large can it be at most, whatever the number of classes? What does that mean for $S$?

# %% [markdown] nbgrader={"grade": true, "grade_id": "theory-information", "locked": false, "points": 9, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# 1. $\mathcal H$ is strictly concave, so Jensen's inequality gives $\mathcal H(\bar p) \ge \frac1S\sum_s\mathcal H(p_s)$, with equality only if all $p_s$ are equal. Or: the difference is $\frac1S\sum_s\mathrm{KL}(p_s \,\|\, \bar p)$, a mean of terms that are $\ge 0$, and zero only for $p_s = \bar p$.
# 2. Most: $p_1 = (1, 0)$, $p_2 = (0, 1)$, information $\log2$. None: both $(0.5, 0.5)$. More data help with the first: the networks disagree, and a label would rule out half of them. In the second all networks agree that the input is ambiguous; a label teaches nothing about the weights.
# 3. The information is the mutual information of the label and the index $s$, which is uniform on $S$ values; so it is at most $\log S$ (attained if the predictions have disjoint supports). Ten draws cannot show more than $\log10$; a small $S$ underestimates it, and so for a bound above the possible $\log K$ one needs $S \ge K$ at the least.
#
# **Rubric.** Part 1: 2 for the inequality with its reason, 1 for equality. Part 2: 1 for each ensemble, 1 for the choice with a reason. Part 3: 2 for $\log S$ with an argument, 1 for what it means. In part 3 "at most $\log K$" alone gets 1.
# ### END SOLUTION

# %% [markdown]
# ## 3 Is it calibrated, or is that luck? (12 points)
#
# The expected calibration error of a prediction $p(k \mid x_i)$ on data with labels $y_i$ is `expected_calibration_error(probabilities, targets)`. It is never zero in practice: also a perfectly calibrated prediction has some, because labels are finite in number. So we test.
#
# *Hypothesis:* $y_i$ is drawn from $p(\cdot \mid x_i)$, independently. Draw `num_simulations` new sets of labels under the hypothesis, compute the calibration error of each, and return the p-value: the share of the sets whose error is at least the observed one.
# (Whether you count the observed set itself, as $(1 + \#)/(1 + M)$, or not, as $\#/M$, is up to you.)
#
# See *Two hundred networks*, “Why the average wins”.


# %% nbgrader={"grade": false, "grade_id": "calibration", "locked": false, "schema_version": 3, "solution": true, "task": false}
def calibration_p_value(probabilities, targets, num_simulations, generator):
    """Give the p-value of the hypothesis that the targets were drawn from them.

    probabilities is (n, classes); targets is (n,).
    """
    ### BEGIN SOLUTION
    observed = expected_calibration_error(probabilities, targets)
    simulated = [
        expected_calibration_error(
            probabilities,
            torch.multinomial(probabilities, 1, generator=generator)[:, 0],
        )
        for _ in range(num_simulations)
    ]
    return (1 + sum(error >= observed for error in simulated)) / (1 + num_simulations)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "calibration-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
generator = seeded(43)
believed = (3 * torch.randn(500, 4, generator=generator)).softmax(-1)
drawn = torch.multinomial(believed, 1, generator=generator)[:, 0]
p_values = [
    float(calibration_p_value(believed.clone(), drawn.clone(), 99, generator))
    for _ in range(10)
]
assert all(0 <= p <= 1 for p in p_values), "a p-value is between 0 and 1"
assert len(set(p_values)) > 1, (
    "every call should draw other labels, and lead to slightly different p-values"
)
half_as_sure = believed.sqrt() / believed.sqrt().sum(-1, keepdim=True)
assert calibration_p_value(half_as_sure, drawn.clone(), 99, generator) < 0.05, (
    "these probabilities are too modest"
)
# POINTS 4: wrong predictions are found out
twice_as_sure = believed**2 / (believed**2).sum(-1, keepdim=True)
assert calibration_p_value(twice_as_sure, drawn.clone(), 99, generator) < 0.05, (
    "these probabilities are too sure"
)
### BEGIN HIDDEN TESTS
for power in (3.0, 0.4):
    believed = (2 * torch.randn(2_000, 3, generator=generator)).softmax(-1)
    drawn = torch.multinomial(believed, 1, generator=generator)[:, 0]
    wrong = believed**power / (believed**power).sum(-1, keepdim=True)
    assert calibration_p_value(wrong, drawn, 19, generator) < 0.06, (
        "predictions that are too sure, or too modest, are found out"
    )
### END HIDDEN TESTS
# POINTS 8: right predictions get every p-value equally often
assert max(p_values) > 0.01, "these labels are drawn from the probabilities"
### BEGIN HIDDEN TESTS
# Under the hypothesis the observed error is exchangeable with the 19 simulated ones:
# its rank is uniform, and both conventions give p ≤ 0.1 with probability 0.1, p ≤ 0.5
# with probability 0.5 and p ≤ 0.9 with probability 0.9.
generator, p_values = seeded(4300), []
for _ in range(250):
    believed = (2 * torch.randn(60, 3, generator=generator)).softmax(-1)
    drawn = torch.multinomial(believed, 1, generator=generator)[:, 0]
    p_values.append(float(calibration_p_value(believed, drawn, 19, generator)))
levels = torch.tensor([0.1, 0.5, 0.9])
assert_share(
    torch.tensor(p_values)[:, None] < levels + 0.002,
    (250, 3),
    levels,
    "the share of p-values under the hypothesis that are at most so large",
)
### END HIDDEN TESTS

# %% [markdown]
# ## Question 2: calibrated, and useless (8 points)
#
# 1. Give a prediction that is calibrated on every data set with ten equally frequent classes, and useless. What is its log score?
# 2. Show that the expected log score $-\sum_kq_k\log p_k$ of a prediction $p$, if labels are drawn from $q$, is smallest for $p = q$.
# 3. Consider a calibrated prediction, and a bin with $m$ examples whose mean confidence is $c$. How large is the difference of accuracy and confidence in the bin, roughly, by chance alone? How does the calibration error of a perfectly calibrated prediction go with the number of examples $n$?

# %% [markdown] nbgrader={"grade": true, "grade_id": "theory-calibration", "locked": false, "points": 8, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# 1. Always $(0.1, \dots, 0.1)$: it says 10 % and is right in one case of ten. Its log score is $\log10 \approx 2.30$.
# 2. $-\sum_kq_k\log p_k + \sum_kq_k\log q_k = \mathrm{KL}(q \,\|\, p) \ge 0$, because $\sum_kq_k\log(p_k/q_k) \le \log\sum_kq_kp_k/q_k \le 0$ by Jensen; zero only for $p = q$.
# 3. The accuracy of the bin is a mean of $m$ independent indicators with probabilities near $c$, so it has a standard deviation of about $\sqrt{c(1 - c)/m}$, and the absolute difference is $\sqrt{2/\pi}$ of that on average. With $m$ in proportion to $n$ every term, and so the sum, goes as $1/\sqrt n$: it never is zero, and halves when the data are multiplied by four. Hence task 3.
#
# **Rubric.** Part 1: 1 for the prediction, 1 for the score. Part 2: 3, of which 1 for naming or proving the inequality and 1 for when it is an equality. Part 3: 2 for the standard deviation, 1 for $1/\sqrt n$.
# ### END SOLUTION

# %% [markdown]
# ## 4 How well are they told apart? (12 points)
#
# Let a score, say an entropy, be higher for strange inputs than for known ones, one hopes. The *area under the ROC curve* is the probability that a random score from `outside` exceeds one from `inside`, ties counting half:
#
# $$
# A = \frac1{mn}\sum_{i=1}^m\sum_{j=1}^n\psi(x_i, y_j), \qquad \psi(x, y) = [x < y] + \tfrac12[x = y].
# $$
#
# It is an average over $m + n$ independent scores, not over $mn$ independent pairs. Return $A$ **and its standard error**, two floats.
# One way to the error: let $a_i = \frac1n\sum_j\psi(x_i, y_j)$ and $b_j = \frac1m\sum_i\psi(x_i, y_j)$; up to terms of higher order $\operatorname{Var}A = \operatorname{Var}(a)/m + \operatorname{Var}(b)/n$ (DeLong et al., 1988). A bootstrap over both samples is as good.
#
# See *Many answers instead of one*, “Sample, predict, average”.


# %% nbgrader={"grade": false, "grade_id": "separation", "locked": false, "schema_version": 3, "solution": true, "task": false}
def separation(inside, outside):
    """Give the area under the ROC curve and its error, for scores (m,) and (n,)."""
    ### BEGIN SOLUTION
    psi = (inside[:, None] < outside).double() + 0.5 * (
        inside[:, None] == outside
    ).double()
    variance = psi.mean(1).var() / len(inside) + psi.mean(0).var() / len(outside)
    return float(psi.mean()), float(variance.sqrt())
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "separation-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
# POINTS 5: the area
area, _ = separation(torch.tensor([0.0, 1.0, 1.0, 2.0]), torch.tensor([1.0, 2.0]))
assert_close(float(area), 5.5 / 8, "the area for {0, 1, 1, 2} and {1, 2}")
### BEGIN HIDDEN TESTS
generator = seeded(4400)
for m, n in ((40, 25), (7, 30)):
    inside, outside = (
        torch.randint(6, (m,), generator=generator).float(),
        torch.randint(2, 8, (n,), generator=generator).float(),
    )
    pairs = [
        0.5 * (x == y) + 1.0 * (x < y)
        for x in inside.tolist()
        for y in outside.tolist()
    ]
    assert_close(
        float(separation(inside.clone(), outside.clone())[0]),
        sum(pairs) / (m * n),
        "the area, with ties",
    )
### END HIDDEN TESTS
# POINTS 7: its standard error
same = torch.randn(400, generator=seeded(44))
_, standard_error = separation(same.clone(), same[:100] + 5)
assert 0 <= float(standard_error) < 0.005, (
    "the standard error where scores are far apart"
)
_, standard_error = separation(same[:200].clone(), same[200:].clone())
assert 0.02 < float(standard_error) < 0.04, (
    "the standard error of 200 scores against 200 of the same law is about 0.029"
)
### BEGIN HIDDEN TESTS
# The variance of A for normal scores is known, by two integrals; the squared standard
# errors, averaged over 40 data sets, are within a few per cent of it: a tolerance of 30
# % raises no false alarm, and leaves room for the bootstrap.
generator = seeded(4401)
for m, n, scale in (
    (60, 150, 0.3),
    (150, 40, 1.0),
):  # N(0, 1) inside, N(1, scale²) outside
    exact = stats.norm.cdf(1 / math.sqrt(1 + scale**2))
    outside_law = stats.norm(1, scale)
    two_outside = integrate.quad(
        lambda x: stats.norm.pdf(x) * outside_law.sf(x) ** 2, -9, 9, points=[1]
    )[0]  # one inside is below both
    two_inside = integrate.quad(
        lambda y: outside_law.pdf(y) * stats.norm.cdf(y) ** 2, -9, 9, points=[1]
    )[0]
    variance = (
        exact * (1 - exact)
        + (n - 1) * (two_outside - exact**2)
        + (m - 1) * (two_inside - exact**2)
    ) / (m * n)
    runs = [
        separation(
            torch.randn(m, generator=generator),
            1 + scale * torch.randn(n, generator=generator),
        )
        for _ in range(40)
    ]
    assert_mean(
        torch.tensor([float(area) for area, _ in runs]),
        (40,),
        exact,
        f"the area for N(0, 1) and N(1, {scale:g}²)",
        std=variance**0.5,
    )
    ratio = sum(float(error) ** 2 for _, error in runs) / 40 / variance
    assert 0.7 < ratio < 1.4, (
        f"the squared standard error is {ratio:.3g} times the variance of the area"
    )
### END HIDDEN TESTS

# %% [markdown]
# ## The digits, and a network
#
# 4,000 handwritten digits for training, 1,000 for testing, and 1,080 printed letters that are no digits at all. The network has 50 hidden units; the prior is $N(0, 1)$ on every weight.
# Some pixels are empty in all training digits. The weights that lead away from them are called *untouched* below.

# %% nbgrader={"grade": false, "grade_id": "data", "locked": true, "schema_version": 3, "solution": false, "task": false}
train, test = digits()
strange = letters()
empty_pixels = (train.inputs == 0).all(0).nonzero()[:, 0]


def make_posterior(hidden_units, prior_variance=1.0):
    """The posterior of a network for the training digits, with minibatches of 250."""
    network = multilayer_perceptron([784, hidden_units, 10])
    return NetworkPosterior(
        network, train.inputs, train.targets, prior_variance, batch_size=250
    )


def untouched_weights(hidden_units):
    """Where in a position the weights of the empty pixels are."""
    return (784 * torch.arange(hidden_units)[:, None] + empty_pixels).flatten()


# %% [markdown]
# ## Question 3: weights that the data never touch (8 points)
#
# 1. Show that the posterior of an untouched weight is its prior $N(0, \tau^2)$, exactly, and independent of all other weights.
# 2. What is the minibatch gradient of $\tilde U$ with respect to such a weight, and its noise? What follows for the law that SGHMC gives it?
# 3. So here is a check of a chain in tens of thousands of dimensions against an exact answer. Name an error of a sampler or of its settings that the check finds, and one that it cannot find.

# %% [markdown] nbgrader={"grade": true, "grade_id": "theory-untouched", "locked": false, "points": 8, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# 1. The weight $w$ multiplies a pixel that is zero in every training example, so the likelihood does not depend on it. The posterior density is prior($w$) times a function of the others: a product, so $w$ is independent of them and has its prior.
# 2. It is $w/\tau^2$, without any noise, whatever the minibatch. So SGHMC is, for this weight, a linear chain with exact gradients; its stationary law is normal with mean zero, and with variance $\tau^2$ up to the discretisation error of order $\varepsilon^2$, if $\hat B = 0$ in this coordinate. With $\hat B > 0$ too little noise is injected.
# 3. It finds: too short a warm-up, injected noise of the wrong size, no friction, a temperature other than one, a wrong prior variance. It cannot find: a missing factor $N/n$ or a wrong likelihood, gradient noise that heats the weights that the data do touch, or chains that stay in one mode of those.
#
# **Rubric.** Part 1: 2 for the likelihood that does not depend on $w$, 1 for the factorisation. Part 2: 1 for the gradient, 1 for no noise, 1 for the law. Part 3: 1 each.
# ### END SOLUTION

# %% [markdown]
# ## 5 Draw networks (12 points)
#
# Run **one chain of SGHMC** on the posterior of a network, with `sgmc`: the kernel `SGHMC.from_learning_rate(8e-5, 0.04)`, the start `posterior.initial_position(1, generator)`.
# Throw away the warm-up, then keep 30 to 300 draws, spread over at least 1,000 steps. 3,000 steps in all are plenty. Return
#
# * the class probabilities of the `inputs` under each draw, `(draws, n, classes)`, in which `posterior.predict` helps,
# * the values of the weights with the numbers `watched`, `(draws, len(watched))`.
#
# How long a warm-up? The untouched weights tell. Do not keep all positions if you can help it; `collect` is for that.
#
# See *Two hundred networks*, “The posterior of a network” and “Has it arrived?”.


# %% nbgrader={"grade": false, "grade_id": "sample-network", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sample_network(posterior, inputs, watched, seed):
    """Draw networks from the posterior; give their predictions and some weights."""
    ### BEGIN SOLUTION
    kernel = SGHMC.from_learning_rate(8e-5, 0.04)
    start = posterior.initial_position(1, torch.Generator().manual_seed(seed))

    def keep(position):
        probabilities = posterior.predict(position, inputs).flatten(1)
        return torch.cat([probabilities, position[:, watched]], 1)

    draws = sample(
        kernel,
        posterior,
        start,
        num_samples=50,
        warm_up=1_500,
        thinning=25,
        seed=seed,
        collect=keep,
        progress=False,
    )
    kept = draws.samples[:, 0]
    probabilities = kept[:, : -len(watched)].reshape(50, len(inputs), -1)
    return probabilities, kept[:, -len(watched) :]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "sample-network-test", "locked": true, "points": 12, "schema_version": 3, "solution": false, "task": false}
# POINTS 4: predictions of networks, and their weights
small = make_posterior(5)
every = torch.arange(small.initial_position(1, seeded(0)).shape[1])
probabilities, weights = sample_network(small, test.inputs[:200], every, seed=45)
assert_shape(probabilities, (len(probabilities), 200, 10), "the probabilities")
assert_shape(weights, (len(probabilities), len(every)), "the weights")
assert 30 <= len(probabilities) <= 300, (
    f"there should be 30 to 300 draws, but there are {len(probabilities)}"
)
assert_close(
    probabilities.sum(-1), torch.ones(len(probabilities), 200), "sums of probabilities"
)
assert float(probabilities.min()) >= 0, "probabilities are not negative"
for draws in (weights, probabilities.flatten(1)):
    assert len(draws.square().sum(1).unique()) >= 30, (
        "every draw should be another network"
    )
assert_close(
    probabilities[-1],
    small.predict(weights[-1:], test.inputs[:200])[0],
    "the predictions of the network with the last weights",
)
assert 0.8 < float(weights[:, untouched_weights(5)].square().mean()) < 1.2, (
    "the prior variance of untouched weights is one"
)
### BEGIN HIDDEN TESTS
some = torch.tensor([40, 3, 17])
predictions, watched = sample_network(small, test.inputs[900:930], some, seed=47)
assert 30 <= len(predictions) <= 300, (
    f"there should be 30 to 300 draws, but there are {len(predictions)}"
)
assert_shape(predictions, (len(predictions), 30, 10), "the probabilities")
assert_shape(watched, (len(predictions), 3), "the weights that are watched")
assert len(watched.unique()) > 60, "every draw should be another network"
assert not torch.equal(predictions[0], probabilities[0, :30]), (
    "other inputs, and another seed, should lead to other predictions"
)
### END HIDDEN TESTS
# POINTS 8: their law, which only grading tests
### BEGIN HIDDEN TESTS
# All weights are watched, in another order, so that every prediction can be made once
# more. Untouched weights are independent N(0, τ²), and SGHMC's exact law has that
# variance up to 3e-5. In eight runs the log score of single networks was 0.68 to 0.83,
# that of their average 0.29 to 0.36: the bounds are far from both. The bounds of the
# visible test are 5 standard errors away for a right answer: 50 draws of 620 weights, a
# twentieth of them independent.
small = make_posterior(10, prior_variance=0.8)
every = torch.arange(small.initial_position(1, seeded(0)).shape[1])
probabilities, weights = sample_network(small, test.inputs, every.flip(0), seed=46)
assert_shape(weights, (len(probabilities), len(every)), "the weights")
weights = weights.flip(1)
for k in range(0, len(weights), 10):
    assert_close(
        probabilities[k],
        small.predict(weights[k : k + 1], test.inputs)[0],
        "the predictions of the network whose weights are given",
    )
untouched = weights[:, untouched_weights(10)]
for k in (0, len(weights) // 2, -1):
    count = 10 * len(empty_pixels)
    what = f"the untouched weights of draw {k}"
    assert_normal(untouched[k], (count,), 0.0, 0.8, what)
single = sum(log_score(p, test.targets) for p in probabilities) / len(probabilities)
average = log_score(probabilities.mean(0), test.targets)
assert average < 0.5, (
    f"the log score of the averaged prediction on the test digits is {average:.2f}"
)
assert single - average > 0.15, (
    f"single networks have the log score {single:.2f}, their average {average:.2f}: "
    "they hardly differ"
)
### END HIDDEN TESTS

# %% [markdown]
# ## The figure (15 points, together with what you read in it)
#
# Sample the posterior of the network with 50 hidden units, and look at the test digits and the letters. For comparison, `optimised` below holds the predictions of one optimised network on the same inputs.
# Draw **one figure with two panels**:
#
# * left, a reliability diagram on the test digits, accuracy against confidence in bins with at least ten digits, with error bars, for the average of your networks and for the optimised one (`reliability_curve` helps);
# * right, histograms of the *information* of the average on digits and on letters.
#
# Print beside it, for both: error, log score, p-value of the calibration with 200 simulations, and $A$ with its standard error for the total uncertainty; and $A$ for the information of the average.
#
# *(This cell of yours takes about half a minute.)*

# %% nbgrader={"grade": false, "grade_id": "optimised", "locked": true, "schema_version": 3, "solution": false, "task": false} tags=["experiment"]
everything = torch.cat([test.inputs, strange.inputs])
posterior = make_posterior(50)
optimiser = SGHMC.from_learning_rate(
    1e-5, 0.1, temperature=0.0
)  # at temperature zero SGHMC is SGD with momentum
start = posterior.initial_position(1, torch.Generator().manual_seed(4))
last = sample(
    optimiser, posterior, start, num_samples=1, warm_up=2_000, seed=4, progress=False
).samples[0]
optimised = posterior.predict(last, everything)  # (1, 2080, 10): an ensemble of one

# %% nbgrader={"grade": false, "grade_id": "plot-doubt", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["experiment"]
### BEGIN SOLUTION
networks, untouched = sample_network(
    posterior, everything, untouched_weights(50), seed=4
)
print(f"mean square of the untouched weights: {untouched.square().mean():.3f}")
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
left.plot([0.2, 1], [0.2, 1], color="grey")
generator = torch.Generator().manual_seed(5)
for label, ensemble in (
    ("average of the networks", networks),
    ("optimised network", optimised),
):
    on_digits = ensemble[:, :1000].mean(0)
    total, _, information = uncertainty(ensemble)
    area, error = separation(total[:1000], total[1000:])
    p_value = calibration_p_value(on_digits, test.targets, 200, generator)
    print(
        f"{label}: error {error_rate(on_digits, test.targets):.3f}, "
        f"log score {log_score(on_digits, test.targets):.3f}, "
        f"calibration error {expected_calibration_error(on_digits, test.targets):.3f} "
        f"(p = {p_value:.3f}), "
        f"A of the total uncertainty {area:.3f} ± {error:.3f}"
    )
    confidence, accuracy, count = reliability_curve(on_digits, test.targets)
    shown = count >= 10
    bars = 2 * (accuracy * (1 - accuracy) / count).sqrt()
    left.errorbar(
        confidence[shown], accuracy[shown], bars[shown], fmt="o-", ms=4, label=label
    )
    if len(ensemble) > 1:
        area, error = separation(information[:1000], information[1000:])
        print(f"A of the information {area:.3f} ± {error:.3f}")
        right.hist(information[:1000], bins=30, density=True, alpha=0.6, label="digits")
        right.hist(
            information[1000:], bins=30, density=True, alpha=0.6, label="letters"
        )
left.set(xlabel="confidence", ylabel="accuracy")
right.set(xlabel="information (nats)", ylabel="density", yscale="log")
left.legend()
right.legend()
plt.show()
### END SOLUTION

# %% [markdown]
# What you see:
#
# 1. Which of the two predictions is too sure of itself, and which too modest? Which bins carry that conclusion, and which bins say nothing?
# 2. The p-values of both are small. Does that mean that they are equally good? Which of your numbers tells which prediction to use on digits, and how sure are you of the difference?
# 3. What does the right panel say about letters, and why does the single network have no such panel? A colleague concludes: "Bayesian networks know what they do not know." Name two reasons to be more careful, from your own numbers or from how the letters were made.

# %% [markdown] nbgrader={"grade": true, "grade_id": "plot-doubt-answer", "locked": false, "points": 15, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# 1. The optimised network is too sure: its points lie below the diagonal. The average is too modest: above the diagonal. Most digits are in the last bin, confidence above 0.9, and it has the shortest bars; the bins between 0.5 and 0.9 hold a few dozen digits each, and their bars of two standard errors reach the diagonal in part, but all lie on one side. Bins with fewer than ten digits are not shown, and bins near 0.4 have bars as long as the effect.
# 2. No. A p-value says whether the deviation can be chance, not how large or how harmful it is; both are miscalibrated, in opposite directions. To be too modest and to be too sure cost differently. A proper score, the log score, combines calibration with how much is known: 0.21 to 0.24 for the average in our runs, which differ between processors, and 0.24 for the single network. Over 1,000 digits such a difference has a standard error of about 0.02 to 0.03 (take the standard error of the differences digit by digit), and so is not established; nor is any difference of the errors, both near 6 %, with standard errors of 0.7 %.
# 3. On most letters the information is large, around one nat, on most digits it is near zero; the networks disagree about letters. A single network cannot disagree with itself: its information is zero everywhere. The $A$ of the total uncertainty is 0.88 to 0.90 for the average and 0.86 for the single network, with standard errors below 0.01: a real gain, but a small one. Reasons for care: the single network's total uncertainty does nearly as well; a part of the letters has little information (the left end of the orange histogram) and would pass as digits; an area of 0.9 means that one pair in ten is in the wrong order; printed letters of a few fonts are one kind of strange input, at nine places each and so not 1,080 independent ones, which makes the standard error too small; some letters look like digits (I and 1, B and 8), and others differ by thickness only; the scores were compared for one prior, one network, and one chain.
#
# **Rubric.** The figure and the numbers, 6: 2 for the reliability diagram with error bars and the diagonal, 2 for the two histograms on a common scale, 1 for labels, 1 for the printed numbers, with untouched weights near one. Errors made in tasks 1 to 5 do not count again.
# What it shows, 9: part 1: 1 for the directions, 2 for which bins carry them. Part 2: 1 for what a p-value does not say, 1 for a proper score, 1 for the size of its error. Part 3: 1 for the reading, 2 for two reasons, each from a number or from the data. Conclusions that follow from the student's own figure count.
# ### END SOLUTION
