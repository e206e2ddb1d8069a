"""Estimates of the gradient noise, against the covariance over all minibatches, and the
law of the chain that uses them.
"""

import itertools
import math

import pytest
import torch
from torch import nn

from sgmc import checks, sample
from sgmc.kernels import SGHMC
from sgmc.matrices import Matrix, addmv_
from sgmc.minibatches import Fresh, Passes
from sgmc.models import Posterior, control_variates
from sgmc.noise import OnlineNoise, _injected_root, estimate_noise_variance
from sgmc.posteriors import LinearRegression, LogisticRegression, NetworkPosterior
from sgmc.potentials import Potential
from sgmc.splittings import sghmc_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient
from tests.checks import assert_covariance, z_bound

DOUBLE = torch.float64
KINDS = ("scalar", "diagonal", "full")


def data(dim):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(6, dim, generator=generator, dtype=DOUBLE), torch.tensor(
        [0, 1, 1, 0, 1, 0]
    )


def cubic(**settings):
    """Make a posterior of which the package knows nothing but its densities."""
    x, y = data(2)
    return Posterior(
        lambda position: -position.pow(4).sum(-1),
        lambda position, x, y: -(((x @ position[..., None])[..., 0] - y).abs() ** 3),
        (x, y.to(DOUBLE)),
        dim=2,
        **settings,
    )


def network(*layers, features=2):
    return lambda **settings: NetworkPosterior(
        nn.Sequential(*layers).double(), *data(features), prior_variance=2.0, **settings
    )


POSTERIORS = {
    "linear": lambda **settings: LinearRegression(
        data(2)[0], data(2)[1].to(DOUBLE), 0.5, 2.0, **settings
    ),
    "logistic": lambda **settings: LogisticRegression(
        data(2)[0], data(2)[1].to(DOUBLE), 2.0, **settings
    ),
    "any density": cubic,
    "perceptron": network(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2, bias=False)),
    "one layer": network(nn.Linear(2, 2)),
    "convolutions": network(
        nn.Unflatten(-1, (1, 4, 4)),
        nn.Conv2d(1, 2, 2, padding=1),
        nn.Tanh(),
        nn.Conv2d(2, 2, 3, stride=2, bias=False),
        nn.Flatten(),
        nn.Linear(8, 2),
        features=16,
    ),
    "a sequence": network(
        nn.Unflatten(-1, (2, 2)),
        nn.Linear(2, 3),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(6, 2),
        features=4,
    ),
    "another layer": network(nn.Linear(2, 3), nn.LayerNorm(3), nn.Linear(3, 2)),
    "control variates": lambda **settings: control_variates(
        POSTERIORS["logistic"](**settings), torch.tensor([0.3, -0.2], dtype=DOUBLE)
    ),
}


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("name", POSTERIORS)
def test_the_mean_estimate_over_all_minibatches_is_the_covariance_over_all_minibatches(
    name, replacement, generator
):
    """The covariance is that of whole stochastic gradients, prior and N/n and all;
    forgetting N²/n in the estimate cannot pass.
    """
    posterior = POSTERIORS[name](
        batch_size=3, minibatches=Fresh(replacement=replacement)
    )
    choose = (
        itertools.product(range(6), repeat=3)
        if replacement
        else itertools.combinations(range(6), 3)
    )
    indices = torch.tensor(list(choose))
    position = (
        torch.randn(1, posterior.dim, generator=generator, dtype=DOUBLE)
        .expand(len(indices), -1)
        .contiguous()
    )
    gradients = posterior.gradient_given(position, indices)
    centred = gradients - gradients.mean(0)
    covariance = centred.T @ centred / len(indices)
    expected = {
        "scalar": covariance.diagonal().mean()[None],
        "diagonal": covariance.diagonal(),
        "full": covariance,
    }
    for kind in KINDS:
        same, variance = posterior.gradient_and_variance_given(position, indices, kind)
        torch.testing.assert_close(same, gradients, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(
            variance.mean(0),
            expected[kind],
            rtol=1e-10,
            atol=1e-10 * float(covariance.abs().max()),
        )


@pytest.mark.parametrize("name", ["perceptron", "one layer"])
def test_squares_from_activations_and_signals_are_those_of_per_example_gradients(
    name, generator
):
    posterior = POSTERIORS[name](batch_size=4)
    assert posterior._layers is not None
    for chains in (1, 3):
        position = torch.randn(chains, posterior.dim, generator=generator, dtype=DOUBLE)
        batch = posterior.gather(
            *posterior.draw_minibatches(position, generator, step=chains)
        )
        gradient, squares = posterior._gradient_moments(position, batch, "diagonal")
        each = posterior.per_example_gradients(position, batch)
        torch.testing.assert_close(gradient, each.sum(1))
        torch.testing.assert_close(squares, each.square().sum(1))


class Tied(nn.Sequential):
    """Two layers with one matrix of weights."""

    def __init__(self):
        super().__init__(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2))
        self[2].weight = self[0].weight


