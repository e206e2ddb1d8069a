"""Data that stay in files: written from a stream, read by number, and never in memory
as a whole.
"""

import contextlib
import gc
import os
import re
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyro
import pytest
import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
)

from sgmc import sample
from sgmc.checkpoints import fingerprint
from sgmc.disk import from_disk, to_disk
from sgmc.door.sampling import DivergenceError
from sgmc.kernels import SGHMC
from sgmc.models import NamedPosterior
from sgmc.models.pyro_model import PyroPosterior
from sgmc.posteriors import Gaussian, LinearRegression, NetworkPosterior


def loader(source, total=23, **settings):
    inputs = torch.randn(total, 3, 2, generator=source)
    targets, number = (
        torch.arange(total),
        torch.arange(total, dtype=torch.uint8)[:, None],
    )
    return (inputs, targets, number), DataLoader(
        TensorDataset(inputs, targets, number), batch_size=5, **settings
    )


def test_what_was_written_is_what_was_given(generator, tmp_path):
    given, stream = loader(generator)
    for found in (
        to_disk(stream, tmp_path / "new" / "folder"),
        from_disk(str(tmp_path / "new" / "folder")),
    ):
        assert len(found) == 3
        for one, other in zip(found, given, strict=True):
            assert one.dtype == other.dtype and torch.equal(one, other)
    for place, other in enumerate(given):  # plain NumPy files
        np.testing.assert_array_equal(
            np.load(tmp_path / "new" / "folder" / f"{place}.npy"), other.numpy()
        )


@pytest.mark.parametrize("stream", [list, iter])
def test_batches_whose_axes_were_turned_are_written_as_they_read(stream, tmp_path):
    turned = [torch.arange(12.0).reshape(4, 3).T + k for k in range(2)]
    spread = torch.arange(36).reshape(6, 3, 2)[..., ::2]
    found = to_disk(stream(zip(turned, spread.split(3), strict=True)), tmp_path)
    assert torch.equal(found[0], torch.cat(turned)) and torch.equal(found[1], spread)


def test_the_head_has_room_for_any_number(generator, tmp_path):
    """The head is written before N is known, and again after: it must not grow into the
    data.
    """
    inputs = torch.arange(100_003.0)
    assert torch.equal(
        to_disk(([piece] for piece in inputs.split(1)), tmp_path)[0], inputs
    )


def test_a_shuffled_loader_is_read_in_the_order_of_its_data(generator, tmp_path):
    """Neither its generator nor the global one is asked for a number."""
    given, stream = loader(generator, shuffle=True, drop_last=True, generator=generator)
    torch.manual_seed(3)
    before = generator.get_state()
    assert all(map(torch.equal, to_disk(stream, tmp_path), given))
    assert torch.equal(generator.get_state(), before)
    found = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(found, torch.rand(1))


def test_files_larger_than_the_memory(tmp_path):
    """One file of twice the machine's memory, with holes, of which a few examples are
    looked at; no warning comes of it.
    """
    rows = 2 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4_096
    stored = np.lib.format.open_memmap(
        tmp_path / "0.npy", mode="w+", dtype=np.float32, shape=(rows, 1_024)
    )
    stored[rows - 1] = 1.0
    with warnings.catch_warnings(action="error"):
        (inputs,) = from_disk(tmp_path)
    posterior = NamedPosterior(
        {"mean": ()},
        lambda p: 0 * p["mean"],
        lambda p, x: -0.5 * (x.mean(-1) - p["mean"]).square(),
        (inputs,),
        batch_size=2,
    )
    gradient = posterior.gradient_given(
        torch.zeros(1, 1), torch.tensor([[0, rows - 1]])
    )
    torch.testing.assert_close(gradient, torch.tensor([[-rows / 2]]))


