"""Dispatch a model's tool call: parse, coerce, validate, run in a disposable process, answer with an observation.

    from dispatcher import Dispatcher, Registry

    registry = Registry()

    @registry.tool(effect="read")
    def double(number: int) -> int:
        return 2 * number

    with Dispatcher(registry) as dispatcher:
        print(dispatcher.execute("double", '{"number": 21}').to_json())

Glossary, one word an idea:
    tool         a declaration: name, description, parameters, handler, limits, error catalogue
    handler      the function behind it
    call         what the model asked
    job, outcome what the sandbox is asked, and what it saw
    observation  what the model reads
    record       what people read; it shares only code, reason and correlation id with the observation
    fault        an error as data, until the last step renders it
    problem      one wrong place in the arguments: pointer, keyword, words

Importing this package does nothing; names resolve on first use. In a worker they resolve to inert stand-ins where the
host's own would start the application again.
"""

from typing import TYPE_CHECKING, Any

import sandbox as _sandbox

if TYPE_CHECKING:
    from dispatcher.call import Call as Call
    from dispatcher.coerce import Coerce as Coerce
    from dispatcher.context import ToolContext as ToolContext
    from dispatcher.declaration import Tool as Tool
    from dispatcher.declare import tool as tool
    from dispatcher.dispatcher import Dispatcher as Dispatcher
    from dispatcher.errors import DispatcherClosed as DispatcherClosed
    from dispatcher.errors import DispatcherError as DispatcherError
    from dispatcher.errors import ErrorSpec as ErrorSpec
    from dispatcher.errors import ToolError as ToolError
    from dispatcher.observation import Observation as Observation
    from dispatcher.record import CallRecord as CallRecord
    from dispatcher.registry import Registry as Registry
    from sandbox import Limits as Limits
    from sandbox import SandboxUnavailable as SandboxUnavailable

_HOMES = {
    "Call": "dispatcher.call",
    "CallRecord": "dispatcher.record",
    "Coerce": "dispatcher.coerce",
    "Dispatcher": "dispatcher.dispatcher",
    "DispatcherClosed": "dispatcher.errors",
    "DispatcherError": "dispatcher.errors",
    "ErrorSpec": "dispatcher.errors",
    "Limits": "sandbox.limits",
    "Observation": "dispatcher.observation",
    "Registry": "dispatcher.registry",
    "SandboxUnavailable": "sandbox.errors",
    "Tool": "dispatcher.declaration",
    "ToolContext": "dispatcher.context",
    "ToolError": "dispatcher.errors",
    "from_exception": "dispatcher.upstream",
    "from_http": "dispatcher.upstream",
    "tool": "dispatcher.declare",
}
_WORKER_HOMES = {"Dispatcher": "dispatcher.standins", "Registry": "dispatcher.standins"}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - names resolve in __getattr__


def __getattr__(name: str) -> Any:
    in_worker = _sandbox.is_worker_process()
    home = (_WORKER_HOMES.get(name) if in_worker else None) or _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dispatcher' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
