"""Handlers that the process tests run; imported by workers, too."""

import asyncio
import functools
import os
import signal
import sys
import time


def add(a, b):
    return a + b


def spin():
    while True:
        pass


def sleep_forever():
    time.sleep(3600)


def ignore_everything():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
    while True:
        pass


def swallow():
    while True:
        try:
            time.sleep(3600)
        except BaseException:
            pass


def power():
    return 9**99**99


def hog():
    held = []
    while True:
        held.append(bytearray(8 << 20))


def one_big():
    return len(bytearray(10**11))


def flood():
    while True:
        print("x" * 1000)


def flood_stderr():
    while True:
        sys.stderr.write("x" * 1000 + "\n")


def raw_flood():
    while True:
        os.write(1, b"x" * 4096)


def speak(count):
    for index in range(count):
        print(f"line {index}")
    os.write(2, b"raw\n")
    return count


def crash(number):
    os.kill(os.getpid(), number)


def abort():
    os.abort()


def exit_zero():
    os._exit(0)


def exit_three():
    os._exit(3)


def raise_system_exit():
    raise SystemExit(0)


def raise_interrupt():
    raise KeyboardInterrupt


def fail(text):
    raise ValueError(text)


def burn_cpu():
    while True:
        pass


async def add_async(a, b):
    await asyncio.sleep(0)
    return a + b


def generate(count):
    yield from range(count)


def generate_forever():
    while True:
        yield "x" * 100


async def generate_async(count):
    for index in range(count):
        yield index


def big_result(size):
    return "x" * size


def deep_result():
    value = []
    for _ in range(100_000):
        value = [value]
    return value


def shared_graph():
    value = ["x"]
    for _ in range(40):
        value = [value, value]
    return value


def write_frame(data):
    """Write bytes straight to whatever descriptors are open besides the standard ones."""
    for fd in range(3, 64):
        try:
            os.write(fd, bytes.fromhex(data))
        except OSError:
            continue
    return "mine"


def write_reply(body):
    """Write one whole reply frame straight to whatever descriptors are open besides the standard ones, then wait."""
    data = bytes.fromhex(body)
    write_frame((len(data).to_bytes(4, "big") + b"\x04" + data).hex())
    time.sleep(60)


def hang_up():
    """Close the reply socket for writing, and go on."""
    import socket

    socket.socket(fileno=3).shutdown(socket.SHUT_WR)
    time.sleep(60)


def start_threads(most, hold_s):
    """Start as many threads as there may be, with small stacks; return how many."""
    import threading

    threading.stack_size(32_768)
    gate, count = threading.Event(), 0
    try:
        while count < most:
            threading.Thread(target=gate.wait, daemon=True).start()
            count += 1
    except (RuntimeError, MemoryError):
        pass
    time.sleep(hold_s)
    gate.set()
    return count


def close_everything():
    os.closerange(0, 64)
    return 1


def pollute():
    import builtins

    builtins.polluted = True
    os.environ["POLLUTED"] = "1"
    sys.modules["polluted"] = sys
    os.umask(0)
    sys.setrecursionlimit(5000)
    return True


def is_polluted():
    import builtins

    return [
        hasattr(builtins, "polluted"),
        "POLLUTED" in os.environ,
        "polluted" in sys.modules,
        sys.getrecursionlimit() == 5000,
    ]


def worker_facts():
    return {"pid": os.getpid(), "uid": os.getuid(), "environment": sorted(os.environ), "argv": sys.argv[:1]}


def daemon_thread():
    import threading

    threading.Thread(target=spin).start()
    return "answered"


def at_exit():
    import atexit

    atexit.register(time.sleep, 60)
    return "answered"


def modules():
    return sorted(sys.modules)


