"""The line of those who wait for a worker. No lock of its own: the engine holds one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sandbox.handlers import Handler
from sandbox.model import Verdict
from sandbox.shelf import Shelf
from sandbox.spare import Lease, Refusal


@dataclass(slots=True, eq=False)
class Waiter:
    """Stand in line for a worker; `deliver` is called once, from any thread, with the lock held."""

    shelf: Shelf
    handler: Handler
    deliver: Callable[[Lease | Refusal], None]
    is_done: bool = False


class Line:
    """Keep waiters in the order of their coming; each is answered once or leaves."""

    def __init__(self) -> None:
        self._waiters: list[Waiter] = []

    def __len__(self) -> int:
        return len(self._waiters)

    def __iter__(self) -> Iterator[Waiter]:
        """Go through those who wait now; answering them on the way is allowed."""
        return iter(list(self._waiters))

    def join(self, waiter: Waiter) -> None:
        """Take in the next."""
        self._waiters.append(waiter)

    def leave(self, waiter: Waiter) -> bool:
        """Let one go who gives up; return whether that was in time (else something was delivered)."""
        if waiter.is_done:
            return False
        waiter.is_done = True
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        return True

    def answer(self, waiter: Waiter, what: Lease | Refusal) -> None:
        """Deliver what somebody waited for."""
        self._waiters.remove(waiter)
        waiter.is_done = True
        waiter.deliver(what)

    def count(self, shelf: Shelf) -> int:
        """Return how many wait for a shelf."""
        return sum(1 for waiter in self._waiters if waiter.shelf is shelf)

    def refuse(self, shelf: Shelf | None, key: str | None, verdict: Verdict, detail: str) -> None:
        """Refuse those who wait for a shelf, and for one handler of it; `None` means any."""
        for waiter in self:
            if (shelf is None or waiter.shelf is shelf) and key in (None, waiter.handler.key):
                self.answer(waiter, Refusal(verdict, detail))
