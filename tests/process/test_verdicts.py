"""How a job can end, each way by a real process that ends so (C27, C30, C31)."""

import os
import signal
import time

import handlers_for_tests as handlers
import pytest

from sandbox import Limits, Verdict

SHORT = Limits(wall_s=0.5, memory_bytes=64 << 20, output_bytes=4096)
LONG = Limits(wall_s=20, memory_bytes=64 << 20, output_bytes=4096)  # ends by itself, however busy the machine is


@pytest.fixture(scope="module")
def box(make_box):
    with make_box() as opened:
        yield opened


@pytest.mark.parametrize(
    ("function", "arguments", "verdict"),
    [
        (handlers.add, {"a": 1, "b": 2}, Verdict.OK),
        (handlers.spin, {}, Verdict.TIMEOUT),
        (handlers.sleep_forever, {}, Verdict.TIMEOUT),
        (handlers.ignore_everything, {}, Verdict.TIMEOUT),
        (handlers.swallow, {}, Verdict.TIMEOUT),
        (handlers.power, {}, Verdict.TIMEOUT),
        (handlers.hog, {}, Verdict.MEMORY_LIMIT),
        (handlers.one_big, {}, Verdict.MEMORY_LIMIT),
        (handlers.flood, {}, Verdict.OUTPUT_LIMIT),
        (handlers.flood_stderr, {}, Verdict.OUTPUT_LIMIT),
        (handlers.raw_flood, {}, Verdict.OUTPUT_LIMIT),
        (handlers.crash, {"number": signal.SIGKILL}, Verdict.WORKER_CRASHED),
        (handlers.crash, {"number": signal.SIGSEGV}, Verdict.WORKER_CRASHED),
        (handlers.abort, {}, Verdict.WORKER_CRASHED),
        (handlers.exit_zero, {}, Verdict.NO_RESULT),
        (handlers.exit_three, {}, Verdict.NO_RESULT),
        (handlers.close_everything, {}, Verdict.NO_RESULT),
        (handlers.raise_system_exit, {}, Verdict.HANDLER_ERROR),
        (handlers.raise_interrupt, {}, Verdict.HANDLER_ERROR),
        (handlers.fail, {"text": "no"}, Verdict.HANDLER_ERROR),
        (handlers.big_result, {"size": 2 << 20}, Verdict.RESULT_LIMIT),
        (handlers.generate_forever, {}, Verdict.RESULT_LIMIT),
        (handlers.shared_graph, {}, Verdict.RESULT_LIMIT),
        (handlers.deep_result, {}, Verdict.BAD_RESULT),
        (handlers.write_frame, {"data": "ffffffff04"}, Verdict.PROTOCOL_VIOLATION),
        (handlers.write_frame, {"data": "0000000309414141"}, Verdict.PROTOCOL_VIOLATION),
        (handlers.write_frame, {"data": "00000003044e614e"}, Verdict.PROTOCOL_VIOLATION),
        (handlers.daemon_thread, {}, Verdict.OK),
        (handlers.at_exit, {}, Verdict.OK),
    ],
)
def test_verdict(box, function, arguments, verdict):
    """A job that ends this way gets this verdict, in time, and the next job is answered."""
    began = time.monotonic()
    outcome = box.run(function, arguments, limits=SHORT if verdict is Verdict.TIMEOUT else LONG)
    assert outcome.verdict is verdict, outcome
    assert time.monotonic() - began < 15
    assert box.run(handlers.add, {"a": 1, "b": 2}).value == 3


def test_cpu_limit_is_told_from_timeout(box):
    """Processor time spent before the deadline is its own verdict."""
    outcome = box.run(handlers.burn_cpu, limits=Limits(wall_s=20, cpu_s=1))
    assert outcome.verdict is Verdict.CPU_LIMIT


def test_a_whole_forged_frame_is_the_result_and_never_the_metadata(box):
    """A handler can forge its own value, which it could return anyway; times and usage stay the host's."""
    body = b'{"ok":"forged"}'
    data = (len(body).to_bytes(4, "big") + b"\x04" + body + b"\x00\x00\x00\x01\x04x").hex()
    outcome = box.run(handlers.write_frame, {"data": data})
    assert (outcome.verdict, outcome.value) == (Verdict.OK, "forged")
    assert outcome.usage.cpu_s > 0 and outcome.run_s > 0


def test_output_is_kept_in_order_and_counted(box):
    """What is printed is captured, stdout and raw writes in order, and never mixed with the result."""
    outcome = box.run(handlers.speak, {"count": 3})
    assert (outcome.value, outcome.output.text) == (3, "line 0\nline 1\nline 2\nraw\n")


def test_output_over_the_cap_is_counted_and_the_head_kept(box):
    """Past the cap output is counted, not kept, and the call goes on."""
    outcome = box.run(handlers.speak, {"count": 1000}, limits=Limits(output_bytes=1024))
    assert outcome.ok and len(outcome.output.text) == 1024 and outcome.output.total_bytes > 8000


@pytest.mark.parametrize(
    ("function", "arguments", "value"),
    [
        (handlers.add_async, {"a": 1, "b": 2}, 3),
        (handlers.generate, {"count": 3}, [0, 1, 2]),
        (handlers.generate_async, {"count": 3}, [0, 1, 2]),
        (handlers.big_result, {"size": 500_000}, "x" * 500_000),
    ],
)
def test_result_forms(box, function, arguments, value):
    """Coroutines are awaited, generators read to a list, large results arrive whole."""
    assert box.run(function, arguments, limits=Limits(wall_s=5)).value == value


def test_large_arguments_arrive(box):
    """A job larger than any socket buffer is sent whole."""
    assert (
        box.run(handlers.add, {"a": "x" * 5_000_000, "b": ""}, limits=Limits(result_bytes=8 << 20)).value
        == "x" * 5_000_000
    )


def test_nothing_of_one_call_is_seen_by_the_next(box):
    """State that a call leaves behind is gone with its process."""
    assert box.run(handlers.pollute).ok
    assert box.run(handlers.is_polluted).value == [False, False, False, False]


def test_every_job_has_a_process_of_its_own(box):
    """No worker serves two jobs."""
    pids = [box.run(handlers.worker_facts).receipt.pid for _ in range(20)]
    assert len(set(pids)) == 20


def test_worker_is_confined_and_its_receipt_says_so(box, monkeypatch):
    """The environment is rebuilt, the uid is not root, limits in force are the kernel's."""
    monkeypatch.setenv("CANARY_SECRET", "hunter2")
    outcome = box.run(handlers.worker_facts, limits=Limits(wall_s=3, open_files=40))
    assert "CANARY_SECRET" not in outcome.value["environment"]
    receipt = outcome.receipt
    assert receipt.limits["open_files"] == 40 and receipt.limits["cpu_s"] == 4
    assert receipt.tier == box.probe.tier
    if os.getuid() == 0 and receipt.tier in "AB":
        assert outcome.value["uid"] == 65534


def test_worker_imports_are_lean(box):
    """A worker of an importable handler holds neither pydantic nor the host's half; what spawned it apart, no dill."""
    outcome = box.run(handlers.modules)
    unwanted = {"pydantic", "sandbox.engine", "sandbox.sandbox", "sandbox.reply", "psutil"}
    unwanted |= {"dill", "multiprocess"} if outcome.receipt.engine == "zygote" else set()
    assert not unwanted & set(outcome.value)
