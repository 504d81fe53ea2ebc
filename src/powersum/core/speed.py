"""What each kind of work costs, in seconds: guesses for deciding beforehand what fits into the time that is left.

A guess that is wrong costs time or a chance, never a bound.
"""

from __future__ import annotations

ELIMINATION = 3e-9
"""For each table entry of exact bucket elimination, as a rule."""

SLOW_ELIMINATION = 15e-9
"""The same at worst, for judging beforehand whether elimination is affordable."""

SLOW_EVALUATION = 1.0 / 7e7
"""For each table entry of the sum that an assignment leaves, at worst."""

TREE_PASS = 3e-9
"""For each table entry of a covering tree in a pass (its bound and all gradients), at least."""

FIRST_TREE_PASS = 10e-9
"""The same for the first pass, which nothing is known of yet."""

ANNEALING_LOOK = 10e-9
"""For each look into a table while all variables are annealed."""

ORDERING_STEP = 2e-9
"""For each step of min-fill, as it counts its own work."""
