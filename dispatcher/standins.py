"""What a worker gets in place of the host's `Registry` and `Dispatcher`. Standard library only.

Importing an application in a worker must neither start it again nor import what only the host needs.
"""

from collections.abc import Callable, Iterator
from typing import Any


class Registry:
    """Register nothing; decorators return functions unchanged."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def tool(self, function: Any = None, **options: Any) -> Any:
        """Return the function unchanged."""
        return function if function is not None else lambda decorated: decorated

    def register(self, *arguments: Any, **options: Any) -> None:
        """Do nothing."""

    def add(self, *functions: Callable[..., Any]) -> None:
        """Do nothing."""

    def names(self) -> list[str]:
        """Return none."""
        return []

    def get(self, name: str) -> None:
        """Return none."""

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, name: object) -> bool:
        return False


class Dispatcher:
    """Construct without effect; raise `RuntimeError` on use."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def __enter__(self) -> "Dispatcher":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError("a Dispatcher cannot be used inside a worker: tools do not start tools")
