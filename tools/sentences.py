"""What a page measured, and the sentences that show it: an extension of Sphinx.

The records of an executed page (:mod:`booklib.page.claims`) are laid beside the pages' sources
before Sphinx reads these, a file a page. In a text ``{c}`name``` is the number of a record
with ✓ or ✗; of another page, ``{c}`page/name```. Of a comparison ``{c}`name.verdict``` is
*decided* or *open*, and ``.mean`` and ``.seeds`` are its other parts. Within a formula the same is the number alone.
"""

import copy
import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from nbformat import NotebookNode
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from booklib import MEDIA

KEPT = "claims"  # where an output has its records that shows them in HTML
FOLDER = "claims"  # of the records, among the pages' sources
ROLE = re.compile(r"\{c\}`([\w/-]+)(?:\.(\w+))?`")
FORMULA = re.compile(r"\$\$.+?\$\$|(?<![\\$])\$[^$\n]+\$", re.DOTALL)
POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
KINDS = {
    "exact": "there is no chance in it: a distribution that was solved, an enumeration, an identity",
    "live": "the page draws it, so the value differs a little between machines",
    "stored": "it is read from the stored result of a longer run",
}

# Records ------------------------------------------------------------------------------


def recorded(output: NotebookNode) -> list[dict]:
    """Read what a cell recorded, from the output that shows it."""
    return output.get("data", {}).get(MEDIA) or output.get("metadata", {}).get(KEPT, [])


def records(notebook: NotebookNode) -> list[dict]:
    """Read what the cells of an executed notebook recorded."""
    return [
        record
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        for record in recorded(output)
    ]


def without_last_digits(found: list[dict]) -> list[dict]:
    """Leave out of records what differs between processors."""
    rough = ("value", "error", "bound")
    return [
        {key: value for key, value in record.items() if key not in rough}
        | {"measured": record["shown"]}
        for record in found
    ]


def is_check(record: dict) -> bool:
    """Tell whether a record has a bound, and is no number alone."""
    return bool(record["words"])


def by_name(found: list[dict]) -> dict[str, dict]:
    """Give a page's records by their names."""
    return {record["name"]: record for record in found}


def twice(found: list[dict]) -> list[str]:
    """List the names that two records of a page have, of those that a sentence may
    show.
    """
    count = Counter(record["name"] for record in found if not record["says"])
    return [name for name, number in count.items() if number > 1]


# On a page ----------------------------------------------------------------------------


def block(found: list[dict]) -> str:
    """Write the records of a cell in HTML: a line that opens on click, and is open if
    one of them does not hold.
    """
    broken, total = sum(not one["holds"] for one in found), len(found)
    checks = sum(map(is_check, found))
    said = "1 check holds" if checks == 1 else f"{checks} checks hold"
    if not checks:
        said = "1 number" if total == 1 else f"{total} numbers"
    mark, state = f"✓ {said}", ""
    if broken:
        mark = f"✗ {broken} of {checks} checks {'fails' if broken == 1 else 'fail'}"
        state = " broken"
    rows = "".join(map(row, found))
    return (
        f'<details class="checks{state}"{" open" * bool(broken)}>'
        f'<summary>{mark}</summary><div class="rows">{rows}</div></details>'
    )


def row(record: dict) -> str:
    """Write a record as a row of its cell's block, in HTML."""
    parts = {
        "verdict": "✓" if record["holds"] else "✗",
        "statement": record["says"] or record["name"],
        "bound": record["words"],
        "measured": f"measured {record['measured']}",
        "because": record["because"],
    }
    spans = "".join(
        f'<span class="{name}">{html.escape(words)}</span> '
        for name, words in parts.items()
        if words
    )
    state = "" if record["holds"] else " broken"
    return f'<div class="claim{state}" id="claim-{record["name"]}">{spans}</div>'


def with_blocks(notebook: NotebookNode) -> NotebookNode:
    """Give a notebook in which records are HTML, for Sphinx knows no others, and the
    cells that have some a tag.
    """
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        outputs = cell.get("outputs", ())
        ours = [output for output in outputs if recorded(output)]
        for output in ours:
            output.metadata[KEPT] = recorded(output)
            output.data.pop(MEDIA, None)
            output.data["text/html"] = block(output.metadata[KEPT])
        if ours:
            tag = "only-checks" if len(ours) == len(outputs) else "checks"
            cell.metadata["tags"] = [*cell.metadata.get("tags", ()), tag]
    return notebook


def texts(notebook: NotebookNode) -> Iterator[str]:
    """List the texts of a notebook that may show a record: its cells and captions."""
    for cell in notebook.cells:
        figure = cell.metadata.get("mystnb", {}).get("figure", {})
        yield cell.source if cell.cell_type == "markdown" else figure.get("caption", "")


