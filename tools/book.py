"""Keep the chapters' pairs in step, execute them, and build the book.

usage: python tools/book.py build [--strict] | notebooks | chapter NAME | sync | check

build      execute the chapters that need it and make the pages; whatever fails in a
           chapter is shown on its page and listed at the end
notebooks  make pages and the reader's notebooks of what is there, without executing:
           what was never executed here has the text outputs of its NAME.ipynb
chapter    the same as build for one chapter, whose NAME.ipynb is written anew
sync       write every NAME.ipynb from its NAME.py, executed, with its text outputs
check      say which pairs are out of step, not executed since their last change, or
           hold what they should not

The build reads the percent scripts and never touches a notebook beside them. What it
makes pages from lies in ``_build/source``: there an executed notebook is kept until its
code, the package or a stored result changes."""

import atexit
import copy
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import date
from pathlib import Path

import nbformat

from booklib import MEDIA
from tools import kernels, messages, sentences
from tools.notebooks import from_source

ROOT = Path(__file__).resolve().parent.parent
STORED = {"text/plain", MEDIA}  # of what a cell puts out
SPACE = 2  # gigabytes that the executed chapters and the pages may need
# Folders whose files pages show and link to, from where the pages are made.
SHOWN = ("sgmc", "booklib", "benchmarks", "lab", "book/_static")
CONTENTS = ("index.md", "_config.yml", "_toc.yml")
NOT_DRAWN = "The figure is drawn when this cell is run."


def chapters(root: Path = ROOT) -> list[Path]:
    """List the chapters' percent scripts, in the order of the table of contents
    first.
    """
    contents = re.findall(r"file: (\S+)", (root / "_toc.yml").read_text())
    order = {root / f"{name}.py": place for place, name in enumerate(contents)}
    found = [
        path
        for path in sorted((root / "book").glob("*/*.py"))
        if "# %%" in path.read_text()
    ]
    return sorted(found, key=lambda path: order.get(path, len(order)))


def executed_pages(root: Path = ROOT) -> list[Path]:
    """List the sources of the pages that are executed: the front page, if it has code,
    and the chapters.
    """
    front = root / "index.md"
    return [*([front] if "{code-cell}" in front.read_text() else []), *chapters(root)]


def inputs(notebook: nbformat.NotebookNode) -> list[tuple]:
    """Reduce a notebook to what its author writes."""
    return [
        (cell.cell_type, cell.source, json.dumps(cell.metadata, sort_keys=True))
        for cell in notebook.cells
    ]


def code_cells(notebook: nbformat.NotebookNode) -> list:
    """List the cells that are executed."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def all_outputs(notebook: nbformat.NotebookNode) -> list:
    """List the outputs of all cells."""
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def code_hash(notebook: nbformat.NotebookNode, environment: str = "") -> str:
    """Hash the code of a notebook: text may change without another execution."""
    code = "\0".join(cell.source for cell in code_cells(notebook))
    return hashlib.sha256((environment + code).encode()).hexdigest()


def environment_hash(root: Path = ROOT) -> str:
    """Hash what chapters depend on and their own text does not show."""
    files = [
        *(
            file
            for folder in ("sgmc", "booklib", "experiments", "benchmarks")
            for file in sorted((root / folder).rglob("*.py"))
        ),
        *sorted((root / "booklib").rglob("*.mplstyle")),
        *sorted((root / "booklib" / "runs" / "papers").glob("*.toml")),
        *sorted((root / "book" / "results").glob("*.json")),
        root / "requirements.txt",
        root / "constraints.txt",
    ]
    content = b"".join(
        str(path.relative_to(root)).encode() + path.read_bytes() for path in files
    )
    return hashlib.sha256(content).hexdigest()


# Executing
# ---------------------------------------------------------------------------------


def executed_path(path: Path, root: Path = ROOT) -> Path:
    """Say where the executed notebook of a chapter is kept."""
    return root / "_build" / "source" / path.relative_to(root).with_suffix(".ipynb")


def write(target: Path, text: str) -> None:
    """Write a file as a whole or not at all, and only if it changes."""
    if target.is_file() and target.read_text(encoding="utf-8") == text:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, target)


def with_outputs(
    notebook: nbformat.NotebookNode, executed: nbformat.NotebookNode
) -> nbformat.NotebookNode:
    """Give a notebook the outputs of another one that has the same code."""
    for count, (cell, other) in enumerate(
        zip(code_cells(notebook), code_cells(executed), strict=True), start=1
    ):
        cell.outputs, cell.execution_count = other.outputs, count
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = count
    return notebook


def keep_executed(
    path: Path, notebook: nbformat.NotebookNode, seconds: float, root: Path = ROOT
) -> None:
    """Keep an executed chapter for the build."""
    key = code_hash(notebook, environment_hash(root))
    notebook.metadata["executed"] = {
        "key": key,
        "seconds": seconds,
        "on": f"{date.today():%-d %b %Y}",
    }
    write(executed_path(path, root), nbformat.writes(notebook))


def kept(
    path: Path, root: Path = ROOT, key: str | None = None
) -> nbformat.NotebookNode | None:
    """Read the executed notebook of a chapter; without ``key`` whatever code it has.

    There is none where the chapter's code, the package or a stored result has changed
    since, where a cell raised an error, and where a disk was full."""
    target = executed_path(path, root)
    try:
        notebook = nbformat.read(target, 4)
        if key is None or (
            notebook.metadata["executed"]["key"] == key and not errors(notebook)
        ):
            return notebook
    except (OSError, ValueError, LookupError, AttributeError):
        pass
    return None


def execute_one(path: Path) -> tuple[nbformat.NotebookNode, float]:
    """Execute a chapter to its end, also where cells raise errors; return it and the
    seconds.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import DeadKernelError

    notebook, start = from_source(path), time.monotonic()
    place = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(notebook, timeout=None, allow_errors=True, resources=place)
    try:
        client.execute()
    except DeadKernelError:
        reached = [
            cell for cell in code_cells(notebook) if cell.execution_count is not None
        ]
        words = "the kernel died here; is there enough memory?"
        error = nbformat.v4.new_output(
            "error", ename="DeadKernelError", evalue=words, traceback=[words]
        )
        (reached or code_cells(notebook))[-1].outputs.append(error)
    finally:  # which it leaves undone where a kernel was killed before it was ready
        atexit.unregister(client._cleanup_kernel)
    return notebook, time.monotonic() - start


