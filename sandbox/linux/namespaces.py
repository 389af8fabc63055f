"""User, mount, pid, ipc, uts and net namespaces (namespaces(7), user_namespaces(7))."""

import os

from sandbox.linux import libc, privileges

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000  # linux/sched.h
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
INNER = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET
KINDS = ("mount", "pid", "ipc", "uts", "net")


def enter_user_namespace() -> None:
    """Enter a new user namespace in which we keep our own uid, and as root also have an unprivileged one to drop to.

    A map of several ranges may only be written from outside, by a process that holds the capabilities there: a child
    forked beforehand does it, told through a pipe when to.
    """
    uid, gid = os.getuid(), os.getgid()
    if not privileges.can_drop_uid():
        libc.unshare(CLONE_NEWUSER)
        _write("self", uid_map=f"{uid} {uid} 1", gid_map=f"{gid} {gid} 1", deny_groups=True)
        return
    ready, go = os.pipe()
    helper = os.fork()
    if helper == 0:
        _map_parent(ready, go)
    os.close(ready)
    try:
        libc.unshare(CLONE_NEWUSER)
        os.write(go, b"1")
    finally:
        os.close(go)
        _, status = os.waitpid(helper, 0)
    if status:
        raise PermissionError(1, "uid_map: the kernel refused the map")


def enter_inner_namespaces() -> None:
    """Enter new mount, pid (for children), ipc, uts and net namespaces; loopback stays down."""
    libc.unshare(INNER)
    libc.sethostname("sandbox")


def _map_parent(ready: int, go: int) -> None:
    code = 1
    try:
        os.close(go)
        if os.read(ready, 1) == b"1":
            nobody = privileges.NOBODY
            lines = f"0 0 1\n{nobody} {nobody} 1\n"
            _write(str(os.getppid()), uid_map=lines, gid_map=lines, deny_groups=False)
            code = 0
    finally:
        os._exit(code)


def _write(pid: str, *, uid_map: str, gid_map: str, deny_groups: bool) -> None:
    if deny_groups:
        _write_file(f"/proc/{pid}/setgroups", "deny")
    _write_file(f"/proc/{pid}/uid_map", uid_map)
    _write_file(f"/proc/{pid}/gid_map", gid_map)


def _write_file(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
