"""A handler that imports late, which a worker can do only for what its zygote has loaded."""


def late():
    """Import a module of this folder in the call."""
    import results_for_tests

    return results_for_tests.nested(1)
