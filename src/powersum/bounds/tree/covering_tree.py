"""CoveringTree: weighted mini-bucket bound, shifts and weights optimised jointly, max variables annealed."""

from __future__ import annotations

import math

import numpy as np

from powersum.bounds.tree.building import Builder
from powersum.bounds.tree.draws import DrawSteps, draw, draw_seconds, steps_of
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.growth import many_are_maximised
from powersum.bounds.tree.orders import Orders
from powersum.bounds.tree.phases import OwnTime, Phase, PhaseTurn
from powersum.bounds.tree.race import Outlook, Race, racers_of
from powersum.core import work_time as time
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.speed import TREE_PASS
from powersum.model.result import Residuals
from powersum.prepare.problem import Problem
from powersum.proof.format import Forest

SMALL_ENTRIES = 2e5
"""Entries of the first trees where the size is free: a good bound within a second, before a larger tree is tried."""
ENTRIES_PER_VARIABLE = 40
"""A first tree for very many variables is larger accordingly."""
EXACT_ENTRIES = 3e7
"""Entries of an exact tree that are worth a pass at once, about 0.2 s."""
EXACT_SLOWNESS = 3.0
"""How much longer than in a pass over small tables an entry of an exact tree takes, whose messages are far apart."""
TRIAL_ENTRIES = 1.6e6
"""Entries of trees on trial where time does not say."""
GROWTH, LAST_GROWTH, LEAST_GROWTH = 1.75, 2.5, 1.2
"""How much larger a tree grows at once, at most in the last step, and at least for it to be worth while."""
MOST_GROWTH = 16.0
"""How much larger it may grow at once where no smaller step leads anywhere."""
GROWN_ROUNDS, PASSES = 18, 105.0
"""Rounds of a grown tree before it grows again, and the passes that these take."""
STALLED = 2e-6
"""A cold tree that gains less than this share of its bound in a round makes room for a larger one."""
SCREENING_SHARE, SCREENING_PASSES = 0.15, 100.0
"""Share of the time for a first look at many elimination orders, and the passes over a small tree for each of them."""
MOST_SCREENED = 24
"""Orders that are looked at: of 14, 42 and 110 the race had equally good ones."""
OUTLOOK_SHARE = 0.01
"""Share of the time left for each short search along a tree of the race."""
RACE_SHARE, RACING_BYTES = 0.45, 0.5
"""Share of the time left for the race of the best of these orders, and share of the memory for all who take part."""
ORDERS, FEW_ORDERS = 6, 3
"""Elimination orders tried on smaller trees; orders differ by 1 to 2 nats, and smaller trees tell which are good. Fewer
where many could be screened but time does not end."""
TRIAL_SHARE, TRIAL_ROUNDS, TRIAL_PASSES = 0.05, 20, 100.0
"""Time for each order tried: a share of all, or so many rounds where time does not end; and the passes it shall allow,
from which follows the size of the trees."""
HASTE_OF_SUMS = 4.0
"""Without max variables there is no annealing, and so many times fewer passes are enough."""
FINAL_TRIALS = 3.0
"""How much longer than the others the best of them goes on before a larger tree."""
LEAST_SECONDS, LEAST_SCREENING = 3.0, 1.0
"""With less time than this only the order given is used; the second where orders are screened."""
LARGER_PACE = 0.7
"""What an entry of a tree on trial takes as a share of what one of a small tree does."""
LEAST_PACE = TREE_PASS / 4.0
"""A clock may be too coarse to see a small tree's round."""
MOST_VARIABLES = 20_000
"""With more variables than this an order costs too much to try several, and merges cost too much to plan: a larger
tree is then built afresh."""


def pace_of(tree: FixedTree) -> float:
    """Seconds that a pass of a tree's descent takes for each entry: what it has shown so far, or else a guess."""
    return max(tree.seconds_per_entry, LEAST_PACE) if tree.seconds_per_entry else TREE_PASS


