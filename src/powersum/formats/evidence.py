"""Evidence files: today's single record, and the older form with a number of samples on the first line."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from powersum.core.arrays import IntArray, starts_of
from powersum.core.errors import InputError
from powersum.core.files import PathLike, saving, shown
from powersum.formats.tokens import Numbers, read_numbers, read_text
from powersum.model.keys import Place, whole
from powersum.model.limits import whole_number
from powersum.model.model import Model


def read_evidence(path: PathLike, model: Model | None = None, *, sample: int | None = None) -> dict[int, int]:
    """Read an ``.evid`` file to ``{variable: state}``; an empty file or ``0`` is no evidence.

    Today's form is one record ``k v1 x1 … vk xk``. The form of 2008–2011 has the number of samples alone on the first
    line, then one record a line. A file that can be read both ways is refused.

    Parameters
    ----------
    path
        The file, plain or compressed.
    model
        Given, variables and states are checked against it.
    sample
        Which record of the older form to take, counted from 0; needed only where there are several.
    """
    if sample is not None:
        sample = whole_number(sample, "sample", 0)
    text = read_text(path)
    numbers = read_numbers(path, text)
    if not len(numbers):
        return {}
    tokens = numbers.wholes(0, len(numbers), "a token of evidence")
    records = _records(path, tokens, [len(line.split()) for line in text.splitlines() if line.strip()])
    if sample is None and len(records) > 1:
        last = len(records) - 1
        raise InputError(
            f"{shown(path)}: holds {last + 1} samples of evidence, one is needed: choose sample 0 to {last}"
        )
    if sample is not None and not 0 <= sample < len(records):
        raise InputError(f"{shown(path)}: has no sample {sample}: its samples are 0 to {len(records) - 1}")
    return _pairs(numbers, tokens, records[sample or 0], model)


def write_evidence(evidence: Mapping[int, int], path: PathLike) -> None:
    """Write evidence as one record of today's form."""
    words = [str(len(evidence))]
    for variable, state in evidence.items():
        words += [
            str(whole(variable, "a variable of the evidence")),
            str(whole(state, f"the state of variable {variable}")),
        ]
    with saving(path) as handle:
        handle.write((" ".join(words) + "\n").encode("ascii"))


def _records(path: PathLike, tokens: IntArray, line_lengths: list[int]) -> list[int]:
    """Where in ``tokens`` the records begin, in the one form that fits."""
    count = int(tokens[0])
    one_record = len(tokens) == 1 + 2 * count
    samples = False
    starts = starts_of(line_lengths)[1:-1]
    if line_lengths[0] == 1 and count == len(starts):
        samples = bool(np.all(1 + 2 * tokens[starts] == np.array(line_lengths[1:])))
    if count == 0 and one_record:
        return [0]
    if one_record and samples:
        raise InputError(
            f"{shown(path)}: is ambiguous: {count} on the first line can count pairs or samples, and both fit: "
            "write one record on one line"
        )
    if one_record:
        return [0]
    if samples:
        return [int(start) for start in starts]
    raise InputError(
        f"{shown(path)}: token 1: {count} fits neither as the number of pairs (variable, state) "
        f"in the {len(tokens) - 1} tokens that follow nor as the number of samples, one a line"
    )


def _pairs(numbers: Numbers, tokens: IntArray, start: int, model: Model | None) -> dict[int, int]:
    """The record at ``start``, checked."""
    evidence: dict[int, int] = {}
    for place in range(start + 1, start + 1 + 2 * int(tokens[start]), 2):
        variable, state = int(tokens[place]), int(tokens[place + 1])
        if model is not None:
            if variable >= model.n_variables:
                raise numbers.error(place, f"variable {{}} is out of range 0 to {model.n_variables - 1}")
            if state >= int(model.cardinalities[variable]):
                last = int(model.cardinalities[variable]) - 1
                raise numbers.error(place + 1, f"state {{}} of variable {variable} is out of range 0 to {last}")
        if evidence.setdefault(Place(variable), Place(state)) != state:
            raise numbers.error(
                place + 1, f"state {{}} of variable {variable} contradicts state {evidence[variable]} given before"
            )
    return evidence
