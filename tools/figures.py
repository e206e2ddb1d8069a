"""Copy the figures of the built book into one folder, each named after its page and label.

usage: python -m tools.figures

        from _build/html to _build/figures, as sghmc-fig-double-well.png
"""

import shutil
from pathlib import Path

from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parent.parent


def export(site: Path, target: Path) -> list[Path]:
    """Copy each image that is the figure of a page; give the copies."""
    target.mkdir(parents=True, exist_ok=True)
    made = []
    for page in sorted(site.glob("**/*.html")):
        found = BeautifulSoup(page.read_text(), "html.parser")
        for image in found.select("figure[id] img[src]"):
            source = page.parent / image["src"]
            name = f"{page.stem}-{image.find_parent('figure')['id']}{source.suffix}"
            made.append(Path(shutil.copy(source, target / name)))
    return made


if __name__ == "__main__":
    folder = ROOT / "_build" / "figures"
    print(f"{len(export(ROOT / '_build' / 'html', folder))} figures are in {folder}")
