"""The reader's notebooks: what of a page becomes which Markdown, which pages are made
again, and that nobody's changes are lost.
"""

import importlib.util
import json
import os

import nbformat
import pytest

from tools import editions, markdown, readers, sentences

MATH = '<span class="math notranslate nohighlight">\\({}\\)</span>'
BARS = MATH.format(r"\|x\| = |y|")
NAMED = """<div class="{kinds} admonition" id="{id}">
<p class="admonition-title"><span class="caption-number">{title} </span>{name}</p>
<section>{text}</section></div>"""


def link(address, words):
    return f'<a class="reference internal" href="{address}">{words}</a>'


def display(formula):
    return f'<div class="math notranslate nohighlight">\\[{formula}\\]</div>'


def written(page):
    """Write a piece of a page as Markdown."""
    return "\n\n".join(markdown.blocks(markdown.parse(page)))


INLINE = {
    "a formula": (f"Let {MATH.format('x_1 &lt; 2')}.", "Let $x_1 < 2$."),
    "code": (
        '<code><span class="pre">f(x,</span> <span class="pre">*y)</span></code>',
        "`f(x, *y)`",
    ),
    "a link": (
        f"See {link('x.ipynb#a', '<span>Fig. 1.2</span>')}.",
        "See [Fig. 1.2](x.ipynb#a).",
    ),
    "emphasis": (
        "An <em>idea</em>, <strong>stated</strong>.",
        "An *idea*, **stated**.",
    ),
    "a link without an address": ("<a>word</a>", "word"),
    "a comment": ("a<!-- b -->", "a"),
    "an image": ('<img alt="A curve" src="../a.png"/>', "![A curve](../a.png)"),
    "what Markdown would read": (
        "a*b*c _d_ $5 &lt;b&gt; `x` ~y~",
        r"a\*b\*c \_d\_ \$5 \<b> \`x\` \~y\~",
    ),
    "what would begin a list": (
        "It was in\n2014. So\n- one\n# two",
        "It was in\n2014\\. So\n\\- one\n\\# two",
    ),
    "a place to which a link leads": (
        '<span id="here"></span>text',
        '<a id="here"></a>text',
    ),
}
BLOCKS = {
    "a formula with a number": (
        '<div class="math" id="equation-a"><span '
        'class="eqno">(10.2)</span>\\[x\\]</div>',
        '<div id="equation-a"></div>\n\n$$\nx\\tag{10.2}\n$$',
    ),
    "a formula whose lines have an environment": (
        display(r"\begin{split} \begin{aligned}a&amp;\\b\end{aligned} \end{split}"),
        "$$\n" + r"\begin{aligned}a&\\b\end{aligned}" + "\n$$",
    ),
    "a formula whose lines have two": (
        display(
            r"\begin{split}\begin{cases}a\end{cases}\\\begin{cases}b\end{cases}\end{split}"
        ),
        "$$\n"
        + r"\begin{split}\begin{cases}a\end{cases}\\\begin{cases}b\end{cases}\end{split}"
        + "\n$$",
    ),
    "a theorem": (
        NAMED.format(
            kinds="proof theorem",
            id="thm",
            title="Theorem 2.1",
            name="(Balance)",
            text=(
                "<p>So "
                f"{MATH.format('x')}\nis</p>{display(chr(10) + 'x' + chr(10) + '= 1')}<p>true.</p>"
            ),
        ),
        '<div id="thm"></div>\n\n> **Theorem 2.1 (Balance)**\n>\n> So $x$\n> is\n>\n> '
        "$$ x = 1 $$\n>\n> true.",
    ),
    "a proof": (
        '<div class="proof admonition"><p>Proof. Clear.</p></div>',
        "> *Proof.* Clear.",
    ),
    "an exercise with a list": (
        NAMED.format(
            kinds="exercise",
            id="ex",
            title="Exercise 1.1",
            name="",
            text="""<ol class="simple"><li><p>one</p><ol class="simple"><li><p>within</p></li></ol></li>
<li><p>two</p></li></ol>""",
        ),
        '<div id="ex"></div>\n\n> **Exercise 1.1**\n>\n> 1. one\n>    1. within\n> 2. '
        "two",
    ),
    "a solution": (
        f"""<div class="solution dropdown admonition">
<p class="admonition-title">Solution to{link("#ex", " Exercise 1.1")}</p>
<section><p>It is {MATH.format("x")}:</p>{display("x")}</section></div>""",
        "<details>\n<summary>Solution to Exercise 1.1</summary>\n\nIt is "
        "$x$:\n\n$$\nx\n$$\n\n</details>",
    ),
    "code": (
        """<div class="highlight-python notranslate"><div class="highlight"><pre><span></span>
<span class="k">def</span> f():\n\n    pass\n</pre></div></div>""",
        "```python\ndef f():\n\n    pass\n```",
    ),
    "text as it is": (
        '<div class="highlight-none"><div class="highlight"><pre>a\n</pre></div></div>',
        "```\na\n```",
    ),
    "the head of a page": (
        '<div class="page-head docutils"><p>Level: first</p></div>',
        "> Level: first",
    ),
    "a list": (
        '<ul class="simple"><li><p>one\nmore</p></li><li><p>two</p></li></ul>',
        "* one\n  more\n* two",
    ),
    "a list with a formula": (
        f"<ul><li><p>one</p>{display('x')}</li></ul>",
        "* one\n\n  $$\n  x\n  $$",
    ),
    "a table": (
        f"""<table><tr><th><p>a</p></th><th class="head text-right"><p>b</p></th></tr>
<tr><td><p>{BARS} or |</p></td>
<td class="text-right"><p>1</p><p>2</p></td></tr></table>""",
        "| a | b |\n| --- | ---: |\n"
        + r"| $\Vert x\Vert  = \vert y\vert $ or \| | 1<br>2 |",
    ),
    "terms": (
        """<dl class="simple glossary"><dt id="term-a">a</dt><dd><p>First.</p></dd>
<dt>b</dt><dd><p>Second.</p></dd></dl>""",
        '<div id="term-a"></div>\n\n**a**\n\nFirst.\n\n**b**\n\nSecond.',
    ),
    "a footnote": (
        """<hr class="footnotes"/><aside class="footnote-list"><aside class="footnote" id="n">
<span class="label">[<a href="#i">1</a>]</span><p>Note.</p></aside></aside>""",
        '<div id="n"></div>\n\n[1] Note.',
    ),
}


