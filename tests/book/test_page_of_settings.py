"""The page of settings, which the build writes from the stored results."""

from booklib.runs.results import RESULTS, read_result, runs_of
from experiments import EXPERIMENTS
from tools import settings

NAMES = " ".join(settings.STUDIES.values()).split()
LINES = settings.page().splitlines()


def test_every_experiment_has_a_place():
    assert len(NAMES) == len(set(NAMES))
    missing = (set(EXPERIMENTS) | {"recommender_1m"}) ^ set(NAMES)
    assert missing == set(), "write them beside their page in tools.settings.STUDIES"


def test_every_stored_method_has_a_line_with_its_seeds():
    for name in filter(lambda name: (RESULTS / f"{name}.json").is_file(), NAMES):
        start = next(
            k for k, line in enumerate(LINES) if line.startswith(f"| **{name}**")
        )
        runs = runs_of(read_result(RESULTS / f"{name}.json"))
        for line, (method, each) in zip(LINES[start + 1 :], runs.items(), strict=False):
            cells = [cell.strip() for cell in line.split("|")]
            assert (cells[1], cells[4]) == (method or "all", str(len(each))), name


def test_a_line_has_what_was_run_what_was_tried_and_what_it_took():
    row = "| SGHMC, as programmed | η 2·10⁻⁶, α 0.01, T 4·10⁻⁸, start uniform |  | 5 | 5.1 |"
    assert row in LINES
    assert any(
        line.startswith("| SGD | η 4·10⁻⁵, λ 1, ") and "| 16 | 5 |" in line
        for line in LINES
    )
    shared = next(line for line in LINES if line.startswith("| **figure5**"))
    assert "λ 1, n 500, minibatches fresh, rounds 850, burn-in 50, N 50,000" in shared
    assert "python -m experiments run figure5 --seeds 5" in shared


def test_what_is_a_sources_and_what_is_changed_is_told_with_its_place():
    text = "\n".join(LINES)
    assert "η 10⁻⁶, 2·10⁻⁶, 4·10⁻⁶, 8·10⁻⁶, α 0.1, 0.01, 0.001" in text  # a grid
    changed = "changed in all: rounds 200 for 900 (p. 12, Figure 7a): the same burn-in"
    assert f"* *fashion*, {changed}" in text


def test_a_book_without_results_has_the_head_alone(tmp_path):
    assert settings.page(tmp_path) == settings.HEAD + "\n"
