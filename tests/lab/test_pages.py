"""The live figures without a browser: what they say under Node, what a page loads, and
what who reads without scripts sees.

Monte Carlo: a preset holds within four standard errors. With about ninety runs of two
estimates each, fixed seeds, and errors that are themselves estimates, a set of seeds
chosen blindly would fail in about one of twenty; these seeds do not, and the arithmetic
is exact."""

import json
import re

import pytest
from bs4 import BeautifulSoup

from booklib.page.figures import COLOURS, TRUTH
from tests.lab.pages import FIGURES, LAB, PAGE, SCRIPTS, build, presets, run_node
from tools import editions, live_lab

LIMIT = 60_000  # bytes of script of a page


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_one_should_see_holds_under_every_preset(name):
    assert [
        preset["name"] for preset in presets(name) if not all(preset["holds"])
    ] == []


@pytest.mark.parametrize("name", FIGURES)
def test_sentences_are_whole(name):
    for preset in presets(name):
        said = [preset["see"], preset["why"], *preset["alts"]]
        assert all(
            sentence.endswith(".") for sentence in (preset["see"], preset["why"])
        ), said
        assert not [
            sentence
            for sentence in said
            if re.search(r"NaN|undefined|Infinity|\[object", sentence)
        ]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_page_has_less_script_than_the_limit(name):
    assert sum(path.stat().st_size for path in live_lab.scripts_of(name)) < LIMIT


def test_scripts_are_classic_and_call_nobody():
    for path in {path for name in SCRIPTS for path in live_lab.scripts_of(name)}:
        found = re.findall(
            r"\bimport\b\s*[({\"']|\bexport\b|\bfetch\(|\bWorker\b|\beval\(|https?:|Math\.random|Date\b|localStorage",
            path.read_text(),
        )
        assert found == [], f"{path.name}: {found}"


def test_algorithms_have_the_colours_of_the_book():
    colours = dict(
        re.findall(
            r"(\w+): \"(#\w{6})\"",
            re.search(
                r"lab\.colours = \{(.*?)\}", (LAB / "plot.js").read_text(), re.DOTALL
            )[1],
        )
    )
    names = {
        **{
            "random_walk": "random walk",
            "hmc": "HMC",
            "nuts": "NUTS",
            "sgd": "SGD",
            "sgld": "SGLD",
            "cyclical": "SGLD",
        },
        **{"naive_sghmc": "naive SGHMC", "sghmc": "SGHMC"},
        # as in the chapter
        **{"sgnuts_energy": "naive SGHMC", "sgnuts_repaired": "SGNUTS"},
    }
    assert colours.pop("truth") == "#" + 3 * f"{round(float(TRUTH) * 255):02X}"
    assert colours == {name: COLOURS[of] for name, of in names.items()}
    assert COLOURS["leapfrog"] == COLOURS["HMC"]


def test_an_address_holds_the_state_and_nonsense_does_no_harm():
    script = (
        f"const {{ load }} = require({json.dumps(str(LAB / 'still.js'))});"
        """
    const lab = load("sandbox"), { STORIES, stateOf, toAddress, fromAddress, begin, advance } = lab.sandbox;
    const kept = STORIES.every((story) => JSON.stringify(fromAddress(toAddress(stateOf(story)))) === JSON.stringify(stateOf(story)));
    const odd = fromAddress("#landscape=toString&left=leapfrog&right=nuts&right.step_size=-4&seed=x&draws=1e99&chains=7&V=<b>");
    advance(begin(odd, "left"), 3);
    const many = fromAddress("#chains=1000&right.num_steps=7.5");
    console.log(JSON.stringify({ kept, odd, many }));
    """
    )
    found = json.loads(run_node(script))
    plain = {
        "landscape": "gaussian",
        "noise_variance": 0,
        "seed": 1,
        "chains": "1",
        "draws": 3000,
        "left": "sghmc",
    }
    assert found["kept"]
    assert found["odd"] == {**plain, "right": "nuts"}
    assert found["many"] == {
        **plain,
        "chains": "1000",
        "draws": 400,
        "right": "naive_sghmc",
        "right.num_steps": 7,
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    status, said = build(
        folder, {"live": PAGE.format("leapfrog"), "plain": "# Plain\n"}
    )
    assert status == 0, said
    return folder / "html"


def test_only_pages_with_a_live_figure_load_its_scripts(site):
    def loaded(page):
        head = BeautifulSoup((site / f"{page}.html").read_text(), "html.parser")
        return [
            script["src"].split("?")[0]
            for script in head.select("script[src]")
            if "/lab/" in script["src"]
        ]

    assert loaded("live") == [
        f"_static/lab/{script}.js" for script in SCRIPTS["leapfrog"]
    ]
    assert loaded("plain") == loaded("index") == []
    assert all(
        (site / path).read_bytes()
        == (LAB.parent / path.removeprefix("_static/")).read_bytes()
        for path in loaded("live")
    )


def test_who_reads_without_scripts_sees_a_still_and_so_do_pdf_and_epub(site):
    text = editions.read(site, "live")
    found = editions.article(text, "live", ["live"], lambda page, name: f"#{name}")
    (image,) = found.select("figure.live img")
    assert image["alt"] == "the still of leapfrog" and not found.select("script")
    drawn = (site / image["src"]).read_text()
    assert drawn == live_lab.draw_still("leapfrog")
    assert (
        "momentum r" in drawn
        and drawn.count("<path") > 50
        and not re.search("NaN|undefined", drawn)
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_still_can_be_drawn(name):
    drawn = live_lab.draw_still(name)
    assert (
        drawn.startswith("<svg")
        and drawn.count("<text") > 30
        and not re.search("NaN|undefined|Infinity", drawn)
    )
    assert len(drawn) < 300_000


NOT = {
    "```{live} leapfrog\n```": "needs an :alt:",
    "```{live} nobody\n:alt: nothing\n```": "there is no live figure 'nobody'",
}


@pytest.mark.parametrize(("text", "message"), NOT.items())
def test_what_is_wrong_with_a_live_figure_is_said(text, message, tmp_path):
    status, said = build(tmp_path, {"page": f"# A page\n\n{text}\n"})
    assert status != 0 and message in said
