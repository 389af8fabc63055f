"""The `core` dialect of raw schemas (C4, C5, C14, C15): linted when registered, compiled to closures, run in order."""

import copy
import difflib
import math
from collections.abc import Callable, Mapping
from typing import Any

from dispatcher.faults import Problem
from dispatcher.schema import wording
from dispatcher.schema.ambiguity import refuse_ambiguity
from dispatcher.schema.patterns import compile_pattern
from dispatcher.schema.pointer import follow, join, split

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
VALIDATING = ("type properties required enum minLength maxLength pattern items additionalProperties minimum maximum "
              "$ref $defs").split()  # fmt: skip
_FULL_ONLY = (
    "allOf anyOf oneOf not if then else dependentSchemas dependentRequired prefixItems contains minContains maxContains "
    "patternProperties propertyNames unevaluatedItems unevaluatedProperties const multipleOf exclusiveMinimum "
    "exclusiveMaximum minItems maxItems uniqueItems minProperties maxProperties format contentEncoding contentMediaType "
    "contentSchema deprecated readOnly writeOnly $id $schema $anchor $dynamicRef $dynamicAnchor $comment $vocabulary"
).split()
ANNOTATIONS = ("title", "description", "default", "examples")
MAX_DEPTH = 64
LENGTHS = ("minLength", "maxLength")
BOUNDS = ("minimum", "maximum")

Problems = list[Problem]
Check = Callable[[Any, str, Problems], bool]  # returns False when the walk ends at this node