def found_family(told, ending):
    """Start a child, its child, and an orphan in a session of its own; write their pids; end in the way asked for."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, b"%d " % os.getpid())
        if os.fork() == 0:
            os.write(write, b"%d " % os.getpid())
        time.sleep(3600)
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            os.write(write, b"%d " % os.getpid())
            time.sleep(3600)
        os._exit(0)
    os.wait()
    pids = b""
    while pids.count(b" ") < 3:
        pids += os.read(read, 100)
    with open(told, "wb") as file:
        file.write(pids)
    if ending == "crash":
        crash(signal.SIGKILL)
    while ending == "spin":
        pass


def hog_together():
    """Hold 40 MiB in each of four processes."""
    for _ in range(3):
        if os.fork() == 0:
            break
    held = bytearray(b"x" * (40 << 20))
    time.sleep(3600)
    return len(held)


def own_limits():
    import resource

    names = {"open_files": resource.RLIMIT_NOFILE, "file_bytes": resource.RLIMIT_FSIZE, "cpu_s": resource.RLIMIT_CPU}
    return {name: resource.getrlimit(which)[0] for name, which in names.items()}


def look_at(paths):
    """Say of each path "file", "folder" (with entries), "empty" or "" when it cannot be reached."""
    seen = {}
    for path in paths:
        seen[path] = ""
        try:
            if os.path.isdir(path):
                seen[path] = "folder" if os.listdir(path) else "empty"
            else:
                with open(path, "rb") as file:
                    file.read(1)
                seen[path] = "file"
        except OSError:
            continue
    return seen


def import_late(names):
    import importlib

    failed = []
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            failed.append(f"{name}: {error}")
    return failed


def write_to(path):
    return name_refusal(lambda: open(path, "w").close()) or "done"


def reach_processes(pids):
    errors = []
    for pid in pids:
        for call in (
            lambda: os.kill(pid, 0),  # noqa: B023
            lambda: __import__("resource").prlimit(pid, 0, (1, 1)),  # noqa: B023
            lambda: os.sched_setaffinity(pid, {0}),  # noqa: B023
            lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),  # noqa: B023
        ):
            said = name_refusal(call)
            if pid == 1 and said == "":
                continue  # its own init may be asked for with signal 0
            errors.append(said or f"reached {pid}")
    return {"parent": os.getppid(), "errors": sorted(set(errors))}


def kill_everybody():
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP):
        name_refusal(lambda: os.kill(-1, number))  # noqa: B023
        name_refusal(lambda: os.kill(1, number))  # noqa: B023
        name_refusal(lambda: os.killpg(0, number) if number != signal.SIGSTOP else None)  # noqa: B023
    return True


def kernel_facts():
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    libc.syscall({"x86_64": 125, "aarch64": 90}[os.uname().machine], header, data)
    descriptors = []
    for fd in range(4096):
        try:
            os.fstat(fd)
            descriptors.append(fd)
        except OSError:
            continue
    return {
        "capabilities": list(data),
        "no_new_privs": libc.prctl(39, 0, 0, 0, 0),
        "seccomp": libc.prctl(21, 0, 0, 0, 0),
        "dumpable": libc.prctl(3, 0, 0, 0, 0),
        "descriptors": descriptors,
        "uids": [*os.getresuid(), *os.getresgid()],
    }


def name_refusal(attempt):
    """Return the errno's name of what refused an attempt, "" if nothing did."""
    import errno

    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    return ""


def attempt(name):
    """Try one thing; say "done" or what refused it."""
    return name_refusal(_ATTEMPTS[name]) or "done"


def _raw(number, *arguments):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    if libc.syscall(ctypes.c_long(number), *[ctypes.c_long(argument) for argument in arguments]) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def _fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _socket(family, kind):
    import socket

    socket.socket(family, kind).close()


def _bind():
    import socket

    with socket.socket(socket.AF_UNIX) as channel:
        channel.bind("\0sandbox-test")


def _thread():
    import threading

    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


def _datagram_pair():
    import socket

    for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
        end.close()


def _pair():
    import socket

    for end in socket.socketpair():
        end.close()


def _write_tmp():
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(b"x")


_X86 = {"ptrace": 101, "mount": 165, "keyctl": 250, "io_uring": 425, "bpf": 321, "perf": 298, "process_vm": 310}
_ARM = {"ptrace": 117, "mount": 40, "keyctl": 219, "io_uring": 425, "bpf": 280, "perf": 241, "process_vm": 270}
_NUMBERS = _X86 if os.uname().machine == "x86_64" else _ARM

_ATTEMPTS = {
    "fork": _fork,
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "tcp": lambda: _socket(2, 1),
    "udp": lambda: _socket(2, 2),
    "unix": lambda: _socket(1, 1),
    "bind": _bind,
    "unshare": lambda: _raw({"x86_64": 272, "aarch64": 97}[os.uname().machine], 0x10000000),
    "chroot": lambda: os.chroot("/tmp"),
    "setuid": lambda: os.setuid(0),
    "write_root": lambda: open("/new", "w").close(),
    "write_tmp": _write_tmp,
    "mknod": lambda: os.mknod("/tmp/node", 0o600),
    "pidfd_open": lambda: os.close(os.pidfd_open(os.getpid())),
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, 1, 5),
    "prlimit_other": lambda: __import__("resource").prlimit(1, 0, (1, 1)),
    "socketpair": _pair,
    "thread": _thread,
    "chmod": lambda: os.chmod("/tmp", 0o1777),
    "utime": lambda: os.utime("/tmp"),
    "setxattr": lambda: os.setxattr("/tmp", "user.x", b"1"),
    "datagram_pair": _datagram_pair,
    "inotify": lambda: _raw({"x86_64": 254, "aarch64": 27}[os.uname().machine], 0, 0, 0),
    "lease": lambda: __import__("fcntl").fcntl(os.open(os.__file__, os.O_RDONLY), 1024, 0),
    "notify": lambda: __import__("fcntl").fcntl(os.open(os.path.dirname(os.__file__), os.O_RDONLY), 1026, 1),
    "memfd": lambda: os.close(os.memfd_create("x")),
    "urandom": lambda: os.close(os.open("/dev/urandom", os.O_RDONLY)),
    **{name: functools.partial(_raw, number, 0, 0, 0, 0, 0, 0) for name, number in _NUMBERS.items()},
}
