"""Run a checked call in the sandbox: the one place where the two packages meet."""

from typing import Any

from dispatcher.pipeline import State
from sandbox import Outcome, Sandbox, encode_pickled


def run(box: Sandbox, state: State) -> Outcome:
    """Run the call's job and return what the sandbox saw."""
    return box.run(**_job(state))


async def run_async(box: Sandbox, state: State) -> Outcome:
    """Do the same on the running event loop."""
    return await box.run_async(**_job(state))


def _job(state: State) -> dict[str, Any]:
    assert state.tool is not None and state.checked is not None
    values = state.checked.arguments or {}
    plain = state.checked.plain
    return {
        "function": state.tool.handler,
        "arguments": values if plain else {},
        "pickled": b"" if plain else encode_pickled(values, state.tool.handler),
        "limits": state.limits,
        "until": state.until,
        "context": {
            "call_id": state.call_id,
            "correlation_id": state.correlation_id,
            "context_parameter": state.tool.context_parameter,
        },
    }
