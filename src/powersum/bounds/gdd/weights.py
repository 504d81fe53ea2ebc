"""First weights of the decomposed bound."""

from __future__ import annotations

import numpy as np

from powersum.bounds.gdd.regions import Regions
from powersum.core.arrays import FloatArray

STARTS = ("share", "wmb", "uniform")
SHARE = 0.01
"""The part of τ that the ``share`` start gives to every region: a weight of 0 could never grow (eq. 12)."""


def start_weights(regions: Regions, tau: FloatArray, start: str) -> FloatArray:
    """First weights of all axes of all regions; those of one variable add up to its τ."""
    variable = regions.axis_variable
    n_regions = len(regions.table_start) - 1
    owner = np.repeat(np.arange(n_regions), np.diff(regions.axis_start))
    count = np.bincount(variable, minlength=len(tau))
    if start == "uniform":
        return np.asarray((tau / np.maximum(count, 1))[variable])
    is_cluster = owner < regions.n_clusters
    is_first, is_last = np.zeros((2, len(variable)), dtype=bool)
    is_first[regions.axis_start[:-1]] = True
    is_last[regions.axis_start[1:] - 1] = True
    if np.array_equal(np.unique(variable[is_cluster & is_first]), np.unique(variable)):
        # Clusters are mini-buckets: every variable has some that eliminate it, and they share its weight.
        heavy = is_cluster & is_first
    else:
        # In a parent clique of i somebody is eliminated after i; axes are in elimination order, so that all but a
        # region's last axis have one.
        heavy = is_cluster & ~is_last
    n_heavy = np.bincount(variable[heavy], minlength=len(tau))
    # Eliminated last in all of its cliques: mini-bucket would sum it alone, which is the separator's part here.
    single = np.diff(regions.axis_start) == 1
    single[: regions.n_clusters] = False
    heavy |= (n_heavy == 0)[variable] & single[owner]
    n_heavy = np.bincount(variable[heavy], minlength=len(tau))
    heavy |= (n_heavy == 0)[variable]
    n_heavy = np.bincount(variable[heavy], minlength=len(tau))
    # Shares are computed for each variable and handed out: there are several times as many axes.
    weights = np.where(heavy, (tau / np.maximum(n_heavy, 1))[variable], 0.0)
    if start == "wmb":
        return weights
    small = np.minimum(SHARE, 1.0 / np.maximum(count, 1))
    weights *= (1.0 - small * count)[variable]
    weights += (small * tau)[variable]
    return weights
