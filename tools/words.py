"""Check the language of the manual, of option help and of public docstrings: ``python -m tools.words [FILE ...]``.

The rules are those of CONTRIBUTING.md, "Write": no riddles, sentences of at most 25 words, short lines and table cells.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

SENTENCE_WORDS, PARAGRAPH_SENTENCES, LINE, CELL_WORDS, SUMMARY = 25, 5, 120, 25, 90
SITE_WORDS = 20_500
"""Most words of all pages of the site together; 16,000 are wanted."""

NO_PROSE = ("architecture.md", "dev/")
"""Pages for contributors: lines and riddles count there, the number of words does not."""

FORBIDDEN = {
    r"\bwhoever\b": "name the subject",
    r"\bwhatever\b": "name the thing",
    r"\blets? go of\b": "write 'releases' or 'frees'",
    r"\b(?:go|goes|going|went) on\b": "write 'continues' or name the next step",
    r"\bof which\b": "repeat the noun",
    r"\bthose (?:that|who)\b": "repeat the noun",
    r"\bthat which\b": "name the thing",
    r"\bnobody\b|\beverybody\b": "name the subject",
    r"\bis no (?:case|value|bound|sum|name|fault|riddle|failure)\b": "write 'is not a'",
    r"\b(?:half a minute|a moment|a good part)\b": "give a number with its unit",
    r"\bwithout a word\b": "write 'silently'",
    r"\bso (?:many|long) (?:seconds|bytes|as)\b": "give the number",
    r"\bspeaks? names\b": "write 'is indexed by name'",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A place that the rules would write otherwise."""

    place: str
    line: int
    words: str

    def __str__(self) -> str:
        return f"{self.place}:{self.line}: {self.words}"


CODE = re.compile(r"``?[^`]+``?|\$[^$]+\$")


def forbidden(text: str, place: str, first: int) -> Iterator[Fault]:
    """Riddles and idioms in a text of several lines."""
    text = CODE.sub(lambda code: "code" + "\n" * code[0].count("\n"), text)
    for pattern, advice in FORBIDDEN.items():
        for found in re.finditer(pattern, text, re.IGNORECASE):
            line = first + text.count("\n", 0, found.start())
            yield Fault(place, line, f"'{' '.join(found[0].split())}': {advice}")


def prose(text: str) -> str:
    """A paragraph as a reader hears it: code, formulas and addresses count as one word each."""
    text = CODE.sub("code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<[^>]+>|\{[^}]*\}|https?://\S+", " ", text)
    return re.sub(r"[*_]{1,3}", "", text)


def sentences(text: str) -> list[str]:
    """Sentences of a paragraph; a colon or semicolon does not end one."""
    guarded = re.sub(r"\b(e\.g|i\.e|vs|al|Fig|eq|Thm)\.", r"\1", prose(text))
    parts = re.split(r"(?<=[.!?])[\"')]*\s+(?=[A-Z\"'(]|code|powersum|pyAgrum|toulbar2)", " ".join(guarded.split()))
    return [part for part in parts if part]


def of_paragraph(text: str, place: str, line: int) -> Iterator[Fault]:
    """Long sentences and long paragraphs."""
    found = sentences(text)
    for sentence in found:
        words = re.findall(r"[^\s/–—]*\w[^\s/–—]*", sentence)
        if len(words) > SENTENCE_WORDS:
            yield Fault(place, line, f"a sentence of {len(words)} words: {' '.join(words[:8])} …")
    if len(found) > PARAGRAPH_SENTENCES:
        yield Fault(place, line, f"a paragraph of {len(found)} sentences")


