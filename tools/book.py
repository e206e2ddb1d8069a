"""Keep the chapters' pairs in step, execute them, and list their claims and what they took.

usage: python tools/book.py sync | update | check | pages

sync     write every NAME.ipynb from its NAME.py, executed, with its text outputs
update   the same for the chapters whose source changed; outputs stored before stay, for the tests to compare with
check    say which pairs are out of step, not executed since their last change, or hold what they should not
pages    write the appendix pages that an execution makes: every claim with what was measured, and what each chapter took
"""

import hashlib
import html
import json
import re
import sys
from pathlib import Path

import nbformat

from tools.notebooks import from_source

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = -1  # none: a busy machine must not fail the build


def chapters(root: Path = ROOT) -> list[Path]:
    """List the percent scripts that are chapters, in the order of the table of contents; then those that are not in it."""
    contents = re.findall(r"file: (\S+)", (root / "_toc.yml").read_text())
    order = {root / f"{name}.py": place for place, name in enumerate(contents)}
    found = [path for path in sorted((root / "book").glob("*/*.py")) if "# %%" in path.read_text()]
    return sorted(found, key=lambda path: order.get(path, len(order)))


def inputs(notebook: nbformat.NotebookNode) -> list[tuple]:
    """Reduce a notebook to what its author writes."""
    return [(cell.cell_type, cell.source, json.dumps(cell.metadata, sort_keys=True)) for cell in notebook.cells]


def code_hash(notebook: nbformat.NotebookNode) -> str:
    """Hash the code of a notebook: text may change without another execution."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()


def environment_hash(root: Path = ROOT) -> str:
    """Hash what chapters depend on and their own text does not show: the package, the stored results and the requirements."""
    files = [
        *(file for folder in ("sgmc", "experiments") for file in sorted((root / folder).rglob("*.py"))),
        *sorted((root / "sgmc").rglob("*.mplstyle")),
        *sorted((root / "book" / "results").glob("*.json")),
        root / "requirements.txt",
        root / "constraints.txt",
    ]
    content = b"".join(str(path.relative_to(root)).encode() + path.read_bytes() for path in files)
    return hashlib.sha256(content).hexdigest()


def open_cache(root: Path = ROOT):
    """Open the cache of executed chapters, which knows a chapter by its code.

    It is emptied when the package, the stored results or the requirements change.
    """
    from jupyter_cache import get_cache

    folder = root / "_build" / ".jupyter_cache"
    cache, stamp, now = get_cache(str(folder)), folder / "environment", environment_hash(root)
    cache.list_cache_records()  # makes the folder
    if not stamp.exists() or stamp.read_text() != now:
        cache.clear_cache()
        cache = get_cache(str(folder))
        cache.list_cache_records()
        stamp.write_text(now)
    return cache


def keep_executed(path: Path, notebook: nbformat.NotebookNode, seconds: float) -> None:
    """Put a chapter that was executed elsewhere into the cache."""
    from jupyter_cache.base import CacheBundleIn

    bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": seconds})
    open_cache().cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    path.touch()  # a page is made anew only if its source is newer, and here only the package may be


def execute(root: Path = ROOT):
    """Execute, two chapters at a time, those that are not in the cache; return the cache."""
    from jupyter_cache.executors import load_executor

    cache = open_cache(root)
    notebooks = [path.with_suffix(".ipynb") for path in chapters(root)]
    keys = [cache.add_nb_to_project(str(path)).pk for path in notebooks]
    waiting = [record for record in cache.list_unexecuted() if record.pk in keys]
    if waiting:
        print(f"executing {len(waiting)} of {len(keys)} chapters", flush=True)
        result = load_executor("local-parallel", cache, logger=_logger()).run_and_cache(
            filter_pks=[record.pk for record in waiting], timeout=TIMEOUT
        )
        for uri in [*result.errored, *result.excepted]:
            record = cache.get_project_record(uri)
            print(f"\n{uri} failed:\n{record.traceback}", file=sys.stderr)
        if result.errored or result.excepted:
            sys.exit(1)
        for record in waiting:
            Path(record.uri).touch()  # a page is made anew only if its source is newer, and here only the package may be
    return cache


def text_outputs(outputs: list) -> list:
    """Keep of a cell's outputs what can be compared on any machine: text, without images, HTML and standard error."""
    kept = []
    for output in outputs:
        if output.output_type == "stream" and output.name == "stderr":
            continue
        if "data" in output:
            output.data = {key: value for key, value in output.data.items() if key == "text/plain"}
            output.metadata = {}
        if kept and output.output_type == kept[-1].output_type == "stream":
            kept[-1].text += output.text  # a kernel sends what is printed in pieces, as it likes
        else:
            kept.append(output)
    return kept


