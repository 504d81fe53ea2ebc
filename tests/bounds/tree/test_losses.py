"""What a search reads off a tree: the same tables as anybody reads, less their messages, column by column."""

from __future__ import annotations

import numpy as np
import pytest

from powersum.bounds.tree import losses
from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.look_up import heuristic_of
from powersum.prepare.ordering import elimination_order
from tests.cases import hard_case


@pytest.mark.parametrize("at_once", [1, 7, 1 << 16])
@pytest.mark.parametrize("seed", range(6))
def test_losses_are_messages_less_tables(seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "AT_ONCE", at_once)
    problem = hard_case(seed, zeros=0.2 * (seed % 2)).problem()
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=2)
    tree.step(np.inf)
    heuristic, root = heuristic_of(tree.best_tree, problem)
    found, same_root = losses.losses_of(tree.best_tree, problem)
    assert root == same_root
    for name in ("variables", "cardinalities", "bucket_starts", "other_starts", "others", "table_starts"):
        assert np.array_equal(getattr(heuristic, name), getattr(found, name))
    assert len(heuristic.columns)
    for b, columns in enumerate(heuristic.columns.tolist()):
        places = slice(int(found.table_starts[b]), int(found.table_starts[b + 1]))
        start = int(heuristic.message_starts[b])
        message = heuristic.pool[start : start + columns]
        expected = np.maximum(message - heuristic.tables[places].reshape(-1, columns), 0.0)
        assert np.array_equal(found.losses[places].reshape(columns, -1), expected.T)
