"""Kernels inside of Pyro's MCMC: bit for bit those of ``sample``, against exact answers,
chains in processes, and what is refused.
"""

import importlib
import json
import sys
from types import SimpleNamespace

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro.infer import MCMC, Predictive

from sgmc import models, sample
from sgmc.door.sampling import DivergenceError
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD, SGNUTS, NaiveSGHMC
from sgmc.models import PyroKernel, PyroPosterior
from sgmc.noise import OnlineNoise
from sgmc.other_kernels import SGNHT, Cyclical, RandomWalkMetropolis
from sgmc.splittings import Splitting, flows
from sgmc.tuning import adapt

DOUBLE = torch.float64
X = torch.linspace(-1.0, 2.0, 12, dtype=DOUBLE)
pytestmark = pytest.mark.filterwarnings("ignore:num_chains")  # one after the other
short = pytest.mark.filterwarnings("ignore::UserWarning")  # what short runs are told


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(DOUBLE)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def many_processors(monkeypatch):
    """Let Pyro run chains in processes, however few processors there are."""
    monkeypatch.setattr("pyro.infer.mcmc.api.mp.cpu_count", lambda: 8)


def run(kernel, model, *arguments, seed=0, chains=1, keywords=None, **settings):
    pyro.set_rng_seed(seed)
    wrapped = PyroKernel(kernel, model)
    mcmc = MCMC(wrapped, num_chains=chains, disable_progbar=True, **settings)
    mcmc.run(*arguments, **(keywords or {}))
    return mcmc


def every_kind(x, n=None):
    """A number, one that is positive, one below it, a simplex, a vector, a plate."""
    mean = pyro.sample("mean", dist.Normal(0.0, 2.0))
    high = pyro.sample("high", dist.LogNormal(0.0, 0.5))
    pyro.sample("low", dist.Uniform(0.0, high))
    shares = pyro.sample("shares", dist.Dirichlet(torch.ones(3)))
    slope = pyro.sample("slope", dist.Normal(torch.zeros(2), 1.0).to_event(1))
    pyro.deterministic("twice", 2 * slope)
    with pyro.plate("data", len(x), subsample_size=n) as i:
        location = mean + slope[0] * x[i] * shares[0]
        pyro.sample("x", dist.Normal(location, high), obs=x[i])


STOCHASTIC = {
    "SGLD": SGLD(0.001),
    "SGLD, falling": SGLD(lambda t: 0.001 / (1 + t)),
    "SGHMC": SGHMC(0.02, friction=2.0, num_steps=3),
    "SGHMC, online": SGHMC(0.02, 20.0, OnlineNoise("diagonal")),
    "SGNUTS": SGNUTS(0.02, friction=2.0, max_depth=3),
    "SGNHT": SGNHT(0.02, diffusion=1.0),
    "Splitting": Splitting(flows.baoab(0.02, 1.0)),
    "Cyclical": Cyclical(SGLD, 0.001, cycle_length=4, num_draws=2),
}
EXACT = {
    "HMC": HMC(0.1, 3, jitter=0.4),
    "NUTS": NUTS(0.2, max_depth=3),
    "NaiveSGHMC": NaiveSGHMC(0.02, 3, metropolis=True),
    "RandomWalkMetropolis": RandomWalkMetropolis(0.1),
}


@short
@pytest.mark.parametrize("name", [*STOCHASTIC, *EXACT])
def test_every_kernel_draws_bit_for_bit_what_sample_draws(name, generator):
    """The same potential, seed, steps and minibatches: nothing is Pyro's but the loop."""
    kernel, n = (STOCHASTIC | EXACT)[name], 5 if name in STOCHASTIC else None
    posterior = PyroPosterior(every_kind, X, n)
    start = posterior.initial_position(1, generator, 0.5)
    mcmc = run(
        kernel,
        every_kind,
        X,
        keywords={"n": n},
        num_samples=6,
        warmup_steps=3,
        initial_params=posterior.parameters.cut(start[0]),
    )
    draws = sample(
        kernel,
        posterior,
        start,
        6,
        warm_up=3,
        seed=mcmc.kernel.seed,
        collect=posterior.named,
    )
    found = mcmc.get_samples()
    assert set(found) == set(draws.samples) > {"low", "twice"}
    for site, value in draws.samples.items():
        assert torch.equal(found[site], value[:, 0]), site
    known, said = draws.statistics, mcmc.diagnostics()
    assert ("divergences" in said) == ("diverged" in known)
    if "diverged" in known:
        divergences = known["diverged"].nonzero()[:, 0]
        assert said["divergences"]["chain 0"] == list(map(int, divergences))
    assert ("acceptance rate" in said) == ("acceptance" in known)
    if "acceptance" in known:
        rate = said["acceptance rate"]["chain 0"]
        assert rate == pytest.approx(float(known["acceptance"].mean()))


