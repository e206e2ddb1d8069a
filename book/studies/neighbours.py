# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -kernelspec,-jupytext.text_representation
# ---

# %% [markdown]
# # The neighbours: dropout, ensembles, Gaussians through an optimum
#
# ```{div} page-head
# Level: second course · Reading: about 86 minutes, without the exercises · Running: about 15 seconds
# ```
#
# Most people who want to know how sure a network is do not run a chain; this chapter says what they do instead, and how far each method's spread is from the posterior's where that can be computed.
# What they do on networks, and at which price, is the next chapter, {doc}`/book/studies/neighbours_on_networks`.
#
# **You will learn** to
#
# * derive dropout, ensembles, SWAG and Laplace's approximation with all that they assume,
# * compute the law of each of their draws exactly on a linear regression, and compare it with the posterior's,
# * say which spread shrinks with the data, which depends on a step size, and which comes from the number of modes alone.
#
# **You will need** {doc}`/book/tutorial/bayesian_learning`, {doc}`/book/further/constant_sgd` and {doc}`/book/further/variational_families`.

# %%

import matplotlib.pyplot as plt
import torch
from torch import nn

from booklib.page.claims import claim
from booklib.page.figures import COLOURS, TRUTH, plot_contours, use_style
from booklib.page.play import play
from booklib.rivals import (
    constant_sgd,
    dropout,
    ensemble,
    laplace,
    snapshots,
    swag,
    variational,
)
from booklib.rivals.constant_sgd import average_covariance
from sgmc import sample
from sgmc.kernels import SGLD
from sgmc.posteriors import Gaussian, LinearRegression, NetworkPosterior
from sgmc.splittings import langevin_chain

use_style()
play()  # a claim that fails now shows ✗, and the page goes on

# %% [markdown]
# ## Five ways to scatter weights
#
# Take the smallest network that has more than one mode: one hidden unit, no biases, $f(x) = v\tanh(wx)$, with $\theta = (w, v)$.
# It predicts the same with $-\theta$, so the {term}`posterior` has two modes of equal weight.
# There are twelve noisy examples, and the {term}`prior` is $N(0, 1)$ on both weights; where a method needs {term}`minibatches <minibatch>`, they have four examples.
# We let five methods loose on it, each of which is defined further down.
# {numref}`fig-neighbours-idea` shows where each puts its weights, beside exact {term}`draws <draw>` from the posterior.

# %%
generator = torch.Generator().manual_seed(0)
x = torch.linspace(-2, 2, 12)[:, None]
y = (torch.tanh(x) + 0.5 * torch.randn(12, 1, generator=generator))[:, 0]
weights = [nn.Linear(1, 1, bias=False) for _ in range(2)]
unit = nn.Sequential(weights[0], nn.Tanh(), weights[1])
one_unit = NetworkPosterior(unit, x, y, likelihood=Gaussian(0.25))
batches = NetworkPosterior(unit, x, y, likelihood=Gaussian(0.25), batch_size=4)

start = one_unit.initial_position(12, generator)
members = ensemble(one_unit, start, num_steps=500, learning_rate=0.1)
modes = members.samples[0]
descent = SGLD(0.02, temperature=0.0)
iterates = sample(descent, batches, modes[:1], 300, thinning=2, warm_up=50)
cycles = dict(cycle_length=50, learning_rate=0.05, momentum_decay=1.0)
drawn = {
    "dropout": dropout(one_unit, start[:1], 300, rate=0.2, num_steps=600),
    "ensemble": members,
    "snapshots": snapshots(batches, start[:1], 12, **cycles),
    "SWAG": swag(iterates, 300),
    "Laplace": laplace(one_unit, modes[:2], 150),
}

# %% mystnb={"figure": {"caption": "The posterior of two weights (contours) and what each method draws. Exact draws fill both modes. Dropout's are four points, its weights there or not. The members of an ensemble, and snapshots of one descent, sit at modes. SWAG and Laplace's approximation put a Gaussian at a mode, one as wide as descent rattles, the other as wide as the energy is curved; Laplace's is drawn at two members' modes.", "name": "fig-neighbours-idea"}, "image": {"alt": "Six panels with the contours of two banana-shaped modes. Exact draws fill both, dropout gives four points of which three lie outside, ensemble and snapshots are dots at the modes, SWAG is a narrow upright cloud at one mode, Laplace a broad ellipse at two."}} tags=["hide-input"]
PLACES = torch.linspace(-5, 5, 401)
plane = torch.cartesian_prod(PLACES, PLACES)
mass = (-one_unit.energy(plane).double()).softmax(0)
exact = plane[mass.multinomial(300, True, generator=generator)]
figure, panels = plt.subplots(2, 3, figsize=(7, 5), sharex=True, sharey=True)
for axes, (name, places) in zip(
    panels.flat,
    {
        "exact": exact,
        **{name: run.samples.flatten(0, 1) for name, run in drawn.items()},
    }.items(),
    strict=True,
):
    plot_contours(axes, one_unit, -3, 3)
    few = name in ("dropout", "ensemble", "snapshots")
    axes.plot(
        *places.T,
        "o" if few else ".",
        ms=5 if few else 2,
        alpha=0.7,
        color=TRUTH if name == "exact" else COLOURS["HMC"],
    )
    axes.set(title=name, xlim=(-3, 3), ylim=(-3, 3))
for axes in panels[1]:
    axes.set_xlabel("$w$")
for axes in panels[:, 0]:
    axes.set_ylabel("$v$")
plt.show()

# %% [markdown]
# {numref}`fig-neighbours-idea` holds most of this chapter.
# Three of the methods draw points, not clouds; two put a Gaussian somewhere.
# Dropout's points are four: both weights, one, the other, or none. With either weight at zero $f = 0$, so three of the four predict nothing at all, and lie outside the last contour.
# Those methods that start more than once see both modes; so do the snapshots here, whose high rate crosses from one to the other.
# The curvature at the mode gives Laplace almost the right width in $w$, three quarters of it in $v$, and nothing of the bend.
# SWAG's Gaussian is upright where the mode is flat: its shape is that of the gradient's noise, not of the posterior.

# %% tags=["hide-input"]
side = plane[:, 1] > 0
half = mass[side] / mass[side].sum()
centre = half @ plane[side].double()
exact_std = (half @ (plane[side].double() - centre).square()).sqrt()
mode = modes[:1] * modes[0, 1].sign()
curved = laplace(one_unit, mode, 20_000).samples[:, 0].double().std(0)
claim(
    "Number of different places among dropout's draws",
    float(len(drawn["dropout"].samples[:, 0].unique(dim=0))),
    near=4,
    within=0,
    because="two weights, each there or not",
)
points = drawn["dropout"].samples[:, 0].unique(dim=0)
lost = points[(points == 0).any(1)]
claim(
    "Energy of dropout's three points with a zero over the least energy, smallest",
    (one_unit.energy(lost) - one_unit.energy(plane).min()).min(),
    at_least=4.5,
    because="the last contour lies at 4.5, where the density has fallen by e^-4.5",
)
claim(
    "Largest distance of a member from one of the two modes",
    torch.minimum((modes - mode).norm(dim=-1), (modes + mode).norm(dim=-1)).max(),
    at_most=0.1,
    because=(
        "it descends to one; the posterior's standard deviation of w in a mode is 0.7"
    ),
)
for place, weight, expected in ((0, "w", 0.98), (1, "v", 0.78)):
    claim(
        f"Laplace's standard deviation of {weight} over the exact one in a mode",
        curved[place] / exact_std[place],
        near=expected,
        within=0.035,
        because=(
            "the exact law by a sum over a grid; 20,000 draws know the other to half "
            "a per cent"
        ),
    )
