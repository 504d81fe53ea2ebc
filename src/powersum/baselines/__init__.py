"""The methods that the paper compares itself with, one file each, with the interface of every other method."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

BOUNDS: Mapping[str, str] = MappingProxyType(
    {
        "mbe": "powersum.baselines.mbe:MBE",
        "wmb": "powersum.baselines.wmb:WMB",
        "lbfgs": "powersum.baselines.lbfgs:LBFGS",
        "reorder": "powersum.baselines.reorder:Reordered",
        "mas": "powersum.baselines.mas:MAS",
    }
)
"""Name of each rival that bounds and the class behind it, imported when it is used."""

BASELINES: Mapping[str, str] = MappingProxyType({**BOUNDS, "trw": "powersum.baselines.trw:TRW"})
"""All rivals: those, and one whose values are no bounds."""
