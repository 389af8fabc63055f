"""Read files of allowed folders, and of no others: the folder is checked here and walled off by the kernel besides."""

import os
from collections.abc import Sequence
from typing import Annotated

from annotated_types import Len

from dispatcher import Limits, Registry, ToolError

FOLDERS = (os.path.realpath(os.path.join(os.path.dirname(__file__), "data")),)
MAX_CHARACTERS = 8_192


Name = Annotated[str, Len(1, 400)]


def read_file(path: Name) -> str:
    """Read a text file of the allowed folder, by its name relative to it."""
    return read_within(FOLDERS, path)


def read_within(folders: Sequence[str], path: str) -> str:
    """Read a text file that lies within one of `folders` (canonical paths), its first 8,192 characters."""
    target = _canonical(folders, path)
    try:
        with open(target, encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_CHARACTERS + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError("not_found", path="/path") from None
    except OSError:
        raise ToolError("denied", "It is not a readable file", reason="path", path="/path") from None
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "\n[cut]"


def _canonical(folders: Sequence[str], path: str) -> str:
    """Return the one true path, symlinks and dots resolved; refuse what lies outside the allowed folders."""
    if "\0" in path:
        raise ToolError("denied", "A path holds no NUL", reason="path", path="/path")
    for folder in folders:
        target = os.path.realpath(os.path.join(folder, path))
        if os.path.commonpath([folder, target]) == folder and target != folder:
            return target
    raise ToolError("denied", "Only files of the allowed folder can be read", reason="path", path="/path")


def register(registry: Registry, folders: Sequence[str] = FOLDERS) -> None:
    """Add the tool; it reads in `folders` and nowhere else."""
    allowed = tuple(os.path.realpath(folder) for folder in folders)

    def read_allowed(path: Name) -> str:
        return read_within(allowed, path)

    names = sorted(name for folder in allowed for name in os.listdir(folder))[:8]
    registry.tool(
        name="read_file",
        description="Read a text file of the allowed folder, by its name relative to it.",
        effect="read",
        limits=Limits(wall_s=2),
        readable=allowed,
        errors={
            "not_found": f"There are {', '.join(names)}"[:200],
            "denied": "Only files of the allowed folder can be read",
        },
    )(read_file if allowed == FOLDERS else read_allowed)
