"""What crosses the border between the judge and a pupil: calls and values of a closed
grammar, as JSON and raw numbers.

Nothing that arrives is executed or imported. Both ends use this file; it is the judge's
that must not be deceived. A value is None, a truth value, a number, a text, a list, a
tuple, a dictionary whose keys are texts, a tensor or an array (which arrives as a plain
tensor, whatever class it was of), a generator (which arrives with its state, and whose
new state comes back), or a function (whose calls cross the border back). Anything else
that a pupil sends arrives as ``Opaque``."""

import json
import struct
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Generator, Tensor

# bytes of one message: of its JSON, and of its tensors
HEADER, BUFFERS = 16 * 2**20, 256 * 2**20
# of values within values, of calls within calls, and known at a time
DEPTH, CALLS, GENERATORS = 20, 20, 1000
# of what is said of an exception: its kind, its message and its trace
LENGTHS = (100, 2000, 4000)
# bytes of a generator's state; behind them is a number kept for the next draw, which
# does not cross
WORDS = 5016
# the number of PyTorch's own generator, whose state goes from the judge to the pupil,
# never back
GLOBAL = -1
NUMBERS = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 "
    "complex128"
)
DTYPES = {name: getattr(torch, name) for name in NUMBERS.split()}


class BorderError(Exception):
    """What arrived is not of the grammar or too large, or nothing arrives any more."""


class AnswerError(Exception):
    """A function beyond the border raised an exception."""

    def __init__(self, kind: str, message: str, trace: str):
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind, self.trace = kind, trace


class Opaque:
    """A value of another kind; all that is known of it is how it was shown."""

    def __init__(self, shown: str):
        self.shown = shown

    def __repr__(self):
        return self.shown


class Remote:
    """A function beyond the border."""

    def __init__(self, link: "Link", number: int):
        self.link, self.number = link, number

    def __call__(self, *arguments, **named):
        """Call it."""
        return self.link.call(self.number, *arguments, **named)