claim(
    "SWAG's standard deviation of w over the exact one in a mode",
    drawn["SWAG"].samples[:, 0, 0].std() / exact_std[0],
    at_most=0.25,
    because="0.13 with 200 chains: at this step size descent hardly moves along w",
)

# %% [markdown]
# ## What they are measured on
#
# A picture is no measurement.
# So every method runs on a problem whose answer is a formula: Bayesian linear regression, $y_i \sim N(x_i^\top\theta, \sigma^2)$ and $\theta \sim N(0, \Lambda^{-1})$ with $\Lambda = I/\tau^2$.
# With $G = X^\top X$ its posterior is $N(\hat\theta, A^{-1})$, $A = G/\sigma^2 + \Lambda$ and $\hat\theta = A^{-1}X^\top y/\sigma^2$ ({prf:ref}`thm-regression`).
# There is one mode, so nothing is seen but a method's own spread.
# Ours has $N = 400$ examples with two inputs of correlation 0.8, $\sigma^2 = \tau^2 = 1$, and minibatches of ten.
# Its posterior is an ellipse; we ask for the standard deviation of a prediction $x^\top\theta$ with $x$ along the long axis and along the short one.

# %%
DOUBLE = torch.float64
N, n = 400, 10
mixing = torch.tensor([[1.0, 0.8], [0.0, 0.6]], dtype=DOUBLE)
inputs = torch.randn(N, 2, generator=generator, dtype=DOUBLE) @ mixing
noise = torch.randn(N, generator=generator, dtype=DOUBLE)
targets = inputs @ torch.tensor([1.0, -0.5], dtype=DOUBLE) + noise
regression = LinearRegression(inputs, targets)
noisy = LinearRegression(inputs, targets, batch_size=n)
A, mean, identity = regression.precision, regression.mean, torch.eye(2, dtype=DOUBLE)
curvatures, axes_of_posterior = torch.linalg.eigh(A)  # the long axis comes first


def widths(covariance):
    """Standard deviation of a prediction over the exact one, along both axes."""
    along = axes_of_posterior.T @ covariance @ axes_of_posterior
    return (along.diagonal() * curvatures).sqrt()


def measured_widths(draws, centre=mean):
    """The same from draws, with standard errors from the spread between chains."""

    def squares(places):
        return ((places - centre) @ axes_of_posterior).square() * curvatures

    square, error = draws.mean_and_standard_error(squares)
    return square.sqrt(), error / (2 * square.sqrt())


# %% [markdown]
# ## Dropout
#
# *Dropout* trains a network of which a random part is missing in every step: what enters a layer is set to zero with the probability $p$ {cite:p}`srivastava2014`.
# It was made against overfitting, and in its usual form the whole network, with nothing dropped, predicts.
# {cite:t}`gal2016` keep on dropping when they predict, average many such predictions, and read the spread between them as uncertainty: *Monte Carlo dropout*.
# (Their $p_i$ is the probability that a unit *stays*; ours, as in the code, is that it goes.)
#
# ```{prf:algorithm} Monte Carlo dropout
# :label: alg-neighbours-dropout
#
# 1. Train $M$ by stochastic gradients of $E_zU(z\circ M)$, where $z$ is a mask of zeros, with the probability $p$, and ones, drawn afresh for every example in every step.
# 2. Draw $\theta_s = z_s\circ M$ with fresh masks, and average the predictions.
# ```
#
# In a network all weights that a unit's output meets share its entry of the mask.
# In a linear regression every weight has an entry of its own; there the code takes one mask for all the examples of a step, which has the same mean.
#
# Where does this come from?
# Let $q_M$ be the law of $\theta = z\circ M$, and choose $M$ so that $q_M$ is near the posterior, as in {doc}`/book/further/variational_families`:
#
# $$
# KL(q_M\,\|\,\pi) = E_zU(z\circ M) - \mathcal H(q_M) + \text{const}.
# $$ (eq-neighbours-dropout-kl)
#
# The first term is what dropout minimises.
# Its part from the prior $N(0, \tau^2I)$ is $E_z\,\lvert z\circ M\rvert^2/2\tau^2 = (1 - p)\lvert M\rvert^2/2\tau^2$, a weight decay; where a program has another decay, it has another prior.
# The rest rests on three assumptions.
#
# * *The entropy does not depend on $M$.* With a finite number of masks $q_M$ is a law of points, which has no density: the divergence from a posterior that has one is infinite, for every $M$. The way out is to blur each point a little, by a Gaussian whose width does not depend on $M$. As long as the points stay apart the entropy is then that of the masks plus that of the blur, a constant. {cite:t}`hron2018` say what is wrong with the objective without it.
# * *The rate $p$ is given.* The entropy of the masks depends on $p$, so it is no constant any more if $p$ is chosen by its predictions on other data.
# * *The family is a good one.* Among laws of that shape the nearest is found; nothing says that it is near.
#
# The last one can be looked at, because in linear regression all of it has a closed form.
#
# ```{prf:theorem} Dropout in linear regression
# :label: thm-neighbours-dropout
#
# Let every weight be dropped by itself with the probability $p$. Then $E_zU(z\circ M)$ is least at
#
# $$
# M = \Bigl((1 - p)\,G + p\operatorname{diag}G + \frac{\sigma^2}{\tau^2}I\Bigr)^{-1}X^\top y,
# $$ (eq-neighbours-dropout)
#
# and a prediction $x^\top\theta$ has the mean $(1 - p)\,x^\top M$ and the variance $p(1 - p)\sum_jx_j^2M_j^2$.
# ```
#
# ```{prf:proof}
# Given $x_i$, the prediction $\sum_jx_{ij}z_jM_j$ is a sum of independent terms with the mean $(1 - p)\,x_i^\top M$ and the variance $p(1 - p)\sum_jx_{ij}^2M_j^2$. Hence
#
# $$
# E_zU(z\circ M) = \frac1{2\sigma^2}\sum_i\Bigl[\bigl(y_i - (1 - p)\,x_i^\top M\bigr)^2 + p(1 - p)\sum_jx_{ij}^2M_j^2\Bigr] + \frac{1 - p}{2\tau^2}\lvert M\rvert^2.
# $$
#
# It is a convex quadratic in $M$, with the gradient $\frac{1 - p}{\sigma^2}\bigl[(1 - p)GM - X^\top y + p\operatorname{diag}(G)M + \frac{\sigma^2}{\tau^2}M\bigr]$.
# ```
#
# So the mean of the draws is that of a ridge regression whose penalty on $\theta_j$ has, beside the prior's, a part that is proportional to $G_{jj}$: dropout is a regulariser, and it grows with the data as they do.
#
# ```{prf:theorem} The spread does not shrink
# :label: thm-neighbours-shrink
#
# Let $G/N \to S \succ 0$ and $X^\top y/N \to S\theta^*$ as $N \to \infty$.
# Then $M \to M_\infty = \bigl((1 - p)S + p\operatorname{diag}S\bigr)^{-1}S\theta^*$, and the variance of a prediction tends to $p(1 - p)\sum_jx_j^2M_{\infty,j}^2$, while the posterior's is $x^\top A^{-1}x = O(1/N)$.
# The mean $(1 - p)M$ does not tend to $\theta^*$ but for $\theta^* = 0$.
# ```
#
# ```{prf:proof}
# Divide {eq}`eq-neighbours-dropout` by $N$ inside and outside of the inverse.
# If $(1 - p)M_\infty = \theta^*$, then $\bigl((1 - p)S + p\operatorname{diag}S\bigr)\theta^* = (1 - p)S\theta^*$, so that $\operatorname{diag}(S)\,\theta^* = 0$; its entries are positive.
# ```
#
# Neither more examples nor longer training brings such a spread near the posterior's; only a rate that falls with $N$ does, and the recipe has none.
# {cite:t}`lakshminarayanan2017` put it so: any sensible approximation of a posterior must depend on the data, and a rate that does not is better seen as an ensemble; {cite:t}`osband2016` calls what it measures risk and not uncertainty.
# We let $N$ grow from 30 to 10,000, and ask for the spread of the prediction at the input $x = (1, 1)$: by the closed form, and by training.


