"""A calculator whose expressions are parsed and never run as code."""

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from dispatcher import Limits, Registry, ToolError

MAX_CHARACTERS = 200
MAX_BITS = 4096
ALLOWED = "numbers, + - * / // % **, unary signs and parentheses"
Number = int | float

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def calculate(expression: str) -> int | float:
    """Compute an arithmetic expression such as 2 * (3 + 4)."""
    if len(expression) > MAX_CHARACTERS:
        raise _refuse(f"the expression is longer than {MAX_CHARACTERS} characters")
    if not expression.isascii() or "#" in expression or ("_" in expression and not expression.strip("_")):
        raise _refuse(f"only {ALLOWED} can be used")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise _refuse(f"it is not an arithmetic expression; use {ALLOWED}") from None
    try:
        return _checked(_evaluate(tree.body))
    except ZeroDivisionError:
        raise _refuse("it divides by zero") from None
    except OverflowError:
        raise _refuse("a number is too large") from None


def _evaluate(node: ast.expr) -> Number:
    if isinstance(node, ast.Constant):
        return _number(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        value = _evaluate(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _evaluate(node.left), _evaluate(node.right)
        if isinstance(node.op, ast.Pow):
            _check_power(left, right)
        return _checked(_BINARY[type(node.op)](left, right))
    raise _refuse(f"{_describe(node)} cannot be used; only {ALLOWED}")


def _describe(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return f"the name '{node.id[:40]}'"
    names = {ast.Call: "a function call", ast.Subscript: "an index", ast.Attribute: "an attribute", ast.List: "a list"}
    return names.get(type(node), "this form")


def _number(value: object) -> Number:
    if isinstance(value, bool):
        raise _refuse(f"True and False are not numbers here; use {ALLOWED}")
    if not isinstance(value, int | float):
        raise _refuse(f"only {ALLOWED} can be used")
    return _checked(value)


def _check_power(base: Number, exponent: Number) -> None:
    """Refuse a power before it is computed when its integer result would be too large."""
    whole = isinstance(base, int) and isinstance(exponent, int) and exponent > 0 and abs(base) > 1
    if whole and exponent * math.log2(abs(base)) >= MAX_BITS:
        raise _refuse(f"the power has more than {MAX_BITS} bits")
    if base < 0 and isinstance(exponent, float) and not exponent.is_integer():
        raise _refuse("a negative number to a fractional power is not a real number")


def _checked(value: Any) -> Number:
    if isinstance(value, complex):
        raise _refuse("the result is not a real number")
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise _refuse(f"an integer has more than {MAX_BITS} bits")
        return value
    number = float(value)
    if not math.isfinite(number):
        raise _refuse("a number is too large; the result must be finite")
    return number


def _refuse(hint: str) -> ToolError:
    return ToolError("invalid_args", hint=hint[0].upper() + hint[1:], path="/expression")


def register(registry: Registry) -> None:
    """Add the tool."""
    registry.tool(
        name="calculator",
        effect="read",
        limits=Limits(wall_s=2),
        errors={"invalid_args": f"Use {ALLOWED}, at most {MAX_CHARACTERS} characters"},
    )(calculate)
