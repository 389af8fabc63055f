"""JSON Pointers (RFC 6901): "" is the root, `~` is written `~0` and `/` is written `~1`."""


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


def first_field(pointer: str) -> str | None:
    """Return the top-level name that a pointer goes through, `None` for the root."""
    parts = split(pointer)
    return parts[0] if parts else None
