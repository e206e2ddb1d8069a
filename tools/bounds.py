"""Print what pip installs for the oldest, or the newest, libraries that the package
allows, as ``pyproject.toml`` states them.

usage: python tools/bounds.py oldest | newest"""

import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def requirements(which: str) -> list[str]:
    """List the libraries of the package and of its extras."""
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    stated = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        stated += extra
    return [each.replace(">=", "==") if which == "oldest" else each for each in stated]


if __name__ == "__main__":
    if sys.argv[1:] not in (["oldest"], ["newest"]):
        sys.exit(__doc__)
    print(*requirements(sys.argv[1]))
