"""Tools as most people write them: decorated in an importable module, before what they use."""

import functools

from dispatcher import Registry

registry = Registry()


@registry.tool
def fact(n: int) -> int:
    """Call itself."""
    return 1 if n < 2 else n * fact(n - 1)


@registry.tool
def uses(n: int) -> int:
    """Use what stands below."""
    return helper(n)


class Service:
    """Hold a method that is a tool."""

    @staticmethod
    def look(n: int) -> int:
        """Use what stands below, from a class."""
        return helper(n) + 1


registry.tool(name="look")(Service.look)


def doubled(function):
    """Decorate so that the module has another function than the registry."""

    @functools.wraps(function)
    def wrapper(n: int) -> int:
        return 2 * function(n)

    return wrapper


@doubled
@registry.tool
def wrapped(n: int) -> int:
    """Be registered without its outer decorator."""
    return n


def helper(n):
    """Stand below."""
    return n + 1
