"""Who the process is and what it may become: uids, groups, capabilities, no_new_privs, dumpable."""

import os

from sandbox.linux import libc

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_SECUREBITS = 1, 4, 24, 28  # linux/prctl.h
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 36, 38, 47, 4
LAST_CAPABILITY = 63
CAPSET_VERSION_3 = 0x20080522  # linux/capability.h
NOBODY = 65534
CAP_SETUID = 7  # linux/capability.h


def set_parent_death_signal(number: int) -> None:
    """Ask for a signal when the parent's creating thread ends (prctl(2)): the second line behind the lifeline."""
    libc.prctl(PR_SET_PDEATHSIG, number, call="prctl(PR_SET_PDEATHSIG)")


def become_subreaper() -> None:
    """Let orphans of our descendants come back to us."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, call="prctl(PR_SET_CHILD_SUBREAPER)")


def set_no_new_privileges() -> None:
    """Make set-uid binaries and file capabilities of no effect, for good."""
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, call="prctl(PR_SET_NO_NEW_PRIVS)")


def set_not_dumpable() -> None:
    """Refuse core dumps and ptrace of this process by its own uid."""
    libc.prctl(PR_SET_DUMPABLE, 0, call="prctl(PR_SET_DUMPABLE)")


def set_dumpable() -> None:
    """Make /proc/self writable again after a change of uid, so that the maps can be written."""
    libc.prctl(PR_SET_DUMPABLE, 1, call="prctl(PR_SET_DUMPABLE)")


def drop_bounding_set() -> None:
    """Drop every capability from the bounding set; needs CAP_SETPCAP."""
    for capability in range(LAST_CAPABILITY + 1):
        try:
            libc.prctl(PR_CAPBSET_DROP, capability, call="prctl(PR_CAPBSET_DROP)")
        except OSError as error:
            if error.errno == 22:  # EINVAL: the kernel knows no more of them
                return
            raise


def drop_uid(uid: int, gid: int) -> None:
    """Become `uid`/`gid`, real, effective and saved, without supplementary groups."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def clear_capabilities() -> None:
    """Empty the effective, permitted, inheritable and ambient sets (capset(2))."""
    import ctypes

    header = (ctypes.c_uint32 * 2)(CAPSET_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()
    number = {"x86_64": 126, "aarch64": 91}[os.uname().machine]
    libc.syscall(number, ctypes.addressof(header), ctypes.addressof(data), call="capset")
    try:
        libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, call="prctl(PR_CAP_AMBIENT)")
    except OSError:
        return  # kernels before 4.3 have no ambient set


def can_drop_uid() -> bool:
    """Ask whether this process is root and may become somebody else."""
    return os.getuid() == 0 and has_capability(CAP_SETUID)


def has_capability(number: int) -> bool:
    """Ask whether the effective set holds capability `number` (proc(5), CapEff)."""
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"CapEff:"):
                return bool(int(line.split()[1], 16) >> number & 1)
    return False
