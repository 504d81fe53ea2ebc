"""Certificates of distributions: a proof of the sum with each state of a variable set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from powersum.api.distribution import Marginals
from powersum.core.clock import working_time
from powersum.core.errors import InputError
from powersum.core.interrupt import Interrupt
from powersum.core.machine import budget_of
from powersum.model.keys import listed
from powersum.model.limits import Limits
from powersum.model.question import Question
from powersum.run.distributions import shares_of_parts
from powersum.run.solver import Run

LEAST_SECONDS = 0.2
"""The proof of a sum has at least so long."""


def provable(question: Question, of: Iterable[Any] | None) -> list[int]:
    """The variables to prove, none for all of them; or a refusal."""
    if of is None:
        return []
    keys = listed(of, "of")
    if not keys or any(isinstance(key, (tuple, list)) for key in keys):
        raise InputError("certificate: give single variables in of; each takes a proof for every state")
    if question.evidence.likelihoods:
        raise InputError("certificate: likelihoods cannot be proven yet: give observed states only")
    variables = [question.model.variable(key, argument="of") for key in keys]
    for v in variables:
        if v in question.evidence.states:
            raise InputError(f"certificate: {question.model.name(v)!r} is observed: there is nothing to prove")
    return list(dict.fromkeys(variables))


def with_certificates(found: Marginals, question: Question, variables: list[int], interrupt: Interrupt) -> Marginals:
    """The marginals with certificates of some variables, and intervals that are no wider than what these prove.

    Without variables, all distributions have one certificate.
    """
    # Compiled modules are loaded where a proof is wanted.
    from powersum.proof.certificate import sum_certificate

    if not variables:
        certificate = sum_certificate(question)
        if certificate is None:
            raise InputError("certificate: exact elimination is too wide for all variables at once: name some in of")
        return replace(found, certificate=certificate)
    limits = question.limits
    begun, seconds = working_time(), limits.seconds
    waiting = sum(int(question.model.cardinalities[v]) for v in variables)
    certificates, lower, upper = {}, list(found.log_lower), list(found.log_upper)
    for v in variables:
        proofs, sides = [], []
        for state in range(int(question.model.cardinalities[v])):
            left = begun + seconds - working_time()
            part = question.within({v: frozenset((state,))})
            # There are no likelihoods, and it is not observed.
            assert part is not None
            time_limit = max(left / waiting, LEAST_SECONDS) if left < np.inf else None
            own = Limits(time_limit=time_limit, memory=budget_of(None), threads=limits.threads, seed=limits.seed)
            solver = Run(replace(part.summed(), limits=own), certificate=True)
            solver.watch(interrupt)
            for _ in solver:
                pass
            result = solver.result()
            assert result.certificate is not None
            proofs.append(result.certificate)
            sides.append((result.log_lower, result.log_upper))
            waiting -= 1
        certificates[v] = tuple(proofs)
        lows, highs = np.array(sides).T
        top = float(highs.max())
        if -np.inf < top < np.inf:
            # The whole is at most as many times the largest.
            whole = float(lows.max()), top + float(np.log(len(sides))) + 1e-9
            least, most = shares_of_parts(lows, highs, whole, np.array([len(sides)]))
            lower[v], upper[v] = np.maximum(lower[v], least), np.minimum(upper[v], most)
    return replace(found, certificates=certificates, log_lower=tuple(lower), log_upper=tuple(upper))
