"""The checker against a second reading of the same rules, on certificates of every kind, honest and forged."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.check.agreement import disagreement, quick_outcome, slow_outcome
from tests.check.forgeries import forged, honest
from tests.check.helpers import CLOSE, random_draft, to_check, truth
from tests.check.writer import Array, Setting, context_arrays, tree_arrays

CASES, FORGED = 60, 5
"""For each seed; ``python -m tests.check.agreement`` compares any number."""


@pytest.mark.parametrize("seed", range(4))
def test_both_readings_agree(seed: int) -> None:
    counts: Counter[str] = Counter()
    for case in range(CASES):
        rng = np.random.default_rng([1000 + seed, case])
        draft = honest(rng)
        model = to_check(draft.model)
        for number in range(1 + FORGED):
            one = forged(rng, draft) if number else draft
            data = one.zip()
            slow, quick = slow_outcome(one, data), quick_outcome(model, data)
            assert disagreement(one, quick, slow) == "", (case, number)
            counts[slow[0]] += 1
    # Both outcomes are common, and hardly any certificate is beyond the two.
    assert min(counts["accepted"], counts["refused"]) > CASES
    assert counts["beyond"] < CASES / 10


@pytest.mark.parametrize("seed", range(60))
def test_both_readings_agree_where_rounding_counts(seed: int) -> None:
    """Contexts of trees with huge shifts: errors are as large as the differences between bounds."""
    rng = np.random.default_rng([3000, seed])
    scale, tree = float(rng.choice([1e9, 1e12])), dict[str, Array]()
    while "shifts" not in tree:
        draft = random_draft(rng, n_variables=4)
        setting = Setting.of(draft)
        order = setting.random_order(rng)
        tree = tree_arrays(rng, setting, order, strict=True, scale=scale)
    if seed % 3:
        # The same for all states: the bound of the tree is as good as without, but for rounding.
        tree["shifts"] = np.full(len(tree["shifts"]), scale / 3.0)
    share, settled = float(rng.choice([0.0, 0.5, 1.0])), float(rng.choice([0.0, 0.3]))
    draft.step("tree", tree | context_arrays(rng, setting, order, tree, share=share, settled=settled))
    data = draft.zip()
    assert disagreement(draft, quick_outcome(to_check(draft.model), data), slow_outcome(draft, data)) == ""


@pytest.mark.parametrize("seed", range(100))
def test_the_second_reading_proves_nothing_false(seed: int) -> None:
    """Brute force lies within what it proves, of forged certificates too."""
    rng = np.random.default_rng([2000, seed])
    draft = honest(rng)
    for number in range(1 + FORGED):
        one = forged(rng, draft) if number else draft
        # What is asked may have been changed, too.
        asked = {name: array.tolist() for name, array in one.arrays.items() if "/" not in name}
        if any(name not in draft.arrays or array != draft.arrays[name].tolist() for name, array in asked.items()):
            continue
        what, bounds, _ = slow_outcome(one, one.zip())
        if what == "accepted" and one.assignment is None:
            value = truth(one)
            assert bounds[0][0] <= value + CLOSE
            assert bounds[0][1] >= value - CLOSE
