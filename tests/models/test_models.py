"""Models as plain functions of named parameters: maps and Jacobians against
differentiation, gradients against enumeration and by hand.
"""

import itertools
import warnings

import arviz
import pytest
import torch
from torch.distributions import (
    Bernoulli,
    Categorical,
    Dirichlet,
    Distribution,
    Exponential,
    Gamma,
    HalfNormal,
    Independent,
    LKJCholesky,
    MixtureSameFamily,
    Normal,
    Poisson,
    Uniform,
    Weibull,
    biject_to,
    constraints,
)
from torch.nn import functional

from sgmc import sample
from sgmc.door.starting import check_start
from sgmc.kernels import NUTS, SGHMC, SGLD
from sgmc.models import NamedPosterior, Parameters
from sgmc.models.named import _beyond
from sgmc.posteriors import LinearRegression
from sgmc.potentials import differentiate

DOUBLE = torch.float64
# All that biject_to of PyTorch knows, each with a shape.
SUPPORTS = {
    "real": (constraints.real, (2, 2)),
    "real_vector": (constraints.real_vector, (3,)),
    "independent": (constraints.independent(constraints.positive, 1), (2, 3)),
    "positive": (constraints.positive, ()),
    "nonnegative": (constraints.nonnegative, (2,)),
    "greater_than": (constraints.greater_than(2.0), (2,)),
    "greater_than_eq": (constraints.greater_than_eq(-1.0), (2,)),
    "less_than": (constraints.less_than(-1.0), (3,)),
    "unit_interval": (constraints.unit_interval, (2,)),
    "interval": (constraints.interval(-1.0, 3.0), (2,)),
    "half_open_interval": (constraints.half_open_interval(0.0, 2.0), (2,)),
    "simplex": (constraints.simplex, (2, 3)),
    "corr_cholesky": (constraints.corr_cholesky, (3, 3)),
    "cat": (
        constraints.cat([constraints.positive, constraints.real], -1, [1, 2]),
        (3,),
    ),
    "stack": (constraints.stack([constraints.positive, constraints.real], -1), (2,)),
}


@pytest.mark.parametrize("name", SUPPORTS)
def test_the_way_there_and_back(name, generator):
    support, shape = SUPPORTS[name]
    parameters = Parameters({"first": (2,), "this": shape}, {"this": support})
    position = torch.randn(5, parameters.dim, generator=generator, dtype=DOUBLE)
    values, _ = parameters.constrain(position)
    assert values["this"].shape == (5, *shape) and support.check(values["this"]).all()
    torch.testing.assert_close(parameters.position(values), position)
    torch.testing.assert_close(parameters.join(parameters.cut(position)), position)


@pytest.mark.parametrize("name", SUPPORTS)
def test_one_position_needs_no_axis_for_chains(name, generator):
    support, shape = SUPPORTS[name]
    parameters = Parameters({"first": (2,), "this": shape}, {"this": support})
    position = torch.randn(3, parameters.dim, generator=generator, dtype=DOUBLE)
    values, log_jacobian = parameters.constrain(position)
    for chain in range(3):
        of_one, own = parameters.constrain(position[chain])
        torch.testing.assert_close(own, log_jacobian[chain])
        for key, value in of_one.items():
            torch.testing.assert_close(value, values[key][chain])


@pytest.mark.parametrize("support", [constraints.positive, constraints.nonnegative])
def test_the_map_onto_positive_numbers_is_that_of_pytorch_bit_for_bit(
    support, generator
):
    position = torch.randn(50, 1, generator=generator)
    values, log_jacobian = Parameters({"x": ()}, {"x": support}).constrain(position)
    onto = biject_to(support)
    assert torch.equal(values["x"], onto(position[:, 0]))
    expected = onto.log_abs_det_jacobian(position[:, 0], values["x"])
    assert torch.equal(log_jacobian, expected)


def free_part(name, value):
    """Take as many entries of a value as it has degrees of freedom."""
    if name == "simplex":
        return value[..., :-1].reshape(-1)
    if name == "corr_cholesky":
        return value[torch.ones(3, 3).tril(-1).bool()]
    return value.reshape(-1)


@pytest.mark.parametrize("name", SUPPORTS)
def test_the_jacobian_is_that_of_differentiation(name, generator):
    support, shape = SUPPORTS[name]
    parameters = Parameters({"this": shape}, {"this": support})
    position = torch.randn(3, parameters.dim, generator=generator, dtype=DOUBLE)
    found = parameters.constrain(position)[1]
    for chain in range(3):
        jacobian = torch.autograd.functional.jacobian(
            lambda x: free_part(name, parameters.constrain(x[None])[0]["this"][0]),
            position[chain],
        )
        torch.testing.assert_close(found[chain], torch.linalg.slogdet(jacobian)[1])


