"""Two readings of one certificate, compared: ``python -m tests.check.agreement --count 100000 --seed 1``."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from decimal import Context, Decimal, localcontext

import numpy as np

import powersum_check as pc
from tests.check.forgeries import forged, honest
from tests.check.helpers import to_check
from tests.check.slow import read_slowly
from tests.check.slow_tables import Beyond, Refused
from tests.check.writer import Draft

LIMITS = ("--memory", "--work", "entries of size", "so small", "too large", "rows, and can have")
"""Words of the checker where it refuses what it could not compute, not what is wrong."""


def log_of(number: Decimal | None) -> Decimal:
    """The log of a bound; ``None`` is infinity."""
    return Decimal("inf") if number is None else number.ln() if number else Decimal("-inf")


def slow_outcome(draft: Draft, data: bytes) -> tuple[str, list[tuple[Decimal, Decimal]], bool]:
    """What the second reading says: proven bounds as logs, of the question and of the k best."""
    factors = [(f.scope, np.asarray(f.log_table)) for f in draft.model.factors()]
    try:
        lower, upper, lossy, best = read_slowly(draft.model.cardinalities.tolist(), factors, data)
    except Refused:
        return "refused", [], False
    except Beyond:
        return "beyond", [], False
    with localcontext(Context(prec=50)):
        return "accepted", [(log_of(low), log_of(high)) for low, high in [(lower, upper), *best]], lossy


def quick_outcome(model: pc.Model, data: bytes) -> tuple[str, list[tuple[float, float]]]:
    """What the checker says."""
    try:
        found = pc.check(model, None, data, memory=10**8, work=1e10)
    except pc.CheckError as error:
        return "beyond" if any(words in str(error) for words in LIMITS) else "refused", []
    best = [] if found.best is None else [(p.log_lower, p.log_upper) for p in found.best.places]
    if found.best is not None:
        best.append((-math.inf, found.best.log_upper_next))
    return "accepted", [(found.log_lower, found.log_upper), *best]


def disagreement(
    draft: Draft, quick: tuple[str, list[tuple[float, float]]], slow: tuple[str, list[tuple[Decimal, Decimal]], bool]
) -> str:
    """Where the two say different things; empty where they agree.

    The checker's bounds must lie around those of the second reading, which has no rounding worth mentioning, and as
    near as its own rounding allows.
    """
    if "beyond" in (quick[0], slow[0]):
        return ""
    if quick[0] != slow[0]:
        return f"the checker says {quick[0]}, the second reading {slow[0]}"
    numbers = [abs(x) for a in draft.arrays.values() if a.dtype.kind == "f" for x in a.ravel().tolist() if x < math.inf]
    close = Decimal(1e-9 * (1.0 + max(numbers, default=0.0)))
    loose = slow[2]
    graph = any(step["kind"] == "conditioning" for step in draft.steps)
    for (low, high), (true_low, true_high) in zip(quick[1], slow[1], strict=True):
        for number, true, sign, tight in ((low, true_low, 1, not loose), (high, true_high, -1, not (loose and graph))):
            if sign * Decimal(number) > sign * true:
                return f"the checker proves {number!r}, and {true} is all that follows"
            if tight and Decimal(number) != true and not abs(Decimal(number) - true) <= close:
                return f"the checker proves only {number!r}, and {true} follows"
    return ""


def main() -> None:
    """Compare; print what disagrees, and counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--forged", type=int, default=9, help="forged certificates for each honest one")
    parser.add_argument("--first", type=int, default=0, help="the case to begin with, where an earlier run ended")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    case = options.first
    while sum(counts.values()) < options.count:
        rng = np.random.default_rng([options.seed, case])
        draft = honest(rng)
        model = to_check(draft.model)
        for number in range(1 + options.forged):
            one = forged(rng, draft) if number else draft
            data = one.zip()
            slow, quick = slow_outcome(one, data), quick_outcome(model, data)
            wrong = disagreement(one, quick, slow)
            kind = "+".join(sorted({step["kind"] if isinstance(step["kind"], str) else "?" for step in one.steps}))
            counts["wrong" if wrong else f"{kind or 'none'}, {'forged' if number else 'honest'}, {slow[0]}"] += 1
            if wrong:
                print(
                    f"seed {options.seed} case {case} number {number}: {wrong} {[s['kind'] for s in one.steps]}",
                    flush=True,
                )
        case += 1
    print(f"next case: {case}")
    for words, number in sorted(counts.items()):
        print(f"{number:9} {words}")


if __name__ == "__main__":
    main()
