"""What crosses the border between judge and pupil: values arrive as they are, or as
something plain; what is no message ends the link.
"""

import io
import json
import math
import struct

import numpy as np
import pytest
import torch

from coursework.engine import codec
from coursework.engine.codec import AnswerError, BorderError, Link, Opaque, Remote
from coursework.engine.judge import reached


class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return "a lie"


def cross(value, to_judge=True):
    """Send a value over a border, and give what arrives."""
    pipe, judge = io.BytesIO(), {"admit": reached}
    Link(pipe, **({} if to_judge else judge)).send({"value": value})
    pipe.seek(0)
    return Link(pipe, **(judge if to_judge else {})).receive()["value"]


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 3, -(2**70), 2.5, 1e-310, "text é \n", 1 + 2j),
        *([1, [2.0, "x"]], (), (1, (2,)), {"a": [None], "list": {}}, {"tensor": 1}),
    ],
    ids=repr,
)
@pytest.mark.parametrize("to_judge", [True, False])
def test_plain_values_arrive_as_they_are(value, to_judge):
    arrived = cross(value, to_judge)
    assert arrived == value and type(arrived) is type(value)


def test_numbers_that_json_does_not_know_arrive():
    first, second, third = cross([math.inf, -math.inf, math.nan])
    assert (first, second) == (math.inf, -math.inf) and math.isnan(third)


