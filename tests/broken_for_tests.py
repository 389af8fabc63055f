"""A module that fails at import."""

import os

VALUE = os.environ["NOT_SET_ANYWHERE"]


def handler():
    return VALUE
