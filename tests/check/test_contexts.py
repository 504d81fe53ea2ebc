"""Contexts on random models: what is verified of searches and partial sums holds the truth, whatever their keys."""

from __future__ import annotations

import math

import numpy as np
import pytest

import powersum_check.contexts as contexts_module
from powersum.model.model import Model
from tests.check.helpers import CLOSE, checked, holds, random_draft, truth
from tests.check.writer import (
    Draft,
    Setting,
    context_arrays,
    contexts_of,
    starts,
    tree_arrays,
)

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_contexts_bound_from_both_sides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draft = random_draft(rng, n_variables=6)
    setting = Setting.of(draft)
    order = setting.random_order(rng)
    arrays = tree_arrays(rng, setting, order, strict=True, temperature=float(rng.choice([0.0, 0.1])))
    share, settled = float(rng.choice([0.1, 0.4, 0.8, 1.0])), float(rng.choice([0.0, 0.1, 1.0]))
    draft.step("tree", arrays)
    plain = checked(draft)
    draft.step("tree", arrays | context_arrays(rng, setting, order, arrays, share=share, settled=settled))
    verified = checked(draft)
    value = truth(draft)
    assert holds(verified, value)
    assert verified.log_upper <= plain.log_upper
    if share == 1.0:
        assert verified.log_upper - value < CLOSE or value == -math.inf


@pytest.mark.parametrize("seed", SEEDS)
def test_settled_roots_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draft = random_draft(rng, n_variables=6)
    setting = Setting.of(draft)
    order = setting.random_order(rng)
    arrays = tree_arrays(rng, setting, order, strict=True)
    roots = [v for v, context in contexts_of(setting, order, arrays).items() if not context]
    arrays |= {
        "context_variables": np.array(roots, dtype=np.int64),
        "context_counts": np.ones(len(roots), dtype=np.int64),
        "context_states": np.zeros(0, dtype=np.uint8),
        "context_settled": np.ones(len(roots), dtype=np.uint8),
    }
    draft.step("tree", arrays)
    verified = checked(draft)
    value = truth(draft)
    assert holds(verified, value)
    assert value == -math.inf or verified.log_upper - verified.log_lower < CLOSE


@pytest.mark.parametrize("seed", range(40))
def test_contexts_with_the_same_key_do_no_harm(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that are cut off may be the same: what collides is lost or told apart, never taken for another."""
    monkeypatch.setattr(contexts_module, "_radices", lambda lengths: [*(1 for _ in lengths), 1 << 64])
    rng = np.random.default_rng(seed)
    draft = random_draft(rng, n_variables=6)
    setting = Setting.of(draft)
    order = setting.random_order(rng)
    arrays = tree_arrays(rng, setting, order, strict=True)
    draft.step("tree", arrays | context_arrays(rng, setting, order, arrays, share=0.8, settled=0.2))
    assert holds(checked(draft), truth(draft))


@pytest.mark.parametrize("seed", range(40))
def test_contexts_whose_keys_are_cut_off(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide contexts, as large radices make them: everything listed is exact, whatever the keys."""
    radices = contexts_module._radices
    monkeypatch.setattr(
        contexts_module, "_radices", lambda lengths: [r * (2**64 + 2**35 + 1) for r in radices(lengths)]
    )
    rng = np.random.default_rng(seed)
    draft = random_draft(rng, n_variables=6)
    setting = Setting.of(draft)
    order = setting.random_order(rng)
    arrays = tree_arrays(rng, setting, order, strict=True)
    draft.step("tree", arrays | context_arrays(rng, setting, order, arrays, share=1.0, settled=0.2))
    verified, value = checked(draft), truth(draft)
    assert holds(verified, value)
    assert value == -math.inf or verified.log_upper - verified.log_lower < CLOSE


def test_contexts_of_seventy_variables() -> None:
    """A hub and seventy leaves, all maximised: the tree splits the hub, the contexts of one assignment are listed."""
    rng = np.random.default_rng(5)
    n = 70
    tables = [rng.random((2, 2)) for _ in range(n)]
    model = Model.from_factors([2] * (n + 1), [((0, v + 1), table) for v, table in enumerate(tables)])
    draft = Draft(model, [0.0] * (n + 1))
    scopes = [[0, v] for v in range(1, n + 1)] + [[v] for v in range(1, n + 1)]
    draft.step(
        "tree",
        {
            "order": np.arange(n + 1),
            "node_starts": starts(scopes),
            "node_variables": np.array([v for scope in scopes for v in scope]),
            "parent": np.array([n + k for k in range(n)] + [-1] * n),
            "weight": np.zeros(2 * n),
            "home": np.arange(n),
            "context_variables": np.arange(n + 1),
            "context_counts": np.ones(n + 1, dtype=np.int64),
            "context_states": np.concatenate([np.arange(v + 1, n + 1) % 2 for v in range(n + 1)]),
            "context_settled": np.zeros(n + 1, dtype=np.uint8),
        },
    )
    verified = checked(draft)
    given = max(sum(math.log(table[s, (v + 1) % 2]) for v, table in enumerate(tables)) for s in range(2))
    assert verified.log_lower == pytest.approx(given)
    assert verified.log_upper >= max(sum(math.log(table[s].max()) for table in tables) for s in range(2)) - CLOSE
