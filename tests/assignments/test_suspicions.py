"""What a reading of a student's source notices, and that it notices nothing in honest
work.
"""

import importlib
from types import SimpleNamespace

import pytest

from tests.assignments.running import cells_of, replaced
from tools.coursework import pairs, suspicions
from tools.coursework.suspicions import Findings, read

GIVEN = [
    "import math\nimport torch\nfrom checks import fresh\nfrom booklib.figures import "
    "COLOURS\n\ndef bowl(x):\n    return x"
]
HONEST = Findings([], [])


def solutions(name):
    """List the answer cells in code of an assignment, the given ones, and the names
    that the answers define.
    """
    cells = [cell for cell in cells_of(name) if cell.cell_type == "code"]
    answers = {
        pairs.task_of(cell): cell for cell in cells if cell.metadata.nbgrader.solution
    }
    given = [
        cell.source
        for cell in cells
        if not cell.metadata.nbgrader.solution and not cell.metadata.nbgrader.grade
    ]
    return answers, given


def defined(source):
    return set(suspicions.Scope(suspicions.parse(source).body).names)


def planted():
    """List the model solutions, and all planted right answers of the assignments'
    tests.
    """
    for item in pairs.assignments():
        yield item.name, "model", None, None
        module = importlib.import_module(f"tests.assignments.test_{item.name}")
        for task, answers in module.RIGHT.items():
            for title, answer in answers.items():
                yield item.name, f"{task}: {title}", task, answer


@pytest.mark.parametrize("name", [item.name for item in pairs.assignments()])
def test_nothing_is_noticed_in_honest_work(name):
    answers, given = solutions(name)
    noticed = {}
    for assignment, title, task, answer in planted():
        if assignment != name:
            continue
        sources = {
            key: replaced(cell.source, answer) if key == task else cell.source
            for key, cell in answers.items()
        }
        for key in sources if task is None else [task]:
            others = [source for other, source in sources.items() if other != key]
            names = set().union(*(defined(source) for source in others))
            found = suspicions.find(
                sources[key],
                answers[key].metadata.get("forbidden", ()),
                others,
                given,
                names,
            )
            if found != HONEST:
                noticed[title, key] = found
    assert noticed == {}


FORBIDDEN = {
    "the chain": "y = torch.autograd.grad(u, x)",
    "an import": "from torch.autograd import grad\ny = grad(u, x)",
    "an alias of the import": "from torch.func import grad as g\ny = g(bowl)(x)",
    "an alias of the module": "import torch.func as f\ny = f.vmap(f.grad(bowl))(x)",
    "an alias of an alias": "t = torch\nm = t.autograd\ndef f(x):\n    return m.grad(x.sum(), x)",
    "everything imported": "from torch.autograd.functional import *\ny = jacobian(bowl, x)",
    "a constant name": "y = getattr(torch, 'autograd').grad(u, x)",
    "an import in a function": "def f(x):\n    import torch.autograd.functional as a\n    return a.jacobian(bowl, x)",
    "backward": (
        "def f(x):\n    x = x.clone().requires_grad_()\n    "
        "bowl(x).sum().backward()\n    return x.grad"
    ),
    "a keyword": "x = torch.zeros(3, requires_grad=True)",
    "an attribute": "x.requires_grad = True",
    "another package": "import jax\ny = jax.grad(bowl)(x)",
    "importlib": "import importlib\ny = importlib.import_module('torch.func').grad(bowl)",
    "sys.modules": "import sys\ny = sys.modules['torch.func'].grad(bowl)",
    "the dictionary of a module": "y = torch.__dict__['func'].grad(bowl)",
    "a lambda": "f = lambda x: torch.func.grad(bowl)(x)",
    "a comprehension": "y = [torch.func.grad(bowl)(one) for one in x]",
    "a default": "def f(x, g=torch.func.grad(bowl)):\n    return g(x)",
    "a decorator": "@torch.func.grad\ndef f(x):\n    return x",
    "a condition": "g = (torch.func if x else math).grad",
    "a walrus": "y = (m := torch.func).grad(bowl)",
    "an annotation": "def f(x: torch.func.grad):\n    return x",
    "an annotation in a text": 'def f() -> "torch.func.grad":\n    return 1',
    "a text in a text": "x: \"list['torch.func.grad']\" = 1",
    "the tape": "node = bowl(x).grad_fn.next_functions[0]",
    "gradients kept": "x.retain_grad()",
    "a cell that is timed": "%%time\nfrom torch.func import grad\ny = grad(bowl)(x)",
    "a line that is timed": "def f(x):\n    %time y = torch.func.grad(bowl)(x)\n    return y",
    "PyTorch by way of a module that has imported it": "import checks\ny = checks.torch.func.grad(bowl)(x)",
}


