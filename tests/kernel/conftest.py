"""Each mechanism in a forked child of its own: it works before, and is refused after."""

import os
import traceback

import pytest


@pytest.fixture
def in_child():
    """Give a function that runs another in a forked child and returns what it wrote: bounded, and reaped."""

    def run(function):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(read)
                os.write(write, repr(function()).encode()[:4000])
                code = 0
            except BaseException:
                os.write(write, traceback.format_exc().encode()[-3000:])
            finally:
                os._exit(code)
        os.close(write)
        said = b""
        while data := os.read(read, 4096):
            said += data
        os.close(read)
        _, status = os.waitpid(child, 0)
        assert status == 0, said.decode()
        return eval(said)

    return run
