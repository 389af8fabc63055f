"""Frames between the host and a worker: four bytes of length, one byte of kind, a body.

    host → worker   JOB    JSON: handler key, arguments, context, caps
                    VALUE  pickled arguments, only after a JOB that says so (host to worker only, never back)
    worker → host   PROGRESS  JSON, at most 1 KiB each, any number within the budget
                    REPLY     JSON, exactly one; the first complete one wins

Everything a worker sends is hostile until proven otherwise: the length is checked against the cap before a byte of
the body is kept.
"""

import struct

HEADER = struct.Struct(">IB")
JOB, VALUE, PROGRESS, REPLY = 1, 2, 3, 4
PROGRESS_BYTES = 1024
PROGRESS_FRAMES = 1000
PROGRESS_PER_S = 100
# A failure's text travels beside the result cap: type, message and traceback, each capped by the worker.
REPLY_OVERHEAD_BYTES = 64 * 1024


class ProtocolViolation(Exception):
    """Say how a worker broke the protocol; the text is ours, never the worker's."""


def frame(kind: int, body: bytes) -> bytes:
    """Return one frame."""
    return HEADER.pack(len(body), kind) + body


class FrameReader:
    """Cut a worker's byte stream into frames, without input or output of its own.

    `reply_bytes` caps a REPLY's body. Raises `ProtocolViolation` for an unknown kind or a length over the cap; memory
    held never exceeds the cap plus one chunk.
    """

    def __init__(self, reply_bytes: int) -> None:
        self._caps = {REPLY: reply_bytes, PROGRESS: PROGRESS_BYTES}
        self._buffer = bytearray()
        self.received_bytes = 0

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Take bytes in, return the frames they complete; nothing after a REPLY is looked at."""
        self._buffer += data
        self.received_bytes += len(data)
        frames = []
        while len(self._buffer) >= HEADER.size:
            length, kind = HEADER.unpack_from(self._buffer)
            self._check(length, kind)
            if len(self._buffer) < HEADER.size + length:
                break
            body = bytes(self._buffer[HEADER.size : HEADER.size + length])
            del self._buffer[: HEADER.size + length]
            frames.append((kind, body))
            if kind == REPLY:
                break
        return frames

    @property
    def is_partial(self) -> bool:
        """Ask whether a frame has begun and not ended."""
        return bool(self._buffer)

    def _check(self, length: int, kind: int) -> None:
        cap = self._caps.get(kind)
        if cap is None:
            raise ProtocolViolation("a frame of unknown kind")
        if length > cap:
            raise ProtocolViolation("a frame over its cap")
