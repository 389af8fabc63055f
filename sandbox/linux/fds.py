"""Descriptors: a worker has its reply socket, its output and nothing else (close_range(2))."""

import os

OUT_OF_THE_WAY = 200


def keep_only(stdin: int, output: int, others: tuple[int, ...]) -> tuple[int, ...]:
    """Put `stdin` on 0, `output` on 1 and 2, `others` on 3, 4 …, close the rest; return the new numbers of `others`.

    The descriptors are first moved far up, so that none is overwritten before it is placed.
    """
    import fcntl

    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, OUT_OF_THE_WAY) for fd in (stdin, output, *others)]
    os.dup2(moved[0], 0)
    os.dup2(moved[1], 1)
    os.dup2(moved[1], 2)
    for target, fd in enumerate(moved[2:], start=3):
        os.dup2(fd, target, inheritable=False)
    last = 3 + len(others)
    os.closerange(last, _limit())
    return tuple(range(3, last))


def _limit() -> int:
    # os.closerange() uses close_range(2) where the kernel has it, so the upper end costs nothing.
    return 1 << 20
