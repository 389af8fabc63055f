"""Start zygotes and speak with them. Host side; see `sandbox.zygote` for the processes and messages."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from sandbox.confine import Plan
from sandbox.handlers import Handler, import_roots

_ZYGOTE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zygote.py")
MESSAGE_BYTES = 64 * 1024
# What a zygote may know of the host: nothing secret, only what an interpreter and numeric libraries go by.
KEPT_ENVIRONMENT = ("TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
}


def clean_environment() -> dict[str, str]:
    """Return the environment that zygotes and workers get, made from an allow-list."""
    kept = {name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ}
    return {**ENVIRONMENT, **kept}


class ZygoteProcess:
    """Hold a started zygote: its guardian process, the control socket and the lifeline.

    Closing the lifeline ends the zygote and every process under it.
    """

    script = _ZYGOTE

    def __init__(self, handlers: Sequence[Handler], plan: Plan, preload: Sequence[str], *, single: bool) -> None:
        config = {
            "roots": import_roots(),
            "plan": plan.to_wire(),
            "handlers": [handler.to_wire() for handler in handlers],
            "preload": list(preload),
            "single": single,
        }
        self.control, theirs = self._make_control()
        lifeline, self._lifeline = os.pipe()
        config_fd = _in_memory(json.dumps(config).encode())
        try:
            self._guardian = _start(self.script, theirs.fileno(), lifeline, config_fd)
        except BaseException:
            self.control.close()
            os.close(self._lifeline)
            raise
        finally:
            theirs.close()
            os.close(lifeline)
            os.close(config_fd)

    def _make_control(self) -> tuple[socket.socket, socket.socket]:
        return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def fileno(self) -> int:
        """Give the control socket's descriptor."""
        return self.control.fileno()

    def request_workers(self, count: int) -> None:
        """Ask for `count` forks; a zygote that is gone is noticed elsewhere."""
        try:
            self.control.send(b'{"fork":%d}' % count)
        except OSError:
            return

    def discard(self, pid: int) -> None:
        """Let go of a worker that could not be taken in: with its host's ends closed it ends by itself."""

    def receive(self) -> tuple[dict[str, Any], list[int]] | None:
        """Return the next message and its descriptors, `None` when the zygote has hung up."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self.control, MESSAGE_BYTES, 3)
        except OSError:
            return None
        if not data:
            return None
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        message: dict[str, Any] = json.loads(data)
        return message, list(descriptors)

    def end(self) -> None:
        """End the zygote and everything under it, and reap the guardian."""
        if self._lifeline < 0:
            return
        os.close(self._lifeline)
        self._lifeline = -1
        self.control.close()
        try:
            self._guardian.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._guardian.kill()
            self._guardian.wait()

    def abandon(self) -> None:
        """In a forked copy of the host: drop our copies of the descriptors, so that they keep nothing alive."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
            self.control.close()
            self._guardian.returncode = 0  # not our child: never wait for it


def _start(script: str, control: int, lifeline: int, config: int) -> "subprocess.Popen[bytes]":
    flags = ["-I", "-B"] if sys.dont_write_bytecode else ["-I"]
    return subprocess.Popen(
        [sys.executable, *flags, script, str(control), str(lifeline), str(config)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(control, lifeline, config),
        env=clean_environment(),
        cwd="/",
        start_new_session=True,
        restore_signals=True,
    )


def _in_memory(data: bytes) -> int:
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("sandbox-config", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:  # has no name: nothing is left behind
            fd = os.dup(file.fileno())
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
