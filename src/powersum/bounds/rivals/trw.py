"""Tree-reweighted message passing (Wainwright et al. 2005) and its marginal MAP form (Liu & Ihler 2013).

The free energy of the beliefs approaches an upper bound as the messages converge. Before that it is nothing of the
kind, and may lie below the truth: the method is here to show just that, and is never offered as a bound.
"""

from __future__ import annotations

import math

import numpy as np

from powersum.bounds.rivals.spanning import heaviest_tree, tree_shares
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.errors import InputError
from powersum.model.result import Residuals
from powersum.prepare.problem import Problem

CONVERGED = 1e-6
"""Largest change of a log message in a sweep, after which edge probabilities are optimised."""

TIE = 1e-9
"""Scores this near to the best are best, too."""


class TRW:
    """Free energy of tree-reweighted beliefs on a pairwise model; follows ``Tightener`` but promises nothing.

    Messages are those of mixed-product belief propagation: sums from sum variables, maxima between max variables, and
    from a max to a sum variable a sum over the best states. Entropies count with edge appearance probabilities ρ: those
    of a uniform random spanning tree, where all max variables together are one vertex; at convergence ρ moves towards
    the tree of largest mutual information (conditional gradient).

    Parameters
    ----------
    problem, order
        The simplified problem, whose factors must have at most two variables and no zeros; the order is not used.
    threads, seed
        Accepted because every method accepts them.
    damping
        Share of a new message that replaces the old one, between 0 and 1.
    optimise
        Whether to optimise ρ at convergence.

    Attributes
    ----------
    guaranteed
        False: ``last_value`` is not a bound.
    log_upper
        Infinity, always.
    last_value
        The free energy at the present beliefs.
    converged
        True when the messages of the last sweep stood still: for a sum, ``last_value`` is then an upper bound.
    """

    guaranteed = False
    exact = False

    def __init__(
        self,
        problem: Problem,
        order: IntArray,
        *,
        threads: int = 1,
        seed: int = 0,
        damping: float = 1.0,
        optimise: bool = True,
    ) -> None:
        del order, threads, seed
        if not 0.0 < damping <= 1.0:
            raise InputError(f"damping is {damping}: it must be above 0 and at most 1")
        model = problem.model
        if int(np.diff(model.scope_starts).max(initial=0)) > 2:
            raise InputError("trw is for pairwise models: a factor has more than two variables")
        if np.isneginf(model.log_values).any():
            raise InputError("trw is for models without zeros")
        if not np.isin(problem.tau, (0.0, 1.0)).all():
            raise InputError("trw is for weights 0 and 1")
        self._problem = problem
        self._damping, self._optimise = damping, optimise
        self._is_max = problem.tau == 0.0
        self._theta = [np.zeros(c) for c in model.cardinalities.tolist()]
        self._edges: list[tuple[int, int]] = []
        self._tables: list[FloatArray] = []
        self._constant = 0.0
        for scope, table in model.factors():
            if len(scope) == 2:
                self._edges.append((scope[0], scope[1]))
                self._tables.append(np.array(table))
            elif len(scope) == 1:
                self._theta[scope[0]] = self._theta[scope[0]] + table
            else:
                self._constant += float(table)
        ends = np.array(self._edges, dtype=np.int64).reshape(-1, 2)
        # Entropies of max variables do not count: for the trees of the sum variables they are all one vertex.
        self._merged = np.where(self._is_max, -1, np.arange(model.n_variables))[ends]
        self._both_max = self._is_max[ends].all(axis=1)
        self._rho: FloatArray = np.ones(len(ends))
        self._rho[~self._both_max] = tree_shares(self._merged[~self._both_max])
        self._rho[self._both_max] = tree_shares(ends[self._both_max])
        # Of each edge the messages to its first and to its second variable.
        self._messages = [[np.zeros(len(self._theta[i])), np.zeros(len(self._theta[j]))] for i, j in self._edges]
        self._scores = [theta.copy() for theta in self._theta]
        self._updates = 0
        self.converged = False
        self.log_upper, self.log_error = math.inf, math.inf
        self.last_value = self._free_energy()

    def step(self, deadline: float) -> bool:
        """Every message once, all from the messages before; at convergence a step of the edge probabilities."""
        del deadline
        ends = [(e, side) for e in range(len(self._edges)) for side in (0, 1)]
        fresh = [self._fresh(e, side) for e, side in ends]
        change = 0.0
        for (e, side), message in zip(ends, fresh, strict=True):
            old = self._messages[e][side]
            move = self._damping * (message - old)
            self._messages[e][side] = old + move
            receiver = self._edges[e][side]
            self._scores[receiver] = self._scores[receiver] + move
            change = max(change, float(np.abs(message - old).max()))
        self.last_value = self._free_energy()
        self.converged = change < CONVERGED
        if not self.converged:
            return True
        return self._optimise and self._move_rho()

    def bound(self) -> float:
        """Infinity: there is no guaranteed bound here."""
        return math.inf

    def decode(self) -> IntArray:
        """The best state of each max variable by its belief."""
        states = [int(np.argmax(score)) if m else -1 for score, m in zip(self._scores, self._is_max, strict=True)]
        return np.array(states, dtype=np.int64)

    def residuals(self) -> Residuals | None:
        """Largest difference between a variable's belief and its marginals in the beliefs of edges."""
        worst = 0.0
        for e, ends in enumerate(self._edges):
            pair = self._pair_belief(e)
            for side in (0, 1):
                worst = max(worst, float(np.abs(pair.sum(axis=1 - side) - self._belief(ends[side])).max()))
        return Residuals(worst, 0.0)

    def sizes(self) -> dict[str, int | float]:
        """Edges and message entries."""
        return {"edges": len(self._edges), "shifts": sum(len(m) for both in self._messages for m in both)}

    def _fresh(self, e: int, side: int) -> FloatArray:
        """The message to one end of an edge that the present ones ask for, largest entry 0."""
        sender, receiver = self._edges[e][1 - side], self._edges[e][side]
        table = self._tables[e] if side == 1 else self._tables[e].T
        back, rho, score = self._messages[e][1 - side], self._rho[e], self._scores[sender]
        inner = table - back[:, None]
        if not self._is_max[sender]:
            fresh = rho * _log_sum(score[:, None] + inner / rho)
        elif self._is_max[receiver]:
            fresh = np.max(rho * score[:, None] + inner, axis=0)
        else:
            fresh = rho * _log_sum(inner[score >= score.max() - TIE] / rho)
        return np.asarray(fresh - fresh.max())

    def _belief(self, i: int) -> FloatArray:
        score = self._scores[i] - self._scores[i].max()
        weights = (score >= -TIE).astype(np.float64) if self._is_max[i] else np.exp(score)
        return np.asarray(weights / weights.sum())

    def _pair_belief(self, e: int) -> FloatArray:
        (i, j), rho = self._edges[e], self._rho[e]
        inner = self._tables[e] - self._messages[e][0][:, None] - self._messages[e][1][None, :]
        if self._both_max[e]:
            total = rho * (self._scores[i][:, None] + self._scores[j][None, :]) + inner
            weights = (total >= total.max() - TIE).astype(np.float64)
            return np.asarray(weights / weights.sum())
        total = inner / rho
        for axis, v in enumerate((i, j)):
            score = self._scores[v]
            own = np.where(score >= score.max() - TIE, 0.0, -np.inf) if self._is_max[v] else score
            total = total + (own[:, None] if axis == 0 else own[None, :])
        weights = np.exp(total - total.max())
        return np.asarray(weights / weights.sum())

    def _free_energy(self) -> float:
        """Expected log value plus tree-reweighted entropy of the present beliefs."""
        beliefs = [self._belief(i) for i in range(len(self._theta))]
        entropies = [_entropy(b) for b in beliefs]
        value = self._constant
        for i, belief in enumerate(beliefs):
            value += float(belief @ self._theta[i]) + (0.0 if self._is_max[i] else entropies[i])
        self._information = np.zeros(len(self._edges))
        for e, (i, j) in enumerate(self._edges):
            pair = self._pair_belief(e)
            value += float((pair * self._tables[e]).sum())
            if not self._both_max[e]:
                self._information[e] = entropies[i] + entropies[j] - _entropy(pair)
                value -= float(self._rho[e] * self._information[e])
        return value

    def _move_rho(self) -> bool:
        """Towards the spanning tree of largest mutual information, by the steps of the conditional gradient."""
        counted = ~self._both_max
        tree = heaviest_tree(self._merged[counted], self._information[counted])
        gain = float(((tree - self._rho[counted]) * self._information[counted]).sum())
        if gain < CONVERGED:
            return False
        self._updates += 1
        step = 2.0 / (self._updates + 8.0)
        self._rho[counted] = (1.0 - step) * self._rho[counted] + step * tree
        return True


def _log_sum(table: FloatArray) -> FloatArray:
    top = table.max(axis=0)
    return np.asarray(top + np.log(np.exp(table - top).sum(axis=0)))


def _entropy(belief: FloatArray) -> float:
    positive = belief[belief > 0.0]
    return float(-(positive * np.log(positive)).sum())
