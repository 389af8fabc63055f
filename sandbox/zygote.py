"""Be a zygote: load handlers once, go behind the walls, and fork a worker whenever the host asks. Run by file path.

Processes and messages:

    host ── starts ──> guardian   enters the namespaces, forks, then waits for the lifeline or for its child
                       └── zygote (pid 1 of its pid namespace): loads handlers, confines itself, serves `control`
                           └── worker, one per job

    control (SOCK_SEQPACKET, JSON): host → zygote  {"fork": n}
                                    zygote → host  {"loading": key} {"failed": key, "error"} {"threads": key}
                                                   {"ready": {...}} {"worker": pid} + descriptors {"ended": [[…]]}
    lifeline (pipe): its only writer is the host; end of file means that the host is gone
    config (descriptor): JSON, read once at start

Single-threaded for life; standard library only. In "single" mode the zygote is itself the one worker, for handlers
whose import starts threads, after which forking is unsafe: there the walls stand before anything is imported.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main() -> None:
    """Be the guardian, and in its child the zygote."""
    control_fd, lifeline, config_fd = map(int, sys.argv[1:4])
    # What the host ignores or blocks is inherited over exec; with SIGCHLD ignored no child could be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    config = json.loads(_read_all(config_fd))
    sys.path[:] = config["roots"] + [entry for entry in sys.path if entry not in config["roots"] and entry != _ROOT]
    if _ROOT not in sys.path:
        sys.path.append(_ROOT)
    import sandbox

    sandbox._worker_process = True
    from sandbox import confine
    from sandbox.linux import privileges
    from sandbox.zygote_messages import tell

    control = socket.socket(fileno=control_fd)
    plan = confine.Plan.from_wire(config["plan"])
    try:
        privileges.become_subreaper()
        layers = confine.enter_namespaces(plan)
    except OSError as error:
        tell(control, broken=f"{error}"[:500])
        os._exit(1)
    child = os.fork()
    if child == 0:
        # The second line: if the guardian is killed before it sees the lifeline end, we end with it.
        privileges.set_parent_death_signal(signal.SIGKILL)
        os.close(lifeline)
        run_zygote(control, config, plan, layers)
    control.close()
    guard(child, lifeline)


def guard(child: int, lifeline: int) -> None:
    """Wait for the zygote or for the host's end; leave no process behind; never returns."""
    pidfd = os.pidfd_open(child, 0)
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    poller.register(lifeline, select.POLLIN | select.POLLHUP)
    poller.poll()
    signal.pidfd_send_signal(pidfd, signal.SIGKILL) if not _has_ended(pidfd) else None
    _, status = os.waitpid(child, 0)
    kill_orphans()
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _has_ended(pidfd: int) -> bool:
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(0))


def kill_orphans() -> None:
    """Kill and reap every process that came back to us, until none is left (without a pid namespace they may)."""
    own = os.getpid()
    while True:
        for pid in _children(own):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def _read_all(fd: int) -> bytes:
    with open(fd, "rb") as file:
        return file.read()


def run_zygote(control: socket.socket, config: dict[str, Any], plan: Any, layers: list[str]) -> None:
    """Load, confine, serve; never returns."""
    # Everything of ours that a worker needs is imported here: behind the walls this package's folder is out of sight.
    import fcntl  # noqa: F401

    from sandbox import confine, preload, worker
    from sandbox.linux import fds, privileges, rlimits  # noqa: F401
    from sandbox.zygote_messages import tell

    try:
        worker.settle_streams()
        if config["single"]:
            _become_init(control)
            # Walls first: most of them bind the calling thread alone, and its children's, not those that are there.
            statm = rlimits.open_statm()
            prepared = confine.confine_zygote(plan, layers)
            be_worker(control.detach(), prepared, lambda channel, fd: load(channel, fd, prepared, config), statm)
        loaded = preload.load_all(control, config)
        baseline = rlimits.baseline()
        prepared = confine.confine_zygote(plan, layers)
        privileges.set_parent_death_signal(signal.SIGKILL)  # a change of uid has cleared it (prctl(2))
        worker.settle_process()
        tell_ready(control, prepared, baseline)
        serve(control, prepared, loaded)
    except BaseException as error:
        tell(control, broken=f"{type(error).__name__}: {error}"[:500])
    finally:
        os._exit(1)


def load(channel: Any, statm: int, prepared: Any, config: dict[str, Any]) -> Any:
    """Load the handlers of a single worker, behind its walls, and say that it is ready."""
    from sandbox import preload, worker
    from sandbox.linux import rlimits

    with _unheard():
        loaded = preload.load_all(channel, config)
        baseline = rlimits.baseline(statm)
        worker.settle_process()
    tell_ready(channel, prepared, baseline)
    return loaded


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """Let what is printed meanwhile go nowhere: what an import prints is no call's output."""
    output, null = os.dup(1), os.open("/dev/null", os.O_WRONLY)
    for fd in (1, 2):
        os.dup2(null, fd)
    os.close(null)
    try:
        yield
    finally:
        for fd in (1, 2):
            os.dup2(output, fd)
        os.close(output)


