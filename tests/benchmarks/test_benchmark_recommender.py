"""The recommender at MovieLens-1M's size: what is stored, and a small run of it."""

import pytest

from benchmarks import recommender
from booklib.runs.results import RESULTS, read_result
from experiments.recommender import PASSES, SMALL, made_up


@pytest.mark.slow
def test_a_small_run_has_the_form_of_the_stored_one(tmp_path):
    stored = read_result(RESULTS / "recommender_1m.json")
    small = recommender.run(made_up(tmp_path, *SMALL), passes=4)
    assert stored.keys() - {"format"} == small.keys()
    assert list(stored["methods"]) == list(small["methods"]) == [*recommender.SAMPLERS]
    chosen = read_result(RESULTS / "recommender_100k.json")["methods"]
    for name in recommender.SAMPLERS:
        ours, theirs = (result["methods"][name] for result in (stored, small))
        assert ours["settings"] == theirs["settings"] == chosen[name]["settings"]
        assert ours["runs"][0].keys() == theirs["runs"][0].keys()
    assert (stored["ratings"], small["ratings"]) == (1_000_209, 3_000)
    assert stored["passes"] == PASSES
