"""A module that starts a pool of threads at import, in a worker process, and a handler that works in both."""

from concurrent.futures import ThreadPoolExecutor

import handlers_for_tests as handlers

import sandbox

pool = None
if sandbox.is_worker_process():
    pool = ThreadPoolExecutor(1)
    pool.submit(int).result()


def try_everywhere(names):
    """Try things in the main thread and in the import's; return what refused each."""
    return [[handlers.attempt(name) for name in names], list(pool.map(handlers.attempt, names))]