# %%
def best_weights(posterior, rate):
    """M of dropout in linear regression, with σ² = 1."""
    x, y = posterior.data
    G = x.T @ x
    ridge = torch.diag(rate * G.diagonal() + posterior.prior_precision)
    return torch.linalg.solve((1 - rate) * G + ridge, x.T @ y)


def regression_of_size(number):
    """A regression like ours with another number of examples."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(number, 2, generator=generator, dtype=DOUBLE) @ mixing
    error = torch.randn(number, generator=generator, dtype=DOUBLE)
    return LinearRegression(x, x @ torch.tensor([1.0, -0.5], dtype=DOUBLE) + error)


rate, where = 0.2, torch.tensor([1.0, 1.0], dtype=DOUBLE)
trained = {}
for number in (30, 300, 3_000):
    posterior = regression_of_size(number)
    many = torch.zeros(64, 2, dtype=DOUBLE)
    trained[number] = dropout(posterior, many, 200, rate=rate, num_steps=800, seed=1)

# %% mystnb={"figure": {"caption": "Standard deviation of the prediction at x = (1, 1) against the number of examples: dropout at three rates by the closed form (lines) and by training at p = 0.2 (points), and the posterior (grey). The posterior's falls like the root of N; dropout's does not fall.", "name": "fig-neighbours-dropout"}, "image": {"alt": "Log-log plot. The grey line falls from about a quarter to a hundredth. Three lines for rates 0.05, 0.2 and 0.5 are nearly level; points lie on the middle one."}} tags=["hide-input"]
numbers = [30, 100, 300, 1_000, 3_000, 10_000]


def spread(posterior, rate):
    """The exact standard deviation of dropout's prediction."""
    return float(
        (
            rate * (1 - rate) * (where * best_weights(posterior, rate)).square().sum()
        ).sqrt()
    )


sized = {number: regression_of_size(number) for number in numbers}
exact_spread = {
    number: float((where @ posterior.covariance @ where).sqrt())
    for number, posterior in sized.items()
}
figure, axes = plt.subplots()
for p, style in ((0.05, ":"), (0.2, "-"), (0.5, "--")):
    axes.loglog(
        numbers,
        [spread(sized[number], p) for number in numbers],
        style,
        color=COLOURS["HMC"],
        label=f"dropout, $p$ = {p}",
    )
for number, run in trained.items():
    axes.plot(
        number, (run.samples.flatten(0, 1) @ where).std(), "o", color=COLOURS["HMC"]
    )
axes.loglog(numbers, list(exact_spread.values()), color=TRUTH, lw=3, label="posterior")
axes.set(
    xlabel="number of examples $N$", ylabel=r"standard deviation of $x^\top\theta$"
)
axes.legend()
plt.show()

# %% [markdown]
# In {numref}`fig-neighbours-dropout` the grey line of the posterior falls, and those of dropout stay level.
# The trained networks lie on the line of their rate: what stays is no failure of training.

# %% tags=["hide-input"]
far_weights, far_spread = [], []
for number, run in trained.items():
    weights = run.statistics["weights"][0]
    away = weights.mean(0) - best_weights(sized[number], rate)
    far_weights.append(float(away.abs().max()))
    centred = (run.samples - (1 - rate) * run.statistics["weights"]) @ where
    value = float(centred.square().mean().sqrt())
    far_spread.append(abs(value - spread(sized[number], rate)))
claim(
    "Largest distance of trained weights from the closed form, mean over 64 runs, "
    "three N",
    max(far_weights),
    at_most=0.014,
    because="the runs differ by 0.02, which makes a standard error of 0.0025",
)
claim(
    "Largest distance of trained dropout's standard deviation from the closed form, "
    "three N",
    max(far_spread),
    at_most=0.01,
    because="the standard error of 64 trainings is 0.002",
)
claim(
    "Dropout's spread with 10,000 examples over that with 30, p = 0.2",
    spread(sized[10_000], 0.2) / spread(sized[30], 0.2),
    at_least=1,
    because="the closed form: it even grows, from 0.23 to 0.28",
    kind="exact",
)
claim(
    "The posterior's spread with 10,000 examples over that with 30",
    exact_spread[10_000] / exact_spread[30],
    at_most=0.08,
    because="√(30/10,000) = 0.055, and the prior",
    kind="exact",
)
off = (where @ (0.8 * best_weights(sized[10_000], 0.2) - sized[10_000].mean)).abs()
claim(
    "Distance of dropout's mean prediction from the posterior's, in the posterior's "
    "standard deviations, N = 10,000",
    off / exact_spread[10_000],
    at_least=5,
    because="the closed form: the penalty grows with the data",
    kind="exact",
)

