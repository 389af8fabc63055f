"""Be a worker of the portable engine: load the handlers, lower privileges, then do what every worker does.

Processes: the nursery spawned us with a clean interpreter; the host holds the other end of `reply` and reads the output.
Standard library only, but for multiprocess, which brought us here.
"""

import os
import signal
import sys
from typing import Any

from sandbox import confine, preload, worker
from sandbox.linux import fds, privileges, rlimits


class _Hello:
    """Speak to the nursery, with the surface that `zygote_messages.tell` wants."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def send(self, message: bytes) -> None:
        """Write one line."""
        worker.write_all(self.fd, message + b"\n")


def run(job: Any, output: Any, hello: Any, config: dict[str, Any]) -> None:
    """Load, lower, announce, serve one job; never returns."""
    import sandbox
    from sandbox.zygote_messages import tell

    sandbox._worker_process = True
    try:
        worker.reset_signals()
        if os.getsid(0) != os.getpid():
            os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        reply, say, write = fds.keep_only(null, null, tuple(os.dup(end.fileno()) for end in (job, hello, output)))
        os.set_blocking(reply, True)
        channel = _Hello(say)
        loaded = preload.load_all(channel, {**config, "single": True})
        layers = _lower(confine.Plan.from_wire(config["plan"]))
        worker.settle_streams()
        worker.settle_process()
        reply, channel.fd = fds.keep_only(0, write, (reply, say))
        worker.rehearse(reply, loaded)
        tell(channel, ready={"layers": layers, "missing": config["plan"]["missing"], "uid": os.getuid()})
        os.close(channel.fd)
        worker.serve_one(reply, loaded)
    except BaseException as error:  # our own bug: it reaches the record as output, with "no result"
        os.write(2, f"worker: {type(error).__name__}: {error}\n".encode("utf-8", "replace")[:500])
    finally:
        os._exit(1)


def _lower(plan: confine.Plan) -> list[str]:
    """Give up what can be given up without walls, and return the names of what was."""
    if sys.platform == "linux":
        layers = confine.confine_zygote(plan, []).layers
        privileges.set_parent_death_signal(signal.SIGKILL)
        return layers
    rlimits.set_fixed()
    os.umask(0o077)
    if plan.drop_uid:
        os.setgroups([])
        os.setgid(privileges.NOBODY)
        os.setuid(privileges.NOBODY)
        return ["rlimits", "session", "unprivileged_uid"]
    return ["rlimits", "session"]
