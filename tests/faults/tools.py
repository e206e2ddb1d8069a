"""Faults in the tools: the chapters' pairs, and the grading of the coursework."""

from functools import partial

from tests.faults.planting import Fault

notebooks = partial(Fault, file="tools/notebooks.py", tests="tests/book/test_pairs.py tests/assignments/test_secrets.py")
book = partial(Fault, file="tools/book.py", tests="tests/book/test_pairs.py")
pages = partial(Fault, file="tools/book.py", tests="tests/book/test_build.py")
gradebooks = partial(Fault, file="tools/coursework/gradebooks.py", tests="tests/assignments/test_teaching.py")
submissions = partial(Fault, file="tools/coursework/submissions.py", tests="tests/assignments/test_submissions.py")
judge = partial(Fault, file="tools/coursework/judge.py", tests="tests/assignments/test_judge.py tests/assignments/test_codec.py")
codec = partial(Fault, file="tools/coursework/codec.py", tests="tests/assignments/test_codec.py tests/assignments/test_judge.py")
pupil = partial(Fault, file="tools/coursework/pupil.py", tests="tests/assignments/test_judge.py")
confinement = partial(Fault, file="tools/coursework/confinement.py", tests="tests/assignments/test_confinement.py")
clock = partial(Fault, file="tools/coursework/clock.py", tests="tests/assignments/test_confinement.py")
edition = partial(Fault, file="tools/coursework/edition.py", tests="tests/assignments/test_secrets.py::test_the_student_edition_has_none")

FAULTS = [
    # pairs
    notebooks(
        "the name of a kernel gets into the scripts",
        '"notebook_metadata_filter": "-kernelspec,',
        '"notebook_metadata_filter": "',
        tests="tests/book/test_opening.py",
    ),
    notebooks(
        "a notebook's metadata have no order",
        "nbformat.reads(nbformat.writes(from_source(path)), 4)",
        "from_source(path)",
        tests="tests/book/test_opening.py",
    ),
    book(
        "text counts as code, so that a change of text alone asks for another execution",
        'return [cell for cell in notebook.cells if cell.cell_type == "code"]',
        "return list(notebook.cells)",
    ),
    book(
        "a chapter that was not executed after its last change passes",
        'if notebook.metadata.get("executed") != code_hash(notebook):',
        'if "executed" not in notebook.metadata:',
    ),
    book("cells may be executed in any order", "!= list(range(1, len(code) + 1)):", "== []:"),
    book("images are stored", '{key: value for key, value in output.data.items() if key == "text/plain"}', "dict(output.data)"),
    book("what is printed in pieces stays in pieces", "if kept and output.output_type", "if not kept and output.output_type"),
    book("stored results do not count for the cache", '        *sorted((root / "book" / "results").glob("*.json")),\n', ""),
    book(
        "the package does not count for the cache", 'for folder in ("sgmc", "experiments", "benchmarks")', 'for folder in ("experiments",)'
    ),
    pages(
        "a claim that does not hold passes a strict build",
        'int("cell" in failed or (strict and "claim" in failed))',
        'int("cell" in failed)',
    ),
    pages(
        "a cell that raises passes a build", 'int("cell" in failed or (strict and "claim" in failed))', 'int(strict and "claim" in failed)'
    ),
    pages("a claim that does not hold is not listed", "            if not claim.holds\n", "            if claim.holds\n"),
    pages("a chapter that failed is not tried again", " and not errors(notebook))", ")"),
    pages("a build that was stopped half-way is gone on with", "    if unfinished.exists():", "    if False:"),
    # coursework
    gradebooks(
        "a grade of another assignment is taken",
        'if row["assignment"] == assignment and row["timestamp"] and number:',
        'if row["timestamp"] and number:',
    ),
    gradebooks("who handed nothing in gets a nought", 'and row["timestamp"] and number:', "and number:"),
    gradebooks("answers that wait for a mark are graded by the machine", 'if row["kind"] == "auto" and row', "if row"),
    submissions("a student's tests count", "if task and cell.metadata.nbgrader.solution:", "if task:"),
    submissions(
        "of an answer that is there twice the last one counts", "            continue\n        answers[task]", "        answers[task]"
    ),
    submissions("cells that a student added are lost", "        notebook.cells += added.get(task, []) if task else []\n", ""),
    submissions("an answer that is missing is the instructor's", "answers.get(task, stub.source)", "answers.get(task, cell.source)"),
    judge(
        "a generator that was set back is believed",
        "if not self.faults and not reached(generator, state):",
        "if reached(generator, state) is None:",
    ),
    judge(
        "of feedback's run the hidden tests are a part",
        "source = block.source if self.hidden else visible(block.source)",
        "source = block.source",
    ),
    judge(
        "a test that redefines a name does so for all that follow",
        "        self.scope = dict(self.namespace)",
        "        self.scope = self.namespace",
    ),
    judge(
        "a use that is forbidden goes through",
        'in reply["used"][:NAMED]]',
        "in []]",
    ),
    codec(
        "a tensor may be of a class of its own",
        "        if isinstance(value, Tensor) and (plain",
        "        if type(value) is Tensor and (plain",
    ),
    codec("an answer to another call is taken", 'elif message.get("serial") != serial:', "elif message is None:"),
    codec("a message may be of any length", "        if length > limit:\n", "        if length < 0:\n"),
    codec("a truth value may have any byte", "(raw != 0 if dtype == torch.bool else raw.view(dtype))", "raw.view(dtype)"),
    pupil("what a test replaces stays replaced", "            self.names.update(before)", "            before.clear()"),
    confinement(
        "submissions have a network",
        '"bwrap", "--unshare-all", "--unshare-user"',
        '"bwrap", "--unshare-all", "--share-net", "--unshare-user"',
    ),
    codec("numbers may come once and be many tensors", "    buffers[index] = None\n", ""),
    codec("a generator may give out numbers again", " or not _is_sound(state)", ""),
    judge("a submission may take as long as it likes", "return self.left <= 0 or time.monotonic() > self.end", "return False"),
    clock("a file without a name is no memory", "and not file.st_nlink:", "and file.st_nlink < 0:"),
    confinement("a submission may write to its devices' folder", '"--remount-ro", "/dev", ', ""),
    confinement("who starts a submission shows it an environment", '*("env", "-i", f"PATH={os.environ[\'PATH\']}"),', ""),
    confinement("submissions keep the environment", '"--new-session", "--clearenv", ', '"--new-session", '),
    submissions("of two notebooks the oldest counts", "file, cells, has_ids = files[-1]", "file, cells, has_ids = files[0]"),
    edition(
        "the student edition has the instructor's notebooks",
        'shutil.copytree(Path(folder) / "release", target)',
        'shutil.copytree(Path(folder) / "source", target)',
    ),
]
