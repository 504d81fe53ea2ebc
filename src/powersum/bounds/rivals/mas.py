"""The multiplicative-error bound of Meek & Wexler (2011), in its form closest to mini-buckets.

A mini-bucket that is not the first of its variable x is replaced by a function without x: halfway, in logs, between
the largest and the smallest entry of each column. That is off by a factor of at most e^ε in either direction, where ε
is half of the largest distance in any column. The value with these replacements, plus and minus the sum of all ε,
encloses the true value.

Zeros make the lower half of that impossible. They are left out when the smallest entry is sought: a replacement that
is too large where the truth is 0 still bounds it from above, and ``log_lower`` is then ``-inf``.
"""

from __future__ import annotations

import numpy as np

from powersum.bounds.buckets.kernels import NOTHING
from powersum.bounds.rivals.one_shot import OneShot
from powersum.core.arrays import FloatArray, IntArray
from powersum.model.rounding import UNIT
from powersum.prepare.problem import Problem


class MAS(OneShot):
    """Symmetric multiplicative-error bound by replacing mini-buckets.

    Parameters
    ----------
    problem, order
        The simplified problem and an elimination order of its variables, max variables last.
    threads, seed
        Accepted because every method accepts them.
    ibound
        At most ``ibound + 1`` variables in a mini-bucket, unless a factor alone has more.

    Attributes
    ----------
    log_lower
        The lower half of the bound; ``-inf`` where zeros were met.
    """

    log_lower: float

    def __init__(self, problem: Problem, order: IntArray, *, threads: int = 1, seed: int = 0, ibound: int = 1) -> None:
        del threads, seed
        super().__init__(problem, order, ibound)

    def _pass(self) -> float:
        """Forward pass that puts the middle of each column in place of the messages of later mini-buckets."""
        buckets = self._buckets
        layout, wiring = buckets.layout, buckets.layout.wiring
        tables, entropies = np.empty(layout.n_entries), np.empty(layout.n_entropies)
        is_first = np.zeros(layout.n_nodes, dtype=bool)
        is_first[buckets.starts] = True
        error, zeros = 0.0, False
        for node in range(layout.n_nodes):
            # A node of weight 0 leaves its table as it is, for there are no conditionals to keep.
            buckets.run(np.array([node]), self._weights, tables, entropies)
            if is_first[node]:
                continue
            start, columns = wiring.table[node], wiring.columns[node]
            table = tables[start : start + wiring.states[node] * columns].reshape(-1, columns)
            middle, half, has_zero = _middle(table)
            buckets.passes.message(node)[:] = middle
            error += half
            zeros |= has_zero
        value = buckets.total()
        # Each distance is a difference of two entries, with their rounding.
        error *= 1.0 + 4.0 * layout.n_nodes * UNIT
        self.log_lower = -np.inf if zeros else value - error - 2.0 * buckets.error()
        return value + error + buckets.error()


def _middle(table: FloatArray) -> tuple[FloatArray, float, bool]:
    """Middle of each column, half of the largest distance between extremes, and whether there are zeros."""
    possible = table > 0.5 * NOTHING
    largest = np.where(possible, table, -np.inf).max(axis=0)
    smallest = np.where(possible, table, np.inf).min(axis=0)
    alive = possible.any(axis=0)
    half = 0.5 * (largest[alive] - smallest[alive])
    middle = np.full(table.shape[1], NOTHING)
    middle[alive] = 0.5 * (largest[alive] + smallest[alive])
    return middle, float(half.max(initial=0.0)), not bool(possible.all())
