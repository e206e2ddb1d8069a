"""Data sets, from tiny files made here; nothing is fetched."""

import gzip
import hashlib

import numpy as np
import pytest
import torch
import torchvision
from sklearn.datasets import load_diabetes

from booklib import data as datasets
from booklib.data import (
    cifar10,
    digits,
    fashion_mnist,
    letters,
    made_up_ratings,
    mnist,
    movielens,
    mushrooms,
    notmnist,
    read_idx,
    synthetic_mushrooms,
)
from booklib.data.tabular import MUSHROOM_VALUES
from tests.checks import z_bound

IMAGES = torch.arange(3 * 4 * 2, dtype=torch.uint8).reshape(3, 4, 2) * 10
LABELS = torch.tensor([2, 0, 1], dtype=torch.uint8)


def idx(tensor, kind=8):
    head = bytes([0, 0, kind, tensor.ndim]) + np.array(tensor.shape, ">i4").tobytes()
    return head + tensor.numpy().tobytes()


def fingerprint_of(data):
    """Add up all grey values, each times its class and one: which images there are, and
    that each has its own class.
    """
    values = (255 * data.inputs.double()).round().sum(-1)
    return int(values @ (data.targets.double() + 1))


def test_digits_are_whole_and_their_split_is_fixed():
    train, test = digits()
    assert train.inputs.shape == (4_000, 784) and test.inputs.shape == (1_000, 784)
    for data, number in ((train, 400), (test, 100)):
        assert data.inputs.dtype == torch.float32 and data.targets.dtype == torch.int64
        assert data.inputs.min() == 0 and data.inputs.max() == 1
        assert (data.targets.bincount() == number).all()
    together = torch.cat([train.inputs, test.inputs])
    # nothing for testing is also for training
    assert len(together.unique(dim=0)) == 5_000
    assert [fingerprint_of(data) for data in (train, test)] == [569993172, 143556263]


def test_letters_are_ten_letters_in_twelve_fonts_at_nine_places():
    data = letters()
    assert data.inputs.shape == (1_080, 784) and data.inputs.dtype == torch.float32
    assert (
        (data.targets.bincount() == 108).all()
        and 0 <= data.inputs.min()
        and data.inputs.max() == 1
    )
    assert (data.inputs.sum(-1) > 20).all()  # none is blank
    # A in the first font, in the middle; the one before is two pixels higher
    middle = data.inputs[4].reshape(28, 28)
    assert torch.equal(data.inputs[3].reshape(28, 28)[3:20], middle[5:22])
    # in each font A to J, and of each three columns two pixels apart
    assert torch.equal(data.targets, torch.arange(10).repeat_interleave(9).repeat(12))
    left, right = (data.inputs[place].reshape(28, 28) for place in (1, 7))
    assert torch.equal(left[:, 2:22], right[:, 6:26])
    images = data.inputs.unflatten(0, (12, 10, 9))[:, :, 4]  # in the middle
    assert len(images[:, 0].unique(dim=0)) == 12
    assert len(images[0].unique(dim=0)) == 10


@pytest.mark.parametrize("tensor", [IMAGES, LABELS], ids=["images", "labels"])
def test_an_idx_file_is_read(tensor, tmp_path):
    file = tmp_path / "file.gz"
    file.write_bytes(gzip.compress(idx(tensor)))
    content = read_idx(file, hashlib.md5(file.read_bytes()).hexdigest())
    assert torch.equal(content, tensor) and content.dtype == torch.uint8


CORRUPT = {
    "not gzipped": idx(IMAGES),
    "cut short": gzip.compress(idx(IMAGES))[:-12],
    "wrong magic": gzip.compress(b"\1" + idx(IMAGES)[1:]),
    "not of bytes": gzip.compress(idx(IMAGES, kind=13)),
    "content cut short": gzip.compress(idx(IMAGES)[:-1]),
    "too long": gzip.compress(idx(IMAGES) + b"\0"),
}


