"""Text for any terminal: every character comes out in some form, and lines break between words."""

from __future__ import annotations

import codecs
import json
import math
import os
import re
import sys
import textwrap
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_PLAIN = {"≤": "<=", "≥": ">=", "…": "...", "×": "x", "·": "*", "→": "->", "−": "-", "–": "-", "—": "-", "∞": "inf"}
_HANDLER = "powersum-plain"


def _plain(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that an encoding lacks; nothing is lost, and nothing fails."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_PLAIN.get(c) or c.encode("ascii", "backslashreplace").decode() for c in missing), error.end


def show_every_character() -> None:
    """Make stdout and stderr take any text, whatever their encoding: an answer must not be lost to its ``≤``."""
    codecs.register_error(_HANDLER, _plain)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_HANDLER)


def print_json(text: str) -> None:
    """JSON to stdout; characters that it cannot take are escaped in JSON's own way, so that they stay what they are."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found.group())[1:-1], text)
    print(text)


def value_text(value: float, digits: int = 10) -> str:
    """A log value as people read it: what is nothing but rounding is 0, and 0 has no sign; the JSON has every digit."""
    return f"{round(value, 10):z.{digits}g}"


def log10_text(value: float, sign: str) -> str:
    """The same to base 10, for the end of a line; nothing for what is not finite."""
    return f"   (log10 {sign} {value_text(value / math.log(10), 6)})" if math.isfinite(value) else ""


def columns(stream: TextIO) -> int | None:
    """The width of a terminal; nothing for a file or a pipe, where lines stay whole."""
    if not stream.isatty():
        return None
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def wrapped(text: str, width: int | None, *, indent: int = 0) -> str:
    """A line as several that are no wider than that, broken between words; all but the first are indented."""
    if width is None or len(text) <= width:
        return text
    return textwrap.fill(
        text,
        # A terminal too narrow for the indentation has to do without.
        max(width, 1),
        subsequent_indent=" " * indent if width >= 2 * indent else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


def say(text: str, stream: TextIO, *, indent: int = 0) -> None:
    """Print one line, or as many as the terminal needs."""
    print(wrapped(text, columns(stream), indent=indent), file=stream, flush=True)


def console_on(stream: TextIO) -> Console:
    """For text with a little markup: wrapped at words on a terminal, whole lines elsewhere."""
    from rich.console import Console

    return Console(file=stream, highlight=False, soft_wrap=not stream.isatty())
