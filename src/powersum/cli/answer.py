"""The lines that every answer ends with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from powersum.result import Result

if TYPE_CHECKING:
    from rich.console import Console

# More states than this are not printed: the JSON has them all.
SHOWN_STATES = 12


def print_status(console: Console, result: Result) -> None:
    """Status, why, and notes."""
    from rich.markup import escape

    console.print(f"{result.status}: {escape(result.reason)} ({result.seconds:.2f} s)")
    for note in result.notes:
        console.print(f"note: {escape(note)}")


def print_assignment(console: Console, result: Result, title: str) -> None:
    """The first states of the assignment, if there is one."""
    from rich.markup import escape

    if not result.assignment:
        return
    pairs = [f"{name}={state}" for name, state in list(result.assignment.items())[:SHOWN_STATES]]
    rest = len(result.assignment) - len(pairs)
    more = f" … and {rest} more (--json has all)" if rest else ""
    console.print(f"{title}: {escape(' '.join(pairs))}{more}")
