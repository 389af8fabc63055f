"""Try every wall in throw-away children and print which stand, as JSON on stdout. Run by file path in a clean child.

Nothing is read from sysctls: a host may allow a namespace and then refuse what is done inside it.
"""

import json
import os
import signal
import sys
from collections.abc import Callable

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from sandbox.linux import landlock, libc, mounts, namespaces, privileges, seccomp, syscalls


def attempt(step: Callable[[], None]) -> str:
    """Run `step` in a forked child; return "" if it went well, else what it said."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            step()
            os.write(write, b"+")
        except BaseException as error:
            os.write(write, f"-{error}"[:300].encode("utf-8", "replace"))
        finally:
            os._exit(0)
    os.close(write)
    said = os.read(read, 400).decode("utf-8", "replace")
    os.close(read)
    os.waitpid(child, 0)
    return "" if said == "+" else said[1:] or "the kernel ended the process"


def own_user_namespace() -> None:
    """Build what a zygote builds: user namespace, the others, a child in them, a mount, and the drop of the uid."""
    drops = privileges.can_drop_uid()
    namespaces.enter_user_namespace()
    _inner(drops)


def without_user_namespace() -> None:
    """Build the same with the host's own privileges."""
    _inner(True)


def _inner(drop: bool) -> None:
    namespaces.enter_inner_namespaces()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            mounts.make_private()
            libc.mount("tmpfs", mounts.STAGE, "tmpfs", mounts.MS_NOSUID | mounts.MS_NODEV, "size=64k")
            if drop:
                privileges.drop_uid(privileges.NOBODY, privileges.NOBODY)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status:
        raise PermissionError(1, "a mount or the drop of the uid is refused inside the namespace")


def landlocked() -> None:
    """Come under a ruleset and see a file refused."""
    privileges.set_no_new_privileges()
    landlock.restrict_self(landlock.build(("/usr",), landlock.abi()))
    try:
        os.listdir("/")
    except PermissionError:
        return
    raise OSError("the ruleset does not hold")


def filtered() -> None:
    """Come under the filter and see a call refused."""
    privileges.set_no_new_privileges()
    seccomp.Filter(seccomp.assemble()).install()
    try:
        libc.unshare(namespaces.CLONE_NEWUTS)
    except PermissionError:
        return
    raise OSError("the filter does not hold")


def cgroup() -> str:
    """Return "" when a cgroup v2 leaf can be made beside ours with a memory cap, else why not."""
    try:
        with open("/proc/self/cgroup") as file:
            own = next(line.strip()[3:] for line in file if line.startswith("0::"))
        base = "/sys/fs/cgroup" + own.rstrip("/")
        with open(base + "/cgroup.controllers") as file:
            if "memory" not in file.read().split():
                return "the memory controller is not delegated"
        leaf = f"{base}/sandbox-probe-{os.getpid()}"
        os.mkdir(leaf)
        os.rmdir(leaf)
    except (OSError, StopIteration) as error:
        return str(error) or "no cgroup v2 hierarchy"
    return "own processes stand in the delegated group itself" if own == "/" else ""


def main() -> None:
    """Print the findings."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a host may ignore it, which is inherited
    version = landlock.abi()
    known = syscalls.is_supported()
    found = {
        "user_namespace": attempt(own_user_namespace),
        "landlock_abi": version,
        "landlock": attempt(landlocked) if version else "the kernel has no Landlock, or it is switched off",
        "seccomp": attempt(filtered) if known else f"no system call table for {syscalls.machine()}",
        "cgroup": cgroup(),
        "pidfd": "" if hasattr(os, "pidfd_open") else "this Python has no pidfd_open",
    }
    if found["user_namespace"] and os.getuid() == 0:
        found["plain_namespaces"] = attempt(without_user_namespace)
    os.write(1, json.dumps(found).encode())


if __name__ == "__main__":
    main()
