"""Assignments: exact values, feasible completions, repair, and local search."""
