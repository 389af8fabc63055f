"""A module that starts a thread at import, in a worker process."""

import threading

import sandbox

if sandbox.is_worker_process():
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def handler():
    return threading.active_count()


def crash():
    import os

    os.kill(os.getpid(), 11)
