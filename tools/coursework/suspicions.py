"""Read a student's source: does it use what a task forbids, and does anything in it
hide something, or look at the grader?

What is forbidden and used costs the task its points. Everything else that is noticed
here is a remark for the lecturer and costs nothing. Reading is no fence: a fence is the
confinement in which the source runs. It tells honest work from what deserves a second
look."""

import ast
import builtins
import multiprocessing
import re
import resource
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import NamedTuple

from IPython.core.inputtransformer2 import TransformerManager

# characters of a source, and seconds of the processor to read it
LONGEST, SECONDS = 100_000, 5
# characters of the other cells that are looked into, and seconds to read all cells of a
# student
OTHERS, ALL_SECONDS = 10 * LONGEST, 60
REMARKS, LINES = 20, 5  # how many remarks are made, and of how many lines
# how long remarks are, and how many aliases of aliases are followed
LENGTH, DEPTH = 300, 20
UNREAD, UNFOLLOWED = (
    "a cell that could not be read: look at it",
    "what it uses of other cells could not be read: look at it",
)

AUTOGRAD = (
    "torch.autograd",
    "torch.func",
    "torch._functorch",
    "torch.nn.Parameter",
    "torch.nn.parameter",
    "torch.enable_grad",
)
AUTOGRAD += (
    "torch.set_grad_enabled",
    "torch.Tensor.backward",
    "torch.Tensor.requires_grad_",
)
AUTOGRAD += (
    "functorch",
    "jax",
    "autograd",
    "sympy",
    "tensorflow",
    "casadi",
    "pyro",
    "numpyro",
)
# which draw a figure, or have no gradient
ALLOWED = ("booklib.figures", "torch.autograd.no_grad", "torch.func.vmap")
# which have parameters with gradients, or may let them have some
GRAPHS = ("torch.nn", "torch.optim", "torch.inference_mode")
# attributes of tensors with a gradient
TAPE, TAPE_PERHAPS = (
    {"next_functions", "retain_grad"},
    {"backward", "grad_fn", "register_hook"},
)

# The longest beginning of a name with dots decides whether its use is harmless or worth
# a look; what begins with none of these is.
HARMLESS_NAMES = set(
    "__future__ abc bisect cmath collections contextlib copy csv dataclasses datetime "
    "decimal enum fractions functools heapq itertools "
    "json logging math numbers operator pprint random re statistics string textwrap "
    "time typing warnings "
    "os.path os.cpu_count os.linesep os.makedirs os.sep sys.float_info sys.getsizeof "
    "sys.maxsize sys.version sys.version_info sys.platform "
    "sys.stdout.write sys.stdout.flush types.SimpleNamespace IPython.display "
    "arviz booklib checks einops matplotlib mlxtend mpl_toolkits numba numpy pandas "
    "pathlib scipy seaborn sgmc sklearn torch "
    "torch.utils.data torchvision tqdm".split()
)
SUSPICIOUS_NAMES = set(
    "functools.singledispatch functools.singledispatchmethod numpy.ctypeslib "
    "numpy.f2py numpy.load operator.attrgetter "
    "operator.methodcaller pandas.eval pandas.read_pickle sklearn.utils.parallel "
    "string.Formatter torch.classes torch.distributed "
    "torch.export torch.futures torch.fx torch.hub torch.jit torch.library torch.load "
    "torch.multiprocessing torch.ops torch.overrides "
    "torch.package torch.serialization torch.utils tqdm.contrib.concurrent "
    "typing.ForwardRef typing.get_type_hints".split()
)
# also within others
BEHIND = {
    "sys",
    "os",
    "gc",
    "inspect",
    "ctypes",
    "subprocess",
    "builtins",
    "importlib",
    "pickle",
    "threading",
}
FUNCTIONS = set(
    "eval exec compile __import__ globals locals vars delattr setattr breakpoint "
    "input open help memoryview".split()
)
IPYTHON = re.compile(r"get_ipython|In|Out|_ih|_oh|_dh|_ii|_iii|_i\d*|exit|quit")
TIMED = re.compile(
    r"\A\s*%%(?:time|timeit|capture)\b.*|^([ \t]*(?:[\w, ]+=[ "
    r"\t]*)?)%time(?:it)?\b(?: +-\S+)*[ \t]*",
    re.M,
)
MAGICS = {
    "matplotlib",
    "time",
    "timeit",
    "config",
    "precision",
    "load_ext",
    "autoreload",
}
FRAMES = re.compile(
    r"(f|tb|gi|cr|ag|co)_(back|builtins|code|consts|frame|globals|lasti|lineno|locals|names|next|trace)|mro|func_globals"
)
HARMLESS = {
    "__init__",
    "__name__",
    "__doc__",
    "__version__",
    "__post_init__",
    "__call__",
    "__repr__",
    "__str__",
    "__len__",
    "__iter__",
}
HARMLESS |= {
    f"__{kind}{name}__"
    for name in "add sub mul matmul truediv floordiv mod pow".split()
    for kind in ("", "r", "i")
}
HARMLESS |= {
    "__neg__",
    "__abs__",
    "__next__",
    "__getitem__",
    "__enter__",
    "__exit__",
    "__annotations__",
}
PLACES = re.compile(
    r"/proc\b|/sys/|/etc/|gradebook|\.ipynb|BEGIN HIDDEN|PYTHONPATH|assignment_\d"
)


