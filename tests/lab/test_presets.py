"""What one should see: every preset of every figure, and every story of the sandbox, run by the scripts of its page and held to its words.

A page opens at the seed 1. The others of five are tried too, for the bounds of presets of chance are four standard errors or wider; but of
NUTS, whose tree is the chapter's at the first seed alone.
"""

import json
import re

import pytest

from tests.lab.node import LAB, run

SCRIPTS = json.loads((LAB / "scripts.json").read_text())
FILES = [LAB / f"{script}.js" for script in dict.fromkeys(script for scripts in SCRIPTS.values() for script in scripts)]

PRESETS = """
const results = [];
for (const [name, figure] of Object.entries(lab.figures)) {
  for (const preset of figure.presets) {
    const values = lab.presetValues(figure, preset);
    for (let seed = 1; seed <= (figure.chance === false || name === "nuts" ? 1 : 5); seed++) {
      const played = figure.run(values, seed), see = figure.see(played, values);
      results.push({ figure: name, preset: preset.name, why: preset.why, seed, holds: preset.holds(played), see });
    }
  }
}
return results;
"""
OTHERS = """
const results = [];
for (const [name, figure] of Object.entries(lab.figures)) {
  const runs = figure.presets.map((preset) => figure.run(lab.presetValues(figure, preset), 1));
  figure.presets.forEach((preset, i) => results.push([name, preset.name, runs.some((played, j) => j !== i && !preset.holds(played))]));
}
return results;
"""
STORIES = """
const { STORIES, stateOf, begin, advance, read } = lab.sandbox;
return STORIES.flatMap((story) => Array.from({ length: 3 }, (_, i) => {
  const state = { ...stateOf(story), seed: i + 1 };
  const wrong = ["left", "right"].filter((side) => read(advance(begin(state, side), state.draws), state.draws).wrong);
  return { name: story.name, fails: story.fails, why: story.why, seed: i + 1, wrong };
}));
"""


@pytest.fixture(scope="module")
def presets():
    return run(PRESETS, files=FILES)


def test_every_figure_has_presets(presets):
    assert {result["figure"] for result in presets} == set(SCRIPTS) - {"sandbox"}
    for name in set(SCRIPTS) - {"sandbox"}:
        assert len({result["preset"] for result in presets if result["figure"] == name}) >= 3, name


@pytest.mark.parametrize("figure", sorted(set(SCRIPTS) - {"sandbox"}))
def test_presets_show_what_they_say(presets, figure):
    mine = [result for result in presets if result["figure"] == figure]
    failed = [(result["preset"], result["seed"], result["see"]) for result in mine if result["holds"] is not True]
    assert not failed


def test_sentences_are_sentences(presets):
    """With numbers where there are some, and none that is no number."""
    for result in presets:
        for words in (result["see"], result["why"]):
            assert re.match(r"[A-Z0-9]|n = ", words) and words.rstrip().endswith("."), words
            assert not re.search(r"NaN|undefined|Infinity|\[object", words), words
        assert re.search(r"\d", result["see"]), result["see"]


def test_what_a_preset_says_is_not_true_of_all():
    """The negative control: what one preset asserts, the run of another one breaks."""
    blind = {(figure, preset) for figure, preset, refused in run(OTHERS, files=FILES) if not refused}
    # Of larger steps of SGNUTS it is said only that two faults begin to cancel: a chain of a page cannot tell by how much.
    assert blind <= {("sgnuts", "larger steps")}


def test_stories_of_the_sandbox_fail_where_they_say():
    stories = run(STORIES, files=FILES)
    assert [(story["name"], story["seed"], story["wrong"]) for story in stories if story["wrong"] != [story["fails"]]] == []
