"""Find the registry that a command line names."""

import os
import sys
from typing import Any

from dispatcher.cli.talk import UsageProblem

DEFAULT_TOOLS = "tools:registry"


def load_registry(place: str) -> Any:
    """Return the registry at `module:attribute`; the current directory is importable, and its `tools` wins over ours."""
    from importlib import import_module

    from dispatcher import Registry

    module, _, attribute = place.partition(":")
    if not module or not attribute:
        raise UsageProblem(f"--tools {place!r} must read module:attribute")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:
        raise UsageProblem(f"--tools {place!r} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(found, Registry):
        raise UsageProblem(f"--tools {place!r} is {type(found).__name__}, not a Registry")
    return found
