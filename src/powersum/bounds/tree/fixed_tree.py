"""One covering tree of fixed structure while its shifts and weights are optimised.

The descent runs in single precision, for the bound is valid at any point. What is claimed is computed in double
precision at the points that it reaches. Only the last rounds of small trees, which gain so little that single precision
no longer shows the way, are in double precision, too.
"""

from __future__ import annotations

from collections import deque
from statistics import median

import numpy as np

from powersum.bounds.buckets.decoding import decode
from powersum.bounds.buckets.partition import Partition
from powersum.bounds.buckets.passes import Passes
from powersum.bounds.buckets.proof import bucket_forest
from powersum.bounds.buckets.scopes import Scopes
from powersum.bounds.buckets.single import SinglePasses
from powersum.bounds.buckets.sweeps import shares_of
from powersum.bounds.buckets.wiring import lay_out
from powersum.bounds.tree.annealing import FIRST_TEMPERATURE, LAST_TEMPERATURE, Annealing
from powersum.bounds.tree.budget import cost_of
from powersum.bounds.tree.descent import Curvature, Descent
from powersum.bounds.tree.growth import Turns, Way, carry, grow, many_are_maximised
from powersum.bounds.tree.merging import looseness
from powersum.core import work_time as time
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.speed import FIRST_TREE_PASS
from powersum.core.work_time import metered
from powersum.model.result import Residuals
from powersum.model.rounding import certain, magnitude
from powersum.prepare.problem import Problem
from powersum.proof.format import Forest

ROUND = 5
"""Iterations between two evaluations of the true bound."""

LEAST_DOUBLINGS = 0.1
"""A tree that has hardly grown counts as if it had grown by so much: what it gains has other reasons."""
FITTINGS = 4
"""How often a growth that takes too many bytes is tried with fewer entries."""

FARTHEST = 1e3
"""No shift grows beyond this many times the largest number in the model's tables."""

REWARMED = 4.0
"""How much warmer a grown tree goes on than the one before it: where that one was stuck between kinks, a cold one stays
stuck however much it grows."""

EXTENDING_TEMPERATURE = 0.03
"""Where mini-buckets are asked what they disagree about: of colder ones each believes one thing only."""

CONVERGED = 1e-7
"""A round that gains less than this share of the bound, at the last temperature, is the last one."""

LEAST_SINGLE_GAIN, MOST_DOUBLE_ENTRIES = 2e-4, 50_000
"""A round at the last temperature that gains less than this, in nats, is the last one in single precision, unless the
tree has more entries: values are rounded by about 1e-6 there, and slopes of cold variables by 1e-4."""


PACES = 5
"""The pace of a tree is the median of so many measurements, the latest ones."""


