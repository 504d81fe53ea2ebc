"""Search by circuits against brute force: along any order, at any moment."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import powersum as ps
from powersum.core import work_time
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.progress import Progress
from powersum.exact.counting import Counting
from powersum.search.circuit_search import CircuitSearch, choices_of
from tests.exact.test_counting import structured
from tests.oracle import assignment_value, exact_value


def built(model: ps.Model, tau: FloatArray, order: IntArray) -> Counting:
    counting = Counting(model, tau, order, memory=1e7, rank=np.zeros(model.n_variables, dtype=np.int64), circuit=True)
    while (progress := counting.step()) is Progress.MORE:
        pass
    assert progress is Progress.DONE
    return counting


def search_by(counting: Counting, model: ps.Model, tau: FloatArray, memory: float = 1e6) -> CircuitSearch:
    is_max = tau == 0.0
    return CircuitSearch(
        choices_of(counting.circuit, is_max, counting.possible),
        counting.log_value,
        counting.log_error,
        is_max,
        model.cardinalities,
        counting.possible.copy(),
        memory=memory,
    )


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 10**6))
def test_every_bound_is_valid_and_the_last_is_the_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = structured(seed, variables=int(rng.integers(2, 10)))
    tau = rng.choice([0.0, 1.0], size=model.n_variables)
    truth = exact_value(model, tau)
    # Maxima are anywhere in this order, inside sums too.
    counting = built(model, tau, rng.permutation(model.n_variables))
    slack = 2.0 * counting.log_error + 1e-10 * max(1.0, abs(truth) if truth > -math.inf else 0.0)
    if truth == -math.inf:
        assert counting.log_value == -math.inf
        return
    assert counting.log_value >= truth - slack
    if not (tau == 0.0).any():
        return
    search = search_by(counting, model, tau)
    progress, last = Progress.MORE, math.inf
    while progress is Progress.MORE:
        assert truth - slack <= search.log_upper <= last + slack
        last = search.log_upper
        assert search.log_lower <= truth + slack
        progress = search.run(work_time.monotonic() + 1e-5)
    assert progress is Progress.DONE
    assert abs(search.log_upper - truth) <= slack
    assert search.states is not None
    assert ((search.states >= 0) == (tau == 0.0)).all()
    chosen = {int(v): int(search.states[v]) for v in np.flatnonzero(tau == 0.0)}
    assert abs(assignment_value(model, chosen) - truth) <= slack


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6))
def test_what_is_known_elsewhere_only_saves_work(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = structured(seed, variables=8)
    tau = np.append(0.0, rng.choice([0.0, 1.0], size=model.n_variables - 1))
    truth = exact_value(model, tau)
    counting = built(model, tau, rng.permutation(model.n_variables))
    if truth == -math.inf:
        return
    search = search_by(counting, model, tau)
    search.offer(truth)
    assert search.run(math.inf) is Progress.DONE
    assert truth - 2.0 * search.log_error - 1e-10 * max(1.0, abs(truth)) <= search.log_upper


def test_a_search_ends_where_nodes_need_more_memory() -> None:
    for seed in range(40):
        model = structured(seed, variables=10)
        tau = np.tile([0.0, 1.0], 5)
        counting = built(model, tau, np.arange(10))
        if counting.log_value == -math.inf:
            continue
        search = search_by(counting, model, tau, memory=0.0)
        assert search.run(math.inf) is Progress.OUT_OF_TIME
        assert search.log_upper >= exact_value(model, tau) - 1e-6
        return
    raise AssertionError("no model was possible")
