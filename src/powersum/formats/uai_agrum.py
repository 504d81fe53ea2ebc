"""UAI files that pyAgrum wrote: their tables run through the variables in an order of its own, told by comments."""

from __future__ import annotations

import re

import numpy as np

from powersum.core.arrays import IntArray

# Behind each scope of a Bayesian network pyAgrum writes the name of the child, and behind each size of a Markov
# network's table its variables, the fastest first.
_SCOPE = re.compile(rb"^\d++(?: \d++)++   # [^\r\n]", re.MULTILINE)
_TABLE = re.compile(rb"^\d+ # \{([0-9, ]*)\}[ \t]*\r?$", re.MULTILINE)


def agrum_scopes(text: bytes, directed: bool, starts: IntArray, variables: IntArray) -> tuple[IntArray, str | None]:
    """The variables of all scopes in the order in which tables run through them, and what to say about it.

    Parameters
    ----------
    text
        The file with its comments.
    directed
        Whether it is a Bayesian network.
    starts, variables
        The scopes as they are written; taken as they are in a file that is not pyAgrum's.
    """
    if b"#" not in text:
        return variables, None
    # Behind the last comment there may be gigabytes.
    line_end = text.find(b"\n", text.rfind(b"#"))
    pattern = _SCOPE if directed else _TABLE
    found = [match.groups() for match in pattern.finditer(text, 0, len(text) if line_end < 0 else line_end)]
    if len(found) != len(starts) - 1:
        return variables, None
    ordered = variables.copy()
    for factor, (begin, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        if directed:
            ordered[begin : end - 1] = variables[begin : end - 1][::-1]
            continue
        words = found[factor][0].replace(b",", b" ").split()
        own = np.array([int(word[:18]) for word in reversed(words)], dtype=np.int64)
        if not np.array_equal(np.sort(own), np.sort(variables[begin:end])):
            doubt = "comments as pyAgrum writes them contradict the scopes: tables are read as the format says"
            return variables, doubt
        ordered[begin:end] = own
    if np.array_equal(ordered, variables):
        return variables, None
    return ordered, "by its comments written by pyAgrum: tables are read in its order of variables, not in the format's"