def sync(root: Path = ROOT, *, everything: bool = True) -> None:
    """Write notebooks from their sources, with the text outputs of an execution of just that code and this package.

    Without ``everything`` a notebook that is in step with its source keeps its stored outputs: a test that executes it again then
    tells whether a change elsewhere moved a number.
    """
    changed = {}
    for path in chapters(root):
        notebook, target = from_source(path), path.with_suffix(".ipynb")
        stored = nbformat.read(target, 4) if target.exists() else None
        if stored is None or inputs(stored) != inputs(notebook):
            nbformat.write(notebook, target)
        if everything or stored is None or inputs(stored) != inputs(notebook) or "executed" not in stored.metadata:
            changed[path] = notebook
    cache = execute(root)
    for path, notebook in changed.items():  # the notebook that was executed, whatever became of its source meanwhile
        target = path.with_suffix(".ipynb")
        executed = cache.get_cache_bundle(cache.match_cache_notebook(notebook).pk).nb
        results = iter([cell for cell in executed.cells if cell.cell_type == "code"])
        for count, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), start=1):
            cell.outputs, cell.execution_count = text_outputs(next(results).outputs), count
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = count
        notebook.metadata["executed"] = code_hash(notebook)
        text = nbformat.writes(notebook) + "\n"
        if target.read_text() != text:
            target.write_text(text)
            print(f"wrote {target.relative_to(root)}")


def problems(root: Path = ROOT) -> list[str]:
    """List what is wrong with the pairs, a line each."""
    found = []
    for path in chapters(root):
        name, target = path.relative_to(root), path.with_suffix(".ipynb")
        if not target.exists():
            found.append(f"{name} has no notebook: run make sync")
            continue
        notebook = nbformat.read(target, 4)
        if inputs(notebook) != inputs(from_source(path)):
            found.append(f"{name} and its notebook are out of step: run make sync")
        if notebook.metadata.get("executed") != code_hash(notebook):
            found.append(f"{name} was not executed since its last change: run make sync")
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        if [cell.execution_count for cell in code] != list(range(1, len(code) + 1)):
            found.append(f"{name}: cells were executed out of order")
        for output in (output for cell in code for output in cell.outputs):
            if output.output_type == "error" or output.get("name") == "stderr" or set(output.get("data", ())) - {"text/plain"}:
                found.append(f"{name}: a stored output is an error, standard error, an image or HTML")
    for notebook in sorted((root / "book").glob("*/*.ipynb")):
        if not notebook.with_suffix(".py").exists():
            found.append(f"{notebook.relative_to(root)} has no source")
    return found


def claims(root: Path = ROOT) -> dict[Path, list[str]]:
    """Collect every claim's line from the stored outputs, by chapter."""
    found = {}
    for path in chapters(root):
        notebook = nbformat.read(path.with_suffix(".ipynb"), 4)
        outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
        lines = [output.data["text/plain"] for output in outputs if "data" in output]
        found[path.relative_to(root)] = [line for line in lines if line.startswith("✓ ")]
    return found


def measured_claims(notebook: nbformat.NotebookNode) -> list[dict[str, str]]:
    """Read the claims of an executed notebook as its page shows them, HTML: anchor, kind, statement, bound, measured, because."""
    found = []
    for output in (output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs):
        page = output.get("data", {}).get("text/html", "")
        for anchor, kind, spans in re.findall(r'<div class="claim" id="([^"]+)" data-kind="(\w+)">(.*?)</div>', page, re.DOTALL):
            found.append({"anchor": anchor, "kind": kind, **dict(re.findall(r'<span class="(\w+)">(.*?)</span>', spans, re.DOTALL))})
    return found


def title(path: Path) -> str:
    """Read the title of a chapter."""
    return next(line for line in path.read_text().splitlines() if line.startswith("# # ")).removeprefix("# # ")


KINDS = {
    "exact": "there is no chance in it: a law that was solved, an enumeration, an identity",
    "live": "the page draws it, so the value differs a little between machines",
    "stored": "it is read from the stored result of a longer run",
}


