"""Run a function in a disposable, confined process and see how it ended.

    from sandbox import Limits, Sandbox
    with Sandbox() as box:
        outcome = box.run(pow, {"base": 9, "exp": 99}, limits=Limits(wall_s=2))

Glossary, one word an idea:
    handler   the function to run, in the form in which it travels ("module:qualname", or by value)
    job       what a worker is asked: one handler, its arguments, limits
    worker    a process that takes exactly one job and dies
    spare     a worker that waits on the shelf, already confined and rehearsed
    shelf     the spares of one group of handlers
    zygote    the process that has the group's handlers loaded and forks workers; init of its own pid namespace
    nursery   what the portable engine has for a zygote: it spawns, watches and kills
    guardian  the zygote's parent: ends it when the host is gone, and reaps
    keeper    the host's one thread that watches zygotes and deaths
    evidence  what the host saw of a job; `verdict` is drawn from it alone
    outcome   verdict, value, output, usage, receipt
    receipt   which walls and limits were in force for this very job
    tier      how much the host can confine, A (most) to E, found by doing

Importing this package does nothing; names resolve on first use, so that a worker imports only what it needs.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.errors import HandlerUnusable as HandlerUnusable
    from sandbox.errors import SandboxClosed as SandboxClosed
    from sandbox.errors import SandboxError as SandboxError
    from sandbox.errors import SandboxUnavailable as SandboxUnavailable
    from sandbox.handlers import Handler as Handler
    from sandbox.limits import Limits as Limits
    from sandbox.model import Failure as Failure
    from sandbox.model import Outcome as Outcome
    from sandbox.model import Output as Output
    from sandbox.model import Receipt as Receipt
    from sandbox.model import Usage as Usage
    from sandbox.model import Verdict as Verdict
    from sandbox.probing import DEFAULT_ISOLATION as DEFAULT_ISOLATION
    from sandbox.probing import Probe as Probe
    from sandbox.probing import at_least as at_least
    from sandbox.probing import probe as probe
    from sandbox.sandbox import Sandbox as Sandbox
    from sandbox.sandbox import SandboxStatistics as SandboxStatistics
    from sandbox.sandbox import encode_pickled as encode_pickled

_HOMES = {
    "DEFAULT_ISOLATION": "probing",
    "Failure": "model",
    "Handler": "handlers",
    "HandlerUnusable": "errors",
    "Limits": "limits",
    "Outcome": "model",
    "Output": "model",
    "Probe": "probing",
    "Receipt": "model",
    "Sandbox": "sandbox",
    "SandboxClosed": "errors",
    "SandboxError": "errors",
    "SandboxStatistics": "sandbox",
    "SandboxUnavailable": "errors",
    "Usage": "model",
    "Verdict": "model",
    "at_least": "probing",
    "encode_pickled": "sandbox",
    "probe": "probing",
}
# In a zygote an application that builds its Sandbox at import must not start itself again: it gets an inert one.
_WORKER_HOMES = {"Sandbox": "inert"}

__all__ = sorted([*_HOMES, "is_worker_process"])  # noqa: PLE0605 - names resolve in __getattr__

_worker_process = False


def is_worker_process() -> bool:
    """Ask whether this process is a zygote or a worker, not a host."""
    return _worker_process


def __getattr__(name: str) -> Any:
    home = (_WORKER_HOMES.get(name) if _worker_process else None) or _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'sandbox' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"sandbox.{home}"), name)
    if name != home:  # a name that is also a module's must not be cached over it
        globals()[name] = value
    return value
