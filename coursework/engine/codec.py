"""Carry calls and values between the judge and a pupil, as one JSON text a message.

Nothing that arrives is executed or imported. A value is None, a truth value, a number,
a text, a list, a tuple, a dictionary with texts as keys, a tensor or an array (which
arrives as a plain tensor, whatever class it had), a generator (whose state
crosses both ways), or a function (which stays where it is and is called from
beyond). Anything else that a pupil sends arrives as ``Opaque``."""

import base64
import functools
import json
import struct
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

MESSAGE = 64 * 2**20  # bytes of one message
DEPTH = 20  # values within values, and calls within calls
LENGTHS = (100, 2000, 4000)  # characters of an exception's kind, message and trace
# Bytes of a generator's state; a number kept for the next draw follows and does not
# cross.
WORDS = 5016
# Stands for PyTorch's own generator, whose state goes to the pupil and never back.
GLOBAL, GENERATORS = -1, 1_000  # and how many there may be at a time
DTYPES = {
    name: getattr(torch, name)
    for name in "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 "
    "complex64 complex128".split()
}


class BorderError(Exception):
    """What arrived is no message, or nothing arrives any more."""


class AnswerError(Exception):
    """A function beyond the border raised an exception."""

    def __init__(self, kind: str, message: str, trace: str):
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind, self.trace = kind, trace


class Opaque:
    """A value that cannot cross; only the way it prints is known."""

    def __init__(self, shown: str):
        self.shown = shown

    def __repr__(self):
        return self.shown


class Remote:
    """A function beyond the border."""

    def __init__(self, link: "Link", number: int):
        self.link, self.number = link, number

    def __call__(self, *arguments, **named):
        """Call it; within ``torch.vmap`` once for each of the rows."""
        call = functools.partial(self.link.call, self.number, **named)
        tensors = [one for one in arguments if isinstance(one, Tensor)]
        is_mapped = any(map(torch._C._functorch.is_batchedtensor, tensors))
        return Rows.apply(call, *arguments) if is_mapped else call(*arguments)


