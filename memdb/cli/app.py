"""The commands in their order, and how what goes wrong is told: one sentence on stderr and an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

import memdb
from memdb.cli import output
from memdb.cli.demo import demo
from memdb.cli.explain import explain
from memdb.cli.files import backup, init, migrate
from memdb.cli.forget import forget
from memdb.cli.graph import commands as graph_commands
from memdb.cli.graph import graph
from memdb.cli.history import history
from memdb.cli.ingest import ingest
from memdb.cli.look import check, info
from memdb.cli.messages import messages
from memdb.cli.pages import pages
from memdb.cli.patterns import patterns
from memdb.cli.recall import recall
from memdb.cli.search import search
from memdb.cli.skills import skills
from memdb.cli.state import state
from memdb.cli.sync import sync
from memdb.cli.timeline import timeline
from memdb.cli.transfer import export, import_
from memdb.errors import Corrupt, MemdbError, MissingFile, NotFound

COMMANDS: tuple[Callable[..., None], ...] = (
    init,
    ingest,
    sync,
    search,
    recall,
    explain,
    pages,
    messages,
    history,
    timeline,
    patterns,
    skills,
    state,
    graph,
    info,
    check,
    backup,
    export,
    import_,
    forget,
    migrate,
    demo,
)
GROUPS = {graph: graph_commands}  # the commands that have commands of their own

NOTHING, MISUSE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141
# Which error ends with which status; the first match counts.
_STATUS: tuple[tuple[type[BaseException], int], ...] = (
    (MissingFile, MISUSE),
    (NotFound, NOTHING),
    (Corrupt, NOTHING),
    (Exception, MISUSE),
)


class _InOrder(TyperGroup):
    """Lists all commands in their order; typer puts those with commands of their own behind the others."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [command.__name__ for command in COMMANDS]


app = typer.Typer(
    name="memdb",
    cls=_InOrder,
    add_completion=False,
    rich_markup_mode=None,  # the same plain help on a terminal and in a pipe
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for command in COMMANDS:
    if command in GROUPS:
        app.add_typer(GROUPS[command], name=command.__name__)
    else:
        app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        output.say(f"memdb {memdb.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """The memory of an AI agent in one SQLite file.

    Try it: memdb demo

    Exit status: 0 done, 1 nothing found or not sound, 2 it could not be done.
    """
    if context.invoked_subcommand is None:
        output.say(context.get_help())


def main(arguments: list[str] | None = None) -> int:
    """Run the `memdb` command.

    Args:
        arguments: the words after `memdb`; by default those of the process.

    Returns:
        The exit status.
    """
    output.make_streams_forgiving()
    with output.warnings_shown():
        try:
            return _run(sys.argv[1:] if arguments is None else arguments)
        except BrokenPipeError:
            _close_stdout()
            return PIPE_CLOSED


def _run(arguments: list[str]) -> int:
    commands = get_command(app)
    try:
        try:
            with commands.make_context("memdb", list(arguments)) as context:
                commands.invoke(context)
        finally:
            sys.stdout.flush()
    except typer.Exit as end:
        return end.exit_code
    except (KeyboardInterrupt, typer.Abort) as stop:
        output.complain(str(stop) or "interrupted")
        return INTERRUPTED
    except SystemExit:  # so rich ends, when nobody reads what it prints
        raise BrokenPipeError from None
    except BrokenPipeError:
        raise
    except (MemdbError, OSError) as error:
        output.complain(_sentence(error))
        return next(status for kind, status in _STATUS if isinstance(error, kind))
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        output.complain(_usage(error))
        return MISUSE
    return 0


def _sentence(error: MemdbError | OSError) -> str:
    if isinstance(error, MemdbError) or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror


def _usage(error: Any) -> str:
    """Return typer's complaint as a sentence; its class lives in another package from release to release."""
    message = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
    context = getattr(error, "ctx", None)
    help_of = context.command_path if context is not None else "memdb"
    return f"{message[:1].lower()}{message[1:]}; see `{help_of} --help`"


def _close_stdout() -> None:
    """Let nothing more be written to a pipe that nobody reads, not even at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
