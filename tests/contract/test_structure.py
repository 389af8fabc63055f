"""The shape of the project: who may import whom, what a worker holds, what the papers say."""

import ast
import importlib
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import handlers_for_tests as handlers
import pytest

import dispatcher
import sandbox
from dispatcher import Dispatcher, Registry
from dispatcher.codes import table_rows

ROOT = Path(__file__).parents[2]
PACKAGES = ("sandbox", "dispatcher", "tools")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
# What runs in the host and takes in what a worker has sent.
DECODING = ("reply", "wire", "supervise", "verdict", "drive")


def imports_of(path):
    """Yield (module, name or None) for every import of a file, at any depth."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from ((node.module, alias.name) for alias in node.names)


def run_clean(script):
    """Run a script in a fresh interpreter and return what it prints as JSON."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, env=env, timeout=60, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_who_may_import_whom(path):
    """`sandbox` knows nobody, `dispatcher` uses its public names, `tools` those of `dispatcher`."""
    package = path.relative_to(ROOT).parts[0]
    for module, name in imports_of(path):
        top = module.partition(".")[0]
        if top not in PACKAGES or top == package:
            continue
        assert (package, top) in {("dispatcher", "sandbox"), ("tools", "dispatcher")}, f"{path.name} imports {module}"
        public = sandbox.__all__ if top == "sandbox" else dispatcher.__all__
        if package == "tools":
            assert module == "dispatcher" and name in public, f"{path.name} imports {module}:{name}"
        elif module == "sandbox":
            assert name is None or name in public, f"{path.name} imports {module}:{name}"
        else:  # values without parent-side code, needed where importing must stay lean
            assert module in {"sandbox.limits", "sandbox.errors", "sandbox.worker", "sandbox.convert"}, module


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_are_small(path):
    """No module has grown past 500 lines."""
    assert len(path.read_text("utf-8").splitlines()) <= 500


def test_no_pickle_on_the_way_from_worker_to_host():
    """What takes in a worker's bytes reaches JSON alone: no pickle, marshal, dill, shelve, eval or exec."""
    for name in DECODING:
        path = ROOT / "sandbox" / f"{name}.py"
        modules = {module.partition(".")[0] for module, _ in imports_of(path)}
        assert not modules & {"pickle", "marshal", "dill", "shelve", "multiprocess", "multiprocessing", "ctypes"}, name
        calls = {node.func.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
                 and isinstance(node.func, ast.Name)}  # fmt: skip
        assert not calls & {"eval", "exec", "compile", "__import__"}, name


def test_importing_does_nothing():
    """Importing the packages starts no thread and no process, imports no third party, configures no logging."""
    seen = run_clean("""
        import json, logging, sys, threading, os
        import dispatcher, sandbox
        from dispatcher import ToolError, tool, ErrorSpec, Limits, Coerce, ToolContext, Call
        heavy = [n for n in ("pydantic", "psutil", "multiprocess", "dill", "typer", "rich", "re2", "jsonschema_rs",
                 "sandbox.engine", "sandbox.sandbox", "dispatcher.registry", "dispatcher.dispatcher", "subprocess", "asyncio")
                 if n in sys.modules]
        print(json.dumps([heavy, threading.active_count(), len(logging.getLogger().handlers)]))
    """)
    assert seen == [[], 1, 0]


def test_worker_of_a_typed_tool_is_lean():
    """A live worker of a dispatcher's tool holds no pydantic and no parent-side module."""
    registry = Registry()
    registry.register("modules", {"type": "object", "properties": {}}, handlers.modules)
    with Dispatcher(registry) as box:
        names = set(box.execute("modules").result)
    unwanted = {"pydantic", "psutil", "typer", "rich", "re2", "multiprocess", "dill", "sandbox.engine", "sandbox.sandbox",
                "sandbox.reply", "dispatcher.dispatcher", "dispatcher.registry", "dispatcher.pipeline",
                "dispatcher.observation", "dispatcher.declaration"}  # fmt: skip
    assert not names & unwanted


def test_readme_has_the_code_table():
    """README's table is the code's."""
    text = (ROOT / "README.md").read_text("utf-8")
    table = text.partition("<!-- codes -->")[2].partition("<!-- /codes -->")[0].strip().splitlines()
    rows = [tuple(re.sub("`", "", cell).strip() for cell in line.strip("|").split(" | ")) for line in table[2:]]
    assert rows == [tuple(re.sub("`", "", cell) for cell in row) for row in table_rows()]


def test_readme_example_prints_what_it_says():
    """The example of README runs as it stands, and its output is README's."""
    text = (ROOT / "README.md").read_text("utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    printed = re.search(r"It prints\n\n```\n(.*?)```", text, re.S).group(1)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, timeout=60, check=True)
    assert done.stdout.decode() == printed and done.stderr == b""


def test_public_names_have_docstrings():
    """Every public module, class, function and method says what it does."""
    missing = []
    for package in PACKAGES:
        for found in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            module = importlib.import_module(found.name)
            missing += [found.name] if not module.__doc__ else []
            for name, value in vars(module).items():
                if name.startswith("_") or getattr(value, "__module__", None) != found.name:
                    continue
                if inspect.isclass(value) or inspect.isfunction(value):
                    missing += [f"{found.name}.{name}"] if not inspect.getdoc(value) else []
                if inspect.isclass(value):
                    missing += [
                        f"{found.name}.{name}.{member}"
                        for member, inner in vars(value).items()
                        if inspect.isfunction(inner) and not member.startswith("_") and not inner.__doc__
                    ]
    assert missing == []


@pytest.mark.parametrize("name", ["permission", "idempotent", "retry", "scratch", "network", "writable", "env"])
def test_what_is_not_built_does_not_exist(name):
    """A parameter whose rule is not built is a TypeError, never accepted and ignored."""
    with pytest.raises(TypeError):
        Registry().register("x", {"type": "object"}, handlers.modules, **{name: None})
    with pytest.raises(TypeError):
        Registry().tool(**{name: None})
    with Dispatcher(Registry()) as box, pytest.raises(TypeError):
        box.execute("x", "{}", **{name: None})


def test_no_file_names_a_machine():
    """Files of the project hold no path of somebody's machine and no download address."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not tracked:
        pytest.skip("not a clone")
    pattern = re.compile(r"/(home|root|Users)/[a-z]|/wor" + r"k/|https?://[a-z.]*(pypi|pythonhosted|npmjs)|/wheels?/")
    for name in tracked:
        path = ROOT / name
        if path.suffix in {".jsonl", ".json"} or path == Path(__file__).resolve():
            continue
        assert not pattern.search(path.read_text("utf-8")), name
