"""The code that pages show is alive: whoever copies the visible cells of a page
gets its result, and whoever breaks the shown function sees the result change.
"""

import subprocess
import sys
from contextlib import suppress

import jupytext
import matplotlib
import matplotlib.pyplot as plt
import pytest

from booklib.page import claims
from tools import book

HIDDEN = {"hide-input", "hide-cell", "remove-cell", "remove-input"}
# Of each page the records that its visible cells make, and a fault in the function
# that it shows: what stands there, and what is put in its place.
PAGES: dict[str, tuple[set[str], str, str]] = {
    "bandit": (
        {"late-exact", "late-mean-field", "late-greedy"},
        "A = A + x[k][:, :, None] * x[k][:, None, :]",
        "A = A + x[k].square().diag_embed()",
    ),
    "no_u_turn": (
        {"nuts"},
        "if unusable(momenta(half)):",
        "if False:",
    ),
    "bayesian_learning": (
        {"sure", "less"},
        "average = networks.mean(0)",
        "average = networks[0]",
    ),
    "digits": (
        {"level", "average-letters"},
        "sure[:n].quantile(0.2)",
        "sure[n:].quantile(0.2)",
    ),
    "markov_chains": (
        {"random-walk"},
        "torch.exp(U(theta) - U(proposal))",
        "torch.exp((U(theta) - U(proposal)) / 2)",
    ),
    "minibatch_noise": (
        {"off", "theorem"},
        "N / len(minibatch) * per_example.sum(0)",
        "N / N * per_example.sum(0)",
    ),
    "hamiltonian_dynamics": (
        {"leapfrog"},
        "theta = theta + step_size * r",
        "theta = theta + step_size / 2 * r",
    ),
    "sgnuts": (
        {"sgnuts-weighted", "sgnuts"},
        "r = ((1 - half) * r",
        "r = ((1 + half) * r",
    ),
    "hamiltonian_monte_carlo": (
        {"hmc"},
        "torch.exp(energy - new_energy)",
        "torch.exp(new_energy - energy)",
    ),
    "sghmc": (
        {"settled", "cooled", "sghmc-0", "sghmc-B"},
        "2 * (friction - noise_estimate)",
        "2 * friction",
    ),
    "langevin": (
        {"sgld"},
        "(2 * temperature * step_size) ** 0.5",
        "2 * temperature * step_size",
    ),
    "naive_sghmc": (
        {"naive"},
        "theta, r = leapfrog(",
        "r, theta = leapfrog(",
    ),
    "estimating_the_noise": (
        {"coin-7", "coin-10", "coin-15", "coin-25", "sghmc-2B"},
        "friction - step_size / 2 * variance",
        "friction - step_size / 4 * variance",
    ),
    "cyclical": (
        {"cycles", "tempering"},
        "torch.exp((1 - 1 / hot) * (x - y))",
        "torch.exp((1 - 1 / hot) * (y - x))",
    ),
    "constant_sgd": (
        {"matrix"},
        "rates.append(2 * torch.linalg.inv(V + A))",
        "rates.append(torch.linalg.inv(V + A))",
    ),
    "neighbours": (
        {"posterior", "dropout", "swag", "snapshots"},
        "move @ covariance @ move + rate**2 * V",
        "covariance + rate**2 * V",
    ),
    "how_far_it_holds": (
        {"steps-45", "tamed-30"},
        "(1 - step_size * friction) * (new - old)",
        "(new - old)",
    ),
    "choosing_the_estimate": (
        {"wide", "narrow"},
        "1 + left_over / friction",
        "1 - left_over / friction",
    ),
    "noise_of_networks": (
        {"ratio", "noisiest"},
        "N**2 / n * (1 - n / N)",
        "N / n * (1 - n / N)",
    ),
    "splittings": (
        {"passes", "sweeps"},
        "minibatches=rule()",
        "minibatches=Fresh()",
    ),
    "noise_that_is_not_gaussian": (
        {"order-formula"},
        "thinning = -0.5 * both",
        "thinning = 0.0 * both",
    ),
    "figures_of_the_paper": (
        {"naive", "square-largest"},
        "step, decay / step, 1.0, step / 2",
        "step, decay, 1.0, step / 2",
    ),
    "control_variates": (
        {"plain", "control"},
        "N / n * change.sum(1)",
        "n / N * change.sum(1)",
    ),
    "falling_steps": (
        {"falling-over-constant"},
        "(mean - 1) ** 2 + variance",
        "variance",
    ),
    "cifar": (
        {"bias"},
        "combinations(range(6), n)",
        "combinations(range(6), 6)",
    ),
    "variational_families": (
        {"narrow"},
        "* log_sigma.exp() - 1",
        "* log_sigma.exp() - 2",
    ),
    "variational": (
        {"shrunk"},
        "precision = share * h + prior",
        "precision = h + prior",
    ),
    "mnist": (
        {"settles", "runs-away"},
        "noise / (h + precision)",
        "2 * noise / (h + precision)",
    ),
    "recommender": (
        {"widths", "one-width"},
        "torch.linalg.solve(P, new.mT)).sqrt()",
        "torch.linalg.solve(P, 0 * new.mT)).sqrt()",
    ),
    "cyclical_networks": (
        {"warm", "default"},
        "2 * lr * decay * temperature / N",
        "2 * lr * decay * temperature",
    ),
    "uncertainty": (
        {"apart"},
        "float(average - predictive_entropy(probabilities).mean())",
        "float(predictive_entropy(probabilities).mean() - average)",
    ),
    "reproduction_report": (
        {"free"},
        "temperature=temperature",
        "temperature=2 * temperature",
    ),
    "neighbours_on_networks": (
        {"gain"},
        "-np.log(p.mean(0)).mean()",
        "-np.log(p).mean(0).mean() / -1",
    ),
    "reference_posteriors": (
        {"alpha-1", "beta-1"},
        "return log_p + log_jacobian",
        "return log_p",
    ),
    "fidelity": (
        {"agree", "floor"},
        "0.5 * (one.mean(0) - other.mean(0))",
        "(one.mean(0) - other.mean(0))",
    ),
    "learning_coefficient": (
        {"law-users", "simulated"},
        "(1 + step_size / 2 * noise)",
        "(1 + step_size * noise)",
    ),
    "cold_posteriors": (
        {"gain", "floor"},
        "min(step_size / 2 * noise, T * friction)",
        "0.0",
    ),
    "minibatch_metropolis": (
        {"naive-rejected", "amagold"},
        "work = work - gradient * moved",
        "work = work + gradient * moved",
    ),
}