class Link:
    """One end of the border: it calls what is beyond, and meanwhile answers calls from
    there.

    Args:
        reader: where messages come from.
        writer: where they go to.
        functions: what can be called from beyond by a name.
        admit: says whether a generator may be put into a state, and puts it there.
        made: gives, for an object that is no value, the name of the given function and
            the arguments that made it, or None; or nothing.
        make: makes such an object again.
        describe: says of an exception its kind, its message and its trace.
    """

    def __init__(
        self,
        reader: BinaryIO,
        writer: BinaryIO,
        functions=None,
        *,
        admit=None,
        made=None,
        make=None,
        describe=None,
    ):
        self.reader, self.writer, self.named = reader, writer, functions or {}
        self.admit, self.made, self.make, self.describe = admit, made, make, describe
        self.judging = admit is not None
        self.functions: list[Callable] = []
        self.numbers: dict[int, int] = {}  # of a function, by its identity
        self.generators: dict[int, Generator] = {}
        self.states: dict[int, Tensor] = {}
        self.objects: dict[int, Any] = {}
        self.depth, self.serial = 0, 0
        self.crossing = False  # a message is on its way
        self.left = False

    # Messages

    def send(self, content: dict[str, Any]) -> None:
        """Send a message, with the states of all generators that have moved since the
        last one.
        """
        buffers: list[bytes] = []
        message = {key: self._encode(value, buffers) for key, value in content.items()}
        shared = {
            **self.generators,
            **(
                {GLOBAL: torch.default_generator}
                if self.judging and not self.depth
                else {}
            ),
        }
        message["generators"] = []
        for number, generator in shared.items():
            state = generator.get_state()[:WORDS]
            if number not in self.states or not torch.equal(state, self.states[number]):
                self.states[number] = state
                buffers.append(state.numpy().tobytes())
                message["generators"].append([number, len(buffers) - 1])
        message["sizes"] = [len(buffer) for buffer in buffers]
        header = json.dumps(message).encode()
        if len(header) > HEADER or sum(message["sizes"]) > BUFFERS:
            raise ValueError("what should cross the border is too large")
        self.crossing = True
        try:
            self.writer.write(
                struct.pack(">Q", len(header)) + header + b"".join(buffers)
            )
            self.writer.flush()
        except (OSError, ValueError):
            raise BorderError("nobody listens") from None
        finally:
            self.crossing = False

    def receive(self) -> dict[str, Any]:
        """Wait for a message."""
        self.crossing = True
        try:
            (length,) = struct.unpack(">Q", self._read(8, 8))
            message = json.loads(self._read(length, HEADER))
            sizes = message.pop("sizes")
            if (
                not all(type(size) is int and size >= 0 for size in sizes)
                or sum(sizes) > BUFFERS
            ):
                raise BorderError("too large")
            buffers = [self._read(size, BUFFERS) for size in sizes]
            for number, index in message.pop("generators"):
                self._move(
                    number, torch.frombuffer(_take(buffers, index), dtype=torch.uint8)
                )
            return {key: self._decode(value, buffers) for key, value in message.items()}
        except Exception as error:  # whatever is wrong with it
            self.reader.close()  # nothing that follows can be understood
            if isinstance(error, BorderError):
                raise
            raise BorderError(
                f"what arrived is no message ({type(error).__name__})"
            ) from None
        finally:
            self.crossing = False

    def _read(self, length: int, limit: int) -> bytes:
        if length > limit:
            raise BorderError("too large")
        data = self.reader.read(length)
        if len(data) < length:
            raise BorderError("it has ended")
        return data

    # Calls

    def call(self, function: int | str, *arguments, **named) -> Any:
        """Call a function beyond the border, by its name or its number.

        Raises:
            AnswerError: if it raises an exception.
            BorderError: if no answer comes that can be understood.
        """
        if not self.depth:
            self.generators.clear()
            self.states = {GLOBAL: self.states[GLOBAL]} if GLOBAL in self.states else {}
        self.serial += 1
        serial = self.serial
        self.send(
            {
                "call": function,
                "arguments": list(arguments),
                "named": named,
                "serial": serial,
            }
        )
        while True:
            message = self.receive()
            if "call" in message:
                self.answer(message)
            elif message.get("serial") != serial:
                self.reader.close()
                raise BorderError("an answer to another call")
            elif "raised" in message:
                said = message["raised"]
                if not isinstance(said, list) or [type(one) for one in said] != [
                    str,
                    str,
                    str,
                ]:
                    self.reader.close()
                    raise BorderError("no exception")
                raise AnswerError(
                    *(one[:length] for one, length in zip(said, LENGTHS, strict=True))
                )
            else:
                return message["value"]

    def answer(self, message: dict[str, Any]) -> None:
        """Answer a call from beyond."""
        self.depth += 1
        try:
            if self.depth > CALLS:
                raise RecursionError("too many calls within calls")
            function, named = message["call"], message.get("named", {})
            function = (
                self.named[function]
                if isinstance(function, str)
                else self.functions[function]
            )
            arguments = message.get("arguments", [])
            if self.judging and not all(
                _is_harmless(one) for one in (*arguments, *named.values())
            ):
                raise TypeError(
                    "a function of a test takes numbers, tensors, generators and "
                    "functions only"
                )
            reply = {"value": function(*arguments, **named)}
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
        except Exception as error:
            self.send(
                {
                    "raised": [type(error).__name__, str(error)[:1000], ""],
                    "serial": serial,
                }
            )

    def serve(self) -> None:
        """Answer calls until ``leave`` is one of them, or none come any more."""
        while not self.left:
            self.generators.clear()
            self.states.clear()
            self.answer(self.receive())

    def leave(self) -> None:
        """Let this be the last call that is answered."""
        self.left = True

    def forget(self) -> None:
        """Forget the functions that were sent."""
        self.functions, self.numbers = [], {}

    # Values

    def _encode(self, value, buffers: list[bytes], depth: int = 0):
        if depth > DEPTH:
            raise ValueError("values are nested too deeply")

        def inner(one):
            return self._encode(one, buffers, depth + 1)

        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.generic):
            return inner(value.item())
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return float(value)
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, list):
            return {"list": [inner(one) for one in value]}
        if isinstance(value, tuple):
            return {"tuple": [inner(one) for one in value]}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": {key: inner(one) for key, one in value.items()}}
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            value = torch.from_numpy(np.ascontiguousarray(value))
        if isinstance(value, Tensor) and (plain := _plain(value)) is not None:
            if plain.numel() * plain.element_size() > BUFFERS:
                raise ValueError("a tensor is too large to cross the border")
            raw = plain.contiguous().reshape(-1)
            buffers.append(raw.view(torch.uint8).numpy().tobytes() if len(raw) else b"")
            return {
                "tensor": [
                    len(buffers) - 1,
                    str(plain.dtype).removeprefix("torch."),
                    list(plain.shape),
                ]
            }
        if isinstance(value, Generator) and value.device.type == "cpu":
            number = next(
                (number for number, one in self.generators.items() if one is value),
                None,
            )
            if number is None:
                number = 2 * len(self.generators) + self.judging
                self.generators[number] = value
            return {"generator": number}
        if self.made and (recipe := self.made(value)) is not None:
            return {"made": [id(value), *(inner(part) for part in recipe)]}
        if isinstance(value, Remote):
            return {"yours": value.number}
        if callable(value):
            if id(value) not in self.numbers:
                self.numbers[id(value)] = len(self.functions)
                self.functions.append(value)
            return {"function": self.numbers[id(value)]}
        if self.judging:
            raise TypeError(
                f"a test passes {value!r:.80}, which cannot cross the border"
            )
        return {"opaque": f"{value!r:.80}"}

    def _decode(self, value, buffers: list[bytes], depth: int = 0):
        if depth > DEPTH:
            raise BorderError("values are nested too deeply")
        if isinstance(value, str):
            return value.encode("utf-8", "replace").decode()
        if not isinstance(value, dict):
            if value is None or isinstance(value, bool | int | float):
                return value
            raise BorderError("no value")
        [(kind, content)] = value.items()
        if kind == "complex":
            return complex(*map(float, content))
        if kind == "list":
            return [self._decode(one, buffers, depth + 1) for one in content]
        if kind == "tuple":
            return tuple(self._decode(one, buffers, depth + 1) for one in content)
        if kind == "dict":
            return {
                self._decode(key, buffers): self._decode(one, buffers, depth + 1)
                for key, one in content.items()
            }
        if kind == "tensor":
            index, name, shape = content
            return self._tensor(_take(buffers, index), DTYPES[name], shape)
        if kind == "generator":
            return self.generators[content]
        if kind == "yours":
            return self.functions[content]
        if kind == "function" and type(content) is int:
            return Remote(self, content)
        if kind == "made" and self.make:
            number, *recipe = content
            if number not in self.objects:
                self.objects[number] = self.make(
                    *(self._decode(part, buffers, depth + 1) for part in recipe)
                )
            return self.objects[number]
        if kind == "opaque":
            return Opaque(self._decode(content, buffers)[:80])
        raise BorderError("no value")

    def _tensor(self, data: bytearray, dtype: torch.dtype, shape: list[int]) -> Tensor:
        if not all(type(size) is int and size >= 0 for size in shape):
            raise BorderError("no shape")
        if 0 in shape and not data:
            return torch.empty(shape, dtype=dtype)
        raw = torch.frombuffer(data, dtype=torch.uint8)
        return (raw != 0 if dtype == torch.bool else raw.view(dtype)).reshape(shape)

    def _move(self, number: int, state: Tensor) -> None:
        if len(state) != WORDS or type(number) is not int or not _is_sound(state):
            raise BorderError("no state of a generator")
        if number == GLOBAL:
            generator = None if self.judging else torch.default_generator
        else:
            new = number not in self.generators
            if new and len(self.generators) >= GENERATORS:
                raise BorderError("too many generators")
            generator = self.generators.setdefault(number, Generator())
        if generator is None:
            return
        whole = torch.cat([state, generator.get_state()[WORDS:].zero_()])
        if self.judging and number % 2 and not new:
            self.admit(generator, whole)
        else:
            generator.set_state(whole)
        self.states[number] = generator.get_state()[:WORDS]