class Backwards(nn.Module):
    """Two layers that are used in another order than they are made."""

    def __init__(self):
        super().__init__()
        self.last, self.first = nn.Linear(3, 2), nn.Linear(2, 3)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


def hooked():
    """Make a layer that does something beside."""
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lambda layer, inputs, output: output.sin())
    return layer


def hooked_before():
    """Make a layer that does something with its inputs."""
    layer = nn.Linear(2, 2)
    layer.register_forward_pre_hook(lambda layer, inputs: (inputs[0].sin(),))
    return layer


TWICE = nn.Linear(2, 2)
UNCOMMON = {
    "one layer twice": network(TWICE, nn.Tanh(), TWICE),
    "a layer with a hook": network(hooked(), nn.Tanh(), nn.Linear(2, 2)),
    "a hook on inputs": network(hooked_before(), nn.Tanh(), nn.Linear(2, 2)),
    "another order": network(Backwards()),
    "groups": network(
        nn.Unflatten(-1, (2, 2, 2)),
        nn.Conv2d(2, 2, 2, groups=2),
        nn.Flatten(),
        features=8,
    ),
    "a torus": network(
        nn.Unflatten(-1, (1, 2, 2)),
        nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"),
        nn.Flatten(),
        features=4,
    ),
    "dilation": network(
        nn.Unflatten(-1, (1, 4, 4)),
        nn.Conv2d(1, 2, 2, dilation=2),
        nn.Flatten(),
        features=16,
    ),
    "weights of two layers": network(Tied()),
}


@pytest.mark.parametrize("name", UNCOMMON)
def test_squares_of_uncommon_layers_are_those_of_per_example_gradients(name, generator):
    posterior = UNCOMMON[name](batch_size=4)
    position = torch.randn(2, posterior.dim, generator=generator, dtype=DOUBLE)
    batch = posterior.gather(*posterior.draw_minibatches(position, generator, step=0))
    expected = posterior.per_example_gradients(position, batch).square().sum(1)
    torch.testing.assert_close(
        posterior._gradient_moments(position, batch, "diagonal")[1], expected
    )


