"""A deliberately naive tool, there to show the kill: `9**99**99` does not end."""

from dispatcher import Limits, Registry


def power(a: int, b: int, c: int) -> int:
    """Compute a ** b ** c."""
    result: int = a**b**c
    return result


def register(registry: Registry) -> None:
    """Add the tool."""
    registry.tool(effect="read", limits=Limits(wall_s=2))(power)
