"""Commands that are loaded when they are called: help, and each of them, waits for nobody else's modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from powersum.app.cli import Stopped, ending_at_once
from powersum.app.cli.commands import COMMANDS
from powersum.app.cli.help import examples
from powersum.core.errors import InputError
from powersum.core.interrupt import as_interrupts


class OnceEach(TyperCommand):
    """A command that refuses an option with one value where it is given twice: the first would be lost."""

    def parse_args(self, ctx: Any, args: Any) -> Any:
        """Options and arguments as values."""
        given: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2] if not ctx.resilient_parsing else []
        for option in given:
            if given.count(option) > 1 and not (option.multiple or option.is_flag or option.count):
                raise InputError(f"{option.opts[0]} is given more than once, and takes one value")
        return super().parse_args(ctx, args)


def loaded(name: str) -> Any:
    """A command with its options."""
    where = COMMANDS[name]
    with ending_at_once():
        found = getattr(import_module(f"powersum.app.cli.{where.module}"), where.name)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name, cls=OnceEach, epilog=examples(*where.examples))(found)
        found = alone
    command = get_command(found)
    command.name = name
    return command


class LoadedCommands(Mapping[str, Any]):
    """All commands by name; only those that are asked for are loaded."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = loaded(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class LoadingGroup(TyperGroup):
    """The commands as a group that shows them by their summaries."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = LoadedCommands()

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Typer would add an empty line where a signal ends it."""
        try:
            with as_interrupts():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Stopped from None

    def list_commands(self, ctx: Any) -> list[str]:
        """Names, in their order."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands in the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])
