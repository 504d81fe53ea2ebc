"""The checker against a second reading of the same rules, on certificates of every kind, honest and forged."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.check.agreement import disagreement, quick_outcome, slow_outcome
from tests.check.forgeries import forged, honest
from tests.check.helpers import CLOSE, to_check, truth

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