class CoreValidator:
    """Validate values against one schema; `schema` is a deep copy of the given one.

    Raises `ValueError` naming the tool, the schema's pointer and the remedy (C5).
    """

    def __init__(self, schema: Any, *, tool: str) -> None:
        self._tool = tool
        self._depth = 0
        _require_json(schema, tool)
        self.schema: dict[str, Any] = copy.deepcopy(schema)
        self._compiled: dict[str, list[Check]] = {}
        self._following: list[str] = []
        root = self._compile(self.schema, "")
        types = _resolved_types(self.schema, self.schema)
        if types != ["object"]:
            raise self._error("/type", 'the root must be an object: say "type": "object"')
        self._root = root
        refuse_ambiguity(self.schema, tool=tool, remedy="let one form lead back to it")

    def validate(self, value: Any) -> tuple[Problem, ...]:
        """Return the problems in C14's order, none for a valid value."""
        problems: Problems = []
        _run(self._root, value, "", problems)
        return tuple(problems)

    def _error(self, pointer: str, text: str) -> ValueError:
        return ValueError(f"tool {self._tool!r}: schema {pointer or '(root)'}: {text}")

    def _compile(self, node: Any, pointer: str) -> list[Check]:
        self._lint_node(node, pointer)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(pointer, f"the schema is deeper than {MAX_DEPTH} levels")
        for name, child in node.get("$defs", {}).items():
            self._compile_definition(name, child, pointer)
        checks: list[Check] = []
        if "$ref" in node:
            checks.append(self._compile_reference(node["$ref"], join(pointer, "$ref")))
        checks += self._compile_keywords(node, pointer)
        self._depth -= 1
        return checks

    def _compile_definition(self, name: str, child: Any, pointer: str) -> None:
        target = join(join(pointer, "$defs"), name)
        if target not in self._compiled:
            self._compiled[target] = []
            self._compiled[target] += self._compile(child, target)

    def _compile_keywords(self, node: dict[str, Any], pointer: str) -> list[Check]:
        checks: list[Check] = []
        if "type" in node:
            checks.append(_type_check(_listed(node["type"]), node.get("enum")))
        if "enum" in node:
            checks.append(_enum_check(node["enum"]))
        checks += self._compile_strings(node, pointer)
        checks += [_bound_check(name, node[name]) for name in BOUNDS if name in node]
        if "items" in node:
            checks.append(_items_check(self._compile(node["items"], join(pointer, "items"))))
        if self._describes_object(node):
            checks.append(self._compile_object(node, pointer))
        return checks

    def _describes_object(self, node: dict[str, Any]) -> bool:
        if {"properties", "required", "additionalProperties"} & set(node):
            return True
        return "object" in _listed(node.get("type", []))

    def _compile_strings(self, node: dict[str, Any], pointer: str) -> list[Check]:
        checks: list[Check] = [_length_check(name, node[name]) for name in LENGTHS if name in node]
        if "pattern" in node:
            try:
                pattern = compile_pattern(node["pattern"])
            except ValueError as error:
                text = f"{error}; write it without look-around and back-references"
                raise self._error(join(pointer, "pattern"), text) from None
            checks.append(_pattern_check(node["pattern"], pattern.matches))
        return checks

    def _compile_object(self, node: dict[str, Any], pointer: str) -> Check:
        where = join(pointer, "properties")
        children = {name: self._compile(child, join(where, name)) for name, child in node.get("properties", {}).items()}
        is_open = node.get("additionalProperties", "$ref" in node) is True
        return _object_check(tuple(node.get("required", ())), children, is_open)

    def _compile_reference(self, reference: Any, pointer: str) -> Check:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise self._error(pointer, 'only local references ("#/$defs/…") can be used')
        target = reference[1:]
        node = self._find(target, pointer)
        self._refuse_circle(target, node, pointer)
        if target == "":
            return lambda value, path, problems: _run(self._root, value, path, problems)
        if target not in self._compiled:
            self._compiled[target] = []
            depth, self._depth = self._depth, len(split(target))
            self._compiled[target] += self._compile(node, target)
            self._depth = depth
        checks = self._compiled[target]
        return lambda value, path, problems: _run(checks, value, path, problems)

    def _find(self, target: str, pointer: str) -> Any:
        try:
            return follow(self.schema, target)
        except LookupError:
            raise self._error(pointer, f"{'#' + target[:80]!r} leads nowhere") from None

    def _refuse_circle(self, target: str, node: Any, pointer: str) -> None:
        seen = {target}
        while isinstance(node, dict) and isinstance(node.get("$ref"), str) and node["$ref"].startswith("#"):
            following = node["$ref"][1:]
            if following in seen:
                raise self._error(pointer, "the reference leads onto itself")
            seen.add(following)
            node = self._find(following, pointer)

    # -- lint ----------------------------------------------------------------------------------------------------

    def _lint_node(self, node: Any, pointer: str) -> None:
        if not isinstance(node, dict):
            raise self._error(pointer, f"a schema must be an object, not {wording.type_name(node)}")
        for keyword in node:
            if keyword not in VALIDATING and keyword not in ANNOTATIONS:
                raise self._error(join(pointer, keyword), _about(keyword))
        self._lint_type(node, pointer)
        self._lint_enum(node, pointer)
        self._lint_bounds(node, pointer)
        self._lint_object(node, pointer)
        self._lint_annotations(node, pointer)

    def _lint_type(self, node: dict[str, Any], pointer: str) -> None:
        if "type" not in node:
            return
        listed = node["type"] if isinstance(node["type"], list) else [node["type"]]
        where = join(pointer, "type")
        if not listed or len({str(name) for name in listed}) != len(listed):
            raise self._error(where, "a list of types must be neither empty nor repeat one")
        for name in listed:
            if name not in TYPES:
                raise self._error(where, f"unknown type {str(name)[:60]!r}; there are {', '.join(TYPES)}")

    def _lint_enum(self, node: dict[str, Any], pointer: str) -> None:
        if "enum" not in node:
            return
        where, values = join(pointer, "enum"), node["enum"]
        if not isinstance(values, list) or not values:
            raise self._error(where, "an enum must be a list of at least one value")
        keys = [_json_key(value) for value in values]
        if len(set(keys)) != len(keys):
            raise self._error(where, "an enum must not repeat a value")
        types = _listed(node.get("type", []))
        for value in values:
            if types and not _is_one_of(value, types):
                raise self._error(
                    where, f"the value {str(value)[:60]!r} is of a type that the schema's own type forbids"
                )

    def _lint_bounds(self, node: dict[str, Any], pointer: str) -> None:
        for name in LENGTHS:
            if name in node and (type(node[name]) is not int or node[name] < 0):
                raise self._error(join(pointer, name), "a length must be a whole number of at least 0")
        for name in BOUNDS:
            if name in node and type(node[name]) not in (int, float):
                raise self._error(join(pointer, name), "a bound must be a number")
        if node.get("minLength", 0) > node.get("maxLength", math.inf):
            raise self._error(join(pointer, "minLength"), "minLength is above maxLength")
        if node.get("minimum", -math.inf) > node.get("maximum", math.inf):
            raise self._error(join(pointer, "minimum"), "minimum is above maximum")
        if "pattern" in node and not isinstance(node["pattern"], str):
            raise self._error(join(pointer, "pattern"), "a pattern must be a string")

    def _lint_object(self, node: dict[str, Any], pointer: str) -> None:
        for name in ("properties", "$defs"):
            if not isinstance(node.get(name, {}), dict):
                raise self._error(join(pointer, name), f"{name} must be an object")
        if not isinstance(node.get("additionalProperties", False), bool):
            raise self._error(join(pointer, "additionalProperties"), "must be true or false; "
                              'dialect="2020-12" accepts a schema here')  # fmt: skip
        required = node.get("required", [])
        where = join(pointer, "required")
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            raise self._error(where, "required must be a list of names")
        if len(set(required)) != len(required):
            raise self._error(where, "required must not repeat a name")
        is_open = node.get("additionalProperties") is True or "$ref" in node
        for name in required:
            if name not in node.get("properties", {}) and not is_open:
                raise self._error(where, f"{name[:60]!r} is required and not among the properties; declare it")

    def _lint_annotations(self, node: dict[str, Any], pointer: str) -> None:
        for name in ("title", "description"):
            if not isinstance(node.get(name, ""), str):
                raise self._error(join(pointer, name), "must be a string")
        if not isinstance(node.get("examples", []), list):
            raise self._error(join(pointer, "examples"), "must be a list")


