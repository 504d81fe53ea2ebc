"""A run on one question: its board, its workers and the scheduler."""
