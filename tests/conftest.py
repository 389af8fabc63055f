"""What every test gets: nothing may be left over after it, no child, no thread, no descriptor."""

import gc
import os
import threading
import time
from pathlib import Path

import psutil
import pytest

from sandbox import Sandbox

# One suite, both engines; the portable one builds no walls and has to be asked for by its tier.
ENGINES = {"zygote": {}, "portable": {"engine": "portable", "isolation": "D"}}

DATA = Path(__file__).parent / "data"


def open_descriptors() -> int:
    """Count this process's descriptors."""
    return len(os.listdir("/proc/self/fd"))


def left_over() -> tuple[set[int], set[str]]:
    """Return the children and the threads that there are now."""
    children = {child.pid for child in psutil.Process().children(recursive=True)}
    return children, {thread.name for thread in threading.enumerate()}


@pytest.fixture
def nothing_left():
    """Fail the test that leaves a child, a thread or a descriptor behind, after a second of grace."""
    gc.collect()
    before, descriptors = left_over(), open_descriptors()
    yield
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        gc.collect()
        children, threads = left_over()
        if children <= before[0] and threads <= before[1] and open_descriptors() <= descriptors:
            return
        threading.Event().wait(0.05)
    assert (children - before[0], threads - before[1], max(0, open_descriptors() - descriptors)) == (set(), set(), 0)


@pytest.fixture(scope="module", params=ENGINES)
def engine(request):
    """Run the test once with each engine; gives the arguments of `Sandbox` that choose it."""
    return ENGINES[request.param]


@pytest.fixture(scope="module")
def make_box(engine):
    """Give a maker of sandboxes of this engine."""
    return lambda **options: Sandbox(**engine, **options)