class FixedTree:
    """Shifts and weights of one partition, optimised jointly by annealed descent.

    Attributes
    ----------
    log_upper
        The true bound at the best point so far, rounded up by what rounding may have made of it.
    log_error
        What it was rounded up by.
    exact
        True when no variable is split: ``log_upper`` is then the value itself.
    done
        True when nothing is left to gain.
    order, parts, layout, passes
        Elimination order, mini-buckets, wiring and tables: what a search reads bounds of partial assignments from,
        after :meth:`bound` has brought the best point back.
    """

    def __init__(
        self,
        problem: Problem,
        order: IntArray,
        scopes: Scopes,
        parts: Partition,
        *,
        threads: int,
        start: FloatArray | None = None,
    ) -> None:
        self._problem, self.order = problem, order
        self._scopes, self.parts, self._threads = scopes, parts, threads
        self.layout = lay_out(parts, scopes, problem.model.cardinalities[order])
        self.passes = Passes(self.layout, problem.model, order, problem.tau, threads=threads)
        self.exact = self.layout.n_parameters == 0
        self._farthest = FARTHEST * (1.0 + magnitude(problem.model.log_values))
        if start is not None:
            self.passes.parameters[:] = np.clip(start, -self._farthest, self._farthest)
        self._best = self.passes.parameters.copy()
        self.log_upper, self.log_error = np.inf, 0.0
        self._claim()
        self.done = self.exact or self.log_upper == -np.inf
        self._annealing = Annealing()
        self._guide: SinglePasses | Passes | None = None
        self._fine = False
        """True once the descent is in double precision."""
        self._descent: Descent | None = None
        self._inherited: Curvature | None = None
        self._start = np.inf
        self.last_gain = np.inf
        """What the latest round gained, as a share of the bound."""
        self.seconds_per_entry = 0.0
        self._paces: deque[float] = deque(maxlen=PACES)
        """What a pass takes for each table entry, with its share of all else that a round does, in the quickest round;
        0 before the first."""
        self._turns = Turns(extends=many_are_maximised(problem.tau))
        self._born: tuple[int, float] | None = None
        """Entries and bound of the tree that it has grown from."""
        self._growths = 0
        self._grown_from: tuple[int, float] | None = None
        """Entries and bound of the tree that it has grown from, if that was no longer warm."""

    def step(self, deadline: float) -> bool:
        """A round of iterations at the present temperature; False when not even one fits before the deadline."""
        if self._descent is None:
            self._start = min(self._start, time.monotonic())
            # The first pass has to be guessed.
            if time.monotonic() + FIRST_TREE_PASS * self.layout.n_entries > deadline:
                return False
            self._descent = self._new_descent()
            if self._inherited is not None:
                self._descent.begin_with(self._inherited)
                self._inherited = None
            self._descent.restart(forget=False)
        descent = self._descent
        before, begun, passes = descent.value, time.monotonic(), descent.evaluations
        if begun + descent.seconds > deadline:
            return False
        for _ in range(ROUND):
            if time.monotonic() + descent.seconds > deadline or not descent.iterate(deadline):
                break
        self.passes.parameters[:] = self._guided().parameters
        value = self._claim()
        now = time.monotonic()
        self._note_pace(now - begun, descent.evaluations - passes)
        if now + descent.seconds > deadline:
            return True
        gain = before - descent.value
        self.last_gain = gain / max(1.0, abs(descent.value))
        if self.passes.has_max and self._annealing.cooled(
            gain, descent.value - value, (now - self._start) / max(deadline - self._start, 1e-9)
        ):
            # The curvature found so far still fits the colder function well: keeping it saves about half of the time.
            descent.restart(forget=False)
            self.last_gain = np.inf
        elif self.cold and not self._fine and gain < LEAST_SINGLE_GAIN and self._may_be_fine:
            self._fine, self._guide = True, None
            self._descent = self._new_descent()
            self._descent.begin_with(descent.curvature())
            self._descent.restart(forget=False)
        elif self.last_gain < CONVERGED and self.cold:
            self.done = True
        return True

    def cool_from(self, temperature: float) -> None:
        """Let max variables be so warm once more, and go on from there."""
        self._annealing = Annealing(first=temperature)
        self.done = self.exact or self.log_upper == -np.inf

    def curvature(self, most: int) -> Curvature | None:
        """What the newest steps of its descent have shown, of at most so many; None where there were none."""
        return None if self._descent is None else self._descent.curvature(most)

    def begin_with(self, curvature: Curvature) -> None:
        """Let its descent begin with the curvature that was found for a tree that is much the same."""
        self._inherited = curvature

    @property
    def passes_made(self) -> int:
        """Passes of the descent since it began, or since the best point was brought back."""
        return 0 if self._descent is None else self._descent.evaluations

    @property
    def best_point(self) -> FloatArray:
        """A copy of the parameters of the best point: shifts, then logits of weights."""
        return np.array(self._best)

    @property
    def n_bytes(self) -> int:
        """What the tree takes while it is optimised."""
        return cost_of(self.parts, self._scopes, self._cardinalities).bytes

    def _note_pace(self, seconds: float, passes: int) -> None:
        if passes:
            pace = seconds / (passes * max(self.layout.n_entries, 1))
            if metered():
                self.seconds_per_entry = min(pace, self.seconds_per_entry or pace)
                return
            # Beside other programs the quickest slice is several times as quick as the usual one.
            if self.seconds_per_entry and not self._paces:
                self._paces.append(self.seconds_per_entry)
            self._paces.append(pace)
            self.seconds_per_entry = median(self._paces)

    @property
    def _may_be_fine(self) -> bool:
        """True for a tree so small that its descent may go over to double precision."""
        return self.layout.n_entries <= MOST_DOUBLE_ENTRIES

    def _new_descent(self) -> Descent:
        guide = self._guided()
        return Descent(
            guide.parameters,
            guide.gradient,
            lambda: guide.guide(self._annealing.temperature),
            farthest=self._farthest,
        )

    def _guided(self) -> SinglePasses | Passes:
        """The passes that guide the descent; made when they are first needed, at the present point."""
        if self._guide is None and self._fine:
            self._guide = self.passes
        elif self._guide is None:
            model, tau = self._problem.model, self._problem.tau
            self._guide = SinglePasses(self.layout, model, self.order, tau, threads=self._threads)
            self._guide.parameters[:] = self.passes.parameters
        return self._guide

    def _claim(self) -> float:
        """The true bound at the present parameters, in double precision; remembered if it is better."""
        value = self.passes.value()
        error = self.passes.error()
        log_upper = certain(value, error)
        if log_upper < self.log_upper:
            self.log_upper, self.log_error = log_upper, error
            self._best[:] = self.passes.parameters
        return value

    def go_on_from(self, parameters: FloatArray) -> None:
        """Go on from a point found earlier, with max variables as cold as they become."""
        self.passes.parameters[:] = np.clip(parameters, -self._farthest, self._farthest)
        self._descent = self._guide = None
        self._claim()
        self._annealing = Annealing(first=LAST_TEMPERATURE)

    def grown(self, factor: float, size: float, seed: int) -> FixedTree | None:
        """A tree of about ``factor`` times the entries that starts where this one stands, with a bound no higher.

        Mini-buckets are merged or extended where the bound is loose. None where nothing is left to do so in so many
        entries and ``size`` bytes. This tree gives its memory back.
        """
        if self.exact or self.log_upper == -np.inf:
            return None
        turns = self._turns if self._born is None else self._turns.gained(self._gain_since(*self._born))
        temperature = self._annealing.temperature
        self._go_to_best()
        for way in turns.next:
            self._guided().guide(temperature if way is Way.MERGING else max(temperature, EXTENDING_TEMPERATURE))
            found = self._grown_parts(way, factor, size, seed)
            if found is not None:
                break
        self.rest()
        if found is None:
            return None
        parts, number = found
        tree = FixedTree(self._problem, self.order, self._scopes, parts, threads=self._threads)
        tree.passes.parameters[:] = carry(
            self.layout, self.parts.edges, self._best, tree.layout, parts.edges, number, self._cardinalities
        )
        tree._claim()
        tree._annealing = Annealing(first=min(REWARMED * temperature, FIRST_TEMPERATURE))
        tree._turns, tree._born = turns.grown(way), (self.layout.n_entries, self.log_upper)
        tree._growths = self._growths + 1
        if tree._growths > 1 or self.cold:
            tree._grown_from = tree._born
        return tree

    def _grown_parts(self, way: Way, factor: float, size: float, seed: int) -> tuple[Partition, IntArray] | None:
        """A larger partition that fits, and the new number of each mini-bucket; None where there is none."""
        n_entries = self.layout.n_entries
        for _ in range(FITTINGS):
            parts, number = grow(
                way, self.parts, self._guided(), self._cardinalities, entries=factor * n_entries, seed=seed
            )
            cost = cost_of(parts, self._scopes, self._cardinalities)
            if cost.entries <= n_entries and len(parts.bucket) == len(self.parts.bucket):
                return None
            if cost.bytes <= size:
                return parts, number
            factor = 0.5 * (1.0 + factor)
        return None

    @property
    def _cardinalities(self) -> IntArray:
        """Of all variables, in the order of elimination."""
        return self._problem.model.cardinalities[self.order]

    def _gain_since(self, n_entries: int, log_upper: float) -> float:
        """What it has gained for each doubling of its entries since it had so many, and this bound."""
        return float((log_upper - self.log_upper) / max(np.log2(self.layout.n_entries / n_entries), LEAST_DOUBLINGS))

    @property
    def gain_of_doubling(self) -> float:
        """What its growth has taken off the bound for each doubling of its entries; infinity where that is not known.

        A tree that is still warm gains by cooling what its growth then seems to.
        """
        if self._grown_from is None:
            return np.inf
        return self._gain_since(*self._grown_from)

    def looseness(self, seed: int) -> FloatArray:
        """How much setting each variable is likely to tighten the bound; this tree gives its memory back."""
        self._go_to_best()
        guide = self._guided()
        guide.guide(self._annealing.temperature)
        loose = np.zeros(len(self.order))
        loose[self.order] = looseness(self.parts, guide, self._cardinalities, seed=seed)
        self.rest()
        return loose

    def again(self) -> FixedTree:
        """The same tree at its best point, to go on with where this one shall stay as it is."""
        tree = FixedTree(self._problem, self.order, self._scopes, self.parts, threads=self._threads)
        tree.go_on_from(self._best)
        tree._annealing = Annealing(first=self._annealing.temperature)
        return tree

    @property
    def cold(self) -> bool:
        """True when max variables have reached their last temperature."""
        return not self.passes.has_max or self._annealing.finished

    def rest(self) -> None:
        """Give back all memory that is not needed to evaluate and decode the best point."""
        self._descent = self._guide = None
        self.passes.release()

    def bound(self) -> float:
        """The bound at the best point, from the problem's own tables."""
        self._go_to_best()
        self.passes.refill()
        return certain(self.passes.value(), self.passes.error())

    def forest(self, problem: Problem) -> Forest:
        """Its mini-buckets as a certificate has them, with shifts and weights of the best point."""
        return bucket_forest(problem, self.order, self.parts, self.layout, *self.point())

    def point(self) -> tuple[FloatArray, FloatArray]:
        """Shifts and weights of the best point, as copies; descent goes on undisturbed."""
        layout = self.layout
        weights = self._problem.tau[self.order][layout.bucket].copy()
        weights[layout.shared_nodes] *= shares_of(self._best[layout.n_shifts :], layout.shared_starts)
        return self._best[: layout.n_shifts].copy(), weights

    def decode(self) -> IntArray:
        """States of max variables, last eliminated first, each the best given those already set."""
        self._go_to_best()
        self.passes.value()
        return decode(self.passes, self._problem, self.order)

    def glance(self) -> IntArray:
        """States of max variables as the latest pass shows them, at its temperature: no pass, and descent goes on."""
        return decode(self.passes, self._problem, self.order)

    def beliefs(self) -> list[FloatArray]:
        """Beliefs of all variables at the best point, in double precision."""
        self._go_to_best()
        # They take as much memory again as the descent.
        self._guide = None
        in_order = self.passes.variable_beliefs()
        place = np.argsort(self.order)
        return [in_order[p] for p in place.tolist()]

    def residuals(self) -> Residuals:
        """Largest mismatch of beliefs and of weighted entropies between mini-buckets of one variable."""
        if self.exact or self.log_upper == -np.inf:
            return Residuals(0.0, 0.0)
        self._go_to_best()
        self._guided().guide(self._annealing.temperature)
        gradient = np.abs(self._guided().gradient)
        n = self.layout.n_shifts
        return Residuals(float(gradient[:n].max(initial=0.0)), float(gradient[n:].max(initial=0.0)))

    def sizes(self) -> dict[str, int | float]:
        """Mini-buckets, table entries and parameters."""
        layout = self.layout
        return {
            "mini_buckets": layout.n_nodes,
            "split_variables": len(layout.shared_starts) - 1,
            "table_entries": layout.n_entries,
            "largest_mini_bucket": int((layout.wiring.states * layout.wiring.columns).max(initial=0)),
            "parameters": layout.n_parameters,
            "temperature": self._annealing.temperature if self.passes.has_max and not self.exact else 0.0,
        }

    def one_pass(self) -> float:
        """Bound at the present temperature and all gradients at the present point, for measurements."""
        return self._guided().guide(self._annealing.temperature)

    def _go_to_best(self) -> None:
        """Bring the best point back; descent, if it goes on, goes on from there."""
        self.passes.parameters[:] = self._best
        self._descent = None
        if self._guide is not None:
            self._guide.parameters[:] = self._best
