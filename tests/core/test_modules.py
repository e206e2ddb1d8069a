"""Modules as libraries have them: what ``vmap`` cannot run, what they take and return,
and what keeps them from being a likelihood; against the same module by hand.
"""

import warnings

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional

from booklib.models.hierarchical import HierarchicalNetwork
from sgmc import sample
from sgmc.checkpoints import fingerprint
from sgmc.kernels import SGHMC
from sgmc.models import NamedPosterior, Posterior
from sgmc.noise import OnlineNoise
from sgmc.posteriors import Bernoulli, Gaussian, Likelihood, NetworkPosterior
from sgmc.posteriors.base import Vmap, over_chains
from sgmc.potentials import differentiate

DOUBLE = torch.float64


class Recurrent(nn.Module):
    def __init__(self, kind, **settings):
        super().__init__()
        self.inner = getattr(nn, kind)(3, 4, batch_first=True, **settings)
        self.outer = nn.Linear(4, 1)

    def forward(self, inputs):
        return self.outer(self.inner(inputs)[0][:, -1])


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 5, dropout=0.0, batch_first=True)
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 1)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def forward(self, inputs):
        return self.last(self.encoder(self.first(inputs)).mean(1))


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, inputs):
        self.calls += 1
        return self.layer(inputs).sum(1)


