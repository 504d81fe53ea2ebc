"""Compiled conditioning: variables are set one by one, zeros propagated, and what falls apart is summed apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.arrays import IntArray
from powersum.core.growing import copy_to
from powersum.core.jit import bare, compiled
from powersum.exact.count_contexts import (
    CLEARED,
    DEPTH,
    HITS,
    N_LISTED,
    N_MARKS,
    N_ROWS,
    N_SETTLED,
    N_TRAIL,
    NODES,
    NONE,
    ONE,
    CountModel,
    CountState,
    context_of,
    direct_slot,
)
from powersum.exact.count_parts import F_FIRST, F_LAST, V_FIRST, V_LAST, find_part, new_part, number_of, split
from powersum.prepare.ordering.fill import lowest_bit

MORE, DONE, FULL = 0, 1, 2
"""How a turn ended: there is more to do, the value is there, the memory for contexts is not enough."""

BY_NUMBER, BY_RANK = 0, 1
"""Rules for the variable to set next: the one in most factors and contradictions of late, or of the largest rank."""

DECAY = 0.5
"""Contradictions count so much less after each turn."""

# Columns of a frame: its variable, where its trail begins, its row among the children of the frame below, the rows of
# its own children, the one at work, whether it is at its children or between two states, its present and best state,
# where its value is to be remembered, how often everything had been forgotten when that was said, its number, and the
# marks and settled variables of its present state.
VARIABLE, TRAIL, ROW, FIRST_CHILD, LAST_CHILD, CHILD, AT_CHILDREN, PRESENT, BEST = range(9)
PART, PART_AGE, NODE, FIRST_MARK, LAST_MARK, FIRST_SETTLED, LAST_SETTLED = 9, 10, 11, 12, 13, 14, 15
N_COLUMNS = 16
# Its values: the largest so far, the sum in units of it, and that of the present state.
LARGEST, TOTAL, BRANCH = range(3)


@bare
def _restrict(state: CountState, v: int, mask: np.uint64) -> None:
    """Fewer states of a variable are alive: remember which there were."""
    counters = state.counters
    at = counters[N_TRAIL]
    state.trail[at, 0], state.trail[at, 1] = v, -1
    state.trail_masks[at] = state.masks[v]
    counters[N_TRAIL] = at + 1
    state.masks[v] = mask


@bare
def _mark_gone(model: CountModel, state: CountState, place: Any, states: np.uint64) -> None:
    """Write down that a factor has shown states of one of its variables impossible."""
    first = model.places[place]
    while states and first >= 0:
        state.log_marks[state.counters[N_MARKS]] = first + lowest_bit(states)
        state.counters[N_MARKS] += 1
        states &= states - ONE


@bare
def _mark_settled(state: CountState, f: Any) -> None:
    """Write down that a factor depends on nothing any more."""
    state.log_marks[state.counters[N_MARKS]] = -1 - f
    state.counters[N_MARKS] += 1


@bare
def _propagate(model: CountModel, state: CountState, n_changed: int) -> tuple[int, float]:
    """Look at the factors of the variables in the queue until nothing changes.

    Returns 1 (done), 0 (nothing is possible) or -1 (no room), and by how much the largest entries have changed.
    """
    queue, queued, counters, masks = state.queue, state.queued, state.counters, state.masks
    logs = state.log_marks.size > 0
    change = 0.0
    result = 1
    while n_changed > 0:
        n_changed -= 1
        v = queue[n_changed]
        queued[v] = False
        if result < 1:
            continue
        for at in range(model.incident_starts[v], model.incident_starts[v + 1]):
            f = model.incident_factors[at]
            before = state.context[f]
            if not (state.depends[f] >> np.uint64(model.incident_axes[at])) & ONE:
                continue
            first = model.scope_starts[f]
            arity = model.scope_starts[f + 1] - first
            # Nearly always it is known: no call with all arrays then.
            slot = direct_slot(f, model.direct_starts, model.scope_starts, model.scope_variables, model.shifts, masks)
            now = np.int64(state.direct[slot]) if slot >= 0 else np.int64(-1)
            if now < 0:
                now = context_of(model, state, f)
            if now < 0:
                result = -1
                break
            if now == before:
                continue
            if state.context_largest[now] == -np.inf:
                result = 0
                for place in range(first, first + arity):
                    state.activity[model.scope_variables[place]] += 1.0
                    if logs:
                        _mark_gone(model, state, place, masks[model.scope_variables[place]])
                break
            row = counters[N_TRAIL]
            state.trail[row, 0], state.trail[row, 1] = f, before
            counters[N_TRAIL] = row + 1
            state.context[f] = now
            state.depends[f] = state.context_depends[now]
            if logs and state.context_shape[now] < 0 and state.context_shape[before] >= 0:
                _mark_settled(state, f)
            if state.context_largest[now] != state.context_largest[before]:
                change += state.context_largest[now] - state.context_largest[before]
            start = state.context_words[now] + arity
            for a in range(arity):
                u = model.scope_variables[first + a]
                mask = masks[u] & state.words[start + a]
                if mask != masks[u]:
                    row = counters[N_TRAIL]
                    state.trail[row, 0], state.trail[row, 1] = u, -1
                    state.trail_masks[row] = masks[u]
                    counters[N_TRAIL] = row + 1
                    if logs:
                        _mark_gone(model, state, first + a, masks[u] & ~mask)
                    masks[u] = mask
                    if not queued[u]:
                        queued[u] = True
                        queue[n_changed] = u
                        n_changed += 1
    return result, change


@bare
def _undo(state: CountState, mark: int) -> None:
    counters = state.counters
    while counters[N_TRAIL] > mark:
        counters[N_TRAIL] -= 1
        at = counters[N_TRAIL]
        if state.trail[at, 1] < 0:
            state.masks[state.trail[at, 0]] = state.trail_masks[at]
        else:
            f = state.trail[at, 0]
            state.context[f] = state.trail[at, 1]
            state.depends[f] = state.context_depends[state.trail[at, 1]]


@bare
def _choose(model: CountModel, state: CountState, row: int, rule: int) -> Any:
    """The variable of a component to set next: one of its outermost block."""
    best, best_score = -1, 0.0
    for i in range(state.children[row, V_FIRST], state.children[row, V_LAST]):
        v = state.variables[i]
        if best >= 0 and model.level[v] < model.level[best]:
            continue
        score = 0.0 if rule == BY_RANK else state.number[v] + state.activity[v]
        better = best < 0 or model.level[v] > model.level[best]
        if not better:
            better = score > best_score or (score == best_score and model.rank[v] > model.rank[best])
        if better:
            best, best_score = v, score
    return best


@bare
def _push(model: CountModel, state: CountState, row: int, part: int, rule: int, next_row: int) -> None:
    """Begin with a component, whose value will be that of a part."""
    counters = state.counters
    depth = counters[DEPTH] + 1
    counters[DEPTH] = depth
    v = _choose(model, state, row, rule)
    frames, values = state.frames, state.frame_values
    frames[depth, VARIABLE], frames[depth, TRAIL], frames[depth, ROW] = v, counters[N_TRAIL], row
    frames[depth, FIRST_CHILD] = frames[depth, LAST_CHILD] = frames[depth, CHILD] = next_row
    frames[depth, AT_CHILDREN] = 0
    frames[depth, PRESENT], frames[depth, BEST] = -1, -1
    frames[depth, PART], frames[depth, PART_AGE] = part, counters[CLEARED]
    values[depth, LARGEST], values[depth, TOTAL], values[depth, BRANCH] = -np.inf, 0.0, 0.0
    state.frame_left[depth] = state.masks[v]
    counters[NODES] += 1
    frames[depth, NODE] = counters[NODES]


@bare
def _add_branch(model: CountModel, state: CountState, depth: int) -> None:
    """Add what the present state came to."""
    frames, values = state.frames, state.frame_values
    value = values[depth, BRANCH]
    if value == -np.inf:
        return
    if model.is_max[frames[depth, VARIABLE]]:
        if value > values[depth, LARGEST]:
            values[depth, LARGEST], frames[depth, BEST] = value, frames[depth, PRESENT]
    elif value <= values[depth, LARGEST]:
        values[depth, TOTAL] += np.exp(value - values[depth, LARGEST])
    else:
        values[depth, TOTAL] = values[depth, TOTAL] * np.exp(values[depth, LARGEST] - value) + 1.0
        values[depth, LARGEST] = value


@bare
def _log(state: CountState, depth: Any, s: Any, n_children: Any, value: float) -> None:
    """Write down what a state of a frame's variable left; -1 for none: that the variable is through."""
    counters, frames = state.counters, state.frames
    row, listed = counters[N_ROWS], counters[N_LISTED]
    state.log_rows[row, 0], state.log_rows[row, 1] = frames[depth, NODE], frames[depth, VARIABLE]
    state.log_rows[row, 2], state.log_rows[row, 3] = s, n_children
    state.log_rows[row, 4], state.log_rows[row, 5] = frames[depth, FIRST_MARK], frames[depth, LAST_MARK]
    state.log_rows[row, 6], state.log_rows[row, 7] = frames[depth, FIRST_SETTLED], frames[depth, LAST_SETTLED]
    if state.log_values.size > 0:
        state.log_values[row] = value
    for i in range(n_children):
        state.log_nodes[listed + i] = state.child_nodes[frames[depth, FIRST_CHILD] + i]
    counters[N_ROWS], counters[N_LISTED] = row + 1, listed + n_children