def test_a_layer_used_twice_is_noticed(generator):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.last = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            return self.last(torch.tanh(self.layer(torch.tanh(self.layer(x)))))

    posterior = NetworkPosterior(Twice().double(), *data(2), batch_size=4)
    assert posterior._layers is None
    position = torch.randn(2, posterior.dim, generator=generator, dtype=DOUBLE)
    batch = posterior.gather(*posterior.draw_minibatches(position, generator, step=0))
    torch.testing.assert_close(
        posterior._gradient_moments(position, batch, "diagonal")[1],
        posterior.per_example_gradients(position, batch).square().sum(1),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_without_minibatches_there_is_no_noise(kind, generator):
    posterior = POSTERIORS["logistic"]()
    position = torch.randn(3, 2, generator=generator, dtype=DOUBLE)
    gradient, variance = posterior.gradient_and_noise_variance(
        position, generator, kind
    )
    assert torch.equal(gradient, posterior.gradient(position)) and not variance.any()
    gradient, variance = DoubleWell().gradient_and_noise_variance(
        position[:, :1], generator, kind
    )
    assert (
        torch.equal(gradient, DoubleWell().gradient(position[:, :1]))
        and not variance.any()
    )


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
def test_rounding_leaves_no_variance_below_zero(dtype):
    """All examples have one gradient, so that the variance is zero."""
    slopes = torch.linspace(0.1, 7.3, 40, dtype=dtype)
    posterior = Posterior(
        lambda position: 0 * position.sum(-1),
        lambda position, x: (position @ slopes)[:, None] + 0 * x,
        data=(torch.zeros(50, dtype=dtype),),
        dim=40,
        batch_size=7,
    )
    position = torch.zeros(3, 40, dtype=dtype)
    for kind in ("scalar", "diagonal"):
        given = position, torch.arange(21).view(3, 7), kind
        variance = posterior.gradient_and_variance_given(*given)[1]
        assert (variance >= 0).all()
        assert variance.max() < 1e5 * torch.finfo(dtype).eps


def test_a_noisy_gradient_knows_its_variance(generator):
    full = torch.tensor([[4.0, 1.0], [1.0, 2.0]])
    for variance, expected in (
        (full, full),
        (torch.tensor([1.0, 3.0]), torch.diag(torch.tensor([1.0, 3.0]))),
        (2.0, 2 * torch.eye(2)),
    ):
        potential = NoisyGradient(Gaussian.standard(2), variance)
        known = {
            kind: potential.gradient_and_noise_variance(
                torch.zeros(3, 2), generator, kind
            )[1]
            for kind in KINDS
        }
        assert torch.equal(known["full"], expected.expand(3, 2, 2))
        assert torch.equal(known["diagonal"], expected.diagonal().expand(3, 2))
        assert torch.equal(known["scalar"], expected.diagonal().mean().expand(3, 1))


def test_control_variates_keep_the_energy_and_have_no_noise_at_the_reference(generator):
    for name in ("logistic", "any density", "perceptron"):
        posterior = POSTERIORS[name](batch_size=3)
        reference = torch.randn(posterior.dim, generator=generator, dtype=DOUBLE)
        calm = control_variates(posterior, reference)
        position = torch.randn(4, posterior.dim, generator=generator, dtype=DOUBLE)
        torch.testing.assert_close(calm.energy(position), posterior.energy(position))
        torch.testing.assert_close(
            calm.gradient(position), posterior.gradient(position)
        )
        _, variance = calm.gradient_and_noise_variance(
            reference.expand(4, -1).contiguous(), generator, "diagonal"
        )
        assert variance.max() < 1e-20
        torch.testing.assert_close(
            calm.stochastic_gradient(reference[None], generator),
            posterior.gradient(reference[None]),
        )


@pytest.mark.parametrize("rule", [Fresh(), Passes()], ids=str)
def test_control_variates_see_the_minibatches_of_their_posterior(rule, generator):
    posterior = POSTERIORS["logistic"](batch_size=3, minibatches=rule)
    calm, position = (
        control_variates(posterior, torch.zeros(2, dtype=DOUBLE)),
        torch.ones(4, 2, dtype=DOUBLE),
    )
    drawn = [
        torch.stack(each.draw_minibatches(position, generator, 0, num_steps=3))
        for each in (posterior, calm)
    ]
    assert torch.equal(*drawn)


@pytest.mark.parametrize(
    "friction",
    [
        2.0,
        torch.tensor([2.0, 3.0], dtype=DOUBLE),
        torch.tensor([[2.0, 0.5], [0.5, 3.0]], dtype=DOUBLE),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_injected_root(friction, kind, generator):
    variance = {
        "scalar": torch.full((3, 1), 2.0),
        "diagonal": torch.rand(3, 2, generator=generator),
        "full": torch.eye(2).expand(3, 2, 2),
    }
    variance = variance[kind].to(DOUBLE)
    root, clipped = _injected_root(Matrix(friction), 0.1, variance)
    assert clipped == 0.0
    full = {
        "scalar": lambda: variance[..., None] * torch.eye(2),
        "diagonal": lambda: torch.diag_embed(variance),
        "full": lambda: variance,
    }
    room = (
        friction
        if isinstance(friction, torch.Tensor) and friction.ndim == 2
        else friction * torch.eye(2, dtype=DOUBLE)
    )
    expected = 0.2 * room - 0.01 * full[kind]()
    units = torch.eye(2, dtype=DOUBLE)
    columns = [
        addmv_(torch.zeros(3, 2, dtype=DOUBLE), root, unit.expand(3, 2))
        for unit in units
    ]
    matrix = torch.stack(columns, -1)
    torch.testing.assert_close(matrix @ matrix.mT, expected.expand(3, 2, 2))
    torch.testing.assert_close(
        torch.stack([root @ unit.expand(3, 2) for unit in units], -1), matrix
    )


def test_what_exceeds_the_friction_is_clipped_and_its_share_told():
    root, clipped = _injected_root(
        Matrix(1.0), 0.1, torch.tensor([[10.0, 30.0], [30.0, 40.0]])
    )
    torch.testing.assert_close(
        root.value, torch.tensor([[math.sqrt(0.1), 0.0], [0.0, 0.0]])
    )
    assert clipped.tolist() == [0.5, 1.0]
    root, clipped = _injected_root(
        Matrix(1.0),
        0.1,
        torch.tensor([[[30.0, 0.0], [0.0, 10.0]], [[10.0, 0.0], [0.0, 10.0]]]),
    )
    torch.testing.assert_close(
        root.value @ root.value.mT,
        torch.tensor([[[0.0, 0.0], [0.0, 0.1]], [[0.1, 0.0], [0.0, 0.1]]]),
    )
    assert clipped.tolist() == [0.5, 0.0]


@pytest.mark.parametrize(
    "settings",
    [{"refresh_every": 3}, {"averaging": 0.9}, {"refresh_every": 2, "averaging": 0.5}],
    ids=str,
)
def test_refreshing_and_averaging(settings, generator):
    class Counting(Potential):
        dim, looks = 1, 0

        def gradient_given(self, position, minibatch):
            return torch.full_like(position, minibatch)

        def gradient_and_variance_given(self, position, minibatch, kind):
            Counting.looks += 1
            return self.gradient_given(position, minibatch), torch.full_like(
                position, float(Counting.looks)
            )

    online, variance, expected, looks = (
        OnlineNoise("diagonal", **settings),
        torch.zeros(1, 1),
        0.0,
        0,
    )
    for step in range(7):
        gradient, variance = online.update(
            Counting(), torch.zeros(1, 1), 10.0 * step, variance, step
        )
        if step % online.refresh_every == 0:
            looks += 1
            expected = online.averaging * expected + (1 - online.averaging) * looks
        # of the very minibatch of the step
        assert (
            float(variance) == pytest.approx(expected)
            and float(gradient) == 10.0 * step
        )
    assert Counting.looks == looks


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize(
    "settings", [{}, {"averaging": 0.9}, {"refresh_every": 5}], ids=str
)
@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_sghmc_with_an_online_estimate_has_the_law_of_the_right_estimate(
    kind, settings, temperature
):
    """On linear regression the gradient is linear in θ, and its noise nearly constant:
    the law is that of the chain with B̂ = B.

    Without the estimate the variance would be 1 + B/TC times as large, 30 % here or 60
    %, and if the room for it were C in place of TC twice as large at T = 0.5; false
    alarms 1 in 10,000."""
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(200, 2, generator=generator, dtype=DOUBLE)
    inputs[:, 1] = (
        inputs[:, 1] if kind == "diagonal" else 0.8 * inputs[:, 0] + 0.6 * inputs[:, 1]
    ) * 2
    targets = torch.randn(200, generator=generator, dtype=DOUBLE)
    posterior = LinearRegression(
        inputs,
        targets,
        noise_variance=400.0,
        batch_size=100,
        minibatches=Fresh(replacement=True),
    )
    step_size, friction = 0.3, 1.0
    at_mean = posterior.mean.expand(400, 2).contiguous()
    variance = estimate_noise_variance(
        posterior, at_mean, generator, "full", num_batches=50
    )
    chain = sghmc_chain(
        posterior.precision,
        step_size,
        friction,
        variance,
        0.5 * step_size * variance,
        temperature=temperature,
    )
    law = chain.stationary_covariance()[:2, :2]
    kernel = SGHMC(
        step_size,
        friction,
        noise_estimate=OnlineNoise(kind, **settings),
        temperature=temperature,
    )
    draws = sample(
        kernel,
        posterior,
        at_mean.repeat(5, 1),
        num_samples=10,
        warm_up=150,
        thinning=10,
        seed=1,
    )
    assert_covariance(draws.samples - posterior.mean, law)


@pytest.mark.parametrize("friction", [0.15, 3.0])
@pytest.mark.parametrize("kind", KINDS)
def test_many_steps_a_draw_are_many_draws_of_one_step(kind, friction):
    """Where the estimate is kept from step to step its root is too, within a draw: the
    chain and what was clipped must not notice.
    """
    # Sixteen numbers a step, which is how many PyTorch makes at a time: fewer would
    # come out otherwise in a block of several steps.
    posterior, start = (
        POSTERIORS["logistic"](batch_size=3),
        torch.zeros(8, 2, dtype=DOUBLE),
    )
    for online in (
        OnlineNoise(kind, refresh_every=3),
        OnlineNoise(kind, refresh_every=2, averaging=0.5),
    ):
        ends = []
        for num_steps, calls in ((7, 2), (1, 14)):
            kernel, generator = (
                SGHMC(0.3, friction, online, num_steps=num_steps),
                torch.Generator().manual_seed(1),
            )
            state = kernel.init(posterior, start, generator)
            for _ in range(calls):
                state, info = kernel.step(posterior, state, generator)
            assert (
                torch.equal(info.clipped, state.clipped)
                and info.num_gradients == state.num_gradients == 14
            )
            ends.append(state)
        for one, other in zip(*ends, strict=True):
            assert one == other if isinstance(one, int) else torch.equal(one, other)
        assert bool(state.clipped.any()) == (friction < 1)


def test_zero_noise_gives_the_chain_without_an_estimate():
    start = torch.zeros(3, 1)
    plain = sample(SGHMC(0.1, 3.0), DoubleWell(), start, num_samples=5).samples
    online = sample(
        SGHMC(0.1, 3.0, noise_estimate=OnlineNoise()),
        DoubleWell(),
        start,
        num_samples=5,
    ).samples
    torch.testing.assert_close(online, plain)


def test_estimates_made_once(generator):
    potential = NoisyGradient(Gaussian.standard(2), torch.tensor([1.0, 3.0]))
    position = torch.zeros(4, 2)
    assert estimate_noise_variance(
        potential, position, generator, "scalar", 3
    ) == pytest.approx(2.0)
    torch.testing.assert_close(
        estimate_noise_variance(potential, position, generator, "full"),
        torch.diag(torch.tensor([1.0, 3.0])),
    )


class Varying(Potential):
    """A potential whose noise has the variance θ² + t at step t."""

    dim = 2

    def draw_minibatches(self, position, generator, step, num_steps=1):
        self.steps.extend(range(step, step + num_steps))
        return range(step, step + num_steps)

    def gradient_and_variance_given(self, position, minibatch, kind):
        variance = position.square() + minibatch % 7
        full = torch.diag_embed(variance)
        return position, {
            "scalar": variance.mean(-1, keepdim=True),
            "diagonal": variance,
            "full": full,
        }[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimate_made_once_is_the_average_over_chains_and_minibatches(
    kind, generator
):
    potential, position = (
        Varying(),
        torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 10.0]], dtype=DOUBLE),
    )
    potential.steps = []
    estimate = estimate_noise_variance(
        potential, position, generator, kind, num_batches=5
    )
    assert len(set(potential.steps)) == 5  # another minibatch each time
    expected = position.square().mean(0) + sum(step % 7 for step in potential.steps) / 5
    expected = {
        "scalar": expected.mean(),
        "diagonal": expected,
        "full": torch.diag(expected),
    }[kind]
    torch.testing.assert_close(torch.as_tensor(estimate, dtype=DOUBLE), expected)


def test_an_estimate_made_once_is_near_the_covariance_over_all_minibatches(generator):
    """Many minibatches in two chains of unlike noise: within a Monte Carlo error, which
    the spread of single estimates gives.
    """
    posterior = POSTERIORS["logistic"](batch_size=3)
    position = torch.tensor([[0.0, 0.0], [4.0, -4.0]], dtype=DOUBLE)
    indices = torch.tensor(list(itertools.combinations(range(6), 3)))
    at = [place.expand(len(indices), -1).contiguous() for place in position]
    exact = [
        posterior.gradient_given(place, indices).var(0, correction=0) for place in at
    ]
    assert (exact[0] / exact[1] - 1).abs().max() > 0.2
    estimates = torch.stack(
        [estimate_noise_variance(posterior, position, generator) for _ in range(400)]
    )
    z = (estimates.mean(0) - (exact[0] + exact[1]) / 2) / (estimates.std(0) / 20)
    assert z.abs().max() < z_bound(2)


def test_a_clipping_run_warns_once_with_the_share_and_keeps_a_statistic():
    kernel = SGHMC(0.1, friction=torch.tensor([3.0, 0.1]), noise_estimate=OnlineNoise())
    with pytest.warns(
        UserWarning,
        match=r"½εV̂.*50\.0%",
    ) as caught:
        draws = sample(
            kernel, NoisyGradient(DoubleWell(2), 4.0), torch.zeros(3, 2), num_samples=10
        )
    assert len(caught) == 1
    torch.testing.assert_close(
        draws.statistics["clipped"] / draws.statistics["num_gradients"],
        torch.full((10, 3), 0.5),
    )


class NoIdea(DoubleWell):
    def gradient_given(self, position, minibatch):
        return self.gradient(position).clone()


def run(potential, kind="diagonal", dim=2, **settings):
    kernel = SGHMC(0.1, 3.0, noise_estimate=OnlineNoise(kind))
    sample(kernel, potential, torch.zeros(1, dim, dtype=DOUBLE), num_samples=5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OnlineNoise(refresh_every=0), r"refresh_every.*\b0\b"),
        (lambda: OnlineNoise(averaging=1.0), r"averaging.*\b1\b"),
        (
            lambda: SGHMC(0.1, 3.0, noise_estimate=OnlineNoise(), temperature=0.0),
            "temperature is 0",
        ),
        (lambda: SGHMC(0.1, 0.1, noise_estimate=0.2), r"friction.*noise_estimate"),
        (
            lambda: SGHMC(
                0.1, 1.0, noise_estimate=torch.tensor([[0.9, 0.2], [0.2, 0.9]])
            ),
            r"friction.*noise_estimate",
        ),
        (
            lambda: run(POSTERIORS["logistic"](batch_size=1)),
            r"one example.*covariance.*2",
        ),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_potential_that_does_not_know_its_noise_says_what_to_write(generator):
    for call in (
        lambda: run(NoIdea(2)),
        lambda: estimate_noise_variance(NoIdea(2), torch.zeros(1, 2), generator),
    ):
        with pytest.raises(
            NotImplementedError, match=r"NoIdea.*gradient_and_variance_given"
        ):
            call()


def test_a_full_matrix_too_large_for_memory_is_refused_with_its_size(monkeypatch):
    monkeypatch.setattr(checks, "MEMORY", 31)
    message = r"2 coordinates.*1 chain .*0\.0 GiB.*'diagonal'.*'scalar'"
    with pytest.raises(ValueError, match=message):
        run(POSTERIORS["logistic"](batch_size=3), "full")
    with pytest.raises(ValueError, match=message):
        run(DoubleWell(2), "full")
    with pytest.raises(ValueError, match=r"takes 23\.6 GiB"):
        checks.check_fits(1, 79_510, 4)