def claims_page(claims: dict[Path, list[dict[str, str]]], titles: dict[Path, str]) -> str:
    """Write the page of claims: one table a chapter, and what filters them where scripts run."""
    total = sum(map(len, claims.values()))
    count = {kind: sum(claim["kind"] == kind for found in claims.values() for claim in found) for kind in KINDS}
    chapters = "".join(f'<option value="{path.stem}">{html.escape(titles[path])}</option>' for path in claims)
    kinds = "".join(f'<label><input type="checkbox" value="{kind}" checked="checked" /> {kind} ({count[kind]})</label> ' for kind in KINDS)
    page = [
        "# Claims",
        "",
        f"Every empirical sentence of this book is checked by the cell that states it: {total} claims in {len(claims)} chapters.",
        "A build in which one of them is false fails, so every line here holds, with the value that this build measured.",
        "Each leads to the place where it is computed, which also says where the bound comes from.",
        "One that begins with *the same* or *its* speaks of the line above it.",
        "",
        *(f"* *{kind}*: {meaning}." for kind, meaning in KINDS.items()),
        "",
        "````{only} builder_html",
        "```{raw} html",
        '<form class="claims-filter" hidden="hidden">',
        f'<label>Chapter <select><option value="">all</option>{chapters}</select></label>',
        f'<label>Word <input type="search" /></label> {kinds}',
        '<span role="status"></span>',
        "</form>",
        '<script src="../../_static/claims.js" defer="defer"></script>',
        "```",
        "````",
        "",
    ]
    for path, found in claims.items():
        url = f"../{path.parent.name}/{path.stem}.html"
        page += [f"(claims-{path.stem})=", f"## {titles[path]}", "", "```{raw} html"]
        page.append(f'<table class="claims" data-chapter="{path.stem}"><thead><tr>')
        page += [f'<th scope="col">{head}</th>' for head in ("claim", "bound", "measured", "kind")]
        page.append("</tr></thead><tbody>")
        for claim in found:
            page.append(
                f'<tr data-kind="{claim["kind"]}"><td>✓ <a href="{url}#{claim["anchor"]}">{claim["statement"]}</a></td>'
                f"<td>{claim['bound']}</td><td>{claim['measured'].removeprefix('measured ')}</td><td>{claim['kind']}</td></tr>"
            )
        page += ["</tbody></table>", "```", ""]
    return "\n".join(page)


def execution_page(executed: dict[Path, tuple[str, float]]) -> str:
    """Write the page that says, in words, when each chapter was executed and what it took."""
    total = sum(seconds for _, seconds in executed.values())
    slowest = max(executed, key=lambda path: executed[path][1])
    page = [
        "# Execution status",
        "",
        f"All {len(executed)} chapters were executed for this build, from their sources, and all passed.",
        "A build in which a cell fails, or a claim is false, stops.",
        f"They ran on one machine, two at a time, and their times add up to {total / 60:.0f} minutes;",
        f"the longest was {{doc}}`/{slowest.with_suffix('')}`.",
        "A chapter that did not change since is not executed again, so dates may differ.",
        "",
        "| chapter | result | seconds | executed on |",
        "| --- | --- | ---: | --- |",
        *(f"| {{doc}}`/{path.with_suffix('')}` | passed | {seconds:.0f} | {day} |" for path, (day, seconds) in executed.items()),
        "",
    ]
    return "\n".join(page)


def write_pages(root: Path = ROOT) -> None:
    """Write the pages of claims and of times from the cache of executed chapters.

    What was measured differs between machines in the last digits, so these pages are made in each build and not stored.
    """
    cache, found, executed = execute(root), {}, {}
    for path in chapters(root):
        record = cache.match_cache_notebook(from_source(path))
        name = path.relative_to(root)
        found[name] = measured_claims(cache.get_cache_bundle(record.pk).nb)
        executed[name] = (f"{record.created:%-d %b %Y}", (record.data or {}).get("execution_seconds", 0.0))
    claims = {name: lines for name, lines in found.items() if lines}
    titles = {name: title(root / name) for name in claims}
    for name, page in (("claims", claims_page(claims, titles)), ("execution_status", execution_page(executed))):
        target = root / "book" / "appendix" / f"{name}.md"
        if not target.exists() or target.read_text() != page:
            target.write_text(page)


def _logger():
    import logging

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("traitlets").setLevel(logging.ERROR)
    return logging.getLogger("book")


def main(command: str) -> None:
    """Run one of the commands of this file's head."""
    if command in ("sync", "update"):
        sync(everything=command == "sync")
    elif command == "pages":
        write_pages()
    elif command == "check":
        found = problems()
        print("\n".join(found) or f"{len(chapters())} pairs are in step and executed")
        sys.exit(bool(found))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) == 2 else "")
