"""What a worker sees and may do, asked from inside one, on the strongest tier that this host gives."""

import os
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import handlers_for_tests as handlers
import psutil
import pytest

from sandbox import Limits, Sandbox, Verdict, at_least, probe

pytestmark = pytest.mark.skipif(not at_least(probe().tier, "B"), reason="this host gives less than tier B")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def box():
    with Sandbox(isolation="B") as opened:
        yield opened


def ask(box, function, **arguments):
    """Run an inquiry in a worker and return its answer."""
    outcome = box.run(function, arguments, limits=Limits(wall_s=10))
    assert outcome.ok, outcome
    return outcome.value


def refusal(attempt):
    """Run an attempt in this process and name what refused it, "" if nothing did: the positive control."""
    return handlers.name_refusal(attempt)


def test_no_file_of_the_host_is_in_reach(box):
    """Neither the project, nor a home, nor secrets of the system can be opened, listed or found; the host can."""
    paths = [str(ROOT), str(ROOT / "pyproject.toml"), handlers.__file__, os.path.expanduser("~"), "/root", "/etc/shadow",
             "/var/log", "/sys", "/proc/1/environ", "/proc/self/status", "/dev/shm", "/boot"]  # fmt: skip
    assert any(os.path.exists(path) for path in paths[:4])
    seen = ask(box, handlers.look_at, paths=paths)
    assert {path: what for path, what in seen.items() if what not in ("", "empty")} == {}


def test_the_interpreter_and_its_libraries_are_in_reach(box):
    """What is imported late still loads: the standard library, installed packages, certificates, time zones."""
    assert (
        ask(box, handlers.import_late, names=["sqlite3", "ssl", "zoneinfo", "http.client", "pydantic", "decimal"]) == []
    )


def test_no_process_of_the_host_can_be_named(box):
    """The worker's parent is pid 0 or 1 of its own namespace; signals to anybody reach nobody but its own."""
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        facts = ask(box, handlers.reach_processes, pids=[victim.pid, os.getpid(), os.getppid(), 1])
        assert facts["parent"] in (0, 1) and set(facts["errors"]) <= {"ESRCH", "EPERM", "EACCES"}
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


def test_killing_everybody_kills_nobody_else(box):
    """kill(-1, SIGKILL) ends no sibling and no zygote: calls before and after are answered by living workers."""
    neighbours = box.statistics().zygotes_lost
    box.run(handlers.kill_everybody)
    assert box.run(handlers.add, {"a": 1, "b": 1}).ok
    assert box.statistics().zygotes_lost == neighbours


@pytest.mark.parametrize(
    "name",
    ["fork", "exec", "tcp", "udp", "unix", "bind", "ptrace", "unshare", "mount", "chroot", "setuid", "write_root", "write_tmp",
     "mknod", "keyctl", "io_uring", "bpf", "perf", "pidfd_open", "priority", "prlimit_other", "process_vm"],
)  # fmt: skip
def test_is_refused(box, name):
    """What reaches beyond the process is refused inside; this process shows that the attempt itself is sound."""
    assert ask(box, handlers.attempt, name=name) != "done"


def test_socket_pairs_and_threads_work(box):
    """What a pure computation may need is there."""
    assert ask(box, handlers.attempt, name="socketpair") == "done"
    assert ask(box, handlers.attempt, name="thread") == "done"
    assert ask(box, handlers.attempt, name="urandom") == "done"


def test_status_of_the_kernel(box):
    """Capabilities are empty in every set, new privileges are off, the filter is on, the uid is not root."""
    facts = ask(box, handlers.kernel_facts)
    assert facts["capabilities"] == [0, 0, 0, 0, 0, 0]
    assert (facts["no_new_privs"], facts["seccomp"], facts["dumpable"]) == (1, 2, 0)
    assert facts["descriptors"] == [0, 1, 2, 3]
    assert 0 not in facts["uids"]


def test_environment_holds_no_secret(box, monkeypatch):
    """Only names from a short list are there, whatever the host has."""
    monkeypatch.setenv("API_TOKEN", "hunter2")
    with Sandbox() as fresh:
        environment = ask(fresh, handlers.worker_facts)["environment"]
    assert not {"API_TOKEN", "PYTHONPATH", "USER"} & set(environment) and len(environment) <= 13


