"""The built site in a real browser, from files: every page at two widths, light and
dark. ``make test`` builds it first.

The width does not change which elements a page has or what colours they take, and the
theme does not change what is how wide. So overflow is looked for at both widths in one
theme, contrast in both themes at one width, and all other rules once.

Contrast is most of the time: a page has thousands of coloured words of code. Words that
are drawn alike on the same grounds have the same contrast, so axe is shown the first of
them on each page."""

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
# Mark the first of the elements with text of its own that are drawn alike: in colour, size, weight and shade, on whatever else is painted where they stand.
MARK = """() => {
  document.querySelectorAll("[data-first-drawn]").forEach((e) => e.removeAttribute("data-first-drawn"));
  const all = [...document.querySelectorAll("body, body *")].filter((e) => !e.closest("head, script, style, mjx-assistive-mml"));
  const look = (e, ...names) => { const style = getComputedStyle(e); return names.map((name) => style[name]).join("|"); };
  const shades = new Map(), grounds = [];
  for (const e of all) {
    shades.set(e, (shades.get(e.parentElement) ?? "") + look(e, "opacity", "filter", "mixBlendMode", "visibility").replace("1|none|normal|visible", ""));
    const ground = look(e, "backgroundColor", "backgroundImage");
    if (ground !== "rgba(0, 0, 0, 0)|none" || e.matches("img, svg, canvas, video")) {
      grounds.push({ e, box: e.getBoundingClientRect(), drawn: ground + "|" + e.tagName + look(e, "position", "zIndex") + shades.get(e) });
    }
  }
  const known = new Set();
  for (const e of all) {
    if (![...e.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) && !e.matches("input, select, textarea")) { continue; }
    const box = e.getBoundingClientRect();
    const under = grounds.filter(({ e: other, box: b }) => other === e || !e.contains(other) &&
      b.left < box.right && box.left < b.right && b.top < box.bottom && box.top < b.bottom).map(({ drawn }) => drawn);
    const drawn = [look(e, "color", "fontSize", "fontWeight", "textShadow", "webkitTextStroke", "position"), shades.get(e), ...under].join(";");
    if (!known.has(drawn)) { known.add(drawn); e.setAttribute("data-first-drawn", ""); }
  }
  return known.size;
}"""
ONLY_MARKED = """() => { axe.configure({rules: [{id: "color-contrast", selector: "[data-first-drawn]"}]}); }"""
AXE = """async (options) => (await axe.run(document, options)).violations
  .filter((v) => v.impact === "serious" || v.impact === "critical")
  .flatMap((v) => v.nodes.slice(0, 8).map((n) => v.id + " at " + n.target.join(" ") + ": " + n.html.slice(0, 160)))"""

CONTRAST = {
    "runOnly": ["color-contrast"],
    "resultTypes": ["violations"],
    "preload": False,
}


async def new_page(context):
    """Open a tab; return it, and what it has to complain of."""
    page, said = await context.new_page(), []
    page.on(
        "console",
        lambda message: said.append(message.text) if message.type == "error" else None,
    )
    page.on("pageerror", lambda error: said.append(str(error)))
    page.set_default_timeout(0)  # a busy machine must not fail a page
    return page, said


async def look_at(page, said, path):
    """Go to one page; return what is wrong with it, by kind.

    In a tab that has seen another page, Chromium knows the scripts."""
    found = {}
    said.clear()
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
    await page.evaluate(ONLY_MARKED)
    await page.evaluate(MARK)
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
    await page.evaluate(MARK)
    dark = await page.evaluate(AXE, CONTRAST)
    found["accessibility"] += [f"dark: {what}" for what in dark]
    await page.set_viewport_size(NARROW)
    await page.evaluate("() => new Promise(requestAnimationFrame)")
    found["overflow"] += [
        f"narrow: {what}"
        for looked in (OVERFLOW, CUT, UNMARKED)
        for what in await page.evaluate(looked)
    ]
    found["console"] = list(said)
    return found


async def look_at_all(paths):
    """Open the pages, a few at once; return what is wrong, by page and kind."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=editions.CHROMIUM, args=["--no-sandbox"], timeout=0
        )
        context, left, found = await browser.new_context(), list(paths), {}

        async def work():
            page, said = await new_page(context)
            while left:
                path = left.pop()
                found[path] = await look_at(page, said, path)

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


# Forty words drawn alike, one of them on a dark box that does not contain it, and four
# in a shade, a colour, on a ground and of a size of their own.
DRAWN = (
    """<!DOCTYPE html><html lang="en"><title>words</title><style>
body { background: white; color: #595959; font: 16px sans-serif; }
p { position: relative; margin: 1em 0; }
.box { position: absolute; left: 0; top: 0; width: 20em; height: 2em; background: #333; z-index: -1; }
[data-theme=dark] body { background: #222; color: #ddd; } [data-theme=dark] b { color: #333; }
</style><body><main><h1>Words</h1>"""
    + "".join(f"<p><span>word{i}</span> <b>bold{i}</b></p>" for i in range(39))
    + """<p id="boxed"><i class="box"></i><span>boxed</span></p>
<p style="opacity: .4"><span id="shade">shaded</span></p><p><span id="colour" style="color: #aaa">pale</span></p>
<p style="background: #b4b4b4"><span id="small">small</span> <span id="large" style="font-size: 30px">large</span></p>
</main></body></html>"""
)


def test_of_words_that_are_drawn_alike_one_is_looked_at(tmp_path):
    """Without a loss: each way of being drawn that axe finds at fault is found."""
    (tmp_path / "words.html").write_text(DRAWN)
    faults = """async (options) => (await axe.run(document, options)).violations
      .flatMap((v) => v.nodes.map((n) => document.querySelector(n.target[0])))
      .map((e) => e.id || e.tagName + " in " + (e.parentElement.id || e.parentElement.tagName))"""

    async def look():
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=editions.CHROMIUM, args=["--no-sandbox"], timeout=0
            )
            page = await browser.new_page()
            page.set_default_timeout(0)
            await page.goto((tmp_path / "words.html").as_uri())
            await page.evaluate(AXE_SCRIPT)
            found = {}
            for theme in ("light", "dark"):
                await page.evaluate(
                    f"document.documentElement.dataset.theme = '{theme}'"
                )
                found[theme, "all"] = await page.evaluate(faults, CONTRAST)
            await page.evaluate(ONLY_MARKED)
            for theme in ("light", "dark"):
                await page.evaluate(
                    f"document.documentElement.dataset.theme = '{theme}'"
                )
                found[theme, "number"] = await page.evaluate(MARK)
                found[theme, "first"] = await page.evaluate(faults, CONTRAST)
            await browser.close()
            return found

    found = asyncio.run(look())
    for theme in ("light", "dark"):
        assert found[theme, "number"] <= 10
        assert set(found[theme, "first"]) == set(found[theme, "all"])
        assert len(found[theme, "first"]) == len(set(found[theme, "first"]))
    assert set(found["light", "all"]) == {"SPAN in boxed", "shade", "colour", "small"}
    assert {"B in P", "shade"} <= set(found["dark", "all"])
    assert found["dark", "all"].count("B in P") == 39


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_has_a_fault_of_the_kind(findings, kind):
    assert {
        str(page.relative_to(SITE)): found[kind]
        for page, found in findings.items()
        if found[kind]
    } == {}