@pytest.mark.parametrize("source", FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_forbidden_use_is_found(source):
    assert read(source, ["autograd"], given=GIVEN).forbidden
    assert not read(source, ["sgmc.integrators"], given=GIVEN).forbidden
    assert not read(source, [], given=GIVEN).forbidden


def test_what_a_cell_uses_of_others_is_followed():
    helper = (
        "from sgmc import integrators\n\ndef helper(x):\n    return "
        "integrators.leapfrog(x)"
    )
    middle = "def middle(x):\n    return helper(x)"
    answer = "def answer(x):\n    return middle(x)"
    [sentence] = read(answer, ["sgmc.integrators"], [helper, middle], GIVEN).forbidden
    assert (
        sentence == "it uses sgmc.integrators.leapfrog, which this task does not allow"
    )
    # bound again
    assert read(
        "def answer(x):\n    return x",
        ["sgmc.integrators"],
        [helper, middle, "answer = middle"],
        GIVEN,
    ).forbidden
    assert (
        read(
            answer, ["sgmc.integrators"], [helper, middle], GIVEN, answers=["middle"]
        ).forbidden
        == []
    )  # another task, which pays for itself
    assert (
        read(
            "def answer(middle):\n    return middle",
            ["sgmc.integrators"],
            [helper, middle],
            GIVEN,
        ).forbidden
        == []
    )


ALLOWED = {
    "a variable called func": "func = 3.0\ndef f(func):\n    return func.grad + func",
    "a parameter called autograd": "def f(autograd):\n    return autograd.grad(1)",
    "a method of its own": "class Net:\n    def forward(self, x):\n        return x\n    def derivative(self, x):\n        return self.grad",
    "a local variable called torch": "def f(torch):\n    return torch.autograd",
    "colours": (
        "import booklib.figures\nfrom booklib.figures import COLOURS\ncolour = "
        "COLOURS[0]"
    ),
    "no gradient": "with torch.no_grad():\n    y = x.detach().requires_grad_(False)",
    "a loop variable": "for grad in range(3):\n    print(grad)",
    "a magic": "%matplotlib inline\nx = 1",
    "timing": "%time x = 1",
    "annotations": (
        "def f(x: torch.Tensor, steps: 'int | None' = None, *, words: 'many words') "
        "-> 'Tensor':\n    y: float = 1.0\n    return y"
    ),
    "a complex step": "def f(x, h=1e-30):\n    return bowl(x + 1j * h).imag / h",
    "an attribute by name": "y = getattr(x, 'mean', None)",
    "functions of networks": "y = torch.nn.functional.softplus(x)",
    "numerical differences": "y = torch.gradient(x)",
    "the same import again": "import torch\nimport math",
    "statistics": (
        "from scipy import signal, special\ny = signal.lfilter([1.0], [1.0], "
        "special.erf(0.3))"
    ),
    "a class": "class State:\n    def __init__(self, x):\n        self.x = x\n    def __repr__(self):\n        return type(self).__name__",
    "gradients switched off": "torch.set_grad_enabled(False)\nx.requires_grad = False\nwith torch.autograd.no_grad():\n    y = x + 1",
    "many at a time": "y = torch.func.vmap(bowl)(x)\nfrom torch.func import vmap\nz = vmap(bowl)(x)",
    "a class that adds": "class V:\n    def __add__(self, other):\n        return other",
    "a path": "import os\ny = os.path.join('a', 'b')",
    "exponents": "import sys\ny = sys.float_info.eps",
    "no Python": "this is no Python",
    "a plot": "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\nplt.rcParams['font.size'] = 9\naxes.set(xlabel='x')",
}


@pytest.mark.parametrize("source", ALLOWED.values(), ids=ALLOWED)
def test_what_is_allowed_is_not_noticed(source):
    assert read(source, ["autograd", "sgmc.integrators"], given=GIVEN) == HONEST


SUSPICIOUS = {
    "eval": ("eval('1')", "eval"),
    "exec under another name": ("run = exec\nrun('1')", "exec"),
    "__import__": ("__import__('o' + 's')", "__import__"),
    "a computed name": (
        "getattr(torch, 'auto' + 'grad')",
        "getattr with a computed name",
    ),
    "sys.modules": ("import sys\nsys.modules", "sys.modules"),
    "a frame": ("import sys\nsys._getframe(1)", "sys._getframe"),
    "a frame of an exception": (
        "try:\n    1 / 0\nexcept Exception as e:\n    "
        "e.__traceback__.tb_frame.f_globals",
        "tb_frame",
    ),
    "gc": ("import gc\ngc.get_objects()", "gc.get_objects"),
    "ctypes": ("import ctypes", "ctypes"),
    "subprocess": ("from subprocess import run", "subprocess.run"),
    "a fork": ("import os\nos.fork()", "os.fork"),
    "a fork by import": ("from os import fork", "os.fork"),
    "the inputs": ("print(In)", "In"),
    "one input": ("print(In[-1])", "In"),
    "get_ipython": ("get_ipython().user_ns", "get_ipython"),
    "the shell": ("!ls /", "get_ipython"),
    "a magic that runs": ("%run other.py", "%run"),
    "a cell of the shell": ("%%bash\nls", "%bash"),
    "__torch_function__": (
        "class T:\n    @classmethod\n    def __torch_function__(cls, *a):\n        "
        "return 1",
        "__torch_function__",
    ),
    "a tensor that lies": (
        "class T(torch.Tensor):\n    pass",
        "subclass of torch.Tensor",
    ),
    "a number that lies": (
        "class N(float):\n    def __eq__(self, other):\n        return True",
        "__eq__",
    ),
    "a given name": ("def bowl(x):\n    return 0", "bowl"),
    "a check": ("from math import sin as fresh", "fresh"),
    "a patch": ("torch.Tensor.any = lambda self: False", "torch.Tensor.any is changed"),
    "a patch by name": ("setattr(torch, 'equal', None)", "setattr"),
    "processes": ("open('/proc/self/maps')", "/proc"),
    "sys through torch": ("torch.sys.exit()", "torch.sys"),
    "os through torch": ("torch.os.getppid()", "torch.os"),
    "sys through numpy": ("import numpy as np\nnp.core._internal.sys", "sys"),
    "subclasses": ("().__class__.__base__.__subclasses__()", "__subclasses__"),
    "subclasses by getattr": ("getattr(object, '__subclasses__')()", "__subclasses__"),
    "a type made": ("type('T', (), {})", "type with 3 arguments"),
    "the builtins": ("__builtins__", "__builtins__"),
    "a module handed on": ("import sgmc\nlook(sgmc)", "sgmc handed on"),
    "the globals": ("def f(x):\n    return globals()", "globals"),
    "in a lambda": ("f = lambda: eval('1')", "eval"),
    "in a comprehension": ("[eval(x) for x in 'ab']", "eval"),
    "awaited": ("await thing(eval)", "eval"),
    "a transformer of what is typed": (
        "get_ipython().input_transformers_post.append(print)",
        "get_ipython",
    ),
}


SUSPICIOUS |= {
    "the noticing switched off": ("import sys\nsys.setprofile(None)", "sys.setprofile"),
    "a trace": ("from sys import settrace\nsettrace(None)", "sys.settrace"),
    "code in an annotation": (
        "def f(x: \"__import__('sys').setprofile(None)\"):\n    pass",
        "sys.setprofile",
    ),
    "code after lines": ("\n\ndef f(x: \"eval('1')\"):\n    pass", "eval in line 3"),
    "annotations evaluated": (
        "import typing\ntyping.get_type_hints(f)",
        "typing.get_type_hints",
    ),
    "annotations evaluated by a decorator": (
        "from functools import singledispatch",
        "functools.singledispatch",
    ),
    "threads of a package": (
        "import joblib\njoblib.Parallel(prefer='threads')",
        "joblib",
    ),
    "threads of the library": (
        "from concurrent.futures import ThreadPoolExecutor",
        "concurrent.futures",
    ),
    "getattr handed on": (
        "import functools\nfunctools.partial(getattr, x)('back' + 'ward')()",
        "getattr handed on",
    ),
    "getattr with a star": ("getattr(*pair)", "getattr handed on"),
    "a getter": (
        "import operator\noperator.attrgetter('auto' + 'grad')(torch)",
        "operator.attrgetter",
    ),
    "a caller": ("from operator import methodcaller as m", "operator.methodcaller"),
    "a formatter": (
        "import string\nstring.Formatter().get_field('0.func', (torch,), {})",
        "string.Formatter",
    ),
    "a pattern": (
        "match torch:\n    case object(func=f):\n        pass",
        "attributes in a pattern",
    ),
    "pickles of numpy": (
        "import numpy as np\nnp.load('x', allow_pickle=True)",
        "numpy.load",
    ),
    "a timer of code": ("import timeit", "timeit"),
    "what is private": ("torch._dynamo.config", "private"),
    "compiled code": ("torch.utils.cpp_extension.load('x')", "torch.utils"),
}


@pytest.mark.parametrize(("source", "word"), SUSPICIOUS.values(), ids=SUSPICIOUS)
def test_what_deserves_a_second_look_is_remarked_and_costs_nothing(source, word):
    found = read(source, ["sgmc.integrators"], given=GIVEN)
    assert found.forbidden == [] and any(word in remark for remark in found.remarks), (
        found
    )


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("bowl(x).grad_fn(1)", ".grad_fn"),
        ("x.register_hook(print)", ".register_hook"),
        ("weight = torch.nn.Linear(1, 1).weight", "torch.nn.Linear"),
        ("torch.inference_mode(False)", "torch.inference_mode"),
        ("torch.zeros(1, **{'requires_grad': True})", "requires_grad in a text"),
    ],
)
def test_a_way_to_gradients_is_remarked_where_they_are_forbidden(source, word):
    found = read(source, ["autograd"], given=GIVEN)
    assert found.forbidden == [] and any(word in remark for remark in found.remarks), (
        found
    )
    assert read(source, ["sgmc.integrators"], given=GIVEN) == HONEST