# %% [markdown]
# ## Ensembles
#
# Train the same network several times, and average.
#
# ```{prf:algorithm} Deep ensemble
# :label: alg-neighbours-ensemble
#
# For $c = 1, \dots, C$, each by itself:
#
# 1. Draw initial weights at random, and an order of the examples.
# 2. Minimise the loss over all the examples, to $\theta_c$; possibly on adversarial examples too, see below.
#
# Predict with $\frac1C\sum_cp(y \mid x, \theta_c)$, the average of the *probabilities*.
# ```
#
# This is Algorithm 1 of {cite:t}`lakshminarayanan2017`, who take five members and have no prior. Each member gets all the data, because a bootstrap sample holds only 63 % of them. Ours minimise $U$, prior included.
# Nobody derives it from Bayes' rule.
# What it samples from is the law over modes that initial weights and descent make, each mode being one point:
#
# ```{prf:proposition} An ensemble on a Gaussian posterior
# :label: prop-neighbours-ensemble
#
# Where $U$ is a positive quadratic, and every member descends to its minimum, all members are $\hat\theta$: the spread of their predictions is zero, whatever the number of data.
# ```
#
# ```{prf:proof}
# A positive quadratic has one minimum, and no other place where its slope is zero.
# ```
#
# So the spread of an ensemble is the spread *between* modes, as {numref}`fig-neighbours-idea` shows. It is so in large networks too: {cite:t}`fort2019` find that the members of an ensemble lie in modes that differ, while the draws of other methods lie around one.
# The log loss of the average is never larger than the mean log loss of the members ({ref}`ex-digits-convexity`), which is why averaging helps even where nothing is Bayesian about it.
#
# ### Anchors
#
# There is a way to give a Gaussian posterior its width with nothing but optimisation: pull each member towards a point of its own.
#
# ```{prf:theorem} Randomised modes
# :label: thm-neighbours-anchors
#
# Let the posterior be $N(\hat\theta, A^{-1})$, from a prior $N(0, \Lambda^{-1})$, and let $\theta_c$ minimise $U$ with the prior's centre moved to $a_c \sim N(0, S)$.
# Then $\theta_c \sim N(\hat\theta, A^{-1}\Lambda S\Lambda A^{-1})$.
#
# 1. With $S = \Lambda^{-1}$, anchors from the prior, the covariance is $A^{-1}\Lambda A^{-1} \preceq A^{-1}$: too little.
# 2. It is $A^{-1}$ if and only if $S = \Lambda^{-1}A\Lambda^{-1}$. The members are then exact draws.
# ```
#
# ```{prf:proof}
# Moving the prior adds $-a_c^\top\Lambda\theta$ to $U$, and a constant. So $\nabla U = A(\theta - \hat\theta) - \Lambda a_c$, which is zero at $\theta_c = \hat\theta + A^{-1}\Lambda a_c$, a linear image of a normal vector.
# For the first part $A^{-1} - A^{-1}\Lambda A^{-1} = A^{-1}(A - \Lambda)A^{-1}$, and $A - \Lambda$ is the precision of the likelihood, $\succeq 0$. For the second multiply by $\Lambda^{-1}A$ from the left and by its transpose from the right.
# ```
#
# This is randomised MAP sampling, which {cite:t}`pearce2020` apply to networks as *anchored ensembles*.
# With anchors from the prior the variance is that of the posterior times the share of the precision that comes from the prior.
# So in a direction in which inputs have the variance $s$, the standard deviation is too small by the factor $1/\sqrt{1 + N\tau^2s/\sigma^2}$.
# It is right where the data say nothing, and vanishes where they say much.
# The right $S$ asks for $A$, which is the answer itself; but there is a way around it ({ref}`ex-neighbours-perturbed`).

# %%
starts = torch.randn(300, 2, generator=generator, dtype=DOUBLE)
settings = dict(num_steps=1_000, learning_rate=0.1)
alone = ensemble(regression, starts[:5], **settings)
anchors = torch.randn(300, 2, generator=generator, dtype=DOUBLE)
from_prior = ensemble(regression, starts, anchors=anchors, **settings)
wider = anchors @ torch.linalg.cholesky(A).T  # of covariance A, for Λ is 1
from_wider = ensemble(regression, starts, anchors=wider, **settings)

# %% [markdown]
# Five members without anchors all end at the mode; 300 with anchors of either covariance have the widths of {prf:ref}`thm-neighbours-anchors`.

# %% tags=["hide-input"]
claim(
    "Largest distance of five members from the posterior's mean, in standard "
    "deviations along an axis",
    (((alone.samples[0] - mean) @ axes_of_posterior).abs() * curvatures.sqrt()).max(),
    at_most=0.05,
    because="all descend to the one mode",
)
for name, run, covariance in (
    ("from the prior", from_prior, A.inverse() @ A.inverse()),
    ("of covariance A", from_wider, A.inverse()),
):
    for axis, value, error, expected in zip(
        ("long", "short"), *measured_widths(run), widths(covariance), strict=True
    ):
        claim(
            f"Width of 300 members with anchors {name}, {axis} axis",
            value,
            near=round(float(expected), 4),
            standard_error=error,
            because="the exact law",
        )

# %% [markdown]
# ### Adversarial examples
#
# The recipe has an optional part: beside every example train on its *adversarial* neighbour {cite:p}`goodfellow2015`, the input that is worst for the network among those that differ by at most $\epsilon$ in each entry, to first order:
#
# $$
# x' = x + \epsilon\operatorname{sign}\bigl(\nabla_x{-\log p}(y \mid x, \theta)\bigr).
# $$ (eq-neighbours-adversarial)
#
# {cite:t}`lakshminarayanan2017` add the losses of $x$ and $x'$; ours is their mean, which keeps the weight of the data against the prior.
# What is minimised then?
#
# ```{prf:theorem} The worst residual
# :label: thm-neighbours-adversarial
#
# In linear regression with residuals $r_i = y_i - x_i^\top\theta$ the adversarial neighbour has a residual of the size $\lvert r_i\rvert + \epsilon\lVert\theta\rVert_1$ where neither $r_i$ nor an entry of $\theta$ is zero, and the energy with the mean of the two losses is
#
# $$
# \begin{aligned}
# U_\epsilon(\theta) ={} &\frac{\lvert\theta\rvert^2}{2\tau^2} + \frac1{4\sigma^2}\sum_ir_i^2 \\
# &+ \frac1{4\sigma^2}\sum_i\bigl(\lvert r_i\rvert + \epsilon\lVert\theta\rVert_1\bigr)^2 \\
# ={} &U(\theta) + \frac{\epsilon\lVert\theta\rVert_1}{2\sigma^2}\sum_i\lvert r_i\rvert \\
# &+ \frac{N\epsilon^2\lVert\theta\rVert_1^2}{4\sigma^2}.
# \end{aligned}
# $$ (eq-neighbours-worst)
# ```
#
# ```{prf:proof}
# The slope of $r^2/2\sigma^2$ in $x$ is $-r\theta/\sigma^2$, so $x' = x - \epsilon\operatorname{sign}(r)\operatorname{sign}(\theta)$, entry by entry.
# Then $y - x'^\top\theta = r + \epsilon\operatorname{sign}(r)\lVert\theta\rVert_1$, of size $\lvert r\rvert + \epsilon\lVert\theta\rVert_1$. Multiply out.
# ```
#
# The last term falls when the weights shrink, and so does the other one where noise, and not the weights, makes most of the residuals.
# Unlike a prior they are sums over the data: no number of examples outvotes them.
# We look at a regression with one input, where the minimum can be found on a grid.


