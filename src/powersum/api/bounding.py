"""``bound``: from a model and a question to a guaranteed upper bound, in one call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from powersum.assign.repair import repaired
from powersum.bounds.protocol import Provable, Tightener
from powersum.bounds.registry import (
    DEFAULT_METHOD,
    check_counted,
    check_options,
    check_provable,
    method_named,
    start_method,
)
from powersum.bounds.run import Callback, Outcome, run
from powersum.cluster.executor import WorkersLike, check_workers
from powersum.core.clock import loading, working_time
from powersum.core.errors import InputError
from powersum.core.interrupt import interruptible
from powersum.core.memory import memory_left, memory_usually_left
from powersum.core.work_time import counted_by, metered
from powersum.model.certificate import Certificate
from powersum.model.defaults import BOUND_CHANGE, BOUND_SWEEPS
from powersum.model.interval import SAME
from powersum.model.limits import Limits, flag, whole_number
from powersum.model.mapped import mapped_file
from powersum.model.model import VariableKey
from powersum.model.question import EvidenceLike, ModelLike, Question, WeightsLike, function_of
from powersum.model.result import Result, Snapshot, Status
from powersum.model.rounding import certain
from powersum.run.verdict import verdict

if TYPE_CHECKING:
    from powersum.bounds.corner import Corner
    from powersum.core.arrays import IntArray
    from powersum.divide.splitting import Splitting
    from powersum.prepare.problem import Problem
    from powersum.proof.format import Forest

# Options of methods that are whole numbers, and the least they may be.
WHOLE_OPTIONS = MappingProxyType({"ibound": 0, "inner_steps": 1})

TREE_BYTES = 0.6
"""Share of the memory for a tree whose boxes are split later."""

PARTED_LACKS = ("ibound", "memory", "wiring")
"""Options of ``gdd`` that it does not have in parts."""


def bound(
    model: ModelLike,
    maximize: Iterable[VariableKey] | str | None = None,
    *,
    evidence: EvidenceLike | None = None,
    weights: WeightsLike | None = None,
    order: Sequence[VariableKey] | IntArray | None = None,
    method: str = DEFAULT_METHOD,
    sweeps: int | None = None,
    time_limit: float | None = None,
    target: float | None = None,
    change: float | None = None,
    threads: int = 1,
    seed: int = 0,
    work: float | None = None,
    certificate: bool = False,
    callback: Callback | None = None,
    workers: WorkersLike = None,
    memory: float | str | None = None,
    ibound: int | None = None,
    **options: Any,
) -> Result:
    """Bound the largest sum, the partition function or the most probable state from above.

    The value bounded is ``max over x_B of sum over x_A`` of the product of all factors, where B are the variables in
    ``maximize`` and A all others. The bound holds whenever the call ends: a limit costs tightness, never validity.
    Ctrl-C, SIGTERM and SIGHUP end it early and return the best bound so far.

    Parameters
    ----------
    model
        The model, which is not changed, or the path of its file.
    maximize
        Names or numbers of the variables to maximise; ``"all"`` for MAP, ``None`` for the log partition function. The
        answer has them in this order.
    evidence
        Observed states, by names or numbers; likelihoods, as ``{"cough": {"no": 0.2, "yes": 0.8}}``, where not certain.
        A dictionary, a list of pairs, or a row of a table (pandas Series, named tuple) without its missing values.
    weights
        In place of ``maximize``: any weight for each variable. Blocks of sums and maxima that alternate are written
        with :meth:`powersum.Query.along`; the answer then names the outermost block of maxima.
    order
        Elimination order of all variables, first eliminated first, max variables last. Chosen if not given.
    method
        How the bound is tightened; see ``powersum.bounds.registry.METHODS``. ``auto`` is the tree. With
        a limit of time or work it divides the question into boxes once growing the tree pays less.
    sweeps, time_limit, target, change
        When to stop: after this number of sweeps or seconds; at or below ``target``; once ten sweeps
        together gain less than ``change · max(1, |bound|)``. With neither ``sweeps`` nor ``time_limit`` there
        are 500 sweeps, or fewer once ten of them gain less than a millionth.
    threads, seed
        Number of threads, which does not change the result, and the seed of what is drawn at random.
    work
        In place of ``time_limit``: so much work, in seconds that it takes on a machine of usual speed. The result is
        then the same however fast or busy the machine is. For the methods ``auto``, ``tree`` and ``gdd``.
    certificate
        Whether the result shall have a ``certificate``, which ``powersum-check`` verifies; not every method can.
    callback
        Called with a :class:`~powersum.model.result.Snapshot` after every sweep.
    workers
        With method ``gdd``, processes that each take a part of the model, as in :func:`powersum.solve`. A model from a
        ``.psm`` file is then neither read as a whole nor simplified, unless there is evidence.
    memory
        As in :func:`powersum.solve`. Unless given, a tree takes 1 GiB of it at most, if that suffices.
    ibound
        Regions of at most ``ibound + 1`` variables; by default as large as memory allows.
    **options
        Options of the method, such as ``start="share"`` of ``gdd``; ``None`` means the method's default.

    Returns
    -------
    Result
        With ``log_upper``, a decoded ``assignment`` of the maximised variables, the ``status`` and the ``history``.

    Examples
    --------
    >>> import powersum as ps
    >>> rain = ps.Model.from_factors([2, 2], [((0,), [0.8, 0.2]), ((0, 1), [[0.9, 0.1], [0.3, 0.7]])],
    ...                              names=["rain", "wet"], states=[["no", "yes"], ["no", "yes"]])
    >>> result = ps.bound(rain, maximize=["rain"], evidence={"wet": "yes"})
    >>> dict(result.assignment)
    {'rain': 'yes'}
    """
    started = working_time()
    if sweeps is None and time_limit is None and work is None:
        sweeps = BOUND_SWEEPS
        change = BOUND_CHANGE if change is None else change
    given = {
        name: value for name, value in {**options, "memory": memory, "ibound": ibound}.items() if value is not None
    }
    limits = Limits.given(
        sweeps=sweeps,
        time_limit=time_limit,
        target=target,
        change=change,
        memory=memory,
        threads=threads,
        seed=seed,
        work=work,
    )
    function_of(callback, "callback")
    automatic = method == DEFAULT_METHOD
    method = method_named(method)
    if work is not None:
        check_counted(method)
    check_options(method, given)
    if flag(certificate, "certificate"):
        check_provable(method)
    left = None
    if memory is not None:
        left = int(memory_left(limits.bytes) if work is None else memory_usually_left(limits.bytes))
        given["memory"] = int(limits.bytes)
    if workers is not None:
        _check_parted(method, workers, given, certificate=certificate, counted=work is not None)
    for name in given.keys() & WHOLE_OPTIONS.keys():
        given[name] = whole_number(given[name], name, WHOLE_OPTIONS[name])
    question = Question.of(model, maximize, evidence=evidence, weights=weights, order=order, limits=limits)
    alternates = question.query.blocks is not None
    if alternates and (workers is not None or method not in {DEFAULT_METHOD, "tree"}):
        raise InputError(f"blocks that alternate take method 'tree' without workers, not {method!r}")
    eliminated = checked_order(question)
    used = {
        "sweeps": limits.sweeps,
        "time_limit": limits.time_limit,
        "work": limits.work,
        "target": limits.target,
        "change": limits.change,
        "threads": limits.threads,
        "seed": limits.seed,
        "order": "automatic" if order is None else "given",
        **given,
    }
    with interruptible() as interrupt, counted_by(limits.meter()), ExitStack() as stack:
        if metered():
            started = working_time()
        # Compiled modules are imported where they are used, so that ``import powersum`` stays quick.
        with loading():
            from powersum.bounds.affordable import NAMES, affordable
            from powersum.bounds.corner import corner_of
            from powersum.bounds.tree.covering_tree import CoveringTree
            from powersum.divide.split_tree import SplitTree, is_splittable
            from powersum.prepare.ordering import order_cost
            from powersum.prepare.problem import Problem
            from powersum.prepare.simplify import simplified
            from powersum.prepare.sizes import order_sizes, question_sizes

        as_it_is = workers is not None and not question.all_evidence and mapped_file(question.model) is not None
        if as_it_is:
            problem = Problem.whole(question.model, question.query.weights, {})
        else:
            problem = simplified(question)
        sizes = question_sizes(question, problem)
        log_error = problem.log_error
        forest, log_proven, splitting, reader = None, math.inf, None, None
        if not problem.feasible or problem.model.n_variables == 0:
            outcome, states, residuals = _without_search(problem, started, callback), np.empty(0, dtype=np.int64), None
        else:
            if as_it_is and eliminated is None:
                # Any order will do, and to look for a good one would be to hold the graph of the whole.
                chosen = np.argsort(problem.tau == 0, kind="stable")
            else:
                chosen = reduced_order(problem, eliminated, seed=limits.seed, time_limit=limits.seconds)
                cost = order_cost(problem.model, chosen)
                sizes.update(order_sizes(cost.width, cost.log2_total))
            # No method reports more than what a reader of the model sees.
            reader = None if as_it_is else corner_of(question, problem, limits.seconds)
            # A method is given the bytes that it may take itself.
            splits = automatic and workers is None and "ibound" not in given and is_splittable(problem)
            share = TREE_BYTES if splits and limits.seconds < math.inf else 1.0
            granted = given if left is None else {**given, "memory": int(share * left)}
            tightener: Tightener
            if workers is not None:
                from powersum.bounds.huge.method import in_parts

                tightener = stack.enter_context(in_parts(problem, chosen, workers, seed=limits.seed, options=given))
            elif automatic and not alternates:
                tightener = affordable(
                    problem, chosen, threads=limits.threads, seed=limits.seed, seconds=limits.seconds, **granted
                )
                method = NAMES[type(tightener)]
                if splits and isinstance(tightener, CoveringTree):
                    boxes = {} if left is None else {"memory": (1.0 - share) * left}
                    tightener = SplitTree(
                        problem, tightener, threads=limits.threads, seed=limits.seed, provable=certificate, **boxes
                    )
            else:
                tightener = start_method(
                    method, problem, chosen, threads=limits.threads, seed=limits.seed, options=granted
                )
            if certificate and not isinstance(tightener, Provable):
                raise InputError("there is too little memory for a bound that a certificate can express")
            outcome = run(
                tightener,
                limits,
                log_constant=problem.log_constant,
                log_error=problem.log_error,
                log_known=math.inf if reader is None else reader.above(problem),
                started=started,
                interrupt=interrupt,
                callback=callback,
            )
            residuals = tightener.residuals()
            sizes.update(tightener.sizes())
            # An exact method decodes an optimum, which needs no repair.
            decoded = tightener.decode()
            seconds = min(1.0, 0.02 * limits.seconds)
            if tightener.exact:
                repair = None
            elif as_it_is or alternates:
                # The outermost maxima alone have states: repair needs all max variables.
                # Its zeros are known to the parts only: the assignment is the decoded one, and may be impossible.
                repair = decoded
            else:
                repair = repaired(problem, decoded, seconds=seconds, seed=limits.seed)
            if tightener.exact:
                log_error += tightener.log_error
                outcome = replace(outcome, exact=True, reason="One table holds every bucket: the value is exact.")
            elif repair is None:
                outcome = _impossible(outcome, started, callback)
            states = decoded if repair is None else repair
            if certificate and outcome.log_upper > -math.inf:
                assert isinstance(tightener, Provable)
                if isinstance(tightener, SplitTree) and tightener.by_boxes:
                    splitting = tightener.splitting
                else:
                    forest, log_proven = tightener.certified()
    exact = problem.model.n_variables == 0 or outcome.exact
    # Too much rounding leaves no upper bound, from which a lower one could be read.
    read = exact and math.isfinite(outcome.log_upper)
    log_lower = outcome.log_upper - 2.0 * log_error if read else -math.inf
    status, reason = verdict(
        log_lower,
        outcome.log_upper,
        limits=limits,
        reason=outcome.reason,
        proven=exact,
        interrupted=outcome.reason if outcome.interrupted and not exact else None,
        exhausted=outcome.reason,
    )
    if status is Status.INFEASIBLE or (status is Status.OPTIMAL and outcome.log_upper - log_lower <= SAME):
        reason = outcome.reason
    restored = None if status is Status.INFEASIBLE else problem.restore(states)
    proof = None
    unproven: tuple[str, ...] = ()
    if certificate:
        from powersum.proof.certificate import shortfall

        proof = _certificate(question, problem, outcome, log_lower, restored, forest, log_proven, splitting, reader)
        unproven = shortfall(proof, log_lower, outcome.log_upper)
    from powersum import __version__

    return Result(
        log_upper=outcome.log_upper,
        log_lower=log_lower,
        assignment={} if restored is None else question.answer(restored),
        status=status,
        reason=reason,
        history=outcome.history,
        method=method,
        options=used,
        sizes=sizes,
        version=__version__,
        residuals=residuals,
        notes=question.model.notes + unproven,
        question=question.asked(),
        certificate=proof,
    )


def _check_parted(
    method: str, workers: WorkersLike, given: Mapping[str, Any], *, certificate: bool, counted: bool
) -> None:
    """Refuse what a bound in parts cannot have."""
    check_workers(workers)
    if method != "gdd":
        raise InputError(f"workers take method gdd, not {method}: give method='gdd'")
    for name, wanted in (("certificate", certificate), ("work", counted), *((n, n in given) for n in PARTED_LACKS)):
        if wanted:
            raise InputError(f"{name} is not there for a bound in parts: give it without workers")


def _certificate(
    question: Question,
    problem: Problem,
    outcome: Outcome,
    log_lower: float,
    states: IntArray | None,
    forest: Forest | None,
    log_proven: float,
    splitting: Splitting | None,
    reader: Corner | None,
) -> Certificate:
    """The proof of a bound; of both, where it is the value."""
    from powersum.proof.certificate import certificate_of, ground_of
    from powersum.proof.format import Proof
    from powersum.run.proofs import by_cases, by_contradiction, by_corner, by_elimination, by_splitting

    ground = ground_of(question, problem)
    if not problem.feasible:
        proof = by_contradiction(ground)
    elif splitting is not None:
        proof = by_splitting(ground, splitting)
    elif forest is not None:
        proof = Proof([ground.tree([forest])], log_proven + problem.log_constant)
    else:
        proof = by_elimination(ground) if outcome.log_upper > -math.inf else by_cases(ground)
    if reader is not None and not outcome.exact and reader.log_upper + problem.log_constant < proof.log_upper:
        proof = by_corner(ground, reader)
    chosen = question.query.max_variables.tolist()
    # With blocks inside the maxima of the answer, its value is no elimination of sums: the bounds alone are proven.
    if states is None or log_lower == -math.inf or question.query.blocks is not None:
        chosen = []
    return certificate_of(
        question,
        ground,
        proof,
        log_lower=log_lower,
        log_upper=outcome.log_upper,
        states=states if chosen else None,
        assignment={v: int(states[v]) for v in chosen} if states is not None else None,
    )


def checked_order(question: Question) -> IntArray | None:
    """A user's order, checked to name each variable once and to eliminate max variables last."""
    if question.order is not None:
        from powersum.prepare.ordering import check_order

        query = question.query
        check_order(question.order, query.weights, question.model.n_variables, query.blocks)
    return question.order