ENDLESS = {
    "nested parentheses": "(" * 50_000,
    "nested lists in order": "[" * 90 + "]" * 90,
    "nested beyond order": "x = " + "[" * 5_000 + "]" * 5_000,
    "nested dictionaries in error": "{1:" * 60 + "@",
    "nested calls in error": "f(" * 60 + "$",
    "minus": "-" * 90_000 + "1",
    "not": "not " * 20_000 + "1",
    "lambda": "lambda: " * 12_000 + "1",
    "conditions": "x if x else " * 8_000 + "x",
    "attributes": "x" + ".y" * 45_000,
    "additions": "1" + "+1" * 45_000,
    "calls": "f" + "()" * 45_000,
    "indented": "".join(" " * depth + "if 1:\n" for depth in range(99))
    + " " * 99
    + "pass",
    "a huge number": "9" * 90_000,
    "huge": "x = 1\n" * 100_000,
    "an f-string": 'f"{' * 50 + '}"' * 50,
    "aliases in a circle": "a = b\nb = a\na.c\n",
    "aliases that double": "\n".join(
        f"a{i} = a{i + 1} if x else a{i + 1}" for i in range(60)
    )
    + "\na0.b",
    "null": "x = 1\0",
    "half a character": "x = '\ud800'",
    "a form feed": "\f\x1b x",
}


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS)
def test_a_reading_comes_to_its_end(source):
    found = read(source, ["autograd"], [source], GIVEN)
    assert found.forbidden == []


