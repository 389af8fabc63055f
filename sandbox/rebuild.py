"""Worker side of what travels by value: build functions and classes empty, then fill them, so that they may be circular.

A class is known by its token and built once, however many pickles bring it. Called by unpickling only; standard
library only. The host's half is `sandbox.by_value`.
"""

import builtins
import importlib
import types
from types import CellType, CodeType
from typing import Any

# token: class or type variable
_built: dict[str, Any] = {}


def make_cell() -> CellType:
    """Return an empty cell; it is filled together with the function that closes over it."""
    return CellType()


def make_function(
    code: CodeType, namespace: dict[str, Any], name: str, cells: tuple[CellType, ...]
) -> types.FunctionType:
    """Return a function without its globals, defaults and contents of cells; `namespace` is shared by a module's."""
    namespace.setdefault("__builtins__", builtins.__dict__)
    return types.FunctionType(code, namespace, name, None, cells or None)


def fill_function(made: types.FunctionType, state: dict[str, Any]) -> None:
    """Give a function what it names, closes over and carries."""
    made.__globals__.update(state["globals"])
    for index, value in state["cells"].items():
        (made.__closure__ or ())[index].cell_contents = value
    for name, value in state["attributes"].items():
        setattr(made, name, value)
    vars(made).update(state["dict"])


def find_class(token: str) -> type:
    """Return a class that an earlier pickle brought; KeyError if none has."""
    found: type = _built[token]
    return found


def make_class(token: str, meta: type, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
    """Return the class of that token, built empty by its metaclass unless it is there already."""
    if token not in _built:
        made = types.new_class(name, bases, {"metaclass": meta}, lambda namespace: namespace.update(body))
        _built[token] = made
    return find_class(token)


def make_enum(token: str, meta: Any, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
    """Return the Enum of that token with its members, in order; `body` holds their values and the dunder names."""
    if token not in _built:
        namespace = meta.__prepare__(name, bases)
        for key, value in body.items():
            namespace[key] = value
        _built[token] = meta.__new__(meta, name, bases, namespace)
    return find_class(token)


def make_named_tuple(token: str, name: str, fields: tuple[str, ...], defaults: tuple[Any, ...], module: str) -> type:
    """Return the named tuple of that token."""
    if token not in _built:
        from collections import namedtuple

        _built[token] = namedtuple(name, fields, defaults=defaults, module=module)
    return find_class(token)


def make_typed_dict(token: str, maker: str, name: str) -> type:
    """Return the TypedDict of that token, from the module (`typing` or a twin of it) that made the original."""
    if token not in _built:
        _built[token] = importlib.import_module(maker).TypedDict(name, {})
    return find_class(token)


def make_type_var(
    token: str, name: str, constraints: tuple[Any, ...], bound: Any, covariant: bool, contravariant: bool
) -> Any:
    """Return the type variable of that token."""
    if token not in _built:
        from typing import TypeVar

        _built[token] = TypeVar(
            name, *constraints, bound=bound, covariant=covariant, contravariant=contravariant
        )
    return _built[token]


def parametrise(origin: Any, args: tuple[Any, ...]) -> Any:
    """Return a generic class with its parameters, which makes the same class each time."""
    return origin[args]


def make_new_type(token: str, name: str, base: Any) -> Any:
    """Return the new type of that token."""
    if token not in _built:
        from typing import NewType

        _built[token] = NewType(name, base)
    return _built[token]


def cache(function: Any, size: int | None, typed: bool) -> Any:
    """Return a function behind an empty cache: what the original has cached stays behind."""
    import functools

    return functools.lru_cache(size, typed)(function)


def fill_class(made: type, state: dict[str, Any]) -> None:
    """Give a class its attributes; a class that an earlier pickle filled gets the same ones again."""
    for name, value in state["attributes"].items():
        type.__setattr__(made, name, value)
    for name, attributes in state.get("members", {}).items():
        vars(made.__members__[name]).update(attributes)  # type: ignore[attr-defined]


def same_object(module: str, name: str) -> Any:
    """Return a module's object that is told by its identity, a sentinel."""
    return getattr(importlib.import_module(module), name)
