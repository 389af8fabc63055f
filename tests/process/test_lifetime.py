"""Nothing outlives its owner: workers, zygotes, descriptors, threads; whoever dies first (G2, G3)."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import handlers_for_tests as handlers
import psutil
import pytest

from sandbox import Limits, SandboxClosed, Verdict

HERE = os.path.dirname(handlers.__file__)


def wait_until(condition, timeout_s=5.0):
    """Wait for a condition of other processes, which no descriptor of ours tells of."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():
            return True
        threading.Event().wait(0.01)
    return condition()


def count_children(process):
    """Count a process's children, none if it is gone."""
    try:
        return len(process.children())
    except psutil.NoSuchProcess:
        return 0


def test_close_leaves_nothing(make_box, nothing_left):
    """After close there is no child, thread or descriptor more than before, with a call in flight too."""
    box = make_box()
    assert box.run(handlers.add, {"a": 1, "b": 1}).ok
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(box.run(handlers.sleep_forever)))
    assert wait_until(lambda: box.statistics().busy == 0)
    thread.start()
    assert wait_until(lambda: box.statistics().busy == 1)
    box.close()
    thread.join(5)
    assert outcomes[0].verdict is Verdict.WORKER_LOST
    box.close()
    with pytest.raises(SandboxClosed):
        box.run(handlers.add, {"a": 1, "b": 1})


def test_many_calls_leave_nothing(engine, make_box, nothing_left):
    """Hundreds of calls, every third of them hostile, keep descriptors and children flat."""
    with make_box() as box:
        for index in range(300 if "engine" not in engine else 60):
            if index % 3 == 0:
                box.run(handlers.crash, {"number": 9})
            else:
                assert box.run(handlers.add, {"a": index, "b": 1}).value == index + 1
        assert wait_until(lambda: box.statistics().busy == 0)
        assert len(os.listdir("/proc/self/fd")) < 80


def test_a_killed_zygote_is_replaced(make_box, nothing_left):
    """When a zygote dies, its calls in flight are lost, and the next call gets a new one."""
    with make_box() as box:
        assert box.run(handlers.add, {"a": 1, "b": 1}).ok
        outcomes = []
        thread = threading.Thread(target=lambda: outcomes.append(box.run(handlers.sleep_forever)))
        assert wait_until(lambda: box.statistics().busy == 0)
        thread.start()
        assert wait_until(lambda: box.statistics().busy == 1)
        for child in psutil.Process().children():
            child.kill()
        thread.join(10)
        assert outcomes[0].verdict is Verdict.WORKER_LOST
        assert box.run(handlers.add, {"a": 1, "b": 1}).ok
        assert box.statistics().zygotes_lost >= 1


def test_a_spare_killed_on_the_shelf_is_replaced(make_box, nothing_left):
    """A worker that dies before it is used is never seen by a caller."""
    with make_box() as box:
        assert box.run(handlers.add, {"a": 1, "b": 1}).ok
        for _ in range(10):
            spares = []
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    if not process.children():
                        process.kill()
                        spares.append(process)
            psutil.wait_procs(spares, timeout=5)
            assert box.run(handlers.add, {"a": 1, "b": 1}).ok


HOST = """
import sys, threading
sys.path[:0] = {paths!r}
import handlers_for_tests as handlers
from sandbox import Limits, Sandbox
box = Sandbox(**{engine!r})
def loop(function):
    while True:
        box.run(function, limits=Limits(wall_s=30))
assert box.run(handlers.add, {{"a": 1, "b": 1}}).ok
for function in (handlers.spin, handlers.sleep_forever, handlers.ignore_everything, handlers.worker_facts):
    threading.Thread(target=loop, args=(function,), daemon=True).start()
print("busy", flush=True)
threading.Event().wait()
"""


@pytest.mark.parametrize("delay_s", [0.0, 0.05, 0.2])
def test_killing_the_host_leaves_nothing(engine, delay_s):
    """SIGKILL of the host ends every process under it within a second."""
    script = HOST.format(engine=engine, paths=[HERE, *[path for path in sys.path if path]])
    host = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert host.stdout.readline() == b"busy\n"
    threading.Event().wait(delay_s)
    family = psutil.Process(host.pid).children(recursive=True)
    host.kill()
    host.wait()
    host.stdout.close()
    assert family
    _, alive = psutil.wait_procs(family, timeout=3)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def test_interpreter_exit_without_close_leaves_nothing(engine):
    """A program that never closes its sandbox ends at once and leaves no process."""
    script = f"""
        import sys
        sys.path[:0] = {[HERE, *[path for path in sys.path if path]]!r}
        import handlers_for_tests as handlers, psutil
        from sandbox import Sandbox
        box = Sandbox(**{engine!r})
        assert box.run(handlers.add, {{"a": 1, "b": 1}}).ok
        print(*[child.pid for child in psutil.Process().children(recursive=True)])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, timeout=20, check=True)
    assert done.stderr == b""
    pids = [int(pid) for pid in done.stdout.split()]
    assert pids and wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids))


def test_a_forked_copy_of_the_host_gets_workers_of_its_own(make_box, nothing_left):
    """After a fork the copy neither uses nor keeps alive what is the original's."""
    with make_box() as box:
        assert box.run(handlers.add, {"a": 1, "b": 1}).ok
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = 0 if box.run(handlers.add, {"a": 2, "b": 2}).value == 4 else 2
                box.close()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert box.run(handlers.add, {"a": 1, "b": 1}).ok


