"""Read files of allowed folders, and of no others: the folder is checked here and walled off by the kernel besides."""

import os
from typing import Annotated

from annotated_types import Len

from dispatcher import Limits, Registry, ToolError

FOLDERS = (os.path.realpath(os.path.join(os.path.dirname(__file__), "data")),)
MAX_BYTES = 8_192


def read_file(path: Annotated[str, Len(1, 400)]) -> str:
    """Read a text file of the allowed folder, by its name relative to it."""
    target = _canonical(path)
    try:
        with open(target, encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError("not_found", path="/path") from None
    except (IsADirectoryError, PermissionError):
        raise ToolError("denied", "It is not a readable file", reason="path", path="/path") from None
    return text if len(text) <= MAX_BYTES else text[:MAX_BYTES] + "\n[cut]"


def _canonical(path: str) -> str:
    """Return the one true path, symlinks and dots resolved; refuse what lies outside the allowed folders."""
    if "\0" in path:
        raise ToolError("denied", "A path holds no NUL", reason="path", path="/path")
    for folder in FOLDERS:
        target = os.path.realpath(os.path.join(folder, path))
        if os.path.commonpath([folder, target]) == folder and target != folder:
            return target
    raise ToolError("denied", "Only files of the allowed folder can be read", reason="path", path="/path")


def register(registry: Registry) -> None:
    """Add the tool."""
    registry.tool(
        effect="read",
        limits=Limits(wall_s=2),
        readable=FOLDERS,
        errors={
            "not_found": "There are notes.txt and poem.txt",
            "denied": "Only files of the allowed folder can be read",
        },
    )(read_file)
