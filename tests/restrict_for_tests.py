"""Take something away from this process, then become another program: a host that gives less. Run by file path.

    restrict_for_tests.py WHAT[,WHAT…] program argument…

namespaces    unshare, setns, mounts and clone with new namespaces are refused, as container engines do by default
landlock      the kernel has none
seccomp       no further filter can be installed
nobody        uid and gid 65534, no groups
capabilities  none are left, not even for root
"""

import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from sandbox.linux import privileges, seccomp, syscalls

EPERM, ENOSYS, EINVAL = 1, 38, 22
NEW_NAMESPACES = 0x7E020000


def refuse(names, errno, *, clone=False):
    """Install a filter that refuses system calls by name, and with `clone` those that would make namespaces."""
    steps = [(seccomp.LD, 0, 0, seccomp.NUMBER)]
    for name in names:
        steps += [(seccomp.JEQ, 0, 1, syscalls.number(name)), (seccomp.RET, 0, 0, seccomp.ERRNO | errno)]
    if clone:
        steps += [(seccomp.JEQ, 0, 1, syscalls.number("clone3")), (seccomp.RET, 0, 0, seccomp.ERRNO | ENOSYS)]
        steps += [(seccomp.JEQ, 0, 3, syscalls.number("clone")), (seccomp.LD, 0, 0, seccomp.ARGUMENTS)]
        steps += [(seccomp.JSET, 0, 1, NEW_NAMESPACES), (seccomp.RET, 0, 0, seccomp.ERRNO | errno)]
    steps.append((seccomp.RET, 0, 0, seccomp.ALLOW))
    if not privileges.has_capability(21):
        privileges.set_no_new_privileges()
    seccomp.Filter(b"".join(struct.pack("HBBI", *step) for step in steps)).install()


def without_seccomp():
    """Refuse prctl(PR_SET_SECCOMP)."""
    steps = [(seccomp.LD, 0, 0, seccomp.NUMBER)]
    steps += [
        (seccomp.JEQ, 0, 3, {"x86_64": 157, "aarch64": 167}[syscalls.machine()]),
        (seccomp.LD, 0, 0, seccomp.ARGUMENTS),
    ]
    steps += [(seccomp.JEQ, 0, 1, 22), (seccomp.RET, 0, 0, seccomp.ERRNO | EINVAL)]
    steps.append((seccomp.RET, 0, 0, seccomp.ALLOW))
    if not privileges.has_capability(21):
        privileges.set_no_new_privileges()
    seccomp.Filter(b"".join(struct.pack("HBBI", *step) for step in steps)).install()


STEPS = {
    "namespaces": lambda: refuse("unshare setns mount umount2 pivot_root mount_setattr".split(), EPERM, clone=True),
    "landlock": lambda: refuse(["landlock_create_ruleset"], ENOSYS),
    "seccomp": without_seccomp,
    "nobody": lambda: privileges.drop_uid(65534, 65534),
    "capabilities": lambda: (privileges.drop_bounding_set(), privileges.clear_capabilities()),
}


def main():
    """Take away, then become."""
    for what in sys.argv[1].split(","):
        STEPS[what]()
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