def test_every_map_of_pytorch_is_tried():
    kinds = {type(support) for support, _ in SUPPORTS.values()} | {
        type(constraints.positive)
    }
    known = {
        kind for kind in biject_to._registry if kind.__module__.startswith("torch.")
    }
    assert known <= kinds, known - kinds


def regression(generator, **settings):
    """Robust in no way, but with parameters of three kinds."""
    inputs = torch.randn(7, 3, generator=generator, dtype=DOUBLE)
    targets = torch.randn(7, generator=generator, dtype=DOUBLE)

    def log_prior(p):
        prior = Normal(0.0, 2.0).log_prob(p["slope"]).sum() + HalfNormal(1.0).log_prob(
            p["scale"]
        )
        return prior + Dirichlet(torch.ones(3, dtype=DOUBLE)).log_prob(p["shares"])

    def log_likelihood(p, x, y):
        return Normal(x @ (p["slope"] * p["shares"]), p["scale"]).log_prob(y)

    shapes = {"slope": (3,), "scale": (), "shares": (3,)}
    supports = {"scale": constraints.positive, "shares": constraints.simplex}
    return NamedPosterior(
        shapes, log_prior, log_likelihood, (inputs, targets), supports, **settings
    )


def test_the_mean_over_all_minibatches_is_the_gradient(generator):
    posterior = regression(generator, batch_size=3)
    subsets = torch.tensor(list(itertools.combinations(range(7), 3)))
    position = (
        posterior.initial_position(1, generator).expand(len(subsets), -1).contiguous()
    )
    gradients = posterior.gradient_given(position, subsets)
    assert gradients.std(0).min() > 1e-4  # they are noisy
    torch.testing.assert_close(
        gradients.mean(0), posterior.gradient(position[:1])[0], rtol=1e-10, atol=1e-10
    )
    energies = posterior.energy_given(position, subsets)
    torch.testing.assert_close(
        energies.mean(), posterior.energy(position[:1])[0], rtol=1e-10, atol=1e-10
    )


def test_the_energy_is_the_one_by_hand(generator):
    """The prior and the Jacobian count once, the likelihood N/n times, for many chains
    as for one.
    """
    posterior = regression(generator, batch_size=2)
    position, indices = (
        posterior.initial_position(4, generator),
        torch.tensor([[0, 1], [2, 2], [5, 6], [3, 0]]),
    )

    def by_hand(position):
        totals = []
        for x, rows in zip(position, indices, strict=True):
            slope, log_scale, sticks = x.split([3, 1, 2])
            onto = biject_to(constraints.simplex)
            shares, scale = onto(sticks), log_scale.exp()[0]
            total = (
                Normal(0.0, 2.0).log_prob(slope).sum()
                + HalfNormal(1.0).log_prob(scale)
                + torch.tensor(2.0, dtype=DOUBLE).log()
            )
            total = total + log_scale[0] + onto.log_abs_det_jacobian(sticks, shares)
            inputs, targets = (tensor[rows] for tensor in posterior.data)
            totals.append(
                -total
                - 7
                / 2
                * Normal(inputs @ (slope * shares), scale).log_prob(targets).sum()
            )
        return torch.stack(totals)

    energy, gradient = differentiate(by_hand, position)
    torch.testing.assert_close(posterior.energy_given(position, indices), energy)
    torch.testing.assert_close(posterior.gradient_given(position, indices), gradient)
    alone = [
        posterior.gradient_given(position[c : c + 1], indices[c : c + 1])
        for c in range(4)
    ]
    torch.testing.assert_close(torch.cat(alone), gradient)


def test_a_model_as_functions_is_the_model_as_a_class(generator):
    inputs, targets = (
        torch.randn(*shape, generator=generator, dtype=DOUBLE)
        for shape in ((20, 3), (20,))
    )
    built = LinearRegression(
        inputs, targets, noise_variance=0.25, prior_variance=4.0, batch_size=5
    )
    named = NamedPosterior(
        {"slope": (3,)},
        lambda p: Normal(0.0, 2.0).log_prob(p["slope"]).sum(),
        lambda p, x, y: Normal(x @ p["slope"], 0.5).log_prob(y),
        (inputs, targets),
        batch_size=5,
    )
    draws = [
        sample(
            SGHMC(0.01, friction=1.0),
            posterior,
            torch.zeros(6, 3, dtype=DOUBLE),
            50,
            seed=3,
        ).samples
        for posterior in (built, named)
    ]
    torch.testing.assert_close(*draws)


