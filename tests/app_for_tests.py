"""An application as users write it: its registry and a Dispatcher at module level, made again nowhere else."""

from typing import Annotated

from annotated_types import Ge

from dispatcher import Coerce, Dispatcher, Limits, Registry, ToolContext, ToolError

registry = Registry()


@registry.tool(effect="read", errors={"not_found": "ids look like 17"}, limits=Limits(wall_s=2))
def look(id: Annotated[int, Coerce.positive_int, Ge(1)], context: ToolContext) -> dict:
    """Look something up."""
    if id == 99:
        raise ToolError("not_found")
    context.progress({"half": True})
    return {"id": id, "call": context.call_id, "correlation": context.correlation_id}


dispatcher = Dispatcher(registry)
