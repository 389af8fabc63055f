"""Pickle by value what no clean process could import: host to worker only, with dill (C2).

dill's own way fails on functions that call each other and on classes that know themselves (an Enum's members, a
pydantic model), and makes a new class with every pickle. Here both are built empty first and filled afterwards, and a
class has a token: the handler's pickle brings it, the arguments of a call only name it, so that `colour is Colour.RED`
holds in the worker. Everything else is dill's.
"""

import builtins
import dataclasses
import dis
import enum
import functools
import inspect
import io
import pickle
import re
import sys
import threading
import uuid
import weakref
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple, NewType, TypeVar

import dill

from sandbox import loading, rebuild

_lock = threading.Lock()
_tokens: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()
# Made anew by whoever makes the class, or about a place that is not the worker's.
_NOT_ATTRIBUTES = frozenset(
    "__dict__ __weakref__ __module__ __qualname__ __slots__ _abc_impl __pydantic_parent_namespace__ "
    "__orig_class__ __annotate_func__ __annotations_cache__ __static_attributes__ __firstlineno__ "
    "__classdictcell__".split()
)
_SENTINELS = {
    id(value): ("dataclasses", name)
    for name, value in vars(dataclasses).items()
    if name in ("MISSING", "KW_ONLY", "_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR", "_HAS_DEFAULT_FACTORY")
}


class Pickled(NamedTuple):
    """Hold a pickle, the tokens of the classes it brings, and names that its functions use and that nobody has yet."""

    data: bytes
    classes: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()


def dumps(value: Any, known: frozenset[str] = frozenset()) -> Pickled:
    """Return the pickle of `value`; classes in `known` it only names. Raises what pickling raises for what cannot travel."""
    file = io.BytesIO()
    try:
        _ByReference(file).dump(value)
    except (_NotByReference, pickle.PicklingError, TypeError, AttributeError):
        file = io.BytesIO()
        pickler = _Pickler(file, known)
        pickler.dump(value)
        return Pickled(file.getvalue(), frozenset(pickler.brought), frozenset(pickler.missing))
    return Pickled(file.getvalue())


class _NotByReference(Exception):
    """Say that a value needs more than the standard library's pickler."""


class _ByReference(pickle.Pickler):
    """Pickle what a clean process could import, dates and importable models for instance, without dill."""

    def reducer_override(self, value: Any) -> Any:
        """Give up at the first thing that is not importable, or that is this process's own."""
        if isinstance(value, type | FunctionType) and not is_importable(value):
            raise _NotByReference
        if type(value) in _BY_KIND or isinstance(value, io.IOBase):
            raise _NotByReference
        return NotImplemented


class _Pickler(dill.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, known: frozenset[str]) -> None:
        super().__init__(file, recurse=True, byref=False, protocol=dill.DEFAULT_PROTOCOL)
        self._known = known
        self._namespaces: dict[int, dict[str, Any]] = {}
        self.brought: set[str] = set()
        self.missing: set[str] = set()

    def reducer_override(self, value: Any) -> Any:
        """Say how this module's kinds are brought; leave everything else to dill."""
        if isinstance(value, type):
            return NotImplemented if is_importable(value) else self._reduce_class(value)
        if type(value) is FunctionType:
            return NotImplemented if is_importable(value) else self._reduce_function(value)
        if id(value) in _SENTINELS:
            return rebuild.same_object, _SENTINELS[id(value)]
        reduce = _BY_KIND.get(type(value))
        if reduce is not None:
            return reduce(value)
        if isinstance(value, io.IOBase):
            return _reduce_stream(value)
        return NotImplemented

    def _reduce_class(self, value: type) -> Any:
        if _is_parametrised(value):
            generic = value.__pydantic_generic_metadata__  # type: ignore[attr-defined]
            return rebuild.parametrise, (generic["origin"], generic["args"])
        token = _token_of(value)
        if token in self._known:
            return rebuild.find_class, (token,)
        self.brought.add(token)
        return _reduce_class(value, token)

    def _reduce_function(self, value: FunctionType) -> Any:
        """Bring a function, and of its globals those that it names; functions of one module share them again."""
        names = _global_names(value.__code__) | _names_in_annotations(value)
        named = {name: value.__globals__[name] for name in sorted(names) if name in value.__globals__}
        namespace = self._namespaces.setdefault(id(value.__globals__), {"__name__": value.__module__})
        cells = value.__closure__ or ()
        contents = {index: cell.cell_contents for index, cell in enumerate(cells) if _is_filled(cell)}
        # A decorator sees a function before its own name is bound: one that calls itself means itself.
        if value.__name__ in names - set(named) and value.__qualname__ == value.__name__:
            named[value.__name__] = value
        if value.__name__ in value.__code__.co_freevars:
            contents.setdefault(value.__code__.co_freevars.index(value.__name__), value)
        self.missing |= names - set(named) - set(vars(builtins))
        state = {
            "globals": named,
            "cells": contents,
            "attributes": {name: getattr(value, name) for name in _FUNCTION_ATTRIBUTES} | _annotations(value),
            "dict": vars(value),
        }
        arguments = (value.__code__, namespace, value.__name__, cells)
        return rebuild.make_function, arguments, state, None, None, rebuild.fill_function


