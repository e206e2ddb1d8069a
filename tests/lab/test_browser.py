"""The live figures in a browser, from files: every preset is opened and says what it
says under Node, and nothing complains.

The site of the book is looked at by ``tests/book/test_browser.py``; here is a small
one, with a page for each figure."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import sync_playwright

from tests.lab.pages import FIGURES, PAGE, SCRIPTS, build, presets
from tools import editions

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        editions.CHROMIUM is None,
        reason="no Chromium is installed, in which the live figures run",
    ),
]

AXE = """async () => (await axe.run(".lab", {resultTypes: ["violations"], preload: false})).violations
  .filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => v.id + ": " + v.nodes[0].html.slice(0, 120))"""
SMALL = """() => [...document.querySelectorAll(".lab :is(button, select, input)")]
  .filter((e) => e.getBoundingClientRect().height < 24 || e.getBoundingClientRect().width < 24).map((e) => e.outerHTML.slice(0, 80))"""
SIDEWAYS = (
    "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
)
HEIGHTS = (
    "() => [...document.querySelectorAll('.lab, .lab-why, .lab-see, .lab "
    "canvas')].map((e) => Math.round(e.getBoundingClientRect().height))"
)
INK = """() => [...document.querySelectorAll(".lab canvas")].map((e) => {
  const {data} = e.getContext("2d").getImageData(0, 0, e.width, e.height), first = [...data.slice(0, 3)];
  let other = 0;
  for (let i = 0; i < data.length; i += 4) { other += Math.abs(data[i] - first[0]) + Math.abs(data[i + 1] - first[1]) > 60; }
  return [first[0], other / e.width / e.height];
})"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    status, said = build(folder, {name: PAGE.format(name) for name in SCRIPTS})
    assert status == 0, said
    return folder / "html"


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=editions.CHROMIUM, args=["--no-sandbox"], timeout=0
        )
        yield started
        started.close()


