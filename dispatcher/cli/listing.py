"""Show the tools of a registry: a line each, or one whole."""

import json
from typing import Any

from dispatcher.cli.talk import OK, UsageProblem, say
from dispatcher.codes import table_rows


def show(registry: Any, name: str | None, *, as_json: bool) -> int:
    """Print the list, or one tool with schema, limits and codes; return the exit code."""
    if name is None:
        if as_json:
            say(json.dumps([_brief(tool) for tool in registry], ensure_ascii=False))
        else:
            width = max((len(tool.name) for tool in registry), default=0)
            for tool in registry:
                say(f"{tool.name:<{width}}  {tool.description}".rstrip())
        return OK
    tool = registry.get(name)
    if tool is None:
        raise UsageProblem(f"no tool {name[:128]!r}; there are {', '.join(registry.names())}")
    say(json.dumps(_whole(tool), ensure_ascii=False) if as_json else _text(tool))
    return OK


def _brief(tool: Any) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "effect": tool.effect}


def _whole(tool: Any) -> dict[str, Any]:
    from dataclasses import asdict

    limits = asdict(tool.limits) if tool.limits else None
    errors = {code: spec.hint for code, spec in tool.errors.items()}
    return {**_brief(tool), "schema": tool.schema, "limits": limits, "errors": errors}


def _text(tool: Any) -> str:
    lines = [f"{tool.name} ({tool.effect}): {tool.description}", "", "schema:", json.dumps(tool.schema, indent=2), ""]
    if tool.limits is not None:
        lines += [f"limits: wall {tool.limits.wall_s:g} s, memory {tool.limits.memory_bytes >> 20} MiB", ""]
    lines += ["its own errors:", *(f"  {code}: {spec.hint}" for code, spec in tool.errors.items()), ""]
    lines += ["codes (code | means | next | the hint says):"]
    lines += [f"  {' | '.join(row)}" for row in table_rows()]
    return "\n".join(lines)
