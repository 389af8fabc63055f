"""One test a mechanism: what could be done before can no longer be done after, and nothing else is lost."""

import ctypes
import fcntl
import os
import resource
import select
import signal
import struct

import handlers_for_tests as handlers
import pytest

from sandbox.linux import fds, landlock, libc, namespaces, pidfd, privileges, rlimits, seccomp, syscalls

NEEDS_LANDLOCK = pytest.mark.skipif(not landlock.abi(), reason="the kernel has no Landlock")


def said(attempt):
    return handlers.name_refusal(attempt)


def read_file(path):
    with open(path, "rb") as file:
        return file.read(1)


@NEEDS_LANDLOCK
def test_landlock_leaves_what_it_was_told(in_child, tmp_path):
    """A file outside the ruleset opens before and not after; one inside opens, and nothing can be written."""
    outside = tmp_path / "outside"
    outside.write_text("x")

    def run():
        before = (said(lambda: read_file(outside)), said(lambda: open(tmp_path / "new", "w").close()))
        privileges.set_no_new_privileges()
        landlock.restrict_self(landlock.build(("/usr",), landlock.abi()))
        after = (said(lambda: read_file(outside)), said(lambda: open(tmp_path / "new", "w").close()))
        return before, after, said(lambda: os.listdir("/usr")), said(lambda: open("/dev/null", "w").close())

    assert in_child(run) == (("", ""), ("EACCES", "EACCES"), "", "")


@pytest.mark.skipif(landlock.abi() < 6, reason="signals are scoped from Landlock ABI 6 on")
def test_landlock_scopes_signals(in_child):
    """A parent that could be signalled before cannot be after."""
    own = os.getpid()

    def run():
        before = said(lambda: os.kill(own, 0))
        privileges.set_no_new_privileges()
        landlock.restrict_self(landlock.build((), landlock.abi()))
        return before, said(lambda: os.kill(own, 0)), said(lambda: os.kill(os.getpid(), 0))

    assert in_child(run) == ("", "EPERM", "")


@pytest.mark.parametrize("version", range(1, landlock.NEWEST_USED + 1))
@NEEDS_LANDLOCK
def test_landlock_of_every_age(in_child, version):
    """A ruleset of an older ABI still closes the file system."""
    if version > landlock.abi():
        pytest.skip(f"this kernel's ABI is {landlock.abi()}")

    def run():
        privileges.set_no_new_privileges()
        landlock.restrict_self(landlock.build(("/usr",), version))
        return said(lambda: os.listdir("/etc"))

    assert in_child(run) == "EACCES"


def filtered():
    privileges.set_no_new_privileges()
    seccomp.Filter(seccomp.assemble()).install()


@pytest.mark.parametrize(
    "name", ["fork", "exec", "tcp", "udp", "unix", "unshare", "pidfd_open", "bpf", "ptrace", "keyctl", "memfd", "lease", "notify",
             "chmod", "utime", "setxattr", "datagram_pair", "inotify"]
)
def test_seccomp_refuses(in_child, name):
    """Refused after, whatever it was before."""
    assert in_child(lambda: (filtered(), handlers.attempt(name))[1]) in ("EPERM", "ENOSYS", "EACCES")


def test_seccomp_leaves_what_a_computation_needs(in_child):
    """Threads, socket pairs, files, pipes and memory still work."""

    def run():
        filtered()
        names = ("thread", "socketpair", "urandom", "write_tmp")
        return [handlers.attempt(name) for name in names]

    assert in_child(run) == ["done"] * 4


def test_seccomp_lets_a_process_signal_itself_alone(in_child):
    """Its own pid may be signalled, its parent, its group, everybody and any thread of another may not."""
    own = os.getpid()

    def run():
        before = said(lambda: os.kill(own, 0))
        filtered()
        group = (said(lambda: os.killpg(0, 0)), said(lambda: os.kill(0, 0)), said(lambda: os.kill(-1, 0)))
        owner = said(lambda: fcntl.fcntl(0, 8, own))
        return before, said(lambda: os.kill(own, 0)), said(lambda: os.kill(os.getpid(), 0)), group, owner

    assert in_child(run) == ("", "EPERM", "", ("EPERM",) * 3, "EPERM")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_seccomp_programs_are_sound(machine):
    """Every jump of the program lands inside it, on either architecture, and the architecture is tested first."""
    program = list(struct.iter_unpack("HBBI", seccomp.assemble(machine)))
    assert len(program) < 4096  # BPF_MAXINSNS
    assert program[:2] == [(seccomp.LD, 0, 0, 4), (seccomp.JEQ, 1, 0, syscalls.AUDIT_ARCH[machine])]
    for index, (code, yes, no, _) in enumerate(program):
        if code in (seccomp.JEQ, seccomp.JGE, seccomp.JSET):
            assert index + 1 + max(yes, no) < len(program)
    assert program[-1] == (seccomp.RET, 0, 0, seccomp.ALLOW)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x32 is an ABI of x86-64")