# %%
def one_input(number):
    """A regression with one input, as a network without a bias."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(number, 1, generator=generator, dtype=DOUBLE)
    y = x[:, 0] + torch.randn(number, generator=generator, dtype=DOUBLE)
    line = nn.Linear(1, 1, bias=False).double()
    return NetworkPosterior(line, x, y, likelihood=Gaussian(1.0))


def least(posterior, size):
    """Where the energy with adversarial examples is least, on a grid."""
    x, y = posterior.data
    places = torch.linspace(-0.1, 1.2, 651, dtype=DOUBLE)
    r = (y - places[:, None] * x[:, 0]).abs()
    worst = (r + size * places[:, None].abs()).square()
    energy = 0.5 * places**2 + 0.25 * (r.square() + worst).sum(-1)
    return float(places[energy.argmin()])


few, sizes = one_input(50), torch.linspace(0, 2, 21).tolist()
two = torch.tensor([[0.2], [1.2]], dtype=DOUBLE)
slowly = dict(num_steps=400, learning_rate=0.02)
hardened = {e: ensemble(few, two, adversarial=e, **slowly) for e in (0.1, 0.4, 0.8)}

# %% mystnb={"figure": {"caption": "The best weight of a regression with one input, trained with adversarial examples of size $\\epsilon$: the minimum of the closed form with 50 and 500 examples (lines), and ensembles of two members on the 50 (points). The weight that made the data is 1 (grey).", "name": "fig-neighbours-adversarial"}, "image": {"alt": "Two lines that fall from about one at epsilon zero to zero before epsilon is two; three pairs of points lie on the line of 50 examples."}} tags=["hide-input"]
figure, axes = plt.subplots()
for number, style in ((50, "-"), (500, "--")):
    axes.plot(
        sizes,
        [least(one_input(number), size) for size in sizes],
        style,
        color=COLOURS["SGD"],
        label=f"$N$ = {number:,}",
    )
for size, run in hardened.items():
    axes.plot([size] * 2, run.samples[0, :, 0], "o", ms=4, color=COLOURS["SGD"])
axes.axhline(1, color=TRUTH, zorder=0)
axes.set(
    xlabel=r"size of the adversarial step $\epsilon$", ylabel=r"best weight $\theta$"
)
axes.legend()
plt.show()

# %% [markdown]
# {numref}`fig-neighbours-adversarial` shows how the best weight shrinks to zero as $\epsilon$ grows, with 500 examples as with 50.
# In a network the same thing makes the function smooth at the scale of $\epsilon$, which may be what one wants; it is not the posterior of the model that one wrote down.

# %% tags=["hide-input"]
gaps = [
    float((run.samples[0] - least(few, size)).abs().max())
    for size, run in hardened.items()
]
claim(
    "Largest distance of adversarially trained members from the closed form",
    max(gaps),
    at_most=0.01,
    because="a grid of 0.002, and the last steps of descent",
)
for number in (50, 500):
    claim(
        f"Best weight at ϵ = 0.8 over that without, {number:,} examples",
        least(one_input(number), 0.8) / least(one_input(number), 0.0),
        at_most=0.6,
        because="the closed form: the penalty is a sum over the data",
        kind="exact",
    )

# %% [markdown]
# ## Snapshots
#
# Five members cost five trainings.
# *Snapshot ensembles* {cite:p}`huang2017` take them from one: let the learning rate fall to zero, keep the network, raise the rate again, and go on from there.
# The rate falls by half a wave of a cosine, as in the warm restarts of {cite:t}`loshchilov2017`.
#
# ```{prf:algorithm} Snapshot ensemble
# :label: alg-neighbours-snapshots
#
# With $K$ steps a cycle, momentum decay $\alpha$ and the speed $v = 0$ at the start, for $t = 0, 1, 2, \dots$:
#
# 1. $\eta_t = \tfrac12\eta_0\bigl(1 + \cos(\pi\,(t \bmod K)/K)\bigr)$.
# 2. $v \leftarrow (1 - \alpha)\,v + \nabla\tilde U(\theta)$, and $\theta \leftarrow \theta - \eta_tv$.
# 3. Keep $\theta$ after every $K$ steps.
# ```
#
# The hope is that the high rate leaves a mode and the low one settles in another; {numref}`fig-neighbours-cycles`, in the next chapter, watches it on a network.
# Does it leave a mode?
# Nothing in the recipe sees to it: whether it does depends on the rate, on the noise of the minibatches and on the barriers between modes, and the share of snapshots in a mode is not the mode's share of the posterior.
# What a snapshot's own spread is can be said where there is one mode.
#
# ```{prf:proposition} Snapshots on a Gaussian posterior
# :label: prop-neighbours-snapshots
#
# Let $\alpha = 1$, $U$ a quadratic with the Hessian $A$ and its minimum at $\hat\theta$, and the gradient's noise independent with covariance $V$.
# Then the mean of $\theta_t - \hat\theta$ obeys $m_{t+1} = (I - \eta_tA)\,m_t$, and the covariance
#
# $$
# \Sigma_{t+1} = (I - \eta_tA)\,\Sigma_t\,(I - \eta_tA) + \eta_t^2V.
# $$ (eq-neighbours-snapshots)
# ```
#
# It is {prf:ref}`thm-csgd-law` with rates that change: each falling rate damps what the larger ones left, so the width at the end of a cycle is what the last, small rates leave, less than the cloud of the highest rate held constant.
# The slower a cycle, the nearer all its snapshots are to $\hat\theta$.
#
# ## SWAG: a Gaussian through the iterates
#
# Descent at a *constant* rate rattles around a minimum, and {cite:t}`maddox2019` fit a Gaussian to its iterates: *stochastic weight averaging, Gaussian*.
#
# ```{prf:algorithm} SWAG
# :label: alg-neighbours-swag
#
# Keep $T$ iterates of stochastic gradient descent at a constant rate, from a trained network on, such as one after each epoch.
# Let $\bar\theta$ be their mean, $D_{\text{all}}$ the diagonal matrix of their variances, and $D$ the matrix whose columns are the deviations of the last $K$ of them. Draw
#
# $$
# \theta \sim N\Bigl(\bar\theta,\ \tfrac12D_{\text{all}} + \tfrac1{2(K - 1)}DD^\top\Bigr).
# $$ (eq-neighbours-swag)
# ```
#
# (Deviations are from $\bar\theta$ here, and from the running mean in the authors' program; $K = 20$ is common.)
# Half of the variances, half of the covariance: a covariance of rank $K - 1$ alone would leave most directions without any spread, the diagonal alone knows no correlations.
# The mean $\bar\theta$ is a good estimate of the mode, for it averages the noise away {cite:p}`polyak1992`.
# But is the covariance the posterior's?
#
# ```{prf:theorem} SWAG on a Gaussian posterior
# :label: thm-neighbours-swag
#
# Let $U$ be a quadratic with the Hessian $A$, the gradient's noise independent with a constant covariance $V$, and $\Sigma_\eta$ the covariance of the iterates, which solves
#
# $$
# A\Sigma_\eta + \Sigma_\eta A - \eta A\Sigma_\eta A = \eta V.
# $$ (eq-neighbours-iterates)
#
# As $T = K \to \infty$ the law of SWAG's draws tends to $N\bigl(\hat\theta,\ \tfrac12\operatorname{diag}\Sigma_\eta + \tfrac12\Sigma_\eta\bigr)$.
# With finite $T = K$ and $C$ the covariance of $\bar\theta$, a draw of a new run has the covariance $C + \tfrac12\operatorname{diag}(\Sigma_\eta - C) + \tfrac T{2(T - 1)}(\Sigma_\eta - C)$.
# ```
#
# ```{prf:proof}
# The iterates are an autoregression with the stationary covariance {eq}`eq-neighbours-iterates`, which is {prf:ref}`thm-csgd-law` with $P = \eta I$; their mean and their covariance tend to its mean and its covariance.
# For finite $T$ the mean of $\frac1T\sum_t(\theta_t - \bar\theta)(\theta_t - \bar\theta)^\top$ is $\Sigma_\eta - C$. Put it into {eq}`eq-neighbours-swag`, and add the covariance of the centre.
# ```
#
# Nothing in it knows the posterior's covariance $A^{-1}$.
# For small $\eta$ the width grows like $\sqrt\eta$, and where the model fits, $V \approx cA$ with $c \approx N/n$, it is $\Sigma_\eta \approx \tfrac12\eta cI$: a ball, whose size the rate and the minibatch choose.
# Half of a ball's diagonal and half of the ball are the ball, so that SWAG is then constant SGD, with the same best rate and the same wrong shape ({doc}`/book/further/constant_sgd`).
# We compute the law of the draws at many step sizes, and run SWAG at three.


# %%
def noise_variance(covariance):
    """V of the minibatches, averaged over θ ~ N(mean, covariance)."""
    x, y = regression.data
    slopes = x[:, :, None] * x[:, None, :]
    slopes = slopes - slopes.mean(0)
    at_mean = torch.cov((x * (x @ mean - y)[:, None]).T)
    growth = (slopes @ covariance @ slopes).sum(0) / (N - 1)
    return N**2 / n * (1 - n / N) * (at_mean + growth)


def law_of_descent(step_size):
    """The chain of the iterates, with V averaged over its own law."""
    covariance = A.inverse()
    for _ in range(40):
        V = noise_variance(covariance)
        chain = langevin_chain(A, step_size, V, temperature=0.0)
        covariance = chain.stationary_covariance()
    return chain


def law_of_swag(step_size, thinning, length):
    """The covariance of SWAG's draws over many runs, with T = K."""
    chain = law_of_descent(step_size).power(thinning)
    of_mean = average_covariance(chain, length)
    within = chain.stationary_covariance() - of_mean
    share = 0.5 * length / (length - 1)
    return of_mean + torch.diag(0.5 * within.diagonal()) + share * within


