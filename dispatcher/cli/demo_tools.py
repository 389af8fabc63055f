"""Hostile tools for the demonstration: each does one thing that no in-process timeout survives."""

import os
import signal
from typing import Any


def hog_memory() -> int:
    """Take memory without end."""
    held: list[bytes] = []
    while True:
        held.append(bytes(16 << 20))


def flood_output() -> None:
    """Print without end."""
    while True:
        print("spam " * 200)


def kill_itself() -> None:
    """End by a signal in the middle of the call."""
    os.kill(os.getpid(), signal.SIGKILL)


def ignore_signals() -> None:
    """Refuse every polite request to stop."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
    while True:
        pass


def register(registry: Any) -> None:
    """Add the hostile tools, each with a short limit."""
    from dispatcher import Limits

    for function in (hog_memory, flood_output, kill_itself, ignore_signals):
        registry.tool(effect="read", limits=Limits(wall_s=1, memory_bytes=96 << 20))(function)