def blocks(text: str) -> Iterator[tuple[int, str, str]]:
    """Parts of a page: the line that each begins in, its kind (prose, row), and its text. Code is left out."""
    fenced, paragraph, begun, listed = False, list[str](), 0, False
    lines = text.split("\n")
    if lines[0] == "---":
        end = lines.index("---", 1) + 1
        lines[:end] = [""] * end
    for number, line in enumerate([*lines, ""], 1):
        mark = re.match(r"\s*(```|~~~)", line)
        fenced ^= mark is not None
        bare = line.strip()
        item = re.match(r"(?:[*+-]|\d+\.)\s+", bare)
        code = fenced or mark or (line.startswith("    ") and not paragraph and not listed)
        breaks = code or not bare or item or bare.startswith(("|", "#", "!!!", "<", ":::", "--8<--", "$$"))
        if breaks and paragraph:
            yield begun, "prose", "\n".join(paragraph)
            paragraph = []
        if code or not bare:
            continue
        listed = bool(item) or (listed and line.startswith("  "))
        if bare.startswith("|"):
            yield number, "row", bare
        elif not breaks or item:
            if not paragraph:
                begun = number
            paragraph.append(bare[item.end() :] if item else bare)


def of_page(text: str, place: str) -> Iterator[Fault]:
    """Faults of a page of Markdown."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LINE and not line.lstrip().startswith(("|", "[![", "![", "<span", "$$", "members:")):
            yield Fault(place, number, f"a line of {len(line)} characters")
    for number, kind, part in blocks(text):
        yield from forbidden(part, place, number)
        if kind == "prose":
            yield from of_paragraph(part, place, number)
        else:
            for cell in re.split(r"(?<!\\)\|", part)[1:-1]:
                if len(prose(cell).split()) > CELL_WORDS:
                    yield Fault(place, number, f"a table cell of {len(prose(cell).split())} words")


def described(text: str) -> str:
    """A docstring without headings of sections, names of parameters and examples; each line where it was."""
    lines, kept, section, example = text.split("\n"), [], False, False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        heading = bool(line) and set(after.strip()) == {"-"}
        section |= heading
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        name = section and not line.startswith(" ")
        kept.append("" if heading or name or example else line.strip())
    return "\n".join(kept)


def of_docstring(text: str, place: str) -> Iterator[Fault]:
    """Faults of a docstring: its first line, its riddles, its sentences."""
    first = text.split("\n")[0]
    if len(first) > SUMMARY:
        yield Fault(place, 1, f"a first line of {len(first)} characters")
    yield from forbidden(text, place, 1)
    for number, kind, part in blocks(described(text)):
        if kind == "prose":
            yield from of_paragraph(part, place, number)


def of_options() -> Iterator[Fault]:
    """Faults of what ``--help`` shows."""
    from typer.main import get_command

    from powersum.app.cli.app import app

    def walk(command: Any, name: str) -> Iterator[Fault]:
        texts = {name: (command.help or "").split("\f")[0]}
        texts |= {f"{name} {option.name}": getattr(option, "help", None) or "" for option in command.params}
        for place, text in texts.items():
            yield from forbidden(text, place, 1)
            yield from of_paragraph(text, place, 1)
        for word, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, f"{name} {word}")

    yield from walk(get_command(app), "powersum")


def of_public_names() -> Iterator[Fault]:
    """Faults of the docstrings of all that ``powersum.__all__`` names."""
    import inspect

    import powersum

    for name in powersum.__all__:
        value = getattr(powersum, name)
        if isinstance(value, str) or inspect.ismodule(value):
            continue
        yield from of_docstring(inspect.getdoc(value) or "", f"powersum.{name}")
        for inner, member in vars(value).items() if inspect.isclass(value) else ():
            text = inspect.getdoc(member) if not inner.startswith("_") and callable(member) else None
            yield from of_docstring(text or "", f"powersum.{name}.{inner}")


def words_of_site() -> int:
    """Words on all pages of the site, code included; commands and API are generated and do not count."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages if page.name not in NO_PROSE)


def faults(files: list[Path]) -> Iterator[Fault]:
    """All faults of these pages."""
    for file in files:
        place = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else str(file)
        yield from of_page(file.read_text(encoding="utf-8"), place)


def main(names: list[str]) -> int:
    """Print faults, one a line; 1 if there are any."""
    if names:
        found = list(faults([Path(name).resolve() for name in names]))
    else:
        pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
        found = [*faults(pages), *of_options(), *of_public_names()]
        if (total := words_of_site()) > SITE_WORDS:
            found.append(Fault("docs", 1, f"{total} words on the site: at most {SITE_WORDS}"))
    for fault in found:
        print(fault)
    print(f"{len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