best_rate = 4 / float(noise_variance(A.inverse()).trace())  # 2d / tr V
centres = mean.expand(400, -1).contiguous()
thinning, length, swags = 20, 40, {}
for multiple in (0.25, 1, 4):
    descent = SGLD(multiple * best_rate, temperature=0.0)
    pace = dict(thinning=thinning, warm_up=1_000, seed=4)
    iterates = sample(descent, noisy, centres, length, **pace)
    swags[multiple] = swag(iterates, 20, rank=length)

# %% mystnb={"figure": {"caption": "Width of SWAG's predictions against the step size of the descent, over the best single rate of constant SGD: exact laws (lines) and 400 runs (points, two standard errors) along the long and the short axis of the posterior, whose own width is 1 (grey). No step size is right for both.", "name": "fig-neighbours-swag"}, "image": {"alt": "Two rising lines on a log-log plot. That of the short axis crosses one at about a half, that of the long axis at about five."}} tags=["hide-input"]
multiples = torch.logspace(-1.3, 1, 24).tolist()
exact_widths = torch.stack(
    [
        widths(law_of_swag(multiple * best_rate, thinning, length))
        for multiple in multiples
    ]
)
figure, axes = plt.subplots()
for axis, (name, style) in enumerate((("long axis", "-"), ("short axis", "--"))):
    axes.loglog(
        multiples, exact_widths[:, axis], style, color=COLOURS["SGD"], label=name
    )
    for multiple, run in swags.items():
        value, error = (each[axis] for each in measured_widths(run))
        axes.errorbar(
            multiple,
            float(value),
            2 * float(error),
            fmt="o",
            ms=4,
            color=COLOURS["SGD"],
        )
axes.axhline(1, color=TRUTH, zorder=0)
axes.set(xlabel=r"step size $\eta/\eta^*$", ylabel="width over the posterior's")
axes.legend()
plt.show()

# %% [markdown]
# In {numref}`fig-neighbours-swag` the lines of the two axes cross the right width, 1, at step sizes far apart: no step size is right for both.

# %% tags=["hide-input"]
off = []
for multiple, run in swags.items():
    value, error = measured_widths(run)
    expected = widths(law_of_swag(multiple * best_rate, thinning, length))
    off.append(((value - expected) / error).abs().max())
claim(
    "Largest |z| of six widths of SWAG against the exact law, two axes, three rates",
    max(off),
    at_most=5,
    errors=True,
    because="six normal numbers exceed it together once in 290,000 times; 400 runs",
)
crossing = [
    multiples[int((exact_widths[:, axis] > 1).double().argmax())] for axis in (0, 1)
]
claim(
    "Step size at which the long axis is right over that for the short one",
    crossing[0] / crossing[1],
    near=8,
    within=1.5,
    because="exact laws, on a grid of step sizes",
    kind="exact",
)

# %% [markdown]
# ## Laplace's approximation
#
# The last Gaussian takes its width from the energy itself.
# At a mode $\hat\theta$ the slope is zero, and Taylor's formula says
#
# $$
# U(\theta) = U(\hat\theta) + \tfrac12(\theta - \hat\theta)^\top H(\theta - \hat\theta) + R, \qquad H = \nabla^2U(\hat\theta),
# $$ (eq-neighbours-laplace)
#
# with a remainder $R$ of third order.
# Leave it out, and $e^{-U}$ is the density of $N(\hat\theta, H^{-1})$ up to a constant {cite:p}`mackay1992,bishop2006`.
# This takes a mode, and an $H$ that is positive there; it is good where $R$ is small over the width of the Gaussian, as it becomes with many data for a model with a fixed number of identified parameters; and it sees one mode only.
#
# ```{prf:proposition} Exact on a Gaussian posterior
# :label: prop-neighbours-laplace
#
# If $U$ is a positive quadratic, $R = 0$, and the draws are those of the posterior, whatever the number of examples.
# With some coordinates alone, the others resting at the mode, they have the *conditional* covariance $(A_{kk})^{-1}$, never wider than the marginal one, $(A^{-1})_{kk}$.
# ```
#
# ```{prf:proof}
# $H = A$. As a function of $\theta_k$ alone the quadratic has the Hessian $A_{kk}$, a block of $A$; that $(A_{kk})^{-1} \preceq (A^{-1})_{kk}$ is the formula for the inverse of a block matrix, $(A^{-1})_{kk} = (A_{kk} - A_{kl}A_{ll}^{-1}A_{lk})^{-1}$.
# ```
#
# A network of $d$ weights has a Hessian of $d^2$ entries, and at a place where descent stopped it need not be positive.
# Both troubles end with the *last layer* {cite:p}`daxberger2021`: rest all other weights, and the outputs are linear in those that are left, $f(x) = W\phi(x)$.
# Then $U$ is that of a generalised linear model with the inputs $\phi(x)$. Its likelihood's part is convex for the usual likelihoods, the prior's is positive, and so is $H \succeq \Lambda$; in regression with Gaussian noise the approximation is even the exact posterior of that layer, given the others.
# It is conditional: by the proposition it is too narrow where weights of the other layers move along.
# {cite:t}`kristiadi2020` show that even this much repairs a fault of networks with rectified linear units, which far away from the data are as sure of a class as you like ({ref}`ex-neighbours-far`).

