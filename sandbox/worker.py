"""Be a worker: confine, rehearse, take exactly one job, answer, die. Standard library only.

Processes: the zygote forked us; the host holds the other end of `reply` and reads `output`. We read one JOB frame, send
any number of PROGRESS frames and one REPLY frame, and end without running anything of the interpreter's teardown. The
host may kill us at any point.
"""

import json
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from sandbox import convert, loading, wire

Loaded = Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]]

MESSAGE_CHARACTERS = 2_000
TRACEBACK_CHARACTERS = 8_000
_ASYNC_FLAGS = 0x80 | 0x100 | 0x200  # inspect.CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR
# Written whole, with no allocation, when there is no memory left to say anything else with.
_OUT_OF_MEMORY = wire.frame(wire.REPLY, b'{"failure":{"kind":"memory","type":"MemoryError"}}')


class Job:
    """Give an adapter what it may know of the job it serves, and a way to report progress."""

    __slots__ = ("_reply", "_sent", "context", "deadline", "result_bytes")

    def __init__(self, reply: int, context: dict[str, Any], deadline: float, result_bytes: int) -> None:
        self._reply = reply
        self._sent: list[float] = []
        self.context = context
        self.deadline = deadline
        self.result_bytes = result_bytes

    def progress(self, value: Any) -> None:
        """Send one progress frame; past the budget of 1 KiB, 100 a second and 1,000 in all it is dropped."""
        body = convert.encode_result(value, wire.PROGRESS_BYTES)
        now = time.monotonic()
        if len(self._sent) >= wire.PROGRESS_FRAMES:
            return
        if len(self._sent) >= wire.PROGRESS_PER_S and now - self._sent[-wire.PROGRESS_PER_S] < 1:
            return
        self._sent.append(now)
        write_all(self._reply, wire.frame(wire.PROGRESS, body))


class Labelled:
    """Let an adapter say what its answer is: it travels as `{label: value}`, and paths are those within `value`."""

    __slots__ = ("label", "value")

    def __init__(self, label: str, value: Any) -> None:
        self.label = label
        self.value = value


def call_plainly(function: Callable[..., Any], arguments: dict[str, Any], job: Job) -> Any:
    """Call `function(**arguments)`, awaiting what is to be awaited: the adapter of a sandbox used alone."""
    return settle(function(**arguments))


def settle(value: Any) -> Any:
    """Run a coroutine to its result, read an async generator to a list; return anything else as it is."""
    if hasattr(value, "__await__") or hasattr(value, "__anext__"):
        import asyncio

        return asyncio.run(_await(value))
    return value


async def _await(value: Any) -> Any:
    if hasattr(value, "__anext__"):
        return [item async for item in value]
    return await value


def is_async(function: Callable[..., Any]) -> bool:
    """Ask whether calling `function` gives something to await, so that asyncio is worth loading beforehand."""
    inner = getattr(function, "func", function)
    code = getattr(getattr(inner, "__func__", inner), "__code__", None)
    return bool(code is not None and code.co_flags & _ASYNC_FLAGS)


def serve_one(reply: int, loaded: Loaded, result_bytes: int = 1 << 20) -> None:
    """Take one job from `reply`, answer it and end the process; never returns.

    A host that hangs up before it sends a job ends us silently.
    """
    try:
        request = _read_job(reply)
        if request is not None:
            _answer(reply, request, loaded)
    finally:
        os._exit(0)


def rehearse(reply: int, loaded: Loaded) -> None:
    """Run the decode, call and encode path on dummy data, so that its copy-on-write faults are paid on the shelf."""
    request = json.loads(b'{"handler":"","arguments":{"a":[1,"b"]},"context":{},"wall_s":1.0,"result_bytes":1024}')
    job = Job(reply, request["context"], time.monotonic() + request["wall_s"], request["result_bytes"])
    for _ in range(2):
        value = call_plainly(_echo, request["arguments"], job)
        wire.frame(wire.REPLY, b'{"ok":' + _encode(Labelled("result", value), job.result_bytes) + b"}")


def _echo(a: Any) -> Any:
    return {"a": a}


def _read_job(reply: int) -> tuple[dict[str, Any], bytes] | None:
    header = _read_exactly(reply, wire.HEADER.size)
    if header is None:
        return None
    body = _read_exactly(reply, wire.HEADER.unpack(header)[0])
    if body is None:
        return None
    request = json.loads(body)
    pickled = b""
    if request.get("pickled"):
        header = _read_exactly(reply, wire.HEADER.size)
        pickled = (_read_exactly(reply, wire.HEADER.unpack(header)[0]) or b"") if header else b""
    return request, pickled


def _read_exactly(fd: int, size: int) -> bytes | None:
    data = os.read(fd, size)
    while data and len(data) < size:
        more = os.read(fd, size - len(data))
        if not more:
            return None
        data += more
    return data or (b"" if size == 0 else None)


