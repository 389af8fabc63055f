"""The demonstration: a scripted model repairs its mistakes, and hostile calls die while honest ones go on.

Everything shown is measured in this very run; the command succeeds only if all of it came out as promised.
"""

import threading
from dataclasses import dataclass
from typing import Any

from dispatcher.cli.loading import DEFAULT_TOOLS, load_registry


@dataclass(frozen=True, slots=True)
class Mistake:
    """Hold one mistake: what it is, the wrong call, the code it must get, and the repaired call."""

    what: str
    tool: str
    wrong: str
    code: str
    repaired_tool: str
    repaired: str


MISTAKES = (
    Mistake(
        "a tool that does not exist",
        "get_forecast",
        '{"city":"Pune"}',
        "unknown_tool",
        "get_weather",
        '{"city":"Pune"}',
    ),
    Mistake("broken JSON", "get_job", '{"job_id": 17', "invalid_json", "get_job", '{"job_id": 17}'),
    Mistake("an array, not an object", "get_job", "[17]", "invalid_args", "get_job", '{"job_id": 17}'),
    Mistake(
        "a missing field",
        "db.get_user",
        '{"fields":["name"]}',
        "invalid_args",
        "db.get_user",
        '{"id":42,"fields":["name"]}',
    ),
    Mistake("words for a number", "db.get_user", '{"id":"forty-two"}', "invalid_args", "db.get_user", '{"id":42}'),
    Mistake("true for a number", "get_job", '{"job_id":true}', "invalid_args", "get_job", '{"job_id":"42"}'),
    Mistake(
        "an invented key",
        "get_weather",
        '{"city":"Oslo","units":"C"}',
        "invalid_args",
        "get_weather",
        '{"city":"Oslo"}',
    ),
    Mistake("an id that does not exist", "get_job", '{"job_id":99}', "not_found", "get_job", '{"job_id":42}'),
)
HOSTILE = (
    ("power", '{"a":9,"b":99,"c":99}', "timeout", None),
    ("hog_memory", "{}", "internal_error", "memory_limit"),
    ("flood_output", "{}", "internal_error", "output_limit"),
    ("kill_itself", "{}", "internal_error", "worker_crashed"),
    ("ignore_signals", "{}", "timeout", None),
)
HONEST = ("calculator", '{"expression":"6*7"}', 42)


def run() -> bool:
    """Run the whole demonstration, print it, and return whether all came out as promised."""
    from rich.console import Console

    from dispatcher import Dispatcher, Registry
    from dispatcher.cli import demo_tools

    registry = Registry()
    for tool in load_registry(DEFAULT_TOOLS):
        registry._put(tool, False)
    demo_tools.register(registry)
    console = Console(width=None if Console().is_terminal else 120)
    with Dispatcher(registry, record=lambda record: None) as dispatcher:
        repaired = _show_mistakes(console, dispatcher)
        killed = _show_hostile(console, dispatcher)
    console.print("all as promised" if repaired and killed else "NOT as promised", style="bold")
    return repaired and killed


def _show_mistakes(console: Any, dispatcher: Any) -> bool:
    """Make each mistake, read the observation, repair the call."""
    console.print("1. A model makes a mistake, reads the answer, repairs its call", style="bold")
    good = True
    for mistake in MISTAKES:
        wrong = dispatcher.execute(mistake.tool, mistake.wrong)
        right = dispatcher.execute(mistake.repaired_tool, mistake.repaired)
        good &= wrong.code == mistake.code and right.ok
        console.print(f"  {mistake.what}: {mistake.tool} {mistake.wrong}", markup=False, highlight=False)
        console.print(f"    < {wrong.to_text()}", markup=False, highlight=False, style="yellow")
        console.print(f"    > {mistake.repaired_tool} {mistake.repaired}", markup=False, highlight=False)
        console.print(f"    < {right.to_text()}", markup=False, highlight=False, style="green")
    return good


class _Honest:
    """Make honest calls from a thread of its own until told to stop, and count right and wrong answers."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        self._stop = threading.Event()
        self.right = self.wrong = 0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "_Honest":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        tool, arguments, result = HONEST
        while not self._stop.is_set():
            answer = self._dispatcher.execute(tool, arguments)
            if answer.ok and answer.result == result:
                self.right += 1
            else:
                self.wrong += 1


def _show_hostile(console: Any, dispatcher: Any) -> bool:
    """Run each hostile call beside a stream of honest ones."""
    from rich.table import Table

    console.print("\n2. Hostile calls are killed one after another; honest calls go on all the while", style="bold")
    table = Table("tool", "code", "reason", "ended after", "correlation id", "tier", "honest calls meanwhile")
    good = True
    for tool, arguments, code, reason in HOSTILE:
        with _Honest(dispatcher) as honest:
            answer = dispatcher.execute(tool, arguments)
        good &= answer.code == code and answer.reason == reason and honest.wrong == 0 and honest.right > 0
        tier = answer.receipt.tier if answer.receipt else "-"
        ended = f"{answer.timing.run_s:.2f} s"
        row = (tool, answer.code, answer.reason or "-", ended, answer.correlation_id, tier, f"{honest.right} right")
        table.add_row(*row)
    console.print(table)
    return good