_FUNCTION_ATTRIBUTES = ("__qualname__", "__module__", "__doc__", "__defaults__", "__kwdefaults__")


def _reduce_stream(value: io.IOBase) -> Any:
    for name in ("stdin", "stdout", "stderr"):
        if value is getattr(sys, name):
            return rebuild.same_object, ("sys", name)
    if isinstance(value, io.StringIO | io.BytesIO):
        return NotImplemented
    raise pickle.PicklingError(f"an open file ({str(getattr(value, 'name', ''))[:100]!r}) stays in its process")


def _reduce_type_variable(value: TypeVar) -> Any:
    if value.__module__ not in ("__main__", None):
        return NotImplemented
    variance = (value.__covariant__, value.__contravariant__)
    return rebuild.make_type_var, (
        _token_of(value), value.__name__, value.__constraints__, value.__bound__, *variance,
    )  # fmt: skip


def _reduce_new_type(value: Any) -> Any:
    if value.__module__ != "__main__" and is_importable(value):
        return NotImplemented
    return rebuild.make_new_type, (_token_of(value), value.__name__, value.__supertype__)


_BY_KIND: dict[type, Callable[[Any], Any]] = {
    CellType: lambda cell: (rebuild.make_cell, ()),  # filled with its function, which may be what it holds
    TypeVar: _reduce_type_variable,
    NewType: _reduce_new_type,
    functools._lru_cache_wrapper: lambda value: (
        rebuild.cache,
        (value.__wrapped__, value.cache_parameters()["maxsize"], value.cache_parameters()["typed"]),
    ),
    # A lock's state is that of its process: dill's copy of an idle RLock is held for ever.
    type(threading.Lock()): lambda lock: (threading.Lock, ()),
    type(threading.RLock()): lambda lock: (threading.RLock, ()),
}
_READS_GLOBAL = frozenset("LOAD_GLOBAL STORE_GLOBAL DELETE_GLOBAL LOAD_NAME LOAD_FROM_DICT_OR_GLOBALS".split())


def _global_names(code: CodeType) -> set[str]:
    names = {str(step.argval) for step in dis.get_instructions(code) if step.opname in _READS_GLOBAL}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names


def _names_in_annotations(function: FunctionType) -> set[str]:
    texts = [text for text in _annotations(function)["__annotations__"].values() if isinstance(text, str)]
    return set(re.findall(r"[^\W\d]\w*", " ".join(texts)))


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - asked for the error alone
    except ValueError:
        return False
    return True


def is_importable(kind: Any) -> bool:
    """Ask whether a class or function is found by its module and name, so that a reference is enough."""
    if _is_parametrised(kind):  # some versions of pydantic put it in its module, as long as it lives
        return False
    module = sys.modules.get(kind.__module__) if kind.__module__ != "__main__" else None
    try:
        return loading.resolve(module, kind.__qualname__) is kind
    except AttributeError:
        return _is_unnamed_builtin(kind)


def _is_parametrised(kind: Any) -> bool:
    return (getattr(kind, "__pydantic_generic_metadata__", None) or {}).get("origin") is not None