def test_what_cannot_be_read_is_remarked():
    assert "too long" in read(ENDLESS["huge"]).remarks[0]
    assert (
        "could not be read"
        in read(
            "torch.autograd.grad" + "()" * 45_000, ["autograd"], given=GIVEN
        ).remarks[0]
    )
    many = read("\n".join(f"import m{i}" for i in range(1_000))).remarks
    assert many[-2:] == [
        f"m{suspicions.REMARKS - 1} imported in line {suspicions.REMARKS}",
        f"and {1_000 - suspicions.REMARKS} things more",
    ]
    assert read("\n".join(["eval('1')"] * 9)).remarks == [
        "eval in lines 1, 2, 3, 4, 5, …"
    ]


HELPER, CALL = (
    "def h():\n    return torch.func.grad(bowl)",
    "def answer(x):\n    return h()(x)",
)


def test_a_helper_is_not_hidden_behind_long_cells():
    filler = "# " + "x" * 95_000
    found = read(CALL, ["autograd"], [filler] * 20 + [HELPER], GIVEN)
    assert found.forbidden and found.remarks == [
        "10 long cells were not read for what it uses of them"
    ]
    assert read(CALL, ["autograd"], [HELPER + filler * 2], GIVEN).remarks == [
        "1 long cells were not read for what it uses of them"
    ]


