"""The keeper: the one thread that watches descriptors, calling back with its owner's lock held."""

import logging
import os
import selectors
import threading
from collections.abc import Callable
from typing import Any

Callback = Callable[[], None]


class Keeper:
    """Watch descriptors; `watch`, `unwatch` and `wake` are for holders of `lock`, `stop` for nobody who holds it.

    After every round of callbacks `check` is called; it returns when it wants to be called again at the latest, in
    seconds, `None` for never. `last` is called when it stops, on its thread too: no signal's handler interrupts it there.
    """

    def __init__(
        self, lock: "threading.RLock", check: Callable[[], float | None], last: Callable[[], None]
    ) -> None:
        self._lock = lock
        self._check = check
        self._last = last
        self._is_forgotten = False
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._thread: threading.Thread | None = None
        self._is_stopping = False
        self.watch(self._wake_read, self._drain_wakes)

    def start(self) -> None:
        """Start the thread, once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, name="sandbox-keeper", daemon=True)
            self._thread.start()

    def watch(self, fd: int, callback: Callback) -> None:
        """Call `callback` whenever `fd` is readable or has hung up."""
        self._selector.register(fd, selectors.EVENT_READ, callback)

    def unwatch(self, fd: int) -> None:
        """Forget `fd`; not watched is no error."""
        if fd in self._selector.get_map():
            self._selector.unregister(fd)

    def wake(self) -> None:
        """Let the thread look at the clock again."""
        try:
            os.write(self._wake_write, b"!")
        except BlockingIOError:
            return

    def stop(self) -> None:
        """Let the thread call `last`, end and close what it had; wait for it. If that is interrupted, stop again."""
        with self._lock:
            self._is_stopping = True
            if self._thread is None:
                self.forget()
            elif not self._is_forgotten:
                self.wake()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def forget(self) -> None:
        """Close the descriptors: when the thread ends, or in a forked copy of the host, which has no thread."""
        if not self._is_forgotten:
            self._is_forgotten = True
            self._selector.close()
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _keep(self) -> None:
        patience: float | None = None
        while True:
            events = self._selector.select(patience)
            with self._lock:
                if self._is_stopping:
                    _guarded(self._last)
                    self.forget()
                    return
                for key, _ in events:
                    # A callback of this round may have closed the descriptor, and another may have got its number.
                    current = self._selector.get_map().get(key.fd)
                    if current is not None and current.data is key.data:
                        _guarded(key.data)
                patience = _guarded(self._check)

    def _drain_wakes(self) -> None:
        os.read(self._wake_read, 4096)


def _guarded(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception:  # our own bug: everybody else's calls must not hang for it
        logging.getLogger("sandbox").exception("the keeper goes on after an error")
        return None