def _take(buffers: list[bytes | None], index: int) -> bytearray:
    """Take a buffer, which belongs to one value only: so values are never larger than
    the message that brings them.
    """
    if type(index) is not int or index < 0 or (data := buffers[index]) is None:
        raise BorderError("no numbers")
    buffers[index] = None
    return bytearray(data)


def _is_sound(state: Tensor) -> bool:
    """Say whether PyTorch could have made a generator's state: it counts the numbers
    that are left, and those that were given out.
    """
    left, seeded, given = (
        int(state[8:12].view(torch.int32)),
        int(state[12:16].view(torch.int32)),
        int(state[16:24].view(torch.int64)),
    )
    return seeded == 1 and (
        (left, given) == (1, 0) or (1 <= left <= 624 and left + given == 625)
    )


def _is_harmless(value) -> bool:
    """Say whether what a test computes from a value is of about its size."""
    return (
        value is None
        or isinstance(value, bool | int | float | complex | Tensor | Generator)
        or callable(value)
    )


def _plain(value: Tensor) -> Tensor | None:
    """Make of any tensor a plain one on the processor; None if that is not possible."""
    with torch._C.DisableTorchFunctionSubclass():
        if str(value.dtype).removeprefix("torch.") not in DTYPES:
            return None
        dense = (
            value.detach()
            if value.layout == torch.strided
            else value.detach().to_dense()
        )
        return dense.cpu().resolve_conj().resolve_neg()
