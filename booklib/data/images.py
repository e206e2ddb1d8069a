"""Full sets of images, read from disk or downloaded."""

import gzip
import hashlib
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from booklib.data.examples import Data
from sgmc.checks import check_instance


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
            # The loader checks the files' checksums.
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
    # The images and labels for training come first, then those for testing.
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
    """Read images that are stored pixel by pixel, with the colours of a pixel side by
    side, as if they were stored colour by colour.
    """
    pixel_by_pixel = data.inputs.view(-1, *shape).permute(0, 2, 3, 1)
    return Data(pixel_by_pixel.reshape(len(data.inputs), -1), data.targets)
