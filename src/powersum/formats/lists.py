"""What queries and orders have in common: a count and that many variables."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import IntArray
from powersum.core.errors import InputError
from powersum.core.files import PathLike, shown
from powersum.formats.tokens import Numbers, read_numbers, read_text


def read_list(path: PathLike, n_variables: int | None) -> tuple[Numbers, IntArray]:
    """Read a counted list of variables, each below ``n_variables`` where that is known."""
    numbers = read_numbers(path, read_text(path))
    if not len(numbers):
        raise InputError(f"{shown(path)}: is empty: expected a count and that many variables")
    count = numbers.whole(0, "the number of variables")
    if count != len(numbers) - 1:
        raise numbers.error(0, f"{{}} variables declared, but {len(numbers) - 1} tokens follow")
    variables = numbers.wholes(1, len(numbers), "a variable")
    if n_variables is not None and variables.size and int(variables.max()) >= n_variables:
        first = int(np.argmax(variables >= n_variables))
        raise numbers.error(1 + first, f"variable {{}} is out of range 0 to {n_variables - 1}")
    return numbers, variables


def refuse_repeats(numbers: Numbers, variables: IntArray) -> None:
    """Refuse a list that names a variable twice; its entries follow the count in ``numbers``."""
    by_variable = np.argsort(variables, kind="stable")
    twice = np.diff(variables[by_variable]) == 0
    if twice.any():
        raise numbers.error(1 + int(by_variable[1:][twice].min()), "variable {} is listed twice")
