"""What is the portable engine's own: it is never chosen silently, it kills families, it sums their memory."""

import os
import subprocess
import sys
import textwrap

import handlers_for_tests as handlers
import psutil
import pytest

from sandbox import Limits, Sandbox, SandboxUnavailable, Verdict, portable

HERE = os.path.dirname(handlers.__file__)


@pytest.fixture(scope="module")
def box():
    with Sandbox(engine="portable", isolation="D") as opened:
        yield opened


def wait_gone(pids):
    """Wait until the processes are gone, at most five seconds; return those that are not."""
    processes = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    return psutil.wait_procs(processes, timeout=5)[1]


def test_it_has_to_be_asked_for_by_its_tier():
    """The default minimum refuses it and names what it lacks; on Linux nothing else leads to it."""
    with pytest.raises(SandboxUnavailable, match=r"portable engine gives tier D, below the minimum 'C'.*landlock"):
        Sandbox(engine="portable")
    with pytest.raises(ValueError, match="engine must be"):
        Sandbox(engine="quick")


def test_its_receipt_says_what_it_is(box):
    """Every outcome is stamped with the engine, its tier and the walls it has not."""
    receipt = box.run(handlers.add, {"a": 1, "b": 2}).receipt
    assert (receipt.engine, receipt.tier, receipt.landlock_abi, receipt.seccomp) == ("portable", "D", 0, "")
    assert {"landlock", "seccomp", "user_namespace"} <= set(receipt.missing)
    assert "sampled" in receipt.memory


@pytest.mark.parametrize("ending", ["return", "spin", "crash"])
def test_a_whole_family_dies_with_its_call(box, ending, tmp_path):
    """Children, grandchildren and orphans in sessions of their own are gone when the call is over, however it ends."""
    told = tmp_path / "pids"
    tmp_path.chmod(0o777)
    outcome = box.run(handlers.found_family, {"told": str(told), "ending": ending}, limits=Limits(wall_s=3))
    assert outcome.verdict is {"return": Verdict.OK, "spin": Verdict.TIMEOUT, "crash": Verdict.WORKER_CRASHED}[ending]
    pids = [int(pid) for pid in told.read_text().split()]
    assert len(pids) == 3
    assert wait_gone(pids) == []


def test_memory_is_summed_over_a_family(box):
    """Processes that stay under the cap one by one are killed together for what they hold together."""
    limits = Limits(wall_s=20, memory_bytes=64 << 20)
    assert box.run(handlers.hog_together, limits=limits).verdict is Verdict.MEMORY_LIMIT
    assert box.run(handlers.add, {"a": 1, "b": 2}).value == 3


def test_a_worker_lowers_its_own_limits_where_the_host_cannot(box, monkeypatch):
    """Without prlimit(2) the job carries the limits, and the receipt claims none that could not be read back."""
    monkeypatch.setattr(portable, "HAS_PRLIMIT", False)
    outcome = box.run(handlers.own_limits, limits=Limits(open_files=40, file_bytes=4096, wall_s=3))
    assert outcome.value["open_files"] == 40 and outcome.value["file_bytes"] == 4096 and outcome.value["cpu_s"] == 4
    assert outcome.receipt.limits == {}
    hog = box.run(handlers.hog, limits=Limits(wall_s=20, memory_bytes=64 << 20))
    assert hog.verdict is Verdict.MEMORY_LIMIT


def test_the_caller_s_script_is_never_run_again(tmp_path):
    """Spawning does not import the host's main module, guard or no guard."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(f"""
            import sys
            sys.path[:0] = {[path for path in sys.path if path]!r}
            print("once", flush=True)
            from sandbox import Sandbox
            box = Sandbox(engine="portable", isolation="D")
            base = 40
            print(box.run(lambda: base + 2).value, flush=True)
        """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (b"once\n42\n", b"")
