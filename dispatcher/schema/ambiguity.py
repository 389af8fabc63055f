"""Find schemas whose validation takes time exponential in the depth of a value: a short hostile call would hang the host.

A recursive schema is checked in linear time as long as at most one way leads from it back to itself at each step down
into the value. With two (a union of two forms that both hold the union under the same name), the work doubles with every
level, in any validator that tries the forms one after the other. Known as exponential ambiguity of automata; ours is the
conservative test: two ways for the same step into one strongly connected component.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from dispatcher.schema.pointer import escape, follow

MOST_WAYS = 4_096
MOST_VISITS = 50_000
MOST_IN_PLACE = 1_024
MOST_AT_ONCE = 256
_IN_PLACE = ("not", "if", "then", "else")
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_ANY_PROPERTY = ("additionalProperties", "unevaluatedProperties")
_ANY_ITEM = ("items", "unevaluatedItems")
_REFERENCES = ("$ref", "$dynamicRef")
_NO_SCHEMAS = ("enum", "const", "default", "examples")


@dataclass(frozen=True, slots=True)
class _Step:
    """Name a way down into a value: a property or an item by name, or with `name=None` any but those in `but`."""

    into: str
    name: str | None
    but: frozenset[str] = frozenset()

    def meets(self, other: "_Step") -> bool:
        """Ask whether both may lead to the same place."""
        if self.into != other.into or (self.name is not None and self.name in other.but):
            return False
        return (None in (self.name, other.name) and other.name not in self.but) or self.name == other.name


Way = tuple[_Step, str]  # and the pointer of the subschema for what is there


WORDS = "leads back to itself in two ways at once: checking a deep value would take exponential time"


def refuse_ambiguity(schema: Any, *, tool: str, remedy: str, is_typed: bool = False) -> None:
    """Raise `ValueError` naming the tool, the schema's pointer and the remedy for what `find_ambiguity` finds."""
    try:
        pointer = find_ambiguity(schema, is_typed=is_typed)
    except ValueError as error:
        raise ValueError(f"tool {tool!r}: {error}; {remedy}") from None
    if pointer is not None:
        raise ValueError(f"tool {tool!r}: schema {pointer}: it {WORDS}; {remedy}")


def find_ambiguity(schema: Any, *, is_typed: bool = False) -> str | None:
    """Return the pointer of a subschema that leads to itself in two ways at once, `None` if there is none.

    `is_typed` says that a discriminator chooses one form, as pydantic has it. Raises `ValueError` for a schema whose
    references multiply beyond what may be looked at.
    """
    if not any(True for _ in _references(schema)):
        return None
    graph = _Graph(schema, is_typed)
    reach = graph.reach()
    for pointer, choices in graph.ways.items():
        for ways in choices:
            back = [way for way in ways if pointer in reach[way[1]]]
            for index, (step, _) in enumerate(back):
                if any(step.meets(other) for other, _ in back[:index]):
                    return pointer or "(root)"
    return "(root)" if _Factor(graph, reach).of("") > MOST_AT_ONCE else None


class _Factor:
    """Bound how many ways through a schema without such circles may be tried for one value: forms within forms multiply."""

    def __init__(self, graph: "_Graph", reach: dict[str, set[str]]) -> None:
        self._graph = graph
        self._reach = reach
        self._known: dict[str, int] = {}

    def of(self, pointer: str) -> int:
        """Return the bound for what is at `pointer`; within a circle each step has one way on, and others lead out."""
        if pointer not in self._known:
            self._known[pointer] = 1  # while we look: a circle alone multiplies nothing
            circle = [other for other in self._reach[pointer] if pointer in self._reach[other]]
            found = max(self._of_ways(ways, circle) for member in circle for ways in self._graph.ways[member])
            self._known.update(dict.fromkeys(circle, found))
        return self._known[pointer]

    def _of_ways(self, ways: "list[Way]", circle: list[str]) -> int:
        factors = [1 if target in circle else self.of(target) for _, target in ways]
        together = (
            sum(factor for (other, _), factor in zip(ways, factors, strict=True) if step.meets(other)) for step, _ in ways
        )
        return min(max(together, default=1), MOST_AT_ONCE + 1)


def _references(node: Any) -> Iterator[Any]:
    stack = [node]
    while stack:
        here = stack.pop()
        if isinstance(here, Mapping):
            yield from (here[name] for name in _REFERENCES if isinstance(here.get(name), str))
            stack += [child for key, child in here.items() if key not in _NO_SCHEMAS]
        elif isinstance(here, list):
            stack += here


