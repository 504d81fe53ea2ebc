"""The command line as a whole, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Annotated

import typer

from powersum import __version__
from powersum.app.cli import INTERRUPTED, Stopped, stopped_line
from powersum.app.cli.help import examples, fitting_help
from powersum.app.cli.loading import LoadingGroup
from powersum.app.cli.terminal import columns, say
from powersum.core.errors import InputError
from powersum.core.interrupt import ENDING, Interrupt, watched

app = typer.Typer(
    name="powersum",
    cls=LoadingGroup,
    help="Guaranteed bounds for marginal MAP, the partition function and MAP in graphical models.",
    epilog=examples("powersum bound model.uai --query model.uai.query --time 10", "powersum bound --help"),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"powersum {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def run_app(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code. What is wrong with the input, or ended the run, is one line."""
    with watched() as interrupt:
        _outlive_the_terminal(interrupt)
        words = ""
        try:
            code = _run(arguments)
        except Stopped as stopped:
            words = str(stopped)
        except KeyboardInterrupt:
            pass
        if interrupt.cause is None:
            return code
        with suppress(OSError):
            say(stopped_line(interrupt.cause, words), sys.stderr)
        return INTERRUPTED


def _outlive_the_terminal(interrupt: Interrupt) -> None:
    """Have a run whose terminal is closed write its files before it ends, whatever it still prints."""
    if signal.getsignal(ENDING[-1]) != interrupt.handle:
        return
    terminals = [stream.fileno() for stream in (sys.stdout, sys.stderr) if stream.isatty()]

    def hang_up(number: int, frame: FrameType | None) -> None:
        for terminal in terminals:
            os.dup2(os.open(os.devnull, os.O_WRONLY), terminal)
        interrupt.handle(number, frame)

    signal.signal(ENDING[-1], hang_up)


def _run(arguments: Sequence[str]) -> int:
    """The exit code of one command line."""
    command = typer.main.get_command(app)
    try:
        words = tuple(arguments)
        with fitting_help(command, columns(sys.stdout)) as fitting:
            code = command.main(list(words), prog_name="powersum", standalone_mode=False, obj=words, **fitting)
        sys.stdout.flush()
    except InputError as error:
        return _complain(str(error))
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        _forget_output()
        return 1
    except OSError as error:
        # Files name themselves; what has no name is where the answer is printed: a full disk, a terminal that is gone.
        if error.filename is not None:
            raise
        _forget_output()
        return _complain(f"the answer cannot be printed ({error.strerror or error})")
    except MemoryError:
        return _complain("there is not enough memory for this model")
    except Stopped:
        raise
    except Exception as error:
        # Wrong usage, from whichever command-line library Typer carries: it knows its own message and code.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            # No command was given: its help is the message, unless it has been shown already.
            print(message(), end="\n" if message() else "")
            return 0
        return _complain(message())
    return code if isinstance(code, int) else 0


def _forget_output() -> None:
    """What is still buffered must not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> int:
    say(f"powersum: {' '.join(message.split())}", sys.stderr)
    return 2
