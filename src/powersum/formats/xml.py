"""XML piece by piece, with line numbers, and nothing of XML that a file of numbers has no use for."""

from __future__ import annotations

from collections.abc import Callable
from xml.parsers import expat

from powersum.core.errors import InputError
from powersum.core.files import PathLike, reason, shown

DEEPEST = 32
"""Elements within elements; the formats have a handful."""

OnStart = Callable[[str, dict[str, str], int], None]
OnEnd = Callable[[str, str, int], None]


def walk(path: PathLike, data: bytes, on_start: OnStart, on_end: OnEnd) -> None:
    """Go through all elements of an XML file, in the order of the file.

    Entities that a file declares are refused, so that a few lines cannot become a terabyte, and nothing but the file
    is ever read.

    Parameters
    ----------
    path, data
        The file, for messages, and what is in it.
    on_start
        Called with tag, attributes and line.
    on_end
        Called with tag, the text directly inside the element, and the line where that begins. Lines of the text are
        those of the file: a comment leaves its line ends.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.buffer_size = 1 << 20
    open_elements: list[tuple[int, list[str]]] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(open_elements) == DEEPEST:
            raise InputError(f"{shown(path)}: line {parser.CurrentLineNumber}: elements are nested too deeply")
        open_elements.append((parser.CurrentLineNumber, []))
        on_start(tag, attributes, parser.CurrentLineNumber)

    def end(tag: str) -> None:
        line, pieces = open_elements.pop()
        text = "".join(pieces)
        on_end(tag, text, line)
        if open_elements:
            open_elements[-1][1].append(" " + "\n" * text.count("\n"))

    def add(text: str) -> None:
        if open_elements:
            open_elements[-1][1].append(text)

    def refuse(name: str, *_: object) -> None:
        line = parser.CurrentLineNumber
        raise InputError(f"{shown(path)}: line {line}: entities such as {name[:40]!r} are not read")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = add
    parser.CommentHandler = lambda text: add(" " + "\n" * text.count("\n"))
    parser.EntityDeclHandler = refuse
    parser.SkippedEntityHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InputError(f"{shown(path)}: line {error.lineno}: {expat.ErrorString(error.code)}") from None
    except (ValueError, LookupError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{shown(path)}: {reason(error)[:120]}") from None
