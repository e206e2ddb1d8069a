"""The verdict on a stored cell: whether a sampler's moments or probes follow the exact
law.
"""

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from booklib.runs.results import RESULTS, read_result
from sgmc.splittings import LinearChain, linear_chain
from sgmc.splittings.flows import Flow

#: what a sampler is put through, by the name that a cell has
TESTS = {
    "exact gradient": "exact gradient",
    "gradient noise": "noise injected, fresh at each gradient",
    "temperature": "T other than 1",
    "friction": "friction other than the default",
    "mass": "mass other than 1",
    "noise estimate": "its estimate of the gradient noise",
    "held minibatch": "one minibatch for several steps",
    "uneven curvature": "curvatures from 0.1 to 10",
    "two states": "two states in one process",
    "front door": "its main function at its defaults",
    "mean or sum": "a mean in place of a sum as loss",
    "schedule": "a schedule to its end",
    "resume": "a state saved and read again",
    "arguments": "its other arguments are read, and do what they are called",
}
LIMIT = 5.0  # standard errors, which chance exceeds in one of 1.7 million
# the rounding of a single-precision probe, relative to its largest entry
ROUNDING = 1e-4
# the share of the target's variance that a right scheme's step size may cost here
CLOSE = 0.05


class Problem(NamedTuple):
    """The target U(θ) = ½Σaᵢθᵢ² at a temperature, and the gradient's noise."""

    curvature: Tensor  #: a, (dim,)
    gradient_variance: float  #: V of each coordinate
    temperature: float  #: T of the density exp(−U/T)

    def chain(self, splitting: Sequence[Flow]) -> LinearChain:
        """Compose flows into the chain that they make on this problem."""
        precision = torch.diag(self.curvature)
        return linear_chain(splitting, precision, self.gradient_variance)


class Laws(NamedTuple):
    """Which law a cell should have: a list of flows, a chain, or, where the chain has
    no linear law, the variance of each coordinate after many steps, ``(dim,)``.
    """

    code: Any  #: the law of the code, as read
    documentation: Any  #: the law that the documentation states
    #: factor that turns their momentum into ours; 0 without a momentum
    momentum: float = 1.0
    #: variance of the momentum at the start, in their unit
    start_momentum: float = 0.0
    #: relative standard error of the laws, where they are simulated
    error: float = 0.0


class Verdict(NamedTuple):
    """The outcome of a comparison."""

    name: str  #: "right", "as documented", "deviates" or "not run"
    of_code: (
        float  #: largest distance to the code's law, in standard errors or roundings
    )
    of_documentation: float  #: the same distance to the documentation's law
    #: ratio of the variance to the target's, in the coordinate furthest from 1
    ratio: float
    text: str  #: a reason or an error


def laws_of(library: str) -> Mapping[str, Callable[[dict, Problem], Laws]]:
    """Look up the laws of a library's samplers, by name."""
    return importlib.import_module(f"booklib.conformance.{library}").LAWS


def cells_of(library: str) -> list[dict]:
    """Read the stored cells of a library."""
    return read_result(RESULTS / f"conformance_{library}.json")["cells"]


class Report(NamedTuple):
    """A report to a library's authors of one deviation: ``conformance/reports``."""

    library: str  #: its module's name
    title: str  #: the title, in one line
    file: str  #: the report's name
    cells: set[tuple[str, str]]  #: sampler and test of each stored cell that deviates


def reports(folder: Path) -> list[Report]:
    """Read a folder of reports: a title and ``Cells: `sampler` (test, ...), ...``."""
    found = []
    for path in sorted(folder.glob("*-*.md")):
        title, head, *_ = path.read_text(encoding="utf-8").split("\n\n", 2)
        head = " ".join(head.split())
        named = re.findall(r"`([^`]+)` \(([^)]+)\)", head.partition("Cells:")[2])
        cells = {(name, test) for name, tests in named for test in tests.split(", ")}
        title = title.removeprefix("# ").replace("`", "").replace("\\", "")
        found.append(Report(path.stem.partition("-")[0], title, path.name, cells))
    return found


