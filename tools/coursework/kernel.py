"""Start the kernel that executes a submission: Jupyter's for Python, which sends no more of a cell's output than so much.

What is too much is cut where it is made, so that it fills neither memory nor a queue, and the cell that makes it is interrupted.
"""

import sys
import threading
from collections import Counter

from ipykernel.iostream import OutStream
from ipykernel.kernelapp import IPKernelApp
from jupyter_client.session import Session

OUTPUT = 2 * 2**20  # characters of one cell's output
ERROR = 10_000  # characters of one line of an error


def size(content) -> int:
    """Count the characters of a message."""
    if isinstance(content, dict):
        return sum(map(size, content.values()))
    if isinstance(content, list):
        return sum(map(size, content))
    return len(content) if isinstance(content, str) else 0


def cut(content, length: int):
    """Cut every text in a message to a length."""
    if isinstance(content, dict):
        return {key: cut(value, length) for key, value in content.items()}
    if isinstance(content, list):
        return [cut(value, length) for value in content]
    return content[:length] if isinstance(content, str) else content


def limit_output() -> None:
    """Limit what this process, which is to become a kernel, writes and displays."""
    sent = Counter()  # characters, by the request to execute a cell
    plain_write, plain_serialize = OutStream.write, Session.serialize

    def admit(request, content):
        """Cut what goes beyond the limit by more than one character, which tells the reader; interrupt a cell that then goes on."""
        room = max(0, OUTPUT + 1 - sent[request])
        sent[request] += size(content)
        if not room and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt("this cell printed too much")
        return cut(content, room)

    def write(stream, text):
        if not isinstance(text, str):
            return plain_write(stream, text)  # which says what is wrong
        plain_write(stream, admit(stream.parent_header.get("msg_id"), text))
        return len(text)

    def serialize(session, message, *arguments, **options):
        kind, content = message["header"]["msg_type"], message["content"]
        if kind in ("display_data", "update_display_data", "execute_result"):
            content = admit(message["parent_header"].get("msg_id"), content)
        elif kind in ("error", "execute_reply"):
            content = cut(content, ERROR)
        return plain_serialize(session, {**message, "content": content}, *arguments, **options)

    OutStream.write, Session.serialize = write, serialize


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file, in which a submission has nothing to look for
    limit_output()
    IPKernelApp.launch_instance()
