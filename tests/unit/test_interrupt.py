"""Control-C ends a command even where Python drops the exception."""

import subprocess
import sys

import pytest

LOST = """
import os, signal, threading, weakref
from dispatcher.cli.interrupt import desist, insist

class Thing:
    pass

def drop(reference):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass  # the exception strikes here, and is dropped

insist()
thing = Thing()
reference = weakref.ref(thing, drop)
try:
    del thing
    print("dropped", flush=True)
    threading.Event().wait(60)
except KeyboardInterrupt:
    desist()
    print("interrupted", flush=True)
{after}
"""


@pytest.mark.parametrize("after", ["", "import time; time.sleep(1.2)"])
def test_a_dropped_interruption_comes_again_until_it_arrives(after):
    """One that strikes in a weak reference's callback is raised again, and no more once it has arrived."""
    done = subprocess.run([sys.executable, "-c", LOST.format(after=after)], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "dropped\ninterrupted\n"), done.stderr