@compiled
def begin_count(model: CountModel, state: CountState) -> tuple[int, float]:
    """Look at all factors, propagate, and make the frame below all others, whose children are the components.

    Returns 1 (done), 0 (nothing is possible) or -1 (no room), and the value of what is settled.
    """
    n_factors, n_variables = len(model.scope_starts) - 1, len(model.cardinalities)
    logs = state.log_marks.size > 0
    total = 0.0
    for f in range(n_factors):
        state.factors[f] = f
        now = context_of(model, state, f)
        if now < 0:
            return -1, 0.0
        if state.context_largest[now] == -np.inf:
            if logs:
                for place in range(model.scope_starts[f], model.scope_starts[f + 1]):
                    _mark_gone(model, state, place, state.masks[model.scope_variables[place]])
            return 0, -np.inf
        if logs and state.context_shape[now] < 0:
            _mark_settled(state, f)
        state.context[f] = now
        state.depends[f] = state.context_depends[now]
        total += state.context_largest[now]
    for v in range(n_variables):
        state.variables[v] = v
        state.queue[v] = v
        state.queued[v] = True
    for f in range(n_factors):
        start = state.context_words[state.context[f]]
        arity = model.scope_starts[f + 1] - model.scope_starts[f]
        for a in range(arity):
            v = model.scope_variables[model.scope_starts[f] + a]
            mask = state.masks[v] & state.words[start + arity + a]
            if logs:
                _mark_gone(model, state, model.scope_starts[f] + a, state.masks[v] & ~mask)
            state.masks[v] = mask
            if state.masks[v] == NONE:
                return 0, -np.inf
    result, change = _propagate(model, state, n_variables)
    if result < 1:
        return result, -np.inf
    state.counters[N_TRAIL] = 0
    copy_to(state.base, state.context, state.context.size)
    copy_to(state.base_masks, state.masks, state.masks.size)
    whole = state.children[0]
    whole[F_FIRST], whole[F_LAST], whole[V_FIRST], whole[V_LAST] = 0, n_factors, 0, n_variables
    last, free = split(model, state, 0, 1)
    if last < 0:
        return -1, 0.0
    frame = state.frames[0]
    frame[FIRST_CHILD], frame[LAST_CHILD], frame[CHILD], frame[AT_CHILDREN] = 1, last, 1, 1
    frame[LAST_SETTLED] = state.counters[N_SETTLED]
    state.frame_values[0, LARGEST] = state.frame_values[0, BRANCH] = total + change + free
    return 1, total + change + free


