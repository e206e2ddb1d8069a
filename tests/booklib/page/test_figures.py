"""Figures: what the curves say, read back from the axes."""

import builtins
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import is_color_like, to_hex, to_rgba
from matplotlib.figure import Figure

from booklib.page.figures import (
    COLOURS,
    TRUTH,
    plot_contours,
    plot_density,
    plot_histogram,
    show_frames,
    use_style,
)
from sgmc.targets import DoubleWell, Gaussian


@pytest.fixture
def axes():
    return Figure().subplots()


def test_the_style_is_set():
    with plt.rc_context():
        plt.rcdefaults()
        use_style()
        assert plt.rcParams["figure.facecolor"] == "white" and plt.rcParams[
            "savefig.facecolor"
        ] in ("white", "auto")


def test_colours_are_those_of_okabe_and_ito():
    palette = {
        "#E69F00",
        "#56B4E9",
        "#009E73",
        "#F0E442",
        "#0072B2",
        "#D55E00",
        "#CC79A7",
        "#000000",
        "#999999",
        "#882255",  # these seven are of Tol, where Okabe and Ito have no more
        "#999933",
        "#332288",
        "#44AA99",
        "#661100",
        "#117733",
        "#AA4499",
    }
    assert set(COLOURS.values()) <= palette and is_color_like(TRUTH)


def test_one_colour_means_one_algorithm():
    alone = {name: colour for name, colour in COLOURS.items() if name != "leapfrog"}
    assert len(set(alone.values())) == len(alone)
    assert COLOURS["leapfrog"] == COLOURS["HMC"]


def test_a_density_is_normalised_and_grey(axes):
    plot_density(axes, DoubleWell(), -3, 3)
    (area,) = axes.collections
    corners = area.get_paths()[0].vertices
    x, y = corners.T
    # the shoelace formula
    assert 0.5 * abs(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) == pytest.approx(
        1, abs=1e-6
    )
    assert (
        to_hex(area.get_facecolor()[0]) == to_hex(TRUTH)
        and area.get_label() == "true density"
    )
    plot_density(axes, DoubleWell(), -3, 3, label="posterior")
    assert axes.collections[1].get_label() == "posterior"


def test_a_histogram_is_a_density(axes):
    samples = torch.tensor([0.1, 0.2, 0.7, 1.4, 9.0])
    plot_histogram(
        axes, samples.reshape(5, 1, 1), torch.tensor([0.0, 0.5, 1.5]), color="red"
    )
    (line,) = axes.lines
    assert line.get_xdata().tolist() == [0.25, 1.0] and to_rgba(
        line.get_color()
    ) == to_rgba("red")
    # one of five lies outside
    assert line.get_ydata().tolist() == pytest.approx([2 / 5 / 0.5, 2 / 5 / 1.0])


def test_contours_lie_at_multiples_of_half_a_standard_deviation(axes):
    potential = Gaussian.correlated(0.5)
    plot_contours(axes, potential, -4, 4, levels=4)
    (contours,) = axes.collections
    assert contours.levels.tolist() == pytest.approx([0.125, 0.5, 1.125, 2.0])
    for level, path in zip(contours.levels, contours.get_paths(), strict=True):
        energy = potential.energy(torch.from_numpy(path.vertices).float())
        assert energy.min() == pytest.approx(
            level, rel=0.02
        ) and energy.max() == pytest.approx(level, rel=0.02)
    assert axes.get_aspect() == 1 and np.allclose(
        contours.get_edgecolor(), to_rgba(TRUTH)
    )


def test_contours_are_not_transposed(axes):
    plot_contours(axes, Gaussian(torch.diag(torch.tensor([1.0, 0.1]))), -3, 3)
    width, height = np.ptp(axes.collections[0].get_paths()[0].vertices, axis=0)
    assert width / height == pytest.approx(10**0.5, rel=0.05)


def test_a_film_is_one_page_with_all_frames_and_a_still_for_print(monkeypatch):
    """Only the last frame is seen before a script runs; no frame is read from anywhere
    else, and every one is described.
    """
    shown = []
    monkeypatch.setattr(builtins, "get_ipython", None, raising=False)
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    open_before = plt.get_fignums()
    show_frames(
        (plt.figure(figsize=(2, 1 + number)) for number in range(3)),
        'a ball & a "bowl"',
        seconds=0.5,
    )
    (data,) = shown
    pictures = re.findall(
        r'<img src="data:image/png;base64,([^"]+)" alt="a ball &amp; a '
        r'&quot;bowl&quot;"( hidden)?>',
        data["text/html"],
    )
    assert [hidden for _, hidden in pictures] == [" hidden", " hidden", ""]
    assert (
        len({picture for picture, _ in pictures}) == 3
        and pictures[-1][0] == data["image/png"]
    )
    assert (
        "setInterval(advance, 500)" in data["text/html"]
        and "http" not in data["text/html"]
    )
    assert plt.get_fignums() == open_before


def test_the_site_knows_how_large_letters_are():
    """On a phone it shows figures so wide that letters of eight points are eight pixels
    high.
    """
    root = Path(__file__).resolve().parents[3]
    (dots,) = re.findall(
        r"const DPI = (\d+);", (root / "book" / "_static" / "site.js").read_text()
    )
    with plt.rc_context():
        use_style()
        assert plt.rcParams["figure.dpi"] == float(dots)
