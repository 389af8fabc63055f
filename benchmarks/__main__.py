"""Run a benchmark by name: `python -m benchmarks dispatch [--json]`."""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from benchmarks import dispatch

BENCHMARKS: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[dict[str, Any]], str]]] = {
    "dispatch": (dispatch.measure, dispatch.table),
}


def main(arguments: list[str]) -> None:
    """Measure, then print a table or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=sorted(BENCHMARKS))
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    measure, table = BENCHMARKS[given.name]
    found = measure()
    print(json.dumps(found) if given.json else table(found))


if __name__ == "__main__":
    main(sys.argv[1:])
