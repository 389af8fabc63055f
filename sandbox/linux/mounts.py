"""The minimal root: read-only binds of the interpreter and the system's libraries, and nothing of anybody's.

Must run inside our own mount namespace, before Landlock. Sources are opened first and bound by descriptor, so that
mounting the new root over one of their parents does not hide them.
"""

import ctypes
import os
import stat
import sys

from sandbox.linux import libc, syscalls

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 4096, 16384, 1 << 18  # sys/mount.h
MNT_DETACH = 2
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4  # linux/mount.h
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
STAGE = "/tmp"  # any folder that every host has; it is hidden only in our own mount namespace

SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin")
SYSTEM_FILES = (
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/mime.types",
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
WRITTEN = {
    "/etc/passwd": "root:x:0:0::/:/bin/false\nnobody:x:65534:65534::/:/bin/false\n",
    "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
EMPTY_FOLDERS = ("/tmp", "/var/tmp", "/dev", "/etc", "/home", "/proc", "/run", "/var")


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def interpreter_paths() -> tuple[str, ...]:
    """Return what the interpreter needs of its prefixes, and no more: a project may lie beside a virtual environment."""
    paths = []
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}:
        if prefix == "/usr":
            continue
        names = ("lib", "lib64", "bin", "pyvenv.cfg")
        paths += [os.path.join(prefix, name) for name in names if os.path.exists(os.path.join(prefix, name))]
    return tuple(paths)


def make_private() -> None:
    """Keep our mounts from showing up anywhere else."""
    libc.mount("none", "/", None, MS_REC | MS_PRIVATE)


def enter_minimal_root(readable: tuple[str, ...]) -> tuple[str, ...]:
    """Build the minimal root and make it ours; return the paths that can be read in it.

    Raises FileNotFoundError for a `readable` path that is not there.
    """
    for path in readable:
        os.stat(path)
    make_private()
    wanted = _outermost({*SYSTEM, *SYSTEM_FILES, *interpreter_paths(), *readable})
    opened = [(path, _open(path)) for path in (*wanted, *DEVICES)]
    sources = [(path, fd) for path, fd in opened if fd is not None]
    links = _links([path for path, _ in sources])
    libc.mount("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=4096,mode=755")
    for path in EMPTY_FOLDERS:
        os.makedirs(STAGE + path, mode=0o755, exist_ok=True)
    for path, fd in sources:
        _bind(fd, STAGE + path, read_only_device=path in DEVICES)
    for path, target in links:
        os.symlink(target, STAGE + path)
    _write_synthetic()
    _pivot()
    return tuple(path for path, _ in sources if path not in DEVICES)


def _outermost(paths: set[str]) -> list[str]:
    """Sort, resolve and drop what lies inside another: a symlink stands for itself and for its target."""
    resolved = {os.path.realpath(path) for path in paths if os.path.exists(path)}
    named = {path for path in paths if os.path.exists(path) and not _is_link_inside_root(path)}
    kept: list[str] = []
    for path in sorted(resolved | named):
        if not any(path == parent or path.startswith(parent + "/") for parent in kept):
            kept.append(path)
    return kept


def _is_link_inside_root(path: str) -> bool:
    return os.path.islink(path) and path.count("/") == 1


def _links(paths: list[str]) -> list[tuple[str, str]]:
    """Return the top-level symlinks to keep: on a merged /usr, /lib and /bin are links into it."""
    top = [path for path in SYSTEM if os.path.islink(path) and path not in paths]
    return [(path, os.readlink(path)) for path in top]


def _open(path: str) -> int | None:
    try:
        return os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None


def _bind(fd: int, target: str, *, read_only_device: bool) -> None:
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        os.makedirs(target, mode=0o755, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))
    libc.mount(f"/proc/self/fd/{fd}", target, None, MS_BIND | MS_REC)
    os.close(fd)
    seal(target, ATTR_RDONLY | ATTR_NOSUID | (0 if read_only_device else ATTR_NODEV))


def seal(target: str, attributes: int) -> None:
    """Set mount attributes on `target` and on everything mounted below it (mount_setattr(2), Linux 5.12)."""
    wanted = _Attributes(attributes, 0, 0, 0)
    path = ctypes.create_string_buffer(os.fsencode(target))
    number = syscalls.number("mount_setattr") or 0
    where = (AT_FDCWD, ctypes.addressof(path), AT_RECURSIVE)
    libc.syscall(number, *where, ctypes.addressof(wanted), ctypes.sizeof(wanted), call="mount_setattr")


def _write_synthetic() -> None:
    for path, text in WRITTEN.items():
        fd = os.open(STAGE + path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444)
        os.write(fd, text.encode())
        os.close(fd)


def _pivot() -> None:
    os.chdir(STAGE)
    here = ctypes.create_string_buffer(b".")
    number = syscalls.number("pivot_root") or 0
    libc.syscall(number, ctypes.addressof(here), ctypes.addressof(here), call="pivot_root")
    libc.umount(".", MNT_DETACH)
    os.chdir("/")
    seal("/", ATTR_RDONLY | ATTR_NOSUID)