class Findings(NamedTuple):
    """What a reading found: sentences on forbidden uses, and remarks."""

    forbidden: list[str]
    remarks: list[str]


def read(
    source: str,
    forbidden: Collection[str] = (),
    others: Collection[str] = (),
    given: Collection[str] = (),
    answers: Collection[str] = (),
) -> Findings:
    r"""Read a cell that a student wrote.

    Args:
        source: the cell.
        forbidden: what the task forbids: names with dots, each of which stands for all
            below it, or the word "autograd".
        others: all other cells of the same student; what the cell uses of them is read
            for forbidden uses as well.
        given: the cells that were handed out, whose imports hold here as well.
        answers: names that other tasks' answers define, into which nothing is followed:
            each task pays for itself.

    Returns:
        What was found. A cell that cannot be read within the limits of this file leaves
        a remark.

    Example:
        >>> read(
        ...     "def slope(f, x):\n    return torch.func.grad(f)(x)",
        ...     forbidden=["autograd"],
        ...     given=["import torch"],
        ... ).forbidden
        ['it uses torch.func.grad, which this task does not allow']
        >>> read("func = 1").remarks, read("eval('1')").remarks
        ([], ['eval in line 1'])
    """
    [found] = _read_apart([(source, forbidden, others, given, answers)], SECONDS)
    return found


def read_all(cells: Iterable, given: Collection[str]) -> dict[str, Findings]:
    """Read all cells that a student wrote, the answers first, as long as that does not
    take too long.

    Args:
        cells: each with its ``kind``, "answer" or another, its ``name``, its
            ``source``, what is ``forbidden`` in it, and the ``names`` that the
            instructor's answer defines; an ``experiment`` is of no use to other cells,
            for it is not run with the tests.
        given: as for ``read``.

    Returns:
        What was found in each cell, by its name. Of cells that were left unread the
        first one has a remark.
    """
    cells, found, end = (
        sorted(cells, key=lambda cell: cell.kind != "answer"),
        [],
        _seconds_of_readers() + ALL_SECONDS,
    )
    names = {name for cell in cells for name in cell.names}
    readings = [
        (
            cell.source,
            cell.forbidden,
            [
                other.source
                for other in cells
                if other is not cell and not other.experiment
            ],
            given,
            names - {*cell.names},
        )
        for cell in cells
    ]
    while len(found) < len(cells):
        if found and _seconds_of_readers() >= end:
            remark = (
                f"{len(cells) - len(found)} cells from here on were not read, for "
                "those before took too long"
            )
            found.append(Findings([], [remark]))
            break
        found += _read_apart(readings[len(found) :], end - _seconds_of_readers())
    return {cell.name: one for cell, one in zip(cells, found, strict=False)}


