"""Distributions that the checker finds on the way down: those of brute force, and nothing false from forged trees."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum_check.__main__ import main
from tests.check.forgeries import change_entry, narrow
from tests.check.helpers import question_of, random_draft, to_check, truth
from tests.check.writer import Draft, Setting, tree_arrays

CLOSE = 1e-9


def drafted(rng: np.random.Generator, *, plain: bool) -> Draft:
    """A sum of everything with a tree that is exact, but for what it drops where it is not plain."""
    draft = random_draft(rng, n_variables=5, plain=True)
    draft = Draft(draft.model, [1.0] * 5, draft.evidence, draft.likelihoods)
    setting = Setting.of(draft)
    arrays = tree_arrays(rng, setting, setting.random_order(rng), exact=True, temperature=0.0)
    if not plain:
        narrow(rng, arrays)
        if len(arrays["home"]) and rng.random() < 0.3:
            arrays["home"][int(rng.integers(0, len(arrays["home"])))] = -1
    draft.step("tree", arrays)
    return draft


def shares(draft: Draft) -> list[list[float]] | None:
    """The distributions by brute force."""
    domains = Setting.of(draft).domains
    whole = truth(draft)
    if whole == -math.inf:
        return None
    cards = draft.model.cardinalities.tolist()

    def share(v: int, s: int) -> float:
        if s not in domains[v]:
            return 0.0
        return math.exp(truth(draft, [[s] if u == v else d for u, d in enumerate(domains)]) - whole)

    return [[share(v, s) for s in range(cards[v])] for v in range(len(cards))]


def found(draft: Draft) -> list[list[pc.Share] | None]:
    return pc.check_marginals(to_check(draft.model), question_of(draft), draft.zip())


def false(told: list[list[pc.Share] | None], true: list[list[float]]) -> bool:
    pairs = [(s, p) for some, row in zip(told, true, strict=True) for s, p in zip(some or [], row, strict=False)]
    return any(not s.lower - CLOSE <= p <= s.upper + CLOSE for s, p in pairs)


@pytest.mark.parametrize("seed", range(150))
def test_the_distributions_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draft = drafted(rng, plain=seed % 3 > 0)
    true = shares(draft)
    if true is None:
        with pytest.raises(pc.Rejected, match="probability 0"):
            found(draft)
        return
    told = found(draft)
    assert not false(told, true)
    if seed % 3:
        assert all(some is not None for some in told)
        assert all(s.upper - s.lower < CLOSE for some in told for s in some or [])


def test_forged_trees_prove_no_false_distribution() -> None:
    accepted = 0
    for seed in range(300):
        rng = np.random.default_rng(10_000 + seed)
        draft = drafted(rng, plain=seed % 2 > 0)
        true = shares(draft)
        for _ in range(int(rng.integers(1, 3))):
            change_entry(rng, draft, str(rng.choice([name for name in sorted(draft.arrays) if name.startswith("0/")])))
        try:
            told = found(draft)
        except pc.CheckError:
            continue
        assert true is not None
        assert not false(told, true)
        accepted += 1
    assert accepted > 30


def test_the_command_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sum that powersum proves; what a barren leaf would say of itself is not proven."""
    model = ps.Model.from_factors(
        [2, 2, 2], [((0, 1), [[0.1, 0.9], [0.4, 0.6]]), ((1, 2), [[0.2, 0.8], [0.7, 0.3]]), ((0,), [1.0, 3.0])]
    )
    ps.write(model, tmp_path / "model.uai")
    result = ps.solve(model, certificate=True)
    assert result.certificate is not None
    result.certificate.save(tmp_path / "proof.zip")
    words = [str(tmp_path / "model.uai"), str(tmp_path / "proof.zip"), "--marginals"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("question: distributions of all variables; 3 variables")
    assert [line.partition("<=")[0] for line in lines[1:3]] != []
    assert sum(line.startswith("verified: ") for line in lines) + 2 * sum("not proven" in line for line in lines) == 6
    assert main([*words, "--map"]) == 2
    assert main([*words, "--share", "0"]) == 2


def chain() -> tuple[Draft, dict[str, np.ndarray]]:
    """Three variables, each caused by the one before; each is summed out for itself, the last one first."""
    tables = [((0,), [0.2, 0.8]), ((0, 1), [[0.9, 0.1], [0.4, 0.6]]), ((1, 2), [[0.7, 0.3], [0.1, 0.9]])]
    model = ps.Model.from_factors([2, 2, 2], tables)
    arrays = {
        "order": np.array([2, 1, 0]),
        "node_starts": np.array([0, 2, 4, 5]),
        "node_variables": np.array([2, 1, 1, 0, 0]),
        "parent": np.array([-1, -1, -1]),
        "weight": np.ones(3),
        "home": np.array([2, 1, 0]),
    }
    return Draft(model, [1.0] * 3), arrays


def test_a_node_that_drops_its_message_tells_nothing() -> None:
    """What depends on the variables that were dropped is not in the node, although dropping loses nothing."""
    draft, arrays = chain()
    draft.step("tree", arrays)
    told, true = found(draft), shares(draft)
    assert true is not None
    assert not false(told, true)
    assert [some is None for some in told] == [False, True, True]
    # With a message from the second to the first node both are told, and the third is not.
    draft, arrays = chain()
    draft.step("tree", arrays | {"parent": np.array([-1, 2, -1])})
    told = found(draft)
    assert not false(told, true)
    assert [some is None for some in told] == [False, False, True]


def test_trees_with_shifts_and_boxes_tell_nothing() -> None:
    draft, arrays = chain()
    shift = {
        "edges": np.array([[1, 2]]),
        "edge_starts": np.array([0, 1]),
        "edge_variables": np.array([0]),
        "shifts": np.array([0.0, 2.0]),
    }
    draft.step("tree", arrays | {"parent": np.array([-1, 2, -1])} | shift)
    with pytest.raises(pc.Rejected, match="eliminates everything exactly"):
        found(draft)
    # A step about a part comes first: it is passed over.
    draft, arrays = chain()
    draft.step("tree", arrays | {"parent": np.array([1, 2, -1]), "box": np.array([[2, 0]])})
    draft.step("tree", arrays | {"parent": np.array([1, 2, -1])})
    told, true = found(draft), shares(draft)
    assert true is not None
    assert all(some is not None for some in told)
    assert not false(told, true)


def test_only_sums_have_distributions() -> None:
    draft, arrays = chain()
    draft.weights = [0.0, 1.0, 1.0]
    draft.step("tree", arrays)
    with pytest.raises(pc.BadFile, match="sums everything"):
        found(draft)
