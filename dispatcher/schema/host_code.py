"""Find what a pydantic core schema would run in the host: only declarative constraints may run there (C3, C5).

Functions are refused unless they are known to be harmless: pydantic itself brings some that import modules by name,
look at the file system, raise numbers to a power the model chose, or call the user's code from a closure.
"""

import collections
import copy
import enum
import functools
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dispatcher.schema.core_schema import ANY_KEYS, CANONICAL

_VALUES = ("default", "gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length")
_SCALARS = frozenset({str, int, float, bool, bytes, type(None)})
PLAIN_FACTORIES = (list, dict, set, tuple, frozenset)
_HARMLESS = {
    "pydantic._internal._generate_schema": ("GenerateSchema._path_schema.<locals>.path_validator",),
    "pydantic._internal._known_annotated_metadata": ("apply_known_metadata.<locals>.val_func",),  # its closure is asked
    "pydantic._internal._validators": (
        "ip_v4_address_validator", "ip_v6_address_validator", "ip_v4_network_validator", "ip_v6_network_validator",
        "ip_v4_interface_validator", "ip_v6_interface_validator", "validate_str_is_valid_iana_tz",
        "sequence_validator", "defaultdict_validator", "deque_validator", "greater_than_validator",
        "greater_than_or_equal_validator", "less_than_validator", "less_than_or_equal_validator",
        "multiple_of_validator", "min_length_validator", "max_length_validator", "forbid_inf_nan_check",
    ),
    "pydantic.networks": (
        "_BaseUrl.__get_pydantic_core_schema__.<locals>.wrap_val",
        "_BaseMultiHostUrl.__get_pydantic_core_schema__.<locals>.wrap_val",
        "IPvAnyAddress._validate", "IPvAnyInterface._validate", "IPvAnyNetwork._validate", "EmailStr._validate",
        "NameEmail._validate",
    ),
    "pydantic.types": ("ByteSize._validate", "EncodedBytes.decode", "EncodedStr.decode_str", "SecretStr",
                       "SecretBytes"),
    "ipaddress": ("IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network", "IPv4Interface", "IPv6Interface"),
}  # fmt: skip
# What making, filling, comparing, hashing, copying and pickling an instance would call.
_HOOKS = ("__new__", "__setattr__", "__getattribute__", "__getattr__", "__reduce__", "__reduce_ex__", "__getstate__",
          "__getnewargs__", "__getnewargs_ex__", "__hash__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__",
          "__deepcopy__", "__copy__", "__post_init__", "__del__", "_missing_")  # fmt: skip
_TRUSTED_ROOTS = frozenset({"pydantic", "pydantic_core", "typing_extensions", *sys.stdlib_module_names})
_NO_SCHEMAS = ("serialization", "metadata", "ref", "default", "expected", "members")


def find_code(node: Any) -> str | None:
    """Return the words for the first part of a core schema that would run foreign code, `None` if there is none."""
    return next((words for part in _nodes(node) for words in _code_of(part)), None)


