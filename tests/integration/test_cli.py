"""The command line, by real processes: what it prints where, and how it ends."""

import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = """
    import time
    from dispatcher import Limits, Registry, ToolError
    registry = Registry()

    @registry.tool(effect="read")
    def greet(name: str) -> str:
        "Greet."
        print("noise on stdout")
        return "hello " + name

    @registry.tool(effect="read", limits=Limits(wall_s=60))
    def hang() -> None:
        "Hang."
        time.sleep(60)
"""


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}


def dispatcher(*arguments, given=b"", cwd=ROOT, timeout=60):
    """Run the command to its end."""
    command = [sys.executable, "-m", "dispatcher", *arguments]
    return subprocess.run(
        command, input=given, capture_output=True, cwd=cwd, timeout=timeout, env=environment(), check=False
    )


def lines_of(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def project(tmp_path):
    """Make a folder with a registry of the user's own."""
    (tmp_path / "mine.py").write_text(textwrap.dedent(TOOLS))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "given", "printed", "code"),
    [
        (["calculator", '{"expression":"2+3"}'], b"", '{"ok":true,"result":5}', 0),
        (["--text", "calculator", '{"expression":"2+3"}'], b"", "5", 0),
        (["calculator", "-"], b'{"expression":"2*3"}', '{"ok":true,"result":6}', 0),
        (["--text", "get_forecast", "{}"], b"", "Error: unknown tool 'get_forecast'.", 1),
        (["--text", "calculator"], b"", "Error: invalid arguments: expression: Field required.", 1),
        (["--text", "calculator", "--text"], b"", "Error: arguments are not valid JSON", 1),
        (["--text", "calculator", "--help"], b"", "Error: arguments are not valid JSON", 1),
        (["--text", "calculator", "-1"], b"", "Error: arguments must be a JSON object such as", 1),
        (["--text", "calculator", "-"], b"\xff", "Error: arguments are not valid JSON", 1),
    ],
)
def test_call(arguments, given, printed, code):
    """One call prints one line; what stands after NAME is never an option, `-` reads stdin, nothing means {}."""
    done = dispatcher("call", *arguments, given=given)
    assert done.stdout.decode().startswith(printed), done
    assert (done.stdout.count(b"\n"), done.stderr, done.returncode) == (1, b"", code)


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["fly"], ["call"], ["call", "calculator", "{}", "{}"], ["run"], ["run", "/no/such/file"], ["call", "--loud", "x"],
        ["run", "--jobs", "0", "-"], ["run", "--jobs", "many", "-"], ["call", "--tools", "nowhere", "x"],
        ["call", "--tools", "nowhere:registry", "x"], ["call", "--tools", "json:dumps", "x"], ["tools", "no_such_tool"],
        ["call", "--tools", "dispatcher:nothing", "x"],
    ],
)  # fmt: skip
def test_a_usage_mistake_is_one_line(arguments):
    """A mistake of the user's is one line on stderr, nothing on stdout, exit code 2."""
    done = dispatcher(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1), done
    assert done.stderr.startswith(b"dispatcher: ") and b"Traceback" not in done.stderr


def test_help_is_on_stdout():
    """Help is asked for, so it is a result."""
    done = dispatcher("--help")
    assert done.returncode == 0 and b"call" in done.stdout and done.stderr == b""


def test_run_answers_every_line_in_order():
    """Calls, mistakes and things that are no calls are answered in their places; blank lines are skipped."""
    given = [
        '{"id": 1, "tool": "calculator", "arguments": "{\\"expression\\":\\"2+3\\"}"}',
        "",
        '{"id": {"a": [1]}, "tool": "calculator", "arguments": {"expression": "1"}}',
        '{"tool":"calculator","arguments":"{"expression":"2+3"}"}',
        "   ",
        "[1]",
        '{"id": 7}',
        '{"id": "x", "tool": "fly", "arguments": {}}',
        '{"id": 9, "tool": "calculator", "argments": {}}',
        '{"id": 10, "tool": "calculator", "arguments": 5}',
        '{"id": 11, "tool": "power", "arguments": {"a": 9, "b": 99, "c": 99}}',
        '{"id": 12, "tool": "get_job", "arguments": {"job_id": "17"}}',
        "\ufeff{}",
        '{"id": 13, "tool": "db.get_user", "arguments": ""}',
    ]
    done = dispatcher("run", "-", given="\n".join(given).encode())
    answers = lines_of(done)
    seen = [(answer["id"], answer["tool"], answer.get("error", "ok")) for answer in answers]
    assert seen == [
        (1, "calculator", "ok"),
        ({"a": [1]}, "calculator", "ok"),
        (None, None, "invalid_json"),
        (None, None, "invalid_args"),
        (None, None, "invalid_args"),
        ("x", "fly", "unknown_tool"),
        (None, None, "invalid_args"),
        (None, None, "invalid_args"),
        (11, "power", "timeout"),
        (12, "get_job", "ok"),
        (None, None, "invalid_json"),
        (13, "db.get_user", "invalid_args"),
    ]
    assert answers[0]["result"] == 5 and (done.stderr, done.returncode) == (b"", 1)