def test_cancelling_a_task_kills_its_worker(make_box, nothing_left):
    """Cancellation ends the worker at once, and the sandbox goes on."""

    async def main():
        with make_box() as box:
            assert (await box.run_async(handlers.add, {"a": 1, "b": 1})).ok
            while box.statistics().busy:
                await asyncio.sleep(0)
            task = asyncio.create_task(box.run_async(handlers.spin))
            while box.statistics().busy == 0:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            deadline = time.monotonic() + 5
            while box.statistics().busy and time.monotonic() < deadline:
                await asyncio.sleep(0.005)
            assert box.statistics().busy == 0
            assert (await box.run_async(handlers.add, {"a": 1, "b": 1})).ok

    asyncio.run(main())


def test_the_async_path_uses_no_thread_a_call(make_box, nothing_left):
    """Fifty awaited calls at once run on the loop and the keeper alone."""

    async def main():
        with make_box(max_workers=8) as box:
            patient = Limits(queue_s=60)
            jobs = [box.run_async(handlers.add, {"a": index, "b": 0}, limits=patient) for index in range(50)]
            outcomes = asyncio.gather(*jobs)
            await asyncio.sleep(0)
            names = {thread.name for thread in threading.enumerate()}
            assert names <= {"MainThread", "sandbox-keeper"}
            assert [outcome.value for outcome in await outcomes] == list(range(50))

    asyncio.run(main())


def test_waiting_for_a_worker_is_bounded(make_box, nothing_left):
    """When every slot is taken, a call is refused after queue_s and never starts."""
    with make_box(max_workers=1) as box:
        assert box.run(handlers.add, {"a": 1, "b": 1}).ok
        assert wait_until(lambda: box.statistics().busy == 0)
        thread = threading.Thread(target=lambda: box.run(handlers.sleep_forever, limits=Limits(wall_s=2)))
        thread.start()
        assert wait_until(lambda: box.statistics().busy == 1)
        outcome = box.run(handlers.add, {"a": 1, "b": 1}, limits=Limits(queue_s=0.2))
        assert outcome.verdict is Verdict.OVERLOADED and not outcome.started and outcome.receipt.pid is None
        thread.join()
        assert box.run(handlers.add, {"a": 1, "b": 1}).ok


def test_interrupting_a_call_kills_its_worker(engine):
    """KeyboardInterrupt passes on after the kill."""
    script = HOST.split("def loop", maxsplit=1)[0].format(
        engine=engine, paths=[HERE, *[path for path in sys.path if path]]
    ) + (
        "assert box.run(handlers.add, {'a': 1, 'b': 1}).ok\nprint('busy', flush=True)\n"
        "try:\n    box.run(handlers.spin, limits=Limits(wall_s=30))\n"
        "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
    )
    host = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert host.stdout.readline() == b"busy\n"
    threading.Event().wait(0.3)
    host.send_signal(signal.SIGINT)
    assert host.communicate(timeout=10)[0] == b"interrupted\n"
    assert host.returncode == 0


def test_host_that_ignores_sigchld(make_box, nothing_left):
    """A host that ignores SIGCHLD gets right verdicts and no zombie."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with make_box() as box:
            assert box.run(handlers.crash, {"number": signal.SIGSEGV}).verdict is Verdict.WORKER_CRASHED
            assert box.run(handlers.exit_three).detail == "exit code 3"
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_an_end_told_to_a_closed_loop_is_no_error(make_box, nothing_left, caplog):
    """When a worker's end is reported after its caller's event loop was closed, calls go on."""
    with make_box() as box:
        assert box.run(handlers.add, {"a": 1, "b": 1}).ok
        assert wait_until(lambda: box.statistics().spares >= 4 and box.statistics().busy == 0)
        zygote = max(psutil.Process().children(recursive=True), key=count_children)
        zygote.suspend()
        outcome = asyncio.run(box.run_async(handlers.spin, limits=Limits(wall_s=0.2)))
        assert outcome.verdict is Verdict.TIMEOUT
        zygote.resume()
        assert box.run(handlers.add, {"a": 1, "b": 1}).ok
        assert wait_until(lambda: box.statistics().busy == 0)
    assert not caplog.records


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:coroutine")
def test_a_worker_for_a_closed_loop_is_given_back(make_box, nothing_left):
    """A loop that is closed while a task of its waits in line costs nobody a worker."""
    with make_box(max_workers=1) as box:
        assert box.run(handlers.add, {"a": 1, "b": 1}).ok
        assert wait_until(lambda: box.statistics().busy == 0)
        thread = threading.Thread(target=lambda: box.run(handlers.sleep_forever, limits=Limits(wall_s=1)))
        thread.start()
        assert wait_until(lambda: box.statistics().busy == 1)
        loop = asyncio.new_event_loop()
        task = loop.create_task(box.run_async(handlers.add, {"a": 1, "b": 1}))
        while box.statistics().waiting == 0:
            loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        thread.join()
        assert box.run(handlers.add, {"a": 1, "b": 1}).ok
        assert wait_until(lambda: box.statistics().busy == 0 and box.statistics().waiting == 0)
        task._log_destroy_pending = False
        del task


INTERRUPTED = """
import random, signal, sys, threading, time
sys.path[:0] = {paths!r}
import handlers_for_tests as handlers
from sandbox import Limits, Sandbox