class Functional(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.a, self.b, self.how = nn.Linear(3, 4), nn.Linear(4, 1), how
        if how == "attention":
            self.attention = nn.MultiheadAttention(4, 2, dropout=0.1, batch_first=True)
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("var", torch.ones(4))

    def forward(self, inputs):
        h = self.a(inputs)
        if self.how == "dropout":
            h = functional.dropout(h, 0.5, self.training)
        if self.how == "batch_norm":
            h = functional.batch_norm(h, self.mean, self.var, training=self.training)
        if self.how == "own batch norm" and self.training:
            h = h - h.mean(0)
        if self.how == "attention":
            h = self.attention(h[:, None], h[:, None], h[:, None], need_weights=False)
            h = h[0][:, 0]
        return self.b(h)


def data(generator, *shape):
    inputs = torch.randn(7, *shape, 3, generator=generator, dtype=DOUBLE)
    return inputs, inputs.reshape(7, -1, 3).mean(1).sum(-1, keepdim=True)


SEQUENCES = {
    "RNN": lambda: Recurrent("RNN"),
    "GRU": lambda: Recurrent("GRU"),
    "LSTM": lambda: Recurrent("LSTM", dropout=0.0),
    "transformer": Transformer,
    "transformer, eval": lambda: Transformer().eval(),
    "counting": Counting,
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.filterwarnings("ignore:dropout option adds dropout")
@pytest.mark.parametrize("name", SEQUENCES)
def test_chains_and_examples_are_the_module_by_hand(name, generator):
    """Whether vmap can run it or not: energies, gradients and the examples' gradients,
    for own and for shared minibatches, and the fast path of attention is on again.
    """
    module = SEQUENCES[name]().double()
    inputs, targets = data(generator, 5)
    posterior = NetworkPosterior(
        module, inputs, targets, batch_size=3, likelihood=Gaussian(0.5)
    )
    position = posterior.initial_position(2, generator)
    rows = torch.tensor([[0, 1, 2], [3, 6, 0]])
    apart = name in ("RNN", "GRU", "LSTM")

    def by_hand(position, rows):
        named = posterior.named(position)
        own = {name: x.clone() for name, x in module.named_buffers()}
        found = functional_call(module.train(), named | own, (inputs[rows],))
        return (found - targets[rows]).square().sum()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = posterior.gradient_given(position, rows)
        several = posterior.per_example_gradients(position, posterior.gather(rows))
        shared = posterior.per_example_gradients(position, posterior.gather(rows[:1]))
    told = [
        str(each.message) for each in told if "one after another" in str(each.message)
    ]
    assert len(told) >= 1 if apart else not told
    for chain, (x, own) in enumerate(zip(position, rows, strict=True)):
        slope = torch.func.grad(by_hand)(x, own)
        torch.testing.assert_close(found[chain], x + 7 / 3 * slope)
        each = torch.stack([-torch.func.grad(by_hand)(x, i[None]) for i in own])
        torch.testing.assert_close(several[chain], each)
    torch.testing.assert_close(shared[0], several[0])
    torch.testing.assert_close(
        posterior.energy(position),
        torch.stack([0.5 * (x @ x) + by_hand(x, slice(7)) for x in position]),
    )
    assert torch.backends.mha.get_fastpath_enabled()
    assert not any(x.any() for x in posterior.module.buffers())


def test_a_choice_is_made_once_and_is_no_part_of_the_posterior(generator):
    inputs, targets = data(generator, 5)
    posterior = HierarchicalNetwork(
        Recurrent("GRU").double(), inputs, targets, likelihood=Gaussian(1.0)
    )
    position, before = posterior.initial_position(2, generator), fingerprint(posterior)
    with pytest.warns(UserWarning, match="vmap cannot.*gru.*one after another"):
        first = posterior.given(posterior.prior_precision).energy(position)
    with warnings.catch_warnings(action="error"):
        assert torch.equal(posterior.energy(position), first)
        posterior.given(posterior.prior_precision).energy(position)
    assert fingerprint(posterior) == before


def test_the_fast_path_of_attention_is_afterwards_what_it_was_before():
    mha = torch.backends.mha
    before = mha.get_fastpath_enabled()
    try:
        for chosen in (False, True):
            mha.set_fastpath_enabled(chosen)
            over_chains(torch.dot, torch.eye(2), torch.ones(1, 2))
            assert mha.get_fastpath_enabled() == chosen
    finally:
        mha.set_fastpath_enabled(before)


def test_a_loop_is_vmap_and_errors_are_the_functions_own():
    tried = []

    def kink(x, scale):
        tried.append(torch._C._functorch.is_batchedtensor(x["x"]))
        return {"y": scale * (x["x"] if x["x"] > 0 else -2 * x["x"])}

    x, vmap = torch.tensor([1.0, -2.0, 3.0], requires_grad=True), Vmap()
    for _ in range(2):
        with warnings.catch_warnings(action="ignore"):
            found = vmap(kink, (0, None))({"x": x}, torch.tensor(2.0))
        assert torch.equal(found["y"], torch.tensor([2.0, 8.0, 6.0]))
    assert tried == [True, *[False] * 6]
    found["y"].sum().backward()
    assert torch.equal(x.grad, torch.tensor([2.0, -4.0, 2.0]))
    with pytest.raises(KeyError):
        Vmap()(lambda x: x["z"], (0,))({"x": x})


def test_a_loop_is_told_once_in_whatever_ways_it_is_called():
    x, vmap = torch.tensor([1.0, -2.0]), Vmap()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vmap(lambda x, y: y if x > 0 else -y, (0, 0))(x, x)
        vmap(lambda x, y: y if x > 0 else -y, (0, None))(x, x)
    assert len(caught) == 1 and "cannot run this model" in str(caught[0].message)


def test_functions_that_look_at_values_have_examples_gradients(generator):
    """Posterior's functions are of all chains, and only the noise needs vmap."""
    x = torch.tensor([1.0, -2.0, 3.0], dtype=DOUBLE)

    def make(log_likelihood):
        prior = lambda position: -position.square().sum(-1)
        return Posterior(prior, log_likelihood, (x,), 1, batch_size=2)

    looks = make(lambda p, x: p * (x if x.sum() > -1e3 else -x))
    plain = make(lambda p, x: p * x)
    position, rows = torch.ones(2, 1, dtype=DOUBLE), torch.tensor([[0, 1], [1, 2]])
    with pytest.warns(UserWarning, match="one after another"):
        found = looks.gradient_and_variance_given(position, rows, "diagonal")
    expected = plain.gradient_and_variance_given(position, rows, "diagonal")
    torch.testing.assert_close(found, expected)


@pytest.mark.filterwarnings("ignore:torch.func.vmap cannot")
def test_a_run_with_a_noise_estimate_on_a_recurrent_network(generator):
    inputs, targets = data(generator, 2)
    posterior = NetworkPosterior(
        Recurrent("LSTM").double(), inputs, targets, batch_size=3, likelihood=Gaussian()
    )
    kernel = SGHMC(0.01, friction=1.0, noise_estimate=OnlineNoise("diagonal"))
    draws = sample(kernel, posterior, posterior.initial_position(2, generator), 2)
    assert draws.samples.isfinite().all() and draws.samples.std() > 0


LIKELY = {
    "dropout": r"random.*module\.eval\(\)",
    "attention": r"random.*module\.eval\(\)",
    "batch_norm": r"others of its minibatch.*module\.eval\(\)",
    "own batch norm": r"others of its minibatch.*module\.eval\(\)",
}


@pytest.mark.parametrize("how", LIKELY)
def test_randomness_and_mixing_without_a_layer_name_the_remedy(how, generator):
    module = Functional(how).double()
    # so many that two calls never drop the same: 0.82²⁰⁰, by a tenth in two heads
    inputs, targets = (x.repeat(20, 1) for x in data(generator))
    with pytest.raises(ValueError, match=LIKELY[how]):
        NetworkPosterior(module, inputs, targets, likelihood=Gaussian())
    assert not module.mean.any()
    NetworkPosterior(module.eval(), inputs, targets, likelihood=Gaussian())


def test_modules_that_are_no_function_of_their_parameters_yet(generator):
    inputs, targets = data(generator)
    settings = {"inputs": inputs, "targets": targets, "likelihood": Gaussian()}
    spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4))
    spectral = nn.Sequential(spectral, nn.Linear(4, 1)).double()
    with pytest.raises(ValueError, match=r"_u.*eval\(\).*remove_parametriz"):
        NetworkPosterior(spectral, **settings)
    NetworkPosterior(spectral.eval(), **settings)
    lazy = nn.LazyLinear(1).double()
    with pytest.raises(ValueError, match=r"lazy.*'weight'.*call it once"):
        NetworkPosterior(lazy, **settings)
    lazy(inputs[:2])
    NetworkPosterior(lazy, **settings)
    with warnings.catch_warnings(action="ignore"):
        scripted = torch.jit.script(nn.Linear(3, 1).double())
    with pytest.raises(
        ValueError, match=r"compiled by torch\.jit.*nn\.Module that it was"
    ):
        NetworkPosterior(scripted, **settings)
    with pytest.raises(ValueError, match=r"returns a tuple.*forward.*around it"):
        NetworkPosterior(nn.LSTM(3, 1).double(), **settings)


