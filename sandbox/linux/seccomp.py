"""seccomp: which system calls a worker may make (seccomp(2), linux/seccomp.h, linux/bpf_common.h).

A deny-list over what a Python worker needs: everything that reaches other processes, other namespaces, the kernel's
own configuration or the network. The architecture is tested first; both halves of 64-bit arguments are compared.
"""

import ctypes
import hashlib
import os
import struct
from collections.abc import Callable

from sandbox.linux import libc, syscalls

LD, JEQ, JGE, JSET, RET, AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS = 1, 38
NUMBER, ARCH, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
CLONE_THREAD = 0x00010000
CLONE_NEW = 0x7E020080  # every CLONE_NEW* flag, time namespaces included
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
F_SETOWN, F_SETOWN_EX = 8, 15  # asm-generic/fcntl.h
F_SETLEASE, F_NOTIFY = 1024, 1026  # linux/fcntl.h; a lease on a file makes everybody's open() of it wait
FIOSETOWN, SIOCSPGRP = 0x8901, 0x8902
AF_UNIX = 1
SOCK_STREAM, SOCK_TYPE_MASK = 1, 0xF  # linux/net.h
OWN_PID = 0x7FFF5EC0  # stands in the program for the worker's own pid, which `Filter.install` puts in its place

Step = tuple[int, int, int, int]

REFUSED = (
    "shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink "
    "mq_timedsend mq_timedreceive mq_notify mq_getsetattr socket connect accept accept4 bind listen ptrace syslog "
    "setpgid setsid pivot_root chroot acct settimeofday clock_settime adjtimex clock_adjtime mount umount2 swapon "
    "swapoff reboot sethostname setdomainname iopl ioperm init_module finit_module delete_module quotactl quotactl_fd "
    "lookup_dcookie kexec_load kexec_file_load add_key request_key keyctl migrate_pages move_pages unshare setns "
    "perf_event_open fanotify_init name_to_handle_at open_by_handle_at process_vm_readv process_vm_writev kcmp bpf "
    "userfaultfd open_tree move_mount fsopen fsconfig fsmount fspick pidfd_open pidfd_getfd process_madvise "
    "memfd_create memfd_secret "  # their pages are in no limit of a process
    "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes utimensat futimesat "  # Landlock lets
    "setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat inotify_add_watch "
    "mount_setattr process_mrelease mbind set_mempolicy vmsplice pidfd_send_signal"
).split()
UNKNOWN = ("io_uring_setup", "io_uring_enter", "io_uring_register", "io_setup", "clone3")  # libraries fall back
FORK_AND_EXEC = ("fork", "vfork", "execve", "execveat")
# Signals reach this process alone, also where neither Landlock (before ABI 6) nor a pid namespace stands in the way.
SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
OWN_PID_ONLY = ("prlimit64", "sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr")


def _return(value: int) -> Step:
    return (RET, 0, 0, value)


def _load(offset: int) -> Step:
    return (LD, 0, 0, offset)


def _argument(index: int, *, high: bool = False) -> Step:
    return _load(ARGUMENTS + 8 * index + (4 if high else 0))


def _must_be(index: int, value: int, *, whole: bool = True) -> list[Step]:
    """Refuse unless argument `index` equals `value`; `whole` compares the upper half too."""
    steps: list[Step] = [_argument(index), (JEQ, 1, 0, value & 0xFFFFFFFF), _return(ERRNO | EPERM)]
    if whole:
        steps += [_argument(index, high=True), (JEQ, 1, 0, value >> 32), _return(ERRNO | EPERM)]
    return steps


def _must_be_masked(index: int, mask: int, value: int) -> list[Step]:
    return [_argument(index), (AND, 0, 0, mask), (JEQ, 1, 0, value), _return(ERRNO | EPERM)]


def _must_be_none_of(index: int, *values: int) -> list[Step]:
    refused = [step for value in values for step in ((JEQ, 0, 1, value), _return(ERRNO | EPERM))]
    return [_argument(index), *refused]


def _threads_only() -> list[Step]:
    steps: list[Step] = [_argument(0), (JSET, 1, 0, CLONE_THREAD), _return(ERRNO | EPERM)]
    return [*steps, (JSET, 0, 1, CLONE_NEW), _return(ERRNO | EPERM)]


ARGUMENT_RULES: tuple[tuple[str, Callable[[], list[Step]]], ...] = (
    ("clone", _threads_only),
    # A pair of another type could send to any socket that has a name.
    ("socketpair", lambda: [*_must_be(0, AF_UNIX, whole=False), *_must_be_masked(1, SOCK_TYPE_MASK, SOCK_STREAM)]),
    ("personality", lambda: _must_be(0, 0xFFFFFFFF, whole=False)),
    ("ioctl", lambda: _must_be_none_of(1, TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP)),
    ("fcntl", lambda: _must_be_none_of(1, F_SETOWN, F_SETOWN_EX, F_SETLEASE, F_NOTIFY)),
    ("setpriority", lambda: [*_must_be(0, 0, whole=False), *_must_be(1, 0, whole=False)]),
    ("ioprio_set", lambda: [*_must_be(0, 1, whole=False), *_must_be(1, 0, whole=False)]),
    *((name, lambda: _must_be(0, 0, whole=False)) for name in OWN_PID_ONLY),
    *((name, lambda: _must_be(0, OWN_PID, whole=False)) for name in SIGNALS),
)


def assemble(architecture: str | None = None) -> bytes:
    """Return the filter program's bytes for `architecture` (default: this machine's). Pure."""
    architecture = architecture or syscalls.machine()
    steps: list[Step] = [_load(ARCH), (JEQ, 1, 0, syscalls.AUDIT_ARCH[architecture]), _return(KILL), _load(NUMBER)]
    if architecture == "x86_64":
        steps += [(JGE, 0, 1, syscalls.X32_BIT), _return(ERRNO | ENOSYS)]
    steps += [(JGE, 0, 1, syscalls.HIGHEST_KNOWN + 1), _return(ERRNO | ENOSYS)]
    for names, verdict in ((REFUSED, EPERM), (FORK_AND_EXEC, EPERM), (UNKNOWN, ENOSYS)):
        for name in names:
            steps += _when(name, architecture, [_return(ERRNO | verdict)])
    for name, rule in ARGUMENT_RULES:
        steps += _when(name, architecture, [*rule(), _return(ALLOW)])
    steps.append(_return(ALLOW))
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def _when(name: str, architecture: str, body: list[Step]) -> list[Step]:
    number = syscalls.number(name, architecture)
    return [] if number is None else [(JEQ, 0, len(body), number), *body]


def digest(program: bytes) -> str:
    """Return the short name of a program for receipts: 16 hex digits of its SHA-256."""
    return hashlib.sha256(program).hexdigest()[:16]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


class Filter:
    """Hold a program in memory where the kernel can copy it from."""

    def __init__(self, program: bytes) -> None:
        self._code = ctypes.create_string_buffer(program, len(program))
        self._program = _Program(len(program) // 8, ctypes.addressof(self._code))
        steps = struct.iter_unpack("HBBI", program)
        self._own_pid = [8 * index + 4 for index, step in enumerate(steps) if step[0] == JEQ and step[3] == OWN_PID]

    def install(self) -> None:
        """Put the calling thread, and all it will create, under the filter, for good; needs no_new_privs."""
        for offset in self._own_pid:
            struct.pack_into("I", self._code, offset, os.getpid())
        libc.prctl(22, 2, ctypes.addressof(self._program), call="prctl(PR_SET_SECCOMP)")