@compiled
def restart_count(model: CountModel, state: CountState) -> None:
    """Back to the beginning, by another rule perhaps; what is remembered stays."""
    _undo(state, 0)
    frame, values = state.frames[0], state.frame_values[0]
    frame[FIRST_SETTLED] = state.counters[N_SETTLED]
    # The same components as before, their variables judged anew.
    split(model, state, 0, 1)
    frame[LAST_SETTLED] = state.counters[N_SETTLED]
    state.counters[DEPTH] = 0
    frame[CHILD] = frame[FIRST_CHILD]
    values[BRANCH] = values[LARGEST]


@compiled
def explored(model: CountModel, state: CountState) -> float:
    """A guess at the share of the search that is behind: states that are through, as if all were alike."""
    share, weight = 0.0, 1.0
    for depth in range(1, state.counters[DEPTH] + 1):
        number = model.cardinalities[state.frames[depth, VARIABLE]]
        share += weight * (number - number_of(state.frame_left[depth]) - 1) / number
        weight /= number
    return share


@compiled
def count_some(model: CountModel, state: CountState, rule: int, nodes: int) -> tuple[int, float]:
    """Go on for so many nodes; how that ended, and the value where it is there."""
    counters, frames, values = state.counters, state.frames, state.frame_values
    end = counters[NODES] + nodes
    state.activity[:] *= DECAY
    logs = state.log_rows.shape[0] > 0
    most_marks = model.cardinalities.sum() + len(model.scope_starts)
    # Where neither a proof nor a way down needs all states, a maximum ends with the first that no other can exceed.
    early = not logs
    while counters[NODES] < end:
        if logs and (
            counters[N_ROWS] + 2 > state.log_rows.shape[0]
            or counters[N_LISTED] + len(model.cardinalities) > state.log_nodes.size
            or (state.log_marks.size > 0 and counters[N_MARKS] + most_marks > state.log_marks.size)
            or (state.log_values.size > 0 and counters[N_SETTLED] + len(model.cardinalities) > state.log_settled.size)
        ):
            return MORE, 0.0
        depth = counters[DEPTH]
        if frames[depth, AT_CHILDREN]:
            if values[depth, BRANCH] > -np.inf and frames[depth, CHILD] < frames[depth, LAST_CHILD]:
                row = frames[depth, CHILD]
                frames[depth, CHILD] += 1
                part, slot, length = find_part(model, state, row)
                if part < 0:
                    part = new_part(state, slot, length)
                if part >= 0 and not np.isnan(state.part_values[part]):
                    counters[HITS] += 1
                    values[depth, BRANCH] += state.part_values[part]
                    if logs:
                        state.child_nodes[row] = state.part_nodes[part]
                else:
                    _push(model, state, row, part, rule, frames[depth, LAST_CHILD])
                    if logs:
                        state.child_nodes[row] = counters[NODES]
                continue
            if logs:
                n_children = frames[depth, CHILD] - frames[depth, FIRST_CHILD]
                _log(state, depth, frames[depth, PRESENT], n_children, values[depth, BRANCH])
            if depth == 0:
                return DONE, values[depth, BRANCH]
            _add_branch(model, state, depth)
            frames[depth, AT_CHILDREN] = 0
        _undo(state, frames[depth, TRAIL])
        v = frames[depth, VARIABLE]
        if early and model.is_max[v] and model.level[v] == 0 and values[depth, LARGEST] >= 0.0:
            # Nothing is summed below, and of each table its largest entry is taken off.
            state.frame_left[depth] = NONE
        if state.frame_left[depth] == NONE:
            value = values[depth, LARGEST]
            if value > -np.inf and not model.is_max[v]:
                value += np.log(values[depth, TOTAL])
            part = frames[depth, PART]
            if part >= 0 and frames[depth, PART_AGE] == counters[CLEARED]:
                state.part_values[part] = value
                state.part_choices[part, 0], state.part_choices[part, 1] = v, frames[depth, BEST]
                if logs:
                    state.part_nodes[part] = frames[depth, NODE]
            if logs:
                _log(state, depth, np.int64(-1), np.int64(0), value)
            counters[DEPTH] = depth - 1
            values[depth - 1, BRANCH] += value
            continue
        s = lowest_bit(state.frame_left[depth])
        state.frame_left[depth] &= state.frame_left[depth] - ONE
        frames[depth, PRESENT] = s
        _restrict(state, v, ONE << np.uint64(s))
        state.queue[0], state.queued[v] = v, True
        frames[depth, FIRST_MARK] = counters[N_MARKS]
        result, change = _propagate(model, state, 1)
        frames[depth, LAST_MARK] = counters[N_MARKS]
        if result < 0:
            return FULL, 0.0
        if result == 0:
            if logs:
                frames[depth, FIRST_SETTLED] = frames[depth, LAST_SETTLED] = counters[N_SETTLED]
                _log(state, depth, np.int64(s), np.int64(0), -np.inf)
            continue
        frames[depth, FIRST_SETTLED] = counters[N_SETTLED]
        last, free = split(model, state, frames[depth, ROW], frames[depth, FIRST_CHILD])
        if last < 0:
            return FULL, 0.0
        frames[depth, LAST_SETTLED] = counters[N_SETTLED]
        values[depth, BRANCH] = change + free
        frames[depth, LAST_CHILD], frames[depth, CHILD], frames[depth, AT_CHILDREN] = (
            last,
            frames[depth, FIRST_CHILD],
            1,
        )
    return MORE, 0.0


@compiled
def best_states(model: CountModel, state: CountState, states: IntArray) -> bool:
    """States of outermost max variables in a best configuration, by what was remembered; False if it was forgotten.

    To be called when the value is there: the frame below all others has its components still.
    """
    row, last = np.int64(1), state.frames[0, LAST_CHILD]
    top = model.level.max()
    while row < last:
        any_max = False
        for i in range(state.children[row, V_FIRST], state.children[row, V_LAST]):
            v = state.variables[i]
            any_max = any_max or (model.is_max[v] and model.level[v] == top)
        if any_max:
            part, _, _ = find_part(model, state, row)
            if part < 0 or np.isnan(state.part_values[part]):
                return False
            v, s = state.part_choices[part, 0], state.part_choices[part, 1]
            _restrict(state, v, ONE << np.uint64(s))
            state.queue[0], state.queued[v] = v, True
            result, _ = _propagate(model, state, 1)
            if result < 1:
                return False
            last, _ = split(model, state, row, last)
            if last < 0:
                return False
        row += 1
    for v in range(len(states)):
        if model.is_max[v] and model.level[v] == top:
            states[v] = lowest_bit(state.masks[v])
    return True
