"""What a soak found, for people: failing cases as tests, one line each, and a table at the end."""

from __future__ import annotations

import pprint
import re
from collections import Counter
from pathlib import Path

from soak.cases import Case
from soak.workers import Done

TEST = '''"""Found by the soak as {name}, made smaller: {wrong}"""

from math import inf  # noqa: F401

from soak.cases import Case, Question, Trouble  # noqa: F401
from soak.entries import checked

CASE = {case}


def test_{word}() -> None:
    assert checked(CASE).wrong == ()
'''


def write_test(folder: Path, case: Case, wrong: str) -> Path:
    """A test that fails as long as the fault is there."""
    folder.mkdir(parents=True, exist_ok=True)
    word = re.sub(r"\W", "_", case.name)
    path = folder / f"test_{word}.py"
    shown = pprint.pformat(case, width=112, compact=True)
    told = " ".join(wrong.replace("\\", "/").replace('"', "'").split())[:300]
    path.write_text(TEST.format(name=case.name, wrong=told, case=shown, word=word), encoding="utf-8")
    return path


class Tally:
    """Counts of what was asked and how it ended."""

    def __init__(self) -> None:
        self.models = 0
        self.violations = 0
        self.seconds = 0.0
        self.slowest: tuple[float, str] = (0.0, "")
        self._counts: dict[str, Counter[str]] = {
            title: Counter() for title in ("entry", "road", "method", "shape", "numbers", "ended", "clock")
        }
        self._wrong: dict[str, Counter[str]] = {title: Counter() for title in self._counts}

    def add(self, done: Done) -> None:
        """Count one case."""
        case = done.case
        shape, _, numbers = case.kind.partition("/")
        self.models += 1
        self.violations += bool(done.outcome.wrong)
        self.seconds += done.seconds
        self.slowest = max(self.slowest, (done.seconds, case.name))
        for title, word in (
            ("entry", case.entry),
            ("road", case.road),
            ("method", case.options.get("method", "-")),
            ("shape", shape),
            ("numbers", numbers),
            ("ended", done.outcome.ended),
            ("clock", _clock(case)),
        ):
            self._counts[title][word] += 1
            self._wrong[title][word] += bool(done.outcome.wrong)

    def table(self) -> str:
        """The summary, one block for each way to divide the cases."""
        lines = []
        for title, counts in self._counts.items():
            lines.append(f"{title:<22}{'cases':>10}{'wrong':>8}")
            wrong = self._wrong[title]
            lines += [f"  {word:<20}{count:>10}{wrong[word]:>8}" for word, count in sorted(counts.items())]
        rate = self.models / self.seconds if self.seconds else 0.0
        lines.append(f"slowest: {self.slowest[1]}, {self.slowest[0]:.2f} s; {rate:.0f} cases a second and process")
        lines.append(f"{self.models} cases, {self.violations} with violations")
        return "\n".join(lines)


def _clock(case: Case) -> str:
    """What happens from outside, in a word."""
    trouble = case.trouble
    for word, here in (
        ("exception", trouble.raise_at or trouble.callback_raises),
        ("signal", trouble.signal_at),
        ("deadline", trouble.jump_at),
        ("stopped", trouble.stop_after),
        ("by looks", trouble.step),
    ):
        if here:
            return word
    return "true time"
