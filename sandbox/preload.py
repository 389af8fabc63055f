"""Load a zygote's handlers, one by one, so that one that fails, hangs, ends or forks puts itself alone out of service.

The host knows which handler was being loaded when a zygote died or hung: it starts another without it.
"""

import importlib
import os
import signal
from collections.abc import Callable
from typing import Any

from sandbox import loading, worker
from sandbox.zygote_messages import Channel, tell

PRELOAD_MEMORY_BYTES = 4 << 30

Loaded = dict[str, tuple[Callable[..., Any], Callable[..., Any]]]


def load_all(control: Channel, config: dict[str, Any]) -> Loaded:
    """Import the `preload` modules and load every handler; report what failed and what started threads."""
    _cap_memory()
    for module in config["preload"]:
        tell(control, loading=f"module {module}")
        importlib.import_module(module)
    loaded: Loaded = {}
    for spec in config["handlers"]:
        tell(control, loading=spec["key"])
        _load_one(control, spec, loaded, config)
    if any(worker.is_async(function) for function, _ in loaded.values()):
        importlib.import_module("asyncio")
    _uncap_memory()
    return loaded


def _load_one(control: Channel, spec: dict[str, Any], loaded: Loaded, config: dict[str, Any]) -> None:
    own = os.getpid()
    try:
        loaded[spec["key"]] = loading.load_handler(spec)
    except BaseException as error:
        if os.getpid() != own:
            os._exit(0)
        tell(control, failed=spec["key"], error=f"{type(error).__name__}: {str(error)[:300]}")
        if not config["single"] and _has_threads():
            os._exit(1)  # they would be blamed on the next, or stand in the way of every fork: begin anew without it
        return
    if os.getpid() != own:  # the import forked, and this is the child
        os._exit(0)
    if _end_children(in_own_pid_namespace=config["plan"]["inner_namespaces"]):
        loaded.pop(spec["key"])
        tell(control, failed=spec["key"], error="its import forked a process")
    elif not config["single"] and _has_threads():
        tell(control, threads=spec["key"])


def _has_threads() -> bool:
    return len(os.listdir("/proc/self/task")) > 1


def _end_children(*, in_own_pid_namespace: bool) -> bool:
    """Ask whether an import left processes behind, and end them."""
    found = False
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        found = True
        if pid == 0:  # one lives: end all that are left, then collect them
            if in_own_pid_namespace:
                os.kill(-1, signal.SIGKILL)
            else:
                _kill_listed()
            os.waitpid(-1, 0)


def _kill_listed() -> None:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        for child in file.read().split():
            os.kill(int(child), signal.SIGKILL)


def _cap_memory() -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = PRELOAD_MEMORY_BYTES if hard < 0 else min(PRELOAD_MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _uncap_memory() -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