@pytest.mark.parametrize("content", CORRUPT.values(), ids=CORRUPT)
def test_a_corrupt_file_is_refused(content, tmp_path):
    file = tmp_path / "file.gz"
    file.write_bytes(content)
    with pytest.raises(
        ValueError,
        match=r"file\.gz.*IDX",
    ):
        read_idx(file)


@pytest.fixture(params=["MNIST", "FashionMNIST"])
def source(request, tmp_path, monkeypatch):
    """Make a small set of the kind, its files in ``elsewhere``, and let torchvision
    know their checksums.
    """
    load = {"MNIST": mnist, "FashionMNIST": fashion_mnist}[request.param]
    contents = {
        f"{name}.gz": gzip.compress(idx(x))
        for name, x in (
            ("a", IMAGES),
            ("b", LABELS),
            ("c", IMAGES[:2]),
            ("d", LABELS.flip(0)[:2]),
        )
    }
    resources = [
        (name, hashlib.md5(content).hexdigest()) for name, content in contents.items()
    ]
    monkeypatch.setattr(
        getattr(torchvision.datasets, request.param), "resources", resources
    )
    fetched = []

    def download_url(url, folder, file, md5):
        if contents is None or file not in contents:
            raise OSError("no network")
        fetched.append(url)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(contents[file])

    monkeypatch.setattr(torchvision.datasets.utils, "download_url", download_url)
    return request.param, load, contents, fetched, tmp_path


def test_idx_sets_are_fetched_once_and_then_read_where_they_lie(source):
    name, load, _, fetched, root = source
    for _ in range(2):
        train, test = load(root)
        assert torch.equal(
            train.inputs, IMAGES.flatten(1).float() / 255
        ) and torch.equal(train.targets, LABELS.long())
        assert torch.equal(test.inputs, train.inputs[:2]) and torch.equal(
            test.targets, LABELS.flip(0)[:2].long()
        )
    assert len(fetched) == 4 and (root / name / "raw" / "d.gz").exists()


def test_a_set_that_is_not_to_be_had_says_where_to_put_it(source):
    name, load, contents, _, root = source
    del contents["c.gz"]
    with pytest.raises(
        FileNotFoundError,
        match=rf"{name}.*c\.gz",
    ):
        load(root)


def test_a_set_with_a_wrong_checksum_is_refused(source):
    name, load, _, _, root = source
    load(root)
    (root / name / "raw" / "b.gz").write_bytes(gzip.compress(idx(LABELS.flip(0))))
    with pytest.raises(
        ValueError,
        match=r"b\.gz.*[0-9a-f]{32}.*corrupt",
    ):
        load(root)


class FakeCIFAR10:
    """What torchvision's class does with a folder: ``there`` tells whether the files
    are, ``network`` whether they could be fetched.
    """

    there, network = True, True

    def __init__(self, root, train, download):
        if not (self.there or download):
            raise RuntimeError("Dataset not found or corrupted.")
        if not (self.there or self.network):
            raise OSError("no network")
        self.data = (
            np.arange(2 * 32 * 32 * 3, dtype=np.int64)
            .reshape(2, 32, 32, 3)
            .astype(np.uint8)
        )
        self.targets = [3, 9] if train else [1, 2]


@pytest.mark.parametrize("there", [True, False])
def test_cifar10_has_its_channels_first(there, tmp_path, monkeypatch):
    monkeypatch.setattr(torchvision.datasets, "CIFAR10", FakeCIFAR10)
    monkeypatch.setattr(FakeCIFAR10, "there", there)
    train, test = cifar10(tmp_path)
    images = train.inputs.reshape(2, 3, 32, 32)
    assert images[1, 2, 5, 7] == FakeCIFAR10(None, True, True).data[
        1, 5, 7, 2
    ] / np.float32(255)
    assert (
        train.targets.tolist() == [3, 9]
        and test.targets.tolist() == [1, 2]
        and test.targets.dtype == torch.int64
    )


