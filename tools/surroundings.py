"""Say in one sentence what an installation lacks here, before it begins.

usage: python tools/surroundings.py FOLDER

FOLDER is where the environment will be. Any Python 3 can read this file.
"""

import importlib.util
import os
import shutil
import sys

OLDEST, NEWEST = (3, 11), (3, 14)  # on which the pinned packages install
SPACE = 9  # gigabytes: 6 of packages, and what pip downloads and unpacks meanwhile


def obstacle(folder):
    """Name what stands in the way, and what to do; nothing if there is nothing."""
    if not OLDEST <= tuple(sys.version_info[:2]) <= NEWEST:
        words = (
            "Python {}.{} to {}.{} is needed, and this is {}.{}: say make "
            "PYTHON=/path/to/python3.14"
        )
        return words.format(*OLDEST, *NEWEST, *sys.version_info[:2])
    if (
        importlib.util.find_spec("venv") is None
        or importlib.util.find_spec("ensurepip") is None
    ):
        return (
            "This Python cannot make environments: install its venv, on Debian and "
            "Ubuntu by apt-get install python3-venv"
        )
    while not os.path.exists(folder):
        folder = os.path.dirname(os.path.abspath(folder))
    if not os.access(folder, os.W_OK):
        return folder + " cannot be written to: say make VENV=/a/folder/that/can"
    free = shutil.disk_usage(folder).free / 1e9
    if free < SPACE:
        words = (
            "The environment needs {} GB of disk space, and {} has {:.1f} GB left: "
            "free some, or say make VENV=/a/folder/elsewhere"
        )
        return words.format(SPACE, folder, free)
    return None


if __name__ == "__main__":
    sys.exit(obstacle(sys.argv[1]))
