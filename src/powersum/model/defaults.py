"""The defaults of all public functions and commands: one table, so that a keyword has one default everywhere.

``memory=None`` stands for half of what the machine has free, see :func:`powersum.core.machine.default_memory`.
"""

from __future__ import annotations

TIME = 60.0
"""Seconds of a call that says neither a time nor an amount of work."""

PAGE_TIME = 20.0
"""The same for a question that is asked on a page."""

EVERY = 30.0
"""Seconds between two checkpoints."""

BOUND_SWEEPS, BOUND_CHANGE = 500, 1e-6
"""Limits of a ``bound`` that has neither sweeps nor time: so many, or fewer once ten of them gain less than the change,
relative to the bound."""

COMPARED_SWEEPS = 20
"""Sweeps of each method of a comparison that has neither sweeps nor time."""

FIRST_SWEEPS = 20
"""Sweeps of the first tightening of a :class:`powersum.BoundFunction`."""