class Keeping(nn.Module):
    """It remembers its last outputs, as many do to show them."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, inputs):
        self.outputs = self.layer(inputs)
        return self.outputs


def test_a_module_that_keeps_what_it_computed_is_told_what_to_keep(generator):
    x = torch.randn(20, 3, generator=generator)
    settings = dict(inputs=x, targets=x.sum(-1), likelihood=Gaussian())
    module = Keeping()
    NetworkPosterior(module, **settings)
    module(x)
    with pytest.raises(ValueError, match=r"cannot be copied.* keep its \.detach\(\)"):
        NetworkPosterior(module, **settings)


def test_a_parameter_without_axes_and_dropout_of_nothing(generator):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.layer = nn.Parameter(torch.ones(())), nn.Linear(3, 1)
            self.dropout = nn.Dropout(p=0.0)

        def forward(self, inputs):
            return self.scale * self.dropout(self.layer(inputs))

    inputs, targets = data(generator)
    posterior = NetworkPosterior(
        Scaled().double(), inputs, targets, likelihood=Gaussian(), batch_size=3
    )
    position = torch.randn(2, 5, generator=generator, dtype=DOUBLE)

    def by_hand(position):
        found = position[:, :1, None] * (inputs @ position[:, 1:4, None])
        found = found + position[:, :1, None] * position[:, 4:, None]
        residual = (found - targets).square().sum((1, 2))
        return 0.5 * (residual + position.square().sum(-1))

    energy, gradient = differentiate(by_hand, position)
    torch.testing.assert_close(posterior.energy(position), energy)
    torch.testing.assert_close(posterior.gradient(position), gradient)
    assert posterior.named(position)["scale"].shape == (2,)


class Library(nn.Module):
    """As those of libraries of language models are."""

    def __init__(self, out):
        super().__init__()
        self.embed, self.last, self.out = nn.Embedding(10, 4), nn.Linear(4, 2), out

    def forward(self, input_ids, attention_mask=None):
        h = self.embed(input_ids)
        if attention_mask is not None:
            h = h * attention_mask[..., None]
        logits = self.last(h if self.out == "tokens" else h.mean(1))
        return {"dict": {"logits": logits}, "tuple": (logits, h)}.get(self.out, logits)


def test_the_way_of_modules_with_several_inputs_is_named_and_exact(generator):
    module = Library("dict").double()
    ids = torch.randint(10, (7, 3), generator=generator)
    mask = torch.rand(7, 3, generator=generator).gt(0.3).double()
    labels = torch.arange(7) % 2
    way = r"NamedPosterior.*functional_call\(module, parameters, \(\), "
    for inputs in ({"input_ids": ids, "attention_mask": mask}, (ids, mask)):
        with pytest.raises(ValueError, match=rf"inputs must be one tensor.*{way}"):
            NetworkPosterior(module, inputs, labels)
    for out in ("dict", "tuple"):
        with pytest.raises(ValueError, match=rf"returns a {out}.*forward.*{way}"):
            NetworkPosterior(Library(out).double(), ids, labels)

    def log_likelihood(parameters, ids, mask, labels):
        keywords = {"input_ids": ids, "attention_mask": mask}
        logits = functional_call(module, parameters, (), keywords)["logits"]
        return -functional.cross_entropy(logits, labels, reduction="none")

    posterior = NamedPosterior(
        {name: tuple(x.shape) for name, x in module.named_parameters()},
        lambda parameters: -0.5 * sum(x.square().sum() for x in parameters.values()),
        log_likelihood,
        (ids, mask, labels),
        batch_size=3,
    )
    vector = nn.utils.parameters_to_vector(module.parameters())
    logits = module(ids, attention_mask=mask)["logits"]
    energy = functional.cross_entropy(logits, labels, reduction="sum")
    energy = energy + 0.5 * vector.square().sum()
    slope = torch.autograd.grad(energy, list(module.parameters()))
    position = torch.stack([vector, vector]).detach()
    torch.testing.assert_close(posterior.energy(position)[1], energy.detach())
    torch.testing.assert_close(
        posterior.gradient(position)[1], nn.utils.parameters_to_vector(slope)
    )


class Tokens(Likelihood):
    def log_density(self, outputs, targets):
        chosen = targets.expand(outputs.shape[:-1])[..., None]
        return outputs.log_softmax(-1).gather(-1, chosen)[..., 0].sum(-1)


def test_a_label_of_each_token_is_for_a_likelihood_of_ones_own(generator):
    module = Library("tokens").double()
    ids, tags = torch.randint(10, (2, 7, 3), generator=generator) % 7
    tags = tags % 2
    with pytest.raises(ValueError, match=r"token.*Likelihood.*log_softmax"):
        NetworkPosterior(module, ids, tags)
    posterior = NetworkPosterior(module, ids, tags, likelihood=Tokens(), batch_size=3)
    vector = nn.utils.parameters_to_vector(module.parameters()).detach()
    logits = module(ids).flatten(0, 1)
    expected = functional.cross_entropy(logits, tags.flatten(), reduction="sum")
    torch.testing.assert_close(
        posterior.energy(torch.stack([vector, 0 * vector]))[0],
        expected.detach() + 0.5 * vector.square().sum(),
    )
    sample(SGHMC(0.01, friction=1.0), posterior, vector[None], 2)


def test_other_rounding_among_fewer_examples_is_no_mixing(generator):
    class Rounding(nn.Linear):
        def forward(self, inputs):
            large = 3e4 * (len(inputs) > 2)
            return super().forward(inputs) + large - large

    inputs, targets = torch.randn(9, 3, generator=generator), torch.arange(9) % 2
    posterior = NetworkPosterior(Rounding(3, 2), inputs, targets)
    position = posterior.initial_position(1, generator)
    many, few = (posterior.outputs(position, x[None]) for x in (inputs, inputs[:2]))
    assert 1e-4 < (many[:, :2] - few).abs().max() < 2e-3


def test_right_modules_are_left_alone(generator):
    """Layers of ordinary networks, in training mode and float32, of many inputs."""
    shape = torch.randn(150, 4, 6, 6, generator=generator)
    modules = [
        nn.Sequential(
            nn.Conv2d(4, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(64, 1)
        ),
        nn.Sequential(
            nn.InstanceNorm2d(4, affine=True), nn.Flatten(), nn.Linear(144, 1)
        ),
        nn.Sequential(nn.Flatten(), nn.LayerNorm(144), nn.Linear(144, 1)),
        nn.Sequential(
            nn.Flatten(), nn.utils.parametrizations.weight_norm(nn.Linear(144, 1))
        ),
        nn.Sequential(
            nn.Flatten(), nn.Dropout(0.0), nn.AlphaDropout(0.0), nn.Linear(144, 1)
        ),
    ]
    targets = torch.ones(150, 1)
    for module in modules:
        posterior = NetworkPosterior(module, shape, targets, likelihood=Bernoulli())
        position = posterior.initial_position(2, generator)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="torch.func.vmap cannot")
            assert posterior.gradient(position).isfinite().all()


def test_what_a_network_starts_from_and_predicts(generator):
    """Weights have the fan-in, the prior the names; predictions come in their order."""
    inputs = torch.randn(2_345, 4, generator=generator)
    module = nn.Sequential(nn.Conv1d(1, 3, 2), nn.Flatten(), nn.Linear(9, 2))
    around = nn.Sequential(nn.Unflatten(1, (1, 4)), module)
    names = ["1.0.weight", "1.0.bias", "1.2.weight", "1.2.bias"]
    variances = dict(zip(names, (1.0, 4.0, 0.25, 9.0), strict=True))
    posterior = NetworkPosterior(around, inputs, torch.arange(2_345) % 2, variances)
    start = posterior.initial_position(20_000, generator, 3.0)
    parts = posterior.named(start)
    for name, fan_in in (("1.0.weight", 2), ("1.2.weight", 9)):
        assert float(parts[name].std()) == pytest.approx(3 / fan_in**0.5, rel=0.02)
    assert (parts["1.0.bias"] == 0).all() and (parts["1.2.bias"] == 0).all()
    again = posterior.named(posterior.initial_position(20_000, generator))["1.2.weight"]
    assert float(again.std()) == pytest.approx(1 / 3, rel=0.02)
    place = torch.randn(3, posterior.dim, generator=generator)
    parts = posterior.named(place)
    expected = -0.5 * sum(
        x.flatten(1).square().sum(-1) / variances[name] for name, x in parts.items()
    )
    torch.testing.assert_close(posterior.log_prior(place), expected)
    by_hand = torch.stack(
        [
            functional_call(around, {k: x[c] for k, x in parts.items()}, (inputs,))
            for c in range(3)
        ]
    )
    found = posterior.predict(place, inputs)
    torch.testing.assert_close(found, by_hand.softmax(-1))
    torch.testing.assert_close(
        posterior.log_predict(place, inputs), by_hand.log_softmax(-1)
    )
    for wrong in (place[0], place[:, 1:], place[None], None):
        with pytest.raises(
            ValueError, match=rf"position must be .*chains, {posterior.dim}"
        ):
            posterior.predict(wrong, inputs)
    for wrong in (dict.fromkeys(names[:3], 1.0), variances | {"more": 1.0}):
        with pytest.raises(ValueError, match="prior_variance must be"):
            NetworkPosterior(around, inputs, torch.arange(2_345) % 2, wrong)
