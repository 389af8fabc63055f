"""Worker side: find the modules and functions that the host named. Standard library only (dill for by-value handlers).

A handler travels as a dict:

    {"key", "kind": "import", "module", "qualname", "origin": file or null, "adapter": "module:function"}
    {"key", "kind": "value", "payload": base64 of a dill pickle, "origins": {module: file}, "adapter": …}
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def load_handler(spec: dict[str, Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the handler's function and its adapter; let any exception of an import through."""
    if spec["kind"] == "value":
        function = _load_value(spec)
    else:
        module = load_module(spec["module"], spec.get("origin"))
        function = resolve(module, spec["qualname"])
    module_name, _, name = spec["adapter"].partition(":")
    return function, resolve(importlib.import_module(module_name), name)


def load_module(name: str, origin: str | None) -> ModuleType:
    """Import `name`, from the file `origin` when the import roots do not lead there."""
    if name in sys.modules:
        return sys.modules[name]
    if origin is None:
        return importlib.import_module(name)
    _stand_in_parents(name)
    spec = importlib.util.spec_from_file_location(name, origin)
    if spec is None or spec.loader is None:
        raise ImportError(f"no loader for {origin}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def resolve(root: Any, qualname: str) -> Any:
    """Follow a dotted name from a module or class."""
    for part in qualname.split("."):
        root = getattr(root, part)
    return root


def _stand_in_parents(name: str) -> None:
    # A module loaded from its file may have dotted parents that no import root leads to; unpickling imports them by
    # name, so empty ones are put in their place.
    parts = name.split(".")[:-1]
    for end in range(1, len(parts) + 1):
        parent = ".".join(parts[:end])
        if parent in sys.modules:
            continue
        try:
            importlib.import_module(parent)
        except ImportError:
            sys.modules[parent] = ModuleType(parent)
            sys.modules[parent].__path__ = []


def _load_value(spec: dict[str, Any]) -> Callable[..., Any]:
    import base64

    import dill

    for name, origin in spec.get("origins", {}).items():
        load_module(name, origin)
    function: Callable[..., Any] = dill.loads(base64.b64decode(spec["payload"]))
    return function
