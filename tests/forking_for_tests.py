"""A module that forks at import, in a worker process."""

import os
import time

import sandbox

if sandbox.is_worker_process() and os.fork() == 0:
    time.sleep(60)


def handler():
    return 1
