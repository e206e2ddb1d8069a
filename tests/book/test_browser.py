"""The built site in a real browser, from files: every page at two widths, light and
dark. ``make test`` builds it first.

The width does not change which elements a page has or what colours they take, and the
theme does not change what is how wide. So overflow is looked for at both widths in one
theme, contrast in both themes at one width, and all other rules once."""

import asyncio
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import async_playwright

from tests.book.test_site import moved
from tools import editions

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
WIDE, NARROW = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
AT_ONCE = 2
KINDS = ("overflow", "images", "headings", "accessibility", "console")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        editions.CHROMIUM is None,
        reason="no Chromium is installed, in which the pages are looked at",
    ),
]

# What sticks out of the page, though it cannot be scrolled to by itself.
OVERFLOW = """() => {
  const root = document.documentElement, wide = root.clientWidth;
  if (root.scrollWidth <= wide) { return []; }
  return [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > wide + 1)
    .slice(0, 5).map((e) => e.tagName + "." + e.className + ": " + e.textContent.trim().slice(0, 60));
}"""
# What is cut off: wider than its box, which neither scrolls nor shows what sticks out.
CUT = """() => [...document.querySelectorAll("article *")].filter((e) => {
  const style = getComputedStyle(e);
  return style.overflowX === "hidden" && style.display !== "inline" && e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1
    && !e.closest("mjx-container, mjx-assistive-mml, .visually-hidden, .cell_input, button");
}).slice(0, 5).map((e) => e.tagName + "." + e.className)"""
# What scrolls sideways and does not show it: site.js marks what does.
UNMARKED = """() => [...document.querySelectorAll("article *")].filter((e) =>
  /auto|scroll/.test(getComputedStyle(e).overflowX) && e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1
    && !(e.classList.contains("scrolls") && e.classList.contains("more"))
).slice(0, 5).map((e) => "scrolls unseen: " + e.tagName + "." + e.className)"""
IMAGES = """() => [...document.querySelectorAll("img")].filter((e) => e.alt === null || !e.hasAttribute("alt") ||
    /\\.(png|svg|jpe?g)$/.test(e.alt) || (e.alt === "" && e.closest("article"))).map((e) => e.getAttribute("src").slice(0, 80))"""
HEADINGS = """() => {
  const heads = [...document.querySelectorAll("main :is(h1, h2, h3, h4, h5, h6)")].filter((e) => !e.closest("#jb-print-docs-body"));
  const levels = heads.map((e) => [+e.tagName[1], e.textContent.trim()]);
  const wrong = levels.filter(([level], i) => i > 0 && level > levels[i - 1][0] + 1).map(([, text]) => text);
  return levels.filter(([level]) => level === 1).length === 1 ? wrong : [...wrong, "not exactly one first heading"];
}"""
AXE = """async (options) => (await axe.run(document, options)).violations
  .filter((v) => v.impact === "serious" || v.impact === "critical")
  .flatMap((v) => v.nodes.slice(0, 8).map((n) => v.id + " at " + n.target.join(" ") + ": " + n.html.slice(0, 160)))"""


async def look_at(context, path):
    """Open one page; return what is wrong with it, by kind."""
    page, found = await context.new_page(), {}
    said = []
    page.on(
        "console",
        lambda message: said.append(message.text) if message.type == "error" else None,
    )
    page.on("pageerror", lambda error: said.append(str(error)))
    page.set_default_timeout(0)  # a busy machine must not fail a page
    await page.set_viewport_size(WIDE)
    await page.emulate_media(color_scheme="light", reduced_motion="reduce")
    await page.goto(path.as_uri())
    await page.evaluate(
        "() => window.MathJax?.startup?.promise?.then(() => new "
        "Promise(requestAnimationFrame))"
    )
    # no look at what is half faded in
    await page.add_style_tag(
        content="* { animation: none !important; transition: none !important; }"
    )
    await page.evaluate(
        "() => document.querySelectorAll('details').forEach((fold) => { fold.open = "
        "true; })"
    )
    await page.evaluate(AXE_SCRIPT)
    found["images"] = await page.evaluate(IMAGES)
    found["headings"] = await page.evaluate(HEADINGS)
    found["accessibility"] = await page.evaluate(
        AXE, {"resultTypes": ["violations"], "preload": False}
    )
    found["overflow"] = [
        f"wide: {what}"
        for what in await page.evaluate(OVERFLOW) + await page.evaluate(CUT)
    ]
    # as the button of the theme does
    await page.evaluate("() => { document.documentElement.dataset.theme = 'dark'; }")
    dark = await page.evaluate(
        AXE,
        {
            "runOnly": ["color-contrast"],
            "resultTypes": ["violations"],
            "preload": False,
        },
    )
    found["accessibility"] += [f"dark: {what}" for what in dark]
    await page.set_viewport_size(NARROW)
    await page.evaluate("() => new Promise(requestAnimationFrame)")
    found["overflow"] += [
        f"narrow: {what}"
        for looked in (OVERFLOW, CUT, UNMARKED)
        for what in await page.evaluate(looked)
    ]
    found["console"] = said
    await page.close()
    return found


async def look_at_all(paths):
    """Open the pages, a few at once; return what is wrong, by page and kind."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=editions.CHROMIUM, args=["--no-sandbox"], timeout=0
        )
        context, left, found = await browser.new_context(), list(paths), {}

        async def work():
            while left:
                path = left.pop()
                found[path] = await look_at(context, path)

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        await browser.close()
    return found


@pytest.fixture(scope="module")
def findings():
    elsewhere = {SITE / f"{old}.html" for old in moved()}
    paths = [
        path
        for path in SITE.rglob("*.html")
        if "_static" not in path.parts and path not in elsewhere
    ]
    assert paths, "there is no built site: say make book first"
    # taken from the end: the largest first
    return asyncio.run(look_at_all(sorted(paths, key=lambda path: path.stat().st_size)))


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_has_a_fault_of_the_kind(findings, kind):
    assert {
        str(page.relative_to(SITE)): found[kind]
        for page, found in findings.items()
        if found[kind]
    } == {}
