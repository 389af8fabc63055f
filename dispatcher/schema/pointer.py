"""JSON Pointers (RFC 6901): "" is the root, `~` is written `~0` and `/` is written `~1`."""

from typing import Any


def escape(segment: object) -> str:
    """Return one segment, escaped."""
    return str(segment).replace("~", "~0").replace("/", "~1")


def join(path: str, segment: object) -> str:
    """Return the pointer of a child."""
    return f"{path}/{escape(segment)}"


def split(pointer: str) -> list[str]:
    """Return the unescaped segments; ValueError for what is no pointer."""
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise ValueError(f"{pointer[:80]!r} is not a JSON Pointer: it must be empty or start with '/'")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def follow(document: Any, pointer: str) -> Any:
    """Return what a pointer leads to in a JSON document; LookupError where it leads nowhere."""
    here = document
    try:
        for part in split(pointer):
            here = here[int(part)] if isinstance(here, list) else here[part]
    except (KeyError, IndexError, TypeError, ValueError):
        raise LookupError(pointer) from None
    return here


def first_field(pointer: str) -> str | None:
    """Return the top-level name that a pointer goes through, `None` for the root."""
    parts = split(pointer)
    return parts[0] if parts else None


def index_in(part: str, count: int) -> int | None:
    """Return a segment as the index of an array of `count` items, `None` if it is none: any text may be a segment."""
    if not (part.isascii() and part.isdigit()) or len(part) > len(str(count)):
        return None
    return int(part) if int(part) < count else None