def test_run_of_only_good_calls_is_0_and_reads_files(tmp_path):
    """A file whose every call answers ends with 0; a last line without a newline counts."""
    file = tmp_path / "calls.ndjson"
    file.write_text(
        '{"tool":"calculator","arguments":{"expression":"1"}}\n' * 20 + '{"tool":"get_job","arguments":{"job_id":17}}'
    )
    done = dispatcher("run", str(file), "--jobs", "8")
    assert (len(lines_of(done)), done.returncode) == (21, 0)


def test_memory_does_not_grow_with_the_file(tmp_path):
    """A hundred times the lines need about the same memory; a line over the cap is refused in its place."""

    def peak_of(count):
        file = tmp_path / f"{count}.ndjson"
        with file.open("w") as out:
            for number in range(count):
                out.write(json.dumps({"id": number, "tool": "nobody", "arguments": "x" * 500}) + "\n")
            out.write("y" * (9 << 20) + "\n")
        script = (
            "import resource, sys; from dispatcher.cli.main import run_command; code = run_command(['run', sys.argv[1]]);"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr); sys.exit(code)"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, file], capture_output=True, timeout=100, env=environment(), check=False
        )
        answers = done.stdout.splitlines()
        assert len(answers) == count + 1 and done.returncode == 1
        assert json.loads(answers[-1])["reason"] == "size"
        return int(done.stderr)

    assert resource.RLIMIT_AS is not None
    small, large = peak_of(100), peak_of(10_000)
    assert large < 1.5 * small, (small, large)


def test_tools_lists_and_shows():
    """The list names every tool; one tool shows its schema, its limits and its codes."""
    listed = dispatcher("tools")
    assert (
        all(name in listed.stdout.decode() for name in ("calculator", "db.get_user", "power"))
        and listed.returncode == 0
    )
    shown = dispatcher("tools", "get_job")
    assert all(word in shown.stdout.decode() for word in ("job_id", "not_found", "invalid_args", "timeout"))
    data = json.loads(dispatcher("tools", "--json").stdout)
    assert {"calculator", "power"} <= {tool["name"] for tool in data}


def test_doctor_says_what_stands():
    """The doctor names the tier and each layer, as text and as JSON."""
    done = dispatcher("doctor")
    told = json.loads(dispatcher("doctor", "--json").stdout)
    assert f"tier {told['tier']}" in done.stdout.decode() and "landlock" in done.stdout.decode()
    assert done.returncode == (0 if told["tier"] in "ABC" else 3)


def test_registry_of_the_current_directory(project):
    """--tools finds a module beside the user, and what its handlers print never reaches stdout."""
    done = dispatcher("call", "--tools", "mine:registry", "greet", '{"name":"Ada"}', cwd=project)
    assert (done.stdout, done.stderr, done.returncode) == (b'{"ok":true,"result":"hello Ada"}\n', b"", 0)


def test_a_tools_package_of_the_users_wins(project):
    """A `tools` package in the current directory is found before the bundled one."""
    (project / "tools").mkdir()
    (project / "tools" / "__init__.py").write_text(textwrap.dedent(TOOLS))
    done = dispatcher("call", "greet", '{"name":"Ada"}', cwd=project)
    assert (lines_of(done)[0].get("result"), done.returncode) == ("hello Ada", 0), done


def test_a_module_that_raises_is_one_line(project):
    """A registry whose module fails is a usage mistake."""
    (project / "bad.py").write_text("raise RuntimeError('two\\nlines')\n")
    done = dispatcher("call", "--tools", "bad:registry", "x", cwd=project)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)