def _is_unnamed_builtin(kind: Any) -> bool:
    # NoneType, function, generator …: they say "builtins" and are not there; dill knows them.
    is_heap_type = kind.__flags__ & 1 << 9 if isinstance(kind, type) else True  # Py_TPFLAGS_HEAPTYPE, object.h
    return kind.__module__ == "builtins" and not is_heap_type


def _token_of(kind: Any) -> str:
    with _lock:
        if kind not in _tokens:
            _tokens[kind] = uuid.uuid4().hex
        return _tokens[kind]


def _reduce_class(kind: type, token: str) -> tuple[Any, ...]:
    maker, arguments, taken = _maker_of(kind, token)
    attributes = {name: value for name, value in vars(kind).items() if name not in taken and name not in _NOT_ATTRIBUTES}
    state: dict[str, Any] = {"attributes": attributes | _annotations(kind)}
    if isinstance(kind, enum.EnumMeta):
        state["members"] = _member_attributes(kind)
    return maker, arguments, state, None, None, rebuild.fill_class


def _maker_of(kind: Any, token: str) -> tuple[Callable[..., type], tuple[Any, ...], frozenset[str]]:
    """Return what builds the class empty, with what, and the names that come with that."""
    origin = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    if isinstance(kind, enum.EnumMeta):
        members = {name: member._value_ for name, member in kind.__members__.items()}  # type: ignore[var-annotated]
        body = origin | members
        return rebuild.make_enum, (token, type(kind), kind.__name__, kind.__bases__, body), _enum_names(kind)
    if issubclass(kind, tuple) and kind.__bases__ == (tuple,) and hasattr(kind, "_field_defaults"):
        defaults = tuple(kind._field_defaults.values())
        names = frozenset({*kind._fields, "__new__", "_make", "_replace", "_asdict", "__replace__", "__repr__",
                           "__getnewargs__", "__match_args__", "_fields", "_field_defaults"})  # fmt: skip
        return rebuild.make_named_tuple, (token, kind.__name__, kind._fields, defaults, kind.__module__), names
    if type(kind).__name__ == "_TypedDictMeta":
        return rebuild.make_typed_dict, (token, type(kind).__module__, kind.__name__), frozenset({"__new__"})
    if "__slots__" in vars(kind):
        origin |= {"__slots__": kind.__slots__}
    bases = getattr(kind, "__orig_bases__", kind.__bases__) if _is_generic(kind) else kind.__bases__
    body = origin | {name: value for name, value in vars(kind).items() if name in ("__init_subclass__", "__set_name__")}
    return rebuild.make_class, (token, type(kind), kind.__name__, bases, body), _slot_names(kind)


def _is_generic(kind: type) -> bool:
    return "__orig_bases__" in vars(kind)


def _slot_names(kind: type) -> frozenset[str]:
    slots = vars(kind).get("__slots__", ())
    named = (slots,) if isinstance(slots, str) else tuple(slots)
    return frozenset(name for name in named if inspect.ismemberdescriptor(vars(kind).get(name)))


def _enum_names(kind: Any) -> frozenset[str]:
    made = ("_member_names_ _member_map_ _value2member_map_ _unhashable_values_ _unhashable_values_map_ "
            "_hashable_values_ _member_type_ _value_repr_ _use_args_ _new_member_ __new_member__ _all_bits_ "
            "_flag_mask_ _singles_mask_ _inverted_ _boundary_ _generate_next_value_ __new__").split()  # fmt: skip
    own_new = vars(kind).get("__new_member__") is not None  # a __new__ of its own ran when the original was made
    return frozenset({*made, *kind.__members__}) - (frozenset() if not own_new else frozenset({"__new_member__"}))


def _member_attributes(kind: Any) -> dict[str, dict[str, Any]]:
    made = {"_value_", "_name_", "__objclass__", "_sort_order_", "_inverted_"}
    return {
        name: {key: value for key, value in vars(member).items() if key not in made}
        for name, member in kind.__members__.items()
    }


def _annotations(owner: Any) -> dict[str, Any]:
    """Return the own annotations of a class or function as values: since 3.14 they are kept as a function."""
    try:
        return {"__annotations__": dict(inspect.get_annotations(owner))}
    except NameError:  # of something imported for type checkers only
        return {"__annotations__": {}}
