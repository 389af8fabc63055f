"""The one door to libc: every call checked, its errno turned into an OSError that names the call."""

import ctypes
import os
from typing import Any

_libc: Any = None


def _load() -> Any:
    global _libc
    if _libc is None:
        _libc = ctypes.CDLL(None, use_errno=True)
        _libc.syscall.restype = ctypes.c_long
        _libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
        _libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
        _libc.umount2.argtypes = [ctypes.c_char_p, ctypes.c_int]
        _libc.unshare.argtypes = [ctypes.c_int]
        _libc.sethostname.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return _libc


def check(result: int, call: str) -> int:
    """Return `result`, or raise the OSError that errno says, naming the call."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{call}: {os.strerror(error)}")
    return result


def syscall(number: int, *arguments: int, call: str) -> int:
    """Make a system call with integer arguments; raise OSError naming `call`."""
    return check(_load().syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)), call)


def prctl(option: int, *arguments: int, call: str) -> int:
    """Make prctl(2) with up to four arguments."""
    padded = [*arguments, 0, 0, 0, 0][:4]
    return check(_load().prctl(option, *padded), call)


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Make mount(2)."""
    name = kind.encode() if kind else None
    check(_load().mount(os.fsencode(source), os.fsencode(target), name, flags, data.encode()), f"mount {target}")


def umount(target: str, flags: int) -> None:
    """Make umount2(2)."""
    check(_load().umount2(os.fsencode(target), flags), f"umount {target}")


def unshare(flags: int) -> None:
    """Make unshare(2)."""
    check(_load().unshare(flags), "unshare")


def sethostname(name: str) -> None:
    """Make sethostname(2)."""
    check(_load().sethostname(name.encode(), len(name)), "sethostname")