def conjugate(x, n=None):
    mean = pyro.sample("mean", dist.Normal(0.0, 0.5))
    with pyro.plate("data", len(x), subsample_size=n) as i:
        pyro.sample("x", dist.Normal(mean, 1.0), obs=x[i])


EFFECT = torch.tensor([28.0, 8, -3, 7, -1, 1, 18, 12], dtype=DOUBLE)
ERROR = torch.tensor([15.0, 10, 16, 11, 9, 11, 10, 18], dtype=DOUBLE)


def schools(effect, error):
    mean = pyro.sample("mean", dist.Normal(0.0, 5.0))
    spread = pyro.sample("spread", dist.HalfNormal(5.0))
    with pyro.plate("schools", 8):
        deviation = pyro.sample("deviation", dist.Normal(0.0, 1.0))
    theta = pyro.deterministic("theta", mean + spread * deviation)
    with pyro.plate("data", 8):
        pyro.sample("effect", dist.Normal(theta, error), obs=effect)


@short
def test_chains_have_seeds_of_their_own_that_follow_pyros():
    first, again, other = (
        run(
            SGLD(0.001),
            conjugate,
            X,
            4,
            seed=s,
            chains=2,
            num_samples=3,
            warmup_steps=1,
        )
        for s in (5, 5, 6)
    )
    by_chain = [
        m.get_samples(group_by_chain=True)["mean"] for m in (first, again, other)
    ]
    assert torch.equal(by_chain[0], by_chain[1])
    assert len(torch.cat([by_chain[0], by_chain[2]]).unique()) == 4 * 3


@short
@pytest.mark.parametrize(
    "context", ["fork", pytest.param("spawn", marks=pytest.mark.slow)]
)
def test_chains_in_processes_are_chains_alone(context, many_processors):
    """Pyro's seeds of processes are consecutive."""
    kernel = SGHMC(0.02, torch.tensor(2.0), OnlineNoise("scalar"), num_steps=2)
    settings = dict(num_samples=4, warmup_steps=2)
    together = run(
        kernel, every_kind, X, 5, seed=7, chains=2, mp_context=context, **settings
    )
    together.summary()
    found = together.get_samples(group_by_chain=True)
    for chain in (0, 1):
        alone = run(kernel, every_kind, X, 5, seed=7 + chain, **settings).get_samples()
        for site, value in alone.items():
            assert torch.equal(found[site][chain], value), site


def test_processes_have_one_thread(many_processors):
    """With more a fork hangs in its first operation that wants those of its parent."""

    def threads():
        pyro.sample("x", dist.Normal(0.0, 1.0))
        pyro.deterministic("threads", torch.tensor(float(torch.get_num_threads())))

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        found = [
            run(SGLD(0.1), threads, chains=chains, mp_context=context, num_samples=1)
            for chains, context in ((1, None), (2, "fork"))
        ]
    finally:
        torch.set_num_threads(before)
    assert [m.get_samples()["threads"].tolist() for m in found] == [[2.0], [1.0, 1.0]]


@short
def test_a_process_says_that_its_start_is_that_of_all(monkeypatch):
    before, name = torch.get_num_threads(), "sgmc.models.pyro_kernel.current_process"
    monkeypatch.setattr(name, lambda: SimpleNamespace(name="1"))
    try:
        with pytest.warns(UserWarning, match="every chain starts from the last"):
            run(
                SGLD(0.01),
                conjugate,
                X,
                num_samples=1,
                initial_params={"mean": torch.tensor(0.0)},
            )
    finally:
        torch.set_num_threads(before)