class CoveringTree:
    """Upper bound by mini-buckets of limited size; follows :class:`powersum.bounds.protocol.Tightener`.

    With a fixed ``ibound`` there is one tree. Otherwise small trees are tightened first, for the order given and for
    others; the best orders have larger trees, and the best of these then grows step by step where its bound is loose,
    as far as memory and time allow.

    Parameters
    ----------
    problem
        The simplified problem.
    order
        Elimination order of its variables, max variables last.
    threads
        Independent branches of the tree run side by side; results do not depend on it.
    seed
        Chooses the other orders that are tried.
    ibound
        At most ``ibound + 1`` variables in a mini-bucket; by default as many as memory and time allow.
    memory
        Bytes that it may take; 1 GB unless given.
    orders
        What an earlier tree of the problem has learned of orders.
    rival
        The best tree of an earlier one, at rest: it grows on in place of all others if they are no better.
    outlook
        Says what a search takes off the bound of a tree, where one follows.
    most_entries
        Trees do not grow beyond so many entries: whoever goes on with them makes better use of the time. It may be set
        anew at any time.

    Attributes
    ----------
    most_finalists
        How many trees are left of a race, and grow one after the other as far as they may: whoever goes on with them
        finds out which is best. One, unless it is set.
    log_upper
        The best bound so far.
    exact
        True when every bucket is one mini-bucket: ``log_upper`` is then the value itself.
    orders
        What is known of orders, for a later tree of the problem.
    """

    def __init__(
        self,
        problem: Problem,
        order: IntArray,
        *,
        threads: int = 1,
        seed: int = 0,
        ibound: int | None = None,
        memory: int | None = None,
        orders: Orders | None = None,
        rival: FixedTree | None = None,
        outlook: Outlook | None = None,
        most_entries: float = math.inf,
    ) -> None:
        self._problem = problem
        self._builder = Builder(problem, threads, memory)
        self._seed = seed
        self._order = np.ascontiguousarray(order, dtype=np.int64)
        self._given = self._order
        self._phase = Phase.FIRST if ibound is None else Phase.LAST
        self._small_entries = max(SMALL_ENTRIES, ENTRIES_PER_VARIABLE * len(self._order))
        if ibound is None:
            exact = self._builder.exact(self._order, EXACT_ENTRIES)
            self._tree = exact or self._builder.within(self._order, self._small_entries)
        else:
            self._tree = self._builder.by_ibound(self._order, ibound)
        self._best = self._tree
        # Weights other than 0 and 1 do not commute: there the order is part of the question.
        commute = bool(np.isin(problem.tau, (0.0, 1.0)).all())
        self.orders = orders or Orders(problem, seed)
        self._orders_left = 0
        if commute and len(self._order) <= MOST_VARIABLES:
            self._orders_left = FEW_ORDERS if self.orders.screened else ORDERS
        self._time = OwnTime()
        """Others have turns between two steps: each order has its share of the time whatever they take."""
        self._screening_ends = self._turn_began = -math.inf
        self._race, self._entrants = Race(), list[IntArray]()
        self._extends = many_are_maximised(problem.tau)
        """Trees that are extended on their way begin the race as small as they were judged, others as large as pays."""
        self._screened: list[FixedTree] = []
        """Small trees that orders were judged by, at rest."""
        self._winner: FixedTree | None = None
        self._screened_at: float | None = None
        """The bound of the best of the small trees that orders were judged by."""
        self._rival, self._outlook, self.most_entries = rival, outlook, most_entries
        self.most_finalists = 1
        self._finalists: list[FixedTree] = []
        """Those that are left of the race and wait to grow."""
        self._grown: list[FixedTree] = []
        """Those that have grown as far as they may."""
        self._full = False
        """True once the tree is as large as it may become, and has had its turn."""
        self._borrowed = rival
        """Whoever has made the rival may still prove a bound by it: it is not moved."""
        self._steps: DrawSteps | None = None
        """How assignments are drawn along the order of the best tree."""
        self._haste = HASTE_OF_SUMS if (problem.tau > 0.0).all() else 1.0
        self._turn = PhaseTurn()
        self._trial_seconds: float | None = None
        """Seconds for each order tried; None before the trial has begun, infinity where rounds alone count."""
        self._trial_entries = TRIAL_ENTRIES
        self.log_upper, self.log_error = self._tree.log_upper, self._tree.log_error
        self.exact = self._tree.exact

    @classmethod
    def going_on(
        cls, start: FixedTree, problem: Problem, *, threads: int, seed: int, ibound: int | None, memory: int
    ) -> CoveringTree:
        """One that goes on with a tree of an earlier run; it grows from there unless ``ibound`` limits trees."""
        tree = cls(problem, start.order, threads=threads, seed=seed, ibound=0)
        tree._builder, tree._orders_left = Builder(problem, threads, memory), 0
        tree._phase = Phase.BEST_ORDER if ibound is None else Phase.LAST
        tree._tree = tree._best = start
        tree.log_upper, tree.log_error, tree.exact = start.log_upper, start.log_error, start.exact
        return tree

    def step(self, deadline: float) -> bool:
        """A few iterations of joint descent, or another tree; False when nothing is left to gain, or no time for it."""
        with self._time:
            return self._step(deadline)

    def _step(self, deadline: float) -> bool:
        tree = self._tree
        if self.exact or tree.log_upper == -np.inf:
            return False
        if self._phase is not Phase.LAST and self._makes_room(deadline):
            if deadline > time.monotonic():
                self._next_tree(deadline)
            tree = self._tree
        elif tree.done or self._full:
            return False
        else:
            limit = min(deadline, time.monotonic() + self._turn.ends - self._time.now)
            if tree is self._borrowed:
                tree = self._tree = tree.again()
            if not tree.step(limit):
                if limit == deadline:
                    return False
                self._turn.ends = self._time.now
            self._turn.rounds_left -= 1
            if self._time.now < self._screening_ends and self._phase in (Phase.FIRST, Phase.SCREENING):
                self._plan_screening()
        if tree.log_upper < self.log_upper or tree.exact:
            self.log_upper = min(tree.log_upper, self.log_upper)
            self._best, self.exact, self.log_error = tree, tree.exact, tree.log_error
        return not self.exact

    @property
    def growing(self) -> FixedTree | None:
        """The tree that is left of all that were tried, and grows; None as long as there are several."""
        return self._tree if self._phase in (Phase.GROWTH, Phase.LAST) else None

    def useful_entries(self, worth: float) -> float | None:
        """Entries up to which growing is likely to pay: a tree twice as large has a bound lower by what it is worth.

        Judged by how far the bound has fallen from the small trees that orders were judged by to the tree that grows;
        None where there were none. What a doubling takes off the bound of a pedigree falls as the root of the entries
        grows (dev/solve.md). One step of growth would tell the same, but is more than half of it chance.
        """
        if self.growing is None or self._screened_at is None:
            return None
        few, many = self._small_entries, max(self._tree.layout.n_entries, 1.1 * self._small_entries)
        gain = max(self._screened_at - self._tree.log_upper, 0.0) * math.log(2.0) / 2.0 / (math.sqrt(many / few) - 1.0)
        return float(many * (gain / worth) ** 2)

    def grow_on(self) -> None:
        """Grow again where ``most_entries`` had ended it and is larger now."""
        if self._full and self._most_growth(self._tree) >= LEAST_GROWTH:
            self._full, self._phase, self._turn = False, Phase.GROWTH, PhaseTurn(rounds_left=0)

    def _makes_room(self, deadline: float) -> bool:
        """True when the present tree should make room for another one."""
        tree = self._tree
        if self._phase is Phase.FIRST and self._orders_left > 0 and self._trial_seconds is None:
            self._plan_trial(deadline)
        if tree.done or (tree.cold and tree.last_gain < STALLED):
            return True
        return self._turn.is_over(self._time.now)

    def _plan_trial(self, deadline: float) -> None:
        """Share out the time for trying orders, the one given first; where time does not end none are screened."""
        left = deadline - time.monotonic()
        screened = left < math.inf and self.orders.screened
        if left < (LEAST_SCREENING if screened else LEAST_SECONDS):
            self._orders_left = 0
            if screened:
                self._begin_screening()
            return
        self._trial_seconds = TRIAL_SHARE * left
        self._turn = self._trial_turn()
        if screened:
            self._screening_ends = self._time.now + SCREENING_SHARE * left
            self._begin_screening()

    def _begin_screening(self) -> None:
        """Begin the turn of a small tree that an order is judged by."""
        self._turn_began = self._time.now
        self._plan_screening()

    def _plan_screening(self) -> None:
        """Let its turn end after equally many passes for all orders, by the pace that the tree itself shows."""
        seconds = SCREENING_PASSES / self._haste * pace_of(self._tree) * self._tree.layout.n_entries
        self._turn = PhaseTurn(self._turn_began + seconds)

    def _trial_turn(self, times: float = 1.0) -> PhaseTurn:
        """The turn of a tree on trial, beginning now."""
        seconds = math.inf if self._trial_seconds is None else self._trial_seconds
        return PhaseTurn(self._time.now + times * seconds, int(TRIAL_ROUNDS / self._haste))

    def _next_tree(self, deadline: float) -> None:
        """A tree with another order or, when all were tried, a larger one with the best."""
        tree = self._tree
        if self._phase in (Phase.FIRST, Phase.SCREENING) and self._orders_left > 0:
            screened = self._screening_ends > -math.inf
            self.orders.judge(self._order, tree.log_upper)
            if self._time.now < self._screening_ends and self.orders.n_judged < MOST_SCREENED:
                self._screen(self.orders.draw())
                return
            if screened:
                self._plan_race(deadline - time.monotonic())
                self._go_on_racing()
                return
        if self._phase is Phase.RACE:
            self._race.arrive(tree)
            self._go_on_racing()
            return
        if self._phase is Phase.ORDERS and (self._winner is None or tree.log_upper < self._winner.log_upper):
            self._winner = tree
        if self._orders_left > 0:
            self._try_order()
        elif self._winner is not None:
            self._go_on_with_winner(self._winner)
        else:
            self._yield_to_rival()
            grows = self._grow(deadline) or self._go_on_with_finalist()
            self._phase = Phase.GROWTH if grows else Phase.LAST

    def _screen(self, order: IntArray) -> None:
        """Go on with a small tree for another order."""
        pace = self._tree.seconds_per_entry
        self._keep_screened(self._tree)
        self._phase, self._order = Phase.SCREENING, order
        self._tree = self._builder.within(order, self._small_entries)
        self._tree.seconds_per_entry = pace
        self._begin_screening()

    def _plan_race(self, left: float) -> None:
        """Choose how many of the best orders take part, and with trees of which size, for time and memory."""
        tree, known, self._screened_at = self._tree, self.orders.ranked(), self.orders.log_upper
        n, self._trial_entries = racers_of(
            len(known),
            GROWTH,
            small=self._small_entries,
            time=RACE_SHARE * left / (PASSES * LARGER_PACE * pace_of(tree)),
            room=RACING_BYTES * self._builder.size * tree.layout.n_entries / tree.n_bytes,
            # The last of those that are made for it have grown twice.
            largest=0.0 if self._extends else self.most_entries / GROWTH**2,
        )
        self._orders_left, self._entrants, self._phase = 0, known[:n], Phase.RACE
        self._race = Race(self._outlook, OUTLOOK_SHARE * left)
        self._keep_screened(tree)
        if self._rival is not None:
            self._race.arrive(self._rival)
            self._rival = None

    def _keep_screened(self, tree: FixedTree) -> None:
        """Keep a small tree for the race that may follow, where it is to grow and not to be made anew."""
        tree.rest()
        if self._extends:
            self._screened.append(tree)

    def _go_on_racing(self) -> None:
        """The next tree is made or grows, or the one that is left goes on alone."""
        self._turn = PhaseTurn(rounds_left=GROWN_ROUNDS)
        while self._entrants:
            self._order = self._entrants.pop(0)
            known = [tree for tree in self._screened if tree.order is self._order]
            if not known:
                self._tree = self._builder.within(self._order, self._trial_entries)
                return
            self._race.arrive(known[0])
        self._screened = []
        while (tree := self._race.next(self.most_finalists)) is not None:
            factor = min(GROWTH, self._most_growth(tree))
            larger = tree.grown(factor, self._builder.size, self._seed) if factor >= LEAST_GROWTH else None
            if larger is not None:
                self._tree, self._order = larger, larger.order
                return
            self._race.arrive(tree)
        self._tree, *self._finalists = self._race.left
        self._race, self._order, self._phase = Race(), self._tree.order, Phase.GROWTH
        self._turn = PhaseTurn(rounds_left=0)

    def _go_on_with_finalist(self) -> bool:
        """Let the next of those that the race has left grow, if it may; else go on with the best of all."""
        if self._full and self._finalists and len(self._grown) + 1 < self.most_finalists and self._has_room():
            self._tree.rest()
            self._grown.append(self._tree)
            self._tree, self._full = self._finalists.pop(0), False
            self._order, self._turn = self._tree.order, PhaseTurn(rounds_left=0)
            return True
        self._finalists = []
        best = min([*self._grown, self._tree], key=lambda tree: tree.log_upper)
        if best is not self._tree:
            self._tree.rest()
            self._grown = [tree for tree in self._grown if tree is not best] + [self._tree]
            self._tree, self._order = best, best.order
        return False

    def _has_room(self) -> bool:
        """Whether another tree that grows like the present one fits the memory beside all that have grown."""
        return (len(self._grown) + 2) * self._tree.n_bytes <= self._builder.size

    def _most_growth(self, tree: FixedTree) -> float:
        """How many times its entries a tree may have."""
        return self.most_entries / max(tree.layout.n_entries, 1)

    def _try_order(self) -> None:
        """Go on with a tree on trial: for the best orders so far, or for others."""
        tree = self._tree
        if self._phase is not Phase.ORDERS and self._trial_seconds is not None and self._trial_seconds < math.inf:
            # Once for all of them: trees of unequal sizes tell nothing about their orders.
            seconds_per_entry = TRIAL_PASSES / self._haste * LARGER_PACE * pace_of(tree)
            self._trial_entries = self._trial_seconds / seconds_per_entry
        tree.rest()
        self._order = self.orders.best()
        self._orders_left -= 1
        self._phase = Phase.ORDERS
        self._tree = self._builder.within(self._order, self._trial_entries)
        self._turn = self._trial_turn()

    def _yield_to_rival(self) -> None:
        """Let the tree of an earlier stage grow in place of the present one, where that is no better."""
        rival, self._rival = self._rival, None
        if rival is not None and rival.log_upper <= self._tree.log_upper:
            self._tree.rest()
            self._tree, self._order = rival, rival.order

    def _go_on_with_winner(self, winner: FixedTree) -> None:
        """The best of the trial goes on for a while before a larger tree with its order has to do better."""
        if self._tree is not winner:
            self._tree.rest()
        self._tree, self._order = winner, winner.order
        self._winner = None
        self._phase = Phase.BEST_ORDER
        self._turn = self._trial_turn(FINAL_TRIALS)

    @property
    def best_tree(self) -> FixedTree:
        """The tree that has the best bound. Its order need not be the one given."""
        return self._best

    @property
    def finalists(self) -> list[FixedTree]:
        """The best tree, and others that have grown like it and are perhaps better to go on with."""
        grown = [*self._grown, self._tree] if self._grown else []
        return [self._best, *(tree for tree in grown if tree is not self._best)]

    def bound(self) -> float:
        """The bound at the best point, from the problem's own tables."""
        return self._best.bound()

    def certified(self) -> tuple[Forest, float]:
        """See :class:`powersum.bounds.protocol.Provable`."""
        return self._best.forest(self._problem), self._best.bound()

    def decode(self) -> IntArray:
        """States of max variables, last eliminated first, each the best given those already set."""
        return self._best.decode()

    def glance(self) -> IntArray:
        """States of max variables as the tree at work shows them now; nothing is computed for it or disturbed."""
        return self._tree.glance()

    @property
    def draw_seconds(self) -> float:
        """About what :meth:`draw` takes."""
        return draw_seconds(self._best.passes, self._problem, self._best.order)

    def draw(self, noise: float, seed: int) -> IntArray:
        """States of max variables near the best that the best tree promises, with noise of this scale each time others.

        Like :meth:`glance` it computes and disturbs nothing.
        """
        best = self._best
        if len(best.order) > MOST_VARIABLES:
            return best.glance()
        if self._steps is None or self._steps.order is not best.order:
            self._steps = steps_of(self._problem, best.order)
        drawn = draw(best.passes, self._problem, self._steps, noise=noise, seed=seed)
        return best.glance() if drawn is None else drawn

    def beliefs(self) -> list[FloatArray]:
        """Beliefs of all variables: their marginals where ``exact`` holds and everything is summed."""
        return self._best.beliefs()

    def residuals(self) -> Residuals | None:
        """Largest mismatch of beliefs and of weighted entropies between mini-buckets of one variable."""
        return self._best.residuals()

    def sizes(self) -> dict[str, int | float]:
        """Mini-buckets, table entries and parameters of the best tree."""
        return self._best.sizes()

    def one_pass(self) -> float:
        """Bound at the present temperature and all gradients at the present point, for measurements."""
        return self._best.one_pass()

    def _grow(self, deadline: float) -> bool:
        """Go on with a larger tree, as far as memory and the time left allow; False where it would gain nothing."""
        tree, left = self._tree, deadline - time.monotonic()
        self._orders_left, self._turn = 0, PhaseTurn()
        # The order given is mostly the narrowest, for many were tried for it.
        affordable = 0.5 * left / (EXACT_SLOWNESS * pace_of(tree))
        exact = self._builder.exact(self._order, affordable) or self._builder.exact(self._given, affordable)
        if exact is not None:
            tree.rest()
            self._tree = exact
            return True
        most_growth = self._most_growth(tree)
        if most_growth < LEAST_GROWTH:
            self._full = True
            return False
        factor, times = GROWTH, math.inf
        if deadline < np.inf:
            # How many times its entries the time is enough for.
            times = self._haste * left / (PASSES * pace_of(tree) * max(tree.layout.n_entries, 1))
            if times < LEAST_GROWTH:
                return False
            if times < GROWTH + GROWTH**2:
                # Two steps that take all the time, f + f², or the last one.
                twice = 0.5 * (math.sqrt(1.0 + 4.0 * times) - 1.0)
                factor = twice if twice >= LEAST_GROWTH else min(times, LAST_GROWTH)
        larger: FixedTree | None
        factor = min(factor, most_growth)
        if len(self._order) <= MOST_VARIABLES:
            most = min(times, MOST_GROWTH, self._builder.size / tree.n_bytes, most_growth)
            larger = tree.grown(factor, self._builder.size, self._seed)
            while larger is None and factor * GROWTH <= most:
                # Every merge that is left takes more entries than that.
                factor *= GROWTH
                larger = tree.grown(factor, self._builder.size, self._seed)
        else:
            tree.rest()
            larger = self._builder.within(self._order, factor * GROWTH * tree.layout.n_entries)
            if larger.layout.n_entries < GROWTH * tree.layout.n_entries:
                larger = None
        if larger is None:
            return False
        self._tree = larger
        self._turn = PhaseTurn(rounds_left=int(GROWN_ROUNDS / self._haste))
        return True
