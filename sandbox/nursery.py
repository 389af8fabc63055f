"""Be a nursery: spawn workers with `multiprocess`, watch and kill them and everything under them. Run by file path.

Processes and messages:

    host ── starts ──> nursery   one thread; knows no handler, only spawns
                       ├── multiprocess's resource tracker
                       └── worker, one per job: loads the handlers itself, announces itself, serves

    control (stream, JSON): host → nursery  {"fork": n} {"watch": [pid, bytes]} {"kill": pid}
                            nursery → host  {"loading": key} {"failed": key, "error"} {"ready": {...}}
                                            {"worker": pid, "baseline"} + descriptors {"over": pid} {"ended": [...]}
    hello (pipe, one JSON line a message): worker → nursery  loading, failed, ready
    lifeline (pipe): its only writer is the host; end of file means that the host is gone

The third descriptor of a worker is a pipe that ends when the worker and everything under it are gone.
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import Any

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SAMPLE_S = 0.05
LOAD_S = 30.0  # the host bounds the first load by its own preload_s; later ones are of the same modules
ROUNDS = 50  # of stopping a family before it is killed: each finds what was born in the one before


def main() -> None:
    """Set up and serve until the host is gone."""
    control_fd, lifeline, config_fd = map(int, sys.argv[1:4])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with open(config_fd, "rb") as file:
        config = json.loads(file.read())
    sys.path[:] = config["roots"] + [entry for entry in sys.path if entry not in config["roots"] and entry != _ROOT]
    if _ROOT not in sys.path:
        sys.path.append(_ROOT)
    import sandbox

    sandbox._worker_process = True
    from sandbox.stream import Stream

    if sys.platform == "linux":
        from sandbox.linux import privileges

        privileges.become_subreaper()
    control = Stream(socket.socket(fileno=control_fd))
    try:
        Nursery(control, lifeline, config).serve()
    except BaseException as error:
        control.send(json.dumps({"broken": f"{type(error).__name__}: {error}"[:500]}).encode())
    finally:
        os._exit(1)  # the host ends what is left under us, and the kernel, where it can, the workers


@dataclass(slots=True, eq=False)
class Child:
    """Hold one worker from its spawn to its burial."""

    process: Any
    kept: tuple[Any, Any, int, int]  # job socket, output pipe, exit pipe's reading and writing end
    hello: Any
    started: float
    is_ready: bool = False
    resident_bytes: int = 0  # when it was ready
    cap_bytes: int | None = None
    family: set[Any] = field(default_factory=set)  # psutil processes seen under it

    @property
    def pid(self) -> int:
        """Give its pid."""
        return int(self.process.pid)


class Nursery:
    """Spawn on demand, relay what workers say, sample, kill, bury."""

    def __init__(self, control: Any, lifeline: int, config: dict[str, Any]) -> None:
        import multiprocess
        import psutil
        from multiprocess import popen_spawn_posix, resource_tracker

        self.psutil = psutil
        self.context = multiprocess.get_context("spawn")
        # Used directly: Process.start() would collect ended workers itself, and with them their resource usage.
        self.launch = popen_spawn_posix.Popen
        self.control = control
        self.config = config
        self.is_ready = False
        self.wanted = 1  # the first tells whether the handlers load
        self.alive: dict[int, Child] = {}
        self.tracker = resource_tracker
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector = selectors.DefaultSelector()
        self.selector.register(control, selectors.EVENT_READ, self.on_order)
        self.selector.register(lifeline, selectors.EVENT_READ, self.end)
        self.selector.register(wake_read, selectors.EVENT_READ, lambda: self.bury_dead(wake_read))

    def serve(self) -> None:
        """Serve for ever."""
        while True:
            self.spawn_wanted()
            is_watching = any(child.cap_bytes is not None for child in self.alive.values())
            is_loading = any(not child.is_ready for child in self.alive.values())
            events = self.selector.select(SAMPLE_S if is_watching else LOAD_S if is_loading else None)
            for key, _ in events:
                current = self.selector.get_map().get(key.fd)
                if current is not None and current.data is key.data:
                    key.data()
            if is_watching:
                self.sample()
            if is_loading:
                self.end_late()

    def tell(self, descriptors: tuple[int, ...] = (), **message: Any) -> None:
        """Send the host one message."""
        try:
            self.control.send(json.dumps(message).encode(), descriptors)
        except OSError:
            self.end()

    def on_order(self) -> None:
        """Do what the host says."""
        try:
            received = self.control.receive()
        except OSError:
            received = None
        if received is None:
            self.end()
        order = json.loads(received[0])
        self.wanted += order.get("fork", 0)
        if "watch" in order and order["watch"][0] in self.alive:
            self.alive[order["watch"][0]].cap_bytes = order["watch"][1]
        if order.get("kill") in self.alive:
            self.kill_family(self.alive[order["kill"]])

    # -- births ------------------------------------------------------------------------------------------------

    def spawn_wanted(self) -> None:
        """Spawn what is wanted, no more at once than there are processors to start them."""
        starting = sum(1 for child in self.alive.values() if not child.is_ready)
        while self.wanted > 0 and starting < (os.cpu_count() or 1):
            self.wanted -= 1
            starting += 1
            self.spawn()

    def spawn(self) -> None:
        """Spawn one worker; it says on `hello` how far it is."""
        from sandbox import nursling

        job, theirs = self.context.Pipe(duplex=True)
        output, write = self.context.Pipe(duplex=False)
        hello, say = self.context.Pipe(duplex=False)
        exit_read, exit_write = os.pipe()
        process = self.launch(self.context.Process(target=nursling.run, args=(theirs, write, say, self.config)))
        for end in (theirs, write, say):
            end.close()
        child = Child(process, (job, output, exit_read, exit_write), hello, time.monotonic())
        self.alive[child.pid] = child
        lines = bytearray()
        self.selector.register(hello, selectors.EVENT_READ, lambda: self.on_hello(child, lines))

    def on_hello(self, child: Child, lines: bytearray) -> None:
        """Relay what a worker says of its handlers; announce it when it is ready."""
        data = os.read(child.hello.fileno(), 65_536)
        if not data:
            self.selector.unregister(child.hello)
            return
        lines += data
        while b"\n" in lines:
            line, _, rest = bytes(lines).partition(b"\n")
            lines[:] = rest
            message = json.loads(line)
            if "ready" in message:
                self.announce(child, message["ready"])
            elif not self.is_ready or "loading" not in message:
                self.tell(**message)

    def announce(self, child: Child, ready: dict[str, Any]) -> None:
        """Send the host a worker's job socket, output and exit pipe, and keep only what tells its end."""
        memory = self.psutil.Process(child.pid).memory_info()
        child.resident_bytes = memory.rss
        child.is_ready = True
        if not self.is_ready:
            self.is_ready = True
            self.tell(ready=ready)
        job, output, exit_read, _ = child.kept
        baseline = [memory.vms, getattr(memory, "data", 0)]
        self.tell((job.fileno(), output.fileno(), exit_read), worker=child.pid, baseline=baseline)

    # -- lives -------------------------------------------------------------------------------------------------

    def sample(self) -> None:
        """Sum the memory of every watched family; kill the one that is over its cap."""
        for child in list(self.alive.values()):
            if child.cap_bytes is None:
                continue
            used = sum(map(self.resident, self.find_family(child)))
            if used - child.resident_bytes > child.cap_bytes:
                child.cap_bytes = None
                self.tell(over=child.pid)
                self.kill_family(child)

    def end_late(self) -> None:
        """Kill workers whose handlers do not get loaded; their end is reported like any other."""
        for child in list(self.alive.values()):
            if not child.is_ready and time.monotonic() - child.started > LOAD_S:
                self.kill_family(child)

    def find_family(self, child: Child) -> set[Any]:
        """Return the worker and everything known to be under it, the living ones."""
        with contextlib.suppress(self.psutil.Error):
            worker = self.psutil.Process(child.pid)
            child.family |= {worker, *worker.children(recursive=True)}
        child.family = {process for process in child.family if process.is_running()}
        return child.family

    def resident(self, process: Any) -> int:
        """Return a process's resident bytes, 0 if it is gone."""
        try:
            return int(process.memory_info().rss)
        except self.psutil.Error:
            return 0

    # -- deaths ------------------------------------------------------------------------------------------------

    def kill_family(self, child: Child) -> None:
        """Stop everything under a worker, round by round until nothing new is born, then kill it."""
        stopped: set[Any] = set()
        for _ in range(ROUNDS):
            born = self.find_family(child) - stopped
            if not born:
                break
            for process in born:
                with contextlib.suppress(self.psutil.Error):
                    process.suspend()
            stopped |= born
        self.kill_all(stopped)

    def kill_all(self, processes: set[Any]) -> None:
        """Kill processes; those that are gone are no error."""
        for process in processes:
            with contextlib.suppress(self.psutil.Error):
                process.kill()

    def bury_dead(self, wake: int) -> None:
        """Collect every worker that has ended, and report it once everything under it is gone too."""
        with contextlib.suppress(BlockingIOError):
            os.read(wake, 4096)
        for child in list(self.alive.values()):
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                self.bury(child, os.waitstatus_to_exitcode(status), usage)

    def bury(self, child: Child, status: int, usage: Any) -> None:
        """Report one worker's end."""
        child.process.returncode = status
        del self.alive[child.pid]
        self.end_strays(child)
        if not self.is_ready:
            self.end()  # the host knows what was being loaded
        peak = usage.ru_maxrss // 1024 if sys.platform == "darwin" else usage.ru_maxrss  # getrusage(2): bytes there
        self.tell(ended=[child.pid, status, usage.ru_utime + usage.ru_stime, peak])
        if child.hello.fileno() in self.selector.get_map():
            self.selector.unregister(child.hello)
        job, output, exit_read, exit_write = child.kept
        for end in (job, output, child.hello, child.process):
            end.close()
        os.close(exit_read)
        os.close(exit_write)

    def end_strays(self, child: Child) -> None:
        """End what a dead worker has left: those seen under it, and (on Linux) those that came back to us."""
        self.tracker.ensure_running()  # multiprocess needs it, and it may have been killed
        known = {*self.alive, self.tracker._resource_tracker._pid}
        strays = {process for process in child.family if process.is_running() and process.pid != child.pid}
        for _ in range(ROUNDS):
            for orphan in self.psutil.Process().children():
                if orphan.pid not in known:
                    strays |= {orphan, *self.descendants(orphan)}
            if not strays:
                return
            self.kill_all(strays)
            self.psutil.wait_procs(strays, timeout=1)
            strays = {process for process in strays if process.is_running()}

    def descendants(self, process: Any) -> list[Any]:
        """Return everything under a process."""
        try:
            found: list[Any] = process.children(recursive=True)
        except self.psutil.Error:
            return []
        return found

    def end(self) -> None:
        """Kill everything and end; never returns."""
        for child in list(self.alive.values()):
            self.kill_family(child)
        os._exit(0)


if __name__ == "__main__":
    main()
