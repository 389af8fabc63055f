"""Landlock: what may be opened, connected to and signalled, by ABI (landlock(7), linux/landlock.h)."""

import ctypes
import os

from sandbox.linux import libc, syscalls

CREATE_RULESET_VERSION = 1
RULE_PATH_BENEATH = 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
IOCTL_DEV = 1 << 15
FS_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # how many filesystem rights each ABI handles; later ABIs as 5
NET_TCP = 0b11  # bind, connect: ABI 4
SCOPES = 0b11  # abstract unix sockets, signals: ABI 6
NEWEST_USED = 7
READ = EXECUTE | READ_FILE | READ_DIR


class _Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("access", ctypes.c_uint64), ("fd", ctypes.c_int32)]


def abi() -> int:
    """Return the kernel's Landlock ABI, 0 where there is none."""
    number = syscalls.number("landlock_create_ruleset") or 0
    try:
        return libc.syscall(number, 0, 0, CREATE_RULESET_VERSION, call="landlock_create_ruleset")
    except OSError:
        return 0


def build(readable: tuple[str, ...], version: int) -> int:
    """Return the descriptor of a ruleset: nothing but `readable` may be opened, nothing written but /dev/null."""
    version = min(version, NEWEST_USED)
    handled = (1 << FS_BITS[min(version, 5)]) - 1
    attributes = _Ruleset(handled, NET_TCP if version >= 4 else 0, SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    number = syscalls.number("landlock_create_ruleset") or 0
    rules = libc.syscall(number, ctypes.addressof(attributes), size, 0, call="landlock_create_ruleset")
    for path in readable:
        _allow(rules, path, READ)
    _allow(rules, "/dev/null", READ_FILE | WRITE_FILE)
    return rules


def restrict_self(rules: int) -> None:
    """Put the calling thread, and all it will create, under `rules`, for good."""
    number = syscalls.number("landlock_restrict_self") or 0
    libc.syscall(number, rules, 0, call="landlock_restrict_self")


def _allow(rules: int, path: str, access: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no leave
    try:
        if not os.path.isdir(path):
            access &= ~READ_DIR
        beneath = _PathBeneath(access, fd)
        number = syscalls.number("landlock_add_rule") or 0
        libc.syscall(number, rules, RULE_PATH_BENEATH, ctypes.addressof(beneath), 0, call="landlock_add_rule")
    finally:
        os.close(fd)