def test_a_run_from_disk_is_the_run_from_memory(generator, tmp_path):
    """The same minibatches, bit for bit the same draws, and for a checkpoint the same
    data.
    """
    data = torch.randn(30, 3, generator=generator), torch.randn(30, generator=generator)
    stored = to_disk(DataLoader(TensorDataset(*data), batch_size=7), tmp_path)
    posteriors = [LinearRegression(*x, batch_size=4) for x in (data, stored)]
    assert fingerprint(posteriors[0]) == fingerprint(posteriors[1])
    draws = [
        sample(SGHMC(0.01, friction=1.0), posterior, torch.zeros(3, 3), 20).samples
        for posterior in posteriors
    ]
    assert torch.equal(*draws)


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "no examples"),
        ([{"x": torch.ones(3)}], r"tensors.*dict"),
        ([torch.ones(3, dtype=torch.bfloat16)], r"type.*NumPy"),
        ([(torch.ones(3), [1, 2, 3])], r"tensors.*\['Tensor', 'list'\]"),
        ([(torch.ones(3), torch.ones(2))], "must be alike"),
        ([(torch.ones(3, 2),), (torch.ones(3, 1),)], "must be alike"),
        ([(torch.ones(3),), (torch.ones(3).double(),)], "must be alike"),
    ],
)
def test_streams_that_are_refused_leave_nothing_behind(batches, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        to_disk(batches, tmp_path)
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten_or_made_up(generator, tmp_path):
    to_disk(loader(generator)[1], tmp_path)
    with pytest.raises(FileExistsError, match=r"data.*from_disk"):
        to_disk(loader(generator)[1], tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no data.*to_disk"):
        from_disk(tmp_path / "elsewhere")


NUMBERS = torch.arange(23.0)
DATA = TensorDataset(NUMBERS)
WEIGHTS = torch.arange(1.0, 24)
CHANCE = partial(torch.rand, ())  # which goes to a worker, as a lambda does not


class Endless(RandomSampler):
    """Goes through the data again and again, as samplers of runs without epochs do."""

    def __iter__(self):
        while True:
            yield from super().__iter__()


class Changing(Dataset):
    """Examples of which the last few change by a random number."""

    def __init__(self, number=200, changing=180, draw=CHANCE):
        self.number, self.changing, self.draw = number, changing, draw

    def __len__(self):
        return self.number

    def __getitem__(self, index):
        index = torch.as_tensor(index)
        return index + (index >= self.changing) * self.draw()


class Stream(IterableDataset):
    """Numbers, shared out among the workers or not, shuffled or not, changed or not."""

    def __init__(self, number=23, shared=True, shuffled=False, changed=0.0, rounds=1):
        self.number, self.shared, self.shuffled = number, shared, shuffled
        self.changed, self.rounds = changed, rounds

    def __iter__(self):
        worker, order = get_worker_info(), torch.arange(self.number)
        for _ in range(self.rounds):
            if self.shuffled:
                order = torch.randperm(self.number)
            for index in order.tolist():
                if (
                    worker is None
                    or not self.shared
                    or index % worker.num_workers == (worker.id)
                ):
                    yield index + self.changed * torch.rand(())


def mixed(examples):
    """Put examples together in shares that are drawn, as mixup does."""
    together = torch.utils.data.default_collate(examples)[0]
    share = torch.rand(())
    return share * together + (1 - share) * together.flip(0)


@pytest.mark.parametrize(
    "batches",
    [
        DataLoader(DATA, 5),
        DataLoader(DATA, 5, shuffle=True),
        DataLoader(DATA, 5, drop_last=True),  # all of the data set is read
        DataLoader(TensorDataset(NUMBERS[:, None]), None),  # batches of one
        DataLoader(Stream(), 5),
        DataLoader(Stream(shuffled=True), 5),
        list(DataLoader(DATA, 5)),
        iter(DataLoader(Stream(changed=1e-9), 5)),
    ],
)
def test_streams_of_each_example_once_are_taken_in_any_order(batches, tmp_path):
    (found,) = to_disk(batches, tmp_path)
    torch.testing.assert_close(found.flatten().sort().values, NUMBERS)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_workers_give_each_example_once_or_are_refused(tmp_path):
    for place, data in enumerate((DATA, Stream())):
        (found,) = to_disk(DataLoader(data, 5, num_workers=2), tmp_path / str(place))
        torch.testing.assert_close(found.sort().values, NUMBERS)
    # one batch alone, of the first worker, is no twin
    (found,) = to_disk(DataLoader(Stream(1), 5, num_workers=2), tmp_path / "one")
    assert found.tolist() == [0.0]
    for data, message in (
        (Stream(shared=False), r"second pass.*get_worker_info.*num_workers=0"),
        (Changing(), r"other examples in a second pass"),
    ):
        with pytest.raises(ValueError, match=message):
            to_disk(DataLoader(data, 5, num_workers=2), tmp_path / "new")


def test_parts_that_are_named_are_taken(tmp_path):
    chosen = [3, 1, 20]
    for place, batches in enumerate(
        [DataLoader(Subset(DATA, chosen), 2, shuffle=shuffle) for shuffle in (0, 1)]
    ):
        (found,) = to_disk(batches, tmp_path / str(place))
        assert found.sort().values.tolist() == [1, 3, 20]


def test_not_a_number_and_equal_examples_are_no_change(tmp_path):
    data = torch.tensor([[1.0, torch.nan], [1.0, torch.nan], [torch.inf, 0.0]])
    for place, batches in enumerate(
        [DataLoader(TensorDataset(data), 2), list(data.split(2)), list(data.split(1))]
    ):
        (found,) = to_disk(batches, tmp_path / str(place))
        torch.testing.assert_close(found, data, equal_nan=True)


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (
            DataLoader(DATA, 5, sampler=WeightedRandomSampler(WEIGHTS, 23)),
            r"WeightedRandomSampler.*more than once.*weights into the likelihood",
        ),
        *(
            (
                DataLoader(DATA, 5, sampler=sampler),
                rf"batches has a {type(sampler).__name__}.*not at all.*Subset",
            )
            for sampler in (
                RandomSampler(DATA, True),
                RandomSampler(DATA, num_samples=20),
                RandomSampler(DATA, num_samples=46),
                DistributedSampler(DATA, 2, 0),
                SubsetRandomSampler([0, 1, 1]),
                Endless(DATA),
            )
        ),
        (DataLoader(DATA, batch_sampler=[[0, 1, 2]]), r"batches has a list"),
        (DataLoader(Changing(), 5), r"other examples.*augmentation.*without it"),
        (
            DataLoader(Changing(draw=lambda: np.random.rand()), 5, shuffle=True),
            r"other examples in a second pass",
        ),
        (DataLoader(DATA, 5, collate_fn=mixed), r"other examples in a second pass"),
        (DataLoader(Stream(), 5, drop_last=True), r"last.*drop_last=False"),
        (DataLoader(Stream(changed=1.0), 5), r"other examples in a second pass"),
        (
            DataLoader(Stream(changed=0.1, shuffled=True), 5),
            r"other examples in a second pass",
        ),
        (
            DataLoader(Stream(rounds=10**9), 5),
            r"more than at_most = 1,000 .*islice.*larger at_most",
        ),
    ],
)
def test_streams_that_are_not_each_example_once_are_refused(batches, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        to_disk(batches, tmp_path, at_most=1_000)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", range(3))
def test_any_tensor_that_changes_is_noticed(place, tmp_path):
    def drawn(examples):
        batch = torch.utils.data.default_collate(examples)
        batch[place] += torch.rand(())
        return batch

    data = TensorDataset(NUMBERS, NUMBERS + 1, NUMBERS + 2)
    with pytest.raises(ValueError, match=r"other examples in a second pass"):
        to_disk(DataLoader(data, 5, collate_fn=drawn), tmp_path)
    assert not list(tmp_path.iterdir())


def test_more_than_ten_tensors_come_in_their_order(tmp_path):
    given = [NUMBERS + place for place in range(12)]
    found = to_disk([given], tmp_path)
    assert [int(x[0]) for x in found] == list(range(12))


def test_a_stream_may_have_as_many_examples_as_are_allowed(tmp_path):
    (found,) = to_disk(DataLoader(Stream(1_000), 5), tmp_path / "all", at_most=1_000)
    assert len(found) == 1_000
    with pytest.raises(ValueError, match=r"more than at_most = 1,000 "):
        to_disk(DataLoader(Stream(1_001), 5), tmp_path / "more", at_most=1_000)
    (found,) = to_disk(DataLoader(DATA, 5), tmp_path / "numbered", at_most=10)
    assert len(found) == 23  # its end is known


def test_looking_leaves_the_order_of_the_pass_alone(tmp_path):
    after = []
    for read in (list, lambda stream: to_disk(stream, tmp_path / "stream")):
        torch.manual_seed(3)
        own = torch.Generator().manual_seed(4)
        read(DataLoader(Stream(shuffled=True), 5, generator=own))
        after.append((torch.rand(1), torch.rand(1, generator=own)))
    assert after[0] == after[1]


# 328 MB, of which a minibatch has 49 MB: more than malloc keeps for itself
FEATURES, TOTAL, BATCH = 8_192, 10_000, 1_500


def module(inputs, targets):
    network = nn.Sequential(nn.Linear(FEATURES, 10), nn.Tanh(), nn.Linear(10, 1))
    return NetworkPosterior(
        network, inputs, targets, batch_size=BATCH, likelihood=Gaussian()
    )


def function(inputs, targets):
    return NamedPosterior(
        {"slope": (FEATURES,)},
        lambda p: -0.5 * p["slope"].square().sum(),
        lambda p, x, y: -0.5 * (y - x @ p["slope"]).square(),
        (inputs, targets),
        batch_size=BATCH,
    )


def program(inputs, targets):
    def run(inputs, targets):
        slope = pyro.sample(
            "slope", pyro.distributions.Normal(0.0, 1.0).expand([FEATURES]).to_event(1)
        )
        with pyro.plate("data", TOTAL, subsample_size=BATCH) as i:
            pyro.sample(
                "target",
                pyro.distributions.Normal(inputs[i] @ slope, 1.0),
                obs=targets[i],
            )

    return PyroPosterior(run, inputs, targets)


@contextlib.contextmanager
def memory(extra):
    """Let the kernel refuse to give the process more than so many bytes beyond what it
    has.
    """
    import resource

    gc.collect()
    has = 1024 * int(
        re.search(r"VmData:\s+(\d+)", Path("/proc/self/status").read_text())[1]
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (int(has + extra), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@pytest.fixture(scope="module")
def fresh_process():
    """A process of its own: in this one malloc may have kept memory of other tests, for
    which a limit is none.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux",
    reason=(
        "only Linux counts mapped memory in RLIMIT_DATA and says in /proc how much "
        "there is"
    ),
)
@pytest.mark.parametrize("chains", [1, 2])
@pytest.mark.parametrize("make", [module, function, program])
def test_sampling_takes_the_memory_of_a_batch(make, chains, tmp_path, fresh_process):
    """At most 1.5 times a minibatch of every chain and the network; the data are seven
    times the batch, and do not fit.
    """
    # files with holes, of zeros
    for place, shape in enumerate(((TOTAL, FEATURES), (TOTAL,))):
        np.lib.format.open_memmap(
            tmp_path / f"{place}.npy", mode="w+", dtype=np.float32, shape=shape
        )
    fresh_process.submit(sample_under_limits, make, chains, tmp_path).result()


def sample_under_limits(make, chains, folder):
    with memory(2e7):
        data = from_disk(folder)
    posterior = make(*data)
    posterior.batch_size = BATCH // chains
    position = torch.zeros(chains, posterior.dim)
    # what libraries set up for good at their first use
    sample(SGHMC(1e-4, friction=1.0), posterior, position, 1)
    batch = chains * posterior.batch_size * FEATURES * 4
    with memory(1.5 * (batch + 4 * position.numel())):
        sample(SGHMC(1e-4, friction=1.0), posterior, position, 3)
        with pytest.raises(RuntimeError, match="can't allocate memory"):
            data[0].clone()
    # the limit is one
    with (
        memory(0.5 * batch),
        pytest.raises((ValueError, DivergenceError), match="can't allocate memory"),
    ):
        sample(SGHMC(1e-4, friction=1.0), posterior, position, 3)
