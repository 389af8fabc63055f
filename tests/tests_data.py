"""The corpus as data."""

import json
from pathlib import Path

HERE = Path(__file__).parent / "data"
TOOLS = json.loads((HERE / "tools.json").read_text(encoding="utf-8"))
ROWS = [json.loads(line) for line in (HERE / "arguments.jsonl").read_text(encoding="utf-8").splitlines()]