def judge(library: str, cell: dict) -> Verdict:
    """Compare a stored cell with the laws of the code, of the documentation and of the
    target.
    """
    if "error" in cell:
        return Verdict("deviates", torch.nan, torch.nan, torch.nan, cell["error"])
    if "observed" in cell:
        module = importlib.import_module(f"booklib.conformance.{library}")
        right, text = module.observed(cell)
        name = "right" if right else "deviates"
        return Verdict(name, torch.nan, torch.nan, torch.nan, text)
    given = cell["problem"]
    curvature = torch.tensor(given["curvature"], dtype=torch.float64)
    problem = Problem(curvature, given["gradient_variance"], given["temperature"])
    laws = laws_of(library)[cell["sampler"]](cell["given"], problem)
    compare = _of_probe if "probe" in cell else _of_moments
    of_code, _ = compare(cell, laws.code, laws, problem)
    of_documentation, ratio = compare(cell, laws.documentation, laws, problem)
    if not of_documentation <= LIMIT:
        name = "deviates"
    else:
        name = "right" if abs(ratio - 1) <= CLOSE else "as documented"
    return Verdict(name, of_code, of_documentation, ratio, cell.get("note", ""))


def _of_moments(cell: dict, law: Any, laws: Laws, problem: Problem):
    """Measure by how many standard errors second moments are off, and how the law's
    stationary variances, or else the measured ones, compare with the target's.
    """
    found = cell["moments"]
    second, error = (
        torch.tensor(found[name], dtype=torch.float64)
        for name in ("second", "standard_error")
    )
    target, dim = problem.temperature / problem.curvature, len(problem.curvature)
    if isinstance(law, Tensor):
        expected = law.double()
    else:
        chain = law if isinstance(law, LinearChain) else problem.chain(law)
        start = torch.full((dim,), float(found["start"]), dtype=torch.float64)
        if len(chain.transition) > dim:
            fresh = laws.start_momentum * laws.momentum**2
            start = torch.cat([start, torch.full_like(start, fresh)])
        covariance = torch.diag(start)
        for _ in range(found["steps"]):
            covariance = chain.transition @ covariance @ chain.transition.T
            covariance = covariance + chain.noise_covariance
        expected = covariance.diagonal()[:dim]
    furthest = _furthest(second / target)
    error = (error.square() + (laws.error * expected).square()).sqrt()
    return float(((second - expected).abs() / error).max()), furthest


def _of_probe(cell: dict, law: Any, laws: Laws, problem: Problem):
    """Measure how far a step's F and Q are off, in units of LIMIT roundings."""
    chain = law if isinstance(law, LinearChain) else problem.chain(law)
    dim = len(problem.curvature)
    scale = torch.ones(len(chain.transition), dtype=torch.float64)
    scale[dim:] = laws.momentum
    off = 0.0
    for name, mine in (
        ("transition", chain.transition),
        ("noise", chain.noise_covariance),
    ):
        theirs = torch.tensor(cell["probe"][name], dtype=torch.float64)
        if name == "transition":
            theirs = scale[:, None] * theirs / scale
        else:
            theirs = scale[:, None] * theirs * scale
        largest = max(float(mine.abs().max()), 1e-30)
        off = max(off, float((theirs - mine).abs().max()) / largest / ROUNDING)
    found = LinearChain(
        scale[:, None] * torch.tensor(cell["probe"]["transition"]).double() / scale,
        scale[:, None] * torch.tensor(cell["probe"]["noise"]).double() * scale,
    )
    try:
        variance = found.stationary_covariance().diagonal()[:dim]
    except ValueError:  # the law has no stationary variance
        return off, torch.inf
    return off, _furthest(variance * problem.curvature / problem.temperature)


def _furthest(ratio: Tensor) -> float:
    return float(ratio[(ratio.clamp(min=1e-30).log().abs()).argmax()])