def reduced_order(problem: Problem, order: IntArray | None, *, seed: int = 0, time_limit: float = math.inf) -> IntArray:
    """The order of the reduced variables: from one of the original variables, or chosen."""
    if order is not None:
        return problem.reduced_order(order)
    from powersum.prepare.ordering import elimination_order

    # Most of a short time is better spent on the bound than on a slightly better order.
    return elimination_order(problem.model, problem.tau, rank=problem.rank, seed=seed, time_limit=0.2 * time_limit)


def _without_search(problem: Problem, started: float, callback: Callback | None) -> Outcome:
    """The outcome where simplification left nothing to bound."""
    log_upper = certain(problem.log_constant, problem.log_error)
    snapshot = Snapshot(working_time() - started, 0, log_upper)
    if callback is not None:
        callback(snapshot)
    reason = (
        "Simplification alone gave the exact value."
        if problem.feasible
        else "Nothing has positive probability: the zeros of the model and the evidence exclude every state."
    )
    return Outcome(log_upper, (snapshot,), reason, interrupted=False)


def _impossible(outcome: Outcome, started: float, callback: Callback | None) -> Outcome:
    """The outcome once a search has shown that the zeros leave no configuration at all."""
    snapshot = Snapshot(working_time() - started, outcome.history[-1].sweep, -math.inf)
    if callback is not None:
        callback(snapshot)
    reason = "Nothing has positive probability: a search through the zeros of the model found no way around them."
    return Outcome(-math.inf, (*outcome.history, snapshot), reason, interrupted=False)
