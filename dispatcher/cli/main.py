"""The command line's commands and exit codes.

0 ok · 1 some call answered an error · 2 usage · 3 no sandbox · 70 our own bug · 130 interrupted · 141 closed pipe
"""

import json
import os
import sys
from typing import Annotated, Any

import typer

from dispatcher.cli.loading import DEFAULT_TOOLS, load_registry
from dispatcher.cli.talk import (
    BUG,
    CLOSED_PIPE,
    FAILED,
    INTERRUPTED,
    NO_SANDBOX,
    OK,
    USAGE,
    PipeClosed,
    UsageProblem,
    complain,
    say,
)

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=False,
    help="Run a model's tool calls in disposable, confined processes.",
)
_AFTER_NAME = {"ignore_unknown_options": True, "allow_interspersed_args": False}
ToolsOption = Annotated[str, typer.Option("--tools", help="where the registry is, as module:attribute")]
RecordsOption = Annotated[bool, typer.Option("--records", help="write each call's record to stderr, as JSON")]


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(version("sandboxed-dispatcher"))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Run a model's tool calls in disposable, confined processes."""


@app.command(context_settings=_AFTER_NAME)
def call(
    name: Annotated[str, typer.Argument(help="the tool")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="its arguments as JSON; - reads them from stdin")
    ] = None,
    tools: ToolsOption = DEFAULT_TOOLS,
    text: Annotated[bool, typer.Option("--text", help="print the text form")] = False,
    records: RecordsOption = False,
) -> int:
    """Make one call and print its observation."""
    given = arguments or []
    if name.startswith("-"):  # no tool is named so, and what stands before NAME is ours
        raise UsageProblem(f"call has no option {name}")
    if len(given) > 1:
        raise UsageProblem("call takes one argument after NAME: quote the JSON, and put options before NAME")
    raw: Any = "{}" if not given else sys.stdin.buffer.read() if given[0] == "-" else given[0]
    with open_dispatcher(tools, records) as dispatcher:
        observation = dispatcher.execute(name, raw)
    say(observation.to_text() if text else observation.to_json())
    return OK if observation.ok else FAILED


@app.command()
def run(
    file: Annotated[str, typer.Argument(help="a file of calls, one JSON object a line; - is stdin")],
    tools: ToolsOption = DEFAULT_TOOLS,
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=256, help="calls at once")] = 4,
    records: RecordsOption = False,
) -> int:
    """Make every call of a file, and print the observations in order."""
    from dispatcher.cli import stream

    with open_dispatcher(tools, records) as dispatcher:
        return FAILED if stream.run_file(dispatcher, file, jobs) else OK


@app.command("tools")
def list_tools(
    name: Annotated[str | None, typer.Argument(help="one tool")] = None,
    tools: ToolsOption = DEFAULT_TOOLS,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> int:
    """List the tools, or show one with its schema, limits and codes."""
    from dispatcher.cli import listing

    return listing.show(load_registry(tools), name, as_json=as_json)


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> int:
    """Say what this host can confine, layer by layer, what is lost and what to do."""
    from sandbox import DEFAULT_ISOLATION, at_least, probe

    found = probe()
    say(json.dumps(found.to_dict()) if as_json else "\n".join(found.report()))
    return OK if at_least(found.tier, DEFAULT_ISOLATION) else NO_SANDBOX


@app.command()
def demo() -> int:
    """See classic mistakes repaired, and hostile calls killed while honest ones go on."""
    from dispatcher.cli import demo as script

    return OK if script.run() else FAILED


def open_dispatcher(place: str, shows_records: bool) -> Any:
    """Return a dispatcher over the registry at `place`."""
    from dispatcher import Dispatcher

    return Dispatcher(load_registry(place), record=_show if shows_records else _drop)


def _show(record: Any) -> None:
    sys.stderr.write(record.to_json_line() + "\n")


def _drop(record: Any) -> None:
    return None


def run_command(arguments: list[str]) -> int:
    """Run one command line and return its exit code; never raises."""
    from sandbox.errors import SandboxUnavailable

    try:
        return int(app(arguments, prog_name="dispatcher", standalone_mode=False) or 0)
    except UsageProblem as problem:
        complain(str(problem))
        return USAGE
    except SandboxUnavailable as problem:
        complain(f"{problem} (see: dispatcher doctor)")
        return NO_SANDBOX
    except KeyboardInterrupt:
        return INTERRUPTED
    except (PipeClosed, BrokenPipeError):
        _silence_stdout()
        return CLOSED_PIPE
    except Exception as error:
        return _explain(error)


def _explain(error: Exception) -> int:
    format_message = getattr(error, "format_message", None)
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    if type(error).__name__ == "NoArgsIsHelpError" or format_message is not None:
        complain((format_message() if format_message else str(error)) or "no command; see dispatcher --help")
        return USAGE
    from dispatcher.ids import new_correlation_id

    complain(f"internal error {new_correlation_id()}: {type(error).__name__}: {error}")
    return BUG


def _silence_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Be the console script."""
    from dispatcher.cli import interrupt

    interrupt.insist()
    code = run_command(sys.argv[1:])
    interrupt.desist()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()
        code = CLOSED_PIPE
    if code == INTERRUPTED:  # the interpreter's own end would wait for a thread that reads a terminal
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