@pytest.mark.parametrize("kernel", [SGHMC(0.05, friction=2.0), NUTS(0.4)])
def test_three_lines_and_names_in_arviz(kernel, generator):
    posterior = regression(generator)
    start = posterior.initial_position(4, generator, 0.5)
    draws = sample(kernel, posterior, start, 20, collect=posterior.named)
    data = draws.to_arviz()
    assert {key: data.posterior[key].shape for key in data.posterior} == {
        "slope": (4, 20, 3),
        "scale": (4, 20),
        "shares": (4, 20, 3),
    }
    assert (data.posterior["scale"] > 0).all() and {*arviz.summary(data).index} >= {
        "scale",
        "slope[0]",
        "shares[2]",
    }


def fine(**changes):
    settings = dict(
        shapes={"m": ()},
        log_prior=lambda p: -(p["m"] ** 2),
        log_likelihood=lambda p, x: -((x - p["m"]) ** 2),
        data=(torch.ones(3),),
    )
    return NamedPosterior(**settings | changes)


REFUSED = [
    ({"shapes": {}}, r"\bdim\b"),
    ({"shapes": {"m": 3}}, r"positive.*whole"),
    ({"shapes": {"m": (3, -1)}}, "positive whole numbers.*'m'"),
    ({"shapes": [("m", (1,))]}, "^shapes must be"),
    ({"supports": [("m", constraints.positive)]}, "^supports must be"),
    ({"supports": {"s": constraints.positive}}, r"supports has \['s'\]"),
    ({"supports": {"m": constraints.nonnegative_integer}}, "'m' is discrete"),
    ({"supports": {"m": constraints.simplex}}, r"one-to-one map.*'m'.*\(\)"),
    (
        {"shapes": {"m": (2, 2)}, "supports": {"m": constraints.positive_definite}},
        "no one-to-one map",
    ),
    ({"supports": {"m": 3}}, r"support.*'m'.*Constraint"),
    (
        {"log_likelihood": lambda p, x: -((x - p["m"]) ** 2).sum()},
        "one number for each example",
    ),
    ({"log_likelihood": lambda p: p["m"]}, r"log_likelihood.*parameters"),
    ({"log_prior": lambda p: p["mean"]}, r"log_prior.*KeyError.*'mean'.*one type"),
    ({"log_prior": lambda p: "0"}, r"log_prior"),
    ({"log_prior": None}, r"log_prior.*NoneType"),
    ({"shapes": {"m": (2,)}}, r"log_prior.*number.*\(2,\).*\.sum\(\)"),
    ({"batch_size": 4}, "only 3 examples"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        fine(**changes)


def test_a_number_of_python_is_a_density():
    flat = fine(log_prior=lambda p: 0.0, data=(torch.ones(3, dtype=DOUBLE),))
    for chains in (1, 3):
        position = torch.full((chains, 1), 2.0, dtype=DOUBLE)
        assert torch.equal(flat.log_prior(position), torch.zeros(chains, dtype=DOUBLE))
        assert torch.equal(flat.gradient(position), 6 * position - 6)


def test_an_if_runs_chain_after_chain_and_randomness_does_not():
    kink = fine(log_prior=lambda p: p["m"] if p["m"] > 0 else -2 * p["m"])
    smooth = fine(
        log_prior=lambda p: torch.where(p["m"] > 0, p["m"], -2 * p["m"]),
    )
    position = torch.tensor([[1.0], [-2.0], [0.5]])
    with pytest.warns(UserWarning, match=r"one after another.*torch\.where"):
        energy = kink.energy(position)
    assert torch.equal(energy, smooth.energy(position))
    assert torch.equal(kink.gradient(position), smooth.gradient(position))
    random = fine(log_prior=lambda p: p["m"] * torch.rand(()))
    with warnings.catch_warnings(action="error"):  # nothing runs one after another
        for start in (position, position[:1]):
            with pytest.raises(ValueError, match=r"random.*module\.eval\(\)"):
                sample(SGLD(0.01), random, start, 1)


def law(law, **settings):
    """A model whose prior is of a law, at a parameter of three numbers."""
    return fine(
        shapes={"b": (3,), "m": ()},
        log_prior=lambda p: law.log_prob(p["b"]).sum() - p["m"] ** 2,
        **settings,
    )


def observed(law_of, *data, **settings):
    return fine(
        log_likelihood=lambda p, y: law_of(p["m"]).log_prob(y), data=data, **settings
    )


SIGNS, ONE = torch.tensor([1.0, 1.0, 1.0, -1.0]), torch.ones(())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: observed(lambda m: Bernoulli(logits=m), SIGNS),
            r"log_likelihood asks Bernoulli.*value -1.*Boolean.*targets > 0",
        ),
        (
            lambda: observed(lambda m: Independent(Bernoulli(logits=m), 0), SIGNS),
            r"log_likelihood asks Bernoulli.*value -1",
        ),
        (
            lambda: observed(lambda m: Poisson(m.exp()), torch.tensor([1.0, 0.5])),
            r"Poisson.*0\.5.*IntegerGreaterThan",
        ),
        (
            lambda: law(Exponential(ONE)),
            r"log_prior asks Exponential.*supports=\{'b': constraints.*validate_args",
        ),
        (lambda: law(Weibull(1.0, 2.0)), r"Weibull.*supports=\{'b'"),
        (lambda: law(Gamma(2.0, 1.0)), r"Gamma.*supports=\{'b'"),
        (lambda: law(Dirichlet(torch.ones(3))), r"Dirichlet.*supports=\{'b'"),
        (
            lambda: observed(lambda m: Normal(0.0, m), torch.ones(3)),
            r"log_likelihood asks Normal.*scale = -.*supports=\{'m'",
        ),
    ],
)
def test_what_pytorch_would_refuse_is_refused_before_a_run(make, message):
    """Wherever the run begins; some of these densities are NaN, and some are finite and
    would lead the chains away.
    """
    posterior = make()
    position = posterior.initial_position(2, torch.Generator().manual_seed(1)).abs()
    with pytest.raises(ValueError, match=message):
        sample(SGLD(0.001), posterior, position, 1)


