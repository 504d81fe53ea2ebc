"""The stages of ``solve``: simplification, exact elimination where it fits, else the anytime part.

Each stage yields a :class:`~powersum.answer.board.State` after a slice of work; whoever drives them keeps the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from powersum.answer.anytime import Anytime
from powersum.answer.board import State
from powersum.exact.components import settle_components
from powersum.exact.elimination import Elimination
from powersum.model.question import Question
from powersum.model.rounding import elimination_error
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplified
from powersum.prepare.sizes import order_sizes, question_sizes

NANOSECONDS_PER_ENTRY = 15.0
"""What one entry of a bucket table costs at worst, for judging beforehand whether exact elimination is affordable."""

QUICK = 0.5
"""Seconds that exact elimination may take without anything else being tried first."""


def stages(
    question: Question,
    *,
    memory: float,
    threads: int,
    seed: int,
    clock: Callable[[], float],
    time_limit: float,
) -> Iterator[State]:
    """All the work on one question, in slices.

    ``clock`` tells the seconds spent on slices before the present one.
    """
    problem = simplified(question)
    state = State(sizes=question_sizes(question, problem))
    if not problem.feasible:
        state.impossible()
        yield state
        return
    if problem.model.n_variables == 0:
        state.offer_upper(problem, 0.0, 0.0)
        state.offer_lower(problem, 0.0, 0.0, np.zeros(0, dtype=np.int64))
        state.settled, state.reason = True, "Simplification alone gave the exact value."
        yield state
        return
    # Each part of the preparation takes long on a very large model: between them is a look at the outside.
    yield state
    order = elimination_order(problem.model, problem.tau, seed=seed, time_limit=min(0.2, 0.05 * time_limit))
    whole = problem
    yield state
    elimination = Elimination(whole.model, order, whole.tau)
    state.sizes.update(order_sizes(elimination.width, elimination.log2_entries))
    seconds = elimination.work * NANOSECONDS_PER_ENTRY * 1e-9
    fits = elimination.bytes <= 0.9 * memory
    if fits and seconds < QUICK:
        yield from eliminated(elimination, problem, state)
        return
    if problem.n_components > 1:
        entries = QUICK / (NANOSECONDS_PER_ENTRY * 1e-9)
        problem, order = settle_components(problem, order, work=entries, size=0.2 * memory)
        if not problem.feasible:
            state.impossible()
            yield state
            return
    yield state
    work = Anytime(problem, order, state, memory=memory, threads=threads, seed=seed)
    yield state
    for _ in work.run(clock, time_limit):
        yield state
        # What takes elimination long is often proven sooner by search, but not always.
        if fits and not state.settled and work.stage > 0 and seconds < 0.7 * (time_limit - clock()):
            del work
            # Elimination needs the memory that the tree of the bound takes.
            state.confirm()
            yield from eliminated(elimination, whole, state)
            return


def eliminated(elimination: Elimination, problem: Problem, state: State) -> Iterator[State]:
    """The state while exact elimination is under way, and after it."""
    for exact in elimination.slices():
        if exact is not None:
            if exact.log_value == -math.inf:
                state.impossible()
            else:
                error = elimination_error(problem.model)
                state.offer_upper(problem, exact.log_value, error)
                state.offer_lower(problem, exact.log_value, error, exact.states)
            state.settled, state.reason = True, f"Exact elimination, of constrained width {elimination.width}."
            state.notes = ()
        yield state