def _seconds_of_readers() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _read_apart(readings: list[tuple], seconds: float) -> list[Findings]:
    """Read cells in a process with limits, for the parser can take for ever, or die, of
    what it is given.

    The last one that is given may have been its end. The first one is always begun,
    those behind it as long as there are seconds left."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(
        target=_read_within_limits, args=(sender, readings, seconds)
    )
    process.start()
    sender.close()
    found = {}
    with suppress(EOFError, OSError):
        while True:
            number, findings = receiver.recv()
            found[number] = findings
    process.kill()
    process.join()
    receiver.close()
    return list(found.values())


def _read_within_limits(sender, readings: list[tuple], seconds: float) -> None:
    with suppress(ValueError, OSError):  # a lower limit holds already
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number, (source, forbidden, others, given, answers) in enumerate(readings):
        if number and time.process_time() >= seconds:
            break
        if len(source) > LONGEST:
            sender.send(
                (
                    number,
                    Findings(
                        [],
                        [f"a cell of {len(source):,} characters, too long to be read"],
                    ),
                )
            )
            continue
        sender.send((number, Findings([], [UNREAD])))
        with suppress(ValueError, OSError):
            resource.setrlimit(
                resource.RLIMIT_CPU,
                (
                    int(time.process_time()) + SECONDS + 1,
                    resource.getrlimit(resource.RLIMIT_CPU)[1],
                ),
            )
        with suppress(RecursionError, MemoryError, ValueError):
            found = find(source, forbidden, [], given, answers)
            if forbidden and others:  # which are read for what is forbidden alone
                chosen = _short(others)
                left = [
                    f"{n} long cells were not read for what it uses of them"
                    for n in [len(others) - len(chosen)]
                    if n
                ]
                sender.send(
                    (
                        number,
                        found._replace(remarks=[*found.remarks, UNFOLLOWED, *left]),
                    )
                )
                found = find(source, forbidden, chosen, given, answers)
                found.remarks.extend(left)
            sender.send((number, found))
    sender.close()


def _short(others: Collection[str]) -> list[str]:
    """Choose the cells that are looked into, the short ones first, so that nothing is
    hidden behind long ones.
    """
    chosen, room = [], OTHERS
    for other in sorted(others, key=len):
        room -= len(other)
        if room < 0 or len(other) > LONGEST:
            break
        chosen.append(other)
    return chosen


def parse(source: str) -> ast.Module:
    """Parse a cell, which may have IPython's magics; what is no Python is an empty
    cell, for it cannot run either.
    """
    source = TIMED.sub(r"\1", source)  # what is timed is Python, but a text to IPython
    for text in (lambda: source, lambda: TransformerManager().transform_cell(source)):
        with suppress(SyntaxError):
            return compile(
                text(),
                "cell",
                "exec",
                ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            )
    return ast.Module([], [])


def find(
    source: str,
    forbidden: Collection[str],
    others: list[str],
    given: list[str],
    answers: Collection[str],
) -> Findings:
    """Do what ``read`` does, without limits."""
    tree, other_trees, given_trees = (
        parse(source),
        list(map(parse, others)),
        list(map(parse, given)),
    )
    handed_out, elsewhere, mine = Scope(), Scope(), Scope(tree.body)
    for scope, trees in ((handed_out, given_trees), (elsewhere, other_trees)):
        for one in trees:
            scope.bind(one.body)
    reader = Reader([handed_out, elsewhere, mine], forbidden)
    reader.visit(tree)
    for name in mine.names:
        if name in handed_out.names and not same(name, tree.body, handed_out):
            reader.remark(f"the given name {name} is bound again")
    follow(reader, other_trees, set(mine.names), set(answers) - set(mine.names))
    return Findings(list(reader.found)[:REMARKS], together(reader.remarks))


def together(remarks: Iterable[str]) -> list[str]:
    """Say once what was noticed in several lines, and how much is left out if it is too
    much.

    Example:
        >>> together(["eval in line 1", "os imported in line 2", "eval in line 3"])
        ['eval in lines 1, 3', 'os imported in line 2']
    """
    lines: dict[str, list[str]] = {}
    for remark in remarks:
        what, _, line = remark.partition(" in line ")
        lines.setdefault(what, []).append(line)
    found = [
        f"{what} in line{'s' if len(numbers) > 1 else ''} "
        f"{', '.join(numbers[:LINES])}{', …' if len(numbers) > LINES else ''}"
        if numbers[0]
        else what
        for what, numbers in lines.items()
    ]
    return [
        *found[:REMARKS],
        *(f"and {n} things more" for n in [len(found) - REMARKS] if n > 0),
    ]


def follow(
    reader: "Reader", others: list[ast.Module], mine: set[str], seen: set[str]
) -> None:
    """Read the statements of other cells that bind what a cell uses, or what it
    defines, and what those use in turn.
    """
    binding: dict[str, list[ast.stmt]] = {}
    for statement in (statement for other in others for statement in other.body):
        for name in Scope([statement]).names:
            binding.setdefault(name, []).append(statement)
    reader.looking = False  # for what these hide, they are read for themselves
    for name in sorted(mine):
        reader.note_free(name)
    done = set()
    for name in reader.free:  # which grows
        for statement in binding.get(name, []) if name not in seen else ():
            if statement not in done:
                done.add(statement)
                reader.visit(statement)


def same(name: str, body: list[ast.stmt], scope: "Scope") -> bool:
    """Tell whether statements bind a name to what it is bound to anyway, as a second
    import does.
    """
    mine = Scope(body).names[name]
    return all(isinstance(one, str) for one in mine) and set(mine) <= {
        one for one in scope.names[name] if isinstance(one, str)
    }


class Scope:
    """The names that a module or a function binds: each to names with dots, to
    expressions, or to None, which may be anything.
    """

    def __init__(self, body: Iterable[ast.AST] = ()):
        self.names: dict[str, list[str | ast.expr | None]] = {}
        self.stars: list[str] = []  # modules of which everything was imported
        self.bind(body)

    def add(self, name: str, value: str | ast.expr | None = None) -> None:
        """Bind a name, once more perhaps."""
        self.names.setdefault(name, []).append(value)

    def bind(self, body: Iterable[ast.AST]) -> None:
        """Bind what statements bind, and what those within them do, unless they have a
        scope of their own.
        """
        for node in body:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.add(
                        alias.asname or alias.name.partition(".")[0],
                        alias.name if alias.asname else alias.name.partition(".")[0],
                    )
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if alias.name == "*":
                        self.stars.append(node.module or "")
                    else:
                        self.add(
                            alias.asname or alias.name,
                            f"{node.module or ''}.{alias.name}",
                        )
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    self.assign(target, node.value)
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value:
                self.assign(node.target, node.value)
            elif isinstance(
                node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
            ):
                self.add(node.name)
                continue
            elif isinstance(
                node,
                ast.Lambda
                | ast.GeneratorExp
                | ast.ListComp
                | ast.SetComp
                | ast.DictComp,
            ):
                continue
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.names.setdefault(node.id, [None])
            elif isinstance(node, ast.ExceptHandler) and node.name:
                self.add(node.name)
            self.bind(ast.iter_child_nodes(node))

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """Bind a name to an expression, or several to as many."""
        if isinstance(target, ast.Name):
            self.add(target.id, value)
        elif (
            isinstance(target, ast.Tuple | ast.List)
            and isinstance(value, ast.Tuple | ast.List)
            and len(target.elts) == len(value.elts)
        ):
            for one, other in zip(target.elts, value.elts, strict=True):
                self.assign(one, other)


class Reader(ast.NodeVisitor):
    """Go through a cell, and note what it uses."""

    def __init__(self, scopes: list[Scope], forbidden: Collection[str]):
        self.scopes, self.looking = scopes, True
        self.autograd = "autograd" in forbidden
        self.forbidden = (
            tuple(name for name in forbidden if name != "autograd")
            + AUTOGRAD * self.autograd
        )
        self.outside = len(scopes)  # the scopes that are no function's
        # names that are no function's, in order, each once
        self.free, self.noted = [], set()
        self.found, self.remarks = {}, {}  # in order, each once

    def remark(self, text: str) -> None:
        """Note something for the lecturer."""
        if self.looking:
            self.remarks[text[:LENGTH]] = None

    def forbid(self, what: str) -> None:
        """Note a forbidden use."""
        self.found[f"it uses {what[:LENGTH]}, which this task does not allow"] = None

    def resolve(
        self, node: ast.AST, scopes: list[Scope] | None = None, depth: int = 0
    ) -> set[str]:
        """Say what an expression may be, in names with dots; nothing if it is the
        student's own.
        """
        scopes = self.scopes if scopes is None else scopes
        if depth > DEPTH:
            return set()
        if isinstance(node, ast.Name):
            return self.resolve_name(node.id, scopes, depth)
        if isinstance(node, ast.Attribute):
            return {
                f"{one}.{node.attr}"
                for one in self.resolve(node.value, scopes, depth + 1)
            }
        if isinstance(node, ast.Call):
            [called, *_] = self.resolve(node.func, scopes, depth + 1) or {""}
            values = [
                one.value
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
                else None
                for one in node.args
            ]
            if called == "builtins.getattr" and len(values) > 1 and values[1]:
                return {
                    f"{one}.{values[1]}"
                    for one in self.resolve(node.args[0], scopes, depth + 1)
                }
            if (
                called in ("builtins.__import__", "importlib.import_module")
                and values
                and values[0]
            ):
                return {values[0]}
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
        ):
            owners = self.resolve(node.value, scopes, depth + 1)
            return {node.slice.value for one in owners if one == "sys.modules"} | {
                one.removesuffix("__dict__") + node.slice.value
                for one in owners
                if one.endswith(".__dict__")
            }
        if isinstance(node, ast.IfExp):
            return self.resolve(node.body, scopes, depth + 1) | self.resolve(
                node.orelse, scopes, depth + 1
            )
        if isinstance(node, ast.BoolOp):
            return set().union(
                *(self.resolve(one, scopes, depth + 1) for one in node.values)
            )
        if isinstance(node, ast.NamedExpr):
            return self.resolve(node.value, scopes, depth + 1)
        return set()

    def resolve_name(self, name: str, scopes: list[Scope], depth: int) -> set[str]:
        """Say what a name may be, seen from the innermost of some scopes."""
        for level in range(len(scopes) - 1, -1, -1):
            if name in scopes[level].names:
                found = set()
                for value in scopes[level].names[name]:
                    if isinstance(value, str):
                        found.add(value)
                    elif value is not None:
                        found |= self.resolve(value, scopes[: level + 1], depth + 1)
                return found
        if hasattr(builtins, name) and not IPYTHON.fullmatch(name):
            return {f"builtins.{name}"}
        return {f"{module}.{name}" for scope in scopes for module in scope.stars} | (
            {f"ipython.{name}"} if IPYTHON.fullmatch(name) else set()
        )

    def use(self, name: str, line: int) -> None:
        """Note the use of what has this name with dots."""
        parts = name.split(".")
        for number, part in enumerate(parts):
            if number and part in ("sgmc", "torch"):  # which many modules have imported
                return self.use(".".join(parts[number:]), line)
        if begins(name, ALLOWED):
            return
        if begins(name, self.forbidden):
            self.forbid(name)
        elif any(begins(one, (name,)) for one in self.forbidden) and name not in (
            "torch",
            "torch.Tensor",
        ):
            self.remark(f"{name} handed on as a whole in line {line}")
        if parts[0] == "ipython" or (
            parts[0] == "builtins" and len(parts) == 2 and parts[1] in FUNCTIONS
        ):
            self.remark(f"{parts[1]} in line {line}")
        elif parts[0] != "builtins" and (
            is_suspicious(name) or (parts[0] != "os" and BEHIND & set(parts[1:]))
        ):
            self.remark(f"{name} in line {line}")
        elif any(part.startswith("_") for part in parts[1:]):
            self.remark(f"{name}, which is private, in line {line}")
        if name == "builtins.getattr":
            self.remark(f"getattr handed on in line {line}")
        if (
            self.autograd
            and begins(name, GRAPHS)
            and not begins(name, ("torch.nn.functional",))
        ):
            self.remark(f"{name} in line {line}")

    def visit_Name(self, node: ast.Name) -> None:
        """Note what a name stands for."""
        if (
            node.id.startswith("__")
            and node.id.endswith("__")
            and node.id not in ("__name__", "__doc__", "__import__", "__class__")
        ):
            self.remark(f"{node.id} in line {node.lineno}")
        self.note_free(node.id)
        for name in self.resolve(node) if isinstance(node.ctx, ast.Load) else ():
            self.use(name, node.lineno)

    def note_free(self, name: str) -> None:
        """Note a name that no function around it binds."""
        if not any(name in scope.names for scope in self.scopes[self.outside :]):
            if name not in self.noted:
                self.free.append(name)
            self.noted.add(name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Note what a chain of attributes stands for, and each suspicious one in it."""
        names, inner = self.resolve(node), node
        for name in names:
            if isinstance(node.ctx, ast.Load):
                self.use(name, node.lineno)
            elif not begins(name, ("torch.backends", "matplotlib", "sys.stdout")):
                self.remark(f"{name} is changed in line {node.lineno}")
        while isinstance(inner, ast.Attribute):
            self.attribute(inner.attr, inner)
            inner = inner.value
        if names and isinstance(inner, ast.Name):
            self.note_free(inner.id)  # the name by itself is not what is used
        else:
            self.visit(inner)

    def attribute(self, name: str, node: ast.AST) -> None:
        """Note the name of an attribute, whosever it is."""
        if (
            name.startswith("__") and name.endswith("__") and name not in HARMLESS
        ) or FRAMES.fullmatch(name):
            self.remark(f".{name} in line {node.lineno}")
        if (
            self.autograd
            and name == "requires_grad"
            and isinstance(getattr(node, "ctx", None), ast.Store)
        ):
            self.forbid("requires_grad")
        if self.autograd and name in TAPE:
            self.forbid(f".{name}")
        if self.autograd and name in TAPE_PERHAPS:
            self.remark(f".{name} in line {node.lineno}")

    def visit_Call(self, node: ast.Call) -> None:
        """Note what is told by how something is called."""
        called = self.resolve(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        parts = [node.func, *node.args, *node.keywords]
        if (
            "builtins.getattr" in called
            and len(node.args) > 1
            and not isinstance(node.args[0], ast.Starred)
        ):
            parts.remove(node.func)  # which is remarked where it is handed on
            if isinstance(node.args[1], ast.Constant):
                self.attribute(f"{node.args[1].value}", node)
                method = f"{node.args[1].value}"
                for name in self.resolve(node):
                    self.use(name, node.lineno)
            else:
                self.remark(f"getattr with a computed name in line {node.lineno}")
        if "builtins.type" in called and len(node.args) > 1:
            self.remark(f"type with {len(node.args)} arguments in line {node.lineno}")
        if self.autograd:
            off = [
                one
                for one in [*node.args, *(one.value for one in node.keywords)]
                if isinstance(one, ast.Constant) and one.value is False
            ]
            if off and called & {
                "torch.set_grad_enabled",
                "torch.autograd.set_grad_enabled",
            }:
                parts.remove(node.func)
            if (
                method == "requires_grad_"
                or any(one.arg == "requires_grad" for one in node.keywords)
            ) and not off:
                self.forbid("requires_grad")
        if (
            isinstance(node.func, ast.Attribute)
            and method in ("run_line_magic", "run_cell_magic")
            and node.args
        ):
            magic = (
                node.args[0].value if isinstance(node.args[0], ast.Constant) else "?"
            )
            if magic not in MAGICS:
                self.remark(f"the magic %{magic} in line {node.lineno}")
            parts.remove(node.func)
        for part in parts:
            self.visit(part)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Note what is bound; a gradient that is switched off is none."""
        off = isinstance(node.value, ast.Constant) and node.value.value is False
        for target in node.targets:
            self.visit(
                target.value
                if off
                and isinstance(target, ast.Attribute)
                and target.attr == "requires_grad"
                else target
            )
        self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Note a module taken out of a dictionary."""
        for name in self.resolve(node):
            self.use(name, node.lineno)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        """Note an import of something suspicious; whether it is forbidden is told by
        its use.
        """
        for alias in node.names:
            if is_suspicious(alias.name) and not any(
                begins(name, (alias.name,)) for name in HARMLESS_NAMES
            ):
                self.remark(f"{alias.name} imported in line {node.lineno}")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Note an import of something suspicious, or of everything."""
        for alias in node.names:
            name = f"{node.module or ''}.{alias.name}"
            if is_suspicious(name):
                self.remark(f"{name} imported in line {node.lineno}")

    def visit_Constant(self, node: ast.Constant) -> None:
        """Note the name of a place in which a submission has nothing to look for, or of
        what may be forbidden.
        """
        if isinstance(node.value, str) and PLACES.search(node.value):
            self.remark(
                f"{PLACES.search(node.value)[0]} in a text in line {node.lineno}"
            )
        if self.autograd and node.value in {
            *TAPE,
            *TAPE_PERHAPS,
            "requires_grad",
            "requires_grad_",
        }:
            self.remark(f"{node.value} in a text in line {node.lineno}")

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Note what an annotation is."""
        self.annotation(node.annotation)
        self.visit(node.target)
        if node.value:
            self.visit(node.value)

    def annotation(self, node: ast.expr) -> None:
        """Read an annotation, which may be code in a text."""
        self.visit(node)
        for one in ast.walk(node):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                with suppress(SyntaxError):
                    self.annotation(
                        ast.increment_lineno(
                            ast.parse(one.value.strip(), mode="eval"), one.lineno - 1
                        ).body
                    )

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        """Note attributes that are taken by a pattern."""
        if node.kwd_attrs:
            self.remark(f"attributes in a pattern in line {node.lineno}")
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Note a class that pretends to be something else."""
        for base in node.bases:
            for name in self.resolve(base) & {
                "torch.Tensor",
                "torch.nn.Parameter",
                *(f"builtins.{one}" for one in PLAIN),
            }:
                self.remark(
                    f"a subclass of {name.removeprefix('builtins.')} in line "
                    f"{node.lineno}"
                )
        if node.keywords:
            self.remark(f"a class with a metaclass in line {node.lineno}")
        self.generic_visit(node)

    def visit_FunctionDef(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    ) -> None:
        """Go into a function, whose own names hide those around it."""
        name = getattr(node, "name", "")
        if name.startswith("__") and name.endswith("__") and name not in HARMLESS:
            self.remark(f"a method {name} in line {node.lineno}")
        for outside in [
            *getattr(node, "decorator_list", []),
            *node.args.defaults,
            *(one for one in node.args.kw_defaults if one),
        ]:
            self.visit(outside)
        for one in [*ast.walk(node.args), node]:
            if annotation := getattr(
                one, "returns" if one is node else "annotation", None
            ):
                self.annotation(annotation)
        body = node.body if isinstance(node.body, list) else [node.body]
        scope = Scope(body)
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                scope.names[argument.arg] = [None, *scope.names.get(argument.arg, [])]
        for statement in (
            one
            for part in body
            for one in ast.walk(part)
            if isinstance(one, ast.Global | ast.Nonlocal)
        ):
            for outer in statement.names:
                scope.names.pop(outer, None)
        self.within(scope, body)

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_ListComp(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> None:
        """Go into a comprehension, whose variables are its own."""
        scope = Scope()
        for generator in node.generators:
            scope.bind([generator.target])
        self.within(scope, list(ast.iter_child_nodes(node)))

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def within(self, scope: Scope, nodes: list[ast.AST]) -> None:
        """Go through nodes that have a scope of their own."""
        self.scopes.append(scope)
        for node in nodes:
            self.visit(node)
        self.scopes.pop()


PLAIN = ("int", "float", "complex", "str", "bool", "list", "tuple", "dict")


def begins(name: str, beginnings: Iterable[str]) -> bool:
    """Tell whether a name with dots is one of others, or below one of them."""
    return any(name == one or name.startswith(f"{one}.") for one in beginnings)


def is_suspicious(name: str) -> bool:
    """Tell whether a name with dots is worth a look; the longest of its beginnings that
    is known decides.
    """
    while name:
        if name in HARMLESS_NAMES or name in SUSPICIOUS_NAMES:
            return name in SUSPICIOUS_NAMES
        name = name.rpartition(".")[0]
    return True