def _answer(reply: int, request: tuple[dict[str, Any], bytes], loaded: Loaded) -> None:
    order, pickled = request
    deadline = time.monotonic() + order["wall_s"]
    job = Job(reply, order["context"], deadline, order["result_bytes"])
    try:
        if "limits" in order:  # where the host cannot lower them from outside
            _lower_own(order["limits"])
        function, adapter = loaded.get(order["handler"]) or _find_loaded(order["spec"])
        arguments = _unpickle(pickled) if order.get("pickled") else order["arguments"]
        body = b'{"ok":' + _encode(adapter(function, arguments, job), job.result_bytes) + b"}"
    except MemoryError:
        body = b""
    except BaseException as error:
        body = _failure_body(error)
    _flush()
    write_all(reply, wire.frame(wire.REPLY, body) if body else _OUT_OF_MEMORY)


def _encode(answer: Any, limit_bytes: int) -> bytes:
    if type(answer) is Labelled:
        return b'{"%s":%s}' % (answer.label.encode(), convert.encode_result(answer.value, limit_bytes))
    return convert.encode_result(answer, limit_bytes)


def _lower_own(limits: dict[str, int]) -> None:
    from sandbox.linux import rlimits

    cpu_s = limits.pop("cpu_s")
    rlimits.lower_own(limits, cpu_s)


def _find_loaded(spec: dict[str, Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Find a handler of a module that the zygote has loaded for another one."""
    module_name, _, name = spec["adapter"].partition(":")
    function = loading.resolve(sys.modules[spec["module"]], spec["qualname"])
    return function, loading.resolve(sys.modules[module_name], name)


def _unpickle(data: bytes) -> dict[str, Any]:
    # Host to worker only; the other way nothing but JSON ever travels. dill is slow to import, and seldom needed.
    if b"dill" in data:
        import dill

        loaded: dict[str, Any] = dill.loads(data)
        return loaded
    arguments: dict[str, Any] = pickle.loads(data)
    return arguments


def _failure_body(error: BaseException) -> bytes:
    try:
        return json.dumps({"failure": describe(error)}, ensure_ascii=True).encode("ascii")
    except MemoryError:
        return b""
    except BaseException:  # the handler's exception defends itself against being read
        return json.dumps({"failure": {"kind": "error", "type": "unreadable exception"}}).encode("ascii")


def describe(error: BaseException) -> dict[str, Any]:
    """Return what may travel of an exception: bounded text, never the object."""
    if isinstance(error, convert.TooLarge):
        return {"kind": "result_limit", "type": "TooLarge", "message": str(error)[:MESSAGE_CHARACTERS]}
    if isinstance(error, convert.Unconvertible):
        return {"kind": "bad_result", "type": "Unconvertible", "path": error.path, "hint": error.hint}
    described = {"kind": "error", "type": type(error).__name__[:200], "message": _message(error)}
    described["traceback"] = _traceback(error)
    if isinstance(error, OSError) and error.errno in (1, 13, 30, 2, 38):
        described["grant"] = _grant_for(error)
    if isinstance(error, ModuleNotFoundError) and error.name:  # it may be there, where a worker cannot read
        described["grant"] = f"preload=({error.name[:100]!r},)"
    return described


def _message(error: BaseException) -> str:
    try:
        return str(error)[:MESSAGE_CHARACTERS]
    except BaseException:
        return ""


def _traceback(error: BaseException) -> str:
    """Return the innermost frames of the chain, file, line and function, without source lines or messages."""
    lines: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(lines) < 200:
        seen.add(id(current))
        lines += _frames(current)
        lines.append(f"{type(current).__name__[:200]}: {_message(current)[:500]}")
        current = current.__cause__ or current.__context__
    return "\n".join(lines)[:TRACEBACK_CHARACTERS]


def _frames(error: BaseException) -> list[str]:
    frames = []
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        frames.append(f'  File "{code.co_filename}", line {step.tb_lineno}, in {code.co_name}')
        step = step.tb_next
    return frames[-30:]


def _grant_for(error: OSError) -> str:
    """Name the grant that would have let a refused operation through, as far as the error tells."""
    name = error.filename
    if isinstance(name, bytes | str) and error.errno in (2, 13, 30):
        path = os.fsdecode(name)
        if not os.path.isabs(path):
            path = f"/…/{path}"  # a worker's folder is not the host's
        return f"readable=({path[:200]!r},)" if error.errno == 2 else "scratch=True"
    return "subprocess=True" if error.errno == 1 else ""


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            continue


def write_all(fd: int, data: bytes) -> None:
    """Write everything or give up quietly: a host that hung up wants nothing."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        return


def settle_streams() -> None:
    """Let stdout and stderr write by the line; while descriptor 1 is still what it was when Python started."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]


def settle_process() -> None:
    """Do once, after the imports, what every call profits from: small stacks, a frozen heap."""
    import gc
    import threading

    for stream in (sys.stdout, sys.stderr):  # what an import printed is nobody's answer
        stream.flush()
    threading.stack_size(1 << 20)
    gc.collect()
    gc.freeze()


def reset_signals() -> None:
    """Give every signal its default action and unblock all: what a preloaded module installed is not a worker's."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP, signal.SIGXCPU):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
