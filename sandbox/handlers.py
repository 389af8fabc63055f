"""Bring a function into the form in which it travels to a worker (C2).

An importable function travels as "module:qualname"; everything else (a lambda, a closure, a bound method, a partial, a
local class's method, a function of `__main__`) by value, with dill, host to worker only. An entry point given as text
is never imported in the host.
"""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import MethodType
from typing import Any

from sandbox import loading
from sandbox.errors import HandlerUnusable

ADAPTER = "sandbox.worker:call_plainly"
_ENTRY_POINT = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_TRIAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trial.py")
_TRIAL_S = 20.0
_TRIED_KEPT = 1_000
_tried: dict[str, None] = {}  # keys of handlers, down to the last byte, that have loaded in a clean process


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """Hold a function as it travels. Equal handlers are loaded once; `key` is a short name that only they share.

    `kind` is "import" or "value". `origin` is the module's file where the import roots do not lead to it. `readable`
    are absolute paths that its workers may read. `classes` are the tokens of those that `payload` brings. `adapter`
    ("module:function") calls the function in the worker. `missing` are names that a function by value uses and that its
    module did not have yet, `is_provisional` that the module was still being imported: it may be made again then.
    """

    kind: str
    name: str
    module: str = ""
    qualname: str = ""
    origin: str | None = None
    payload: bytes = field(default=b"", repr=False)
    classes: frozenset[str] = field(default=frozenset(), repr=False)
    missing: frozenset[str] = frozenset()
    origins: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    readable: tuple[str, ...] = ()
    adapter: str = ADAPTER
    isolation: str | None = None
    is_provisional: bool = field(default=False, compare=False, repr=False)
    key: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        wire = json.dumps(self.to_wire_unkeyed(), sort_keys=True)
        object.__setattr__(self, "key", hashlib.sha256(wire.encode()).hexdigest()[:16])  # it is asked for at every step

    @staticmethod
    def of(
        target: "Callable[..., Any] | str | Handler",
        *,
        readable: Sequence[str] = (),
        by_value: bool | None = None,
        adapter: str = ADAPTER,
        isolation: str | None = None,
    ) -> "Handler":
        """Return the travelling form of `target`: a callable, or "module:qualname", which is never imported here.

        `by_value=None` chooses. A handler by value is loaded once in a clean child. Raises `HandlerUnusable` (a
        `ValueError`) naming the object that cannot travel and the remedy, `TypeError` for what is not callable.
        """
        if isinstance(target, Handler):
            return target
        common: dict[str, Any] = {"readable": _checked(readable), "adapter": adapter, "isolation": isolation}
        if isinstance(target, str):
            return _entry_point(target, common)
        if not callable(target):
            raise TypeError(f"a handler must be callable or 'module:qualname', not {type(target).__name__}")
        reference = None if by_value else _import_reference(target)
        if reference is not None:
            return Handler(kind="import", name=_label(target), **reference, **common)
        if by_value is False:
            raise HandlerUnusable(f"{_label(target)} cannot be imported by name; leave by_value out")
        return _by_value(target, common)

    def paths_to_import(self) -> tuple[str, ...]:
        """Return what must be readable to load it behind the walls: `readable`, the import roots and its own files."""
        files = [self.origin, *(file for _, file in self.origins)]
        wanted = {*self.readable, *import_roots(), *(file for file in files if file)}
        return tuple(sorted(path for path in wanted if path != "/" and os.path.exists(path)))

    def is_outdated(self, target: Any) -> bool:
        """Ask whether the module of `target` now has what it did not have when this was made of it."""
        if not self.is_provisional and not self.missing:
            return False
        module = getattr(target, "__module__", None) or ""
        if _is_initializing(module):
            return False
        return self.is_provisional or bool(self.missing & set(vars(sys.modules[module]) if module in sys.modules else ()))

    @property
    def group(self) -> tuple[object, ...]:
        """Say which handlers may share a zygote: one package, or all that travel by value; and the same grants."""
        root = self.module.partition(".")[0] if self.kind == "import" else ""
        return (self.kind, root, self.readable, self.adapter)

    def to_wire(self) -> dict[str, Any]:
        """Return the form that `sandbox.loading` reads."""
        return {"key": self.key, **self.to_wire_unkeyed()}

    def to_wire_unkeyed(self) -> dict[str, Any]:
        """Return everything of the travelling form but its key."""
        wire: dict[str, Any] = {"kind": self.kind, "adapter": self.adapter}
        if self.kind == "import":
            return wire | {"module": self.module, "qualname": self.qualname, "origin": self.origin}
        payload = base64.b64encode(self.payload).decode("ascii")
        return wire | {"payload": payload, "origins": dict(self.origins)}


def import_roots() -> list[str]:
    """Return the host's absolute `sys.path` entries, in order: what a worker may import from."""
    return [entry for entry in sys.path if os.path.isabs(entry)]


def _checked(readable: Sequence[str]) -> tuple[str, ...]:
    if isinstance(readable, str | bytes) or not isinstance(readable, Iterable):
        raise TypeError(f"readable must be a sequence of absolute paths, not {readable!r:.80}")
    for path in readable:
        if not isinstance(path, str | os.PathLike) or not os.path.isabs(path):
            raise ValueError(f"readable path {str(path)[:100]!r} must be absolute")
    return tuple(sorted({os.path.normpath(os.fspath(path)) for path in readable}))


def _entry_point(target: str, common: dict[str, Any]) -> Handler:
    if not _ENTRY_POINT.fullmatch(target):
        raise ValueError(f"entry point {target[:100]!r} must read 'package.module:qualname'")
    module, _, qualname = target.partition(":")
    return Handler(kind="import", name=target, module=module, qualname=qualname, **common)


