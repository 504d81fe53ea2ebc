"""The one call: what it accepts, what it refuses, and that its answers hold."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import powersum as ps
from powersum.bounds.registry import METHODS
from powersum.core.arrays import FloatArray
from tests.oracle import exact_value
from tests.strategies import weighted_models

RAIN = ps.Model.from_factors(
    [2, 2, 2],
    [((0,), [0.8, 0.2]), ((0, 1), [[0.9, 0.1], [0.3, 0.7]]), ((1, 2), [[0.5, 0.5], [0.1, 0.9]])],
    names=["rain", "wet", "slip"],
    states=[["no", "yes"]] * 3,
)


def test_by_names() -> None:
    result = ps.bound(RAIN, maximize=["rain"], evidence={"slip": "yes"})
    weights = [0.0, 1.0, 1.0]
    assert result.log_upper >= exact_value(RAIN, weights, evidence={2: 1}) - 1e-9
    assert dict(result.assignment) == {"rain": "no"}
    assert result.method == "tree"
    assert result.version == ps.__version__
    assert result.sizes["variables"] == 3
    assert result.sizes["evidence"] == 1


@pytest.mark.parametrize("method", ["auto", *METHODS])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=weighted_models(), sweeps=st.integers(0, 30), data=st.data())
def test_every_snapshot_is_a_bound(
    method: str, case: tuple[ps.Model, FloatArray], sweeps: int, data: st.DataObject
) -> None:
    """What a callback has seen is the history, to the last digit, and its end is the answer."""
    model, weights = case
    seen: list[ps.Snapshot] = []
    evidence = {}
    if data.draw(st.booleans()):
        variable = data.draw(st.integers(0, model.n_variables - 1))
        evidence = {variable: data.draw(st.integers(0, int(model.cardinalities[variable]) - 1))}
    query = ps.Query(weights)
    result = ps.bound(model, evidence=evidence, weights=query, sweeps=sweeps, method=method, callback=seen.append)
    assert tuple(seen) == result.history
    exact = exact_value(model, weights, evidence=evidence)
    uppers = [snapshot.log_upper for snapshot in result.history]
    assert all(a >= b for a, b in pairwise(uppers))
    assert uppers[-1] == result.log_upper
    slack = 1e-9 * max(1.0, abs(exact)) if math.isfinite(exact) else 0.0
    assert result.log_upper >= exact - slack
    if result.status is ps.Status.OPTIMAL:
        assert result.log_upper == pytest.approx(exact, abs=1e-9)
    if result.status is ps.Status.INFEASIBLE:
        assert exact == -math.inf
        assert not result.assignment
    else:
        names = {model.name(v) for v in np.flatnonzero(weights == 0).tolist()}
        assert set(result.assignment) == names
    json.loads(result.to_json(), parse_constant=pytest.fail)


def test_everything_simplified_away() -> None:
    model = ps.Model.from_factors([2, 1], [((0,), [0.25, 0.5]), ((1,), [3.0]), ((), [2.0])])
    result = ps.bound(model, maximize=[0], evidence={0: 1})
    assert result.status is ps.Status.OPTIMAL
    assert result.log_upper == pytest.approx(math.log(3.0))
    assert result.log_lower < math.log(3.0) < result.log_upper
    assert result.gap < 1e-11
    assert dict(result.assignment) == {"0": 1}
    assert [s.sweep for s in result.history] == [0]


def test_a_model_without_variables() -> None:
    result = ps.bound(ps.Model.from_factors([], [((), [5.0])]))
    assert result.log_upper == pytest.approx(math.log(5.0))
    assert result.status is ps.Status.OPTIMAL


def test_impossible_evidence_is_an_answer() -> None:
    model = ps.Model.from_factors([2, 2], [((0, 1), [[1.0, 0.0], [0.0, 1.0]])])
    result = ps.bound(model, maximize=[0], evidence={0: 0, 1: 1})
    assert result.status is ps.Status.INFEASIBLE
    assert result.log_upper == -math.inf
    assert result.assignment == {}
    assert json.loads(result.to_json())["log_upper"] == "-inf"


def test_evidence_on_a_max_variable_is_its_state() -> None:
    result = ps.bound(RAIN, maximize=["rain", "wet"], evidence={"rain": "yes"})
    assert result.assignment["rain"] == "yes"


def test_the_same_seed_gives_the_same_result_on_any_number_of_threads() -> None:
    model, query = ps.generate.grid(12, 12, seed=3)
    one, two = (ps.bound(model, query, sweeps=5, threads=threads, seed=1) for threads in (1, 2))
    assert [s.log_upper for s in one.history] == [s.log_upper for s in two.history]
    assert one.assignment == two.assignment


def test_a_given_order() -> None:
    result = ps.bound(RAIN, maximize=["rain"], order=["slip", "wet", "rain"])
    assert result.options["order"] == "given"
    assert ps.bound(RAIN, maximize=["rain"], order=np.array([2, 1, 0])).log_upper == result.log_upper


def test_target_and_options_are_recorded() -> None:
    model, query = ps.generate.grid(4, 4)
    result = ps.bound(model, query, target=1e6, method="gdd", start="uniform")
    assert len(result.history) == 1
    assert result.options["start"] == "uniform"
    assert result.options["target"] == 1e6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"maximize": ["reign"]}, "no variable is called 'reign', did you mean 'rain'?"),
        ({"maximize": ["rain", 0]}, "the query names variable rain twice"),
        ({"maximize": "some"}, "maximize is 'some': give a list of variables, or 'all'"),
        ({"maximize": [7]}, "variable 7 is out of range: the model has variables 0 to 2"),
        ({"evidence": {"wet": "yess"}}, "variable wet has no state 'yess', did you mean 'yes'?"),
        ({"evidence": {"wet": 2}}, "state 2 of variable wet is out of range: it has states 0 to 1"),
        ({"evidence": {"wet": 1, 1: 0}}, "evidence gives variable wet two states: yes, no"),
        ({"weights": ps.Query(np.ones(2))}, "weights has 2 numbers, the model 3 variables"),
        ({"weights": ps.Query(np.ones(3)), "maximize": [0]}, "give maximize or weights, not both"),
        ({"order": [0, 1]}, "the order has 2 variables, the model 3"),
        ({"maximize": [0], "order": [0, 1, 2]}, "max variables must come last"),
        ({"method": "magic"}, "no method is called 'magic'"),
        ({"method": "gdd", "stat": "share"}, "method gdd has no option 'stat': did you mean 'start'?"),
        ({"method": "gdd", "start": "cold"}, "start is 'cold'"),
        ({"threads": 0}, "threads is 0: it must be 1 or more"),
        ({"seed": -1}, "seed is -1: it must be 0 or more"),
        ({"sweeps": -3}, "sweeps is -3: it must be 0 or more"),
    ],
)
def test_refusals(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ps.InputError) as caught:
        ps.bound(RAIN, **arguments)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_import_stays_light() -> None:
    heavy = ["numba", "scipy", "matplotlib", "rich", "typer", "networkx"]
    script = f"import powersum, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names() -> None:
    for name in ps.__all__:
        assert getattr(ps, name) is not None
    assert set(dir(ps)) >= {"bound", "read", "generate"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ps.nothing
