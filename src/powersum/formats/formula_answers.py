"""The answer to a formula as the model counting competitions print it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext

DIGITS = 40
"""Digits with which exponentials are taken here: those of a double and of the largest exponent."""

LARGEST_COUNT = 1e6
"""Logs of counts beyond which no whole number is looked for: between the bounds lie far too many."""

SHARE = 1e-6
"""Bounds whose values are so near each other, as a share, are printed as one number."""


def answer_lines(
    kind: str, log_lower: float, log_upper: float, states: Mapping[str, int | str], *, interrupted: bool = False
) -> list[str]:
    """Lines of the answer: what is proven is ``exact``, anything between two bounds ``approx``.

    Parameters
    ----------
    kind
        That of the formula, as :class:`~powersum.formats.formulas.Formula` has it.
    log_lower, log_upper
        Bounds on the value.
    states
        States of the maximised variables, by their names, which are the numbers of the file.
    interrupted
        Whether the run was ended from outside.
    """
    lines = [f"c o bounds log10 {_log10(log_lower)} {_log10(log_upper)}"]
    if log_upper == -math.inf:
        known = "s UNSATISFIABLE"
    else:
        known = "s SATISFIABLE" if log_lower > -math.inf else "s UNKNOWN"
    lines += [known, f"c s type {kind}"]
    if log_upper == -math.inf:
        return [*lines, "c s log10-estimate -inf", "c s exact arb int 0"]
    if log_lower == -math.inf:
        return lines
    lines.append(f"c s log10-estimate {_log10(0.5 * (log_lower + log_upper))}")
    count = _count(log_lower, log_upper) if kind in ("mc", "pmc", "maxcount") else None
    if count is not None:
        lines.append(f"c s exact arb int {count}")
    else:
        near = log_upper - log_lower <= SHARE and not interrupted
        lines.append(
            f"c s {'exact double' if near else 'approx arb'} prec-sci {_scientific(0.5 * (log_lower + log_upper))}"
        )
    if states:
        literals = [name if int(state) else f"-{name}" for name, state in states.items() if name.isdigit()]
        lines.append(f"v {' '.join(literals)} 0")
    return lines


def _log10(log_value: float) -> str:
    return f"{log_value / math.log(10.0):.15g}"


def _count(log_lower: float, log_upper: float) -> int | None:
    """The only whole number between the bounds; None where there are several, or none."""
    if log_upper > LARGEST_COUNT:
        return None
    with localcontext() as context:
        context.prec = DIGITS
        low = Decimal(log_lower).exp().to_integral_value(ROUND_CEILING)
        high = Decimal(log_upper).exp().to_integral_value(ROUND_FLOOR)
        return int(low) if low == high else None


def _scientific(log_value: float) -> str:
    """A value beyond all doubles, too."""
    with localcontext() as context:
        context.prec = DIGITS
        return f"{Decimal(log_value).exp():.10e}"