class TestReadable:
    """`readable=` adds paths for one tool, and for no other."""

    @pytest.fixture
    def folder(self, tmp_path):
        for parent in (tmp_path, *tmp_path.parents):
            if parent.stat().st_uid == os.getuid() and str(parent) != "/":
                parent.chmod(parent.stat().st_mode | 0o055)
        (tmp_path / "granted" / "deep").mkdir(parents=True)
        (tmp_path / "granted" / "deep" / "a.txt").write_text("granted")
        (tmp_path / "other.txt").write_text("other")
        (tmp_path / "link").symlink_to(tmp_path / "granted")
        return tmp_path

    def handler(self, *readable):
        from sandbox import Handler

        return Handler.of(handlers.look_at, readable=tuple(map(str, readable)))

    def look(self, box, handler, *paths):
        outcome = box.run(handler, {"paths": [str(path) for path in paths]})
        assert outcome.ok, outcome
        return [outcome.value[str(path)] for path in paths], outcome.receipt

    def test_folder(self, box, folder):
        """A granted folder is readable at every depth, its neighbours are not."""
        granted = folder / "granted"
        seen, receipt = self.look(
            box, self.handler(granted), granted / "deep" / "a.txt", folder / "other.txt", granted / "x"
        )
        assert seen == ["file", "", ""] and receipt.readable == (str(granted),)
        assert ask(box, handlers.look_at, paths=[str(granted / "deep" / "a.txt")]) == {
            str(granted / "deep" / "a.txt"): ""
        }

    def test_file(self, box, folder):
        """A single file can be granted."""
        seen, _ = self.look(
            box, self.handler(folder / "other.txt"), folder / "other.txt", folder / "granted" / "deep" / "a.txt"
        )
        assert seen == ["file", ""]

    def test_symlink(self, box, folder):
        """A granted symlink stands for itself and for what it leads to."""
        seen, _ = self.look(box, self.handler(folder / "link"), folder / "link" / "deep" / "a.txt")
        assert seen == ["file"]

    def test_is_not_writable(self, box, folder):
        """What can be read can not be written."""
        from sandbox import Handler

        handler = Handler.of(handlers.write_to, readable=(str(folder / "granted"),))
        outcome = box.run(handler, {"path": str(folder / "granted" / "new.txt")})
        assert outcome.value in ("EROFS", "EACCES", "EPERM") and not (folder / "granted" / "new.txt").exists()

    def test_path_that_is_not_there(self, box, folder):
        """A tool whose path is missing is out of service alone, with the path named, and comes back when it is there."""
        handler = self.handler(folder / "later")
        outcome = box.run(handler, {"paths": []})
        assert outcome.verdict is Verdict.NO_SANDBOX and "later" in outcome.detail and not outcome.started
        assert box.run(handlers.add, {"a": 1, "b": 2}).ok
        (folder / "later").mkdir()
        deadline = time.monotonic() + 20
        while not (outcome := box.run(handler, {"paths": []})).ok and time.monotonic() < deadline:
            assert outcome.verdict is Verdict.NO_SANDBOX
        assert outcome.ok


def test_a_virtual_environment_inside_the_project(tmp_path):
    """The project around a virtual environment is not in reach, though the environment is."""
    project = tmp_path / "project"
    (project / "app").mkdir(parents=True)
    (project / ".env").write_text("SECRET=hunter2")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project / ".venv"], check=True, timeout=120)
    inner = next((project / ".venv").glob("lib/python3*/site-packages"))
    outer = [path for path in sys.path if path.endswith("site-packages")]
    (inner / "outer.pth").write_text("\n".join([*outer, str(ROOT), str(ROOT / "tests")]))
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and str(folder) != "/":
            folder.chmod(folder.stat().st_mode | 0o055)
    script = f"""
        import handlers_for_tests as handlers
        from sandbox import Sandbox
        with Sandbox() as box:
            outcome = box.run(handlers.look_at, {{"paths": [{str(project / ".env")!r}, {str(project)!r}]}})
        print(outcome.value)
    """
    done = subprocess.run(
        [project / ".venv" / "bin" / "python", "-c", textwrap.dedent(script)],
        capture_output=True,
        cwd=project,
        timeout=60,
        check=True,
    )
    assert eval(done.stdout).get(str(project / ".env")) == "", done


def test_controls_are_sound():
    """The same attempts succeed, or are known, outside: a refusal inside is the sandbox's doing."""
    assert handlers.attempt("fork") == "done" and handlers.attempt("socketpair") == "done"
    assert handlers.attempt("write_tmp") == "done" and handlers.attempt("pidfd_open") == "done"
    assert handlers.look_at([__file__]) == {__file__: "file"}
    with socket.socket() as channel:
        assert channel.fileno() > 0
    assert psutil.Process().pid == os.getpid()
