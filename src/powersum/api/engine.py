"""``Engine``: one model, many questions, each answered in as little as its own numbers take."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from powersum.api.distribution import Marginals
from powersum.api.joint import Group, asked_variables, with_joints
from powersum.api.marginals import marginals
from powersum.core.clock import working_time
from powersum.exact.small import small_elimination
from powersum.model.defaults import TIME
from powersum.model.keys import Place
from powersum.model.limits import Limits
from powersum.model.model import Model, VariableKey
from powersum.model.question import EvidenceLike, ModelLike, Question, WeightsLike, model_of
from powersum.model.result import Result
from powersum.run.answer import answer_of
from powersum.run.probability import share_of
from powersum.run.solver import solve

if TYPE_CHECKING:
    from powersum.api.planner import Planner

PATIENCE = 20
"""Small questions that are answered in plain NumPy before it pays to load, or even to compile, what answers quicker."""


MOST_VARIABLES = 10_000
"""Of larger models the search for an order alone takes longer than all that an engine saves."""


MOST_PLANNERS = 4
"""Sets of variables with likelihoods for which plans are kept."""


class Engine:
    """Answers many questions about one model; what they share is prepared once.

    Orders and wiring are kept for each set of observed, maximised and likelihood variables. Evidence in other states
    then costs one elimination. Marginals keep the messages that no changed observation reaches.

    Questions that are too wide for exact elimination go to :func:`powersum.solve` and :func:`powersum.marginals`. Any
    number of threads may ask at the same time. A pickled engine keeps the model and the limits, and prepares anew.

    Parameters
    ----------
    model
        The model or the path of its file; it is not changed.
    time_limit, memory, gap, threads, seed
        For each question, as in :func:`powersum.solve`.

    Examples
    --------
    >>> import powersum as ps
    >>> engine = ps.Engine(ps.Model.from_tables({"rain": [0.8, 0.2], ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]}))
    >>> [engine.solve(["rain"], evidence={"wet": state}).assignment["rain"] for state in (0, 1)]
    [0, 1]
    >>> [round(p, 3) for p in engine.marginals(evidence={"wet": 1}).beliefs[0].tolist()]
    [0.364, 0.636]
    """

    def __init__(
        self,
        model: ModelLike,
        *,
        time_limit: float | None = TIME,
        memory: float | str | None = None,
        gap: float = 0.0,
        threads: int = 1,
        seed: int = 0,
    ) -> None:
        self.model: Model = model_of(model)
        self._limits = Limits.given(time_limit=time_limit, memory=memory, gap=gap, threads=threads, seed=seed)
        self._options: dict[str, Any] = {
            name: getattr(self._limits, name) for name in ("time_limit", "memory", "gap", "threads", "seed", "work")
        }
        self._lock = threading.Lock()
        self._asked = 0
        self._made: OrderedDict[tuple[int, ...], Planner] = OrderedDict()
        """By the variables that questions give likelihoods of."""
        self._engines: OrderedDict[tuple[Group, ...], Engine] = OrderedDict()
        """By the groups of variables whose joint distributions are asked for."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Plans are wired to arrays of this process: another one makes its own.
        options = {name: self._options[name] for name in ("time_limit", "memory", "gap", "threads", "seed")}
        return partial(Engine, self.model, **options), ()

    def solve(
        self,
        maximize: Iterable[VariableKey] | str | None = None,
        *,
        evidence: EvidenceLike | None = None,
        weights: WeightsLike | None = None,
    ) -> Result:
        """The same answer as :func:`powersum.solve` gives; parameters as there."""
        question = Question.of(self.model, maximize, evidence=evidence, weights=weights, limits=self._limits)
        question.only_sums_and_maxima("Engine.solve")
        return self.at_once(question) or solve(
            self.model, evidence=question.all_evidence, weights=question.query, **self._options
        )

    def at_once(self, question: Question) -> Result | None:
        """The answer if a plan gives it; None for the first small questions and for wide ones."""
        begun = working_time()
        planner = self._planner(question)
        found = None if planner is None else planner.solve(question)
        if found is None:
            return None
        board, log_sum, sizes = found
        board.snapshot(working_time() - begun)
        shares = board.log_lower > -math.inf and bool(question.query.answered)
        probability = share_of((board.log_lower, board.log_upper), log_sum) if shares else None
        return answer_of(question, board, options=self._options, sizes=sizes, probability=probability)

    def prepare(self) -> None:
        """Load or compile what answers fastest, before the questions that need it."""
        with self._lock:
            self._asked = PATIENCE
        self.solve([] if self.model.n_variables == 0 else [Place(0)])

    def log_z(self, *, evidence: EvidenceLike | None = None) -> Result:
        """Log Z: in a Bayesian network, the log of the probability of the evidence."""
        return self.solve(None, evidence=evidence)

    def marginals(
        self,
        *,
        evidence: EvidenceLike | None = None,
        of: Iterable[VariableKey | Sequence[VariableKey]] | None = None,
    ) -> Marginals:
        """The same as :func:`powersum.marginals` returns, with the same errors."""
        question = Question.of(self.model, None, evidence=evidence, limits=self._limits)
        groups = [] if of is None else asked_variables(self.model, of)[1]
        if groups:
            found = self._joined(tuple(groups)).marginals(evidence=question.all_evidence)
            return found.without_joints(self.model, groups)
        planner = self._planner(question)
        known = None if planner is None else planner.marginals(question)
        if known is not None:
            return known
        options = {name: value for name, value in self._options.items() if name not in ("gap", "work")}
        return marginals(self.model, evidence=question.all_evidence, of=of, **options)

    def _joined(self, groups: tuple[Group, ...]) -> Engine:
        """An engine for the model with a variable for each group."""
        with self._lock:
            if groups not in self._engines:
                options = {name: value for name, value in self._options.items() if name not in ("gap", "work")}
                self._engines[groups] = Engine(with_joints(self.model, groups), **options)
            self._engines.move_to_end(groups)
            if len(self._engines) > MOST_PLANNERS:
                self._engines.popitem(last=False)
            return self._engines[groups]

    def _planner(self, question: Question) -> Planner | None:
        """What answers a question by compiled code; None where others do."""
        if self.model.n_variables > MOST_VARIABLES:
            return None
        soft = tuple(question.evidence.likelihoods)
        with self._lock:
            made = self._made.get(soft)
            if made is not None:
                self._made.move_to_end(soft)
                return made
            self._asked += 1
            patient = self._asked <= PATIENCE
        if patient and small_elimination(*question.observed, question.query.weights) is not None:
            return None
        # Compiled modules are imported where they are used: a few small questions never load them.
        from powersum.api.planner import Planner

        with self._lock:
            if soft not in self._made:
                self._made[soft] = Planner(question.observed.model, self._limits, n_likelihoods=len(soft))
            if len(self._made) > MOST_PLANNERS:
                self._made.popitem(last=False)
            return self._made[soft]
