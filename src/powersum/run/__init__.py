"""The public calls: bound, solve, solve_many, marginals, compare."""