@pytest.fixture
def look(browser, site):
    """Open the page of a figure; what the console says must be nothing."""
    contexts, said = [], []

    def open_page(name, address="", played=True, **settings):
        context = browser.new_context(
            **{
                "viewport": {"width": 1400, "height": 900},
                "reduced_motion": "reduce",
                **settings,
            }
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(0)  # a busy machine may take its time
        page.on(
            "console",
            lambda message: (
                said.append(message.text)
                if message.type == "error" and "/lab/" in str(message.location)
                else None
            ),
        )
        page.on("pageerror", lambda error: said.append(str(error)))
        if not played:
            page.clock.install()
        page.goto((site / f"{name}.html").as_uri() + address)
        page.wait_for_selector(".lab-why")
        if played and name != "sandbox":
            page.locator(".lab-try button").first.click()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_every_preset_says_in_the_browser_what_it_says_under_node(name, look):
    page = look(name)
    buttons = page.locator(".lab-try button")
    expected = presets(name)
    assert buttons.all_text_contents() == [preset["name"] for preset in expected]
    for i, preset in enumerate(expected):
        buttons.nth(i).click()
        assert buttons.nth(i).get_attribute("aria-pressed") == "true"
        assert preset["why"] in page.locator(".lab-why").text_content()
        if name == "sandbox":
            found = page.evaluate("""() => { const {shown, runs} = document.querySelector(".lab").live();
              return runs.map((side) => lab.sandbox.read(side, shown).wrong); }""")
            fails = page.evaluate(f"() => lab.sandbox.STORIES[{i}].fails")
            assert found == [fails == "left", fails == "right"]
        else:
            assert page.locator(".lab-see").text_content() == preset["see"]
            assert page.evaluate(
                "() => { const {figure, now} = "
                "document.querySelector('.lab').live; return "
                f"figure.presets[{i}].holds(now().run); }}"
            )


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_opens_as_a_question_and_answers_after_the_first_play(name, look):
    page = look(name, played=False)
    why, see = page.locator(".lab-why"), page.locator(".lab-see")
    assert why.text_content().startswith("Before you play")
    assert not see.is_visible()
    assert page.locator(".lab-count").text_content().split()[1] == "0"
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(50)  # to the first frame; no figure is played for a minute
    page.clock.fast_forward("01:00")
    see.wait_for(state="visible")
    assert why.text_content() == presets(name)[0]["why"]
    assert see.text_content() == presets(name)[0]["see"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_figure_can_be_read_by_all(name, look):
    page = look(name)
    page.evaluate(AXE_SCRIPT)
    assert page.evaluate(AXE) == [] and page.evaluate(SMALL) == []
    light = page.evaluate(INK)
    # as the button of the theme does
    page.evaluate("() => { document.documentElement.dataset.theme = 'dark'; }")
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert page.evaluate(AXE) == []
    dark = page.evaluate(INK)
    assert all(paper == 255 and ink > 0.01 for paper, ink in light) and all(
        paper < 40 and ink > 0.01 for paper, ink in dark
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_figure_fits_a_telephone(name, look):
    page = look(
        name,
        viewport={"width": 390, "height": 844},
        has_touch=True,
        device_scale_factor=2,
    )
    assert page.evaluate(SIDEWAYS) == 0 and page.evaluate(SMALL) == []
    assert all(ink > 0.01 for _, ink in page.evaluate(INK))


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_jumps_and_the_keyboard_reaches_all(name, look):
    page = look(name, reduced_motion="no-preference")
    heights, see = page.evaluate(HEIGHTS), page.locator(".lab-see").text_content()
    play, scrub = (
        page.locator(".lab-moves button").first,
        page.locator(".lab-moves input"),
    )
    play.focus()
    page.keyboard.press("Enter")
    page.wait_for_function(
        "() => { const {run, shown} = document.querySelector('.lab').live.now(); "
        "return shown > 0 && shown < run.length; }"
    )
    assert page.evaluate(HEIGHTS) == heights
    page.keyboard.press("Enter")
    assert (
        play.text_content() == "Play" and page.locator(".lab-see").text_content() == see
    )
    scrub.focus()
    page.keyboard.press("Home")
    assert page.evaluate("() => document.querySelector('.lab').live.now().shown") == 0
    page.locator(".lab-slider input").first.focus()
    page.keyboard.press("End")
    page.wait_for_function(
        "(see) => document.querySelector('.lab-see').textContent !== see", arg=see
    )
    assert page.evaluate(HEIGHTS) == heights
    assert (
        page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
        == "solid"
    )
    page.get_by_role("button", name="Reset").click()
    assert page.locator(".lab-see").text_content() == see


def test_the_sandbox_runs_goes_back_and_keeps_its_state_in_the_address(look):
    page = look("sandbox")
    assert (
        page.evaluate(
            "() => document.querySelector('.lab').getBoundingClientRect().bottom + "
            "scrollY"
        )
        <= 900
    )
    tops = page.evaluate(
        "() => [...document.querySelectorAll('.lab-side')].map((side) => "
        "[...side.children].map((e) => e.getBoundingClientRect().top))"
    )
    assert tops[0] == tops[1]  # row beside row
    page.get_by_role("button", name="Step", exact=True).click()
    assert page.locator(".lab-count").text_content() == "draw 3001 of 3001"
    page.locator(".lab-moves input").fill("100")
    assert page.locator(".lab-see").text_content().startswith("After 100 draws")
    page.get_by_label("algorithm on the right").select_option("nuts")
    page.get_by_label("landscape").select_option("banana")
    address, see = (
        page.evaluate("() => location.hash"),
        page.locator(".lab-see").text_content(),
    )
    assert "landscape=banana" in address and "right=nuts" in address
    again = look("sandbox", address)
    assert again.locator(".lab-see").text_content() == see
    with page.expect_download() as download:
        page.get_by_role("button", name="Save picture").click()
    assert (
        download.value.suggested_filename == "sandbox.png"
        and download.value.path().read_bytes()[:4] == b"\x89PNG"
    )
