"""Patterns, matched in linear time by RE2: `$` is the very end, `\\d` is ASCII (C5)."""

from typing import Protocol


class Pattern(Protocol):
    """Match text anywhere, as JSON Schema's `pattern` does."""

    def matches(self, text: str) -> bool:
        """Ask whether the pattern is found in `text`."""
        ...


class _Re2Pattern:
    def __init__(self, pattern: str) -> None:
        import re2

        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled = re2.compile(pattern, options=options)
        except re2.error as error:
            raise ValueError(f"RE2 cannot run this pattern: {_text(error)}") from None

    def matches(self, text: str) -> bool:
        return self._compiled.search(text) is not None


def compile_pattern(pattern: str) -> Pattern:
    """Return the compiled pattern; ValueError for what RE2 cannot run (look-around, back-references)."""
    return _Re2Pattern(pattern)


def _text(error: Exception) -> str:
    said = error.args[0] if error.args else error
    return said.decode("utf-8", "replace")[:100] if isinstance(said, bytes) else str(said)[:100]