def test_chains_start_where_they_are_told():
    start = {"mean": torch.tensor([1.0, -3.0]), "spread": torch.tensor([0.5, 2.0])}
    start["deviation"] = torch.zeros(2, 8)
    settings = dict(num_samples=1, warmup_steps=0, chains=2)
    mcmc = run(HMC(1e-9, 1), schools, EFFECT, ERROR, initial_params=start, **settings)
    found = mcmc.get_samples()
    torch.testing.assert_close(found["mean"], start["mean"])
    torch.testing.assert_close(found["spread"], start["spread"].exp())
    mcmc = MCMC(mcmc.kernel, 1, 0, disable_progbar=True)  # and no longer after that
    mcmc.run(EFFECT, ERROR)
    assert (mcmc.get_samples()["mean"] - start["mean"]).abs().min() > 1e-3
    start["deviation"] = torch.zeros(2, 7)
    with pytest.raises(ValueError, match=r"initial_params.*\('chains', 8\).*\(1, 7\)"):
        run(HMC(0.1, 1), schools, EFFECT, ERROR, initial_params=start, **settings)


@short
def test_a_kernel_is_tuned_before_and_brings_its_starts(generator):
    """As the docstring says, with an axis of chains in ``initial_params``."""
    posterior = PyroPosterior(schools, EFFECT, ERROR)
    start = posterior.initial_position(2, generator)
    kernel, position = adapt(NUTS(1.0), posterior, start, 20, progress=False)
    start = posterior.parameters.cut(position)
    mcmc = run(
        kernel,
        schools,
        EFFECT,
        ERROR,
        chains=2,
        num_samples=3,
        warmup_steps=1,
        initial_params=start,
    )
    assert mcmc.get_samples(group_by_chain=True)["theta"].shape == (2, 3, 8)


@short
def test_what_pyro_and_arviz_make_of_it(capsys):
    mcmc = run(NUTS(0.1), conjugate, X, chains=2, num_samples=20, warmup_steps=5)
    mcmc.summary()
    printed = capsys.readouterr().out
    assert "mean" in printed and "Number of divergences: 0" in printed
    assert {"mean", "divergences", "acceptance rate"} == set(mcmc.diagnostics())
    arviz = pytest.importorskip("arviz")  # which takes seconds
    data = arviz.from_pyro(mcmc, log_likelihood=False)
    assert (
        data.posterior["mean"].shape == data.sample_stats["diverging"].shape == (2, 20)
    )
    drawn = Predictive(conjugate, mcmc.get_samples(), return_sites=["x"])(X)
    assert drawn["x"].shape == (40, 12)


@short
def test_the_progress_bar_tells_what_steps_learned():
    said = []
    run(
        HMC(0.1, 2),
        conjugate,
        X,
        num_samples=60,
        warmup_steps=1,
        hook_fn=lambda kernel, *_: said.append(
            json.loads(json.dumps(kernel.logging()))
        ),
    )
    assert said[-1].keys() == {"acceptance", "energy", "num_gradients"}
    assert 0.5 < float(said[-1]["acceptance"]) <= 1


@short
def test_a_hook_may_keep_the_samples_it_is_given():
    """The next step, which overwrites the position, leaves them what they were."""
    kept, many = [], dict(num_samples=5, warmup_steps=0)
    keep = lambda kernel, samples, *_: kept.append(samples["mean"])
    mcmc = run(SGHMC(0.02, 2.0), conjugate, X, hook_fn=keep, **many)
    assert torch.equal(torch.stack(kept), mcmc.get_samples()["mean"])
    assert len({float(x) for x in kept}) == 5


@pytest.mark.parametrize("chains", [1, 2])
def test_a_divergence_says_where_and_why(chains, many_processors):
    with pytest.raises(
        DivergenceError, match=r"step \d+ of SGHMC.*5\.0.*a smaller step_size"
    ):
        run(
            SGHMC(5.0, 0.1),
            conjugate,
            X,
            chains=chains,
            num_samples=900,
            warmup_steps=0,
        )


def test_samples_that_are_too_wide_are_told():
    """Leapfrog without rejections has the variance 1/(1 − ε²/4), here more than 4."""

    def standard():
        pyro.sample("x", dist.Normal(torch.zeros(200), 1.0).to_event(1))
        pyro.sample("y", dist.Normal(0.0, 1.0), obs=torch.tensor(0.0))

    kernel = HMC(1.75, 5, metropolis=False, jitter=0.5)
    with pytest.warns(UserWarning, match="too wide"):
        run(kernel, standard, num_samples=200, warmup_steps=10)


def test_the_width_is_that_of_samples_without_the_warm_up(monkeypatch):
    looked = []
    monkeypatch.setattr(
        "sgmc.models.pyro_kernel.remark_target",
        lambda *given: looked.append(len(given[2])) or [],
    )
    model = lambda: pyro.sample("x", dist.Normal(0.0, 1.0))
    run(HMC(1.0, 2), model, num_samples=20, warmup_steps=7)
    assert looked == [20]