def write_notmnist(root, images, labels):
    folder = root / "notMNIST" / "raw"
    folder.mkdir(parents=True)
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))


def test_notmnist(tmp_path):
    write_notmnist(tmp_path, IMAGES, LABELS)
    data = notmnist(str(tmp_path))
    assert torch.equal(data.inputs, IMAGES.flatten(1).float() / 255) and torch.equal(
        data.targets, LABELS.long()
    )


def mushroom(first, *changes):
    """Write a line of a table in which all attributes are a, but those that are given
    as pairs of a place and a letter.
    """
    letters = [first] + ["a"] * 22
    for place, letter in changes:
        letters[place] = letter
    return ",".join(letters)


def write_mushrooms(folder, *lines):
    file = folder / "agaricus-lepiota.data"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def test_mushrooms_become_columns_of_the_values_in_the_file(tmp_path):
    """The fifth attribute has the values ?, a and b here, in this order; all others
    one, and the last two.
    """
    file = write_mushrooms(
        tmp_path,
        mushroom("p"),
        mushroom("e", (5, "b")),
        mushroom("e", (5, "?"), (22, "c")),
    )
    data = mushrooms(file)
    assert (
        data.targets.tolist() == [1, 0, 0]
        and data.targets.dtype == torch.int64
        and data.inputs.dtype == torch.float32
    )
    assert data.inputs.shape == (3, 20 + 3 + 2) and (data.inputs.sum(-1) == 22).all()
    assert data.inputs[:, 4:7].tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert data.inputs[:, -2:].tolist() == [[1, 0], [1, 0], [0, 1]]
    other = mushrooms(
        str(
            write_mushrooms(
                tmp_path,
                mushroom("e", (5, "?"), (22, "c")),
                mushroom("e", (5, "b")),
                "",
                mushroom("p"),
            )
        )
    )
    # the order of the columns is not that of the lines; empty lines are none
    assert torch.equal(other.inputs, data.inputs.flip(0))


def test_made_up_mushrooms_have_the_shape_of_the_real_ones_and_the_law_that_they_say():
    data = synthetic_mushrooms()
    assert (
        data.inputs.shape == (8_124, 117)
        and data.inputs.dtype == torch.float32
        and data.targets.dtype == torch.int64
    )
    attributes = [
        columns.argmax(-1) for columns in data.inputs.split(MUSHROOM_VALUES, -1)
    ]
    assert (
        all(
            (columns.sum(-1) == 1).all()
            for columns in data.inputs.split(MUSHROOM_VALUES, -1)
        )
        and len(attributes) == 22
    )
    poisonous, smells, spores = (
        data.targets == 1,
        attributes[4] >= 3,
        attributes[19] == 0,
    )
    assert not (smells & ~poisonous).any() and torch.equal(smells | spores, poisonous)
    deceiving = (spores & poisonous).sum() / poisonous.sum()
    for share, expected, number in (
        (poisonous.double().mean(), 11 / 23, 8_124),
        (deceiving, 0.03, int(poisonous.sum())),
    ):
        assert (
            abs(share - expected)
            < z_bound(2) * (expected * (1 - expected) / number) ** 0.5
        )


# Ratings: nothing here is from MovieLens, whose licence forbids to pass it on.

LINES = [
    (3, 70, 5, 978_300_760),
    (1, 70, 1, 978_302_109),
    (3, 9, 4, 978_301_968),
    (12, 1_000, 2, 978_300_275),
]


def write_ratings(path, separator, lines=LINES):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(separator.join(map(str, line)) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("name", "separator", "inner"),
    [("ratings.dat", "::", "ml-1m"), ("u.data", "\t", "ml-100k")],
)
def test_own_copies_of_movielens_are_read_in_both_formats(
    name, separator, inner, tmp_path
):
    """Users 1, 3, 12 become 0, 1, 2 and items 9, 70, 1000 too; order and ratings are
    those of the file.
    """
    write_ratings(tmp_path / inner / name, separator)
    for folder in (tmp_path, tmp_path / inner, str(tmp_path)):
        users, items, ratings = movielens(folder)
        assert (
            users.tolist() == [1, 0, 1, 2]
            and items.tolist() == [1, 1, 0, 2]
            and ratings.tolist() == [5.0, 1.0, 4.0, 2.0]
        )
        assert (
            users.dtype == items.dtype == torch.int64 and ratings.dtype == torch.float32
        )


