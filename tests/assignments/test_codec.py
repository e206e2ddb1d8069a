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

from tools.coursework import codec
from tools.coursework.codec import BorderError, Link, Opaque, Remote
from tools.coursework.judge import reached


class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return "a lie"


def cross(value, to_judge=True):
    """Send a value over a border, and give what arrives."""
    pipe = io.BytesIO()
    judge, pupil = ({"admit": reached}, {}) if to_judge else ({}, {"admit": reached})
    Link(None, pipe, **pupil).send({"value": value})
    pipe.seek(0)
    return Link(pipe, None, **judge).receive()["value"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        -(2**70),
        2.5,
        1e-310,
        "text é \n",
        1 + 2j,
        [1, [2.0, "x"]],
        (),
        (1, (2,)),
        {"a": [None], "list": {}},
        {"tensor": 1},
    ],
    ids=repr,
)
@pytest.mark.parametrize("to_judge", [True, False])
def test_plain_values_arrive_as_they_are(value, to_judge):
    arrived = cross(value, to_judge)
    assert arrived == value and type(arrived) is type(value)


def test_numbers_that_json_does_not_know_arrive():
    assert cross([math.inf, -math.inf])[:2] == [math.inf, -math.inf] and math.isnan(
        cross(math.nan)
    )


@pytest.mark.parametrize("dtype", codec.DTYPES.values(), ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_tensors_arrive_bit_for_bit(dtype, shape):
    tensor = torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(1)).to(
        dtype
    )
    arrived = cross(tensor)
    assert (
        torch.equal(arrived, tensor)
        and arrived.dtype == dtype
        and arrived.shape == tensor.shape
    )


def test_a_tensor_arrives_plain_whatever_it_was():
    odd = torch.arange(6.0).reshape(2, 3)
    for tensor in (
        odd.T,
        odd.requires_grad_(),
        odd.detach().to_sparse(),
        torch.nn.Parameter(odd.detach()),
        odd.detach().as_subclass(Liar),
    ):
        arrived = cross(tensor)
        assert type(arrived) is torch.Tensor and not arrived.requires_grad
        assert torch.equal(
            arrived, odd.detach().T if tensor.shape == (3, 2) else odd.detach()
        )
    assert torch.equal(
        cross(np.arange(4).reshape(2, 2)[:, ::-1]), torch.tensor([[1, 0], [3, 2]])
    )
    assert cross(np.float64(0.5)) == 0.5 and cross(np.bool_(True)) is True


def test_a_truth_value_is_true_or_false_whatever_its_byte():
    header = json.dumps(
        {"value": {"tensor": [0, "bool", [2]]}, "generators": [], "sizes": [2]}
    ).encode()
    pipe = io.BytesIO(struct.pack(">Q", len(header)) + header + bytes([2, 0]))
    assert Link(pipe, None, admit=reached).receive()["value"].tolist() == [True, False]


def test_what_is_no_value_arrives_opaque_and_a_test_must_not_send_it():
    arrived = cross({1, 2})
    assert type(arrived) is Opaque and repr(arrived) == "{1, 2}"
    with pytest.raises(TypeError, match="which cannot cross the border"):
        cross({1, 2}, to_judge=False)
    assert type(cross(print)) is Remote and cross("\ud800") == "?"


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0\0\0",
        struct.pack(">Q", 2**60),
        struct.pack(">Q", 3) + b"abc",
        *(
            struct.pack(">Q", len(text)) + text.encode()
            for text in (
                "[]",
                "3",
                "{}",
                '{"generators": [], "sizes": [-1]}',
                '{"generators": [], "sizes": [1e9]}',
                '{"generators": [], "sizes": [99999999999]}',
                '{"generators": [[0, 0]], "sizes": []}',
                '{"value": {"tensor": [0, "float32", [9]]}, "generators": [], '
                '"sizes": [0]}',
                '{"value": {"tensor": [0, "object", [0]]}, "generators": [], "sizes": '
                "[0]}",
                '{"value": {"tensor": [0, "float32", [-1, 0]]}, "generators": [], '
                '"sizes": [0]}',
                '{"value": {"made": [1, "f"]}, "generators": [], "sizes": []}',
                '{"value": {"generator": 1}, "generators": [], "sizes": []}',
                '{"value": {"function": "f"}, "generators": [], "sizes": []}',
                '{"value": {"yours": 0}, "generators": [], "sizes": []}',
                '{"value": {"list": [1], "tuple": [1]}, "generators": [], "sizes": []}',
                '{"value": [1], "generators": [], "sizes": []}',
                '{"value": '
                + '{"list": [' * 50
                + "]}" * 50
                + ', "generators": [], "sizes": []}',
                '{"value": ' + "[" * 100_000 + "]" * 100_000 + "}",
                '{"value": ' + "9" * 10_000 + ', "generators": [], "sizes": []}',
            )
        ),
    ],
    ids=lambda message: repr(message[8:60]),
)
def test_what_is_no_message_ends_the_link(message):
    link = Link(io.BytesIO(message), None, admit=reached)
    for _ in range(2):
        with pytest.raises(BorderError):
            link.receive()