def tell_ready(channel: Any, prepared: Any, baseline: tuple[int, int]) -> None:
    """Tell the host which walls stand and what the memory of an idle worker is."""
    from sandbox.zygote_messages import tell

    tell(channel, ready={"layers": prepared.layers, "missing": list(prepared.plan.missing), "uid": os.getuid(),
                         "seccomp": prepared.seccomp_digest, "baseline": baseline})  # fmt: skip


def serve(control: socket.socket, prepared: Any, loaded: Any) -> None:
    """Fork workers on demand and report their ends until the host hangs up."""
    poller = select.poll()
    poller.register(control, select.POLLIN)
    alive: dict[int, int] = {}  # pidfd: pid
    while True:
        for fd, _ in poller.poll():
            if fd == control.fileno():
                order = control.recv(256)
                if not order:
                    os._exit(0)
                for _ in range(json.loads(order)["fork"]):
                    spawned = spawn(control, prepared, loaded)
                    if spawned is not None:
                        pidfd, alive_pid = spawned
                        alive[pidfd] = alive_pid
                        poller.register(pidfd, select.POLLIN)
            elif fd in alive:
                poller.unregister(fd)
                os.close(fd)
                reap(control, alive.pop(fd))


def reap(control: socket.socket, pid: int) -> None:
    """Collect one worker's end and report it: pid, exit status, processor seconds, peak memory in KiB."""
    from sandbox.zygote_messages import tell

    try:
        _, status, usage = os.wait4(pid, 0)
    except ChildProcessError:
        return
    spent = usage.ru_utime + usage.ru_stime
    tell(control, ended=[pid, os.waitstatus_to_exitcode(status), spent, usage.ru_maxrss])


def spawn(control: socket.socket, prepared: Any, loaded: Any) -> tuple[int, int] | None:
    """Fork one worker, which announces itself to the host once it is confined and rehearsed; return pidfd and pid.

    `None`, and a word to the host, where the machine has no process left to give: those that run go on.
    """
    from sandbox.zygote_messages import tell

    try:
        pid = os.fork()
    except OSError as error:
        tell(control, unborn=error.strerror)
        return None
    if pid == 0:
        be_worker(control.fileno(), prepared, lambda *_: loaded)
    return os.pidfd_open(pid, 0), pid


def be_worker(control: int, prepared: Any, load: Callable[..., Any], statm: int | None = None) -> None:
    """Keep what a worker needs, confine, load unless that is done, rehearse, announce, serve one job; never returns."""
    from sandbox import confine, worker
    from sandbox.linux import fds, privileges

    try:
        privileges.set_parent_death_signal(signal.SIGKILL)
        worker.reset_signals()
        theirs, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        read, write = os.pipe()
        pid = os.getpid()
        kept = [ours.detach(), control, theirs.detach(), read, os.pidfd_open(pid, 0)]
        kept += [statm] if statm is not None else []
        kept += [] if prepared.ruleset is None else [prepared.ruleset]
        null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        reply, control, *sent = fds.keep_only(null, write, tuple(kept))
        if prepared.ruleset is not None:
            prepared.ruleset = sent.pop()
        if statm is not None:
            statm = sent.pop()
        confine.confine_worker(prepared)
        channel = socket.socket(fileno=control)
        loaded = load(channel, statm)
        worker.rehearse(reply, loaded)
        announce(channel, pid, sent)
        worker.serve_one(reply, loaded)
    except BaseException as error:  # our own bug: it reaches the record as output, with "no result"
        os.write(2, f"worker: {type(error).__name__}: {error}\n".encode("utf-8", "replace")[:500])
    finally:
        os._exit(1)


def announce(channel: socket.socket, pid: int, descriptors: list[int]) -> None:
    """Send the host our job socket, output pipe and pidfd, and keep none of them: we are on the shelf."""
    with channel:
        socket.send_fds(channel, [json.dumps({"worker": pid}).encode()], descriptors)
    for descriptor in descriptors:
        os.close(descriptor)


def _become_init(control: socket.socket) -> None:
    """Fork once more, before any thread exists: the child loads and works, we reap it and report its end."""
    pid = os.fork()
    if pid == 0:
        return
    poller = select.poll()
    pidfd = os.pidfd_open(pid, 0)
    poller.register(pidfd, select.POLLIN)
    poller.register(control, select.POLLHUP)
    poller.poll()
    if not _has_ended(pidfd):
        os.kill(pid, signal.SIGKILL)
    reap(control, pid)
    os._exit(0)


if __name__ == "__main__":
    main()