class _Graph:
    """Hold, for every subschema that is reached by a step, the ways on from it; a list for each choice."""

    def __init__(self, schema: Any, is_typed: bool) -> None:
        self._schema = schema
        self._is_typed = is_typed
        self._anchors: dict[str, str] = {}
        self._bases: dict[str, str] = {}
        self._collect(schema, "", "")
        self.ways: dict[str, list[list[Way]]] = {}
        self._left = MOST_VISITS
        waiting = [""]
        while waiting:
            pointer = waiting.pop()
            if pointer in self.ways:
                continue
            before = self._left
            self.ways[pointer] = self._choices(pointer, ())
            if before - self._left > MOST_IN_PLACE:
                raise ValueError(f"schema {pointer or '(root)'}: it applies more than {MOST_IN_PLACE} schemas to one value")
            waiting += [target for ways in self.ways[pointer] for _, target in ways]

    def reach(self) -> dict[str, set[str]]:
        """Return, for each subschema, itself and those that some steps lead to."""
        next_to = {pointer: {target for ways in choices for _, target in ways} for pointer, choices in self.ways.items()}
        reached: dict[str, set[str]] = {}
        for pointer in next_to:
            seen, stack = {pointer}, [pointer]
            while stack:
                fresh = next_to[stack.pop()] - seen
                seen |= fresh
                stack += fresh
            reached[pointer] = seen
        return reached

    def _collect(self, node: Any, pointer: str, base: str) -> None:
        stack: list[tuple[Any, str, str]] = [(node, pointer, base)]
        while stack:
            here, where, root = stack.pop()
            if isinstance(here, list):
                stack += [(child, f"{where}/{index}", root) for index, child in enumerate(here)]
            if not isinstance(here, Mapping):
                continue
            if isinstance(here.get("$id"), str):
                root = urljoin(root, here["$id"])
                self._anchors[urldefrag(root).url] = where
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(here.get(keyword), str):
                    self._anchors.setdefault(f"{urldefrag(root).url}#{here[keyword]}", where)
            self._bases[where] = root
            stack += [
                (child, f"{where}/{escape(key)}", root) for key, child in here.items() if key not in _NO_SCHEMAS
            ]

    def _resolve(self, reference: str, pointer: str) -> str | None:
        url, fragment = urldefrag(urljoin(self._bases.get(pointer, ""), reference))
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(f"{url}#{fragment}")
        root = self._anchors.get(url, "" if url in ("", self._bases.get("", "")) else None)
        return None if root is None else root + unquote(fragment)

    def _choices(self, pointer: str, path: tuple[str, ...]) -> list[list[Way]]:
        """Return the ways down from a subschema and from all that it applies to the same value."""
        try:
            node = follow(self._schema, pointer)
        except LookupError:
            return [[]]
        if not isinstance(node, Mapping) or pointer in path:
            return [[]]
        self._left -= 1
        if self._left < 0:
            raise ValueError(f"schema {pointer or '(root)'}: its references lead in more than {MOST_VISITS} ways")
        path = (*path, pointer)
        if self._is_typed and "discriminator" in node and isinstance(node.get("oneOf"), list):
            return [ways for i in range(len(node["oneOf"])) for ways in self._choices(f"{pointer}/oneOf/{i}", path)]
        choices = [list(_down(node, pointer))]
        for target in self._applied(node, pointer):
            choices = [a + b for a in choices for b in self._choices(target, path)]
            if sum(map(len, choices)) > MOST_WAYS:
                raise ValueError(f"schema {pointer or '(root)'}: its references multiply to more than {MOST_WAYS} ways")
        return choices

    def _applied(self, node: Mapping[str, Any], pointer: str) -> Iterator[str]:
        for keyword in _REFERENCES:
            if isinstance(node.get(keyword), str):
                target = self._resolve(node[keyword], pointer)
                if target is not None:
                    yield target
        for keyword in _IN_PLACE_LISTS:
            if isinstance(node.get(keyword), list):
                yield from (f"{pointer}/{keyword}/{index}" for index in range(len(node[keyword])))
        yield from (f"{pointer}/{keyword}" for keyword in _IN_PLACE if keyword in node)
        if isinstance(node.get("dependentSchemas"), Mapping):
            yield from (f"{pointer}/dependentSchemas/{escape(name)}" for name in node["dependentSchemas"])


def _down(node: Mapping[str, Any], pointer: str) -> Iterator[Way]:
    named = node.get("properties")
    names = [str(name) for name in named] if isinstance(named, Mapping) else []
    for name in names:
        yield _Step("property", name), f"{pointer}/properties/{escape(name)}"
    patterns = node.get("patternProperties")
    for pattern in patterns if isinstance(patterns, Mapping) else ():
        yield _Step("property", None), f"{pointer}/patternProperties/{escape(pattern)}"
    for keyword in _ANY_PROPERTY:
        if isinstance(node.get(keyword), Mapping):
            yield _Step("property", None, frozenset(names)), f"{pointer}/{keyword}"
    prefix = node.get("prefixItems")
    count = len(prefix) if isinstance(prefix, list) else 0
    for index in range(count):
        yield _Step("item", str(index)), f"{pointer}/prefixItems/{index}"
    for keyword in _ANY_ITEM:
        if isinstance(node.get(keyword), Mapping):
            yield _Step("item", None, frozenset(map(str, range(count)))), f"{pointer}/{keyword}"
    if isinstance(node.get("contains"), Mapping):
        yield _Step("item", None), f"{pointer}/contains"
