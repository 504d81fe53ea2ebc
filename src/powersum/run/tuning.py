"""How ``solve`` shares out time: every number that was chosen by trial, in one record that tests can replace."""

from __future__ import annotations

import math
from dataclasses import dataclass

from powersum.core.errors import InputError
from powersum.core.speed import SLOW_ELIMINATION, SLOW_EVALUATION
from powersum.model.keys import as_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The policy of a run. The defaults are what the benchmarks were tuned with.

    All values are seconds, shares, gaps (natural logs) or table entries; none of them can make a bound wrong.
    """

    slice: float = 0.2
    """Seconds of a turn: of work between two looks at the outside."""

    first_slice: float = 0.25
    """Turns of the first stage are shorter: this share of the usual."""

    # Exact elimination

    elimination_cost: float = SLOW_ELIMINATION
    """Seconds for an entry of a bucket table at worst, for judging beforehand whether elimination is affordable."""

    quick: float = 0.5
    """Seconds that exact elimination may take without anything else being tried first."""

    late_elimination: float = 0.7
    """After the first stage it is done if it takes at most this share of the time left."""

    # Orders

    order_search_from: float = 30.0
    """Seconds of a run from which on narrower orders are looked for all the while."""

    first_orders: float = 1.0
    first_orders_share: float = 0.02
    """Seconds for that at the beginning, and share of the time that they take at most."""

    order_share: float = 0.15
    """Time for it after each stage, as a share of the time for tightening."""

    # Stages

    first_stage: float = 0.6
    """Seconds for tightening in the first stage."""

    stage_growth: float = 4.0
    """How many times as long as the one before each further stage is."""

    last_stage: float = 0.15
    """A stage that would take more than this share of the time left is the last, and takes all of it."""

    last_tightening: float = 0.75
    """Share of the last stage that goes into tightening, where no other worker says how much it could use."""

    least_last_tightening: float = 0.5
    """The same at the least, where one does."""

    split_stage: float = 0.02
    split_tightening: float = 0.5
    """In place of ``last_stage`` and ``last_tightening`` where boxes of the last tree are likely to be split: these
    have no use for trees before it, and a tree that has grown as far as it pays ends its time itself."""

    # Tightening

    look_first: bool = True
    """False does without the quick bound that is there before compiled code is loaded."""

    tighten: bool = True
    """False leaves the first bound of each tree as it is."""

    ibound: int | None = None
    """At most one more variable than this in a mini-bucket; by default trees are as large as memory and time allow."""

    # Branch and bound

    nearly: float = 0.3
    """A gap that search is likely to close: the first stage then ends before its time."""

    hopeful: float = 1.0
    """A gap below which search has the first, otherwise the second of the shares that follow."""

    hopeful_search: float = 0.5
    hopeless_search: float = 0.2
    """Time for search after an earlier stage, as a share of the time for tightening."""

    search_trial: float = 0.15
    """Share of its time after which branch and bound must have shown that it will get through; else boxes are split."""

    most_variables: int = 10_000
    """With more variables than this left, neither branch and bound nor partial sums would get anywhere."""

    # Full configurations

    first_full: float = 1.0
    first_full_share: float = 0.1
    """Seconds of search for the best configuration of all variables, and share of the time that they take at most:
    before anything else where everything is maximised, after a first assignment where some are summed."""

    early_full: float = 0.2
    early_full_share: float = 0.01
    early_full_from: float = 0.03
    """Where few variables are summed or none: seconds for it before a good order is looked for, the share of the time
    that they take at most, and the seconds that exact elimination along a greedy order must take for that."""

    full_share: float = 0.2
    """Time for it after an earlier stage, as a share of the time for tightening."""

    # Local search

    completion: float = 1.0
    """Seconds of a turn that looks for a first assignment which zeros allow."""

    companion_share: float = 1.0
    """Share of the usual turns for local search beside other work; with 0 it has none but the first."""

    active_share: float = 0.6
    idle_share: float = 0.25
    """Share of the usual turn for a local search that finds something now and then, and that has not for long."""

    wide_share: float = 1.6
    """How many times that it has where sums stay in one piece: there time finds more than what bounds would like. The
    same where it sweeps over most of the variables, or tables are strong, if it has found something of late."""

    hopeless_gap: float = 1.0
    """A gap larger than this share of the value will not be closed."""

    hopeless_share: float = 2.0
    """Local search then has so many times the usual turn."""

    # Sums that are too wide

    evaluation_cost: float = SLOW_EVALUATION
    """Seconds for an entry of the sum that an assignment leaves, at worst; with infinity every sum is too wide."""

    longest_evaluation: float = 0.6
    """Seconds that the sum may take once fewer variables are held: nothing looks outside before it is done."""

    held_table: float = 2.0**18
    """Largest table of the sum that is left when a cutset is held, at first."""

    first_sum: float = 0.2
    """Seconds for a first partial sum, by bounds that are hardly tightened."""

    sum_share: float = 0.5
    """Time for partial sums after an earlier stage, as a share of the time for tightening."""

    first_variational: float = 0.3
    """Seconds for a first variational sum."""

    variational_share: float = 0.3
    """Time for variational sums after each stage, as a share of the time for tightening."""

    conditioning_share: float = 0.4
    """Time for conditioning after each stage, as a share of the time for tightening; it gives up where it is too far
    from its end."""

    first_conditioning: float = 0.3
    """Seconds for it at the very beginning."""

    early_conditioning: float = 1.5
    early_conditioning_share: float = 0.1
    """Seconds for it before anything else where everything is summed, and share of the time that they take at most."""

    hopeful_conditioning: float = 0.3
    """Then it goes on, as long as it is likely to be through in this share of the time left."""

    circuits_share: float = 1.0
    """Time for the search by circuits after each stage, as a share of the time for tightening; none at all with 0."""

    early_circuits: float = 1.5
    early_circuits_share: float = 0.1
    """Seconds for it before anything else where some variables are maximised, at most, and share of the time."""

    first_share: float = 1e-3
    """Least share of the sum for a context to be kept in the very first pass."""

    # The end

    grace: float = 1.0
    grace_share: float = 0.05
    """Seconds, and share of the time limit, by which a first bound may be late before a run ends without any."""

    most_bytes: float = math.inf
    """Bytes to work with, where the budget for the process leaves more."""


DEFAULT_SCHEDULE = Schedule()


def schedule_of(schedule: object) -> Schedule:
    """The schedule that a caller gave; the default for None."""
    if schedule is None:
        return DEFAULT_SCHEDULE
    if not isinstance(schedule, Schedule):
        raise InputError(f"schedule is {as_text(schedule)}: give a powersum.run.tuning.Schedule")
    return schedule
