"""The look of the book's figures: one style, and one colour for each algorithm
throughout.
"""

import base64
import builtins
import html
import io
from collections.abc import Iterable
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from sgmc.potentials import Potential

# The palette is the colour-blind-safe one of Okabe and Ito, and where it has no more,
# those of Tol. Leapfrog alone shares a colour, with HMC, whose path it is.
COLOURS = {
    "random walk": "#000000",
    "SGD": "#56B4E9",
    "SGD with momentum": "#E69F00",
    "HMC": "#0072B2",
    "HMC without correction": "#332288",
    "NUTS": "#661100",
    "naive SGHMC": "#D55E00",
    "naive SGHMC with correction": "#117733",
    "SGLD": "#009E73",
    "SGHMC": "#CC79A7",
    "SGNUTS": "#882255",
    "explicit Euler": "#999933",
    "symplectic Euler": "#44AA99",
    "leapfrog": "#0072B2",
    "variational": "#AA4499",
}
TRUTH = "0.55"  # the grey of a true density


def use_style() -> None:
    """Set matplotlib to the book's style.

    Example:
        >>> use_style()
        >>> plt.rcParams["figure.facecolor"]
        'white'
    """
    plt.style.use(Path(__file__).with_name("book.mplstyle"))


def plot_density(
    axes: Axes, potential: Potential, low: float, high: float, **style
) -> None:
    """Draw the normalised density exp(−U)/Z of a one-dimensional potential on [low,
    high] in the grey of truth.

    Example:
        >>> from sgmc.targets import DoubleWell
        >>> plot_density(plt.figure().gca(), DoubleWell(), -2.5, 2.5)
    """
    grid = torch.linspace(low, high, 1001, dtype=torch.float64)
    density = torch.exp(-potential.energy(grid[:, None]))
    density /= torch.trapezoid(density, grid)
    axes.fill_between(
        grid,
        density,
        color=TRUTH,
        alpha=0.35,
        lw=0,
        label=style.pop("label", "true density"),
        **style,
    )


def plot_histogram(axes: Axes, samples: Tensor, edges: Tensor, **style) -> None:
    """Draw the normalised histogram of samples as a line through the middles of the
    bins.

    Example:
        >>> plot_histogram(
        ...     plt.figure().gca(), torch.randn(100), torch.linspace(-3, 3, 31)
        ... )
    """
    values, edges = samples.flatten().double().cpu(), edges.double()
    counts = torch.histogram(values, edges).hist
    axes.plot(
        (edges[1:] + edges[:-1]) / 2,
        counts / len(values) / (edges[1:] - edges[:-1]),
        **style,
    )


def plot_contours(
    axes: Axes, potential: Potential, low: float, high: float, levels: int = 6
) -> None:
    """Draw contour lines of a two-dimensional potential's energy on [low, high]² in the
    grey of truth.

    Lines lie where the density has fallen by exp(−½k²), k = ½, 1, 1½, …, from its
    largest value on the grid.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> plot_contours(plt.figure().gca(), Gaussian.correlated(0.9), -3, 3)
    """
    grid = torch.linspace(low, high, 201)
    energy = potential.energy(torch.cartesian_prod(grid, grid)).reshape(201, 201).T
    depths = 0.5 * (0.5 * torch.arange(1, levels + 1)) ** 2
    axes.contour(
        grid, grid, energy - energy.min(), levels=depths, colors=TRUTH, linewidths=0.8
    )
    axes.set_aspect("equal")


_FILM = """
(function (film) {
  const images = film.querySelectorAll("img"), button = film.querySelector("button"), slider = film.querySelector("input");
  let timer = null;
  function show() { images.forEach((image, number) => { image.hidden = number !== Number(slider.value); }); }
  function stop() { clearInterval(timer); timer = null; button.textContent = "play"; }
  function advance() {
    if (Number(slider.value) === images.length - 1) { stop(); } else { slider.value = Number(slider.value) + 1; show(); }
  }
  slider.addEventListener("input", () => { stop(); show(); });
  button.addEventListener("click", () => {
    if (timer !== null) { stop(); return; }
    if (Number(slider.value) === images.length - 1) { slider.value = 0; show(); }
    button.textContent = "pause";
    timer = setInterval(advance, MILLISECONDS);
  });
})(document.currentScript.parentElement);
"""


def show_frames(frames: Iterable[Figure], alt: str, seconds: float = 0.25) -> None:
    """Show figures one after another, with a slider and a button that plays them; in
    print, and without scripts, the last figure stands alone.

    Matplotlib's ``to_jshtml`` fetches its buttons from a network, and has no alternative
    text and nothing for print.

    Args:
        frames: the figures, all of one size; each is closed when it was drawn.
        alt: what the film shows, for who cannot see it.
        seconds: time of a frame.

    Example:
        >>> show_frames(
        ...     (plt.figure(figsize=(3, 2)) for _ in range(5)), "five empty figures"
        ... )
        a film of 5 frames: five empty figures
    """
    pictures = []
    for figure in frames:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=100)
        plt.close(figure)
        pictures.append(base64.b64encode(buffer.getvalue()).decode())
    text = f"a film of {len(pictures)} frames: {alt}"
    # IPython defines it; elsewhere there is no page that could show a film.
    if "get_ipython" not in dir(builtins):
        print(text)
        return
    from IPython.display import display

    last = len(pictures) - 1
    images = "".join(
        f'<img src="data:image/png;base64,{picture}" '
        f'alt="{html.escape(alt)}"{"" if number == last else " hidden"}>'
        for number, picture in enumerate(pictures)
    )
    page = (
        f'<div class="frames">{images}<p><button type="button">play</button> '
        f'<input type="range" aria-label="frame" min="0" max="{last}" '
        f'value="{last}"></p>'
        f"<script>{_FILM.replace('MILLISECONDS', str(round(1000 * seconds)))}</script></div>"
    )
    display(
        {"text/plain": text, "text/html": page, "image/png": pictures[-1]}, raw=True
    )
