"""Tables: diabetes, and mushrooms, real and made up."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from booklib.data.examples import Data, part
from sgmc.checks import check_count, check_instance


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


# These numbers count the values of each attribute of mushrooms in the file of the UCI
# Machine Learning Repository, in its order; "?" is a value.
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
    only the shape is that of the real table.

    There are 23 kinds, 11 of them poisonous, and each has its own odds for each
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
    """Encode attributes, each given as the numbers of its values ``(n,)``, side by side
    as columns of zeros and ones: ``(n, Σ sizes)`` float32.
    """
    return torch.cat(
        [
            torch.nn.functional.one_hot(column, size)
            for column, size in zip(numbers, sizes, strict=True)
        ],
        -1,
    ).float()
