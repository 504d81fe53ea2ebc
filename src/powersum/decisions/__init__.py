"""Decisions: influence diagrams from both sides: a policy with its certified value, a bound on all policies."""
