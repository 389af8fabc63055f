"""Hosts that give less, each made from this one by taking something away in a child: the tier is found, and jobs run."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sandbox import at_least, probe

TESTS = Path(__file__).parents[1]
IS_ROOT = os.getuid() == 0
STRONG = probe().tier in ("A", "B")
SCENARIO = """
    import json, sys
    sys.path[:0] = {paths!r}
    import handlers_for_tests as handlers, psutil
    from sandbox import Limits, Sandbox, SandboxUnavailable, probe
    told = {{"tier": probe().tier, "missing": sorted(probe().missing)}}
    try:
        Sandbox().close()
    except SandboxUnavailable as refusal:
        told["refused"] = str(refusal)
    with Sandbox(isolation="none") as box:
        limits = Limits(wall_s=20, memory_bytes=64 << 20)
        run = lambda function, **arguments: box.run(function, arguments, limits=limits)
        told["verdicts"] = [str(run(function, **arguments).verdict) for function, arguments in (
            (handlers.add, {{"a": 1, "b": 2}}), (handlers.crash, {{"number": 11}}), (handlers.hog, {{}}), (handlers.flood, {{}}),
            (handlers.exit_three, {{}}), (lambda: 7, {{}}))]
        told["verdicts"].append(str(box.run(handlers.spin, limits=Limits(wall_s=0.5)).verdict))
        outcome = run(handlers.kernel_facts)
        told["facts"] = outcome.value
        told["receipt"] = {{name: getattr(outcome.receipt, name) for name in ("tier", "layers", "missing")}}
        told["attempts"] = {{name: run(handlers.attempt, name=name).value for name in {attempts!r}}}
        # Only where a wall stands between the worker and this machine's processes.
        walls = {{"pid_namespace", "seccomp"}}
        told["is_scoped"] = bool(walls & set(outcome.receipt.layers)) or outcome.receipt.landlock_abi >= 6
        if told["is_scoped"]:
            run(handlers.kill_everybody)
        told["after"] = str(run(handlers.add, a=1, b=1).verdict)
    told["left"] = len(psutil.Process().children(recursive=True))
    print(json.dumps(told))
"""
ATTEMPTS = ["fork", "exec", "tcp", "write_tmp", "unshare", "thread", "socketpair"]
VERDICTS = ["ok", "worker_crashed", "memory_limit", "output_limit", "no_result", "ok", "timeout"]


def interpreter():
    """Return an interpreter of this version that another uid can start, `None` without one."""
    for candidate in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        path = Path(candidate)
        if not all(parent.stat().st_mode & 0o001 for parent in path.parents):
            continue
        version = subprocess.run(
            [candidate, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, check=True
        )
        if version.stdout.strip().decode() == str(sys.version_info[:2]):
            return candidate
    return None


def reachable_copy(tmp_path_factory):
    """Copy what the scenario imports to a place where another uid can read it; return the import roots."""
    import shutil

    import dill
    import psutil

    copy = tmp_path_factory.mktemp("copy")
    for parent in (copy, *copy.parents):
        if parent.stat().st_uid == os.getuid() and str(parent) != "/":
            parent.chmod(parent.stat().st_mode | 0o055)
    for source in (TESTS.parent / "sandbox", Path(dill.__file__).parent, Path(psutil.__file__).parent):
        shutil.copytree(source, copy / source.name)
    shutil.copy(TESTS / "handlers_for_tests.py", copy)
    return [str(copy)]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Give a function that runs the scenario with something taken away, once for each combination."""
    answers = {}

    def run(what):
        if what not in answers:
            python, paths = sys.executable, [str(TESTS), *[path for path in sys.path if path]]
            if "nobody" in what or "capabilities" in what:
                python, paths = interpreter(), reachable_copy(tmp_path_factory)
                if python is None:
                    pytest.skip("no interpreter of this version that another uid can start")
            script = textwrap.dedent(SCENARIO.format(paths=paths, attempts=ATTEMPTS))
            command = [sys.executable, str(TESTS / "restrict_for_tests.py"), what, python, "-B", "-c", script]
            done = subprocess.run(command, capture_output=True, timeout=100, check=False, cwd="/")
            assert done.returncode == 0, done.stderr.decode()[-3000:]
            answers[what] = json.loads(done.stdout)
        return answers[what]

    return run


CASES = [
    pytest.param("namespaces", "C", {"user_namespace"}, id="container-default"),
    pytest.param("landlock", "D", {"landlock"}, id="no-landlock"),
    pytest.param("namespaces,landlock", "D", {"user_namespace", "landlock"}, id="container-old-kernel"),
    pytest.param("seccomp", "D", {"seccomp"}, id="no-seccomp"),
]
if IS_ROOT:
    CASES += [
        pytest.param("nobody", "B", set(), id="unprivileged"),
        pytest.param("nobody,namespaces", "C", {"user_namespace"}, id="unprivileged-in-container"),
        pytest.param("nobody,namespaces,landlock", "D", {"user_namespace", "landlock"}, id="unprivileged-little"),
        pytest.param("capabilities", None, set(), id="root-without-capabilities"),
        pytest.param("namespaces,capabilities", "C", {"user_namespace"}, id="root-in-container-without-capabilities"),
    ]
pytestmark = pytest.mark.skipif(not STRONG, reason="this host gives less than tier B to begin with")


@pytest.mark.parametrize(("what", "tier", "missing"), CASES)
def test_lower_tier(told, what, tier, missing):
    """The tier is the one that is left, what is missing is named, and every job ends as on a stronger host."""
    seen = told(what)
    assert tier in (None, seen["tier"]), seen
    assert missing <= set(seen["missing"]) and seen["receipt"]["tier"] == seen["tier"]
    assert seen["verdicts"] == VERDICTS
    assert seen["left"] == 0


@pytest.mark.parametrize(("what", "tier", "missing"), CASES)
def test_minimum_is_kept(told, what, tier, missing):
    """Below the default minimum nothing starts, and the refusal names what is missing; at it or above all is well."""
    seen = told(what)
    if at_least(seen["tier"], "C"):
        assert "refused" not in seen
    else:
        assert all(name in seen["refused"] for name in missing) and "below the minimum 'C'" in seen["refused"]


@pytest.mark.parametrize(("what", "tier", "missing"), CASES)
def test_what_still_stands(told, what, tier, missing):
    """Whatever else is missing, no capability is left and privileges cannot be gained; filters hold where they stand."""
    seen = told(what)
    facts = seen["facts"]
    assert facts["capabilities"] == [0] * 6 and facts["no_new_privs"] == 1 and facts["descriptors"] == [0, 1, 2, 3]
    assert seen["attempts"]["thread"] == seen["attempts"]["socketpair"] == "done"
    if "seccomp" not in missing:
        assert "done" not in [seen["attempts"][name] for name in ("fork", "exec", "tcp", "unshare")]
    if "landlock" not in missing or "user_namespace" not in missing:
        assert seen["attempts"]["write_tmp"] != "done"
    assert seen["after"] == "ok"
