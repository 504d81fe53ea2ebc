"""How a problem falls apart once its max variables are given, and what part of it a few of them concern."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.core.arrays import BoolArray, IntArray, starts_of
from powersum.core.jit import compiled
from powersum.model.factors import Factors
from powersum.model.graph import components, incidence
from powersum.model.model import Model


class Parts(NamedTuple):
    """Components of the sum variables, given all max variables, as kernels read them. Never changed.

    The variables of component ``c`` are ``members[member_starts[c]:member_starts[c + 1]]``, its factors likewise.
    ``plain`` lists the factors between max variables alone, whose component is -1; ``incident`` the factors of each
    variable from ``incident_starts[v]`` on.
    """

    member_starts: IntArray
    members: IntArray
    factor_starts: IntArray
    factors: IntArray
    component_of_factor: IntArray
    plain: IntArray
    incident_starts: IntArray
    incident: IntArray


def parts_of(model: Model, is_max: BoolArray) -> Parts:
    """Split the sum variables into components."""
    owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
    is_sum_place = ~is_max[model.scope_variables]
    sum_starts = starts_of(np.bincount(owner[is_sum_place], minlength=model.n_factors))
    label = components(model.n_variables, sum_starts, model.scope_variables[is_sum_place])
    label[is_max] = -1
    _, numbered = np.unique(label, return_inverse=True)
    # Max variables, if any, come first among the labels with -1.
    component = numbered.astype(np.int64) - int(is_max.any())
    # Component of each factor: that of any of its sum variables; -1 for factors between max variables.
    of_factor = np.full(model.n_factors, -1, dtype=np.int64)
    of_factor[owner[is_sum_place]] = component[model.scope_variables[is_sum_place]]
    n_components = int(component.max(initial=-1)) + 1
    places = incidence(model.n_variables, model.scope_starts, model.scope_variables)
    grouped: list[IntArray] = []
    for labels in (component, of_factor):
        inside = np.flatnonzero(labels >= 0)
        grouped.append(starts_of(np.bincount(labels[inside], minlength=n_components)))
        grouped.append(inside[np.argsort(labels[inside], kind="stable")])
    arrays = (*grouped, of_factor, np.flatnonzero(of_factor < 0), places.starts, places.factors)
    # Left writable like the lists of regions: Numba would compile everything twice for a mixture of both.
    return Parts(*(np.array(array, dtype=np.int64) for array in arrays))


@compiled
def region_of(free: IntArray, parts: Parts) -> tuple[IntArray, IntArray, IntArray]:
    """What freeing these max variables concerns: variables, factors, and the components next to them."""
    factor_seen = np.zeros(len(parts.component_of_factor), np.bool_)
    variable_seen = np.zeros(len(parts.incident_starts), np.bool_)
    n_components = len(parts.member_starts) - 1
    component_seen = np.zeros(n_components, np.bool_)
    touched = np.empty(n_components, np.int64)
    n_variables, n_factors, n_touched = 0, 0, 0
    for v in free:
        if variable_seen[v]:
            continue
        variable_seen[v] = True
        n_variables += 1
        for at in range(parts.incident_starts[v], parts.incident_starts[v + 1]):
            f = parts.incident[at]
            c = parts.component_of_factor[f]
            if c < 0:
                n_factors += not factor_seen[f]
                factor_seen[f] = True
            elif not component_seen[c]:
                component_seen[c] = True
                touched[n_touched] = c
                n_touched += 1
                n_variables += parts.member_starts[c + 1] - parts.member_starts[c]
                n_factors += parts.factor_starts[c + 1] - parts.factor_starts[c]
    variables = np.empty(n_variables, np.int64)
    factors = np.empty(n_factors, np.int64)
    v_slot, f_slot = 0, 0
    for v in free:
        if not variable_seen[v]:
            continue
        variable_seen[v] = False
        variables[v_slot] = v
        v_slot += 1
        for at in range(parts.incident_starts[v], parts.incident_starts[v + 1]):
            f = parts.incident[at]
            if factor_seen[f]:
                factor_seen[f] = False
                factors[f_slot] = f
                f_slot += 1
    for i in range(n_touched):
        c = touched[i]
        for at in range(parts.member_starts[c], parts.member_starts[c + 1]):
            variables[v_slot] = parts.members[at]
            v_slot += 1
        for at in range(parts.factor_starts[c], parts.factor_starts[c + 1]):
            factors[f_slot] = parts.factors[at]
            f_slot += 1
    return variables, factors, touched[:n_touched].copy()


@compiled
def plain_sum(
    assignment: IntArray, numbers: IntArray, component_of_factor: IntArray, table_starts: IntArray, factors: Factors
) -> float:
    """Sum of the logs of those of the factors ``numbers`` that are between max variables, at an assignment."""
    total = 0.0
    for f in numbers:
        if component_of_factor[f] < 0:
            place = table_starts[f]
            for i in range(factors.scope_starts[f], factors.scope_starts[f + 1]):
                place += assignment[factors.scope_variables[i]] * factors.strides[i]
            total += factors.log_values[place]
    return total