def _nodes(node: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every part of a core schema, outermost first; values, that may look like one, are none."""
    if isinstance(node, list | tuple):
        for item in node:
            yield from _nodes(item)
    elif isinstance(node, Mapping):
        yield node
        for key, child in node.items():
            if key not in _NO_SCHEMAS:
                yield from _nodes(child)


def _code_of(node: Mapping[str, Any]) -> Iterator[str]:
    kind = str(node.get("type", ""))
    if kind.startswith("function"):
        yield from _code_of_function(node)
    factory = node.get("default_factory")
    if factory is not None and not _is_plain_factory(factory):
        yield f"the default factory {_name(factory)}"
    if "python-re" in (node.get("regex_engine"), (node.get("config") or {}).get("regex_engine")):
        yield "regex_engine='python-re'"
    if node.get("custom_init"):
        yield f"the __init__ of {_name(node['cls'])}"
    if kind == "dataclass" and node.get("post_init"):
        yield f"the __post_init__ of {_name(node['cls'])}"
    if kind == "model" and node.get("post_init") and not _is_plain_post_init(node["cls"]):
        yield f"the post-init hook of {_name(node['cls'])}"
    if kind == "tagged-union" and callable(node.get("discriminator")):
        yield f"the discriminator {_name(node['discriminator'])}"
    owner = node.get("function") if kind == "call" else node.get("cls")
    if isinstance(owner, type):
        yield from _hooks_of(owner)
        if kind in ("call", "named-tuple") and _is_foreign_hook(owner, "__init__"):
            yield f"__init__ of {_name(owner)}"
        if _is_foreign_hook(type(owner), "__call__"):
            yield f"__call__ of {_name(type(owner))}"
    # Choices and bounds are compared with what the model sent, defaults are copied for each call.
    values = [*node.get("members", ()), *node.get("expected", ()), *(node[key] for key in _VALUES if key in node)]
    for value in values:
        yield from _code_of_value(value)


def _hooks_of(owner: type) -> Iterator[str]:
    yield from (f"{hook} of {_name(owner)}" for hook in _HOOKS if _is_foreign_hook(owner, hook))


def _code_of_value(value: Any) -> Iterator[str]:
    """Yield the words for what comparing or copying a value would run."""
    stack, seen = [value], set[int]()
    while stack:
        here = stack.pop()
        if type(here) in _SCALARS or id(here) in seen:
            continue
        seen.add(id(here))
        if isinstance(here, dict):
            stack += [*here.keys(), *here.values()]
        elif isinstance(here, list | tuple | set | frozenset | collections.deque):
            stack += here
        elif isinstance(here, enum.Enum):
            stack.append(here.value)
        elif not isinstance(here, type | types.FunctionType):
            stack += getattr(here, "__dict__", {}).values()
            stack += [getattr(here, name) for name in _slots_of(type(here)) if hasattr(here, name)]
        if not isinstance(here, type):
            yield from _hooks_of(type(here))


def _slots_of(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


def _code_of_function(node: Mapping[str, Any]) -> Iterator[str]:
    holder = node.get("function")
    function = holder.get("function") if isinstance(holder, Mapping) else holder
    foreign = _foreign_part(function)
    if foreign is not None:
        yield f"the validator {_name(foreign)}"


def _foreign_part(value: Any) -> Any:
    """Return the part of a function, or of what it holds, that is somebody else's code; `None` if there is none."""
    if type(value).__module__ == "annotated_types":  # Predicate and its kin hold a function
        return _first_foreign(getattr(value, name, None) for name in type(value).__dataclass_fields__)
    if not callable(value):
        return value if next(_code_of_value(value), None) is not None else None
    if isinstance(value, types.BuiltinFunctionType | types.MethodDescriptorType):
        return None
    if isinstance(value, functools.partial):
        return _first_foreign((value.func, *value.args, *value.keywords.values()))
    if isinstance(value, type):
        return None if value.__module__.partition(".")[0] in _TRUSTED_ROOTS else value
    if getattr(value, "__qualname__", "") not in _HARMLESS.get(getattr(value, "__module__", None) or "", ()):
        return value
    held = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
    encoder = getattr(getattr(value, "__self__", None), "encoder", None)  # of EncodedBytes and EncodedStr
    return _first_foreign((*held, encoder))


def _first_foreign(values: Iterable[Any]) -> Any:
    return next((part for value in values if (part := _foreign_part(value)) is not None), None)


def _is_plain_factory(factory: Any) -> bool:
    return any(factory is plain for plain in PLAIN_FACTORIES)


def _is_plain_post_init(model: Any) -> bool:
    """Ask whether the hook is pydantic's own, which sets private attributes, and these run nothing."""
    if not str(getattr(model.model_post_init, "__module__", "")).startswith("pydantic."):
        return False
    attributes = model.__private_attributes__.values()
    if any(next(_code_of_value(attribute.default), None) is not None for attribute in attributes):
        return False
    factories = [attribute.default_factory for attribute in attributes]
    return all(factory is None or _is_plain_factory(factory) for factory in factories)


def _is_foreign_hook(owner: type, hook: str) -> bool:
    for kind in owner.__mro__:
        if hook in vars(kind):
            function = getattr(vars(kind)[hook], "__func__", vars(kind)[hook])
            is_generated = getattr(getattr(function, "__code__", None), "co_filename", "").startswith("<string")
            is_python = isinstance(function, types.FunctionType)
            return is_python and not is_generated and function.__module__.partition(".")[0] not in _TRUSTED_ROOTS
    return False


def _name(thing: Any) -> str:
    return str(getattr(thing, "__qualname__", None) or type(thing).__qualname__)[:80]


def find_unfit(node: Any) -> str | None:
    """Return the words for a part that no JSON value can satisfy, or that would be checked too late; else `None`."""
    return next((words for part in _nodes(node) if (words := _unfit(part)) is not None), None)


def _unfit(node: Mapping[str, Any]) -> str | None:
    return _UNFIT.get(str(node.get("type", ""))) or _unfit_key(node) or _unfit_name(node)


_CHANGES = ("strip_whitespace", "to_lower", "to_upper")


def _unfit_key(node: Mapping[str, Any]) -> str | None:
    """Refuse keys that two texts may stand for: one entry would hide another."""
    key = node.get("keys_schema") if node.get("type") == "dict" else None
    while isinstance(key, Mapping) and str(key.get("type", "")).startswith("function-") and "schema" in key:
        key = key["schema"]
    if isinstance(key, Mapping) and any(key.get(change) for change in _CHANGES):
        return "the keys of a mapping stay as they are: neither stripped nor changed in case"
    if not isinstance(key, Mapping) or key.get("type") in (*ANY_KEYS, *CANONICAL):
        return None
    if key.get("type") == "literal" and all(isinstance(value, str) for value in key["expected"]):
        return None
    if key.get("type") == "enum" and all(isinstance(member.value, str) for member in key["members"]):
        return None
    return "the keys of a mapping are texts, integers, booleans, dates, UUIDs or choices among texts"


def find_uncopyable(node: Any) -> str | None:
    """Return the words for a default that cannot be copied, as each call that leaves it out would; else `None`."""
    return next((words for part in _nodes(node) if (words := _uncopyable(part)) is not None), None)


def _uncopyable(node: Mapping[str, Any]) -> str | None:
    try:
        copy.deepcopy(node.get("default"))
    except Exception as error:
        return f"the default {type(node['default']).__name__} cannot be copied ({type(error).__name__})"
    return None


def _unfit_name(node: Mapping[str, Any]) -> str | None:
    if node.get("validation_alias") is not None and not isinstance(node["validation_alias"], str):
        return "a property has one name: give one alias, neither several nor a path"
    return None


_UNFIT = {
    "json": "JSON inside a string would be read by another, laxer parser; annotate the value itself",
    "complex": "JSON has no complex numbers",
    "generator": "an Iterable is checked only while it is read; annotate list[...]",
    "callable": "no JSON value is callable",
    "is-subclass": "no JSON value is a class",
}
