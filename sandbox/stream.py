"""Whole messages with descriptors over a stream socket: macOS has no SOCK_SEQPACKET between processes.

Each message is four bytes of length and a body, sent at once; its descriptors travel with its first byte (unix(7)).
"""

import os
import socket
import struct
from collections.abc import Sequence

_LENGTH = struct.Struct(">I")
MOST_DESCRIPTORS = 3


class Stream:
    """Send and receive messages; both ends are ours."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def fileno(self) -> int:
        """Give the socket's descriptor."""
        return self._channel.fileno()

    def send(self, body: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send one message; OSError when the other end is gone."""
        data = memoryview(_LENGTH.pack(len(body)) + body)
        sent = socket.send_fds(self._channel, [data], list(descriptors)) if descriptors else 0
        if sent < len(data):
            self._channel.sendall(data[sent:])

    def receive(self) -> tuple[bytes, list[int]] | None:
        """Return the next message and its descriptors, `None` when the other end has hung up."""
        head, descriptors, _, _ = socket.recv_fds(self._channel, _LENGTH.size, MOST_DESCRIPTORS)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        head += self._read(_LENGTH.size - len(head)) if head else b""
        if len(head) < _LENGTH.size:
            return None
        return self._read(_LENGTH.unpack(head)[0]), list(descriptors)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._channel.recv(size - len(data))
            if not more:
                raise ConnectionResetError("the other end hung up within a message")
            data += more
        return data