def two_boxes(p, x):
    """A mixture of uniforms: each component has minus infinity in the other's box."""
    parts = [Uniform(0.0, 1.0).log_prob(x), Uniform(2.0, 3.0).log_prob(x)]
    shares = [functional.logsigmoid(p["m"]), functional.logsigmoid(-p["m"])]
    return torch.logsumexp(torch.stack(parts) + torch.stack(shares)[:, None], 0)


def mixture(p, x):
    return MixtureSameFamily(
        Categorical(logits=torch.stack([p["m"], -p["m"]])),
        Uniform(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 3.0])),
    ).log_prob(x)


RIGHT = {
    "a support": lambda: law(Exponential(ONE), supports={"b": constraints.positive}),
    "a simplex": lambda: fine(
        shapes={"m": (), "b": (50,)},
        log_prior=lambda p: Dirichlet(torch.ones(50)).log_prob(p["b"]) - p["m"] ** 2,
        supports={"b": constraints.simplex},
    ),
    "a matrix": lambda: fine(
        shapes={"m": (), "b": (30, 30)},
        log_prior=lambda p: LKJCholesky(30, 2.0).log_prob(p["b"]) - p["m"] ** 2,
        supports={"b": constraints.corr_cholesky},
    ),
    "minus infinity in a part": lambda: fine(
        log_likelihood=two_boxes, data=(torch.tensor([0.5, 2.5, 2.2]),)
    ),
    "a mixture": lambda: fine(
        log_likelihood=mixture, data=(torch.tensor([0.5, 2.5, 2.2]),)
    ),
    "a wall": lambda: law(Uniform(-0.5, 0.5)),
    "meant so": lambda: observed(
        lambda m: Poisson(m.exp(), validate_args=False), torch.tensor([1.0, 0.5])
    ),
    "hidden": lambda: fine(
        log_likelihood=lambda p, y: torch.where(
            y >= 0, Bernoulli(logits=p["m"]).log_prob(y), 0.0
        ),
        data=(SIGNS,),
    ),
    "times zero": lambda: fine(
        log_likelihood=lambda p, y: (y >= 0) * Bernoulli(logits=p["m"]).log_prob(y),
        data=(SIGNS,),
    ),
    "missing": lambda: fine(
        log_likelihood=lambda p, y: torch.where(
            y.isnan(), 0.0, Normal(p["m"], 1.0).log_prob(y.nan_to_num())
        ),
        data=(torch.tensor([1.0, torch.nan]),),
    ),
    "at a border": lambda: observed(lambda m: HalfNormal(m.exp()), torch.zeros(3)),
    "a value of Python": lambda: fine(
        log_prior=lambda p: Normal(p["m"], 1.0).log_prob(0.0)
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_models_are_left_alone(name):
    posterior, far = RIGHT[name](), 20.0 if name == "a support" else 0.1
    position = posterior.initial_position(2, torch.Generator().manual_seed(1), far)
    methods = {law: law.log_prob for law in (Normal, Exponential, Uniform)}
    check_start(posterior, position, 0)
    assert {law: law.log_prob for law in methods} == methods


def test_a_border_and_rounding_are_inside():
    near = torch.tensor([[0.5, 0.500002], [0.5, 0.6], [-0.1, 1.1]])
    assert _beyond(constraints.simplex, near).tolist() == [False, True, True]
    assert not _beyond(constraints.positive, torch.tensor([0.0, torch.nan])).any()


@pytest.mark.parametrize("validated", [True, False])
def test_the_validation_of_distributions_is_put_back_as_it_was(validated):
    before = Distribution._validate_args
    try:
        Distribution.set_default_validate_args(validated)
        fine().energy(torch.zeros(1, 1))
        assert Distribution._validate_args is validated
    finally:
        Distribution.set_default_validate_args(before)


def test_all_data_are_looked_at():
    y = torch.ones(2_500)
    y[2_100] = -1
    posterior = observed(lambda m: Bernoulli(logits=m), y)
    position, generator = torch.zeros(1, 1), torch.Generator().manual_seed(0)
    with pytest.raises(ValueError, match="Bernoulli"):
        posterior.check(position, generator)


def test_positions_of_any_number_of_axes_are_cut():
    parameters = Parameters({"a": (1,), "b": (2, 2), "c": ()})
    position = torch.arange(36.0).view(2, 3, 6)
    for place in (position, position[1], position[1, 2]):
        cut = parameters.cut(place)
        assert torch.equal(cut["a"][..., 0], place[..., 0])
        assert torch.equal(cut["b"].flatten(-2), place[..., 1:5])
        assert torch.equal(cut["c"], place[..., 5])
    assert parameters.dim == 6
    assert torch.equal(parameters.join(parameters.cut(position[0])), position[0])


def test_starts_are_uniform_on_both_sides_of_zero(generator):
    model = fine(shapes={"m": (), "b": (4,)}, data=(torch.ones(3, dtype=DOUBLE),))
    for radius in (2.0, 0.25):
        given = () if radius == 2.0 else (radius,)
        start = model.initial_position(20_000, generator, *given)
        assert start.shape == (20_000, 5) and start.dtype == DOUBLE
        assert 0.999 * radius < -start.min() <= radius and 0.999 * radius < start.max()
        assert start.max() <= radius and start.mean(0).abs().max() < 0.02 * radius
        assert (start.var(0) * 3 / radius**2 - 1).abs().max() < 0.03
    for wrong in ((0, generator), (2, 7), (2, generator, 0.0)):
        with pytest.raises(ValueError, match=r"^(chains|generator|radius)"):
            model.initial_position(*wrong)


def test_laws_are_looked_at_on_both_sides_of_zero_whichever_comes_first(generator):
    """The scale m is right where the run begins, and wrong on one side."""
    for sign in (1, -1):
        scale = lambda p, y, sign=sign: Normal(0.0, sign * p["m"]).log_prob(y)
        for start in (0.3, 1.0):
            with pytest.raises(ValueError, match="scale"):
                fine(log_likelihood=scale).check(
                    torch.full((2, 1), sign * start), generator
                )


def test_values_of_several_numbers_of_chains_are_refused():
    parameters = Parameters({"a": (), "b": (2,)}, {"a": constraints.positive})
    right = {"a": torch.ones(3), "b": torch.ones(3, 2)}
    assert parameters.position(right).shape == (3, 3)
    for wrong in (
        right | {"a": torch.ones(2)},
        right | {"b": torch.ones(3, 3)},
        right | {"more": torch.ones(3)},
        right | {"a": 1.0},
        {"a": torch.ones(()), "b": torch.ones(2)},
        {"a": torch.ones(3)},
        {},
    ):
        with pytest.raises(ValueError, match=r"^values must have .*'a': \('chains',\)"):
            parameters.position(wrong)
    for outside in (torch.zeros(3), -torch.ones(3)):
        with pytest.raises(ValueError, match="inside of their supports"):
            parameters.position(right | {"a": outside})
