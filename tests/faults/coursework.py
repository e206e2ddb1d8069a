"""Faults in what is around the grading: names, zips, tables, feedback pages, and the reading of a student's source."""

from functools import partial

from tests.faults.planting import Fault

submissions = partial(Fault, file="tools/coursework/submissions.py", tests="tests/assignments/test_submissions.py")
tables = partial(Fault, file="tools/coursework/tables.py", tests="tests/assignments/test_submissions.py")
suspicions = partial(Fault, file="tools/coursework/suspicions.py", tests="tests/assignments/test_suspicions.py")
feedback = partial(Fault, file="tools/coursework/feedback.py", tests="tests/assignments/test_feedback.py")
pupil = partial(Fault, file="tools/coursework/pupil.py", tests="tests/assignments/test_judge.py")
grading = partial(Fault, file="tools/coursework/grading.py", tests="tests/assignments/test_grading.py")
results = partial(Fault, file="tools/coursework/results.py", tests="tests/assignments/test_feedback.py")

FAULTS = [
    submissions("a student's name is not composed", 'unicodedata.normalize("NFC", name)\n', "name\n"),
    submissions("two names that differ in case are two students", ".casefold(), []", ", []"),
    submissions("a path may lead out of a zip", 'or ".." in re.split', 'or "..." in re.split'),
    submissions("zips within a zip have room of their own", "time, remarks, room)", "time, remarks, Room())"),
    submissions("an encrypted file is opened", "elif member.flag_bits & 1:", "elif member.flag_bits & 0:"),
    submissions("links are followed", "(path != place and path.is_symlink()) or not", "not"),
    submissions("an empty folder is a success", "    if not students:\n", "    if students is None:\n"),
    tables("full-width signs begin no formula", 'unicodedata.normalize("NFKC", text)', "text"),
    tables("white space hides a formula", '.strip(" \'\\"")', ""),
    tables("a separator of lines stays in a cell", '{"Cc", "Zl", "Zp"}', '{"Cc"}'),
    suspicions("the names of the given cells' imports are not known", "Reader([handed_out, elsewhere, mine]", "Reader([elsewhere, mine]"),
    suspicions("helpers are not followed", "                reader.visit(statement)\n", ""),
    suspicions(
        "a function's own names do not hide those around it", "        self.scopes.append(scope)\n", "        self.scopes.append(Scope())\n"
    ),
    suspicions("a module behind a module is not seen", "BEHIND & set(parts[1:])", "BEHIND & set()"),
    suspicions("an annotation is not read", "                self.annotation(annotation)\n", "                pass\n"),
    suspicions("helpers hide behind long cells", "sorted(others, key=len)", "others"),
    suspicions("cells are read as they come", 'key=lambda cell: cell.kind != "answer"', "key=id"),
    submissions("a million cells are made", "if len(cells) > CELLS:", "if cells is None:"),
    submissions(
        "what one student's files bring about ends the class",
        "except Exception as error:  # whatever one",
        "except KeyError as error:  # whatever one",
        tests="tests/assignments/test_grading.py",
    ),
    grading("what cannot be entered ends the class", "        book.db.rollback()\n", "        raise\n"),
    grading("what runs out of time is not judged again", "if outcome.exhausted and workers > 1:", "if outcome.exhausted and workers > 99:"),
    pupil("threads are not noticed", "        threading.setprofile(self.look)", "        threading.setprofile(None)"),
    pupil(
        "who switches off what notices calls is not noticed",
        "if forbidden and not sys.getprofile() == threading",
        "if forbidden and not threading",
    ),
    pupil("what notices calls may be off for a while", "any(called is one for one in EVASIONS)", "False"),
    pupil("what shows a tensor is a gradient", " and name != PRINTING", ""),
    pupil("what draws is an answer", 'module != "booklib.figures" and ', ""),
    suspicions("what is timed is not read", 'source = TIMED.sub(r"\\1", source)', "pass"),
    suspicions("what a module has imported is its own", 'if number and part in ("sgmc", "torch")', "if number and part is None"),
    suspicions("what an experiment binds is used elsewhere", "other is not cell and not other.experiment", "other is not cell"),
    suspicions("a gradient that is switched off is one", "and node.value.value is False", "and node.value.value is None"),
    submissions(
        "each way of packing may end the class", "except Exception as error:  # each way", "except ValueError as error:  # each way"
    ),
    submissions("a name may be longer than files can bear", "student.encode()[:LONGEST]", "student.encode()"),
    submissions("half of an answer is lost", "handed_out | {answers[task]}", "handed_out | {cell.source}"),
    grading("words of a student keep their HTML", 'r"<(?=[A-Za-z/!?])"', 'r"<(?=[0-9])"'),
    suspicions("a computed name is not seen", 'self.remark(f"getattr with a computed name in line {node.lineno}")', "pass"),
    feedback("a page shows the test cells of the graded notebook", "shown.get(task_of(cell), cell.source)", "cell.source"),
    feedback("outputs of hidden tests are shown", 'if "BEGIN HIDDEN TESTS" not in cell.source else []', ""),
    feedback("a rubric is shown before the mark", "if mark.by_hand else", "if task else"),
    feedback("a page may be as long as one likes", "self.room -= len(piece)", "pass"),
    feedback("the whole model answer is shown", '.partition("**Rubric.**")[2]', ""),
    feedback("what a student wrote is HTML", "super().__init__(escape=True", "super().__init__(escape=False"),
    results("what is not marked is zero", "points = None if grade.needs_manual_grade else grade.score", "points = grade.score"),
    results("who is on the roster and missing is not told", "remarks[key] = [ABSENT]", "pass"),
]