def execute(pages: list[Path], root: Path = ROOT) -> dict[Path, nbformat.NotebookNode]:
    """Execute those of the pages that need it, as many at a time as there are
    processors; return all.
    """
    environment = environment_hash(root)
    keys = {path: code_hash(from_source(path), environment) for path in pages}
    waiting = [path for path, key in keys.items() if kept(path, root, key) is None]
    if waiting:
        print(f"executing {len(waiting)} of {len(keys)} pages", flush=True)
        execute_apart(waiting, root)
    return {path: kept(path, root) for path in keys}


def execute_apart(pages: list[Path], root: Path) -> None:
    """Execute pages, some at a time."""
    many = len(pages) > 3  # for few it takes longer than it spares
    running = kernels.fork(kernels.IMPORTS if many else ())
    with ThreadPoolExecutor(min(os.cpu_count(), 4)) as pool:
        try:
            asked = {pool.submit(execute_one, path): path for path in pages}
            for count, page in enumerate(as_completed(asked), start=1):
                (notebook, seconds), path = page.result(), asked[page]
                keep_executed(path, notebook, seconds, root)
                said = f"  {count} of {len(pages)}: {path.stem}, {seconds:.0f} s"
                print(said, flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(page.done() for page in asked):
                for kernel in running:  # one may be there only now
                    kernel.kill()
                time.sleep(0.1)
            raise


def as_it_was(path: Path, root: Path = ROOT) -> nbformat.NotebookNode:
    """Give a page with the outputs of its last execution here, or else with those that
    its notebook keeps; without any if its code has changed.
    """
    notebook, last = from_source(path), kept(path, root)
    code, beside = code_hash(notebook), path.with_suffix(".ipynb")
    if last and last.metadata["executed"]["key"] and code_hash(last) == code:
        return last
    if beside.is_file() and code_hash(pair := nbformat.read(beside, 4)) == code:
        notebook = with_outputs(notebook, pair)
        for output in all_outputs(notebook):
            if output.get("data", {}).get("text/plain", "").startswith("<Figure"):
                output.data["text/plain"] = NOT_DRAWN
    notebook.metadata["executed"] = {"key": "", "seconds": 0.0, "on": "not yet"}
    return notebook


# Pairs
# -------------------------------------------------------------------------------------


def text_outputs(outputs: list) -> list:
    """Keep of a cell's outputs what can be compared on any machine: text, without
    images, HTML and standard error.
    """
    kept = []
    for output in copy.deepcopy(outputs):  # the page has the images
        if output.output_type == "stream" and output.name == "stderr":
            continue
        if "data" in output:
            output.data = {
                key: value for key, value in output.data.items() if key in STORED
            }
            if claims := sentences.recorded(output):
                output.data[MEDIA] = sentences.without_last_digits(claims)
            output.metadata = {}
            if not output.data.get("text/plain") and (
                output.output_type == "display_data"
            ):
                continue  # a progress bar that is gone
        if kept and output.output_type == kept[-1].output_type == "stream":
            # a kernel sends what is printed in pieces, as it likes
            kept[-1].text += output.text
        else:
            kept.append(output)
    return kept


def sync(executed: dict[Path, nbformat.NotebookNode], root: Path = ROOT) -> None:
    """Write notebooks from their sources, with the text outputs of an execution of just
    that code and this package.
    """
    for path, found in executed.items():
        for error in errors(found):
            sys.exit(f"{path.relative_to(root)} failed: {error}")
        notebook, target = (
            with_outputs(from_source(path), found),
            path.with_suffix(".ipynb"),
        )
        for cell in code_cells(notebook):
            cell.outputs = text_outputs(cell.outputs)
        notebook.metadata["executed"] = code_hash(notebook)
        text = nbformat.writes(notebook) + "\n"
        if not target.exists() or target.read_text() != text:
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
            found.append(
                f"{name} was not executed since its last change: run make sync"
            )
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        if [cell.execution_count for cell in code] != list(range(1, len(code) + 1)):
            found.append(f"{name}: cells were executed out of order")
        for output in (output for cell in code for output in cell.outputs):
            if (
                output.output_type == "error"
                or output.get("name") == "stderr"
                or set(output.get("data", ())) - STORED
            ):
                found.append(
                    f"{name}: a stored output is an error, standard error, an image "
                    "or HTML"
                )
    for notebook in sorted((root / "book").glob("*/*.ipynb")):
        if not notebook.with_suffix(".py").exists():
            found.append(f"{notebook.relative_to(root)} has no source")
    return found


def errors(notebook: nbformat.NotebookNode) -> list[str]:
    """List the errors that the cells of an executed notebook raised."""
    return [
        f"{output.ename}: {output.evalue}"
        for output in all_outputs(notebook)
        if output.output_type == "error"
    ]


def title(path: Path) -> str:
    """Read the title of a chapter."""
    head = "# # " if path.suffix == ".py" else "# "
    return next(
        line for line in path.read_text().splitlines() if line.startswith(head)
    ).removeprefix(head)


# The book
# ----------------------------------------------------------------------------------


def execution_page(executed: dict[Path, nbformat.NotebookNode]) -> str:
    """Write the page that says when each page with code was executed, what it took and
    how it went.
    """
    seconds = {
        path: notebook.metadata["executed"]["seconds"]
        for path, notebook in executed.items()
    }
    result = {
        path: "passed" if notebook.metadata["executed"]["key"] else "not executed"
        for path, notebook in executed.items()
    }
    result |= {path: "a cell failed" for path in executed if errors(executed[path])}
    count = Counter(result.values())
    slowest = max(seconds, key=seconds.get)
    page = [
        *sentences.NOT_SEARCHED,
        "# Execution status",
        "",
        f"Of {len(executed)} pages with code {count['passed']} passed when they were "
        "executed from their sources; in "
        f"{count['a cell failed']} a cell raised an error, and "
        f"{count['not executed']} were not executed, so they show stored text and no "
        "figures.",
        "They ran on one machine, several at a time, and their times add up to "
        f"{sum(seconds.values()) / 60:.0f} minutes;",
        f"the longest was {{doc}}`/{slowest.with_suffix('')}`.",
        "A page that did not change since is not executed again, so dates may differ.",
        "",
        "| page | result | seconds | executed on |",
        "| --- | --- | ---: | --- |",
        *(
            f"| {{doc}}`/{path.with_suffix('')}` | "
            f"{result[path]} | {seconds[path]:.0f} "
            f"| {notebook.metadata['executed']['on']} |"
            for path, notebook in executed.items()
        ),
        "",
    ]
    return "\n".join(page)


def said(
    executed: dict[Path, nbformat.NotebookNode], root: Path = ROOT
) -> tuple[dict[Path, list[dict]], dict[str, list[str]]]:
    """Collect what the pages recorded, and the texts that may show it."""
    measured, texts = {}, {}
    for path, notebook in executed.items():
        if found := sentences.records(notebook):
            measured[path.relative_to(root)] = found
        texts[path.stem] = list(sentences.texts(from_source(path)))
    for path in (root / "index.md", *(root / "book").rglob("*.md")):
        texts.setdefault(path.stem, [path.read_text(encoding="utf-8")])
    return measured, texts


def stage(executed: dict[Path, nbformat.NotebookNode], root: Path = ROOT) -> Path:
    """Lay out what pages are made from; a file that does not change keeps its time, so
    that its page is not made again.
    """
    folder = root / "_build" / "source"
    texts = [
        *(root / "book").rglob("*.md"),
        *(root / "book").glob("*.bib"),
        *(root / name for name in CONTENTS),
    ]
    pages = {path.relative_to(root): path.read_text(encoding="utf-8") for path in texts}
    named = {path.relative_to(root): notebook for path, notebook in executed.items()}
    measured, texts_of = said(executed, root)
    known = {path.stem: sentences.by_name(found) for path, found in measured.items()}
    for path, notebook in named.items():
        now = from_source(root / path)
        for cell in now.cells:
            if cell.cell_type == "markdown":
                cell.source = sentences.fill_formulas(cell.source, path.stem, known)
        now.metadata["executed"] = notebook.metadata["executed"]
        pages.pop(path, None)
        made = sentences.with_blocks(with_outputs(now, notebook))
        pages[path.with_suffix(".ipynb")] = nbformat.writes(made)
    # What was measured differs between machines, so these are made in each build and
    # not stored.
    pages |= sentences.files(measured)
    pages[Path("book/appendix/claims.md")] = sentences.claims_page(
        measured, {path: title(root / path) for path in measured}, texts_of
    )
    pages[Path("book/appendix/execution_status.md")] = execution_page(named)
    pages[Path("book/appendix/messages.md")] = messages.page(root)
    if (root / "book" / "results").is_dir():
        from tools import settings  # which needs the whole of booklib

        pages[Path("book/appendix/settings.md")] = settings.page(root)
    for place, _, names in os.walk(folder):  # which does not follow the links below
        for path in (Path(place, name) for name in names):
            name = path.relative_to(folder)
            if name not in pages and name.parts[0] != "_build":  # stills of figures
                path.unlink()
    for path, text in pages.items():
        write(folder / path, text)
    for name in SHOWN:
        link = folder / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink() and (root / name).exists():
            link.symlink_to(
                os.path.relpath(root / name, link.parent), target_is_directory=True
            )
    return folder


def state(root: Path = ROOT) -> str:
    """Hash all that pages and notebooks are made of, the executed chapters included."""
    folders = (*SHOWN, "book", "tools", "_build/source")
    files = {
        path
        for folder in folders
        for path in (root / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    found = hashlib.sha256()
    for path in sorted(files | {root / name for name in CONTENTS}):
        found.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return found.hexdigest()


def made(root: Path = ROOT) -> Path:
    """Say which file has the state that the pages were last made of, to their end."""
    return root / "_build" / ".made"


def make_pages(folder: Path, strict: bool, root: Path = ROOT) -> None:
    """Let Jupyter Book make the pages, and a notebook of each; where one was stopped
    half-way, from the beginning.
    """
    if not made(root).exists():
        shutil.rmtree(root / "_build" / ".doctrees", ignore_errors=True)
    made(root).unlink(missing_ok=True)
    warnings = ["-W"] if strict else []
    program = Path(sys.executable).with_name("jupyter-book")
    command = [
        sys.executable,
        str(program),
        "build",
        str(folder),
        "--path-output",
        str(root),
        "-n",
        "--keep-going",
        *warnings,
    ]
    if subprocess.run(command, cwd=folder).returncode != 0:
        sys.exit("The pages were not made: what Jupyter Book says is above.")
    if (
        subprocess.run([sys.executable, "-m", "tools.readers"], cwd=root).returncode
        != 0
    ):
        sys.exit("The notebooks for readers were not made: why is said above.")
    write(made(root), state(root))


def report(
    executed: dict[Path, nbformat.NotebookNode], root: Path = ROOT
) -> tuple[list[str], list[str]]:
    """List what failed, in words: the claims that do not hold, and the cells that
    raised an error.
    """
    broken, raised = [], []
    for path, notebook in executed.items():
        page = root / "_build" / "html" / path.relative_to(root).with_suffix(".html")
        failed = [
            f"✗ {title(path)}: "
            f"{record['line'].removeprefix('✗ ')}\n  {page}#claim-{record['name']}"
            for record in sentences.records(notebook)
            if not record["holds"]
        ]
        wrong = [
            f"✗ {title(path)}: a cell raised {error}\n  {page}"
            for error in errors(notebook)
        ]
        if (failed or wrong) and changed_by_hand(path, root):
            back = f'git restore "{path.relative_to(root).with_suffix("")}".*'
            (wrong or failed).append(
                f"  {path.name} was changed since it was last committed; {back} "
                "brings it back."
            )
        broken += failed
        raised += wrong
    return broken, raised


def changed_by_hand(path: Path, root: Path = ROOT) -> bool:
    """Tell whether git knows a chapter's script in another form."""
    try:
        said = subprocess.run(
            ["git", "status", "--porcelain", "--", str(path)],
            cwd=root,
            capture_output=True,
            text=True,
        ).stdout
    except OSError:  # there is no git
        return False
    return "M" in said[:2]


def build(strict: bool = False, root: Path = ROOT) -> int:
    """Build the book; return the exit status: 1 if a cell raised an error, or,
    strictly, if a claim does not hold.
    """
    free = shutil.disk_usage(root).free / 1e9
    if free < SPACE:
        sys.exit(
            f"The book needs {SPACE} GB of disk space, and {root} has {free:.1f} GB "
            "left: free some, and say make book again."
        )
    executed = execute(executed_pages(root), root)
    make_pages(stage(executed, root), strict, root)
    failed = tell(executed, root)
    unsaid = sentences.unsaid(*said(executed, root))
    if unsaid:
        print("\nRecords and sentences do not belong together:", *unsaid, sep="\n")
    for path in chapters(root):
        notebook = path.with_suffix(".ipynb")
        if notebook.exists() and inputs(nbformat.read(notebook, 4)) != inputs(
            from_source(path)
        ):
            print(
                f"\n{notebook.name} differs from {path.name}, from which its page is "
                "made: say make sync, which writes the notebook anew."
            )
    print(f"\nThe book is at {root / '_build' / 'html' / 'index.html'}")
    return int("cell" in failed or (strict and bool("claim" in failed or unsaid)))


def tell(executed: dict[Path, nbformat.NotebookNode], root: Path = ROOT) -> set[str]:
    """Print what failed; return which kinds of things did: a claim, a cell."""
    broken, raised = report(executed, root)
    count = sum(len(sentences.records(notebook)) for notebook in executed.values())
    if raised:
        print(
            "\nThese cells failed; their pages show where, and the other chapters are "
            "built:",
            *raised,
            sep="\n",
        )
    if broken:
        print(
            f"\n{sum(line.startswith('✗') for line in broken)} of {count} claims do "
            "not hold on this machine:",
            *broken,
            sep="\n",
        )
    return {kind for kind, found in (("cell", raised), ("claim", broken)) if found}


def make_notebooks(root: Path = ROOT) -> None:
    """Make the reader's notebooks, and the pages, of what is there, if that has changed
    since they were made.
    """
    before = made(root).read_text() if made(root).is_file() else ""
    if before == state(root) and (root / "_build" / "notebooks").is_dir():
        return
    found = {path: as_it_was(path, root) for path in executed_pages(root)}
    make_pages(stage(found, root), strict=False, root=root)
    missing = sum(not each.metadata["executed"]["key"] for each in found.values())
    if missing:
        print(
            f"\n{missing} of {len(found)} pages have text outputs and no figures: run "
            "their cells, or say make book, which executes all."
        )


def build_chapter(name: str, root: Path = ROOT) -> int:
    """Execute one chapter, write its notebook and make its page, beside the others as
    they were; return the exit status.
    """
    found = [path for path in chapters(root) if path.stem == name]
    if not found:
        sys.exit(
            f"There is no chapter {name!r}; there are "
            f"{', '.join(path.stem for path in chapters(root))}."
        )
    executed = execute(found, root)
    failed = tell(executed, root)
    if "cell" not in failed:
        sync(executed, root)
    make_pages(
        stage(
            {path: as_it_was(path, root) for path in executed_pages(root)} | executed,
            root,
        ),
        strict=False,
        root=root,
    )
    print(
        "\nThe page is at "
        f"{root / '_build' / 'html' / found[0].relative_to(root).with_suffix('.html')}"
    )
    return int(bool(failed))


def main(command: str, *options: str) -> None:
    """Run one of the commands of this file's head."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # a bar's display would be an output
    try:
        if command == "build" and set(options) <= {"--strict"}:
            sys.exit(build(strict=bool(options)))
        elif command == "notebooks" and not options:
            make_notebooks()
        elif command == "chapter" and len(options) == 1:
            sys.exit(build_chapter(*options))
        elif command == "sync" and not options:
            sync(execute(chapters()))
        elif command == "check" and not options:
            found = problems()
            print(
                "\n".join(found) or f"{len(chapters())} pairs are in step and executed"
            )
            sys.exit(bool(found))
        else:
            sys.exit(__doc__)
    except KeyboardInterrupt:
        sys.exit("\nStopped. What is executed is kept: make book goes on from here.")


if __name__ == "__main__":
    main(*sys.argv[1:] or [""])