def fill_formulas(text: str, page: str, known: dict[str, dict[str, dict]]) -> str:
    """Put numbers where a formula names a record; a name that is unknown stays."""

    def number(role: re.Match) -> str:
        record = find(role[1], page, known)
        words = part(record, role[2])
        return role[0] if words is None else in_tex(words)

    return FORMULA.sub(lambda formula: ROLE.sub(number, formula[0]), text)


def find(name: str, page: str, known: dict[str, dict[str, dict]]) -> dict | None:
    """Find a record by its name on a page, or by the name of another page and its."""
    other, _, own = name.rpartition("/")
    return known.get(other or page, {}).get(own)


def part(record: dict | None, name: str | None) -> str | None:
    """Give what a sentence shows of a record: its number, or the part that it names."""
    if record is None:
        return None
    return record["parts"].get(name) if name else record["shown"]


def in_tex(number: str) -> str:
    """Write a number for a formula."""
    power = re.sub(
        "10([⁻⁰-⁹¹²³]+)", lambda m: f"10^{{{m[1].translate(POWERS)}}}", number
    )
    return power.replace("−", "-").replace("·", r"\cdot ").replace(",", "{,}")


class Shown(SphinxRole):
    """Show the number of a record, and whether it holds."""

    def run(self):
        """Read the record, and read this page again when it changes."""
        name, _, piece = self.text.partition(".")
        other, _, own = name.rpartition("/")
        stem = other or Path(self.env.docname).name
        file = Path(self.env.srcdir, FOLDER, f"{stem}.json")
        self.env.note_dependency(str(file))
        page = json.loads(file.read_text()) if file.is_file() else {}
        record = page.get("records", {}).get(own)
        number = part(record, piece)
        if number is None:
            logging.getLogger(__name__).warning(
                "no cell of %s records %r",
                *(stem, self.text),
                location=self.get_location(),
            )
            words = f'<span class="c broken">✗ {html.escape(self.text)}</span>'
        else:
            builder = self.env.app.builder
            place = (
                builder.get_relative_uri(self.env.docname, page["page"])
                if other
                else ""
            )
            words = shown(record, number, f"{place}#claim-{own}")
        return [nodes.raw("", words, format="html")], []


def shown(record: dict, number: str, link: str) -> str:
    """Write in HTML what a sentence shows of a record."""
    mark = "✓" * bool(record["words"]) if record["holds"] else "✗"
    state = "" if record["holds"] else " broken"
    return (
        f'<a class="c{state}" href="{html.escape(link)}" '
        f'title="{html.escape(record["line"])}">'
        f'{html.escape(number)}<span class="verdict">{mark}</span></a>'
    )


# The page of claims -------------------------------------------------------------------

# Both pages that the build writes repeat words of all the others.
NOT_SEARCHED = ("---", "nosearch: true", "---", "")


def sentences(pages: dict[str, list[str]]) -> dict[tuple[str, str], tuple[str, str]]:
    """Find for each record, by page and name, the line of text that first shows it, and
    the page that it stands on: its own before others.
    """
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for page, parts in pages.items():
        for text in "\n".join(parts).splitlines():
            for role in ROLE.finditer(text):
                other, _, own = role[1].rpartition("/")
                key = (other or page, own)
                if key not in found or (not other and found[key][1] != page):
                    found[key] = (text, page)
    return found


REFERENCES = {
    "eq": "the formula",
    "numref": "the figure",
    "prf:ref": "the theorem",
    "ref": "the exercise",
}


def quoted(text: str, page: str, known: dict[str, dict[str, dict]], own: dict) -> str:
    """Write a line of a page in HTML, without its links, with formulas and numbers, and
    the number of one record bold.
    """

    def number(role: re.Match) -> str:
        record = find(role[1], page, known)
        words = part(record, role[2])
        if words is None:
            return f"✗ {role[1]}"
        return f"<b>{html.escape(words)}</b>" if record is own else html.escape(words)

    def reference(role: re.Match) -> str:
        return REFERENCES.get(role[1], role[2])

    text = html.escape(fill_formulas(text, page, known).strip(" |*#"), quote=False)
    text = ROLE.sub(number, text)
    text = re.sub(r"\{([\w:]+)\}`([^`<]*?)\s*(?:&lt;[^`]*&gt;)?`", reference, text)
    text = re.sub(r"\[\^[^\]]*\]|\*\*|`", "", text)
    return re.sub(
        r"\$([^$]+)\$", r'<span class="math notranslate">\\(\1\\)</span>', text
    )