def interrupt(number, frame):
    raise KeyboardInterrupt

box = Sandbox(max_workers=1, **{engine!r})
assert box.run(handlers.add, {{"a": 1, "b": 1}}).ok
signal.signal(signal.SIGALRM, interrupt)
goes_on = True
def compete():
    while goes_on:
        box.run(handlers.add, {{"a": 1, "b": 1}}, limits=Limits(queue_s=30))
rival = threading.Thread(target=compete)
rival.start()
until, count = time.monotonic() + 5, 0
while time.monotonic() < until:
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0001, {span_s}))
        box.run(handlers.add, {{"a": 1, "b": 1}})
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        count += 1
signal.signal(signal.SIGALRM, signal.SIG_IGN)
goes_on = False
rival.join()
for _ in range(5):
    outcome = box.run(handlers.add, {{"a": 1, "b": 1}})
    assert outcome.ok, outcome
box.close()
print(count > 20, flush=True)
"""


def test_interruptions_at_any_moment_lose_no_slot(engine):
    """With a single slot, an exception that a signal's handler raises anywhere in a call costs that call alone."""
    paths = [HERE, *[path for path in sys.path if path]]
    script = INTERRUPTED.format(engine=engine, paths=paths, span_s=0.1 if engine else 0.006)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr[-2000:]


def test_a_forked_program_inherits_no_descriptor_of_ours(make_box):
    """What another part of the host starts by fork and exec holds nothing of a worker or of its zygote."""
    with make_box() as box:
        assert box.run(handlers.add, {"a": 1, "b": 1}).ok
        assert wait_until(lambda: box.statistics().spares >= 1)
        ours = {fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2 and not is_closed(fd) and os.get_inheritable(fd)}
    assert {fd for fd in ours if is_closed(fd)} == set()


def is_closed(fd):
    """Ask whether a descriptor is not open in this process."""
    try:
        os.fstat(fd)
    except OSError:
        return True
    return False


PRESSED = """
import os, resource, sys
sys.path[:0] = {paths!r}
import handlers_for_tests as handlers
from sandbox import Limits, Sandbox
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
count = lambda: len(os.listdir("/proc/self/fd"))
with Sandbox(spares=2, limits=Limits(wall_s=2, queue_s=1), **{engine!r}) as box:
    assert box.run(handlers.add, {{"a": 1, "b": 1}}).ok
    hoard = []
    for index in range(12):
        try:
            while True:
                hoard.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            for _ in range(index % 4):
                os.close(hoard.pop())
        box.run(handlers.add, {{"a": 1, "b": 1}})
    for fd in hoard:
        os.close(fd)
    for _ in range(6):
        outcome = box.run(handlers.add, {{"a": 1, "b": 1}}, limits=Limits(queue_s=30))
    assert outcome.ok, outcome
    print(count() < 40, flush=True)
print(count() < 12, flush=True)
"""


def test_running_out_of_descriptors_leaks_none(engine):
    """A host without a free descriptor answers, and works again with as many as before once there are some."""
    script = PRESSED.format(engine=engine, paths=[HERE, *[path for path in sys.path if path]])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=110)
    assert (done.returncode, done.stdout) == (0, "True\nTrue\n"), done.stderr[-2000:]


CLOSED = """
import random, signal, sys, threading
sys.path[:0] = {paths!r}
import handlers_for_tests as handlers
import psutil
from sandbox import Sandbox

def interrupt(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
count = 0
for _ in range(20):
    box = Sandbox(**{engine!r})
    assert box.run(handlers.add, {{"a": 1, "b": 1}}).ok
    family = psutil.Process().children(recursive=True)
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00001, 0.004))
        box.close()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        count += 1
    box.close()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE], alive
    assert "sandbox-keeper" not in {{thread.name for thread in threading.enumerate()}}
print(count > 0, flush=True)
"""


@pytest.mark.slow
def test_closing_may_be_interrupted_anywhere(engine):
    """An exception that a signal's handler raises in close() leaves nothing that a second close() does not end."""
    script = CLOSED.format(engine=engine, paths=[HERE, *[path for path in sys.path if path]])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=110)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr[-2000:]
