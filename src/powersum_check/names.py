"""Names of variables and states, from the file beside a model: ``model.uai.names``. They prove nothing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from powersum_check.archive import read_bytes
from powersum_check.errors import BadFile

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"(?=\s|$)|[^\s#]+|#.*')


@dataclass(frozen=True, slots=True)
class Names:
    """For each variable its name, and behind it the labels of its states, if there are any."""

    path: Path
    words: list[list[str]]

    def told(self, variable: int, state: int) -> str:
        """A variable and its state; whatever cannot be shown is escaped."""
        own = self.words[variable]
        text = f"{own[0]}={own[1 + state] if len(own) > 1 else state}"
        return text if text.isprintable() else ascii(text)


def read_names(model: str, cardinalities: list[int], limit: int) -> Names | None:
    """The names beside a model; None where there is no such file, an error where it does not fit the model."""
    path = Path(re.sub(r"\.(gz|xz)$", "", model) + ".names")
    if not path.is_file():
        return None
    try:
        lines = [_words(line) for line in read_bytes(path, limit).decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise BadFile(f"{path}: is not text in UTF-8") from None
    words = [line for line in lines if line]
    fits = len(words) == len(cardinalities)
    if not fits or any(len(own) not in (1, 1 + card) for own, card in zip(words, cardinalities, strict=True)):
        raise BadFile(f"{path}: does not have a line for each variable, with a label for each state")
    return Names(path, words)


def _words(line: str) -> list[str]:
    words: list[str] = []
    for word in _WORD.findall(line):
        if word.startswith("#"):
            break
        try:
            words.append(str(json.loads(word)) if word.startswith('"') else word)
        except ValueError:
            words.append(word)
    return words