def test_a_chain_that_has_not_arrived_is_told():
    with pytest.warns(UserWarning, match="halves of the chain do not agree"):
        run(
            SGHMC(0.01, 3.0),
            conjugate,
            X,
            num_samples=200,
            warmup_steps=0,
            initial_params={"mean": torch.tensor(30.0)},
        )


def discrete():
    which = pyro.sample("which", dist.Bernoulli(0.5))
    pyro.sample("x", dist.Normal(which, 1.0), obs=torch.tensor(1.0))


def local(n=2):
    with pyro.plate("data", 5, subsample_size=n) as i:
        own = pyro.sample("own", dist.Normal(0.0, 1.0))
        pyro.sample("x", dist.Normal(own, 1.0), obs=torch.ones(5)[i])


REFUSED = [
    (SGLD(0.1), local, (), r"'own'.*'data'"),
    (NUTS(0.1), conjugate, (X, 5), r"'data'.*\b5\b.*\b12\b.*NUTS"),
    (SGLD, conjugate, (X,), "kernel.*class SGLD"),
    (SGLD(0.1), 3, (), r"model.*\b3"),
    (pyro.infer.NUTS(conjugate), conjugate, (X,), "kernel.*NUTS"),
]


@pytest.mark.parametrize(("kernel", "model", "arguments", "reason"), REFUSED)
def test_what_is_refused(kernel, model, arguments, reason):
    with pytest.raises(ValueError, match=reason):
        run(kernel, model, *arguments, num_samples=1)


def test_a_refusal_comes_out_of_a_process(many_processors):
    with pytest.raises(ValueError, match=r"'which'.*discrete"):
        run(SGLD(0.1), discrete, chains=2, num_samples=1)


def test_without_pyro_the_room_opens_and_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyro", None)
    for name in ("pyro_kernel", "pyro_model"):
        monkeypatch.delitem(sys.modules, f"sgmc.models.{name}")
    importlib.reload(models)
    assert not hasattr(models, "Nobody")
    for name in ("PyroKernel", "PyroPosterior"):
        with pytest.raises(ModuleNotFoundError, match="pip install pyro-ppl"):
            getattr(models, name)


@short
def test_what_steps_learned_is_told_without_the_warm_up():
    """And in the progress bar of the last fifty steps."""
    wrapped = PyroKernel(HMC(0.5, 2), lambda: pyro.sample("x", dist.Normal(0.0, 1.0)))
    pyro.set_rng_seed(0)
    wrapped.setup(3)
    wrapped.positions = [torch.randn(1, 1) for _ in range(63)]
    rate = lambda k: 0.25 if k < 13 else 0.5 + 0.25 * (k % 2)
    bad = {0, 3, 20, 62}
    wrapped.infos = [
        {
            "energy": torch.tensor([0.5]),
            "acceptance": torch.tensor([rate(k)]),
            "diverged": torch.tensor([k in bad]),
        }
        for k in range(63)
    ]
    told = {"energy": "0.5", "acceptance": "0.625", "diverged": "0.04"}
    assert wrapped.logging() == told
    found = wrapped.diagnostics()
    assert found["divergences"] == [0, 17, 59]
    assert found["acceptance rate"] == pytest.approx((10 * 0.25 + 50 * 0.625) / 60)
    wrapped.kernel = SGLD(0.1)
    wrapped.infos = [{"num_gradients": torch.tensor([1])}] * 63
    assert wrapped.diagnostics() == {}


def test_starts_of_other_shapes_are_refused():
    def model():
        pyro.sample("a", dist.Normal(torch.zeros(2), 1.0).to_event(1))
        pyro.sample("b", dist.HalfNormal(1.0))

    def started(params):
        wrapped = PyroKernel(HMC(0.5, 2), model)
        wrapped.initial_params = params
        wrapped.setup(0)
        return wrapped

    wrapped = started({"b": torch.tensor(0.5), "a": torch.tensor([1.0, 2.0])})
    assert wrapped.state.position.tolist() == [[1.0, 2.0, 0.5]]
    assert wrapped.start is None
    params = wrapped.initial_params
    assert params["a"].tolist() == [1, 2] and float(params["b"].log()) == pytest.approx(
        0.5
    )
    for wrong in ({"a": torch.zeros(2)}, {"a": torch.zeros(1, 2), "b": torch.zeros(1)}):
        with pytest.raises(ValueError, match=r"initial_params must have .*'a'"):
            started(wrong)
