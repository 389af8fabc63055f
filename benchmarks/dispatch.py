"""What does one paced call of a pure function cost, in a fresh confined process, against a reused, unconfined one?

Processes: this one starts a fresh interpreter for each peer and round, in turn; each checks its answers first, then
times paced calls and prints its samples as JSON.

    dispatcher   Dispatcher.execute from the model's text to the observation: parse, validate, a new worker, render
    pool         concurrent.futures.ProcessPoolExecutor: submit(...).result(), the same processes again and again
"""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

PEERS = ("dispatcher", "pool")
ROUNDS = 3
CHECKED_CALLS = 20
TIMED_CALLS = 200
PAUSE_S = 0.005  # long enough for a spare to be back on the shelf: the question is one call's wait, not throughput


def double(number: int) -> int:
    """Return twice the number."""
    return 2 * number


def whoami() -> int:
    """Return the pid of the process that runs this."""
    return os.getpid()


def measure() -> dict[str, Any]:
    """Run every peer in turn, each in a fresh process, and return the percentiles in microseconds."""
    samples: dict[str, list[float]] = {peer: [] for peer in PEERS}
    facts: dict[str, dict[str, Any]] = {}
    for _ in range(ROUNDS):
        for peer in PEERS:
            found = _run_peer(peer)
            samples[peer] += found.pop("samples_us")
            facts[peer] = found
    rows = [{"peer": peer, **facts[peer], **_percentiles(samples[peer])} for peer in PEERS]
    host = {"python": platform.python_version(), "kernel": platform.release(), "cores": os.cpu_count()}
    return {"question": (__doc__ or "").split("\n", 1)[0], "host": host, "pause_s": PAUSE_S, "rows": rows}


def table(found: dict[str, Any]) -> str:
    """Return the measurement as text."""
    host = found["host"]
    lines = [
        found["question"],
        f"Python {host['python']}, Linux {host['kernel']}, {host['cores']} cores; one caller, "
        f"{found['pause_s'] * 1000:g} ms between calls",
        "",
        f"{'peer':<12}{'calls':>7}{'p50 µs':>9}{'p99 µs':>9}   process",
    ]
    lines += [
        f"{row['peer']:<12}{row['calls']:>7}{row['p50_us']:>9.0f}{row['p99_us']:>9.0f}   {row['process']}"
        for row in found["rows"]
    ]
    return "\n".join(lines)


def _run_peer(peer: str) -> dict[str, Any]:
    # Imported, not run as a script: so the functions travel by their names, as a user's would.
    command = [sys.executable, "-c", f"from benchmarks import dispatch; dispatch.run_{peer}()"]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=120).stdout)
    return found


def _percentiles(samples: list[float]) -> dict[str, float]:
    ordered = sorted(samples)
    at = {f"p{percent}_us": round(ordered[len(ordered) * percent // 100], 1) for percent in (50, 99)}
    return {"calls": len(ordered), **at}


def _time_calls(call: Callable[[int], int]) -> list[float]:
    """Return each paced call's time in microseconds; every answer is checked, outside the clock."""
    samples = []
    for number in range(TIMED_CALLS):
        time.sleep(PAUSE_S)
        began = time.perf_counter()
        answer = call(number)
        samples.append(round((time.perf_counter() - began) * 1e6, 1))
        _require(answer == 2 * number, f"double({number}) answered {answer}")
    return samples


def _require(is_right: bool, otherwise: str) -> None:
    if not is_right:
        raise SystemExit(f"not measured: {otherwise}")


def _tell(process: str, samples: list[float]) -> None:
    print(json.dumps({"process": process, "samples_us": samples}))


def run_dispatcher() -> None:
    """Measure the dispatcher, once each of its calls is seen to get a process of its own."""
    from dispatcher import Dispatcher, Registry

    registry = Registry()
    for function in (double, whoami):
        registry.tool(effect="read")(function)
    with Dispatcher(registry, record=lambda record: None) as dispatcher:
        answers = [dispatcher.execute("whoami", "{}") for _ in range(CHECKED_CALLS)]
        _require(all(answer.ok for answer in answers), "a call failed")
        _require(len({answer.result for answer in answers}) == CHECKED_CALLS, "a worker served two calls")
        _require(os.getpid() not in {answer.receipt.pid for answer in answers if answer.receipt}, "run in the host")
        tier = answers[0].receipt.tier if answers[0].receipt else "none"
        samples = _time_calls(lambda number: dispatcher.execute("double", f'{{"number": {number}}}').result)
    _tell(f"fresh for every call, confined (tier {tier})", samples)


def run_pool() -> None:
    """Measure the standard library's pool, once its calls are seen to run in other processes than this one."""
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(os.cpu_count()) as pool:
        pids = {pool.submit(whoami).result() for _ in range(CHECKED_CALLS)}
        _require(os.getpid() not in pids, "run in the host")
        _require(len(pids) <= (os.cpu_count() or 1), "the pool did not reuse its processes")
        samples = _time_calls(lambda number: pool.submit(double, number).result())
    _tell("reused, unconfined", samples)