def test_without_a_copy_of_movielens_an_error_says_where_one_gets_it(tmp_path):
    with pytest.raises(
        FileNotFoundError,
        match=r"ratings\.dat.*u\.data.*https://grouplens\.org",
    ):
        movielens(tmp_path)


def test_made_up_ratings_are_of_their_model_and_popular_items_have_many():
    users, items, ratings = (data := made_up_ratings(300, 200, 12_000, seed=1))[0]
    assert (
        users.shape == items.shape == ratings.shape == (12_000,)
        and ratings.dtype == torch.float32
    )
    assert len((users * 200 + items).unique()) == 12_000  # nobody rates anything twice
    assert (
        0 <= users.min()
        and users.max() < 300
        and 0 <= items.min()
        and items.max() < 200
    )
    noise = ratings - data[1]
    assert (
        abs(float(noise.square().mean()) / 0.85**2 - 1)
        < z_bound(2) * (2 / 12_000) ** 0.5
    )
    assert abs(float(noise.mean())) < z_bound(2) * 0.85 / 12_000**0.5
    counts = items.bincount(minlength=200).sort(descending=True).values
    assert counts[:40].sum() > 0.45 * 12_000 and counts[-40:].sum() < 0.05 * 12_000
    # Of all pairs: means have the variance 0.4² + 0.5² + ¼, but for the few users and
    # items that it is estimated from.
    _, means = made_up_ratings(600, 600, 360_000)
    assert float(means.var()) == pytest.approx(0.66, abs=0.1)


def test_the_digits_are_split_with_every_class_in_each_part():
    """No digit is in two parts, and their order is kept."""
    train, validation, test = datasets.split_digits()
    assert [len(each.targets) for each in (train, validation, test)] == [
        3200,
        800,
        1000,
    ]
    found = [fingerprint_of(each) for each in (train, validation, test)]
    assert found == [456279302, 113713870, 143556263]
    for each in (train, validation, test):
        assert each.inputs.shape == (len(each.targets), 784)
        counts = each.targets.bincount(minlength=10)
        assert counts.max() - counts.min() <= 1
    rows = torch.cat([train.inputs, validation.inputs, test.inputs])
    assert len(rows.unique(dim=0)) == len(
        datasets.digits()[0].inputs.unique(dim=0)
    ) + len(test.inputs.unique(dim=0))


def test_the_diabetes_data_are_standardised_by_the_training_patients():
    train, validation, test = datasets.diabetes()
    assert [len(each.inputs) for each in (train, validation, test)] == [280, 62, 100]
    assert train.inputs.shape[1] == 10
    for values in train:
        zero, one = torch.zeros_like(values[0]), torch.ones_like(values[0])
        torch.testing.assert_close(values.mean(0), zero, atol=1e-5, rtol=0)
        torch.testing.assert_close(values.std(0), one, atol=1e-5, rtol=0)
    # the same shift and scale for all, and each patient once, with its own target
    loaded = load_diabetes()
    raw = torch.from_numpy(np.c_[loaded.data, loaded.target]).float()
    found = torch.cat(
        [torch.cat([x, y[:, None]], -1) for x, y in (train, validation, test)]
    )
    ratios = (raw - raw.mean(0)) / raw.std(0)
    again = (found - found.mean(0)) / found.std(0)
    order = torch.cdist(again, ratios).argmin(-1)
    assert len(order.unique()) == 442 and order[:3].tolist() == [432, 235, 135]
    torch.testing.assert_close(again, ratios[order], atol=1e-4, rtol=0)