@pytest.mark.parametrize("kind", INLINE)
def test_what_stands_in_a_line(kind):
    page, expected = INLINE[kind]
    assert written(f"<p>{page}</p>") == expected


@pytest.mark.parametrize("kind", BLOCKS)
def test_blocks(kind):
    page, expected = BLOCKS[kind]
    assert written(page) == expected


# A book of two chapters and a page of text, as it lies there after it was built.

HEAD = (
    '<h1><span class="section-number">{}. </span>{}<a class="headerlink" '
    'href="#x">#</a></h1>'
)
CAPTION = """<figcaption><p><span class="caption-number">{} </span>
<span class="caption-text">{}</span></p></figcaption>"""
PAGES = {
    "index": '<section><h1>The book<a class="headerlink"></a></h1></section>',
    "book/part/one": f"""<section id="one">{HEAD.format(1, "The first")}
<p>See {link("#thm-a", "Theorem 1.1")}, {link("two.html#equation-b", "(2.1)")},
{link("#fig-a", "Fig. 1.1")}, {link("#fig-live-a", "Fig. 1.2")},
{link("../appendix/glossary.html#term-a", "term")}, {link("../appendix/claims.html#c", "claims")}
and <a class="reference external" href="https://example.org">elsewhere</a>.</p>
<div class="cell docutils container"><div class="cell_input"><pre>import x</pre></div></div>
<section id="a-part"><h2>A part<a class="headerlink" href="#a-part">#</a></h2>
<div class="cell tag_hide-input docutils container">
<details class="hide"><summary>Show</summary><pre>plot()</pre></details>
<div class="cell_output"><figure id="fig-a"><img alt="A line" src="../../_images/a.png"/>
{CAPTION.format("Fig. 1.1", "A line.")}</figure></div></div>
<p>After it.</p>
{NAMED.format(kinds="proof theorem", id="thm-a", title="Theorem 1.1", name="(A)", text="<p>True.</p>")}
<figure class="live" id="fig-live-a"><img alt="still" src="../../_images/a.svg"/>
{CAPTION.format("Fig. 1.2", "Live: a.")}</figure>
</section></section>""",
    "book/part/two": f"""<section id="two">{HEAD.format(2, "The second")}
<p>With</p><div class="math" id="equation-b"><span class="eqno">(2.1)</span>\\[x\\]</div>
<p>see {link("one.html", "The first")} and {link("one.html#a-part", "a part")}.</p></section>""",
    "book/appendix/glossary": f"""<section id="glossary">{HEAD.format("A", "Glossary")}
<dl class="simple glossary"><dt id="term-a">a</dt><dd><p>First.</p></dd>
<dt id="term-b">b</dt><dd><p>Second.</p></dd></dl></section>""",
    "book/appendix/claims": f'<section id="claims">{HEAD.format("B", "Claims")}</section>',
}
OUTPUTS = [
    {"output_type": "stream", "name": "stderr", "text": "a warning"},
    {
        "output_type": "display_data",
        "metadata": {},
        "data": {
            "text/plain": "a film",
            "image/png": "AAAA",
            "text/html": '<div class="frames"></div>',
        },
    },
    {
        "output_type": "display_data",
        "metadata": {sentences.KEPT: [{"name": "a"}]},
        "data": {
            "text/plain": "✓ a claim\n✓ another",
            "text/html": '<details class="checks"><div class="claim">✓</div></details>',
        },
    },
]


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Lay out a built book, and let the tool find it."""
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nparts:\n- caption: Part\n  chapters:\n  - "
        "file: book/part/one\n  - file: book/part/two\n"
        "- caption: Appendix\n  chapters:\n  - file: book/appendix/glossary\n  - "
        "file: book/appendix/claims\n"
    )
    for page, text in PAGES.items():
        put(tmp_path, page, text)
    code = [
        nbformat.v4.new_code_cell("import x", execution_count=1),
        nbformat.v4.new_code_cell(
            "plot()",
            execution_count=2,
            outputs=OUTPUTS,
            metadata={"tags": ["hide-input"]},
        ),
    ]
    executed = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("# Raw {doc}`x`"), *code]
    )
    for folder in ("_build/source", "_build/html/_sources"):
        target = tmp_path / folder / "book" / "part" / "one.ipynb"
        target.parent.mkdir(parents=True)
        nbformat.write(nbformat.from_dict(executed), target)
    monkeypatch.setattr(editions, "ROOT", tmp_path)
    for name, folder in {
        "ROOT": "",
        "SITE": "_build/html",
        "MADE": "_build/notebooks",
        "COPIES": "notebooks",
    }.items():
        monkeypatch.setattr(readers, name, tmp_path / folder)
    return tmp_path


def put(root, page, text):
    target = root / "_build" / "html" / f"{page}.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(
        "<html><body><h1>Not this</h1><article "
        f'class="bd-article">{text}</article></body></html>'
    )


def cells(root, name):
    notebook = nbformat.read(root / "_build" / "notebooks" / f"{name}.ipynb", 4)
    nbformat.validate(notebook)
    return notebook.cells


def test_a_notebook_that_is_opened_elsewhere_says_what_it_needs(monkeypatch):
    exec(readers.NEEDED)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"booklib.*make lab.*PYTHONPATH"):
        exec(readers.NEEDED)


def test_a_chapter(built):
    readers.make()
    found = [
        (cell.cell_type, cell.id, cell.source) for cell in cells(built, "part/one")
    ]
    assert found == [
        ("code", "needed", readers.NEEDED),
        (
            "markdown",
            "text-1",
            "# 1. The first\n\nSee [Theorem 1.1](#thm-a), "
            "[(2.1)](two.ipynb#cell-id=equation-b),\n"
            "[Fig. 1.1](one.ipynb#cell-id=fig-a), [Fig. 1.2](#fig-live-a),\n"
            "[term](../appendix/glossary.ipynb#cell-id=term-a), "
            "[claims](../pages/book/appendix/claims.html#c)\n"
            "and [elsewhere](https://example.org).",
        ),
        ("code", "code-1", "import x"),
        ("markdown", "a-part", "## A part"),
        ("code", "fig-a", "plot()"),
        ("markdown", "text-5", "**Fig. 1.1** A line."),
        (
            "markdown",
            "text-6",
            'After it.\n\n<div id="thm-a"></div>\n\n> **Theorem 1.1 (A)**\n>\n> '
            'True.\n\n<div id="fig-live-a"></div>\n\n'
            "![still](../pages/_images/a.svg)\n\n"
            "**Fig. 1.2** Live: a. [Move it on the page of the "
            "book.](../pages/book/part/one.html#fig-live-a)",
        ),
    ]


def test_other_pages_find_their_places_in_cells_of_their_own(built):
    readers.make()
    assert [(cell.id, cell.source) for cell in cells(built, "part/two")] == [
        ("text-0", "# 2. The second\n\nWith"),
        (
            "equation-b",
            "$$\nx\\tag{2.1}\n$$\n\nsee [The first](one.ipynb) and [a "
            "part](one.ipynb#cell-id=a-part).",
        ),
    ]
    assert [(cell.id, cell.source) for cell in cells(built, "appendix/glossary")] == [
        ("text-0", "# A. Glossary"),
        ("term-a", "**a**\n\nFirst.\n\n**b**\n\nSecond."),
    ]


def test_code_keeps_its_outputs_but_no_errors_and_of_films_a_picture(built):
    readers.make()
    _, *code = [c for c in cells(built, "part/one") if c.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [1, 2]
    assert [cell.metadata for cell in code] == [
        {},
        {"jupyter": {"source_hidden": True}},
    ]
    assert [set(output.data) for output in code[1].outputs] == [
        {"text/plain", "image/png"},
        {"text/plain"},
    ]
    assert code[1].outputs[-1].data["text/plain"] == "✓ a claim\n✓ another"


def test_only_what_changed_is_made_again(built, capsys):
    def made():
        readers.make()
        return capsys.readouterr().out.split(" notebooks")[0]

    assert made() == "3 of 3"
    assert made() == "0 of 3"
    put(built, "book/part/two", PAGES["book/part/two"].replace("With", "As in"))
    assert made() == "1 of 3"
    assert cells(built, "part/two")[0].source.endswith("As in")
    # Now the first chapter leads to a place of the glossary that nothing led to, which
    # so becomes one.
    put(built, "book/part/one", PAGES["book/part/one"].replace("term-a", "term-b"))
    assert made() == "2 of 3"
    assert [cell.id for cell in cells(built, "appendix/glossary")] == [
        "text-0",
        "term-b",
    ]
    assert made() == "0 of 3"


def test_the_first_notebook_lists_the_pages_in_their_order(built):
    readers.make()
    first, *parts = cells(built, "start")
    assert (
        first.source.startswith("# The book\n") and "(pages/index.html)" in first.source
    )
    assert [cell.source for cell in parts] == [
        "## Part\n\n* [1. The first](part/one.ipynb)\n* [2. The "
        "second](part/two.ipynb)",
        "## Appendix\n\n* [A. Glossary](appendix/glossary.ipynb)\n* [B. "
        "Claims](pages/book/appendix/claims.html)",
    ]
    assert (
        built / "_build" / "notebooks" / "pages" / "book" / "appendix" / "claims.html"
    ).is_file()


def test_what_is_not_built_is_asked_for(built):
    with pytest.raises(SystemExit, match=r"make notebooks"):
        readers.copy()
    (built / "_build" / "html" / "book" / "part" / "two.html").unlink()
    with pytest.raises(SystemExit, match=r"two\.html.*make book"):
        readers.make()


@pytest.fixture
def copied(built, capsys):
    """Copy the notebooks to where a reader works."""
    readers.make()
    readers.copy()
    assert capsys.readouterr().out.splitlines()[1:] == []
    return built / "notebooks"


def make_new_versions(root):
    """Change a word of each chapter."""
    for page in ("book/part/one", "book/part/two"):
        put(root, page, PAGES[page].replace("The ", "Our "))
    readers.make()


def test_copies_lead_to_the_pages_that_jupyterlab_serves(copied):
    assert sorted(
        path.relative_to(copied).as_posix() for path in copied.rglob("*.ipynb")
    ) == [
        *("appendix/glossary.ipynb", "part/one.ipynb", "part/two.ipynb", "start.ipynb")
    ]
    assert (
        "](/static/book/appendix/claims.html#c)"
        in (copied / "part" / "one.ipynb").read_text()
    )
    assert "](/static/index.html)" in (copied / "start.ipynb").read_text()


def test_what_a_reader_changed_stays_and_it_is_said_when_a_new_version_waits(
    built, copied, capsys
):
    mine = copied / "part" / "one.ipynb"
    text = mine.read_text().replace("import x", "import y")
    mine.write_text(text)
    readers.copy()
    assert (mine.read_text(), capsys.readouterr().out) == (text, "")
    make_new_versions(built)
    capsys.readouterr()
    for _ in range(2):
        readers.copy()
        assert mine.read_text() == text
        assert (
            capsys.readouterr().out
            == "Kept as you changed them, though new ones wait: one\n"
        )
    two = copied / "part" / "two.ipynb"
    assert "Our second" in two.read_text()
    two.unlink()
    mine.rename(copied / "part" / "my_one.ipynb")
    readers.copy()
    assert (
        "Our first" in mine.read_text()
        and "import y" in (copied / "part" / "my_one.ipynb").read_text()
    )
    assert two.is_file()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("log", [None, "", "{"])
def test_without_a_record_of_what_was_copied_nothing_is_overwritten(
    built, copied, capsys, log
):
    mine = copied / "part" / "one.ipynb"
    mine.write_text("mine")
    (copied / ".copied.json").unlink() if log is None else (
        copied / ".copied.json"
    ).write_text(log)
    readers.copy()
    assert mine.read_text() == "mine"
    assert "part/two.ipynb" in json.loads((copied / ".copied.json").read_text())
    assert (
        capsys.readouterr().out
        == "Kept as you changed them, though new ones wait: one\n"
    )


def test_jupyterlab_opens_the_copies_with_settings_of_its_own(monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/elsewhere")
    command = readers.lab("--no-browser")
    assert (
        f"--ServerApp.root_dir={readers.COPIES}" in command
        and command[-1] == "--no-browser"
    )
    own, others = os.environ["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    assert others == "/elsewhere"
    settings = json.loads(
        (
            readers.ROOT / "tools" / "jupyter" / "labconfig" / "page_config.json"
        ).read_text()
    )
    assert (
        own == str(readers.ROOT / "tools" / "jupyter")
        and settings["disabledExtensions"]["jupyterlab-jupytext"]
    )