# %% [markdown]
# ## All of them on one regression
#
# Now the whole family on the regression of the correlated inputs: how wide is a prediction, over how wide it should be?
#
# | method | covariance of the weights | long axis | short axis |
# | --- | --- | --- | --- |
# | posterior | $A^{-1}$ | 1 | 1 |
# | mean-field variational inference | $(\operatorname{diag}A)^{-1}$ | 0.45 | 1.34 |
# | dropout, $p = 0.1$ | $p(1 - p)\operatorname{diag}(M)^2$ | 1.49 | 4.41 |
# | ensemble | 0 | 0 | 0 |
# | ensemble with anchors from the prior | $A^{-1}\Lambda A^{-1}$ | 0.11 | 0.04 |
# | ensemble with anchors of covariance $\Lambda^{-1}A\Lambda^{-1}$ | $A^{-1}$ | 1 | 1 |
# | snapshots, cycles of 100 steps | {eq}`eq-neighbours-snapshots` | 0.71 | 1.11 |
# | SWAG at the best rate of constant SGD | $\tfrac12\operatorname{diag}\Sigma_\eta + \tfrac12\Sigma_\eta$, and $C$ | 0.46 | 1.35 |
# | constant SGD, the best single rate | $\Sigma_\eta$ | 0.44 | 1.38 |
# | Laplace | $A^{-1}$ | 1 | 1 |
# | Laplace, second weight alone | $(A_{22})^{-1}$, and zeros | 0.32 | 0.95 |
#
# All numbers are exact; the programs that follow do what the formulas say.
# Mean-field inference, SWAG and constant SGD agree by accident: each has a round covariance of about the right size, because both inputs have the same variance.
# Snapshots are wide by accident too: with cycles of 1,000 steps in the place of 100 both of their widths are below 0.6.
# The widths of dropout and of the ensemble do not follow the posterior's: with growing $N$ one becomes too wide by a factor that grows like $\sqrt N$, the other has none.
# Laplace and the ensemble with the right anchors are exact, and a linear regression is where they must be.

# %%
rate, many = 0.1, torch.zeros(128, 2, dtype=DOUBLE)
V = noise_variance(A.inverse())
fit = dict(num_steps=1_000, learning_rate=0.02)
short_cycles = dict(cycle_length=100, learning_rate=1e-3, momentum_decay=1.0)
copies = mean.repeat(100, 1)
runs = {
    "mean field": variational(regression, many, 50, num_draws=4, **fit),
    "dropout": dropout(regression, many, 50, rate=rate, **fit),
    "anchors, prior": from_prior,
    "anchors, right": from_wider,
    "snapshots": snapshots(noisy, centres, 2, **short_cycles),
    "SWAG": swags[1],
    "constant SGD": sample(constant_sgd(V), noisy, centres, 20, **pace),
    "Laplace": laplace(regression, copies, 100),
    "Laplace, second": laplace(regression, copies, 100, coordinates=torch.tensor([1])),
}

# %% tags=["hide-input"]
weights = best_weights(regression, rate)


def cool(cycle_length, num_cycles=2):
    """The covariance of the last snapshot, from a start at the mean."""
    covariance = torch.zeros(2, 2, dtype=DOUBLE)
    for step in range(num_cycles * cycle_length):
        wave = torch.tensor(torch.pi * (step % cycle_length) / cycle_length).cos()
        eta = 0.5e-3 * (1 + float(wave))
        F = identity - eta * A
        covariance = F @ covariance @ F + eta**2 * noise_variance(covariance)
    return covariance


covariances = {
    "mean field": torch.diag(1 / A.diagonal()),
    "dropout": rate * (1 - rate) * torch.diag(weights**2),
    "anchors, prior": A.inverse() @ A.inverse(),
    "anchors, right": A.inverse(),
    "snapshots": cool(100),
    "SWAG": law_of_swag(best_rate, thinning, length),
    "constant SGD": law_of_descent(best_rate).stationary_covariance(),
    "Laplace": A.inverse(),
    "Laplace, second": torch.diag(torch.tensor([0.0, 1.0]).double() / A.diagonal()),
}

# %% tags=["hide-input"]
off = {}
for name, run in runs.items():
    centre = (
        (1 - rate) * weights
        if name == "dropout"
        else run.statistics["mean"][0]
        if name == "mean field"
        else mean
    )
    value, error = measured_widths(run, centre)
    off[name] = (value - widths(covariances[name])).abs() / error
claim(
    "Largest |z| of the widths of nine programs against the exact laws, both axes",
    max(float(each.max()) for each in off.values()),
    at_most=5,
    errors=True,
    because="18 normal numbers exceed it together once in 97,000 times",
)
claim(
    "Largest width of snapshots with cycles of 1,000 steps",
    widths(cool(1_000)).max(),
    at_most=0.6,
    because="the recursion",
    kind="exact",
)
table = {
    "mean field": (0.45, 1.34),
    "dropout": (1.49, 4.41),
    "anchors, prior": (0.11, 0.04),
    "snapshots": (0.71, 1.11),
    "SWAG": (0.46, 1.35),
    "constant SGD": (0.44, 1.38),
    "Laplace, second": (0.32, 0.95),
}
claim(
    "Largest difference between the table and the exact widths",
    max(
        float((widths(covariances[name]) - torch.tensor(row)).abs().max())
        for name, row in table.items()
    ),
    at_most=0.0051,
    because="two digits",
    kind="exact",
)

# %% [markdown]
# ## In practice
#
# * Ask of every method where its spread comes from: from the data, from a rate that you chose, from the step size, or from the number of modes. Only the first is the posterior's.
# * If you drop units when predicting, report the rate as part of the model, and do not call its spread a posterior's without a check: double the data and look whether it shrinks.
# * Anchors add hardly anything to the work of an ensemble, and give it a spread where there are no data.
# * SWAG and constant SGD need a rate for their width, as they need one for the descent, and it is not the same one.
# * Run any of them on a linear regression first. It takes seconds, and shows what its spread is made of.
#
# ## Formulas
#
# On a linear regression with the posterior $N(\hat\theta, A^{-1})$, each method's covariance is:
#
# | method | covariance of its draws |
# | --- | --- |
# | dropout | $p(1 - p)\operatorname{diag}(M)^2$, with $M$ of {eq}`eq-neighbours-dropout` |
# | ensemble | 0, {prf:ref}`prop-neighbours-ensemble` |
# | ensemble with anchors $N(0, S)$ | $A^{-1}\Lambda S\Lambda A^{-1}$, {prf:ref}`thm-neighbours-anchors` |
# | snapshots | $\Sigma_{t+1} = (I - \eta_tA)\,\Sigma_t\,(I - \eta_tA) + \eta_t^2V$, {eq}`eq-neighbours-snapshots` |
# | SWAG | $\tfrac12\operatorname{diag}\Sigma_\eta + \tfrac12\Sigma_\eta$, $A\Sigma_\eta + \Sigma_\eta A - \eta A\Sigma_\eta A = \eta V$, {eq}`eq-neighbours-iterates` |
# | Laplace | $H^{-1} = A^{-1}$, {eq}`eq-neighbours-laplace` |
# | Laplace, some coordinates | $(A_{kk})^{-1}$, {prf:ref}`prop-neighbours-laplace` |
#
# ## Change it
#
# * Set `wider = anchors @ torch.linalg.cholesky(A).T` to `wider = anchors @ torch.linalg.cholesky(A)`: the anchors then have the covariance $L^\top L$ in the place of $LL^\top = A$, and the claim on the width of the members along the long axis shows ✗.
# * Set `mixing = torch.tensor([[1.0, 0.8], [0.0, 0.6]], dtype=DOUBLE)` to `mixing = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=DOUBLE)`: without correlation a ball is the right shape, and the claims on the table and on the two step sizes of SWAG show ✗.
#
# ## Exercises
#
# ````{exercise}
# :label: ex-neighbours-write
#
# *Write it yourself.* With two weights dropout has four masks, so all of it can be counted. Complete the functions for the regression of above with $p = 0.1$, and show that at the $M$ of {prf:ref}`thm-neighbours-dropout` the slope of $E_zU(z\circ M)$ is zero, that mean and variance of a prediction are those of the theorem, and that every draw of the package's `dropout` is one of your four points.
#
# ```python
# masks = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=DOUBLE)] * 2)
#
#
# def chance(rate):
#     # the probability of each of the four masks
#     ...
#
#
# def expected_energy(weights, rate):
#     # E_z U(z ∘ M), from regression.energy at the four points
#     ...
# ```
# ````
#
# ```{solution} ex-neighbours-write
# :class: dropdown
#
# A mask with $k$ ones has the probability $(1 - p)^kp^{2 - k}$. The slope comes from automatic differentiation of the expected energy.
# ```