@pytest.mark.parametrize("dtype", codec.DTYPES.values(), ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_tensors_arrive_bit_for_bit(dtype, shape):
    generator = torch.Generator().manual_seed(1)
    tensor = torch.randint(0, 2, shape, generator=generator).to(dtype)
    arrived = cross(tensor)
    assert torch.equal(arrived, tensor)
    assert arrived.dtype == dtype and arrived.shape == tensor.shape


def test_a_tensor_arrives_plain_whatever_it_was():
    odd = torch.arange(6.0).reshape(2, 3)
    tracked = odd.clone().requires_grad_()
    for tensor in (tracked, odd.to_sparse(), torch.nn.Parameter(odd)):
        arrived = cross(tensor)
        assert type(arrived) is torch.Tensor and not arrived.requires_grad
        assert torch.equal(arrived, odd)
    assert torch.equal(cross(odd.as_subclass(Liar)), odd)
    assert torch.equal(cross(odd.T), odd.T)
    array = np.arange(4).reshape(2, 2)[:, ::-1]
    assert torch.equal(cross(array), torch.tensor([[1, 0], [3, 2]]))
    assert cross(np.float64(0.5)) == 0.5 and cross(np.bool_(True)) is True


def test_what_is_no_value_arrives_opaque_and_a_test_must_not_send_it():
    arrived = cross({1, 2})
    assert type(arrived) is Opaque and repr(arrived) == "{1, 2}"
    with pytest.raises(TypeError, match="which cannot cross"):
        cross({1, 2}, to_judge=False)
    assert type(cross(print)) is Remote and cross("\ud800") == "?"


def framed(text):
    return struct.pack(">Q", len(text)) + text.encode()


def frame(generators=(), **content):
    """Make a message as a pupil may forge it."""
    return framed(json.dumps({"generators": list(generators), **content}))


class Stream(io.BytesIO):
    """Reads what was sent, and loses what is written."""

    def write(self, data):
        return len(data)


def judge_that_reads(*messages, **settings):
    return Link(Stream(b"".join(messages)), admit=reached, **settings)


SEEDED = torch.Generator().manual_seed(0).get_state()[: codec.WORDS]
STATE = codec._text(SEEDED)


def with_left(left):
    """Make a generator's state that says so of itself."""
    forged = SEEDED.clone()
    forged[8:12] = torch.tensor([left], dtype=torch.int32).view(torch.uint8)
    return codec._text(forged)


@pytest.mark.parametrize(
    "message",
    [
        *(b"", b"\0\0\0", struct.pack(">Q", 2**60), struct.pack(">Q", 3) + b"abc"),
        *map(framed, ("[]", "3", "{}", '{"value": ' + "[" * 10**5 + "]" * 10**5)),
        framed('{"value": ' + "9" * 10_000 + ', "generators": []}'),
        framed('{"value": ' + '{"list": [' * 50 + "]}" * 50 + ', "generators": []}'),
        frame(value={"tensor": ["float32", [9], ""]}),
        frame(value={"tensor": ["object", [0], ""]}),
        frame(value={"tensor": ["float32", [2], "AAA"]}),
        frame(value={"made": [1, "f"]}),
        frame(value={"generator": 1}),
        frame(value={"function": "f"}),
        frame(value={"yours": 0}),
        frame(value={"list": [1], "tuple": [1]}),
        frame(value=[1]),
        frame([[1, STATE]]),  # the judge sent no generator
        frame([[0, "AAAA"]]),
        *(frame([[0, with_left(left)]]) for left in (0, -1, 625)),
        frame([[2 * number, STATE] for number in range(codec.GENERATORS + 1)]),
    ],
    ids=lambda message: repr(message[8:60]),
)
def test_what_is_no_message_ends_the_link(message):
    link = judge_that_reads(message)
    for _ in range(2):
        with pytest.raises(BorderError):
            link.receive()


def test_the_control_a_pupils_own_generators_arrive():
    link = judge_that_reads(
        frame([[0, STATE], [2, with_left(9)]], value={"generator": 0})
    )
    arrived = link.receive()["value"]
    expected = torch.rand(5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(torch.rand(5, generator=arrived), expected)
    torch.rand(10**4, generator=link.generators[2])  # reads nothing beyond its numbers


def moved(draw):
    """Let a generator with a seed cross to a pupil, which draws; say where it is
    afterwards, and whether the judge believes it.
    """
    generator, beyond = torch.Generator().manual_seed(5), torch.Generator()
    torch.rand(3, generator=generator)
    beyond.set_state(generator.get_state())
    draw(beyond)
    state = beyond.get_state()[: codec.WORDS]
    return reached(generator, state), generator, beyond


@pytest.mark.parametrize("number", [0, 1, 619, 620, 621, 622, 10_000, 10**6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_generator_that_drew_goes_on_from_there(number, dtype):
    believed, generator, beyond = moved(
        lambda beyond: torch.rand(number, generator=beyond, dtype=dtype)
    )
    assert believed
    ours, theirs = (torch.rand(9, generator=one) for one in (generator, beyond))
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    "draw",
    [
        lambda beyond: beyond.manual_seed(5),
        lambda beyond: beyond.manual_seed(6),
        lambda beyond: beyond.set_state(torch.Generator().manual_seed(0).get_state()),
    ],
)
def test_a_generator_that_was_set_is_not_believed(draw):
    believed, generator, _ = moved(draw)
    expected = torch.Generator().manual_seed(5)
    torch.rand(3, generator=expected)
    assert not believed and torch.equal(generator.get_state(), expected.get_state())


def test_a_generator_whose_numbers_are_given_out_again_is_not_believed():
    generator = torch.Generator().manual_seed(3)
    torch.rand(10, generator=generator)
    before = generator.get_state()[: codec.WORDS]
    torch.rand(5, generator=generator)
    assert not reached(generator, before)


@pytest.mark.parametrize("said", [5, "abc", {"list": []}, {"list": ["a", "b", 3]}])
def test_an_exception_that_is_none_ends_the_link(said):
    with pytest.raises(BorderError, match="no answer to this call"):
        judge_that_reads(frame(raised=said, serial=1)).call("f")


def test_an_answer_to_another_call_ends_the_link():
    with pytest.raises(BorderError, match="no answer to this call"):
        judge_that_reads(frame(value=1, serial=0)).call("f")


def test_what_an_exception_says_is_cut():
    said = frame(raised={"list": ["x" * 10**6] * 3}, serial=1)
    with pytest.raises(AnswerError) as raised:
        judge_that_reads(said).call("f")
    lengths = len(raised.value.kind), len(str(raised.value)), len(raised.value.trace)
    assert lengths == (100, 2102, 4000)


@pytest.mark.parametrize("value", ["x" * 1000, {"list": [1]}, {"dict": {"a": 1}}])
def test_a_test_s_function_is_not_called_with_what_grows(value):
    called, nothing = [], {"dict": {}}
    call = frame(call=0, arguments={"list": [value]}, named=nothing, serial=1)
    answered = frame(value=1, serial=1)
    link = judge_that_reads(call, answered, describe=lambda error: ("", "", ""))
    assert link.call("f", called.append) == 1 and called == []
