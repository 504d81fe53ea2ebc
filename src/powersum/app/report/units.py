"""Numbers as people read them."""

from __future__ import annotations

import math


def bytes_text(log2_bytes: float) -> str:
    """A size in memory from its logarithm to base 2; beyond the last unit as a power of ten."""
    if log2_bytes == -math.inf:
        return "0 bytes"
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    unit = min(max(int(log2_bytes // 10), 0), len(units) - 1)
    scaled = log2_bytes - 10 * unit
    if scaled > 14:
        return f"10^{log2_bytes * math.log10(2):.0f} bytes"
    return f"{2**scaled:.3g} {units[unit]}"


def log_text(value: float, digits: int = 6) -> str:
    """A logarithm with a proper minus sign."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{digits}g}".replace("-", "−")