def _label(target: Any) -> str:
    name = getattr(target, "__qualname__", None) or type(target).__qualname__
    return f"{getattr(target, '__module__', None) or type(target).__module__}:{name}"


def _import_reference(target: Any) -> dict[str, Any] | None:
    """Return module, qualname and origin if a clean process would find this very object by name."""
    module, qualname = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    if isinstance(target, MethodType) and not isinstance(target.__self__, type):
        return None
    if not module or not qualname or module == "__main__" or "<" in qualname:
        return None
    try:
        found = loading.resolve(sys.modules.get(module), qualname)
    except AttributeError:
        if not _is_initializing(module):
            return None
        found = target  # a decorator sees a function before its module has it: most likely it will
    if found is not target and found != target:
        return None
    origin = _origin(module)
    named = {"module": module, "qualname": qualname, "origin": origin}
    return None if origin == "" else named | {"is_provisional": _is_initializing(module)}


def _is_initializing(module: str) -> bool:
    """Ask whether a module is being imported just now."""
    return bool(getattr(getattr(sys.modules.get(module), "__spec__", None), "_initializing", False))


def _origin(module: str) -> str | None:
    """Return the module's file if the import roots do not lead to it, `None` if they do, "" if nothing does."""
    file = getattr(sys.modules[module], "__file__", None)
    if file is None:
        spec = getattr(sys.modules[module], "__spec__", None)
        return None if module in sys.builtin_module_names or spec is not None else ""
    if _is_found_by_roots(module, os.path.abspath(file)):
        return None
    return os.path.abspath(file) if os.path.isfile(file) and file.endswith(".py") else ""


def _is_found_by_roots(module: str, file: str) -> bool:
    spec = getattr(sys.modules[module], "__spec__", None)
    if spec is None or spec.origin is None:
        return False
    base = file.removesuffix("/__init__.py") if file.endswith("/__init__.py") else file.rpartition(".")[0]
    if os.path.basename(file).endswith((".so", ".pyd")):
        return True
    tail = os.sep + module.replace(".", os.sep)
    return base.endswith(tail) and base[: -len(tail)] in import_roots()


def _by_value(target: Any, common: dict[str, Any]) -> Handler:
    from sandbox.by_value import dumps

    origins = tuple(_origins(target))
    try:
        pickled = dumps(target)
    except Exception as error:
        raise _unusable(target, error) from error
    handler = Handler(
        kind="value",
        name=_label(target),
        payload=pickled.data,
        classes=pickled.classes,
        missing=pickled.missing,
        origins=origins,
        **common,
    )
    _try_in_clean_child(handler)
    return handler


def _origins(target: Any) -> Iterator[tuple[str, str]]:
    module = getattr(target, "__module__", None)
    if module and module != "__main__" and module in sys.modules:
        origin = _origin(module)
        if origin:
            yield module, origin


def _unusable(target: Any, error: BaseException) -> HandlerUnusable:
    name, value = _culprit(target)
    what = f"{_label(target)} holds {name} ({type(value).__name__}), which" if name else f"{_label(target)}"
    return HandlerUnusable(
        f"{what} cannot travel to a worker process: {type(error).__name__}: {str(error)[:200]}. "
        "Open such things inside the handler, or give the handler as 'module:qualname'."
    )


def _culprit(target: Any) -> tuple[str, Any]:
    """Name the first captured object that does not pickle."""
    from sandbox.by_value import dumps

    for name, value in _captured(target):
        try:
            dumps(value)
        except Exception:
            return repr(name), value
    return "", None


def _captured(target: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(target, MethodType):
        yield from vars(target.__self__).items() if hasattr(target.__self__, "__dict__") else ()
        target = target.__func__
    if hasattr(target, "func") and hasattr(target, "args") and hasattr(target, "keywords"):
        yield from ((str(index), value) for index, value in enumerate(target.args))
        yield from target.keywords.items()
        yield from _captured(target.func)
        return
    code = getattr(target, "__code__", None)
    if code is None:
        yield from vars(target).items() if hasattr(target, "__dict__") else ()
        return
    for name, cell in zip(code.co_freevars, target.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # an empty cell
            continue
    yield from ((name, target.__globals__[name]) for name in code.co_names if name in target.__globals__)
    yield from ((f"default {index}", value) for index, value in enumerate(target.__defaults__ or ()))


def _try_in_clean_child(handler: Handler) -> None:
    """Load the handler once in a child that shares nothing with this process; raise `HandlerUnusable` if it fails."""
    if handler.key in _tried:
        return
    job = json.dumps({"roots": import_roots(), "handler": handler.to_wire()}).encode()
    command = [sys.executable, "-I", _TRIAL]
    try:
        trial = subprocess.run(command, input=job, capture_output=True, timeout=_TRIAL_S, check=False, cwd="/")
    except subprocess.TimeoutExpired:
        raise HandlerUnusable(f"{handler.name} did not load in a clean process within {_TRIAL_S:g} s") from None
    if trial.stdout.endswith(b"loaded"):
        _tried[handler.key] = None
        if len(_tried) > _TRIED_KEPT:
            del _tried[next(iter(_tried))]
        return
    said = trial.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
    said = said or f"it ended with status {trial.returncode}"
    raise HandlerUnusable(
        f"{handler.name} cannot be loaded in a clean process: {said}. "
        "Open such things inside the handler, or give the handler as 'module:qualname'."
    )
