"""Follow a pointer through a JSON Schema: which subschemas speak of the value that is there. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from dispatcher.schema.pointer import follow, index_in

Forms = Sequence[Mapping[str, Any]]
_MOST = 64
_APPLIED = ("allOf", "anyOf", "oneOf")
_APPLIED_ALONE = ("then", "else")


def forms_of(node: Any, root: Mapping[str, Any]) -> Forms:
    """Return a schema and, depth first, those that it applies to the same value; at most 64, each once."""
    found: list[Mapping[str, Any]] = []
    _collect(node, root, found)
    return found


class Walk:
    """Go down a schema, step by step; what was found once is found at once, for all items of an array alike."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.top = forms_of(root, root)
        self._root = root
        self._known: dict[tuple[int, str | None], Forms] = {}

    def child(self, forms: Forms, part: str) -> Forms:
        """Return the subschemas for one property or item of a value that `forms`, found by this walk, speak of."""
        own = [_own(form, part) for form in forms]
        key = (id(forms), None if all(child is None for child in own) else part)
        if key not in self._known:
            found: list[Mapping[str, Any]] = []
            for form, child in zip(forms, own, strict=True):
                _collect(_any_other(form) if child is None else child, self._root, found)
            self._known[key] = found
        return self._known[key]


def properties_of(forms: Forms) -> list[str]:
    """Return the names of the properties that are spoken of, in the order of the schema."""
    return list(dict.fromkeys(name for form in forms for name in form.get("properties", ())))


def required_of(forms: Forms) -> list[str]:
    """Return the required names, in the order of the schema."""
    return list(dict.fromkeys(str(name) for form in forms for name in form.get("required", ())))


def choices_of(forms: Forms) -> list[Any]:
    """Return the values of every enum and const."""
    return [value for form in forms for value in (form.get("enum") or ([form["const"]] if "const" in form else []))]


def first_of(forms: Forms, keyword: str) -> Any:
    """Return the first value of a keyword, `None` if it is nowhere."""
    return next((form[keyword] for form in forms if keyword in form), None)


def _collect(node: Any, root: Mapping[str, Any], found: list[Mapping[str, Any]]) -> None:
    if not isinstance(node, Mapping) or len(found) >= _MOST or any(node is known for known in found):
        return
    found.append(node)
    for child in _applied(node, root):
        _collect(child, root, found)


def _applied(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(node.get("$ref"), str) and node["$ref"].startswith("#"):
        with suppress(LookupError):
            yield follow(root, node["$ref"][1:])
    for keyword in _APPLIED:
        yield from node.get(keyword, ())
    for keyword in _APPLIED_ALONE:
        yield node.get(keyword)
    yield from node.get("dependentSchemas", {}).values()


def _own(form: Mapping[str, Any], part: str) -> Any:
    """Return the subschema that a form has for this very property or item, `None` if there is none."""
    if part in form.get("properties", ()):
        return form["properties"][part]
    prefix = form.get("prefixItems", ())
    index = index_in(part, len(prefix))
    return None if index is None else prefix[index]


def _any_other(form: Mapping[str, Any]) -> Any:
    return form.get("items") if "items" in form else form.get("additionalProperties")