def _about(keyword: Any) -> str:
    """Say what to do about a keyword that the core dialect does not have."""
    if keyword in _FULL_ONLY:
        return f'the core dialect has no {keyword!r}; dialect="2020-12" accepts it'
    near = difflib.get_close_matches(str(keyword)[:60], (*VALIDATING, *ANNOTATIONS, *_FULL_ONLY), 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f'{str(keyword)[:60]!r} is no keyword of JSON Schema{hint} (dialect="2020-12" accepts it as a note)'


def _run(checks: list[Check], value: Any, path: str, problems: Problems) -> bool:
    return all(check(value, path, problems) for check in checks)


def _listed(types: Any) -> list[str]:
    return [types] if isinstance(types, str) else list(types)


def _resolved_types(node: Any, root: Mapping[str, Any]) -> list[str]:
    seen = 0
    while isinstance(node, dict) and "type" not in node and isinstance(node.get("$ref"), str) and seen < 16:
        seen += 1
        node = follow(root, node["$ref"][1:])
    return _listed(node.get("type", []))


def _require_json(schema: Any, tool: str) -> None:
    stack: list[tuple[Any, str, int]] = [(schema, "", 1)]
    while stack:
        value, pointer, depth = stack.pop()
        if depth > 4 * MAX_DEPTH:
            raise ValueError(f"tool {tool!r}: schema {pointer[:200]}: the schema is deeper than {MAX_DEPTH} levels")
        if type(value) is dict and all(type(key) is str for key in value):
            stack += [(child, join(pointer, key), depth + 1) for key, child in value.items()]
        elif type(value) is list:
            stack += [(child, join(pointer, index), depth + 1) for index, child in enumerate(value)]
        elif type(value) not in (str, int, bool, float, type(None)) or (
            type(value) is float and not math.isfinite(value)
        ):
            raise ValueError(f"tool {tool!r}: schema {pointer or '(root)'}: {type(value).__name__} is not JSON")
    if type(schema) is not dict:
        raise ValueError(f"tool {tool!r}: schema (root): a schema must be an object")


def _json_key(value: Any) -> Any:
    """Return a hashable that is equal for values that JSON holds equal: 1 and 1.0 are, true and 1 are not."""
    if type(value) is bool or value is None or type(value) is str:
        return (type(value).__name__, value)
    if type(value) is list:
        return ("list", tuple(_json_key(item) for item in value))
    if type(value) is dict:
        return ("dict", frozenset((key, _json_key(item)) for key, item in value.items()))
    return ("number", value)


def _is_one_of(value: Any, types: list[str]) -> bool:
    name = wording.type_name(value)
    if name == "number" and "integer" in types and float(value).is_integer():
        return True
    return name in types or (name == "integer" and "number" in types)


def _type_check(types: list[str], choices: list[Any] | None) -> Check:
    python = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,),
              "object": (dict,), "null": (type(None),)}  # fmt: skip
    allowed = frozenset(kind for name in types for kind in python[name])

    def check(value: Any, path: str, problems: Problems) -> bool:
        if type(value) in allowed:
            return True
        if choices:  # they help more than their type
            problems.append(wording.not_in_enum(path, choices, value, "type"))
        else:
            problems.append(wording.wrong_type(path, types, value))
        return False

    return check