def moved(draw):
    """Let a generator with a seed cross to a pupil, which draws; say where it is
    afterwards, and whether the judge believes it.
    """
    generator = torch.Generator().manual_seed(5)
    torch.rand(3, generator=generator)
    beyond = torch.Generator()
    beyond.set_state(generator.get_state())
    draw(beyond)
    state = beyond.get_state()
    state[codec.WORDS :] = 0
    return reached(generator, state), generator, beyond


@pytest.mark.parametrize("number", [0, 1, 619, 620, 621, 622, 10_000, 10**6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_generator_that_drew_goes_on_from_there(number, dtype):
    believed, generator, beyond = moved(
        lambda beyond: torch.rand(number, generator=beyond, dtype=dtype)
    )
    assert believed and torch.equal(
        torch.rand(9, generator=generator), torch.rand(9, generator=beyond)
    )


@pytest.mark.parametrize(
    "draw",
    [
        lambda beyond: beyond.manual_seed(5),
        lambda beyond: beyond.manual_seed(6),
        lambda beyond: beyond.set_state(torch.Generator().manual_seed(0).get_state()),
        lambda beyond: beyond.set_state(
            torch.cat([beyond.get_state()[:24], torch.zeros(5032, dtype=torch.uint8)])
        ),
    ],
)
def test_a_generator_that_was_set_is_not_believed(draw):
    believed, generator, _ = moved(draw)
    expected = torch.Generator().manual_seed(5)
    torch.rand(3, generator=expected)
    assert not believed and torch.equal(generator.get_state(), expected.get_state())


def frame(content, buffers=()):
    """Make a message as a pupil may forge it."""
    header = json.dumps(
        {"generators": [], **content, "sizes": [len(one) for one in buffers]}
    ).encode()
    return struct.pack(">Q", len(header)) + header + b"".join(buffers)


STATE = torch.Generator().manual_seed(0).get_state()[: codec.WORDS].numpy().tobytes()


def with_counts(left, given, seeded=1):
    """Make a generator's state that says so of itself."""
    return STATE[:8] + struct.pack("<iiq", left, seeded, given) + STATE[24:]


@pytest.mark.parametrize(
    "message",
    [
        frame({"generators": [[0, 0], [2, 0]]}, [STATE]),
        frame(
            {"generators": [[2 * k, k] for k in range(codec.GENERATORS + 1)]},
            [STATE] * (codec.GENERATORS + 1),
        ),
        frame({"value": {"list": [{"tensor": [0, "uint8", [9]]}] * 2}}, [bytes(9)]),
        frame({"value": {"tensor": [-1, "uint8", [9]]}}, [bytes(9)]),
        *(
            frame({"generators": [[0, 0]]}, [with_counts(*counts)])
            for counts in ((624, 624), (1, 625), (5, 0), (0, 625), (-1, 626), (1, 0, 0))
        ),
    ],
    ids=[
        "one state twice",
        "many generators",
        "one tensor twice",
        "from the end",
        *["counts"] * 6,
    ],
)
def test_a_value_is_not_larger_than_its_message_and_a_state_is_one_that_torch_makes(
    message,
):
    with pytest.raises(BorderError):
        Link(io.BytesIO(message), None, admit=reached).receive()


def test_the_control_messages_with_each_buffer_used_once_arrive():
    Link(
        io.BytesIO(
            frame({"generators": [[0, 0], [2, 1]]}, [STATE, with_counts(9, 616)])
        ),
        None,
        admit=reached,
    ).receive()


@pytest.mark.parametrize("said", [5, "abc", {"list": []}, {"list": ["a", "b", 3]}])
def test_an_exception_that_is_none_ends_the_link(said):
    link = Link(
        io.BytesIO(frame({"raised": said, "serial": 1})), io.BytesIO(), admit=reached
    )
    with pytest.raises(BorderError, match="no exception"):
        link.call("f")


def test_what_an_exception_says_is_cut():
    message = frame({"raised": {"list": ["x" * 10**6] * 3}, "serial": 1})
    with pytest.raises(codec.AnswerError) as raised:
        Link(io.BytesIO(message), io.BytesIO(), admit=reached).call("f")
    assert (
        len(raised.value.kind),
        len(str(raised.value)),
        len(raised.value.trace),
    ) == (100, 2102, 4000)


@pytest.mark.parametrize("value", ["x" * 1000, {"list": [1]}, {"dict": {"a": 1}}])
def test_a_test_s_function_is_not_called_with_what_grows(value):
    called = []
    call = frame(
        {"call": 0, "arguments": {"list": [value]}, "named": {"dict": {}}, "serial": 1}
    )
    link = Link(
        io.BytesIO(call + frame({"value": 1, "serial": 1})),
        io.BytesIO(),
        admit=reached,
        describe=lambda error: ("", "", ""),
    )
    assert link.call("f", called.append) == 1 and called == []


def test_a_generator_whose_numbers_are_given_out_again_is_not_believed():
    generator = torch.Generator().manual_seed(3)
    torch.rand(10, generator=generator)
    before = generator.get_state()
    torch.rand(5, generator=generator)
    forged = torch.cat(
        [generator.get_state()[:16], before[16:24], before[24 : codec.WORDS]]
    )
    link = Link(
        io.BytesIO(frame({"generators": [[1, 0]]}, [forged.numpy().tobytes()])),
        None,
        admit=reached,
    )
    link.generators[1] = generator
    with pytest.raises(BorderError):
        link.receive()
