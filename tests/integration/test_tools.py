"""The bundled tools: every row of tools/cases, and what a row cannot say."""

import json
import os
from pathlib import Path

import pytest

import tools
from dispatcher import Dispatcher, Limits, Registry
from tools import files, registry

CASES = Path(tools.__file__).parent / "cases"
ROWS = [
    pytest.param(path.stem, json.loads(line), id=f"{path.stem}-{number}")
    for path in sorted(CASES.glob("*.jsonl"))
    for number, line in enumerate(path.read_text("utf-8").splitlines())
]


@pytest.fixture(scope="module")
def records():
    return []


@pytest.fixture(scope="module")
def dispatcher(records):
    with Dispatcher(registry, record=records.append) as opened:
        yield opened


@pytest.mark.parametrize(("tool", "row"), ROWS)
def test_case(dispatcher, records, tool, row):
    """A row's raw text gets the row's code or result, and no worker where the row says so."""
    forks = dispatcher.sandbox.statistics().jobs
    answer = dispatcher.execute(tool, row["raw"])
    assert answer.code == row.get("code", "ok"), answer
    if "result" in row:
        assert answer.result == row["result"]
    if row.get("no_worker") or answer.code == "invalid_json":
        assert answer.receipt is None and dispatcher.sandbox.statistics().jobs == forks
        assert records[-1].tier == "" and records[-1].correlation_id == answer.correlation_id
    else:
        assert answer.receipt.pid > 0


def test_every_tool_has_cases_and_a_catalogue():
    """No bundled tool goes without a file of cases, and each names the codes its handler reports."""
    assert {path.stem for path in CASES.glob("*.jsonl")} == set(registry.names())
    for tool in registry:
        reported = {json.loads(line).get("code") for line in (CASES / f"{tool.name}.jsonl").read_text().splitlines()}
        assert reported - {None, "invalid_json", "timeout"} <= {"invalid_args", *tool.errors}, tool.name


@pytest.mark.parametrize(
    "expression",
    ["1e999*1e999", "(-8)**0.5", "True + 1", "a + 1", "[1][0]", "__import__('os').system('ls')", "open('x')", "2**4097",
     "9**99**99", "1/0", "(1).real", "'a'*3", "2 if 1 else 3", "lambda: 1", "1 < 2", "1 @ 1", "~1", "x := 1", "1, 2", "",
     "+".join("1" for _ in range(101))],
)  # fmt: skip
def test_calculator_refuses_what_is_no_arithmetic(dispatcher, expression):
    """Everything but bounded arithmetic on numbers is refused at /expression with a hint of its own."""
    answer = dispatcher.execute("calculator", {"expression": expression})
    assert (answer.code, answer.path) == ("invalid_args", "/expression"), answer
    assert len(answer.hint or answer.errors) > 0


def test_calculator_is_right_at_its_bound(dispatcher):
    """An integer of 4,096 bits passes; two hundred characters pass."""
    assert dispatcher.execute("calculator", {"expression": "2**4095"}).result == 2**4095
    assert (
        dispatcher.execute("calculator", {"expression": "+".join("1" for _ in range(100)) + "+"}).code == "invalid_args"
    )
    assert dispatcher.execute("calculator", {"expression": " " + "+".join("1" for _ in range(100))}).result == 100


def test_naive_power_is_killed_at_its_limit(dispatcher, records):
    """9**99**99 is a timeout at two seconds, with an id that finds its record, while other calls are answered."""
    answer = dispatcher.execute("power", {"a": 9, "b": 99, "c": 99})
    assert (answer.code, answer.correlation_id) == ("timeout", records[-1].correlation_id)
    assert 2.0 <= records[-1].run_s < 4


def test_get_job_names_the_jobs_there_are(dispatcher):
    """An unknown job's hint names 17 and 42."""
    answer = dispatcher.execute("get_job", {"job_id": 99})
    assert answer.code == "not_found" and "17" in answer.hint and "42" in answer.hint


@pytest.fixture
def outside(tmp_path):
    """Make an allowed folder with ways out of it, and a secret beside it."""
    tmp_path.chmod(0o755)
    folder = tmp_path / "allowed"
    (folder / "deep").mkdir(parents=True)
    (folder / "inside.txt").write_text("fine")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "allowed-too").mkdir()
    (tmp_path / "allowed-too" / "x.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "up").symlink_to("..")
    (folder / "good.txt").symlink_to("inside.txt")
    (folder / "loop").symlink_to("loop")
    (folder / "big.txt").write_text("ü" * 200_000)
    return folder


def test_read_file_keeps_to_its_folder(outside, nothing_left):
    """Neither dots, nor links, nor a folder whose name merely begins alike lead out; a link that stays inside is fine."""
    own = Registry()
    files.register(own, folders=(str(outside),))
    with Dispatcher(own) as dispatcher:
        for path in ("inside.txt", "deep/../inside.txt", "good.txt", str(outside / "inside.txt")):
            assert dispatcher.execute("read_file", {"path": path}).result == "fine", path
        ways_out = ["../secret.txt", "link.txt", "up/secret.txt", "../allowed-too/x.txt", "/etc/passwd", "deep/../../secret.txt",
                    str(outside) + "-too/x.txt", "/proc/self/environ", "~/x"]  # fmt: skip
        for path in ways_out:
            answer = dispatcher.execute("read_file", {"path": path})
            assert answer.code in ("denied", "not_found"), (path, answer)
            assert "secret" not in json.dumps(answer.to_dict()).replace("secret.txt", "")
        for path in ("loop", "deep", "nul\0byte", "x" * 5000, ""):
            assert not dispatcher.execute("read_file", {"path": path}).ok, path
        big = dispatcher.execute("read_file", {"path": "big.txt"})
        assert big.ok and len(big.result) < 100_000


def test_a_limit_of_the_caller_s_only_shortens(dispatcher):
    """The tool's two seconds can be cut by the caller."""
    answer = dispatcher.execute("power", {"a": 9, "b": 99, "c": 99}, timeout_s=0.2)
    assert answer.code == "timeout" and answer.timing.run_s < 1.9


def test_tools_work_with_other_limits_of_the_dispatcher():
    """The bundled registry can be used by a second dispatcher at the same time."""
    with Dispatcher(registry, limits=Limits(memory_bytes=64 << 20)) as other:
        assert other.execute("get_weather", '{"city":"Pune"}').ok
    assert os.getpid() > 0
