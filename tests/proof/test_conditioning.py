"""Certificates of conditioning: the checker finds the value of brute force, and nothing false in damaged ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import powersum as ps
import powersum_check as pc
from powersum.model.certificate import Certificate
from powersum.model.question import Question
from powersum.prepare.simplify import simplify
from powersum.proof.certificate import certificate_of, ground_of
from powersum.proof.conditioning import conditioning_arrays
from powersum.run.proofs import by_conditioning
from tests.check.helpers import to_check
from tests.exact.test_counting import counted, structured
from tests.oracle import exact_value

CLOSE = 1e-9


def conditioned(model: ps.Model, evidence: dict[int, int]) -> ps.Model:
    """The model with a factor for each observation."""
    cards = model.cardinalities.tolist()
    factors = [(f.scope, np.exp(f.log_table)) for f in model.factors()]
    factors += [((v,), np.arange(cards[v]) == s) for v, s in evidence.items()]
    return ps.Model.from_factors(cards, factors)


def tangled(rng: np.random.Generator) -> ps.Model:
    """A model that simplification does not do away with."""
    cards = rng.integers(2, 4, 8)
    factors = []
    for _ in range(9):
        scope = rng.choice(8, 3, replace=False)
        table = rng.choice([0.0, 0.5, 1.0, 2.0], size=tuple(cards[scope]), p=[0.2, 0.2, 0.4, 0.2])
        factors.append((tuple(scope.tolist()), table))
    return ps.Model.from_factors(cards.tolist(), factors)


def certified(model: ps.Model, evidence: dict[int, int]) -> Certificate | None:
    """A certificate of log Z by conditioning; None where there is nothing to condition on."""
    question = Question.of(model, evidence=evidence)
    problem = simplify(model, question.query, evidence)
    if not problem.feasible or not problem.model.n_variables:
        return None
    found = counted(problem.model, np.ones(problem.model.n_variables), log=True)
    ground = ground_of(question, problem)
    log_value = found.log_value
    proof = by_conditioning(ground, problem, conditioning_arrays(found, problem), log_value)
    total = log_value + problem.log_constant
    return certificate_of(question, ground, proof, log_lower=total, log_upper=total)


def checked(model: ps.Model, evidence: dict[int, int], certificate: Certificate, memory: int = 10**9) -> pc.Verified:
    asked = pc.Question.of(to_check(model), evidence=evidence)
    return saved(certificate, lambda path: pc.check(to_check(model), asked, path, memory=memory))


def saved(certificate: Certificate, then: Callable[[Path], pc.Verified]) -> pc.Verified:
    """What is found out about a certificate in a file."""
    with TemporaryDirectory() as folder:
        certificate.save(Path(folder) / "proof.zip")
        return then(Path(folder) / "proof.zip")


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 10**6))
def test_the_checker_finds_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = tangled(rng) if rng.random() < 0.5 else structured(seed, variables=int(rng.integers(3, 11)))
    evidence = {v: int(rng.integers(c)) for v, c in enumerate(model.cardinalities) if rng.random() < 0.1}
    certificate = certified(model, evidence)
    if certificate is None:
        return
    verified = checked(model, evidence, certificate)
    truth = exact_value(conditioned(model, evidence), np.ones(model.n_variables))
    assert verified.log_lower <= truth + CLOSE
    assert verified.log_upper >= truth - CLOSE
    assert truth == -math.inf == verified.log_upper or verified.log_upper - verified.log_lower < CLOSE


@pytest.mark.parametrize("seed", range(4))
def test_the_slow_mode_agrees(seed: int) -> None:
    pytest.importorskip("flint")
    model = tangled(np.random.default_rng(seed))
    certificate = certified(model, {})
    assert certificate is not None
    truth = exact_value(model, np.ones(model.n_variables))
    quick = checked(model, {}, certificate)
    slow = saved(certificate, lambda path: pc.check(to_check(model), None, path, exact=True))
    assert quick.log_lower <= slow.log_lower <= truth + CLOSE
    assert truth - CLOSE <= slow.log_upper <= quick.log_upper


def test_nodes_that_are_not_the_same_are_refused() -> None:
    """Two chains hang on a root; a certificate that shares their values where they differ must fail."""
    first, second = np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 1.0], [1.0, 0.5]])
    model = ps.Model.from_factors([2] * 4, [((0, 1), first), ((1, 2), second), ((2, 3), first), ((0, 3), second)])
    certificate = certified(model, {})
    assert certificate is not None
    nodes = certificate.arrays["0/child_nodes"]
    refused = 0
    for place in range(len(nodes)):
        for other in set(nodes.tolist()) - {int(nodes[place])}:
            changed = nodes.copy()
            changed[place] = other
            damaged = replace(certificate, arrays={**certificate.arrays, "0/child_nodes": changed})
            try:
                checked(model, {}, damaged)
            except pc.Rejected:
                refused += 1
    assert refused == len(nodes) * (len(set(nodes.tolist())) - 1)


def with_child(certificate: Certificate, place: int, child: int) -> Certificate:
    """One more child of a state."""
    counts = certificate.arrays["0/child_counts"].astype(np.int64)
    nodes = np.insert(certificate.arrays["0/child_nodes"], int(counts[:place].sum()), child)
    counts[place] += 1
    return replace(certificate, arrays={**certificate.arrays, "0/child_counts": counts, "0/child_nodes": nodes})


@pytest.mark.parametrize("seed", range(3))
def test_children_that_are_not_there_are_refused(seed: int) -> None:
    """A node that is in the graph anyway, as a child of other states: its value must not count there."""
    model = tangled(np.random.default_rng(seed))
    certificate = certified(model, {})
    assert certificate is not None
    truth = exact_value(model, np.ones(model.n_variables))
    head = dict(certificate.head) | {"claim": {"log_lower": None, "log_upper": None}}
    certificate = replace(certificate, head=head)
    n_nodes = len(certificate.arrays["0/branching"])
    for place in range(0, len(certificate.arrays["0/child_counts"]), 3):
        for child in (n_nodes, n_nodes - 1, n_nodes // 2 + 1):
            try:
                verified = checked(model, {}, with_child(certificate, place, child))
            except pc.CheckError:
                continue
            assert verified.log_lower <= truth + CLOSE
            assert verified.log_upper >= truth - CLOSE


def test_more_children_than_nodes_are_refused() -> None:
    model = tangled(np.random.default_rng(0))
    certificate = certified(model, {})
    assert certificate is not None
    counts = certificate.arrays["0/child_counts"].astype(np.int64)
    counts[0] += 20_000
    nodes = np.append(np.ones(20_000, np.int64), certificate.arrays["0/child_nodes"])
    many = replace(certificate, arrays={**certificate.arrays, "0/child_counts": counts, "0/child_nodes": nodes})
    with pytest.raises(pc.BadFile, match="child_counts has a number outside"):
        checked(model, {}, many)


def test_nodes_are_worked_on_in_pieces_where_memory_is_short() -> None:
    model = tangled(np.random.default_rng(0))
    certificate = certified(model, {})
    assert certificate is not None
    whole = checked(model, {}, certificate)
    refused = 0
    for memory in (200_000, 100_000, 60_000, 40_000, 30_000, 20_000, 15_000, 10_000):
        try:
            pieces = checked(model, {}, certificate, memory=memory)
        except pc.BadFile:
            refused += 1
        else:
            assert abs(pieces.log_lower - whole.log_lower) < CLOSE
            assert abs(pieces.log_upper - whole.log_upper) < CLOSE
    assert 0 < refused < 8


@pytest.mark.parametrize("seed", range(6))
def test_a_child_named_twice_is_refused(seed: int) -> None:
    """Its value would be counted twice."""
    model = tangled(np.random.default_rng(seed))
    certificate = certified(model, {})
    assert certificate is not None
    counts = certificate.arrays["0/child_counts"].astype(np.int64)
    nodes = certificate.arrays["0/child_nodes"].astype(np.int64)
    for slot in np.flatnonzero(counts)[:20].tolist():
        more, at = counts.copy(), int(counts[:slot].sum())
        more[slot] += 1
        arrays = {**certificate.arrays, "0/child_counts": more, "0/child_nodes": np.insert(nodes, at, nodes[at])}
        with pytest.raises(pc.Rejected, match="in two of its nodes"):
            checked(model, {}, replace(certificate, arrays=arrays))


def test_a_child_without_tables_counts_once() -> None:
    """Given the first variable, the second is free: it may be a child, but not twice, and not where it is not."""
    free = np.array([[0.0, 1.0], [1.0, 1.0]])
    model = ps.Model.from_factors([2, 2, 2], [((0, 1), free), ((0, 2), free), ((1, 2), free)])
    certificate = certified(model, {})
    assert certificate is not None
    arrays = certificate.arrays
    node = len(arrays["0/branching"]) + 1
    for variable in range(3):
        more = {
            "0/branching": np.append(arrays["0/branching"], variable),
            "0/child_counts": np.append(arrays["0/child_counts"], [0, 0]),
        }
        head = dict(certificate.head) | {"claim": {"log_lower": None, "log_upper": None}}
        wider = replace(certificate, head=head, arrays={**arrays, **more})
        for place in range(len(arrays["0/child_counts"])):
            for twice in (False, True):
                bogus = with_child(wider, place, node)
                try:
                    verified = checked(model, {}, with_child(bogus, place, node) if twice else bogus)
                except pc.CheckError:
                    continue
                assert verified.log_lower <= math.log(4.0) + CLOSE
                assert verified.log_upper >= math.log(4.0) - CLOSE


@pytest.mark.parametrize("seed", range(12))
def test_damaged_ones_prove_nothing_false(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = tangled(rng)
    certificate = certified(model, {})
    assert certificate is not None
    truth = exact_value(model, np.ones(model.n_variables))
    names = [n for n in certificate.arrays if n.startswith("0/") and certificate.arrays[n].size]
    accepted = 0
    for _ in range(150):
        name = names[int(rng.integers(len(names)))]
        array = np.array(certificate.arrays[name])
        place = int(rng.integers(array.size))
        other = array.flat[int(rng.integers(array.size))]
        if array.dtype.kind == "f":
            array.flat[place] = rng.choice([0.0, -1.0, other, other + 1e-9, -math.inf])
        else:
            array.flat[place] = max(-1, min(126, int(rng.choice([other, other + 1, other - 1, 0, 1]))))
        if rng.random() < 0.2:
            array = np.delete(array, place) if array.ndim == 1 else array
        head = dict(certificate.head) | {"claim": {"log_lower": None, "log_upper": None}}
        damaged = replace(certificate, head=head, arrays={**certificate.arrays, name: array})
        try:
            verified = checked(model, {}, damaged)
        except pc.CheckError:
            continue
        accepted += 1
        assert verified.log_lower <= truth + CLOSE, name
        assert verified.log_upper >= truth - CLOSE, name
    assert accepted < 150


Arrays = dict[str, np.ndarray]


def nothing_false_is_proven(rng: np.random.Generator, change: Callable[[ps.Model, Arrays], Arrays]) -> None:
    """Changed arrays are refused, more than ten times of a hundred, or prove what is true, whatever is claimed."""
    model = tangled(rng)
    certificate = certified(model, {})
    assert certificate is not None
    truth = exact_value(model, np.ones(model.n_variables))
    head = dict(certificate.head) | {"claim": {"log_lower": None, "log_upper": None}}
    named = ("child_nodes", "child_counts", "branching", "gone", "gone_counts", "settled", "settled_counts")
    arrays = {name: certificate.arrays[f"0/{name}"].astype(np.int64) for name in named}
    refused = 0
    for _ in range(100):
        changed = {f"0/{name}": array for name, array in change(model, arrays).items()}
        try:
            verified = checked(model, {}, replace(certificate, head=head, arrays={**certificate.arrays, **changed}))
        except pc.CheckError:
            refused += 1
            continue
        assert verified.log_lower <= truth + CLOSE
        assert verified.log_upper >= truth - CLOSE
    assert refused > 10


@pytest.mark.parametrize("seed", range(8))
def test_nodes_taken_for_others_prove_nothing_false(seed: int) -> None:
    """One that branches on the same variable, in all places or in one; or a child left out, or put elsewhere."""
    rng = np.random.default_rng(100 + seed)

    def change(_: ps.Model, arrays: Arrays) -> Arrays:
        nodes, counts, branching = arrays["child_nodes"], arrays["child_counts"], np.append(-1, arrays["branching"])
        place = int(rng.integers(len(nodes)))
        changed, less = nodes.copy(), counts.copy()
        alike = np.flatnonzero(branching == branching[nodes[place]])
        match int(rng.integers(4)):
            case 0:
                changed[nodes == nodes[place]] = rng.choice(alike)
            case 1:
                changed[place] = rng.choice(alike)
            case 2:
                changed = np.delete(nodes, place)
                less[np.searchsorted(np.cumsum(counts), place, side="right")] -= 1
            case _:
                other = int(rng.integers(len(nodes)))
                changed[[place, other]] = nodes[[other, place]]
        return {"child_nodes": changed, "child_counts": less}

    nothing_false_is_proven(rng, change)


@pytest.mark.parametrize("seed", range(8))
def test_orders_and_variables_prove_nothing_false(seed: int) -> None:
    """Another order of what goes in a lane, or another variable to set."""
    rng = np.random.default_rng(200 + seed)

    def change(model: ps.Model, arrays: Arrays) -> Arrays:
        gone, counts, variables = arrays["gone"].copy(), arrays["gone_counts"], arrays["branching"].copy()
        if rng.random() < 0.5:
            slot = int(rng.choice(np.flatnonzero(counts > 1)))
            end = int(counts[: slot + 1].sum())
            gone[end - counts[slot] : end] = rng.permutation(gone[end - counts[slot] : end])
        else:
            # Sums of states go on fitting only if the other variable has as many.
            node, sizes = int(rng.integers(len(variables))), model.cardinalities
            variables[node] = rng.choice(np.flatnonzero(sizes == sizes[variables[node]]))
        return {"gone": gone, "branching": variables}

    nothing_false_is_proven(rng, change)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["gone", "settled"])
def test_lists_of_lanes_prove_nothing_false(name: str, seed: int) -> None:
    """What goes or is settled in one lane is left out, or is so in another, or in both; or something else is."""
    rng = np.random.default_rng(300 + seed)

    def change(_: ps.Model, arrays: Arrays) -> Arrays:
        items, counts = arrays[name], arrays[f"{name}_counts"].copy()
        place = int(rng.integers(len(items)))
        slot = int(np.searchsorted(np.cumsum(counts), place, side="right"))
        item = items[place]
        if rng.random() < 0.7:
            items = np.delete(items, place)
            counts[slot] -= 1
        if rng.random() < 0.7:
            other = int(rng.integers(len(counts)))
            items = np.insert(items, int(counts[: other + 1].sum()), item if rng.random() < 0.5 else rng.choice(items))
            counts[other] += 1
        return {name: items, f"{name}_counts": counts}

    nothing_false_is_proven(rng, change)


def two_pairs() -> tuple[ps.Model, Certificate]:
    """Two pairs of variables that hang together by a fifth alone: given that, a state leaves two nodes."""
    strong, weak = np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[1.0, 0.0], [0.5, 1.0]])
    cycles = [((0, 1), strong), ((1, 2), strong.T), ((0, 2), weak), ((0, 3), strong), ((3, 4), weak), ((0, 4), strong)]
    model = ps.Model.from_factors([2] * 5, cycles)
    certificate = certified(model, {})
    assert certificate is not None
    return model, certificate


def lists_of(certificate: Certificate, name: str) -> list[list[int]]:
    """The items of each lane."""
    items, counts = certificate.arrays[f"0/{name}"], certificate.arrays[f"0/{name}_counts"].astype(np.int64)
    return [part.tolist() for part in np.split(items, np.cumsum(counts)[:-1])]


def with_lists(certificate: Certificate, name: str, lists: list[list[int]]) -> Certificate:
    changed = {
        f"0/{name}": np.array([item for own in lists for item in own], np.int64),
        f"0/{name}_counts": np.array([len(own) for own in lists], np.int64),
    }
    return replace(certificate, arrays={**certificate.arrays, **changed})


def test_a_state_that_may_be_possible_does_not_go() -> None:
    """One place more in each lane in turn: refused, unless the lane is impossible or the state is."""
    model, certificate = two_pairs()
    truth = exact_value(model, np.ones(5))
    lists = lists_of(certificate, "gone")
    refused = 0
    for lane in range(len(lists)):
        for place in range(lane % 3, 24, 3):
            more = [[*own, place] if k == lane else own for k, own in enumerate(lists)]
            try:
                verified = checked(model, {}, with_lists(certificate, "gone", more))
            except pc.Rejected as error:
                refused += "not shown to be impossible" in str(error)
            else:
                assert abs(verified.log_lower - truth) < CLOSE
    assert refused > 30


def test_no_state_goes_because_of_those_that_go_after_it() -> None:
    model = tangled(np.random.default_rng(3))
    certificate = certified(model, {})
    assert certificate is not None
    lists = lists_of(certificate, "gone")
    found = 0
    for lane in [k for k, own in enumerate(lists) if len(own) > 1][:60]:
        turned = [own[::-1] if k == lane else own for k, own in enumerate(lists)]
        try:
            checked(model, {}, with_lists(certificate, "gone", turned))
        except pc.Rejected as error:
            found += "not shown to be impossible" in str(error)
    assert found


def test_each_table_is_settled_once() -> None:
    model, certificate = two_pairs()
    lists = lists_of(certificate, "settled")
    for lane, own in enumerate(lists):
        for table in own:
            less = [[t for t in one if t != table] if k == lane else one for k, one in enumerate(lists)]
            with pytest.raises(pc.Rejected, match=r"settle different tables|is not settled"):
                checked(model, {}, with_lists(certificate, "settled", less))
            twice = [[*one, table] if k == lane else one for k, one in enumerate(lists)]
            with pytest.raises(pc.Rejected, match="in two of its nodes"):
                checked(model, {}, with_lists(certificate, "settled", twice))


def test_tables_settled_too_early_are_refused_or_count_with_their_spread() -> None:
    """All tables at once, before anything is set: 0 is then possible, or else their range is all that is known."""
    model, certificate = two_pairs()
    n_tables = int(certificate.arrays["0/settled"].max()) + 1
    early = [list(range(n_tables)), *([] for _ in lists_of(certificate, "settled")[1:])]
    with pytest.raises(pc.Rejected, match="settled where it can be 0"):
        checked(model, {}, with_lists(certificate, "settled", early))
    odd = np.array([[1.0, 2.0], [3.0, 5.0]])
    model = ps.Model.from_factors([2] * 3, [((0, 1), odd), ((1, 2), odd), ((0, 2), odd)])
    positive = certified(model, {})
    assert positive is not None
    head = dict(positive.head) | {"claim": {"log_lower": None, "log_upper": None}}
    early = [[0, 1, 2], *([] for _ in lists_of(positive, "settled")[1:])]
    verified = checked(model, {}, with_lists(replace(positive, head=head), "settled", early))
    assert verified.log_upper >= math.log(8 * 5.0**3) - CLOSE
    assert verified.log_lower <= math.log(8 * 1.0**3) + CLOSE


def test_a_node_may_set_any_variable() -> None:
    """What it proves is true all the same."""
    model, certificate = two_pairs()
    for node in range(len(certificate.arrays["0/branching"])):
        for other in range(5):
            variables = certificate.arrays["0/branching"].astype(np.int64)
            variables[node] = other
            damaged = replace(certificate, arrays={**certificate.arrays, "0/branching": variables})
            try:
                verified = checked(model, {}, damaged)
            except pc.Rejected:
                continue
            assert abs(verified.log_lower - exact_value(model, np.ones(5))) < CLOSE
