"""A module that never ends its import in a worker process."""

import sandbox

while sandbox.is_worker_process():
    pass


def handler():
    return 1