# their visible code samples for a while
OF_NETWORKS = {"bayesian_learning", "digits", "fidelity"}


def visible(page):
    """Join the code that a page shows."""
    [path] = (path for path in book.chapters() if path.stem == page)
    cells = jupytext.read(path).cells
    return "\n\n".join(
        cell.source
        for cell in cells
        if cell.cell_type == "code" and not HIDDEN & set(cell.metadata.get("tags", ()))
    )


class Told(Exception):
    """A run has told what is asked of it: the rest of it is spared."""


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs code until it has recorded all the names, or one of
    them that does not hold, and gives those records by name.
    """
    matplotlib.use("agg")

    def of(code, names):
        records = {}

        def emit(record):
            if record["name"] in names:
                records[record["name"]] = record["holds"]
            if set(records) == names or not all(records.values()):
                raise Told

        monkeypatch.setattr(claims, "_emit", emit)
        try:
            with suppress(Told):
                exec(compile(code, "visible cells", "exec"), {"__name__": "__main__"})
        finally:
            plt.close("all")
        return records

    return of


def test_visible_code_has_all_its_names(tmp_path):
    """No page's has one that only its hidden cells know."""
    for path in book.chapters():
        (tmp_path / path.name).write_text(f"{visible(path.stem)}\n")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--quiet"]
    ruff += ["--select", "F821,F822,F823", "--output-format", "concise", tmp_path]
    assert subprocess.run(ruff, capture_output=True, text=True).stdout == ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow) if p in OF_NETWORKS else p for p in PAGES],
)
def test_visible_code_makes_the_result_of_its_page(page, run):
    names, right, wrong = PAGES[page]
    code = visible(page)
    assert run(code, names) == dict.fromkeys(names, True)
    assert code.count(right) == 1
    try:
        broken = run(code.replace(right, wrong), names)
    except (ValueError, ArithmeticError):  # what diverges is seen, too
        return
    assert not all(broken.values())