def test_seccomp_knows_no_other_abi(in_child):
    """x32 numbers and numbers that the table does not know are ENOSYS."""

    def run():
        filtered()
        x32 = said(lambda: handlers._raw(0x40000000 | 39))
        return x32, said(lambda: handlers._raw(syscalls.HIGHEST_KNOWN + 1))

    assert in_child(run) == ("ENOSYS", "ENOSYS")


def test_user_namespace_gives_the_others(in_child):
    """Behind it, a private host name and a pid namespace whose first child is 1 can be made."""

    def run():
        try:
            namespaces.enter_user_namespace()
            namespaces.enter_inner_namespaces()
        except PermissionError:
            return None
        child = os.fork()
        if child == 0:
            os._exit(7 if os.getpid() == 1 else 8)
        return os.uname().nodename, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    seen = in_child(run)
    if seen is None:
        pytest.skip("this host gives no user namespaces")
    assert seen == ("sandbox", 7) and os.uname().nodename != "sandbox"


def test_privileges_are_gone_for_good(in_child):
    """No capability is left in any set, new privileges are off, memory is not dumpable."""

    def run():
        if privileges.can_drop_uid():
            privileges.drop_bounding_set()
            privileges.drop_uid(privileges.NOBODY, privileges.NOBODY)
        privileges.clear_capabilities()
        privileges.set_no_new_privileges()
        privileges.set_not_dumpable()
        facts = handlers.kernel_facts()
        return (
            facts["capabilities"],
            facts["no_new_privs"],
            facts["dumpable"],
            said(lambda: os.setuid(0)),
            os.getgroups(),
        )

    capabilities, no_new, dumpable, back, groups = in_child(run)
    assert (capabilities, no_new, dumpable) == ([0] * 6, 1, 0)
    if os.getuid() == 0:
        assert back == "EPERM" and groups == []


def test_limits_are_lowered_read_back_and_never_raised(in_child):
    """prlimit(2) lowers a process's limits, soft and hard, and gives back what is in force."""

    def run():
        wanted = {"memory_bytes": 1 << 30, "data_bytes": 1 << 29, "file_bytes": 4096, "open_files": 40}
        privileges.clear_capabilities()
        first = rlimits.lower_for(os.getpid(), wanted, 5)
        again = rlimits.lower_for(0, {**wanted, "open_files": 400}, 50)
        return first, again["open_files"], resource.getrlimit(resource.RLIMIT_CPU)

    first, files, cpu = in_child(run)
    assert first == {"memory_bytes": 1 << 30, "data_bytes": 1 << 29, "file_bytes": 4096, "open_files": 40, "cpu_s": 5}
    assert (files, cpu[1]) == (40, 6)


def test_pidfd_tells_the_end_and_kills_nobody_else():
    """It becomes readable at the end, names its pid until then, and a late kill is no error."""
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    descriptor = pidfd.open_pidfd(child)
    assert pidfd.pid_of(descriptor) == child and not pidfd.is_dead(descriptor)
    pidfd.kill(descriptor)
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    assert poller.poll(10_000)
    os.waitpid(child, 0)
    pidfd.kill(descriptor)
    assert pidfd.is_dead(descriptor) and pidfd.pid_of(descriptor) == -1
    os.close(descriptor)


def test_only_named_descriptors_are_kept():
    """Standard streams and those named are left, from 3 on, and none of them is passed to a program."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            null = os.open("/dev/null", os.O_RDWR)
            extra = [os.dup(null) for _ in range(300)]
            kept = fds.keep_only(null, null, (write, extra[250]))
            facts = handlers.kernel_facts()["descriptors"]
            os.write(kept[0], repr((kept, facts, [os.get_inheritable(fd) for fd in kept])).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    answer = os.read(read, 4096)
    os.close(read)
    os.waitpid(child, 0)
    assert eval(answer) == ((3, 4), [0, 1, 2, 3, 4], [False, False])


def test_errors_of_the_kernel_name_the_call(in_child):
    """What fails in the kernel is an OSError with its errno and the call's name."""

    def run():
        try:
            libc.syscall(-1, call="nothing")
        except OSError as error:
            return error.errno, str(error), ctypes.sizeof(ctypes.c_long)
        return None

    assert in_child(run) == (38, "[Errno 38] nothing: Function not implemented", 8)