class Rows(torch.autograd.Function):
    """A call from within ``torch.vmap``, of which no derivative is known."""

    @staticmethod
    def forward(call, *arguments):
        """Call it."""
        return call(*arguments)

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep nothing."""

    @staticmethod
    def vmap(info, dims, call, *arguments):
        """Call it for one row after the other."""
        found = []
        for row in range(info.batch_size):
            pairs = zip(arguments, dims[1:], strict=True)
            own = (one if at is None else one.select(at, row) for one, at in pairs)
            found.append(Rows.apply(call, *own))
        if isinstance(found[0], tuple | list):
            parts = tuple(map(torch.stack, zip(*found, strict=True)))
            return parts, (0,) * len(parts)
        return torch.stack(found), 0


class Link:
    """One end of the border: it calls functions beyond, and meanwhile answers calls.

    Args:
        stream: a binary file to read from and to write to.
        functions: what may be called from beyond by name.
        admit: at the judge's end, accepts or refuses a generator's new state.
        made: gives the name and the arguments with which a given function made an
            object that is no value, or None.
        make: makes such an object again.
        describe: gives an exception's kind, message and trace.
    """

    def __init__(
        self, stream, functions=None, *, admit=None, made=None, make=None, describe=None
    ):
        self.stream, self.named, self.admit = stream, functions or {}, admit
        self.made, self.make, self.describe = made, make, describe
        self.judging = admit is not None
        self.functions: list[Any] = []
        self.generators: dict[int, Generator] = {}
        self.states: dict[int, Tensor] = {}
        self.objects: dict[int, Any] = {}
        self.depth = self.serial = 0

    def send(self, content: dict[str, Any]) -> None:
        """Send a message, with the states of generators that have moved since."""
        message = {key: self._encode(value) for key, value in content.items()}
        shared = dict(self.generators)
        if self.judging and not self.depth:
            shared[GLOBAL] = torch.default_generator
        message["generators"] = []
        for number, generator in shared.items():
            state = generator.get_state()[:WORDS]
            if number not in self.states or not torch.equal(state, self.states[number]):
                self.states[number] = state
                message["generators"].append([number, _text(state)])
        body = json.dumps(message).encode()
        if len(body) > MESSAGE:
            raise ValueError("it is too large to be sent")
        try:
            self.stream.write(struct.pack(">Q", len(body)) + body)
            self.stream.flush()
        except (OSError, ValueError):
            raise BorderError("nobody listens") from None

    def receive(self) -> dict[str, Any]:
        """Wait for a message; one that cannot be understood ends the link."""
        try:
            (length,) = struct.unpack(">Q", self.stream.read(8))
            if length > MESSAGE:
                raise BorderError("too large")
            message = json.loads(self.stream.read(length))
            for number, state in message.pop("generators"):
                self._move(number, _bytes(state))
            return {key: self._decode(value) for key, value in message.items()}
        except Exception as error:  # whatever is wrong with it
            self._end()  # nothing that follows can be understood
            raise BorderError(f"no message ({type(error).__name__})") from None

    def call(self, function: int | str, *arguments, **named) -> Any:
        """Call a function beyond the border.

        Raises:
            AnswerError: if it raises an exception.
            BorderError: if no answer comes that can be understood.
        """
        if not self.depth:
            self.generators.clear()
            self.states = {k: v for k, v in self.states.items() if k == GLOBAL}
        self.serial += 1
        serial = self.serial
        call = {"call": function, "arguments": list(arguments), "named": named}
        self.send({**call, "serial": serial})
        while "call" in (message := self.receive()):
            self.answer(message)
        said = message.get("raised") if message.get("serial") == serial else None
        if message.get("serial") == serial and "value" in message:
            return message["value"]
        if isinstance(said, list) and [*map(type, said)] == [str, str, str]:
            cut = (one[:length] for one, length in zip(said, LENGTHS, strict=True))
            raise AnswerError(*cut)
        self._end()
        raise BorderError("no answer to this call")

    def answer(self, message: dict[str, Any]) -> None:
        """Answer a call from beyond."""
        self.depth += 1
        try:
            if self.depth > DEPTH:
                raise RecursionError("too many calls within calls")
            function, arguments = message["call"], message["arguments"]
            values = [*arguments, *message["named"].values()]
            if self.judging and not all(map(_is_harmless, values)):
                raise TypeError(
                    "a function of a test takes numbers, tensors, generators and "
                    "functions only"
                )
            known = self.named if isinstance(function, str) else self.functions
            reply = {"value": known[function](*arguments, **message["named"])}
        except BorderError:
            raise
        except BaseException as error:
            reply = {"raised": list(self.describe(error))}
        finally:
            self.depth -= 1
        serial = message.get("serial")
        try:
            self.send({**reply, "serial": serial})
        except BorderError:
            raise
        except Exception as error:  # the value cannot be sent
            said = [type(error).__name__, str(error)[:1000], ""]
            self.send({"raised": said, "serial": serial})

    def serve(self) -> None:
        """Answer calls until none come any more."""
        while True:
            self.generators.clear()
            self.states.clear()
            self.answer(self.receive())

    def _end(self) -> None:
        with suppress(OSError):  # what it could not write
            self.stream.close()

    def forget(self) -> None:
        """Forget the functions that were sent."""
        self.functions = []

    def _encode(self, value, depth: int = 0):
        def inner(one):
            return self._encode(one, depth + 1)

        if depth > DEPTH:
            raise ValueError("values are nested too deeply")
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int | float):
            return int(value) if isinstance(value, int) else float(value)
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, list | tuple):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [inner(one) for one in value]}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": {key: inner(one) for key, one in value.items()}}
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            value = torch.from_numpy(np.ascontiguousarray(value))
        if isinstance(value, Tensor) and (plain := _plain(value)) is not None:
            name = str(plain.dtype).removeprefix("torch.")
            raw = torch.empty(plain.numel(), dtype=plain.dtype)
            raw.copy_(plain.reshape(-1))
            text = _text(raw.view(torch.uint8)) if len(raw) else ""
            return {"tensor": [name, list(plain.shape), text]}
        if isinstance(value, Generator):
            known = [n for n, one in self.generators.items() if one is value]
            number = known[0] if known else 2 * len(self.generators) + self.judging
            self.generators[number] = value
            return {"generator": number}
        if self.made and (recipe := self.made(value)) is not None:
            return {"made": [id(value), *map(inner, recipe)]}
        if isinstance(value, Remote):
            return {"yours": value.number}
        if callable(value):
            self.functions.append(value)
            return {"function": len(self.functions) - 1}
        if self.judging:
            raise TypeError(f"a test passes {value!r:.80}, which cannot cross")
        return {"opaque": f"{value!r:.80}"}

    def _decode(self, value, depth: int = 0):
        def inner(one):
            return self._decode(one, depth + 1)

        if depth > DEPTH:
            raise BorderError("values are nested too deeply")
        if isinstance(value, str):
            return value.encode("utf-8", "replace").decode()
        if value is None or isinstance(value, bool | int | float):
            return value
        [(kind, content)] = value.items()
        if kind == "complex":
            return complex(*map(float, content))
        if kind in ("list", "tuple"):
            return {"list": list, "tuple": tuple}[kind](inner(one) for one in content)
        if kind == "dict":
            return {inner(key): inner(one) for key, one in content.items()}
        if kind == "tensor":
            name, shape, text = content
            raw, dtype = _bytes(text), DTYPES[name]
            if not len(raw):
                raw = torch.empty(0, dtype=torch.uint8)
            return (raw != 0 if dtype == torch.bool else raw.view(dtype)).reshape(shape)
        if kind == "generator":
            return self.generators[content]
        if kind == "yours":
            return self.functions[content]
        if kind == "function" and type(content) is int:
            return Remote(self, content)
        if kind == "made" and self.make:
            number, *recipe = content
            if number not in self.objects:
                self.objects[number] = self.make(*map(inner, recipe))
            return self.objects[number]
        if kind == "opaque":
            return Opaque(inner(content)[:80])
        raise BorderError("no value")

    def _move(self, number: int, state: Tensor) -> None:
        left = int(state[8:12].view(torch.int32))
        if len(state) != WORDS or not 1 <= left <= 624:
            raise BorderError("no state of a generator")
        if self.judging and number % 2:  # one of the judge's own
            self.admit(self.generators[number], state)
            return
        own = torch.default_generator
        if number != GLOBAL or self.judging:
            if len(self.generators) >= GENERATORS:
                raise BorderError("too many generators")
            own = self.generators.setdefault(number, Generator())
        # PyTorch reads beyond the numbers if what it has given out is not what is left
        state[12:24] = torch.tensor([1, 625 - left, 0], dtype=torch.int32).view(
            torch.uint8
        )
        own.set_state(torch.cat([state, own.get_state()[WORDS:].zero_()]))
        self.states[number] = state


def _text(raw: Tensor) -> str:
    return base64.b64encode(raw.numpy().tobytes()).decode()


def _bytes(text: str) -> Tensor:
    data = bytearray(base64.b64decode(text, validate=True))
    return torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0)


def _is_harmless(value) -> bool:
    """Tell whether what a test computes from a value is of about its size."""
    kinds = bool | int | float | complex | Tensor | Generator
    return value is None or isinstance(value, kinds) or callable(value)


def _plain(value: Tensor) -> Tensor | None:
    """Make any tensor a plain one on the processor; None if that is impossible."""
    with torch._C.DisableTorchFunctionSubclass():
        if str(value.dtype).removeprefix("torch.") not in DTYPES:
            return None
        value = value.detach()
        dense = value if value.layout == torch.strided else value.to_dense()
        return dense.cpu().resolve_conj().resolve_neg()