def test_what_is_found_in_a_cell_is_not_lost_in_others_that_cannot_be_read():
    killer = "torch" + "()" * 40_000
    found = read(
        "y = torch.func.grad(bowl)\n" + CALL, ["autograd"], ["h = " + killer], GIVEN
    )
    assert found.forbidden and found.remarks == [suspicions.UNFOLLOWED]


def test_following_takes_a_time_that_grows_as_the_cells():
    chain = [f"def h{i}(x):\n    return h{i + 1}(x)" for i in range(4_000)] + [
        "h4000 = torch.func.grad(bowl)"
    ]
    many = ", ".join(f"a{i}" for i in range(4_000))
    found = read(
        "def answer(x):\n    return h0(x)",
        ["autograd"],
        [*chain, f"{many} = {many}"],
        GIVEN,
    )
    assert found.forbidden and found.remarks == []


def cell(kind, name, source, forbidden=(), names=(), experiment=False):
    return SimpleNamespace(
        kind=kind,
        name=name,
        source=source,
        forbidden=forbidden,
        names=names,
        experiment=experiment,
    )


def test_an_experiment_costs_nothing_elsewhere():
    """It is not run with the tests, so that nothing of it can be in what they call."""
    mine, plot = (
        cell("answer", "a", "x = answer = None", ["sgmc"], ["answer"]),
        "from sgmc.integrators import leapfrog\nx = leapfrog(1)",
    )
    assert (
        suspicions.read_all(
            [mine, cell("answer", "plot", plot, experiment=True)], GIVEN
        )["a"].forbidden
        == []
    )
    assert (
        suspicions.read_all([mine, cell("answer", "plot", plot)], GIVEN)["a"].forbidden
        != []
    )


def test_answers_are_read_before_all_else_and_what_is_not_read_is_told(monkeypatch):
    cells = [
        *(cell("added", f"{i}", "0") for i in range(120)),
        cell("added", "h", HELPER),
        cell("answer", "a", CALL, ["autograd"], ["answer"]),
    ]
    every = suspicions.read_all(cells, GIVEN)
    assert next(iter(every)) == "a" and every["a"].forbidden and len(every) == 122
    # enough for the first one alone
    monkeypatch.setattr(suspicions, "ALL_SECONDS", 1e-9)
    some = suspicions.read_all(cells, GIVEN)
    assert list(some) == ["a", "0"] and some["a"].forbidden
    assert some["0"].remarks == [
        "121 cells from here on were not read, for those before took too long"
    ]