def claims_page(
    measured: dict[Path, list[dict]],
    titles: dict[Path, str],
    pages: dict[str, list[str]],
) -> str:
    """Write the page of claims: one table a chapter, and what filters them where
    scripts run.

    Args:
        measured: the records of each chapter, by the path of its script.
        titles: the chapters' titles.
        pages: the texts of all pages, by the last part of their names.
    """
    known = {path.stem: by_name(found) for path, found in measured.items()}
    saying = sentences(pages)
    everything = [record for found in measured.values() for record in found]
    broken = sum(not record["holds"] for record in everything)
    verdict = (
        f"In this build {broken} of them do not hold: they are marked ✗, with what "
        "was measured."
        if broken
        else "In this build all of them hold, with the values that it measured."
    )
    chapters = "".join(
        f'<option value="{path.stem}">{html.escape(titles[path])}</option>'
        for path in measured
    )
    count = Counter(record["kind"] for record in everything)
    kinds = "".join(
        f'<label><input type="checkbox" value="{kind}" checked="checked" /> {kind} '
        f"({count[kind]})</label> "
        for kind in KINDS
    )
    page = [
        *NOT_SEARCHED,
        "# Claims",
        "",
        "Every empirical sentence of this book is checked by the cell that computes "
        f"it: {len(everything)} claims in {len(measured)} chapters.",
        verdict,
        "Where a sentence shows the number, it stands here; each leads to the place "
        "where it is computed, which also says where the bound comes from.",
        "",
        *(f"* *{kind}*: {meaning}." for kind, meaning in KINDS.items()),
        "",
        "````{only} builder_html",
        "```{raw} html",
        '<form class="claims-filter" hidden="hidden">',
        "<label>Chapter <select><option "
        f'value="">all</option>{chapters}</select></label>',
        f'<label>Word <input type="search" /></label> {kinds}',
        '<span role="status"></span>',
        "</form>",
        '<script src="../../_static/claims.js" defer="defer"></script>',
        "```",
        "````",
        "",
    ]
    for path, found in measured.items():
        url = f"../{path.parent.name}/{path.stem}.html"
        page += [f"(claims-{path.stem})=", f"## {titles[path]}", "", "```{raw} html"]
        page.append(f'<table class="claims" data-chapter="{path.stem}"><thead><tr>')
        page += [
            f'<th scope="col">{head}</th>'
            for head in ("claim", "bound", "measured", "kind")
        ]
        page.append("</tr></thead><tbody>")
        for record in found:
            text, where = saying.get((path.stem, record["name"]), ("", ""))
            words = quoted(text, where, known, record) or html.escape(
                record["says"] or record["name"]
            )
            page.append(
                f'<tr data-kind="{record["kind"]}"><td>{"✓" if record["holds"] else "✗"} '
                f'<a href="{url}#claim-{record["name"]}">{words}</a></td>'
                f"<td>{html.escape(record['words'])}</td>"
                f"<td>{html.escape(record['measured'])}</td><td>{record['kind']}</td></tr>"
            )
        page += ["</tbody></table>", "```", ""]
    return "\n".join(page)


def unsaid(measured: dict[Path, list[dict]], pages: dict[str, list[str]]) -> list[str]:
    """List what is wrong between records and texts: a name that two records have, a
    record that no text shows and that says nothing itself, and a formula that names
    none.
    """
    saying = sentences(pages)
    known = {path.stem: by_name(records) for path, records in measured.items()}
    found = [
        f"{page}: a formula names {role[1]!r}, which no cell records"
        for page, parts in pages.items()
        for formula in FORMULA.findall("\n".join(parts))
        for role in ROLE.finditer(formula)
        if part(find(role[1], page, known), role[2]) is None
    ]
    for path, records in measured.items():
        found += [f"{path}: two records are named {name!r}" for name in twice(records)]
        found += [
            f"{path}: no text shows {record['name']!r}: name it in a sentence, or let "
            "says= state what is checked"
            for record in records
            if not record["says"] and (path.stem, record["name"]) not in saying
        ]
    return found


def files(measured: dict[Path, list[dict]]) -> dict[Path, str]:
    """Write the records of each page for the role that shows them."""
    return {
        Path(FOLDER, f"{path.stem}.json"): json.dumps(
            {"page": str(path.with_suffix("")), "records": by_name(found)}, indent=1
        )
        for path, found in measured.items()
    }


def setup(app):
    """Register the role, and have formulas set on the page of claims, too, where Sphinx
    does not see them.
    """
    app.add_role("c", Shown())
    app.set_html_assets_policy("always")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
