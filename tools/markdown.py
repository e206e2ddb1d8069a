"""What a built page says, in Markdown that Jupyter, VS Code and Colab show alike."""

import html
import re

from bs4 import BeautifulSoup, Comment, NavigableString, Tag

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
BLOCKS = {*HEADINGS, "p", "ul", "ol", "dl", "dt", "dd", "table", "div", "section"}
BLOCKS |= {"figure", "figcaption", "aside", "pre"}
# Sphinx puts the lines of a formula into an environment, also where they are in one.
SPLIT = re.compile(
    r"\\begin\{split\}\s*"
    r"(\\begin\{(\w+)\}(?:(?!\\end\{\2\}).)*\\end\{\2\})"
    r"\s*\\end\{split\}",
    re.DOTALL,
)


def parse(page: str) -> BeautifulSoup:
    """Read HTML."""
    return BeautifulSoup(page, "html.parser")


def inline(node: Tag | NavigableString) -> str:
    """Write what stands within a line."""
    if isinstance(node, Comment):
        return ""
    if isinstance(node, NavigableString):
        return re.sub(r"[\\`*_$<~]", r"\\\g<0>", node)
    if "math" in node.get("class", ()):
        return f"${' '.join(formula(node).split())}$"
    text = "".join(map(inline, node.children))
    match node.name:
        case "em":
            text = f"*{text}*"
        case "strong":
            text = f"**{text}**"
        case "code":
            text = f"`{node.get_text()}`"
        case "a" if node.get("href"):
            before = text[: len(text) - len(text.lstrip())]
            text = f"{before}[{text.strip()}]({node['href']})"
        case "img":
            text = f"![{node.get('alt', '')}]({node['src']})"
    return f'<a id="{node["id"]}"></a>{text}' if node.get("id") else text


def formula(element: Tag) -> str:
    """Read the TeX of a formula, without what tells MathJax where it stands."""
    text = "".join(element.find_all(string=True, recursive=False)).strip()
    text = re.sub(r"^\\[(\[]|\\[)\]]$", "", text).strip()
    whole = SPLIT.fullmatch(text)
    return whole[1] if whole else text


def line(element: Tag) -> str:
    """Write an element on one line."""
    return " ".join("".join(map(inline, element.children)).split())


def paragraph(text: str) -> str:
    """Keep Markdown from making a list or a heading of what begins a line."""
    text = re.sub(r"^(\d+)([.)] )", r"\1\\\2", text.strip(), flags=re.MULTILINE)
    return re.sub(r"^[-+#>] ", r"\\\g<0>", text, flags=re.MULTILINE)


def blocks(element: Tag) -> list[str]:
    """Write what an element holds, as blocks."""
    found, text = [], ""
    for child in element.children:
        if isinstance(child, Tag) and child.name in BLOCKS:
            found += [paragraph(text), *block(child)]
            text = ""
        else:
            text += inline(child)
    return [text for text in (*found, paragraph(text)) if text]


def block(element: Tag) -> list[str]:
    """Write an element as blocks, after the place to which links to it lead."""
    if element.name not in BLOCKS:
        return [inline(element)]
    return anchor(element) + without_place(element)


def anchor(element: Tag) -> list[str]:
    """Mark a place to which links lead."""
    return [f'<div id="{element["id"]}"></div>'] if element.get("id") else []


def without_place(element: Tag) -> list[str]:
    """Write an element as blocks."""
    kinds, name = set(element.get("class", ())), element.name
    if label := element.find("span", class_="label", recursive=False):
        # Of a footnote, or of a source in the list of references.
        element.p.insert(0, f"{label.extract().get_text()} ")
    if name in HEADINGS:
        return [f"{'#' * int(name[1])} {line(element)}"]
    if name == "dt" or "admonition-title" in kinds:
        return [f"**{line(element)}**"]
    if name == "p" and (number := element.find("span", class_="caption-number")):
        return [f"**{line(number.extract())}** {line(element)}"]
    if name in ("ul", "ol"):
        return [listed(element)]
    if name == "table":
        return [tabled(element)]
    if "math" in kinds:
        number = element.find("span", class_="eqno")
        tag = rf"\tag{{{number.get_text()[1:-1]}}}" if number else ""
        return [f"$$\n{formula(element)}{tag}\n$$"]
    if language := re.search(r"highlight-(\w+)", " ".join(kinds)):
        known = "" if language[1] in ("none", "default") else language[1]
        code = element.get_text().strip("\n")
        return [f"```{known}\n{code}\n```"]
    if "dropdown" in kinds:
        title = html.escape(" ".join(element.p.extract().get_text().split()))
        opening = f"<details>\n<summary>{title}</summary>"
        return ["\n\n".join((opening, *blocks(element), "</details>"))]
    if kinds & {"admonition", "page-head"}:
        text = quoted("\n\n".join(blocks(element)))
        return [re.sub(r"\A> (Proof\.)", r"> *\1*", text)]
    return blocks(element)


def listed(element: Tag) -> str:
    """Write a list."""
    space = "\n" if "simple" in element.get("class", ()) else "\n\n"
    items = []
    for number, item in enumerate(element.find_all("li", recursive=False), start=1):
        mark = "* " if element.name == "ul" else f"{number}. "
        text = space.join(blocks(item))
        items.append(mark + re.sub(r"\n(?=.)", "\n" + " " * len(mark), text))
    return space.join(items)


def quoted(text: str) -> str:
    """Write a quotation, with each formula on one line.

    Jupyter takes formulas out of a text before it reads the rest, and so would take out
    the marks that begin their lines.
    """

    def on_one_line(formula: re.Match) -> str:
        return " ".join(formula[0].split())

    text = re.sub(r"\$\$\n.*?\n *\$\$", on_one_line, text, flags=re.DOTALL)
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def tabled(element: Tag) -> str:
    """Write a table."""
    rows = [row.find_all(("th", "td")) for row in element.find_all("tr")]
    lines = [[barred("<br>".join(blocks(cell))) for cell in row] for row in rows]
    numbers = ["text-right" in cell.get("class", ()) for cell in rows[0]]
    lines.insert(1, ["---:" if right else "---" for right in numbers])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def barred(text: str) -> str:
    """Write a cell of a table on one line, in which no bar ends it."""
    pieces = re.split(r"(\$[^$]+\$)", " ".join(text.split()))
    for i, piece in enumerate(pieces):
        if i % 2:
            pieces[i] = piece.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
        else:
            pieces[i] = piece.replace("|", r"\|")
    return "".join(pieces)
