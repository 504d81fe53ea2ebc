"""The command reference, made of the commands themselves when the site is built: it cannot be out of date."""

from __future__ import annotations

from typing import Any

PLACE = "<!-- the commands come here when the site is built -->"


def on_page_markdown(markdown: str, **_: object) -> str:
    """Called by MkDocs with the text of each page."""
    return markdown.replace(PLACE, reference()) if PLACE in markdown else markdown


def reference() -> str:
    """All commands, one section each."""
    from typer.main import get_command

    from powersum.app.cli.app import app

    return "\n\n".join(_sections(get_command(app), "powersum", 2))


def _sections(command: Any, name: str, level: int) -> list[str]:
    """A command and those below it."""
    inner = getattr(command, "commands", {})
    parts = []
    if name != "powersum":
        parts.append("#" * level + f" {name}")
        parts.append(" ".join((command.help or "").split("\f")[0].split()))
    if not inner:
        parts += [_table(command), _examples(command)]
    for word, own in inner.items():
        parts += _sections(own, f"{name} {word}", level if name == "powersum" else level + 1)
    return [part for part in parts if part]


def _table(command: Any) -> str:
    """Arguments and options, with their defaults as values."""
    rows = ["| option | meaning | default |", "|---|---|---|"]
    for option in command.params:
        if option.name == "help":
            continue
        is_argument = option.param_type_name == "argument"
        words = option.metavar or option.name.upper() if is_argument else ", ".join(f"`{o}`" for o in option.opts)
        if is_argument:
            words = f"`{words}`"
        elif not option.is_flag and option.metavar:
            words += f" {option.metavar}"
        default = "" if option.default is None or option.default is False or option.required else f"`{option.default}`"
        meaning = " ".join((option.help or "").split())
        rows.append(" | ".join(("| " + words.replace("|", r"\|"), meaning.replace("|", r"\|"), default)) + " |")
    return "\n".join(rows)


def _examples(command: Any) -> str:
    """The end of the help page, as a block to copy."""
    lines = [line for line in (command.epilog or "").split("\n\n") if line.startswith(("powersum", "INF_"))]
    return "```sh\n" + "\n".join(lines) + "\n```" if lines else ""
