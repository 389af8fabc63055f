"""Handlers that the process tests run; imported by workers, too."""

import asyncio
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
