"""Join graphs for the junction-graph bound: mini-buckets as clusters, what neighbours share as separators."""

from __future__ import annotations

import numpy as np

from powersum.bounds.buckets.partition import limits_of, partition_by_ibound
from powersum.bounds.buckets.scopes import scopes_in_order
from powersum.bounds.buckets.wiring import intersections
from powersum.bounds.gdd.regions import JunctionGraph, junction_graph
from powersum.core.arrays import IntArray, starts_of
from powersum.prepare.problem import Problem


def join_graph(problem: Problem, order: IntArray, ibound: int) -> JunctionGraph:
    """Clusters of at most ``ibound + 1`` variables, from the partition that the covering tree uses (supplement D).

    Separators are the scopes of the messages between mini-buckets, and the variables that the mini-buckets of one
    bucket share. The covering tree is this bound with the shifts along messages already at their best.
    """
    parts = partition_by_ibound(scopes_in_order(problem.model, order), limits_of(ibound))
    senders = np.flatnonzero(parts.parent >= 0)
    # A message's scope is its mini-bucket's without the variable eliminated there, which comes first.
    lengths = np.diff(parts.starts)[senders] - 1
    message_variables = np.concatenate(
        [parts.positions[parts.starts[n] + 1 : parts.starts[n + 1]] for n in senders.tolist()] or [senders]
    )
    shared_starts, shared = intersections(parts.edges, parts.starts, parts.positions)
    separator_starts = starts_of(np.concatenate([lengths, np.diff(shared_starts)]))
    n_messages = len(senders)
    first_ends = np.concatenate([senders, parts.edges[:, 0]])
    second_ends = np.concatenate([parts.parent[senders], parts.edges[:, 1]])
    separators = np.arange(n_messages + len(parts.edges))
    return junction_graph(
        problem,
        order,
        cluster_starts=parts.starts,
        cluster_variables=order[parts.positions],
        factor_cluster=parts.factor_home,
        separator_starts=separator_starts,
        separator_variables=order[np.concatenate([message_variables, shared]).astype(np.int64)],
        edge_separator=np.concatenate([separators, separators]),
        edge_cluster=np.concatenate([first_ends, second_ends]),
    )
