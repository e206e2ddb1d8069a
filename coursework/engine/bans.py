"""Find in the source of an answer what its task forbids, with ruff's rule TID251.

Ruff reads the answer behind the cells that were handed out, and so it knows names that
were imported under another name. It sees no call that hides behind a variable; the
pupil watches calls while the answer runs."""

import json
import subprocess
import sys
from collections.abc import Collection

# What "autograd" stands for: every way to derivatives by machine.
AUTOGRAD = (
    *(
        f"torch.autograd.{name}"
        for name in "grad backward functional forward_ad".split()
    ),
    *(f"torch.autograd.{name}" for name in "enable_grad set_grad_enabled".split()),
    *(f"torch.func.{name}" for name in "grad grad_and_value vjp jvp".split()),
    *(f"torch.func.{name}" for name in "jacrev jacfwd hessian linearize".split()),
    *(f"torch.{name}" for name in "enable_grad set_grad_enabled nn.Parameter".split()),
    *"functorch jax autograd sympy tensorflow casadi pyro numpyro".split(),
)
LONGEST, SECONDS = 100_000, 60  # characters of an answer, seconds to read it


def banned(
    source: str, forbidden: Collection[str], given: Collection[str]
) -> list[str]:
    """Say what an answer uses of what its task forbids.

    Args:
        source: the answer.
        forbidden: names with dots, or the word "autograd".
        given: the cells that were handed out.

    Example:
        >>> banned("import jax; f = torch.func.vjp", ["autograd"], ["import torch"])
        ['jax', 'torch.func.vjp']
    """
    if not forbidden or len(source) > LONGEST:
        return []
    names = {name for name in forbidden if name != "autograd"}
    names |= set(AUTOGRAD) if "autograd" in forbidden else set()
    table = ", ".join(f'"{name}" = {{msg = "{name}"}}' for name in sorted(names))
    kind = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**kind, "source": one} for one in (*given, source)]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    command = [
        *(sys.executable, "-m", "ruff", "check", "--isolated", "--select", "TID251"),
        *("--config", f"lint.flake8-tidy-imports.banned-api = {{{table}}}"),
        *("--output-format", "json", "--stdin-filename", "answer.ipynb", "-"),
    ]
    try:
        result = subprocess.run(
            command,
            input=json.dumps(notebook),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        found = json.loads(result.stdout)
    except (subprocess.TimeoutExpired, ValueError):  # a source that ruff dies of
        return []
    return sorted(
        {
            one["message"].rpartition(": ")[2]
            for one in found
            if one["code"] == "TID251" and one["cell"] == len(cells)
        }
    )
