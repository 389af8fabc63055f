"""What a worker gets in place of the host's `Sandbox`: importing an application there must never start it again."""

from typing import Any


class Sandbox:
    """Construct without effect; raise `RuntimeError` on use."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError("a Sandbox cannot be used inside a worker: tools do not start tools")
