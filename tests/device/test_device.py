"""What an accelerator may change: rounding, TF32, where a run goes on, and memory.

They need CUDA; ``SGMC_DEVICE=cpu`` runs them on the processor, on which they must hold,
too. False alarms: 1 in 10,000 for each test."""

import os

import pytest
import torch
from torch import nn

from booklib.models.networks import multilayer_perceptron
from sgmc import sample
from sgmc.checkpoints import Checkpoint, CheckpointError
from sgmc.door import sampling
from sgmc.door.draws import Draws
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD, NaiveSGHMC
from sgmc.other_kernels import AMAGOLD, RandomWalkMetropolis
from sgmc.posteriors import NetworkPosterior
from sgmc.splittings import Splitting, flows, langevin_chain, linear_chain, sghmc_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient
from tests.checks import assert_covariance

DEVICE = os.environ.get("SGMC_DEVICE", "cuda")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        DEVICE == "cuda" and not torch.cuda.is_available(),
        reason="there is no CUDA device here; SGMC_DEVICE=cpu runs these on the CPU",
    ),
]
CHAINS, DIM = 10_000, 4
TURN = torch.linalg.qr(
    torch.randn(DIM, DIM, generator=torch.Generator().manual_seed(0))
)[0]
PRECISION = TURN @ torch.diag(torch.tensor([1.0, 2.0, 3.0, 4.0])) @ TURN.T
COVARIANCE = torch.linalg.inv(PRECISION)
# each kernel with the exact law of its chain; those with a correction have the target's
LAWS = {
    "SGLD": (
        SGLD(0.1),
        langevin_chain(PRECISION, 0.1, 4.0).stationary_covariance(),
    ),
    "SGHMC": (
        SGHMC(0.2, 3.0, 0.3),
        sghmc_chain(PRECISION, 0.2, 3.0, 4.0, 0.3).stationary_covariance(),
    ),
    "BAOAB": (
        Splitting(flows.baoab(0.3, 1.0)),
        linear_chain(flows.baoab(0.3, 1.0), PRECISION, 4.0).stationary_covariance(),
    ),
    "HMC": (HMC(0.3, 5), COVARIANCE),
    "NUTS": (NUTS(0.4), COVARIANCE),
    "naive SGHMC, corrected": (NaiveSGHMC(0.3, 4, metropolis=True), COVARIANCE),
    "AMAGOLD": (AMAGOLD(0.2, 0.5, 4), COVARIANCE),
    "random walk": (RandomWalkMetropolis(0.7), COVARIANCE),
}
NOISY = ("SGLD", "SGHMC", "BAOAB", "AMAGOLD", "naive SGHMC, corrected")


def seeded(seed=0):
    return torch.Generator(DEVICE).manual_seed(seed)


@pytest.mark.parametrize("precision", ["highest", "high"])
@pytest.mark.parametrize("name", LAWS)
def test_ten_thousand_chains_have_the_exact_law_of_their_kernel(name, precision):
    """In float32, and with TF32 in the products of matrices."""
    kernel, law = LAWS[name]
    target = Gaussian(COVARIANCE.to(DEVICE))
    potential = NoisyGradient(target, 4.0) if name in NOISY else target
    law = law[:DIM, :DIM]
    root = torch.linalg.cholesky(law).float().to(DEVICE)
    noise = torch.randn(CHAINS, DIM, device=DEVICE, generator=seeded())
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        draws = sample(
            kernel, potential, noise @ root.T, 3, warm_up=60, thinning=20, seed=1
        )
    finally:
        torch.set_float32_matmul_precision(before)
    assert draws.samples.device.type == DEVICE
    assert_covariance(draws.samples.cpu(), law.double())


def test_a_run_goes_on_where_it_began_and_its_samples_go_anywhere(
    tmp_path, monkeypatch
):
    potential, start = NoisyGradient(DoubleWell(), 4.0), torch.zeros(8, 1)
    kernel, path = SGHMC(0.1, 3.0, 0.2, num_steps=5), tmp_path / "run.pt"
    whole = sample(kernel, potential, start.to(DEVICE), 40, seed=3)

    advance, given = sampling._Run.advance, dict(seed=3)
    given["checkpoint"] = Checkpoint(path, every=0)

    def stopped(run):
        if run.done == 25:
            raise KeyboardInterrupt
        advance(run)

    with monkeypatch.context() as patch, pytest.warns(UserWarning, match="interrupted"):
        patch.setattr(sampling._Run, "advance", stopped)
        sample(kernel, potential, start.to(DEVICE), 40, **given)
    if DEVICE != "cpu":
        with pytest.raises(CheckpointError, match="another"):
            sample(kernel, potential, start, 40, **given)
    resumed = sample(kernel, potential, start.to(DEVICE), 40, **given)
    assert torch.equal(resumed.samples, whole.samples)
    whole.save(tmp_path / "draws.pt")
    assert torch.equal(Draws.load(tmp_path / "draws.pt").samples, whole.samples.cpu())


def pictures():
    module = multilayer_perceptron([784, 100, 10]).to(DEVICE)
    inputs = torch.rand(2_000, 784, device=DEVICE, generator=seeded())
    targets = torch.randint(10, (2_000,), device=DEVICE, generator=seeded(1))
    return module, inputs, targets


def test_without_noise_sghmc_is_the_fused_sgd_with_momentum():
    """SGD moves after its momentum and Algorithm 2 before, so it is one step behind."""
    module, inputs, targets = pictures()
    posterior = NetworkPosterior(module, inputs, targets)
    start = nn.utils.parameters_to_vector(module.parameters()).detach()[None].clone()
    kernel = SGHMC.from_learning_rate(1e-6, 0.1, temperature=0.0, num_steps=21)
    found = sample(kernel, posterior, start, 1, progress=False).samples[0, 0]
    settings = dict(momentum=0.9, weight_decay=1 / 2_000, fused=True)
    optimiser = torch.optim.SGD(module.parameters(), 2_000 * 1e-6, **settings)
    for _ in range(20):
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(inputs), targets).backward()
        optimiser.step()
    expected = nn.utils.parameters_to_vector(module.parameters()).detach()
    moved = (expected - start[0]).norm()
    assert moved > 1e-3 and (found - expected).norm() < 1e-3 * moved


def test_a_thousand_kept_networks_take_the_memory_of_their_weights():
    module, inputs, targets = pictures()
    posterior = NetworkPosterior(module, inputs, targets, batch_size=100)
    start = posterior.initial_position(1, seeded())
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
    draws = sample(SGLD(1e-7), posterior, start, 1_000, progress=False)
    size = draws.samples.numel() * 4
    assert draws.samples.shape == (1_000, 1, 79_510)
    if DEVICE == "cuda":
        assert torch.cuda.max_memory_allocated() < 3 * size + 2**28
