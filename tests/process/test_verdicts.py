"""How a job can end, each way by a real process that ends so (C27, C30, C31)."""

import asyncio
import contextlib
import os
import signal
import socket
import time
import types
from concurrent.futures import ThreadPoolExecutor

import handlers_for_tests as handlers
import pytest

from sandbox import Limits, Sandbox, Verdict, drive, probe, wire
from sandbox.reply import decode
from sandbox.supervise import Supervision
from sandbox.wire import ProtocolViolation

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


MALFORMED = [
    b'{"failure":{"kind":[]}}', b'{"failure":{"kind":{}}}', b'{"failure":{"kind":null}}', b'{"failure":{}}',
    b'{"failure":[]}', b'{"failure":null}', b'{"failure":"error"}', b'{"failure":{"kind":"ok"}}', b"{}", b"[]", b"null",
    b'{"ok":1,"failure":{}}', b'{"a":1}', b'"ok"', b"", b"\xff", b'{"ok":"\\ud800"}', b'{"ok":1e999}',
    b'{"ok":' + b"9" * 5000 + b"}", b'{"ok":' + b"[" * 5000 + b"]" * 5000 + b"}", b'{"ok":NaN}',
]  # fmt: skip


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: repr(body[:30]))
def test_a_malformed_reply_is_a_violation_at_once(box, body):
    """Whatever shape a forged reply has, the call is answered at once and so are others, blocking and awaited."""
    arguments, limits = {"body": body.hex()}, Limits(wall_s=30)
    began = time.monotonic()
    assert box.run(handlers.write_reply, arguments, limits=limits).verdict is Verdict.PROTOCOL_VIOLATION
    awaited = asyncio.run(box.run_async(handlers.write_reply, arguments, limits=limits))
    assert awaited.verdict is Verdict.PROTOCOL_VIOLATION
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("unit", [b'\\"', b'"', b"\\", b"[", b'{"', b"[{", b"]", b"1,", b'"\\', b'\\"['])
def test_a_reply_is_read_in_linear_time(unit):
    """A mebibyte of what is hardest to scan is refused, or read, in a moment."""
    for before in (b"", b'"', b'{"ok":"', b'{"ok":['):
        began = time.monotonic()
        with contextlib.suppress(ProtocolViolation):
            decode(before + unit * ((1 << 20) // len(unit)))
        assert time.monotonic() - began < 5


def test_a_dripping_reply_does_not_hide_the_clock():
    """One look at the reply socket takes one chunk, however much there is."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        for size in (4 << 20, 1 << 20):
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
        sent = theirs.send(wire.HEADER.pack(1 << 20, wire.REPLY) + b"x" * (1 << 20))
        assert sent > 2 * drive.CHUNK
        lease = types.SimpleNamespace(worker=types.SimpleNamespace(socket=ours))
        session = drive.Session(lease, Supervision(Limits(), time.monotonic(), None), b"")
        assert session.read_reply() is True
        assert session.supervision._reader.received_bytes <= drive.CHUNK


def test_a_worker_that_hangs_up_and_goes_on_gave_no_result(box):
    """Our own kill of it is not told as its crash."""
    outcome = box.run(handlers.hang_up, limits=LONG)
    assert outcome.verdict is Verdict.NO_RESULT and "closed its reply socket" in outcome.detail
    assert outcome.run_s < 10


@pytest.mark.skipif(probe().tier not in "AB", reason="where the uid is the host's own, threads are not bounded")
def test_threads_are_bounded_and_cost_nobody_else():
    """A worker that starts threads without end meets a bound; its neighbours and its zygote go on."""
    with Sandbox() as box:
        assert box.run(handlers.add, {"a": 1, "b": 1}).ok
        with ThreadPoolExecutor(1) as pool:
            bomb = pool.submit(box.run, handlers.start_threads, {"most": 5000, "hold_s": 1.0}, limits=Limits(wall_s=30))
            for _ in range(20):
                assert box.run(handlers.add, {"a": 1, "b": 1}).value == 2
            assert bomb.result().ok and 50 < bomb.result().value <= 1024
        assert box.statistics().zygotes_lost == 0


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