def test_our_own_bug_is_70_with_an_id(project):
    """What nobody foresaw is one line with an id, and exit code 70."""
    (project / "odd.py").write_text(
        "from dispatcher import Registry\nclass Odd(Registry):\n    def __iter__(self):\n        raise LookupError('odd')\n"
        "registry = Odd()\n"
    )
    done = dispatcher("call", "--tools", "odd:registry", "x", cwd=project)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (70, b"", 1) and b" c-" in done.stderr


@pytest.mark.parametrize("command", [["call", "hang"], ["run", "-"]])
def test_interrupted_is_130_and_leaves_nothing(project, command):
    """Control-C ends a call in flight and its worker at once."""
    running = subprocess.Popen(
        [sys.executable, "-m", "dispatcher", command[0], "--tools", "mine:registry", *command[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=project,
        env=environment(),
    )
    if command[0] == "run":
        running.stdin.write(b'{"tool":"greet","arguments":{"name":"a"}}\n{"tool":"hang","arguments":{}}\n')
        running.stdin.flush()
        assert b"hello a" in running.stdout.readline()
    else:
        wait_for_descendants(running.pid, 3)
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=30) == 130  # with its standard input still open, as a terminal's is
    _, said = running.communicate()
    assert b"Traceback" not in said, said


def test_interrupted_at_a_terminal(project):
    """Control-C ends a `run` that waits for the next line of a terminal."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "dispatcher", "run", "--tools", "mine:registry", "-"]
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=project, env=environment()
    ) as running:
        os.write(ours, b'{"tool":"greet","arguments":{"name":"a"}}\n')
        assert b"hello a" in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=30) == 130
    os.close(ours)
    os.close(theirs)


def wait_for_descendants(pid, count):
    import psutil

    deadline = time.monotonic() + 20
    while len(psutil.Process(pid).children(recursive=True)) < count and time.monotonic() < deadline:
        time.sleep(0.05)


def test_a_closed_pipe_is_141(tmp_path):
    """When nobody reads on, it ends quietly."""
    file = tmp_path / "calls"
    file.write_text('{"tool":"nobody","arguments":{}}\n' * 20_000)
    running = subprocess.Popen(
        [sys.executable, "-m", "dispatcher", "run", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment(),
    )
    running.stdout.readline()
    running.stdout.close()
    said = running.stderr.read()
    running.stderr.close()
    assert (running.wait(60), said) == (141, b"")


def test_below_the_minimum_is_3(project):
    """A host that cannot confine is told with what the doctor would say, and exit code 3."""
    (project / "sitecustomize.py").write_text(
        "import sandbox.probing as p\nfound = p.Probe(tier='D', missing={'landlock': 'switched off'})\np.probe = lambda: found\n"
    )
    env = {**environment(), "PYTHONPATH": f"{project}:{ROOT}"}
    command = [sys.executable, "-m", "dispatcher", "call", "calculator", "{}"]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, env=env, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (3, b"", 1), done
    assert b"landlock" in done.stderr and b"doctor" in done.stderr


def test_demo_comes_out_as_promised():
    """The demonstration ends with 0 within its twenty seconds (three times that, on a busy machine)."""
    done = dispatcher("demo", timeout=60)
    assert done.returncode == 0, done.stdout[-2000:]
    for word in (b"timeout", b"memory_limit", b"output_limit", b"worker_crashed", b"c-", b"tier"):
        assert word in done.stdout.lower() or word in done.stdout, word


def test_records_go_to_stderr_when_asked_for(project):
    """With --records every call's record is one JSON line on stderr, and stdout carries results only."""
    done = dispatcher("call", "--tools", "mine:registry", "--records", "greet", '{"name":"a"}', cwd=project)
    assert lines_of(done) == [{"ok": True, "result": "hello a"}]
    record = json.loads(done.stderr)
    assert (record["tool"], record["code"], record["output"]) == ("greet", "ok", "noise on stdout\n")


def test_a_module_that_ends_the_interpreter_is_a_usage_mistake(project):
    """A module that calls sys.exit at import is one line and exit code 2, not its own code."""
    (project / "ends.py").write_text("import sys\nsys.exit(5)\n")
    done = dispatcher("call", "--tools", "ends:registry", "x", cwd=project)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