def _enum_check(values: list[Any]) -> Check:
    keys = frozenset(_json_key(value) for value in values)

    def check(value: Any, path: str, problems: Problems) -> bool:
        if _json_key(value) in keys:
            return True
        problems.append(wording.not_in_enum(path, values, value))
        return False

    return check


def _length_check(name: str, bound: int) -> Check:
    def check(value: Any, path: str, problems: Problems) -> bool:
        if type(value) is not str or (len(value) >= bound if name == "minLength" else len(value) <= bound):
            return True
        problems.append(wording.out_of_bounds(path, name, bound, value))
        return False

    return check


def _pattern_check(text: str, matches: Callable[[str], bool]) -> Check:
    def check(value: Any, path: str, problems: Problems) -> bool:
        if type(value) is not str or matches(value):
            return True
        problems.append(wording.out_of_bounds(path, "pattern", text, value))
        return False

    return check


def _bound_check(name: str, bound: float) -> Check:
    def check(value: Any, path: str, problems: Problems) -> bool:
        if type(value) not in (int, float) or (value >= bound if name == "minimum" else value <= bound):
            return True
        problems.append(wording.out_of_bounds(path, name, bound, value))
        return False

    return check


def _items_check(checks: list[Check]) -> Check:
    def check(value: Any, path: str, problems: Problems) -> bool:
        if type(value) is list:
            for index, item in enumerate(value):
                if len(problems) >= wording.MOST_PROBLEMS:
                    break
                _run(checks, item, f"{path}/{index}", problems)
        return True

    return check


def _object_check(required: tuple[str, ...], children: dict[str, list[Check]], is_open: bool) -> Check:
    known = tuple(children)

    def check(value: Any, path: str, problems: Problems) -> bool:
        if type(value) is not dict:
            return True
        for name in required:
            if name not in value:
                problems.append(wording.missing(join(path, name)))
        for name, checks in children.items():
            if name in value:
                _run(checks, value[name], join(path, name), problems)
        if not is_open:
            for name, item in value.items():
                if len(problems) >= wording.MOST_PROBLEMS:
                    break
                if name not in children:
                    problems.append(wording.unknown(join(path, name), known, item))
        return True

    return check
