"""What every test gets: nothing may be left over after it, no child, no thread, no descriptor."""

import gc
import os
import threading
import time
from pathlib import Path

import psutil
import pytest

import sandbox.sandbox
from sandbox import Sandbox

# One suite, both engines; the portable one builds no walls and has to be asked for by its tier.
ENGINES = {"zygote": {}, "portable": {"engine": "portable", "isolation": "D"}}

DATA = Path(__file__).parent / "data"


def pytest_collection_finish(session):
    """Keep what was imported out of every later collection: `nothing_left` asks for many."""
    gc.collect()
    gc.freeze()


def open_descriptors() -> int:
    """Count this process's descriptors."""
    return len(os.listdir("/proc/self/fd"))


def left_over() -> tuple[set[int], set[str]]:
    """Return the children and the threads that there are now."""
    children = {child.pid for child in psutil.Process().children(recursive=True)}
    return children, {thread.name for thread in threading.enumerate()}


def is_at_rest():
    """Ask whether no sandbox of an outer fixture still has a process or a descriptor on its way."""
    engines = [box._engine for box in list(sandbox.sandbox._open)]
    zygotes = [zygote for engine in engines for zygote in list(engine._zygotes)]
    return not any(engine._taken for engine in engines) and all(z.ready and not z.pending for z in zygotes)


@pytest.fixture
def nothing_left():
    """Fail the test that leaves a child, a thread or a descriptor behind, after a few seconds of grace."""
    deadline = time.monotonic() + 20
    while not is_at_rest() and time.monotonic() < deadline:
        threading.Event().wait(0.02)
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