# %% tags=["hide-input"]
masks = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=DOUBLE)] * 2)


def chance(rate):
    ones = masks.sum(1)
    return (1 - rate) ** ones * rate ** (2 - ones)


def expected_energy(weights, rate):
    return (chance(rate) * regression.energy(masks * weights)).sum()


best_M = best_weights(regression, 0.1)
slope = torch.func.grad(expected_energy)(best_M, 0.1)
size = torch.func.grad(expected_energy)(0 * best_M, 0.1).norm()
x_new = torch.tensor([1.0, -2.0], dtype=DOUBLE)
predictions = (masks * best_M) @ x_new
middle = chance(0.1) @ predictions
variance = chance(0.1) @ (predictions - middle).square()
by_theorem = 0.9 * x_new @ best_M, 0.09 * (x_new * best_M).square().sum()
trained = runs["dropout"]
points = masks[:, None] * trained.statistics["weights"][0]
distance = (trained.samples[:, None] - points).abs().amax(-1).amin(1)
for statement, value in (
    ("slope of the expected energy over that at zero", slope.norm() / size),
    ("error of the mean of a prediction", (middle - by_theorem[0]).abs()),
    ("error of its variance", (variance - by_theorem[1]).abs()),
    ("largest distance of the package's draws from four points", distance.max()),
):
    claim(
        f"Exercise: {statement}", value, at_most=1e-10, because="rounding", kind="exact"
    )

# %% [markdown]
# ```{exercise}
# :label: ex-neighbours-perturbed
#
# In the setting of {prf:ref}`thm-neighbours-anchors` with Gaussian noise, draw the anchor from the prior, $a_c \sim N(0, \Lambda^{-1})$, and give every member targets of its own, $y_i + N(0, \sigma^2)$.
# Show that the members are then exact draws from the posterior. Why is this not the wide $S$ in disguise?
# ```
#
# ```{solution} ex-neighbours-perturbed
# :class: dropdown
#
# Let $e_c \sim N(0, \sigma^2I)$ be what is added to the targets. The minimum is $\theta_c = \hat\theta + A^{-1}(\Lambda a_c + X^\top e_c/\sigma^2)$.
# The two terms in the bracket are independent with the covariances $\Lambda$ and $G/\sigma^2$, which add to $A$; so $\theta_c \sim N(\hat\theta, A^{-1}AA^{-1})$.
# Nobody has to know $A$: fresh noise of the model does what the wide anchors do, and it needs all the data in each member, with targets that stay the same throughout its training.
# The cell below checks it with 250 members.
# ```

# %% tags=["hide-input"]
fresh = torch.randn(250, N, generator=generator, dtype=DOUBLE)
pulls = torch.randn(250, 2, generator=generator, dtype=DOUBLE)
perturbed = mean + (pulls + fresh @ regression.data[0]) @ A.inverse()
for name, axis in (("long", 0), ("short", 1)):
    along = ((perturbed - mean) @ axes_of_posterior)[:, axis] * curvatures[axis].sqrt()
    claim(
        f"Width of 250 minima with perturbed targets, {name} axis",
        along.square().mean(),
        near=1,
        standard_error=along.square().std() / 250**0.5,
        because="exact draws; the width is squared",
    )

# %% [markdown]
# ```{exercise}
# :label: ex-neighbours-rate
#
# Which rate $p$ would give dropout the posterior's width in a linear regression with one input, large $N$ and $\theta^* \ne 0$? How does it depend on $N$?
# ```
#
# ```{solution} ex-neighbours-rate
# :class: dropdown
#
# With one input $\operatorname{diag}G = G$, so that $M = X^\top y/(G + \sigma^2/\tau^2) = \hat\theta$ whatever $p$ is. The variance $p(1 - p)\,\hat\theta^2$ is to be $\sigma^2/(G + \sigma^2/\tau^2) \approx \sigma^2/(Ns)$, $s$ being the variance of the input: $p \approx \sigma^2/(Ns\,\theta^{*2})$.
# It falls like $1/N$, and depends on the signal, so one rate cannot do it for all weights; for a weight within two of its standard deviations from zero no rate does, because $p(1 - p) \le \tfrac14$.
# ```
#
# ```{exercise}
# :label: ex-neighbours-scale
#
# Rescale the input of the regression's second weight, $x_2 \to \kappa x_2$ and $\theta_2 \to \theta_2/\kappa$, with the prior changed along with it. Which of the methods of the table make predictions that do not depend on $\kappa$?
# ```
#
# ```{solution} ex-neighbours-scale
# :class: dropdown
#
# Let $K = \operatorname{diag}(1, \kappa)$, so that $A \to KAK$ and $\theta \to K^{-1}\theta$. Predictions stay if the covariance becomes $K^{-1}(\cdot)K^{-1}$.
# The posterior's, Laplace's and that of the anchors do, as $\Lambda \to K\Lambda K$; mean-field inference too, for $\operatorname{diag}(KAK) = K\operatorname{diag}(A)K$; dropout too, because $M \to K^{-1}M$ if the prior's term in {eq}`eq-neighbours-dropout` is $\sigma^2\Lambda$.
# SWAG, constant SGD and snapshots do not: with $\eta$ a number, $\Sigma_\eta$ depends on the scale of each weight, and a descent of which one coordinate is stretched is another descent.
# ```
#
# ## Further reading
#
# {cite:t}`lefolgoc2021` and {cite:t}`osband2016` ask what dropout's spread is of, and {cite:t}`hron2018` what its objective is; {cite:t}`pearce2020` draw members by their anchors.
# How the same methods do on networks is in {doc}`/book/studies/neighbours_on_networks`.
