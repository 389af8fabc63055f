"""The argument corpus: every row, through a raw registration."""

import json

import pytest
from tests_data import ROWS, TOOLS

from dispatcher import Registry


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_row_gets_its_answer(row):
    """A row of the corpus is accepted with its arguments, or refused with its code, reason, paths and keywords."""
    tool = TOOLS[row["tool"]]
    registry = Registry()
    coerce = tool["coerce"] if row["coerce"] else None
    registry.register(row["tool"], tool["schema"], "anywhere:handler", coerce=coerce)
    checked = registry.validate(row["tool"], row["raw"])
    expected = row["expect"]
    assert checked.ok == expected["ok"]
    if checked.ok:
        assert json.dumps(checked.arguments) == json.dumps(expected["args"])
        return
    assert checked.code == expected["error"]
    assert checked.reason == expected.get("reason")
    assert [[error.path, error.keyword] for error in checked.errors] == expected.get("errors", [])
