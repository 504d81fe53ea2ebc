"""The commands, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from powersum import __version__
from powersum.cli.batch import batch_command
from powersum.cli.bound import bound_command
from powersum.cli.cache import cache_command
from powersum.cli.compare import compare_command
from powersum.cli.convert import convert_command
from powersum.cli.explore import explore_command
from powersum.cli.generate import generate_app
from powersum.cli.help import examples, fitting_help
from powersum.cli.info import info_command
from powersum.cli.marginals import marginals_command
from powersum.cli.reproduce import reproduce_command
from powersum.cli.solve import solve_command
from powersum.cli.terminal import columns, say
from powersum.cli.uai_solver import uai_solver_command
from powersum.cli.warmup import warmup_command
from powersum.core.errors import InputError

app = typer.Typer(
    name="powersum",
    help="Guaranteed bounds for marginal MAP, the partition function and MAP in graphical models.",
    epilog=examples("powersum bound model.uai --query model.uai.query --time 10", "powersum bound --help"),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(
    "bound",
    epilog=examples(
        "powersum bound model.uai --query model.uai.query --sweeps 50 --plot bound.png",
        "powersum bound model.uai --max 0,3,7 --evidence 1=0,4=1 --time 10 --json -",
    ),
)(bound_command)
app.command(
    "solve",
    epilog=examples(
        "powersum solve clinic.bif --max cancer,asthma --evidence cough=yes --report answer.html",
        "powersum solve clinic.bif --max cancer --likelihood xray=clear:0.2,shadow:0.6",
        "powersum solve model.uai --max all --evid model.uai.evid --uai model.uai.MAP",
    ),
)(solve_command)
app.command(
    "marginals",
    epilog=examples(
        "powersum marginals clinic.bif --evidence cough=yes",
        "powersum marginals model.uai --of 3,7 --evid model.uai.evid --time 60",
    ),
)(marginals_command)
app.command(
    "batch",
    epilog=examples(
        "powersum batch clinic.bif cases.csv --max cancer -o answers.csv --workers 4",
        "powersum batch clinic.bif cases.jsonl --max cancer -o answers.jsonl --cluster tcp://head:8786 --resume",
    ),
)(batch_command)
app.command(
    "explore",
    epilog=examples(
        "powersum explore clinic.bif",
        "powersum explore clinic.bif --max cancer --evidence cough=yes --port 8000 --no-browser",
    ),
)(explore_command)
app.command(
    "uai-solver",
    epilog=examples(
        "INF_TIME=20 powersum uai-solver model.uai model.uai.evid model.uai.query MMAP",
        "INF_TIME=60 INF_MEMORY=8 powersum uai-solver model.uai model.uai.evid '' PR",
    ),
)(uai_solver_command)
app.command(
    "compare",
    epilog=examples(
        "powersum compare model.uai --query model.uai.query --methods gdd,wmb:0.035,mbe --plot out.png --csv out.csv",
        "powersum compare model.uai --max all --methods gdd,tree:1,tree:6 --time 5",
    ),
)(compare_command)
app.command(
    "info",
    epilog=examples("powersum info model.uai", "powersum info model.uai --query model.uai.query --json -"),
)(info_command)
app.command(
    "reproduce",
    epilog=examples("powersum reproduce --out figures", "powersum reproduce 2,3 --data shared/data --out figures"),
)(reproduce_command)
app.command(
    "convert", epilog=examples("powersum convert grid.uai.gz grid.psm", "powersum convert clinic.bif clinic.uai")
)(convert_command)
app.command("cache", epilog=examples("powersum cache", "powersum cache --clear"))(cache_command)
app.command("warmup", epilog=examples("powersum warmup", "powersum warmup --jobs 8 --quiet"))(warmup_command)
app.add_typer(generate_app, name="generate")


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
    """Run one command line; returns its exit code. Whatever is wrong with the input is one line on stderr."""
    command = typer.main.get_command(app)
    try:
        words = tuple(arguments)
        with fitting_help(command, columns(sys.stdout)) as fitting:
            code = command.main(list(words), prog_name="powersum", standalone_mode=False, obj=words, **fitting)
        sys.stdout.flush()
    except InputError as error:
        return _complain(str(error))
    except typer.Abort:
        return 130
    except KeyboardInterrupt:
        return 130
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
