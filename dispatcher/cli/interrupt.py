"""Let Control-C end the command even when Python loses it.

A KeyboardInterrupt that is raised inside a weak reference's callback or a `__del__` is printed and dropped. Until it has
been caught where it ends the command, it is raised again.
"""

import signal
import sys
from typing import Any

AGAIN_S = 0.5


def insist() -> None:
    """Take over SIGINT and SIGALRM, unless somebody else has taken or ignored SIGINT."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGALRM, _interrupt)
        signal.signal(signal.SIGINT, _interrupt)


def desist() -> None:
    """Say that the interruption has arrived."""
    if signal.getsignal(signal.SIGALRM) is _interrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)


def _interrupt(number: int, frame: Any) -> None:
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    if not isinstance(sys.exc_info()[1], KeyboardInterrupt):  # else it is on its way, and cleaning up
        raise KeyboardInterrupt
