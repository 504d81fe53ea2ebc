"""``powersum info``."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from powersum.app.cli.asking import CommandQuestion, asking
from powersum.app.cli.files import (
    JsonOutput,
    OrderFile,
    check_outputs,
    print_notes,
)
from powersum.app.cli.fresh import older_answers_aside
from powersum.app.cli.progress import announce_compilation
from powersum.app.cli.terminal import columns, print_json, wrapped
from powersum.app.report.facts import Facts, ModelSize, describe
from powersum.app.report.units import bytes_text
from powersum.model.question import Question
from powersum.model.strict_json import strict_json


@asking
def info_command(
    asked: CommandQuestion,
    order: OrderFile = None,
    json: JsonOutput = None,
) -> None:
    """Show a model's size, what simplification leaves of it, and what a bound and an exact answer will cost."""
    check_outputs([json], [*asked.files, order])
    announce_compilation(quiet=False)
    with older_answers_aside([json]):
        question, hints = asked.read(order=order)
    print_notes(hints)
    facts = describe(question)
    if json is not None:
        text = strict_json(asdict(facts))
        if json == "-":
            print_json(text)
            return
        from powersum.core.files import saving

        with saving(json) as handle:
            handle.write(f"{text}\n".encode())
    print(described(asked.model, question, facts, order, columns(sys.stdout)))


def described(
    model_file: Path, question: Question, facts: Facts, order_file: Path | None, width: int | None = None
) -> str:
    """The facts as lines for a person."""
    rows = [("model", str(model_file)), *_size_rows(facts.model), ("question", str(question))]
    if not facts.feasible:
        rows.append(("answer", "nothing has positive probability: log value = -inf"))
    elif facts.reduced.variables == 0:
        rows.append(("answer", "exact, by simplification alone"))
    else:
        left = f"{facts.reduced.variables} variables, {facts.reduced.factors} factors, {facts.reduced.entries} entries"
        parts = "1 component" if facts.components == 1 else f"{facts.components} components"
        source = "chosen" if order_file is None else str(order_file)
        rows += [
            ("simplified", f"{left}, {parts}"),
            ("constrained width", f"{facts.width} (order: {source})"),
            ("exact answer", f"{bytes_text(facts.log2_exact_bytes)} of tables"),
            ("bound by gdd", f"{bytes_text(math.log2(facts.gdd_bytes))} of arrays"),
            *_tree_rows(facts),
        ]
    return "\n".join(wrapped(f"{name + ':' if name else '':<20}{value}", width, indent=20) for name, value in rows)


def _tree_rows(facts: Facts) -> list[tuple[str, str]]:
    """What the covering tree takes at each i-bound; the last one is exact if it is at least as large as the width."""
    shown = [f"i={ibound} {bytes_text(math.log2(size))}" for ibound, size in facts.tree_bytes.items()]
    lines = [", ".join(shown[at : at + 6]) for at in range(0, len(shown), 6)]
    return [("bound by tree" if at == 0 else "", line) for at, line in enumerate(lines)]


def _size_rows(size: ModelSize) -> list[tuple[str, str]]:
    share = f" ({100 * size.zeros / size.entries:.3g} %)" if size.zeros else ""
    return [
        ("variables", f"{size.variables}, states {_counted(size.domains)}"),
        ("factors", f"{size.factors}, variables in each {_counted(size.cliques)}"),
        ("table entries", f"{size.entries}, zeros {size.zeros}{share}"),
    ]


def _counted(counts: Mapping[int, int]) -> str:
    """Like ``2 (256×), 3 (22×)``; a long list is shortened to its ends."""
    items = [f"{value} ({count}×)" for value, count in sorted(counts.items())]
    return ", ".join(items if len(items) <= 8 else [*items[:4], "…", *items[-3:]])
